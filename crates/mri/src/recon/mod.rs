//! Reconstruction: from the samples of a frame to its image.

mod iterative;
mod options;
mod plans;
mod series;

use ndarray::{ArrayD, IxDyn, Slice};
use rayspin_core::{C32, Error, Monitor, Result, expect_shape, format_shape};
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::{sensitivity, vector};

use crate::maps;
use crate::scan::{Frame, Label, Samples};
pub use options::{Combine, Density, Method, ReconOptions, Regulariser};
use plans::Plans;
pub use series::{ScanImage, Selection, reconstruct_scan};

/// One frame's image and how it came about.
#[derive(Debug, Clone)]
pub struct FrameImage {
    /// The image, of the frame's matrix.
    pub image: ArrayD<C32>,
    /// How the iterations went, for methods that iterate.
    pub solve: Option<Solve>,
    /// Sensitivity maps `[coil, ...matrix]`, when the method used any.
    pub maps: Option<ArrayD<C32>>,
    /// What was assumed.
    pub notes: Vec<String>,
}

/// How an iterative reconstruction went.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Solve {
    /// The frame.
    pub label: Label,
    /// Relative residual before the first iteration and after each; the mean over coils when they are solved one by one.
    pub residuals: Vec<f64>,
    /// The largest eigenvalue of FᴴF, which λ is relative to.
    pub eigenvalue: f64,
    /// Whether the residual met the tolerance (for every coil, when they are solved one by one).
    pub converged: bool,
}

/// Reconstructs frames one after another, keeping the plans of the last trajectory.
pub struct Reconstructor {
    device: Device,
    options: ReconOptions,
    plans: Option<Plans>,
    observer: Option<Observer>,
}

/// Sees the image `[z, y, x]` or `[y, x]` after each iteration of [`Method::CgSense`].
pub type Observer = Box<dyn FnMut(usize, &ArrayD<C32>)>;

impl Reconstructor {
    /// A reconstructor with checked options.
    pub fn new(device: &Device, options: ReconOptions) -> Result<Self> {
        options.validate()?;
        Ok(Self { device: device.clone(), options, plans: None, observer: None })
    }

    /// Calls `observer` with the image after each iteration (it is copied to the host for that, which takes time).
    pub fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// Reconstructs one frame.
    ///
    /// Errors: a method that does not suit the frame, maps of another shape, no calibration centre, memory, interruption.
    pub fn frame(&mut self, frame: &Frame, monitor: &Monitor<'_>) -> Result<FrameImage> {
        match &frame.samples {
            Samples::Cartesian { kspace, sampled } => self.cartesian(frame, kspace, sampled, monitor),
            Samples::NonCartesian { trajectory, data } => {
                if self.options.method == Method::Cartesian {
                    return Err(Error::value(
                        "method",
                        "gridding, ls or cg-sense for a scan with a trajectory",
                        "cartesian",
                    ));
                }
                let plans = Plans::matching(
                    self.plans.take(),
                    &self.device,
                    trajectory,
                    &frame.matrix,
                    &self.options,
                    monitor,
                )?;
                let data = Array::from_host(&self.device, data.view().into_dyn())?;
                let result = self.non_cartesian(frame, &plans, &data, monitor);
                self.plans = Some(plans);
                result
            }
        }
    }

    fn cartesian(
        &mut self,
        frame: &Frame,
        kspace: &ArrayD<C32>,
        sampled: &ArrayD<bool>,
        monitor: &Monitor<'_>,
    ) -> Result<FrameImage> {
        if self.options.method == Method::Gridding {
            return Err(Error::value(
                "method",
                "cartesian, ls or cg-sense for a scan on the grid",
                "gridding",
            ));
        }
        let grid = sampled.shape();
        let needs_maps = self.options.method == Method::CgSense || self.options.combine == Combine::Maps;
        let mut notes = Vec::new();
        let maps = match (&self.options.maps, needs_maps) {
            (_, false) => None,
            (Some(given), true) => Some(self.given_maps(given, kspace.shape()[0], grid)?),
            (None, true) => {
                let (maps, width) = monitor.stage("coil sensitivities", 0, || {
                    maps::from_grid(&self.device, kspace.view(), sampled, self.options.calibration)
                })?;
                notes.push(format!("coil sensitivities from the central {width} lines of k-space"));
                Some(maps)
            }
        };
        let (image, solve) = match self.options.method {
            Method::Cartesian | Method::Gridding => {
                let images = monitor.stage("inverse FFT", 0, || {
                    let mut images = Array::from_host(&self.device, kspace.view())?;
                    Fft::new(&self.device, grid, Norm::Unitary)?.inverse(&mut images)?;
                    self.rescale(&mut images, grid);
                    Ok::<_, Error>(images)
                })?;
                (self.combine(images, maps.as_ref())?, None)
            }
            Method::LeastSquares | Method::CgSense => {
                let (image, solve) = iterative::on_grid(self, kspace, sampled, maps.as_ref(), monitor)?;
                (image, Some(solve))
            }
        };
        let image = centre_crop(image, &frame.matrix)?;
        let maps = match maps {
            Some(maps) => {
                let shape: Vec<usize> =
                    std::iter::once(frame.coils()).chain(frame.matrix.iter().copied()).collect();
                Some(centre_crop(maps.into_host()?, &shape)?)
            }
            None => None,
        };
        Ok(FrameImage { image, solve, maps, notes })
    }

