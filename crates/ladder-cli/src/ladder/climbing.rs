//! `rayspin-ladder run`

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;
use rayspin::core::{Error, Progress};
use rayspin::device::{Backend, BackendKind, Device};
use rayspin::tune::wisdom::{self, Basis, Wisdom};
use rayspin::tune::{Config, Ladder, Rung, Session, Which};
use rayspin_lab::limits::Floors;
use rayspin_lab::record::{Entry, Record};
use rayspin_lab::{Asking, Bounds, OnDevice, Outcome, Protocol, Step, climb};
use rayspin_shell::interrupt::{STOP, stoppable};
use rayspin_shell::{BadInput, Context, files};

use super::limits::MachineLimits;
use super::{Ladders, csv, emulate, maps, page, show, unknown};
use crate::args::ladder::{LaunchArg, Run};

/// What was asked for, checked.
struct Plan<'a> {
    ladders: Vec<&'a dyn Ladder>,
    devices: Vec<Device>,
    size: Option<Vec<usize>>,
    config: Option<Config>,
    protocol: Protocol,
}

/// Climbs ladders, prints their tables and writes files.
pub(crate) fn run(context: &Context, ladders: &Ladders, args: &Run) -> Result<()> {
    if args.emulate {
        return emulate::run(context, ladders, args);
    }
    let outputs = outputs([&args.json, &args.csv, &args.html])?;
    let plan = plan(context, ladders, args)?;
    let mut record =
        Record::new(env!("CARGO_PKG_VERSION"), jiff::Timestamp::now().strftime("%FT%TZ").to_string());
    let tables = ![&args.json, &args.csv].into_iter().flatten().any(|path| is_stdout(path));
    let mut limits = MachineLimits::default();
    // Name and driver of the device of each climb, as results of tuning have them.
    let mut identities = Vec::new();
    let climbed = stoppable(|| -> Result<()> {
        for &ladder in &plan.ladders {
            for device in &plan.devices {
                if STOP.load(Ordering::SeqCst) {
                    return Ok(());
                }
                let Some(mut entry) = entry(context, args, &plan, ladder, device)? else { continue };
                if !args.no_limits {
                    let limits = limits.of(context, device, args.remeasure)?;
                    limits.apply(&mut entry.climb, entry.peak, entry.flow);
                }
                if tables {
                    files::print(&show::climb(&entry))?;
                }
                identities.push(wisdom::identity(device));
                record.climbs.push(entry);
            }
        }
        Ok(())
    });
    record.limits = limits.0.into_iter().map(|(_, limits)| limits).collect();
    // What was climbed before a failure is worth keeping, too.
    for (path, kind) in outputs {
        let text = match kind {
            Kind::Json => record.to_json()?,
            Kind::Csv => csv::lines(&record),
            Kind::Html => page::page(&record, &maps::maps(&record, &identities)?).render(),
        };
        write(path, &text)?;
    }
    climbed?;
    if STOP.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    let failed = failures(&record);
    if !failed.is_empty() {
        anyhow::bail!("failed or wrong: {}", failed.join(", "));
    }
    Ok(())
}

/// Writes an output to its file, or to the standard output.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    if is_stdout(path) {
        return Ok(std::io::Write::write_all(&mut std::io::stdout().lock(), text.as_bytes())?);
    }
    files::write_text(path, text)
}

/// The rungs that were wrong or that failed.
fn failures(record: &Record) -> Vec<String> {
    let failed = |entry: &Entry| -> Vec<String> {
        let steps = entry.climb.steps.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_)));
        steps.map(|step| format!("{} of {}", step.name, entry.ladder)).collect()
    };
    record.climbs.iter().flat_map(failed).collect()
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Json,
    Csv,
    Html,
}

pub(super) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The files to write. Errors: two of them are the same, a folder that does not exist.
pub(super) fn outputs([json, csv, html]: [&Option<PathBuf>; 3]) -> Result<Vec<(&PathBuf, Kind)>> {
    if html.as_deref().is_some_and(is_stdout) {
        return Err(BadInput::new("--html: expected a file, found -").into());
    }
    let asked = [(json, Kind::Json), (csv, Kind::Csv), (html, Kind::Html)];
    let asked: Vec<_> = asked.into_iter().filter_map(|(path, kind)| Some((path.as_ref()?, kind))).collect();
    for (path, _) in asked.iter().filter(|(path, _)| !is_stdout(path)) {
        files::check_writable(path)?;
    }
    files::check_distinct(std::iter::empty(), asked.iter().map(|(path, _)| *path))?;
    Ok(asked)
}

