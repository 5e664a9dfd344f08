//! Numbers of pixels, native and compressed.

use std::path::Path;

use hayro_jpeg2000 as jpeg2000;
use jpeg_decoder::PixelFormat;
use rayspin_device::cpu::{expect_memory, zeroed};

use super::dataset::{Dataset, File, Pixels, Value};
use super::frames::{self, OffsetTables};
use super::jpeg2000::Frame;
use super::mosaic::Mosaic;
use super::plane::Plane;
use super::tag::{self, Tag};
use crate::element::Element;
use crate::{Error, Result};

/// Pixels that one byte of a compressed frame may stand for. A blank JPEG 2000 image of 4096² pixels has 300
/// bytes.
const MOST_PIXELS_A_BYTE: usize = 1 << 16;

/// The elements that hold pixels.
const HOLDERS: [Tag; 3] = [tag::PIXEL_DATA, tag::FLOAT_PIXELS, tag::DOUBLE_PIXELS];

/// The element that holds a file's pixels.
pub(super) fn holder(dataset: &Dataset<'_>) -> Option<Tag> {
    HOLDERS.into_iter().find(|&tag| dataset.get(tag).is_some())
}

/// Why the images of a file are no slices of numbers: colours, or the marks of a segmentation. Nothing where
/// they are.
pub(super) fn aside(dataset: &Dataset<'_>) -> Option<String> {
    let samples = dataset.short(tag::SAMPLES).unwrap_or(1);
    match dataset.text(tag::PHOTOMETRIC) {
        Some(text) if samples != 1 || !text.starts_with("MONOCHROME") => {
            Some(format!("a colour image ({text})"))
        }
        None if samples != 1 => Some("a colour image".into()),
        _ if dataset.short(tag::BITS_ALLOCATED) == Some(1) => {
            Some("an image of one bit (BitsAllocated 1)".into())
        }
        _ => None,
    }
}

/// How a file stores the numbers of its slices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Rows and columns of a frame.
    pub(super) size: [usize; 2],
    /// Frames of the file.
    frames: usize,
    /// Slices in the one frame.
    pub(super) mosaic: Option<Mosaic>,
    /// The element of the pixels.
    holder: Tag,
    /// Bytes of each number.
    bytes: usize,
    /// Bits of a number, and the place of the lowest.
    stored: u32,
    lowest: u32,
    pub(super) signed: bool,
    big_endian: bool,
    /// Whether the bytes of each pair are swapped: numbers of 8 bits in words of a big-endian file.
    swapped: bool,
    pixels: Pixels,
}

impl Layout {
    /// Errors: numbers of other widths, fewer pixels than stated, a mosaic that cannot be taken apart.
    pub(super) fn of(path: &Path, file: &File<'_>, dataset: &Dataset<'_>) -> Result<Self> {
        let short =
            |tag: Tag| dataset.short(tag).ok_or_else(|| Error::field(path, tag.name, "a number", "none"));
        let size = [short(tag::ROWS)?, short(tag::COLUMNS)?].map(usize::from);
        if size.contains(&0) {
            return Err(Error::field(path, "Rows and Columns", "at least 1", format!("{size:?}")));
        }
        let holder = holder(dataset).unwrap_or(tag::PIXEL_DATA);
        let allocated = short(tag::BITS_ALLOCATED)?;
        let widths: &[u16] = match holder {
            tag::FLOAT_PIXELS => &[32],
            tag::DOUBLE_PIXELS => &[64],
            _ => &[8, 16, 32],
        };
        if !widths.contains(&allocated) {
            let widths: Vec<String> = widths.iter().map(u16::to_string).collect();
            let expected = format!("{} bits for {}", widths.join(", "), holder.name);
            return Err(Error::field(path, tag::BITS_ALLOCATED.name, expected, allocated));
        }
        let stored = dataset.short(tag::BITS_STORED).unwrap_or(allocated);
        if !(1..=allocated).contains(&stored) {
            return Err(Error::field(path, tag::BITS_STORED.name, format!("1 to {allocated}"), stored));
        }
        let high = dataset.short(tag::HIGH_BIT).unwrap_or(stored - 1);
        if !(stored - 1..allocated).contains(&high) {
            let expected = format!("{} to {}", stored - 1, allocated - 1);
            return Err(Error::field(path, tag::HIGH_BIT.name, expected, high));
        }
        let frames = frames(path, dataset)?;
        let mosaic = Mosaic::of(path, dataset, size, frames)?;
        if mosaic.is_some() && frames > 1 {
            return Err(Error::field(path, tag::FRAMES.name, "1 for a mosaic", frames));
        }
        let layout = Self {
            size,
            frames,
            mosaic,
            holder,
            bytes: usize::from(allocated / 8),
            stored: stored.into(),
            lowest: u32::from(high + 1 - stored),
            signed: dataset.short(tag::REPRESENTATION) == Some(1),
            big_endian: file.syntax.big_endian,
            swapped: file.syntax.big_endian && dataset.pixel_words && allocated == 8,
            pixels: file.syntax.pixels,
        };
        layout.check(path, dataset)?;
        Ok(layout)
    }

