//! A benchmark run as a table, with the rows that lectures and journals published beside it.

use std::fmt::Write as _;

use rayspin::report::number;
use rayspin::report::table::{Cell, Column, Table};
use rayspin::tune::limits::Limits;
use rayspin_lab::Outcome;
use rayspin_lab::record::Entry;

use super::limits::{Above, date};
use crate::args::Width;

/// The table of a benchmark run, and under it what was not run or was wrong, and what else there is to know.
pub(super) fn benchmark_run(entry: &Entry, limits: Option<&Limits>, width: Width) -> String {
    let text = width.text(&table(entry));
    let mut below = String::new();
    for step in &entry.run.steps {
        let _ = match &step.outcome {
            Outcome::Timed(_) => Ok(()),
            Outcome::Refused(why) => writeln!(below, "not run: {}: {why}", step.name),
            Outcome::Failed(why) => writeln!(below, "FAILED: {} {}: {why}", step.name, step.config),
        };
    }
    for note in notes(entry, limits) {
        let _ = writeln!(below, "{note}");
    }
    text + &width.lines(&below)
}

/// Where the published rows are from, of which size, and what has to be known of them.
fn published(entry: &Entry) -> Vec<String> {
    let steps = entry.run.steps.iter();
    let rows: Vec<_> = steps.filter_map(|step| entry.published_row(step.reproduces.as_deref())).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let figures = rows.iter().filter(|row| row.seconds.is_some() || row.rate.is_some());
    let mut sizes: Vec<&str> = figures.map(|row| row.problem.as_str()).collect();
    sizes.dedup();
    let size = match sizes.as_slice() {
        [] => String::new(),
        [same] if *same == entry.run.problem => String::new(),
        [""] => "; its size is not known".to_owned(),
        sizes => format!("; of {}, this run of {}", sizes.join("; "), entry.run.problem),
    };
    let mut notes = vec![format!("published: {}, on the machine of its time{size}", entry.document())];
    let told = rows.iter().filter(|row| !row.note.is_empty());
    notes.extend(told.map(|row| format!("published {}: {}", row.row, row.note)));
    notes
}

/// What there is to know of published rows, and why a variant is above its limit.
pub(super) fn notes(entry: &Entry, limits: Option<&Limits>) -> Vec<String> {
    let mut notes = published(entry);
    let mut above: [Vec<&str>; 3] = Default::default();
    for step in &entry.run.steps {
        if let Some(why) = limits.and_then(|limits| Above::of(entry, step, limits)) {
            above[why as usize].push(&step.name);
        }
    }
    let measured = limits.map_or("an unknown date", date);
    let reasons = [
        "the data stay in a cache, and the limit is of main memory".to_owned(),
        "it mixes reads, writes and operations otherwise than what the limit was measured with".to_owned(),
        format!(
            "the limit of {measured} is too low, or less work is done than is counted; --remeasure measures limits again"
        ),
    ];
    for (names, reason) in above.iter().zip(reasons).filter(|(names, _)| !names.is_empty()) {
        notes.push(format!("above 100 % of the limit: {}: {reason}", names.join(", ")));
    }
    notes
}

/// What stands above the table.
pub(super) fn caption(entry: &Entry) -> String {
    let run = &entry.run;
    let mut text = format!("{}: {}, {}", entry.ladder, run.problem, run.device);
    let ghz = |clock: f64| number::significant(clock / 1e3, 3);
    let _ = match (throttled(entry), entry.clock_mhz) {
        (Some([low, high]), _) => write!(text, " at {} to {} GHz", ghz(low), ghz(high)),
        (None, Some(clock)) => write!(text, " at {} GHz", ghz(clock)),
        (None, None) => Ok(()),
    };
    if let Some(axis) = &entry.sweep {
        let _ = write!(text, ", by {axis}");
    }
    if let Some(words) = entry.launch.words() {
        let _ = write!(text, ", {words}");
    }
    text
}

/// The lowest and the highest clock of the variants, where they are more than 1 % apart.
fn throttled(entry: &Entry) -> Option<[f64; 2]> {
    let [low, _, high] = entry.run.clocks_mhz()?;
    (high > 1.01 * low).then_some([low, high])
}

