//! `rayspin-ladder try`: a kernel of the user's own between the others.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rayspin::core::Error;
use rayspin::device::{Backend, BackendKind, Device};
use rayspin::report::table::{Cell, Column, Table};
use rayspin::tune::{Config, Ladder, Own, Session, Which};
use rayspin_lab::{BenchmarkRun, Outcome, Step, benchmark};
use rayspin_shell::interrupt::{STOP, stoppable};
use rayspin_shell::{BadInput, Context, effect, files, say};

use super::benchmark::{budget, check_case, size};
use super::checks::{Checker, first_difference};
use super::counters::{self, Counter, DEFAULT_GPU, Found, Summary};
use super::emulate::{self, CompileCache, Emulation};
use super::{Ladders, which};
use crate::args::ladder::Try;

/// Prints what a kernel of the user's own is called with, or checks and times the one that the user wrote.
/// `line` is the whole command line.
pub(crate) fn run(context: &Context, known_ladders: &Ladders, args: &Try, line: &[OsString]) -> Result<()> {
    let ladders = known_ladders.named(std::slice::from_ref(&args.name))?;
    let Some(&ladder) = ladders.first() else { return Ok(()) };
    let size = args.size.as_deref().map(size).transpose()?;
    let protocol = budget(args.rounds, args.budget, true)?;
    let gpu = matches!(context.device.backend(), Backend::Cuda(_));
    let (case, size) = (args.case.as_deref(), size.as_deref());
    check_case(ladder, case)?;
    let which = match gpu {
        true => which(ladder, case, size, BackendKind::Cuda),
        false => small(ladder, case, size)?,
    };
    let (kernel, declaration) = signature(known_ladders, ladder, which)?;
    let Some(file) = &args.file else { return print_declaration(&args.name, kernel, declaration) };
    emulate::check(&args.variant, &ladders)?;
    let launch = LaunchOptions { block: &args.block, grid: args.grid.as_deref(), shared: args.shared };
    let own = own(context, file, &launch)?;
    if !gpu && together() {
        return apart(own.name, line, case.is_none() && size.is_none());
    }
    let kept = CompileCache::new()?;
    let emulated = |loops: bool| -> Result<Device> {
        let emulator = emulate::emulator()?.measuring(context.threads(), Some(kept.folder.clone()), loops)?;
        Ok(Device::with_driver(Arc::new(emulator), context.device.host()))
    };
    // As written a kernel keeps its lines, which the compiler's words name; as loops it is faster.
    let devices = match gpu {
        true => [context.device.clone(), context.device.clone()],
        false => [emulated(false)?, emulated(true)?],
    };
    let mut checked: Checked = Ok(());
    let mut result = None;
    let run = stoppable(|| -> Result<BenchmarkRun> {
        let [first, device] = &devices;
        check_compiles(ladder, which, first, own, args.seed)?;
        // Where races and memory errors are looked for, results are compared too.
        checked = if args.fast {
            Err("--fast".to_owned())
        } else {
            match Checker::new(context.device.host(), &kept) {
                Ok(checker) => Ok(check_faults((ladder, kernel), &checker, own, args.seed)?),
                Err(error) => Err(error.to_string()),
            }
        };
        if gpu || checked.is_err() {
            check_trials((ladder, kernel), device, own, args.seed)?;
        }
        let mut session = ladder.open_with(which, device, args.seed, own)?;
        let wanted = |name: &str| {
            name == own.name || args.variant.is_empty() || args.variant.iter().any(|variant| variant == name)
        };
        let run = benchmark(session.as_mut(), device, &protocol, &mut |variant| {
            tell_step();
            let go = wanted(variant.name) && !STOP.load(Ordering::SeqCst);
            Ok(go.then(|| variant.space.default_config()))
        })?;
        if session.result()?.is_some() && !STOP.load(Ordering::SeqCst) {
            // Others ran since.
            session.run(session.variants().len() - 1, &Config::default(), 0)?;
            result = session.result()?;
        }
        Ok(run)
    })?;
    if STOP.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    let place = if gpu { "" } else { ", emulated: times predict no GPU" };
    // On a GPU the problem is another one than the emulator can count.
    let counted = match gpu || args.fast {
        true => None,
        false => count(
            context,
            &kept,
            &Emulation { ladder, which, names: timed(ladder, which, &run)? },
            own,
            args.seed,
        )?,
    };
    files::print(&args.width.text(&table(&args.name, &run, own.name, place, counted.as_ref())))?;
    let wrong = |step: &Step| match &step.outcome {
        Outcome::Failed(why) | Outcome::Refused(why) if step.name == own.name => Some(why.clone()),
        Outcome::Timed(_) | Outcome::Failed(_) | Outcome::Refused(_) => None,
    };
    match run.steps.iter().find_map(wrong) {
        Some(why) => anyhow::bail!("{} on {}: {why}", own.name, run.problem),
        None => {
            let words = match checked {
                Ok(()) => format!("{}: right: no wrong result, no race, no memory error was found", own.name),
                Err(why) => format!(
                    "{}: results are right; races and memory errors were not looked for ({why})",
                    own.name
                ),
            };
            files::print(&args.width.lines(&words))?;
            if let Some(result) = result {
                files::print(&args.width.lines(&format!("{}: {result}", own.name)))?;
            }
            let first = counted.and_then(|found| found.change_first(own.name));
            if let Some(words) = first {
                files::print(&args.width.lines(&words))?;
            }
            files::print(&format!(
                "rayspin-ladder counters {} --own {} counts what it does, line by line",
                args.name,
                file.display()
            ))
        }
    }
}

