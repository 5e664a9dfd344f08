//! Reconstruction: from the samples of a frame, or of a series of frames, to images.

mod ahead;
mod folding;
mod intensity;
mod judge;
mod lanes;
mod options;
pub mod plan;
mod run;
mod search;
mod series;
mod spread;
mod stream;

use std::borrow::Cow;
use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Monitor, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector;
use rayspin_linop::{BlockDiagonal, CoilMaps, LinearOp};
use rayspin_run::{Recoverable, halve, with_cpu_fallback, with_recovery};

use crate::crop::centre_crop;
pub use crate::encoding::{
    BatchSizes, Certificate, Density, Extent, FFT_TOLERANCE, KernelStore, LAMBDA_MATRIX, LEAST_POINTS, Solve,
};
use crate::encoding::{
    Context, FrameCache, Inputs, Made, Observer, SharedMaps, Solving, measured, on_host, range_of, row_of,
};
pub(crate) use crate::maps::AXES_OF_SETS;
use crate::prepare::{self, Mixing, Preparation};
use crate::scan::{Frame, Samples};
pub use ahead::{compile_ahead, rehearse};
pub use folding::{second_set, second_set_bytes};
pub use intensity::take_intensity;
pub use options::{ReconOptions, RunOptions};
pub use rayspin_run::{
    CONFIDENCE, Certify, ITEMS_AHEAD as FRAMES_AHEAD, RESULTS_BEHIND as VOLUMES_BEHIND, StreamTimes,
};
pub use search::{LAMBDA, Searched};
pub use series::{Frames, ScanImage, Selection, reconstruct_frame, reconstruct_frames, reconstruct_scan};
pub use stream::{StreamEnd, StreamItem, Volume, reconstruct_stream};

/// One frame's image and how it came about.
#[derive(Debug, Clone)]
pub struct FrameImage {
    /// The image ρ, of the frame's matrix: signal per field of view, d(k) = ∫ c(x) ρ(x) e^{−i2πk·x} dx with x
    /// in fields of view of the image, or (1/N) Σ over its N voxels. The sample at the centre of k-space is
    /// the mean of the image, at any matrix. A full grid gives Σ d e^{+i2πk·x}, times the image's part of the
    /// encoded field of view where that is larger.
    pub image: ArrayD<C32>,
    /// How the iterations went, for methods that iterate.
    pub solve: Option<Solve>,
    /// Sensitivity maps `[coil, ...matrix]`, or `[set, coil, ...matrix]`, when the method used any.
    pub maps: Option<ArrayD<C32>>,
    /// What was assumed.
    pub notes: Vec<String>,
    /// What was measured of the transforms, with [`ReconOptions::certify`], where this frame is the first
    /// that they make.
    pub certificates: Vec<Certificate>,
}

/// The images of the frames of a slice that were solved for together; `image` is `[frame, …matrix]`.
pub(crate) type SeriesImage = FrameImage;

/// Reconstructs frames one after another, keeping the plans of the last trajectory.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::{C32, Geometry, Monitor};
/// use rayspin_device::Device;
/// use rayspin_mri::methods::Cartesian;
/// use rayspin_mri::recon::{ReconOptions, Reconstructor};
/// use rayspin_mri::scan::Frame;
///
/// let mut reconstructor = Reconstructor::new(&Device::cpu()?, ReconOptions::of(Cartesian::default()))?;
/// for brightness in [1.0, 2.0] {
///     let mut kspace = ArrayD::from_elem(vec![1, 8, 8], C32::from(1e-6));
///     kspace[[0, 4, 4]] = C32::from(brightness);
///     let frame = Frame::from_grid(kspace, Geometry::default())?;
///     let found = reconstructor.frame(frame, &Monitor::silent())?;
///     assert!(found.image.iter().all(|v| (v - brightness).norm() < 1e-3));
/// }
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Reconstructor {
    device: Device,
    options: ReconOptions,
    cache: FrameCache,
    /// The range of the field map, over all frames.
    field_range: Option<[f64; 2]>,
    /// Whether the maps of a frame are to be had after it, and these.
    remember: bool,
    used: Option<CoilMaps<f32>>,
    /// What the coils of the frames to come become first.
    mixing: Option<Arc<Mixing>>,
    /// What may be cut of the frame in work.
    extent: Extent,
}

impl Recoverable for Reconstructor {
    fn device(&self) -> &Device {
        &self.device
    }

    fn beside(&self) -> &[Device] {
        if self.options.run.coils_beside { &self.options.run.beside } else { &[] }
    }

