use maud::{Markup, html};

use super::scale::{Scale, Spread};

/// Bars over a logarithmic axis, one under the other, each with its value in words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BarChart {
    /// What the chart shows.
    pub title: String,
    /// A sentence or two under the title.
    pub caption: String,
    /// The bars, top to bottom.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bar {
    /// What it is of.
    pub name: String,
    /// Its length; one that is not positive has no bar.
    pub value: f64,
    /// The value in words.
    pub text: String,
    /// A line across the bar, at a lower or upper bound of its value.
    pub mark: Option<f64>,
}

impl BarChart {
    /// A chart without bars.
    pub fn new(title: impl Into<String>, caption: impl Into<String>) -> Self {
        Self { title: title.into(), caption: caption.into(), bars: Vec::new() }
    }

    pub(crate) fn render(&self) -> Markup {
        let values = self.bars.iter().flat_map(|bar| [Some(bar.value), bar.mark]).flatten();
        let percent = |scale: &Scale, value: f64| {
            scale.place(value).map(|place| format!("{:.2}%", 100.0 * place.clamp(0.0, 1.0)))
        };
        // The shortest bar is still a bar.
        let values: Vec<f64> = values.filter(|&value| Spread::Log.holds(value)).collect();
        let least = values.iter().copied().reduce(f64::min).map(|least| 0.7 * least);
        let scale = Scale::over(values.iter().copied().chain(least), Spread::Log, true);
        html! {
            figure.chart {
                figcaption {
                    strong { (self.title) }
                    @if !self.caption.is_empty() { span.detail { (self.caption) } }
                }
                @if let Some(scale) = &scale {
                    ul.bars {
                        @for bar in &self.bars {
                            li {
                                span.name { (bar.name) }
                                span.track aria-hidden="true" {
                                    @if let Some(width) = percent(scale, bar.value) { span style={ "width:" (width) } {} }
                                    @if let Some(position) = bar.mark.and_then(|mark| percent(scale, mark)) {
                                        i style={ "left:" (position) } {}
                                    }
                                }
                                span.time { (bar.text) }
                            }
                        }
                    }
                } @else {
                    p.empty { "No values to draw." }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_logarithms_and_marks_lie_across() {
        let bar = |name: &str, value: f64, mark| Bar { name: name.into(), value, text: "t".into(), mark };
        let bars = vec![bar("a<", 1000.0, Some(1.0)), bar("b", 10.0, None), bar("none", f64::NAN, None)];
        let text = BarChart { bars, ..BarChart::new("T", "c") }.render().into_string();
        insta::assert_snapshot!(text);
        assert!(BarChart::new("T", "").render().into_string().contains("No values"));
    }
}
