//! Limits on disk, where [`rayspin_tune::limits::stored`] finds them.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rayspin_tune::limits::{Limits, place};

/// Keeps limits for [`rayspin_tune::limits::stored`], whole or not at all. Errors: the folder cannot be
/// written.
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

#[cfg(test)]
mod tests {
    use rayspin_device::Device;
    use rayspin_tune::limits::{Rates, StoredLimits, key, stored};

    use super::*;

    #[test]
    fn what_is_kept_is_found_whole() {
        let folder = std::env::temp_dir().join(format!("rayspin-kept-{}", std::process::id()));
        let device = Device::cpu_with_threads(1).unwrap();
        let rates = Rates {
            copy: 1e9,
            read: 2e9,
            write: 3e9,
            f32: 4e9,
            f64: 5e9,
            i32: 6.5e9,
            tensor_f64: None,
            tensor_f16: None,
            special: None,
            shared: None,
            texture: Some(7e9),
            upload: None,
            download: Some(8e9),
        };
        let limits = Limits { of: key(&device), measured: None, busy: true, rates };
        keep(&folder, &limits).unwrap();
        let kept_limits = || stored(Some(&folder), &device);
        assert_eq!(kept_limits(), StoredLimits::Found(limits.clone()));
        std::fs::write(place(&folder, &limits.of), "{}").unwrap();
        assert!(matches!(kept_limits(), StoredLimits::Ignored(_)));
        keep(&folder, &limits).unwrap();
        assert_eq!(kept_limits(), StoredLimits::Found(limits.clone()));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::write(&folder, "a file").unwrap();
        assert!(keep(&folder, &Limits { of: "x".into(), ..limits }).is_err());
        std::fs::remove_file(&folder).unwrap();
    }
}
