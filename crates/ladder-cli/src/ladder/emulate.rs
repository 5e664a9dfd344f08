//! `rayspin-ladder --emulate`: one source on two processors.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;
use rayspin::core::{Error, Progress};
use rayspin::device::{Backend, BackendKind, Device, cuda};
use rayspin::report::table::{Cell, Column, Table};
use rayspin::tune::{Ladder, Which, documents};
use rayspin_emu::{Emulator, How};
use rayspin_lab::{Climb, Outcome, Protocol, Step, climb};
use rayspin_shell::interrupt::{STOP, stoppable};
use rayspin_shell::{Context, files, say};

use super::climbing::{budget, check_case, size};
use super::{Ladders, unknown};
use crate::args::ladder::Run;

/// Sizes that a fibre a thread takes less than seconds for.
const SIZES: [(&str, &[usize]); 4] = [
    ("nudft-adjoint", &[64, 64, 512]),
    ("coulomb", &[512, 1, 128, 128]),
    ("sad", &[48, 64, 16]),
    ("matrix-product", &[256]),
];

/// C on the CPU, CUDA source on the CPU, GPU, in seconds, of an application that the ladder is the kernel of.
const PUBLISHED_FHD: [f64; 3] = [1000.0, 230.0, 8.5];

const AS_WRITTEN: &str = "as written only";

/// What came of a ladder on each processor.
struct Found {
    ladder: &'static str,
    problem: String,
    native: Option<(String, f64)>,
    rungs: Vec<Rung>,
    gpu: bool,
    published: [Option<f64>; 3],
    failed: Vec<String>,
}

/// A rung of the CUDA sources.
struct Rung {
    name: String,
    written: Option<f64>,
    /// The time as loops, none where no kernel was one.
    loops: Option<f64>,
    kernels: BTreeMap<String, How>,
    gpu: Option<f64>,
    error: Option<f64>,
    why: Option<String>,
}

/// Runs the CUDA sources of ladders on the CPU and prints what it costs.
pub(crate) fn run(context: &Context, ladders: &Ladders, args: &Run) -> Result<()> {
    let ladders = ladders.chosen(args.all, &args.names)?;
    let size = args.size.as_deref().map(size).transpose()?;
    let protocol = budget(args.rounds, args.budget, !args.one_buffer)?;
    let mut plans = Vec::new();
    for &ladder in &ladders {
        let which = which(ladder, args.case.as_deref(), size.as_deref())?;
        plans.push((ladder, which));
    }
    check(&args.rung, &ladders)?;
    let emulator = Emulator::new()?;
    let threads = context.threads();
    let kept = Kept::new()?;
    let written = emulator.measuring(threads, Some(kept.folder.clone()), false)?;
    let loops = Arc::new(Emulator::new()?.measuring(threads, Some(kept.folder.clone()), true)?);
    let processors = Processors {
        written: Device::with_driver(Arc::new(written), context.device.host()),
        looped: Device::with_driver(loops.clone(), context.device.host()),
        loops,
        gpu: matches!(context.device.backend(), Backend::Cuda(_)).then(|| context.device.clone()),
    };
    let mut all = Vec::new();
    stoppable(|| -> Result<()> {
        for (ladder, which) in &plans {
            if STOP.load(Ordering::SeqCst) {
                break;
            }
            let found = processors.climb(context, args, &protocol, *ladder, *which)?;
            files::print(&rungs(&found, context))?;
            for rung in &found.rungs {
                if let Some(why) = &rung.why {
                    say!("{} of {}: {why}", rung.name, found.ladder);
                }
                for (kernel, how) in &rung.kernels {
                    if let How::Written(why) = how {
                        say!("{} of {}: {kernel} runs as written: {why}", rung.name, found.ladder);
                    }
                }
            }
            all.push(found);
        }
        Ok(())
    })?;
    if STOP.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    files::print(&summary(&all))?;
    let failed: Vec<_> = all.into_iter().flat_map(|found| found.failed).collect();
    if !failed.is_empty() {
        anyhow::bail!("failed or wrong: {}", failed.join(", "));
    }
    Ok(())
}

/// Where the emulator keeps what it compiled.
pub(super) struct Kept {
    pub(super) folder: PathBuf,
    /// Goes with the run.
    _own: Option<tempfile::TempDir>,
}

impl Kept {
    /// What lies there is loaded as code: a folder that no other user may write to. Without one that stays, a new one.
    pub(super) fn new() -> Result<Self> {
        if let Some(folder) = cuda::cache_folder() {
            return Ok(Self { folder: folder.join("emulator"), _own: None });
        }
        let own = tempfile::tempdir()?;
        Ok(Self { folder: own.path().to_owned(), _own: Some(own) })
    }
}