    fn finish_on_cpu(&self) -> bool {
        self.options.run.finish_on_cpu
    }

    fn give_back(&mut self) {
        self.cache.give_back();
    }

    fn reduce_batch(&mut self) -> Result<Option<String>> {
        let batch_sizes = &mut self.options.run.batch_sizes;
        Ok(halve(&batch_sizes.list(&self.extent), true).map(|(size, to)| {
            batch_sizes.set(size.name, to);
            (size.describe)(to)
        }))
    }

    fn move_to(&mut self, device: Device) {
        // Plans are of the device that is left.
        self.cache.give_back();
        self.device = device;
        if self.options.run.coils_beside {
            self.options.run.beside.clear();
        }
    }
}

impl Extent {
    /// The extent of a frame that has `coils` coils once it is prepared; over a temporal basis, of all the
    /// frames of a series together that are measured as this one.
    pub fn of(frame: &Frame, coils: usize, options: &ReconOptions) -> Self {
        let one_set = options.map_sets() == 1;
        let on_grid = matches!(frame.samples, Samples::Cartesian { .. });
        let settings = options.settings();
        let of_kind = (row_of(on_grid, &settings).extent)(frame, &settings);
        // The even share. A batch size may leave the first device less of it.
        let devices = options.shares(coils).map_or(0, |shares| shares.len());
        let first = coils.checked_div(devices).unwrap_or(0);
        Self { coils, maps: options.needs_maps() && one_set, first, ..of_kind }
    }
}

impl Reconstructor {
    /// A reconstructor with checked options.
    pub fn new(device: &Device, options: ReconOptions) -> Result<Self> {
        device.cpu_side().run(|| options.validate())?;
        Ok(Self::of_checked(device, options))
    }

    /// A reconstructor with options that were checked before.
    fn of_checked(device: &Device, options: ReconOptions) -> Self {
        let field_range = options.field_map.as_deref().map(range_of);
        Self {
            device: device.clone(),
            options,
            cache: FrameCache::default(),
            field_range,
            remember: false,
            used: None,
            mixing: None,
            extent: Extent::default(),
        }
    }

    /// Calls `observer` with the image after each iteration (it is copied to the host for that, which takes
    /// time).
    pub fn observe(&mut self, observer: Observer) {
        self.cache.observer = Some(observer);
    }

    /// Reconstructs one frame.
    ///
    /// If a GPU's memory runs out, the reconstructor frees what it made and begins the frame anew. It then
    /// does half as much at once ([`BatchSizes::list`]), for later frames too, and says so in the notes. With
    /// [`RunOptions::finish_on_cpu`] the CPU takes over where that does not help, and where the GPU fails.
    ///
    /// Errors: a method that does not suit the frame, maps of another shape, no calibration centre, memory, a
    /// device that fails, interruption.
    pub fn frame(&mut self, frame: Frame, monitor: &Monitor<'_>) -> Result<FrameImage> {
        self.frame_of(frame, None, monitor)
    }

    /// [`Self::frame`] of a frame that the caller keeps, in case that the device fails.
    fn kept_frame(&mut self, frame: &Frame, monitor: &Monitor<'_>) -> Result<FrameImage> {
        let mut notes = Vec::new();
        self.extent = Extent::of(frame, self.coils(frame), &self.options);
        let mut done =
            with_recovery(self, &mut notes, |recon, _| recon.attempt(Cow::Borrowed(frame), None, monitor))?;
        done.notes.append(&mut notes);
        Ok(done)
    }

    /// Reconstructs a frame that several are joined to, with the number of samples of each
    /// ([`joined`](crate::encoding::joined)): the coefficients of a temporal basis, `[coefficient, …matrix]`.
    /// Errors: as [`Self::frame`].
    fn frame_of(
        &mut self,
        frame: Frame,
        of_frames: Option<Vec<usize>>,
        monitor: &Monitor<'_>,
    ) -> Result<FrameImage> {
        let mut notes = Vec::new();
        self.extent = Extent::of(&frame, self.coils(&frame), &self.options);
        if of_frames.is_some() {
            self.extent.points = measured(&frame);
        }
        let mut frame = Some(frame);
        let mut done = with_recovery(self, &mut notes, |recon, last| {
            let frame = if last { frame.take().map(Cow::Owned) } else { frame.as_ref().map(Cow::Borrowed) };
            let frame = frame.ok_or_else(|| Error::value("frame", "one", "none"))?;
            recon.attempt(frame, of_frames.clone(), monitor)
        })?;
        done.notes.append(&mut notes);
        Ok(done)
    }