fn plan<'a>(context: &Context, ladders: &'a Ladders, args: &Run) -> Result<Plan<'a>> {
    let ladders = ladders.chosen(args.all, &args.names)?;
    let devices = match context.device.backend() {
        Backend::Cuda(_) if context.both => vec![context.device.host(), context.device.clone()],
        _ => vec![context.device.clone()],
    };
    let asking = asking(args.launch, &devices)?;
    let plan = Plan {
        ladders,
        devices,
        size: args.size.as_deref().map(size).transpose()?,
        config: args.config.as_deref().map(str::parse).transpose()?,
        protocol: Protocol { asking, ..budget(args.rounds, args.budget, !args.one_buffer)? },
    };
    check(args, &plan)?;
    Ok(plan)
}

/// How runs are asked for. Errors: graphs of a processor that has none.
fn asking(launch: Option<LaunchArg>, devices: &[Device]) -> Result<Asking> {
    let cpu = devices.iter().find(|device| device.kind() == BackendKind::Cpu);
    match (launch, cpu) {
        (None, _) => Ok(Asking::Best),
        (Some(LaunchArg::Graph), Some(cpu)) => {
            let message = format!("--launch graph: expected a GPU, found {}", cpu.describe());
            Err(BadInput::new(message).hint("--device cuda leaves the CPU out").into())
        }
        (Some(LaunchArg::Graph), None) => Ok(Asking::Graph),
        (Some(LaunchArg::Stream), _) => Ok(Asking::Stream),
        (Some(LaunchArg::Single), _) => Ok(Asking::Single),
    }
}

/// How rungs are timed. Errors: no rounds, no time.
pub(super) fn budget(rounds: usize, budget: f64, rotate: bool) -> Result<Protocol> {
    if rounds == 0 {
        return Err(BadInput::new("--rounds: expected at least 1, found 0").into());
    }
    if !(budget.is_finite() && budget > 0.0) {
        let message = format!("--budget: expected seconds above 0, found {budget}");
        return Err(BadInput::new(message).into());
    }
    Ok(Protocol { rounds, budget, rotate, ..Protocol::default() })
}

/// Everything that can be judged before a buffer is filled.
fn check(args: &Run, plan: &Plan<'_>) -> Result<()> {
    let mut all: Vec<Rung> = Vec::new();
    for &ladder in &plan.ladders {
        check_case(ladder, args.case.as_deref())?;
        all.extend(ladder.outline(plan.which(args))?.rungs);
    }
    let names: Vec<_> = all.iter().map(|rung| rung.name).collect();
    for name in &args.rung {
        if !names.contains(&name.as_str()) {
            return Err(unknown("rung", name, &names, "rayspin-ladder list NAME lists them").into());
        }
    }
    let wanted: Vec<_> = all
        .iter()
        .filter(|rung| args.rung.is_empty() || args.rung.iter().any(|name| name == rung.name))
        .collect();
    let kinds: Vec<_> = plan.devices.iter().map(Device::kind).collect();
    if !wanted.iter().any(|rung| kinds.contains(&rung.backend)) {
        let found = plan.devices.iter().map(Device::describe).collect::<Vec<_>>().join(", ");
        let kind = match wanted.first().map(|rung| rung.backend) {
            Some(BackendKind::Cuda) => "a GPU",
            _ => "the CPU",
        };
        let of = match args.rung.is_empty() {
            true => plan.ladders.iter().map(|ladder| ladder.about().name).collect::<Vec<_>>().join(", "),
            false => args.rung.join(", "),
        };
        return Err(BadInput::new(format!("device of {of}: expected {kind}, found {found}"))
            .hint("--device chooses the processor")
            .into());
    }
    if let Some(config) = &plan.config {
        let [rung] = wanted.as_slice() else {
            let message = format!("--config: expected one rung, named with --rung, found {}", wanted.len());
            return Err(BadInput::new(message).into());
        };
        let space = &rung.space;
        let merged = merged(rung, Some(config));
        if !space.contains(&merged) {
            let message = format!("--config of {}: expected values of its space, found {config}", rung.name);
            return Err(BadInput::new(message).hint("rayspin-ladder list NAME lists the values").into());
        }
    }
    if let Some(axis) = &args.sweep {
        let mut axes: Vec<_> =
            wanted.iter().flat_map(|rung| rung.space.axes()).map(|axis| axis.name).collect();
        axes.sort_unstable();
        axes.dedup();
        if axes.is_empty() {
            return Err(BadInput::new(format!(
                "--sweep: expected a rung with parameters, found none for {axis}"
            ))
            .hint("rayspin-ladder list NAME lists parameters")
            .into());
        }
        if !axes.contains(&axis.as_str()) {
            return Err(unknown("--sweep", axis, &axes, "rayspin-ladder list NAME lists parameters").into());
        }
    }
    Ok(())
}

