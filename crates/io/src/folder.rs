//! Folders whose files are one image.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::format::{Format, any_of};
use crate::formats::FORMATS;
use crate::{Error, Result, detect, dicom};

/// The index of other files that a DICOM medium holds.
const INDEX: &str = "DICOMDIR";

/// A folder of files of one format ([`Format::reads_folders`]).
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) format: &'static Format,
    /// The files of the format, in the order of their names.
    pub(crate) files: Vec<PathBuf>,
    /// Files of no known format.
    others: Vec<PathBuf>,
}

impl Folder {
    /// Looks at the regular files in the folder; hidden files, indices (`DICOMDIR`) and folders in it do not count. Where it holds no
    /// other file of a known format, the files that its index names count.
    ///
    /// Errors: a folder or a file that cannot be read; files of several formats; no file, or files of another format; a file of
    /// no known format that is named like those of the image.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let entries = std::fs::read_dir(path).map_err(|e| Error::open(path, e))?;
        let entries: std::io::Result<Vec<_>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut found = entries.map_err(|e| Error::read(path, e))?;
        let index =
            found.iter().find(|file| is_index(file) && file.is_file() && detect(file).is_ok()).cloned();
        found.retain(|file| !name(file).starts_with('.') && !is_index(file));
        found.sort();
        let (found, within): (Vec<_>, Vec<_>) = found.into_iter().partition(|file| file.is_file());
        // A link to a file that is gone.
        if let Some((lost, error)) = within.iter().find_map(|entry| Some((entry, entry.metadata().err()?))) {
            return Err(Error::open(lost, error));
        }
        // Pipes, sockets and devices cannot be read, and may bear a name of the image's files.
        let (within, special): (Vec<_>, Vec<_>) = within.into_iter().partition(|entry| entry.is_dir());
        let (mut folder, mut others) = Self::sorted(path, found)?;
        others.extend(special);
        if let (None, Some(index)) = (&folder, index) {
            let (indexed, unknown) = Self::sorted(path, dicom::indexed(&index)?)?;
            folder = indexed;
            others.extend(unknown);
        }
        let of: Vec<&str> = FORMATS.iter().filter(|f| f.folder).map(|f| f.name).collect();
        let expected = format!("a folder of {} files", any_of(&of));
        match folder {
            Some(folder) if folder.format.folder => Self { others, ..folder }.expect_whole(),
            Some(folder) => {
                let found = format!(
                    "{} files such as {}",
                    folder.format,
                    folder.files.first().map_or_else(String::new, |f| name(f))
                );
                Err(Error::not_this_format(path, expected, found).with_hint("name one of the files"))
            }
            None => {
                let found = match others.first() {
                    Some(other) => format!("files of no known format such as {}", name(other)),
                    None => match within.first() {
                        Some(inner) => format!("no files, but the folder {}", name(inner)),
                        None => "no files".into(),
                    },
                };
                let error = Error::not_this_format(path, expected, found);
                Err(if within.is_empty() {
                    error
                } else {
                    error.with_hint("name the folder that holds the files")
                })
            }
        }
    }

    /// The files of one known format, and the files of none.
    fn sorted(path: &Path, files: Vec<PathBuf>) -> Result<(Option<Self>, Vec<PathBuf>)> {
        let mut folder: Option<Self> = None;
        let mut others = Vec::new();
        for file in files {
            match (detect(&file), &mut folder) {
                (Ok(format), Some(folder)) if folder.format == format => folder.files.push(file),
                (Ok(format), Some(folder)) => {
                    let first = folder.files.first().map(PathBuf::as_path).unwrap_or(path);
                    let list = format!("{} ({}) and {} ({format})", name(first), folder.format, name(&file));
                    return Err(Error::not_this_format(path, "a folder of files of one format", list)
                        .with_hint("name one of the files, or move the others to a folder of their own"));
                }
                (Ok(format), none) => {
                    *none = Some(Self { format, files: vec![file], others: Vec::new() });
                }
                (Err(Error::NotThisFormat { .. }), _) => others.push(file),
                (Err(error), _) => return Err(error),
            }
        }
        Ok((folder, others))
    }

    /// Errors: a file of no known format that is named like the files of the image. It is one of them, and damaged.
    fn expect_whole(self) -> Result<Self> {
        let endings: HashSet<String> = self.files.iter().filter_map(|file| ending(file)).collect();
        let shapes: HashSet<String> = self.files.iter().map(|file| shape(file)).collect();
        let like_them = |file: &&PathBuf| {
            self.format.ending_of(file).is_some()
                || ending(file).is_some_and(|ending| endings.contains(&ending))
                || shapes.contains(&shape(file))
        };
        let Some(damaged) = self.others.iter().find(like_them) else { return Ok(self) };
        let found = match damaged.metadata() {
            Ok(known) if !known.is_file() => "a pipe, a socket or a device",
            Ok(known) if known.len() == 0 => "an empty file",
            _ => "another signature",
        };
        let expected = format!("a {} file, as the others of the folder are", self.format);
        Err(Error::not_this_format(damaged, expected, found)
            .with_hint("copy the file again, or move it out of the folder"))
    }

    /// The files in the order of the last number in their names.
    ///
    /// Errors: names without a number, or that differ in more than it; two files of one number; numbers that are missing.
    pub(crate) fn numbered(&self, path: &Path) -> Result<Vec<&Path>> {
        let refuse = |expected: &str, found: String| {
            Err(Error::field(path, "files of the folder", expected, found)
                .with_hint("give the files of one stack a folder of their own"))
        };
        let mut found: Vec<(u64, &Path)> = Vec::with_capacity(self.files.len());
        let mut around = None;
        for file in &self.files {
            let of = name(file);
            let Some((before, number, after)) = last_number(&of) else {
                if self.files.len() == 1 {
                    return Ok(vec![file]);
                }
                return refuse("a number in each name", of);
            };
            let own = (before.to_owned(), after.to_owned());
            let (first, at) = around.get_or_insert((own.clone(), of.clone()));
            if *first != own {
                return refuse("names that differ in a number alone", format!("{at} and {of}"));
            }
            found.push((number, file));
        }
        found.sort();
        let step = found.windows(2).map(|pair| pair[1].0 - pair[0].0).min().unwrap_or(1);
        for pair in found.windows(2) {
            let ([one, next], by) = ([0, 1].map(|at| name(pair[at].1)), pair[1].0 - pair[0].0);
            if by == 0 {
                return refuse("a number of its own for each file", format!("{one} and {next}"));
            }
            if by != step {
                let expected = format!("every number, {step} apart");
                return refuse(&expected, format!("none between {one} and {next}"));
            }
        }
        Ok(found.into_iter().map(|(_, file)| file).collect())
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

/// The ending of a name without its dot; none of a number, as UIDs end.
fn ending(file: &Path) -> Option<String> {
    let ending = file.extension()?.to_string_lossy().to_ascii_lowercase();
    Some(ending).filter(|ending| !ending.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A name with each number in it as 0.
fn shape(file: &Path) -> String {
    let mut shape = String::new();
    for c in name(file).chars() {
        match c.is_ascii_digit() {
            true if shape.ends_with('0') => {}
            true => shape.push('0'),
            false => shape.push(c),
        }
    }
    shape
}

/// A name around its last number. The ending does not count.
fn last_number(name: &str) -> Option<(&str, u64, &str)> {
    let stem = name.rfind('.').unwrap_or(name.len());
    let end = name[..stem].rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = name[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| {
        // A letter may have several bytes.
        at + name[at..].chars().next().map_or(1, char::len_utf8)
    });
    Some((&name[..start], name[start..end].parse().ok()?, &name[end..]))
}

/// The name of a file without its folder.
pub(crate) fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether an output of this name is a folder that exists and may be replaced: its format writes folders, and wrote this one.
///
/// Errors: a folder of such a name that holds anything else, or that cannot be read.
///
/// ```
/// use rayspin_core::{Geometry, Image};
/// use rayspin_io::{replaces_folder, write_image};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("head.dicom");
/// assert!(!replaces_folder(&path)?);
/// let volume = Image::new(ndarray::ArrayD::from_elem(vec![2, 4, 5], 30.0f32), Geometry::default())?;
/// write_image(&path, &volume, &Default::default())?;
/// assert!(replaces_folder(&path)?);
/// std::fs::write(path.join("notes.txt"), "of another program")?;
/// assert!(replaces_folder(&path).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn replaces_folder(path: impl AsRef<Path>) -> Result<bool> {
    let path = path.as_ref();
    let images = Format::of_name(path).and_then(|format| format.images.as_ref());
    match images.and_then(|images| images.replaces).filter(|_| path.is_dir()) {
        Some(replaces) => replaces(path).map(|()| true),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_refused_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let expect = |text: &str| {
            let error = Folder::open(folder.path()).unwrap_err().to_string();
            assert!(error.contains(text) && !error.contains('\n'), "{error}");
        };
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        expect("found no files");
        write(".hidden", b"");
        write(INDEX, b"");
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        expect("found no files, but the folder sub");
        write("notes.txt", b"text");
        expect("files of no known format such as notes.txt");
        write("a.npy", crate::npy::MAGIC);
        expect("NumPy array files such as a.npy");
        write("b.png", b"\x89PNG\r\n\x1a\n");
        expect("found a.npy (NumPy array) and b.png (PNG picture)");
        std::fs::remove_file(folder.path().join("a.npy")).unwrap();
        std::fs::remove_file(folder.path().join("b.png")).unwrap();
        let dicom = [&[0; 128][..], b"DICM"].concat();
        write("1", &dicom);
        write("2.dcm", &dicom);
        let found = Folder::open(folder.path()).unwrap();
        assert_eq!((found.files.len(), found.left_out().unwrap().contains("notes.txt")), (2, true));
        write("c.npy", crate::npy::MAGIC);
        expect("found 1 (DICOM) and c.npy (NumPy array)");
    }

    #[test]
    fn files_are_ordered_by_their_last_number() {
        let folder = |names: &[&str]| Folder {
            format: &FORMATS[0],
            files: names.iter().map(PathBuf::from).collect(),
            others: Vec::new(),
        };
        let order = |names: &[&str]| -> Vec<String> {
            folder(names).numbered(Path::new("f")).unwrap().into_iter().map(name).collect()
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
            let error = folder(names).numbered(Path::new("f")).unwrap_err().to_string();
            assert!(error.contains(text) && !error.contains('\n'), "{error}");
        }
    }
}
