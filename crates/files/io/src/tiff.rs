//! TIFF stacks: a page a slice, as ImageJ and synchrotrons write them.
//!
//! It reads grey numbers of 8 to 64 bits, integers and floats, in either byte order, plain or compressed
//! without loss. It reads TIFF, BigTIFF, ImageJ's stacks beyond 4 GB, which describe their first page alone,
//! and folders of numbered files. It writes 32-bit floats, and integers that were read as such; as BigTIFF
//! from 4 GB on.
//!
//! A voxel is as large as ImageJ or OME says, and lies nowhere. Stored numbers are data: what tags say about
//! showing them (WhiteIsZero, Orientation) changes nothing. Thumbnails and masks are no slices.

mod pixel;
mod stored;

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ndarray::{ArrayD, ArrayViewD, IxDyn};
use rayon::prelude::*;
use rayspin_core::{Error as CoreError, ErrorKind, Image};
use rayspin_device::cpu::{expect_memory, zeroed};
use tiff::decoder::{Decoder, DecodingResult, Limits, ifd::Value};
use tiff::encoder::colortype::{
    ColorType, Gray8, Gray16, Gray32, Gray32Float, Gray64, GrayI8, GrayI16, GrayI32, GrayI64,
};
use tiff::encoder::{TiffEncoder, TiffKindBig, TiffKindStandard, TiffValue};
use tiff::tags::Tag;
use tiff::{TiffError, TiffResult};

use crate::atomic::Pending;
use crate::element::{self, ByteOrder, Element, Numbers, Origin, Stop};
use crate::error;
use crate::folder::Folder;
use crate::format::{Folders, ImageRead, Target, VolumeWriter};
use crate::{Error, NumberType, Result, Slices, Values, opening};

pub(crate) use pixel::NO_STEP;
use pixel::Stated;
use stored::Patched;

/// Bytes from which on a file is a BigTIFF: offsets of the others have 32 bits, and tags take some room.
const BIG: u64 = 4_000_000_000;

/// The most that a byte of a file expands to: 1032 of deflate, which is the densest of these codes.
const MOST_COMPRESSED: u64 = 1100;

/// The tags ImageDepth and TileDepth: planes that lie one behind the other in a page.
const DEPTHS: [u16; 2] = [32997, 32998];

/// Reads a stack `[page, row, column]` of a file for the table of formats.
pub(crate) fn image(path: &Path, _: Option<&str>) -> Result<ImageRead> {
    image_of(path, read_pages(path)?)
}

/// How the table of formats reads folders.
pub(crate) const FOLDERS: Folders =
    Folders { image: |folder, _| image_of(&folder.path, read_folder(folder)?), names: None, describe: None };

fn image_of(path: &Path, pages: Pages) -> Result<ImageRead> {
    let Pages { shape, values, number_type, rounded, stated, mut notes } = pages;
    let number_type = number_type.read(rounded, &mut notes);
    let data = ArrayD::from_shape_vec(IxDyn(&shape), values)
        .map_err(|e| Error::field(path, "pages", "pages of one size", e))?;
    let geometry = stated.geometry(shape[0], &mut notes);
    let image = Image::new(data, geometry).map_err(|e| Error::core(path, e))?;
    Ok(ImageRead::new(image, number_type, notes))
}

/// The pages of a stack.
struct Pages {
    /// `[page, row, column]`.
    shape: [usize; 3],
    values: Vec<f32>,
    /// The type of the first page's numbers.
    number_type: NumberType,
    rounded: bool,
    /// The size of a voxel.
    stated: Stated,
    /// What was not applied or left out, one sentence each.
    notes: Vec<String>,
}

/// What a decoder stumbled over.
fn fail(path: &Path, page: usize, error: TiffError) -> Error {
    let what = format!("page {page}");
    match error {
        TiffError::IoError(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            Error::truncated(path, what, "all of its numbers", "the end of the file")
        }
        // What the codes say of damage.
        TiffError::IoError(e)
            if matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) =>
        {
            Error::field(path, what, "a sound TIFF page", e)
        }
        TiffError::IoError(e) => Error::read(path, e),
        TiffError::UnsupportedError(e) => Error::unsupported(path, format!("{what} ({e})")),
        // The limits of tags and codes are the bytes of the file.
        TiffError::LimitsExceeded => {
            Error::truncated(path, what, "all of its numbers", "fewer bytes in the file")
        }
        other => Error::field(path, what, "a sound TIFF page", other),
    }
}

