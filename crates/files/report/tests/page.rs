//! Whole pages: well-formed, self-contained, safe against what they are given.

#![allow(clippy::unwrap_used, clippy::panic)]

use ndarray::array;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use rayspin_report::page::{
    Axis, ColourScale, Colours, Figure, FigureRow, LineChart, Page, Picture, Section, Series,
};
use rayspin_report::table::{Cell, Column, Table};
use rayspin_report::{RunRecord, RunRecorder};

const HOSTILE: &str =
    r#"</style></script><script>alert(1)</script><img src=x onerror="alert(2)"> " ' & <!-- ]]>"#;

fn record(text: &str) -> RunRecord {
    let mut run = RunRecorder::start(text, text, [text, "b"], text, 3);
    run.stage(text);
    run.parameter(text, text);
    run.version(text, text);
    run.note(text);
    run.converged(text, [1.0, f64::NAN]);
    run.quality(text, text, text, [(text, 1.0)]);
    run.input_entry(rayspin_report::record::FileEntry::of(text, b"x"));
    run.finish(Some(1))
}

/// A page with `text` wherever a page takes text.
fn page(text: &str) -> Page {
    let scale = ColourScale::new(text, text, 0.0, 1.0, Colours::Viridis).unwrap();
    let picture = Picture::gray(array![[0.0f32, f32::NAN], [0.5, 1.0]].view(), 0.0, 1.0).unwrap();
    let figure = || Figure::new(text, text, picture.clone()).detail(text);
    let table = Table::new(text, [Column::text(text), Column::number(text).unit(text).lowest_best()])
        .row([text.into(), 1.0.into()])
        .row([Cell::Empty, 2.5.into(), text.into()]);
    let series = |values: &[f64]| Series::by_index(text, values.iter().copied());
    let chart = LineChart::new(text, Axis::linear(text, text), Axis::log(text, text))
        .caption(text)
        .series(series(&[1.0, 0.1, f64::NAN, 0.01]))
        .series(series(&[]))
        .series(series(&[0.5]));
    Page::new(text, text)
        .section(Section::new(text).text(text).list([text]))
        .section(Section::new(text).figures(FigureRow::new([figure(), figure()]).scale(scale).caption(text)))
        .section(Section::new(text).table(table).chart(chart))
        .section(Section::new(text).record(record(text)))
}

/// Every element and its attributes, in order. Panics where tags do not match or an attribute is malformed or
/// twice.
fn elements(html: &str) -> Vec<(String, Vec<(String, String)>)> {
    const VOID: [&str; 5] = ["meta", "link", "img", "br", "hr"];
    let mut reader = Reader::from_str(html);
    reader.config_mut().check_end_names = false;
    let (mut open, mut found) = (Vec::new(), Vec::new());
    let read = |tag: &BytesStart<'_>| {
        let name = tag.name().as_ref().to_owned();
        let attributes = tag.html_attributes().map(|attribute| {
            let attribute = attribute.unwrap_or_else(|error| panic!("{name}: {error}"));
            let key = attribute.key.as_ref().to_owned();
            (key, quick_xml::escape::unescape(&attribute.value).unwrap().into_owned())
        });
        let attributes: Vec<_> = attributes.collect();
        (name, attributes)
    };
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) => {
                let (name, attributes) = read(&tag);
                // Script and style are not markup inside; a browser reads on to their end tag, and so does
                // this.
                if name == "script" || name == "style" {
                    let end = tag.to_end().into_owned();
                    let text = reader.read_text(end.name()).unwrap();
                    assert!(!text.to_ascii_lowercase().contains("</"), "{name} ends early");
                } else if !VOID.contains(&name.as_str()) {
                    open.push(name.clone());
                }
                found.push((name, attributes));
            }
            Event::End(tag) => {
                let name = tag.name().as_ref().to_owned();
                assert_eq!(open.pop(), Some(name), "after {found:?}");
            }
            Event::Empty(tag) => panic!("{:?} closes itself, which HTML does not know", tag.name()),
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?} never close");
    found
}

