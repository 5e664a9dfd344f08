//! `rayspin-ladder counters`: what a profiler on a GPU counts, without a GPU.

mod changed;
mod gpus;
mod launches;
mod predict;
mod show;
mod summary;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;
use rayspin::core::{Error, Progress};
use rayspin::device::cuda::{self, Program};
use rayspin::device::{Backend, BackendKind, Device};
use rayspin::tune::{Ladder, Own, Session, Which};
use rayspin_emu::Emulator;
use rayspin_emu::counting::Counts;
use rayspin_shell::interrupt::{STOP, stoppable};
use rayspin_shell::{BadInput, Context, effect, files, say};

use super::benchmark::{check_case, is_stdout, outputs, size, write};
use super::emulate::{self, CompileCache, Emulation};
use super::{Ladders, own, unknown, which};
use crate::args::ladder::Counters;
use crate::without::{self, Missing};
pub(super) use gpus::Gpu;
use predict::{Prediction, predict};
pub(super) use summary::Summary;

/// The GPU that times are predicted for where the user names none.
pub(super) const DEFAULT_GPU: &str = "h100";
/// What the JSON file of counts says that it is.
pub(super) const FORMAT: &str = "rayspin-ladder counters";

/// Seed of the inputs, the same as in other commands.
const SEED: u64 = 1;

/// A ladder's variants, counted.
pub(super) struct Found {
    ladder: &'static str,
    problem: String,
    compiler: String,
    pub(super) gpu: &'static Gpu,
    /// The problem's size, where one was named.
    size: Option<Vec<usize>>,
    /// Whether it is the problem that a GPU is measured with.
    measured: bool,
    variants: Vec<Counted>,
}

impl Found {
    /// The counts of a variant that ran.
    pub(super) fn summary(&self, variant: &str) -> Option<Summary> {
        let counted = self.variants.iter().find(|counted| counted.name == variant)?;
        counted.why.is_none().then(|| Summary::of(counted))
    }

    /// What to change first in a variant, in a sentence.
    pub(super) fn change_first(&self, variant: &str) -> Option<String> {
        let counted = self.variants.iter().find(|counted| counted.name == variant)?;
        changed::first(self, counted)
    }
}

/// A variant's kernels, counted.
pub(super) struct Counted {
    name: String,
    config: String,
    kernels: Vec<Kernel>,
    /// The reason why it has no kernels.
    why: Option<String>,
}

/// A kernel with one grid.
struct Kernel {
    counts: Counts,
    takes: Option<Takes>,
    /// `None` for a program whose lines only the emulator runs, and where the counts are not whole.
    prediction: Option<Prediction>,
}

/// Registers and memory of a kernel, as NVRTC states them.
#[derive(Debug, Clone, Copy, serde::Serialize)]
struct Takes {
    registers: u32,
    /// Bytes of a thread's local memory.
    local: u32,
    spill_stores: u32,
    spill_loads: u32,
}

impl Counted {
    /// The predicted time of all kernels, where each has one.
    fn seconds(&self) -> Option<f64> {
        if self.kernels.is_empty() {
            return None;
        }
        self.kernels.iter().map(|kernel| Some(kernel.prediction.as_ref()?.seconds)).sum()
    }

    fn is_twin(&self) -> bool {
        self.kernels.iter().any(|kernel| kernel.counts.twin)
    }

    /// What limits the kernel that takes longest.
    fn limit(&self) -> Option<predict::Limit> {
        let predictions = self.kernels.iter().filter_map(|kernel| kernel.prediction.as_ref());
        predictions.max_by(|a, b| a.seconds.total_cmp(&b.seconds)).map(|prediction| prediction.limit)
    }
}

/// Refuses options that would do nothing.
fn refuse_idle(context: &Context, args: &Counters) -> Result<()> {
    let stdout = args.json.as_deref().is_some_and(is_stdout);
    let others: [(&[&str], bool, &str, &str); 4] = [
        (&["block", "grid", "shared"], args.own.is_none(), "--own", "none"),
        (&["lines", "changed", "wide"], stdout, "tables", "--json -"),
        (&["lines", "changed", "wide", "on", "sampled"], args.launches.is_some(), "counts", "--launches"),
        (&["threads"], true, "commands that use several threads", "counters, which uses one"),
    ];
    for (fields, idle, expected, found) in others {
        let given = fields.iter().find_map(|field| context.given.name(field));
        if let Some(option) = given.filter(|_| idle) {
            effect::refuse(option, expected, found)?;
        }
    }
    Ok(())
}

