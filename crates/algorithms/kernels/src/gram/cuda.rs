#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{C32, C64, Error, Result};
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::{Problem, Rows};
use crate::cuda::define;

static SOURCE: Source = Source { name: "gram", files: &[("gram.cu", include_str!("cuda/gram.cu"))] };

const THREADS: u32 = 256;
/// Products of a thread along either axis of a tile, which is 16 times as wide.
const FORMS: [usize; 3] = [1, 2, 4];
/// Blocks that are wanted: two of the largest tiles on each multiprocessor of the largest GPU, more of the
/// smaller ones. With the problem they fix every bit of a sum.
const BLOCKS: [usize; 3] = [1056, 528, 264];
/// Rows of a block at least.
const LEAST: usize = 128;

pub(crate) fn builds() -> Vec<Build> {
    let defines = |each: usize| vec![define::<f32>(), ("EACH", each.to_string())];
    FORMS.map(|each| Build { source: &SOURCE, defines: defines(each), spill_bytes: 0 }).into()
}

/// How a problem is cut.
#[derive(Debug, Clone, Copy)]
struct Cut {
    each: usize,
    pairs: usize,
    /// Rows of a block, and blocks along them.
    part: usize,
    parts: usize,
}

impl Cut {
    fn new(problem: &Problem) -> Self {
        let form = FORMS.iter().position(|&each| problem.columns <= 16 * each).unwrap_or(2);
        let each = FORMS[form];
        let tiles = problem.columns.div_ceil(16 * each);
        let pairs = tiles * (tiles + 1) / 2;
        let parts = (BLOCKS[form] / pairs.max(1)).clamp(1, problem.rows.div_ceil(LEAST).max(1));
        let part = problem.rows.div_ceil(parts).max(1);
        Self { each, pairs, part, parts: problem.rows.div_ceil(part).max(1) }
    }

    fn partial(&self) -> usize {
        self.parts * self.pairs * (16 * self.each).pow(2)
    }
}

/// Bytes beside the values: the matrix, its partial sums, the lists of rows and columns.
pub(super) fn needs(problem: &Problem, listed: bool) -> u64 {
    let matrices = size_of::<C64>() * (problem.columns.pow(2) + Cut::new(problem).partial());
    let lists = size_of::<u32>() * (problem.columns + if listed { problem.rows } else { 1 });
    (matrices + lists) as u64
}

/// Adds to `gram`, or overwrites it. Rows and columns lie within the values, and the matrix has a column and
/// a row for each of them.
pub(super) fn products(
    cuda: &Cuda,
    values: &Array<C32>,
    rows: Rows<'_>,
    columns: &[u32],
    gram: &mut Array<C64>,
    add: bool,
) -> Result<()> {
    let problem = Problem { rows: rows.len(), columns: columns.len() };
    let (n, cut, device) = (columns.len(), Cut::new(&problem), values.device());
    if n == 0 {
        return Ok(());
    }
    let blocks = |count: usize| {
        u32::try_from(count).map_err(|_| Error::value("columns of a Gram matrix", "fewer than 2^16", n))
    };
    let listed = match rows {
        Rows::First(_) => Array::zeros(device, &[1])?,
        Rows::Listed(rows) => {
            Array::from_slice(device, &[rows.len().max(1)], if rows.is_empty() { &[0] } else { rows })?
        }
    };
    let columns = Array::from_slice(device, &[n], columns)?;
    let mut partial = Array::<C64>::zeros(device, &[cut.partial()])?;
    let defines = [define::<f32>(), ("EACH", cut.each.to_string())];
    let pairs = blocks(cut.pairs)?;
    // A block counts its rows in 32 bits, and looks beyond them by some.
    Argument::count(problem.rows.saturating_add(cut.part + THREADS as usize))?;
    let shape = Launch { blocks: [pairs, cut.parts as u32, 1], ..Launch::linear(1, THREADS) };
    let arguments = &mut [
        values.cuda().into(),
        listed.cuda().into(),
        i32::from(matches!(rows, Rows::Listed(_))).into(),
        Argument::count(problem.rows)?,
        columns.cuda().into(),
        Argument::count(n)?,
        Argument::count(cut.part)?,
        partial.cuda_mut().into(),
    ];
    // SAFETY: every row and column lies within the values, as the caller found; each block has a tile of its
    // own among the sums.
    unsafe { cuda.kernel(&SOURCE, &defines, "products")?.launch(shape, arguments) }?;
    let shape = Launch::linear(blocks((n * n).div_ceil(THREADS as usize))?, THREADS);
    let arguments = &mut [
        partial.cuda().into(),
        Argument::count(cut.parts)?,
        pairs.into(),
        Argument::count(n)?,
        i32::from(add).into(),
        gram.cuda_mut().into(),
    ];
    // SAFETY: there are sums for all tiles of n columns, and the matrix has n² elements, as the caller found.
    unsafe { cuda.kernel(&SOURCE, &defines, "finish")?.launch(shape, arguments) }
}
