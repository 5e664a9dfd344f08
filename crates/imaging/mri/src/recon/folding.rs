//! Whether an object larger than the field of view folds over itself.
//!
//! Where it does, a voxel shows two places of the object, which the coils see differently: no single set of
//! maps describes it. The reproducing operator of the k-space centre then has a second eigenvalue near 1
//! there. Noise and sharp edges raise eigenvalues as well, of all sets at once or of few voxels.

use ndarray::{ArrayD, Slice};
use rayspin_core::{C32, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::espirit;

use super::ReconOptions;
use crate::maps::{Centre, EspiritOptions, Reproducing, Sensitivities, reproducing, zyx};
use crate::methods::MapUse;
use crate::scan::{Frame, MIN_WIDTH, Samples, centre_of, sampled_centre};

/// The object folds if at least this part of it does. A phantom with 4 or 8 coils (SNR 10 to none) shows 0.4
/// to 1.1 % in a field of view that holds it. In a field of view that is an eighth smaller it shows 7 %, a
/// quarter smaller 18 %. A real head shows 0 %.
const FOLDED: f64 = 0.03;
/// Noise makes the second set if a third set has more than this part of its voxels.
const ALIKE: f64 = 0.25;
/// Squared weight of a map whose eigenvalue is near 1, at least.
const CERTAIN: f32 = 0.99;
/// Voxels along each axis that are looked at: eigenvalues change slowly, by as many lags as neighbourhoods
/// have.
const GRID: usize = 48;
/// Rows of the decomposed matrix at most, so that the check takes less time than the maps.
const ROWS: usize = 512;
/// Singular values above this part of the largest span the signals. Lower ones of noise would span all.
const SIGNALS: f64 = 0.03;

/// Two sets of maps for a frame that a run with `options` would give one, and why; none where the frame does
/// not need them. Only maps that are estimated by ESPIRiT on a grid come in sets, for a method that solves
/// for several images.
///
/// Errors: memory; errors of the device.
pub fn second_set(
    device: &Device,
    frame: &Frame,
    options: &ReconOptions,
) -> Result<Option<(Sensitivities, String)>> {
    let Some((kspace, centre, one)) = looked_at(frame, options)? else { return Ok(None) };
    let region = kspace.slice_each_axis(|axis| match axis.axis.index() {
        0 => Slice::from(..),
        _ => Slice::from(centre_of(axis.len, centre.width)),
    });
    // A slice without signal tells nothing.
    if region.iter().all(|value| *value == C32::ZERO) {
        return Ok(None);
    }
    let part = folded(device, Array::from_host(device, region)?, &kspace.shape()[1..])?;
    Ok((part >= FOLDED).then(|| {
        let reason = format!(
            "about {:.0} % of the object folds over the rest, as it does where it is larger than the field of view",
            100.0 * part
        );
        (Sensitivities::Espirit(EspiritOptions { sets: 2, ..one }), reason)
    }))
}

/// Bytes of [`second_set`]'s workspace: the decomposed matrix, and the coil correlations that give the maps.
///
/// Errors: as [`second_set`].
pub fn second_set_bytes(frame: &Frame, options: &ReconOptions) -> Result<u64> {
    let Some((kspace, ..)) = looked_at(frame, options)? else { return Ok(0) };
    let (coils, shape) = (kspace.shape()[0], &kspace.shape()[1..]);
    let axes = shape.iter().filter(|&&n| n > 1).count() as u32;
    let voxels: usize = zyx(shape).map(|n| n.min(GRID)).iter().product();
    let rows = ROWS.min(coils * 6usize.pow(axes));
    Ok((size_of::<C32>() * (voxels * coils * coils + rows * rows)) as u64)
}

/// The k-space whose centre tells the sets of maps, that centre, and how maps are estimated; none where no
/// second set suits the run.
fn looked_at<'a>(
    frame: &'a Frame,
    options: &ReconOptions,
) -> Result<Option<(&'a ArrayD<C32>, Centre, EspiritOptions)>> {
    let takes = options.method.uses().maps == MapUse::Sets && options.maps.is_none();
    let Samples::Cartesian { kspace, sampled } = &frame.samples else { return Ok(None) };
    let (kspace, sampled) = match &frame.calibration {
        Some(lines) => (&lines.kspace, &lines.sampled),
        None => (kspace, sampled),
    };
    // A third eigenvalue tells noise, and a search for λ takes one set.
    let suits = options.field_map.is_none() && !options.search_lambda && frame.coils() >= 3;
    if !(takes && suits && sampled_centre(sampled) >= MIN_WIDTH) {
        return Ok(None);
    }
    let centre = Centre::of_grid(sampled, options.calibration, options.sensitivities)?;
    let Sensitivities::Espirit(one) = centre.how else { return Ok(None) };
    Ok((one.sets == 1).then_some((kspace, centre, one)))
}

/// The part of the object's voxels that show two places of it, by the centre of k-space `[coil, z, y, x]` of
/// an image of `shape`; 0 where noise hides it.
fn folded(device: &Device, centre: Array<C32>, shape: &[usize]) -> Result<f64> {
    let coils = centre.shape()[0];
    let axes = shape.iter().filter(|&&n| n > 1).count() as u32;
    let kernel = (2..=6).rev().find(|k: &usize| coils * k.pow(axes) <= ROWS).unwrap_or(2);
    let options = EspiritOptions { kernel, threshold: SIGNALS, ..EspiritOptions::default() };
    let Reproducing { correlation, phase } = reproducing(device, centre, &options)?;
    let grid = zyx(shape).map(|n| n.min(GRID));
    let maps = espirit::maps(&correlation, &phase, grid, 3, options.crop)?.to_vec()?;
    let voxels: usize = grid.iter().product();
    let certain = |set: usize| {
        let maps = &maps[set * coils * voxels..(set + 1) * coils * voxels];
        let weight =
            |voxel: usize| (0..coils).map(|coil| maps[coil * voxels + voxel].norm_sqr()).sum::<f32>();
        (0..voxels).filter(|&voxel| weight(voxel) >= CERTAIN).count() as f64
    };
    let [object, second, third] = [0, 1, 2].map(certain);
    Ok(if object == 0.0 || third > ALIKE * second { 0.0 } else { second / object })
}
