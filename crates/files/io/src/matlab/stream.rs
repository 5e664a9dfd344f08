//! The bytes of a MATLAB 5 file, and the elements that they are.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};
use std::path::Path;

use flate2::read::ZlibDecoder;

use crate::element::{self, ByteOrder, Element, Numbers, Origin, Stop, Value};
use crate::hdf5_file::fill_at;
use crate::{Error, Result};

/// Kinds of elements.
pub(super) const INT8: u32 = 1;
pub(super) const UINT8: u32 = 2;
pub(super) const INT32: u32 = 5;
pub(super) const UINT32: u32 = 6;
pub(super) const MATRIX: u32 = 14;
pub(super) const COMPRESSED: u32 = 15;
pub(super) const UTF8: u32 = 16;

/// How numbers of this kind are stored.
fn stored(kind: u32) -> Option<Element> {
    Some(match kind {
        INT8 => Element::I8,
        UINT8 => Element::U8,
        3 => Element::I16,
        4 => Element::U16,
        INT32 => Element::I32,
        UINT32 => Element::U32,
        7 => Element::F32,
        9 => Element::F64,
        12 => Element::I64,
        13 => Element::U64,
        _ => return None,
    })
}

/// The start of an element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    pub(super) kind: u32,
    /// Bytes of its data.
    pub(super) size: u64,
    /// The data of a small element, which stand in its tag.
    small: Option<[u8; 4]>,
}

enum Source {
    Plain(File),
    Packed(Box<ZlibDecoder<BufReader<Take<File>>>>),
}

/// Elements one after another: of the file, or of what a compressed element holds.
pub(super) struct Stream<'a> {
    pub(super) path: &'a Path,
    pub(super) order: ByteOrder,
    source: Source,
    /// The byte at which the stream stands: of the file, or of what is unpacked.
    pub(super) place: u64,
    /// Where all that is unpacked ends.
    pub(super) end: u64,
    /// The name of the array that is read, for errors.
    pub(super) name: String,
}

impl Read for Stream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let got = match &mut self.source {
            Source::Plain(file) => fill_at(file, self.place, bytes)?,
            Source::Packed(decoder) => decoder.read(bytes)?,
        };
        self.place += got as u64;
        Ok(got)
    }
}

impl<'a> Stream<'a> {
    pub(super) fn of_file(path: &'a Path, file: File, order: ByteOrder, place: u64) -> Self {
        Self { path, order, source: Source::Plain(file), place, end: 0, name: "the file".into() }
    }

    /// What `size` bytes of the file are, unpacked.
    pub(super) fn unpacked(
        path: &'a Path,
        mut file: File,
        order: ByteOrder,
        place: u64,
        size: u64,
    ) -> Result<Self> {
        file.seek(SeekFrom::Start(place)).map_err(|e| Error::read(path, e))?;
        let source = Source::Packed(Box::new(ZlibDecoder::new(BufReader::new(file.take(size)))));
        Ok(Self { path, order, source, place: 0, end: 0, name: "a compressed array".into() })
    }

    fn is_packed(&self) -> bool {
        matches!(self.source, Source::Packed(_))
    }

    /// The error of a source that gives no more bytes, or of numbers that cannot be unpacked.
    fn failed(&self, error: io::Error) -> Error {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        match error.kind() {
            InvalidData | InvalidInput | UnexpectedEof if self.is_packed() => {
                let expected = "sound compressed numbers (zlib)";
                Error::field(self.path, &self.name, expected, error)
                    .with_hint("copy the file again, or save it anew: its bytes have changed")
            }
            _ => Error::read(self.path, error),
        }
    }

    fn short(&self, expected: u64, got: u64) -> Error {
        Error::truncated(self.path, &self.name, format!("{expected} bytes"), format!("{got} bytes"))
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        let got = element::fill(self, &mut bytes).map_err(|e| self.failed(e))?;
        if got < N { Err(self.short(N as u64, got as u64)) } else { Ok(bytes) }
    }

