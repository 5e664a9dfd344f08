//! The elements of a file, PS3.5 and PS3.10.
//!
//! A parser of our own: it takes every length from the bytes that are there. The parser of dicom-rs 0.10
//! allocates what a length states, up to 4 GiB of a file of a few bytes.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use flate2::read::DeflateDecoder;

use rayspin_device::cpu::try_reserve;

use super::tag::{self, Tag};
use crate::{Error, Result, element, opening};

/// What follows the preamble.
pub(crate) const MAGIC: &[u8] = b"DICM";
const PREAMBLE: usize = 128;

/// How pixels are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pixels {
    Native,
    Rle,
    Jpeg,
    Jpeg2000,
}

/// How a file's elements and pixels are encoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Syntax {
    explicit: bool,
    pub(super) big_endian: bool,
    deflated: bool,
    pub(super) pixels: Pixels,
}

const EXPLICIT: Syntax =
    Syntax { explicit: true, big_endian: false, deflated: false, pixels: Pixels::Native };

impl Syntax {
    /// By its UID. Errors: one that is not read.
    fn of(path: &Path, uid: &str) -> Result<Self> {
        let compressed = |pixels| Ok(Self { pixels, ..EXPLICIT });
        let refused = |name: &str| {
            Err(Error::unsupported(path, format!("the transfer syntax {name}")).with_hint(
                "store it uncompressed, for example by gdcmconv --raw, or as JPEG 2000, JPEG Lossless or RLE",
            ))
        };
        let Some(number) = uid.strip_prefix("1.2.840.10008.1.2") else {
            return refused(uid);
        };
        match number {
            "" => Ok(Self { explicit: false, ..EXPLICIT }),
            ".1" => Ok(EXPLICIT),
            ".1.99" => Ok(Self { deflated: true, ..EXPLICIT }),
            ".2" => Ok(Self { big_endian: true, ..EXPLICIT }),
            ".5" => compressed(Pixels::Rle),
            ".4.50" | ".4.51" | ".4.57" | ".4.70" => compressed(Pixels::Jpeg),
            ".4.90" | ".4.91" => compressed(Pixels::Jpeg2000),
            ".4.80" | ".4.81" => refused("JPEG-LS"),
            ".4.201" | ".4.202" | ".4.203" => refused("High-Throughput JPEG 2000"),
            _ => refused(uid),
        }
    }

    /// The syntax within a sequence of unknown type (UN): the implicit one, PS3.5 6.2.2.
    fn of_unknown(self) -> Self {
        Self { explicit: false, big_endian: false, ..self }
    }
}

/// A file in memory.
pub(super) struct File<'p> {
    path: &'p Path,
    pub(super) syntax: Syntax,
    elements: Vec<u8>,
}

impl<'p> File<'p> {
    /// Reads a file. Errors: no DICOM file, a transfer syntax that is not read, a file cut short.
    pub(super) fn read(path: &'p Path) -> Result<Self> {
        let mut bytes = Vec::new();
        let mut file = opening::open(path)?;
        let length = file.metadata().map_err(|e| Error::read(path, e))?.len();
        try_reserve("DICOM file", &mut bytes, usize::try_from(length).unwrap_or(usize::MAX))
            .map_err(|e| Error::core(path, e))?;
        file.read_to_end(&mut bytes).map_err(|e| Error::read(path, e))?;
        if !bytes.get(PREAMBLE..).is_some_and(|rest| rest.starts_with(MAGIC)) {
            return Err(Error::not_this_format(path, "a DICOM file", "another signature"));
        }
        let mut meta = Parser { path, bytes: &bytes, offset: PREAMBLE + MAGIC.len(), syntax: EXPLICIT };
        let mut uid = None;
        // The group's length is often wrong: the elements' numbers say which belong to it.
        while meta.peek_group() == Some(2) {
            let (number, value) = meta.element(0)?;
            if number == tag::TRANSFER_SYNTAX.number {
                uid = value.text().map(Cow::into_owned);
            }
        }
        let uid = uid.ok_or_else(|| Error::field(path, tag::TRANSFER_SYNTAX.name, "a UID", "none"))?;
        let syntax = Syntax::of(path, &uid)?;
        let start = meta.offset;
        let elements = if syntax.deflated {
            inflated(path, &bytes[start..], syntax)?
        } else {
            bytes.drain(..start);
            bytes
        };
        Ok(Self { path, syntax, elements })
    }

