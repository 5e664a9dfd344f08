//! A launch report as text.

use std::fmt::Write as _;

use rayspin::device::cuda;
use rayspin::report::table::{Cell, Column, Table};

use super::super::occupancy::{Limit, Waves};
use super::{Line, Part, Processor, Takes, count};
use crate::args::Width;

/// Below this occupancy a launch gets a note.
const LOW: f64 = 1.0 / 3.0;

/// The table, its notes, and what it leaves out.
pub(super) fn text(part: &Part, width: Width) -> String {
    let mut text = width.text(&table(part));
    for note in distinct(part.launches.iter().flat_map(|line| &line.notes)) {
        let _ = writeln!(text, "{}: {note}", noted(part, note).join(", "));
    }
    for why in distinct(part.left_out.iter().map(|(_, why)| why)) {
        let variants = part.left_out.iter().filter(|(_, other)| other == why).map(|(variant, _)| *variant);
        let _ = writeln!(text, "left out: {}: {why}", variants.collect::<Vec<_>>().join(", "));
    }
    text
}

/// Each text once, in the order of the first of each.
fn distinct<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut unique: Vec<&String> = Vec::new();
    for text in texts {
        if !unique.contains(&text) {
            unique.push(text);
        }
    }
    unique
}

/// The variants that have a note, and, where not all launches of a variant have it, the launches.
fn noted(part: &Part, note: &String) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = part.launches.as_slice();
    while let Some(first) = rest.first() {
        let (of_variant, others) =
            rest.split_at(rest.iter().take_while(|line| line.variant == first.variant).count());
        rest = others;
        let with: Vec<_> = of_variant.iter().filter(|line| line.notes.contains(note)).collect();
        if with.len() == of_variant.len() {
            names.push(first.variant.to_owned());
            continue;
        }
        names.extend(with.into_iter().map(|line| {
            let equal = of_variant.iter().filter(|other| other.kernel == line.kernel).count();
            match equal {
                1 => format!("{} ({})", line.variant, line.kernel),
                _ => format!("{} ({}, grid {})", line.variant, line.kernel, sides(line.blocks)),
            }
        }));
    }
    names
}

/// Where the numbers come from.
fn caption(part: &Part) -> String {
    let Processor { architecture, card, multiprocessors, emulated, stated, .. } = &part.processor;
    let mut text = format!("{}: {}, launches ", part.ladder, part.problem);
    if !emulated {
        let _ = write!(text, "on {card} ({architecture}, {multiprocessors} multiprocessors)");
        return text;
    }
    let version = cuda::compiler_version().map(|(major, minor)| format!(" (NVRTC {major}.{minor})"));
    let _ = write!(
        text,
        "for {architecture}; nothing was run: launches are those of the problem, resources are from the compiler alone{}, waves are those \
         of {multiprocessors} multiprocessors ({card})",
        version.unwrap_or_default()
    );
    if stated != multiprocessors {
        let _ = write!(text, "; grids that follow the number of multiprocessors are made for {stated}");
    }
    text
}