    /// Slices in the file.
    pub(super) fn slices(&self) -> usize {
        self.mosaic.map_or(self.frames, |mosaic| mosaic.slices)
    }

    /// Rows and columns of a slice.
    pub(super) fn slice_size(&self) -> [usize; 2] {
        self.size.map(|n| n / self.mosaic.map_or(1, |mosaic| mosaic.side))
    }

    /// What is stored against what the header promises, before anything is allocated for it.
    fn check(&self, path: &Path, dataset: &Dataset<'_>) -> Result<()> {
        let expect = |expected: usize, found: usize, unit: &str| match found < expected {
            true => {
                let found = format!("{found} {unit}");
                Err(Error::truncated(path, self.holder.name, format!("{expected} {unit}"), found))
            }
            false => Ok(()),
        };
        match dataset.get(self.holder) {
            Some(Value::Bytes(bytes)) if self.pixels == Pixels::Native => {
                let frame = self.count() * self.bytes;
                let [rows, columns] = self.size;
                let expected = frame.saturating_mul(self.frames);
                let expected = expected.saturating_add(if self.swapped { expected % 2 } else { 0 });
                let what = format!("bytes ({} of {rows} x {columns})", self.frames);
                expect(expected, bytes.len(), &what)
            }
            Some(Value::Fragments(_, fragments)) if self.pixels != Pixels::Native => {
                expect(self.frames, fragments.len(), "fragments")?;
                let length: usize = fragments.iter().map(|(_, bytes)| bytes.len()).sum();
                expect(self.count() / MOST_PIXELS_A_BYTE * self.frames, length, "bytes")
            }
            _ => {
                Err(Error::field(path, self.holder.name, "pixels as the transfer syntax has them", "others"))
            }
        }
    }

