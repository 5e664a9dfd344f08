//! From a plan to images.

use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Image, Monitor};
use rayspin_device::{Backend, BackendKind, Device};
use rayspin_io::Protocol;
use rayspin_io::cfl::Layout;
use rayspin_io::kernel_cache::KernelCache;
use rayspin_mri::methods;
use rayspin_mri::recon::{
    Certificate, Frames, LAMBDA, ReconOptions, ScanImage, Searched, Solve, StreamEnd, StreamTimes, Volume,
    compile_ahead, reconstruct_frame, reconstruct_frames, reconstruct_scan,
};
use rayspin_mri::scan::{Frame, Label};
use rayspin_report::number;
use rayspin_run::Value;

use super::choose::Session;
use super::plan::Planned;
use super::read::read_part;
use super::request::Request;
use super::source::{Made, Source};
use super::stream::layout_of;
use super::taken::Taken;
use super::{record, stopped};
use crate::compute_target::{expect_memory, peaks};
use crate::{Error, Result, Told};

/// Images, how they came about, and the record so far.
pub struct Finished<'a> {
    /// The request.
    pub request: Arc<Request>,
    /// What decided the images.
    pub options: ReconOptions,
    /// Where they were computed.
    pub device: Device,
    /// What was told. The running stage of the record is the reconstruction.
    pub told: Told<'a>,
    /// The image; none of a stream, whose volumes went to the sink.
    pub image: Option<Image>,
    /// Its `[z, y, x]`.
    pub shape: [usize; 3],
    /// Volumes of the image: repetitions, windows and so on, or the coefficients of a temporal basis.
    pub volumes: usize,
    /// The volumes that were reconstructed, as the labels of their slices 0.
    pub labels: Vec<Label>,
    /// Stacks of slices, which are files of their own.
    pub stacks: usize,
    /// One entry a frame that was solved for iteratively.
    pub solves: Vec<Solve>,
    /// Sensitivity maps, as of [`ScanImage`].
    pub maps: Option<ArrayD<C32>>,
    /// What was measured of the transforms.
    pub certificates: Vec<Certificate>,
    /// The λ that was searched for.
    pub searched: Option<Searched>,
    /// The times of a stream.
    pub times: Option<StreamTimes>,
    /// Where the axes of images and maps go in a BART array.
    pub layout: Layout,
    /// What the scan tells of the acquisition, where it has a header.
    pub protocol: Option<Arc<Protocol>>,
    /// The part of the scan that the images show, where its images are numbered.
    pub taken: Option<Taken>,
}

