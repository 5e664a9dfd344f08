//! What a virtual data set is made of: parts of data sets, in this file or in others.
//!
//! The list is a version (0 or 1), the number of entries, and the entries. An entry names a file and a data
//! set, and states the selection in that data set and the selection in the virtual one (HDF5 File Format
//! Specification 3.0, VII.C and VIII.B). HDF5 2.0 leaves out names that entries share.

use std::path::Path;
use std::sync::Arc;

use hdf5::Dataset;

use super::object::{Bytes, Metadata, address};
use crate::error::{Error, Result};

/// Flags of an entry of version 1: the file and the data set that an earlier entry names, and the file of the
/// virtual data set itself.
const FILE_SHARED: u64 = 1;
const DATASET_SHARED: u64 = 2;
const SAME_FILE: u64 = 4;
/// The most axes that HDF5 has.
const MOST_AXES: u64 = 32;
/// The most files that names with `%b` stand for, and the longest such name: a damaged shape may ask for any
/// number of them.
const MOST_BLOCKS: u64 = 1 << 16;
const LONGEST: usize = 4096;
/// A count or a length of a block without an end.
const UNLIMITED: u64 = u64::MAX;

/// Places along an axis: `count` blocks of `block` places, each `step` after the one before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hyperslab {
    pub(super) start: u64,
    pub(super) step: u64,
    pub(super) count: u64,
    pub(super) block: u64,
}

impl Hyperslab {
    fn of(start: u64, block: u64) -> Self {
        Self { start, step: block, count: 1, block }
    }

    pub(super) fn is_unlimited(self) -> bool {
        self.count == UNLIMITED || self.block == UNLIMITED
    }

    /// The place behind the last one.
    pub(super) fn end(self) -> u64 {
        let last = self.count.saturating_sub(1).saturating_mul(self.step);
        self.start.saturating_add(last).saturating_add(self.block)
    }

    pub(super) fn places(self) -> u64 {
        self.count.saturating_mul(self.block)
    }

    /// The same with an end, where it has none: as far as an axis of `size` places has them.
    pub(super) fn within(self, size: u64) -> Self {
        let left = size.saturating_sub(self.start);
        match self {
            Self { block: UNLIMITED, .. } => Self::of(self.start, left),
            Self { count: UNLIMITED, .. } => Self { count: left.div_ceil(self.step.max(1)), ..self },
            _ => self,
        }
    }

    /// The same with `places` places, where it has no end.
    pub(super) fn of_places(self, places: u64) -> Self {
        match self {
            Self { block: UNLIMITED, .. } => Self::of(self.start, places),
            Self { count: UNLIMITED, .. } => Self { count: places.div_ceil(self.block.max(1)), ..self },
            _ => self,
        }
    }
}

/// Numbers of a data set.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Selection {
    All,
    None,
    /// Blocks, each with a run along each axis.
    Blocks(Vec<Vec<Hyperslab>>),
}

impl Selection {
    fn read(bytes: &mut Bytes<'_>) -> Option<Self> {
        let (kind, version) = (bytes.number(4)?, bytes.number(4)?);
        if kind != 2 {
            bytes.take(8)?;
            // Points are no part of virtual data sets.
            return match kind {
                0 => Some(Self::None),
                3 => Some(Self::All),
                _ => None,
            };
        }
        let (is_regular, width) = match version {
            1 => {
                bytes.take(8)?;
                (false, 4)
            }
            2 => {
                let flags = bytes.number(1)?;
                bytes.take(4)?;
                (flags & 1 == 1, 8)
            }
            3 => (bytes.number(1)? & 1 == 1, bytes.number(1)? as usize),
            _ => return None,
        };
        let axes = bytes.number(4)?;
        if ![2, 4, 8].contains(&width) || axes == 0 || axes > MOST_AXES {
            return None;
        }
        let number = |bytes: &mut Bytes<'_>| bytes.number(width);
        if is_regular {
            // All bits of a number stand for no end.
            let count = |bytes: &mut Bytes<'_>| {
                let value = number(bytes)?;
                Some(if value == UNLIMITED >> (64 - 8 * width) { UNLIMITED } else { value })
            };
            let run = |_| {
                let [start, step] = [number(bytes)?, number(bytes).filter(|step| *step > 0)?];
                Some(Hyperslab { start, step, count: count(bytes)?, block: count(bytes)? })
            };
            return Some(Self::Blocks(vec![(0..axes).map(run).collect::<Option<_>>()?]));
        }
        let blocks = number(bytes)?;
        let mut block = || {
            let mut corner = || (0..axes).map(|_| number(bytes)).collect::<Option<Vec<u64>>>();
            let [starts, lasts] = [corner()?, corner()?];
            let run = |(start, last): (u64, u64)| {
                Some(Hyperslab::of(start, last.checked_sub(start)?.checked_add(1)?))
            };
            starts.into_iter().zip(lasts).map(run).collect::<Option<Vec<Hyperslab>>>()
        };
        (0..blocks).map(|_| block()).collect::<Option<Vec<_>>>().map(Self::Blocks)
    }

    /// How many numbers of a data set of this shape are selected.
    pub(super) fn numbers(&self, shape: &[usize]) -> u64 {
        match self {
            Self::All => shape.iter().fold(1, |count, &size| count.saturating_mul(size as u64)),
            Self::None => 0,
            Self::Blocks(blocks) => blocks.iter().fold(0, |count, runs| {
                let each = runs.iter().zip(shape).map(|(run, &size)| run.within(size as u64).places());
                count.saturating_add(each.fold(1, u64::saturating_mul))
            }),
        }
    }

    /// The axis without an end.
    pub(super) fn unlimited(&self) -> Option<(usize, Hyperslab)> {
        match self {
            Self::Blocks(blocks) => blocks
                .iter()
                .flat_map(|runs| runs.iter().copied().enumerate())
                .find(|(_, run)| run.is_unlimited()),
            Self::All | Self::None => None,
        }
    }
}

