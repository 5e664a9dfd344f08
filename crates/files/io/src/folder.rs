//! Folders whose files are one image.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result, name};
use crate::format::Format;

/// The index of other files that a DICOM medium holds.
const INDEX: &str = "DICOMDIR";

/// A folder of files of one format ([`Format::reads_folders`]).
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) format: &'static Format,
    /// The files of the format, in the order of their names.
    pub(crate) files: Vec<PathBuf>,
    /// Files of no known format.
    pub(crate) others: Vec<PathBuf>,
}

impl Folder {
    /// The files in the order of the last number in their names.
    ///
    /// Errors: names without a number, or that differ in more than it; two files of one number; numbers that
    /// are missing.
    pub(crate) fn numbered(&self) -> Result<Vec<&Path>> {
        let path = &self.path;
        let refuse = |expected: &str, found: String| {
            Err(Error::field(path, "files of the folder", expected, found)
                .with_hint("give the files of one stack a folder of their own"))
        };
        let mut numbered: Vec<(u64, &Path)> = Vec::with_capacity(self.files.len());
        let mut around = None;
        for file in &self.files {
            let name = name(file);
            let Some((before, number, after)) = last_number(&name) else {
                if self.files.len() == 1 {
                    return Ok(vec![file]);
                }
                return refuse("a number in each name", name);
            };
            let own = (before.to_owned(), after.to_owned());
            let (first, like) = around.get_or_insert((own.clone(), name.clone()));
            if *first != own {
                return refuse("names that differ in a number alone", format!("{like} and {name}"));
            }
            numbered.push((number, file));
        }
        numbered.sort();
        let step = numbered.windows(2).map(|pair| pair[1].0 - pair[0].0).min().unwrap_or(1);
        for pair in numbered.windows(2) {
            let ([one, next], by) = ([0, 1].map(|which| name(pair[which].1)), pair[1].0 - pair[0].0);
            if by == 0 {
                return refuse("a number of its own for each file", format!("{one} and {next}"));
            }
            if by != step {
                let expected = format!("every number, {step} apart");
                return refuse(&expected, format!("none between {one} and {next}"));
            }
        }
        Ok(numbered.into_iter().map(|(_, file)| file).collect())
    }

    /// The files of the folder that are not read, in a sentence.
    pub(crate) fn left_out(&self) -> Option<String> {
        let some: Vec<String> = self.others.iter().take(4).map(|file| name(file)).collect();
        let more = if self.others.len() > some.len() { ", …" } else { "" };
        (!some.is_empty())
            .then(|| format!("files of no known format are left out: {}{more}", some.join(", ")))
    }
}

/// Whether a file has the name of a DICOM medium's index.
pub(crate) fn is_index(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.eq_ignore_ascii_case(INDEX))
}

/// A name around its last number. The ending does not count.
fn last_number(name: &str) -> Option<(&str, u64, &str)> {
    let stem = name.rfind('.').unwrap_or(name.len());
    let end = name[..stem].rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = name[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |last| {
        // A letter may have several bytes.
        last + name[last..].chars().next().map_or(1, char::len_utf8)
    });
    Some((&name[..start], name[start..end].parse().ok()?, &name[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_ordered_by_their_last_number() {
        let folder = |names: &[&str]| Folder {
            path: "f".into(),
            format: &crate::FORMATS[0],
            files: names.iter().map(PathBuf::from).collect(),
            others: Vec::new(),
        };
        let order = |names: &[&str]| -> Vec<String> {
            folder(names).numbered().unwrap().into_iter().map(name).collect()
        };
        assert_eq!(order(&["a2_10.tif", "a2_8.tif", "a2_9.tif"]), ["a2_8.tif", "a2_9.tif", "a2_10.tif"]);
        assert_eq!(
            order(&["é0006x.tif", "é0002x.tif", "é0004x.tif"]),
            ["é0002x.tif", "é0004x.tif", "é0006x.tif"]
        );
        assert_eq!(
            (order(&["only.tif"]), order(&["7"])),
            (vec!["only.tif".to_owned()], vec!["7".to_owned()])
        );
        for (names, text) in [
            (&["a1.tif", "a2.tif", "a4.tif", "a5.tif"][..], "none between a2.tif and a4.tif"),
            (&["a1.tif", "a01.tif"], "a01.tif and a1.tif"),
            (&["a1.tif", "b2.tif"], "a1.tif and b2.tif"),
            (&["a1.tif", "a.tif"], "a number in each name, found a.tif"),
            (&["a99999999999999999999999.tif", "a1.tif"], "a number in each name"),
        ] {
            let error = folder(names).numbered().unwrap_err().to_string();
            assert!(error.contains(text) && !error.contains('\n'), "{error}");
        }
    }
}
