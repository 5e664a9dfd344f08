//! Reconstruction: from the samples of a frame to its image.

mod blocks;
mod certify;
mod coils;
mod frame_maps;
mod iterative;
mod off_resonance;
mod options;
mod plans;
mod recovery;
mod run;
mod samples;
mod series;
mod sparse;
mod store;
mod stream;
mod voxels;

use std::borrow::Cow;
use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Monitor, Result, Trajectory};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::vector;

use crate::crop::centre_crop;
use crate::grappa::grappa;
use crate::partial::{PartialFourier, PartialImages, uneven_axes};
use crate::prepare::Mixing;
use crate::scan::{CalibrationLines, Frame, Label, Samples};
pub(crate) use blocks::{needs as block_needs, settled as block_options};
pub use certify::{CONFIDENCE, Certificate, Certify, FFT_TOLERANCE};
use coils::{Combiner, batches};
use frame_maps::{Maps, SharedMaps};
use off_resonance::Uneven;
pub(crate) use off_resonance::{
    Interpolators, expect_times, normal_segments, places_of_grid, range_of as field_range,
};
pub use options::{Combine, Density, Method, ReconOptions, Regulariser, WaveletFilter, WaveletOptions};
use plans::{Needs, Plans};
pub use recovery::{Cut, LEAST_POINTS};
use samples::{CoilSamples, HostSamples};
pub use series::{ScanImage, Selection, reconstruct_frame, reconstruct_frames, reconstruct_scan};
pub use store::KernelStore;
pub use stream::{
    FRAMES_AHEAD, Sink, Source, StreamEnd, StreamItem, StreamTimes, VOLUMES_BEHIND, Volume,
    reconstruct_stream,
};
pub use voxels::LAMBDA_MATRIX;
use voxels::{Voxels, voxels};

/// One frame's image and how it came about.
#[derive(Debug, Clone)]
pub struct FrameImage {
    /// The image ρ, of the frame's matrix: signal per field of view, d(k) = ∫ c(x) ρ(x) e^{−i2πk·x} dx with x in fields of
    /// view of the image, or (1/N) Σ over its N voxels. The sample at the centre of k-space is the mean of the image, at any
    /// matrix. A full grid gives Σ d e^{+i2πk·x}, times the image's part of the encoded field of view where that is larger.
    pub image: ArrayD<C32>,
    /// How the iterations went, for methods that iterate.
    pub solve: Option<Solve>,
    /// Sensitivity maps `[coil, ...matrix]`, or `[set, coil, ...matrix]`, when the method used any.
    pub maps: Option<ArrayD<C32>>,
    /// What was assumed.
    pub notes: Vec<String>,
    /// What was measured of the transforms, with [`ReconOptions::certify`], where this frame is the first that they make.
    pub certificates: Vec<Certificate>,
}

/// How an iterative reconstruction went.
#[derive(Debug, Clone, PartialEq)]
pub struct Solve {
    /// The frame.
    pub label: Label,
    /// The solver's name.
    pub solver: &'static str,
    /// Relative residual before the first iteration and after each, the mean over coils when they are solved one by one.
    /// Of FISTA: how far each iteration's proximal gradient step led, relative to the image.
    pub residuals: Vec<f64>,
    /// Of FISTA: 1/(2L) ‖Fρ − d‖² + λs‖Ψρ‖₁, over s² and less its constant, after each iteration.
    pub objective: Vec<f64>,
    /// The largest eigenvalue of FᴴF, which λ is relative to.
    pub eigenvalue: f64,
    /// Whether the iterations for it met their tolerance.
    pub eigenvalue_converged: bool,
    /// Of sparse methods: s n/256, or s (n/256)^{d/2} for wavelets of d axes, what λ is relative to besides L: the image's
    /// brightness and its matrix size.
    pub scale: Option<f64>,
    /// Whether the residual met the tolerance (for every coil, when they are solved one by one).
    pub converged: bool,
}

impl Default for Solve {
    fn default() -> Self {
        Self {
            label: Label::default(),
            solver: "conjugate gradients",
            residuals: Vec::new(),
            objective: Vec::new(),
            eigenvalue: 0.0,
            eigenvalue_converged: true,
            scale: None,
            converged: false,
        }
    }
}

impl Solve {
    /// What is to be said of the eigenvalue.
    fn note(&self) -> Option<String> {
        (!self.eigenvalue_converged).then(|| {
            "the largest eigenvalue, which λ is relative to, was still growing by more than 1 % an iteration when its iterations \
             ended: λ weighs less than it says; a larger --lambda makes up for it"
                .to_owned()
        })
    }