/// Counts the variants of ladders, prints tables and writes a file. `line` is the whole command line.
pub(crate) fn run(context: &Context, ladders: &Ladders, args: &Counters, line: &[OsString]) -> Result<()> {
    refuse_idle(context, args)?;
    let outputs = outputs([&args.json, &None, &None])?;
    let ladders = ladders.chosen(args.all, &args.names)?;
    let size = args.size.as_deref().map(size).transpose()?;
    let gpu = gpu(&args.on)?;
    if args.own.is_some() && ladders.len() != 1 {
        let message = format!("--own: expected one algorithm, found {}", ladders.len());
        return Err(BadInput::new(message).hint("rayspin-ladder counters NAME --own FILE").into());
    }
    emulate::check(&args.variant, &ladders)?;
    let mut plans = Vec::new();
    for &ladder in &ladders {
        let own = problems(ladder, args, size.as_deref())?;
        if own.is_empty() && !args.all {
            let name = ladder.about().name;
            let message = format!("counters: expected CUDA variants, found none of {name} to run");
            let hint = format!("rayspin-ladder list {name} says where its variants run");
            return Err(BadInput::new(message).hint(hint).into());
        }
        plans.extend(own);
    }
    let several = |plan: &Emulation<'_>| plan.names.len() + usize::from(args.own.is_some());
    if args.changed
        && let Some(plan) = plans.iter().find(|plan| several(plan) != 2)
    {
        let message = format!("--changed: expected two variants, found {}", several(plan));
        return Err(BadInput::new(message).hint("name them with --variant A,B").into());
    }
    if let Some(file) = &args.launches {
        return launches::run(context, &plans, file);
    }
    let own = match &args.own {
        Some(file) => {
            let launch =
                own::LaunchOptions { block: &args.block, grid: args.grid.as_deref(), shared: args.shared };
            Some(own::own(context, file, &launch)?)
        }
        None => None,
    };
    if let Some(own) = own.filter(|_| own::together()) {
        let small = args.case.is_none() && args.size.is_none() && !args.measured;
        return own::apart(own.name, line, small);
    }
    let kept = CompileCache::new()?;
    let mut counter = Counter::new(context, &kept, gpu, args.sampled, own)?;
    let tables = !outputs.iter().any(|(path, _)| is_stdout(path));
    let (mut ladders, mut failed, mut printed) = (Vec::new(), Vec::new(), Vec::new());
    let ran = stoppable(|| -> Result<()> {
        for emulation in &plans {
            if STOP.load(Ordering::SeqCst) {
                break;
            }
            let found = counter.ladder(context, emulation, SEED, &mut failed)?;
            if tables {
                printed.extend(show::print(&found, args)?);
            }
            ladders.push(found);
        }
        Ok(())
    });
    for (path, _) in outputs {
        write(path, &show::json(&ladders)?)?;
    }
    ran?;
    if STOP.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    if !printed.is_empty() {
        files::print(&args.width.legend(&printed))?;
    }
    for one in &failed {
        say!("FAILED: {one}");
    }
    if !failed.is_empty() {
        anyhow::bail!("failed: {}", failed.len());
    }
    Ok(())
}

/// The GPU of a name. Errors: none has it.
pub(super) fn gpu(name: &str) -> Result<&'static Gpu> {
    gpus::ALL.iter().find(|gpu| gpu.name == name).ok_or_else(|| {
        let known: Vec<_> = gpus::ALL.iter().map(|gpu| gpu.name).collect();
        unknown("--on", name, &known, "rayspin-ladder counters --help lists them").into()
    })
}

/// The problems to count, with the variants for each: the user's, the one that GPUs are measured with, or
/// small ones that together run every variant.
fn problems<'a>(
    ladder: &'a dyn Ladder,
    args: &'a Counters,
    size: Option<&'a [usize]>,
) -> Result<Vec<Emulation<'a>>> {
    // A kernel of the user's own stands beside the variants that the user names.
    let takes_all = args.variant.is_empty() && args.own.is_none();
    let wanted = |name: &str| takes_all || args.variant.iter().any(|other| other == name);
    let plan = |which| -> Result<Vec<Emulation<'a>>> {
        let variants = ladder.outline(which)?.variants;
        let cuda = variants.iter().filter(|v| v.backend == BackendKind::Cuda && wanted(v.name));
        let names: Vec<_> = cuda.map(|v| v.name).collect();
        let some = !names.is_empty() || args.own.is_some();
        Ok(some.then_some(Emulation { ladder, which, names }).into_iter().collect())
    };
    if args.measured {
        return plan(which(ladder, None, None, BackendKind::Cuda));
    }
    check_case(ladder, args.case.as_deref())?;
    if args.own.is_some() {
        return plan(own::small(ladder, args.case.as_deref(), size)?);
    }
    let plans = emulate::plan(ladder, args.case.as_deref(), size, &args.variant)?;
    Ok(plans.into_iter().filter(|emulation| !emulation.names.is_empty()).collect())
}

/// Kernels of programs as NVRTC compiled them, or nothing.
type Compiled = (Arc<Program>, Vec<cuda::Usage>);

/// Counts what kernels do.
pub(super) struct Counter {
    gpu: &'static Gpu,
    emulator: Arc<Emulator>,
    device: Device,
    sampled: bool,
    own: Option<Own>,
    compiled: Vec<Compiled>,
}

