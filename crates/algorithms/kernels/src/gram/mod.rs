//! Gram matrices AᴴA whose rows are gathered from an array: normal equations of calibration regions,
//! covariances of coils.

mod cuda;
mod reference;
#[cfg(test)]
mod tests;
mod variants;

use rayspin_core::{C32, C64, Error, Result, expect_len, expect_shape};
use rayspin_device::{Array, Backend};

use crate::variant::Work;

pub(crate) use cuda::builds;
pub use reference::gram as reference_gram;
use variants::work;
pub use variants::{Implementation, VARIANTS};

/// The positions of the rows in the values.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// The first `n` positions 0, 1, 2, …
    First(usize),
    /// A list of positions.
    Listed(&'a [u32]),
}

impl Rows<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Rows::First(count) => *count,
            Rows::Listed(rows) => rows.len(),
        }
    }

    /// Whether the number of rows is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position of a row. Panics beyond the end of a list.
    pub fn at(&self, row: usize) -> usize {
        match self {
            Rows::First(_) => row,
            Rows::Listed(rows) => rows[row] as usize,
        }
    }

    fn last(&self) -> usize {
        match self {
            Rows::First(count) => count.saturating_sub(1),
            Rows::Listed(rows) => rows.iter().max().map_or(0, |&row| row as usize),
        }
    }
}

/// The sizes of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Rows of A.
    pub rows: usize,
    /// Columns of A.
    pub columns: usize,
}

fn on_gpu(
    values: &Array<C32>,
    rows: Rows<'_>,
    columns: &[u32],
    gram: &mut Array<C64>,
    add: bool,
) -> Result<()> {
    expect_len("Gram matrix", &[columns.len(), columns.len()], gram.len())?;
    let reach = columns.iter().max().map_or(0, |&column| column as usize);
    let last = rows.last().checked_add(reach);
    if !rows.is_empty() && !columns.is_empty() && last.is_none_or(|last| last >= values.len()) {
        let given = format!("{} and columns up to {reach}", rows.last());
        return Err(Error::value("rows of a Gram matrix", format!("within {} values", values.len()), given));
    }
    match values.device().backend() {
        Backend::Cuda(cuda) => cuda::products(cuda, values, rows, columns, gram, add),
        Backend::Cpu(_) => Err(Error::value("device", "a GPU", values.device().describe())),
    }
}

impl Problem {
    /// Bytes and flops, if rows share no values.
    pub fn work(&self) -> Work {
        work(self)
    }
}

/// G\[a, b\] = Σ_r conj(v\[r + c_a\]) v\[r + c_b\], optionally added to the values of `gram`. v are the
/// values of an array on a GPU, r the `rows`, c the `columns`, and G is `[column, column]`. Sums are in
/// double precision and the same from run to run.
///
/// Errors: an array on a CPU; rows and columns beyond the values; a matrix of another shape.
///
/// ```no_run
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::gram::{Rows, gram};
///
/// let device = Device::cuda(0, Device::cpu()?)?;
/// // Two coils of three samples: a row is a sample, and the columns begin at 0 and 3.
/// let samples = [1.0, 2.0, 3.0, 0.0, 1.0, 0.0].map(C32::from).to_vec();
/// let samples = Array::from_vec(&device, &[2, 3], samples)?;
/// let mut matrix = Array::zeros(&device, &[2, 2])?;
/// gram(&samples, Rows::First(3), &[0, 3], &mut matrix, false)?;
/// assert_eq!(matrix.to_vec()?[0].re, 14.0);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn gram(
    values: &Array<C32>,
    rows: Rows<'_>,
    columns: &[u32],
    gram: &mut Array<C64>,
    add: bool,
) -> Result<()> {
    expect_shape("Gram matrix", &[columns.len(), columns.len()], gram.shape())?;
    on_gpu(values, rows, columns, gram, add)
}

/// Bytes of GPU memory that [`gram`] takes in addition to the values, including the matrix.
pub fn needs(rows: Rows<'_>, columns: usize) -> u64 {
    cuda::needs(&Problem { rows: rows.len(), columns }, matches!(rows, Rows::Listed(_)))
}
