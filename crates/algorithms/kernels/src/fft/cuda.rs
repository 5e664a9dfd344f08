//! Transforms on a GPU by our own kernels. Along each axis a line of up to [`line::LONGEST`] elements is read
//! once and written once.
//!
//! Other algorithms build on [`PaddedFft`] and [`LinePass`].

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

pub(crate) mod line;
mod padded;

pub(crate) use padded::PaddedFft;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, voxels};
use rayspin_device::cuda::{Argument, Define, Kernel, Launch, Properties, Source, View, ViewMut};
use rayspin_device::{Array, Backend, Cuda, Device};

use rayspin_line_fft::plan_f64;
use rayspin_tune::Build;

use crate::cuda::{exact_or_general, limits};
use line::{Block, HEAVY, LIGHT, Line, even_length, unit};

pub(crate) const LINE: (&str, &str) = ("line.cuh", include_str!("cuda/line.cuh"));
pub(crate) static PASS: Source =
    Source { name: "fft", files: &[LINE, ("pass.cu", include_str!("cuda/pass.cu"))] };
pub(crate) static CHIRP: Source =
    Source { name: "fft of any length", files: &[LINE, ("chirp.cu", include_str!("cuda/chirp.cu"))] };

/// The GPU of a device that has one.
pub(crate) fn gpu(device: &Device) -> Result<&Cuda> {
    match device.backend() {
        Backend::Cuda(cuda) => Ok(cuda),
        Backend::Cpu(_) => Err(Error::value("device", "a GPU", device.describe())),
    }
}

/// How the lines of an axis lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    /// This number of lines, each without gaps.
    Rows(usize),
    /// This number of lines begin at neighbouring elements.
    Columns(usize),
}

impl Lie {
    /// Lines of an axis after which `inner` elements of faster axes follow.
    fn of(outer: usize, inner: usize) -> Self {
        if inner == 1 { Self::Rows(outer) } else { Self::Columns(inner) }
    }

    /// Enough rows and columns for whole blocks. The general programs have these forms alone.
    const GENERAL: [Self; 2] = [Self::Rows(1 << 16), Self::Columns(1 << 16)];

    pub(crate) fn general(self) -> Self {
        Self::GENERAL[usize::from(matches!(self, Self::Columns(_)))]
    }

    fn fit<R: Real>(self, line: &Line, limits: &Properties) -> Option<Block> {
        match self {
            Self::Rows(rows) => line.rows::<R>(rows, limits),
            Self::Columns(inner) => line.columns::<R>(inner, limits),
        }
    }

    pub(crate) fn block<R: Real>(self, line: &Line, cuda: &Cuda) -> Result<Block> {
        self.fit::<R>(line, cuda.properties()).ok_or_else(|| Error::Device {
            what: format!("Fourier transform of {} points", line.n),
            detail: "more shared memory than a block of this GPU may have".to_owned(),
        })
    }

    /// The block and the macros of a program of `source` for lines of `line`: exact, or else general.
    /// `defines` takes a block and whether the program leaves out the half of a line that holds nothing.
    pub(crate) fn program<R: Real>(
        self,
        cuda: &Cuda,
        source: &'static Source,
        line: &Line,
        defines: impl Fn(&Block, bool) -> Vec<Define>,
    ) -> Result<(Block, Vec<Define>)> {
        let exact = self.block::<R>(line, cuda)?;
        exact_or_general(cuda, source, (exact, defines(&exact, true)), || {
            let general = self.general().block::<R>(line, cuda)?;
            Ok((general, defines(&general, false)))
        })
    }
}

/// The origin and extent of an axis: element i of `count` is position (i − shift) mod N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) shift: usize,
    pub(crate) count: usize,
    /// Whether an element lies at its position, rather than at its index.
    pub(crate) whole: bool,
}

impl Span {
    /// All n positions in order.
    pub(crate) fn full(n: usize) -> Self {
        Self { shift: 0, count: n, whole: false }
    }

    /// `count` elements, ⌊count/2⌋ being position 0.
    pub(crate) fn centred(count: usize) -> Self {
        Self { shift: count / 2, count, whole: false }
    }

    /// The first `count` positions.
    pub(crate) fn lower(count: usize) -> Self {
        Self { shift: 0, count, whole: false }
    }

    /// The same where each element lies at its position.
    pub(crate) fn in_place(self) -> Self {
        Self { whole: true, ..self }
    }
}

