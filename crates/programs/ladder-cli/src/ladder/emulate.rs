//! `rayspin-ladder --emulate`: one source on two processors.

mod show;

pub(super) use show::FORMAT;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;
use rayspin::core::{Error, Progress};
use rayspin::device::{Backend, BackendKind, Device, cuda};
use rayspin::tune::{Ladder, VariantInfo, Which};
use rayspin_emu::{Emulator, How};
use rayspin_lab::{BenchmarkRun, Outcome, Protocol, Step, benchmark};
use rayspin_shell::interrupt::{STOP, stoppable};
use rayspin_shell::{BadInput, Context, files, say};

use super::benchmark::{Kind, budget, check_case, is_stdout, outputs, size, write};
use super::counters::{self, Counter, Gpu, Summary};
use super::{Ladders, checks, unknown};
use crate::args::ladder::RunArgs;
use crate::without::{self, Missing};

/// Sizes that a fibre a thread takes less than seconds for.
const SIZES: [(&str, &[usize]); 5] = [
    ("nudft-adjoint", &[64, 64, 512]),
    ("coulomb", &[512, 1, 128, 128]),
    ("sad", &[48, 64, 16]),
    ("matrix-product", &[256]),
    ("random", &[6000]),
];

/// The published table's columns, as rows of a ladder name them.
const PUBLISHED_ROWS: [&str; 3] = ["C on a CPU", "CUDA source on a CPU", "CUDA on a GPU"];

/// Seconds of MRI-FHD, whose kernel the ladder `nudft-adjoint` is: C on the CPU, CUDA source on the CPU, GPU.
const PUBLISHED_FHD: [f64; 3] = [1000.0, 230.0, 8.5];

/// What came of a ladder on each processor.
struct LadderOutcome {
    ladder: &'static str,
    problem: String,
    native: Option<(String, f64)>,
    variants: Vec<VariantTimes>,
    gpu: bool,
    /// The GPU that times are predicted for, where kernels are counted.
    predicted: Option<&'static Gpu>,
    published: [Option<f64>; 3],
    failed: Vec<String>,
}

/// A variant of the CUDA sources.
struct VariantTimes {
    name: String,
    written: Option<f64>,
    /// The time as loops, none where no kernel was one.
    loops: Option<f64>,
    kernels: BTreeMap<String, How>,
    gpu: Option<f64>,
    error: Option<f64>,
    counts: Option<Summary>,
    why: Option<String>,
}

/// A problem of a ladder, and the CUDA variants that run it: they refuse the problems before it.
pub(super) struct Emulation<'a> {
    pub(super) ladder: &'a dyn Ladder,
    pub(super) which: Which<'a>,
    pub(super) names: Vec<&'static str>,
}

