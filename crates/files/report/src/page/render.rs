use std::collections::HashSet;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use rayspin_core::{printable, printable_lines};

use super::{Block, ColourScale, Figure, FigureRow, Page, Section, run, volume};
use crate::number::{short, typeset};
use crate::table::{Shown, Table};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Nothing may be fetched: even a mistake in the page could load no more than what it carries.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'; img-src data:";

/// Pictures smaller than this are shown with their pixels as squares.
const SMALL: u32 = 384;

pub(super) fn page(page: &Page) -> Markup {
    let ids = ids(&page.sections);
    let pictures = page.sections.iter().flat_map(|section| &section.blocks);
    let any_picture = pictures.into_iter().any(|block| matches!(block, Block::Figures(_)));
    let mut blocks = page.sections.iter().flat_map(|section| &section.blocks);
    let any_volume = blocks.any(|block| matches!(block, Block::Volume(_)));
    let policy = if any_volume { format!("{POLICY}{}", volume::POLICY) } else { POLICY.to_owned() };
    // Scripts follow it: they hold no text of the page.
    let content = html! {
        header {
            h1 { (page.title) }
            @for paragraph in paragraphs(&page.lead) { p.lead { (paragraph) } }
            @if page.sections.len() > 2 {
                nav aria-label="Sections" {
                    ul {
                        @for (section, id) in page.sections.iter().zip(&ids) {
                            li { a href={ "#" (id) } { (section.heading) } }
                        }
                    }
                }
            }
        }
        main {
            @for (section, id) in page.sections.iter().zip(&ids) {
                section aria-labelledby=(id) {
                    h2 id=(id) { (section.heading) }
                    @for block in &section.blocks { (render_block(block)) }
                }
            }
        }
        footer {
            p { "Rayspin " (env!("CARGO_PKG_VERSION")) ". This page carries all that it shows." }
        }
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "Rayspin " (env!("CARGO_PKG_VERSION")) };
                title { (printable(&page.title)) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                (PreEscaped(printable_lines(&content.0)))
                @if any_picture {
                    (viewer())
                    script { (PreEscaped(SCRIPT)) }
                }
                @if any_volume { (volume::scripts()) }
            }
        }
    }
}

fn render_block(block: &Block) -> Markup {
    match block {
        Block::Text(text) => html! { @for paragraph in paragraphs(text) { p { (paragraph) } } },
        Block::List(items) => html! { ul { @for item in items { li { (item) } } } },
        Block::Figures(row) => figures(row),
        Block::Table(shown) => table(shown),
        Block::Chart(chart) => chart.render(),
        Block::Bars(chart) => chart.render(),
        Block::Heat(map) => map.render(),
        Block::Record(record) => run::record(record),
        Block::Volume(view) => view.render(),
    }
}

fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty())
}

/// A name for each section's place, from its heading, no two the same.
fn ids(sections: &[Section]) -> Vec<String> {
    let mut taken = HashSet::from(["viewer".to_owned(), "viewer-title".to_owned()]);
    sections
        .iter()
        .map(|section| {
            let words: Vec<String> = section
                .heading
                .split(|c: char| !c.is_ascii_alphanumeric())
                .filter(|word| !word.is_empty())
                .map(str::to_ascii_lowercase)
                .collect();
            let stem = if words.is_empty() { "section".to_owned() } else { words.join("-") };
            let mut id = stem.clone();
            let mut count = 1;
            while !taken.insert(id.clone()) {
                count += 1;
                id = format!("{stem}-{count}");
            }
            id
        })
        .collect()
}

fn figures(row: &FigureRow) -> Markup {
    let sizes = row.figures.iter().map(|figure| (figure.picture.width(), figure.picture.height()));
    // One frame for all: as wide for its height as the widest picture needs, within reason.
    let frame = sizes.map(|(w, h)| f64::from(w) / f64::from(h)).fold(0.0f64, f64::max).clamp(0.5, 2.5);
    let count = match row.figures.len() {
        0 | 1 => "one",
        2 | 4 => "even",
        3 => "three",
        _ => "many",
    };
    html! {
        div.figures role="group" aria-label=[(!row.caption.is_empty()).then_some(&row.caption)] {
            div class={ "row " (count) } style={ "--frame:" (format!("{frame:.4}")) } {
                @for figure in &row.figures { (self::figure(figure)) }
            }
            @if let Some(scale) = &row.scale { (colour_bar(scale)) }
            @if !row.caption.is_empty() { p.caption { (row.caption) } }
        }
    }
}

fn figure(figure: &Figure) -> Markup {
    let picture = &figure.picture;
    let alt = if figure.alt.is_empty() { &figure.title } else { &figure.alt };
    let small = picture.width().max(picture.height()) < SMALL;
    let lost = picture.not_finite();
    html! {
        figure {
            button.zoom type="button" aria-label={ "Enlarge: " (figure.title) } {
                img class=[small.then_some("pixels")] src=(picture.data_uri()) alt=(alt)
                    width=(picture.width()) height=(picture.height());
            }
            figcaption {
                strong { (figure.title) }
                @if !figure.detail.is_empty() { span.detail { (figure.detail) } }
                @if lost > 0 {
                    span.warning {
                        (lost) @if lost == 1 { " pixel is" } @else { " pixels are" } " not finite (magenta)"
                    }
                }
            }
        }
    }
}

