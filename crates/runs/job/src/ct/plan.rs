//! What a run will take, and how it is cut to fit.

use std::path::{Path, PathBuf};

use rayspin_ct::corrections::ActsOn;
use rayspin_ct::methods::Shared;
use rayspin_ct::recon::{ReconOptions, arriving_budget, budget, slices_at_a_time};
use rayspin_device::{Backend, Device, cuda};
use rayspin_io::{Format, SeriesWriter};
use rayspin_report::number;
use rayspin_run::{BatchSize, Budget, Job, Limits, Plan, plan_within};

use super::arriving::at_a_time;
use super::read::{Lines, Source};
use super::request::Request;
use super::states::{Chosen, Session};
use crate::Result;
use crate::compute_target::{Short, plan_of};

/// What takes less memory of a run.
const LESS: &str = "a smaller volume (`--matrix`), some views (`--view`) or rows (`--row`), a stream (`--stream`) or another method (`--method`) takes less";

/// A run that fits.
pub struct Planned<'a> {
    pub(super) session: Session<'a>,
    pub(super) lines: Lines,
    pub(super) options: ReconOptions,
    pub(super) plan: Plan,
    pub(super) limits: Limits,
}

impl Planned<'_> {
    /// What it takes, stage by stage.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What decides the volume, and how the run is cut.
    pub fn options(&self) -> &ReconOptions {
        &self.options
    }

    /// Whether the volume is made slab by slab. Each slab then goes to the sink.
    pub fn is_cut(&self) -> bool {
        matches!(self.lines.values, Source::Arriving(_))
            && slices_at_a_time(&self.options) < self.options.grid.shape_zyx()[0]
    }

    /// What was told so far.
    pub fn notes(&self) -> &[String] {
        &self.session.told.notes
    }

    /// How it is cut, in words.
    pub fn cut(&self) -> String {
        let [nz, ny, nx] = self.options.grid.shape_zyx();
        let sizes = self.options.batch_sizes;
        let mut title = format!("{nx} x {ny} x {nz} voxels");
        title.extend(shares(&self.plan, &self.options, &self.lines).map(|shares| format!(", {shares}")));
        title.extend(sizes.slices.map(|count| format!(", {count} slices at a time")));
        title.extend(sizes.views.map(|count| format!(", {count} views at a time")));
        title
    }
}

/// How the work is shared among GPUs, in words.
fn shares(plan: &Plan, options: &ReconOptions, lines: &Lines) -> Option<String> {
    let (shared, shares) = options.shares(&lines.geometry)?;
    let parts: Vec<String> = shares.iter().map(usize::to_string).collect();
    let held: Vec<String> = plan.budget.cards.iter().map(|peak| number::bytes(*peak)).collect();
    let (what, parts, held) = (shared.what, parts.join(" + "), held.join(" + "));
    Some(format!("{what} {parts} on {} GPUs, which hold {held}", shares.len()))
}

impl<'a> Chosen<'a> {
    /// Decides where the run computes and how it is cut.
    ///
    /// Errors: limits that nothing fits, rays that the method does not take, a GPU that does not work.
    pub fn plan(self) -> Result<Planned<'a>> {
        let Self { mut session, lines, mut options } = self;
        let request = session.request.clone();
        let of_scan = |error| request.input.error(error);
        let device = session.target.device.clone();
        let (process, options_of_job) = (session.process, &mut options);
        let mut job = PlanJob { request: &request, lines: &lines, process, options: options_of_job, device };
        let (target, recorder, mut notes) = (&mut session.target, &mut session.told.recorder, Vec::new());
        let early = session.starting.is_some();
        if target.undecided.is_some() {
            let plan = target.may_stay().then(|| job.plan()).transpose().map_err(of_scan)?;
            job.process += target.decide(plan.as_ref(), session.starting.take(), recorder, &mut notes)?;
            job.device = target.device.clone();
        }
        job.process += target.open_beside(early, recorder, &mut notes)?;
        job.share(&mut target.beside, &mut notes);
        let mut limits = target.limits()?;
        let mut fitted = plan_within(&mut job, &limits).map_err(of_scan)?;
        if let Err(short) = &fitted
            && let Some(why) = target.leave_gpu(short, &limits, recorder)
        {
            notes.push(why);
            job.device = target.device.clone();
            job.options.batch_sizes = Default::default();
            job.options.beside.clear();
            limits = target.limits()?;
            fitted = plan_within(&mut job, &limits).map_err(of_scan)?;
        }
        notes.into_iter().for_each(|note| session.told.say(note));
        let plan = match fitted {
            Ok(plan) => plan,
            Err(short) => {
                let scan = request.input.file().map(Path::to_owned);
                return Err(Short { scan, less: LESS }.refusal(&short, &limits));
            }
        };
        if let Some(shares) = shares(&plan, &options, &lines) {
            session.told.say(shares);
        }
        Ok(Planned { session, lines, options, plan, limits })
    }
}

