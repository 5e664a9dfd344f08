use std::fmt::Write as _;

use maud::{Markup, html};

use super::scale::{Scale, Spread};
use crate::number::{short, significant, typeset};

/// A line chart of one or more series over common axes.
///
/// The drawing stretches with the page while its text keeps its size, and it takes the page's colours, light
/// or dark. Values that have no place on an axis (NaN, infinities, on a log axis whatever is not positive)
/// break the line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineChart {
    /// What the chart shows.
    pub title: String,
    /// A sentence or two under the title.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// What an axis measures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    /// The quantity.
    pub label: String,
    /// Its unit, empty for a pure number.
    pub unit: String,
    /// How values are spread along it.
    pub spread: Spread,
}

/// A named line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points, x and y, in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
    /// Names that stand beside the points, which are then not joined; empty for a line.
    pub names: Vec<String>,
}

impl Axis {
    /// An axis with even spread.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), spread: Spread::Linear }
    }

    /// An axis with logarithmic spread.
    pub fn log(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { spread: Spread::Log, ..Self::linear(label, unit) }
    }

    fn heading(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

impl Series {
    /// A line through points.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), names: Vec::new() }
    }

    /// Points with a name each, which are not joined.
    pub fn named(name: impl Into<String>, points: impl IntoIterator<Item = (String, (f64, f64))>) -> Self {
        let (names, points) = points.into_iter().unzip();
        Self { name: name.into(), points, names }
    }

    /// A line through values at 0, 1, 2, …, as residuals by iteration.
    pub fn by_index(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self::new(name, values.into_iter().enumerate().map(|(i, value)| (i as f64, value)))
    }
}