/// Files of a page each, by the numbers in their names.
fn read_folder(folder: &Folder) -> Result<Pages> {
    let path = &folder.path;
    let files = folder.numbered()?;
    let page = |file: &Path, shape: [usize; 3]| match shape {
        [1, rows, columns] => Ok([rows, columns]),
        [pages, ..] => Err(Error::field(file, "file of a folder", "one page", format!("{pages} pages"))),
    };
    let first = files.first().ok_or_else(|| Error::field(path, "folder", "at least one file", "none"))?;
    let Pages { shape, number_type, stated, mut notes, .. } = read_pages(first)?;
    let [rows, columns] = page(first, shape)?;
    let rounded = AtomicBool::new(false);
    let count = element::count(&[files.len(), rows, columns], 4).unwrap_or(usize::MAX);
    let mut values = zeroed("pages", count).map_err(|e| Error::core(path, e))?;
    let numbered = files.par_iter().zip(values.par_chunks_mut((rows * columns).max(1)));
    let others: Vec<Vec<String>> = numbered
        .map(|(file, to)| {
            let pages = read_pages(file)?;
            let size = page(file, pages.shape)?;
            if size != [rows, columns] {
                let expected = format!("{rows} x {columns} numbers, as {} has", error::name(first));
                return Err(Error::field(file, "page 0", expected, format!("{} x {}", size[0], size[1])));
            }
            to.copy_from_slice(&pages.values);
            rounded.fetch_or(pages.rounded, Ordering::Relaxed);
            Ok(pages.notes)
        })
        .collect::<Result<_>>()?;
    for note in others.into_iter().flatten() {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let shape = [files.len(), rows, columns];
    Ok(Pages { shape, values, number_type, rounded: rounded.into_inner(), stated, notes })
}

/// The pages of a file. Thumbnails and masks are left out, unless it holds nothing else.
fn read_pages(path: &Path) -> Result<Pages> {
    match read_some(path, false)? {
        Pages { shape: [0, ..], .. } => read_some(path, true),
        pages => Ok(pages),
    }
}

fn read_some(path: &Path, is_whole: bool) -> Result<Pages> {
    let file = opening::open(path)?;
    let length = file.metadata().map_err(|e| Error::read(path, e))?.len();
    let file = Patched::new(BufReader::with_capacity(1 << 18, file));
    // Each page is compared with the file and with the memory before it is read.
    let decoder = Decoder::new(file).map_err(|e| fail(path, 0, e))?;
    let held = usize::try_from(length).unwrap_or(usize::MAX);
    let limits = |decoded| {
        let mut limits = Limits::unlimited();
        (limits.ifd_value_size, limits.intermediate_buffer_size) = (held, held);
        limits.decoding_buffer_size = decoded;
        limits
    };
    // A tag has no more values than the file has bytes. The decoder bounds tags and numbers by the same
    // limit.
    let tags = held.saturating_mul(size_of::<Value>());
    let mut decoder = decoder.with_limits(limits(tags));
    let (mut values, mut notes, mut first) = (Vec::new(), Vec::new(), None::<(usize, [usize; 2])>);
    // What the pages before have taken of the file.
    let mut taken = 0u64;
    let (mut pages, mut beside) = (0, 0);
    let (mut number_type, mut rounded) = (NumberType::from(Element::F32), false);
    let mut stated = Stated::default();
    for number in 0usize.. {
        if number > 0 {
            if !decoder.more_images() {
                break;
            }
            decoder.next_image().map_err(|e| fail(path, number, e))?;
        }
        if !is_whole && stored::is_beside(&mut decoder).map_err(|e| fail(path, number, e))? {
            beside += 1;
            continue;
        }
        stored::keep(&mut decoder, number).map_err(|e| fail(path, number, e))?;
        let page = Page::of(path, number, &mut decoder)?;
        match first {
            None => {
                notes = stored::notes(&mut decoder);
                stated = Stated::of(&mut decoder);
                if let Some(stack) = page.stack(path, length, &mut decoder)? {
                    return Ok(Pages { stated, notes, ..stack });
                }
                first = Some((number, page.size));
            }
            Some((_, size)) if size == page.size => {}
            Some((first, [rows, columns])) => {
                let found = format!("{} x {}", page.size[0], page.size[1]);
                let expected = format!("{rows} x {columns} numbers, as page {first} has");
                return Err(Error::field(path, format!("page {number}"), expected, found));
            }
        }
        decoder = decoder.with_limits(limits(usize::MAX));
        taken = page.held(path, number, taken, length, &mut decoder)?;
        let (element, some) = page.append(path, number, &mut decoder, &mut values)?;
        rounded |= some;
        if pages == 0 {
            number_type = element.into();
        }
        decoder = decoder.with_limits(limits(tags));
        pages += 1;
    }
    if beside > 0 && pages > 0 {
        let plural = if beside == 1 { "" } else { "s" };
        notes.push(format!("{beside} page{plural} left out: thumbnails or masks (NewSubfileType)"));
    }
    let (_, [rows, columns]) = first.unwrap_or_default();
    Ok(Pages { shape: [pages, rows, columns], values, number_type, rounded, stated, notes })
}

/// A page, before its numbers are read.
struct Page {
    size: [usize; 2],
    bits: u8,
}

impl Page {
    fn of<R: Read + Seek>(path: &Path, number: usize, decoder: &mut Decoder<R>) -> Result<Self> {
        let failed = |e| fail(path, number, e);
        let (columns, rows) = decoder.dimensions().map_err(failed)?;
        let refuse = |found: String| {
            let expected = "grey numbers of 8, 16, 32 or 64 bits";
            Err(Error::field(path, format!("page {number}"), expected, found)
                .with_hint("convert it to grey numbers first, for example in ImageJ (Image › Type)"))
        };
        if decoder.find_tag_unsigned::<u16>(Tag::PhotometricInterpretation).map_err(failed)? == Some(3) {
            return refuse("indices of a palette of colours".into());
        }
        let bits = match decoder.colortype().map_err(failed)? {
            tiff::ColorType::Gray(bits @ (8 | 16 | 32 | 64)) => bits,
            other => return refuse(format!("{other:?}")),
        };
        if decoder.find_tag_unsigned::<u16>(Tag::FillOrder).map_err(failed)? == Some(2) {
            return Err(Error::unsupported(path, format!("page {number} with reversed bits (FillOrder 2)")));
        }
        for depth in DEPTHS.map(Tag::Unknown) {
            let planes = decoder.find_tag_unsigned::<u64>(depth).map_err(failed)?.unwrap_or(1);
            if planes > 1 {
                let what = format!("page {number} of {planes} planes (ImageDepth)");
                return Err(Error::unsupported(path, what)
                    .with_hint("tifffile writes a page a slice without volumetric=True"));
            }
        }
        Ok(Self { size: [rows as usize, columns as usize], bits })
    }

    /// The bytes that this page and those before it take of the file. Each byte belongs to one page:
    /// thousands of pages that share their bytes would fill any memory.
    ///
    /// Errors: pages that take more than the file has; a page of more numbers than its bytes hold.
    fn held<R: Read + Seek>(
        &self,
        path: &Path,
        number: usize,
        before: u64,
        length: u64,
        decoder: &mut Decoder<R>,
    ) -> Result<u64> {
        let sizes = |decoder: &mut Decoder<R>, tag| decoder.find_tag_unsigned_vec::<u64>(tag).ok().flatten();
        let counts = sizes(decoder, Tag::StripByteCounts).or_else(|| sizes(decoder, Tag::TileByteCounts));
        let stored =
            self.size.iter().fold(u64::from(self.bits / 8), |n, &side| n.saturating_mul(side as u64));
        let own = match sizes(decoder, Tag::Compression).is_none_or(|kind| kind == [1]) {
            true => stored,
            // Some writers state more than there is for the last part of a file.
            false => counts.unwrap_or_default().into_iter().fold(0, u64::saturating_add).min(length),
        };
        if stored > own.saturating_mul(MOST_COMPRESSED) {
            let found = format!("{} x {} in {own} bytes", self.size[0], self.size[1]);
            return Err(Error::field(
                path,
                format!("page {number}"),
                "a size that its bytes can hold",
                found,
            ));
        }
        let taken = before.saturating_add(own);
        if taken > length {
            let expected = format!("bytes of its own in a file of {length} bytes");
            let found = format!("{taken} bytes up to this page");
            return Err(Error::field(path, format!("page {number}"), expected, found));
        }
        Ok(taken)
    }

    /// Appends the page's numbers; returns their type, and whether one of them is rounded.
    fn append<R: Read + Seek>(
        &self,
        path: &Path,
        number: usize,
        decoder: &mut Decoder<R>,
        values: &mut Vec<f32>,
    ) -> Result<(Element, bool)> {
        let [rows, columns] = self.size;
        let count = element::count(&self.size, 16).ok_or_else(|| {
            let expected = "a size that fits the address space";
            Error::field(path, format!("page {number}"), expected, format!("{rows} x {columns}"))
        })?;
        let core = |e: CoreError| Error::core(path, e);
        // The page as it is stored, and as it is kept.
        let stored = count as u64 * u64::from(self.bits / 8);
        expect_memory("page", stored + 4 * count as u64).map_err(core)?;
        rayspin_device::cpu::try_reserve("pages", values, count).map_err(core)?;
        let read = decoder.read_image().map_err(|e| fail(path, number, e))?;
        let before = values.len();
        let mut rounded = false;
        // The note on numbers with more digits than single precision.
        macro_rules! wide {
            ($numbers:expr, $as:ty) => {
                values.extend($numbers.into_iter().map(|n| {
                    let number = n as f32;
                    rounded |= number as $as != n as $as && !number.is_nan();
                    number
                }))
            };
        }
        let element = match &read {
            DecodingResult::U8(_) => Element::U8,
            DecodingResult::I8(_) => Element::I8,
            DecodingResult::U16(_) => Element::U16,
            DecodingResult::I16(_) => Element::I16,
            DecodingResult::U32(_) => Element::U32,
            DecodingResult::I32(_) => Element::I32,
            DecodingResult::U64(_) => Element::U64,
            DecodingResult::I64(_) => Element::I64,
            DecodingResult::F16(_) => Element::F16,
            DecodingResult::F32(_) => Element::F32,
            DecodingResult::F64(_) => Element::F64,
        };
        match read {
            DecodingResult::U8(numbers) => values.extend(numbers.into_iter().map(f32::from)),
            DecodingResult::I8(numbers) => values.extend(numbers.into_iter().map(f32::from)),
            DecodingResult::U16(numbers) => values.extend(numbers.into_iter().map(f32::from)),
            DecodingResult::I16(numbers) => values.extend(numbers.into_iter().map(f32::from)),
            DecodingResult::U32(numbers) => wide!(numbers, i128),
            DecodingResult::I32(numbers) => wide!(numbers, i128),
            DecodingResult::U64(numbers) => wide!(numbers, i128),
            DecodingResult::I64(numbers) => wide!(numbers, i128),
            DecodingResult::F16(numbers) => values.extend(numbers.into_iter().map(f32::from)),
            DecodingResult::F32(numbers) => values.extend(numbers),
            DecodingResult::F64(numbers) => {
                if numbers.iter().any(|n| n.is_finite() && n.abs() > f64::from(f32::MAX)) {
                    let what = format!("page {number}");
                    return Err(Error::field(path, what, "values within single precision", "a larger one"));
                }
                wide!(numbers, f64);
            }
        }
        if values.len() != before + count {
            let found = format!("{} numbers", values.len() - before);
            return Err(Error::field(path, format!("page {number}"), format!("{count} numbers"), found));
        }
        Ok((element, rounded))
    }

    /// The pages of a stack whose file describes only the first page; the others follow without a gap. ImageJ
    /// writes stacks beyond 4 GB like this, and tifffile on request. None for other files.
    ///
    /// Errors: a stack whose other pages cannot be found so.
    fn stack(
        &self,
        path: &Path,
        length: u64,
        decoder: &mut Decoder<Patched<BufReader<File>>>,
    ) -> Result<Option<Pages>> {
        let text = stored::description(decoder);
        let images = stored::stated_pages(&text, self.size).filter(|&images| images > 1);
        let (Some(images), false) = (images, decoder.more_images()) else { return Ok(None) };
        let number = |decoder: &mut Decoder<_>, tag| decoder.find_tag_unsigned_vec::<u64>(tag).ok().flatten();
        let packed = number(decoder, Tag::Compression).is_none_or(|kind| kind == [1]);
        let format = number(decoder, Tag::SampleFormat).and_then(|kinds| kinds.first().copied()).unwrap_or(1);
        let start = number(decoder, Tag::StripOffsets).and_then(|offsets| offsets.first().copied());
        let element = stored::element(self.bits, format);
        let (Some(start), true, Some(element)) = (start, packed, element) else {
            let expected = format!("{images} pages, as its description says");
            let found = "one page, whose numbers are compressed or in tiles";
            return Err(Error::field(path, "the stack", expected, found));
        };
        let order = match decoder.byte_order() {
            tiff::tags::ByteOrder::LittleEndian => ByteOrder::Little,
            tiff::tags::ByteOrder::BigEndian => ByteOrder::Big,
        };
        let shape = [images, self.size[0], self.size[1]];
        let count = element::count(&shape, element.size());
        let Some(count) = count.filter(|n| start.saturating_add((n * element.size()) as u64) <= length)
        else {
            let expected = format!("{images} pages, as its description says");
            return Err(Error::truncated(path, "the stack", expected, format!("{length} bytes")));
        };
        let origin = Origin::File(decoder.inner().file().get_ref(), start);
        let read = element::read(origin, count, element, order, None);
        let Numbers { values, rounded } = read.map_err(|stop| match stop {
            Stop::Io(e) => Error::read(path, e),
            Stop::Memory(e) => Error::core(path, e),
            Stop::Short(got) => Error::truncated(path, "the stack", "all pages", format!("{got} bytes")),
            Stop::Range(index) => Error::field(
                path,
                "numbers",
                "values within single precision",
                format!("a larger one at {index}"),
            ),
        })?;
        let (number_type, stated) = (element.into(), Stated::default());
        Ok(Some(Pages { shape, values, number_type, rounded, stated, notes: Vec::new() }))
    }
}

/// Starts a file for the table of formats.
pub(crate) fn create(target: &Target<'_>) -> Result<Box<dyn VolumeWriter>> {
    if target.repetitions().is_some_and(|count| count > 1) {
        return Err(Error::unsupported(target.path, "a series of volumes as TIFF")
            .with_hint("`--repetition` chooses one; .nii and .npy hold all"));
    }
    let [_, rows, columns] = target.volume();
    let side = |name: &str, n: usize| {
        u32::try_from(n).map_err(|_| Error::field(target.path, name, "at most 4294967295 pixels", n))
    };
    let size = [side("rows", rows)?, side("columns", columns)?];
    let pending = Pending::create(target.path)?;
    // The encoder writes strips of a megabyte.
    let file = pending.open()?;
    let bytes = target.volume().iter().fold(4u64, |n, &d| n.saturating_mul(d as u64));
    let failed = |e| written(target.path, e);
    let pages = match bytes < BIG {
        true => Encoder::Standard(TiffEncoder::new(file).map_err(failed)?),
        false => Encoder::Big(TiffEncoder::new_big(file).map_err(failed)?),
    };
    let Target { values, integers, .. } = *target;
    Ok(Box::new(Stack { pending, pages, size, values, integers }))
}

fn written(path: &Path, error: TiffError) -> Error {
    match error {
        TiffError::IoError(e) => Error::write(path, e),
        other => Error::library(path, "writing a page", other, ErrorKind::Failure),
    }
}

enum Encoder {
    Standard(TiffEncoder<File, TiffKindStandard>),
    Big(TiffEncoder<File, TiffKindBig>),
}

impl Encoder {
    fn page<C: ColorType>(
        &mut self,
        [rows, columns]: [u32; 2],
        numbers: impl Iterator<Item = C::Inner>,
    ) -> TiffResult<()>
    where
        [C::Inner]: TiffValue,
    {
        let numbers: Vec<C::Inner> = numbers.collect();
        match self {
            Self::Standard(to) => to.write_image::<C>(columns, rows, &numbers),
            Self::Big(to) => to.write_image::<C>(columns, rows, &numbers),
        }
    }

    /// A page of integers.
    fn integers(
        &mut self,
        size: [u32; 2],
        plane: &ArrayViewD<'_, f32>,
        integers: NumberType,
    ) -> TiffResult<()> {
        macro_rules! page {
            ($colour:ty, $type:ty) => {
                self.page::<$colour>(size, plane.iter().map(|&value| integers.stored(value) as $type))
            };
        }
        match integers.element {
            Element::I8 => page!(GrayI8, i8),
            Element::I16 => page!(GrayI16, i16),
            Element::U16 => page!(Gray16, u16),
            Element::I32 => page!(GrayI32, i32),
            Element::U32 => page!(Gray32, u32),
            Element::I64 => page!(GrayI64, i64),
            Element::U64 => page!(Gray64, u64),
            _ => page!(Gray8, u8),
        }
    }
}

/// A stack in the making.
struct Stack {
    pending: Pending,
    pages: Encoder,
    /// Rows and columns.
    size: [u32; 2],
    values: Values,
    integers: Option<NumberType>,
}

impl VolumeWriter for Stack {
    fn push(&mut self, slices: &Slices<'_>) -> Result<()> {
        for plane in slices.planes() {
            let page = match (&plane, self.integers) {
                (Slices::Real(plane), Some(integers)) => self.pages.integers(self.size, plane, integers),
                _ => {
                    let numbers = plane.stored(self.values).into_iter();
                    self.pages.page::<Gray32Float>(self.size, numbers)
                }
            };
            page.map_err(|e| written(self.pending.wanted(), e))?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, path: &Path, _: usize) -> Result<Option<String>> {
        let Self { pending, pages, .. } = *self;
        drop(pages);
        pending.finish_as(path).map(|()| None)
    }
}
