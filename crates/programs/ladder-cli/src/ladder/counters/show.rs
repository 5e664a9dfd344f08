//! Counts as tables and JSON.

use anyhow::Result;
use rayspin::device::cuda;
use rayspin::report::table::{Cell, Column, Table};
use rayspin_emu::counting::{self, Access, Kind, Line, Space};
use rayspin_shell::files;
use serde_json::{Value, json as value};

use super::summary::Summary;
use super::{Counted, FORMAT, Found, Kernel, changed};
use crate::args::ladder::Counters;

const SECTOR: f64 = counting::SECTOR as f64;
/// Letters of a line's text in a table.
const TEXT: usize = 40;

/// Prints a ladder's tables and sentences; gives the tables, for the legend.
pub(super) fn print(found: &Found, args: &Counters) -> Result<Vec<Table>> {
    let mut tables = vec![summary(found)];
    files::print(&args.width.text(&tables[0]))?;
    if args.lines || found.variants.len() == 1 {
        for counted in &found.variants {
            for kernel in &counted.kernels {
                let table = lines(counted, kernel);
                files::print(&args.width.text(&table))?;
                tables.push(table);
            }
        }
    }
    if found.variants.len() == 2
        && let Some(table) = changed::table(found)
    {
        files::print(&args.width.text(&table))?;
        tables.push(table);
    }
    let mut said = notes(found);
    said.extend(found.variants.iter().filter_map(|counted| changed::first(found, counted)));
    files::print(&args.width.lines(&said.join("\n")))?;
    Ok(tables)
}

fn ratio(above: f64, below: f64) -> Option<f64> {
    (below > 0.0).then(|| above / below)
}

fn summary(found: &Found) -> Table {
    let columns: Vec<_> =
        std::iter::once(Column::text("Variant")).chain(Summary::all_columns(found.gpu)).collect();
    let caption = format!("{}: {}, counted on the CPU ({})", found.ladder, found.problem, found.compiler);
    let empty = columns.len() - 2;
    let mut table = Table::new(caption, columns);
    for counted in &found.variants {
        let mut row = vec![Cell::from(counted.name.as_str())];
        match &counted.why {
            Some(why) => {
                row.extend(std::iter::repeat_n(Cell::Empty, empty));
                row.push(why.as_str().into());
            }
            None => row.extend(Summary::of(counted).all_cells()),
        }
        table.push(row);
    }
    table
}