    fn non_cartesian(
        &mut self,
        frame: &Frame,
        plans: &Plans,
        data: &Array<C32>,
        monitor: &Monitor<'_>,
    ) -> Result<FrameImage> {
        let needs_maps = self.options.method == Method::CgSense || self.options.combine == Combine::Maps;
        let mut notes = Vec::new();
        let maps = match (&self.options.maps, needs_maps) {
            (_, false) => None,
            (Some(given), true) => Some(self.given_maps(given, frame.coils(), &frame.matrix)?),
            (None, true) => {
                let density = plans.density()?;
                let (maps, width) = monitor.stage("coil sensitivities", 0, || {
                    maps::from_samples(
                        plans.nufft(),
                        plans.trajectory(),
                        &frame.matrix,
                        data,
                        density,
                        self.options.calibration,
                    )
                })?;
                notes.push(format!("coil sensitivities from the central {width} cycles per field of view"));
                Some(maps)
            }
        };
        let (image, solve) = match self.options.method {
            Method::Cartesian | Method::Gridding => {
                let images = monitor.stage("gridding", 0, || {
                    let mut weighted = Array::zeros(&self.device, data.shape())?;
                    vector::weight(plans.density()?, data, &mut weighted)?;
                    let shape: Vec<usize> =
                        std::iter::once(frame.coils()).chain(frame.matrix.iter().copied()).collect();
                    let mut images = Array::zeros(&self.device, &shape)?;
                    plans.nufft().adjoint(&weighted, &mut images)?;
                    Ok::<_, Error>(images)
                })?;
                (self.combine(images, maps.as_ref())?, None)
            }
            Method::LeastSquares | Method::CgSense => {
                let (image, solve) = iterative::on_trajectory(self, plans, data, maps.as_ref(), monitor)?;
                (image, Some(solve))
            }
        };
        let maps = maps.map(Array::into_host).transpose()?;
        Ok(FrameImage { image, solve, maps, notes })
    }

    /// From the unitary inverse FFT to (1/N) Σ d e^{+i2πk·x}, so that image values do not depend on the matrix.
    fn rescale(&self, images: &mut Array<C32>, grid: &[usize]) {
        let voxels: usize = grid.iter().product();
        vector::scale((1.0 / (voxels as f64).sqrt()).into(), images);
    }

    /// Coil images `[coil, image…]` as one image, on the host.
    fn combine(&self, images: Array<C32>, maps: Option<&Array<C32>>) -> Result<ArrayD<C32>> {
        let shape = images.shape()[1..].to_vec();
        match maps {
            Some(maps) => {
                let mut image = Array::zeros(&self.device, &shape)?;
                sensitivity::combine(maps, &images, &mut image)?;
                let weight = sensitivity::sum_of_squares(maps)?.into_host()?;
                let mut image = image.into_host()?;
                image.zip_mut_with(&weight, |v, &w| *v = if w > 0.0 { *v / w } else { C32::ZERO });
                Ok(image)
            }
            // One coil has a phase worth keeping.
            None if images.shape()[0] == 1 => images.reshape(&shape)?.into_host(),
            None => Ok(sensitivity::root_sum_of_squares(&images)?.into_host()?.mapv(C32::from)),
        }
    }

    fn given_maps(&self, given: &ArrayD<C32>, coils: usize, matrix: &[usize]) -> Result<Array<C32>> {
        let expected: Vec<usize> = std::iter::once(coils).chain(matrix.iter().copied()).collect();
        let mut shape = given.shape().to_vec();
        if shape.len() == 4 && shape[1] == 1 && expected.len() == 3 {
            shape.remove(1);
        }
        expect_shape("sensitivity maps", &expected, &shape)?;
        Array::from_host(&self.device, given.view())?.reshape(&expected)
    }
}

/// The centre of `array` cut or zero-padded to `shape` along each axis, index n/2 staying the centre.
fn centre_crop(array: ArrayD<C32>, shape: &[usize]) -> Result<ArrayD<C32>> {
    if array.shape() == shape {
        return Ok(array);
    }
    if array.ndim() != shape.len() {
        return Err(Error::Shape {
            what: "image".into(),
            expected: format!("{} axes", shape.len()),
            found: format_shape(array.shape()),
        });
    }
    let mut out = ArrayD::zeros(IxDyn(shape));
    let range = |from: usize, to: usize| {
        // The first index of the part that both share, on the side of `from`.
        let start = (from / 2).saturating_sub(to / 2);
        Slice::from(start..start + from.min(to))
    };
    let source = array.slice_each_axis(|axis| range(axis.len, shape[axis.axis.index()]));
    let from = array.shape().to_vec();
    out.slice_each_axis_mut(|axis| range(axis.len, from[axis.axis.index()])).assign(&source);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cropping_and_padding_keep_the_centre() {
        for (from, to) in [(8, 4), (8, 5), (7, 4), (7, 3), (4, 8), (5, 8), (4, 7), (6, 6)] {
            let array = ArrayD::from_shape_fn(IxDyn(&[from, 2]), |i| {
                C32::new(i[0] as f32 - (from / 2) as f32, i[1] as f32)
            });
            let out = centre_crop(array, &[to, 2]).unwrap();
            for i in 0..to {
                let position = i as isize - (to / 2) as isize;
                let inside =
                    position >= -((from / 2) as isize) && position < from as isize - (from / 2) as isize;
                let wanted = if inside { C32::new(position as f32, 1.0) } else { C32::ZERO };
                assert_eq!(out[[i, 1]], wanted, "{from} to {to} at {i}");
            }
        }
    }
}