fn attribute<'a>(attributes: &'a [(String, String)], key: &str) -> Option<&'a str> {
    attributes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

#[test]
fn pages_are_well_formed_and_load_nothing() {
    for text in ["Spiral", HOSTILE, "", "\u{0}\u{7f}\u{202e}頭\n\n\nx"] {
        let html = page(text).render();
        let mut ids = Vec::new();
        for (name, attributes) in elements(&html) {
            for (key, value) in &attributes {
                let local = value.starts_with('#')
                    || value.starts_with("data:image/png;base64,")
                    || value == "data:,";
                match key.as_str() {
                    "src" | "href" | "xlink:href" | "srcset" | "action" | "poster" | "data" => {
                        assert!(local, "{name} {key}={value}")
                    }
                    "style" => assert!(!value.contains("url("), "{name} {value}"),
                    "id" => ids.push(value.clone()),
                    key => assert!(!key.starts_with("on"), "{name} has a handler {key}={value}"),
                }
            }
            assert!(!["iframe", "object", "embed", "base", "form"].contains(&name.as_str()), "{name}");
        }
        let unique: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{ids:?}");
        assert!(html.contains("default-src 'none'"));
        let style = html.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        let script = html.rsplit("<script>").next().unwrap().split("</script>").next().unwrap();
        for part in [style, script] {
            for word in ["@import", "url(", "http:", "https:", "//cdn", "fetch(", "XMLHttpRequest", "import("]
            {
                assert!(!part.contains(word), "{word}");
            }
        }
    }
}

#[test]
fn hostile_text_stays_text() {
    let html = page(HOSTILE).render();
    assert_eq!(html.matches("<script>").count(), 1);
    assert_eq!(html.matches("</script>").count(), 1);
    assert_eq!(html.matches("</style>").count(), 1);
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    let count = |text: &str, name: &str| {
        let html = page(text).render();
        elements(&html).iter().filter(|(found, _)| found == name).count()
    };
    for name in ["script", "style", "img", "section", "td"] {
        assert_eq!(count(HOSTILE, name), count("Spiral", name), "{name}");
    }
}

#[test]
fn a_reader_without_sight_or_mouse_finds_everything() {
    let html = page("Spiral").render();
    let found = elements(&html);
    let all = |name: &str| found.iter().filter(move |element| element.0 == name).collect::<Vec<_>>();
    assert_eq!(all("h1").len(), 1);
    assert_eq!(all("h2").len(), 4);
    assert_eq!(all("main").len(), 1);
    assert_eq!(attribute(&all("html")[0].1, "lang"), Some("en"));
    for (_, attributes) in all("img") {
        assert!(attribute(attributes, "alt").is_some());
    }
    for (_, attributes) in all("svg") {
        let named =
            attribute(attributes, "role") == Some("img") && attribute(attributes, "aria-label").is_some();
        assert!(named || attribute(attributes, "aria-hidden") == Some("true"), "{attributes:?}");
    }
    for (_, attributes) in found.iter().filter(|(_, a)| attribute(a, "class") == Some("scroll")) {
        assert_eq!(attribute(attributes, "tabindex"), Some("0"));
        assert!(attribute(attributes, "aria-label").is_some());
    }
    let ids: Vec<_> = found.iter().filter_map(|(_, a)| attribute(a, "id")).collect();
    for (_, attributes) in all("a") {
        let target = attribute(attributes, "href").unwrap().trim_start_matches('#');
        assert!(ids.contains(&target), "{target}");
    }
}

#[test]
fn empty_pages() {
    let html = Page::default().render();
    elements(&html);
    assert!(!html.contains("<script") && !html.contains("<dialog"));
    let bare = Page::new("t", "")
        .section(Section::new("a").figures(FigureRow::default()))
        .section(Section::new("b").table(Table::default()))
        .section(Section::new("c").chart(LineChart::default()));
    let html = bare.render();
    elements(&html);
    assert!(html.contains("No values to draw") && !html.contains("NaN") && !html.contains("inf"));
}
