//! Outputs that one process at a time writes.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{in_flight, place, remove};
use crate::error::{Error, Result, parent_folder};

/// A claim on outputs: while it lives, nobody else gets one on any of them, in this process or another.
///
/// A hidden file beside each output, `.NAME.lock`, is locked for the claim. The system gives up the lock of a
/// process that ends in any way, so nothing that a killed process leaves keeps others out. The file is
/// removed with the claim, and when the process is interrupted.
///
/// ```
/// use rayspin_io::atomic::Claim;
///
/// # let folder = tempfile::tempdir()?;
/// let outputs = [folder.path().join("image.npy"), folder.path().join("image.json")];
/// let claim = Claim::on(&outputs)?.expect("nobody else writes them");
/// assert!(Claim::on(&outputs[1..])?.is_none());
/// drop(claim);
/// assert!(Claim::on(&outputs)?.is_some());
/// assert!(std::fs::read_dir(&folder)?.next().is_none()); // nothing is left
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "outputs are claimed only while this lives"]
pub struct Claim {
    locks: Vec<Lock>,
}

/// A locked file, which is removed before the lock is given up.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    _file: File,
    is_certain: bool,
}

impl Claim {
    /// Claims all of these outputs, or none where another claim has one of them.
    ///
    /// Errors: [`Error::Write`] where a file beside an output cannot be made.
    pub fn on<P: AsRef<Path>>(outputs: &[P]) -> Result<Option<Self>> {
        let mut locks = Vec::with_capacity(outputs.len());
        for output in outputs {
            match Lock::of(output.as_ref())? {
                Some(lock) => locks.push(lock),
                None => return Ok(None),
            }
        }
        Ok(Some(Self { locks }))
    }

    /// Whether the file system locks files. Where it does not, a claim keeps nobody out.
    pub fn is_certain(&self) -> bool {
        self.locks.iter().all(|lock| lock.is_certain)
    }

    /// Removes what a killed process has left of its claims on these outputs.
    pub fn clear<P: AsRef<Path>>(outputs: &[P]) {
        for output in outputs.iter().filter(|output| lock_path(output.as_ref()).exists()) {
            let _ = Lock::of(output.as_ref());
        }
    }
}

/// The file that is locked for an output.
fn lock_path(output: &Path) -> PathBuf {
    let output = place(output);
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    parent_folder(&output).join(format!(".{name}.lock"))
}

impl Lock {
    /// None where another claim has the output.
    fn of(output: &Path) -> Result<Option<Self>> {
        let path = lock_path(output);
        loop {
            // Whoever removes the files of an interrupted process finds this one, or it is not there yet.
            let mut files = in_flight();
            let mut opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
            // Another user's process has left it, or holds it.
            if opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
                opened = File::open(&path).or(opened);
            }
            let file = opened.map_err(|source| Error::write(output, source))?;
            let is_certain = match file.try_lock() {
                Ok(()) => true,
                Err(TryLockError::WouldBlock) => return Ok(None),
                // Two threads of this process see each other on such a file system, too.
                Err(TryLockError::Error(_)) if files.contains(&path) => return Ok(None),
                Err(TryLockError::Error(_)) => false,
            };
            // The claim before may have removed the file after it was opened here.
            if is_certain && !is_at(&file, &path) {
                continue;
            }
            files.insert(path.clone());
            return Ok(Some(Self { path, _file: file, is_certain }));
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock is given up with the file, after this.
        let mut files = in_flight();
        if files.remove(&self.path) {
            let _ = remove(&self.path);
        }
    }
}

/// Whether the file has this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let numbers = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(file), Ok(path)) => numbers(file) == numbers(path),
        _ => false,
    }
}

/// An open file keeps its name here.
#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}
