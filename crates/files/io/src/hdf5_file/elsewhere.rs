//! Other files that an HDF5 file leads to: where HDF5 seeks them, and a check that each is a regular file.
//! HDF5 opens what a name stands for, and would wait for ever where that is a pipe.

use std::collections::{BTreeSet, VecDeque};
use std::env::{split_paths, var_os};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use hdf5::{LinkType, LocationType};

use super::links::MOST;
use super::object::{Bytes, Metadata, address};
use super::sources::{Source, listed};
use super::{check, fill_at, is_text};
use crate::error::{Error, Result, parent_folder};
use crate::opening::{self, expect_regular};

/// Bytes read at a time where links are sought, and the bytes of the longest link.
const STRETCH: usize = 1 << 20;
const LONGEST: usize = 1 << 18;
/// The kind of an external link, and bits of the flags of a link: the kind, the order and the alphabet are
/// stated.
const EXTERNAL: u8 = 64;
const HAS_KIND: u8 = 8;
const HAS_ORDER: u8 = 4;
const HAS_ALPHABET: u8 = 16;

/// A file that a virtual data set is made of. None where it is not there.
///
/// Errors: one that is no regular file.
pub(super) fn source_file(holder: &Path, name: &str) -> Result<Option<PathBuf>> {
    match name {
        "." => Ok(Some(holder.to_owned())),
        _ => sought(holder, name, "HDF5_VDS_PREFIX"),
    }
}

/// The raw file of an external storage. None where it is not there.
///
/// Errors: one that is no regular file.
pub(super) fn raw_file(holder: &Path, name: &str) -> Result<Option<PathBuf>> {
    let prefix = var_os("HDF5_EXTFILE_PREFIX").unwrap_or_default();
    // A path from the root replaces the prefix.
    first(holder, [from_origin(holder, Path::new(&prefix)).join(name)])
}

/// `${ORIGIN}` in a prefix is the folder of the HDF5 file.
fn from_origin(holder: &Path, prefix: &Path) -> PathBuf {
    prefix.to_string_lossy().replace("${ORIGIN}", &parent_folder(holder).to_string_lossy()).into()
}

/// A file where HDF5 seeks it (`H5F_prefix_open_file`). It tries a path from the root as it stands. Then it
/// tries the folders that the environment names, the folder of the file that names it, the working directory,
/// and the folder to which links in the file system lead.
fn sought(holder: &Path, name: &str, variable: &str) -> Result<Option<PathBuf>> {
    let name = Path::new(name);
    let rest = if name.is_absolute() { name.file_name().map_or(name, Path::new) } else { name };
    let prefixes = var_os(variable).unwrap_or_default();
    let named: Vec<PathBuf> =
        split_paths(&prefixes).filter(|prefix| !prefix.as_os_str().is_empty()).collect();
    let real = holder.canonicalize().ok();
    let folders = named.iter().map(|prefix| from_origin(holder, prefix));
    let folders = folders.chain([parent_folder(holder).to_owned(), PathBuf::new()]);
    let folders = folders.chain(real.as_deref().map(|real| parent_folder(real).to_owned()));
    let own = name.is_absolute().then(|| name.to_owned());
    first(holder, own.into_iter().chain(folders.map(|folder| folder.join(rest))))
}

