#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use std::ops::Range;

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{Argument, Define, Kernel, Launch, Source};
use rayspin_device::{Array, Cuda, Device};
use rayspin_tune::blocks::whole_warps;
use rayspin_tune::{Build, Config};

const PIVOT: (&str, &str) = ("pivot.cuh", include_str!("cuda/pivot.cuh"));
static SAXPY: Source =
    Source { name: "linpack_saxpy", files: &[("01_saxpy.cu", include_str!("cuda/01_saxpy.cu"))] };
static COLUMNS: Source = Source {
    name: "linpack_columns",
    files: &[PIVOT, ("02_columns.cu", include_str!("cuda/02_columns.cu"))],
};
const STRIP: (&str, &str) = ("strip.cuh", include_str!("cuda/strip.cuh"));
static BLOCKED: Source = Source {
    name: "linpack_blocked",
    files: &[PIVOT, STRIP, ("03_blocked.cu", include_str!("cuda/03_blocked.cu"))],
};
static TILED: Source =
    Source { name: "linpack_tiled", files: &[("04_tiled.cu", include_str!("cuda/04_tiled.cu"))] };
static STRIPS: Source = Source {
    name: "linpack_strips",
    files: &[PIVOT, STRIP, ("05_strips.cu", include_str!("cuda/05_strips.cu"))],
};

/// The most blocks that look for a pivot.
const MOST_BLOCKS: usize = 256;
/// Columns of a strip: a kernel a column, a kernel a strip.
const NARROW: usize = 16;
const WIDE: usize = 32;

pub(super) fn saxpy_forms() -> Vec<Build> {
    vec![Build::plain(&SAXPY)]
}

pub(super) fn columns_forms() -> Vec<Build> {
    vec![Build::plain(&COLUMNS)]
}

pub(super) fn blocked_forms() -> Vec<Build> {
    vec![Build::plain(&BLOCKED)]
}

pub(super) fn tiled_forms() -> Vec<Build> {
    let tiled = [[64, 64], [128, 64]].map(|tile| Build { defines: defines(tile), ..Build::plain(&TILED) });
    [vec![Build::plain(&BLOCKED)], tiled.to_vec()].concat()
}

pub(super) fn strips_forms() -> Vec<Build> {
    // Without shared memory for a whole strip it goes on as `gpu-tiled`.
    let mut forms = tiled_forms();
    forms.push(Build { defines: wide(), ..Build::plain(&STRIPS) });
    forms
}

fn wide() -> Vec<Define> {
    vec![("STRIP", WIDE.to_string())]
}

fn defines([bm, bn]: [u32; 2]) -> Vec<Define> {
    vec![("BM", bm.to_string()), ("BN", bn.to_string())]
}

/// Vectors of z = a x + y.
pub(super) struct Operands<'a> {
    pub(super) x: &'a Array<f32>,
    pub(super) y: &'a Array<f32>,
    pub(super) z: &'a mut Array<f32>,
}

/// The kernel `name`: `each` or `wide`.
pub(super) fn saxpy(
    cuda: &Cuda,
    name: &str,
    threads: u32,
    a: f32,
    Operands { x, y, z }: Operands<'_>,
) -> Result<()> {
    whole_warps(threads)?;
    let n = x.len();
    expect_len("second vector", &[n], y.len())?;
    expect_len("sum of vectors", &[n], z.len())?;
    let items = if name == "wide" { n.div_ceil(4) } else { n };
    let shape = Launch::covering(items, threads);
    let arguments = &mut [a.into(), x.cuda().into(), y.cuda().into(), z.cuda_mut().into(), (n as u64).into()];
    // SAFETY: the vectors have n numbers, and threads beyond the last end.
    unsafe { cuda.kernel(&SAXPY, &[], name)?.launch(shape, arguments) }
}

/// What the blocks of a kernel leave for the last of them.
pub(super) struct Room {
    sizes: Array<f64>,
    rows: Array<i32>,
    ticket: Array<u32>,
    /// Two sets of messages of blocks.
    words: Array<u64>,
}

