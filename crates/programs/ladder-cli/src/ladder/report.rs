//! `rayspin-ladder report`: what each launch of a run takes of a GPU, and how it fills it.

mod show;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;
use rayspin::core::{Error, Progress};
use rayspin::device::cuda::{self, Launched, Program, Usage};
use rayspin::device::{Backend, BackendKind, Device};
use rayspin::tune::{Config, Ladder, Session, VariantInfo, Which};
use rayspin_emu::null_driver;
use rayspin_shell::interrupt::{STOP, stoppable};
use rayspin_shell::{BadInput, Context, files, say};
use serde::Serialize;

use super::benchmark::{check_case, outputs, size, tuned, write};
use super::emulate;
use super::occupancy::{self, Block, Limit, Limits, Waves};
use super::{Ladders, unknown, which};
use crate::args::ladder::Report;
use crate::without::{self, Missing};

/// Seed of the inputs, the same as in other commands.
const SEED: u64 = 1;
/// What is compiled for where there is no GPU.
const DEFAULT: (u32, u32) = (9, 0);

/// What `--json` writes.
#[derive(Debug, Serialize)]
struct Document {
    program: &'static str,
    version: &'static str,
    /// NVRTC's version.
    compiler: Option<(u32, u32)>,
    reports: Vec<Part>,
}

/// The launches of one algorithm on one processor.
#[derive(Debug, Serialize)]
struct Part {
    ladder: &'static str,
    problem: String,
    processor: Processor,
    launches: Vec<Line>,
    /// Variants without launches, and why.
    left_out: Vec<(&'static str, String)>,
}

/// What launches are judged for.
#[derive(Debug, Clone, Serialize)]
struct Processor {
    /// `sm_90`
    architecture: String,
    #[serde(skip)]
    capability: (u32, u32),
    /// The GPU, or the card that the number of multiprocessors is of.
    card: String,
    multiprocessors: u32,
    /// Threads that a multiprocessor holds at most.
    threads: u32,
    /// Whether launches come from the emulator and resources from the compiler alone.
    emulated: bool,
    /// Multiprocessors that the device states on which the variants ran: some grids follow it.
    stated: u32,
    #[serde(skip)]
    limits: Option<&'static Limits>,
}

/// Equal launches of a run.
#[derive(Debug, Default, Serialize)]
struct Line {
    variant: &'static str,
    /// The variant's parameters.
    config: String,
    source: &'static str,
    kernel: String,
    /// How often it is launched like this.
    launches: usize,
    blocks: [u32; 3],
    threads: [u32; 3],
    /// Bytes of dynamic shared memory.
    shared_dynamic: u32,
    /// What the kernel takes, where it compiles.
    takes: Option<Takes>,
    /// Blocks that a multiprocessor holds at once.
    held: Option<u32>,
    /// What allows no more.
    limited_by: Vec<Limit>,
    /// Threads of these blocks over the largest number that a multiprocessor holds.
    occupancy: Option<f64>,
    waves: Option<f64>,
    /// The share of the last wave that is filled.
    last_wave: Option<f64>,
    notes: Vec<String>,
}

/// What a compiled kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Takes {
    /// A thread.
    registers: u32,
    /// Bytes that a block declares.
    shared: u32,
    /// Bytes a thread.
    local: u32,
    /// Bytes of registers that a thread's instructions store to local memory, and load back.
    spill_stores: u32,
    spill_loads: u32,
}

/// A variant and its launches, equal ones once.
struct Ran {
    variant: &'static str,
    config: Config,
    launches: Vec<(Launched, usize)>,
}

