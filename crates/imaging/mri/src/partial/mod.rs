//! Images from k-space that was measured on one side of its centre farther than on the other (partial
//! Fourier).
//!
//! An image without phase has a symmetric k-space, s(−k) = conj s(k), so that half of it says all. A smooth
//! phase is known from the symmetric centre; with it taken off, the same holds.

use std::f64::consts::FRAC_PI_2;

use ndarray::{ArrayD, Dimension};
use rayspin_core::{C32, Error, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::{pocs, vector, window};

crate::choices! {
    /// What becomes of the side that was not measured.
    pub enum PartialFourier {
        /// Projection in turn onto images of the known phase and onto the measured samples (Haacke, Lindskog,
        /// Lin, J Magn Reson 92:126, 1991; Cuppen and van Est, Magn Reson Imaging 5:526, 1987).
        Pocs = "pocs", "Alternating projections onto the low-resolution phase and onto the measured samples";
        /// The measured side twice, the centre by a ramp, the real part after the phase is taken off (Noll,
        /// Nishimura, Macovski, IEEE Trans Med Imaging 10:154, 1991). Along one axis.
        Homodyne = "homodyne", "Measured side weighted by 2; real part after removal of the low-resolution phase";
        /// It stays zero.
        None = "none", "Zero filling";
    }
}

/// Iterations of [`PartialFourier::Pocs`].
const ITERATIONS: usize = 12;
/// Lines on the short side that a phase can be told from, at least.
const MIN_HALF: usize = 4;
/// A side longer than the other by this part of the grid is no rounding of the centre.
const MIN_ASYMMETRY: f64 = 1.0 / 32.0;

/// One axis that is measured farther on one side of the centre than on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialAxis {
    /// Which.
    pub axis: usize,
    /// First and last measured index.
    pub measured: [usize; 2],
    /// Lines measured on the shorter side of the centre.
    pub half: usize,
}

/// First and last measured index along each axis, where all within them is measured; none where the samples
/// are no such box.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_mri::partial::measured_box;
///
/// let most_lines = ArrayD::from_shape_fn(IxDyn(&[32, 16]), |i| i[0] < 24);
/// assert_eq!(measured_box(&most_lines), Some(vec![[0, 23], [0, 15]]));
/// let every_second = ArrayD::from_shape_fn(IxDyn(&[32, 16]), |i| i[0] % 2 == 0);
/// assert_eq!(measured_box(&every_second), None);
/// ```
pub fn measured_box(sampled: &ArrayD<bool>) -> Option<Vec<[usize; 2]>> {
    let (&n, outer) = sampled.shape().split_last()?;
    let mut ends: Vec<[usize; 2]> = sampled.shape().iter().map(|_| [usize::MAX, 0]).collect();
    let mut count = 0;
    // By rows: dynamic indices of all positions take some hundred times as long.
    for (row, index) in sampled.rows().into_iter().zip(ndarray::indices(outer)) {
        let Some(first) = row.iter().position(|&known| known) else { continue };
        let last = row.iter().rposition(|&known| known).unwrap_or(n);
        count += row.iter().filter(|&&known| known).count();
        let position = index.as_array_view();
        for (ends, [low, high]) in
            ends.iter_mut().zip(position.iter().map(|&i| [i, i]).chain([[first, last]]))
        {
            *ends = [ends[0].min(low), ends[1].max(high)];
        }
    }
    let within = || ends.iter().map(|[low, high]| high - low + 1).product::<usize>();
    (count > 0 && count == within()).then_some(ends)
}

