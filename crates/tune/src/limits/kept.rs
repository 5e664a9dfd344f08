//! Limits on disk: a JSON file for each processor, driver and version of the probes, in the folder of compiled kernels.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayspin_device::Device;

use super::{Limits, key};

/// What was found of a processor's limits.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    /// Those of this processor.
    Found(Limits),
    /// None: not measured yet, or nothing is kept on this machine.
    Absent,
    /// A file that is damaged or of something else: what is wrong with it.
    Ignored(String),
}

/// The limits of `device` that were kept in `folder`.
pub fn kept(folder: Option<&Path>, device: &Device) -> Kept {
    let Some(path) = folder.map(|folder| place(folder, &key(device))) else { return Kept::Absent };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Kept::Absent,
        Err(error) => return Kept::Ignored(format!("{}: {error}", path.display())),
    };
    let ignored = |why: String| Kept::Ignored(format!("{}: {why}", path.display()));
    match serde_json::from_str::<Limits>(&text) {
        Err(error) => ignored(error.to_string()),
        Ok(limits) if limits.of != key(device) => {
            ignored(format!("expected limits of {}, found {}", key(device), limits.of))
        }
        Ok(limits) if !limits.rates.sound() => ignored("expected positive rates, found others".to_owned()),
        Ok(limits) => Kept::Found(limits),
    }
}

/// Keeps limits for [`kept`], whole or not at all. Errors: the folder cannot be written.
pub fn keep(folder: &Path, limits: &Limits) -> std::io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    std::fs::create_dir_all(folder)?;
    let path = place(folder, &limits.of);
    let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
    let part = path.with_extension(format!("{}.{unique}.part", std::process::id()));
    let text = serde_json::to_string_pretty(limits)?;
    let written = std::fs::write(&part, text + "\n").and_then(|()| std::fs::rename(&part, &path));
    written.inspect_err(|_| {
        let _ = std::fs::remove_file(&part);
    })
}

/// The file of a key: FNV-1a of it, and the file says whose it is.
fn place(folder: &Path, key: &str) -> PathBuf {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    folder.join(format!("limits-{hash:016x}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Rates;

    #[test]
    fn only_sound_limits_of_this_processor_are_used() {
        let folder = std::env::temp_dir().join(format!("rayspin-limits-{}", std::process::id()));
        let device = Device::cpu_with_threads(1).unwrap();
        let rates = Rates {
            copy: 1e9,
            read: 2e9,
            write: 3e9,
            f32: 4e9,
            f64: 5e9,
            i32: 6.5e9,
            special: None,
            shared: None,
            texture: Some(7e9),
            upload: None,
            download: Some(8e9),
        };
        let limits = Limits { of: key(&device), rates };
        let found = || kept(Some(&folder), &device);
        assert_eq!(found(), Kept::Absent);
        assert_eq!(kept(None, &device), Kept::Absent);
        keep(&folder, &limits).unwrap();
        assert_eq!(found(), Kept::Found(limits.clone()));
        let path = place(&folder, &limits.of);
        let sound = std::fs::read_to_string(&path).unwrap();
        for broken in [
            sound[..sound.len() / 2].to_owned(),
            String::new(),
            "{}".into(),
            sound.replace("probe 2", "probe 1"),
            sound.replace("1000000000.0", "-1.0"),
            sound.replace("1000000000.0", "0.0"),
        ] {
            std::fs::write(&path, broken).unwrap();
            assert!(matches!(found(), Kept::Ignored(why) if why.contains("limits-")));
        }
        keep(&folder, &limits).unwrap();
        assert_eq!(found(), Kept::Found(limits));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::write(&folder, "a file").unwrap();
        assert!(keep(&folder, &Limits { of: "x".into(), rates }).is_err());
        std::fs::remove_file(&folder).unwrap();
    }
}