impl<'a> Planned<'a> {
    /// Compiles kernels, reconstructs, and recovers from a GPU that fails. `sink` takes the volumes of a
    /// [stream](Self::stream) as soon as each is done. The result of any other run holds the image.
    ///
    /// Errors: memory; whatever reading, reconstructing and the sink come to.
    pub fn run<E: From<Error> + From<rayspin_core::Error> + Send>(
        mut self,
        sink: &mut (dyn FnMut(Volume) -> std::result::Result<(), E> + Send),
    ) -> std::result::Result<Finished<'a>, E> {
        self.ready()?;
        let layout = layout_of(self.source.layout(), &self.session.options);
        let taken = self.shape.taken.take();
        let protocol = self.shape.protocol.take();
        let Self { mut session, source, mut shape, .. } = self;
        let made = shape.take_made();
        drop(shape);
        session.told.recorder.stage("reconstruct");
        let Session { request, options, told, target, .. } = &session;
        let monitor = &told.monitor;
        let labels = source.volumes();
        let volumes = options.images_of(labels.len());
        // No part of a reference shows coefficients.
        let taken = taken.filter(|_| options.basis.is_none());
        let (mut size, mut stacks) = ([0; 3], 1);
        let (image, end) = match source {
            Source::Stream(stream) => {
                let mut seen = |volume: Volume| {
                    size.copy_from_slice(volume.data.shape());
                    stacks = volume.stacks.len();
                    sink(volume)
                };
                (None, stream.run(&target.device, options, made, &mut seen, monitor)?)
            }
            other => {
                let made = reconstruct(&target.device, request, other, made, options, monitor);
                let made = made.map_err(|error| match error {
                    Error::Core(error) => request.input.error(error),
                    other => other,
                })?;
                let ScanImage { image, solves, maps, notes, certificates, searched } = made;
                (size, stacks) = (image.shape_zyx(), image.stacks().len());
                let times = StreamTimes::default();
                (Some(image), StreamEnd { solves, maps, notes, certificates, searched, times })
            }
        };
        let StreamEnd { solves, maps, notes, certificates, searched, times } = end;
        let times = image.is_none().then_some(times);
        session.told.record_stages();
        notes.into_iter().for_each(|note| session.told.say(note));
        if let Some(folder) = &session.request.cache {
            let (count, bytes) = KernelCache::new(folder).map_err(Error::from)?.size();
            let bytes = number::bytes(bytes);
            session
                .told
                .monitor
                .note(&format!("`--cache`: {count} kernels, {bytes}; nothing in it is ever deleted"));
        }
        if let Some(search) = &searched {
            let lambda = (LAMBDA.to_owned(), Value::Number(search.lambda));
            session.options.method = methods::with(&*session.options.method, [lambda])?;
        }
        let Session { request, told, options, target, .. } = session;
        let device = target.device;
        Ok(Finished {
            request,
            options,
            device,
            told,
            image,
            shape: size,
            volumes,
            labels,
            stacks,
            solves,
            maps,
            certificates,
            searched,
            times,
            layout,
            protocol,
            taken,
        })
    }

    /// What [`Self::run`] does first: it opens what the run keeps from others, records the plan, and compiles
    /// kernels. A program that is to be interrupted at once until the images begin calls it before.
    ///
    /// Errors: memory; a folder of kernels that cannot be opened; an option out of range.
    pub fn ready(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_ready, true) {
            return Ok(());
        }
        expect_memory(&self.plan)?;
        let Self { session, plan, limits, source, .. } = self;
        let Session { request, options, told, target, .. } = session;
        let recorder = &mut told.recorder;
        if let Some(folder) = &request.cache {
            options.run.kernels = Some(Arc::new(KernelCache::new(folder)?));
        }
        options.certify = request.certify;
        options.validate()?;
        let batch_sizes = options.run.batch_sizes;
        recorder.parameter("memory limit", serde_json::json!(target.memory));
        recorder.parameter("memory stated", plan.peak());
        recorder.parameter("GPU memory limit", serde_json::json!(limits.gpu));
        recorder.parameter("GPU memory stated", plan.budget.gpu_peak());
        recorder.parameter("coils at a time", serde_json::json!(batch_sizes.coils));
        recorder.parameter("maps held", serde_json::json!(batch_sizes.maps));
        recorder.parameter("time segments held", serde_json::json!(batch_sizes.segments));
        recorder.parameter("points at a time", serde_json::json!(batch_sizes.points));
        if let Some(shares) = options.shares(self.shape.coils) {
            recorder.parameter("coils of devices", shares);
        }
        recorder.parameter("read image by image", matches!(source, Source::Parts { .. }));
        recorder.parameter("budget", serde_json::to_value(&plan.budget)?);
        self.compile_ahead();
        Ok(())
    }

    /// Compiles the kernels of a GPU together. A memory limit counts no compilers, so that they then run one
    /// at a time, when a kernel is needed.
    fn compile_ahead(&mut self) {
        let Self { session, source, shape, .. } = self;
        if session.target.device.kind() == BackendKind::Cuda
            && session.target.memory.is_none()
            && let Some(frame) = shape.frame(source)
        {
            session.told.recorder.stage("compile kernels");
            compile_ahead(&session.target.device, frame, &session.options);
        }
    }
}

impl Finished<'_> {
    /// Records what decided the images, how the iterations went, and what was told; says what stopped above
    /// its tolerance.
    pub fn record(&mut self) -> Result<()> {
        let tolerance = self.request.method.has("tolerance");
        if let Some(note) = stopped::note(&self.solves, &*self.options.method, tolerance) {
            self.told.say(note);
        }
        let Self { told, options, request, .. } = self;
        let recorder = &mut told.recorder;
        if let Some(search) = &self.searched {
            recorder.parameter("lambda searched", serde_json::to_value(search)?);
        }
        recorder.parameter("certificates", serde_json::json!(self.certificates));
        recorder.parameter("cache", serde_json::json!(request.cache));
        if let Some(times) = &self.times {
            recorder.parameter("images per second", self.volumes as f64 / times.wall);
            recorder.parameter("seconds of the stream", serde_json::to_value(times)?);
        }
        record::parameters(recorder, request, options);
        if options.basis.is_none() {
            record::volumes(recorder, &self.labels);
        }
        record::solves(recorder, &self.solves);
        if let Backend::Cuda(cuda) = self.device.backend() {
            recorder.parameter("GPU memory peak", cuda.memory_used().1);
            let beside = peaks(&options.run.beside);
            if !beside.is_empty() {
                recorder.parameter("GPU memory peaks beside", beside);
            }
        }
        Ok(())
    }
}