/// 64-bit words of two sets of messages: of each block a header of four and a row, and the row that the
/// pivot's displaces.
const fn words(blocks: usize) -> usize {
    2 * (blocks * (4 + 2 * WIDE) + 2 * WIDE)
}

impl Room {
    /// Errors: memory.
    pub(super) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            sizes: Array::zeros(device, &[MOST_BLOCKS])?,
            rows: Array::zeros(device, &[MOST_BLOCKS])?,
            ticket: Array::zeros(device, &[1])?,
            words: Array::zeros(device, &[words(MOST_BLOCKS)])?,
        })
    }
}

/// Errors: a matrix or pivots of another size, more rows than a grid has.
fn check(n: usize, lu: &Array<f64>, pivots: &Array<i32>) -> Result<()> {
    super::checked(super::Problem::Lu(n))?;
    expect_len("factors of a matrix", &[n, n], lu.len())?;
    expect_len("pivots of a matrix", &[n], pivots.len())
}

fn int<'a>(n: usize) -> Argument<'a> {
    (n as i32).into()
}

/// A column after another, each step over all of the matrix that is left.
pub(super) fn columns(cuda: &Cuda, n: usize, lu: &mut Array<f64>, pivots: &mut Array<i32>) -> Result<()> {
    check(n, lu, pivots)?;
    let [pivot, scale, eliminate] =
        ["pivot", "scale", "eliminate"].map(|name| cuda.kernel(&COLUMNS, &[], name));
    let (pivot, scale, eliminate) = (pivot?, scale?, eliminate?);
    for k in 0..n {
        let arguments = &mut [lu.cuda_mut().into(), pivots.cuda_mut().into(), int(n), int(k)];
        // SAFETY: the matrix has n rows of n numbers, there are n pivots, and a pivot is the index of a row.
        unsafe { pivot.launch(Launch::linear(1, 256), arguments) }?;
        let left = n - k - 1;
        if left == 0 {
            break;
        }
        let arguments = &mut [lu.cuda_mut().into(), int(n), int(k)];
        // SAFETY: as above, and threads beyond the last row or column end.
        unsafe { scale.launch(Launch::covering(left, 256), arguments) }?;
        let blocks = [left.div_ceil(32) as u32, left.div_ceil(8) as u32, 1];
        // SAFETY: as above.
        unsafe { eliminate.launch(Launch { blocks, threads: [32, 8, 1], shared: 0 }, arguments) }?;
    }
    Ok(())
}

/// The kernel of rows − L U, and the numbers of its blocks.
struct Update {
    kernel: Kernel,
    tile: [usize; 2],
    threads: u32,
}

impl Update {
    fn new(cuda: &Cuda, tiled: bool, config: &Config) -> Result<Self> {
        if !tiled {
            let kernel = cuda.kernel(&BLOCKED, &[], "update_each")?;
            return Ok(Self { kernel, tile: [8, 32], threads: 256 });
        }
        let (bm, bn) = (config.get("bm")?, config.get("bn")?);
        if ![64, 128].contains(&bm) || bn != 64 {
            return Err(Error::value("tile of an update", "64 or 128 x 64", config));
        }
        let kernel = cuda.kernel(&TILED, &defines([bm, bn]), "update_tiled")?;
        Ok(Self { kernel, tile: [bm as usize, bn as usize], threads: bm / 8 * (bn / 4) })
    }

    /// Rows and columns less L U, with these columns of L.
    fn launch(&self, n: usize, lu: &mut Array<f64>, [rows, columns, inner]: [Range<usize>; 3]) -> Result<()> {
        if rows.is_empty() || columns.is_empty() {
            return Ok(());
        }
        let blocks =
            [columns.len().div_ceil(self.tile[1]) as u32, rows.len().div_ceil(self.tile[0]) as u32, 1];
        let ranges = [rows, columns, inner].map(|range| [int(range.start), int(range.end)]).concat();
        let arguments = &mut [&[lu.cuda_mut().into(), int(n)], &ranges[..]].concat();
        // SAFETY: the ranges lie in the matrix of n x n numbers, and threads beyond them end. What is written
        // is not what is read.
        unsafe { self.kernel.launch(Launch { blocks, threads: [self.threads, 1, 1], shared: 0 }, arguments) }
    }
}

