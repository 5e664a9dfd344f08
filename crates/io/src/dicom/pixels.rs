//! Numbers of pixels, native and compressed.

use std::borrow::Cow;
use std::path::Path;

use hayro_jpeg2000 as jpeg2000;
use jpeg_decoder::PixelFormat;
use rayspin_device::cpu::{expect_memory, zeroed};

use super::dataset::{Dataset, File, Pixels, Value};
use super::jpeg2000::Frame;
use super::plane::Plane;
use super::tag;
use crate::{Error, Result};

/// Pixels that one byte of a compressed frame may stand for. A blank JPEG 2000 image of 4096² pixels has 300 bytes.
const MOST_PIXELS_A_BYTE: usize = 1 << 16;

/// How a file stores the numbers of its frames.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Rows and columns.
    pub(super) size: [usize; 2],
    pub(super) frames: usize,
    /// Bytes of each number.
    bytes: usize,
    /// Bits of a number, and the place of the lowest.
    stored: u32,
    lowest: u32,
    signed: bool,
    big_endian: bool,
    pixels: Pixels,
}

impl Layout {
    /// Errors: colour, dark pixels for large numbers, numbers of other widths, fewer pixels than stated.
    pub(super) fn of(path: &Path, file: &File<'_>, all: &Dataset<'_>) -> Result<Self> {
        let samples = all.short(tag::SAMPLES).unwrap_or(1);
        let photometric = all.text(tag::PHOTOMETRIC).unwrap_or(Cow::Borrowed("MONOCHROME2"));
        if samples != 1 || !photometric.starts_with("MONOCHROME") {
            return Err(Error::unsupported(path, format!("a colour image ({photometric})"))
                .with_hint("give slices of grey values (MONOCHROME2)"));
        }
        if photometric != "MONOCHROME2" {
            return Err(Error::unsupported(path, format!("{photometric}, where larger numbers are darker,"))
                .with_hint("invert the image first"));
        }
        let short =
            |tag: tag::Tag| all.short(tag).ok_or_else(|| Error::field(path, tag.name, "a number", "none"));
        let size = [short(tag::ROWS)?, short(tag::COLUMNS)?].map(usize::from);
        if size.contains(&0) {
            return Err(Error::field(path, "Rows and Columns", "at least 1", format!("{size:?}")));
        }
        let allocated = short(tag::BITS_ALLOCATED)?;
        if ![8, 16, 32].contains(&allocated) {
            return Err(Error::field(path, tag::BITS_ALLOCATED.name, "8, 16 or 32", allocated));
        }
        let stored = all.short(tag::BITS_STORED).unwrap_or(allocated);
        if !(1..=allocated).contains(&stored) {
            return Err(Error::field(path, tag::BITS_STORED.name, format!("1 to {allocated}"), stored));
        }
        let high = all.short(tag::HIGH_BIT).unwrap_or(stored - 1);
        if !(stored - 1..allocated).contains(&high) {
            let expected = format!("{} to {}", stored - 1, allocated - 1);
            return Err(Error::field(path, tag::HIGH_BIT.name, expected, high));
        }
        let layout = Self {
            size,
            frames: frames(path, all)?,
            bytes: usize::from(allocated / 8),
            stored: stored.into(),
            lowest: u32::from(high + 1 - stored),
            signed: all.short(tag::REPRESENTATION) == Some(1),
            big_endian: file.syntax.big_endian,
            pixels: file.syntax.pixels,
        };
        layout.check(path, all)?;
        Ok(layout)
    }

    /// What is stored against what the header promises, before anything is allocated for it.
    fn check(&self, path: &Path, all: &Dataset<'_>) -> Result<()> {
        let expect = |expected: usize, found: usize, unit: &str| match found < expected {
            true => {
                let found = format!("{found} {unit}");
                Err(Error::truncated(path, tag::PIXEL_DATA.name, format!("{expected} {unit}"), found))
            }
            false => Ok(()),
        };
        match all.get(tag::PIXEL_DATA) {
            Some(Value::Bytes(bytes)) if self.pixels == Pixels::Native => {
                let frame = self.count() * self.bytes;
                let [rows, columns] = self.size;
                let expected = frame.saturating_mul(self.frames);
                let what = format!("bytes ({} of {rows} x {columns})", self.frames);
                expect(expected, bytes.len(), &what)
            }
            Some(Value::Fragments(_, fragments)) if self.pixels != Pixels::Native => {
                expect(self.frames, fragments.len(), "fragments")?;
                let length: usize = fragments.iter().map(|(_, bytes)| bytes.len()).sum();
                expect(self.count() / MOST_PIXELS_A_BYTE * self.frames, length, "bytes")
            }
            _ => Err(Error::field(
                path,
                tag::PIXEL_DATA.name,
                "pixels as the transfer syntax has them",
                "others",
            )),
        }
    }

