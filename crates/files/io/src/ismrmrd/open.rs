//! Opening a file and finding the scan in it.

use std::path::Path;

use hdf5::Group;

use crate::error::{Error, Result};
use crate::hdf5_file::{self, broken_link, reading};
use crate::opening::choose;

/// Opens a file that should hold an ISMRMRD scan or images.
pub(super) fn open(path: &Path) -> Result<hdf5::File> {
    hdf5_file::open(path, "an ISMRMRD file (HDF5)")
}

/// How deep groups are searched, and how many.
const DEEPEST: usize = 4;
const MOST_GROUPS: usize = 1000;
/// The scan's group and its name: the one named, or the only one that holds `xml` and `data`.
pub(super) fn find_group(file: &hdf5::File, path: &Path, wanted: Option<&str>) -> Result<(String, Group)> {
    let mut contents = search(path, file);
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
            return choose(path, "scan", &contents.whole, Some(name)).and_then(opened);
        };
        return match ["xml", "data"].into_iter().find(|part| !group.link_exists(part)) {
            Some(part) => {
                Err(absent(path, name, part)
                    .with_hint(format!("scans in the file: {}", listed(&contents.whole))))
            }
            None => Ok((name.to_owned(), group)),
        };
    }
    if contents.whole.is_empty()
        && contents.series.is_empty()
        && let Some(error) = contents.broken.take()
    {
        return Err(error);
    }
    match contents.whole.as_slice() {
        [] => Err(match contents.partial.first() {
            Some((name, missing)) if contents.series.is_empty() => absent(path, name, missing),
            _ if !contents.series.is_empty() => Error::not_this_format(
                path,
                "an ISMRMRD scan (a group with `xml` and `data`)",
                format!("the images {}", listed(&contents.series)),
            )
            .with_hint("`rayspin convert` and `rayspin metrics` read images"),
            _ => Error::not_this_format(
                path,
                "an ISMRMRD scan (a group with `xml` and `data`)",
                format!("HDF5 that holds {}", listed(&contents.root)),
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
struct Contents {
    /// With `xml` and `data`.
    whole: Vec<String>,
    /// With one of them, and the one that is missing.
    partial: Vec<(String, &'static str)>,
    /// Names at the root.
    root: Vec<String>,
    /// Image series: with `header` and `data`.
    series: Vec<String>,
    /// The error of the first link to a file that is not there.
    broken: Option<Error>,
}

/// The image series of a file: groups with `header` and `data` that are no scans.
pub(super) fn series_of(path: &Path, file: &hdf5::File) -> Vec<String> {
    search(path, file).series
}

/// The scans of a file: groups with `xml` and `data`.
pub(super) fn scans_of(path: &Path, file: &hdf5::File) -> Vec<String> {
    search(path, file).whole
}

fn search(path: &Path, file: &hdf5::File) -> Contents {
    let mut contents = Contents::default();
    let Ok(root) = file.group("/") else {
        return contents;
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
            (false, true) if group.link_exists("header") => contents.series.push(name.clone()),
            (true, true) => contents.whole.push(name.clone()),
            (false, true) => contents.partial.push((name.clone(), "xml")),
            (true, false) => contents.partial.push((name.clone(), "data")),
            (false, false) => {}
        }
        // Names come from the file and need not be valid text.
        let names: Vec<String> = group.member_names().unwrap_or_default();
        let names = names.iter().filter_map(|n| std::str::from_utf8(n.as_bytes()).ok());
        for member in names.take(MOST_GROUPS) {
            if depth == 0 && contents.root.len() < 10 {
                contents.root.push(crate::error::one_line(member));
            }
            if depth == DEEPEST {
                continue;
            }
            let name = if depth == 0 { member.to_owned() } else { format!("{name}/{member}") };
            match group.group(member) {
                Ok(child) => queue.push_back((name, child, depth + 1)),
                Err(error) => contents.broken = contents.broken.or_else(|| broken_link(path, &name, &error)),
            }
        }
    }
    contents
}