    /// Coils of a frame once it is prepared.
    fn coils(&self, frame: &Frame) -> usize {
        self.mixing.as_ref().map_or(frame.coils(), |mixing| mixing.kept())
    }

    fn context(&self, coils: usize) -> Context {
        Context {
            coils,
            prepared: self.mixing.is_some(),
            shared_maps: self.cache.shared.is_some(),
            field_range: self.field_range,
            together: 1,
            maps_alone: false,
            spread: false,
        }
    }

    /// Reconstructs one frame as the options say. What it owns is given up as soon as it is on the device.
    fn attempt(
        &mut self,
        frame: Cow<'_, Frame>,
        of_frames: Option<Vec<usize>>,
        monitor: &Monitor<'_>,
    ) -> Result<FrameImage> {
        if let Some(shares) = self.options.spread(&self.device, self.coils(&frame)) {
            return self.attempt_spread(&frame, of_frames.as_deref(), &shares, monitor);
        }
        let context = self.context(self.coils(&frame));
        let mut inputs = Inputs::new(frame).of_frames(of_frames);
        let samples = inputs.take_samples()?;
        let mixing = self.mixing.clone();
        let spec = self.options.encoding(&self.device, &inputs, context)?;
        let mut solving = Solving::new(&spec, samples, mixing.as_deref(), &mut self.cache)?;
        let made = rayspin_run::run(self.options.steps(&spec)?, &mut solving, monitor)
            .and_then(|()| solving.into_made());
        drop(spec);
        self.done(made)
    }

    /// What becomes of the frame's coils first.
    fn prepare(
        &mut self,
        preparation: &mut Preparation,
        frame: &Frame,
        notes: &mut Vec<String>,
        monitor: &Monitor<'_>,
    ) -> Result<()> {
        let compresses = preparation.compresses();
        let mut find =
            || with_cpu_fallback(self, notes, |device, notes| preparation.mixing(device, frame, notes));
        self.mixing = if compresses { monitor.stage(prepare::STAGE, 0, find) } else { find() }?;
        Ok(())
    }

    /// The maps that a frame's samples tell, to be shared by others; nothing is kept of its plans.
    fn estimate(
        &mut self,
        frame: &Frame,
        notes: &mut Vec<String>,
        monitor: &Monitor<'_>,
    ) -> Result<SharedMaps> {
        self.cache.give_back();
        self.extent = Extent::of(frame, self.coils(frame), &self.options);
        let (maps, estimate_notes) = with_recovery(self, notes, |recon, _| {
            let (maps, notes) = recon.estimate_once(frame, None, monitor)?;
            let maps = match recon.options.shares(recon.coils(frame)) {
                // They go to several devices, from the host.
                Some(_) => on_host(&recon.device, maps.into_host()?)?.into(),
                None => maps,
            };
            Ok((SharedMaps::new(maps, recon.options.run.copies_maps())?, notes))
        })?;
        notes.extend(estimate_notes);
        Ok(maps)
    }

    fn estimate_once(
        &mut self,
        frame: &Frame,
        of_frames: Option<&[usize]>,
        monitor: &Monitor<'_>,
    ) -> Result<(CoilMaps<f32>, Vec<String>)> {
        let context = self.context(self.coils(frame));
        let mut inputs = Inputs::new(Cow::Borrowed(frame)).of_frames(of_frames.map(<[usize]>::to_vec));
        let samples = inputs.take_samples()?;
        let mixing = self.mixing.clone();
        let context = Context { shared_maps: false, maps_alone: true, ..context };
        let spec = self.options.encoding(&self.device, &inputs, context)?;
        let mut solving = Solving::new(&spec, samples, mixing.as_deref(), &mut self.cache)?;
        let run = rayspin_run::run(spec.encoding_steps(), &mut solving, monitor);
        let estimated = run.and_then(|()| solving.into_maps());
        // The images that follow need other plans.
        self.cache.give_back();
        estimated
    }

    /// Reconstructs frames that the method solves for together: `[frame, …matrix]`. Errors: as
    /// [`Self::frame`]; frames of different matrices.
    fn series(&mut self, frames: &[Frame], monitor: &Monitor<'_>) -> Result<SeriesImage> {
        let Some(first) = frames.first() else { return Err(Error::value("frames", "at least one", 0)) };
        let mut notes = Vec::new();
        self.extent = Extent::of(first, self.coils(first), &self.options);
        let mut done =
            with_recovery(self, &mut notes, |recon, _| recon.attempt_series(first, frames, monitor))?;
        done.notes.append(&mut notes);
        Ok(done)
    }

