//! Files and folders in the making.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::name::{self, Ready};
use super::{expect_listed, in_flight, place, remove};
use crate::error::{Error, Result, parent_folder};

/// A file in the making: a temporary one as of [`super::write_atomically`], which is filled over a longer
/// time. It is gone when this is dropped unfinished.
pub(crate) struct Pending {
    wanted: PathBuf,
    temporary: Temporary,
}

impl Pending {
    /// A temporary file for `path`. Errors: as [`super::write_atomically`].
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let fail = |source| Error::write(path, source);
        let target = Target::of(path).map_err(fail)?;
        let temporary = Temporary::file(&target.path).map_err(fail)?;
        Ok(Self { wanted: path.to_owned(), temporary })
    }

    /// Where the file is to end up.
    pub(crate) fn wanted(&self) -> &Path {
        &self.wanted
    }

    /// The file to fill.
    pub(crate) fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// The file to fill, open for reading and writing.
    pub(crate) fn open(&self) -> Result<File> {
        let opened = File::options().read(true).write(true).truncate(true).open(self.path());
        opened.map_err(|source| self.cause(Error::write(&self.wanted, source)))
    }

    /// Why a write failed: the interruption that has removed the temporary file, else `error`.
    pub(super) fn cause(&self, error: Error) -> Error {
        self.temporary.cause(&self.wanted, error)
    }

    /// Flushes the file to disk and renames it: to the name that it was made for, or another in the same
    /// folder. Within [`super::together`] it is renamed at the end of that.
    pub(crate) fn finish_as(self, path: &Path) -> Result<()> {
        let fail = |source| Error::write(path, source);
        let target = Target::of(path).map_err(fail)?;
        // A writable handle: Windows refuses to flush through a read-only one.
        let flushed = File::options().write(true).open(self.path()).and_then(|file| {
            file.sync_all()?;
            target.permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))
        });
        flushed.map_err(|source| self.cause(fail(source)))?;
        name::give(Ready { temporary: self.temporary, wanted: path.to_owned(), place: target.path })
    }
}

/// A folder in the making, under a temporary name as a file of [`super::write_atomically`] has one. It is
/// gone when this is dropped unfinished.
pub(crate) struct PendingFolder {
    wanted: PathBuf,
    temporary: Temporary,
}

impl PendingFolder {
    /// A temporary folder for `path`. Errors: as [`super::write_atomically`]; a file at `path`.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let fail = |source| Error::write(path, source);
        if path.exists() && !path.is_dir() {
            return Err(fail(io::ErrorKind::NotADirectory.into()));
        }
        let place = folder_at(path).map_err(fail)?;
        Ok(Self { wanted: path.to_owned(), temporary: Temporary::folder(&place).map_err(fail)? })
    }

    /// Where the folder is to end up.
    pub(crate) fn wanted(&self) -> &Path {
        &self.wanted
    }

    /// The folder to fill.
    pub(crate) fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Why a step failed: the interruption that has removed the folder, else `source`.
    pub(crate) fn cause(&self, source: io::Error) -> Error {
        self.temporary.cause(&self.wanted, Error::write(&self.wanted, source))
    }

    /// A new file in it. Errors: [`Error::Write`] where there is one of this name, or an interruption has
    /// removed the folder.
    pub(crate) fn file(&self, name: &str) -> Result<File> {
        let path = self.path().join(name);
        let files = in_flight();
        let made = expect_listed(&files, self.path()).and_then(|()| File::create_new(path));
        // The caller that gets the error may drop the folder, which takes the lock.
        drop(files);
        made.map_err(|source| Error::write(&self.wanted, source))
    }

    /// Renames it: to the name that it was made for, or another in the same folder. A folder of this name is
    /// replaced, the caller
    /// having looked at what it holds: the two are exchanged in one step, and the old one is removed. Returns
    /// a sentence for people where the file system takes two steps.
    pub(crate) fn finish_as(self, path: &Path) -> Result<Option<String>> {
        let fail = |source| Error::write(path, source);
        name::sync(self.path());
        let place = folder_at(path).map_err(fail)?;
        let in_two_steps = place.is_dir() && !name::exchanges_beside(&place).map_err(fail)?;
        name::give(Ready { temporary: self.temporary, wanted: path.to_owned(), place })?;
        Ok(in_two_steps.then(|| {
            "this file system does not exchange two folders in one step: a process that is killed while the folder is \
             replaced leaves the old one beside it, under a hidden name that ends with .old"
                .to_owned()
        }))
    }
}

