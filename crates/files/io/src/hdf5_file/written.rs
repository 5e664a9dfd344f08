//! Numbers of a data set that no program wrote, for which HDF5 makes up others: zeros, unless the file says
//! which.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hdf5::Dataset;
use hdf5::plist::dataset_create::{FillValue, Layout};
use rayspin_core::voxels;
use rayspin_device::cpu::try_reserve;

use super::data::expect_readable;
use super::elsewhere::source_file;
use super::sources::{Hyperslab, Selection, Source, sources};
use super::{check, reading, same_file};
use crate::error::{Error, Result, one_line};

/// Virtual data sets that are made of virtual data sets, one within the other.
const DEEPEST: usize = 8;

/// Errors: numbers that were never written. A data set without a single number whose fill value the file
/// states holds that value on purpose.
pub(super) fn expect_written(path: &Path, data: &Dataset, name: &str) -> Result<()> {
    let shape = data.shape();
    if is_empty(data, &shape) {
        return Ok(());
    }
    let is_filled = is_filled(path, data, name)?;
    match data.layout() {
        Layout::Contiguous
            if data.storage_size() == 0
                && data.dcpl().is_ok_and(|plist| plist.external().is_empty())
                && !is_filled =>
        {
            Err(missing(path, name, &shape, None))
        }
        Layout::Chunked => chunks(path, data, name, &shape, is_filled),
        _ => Ok(()),
    }
}

fn is_empty(data: &Dataset, shape: &[usize]) -> bool {
    shape.contains(&0) || data.space().is_ok_and(|space| space.is_null())
}

/// Whether the file states the number that stands for those that were never written.
fn is_filled(path: &Path, data: &Dataset, name: &str) -> Result<bool> {
    let plist = data.dcpl().map_err(|e| reading(path, &format!("opening {name}"), &e))?;
    Ok(plist.fill_value_defined() == FillValue::UserDefined)
}

/// The error of a data set whose numbers were never written: none of them, or not those from one place of the
/// first axis up to another.
fn missing(path: &Path, name: &str, shape: &[usize], places: Option<[usize; 2]>) -> Error {
    let length = shape.first().copied().unwrap_or(1);
    let found = match places.map(|[start, end]| (start, end.min(length).saturating_sub(1))) {
        None => "none".to_owned(),
        Some((start, last)) if start == last => format!("some that were not, at {start} of {length}"),
        Some((start, last)) => format!("some that were not, at {start} to {last} of {length}"),
    };
    Error::field(path, name, "numbers that were written", found).with_hint(
        "the measurement or the program that wrote the file was broken off, or a file that belongs to it is missing; HDF5 would give zeros",
    )
}

/// Errors: chunks that are not there.
fn chunks(path: &Path, data: &Dataset, name: &str, shape: &[usize], is_filled: bool) -> Result<()> {
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
    let mut present = BTreeMap::<usize, usize>::new();
    let size = chunk[0] as u64;
    data.chunks_visit(|chunk| {
        let place = chunk.offset.first().map_or(0, |place| place / size);
        *present.entry(usize::try_from(place).unwrap_or(usize::MAX)).or_default() += 1;
        0
    })
    .map_err(|e| reading(path, &format!("opening {name}"), &e))?;
    let each = wanted / counts[0].max(1);
    let is_whole = |place: &usize| present.get(place).is_some_and(|count| *count >= each);
    let Some(first) = (0..counts[0]).find(|place| !is_whole(place)) else { return Ok(()) };
    let end = present.range(first..).map(|(place, _)| *place).find(is_whole).unwrap_or(counts[0]);
    Err(missing(path, name, shape, Some([first, end].map(|place| place.saturating_mul(chunk[0])))))
}

/// Errors: a source of a virtual data set that is not there or is smaller than the virtual data set says.
/// Where the numbers should be `complete`, also numbers that no source gives, or that were never written in a
/// source.
pub(super) fn expect_sources(
    path: &Path,
    data: &Dataset,
    name: &str,
    depth: usize,
    complete: bool,
) -> Result<()> {
    if depth > DEEPEST {
        let expected = format!("at most {DEEPEST} virtual data sets, one made of the other");
        return Err(Error::field(path, name, expected, "more"));
    }
    let holder = PathBuf::from(data.filename());
    let sources = sources(path, data, name)?;
    let mut known = BTreeMap::<(&str, &str), Vec<usize>>::new();
    let mut shapes = Vec::with_capacity(sources.len());
    let mut checked = BTreeSet::new();
    // The file stays open for the next source.
    let mut last = None;
    for source in &sources {
        let (stated, inner) = (&*source.file, &*source.dataset);
        let shape = match known.entry((stated, inner)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let Some(file) = source_file(&holder, stated)? else {
                    let (stated, holder) = (one_line(stated), holder.display());
                    let expected = format!("the file {stated} of the virtual data set");
                    return Err(Error::field(path, name, expected, "none").with_hint(format!(
                        "put {stated} where {holder} seeks it: beside it, or where HDF5_VDS_PREFIX says"
                    )));
                };
                // Acquisitions lie in heaps; a file of virtual data sets was checked as the first file was
                // opened.
                if !complete && !same_file(path, &file) && checked.insert(stated) {
                    check(&file, "an HDF5 file")?;
                }
                let dataset = source_data(path, &file, inner, name)?;
                expect_readable(&file, &dataset, inner, depth + 1, complete)?;
                entry.insert(last.insert(dataset).shape())
            }
        };
        expect_large(path, name, source, shape, &data.shape())?;
        shapes.push(shape.clone());
    }
    let shape = data.shape();
    if !complete || is_empty(data, &shape) {
        return Ok(());
    }
    covered(path, name, sources.iter().zip(&shapes), &shape, is_filled(path, data, name)?)
}

