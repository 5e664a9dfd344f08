//! Numbers of a data set that no program wrote, for which HDF5 makes up others: zeros, unless the file says which.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use hdf5::plist::dataset_create::{FillValue, Layout, VirtualMapping};
use hdf5::{Dataset, Selection, SliceOrIndex};
use rayspin_core::voxels;
use rayspin_device::cpu::try_reserve;

use super::data::source_file;
use super::{check, reading, same_file};
use crate::error::{Error, Result, one_line};

/// Virtual data sets that are made of virtual data sets, one within the other.
const DEEPEST: usize = 8;

/// Errors: numbers that were never written, here or in the files of a virtual data set. A data set without a single number whose fill value
/// the file states holds that value on purpose.
pub(super) fn expect_written(path: &Path, data: &Dataset, name: &str) -> Result<()> {
    within(path, data, name, 0)
}

/// Whether only reading tells what a virtual data set is made of: a pattern of names (`%b`), an axis without an end, or a choice of numbers
/// that is no grid.
pub(super) fn is_open_ended(data: &Dataset) -> bool {
    let maps = data.dcpl().and_then(|plist| plist.get_virtual_map());
    maps.map_or(true, |maps| maps.iter().any(|map| !is_told(map)))
}

fn is_told(map: &VirtualMapping) -> bool {
    let is_grid = |selection: &Selection| match selection {
        Selection::All => true,
        Selection::Points(_) => false,
        Selection::Hyperslab(slices) => !slices.is_unlimited(),
    };
    let has_pattern = [&map.src_filename, &map.src_dataset].into_iter().any(|name| name.contains('%'));
    !has_pattern && is_grid(&map.src_selection) && is_grid(&map.vds_selection)
}

fn within(path: &Path, data: &Dataset, name: &str, depth: usize) -> Result<()> {
    let shape = data.shape();
    if shape.contains(&0) || data.space().is_ok_and(|space| space.is_null()) {
        return Ok(());
    }
    let plist = data.dcpl().map_err(|e| reading(path, &format!("opening {name}"), &e))?;
    let is_filled = plist.fill_value_defined() == FillValue::UserDefined;
    match data.layout() {
        Layout::Contiguous if data.storage_size() == 0 && plist.external().is_empty() && !is_filled => {
            Err(missing(path, name, &shape, None))
        }
        Layout::Chunked => chunks(path, data, name, (&shape, is_filled)),
        // What reading tells is checked then.
        Layout::Virtual if depth < DEEPEST && !is_open_ended(data) => {
            let maps = plist.virtual_map();
            sources(path, data, name, (&maps, depth))?;
            covered(path, name, &maps, (&shape, is_filled))
        }
        _ => Ok(()),
    }
}

/// The error of a data set whose numbers were never written: none of them, or not those from one place of the first axis up to another.
fn missing(path: &Path, name: &str, shape: &[usize], places: Option<[usize; 2]>) -> Error {
    let all = shape.first().copied().unwrap_or(1);
    let found = match places.map(|[start, end]| (start, end.min(all).saturating_sub(1))) {
        None => "none".to_owned(),
        Some((start, last)) if start == last => format!("some that were not, at {start} of {all}"),
        Some((start, last)) => format!("some that were not, at {start} to {last} of {all}"),
    };
    Error::field(path, name, "numbers that were written", found).with_hint(
        "the measurement or the program that wrote the file was broken off, or a file that belongs to it is missing; HDF5 would give zeros",
    )
}

/// Errors: chunks that are not there.
fn chunks(path: &Path, data: &Dataset, name: &str, (shape, is_filled): (&[usize], bool)) -> Result<()> {
    let Some(chunk) = data.chunk().filter(|chunk| chunk.len() == shape.len() && !chunk.contains(&0)) else {
        return Ok(());
    };
    let counts: Vec<usize> = shape.iter().zip(&chunk).map(|(size, chunk)| size.div_ceil(*chunk)).collect();
    let wanted = voxels(&counts).map_err(|e| Error::core(path, e))?;
    let held = data.num_chunks().unwrap_or(wanted);
    if held >= wanted || (held == 0 && is_filled) {
        return Ok(());
    }
    if held == 0 {
        return Err(missing(path, name, shape, None));
    }
    // How many chunks there are at each place of the first axis.
    let mut found = BTreeMap::<usize, usize>::new();
    let size = chunk[0] as u64;
    data.chunks_visit(|chunk| {
        let at = chunk.offset.first().map_or(0, |at| at / size);
        *found.entry(usize::try_from(at).unwrap_or(usize::MAX)).or_default() += 1;
        0
    })
    .map_err(|e| reading(path, &format!("opening {name}"), &e))?;
    let each = wanted / counts[0].max(1);
    let is_whole = |at: &usize| found.get(at).is_some_and(|count| *count >= each);
    let Some(first) = (0..counts[0]).find(|at| !is_whole(at)) else { return Ok(()) };
    let end = found.range(first..).map(|(at, _)| *at).find(is_whole).unwrap_or(counts[0]);
    Err(missing(path, name, shape, Some([first, end].map(|at| at.saturating_mul(chunk[0])))))
}

