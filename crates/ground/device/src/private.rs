//! Folders and files that only this user can change, for code that is loaded later.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// The folder `rayspin` among the user's caches: in `XDG_CACHE_HOME`, else in `.cache` of `HOME`. `None`
/// where neither is an absolute path.
pub fn cache() -> Option<PathBuf> {
    cache_in(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
}

fn cache_in(xdg: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute(xdg).or_else(|| Some(absolute(home)?.join(".cache")))?;
    Some(base.join("rayspin"))
}

/// Makes `folder` and the folders above it if they do not exist. Only this user may use them.
///
/// Errors: it cannot be made; another user may write to it ([`io::ErrorKind::PermissionDenied`]).
pub fn make(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    check(folder)
}

/// Fails if another user may write to `folder` ([`io::ErrorKind::PermissionDenied`]). A folder that does not
/// exist passes.
pub fn check(folder: &Path) -> io::Result<()> {
    match std::fs::metadata(folder) {
        Ok(metadata) => expect_own(folder, &metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// A name in `folder` that no other process and no other thread uses.
pub fn temporary(folder: &Path, extension: &str) -> PathBuf {
    // Each `RandomState` has its own keys, which start at random.
    let number = RandomState::new().build_hasher().finish();
    folder.join(format!(".{number:016x}.{extension}"))
}

/// Makes a new file that only this user may write to. Errors: the file exists, or cannot be made.
pub fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens a file that is to be loaded as code.
///
/// Errors: it cannot be read; another user may write to it or to its folder
/// ([`io::ErrorKind::PermissionDenied`]).
pub fn open(path: &Path) -> io::Result<File> {
    check(path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    let file = File::open(path)?;
    expect_own(path, &file.metadata()?)?;
    Ok(file)
}

/// Opens the file `name` beside `executable`, to load code from it; `None` where no such file exists.
///
/// Only those who may change the executable may change this file. The file and its folder belong to this
/// user, to the system's administrator or to the executable's owner, as in `/usr/bin`, `~/.cargo/bin` or a
/// group's own folder of programs.
///
/// Errors: it cannot be read; another user may write to it or to its folder
/// ([`io::ErrorKind::PermissionDenied`]).
pub fn open_beside(executable: &Path, name: &str) -> io::Result<Option<File>> {
    let path = executable.with_file_name(name);
    // Only regular files: opening a pipe would wait for a writer.
    if !path.is_file() {
        return Ok(None);
    }
    let file = File::open(&path)?;
    expect_as_safe(executable, &path, &file.metadata()?)?;
    Ok(Some(file))
}

#[cfg(unix)]
fn expect_as_safe(executable: &Path, path: &Path, file: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let rights = |metadata: &std::fs::Metadata| Rights {
        owner: metadata.uid(),
        group: metadata.gid(),
        mode: metadata.mode(),
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder_rights = rights(&std::fs::metadata(folder)?);
    // An executable that was deleted adds no owner.
    let owners = [Some(user()), Some(0), std::fs::metadata(executable).ok().map(|metadata| metadata.uid())];
    if let Some(words) = refuses_folder_of_code(folder_rights, owners) {
        return Err(refused(folder, &words));
    }
    refuses_code_beside(rights(file), folder_rights, owners)
        .map_or(Ok(()), |words| Err(refused(path, &words)))
}

/// Who else may write is not known here.
#[cfg(not(unix))]
fn expect_as_safe(_: &Path, path: &Path, _: &std::fs::Metadata) -> io::Result<()> {
    Err(refused(path, "has rights that this system does not tell"))
}

/// The owner and the rights of a file or folder.
#[derive(Debug, Clone, Copy)]
struct Rights {
    owner: u32,
    group: u32,
    mode: u32,
}

/// Why others may place code in an executable's folder, if they may. The folder's group may replace the
/// executable, too, and is allowed.
fn refuses_folder_of_code(folder: Rights, owners: [Option<u32>; 3]) -> Option<String> {
    if !owners.contains(&Some(folder.owner)) {
        return Some(foreign(folder.owner));
    }
    (folder.mode & 0o002 != 0).then(|| writable(folder.mode))
}

/// Why a file beside an executable is not as safe as the executable.
fn refuses_code_beside(file: Rights, folder: Rights, owners: [Option<u32>; 3]) -> Option<String> {
    if !owners.contains(&Some(file.owner)) {
        return Some(foreign(file.owner));
    }
    // In a sticky folder, group members may replace only their own files.
    let group_of_both = folder.mode & 0o1020 == 0o020 && file.group == folder.group;
    let others = if group_of_both { 0o002 } else { 0o022 };
    (file.mode & others != 0).then(|| writable(file.mode))
}

fn foreign(owner: u32) -> String {
    format!("belongs to user {owner}, neither to this one nor to the executable's owner")
}

#[cfg(unix)]
fn expect_own(path: &Path, metadata: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let words = refuses(metadata.uid(), metadata.mode(), user());
    words.map_or(Ok(()), |words| Err(refused(path, &words)))
}

/// Who else may write is not known here.
#[cfg(not(unix))]
fn expect_own(path: &Path, _: &std::fs::Metadata) -> io::Result<()> {
    Err(refused(path, "has rights that this system does not tell"))
}

fn refused(path: &Path, words: &str) -> io::Error {
    let words = format!("{} {words}: no code is loaded from there", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, words)
}

/// Why others than `user` may change a file of `owner` with these rights, if they may. The system's
/// administrator may change everything anyway.
fn refuses(owner: u32, mode: u32, user: u32) -> Option<String> {
    if owner != user && owner != 0 {
        return Some(format!("belongs to user {owner}, not to {user}"));
    }
    (mode & 0o022 != 0).then(|| writable(mode))
}

fn writable(mode: u32) -> String {
    format!("may be written to by others (mode {:o})", mode & 0o7777)
}

/// The user whose rights this process has.
#[cfg(unix)]
#[allow(unsafe_code)]
fn user() -> u32 {
    unsafe extern "C" {
        fn geteuid() -> u32;
    }
    // SAFETY: geteuid(2) has no requirements and always succeeds.
    unsafe { geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_in_an_absolute_folder_or_nowhere() {
        let found = |xdg: &str, home: &str| cache_in(Some(xdg.into()), Some(home.into()));
        assert_eq!(found("/x", "/home/a"), Some("/x/rayspin".into()));
        for unusable in ["", "x", "./x", "../x"] {
            assert_eq!(found(unusable, "/home/a"), Some("/home/a/.cache/rayspin".into()));
            assert_eq!(found(unusable, unusable), None);
            assert_eq!(cache_in(None, Some(unusable.into())), None);
        }
        assert_eq!(cache_in(None, None), None);
    }

    #[test]
    fn only_this_user_s_own_and_the_system_s_files_are_trusted() {
        for mode in [0o100_600, 0o100_644, 0o40_700, 0o40_755] {
            assert_eq!(refuses(1000, mode, 1000), None);
            assert_eq!(refuses(0, mode, 1000), None);
            assert!(refuses(1001, mode, 1000).unwrap().contains("user 1001"));
            assert!(refuses(1000, mode, 0).unwrap().contains("not to 0"));
        }
        for mode in [0o100_620, 0o100_602, 0o40_777, 0o41_777, 0o42_775] {
            assert!(refuses(1000, mode, 1000).unwrap().contains("others"), "{mode:o}");
        }
    }

    #[test]
    fn code_beside_an_executable_is_changed_only_by_who_may_change_the_executable() {
        let rights = |owner, group, mode| Rights { owner, group, mode };
        let file = |owner, mode, folder| {
            refuses_code_beside(rights(owner, 50, mode), folder, [Some(1000), Some(0), Some(7)])
        };
        let folder =
            |owner, mode| refuses_folder_of_code(rights(owner, 50, mode), [Some(1000), Some(0), Some(7)]);
        let (own, shared) = (rights(0, 50, 0o40_755), rights(0, 50, 0o42_775));
        // This user's, the system's, and the executable's owner's.
        for owner in [1000, 0, 7] {
            assert_eq!((folder(owner, 0o40_755), folder(owner, 0o42_775)), (None, None));
            assert_eq!((file(owner, 0o100_644, own), file(owner, 0o100_664, shared)), (None, None));
            for mode in [0o40_777, 0o41_777, 0o40_757] {
                assert!(folder(owner, mode).unwrap().contains("others"), "{mode:o}");
            }
            for mode in [0o100_646, 0o100_666, 0o100_662] {
                assert!(file(owner, mode, shared).unwrap().contains("others"), "{mode:o}");
            }
            // A group that may not replace the executable: no right to, another group, or a sticky folder.
            for folder in [own, rights(0, 51, 0o40_775), rights(0, 50, 0o41_775)] {
                assert!(file(owner, 0o100_664, folder).unwrap().contains("others"), "{folder:?}");
            }
        }
        for stranger in [1001, 65534] {
            assert!(folder(stranger, 0o40_755).unwrap().contains(&format!("user {stranger}")));
            assert!(file(stranger, 0o100_644, own).unwrap().contains(&format!("user {stranger}")));
            assert!(file(stranger, 0o100_644, shared).is_some());
        }
        assert!(refuses_code_beside(rights(7, 50, 0o100_644), own, [Some(1000), Some(0), None]).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn code_beside_an_executable_is_opened_where_nobody_else_may_write() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("rayspin-beside-{}", std::process::id()));
        make(&folder).unwrap();
        let (executable, code) = (folder.join("program"), folder.join("code"));
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        assert!(open_beside(&executable, "code").unwrap().is_none());
        std::fs::create_dir(&code).unwrap();
        assert!(open_beside(&executable, "code").unwrap().is_none(), "a folder is no file");
        std::fs::remove_dir(&code).unwrap();
        for path in [&executable, &code] {
            std::fs::write(path, "text").unwrap();
            set(path, 0o644);
        }
        let read = || open_beside(&executable, "code").map(|file| io::read_to_string(file.unwrap()).unwrap());
        assert_eq!(read().unwrap(), "text");
        for (of_folder, of_code, wrong) in
            [(0o777, 0o644, &folder), (0o1777, 0o644, &folder), (0o755, 0o646, &code), (0o755, 0o664, &code)]
        {
            set(&folder, of_folder);
            set(&code, of_code);
            let error = read().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert!(error.to_string().starts_with(&format!("{} may", wrong.display())), "{error}");
        }
        // Their group may replace the executable as well.
        set(&folder, 0o775);
        set(&code, 0o664);
        assert_eq!(read().unwrap(), "text");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_or_file_that_others_may_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let base = std::env::temp_dir().join(format!("rayspin-private-{}", std::process::id()));
        let (folder, path) = (base.join("a/b"), base.join("a/b/code"));
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        check(&folder).unwrap();
        make(&folder).unwrap();
        for made in [&base, &base.join("a"), &folder] {
            assert_eq!(std::fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o700);
        }
        io::Write::write_all(&mut create(&path).unwrap(), b"code").unwrap();
        assert_eq!(create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(io::read_to_string(open(&path).unwrap()).unwrap(), "code");
        let refused = |result: io::Result<()>, name: &Path| {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert!(error.to_string().contains(&*name.to_string_lossy()), "{error}");
        };
        for mode in [0o660, 0o602, 0o666] {
            set(&path, mode);
            refused(open(&path).map(drop), &path);
        }
        set(&path, 0o600);
        for mode in [0o770, 0o702, 0o1777] {
            set(&folder, mode);
            refused(open(&path).map(drop), &folder);
            refused(make(&folder), &folder);
        }
        set(&folder, 0o700);
        open(&path).unwrap();
        assert_eq!(open(&base.join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::remove_dir_all(&base).unwrap();
    }
}