/// What an access does, in words.
pub(super) fn what(access: &Access) -> &'static str {
    match (access.kind, access.space) {
        (Kind::Read, Space::Shared) => "load, shared",
        (Kind::Write, Space::Shared) => "store, shared",
        (Kind::Atomic, Space::Shared) => "atomic, shared",
        (Kind::Read, Space::Constant) => "load, constant",
        (Kind::Read, _) => "load",
        (Kind::Write, _) => "store",
        (Kind::Atomic, _) => "atomic",
        _ => "texture",
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn lines(counted: &Counted, kernel: &Kernel) -> Table {
    let columns = vec![
        Column::text("Line"),
        Column::text("Text"),
        Column::text("Array"),
        Column::text("What"),
        Column::number("Requests").significant(4).legend("of warps"),
        Column::number("Lanes")
            .decimals(1)
            .legend("active lanes of a request, or of a block of code that begins here"),
        Column::number("Sectors / request").decimals(2).legend("pieces of 32 bytes of a request"),
        Column::number("Moved / asked")
            .decimals(2)
            .legend("bytes of these over the bytes that lanes ask for"),
        Column::number("Turns / least")
            .decimals(2)
            .legend("of shared memory: bank conflicts; of constants: different addresses"),
        Column::number("Same address")
            .decimals(1)
            .legend("lanes at the most wanted address, of atomic operations"),
        Column::number("Splits").significant(3).legend("branches at which lanes of a warp part"),
    ];
    let counts = &kernel.counts;
    let sides = |sides: [u32; 3]| {
        let axes = sides.iter().rposition(|&side| side != 1).map_or(1, |last| last + 1);
        sides[..axes].iter().map(u32::to_string).collect::<Vec<_>>().join(" x ")
    };
    let takes = match kernel.takes {
        Some(takes) => format!("{} registers, {} bytes of local memory", takes.registers, takes.local),
        None => {
            let why = if cuda::compiler_missing().is_some() { "no NVRTC" } else { "NVRTC states none" };
            format!("registers and local memory unknown ({why})")
        }
    };
    let caption = format!(
        "{}: kernel {}, {} blocks of {} threads, {takes}",
        counted.name,
        counts.kernel,
        sides(counts.launch.blocks),
        sides(counts.launch.threads)
    );
    let mut table = Table::new(caption, columns);
    for line in &counts.lines {
        line_rows(line).into_iter().for_each(|cells| table.push(cells));
    }
    table
}

fn line_rows(line: &Line) -> Vec<Vec<Cell>> {
    let place = || Cell::from(format!("{}:{}", line.place.file, line.place.line));
    let mut rows = Vec::new();
    let mut other = |what: String, count: f64, lanes: Option<f64>, splits: Option<f64>| {
        rows.push(vec![
            place(),
            short(&line.text).into(),
            Cell::Empty,
            what.into(),
            count.into(),
            lanes.into(),
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            splits.into(),
        ]);
    };
    if line.splits > 0.0 {
        other("branch".to_owned(), line.visits, ratio(line.lanes, line.visits), Some(line.splits));
    }
    if line.barriers > 0.0 {
        other("barrier".to_owned(), line.barriers, None, None);
    }
    if line.exchanges > 0.0 {
        other("exchange".to_owned(), line.exchanges, None, None);
    }
    if line.matches > 0.0 {
        other("match".to_owned(), line.matches, None, None);
    }
    for access in &line.accesses {
        let global = matches!(access.space, Space::Global | Space::Texture);
        rows.push(vec![
            place(),
            short(&line.text).into(),
            access.array.as_str().into(),
            what(access).into(),
            access.requests.into(),
            ratio(access.lanes, access.requests).into(),
            ratio(access.sectors, access.requests).filter(|_| global).into(),
            ratio(access.sectors * SECTOR, access.bytes).filter(|_| global).into(),
            ratio(access.turns, access.least).filter(|_| !global).into(),
            ratio(access.most, access.requests).filter(|_| access.kind == Kind::Atomic).into(),
            Cell::Empty,
        ]);
    }
    rows
}

/// What limits the numbers.
fn notes(found: &Found) -> Vec<String> {
    let mut notes = Vec::new();
    let kernels = || found.variants.iter().flat_map(|v| v.kernels.iter().map(move |k| (&v.name, &k.counts)));
    for (name, counts) in kernels().filter(|(_, counts)| counts.share() < 1.0) {
        let (blocks, counted) = (counts.blocks(), counts.counted);
        let of_blocks = if counted < blocks {
            format!("of its {blocks} blocks {counted} were counted: the first, the last, and others")
        } else {
            "all its blocks were counted".to_owned()
        };
        let (kept, all) = (counts.kept, counts.warps_of_block());
        let of_warps =
            if kept < all { format!("; of a block's {all} warps as few as {kept}") } else { String::new() };
        notes.push(format!("{name}, {}: {of_blocks}{of_warps}", counts.kernel));
    }
    for (name, counts) in kernels().filter(|(_, counts)| !counts.whole) {
        notes.push(format!(
            "{name}, {}: a warp does too much to be kept: its end was not counted, and no time is predicted",
            counts.kernel
        ));
    }
    for counted in found.variants.iter().filter(|counted| counted.is_twin()) {
        notes.push(format!(
            "{}: the emulator runs other lines than a GPU (its twin): the counts are of these, and no time is predicted",
            counted.name
        ));
    }
    notes
}

/// Everything.
pub(super) fn json(ladders: &[Found]) -> Result<String> {
    let document = value!({
        "program": FORMAT,
        "version": env!("CARGO_PKG_VERSION"),
        "ladders": ladders.iter().map(ladder).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn ladder(found: &Found) -> Value {
    value!({
        "ladder": found.ladder,
        "problem": found.problem,
        "compiler": found.compiler,
        "gpu": {"name": found.gpu.name, "card": found.gpu.card, "sources": found.gpu.sources},
        "variants": found.variants.iter().map(|counted| value!({
            "variant": counted.name,
            "config": counted.config,
            "why": counted.why,
            "twin": counted.is_twin(),
            "seconds": counted.seconds(),
            "limit": counted.limit(),
            "summary": counted.why.is_none().then(|| Summary::of(counted)),
            "change_first": changed::first(found, counted),
            "kernels": counted.kernels.iter().map(kernel).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}

fn kernel(kernel: &Kernel) -> Value {
    let counts = &kernel.counts;
    let work = counts.work();
    value!({
        "program": counts.program,
        "kernel": counts.kernel,
        "blocks": counts.launch.blocks,
        "threads": counts.launch.threads,
        "shared": counts.shared,
        "launches": counts.launches,
        "counted_blocks": counts.counted,
        "counted_warps_of_block": counts.kept,
        "whole": counts.whole,
        "takes": kernel.takes,
        "prediction": kernel.prediction,
        "warps": counts.warps,
        "waits": counts.waits,
        "shared_waits": counts.shared_waits,
        "longest_wait": counts.longest,
        "instructions": {
            "all": counts.instructions(), "integer": work.integer, "single": work.single, "double": work.double,
            "special": work.special, "branch": work.branch,
        },
        "lanes_per_instruction": counts.lanes_per_instruction(),
        "touched": counts.touched.iter().map(|touched| value!({
            "array": touched.array, "space": space(touched.space), "bytes": touched.bytes, "sectors": touched.sectors,
            "sectors_by_block": touched.by_block,
        })).collect::<Vec<_>>(),
        "lines": counts.lines.iter().map(|line| value!({
            "file": line.place.file, "line": line.place.line, "text": line.text, "visits": line.visits,
            "lanes": line.lanes, "splits": line.splits, "barriers": line.barriers, "exchanges": line.exchanges, "matches": line.matches,
            "instructions": line.work.total(),
            "accesses": line.accesses.iter().map(access).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}

fn space(space: Space) -> &'static str {
    match space {
        Space::Global => "global",
        Space::Shared => "shared",
        Space::Constant => "constant",
        Space::Texture => "texture",
    }
}

fn access(access: &Access) -> Value {
    let kind = match access.kind {
        Kind::Read => "load",
        Kind::Write => "store",
        Kind::Atomic => "atomic",
        _ => "texture",
    };
    value!({
        "array": access.array, "space": space(access.space), "kind": kind, "requests": access.requests, "lanes": access.lanes,
        "bytes_asked": access.bytes, "sectors": access.sectors, "rows": access.rows, "turns": access.turns,
        "least_turns": access.least, "alike": access.alike, "distinct": access.distinct, "most": access.most,
    })
}
