//! Zero-pad → FFT → multiply → inverse FFT → crop on the cores, without ever forming the padded grid.
//!
//! The first axis is padded, transformed, multiplied, transformed back and cropped within one cache-resident block of
//! columns, so the work buffer is padded along the other axes only: half of the padded grid.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Error, Real, Result, voxels};
use rayspin_device::Cpu;

use crate::fft::Direction;
use crate::fft::cpu::FftNd;
use crate::fft::cpu::line::{LineMap, Rows, pitch};
use crate::fft::cpu::pass::{BlockWork, LinePass, Scratch, blocks, for_each_block};

/// Work buffers up to this many bytes go one to a thread, each thread taking whole images of a batch.
const OWN_BUFFER_BYTES: usize = 2 << 20;
/// Elements that one parallel task should hold at least.
const TASK_ELEMENTS: usize = 4096;
/// Largest anti-Hermitian share of a kernel that passes for rounding.
const HERMITIAN_TOLERANCE: f64 = 0.1;

/// The smallest length of at least 2n − 1 without prime factors above 7 (and, beyond the smallest, divisible by 4).
pub(super) fn padded_size(n: usize) -> usize {
    let least = n.saturating_mul(2).saturating_sub(1);
    let smooth = |mut m: usize| {
        for p in [2, 3, 5, 7] {
            while m.is_multiple_of(p) {
                m /= p;
            }
        }
        m == 1
    };
    if least < 16 {
        return least.max(1);
    }
    (least.next_multiple_of(4)..)
        .step_by(4)
        .find(|&m| smooth(m))
        .unwrap_or(least)
}

/// Images as `[first, middle, last]`, transforms as the same axes padded; a missing axis has size 1.
#[derive(Debug)]
pub(super) struct Convolution<R: Real> {
    matrix: [usize; 3],
    padded: [usize; 3],
    engine: FftNd<R>,
    /// `[middle, last, first]`, the order in which columns are visited; the inverse transforms' 1/N is in it.
    spectrum: Vec<R>,
    work: Pool<R>,
}

/// One image's way into the work buffer and out of it, a row along the last axis at a time.
trait Ends<R: Real>: Sync {
    /// Writes row `row` of the image.
    fn load(&self, row: usize, line: &mut [Complex<R>]);
    /// Takes row `row` of the result.
    fn store(&self, row: usize, line: &[Complex<R>], out: &mut [Complex<R>]);
}

struct Copy<'a, R>(&'a [Complex<R>]);

impl<R: Real> Ends<R> for Copy<'_, R> {
    fn load(&self, row: usize, line: &mut [Complex<R>]) {
        line.copy_from_slice(&self.0[row * line.len()..(row + 1) * line.len()]);
    }
    fn store(&self, _: usize, line: &[Complex<R>], out: &mut [Complex<R>]) {
        out.copy_from_slice(line);
    }
}

/// Multiplies by a coil's sensitivity on the way in; by its conjugate, and adds up, on the way out.
struct Weighted<'a, R> {
    image: &'a [Complex<R>],
    map: &'a [Complex<R>],
    first: bool,
}

impl<R: Real> Ends<R> for Weighted<'_, R> {
    fn load(&self, row: usize, line: &mut [Complex<R>]) {
        let at = row * line.len()..(row + 1) * line.len();
        for ((value, x), s) in line.iter_mut().zip(&self.image[at.clone()]).zip(&self.map[at]) {
            *value = x * s;
        }
    }
    fn store(&self, row: usize, line: &[Complex<R>], out: &mut [Complex<R>]) {
        let at = row * line.len()..(row + 1) * line.len();
        for ((out, value), s) in out.iter_mut().zip(line).zip(&self.map[at]) {
            let value = value * s.conj();
            *out = if self.first { value } else { *out + value };
        }
    }
}

#[allow(clippy::single_range_in_vec_init)]
fn one(range: Range<usize>) -> [Range<usize>; 1] {
    [range]
}

