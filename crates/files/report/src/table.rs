//! One table model, printed as aligned text or shown on a page.
//!
//! ```
//! use rayspin_report::table::{Cell, Column, Table};
//!
//! let table = Table::new("Error against the true image", [
//!     Column::text("Image"),
//!     Column::number("NRMSE").decimals(3).lowest_best(),
//!     Column::number("PSNR").unit("dB").decimals(1).highest_best(),
//! ])
//! .row(["True".into(), Cell::Empty, Cell::Empty])
//! .row(["Gridded".into(), 0.42.into(), 12.06.into()])
//! .row(["Least squares".into(), 0.12.into(), 22.95.into()]);
//! assert_eq!(table.to_string(), "\
//! Error against the true image
//! Image          NRMSE    PSNR (dB)
//! ─────────────  ─────    ─────────
//! True               —            —
//! Gridded        0.420         12.1
//! Least squares  0.120 *       22.9 *
//! * best of the column
//! ");
//! ```

use std::fmt;

use rayspin_core::printable;
use unicode_width::UnicodeWidthStr;

use crate::number;

mod narrow;
pub use narrow::{legend, wrap};

/// A table: a caption, columns that say how their cells are shown, and rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// What the table shows.
    pub caption: String,
    /// The columns, left to right.
    pub columns: Vec<Column>,
    /// The rows. A short row ends in empty cells; cells beyond the columns are shown under no title.
    pub rows: Vec<Vec<Cell>>,
}

/// A column's title and how its numbers are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    title: String,
    unit: String,
    legend: String,
    numeric: bool,
    format: Format,
    best: Option<Best>,
}

/// How a number becomes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Significant(usize),
    Decimals(usize),
    Seconds,
    Bytes,
}

/// Which cell of a column is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Best {
    Lowest,
    Highest,
}

/// What stands at one place of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Cell {
    /// Nothing, shown as a dash.
    #[default]
    Empty,
    /// Words.
    Text(String),
    /// A number, shown as its column says.
    Number(f64),
}

impl Column {
    /// A column of words.
    pub fn text(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            unit: String::new(),
            legend: String::new(),
            numeric: false,
            format: Format::Significant(4),
            best: None,
        }
    }

    /// A column of numbers, with four significant digits unless told otherwise.
    pub fn number(title: impl Into<String>) -> Self {
        Self { numeric: true, ..Self::text(title) }
    }

    /// The unit, shown behind the title.
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = unit.into();
        self
    }

    /// Shows this number of significant digits.
    pub fn significant(mut self, digits: usize) -> Self {
        self.format = Format::Significant(digits);
        self
    }

    /// Shows this number of digits after the point.
    pub fn decimals(mut self, digits: usize) -> Self {
        self.format = Format::Decimals(digits);
        self
    }

    /// The numbers are times in s, each shown in the unit that suits it.
    pub fn seconds(mut self) -> Self {
        self.format = Format::Seconds;
        self
    }

    /// The numbers are bytes, each shown in the unit that suits it.
    pub fn bytes(mut self) -> Self {
        self.format = Format::Bytes;
        self
    }

    /// Marks the lowest number.
    pub fn lowest_best(mut self) -> Self {
        self.best = Some(Best::Lowest);
        self
    }

    /// Marks the highest number.
    pub fn highest_best(mut self) -> Self {
        self.best = Some(Best::Highest);
        self
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    pub(crate) fn unit_text(&self) -> &str {
        &self.unit
    }

    pub(crate) fn is_numeric(&self) -> bool {
        self.numeric
    }

    fn heading(&self) -> String {
        if self.unit.is_empty() {
            printable(&self.title).into_owned()
        } else {
            printable(&format!("{} ({})", self.title, self.unit)).into_owned()
        }
    }

    fn show(&self, value: f64) -> String {
        match self.format {
            Format::Significant(digits) => number::significant(value, digits),
            Format::Decimals(digits) => number::fixed(value, digits),
            Format::Seconds => number::seconds(value),
            Format::Bytes if value.is_finite() && value >= 0.0 => number::bytes(value as u64),
            Format::Bytes => number::significant(value, 3),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Empty, Self::Number)
    }
}