/// How a strip of columns is factored.
enum Strip {
    /// A kernel a column.
    Columns(Kernel),
    /// One kernel, whose blocks wait for each other: at most this number.
    Whole(Kernel, usize),
}

/// Rows of a block at least, where blocks wait for each other: fewer rows are not worth another block.
const FEW_ROWS: usize = 64;
/// Threads of a block of `strip`, and the bytes of shared memory of a row.
const STRIP_THREADS: u32 = 256;
const ROW_BYTES: usize = (WIDE + 4) * size_of::<f64>();

impl Strip {
    /// The most blocks of a whole strip: the configuration's number, or more if its shared memory does not
    /// hold all rows. `None` if the shared memory of all blocks that run at once does not hold them.
    fn blocks(cuda: &Cuda, config: &Config, n: usize) -> Result<Option<usize>> {
        // The kernel's own shared memory takes less than a kibibyte.
        let held = (cuda.properties().shared_per_block as usize).saturating_sub(1024) / ROW_BYTES;
        if held == 0 {
            return Ok(None);
        }
        let kernel = cuda.kernel(&STRIPS, &wide(), "strip")?;
        let wanted = (config.get("blocks")?.max(1) as usize).max(n.div_ceil(held));
        let rows = n.div_ceil(wanted).max(FEW_ROWS.min(n)).min(held);
        let meet = kernel.blocks_that_meet(STRIP_THREADS, (rows * ROW_BYTES) as u32)? as usize;
        // With more shared memory a block, a multiprocessor holds fewer of them, but at least one.
        let fewer = meet.min(cuda.properties().multiprocessors as usize);
        let most = if wanted <= meet { wanted } else { fewer }.min(MOST_BLOCKS);
        Ok((most * held >= n).then_some(most))
    }

    fn width(&self) -> usize {
        if matches!(self, Self::Columns(_)) { NARROW } else { WIDE }
    }

    fn factor(
        &self,
        n: usize,
        strip: &Range<usize>,
        Factors { lu, pivots, room }: &mut Factors<'_>,
    ) -> Result<()> {
        let of_strip = [int(strip.start), int(strip.end)];
        let Room { sizes, rows, ticket, words } = &mut **room;
        match self {
            Self::Columns(kernel) => {
                // The last turn makes the last column of L.
                for j in strip.start..(strip.end + 1).min(n) {
                    let shape = Launch::linear((n - j).div_ceil(64).min(MOST_BLOCKS) as u32, 256);
                    let kept = [sizes.cuda_mut().into(), rows.cuda_mut().into(), ticket.cuda_mut().into()];
                    let arrays = [lu.cuda_mut().into(), pivots.cuda_mut().into()];
                    let arguments = &mut [&arrays[..], &kept, &[int(n)], &of_strip, &[int(j)]].concat();
                    // SAFETY: the strip lies in the matrix of n x n numbers, there are n pivots, and there is
                    // room for what each block leaves.
                    unsafe { kernel.launch(shape, arguments) }?;
                }
                Ok(())
            }
            Self::Whole(kernel, most) => {
                let left = n - strip.start;
                let of_block = left.div_ceil(*most).max(FEW_ROWS.min(left));
                let blocks = left.div_ceil(of_block);
                let shape = Launch::linear(blocks as u32, STRIP_THREADS).with_shared(of_block * ROW_BYTES);
                let meet = kernel.blocks_that_meet(STRIP_THREADS, shape.shared)? as usize;
                if blocks > meet.min(MOST_BLOCKS) {
                    let given = format!("{left} rows, {blocks} blocks");
                    return Err(Error::value("strip", format!("{meet} blocks that run at once"), given));
                }
                let arrays = [lu.cuda_mut().into(), pivots.cuda_mut().into(), words.cuda_mut().into()];
                let arguments = &mut [&arrays[..], &[int(n)], &of_strip, &[int(of_block)]].concat();
                // SAFETY: as above. `words` has room for the messages of MOST_BLOCKS blocks.
                unsafe { kernel.launch(shape, arguments) }
            }
        }
    }
}