impl<R: Real> Convolution<R> {
    /// `q` is `matrix` doubled, centred.
    pub(super) fn new(cpu: &Cpu, matrix: &[usize], q: &[Complex<R>]) -> Result<Self> {
        let sizes = match *matrix {
            [x] => [1, 1, x],
            [y, x] => [y, 1, x],
            [z, y, x] => [z, y, x],
            _ => return Err(Error::value("Toeplitz matrix size", "1 to 3 axes", matrix.len())),
        };
        let padded = sizes.map(padded_size);
        voxels(&padded)?;
        let work = Pool::new(voxels(&[sizes[0], padded[1], padded[2]])?);
        let spectrum = Vec::new();
        let mut this = Self {
            matrix: sizes,
            padded,
            engine: FftNd::new(&padded)?,
            spectrum,
            work,
        };
        this.spectrum = this.transform_kernel(cpu, matrix.len(), q)?;
        Ok(this)
    }

    /// The spectrum of Q from its planes of first displacement ≥ 0: the others are their conjugate mirrors, so that the
    /// transform along the first axis is of a Hermitian line, and real.
    fn transform_kernel(&self, cpu: &Cpu, rank: usize, q: &[Complex<R>]) -> Result<Vec<R>> {
        let [n0, n1, n2] = self.matrix;
        let [p0, p1, p2] = self.padded;
        // A missing axis is not doubled: its only displacement is at index 0.
        let doubled = |axis: usize, n: usize| match (rank, axis) {
            (1, 0 | 1) | (2, 1) => (1, 0),
            _ => (2 * n, n),
        };
        let (_, c0) = doubled(0, n0);
        let (m1, c1) = doubled(1, n1);
        let (m2, c2) = doubled(2, n2);
        let mut lease = self.work.take()?;
        let planes = n0;
        let half = <R as Real>::from_f64(0.5);
        let (mut odd, mut all) = (0.0, 0.0);
        let zero = Complex::new(R::zero(), R::zero());
        let sums: Vec<(f64, f64)> = cpu.run(|| {
            lease
                .par_chunks_exact_mut(p1 * p2)
                .enumerate()
                .map(|(d0, plane)| {
                    plane.fill(zero);
                    let (mut odd, mut all) = (0.0, 0.0);
                    for d1 in 1 - n1 as isize..n1 as isize {
                        let row = &mut plane[wrap(d1, p1) * p2..][..p2];
                        let line = |sign: isize| {
                            let at0 = c0.wrapping_add_signed(sign * d0 as isize);
                            let at1 = c1.wrapping_add_signed(sign * d1);
                            &q[(at0 * m1 + at1) * m2..][..m2]
                        };
                        let (there, back) = (line(1), line(-1));
                        for d2 in 1 - n2 as isize..n2 as isize {
                            let a = there[c2.wrapping_add_signed(d2)];
                            let b = back[c2.wrapping_add_signed(-d2)].conj();
                            row[wrap(d2, p2)] = (a + b).scale(half);
                            odd += norm_sqr(a - b) / 4.0;
                            all += norm_sqr(a);
                        }
                    }
                    (odd, all)
                })
                .collect()
        });
        for (o, a) in sums {
            odd += o;
            all += a;
        }
        if !all.is_finite() {
            let infinite = |v: &Complex<R>| !(v.re.is_finite() && v.im.is_finite());
            let (index, value) = q
                .iter()
                .enumerate()
                .find(|(_, v)| infinite(v))
                .unwrap_or((0, &zero));
            return Err(Error::NotFinite {
                what: "Toeplitz kernel".into(),
                index,
                found: value.to_string(),
            });
        }
        if odd > HERMITIAN_TOLERANCE * HERMITIAN_TOLERANCE * all {
            return Err(Error::value(
                "Toeplitz kernel",
                "Q(−d) = conj Q(d), as real weights give, centred at index n",
                format!(
                    "an anti-Hermitian part of relative norm {:.2}",
                    (odd / all).sqrt()
                ),
            ));
        }
        FftNd::new(&[p1, p2])?.process(cpu, &mut lease, Direction::Forward)?;

        let mut spectrum = zeroed::<R>("Toeplitz spectrum", p0 * p1 * p2)?;
        let scale = R::one() / <R as Real>::from_f64((p0 * p1 * p2) as f64);
        let fft = self.engine.line(0, Direction::Forward);
        let plane = p1 * p2;
        let columns = blocks(&(0..plane).collect::<Vec<_>>())
            .first()
            .map_or(1, |block| block.1);
        let lease = &*lease;
        cpu.run(|| {
            spectrum
                .par_chunks_mut(p0 * columns)
                .with_min_len((TASK_ELEMENTS / (p0 * columns)).max(1))
                .enumerate()
                .for_each_init(
                    || {
                        (
                            vec![zero; p0 * columns],
                            vec![zero; fft.get_inplace_scratch_len()],
                        )
                    },
                    |(lines, scratch), (block, out)| {
                        let first = block * columns;
                        let width = out.len() / p0;
                        let lines = &mut lines[..width * p0];
                        lines.fill(zero);
                        for d0 in 0..planes {
                            let row = &lease[d0 * plane + first..][..width];
                            for (line, &value) in lines.chunks_exact_mut(p0).zip(row) {
                                line[wrap(-(d0 as isize), p0)] = value.conj();
                                line[d0] = value;
                            }
                        }
                        fft.process_with_scratch(lines, scratch);
                        for (out, value) in out.iter_mut().zip(&*lines) {
                            *out = value.re * scale;
                        }
                    },
                );
        });
        Ok(spectrum)
    }

