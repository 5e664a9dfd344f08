//! The line to change first, and what changed between two kernels.

use rayspin::report::number;
use rayspin::report::table::{Cell, Column, Table};
use rayspin_emu::counting::{self, Access, Counts, Kind, Line, Space};

use super::gpus::Gpu;
use super::predict::Limit;
use super::{Counted, Found};

const SECTOR: f64 = counting::SECTOR as f64;
const WARP: f64 = counting::WARP as f64;
/// A waste below this share of a kernel's time is not worth a change.
const LITTLE: f64 = 0.03;
/// What kernels do should take this many times as long as the launch, so that lines tell.
const MORE_WORK: f64 = 10.0;

/// What a line wastes.
struct Waste<'a> {
    line: &'a Line,
    seconds: f64,
    words: String,
}

/// What to change first in a variant, in a sentence.
pub(super) fn first(found: &Found, counted: &Counted) -> Option<String> {
    let wasted = counted.kernels.iter().flat_map(|kernel| wastes(found.gpu, &kernel.counts));
    let most = wasted.max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    let time = counted.seconds().unwrap_or(0.0);
    let name = &counted.name;
    let launches =
        if counted.limit() == Some(Limit::Launch) { launches(found, counted) } else { String::new() };
    if most.seconds < LITTLE * time || most.seconds <= 0.0 {
        let limit = counted.limit().map(|limit| format!("; it is limited by: {limit}")).unwrap_or_default();
        return Some(format!("{name}: no line wastes much{limit}{launches}"));
    }
    let Line { place, text, .. } = most.line;
    let Waste { words, .. } = &most;
    Some(format!("{name}: change first {}:{}: {words} ({text}){launches}", place.file, place.line))
}

/// What to try where the launch takes longer than all that kernels do, so that no change of a line shows.
fn launches(found: &Found, counted: &Counted) -> String {
    let predictions = || counted.kernels.iter().filter_map(|kernel| kernel.prediction.as_ref());
    let (mut launch, mut other) = (0.0, 0.0);
    for prediction in predictions() {
        let of = |wanted: fn(Limit) -> bool| {
            prediction.parts.iter().filter(|(limit, _)| wanted(*limit)).map(|part| part.1).fold(0.0, f64::max)
        };
        launch += of(|limit| limit == Limit::Launch);
        other += of(|limit| limit != Limit::Launch);
    }
    let times = MORE_WORK * launch / f64::max(other, f64::MIN_POSITIVE);
    let larger = match &found.size {
        Some(size) if times.is_finite() && !size.is_empty() => {
            // As many doublings of each axis.
            let doublings = (times.log2() / size.len() as f64).ceil().clamp(1.0, 12.0);
            let axes = size.iter().map(|&axis| (axis as f64 * doublings.exp2()).to_string());
            format!("try --size {} --sampled", axes.collect::<Vec<_>>().join("x"))
        }
        _ if found.measured => "each launch should do more".to_owned(),
        _ => "try --measured --sampled, the problem that a GPU is measured with".to_owned(),
    };
    format!("; at this size the launch takes longer than the kernel, and a change shows little: {larger}")
}

fn wastes<'a>(gpu: &Gpu, counts: &'a Counts) -> Vec<Waste<'a>> {
    let busy = gpu.multiprocessors.min(counts.blocks().max(1) as f64);
    let cycles = |cycles: f64| cycles / busy / gpu.clock;
    let mut wastes = Vec::new();
    for line in &counts.lines {
        for access in &line.accesses {
            let (seconds, words) = match (access.space, access.kind) {
                (Space::Global, Kind::Atomic) => (
                    (access.most - access.requests) / 64.0 / gpu.clock,
                    format!(
                        "{} lanes of a warp change the same address of {} and take turns",
                        number::significant(access.most / access.requests, 2),
                        access.array
                    ),
                ),
                (Space::Global, kind) => {
                    let least = access.bytes / (4.0 * SECTOR);
                    let moved = (access.sectors * SECTOR - access.bytes).max(0.0) / gpu.cache;
                    let scattered = cycles(access.rows - least);
                    let what = if kind == Kind::Read { "loads" } else { "stores" };
                    let words = if moved >= scattered {
                        let times = number::significant(access.sectors * SECTOR / access.bytes, 2);
                        format!(
                            "its {what} of {} move {times} times the bytes that they ask for",
                            access.array
                        )
                    } else {
                        let rows = number::significant(access.rows / access.requests, 2);
                        let least = number::significant((least / access.requests).max(1.0), 2);
                        format!(
                            "each of its {what} of {} takes {rows} rows of 128 bytes, where {least} would do",
                            access.array
                        )
                    };
                    (moved.max(scattered), words)
                }
                (Space::Shared, _) => (
                    cycles(access.turns - access.least),
                    format!(
                        "{} takes {} times the least turns (bank conflicts)",
                        access.array,
                        number::significant(access.turns / access.least, 2)
                    ),
                ),
                (Space::Constant, _) => (
                    cycles(access.turns - access.requests),
                    format!(
                        "lanes of a warp want {} different numbers of {} at a time",
                        number::significant(access.turns / access.requests, 2),
                        access.array
                    ),
                ),
                (Space::Texture, _) => continue,
            };
            wastes.push(Waste { line, seconds, words });
        }
        if line.visits > 0.0 {
            let active = line.lanes / line.visits / WARP;
            let idle = line.work.total() * (1.0 - active) / 4.0;
            let words = format!("{} of 32 lanes are active", number::significant(active * WARP, 2));
            wastes.push(Waste { line, seconds: cycles(idle), words });
        }
    }
    wastes
}

