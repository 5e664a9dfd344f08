//! Output files that are either whole or absent.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result, parent_folder};

/// Temporary files that exist at this moment.
static IN_FLIGHT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn in_flight() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    IN_FLIGHT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes every temporary file that a write in progress has made, in any thread; returns how many.
///
/// A Ctrl-C handler calls it just before it ends the process. A write that is under way and goes on afterwards fails
/// with [`Error::Write`]; the file it was to replace stays as it was.
///
/// ```
/// use rayspin_io::atomic::{remove_in_flight, write_stream_atomically};
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("notes.txt");
/// let broken_off = write_stream_atomically(&file, |_| {
///     assert_eq!(remove_in_flight(), 1); // Ctrl-C, while the file is being written
///     Ok(())
/// });
/// assert!(broken_off.is_err() && !file.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn remove_in_flight() -> usize {
    let files = std::mem::take(&mut *in_flight());
    files.iter().filter(|file| remove(file).is_ok()).count()
}

/// Writes `path` through a temporary file `.NAME.HOST-PROCESS.RANDOM.part` in the same folder: `write` fills the file at the path that it is given, which
/// is then flushed to disk and renamed to `path`. When anything fails, `path` is as it was and the temporary file is gone.
///
/// What a killed process left of an earlier write to `path` is removed. A link at `path` is followed. Errors: [`Error::Write`] when the folder does not exist or may not be written, or when
/// `path` is not a regular file; whatever `write` returns.
///
/// ```
/// use rayspin_io::{Error, atomic::write_atomically};
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("notes.txt");
/// let text = |text: &'static str| {
///     move |temporary: &std::path::Path| std::fs::write(temporary, text).map_err(|e| Error::write(temporary, e))
/// };
/// write_atomically(&file, text("first"))?;
/// assert!(write_atomically(&file, |_| Err::<(), _>(Error::unsupported("notes.txt", "a second line"))).is_err());
/// assert_eq!(std::fs::read_to_string(&file)?, "first"); // a failed write changes nothing
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_atomically<T>(path: &Path, write: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let fail = |source| Error::write(path, source);
    let target = Target::of(path).map_err(fail)?;
    let temporary = target.temporary().map_err(fail)?;
    let value = write(temporary.path())?;
    temporary.finish(&target).map_err(fail)?;
    Ok(value)
}

/// A file in the making: a temporary one as of [`write_atomically`], which is filled over a longer time. It is gone when this is
/// dropped unfinished.
pub(crate) struct Pending {
    wanted: PathBuf,
    temporary: Temporary,
}

impl Pending {
    /// A temporary file for `path`. Errors: as [`write_atomically`].
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let fail = |source| Error::write(path, source);
        let target = Target::of(path).map_err(fail)?;
        let temporary = target.temporary().map_err(fail)?;
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
        let options = File::options().read(true).write(true).truncate(true).open(self.path());
        options.map_err(|source| Error::write(&self.wanted, source))
    }

    /// Flushes the file to disk and renames it: to the name that it was made for, or another in the same folder.
    pub(crate) fn finish_as(self, path: &Path) -> Result<()> {
        let fail = |source| Error::write(path, source);
        let target = Target::of(path).map_err(fail)?;
        self.temporary.finish(&target).map_err(fail)
    }
}

/// A file, or a folder with all that it holds.
fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// A folder in the making, under a temporary name as a file of [`write_atomically`] has one. It is gone when this is dropped
/// unfinished.
pub(crate) struct PendingFolder {
    wanted: PathBuf,
    /// Empty once it has its name.
    temporary: PathBuf,
}

