//! Kernels compiled beforehand ([`Precompiled`]): where this process finds them.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rayspin_core::{Error, Result};

use super::archive::Precompiled;
use crate::private;

/// The archive that the program carries.
static CARRIED: OnceLock<&[u8]> = OnceLock::new();

/// Makes the bytes of an archive that the program carries the archive of this process. Call this before the
/// first GPU is used. Only the first call counts. The archive is trusted like the program itself.
///
/// The feature `precompiled` of the command and of the Python package calls this with the file that
/// `RAYSPIN_KERNELS_EMBED` names when they are built.
pub fn carry(archive: &'static [u8]) {
    let _ = CARRIED.set(archive);
}

/// The result of the search for this process's archive.
#[derive(Default)]
struct Found {
    archive: Option<Precompiled>,
    /// Why the file beside the executable is ignored.
    ignored: Option<String>,
}

/// The archive of this process: the file that `RAYSPIN_KERNELS` names, or else the one that the program
/// [carries](carry), or else
/// `rayspin.kernels` beside the executable. That last file is [`ignored`] if others may write to it.
///
/// Errors: a file that is no archive.
pub fn archive() -> Result<Option<&'static Precompiled>> {
    match found() {
        Ok(loaded) => Ok(loaded.archive.as_ref()),
        Err(words) => Err(Error::Device { what: "precompiled kernels".to_owned(), detail: words.clone() }),
    }
}

/// Why `rayspin.kernels` beside the executable is ignored, in words for people; `None` if it is not.
pub fn ignored() -> Option<&'static str> {
    found().as_ref().ok()?.ignored.as_deref()
}

fn found() -> &'static std::result::Result<Found, String> {
    static FOUND: OnceLock<std::result::Result<Found, String>> = OnceLock::new();
    FOUND.get_or_init(|| look(CARRIED.get().copied()).map_err(|error| error.to_string()))
}

fn look(carried: Option<&'static [u8]>) -> Result<Found> {
    if let Some(path) = std::env::var_os("RAYSPIN_KERNELS").filter(|path| !path.is_empty()) {
        return Ok(Found { archive: Some(open(&PathBuf::from(path))?), ignored: None });
    }
    if let Some(carried) = carried {
        return Ok(Found { archive: Some(Precompiled::parse("this program", carried)?), ignored: None });
    }
    std::env::current_exe().map_or_else(|_| Ok(Found::default()), |executable| beside(&executable))
}

/// The archive in a file.
fn open(path: &Path) -> Result<Precompiled> {
    let origin = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| unread(&origin, &error))?;
    Precompiled::parse(origin, bytes)
}

/// The archive beside this executable. Errors: a file that cannot be read or is no archive.
fn beside(executable: &Path) -> Result<Found> {
    const NAME: &str = "rayspin.kernels";
    let origin = executable.with_file_name(NAME).display().to_string();
    let unread = |error: std::io::Error| unread(&origin, &error);
    let mut file = match private::open_beside(executable, NAME) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(Found::default()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Ok(Found { archive: None, ignored: Some(error.to_string()) });
        }
        Err(error) => return Err(unread(error)),
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unread)?;
    Ok(Found { archive: Some(Precompiled::parse(origin, bytes)?), ignored: None })
}

fn unread(origin: &str, error: &std::io::Error) -> Error {
    Error::Device { what: format!("precompiled kernels {origin}"), detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::archive::Form;
    use super::super::archive::tests::{archive, program};
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_beside_the_executable_that_others_may_write_to_is_passed_over() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("rayspin-kernels-beside-{}", std::process::id()));
        private::make(&folder).unwrap();
        let (executable, path) = (folder.join("rayspin"), folder.join("rayspin.kernels"));
        let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let found = beside(&executable).unwrap();
        assert!(found.archive.is_none() && found.ignored.is_none());
        let all = archive(&[(&program(1), Form::Ptx, (8, 0), "one")], 100);
        std::fs::write(&path, all).unwrap();
        set(0o644);
        let found = beside(&executable).unwrap();
        assert!(found.archive.is_some_and(|a| a.len() == 1) && found.ignored.is_none());
        set(0o666);
        let found = beside(&executable).unwrap();
        let why = found.ignored.unwrap();
        assert!(
            found.archive.is_none() && why.contains("rayspin.kernels may be written to by others"),
            "{why}"
        );
        std::fs::write(&path, "another file").unwrap();
        assert!(beside(&executable).unwrap().ignored.is_some(), "nothing of it is read");
        set(0o644);
        assert!(
            beside(&executable).err().unwrap().to_string().contains("an archive of `cargo xtask kernels`")
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_the_program_carries_is_its_archive() {
        let all = archive(&[(&program(1), Form::Ptx, (8, 0), "one")], 100);
        let own = look(Some(all.leak())).unwrap().archive.unwrap();
        assert_eq!((own.origin(), own.len()), ("this program", 1));
        let broken = look(Some(b"another file")).err().unwrap().to_string();
        assert!(broken.contains("this program"), "{broken}");
    }
}
