//! The application table as text and as comma-separated values.

use std::fmt::Write as _;

use rayspin::report::table::{Cell, Column, Table};
use rayspin_lab::application::{Applications, Kind, Row};

use super::super::csv::quoted;
use crate::args::Width;

/// The table, and under it what has no row.
pub(super) fn text(all: &Applications, width: Width) -> String {
    let mut text = String::new();
    if !all.rows.is_empty() {
        let table = table(all, true);
        text = format!("{}\n{}\n", width.text(&table), width.legend([&table]));
    }
    for (name, why) in &all.left_out {
        let _ = writeln!(text, "no row: {name}: {why}");
    }
    text
}

/// What is compared.
pub(super) fn caption(all: &Applications) -> String {
    let day = all.began.get(..10).unwrap_or(&all.began);
    format!("Applications: times with {}, × against {}, measured {day}", all.gpu, all.cpu)
}

/// The sources' columns, with the GPU's times where there is room.
pub(super) fn table(all: &Applications, times: bool) -> Table {
    let mut columns = vec![
        Column::text("Application"),
        Column::text("Bottleneck").legend(
            "what limits the GPU's kernel, and its share of that limit; ~ is an estimate, latency with the largest share beside it",
        ),
        Column::number("Threads at once")
            .decimals(0)
            .legend("threads that the GPU holds at once, of the kernel with most of them"),
    ];
    let kernel = ("Kernel", "time of the kernel on the GPU, data in its memory", "Kernel ×");
    let whole = ("Application", "the same from memory of the host to memory of the host", "Application ×");
    for (name, meaning, speed_up) in [kernel, whole] {
        if times {
            columns.push(Column::number(name).seconds().legend(meaning));
        }
        columns.push(
            Column::number(speed_up).significant(3).legend("time of the CPU's best variant over the GPU's"),
        );
    }
    columns
        .push(Column::text("Most of it").legend("the part of the application that takes longest on the GPU"));
    let mut table = Table::new(caption(all), columns);
    for row in &all.rows {
        let mut cells = vec![row.name.as_str().into(), row.bottleneck.words().into(), threads(row)];
        let kernel = (Some(row.gpu.kernel_seconds), Some(row.kernel_speed_up()));
        for (seconds, speed_up) in [kernel, (row.gpu.application_seconds, row.application_speed_up())] {
            if times {
                cells.push(seconds.into());
            }
            cells.push(speed_up.into());
        }
        cells.push(longest(row));
        table.push(cells);
    }
    table
}

/// How many threads, as the sources have it.
fn threads(row: &Row) -> Cell {
    row.resident.as_ref().map_or(Cell::Empty, |resident| (resident.threads as f64).into())
}

/// The part that takes most of the whole with the GPU.
fn longest(row: &Row) -> Cell {
    match row.gpu.longest() {
        Some((name, share)) => format!("{name} {:.0} %", 100.0 * share).into(),
        None => "not stated".into(),
    }
}

const HEAD: &str = "name,kind,problem,bottleneck,share,kernel,threads_at_once,threads_launched,threads_at_most,cpu_kernel,\
                    cpu_kernel_seconds,gpu_kernel,gpu_kernel_seconds,kernel_speed_up,cpu_application_seconds,\
                    gpu_application_seconds,application_speed_up,parts,bytes_to_gpu,bytes_from_gpu";

/// A line for each row.
pub(super) fn lines(all: &Applications) -> String {
    let mut text = format!("{HEAD}\n");
    for row in &all.rows {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let count = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let parts: Vec<_> =
            row.gpu.parts.iter().map(|part| format!("{}={}", part.name, part.seconds)).collect();
        let resident = row.resident.as_ref();
        let fields = [
            row.name.clone(),
            match row.kind {
                Kind::Ladder => "ladder",
                Kind::Reconstruction => "reconstruction",
            }
            .to_owned(),
            row.problem.clone(),
            row.bottleneck.stage.clone().unwrap_or_else(|| row.bottleneck.limit.name().to_owned()),
            row.bottleneck.share.to_string(),
            resident.map(|r| r.kernel.clone()).unwrap_or_default(),
            count(resident.map(|r| r.threads)),
            count(resident.map(|r| r.launched)),
            count(resident.map(|r| r.most)),
            row.cpu.kernel.clone(),
            row.cpu.kernel_seconds.to_string(),
            row.gpu.kernel.clone(),
            row.gpu.kernel_seconds.to_string(),
            row.kernel_speed_up().to_string(),
            number(row.cpu.application_seconds),
            number(row.gpu.application_seconds),
            number(row.application_speed_up()),
            parts.join(" "),
            count(row.gpu.bytes.map(|bytes| bytes.0)),
            count(row.gpu.bytes.map(|bytes| bytes.1)),
        ];
        text.push_str(&fields.map(|field| quoted(&field)).join(","));
        text.push('\n');
    }
    text
}
