//! Two files of counts: what became of each variant.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use rayspin::report::table::{Cell, Column, Table};
use rayspin_shell::{BadInput, files};
use serde::Deserialize;

use super::super::counters::{FORMAT, Summary};
use crate::args::ladder::Compare;

/// What `rayspin-ladder counters --json` wrote.
#[derive(Debug, Deserialize)]
pub(super) struct Counts {
    ladders: Vec<Counted>,
}

#[derive(Debug, Deserialize)]
struct Counted {
    ladder: String,
    problem: String,
    gpu: Card,
    variants: Vec<Variant>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Card {
    card: String,
}

#[derive(Debug, Deserialize)]
struct Variant {
    variant: String,
    config: String,
    summary: Option<Summary>,
}

/// What a file says that it is.
#[derive(Deserialize)]
struct Program {
    program: String,
}

/// Both files, where they are counts; none where neither is.
///
/// Errors: one of them only is; they cannot be read.
pub(super) fn both(args: &Compare) -> Result<Option<[Counts; 2]>> {
    let texts = [rayspin::io::read_text(&args.before)?, rayspin::io::read_text(&args.after)?];
    let are_counts = texts
        .each_ref()
        .map(|text| serde_json::from_str::<Program>(text).is_ok_and(|header| header.program == FORMAT));
    match are_counts {
        [false, false] => Ok(None),
        [true, true] => {
            let [before, after] = &texts;
            Ok(Some([parsed(&args.before, before)?, parsed(&args.after, after)?]))
        }
        [first, _] => {
            let (counts, other) =
                if first { (&args.before, &args.after) } else { (&args.after, &args.before) };
            let message = format!(
                "{}: expected counts, as {} has them, found something else",
                other.display(),
                counts.display()
            );
            Err(BadInput::new(message).hint("rayspin-ladder counters NAME --json FILE writes them").into())
        }
    }
}

fn parsed(path: &Path, text: &str) -> Result<Counts> {
    serde_json::from_str(text).with_context(|| path.display().to_string())
}

/// A variant before and after.
struct Pair<'a> {
    name: &'a str,
    before: &'a Summary,
    after: &'a Summary,
}

/// Prints a table for each problem that both files have.
pub(super) fn run(args: &Compare, [before, after]: [Counts; 2]) -> Result<()> {
    let (mut tables, mut alone, mut documents) = (Vec::new(), Vec::new(), Vec::new());
    for now in &after.ladders {
        let then = before
            .ladders
            .iter()
            .find(|then| (&then.ladder, &then.problem, &then.gpu) == (&now.ladder, &now.problem, &now.gpu));
        let of_before = |variant: &Variant| {
            let variants = &then?.variants;
            variants.iter().find(|old| (&old.variant, &old.config) == (&variant.variant, &variant.config))
        };
        let mut pairs = Vec::new();
        for variant in &now.variants {
            match (of_before(variant).and_then(|old| old.summary.as_ref()), &variant.summary) {
                (Some(before), Some(after)) => pairs.push(Pair { name: &variant.variant, before, after }),
                (Some(_), None) => alone.push(format!("only before: {} of {}", variant.variant, now.ladder)),
                (None, _) => alone.push(format!("only after: {} of {}", variant.variant, now.ladder)),
            }
        }
        for old in then.iter().flat_map(|then| &then.variants) {
            let same = |new: &&Variant| (&new.variant, &new.config) == (&old.variant, &old.config);
            if !now.variants.iter().any(|new| same(&new)) {
                alone.push(format!("only before: {} of {}", old.variant, now.ladder));
            }
        }
        documents.extend(pairs.iter().map(|pair| json(now, pair)));
        if !pairs.is_empty() {
            tables.push(table(now, &pairs));
        }
    }
    if tables.is_empty() {
        return Err(BadInput::new(format!(
            "{}: expected counts of the same ladders, problems and GPU as {}, found none",
            args.after.display(),
            args.before.display()
        ))
        .hint("variants are matched by ladder, problem, name and parameters")
        .into());
    }
    if args.json {
        let document = serde_json::json!({ "counts": documents, "notes": alone });
        return files::print(&serde_json::to_string_pretty(&document)?);
    }
    let mut text = String::new();
    for table in &tables {
        let _ = writeln!(text, "{}", args.width.text(table));
    }
    for line in &alone {
        let _ = writeln!(text, "{}", args.width.lines(line));
    }
    text.push_str(&args.width.legend(&tables));
    files::print(&text.trim_end())
}

/// Numbers of a variant that a change of its source can move, as the table has them.
fn measures(summary: &Summary) -> [Option<f64>; 5] {
    [
        Some(summary.load_sectors),
        Some(summary.store_sectors),
        summary.turns_over_least,
        summary.lanes,
        summary.seconds,
    ]
}

fn table(counted: &Counted, pairs: &[Pair<'_>]) -> Table {
    let number = |name: &str| Column::number(name).significant(4);
    let columns = vec![
        Column::text("Variant"),
        number("Load sectors").legend("pieces of 32 bytes that loads move: before, then after"),
        number("after"),
        number("Store sectors"),
        number("after"),
        Column::number("Turns / least").decimals(2).legend("of shared memory: bank conflicts"),
        Column::number("after").decimals(2),
        Column::number("Lanes").decimals(1).legend("active lanes of an instruction, of 32"),
        Column::number("after").decimals(1),
        Column::number(format!("Time on {}", counted.gpu.card)).seconds().legend("predicted, not measured"),
        Column::number("after").seconds(),
        Column::number("Faster ×").decimals(2),
    ];
    let caption = format!("{}: {}, counted on the CPU", counted.ladder, counted.problem);
    let mut table = Table::new(caption, columns);
    for pair in pairs {
        let mut row = vec![Cell::from(pair.name)];
        for (before, after) in measures(pair.before).into_iter().zip(measures(pair.after)) {
            row.extend([Cell::from(before), Cell::from(after)]);
        }
        row.push(pair.before.seconds.zip(pair.after.seconds).map(|(before, after)| before / after).into());
        table.push(row);
    }
    table
}

fn json(counted: &Counted, pair: &Pair<'_>) -> serde_json::Value {
    serde_json::json!({
        "ladder": counted.ladder, "problem": counted.problem, "gpu": counted.gpu.card, "variant": pair.name,
        "before": pair.before, "after": pair.after,
    })
}
