//! `rayspin-ladder exercise`: tasks for kernels of the user's own, judged by what the kernels do, without a
//! GPU.

mod text;

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result};
use rayspin::core::Error;
use rayspin::report::table::{Column, Table, wrap};
use rayspin::tune::{Ladder, Own, Which};
use rayspin_shell::interrupt::{STOP, stoppable};
use rayspin_shell::{Context, effect, files};

use super::checks::Checker;
use super::counters::{self, Counter, DEFAULT_GPU};
use super::emulate::{CompileCache, Emulation};
use super::{Ladders, own, unknown};
use crate::args::ladder::Exercise as Args;
use text::{Exercise, Goal};

/// Columns of what is printed as comments of a file.
const COMMENT: usize = 107;

/// Seed of the inputs.
const SEED: u64 = 1;

/// Names of the exercises, with their titles.
pub(crate) fn names() -> Vec<(&'static str, &'static str)> {
    text::ALL.iter().map(|&(name, text)| (name, text::title(text))).collect()
}

/// Lists the exercises, prints one, or judges a kernel. `line` is the whole command line.
pub(crate) fn run(context: &Context, ladders: &Ladders, args: &Args, line: &[OsString]) -> Result<()> {
    if let Some(option) = context.given.name("threads") {
        effect::refuse(option, "commands that use several threads", "exercise, which uses one")?;
    }
    let Some(name) = &args.name else { return files::print(&args.width.text(&list()?)) };
    let exercise = named(name)?;
    let chosen = ladders.named(&[exercise.ladder.to_owned()])?;
    let Some(&ladder) = chosen.first() else { return Ok(()) };
    if let Some(count) = args.hint {
        return files::print(&hints(&exercise, count as usize));
    }
    if args.solution {
        return files::print(&exercise.solution);
    }
    match &args.file {
        None => files::print(&task(ladder, &exercise)?),
        Some(file) => answer(context, ladder, &exercise, args, file, line),
    }
}

/// Errors: no exercise has this name, with the nearest.
fn named(name: &str) -> Result<Exercise> {
    let Some(&(name, text)) = text::ALL.iter().find(|(known, _)| *known == name) else {
        let known: Vec<_> = text::ALL.iter().map(|(name, _)| *name).collect();
        return Err(unknown("exercise", name, &known, "rayspin-ladder exercise lists them").into());
    };
    Exercise::parse(text)
        .with_context(|| format!("exercise {name}"))
        .map(|exercise| Exercise { name, ..exercise })
}

fn list() -> Result<Table> {
    let columns =
        [Column::text("Exercise"), Column::text("What"), Column::text("Ladder"), Column::text("Goals")];
    let mut table = Table::new("", columns);
    for (name, title) in names() {
        let exercise = named(name)?;
        let goals: Vec<_> = exercise.goals.iter().map(Goal::to_string).collect();
        table.push([name.into(), title.into(), exercise.ladder.into(), goals.join(", ").into()]);
    }
    Ok(table)
}

impl Exercise {
    /// The problem on which kernels are counted.
    fn which(&self) -> Which<'_> {
        Which::Case(self.case, Some(&self.size))
    }

    /// The name of the kernel and its declaration.
    fn signature(&self, ladder: &dyn Ladder) -> Result<(&'static str, &'static str)> {
        ladder.signature(self.which())?.with_context(|| {
            let Self { name, ladder, .. } = self;
            format!("exercise {name}: expected a ladder that one kernel computes, found {ladder}")
        })
    }
}

/// The task as a file of CUDA C++: comments, then the kernel to begin with.
fn task(ladder: &dyn Ladder, exercise: &Exercise) -> Result<String> {
    let name = exercise.name;
    let (_, declaration) = exercise.signature(ladder)?;
    let mut words = vec![exercise.title.to_owned(), String::new()];
    words.extend(exercise.task.split("\n\n").flat_map(|part| [part.replace('\n', " "), String::new()]));
    words.push("The kernel, as `rayspin-ladder try` declares it:".to_owned());
    words.extend(declaration.lines().map(|line| format!("  {}", line.trim_start_matches("// "))));
    words.push(String::new());
    words.push(
        "It has to be right on every small problem of the tests, free of races and memory errors.".to_owned(),
    );
    words.push(format!("Goals, counted on {}:", ladder.outline(exercise.which())?.problem));
    words.extend(exercise.goals.iter().map(|goal| format!("  {goal}: {}", goal.meaning())));
    words.push(String::new());
    words.push(format!("rayspin-ladder exercise {name} FILE judges a file that begins as this one."));
    let count = exercise.hints.len();
    words.push(format!("rayspin-ladder exercise {name} --hint 1 prints the first hint of {count}."));
    let mut lines = String::new();
    for paragraph in words {
        // Declarations stay on one line, as kernels are found there.
        let wrapped = if paragraph.contains("__global__") { paragraph } else { wrap(&paragraph, COMMENT) };
        match wrapped.trim_end() {
            "" => lines.push_str("//\n"),
            text => text.lines().for_each(|line| lines.push_str(&format!("// {line}\n"))),
        }
    }
    Ok(format!("{lines}\n{}", exercise.start))
}

