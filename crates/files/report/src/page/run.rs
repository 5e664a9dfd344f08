use maud::{Markup, html};
use rayspin_core::shell_word;
use serde_json::Value;

use super::chart::{Axis, LineChart, Series};
use super::render::table;
use crate::number::{bytes, seconds, short, typeset};
use crate::record::{FileEntry, History, RunRecord, Stage};
use crate::table::{Column, Table};

/// A run record: the facts and the time in each stage in the open, the rest folded away.
pub(super) fn record(record: &RunRecord) -> Markup {
    html! {
        div.record {
            dl {
                dt { "Program" } dd { (record.program) " " (record.version) }
                dt { "Command" } dd { code { (command_line(&record.command)) } }
                dt { "Started" } dd { time datetime=(record.started) { (readable_time(record)) } }
                dt { "Device" } dd { (record.device) }
                dt { "Threads" } dd { (record.threads) }
                dt { "Total time" } dd { (seconds(record.total_seconds)) }
                @if let Some(rate) = record.parameters.get("images per second").and_then(Value::as_f64) {
                    dt { "Images per second" } dd { (format!("{rate:.1}")) }
                }
                @if let Some(peak) = record.peak_memory_bytes { dt { "Peak memory" } dd { (bytes(peak)) } }
            }
            @if !record.notes.is_empty() {
                div.notes {
                    p { strong { "Assumed" } }
                    ul { @for note in &record.notes { li { (note) } } }
                }
            }
            (stages(&record.stages, record.total_seconds))
            @for chart in histories(&record.history) { (chart.render()) }
            @if !(record.inputs.is_empty() && record.outputs.is_empty()) {
                details {
                    summary { "Files" }
                    @for (name, files) in [("Read", &record.inputs), ("Written", &record.outputs)] {
                        @if !files.is_empty() { (table(&file_table(name, files))) }
                    }
                }
            }
            @if !(record.parameters.is_empty() && record.versions.is_empty()) {
                details {
                    summary { "Parameters and versions" }
                    @if !record.parameters.is_empty() { (table(&parameter_table(record))) }
                    @if !record.versions.is_empty() { (table(&version_table(record))) }
                }
            }
            details {
                summary { "Run record (JSON)" }
                pre tabindex="0" aria-label="Run record" {
                    @match record.to_json() {
                        Ok(text) => { code { (text) } },
                        Err(error) => { (error) },
                    }
                }
            }
        }
    }
}

/// Solves drawn in one chart at most; more lines can no longer be told apart.
const LINES: usize = 6;

/// A chart for each quantity that was followed, a line for each solve.
fn histories(history: &[History]) -> Vec<LineChart> {
    let mut charts: Vec<(LineChart, usize)> = Vec::new();
    for one in history {
        let index = charts.iter().position(|(chart, _)| chart.y.label == one.quantity).unwrap_or_else(|| {
            let chart = LineChart::new(
                capitalised(&one.quantity),
                Axis::linear("Iteration", ""),
                Axis::linear(one.quantity.clone(), ""),
            );
            charts.push((chart, 0));
            charts.len() - 1
        });
        let (chart, count) = &mut charts[index];
        *count += 1;
        if *count <= LINES {
            let points = one.values.iter().enumerate().map(|(i, value)| ((i + 1) as f64, *value));
            chart.series.push(Series::new(one.name.clone(), points));
        }
    }
    let said = |(chart, count): (LineChart, usize)| {
        if count > LINES { chart.caption(format!("The first {LINES} of {count} solves.")) } else { chart }
    };
    charts.into_iter().map(said).collect()
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// A bar for each stage, as long as its share of the time.
fn stages(stages: &[Stage], total: f64) -> Markup {
    let sum: f64 = stages.iter().map(|stage| stage.seconds).filter(|s| s.is_finite()).sum();
    let whole = if total.is_finite() { total.max(sum) } else { sum };
    let share = |value: f64| {
        let part = 100.0 * value / whole;
        if part.is_finite() { part.clamp(0.0, 100.0) } else { 0.0 }
    };
    html! {
        @if !stages.is_empty() {
            ul.stages aria-label="Time in each stage" {
                @for stage in stages {
                    li {
                        span.name { (stage.name) }
                        span.track aria-hidden="true" {
                            span style={ "width:" (format!("{:.2}", share(stage.seconds))) "%" } {}
                        }
                        span.time { (seconds(stage.seconds)) }
                        span.share { (percent(share(stage.seconds))) }
                    }
                }
            }
        }
    }
}

fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.5 { "<1 %".to_owned() } else { format!("{share:.0} %") }
}