/// The problem for the emulator: the one that the user names, else the largest of the trials that the default
/// case's kernel computes.
pub(super) fn small<'a>(
    ladder: &dyn Ladder,
    case: Option<&'a str>,
    size: Option<&'a [usize]>,
) -> Result<Which<'a>> {
    let first = ladder.signature(Which::Case(None, None))?.map(|(kernel, _)| kernel);
    emulate::which_of(ladder, case, size, &|trial| {
        let kernel = ladder.signature(trial)?.map(|(kernel, _)| kernel);
        Ok(first.is_none() || kernel == first)
    })
}

/// Names of the ladder's variants that ran.
fn timed(ladder: &dyn Ladder, which: Which<'_>, run: &BenchmarkRun) -> Result<Vec<&'static str>> {
    let ran = |name: &str| run.steps.iter().any(|step| step.name == name && step.timed().is_some());
    let variants = ladder.outline(which)?.variants;
    Ok(variants.iter().map(|variant| variant.name).filter(|name| ran(name)).collect())
}

/// What the user's kernel and the variants beside it do; none without a compiler that can count, which the
/// words about races tell.
fn count(
    context: &Context,
    kept: &CompileCache,
    emulation: &Emulation<'_>,
    own: Own,
    seed: u64,
) -> Result<Option<Found>> {
    let Ok(mut counter) = Counter::new(context, kept, counters::gpu(DEFAULT_GPU)?, false, Some(own)) else {
        return Ok(None);
    };
    counter.ladder(context, emulation, seed, &mut Vec::new()).map(Some)
}

/// Why races and memory errors were not looked for, if they were not.
type Checked = std::result::Result<(), String>;

/// Runs the kernel on the small problems of the tests in an emulator that looks for races and memory errors.
///
/// Errors: it fails, is wrong, or has one of these, with the problem and its lines.
pub(super) fn check_faults(
    (ladder, kernel): (&dyn Ladder, &str),
    checker: &Checker,
    own: Own,
    seed: u64,
) -> Result<()> {
    for trial in trials(ladder, kernel)?.into_iter().take_while(|_| !STOP.load(Ordering::SeqCst)) {
        check_problem(ladder, trial, checker, own, seed)?;
    }
    Ok(())
}

/// The small problems of the tests that a kernel of this name computes; some ladders have a name for each of
/// their kinds of problems.
fn trials<'a>(ladder: &dyn Ladder, kernel: &str) -> Result<Vec<Which<'a>>> {
    let mut trials = Vec::new();
    for trial in (0..ladder.trials()).map(Which::Trial) {
        if ladder.signature(trial)?.is_some_and(|(name, _)| name == kernel) {
            trials.push(trial);
        }
    }
    Ok(trials)
}

/// [`check_faults`] on one problem.
pub(super) fn check_problem(
    ladder: &dyn Ladder,
    which: Which<'_>,
    checker: &Checker,
    own: Own,
    seed: u64,
) -> Result<()> {
    let mut session = ladder.open_with(which, &checker.device, seed, own)?;
    let index = session.variants().len() - 1;
    let (error, faults) = checker.run(session.as_mut(), index);
    tell_step();
    let (errors, notes): (Vec<_>, Vec<_>) = faults.into_iter().partition(|fault| !fault.is_note());
    for note in notes.iter().filter(|_| error.is_ok()) {
        say!("note: {note}");
    }
    let description = || format!("{} on {}", own.name, session.problem());
    if let Some(first) = errors.first() {
        for fault in &errors {
            say!("{fault}");
        }
        let others = match errors.len() - 1 {
            0 => String::new(),
            others => format!(", and {others} more"),
        };
        anyhow::bail!("{}: {}{others}", description(), first.title());
    }
    let error = error.with_context(description)?;
    expect_right(error, session.as_mut(), index, own.name)
}

/// Errors: an error above the tolerance, with the first output that is wrong.
fn expect_right(error: f64, session: &mut dyn Session, variant: usize, name: &str) -> Result<()> {
    let tolerance = session.variants()[variant].tolerance;
    // Not `error > tolerance`: NaN is wrong too.
    if error <= tolerance {
        return Ok(());
    }
    let problem = session.problem();
    let first = first_difference(session, variant).map(|words| format!("; {words}")).unwrap_or_default();
    anyhow::bail!("{name} on {problem}: wrong: error {error:.2e}, at most {tolerance:.0e} is allowed{first}")
}

/// Why ladders take no kernel of the user's own.
const TAKES_NONE: [(&str, &str); 5] = [
    ("transfers", "it times copies between the host and a GPU, in which no kernel takes part"),
    (
        "nufft-type1",
        "a Fourier transform stands behind the gridding; nudft-adjoint takes a kernel of the exact sum",
    ),
    ("nufft-type2", "a Fourier transform stands before the interpolation"),
    ("h264", "its result is a coded frame, by tables of a standard; sad takes a kernel of its search"),
    ("rpes", "six kinds of integrals with tables of roots are one result"),
];

/// Name and declaration of the kernel. Errors: one kernel cannot compute the problem, with the reason, or the
/// cases or ladders where one can.
fn signature(
    known_ladders: &Ladders,
    ladder: &dyn Ladder,
    which: Which<'_>,
) -> Result<(&'static str, &'static str)> {
    if let Some(signature) = ladder.signature(which)? {
        return Ok(signature);
    }
    let name = ladder.about().name;
    if let Some((_, why)) = TAKES_NONE.iter().find(|(none, _)| *none == name) {
        let hint = "rayspin-ladder try NAME prints what a kernel of another ladder has to do";
        return Err(BadInput::new(format!("try: {name} takes no kernel of your own: {why}"))
            .hint(hint)
            .into());
    }
    let mut cases = Vec::new();
    for (case, ..) in ladder.cases() {
        if ladder.signature(Which::Case(Some(case), None))?.is_some() {
            cases.push(case);
        }
    }
    if !cases.is_empty() {
        let cases = cases.join(", ");
        let message =
            format!("try: expected a case of {name} that one kernel computes ({cases}), found another");
        return Err(BadInput::new(message)
            .hint("rayspin-ladder try NAME --case CASE prints what it has to do")
            .into());
    }
    let possible: Vec<_> = known_ladders
        .all()
        .iter()
        .filter(|other| matches!(other.signature(Which::Case(None, None)), Ok(Some(_))))
        .map(|other| other.about().name)
        .collect();
    let message = format!(
        "try: expected an algorithm that one kernel computes ({}), found {}",
        possible.join(", "),
        name
    );
    Err(BadInput::new(message).hint("rayspin-ladder try NAME prints what a kernel has to do").into())
}

fn print_declaration(name: &str, kernel: &str, declaration: &str) -> Result<()> {
    let text = format!(
        "{declaration} {{\n    // Your code.\n}}\n\n\
         // Write the kernel {kernel}, with any functions that it calls, to a file.\n\
         // --block and --grid set its blocks: 256, 32x8, 8x8x8.\n\
         // The defaults are 256 threads a block, and a thread for each output.\n\
         // Several kernels are launched by lines such as this, with the names above:\n\
         // // launch: first<<<(n + 255) / 256, 256>>>(a, n)\n\
         // The file needs no main. Then:\n\
         // rayspin-ladder try {name} FILE"
    );
    files::print(&text)
}

/// The user's kernels. Errors: no such file, no text, a block without threads, options beside a list of
/// launches.
pub(super) fn own(context: &Context, file: &Path, launch: &LaunchOptions<'_>) -> Result<Own> {
    let text = rayspin::io::read_text(file).map_err(|error| {
        BadInput::new(format!("expected CUDA C++, found none: {error}"))
            .hint("rayspin-ladder try NAME prints how such a kernel begins")
    })?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let threads = sides("--block", launch.block, 1024)?;
    let all: u64 = threads.iter().map(|&side| u64::from(side)).product();
    if all > 1024 {
        let message = format!("--block: expected at most 1024 threads in all, found {all}");
        return Err(BadInput::new(message).hint(LAUNCH_HINT).into());
    }
    let blocks = launch.grid.map(|grid| sides("--grid", grid, i32::MAX as u32)).transpose()?;
    let own = Own::new(&name, &text, threads, &HEADERS).map_err(|error| {
        BadInput::new(error.to_string()).hint("rayspin-ladder try --help shows such lines")
    })?;
    if own.lists_launches()
        && let Some(option) = ["block", "grid", "shared"].iter().find_map(|field| context.given.name(field))
    {
        effect::refuse(option, "a file that lists no launches", &format!("launches in {name}"))?;
    }
    Ok(own.launched(blocks, launch.shared))
}

/// Headers that a user's kernel may include, which Rayspin has in the place of the toolkit's.
const HEADERS: [(&str, &str); 1] = [("curand_kernel.h", rayspin_emu::CURAND_KERNEL)];

/// How the user's kernel is launched, where its file does not say so.
pub(super) struct LaunchOptions<'a> {
    pub(super) block: &'a str,
    pub(super) grid: Option<&'a str>,
    pub(super) shared: u32,
}

