//! Acquisitions read by positioned reads on all threads. The HDF5 library reads one at a time.
//!
//! HDF5 tells where the records lie. A record has the head, and for each array of variable length 16 bytes:
//! the number of elements (4), the address of a collection in the global heap (8), and the number of an
//! object in it (4). A collection starts with `GCOL`, version 1 and its size in 8 bytes at 8. Objects follow,
//! each behind 16 bytes: its number (2), references (2), 4 unused, its size (8); they are padded to multiples
//! of 8. Number 0 is free space. (HDF5 File Format Specification 3.0, III.E and VIII.)
//!
//! Only this layout is read here. Whatever differs, however little, is left to the library, whose errors
//! users then see.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use hdf5::datatype::ByteOrder;
use hdf5::types::{CompoundType, FloatSize, TypeDescriptor};
use hdf5::{Dataset, Datatype, H5Type};
use rayon::prelude::*;
use rayspin_device::cpu::try_reserve;

use super::layout::Head;
use super::references::{Piece, pieces};
use crate::hdf5_file::{is_filtered, is_plain, same_file};

/// Bytes of an array of variable length in a record.
const REFERENCE: usize = 16;
/// Bytes before a collection's objects, and before each of them.
const HEADER: usize = 16;
/// The smallest collection, and the largest that HDF5 enlarges for another object.
const SMALLEST: u64 = 4096;
const SHARED: u64 = 64 << 10;
/// Objects of a collection, behind the wanted ones, that are looked at.
const UNKNOWN: usize = 256;
/// Collections that lie closer than this are read at once.
const GAP: u64 = 16 << 10;
/// Records of one read.
const RECORDS: usize = 1 << 10;

/// Where an array of variable length lies.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Reference {
    count: u32,
    object: u32,
    collection: u64,
}

/// Bytes in memory that tell where an acquisition lies.
pub(super) const EACH_BYTES: usize = size_of::<[Reference; 2]>() + size_of::<Piece>();

/// Bytes of a record that are a number of [`Head`].
struct Copied {
    from: usize,
    bytes: usize,
    to: usize,
}

/// The acquisitions of a file whose layout is plain.
pub(super) struct Direct {
    file: File,
    /// Bytes of a record.
    record: usize,
    /// Where the trajectory and the samples are in a record.
    traj: Option<usize>,
    data: usize,
    /// Numbers of an element of the samples: 2 where it is a complex number.
    numbers: usize,
    head: Vec<Copied>,
    pieces: Vec<Piece>,
    arrays: Vec<[Reference; 2]>,
}

/// The arrays of some acquisitions. The memory serves again for others: fresh memory costs as much as reading
/// it does.
#[derive(Default)]
pub(super) struct Arrays {
    bytes: Bytes,
    /// The trajectory and the samples of each acquisition.
    places: Vec<[Range<usize>; 2]>,
    collections: Vec<(u64, u64)>,
    spans: Vec<Range<u64>>,
    objects: Vec<(u64, u32, Range<usize>)>,
}

impl Arrays {
    /// The trajectories and the samples, in the order in which they were named.
    pub(super) fn iter(&self) -> impl Iterator<Item = [&[f32]; 2]> {
        let bytes = self.bytes.read();
        self.places
            .iter()
            .map(|places| [0, 1].map(|array| bytemuck::cast_slice(&bytes[places[array].clone()])))
    }
}

/// Bytes of a file. The first `used` bytes of the memory are in use.
#[derive(Default)]
struct Bytes {
    buffer: Vec<u8>,
    used: usize,
}

impl Bytes {
    /// What was read.
    fn read(&self) -> &[u8] {
        &self.buffer[..self.used]
    }

    /// Room for `more` bytes behind those that were read.
    fn reserve(&mut self, more: usize) -> Option<()> {
        let end = self.used.checked_add(more)?;
        if end > self.buffer.len() {
            let more = end - self.buffer.len();
            try_reserve("samples of acquisitions", &mut self.buffer, more).ok()?;
            self.buffer.resize(end, 0);
        }
        Some(())
    }

    /// Reads bytes of a file behind those that were read.
    fn append(&mut self, file: &File, range: Range<u64>) -> Option<()> {
        let more = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        self.reserve(more)?;
        file.read_exact_at(&mut self.buffer[self.used..self.used + more], range.start).ok()?;
        self.used += more;
        Some(())
    }

    /// Goes on at a multiple of 8.
    fn align(&mut self) -> Option<()> {
        let end = self.used.next_multiple_of(8);
        self.reserve(end - self.used)?;
        self.used = end;
        Some(())
    }
}