impl LineChart {
    /// A chart without a line yet.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, ..Self::default() }
    }

    /// Puts a sentence under the title.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// Adds a line.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    pub(crate) fn render(&self) -> Markup {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let drawable = || points().filter(|(x, y)| self.x.spread.holds(*x) && self.y.spread.holds(*y));
        let left_out = points().count() - drawable().count();
        let scales = Scale::over(drawable().map(|point| point.0), self.x.spread, false).zip(Scale::over(
            drawable().map(|point| point.1),
            self.y.spread,
            true,
        ));
        html! {
            figure.chart {
                figcaption {
                    strong { (self.title) }
                    @if !self.caption.is_empty() { span.detail { (self.caption) } }
                }
                @if let Some((x, y)) = &scales {
                    (self.legend())
                    (self.plot(x, y))
                } @else {
                    p.empty { "No values to draw." }
                }
                @if left_out > 0 {
                    p.aside {
                        (left_out) @if left_out == 1 { " value has" } @else { " values have" }
                        " no place on these axes and " @if left_out == 1 { "is" } @else { "are" } " not drawn."
                    }
                }
                (self.numbers())
            }
        }
    }

    fn legend(&self) -> Markup {
        html! {
            @if self.series.len() > 1 {
                ul.legend {
                    @for (index, series) in self.series.iter().enumerate() {
                        li {
                            svg.swatch viewBox="0 0 28 10" width="28" height="10" aria-hidden="true" {
                                @if series.names.is_empty() {
                                    path class={ "line " (style_of(index)) } d="M1 5H27" {}
                                } @else {
                                    path class={ "dots " (style_of(index)) } d="M14 5h0" {}
                                }
                            }
                            (series.name)
                        }
                    }
                }
            }
        }
    }

    fn plot(&self, x: &Scale, y: &Scale) -> Markup {
        let longest = y.ticks.iter().map(|tick| tick.label.chars().count()).max().unwrap_or(1);
        let across = |value: f64| x.place(value).map(|place| place * WIDTH);
        let down = |value: f64| y.place(value).map(|place| (1.0 - place) * HEIGHT);
        // A narrow screen has room for about 44 characters in a line.
        let letters: usize = x.ticks.iter().map(|tick| tick.label.chars().count() + 2).sum();
        let every = letters.div_ceil(44).max(1);
        let percent = |place: Option<f64>, size: f64| format!("{:.2}%", 100.0 * place.unwrap_or(0.0) / size);
        html! {
            div.plot style={ "--ticks:" (longest) "ch" } {
                div.y-title { (self.y.heading()) }
                div.y-ticks aria-hidden="true" {
                    @for tick in &y.ticks {
                        span style={ "top:" (percent(down(tick.value), HEIGHT)) } { (tick.label) }
                    }
                }
                svg.drawing role="img" aria-label=(self.description())
                    viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" {
                    path.grid d=(grid(x, y, &across, &down)) {}
                    @for (index, series) in self.series.iter().enumerate() {
                        (draw(series, index, &across, &down))
                    }
                }
                @let labels = labels(&self.series, &across, &down);
                @if !labels.is_empty() {
                    div.point-names aria-hidden="true" {
                        @for (name, x, y) in labels {
                            span.left[x > 0.7 * WIDTH] style={ "left:" (percent(Some(x), WIDTH)) ";top:" (percent(Some(y), HEIGHT)) } {
                                (name)
                            }
                        }
                    }
                }
                div.x-ticks aria-hidden="true" {
                    @for tick in x.ticks.iter().step_by(every) {
                        span style={ "left:" (percent(across(tick.value), WIDTH)) } { (tick.label) }
                    }
                }
                div.x-title { (self.x.heading()) }
            }
        }
    }

    /// The chart in words, for those who do not see it.
    fn description(&self) -> String {
        let mut text = format!("{}: {} against {}.", self.title, self.y.heading(), self.x.heading());
        for series in &self.series {
            let shown = |value: f64| typeset(&significant(value, 3));
            let _ = match (series.points.first(), series.points.last()) {
                (Some(first), Some(last)) => write!(
                    text,
                    " {}: {} points, from {} at {} to {} at {}.",
                    series.name,
                    series.points.len(),
                    shown(first.1),
                    shown(first.0),
                    shown(last.1),
                    shown(last.0),
                ),
                _ => write!(text, " {}: no points.", series.name),
            };
        }
        text
    }

    /// The points as a table, folded away. It is left out where it would be too long to read.
    fn numbers(&self) -> Markup {
        let count: usize = self.series.iter().map(|series| series.points.len()).sum();
        let mut rows: Vec<f64> = self.series.iter().flat_map(|series| &series.points).map(|p| p.0).collect();
        rows.sort_by(f64::total_cmp);
        rows.dedup_by(|a, b| a.total_cmp(b).is_eq());
        let columns: Vec<Vec<(f64, f64)>> = self.series.iter().map(|series| sorted(&series.points)).collect();
        let shown = |value: f64| typeset(&significant(value, 4));
        html! {
            @if count > 0 && count <= MOST_LISTED && self.series.iter().all(|series| series.names.is_empty()) {
                details {
                    summary { "Numbers" }
                    div.scroll tabindex="0" role="region" aria-label={ "Numbers of " (self.title) } {
                        table {
                            thead {
                                tr {
                                    th.number scope="col" { (self.x.heading()) }
                                    @for series in &self.series { th.number scope="col" { (series.name) } }
                                }
                            }
                            tbody {
                                @for x in &rows {
                                    tr {
                                        th.number scope="row" {
                                            (typeset(&short(*x, 7)))
                                        }
                                        @for column in &columns {
                                            td.number {
                                                @match column.binary_search_by(|point| point.0.total_cmp(x)) {
                                                    Ok(index) => { (shown(column[index].1)) },
                                                    Err(_) => { "—" },
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
}

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 500.0;
/// A series with more points than this is drawn without dots.
const MOST_DOTS: usize = 50;
/// A line with more points than this is thinned to its extremes.
const MOST_DRAWN: usize = 4000;
const MOST_LISTED: usize = 600;
/// The height of a point's name on the smallest screen.
const LABEL: f64 = 32.0;

/// Colour and dash of the series. Both tell the series apart.
fn style_of(index: usize) -> String {
    format!("c{} d{}", index % 6, (index + index / 6) % 4)
}

fn sorted(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut points = points.to_vec();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Where a value of an axis is drawn; none where the axis does not show it.
type AxisMap<'a> = &'a dyn Fn(f64) -> Option<f64>;

fn grid(x: &Scale, y: &Scale, across: AxisMap<'_>, down: AxisMap<'_>) -> String {
    let mut path = String::new();
    for place in y.ticks.iter().filter_map(|tick| down(tick.value)) {
        let _ = write!(path, "M0 {place:.2}H{WIDTH}");
    }
    for place in x.ticks.iter().filter_map(|tick| across(tick.value)) {
        let _ = write!(path, "M{place:.2} 0V{HEIGHT}");
    }
    path
}

fn draw(series: &Series, index: usize, across: AxisMap<'_>, down: AxisMap<'_>) -> Markup {
    let places = thinned(series.points.iter().map(|&(x, y)| across(x).zip(down(y))).collect());
    let mut line = String::new();
    let mut dots = Vec::new();
    let mut pen_down = false;
    for (i, place) in places.iter().enumerate() {
        let Some((x, y)) = place else {
            pen_down = false;
            continue;
        };
        let next = places.get(i + 1).is_some_and(Option::is_some);
        let next = next && series.names.is_empty();
        // A point between two gaps has no line to show it.
        if places.len() <= MOST_DOTS || !series.names.is_empty() || (!pen_down && !next) {
            dots.push((*x, *y));
        }
        if pen_down && series.names.is_empty() {
            let _ = write!(line, "L{x:.2} {y:.2}");
        } else if next {
            let _ = write!(line, "M{x:.2} {y:.2}");
        }
        pen_down = true;
    }
    let style = style_of(index);
    let dots = dots.iter().fold(String::new(), |mut path, (x, y)| {
        let _ = write!(path, "M{x:.2} {y:.2}h0");
        path
    });
    html! {
        g {
            title { (series.name) }
            @if !line.is_empty() { path class={ "line " (style) } d=(line) {} }
            // Dots are round caps of lines without length: they stay round however the drawing is stretched.
            @if !dots.is_empty() { path class={ "dots " (style) } d=(dots) {} }
        }
    }
}

/// Names of points with their places, moved up and down so that none covers another.
fn labels(series: &[Series], across: AxisMap<'_>, down: AxisMap<'_>) -> Vec<(String, f64, f64)> {
    let mut labels: Vec<(String, f64, f64)> = Vec::new();
    for series in series {
        let named = series.names.iter().zip(&series.points);
        labels.extend(named.filter_map(|(name, &(x, y))| Some((name.clone(), across(x)?, down(y)?))));
    }
    labels.sort_by(|a, b| a.2.total_cmp(&b.2));
    let gap = LABEL.min(HEIGHT / labels.len().max(1) as f64);
    for i in 1..labels.len() {
        labels[i].2 = labels[i].2.max(labels[i - 1].2 + gap);
    }
    let mut lowest = HEIGHT;
    for label in labels.iter_mut().rev() {
        label.2 = label.2.min(lowest);
        lowest = label.2 - gap;
    }
    labels
}

/// A long line by the lowest and the highest place of each stretch, gaps kept.
fn thinned(places: Vec<Option<(f64, f64)>>) -> Vec<Option<(f64, f64)>> {
    if places.len() <= MOST_DRAWN {
        return places;
    }
    let mut kept = Vec::with_capacity(MOST_DRAWN);
    for stretch in places.chunks(places.len().div_ceil(MOST_DRAWN / 4)) {
        let drawn = || stretch.iter().enumerate().filter_map(|(i, place)| Some((i, (*place)?.1)));
        let lowest = drawn().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(i, _)| i);
        let highest = drawn().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(i, _)| i);
        let gap = stretch.iter().position(Option::is_none);
        let mut chosen: Vec<usize> = [lowest, highest, gap].into_iter().flatten().collect();
        chosen.sort_unstable();
        chosen.dedup();
        kept.extend(chosen.into_iter().map(|i| stretch[i]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(series: Vec<Series>) -> String {
        let chart = LineChart {
            series,
            ..LineChart::new("Convergence", Axis::linear("Iteration", ""), Axis::log("Residual", ""))
        };
        chart.render().into_string()
    }

    #[test]
    fn two_series() {
        insta::assert_snapshot!(chart(vec![
            Series::by_index("CG", [1.0, 0.1, 0.01]),
            Series::by_index("FISTA", [1.0, 0.5, f64::NAN, 0.2, 0.1]),
        ]));
    }

    #[test]
    fn nothing_one_point_and_numbers_without_a_place() {
        let empty = chart(vec![]);
        assert!(empty.contains("No values to draw") && !empty.contains("<svg"));
        let bad = chart(vec![Series::by_index("bad", [f64::NAN, -1.0, 0.0, f64::INFINITY])]);
        assert!(bad.contains("No values to draw") && bad.contains("4 values have no place"));
        let one = chart(vec![Series::by_index("one", [0.5])]);
        assert!(one.contains("class=\"dots c0 d0\"") && !one.contains("class=\"line"), "{one}");
        assert!(!one.contains("NaN") && !one.contains("inf"));
        let lone =
            chart(vec![Series::by_index("gap", (0..200).map(|i| if i == 70 { 1.0 } else { f64::NAN }))]);
        assert_eq!(lone.matches("h0").count(), 1);
    }

    #[test]
    fn a_million_points_make_a_small_page_and_keep_the_spike() {
        let spike = 777_777;
        let long = chart(vec![Series::by_index(
            "long",
            (0..1_000_000).map(|i| if i == spike { 100.0 } else { 1.0 }),
        )]);
        assert!(long.len() < 100_000, "{} bytes", long.len());
        assert!(!long.contains("<details>"));
        let top = format!("L{:.2} 0.00", 1000.0 * spike as f64 / 999_999.0);
        assert!(long.contains(&top), "no {top}");
    }

    #[test]
    fn names_of_points_do_not_cover_each_other() {
        let points = [("a", 1.0), ("b", 1.01), ("c", 1.02), ("d", 100.0)];
        let named = Series::named("variants", points.map(|(name, y)| (name.to_owned(), (2.0, y))));
        let roof = Series::new("roof", [(1.0, 10.0), (3.0, 10.0)]);
        let places = labels(&[named.clone(), roof.clone()], &|x| Some(100.0 * x), &|y| Some(500.0 - 4.0 * y));
        assert_eq!(places.iter().map(|p| p.0.as_str()).collect::<Vec<_>>(), ["d", "c", "b", "a"]);
        assert!(places.windows(2).all(|p| p[1].2 - p[0].2 >= LABEL - 1e-9) && places[3].2 <= HEIGHT);
        let text = chart(vec![named, roof]);
        assert_eq!(text.matches("class=\"line").count(), 2, "the roof and its swatch: {text}");
        assert_eq!(text.matches("h0").count(), 4 + 2 + 1);
        assert!(!text.contains("<details>") && text.contains(">c</span>"));
    }

    #[test]
    fn many_series_differ_in_colour_or_dash() {
        let styles: Vec<_> = (0..12).map(style_of).collect();
        for (i, style) in styles.iter().enumerate() {
            assert!(!styles[..i].contains(style), "{style}");
        }
    }
}