    fn attempt_series(
        &mut self,
        first: &Frame,
        frames: &[Frame],
        monitor: &Monitor<'_>,
    ) -> Result<SeriesImage> {
        let shared_before = self.cache.shared.clone();
        let made = self.solve_together(first, frames, monitor);
        if !self.remember {
            self.cache.shared = shared_before;
        }
        self.done(made)
    }

    fn solve_together(&mut self, first: &Frame, frames: &[Frame], monitor: &Monitor<'_>) -> Result<Made> {
        let mixing = self.mixing.clone();
        let mut normals: Vec<Arc<dyn LinearOp<C32>>> = Vec::with_capacity(frames.len());
        let mut rhs: Option<Array<C32>> = None;
        let mut made = None;
        for (index, frame) in frames.iter().enumerate() {
            if frame.matrix != first.matrix {
                return Err(Error::value(
                    "frames of a series",
                    "one matrix throughout",
                    "different matrices",
                ));
            }
            let context = self.context(self.coils(frame));
            let mut inputs = Inputs::new(Cow::Borrowed(frame));
            let samples = inputs.take_samples()?;
            let spec = self.options.encoding(&self.device, &inputs, context)?;
            let mut solving = Solving::new(&spec, samples, mixing.as_deref(), &mut self.cache)?;
            rayspin_run::run(spec.frame_of_series(), &mut solving, monitor)?;
            let (one, normal) = (solving.take_rhs()?, solving.normal()?);
            let stacked = match &mut rhs {
                Some(stacked) => stacked,
                None => rhs.insert(Array::zeros(&self.device, &[&[frames.len()], one.shape()].concat())?),
            };
            rayspin_core::expect_shape("frame of a series", &stacked.shape()[1..], one.shape())?;
            vector::copy_part(&one, 0, stacked, index * one.len(), one.len())?;
            normals.push(normal);
            let part = solving.into_encoded();
            if self.cache.shared.is_none()
                && !self.options.independent
                && let Some(maps) = &part.maps
            {
                self.cache.shared = Some(SharedMaps::new(maps.clone(), false)?);
            }
            made = Some(match made {
                None => part,
                Some(so_far) => Made::with(so_far, part),
            });
            monitor.check()?;
        }
        let (Some(rhs), Some(made)) = (rhs, made) else {
            return Err(Error::value("frames", "at least one", 0));
        };
        let context = Context { together: frames.len(), ..self.context(self.coils(first)) };
        let inputs = Inputs::new(Cow::Borrowed(first));
        let spec = self.options.encoding(&self.device, &inputs, context)?;
        let normal = Arc::new(BlockDiagonal::new(normals)?);
        let mut solving = Solving::of_series(&spec, &mut self.cache, rhs, normal);
        rayspin_run::run(self.options.method.steps(&spec)?, &mut solving, monitor)?;
        let solved = solving.into_made()?;
        let Made { image, solve, notes, .. } = solved;
        Ok(Made { image, solve, ..made }.with(Made {
            image: ArrayD::zeros(vec![0]),
            solve: None,
            maps: None,
            notes,
            certificates: Vec::new(),
        }))
    }

    /// What is kept of a frame that is done.
    fn done(&mut self, made: Result<Made>) -> Result<FrameImage> {
        self.cache.close(made.is_ok());
        let made = made?;
        self.used = made.maps.clone().filter(|_| self.remember);
        let series = usize::from(self.options.solves_together());
        let matrix = made.image.shape()[series..].to_vec();
        let maps = match made.maps.filter(|_| self.options.keep_maps) {
            None => None,
            Some(maps) => {
                let maps = maps.into_host()?;
                let leading = maps.shape()[..maps.ndim() - matrix.len()].to_vec();
                Some(centre_crop(maps, &[&leading[..], &matrix].concat())?)
            }
        };
        let Made { image, solve, notes, certificates, .. } = made;
        Ok(FrameImage { image, solve, maps, notes, certificates })
    }

    /// Takes other sensitivity maps from the next frame on.
    pub fn set_maps(&mut self, maps: Option<ArrayD<C32>>) {
        self.options.maps = maps.map(Arc::new);
        self.cache.shared = None;
    }

    /// Takes another field map from the next frame on, within the range of the first one.
    pub fn set_field_map(&mut self, map: Option<ArrayD<f32>>) {
        self.options.field_map = map.map(Arc::new);
    }
}