/// An access of a variant with its kernel and line.
struct Row<'a> {
    kernel: &'a str,
    line: &'a Line,
    access: &'a Access,
}

fn rows(counted: &Counted) -> Vec<Row<'_>> {
    let lines = counted
        .kernels
        .iter()
        .flat_map(|kernel| kernel.counts.lines.iter().map(move |line| (kernel.counts.kernel.as_str(), line)));
    lines
        .flat_map(|(kernel, line)| line.accesses.iter().map(move |access| Row { kernel, line, access }))
        .collect()
}

/// What moves: sectors of memory, turns of shared memory.
fn cost(access: &Access) -> f64 {
    match access.space {
        Space::Global | Space::Texture => access.sectors,
        Space::Shared | Space::Constant => access.turns,
    }
}

/// Two variants side by side, by array: their lines, and what each moves.
pub(super) fn table(found: &Found) -> Option<Table> {
    let [a, b] = found.variants.as_slice() else { return None };
    let columns = vec![
        Column::text("Kernel"),
        Column::text("Array"),
        Column::text("What"),
        Column::text("Before").legend("the line of the first variant"),
        Column::number("Cost")
            .significant(4)
            .legend("sectors of memory; turns of shared memory and constants"),
        Column::text("After").legend("the line of the second variant"),
        Column::number("cost").significant(4),
        Column::number("After / before").unit("×").significant(3),
    ];
    let caption = format!("{}: {}, what changed from {} to {}", found.ladder, found.problem, a.name, b.name);
    let mut table = Table::new(caption, columns);
    let (before, after) = (rows(a), rows(b));
    let mut used = vec![false; after.len()];
    let place = |row: &Row<'_>| format!("{}:{}", row.line.place.file, row.line.place.line);
    let mut pairs = Vec::new();
    for row in &before {
        let key = |row: &Row<'_>| (row.access.array.clone(), row.access.kind, row.access.space);
        let index = (0..after.len()).find(|&index| !used[index] && key(&after[index]) == key(row));
        if let Some(index) = index {
            used[index] = true;
        }
        pairs.push((Some(row), index.map(|index| &after[index])));
    }
    pairs.extend(after.iter().zip(&used).filter(|(_, used)| !**used).map(|(row, _)| (None, Some(row))));
    for (one, other) in pairs {
        let Some(named) = one.or(other) else { continue };
        let ratio = one.zip(other).map(|(one, other)| cost(other.access) / cost(one.access));
        let kernel = match (one, other) {
            (Some(one), Some(other)) if one.kernel != other.kernel => {
                format!("{} → {}", one.kernel, other.kernel)
            }
            _ => named.kernel.to_owned(),
        };
        let cells: Vec<Cell> = vec![
            kernel.into(),
            named.access.array.as_str().into(),
            super::show::what(named.access).into(),
            one.map_or(Cell::Empty, |row| place(row).into()),
            one.map(|row| cost(row.access)).into(),
            other.map_or(Cell::Empty, |row| place(row).into()),
            other.map(|row| cost(row.access)).into(),
            ratio.filter(|ratio| ratio.is_finite()).into(),
        ];
        table.push(cells);
    }
    Some(table)
}