    /// Iterations done.
    pub fn iterations(&self) -> usize {
        if self.objective.is_empty() { self.residuals.len().saturating_sub(1) } else { self.objective.len() }
    }
}

/// Reconstructs frames one after another, keeping the plans of the last trajectory.
pub struct Reconstructor {
    device: Device,
    options: ReconOptions,
    plans: Option<Plans>,
    /// The grid whose FFT was certified last.
    certified_grid: Option<Vec<usize>>,
    observer: Option<Observer>,
    /// Of the field map of all frames.
    field_range: Option<[f64; 2]>,
    /// Maps of the frames to come.
    shared: Option<SharedMaps>,
    /// Whether the maps of a frame are to be had after it, and these.
    remember: bool,
    used: Option<Arc<Array<C32>>>,
    /// The eigenvalue that λ is relative to, of the frames to come.
    eigenvalue: Option<f64>,
    /// What the coils of the frames to come become first.
    mixing: Option<Arc<Mixing>>,
}

/// Sees the image `[z, y, x]` or `[y, x]` after each iteration of a method that solves for one image.
pub type Observer = Box<dyn FnMut(usize, &ArrayD<C32>)>;

impl Reconstructor {
    /// A reconstructor with checked options.
    pub fn new(device: &Device, options: ReconOptions) -> Result<Self> {
        options.validate()?;
        let field_range = options.field_map.as_deref().map(off_resonance::range_of);
        Ok(Self {
            device: device.clone(),
            options,
            plans: None,
            certified_grid: None,
            observer: None,
            field_range,
            shared: None,
            remember: false,
            used: None,
            eigenvalue: None,
            mixing: None,
        })
    }

    /// Calls `observer` with the image after each iteration (it is copied to the host for that, which takes time).
    pub fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// Reconstructs one frame as the options say. What it owns is given up as soon as it is on the device.
    fn attempt(&mut self, frame: Cow<'_, Frame>, monitor: &Monitor<'_>) -> Result<FrameImage> {
        if let Some(map) = self.options.field_map.clone() {
            return self.in_uneven_field(frame, &map, monitor);
        }
        let voxels = Voxels::new(&frame.matrix, &frame.geometry.spacing_mm);
        let mixing = self.mixing.clone();
        let mixing = mixing.as_deref();
        match frame {
            Cow::Owned(Frame { samples, calibration, .. }) => match samples {
                Samples::Cartesian { kspace, sampled } => {
                    self.cartesian(&voxels, kspace.into(), &sampled, calibration.as_ref(), monitor)
                }
                Samples::NonCartesian { trajectory, data } => {
                    let data = (data.into_dyn().into(), mixing);
                    self.anywhere(&voxels, Cow::Owned(trajectory), data, None, monitor)
                }
            },
            Cow::Borrowed(Frame { samples, calibration, .. }) => match samples {
                Samples::Cartesian { kspace, sampled } => {
                    self.cartesian(&voxels, kspace.view().into(), sampled, calibration.as_ref(), monitor)
                }
                Samples::NonCartesian { trajectory, data } => {
                    let data = (data.view().into_dyn().into(), mixing);
                    self.anywhere(&voxels, Cow::Borrowed(trajectory), data, None, monitor)
                }
            },
        }
    }

