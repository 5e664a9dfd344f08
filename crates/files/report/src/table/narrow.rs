//! Tables no wider than a terminal: columns beyond the width stand on further lines of each row, and long
//! words wrap.

use std::fmt::Write as _;

use rayspin_core::printable;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Cell, Column, Table, aligned};

/// Blanks before the further lines of a row.
const INDENT: usize = 2;
/// Blanks between columns.
const GAP: usize = 2;
/// A column of words is made narrower to stay on a line that has this much room; else it goes to the next.
const ROOM: usize = 36;

/// A column as it is printed.
struct Printed {
    heading: String,
    /// The lines of each cell.
    cells: Vec<Vec<String>>,
    empty: Vec<bool>,
    width: usize,
    /// The part of the width that is kept for the mark of the best, in characters.
    mark: usize,
    numeric: bool,
}

impl Table {
    /// The table as text with lines of `width` characters at most, as far as single numbers allow it: see the
    /// module.
    pub fn within(&self, width: usize) -> String {
        let mut text = String::new();
        for line in wrapped(&printable(&self.caption), width) {
            let _ = writeln!(text, "{line}");
        }
        let (lines, marked) = self.lines_of_columns(width);
        if self.columns.iter().any(|column| !column.title.is_empty()) {
            for (number, line) in lines.iter().enumerate() {
                let headings = line.iter().map(|column| (column, column.heading.as_str()));
                put(&mut text, number, headings);
            }
            let rules: Vec<String> = lines
                .iter()
                .flatten()
                .map(|column| "─".repeat(column.width - column.mark) + &" ".repeat(column.mark))
                .collect();
            let first = lines.first().into_iter().flatten().zip(&rules);
            put(&mut text, 0, first.map(|(column, rule)| (column, rule.as_str())));
        }
        for row in 0..self.rows.len() {
            for (number, line) in lines.iter().enumerate() {
                if number > 0 && line.iter().all(|column| column.empty[row]) {
                    continue;
                }
                let height = line.iter().map(|column| column.cells[row].len()).max().unwrap_or(0);
                for part in 0..height {
                    let cells = line
                        .iter()
                        .map(|column| (column, column.cells[row].get(part).map_or("", String::as_str)));
                    put(&mut text, number, cells);
                }
            }
        }
        if marked {
            text.push_str("* best of the column\n");
        }
        text
    }

    /// The columns, line by line, and whether a cell is marked as the best.
    fn lines_of_columns(&self, width: usize) -> (Vec<Vec<Printed>>, bool) {
        let columns = self.all_columns();
        let shown = self.shown();
        let mut lines: Vec<Vec<Printed>> = vec![Vec::new()];
        let mut used = 0;
        for (index, (column, cells)) in columns.iter().zip(&shown).enumerate() {
            let marked = cells.iter().any(|cell| cell.best);
            let mark = |best: bool| {
                if best {
                    " *"
                } else if marked {
                    "  "
                } else {
                    ""
                }
            };
            let bodies: Vec<String> = aligned(column, cells)
                .into_iter()
                .zip(cells)
                .map(|(body, cell)| body + mark(cell.best))
                .collect();
            let heading = column.heading() + mark(false);
            let natural = bodies.iter().chain([&heading]).map(|text| text.width()).max().unwrap_or(0);
            let gap = if used == 0 { 0 } else { GAP };
            let room = width.saturating_sub(used + gap);
            let fits = natural <= room;
            let narrowed = !column.numeric && room >= ROOM.max(heading.width());
            if !(fits || narrowed || lines.last().is_some_and(Vec::is_empty)) {
                lines.push(Vec::new());
                used = INDENT;
            }
            let gap = if lines.last().is_some_and(Vec::is_empty) { 0 } else { GAP };
            let room = width.saturating_sub(used + gap).max(heading.width());
            let own = if column.numeric { natural } else { natural.min(room) };
            used += gap + own;
            let printed = Printed {
                cells: bodies.iter().map(|body| wrapped(body, own)).collect(),
                empty: self
                    .rows
                    .iter()
                    .map(|row| matches!(row.get(index), None | Some(Cell::Empty)))
                    .collect(),
                width: own,
                mark: mark(false).len(),
                numeric: column.numeric,
                heading,
            };
            if let Some(line) = lines.last_mut() {
                line.push(printed);
            }
        }
        (lines, shown.iter().flatten().any(|cell| cell.best))
    }

