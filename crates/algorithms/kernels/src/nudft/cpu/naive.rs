//! The lecture's starting design: one thread takes the inputs one by one and scatters each over all outputs.

use num_complex::Complex;
use rayspin_core::{Real, Result, Trajectory};

use super::{cis, reduced_turns, tables};
use crate::nudft::grid::Grid;
use crate::nudft::tune::Host;

pub(crate) fn forward<T: Real>(
    _: &Host<'_>,
    trajectory: &Trajectory,
    grid: &Grid,
    image: &[Complex<T>],
    samples: &mut [Complex<T>],
) -> Result<()> {
    samples.fill(Complex::default());
    let (count, batch) = (trajectory.samples(), grid.batch(image.len()));
    let (k, x) = tables(trajectory, grid)?;
    for (voxel, x) in x.iter().enumerate() {
        for (m, k) in k.iter().enumerate() {
            let e = cis::<T>(-reduced_turns(*k, *x));
            for b in 0..batch {
                samples[b * count + m] += image[b * grid.points() + voxel] * e;
            }
        }
    }
    Ok(())
}

pub(crate) fn adjoint<T: Real>(
    _: &Host<'_>,
    trajectory: &Trajectory,
    grid: &Grid,
    samples: &[Complex<T>],
    image: &mut [Complex<T>],
) -> Result<()> {
    image.fill(Complex::default());
    let (count, batch) = (trajectory.samples(), grid.batch(image.len()));
    let (k, x) = tables(trajectory, grid)?;
    for (m, k) in k.iter().enumerate() {
        for (voxel, x) in x.iter().enumerate() {
            let e = cis::<T>(reduced_turns(*k, *x));
            for b in 0..batch {
                image[b * grid.points() + voxel] += samples[b * count + m] * e;
            }
        }
    }
    Ok(())
}