/// A part of a data set that is a part of a virtual data set.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Source {
    /// As the file states it; `.` is the file of the virtual data set.
    pub(super) file: Arc<str>,
    pub(super) dataset: Arc<str>,
    pub(super) from: Arc<Selection>,
    pub(super) to: Selection,
}

impl Source {
    /// The files of a name with `%b`, one of each block, in their order; the file of another name.
    pub(super) fn files(&self) -> impl Iterator<Item = Arc<str>> {
        let count = if has_blocks(&self.file) { MOST_BLOCKS } else { 1 };
        let is_short = self.file.len() <= LONGEST || count == 1;
        (0..count).take_while(move |_| is_short).map(|block| named(&self.file, block))
    }

    /// The sources that an entry stands for in a data set of this shape: names with `%b` stand for one of
    /// each block. None where these are too many.
    fn expanded(self, shape: &[usize]) -> Option<Vec<Self>> {
        let is_pattern = [&self.file, &self.dataset].iter().any(|name| has_blocks(name));
        let unlimited = self.to.unlimited().filter(|_| is_pattern);
        let Some((axis, run)) = unlimited else {
            let [file, dataset] = [&self.file, &self.dataset].map(|name| named(name, 0));
            return Some(vec![Self { file, dataset, ..self }]);
        };
        let source = |block: u64| {
            let [file, dataset] = [&self.file, &self.dataset].map(|name| named(name, block));
            let mut to = self.to.clone();
            if let Selection::Blocks(blocks) = &mut to {
                let start = run.start.saturating_add(block.saturating_mul(run.step));
                blocks.iter_mut().for_each(|runs| runs[axis] = Hyperslab::of(start, run.block));
            }
            Self { file, dataset, from: self.from.clone(), to }
        };
        let size = shape.get(axis).map_or(0, |&size| size as u64);
        // The first must be there, also where the shape says that none is.
        let count = size.saturating_sub(run.start).div_ceil(run.step.max(1)).max(1);
        let is_short = self.file.len().max(self.dataset.len()) <= LONGEST;
        (count <= MOST_BLOCKS && is_short).then(|| (0..count).map(source).collect())
    }
}

fn has_blocks(name: &str) -> bool {
    name.replace("%%", "").contains("%b")
}

/// A name in the list, with the number of a block for each `%b`.
fn named(name: &Arc<str>, block: u64) -> Arc<str> {
    if !name.contains('%') {
        return name.clone();
    }
    let parts = name.split("%%").map(|part| part.replace("%b", &block.to_string()));
    parts.collect::<Vec<_>>().join("%").into()
}

/// The entries of a list; none where it is damaged.
fn entries(list: &[u8], length: usize) -> Option<Vec<Source>> {
    let mut bytes = Bytes(list);
    if list.is_empty() {
        return Some(Vec::new());
    }
    let version = bytes.number(1)?;
    let count = bytes.number(length)?;
    let mut sources: Vec<Source> = Vec::new();
    for _ in 0..count {
        let flags = if version == 0 { 0 } else { bytes.number(1)? };
        let file = match flags {
            flags if flags & SAME_FILE != 0 => ".".into(),
            flags if flags & FILE_SHARED != 0 => {
                sources.get(usize::try_from(bytes.number(length)?).ok()?)?.file.clone()
            }
            _ => bytes.text()?.into(),
        };
        let dataset = match flags & DATASET_SHARED {
            0 => bytes.text()?.into(),
            _ => sources.get(usize::try_from(bytes.number(length)?).ok()?)?.dataset.clone(),
        };
        let [from, to] = [Selection::read(&mut bytes)?, Selection::read(&mut bytes)?];
        sources.push(Source { file, dataset, from: from.into(), to });
    }
    Some(sources)
}