fn colour_bar(scale: &ColourScale) -> Markup {
    let middle = scale.low + 0.5 * (scale.high - scale.low);
    let shown = |value: f64| {
        // The middle of a range is 0 or as good as none: its last digits are noise.
        let value = if value.abs() < 1e-9 * (scale.high - scale.low) { 0.0 } else { value };
        typeset(&short(value, 3))
    };
    html! {
        div.colour-bar role="img" aria-label={
            "Colour bar: " (scale.label) " from " (shown(scale.low)) " to " (shown(scale.high)) " " (scale.unit)
        } {
            div.ramp style={ "background:linear-gradient(90deg," (scale.colours.css()) ")" } {}
            div.ends { @for value in [scale.low, middle, scale.high] { span { (shown(value)) } } }
            div.label {
                (scale.label)
                @if !scale.unit.is_empty() { " (" (scale.unit) ")" }
            }
        }
    }
}

/// A table, which scrolls by itself where it is wider than the page.
pub(super) fn table(table: &Table) -> Markup {
    let columns = table.all_columns();
    let shown = table.shown();
    let pads: Vec<Vec<String>> = shown.iter().map(|cells| pads(cells)).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Table: " (table.caption) } {
            table {
                @if !table.caption.is_empty() { caption { (table.caption) } }
                @if columns.iter().any(|column| !column.title().is_empty()) {
                    thead {
                        tr {
                            @for column in &columns {
                                th scope="col" class=[column.is_numeric().then_some("number")] {
                                    (column.title())
                                    @if !column.unit_text().is_empty() {
                                        " " span.unit { "(" (column.unit_text()) ")" }
                                    }
                                }
                            }
                        }
                    }
                }
                tbody {
                    @for row in 0..table.rows.len() {
                        tr {
                            @for (index, column) in columns.iter().enumerate() {
                                @let cell = &shown[index][row];
                                @if index == 0 && !column.is_numeric() {
                                    th scope="row" { (cell.text) }
                                } @else if column.is_numeric() {
                                    td.number.best[cell.best] {
                                        span data-pad=[pads[index].get(row).filter(|pad| !pad.is_empty())] {
                                            (typeset(&cell.text))
                                        }
                                        @if cell.best { span.hidden { " (best)" } }
                                    }
                                } @else {
                                    td { (cell.text) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @let legend = table.legend();
        @if !legend.is_empty() {
            details.legend-of-table {
                summary { "What the columns mean" }
                dl {
                    @for (heading, meaning) in &legend { dt { (heading) } dd { (meaning) } }
                }
            }
        }
    }
}

/// What each number of a column lacks behind its point, to be drawn unseen so that the points stand in one
/// line. Columns that mix units or powers of ten end at the right instead.
fn pads(cells: &[Shown]) -> Vec<String> {
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let after: Vec<&str> =
        cells.iter().map(|cell| if cell.number { cell.around_point().1 } else { "" }).collect();
    if !after.iter().all(|text| plain(text))
        || cells.iter().any(|cell| cell.number && cell.text.contains('e'))
    {
        return vec![String::new(); cells.len()];
    }
    let longest = after.iter().copied().max_by_key(|text| text.len()).unwrap_or("");
    let zeros = |rest: &str| rest.chars().map(|c| if c == '.' { c } else { '0' }).collect();
    let lacks = |(cell, text): (&Shown, &&str)| {
        if cell.number { zeros(&longest[text.len()..]) } else { String::new() }
    };
    cells.iter().zip(&after).map(lacks).collect()
}

/// The window in which pictures are enlarged; the script fills it.
fn viewer() -> Markup {
    html! {
        dialog #viewer aria-labelledby="viewer-title" {
            img alt="";
            div.bar {
                button.previous type="button" aria-label="Previous picture" { "←" }
                p { strong #viewer-title {} span.count {} span.detail {} }
                button.next type="button" autofocus aria-label="Next picture" { "→" }
                button.close type="button" aria-label="Close" { "✕" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Colours, Picture};
    use crate::table::{Cell, Column};

    #[test]
    fn a_table_marks_the_best_and_aligns_points() {
        let sample = Table::new(
            "Error",
            [Column::text("Image"), Column::number("PSNR").unit("dB").significant(3).highest_best()],
        )
        .row(["True <b>".into(), Cell::Empty])
        .row(["Gridded".into(), 9.5.into()])
        .row(["LS".into(), 123.4.into()]);
        insta::assert_snapshot!(table(&sample).into_string());
    }

    #[test]
    fn a_row_of_figures_with_a_colour_bar() {
        let scale = ColourScale::new("Error", "1/mm", -0.5, 0.5, Colours::Diverging).unwrap();
        let picture = Picture::gray8(2, 1, &[0, 255]).unwrap();
        let uri = picture.data_uri();
        let row = FigureRow::new([Figure::new("A \"b\"", "", picture).detail("NRMSE 1 %")])
            .scale(scale)
            .caption("Both.");
        insta::assert_snapshot!(figures(&row).into_string().replace(&uri, "[png]"));
    }

    #[test]
    fn headings_become_names_that_differ() {
        let sections: Vec<_> =
            ["Image quality", "image  QUALITY!", "頭", "", "Viewer"].map(Section::new).into_iter().collect();
        assert_eq!(ids(&sections), ["image-quality", "image-quality-2", "section", "section-2", "viewer-2"]);
    }

    #[test]
    fn mixed_columns_are_not_padded() {
        let cells = |texts: &[&str]| -> Vec<Shown> {
            let shown = |text: &&str| Shown { text: (*text).to_owned(), best: false, number: true };
            texts.iter().map(shown).collect()
        };
        assert_eq!(pads(&cells(&["0.5", "12", "1.25"])), ["0", ".00", ""]);
        assert_eq!(pads(&cells(&["0.5", "1.2e-7"])), ["", ""]);
        assert_eq!(pads(&cells(&["12.3 ms", "4.5 s"])), ["", ""]);
        assert_eq!(pads(&[]), [""; 0]);
    }
}
