//! The detection of folders whose files are one image.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::detect;
use crate::error::name;
use crate::folder::{Folder, is_index};
use crate::format::{Format, any_of};
use crate::formats::FORMATS;
use crate::{Error, Result, dicom};

impl Folder {
    /// Looks at the regular files in the folder; hidden files, indices (`DICOMDIR`) and folders in it do not
    /// count. Where it holds no other file of a known format, the files that its index names count.
    ///
    /// Errors: a folder or a file that cannot be read; files of several formats; no file, or files of another
    /// format; a file of no known format that is named like the image's files.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let entries = std::fs::read_dir(path).map_err(|e| Error::open(path, e))?;
        let entries: std::io::Result<Vec<_>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut files = entries.map_err(|e| Error::read(path, e))?;
        let index =
            files.iter().find(|file| is_index(file) && file.is_file() && detect(file).is_ok()).cloned();
        files.retain(|file| !name(file).starts_with('.') && !is_index(file));
        files.sort();
        let (files, within): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.is_file());
        // A link to a file that is gone.
        if let Some((lost, error)) = within.iter().find_map(|entry| Some((entry, entry.metadata().err()?))) {
            return Err(Error::open(lost, error));
        }
        // Pipes, sockets and devices cannot be read, and may bear a name of the image's files.
        let (within, special): (Vec<_>, Vec<_>) = within.into_iter().partition(|entry| entry.is_dir());
        let (mut folder, mut others) = Self::sorted(path, files)?;
        others.extend(special);
        if let (None, Some(index)) = (&folder, index) {
            let (indexed, unknown) = Self::sorted(path, dicom::indexed(&index)?)?;
            folder = indexed;
            others.extend(unknown);
        }
        let names: Vec<&str> = FORMATS.iter().filter(|f| f.reads_folders()).map(|f| f.name).collect();
        let expected = format!("a folder of {} files", any_of(&names));
        match folder {
            Some(folder) if folder.format.reads_folders() => Self { others, ..folder }.expect_whole(),
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
                    *none =
                        Some(Self { path: path.to_owned(), format, files: vec![file], others: Vec::new() });
                }
                (Err(Error::NotThisFormat { .. }), _) => others.push(file),
                (Err(error), _) => return Err(error),
            }
        }
        Ok((folder, others))
    }

    /// Errors: a file of no known format that is named like the files of the image. It is one of them, and
    /// damaged.
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

/// Whether an output of this name is a folder that exists and may be replaced: its format writes folders, and
/// wrote this one.
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
        write("DICOMDIR", b"");
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
}
