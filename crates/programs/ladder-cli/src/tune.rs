//! `rayspin-ladder tune`

mod page;
mod shipped;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Result;
use rayspin::core::Error;
use rayspin::device::{Backend, BackendKind};
use rayspin::report::number;
use rayspin::report::table::{Cell, Column, Table};
use rayspin::tune::wisdom::Trial;
use rayspin::tune::wisdom::{self, Key, Record, Wisdom};
use rayspin::tune::{Config, Ladder, Outline, VariantInfo, Which};
use rayspin_lab::{Bounds, OnDevice, Options, Pruned, Replay, SearchResult, search};
use rayspin_shell::interrupt::{STOP, stoppable};
use rayspin_shell::{BadInput, Context, files, say};
use serde::Serialize;

use crate::args::tune::Tune;
use crate::ladder::benchmark::size;
use crate::ladder::limits::MachineLimits;
use crate::ladder::{Ladders, unknown, which};

/// The search of one variant, as it is written.
#[derive(Serialize)]
struct Tuned {
    ladder: String,
    variant: &'static str,
    problem: String,
    device: String,
    #[serde(flatten)]
    result: SearchResult,
    pruned_share: f64,
    /// The fastest that pruning keeps, in times of the fastest of all: of exhaustive searches.
    kept: Option<f64>,
    #[serde(skip)]
    key: Key,
}

/// Searches spaces, keeps what was measured, prints what was found.
pub(crate) fn run(context: &Context, ladders: &Ladders, args: &Tune) -> Result<()> {
    if !(args.budget.is_finite() && args.budget >= 0.0) {
        let message = format!("--budget: expected seconds, found {}", args.budget);
        return Err(BadInput::new(message).hint("the default is 60 for each variant").into());
    }
    if args.names.is_empty() && !args.all {
        return overview(context, ladders, args);
    }
    let json = args.json.as_deref();
    let stdout = json.is_some_and(|path| path.as_os_str() == "-");
    if let Some(path) = json.filter(|_| !stdout) {
        files::check_writable(path)?;
    }
    if let Some(path) = &args.html {
        files::check_writable(path)?;
    }
    let size = args.size.as_deref().map(size).transpose()?;
    let work = chosen(context, ladders, args, size.as_deref())?;
    let mut results = Vec::new();
    let searched = stoppable(|| match &args.replay {
        Some(file) => replayed(args, &work, file, &mut results),
        None => measured(context, args, &work, &mut results),
    });
    // What was found before a failure is worth showing, too.
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&results)? + "\n";
        if stdout {
            std::io::Write::write_all(&mut std::io::stdout().lock(), text.as_bytes())?;
        } else {
            files::write_text(path, &text)?;
        }
    }
    if let Some(path) = args.html.as_deref().filter(|_| !results.is_empty()) {
        files::write_text(path, &page::page(&results).render())?;
    }
    if !stdout && !results.is_empty() {
        let table = table(&results);
        files::print(&args.width.text(&table))?;
        files::print(&args.width.legend([&table]))?;
        for one in &results {
            if let Some(kept) = one.kept {
                files::print(&args.width.lines(&lost(one, kept)))?;
            }
        }
    }
    searched
}

/// The ladders with the variants to tune, by their numbers.
type Work<'a> = Vec<(&'a dyn Ladder, Which<'a>, Outline, Vec<usize>)>;

/// Whether a variant has parameters and takes the problem.
fn has_space(variant: &VariantInfo) -> bool {
    variant.refuses.is_none() && !variant.space.is_empty()
}

/// Lists what can be tuned on which processor.
fn overview(context: &Context, ladders: &Ladders, args: &Tune) -> Result<()> {
    let columns = ["Algorithm", "On a CPU", "On a GPU"].map(Column::text);
    let caption = "Variants with parameters, and how many configurations each has";
    let mut table = Table::new(caption, columns);
    for ladder in ladders.all() {
        let on = |kind: BackendKind| -> Result<String> {
            let variants = ladder.outline(which(ladder, None, None, kind))?.variants;
            let of_kind = variants.iter().filter(|variant| variant.backend == kind && has_space(variant));
            let words =
                of_kind.map(|variant| format!("{} ({})", variant.name, variant.space.configs().len()));
            Ok(words.collect::<Vec<_>>().join(", "))
        };
        let [cpu, gpu] = [on(BackendKind::Cpu)?, on(BackendKind::Cuda)?];
        if !(cpu.is_empty() && gpu.is_empty()) {
            let cell = |words: String| if words.is_empty() { Cell::Empty } else { words.into() };
            table.push([ladder.about().name.into(), cell(cpu), cell(gpu)]);
        }
    }
    let mut text = args.width.text(&table);
    // The processor's name has any length: what follows it begins a line.
    let here = context.device.describe();
    text.push_str(&args.width.lines(&match context.device.kind() {
        BackendKind::Cuda => format!("This machine tunes both, with --device cpu or on:\n{here}\n"),
        BackendKind::Cpu => {
            format!("Here: {here}.\nVariants for a GPU need one, or results of one with --replay.\n")
        }
    }));
    text.push_str("rayspin-ladder tune NAME finds the fastest; rayspin-ladder NAME uses what was found.");
    files::print(&text)
}