/// The axes along which a full box of samples reaches farther on one side of the centre n/2 than on the
/// other; none where the samples are no full box, or too few on the short side.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_mri::partial::partial_axes;
///
/// let most_lines = ArrayD::from_shape_fn(IxDyn(&[32, 16]), |i| i[0] < 24);
/// let axes = partial_axes(&most_lines);
/// assert_eq!((axes.len(), axes[0].axis, axes[0].measured), (1, 0, [0, 23]));
/// assert_eq!(partial_axes(&ArrayD::from_elem(IxDyn(&[32, 16]), true)), []);
/// ```
pub fn partial_axes(sampled: &ArrayD<bool>) -> Vec<PartialAxis> {
    let Some(ends) = measured_box(sampled) else { return Vec::new() };
    (0..sampled.ndim())
        .filter_map(|axis| {
            let n = sampled.shape()[axis];
            let centre = n / 2;
            let (left, right) = (centre.checked_sub(ends[axis][0])?, ends[axis][1].checked_sub(centre)?);
            let half = left.min(right);
            let partial = left.abs_diff(right) as f64 > (n as f64 * MIN_ASYMMETRY).max(1.0);
            (partial && half >= MIN_HALF).then_some(PartialAxis { axis, measured: ends[axis], half })
        })
        .collect()
}

/// Makes images of k-space that is measured farther on one side of the centre than on the other.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_mri::partial::{PartialFourier, PartialImages, partial_axes};
///
/// let device = Device::cpu()?;
/// // A bright point at the centre has k-space 1 everywhere; a quarter of its lines is missing.
/// let sampled = ArrayD::from_shape_fn(IxDyn(&[32, 16]), |i| i[0] < 24);
/// let kspace: Vec<_> = sampled.iter().map(|&known| if known { C32::ONE } else { C32::ZERO }).collect();
/// let images = PartialImages::new(&device, &sampled, &partial_axes(&sampled), PartialFourier::Pocs)?;
/// let found = images.images(Array::from_vec(&device, &[1, 32, 16], kspace)?)?.to_vec()?;
/// let peak = found[16 * 16 + 8].norm() / (32.0f32 * 16.0).sqrt(); // zero filling gives ¾
/// assert!((peak - 1.0).abs() < 0.05);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct PartialImages {
    how: PartialFourier,
    fft: Fft<f32>,
    /// The window of the symmetric centre, from which the phase is estimated.
    centre: Array<f32>,
    /// The ramp of homodyne detection; else 1 where it was measured.
    weights: Array<f32>,
}

impl PartialImages {
    /// For k-space sampled like this. Errors: homodyne detection along several axes.
    pub fn new(
        device: &Device,
        sampled: &ArrayD<bool>,
        axes: &[PartialAxis],
        how: PartialFourier,
    ) -> Result<Self> {
        if how == PartialFourier::Homodyne && axes.len() > 1 {
            return Err(Error::value(
                "partial Fourier",
                "pocs where two axes are covered in part",
                "homodyne",
            ));
        }
        let shape = sampled.shape();
        let weights = |weight: &dyn Fn(&PartialAxis, usize) -> f64| {
            let mut profiles: Vec<Vec<f64>> = shape.iter().map(|&n| vec![1.0; n]).collect();
            for axis in axes {
                profiles[axis.axis] = (0..shape[axis.axis]).map(|i| weight(axis, i)).collect();
            }
            window::separable(device, &profiles, Some(sampled.view()))
        };
        let offset = |axis: &PartialAxis, i: usize| i as f64 - (shape[axis.axis] / 2) as f64;
        let taper = |axis: &PartialAxis, i: usize| {
            let t = offset(axis, i) / (axis.half as f64 + 1.0);
            if t.abs() < 1.0 { (FRAC_PI_2 * t).cos().powi(2) } else { 0.0 }
        };
        let ramp = |axis: &PartialAxis, i: usize| {
            let centre = shape[axis.axis] / 2;
            let side = if axis.measured[1] - centre > centre - axis.measured[0] { 1.0 } else { -1.0 };
            (1.0 + side * offset(axis, i) / (axis.half as f64 + 1.0)).clamp(0.0, 2.0)
        };
        Ok(Self {
            how,
            fft: Fft::new(device, shape, Norm::Unitary)?,
            centre: weights(&taper)?,
            weights: match how {
                PartialFourier::Homodyne => weights(&ramp)?,
                PartialFourier::Pocs | PartialFourier::None => window::indicator(device, sampled.view())?,
            },
        })
    }