/// Reports the launches of ladders.
pub(crate) fn run(context: &Context, ladders: &Ladders, args: &Report) -> Result<()> {
    let outputs = outputs([&args.json, &None, &None])?;
    let ladders = ladders.named(&args.names)?;
    let size = args.size.as_deref().map(size).transpose()?;
    let mut targets = architectures(&args.architecture)?;
    let on_gpu = matches!(context.device.backend(), Backend::Cuda(_));
    if on_gpu && !targets.is_empty() && context.given.name("device").is_some() {
        let message = "--architecture: expected the emulator, found a GPU by --device";
        return Err(BadInput::new(message).hint("leave one of the two out").into());
    }
    if !on_gpu && targets.is_empty() {
        targets.extend(Limits::of(DEFAULT));
    }
    emulate::check(&args.variant, &ladders)?;
    let mut plans = Vec::new();
    for &ladder in &ladders {
        check_case(ladder, args.case.as_deref())?;
        let which = which(ladder, args.case.as_deref(), size.as_deref(), BackendKind::Cuda);
        ladder.outline(which)?;
        plans.push((ladder, which));
    }
    if let Some(missing) = cuda::compiler_missing() {
        let what = "a launch report needs the CUDA compiler".to_owned();
        return Err(Missing::with(without::NVRTC)(Error::Device { what, detail: missing }).into());
    }
    // Launches are recorded on a device that runs none, whatever the size of the problem.
    let device = match targets.first() {
        None => context.device.clone(),
        Some(limits) => runs_nothing(&context.device, limits),
    };
    let mut reporter = Reporter { context, variants: &args.variant, device, compiled: Vec::new() };
    let processors = reporter.processors(&targets);
    let tables = outputs.iter().all(|(path, _)| !super::benchmark::is_stdout(path));
    let (mut reports, mut failed, mut printed) = (Vec::new(), Vec::new(), Vec::new());
    stoppable(|| -> Result<()> {
        for (ladder, which) in &plans {
            for part in reporter.ladder(*ladder, *which, &processors, &mut failed)? {
                if tables {
                    files::print(&show::text(&part, args.width))?;
                    printed.push(show::table(&part));
                }
                reports.push(part);
            }
        }
        Ok(())
    })?;
    if !printed.is_empty() {
        files::print(&args.width.legend(&printed))?;
    }
    let document = Document {
        program: "rayspin-ladder report",
        version: env!("CARGO_PKG_VERSION"),
        compiler: cuda::compiler_version(),
        reports,
    };
    for (path, _) in outputs {
        write(path, &(serde_json::to_string_pretty(&document)? + "\n"))?;
    }
    if STOP.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    for one in &failed {
        say!("FAILED: {one}");
    }
    if !failed.is_empty() {
        anyhow::bail!("failed: {}", failed.len());
    }
    Ok(())
}

/// The processors of these names, each once: `sm_90`, or `sm_90a`, which code for it is compiled as. Errors:
/// an unknown one.
fn architectures(names: &[String]) -> Result<Vec<&'static Limits>> {
    let mut chosen: Vec<&'static Limits> = Vec::new();
    for name in names {
        let is_named =
            |limits: &&Limits| *name == limits.name() || *name == cuda::architecture(limits.capability);
        let Some(limits) = occupancy::ALL.iter().find(is_named) else {
            let known: Vec<_> = occupancy::ALL.iter().map(Limits::name).collect();
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            let hint = "rayspin-ladder report --help lists them";
            return Err(unknown("--architecture", name, &known, hint).into());
        };
        if !chosen.contains(&limits) {
            chosen.push(limits);
        }
    }
    Ok(chosen)
}

/// Kernels of programs by what they were compiled for, or the compiler's words.
type Compiled = (Arc<Program>, (u32, u32), std::result::Result<Vec<Usage>, String>);

struct Reporter<'a> {
    context: &'a Context,
    variants: &'a [String],
    device: Device,
    compiled: Vec<Compiled>,
}

