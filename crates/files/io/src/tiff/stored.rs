//! What a TIFF page says of its numbers, and the numbers as they are stored.

use std::io::{Read, Result, Seek, SeekFrom};
use std::str::FromStr;

use tiff::decoder::Decoder;
use tiff::tags::{ByteOrder, Tag};
use tiff::{TiffError, TiffFormatError, TiffResult, TiffUnsupportedError};

use crate::element::Element;

/// The number of the entry PhotometricInterpretation, and its value where 0 is the brightest.
const PHOTOMETRIC: u16 = 262;
const WHITE_IS_ZERO: u16 = 0;

/// A file with two bytes of it replaced.
pub(super) struct Patched<R> {
    file: R,
    offset: u64,
    patch: Option<(u64, [u8; 2])>,
}

impl<R> Patched<R> {
    pub(super) fn new(file: R) -> Self {
        Self { file, offset: 0, patch: None }
    }

    pub(super) fn file(&self) -> &R {
        &self.file
    }
}

impl<R: Read> Read for Patched<R> {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        let got = self.file.read(to)?;
        if let Some((place, bytes)) = self.patch {
            for (place, byte) in (place..).zip(bytes) {
                let index = place.checked_sub(self.offset).and_then(|offset| usize::try_from(offset).ok());
                if let Some(to) = index.and_then(|index| to[..got].get_mut(index)) {
                    *to = byte;
                }
            }
        }
        self.offset = self.offset.saturating_add(got as u64);
        Ok(got)
    }
}

impl<R: Seek> Seek for Patched<R> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.offset = self.file.seek(to)?;
        Ok(self.offset)
    }
}

/// Lets the decoder return the numbers of its page, the `index`-th of the file, as they are stored.
///
/// WhiteIsZero says how a page is shown, and the decoder changes the numbers for it: u to 65535 − u, floats
/// to 1 − v. It finds BlackIsZero in the file instead.
pub(super) fn keep<R: Read + Seek>(decoder: &mut Decoder<Patched<R>>, index: usize) -> TiffResult<()> {
    if !is_white_zero(decoder)? {
        return Ok(());
    }
    let patch = place(decoder)?;
    decoder.inner().patch = Some(patch);
    decoder.seek_to_image(index)?;
    match is_white_zero(decoder)? {
        true => Err(TiffUnsupportedError::UnknownInterpretation.into()),
        false => Ok(()),
    }
}

fn is_white_zero<R: Read + Seek>(decoder: &mut Decoder<R>) -> TiffResult<bool> {
    Ok(decoder.find_tag_unsigned(Tag::PhotometricInterpretation)? == Some(WHITE_IS_ZERO))
}

/// The place of the page's photometric interpretation in the file, and the bytes that say BlackIsZero there.
fn place<R: Read + Seek>(decoder: &mut Decoder<R>) -> TiffResult<(u64, [u8; 2])> {
    let missing = || TiffError::FormatError(TiffFormatError::ImageFileDirectoryNotFound);
    let start = decoder.ifd_pointer().ok_or_else(missing)?.0;
    decoder.goto_offset_u64(2)?;
    let big = decoder.read_short()? == 43;
    decoder.goto_offset_u64(start)?;
    let (entries, head, size, value) = match big {
        true => (decoder.read_long8()?, 8, 20, 12),
        false => (u64::from(decoder.read_short()?), 2, 12, 8),
    };
    for entry in 0..entries {
        let offset = start + head + entry * size;
        decoder.goto_offset_u64(offset)?;
        let (tag, kind) = (decoder.read_short()?, decoder.read_short()?);
        if tag == PHOTOMETRIC {
            // Numbers of 32 bits have their lower half at the end in big-endian files.
            return Ok(match (decoder.byte_order(), kind) {
                (ByteOrder::LittleEndian, _) => (offset + value, [1, 0]),
                (ByteOrder::BigEndian, 4) => (offset + value + 2, [0, 1]),
                (ByteOrder::BigEndian, _) => (offset + value, [0, 1]),
            });
        }
    }
    Err(missing())
}

/// The type of numbers with this number of bits and this SampleFormat; none for complex and unknown ones.
pub(super) fn element(bits: u8, format: u64) -> Option<Element> {
    Some(match (bits, format) {
        (8, 1) => Element::U8,
        (8, 2) => Element::I8,
        (16, 1) => Element::U16,
        (16, 2) => Element::I16,
        (16, 3) => Element::F16,
        (32, 1) => Element::U32,
        (32, 2) => Element::I32,
        (32, 3) => Element::F32,
        (64, 1) => Element::U64,
        (64, 2) => Element::I64,
        (64, 3) => Element::F64,
        _ => return None,
    })
}

