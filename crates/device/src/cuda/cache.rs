//! Compiled kernels on disk: each under the hash of all that it was compiled from, with a hash of its own content, so that
//! a damaged file is compiled anew. Two processes may share the folder: files are written whole and renamed.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

const MAGIC: &[u8; 8] = b"RSPCUB01";
const HASH: usize = 32;

/// The folder: `RAYSPIN_KERNEL_CACHE`, else `rayspin/kernels` in the user's cache folder. `None` where it is set to nothing, or
/// where there is no home.
pub fn folder() -> Option<PathBuf> {
    if let Some(set) = std::env::var_os("RAYSPIN_KERNEL_CACHE") {
        return (!set.is_empty()).then(|| PathBuf::from(set));
    }
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(base.join("rayspin").join("kernels"))
}

/// The name under which something compiled from `parts` is kept.
pub(super) fn key(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// What was kept under `key`, when it is there and whole.
pub(super) fn read(folder: &std::path::Path, key: &str) -> Option<Vec<u8>> {
    let bytes = std::fs::read(folder.join(key)).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?;
    let (hash, content) = rest.split_at_checked(HASH)?;
    (blake3::hash(content).as_bytes() == hash).then(|| content.to_vec())
}

/// Keeps `content`. A folder that cannot be written costs time at the next start, not this run.
pub(super) fn write(folder: &std::path::Path, key: &str, content: &[u8]) -> std::io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    std::fs::create_dir_all(folder)?;
    let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
    let part = folder.join(format!(".{key}.{}.{unique}.part", std::process::id()));
    let written = std::fs::File::create(&part).and_then(|mut file| {
        file.write_all(MAGIC)?;
        file.write_all(blake3::hash(content).as_bytes())?;
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
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::write(&folder, "a file where the folder should be").unwrap();
        assert!(write(&folder, &name, b"code").is_err());
        std::fs::remove_file(&folder).unwrap();
    }
}