/// A cell as its column shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) text: String,
    pub(crate) best: bool,
    /// Whether the text is a number, with which the point of its column is aligned.
    pub(crate) number: bool,
}

impl Shown {
    /// The text up to the decimal point and from it on.
    pub(crate) fn around_point(&self) -> (&str, &str) {
        match self.text.find('.') {
            Some(point) if self.number => self.text.split_at(point),
            _ => (&self.text, ""),
        }
    }
}

impl Table {
    /// An empty table.
    pub fn new(caption: impl Into<String>, columns: impl IntoIterator<Item = Column>) -> Self {
        Self { caption: caption.into(), columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.push(cells);
        self
    }

    /// Adds a row in place.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The columns shown: those named, and nameless ones where rows are longer.
    pub(crate) fn all_columns(&self) -> Vec<Column> {
        let width = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut columns = self.columns.clone();
        while columns.len() < width {
            columns.push(Column::text(""));
        }
        columns
    }

    /// Every cell as shown, column by column. The best of a column is marked where it stands out from the
    /// rest at the precision shown; NaN is never the best.
    pub(crate) fn shown(&self) -> Vec<Vec<Shown>> {
        let columns = self.all_columns();
        let mut shown = Vec::with_capacity(columns.len());
        for (index, column) in columns.iter().enumerate() {
            let cells = || self.rows.iter().map(|row| row.get(index).unwrap_or(&Cell::Empty));
            let best = column.best.and_then(|best| {
                let numbers = cells().filter_map(|cell| match cell {
                    Cell::Number(value) if !value.is_nan() => Some(*value),
                    _ => None,
                });
                let chosen = match best {
                    Best::Lowest => numbers.clone().min_by(f64::total_cmp),
                    Best::Highest => numbers.clone().max_by(f64::total_cmp),
                }?;
                let text = column.show(chosen);
                numbers.map(|value| column.show(value)).any(|other| other != text).then_some(text)
            });
            shown.push(
                cells()
                    .map(|cell| match cell {
                        Cell::Empty => Shown { text: "—".to_owned(), best: false, number: false },
                        Cell::Text(text) => {
                            Shown { text: printable(text).into_owned(), best: false, number: false }
                        }
                        Cell::Number(value) => {
                            let text = column.show(*value);
                            Shown { best: best.as_ref() == Some(&text), number: value.is_finite(), text }
                        }
                    })
                    .collect(),
            );
        }
        shown
    }
}

/// The table as text: titles over rules over rows, numbers aligned at the point, `*` behind the best.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.caption.is_empty() {
            writeln!(f, "{}", printable(&self.caption))?;
        }
        let columns = self.all_columns();
        let shown = self.shown();
        let mut lines = vec![String::new(); self.rows.len() + 2];
        for (index, (column, cells)) in columns.iter().zip(&shown).enumerate() {
            let heading = column.heading();
            let bodies = aligned(column, cells);
            let width = bodies.iter().chain([&heading]).map(|text| text.width()).max().unwrap_or(0);
            let marked = cells.iter().any(|cell| cell.best);
            let rule = "─".repeat(width);
            let texts = [&heading, &rule].into_iter().chain(&bodies);
            let best = [false, false].into_iter().chain(cells.iter().map(|cell| cell.best));
            for ((line, text), best) in lines.iter_mut().zip(texts).zip(best) {
                let space = " ".repeat(width.saturating_sub(text.width()));
                let (before, after) =
                    if column.numeric { (space.as_str(), "") } else { ("", space.as_str()) };
                // The mark has a place of its own, so that it never moves the digits.
                let mark = if best {
                    " *"
                } else if marked {
                    "  "
                } else {
                    ""
                };
                let gap = if index > 0 { "  " } else { "" };
                *line += &format!("{gap}{before}{text}{after}{mark}");
            }
        }
        let untitled = columns.iter().all(|column| column.title.is_empty());
        for line in lines.iter().skip(if untitled { 2 } else { 0 }) {
            writeln!(f, "{}", line.trim_end())?;
        }
        if shown.iter().flatten().any(|cell| cell.best) {
            writeln!(f, "* best of the column")?;
        }
        Ok(())
    }
}