impl PendingFolder {
    /// A temporary folder for `path`. Errors: as [`write_atomically`]; a file at `path`.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let fail = |source| Error::write(path, source);
        if path.exists() && !path.is_dir() {
            return Err(fail(io::ErrorKind::NotADirectory.into()));
        }
        let (prefix, mut builder) = (prefix(path).map_err(fail)?, tempfile::Builder::new());
        builder.prefix(&prefix).suffix(ENDING);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o777));
        }
        let mut files = in_flight();
        let temporary = builder.tempdir_in(parent_folder(path)).map_err(fail)?.keep();
        files.insert(temporary.clone());
        Ok(Self { wanted: path.to_owned(), temporary })
    }

    /// Where the folder is to end up.
    pub(crate) fn wanted(&self) -> &Path {
        &self.wanted
    }

    /// The folder to fill.
    pub(crate) fn path(&self) -> &Path {
        &self.temporary
    }

    /// Renames it: to the name that it was made for, or another in the same folder. A folder of this name is replaced, the caller
    /// having looked at what it holds: it is set aside first, comes back when the renaming fails, and is then removed.
    pub(crate) fn finish_as(mut self, path: &Path) -> Result<()> {
        let fail = |source| Error::write(path, source);
        let sync = |folder: &Path| {
            // The files are safe already; some file systems cannot flush a folder.
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        };
        sync(&self.temporary);
        let old = path.is_dir().then(|| Self::create(path)).transpose()?;
        if let Some(old) = &old {
            // A folder takes the name of an empty one.
            fs::rename(path, &old.temporary).map_err(fail)?;
        }
        if let Err(error) = fs::rename(&self.temporary, path) {
            if let Some(old) = &old {
                let _ = fs::rename(&old.temporary, path);
            }
            return Err(fail(error));
        }
        in_flight().remove(&std::mem::take(&mut self.temporary));
        sync(parent_folder(path));
        Ok(())
    }
}

impl Drop for PendingFolder {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            in_flight().remove(&self.temporary);
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}

/// [`write_atomically`] for a writer that takes a stream: `write` gets a buffered file, errors become [`Error::Write`].
///
/// ```
/// use std::io::Write;
///
/// use rayspin_io::atomic::write_stream_atomically;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("notes.txt");
/// write_stream_atomically(&path, |file| file.write_all(b"whole or absent"))?;
/// assert_eq!(std::fs::read_to_string(&path)?, "whole or absent");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_stream_atomically<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> Result<T> {
    write_atomically(path, |temporary| {
        let fail = |source| Error::write(path, source);
        let file = File::options().write(true).truncate(true).open(temporary).map_err(fail)?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        let value = write(&mut file).map_err(fail)?;
        file.flush().map_err(fail)?;
        Ok(value)
    })
}

/// How the names of temporary files end.
const ENDING: &str = ".part";
/// A temporary file that was not written to for this long, and whose process is gone, is left over.
const STALE: std::time::Duration = std::time::Duration::from_secs(60);

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
            Ok(found) if found.is_file() => {
                Ok(Self { path: fs::canonicalize(path)?, permissions: Some(found.permissions()) })
            }
            Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            // Renaming over a device or a pipe would replace it.
            Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { path: path.to_owned(), permissions: None })
            }
            Err(error) => Err(error),
        }
    }

    fn temporary(&self) -> io::Result<Temporary> {
        let prefix = prefix(&self.path)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(ENDING);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The default is readable by the owner only, which the renamed file would keep.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        // The lock is held until the file is listed: nobody sees a file that the list lacks.
        let mut files = in_flight();
        let path = builder.tempfile_in(parent_folder(&self.path))?.into_temp_path();
        files.insert(path.to_path_buf());
        Ok(Temporary { path: Some(path) })
    }
}

/// A temporary file that goes away, and leaves the registry, when dropped.
struct Temporary {
    path: Option<tempfile::TempPath>,
}

impl Temporary {
    fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    fn finish(mut self, target: &Target) -> io::Result<()> {
        let Some(path) = self.path.take() else {
            return Ok(());
        };
        let listed = path.to_path_buf();
        let renamed = (|| {
            // A writable handle: Windows refuses to flush through a read-only one.
            File::options().write(true).open(&path)?.sync_all()?;
            if let Some(permissions) = &target.permissions {
                fs::set_permissions(&path, permissions.clone())?;
            }
            path.persist(&target.path).map_err(|e| e.error)
        })();
        in_flight().remove(&listed);
        renamed?;
        #[cfg(unix)]
        if let Ok(folder) = File::open(parent_folder(&target.path)) {
            // The data are safe already; some file systems cannot flush a folder.
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            in_flight().remove(path.as_ref() as &Path);
            // Closing removes the file; it may be gone already.
            let _ = path.close();
        }
    }
}