/// The problem that was asked for, else one that is small enough: of those that most rungs take, the largest.
pub(super) fn which<'a>(
    ladder: &dyn Ladder,
    case: Option<&'a str>,
    size: Option<&'a [usize]>,
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
    // Rungs for a GPU that take the problem, then its work.
    let mut largest = (Which::Trial(0), (0, 0.0));
    for trial in 0..ladder.trials() {
        let rungs = ladder.outline(Which::Trial(trial))?.rungs;
        let work = rungs.first().map_or(0.0, |r| r.work.bytes + r.work.flops);
        let taking = rungs.iter().filter(|r| r.backend == BackendKind::Cuda && r.refuses.is_none()).count();
        if (taking, work) > largest.1 {
            largest = (Which::Trial(trial), (taking, work));
        }
    }
    Ok(largest.0)
}

/// Errors: a rung that none of the ladders has for a GPU.
pub(super) fn check(rungs: &[String], ladders: &[&dyn Ladder]) -> Result<()> {
    let mut known = Vec::new();
    for ladder in ladders {
        let rungs = ladder.outline(Which::Case(None, None))?.rungs;
        known.extend(rungs.iter().filter(|rung| rung.backend == BackendKind::Cuda).map(|rung| rung.name));
    }
    match rungs.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            Err(unknown("rung for a GPU", name, &known, "rayspin-ladder list NAME lists them").into())
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
    fn climb(
        &self,
        context: &Context,
        args: &Run,
        protocol: &Protocol,
        ladder: &dyn Ladder,
        which: Which<'_>,
    ) -> Result<Found> {
        let about = ladder.about();
        let on = |device: &Device, kind: &str, between: &mut dyn FnMut(Option<&str>)| -> Result<Climb> {
            let mut session = ladder.open(which, device, args.seed)?;
            let wanted = |name: &str| {
                device.kind() == BackendKind::Cpu
                    || args.rung.is_empty()
                    || args.rung.iter().any(|r| r == name)
            };
            let count =
                session.rungs().iter().filter(|r| r.backend == device.kind() && wanted(r.name)).count();
            let (stage, began) = (format!("{} {kind}", about.name), Instant::now());
            context.console.begin(&stage, count);
            let climbed = climb(session.as_mut(), device, protocol, &mut |rung| {
                between(Some(rung.name));
                if !wanted(rung.name) || STOP.load(Ordering::SeqCst) {
                    return Ok(None);
                }
                context.console.step("");
                Ok(Some(rung.space.default_config()))
            });
            between(None);
            context.console.end(&stage, began.elapsed().as_secs_f64());
            Ok(climbed?)
        };
        let native = on(&context.device.host(), "in Rust", &mut |_| ())?;
        let written = on(&self.written, "as written", &mut |_| ())?;
        let (mut current, mut ran) = (None, BTreeMap::new());
        let as_loops = on(&self.looped, "as loops", &mut |next: Option<&str>| {
            let kernels = self.loops.take_ran();
            if let Some(rung) = std::mem::replace(&mut current, next.map(str::to_owned)) {
                ran.insert(rung, kernels);
            }
        })?;
        let gpu = self.gpu.as_ref().map(|gpu| on(gpu, "on the GPU", &mut |_| ())).transpose()?;

        let mut failed = Vec::new();
        for (climb, how) in [(&native, "in Rust"), (&written, "as written"), (&as_loops, "as loops")] {
            let wrong = climb.steps.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_)));
            failed.extend(wrong.map(|step| format!("{} of {} {how}", step.name, about.name)));
        }
        let rungs = as_loops.steps.iter().zip(&written.steps).map(|(step, as_written)| {
            let kernels = ran.remove(&step.name).unwrap_or_default();
            let on_gpu = gpu.iter().flat_map(|gpu| &gpu.steps).find(|other| other.name == step.name);
            Rung {
                name: step.name.clone(),
                written: seconds(as_written),
                loops: seconds(step).filter(|_| looped(&kernels) > 0),
                kernels,
                gpu: on_gpu.and_then(seconds),
                error: step.timed().map(|timed| timed.error),
                why: [as_written, step].into_iter().find_map(why),
            }
        });
        let row =
            |name: &str| ladder.published().iter().find(|row| row.row == name).and_then(|row| row.seconds);
        let published = match about.name {
            "nudft-adjoint" => PUBLISHED_FHD.map(Some),
            _ => ["C on a CPU", "CUDA source on a CPU", "CUDA on a GPU"].map(row),
        };
        let best = native.steps.iter().filter_map(|step| Some((step.name.clone(), seconds(step)?)));
        Ok(Found {
            ladder: about.name,
            problem: as_loops.problem.clone(),
            native: best.min_by(|a, b| a.1.total_cmp(&b.1)),
            rungs: rungs.collect(),
            gpu: gpu.is_some(),
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

fn looped(kernels: &BTreeMap<String, How>) -> usize {
    kernels.values().filter(|how| matches!(how, How::Loops(_))).count()
}

/// Into how many loops the kernel with most of them is split.
fn parts(kernels: &BTreeMap<String, How>) -> String {
    let loops = kernels.values().map(|how| if let How::Loops(loops) = how { *loops } else { 0 }).max();
    match loops.unwrap_or_default() {
        1 => "whole".to_owned(),
        loops => format!("in {loops}"),
    }
}

/// The CUDA rungs of a ladder, both ways.
fn rungs(found: &Found, context: &Context) -> Table {
    let native = match &found.native {
        Some((name, seconds)) => {
            format!("native Rust {}: {}", name, rayspin::report::number::seconds(*seconds))
        }
        None => "no rung in Rust".to_owned(),
    };
    let caption = format!(
        "{}: {}, CUDA sources on {} ({native}; a small problem, as fibres are slow)",
        found.ladder,
        found.problem,
        context.device.host().describe()
    );
    let mut columns = vec![
        Column::text("CUDA rung"),
        Column::number("As written").seconds(),
        Column::number("MCUDA").seconds(),
        Column::number("Written / MCUDA").unit("×").decimals(2),
        Column::number("MCUDA / Rust").unit("×").decimals(2),
        Column::text("Kernels as loops"),
    ];
    if found.gpu {
        columns.push(Column::number("GPU").seconds());
    }
    columns.push(Column::number("Error").significant(2));
    let native = found.native.as_ref().map(|(_, seconds)| *seconds);
    let mut table = Table::new(caption, columns);
    for rung in &found.rungs {
        let mut row: Vec<Cell> = vec![
            rung.name.as_str().into(),
            rung.written.into(),
            rung.loops.into(),
            ratio(rung.written, rung.loops).into(),
            ratio(rung.loops, native).into(),
            match [looped(&rung.kernels), rung.kernels.len()] {
                [_, 0] => "not run".into(),
                [0, _] => AS_WRITTEN.into(),
                [whole, all] if whole == all => format!("all, {}", parts(&rung.kernels)).into(),
                [whole, all] => format!("{whole} of {all}, {}", parts(&rung.kernels)).into(),
            },
        ];
        if found.gpu {
            row.push(rung.gpu.into());
        }
        row.push(rung.error.into());
        table.push(row);
    }
    table
}

fn ratio(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    Some(above? / below?)
}

/// The best of each processor, beside the published table.
fn summary(all: &[Found]) -> Table {
    let published = all.iter().any(|found| found.published.iter().any(Option::is_some));
    let gpu = all.iter().any(|found| found.gpu);
    let mut caption =
        "One source, two processors: the best rung of each, MCUDA where all kernels of the rung are loops"
            .to_owned();
    if published {
        caption.push_str(
            "; published: larger problems on the processors of 2008, of nudft-adjoint MRI-FHD, in ",
        );
        caption.push_str(documents::APPLICATION_DEVELOPMENT);
    }
    let mut columns = vec![
        Column::text("Ladder"),
        Column::number("Native Rust").seconds(),
        Column::number("CUDA on CPU, as written").seconds(),
        Column::number("MCUDA").seconds(),
        Column::number("MCUDA / Rust").unit("×").decimals(2),
    ];
    if gpu {
        columns.push(Column::number("GPU").seconds());
    }
    if published {
        columns.extend([
            Column::number("published: C on CPU").seconds(),
            Column::number("CUDA on CPU").seconds(),
            Column::number("on GPU").seconds(),
        ]);
    }
    let mut table = Table::new(caption, columns);
    for found in all {
        let best =
            |of: &dyn Fn(&Rung) -> Option<f64>| found.rungs.iter().filter_map(of).min_by(f64::total_cmp);
        let loops = best(&|rung| rung.loops.filter(|_| looped(&rung.kernels) == rung.kernels.len()));
        let native = found.native.as_ref().map(|(_, seconds)| *seconds);
        let mut row: Vec<Cell> = vec![
            found.ladder.into(),
            native.into(),
            best(&|rung| rung.written).into(),
            loops.into(),
            ratio(loops, native).into(),
        ];
        if gpu {
            row.push(best(&|rung| rung.gpu).into());
        }
        if published {
            row.extend(found.published.map(Cell::from));
        }
        table.push(row);
    }
    table
}