    /// Bytes that a plan and its work take, besides k-space, for images of `shape`.
    pub(crate) fn bytes_needed(shape: &[usize]) -> u64 {
        let (weights, images) = (2 * size_of::<f32>(), 3 * size_of::<C32>());
        ((weights + images) * shape.iter().product::<usize>()) as u64
    }

    /// Images `[coil, image…]` of k-space `[coil, image…]`, unitary, one coil after another.
    pub fn images(&self, mut kspace: Array<C32>) -> Result<Array<C32>> {
        let device = kspace.device().clone();
        let shape = self.centre.shape().to_vec();
        let mut measured = Array::zeros(&device, &shape)?;
        let mut phase = Array::zeros(&device, &shape)?;
        let mut image = Array::zeros(&device, &shape)?;
        let len = image.len();
        for coil in 0..kspace.shape()[0] {
            vector::copy_part(&kspace, coil * len, &mut measured, 0, len)?;
            vector::weight(&self.centre, &measured, &mut phase)?;
            self.fft.inverse(&mut phase)?;
            match self.how {
                PartialFourier::Homodyne => {
                    vector::weight(&self.weights, &measured, &mut image)?;
                    self.fft.inverse(&mut image)?;
                    pocs::project_phase(&phase, &mut image)?;
                }
                PartialFourier::Pocs | PartialFourier::None => {
                    image.copy_from(&measured)?;
                    self.fft.inverse(&mut image)?;
                    let rounds = if self.how == PartialFourier::Pocs { ITERATIONS } else { 0 };
                    for _ in 0..rounds {
                        pocs::project_phase(&phase, &mut image)?;
                        self.fft.forward(&mut image)?;
                        pocs::restore_samples(&self.weights, &measured, &mut image)?;
                        self.fft.inverse(&mut image)?;
                    }
                }
            }
            vector::copy_part(&image, 0, &mut kspace, coil * len, len)?;
        }
        Ok(kspace)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use ndarray::IxDyn;

    use super::*;

    fn smooth(shape: &[usize]) -> ArrayD<C32> {
        // Blocks and discs with edges, and a phase that turns slowly over the image.
        ArrayD::from_shape_fn(IxDyn(shape), |i| {
            let at = |axis: usize| i[axis] as f32 / shape[axis] as f32 - 0.5;
            let (y, x) = (at(shape.len() - 2), at(shape.len() - 1));
            let disc = f32::from(u8::from(x * x + y * y < 0.16));
            let block = f32::from(u8::from((x - 0.1).abs() < 0.1 && (y + 0.05).abs() < 0.15));
            C32::from_polar(disc + 0.7 * block, 0.5 + 1.5 * x - 2.0 * y * y + 0.8 * x * y)
        })
    }

    fn error(found: &[C32], truth: &[C32]) -> f64 {
        let power =
            |values: &mut dyn Iterator<Item = C32>| values.map(|v| f64::from(v.norm_sqr())).sum::<f64>();
        let difference = power(&mut found.iter().zip(truth).map(|(a, b)| a - b));
        (difference / power(&mut truth.iter().copied())).sqrt()
    }

    #[test]
    fn half_the_error_of_zero_filling_and_less() {
        let device = Device::cpu_with_threads(2).unwrap();
        // Axis, first and last measured index.
        for (shape, cuts) in [
            (vec![96, 80], vec![(0, 36, 95)]),
            (vec![96, 80], vec![(0, 0, 60)]),
            (vec![81, 77], vec![(1, 28, 76)]),
            (vec![96, 80], vec![(0, 30, 95), (1, 0, 54)]),
        ] {
            let truth = smooth(&shape);
            let fft = Fft::new(&device, &shape, Norm::Unitary).unwrap();
            let mut kspace = Array::from_host(&device, &truth).unwrap();
            fft.forward(&mut kspace).unwrap();
            let sampled = ArrayD::from_shape_fn(IxDyn(&shape), |i| {
                cuts.iter().all(|&(axis, low, high)| (low..=high).contains(&i[axis]))
            });
            for (k, s) in kspace.cpu_mut().iter_mut().zip(&sampled) {
                if !s {
                    *k = C32::ZERO;
                }
            }
            let axes = partial_axes(&sampled);
            assert_eq!(
                axes.iter().map(|a| a.axis).collect::<Vec<_>>(),
                cuts.iter().map(|c| c.0).collect::<Vec<_>>()
            );
            let one = [&[1], &shape[..]].concat();
            let by = |how| {
                let images = PartialImages::new(&device, &sampled, &axes, how)?;
                let found = images.images(kspace.try_clone()?.reshape(&one)?)?;
                Ok::<_, Error>(error(found.cpu(), truth.as_slice().unwrap()))
            };
            let zero = by(PartialFourier::None).unwrap();
            let pocs = by(PartialFourier::Pocs).unwrap();
            println!("{cuts:?}: zero-filled {zero:.3}, POCS {pocs:.3}");
            assert!(pocs < 0.5 * zero, "{cuts:?}: {pocs} {zero}");
            match by(PartialFourier::Homodyne) {
                Ok(homodyne) => {
                    println!("homodyne {homodyne:.3}");
                    assert!(cuts.len() == 1 && homodyne < 0.6 * zero, "{cuts:?}: {homodyne} {zero}");
                }
                Err(_) => assert_eq!(cuts.len(), 2),
            }
        }
    }

    #[test]
    fn images_are_the_same_on_every_device() {
        let shape = [24, 20];
        let sampled = ArrayD::from_shape_fn(IxDyn(&shape), |i| i[0] >= 7);
        let axes = partial_axes(&sampled);
        let kspace = smooth(&shape).into_shape_with_order(vec![1, 24, 20]).unwrap();
        for how in [PartialFourier::Pocs, PartialFourier::Homodyne] {
            let on = |device: &Device| {
                let images = PartialImages::new(device, &sampled, &axes, how).unwrap();
                images.images(Array::from_host(device, &kspace).unwrap()).unwrap().to_vec().unwrap()
            };
            let expected = on(&Device::cpu_with_threads(1).unwrap());
            for device in rayspin_emu::devices().unwrap() {
                assert!(error(&on(&device), &expected) < 1e-5, "{how:?} on {}", device.describe());
            }
        }
    }

    #[test]
    fn even_and_irregular_coverage_is_left_alone() {
        let box_of = |low: usize, high: usize| {
            ArrayD::from_shape_fn(IxDyn(&[64, 8]), |i| (low..=high).contains(&i[0]))
        };
        assert!(partial_axes(&box_of(0, 63)).is_empty());
        assert!(partial_axes(&box_of(10, 53)).is_empty());
        assert!(partial_axes(&box_of(31, 63)).is_empty(), "one line before the centre tells no phase");
        assert_eq!(partial_axes(&box_of(24, 63)), [PartialAxis { axis: 0, measured: [24, 63], half: 8 }]);
        let mut hole = box_of(24, 63);
        hole[[40, 3]] = false;
        assert!(partial_axes(&hole).is_empty());
        let inside = |i: ndarray::IxDyn| (2..4).contains(&i[0]) && i[1] == 3 && i[2] < 6;
        let solid = ArrayD::from_shape_fn(IxDyn(&[5, 4, 7]), inside);
        assert_eq!(measured_box(&solid), Some(vec![[2, 3], [3, 3], [0, 5]]));
        assert_eq!(measured_box(&ArrayD::from_elem(IxDyn(&[3, 4]), false)), None);
        assert_eq!(measured_box(&ArrayD::from_elem(IxDyn(&[3, 0]), true)), None);
    }
}
