//! What a TIFF page says of its numbers, and the numbers as they are stored.

use std::io::{Read, Result, Seek, SeekFrom};

use tiff::decoder::Decoder;
use tiff::tags::{ByteOrder, Tag};
use tiff::{TiffError, TiffFormatError, TiffResult, TiffUnsupportedError};

/// The number of the entry PhotometricInterpretation, and its value where 0 is the brightest.
const PHOTOMETRIC: u16 = 262;
const WHITE_IS_ZERO: u16 = 0;

/// A file with two bytes of it replaced.
pub(super) struct Patched<R> {
    file: R,
    at: u64,
    patch: Option<(u64, [u8; 2])>,
}

impl<R> Patched<R> {
    pub(super) fn new(file: R) -> Self {
        Self { file, at: 0, patch: None }
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
                let at = place.checked_sub(self.at).and_then(|at| usize::try_from(at).ok());
                if let Some(to) = at.and_then(|at| to[..got].get_mut(at)) {
                    *to = byte;
                }
            }
        }
        self.at = self.at.saturating_add(got as u64);
        Ok(got)
    }
}

impl<R: Seek> Seek for Patched<R> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.at = self.file.seek(to)?;
        Ok(self.at)
    }
}

/// Lets the decoder return the numbers of its page, the `index`-th of the file, as they are stored.
///
/// WhiteIsZero says how a page is shown, and the decoder changes the numbers for it: u to 65535 − u, floats to 1 − v. It finds
/// BlackIsZero in the file instead.
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
        let at = start + head + entry * size;
        decoder.goto_offset_u64(at)?;
        let (tag, kind) = (decoder.read_short()?, decoder.read_short()?);
        if tag == PHOTOMETRIC {
            // Numbers of 32 bits have their lower half at the end in big-endian files.
            return Ok(match (decoder.byte_order(), kind) {
                (ByteOrder::LittleEndian, _) => (at + value, [1, 0]),
                (ByteOrder::BigEndian, 4) => (at + value + 2, [0, 1]),
                (ByteOrder::BigEndian, _) => (at + value, [0, 1]),
            });
        }
    }
    Err(missing())
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
    let text = decoder.find_tag(Tag::ImageDescription).ok().flatten();
    let text = text.and_then(|text| text.into_string().ok()).unwrap_or_default();
    let number = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<f64>().ok());
    if let (true, Some(c0), Some(c1)) = (text.starts_with("ImageJ="), number("c0="), number("c1=")) {
        notes.push(format!(
            "numbers are read as they are stored: ImageJ's calibration, {c0} + {c1} · stored, is not applied"
        ));
    }
    notes
}