/// An axis beside the one that is transformed: index i lies at ((i − shift) mod length) · stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beside {
    pub(crate) stride: usize,
    pub(crate) shift: usize,
    pub(crate) length: usize,
}

impl Beside {
    /// Where the farthest of `count` indices lies.
    fn farthest(&self, count: usize) -> Option<usize> {
        farthest(self.shift, self.length, count)?.checked_mul(self.stride)
    }

    /// In order, `stride` apart.
    pub(crate) fn packed(stride: usize) -> Self {
        Self { stride, shift: 0, length: 1 }
    }
}

/// How one side of a pass lies in memory: `[batch][a][b][line]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) batch: usize,
    pub(crate) a: Beside,
    pub(crate) b: Beside,
    /// Distance of neighbours along the line.
    pub(crate) stride: usize,
    pub(crate) span: Span,
}

impl Side {
    /// Elements from the first to the last that a pass over lines of `n` touches; `None` where they are
    /// beyond all memory.
    pub(super) fn len(&self, extent: &Extent, n: usize) -> Option<usize> {
        let Span { shift, count, whole } = self.span;
        if count > n || shift > n {
            return None;
        }
        let along = match (count, whole) {
            (0, _) => return Some(0),
            (_, true) => farthest(shift, n, count)?,
            (_, false) => count - 1,
        };
        let batches = (extent.batch.checked_sub(1)?).checked_mul(self.batch)?;
        let ends = [self.a.farthest(extent.a)?, self.b.farthest(extent.b)?, along.checked_mul(self.stride)?];
        ends.into_iter().try_fold(batches, usize::checked_add)?.checked_add(extent.inner)
    }

    fn push(&self, arguments: &mut Vec<Argument<'_>>) -> Result<()> {
        arguments.extend(
            [self.batch, self.a.stride, self.b.stride, self.stride].map(|v| Argument::from(v as i64)),
        );
        for value in [
            self.a.shift,
            self.a.length,
            self.b.shift,
            self.b.length,
            self.span.shift,
            self.span.count,
            usize::from(self.span.whole),
        ] {
            arguments.push(Argument::count(value)?);
        }
        Ok(())
    }
}

/// The largest of (i − shift) mod length for i < `count`, or of i itself where nothing is shifted.
fn farthest(shift: usize, length: usize, count: usize) -> Option<usize> {
    let last = count.checked_sub(1)?;
    Some(match shift {
        0 => last,
        // Indices below the shift are the end of the axis.
        _ if length >= shift => last.saturating_sub(shift).max(length - 1),
        _ => return None,
    })
}

/// What is transformed in a pass: lines `[batch][a][b]`, and how many neighbouring columns each stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) batch: usize,
    pub(crate) a: usize,
    pub(crate) b: usize,
    pub(crate) inner: usize,
}

/// Factors that a pass applies to the elements.
#[derive(Debug)]
pub(crate) struct Touch<'a, R: Real> {
    pub(crate) inverse: bool,
    pub(crate) scale: R,
    pub(crate) weigh: Weigh<'a, R>,
}

/// Real factors of the elements of every line.
#[derive(Debug)]
pub(crate) enum Weigh<'a, R> {
    Not,
    /// As they are read.
    Read(View<'a, R>),
    /// As they are written.
    Write(View<'a, R>),
}

/// The transform of one axis: a kernel compiled for its length.
pub(crate) struct LinePass<R: Real> {
    n: usize,
    kernel: Kernel,
    block: Block,
    table: Array<Complex<R>>,
    none: Array<R>,
}

impl<R: Real> std::fmt::Debug for LinePass<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LinePass({:?})", self.block)
    }
}

impl<R: Real> LinePass<R> {
    /// Bytes of its tables.
    pub(crate) fn bytes(&self) -> u64 {
        (self.table.len() * size_of::<Complex<R>>() + self.none.len() * size_of::<R>()) as u64
    }

    /// [`LinePass::bytes`] of lines of `n`, before they are made; 0 where the kernels do not take them.
    pub(crate) fn bytes_needed(n: usize) -> u64 {
        let table =
            Line::new(n).map_or(0, |line| line.table::<R>().len() * size_of::<Complex<R>>() + size_of::<R>());
        table as u64
    }

