//! Coil sensitivities from the scan's own k-space centre.
//!
//! There are two methods. Walsh's takes low-resolution coil images from the tapered centre of k-space; their
//! local principal components are the sensitivities ([`rayspin_kernels::walsh`]). ESPIRiT's finds the k-space
//! that a coil array can produce at all, from neighbourhoods in the centre. The projection onto it leaves the
//! sensitivities unchanged ([`rayspin_kernels::espirit`]).

mod cut;
mod espirit;
mod samples;

pub(crate) use cut::zyx;
pub use cut::{Cut, CutNeeds, cut_needs};
pub use espirit::{EspiritOptions, LARGEST_MATRIX};
pub(crate) use espirit::{Reproducing, reproducing};
pub(crate) use samples::region_needs;
pub use samples::{NonCartesian, OfCoil, from_samples};

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::variant::Work;
use rayspin_kernels::{vector, walsh, window};
use rayspin_linop::{CoilMaps, MapsBuilder};
use serde::Serialize;

pub use crate::scan::MIN_WIDTH;
pub(crate) use crate::scan::centre_of;
use crate::scan::{Frame, Samples, sampled_centre};

/// Width of the calibration centre in k-space lines (cycles per field of view) unless asked otherwise. 24
/// lines are what scanners acquire for it; more only adds image detail, which is not the coils'.
pub const DEFAULT_WIDTH: usize = 24;
/// Axes of several sets of maps, `[set, coil, z, y, x]`.
pub(crate) const AXES_OF_SETS: usize = 5;

/// How sensitivities are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sensitivities {
    /// Local principal components of low-resolution coil images.
    Walsh,
    /// Eigenvectors of the reproducing operator of the k-space centre.
    Espirit(EspiritOptions),
}

/// Narrower centres hold too few neighbourhoods for ESPIRiT.
pub const MIN_ESPIRIT_WIDTH: usize = 12;

impl Sensitivities {
    /// What suits a grid whose centre is sampled over `width` lines: ESPIRiT, unless that is less than
    /// [`MIN_ESPIRIT_WIDTH`]. On a simulated scan of known maps (128², 8 coils, acceleration 3, SNR 40) its
    /// error is 27 times smaller than Walsh's. With a trajectory the centre must be brought to a grid first,
    /// and Walsh's images are as good.
    pub fn for_grid(width: usize) -> Self {
        if width < MIN_ESPIRIT_WIDTH { Self::Walsh } else { Self::Espirit(EspiritOptions::default()) }
    }

    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Walsh => "Walsh",
            Self::Espirit(_) => "ESPIRiT",
        }
    }

    /// Sets of maps.
    pub fn sets(&self) -> usize {
        match self {
            Self::Walsh => 1,
            Self::Espirit(options) => options.sets,
        }
    }
}

/// What maps were estimated from, and how.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_mri::maps::{Centre, Sensitivities};
///
/// let every_third = ArrayD::from_shape_fn(IxDyn(&[96, 96]), |i| i[0] % 3 == 0 || i[0].abs_diff(48) < 10);
/// let centre = Centre::of_grid(&every_third, None, None)?;
/// assert!((18..24).contains(&centre.width));
/// assert!(matches!(centre.how, Sensitivities::Espirit(_)));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Centre {
    /// Width of the k-space centre in lines or cycles per field of view.
    pub width: usize,
    /// The method.
    pub how: Sensitivities,
}

impl Centre {
    /// The widest fully sampled centred box of a grid up to the wished width, and `how`, chosen by that width
    /// unless given.
    ///
    /// Errors: the fully sampled centre is narrower than [`MIN_WIDTH`].
    pub fn of_grid(sampled: &ArrayD<bool>, width: Option<usize>, how: Option<Sensitivities>) -> Result<Self> {
        let width = sampled_centre(sampled).min(width.unwrap_or(DEFAULT_WIDTH));
        if width < MIN_WIDTH {
            return Err(Error::value(
                "calibration centre",
                format!("at least {MIN_WIDTH} fully sampled lines at the centre of k-space"),
                width,
            ));
        }
        Ok(Self { width, how: how.unwrap_or_else(|| Sensitivities::for_grid(width)) })
    }
}

impl Centre {
    /// What maps of a frame are estimated from: [`Centre::of_grid`] of its lines, or of its calibration lines
    /// where it has any; along a trajectory the width given or [`DEFAULT_WIDTH`], and Walsh's method unless
    /// another is given.
    ///
    /// Errors: as [`Centre::of_grid`].
    pub fn of_frame(frame: &Frame, width: Option<usize>, how: Option<Sensitivities>) -> Result<Self> {
        match (&frame.samples, &frame.calibration) {
            (Samples::Cartesian { .. }, Some(lines)) => Self::of_grid(&lines.sampled, width, how),
            (Samples::Cartesian { sampled, .. }, None) => Self::of_grid(sampled, width, how),
            (Samples::NonCartesian { .. }, _) => {
                Ok(Self { width: width.unwrap_or(DEFAULT_WIDTH), how: how.unwrap_or(Sensitivities::Walsh) })
            }
        }
    }
}

