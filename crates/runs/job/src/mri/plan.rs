//! What a run will take, and how it is cut to fit.

use std::sync::Arc;

use rayspin_device::{Device, cuda};
use rayspin_io::{Protocol, SeriesWriter};
use rayspin_mri::recon::plan::{self as core, Known};
use rayspin_mri::recon::{Extent, ReconOptions};
use rayspin_mri::scan::Label;
use rayspin_report::number;
use rayspin_run::{BatchSize, Budget, Job, Limits, OverBudget, Plan, plan_within};

use super::choose::{Chosen, Session, Understood};
use super::request::Request;
use super::source::{Shape, Source};
use super::stream::{self, StreamShape};
use crate::Result;
use crate::compute_target::plan_of;

/// A run whose batch sizes are to be found.
pub(super) struct PlanJob<'a> {
    pub(super) request: &'a Request,
    pub(super) source: &'a Source,
    pub(super) shape: &'a Shape,
    /// Bytes of the process before it read anything.
    pub(super) process: u64,
    /// With the batch sizes so far.
    pub(super) options: ReconOptions,
    pub(super) device: &'a Device,
    pub(super) known: Known,
}

impl Job for PlanJob<'_> {
    fn batch_sizes(&self) -> rayspin_core::Result<Vec<BatchSize>> {
        let extent = match self.shape.frame(self.source) {
            Some(frame) => Extent::of(frame, self.shape.coils, &self.options),
            None => Extent::default(),
        };
        Ok(self.options.run.batch_sizes.list(&extent))
    }

    fn set(&mut self, name: &str, to: usize) {
        self.options.run.batch_sizes.set(name, to);
    }

    fn plan(&self) -> rayspin_core::Result<Plan> {
        let Self { request, source, shape, device, ref known, .. } = *self;
        let missing = || rayspin_core::Error::value("scan", "a frame to plan for", "none");
        let frame = shape.frame(source).ok_or_else(missing)?;
        let image = frame.matrix.iter().product::<usize>() as u64;
        let frames = core::Planned {
            count: shape.frames,
            held: shape.held,
            assembled: shape.assembled,
            coils: shape.coils,
        };
        let core = match source {
            Source::Stream(stream) => stream.budget(frame, shape.coils, &self.options, device, known),
            Source::Series { volumes, slices, .. } => {
                let stream = core::Streaming {
                    frames: volumes.len(),
                    slices: *slices,
                    held: shape.held + shape.maps.as_deref().map_or(0, core::assembling),
                    coils: shape.coils,
                    maps: shape.maps.as_deref(),
                    plans_each: request.selection.window.is_some(),
                };
                core::of_stream(frame, &stream, &self.options, device, known)
            }
            _ => core::of_frames(frame, &frames, &self.options, device, known),
        }?;
        let (frames, result, cards) = (core.frames, core.result, core.cards);
        let mut budget = Budget { frames, result, cards, ..Budget::default() };
        budget.push(
            "read",
            match source {
                Source::Stream(stream) => shape.read.max(stream.learning_bytes()),
                _ => shape.read,
            },
        );
        budget.stages.extend(core.stages);
        // For each device beside the first there is a frame in work, one that waits for it, two images that
        // wait for others, and copies on their way; one that takes coils of the frame has copies alone.
        let beside = self.options.run.beside.iter();
        let staging = beside.map(|device| cuda::staging_bytes(device.cpu_side().threads())).sum::<u64>();
        let spread = self.options.shares(shape.coils).is_some();
        // Each slice's maps have a copy on the host, from which they go to all devices. Given maps that are
        // cut or mixed for a frame are its own.
        let slices = (shape.images(source) / shape.frames.max(1)).max(1) as u64;
        let own = self.options.maps.is_some() && (slices > 1 || self.options.independent);
        let maps = if own { 2 * shape.coils as u64 * 8 * image } else { 0 };
        let in_work = match spread {
            true => 0,
            false => core::assembling(frame) + core::samples_of(frame) + 4 * 8 * image + maps,
        };
        let shared = match self.options.run.beside.is_empty() || spread || !self.options.needs_maps() {
            true => 0,
            false => slices * shape.coils as u64 * 8 * image,
        };
        let more = staging + shared + self.options.run.beside.len() as u64 * in_work;
        budget.stages.iter_mut().filter(|stage| stage.name != "read").for_each(|stage| stage.bytes += more);
        let (images, result) = (8 * image * shape.images(source) as u64, budget.result);
        let process = self.process + shape.kept;
        // Images that are handed over together are held until the end. Writers of volumes count their own
        // memory.
        let together = match source {
            Source::Stream(_) => request.collects,
            Source::Series { .. } => true,
            _ => false,
        };
        if together {
            budget
                .stages
                .iter_mut()
                .filter(|stage| stage.name != "read")
                .for_each(|stage| stage.bytes += images);
        }
        if matches!(source, Source::Stream(_)) {
            return Ok(stream::with_writing(request, budget, images, process, device));
        }
        // Several volumes of a file are a stream.
        let writing = request.outputs.iter().map(|path| SeriesWriter::memory(path, 1, images));
        budget.push("write", result + writing.max().unwrap_or(0));
        if request.compared {
            // Both images in double precision, beside the reference.
            budget.push("metrics", result + images + 2 * images);
            for stage in &mut budget.stages {
                if stage.name != "metrics" && stage.name != "read" {
                    stage.bytes += images;
                }
            }
        }
        Ok(plan_of(budget, process, device))
    }
}

