//! `rayspin-ladder applications`: the lecture's application table of our own algorithms.

mod page;
mod recon;
mod show;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;
use rayspin::core::{Error, Progress};
use rayspin::device::{Backend, BackendKind, Device};
use rayspin::tune::limits::Limits;
use rayspin::tune::{Ladder, Outline, PublishedApplication, VariantInfo, Which};
use rayspin_lab::Protocol;
use rayspin_lab::application::{
    Applications, Best, Kind as RowKind, OneCore, Race, Row, Side, best, one_core,
};
use rayspin_lab::limits::launch;
use rayspin_shell::interrupt::{STOP, stoppable};
use rayspin_shell::{BadInput, Context, files, say};

use super::benchmark::{Kind, budget, check_case, is_stdout, outputs, size, tuned, write};
use super::limits::MachineLimits;
use super::{Ladders, unknown, which};
use crate::args::ladder::Applications as Arguments;
use recon::Reconstruction;

/// What `rayspin-ladder explain` calls the table.
pub(super) const NAME: &str = "applications";
/// What the columns mean.
pub(super) const README: &str = include_str!("README.md");

/// The two processors, and what is known of the GPU.
struct Processors<'a> {
    progress: &'a dyn Progress,
    cpu: Device,
    gpu: Device,
    limits: &'a Limits,
    launch: f64,
    protocol: Protocol,
    seed: u64,
}

/// What has a row.
enum Application<'a> {
    Ladder(&'a dyn Ladder),
    Reconstruction(&'static Reconstruction),
}

impl Application<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Ladder(ladder) => ladder.about().name,
            Self::Reconstruction(one) => one.name,
        }
    }
}

/// Names and titles of all reconstructions that have a row, as shells complete them.
pub(crate) fn reconstructions() -> impl Iterator<Item = (&'static str, &'static str)> {
    recon::ALL.iter().map(|one| (one.name, one.title))
}

/// Those of these names, each once, in this order; without names all. Errors: an unknown name, with the
/// nearest.
fn chosen<'a>(ladders: &'a Ladders, names: &[String]) -> Result<Vec<Application<'a>>> {
    let ladders = ladders.all().into_iter().map(Application::Ladder);
    let mut applications: Vec<_> =
        ladders.chain(recon::ALL.iter().map(Application::Reconstruction)).collect();
    if names.is_empty() {
        return Ok(applications);
    }
    let known: Vec<_> = applications.iter().map(Application::name).collect();
    let mut chosen: Vec<Application<'_>> = Vec::new();
    for name in names {
        match applications.iter().position(|one| one.name() == name) {
            Some(index) => chosen.push(applications.swap_remove(index)),
            None if chosen.iter().any(|one| one.name() == name) => {}
            None => {
                let otherwise = "rayspin-ladder list lists the ladders";
                return Err(unknown("application", name, &known, otherwise).into());
            }
        }
    }
    Ok(chosen)
}

/// The cases that a ladder has rows for: the one that the user names; else those that stand beside the
/// lecture's row; else the default one.
fn cases<'a>(ladder: &dyn Ladder, args: &'a Arguments) -> Vec<Option<&'a str>> {
    match ladder.published_application() {
        Some(row) if args.case.is_none() && args.size.is_none() => {
            row.cases.iter().map(|&(case, _)| Some(case)).collect()
        }
        _ => vec![args.case.as_deref()],
    }
}

/// Everything that can be judged before anything runs.
fn check(one: &Application<'_>, args: &Arguments, size: Option<&[usize]>) -> Result<()> {
    match one {
        Application::Ladder(ladder) => {
            check_case(*ladder, args.case.as_deref())?;
            ladder.outline(which(*ladder, args.case.as_deref(), size, BackendKind::Cuda))?;
        }
        Application::Reconstruction(one) => {
            if let Some(case) = &args.case {
                let message = format!("case of {}: expected none, found {case}", one.name);
                return Err(BadInput::new(message).hint("--size sets the voxels along each axis").into());
            }
            one.size(size)?;
        }
    }
    Ok(())
}

