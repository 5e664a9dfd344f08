#![doc = include_str!("../README.md")]

mod cg;
mod least_squares;
mod power;

pub use cg::{CgOptions, CgResult, CgStep, cg, cg_observed};
pub use least_squares::{LeastSquaresOptions, LeastSquaresResult, least_squares, least_squares_observed};
pub use power::{Eigenvalue, PowerOptions, power_iteration};

use rayspin_core::{Real, Result, expect_shape};
use rayspin_linop::LinearOp;

/// Fails unless the operator maps its domain to itself.
fn expect_square<R: Real>(op: &dyn LinearOp<R>) -> Result<()> {
    expect_shape(&format!("{}: range, where the domain is needed", op.name()), op.domain(), op.range())
}
