//! What samples encode: a grid, a trajectory in a homogeneous or an inhomogeneous field, or a temporal
//! subspace of a series, seen by coils.
//!
//! A [`Spec`] knows an encoding before anything is allocated, and gives the steps that make it and what they
//! take. A [`Solving`] is the encoding while a method runs: samples, plans, maps, right-hand side, normal
//! operator. What differs between encodings is the answer of their kind (`kinds`): adding one is a file with
//! its equation and a row of a table there.

mod batch_sizes;
mod blocks;
mod certify;
mod coils;
mod joined;
mod kinds;
mod known;
mod maps;
mod samples;
mod settings;
mod solving;
mod spec;
mod steps;
mod store;
mod uses;
mod voxels;

use crate::scan::Label;
pub use batch_sizes::{BatchSizes, Extent};
pub(crate) use coils::{Combiner, batches};
pub(crate) use joined::{joined, measured, notes_of_joined, repeated};
pub use kinds::FFT_TOLERANCE;
pub(crate) use kinds::{Grid, range_of, row_of};
pub use known::Known;
pub(crate) use maps::{SharedMaps, on_host, whole};
pub use settings::Density;
pub(crate) use settings::Settings;
pub(crate) use solving::{FrameCache, Made};
pub use solving::{Observer, Solve, Solving};
pub(crate) use spec::Context;
pub use spec::{Inputs, Spec};
pub use store::KernelStore;
pub(crate) use uses::takes;
pub use uses::{Combine, MapUse, SampleKind, Span, Uses};
pub use voxels::{LAMBDA_MATRIX, Voxels};

/// Fewer points of a trajectory at a time save nothing beside the fine grid of their plan.
pub const LEAST_POINTS: usize = 1 << 14;

/// What was measured of one transform, and the first image that its plan makes.
pub type Certificate = rayspin_run::Certificate<Label>;

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
