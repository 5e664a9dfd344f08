//! The application table as text and as comma-separated values.

use std::fmt::Write as _;

use rayspin::report::table::{Cell, Column, Table};
use rayspin_lab::application::{Applications, Kind, Row};

use super::super::csv::quoted;
use crate::args::Width;

/// The tables, and under them what has no row.
pub(super) fn text(applications: &Applications, width: Width) -> String {
    let mut text = String::new();
    if !applications.rows.is_empty() {
        let tables: Vec<Table> =
            [table(applications, true)].into_iter().chain(beside(applications)).collect();
        for table in &tables {
            let _ = writeln!(text, "{}", width.text(table));
        }
        let _ = writeln!(text, "{}", width.legend(&tables));
    }
    let left_out: Vec<_> =
        applications.left_out.iter().map(|(name, why)| format!("no row: {name}: {why}\n")).collect();
    text + &width.lines(&left_out.concat())
}

/// What is compared.
pub(super) fn caption(applications: &Applications) -> String {
    let day = applications.began.get(..10).unwrap_or(&applications.began);
    format!("Applications: times with {}, × against {}, measured {day}", applications.gpu, applications.cpu)
}

/// The lecture's columns, with the GPU's times where there is room.
pub(super) fn table(applications: &Applications, times: bool) -> Table {
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
    let mut table = Table::new(caption(applications), columns);
    for row in &applications.rows {
        let mut cells = vec![row.label().into(), row.bottleneck.words().into(), threads(row)];
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

/// Our rows and the lecture's, one under the other, in its columns; `None` where no row has one.
pub(super) fn beside(applications: &Applications) -> Option<Table> {
    let pairs: Vec<_> = applications
        .rows
        .iter()
        .filter_map(|row| row.published.as_ref().map(|theirs| (row, theirs)))
        .collect();
    let document = &pairs.first()?.1.document;
    let one = "time of one core of a CPU, of the first variant, over the GPU's";
    let columns = [
        Column::text("Here and there").legend("there: the lecture's row, in its spelling"),
        Column::number("Threads").decimals(0).legend("threads at once, as above"),
        Column::number("Kernel × 1 core").significant(3).legend(one),
        Column::number("Whole × 1 core")
            .significant(3)
            .legend("the same of the application, from host to host"),
        Column::number("Kernel × all").significant(3).legend("against all cores, as above"),
        Column::number("Whole × all").significant(3),
        Column::text("Core ran").legend(
            "the case that one core ran: the same, or a smaller one whose rate is taken for this one; the page and the CSV file name it",
        ),
        Column::text("Bottleneck"),
    ];
    let mut table = Table::new(format!("The same beside {document}"), columns);
    for (row, theirs) in pairs {
        table.push([
            row.label().into(),
            threads(row),
            row.kernel_over_one_core().into(),
            row.application_over_one_core().into(),
            row.kernel_speed_up().into(),
            row.application_speed_up().into(),
            one_core_ran(row),
            row.bottleneck.words().into(),
        ]);
        table.push([
            format!("there: {}", theirs.row).into(),
            f64::from(theirs.threads).into(),
            theirs.kernel_speed_up.into(),
            theirs.application_speed_up.into(),
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            theirs.bottleneck.as_str().into(),
        ]);
    }
    Some(table)
}

/// Which case one core ran.
fn one_core_ran(row: &Row) -> Cell {
    match &row.one_core {
        Some((_, times)) if *times == 1.0 => "same".into(),
        Some(_) => "smaller".into(),
        None => Cell::Empty,
    }
}

/// How many threads, as the lecture has it.
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
                    gpu_application_seconds,application_speed_up,parts,bytes_to_gpu,bytes_from_gpu,case,one_core_kernel,\
                    one_core_problem,one_core_kernel_seconds,one_core_application_seconds,one_core_times,\
                    kernel_over_one_core,application_over_one_core,published_document,published_row,\
                    published_bottleneck,published_threads_at_once,published_kernel_speed_up,\
                    published_application_speed_up";

/// A line for each row.
pub(super) fn lines(applications: &Applications) -> String {
    let mut text = format!("{HEAD}\n");
    for row in &applications.rows {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let count = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let parts: Vec<_> =
            row.gpu.parts.iter().map(|part| format!("{}={}", part.name, part.seconds)).collect();
        let resident = row.resident.as_ref();
        let core = row.one_core.as_ref().map(|(core, _)| core);
        let theirs = row.published.as_ref();
        let text_of = |value: Option<&String>| value.cloned().unwrap_or_default();
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
            text_of(row.case.as_ref()),
            text_of(core.map(|core| &core.variant)),
            text_of(core.map(|core| &core.problem)),
            number(core.map(|core| core.kernel_seconds)),
            number(core.and_then(|core| core.application_seconds)),
            number(row.one_core.as_ref().map(|(_, times)| *times)),
            number(row.kernel_over_one_core()),
            number(row.application_over_one_core()),
            text_of(theirs.map(|theirs| &theirs.document)),
            text_of(theirs.map(|theirs| &theirs.row)),
            text_of(theirs.map(|theirs| &theirs.bottleneck)),
            count(theirs.map(|theirs| theirs.threads.into())),
            number(theirs.map(|theirs| theirs.kernel_speed_up)),
            number(theirs.map(|theirs| theirs.application_speed_up)),
        ];
        text.push_str(&fields.map(|field| quoted(&field)).join(","));
        text.push('\n');
    }
    text
}
