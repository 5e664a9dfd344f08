//! `rayspin-ladder run`

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;
use rayspin::core::{Error, Progress};
use rayspin::device::{Backend, BackendKind, Device};
use rayspin::tune::wisdom::{self, Basis, Wisdom};
use rayspin::tune::{Config, Ladder, Session, VariantInfo, Which};
use rayspin_lab::record::{Entry, Record};
use rayspin_lab::{BenchmarkRun, Bounds, LaunchMode, OnDevice, Outcome, Protocol, Step, benchmark};
use rayspin_shell::interrupt::{STOP, stoppable};
use rayspin_shell::{BadInput, Context, files};

use super::limits::{MachineLimits, date};
use super::{Ladders, csv, emulate, maps, page, program, show, unknown, which};
use crate::args::ladder::{LaunchArg, RunArgs};
use crate::without;

/// The run that the user requested, checked.
struct Plan<'a> {
    ladders: Vec<&'a dyn Ladder>,
    devices: Vec<Device>,
    size: Option<Vec<usize>>,
    config: Option<Config>,
    protocol: Protocol,
}

/// Runs the benchmarks of ladders, prints their tables and writes files.
pub(crate) fn run(context: &Context, ladders: &Ladders, args: &RunArgs) -> Result<()> {
    if let Some(file) = program::named(args, ladders) {
        return program::run(context, args, file);
    }
    if args.emulate {
        return emulate::run(context, ladders, args);
    }
    if args.check {
        let message = "--check: expected --emulate, or a program FILE.cu, found neither";
        return Err(BadInput::new(message).hint("rayspin-ladder NAME --emulate --check").into());
    }
    let outputs = outputs([&args.json, &args.csv, &args.html])?;
    let plan = plan(context, ladders, args)?;
    let mut record =
        Record::new(env!("CARGO_PKG_VERSION"), jiff::Timestamp::now().strftime("%FT%TZ").to_string());
    let tables = ![&args.json, &args.csv].into_iter().flatten().any(|path| is_stdout(path));
    let mut limits = MachineLimits::default();
    // Name and driver of the device of each benchmark run, as results of tuning have them.
    let mut identities = Vec::new();
    let mut printed = Vec::new();
    let ran = stoppable(|| -> Result<()> {
        for &ladder in &plan.ladders {
            for device in &plan.devices {
                if STOP.load(Ordering::SeqCst) {
                    return Ok(());
                }
                let Some(mut entry) = entry(context, args, &plan, ladder, device)? else { continue };
                let known = match args.no_limits {
                    true => None,
                    false => Some(limits.judge(context, args, device, &mut entry)?),
                };
                if tables {
                    files::print(&show::benchmark_run(&entry, known.as_ref(), args.width))?;
                    printed.push(show::table(&entry));
                }
                identities.push(wisdom::identity(device));
                record.runs.push(entry);
            }
        }
        Ok(())
    });
    record.limits = limits.all().cloned().collect();
    if !printed.is_empty() {
        files::print(&args.width.legend(&printed))?;
        for limits in &record.limits {
            let told = format!("limits of {}: measured {}", limits.of, date(limits));
            files::print(&args.width.lines(&told))?;
        }
    }
    tell_of_others(context, &plan, args);
    // What was measured before a failure is worth keeping, too.
    for (path, kind) in outputs {
        let text = match kind {
            Kind::Json => record.to_json()?,
            Kind::Csv => csv::lines(&record),
            Kind::Html => page::page(&record, &maps::maps(&record, &identities)?).render(),
        };
        write(path, &text)?;
    }
    ran?;
    if STOP.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    let failed = failures(&record);
    if !failed.is_empty() {
        anyhow::bail!("failed or wrong: {}", failed.join(", "));
    }
    Ok(())
}

/// Without a GPU, says what the ladders' variants for a GPU need.
fn tell_of_others(context: &Context, plan: &Plan<'_>, args: &RunArgs) {
    let wanted = |variant: &VariantInfo| {
        variant.backend == BackendKind::Cuda
            && (args.variant.is_empty() || args.variant.iter().any(|name| name == variant.name))
    };
    let on_gpu = |ladder: &&dyn Ladder| {
        let outline =
            ladder.outline(which(*ladder, args.case.as_deref(), plan.size.as_deref(), BackendKind::Cuda));
        outline.map_or(0, |outline| outline.variants.iter().filter(|variant| wanted(variant)).count())
    };
    let count: usize = plan.ladders.iter().map(on_gpu).sum();
    // Who chose the CPU knows.
    if count > 0 && context.both && plan.devices.iter().all(|device| device.kind() == BackendKind::Cpu) {
        context.console.note(&format!("{count} variants for a GPU did not run: {}", without::GPU));
    }
}

/// Writes an output to its file, or to the standard output.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    if is_stdout(path) {
        return Ok(std::io::Write::write_all(&mut std::io::stdout().lock(), text.as_bytes())?);
    }
    files::write_text(path, text)
}

