//! Holds the course's pages, and the published rows, to the ladders that there are.

use std::collections::{BTreeMap, BTreeSet};

use rayspin::tune::Which;

const MAP: &str = include_str!("../../../../../docs/course/map.md");
const GLOSSARY: &str = include_str!("../../../../../docs/course/glossary.md");

/// Names of ladders, each with the names of its variants in all of its cases.
fn known() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut known = BTreeMap::new();
    for ladder in crate::ladders() {
        let cases = ladder.cases();
        let outlines = cases.iter().map(|(case, ..)| ladder.outline(Which::Case(Some(*case), None)).unwrap());
        let names = outlines.flat_map(|outline| outline.variants).map(|variant| variant.name).collect();
        known.insert(ladder.about().name, names);
    }
    known
}

/// What stands between backticks.
fn names(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// What is wrong in a page of tables whose second column names ladders and whose third names variants.
fn wrong(page: &str, known: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let (mut wrong, mut missing) = (Vec::new(), known.keys().copied().collect::<BTreeSet<_>>());
    for row in page.lines().filter(|line| line.starts_with('|') && !line.starts_with("|---")) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        if cells.len() != 6 {
            wrong.push(format!("six cells: {row}"));
            continue;
        }
        let ladders = names(cells[1]);
        for name in &ladders {
            missing.remove(name);
            if !known.contains_key(name) {
                wrong.push(format!("no ladder {name}: {row}"));
            }
        }
        let of_row: BTreeSet<_> =
            ladders.iter().filter_map(|name| known.get(name)).flatten().copied().collect();
        for name in names(cells[2]).into_iter().filter(|name| !of_row.contains(name)) {
            wrong.push(format!("no variant {name} of {}: {row}", cells[1]));
        }
    }
    wrong.extend(missing.into_iter().map(|name| format!("no row has {name}")));
    wrong
}

#[test]
fn the_map_names_ladders_and_variants_that_there_are_and_leaves_none_out() {
    let known = known();
    let found = wrong(MAP, &known);
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(MAP.lines().filter(|line| line.starts_with('|')).count() > 90, "every slide has a row");
    // The test can fail.
    for (page, fault) in [
        (MAP.replace("`o11`", "`o12`"), "no variant o12 of `histogram`"),
        (MAP.replace("`rc5-72`", "`rc5`"), "no row has rc5-72"),
        (MAP.replace("| `pi` |", "| `pie` |"), "no ladder pie"),
        (MAP.replace("| `gpu-k7` |", "| `gpu-k7`"), "six cells"),
    ] {
        assert!(wrong(&page, &known).iter().any(|line| line.contains(fault)), "{fault}");
    }
}

#[test]
fn the_reading_order_has_every_ladder_or_says_why_not() {
    const LEARN: &str = include_str!("../../../../../docs/learn.md");
    let (_, order) = LEARN.split_once("## A reading order").unwrap();
    let (order, _) = order.split_once("\n## ").unwrap();
    let (rows, others): (Vec<_>, Vec<_>) = order.lines().partition(|line| line.starts_with('|'));
    let in_rows: BTreeSet<_> = rows.iter().flat_map(|row| names(row.split('|').nth(1).unwrap())).collect();
    let others = others.join("\n");
    let in_text: BTreeSet<_> = names(&others).into_iter().collect();
    for (name, variants) in known() {
        let on_a_gpu = variants.iter().any(|variant| variant.starts_with("gpu-"));
        assert_eq!((in_rows.contains(name), in_text.contains(name)), (on_a_gpu, !on_a_gpu), "{name}");
    }
}

#[test]
fn words_of_the_glossary_are_in_order_and_name_ladders_that_there_are() {
    let known = known();
    let entries: Vec<_> = GLOSSARY.split("\n- **").skip(1).collect();
    let words: Vec<_> = entries.iter().map(|entry| entry.split("**").next().unwrap()).collect();
    let mut sorted = words.clone();
    sorted.sort_by_key(|word| word.to_lowercase());
    assert_eq!(words, sorted);
    for word in [
        "warp",
        "block",
        "grid",
        "thread",
        "lane",
        "bank",
        "sector",
        "coalescing",
        "occupancy",
        "divergence",
        "turn (wavefront)",
        "atomic",
        "latency",
        "bandwidth",
        "register",
        "shared memory",
        "constant memory",
        "texture",
        "stream",
        "pinned memory",
        "fence",
        "race",
        "barrier",
        "roofline",
    ] {
        assert!(words.contains(&word), "{word}");
    }
    for entry in entries {
        let Some((_, place)) = entry.rsplit_once('(') else { panic!("no place to see it: {entry}") };
        for name in names(place).into_iter().filter(|name| !name.contains(' ') && !name.starts_with("--")) {
            let variant = known.values().any(|variants| variants.contains(name));
            let case = crate::ladders().iter().any(|l| l.cases().iter().any(|(case, ..)| *case == name));
            assert!(known.contains_key(name) || variant || case, "{name}: {entry}");
        }
    }
}

/// Sizes of published rows are those of a case, or counts of pairs that no case of ours has.
#[test]
fn published_sizes_read_as_problems_of_the_ladder() {
    let mut sized = 0;
    for ladder in crate::ladders() {
        let problems: Vec<_> = ladder.cases().into_iter().map(|(.., problem)| problem).collect();
        for row in ladder.published().iter().filter(|row| !row.problem.is_empty()) {
            sized += 1;
            let own = problems.iter().any(|problem| problem == row.problem);
            assert!(
                own || row.problem.ends_with("e12 pairs") || row.problem.ends_with("e11 pairs"),
                "{row:?}"
            );
        }
    }
    assert!(sized >= 40, "{sized}");
}