/// Errors: a source of a virtual data set that is not there, is smaller than the virtual data set says, or was never written.
fn sources(path: &Path, data: &Dataset, name: &str, (maps, depth): (&[VirtualMapping], usize)) -> Result<()> {
    let holder = PathBuf::from(data.filename());
    let mut known = BTreeMap::<(&str, &str), Vec<usize>>::new();
    for map in maps {
        let source = match map.src_filename.as_str() {
            "." => Some(holder.clone()),
            file => source_file(&holder, file),
        };
        // That files are there was checked before.
        let Some(source) = source else { continue };
        let inner = map.src_dataset.as_str();
        let what =
            format!("{} in {}, a source of the virtual data set {name}", one_line(inner), source.display());
        let key = (map.src_filename.as_str(), inner);
        if let Entry::Vacant(entry) = known.entry(key) {
            if !same_file(path, &source) {
                check(&source, "an HDF5 file")?;
            }
            let file =
                hdf5::File::open(&source).map_err(|e| reading(&source, "opening the HDF5 file", &e))?;
            if !file.link_exists(inner) {
                return Err(Error::field(path, what, "a data set of that name", "none"));
            }
            let found = file.dataset(inner).map_err(|e| reading(&source, &format!("opening {inner}"), &e))?;
            within(&source, &found, inner, depth + 1)?;
            entry.insert(found.shape());
        }
        let (Some(found), ends) = (known.get(&key), ends(map)) else { continue };
        if found.len() != ends.len() || ends.iter().zip(found).any(|(end, size)| end > size) {
            return Err(Error::field(
                path,
                what,
                format!("at least the shape {ends:?}"),
                format!("{found:?}"),
            ));
        }
    }
    Ok(())
}

/// Where the numbers end, along each axis, that a virtual data set takes of another one.
fn ends(map: &VirtualMapping) -> Vec<usize> {
    match &map.src_selection {
        Selection::Hyperslab(slices) => slices.iter().map(|slice| run(slice).end()).collect(),
        _ => map.src_extents.dims(),
    }
}

/// Places along an axis: `count` blocks of `block` of them, each `step` after the one before.
#[derive(Clone, Copy)]
struct Run {
    start: usize,
    step: usize,
    count: usize,
    block: usize,
}

impl Run {
    fn end(self) -> usize {
        let last = self.count.saturating_sub(1).saturating_mul(self.step);
        self.start.saturating_add(last).saturating_add(self.block)
    }

    fn places(self) -> usize {
        self.count.saturating_mul(self.block)
    }
}

fn run(slice: &SliceOrIndex) -> Run {
    match *slice {
        SliceOrIndex::Index(start) => Run { start, step: 1, count: 1, block: 1 },
        SliceOrIndex::SliceCount { start, step, count, block } => Run { start, step, count, block },
        SliceOrIndex::SliceTo { start, step, end, block } => {
            Run { start, step, count: end.saturating_sub(start).div_ceil(step.max(1)), block }
        }
        // No grid: such data sets are checked as they are read.
        SliceOrIndex::Unlimited { start, step, block } => Run { start, step, count: 0, block },
    }
}

/// Errors: places of the first axis for which a virtual data set names no source. Gaps within a place, as between the modules of a
/// detector, may be filled on purpose.
fn covered(
    path: &Path,
    name: &str,
    maps: &[VirtualMapping],
    (shape, is_filled): (&[usize], bool),
) -> Result<()> {
    let Some((&all, image)) = shape.split_first() else { return Ok(()) };
    let core = |e| Error::core(path, e);
    let (mut held, size) = (Vec::<usize>::new(), voxels(image).map_err(core)?);
    try_reserve(name, &mut held, all).map_err(core)?;
    held.resize(all, 0);
    for map in maps {
        let Selection::Hyperslab(slices) = &map.vds_selection else {
            // The source is the whole of it.
            return Ok(());
        };
        let Some((first, others)) = slices.split_first() else { return Ok(()) };
        let others = others.iter().fold(1usize, |all, slice| all.saturating_mul(run(slice).places()));
        let Run { start, step, count, block } = run(first);
        for at in
            (0..count).map_while(|at| at.checked_mul(step)?.checked_add(start)).take_while(|at| *at < all)
        {
            let end = at.saturating_add(block).min(all);
            held[at..end].iter_mut().for_each(|held| *held = held.saturating_add(others));
        }
    }
    let wanted = if is_filled { 1 } else { size };
    let Some(first) = held.iter().position(|held| *held < wanted) else { return Ok(()) };
    let end = held[first..].iter().position(|held| *held >= wanted).map_or(all, |more| first + more);
    Err(missing(path, name, shape, Some([first, end])))
}