    /// Pixels of a frame.
    fn count(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// The type of the numbers.
    pub(super) fn element(&self) -> Element {
        match self.holder {
            tag::FLOAT_PIXELS => return Element::F32,
            tag::DOUBLE_PIXELS => return Element::F64,
            _ => {}
        }
        match (self.bytes, self.signed) {
            (1, true) => Element::I8,
            (1, false) => Element::U8,
            (2, true) => Element::I16,
            (2, false) => Element::U16,
            (_, true) => Element::I32,
            (_, false) => Element::U32,
        }
    }

    /// The number that a stored word means.
    fn value(&self, word: u32) -> i64 {
        let mask = (1u64 << self.stored) - 1;
        let bits = (u64::from(word >> self.lowest) & mask) as i64;
        let negative = self.signed && bits >> (self.stored - 1) & 1 == 1;
        if negative { bits - (1i64 << self.stored) } else { bits }
    }

    /// The stored numbers that stand for no measurement.
    pub(super) fn padding(&self, dataset: &Dataset<'_>) -> Option<(f64, f64)> {
        let whole = |tag| {
            let stored = dataset.short(tag)?;
            // The value has all its bits, whatever the pixels have of them.
            Some(if self.signed { f64::from(stored as i16) } else { stored.into() })
        };
        let (value, limit) = match self.holder {
            tag::FLOAT_PIXELS => {
                (dataset.float(tag::FLOAT_PADDING)?, dataset.float(tag::FLOAT_PADDING_LIMIT))
            }
            tag::DOUBLE_PIXELS => {
                (dataset.double(tag::DOUBLE_PADDING)?, dataset.double(tag::DOUBLE_PADDING_LIMIT))
            }
            _ => (whole(tag::PADDING)?, whole(tag::PADDING_LIMIT)),
        };
        let limit = limit.unwrap_or(value);
        Some((value.min(limit), value.max(limit)))
    }

    /// What is assumed of numbers whose sign the file does not state.
    pub(super) fn note(&self, dataset: &Dataset<'_>) -> Option<String> {
        let unstated = self.holder == tag::PIXEL_DATA && dataset.short(tag::REPRESENTATION).is_none();
        unstated.then(|| "the file states no PixelRepresentation: numbers without a sign are assumed".into())
    }

    /// Writes the numbers of a slice, rescaled, to `to`. Returns whether a stored number needs more digits
    /// than single precision has.
    pub(super) fn read(&self, dataset: &Dataset<'_>, plane: &Plane, to: &mut [f32]) -> Result<bool> {
        let (mut beyond, mut rounded) = (None, false);
        let mut put = |pixel: usize, stored: f64| {
            let value = plane.values.scale.value(stored);
            if value.is_infinite() && stored.is_finite() {
                beyond = Some(value);
            }
            if let Some(to) = self.place(plane.frame.0, pixel).and_then(|place| to.get_mut(place)) {
                *to = value;
                rounded |= f64::from(stored as f32) != stored && !stored.is_nan();
            }
        };
        match dataset.get(self.holder) {
            Some(Value::Bytes(bytes)) => {
                let length = self.count() * self.bytes;
                let frame = if self.mosaic.is_some() { 0 } else { plane.frame.0 };
                let start = length.saturating_mul(frame);
                let frame = bytes.get(start..).and_then(|rest| rest.get(..length)).unwrap_or_default();
                match self.holder {
                    tag::PIXEL_DATA if self.swapped => (0..length).for_each(|byte_index| {
                        let byte = bytes.get((start + byte_index) ^ 1).copied().unwrap_or_default();
                        put(byte_index, self.value(byte.into()) as f64);
                    }),
                    tag::PIXEL_DATA => self.words(frame, |pixel, word| put(pixel, self.value(word) as f64)),
                    _ => self.floats(frame, put),
                }
            }
            Some(Value::Fragments(table, fragments)) => {
                let (frame, frames) = if self.mosaic.is_some() { (0, 1) } else { plane.frame };
                let tables = OffsetTables { basic: table, extended: dataset.bytes(tag::EXTENDED_OFFSETS) };
                let encoded =
                    frames::encoded(frame, frames, tables, fragments, self.pixels).map_err(|found| {
                        let expected = "one fragment a frame, or fragments that tell their frame";
                        Error::field(&plane.file, tag::PIXEL_DATA.name, expected, found)
                    })?;
                let words = match self.pixels {
                    Pixels::Rle => self.rle(&encoded),
                    Pixels::Jpeg => self.jpeg(&encoded),
                    _ => self.jpeg2000(&encoded),
                };
                let words = words.map_err(|reason| self.broken(plane, reason))?;
                words.into_iter().enumerate().for_each(|(pixel, word)| put(pixel, self.value(word) as f64));
            }
            _ => {}
        }
        match beyond {
            Some(value) => {
                let found = format!("{value} in {plane}");
                Err(Error::field(&plane.file, tag::SLOPE.name, "values within single precision", found))
            }
            None => Ok(rounded),
        }
    }

    /// Where pixel `pixel` of a frame lies in slice `slice` of the file; nowhere if it belongs to another
    /// one.
    fn place(&self, slice: usize, pixel: usize) -> Option<usize> {
        let Some(mosaic) = self.mosaic else { return Some(pixel) };
        let [rows, columns] = self.slice_size();
        let (row, column) = (pixel / self.size[1], pixel % self.size[1]);
        let own = row / rows * mosaic.side + column / columns == slice;
        own.then(|| row % rows * columns + column % columns)
    }

    /// Each floating-point number of native pixels with its place.
    fn floats(&self, bytes: &[u8], mut each: impl FnMut(usize, f64)) {
        let number = |bytes: &[u8]| -> Option<f64> {
            Some(match (self.bytes, self.big_endian) {
                (4, false) => f32::from_le_bytes(*bytes.first_chunk()?).into(),
                (4, true) => f32::from_be_bytes(*bytes.first_chunk()?).into(),
                (_, false) => f64::from_le_bytes(*bytes.first_chunk()?),
                (_, true) => f64::from_be_bytes(*bytes.first_chunk()?),
            })
        };
        for (pixel, number) in bytes.chunks_exact(self.bytes).filter_map(number).enumerate() {
            each(pixel, number);
        }
    }

    /// Each number of native pixels with its place.
    fn words(&self, bytes: &[u8], mut each: impl FnMut(usize, u32)) {
        match (self.bytes, self.big_endian) {
            (1, _) => bytes.iter().enumerate().for_each(|(pixel, &byte)| each(pixel, byte.into())),
            (2, false) => {
                let words = bytes.as_chunks().0.iter().enumerate();
                words.for_each(|(pixel, two)| each(pixel, u16::from_le_bytes(*two).into()));
            }
            (2, true) => {
                let words = bytes.as_chunks().0.iter().enumerate();
                words.for_each(|(pixel, two)| each(pixel, u16::from_be_bytes(*two).into()));
            }
            (_, false) => {
                let words = bytes.as_chunks().0.iter().enumerate();
                words.for_each(|(pixel, four)| each(pixel, u32::from_le_bytes(*four)));
            }
            (_, true) => {
                let words = bytes.as_chunks().0.iter().enumerate();
                words.for_each(|(pixel, four)| each(pixel, u32::from_be_bytes(*four)));
            }
        }
    }

    fn broken(&self, plane: &Plane, reason: String) -> Error {
        let [rows, columns] = self.size;
        let expected = format!("{rows} x {columns} compressed pixels in {plane}");
        Error::field(&plane.file, tag::PIXEL_DATA.name, expected, reason)
    }

    /// PS3.5 annex G: a run-length code for each byte of the numbers, the highest first.
    fn rle(&self, encoded: &[u8]) -> std::result::Result<Vec<u32>, String> {
        let number = |index: usize| {
            let bytes = encoded.get(4 * index..4 * index + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
        };
        let segments = number(0).unwrap_or(0);
        if segments != self.bytes {
            return Err(format!("{segments} run-length codes of bytes"));
        }
        let mut words = zeroed("pixels of a frame", self.count()).map_err(|e| e.to_string())?;
        for segment in 0..segments {
            let start = number(1 + segment).unwrap_or(usize::MAX);
            let end = match segment + 1 < segments {
                true => number(2 + segment).unwrap_or(0),
                false => encoded.len(),
            };
            let mut code = encoded.get(start..end).ok_or("a code that lies outside")?;
            let mut decoded = 0;
            while decoded < words.len() {
                let (&head, rest) = code.split_first().ok_or_else(|| format!("{decoded} pixels"))?;
                let (run, length, used) = match head {
                    // Copies the next bytes, repeats the next byte, or does nothing.
                    0..=127 => (false, usize::from(head) + 1, usize::from(head) + 1),
                    129.. => (true, 257 - usize::from(head), 1),
                    128 => (false, 0, 0),
                };
                let bytes = rest.get(..used).ok_or_else(|| format!("{decoded} pixels"))?;
                let length = length.min(words.len() - decoded);
                for (index, word) in words[decoded..decoded + length].iter_mut().enumerate() {
                    *word = *word << 8 | u32::from(bytes[if run { 0 } else { index }]);
                }
                decoded += length;
                code = &rest[used..];
            }
        }
        Ok(words)
    }

    /// Fails where the memory lacks these bytes for each pixel of a frame.
    fn expect_memory(&self, what: &str, bytes: u64) -> std::result::Result<(), String> {
        expect_memory(what, bytes.saturating_mul(self.count() as u64)).map_err(|e| e.to_string())
    }

    fn expect(&self, [rows, columns]: [usize; 2]) -> std::result::Result<(), String> {
        match self.size == [rows, columns] {
            true => Ok(()),
            false => Err(format!("{rows} x {columns}")),
        }
    }

    fn jpeg(&self, encoded: &[u8]) -> std::result::Result<Vec<u32>, String> {
        let reason = |e: jpeg_decoder::Error| e.to_string();
        let mut decoder = jpeg_decoder::Decoder::new(encoded);
        decoder.read_info().map_err(reason)?;
        let info = decoder.info().ok_or("no image")?;
        self.expect([info.height.into(), info.width.into()])?;
        // Before anything is decoded: a frame in colour takes more than the pixels need.
        if !matches!(info.pixel_format, PixelFormat::L8 | PixelFormat::L16) {
            return Err(format!("pixels as {:?}", info.pixel_format));
        }
        self.expect_memory("decoder of JPEG", 16)?;
        let bytes = decoder.decode().map_err(reason)?;
        let words: Vec<u32> = match info.pixel_format {
            PixelFormat::L8 => bytes.iter().map(|&byte| byte.into()).collect(),
            PixelFormat::L16 => {
                bytes.as_chunks().0.iter().map(|two| u16::from_ne_bytes(*two).into()).collect()
            }
            other => return Err(format!("pixels as {other:?}")),
        };
        match words.len() == self.count() {
            true => Ok(words),
            false => Err(format!("{} pixels", words.len())),
        }
    }

    fn jpeg2000(&self, encoded: &[u8]) -> std::result::Result<Vec<u32>, String> {
        let settings = jpeg2000::DecodeSettings {
            resolve_palette_indices: false,
            strict: true,
            target_resolution: None,
        };
        // The decoder allocates what a frame's headers promise.
        let frame = Frame::of(encoded, self.size)?;
        expect_memory("decoder of JPEG 2000", frame.memory).map_err(|e| e.to_string())?;
        let image = jpeg2000::Image::new(encoded, &settings).map_err(|e| e.to_string())?;
        self.expect([image.height() as usize, image.width() as usize])?;
        let mut context = jpeg2000::DecoderContext::default();
        let decoded = image.decode(&mut context).map_err(|e| e.to_string())?;
        let [grey] = decoded.components() else {
            return Err(format!("{} components", decoded.components().len()));
        };
        let (bits, samples) = (grey.bit_depth(), grey.samples());
        if samples.len() != self.count() || !(1..=24).contains(&bits) {
            return Err(format!("{} pixels of {bits} bits", samples.len()));
        }
        // The decoder lifts numbers by half the range, signed ones too.
        let lifted = if frame.signed { 1i64 << (bits - 1) } else { 0 };
        // Lossy codes leave the range a little.
        let most = (1i64 << bits) - 1;
        let word = |sample: &f32| ((sample.round() as i64).clamp(0, most) - lifted) as u32;
        Ok(samples.iter().map(word).collect())
    }
}

fn frames(path: &Path, dataset: &Dataset<'_>) -> Result<usize> {
    match dataset.number(path, tag::FRAMES)? {
        None => Ok(1),
        Some(count) if count.fract() == 0.0 && (1.0..1e6).contains(&count) => Ok(count as usize),
        Some(count) => Err(Error::field(path, tag::FRAMES.name, "a whole number from 1 to 999999", count)),
    }
}
