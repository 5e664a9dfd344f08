//! Device memory: pieces of the host's, each between two guard zones.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;

use rayspin_core::{Error, Result};

/// Bytes of a guard zone, and the alignment of pieces. It holds what a block of 1024 threads writes past the
/// end, 4 bytes each.
const GUARD: usize = 4096;
/// The byte of fresh memory: a NaN in every number type, −1 as an integer.
pub(crate) const POISON: u8 = 0xFF;

/// The pattern of a piece's guard zones: a NaN in either precision, and no NaN that programs write. Each
/// piece has another one: a NaN that a kernel reads beyond one array, adds to and writes beyond another keeps
/// its bits.
fn pattern(address: u64) -> [u8; 4] {
    let number = (address / GUARD as u64) as u32;
    (0xFFFF_F000 | (number.wrapping_mul(0x9E37_79B1) >> 20) & 0xFFE).to_le_bytes()
}

/// Memory that a kernel may use, as `checking.cc` has it; `written` has a byte for each byte, 0 where nobody
/// wrote, or is null.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) written: *mut u8,
}

#[derive(Debug)]
pub(crate) struct Heap {
    pieces: BTreeMap<u64, usize>,
    /// For each piece which bytes hold values, 1 or 0, where this is kept.
    written: Option<BTreeMap<u64, Box<[u8]>>>,
    used: u64,
    capacity: u64,
}

impl Heap {
    /// Memory of `capacity` bytes; `notes` says whether it is noted which bytes hold values.
    pub(crate) fn new(capacity: u64, notes: bool) -> Self {
        Self { pieces: BTreeMap::new(), written: notes.then(BTreeMap::new), used: 0, capacity }
    }

    pub(crate) fn left(&self) -> u64 {
        self.capacity - self.used
    }

    pub(crate) fn allocate(&mut self, bytes: u64) -> Result<u64> {
        let refused =
            |available| Error::Memory { what: "emulated GPU memory".to_owned(), needed: bytes, available };
        if bytes > self.left() {
            return Err(refused(self.left()));
        }
        let size = usize::try_from(bytes).map_err(|_| refused(self.left()))?;
        let layout = layout(size).ok_or_else(|| refused(self.left()))?;
        // SAFETY: the layout is not empty; both guards and the piece between them lie inside the allocation.
        unsafe {
            let base = alloc(layout);
            if base.is_null() {
                return Err(refused(0));
            }
            base.add(GUARD).write_bytes(POISON, size);
            let address = base.add(GUARD) as u64;
            let pattern = pattern(address);
            for offset in 0..GUARD {
                base.add(offset).write(pattern[offset % 4]);
                base.add(GUARD + size + offset).write(pattern[offset % 4]);
            }
            self.pieces.insert(address, size);
            if let Some(written) = &mut self.written {
                written.insert(address, vec![0; size].into());
            }
            self.used += bytes;
            Ok(address)
        }
    }

    /// Frees a piece. Errors: no piece at this address, or damaged guards.
    pub(crate) fn free(&mut self, address: u64) -> Result<()> {
        let damage = self.damage();
        let Some(size) = self.pieces.remove(&address) else {
            return Err(Error::value("emulated GPU memory", "an allocated address", format!("{address:#x}")));
        };
        self.used -= size as u64;
        self.written.iter_mut().for_each(|written| drop(written.remove(&address)));
        release(address, size);
        damage.map_or(Ok(()), |detail| Err(Error::Device { what: "emulated GPU memory".to_owned(), detail }))
    }

    /// Whether `bytes` bytes at `address` lie in one piece.
    pub(crate) fn holds(&self, address: u64, bytes: u64) -> bool {
        self.pieces.range(..=address).next_back().is_some_and(|(&start, &size)| {
            address.checked_add(bytes).is_some_and(|end| end <= start + size as u64)
        })
    }

    /// Addresses and bytes of all pieces, in order.
    pub(crate) fn pieces(&self) -> Vec<(u64, u64)> {
        self.pieces.iter().map(|(&address, &size)| (address, size as u64)).collect()
    }

    /// The piece that holds an address, and the place in it.
    fn place(&self, address: u64) -> Option<(u64, usize)> {
        let (&at, &size) = self.pieces.range(..=address).next_back()?;
        let inside = (address - at) as usize;
        (inside < size).then_some((at, inside))
    }

    /// Which bytes of a range inside a piece hold values.
    fn notes(&mut self, address: u64, bytes: u64) -> Option<&mut [u8]> {
        let (piece, inside) = self.place(address)?;
        self.written.as_mut()?.get_mut(&piece)?.get_mut(inside..inside + bytes as usize)
    }

    /// Notes that a range holds values.
    pub(crate) fn written(&mut self, address: u64, bytes: u64) {
        self.notes(address, bytes).into_iter().for_each(|notes| notes.fill(1));
    }

