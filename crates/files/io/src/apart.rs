//! Whether the outputs of a run leave its inputs, and each other, as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::atomic::place;
use crate::error::{Error, Result, parent_folder};
use crate::{Format, Input, detect, parts, sources};

/// Fails where an output of a run would replace one of its inputs or another output.
///
/// Different names of one file count as the same: relative paths, links, hard links, either file of a pair
/// (`.hdr` of a `.cfl`), and the folder that holds the file. All files that are read for an input are inputs
/// ([`sources`]). A folder that is one image takes no output, which would become a part of the image. An
/// input `-` is standard input.
///
/// Errors: [`Error::Field`], which names the output.
///
/// ```
/// use rayspin_io::expect_apart;
///
/// # let folder = tempfile::tempdir()?;
/// let scan = folder.path().join("scan.npy");
/// std::fs::write(&scan, "")?;
/// assert!(expect_apart(&[&scan], &[folder.path().join("image.npy")]).is_ok());
/// assert!(expect_apart(&[&scan], &[folder.path().join(".").join("scan.npy")]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn expect_apart<I: AsRef<Path>, O: AsRef<Path>>(inputs: &[I], outputs: &[O]) -> Result<()> {
    let mut taken = Taken::default();
    let inputs = inputs.iter().map(AsRef::as_ref).filter(|input| input.as_os_str() != "-");
    // Only what is there may be a file that an input leads to, and looking for those takes time.
    let replaces = outputs.iter().flat_map(parts).any(|file| file.exists());
    for input in inputs.filter(|_| !outputs.is_empty()) {
        let file = Input::of(input).file;
        let folder = file.is_dir() && detect(&file).is_ok();
        let read = if replaces { sources(input) } else { parts(input) };
        taken.inputs.extend(read.iter().filter_map(|file| identity(file)));
        taken.add(read, Role::Input);
        taken.add([file], if folder { Role::Folder } else { Role::Input });
    }
    for output in outputs.iter().map(AsRef::as_ref) {
        let own: Vec<PathBuf> = std::iter::once(output.to_owned()).chain(parts(output)).collect();
        if let Some(other) = own.iter().find_map(|file| taken.meets(file)) {
            return Err(Error::field(output, "output", "a file of its own for each output", other)
                .with_hint("give the output another name"));
        }
        let folder = Format::of_name(output).is_some_and(Format::writes_folders);
        taken.add(own, if folder { Role::OutputFolder } else { Role::Output });
    }
    Ok(())
}

/// What a run has a place for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Input,
    /// A folder that is read as one image.
    Folder,
    Output,
    /// A folder that is written as one image.
    OutputFolder,
}

/// The places that are taken.
#[derive(Default)]
struct Taken {
    /// Without links. What lies in a folder follows it.
    places: BTreeMap<PathBuf, Role>,
    /// Inputs by what hard links share. An output takes its name from an old file, whose other names stay:
    /// two outputs may have been one file.
    inputs: BTreeSet<(u64, u64)>,
}

impl Taken {
    fn add(&mut self, files: impl IntoIterator<Item = PathBuf>, role: Role) {
        self.places.extend(files.into_iter().map(|file| (resolved(&file), role)));
    }

    /// What an output would do harm to.
    fn meets(&self, output: &Path) -> Option<&'static str> {
        let place = resolved(output);
        if identity(output).is_some_and(|file| self.inputs.contains(&file)) {
            return Some("an input of this run");
        }
        let within = self.places.range(place.clone()..).next().filter(|(path, _)| path.starts_with(&place));
        if let Some((path, role)) = within {
            let input = matches!(role, Role::Input | Role::Folder);
            return Some(match (*path == place, input) {
                (true, true) => "an input of this run",
                (true, false) => "another output of this run",
                (false, true) => "a folder that holds an input of this run",
                (false, false) => "a folder that holds another output of this run",
            });
        }
        place.ancestors().skip(1).enumerate().find_map(|(above, folder)| match self.places.get(folder) {
            // Folders within a folder are not read.
            Some(Role::Folder) if above == 0 => Some("one in a folder that is an input of this run"),
            Some(Role::OutputFolder) => Some("one in a folder that is another output of this run"),
            _ => None,
        })
    }
}

/// What all hard links of a file share.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<(u64, u64)> {
    None
}

/// The path without links, as far as its folders exist.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(path) = path.canonicalize() {
        return path;
    }
    let path = &place(path);
    match (path.file_name(), parent_folder(path)) {
        (Some(name), folder) if folder != path => resolved(folder).join(name),
        _ => path.to_owned(),
    }
}