    /// The elements up to the pixels. Errors: elements that are cut short or nested without end.
    pub(super) fn dataset(&self) -> Result<Dataset<'_>> {
        let mut parser = Parser { path: self.path, bytes: &self.elements, offset: 0, syntax: self.syntax };
        parser.dataset(End::OfBytes, 0)
    }
}

/// Elements of a deflated file before its pixels that are read, in bytes.
const MOST_BEFORE_PIXELS: usize = 16 << 20;

/// Inflates elements up to the end of the pixels, as long as the header says that these are: a byte may stand
/// for a thousand.
fn inflated(path: &Path, deflated: &[u8], syntax: Syntax) -> Result<Vec<u8>> {
    let mut stream = DeflateDecoder::new(deflated);
    let (mut bytes, mut most) = (Vec::new(), MOST_BEFORE_PIXELS);
    loop {
        while bytes.len() < most {
            // Memory grows with what arrives.
            let (start, more) = (bytes.len(), bytes.len().clamp(1 << 16, most - bytes.len()));
            try_reserve("deflated elements", &mut bytes, more).map_err(|e| Error::core(path, e))?;
            bytes.resize(start + more, 0);
            let got = element::fill(&mut stream, &mut bytes[start..])
                .map_err(|e| Error::field(path, "deflated elements", "a valid stream", e))?;
            if got < more {
                bytes.truncate(start + got);
                return Ok(bytes);
            }
        }
        match (Parser { path, bytes: &bytes, offset: 0, syntax }).end_of_pixels()? {
            end if end > most => most = end,
            _ => return Ok(bytes),
        }
    }
}

/// Elements by their numbers.
pub(super) struct Dataset<'a> {
    elements: Vec<(u32, Value<'a>)>,
    big_endian: bool,
    /// Whether the pixels are words of 16 bits (OW), also where each number has 8.
    pub(super) pixel_words: bool,
}

/// What an element holds.
#[derive(Default)]
pub(super) enum Value<'a> {
    Bytes(&'a [u8]),
    Items(Vec<Dataset<'a>>),
    /// The table of offsets, and fragments with their places after the table.
    Fragments(&'a [u8], Vec<(usize, &'a [u8])>),
    #[default]
    Skipped,
}

impl<'a> Value<'a> {
    fn text(&self) -> Option<Cow<'a, str>> {
        match self {
            Self::Bytes(bytes) => {
                let text = bytes.trim_ascii_end();
                let end = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                Some(String::from_utf8_lossy(text[..end].trim_ascii()))
            }
            _ => None,
        }
    }
}

