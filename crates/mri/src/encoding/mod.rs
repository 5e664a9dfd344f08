//! What samples encode: a grid, a trajectory in a homogeneous or an inhomogeneous field, or a temporal
//! subspace of a series, seen by coils.
//!
//! A [`Spec`] knows an encoding before anything is allocated, and gives the steps that make it and what they
//! take. A [`Solving`] is the encoding while a method runs: samples, plans, maps, right-hand side, normal
//! operator. What differs between encodings is the answer of their kind (`kinds`): adding one is a file with
//! its equation and a row of a table there.

mod blocks;
mod certify;
mod coils;
mod joined;
mod kinds;
mod known;
mod maps;
mod samples;
mod solving;
mod spec;
mod steps;
mod store;
mod voxels;

pub(crate) use coils::{Combiner, batches};
pub(crate) use joined::{joined, measured, notes_of_joined, repeated};
pub use kinds::FFT_TOLERANCE;
pub(crate) use kinds::{Grid, range_of, row_of};
pub use known::Known;
pub(crate) use maps::SharedMaps;
pub(crate) use solving::{FrameCache, Made};
pub use solving::{Observer, Solving};
pub(crate) use spec::Context;
pub use spec::{Inputs, Spec};
pub use store::KernelStore;
pub use voxels::{LAMBDA_MATRIX, Voxels};

/// Fewer points of a trajectory at a time save nothing beside the fine grid of their plan.
pub const LEAST_POINTS: usize = 1 << 14;

/// Bytes of a complex number, and of a component of a trajectory.
pub(crate) const COMPLEX: u64 = 8;
/// Bytes of a real number.
pub(crate) const REAL: u64 = 4;
/// Bytes of an index.
pub(crate) const INDEX: u64 = 8;

/// Voxels of a shape.
pub(crate) fn count(shape: &[usize]) -> u64 {
    shape.iter().map(|&n| n as u64).product()
}