    /// A pass over lines of `line` in this layout. It reads the first `from` positions and writes the first
    /// `to` positions. If these are at most half of the line, the other half is 0 or not wanted.
    pub(crate) fn new(
        device: &Device,
        line: &Line,
        lie: Lie,
        from: Option<usize>,
        to: Option<usize>,
    ) -> Result<Self> {
        let cuda = gpu(device)?;
        let lower = |count: Option<usize>| count.is_some_and(|count| line.halves(count));
        let (from, to) = (lower(from), lower(to) && !lower(from));
        let form = |line: Line, lie: Lie, from, to| -> Result<_> {
            let block = lie.block::<R>(&line, cuda)?;
            let defines = pass::<R>(&line, &block, from, to);
            Ok(((line, block), defines))
        };
        // The radix at the end that is halved must be even.
        let exact = form(if to { line.reversed() } else { line.clone() }, lie, from, to)?;
        let ((line, block), defines) =
            exact_or_general(cuda, &PASS, exact, || form(line.clone(), lie.general(), false, false))?;
        Ok(Self {
            n: line.n,
            kernel: cuda.kernel(&PASS, &defines, "pass")?,
            block,
            table: Array::from_vec(device, &[line.table::<R>().len()], line.table())?,
            none: Array::zeros(device, &[1])?,
        })
    }

    /// Transforms lines of `from`, or of `to` itself, into `to`. Errors: sides that do not lie inside the
    /// arrays, factors that are fewer than a line's elements.
    pub(crate) fn run(
        &self,
        from: Option<View<'_, Complex<R>>>,
        mut to: ViewMut<'_, Complex<R>>,
        extent: Extent,
        sides: [Side; 2],
        touch: &Touch<'_, R>,
    ) -> Result<()> {
        let lines = extent.batch * extent.a * extent.b;
        if lines == 0 || extent.inner == 0 {
            return Ok(());
        }
        let (weigh, factors) = match touch.weigh {
            Weigh::Not => (0u32, self.none.cuda()),
            Weigh::Read(factors) => (1, factors),
            Weigh::Write(factors) => (2, factors),
        };
        let least = match weigh {
            0 => 0,
            1 => sides[0].span.count,
            _ => sides[1].span.count,
        };
        let there = [from.map_or(to.len(), |from| from.len()), to.len()];
        let outside = |side: &Side, len| side.len(&extent, self.n).is_none_or(|needed| needed > len);
        if let Some((side, len)) = sides.iter().zip(there).find(|&(side, len)| outside(side, len)) {
            let given = format!("{extent:?} of {side:?}");
            return Err(Error::value("Fourier transform", format!("lines within {len} elements"), given));
        }
        if factors.len() < least {
            return Err(Error::shape("factors of a Fourier transform", &[least], &[factors.len()]));
        }
        let mut arguments = vec![
            from.unwrap_or(self.table.cuda()).into(),
            to.reborrow().into(),
            u32::from(from.is_none()).into(),
            self.table.cuda().into(),
            factors.into(),
            weigh.into(),
            u32::from(touch.inverse).into(),
            Argument::real(touch.scale),
            Argument::count(lines)?,
            Argument::count(extent.inner)?,
            Argument::count(extent.a)?,
            Argument::count(extent.b)?,
        ];
        for side in &sides {
            side.push(&mut arguments)?;
        }
        let shape = launch(&self.block, lines, extent.inner)?;
        // SAFETY: all that both sides touch was just found to lie inside the arrays, and there are as many
        // factors as elements; the block is the one that the kernel was compiled for.
        unsafe { self.kernel.launch(shape, &mut arguments) }
    }
}

/// As many blocks as cover `lines` rows, or `lines` times `inner` columns.
pub(crate) fn launch(block: &Block, lines: usize, inner: usize) -> Result<Launch> {
    let blocks = match block.columns {
        0 => lines.div_ceil(block.lines),
        columns => lines * inner.div_ceil(columns),
    };
    let blocks = u32::try_from(blocks)
        .map_err(|_| Error::value("Fourier transform", "2^32 blocks of lines", blocks))?;
    Ok(Launch::linear(blocks, block.threads).with_shared(block.shared))
}

/// Bytes that kernels limited to 40 registers (f64: 80) per thread may spill. A few spilled bytes cost less
/// than fewer threads.
pub(crate) const LIGHT_SPILL: u32 = 32;

/// The macros of a pass.
fn pass<R: Real>(line: &Line, block: &Block, from_lower: bool, to_lower: bool) -> Vec<Define> {
    let flag = |yes: bool| u32::from(yes).to_string();
    let mut defines = line.defines::<R>(block, 1, LIGHT);
    defines.extend([("FROM_LOWER", flag(from_lower)), ("TO_LOWER", flag(to_lower))]);
    defines
}