/// The first of these files that is there.
fn first(holder: &Path, files: impl IntoIterator<Item = PathBuf>) -> Result<Option<PathBuf>> {
    for file in files.into_iter().filter(|file| file.exists()) {
        expect_regular(&file)
            .map_err(|error| error.with_hint(format!("{} leads to it", holder.display())))?;
        if file.is_file() {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// Checks the files to which links, virtual data sets and external storage lead, in this file and in the
/// files to which it leads.
///
/// Errors: a file that is no regular one, as a pipe or a device; a heap that HDF5 would read for ever.
pub(super) fn expect_regular_files(path: &Path) -> Result<()> {
    let mut waiting = VecDeque::from([path.to_owned()]);
    let mut seen = BTreeSet::new();
    while let Some(file) = waiting.pop_front() {
        if let Ok(real) = file.canonicalize()
            && seen.len() < MOST
            && seen.insert(real)
        {
            let (files, is_virtual) = led_to(&file)?;
            // The lists of virtual data sets lie in heaps.
            if is_virtual && file != path {
                check(&file, "an HDF5 file")?;
            }
            waiting.extend(files);
        }
    }
    Ok(())
}

/// The files to which the links and data sets of one file lead, and whether it has virtual data sets.
fn led_to(path: &Path) -> Result<(Vec<PathBuf>, bool)> {
    let (mut files, mut is_virtual) = (Vec::new(), false);
    // Raw files lead nowhere. The reader tells of files that it cannot open.
    let (Ok(file), Ok(metadata)) = (hdf5::File::open(path), Metadata::open(path)) else {
        return Ok((files, is_virtual));
    };
    let mut waiting = VecDeque::from([(*file).clone()]);
    let (mut seen, mut external) = (BTreeSet::new(), BTreeSet::new());
    while let Some(group) = waiting.pop_front() {
        let mut names = Vec::new();
        let left = MOST.saturating_sub(seen.len());
        // A group whose links cannot be listed to the end has told some.
        let _ = group.iter_visit_default(|name, info| {
            names.extend((names.len() < left && is_text(name)).then(|| (name.to_owned(), info.link_type)));
            Ok(())
        });
        for (name, kind) in names {
            match kind {
                LinkType::Hard => {
                    let Some(header) = address(&group, &name).filter(|header| seen.insert(*header)) else {
                        continue;
                    };
                    match group.loc_type_by_name(&name) {
                        Ok(LocationType::Group) => waiting.extend(group.group(&name).ok()),
                        Ok(LocationType::Dataset) => {
                            for name in metadata.raw_files(header).unwrap_or_default() {
                                files.extend(raw_file(path, &name)?);
                            }
                            // The reader of the data set tells of a list that it cannot read.
                            if let Ok(Some(sources)) = listed(path, &metadata, header, &name) {
                                is_virtual = true;
                                files.extend(files_of(path, &sources)?);
                            }
                        }
                        _ => {}
                    }
                }
                // What it leads to has a hard link, or is behind an external one.
                LinkType::Soft => {}
                LinkType::External => {
                    external.insert(name);
                }
            }
        }
    }
    if !external.is_empty() {
        for name in targets(&opening::open(path)?, &external).map_err(|e| Error::read(path, e))? {
            files.extend(sought(path, &name, "HDF5_EXT_PREFIX")?);
        }
    }
    Ok((files, is_virtual))
}

/// The files of a virtual data set.
fn files_of(path: &Path, sources: &[Source]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for source in sources {
        for name in source.files() {
            // HDF5 counts up to the first that is missing.
            let Some(file) = source_file(path, &name)? else { break };
            files.push(file);
        }
    }
    Ok(files)
}

/// The files that external links of these names lead to, as the links state them.
///
/// A link has the same form in a header and in the heap of a group with many links: version 1, flags, the
/// kind, the link's name, a length, and a value of that length. The value is a zero, the name of the file,
/// and the name in the file; a zero ends each name (HDF5 File Format Specification 3.0, IV.A.2.g).
fn targets(file: &File, names: &BTreeSet<String>) -> io::Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    let mut buffer = vec![0; STRETCH + LONGEST];
    let mut offset = 0u64;
    loop {
        let known = fill_at(file, offset, &mut buffer)?;
        let bytes = &buffer[..known];
        let is_last = known < buffer.len();
        let kinds = memchr::memchr_iter(EXTERNAL, &bytes[..if is_last { known } else { STRETCH }]);
        files.extend(kinds.filter_map(|position| target(bytes.get(position.checked_sub(2)?..)?, names)));
        if is_last {
            return Ok(files);
        }
        // A link may lie across a boundary.
        offset += STRETCH as u64 - 2;
    }
}

/// The file of an external link that begins here.
fn target(bytes: &[u8], names: &BTreeSet<String>) -> Option<String> {
    let mut bytes = Bytes(bytes);
    let [version, flags, _] = *bytes.take(3)?.first_chunk::<3>()?;
    if version != 1 || flags & HAS_KIND == 0 {
        return None;
    }
    bytes.take(if flags & HAS_ORDER == 0 { 0 } else { 8 })?;
    bytes.take(if flags & HAS_ALPHABET == 0 { 0 } else { 1 })?;
    let length = usize::try_from(bytes.number(1 << (flags & 3))?).ok()?;
    std::str::from_utf8(bytes.take(length)?).ok().filter(|name| names.contains(*name))?;
    let length = usize::try_from(bytes.number(2)?).ok()?;
    let mut link = Bytes(bytes.take(length)?);
    link.take(1)?;
    link.text()
}
