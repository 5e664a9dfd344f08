//! Benchmark runs as a page: tables, bar charts of times, rooflines, curves of sweeps.

use rayspin::report::number;
use rayspin::report::page::{Axis, Bar, BarChart, Block, LineChart, Page, Section, Series};
use rayspin::report::table::{Column, Table};
use rayspin::tune::Peak;
use rayspin::tune::limits::Limits;
use rayspin_lab::limits::Floors;
use rayspin_lab::record::{Entry, Record};
use rayspin_lab::{Outcome, Step};

use super::limits::date;
use super::show;

/// The page of a record, with the maps of tuning of each benchmark run.
pub(super) fn page(record: &Record, maps: &[Vec<Block>]) -> Page {
    let lead = format!(
        "Every variant of each algorithm, checked against a plain oracle and timed on this machine. Rayspin {}, {}.",
        record.rayspin, record.began
    );
    let mut page = Page::new("Ladders", lead);
    if !record.limits.is_empty() {
        page = page.section(limits(&record.limits));
    }
    for (index, entry) in record.runs.iter().enumerate() {
        let section = section(entry, of_device(record, entry));
        let maps = maps.get(index).into_iter().flatten().cloned();
        page = page.section(maps.fold(section, Section::block));
    }
    page
}

/// The limits of the device that a benchmark run was made on.
fn of_device<'a>(record: &'a Record, entry: &Entry) -> Option<&'a Limits> {
    record.limits.iter().find(|limits| limits.of.starts_with(&entry.run.device))
}

fn limits(measured: &[Limits]) -> Section {
    let text = "What each processor can do at most, measured: the best of several runs of nothing but that kind of work. The floor \
                under a variant is the larger of two times: its bytes over the rate of copies (of reads, writes, or the link to the \
                host where it does nothing else), and its operations over the rate of the units that do them. A variant's share of \
                the limit is that floor over its time.";
    measured.iter().fold(Section::new("Limits").text(text), |section, limits| {
        let columns =
            [Column::text("Kind of work"), Column::number("Rate").significant(4), Column::text("Unit")];
        let mut table = Table::new(format!("{}, measured {}", limits.of, date(limits)), columns);
        for (name, rate, unit) in limits.rates.rows() {
            table.push([name.into(), (rate / 1e9).into(), format!("10⁹ {unit}").into()]);
        }
        section.table(table)
    })
}

fn section(entry: &Entry, limits: Option<&Limits>) -> Section {
    let mut section =
        Section::new(format!("{} on {}", entry.title, entry.run.device)).table(show::table(entry));
    let not_timed: Vec<_> = entry
        .run
        .steps
        .iter()
        .filter_map(|step| match &step.outcome {
            Outcome::Timed(_) => None,
            Outcome::Refused(why) => Some(format!("{} was not run: {why}", step.name)),
            Outcome::Failed(why) => Some(format!("{} {} failed: {why}", step.name, step.config)),
        })
        .collect();
    let words: Vec<_> = not_timed.into_iter().chain(show::notes(entry, limits)).collect();
    if !words.is_empty() {
        section = section.list(words);
    }
    if entry.run.steps.iter().all(|step| step.timed().is_none()) {
        return section;
    }
    match &entry.sweep {
        Some(axis) => section.chart(curves(entry, axis)),
        None => {
            section = section.bars(times(entry));
            match limits.and_then(|limits| Some((limits, limits.bandwidth(entry.flow)?))) {
                Some((limits, bandwidth)) => section.chart(roofline(entry, limits, bandwidth)),
                None => section,
            }
        }
    }
}

/// Times on a logarithmic axis, the floor across each.
fn times(entry: &Entry) -> BarChart {
    let marked = entry.run.steps.iter().any(|step| step.floor.is_some());
    let floor = if marked { " The line across a bar is its floor." } else { "" };
    let mut chart = BarChart::new("Time of a run", format!("Logarithmic: shorter is faster.{floor}"));
    for step in &entry.run.steps {
        let Some(timed) = step.timed() else { continue };
        let share = step.share().map(|share| format!(", {:.0} %", 100.0 * share)).unwrap_or_default();
        chart.bars.push(Bar {
            name: step.name.clone(),
            value: timed.timing.median,
            text: format!("{}{share}", number::seconds(timed.timing.median)),
            mark: step.floor,
        });
    }
    chart
}

