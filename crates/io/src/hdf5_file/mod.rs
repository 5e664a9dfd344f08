//! HDF5 files: opening them safely, and the errors of the library.

mod heap;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use hdf5::Group;
use hdf5::types::VarLenAscii;
use rayspin_core::ErrorKind;
use rayspin_device::cpu::expect_memory;

use crate::error::{Error, Result};
use crate::input;

/// The bytes that every HDF5 file has at offset 0, 512, 1024, 2048, …
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// What HDF5 and the checks of a file work in, beside its data.
const WORK_BYTES: u64 = 16 << 20;

/// Opens `path` as HDF5, or says what it is instead of what was `expected`.
pub(crate) fn open(path: &Path, expected: &str) -> Result<hdf5::File> {
    let found = fs::metadata(path).map_err(|e| Error::open(path, e))?;
    if found.is_dir() {
        return Err(Error::open(path, io::ErrorKind::IsADirectory.into()));
    }
    let file = input::open(path)?;
    let read = |e| Error::read(path, e);
    let mut start = [0u8; 512];
    let known = fill_at(&file, 0, &mut start).map_err(read)?;
    let mut offset = 0u64;
    loop {
        let mut bytes = [0u8; 8];
        if fill_at(&file, offset, &mut bytes).map_err(read)? < bytes.len() {
            let found = describe(&start[..known]);
            return Err(Error::not_this_format(path, expected, found).with_hint(
                "scanner files need converting to ISMRMRD first (siemens_to_ismrmrd and its kin)",
            ));
        }
        if &bytes == SIGNATURE {
            break;
        }
        offset = if offset == 0 { 512 } else { offset * 2 };
    }
    expect_memory("HDF5", WORK_BYTES).map_err(|e| Error::core(path, e))?;
    if let Some(at) = heap::endless(&file, offset).map_err(read)? {
        let field = format!("HDF5 global heap at byte {at}");
        return Err(Error::field(path, field, "blocks of some length", "a block of 0 bytes"));
    }
    drop(file);
    hdf5::File::open(path).map_err(|e| reading(path, "opening the HDF5 file", &e))
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
pub(crate) fn fill_at(file: &File, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], at.saturating_add(done as u64)) {
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

/// A new file that does not hold the time of day, so that the same scan makes the same bytes.
pub(crate) fn create(path: &Path) -> hdf5::Result<hdf5::File> {
    hdf5::File::with_options().with_fcpl(|p| p.obj_track_times(false)).create(path)
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

/// Text of a file. The HDF5 library does not check that it is Unicode.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
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