/// Errors: a ladder has no such case, with the nearest.
pub(super) fn check_case(ladder: &dyn Ladder, case: Option<&str>) -> Result<()> {
    let (name, cases) = (ladder.about().name, ladder.cases());
    let cases: Vec<_> = cases.iter().map(|case| case.0).collect();
    match case.filter(|case| !cases.contains(case)) {
        Some(case) => {
            let otherwise = format!("rayspin-ladder list {name} tells more of them");
            Err(unknown(&format!("case of {name}"), case, &cases, &otherwise).into())
        }
        None => Ok(()),
    }
}

impl Plan<'_> {
    fn which<'a>(&'a self, args: &'a Run) -> Which<'a> {
        Which::Case(args.case.as_deref(), self.size.as_deref())
    }
}

/// The defaults of a rung, with these values in their place.
fn merged(rung: &Rung, config: Option<&Config>) -> Config {
    let default = rung.space.default_config();
    config
        .into_iter()
        .flat_map(Config::values)
        .fold(default, |config, (name, value)| config.with(name, value))
}

/// `8192x8192`, `4194304`, `2^22`, or several of them with a comma or an x between.
pub(crate) fn size(text: &str) -> Result<Vec<usize>> {
    let number = |part: &str| -> Option<usize> {
        match part.trim().split_once('^') {
            Some((base, power)) => base.parse::<usize>().ok()?.checked_pow(power.parse().ok()?),
            None => part.trim().parse().ok(),
        }
    };
    let parts: Option<Vec<_>> = text.split(['x', ',', '×']).map(number).collect();
    parts.ok_or_else(|| {
        BadInput::new(format!("--size: expected numbers as in 8192x8192 or 2^22, found '{text}'")).into()
    })
}

/// The climb of one ladder on one device; none where it has no rung there that is wanted.
fn entry(
    context: &Context,
    args: &Run,
    plan: &Plan<'_>,
    ladder: &dyn Ladder,
    device: &Device,
) -> Result<Option<Entry>> {
    let wanted = |rung: &Rung| {
        rung.backend == device.kind()
            && (args.rung.is_empty() || args.rung.iter().any(|name| name == rung.name))
            && args.sweep.as_ref().is_none_or(|sweep| rung.space.axes().iter().any(|axis| axis.name == sweep))
    };
    let outline = ladder.outline(plan.which(args))?;
    let count = outline.rungs.iter().filter(|rung| wanted(rung)).count();
    if count == 0 {
        return Ok(None);
    }
    let about = ladder.about();
    let kind = match device.kind() {
        BackendKind::Cpu => "CPU",
        BackendKind::Cuda => "GPU",
    };
    let stage = format!("{} on {kind}", about.name);
    context.console.begin(&stage, count);
    let began = Instant::now();
    let climbed = ladder.open(plan.which(args), device, args.seed).and_then(|mut session| {
        let mut climber =
            Climber { context, plan, device, session: session.as_mut(), name: about.name, begun: 0 };
        match &args.sweep {
            None => climber.rungs(&wanted),
            Some(axis) => climber.sweep(&wanted, axis),
        }
    });
    context.console.end(&stage, began.elapsed().as_secs_f64());
    let climb = climbed?;
    let mut entry = Entry::new(&about, ladder.published(), outline.peak, climb);
    entry.flow = outline.flow;
    entry.case = args.case.clone();
    entry.seed = args.seed;
    entry.sweep = args.sweep.clone();
    entry.launch = plan.protocol.asking;
    Ok(Some(entry))
}

struct Climber<'a> {
    context: &'a Context,
    plan: &'a Plan<'a>,
    device: &'a Device,
    session: &'a mut dyn Session,
    name: &'static str,
    begun: usize,
}

