//! From a request and its scan to a method with all that it takes.

use std::path::PathBuf;
use std::sync::Arc;

use rayspin_core::{C64, Monitor};
use rayspin_device::cuda::Starting;
use rayspin_io::{self as io, AxisOrder};
use rayspin_mri::corrections::{self, Noise};
use rayspin_mri::methods::{self as library, Method, Span};
use rayspin_mri::recon::{LAMBDA, ReconOptions, take_intensity};
use rayspin_mri::recon::{second_set, second_set_bytes};
use rayspin_mri::scan::{Facts, Frame, Samples, in_time};
use rayspin_report::RunRecorder;
use serde_json::json;

use super::effect::{self, Known};
use super::options::options;
use super::plan::PlanJob;
use super::read::{self, Reading};
use super::request::{Beside, Input, Request, read_field_map};
use super::source::{Shape, Source};
use super::{basis, methods, record};
use crate::compute_target::process_bytes;
use crate::rows::refuse_idle_rows;
use crate::{ComputeTarget, Result, Told};

/// What all steps of a run share.
pub(super) struct Session<'a> {
    pub(super) request: Arc<Request>,
    pub(super) told: Told<'a>,
    pub(super) options: ReconOptions,
    pub(super) target: ComputeTarget,
    /// A GPU that starts while the scan is read.
    pub(super) starting: Option<Starting>,
    pub(super) known: Known,
}

impl Session<'_> {
    /// An error about the scan, with its file.
    pub(super) fn of_scan(&self, error: rayspin_core::Error) -> crate::Error {
        self.request.input.error(error)
    }

    fn refuse_idle(&self) -> Result<()> {
        let Request { method, given, .. } = &*self.request;
        if let Some(chosen) = self.known.method {
            method.refuse_idle(given, chosen)?;
        }
        refuse_idle_rows(options(), given, &self.effect())
    }

    fn effect(&self) -> effect::RunFacts<'_> {
        effect::RunFacts { request: &self.request, known: self.known }
    }

    pub(super) fn read(&self, process: u64, whole: bool) -> Result<(Source, Shape)> {
        let reading = Reading { request: &self.request, memory: self.request.memory, process, whole };
        let stage = if self.request.input.file().is_some() { "read" } else { "samples" };
        let monitor = &self.told.monitor;
        monitor.stage(stage, 0, || read::read(&reading, monitor))
    }

    pub(super) fn job<'s>(&'s self, source: &'s Source, shape: &'s Shape, process: u64) -> PlanJob<'s> {
        let batch_sizes = Default::default();
        let run = rayspin_mri::recon::RunOptions { batch_sizes, ..self.options.run.clone() };
        PlanJob {
            request: &self.request,
            source,
            shape,
            process,
            options: ReconOptions { run, ..self.options.clone() },
            device: &self.target.device,
            known: Default::default(),
        }
    }
}

/// A run whose request was checked, before its scan is read.
pub struct Begun<'a>(Session<'a>);

impl<'a> Begun<'a> {
    pub(super) fn new(
        request: Request,
        mut target: ComputeTarget,
        monitor: Monitor<'a>,
        recorder: RunRecorder,
    ) -> Result<Self> {
        target.memory = request.memory;
        let mut options = request.options.clone();
        options.method = match request.method.method() {
            Some(method) => request.method.of(method)?,
            None => options.method,
        };
        options.run.finish_on_cpu = target.finish_on_cpu;
        options.validate()?;
        let (format, header, numbered) = match &request.input {
            Input::File(path) => {
                let format = io::detect(path)?;
                let ordered = request.arrays.order.as_ref().is_some_and(AxisOrder::counts_images);
                (Some(format), format.reads_scans(), ordered || io::numbers_images(path)?)
            }
            Input::Scan(_) => (None, true, true),
            Input::Image(_) => (None, false, false),
        };
        let known = Known { format, header, numbered, method: request.method.method(), scan: None };
        let request = Arc::new(request);
        let (starting, told) = (None, Told::new(monitor, recorder));
        let mut session = Session { request, told, options, target, starting, known };
        session.refuse_idle()?;
        let covariance = session.request.noise_covariance.as_ref().map(Beside::covariance).transpose()?;
        session.options.prepare.noise_covariance = covariance;
        session.options.maps = match &session.request.maps {
            Some(Beside::File(path)) => Some(Arc::new(io::read_maps(path)?)),
            Some(Beside::Array(maps)) => Some(maps.clone()),
            None => None,
        };
        if session.request.intensity
            && let Some(maps) = &mut session.options.maps
        {
            session.options.intensity = Some(Arc::new(take_intensity(Arc::make_mut(maps))?));
        }
        session.options.field_map = match &session.request.field_map {
            Some(Beside::File(path)) => Some(Arc::new(read_field_map(path)?)),
            Some(Beside::Array(map)) => Some(map.clone()),
            None => None,
        };
        let of_field = |error| match &session.request.field_map {
            Some(Beside::File(path)) => io::Error::core(path, error).into(),
            _ => crate::Error::from(error),
        };
        session.options.validate().map_err(of_field)?;
        Ok(Self(session))
    }