impl Reporter<'_> {
    /// Those of these limits; without any the GPU.
    fn processors(&self, targets: &[&'static Limits]) -> Vec<Processor> {
        let Backend::Cuda(cuda) = self.device.backend() else { return Vec::new() };
        let properties = cuda.properties();
        if targets.is_empty() {
            let (major, minor) = properties.capability;
            return vec![Processor {
                architecture: format!("sm_{major}{minor}"),
                capability: properties.capability,
                card: properties.name.clone(),
                multiprocessors: properties.multiprocessors,
                threads: properties.threads_per_multiprocessor,
                emulated: false,
                stated: properties.multiprocessors,
                limits: Limits::of(properties.capability),
            }];
        }
        let emulated = |limits: &&'static Limits| Processor {
            architecture: limits.name(),
            capability: limits.capability,
            card: limits.card.name.to_owned(),
            multiprocessors: limits.card.multiprocessors,
            threads: limits.threads,
            emulated: true,
            stated: properties.multiprocessors,
            limits: Some(limits),
        };
        targets.iter().map(emulated).collect()
    }

    /// The report of a ladder for each processor. Variants that fail are added to `failed`.
    fn ladder(
        &mut self,
        ladder: &dyn Ladder,
        which: Which<'_>,
        processors: &[Processor],
        failed: &mut Vec<String>,
    ) -> Result<Vec<Part>> {
        let name = ladder.about().name;
        let (stage, began) = (format!("{name}: launches"), Instant::now());
        let device = self.device.clone();
        let mut session = ladder.open(which, &device, SEED)?;
        let chosen = self.variants;
        let wanted = |variant: &VariantInfo| {
            variant.backend == device.kind()
                && (chosen.is_empty() || chosen.iter().any(|name| name == variant.name))
        };
        let variants: Vec<_> =
            session.variants().iter().cloned().enumerate().filter(|(_, variant)| wanted(variant)).collect();
        // Results of tuning are of a GPU.
        let tuned = match processors.iter().any(|processor| processor.emulated) {
            true => Vec::new(),
            false => tuned(session.as_mut(), &device, name, &wanted)?,
        };
        let (mut ran, mut left_out) = (Vec::new(), Vec::new());
        self.context.console.begin(&stage, variants.len());
        for (index, variant) in &variants {
            if STOP.load(Ordering::SeqCst) {
                break;
            }
            self.context.console.step(variant.name);
            if let Some(why) = &variant.refuses {
                left_out.push((variant.name, why.clone()));
                continue;
            }
            let kept = tuned.iter().find(|(name, _)| *name == variant.name);
            let config = kept.map_or_else(|| variant.space.default_config(), |(_, config)| config.clone());
            match launches(session.as_mut(), &device, *index, &config) {
                Ok(list) if list.is_empty() => {
                    left_out.push((variant.name, "it launches no kernel".to_owned()))
                }
                Ok(list) => ran.push(Ran { variant: variant.name, config, launches: grouped(list) }),
                Err(Error::Interrupted) => break,
                Err(error) => {
                    failed.push(format!("{} of {name}: {error}", variant.name));
                    left_out.push((variant.name, format!("failed: {error}")));
                }
            }
        }
        let problem = session.problem();
        let mut parts = Vec::new();
        for processor in processors {
            let mut part = Part {
                ladder: name,
                problem: problem.clone(),
                processor: processor.clone(),
                launches: Vec::new(),
                left_out: left_out.clone(),
            };
            let lacking = match processor.limits.filter(|_| processor.emulated) {
                Some(limits) => lacking(ladder, which, &device, limits)?,
                None => Vec::new(),
            };
            for ran in &ran {
                if let Some((_, why)) = lacking.iter().find(|(variant, _)| *variant == ran.variant) {
                    part.left_out.push((ran.variant, why.clone()));
                    continue;
                }
                for (launched, times) in &ran.launches {
                    if STOP.load(Ordering::SeqCst) {
                        break;
                    }
                    part.launches.push(self.line(processor, ran, launched, *times));
                }
            }
            parts.push(part);
        }
        self.context.console.end(&stage, began.elapsed().as_secs_f64());
        Ok(parts)
    }

    fn line(&mut self, processor: &Processor, ran: &Ran, launched: &Launched, times: usize) -> Line {
        let launch = launched.launch;
        let mut line = Line {
            variant: ran.variant,
            config: ran.config.to_string(),
            source: launched.program.name,
            kernel: launched.kernel.clone(),
            launches: times,
            blocks: launch.blocks,
            threads: launch.threads,
            shared_dynamic: launch.shared,
            ..Line::default()
        };
        let usage = match self.usage(&launched.program, processor, &launched.kernel) {
            Ok(usage) => usage,
            Err(why) => {
                line.notes.push(why);
                return line;
            }
        };
        let mut takes = Takes {
            registers: usage.registers,
            shared: usage.shared,
            local: usage.stack,
            spill_stores: usage.spill_stores,
            spill_loads: usage.spill_loads,
        };
        if !processor.emulated {
            let resources = launched.resources;
            takes = Takes {
                registers: resources.registers,
                shared: resources.shared,
                local: resources.local,
                ..takes
            };
        }
        let threads = count(launch.threads);
        let block = Block {
            threads: u32::try_from(threads).unwrap_or(u32::MAX),
            registers: takes.registers,
            shared: takes.shared.saturating_add(launch.shared),
        };
        let by_rule = processor.limits.map(|limits| occupancy::held(limits, block));
        let held = match processor.emulated {
            true => by_rule.as_ref().map(|(blocks, _)| *blocks),
            // The driver tells; 0 where it cannot.
            false => Some(launched.held).filter(|&blocks| blocks > 0),
        };
        line.takes = Some(takes);
        line.held = held;
        // Where the rules give another number than the driver, they do not know what limits it.
        line.limited_by =
            by_rule.filter(|(blocks, _)| Some(*blocks) == held).map(|(_, by)| by).unwrap_or_default();
        line.occupancy =
            held.map(|held| u64::from(held) as f64 * threads as f64 / f64::from(processor.threads.max(1)));
        let waves = held.and_then(|held| Waves::of(count(launch.blocks), held, processor.multiprocessors));
        line.waves = waves.map(|waves| waves.count);
        line.last_wave = waves.map(|waves| waves.last);
        line.notes = show::notes(&line, processor, waves);
        line
    }

    /// What a kernel takes, by the compiler. Errors: it does not compile, with the first of the compiler's
    /// words on what is wrong.
    fn usage(
        &mut self,
        program: &Arc<Program>,
        processor: &Processor,
        kernel: &str,
    ) -> std::result::Result<Usage, String> {
        let capability = processor.capability;
        let known =
            self.compiled.iter().position(|(other, target, _)| *target == capability && other == program);
        let index = known.unwrap_or_else(|| {
            let compiled = cuda::compile(program, &cuda::architecture(capability), true);
            let usages = compiled.map(|compiled| cuda::usages(&compiled.log)).map_err(|error| {
                format!("it does not compile for {}: {}", processor.architecture, first(&error))
            });
            self.compiled.push((program.clone(), capability, usages));
            self.compiled.len() - 1
        });
        let usages = self.compiled[index].2.as_ref().map_err(Clone::clone)?;
        let usage = usages.iter().find(|usage| usage.kernel == kernel);
        usage.cloned().ok_or_else(|| "the compiler does not say what it takes".to_owned())
    }
}