    pub(super) fn number(&self, bytes: [u8; 4]) -> u32 {
        match self.order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Goes on to a place. Errors: one that what is unpacked does not reach.
    pub(super) fn skip_to(&mut self, place: u64) -> Result<()> {
        let far = place.saturating_sub(self.place);
        if self.is_packed() && far > 0 {
            let skipped = io::copy(&mut self.by_ref().take(far), &mut io::sink());
            let skipped = skipped.map_err(|e| self.failed(e))?;
            return if skipped < far { Err(self.short(far, skipped)) } else { Ok(()) };
        }
        self.place = place;
        Ok(())
    }

    /// Checks that what is unpacked ends where its size says, and its checksum.
    pub(super) fn finish(&mut self) -> Result<()> {
        if !self.is_packed() {
            return Ok(());
        }
        self.skip_to(self.end)?;
        let got = element::fill(self, &mut [0]).map_err(|e| self.failed(e))?;
        match got {
            0 => Ok(()),
            _ => Err(Error::field(self.path, &self.name, "no more bytes than its size says", "more")),
        }
    }

    /// The start of the next element, which ends at `end` at the latest.
    pub(super) fn tag(&mut self, end: u64) -> Result<Tag> {
        if end.saturating_sub(self.place) < 8 {
            return Err(self.refuse("size", "room for one more element", "none"));
        }
        let bytes: [u8; 8] = self.bytes()?;
        let [first, second] = bytes.as_chunks::<4>().0 else {
            return Err(self.refuse("size", "8 bytes", "fewer"));
        };
        let word = self.number(*first);
        let tag = match word >> 16 {
            0 => Tag { kind: word, size: self.number(*second).into(), small: None },
            size => Tag { kind: word & 0xffff, size: size.into(), small: Some(*second) },
        };
        if tag.small.is_some() && tag.size > 4 {
            return Err(self.refuse("size of a small element", "at most 4 bytes", tag.size));
        }
        if tag.small.is_none() && tag.size > end - self.place {
            let expected = format!("at most {} bytes, which are left", end - self.place);
            return Err(self.refuse("size of an element", &expected, tag.size));
        }
        Ok(tag)
    }

    pub(super) fn refuse(&self, field: &str, expected: &str, found: impl ToString) -> Error {
        Error::field(self.path, format!("{field} of {}", self.name), expected, found)
    }

    /// The bytes of a short element, of one of some kinds, and what fills it up to 8 bytes.
    pub(super) fn short_element(
        &mut self,
        end: u64,
        what: &str,
        kinds: &[u32],
        most: usize,
    ) -> Result<Vec<u8>> {
        let tag = self.tag(end)?;
        if !kinds.contains(&tag.kind) {
            return Err(self.refuse(what, &format!("an element of kind {}", kinds[0]), tag.kind));
        }
        let size = usize::try_from(tag.size).ok().filter(|&size| size <= most);
        let Some(size) = size else {
            return Err(self.refuse(what, &format!("at most {most} bytes"), tag.size));
        };
        if let Some(small) = tag.small {
            return Ok(small[..size].to_vec());
        }
        let mut bytes = vec![0; size];
        let got = element::fill(self, &mut bytes).map_err(|e| self.failed(e))?;
        if got < size {
            return Err(self.short(tag.size, got as u64));
        }
        self.pad(tag, end)?;
        Ok(bytes)
    }

    /// Goes past what fills an element up to a multiple of 8 bytes.
    fn pad(&mut self, tag: Tag, end: u64) -> Result<()> {
        if tag.small.is_some() {
            return Ok(());
        }
        let padded = self.place.saturating_add(tag.size.next_multiple_of(8) - tag.size);
        self.skip_to(padded.min(end))
    }

    /// The next element as `count` numbers.
    pub(super) fn numbers<T: Value>(&mut self, end: u64, what: &str, count: usize) -> Result<Numbers<T>> {
        let tag = self.tag(end)?;
        let Some(element) = stored(tag.kind) else {
            return Err(self.refuse(what, "an element of numbers", format!("one of kind {}", tag.kind)));
        };
        let expected = count as u64 * element.size() as u64;
        if tag.size != expected {
            let expected = format!("{expected} bytes, {count} numbers of {}", element.name());
            return Err(self.refuse(what, &expected, format!("{} bytes", tag.size)));
        }
        let order = self.order;
        let read = match (&self.source, tag.small) {
            (_, Some(small)) => element::read(Origin::Stream(&mut &small[..]), count, element, order, None),
            (Source::Plain(file), None) => {
                let read = element::read(Origin::File(file, self.place), count, element, order, None);
                self.place += tag.size;
                read
            }
            (Source::Packed(_), None) => element::read(Origin::Stream(self), count, element, order, None),
        };
        let numbers = read.map_err(|stop| match stop {
            Stop::Io(e) => self.failed(e),
            Stop::Memory(e) => Error::core(self.path, e),
            Stop::Short(got) => self.short(expected, got),
            Stop::Range(index) => {
                let found = format!("a larger one at {index}");
                Error::field(self.path, &self.name, "values within single precision", found)
            }
        })?;
        self.pad(tag, end)?;
        Ok(numbers)
    }
}