/// Operations a second over operations a byte, under the roofs of memory and of arithmetic: a point for every
/// variant that was timed.
fn roofline(entry: &Entry, limits: &Limits, bandwidth: f64) -> LineChart {
    let timed = || entry.run.steps.iter().filter_map(|step| Some((step, step.timed()?.timing.median)));
    let mut roofs: Vec<(Peak, f64)> = Vec::new();
    for (step, _) in timed() {
        let peak = step.peak.unwrap_or(entry.peak);
        if !roofs.iter().any(|roof| roof.0 == peak) {
            roofs.extend(limits.peak(peak).map(|rate| (peak, rate)));
        }
    }
    let ridges = || roofs.iter().map(|(_, peak)| peak / bandwidth);
    let intensity = |step: &Step| step.flops / step.bytes;
    let counted = |x: &f64| x.is_finite() && *x > 0.0;
    let intensities = || timed().map(|(step, _)| intensity(step)).filter(counted).chain(ridges());
    let low = intensities().fold(f64::INFINITY, f64::min) / 4.0;
    let high = intensities().fold(0.0, f64::max) * 4.0;
    let mut at_edge = false;
    let variants: Vec<_> = timed()
        .map(|(step, seconds)| {
            // Without operations a variant stands at the left edge, without bytes at the right one.
            let (x, operations) = match intensity(step) {
                x if counted(&x) => (x, step.flops),
                _ if step.flops > 0.0 => (high, step.flops),
                _ => (low, low * step.bytes),
            };
            at_edge |= x <= low || x >= high;
            (step.name.clone(), (x, operations / seconds / 1e9))
        })
        .collect();
    let edge = if at_edge {
        " A variant without counted operations stands at the left edge, at its share of the bandwidth; one that moves no bytes stands \
         at the right edge."
    } else {
        ""
    };
    let memory = format!(
        "{} bandwidth {} GB/s",
        format!("{:?}", entry.flow).to_lowercase(),
        number::significant(bandwidth / 1e9, 3)
    );
    let top = ridges().fold(0.0, f64::max).max(low);
    let chart = LineChart::new(
        "Roofline",
        Axis::log("Operations a byte", "op/B"),
        Axis::log("Operations a second", "10⁹ op/s"),
    )
    .caption(format!("Left of the ridge the memory bounds a variant, right of it the arithmetic.{edge}"))
    .series(Series::new(memory, [(low, low * bandwidth / 1e9), (top, top * bandwidth / 1e9)]));
    roofs
        .iter()
        .fold(chart, |chart, (peak, rate)| {
            let name = format!("{} {} 10⁹ op/s", peak.name(), number::significant(rate / 1e9, 3));
            chart.series(Series::new(name, [(rate / bandwidth, rate / 1e9), (high, rate / 1e9)]))
        })
        .series(Series::named("variants", variants))
}

/// Rates by the parameter that was swept, a line for each variant.
fn curves(entry: &Entry, axis: &str) -> LineChart {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for step in &entry.run.steps {
        let (Some(timed), Some(value)) = (step.timed(), step.config.find(axis)) else { continue };
        let point = (value as f64, timed.rate / 1e9);
        match lines.iter_mut().find(|(name, _)| *name == step.name) {
            Some((_, points)) => points.push(point),
            None => lines.push((step.name.clone(), vec![point])),
        }
    }
    let values = || lines.iter().flat_map(|line| &line.1).map(|point| point.0);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let across = if low > 0.0 && high / low > 12.0 { Axis::log(axis, "") } else { Axis::linear(axis, "") };
    let chart = LineChart::new(format!("Rate by {axis}"), across, Axis::linear("Rate", entry.giga()));
    lines.into_iter().fold(chart, |chart, (name, points)| chart.series(Series::new(name, points)))
}

#[cfg(test)]
mod tests {
    use rayspin::report::page::LineChart;
    use rayspin::tune::limits::Rates;
    use rayspin::tune::{About, Config, Unit};
    use rayspin_lab::{BenchmarkRun, Timed, Timing};

    use super::*;

    fn names(chart: &LineChart) -> Vec<String> {
        chart.series.last().unwrap().names.clone()
    }

    #[test]
    fn a_roofline_has_a_point_for_every_variant_that_was_timed() {
        let rates = Rates {
            copy: 1e9,
            read: 1e9,
            write: 1e9,
            f32: 8e9,
            f64: 4e9,
            i32: 8e9,
            tensor_f64: None,
            tensor_f16: Some(64e9),
            special: None,
            shared: None,
            texture: None,
            upload: None,
            download: None,
        };
        let limits = Limits { of: "d".into(), measured: None, busy: false, rates };
        let timing = Timing { median: 1e-3, low: 1e-3, high: 1e-3, rounds: 9, runs: 1, graph: false };
        let timed = Timed { timing, rate: 1e9, error: 0.0, step: 1.0, cumulative: 1.0, clock_mhz: None };
        let step = |name: &str, bytes, flops, peak| Step {
            name: name.into(),
            summary: String::new(),
            config: Config::default(),
            bytes,
            flops,
            peak,
            floor: None,
            tolerance: 0.0,
            reproduces: None,
            outcome: Outcome::Timed(timed.clone()),
        };
        let mut steps = vec![
            step("plain", 1e6, 2e6, None),
            step("copy", 1e6, 0.0, None),
            step("registers", 0.0, 1e6, None),
            step("products", 1e6, 3e7, Some(Peak::TensorF16)),
            step("unknown units", 1e6, 3e6, Some(Peak::TensorF64)),
        ];
        steps.push(Step { outcome: Outcome::Refused("too large".into()), ..step("refused", 1e6, 1e6, None) });
        let run = BenchmarkRun { device: "d".into(), problem: "p".into(), sets: 1, steps };
        let about = About { name: "n", title: "t", readme: "", unit: Unit::Bytes };
        let entry = Entry::new(&about, &[], Peak::F32, run);
        let chart = roofline(&entry, &limits, 1e9);
        assert_eq!(names(&chart), ["plain", "copy", "registers", "products", "unknown units"]);
        let points = &chart.series.last().unwrap().points;
        assert!(points.iter().all(|(x, y)| x.is_finite() && *x > 0.0 && *y > 0.0), "{points:?}");
        // The copy moves 1e9 B/s: it stands on the roof of the memory.
        let roof = chart.series[0].points[0];
        assert!((points[1].0 - roof.0).abs() < 1e-9 && (points[1].1 / roof.1 - 1.0).abs() < 1e-9);
        let roofs: Vec<_> = chart.series.iter().map(|series| series.name.as_str()).collect();
        assert!(
            roofs[1].starts_with("f32 multiply-add") && roofs[2].starts_with("FP16 tensor cores"),
            "{roofs:?}"
        );
        assert!(chart.caption.contains("left edge"), "{}", chart.caption);
    }
}