/// The blocks for rows and columns of `line` without knowledge of the problem, for `shared` bytes of shared
/// memory per block.
pub(crate) fn general<R: Real>(line: &Line, shared: u32) -> [Option<Block>; 2] {
    let limits = Properties { shared_per_block: shared, ..limits() };
    Lie::GENERAL.map(|lie| lie.fit::<R>(line, &limits))
}

/// The programs of transforms for machines without a compiler: every length up to `longest`.
pub(crate) fn precompiled<R: Real>(longest: usize, shared: u32) -> Vec<Build> {
    let mut builds = Vec::new();
    for line in (1..=longest).filter_map(Line::new) {
        for block in general::<R>(&line, shared).into_iter().flatten() {
            let plain = pass::<R>(&line, &block, false, false);
            builds.push(Build { source: &PASS, defines: plain, spill_bytes: 0 });
            // Lengths of convolutions are multiples of 4.
            if line.n.is_multiple_of(4) {
                let defines = line.defines::<R>(&block, 1, HEAVY);
                builds.push(Build { source: &CHIRP, defines, spill_bytes: 0 });
            }
        }
    }
    builds
}

/// Every program in some of its forms.
pub(crate) fn builds() -> Vec<Build> {
    [builds_in::<f32>(), builds_in::<f64>()].concat()
}

fn builds_in<R: Real>() -> Vec<Build> {
    let limits = limits();
    let mut builds = Vec::new();
    let mut push = |n: usize, rows: bool, lower: [u32; 2]| {
        let Some(line) = Line::new(n) else { return };
        let line = if lower[1] == 1 { line.reversed() } else { line };
        let block = if rows { line.rows::<R>(1 << 16, &limits) } else { line.columns::<R>(1 << 16, &limits) };
        let Some(block) = block else { return };
        let mut defines = line.defines::<R>(&block, 1, LIGHT);
        defines.extend([("FROM_LOWER", lower[0].to_string()), ("TO_LOWER", lower[1].to_string())]);
        builds.push(Build { source: &PASS, defines, spill_bytes: LIGHT_SPILL });
    };
    push(256, true, [0, 0]);
    push(512, false, [1, 0]);
    push(512, false, [0, 1]);
    if size_of::<R>() == 4 {
        push(256, false, [0, 0]);
        push(320, false, [0, 0]);
    }
    if let Some(line) = even_length(2 * 97).and_then(Line::new)
        && let Some(block) = line.columns::<R>(1 << 16, &limits)
    {
        // For sm_80 two registers too many, of 72.
        builds.push(Build { source: &CHIRP, defines: line.defines::<R>(&block, 1, HEAVY), spill_bytes: 8 });
    }
    builds
}

/// One axis of [`GpuFft`].
#[derive(Debug)]
enum Axis<R: Real> {
    /// A single element is its own transform.
    Trivial,
    Line(LinePass<R>),
    Chirp(Chirp<R>),
}

/// N-D transforms of whole arrays, in place.
#[derive(Debug)]
pub(super) struct GpuFft<R: Real> {
    shape: Vec<usize>,
    axes: Vec<Axis<R>>,
}

impl<R: Real> GpuFft<R> {
    /// `None` where a length is beyond the kernels: above [`line::LONGEST`], or half of it with prime factors
    /// above 7.
    pub(super) fn new(device: &Device, shape: &[usize]) -> Result<Option<Self>> {
        let mut axes = Vec::new();
        for (axis, &n) in shape.iter().enumerate() {
            let lie = Lie::of(usize::MAX >> 1, shape[axis + 1..].iter().product());
            axes.push(match (n, Line::new(n)) {
                (1, _) => Axis::Trivial,
                (_, Some(line)) => Axis::Line(LinePass::new(device, &line, lie, None, None)?),
                (_, None) => match Chirp::new(device, n, lie)? {
                    Some(chirp) => Axis::Chirp(chirp),
                    None => return Ok(None),
                },
            });
        }
        Ok(Some(Self { shape: shape.to_vec(), axes }))
    }

