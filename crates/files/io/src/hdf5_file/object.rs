//! What the header of an object says of other files. The HDF5 library tells it too late, or not at all: it
//! opens files of virtual data sets to tell a shape, and the binding cannot tell the selections that most
//! programs write.
//!
//! An object header is a list of messages, in blocks that lead to each other. Message 7 lists raw files
//! (external storage), whose names lie in a local heap. Message 8 states the layout; for a virtual data set
//! it names an object of a global heap (HDF5 File Format Specification 3.0, III.D, III.E, IV.A).

use std::fs::File;
use std::io;
use std::path::Path;

use hdf5::{Location, ObjectReference1};

use super::{fill_at, start};
use crate::opening;

/// Messages of an object header.
const RAW_FILES: u16 = 7;
const LAYOUT: u16 = 8;
const MORE: u16 = 16;
/// The class of the layout of virtual data sets.
const VIRTUAL: u8 = 3;

/// Bytes from which numbers and texts are taken in order. None where they end too early.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A little-endian number of up to 8 bytes.
    pub(super) fn number(&mut self, width: usize) -> Option<u64> {
        Some(self.take(width)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// A text up to a zero.
    pub(super) fn text(&mut self) -> Option<String> {
        let length = memchr::memchr(0, self.0)?;
        let text = super::lossy(self.take(length)?);
        self.take(1)?;
        Some(text)
    }
}

/// A file whose metadata are read here. Addresses count from the start of HDF5 in it.
pub(super) struct Metadata {
    file: File,
    start: u64,
    /// Bytes of the file from there on, which no block exceeds.
    bytes: u64,
    /// Bytes of an address and of a length.
    address: usize,
    pub(super) length: usize,
}

impl Metadata {
    /// Errors: a file that cannot be read, or that is no HDF5 file.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let other = || io::Error::from(io::ErrorKind::InvalidData);
        let file = opening::open(path).map_err(io::Error::other)?;
        let start = start(&file)?.ok_or_else(other)?;
        let mut block = [0; 16];
        fill_at(&file, start, &mut block)?;
        let widths = match block[8] {
            0 | 1 => [block[13], block[14]],
            2 | 3 => [block[9], block[10]],
            _ => return Err(other()),
        };
        let [address, length] = widths.map(usize::from);
        if widths.iter().any(|width| ![2, 4, 8].contains(width)) {
            return Err(other());
        }
        let bytes = file.metadata()?.len().saturating_sub(start);
        Ok(Self { file, start, bytes, address, length })
    }

    /// Bytes at an address; none where the file ends before.
    fn read(&self, address: u64, count: u64) -> Option<Vec<u8>> {
        if address.checked_add(count)? > self.bytes {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(count).ok()?];
        let known = fill_at(&self.file, self.start.checked_add(address)?, &mut bytes).ok()?;
        (known == bytes.len()).then_some(bytes)
    }

    /// Calls `each` with the kind and the bytes of each message of the object header at an address.
    fn messages(&self, address: u64, mut each: impl FnMut(u16, Bytes<'_>)) -> Option<()> {
        let start = self.read(address, 6)?;
        let is_new = start.starts_with(b"OHDR");
        let flags = if is_new { start[5] } else { 0 };
        let first = if is_new {
            let times = if flags & 0x20 == 0 { 0 } else { 16 };
            let limits = if flags & 0x10 == 0 { 0 } else { 4 };
            let (offset, width) = (6 + times + limits, 1u64 << (flags & 3));
            let size = Bytes(&self.read(address.checked_add(offset)?, width)?).number(width as usize)?;
            (address.checked_add(offset + width)?, size)
        } else {
            let head = self.read(address, 12)?;
            (address.checked_add(16)?, Bytes(&head[8..]).number(4)?)
        };
        let mut blocks = vec![first];
        // A damaged header may lead in circles.
        let mut left = self.bytes;
        while let Some((address, size)) = blocks.pop() {
            left = left.checked_sub(size.max(16))?;
            let block = self.read(address, size)?;
            let mut bytes = Bytes(&block);
            if is_new && bytes.0.starts_with(b"OCHK") {
                // Its last bytes are a checksum.
                bytes = Bytes(bytes.0.get(4..block.len().checked_sub(4)?)?);
            }
            // What is left is a gap.
            while let Some((kind, message)) = Self::message(&mut bytes, is_new, flags) {
                if kind == MORE {
                    let mut message = message;
                    blocks.push((message.number(self.address)?, message.number(self.length)?));
                } else {
                    each(kind, message);
                }
            }
        }
        Some(())
    }

    fn message<'a>(bytes: &mut Bytes<'a>, is_new: bool, flags: u8) -> Option<(u16, Bytes<'a>)> {
        let kind = bytes.number(if is_new { 1 } else { 2 })? as u16;
        let size = bytes.number(2)? as usize;
        bytes.take(match (is_new, flags & 4) {
            (false, _) => 4,
            (true, 0) => 1,
            (true, _) => 3,
        })?;
        Some((kind, Bytes(bytes.take(size)?)))
    }

    /// The list of a virtual data set, which tells what it is made of. The outer none is a header that cannot
    /// be read; the inner one, another layout.
    pub(super) fn virtual_list(&self, object: u64) -> Option<Option<Vec<u8>>> {
        let mut place = None;
        self.messages(object, |kind, mut message| {
            if kind == LAYOUT
                && let Some(version) = message.number(1)
                && version >= 4
                && message.number(1) == Some(u64::from(VIRTUAL))
            {
                place = message.number(self.address).zip(message.number(4));
            }
        })?;
        let Some((collection, object)) = place else { return Some(None) };
        // Without a list it is made of nothing.
        let is_undefined = collection == u64::MAX >> (64 - 8 * self.address);
        if is_undefined { Some(Some(Vec::new())) } else { self.heap_object(collection, object).map(Some) }
    }

    /// An object of the collection of a global heap.
    fn heap_object(&self, collection: u64, object: u64) -> Option<Vec<u8>> {
        let head = (8 + self.length).next_multiple_of(8) as u64;
        let start = self.read(collection, head)?;
        let size = Bytes(start.get(8..)?).number(self.length)?;
        if !start.starts_with(b"GCOL") || object == 0 {
            return None;
        }
        let mut offset = head;
        while size.checked_sub(offset)? >= head {
            let start = self.read(collection.checked_add(offset)?, head)?;
            let mut bytes = Bytes(&start);
            let index = bytes.number(2)?;
            bytes.take(6)?;
            let size = bytes.number(self.length)?;
            if index == object {
                return self.read(collection.checked_add(offset + head)?, size);
            }
            // Free space counts its own head.
            let next = if index == 0 { size } else { head.checked_add(size.checked_next_multiple_of(8)?)? };
            offset = offset.checked_add(next.max(8))?;
        }
        None
    }

    /// The names of the raw files that hold the numbers of a data set.
    pub(super) fn raw_files(&self, object: u64) -> Option<Vec<String>> {
        let mut names = Vec::new();
        self.messages(object, |kind, mut message| {
            if kind == RAW_FILES {
                names.extend(self.names_of(&mut message).unwrap_or_default());
            }
        })?;
        Some(names)
    }

    fn names_of(&self, message: &mut Bytes<'_>) -> Option<Vec<String>> {
        message.take(6)?;
        let used = message.number(2)?;
        let heap = message.number(self.address)?;
        let widths = [self.length, self.length, self.address];
        let head = self.read(heap, (8 + widths.iter().sum::<usize>()) as u64)?;
        let mut head = Bytes(head.strip_prefix(b"HEAP")?);
        head.take(4)?;
        let [size, _, data] = widths.map(|width| head.number(width));
        let heap = self.read(data?, size?)?;
        (0..used)
            .map(|_| {
                let offset = usize::try_from(message.number(self.length)?).ok()?;
                message.take(2 * self.length)?;
                Bytes(heap.get(offset..)?).text()
            })
            .collect()
    }
}

/// Where the header of an object lies in its file.
pub(super) fn address(parent: &Location, name: &str) -> Option<u64> {
    // The binding shows the address of a reference in this way alone.
    let reference = format!("{:?}", parent.reference::<ObjectReference1>(name).ok()?);
    reference.rsplit_once(": ")?.1.trim_end_matches([' ', '}']).parse().ok()
}