impl<'a> Dataset<'a> {
    pub(super) fn get(&self, tag: Tag) -> Option<&Value<'a>> {
        self.elements.iter().find(|(number, _)| *number == tag.number).map(|(_, value)| value)
    }

    /// Element `element` of a private block, by its group and the name of its creator.
    pub(super) fn private(&self, group: u16, creator: &str, element: u8) -> Option<&'a [u8]> {
        let group = u32::from(group) << 16;
        let named = |(number, value): &&(u32, Value<'_>)| {
            (group + 0x10..=group + 0xff).contains(number) && value.text().is_some_and(|text| text == creator)
        };
        let (block, _) = self.elements.iter().find(named)?;
        let number = group + ((block & 0xff) << 8) + u32::from(element);
        match self.elements.iter().find(|(own, _)| *own == number)? {
            (_, Value::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Text without padding; none where the element is absent or empty.
    pub(super) fn text(&self, tag: Tag) -> Option<Cow<'a, str>> {
        self.get(tag)?.text().filter(|text| !text.is_empty())
    }

    /// The bytes of an element; none where it is absent or no plain value.
    pub(super) fn bytes(&self, tag: Tag) -> &'a [u8] {
        match self.get(tag) {
            Some(Value::Bytes(bytes)) => bytes,
            _ => &[],
        }
    }

    /// A binary number of 16 bits, as it is stored.
    pub(super) fn short(&self, tag: Tag) -> Option<u16> {
        match self.get(tag)? {
            Value::Bytes([a, b, ..]) if self.big_endian => Some(u16::from_be_bytes([*a, *b])),
            Value::Bytes([a, b, ..]) => Some(u16::from_le_bytes([*a, *b])),
            _ => None,
        }
    }

    /// A binary number of 32 bits.
    pub(super) fn long(&self, tag: Tag) -> Option<u32> {
        let bytes = *self.bytes(tag).first_chunk()?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// All binary numbers of 16 bits, as they are stored.
    pub(super) fn shorts(&self, tag: Tag) -> Vec<u16> {
        let each = |bytes: [u8; 2]| match self.big_endian {
            true => u16::from_be_bytes(bytes),
            false => u16::from_le_bytes(bytes),
        };
        self.bytes(tag).as_chunks().0.iter().copied().map(each).collect()
    }

    /// A floating-point number of 64 bits.
    pub(super) fn double(&self, tag: Tag) -> Option<f64> {
        let bytes = *self.bytes(tag).first_chunk()?;
        Some(if self.big_endian { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) })
    }

    /// A floating-point number of 32 bits.
    pub(super) fn float(&self, tag: Tag) -> Option<f64> {
        let bytes = *self.bytes(tag).first_chunk()?;
        Some(if self.big_endian { f32::from_be_bytes(bytes) } else { f32::from_le_bytes(bytes) }.into())
    }

    /// Decimal numbers; none where the element is absent or empty. Errors: others, or not finite.
    pub(super) fn decimals(&self, path: &Path, tag: Tag) -> Result<Option<Vec<f64>>> {
        let Some(text) = self.text(tag) else { return Ok(None) };
        let parse = |word: &str| word.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        match text.split('\\').map(parse).collect() {
            Some(numbers) => Ok(Some(numbers)),
            None => Err(Error::field(path, tag.name, "numbers", text)),
        }
    }

    /// `N` decimal numbers; none where the element is absent or empty. Errors: others, or not finite.
    pub(super) fn numbers<const N: usize>(&self, path: &Path, tag: Tag) -> Result<Option<[f64; N]>> {
        let Some(numbers) = self.decimals(path, tag)? else { return Ok(None) };
        numbers.try_into().map(Some).map_err(|_| {
            let found = self.text(tag).unwrap_or_default();
            Error::field(path, tag.name, format!("{N} numbers"), found)
        })
    }

    /// One decimal number. Errors: as [`Dataset::numbers`].
    pub(super) fn number(&self, path: &Path, tag: Tag) -> Result<Option<f64>> {
        Ok(self.numbers::<1>(path, tag)?.map(|[number]| number))
    }

    /// The items of a sequence.
    pub(super) fn items(&self, tag: Tag) -> &[Dataset<'a>] {
        match self.get(tag) {
            Some(Value::Items(items)) => items,
            _ => &[],
        }
    }
}

/// Where elements end.
#[derive(Clone, Copy, PartialEq)]
enum End {
    OfBytes,
    /// At a delimiter.
    Delimiter,
}

const ITEM: u32 = 0xfffe_e000;
const ITEM_END: u32 = 0xfffe_e00d;
const SEQUENCE_END: u32 = 0xfffe_e0dd;
const UNDEFINED: u32 = u32::MAX;
/// Sequences in sequences; enhanced images have three or four.
const DEEPEST: usize = 32;

fn name_of(number: u32) -> String {
    format!("the element ({:04x},{:04x})", number >> 16, number & 0xffff)
}