/// Maps `[coil, z, y, x]` (or without z) on a grid of `shape` from its `region`, the centred box of the
/// centre's width of k-space `[coil, z, y, x]`. Several sets of maps are `[set, coil, z, y, x]`. With `cut` a
/// GPU holds no more than some coils or some planes at a time, and the maps lie on the host.
///
/// Errors: a box of zeros, several sets of maps that are cut, memory.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_mri::maps::{Centre, Sensitivities, from_grid};
///
/// let device = Device::cpu()?;
/// // The centre of k-space of a flat object, which two coils see with 0.6 and 0.8i.
/// let mut region = vec![C32::ZERO; 2 * 8 * 8];
/// (region[4 * 8 + 4], region[64 + 4 * 8 + 4]) = (C32::from(0.6), C32::new(0.0, 0.8));
/// let region = Array::from_vec(&device, &[2, 8, 8], region)?; // [coil, y, x]
/// let maps = from_grid(region, &[16, 16], &Centre { width: 8, how: Sensitivities::Walsh }, None)?;
/// assert_eq!(maps.shape(), [2, 16, 16]);
/// let maps = maps.to_host()?;
/// assert!((maps[[0, 3, 5]].norm() - 0.6).abs() < 1e-3 && (maps[[1, 3, 5]].norm() - 0.8).abs() < 1e-3);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn from_grid(
    region: Array<C32>,
    shape: &[usize],
    centre: &Centre,
    cut: Option<Cut>,
) -> Result<CoilMaps<f32>> {
    let device = region.device().clone();
    if let Sensitivities::Espirit(options) = &centre.how {
        return espirit_maps(region, shape, options, cut);
    }
    let window = taper(&device, shape, centre.width)?;
    let mut tapered = Array::zeros(&device, region.shape())?;
    vector::weight(&window, &region, &mut tapered)?;
    drop((region, window));
    walsh_maps(tapered, shape, cut)
}

/// Walsh's maps on a grid of `shape` from the tapered centre of k-space `[coil, z, y, x]`.
fn walsh_maps(tapered: Array<C32>, shape: &[usize], cut: Option<Cut>) -> Result<CoilMaps<f32>> {
    let device = tapered.device().clone();
    let coils = tapered.shape()[0];
    let fft = Fft::new(&device, shape, Norm::Unitary)?;
    let corner = shape.iter().zip(&tapered.shape()[1..]).map(|(&n, &extent)| centre_of(n, extent).start);
    let corner: Vec<usize> = std::iter::once(0).chain(corner).collect();
    let map_shape = [&[coils], shape].concat();
    let Some(cut) = cut else {
        let mut images = Array::zeros(&device, &map_shape)?;
        vector::copy_box(&tapered, &vec![0; corner.len()], &mut images, &corner, tapered.shape())?;
        drop(tapered);
        fft.inverse(&mut images)?;
        drop(fft);
        return Ok(walsh::maps(&images, walsh::DEFAULT_RADIUS)?.into());
    };
    let mut maps = MapsBuilder::new(&device, &map_shape, Some(cut.coils))?;
    let mut image = Array::zeros(&device, &[&[1], shape].concat())?;
    let (mut from, mut extent) = (vec![0; corner.len()], tapered.shape().to_vec());
    extent[0] = 1;
    for coil in 0..coils {
        from[0] = coil;
        image.fill(C32::ZERO)?;
        vector::copy_box(&tapered, &from, &mut image, &corner, &extent)?;
        fft.inverse(&mut image)?;
        maps.put(coil..coil + 1, 0..image.len(), &image, 0)?;
    }
    drop((tapered, image, fft));
    cut::walsh(maps, cut.planes)
}

fn espirit_maps(
    region: Array<C32>,
    shape: &[usize],
    options: &EspiritOptions,
    cut: Option<Cut>,
) -> Result<CoilMaps<f32>> {
    if cut.is_some() {
        cut::expect_one_set(options)?;
    }
    let device = region.device().clone();
    let operator = espirit::reproducing(&device, region, options)?;
    match cut {
        None => Ok(espirit::maps(&operator, shape, options)?.into()),
        Some(cut) => cut::espirit(&operator, shape, options, cut),
    }
}