const LAUNCH_HINT: &str = "rayspin-ladder try --help tells of threads and blocks";

/// One to three numbers between "x".
fn sides(option: &str, text: &str, most: u32) -> Result<[u32; 3]> {
    let sides: Option<Vec<u32>> = text
        .split('x')
        .map(|side| side.trim().parse().ok().filter(|side| (1..=most).contains(side)))
        .collect();
    let sides = sides.filter(|sides| sides.len() <= 3).ok_or_else(|| {
        let message =
            format!("{option}: expected one to three numbers of 1 to {most}, as in 32x8, found {text}");
        BadInput::new(message).hint(LAUNCH_HINT)
    })?;
    let side = |axis: usize| sides.get(axis).copied().unwrap_or(1);
    Ok([side(0), side(1), side(2)])
}

/// Names, in the process that runs a kernel in the emulator, a file that grows with each of its steps.
const APART: &str = "RAYSPIN_TRY_APART";

/// How long a step may take in the emulator in the sizes of the checks: a problem with its compilation, or a
/// variant.
const LONGEST: Duration = Duration::from_secs(90);

/// Whether this process is the one that the user started.
pub(super) fn together() -> bool {
    std::env::var_os(APART).is_none()
}

/// Tells the process that waits that a step is done.
pub(super) fn tell_step() {
    let Some(file) = std::env::var_os(APART) else { return };
    let told = std::fs::OpenOptions::new().append(true).open(file).and_then(|mut file| file.write_all(b"."));
    // What is not told is not known: the time goes on.
    drop(told);
}