/// The variants that were wrong or that failed.
fn failures(record: &Record) -> Vec<String> {
    let failed = |entry: &Entry| -> Vec<String> {
        let steps = entry.run.steps.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_)));
        steps.map(|step| format!("{} of {}", step.name, entry.ladder)).collect()
    };
    record.runs.iter().flat_map(failed).collect()
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

fn plan<'a>(context: &Context, ladders: &'a Ladders, args: &RunArgs) -> Result<Plan<'a>> {
    let ladders = ladders.chosen(args.all, &args.names)?;
    let devices = match context.device.backend() {
        Backend::Cuda(_) if context.both => vec![context.device.host(), context.device.clone()],
        _ => vec![context.device.clone()],
    };
    let launch_mode = launch_mode(args.launch, &devices)?;
    let plan = Plan {
        ladders,
        devices,
        size: args.size.as_deref().map(size).transpose()?,
        config: args.config.as_deref().map(str::parse).transpose()?,
        protocol: Protocol { launch_mode, ..budget(args.rounds, args.budget, !args.one_buffer)? },
    };
    check(args, &plan)?;
    Ok(plan)
}

/// How the host launches runs. Errors: the user requests graphs, and a device is a CPU.
fn launch_mode(launch: Option<LaunchArg>, devices: &[Device]) -> Result<LaunchMode> {
    let cpu = devices.iter().find(|device| device.kind() == BackendKind::Cpu);
    match (launch, cpu) {
        (None, _) => Ok(LaunchMode::Best),
        (Some(LaunchArg::Graph), Some(cpu)) => {
            let message = format!("--launch graph: expected a GPU, found {}", cpu.describe());
            Err(BadInput::new(message).hint("--device cuda leaves the CPU out").into())
        }
        (Some(LaunchArg::Graph), None) => Ok(LaunchMode::Graph),
        (Some(LaunchArg::Stream), _) => Ok(LaunchMode::Stream),
        (Some(LaunchArg::Single), _) => Ok(LaunchMode::Single),
    }
}