/// A column's cells with blanks behind the numbers, so that ends at the right mean points in one place.
fn aligned(column: &Column, cells: &[Shown]) -> Vec<String> {
    let digits = |cell: &Shown| cell.around_point().1.width();
    let by_point = column.numeric && !matches!(column.format, Format::Seconds | Format::Bytes);
    let longest = cells.iter().map(digits).max().unwrap_or(0);
    cells
        .iter()
        .map(|cell| {
            let lacks = if by_point && cell.number { longest - digits(cell) } else { 0 };
            format!("{}{}", cell.text, " ".repeat(lacks))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quality() -> Table {
        Table::new(
            "Quality against phantom.nii",
            [
                Column::text("Image"),
                Column::number("NRMSE").significant(3).lowest_best(),
                Column::number("PSNR").unit("dB").decimals(1).highest_best(),
                Column::number("Time").seconds().lowest_best(),
                Column::number("Memory").bytes(),
            ],
        )
        .row(["True".into()])
        .row(["Gridded".into(), 0.4216.into(), 12.06.into(), 0.0123.into(), 3.2e6.into()])
        .row(["Least squares".into(), 0.0119.into(), 22.95.into(), 1.5.into(), 5.1e9.into()])
        .row([
            "Kernel µ, 頭".into(),
            3.2e-7.into(),
            f64::INFINITY.into(),
            f64::NAN.into(),
            Cell::Empty,
        ])
    }

    #[test]
    fn text_of_a_quality_table() {
        insta::assert_snapshot!(quality().to_string());
    }

    #[test]
    fn every_line_has_the_rules_width_at_most() {
        let text = quality().to_string();
        let rule = text.lines().find(|line| line.starts_with('─')).unwrap().width();
        for line in text.lines().skip(1).take(6) {
            assert!(line.width() <= rule, "{line:?}");
        }
    }

    #[test]
    fn points_stand_in_one_place() {
        let values = [0.5, 12.25, 100.0, 7.125];
        let mut table = Table::new("", [Column::number("v").significant(6)]);
        for value in values {
            table.push([value.into()]);
        }
        let text = table.to_string();
        let points: Vec<_> = text.lines().skip(2).map(|line| line.find('.').unwrap()).collect();
        assert!(points.iter().all(|&point| point == points[0]), "{text}");
    }

    #[test]
    fn degenerate_tables() {
        assert_eq!(Table::default().to_string(), "");
        assert_eq!(Table::new("Nothing", []).to_string(), "Nothing\n");
        let headings = Table::new("", [Column::text("a"), Column::number("b")]).to_string();
        assert_eq!(headings, "a  b\n─  ─\n");
        let long = Table::new("", [Column::text("a")]).row(["x".into(), 1.0.into(), "z".into()]).to_string();
        assert!(long.contains("x  1.000  z"), "{long}");
        let bare = Table::new("", []).row(["x".into(), "y".into()]).to_string();
        assert_eq!(bare, "x  y\n");
    }

    #[test]
    fn the_best_must_stand_out() {
        let marks = |values: &[f64]| {
            let mut table = Table::new("", [Column::number("e").decimals(2).lowest_best()]);
            for &value in values {
                table.push([value.into()]);
            }
            table.shown()[0].iter().map(|cell| cell.best).collect::<Vec<_>>()
        };
        assert_eq!(marks(&[1.0, 2.0]), [true, false]);
        assert_eq!(marks(&[1.0]), [false]);
        assert_eq!(marks(&[1.001, 1.002]), [false, false], "equal as shown");
        assert_eq!(marks(&[1.001, 1.002, 3.0]), [true, true, false]);
        assert_eq!(marks(&[f64::NAN, 2.0, 3.0]), [false, true, false]);
        assert_eq!(marks(&[f64::NAN, f64::NAN]), [false, false]);
        assert_eq!(marks(&[]), [false; 0]);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let table = Table::new("a\u{1b}[2Jb", [Column::text("t\nu")]).row(["x\u{7}\u{1b}]0;y".into()]);
        let text = table.to_string();
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert_eq!(text.lines().count(), 4);
    }
}