    /// The headings of columns that explain theirs, each with its explanation.
    pub fn legend(&self) -> Vec<(String, String)> {
        let said = self.columns.iter().filter(|column| !column.legend.is_empty());
        said.map(|column| (printable(&column.title).into_owned(), printable(&column.legend).into_owned()))
            .collect()
    }
}

impl Column {
    /// What the heading means, for the legend below the table.
    pub fn legend(mut self, legend: impl Into<String>) -> Self {
        self.legend = legend.into();
        self
    }
}

/// Headings with what they mean, each once, in lines of `width` characters at most.
pub fn legend<'a>(tables: impl IntoIterator<Item = &'a Table>, width: usize) -> String {
    let mut entries: Vec<(String, String)> = Vec::new();
    for entry in tables.into_iter().flat_map(Table::legend) {
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    let left = entries.iter().map(|(heading, _)| heading.width()).max().unwrap_or(0);
    let mut text = String::new();
    for (heading, meaning) in entries {
        let mut before = heading;
        for line in wrapped(&meaning, width.saturating_sub(left + GAP).max(ROOM)) {
            let space = " ".repeat((left + GAP).saturating_sub(before.width()));
            let _ = writeln!(text, "{before}{space}{line}");
            before.clear();
        }
    }
    text
}

/// Writes one line: the cells of the columns, numbers at the right.
fn put<'a>(text: &mut String, number: usize, cells: impl Iterator<Item = (&'a Printed, &'a str)>) {
    let mut line = " ".repeat(if number == 0 { 0 } else { INDENT });
    for (index, (column, cell)) in cells.enumerate() {
        let gap = " ".repeat(if index == 0 { 0 } else { GAP });
        let space = " ".repeat(column.width.saturating_sub(cell.width()));
        let (before, after) = if column.numeric { (space.as_str(), "") } else { ("", space.as_str()) };
        line += &format!("{gap}{before}{cell}{after}");
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Lines of text, none longer than `width` characters: the rest of a longer one stands on the next.
///
/// ```
/// let text = rayspin_report::table::wrap("Here: a processor with a long name.\n\nAnd more.", 20);
/// assert_eq!(text, "Here: a processor\nwith a long name.\n\nAnd more.");
/// ```
pub fn wrap(text: &str, width: usize) -> String {
    let parts = text.split('\n').map(|line| wrapped(line, width).join("\n"));
    parts.collect::<Vec<_>>().join("\n")
}

/// Text in lines of `width` characters, cut between words, and within words that are longer.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    if text.width() <= width {
        return if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
    }
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for letter in word.chars() {
            if !line.is_empty() && line.width() + letter.width().unwrap_or(0) > width {
                lines.push(std::mem::take(&mut line));
            }
            line.push(letter);
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide() -> Table {
        let long =
            "reads of sixteen bytes by each thread, so that a warp asks for whole lines of the cache at once";
        Table::new(
            "a caption that is longer than the lines are",
            [
                Column::text("Variant"),
                Column::text("What"),
                Column::number("Time").seconds().legend("median of the rounds"),
                Column::number("Rate").unit("GB/s").highest_best(),
                Column::text("Published row"),
                Column::number("published time").seconds(),
            ],
        )
        .row(["gpu-naive".into(), long.into(), 1e-3.into(), 12.5.into(), "K1".into(), 2.0.into()])
        .row(["gpu-wide".into(), "short".into(), 2e-4.into(), 99.0.into(), Cell::Empty, Cell::Empty])
    }

    #[test]
    fn what_fits_is_as_it_was() {
        let table = wide();
        assert_eq!(table.within(300), table.to_string());
        assert_eq!(Table::default().within(10), "");
        let bare = Table::new("", []).row(["x".into(), "y".into()]);
        assert_eq!(bare.within(80), bare.to_string());
    }

    #[test]
    fn the_rest_of_a_row_is_below_it() {
        let text = wide().within(60);
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn words_wrap_and_nothing_is_lost() {
        for width in [1, 7, 20, 1000] {
            let text = "reads of sixteen bytes, überlang";
            let lines = wrapped(text, width);
            assert!(lines.iter().all(|line| line.width() <= width));
            assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        }
        assert!(wrapped("", 5).is_empty());
    }

    #[test]
    fn a_legend_says_each_heading_once() {
        let (one, other) = (wide(), wide());
        assert_eq!(legend([&one, &other], 100), "Time  median of the rounds\n");
        assert_eq!(legend([&Table::default()], 100), "");
    }
}