    /// Reads the scan, or what of it memory allows.
    ///
    /// Errors: a scan that cannot be read, or does not fit the memory; images that it does not hold.
    pub fn read(mut self) -> Result<Understood<'a>> {
        let process = self.0.target.bytes_before();
        if let Input::File(path) = &self.0.request.input {
            self.0.starting = self.0.target.starting(path, self.0.request.dry_run);
        }
        let (source, shape) = self.0.read(process, true)?;
        let mut session = self.0;
        // One image has no basis, which is refused where the method is chosen.
        let volumes = source.volumes().len();
        if volumes > 1 {
            session.options.basis = basis::of(&session.request, volumes)?.map(Arc::new);
        }
        if let Some(basis) = &session.options.basis {
            let number = |v: &C64| if basis.is_complex() { json!([v.re, v.im]) } else { json!(v.re) };
            let rows = basis.matrix().outer_iter().map(|row| row.iter().map(number).collect()).collect();
            session.told.recorder.parameter("temporal basis", serde_json::Value::Array(rows));
            let Request { outputs, given, .. } = &*session.request;
            let loses =
                |path: &PathBuf| !io::Format::of_name(path).is_some_and(io::Format::writes_complex_first);
            if outputs.iter().any(loses) && !given.has("complex") && !given.has("phase") {
                let text = "coefficients have a sign: files of magnitudes lose it (`--complex` keeps it)";
                session.told.say(text.to_owned());
            }
        }
        let mut understood = Understood { session, source, shape, process };
        if let Some(text) = understood.summary() {
            understood.session.told.recorder.parameter("understood as", text);
        }
        for doubt in understood.doubts() {
            understood.session.told.notes.push(format!("warning: {doubt}"));
        }
        Ok(understood)
    }
}

/// A scan that was read, and what is known of it.
pub struct Understood<'a> {
    pub(super) session: Session<'a>,
    pub(super) source: Source,
    pub(super) shape: Shape,
    /// Bytes of the process before it read anything.
    pub(super) process: u64,
}

impl<'a> Understood<'a> {
    /// A frame to look at.
    fn frame(&self) -> Result<&Frame> {
        let missing = || rayspin_core::Error::value("scan", "a frame to look at", "none");
        Ok(self.shape.frame(&self.source).ok_or_else(missing)?)
    }

    /// What the scan was understood as, in a line.
    pub fn summary(&self) -> Option<String> {
        let summary = match &self.source {
            Source::Frame(array) => Some(array.summary()),
            Source::Arrays { series, .. } => {
                self.shape.frame(&self.source).map(|frame| series.summary(frame))
            }
            _ => self.shape.frame(&self.source).map(|frame| frame.summary()),
        }?;
        Some(match (self.shape.images(&self.source), &self.shape.uneven) {
            (1, _) => summary.to_string(),
            (images, None) => format!("{summary}, {images} images"),
            (images, Some(others)) => format!("{summary}, the fullest of {images} images: {others}"),
        })
    }

    /// What speaks against that, of samples without a header.
    pub fn doubts(&self) -> Vec<String> {
        let unsure = self.shape.frame(&self.source).filter(|_| self.source.of_array());
        unsure.map(|frame| frame.doubts()).unwrap_or_default()
    }