fn chosen<'a>(
    context: &Context,
    ladders: &'a Ladders,
    args: &'a Tune,
    size: Option<&'a [usize]>,
) -> Result<Work<'a>> {
    let ladders = ladders.chosen(args.all, &args.names)?;
    let mut work = Work::new();
    let mut names = Vec::new();
    let mut elsewhere = Vec::new();
    for ladder in ladders {
        let which = which(ladder, args.case.as_deref(), size, context.device.kind());
        let outline = ladder.outline(which)?;
        names.extend(outline.variants.iter().map(|variant| variant.name));
        let fits = |variant: &VariantInfo| {
            let named = args.variant.is_empty() || args.variant.iter().any(|name| name == variant.name);
            let here = args.replay.is_some() || variant.backend == context.device.kind();
            named && here && has_space(variant)
        };
        let other = |variant: &&VariantInfo| variant.backend != context.device.kind() && has_space(variant);
        elsewhere.extend(outline.variants.iter().filter(other).map(|variant| variant.name));
        let variants: Vec<_> =
            (0..outline.variants.len()).filter(|&index| fits(&outline.variants[index])).collect();
        work.push((ladder, which, outline, variants));
    }
    for name in &args.variant {
        if !names.contains(&name.as_str()) {
            return Err(unknown("variant", name, &names, "rayspin-ladder list NAME lists them").into());
        }
    }
    if work.iter().all(|(.., variants)| variants.is_empty()) {
        let processor = context.device.describe();
        let other = match (elsewhere.is_empty(), context.device.kind()) {
            (true, _) => "none".to_owned(),
            (false, BackendKind::Cpu) => format!("some for a GPU alone ({})", elsewhere.join(", ")),
            (false, BackendKind::Cuda) => format!("some for a CPU alone ({})", elsewhere.join(", ")),
        };
        let message =
            format!("nothing to tune: expected a variant with parameters for {processor}, found {other}");
        let hint = "rayspin-ladder tune lists what can be tuned on which processor";
        return Err(BadInput::new(message).hint(hint).into());
    }
    Ok(work)
}

fn options(args: &Tune) -> Options {
    Options { budget: args.budget, exhaustive: args.exhaustive, seed: args.seed, ..Options::default() }
}

fn stop() -> rayspin::core::Result<()> {
    if STOP.load(Ordering::SeqCst) { Err(Error::Interrupted) } else { Ok(()) }
}

fn measured(context: &Context, args: &Tune, work: &Work<'_>, results: &mut Vec<Tuned>) -> Result<()> {
    let device = &context.device;
    // The cost model knows GPUs only.
    let limits = match device.backend() {
        Backend::Cuda(_) => Some(MachineLimits::default().of(context, device, false)?.clone()),
        Backend::Cpu(_) => None,
    };
    let mut wisdom = match wisdom::file() {
        Some(path) => Wisdom::open(&path)?,
        None => Wisdom::in_memory(),
    };
    if wisdom.passed_over() > 0 && !context.quiet {
        say!(
            "note: {} lines of earlier results were not understood and are passed over",
            wisdom.passed_over()
        );
    }
    for (ladder, which, outline, variants) in work {
        if variants.is_empty() {
            continue;
        }
        let mut session = ladder.open(*which, device, args.seed)?;
        session.rotate(rayspin_lab::sets(device, session.as_ref()))?;
        for &index in variants {
            stop()?;
            let variant = &outline.variants[index];
            let peak = variant.peak.unwrap_or(outline.peak);
            let bounds = limits.as_ref().map_or(Bounds::NONE, |l| Bounds::of(l, peak, device));
            let mut evaluate = OnDevice::new(session.as_mut(), device, index, bounds);
            let key = evaluate.key(ladder.about().name)?;
            let known: HashMap<Config, Trial> = match args.again {
                true => HashMap::new(),
                false => wisdom.of(&key).iter().map(|r| (r.config.clone(), r.trial.clone())).collect(),
            };
            let title = format!("{} {}", key.ladder, key.variant);
            if !context.quiet {
                say!("{title}: {} configurations, {} known", variant.space.configs().len(), known.len());
            }
            let mut best = f64::INFINITY;
            let result = search(
                &variant.space,
                known,
                &mut evaluate,
                &options(args),
                &mut |config, trial, estimate| {
                    wisdom.add(Record::new(key.clone(), config.clone(), trial.clone(), estimate))?;
                    if let Some(seconds) = trial.seconds().filter(|&seconds| seconds < best) {
                        best = seconds;
                        if !context.quiet {
                            say!("  {} {config}", number::seconds(seconds));
                        }
                    }
                    stop()
                },
            )?;
            let problem = outline.problem.clone();
            results.push(tuned(args, key, variant, problem, device.describe(), result));
        }
    }
    Ok(())
}