/// What came of an application: its row, or why it has none; and what failed.
struct ApplicationOutcome {
    row: std::result::Result<Row, String>,
    failed: Vec<String>,
}

/// Makes the table, prints it and writes files.
pub(crate) fn run(context: &Context, ladders: &Ladders, args: &Arguments) -> Result<()> {
    let outputs = outputs([&args.json, &args.csv, &args.html])?;
    let applications = chosen(ladders, &args.names)?;
    let size = args.size.as_deref().map(size).transpose()?;
    let protocol = budget(args.rounds, args.budget, true)?;
    for one in &applications {
        check(one, args, size.as_deref())?;
    }
    let Backend::Cuda(_) = context.device.backend() else {
        return published(context, &applications, args, &outputs);
    };
    let gpu = &context.device;
    let mut machine = MachineLimits::default();
    let known = machine.of(context, gpu, args.remeasure)?;
    let processors = Processors {
        progress: &context.console,
        cpu: gpu.host(),
        gpu: gpu.clone(),
        limits: known,
        launch: launch(gpu)?,
        protocol,
        seed: args.seed,
    };
    let mut table = processors.table(context.threads());
    let mut failed = Vec::new();
    stoppable(|| -> Result<()> {
        for one in &applications {
            if STOP.load(Ordering::SeqCst) {
                break;
            }
            let name = one.name();
            let results = match one {
                Application::Ladder(ladder) => {
                    let measure = |case| {
                        processors.ladder(*ladder, which(*ladder, case, size.as_deref(), BackendKind::Cuda))
                    };
                    cases(*ladder, args).into_iter().map(measure).collect()
                }
                Application::Reconstruction(one) => vec![processors.reconstruction(one, size.as_deref())],
            };
            for result in results {
                match result {
                    Ok(outcome) => {
                        failed.extend(outcome.failed);
                        match outcome.row {
                            Ok(row) => table.rows.push(row),
                            Err(why) => table.left_out.push((name.to_owned(), why)),
                        }
                    }
                    // The user's signal, which ends the next turn.
                    Err(Error::Interrupted) => {}
                    Err(error) => {
                        failed.push(format!("{name}: {error}"));
                        table.left_out.push((name.to_owned(), format!("failed: {error}")));
                    }
                }
            }
            // A table takes minutes: what is complete stays.
            save(&outputs, &table, false)?;
        }
        Ok(())
    })?;
    if !outputs.iter().any(|(path, _)| is_stdout(path)) {
        files::print(&show::text(&table, args.width))?;
    }
    save(&outputs, &table, true)?;
    for one in &failed {
        say!("FAILED: {one}");
    }
    if STOP.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    if !failed.is_empty() {
        anyhow::bail!("failed or wrong: {}", failed.len());
    }
    Ok(())
}

/// Writes the outputs that are files, or those that go to the standard output.
fn save(outputs: &[(&PathBuf, Kind)], table: &Applications, to_stdout: bool) -> Result<()> {
    for (path, kind) in outputs.iter().filter(|(path, _)| is_stdout(path) == to_stdout) {
        let text = match kind {
            Kind::Json => table.to_json()?,
            Kind::Csv => show::lines(table),
            Kind::Html => page::page(table).render(),
        };
        write(path, &text)?;
    }
    Ok(())
}

/// The tables that are published with this version, where there is no GPU to measure. The first has the rows
/// that stand beside the lecture's, the second all others.
const PUBLISHED: [&str; 2] = [
    include_str!("../../../../../../benches/results/2026-11-26-h100/applications.json"),
    include_str!("../../../../../../benches/results/2026-11-21-h100/applications.json"),
];

