//! The application table as a page.

use rayspin::report::number;
use rayspin::report::page::{Bar, BarChart, Page, Section};
use rayspin::report::table::{Cell, Column, Table};
use rayspin_lab::application::{Applications, Kind, Row, Side};

use super::show;

const RULE: &str = "Bottleneck: the larger of the shares of memory bandwidth and of arithmetic that any implementation takes of the \
    measured limits, where it is at least 50 %; else launches, where those that do nothing would take half of the time; else what \
    the compiled kernel's instructions let estimate (~), instruction issue or special functions; else latency, with the largest \
    share beside it. A share above 120 % limits nothing: other units do that work. Not told: the kernel computes on units that \
    the estimate leaves out.";

const COLUMNS: &str = "Threads at once: what multiprocessors hold of the blocks that there are, of the kernel with most threads. \
    Kernel: inputs and outputs lie in the processor's memory. Application: from memory of the host to memory of the host; with \
    the GPU that is new memory and the way there for the inputs, new memory for the outputs, what a first run takes (plans, \
    tables, textures), the kernel, and the way back. Reconstructions are of simulated scans, from samples in memory to an image \
    in memory, plans and coil sensitivities included; their kernel is the stage of gridding, or of conjugate gradients, and their \
    bottleneck the stage that takes longest with the GPU.";

const ONE_CORE: &str = "One core: the ladder's first variant of a CPU, which runs on one thread, plainly. A run that takes more than a second \
    is timed once. Where one core would take a minute for the problem, its rate on a smaller case counts.";

/// The page of a table.
pub(super) fn page(applications: &Applications) -> Page {
    let lead =
        format!("{}. Rayspin {}, {}.", show::caption(applications), applications.rayspin, applications.began);
    let mut section = Section::new("Applications").text(COLUMNS).text(RULE);
    if !applications.rows.is_empty() {
        section = section.table(show::table(applications, false)).bars(speed_ups(applications));
    }
    if let Some(beside) = show::beside(applications) {
        section = section.text(ONE_CORE).table(beside);
    }
    if !applications.left_out.is_empty() {
        section =
            section.list(applications.left_out.iter().map(|(name, why)| format!("{name} has no row: {why}")));
    }
    let page = Page::new("Application table", lead).section(section);
    if applications.rows.is_empty() {
        return page;
    }
    let mut whole = Section::new("The whole, in parts").table(times(applications));
    if applications.rows.iter().any(|row| row.kind == Kind::Ladder) {
        whole = whole.table(parts(applications));
    }
    for row in applications.rows.iter().filter(|row| row.kind == Kind::Reconstruction) {
        whole = whole.table(stages(row));
    }
    let mut compared =
        Section::new("What was compared").table(variants(applications)).table(threads(applications));
    if applications.rows.iter().any(|row| row.one_core.is_some()) {
        compared = compared.table(one_core(applications));
    }
    page.section(compared)
        .section(Section::new("Shares of the limits").table(shares(applications)).table(limits(applications)))
        .section(whole)
}

/// Both speed-ups of each row on one axis.
fn speed_ups(applications: &Applications) -> BarChart {
    let mut chart =
        BarChart::new("Speed-up", "Logarithmic: the kernel alone, and the whole from host to host.");
    for row in &applications.rows {
        let mut bar = |what: &str, value: Option<f64>| {
            let Some(value) = value else { return };
            let text = format!("{} ×", number::significant(value, 3));
            chart.bars.push(Bar { name: format!("{}: {what}", row.label()), value, text, mark: None });
        };
        bar("kernel", Some(row.kernel_speed_up()));
        bar("application", row.application_speed_up());
    }
    chart
}

fn variants(applications: &Applications) -> Table {
    let columns = ["Application", "What", "Problem", "Best on the CPU", "Best on the GPU"].map(Column::text);
    let mut table = Table::new("Variants", columns);
    for row in &applications.rows {
        let texts = [&row.label(), &row.title, &row.problem, &row.cpu.kernel, &row.gpu.kernel];
        table.push(texts.map(|text| text.as_str().into()));
    }
    table
}

/// What one core was timed on.
fn one_core(applications: &Applications) -> Table {
    let columns = [
        Column::text("Application"),
        Column::text("Variant"),
        Column::text("Problem"),
        Column::number("Kernel").seconds(),
        Column::number("Application").seconds(),
        Column::number("Work of the row over the problem's").significant(3),
    ];
    let mut table = Table::new("One core of the CPU", columns);
    for row in &applications.rows {
        let Some((core, times)) = &row.one_core else { continue };
        table.push([
            row.label().into(),
            core.variant.as_str().into(),
            core.problem.as_str().into(),
            core.kernel_seconds.into(),
            core.application_seconds.into(),
            (*times).into(),
        ]);
    }
    table
}

