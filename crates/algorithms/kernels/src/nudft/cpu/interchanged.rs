//! Loops interchanged: each output is gathered on its own, its sum in registers, so all cores can work at
//! once.

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Real, Result, Trajectory};
use rayspin_device::cpu::{Stop, zeroed};

use super::{cis, reduced_turns, tables};
use crate::nudft::grid::Grid;
use crate::nudft::tune::Host;

pub(crate) fn forward<T: Real>(
    cpu: &Host<'_>,
    trajectory: &Trajectory,
    grid: &Grid,
    image: &[Complex<T>],
    samples: &mut [Complex<T>],
) -> Result<()> {
    let (points, batch) = (grid.points(), grid.batch(image.len()));
    let (k, x) = tables(trajectory, grid)?;
    gather(cpu, batch, samples, |m, sums| {
        for (voxel, x) in x.iter().enumerate() {
            let e = cis::<T>(-reduced_turns(k[m], *x));
            for (b, sum) in sums.iter_mut().enumerate() {
                *sum += image[b * points + voxel] * e;
            }
        }
    })
}

pub(crate) fn adjoint<T: Real>(
    cpu: &Host<'_>,
    trajectory: &Trajectory,
    grid: &Grid,
    samples: &[Complex<T>],
    image: &mut [Complex<T>],
) -> Result<()> {
    let (count, batch) = (trajectory.samples(), grid.batch(image.len()));
    let (k, x) = tables(trajectory, grid)?;
    gather(cpu, batch, image, |voxel, sums| {
        for (m, k) in k.iter().enumerate() {
            let e = cis::<T>(reduced_turns(*k, x[voxel]));
            for (b, sum) in sums.iter_mut().enumerate() {
                *sum += samples[b * count + m] * e;
            }
        }
    })
}

/// `out[b, i] = evaluate(i)[b]`, the outputs i in parallel; `evaluate` adds to sums that start at 0. Errors:
/// memory; interruption.
fn gather<T: Real>(
    cpu: &Host<'_>,
    batch: usize,
    out: &mut [Complex<T>],
    evaluate: impl Fn(usize, &mut [Complex<T>]) + Sync,
) -> Result<()> {
    let outputs = out.len() / batch.max(1);
    let mut sums = zeroed::<Complex<T>>("sums of a transform", out.len())?;
    let stop = Stop::of_caller();
    cpu.run(|| {
        let each = sums.par_chunks_mut(batch.max(1)).enumerate();
        each.filter(|_| !stop.is_set()).for_each(|(i, sums)| evaluate(i, sums));
    });
    stop.check()?;
    for (i, sums) in sums.chunks_exact(batch.max(1)).enumerate() {
        for (b, sum) in sums.iter().enumerate() {
            out[b * outputs + i] = *sum;
        }
    }
    Ok(())
}
