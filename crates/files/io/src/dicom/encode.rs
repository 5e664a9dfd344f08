//! Elements as bytes, Explicit VR Little Endian.

use std::collections::BTreeMap;

use super::tag::{self, Tag};

/// Elements in the making, each encoded under its number.
#[derive(Default)]
pub(super) struct Elements(BTreeMap<u32, Vec<u8>>);

impl Elements {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Text, padded to an even length: UIDs by zeros, others by blanks.
    pub(super) fn text(&mut self, tag: Tag, kind: &[u8; 2], text: &str) {
        self.raw_text(tag, kind, text.as_bytes());
    }

    /// Text in an encoding of its own, padded likewise.
    pub(super) fn raw_text(&mut self, tag: Tag, kind: &[u8; 2], text: &[u8]) {
        let mut bytes = text.to_vec();
        if bytes.len() % 2 == 1 {
            bytes.push(if kind == b"UI" { 0 } else { b' ' });
        }
        self.put(tag, kind, &bytes);
    }

    /// Decimal numbers.
    pub(super) fn decimals(&mut self, tag: Tag, numbers: &[f64]) {
        let texts: Vec<String> = numbers.iter().map(|&number| decimal(number)).collect();
        self.text(tag, b"DS", &texts.join("\\"));
    }

    pub(super) fn short(&mut self, tag: Tag, number: u16) {
        self.put(tag, b"US", &number.to_le_bytes());
    }

    pub(super) fn double(&mut self, tag: Tag, number: f64) {
        self.put(tag, b"FD", &number.to_le_bytes());
    }

    /// Elements without a value.
    pub(super) fn empty(&mut self, tags: &[(Tag, &[u8; 2])]) {
        tags.iter().for_each(|(tag, kind)| self.text(*tag, kind, ""));
    }

    /// A sequence of one item.
    pub(super) fn item(&mut self, tag: Tag, item: Self) {
        let inner = item.into_bytes();
        let head = [0xfe, 0xff, 0x00, 0xe0];
        self.put(tag, b"SQ", &[&head[..], &(inner.len() as u32).to_le_bytes(), &inner].concat());
    }

    /// Sets an element, whether it is there or not.
    pub(super) fn put(&mut self, tag: Tag, kind: &[u8; 2], bytes: &[u8]) {
        let [group, element] = [(tag.number >> 16) as u16, tag.number as u16];
        let mut own = [group.to_le_bytes(), element.to_le_bytes(), *kind].concat();
        if matches!(kind, b"OB" | b"OW" | b"SQ") {
            own.extend([0; 2]);
            own.extend((bytes.len() as u32).to_le_bytes());
        } else {
            own.extend((bytes.len() as u16).to_le_bytes());
        }
        own.extend(bytes);
        self.0.insert(tag.number, own);
    }

    /// The elements in ascending order of their numbers.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0.into_values().collect::<Vec<_>>().concat()
    }
}

/// The elements before the data set, with preamble: PS3.10 7.1.
pub(super) fn head(class: &str, instance: &str, implementation: &str, name: &str) -> Vec<u8> {
    let mut group = Elements::new();
    group.put(tag::VERSION, b"OB", &[0, 1]);
    group.text(tag::MEDIA_CLASS, b"UI", class);
    group.text(tag::MEDIA_INSTANCE, b"UI", instance);
    group.text(tag::TRANSFER_SYNTAX, b"UI", "1.2.840.10008.1.2.1");
    group.text(tag::IMPLEMENTATION, b"UI", implementation);
    group.text(tag::IMPLEMENTATION_NAME, b"SH", name);
    let group = group.into_bytes();
    let mut length = Elements::new();
    length.put(tag::GROUP_LENGTH, b"UL", &(group.len() as u32).to_le_bytes());
    [vec![0; 128], super::MAGIC.to_vec(), length.into_bytes(), group].concat()
}

/// The nearest decimal number of at most 16 characters, as PS3.5 6.2 allows in DS.
pub(super) fn decimal(number: f64) -> String {
    const LONGEST: usize = 16;
    let shortest = number.to_string();
    if shortest.len() <= LONGEST {
        return shortest;
    }
    let rounded =
        (0..LONGEST).flat_map(|digits| [format!("{number:.digits$}"), format!("{number:.digits$e}")]);
    let off = |text: &String| text.parse::<f64>().map_or(f64::MAX, |value| (value - number).abs());
    let fits = rounded.filter(|text| text.len() <= LONGEST);
    fits.min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or_else(|| "0".into())
}
