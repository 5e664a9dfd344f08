//! Median: each voxel takes the median of a cube around it, which removes single bright and dark voxels and
//! keeps edges.
//!
//! ```text
//! out[p] = median { image[p + q] : |q| ≤ r },    n = 2r + 1
//! ```
//!
//! Within slices it is a square. Beyond an edge the image is mirrored, its first and last voxel twice. A
//! window has at most 4096 voxels: 15 along each side of a cube, 63 of a square.

use rayspin_core::{Result, voxels};
use rayspin_device::Device;
use rayspin_device::cpu::zeroed;
use rayspin_kernels::median::boxed;
use rayspin_run::{About, params};

use super::passes::{self, slice_of};
use super::{AXES, Axes, Filter, SIZE, Volume};

params! {
    /// Each voxel takes the median around it.
    pub struct Median {
        /// Voxels along each side.
        size: usize = 3 => SIZE,
        /// The axes along which the window extends.
        axes: Axes = Axes::Xyz => AXES,
    }
}

impl Filter for Median {
    fn about(&self) -> About {
        About { name: "median", help: "Each voxel takes the median around it" }
    }

    fn apply(&self, device: &Device, volume: &mut Volume) -> Result<()> {
        let (depth, rows, columns) = volume.values.dim();
        let (shape, reach) = ([depth, rows, columns], self.size / 2);
        // Mirrored slices of one slice are that slice, whose numbers then count several times each.
        let through = if self.axes == Axes::Xyz && depth > 1 { reach } else { 0 };
        let mut out = zeroed("filtered image", voxels(&shape)?)?;
        boxed(device.cpu_side(), slice_of(&volume.values)?, shape, [through, reach, reach], &mut out)?;
        volume.values = passes::volume(shape, out)?;
        Ok(())
    }
}