/// Whether the page is a thumbnail or a mask of another one.
pub(super) fn is_beside<R: Read + Seek>(decoder: &mut Decoder<R>) -> TiffResult<bool> {
    const REDUCED: u32 = 1;
    const MASK: u32 = 4;
    const OLD_REDUCED: u32 = 2;
    let mut is = |tag, bits: &dyn Fn(u32) -> bool| {
        Ok::<_, TiffError>(decoder.find_tag_unsigned::<u32>(tag)?.is_some_and(bits))
    };
    Ok(is(Tag::NewSubfileType, &|bits| bits & (REDUCED | MASK) != 0)?
        || is(Tag::SubfileType, &|kind| kind == OLD_REDUCED)?)
}

/// What programs that show pictures apply and Rayspin does not, one sentence each.
pub(super) fn notes<R: Read + Seek>(decoder: &mut Decoder<R>) -> Vec<String> {
    let mut notes = Vec::new();
    let orientation = decoder.find_tag_unsigned::<u16>(Tag::Orientation).ok().flatten();
    if let Some(orientation) = orientation.filter(|&orientation| orientation > 1) {
        notes.push(format!("pages are read as they are stored: Orientation {orientation} is not applied"));
    }
    let text = description(decoder);
    if let (Some(c0), Some(c1)) = (imagej::<f64>(&text, "c0"), imagej::<f64>(&text, "c1")) {
        notes.push(format!(
            "numbers are read as they are stored: ImageJ's calibration, {c0} + {c1} · stored, is not applied"
        ));
    }
    notes.extend(axes_note(&text));
    notes
}

/// What the first page says of the whole file, as ImageJ, tifffile and OME write it.
pub(super) fn description<R: Read + Seek>(decoder: &mut Decoder<R>) -> String {
    let text = decoder.find_tag(Tag::ImageDescription).ok().flatten();
    text.and_then(|text| text.into_string().ok()).unwrap_or_default()
}

/// The number after a key of ImageJ's description.
pub(super) fn imagej<T: FromStr>(text: &str, key: &str) -> Option<T> {
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix('=')?.trim().parse().ok();
    text.starts_with("ImageJ=").then(|| text.lines().find_map(value)).flatten()
}

/// The shape of a file of tifffile, `{"shape": [6, 20, 17], "truncated": true}`.
fn shape(text: &str) -> Option<Vec<usize>> {
    let list = text.trim_start().starts_with('{').then(|| text.split_once("\"shape\""))??.1;
    let list = list.trim_start().strip_prefix(':')?.trim_start().strip_prefix('[')?.split_once(']')?.0;
    list.split(',').map(|size| size.trim().parse().ok()).collect()
}

/// The pages of `[rows, columns]` that a file has by the description of its first, where it may describe that
/// one alone.
pub(super) fn stated_pages(text: &str, [rows, columns]: [usize; 2]) -> Option<usize> {
    if let Some(images) = imagej(text, "images") {
        return Some(images);
    }
    let truncated = text.split_once("\"truncated\"")?.1;
    let is_true = truncated.trim_start().strip_prefix(':')?.trim_start().starts_with("true");
    let count = shape(text).filter(|_| is_true)?.into_iter().try_fold(1usize, usize::checked_mul)?;
    let page = rows.checked_mul(columns).filter(|&page| page > 0)?;
    (count % page == 0).then_some(count / page)
}

/// A note if the description says that several axes count the pages. A single axis counts the slices,
/// whatever its name: programs write plain stacks as channels.
fn axes_note(text: &str) -> Option<String> {
    let ome = |name: &str| text.split_once(&format!(" {name}=\""))?.1.split_once('"')?.0.parse().ok();
    let counts: [Option<usize>; 3] = match text.contains("<OME") {
        true => ["SizeC", "SizeT", "SizeZ"].map(ome),
        false => ["channels", "frames", "slices"].map(|key| imagej(text, key)),
    };
    let axes = shape(text).unwrap_or_default();
    let are_several = |sizes: &[usize]| sizes.iter().filter(|&&size| size > 1).count() > 1;
    let counts = counts.map(|count| count.unwrap_or(1));
    let content = if are_several(&counts) {
        let [channels, frames, slices] = counts;
        format!("channels {channels}, times {frames}, slices {slices}")
    } else if are_several(&axes[..axes.len().saturating_sub(2)]) {
        format!("the shape {axes:?}")
    } else {
        return None;
    };
    Some(format!(
        "the file is more than a stack of slices ({content}): its pages are read as slices, in the order of the file"
    ))
}