    /// Notes that a range is a copy of another.
    pub(crate) fn copied(&mut self, from: u64, to: u64, bytes: u64) {
        let notes = self.notes(from, bytes).map(|notes| notes.to_vec());
        match notes {
            Some(notes) => self.notes(to, bytes).into_iter().for_each(|own| own.copy_from_slice(&notes)),
            None => self.written(to, bytes),
        }
    }

    /// All pieces, pinned memory and variables, with what is noted of their bytes, by address.
    pub(crate) fn ranges(&mut self, pinned: &[(u64, u64)], variables: &[(String, u64, u64)]) -> Vec<Range> {
        let Self { pieces, written, .. } = self;
        let mut notes = |address: &u64| {
            written.as_mut().and_then(|notes| notes.get_mut(address)).map(|own| own.as_mut_ptr())
        };
        let mut ranges: Vec<_> = pieces
            .iter()
            .map(|(&begin, &bytes)| Range {
                begin,
                end: begin + bytes as u64,
                written: notes(&begin).unwrap_or(std::ptr::null_mut()),
            })
            .collect();
        let variables = variables.iter().map(|&(_, begin, bytes)| (begin, bytes));
        ranges.extend(variables.chain(pinned.iter().copied()).map(|(begin, bytes)| Range {
            begin,
            end: begin + bytes,
            written: std::ptr::null_mut(),
        }));
        ranges.retain(|range| range.end > range.begin);
        ranges.sort_by_key(|range| range.begin);
        ranges
    }

    /// Describes writes outside a piece since the last call, and restores the guards.
    pub(crate) fn damage(&self) -> Option<String> {
        let mut damage = None;
        for (&address, &size) in &self.pieces {
            // SAFETY: both guards belong to the piece's allocation; nothing else refers to them.
            let (before, after) = unsafe {
                (
                    std::slice::from_raw_parts_mut((address as usize - GUARD) as *mut u8, GUARD),
                    std::slice::from_raw_parts_mut((address as usize + size) as *mut u8, GUARD),
                )
            };
            let pattern = pattern(address);
            let place = match (damaged(after, pattern), damaged(before, pattern)) {
                (Some(distance), _) => Some(format!("{distance} bytes past the end")),
                (None, Some(distance)) => Some(format!("{} bytes before the beginning", GUARD - distance)),
                (None, None) => None,
            };
            if let Some(place) = place {
                damage.get_or_insert_with(|| format!("a write {place} of an array of {size} bytes"));
                for zone in [before, after] {
                    zone.iter_mut().zip(pattern.iter().cycle()).for_each(|(b, &p)| *b = p);
                }
            }
        }
        damage
    }
}

/// The first changed byte of a guard zone.
fn damaged(zone: &[u8], pattern: [u8; 4]) -> Option<usize> {
    if zone.chunks_exact(4).all(|four| four == pattern) {
        return None;
    }
    zone.iter().zip(pattern.iter().cycle()).position(|(b, p)| b != p)
}

impl Drop for Heap {
    fn drop(&mut self) {
        for (&address, &size) in &self.pieces {
            release(address, size);
        }
    }
}

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(2 * GUARD)?, GUARD).ok()
}

fn release(address: u64, size: usize) {
    if let Some(layout) = layout(size) {
        // SAFETY: `allocate` made it with the same layout.
        unsafe { dealloc((address as usize - GUARD) as *mut u8, layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_beyond_one_piece_is_seen_beyond_another() {
        let mut heap = Heap::new(1 << 20, false);
        let pieces: Vec<u64> = (0..8).map(|_| heap.allocate(100).unwrap()).collect();
        for pair in pieces.windows(2) {
            let beyond = |address: u64| (address + 100) as *mut f32;
            // SAFETY: the guards belong to the pieces' allocations.
            unsafe { beyond(pair[1]).write_unaligned(beyond(pair[0]).read_unaligned() + 1.0) };
            assert!(heap.damage().unwrap().contains("0 bytes past the end"));
        }
    }

    #[test]
    fn writes_outside_are_seen_and_inside_are_not() {
        let mut heap = Heap::new(1 << 20, false);
        let address = heap.allocate(100).unwrap();
        let byte = |offset: isize| (address as isize + offset) as *mut u8;
        assert!(heap.holds(address, 100) && heap.holds(address + 40, 60) && !heap.holds(address + 41, 60));
        assert!(!heap.holds(address - 1, 1) && !heap.holds(address, u64::MAX));
        // SAFETY: the piece and its guards belong to one allocation.
        unsafe {
            assert_eq!(*byte(0), POISON);
            byte(0).write(1);
            byte(99).write(1);
            assert_eq!(heap.damage(), None);
            byte(103).write(!byte(103).read());
            assert!(heap.damage().unwrap().contains("3 bytes past the end of an array of 100 bytes"));
            assert_eq!(heap.damage(), None);
            byte(-4).write(!byte(-4).read());
        }
        assert!(heap.free(address).unwrap_err().to_string().contains("4 bytes before the beginning"));
        assert!(heap.free(address).is_err());
        assert_eq!(heap.left(), 1 << 20);
        assert!(matches!(heap.allocate(2 << 20), Err(Error::Memory { .. })));
    }
}
