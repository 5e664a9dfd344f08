use maud::{Markup, html};

/// Numbers over two parameters as a table whose cells are the stronger the smaller they are: the smallest
/// stands out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeatMap {
    /// What the map shows.
    pub title: String,
    /// A sentence or two under the title.
    pub caption: String,
    /// The parameter across, and its values.
    pub across: (String, Vec<String>),
    /// The parameter down, and its values; without a name where there is one row.
    pub down: (String, Vec<String>),
    /// By row and column.
    pub cells: Vec<Vec<HeatCell>>,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeatCell {
    /// Its number, if there is one that is positive.
    pub value: Option<f64>,
    /// What stands in it.
    pub text: String,
    /// What more there is to say, on demand.
    pub detail: String,
}

impl HeatMap {
    pub(crate) fn render(&self) -> Markup {
        let values: Vec<f64> =
            self.cells.iter().flatten().filter_map(|cell| cell.value).filter(|&v| v > 0.0).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        // The logarithm, so that a factor looks alike wherever it is.
        let strength = |value: f64| {
            let share = if most > least { (most / value).ln() / (most / least).ln() } else { 1.0 };
            format!("--heat:{:.0}%", 4.0 + 56.0 * share)
        };
        html! {
            figure.chart {
                figcaption {
                    strong { (self.title) }
                    @if !self.caption.is_empty() { span.detail { (self.caption) } }
                }
                @if values.is_empty() {
                    p.empty { "No values to draw." }
                } @else {
                    div.scroll tabindex="0" role="region" aria-label=(self.title) {
                        table.heat {
                            thead {
                                tr {
                                    th scope="col" { (self.down.0) }
                                    @for value in &self.across.1 {
                                        th scope="col" { (self.across.0) " " (value) }
                                    }
                                }
                            }
                            tbody {
                                @for (name, row) in self.down.1.iter().zip(&self.cells) {
                                    tr {
                                        th scope="row" { (name) }
                                        @for cell in row {
                                            @let best = cell.value == Some(least);
                                            td.best[best]
                                                style=[cell.value.filter(|&v| v > 0.0).map(strength)]
                                                title=[(!cell.detail.is_empty()).then_some(&cell.detail)] {
                                                (cell.text)
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_is_the_strongest() {
        let cell = |value, text: &str| HeatCell { value, text: text.into(), detail: "a<b".into() };
        let map = HeatMap {
            title: "T".into(),
            caption: "c".into(),
            across: ("threads".into(), vec!["64".into(), "128".into()]),
            down: ("tile".into(), vec!["1".into(), "2".into()]),
            cells: vec![
                vec![cell(Some(1.0), "1 s"), cell(Some(10.0), "10 s")],
                vec![cell(Some(100.0), "100 s"), cell(None, "fails")],
            ],
        };
        let text = map.render().into_string();
        insta::assert_snapshot!(text);
        for strength in ["--heat:60%", "--heat:32%", "--heat:4%"] {
            assert_eq!(text.matches(strength).count(), 1, "{strength}");
        }
        assert!(HeatMap::default().render().into_string().contains("No values"));
    }
}