/// A matrix that becomes its factors, its pivots, and what kernels need for them.
pub(super) struct Factors<'a> {
    pub(super) lu: &'a mut Array<f64>,
    pub(super) pivots: &'a mut Array<i32>,
    pub(super) room: &'a mut Room,
}

/// The steps that forms share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A kernel a column, a thread a number of an update.
    Blocked,
    /// Updates by tiles.
    Tiled,
    /// The same, and a kernel a strip.
    Strips,
}

/// Strips and panels of columns.
pub(super) fn blocked(
    cuda: &Cuda,
    config: &Config,
    form: Form,
    n: usize,
    mut factors: Factors<'_>,
) -> Result<()> {
    check(n, factors.lu, factors.pivots)?;
    let update = Update::new(cuda, form != Form::Blocked, config)?;
    let most = if form == Form::Strips { Strip::blocks(cuda, config, n)? } else { None };
    let (source, defines) = if most.is_some() { (&STRIPS, wide()) } else { (&BLOCKED, Vec::new()) };
    let kernel = |name| cuda.kernel(source, &defines, name);
    let columns = match most {
        Some(most) => {
            factors.room.words.fill(0)?;
            Strip::Whole(kernel("strip")?, most)
        }
        None => Strip::Columns(kernel("column")?),
    };
    let (exchange, solve) = (kernel("exchange")?, kernel("solve")?);
    let width = config.get("panel")? as usize;
    let of_strip = columns.width();
    if width == 0 || !width.is_multiple_of(of_strip) {
        let expected = format!("a multiple of {of_strip}");
        return Err(Error::value("columns of a panel", expected, width));
    }
    let strips = |panel: &Range<usize>| {
        let end = panel.end;
        panel.clone().step_by(of_strip).map(move |from| from..(from + of_strip).min(end))
    };
    let solve = |lu: &mut Array<f64>, strip: &Range<usize>, columns: Range<usize>| {
        if columns.is_empty() {
            return Ok(());
        }
        let shape = Launch::covering(columns.len(), 64);
        let ranges = [int(strip.start), int(strip.end), int(columns.start), int(columns.end)];
        let arguments = &mut [&[lu.cuda_mut().into(), int(n)], &ranges[..]].concat();
        // SAFETY: strip and columns lie in the matrix, and threads beyond the last column end.
        unsafe { solve.launch(shape, arguments) }
    };
    for first in (0..n).step_by(width) {
        let panel = first..(first + width).min(n);
        for strip in strips(&panel) {
            columns.factor(n, &strip, &mut factors)?;
            let (lu, pivots) = (&mut *factors.lu, &*factors.pivots);
            let of_strip = [int(strip.start), int(strip.end)];
            let arguments =
                &mut [&[lu.cuda_mut().into(), pivots.cuda().into(), int(n)], &of_strip[..]].concat();
            // SAFETY: as above; the pivots of the strip are rows of the matrix, as a kernel has just written
            // them.
            unsafe { exchange.launch(Launch::covering(n, 64), arguments) }?;
            solve(lu, &strip, strip.end..panel.end)?;
            update.launch(n, lu, [strip.end..n, strip.end..panel.end, strip])?;
        }
        let lu = &mut *factors.lu;
        for strip in strips(&panel) {
            solve(lu, &strip, panel.end..n)?;
            update.launch(n, lu, [strip.end..panel.end, panel.end..n, strip])?;
        }
        update.launch(n, lu, [panel.end..n, panel.end..n, panel])?;
    }
    Ok(())
}