/// The folder itself where `path` is a link to one.
fn folder_at(path: &Path) -> io::Result<PathBuf> {
    if path.is_dir() { fs::canonicalize(path) } else { Ok(place(path)) }
}

/// How the names of temporary files end.
const ENDING: &str = ".part";
/// A temporary file that was not written to for this long, and whose process is gone, is left over.
const STALE: std::time::Duration = std::time::Duration::from_secs(60);

/// A temporary file or folder. It is removed when dropped, unless it has been given its name.
pub(super) struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// A file beside `path`.
    pub(super) fn file(path: &Path) -> io::Result<Self> {
        // The default is readable by the owner only, which the renamed file would keep.
        Self::beside(path, 0o666, |builder, folder| {
            Ok(builder.tempfile_in(folder)?.into_temp_path().keep()?)
        })
    }

    /// A folder beside `path`.
    pub(super) fn folder(path: &Path) -> io::Result<Self> {
        Self::beside(path, 0o777, |builder, folder| Ok(builder.tempdir_in(folder)?.keep()))
    }

    /// A folder in the system's folder for temporary files.
    pub(super) fn scratch() -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("rayspin-");
        Self::listed(|| Ok(builder.tempdir()?.keep()))
    }

    fn beside(
        path: &Path,
        mode: u32,
        make: impl FnOnce(&tempfile::Builder<'_, '_>, &Path) -> io::Result<PathBuf>,
    ) -> io::Result<Self> {
        let (prefix, folder) = (prefix(path)?, parent_folder(path));
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(ENDING);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(mode));
        }
        #[cfg(not(unix))]
        let _ = mode;
        Self::listed(|| make(&builder, folder))
    }

    /// Nobody sees a temporary file that the list lacks.
    fn listed(make: impl FnOnce() -> io::Result<PathBuf>) -> io::Result<Self> {
        let mut files = in_flight();
        let path = make()?;
        files.insert(path.clone());
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Why a step to write `wanted` failed: the interruption that has removed this, else `error`.
    fn cause(&self, wanted: &Path, error: Error) -> Error {
        match expect_listed(&in_flight(), &self.path) {
            Ok(()) => error,
            Err(interrupted) => Error::write(wanted, interrupted),
        }
    }

    /// Where it is from now on.
    pub(super) fn is_at(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// The name of something that makes room for this.
    pub(super) fn aside(&self) -> PathBuf {
        // Not the ending of temporary files, which a later run removes.
        self.path.with_extension("old")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut files = in_flight();
        if files.remove(&self.path) {
            let _ = remove(&self.path);
        }
    }
}

/// How the temporary name of `path` begins. Removes what killed processes have left of earlier writes to it.
fn prefix(path: &Path) -> io::Result<String> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no file name"));
    };
    // Names are at most 255 bytes on most systems; the random part and the ends take about 20 of them.
    let stem: String = name.to_string_lossy().chars().take(40).collect();
    let prefix = format!(".{stem}.");
    remove_stale(parent_folder(path), &prefix);
    Ok(format!("{prefix}{}", owner()))
}

/// This machine and process, as names of temporary files have it: `host-process.`.
fn owner() -> String {
    format!("{}-{}.", host(), std::process::id())
}

/// The machine's name, at most 16 letters and digits of it; empty where the system does not say.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.chars().filter(char::is_ascii_alphanumeric).take(16).collect()
}

/// Removes what killed processes of this machine have left of earlier writes of the same file.
fn remove_stale(folder: &Path, prefix: &str) {
    let own = format!("{prefix}{}-", host());
    let processes = Path::new("/proc");
    if host().is_empty() || !processes.join("self").exists() {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix(&own)?.strip_suffix(ENDING)?.split_once('.'))
            .and_then(|(process, _)| process.parse::<u32>().ok());
        let old = || entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        if let Some(process) = process
            && !processes.join(process.to_string()).exists()
            && old().is_some_and(|age| age > STALE)
        {
            // Another process may have been first.
            let _ = remove(&entry.path());
        }
    }
}

/// Where the file is to end up.
struct Target {
    path: PathBuf,
    permissions: Option<fs::Permissions>,
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => {
                Ok(Self { path: fs::canonicalize(path)?, permissions: Some(metadata.permissions()) })
            }
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            // Renaming over a device or a pipe would replace it.
            Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { path: place(path), permissions: None })
            }
            Err(error) => Err(error),
        }
    }
}
