//! A folder of Toeplitz kernels, kept from run to run.
//!
//! One file a kernel, `KEY.rayspin-kernel`: the signature `RSKERNEL`, the key, the number of values, the
//! BLAKE3 hash of the values, and the values in single precision, little-endian. If a file is damaged or
//! holds anything else, the cache says so in a note, does not use the file, and replaces it. Files appear
//! whole or not at all. Nothing is ever deleted: the folder may be emptied at any time.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use rayspin_run::KernelStore;

use crate::atomic::{at_once, write_stream_atomically};
use crate::error::{Error, Result};

const SIGNATURE: &[u8; 8] = b"RSKERNEL";
const HEADER: usize = 8 + 32 + 8 + 32;
/// How the files' names end.
const ENDING: &str = "rayspin-kernel";

/// The folder.
///
/// ```
/// use rayspin_io::kernel_cache::KernelCache;
/// use rayspin_run::KernelStore;
///
/// # let folder = tempfile::tempdir()?;
/// let cache = KernelCache::new(folder.path().join("kernels"))?;
/// let (key, mut notes) = ([7; 32], Vec::new());
/// assert_eq!(cache.load(&key, 2, &mut notes), None);
/// cache.keep(&key, &[1.0, 2.0], &mut notes);
/// assert_eq!(cache.load(&key, 2, &mut notes), Some(vec![1.0, 2.0]));
/// assert_eq!((cache.size().0, notes.len()), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct KernelCache {
    folder: PathBuf,
}

impl KernelCache {
    /// In `folder`, which is made where it does not exist. Errors: it cannot be made, or is no folder.
    pub fn new(folder: impl Into<PathBuf>) -> Result<Self> {
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(|e| Error::write(&folder, e))?;
        Ok(Self { folder })
    }

    /// Kernels in the folder, and their bytes.
    pub fn size(&self) -> (usize, u64) {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let kernels = files.filter(|file| file.path().extension().is_some_and(|e| e == ENDING));
        kernels
            .fold((0, 0), |(count, bytes), file| (count + 1, bytes + file.metadata().map_or(0, |m| m.len())))
    }

    fn path(&self, key: &[u8; 32]) -> PathBuf {
        let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{name}.{ENDING}"))
    }
}

fn hash(values: &[f32]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for block in values.chunks(1 << 14) {
        let bytes: Vec<u8> = block.iter().flat_map(|v| v.to_le_bytes()).collect();
        hasher.update(&bytes);
    }
    *hasher.finalize().as_bytes()
}

/// The values of a sound file, or what is wrong with it.
fn values(path: &Path, key: &[u8; 32], len: usize) -> std::result::Result<Vec<f32>, String> {
    let length = fs::metadata(path).map_err(|e| e.to_string())?.len();
    let expected = (HEADER + 4 * len) as u64;
    if length != expected {
        return Err(format!("expected {expected} bytes, found {length}"));
    }
    let bytes = fs::read(path).map_err(|e| e.to_string())?;
    let (header, content) = bytes.split_at_checked(HEADER).ok_or("it became shorter")?;
    if &header[..8] != SIGNATURE || &header[8..40] != key || header[40..48] != (len as u64).to_le_bytes() {
        return Err("expected this kernel's header, found another".into());
    }
    let values: Vec<f32> = content.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    if values.len() != len || header[48..80] != hash(&values) {
        return Err("expected values with the hash in the header, found others".into());
    }
    Ok(values)
}

impl KernelStore for KernelCache {
    fn load(&self, key: &[u8; 32], len: usize, notes: &mut Vec<String>) -> Option<Vec<f32>> {
        let path = self.path(key);
        if !path.exists() {
            return None;
        }
        values(&path, key, len)
            .map_err(|wrong| notes.push(format!("{}: {wrong}: the kernel is made anew", path.display())))
            .ok()
    }

    fn keep(&self, key: &[u8; 32], values: &[f32], notes: &mut Vec<String>) {
        let path = self.path(key);
        let written = at_once(|| {
            write_stream_atomically(&path, |file| {
                file.write_all(SIGNATURE)?;
                file.write_all(key)?;
                file.write_all(&(values.len() as u64).to_le_bytes())?;
                file.write_all(&hash(values))?;
                values.iter().try_for_each(|v| file.write_all(&v.to_le_bytes()))
            })
        });
        if let Err(error) = written {
            notes.push(format!("the kernel is not kept: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sound_files_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let cache = KernelCache::new(folder.path().join("a/b")).unwrap();
        let (key, values) = ([7; 32], [1.0f32, -2.5, 3e-20]);
        let mut notes = Vec::new();
        assert_eq!(cache.load(&key, 3, &mut notes), None);
        assert!(notes.is_empty());
        cache.keep(&key, &values, &mut notes);
        assert_eq!(cache.load(&key, 3, &mut notes).as_deref(), Some(&values[..]));
        assert_eq!((cache.size(), notes.len()), ((1, HEADER as u64 + 12), 0));
        assert_eq!(cache.load(&key, 4, &mut notes), None);
        let path = cache.path(&key);
        let sound = fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut broken = sound.clone();
            broken[at] ^= 0x10;
            fs::write(&path, &broken).unwrap();
            assert_eq!(cache.load(&key, 3, &mut notes), None, "byte {at}");
        }
        for broken in [&sound[..0], &sound[..50], &sound[..sound.len() - 1], b"something else"] {
            fs::write(&path, broken).unwrap();
            assert_eq!(cache.load(&key, 3, &mut notes), None);
        }
        // Another kernel's file under this name.
        cache.keep(&[8; 32], &values, &mut Vec::new());
        fs::rename(cache.path(&[8; 32]), &path).unwrap();
        assert_eq!(cache.load(&key, 3, &mut notes), None);
        assert_eq!(notes.len(), 1 + sound.len() + 4 + 1);
        cache.keep(&key, &values, &mut notes);
        assert!(cache.load(&key, 3, &mut notes).is_some());
    }
}
