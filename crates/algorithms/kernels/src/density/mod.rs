//! Density compensation: weights w so that gridding, Fᴴ diag(w) d, shows a fully sampled image at its own
//! scale.
//!
//! w_j = V_j / N, where V_j is the volume of k-space around sample j, in (cycles per field of view)^d, and N
//! the number of voxels. So Σ w = V/N with V the volume covered: 1 for the full box, π/4 for the disc and π/6
//! for the ball that radial scans cover. With the unscaled transforms of [`crate::nufft`], Fᴴ diag(w) F is
//! the identity for a fully sampled box. The peak of the point-spread function is Σ w. An object without
//! detail beyond the covered region keeps its values.

mod cuda;
mod pipe_menon;
mod radial;
pub mod reference;
#[cfg(test)]
mod tests;

pub(crate) use cuda::builds;
pub(crate) use pipe_menon::window;
pub use pipe_menon::{pipe_menon, pipe_menon_by_blocks, pipe_menon_by_blocks_needs, pipe_menon_needs};
pub use radial::radial;

use rayspin_core::{Error, Result, Trajectory, format_shape};

/// Fails unless the matrix has the trajectory's axes, none empty.
fn check_matrix(trajectory: &Trajectory, matrix: &[usize]) -> Result<()> {
    if matrix.len() == trajectory.dims() && !matrix.contains(&0) {
        return Ok(());
    }
    Err(Error::Shape {
        what: "density compensation matrix".into(),
        expected: format!("{} axes, none empty", trajectory.dims()),
        found: format_shape(matrix),
    })
}
