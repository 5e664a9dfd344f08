//! `rayspin-ladder list`

use anyhow::Result;
use rayspin::device::BackendKind;
use rayspin::report::table::{Cell, Column, Table};
use rayspin::tune::{Axis, Ladder, Which};
use rayspin_shell::files;

use super::Ladders;
use crate::args::ladder::List;

/// Lists all ladders, or what some of them hold.
pub(crate) fn run(ladders: &Ladders, args: &List) -> Result<()> {
    if args.names.is_empty() {
        return files::print(&overview(&ladders.all())?);
    }
    for ladder in ladders.named(&args.names)? {
        files::print(&cases(ladder))?;
        files::print(&rungs(ladder)?)?;
    }
    Ok(())
}

fn overview(ladders: &[&dyn Ladder]) -> Result<Table> {
    let columns = [
        Column::text("Name"),
        Column::text("What"),
        Column::text("Rungs"),
        Column::text("Cases, the first by default"),
    ];
    let mut table = Table::new("", columns);
    for ladder in ladders {
        let rungs = ladder.outline(Which::Case(None, None))?.rungs;
        let cpu = rungs.iter().filter(|rung| rung.backend == BackendKind::Cpu).count();
        let cases: Vec<_> = ladder.cases().iter().map(|case| case.0).collect();
        table.push([
            ladder.about().name.into(),
            ladder.about().title.into(),
            format!("{cpu} CPU, {} GPU", rungs.len() - cpu).into(),
            Cell::Text(cases.join(", ")),
        ]);
    }
    Ok(table)
}

fn cases(ladder: &dyn Ladder) -> Table {
    let about = ladder.about();
    let columns = [Column::text("Case"), Column::text("Problem"), Column::text("What")];
    let mut table = Table::new(format!("{}: {}", about.name, about.title), columns);
    for (name, summary, problem) in ladder.cases() {
        table.push([name.into(), problem.into(), summary.into()]);
    }
    table
}

fn rungs(ladder: &dyn Ladder) -> Result<Table> {
    let document = ladder.published().first().map_or("Published row", |row| row.document);
    let columns = ["Rung", "Processor", "What", "Parameters", document].map(Column::text);
    let mut table = Table::new("", columns);
    for rung in ladder.outline(Which::Case(None, None))?.rungs {
        let parameters: Vec<_> = rung.space.axes().iter().map(values).collect();
        table.push([
            rung.name.into(),
            match rung.backend {
                BackendKind::Cpu => "CPU",
                BackendKind::Cuda => "GPU",
            }
            .into(),
            rung.summary.into(),
            if parameters.is_empty() { Cell::Empty } else { parameters.join(" ").into() },
            rung.reproduces.map_or(Cell::Empty, Cell::from),
        ]);
    }
    Ok(table)
}

/// `threads=32,64,[128]`: the default in brackets.
fn values(axis: &Axis) -> String {
    let shown = |&value: &i64| if value == axis.default { format!("[{value}]") } else { value.to_string() };
    let shown: Vec<_> = axis.values.iter().map(shown).collect();
    format!("{}={}", axis.name, shown.join(","))
}
