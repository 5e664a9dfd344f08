//! Box: each voxel takes the mean of a cube around it.
//!
//! ```text
//! out[p] = n⁻³ Σ_{|q| ≤ r} image[p + q],    n = 2r + 1
//! ```
//!
//! Within slices it is a square and n⁻². Beyond an edge the nearest voxel counts. The work within slices does
//! not depend on the width.

use rayspin_core::Result;
use rayspin_device::Device;
use rayspin_planes::box_filter::box_mean;
use rayspin_run::{About, params};

use super::gaussian::convolve;
use super::passes::each_slice;
use super::{AXES, Axes, Filter, SIZE, Volume};

params! {
    /// Each voxel takes the mean around it.
    pub struct BoxMean {
        /// Voxels along each side.
        size: usize = 3 => SIZE,
        /// The axes along which it averages.
        axes: Axes = Axes::Xyz => AXES,
    }
}

impl Filter for BoxMean {
    fn about(&self) -> About {
        About { name: "box", help: "Each voxel takes the mean around it" }
    }

    fn apply(&self, device: &Device, volume: &mut Volume) -> Result<()> {
        let (depth, rows, columns) = volume.values.dim();
        let reach = self.size / 2;
        volume.values =
            each_slice(device, &volume.values, [rows, columns], &|slice, out| box_mean(slice, reach, out))?;
        if self.axes == Axes::Xyz && depth > 1 {
            let equal = vec![1.0 / self.size as f32; self.size];
            convolve(device, volume, [&[1.0], &[1.0], &equal])?;
        }
        Ok(())
    }
}