    /// The method that the user named, or one that suits the scan, which notes then say.
    ///
    /// Errors: no method that suits the scan.
    pub fn method(&mut self) -> Result<&'static dyn Method> {
        if let Some(method) = self.session.known.method {
            return Ok(method);
        }
        let facts = self.facts()?;
        let (method, reason) = self.suited(&facts)?;
        self.session
            .told
            .say(format!("method {}: {reason} (`--method` chooses another)", method.about().name));
        self.session.known.method = Some(method);
        Ok(method)
    }

    fn facts(&self) -> Result<Facts> {
        let facts = Facts::of(self.frame()?, self.shape.noise.as_ref(), self.shape.images(&self.source))?;
        Ok(match &self.session.options.basis {
            Some(basis) => facts.over(basis.frames(), basis.coefficients()),
            None => facts,
        })
    }

    /// Takes the method that the user named, or else one that suits the scan, with what its rules and its
    /// images say. Maps of a stream are learned for it.
    ///
    /// Errors: an option that does nothing; a value out of range; a file of an image that cannot be read.
    pub fn choose(mut self) -> Result<Chosen<'a>> {
        self.session.told.recorder.stage("plan");
        let frame = self.frame()?;
        let scan = effect::Scan {
            on_grid: matches!(frame.samples, Samples::Cartesian { .. }),
            coils: frame.coils(),
            volumes: self.source.volumes().len(),
            noise: !matches!(self.shape.noise, None | Some(Noise::None)),
        };
        let measures_centre = frame.measures_centre();
        self.session.known.scan = Some(scan);
        self.session.options.prepare.noise = self.shape.noise.clone();
        let facts = self.facts()?;
        if !measures_centre {
            let lost = "the centre of k-space is not among the samples: the image shows edges, and no areas";
            self.session.told.say(lost.to_owned());
        }
        let method = self.method()?;
        self.session.refuse_idle()?;
        let Self { mut session, mut source, mut shape, mut process } = self;
        let missing = || rayspin_core::Error::value("scan", "a frame to look at", "none");
        let frame = shape.frame(&source).ok_or_else(missing)?;
        let estimates = session.effect().estimates_maps() == Some(true);
        record::used(&mut session.told.recorder, frame, &session.options, estimates);
        if let Some((heads, encoding)) = &shape.heads {
            let known = corrections::Known { heads, encoding, noise: session.options.prepare.known_noise() };
            record::corrections(&mut session.told.recorder, &session.request.frames.corrections, &known);
        }
        let asked = session.request.method.clone();
        let typed = |name: &str| asked.has(name) && !asked.searches(name);
        let (chosen, rules) = library::suited_to(&*asked.of(method)?, &facts, typed)?;
        // A search begins at the rule's value, and tells the one that it finds.
        for rule in rules.into_iter().filter(|rule| !asked.searches(rule.name)) {
            let option = rule.name.replace('_', "-");
            session.told.say(format!("{option} {}: {} (`--{option}` overrides)", rule.value, rule.reason));
        }
        session.options.method = asked.with_images(&*chosen)?;
        session.options.search_lambda = asked.searches(LAMBDA);
        session.options.validate()?;
        // The images of a series over a basis are of one set.
        if !session.request.given.has("map_sets") && session.options.basis.is_none() {
            let (before, took) = (process_bytes(), second_set_bytes(frame, &session.options)?);
            if let Some((how, reason)) = second_set(&session.target.device.host(), frame, &session.options)? {
                session.options.sensitivities = Some(how);
                session.told.say(format!("map-sets {}: {reason} (`--map-sets` overrides)", how.sets()));
            }
            // The process keeps what the look at the maps took.
            process += process_bytes().saturating_sub(before).max(took);
        }
        if let Source::Stream(stream) = &mut source {
            let (options, monitor) = (&session.options, &session.told.monitor);
            monitor.stage("read", 0, || stream.learn_maps(options, monitor))?;
        }
        if let Source::Series { scan, another, .. } = &mut source {
            *another = None;
            let learned = session.options.learns_maps().then(|| learned(scan, &session.request));
            shape.maps = learned.transpose()?.flatten().map(Box::new);
        }
        let prepared = shape.prepare(&session.target.device, &source, &session.options);
        prepared.map_err(|error| session.of_scan(error))?;
        Ok(Chosen(Self { session, source, shape, process }))
    }

    /// The method that suits the scan, and why. The images of a series are solved for together only if that
    /// method has the parameters that were given, and fits the memory.
    fn suited(&mut self, facts: &Facts) -> Result<(&'static dyn Method, String)> {
        let field = self.session.request.field_map.is_some();
        let none = || rayspin_core::Error::value("method", "one that suits the scan", "none");
        let method_for = |facts: &Facts| methods().suited(facts, field).ok_or_else(none);
        let is_together = |method: &dyn Method| method.uses().span == Span::Series;
        let alone = method_for(facts)?;
        if self.session.options.basis.is_some() {
            return Ok(alone);
        }
        let volumes = self.source.volumes();
        if !in_time(&volumes) {
            return Ok(alone);
        }
        let volumes = volumes.len();
        let (method, _) = method_for(&Facts { series: volumes, ..facts.clone() })?;
        if !(is_together(method) && self.session.request.method.fit(method)) {
            return Ok(alone);
        }
        let Some(first) = self.shape.frame.as_deref() else { return Ok(alone) };
        let facts = facts.clone();
        let facts = match &mut self.source {
            Source::Stream(stream) => stream.in_series(facts, first, &self.session.told.monitor)?,
            Source::Series { another: Some(another), .. } => facts.in_series(volumes, first, another),
            _ => return Ok(alone),
        };
        let (method, reason) = method_for(&facts)?;
        let together = is_together(method) && self.fits(method)?;
        Ok(if together { (method, reason) } else { alone })
    }

    /// Whether a run with this method fits the memory.
    fn fits(&self, method: &dyn Method) -> Result<bool> {
        let limits = self.session.target.limits()?;
        let mut job = self.session.job(&self.source, &self.shape, self.process);
        job.options.method = method.copy().into();
        let fitted = rayspin_run::plan_within(&mut job, &limits);
        let fitted = fitted.map_err(|error| self.session.of_scan(error))?;
        Ok(fitted.is_ok_and(|plan| crate::compute_target::expect_memory(&plan).is_ok()))
    }
}

/// The samples that the maps of a series in memory are learned from.
fn learned(scan: &rayspin_mri::scan::Scan, request: &Request) -> rayspin_core::Result<Option<Frame>> {
    let Request { selection, frames, .. } = request;
    let index = scan.frames()?;
    let labels = selection.labels(&index, &mut Vec::new())?;
    let series = index.series(&labels, selection.window.as_ref(), frames.readouts.as_ref())?;
    Ok(series.maps(0, frames, &mut Vec::new())?.map(|(_, frame)| frame))
}

/// A run whose method is chosen.
pub struct Chosen<'a>(pub(super) Understood<'a>);
