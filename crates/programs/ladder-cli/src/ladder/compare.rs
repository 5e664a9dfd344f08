//! `rayspin-ladder compare`

mod counts;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use rayspin::report::table::{Cell, Column, Table};
use rayspin_lab::record::{Entry, Record};
use rayspin_lab::{LaunchMode, Outcome, Step, Timing};
use rayspin_shell::{BadInput, files};

use crate::args::ladder::Compare;

/// What two runs say of a variant.
#[derive(Debug, PartialEq)]
struct Pair<'a> {
    entry: &'a Entry,
    step: &'a Step,
    before: Timing,
    after: Timing,
    /// How the host launched runs before.
    asked: LaunchMode,
    /// The clocks in MHz, where both were told.
    clocks: Option<[f64; 2]>,
}

impl Pair<'_> {
    /// Whether the clocks are more than 1 % apart.
    fn other_clock(&self) -> bool {
        self.clocks.is_some_and(|[before, after]| before.max(after) > 1.01 * before.min(after))
    }

    /// How much faster it became.
    fn ratio(&self) -> f64 {
        self.before.median / self.after.median
    }

    /// Faster, slower, or neither where the middle halves of the rounds overlap.
    fn verdict(&self) -> &'static str {
        if self.after.high < self.before.low {
            "faster"
        } else if self.after.low > self.before.high {
            "slower"
        } else {
            "no difference beyond noise"
        }
    }
}

/// Compares two records and prints a table for each benchmark run.
pub(crate) fn run(args: &Compare) -> Result<()> {
    if let Some(files) = counts::both(args)? {
        return counts::run(args, files);
    }
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let (pairs, alone) = matched(&before, &after);
    if pairs.is_empty() {
        return Err(BadInput::new(format!(
            "{}: expected variants of the same ladders, problems and processors as {}, found none",
            args.after.display(),
            args.before.display()
        ))
        .hint("variants are matched by ladder, problem, device, name and parameters")
        .into());
    }
    if args.json {
        return files::print(&serde_json::to_string_pretty(&json(&pairs, &alone))?);
    }
    let mut text = String::new();
    for entry in pairs.iter().map(|pair| pair.entry).fold(Vec::<&Entry>::new(), |mut seen, entry| {
        if !seen.iter().any(|other| std::ptr::eq(*other, entry)) {
            seen.push(entry);
        }
        seen
    }) {
        let of_entry: Vec<_> = pairs.iter().filter(|pair| std::ptr::eq(pair.entry, entry)).collect();
        let _ = writeln!(text, "{}", args.width.text(&table(entry, &of_entry)));
    }
    for line in alone {
        let _ = writeln!(text, "{}", args.width.lines(&line));
    }
    files::print(&text.trim_end())
}

/// What a file says that it is.
#[derive(serde::Deserialize)]
struct Format {
    format: String,
}

fn read(path: &Path) -> Result<Record> {
    use anyhow::Context as _;
    let text = rayspin::io::read_text(path)?;
    let format = serde_json::from_str::<Format>(&text).map(|header| header.format);
    if format.is_ok_and(|format| format == super::emulate::FORMAT) {
        let message = format!(
            "{}: expected a run, found an emulated one, whose times predict no processor",
            path.display()
        );
        return Err(BadInput::new(message)
            .hint("leave --emulate out of the runs to compare, or compare what counters --json wrote")
            .into());
    }
    Record::from_json(&text).with_context(|| path.display().to_string())
}

/// Variants that both have, and a line for each that only one has timed.
fn matched<'a>(before: &Record, after: &'a Record) -> (Vec<Pair<'a>>, Vec<String>) {
    let key = |entry: &Entry, step: &Step| {
        (
            entry.ladder.clone(),
            entry.run.problem.clone(),
            entry.run.device.clone(),
            step.name.clone(),
            step.config.clone(),
        )
    };
    let timed_steps = |record: &'_ Record| -> Vec<_> {
        let steps = record
            .runs
            .iter()
            .flat_map(|entry| entry.run.steps.iter().map(move |step| (entry.clone(), step.clone())));
        steps.collect::<Vec<(Entry, Step)>>()
    };
    let mut old = timed_steps(before);
    let (mut pairs, mut alone) = (Vec::new(), Vec::new());
    for entry in &after.runs {
        for step in &entry.run.steps {
            let position = old.iter().position(|(e, s)| key(e, s) == key(entry, step));
            let (asked, was) = match position.map(|index| old.swap_remove(index)) {
                Some((entry, step)) => (entry.launch, Some(step)),
                None => (LaunchMode::Best, None),
            };
            match (was, step.timed()) {
                (Some(was), Some(now)) if was.timed().is_some() => {
                    if let Some(then) = was.timed() {
                        let clocks = then.clock_mhz.zip(now.clock_mhz).map(|(then, now)| [then, now]);
                        let (before, after) = (then.timing, now.timing);
                        pairs.push(Pair { entry, step, before, after, asked, clocks });
                    }
                }
                (was, _) => alone.extend(changed(entry, step, was.as_ref())),
            }
        }
    }
    let gone = old.iter().filter(|(_, step)| step.timed().is_some());
    alone.extend(gone.map(|(entry, step)| format!("only before: {} of {}", step.name, entry.ladder)));
    (pairs, alone)
}