impl Direct {
    /// `count` records of a dataset, None where their layout is another.
    pub(super) fn new(path: &Path, dataset: &Dataset, count: usize) -> Option<Self> {
        let ty = dataset.dtype().ok()?;
        let name = dataset.filename();
        let plain = ty.byte_order() == ByteOrder::LittleEndian
            && cfg!(target_endian = "little")
            && !is_filtered(dataset)
            && same_file(path, Path::new(&name));
        if !plain {
            return None;
        }
        let descriptor = ty.to_descriptor().ok()?;
        // A descriptor knows no bits: a number of four bytes may have 24 of them, and the library masks the
        // others.
        if Datatype::from_descriptor(&descriptor).ok()? != ty {
            return None;
        }
        let TypeDescriptor::Compound(record) = descriptor else { return None };
        let member = |name: &str| record.fields.iter().find(|field| field.name == name);
        let TypeDescriptor::Compound(stored) = &member("head")?.ty else { return None };
        let TypeDescriptor::Compound(wanted) = Head::type_descriptor() else { return None };
        let mut head = Vec::new();
        copies(stored, &wanted, member("head")?.offset, 0, &mut head)?;
        let numbers = numbers_of(&member("data")?.ty)?;
        let traj = match member("traj") {
            None => None,
            Some(traj) if numbers_of(&traj.ty)? == 1 => Some(traj.offset),
            Some(_) => return None,
        };
        let file = File::open(path).ok()?;
        // A record that the file cannot hold: buffers have its size.
        if (record.size as u64).checked_mul(count as u64)? > file.metadata().ok()?.len() {
            return None;
        }
        if !is_plain(&file).unwrap_or(false) {
            return None;
        }
        let mut pieces = pieces(dataset, record.size as u64, count as u64).ok()?;
        if let Some(chunk) = dataset.chunk() {
            let bytes = chunk.iter().product::<usize>().checked_mul(record.size)? as u64;
            if pieces.iter().any(|piece| piece.bytes != bytes) {
                return None;
            }
        }
        pieces.sort_unstable_by_key(|piece| piece.first);
        let mut next = 0;
        for piece in &mut pieces {
            let left = (count as u64).checked_sub(piece.first)?;
            piece.bytes = piece.bytes.min(left.checked_mul(record.size as u64)?);
            if piece.first != next || piece.bytes % record.size as u64 != 0 {
                return None;
            }
            next += piece.bytes / record.size as u64;
        }
        let data = member("data")?.offset;
        let last = data.max(traj.unwrap_or(0)).checked_add(REFERENCE)?;
        let complete = next == count as u64 && last <= record.size;
        let arrays = Vec::new();
        complete.then_some(Self { file, record: record.size, traj, data, numbers, head, pieces, arrays })
    }

    /// Every head. Where the arrays lie is kept for [`Self::arrays`].
    pub(super) fn with_heads(mut self) -> Option<(Self, Vec<Head>)> {
        // Some records of one piece, or some pieces.
        let mut parts: Vec<(usize, usize)> = Vec::new();
        let mut start = 0;
        while start < self.pieces.len() {
            let (mut end, mut records) = (start, 0);
            while end < self.pieces.len() && (end == start || records < RECORDS) {
                records += self.pieces[end].bytes as usize / self.record;
                end += 1;
            }
            parts.push((start, end));
            start = end;
        }
        let read = |&(start, end): &(usize, usize)| -> Option<Vec<(Head, [Reference; 2])>> {
            let mut out = Vec::new();
            for piece in &self.pieces[start..end] {
                let (mut address, mut left) = (piece.address, piece.bytes as usize / self.record);
                try_reserve("heads of acquisitions", &mut out, left).ok()?;
                let mut bytes = vec![0; self.record * left.min(RECORDS)];
                while left > 0 {
                    let now = left.min(RECORDS);
                    let bytes = &mut bytes[..now * self.record];
                    self.file.read_exact_at(bytes, address).ok()?;
                    out.extend(bytes.chunks_exact(self.record).map(|record| self.decoded(record)));
                    address = address.checked_add(bytes.len() as u64)?;
                    left -= now;
                }
            }
            Some(out)
        };
        let records: Vec<_> = parts.par_iter().map(read).collect::<Option<_>>()?;
        let (heads, arrays) = records.into_iter().flatten().unzip();
        self.arrays = arrays;
        Some((self, heads))
    }

