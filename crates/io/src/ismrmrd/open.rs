//! Opening a file and finding the scan in it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use hdf5::Group;
use rayspin_core::ErrorKind;
use rayspin_device::cpu::expect_memory;

use super::heap;
use crate::error::{Error, Result};
use crate::input::choose;

/// The bytes that every HDF5 file has at offset 0, 512, 1024, 2048, …
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// How deep groups are searched, and how many.
const DEEPEST: usize = 4;
const MOST_GROUPS: usize = 1000;
/// What HDF5 and the checks of a file work in, beside its data.
const WORK_BYTES: u64 = 16 << 20;

/// Opens `path` as HDF5, or says what it is instead.
pub(super) fn open(path: &Path) -> Result<hdf5::File> {
    let found = fs::metadata(path).map_err(|e| Error::open(path, e))?;
    if found.is_dir() {
        return Err(Error::open(path, io::ErrorKind::IsADirectory.into()));
    }
    let expected = "an ISMRMRD file (HDF5)";
    if !found.is_file() {
        return Err(Error::not_this_format(path, expected, "no regular file"));
    }
    let mut file = File::open(path).map_err(|e| Error::open(path, e))?;
    let read = |e| Error::read(path, e);
    let mut start = [0u8; 512];
    let known = fill(&mut file, &mut start).map_err(read)?;
    let mut offset = 0u64;
    loop {
        file.seek(SeekFrom::Start(offset)).map_err(read)?;
        let mut bytes = [0u8; 8];
        if fill(&mut file, &mut bytes).map_err(read)? < bytes.len() {
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
    if let Some(at) = heap::endless(&mut file, offset).map_err(read)? {
        let field = format!("HDF5 global heap at byte {at}");
        return Err(Error::field(path, field, "blocks of some length", "a block of 0 bytes"));
    }
    drop(file);
    hdf5::File::open(path).map_err(|e| reading(path, "opening the HDF5 file", &e))
}

/// Reads as much of `buffer` as the file has.
pub(super) fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read(&mut buffer[done..]) {
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

/// The scan's group and its name: the one named, or the only one that holds `xml` and `data`.
pub(super) fn find_group(file: &hdf5::File, path: &Path, wanted: Option<&str>) -> Result<(String, Group)> {
    let found = search(file);
    let listed = |names: &[String]| {
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let opened = |name: String| {
        let group = file.group(&name).map_err(|e| reading(path, "opening the scan's group", &e))?;
        Ok((name, group))
    };
    if let Some(name) = wanted {
        let name = if name.trim_matches('/').is_empty() { "/" } else { name };
        let Ok(group) = file.group(name) else {
            return choose(path, "scan", &found.whole, Some(name)).and_then(opened);
        };
        return match ["xml", "data"].into_iter().find(|part| !group.link_exists(part)) {
            Some(part) => {
                Err(absent(path, name, part)
                    .with_hint(format!("scans in the file: {}", listed(&found.whole))))
            }
            None => Ok((name.to_owned(), group)),
        };
    }
    match found.whole.as_slice() {
        [] => Err(match found.partial.first() {
            Some((name, missing)) if found.series.is_empty() => absent(path, name, missing),
            _ if !found.series.is_empty() => Error::not_this_format(
                path,
                "an ISMRMRD scan (a group with `xml` and `data`)",
                format!("the images {}", listed(&found.series)),
            )
            .with_hint("rayspin convert and rayspin metrics read images"),
            _ => Error::not_this_format(
                path,
                "an ISMRMRD scan (a group with `xml` and `data`)",
                format!("HDF5 that holds {}", listed(&found.root)),
            ),
        }),
        names => choose(path, "scan", names, None).and_then(opened),
    }
}

fn absent(path: &Path, group: &str, part: &str) -> Error {
    let expected = match part {
        "xml" => "the XML header",
        _ => "the acquisitions",
    };
    Error::field(path, format!("{}/{part}", group.trim_end_matches('/')), expected, "nothing")
}

/// Groups that could be scans.
#[derive(Default)]
struct Found {
    /// With `xml` and `data`.
    whole: Vec<String>,
    /// With one of them, and the one that is missing.
    partial: Vec<(String, &'static str)>,
    /// Names at the root.
    root: Vec<String>,
    /// Image series: with `header` and `data`.
    series: Vec<String>,
}

/// The image series of a file: groups with `header` and `data` that are no scans.
pub(super) fn series_of(file: &hdf5::File) -> Vec<String> {
    search(file).series
}

/// The scans of a file: groups with `xml` and `data`.
pub(super) fn scans_of(file: &hdf5::File) -> Vec<String> {
    search(file).whole
}

fn search(file: &hdf5::File) -> Found {
    let mut found = Found::default();
    let Ok(root) = file.group("/") else {
        return found;
    };
    let mut queue = std::collections::VecDeque::from([("/".to_owned(), root, 0usize)]);
    let mut seen = Vec::new();
    while let Some((name, group, depth)) = queue.pop_front() {
        // Links give one group several names, and may lead round in circles; the shortest name comes first.
        let Ok(info) = group.loc_info() else {
            continue;
        };
        if seen.contains(&(info.fileno, info.token)) {
            continue;
        }
        if seen.len() == MOST_GROUPS {
            break;
        }
        seen.push((info.fileno, info.token));
        let (xml, data) = (group.link_exists("xml"), group.link_exists("data"));
        match (xml, data) {
            (false, true) if group.link_exists("header") => found.series.push(name.clone()),
            (true, true) => found.whole.push(name.clone()),
            (false, true) => found.partial.push((name.clone(), "xml")),
            (true, false) => found.partial.push((name.clone(), "data")),
            (false, false) => {}
        }
        // Names come from the file and need not be valid text.
        let names: Vec<String> = group.member_names().unwrap_or_default();
        let names = names.iter().filter_map(|n| std::str::from_utf8(n.as_bytes()).ok());
        for member in names.take(MOST_GROUPS) {
            if depth == 0 && found.root.len() < 10 {
                found.root.push(crate::error::one_line(member));
            }
            if depth < DEEPEST
                && let Ok(child) = group.group(member)
            {
                let name = if depth == 0 { member.to_owned() } else { format!("{name}/{member}") };
                queue.push_back((name, child, depth + 1));
            }
        }
    }
    found
}

/// What HDF5 says, as text that is certainly valid.
fn text_of(error: &hdf5::Error) -> String {
    String::from_utf8_lossy(error.to_string().as_bytes()).into_owned()
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
pub(super) fn reading(path: &Path, what: &str, error: &hdf5::Error) -> Error {
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
pub(super) fn writing(path: &Path, error: &hdf5::Error) -> Error {
    let text = text_of(error);
    match system_error(&text) {
        Some(source) => Error::write(path, source),
        None => Error::library(path, "writing", format!("HDF5 says: {text}"), ErrorKind::Failure),
    }
}
