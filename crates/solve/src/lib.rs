#![doc = include_str!("../README.md")]

mod cg;
mod lanczos;
mod least_squares;

pub use cg::{CgOptions, CgResult, CgStep, cg, cg_observed};
pub use lanczos::{Eigenvalue, LanczosOptions, largest_eigenvalue};
pub use least_squares::{LeastSquaresOptions, LeastSquaresResult, least_squares, least_squares_observed};

use rayspin_core::{Real, Result, expect_shape};
use rayspin_linop::LinearOp;

/// Fails unless the operator maps its domain to itself.
fn expect_square<R: Real>(op: &dyn LinearOp<R>) -> Result<()> {
    expect_shape(&format!("{}: range, where the domain is needed", op.name()), op.domain(), op.range())
}