    fn decoded(&self, record: &[u8]) -> (Head, [Reference; 2]) {
        let mut head = [0u8; size_of::<Head>()];
        for &Copied { from, bytes, to } in &self.head {
            head[to..to + bytes].copy_from_slice(&record[from..from + bytes]);
        }
        let reference = |offset: usize| {
            let number = |from: usize, bytes: usize| {
                let bytes = &record[offset + from..offset + from + bytes];
                bytes.iter().rev().fold(0, |value: u64, byte| value << 8 | u64::from(*byte))
            };
            Reference { count: number(0, 4) as u32, collection: number(4, 8), object: number(12, 4) as u32 }
        };
        let traj = self.traj.map(reference).unwrap_or_default();
        (bytemuck::pod_read_unaligned(&head), [traj, reference(self.data)])
    }

    /// The numbers of elements that an acquisition's trajectory and samples state.
    pub(super) fn lengths(&self, index: usize) -> [u32; 2] {
        self.arrays.get(index).map_or([0; 2], |[traj, data]| [traj.count, data.count])
    }

    /// Reads the arrays of some acquisitions. None where something is not as it should be.
    pub(super) fn arrays(&self, indices: Range<usize>, out: &mut Arrays) -> Option<()> {
        let wanted = self.arrays.get(indices)?;
        let Arrays { bytes: read, places, collections, spans, objects } = out;
        read.used = 0;
        collections.clear();
        spans.clear();
        objects.clear();
        places.clear();
        places.resize(wanted.len(), [0..0, 0..0]);
        // The library reads the object of an empty array, too, where there is one.
        if wanted.iter().flatten().any(|reference| reference.count == 0 && reference.collection != 0) {
            return None;
        }
        // Collections in the order of the file, each with the bytes that are surely in it.
        let bytes_of = |array: usize, reference: &Reference| {
            let numbers = if array == 1 { self.numbers } else { 1 };
            4 * numbers * reference.count as usize
        };
        for references in wanted {
            for (array, reference) in references.iter().enumerate().filter(|(_, r)| r.count > 0) {
                collections.push((
                    reference.collection,
                    (HEADER + bytes_of(array, reference).next_multiple_of(8)) as u64,
                ));
            }
        }
        collections.sort_unstable();
        collections.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        for &(address, bytes) in collections.iter() {
            let end = address.checked_add(bytes.checked_add(HEADER as u64)?.next_multiple_of(SMALLEST))?;
            match spans.last_mut() {
                Some(span) if address <= span.end.checked_add(GAP)? => span.end = span.end.max(end),
                _ => spans.push(address..end),
            }
        }
        let total: u64 = spans.iter().map(|span| span.end - span.start).sum();
        let file_bytes = self.file.metadata().ok()?.len();
        if total > file_bytes.checked_add(SMALLEST)? {
            return None;
        }
        read.reserve(usize::try_from(total).ok()?)?;
        let mut next = collections.iter().peekable();
        for span in spans.iter() {
            // The last collection may be smaller than expected, at the end of the file.
            let mut end = span.end.min(file_bytes);
            let start = read.used;
            read.append(&self.file, span.start..end)?;
            while let Some(&(address, bytes)) = next.next_if(|(address, _)| *address < span.end) {
                let offset = start + (address - span.start) as usize;
                let size = size_of_collection(address, read.read().get(offset..)?)?;
                // Objects of other acquisitions may lie before the wanted ones.
                let known = address.checked_add(size)?.min(address.checked_add(bytes.max(SHARED))?);
                if known > end {
                    read.append(&self.file, end..known)?;
                    end = known;
                }
                let within = read.used;
                self.walk(address, size, &read.read()[offset..], |object, range| {
                    let place = offset.checked_add(range.start)?..offset.checked_add(range.end)?;
                    objects.push((address, object, if place.end <= within { place } else { 0..0 }));
                    Some(())
                })?;
            }
            // Objects stay aligned to 4, as in the file.
            read.align()?;
        }
        objects.sort_unstable_by_key(|&(address, object, _)| (address, object));
        let repeated = |pair: &[(u64, u32, Range<usize>)]| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1);
        if objects.windows(2).any(repeated) {
            return None;
        }
        for (references, places) in wanted.iter().zip(places) {
            for (array, reference) in references.iter().enumerate().filter(|(_, r)| r.count > 0) {
                let key = (reference.collection, reference.object);
                let index =
                    objects.binary_search_by_key(&key, |&(address, object, _)| (address, object)).ok()?;
                let place = objects[index].2.clone();
                if place.len() != bytes_of(array, reference) || place.end > read.used {
                    return None;
                }
                // Free space of an odd length moves the objects behind it, and numbers are taken where they
                // lie.
                if !place.start.is_multiple_of(align_of::<f32>()) {
                    return None;
                }
                places[array] = place;
            }
        }
        // The buffer of bytes may start anywhere.
        (read.buffer.as_ptr() as usize).is_multiple_of(4).then_some(())
    }

    /// Names every object of a collection of `size` bytes, whose first are `known`, and checks all that the
    /// library checks.
    fn walk(
        &self,
        address: u64,
        size: u64,
        known: &[u8],
        mut visit: impl FnMut(u32, Range<usize>) -> Option<()>,
    ) -> Option<()> {
        let (mut place, mut unknown) = (HEADER as u64, 0);
        while size - place >= HEADER as u64 {
            let mut own = [0; HEADER];
            let offset = usize::try_from(place).ok()?;
            match known.get(offset..).and_then(|bytes| bytes.get(..HEADER)) {
                Some(bytes) => own.copy_from_slice(bytes),
                None if unknown < UNKNOWN => {
                    unknown += 1;
                    self.file.read_exact_at(&mut own, address.checked_add(place)?).ok()?;
                }
                None => return None,
            }
            let (number, bytes) = (u32::from(u16::from_le_bytes([own[0], own[1]])), long(&own[8..])?);
            let need = match number {
                0 => bytes,
                _ => bytes.checked_next_multiple_of(8)?.checked_add(HEADER as u64)?,
            };
            let next = place.checked_add(need)?;
            if need == 0 || next > size {
                return None;
            }
            if number > 0 {
                let start = offset.checked_add(HEADER)?;
                visit(number, start..start.checked_add(usize::try_from(bytes).ok()?)?)?;
            }
            place = next;
        }
        // The file must hold all of it.
        let mut last = [0];
        self.file.read_exact_at(&mut last, address.checked_add(size - 1)?).ok()
    }
}