/// The first hints.
fn hints(exercise: &Exercise, count: usize) -> String {
    let all = exercise.hints.len();
    let shown = exercise.hints.iter().take(count).enumerate();
    let mut words: String = shown
        .map(|(index, hint)| format!("Hint {} of {all}: {}\n", index + 1, wrap(hint, COMMENT).trim_end()))
        .collect();
    if count >= all {
        words.push_str(&format!("rayspin-ladder exercise {} --solution prints a solution\n", exercise.name));
    }
    words.trim_end().to_owned()
}

/// A goal, the number that was counted, and whether it meets the goal.
struct Judged {
    goal: Goal,
    counted: Option<f64>,
    met: bool,
}

/// Judges a file and prints the goals. Errors: the kernel is wrong, or misses a goal.
fn answer(
    context: &Context,
    ladder: &dyn Ladder,
    exercise: &Exercise,
    args: &Args,
    file: &Path,
    line: &[OsString],
) -> Result<()> {
    let launch = own::LaunchOptions { block: &args.block, grid: args.grid.as_deref(), shared: args.shared };
    let own = own::own(context, file, &launch)?;
    if own::together() {
        return own::apart(own.name, line, true);
    }
    let (judged, change_first) = stoppable(|| judge(context, ladder, exercise, own))?;
    if STOP.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    let caption = format!("{}: {}", exercise.name, ladder.outline(exercise.which())?.problem);
    let columns = [
        Column::text("Goal"),
        Column::number("Counted").significant(4),
        Column::text("Met"),
        Column::text("What"),
    ];
    let mut table = Table::new(caption, columns);
    for Judged { goal, counted, met } in &judged {
        let met = if *met { "yes" } else { "no" };
        table.push([goal.to_string().into(), (*counted).into(), met.into(), goal.meaning().into()]);
    }
    files::print(&args.width.text(&table))?;
    let missed = judged.iter().filter(|judged| !judged.met).count();
    if missed == 0 {
        let words = format!("{}: right, and all goals are met", own.name);
        return files::print(&args.width.lines(&words));
    }
    files::print(
        &args
            .width
            .lines(&format!("{}: right: no wrong result, no race, no memory error was found", own.name)),
    )?;
    if let Some(words) = change_first {
        files::print(&args.width.lines(&words))?;
    }
    files::print(&format!("rayspin-ladder exercise {} --hint 1 prints a hint", exercise.name))?;
    anyhow::bail!("{}: goals missed: {missed} of {}", own.name, judged.len())
}

/// Each goal with what was counted, and what to change first, in a sentence.
///
/// Errors: no compiler that can check and count; the kernel does not compile, is wrong, or has a race or a
/// memory error.
fn judge(
    context: &Context,
    ladder: &dyn Ladder,
    exercise: &Exercise,
    own: Own,
) -> Result<(Vec<Judged>, Option<String>)> {
    let kept = CompileCache::new()?;
    let checker = Checker::new(context.device.host(), &kept)?;
    own::check_compiles(ladder, exercise.which(), &checker.device, own, SEED)?;
    own::check_faults((ladder, exercise.signature(ladder)?.0), &checker, own, SEED)?;
    own::check_problem(ladder, exercise.which(), &checker, own, SEED)?;
    let mut counter = Counter::new(context, &kept, counters::gpu(DEFAULT_GPU)?, false, Some(own))?;
    let emulation = Emulation { ladder, which: exercise.which(), names: Vec::new() };
    let mut failed = Vec::new();
    let found = counter.ladder(context, &emulation, SEED, &mut failed)?;
    let Some(summary) = found.summary(own.name) else {
        if STOP.load(Ordering::SeqCst) {
            return Err(Error::Interrupted.into());
        }
        anyhow::bail!("{}: {}", own.name, failed.join("; "));
    };
    let judged = exercise.goals.iter().map(|goal| {
        let counted = goal.value(&summary);
        Judged { goal: *goal, counted, met: goal.is_met(counted) }
    });
    Ok((judged.collect(), found.change_first(own.name)))
}