    /// Pixels of a frame.
    pub(super) fn count(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// The number that a stored word means.
    fn value(&self, word: u32) -> i64 {
        let mask = (1u64 << self.stored) - 1;
        let bits = (u64::from(word >> self.lowest) & mask) as i64;
        let negative = self.signed && bits >> (self.stored - 1) & 1 == 1;
        if negative { bits - (1i64 << self.stored) } else { bits }
    }

    /// The stored numbers that stand for no measurement.
    pub(super) fn padding(&self, all: &Dataset<'_>) -> Option<(i64, i64)> {
        let read = |tag| {
            let found = all.short(tag)?;
            // The value has all its bits, whatever the pixels have of them.
            Some(if self.signed { i64::from(found as i16) } else { found.into() })
        };
        let value = read(tag::PADDING)?;
        let limit = read(tag::PADDING_LIMIT).unwrap_or(value);
        Some((value.min(limit), value.max(limit)))
    }

    /// Writes the numbers of a frame, rescaled, to `to`; pixels of the padding become NaN.
    pub(super) fn read(&self, all: &Dataset<'_>, plane: &Plane, to: &mut [f32]) -> Result<()> {
        let (slope, intercept) = plane.scale;
        let value = |word: u32| {
            let stored = self.value(word);
            match plane.padding {
                Some((low, high)) if (low..=high).contains(&stored) => f32::NAN,
                _ => (slope * stored as f64 + intercept) as f32,
            }
        };
        match all.get(tag::PIXEL_DATA) {
            Some(Value::Bytes(bytes)) => {
                let length = self.count() * self.bytes;
                let start = length.saturating_mul(plane.frame.0);
                let frame = bytes.get(start..).and_then(|rest| rest.get(..length)).unwrap_or_default();
                self.words(frame, |at, word| to[at] = value(word));
            }
            Some(Value::Fragments(table, fragments)) => {
                let encoded = self.encoded(plane, table, fragments)?;
                let words = match self.pixels {
                    Pixels::Rle => self.rle(&encoded),
                    Pixels::Jpeg => self.jpeg(&encoded),
                    _ => self.jpeg2000(&encoded),
                };
                let words = words.map_err(|reason| self.broken(plane, reason))?;
                to.iter_mut().zip(words).for_each(|(to, word)| *to = value(word));
            }
            _ => {}
        }
        match to.iter().find(|value| value.is_infinite()) {
            Some(value) => {
                let found = format!("{value} in {plane}");
                Err(Error::field(&plane.file, tag::SLOPE.name, "values within single precision", found))
            }
            None => Ok(()),
        }
    }

    /// Each number of native pixels with its place.
    fn words(&self, bytes: &[u8], mut each: impl FnMut(usize, u32)) {
        match (self.bytes, self.big_endian) {
            (1, _) => bytes.iter().enumerate().for_each(|(at, &byte)| each(at, byte.into())),
            (2, false) => {
                let words = bytes.as_chunks().0.iter().enumerate();
                words.for_each(|(at, two)| each(at, u16::from_le_bytes(*two).into()));
            }
            (2, true) => {
                let words = bytes.as_chunks().0.iter().enumerate();
                words.for_each(|(at, two)| each(at, u16::from_be_bytes(*two).into()));
            }
            (_, false) => {
                let words = bytes.as_chunks().0.iter().enumerate();
                words.for_each(|(at, four)| each(at, u32::from_le_bytes(*four)));
            }
            (_, true) => {
                let words = bytes.as_chunks().0.iter().enumerate();
                words.for_each(|(at, four)| each(at, u32::from_be_bytes(*four)));
            }
        }
    }

    /// The compressed bytes of a frame.
    fn encoded<'a>(
        &self,
        plane: &Plane,
        table: &[u8],
        fragments: &[(usize, &'a [u8])],
    ) -> Result<Cow<'a, [u8]>> {
        let (frame, frames) = plane.frame;
        if fragments.len() == frames {
            return Ok(fragments.get(frame).map_or(&[][..], |(_, bytes)| bytes).into());
        }
        let offsets: Vec<usize> =
            table.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four) as usize).collect();
        let (start, end) = match frames {
            1 => (0, usize::MAX),
            _ if offsets.len() == frames => {
                (offsets[frame], offsets.get(frame + 1).copied().unwrap_or(usize::MAX))
            }
            _ => {
                let found = format!("{} fragments for {frames} frames", fragments.len());
                return Err(Error::field(
                    &plane.file,
                    tag::PIXEL_DATA.name,
                    "one fragment a frame, or a table of offsets",
                    found,
                ));
            }
        };
        let own = fragments.iter().filter(|(place, _)| (start..end).contains(place));
        Ok(own.flat_map(|(_, bytes)| bytes.iter().copied()).collect())
    }

    fn broken(&self, plane: &Plane, reason: String) -> Error {
        let [rows, columns] = self.size;
        let expected = format!("{rows} x {columns} compressed pixels in {plane}");
        Error::field(&plane.file, tag::PIXEL_DATA.name, expected, reason)
    }

    /// PS3.5 annex G: a run-length code for each byte of the numbers, the highest first.
    fn rle(&self, encoded: &[u8]) -> std::result::Result<Vec<u32>, String> {
        let number = |at: usize| {
            let bytes = encoded.get(4 * at..4 * at + 4)?;
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
            let mut at = 0;
            while at < words.len() {
                let (&head, rest) = code.split_first().ok_or_else(|| format!("{at} pixels"))?;
                let (run, length, used) = match head {
                    // Copies the next bytes, repeats the next byte, or does nothing.
                    0..=127 => (false, usize::from(head) + 1, usize::from(head) + 1),
                    129.. => (true, 257 - usize::from(head), 1),
                    128 => (false, 0, 0),
                };
                let bytes = rest.get(..used).ok_or_else(|| format!("{at} pixels"))?;
                let length = length.min(words.len() - at);
                for (index, word) in words[at..at + length].iter_mut().enumerate() {
                    *word = *word << 8 | u32::from(bytes[if run { 0 } else { index }]);
                }
                at += length;
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

fn frames(path: &Path, all: &Dataset<'_>) -> Result<usize> {
    match all.number(path, tag::FRAMES)? {
        None => Ok(1),
        Some(count) if count.fract() == 0.0 && (1.0..1e6).contains(&count) => Ok(count as usize),
        Some(count) => Err(Error::field(path, tag::FRAMES.name, "a whole number from 1 to 999999", count)),
    }
}
