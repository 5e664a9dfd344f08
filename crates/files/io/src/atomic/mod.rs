//! Output files that are either whole or absent.
//!
//! A file is written under a temporary name, flushed to disk, and renamed. One lock guards the
//! names: a thread holds it while it makes, renames or removes a temporary file. [`hold`] takes the lock, so
//! that an interrupted process can end between two such steps and never within one. Outputs that belong
//! together get their names in one such step ([`together`]). Of several processes that would write the same
//! outputs, one at a time may ([`Claim`]).

mod claim;
mod name;
mod pending;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result, parent_folder};

pub use claim::Claim;
pub use name::{at_once, once_named, staged, together};
pub(crate) use pending::{Pending, PendingFolder};

/// Temporary files and folders that exist at this moment.
static IN_FLIGHT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn in_flight() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    IN_FLIGHT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While this lives, no output of the process gets its name, and no temporary file is made or removed by
/// another thread: such threads wait.
///
/// A handler of signals takes it and keeps it until the process has ended. What is complete under its name
/// then stays as it is. A write that fails because its temporary file is gone waits as well, so that it
/// cannot end the process with an error of its own.
#[must_use = "names are held only while this lives"]
pub struct Hold(MutexGuard<'static, BTreeSet<PathBuf>>);

/// Waits until no output is between two of its steps, and holds all names from then on. The thread that holds
/// them must not write.
///
/// ```
/// use rayspin_io::atomic::{hold, write_stream_atomically};
///
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("notes.txt");
/// let held = hold();
/// let write = std::thread::spawn(move || write_stream_atomically(&file, |_| Ok(())));
/// assert!(std::fs::read_dir(&folder)?.next().is_none()); // the write waits
/// drop(held);
/// assert!(write.join().is_ok_and(|written| written.is_ok()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn hold() -> Hold {
    Hold(in_flight())
}

impl Hold {
    /// Removes every temporary file that a write in progress has made, in any thread. Returns those that
    /// could not be removed.
    pub fn remove_in_flight(&mut self) -> Vec<PathBuf> {
        let files = std::mem::take(&mut *self.0);
        files.into_iter().filter(|file| remove(file).is_err() && file.exists()).collect()
    }
}

/// Removes every temporary file that a write in progress has made, in any thread; returns how many.
///
/// A write that is under way and goes on afterwards fails with [`Error::Write`]; the file it was to replace
/// stays as it was. A handler that ends the process uses [`hold`], so that nothing happens between the
/// removal and the end.
///
/// ```standalone_crate
/// use rayspin_io::atomic::{remove_in_flight, write_stream_atomically};
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("notes.txt");
/// let broken_off = write_stream_atomically(&file, |_| {
///     assert_eq!(remove_in_flight(), 1); // while the file is being written
///     Ok(())
/// });
/// assert!(broken_off.is_err() && !file.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn remove_in_flight() -> usize {
    let mut held = hold();
    let count = held.0.len();
    count - held.remove_in_flight().len()
}

/// A folder for the temporary files of the process, in the system's folder for temporary files. It is
/// gone with all it holds when this is dropped, and when the process is interrupted.
///
/// ```
/// use rayspin_io::atomic::ScratchFolder;
///
/// let scratch = ScratchFolder::create()?;
/// std::fs::write(scratch.path().join("part.npy"), "")?;
/// let path = scratch.path().to_owned();
/// drop(scratch);
/// assert!(!path.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ScratchFolder(pending::Temporary);

impl ScratchFolder {
    /// A new, empty folder that other users cannot read. Errors: [`Error::Write`].
    pub fn create() -> Result<Self> {
        pending::Temporary::scratch().map(Self).map_err(|e| Error::write(std::env::temp_dir(), e))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Writes `path` through a temporary file `.NAME.HOST-PROCESS.RANDOM.part` in the same folder: `write` fills
/// the file at the path that it is given, which is then flushed to disk and renamed to `path`. When anything
/// fails, `path` is as it was and the temporary file is gone.
///
/// What a killed process left of an earlier write to `path` is removed. A link at `path` is followed, also
/// one to a file that is not there yet. Errors: [`Error::Write`] when the folder does not exist or may not be
/// written, or when `path` is not a regular file; whatever `write` returns.
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
    let pending = Pending::create(path)?;
    let value = write(pending.path()).map_err(|error| pending.cause(error))?;
    pending.finish_as(path)?;
    Ok(value)
}

/// [`write_atomically`] for a writer that takes a stream: `write` gets a buffered file, errors become
/// [`Error::Write`].
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
    let pending = Pending::create(path)?;
    let fail = |source| Error::write(path, source);
    let mut file = BufWriter::with_capacity(1 << 20, pending.open()?);
    let value = write(&mut file).map_err(fail)?;
    file.flush().map_err(fail)?;
    drop(file);
    pending.finish_as(path)?;
    Ok(value)
}

/// Links that lead from one to the next, as many as Linux follows.
const LINKS: usize = 40;

/// Where a file or folder of this name is written: a link is followed, also one to a file that is not there
/// yet.
///
/// ```
/// use rayspin_io::atomic::place;
///
/// # let folder = tempfile::tempdir()?;
/// let [link, file] = ["link.npy", "disk.npy"].map(|name| folder.path().join(name));
/// std::os::unix::fs::symlink("disk.npy", &link)?;
/// assert_eq!((place(&link), place(&file)), (file.clone(), file));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn place(path: impl AsRef<Path>) -> PathBuf {
    let mut path = path.as_ref().to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = parent_folder(&path).join(target),
            Err(_) => break,
        }
    }
    path
}

/// Lets `create` make or truncate the temporary file `path`. A library that opens files by name would make
/// one anew that an interruption has removed.
///
/// Errors: the file was removed by [`remove_in_flight`].
pub(crate) fn creating<T>(path: &Path, create: impl FnOnce() -> T) -> io::Result<T> {
    let files = in_flight();
    expect_listed(&files, path)?;
    Ok(create())
}

fn expect_listed(files: &BTreeSet<PathBuf>, path: &Path) -> io::Result<()> {
    match files.contains(path) {
        true => Ok(()),
        false => {
            Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted: its temporary file was removed"))
        }
    }
}

/// A file, or a folder with all that it holds.
fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