pub(super) fn table(part: &Part) -> Table {
    let repeated = part.launches.iter().any(|line| line.launches > 1);
    let mut columns = vec![Column::text("Variant"), Column::text("Kernel")];
    if repeated {
        columns.push(Column::number("Launches").decimals(0));
    }
    columns.extend([
        Column::text("Blocks"),
        Column::text("Threads"),
        Column::number("Registers").decimals(0).legend("of a thread"),
        Column::number("Shared").unit("B").legend("bytes of shared memory of a block"),
        Column::number("Local").unit("B").decimals(0).legend("bytes of local memory of a thread"),
        Column::number("Spilled").unit("B").legend("bytes of registers that a thread keeps in local memory"),
        Column::number("Held").decimals(0).legend("blocks that a multiprocessor holds at once"),
        Column::text("Limited by").legend("what lets it hold no more"),
        Column::number("Occupancy")
            .unit("%")
            .decimals(0)
            .legend("threads of the held blocks over the most that a multiprocessor holds"),
        Column::number("Waves").decimals(2).legend("blocks over those that all multiprocessors hold at once"),
        Column::number("Last wave").unit("%").decimals(0).legend("how much of the last wave is filled"),
    ]);
    let mut table = Table::new(caption(part), columns);
    let number = |value: Option<u32>| Cell::from(value.map(f64::from));
    let percent = |share: Option<f64>| Cell::from(share.map(|share| 100.0 * share));
    for line in &part.launches {
        let takes = line.takes;
        let mut cells = vec![line.variant.into(), line.kernel.as_str().into()];
        if repeated {
            cells.push((line.launches as f64).into());
        }
        cells.extend([
            sides(line.blocks).into(),
            sides(line.threads).into(),
            number(takes.map(|takes| takes.registers)),
            takes.map_or(Cell::Empty, |takes| pair(takes.shared, " + ", line.shared_dynamic).into()),
            number(takes.map(|takes| takes.local)),
            takes.map_or(Cell::Empty, |takes| pair(takes.spill_stores, " / ", takes.spill_loads).into()),
            number(line.held),
            match line.limited_by.as_slice() {
                [] => Cell::Empty,
                by => words(by).into(),
            },
            percent(line.occupancy),
            line.waves.into(),
            percent(line.last_wave),
        ]);
        table.push(cells);
    }
    table
}

/// Two numbers; one 0 where both are.
fn pair(first: u32, between: &str, second: u32) -> String {
    match (first, second) {
        (0, 0) => "0".to_owned(),
        _ => format!("{first}{between}{second}"),
    }
}

/// `8 x 4`: axes at the end of length 1 are left out.
fn sides(sides: [u32; 3]) -> String {
    let axes = sides.iter().rposition(|&side| side != 1).map_or(1, |last| last + 1);
    sides[..axes].iter().map(u32::to_string).collect::<Vec<_>>().join(" x ")
}

fn words(limits: &[Limit]) -> String {
    limits.iter().map(Limit::to_string).collect::<Vec<_>>().join(", ")
}

/// What is worth a look at a launch, and what it means.
pub(super) fn notes(line: &Line, processor: &Processor, waves: Option<Waves>) -> Vec<String> {
    let mut notes = Vec::new();
    let (blocks, multiprocessors) = (count(line.blocks), u64::from(processor.multiprocessors));
    if line.held == Some(0) {
        notes.push(format!(
            "{} refuses this launch: a block takes more {} than it may",
            processor.architecture,
            words(&line.limited_by)
        ));
        return notes;
    }
    if blocks < multiprocessors {
        notes.push(format!(
            "fewer blocks than the {multiprocessors} multiprocessors: the others have nothing to do"
        ));
    } else if let Some(waves) = waves.filter(|waves| waves.last < 0.5) {
        let last = 100.0 * waves.last;
        notes.push(match waves.count <= 1.0 {
            true => format!(
                "one wave fills {last:.0} % of the places for blocks: multiprocessors hold fewer threads than they could"
            ),
            false => format!(
                "the last of {:.0} waves fills {last:.0} %: {} of all places for blocks stay empty, if blocks take equally long",
                waves.count.ceil(),
                share(waves.empty)
            ),
        });
    }
    if processor.emulated
        && processor.stated != processor.multiprocessors
        && blocks > 0
        && blocks.is_multiple_of(processor.stated.into())
    {
        notes.push(format!(
            "the blocks are a multiple of the {} multiprocessors that the device of the launches states: on this processor there may \
             be another number of them",
            processor.stated
        ));
    }
    if let Some(Takes { spill_stores, spill_loads, .. }) = line.takes
        && spill_stores.max(spill_loads) > 0
    {
        notes.push(format!(
            "registers spill: instructions of a thread store {spill_stores} bytes to local memory and load {spill_loads}, which \
             costs memory traffic"
        ));
    }
    if let Some(occupancy) = line.occupancy.filter(|&occupancy| occupancy > 0.0 && occupancy < LOW) {
        let by = match line.limited_by.as_slice() {
            [] => String::new(),
            by => format!(", limited by {}", words(by)),
        };
        notes.push(format!(
            "occupancy is {:.0} %{by}: few warps hide the wait for memory, so each thread needs independent work",
            100.0 * occupancy
        ));
    }
    notes
}