fn threads(applications: &Applications) -> Table {
    let columns = [
        Column::text("Application"),
        Column::text("Kernel"),
        Column::number("Threads at once").decimals(0),
        Column::number("Of the most").unit("%").decimals(0),
        Column::number("Threads in all").decimals(0),
    ];
    let mut table = Table::new("Threads of the kernel with most of them", columns);
    for row in &applications.rows {
        let Some(resident) = &row.resident else { continue };
        table.push([
            row.label().into(),
            resident.kernel.as_str().into(),
            (resident.threads as f64).into(),
            (100.0 * resident.threads as f64 / resident.most as f64).into(),
            (resident.launched as f64).into(),
        ]);
    }
    table
}

/// Every share, by row and limit.
fn shares(applications: &Applications) -> Table {
    let mut names: Vec<String> = Vec::new();
    let name = |limit: rayspin_lab::application::Limit| {
        let about = if limit.is_estimate() { "~" } else { "" };
        format!("{about}{}", limit.name())
    };
    let ladders = || applications.rows.iter().filter(|row| row.kind == Kind::Ladder);
    for share in ladders().flat_map(|row| &row.bottleneck.shares) {
        let name = name(share.limit);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut columns = vec![Column::text("Application")];
    columns.extend(names.iter().map(|name| Column::number(name.as_str()).unit("%").decimals(0)));
    let mut table = Table::new("The least time that a limit allows over the time of the kernel", columns);
    for row in ladders() {
        let share = |wanted: &String| {
            let matching = row.bottleneck.shares.iter().find(|share| name(share.limit) == *wanted);
            Cell::from(matching.map(|share| 100.0 * share.share))
        };
        let mut cells: Vec<Cell> = vec![row.label().into()];
        cells.extend(names.iter().map(share));
        table.push(cells);
    }
    table
}

fn limits(applications: &Applications) -> Table {
    let columns = [Column::text("Kind of work"), Column::number("Rate").significant(4), Column::text("Unit")];
    let mut table = Table::new(format!("Measured limits: {}", applications.limits.of), columns);
    for (name, rate, unit) in applications.limits.rates.rows() {
        table.push([name.into(), (rate / 1e9).into(), format!("10⁹ {unit}").into()]);
    }
    if applications.launch > 0.0 {
        table.push(["launch".into(), (1e-9 / applications.launch).into(), "10⁹ launches/s".into()]);
    }
    table
}

/// The times that the speed-ups are of.
fn times(applications: &Applications) -> Table {
    let columns = [
        Column::text("Application"),
        Column::number("Kernel on the CPU").seconds(),
        Column::number("on the GPU").seconds(),
        Column::number("×").significant(3),
        Column::number("Application on the CPU").seconds(),
        Column::number("with the GPU").seconds(),
        Column::number("×").significant(3),
    ];
    let mut table = Table::new("Times", columns);
    for row in &applications.rows {
        table.push([
            row.label().into(),
            row.cpu.kernel_seconds.into(),
            row.gpu.kernel_seconds.into(),
            row.kernel_speed_up().into(),
            row.cpu.application_seconds.into(),
            row.gpu.application_seconds.into(),
            row.application_speed_up().into(),
        ]);
    }
    table
}

/// The stages of a reconstruction on both processors.
fn stages(row: &Row) -> Table {
    let columns = [
        Column::text("Stage"),
        Column::number("CPU").seconds(),
        Column::number("GPU").seconds(),
        Column::number("×").significant(3),
    ];
    let mut table = Table::new(format!("{}: {}", row.name, row.problem), columns);
    for part in &row.gpu.parts {
        let on_cpu = row.cpu.parts.iter().find(|other| other.name == part.name).map(|part| part.seconds);
        table.push([
            part.name.as_str().into(),
            on_cpu.into(),
            part.seconds.into(),
            on_cpu.map(|seconds| seconds / part.seconds).into(),
        ]);
    }
    table
}

/// The parts of the ladders' wholes with the GPU.
fn parts(applications: &Applications) -> Table {
    let rows: Vec<_> = applications.rows.iter().filter(|row| row.kind == Kind::Ladder).collect();
    let mut names: Vec<&str> = Vec::new();
    for part in rows.iter().flat_map(|row| &row.gpu.parts) {
        if !names.contains(&part.name.as_str()) {
            names.push(&part.name);
        }
    }
    let mut columns = vec![Column::text("Application")];
    columns.extend(names.iter().map(|name| Column::number(*name).seconds()));
    columns.extend([Column::number("To the GPU").bytes(), Column::number("From the GPU").bytes()]);
    let mut table = Table::new("With the GPU", columns);
    for row in rows {
        let mut cells: Vec<Cell> = vec![row.label().into()];
        cells.extend(names.iter().map(|name| seconds(&row.gpu, name)));
        cells.extend(bytes(row));
        table.push(cells);
    }
    table
}

fn seconds(side: &Side, part: &str) -> Cell {
    side.parts.iter().find(|other| other.name == part).map(|part| part.seconds).into()
}

fn bytes(row: &Row) -> [Cell; 2] {
    let (to, from) = row.gpu.bytes.unzip();
    [to, from].map(|bytes| bytes.map(|bytes| bytes as f64).into())
}
