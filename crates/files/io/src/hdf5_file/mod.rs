//! HDF5 files: opening them safely, and the errors of the library.

pub(crate) mod arrays;
mod data;
mod elsewhere;
mod heap;
pub(crate) mod kind;
mod links;
mod object;
mod sources;
mod text;
mod units;
mod written;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use hdf5::Group;
use hdf5::types::VarLenAscii;
use rayspin_core::ErrorKind;
use rayspin_device::cpu::expect_memory;

pub(crate) use data::{
    dataset, expect_within, file_bytes, is_filtered, list, numbers, opened, place, values,
};
pub(crate) use links::linked;
pub(crate) use text::{Value, attribute, number, value};
pub(crate) use units::{angle, length, length_mm};

use crate::atomic;
use crate::error::{Error, Result};
use crate::opening;

/// The bytes that every HDF5 file has at offset 0, 512, 1024, 2048, …
pub(crate) const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// Bytes at the start of a file among which the name of its driver stands.
const DRIVER_WITHIN: usize = 1 << 14;
/// What HDF5 and the checks of a file work in, beside its data.
const WORK_BYTES: u64 = 16 << 20;

/// Opens `path` as HDF5, or says what it is instead of what was `expected`. All files to which it leads are
/// regular ones.
pub(crate) fn open(path: &Path, expected: &str) -> Result<hdf5::File> {
    check(path, expected)?;
    let file = hdf5::File::open(path)
        .map_err(|e| part_of_several(path).unwrap_or_else(|| reading(path, "opening the HDF5 file", &e)))?;
    elsewhere::expect_regular_files(path)?;
    Ok(file)
}

/// The error of one of several files that are an HDF5 file together.
fn part_of_several(path: &Path) -> Option<Error> {
    let mut start = vec![0; DRIVER_WITHIN];
    let known = fill_at(&File::open(path).ok()?, 0, &mut start).ok()?;
    let drivers =
        [(&b"NCSAfami"[..], "h5repart FILE%d.h5 whole.h5"), (b"NCSAmult", "h5repack FILE whole.h5")];
    let driver = drivers.iter().find(|(name, _)| memchr::memmem::find(&start[..known], name).is_some());
    let (_, tool) = driver?;
    Some(
        Error::unsupported(path, "an HDF5 file in several files (family, split or multi driver)")
            .with_hint(format!("{tool} makes one file of them")),
    )
}

/// Errors: another file than one of HDF5; one that the HDF5 library would read for ever; memory.
fn check(path: &Path, expected: &str) -> Result<()> {
    let metadata = fs::metadata(path).map_err(|e| Error::open(path, e))?;
    if metadata.is_dir() {
        return Err(Error::open(path, io::ErrorKind::IsADirectory.into()));
    }
    let file = opening::open(path)?;
    let read = |e| Error::read(path, e);
    let Some(offset) = start(&file).map_err(read)? else {
        let mut bytes = [0u8; 512];
        let known = fill_at(&file, 0, &mut bytes).map_err(read)?;
        return Err(Error::not_this_format(path, expected, describe(&bytes[..known]))
            .with_hint("a Siemens scanner's file ends in .dat; others need converting to ISMRMRD first"));
    };
    expect_memory("HDF5", WORK_BYTES).map_err(|e| Error::core(path, e))?;
    if let Some(address) = heap::endless(&file, offset).map_err(read)? {
        let field = format!("HDF5 global heap at byte {address}");
        return Err(Error::field(path, field, "blocks of some length", "a block of 0 bytes"));
    }
    Ok(())
}

/// Where HDF5 begins in a file: behind a block of other programs, whose length is a power of two. None in
/// other files.
pub(crate) fn start(file: &File) -> io::Result<Option<u64>> {
    let mut offset = 0u64;
    loop {
        let mut bytes = [0u8; 8];
        if fill_at(file, offset, &mut bytes)? < bytes.len() {
            return Ok(None);
        }
        if &bytes == SIGNATURE {
            return Ok(Some(offset));
        }
        offset = if offset == 0 { 512 } else { offset * 2 };
    }
}

/// Checks the file that holds an attribute or a data set as [`open`] does, where a link leads to another file
/// than the one at `path`.
pub(crate) fn check_holder(path: &Path, held: &hdf5::Location) -> Result<()> {
    let holder = PathBuf::from(held.filename());
    if same_file(path, &holder) { Ok(()) } else { check(&holder, "an HDF5 file") }
}

/// Whether two names are of one file.
pub(crate) fn same_file(one: &Path, other: &Path) -> bool {
    let known = |path: &Path| path.canonicalize().ok();
    one == other || known(one).is_some_and(|one| Some(one) == known(other))
}

/// Whether addresses in the file are plain: 8 bytes each, as lengths are, counted from the start of the file.
pub(crate) fn is_plain(file: &File) -> io::Result<bool> {
    let mut block = [0u8; 40];
    file.read_exact_at(&mut block, 0)?;
    // The widths of addresses and lengths, and where the base address is.
    let (widths, base) = match block[8] {
        0 => ([block[13], block[14]], 24),
        1 => ([block[13], block[14]], 28),
        2 | 3 => ([block[9], block[10]], 12),
        _ => return Ok(false),
    };
    Ok(block.starts_with(SIGNATURE) && widths == [8, 8] && block[base..base + 8] == [0; 8])
}