fn file_table(name: &str, files: &[FileEntry]) -> Table {
    let columns = [Column::text("File"), Column::number("Size").bytes(), Column::text("BLAKE3")];
    let mut table = Table::new(name, columns);
    for file in files {
        let short: String = file.blake3.chars().take(16).collect();
        table.push([file.path.as_str().into(), (file.bytes as f64).into(), format!("{short}…").into()]);
    }
    table
}

fn parameter_table(record: &RunRecord) -> Table {
    let mut table = Table::new("Parameters", [Column::text("Parameter"), Column::text("Value")]);
    for (name, value) in &record.parameters {
        let shown = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_f64() => {
                typeset(&short(number.as_f64().unwrap_or(f64::NAN), 7))
            }
            other => other.to_string(),
        };
        table.push([name.as_str().into(), shown.into()]);
    }
    table
}

fn version_table(record: &RunRecord) -> Table {
    let mut table = Table::new("Versions", [Column::text("Of"), Column::text("Version")]);
    for (name, version) in &record.versions {
        table.push([name.as_str().into(), version.as_str().into()]);
    }
    table
}

/// `2025-03-01 12:00:00 UTC`.
fn readable_time(record: &RunRecord) -> String {
    let text = record.started.to_string();
    let seconds: String = text.chars().take_while(|&c| c != '.' && c != 'Z').collect();
    format!("{} UTC", seconds.replace('T', " "))
}

/// The command line as a shell would take it.
fn command_line(arguments: &[String]) -> String {
    arguments.iter().map(|argument| shell_word(argument)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunRecorder;

    #[test]
    fn command_lines_are_quoted_where_a_shell_needs_it() {
        let arguments = ["rayspin", "my scan.h5", "", "it's", "--lambda=1e-3"].map(str::to_owned);
        assert_eq!(command_line(&arguments), r"rayspin 'my scan.h5' '' 'it'\''s' --lambda=1e-3");
    }

    #[test]
    fn shares_of_odd_times() {
        let stage = |name: &str, seconds: f64| Stage { name: name.to_owned(), seconds };
        let text = stages(&[stage("a", 0.0), stage("b", f64::NAN)], 0.0).into_string();
        assert_eq!(text.matches("width:0.00%").count(), 2);
        let text = stages(&[stage("a", 1.0), stage("b", 3.0)], 4.0).into_string();
        assert!(text.contains("width:25.00%") && text.contains("width:75.00%"));
        assert_eq!(stages(&[], 1.0).into_string(), "");
    }

    #[test]
    fn a_quantity_has_one_chart_with_a_line_a_solve() {
        let of = |solve: usize, quantity: &str| History {
            name: format!("slice {solve}"),
            quantity: quantity.to_owned(),
            values: vec![2.0, 1.0],
        };
        let mut all: Vec<History> = (0..8).map(|solve| of(solve, "objective")).collect();
        all.push(of(0, "step"));
        let charts = histories(&all);
        assert_eq!(charts.len(), 2);
        assert_eq!((charts[0].series.len(), charts[1].series.len()), (LINES, 1));
        assert_eq!(charts[0].series[2].points, [(1.0, 2.0), (2.0, 1.0)]);
        assert_eq!(charts[0].caption, "The first 6 of 8 solves.");
        let mut run = RunRecorder::start("rayspin", "0.1.0", ["rayspin"], "one core", 1);
        run.followed("slice 0", "objective", [2.0, 1.0]);
        assert!(record(&run.finish(None)).into_string().contains("Objective</strong>"));
    }

    #[test]
    fn the_record_shows_its_facts() {
        let mut run = RunRecorder::start("rayspin", "0.1.0", ["rayspin", "a b"], "one core", 1);
        run.stage("solve");
        run.parameter("lambda", 0.0010);
        run.parameter("big", 1e10);
        run.parameter("whole", 100.0);
        run.note("Taken as <cycles>.");
        let text = record(&run.finish(Some(5 << 20))).into_string();
        for part in ["rayspin 'a b'", "5.00 MiB", "Taken as &lt;cycles&gt;.", ">0.001<", ">100<", "UTC"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
    }
}