/// A source of a virtual data set.
fn source_data(path: &Path, file: &Path, inner: &str, name: &str) -> Result<Dataset> {
    let open = hdf5::File::open(file).map_err(|e| reading(file, "opening the HDF5 file", &e))?;
    if !open.link_exists(inner) {
        let what = what(inner, file, name);
        return Err(Error::field(path, what, "a data set of that name", "none"));
    }
    open.dataset(inner).map_err(|e| reading(file, &format!("opening {inner}"), &e))
}

fn what(inner: &str, file: impl AsRef<Path>, name: &str) -> String {
    format!("{} in {}, a source of the virtual data set {name}", one_line(inner), file.as_ref().display())
}

/// Errors: a source with fewer numbers than a virtual data set of this shape takes of it.
fn expect_large(
    path: &Path,
    name: &str,
    source: &Source,
    source_shape: &[usize],
    shape: &[usize],
) -> Result<()> {
    let expected = match &*source.from {
        Selection::Blocks(blocks) => {
            let is_within = |runs: &Vec<Hyperslab>| {
                let fits =
                    |(run, &size): (&Hyperslab, &usize)| run.is_unlimited() || run.end() <= size as u64;
                runs.len() == source_shape.len() && runs.iter().zip(source_shape).all(fits)
            };
            let outside = blocks.iter().find(|runs| !is_within(runs));
            outside.map(|runs| {
                format!("at least the shape {:?}", runs.iter().map(|run| run.end()).collect::<Vec<_>>())
            })
        }
        Selection::All => {
            let wanted = source.to.numbers(shape);
            (Selection::All.numbers(source_shape) != wanted && source.to.unlimited().is_none())
                .then(|| format!("{wanted} numbers"))
        }
        Selection::None => None,
    };
    match expected {
        Some(expected) => Err(Error::field(
            path,
            what(&source.dataset, &*source.file, name),
            expected,
            format!("the shape {source_shape:?}"),
        )),
        None => Ok(()),
    }
}

/// Errors: places of the first axis for which a virtual data set names no source. Gaps within a place, as
/// between the modules of a detector, may be filled on purpose.
fn covered<'a>(
    path: &Path,
    name: &str,
    sources: impl Iterator<Item = (&'a Source, &'a Vec<usize>)>,
    shape: &[usize],
    is_filled: bool,
) -> Result<()> {
    let Some((&length, image)) = shape.split_first() else { return Ok(()) };
    let core = |e| Error::core(path, e);
    let (mut held, size) = (Vec::<u64>::new(), voxels(image).map_err(core)? as u64);
    try_reserve(name, &mut held, length).map_err(core)?;
    held.resize(length, 0);
    for (source, source_shape) in sources {
        let blocks = match &source.to {
            Selection::All => return Ok(()),
            Selection::None => continue,
            Selection::Blocks(blocks) => blocks,
        };
        for runs in blocks {
            let runs = ended(runs, &source.from, source_shape);
            let Some((&first, others)) = runs.split_first() else { continue };
            let others = others.iter().zip(image).map(|(run, &size)| run.within(size as u64).places());
            let others = others.fold(1, u64::saturating_mul);
            let Hyperslab { start, step, count, block } = first.within(length as u64);
            let places = (0..count).map_while(|place| place.checked_mul(step)?.checked_add(start));
            for place in places.take_while(|place| *place < length as u64) {
                let end = place.saturating_add(block).min(length as u64);
                held[place as usize..end as usize]
                    .iter_mut()
                    .for_each(|held| *held = held.saturating_add(others));
            }
        }
    }
    let wanted = if is_filled { 1 } else { size };
    let Some(first) = held.iter().position(|held| *held < wanted) else { return Ok(()) };
    let end = held[first..].iter().position(|held| *held >= wanted).map_or(length, |more| first + more);
    Err(missing(path, name, shape, Some([first, end])))
}

/// Where a selection has an axis without an end, as many places of it as the source has.
fn ended(runs: &[Hyperslab], from: &Selection, source_shape: &[usize]) -> Vec<Hyperslab> {
    let mut runs = runs.to_vec();
    if let Some(run) = runs.iter_mut().find(|run| run.is_unlimited())
        && let Some((axis, source)) = from.unlimited()
        && let Some(&size) = source_shape.get(axis)
    {
        let places = source.within(size as u64).places();
        *run = run.of_places(places);
    }
    runs
}