/// The table of a run.
pub(super) fn table(entry: &Entry) -> Table {
    let steps = &entry.run.steps;
    let parameters = steps.iter().any(|step| step.config.values().next().is_some());
    let limits = steps.iter().any(|step| step.share().is_some());
    let published = steps.iter().any(|step| step.reproduces.is_some());
    let mut columns = vec![Column::text("Variant")];
    columns.extend([
        Column::number("Time").seconds().legend("seconds of one run: the median of the rounds"),
        Column::number("Spread")
            .unit("%")
            .significant(2)
            .legend("the middle half of the rounds, from the first to the third quartile, over the median"),
        Column::number("Rate").unit(entry.giga()).significant(4).legend(match entry.unit.as_str() {
            "B" => "bytes that the variant has to move, a second".to_owned(),
            "flop" => {
                "operations of the problem's plain formula, whichever variant runs, a second".to_owned()
            }
            items => format!("{items} a second"),
        }),
        Column::number("Step ×").decimals(2).legend("how much faster than the variant above"),
        Column::number("In all ×").decimals(2).legend("how much faster than the first variant"),
    ]);
    if limits {
        columns.push(Column::number("Of limit").unit("%").decimals(1).legend(
            "the least time that the machine's measured limits allow for the bytes and the operations of this variant, over its \
             time; a dash where no limit of its units was measured",
        ));
    }
    let clocks = throttled(entry).is_some();
    if clocks {
        columns.push(Column::number("Clock").unit("GHz").significant(3).legend("just after the variant ran"));
    }
    columns.push(Column::number("Error").significant(2).legend(
        "relative error against the f64 reference; the share of wrong values where results are exact",
    ));
    if parameters {
        columns.push(Column::text("Parameters"));
    }
    if published {
        columns.push(
            Column::text("Published row")
                .legend("the row that the variant reproduces: its source is below the table"),
        );
        columns.push(Column::number("published time").seconds());
        columns.push(Column::number("published rate").unit(entry.giga()).significant(4));
    }
    let mut table = Table::new(caption(entry), columns);
    for step in steps {
        let mut row: Vec<Cell> = vec![step.name.as_str().into()];
        match &step.outcome {
            Outcome::Timed(timed) => {
                let timing = &timed.timing;
                row.extend([
                    timing.median.into(),
                    (100.0 * (timing.high - timing.low) / timing.median).into(),
                    (timed.rate / 1e9).into(),
                    timed.step.into(),
                    timed.cumulative.into(),
                ]);
            }
            Outcome::Refused(_) => {
                row.push("not run".into());
                row.extend(std::iter::repeat_n(Cell::Empty, 4));
            }
            Outcome::Failed(_) => {
                row.push("FAILED".into());
                row.extend(std::iter::repeat_n(Cell::Empty, 4));
            }
        }
        if limits {
            row.push(step.share().map(|share| 100.0 * share).into());
        }
        if clocks {
            row.push(step.timed().and_then(|timed| timed.clock_mhz).map(|clock| clock / 1e3).into());
        }
        row.push(step.timed().map(|timed| timed.error).into());
        if parameters {
            let config = step.config.to_string();
            row.push(if config.is_empty() { Cell::Empty } else { config.into() });
        }
        if published {
            let theirs = entry.published_row(step.reproduces.as_deref());
            row.push(theirs.map_or(Cell::Empty, |p| p.row.as_str().into()));
            row.push(theirs.and_then(|p| p.seconds).into());
            row.push(theirs.and_then(|p| p.rate).map(|rate| rate / 1e9).into());
        }
        table.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayspin::tune::{About, Config, Peak, Published, Unit, documents};
    use rayspin_lab::{BenchmarkRun, LaunchMode, Step, Timed, Timing};

    const RATES: rayspin::tune::limits::Rates = rayspin::tune::limits::Rates {
        copy: 1e9,
        read: 1e9,
        write: 1e9,
        f32: 1e9,
        f64: 1e9,
        i32: 1e9,
        tensor_f64: None,
        tensor_f16: None,
        special: None,
        shared: None,
        texture: None,
        upload: None,
        download: None,
    };

    fn entry(clocks: &[Option<f64>]) -> Entry {
        let timing = Timing { median: 1e-3, low: 1e-3, high: 1e-3, rounds: 9, runs: 1, graph: false };
        let step = |&clock_mhz| Step {
            name: "a".into(),
            summary: String::new(),
            config: Config::default(),
            bytes: 1.0,
            flops: 1.0,
            peak: None,
            floor: None,
            tolerance: 0.0,
            reproduces: None,
            outcome: Outcome::Timed(Timed {
                timing,
                rate: 1e9,
                error: 0.0,
                step: 1.0,
                cumulative: 1.0,
                clock_mhz,
            }),
        };
        let steps = clocks.iter().map(step).collect();
        let run = BenchmarkRun { device: "d".into(), problem: "p".into(), sets: 1, steps };
        let about = About { name: "n", title: "t", readme: "", unit: Unit::Bytes };
        Entry::new(&about, &[], Peak::F32, run)
    }

    #[test]
    fn published_rows_name_their_document() {
        let mut own = entry(&[None]);
        let width = Width { wide: true };
        assert!(!benchmark_run(&own, None, width).contains("ublished"));
        own.run.steps[0].reproduces = Some("K1".into());
        let row = Published::new(documents::HISTOGRAMS, "K1").seconds(1.0);
        let about = About { name: "n", title: "t", readme: "", unit: Unit::Bytes };
        let of = |row: Published| {
            benchmark_run(&Entry::new(&about, &[row], Peak::F32, own.run.clone()), None, width)
        };
        let text = of(row);
        assert!(text.contains("published: “Histograms” (lab journal)") && text.contains("K1"), "{text}");
        assert!(text.contains("of its time; its size is not known"), "{text}");
        let text = of(row.measured_at("p").note("a copy"));
        assert!(text.contains("of its time\n") && text.contains("published K1: a copy"), "{text}");
        let text = of(row.measured_at("9 pixels"));
        assert!(text.contains("of its time; of 9 pixels, this run of p"), "{text}");
        // A row without figures has no size.
        let text = of(Published::new(documents::HISTOGRAMS, "K1"));
        assert!(text.contains("on the machine of its time\n"), "{text}");
    }

    #[test]
    fn shares_above_the_limit_have_a_reason() {
        let limits = Limits {
            of: "d".into(),
            measured: Some("2026-05-04T12:00:00Z".into()),
            busy: false,
            rates: RATES,
        };
        let entry_with = |floor, sets, one_buffer| {
            let mut entry = entry(&[None]);
            entry.run.steps[0].floor = Some(floor);
            entry.run.steps[0].bytes = 1e8;
            entry.run.sets = sets;
            Entry { one_buffer, ..entry }
        };
        assert!(notes(&entry_with(1.0004e-3, 1, false), Some(&limits)).is_empty());
        for (floor, sets, one_buffer, reason) in [
            (1.05e-3, 1, false, "a: it mixes reads"),
            (2e-3, 1, false, "a: the limit of 2026-05-04 is too low"),
            (2e-3, 1, true, "a: the data stay in a cache"),
            (2e-3, 0, false, "a: the data stay in a cache"),
        ] {
            let notes = notes(&entry_with(floor, sets, one_buffer), Some(&limits));
            assert!(notes.len() == 1 && notes[0].contains(reason), "{notes:?}");
        }
    }

    #[test]
    fn clocks_are_told_variant_by_variant_where_they_differ() {
        let none = entry(&[None, None]);
        assert_eq!(caption(&none), "n: p, d");
        let single = Entry { launch: LaunchMode::Single, ..none.clone() };
        assert_eq!(caption(&single), "n: p, d, each run launched and awaited alone");
        let same = entry(&[Some(1980.0), None, Some(1981.0)]);
        assert_eq!((caption(&same).as_str(), same.clock_mhz), ("n: p, d at 1.98 GHz", Some(1981.0)));
        assert!(!table(&same).to_string().contains("Clock"));
        let throttled = entry(&[Some(1980.0), None, Some(1410.0), Some(1980.0)]);
        assert_eq!(caption(&throttled), "n: p, d at 1.41 to 1.98 GHz");
        let text = table(&throttled).to_string();
        assert!(text.contains("Clock (GHz)") && text.matches("1.98").count() == 3, "{text}");
        // A record from before variants had clocks.
        let before = Entry { clock_mhz: Some(2400.0), ..none };
        assert_eq!(caption(&before), "n: p, d at 2.40 GHz");
    }
}
