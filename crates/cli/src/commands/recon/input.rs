//! From the command line and the scan to a plan that fits.

use anyhow::{Context as _, Result};
use rayspin::core::Monitor;
use rayspin::device::{BackendKind, Device};
use rayspin::io;
use rayspin::mri::maps::{second_set, second_set_bytes};
use rayspin::mri::methods::{self, Method, Span};
use rayspin::mri::prepare::Noise;
use rayspin::mri::recon::{LAMBDA, ReconOptions, compile_ahead};
use rayspin::mri::scan::{Facts, Samples};
use rayspin::run::{Limits, OverBudget, Plan};
use rayspin_shell::effect::refuse_idle;
use rayspin_shell::{Context, Undecided};

use super::{Session, arrays, effect, files, options, plan, record};
use crate::args::mri::ReconMri;
use crate::methods::methods;

/// Errors: an output that cannot be written.
pub(super) fn check_outputs(args: &ReconMri) -> Result<()> {
    args.outputs.iter().try_for_each(|output| files::check_output(output, io::Format::writes_images))?;
    args.save_maps.iter().try_for_each(|maps| files::check_output(maps, io::Format::writes_arrays))
}

/// A scan that was read, and what a run of it takes.
pub(super) struct Read {
    pub(super) source: plan::Source,
    pub(super) shape: plan::Shape,
    /// Bytes of the process before it read anything.
    process: u64,
}

/// A run that fits.
pub(super) struct Fitted {
    pub(super) plan: Plan,
    pub(super) limits: Limits,
    pub(super) source: plan::Source,
    pub(super) shape: plan::Shape,
}

impl<'a> Session<'a> {
    /// Errors: an option out of range, a file that an option names and that cannot be read.
    pub(super) fn begin(context: &'a Context, args: &'a ReconMri) -> Result<Self> {
        let recorder = files::recorder(context);
        let monitor = Monitor::new(&context.console, Some(&rayspin_shell::interrupt::STOP));
        let mut options = options::options(args)?;
        options.validate()?;
        options.keep_maps = args.save_maps.is_some();
        options.run.finish_on_cpu = context.finish_on_cpu;
        let scan_options = options::scan_options(args)?;
        let (device, starting) = (context.device.clone(), None);
        Ok(Self { context, args, monitor, recorder, scan_options, options, device, starting })
    }

