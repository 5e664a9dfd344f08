//! What a reconstruction will take, as `--dry-run` shows it.

use std::path::Path;

use rayspin::report::table::{Cell, Column, Table};
use rayspin::run::{Plan, Stage};

/// The plan as a table.
pub(crate) fn table(scan: &Path, plan: &Plan, cut: &str) -> Table {
    let gpu = plan.budget.gpu_peak() > 0;
    let mut columns = vec![Column::text("Stage"), Column::number("Memory").bytes()];
    columns.extend(gpu.then(|| Column::number("GPU memory").bytes()));
    columns.extend([
        Column::number("Transforms").decimals(0),
        Column::number("Iterations").decimals(0),
        Column::number("Work").unit("Gflop"),
        Column::number("Traffic").unit("GB"),
    ]);
    let empty = || Cell::Text(String::new());
    let with_gpu = |mut cells: Vec<Cell>, bytes: u64| {
        if gpu && cells.len() > 2 {
            cells.insert(2, if bytes > 0 { Cell::Number(bytes as f64) } else { empty() });
        }
        cells
    };
    let mut table = Table::new(format!("{}: {cut}", scan.display()), columns);
    table.push([Cell::Text("process".into()), Cell::Number(plan.process as f64)]);
    for stage in &plan.budget.stages {
        let number = |value: f64| if value > 0.0 { Cell::Number(value) } else { empty() };
        let cells = vec![
            Cell::Text(stage.name.clone()),
            Cell::Number((plan.process + stage.bytes) as f64),
            number(stage.effort.transforms as f64),
            number(stage.effort.iterations as f64),
            number(stage.effort.flops / 1e9),
            number(stage.effort.traffic / 1e9),
        ];
        table.push(with_gpu(cells, stage.gpu_bytes));
    }
    let sum = |quantity: fn(&Stage) -> f64| plan.budget.stages.iter().map(quantity).sum::<f64>();
    let cells = vec![
        Cell::Text("peak, sum".into()),
        Cell::Number(plan.peak() as f64),
        Cell::Number(sum(|s| s.effort.transforms as f64)),
        empty(),
        Cell::Number(sum(|s| s.effort.flops) / 1e9),
        Cell::Number(sum(|s| s.effort.traffic) / 1e9),
    ];
    table.push(with_gpu(cells, plan.budget.gpu_peak()));
    table
}