/// A run that fits.
pub struct Planned<'a> {
    /// Whether the plan is recorded and kernels are compiled.
    pub(super) is_ready: bool,
    pub(super) session: Session<'a>,
    pub(super) source: Source,
    pub(super) shape: Shape,
    pub(super) plan: Plan,
    pub(super) limits: Limits,
}

impl Planned<'_> {
    /// What it takes, stage by stage.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The method.
    pub fn method(&self) -> &'static str {
        self.session.options.method.about().name
    }

    /// What decides the images.
    pub fn options(&self) -> &ReconOptions {
        &self.session.options
    }

    /// What was told so far.
    pub fn notes(&self) -> &[String] {
        &self.session.told.notes
    }

    /// Whether the images are the volumes of the scan, and neither coil images nor coefficients of a temporal
    /// basis.
    pub fn is_of_volumes(&self) -> bool {
        let options = &self.session.options;
        !options.coil_images() && options.basis.is_none()
    }

    /// The images of a run that gives them one after another.
    pub fn stream(&self) -> Option<StreamShape> {
        match &self.source {
            Source::Stream(stream) => Some(stream.shape(&self.session.options)),
            _ => None,
        }
    }

    /// What the scan tells of the acquisition of its images, where it has a header.
    pub fn protocol(&self) -> Option<Arc<Protocol>> {
        self.shape.protocol.clone()
    }

    /// The volumes or windows, as the labels of their slices 0.
    pub fn labels(&self) -> Vec<Label> {
        self.source.volumes()
    }

    /// Slices of each volume; 1 of a volume that is measured as one.
    pub fn slices(&self) -> usize {
        self.shape.images(&self.source) / self.labels().len().max(1)
    }

    /// The axes of the image, `[z, y, x]` or `[volume, z, y, x]` of several; none of coil images and of
    /// several sets of maps.
    pub fn image_shape(&self) -> Option<Vec<usize>> {
        let options = &self.session.options;
        if options.coil_images() || options.map_sets() > 1 {
            return None;
        }
        let frame = self.shape.frame(&self.source)?;
        let (depth, plane) = frame.matrix.split_at(frame.matrix.len().checked_sub(2)?);
        let volumes = Some(options.images_of(self.labels().len())).filter(|volumes| *volumes > 1);
        let depth = self.slices() * depth.iter().product::<usize>();
        Some(volumes.into_iter().chain([depth]).chain(plane.iter().copied()).collect())
    }

    /// How it is cut, in words.
    pub fn cut(&self) -> String {
        cut(&self.plan, &self.session.options, self.shape.coils)
    }
}

/// How the coils of an image are spread over GPUs, in words.
fn spread(plan: &Plan, options: &ReconOptions, coils: usize) -> Option<String> {
    let shares = options.shares(coils)?;
    let coils: Vec<String> = shares.iter().map(usize::to_string).collect();
    let held: Vec<String> = plan.budget.cards.iter().map(|peak| number::bytes(*peak)).collect();
    let (coils, held) = (coils.join(" + "), held.join(" + "));
    Some(format!("coils {coils} on {} GPUs, which hold {held}", shares.len()))
}

/// How a run is cut, in words.
fn cut(plan: &Plan, options: &ReconOptions, coils: usize) -> String {
    let batch_sizes = &options.run.batch_sizes;
    let mut split =
        if plan.budget.frames == 1 { "1 image".into() } else { format!("{} images", plan.budget.frames) };
    split.extend(spread(plan, options, coils).map(|spread| format!(", {spread}")));
    split.extend(batch_sizes.coils.map(|batch| format!(", {batch} coils at a time")));
    split.extend(batch_sizes.maps.map(|held| format!(", maps of {held} coils on the GPU")));
    split.extend(batch_sizes.segments.map(|held| format!(", spectra of {held} time segments on the GPU")));
    split.extend(batch_sizes.points.map(|points| format!(", {points} points at a time")));
    split
}