/// Reconstructs whatever the scan holds, but for streams.
fn reconstruct(
    device: &Device,
    request: &Request,
    source: Source,
    made: Option<Made>,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let Request { frames: assembly, selection, .. } = request;
    match source {
        Source::Whole { scan, notes, labels, slices, only } => {
            let frames = Frames { labels: &labels, slices: &slices, notes };
            if let Some(frame) = only {
                drop(scan);
                let mut frame = Some(*frame);
                let gone = || rayspin_core::Error::value("frame", "one", "none");
                let mut take = |_, _: &mut Vec<String>| frame.take().ok_or_else(gone);
                return Ok(reconstruct_frames(device, frames, &mut take, options, monitor)?);
            }
            let index = scan.frames()?;
            let mut made = first(made, &labels);
            let mut assemble = |label, notes: &mut Vec<String>| match taken(&mut made, label, notes) {
                Some(frame) => Ok(frame),
                None => index.assemble(label, assembly, notes),
            };
            Ok(reconstruct_frames(device, frames, &mut assemble, options, monitor)?)
        }
        Source::Series { scan, .. } => {
            Ok(reconstruct_scan(device, &scan, selection, assembly, options, monitor)?)
        }
        Source::Parts { labels, slices, notes } => {
            let path = request.input.file().unwrap_or_else(|| std::path::Path::new(""));
            let frames = Frames { labels: &labels, slices: &slices, notes };
            let mut made = first(made, &labels);
            let mut read = |label, notes: &mut Vec<String>| match taken(&mut made, label, notes) {
                Some(frame) => Ok(frame),
                None => read_part(path, label, request, notes, monitor),
            };
            of_reader(device, frames, &mut read, options, monitor)
        }
        Source::Frame(array) => {
            let (frame, notes) = match Arc::try_unwrap(array) {
                Ok(array) => (array.frame, array.notes),
                // Its owner keeps the array.
                Err(array) => (array.frame.clone(), array.notes.clone()),
            };
            Ok(reconstruct_frame(device, frame, notes, options, monitor)?)
        }
        Source::Arrays { series, labels, slices, notes } => {
            let frames = Frames { labels: &labels, slices: &slices, notes };
            let mut made = first(made, &labels);
            let mut read = |label, notes: &mut Vec<String>| match taken(&mut made, label, notes) {
                Some(frame) => Ok(frame),
                None => Ok(series.frame(label, notes)?),
            };
            of_reader(device, frames, &mut read, options, monitor)
        }
        Source::Stream(_) => {
            let whole = "a scan whose images are made together";
            Err(rayspin_core::Error::value("source", whole, "a stream").into())
        }
    }
}

/// The frame that was looked at, if it is the first of these images; else its memory is given up.
fn first(made: Option<Made>, labels: &[Label]) -> Option<Made> {
    made.filter(|(frame, _)| labels.first() == Some(&frame.label))
}

/// The frame that was looked at, where its image comes.
fn taken(made: &mut Option<Made>, label: Label, notes: &mut Vec<String>) -> Option<Frame> {
    let (frame, assumed) = made.take_if(|(frame, _)| frame.label == label)?;
    notes.extend(assumed.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>());
    Some(frame)
}

/// Reconstructs the frames of a reader. An error of the reader is returned as it is, and not as one of the
/// reconstruction.
fn of_reader(
    device: &Device,
    frames: Frames<'_>,
    read: &mut dyn FnMut(Label, &mut Vec<String>) -> Result<Frame>,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let mut broken = None;
    let mut next = |label, notes: &mut Vec<String>| {
        read(label, notes).map_err(|error| {
            let text = error.to_string();
            broken = Some(error);
            rayspin_core::Error::value("scan", "images that can be read", text)
        })
    };
    let result = reconstruct_frames(device, frames, &mut next, options, monitor);
    match broken {
        Some(error) => Err(error),
        None => Ok(result?),
    }
}
