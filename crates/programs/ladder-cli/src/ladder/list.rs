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
        return files::print(&args.width.text(&overview(&ladders.all())?));
    }
    for ladder in ladders.named(&args.names)? {
        files::print(&args.width.text(&cases(ladder)))?;
        let mut text = args.width.text(&variants(ladder)?);
        if let Some(row) = ladder.published().first() {
            text.push_str(&format!("published rows: {}\n", row.document));
        }
        files::print(&text)?;
    }
    Ok(())
}

fn overview(ladders: &[&dyn Ladder]) -> Result<Table> {
    let columns = [
        Column::text("Name"),
        Column::text("What"),
        Column::text("Variants"),
        Column::text("Cases, the first by default"),
    ];
    let mut table = Table::new("", columns);
    for ladder in ladders {
        let variants = ladder.outline(Which::Case(None, None))?.variants;
        let cpu = variants.iter().filter(|variant| variant.backend == BackendKind::Cpu).count();
        let cases: Vec<_> = ladder.cases().iter().map(|case| case.0).collect();
        table.push([
            ladder.about().name.into(),
            ladder.about().title.into(),
            format!("{cpu} CPU, {} GPU", variants.len() - cpu).into(),
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
        let on_gpu = ladder.default_case(BackendKind::Cuda) == Some(name);
        let default = if on_gpu { " (the default on a GPU)" } else { "" };
        table.push([name.into(), problem.into(), format!("{summary}{default}").into()]);
    }
    table
}

fn variants(ladder: &dyn Ladder) -> Result<Table> {
    let columns = ["Variant", "Processor", "What", "Parameters", "Published row"].map(Column::text);
    let mut table = Table::new("", columns);
    for variant in ladder.outline(Which::Case(None, None))?.variants {
        let parameters: Vec<_> = variant.space.axes().iter().map(values).collect();
        table.push([
            variant.name.into(),
            match variant.backend {
                BackendKind::Cpu => "CPU",
                BackendKind::Cuda => "GPU",
            }
            .into(),
            variant.summary.into(),
            if parameters.is_empty() { Cell::Empty } else { parameters.join(" ").into() },
            variant.reproduces.map_or(Cell::Empty, Cell::from),
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