/// The variants that a processor with these limits cannot run, and why: a device that runs nothing is opened
/// for the answer.
fn lacking(
    ladder: &dyn Ladder,
    which: Which<'_>,
    emulated: &Device,
    limits: &Limits,
) -> rayspin::core::Result<Vec<(&'static str, String)>> {
    let device = runs_nothing(emulated, limits);
    let session = ladder.open(which, &device, SEED)?;
    let variants = session.variants().iter().filter(|variant| variant.backend == device.kind());
    Ok(variants.filter_map(|variant| Some((variant.name, variant.refuses.clone()?))).collect())
}

/// A GPU of this kind that records launches and runs none.
fn runs_nothing(other: &Device, limits: &Limits) -> Device {
    let driver = null_driver(limits.capability, limits.shared_per_block, true);
    Device::with_driver(Arc::new(driver), other.host())
}

/// The line of a compiler's words that says what is wrong.
fn first(error: &Error) -> String {
    let text = error.to_string();
    let line = text.lines().find(|line| line.contains(" error")).or_else(|| text.lines().next());
    line.unwrap_or_default().trim().to_owned()
}

/// The launches of a run whose tables and plans are made.
fn launches(
    session: &mut dyn Session,
    device: &Device,
    variant: usize,
    config: &Config,
) -> rayspin::core::Result<Vec<Launched>> {
    let Backend::Cuda(cuda) = device.backend() else { return Ok(Vec::new()) };
    let first = cuda.launches(|| session.run(variant, config, 0))?;
    let second = cuda.launches(|| session.run(variant, config, 0))?;
    device.synchronize()?;
    // Recorded work is launched as one graph, which does not list its kernels.
    Ok(if second.is_empty() { first } else { second })
}

/// Equal launches once, in the order of the first of each, and how often each is.
fn grouped(launches: Vec<Launched>) -> Vec<(Launched, usize)> {
    let mut groups: Vec<(Launched, usize)> = Vec::new();
    for one in launches {
        let same = |other: &&mut (Launched, usize)| {
            other.0.launch == one.launch && other.0.kernel == one.kernel && other.0.program == one.program
        };
        match groups.iter_mut().find(same) {
            Some((_, times)) => *times += 1,
            None => groups.push((one, 1)),
        }
    }
    groups
}

/// Blocks or threads along three axes, in all.
fn count(sides: [u32; 3]) -> u64 {
    sides.iter().map(|&side| u64::from(side)).product()
}
