//! Climbs as a page: tables, bar charts of times, rooflines, curves of sweeps.

use rayspin::report::number;
use rayspin::report::page::{Axis, Bar, BarChart, Block, LineChart, Page, Section, Series};
use rayspin::report::table::{Column, Table};
use rayspin::tune::limits::Limits;
use rayspin_lab::Outcome;
use rayspin_lab::limits::Floors;
use rayspin_lab::record::{Entry, Record};

use super::show;

/// The page of a record, with the maps of tuning of each climb.
pub(super) fn page(record: &Record, maps: &[Vec<Block>]) -> Page {
    let lead = format!(
        "Every variant of each algorithm, checked against a plain oracle and timed on this machine. Rayspin {}, {}.",
        record.rayspin, record.began
    );
    let mut page = Page::new("Ladders", lead);
    if !record.limits.is_empty() {
        page = page.section(limits(&record.limits));
    }
    for (at, entry) in record.climbs.iter().enumerate() {
        let section = climb(entry, of_device(record, entry));
        let maps = maps.get(at).into_iter().flatten().cloned();
        page = page.section(maps.fold(section, Section::block));
    }
    page
}

/// The limits of the device that a climb was made on.
fn of_device<'a>(record: &'a Record, entry: &Entry) -> Option<&'a Limits> {
    record.limits.iter().find(|limits| limits.of.starts_with(&entry.climb.device))
}

fn limits(all: &[Limits]) -> Section {
    let text = "What each processor can do at most, measured: the best of several runs of nothing but that kind of work. The floor \
                under a rung is the larger of its bytes over the rate of copies (of reads, writes, or the link to the host where it does nothing else) and its operations over the multiply-add rate of their \
                type; a rung's share of the limit is that floor over its time.";
    all.iter().fold(Section::new("Limits").text(text), |section, limits| {
        let columns =
            [Column::text("Kind of work"), Column::number("Rate").significant(4), Column::text("Unit")];
        let mut table = Table::new(limits.of.as_str(), columns);
        for (name, rate, unit) in limits.rates.rows() {
            table.push([name.into(), (rate / 1e9).into(), format!("10⁹ {unit}").into()]);
        }
        section.table(table)
    })
}

fn climb(entry: &Entry, limits: Option<&Limits>) -> Section {
    let mut section =
        Section::new(format!("{} on {}", entry.title, entry.climb.device)).table(show::table(entry));
    let not_timed: Vec<_> = entry
        .climb
        .steps
        .iter()
        .filter_map(|step| match &step.outcome {
            Outcome::Timed(_) => None,
            Outcome::Refused(why) => Some(format!("{} was not run: {why}", step.name)),
            Outcome::Failed(why) => Some(format!("{} {} failed: {why}", step.name, step.config)),
        })
        .collect();
    if !not_timed.is_empty() {
        section = section.list(not_timed);
    }
    if entry.climb.steps.iter().all(|step| step.timed().is_none()) {
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
    let marked = entry.climb.steps.iter().any(|step| step.floor.is_some());
    let floor = if marked { " The line across a bar is its floor." } else { "" };
    let mut chart = BarChart::new("Time of a run", format!("Logarithmic: shorter is faster.{floor}"));
    for step in &entry.climb.steps {
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

/// Operations a second over operations a byte, under the roofs of memory and of arithmetic.
fn roofline(entry: &Entry, limits: &Limits, bandwidth: f64) -> LineChart {
    let peak = limits.peak(entry.peak);
    let rungs: Vec<_> = entry
        .climb
        .steps
        .iter()
        .filter_map(|step| {
            let seconds = step.timed()?.timing.median;
            Some((step.name.clone(), (step.flops / step.bytes, step.flops / seconds / 1e9)))
        })
        .filter(|(_, (x, y))| x.is_finite() && *x > 0.0 && *y > 0.0)
        .collect();
    let ridge = peak / bandwidth;
    let low = rungs.iter().map(|rung| rung.1.0).fold(ridge, f64::min) / 4.0;
    let high = rungs.iter().map(|rung| rung.1.0).fold(ridge, f64::max) * 4.0;
    let kind = format!("{:?}", entry.peak).to_lowercase();
    LineChart::new(
        "Roofline",
        Axis::log("Operations a byte", "op/B"),
        Axis::log("Operations a second", "10⁹ op/s"),
    )
    .caption("Left of the ridge the memory bounds a rung, right of it the arithmetic.")
    .series(Series::new(
        format!(
            "{} bandwidth {} GB/s",
            format!("{:?}", entry.flow).to_lowercase(),
            number::significant(bandwidth / 1e9, 3)
        ),
        [(low, low * bandwidth / 1e9), (ridge, peak / 1e9)],
    ))
    .series(Series::new(
        format!("{kind} multiply-add {} 10⁹ op/s", number::significant(peak / 1e9, 3)),
        [(ridge, peak / 1e9), (high, peak / 1e9)],
    ))
    .series(Series::named("rungs", rungs))
}

/// Rates by the parameter that was swept, a line for each rung.
fn curves(entry: &Entry, axis: &str) -> LineChart {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for step in &entry.climb.steps {
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
