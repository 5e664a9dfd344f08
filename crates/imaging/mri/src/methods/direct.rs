//! Inverse FFT of a grid, coil by coil, then combined: what methods of a grid share.

use ndarray::ArrayD;
use rayspin_core::{Error, Result};
use rayspin_kernels::fft::{Fft, Norm, Problem};
use rayspin_kernels::vector;
use rayspin_run::{Bytes, Cost, Effort, Memory};

use crate::encoding::{Solving, Spec, batches};
use crate::partial::{PartialFourier, PartialImages, partial_axes};

/// Transforms k-space that is known where `sampled` says so, and leaves the image with `state`.
pub(super) fn transform(
    spec: &Spec<'_>,
    sampled: &ArrayD<bool>,
    how: Option<PartialFourier>,
    state: &mut Solving<'_>,
) -> Result<()> {
    let partial = partial_images(spec, sampled, how, state)?;
    let grid = spec.domain();
    // From the unitary inverse FFT to a density.
    let voxels = grid.iter().product::<usize>() as f64;
    let density = spec.voxels().count() / voxels.sqrt();
    let fft = Fft::new(spec.device(), grid, Norm::Unitary)?;
    let maps = state.maps();
    let mut combiner = spec.combiner(maps.as_ref());
    for range in batches(spec.coils(), spec.batch_sizes().coils) {
        let mut images = state.take_samples(&range)?;
        match &partial {
            Some(partial) => images = partial.images(images)?,
            None => fft.inverse(&mut images)?,
        }
        vector::scale(density.into(), &mut images)?;
        combiner.add(range, images)?;
    }
    state.drop_samples();
    state.finish(combiner.finish()?, None);
    Ok(())
}

/// What [`transform`] takes.
pub(super) fn needs(spec: &Spec<'_>, sampled: &ArrayD<bool>, how: Option<PartialFourier>) -> Result<Cost> {
    let partial = match how {
        Some(PartialFourier::None) => 0,
        _ if partial_axes(sampled).is_empty() => 0,
        _ => PartialImages::bytes_needed(spec.domain()),
    };
    // The grid itself is transformed when all coils are taken at once.
    let arrays = spec.part_of_samples() + partial.max(spec.combining());
    let memory = Memory::temporary(Bytes::with_host(spec.device(), arrays, spec.to_host().max(partial)));
    let transform = Problem { shape: spec.domain().to_vec(), batch: 1 }.work();
    Ok(Cost::of(memory).and(Effort::transforms(spec.coils() as u64, transform)))
}

/// How the unmeasured side of k-space is filled, where there is one.
fn partial_images(
    spec: &Spec<'_>,
    sampled: &ArrayD<bool>,
    how: Option<PartialFourier>,
    state: &mut Solving<'_>,
) -> Result<Option<PartialImages>> {
    let axes = partial_axes(sampled);
    let Some(first) = axes.first() else {
        return match how {
            None => Ok(None),
            Some(_) => Err(Error::value(
                "partial Fourier",
                "k-space measured farther on one side of its centre",
                "k-space that is covered evenly, or not in a full box",
            )),
        };
    };
    let how = how.unwrap_or(PartialFourier::Pocs);
    let n = sampled.shape()[first.axis];
    let lines = first.measured[1] + 1 - first.measured[0];
    let name = ["x", "y", "z"][sampled.ndim() - 1 - first.axis];
    if how == PartialFourier::None {
        state.note(format!("{lines} of {n} lines along {name} are measured: the others are left zero (`--partial-fourier pocs` or `homodyne` estimates them)"));
        return Ok(None);
    }
    state.note(format!(
        "{lines} of {n} lines along {name} are measured: partial Fourier by {}, phase from {} lines around the \
         centre",
        if how == PartialFourier::Pocs { "POCS" } else { "homodyne detection" },
        2 * first.half + 1
    ));
    PartialImages::new(spec.device(), sampled, &axes, how).map(Some)
}
