//! Sobel: the magnitude of the gradient, per mm.
//!
//! ```text
//! out = √(g_x² + g_y² + g_z²),    g_x = (d/h_x) ∗_x s ∗_y s ∗_z image,    d = (p[+1] − p[−1])/2,    s = (p[−1] + 2p[0] + p[+1])/4
//! ```
//!
//! with h the size of a voxel in mm; a ramp of slope g gives g. Within slices g_z and the sums along z are
//! left out. Sobel's sums without these factors, as SciPy has them, are 8 h times as large within slices and
//! 32 h times in a volume. Beyond an edge the nearest voxel counts.
//!
//! I. Sobel, G. Feldman, *A 3×3 isotropic gradient operator for image processing*, Stanford Artificial
//! Intelligence Project, 1968.

use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Device;
use rayspin_device::cpu::zeroed;
use rayspin_run::{About, params};

use super::gaussian::convolve;
use super::passes::{slice_of, slice_of_mut};
use super::{AXES, Axes, Filter, Volume};

params! {
    /// Takes the magnitude of the gradient.
    pub struct Sobel {
        /// The axes of the gradient.
        axes: Axes = Axes::Xyz => AXES,
    }
}

/// Weights of the mean across the direction of a difference.
const MEAN: [f32; 3] = [0.25, 0.5, 0.25];

impl Filter for Sobel {
    fn about(&self) -> About {
        About { name: "sobel", help: "The magnitude of the gradient, per mm: edges" }
    }

    fn keeps_unit(&self) -> bool {
        false
    }

    fn apply(&self, device: &Device, volume: &mut Volume) -> Result<()> {
        let deep = self.axes == Axes::Xyz && volume.values.dim().0 > 1;
        let axes = if deep { 3 } else { 2 };
        let mut squares: Vec<f64> = zeroed("squares of gradients", volume.values.len())?;
        for axis in 0..axes {
            // The kernel convolves: its first tap weighs the next voxel.
            let slope = (0.5 / volume.geometry.spacing_mm[axis]) as f32;
            let difference = [slope, 0.0, -slope];
            let mut taps: [&[f32]; 3] = [&MEAN, &MEAN, if deep { &MEAN } else { &[1.0] }];
            taps[axis] = &difference;
            let mut gradient = volume.clone();
            convolve(device, &mut gradient, taps)?;
            let gradient = slice_of(&gradient.values)?;
            let add = |(sum, g): (&mut f64, &f32)| *sum += f64::from(*g).powi(2);
            device.cpu_side().run(|| squares.par_iter_mut().zip(gradient).for_each(add));
        }
        let values = slice_of_mut(&mut volume.values)?;
        let root = |(value, sum): (&mut f32, &f64)| *value = sum.sqrt() as f32;
        device.cpu_side().run(|| values.par_iter_mut().zip(&squares).for_each(root));
        Ok(())
    }
}