impl<'a> Chosen<'a> {
    /// Decides where the run computes and how it is cut.
    ///
    /// Errors: limits that nothing fits; a GPU that does not work.
    pub fn plan(self) -> Result<Planned<'a>> {
        let Understood { mut session, mut source, mut shape, mut process } = self.0;
        let mut notes = Vec::new();
        let early = session.starting.is_some();
        if session.target.undecided.is_some() {
            let starting = session.starting.take();
            let plan = session.target.may_stay().then(|| session.job(&source, &shape, process).plan());
            let plan = plan.transpose().map_err(|error| session.of_scan(error))?;
            process +=
                session.target.decide(plan.as_ref(), starting, &mut session.told.recorder, &mut notes)?;
        }
        process += session.target.open_beside(early, &mut session.told.recorder, &mut notes)?;
        session.share_work(&source, &shape, &mut notes);
        let mut limits = session.target.limits()?;
        let sizes = session.options.run.batch_sizes;
        let mut fitted = session.plan_within(&source, &shape, process, &limits)?;
        let memory = session.target.memory;
        let host_is_short = |short: &OverBudget| memory.is_some_and(|limit| short.memory > limit);
        if fitted.as_ref().is_err_and(host_is_short)
            && session.request.input.file().is_some()
            && matches!(&source, Source::Whole { labels, .. } if labels.len() > 1)
        {
            drop((source, shape));
            (source, shape) = session.read(process, false)?;
            shape.prepare(&session.target.device, &source, &session.options)?;
            fitted = session.plan_within(&source, &shape, process, &limits)?;
        }
        if let Err(short) = &fitted
            && limits.gpu.is_some_and(|limit| short.gpu > limit)
            && session.may_share_coils(&shape)
        {
            let before = session.options.run.batch_sizes;
            session.options.run.coils_beside = true;
            session.options.run.batch_sizes = sizes;
            let spread = session.plan_within(&source, &shape, process, &limits)?;
            if spread.is_ok() {
                notes.push("one GPU has too little memory for an image: its coils go to all of them".into());
                fitted = spread;
            } else {
                session.options.run.coils_beside = false;
                session.options.run.batch_sizes = before;
            }
        }
        if let Err(short) = &fitted
            && let Some(why) = session.target.leave_gpu(short, &limits, &mut session.told.recorder)
        {
            notes.push(why);
            session.options.run.beside.clear();
            session.options.run.coils_beside = false;
            limits = session.target.limits()?;
            fitted = session.plan_within(&source, &shape, process, &limits)?;
        }
        notes.into_iter().for_each(|note| session.told.say(note));
        let plan = match fitted {
            Ok(plan) => plan,
            Err(short) => return Err(session.request.short().refusal(&short, &limits)),
        };
        if let Some(spread) = spread(&plan, &session.options, shape.coils) {
            session.told.say(spread);
        }
        Ok(Planned { is_ready: false, session, source, shape, plan, limits })
    }
}

impl Session<'_> {
    /// Decides what goes to the devices beside the first: the coils of each image, where images are fewer
    /// than devices and the method may share coils, or else images. `notes` say why they have nothing to do.
    fn share_work(&mut self, source: &Source, shape: &Shape, notes: &mut Vec<String>) {
        let (options, beside) = (&mut self.options, &mut self.target.beside);
        let images = shape.images(source);
        let few = images <= beside.len() || options.basis.is_some();
        options.run.coils_beside = !beside.is_empty() && few && options.may_share_coils() && shape.coils > 1;
        let name = options.method.about().name;
        let idle = if options.run.coils_beside {
            None
        } else if options.solves_together() {
            Some(format!("method {name} solves for all images together"))
        } else if images <= 1 && shape.coils <= 1 {
            Some("the run makes one image of one coil".to_owned())
        } else if images <= 1 && options.search_lambda {
            Some("the search for λ makes one image after another".to_owned())
        } else if images <= 1 {
            Some(format!("the run makes one image, and method {name} makes it of one coil after another"))
        } else {
            None
        };
        if let Some(why) = idle.filter(|_| !beside.is_empty()) {
            notes.push(format!("one GPU computes, and those beside it do not: {why}"));
            beside.clear();
        }
        options.run.beside.clone_from(beside);
    }

    /// Whether the GPUs may share the coils of an image where now each takes images.
    fn may_share_coils(&self, shape: &Shape) -> bool {
        let run = &self.options.run;
        !run.beside.is_empty() && !run.coils_beside && self.options.may_share_coils() && shape.coils > 1
    }

    fn plan_within(
        &mut self,
        source: &Source,
        shape: &Shape,
        process: u64,
        limits: &Limits,
    ) -> Result<std::result::Result<Plan, OverBudget>> {
        let mut job = self.job(source, shape, process);
        let fitted = plan_within(&mut job, limits);
        let batch_sizes = job.options.run.batch_sizes;
        let fitted = fitted.map_err(|error| self.of_scan(error))?;
        self.options.run.batch_sizes = batch_sizes;
        Ok(fitted)
    }
}