fn long(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// The size of the collection at an address. It begins with the bytes `known`.
fn size_of_collection(address: u64, known: &[u8]) -> Option<u64> {
    let head = known.get(..HEADER)?;
    let size = long(&head[8..])?;
    (&head[..5] == b"GCOL\x01" && size >= SMALLEST && address.is_multiple_of(4)).then_some(size)
}

/// The f32 numbers of an element of an array of variable length: 1, or 2 of a complex number.
fn numbers_of(ty: &TypeDescriptor) -> Option<usize> {
    let TypeDescriptor::VarLenArray(base) = ty else { return None };
    let single = TypeDescriptor::Float(FloatSize::U4);
    match base.as_ref() {
        number if *number == single => Some(1),
        TypeDescriptor::Compound(pair) if pair.size == 8 => {
            let named = |index: usize, names: &[&str]| {
                let field = pair.fields.iter().find(|field| field.offset == 4 * index);
                field.is_some_and(|field| field.ty == single && names.contains(&field.name.as_str()))
            };
            let complex =
                pair.fields.len() == 2 && named(0, &["real", "re", "r"]) && named(1, &["imag", "im", "i"]);
            complex.then_some(2)
        }
        _ => None,
    }
}

/// Lists the bytes of a compound that become each number of another one. Members are found by name. No number
/// becomes narrower or changes its kind.
fn copies(
    from: &CompoundType,
    to: &CompoundType,
    from_base: usize,
    to_base: usize,
    out: &mut Vec<Copied>,
) -> Option<()> {
    for wanted in &to.fields {
        let Some(stored) = from.fields.iter().find(|field| field.name == wanted.name) else { continue };
        let (from, to) = (from_base + stored.offset, to_base + wanted.offset);
        copy(&stored.ty, &wanted.ty, from, to, out)?;
    }
    Some(())
}

fn copy(
    stored: &TypeDescriptor,
    wanted: &TypeDescriptor,
    from: usize,
    to: usize,
    out: &mut Vec<Copied>,
) -> Option<()> {
    use TypeDescriptor::{Compound, FixedArray, Float, Unsigned};
    match (stored, wanted) {
        (Unsigned(one), Unsigned(other)) if *one as usize <= *other as usize => {
            out.push(Copied { from, bytes: *one as usize, to });
        }
        (Float(one), Float(other)) if one == other => out.push(Copied { from, bytes: *one as usize, to }),
        (FixedArray(one, n), FixedArray(other, m)) if n == m => {
            for index in 0..*n {
                copy(one, other, from + index * one.size(), to + index * other.size(), out)?;
            }
        }
        (Compound(one), Compound(other)) => copies(one, other, from, to, out)?,
        _ => return None,
    }
    Some(())
}