    /// What is known of the run before the scan is read. Errors: an option that does nothing.
    pub(super) fn known(&mut self) -> Result<effect::Run<'a>> {
        self.recorder.stage("read");
        let run = effect::Run {
            args: self.args,
            format: io::detect(&self.args.scan)?,
            numbered: io::numbers_images(&self.args.scan)?,
            method: self.args.method.method(),
            scan: None,
        };
        self.refuse_idle(&run)?;
        if let Some(path) = &self.args.maps {
            self.options.maps = Some(std::sync::Arc::new(io::read_maps(path)?));
        }
        if let Some(path) = &self.args.field_map {
            self.options.field_map = Some(std::sync::Arc::new(arrays::read_field_map(path)?));
            self.options.validate().with_context(|| path.display().to_string())?;
        }
        Ok(run)
    }

    fn refuse_idle(&self, run: &effect::Run<'_>) -> Result<()> {
        if let Some(method) = run.method {
            self.args.method.refuse_idle(&self.context.given, method)?;
        }
        refuse_idle(effect::TABLE, &self.context.given, run)
    }

    /// Reads the scan.
    pub(super) fn read(&mut self) -> Result<Read> {
        let process = plan::process_bytes();
        self.starting = plan::starting(self.context, &self.args.run, &self.args.scan);
        let (source, shape) = self.read_scan(process, true)?;
        Ok(Read { source, shape, process })
    }

    fn read_scan(&self, process: u64, whole: bool) -> Result<(plan::Source, plan::Shape)> {
        let (args, selection) = (self.args, options::selection(self.args));
        let reading = plan::Reading { options: &self.scan_options, selection, process, whole };
        self.monitor.stage("read", 0, || plan::read(args, &reading, &self.monitor))
    }

    /// Tells and records something.
    fn say(&mut self, note: String) {
        self.monitor.note(&note);
        self.recorder.note(note);
    }

    /// Takes the method that the user named, or else one that suits the scan, with its images. Maps of a
    /// stream are learned for it.
    pub(super) fn choose_method(&mut self, mut read: Read, known: &mut effect::Run<'a>) -> Result<Read> {
        let Read { source, shape, .. } = &read;
        let frame = shape.frame(source).context("a frame")?;
        known.scan = Some(effect::Scan {
            on_grid: matches!(frame.samples, Samples::Cartesian { .. }),
            coils: frame.coils(),
            repetitions: source.repetitions(),
            noise: !matches!(shape.noise, None | Some(Noise::None)),
        });
        self.options.prepare.noise = shape.noise.clone();
        let facts = Facts::of(frame, shape.noise.as_ref(), shape.images(source))?;
        if !frame.measures_centre() {
            let lost = "the centre of k-space is not among the samples: the image shows edges, and no areas";
            self.say(lost.to_owned());
        }
        let method = match known.method {
            Some(method) => method,
            None => {
                let (method, reason) = self.suited(&mut read, &facts)?;
                self.say(format!("method {}: {reason} (--method chooses another)", method.about().name));
                method
            }
        };
        known.method = Some(method);
        self.refuse_idle(known)?;
        let Read { source, shape, process } = &mut read;
        let frame = shape.frame(source).context("a frame")?;
        record::used(&mut self.recorder, frame, &self.options, known.estimates_maps() == Some(true));
        let chosen = self.args.method.of(method)?;
        let typed = |name: &str| self.args.method.has(name) && !self.args.method.searches(name);
        let (chosen, rules) = methods::suited_to(&*chosen, &facts, typed)?;
        // A search begins at the rule's value, and tells the one that it finds.
        for rule in rules.into_iter().filter(|rule| !self.args.method.searches(rule.name)) {
            let option = rule.name.replace('_', "-");
            self.say(format!("{option} {}: {} (--{option} overrides)", rule.value, rule.reason));
        }
        self.options.method = self.args.method.with_images(&*chosen)?;
        self.options.search_lambda = self.args.method.searches(LAMBDA);
        self.options.validate()?;
        if self.args.map_sets.is_none() {
            let (before, took) = (plan::process_bytes(), second_set_bytes(frame, &self.options)?);
            if let Some((how, reason)) = second_set(&self.device.host(), frame, &self.options)? {
                self.options.sensitivities = Some(how);
                self.say(format!("map-sets {}: {reason} (--map-sets overrides)", how.sets()));
            }
            // The process keeps what the look at the maps took.
            *process += plan::process_bytes().saturating_sub(before).max(took);
        }
        if let plan::Source::Stream(stream) = source {
            self.monitor.stage("read", 0, || stream.learn_maps(&self.options, &self.monitor))?;
        }
        shape
            .prepare(&self.device, source, &self.options)
            .with_context(|| self.args.scan.display().to_string())?;
        Ok(read)
    }

    /// The method that suits the scan, and why. The images of a series are solved for together only if that method has the parameters
    /// that were typed, and fits the memory.
    fn suited(&self, read: &mut Read, facts: &Facts) -> Result<(&'static dyn Method, String)> {
        let field = self.args.field_map.is_some();
        let of = |facts: &Facts| methods().suited(facts, field).context("no method suits the scan");
        let is_together = |method: &dyn Method| method.uses().span == Span::Series;
        let alone = of(facts)?;
        let Read { source: plan::Source::Stream(stream), shape, .. } = &mut *read else { return Ok(alone) };
        let Some(first) = shape.of_series() else { return Ok(alone) };
        let (method, _) = of(&Facts { series: stream.repetitions(), ..facts.clone() })?;
        if !(is_together(method) && self.args.method.fit(method)) {
            return Ok(alone);
        }
        let (method, reason) = of(&stream.in_series(facts.clone(), first, &self.monitor)?)?;
        let together = is_together(method) && self.fits(read, method)?;
        Ok(if together { (method, reason) } else { alone })
    }

    /// Whether a run with this method fits the memory.
    fn fits(&self, Read { source, shape, process }: &Read, method: &dyn Method) -> Result<bool> {
        let limits = plan::limits(self.args.run.memory, &self.device, self.context.gpu_memory)?;
        let mut job = self.job(source, shape, *process);
        job.options.method = method.copy().into();
        let fitted = rayspin::run::plan_within(&mut job, &limits)
            .with_context(|| self.args.scan.display().to_string())?;
        Ok(fitted.is_ok_and(|plan| plan::expect_memory(&plan).is_ok()))
    }

    /// Decides where the run computes and how it is cut; with `--dry-run` it prints the plan and ends.
    ///
    /// Errors: limits that nothing fits.
    pub(super) fn plan(&mut self, read: Read) -> Result<Option<Fitted>> {
        let Read { mut source, mut shape, mut process } = read;
        let mut notes = Vec::new();
        if let Some(undecided) = self.context.undecided {
            process += self.decide(undecided, (&source, &shape), process, &mut notes)?;
        }
        let args = self.args;
        let mut limits = plan::limits(args.run.memory, &self.device, self.context.gpu_memory)?;
        let mut fitted = self.plan_within(&source, &shape, process, &limits)?;
        let host_is_short = |short: &OverBudget| args.run.memory.is_some_and(|limit| short.memory > limit);
        if fitted.as_ref().is_err_and(host_is_short)
            && matches!(&source, plan::Source::Whole { labels, .. } if labels.len() > 1)
        {
            drop((source, shape));
            (source, shape) = self.read_scan(process, false)?;
            shape.prepare(&self.device, &source, &self.options)?;
            fitted = self.plan_within(&source, &shape, process, &limits)?;
        }
        if let Err(short) = &fitted
            && self.context.finish_on_cpu
            && let Some(why) = plan::short_of_gpu(short, &limits)
        {
            notes.push(format!("computing on the CPU: {why}"));
            self.move_to(self.device.host());
            limits = plan::limits(args.run.memory, &self.device, None)?;
            fitted = self.plan_within(&source, &shape, process, &limits)?;
        }
        let plan = match fitted {
            Ok(plan) => plan,
            Err(short) => return Err(plan::refusal(&short, &limits, &args.scan, plan::LESS_MRI)),
        };
        for note in &notes {
            self.monitor.note(note);
            self.recorder.note(note.as_str());
        }
        if args.run.dry_run {
            files::print(&plan::table(&args.scan, &plan, &plan::cut(&plan, &self.options)))?;
            return Ok(None);
        }
        Ok(Some(Fitted { plan, limits, source, shape }))
    }

    /// Takes the GPU that is named, or one where the CPU is not done before it has started. Returns the bytes that starting it took.
    fn decide(
        &mut self,
        undecided: Undecided,
        (source, shape): (&plan::Source, &plan::Shape),
        process: u64,
        notes: &mut Vec<String>,
    ) -> Result<u64> {
        let plan = self.job(source, shape, process).whole()?;
        match plan::quicker_than_a_gpu_starts(undecided, &plan, &self.device) {
            Some(why) if rayspin::device::cuda::driver_installed() => {
                notes.push(format!("computing on the CPU: {why}"));
                Ok(0)
            }
            Some(_) => Ok(0),
            None => {
                self.recorder.stage("start GPU");
                let (device, took) = plan::open(undecided, self.context, self.starting.take())?;
                self.move_to(device);
                self.recorder.stage("plan");
                Ok(took)
            }
        }
    }

    fn move_to(&mut self, device: Device) {
        self.recorder.device(device.describe());
        self.device = device;
    }

    fn job<'s>(
        &'s self,
        source: &'s plan::Source,
        shape: &'s plan::Shape,
        process: u64,
    ) -> plan::PlanJob<'s> {
        let options = ReconOptions { run: self.with_full_batches(), ..self.options.clone() };
        plan::PlanJob {
            args: self.args,
            source,
            shape,
            process,
            options,
            device: &self.device,
            known: Default::default(),
        }
    }

    fn with_full_batches(&self) -> rayspin::mri::recon::RunOptions {
        rayspin::mri::recon::RunOptions { batch_sizes: Default::default(), ..self.options.run.clone() }
    }

    fn plan_within(
        &mut self,
        source: &plan::Source,
        shape: &plan::Shape,
        process: u64,
        limits: &Limits,
    ) -> Result<std::result::Result<Plan, OverBudget>> {
        let mut job = self.job(source, shape, process);
        let fitted = rayspin::run::plan_within(&mut job, limits)
            .with_context(|| self.args.scan.display().to_string())?;
        let batch_sizes = job.options.run.batch_sizes;
        self.options.run.batch_sizes = batch_sizes;
        Ok(fitted)
    }

    /// Compiles the kernels of a GPU together. `--memory` counts no compilers, so that they then run one at a time, when a kernel is needed.
    pub(super) fn compile_ahead(&mut self, fitted: &Fitted) {
        if self.device.kind() == BackendKind::Cuda
            && self.args.run.memory.is_none()
            && let Some(frame) = fitted.shape.frame(&fitted.source)
        {
            self.recorder.stage("compile kernels");
            compile_ahead(&self.device, frame, &self.options);
        }
    }

    /// Records the plan, and opens what the run keeps from others.
    pub(super) fn ready(&mut self, fitted: &Fitted) -> Result<()> {
        let Fitted { plan, limits, source, .. } = fitted;
        plan::expect_memory(plan)?;
        let args = self.args;
        if let Some(folder) = &args.cache {
            self.options.run.kernels = Some(std::sync::Arc::new(io::kernel_cache::KernelCache::new(folder)?));
        }
        self.options.certify = args.run.certify();
        self.options.validate()?;
        let recorder = &mut self.recorder;
        let batch_sizes = self.options.run.batch_sizes;
        recorder.parameter("memory limit", serde_json::json!(args.run.memory));
        recorder.parameter("memory stated", plan.peak());
        recorder.parameter("GPU memory limit", serde_json::json!(limits.gpu));
        recorder.parameter("GPU memory stated", plan.budget.gpu_peak());
        recorder.parameter("coils at a time", serde_json::json!(batch_sizes.coils));
        recorder.parameter("maps held", serde_json::json!(batch_sizes.maps));
        recorder.parameter("time segments held", serde_json::json!(batch_sizes.segments));
        recorder.parameter("points at a time", serde_json::json!(batch_sizes.points));
        recorder.parameter("read image by image", matches!(source, plan::Source::Parts { .. }));
        recorder.parameter("budget", serde_json::to_value(&plan.budget)?);
        Ok(())
    }

    /// The image to compare with.
    pub(super) fn read_reference(&self) -> Result<Option<io::ImageFile>> {
        Ok(self.args.run.reference.as_deref().map(io::read_image).transpose()?)
    }
}