/// A run whose batch sizes are to be found.
struct PlanJob<'a> {
    request: &'a Request,
    lines: &'a Lines,
    process: u64,
    options: &'a mut ReconOptions,
    device: Device,
}

impl PlanJob<'_> {
    /// Decides how many of the devices beside the first share its work. `notes` say why others have nothing
    /// to do.
    fn share(&mut self, beside: &mut Vec<Device>, notes: &mut Vec<String>) {
        if beside.is_empty() {
            return;
        }
        let (name, all) = (self.options.method.about().name, 1 + beside.len());
        let idle = match (&self.lines.values, self.options.shared(&self.lines.geometry)) {
            (Source::Arriving(_), _) => Some("it adds up views as they arrive".to_owned()),
            (Source::Whole(_), None) => Some(format!("method {name} runs on one")),
            (Source::Whole(_), Some(shared)) if shared.parts < 2 => {
                Some(format!("method {name} cannot share {}", shared.describe()))
            }
            (Source::Whole(_), Some(shared @ Shared { parts, .. })) => {
                if parts < all {
                    let what = shared.describe();
                    notes.push(format!("{parts} of {all} GPUs compute: method {name} shares {what}"));
                    beside.truncate(parts - 1);
                }
                None
            }
        };
        if let Some(why) = idle {
            notes.push(format!("one GPU computes, and those beside it do not: {why}"));
            beside.clear();
        }
        self.options.beside.clone_from(beside);
    }
}

impl Job for PlanJob<'_> {
    fn batch_sizes(&self) -> rayspin_core::Result<Vec<BatchSize>> {
        let (request, options) = (self.request, &self.options);
        let sizes = || options.batches(&self.lines.geometry);
        let by_slices = |output: &PathBuf| {
            Format::of_name(output).and_then(|format| format.images.as_ref()).is_some_and(|to| to.by_slices)
        };
        Ok(match (&self.lines.values, self.device.backend()) {
            (Source::Whole(_), Backend::Cuda(_)) => sizes(),
            (Source::Whole(_), Backend::Cpu(_)) => Vec::new(),
            // Each part of the volume is written before the next one is made, of all views again.
            (Source::Arriving(passes), _) => {
                let parts = passes.repeat()
                    && request.outputs.iter().all(by_slices)
                    && !request.compared
                    && request.preview.is_none()
                    && request.corrections.iter().all(|one| one.acts_on() != ActsOn::Volume);
                let slices = sizes().into_iter().take(1).map(|size| BatchSize { gpu_only: false, ..size });
                slices.filter(|_| parts).collect()
            }
        })
    }

    fn set(&mut self, name: &str, to: usize) {
        self.options.batch_sizes.set(name, to);
    }

    fn plan(&self) -> rayspin_core::Result<Plan> {
        let mut whole = Budget { frames: 1, ..Default::default() };
        let (device, geometry) = (&self.device, &self.lines.geometry);
        let bytes = match &self.lines.values {
            Source::Whole(_) => self.lines.bytes,
            Source::Arriving(_) => {
                let [_, rows, columns] = geometry.shape();
                let threads = device.cpu_side().threads();
                self.request.corrections.bytes([at_a_time(geometry), rows, columns], threads)
            }
        };
        whole.push("read", bytes);
        let own = match &self.lines.values {
            Source::Whole(_) => budget(device, geometry, self.options)?,
            Source::Arriving(_) => arriving_budget(device, geometry, self.options, at_a_time(geometry))?,
        };
        let volume = own.result;
        whole.cards = own.cards;
        whole.stages.extend(own.stages);
        whole.result = volume;
        // What the writer of a format takes, which may make complex numbers of real ones.
        let writing = self.request.outputs.iter().map(|path| SeriesWriter::memory(path, 1, 2 * volume));
        whole.push("write", volume + writing.max().unwrap_or(0));
        if self.request.compared {
            // Both images in double precision, beside the reference.
            whole.push("metrics", volume + volume + 4 * volume);
            for stage in &mut whole.stages {
                if stage.name != "metrics" && stage.name != "read" {
                    stage.bytes += volume;
                }
            }
        }
        // Copies on their way to and from the other devices.
        let beside = self.options.beside.iter();
        let staging = beside.map(|device| cuda::staging_bytes(device.cpu_side().threads())).sum::<u64>();
        whole.stages.iter_mut().filter(|stage| stage.name != "read").for_each(|stage| stage.bytes += staging);
        Ok(plan_of(whole, self.process, &self.device))
    }
}
