//! Temporary files that are whole get their names.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::pending::Temporary;
use super::{expect_listed, in_flight};
use crate::error::{Error, Result, parent_folder};

/// A file or folder that is whole and on the disk, and waits for its name.
pub(super) struct Ready {
    pub(super) temporary: Temporary,
    /// As the caller names it.
    pub(super) wanted: PathBuf,
    /// What that name stands for: links are followed.
    pub(super) place: PathBuf,
}

/// What waits for the end of a call of [`together`].
#[derive(Default)]
struct Waiting {
    ready: Vec<Ready>,
    /// What is done once they have their names.
    then: Vec<Box<dyn FnOnce()>>,
}

thread_local! {
    /// What waits in each call of [`together`] that this thread is in, the innermost last.
    static WAITING: RefCell<Vec<Waiting>> = const { RefCell::new(Vec::new()) };
}

/// Gives all files that `work` writes on this thread their names in one step, once `work` is done: an
/// interruption leaves all old ones or all new ones. Each file is on the disk by then, under its temporary
/// name. Where `work` fails none gets its name, and the old ones stay.
///
/// A call within another one adds its files to the outer call's.
///
/// Errors: whatever `work` returns; [`Error::Write`] of the first file that cannot be renamed, after the
/// others have their names.
///
/// ```
/// use rayspin_io::atomic::{together, write_stream_atomically};
///
/// # let folder = tempfile::tempdir()?;
/// let [data, header] = ["a.raw", "a.txt"].map(|name| folder.path().join(name));
/// together(|| {
///     write_stream_atomically(&data, |_| Ok(()))?;
///     assert!(!data.exists());
///     write_stream_atomically(&header, |_| Ok(()))
/// })?;
/// assert!(data.exists() && header.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn together<T, E: From<Error>>(
    work: impl FnOnce() -> std::result::Result<T, E>,
) -> std::result::Result<T, E> {
    /// Ends the call also where `work` panics.
    struct Call;
    impl Call {
        fn waiting(&self) -> Waiting {
            WAITING.with_borrow_mut(|waiting| waiting.last_mut().map(std::mem::take).unwrap_or_default())
        }
    }
    impl Drop for Call {
        fn drop(&mut self) {
            let left = WAITING.with_borrow_mut(Vec::pop);
            drop(left);
        }
    }
    WAITING.with_borrow_mut(|waiting| waiting.push(Waiting::default()));
    let call = Call;
    let value = work()?;
    let waiting = call.waiting();
    drop(call);
    give_all(waiting)?;
    Ok(value)
}

/// Does this once all files that wait in [`together`] on this thread have their names, and never where one of
/// them does not get its; at once outside of it.
///
/// ```
/// use rayspin_io::{Error, atomic::{once_named, together, write_stream_atomically}};
///
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("notes.txt");
/// together(|| {
///     let written = file.clone();
///     once_named(move || assert!(written.exists()));
///     write_stream_atomically(&file, |_| Ok(()))
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn once_named(then: impl FnOnce() + 'static) {
    // Nothing to rename cannot fail.
    let _ = give_all(Waiting { ready: Vec::new(), then: vec![Box::new(then)] });
}

/// Files that `work` writes on this thread get their names at once, also within [`together`].
pub fn at_once<T>(work: impl FnOnce() -> T) -> T {
    /// What waits goes on waiting, also where `work` panics.
    struct Outer(Vec<Waiting>);
    impl Drop for Outer {
        fn drop(&mut self) {
            WAITING.set(std::mem::take(&mut self.0));
        }
    }
    let _outer = Outer(WAITING.take());
    work()
}

/// The file to read for `path`: the temporary one where it waits for its name in [`together`] on this thread,
/// else `path`. In a folder that waits likewise.
///
/// ```
/// use rayspin_io::{Error, atomic::{staged, together, write_stream_atomically}};
///
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("notes.txt");
/// together(|| {
///     write_stream_atomically(&file, |_| Ok(()))?;
///     assert!(staged(&file) != file && staged(&file).exists());
///     Ok::<(), Error>(())
/// })?;
/// assert_eq!(staged(&file), file);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn staged(path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    let within = |ready: &Ready| {
        let rest = path.strip_prefix(&ready.wanted).or_else(|_| path.strip_prefix(&ready.place)).ok()?;
        let temporary = ready.temporary.path();
        Some(if rest.as_os_str().is_empty() { temporary.to_owned() } else { temporary.join(rest) })
    };
    WAITING
        .with_borrow(|waiting| waiting.iter().rev().flat_map(|call| call.ready.iter().rev()).find_map(within))
        .unwrap_or_else(|| path.to_owned())
}