/// How variants are timed. Errors: no rounds, no time.
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
fn check(args: &RunArgs, plan: &Plan<'_>) -> Result<()> {
    let mut variants: Vec<VariantInfo> = Vec::new();
    for &ladder in &plan.ladders {
        check_case(ladder, args.case.as_deref())?;
        for kind in [BackendKind::Cpu, BackendKind::Cuda] {
            let which = which(ladder, args.case.as_deref(), plan.size.as_deref(), kind);
            variants.extend(
                ladder.outline(which)?.variants.into_iter().filter(|variant| variant.backend == kind),
            );
        }
    }
    let names: Vec<_> = variants.iter().map(|variant| variant.name).collect();
    for name in &args.variant {
        if !names.contains(&name.as_str()) {
            return Err(unknown("variant", name, &names, "rayspin-ladder list NAME lists them").into());
        }
    }
    let wanted: Vec<_> = variants
        .iter()
        .filter(|variant| args.variant.is_empty() || args.variant.iter().any(|name| name == variant.name))
        .collect();
    let kinds: Vec<_> = plan.devices.iter().map(Device::kind).collect();
    if !wanted.iter().any(|variant| kinds.contains(&variant.backend)) {
        let devices = plan.devices.iter().map(Device::describe).collect::<Vec<_>>().join(", ");
        let kind = match wanted.first().map(|variant| variant.backend) {
            Some(BackendKind::Cuda) => "a GPU",
            _ => "the CPU",
        };
        let subject = match args.variant.is_empty() {
            true => plan.ladders.iter().map(|ladder| ladder.about().name).collect::<Vec<_>>().join(", "),
            false => args.variant.join(", "),
        };
        return Err(BadInput::new(format!("device of {subject}: expected {kind}, found {devices}"))
            .hint("--emulate runs variants for a GPU without one; --device chooses the processor")
            .into());
    }
    if let Some(config) = &plan.config {
        let [variant] = wanted.as_slice() else {
            let message =
                format!("--config: expected one variant, named with --variant, found {}", wanted.len());
            return Err(BadInput::new(message).into());
        };
        let space = &variant.space;
        let merged = merged(variant, Some(config));
        if !space.contains(&merged) {
            let message =
                format!("--config of {}: expected values of its space, found {config}", variant.name);
            return Err(BadInput::new(message).hint("rayspin-ladder list NAME lists the values").into());
        }
    }
    if let Some(axis) = &args.sweep {
        let mut axes: Vec<_> =
            wanted.iter().flat_map(|variant| variant.space.axes()).map(|axis| axis.name).collect();
        axes.sort_unstable();
        axes.dedup();
        if axes.is_empty() {
            return Err(BadInput::new(format!(
                "--sweep: expected a variant with parameters, found none for {axis}"
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
    fn which<'a>(&'a self, args: &'a RunArgs, ladder: &dyn Ladder, device: &Device) -> Which<'a> {
        which(ladder, args.case.as_deref(), self.size.as_deref(), device.kind())
    }
}

/// The defaults of a variant, with these values in their place.
fn merged(variant: &VariantInfo, config: Option<&Config>) -> Config {
    let default = variant.space.default_config();
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

/// The benchmark run of one ladder on one device; none where it has no variant there that is wanted.
fn entry(
    context: &Context,
    args: &RunArgs,
    plan: &Plan<'_>,
    ladder: &dyn Ladder,
    device: &Device,
) -> Result<Option<Entry>> {
    let wanted = |variant: &VariantInfo| {
        variant.backend == device.kind()
            && (args.variant.is_empty() || args.variant.iter().any(|name| name == variant.name))
            && args
                .sweep
                .as_ref()
                .is_none_or(|sweep| variant.space.axes().iter().any(|axis| axis.name == sweep))
    };
    let outline = ladder.outline(plan.which(args, ladder, device))?;
    let count = outline.variants.iter().filter(|variant| wanted(variant)).count();
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
    let ran = ladder.open(plan.which(args, ladder, device), device, args.seed).and_then(|mut session| {
        let mut runner =
            Runner { context, plan, device, session: session.as_mut(), name: about.name, begun: 0 };
        match &args.sweep {
            None => runner.variants(&wanted),
            Some(axis) => runner.sweep(&wanted, axis),
        }
    });
    context.console.end(&stage, began.elapsed().as_secs_f64());
    let run = ran?;
    let mut entry = Entry::new(&about, ladder.published(), outline.peak, run);
    entry.flow = outline.flow;
    entry.case = args.case.clone();
    entry.seed = args.seed;
    entry.sweep = args.sweep.clone();
    entry.launch = plan.protocol.launch_mode;
    entry.one_buffer = args.one_buffer;
    Ok(Some(entry))
}

struct Runner<'a> {
    context: &'a Context,
    plan: &'a Plan<'a>,
    device: &'a Device,
    session: &'a mut dyn Session,
    name: &'static str,
    begun: usize,
}

impl Runner<'_> {
    fn variants(&mut self, wanted: &dyn Fn(&VariantInfo) -> bool) -> rayspin::core::Result<BenchmarkRun> {
        let tuned = match self.plan.config {
            Some(_) => Vec::new(),
            None => tuned(self.session, self.device, self.name, wanted)?,
        };
        let (context, plan, begun) = (self.context, self.plan, &mut self.begun);
        benchmark(self.session, self.device, &plan.protocol, &mut |variant| {
            // A variant that began is finished: the rest is left out.
            if !wanted(variant) || STOP.load(Ordering::SeqCst) {
                return Ok(None);
            }
            if *begun > 0 {
                context.console.step("");
            }
            *begun += 1;
            let kept = tuned.iter().find(|(name, _)| *name == variant.name).map(|(_, config)| config);
            Ok(Some(merged(variant, plan.config.as_ref().or(kept))))
        })
    }

    /// Every value of an axis, variant by variant. Steps are compared with the configuration before, and all
    /// with the first.
    fn sweep(
        &mut self,
        wanted: &dyn Fn(&VariantInfo) -> bool,
        axis: &str,
    ) -> rayspin::core::Result<BenchmarkRun> {
        let mut whole: Option<BenchmarkRun> = None;
        for variant in self.session.variants().to_vec().iter().filter(|variant| wanted(variant)) {
            let values = variant.space.axes().iter().find(|a| a.name == axis).map(|a| a.values.clone());
            let base = merged(variant, self.plan.config.as_ref());
            let configs: Vec<_> = values
                .into_iter()
                .flatten()
                .map(|value| base.clone().with(axis, value))
                .filter(|config| variant.space.contains(config))
                .collect();
            let (mut first, mut last) = (None, None);
            for config in configs {
                if STOP.load(Ordering::SeqCst) {
                    break;
                }
                let mut one = benchmark(self.session, self.device, &self.plan.protocol, &mut |other| {
                    Ok((other.name == variant.name && other.backend == variant.backend)
                        .then(|| config.clone()))
                })?;
                one.steps.iter_mut().for_each(|step| relate(step, &mut first, &mut last));
                match &mut whole {
                    Some(whole) => whole.steps.append(&mut one.steps),
                    None => whole = Some(one),
                }
            }
            self.context.console.step(variant.name);
        }
        whole.ok_or(Error::Interrupted)
    }
}

/// What `rayspin-ladder tune` found for these variants of a ladder, where it has been asked.
pub(super) fn tuned(
    session: &mut dyn Session,
    device: &Device,
    ladder: &str,
    wanted: &dyn Fn(&VariantInfo) -> bool,
) -> rayspin::core::Result<Vec<(&'static str, Config)>> {
    let Some(wisdom) = wisdom::file() else { return Ok(Vec::new()) };
    let wisdom = Wisdom::open(&wisdom)?;
    let mut configs = Vec::new();
    for (index, variant) in session.variants().to_vec().into_iter().enumerate() {
        let known = wisdom.records().iter().any(|r| r.key.ladder == ladder && r.key.variant == variant.name);
        if !known || !wanted(&variant) || variant.refuses.is_some() {
            continue;
        }
        let key = OnDevice::new(session, device, index, Bounds::NONE).key(ladder)?;
        if let (config, Basis::Measured | Basis::Nearest) = wisdom.best(&key, &variant.space) {
            configs.push((variant.name, config));
        }
    }
    Ok(configs)
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