/// Percent, with digits where it is little.
fn share(share: f64) -> String {
    match 100.0 * share {
        percent if percent < 0.1 => "less than 0.1 %".to_owned(),
        percent if percent < 10.0 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::occupancy::Limits;
    use super::*;

    fn processor(capability: (u32, u32)) -> Processor {
        let limits = Limits::of(capability).unwrap();
        Processor {
            architecture: limits.name(),
            capability,
            card: limits.card.name.to_owned(),
            multiprocessors: limits.card.multiprocessors,
            threads: limits.threads,
            emulated: true,
            stated: 132,
            limits: Some(limits),
        }
    }

    fn said(blocks: u32, held: u32, occupancy: f64, spill_loads: u32, on: &Processor) -> String {
        let line = Line {
            blocks: [blocks, 1, 1],
            takes: Some(Takes { registers: 32, shared: 0, local: 0, spill_stores: 0, spill_loads }),
            held: Some(held),
            limited_by: vec![Limit::Registers],
            occupancy: Some(occupancy),
            ..Line::default()
        };
        notes(&line, on, Waves::of(blocks.into(), held, on.multiprocessors)).join("\n")
    }

    #[test]
    fn notes_say_what_a_launch_wastes() {
        let h100 = processor((9, 0));
        assert_eq!(said(132 * 8, 8, 1.0, 0, &h100), "");
        assert!(said(12, 8, 1.0, 0, &h100).contains("fewer blocks than the 132 multiprocessors"));
        assert!(said(264, 8, 1.0, 0, &h100).contains("one wave fills 25 %"));
        let tail = said(132 * 8 + 66, 4, 0.5, 0, &h100);
        assert!(tail.contains("the last of 3 waves fills 12 %: 29 % of all places"), "{tail}");
        assert!(said(132 * 2, 2, 0.25, 8, &h100).contains("store 0 bytes to local memory and load 8"));
        assert!(said(132 * 2, 2, 0.25, 0, &h100).contains("occupancy is 25 %, limited by registers"));
        assert!(
            said(132, 0, 0.0, 0, &h100)
                .contains("sm_90 refuses this launch: a block takes more registers than it may")
        );
        assert!(
            said(264, 2, 1.0, 0, &processor((8, 0)))
                .contains("132 multiprocessors that the device of the launches states")
        );
    }

    #[test]
    fn a_note_names_launches_where_others_of_the_variant_do_without() {
        let line = |variant, kernel: &str, blocks, note: &[&str]| Line {
            variant,
            kernel: kernel.to_owned(),
            blocks: [blocks, 1, 1],
            notes: note.iter().map(|&note| note.to_owned()).collect(),
            ..Line::default()
        };
        let launches = vec![
            line("a", "one", 1, &["small"]),
            line("b", "sum", 9, &[]),
            line("b", "sum", 2, &["small"]),
            line("b", "end", 1, &["small", "slow"]),
        ];
        let left_out = vec![("c", "no".to_owned()), ("d", "no".to_owned())];
        let part =
            Part { ladder: "l", problem: "p".to_owned(), processor: processor((9, 0)), launches, left_out };
        let text = text(&part, Width { wide: true });
        assert!(
            text.ends_with("\na, b (sum, grid 2), b (end): small\nb (end): slow\nleft out: c, d: no\n"),
            "{text}"
        );
    }

    #[test]
    fn axes_and_pairs_are_short() {
        assert_eq!([sides([1, 1, 1]), sides([7, 1, 3]), sides([7, 2, 1])], ["1", "7 x 1 x 3", "7 x 2"]);
        assert_eq!([pair(0, " + ", 0), pair(0, " + ", 9), pair(4, " / ", 0)], ["0", "0 + 9", "4 / 0"]);
    }
}