/// Runs the CUDA sources of ladders on the CPU, prints what it costs and writes files.
pub(crate) fn run(context: &Context, ladders: &Ladders, args: &RunArgs) -> Result<()> {
    let outputs = outputs([&args.json, &args.csv, &args.html])?;
    let ladders = ladders.chosen(args.all, &args.names)?;
    let size = args.size.as_deref().map(size).transpose()?;
    let protocol = budget(args.rounds, args.budget, !args.one_buffer)?;
    check(&args.variant, &ladders)?;
    let mut plans = Vec::new();
    for &ladder in &ladders {
        let emulations = plan(ladder, args.case.as_deref(), size.as_deref(), &args.variant)?;
        let some = emulations.iter().any(|emulation| !emulation.names.is_empty());
        if !some && !args.all {
            let name = ladder.about().name;
            let message = format!("--emulate: expected CUDA variants, found none of {name} to run");
            return Err(BadInput::new(message)
                .hint(format!("rayspin-ladder list {name} says where its variants run"))
                .into());
        }
        plans.extend(emulations.into_iter().filter(|emulation| !emulation.names.is_empty()));
    }
    if args.check {
        return checks::run(context, args, &plans);
    }
    let threads = context.threads();
    let kept = CompileCache::new()?;
    let written = emulator()?.measuring(threads, Some(kept.folder.clone()), false)?;
    let loops = Arc::new(emulator()?.measuring(threads, Some(kept.folder.clone()), true)?);
    let processors = Processors {
        written: Device::with_driver(Arc::new(written), context.device.host()),
        looped: Device::with_driver(loops.clone(), context.device.host()),
        loops,
        gpu: matches!(context.device.backend(), Backend::Cuda(_)).then(|| context.device.clone()),
    };
    let mut counter = match args.counters {
        true => Some(Counter::new(context, &kept, counters::gpu(&args.on)?, false, None)?),
        false => None,
    };
    let tables = !outputs.iter().any(|(path, _)| is_stdout(path));
    let mut outcomes = Vec::new();
    let ran = stoppable(|| -> Result<()> {
        for emulation in &plans {
            if STOP.load(Ordering::SeqCst) {
                break;
            }
            let mut outcome = processors.benchmark(context, args, &protocol, emulation)?;
            if let Some(counter) = &mut counter {
                let found = counter.ladder(context, emulation, args.seed, &mut outcome.failed)?;
                outcome.predicted = Some(found.gpu);
                for variant in &mut outcome.variants {
                    variant.counts = found.summary(&variant.name);
                }
            }
            if tables {
                files::print(&args.width.text(&show::variants(&outcome)))?;
                for line in show::reasons(&outcome) {
                    say!("{line}");
                }
            }
            outcomes.push(outcome);
        }
        Ok(())
    });
    let about = show::About { cpu: context.device.host().describe(), threads };
    for (path, kind) in outputs {
        let text = match kind {
            Kind::Json => show::json(&about, &outcomes)?,
            Kind::Csv => show::csv(&outcomes),
            Kind::Html => show::page(&about, &outcomes).render(),
        };
        write(path, &text)?;
    }
    ran?;
    if STOP.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    if tables {
        let summary = show::summary(&about, &outcomes);
        files::print(&args.width.text(&summary))?;
        let some = outcomes.first().map(show::variants);
        files::print(&args.width.legend(some.iter().chain([&summary])))?;
    }
    let failed: Vec<_> = outcomes.into_iter().flat_map(|outcome| outcome.failed).collect();
    if !failed.is_empty() {
        anyhow::bail!("failed or wrong: {}", failed.join(", "));
    }
    Ok(())
}

/// The emulator. Errors: no C++ compiler, with what works without one.
pub(super) fn emulator() -> Result<Emulator> {
    Ok(Emulator::new().map_err(Missing::with(without::COMPILER))?)
}

/// Where the emulator keeps what it compiled.
pub(super) struct CompileCache {
    pub(super) folder: PathBuf,
    /// Goes with the run.
    _own: Option<tempfile::TempDir>,
}

impl CompileCache {
    /// What lies there is loaded as code: a folder that no other user may write to. Without one that stays, a
    /// new one.
    pub(super) fn new() -> Result<Self> {
        if let Some(folder) = cuda::cache_folder() {
            return Ok(Self { folder: folder.join("emulator"), _own: None });
        }
        let own = tempfile::tempdir()?;
        Ok(Self { folder: own.path().to_owned(), _own: Some(own) })
    }
}

/// The problem that the user names; else a small one: the largest of the trials that most variants take.
pub(super) fn which<'a>(
    ladder: &dyn Ladder,
    case: Option<&'a str>,
    size: Option<&'a [usize]>,
) -> Result<Which<'a>> {
    which_of(ladder, case, size, &|_| Ok(true))
}

/// [`which`], of those trials alone that `wanted` says.
pub(super) fn which_of<'a>(
    ladder: &dyn Ladder,
    case: Option<&'a str>,
    size: Option<&'a [usize]>,
    wanted: &dyn Fn(Which<'_>) -> Result<bool>,
) -> Result<Which<'a>> {
    let about = ladder.about();
    check_case(ladder, case)?;
    if case.is_some() || size.is_some() {
        let which = Which::Case(case, size);
        ladder.outline(which)?;
        return Ok(which);
    }
    if let Some((_, size)) = SIZES.iter().find(|(name, _)| *name == about.name) {
        return Ok(Which::Case(None, Some(size)));
    }
    // Variants for a GPU that take the problem, then its work.
    let mut largest = (Which::Trial(0), (0, 0.0));
    for trial in 0..ladder.trials() {
        if !wanted(Which::Trial(trial))? {
            continue;
        }
        let variants = ladder.outline(Which::Trial(trial))?.variants;
        let work = variants.first().map_or(0.0, |r| r.work.bytes + r.work.flops);
        let taking =
            variants.iter().filter(|r| r.backend == BackendKind::Cuda && r.refuses.is_none()).count();
        if (taking, work) > largest.1 {
            largest = (Which::Trial(trial), (taking, work));
        }
    }
    Ok(largest.0)
}

