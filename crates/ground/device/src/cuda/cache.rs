//! The cache of compiled kernels on disk. The name of a file is the hash of everything that its kernel was
//! compiled from. The file also holds a hash of its name and content, so that a damaged file is compiled
//! again. Kernels are code: a folder or a file that another user may write to is not read. Two processes may
//! share the folder, because a file is written completely and then renamed.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::private;

const MAGIC: &[u8; 8] = b"RSPCUB02";
const HASH: usize = 32;

/// The cache folder: `RAYSPIN_KERNEL_CACHE`, or else `kernels` in [`private::cache`]. `None` if the variable
/// is empty or the user has no cache. Kernels are stored only if no other user may write to the folder
/// ([`private::make`]).
pub fn folder() -> Option<PathBuf> {
    match std::env::var_os("RAYSPIN_KERNEL_CACHE") {
        Some(set) => (!set.is_empty()).then(|| PathBuf::from(set)),
        None => Some(private::cache()?.join("kernels")),
    }
}

/// The file name for something compiled from `parts`.
pub(super) fn key(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

fn hash(key: &str, content: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update(key.as_bytes()).update(content).finalize()
}

/// The content stored under `key`, if the file exists, is intact and belongs to this user.
pub(super) fn read(folder: &Path, key: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    private::open(&folder.join(key)).and_then(|mut file| file.read_to_end(&mut bytes)).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?;
    let (stored, content) = rest.split_at_checked(HASH)?;
    (hash(key, content).as_bytes() == stored).then(|| content.to_vec())
}

/// Stores `content`. If the folder cannot be written, or others may write to it, the next start compiles
/// again; this run goes on.
pub(super) fn write(folder: &Path, key: &str, content: &[u8]) -> std::io::Result<()> {
    private::make(folder)?;
    let part = private::temporary(folder, "part");
    let written = private::create(&part).and_then(|mut file| {
        file.write_all(MAGIC)?;
        file.write_all(hash(key, content).as_bytes())?;
        file.write_all(content)
    });
    written.and_then(|()| std::fs::rename(&part, folder.join(key))).inspect_err(|_| {
        let _ = std::fs::remove_file(&part);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_content_comes_back_and_damage_is_seen() {
        let folder = std::env::temp_dir().join(format!("rayspin-kernels-{}", std::process::id()));
        let name = key(&["a", "bc"]);
        assert_ne!(name, key(&["ab", "c"]));
        assert_eq!(read(&folder, &name), None);
        write(&folder, &name, b"code").unwrap();
        assert_eq!(read(&folder, &name).as_deref(), Some(&b"code"[..]));
        let path = folder.join(&name);
        let mut bytes = std::fs::read(&path).unwrap();
        for damaged in [bytes.len() - 1, MAGIC.len(), 0] {
            bytes[damaged] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(read(&folder, &name), None);
            bytes[damaged] ^= 1;
        }
        std::fs::write(&path, &bytes[..12]).unwrap();
        assert_eq!(read(&folder, &name), None);
        write(&folder, &name, b"code").unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
        let other = key(&["a", "b"]);
        std::fs::copy(folder.join(&name), folder.join(&other)).unwrap();
        assert_eq!(read(&folder, &other), None, "another program's code");
        std::fs::remove_file(folder.join(&other)).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let set = |path: &Path, mode| {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            };
            set(&folder, 0o777);
            assert_eq!(read(&folder, &name), None, "others may write to the folder");
            assert!(write(&folder, &name, b"code").is_err());
            set(&folder, 0o700);
            set(&path, 0o666);
            assert_eq!(read(&folder, &name), None, "others may write to the file");
            write(&folder, &name, b"code").unwrap();
            assert_eq!(read(&folder, &name).as_deref(), Some(&b"code"[..]), "it is replaced");
        }
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::write(&folder, "a file where the folder should be").unwrap();
        assert!(write(&folder, &name, b"code").is_err());
        std::fs::remove_file(&folder).unwrap();
    }
}