struct Parser<'a, 'p> {
    path: &'p Path,
    bytes: &'a [u8],
    offset: usize,
    syntax: Syntax,
}

impl<'a> Parser<'a, '_> {
    fn take(&mut self, count: usize, what: impl Fn() -> String) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.offset..];
        let Some(taken) = rest.get(..count) else {
            let (expected, found) = (format!("{count} bytes"), format!("{} bytes", rest.len()));
            return Err(Error::truncated(self.path, what(), expected, found));
        };
        self.offset += count;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16> {
        let bytes = self.take(2, || "an element".into())?;
        let bytes = [bytes[0], bytes[1]];
        Ok(if self.syntax.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn u32(&mut self) -> Result<u32> {
        let (first, second) = (u32::from(self.u16()?), u32::from(self.u16()?));
        Ok(if self.syntax.big_endian { first << 16 | second } else { second << 16 | first })
    }

    fn number(&mut self) -> Result<u32> {
        Ok(u32::from(self.u16()?) << 16 | u32::from(self.u16()?))
    }

    fn peek_group(&self) -> Option<u16> {
        let bytes = self.bytes.get(self.offset..self.offset + 2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn dataset(&mut self, end: End, depth: usize) -> Result<Dataset<'a>> {
        if depth > DEEPEST {
            let expected = format!("at most {DEEPEST} in each other");
            return Err(Error::field(self.path, "sequences", expected, "more"));
        }
        let mut dataset =
            Dataset { elements: Vec::new(), big_endian: self.syntax.big_endian, pixel_words: false };
        while self.offset < self.bytes.len() {
            let start = self.offset;
            let number = self.number()?;
            if end == End::Delimiter && number == ITEM_END {
                self.u32()?;
                return Ok(dataset);
            }
            dataset.pixel_words = self.syntax.explicit && self.bytes[self.offset..].starts_with(b"OW");
            self.offset = start;
            let (number, value) = self.element(depth)?;
            if !matches!(value, Value::Skipped) {
                dataset.elements.push((number, value));
            }
            // Nothing is read that follows the pixels.
            if depth == 0 && number == tag::PIXEL_DATA.number {
                break;
            }
        }
        match end {
            End::OfBytes => Ok(dataset),
            End::Delimiter => {
                Err(Error::truncated(self.path, "a sequence", "its end", "the end of the file"))
            }
        }
    }

    /// Where the pixels end; the bytes hold the first ones. Errors: pixels that begin later; more of them
    /// than the header says.
    fn end_of_pixels(&mut self) -> Result<usize> {
        let mut elements = Vec::new();
        loop {
            let start = self.offset;
            let (number, _, length) = self.head().map_err(|_| self.no_pixels())?;
            let holders = [tag::PIXEL_DATA, tag::FLOAT_PIXELS, tag::DOUBLE_PIXELS];
            if let Some(holder) = holders.iter().find(|tag| tag.number == number) {
                let dataset = Dataset { elements, big_endian: self.syntax.big_endian, pixel_words: false };
                let short = |tag| usize::from(dataset.short(tag).unwrap_or(0));
                let frames = dataset.number(self.path, tag::FRAMES)?.map_or(1, |frames| frames as usize);
                let sizes = [short(tag::COLUMNS), frames, short(tag::BITS_ALLOCATED).div_ceil(8)];
                let needed = sizes.into_iter().fold(short(tag::ROWS), usize::saturating_mul);
                let length = length as usize;
                if length > needed.saturating_mul(2).saturating_add(1 << 16) {
                    let expected = format!("{needed} bytes for its rows, columns, frames and bits");
                    let found = format!("{length} bytes");
                    return Err(Error::field(self.path, holder.name, expected, found));
                }
                return Ok(self.offset + length);
            }
            self.offset = start;
            elements.push(self.element(0).map_err(|_| self.no_pixels())?);
        }
    }

    fn no_pixels(&self) -> Error {
        let expected = format!("in the first {} MiB of the elements", MOST_BEFORE_PIXELS >> 20);
        Error::field(self.path, tag::PIXEL_DATA.name, expected, "none")
    }

    /// The number of an element, its type, and the length of its value.
    fn head(&mut self) -> Result<(u32, &'a [u8], u32)> {
        let number = self.number()?;
        let name = || name_of(number);
        let (kind, length) = if self.syntax.explicit {
            let kind = self.take(2, name)?;
            if !kind.iter().all(u8::is_ascii_uppercase) {
                let found = format!("the bytes {kind:02x?}");
                return Err(Error::field(self.path, name(), "a value representation of two letters", found));
            }
            let long =
                [b"OB", b"OD", b"OF", b"OL", b"OV", b"OW", b"SQ", b"SV", b"UC", b"UN", b"UR", b"UT", b"UV"];
            match long.iter().any(|long| kind == *long) {
                true => {
                    self.u16()?;
                    (kind, self.u32()?)
                }
                false => (kind, u32::from(self.u16()?)),
            }
        } else {
            (&b"  "[..], self.u32()?)
        };
        Ok((number, kind, length))
    }

    fn element(&mut self, depth: usize) -> Result<(u32, Value<'a>)> {
        let (number, kind, length) = self.head()?;
        let name = || name_of(number);
        let wanted = tag::SEQUENCES.iter().any(|tag| tag.number == number);
        let value = match length {
            UNDEFINED if number == tag::PIXEL_DATA.number => self.fragments()?,
            UNDEFINED => {
                let outer = self.syntax;
                if kind == b"UN" {
                    self.syntax = outer.of_unknown();
                }
                let items = self.items(depth);
                self.syntax = outer;
                let items = items?;
                if wanted { Value::Items(items) } else { Value::Skipped }
            }
            length => {
                let bytes = self.take(length as usize, name)?;
                if wanted {
                    let items = |syntax| Parser { path: self.path, bytes, offset: 0, syntax }.items(depth);
                    Value::Items(match kind {
                        // Some programs keep the syntax of the file.
                        b"UN" => items(self.syntax.of_unknown()).or_else(|_| items(self.syntax))?,
                        _ => items(self.syntax)?,
                    })
                } else {
                    Value::Bytes(bytes)
                }
            }
        };
        Ok((number, value))
    }

    /// The items of a sequence, up to its delimiter or the end of the bytes.
    fn items(&mut self, depth: usize) -> Result<Vec<Dataset<'a>>> {
        let mut items = Vec::new();
        while self.offset < self.bytes.len() {
            match (self.number()?, self.u32()?) {
                (ITEM, UNDEFINED) => items.push(self.dataset(End::Delimiter, depth + 1)?),
                (ITEM, length) => {
                    let bytes = self.take(length as usize, || "an item".into())?;
                    let mut inner = Parser { path: self.path, bytes, offset: 0, syntax: self.syntax };
                    items.push(inner.dataset(End::OfBytes, depth + 1)?);
                }
                (SEQUENCE_END, _) => break,
                (number, _) => {
                    let found = format!("({:04x},{:04x})", number >> 16, number & 0xffff);
                    return Err(Error::field(self.path, "a sequence", "an item", found));
                }
            }
        }
        Ok(items)
    }

    fn fragments(&mut self) -> Result<Value<'a>> {
        let mut table = None;
        let mut fragments = Vec::new();
        let mut place = 0;
        loop {
            match (self.number()?, self.u32()?) {
                (ITEM, length) => {
                    let bytes = self.take(length as usize, || "a fragment of PixelData".into())?;
                    if table.is_none() {
                        table = Some(bytes);
                    } else {
                        fragments.push((place, bytes));
                        place += 8 + bytes.len();
                    }
                }
                (SEQUENCE_END, _) => return Ok(Value::Fragments(table.unwrap_or_default(), fragments)),
                (number, _) => {
                    let found = format!("({:04x},{:04x})", number >> 16, number & 0xffff);
                    return Err(Error::field(self.path, tag::PIXEL_DATA.name, "a fragment", found));
                }
            }
        }
    }
}