/// The problems that together run every CUDA variant that is wanted: [`which`], then those trials that most
/// of the variants left take. Where the user names a case or a size, that is the only problem.
pub(super) fn plan<'a>(
    ladder: &'a dyn Ladder,
    case: Option<&'a str>,
    size: Option<&'a [usize]>,
    variants: &[String],
) -> Result<Vec<Emulation<'a>>> {
    let wanted = |name: &str| variants.is_empty() || variants.iter().any(|wanted| wanted == name);
    let taking = |which: Which<'_>, left: &[&'static str]| -> Result<Vec<&'static str>> {
        let runs = |v: &VariantInfo| v.backend == BackendKind::Cuda && v.refuses.is_none();
        let variants = ladder.outline(which)?.variants;
        Ok(variants.iter().filter(|v| runs(v) && left.contains(&v.name)).map(|v| v.name).collect())
    };
    let mut which = which(ladder, case, size)?;
    let alone = case.is_some() || size.is_some();
    let mut left = names(ladder, which, if alone { 0 } else { ladder.trials() })?;
    left.retain(|name| wanted(name));
    let mut plan = Vec::new();
    if alone {
        plan.push(Emulation { ladder, which, names: left });
        return Ok(plan);
    }
    loop {
        let taken = taking(which, &left)?;
        left.retain(|name| !taken.contains(name));
        if !taken.is_empty() || plan.is_empty() {
            plan.push(Emulation { ladder, which, names: taken });
        }
        // The last of equally good trials is the largest, as a rule.
        let mut best = (0, Which::Trial(0));
        for trial in 0..ladder.trials() {
            let count = taking(Which::Trial(trial), &left)?.len();
            if count >= best.0.max(1) {
                best = (count, Which::Trial(trial));
            }
        }
        if best.0 == 0 {
            // What no problem takes is shown with its reason.
            if let Some(first) = plan.first_mut() {
                first.names.extend(left);
            }
            return Ok(plan);
        }
        which = best.1;
    }
}

/// Names of the variants for a GPU: of a problem, and of the first `trials` trials, which may have others.
fn names(ladder: &dyn Ladder, which: Which<'_>, trials: usize) -> Result<Vec<&'static str>> {
    let mut names = Vec::new();
    for which in std::iter::once(which).chain((0..trials).map(Which::Trial)) {
        let variants = ladder.outline(which)?.variants;
        for variant in variants.iter().filter(|variant| variant.backend == BackendKind::Cuda) {
            if !names.contains(&variant.name) {
                names.push(variant.name);
            }
        }
    }
    Ok(names)
}

/// Errors: a variant that none of the ladders has for a GPU.
pub(super) fn check(variants: &[String], ladders: &[&dyn Ladder]) -> Result<()> {
    let mut known = Vec::new();
    for ladder in ladders {
        known.extend(names(*ladder, Which::Case(None, None), ladder.trials())?);
    }
    match variants.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            Err(unknown("variant for a GPU", name, &known, "rayspin-ladder list NAME lists them").into())
        }
        None => Ok(()),
    }
}

struct Processors {
    written: Device,
    looped: Device,
    loops: Arc<Emulator>,
    gpu: Option<Device>,
}