    pub(super) fn apply(&self, cpu: &Cpu, x: &[Complex<R>], y: &mut [Complex<R>]) -> Result<()> {
        let image: usize = self.matrix.iter().product();
        let batch = x.len() / image;
        let bytes = self.work.len * size_of::<Complex<R>>();
        if batch > 1 && (batch >= cpu.threads() && bytes <= OWN_BUFFER_BYTES) {
            let passes = self.passes();
            return cpu.run(|| {
                y.par_chunks_exact_mut(image)
                    .zip(x.par_chunks_exact(image))
                    .map_init(
                        || self.work.take(),
                        |lease, (y, x)| match lease {
                            Ok(work) => {
                                self.convolve(&passes, 1, work, &Copy(x), y);
                                Ok(())
                            }
                            Err(error) => Err(error.clone()),
                        },
                    )
                    .collect()
            });
        }
        let passes = self.passes();
        let mut work = self.work.take()?;
        cpu.run(|| {
            for (y, x) in y.chunks_exact_mut(image).zip(x.chunks_exact(image)) {
                self.convolve(&passes, cpu.threads(), &mut work, &Copy(x), y);
            }
        });
        Ok(())
    }

    pub(super) fn apply_sense(
        &self,
        cpu: &Cpu,
        image: &[Complex<R>],
        maps: &[Complex<R>],
        y: &mut [Complex<R>],
    ) -> Result<()> {
        if maps.is_empty() {
            y.fill(Complex::new(R::zero(), R::zero()));
            return Ok(());
        }
        let passes = self.passes();
        let mut work = self.work.take()?;
        cpu.run(|| {
            for (coil, map) in maps.chunks_exact(image.len()).enumerate() {
                let ends = Weighted {
                    image,
                    map,
                    first: coil == 0,
                };
                self.convolve(&passes, cpu.threads(), &mut work, &ends, y);
            }
        });
        Ok(())
    }

    pub(super) fn bytes(&self) -> u64 {
        let work = self.work.allocated() * self.work.len * size_of::<Complex<R>>();
        (self.spectrum.len() * size_of::<R>() + work) as u64
    }