/// Shows and writes the published rows of these applications. Errors: options that only a measurement heeds.
fn published(
    context: &Context,
    applications: &[Application<'_>],
    args: &Arguments,
    outputs: &[(&PathBuf, Kind)],
) -> Result<()> {
    for field in ["case", "size", "seed", "rounds", "budget", "remeasure"] {
        if let Some(option) = context.given.name(field) {
            let processor = context.device.describe();
            let message = format!("{option}: expected a GPU to measure with, found {processor} alone");
            let hint = "without it rayspin-ladder applications shows the published table";
            return Err(BadInput::new(message).hint(hint).into());
        }
    }
    let [mut table, older] = [Applications::from_json(PUBLISHED[0])?, Applications::from_json(PUBLISHED[1])?];
    let newer: Vec<String> = table
        .rows
        .iter()
        .map(|row| &row.name)
        .chain(table.left_out.iter().map(|(name, _)| name))
        .cloned()
        .collect();
    let day = Some(older.began.get(..10).unwrap_or(&older.began).to_owned());
    let others = older.rows.into_iter().filter(|row| !newer.contains(&row.name));
    table.rows.extend(others.map(|row| Row { day: day.clone(), ..row }));
    table.left_out.extend(older.left_out.into_iter().filter(|(name, _)| !newer.contains(name)));
    let is_chosen = |name: &str| applications.iter().any(|one| one.name() == name);
    table.rows.retain(|row| is_chosen(&row.name));
    table.left_out.retain(|(name, _)| is_chosen(name));
    for one in applications {
        let name = one.name();
        let known = table.rows.iter().any(|row| row.name == name)
            || table.left_out.iter().any(|(left_out, _)| left_out == name);
        if !known {
            table.left_out.push((name.to_owned(), "it is not in the published table".to_owned()));
        }
    }
    let day = table.began.get(..10).unwrap_or(&table.began);
    context.console.note(&format!(
        "no GPU to measure with ({}): these figures were published with Rayspin, measured {day} on {}, rows with a day on that day",
        context.device.describe(),
        table.gpu
    ));
    save(outputs, &table, false)?;
    if !outputs.iter().any(|(path, _)| is_stdout(path)) {
        files::print(&show::text(&table, args.width))?;
    }
    save(outputs, &table, true)
}

/// The lecture's row, where this problem stands beside it: with the case's name, and the case on which one
/// core is timed.
fn beside(
    ladder: &dyn Ladder,
    which: Which<'_>,
) -> Option<(PublishedApplication, &'static str, &'static str)> {
    let Which::Case(Some(case), None) = which else { return None };
    let row = ladder.published_application()?;
    row.cases.iter().find(|(name, _)| *name == case).map(|&(name, of_core)| (row, name, of_core))
}

impl Processors<'_> {
    /// The table without its rows.
    fn table(&self, threads: usize) -> Applications {
        let began = jiff::Timestamp::now().strftime("%FT%TZ").to_string();
        let mut table = Applications::new(env!("CARGO_PKG_VERSION"), began, self.limits.clone());
        table.cpu = self.cpu.describe();
        table.cpu_threads = threads;
        table.gpu = self.gpu.describe();
        table.launch = self.launch;
        table
    }

    /// The best variants of a ladder on both processors.
    fn ladder(&self, ladder: &dyn Ladder, which: Which<'_>) -> rayspin::core::Result<ApplicationOutcome> {
        let outline = ladder.outline(which)?;
        let without = |why: &str| Ok(ApplicationOutcome { row: Err(why.to_owned()), failed: Vec::new() });
        if !outline.variants.iter().any(|variant| variant.competes) {
            return without("its variants are not ways to one result");
        }
        for (kind, words) in [(BackendKind::Cpu, "the CPU"), (BackendKind::Cuda, "a GPU")] {
            if !outline.variants.iter().any(|variant| variant.competes && variant.backend == kind) {
                return without(&format!("no variant for {words}"));
            }
        }
        let about = ladder.about();
        let mut failed = Vec::new();
        let mut sides = Vec::new();
        for (device, words) in [(&self.cpu, "CPU"), (&self.gpu, "GPU")] {
            match self.best(ladder, which, device, words, &outline)? {
                Ok(best) => {
                    failed.extend(worded(&best.failed, about.name));
                    sides.push(best);
                }
                Err(failures) => {
                    failed.extend(worded(&failures, about.name));
                    let why = match failures.is_empty() {
                        true => format!("no variant for the {words} takes this problem"),
                        false => format!("no variant for the {words} was right"),
                    };
                    return Ok(ApplicationOutcome { row: Err(why), failed });
                }
            }
        }
        let (Some(gpu), Some(cpu)) = (sides.pop(), sides.pop()) else { return without("no variants") };
        let Some(on_gpu) = &gpu.on_gpu else { return without("no variant for a GPU") };
        let (mut case, mut one_core, mut published) = (None, None, None);
        if let Some((row, name, of_core)) = beside(ladder, which) {
            match self.one_core(ladder, of_core) {
                Ok(core) => {
                    // Each variant counts its own bytes and operations, so both problems are compared by the
                    // same variant.
                    let same = outline.variants.iter().find(|variant| variant.name == core.variant);
                    one_core = same.map(|variant| variant.amount / core.amount).map(|times| (core, times));
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => failed.push(format!("{} {of_core} on one core: {error}", about.name)),
            }
            (case, published) = (Some(name.to_owned()), Some(row.into()));
        }
        let row = Row {
            name: about.name.to_owned(),
            case,
            title: about.title.to_owned(),
            problem: outline.problem,
            kind: RowKind::Ladder,
            bottleneck: on_gpu.bottleneck.clone(),
            resident: on_gpu.resident.clone(),
            cpu: Side::of(&cpu),
            gpu: Side::of(&gpu),
            one_core,
            published,
            day: None,
        };
        Ok(ApplicationOutcome { row: Ok(row), failed })
    }

    /// The time of one core for a case.
    fn one_core(&self, ladder: &dyn Ladder, case: &str) -> rayspin::core::Result<OneCore> {
        self.staged(&format!("{} {case} on one core", ladder.about().name), || {
            let mut session = ladder.open(Which::Case(Some(case), None), &self.cpu, self.seed)?;
            one_core(session.as_mut(), &self.cpu, &self.protocol)
        })
    }

    /// Tells how long a stage took.
    fn staged<T>(
        &self,
        stage: &str,
        work: impl FnOnce() -> rayspin::core::Result<T>,
    ) -> rayspin::core::Result<T> {
        self.progress.begin(stage, 0);
        let began = Instant::now();
        let result = work();
        self.progress.end(stage, began.elapsed().as_secs_f64());
        result
    }

    fn best(
        &self,
        ladder: &dyn Ladder,
        which: Which<'_>,
        device: &Device,
        words: &str,
        outline: &Outline,
    ) -> rayspin::core::Result<std::result::Result<Best, Vec<(String, String)>>> {
        let about = ladder.about();
        let fits = |variant: &VariantInfo| {
            variant.backend == device.kind() && variant.competes && variant.refuses.is_none()
        };
        let case = match which {
            Which::Case(Some(case), _) => format!(" {case}"),
            _ => String::new(),
        };
        self.staged(&format!("{}{case} on {words}", about.name), || {
            let mut session = ladder.open(which, device, self.seed)?;
            let tuned = tuned(session.as_mut(), device, about.name, &fits)?;
            let race = Race {
                protocol: &self.protocol,
                limits: self.limits,
                launch: self.launch,
                peak: outline.peak,
                flow: outline.flow,
            };
            best(session.as_mut(), device, &race, &mut |variant| {
                if STOP.load(Ordering::SeqCst) {
                    return Err(Error::Interrupted);
                }
                let kept = tuned.iter().find(|(name, _)| *name == variant.name);
                Ok(Some(kept.map_or_else(|| variant.space.default_config(), |(_, config)| config.clone())))
            })
        })
    }
}

fn worded(failed: &[(String, String)], ladder: &str) -> Vec<String> {
    failed.iter().map(|(variant, why)| format!("{variant} of {ladder}: {why}")).collect()
}

#[cfg(test)]
mod tests;