impl Processors {
    fn benchmark(
        &self,
        context: &Context,
        args: &RunArgs,
        protocol: &Protocol,
        emulation: &Emulation<'_>,
    ) -> Result<LadderOutcome> {
        let Emulation { ladder, which, names } = emulation;
        let about = ladder.about();
        let on = |device: &Device,
                  kind: &str,
                  between: &mut dyn FnMut(Option<&str>)|
         -> Result<BenchmarkRun> {
            let mut session = ladder.open(*which, device, args.seed)?;
            let wanted = |name: &str| device.kind() == BackendKind::Cpu || names.contains(&name);
            let count =
                session.variants().iter().filter(|r| r.backend == device.kind() && wanted(r.name)).count();
            let (stage, began) = (format!("{} {kind}", about.name), Instant::now());
            context.console.begin(&stage, count);
            let ran = benchmark(session.as_mut(), device, protocol, &mut |variant| {
                between(Some(variant.name));
                if !wanted(variant.name) || STOP.load(Ordering::SeqCst) {
                    return Ok(None);
                }
                context.console.step("");
                Ok(Some(variant.space.default_config()))
            });
            between(None);
            context.console.end(&stage, began.elapsed().as_secs_f64());
            Ok(ran?)
        };
        let native = on(&context.device.host(), "in Rust", &mut |_| ())?;
        let written = on(&self.written, "as written", &mut |_| ())?;
        let (mut current, mut ran) = (None, BTreeMap::new());
        let as_loops = on(&self.looped, "as loops", &mut |next: Option<&str>| {
            let kernels = self.loops.take_ran();
            if let Some(variant) = std::mem::replace(&mut current, next.map(str::to_owned)) {
                ran.insert(variant, kernels);
            }
        })?;
        let gpu = self.gpu.as_ref().map(|gpu| on(gpu, "on the GPU", &mut |_| ())).transpose()?;

        let mut failed = Vec::new();
        for (run, how) in [(&native, "in Rust"), (&written, "as written"), (&as_loops, "as loops")] {
            let wrong = run.steps.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_)));
            failed.extend(wrong.map(|step| format!("{} of {} {how}", step.name, about.name)));
        }
        let variants = as_loops.steps.iter().zip(&written.steps).map(|(step, as_written)| {
            let kernels = ran.remove(&step.name).unwrap_or_default();
            let on_gpu = gpu.iter().flat_map(|gpu| &gpu.steps).find(|other| other.name == step.name);
            VariantTimes {
                name: step.name.clone(),
                written: seconds(as_written),
                loops: seconds(step).filter(|_| show::looped(&kernels) > 0),
                kernels,
                gpu: on_gpu.and_then(seconds),
                error: step.timed().map(|timed| timed.error),
                counts: None,
                why: [as_written, step].into_iter().find_map(why),
            }
        });
        let row =
            |name: &str| ladder.published().iter().find(|row| row.row == name).and_then(|row| row.seconds);
        let published = match about.name {
            "nudft-adjoint" => PUBLISHED_FHD.map(Some),
            _ => PUBLISHED_ROWS.map(row),
        };
        let best = native.steps.iter().filter_map(|step| Some((step.name.clone(), seconds(step)?)));
        Ok(LadderOutcome {
            ladder: about.name,
            problem: as_loops.problem.clone(),
            native: best.min_by(|a, b| a.1.total_cmp(&b.1)),
            variants: variants.collect(),
            gpu: gpu.is_some(),
            predicted: None,
            published,
            failed,
        })
    }
}

fn seconds(step: &Step) -> Option<f64> {
    step.timed().map(|timed| timed.timing.median)
}

fn why(step: &Step) -> Option<String> {
    match &step.outcome {
        Outcome::Timed(_) => None,
        Outcome::Refused(why) => Some(format!("not run: {why}")),
        Outcome::Failed(why) => Some(format!("FAILED: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_cuda_variant_is_emulated_on_a_problem_that_it_takes() {
        let ladders = Ladders::new(crate::ladders());
        for ladder in ladders.all() {
            let name = ladder.about().name;
            let args = Cli::parse_from(["rayspin-ladder", name, "--emulate"]).run;
            let mut known = BTreeSet::new();
            for trial in 0..ladder.trials() {
                let variants = ladder.outline(Which::Trial(trial)).unwrap().variants;
                known.extend(variants.iter().filter(|v| v.backend == BackendKind::Cuda).map(|v| v.name));
            }
            let mut run = BTreeSet::new();
            for emulation in plan(ladder, None, None, &args.variant).unwrap() {
                let variants = ladder.outline(emulation.which).unwrap().variants;
                for variant in &emulation.names {
                    let refuses = variants.iter().find(|v| v.name == *variant).map(|v| &v.refuses);
                    assert_eq!(refuses, Some(&None), "{name}: {variant}");
                    assert!(run.insert(*variant), "{name}: {variant} runs once");
                }
            }
            assert_eq!(run, known, "{name}");
        }
        let add = ladders.named(&["matrix-add".to_owned()]).unwrap()[0];
        let args = Cli::parse_from(["rayspin-ladder", "matrix-add", "--emulate"]).run;
        let run: Vec<_> = plan(add, args.case.as_deref(), None, &args.variant)
            .unwrap()
            .into_iter()
            .flat_map(|e| e.names)
            .collect();
        assert!(run.contains(&"gpu-one-block"), "the course's first kernel: {run:?}");
    }
}