    fn passes(&self) -> Passes<R> {
        let [n0, n1, _] = self.matrix;
        let [p0, p1, p2] = self.padded;
        let middle = |direction, read, write| {
            LinePass::new(
                self.engine.line(1, direction),
                p2,
                LineMap::new(p1, 0, &one(read), &one(write)),
            )
        };
        Passes {
            enter: middle(Direction::Forward, 0..n1, 0..p1),
            leave: middle(Direction::Inverse, 0..p1, 0..n1),
            map: LineMap::new(p0, 0, &one(0..n0), &one(0..n0)),
            blocks: blocks(&(0..p1 * p2).collect::<Vec<_>>()),
        }
    }

    /// One image on `threads` threads of the current pool.
    fn convolve(
        &self,
        passes: &Passes<R>,
        threads: usize,
        work: &mut [Complex<R>],
        ends: &impl Ends<R>,
        y: &mut [Complex<R>],
    ) {
        let [_, n1, n2] = self.matrix;
        let [_, p1, p2] = self.padded;
        let zero = Complex::new(R::zero(), R::zero());
        let last = |direction| self.engine.line(2, direction);
        let scratch = || {
            let (a, b) = (last(Direction::Forward), last(Direction::Inverse));
            let len = a.get_inplace_scratch_len().max(b.get_inplace_scratch_len());
            (vec![zero; len], Scratch::new([&passes.enter, &passes.leave]))
        };
        let enter = |(fft, scratch): &mut (Vec<_>, Scratch<R>),
                     (index, plane): (usize, &mut [Complex<R>])| {
            for (row, line) in plane.chunks_exact_mut(p2).take(n1).enumerate() {
                let (inside, padding) = line.split_at_mut(n2);
                ends.load(index * n1 + row, inside);
                padding.fill(zero);
                last(Direction::Forward).process_with_scratch(line, fft);
            }
            if p1 > 1 {
                passes.enter.run(plane, scratch);
            }
        };
        let leave =
            |(fft, scratch): &mut (Vec<_>, Scratch<R>),
             (index, (plane, y)): (usize, (&mut [Complex<R>], &mut [Complex<R>]))| {
                if p1 > 1 {
                    passes.leave.run(plane, scratch);
                }
                let rows = plane.chunks_exact_mut(p2).zip(y.chunks_exact_mut(n2));
                for (row, (line, y)) in rows.enumerate() {
                    last(Direction::Inverse).process_with_scratch(line, fft);
                    ends.store(index * n1 + row, &line[..n2], y);
                }
            };
        let fused = Fused {
            convolution: self,
            map: &passes.map,
        };
        let plane = p1 * p2;
        if threads == 1 {
            let mut state = scratch();
            for indexed in work.chunks_exact_mut(plane).enumerate() {
                enter(&mut state, indexed);
            }
            for_each_block(vec![&mut *work], plane, &passes.blocks, 1, &fused);
            let planes = work.chunks_exact_mut(plane).zip(y.chunks_exact_mut(n1 * n2));
            for indexed in planes.enumerate() {
                leave(&mut state, indexed);
            }
            return;
        }
        let min = (TASK_ELEMENTS / plane).max(1);
        work.par_chunks_exact_mut(plane)
            .enumerate()
            .with_min_len(min)
            .for_each_init(scratch, enter);
        for_each_block(vec![&mut *work], plane, &passes.blocks, threads, &fused);
        work.par_chunks_exact_mut(plane)
            .zip(y.par_chunks_exact_mut(n1 * n2))
            .enumerate()
            .with_min_len(min)
            .for_each_init(scratch, leave);
    }
}

/// What [`Convolution::convolve`] needs beside the plan; cheap to make, made once a call.
struct Passes<R: Real> {
    enter: LinePass<R>,
    leave: LinePass<R>,
    map: LineMap,
    blocks: Vec<(usize, usize)>,
}

/// Pad, transform, multiply, transform back and crop along the first axis, a block of columns at a time.
struct Fused<'a, R: Real> {
    convolution: &'a Convolution<R>,
    map: &'a LineMap,
}