fn tuned(
    args: &Tune,
    key: Key,
    variant: &VariantInfo,
    problem: String,
    device: String,
    result: SearchResult,
) -> Tuned {
    let kept = args.exhaustive.then(|| result.kept()).flatten();
    let (variant, pruned_share) = (variant.name, result.pruned());
    Tuned { ladder: key.ladder.clone(), variant, problem, device, result, pruned_share, kept, key }
}

/// Every search that the results in `file` were of, again.
fn replayed(args: &Tune, work: &Work<'_>, file: &Path, results: &mut Vec<Tuned>) -> Result<()> {
    let wisdom = match shipped::of(file)? {
        Some(shipped) => shipped,
        None if !file.exists() => {
            let message = format!("{}: cannot open: no such file", file.display());
            let hint =
                format!("check the path and its spelling; Rayspin brings results of: {}", shipped::NAMES);
            return Err(BadInput::new(message).hint(hint).into());
        }
        None => Wisdom::open(file)?,
    };
    for (ladder, _, outline, variants) in work {
        for &index in variants {
            let variant = &outline.variants[index];
            let mut keys: Vec<&Key> = Vec::new();
            for record in wisdom.records() {
                let key = &record.key;
                if key.ladder == ladder.about().name && key.variant == variant.name && !keys.contains(&key) {
                    keys.push(key);
                }
            }
            for key in keys {
                let mut machine = Replay::new(wisdom.of(key));
                let result =
                    search(&variant.space, HashMap::new(), &mut machine, &options(args), &mut |_, _, _| {
                        stop()
                    })?;
                let sizes: Vec<_> = key.sizes.iter().map(ToString::to_string).collect();
                let problem = format!("{} {}", sizes.join(" x "), key.kind);
                results.push(tuned(args, key.clone(), variant, problem, key.device.clone(), result));
            }
        }
    }
    if results.is_empty() {
        let message = format!("{}: expected results of these variants, found none", file.display());
        let hint = "rayspin-ladder tune keeps its results in wisdom.jsonl beside the compiled kernels, or where RAYSPIN_WISDOM says";
        return Err(BadInput::new(message).hint(hint).into());
    }
    Ok(())
}

fn table(results: &[Tuned]) -> Table {
    let columns = [
        Column::text("Variant"),
        Column::text("Problem"),
        Column::number("Space").decimals(0).legend("configurations of the variant's parameters"),
        Column::number("Pruned").unit("%").decimals(0).legend("of these, left out by the cost model"),
        Column::number("Timed").decimals(0).legend("configurations that were timed, now or before"),
        Column::number("Failed").decimals(0).legend("configurations that could not run or were wrong"),
        Column::number("Default").seconds().legend("time with the default parameters"),
        Column::number("Best").seconds().legend("time with the best parameters, which further runs use"),
        Column::number("Gain ×").decimals(2).legend("Default over Best"),
        Column::text("Parameters"),
    ];
    let device = results.first().map_or("", |one| &one.device);
    let mut table = Table::new(format!("Tuned on {device}"), columns);
    for one in results {
        let count = |is_counted: fn(&Trial) -> bool| {
            one.result.tried.iter().filter(|t| t.trial.as_ref().is_some_and(is_counted)).count() as f64
        };
        let default = one.result.default_seconds;
        table.push([
            Cell::from(format!("{} {}", one.ladder, one.variant)),
            Cell::from(one.problem.clone()),
            Cell::from(one.result.tried.len() as f64),
            Cell::from(100.0 * one.pruned_share),
            Cell::from(count(|t| !matches!(t, Trial::Failed(_)))),
            Cell::from(count(|t| matches!(t, Trial::Failed(_)))),
            default.map_or_else(|| Cell::from("fails"), Cell::from),
            Cell::from(one.result.seconds),
            default.map_or_else(|| Cell::from(""), |default| Cell::from(default / one.result.seconds)),
            Cell::from(one.result.best.to_string()),
        ]);
    }
    table
}

/// What an exhaustive search says of pruning.
fn lost(one: &Tuned, kept: f64) -> String {
    let share = number::significant(100.0 * one.pruned_share, 3);
    let loss = match 100.0 * (kept - 1.0) {
        loss if loss < 0.05 => "and keeps the fastest".to_owned(),
        loss => format!("and the best that it keeps is {} % slower", number::significant(loss, 2)),
    };
    let tried = &one.result.tried;
    let by = |rule| tried.iter().filter(|t| t.pruned == Some(rule)).count();
    let failed = tried.iter().filter(|t| matches!(t.trial, Some(Trial::Failed(_)))).count();
    let failed = if failed == 0 { String::new() } else { format!("; {failed} cannot run") };
    format!(
        "{} {}: pruning leaves out {share} % of {} configurations, {} that another exceeds in efficiency and utilisation \
         and {} by their bounds, {loss}{failed}",
        one.ladder,
        one.variant,
        tried.len(),
        by(Pruned::Dominated),
        by(Pruned::Bound),
    )
}
