//! A check that HDF5 itself lacks. A global heap holds strings and arrays of variable length. HDF5's walk
//! through the heap never ends when the free block of a damaged heap states a length of 0 (seen in HDF5
//! 2.2.0, `H5HG__cache_heap_deserialize`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memchr::memmem;
use rayon::prelude::*;

use super::fill_at;

/// How a heap collection starts.
const MAGIC: &[u8; 4] = b"GCOL";
/// Read at a time by a thread, small enough for its second cache.
const STRETCH: usize = 1 << 18;
/// Stretches that a thread reads one after the other.
const TOGETHER: usize = 16;
/// The smallest collection, as HDF5 has it.
const SMALLEST: u64 = 4096;

/// The byte at which a heap lies that HDF5 would read for ever, if there is one. `start` is where the
/// superblock is.
pub(super) fn endless(file: &File, start: u64) -> io::Result<Option<u64>> {
    let Some(width) = length_width(file, start)? else {
        return Ok(None);
    };
    let finder = memmem::Finder::new(MAGIC);
    let length = file.metadata()?.len();
    // The magic may lie across a boundary.
    let stretch = |buffer: &mut Vec<u8>, index: usize| -> io::Result<Option<u64>> {
        buffer.resize(STRETCH + MAGIC.len() - 1, 0);
        let offset = index as u64 * STRETCH as u64;
        let known = fill_at(file, offset, buffer)?;
        let near = Near { file, offset, bytes: &buffer[..known] };
        for position in finder.find_iter(near.bytes) {
            let address = offset + position as u64;
            if walks_for_ever(&near, address, width)? {
                return Ok(Some(address));
            }
        }
        Ok(None)
    };
    // Fresh memory costs as much as reading does: a thread reads into the same again.
    let count = usize::try_from(length.div_ceil(STRETCH as u64)).map_err(io::Error::other)?;
    let stretches = (0..count).into_par_iter().with_min_len(TOGETHER);
    let heaps = stretches.map_init(Vec::new, stretch);
    heaps.find_first(|heap| !matches!(heap, Ok(None))).unwrap_or(Ok(None))
}

/// Bytes of a length field, from the superblock; none when HDF5 will refuse the file for it.
fn length_width(file: &File, start: u64) -> io::Result<Option<u64>> {
    let mut block = [0u8; 16];
    if fill_at(file, start, &mut block)? < block.len() {
        return Ok(None);
    }
    let width = match block[8] {
        0 | 1 => block[14],
        2 | 3 => block[10],
        _ => return Ok(None),
    };
    Ok(matches!(width, 2 | 4 | 8).then_some(u64::from(width)))
}

/// Follows the blocks of the collection at `address` as HDF5 does.
fn walks_for_ever(near: &Near<'_>, address: u64, width: u64) -> io::Result<bool> {
    let head = aligned(8 + width);
    let Some(start) = near.read(address, head)? else {
        return Ok(false);
    };
    let size = number(&start[8..], width);
    if start[4] != 1 || size < SMALLEST {
        return Ok(false);
    }
    let Some(end) = address.checked_add(size) else {
        return Ok(false);
    };
    let mut place = address + head;
    while place < end && end - place >= head {
        let Some(block) = near.read(place, head)? else {
            return Ok(false);
        };
        let index = u16::from_le_bytes([block[0], block[1]]);
        let length = number(&block[8..], width);
        let need = match index {
            0 => length,
            // The sum wraps as it does in C.
            _ => head.wrapping_add(length.wrapping_add(7) / 8 * 8),
        };
        if need == 0 {
            return Ok(true);
        }
        match place.checked_add(need) {
            Some(next) if next <= end => place = next,
            _ => return Ok(false),
        }
    }
    Ok(false)
}

fn aligned(bytes: u64) -> u64 {
    bytes.div_ceil(8) * 8
}

fn number(bytes: &[u8], width: u64) -> u64 {
    bytes.iter().take(width as usize).rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// A file and a part of its bytes, read before.
struct Near<'a> {
    file: &'a File,
    /// Where the bytes begin.
    offset: u64,
    bytes: &'a [u8],
}

impl Near<'_> {
    /// A few bytes at a place, none when the file ends before.
    fn read(&self, place: u64, count: u64) -> io::Result<Option<[u8; 16]>> {
        let mut bytes = [0; 16];
        let wanted = &mut bytes[..count as usize];
        let known =
            place.checked_sub(self.offset).and_then(|from| self.bytes.get(usize::try_from(from).ok()?..));
        if let Some(known) = known.and_then(|known| known.get(..wanted.len())) {
            wanted.copy_from_slice(known);
            return Ok(Some(bytes));
        }
        match self.file.read_exact_at(wanted, place) {
            Ok(()) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(e) => Err(e),
        }
    }
}
