#![doc = include_str!("../README.md")]

mod cg;
pub mod dense;
mod fista;
mod lanczos;
mod least_squares;
mod proximal;
mod repeat;
mod sparse;

pub use cg::{CgOptions, CgResult, CgStep, cg, cg_observed};
pub use fista::{FistaOptions, FistaResult, FistaStep, fista};
pub use lanczos::{Eigenvalue, LanczosOptions, largest_eigenvalue};
pub use least_squares::{LeastSquaresOptions, LeastSquaresResult, least_squares, least_squares_observed};
pub use proximal::{Proximal, TotalVariation, WaveletSparsity};
pub use sparse::{SCALE_PERCENTILE, SparseResult, sparse_least_squares};

use rayspin_core::{Real, Result, expect_shape};
use rayspin_linop::LinearOp;

/// Fails unless the operator maps its domain to itself.
fn expect_square<R: Real>(op: &dyn LinearOp<R>) -> Result<()> {
    expect_shape(&format!("{}: range, where the domain is needed", op.name()), op.domain(), op.range())
}
