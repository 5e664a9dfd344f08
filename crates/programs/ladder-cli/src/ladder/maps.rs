//! Maps of what tuning found: the times of a variant over two of its parameters, and of more than two over
//! each.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rayspin::report::number;
use rayspin::report::page::{Axis, Block, HeatCell, HeatMap, LineChart, Series};
use rayspin::tune::Config;
use rayspin::tune::wisdom::Trial;
use rayspin::tune::wisdom::{self, Key, Wisdom};
use rayspin_lab::record::{Entry, Record};

/// The maps of each benchmark run, on devices of these names and drivers: of all results that are kept of its
/// variants.
pub(super) fn maps(record: &Record, identities: &[(String, String)]) -> Result<Vec<Vec<Block>>> {
    let wisdom = match wisdom::file() {
        Some(path) => Wisdom::open(&path)?,
        None => return Ok(Vec::new()),
    };
    Ok(record
        .runs
        .iter()
        .zip(identities)
        .map(|(entry, (device, driver))| of_run(&wisdom, entry, device, driver))
        .collect())
}

fn of_run(wisdom: &Wisdom, entry: &Entry, device: &str, driver: &str) -> Vec<Block> {
    let names: BTreeSet<&str> = entry.run.steps.iter().map(|step| step.name.as_str()).collect();
    let mut maps = Vec::new();
    for name in names {
        let of_variant = |key: &Key| {
            key.ladder == entry.ladder && key.variant == name && key.device == device && key.driver == driver
        };
        let mut keys: Vec<&Key> =
            wisdom.records().iter().map(|r| &r.key).filter(|key| of_variant(key)).collect();
        // What an older source took says nothing of this one.
        let Some(source) = keys.last().map(|key| key.source.clone()) else { continue };
        keys.retain(|key| key.source == source);
        let mut seen = Vec::new();
        for key in keys {
            if !seen.contains(&key) {
                seen.push(key);
                let tried: Vec<_> = wisdom.of(key).iter().map(|r| (&r.config, &r.trial)).collect();
                maps.extend(of_search(key, &tried));
            }
        }
    }
    maps
}

/// The map and the curves of the results of one search.
pub(crate) fn of_search(key: &Key, tried: &[(&Config, &Trial)]) -> Vec<Block> {
    let map = map(key, tried).map(Block::Heat);
    map.into_iter().chain(curves(key, tried).into_iter().map(Block::Chart)).collect()
}

/// A cell of a map: the best over all other parameters.
struct CellResult<'a> {
    best: Option<(f64, &'a Config)>,
    slow: bool,
}

/// The parameters with more than one tried value, in descending order of the number of values.
fn axes<'a>(tried: &[(&'a Config, &Trial)]) -> Vec<(&'a str, BTreeSet<i64>)> {
    let mut axes: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    for (name, value) in tried.iter().flat_map(|(config, _)| config.values()) {
        axes.entry(name).or_default().insert(value);
    }
    let mut axes: Vec<_> = axes.into_iter().filter(|(_, values)| values.len() > 1).collect();
    axes.sort_by_key(|(_, values)| std::cmp::Reverse(values.len()));
    axes
}

/// The time over each parameter, for a space of more than two parameters, which one map does not show whole.
/// One curve has the other parameters at their best for each value. The other curve has them as in the
/// fastest configuration.
fn curves(key: &Key, tried: &[(&Config, &Trial)]) -> Vec<LineChart> {
    let axes = axes(tried);
    let timed: Vec<_> =
        tried.iter().filter_map(|(config, trial)| Some((*config, trial.seconds()?))).collect();
    let Some((fastest, _)) = timed.iter().min_by(|a, b| a.1.total_cmp(&b.1)).filter(|_| axes.len() > 2)
    else {
        return Vec::new();
    };
    let chart = |(name, values): &(&str, BTreeSet<i64>)| {
        let line = |keep: &dyn Fn(&Config) -> bool| {
            let points = values.iter().filter_map(|&value| {
                let matching =
                    timed.iter().filter(|(config, _)| config.find(name) == Some(value) && keep(config));
                let best = matching.map(|(_, seconds)| *seconds).min_by(f64::total_cmp)?;
                Some((value as f64, 1e3 * best))
            });
            points.collect::<Vec<_>>()
        };
        let like_fastest = |config: &Config| {
            fastest.values().all(|(other, value)| other == *name || config.find(other) == Some(value))
        };
        let positive = values.first().is_some_and(|&least| least > 0);
        let across = if positive { Axis::log(*name, "") } else { Axis::linear(*name, "") };
        LineChart::new(format!("Time of {} by {name}", key.variant), across, Axis::log("Time", "ms"))
            .caption(format!("The fastest of all is {fastest}."))
            .series(Series::new("others at their best", line(&|_| true)))
            .series(Series::new("others as in the fastest", line(&like_fastest)))
    };
    axes.iter().map(chart).collect()
}