impl Counter {
    /// Errors: no compiler that can count.
    pub(super) fn new(
        context: &Context,
        kept: &CompileCache,
        gpu: &'static Gpu,
        sampled: bool,
        own: Option<Own>,
    ) -> Result<Self> {
        let emulator = emulate::emulator()?.counting(Some(kept.folder.clone()));
        let emulator = Arc::new(emulator.map_err(Missing::with(without::COMPILER))?);
        let device = Device::with_driver(emulator.clone(), context.device.host());
        Ok(Self { gpu, emulator, device, sampled, own, compiled: Vec::new() })
    }

    /// Counts the variants of a problem; those that fail are told in `failed`.
    pub(super) fn ladder(
        &mut self,
        context: &Context,
        emulation: &Emulation<'_>,
        seed: u64,
        failed: &mut Vec<String>,
    ) -> Result<Found> {
        let Emulation { ladder, which, names } = emulation;
        let which = *which;
        let name = ladder.about().name;
        let (stage, began) = (format!("{name}: counters"), Instant::now());
        self.emulator.count(false);
        let mut session = match self.own {
            Some(own) => ladder.open_with(which, &self.device, seed, own)?,
            None => ladder.open(which, &self.device, seed)?,
        };
        let wanted =
            |variant: &str| names.contains(&variant) || self.own.is_some_and(|own| variant == own.name);
        let variants: Vec<_> = session
            .variants()
            .iter()
            .enumerate()
            .filter(|(_, v)| v.backend == BackendKind::Cuda && wanted(v.name))
            .map(|(index, v)| (index, v.name, v.space.default_config(), v.refuses.clone()))
            .collect();
        context.console.begin(&stage, variants.len());
        let mut found = Found {
            ladder: name,
            problem: session.problem(),
            compiler: self.emulator.compiler().to_owned(),
            gpu: self.gpu,
            size: match which {
                Which::Case(_, size) => size.map(<[usize]>::to_vec),
                Which::Trial(_) => None,
            },
            measured: matches!(which, Which::Case(_, None)),
            variants: Vec::new(),
        };
        for (index, variant, config, refuses) in variants {
            if STOP.load(Ordering::SeqCst) {
                break;
            }
            context.console.step(variant);
            own::tell_step();
            let mut counted = Counted {
                name: variant.to_owned(),
                config: config.to_string(),
                kernels: Vec::new(),
                why: refuses.map(|why| format!("not run: {why}")),
            };
            if counted.why.is_none() {
                match self.count(session.as_mut(), index, &config) {
                    Ok(kernels) => counted.kernels = kernels,
                    Err(Error::Interrupted) => break,
                    Err(error) => {
                        failed.push(format!("{variant} of {name}: {error}"));
                        counted.why = Some(format!("FAILED: {error}"));
                    }
                }
            }
            found.variants.push(counted);
        }
        context.console.end(&stage, began.elapsed().as_secs_f64());
        Ok(found)
    }

    /// The kernels of a run whose tables and plans are made.
    fn count(
        &mut self,
        session: &mut dyn Session,
        variant: usize,
        config: &rayspin::tune::Config,
    ) -> rayspin::core::Result<Vec<Kernel>> {
        let Backend::Cuda(cuda) = self.device.backend() else { return Ok(Vec::new()) };
        let mut launched = Vec::new();
        if !self.sampled {
            // The first run makes tables and plans.
            self.emulator.count(false);
            launched = cuda.launches(|| session.run(variant, config, 0))?;
            self.device.synchronize()?;
        }
        self.emulator.take_counts();
        self.emulator.count_only(self.sampled);
        self.emulator.count(true);
        let counted = cuda.launches(|| session.run(variant, config, 0)).and_then(|more| {
            launched.extend(more);
            self.device.synchronize()
        });
        self.emulator.count(false);
        counted?;
        let mut kernels = Vec::new();
        for counts in self.emulator.take_counts() {
            let program = launched
                .iter()
                .find(|one| {
                    one.kernel == counts.kernel
                        && one.launch == counts.launch
                        && one.program.name == counts.program
                })
                .map(|one| one.program.clone());
            let takes = program.and_then(|program| self.takes(&program, &counts.kernel));
            let registers = takes.map(|takes| takes.registers);
            let prediction = (!counts.twin && counts.whole).then(|| predict(self.gpu, &counts, registers));
            kernels.push(Kernel { counts, takes, prediction });
        }
        Ok(kernels)
    }

    /// What a kernel takes of the GPU, where NVRTC is there to say so.
    fn takes(&mut self, program: &Arc<Program>, kernel: &str) -> Option<Takes> {
        if cuda::compiler_missing().is_some() {
            return None;
        }
        let known = self.compiled.iter().position(|(other, _)| other == program);
        let position = known.unwrap_or_else(|| {
            let compiled = cuda::compile(program, &cuda::architecture(self.gpu.capability), true);
            let usages = compiled.map(|compiled| cuda::usages(&compiled.log)).unwrap_or_default();
            self.compiled.push((program.clone(), usages));
            self.compiled.len() - 1
        });
        let usage = self.compiled[position].1.iter().find(|usage| usage.kernel == kernel)?;
        Some(Takes {
            registers: usage.registers,
            local: usage.stack,
            spill_stores: usage.spill_stores,
            spill_loads: usage.spill_loads,
        })
    }
}
