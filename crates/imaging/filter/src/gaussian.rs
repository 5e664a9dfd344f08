//! Gaussian: smooths by a normal distribution.
//!
//! ```text
//! out = w_z ∗ w_y ∗ w_x ∗ image,    w_i = e^{−i²/2σ²} / Σ_j e^{−j²/2σ²},    |i| ≤ ⌈4σ⌉
//! ```
//!
//! σ is in mm, so that it means the same along axes whose voxels differ, or in voxels. Beyond an edge the
//! nearest voxel counts.

use rayspin_core::Result;
use rayspin_device::Device;
use rayspin_planes::convolution::{gaussian_taps, separable};
use rayspin_run::{About, Param, Value, choices, params};

use super::passes::{along_z, each_slice};
use super::{AXES, Axes, Filter, GROUP, Volume};

choices! {
    /// What the width of a Gaussian counts.
    pub enum Unit {
        /// Millimetres.
        Mm = "mm", "millimetres";
        /// Voxels, along each axis its own.
        Voxel = "voxel", "voxels";
    }
}

params! {
    /// Smooths by a Gaussian.
    pub struct Gaussian {
        /// Its standard deviation.
        sigma: f64 = 1.0 => Param::new(GROUP, "standard deviation")
            .title("sigma of the Gaussian").expects("a number above 0", |v| matches!(v, Value::Number(s) if s.is_finite() && *s > 0.0)),
        /// The axes along which it smooths.
        axes: Axes = Axes::Xyz => AXES,
        /// What σ counts.
        unit: Unit = Unit::Mm => Param::new(GROUP, "mm or voxel, of the standard deviation"),
    }
}

impl Filter for Gaussian {
    fn about(&self) -> About {
        About { name: "gaussian", help: "Smooth by a Gaussian" }
    }

    fn apply(&self, device: &Device, volume: &mut Volume) -> Result<()> {
        let spacing = volume.geometry.spacing_mm;
        let mut sigmas = match self.unit {
            Unit::Mm => spacing.map(|size| self.sigma / size),
            Unit::Voxel => [self.sigma; 3],
        };
        if self.axes == Axes::Xy {
            sigmas[2] = 0.0;
        }
        smooth(device, volume, sigmas)
    }
}

/// Smooths by Gaussians whose σ along x, y and z are in voxels. An axis whose σ is 0, or that has one voxel,
/// stays as it is.
pub(crate) fn smooth(device: &Device, volume: &mut Volume, sigmas: [f64; 3]) -> Result<()> {
    let (depth, rows, columns) = volume.values.dim();
    let taps = |sigma: f64, voxels: usize| match sigma > 0.0 && voxels > 1 {
        true => gaussian_taps(sigma),
        false => Ok(vec![1.0]),
    };
    let [across, down, through] =
        [taps(sigmas[0], columns)?, taps(sigmas[1], rows)?, taps(sigmas[2], depth)?];
    convolve(device, volume, [&across, &down, &through])
}

/// Convolves a volume with taps along x, y and z.
pub(crate) fn convolve(
    device: &Device,
    volume: &mut Volume,
    [across, down, through]: [&[f32]; 3],
) -> Result<()> {
    let (depth, rows, columns) = volume.values.dim();
    if across.len().max(down.len()) > 1 {
        volume.values = each_slice(device, &volume.values, [rows, columns], &|slice, out| {
            separable(slice, across, down, out)
        })?;
    }
    if through.len() > 1 {
        let values = std::mem::take(&mut volume.values);
        volume.values = along_z(device, values, depth, &|plane, out| separable(plane, &[1.0], through, out))?;
    }
    Ok(())
}