/// Renames, at once or at the end of [`together`].
pub(super) fn give(ready: Ready) -> Result<()> {
    give_all(Waiting { ready: vec![ready], then: Vec::new() })
}

fn give_all(own: Waiting) -> Result<()> {
    let own = WAITING.with_borrow_mut(|waiting| match waiting.last_mut() {
        Some(call) => {
            call.ready.extend(own.ready);
            call.then.extend(own.then);
            None
        }
        None => Some(own),
    });
    let Some(Waiting { ready, then }) = own else { return Ok(()) };
    rename_all(ready)?;
    then.into_iter().for_each(|then| then());
    Ok(())
}

fn rename_all(mut ready: Vec<Ready>) -> Result<()> {
    let mut files = in_flight();
    let listed = ready.iter().try_for_each(|one| {
        expect_listed(&files, one.temporary.path()).map_err(|source| Error::write(&one.wanted, source))
    });
    // One that cannot have its name keeps no other from it: the record of a run is the last.
    let renamed = listed.and_then(|()| {
        let mut result = Ok(());
        for one in &mut ready {
            let renamed = rename(&mut one.temporary, &one.place, &mut files, exchange);
            result = result.and(renamed.map_err(|source| Error::write(&one.wanted, source)));
        }
        result
    });
    // What is left over takes the lock when it goes.
    drop(files);
    let mut folders: Vec<&Path> = ready.iter().map(|one| parent_folder(&one.place)).collect();
    folders.dedup();
    folders.into_iter().for_each(sync);
    renamed
}

/// Flushes a folder. Its files are safe already; some file systems cannot flush a folder.
pub(super) fn sync(folder: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

/// Puts a temporary file or folder in its place. `temporary` removes a folder that was there afterwards.
fn rename(
    temporary: &mut Temporary,
    place: &Path,
    files: &mut BTreeSet<PathBuf>,
    exchange: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let new = temporary.path().to_owned();
    if !(new.is_dir() && place.is_dir()) {
        fs::rename(&new, place)?;
        files.remove(&new);
        return Ok(());
    }
    if exchange(&new, place).is_ok() {
        return Ok(());
    }
    let aside = temporary.aside();
    fs::rename(place, &aside)?;
    if let Err(error) = fs::rename(&new, place) {
        return Err(match fs::rename(&aside, place) {
            Ok(()) => error,
            Err(back) => {
                let lies = aside.display();
                io::Error::new(
                    error.kind(),
                    format!("{error}; the folder that was there is now {lies} ({back})"),
                )
            }
        });
    }
    files.remove(&new);
    files.insert(aside.clone());
    temporary.is_at(aside);
    Ok(())
}

/// Whether the file system exchanges the names of two folders beside `path` in one step.
pub(super) fn exchanges_beside(path: &Path) -> io::Result<bool> {
    let two = [Temporary::folder(path)?, Temporary::folder(path)?];
    Ok(exchange(two[0].path(), two[1].path()).is_ok())
}

/// Exchanges the names of two files or folders in one step.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(_: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// A folder with a file that says which one it is.
    fn with(folder: &Path, text: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("which"), text).unwrap();
    }

    #[test]
    fn a_folder_is_replaced_where_nothing_is_exchanged_in_one_step() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x.dicom");
        with(&place, "old");
        let mut temporary = Temporary::folder(&place).unwrap();
        with(temporary.path(), "new");
        let was = temporary.path().to_owned();
        rename(&mut temporary, &place, &mut in_flight(), refused).unwrap();
        assert_eq!(fs::read_to_string(place.join("which")).unwrap(), "new");
        assert_eq!(fs::read_to_string(temporary.path().join("which")).unwrap(), "old");
        // A later run that looks for temporary files would not take it for one.
        assert!(temporary.path().extension().is_some_and(|ending| ending == "old") && !was.exists());
        drop(temporary);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_replaced_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x.dicom");
        with(&place, "old");
        let mut temporary = Temporary::folder(&place).unwrap();
        let path = temporary.path().to_owned();
        // The new folder vanishes where the old one is already aside.
        let vanishes = |one: &Path, _: &Path| {
            let hidden = one.to_owned();
            fs::remove_dir(hidden)?;
            refused(one, one)
        };
        assert!(rename(&mut temporary, &place, &mut in_flight(), vanishes).is_err());
        assert_eq!(fs::read_to_string(place.join("which")).unwrap(), "old");
        drop(temporary);
        assert!(!path.exists() && fs::read_dir(folder.path()).unwrap().count() == 1);
    }
}