/// The times over the two parameters with the most values that were tried; none of a single configuration.
fn map(key: &Key, tried: &[(&Config, &Trial)]) -> Option<HeatMap> {
    let axes = axes(tried);
    let mut chosen = axes.iter();
    let (across, columns) = chosen.next()?;
    let one = BTreeSet::from([0]);
    let (down, rows) = chosen.next().map_or(("", &one), |(name, values)| (*name, values));
    let mut results: BTreeMap<(i64, i64), CellResult<'_>> = BTreeMap::new();
    for (config, trial) in tried {
        let Some(column) = config.find(across) else { continue };
        let row = config.find(down).unwrap_or(0);
        let result = results.entry((row, column)).or_insert(CellResult { best: None, slow: false });
        match trial {
            Trial::Timed { seconds, .. } if result.best.is_none_or(|(best, _)| *seconds < best) => {
                result.best = Some((*seconds, config));
            }
            Trial::Timed { .. } | Trial::Failed(_) => {}
            Trial::Slow { .. } => result.slow = true,
        }
    }
    let cell = |row: i64, column: i64| match results.get(&(row, column)) {
        Some(CellResult { best: Some((seconds, config)), .. }) => {
            HeatCell { value: Some(*seconds), text: number::seconds(*seconds), detail: config.to_string() }
        }
        Some(result) => {
            let text = if result.slow { "slow" } else { "fails" };
            HeatCell { text: text.into(), ..HeatCell::default() }
        }
        None => HeatCell::default(),
    };
    let rest: Vec<_> = axes.iter().skip(2).map(|(name, _)| *name).collect();
    let over = match rest.as_slice() {
        [] => String::new(),
        rest => format!(" Each is the best over {}.", rest.join(", ")),
    };
    let sizes: Vec<_> = key.sizes.iter().map(ToString::to_string).collect();
    Some(HeatMap {
        title: format!("Tuning of {}, {} {}", key.variant, sizes.join(" x "), key.kind),
        caption: format!(
            "{} configurations tried; empty ones were left out by their bounds, slow ones after a few rounds.{over}",
            tried.len()
        ),
        across: ((*across).to_owned(), columns.iter().map(ToString::to_string).collect()),
        down: (
            down.to_owned(),
            if down.is_empty() {
                vec![String::new()]
            } else {
                rows.iter().map(ToString::to_string).collect()
            },
        ),
        cells: rows.iter().map(|&row| columns.iter().map(|&column| cell(row, column)).collect()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        let text = |t: &str| t.to_owned();
        Key {
            ladder: text("sum"),
            variant: text("gpu"),
            source: text("abc"),
            device: text("GPU"),
            driver: text("13.0"),
            kind: text("f32"),
            sizes: vec![8, 9],
        }
    }

    #[test]
    fn a_map_has_the_best_over_the_other_parameters() {
        let config =
            |threads, each, tile| Config::of(&[("threads", threads), ("each", each), ("tile", tile)]);
        let timed = |seconds| Trial::Timed { seconds, error: 0.0 };
        let trials = [
            (config(64, 1, 1), timed(4e-3)),
            (config(64, 1, 2), timed(3e-3)),
            (config(128, 1, 1), Trial::Slow { seconds: 1.0 }),
            (config(256, 1, 1), Trial::Failed("wrong".into())),
            (config(64, 2, 1), timed(5e-3)),
            (config(64, 4, 1), timed(6e-3)),
            (config(128, 4, 1), timed(1e-3)),
        ];
        let tried: Vec<_> = trials.iter().map(|(config, trial)| (config, trial)).collect();
        let map = map(&key(), &tried).unwrap();
        assert_eq!((map.across.0.as_str(), map.down.0.as_str()), ("each", "threads"));
        assert_eq!(map.across.1, ["1", "2", "4"]);
        assert_eq!(map.down.1, ["64", "128", "256"]);
        let texts: Vec<Vec<&str>> =
            map.cells.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect()).collect();
        let shown = |seconds| number::seconds(seconds);
        assert_eq!(texts[0], [shown(3e-3), shown(5e-3), shown(6e-3)]);
        assert_eq!(texts[1][0], "slow");
        assert_eq!(texts[1][1], "");
        assert_eq!(texts[1][2], shown(1e-3));
        assert_eq!(texts[2][0], "fails");
        assert_eq!(map.cells[0][0].detail, config(64, 1, 2).to_string());
        assert!(map.caption.ends_with("the best over tile."), "{}", map.caption);
        let charts = curves(&key(), &tried);
        let titles: Vec<_> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(
            titles,
            ["Time of gpu by each", "Time of gpu by threads", "Time of gpu by tile"],
            "the axis with the most values first"
        );
        assert!(charts[0].caption.contains(&config(128, 4, 1).to_string()));
        let ms =
            |points: &[(f64, f64)]| points.iter().map(|p| (p.0, (p.1 * 1e3).round())).collect::<Vec<_>>();
        // The fastest is threads=128 each=4 tile=1.
        assert_eq!(ms(&charts[0].series[0].points), [(1.0, 3000.0), (2.0, 5000.0), (4.0, 1000.0)]);
        assert_eq!(ms(&charts[0].series[1].points), [(4.0, 1000.0)]);
        assert_eq!(ms(&charts[1].series[1].points), [(64.0, 6000.0), (128.0, 1000.0)]);
        assert_eq!(ms(&charts[2].series[0].points), [(1.0, 1000.0), (2.0, 3000.0)]);
        let single = [(&trials[0].0, &trials[0].1)];
        assert!(super::map(&key(), &single).is_none());
        assert!(curves(&key(), &single).is_empty());
        let line = [(&trials[0].0, &trials[0].1), (&trials[4].0, &trials[4].1)];
        let line = super::map(&key(), &line).unwrap();
        assert_eq!((line.cells.len(), line.cells[0].len()), (1, 2));
        // For two parameters the map shows all.
        assert!(curves(&key(), &[(&trials[0].0, &trials[0].1), (&trials[6].0, &trials[6].1)]).is_empty());
    }
}