/// What to say of a variant that is not timed in both.
fn changed(entry: &Entry, step: &Step, was: Option<&Step>) -> Option<String> {
    let name = format!("{} of {}", step.name, entry.ladder);
    match (&step.outcome, was) {
        (Outcome::Failed(why), Some(was)) if was.timed().is_some() => {
            Some(format!("FAILS now: {name}: {why}"))
        }
        (Outcome::Refused(why), Some(was)) if was.timed().is_some() => {
            Some(format!("not run now: {name}: {why}"))
        }
        (Outcome::Timed(_), Some(_)) => Some(format!("runs now, did not before: {name}")),
        (Outcome::Timed(_), None) => Some(format!("only after: {name}")),
        _ => None,
    }
}

fn table(entry: &Entry, pairs: &[&Pair<'_>]) -> Table {
    let parameters = pairs.iter().any(|pair| pair.step.config.values().next().is_some());
    let mut columns = vec![Column::text("Variant")];
    if parameters {
        columns.push(Column::text("Parameters"));
    }
    columns.extend([
        Column::number("Before").seconds(),
        Column::number("After").seconds(),
        Column::number("Faster ×").decimals(3),
        Column::text("Verdict"),
    ]);
    let clocks = pairs.iter().any(|pair| pair.other_clock());
    if clocks {
        let column = |name| Column::number(name).unit("GHz").significant(3);
        columns.extend([column("Clock before"), column("after")]);
    }
    let mut caption = format!("{}: {}, {}", entry.ladder, entry.run.problem, entry.run.device);
    if let Some(other) = pairs.iter().find(|pair| pair.asked != entry.launch) {
        let words =
            |launch_mode: LaunchMode| launch_mode.words().unwrap_or("runs in graphs where they can be");
        let _ = write!(caption, "; before: {}; after: {}", words(other.asked), words(entry.launch));
    }
    let mut table = Table::new(caption, columns);
    for pair in pairs {
        let mut row: Vec<Cell> = vec![pair.step.name.as_str().into()];
        if parameters {
            row.push(pair.step.config.to_string().into());
        }
        row.extend([
            pair.before.median.into(),
            pair.after.median.into(),
            pair.ratio().into(),
            pair.verdict().into(),
        ]);
        if clocks {
            let ghz = |index: usize| pair.clocks.map(|clocks| clocks[index] / 1e3).into();
            row.extend([ghz(0), ghz(1)]);
        }
        table.push(row);
    }
    table
}

fn json(pairs: &[Pair<'_>], alone: &[String]) -> serde_json::Value {
    let variants: Vec<_> = pairs
        .iter()
        .map(|pair| {
            serde_json::json!({
                "ladder": pair.entry.ladder,
                "problem": pair.entry.run.problem,
                "device": pair.entry.run.device,
                "variant": pair.step.name,
                "parameters": pair.step.config.to_string(),
                "before_seconds": pair.before.median,
                "after_seconds": pair.after.median,
                "ratio": pair.ratio(),
                "verdict": pair.verdict(),
                "clocks_mhz": pair.clocks,
                "launch": [pair.asked, pair.entry.launch],
            })
        })
        .collect();
    serde_json::json!({ "variants": variants, "notes": alone })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayspin::tune::{About, Config, Peak, Unit};
    use rayspin_lab::BenchmarkRun;

    #[test]
    fn overlapping_quartiles_are_no_verdict() {
        let about = About { name: "n", title: "t", readme: "", unit: Unit::Bytes };
        let step = Step {
            name: "a".into(),
            summary: String::new(),
            config: Config::default(),
            bytes: 1.0,
            flops: 1.0,
            peak: None,
            floor: None,
            tolerance: 0.0,
            reproduces: None,
            outcome: Outcome::Refused("not run".into()),
        };
        let run = BenchmarkRun { device: "d".into(), problem: "p".into(), sets: 1, steps: vec![] };
        let (entry, step) = (&Entry::new(&about, &[], Peak::F32, run), &step);
        let timing = |low, median, high| Timing { median, low, high, rounds: 9, runs: 1, graph: false };
        let pair = |before, after| Pair { entry, step, before, after, asked: LaunchMode::Best, clocks: None };
        let verdict = |before, after| pair(before, after).verdict();
        let base = timing(0.9, 1.0, 1.1);
        assert_eq!(verdict(base, timing(0.7, 0.75, 0.8)), "faster");
        assert_eq!(verdict(base, timing(1.2, 1.3, 1.4)), "slower");
        assert_eq!(verdict(base, timing(0.8, 0.85, 0.95)), "no difference beyond noise");
        let faster = pair(base, timing(0.4, 0.5, 0.6));
        assert_eq!(faster.ratio(), 2.0);
        assert!(!table(entry, &[&faster]).to_string().contains("Clock"));
        let other = Pair { asked: LaunchMode::Single, ..pair(base, base) };
        let text = table(entry, &[&other]).to_string();
        assert!(
            text.contains("; before: each run launched and awaited alone; after: runs in graphs"),
            "{text}"
        );
        for (clocks, told) in [([1980.0, 1985.0], false), ([1980.0, 1410.0], true)] {
            let pair = Pair { clocks: Some(clocks), ..pair(base, base) };
            let text = table(entry, &[&pair]).to_string();
            assert_eq!(text.contains("Clock") && text.contains("1.41"), told, "{text}");
        }
    }
}
