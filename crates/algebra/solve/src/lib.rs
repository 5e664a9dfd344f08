#![doc = include_str!("../README.md")]

mod cg;
pub mod dense;
mod fista;
mod frames;
mod lanczos;
mod least_squares;
mod low_rank_sparse;
mod pdhg;
mod penalties;
mod problem;
mod proximal;
mod repeat;
mod sart;
mod sparse;
mod watch;

pub use cg::{CgOptions, CgResult, cg};
pub use fista::{FistaOptions, FistaResult, fista};
pub use frames::{NuclearNorm, TemporalFourier};
pub use lanczos::{Eigenvalue, LanczosOptions, largest_eigenvalue, largest_eigenvalue_from};
pub use least_squares::{LeastSquaresOptions, LeastSquaresResult, Regularisation, least_squares};
pub use low_rank_sparse::{
    LowRankSparseOptions, LowRankSparseResult, low_rank_plus_sparse, low_rank_plus_sparse_memory,
};
pub use pdhg::{PdhgOptions, PdhgResult, Term, pdhg};
pub use penalties::{Distance, EachOf, GroupNorms, Magnitudes, NonNegative};
pub use problem::{Problem, SCALE_PERCENTILE};
pub use proximal::{Proximal, TotalVariation, WaveletSparsity};
pub use sart::{Part, Positive, SartOptions, SartResult, Subset, mlem, sart};
pub use sparse::{SparseResult, sparse_least_squares};
pub use watch::{Observer, Step, Watch};

use rayspin_core::{Result, expect_shape};
use rayspin_kernels::vector::Scalar;
use rayspin_linop::LinearOp;

/// Fails unless the operator maps its domain to itself.
fn expect_square<S: Scalar>(op: &dyn LinearOp<S>) -> Result<()> {
    expect_shape(&format!("{}: range, where the domain is needed", op.name()), op.domain(), op.range())
}
