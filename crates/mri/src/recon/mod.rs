//! Reconstruction: from the samples of a frame to its image.

mod iterative;
mod options;
mod plans;
mod series;

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Monitor, Result, expect_shape};
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::{sensitivity, vector};

use crate::crop::centre_crop;
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
            (Some(given), true) => Some(self.given_maps(given, kspace.shape()[0], &frame.matrix, grid)?),
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
            (Some(given), true) => {
                Some(self.given_maps(given, frame.coils(), &frame.matrix, &frame.matrix)?)
            }
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

    /// From the unitary inverse FFT to (1/N) Σ d e^{+i2πk·x}, N the voxels of the grid.
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

    /// The maps that were given, `[coil, matrix…]` (a z of 1 may be missing or there), on the grid: beyond the matrix the
    /// coils see nothing, which confines the image to it.
    fn given_maps(
        &self,
        given: &ArrayD<C32>,
        coils: usize,
        matrix: &[usize],
        grid: &[usize],
    ) -> Result<Array<C32>> {
        let with_coils =
            |shape: &[usize]| -> Vec<usize> { std::iter::once(coils).chain(shape.iter().copied()).collect() };
        let mut given = given.clone();
        if given.ndim() == matrix.len() + 2 && given.shape()[1] == 1 {
            given.index_axis_inplace(ndarray::Axis(1), 0);
        }
        if given.shape() != with_coils(grid) {
            expect_shape("sensitivity maps", &with_coils(matrix), given.shape())?;
        }
        Array::from_host(&self.device, &centre_crop(given, &with_coils(grid))?)
    }

    /// Takes other sensitivity maps from the next frame on.
    pub fn set_maps(&mut self, maps: Option<ArrayD<C32>>) {
        self.options.maps = maps;
    }
}