/// Reads as much of `buffer` as the file has from a place on.
pub(crate) fn fill_at(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset.saturating_add(done as u64)) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// What a file that starts with `bytes` looks like.
fn describe(bytes: &[u8]) -> &'static str {
    if bytes.is_empty() {
        "an empty file"
    } else if bytes.get(128..132) == Some(b"DICM") {
        "a DICOM file"
    } else if bytes.starts_with(b"\x93NUMPY") {
        "a NumPy file"
    } else if bytes.starts_with(b"\x1f\x8b") {
        "a gzip file"
    } else if bytes.starts_with(b"PK\x03\x04") {
        "a zip file"
    } else if bytes.starts_with(&[0x5c, 1, 0, 0]) || bytes.starts_with(&[0, 0, 1, 0x5c]) {
        "a NIfTI-1 file"
    } else if bytes.starts_with(&[0, 0, 0, 0])
        && bytes.get(4..8).is_some_and(|n| n[0] > 0 && n[1..] == [0; 3])
    {
        "a file like Siemens raw data (twix)"
    } else if bytes.iter().all(|b| b.is_ascii() && (!b.is_ascii_control() || b.is_ascii_whitespace())) {
        "a text file"
    } else {
        "a file of another kind"
    }
}

/// A new file in place of the temporary one at `path`. It does not hold the time of day, so that the same
/// scan makes the same bytes.
pub(crate) fn create(path: &Path) -> hdf5::Result<hdf5::File> {
    atomic::creating(path, || hdf5::File::with_options().with_fcpl(|p| p.obj_track_times(false)).create(path))
        .unwrap_or_else(|error| Err(error.to_string().into()))
}

/// A new group, without the time of day.
pub(crate) fn group(parent: &Group, name: &str) -> hdf5::Result<Group> {
    parent.create_group_builder().obj_track_times(false).create(name)
}

/// `text` as HDF5 stores it.
pub(crate) fn string(path: &Path, what: &str, text: &str) -> Result<VarLenAscii> {
    VarLenAscii::from_ascii(text)
        .map_err(|e| Error::field(path, what, "ASCII text without NUL characters", e))
}

/// What HDF5 says, as text that is certainly valid.
fn text_of(error: &hdf5::Error) -> String {
    lossy(error.to_string().as_bytes())
}

/// What each function of HDF5 says that gave up, the outermost first.
fn all_of(error: &hdf5::Error) -> Vec<String> {
    let hdf5::Error::HDF5(stack) = error else { return Vec::new() };
    let frames = stack.clone().expand();
    frames
        .map_or_else(|_| Vec::new(), |frames| frames.iter().map(|one| lossy(one.desc().as_bytes())).collect())
}

/// What stands between two marks in one of these texts.
fn between<'a>(texts: &'a [String], from: &str, to: &str) -> Option<&'a str> {
    texts.iter().find_map(|text| text.split_once(from)?.1.split_once(to)).map(|(inner, _)| inner)
}

/// Text of a file. The HDF5 library does not check that it is Unicode.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The error of a link to a file that is not there, naming both files; none of other errors.
pub(crate) fn broken_link(path: &Path, what: &str, error: &hdf5::Error) -> Option<Error> {
    let texts = all_of(error);
    let linked = between(&texts, "external link file name = '", "'")?;
    let expected = format!("the file {linked}, to which a link leads");
    let hint = format!("put {linked} where the link in {} seeks it", path.display());
    Some(Error::field(path, what, expected, "none that can be opened").with_hint(hint))
}

/// Whether a name in a file is Unicode, which the HDF5 library does not check.
fn is_text(name: &str) -> bool {
    std::str::from_utf8(name.as_bytes()).is_ok()
}

/// Where every name at the root of a file is a link to a file that is not there, the error of the first.
pub(crate) fn leads_nowhere(path: &Path, file: &hdf5::File) -> Option<Error> {
    let names = file.member_names().unwrap_or_default();
    let broken = |name: &String| {
        let type_of = is_text(name).then(|| file.loc_type_by_name(name))?;
        broken_link(path, name, &type_of.err()?)
    };
    let mut errors = names.iter().map(broken).collect::<Option<Vec<_>>>()?.into_iter();
    errors.next()
}

/// The system's error number in what HDF5 says.
fn system_error(text: &str) -> Option<io::Error> {
    let rest = text.split("errno = ").nth(1)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    match digits.parse() {
        Ok(0) | Err(_) => None,
        Ok(number) => Some(io::Error::from_raw_os_error(number)),
    }
}

/// An HDF5 error on the way in: the file's fault, unless the system failed.
pub(crate) fn reading(path: &Path, what: &str, error: &hdf5::Error) -> Error {
    let text = text_of(error);
    let texts = all_of(error);
    if let Some(error) = broken_link(path, what, error) {
        return error;
    }
    if let Some(filter) = between(&texts, "required filter '", "'") {
        return data::without_filter(path, what, filter);
    }
    if text.contains("truncated file") {
        let number = |key: &str| {
            let rest = text.split(key).nth(1).unwrap_or_default();
            rest.chars()
                .skip_while(|c| !c.is_ascii_digit())
                .take_while(char::is_ascii_digit)
                .collect::<String>()
        };
        return Error::truncated(
            path,
            "the HDF5 file",
            format!("{} bytes", number("stored_eof")),
            format!("{} bytes", number("eof")),
        );
    }
    match system_error(&text) {
        Some(source) => Error::read(path, source),
        None => Error::library(path, what, format!("HDF5 says: {text}"), ErrorKind::Input),
    }
}

/// An HDF5 error on the way out: the system's fault.
pub(crate) fn writing(path: &Path, error: &hdf5::Error) -> Error {
    let text = text_of(error);
    match system_error(&text) {
        Some(source) => Error::write(path, source),
        None => Error::library(path, "writing", format!("HDF5 says: {text}"), ErrorKind::Failure),
    }
}