impl Climber<'_> {
    fn rungs(&mut self, wanted: &dyn Fn(&Rung) -> bool) -> rayspin::core::Result<rayspin_lab::Climb> {
        let tuned = match self.plan.config {
            Some(_) => Vec::new(),
            None => tuned(self.session, self.device, self.name, wanted)?,
        };
        let (context, plan, begun) = (self.context, self.plan, &mut self.begun);
        climb(self.session, self.device, &plan.protocol, &mut |rung| {
            // A rung that began is finished: the rest is left out.
            if !wanted(rung) || STOP.load(Ordering::SeqCst) {
                return Ok(None);
            }
            if *begun > 0 {
                context.console.step("");
            }
            *begun += 1;
            let kept = tuned.iter().find(|(name, _)| *name == rung.name).map(|(_, config)| config);
            Ok(Some(merged(rung, plan.config.as_ref().or(kept))))
        })
    }

    /// Every value of an axis, rung by rung. Steps are told from the configuration before, and all from the first.
    fn sweep(
        &mut self,
        wanted: &dyn Fn(&Rung) -> bool,
        axis: &str,
    ) -> rayspin::core::Result<rayspin_lab::Climb> {
        let mut whole: Option<rayspin_lab::Climb> = None;
        for rung in self.session.rungs().to_vec().iter().filter(|rung| wanted(rung)) {
            let values = rung.space.axes().iter().find(|a| a.name == axis).map(|a| a.values.clone());
            let base = merged(rung, self.plan.config.as_ref());
            let configs: Vec<_> = values
                .into_iter()
                .flatten()
                .map(|value| base.clone().with(axis, value))
                .filter(|config| rung.space.contains(config))
                .collect();
            let (mut first, mut last) = (None, None);
            for config in configs {
                if STOP.load(Ordering::SeqCst) {
                    break;
                }
                let mut one = climb(self.session, self.device, &self.plan.protocol, &mut |other| {
                    Ok((other.name == rung.name && other.backend == rung.backend).then(|| config.clone()))
                })?;
                one.steps.iter_mut().for_each(|step| relate(step, &mut first, &mut last));
                match &mut whole {
                    Some(whole) => whole.steps.append(&mut one.steps),
                    None => whole = Some(one),
                }
            }
            self.context.console.step(rung.name);
        }
        whole.ok_or(Error::Interrupted)
    }
}

/// What `rayspin-ladder tune` found for these rungs of a ladder, where it has been asked.
pub(super) fn tuned(
    session: &mut dyn Session,
    device: &Device,
    ladder: &str,
    wanted: &dyn Fn(&Rung) -> bool,
) -> rayspin::core::Result<Vec<(&'static str, Config)>> {
    let Some(wisdom) = wisdom::file() else { return Ok(Vec::new()) };
    let wisdom = Wisdom::open(&wisdom)?;
    let mut found = Vec::new();
    for (at, rung) in session.rungs().to_vec().into_iter().enumerate() {
        let known = wisdom.records().iter().any(|r| r.key.ladder == ladder && r.key.rung == rung.name);
        if !known || !wanted(&rung) || rung.refuses.is_some() {
            continue;
        }
        let key = OnDevice::new(session, device, at, Bounds::NONE).key(ladder)?;
        if let (config, Basis::Measured | Basis::Nearest) = wisdom.best(&key, &rung.space) {
            found.push((rung.name, config));
        }
    }
    Ok(found)
}

fn relate(step: &mut Step, first: &mut Option<f64>, last: &mut Option<f64>) {
    if let Outcome::Timed(timed) = &mut step.outcome {
        let seconds = timed.timing.median;
        timed.step = last.unwrap_or(seconds) / seconds;
        timed.cumulative = first.unwrap_or(seconds) / seconds;
        (*first, *last) = (Some(first.unwrap_or(seconds)), Some(seconds));
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_read_in_every_spelling() {
        assert_eq!(size("8192x4096").unwrap(), [8192, 4096]);
        assert_eq!(size("3, 5,7").unwrap(), [3, 5, 7]);
        assert_eq!(size("2^22").unwrap(), [1 << 22]);
        for wrong in ["", "x", "8x", "-1", "2^", "2^64", "1.5", "a×b", "99999999999999999999999"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