impl<R: Real> BlockWork<R> for Fused<'_, R> {
    type State = Scratch<R>;

    fn state(&self) -> Scratch<R> {
        let engine = &self.convolution.engine;
        let lines =
            [Direction::Forward, Direction::Inverse].map(|d| engine.line(0, d).get_inplace_scratch_len());
        let zero = Complex::new(R::zero(), R::zero());
        Scratch {
            lines: vec![zero; crate::fft::cpu::line::COLUMNS * pitch::<R>(self.convolution.padded[0])],
            fft: vec![zero; lines[0].max(lines[1])],
        }
    }

    fn block(
        &self,
        scratch: &mut Scratch<R>,
        rows: &mut impl Rows<Complex<R>>,
        _: usize,
        index: usize,
        (column, width): (usize, usize),
    ) {
        let engine = &self.convolution.engine;
        let p0 = self.convolution.padded[0];
        let pitch = pitch::<R>(p0);
        let first = index * crate::fft::cpu::line::COLUMNS;
        let spectrum = self.convolution.spectrum[first * p0..(first + width) * p0].chunks_exact(p0);
        self.map.gather(rows, column, width, &mut scratch.lines, pitch);
        for (line, spectrum) in scratch.lines.chunks_exact_mut(pitch).zip(spectrum) {
            let line = &mut line[..p0];
            engine
                .line(0, Direction::Forward)
                .process_with_scratch(line, &mut scratch.fft);
            for (value, factor) in line.iter_mut().zip(spectrum) {
                *value = value.scale(*factor);
            }
            engine
                .line(0, Direction::Inverse)
                .process_with_scratch(line, &mut scratch.fft);
        }
        self.map.scatter(&scratch.lines, pitch, rows, column, width);
    }
}

/// Work buffers that outlive a call, for reuse by the next.
#[derive(Debug)]
struct Pool<R> {
    len: usize,
    free: Mutex<Vec<Vec<Complex<R>>>>,
    allocated: std::sync::atomic::AtomicUsize,
}

impl<R: Real> Pool<R> {
    fn new(len: usize) -> Self {
        Self {
            len,
            free: Mutex::default(),
            allocated: Default::default(),
        }
    }

    fn take(&self) -> Result<Lease<'_, R>> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let buffer = match free {
            Some(buffer) => buffer,
            None => {
                let buffer = zeroed("Toeplitz work buffer", self.len)?;
                self.allocated.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                buffer
            }
        };
        Ok(Lease { pool: self, buffer })
    }

    fn allocated(&self) -> usize {
        self.allocated.load(std::sync::atomic::Ordering::Relaxed)
    }
}

struct Lease<'a, R: Real> {
    pool: &'a Pool<R>,
    buffer: Vec<Complex<R>>,
}

impl<R: Real> std::ops::Deref for Lease<'_, R> {
    type Target = [Complex<R>];
    fn deref(&self) -> &[Complex<R>] {
        &self.buffer
    }
}

impl<R: Real> std::ops::DerefMut for Lease<'_, R> {
    fn deref_mut(&mut self) -> &mut [Complex<R>] {
        &mut self.buffer
    }
}

impl<R: Real> Drop for Lease<'_, R> {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.pool
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(buffer);
    }
}

/// |value|² in f64, which no f32 overflows.
fn norm_sqr<R: Real>(value: Complex<R>) -> f64 {
    value.re.to_f64() * value.re.to_f64() + value.im.to_f64() * value.im.to_f64()
}

/// `displacement` modulo `n`.
fn wrap(displacement: isize, n: usize) -> usize {
    displacement.rem_euclid(n as isize) as usize
}

fn zeroed<T: rayspin_device::Element>(what: &str, len: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(len).map_err(|()| Error::Memory {
        what: what.into(),
        needed: (len as u64).saturating_mul(size_of::<T>() as u64),
        available: rayspin_device::cpu::memory().map_or(0, |(_, available)| available),
    })
}