    /// X\[k\] = scale · Σ_j x\[j\] e^{∓i2πjk/n} along every axis, for a batch of arrays; with `centred`,
    /// index ⌊n/2⌋ is position and frequency 0.
    pub(super) fn run(
        &self,
        mut data: ViewMut<'_, Complex<R>>,
        inverse: bool,
        scale: R,
        centred: bool,
    ) -> Result<()> {
        let mut scale = scale;
        let len = data.len();
        for (axis, &n) in self.shape.iter().enumerate().rev() {
            let inner: usize = self.shape[axis + 1..].iter().product();
            let lines = len / (n * inner);
            let shift = if centred { n / 2 } else { 0 };
            match &self.axes[axis] {
                Axis::Trivial => continue,
                Axis::Line(pass) => {
                    let side = Side {
                        batch: 0,
                        a: Beside::packed(0),
                        b: Beside::packed(n * inner),
                        stride: inner,
                        span: Span { shift, count: n, whole: false },
                    };
                    let extent = Extent { batch: 1, a: 1, b: lines, inner };
                    let touch = Touch { inverse, scale, weigh: Weigh::Not };
                    pass.run(None, data.reborrow(), extent, [side, side], &touch)?;
                }
                Axis::Chirp(chirp) => {
                    chirp.run(data.reborrow(), inverse, scale, Lines { count: lines, inner, shift })?;
                }
            }
            scale = R::one();
        }
        Ok(())
    }
}

/// Lines of an axis, centred by `shift`: `count` lines, each for `inner` neighbouring columns.
#[derive(Debug, Clone, Copy)]
struct Lines {
    count: usize,
    inner: usize,
    shift: usize,
}

/// Lines of a length with large prime factors, by Bluestein's convolution, in one kernel.
struct Chirp<R: Real> {
    n: usize,
    kernel: Kernel,
    block: Block,
    tables: [Array<Complex<R>>; 2],
    /// e^{−iπj²/n}.
    factors: Array<Complex<R>>,
    spectrum: Array<Complex<R>>,
}

impl<R: Real> std::fmt::Debug for Chirp<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chirp({}, {:?})", self.n, self.block)
    }
}

impl<R: Real> Chirp<R> {
    fn new(device: &Device, n: usize, lie: Lie) -> Result<Option<Self>> {
        let cuda = gpu(device)?;
        let Some(line) = even_length(2 * n).and_then(Line::new) else { return Ok(None) };
        let (block, defines) =
            lie.program::<R>(cuda, &CHIRP, &line, |block, _| line.defines::<R>(block, 1, HEAVY))?;
        // j² modulo 2n, in integers.
        let chirp = |j: usize| unit::<f64>(j * j % (2 * n), 2 * n);
        let mut spectrum = vec![Complex::new(0.0, 0.0); line.n];
        for j in 0..n {
            let value = chirp(j).conj() / line.n as f64;
            spectrum[j] = value;
            if j > 0 {
                spectrum[line.n - j] = value;
            }
        }
        plan_f64(&[line.n]).forward[0].process(&mut spectrum);
        let narrow = |v: Complex<f64>| Complex::new(<R as Real>::from_f64(v.re), <R as Real>::from_f64(v.im));
        let upload = |values: Vec<Complex<R>>| Array::from_vec(device, &[values.len()], values);
        Ok(Some(Self {
            n,
            kernel: cuda.kernel(&CHIRP, &defines, "chirp")?,
            block,
            tables: [upload(line.table())?, upload(line.reversed().table())?],
            factors: upload((0..n).map(|j| narrow(chirp(j))).collect())?,
            spectrum: upload(spectrum.into_iter().map(narrow).collect())?,
        }))
    }

    fn run(&self, data: ViewMut<'_, Complex<R>>, inverse: bool, scale: R, lines: Lines) -> Result<()> {
        let Lines { count, inner, shift } = lines;
        if count == 0 {
            return Ok(());
        }
        let [table, reversed] = &self.tables;
        if voxels(&[count, self.n, inner])? > data.len() || shift > self.n {
            return Err(Error::shape("Fourier transform", &[count, self.n, inner], &[data.len()]));
        }
        let arguments = &mut [
            data.into(),
            table.cuda().into(),
            reversed.cuda().into(),
            self.factors.cuda().into(),
            self.spectrum.cuda().into(),
            u32::from(inverse).into(),
            Argument::real(scale),
            Argument::count(count)?,
            Argument::count(inner)?,
            Argument::from((self.n * inner) as i64),
            Argument::from(inner as i64),
            Argument::count(self.n)?,
            Argument::count(shift)?,
        ];
        let shape = launch(&self.block, count, inner)?;
        // SAFETY: the lines were just found to lie inside the array; tables and block are those that the
        // kernel was compiled for.
        unsafe { self.kernel.launch(shape, arguments) }
    }
}
