//! A climb as the sources' table.

use std::fmt::Write as _;

use rayspin::report::number;
use rayspin::report::table::{Cell, Column, Table};
use rayspin_lab::Outcome;
use rayspin_lab::record::Entry;

/// The table of a climb, and under it what was not run or was wrong.
pub(super) fn climb(entry: &Entry) -> String {
    let mut text = table(entry).to_string();
    for step in &entry.climb.steps {
        let _ = match &step.outcome {
            Outcome::Timed(_) => Ok(()),
            Outcome::Refused(why) => writeln!(text, "not run: {}: {why}", step.name),
            Outcome::Failed(why) => writeln!(text, "FAILED: {} {}: {why}", step.name, step.config),
        };
    }
    text
}

/// What stands above the table.
pub(super) fn caption(entry: &Entry) -> String {
    let climb = &entry.climb;
    let mut text = format!("{}: {}, {}", entry.ladder, climb.problem, climb.device);
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

/// The lowest and the highest clock of the rungs, where they are more than 1 % apart.
fn throttled(entry: &Entry) -> Option<[f64; 2]> {
    let [low, _, high] = entry.climb.clocks_mhz()?;
    (high > 1.01 * low).then_some([low, high])
}

/// The sources' table.
pub(super) fn table(entry: &Entry) -> Table {
    let steps = &entry.climb.steps;
    let parameters = steps.iter().any(|step| step.config.values().next().is_some());
    let limits = steps.iter().any(|step| step.share().is_some());
    let published = steps.iter().any(|step| step.reproduces.is_some());
    let mut columns = vec![Column::text("Rung")];
    if parameters {
        columns.push(Column::text("Parameters"));
    }
    columns.extend([
        Column::number("Time").seconds(),
        Column::number("Spread").unit("%").significant(2),
        Column::number("Rate").unit(entry.giga()).significant(4),
        Column::number("Step ×").decimals(2),
        Column::number("In all ×").decimals(2),
    ]);
    if limits {
        columns.push(Column::number("Of limit").unit("%").decimals(1));
    }
    let clocks = throttled(entry).is_some();
    if clocks {
        columns.push(Column::number("Clock").unit("GHz").significant(3));
    }
    columns.push(Column::number("Error").significant(2));
    if published {
        columns.push(Column::text(entry.document()));
        columns.push(Column::number("their time").seconds());
        columns.push(Column::number("their rate").unit(entry.giga()).significant(4));
    }
    let mut table = Table::new(caption(entry), columns);
    for step in steps {
        let mut row: Vec<Cell> = vec![step.name.as_str().into()];
        if parameters {
            let config = step.config.to_string();
            row.push(if config.is_empty() { Cell::Empty } else { config.into() });
        }
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
    use rayspin_lab::{Asking, Climb, Step, Timed, Timing};

    fn entry(clocks: &[Option<f64>]) -> Entry {
        let timing = Timing { median: 1e-3, low: 1e-3, high: 1e-3, rounds: 9, runs: 1, graph: false };
        let step = |&clock_mhz| Step {
            name: "a".into(),
            summary: String::new(),
            config: Config::default(),
            bytes: 1.0,
            flops: 1.0,
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
        let climb = Climb { device: "d".into(), problem: "p".into(), sets: 1, steps };
        let about = About { name: "n", title: "t", readme: "", unit: Unit::Bytes };
        Entry::new(&about, &[], Peak::F32, climb)
    }

    #[test]
    fn the_column_of_published_rows_names_their_document() {
        let mut own = entry(&[None]);
        assert!(!table(&own).to_string().contains("their time"));
        own.climb.steps[0].reproduces = Some("K1".into());
        let row = Published { document: documents::HISTOGRAMS, row: "K1", seconds: Some(1.0), rate: None };
        let about = About { name: "n", title: "t", readme: "", unit: Unit::Bytes };
        let named = Entry::new(&about, &[row], Peak::F32, own.climb);
        let text = table(&named).to_string();
        assert!(text.contains("“Histograms” (lab journal)") && text.contains("K1"), "{text}");
    }

    #[test]
    fn clocks_are_told_rung_by_rung_where_they_differ() {
        let none = entry(&[None, None]);
        assert_eq!(caption(&none), "n: p, d");
        let single = Entry { launch: Asking::Single, ..none.clone() };
        assert_eq!(caption(&single), "n: p, d, runs asked for and waited for one by one");
        let same = entry(&[Some(1980.0), None, Some(1981.0)]);
        assert_eq!((caption(&same).as_str(), same.clock_mhz), ("n: p, d at 1.98 GHz", Some(1981.0)));
        assert!(!table(&same).to_string().contains("Clock"));
        let throttled = entry(&[Some(1980.0), None, Some(1410.0), Some(1980.0)]);
        assert_eq!(caption(&throttled), "n: p, d at 1.41 to 1.98 GHz");
        let text = table(&throttled).to_string();
        assert!(text.contains("Clock (GHz)") && text.matches("1.98").count() == 3, "{text}");
        // A record from before rungs had clocks.
        let before = Entry { clock_mhz: Some(2400.0), ..none };
        assert_eq!(caption(&before), "n: p, d at 2.40 GHz");
    }
}