/// What ESPIRiT takes besides the maps.
pub(crate) struct EspiritNeeds {
    /// Bytes of the host.
    pub(crate) host: u64,
    /// Bytes of a GPU.
    pub(crate) gpu: u64,
    /// Sets of maps.
    pub(crate) sets: u64,
    /// Work of all voxels. It does not count the decomposition, which the host does for any device.
    pub(crate) work: Work,
}

/// What [`from_grid`] takes for ESPIRiT; none where Walsh's method is used.
pub(crate) fn espirit_on_grid(
    device: &Device,
    sampled: &ArrayD<bool>,
    width: Option<usize>,
    how: Option<Sensitivities>,
    coils: usize,
) -> Option<EspiritNeeds> {
    let width = sampled_centre(sampled).min(width.unwrap_or(DEFAULT_WIDTH));
    let how = how.unwrap_or_else(|| Sensitivities::for_grid(width));
    espirit_needs(device, how, width, coils, sampled.shape())
}

/// What ESPIRiT takes; none for Walsh's method.
pub(crate) fn espirit_needs(
    device: &Device,
    how: Sensitivities,
    width: usize,
    coils: usize,
    shape: &[usize],
) -> Option<EspiritNeeds> {
    match how {
        Sensitivities::Walsh => None,
        Sensitivities::Espirit(options) => {
            let (host, gpu, work) = espirit::needs(device, &options, width, coils, shape, None);
            Some(EspiritNeeds { host, gpu, sets: options.sets.min(coils) as u64, work })
        }
    }
}

/// The centred box of `width` (less along short axes) of `[coil, z, y, x]`.
pub(crate) fn centre(kspace: &Array<C32>, width: usize) -> Result<Array<C32>> {
    let shape = kspace.shape();
    let (mut start, mut extent) = (vec![0; shape.len()], shape.to_vec());
    for axis in 1..shape.len() {
        let part = centre_of(shape[axis], width);
        (start[axis], extent[axis]) = (part.start, part.len());
    }
    let mut region = Array::zeros(kspace.device(), &extent)?;
    vector::copy_box(kspace, &start, &mut region, &vec![0; shape.len()], &extent)?;
    Ok(region)
}

/// The centred box of a Hann window of `width` along every axis that is longer, on a grid of `shape`; beyond
/// it the window is 0.
fn taper(device: &Device, shape: &[usize], width: usize) -> Result<Array<f32>> {
    let profile = |&n: &usize| {
        let from_centre = |i: usize| (i as f64 - (n / 2) as f64) / (width as f64 / 2.0);
        centre_of(n, width).map(|i| if n <= width { 1.0 } else { hann(from_centre(i)) }).collect()
    };
    let profiles: Vec<Vec<f64>> = shape.iter().map(profile).collect();
    window::separable(device, &profiles, None)
}

/// cos²(πt/2) for |t| < 1, else 0.
fn hann(t: f64) -> f64 {
    if t.abs() < 1.0 { (std::f64::consts::FRAC_PI_2 * t).cos().powi(2) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;
    use ndarray::IxDyn;

    #[test]
    fn the_window_of_a_grid_is_a_product_over_its_axes() {
        let device = Device::cpu_with_threads(2).unwrap();
        for (shape, width) in
            [(vec![7, 12], 6), (vec![5, 8, 9], 6), (vec![1, 1], 4), (vec![40], 24), (vec![11], 5)]
        {
            let found = taper(&device, &shape, width).unwrap().into_host().unwrap();
            for (index, _) in ArrayD::<u8>::zeros(IxDyn(&shape)).indexed_iter() {
                let expected: f64 = (0..shape.len())
                    .filter(|&axis| shape[axis] > width)
                    .map(|axis| index[axis] as f64 - (shape[axis] / 2) as f64)
                    .map(|k| {
                        if k.abs() < width as f64 / 2.0 {
                            (1.0 + (k / width as f64 * 2.0 * PI).cos()) / 2.0
                        } else {
                            0.0
                        }
                    })
                    .product();
                let inside = |axis: usize| index[axis].checked_sub(centre_of(shape[axis], width).start);
                let inside: Option<Vec<usize>> = (0..shape.len()).map(inside).collect();
                let value = inside.and_then(|at| found.get(&at[..]).copied()).unwrap_or(0.0);
                assert!(
                    (f64::from(value) - expected).abs() < 1e-6,
                    "{shape:?} {index:?}: {value}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn a_scan_without_a_centre_is_refused() {
        let sampled = ArrayD::from_shape_fn(IxDyn(&[8, 8]), |i| i[0] % 2 == 0);
        assert!(Centre::of_grid(&sampled, None, None).is_err());
    }
}