/// Runs this command in a process of its own: a kernel that writes outside its arrays ends that one. In the
/// small sizes of the checks a kernel takes seconds; in a size of the user's it takes what it takes.
pub(super) fn apart(name: &str, line: &[OsString], small: bool) -> Result<()> {
    let longest = small.then_some(LONGEST);
    let own = std::env::current_exe().context("finding this program")?;
    let steps = tempfile::NamedTempFile::new().context("a file of steps")?;
    let mut command = std::process::Command::new(own);
    command.args(line.iter().skip(1)).env(APART, steps.path());
    let told = || steps.as_file().metadata().map_or(0, |file| file.len());
    let Some(status) = wait(command, longest, &told)? else {
        let seconds = longest.unwrap_or_default().as_secs();
        anyhow::bail!("{name} did not end a step in the emulator within {seconds} s: does a loop never end?");
    };
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => std::process::exit(code),
        None => anyhow::bail!(
            "{name} ended the emulator ({status}): it reads or writes outside its arrays, or never ends a recursion"
        ),
    }
}

/// Runs a command to its end; none where a step takes longer than `longest`, after which it is stopped.
/// `steps` says how many it did.
fn wait(
    mut command: std::process::Command,
    longest: Option<Duration>,
    steps: &dyn Fn() -> u64,
) -> Result<Option<ExitStatus>> {
    let mut child = command.spawn().context("starting this program")?;
    let Some(longest) = longest else { return Ok(Some(child.wait()?)) };
    let (mut begun, mut done) = (Instant::now(), steps());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let now = steps();
        if now != done {
            (begun, done) = (Instant::now(), now);
        }
        if begun.elapsed() > longest {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Errors: it does not compile ([`BadInput`], after the compiler's words), or has another name.
pub(super) fn check_compiles(
    ladder: &dyn Ladder,
    which: Which<'_>,
    device: &Device,
    own: Own,
    seed: u64,
) -> Result<()> {
    match ladder.open_with(which, device, seed, own) {
        Err(Error::Device { detail, .. }) => {
            say!("{}", detail.trim_end());
            let message = format!("{}: expected CUDA C++ that compiles", own.name);
            Err(BadInput::new(message).hint("the compiler's words are above").into())
        }
        Err(error @ Error::Value { .. }) => {
            let hint = format!("rayspin-ladder try {} prints how the kernel begins", ladder.about().name);
            Err(BadInput::new(error.to_string()).hint(hint).into())
        }
        Err(error) => Err(error.into()),
        Ok(_) => {
            tell_step();
            Ok(())
        }
    }
}

/// Runs the kernel on every small problem of the tests: odd, prime, of size 1, longer than a tile.
///
/// Errors: it fails or is wrong, with the problem.
fn check_trials((ladder, kernel): (&dyn Ladder, &str), device: &Device, own: Own, seed: u64) -> Result<()> {
    for trial in trials(ladder, kernel)?.into_iter().take_while(|_| !STOP.load(Ordering::SeqCst)) {
        let mut session = ladder.open_with(trial, device, seed, own)?;
        let problem = session.problem();
        let index = session.variants().len() - 1;
        let description = || format!("{} on {problem}", own.name);
        let error = session.verify(index, &Default::default()).with_context(description)?;
        tell_step();
        expect_right(error, session.as_mut(), index, own.name)?;
    }
    Ok(())
}

/// The variants by their times, fastest first, the user's own marked; not those that refuse the problem.
fn table(ladder: &str, run: &BenchmarkRun, own: &str, place: &str, counted: Option<&Found>) -> Table {
    let seconds = |step: &Step| step.timed().map(|timed| timed.timing.median);
    let mine = run.steps.iter().find(|step| step.name == own).and_then(seconds);
    let ran = |step: &&Step| step.name == own || !matches!(step.outcome, Outcome::Refused(_));
    let mut steps: Vec<&Step> = run.steps.iter().filter(ran).collect();
    let key = |step: &Step| seconds(step).unwrap_or(f64::INFINITY);
    steps.sort_by(|a, b| key(a).total_cmp(&key(b)));
    let mut columns = vec![
        Column::text("Variant"),
        Column::number("Time").seconds(),
        Column::number("Yours is × as fast").decimals(2),
        Column::number("Error").significant(2),
    ];
    columns.extend(counted.into_iter().flat_map(|found| Summary::columns(found.gpu)));
    columns.push(Column::text("What it is"));
    let mut table = Table::new(format!("{ladder}: {}, {}{place}", run.problem, run.device), columns);
    for step in steps {
        let name = if step.name == own { format!("> {own}") } else { step.name.clone() };
        let what = match &step.outcome {
            Outcome::Timed(_) => step.summary.clone(),
            Outcome::Refused(why) => format!("not run: {why}"),
            Outcome::Failed(why) => format!("FAILED: {why}"),
        };
        let ratio = mine.zip(seconds(step)).map(|(mine, other)| other / mine).filter(|_| step.name != own);
        let mut row: Vec<Cell> = vec![
            name.into(),
            seconds(step).into(),
            ratio.into(),
            step.timed().map(|timed| timed.error).into(),
        ];
        if let Some(found) = counted {
            row.extend(Summary::cells(found.summary(&step.name).as_ref()));
        }
        row.push(what.into());
        table.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_stopped() {
        let sleep = |seconds: &str| {
            let mut command = std::process::Command::new("sleep");
            command.arg(seconds);
            command
        };
        let still = || 0;
        assert!(wait(sleep("30"), Some(Duration::from_millis(50)), &still).unwrap().is_none());
        assert!(wait(sleep("0"), Some(Duration::from_secs(30)), &still).unwrap().unwrap().success());
        assert!(wait(sleep("0"), None, &still).unwrap().unwrap().success());
        // Steps that end begin the time anew.
        let count = std::cell::Cell::new(0);
        let steps = || count.replace(count.get() + 1);
        assert!(wait(sleep("0.4"), Some(Duration::from_millis(100)), &steps).unwrap().unwrap().success());
    }
}