/// The list of the virtual data set whose header lies at an address; none of other data sets.
///
/// Errors: a header or a list that cannot be read.
pub(super) fn listed(path: &Path, file: &Metadata, header: u64, name: &str) -> Result<Option<Vec<Source>>> {
    let list = file.virtual_list(header).map(|list| list.map(|list| entries(&list, file.length)));
    match list {
        Some(None) => Ok(None),
        Some(Some(Some(sources))) => Ok(Some(sources)),
        None | Some(Some(None)) => Err(refused(path, name, "a damaged one")),
    }
}

fn refused(path: &Path, name: &str, found: &str) -> Error {
    Error::field(path, format!("the list of the virtual data set {name}"), "one that is whole", found)
}

/// The sources of a virtual data set.
///
/// Errors: [`listed`]'s; far more of them than files can be.
pub(super) fn sources(path: &Path, data: &Dataset, name: &str) -> Result<Vec<Source>> {
    let holder = data.filename();
    let file = Metadata::open(holder.as_ref()).map_err(|e| Error::read(&holder, e))?;
    let header = address(data, ".").ok_or_else(|| refused(path, name, "none"))?;
    let shape = data.shape();
    let mut sources = Vec::new();
    for entry in listed(path, &file, header, name)?.unwrap_or_default() {
        let expanded =
            entry.expanded(&shape).filter(|expanded| expanded.len() + sources.len() <= MOST_BLOCKS as usize);
        sources.extend(expanded.ok_or_else(|| refused(path, name, "one of far too many files"))?);
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(path: &Path) -> u64 {
        let file = hdf5::File::create(path).unwrap();
        let mut data = file.new_dataset::<f32>().shape(12);
        for (first, name) in [(0, "first.h5"), (6, "second.h5")] {
            data = data.virtual_map(name, "d", 6, .., 12, first..first + 6);
        }
        address(&data.create("d").unwrap(), ".").unwrap()
    }

    fn found(path: &Path, header: u64) -> Option<Vec<Source>> {
        listed(path, &Metadata::open(path).ok()?, header, "d").ok()?
    }

    #[test]
    fn damaged_lists_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whole.h5");
        let at = made(&path);
        let whole = std::fs::read(&path).unwrap();
        let all = found(&path, at).unwrap();
        let names: Vec<_> = all.iter().map(|source| (&*source.file, &*source.dataset)).collect();
        assert_eq!(names, [("first.h5", "d"), ("second.h5", "d")]);
        assert_eq!(all[1].to.numbers(&[12]), 6);
        let damaged = |bytes: &[u8]| {
            let path = folder.path().join("damaged.h5");
            std::fs::write(&path, bytes).unwrap();
            found(&path, at)
        };
        let list = memchr::memmem::find(&whole, b"first.h5\0").unwrap();
        for end in (0..whole.len()).step_by(37) {
            // The list is there only where the file holds it whole.
            assert!(end > list || damaged(&whole[..end]).is_none_or(|all| all.is_empty()), "{end}");
        }
        // The layout: version 4, class 3, the address of the collection and the number of the object.
        let collection = memchr::memmem::find(&whole, b"GCOL").unwrap() as u64;
        let layout = [&[4, 3][..], &collection.to_le_bytes(), &1u32.to_le_bytes()].concat();
        let layout = memchr::memmem::find(&whole, &layout).unwrap();
        for (at, number) in [(2, u64::MAX / 2), (2, 7), (10, 2), (10, 0xffff_ffff), (10, 0)] {
            let mut bytes = whole.clone();
            let width = if at == 2 { 8 } else { 4 };
            bytes[layout + at..layout + at + width].copy_from_slice(&number.to_le_bytes()[..width]);
            assert_eq!(damaged(&bytes), None, "{at} {number}");
        }
        // Any other byte: an end, and no memory beyond the file.
        for place in (at as usize..at as usize + 256).chain(collection as usize..list + 200) {
            for value in [0, 1, 0x40, 0xff] {
                let mut bytes = whole.clone();
                bytes[place] = value;
                damaged(&bytes);
            }
        }
    }

    #[test]
    fn names_of_blocks_are_counted() {
        let of = |name: &str| named(&name.into(), 12).to_string();
        assert_eq!(["a", "a%b.h5", "a%%b%b", "%%"].map(of), ["a", "a12.h5", "a%b12", "%"]);
        assert_eq!(["a%b", "a%%b", "%%%b", "b"].map(has_blocks), [true, false, true, false]);
    }

    #[test]
    fn runs_without_an_end_reach_as_far_as_there_are_places() {
        let run = |count, block| Hyperslab { start: 2, step: 3, count, block };
        assert_eq!(run(UNLIMITED, 2).within(9).count, 3);
        assert_eq!((run(1, UNLIMITED).within(9).end(), run(1, UNLIMITED).within(1).places()), (9, 0));
        assert_eq!((run(4, 2).within(9), run(4, 2).end(), run(4, 2).places()), (run(4, 2), 13, 8));
        assert_eq!((run(UNLIMITED, 2).of_places(5).count, run(1, UNLIMITED).of_places(5).end()), (3, 7));
    }
}