    fn anywhere(
        &mut self,
        voxels: &Voxels,
        trajectory: Cow<'_, Trajectory>,
        (data, mixing): (HostSamples<'_>, Option<&Mixing>),
        uneven: Option<Uneven>,
        monitor: &Monitor<'_>,
    ) -> Result<FrameImage> {
        let expected = "gridding, ls, cg-sense, wavelet or tv for a scan with a trajectory";
        match self.options.method {
            Method::Cartesian => return Err(Error::value("method", expected, "cartesian")),
            Method::Grappa => return Err(Error::value("method", expected, "grappa")),
            _ => {}
        }
        self.expect_no_partial_fourier("a scan with a trajectory")?;
        let needs = Needs {
            density: self.options.method == Method::Gridding
                || (self.options.needs_density() && self.shared.is_none()),
            toeplitz: self.options.iterates(),
        };
        let mut data = CoilSamples::on_host(&self.device, data, mixing);
        // On the CPU coils become fewer before memory is taken for plans; on a GPU they come once there are plans.
        if self.device.kind() == BackendKind::Cpu {
            data = self.arrived(data, monitor)?;
        }
        let plans = Plans::matching(
            self.plans.take(),
            &self.device,
            trajectory,
            voxels.matrix(),
            needs,
            uneven,
            &self.options,
            monitor,
        )?;
        let mut data = self.arrived(data, monitor)?;
        // Fρ = N d: the same ρ whatever N is.
        data.scale(voxels.count())?;
        let result = self.non_cartesian(voxels, &plans, data, monitor);
        self.plans = Some(plans);
        result
    }

    /// Samples on the device, as many coils at a time as are taken.
    fn arrived<'a>(&self, samples: CoilSamples<'a>, monitor: &Monitor<'_>) -> Result<CoilSamples<'a>> {
        let batch = self.options.coil_batch;
        let others = samples.become_others(batch);
        let to_device = || samples.arrived(batch);
        if others { monitor.stage("coils", 0, to_device) } else { to_device() }
    }

    fn cartesian(
        &mut self,
        image: &Voxels,
        kspace: HostSamples<'_>,
        sampled: &ArrayD<bool>,
        calibration: Option<&CalibrationLines>,
        monitor: &Monitor<'_>,
    ) -> Result<FrameImage> {
        let matrix = image.matrix();
        if self.options.method == Method::Gridding {
            return Err(Error::value(
                "method",
                "cartesian, ls, cg-sense, wavelet or tv for a scan on the grid",
                "gridding",
            ));
        }
        let grid = sampled.shape();
        let mixing = self.mixing.clone();
        let kspace = CoilSamples::on_host(&self.device, kspace, mixing.as_deref());
        let mut kspace = self.arrived(kspace, monitor)?;
        let coils = kspace.coils();
        let certificates = match self.options.certify {
            Some(certify) if self.certified_grid.as_deref() != Some(grid) => {
                self.certified_grid = Some(grid.to_vec());
                monitor.stage("certify", 0, || certify::grid(&certify, &kspace))?
            }
            _ => Vec::new(),
        };
        let mut notes = Vec::new();
        let maps = match self.known_maps(coils, matrix, grid)? {
            Maps::Unused => None,
            Maps::Known(maps) => Some(maps),
            Maps::Unknown => {
                let maps = self.grid_maps(&kspace, sampled, calibration, &mut notes, monitor)?;
                maps.resident().cloned()
            }
        };
        self.used = maps.clone().filter(|_| self.remember);
        let (image, solve) = match self.options.method {
            Method::Cartesian | Method::Gridding | Method::Grappa => {
                let filled;
                let sampled = if self.options.method == Method::Grappa {
                    let found = monitor.stage("GRAPPA", 0, || {
                        let lines = match calibration {
                            Some(lines) => {
                                let own = lines.kspace.view().into();
                                let own = CoilSamples::on_host(&self.device, own, mixing.as_deref()).all()?;
                                Some((own, &lines.sampled))
                            }
                            None => None,
                        };
                        grappa(
                            &self.device,
                            kspace.all()?,
                            sampled,
                            lines.as_ref().map(|(own, at)| (own, *at)),
                        )
                    })?;
                    notes.push(format!(
                        "GRAPPA: acceleration {} along y and {} along z, weights from {} calibration lines",
                        found.acceleration[1], found.acceleration[0], found.calibration
                    ));
                    filled = found.sampled;
                    kspace = found.kspace.into();
                    &filled
                } else {
                    sampled
                };
                let partial = self.partial_fourier(sampled, &mut notes)?;
                // From the unitary inverse FFT to a density.
                let density = image.count() / voxels(grid).sqrt();
                let image = monitor.stage("inverse FFT", 0, || {
                    let fft = Fft::new(&self.device, grid, Norm::Unitary)?;
                    let mut combiner = Combiner::new(&self.device, coils, grid, maps.as_deref());
                    for range in batches(coils, self.options.coil_batch) {
                        let mut images = kspace.take(&range)?;
                        match &partial {
                            Some(partial) => images = partial.images(images)?,
                            None => fft.inverse(&mut images)?,
                        }
                        vector::scale(density.into(), &mut images)?;
                        combiner.add(range, images)?;
                    }
                    drop(kspace);
                    combiner.finish()
                })?;
                (image, None)
            }
            _ => {
                self.expect_no_partial_fourier("a method that solves for the image")?;
                let (image, solve) = iterative::on_grid(self, kspace, sampled, image, maps.clone(), monitor)?;
                notes.extend(solve.note());
                (image, Some(solve))
            }
        };
        let image = centre_crop(image, matrix)?;
        let maps = match self.kept_maps(maps)? {
            Some(maps) => {
                let leading = maps.shape()[..maps.ndim() - grid.len()].to_vec();
                Some(centre_crop(maps, &[&leading, matrix].concat())?)
            }
            None => None,
        };
        Ok(FrameImage { image, solve, maps, notes, certificates })
    }

    fn non_cartesian(
        &mut self,
        image: &Voxels,
        plans: &Plans,
        mut data: CoilSamples<'_>,
        monitor: &Monitor<'_>,
    ) -> Result<FrameImage> {
        let matrix = image.matrix();
        let coils = data.coils();
        let mut notes = plans.notes().to_vec();
        let certificates = match self.options.certify {
            Some(certify) if plans.certify_once() => monitor.stage("certify", 0, || {
                let weighted = self.options.method == Method::Gridding;
                let mut tolerance = self.options.nufft_tolerance;
                if self.options.field_map.is_some() {
                    tolerance += self.options.field_tolerance;
                }
                certify::trajectory(&certify, plans, &data, weighted, self.options.iterates(), tolerance)
            })?,
            _ => Vec::new(),
        };
        let maps = match self.known_maps(coils, matrix, matrix)? {
            Maps::Unused => None,
            Maps::Known(maps) => Some(maps),
            Maps::Unknown => self.maps_of_samples(plans, &data, &mut notes, monitor)?.resident().cloned(),
        };
        self.used = maps.clone().filter(|_| self.remember);
        let (image, solve) = match self.options.method {
            Method::Cartesian | Method::Gridding | Method::Grappa => {
                let image = monitor.stage("gridding", 0, || {
                    let mut combiner = Combiner::new(&self.device, coils, matrix, maps.as_deref());
                    for range in batches(coils, self.options.coil_batch) {
                        let samples = data.take(&range)?;
                        let mut weighted = Array::zeros(&self.device, samples.shape())?;
                        vector::weight(plans.density()?, &samples, &mut weighted)?;
                        drop(samples);
                        let mut images = Array::zeros(&self.device, &[&[range.len()], matrix].concat())?;
                        plans.adjoint(&weighted, &mut images)?;
                        drop(weighted);
                        combiner.add(range, images)?;
                    }
                    combiner.finish()
                })?;
                (image, None)
            }
            _ => {
                let (image, solve) =
                    iterative::on_trajectory(self, plans, data, image, maps.clone(), monitor)?;
                notes.extend(solve.note());
                (image, Some(solve))
            }
        };
        Ok(FrameImage { image, solve, maps: self.kept_maps(maps)?, notes, certificates })
    }

    /// How the unmeasured side of k-space is filled, where there is one.
    fn partial_fourier(
        &self,
        sampled: &ArrayD<bool>,
        notes: &mut Vec<String>,
    ) -> Result<Option<PartialImages>> {
        let axes = uneven_axes(sampled);
        let Some(first) = axes.first() else {
            self.expect_no_partial_fourier("k-space that is covered evenly, or not in a full box")?;
            return Ok(None);
        };
        let how = self.options.partial_fourier.unwrap_or(PartialFourier::Pocs);
        let n = sampled.shape()[first.axis];
        let lines = first.measured[1] + 1 - first.measured[0];
        let name = ["x", "y", "z"][sampled.ndim() - 1 - first.axis];
        if how == PartialFourier::None {
            notes.push(format!("{lines} of {n} lines along {name} are measured: the others are left zero"));
            return Ok(None);
        }
        notes.push(format!(
            "{lines} of {n} lines along {name} are measured: partial Fourier by {}, phase from {} lines around the \
             centre",
            if how == PartialFourier::Pocs { "POCS" } else { "homodyne detection" },
            2 * first.half + 1
        ));
        PartialImages::new(&self.device, sampled, &axes, how).map(Some)
    }

    fn expect_no_partial_fourier(&self, found: &str) -> Result<()> {
        match self.options.partial_fourier {
            None => Ok(()),
            Some(_) => Err(Error::value(
                "partial Fourier",
                "method cartesian or grappa, and k-space measured farther on one side of its centre",
                found,
            )),
        }
    }

    /// Takes another anatomical reference from the next frame on.
    pub fn set_anatomy(&mut self, anatomy: Option<ArrayD<f32>>) {
        self.options.anatomy = anatomy.map(Arc::new);
    }

    /// Takes another field map from the next frame on, within the range of the first one.
    pub fn set_field_map(&mut self, map: Option<ArrayD<f32>>) {
        self.options.field_map = map.map(Arc::new);
    }

    /// Takes other sensitivity maps from the next frame on.
    pub fn set_maps(&mut self, maps: Option<ArrayD<C32>>) {
        self.options.maps = maps.map(Arc::new);
        self.shared = None;
    }
}
