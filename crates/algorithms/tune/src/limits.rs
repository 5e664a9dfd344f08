//! What a processor can do at most, as measured before: the rates that `rayspin info` tells, read from where
//! `rayspin-ladder` keeps them.
//!
//! A JSON file for each processor, driver and version of the probes lies in the folder of compiled kernels.
//! `rayspin-lab` measures and writes it.

use std::path::{Path, PathBuf};

use rayspin_device::{Backend, Device};
use serde::{Deserialize, Serialize};

/// Grows when the probes change what they measure.
pub const PROBE: u32 = 3;

/// The measured rates of a processor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// The processor with its driver, and the version of the probes that measured the rates.
    pub of: String,
    /// When they were measured, in UTC: `2026-05-04T12:00:00Z`.
    #[serde(default)]
    pub measured: Option<String>,
    /// Whether other programs took part of the processor meanwhile, so that it may do more.
    #[serde(default)]
    pub busy: bool,
    /// The rates.
    #[serde(flatten)]
    pub rates: Rates,
}

/// Rates, all a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Bytes that a copy in memory reads and writes together.
    pub copy: f64,
    /// Bytes read.
    pub read: f64,
    /// Bytes written.
    pub write: f64,
    /// Operations of f32 multiply-adds, two each.
    pub f32: f64,
    /// Operations of f64 multiply-adds, two each.
    pub f64: f64,
    /// Operations of 32-bit integer multiply-adds, two each.
    pub i32: f64,
    /// Operations of multiply-adds by FP64 tensor cores, two each; GPUs that have them.
    #[serde(default)]
    pub tensor_f64: Option<f64>,
    /// Operations of multiply-adds by FP16 tensor cores with f32 sums, two each; GPUs that have them.
    #[serde(default)]
    pub tensor_f16: Option<f64>,
    /// Sines by special-function units; GPUs only.
    pub special: Option<f64>,
    /// Bytes read from shared memory without conflicts; GPUs only.
    pub shared: Option<f64>,
    /// Texels fetched from a texture that the cache holds; GPUs only.
    pub texture: Option<f64>,
    /// Bytes that a copy brings from pinned memory of the host; GPUs only.
    pub upload: Option<f64>,
    /// Bytes that a copy brings to pinned memory of the host; GPUs only.
    pub download: Option<f64>,
}

/// What [`Limits::of`] says of a device: its name and driver, and the version of the probes.
pub fn key(device: &Device) -> String {
    let name = device.describe();
    match device.backend() {
        Backend::Cpu(_) => format!("{name}, probe {PROBE}"),
        Backend::Cuda(cuda) => {
            let (major, minor) = cuda.properties().driver;
            format!("{name}, driver CUDA {major}.{minor}, probe {PROBE}")
        }
    }
}

impl Rates {
    /// Names, values and units.
    pub fn rows(&self) -> Vec<(&'static str, f64, &'static str)> {
        let always = [
            ("copy", self.copy, "B/s"),
            ("read", self.read, "B/s"),
            ("write", self.write, "B/s"),
            ("f32 multiply-add", self.f32, "flop/s"),
            ("f64 multiply-add", self.f64, "flop/s"),
            ("i32 multiply-add", self.i32, "op/s"),
        ];
        let of_gpus = [
            ("FP64 tensor cores", self.tensor_f64, "flop/s"),
            ("FP16 tensor cores", self.tensor_f16, "flop/s"),
            ("special functions", self.special, "results/s"),
            ("shared memory", self.shared, "B/s"),
            ("texture", self.texture, "texels/s"),
            ("host to device", self.upload, "B/s"),
            ("device to host", self.download, "B/s"),
        ];
        let of_gpus = of_gpus.into_iter().filter_map(|(name, rate, unit)| Some((name, rate?, unit)));
        always.into_iter().chain(of_gpus).collect()
    }

    /// The larger of both for each kind of work: two measurements of one processor.
    pub fn largest(&self, other: &Self) -> Self {
        let some = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
        Self {
            copy: self.copy.max(other.copy),
            read: self.read.max(other.read),
            write: self.write.max(other.write),
            f32: self.f32.max(other.f32),
            f64: self.f64.max(other.f64),
            i32: self.i32.max(other.i32),
            tensor_f64: some(self.tensor_f64, other.tensor_f64),
            tensor_f16: some(self.tensor_f16, other.tensor_f16),
            special: some(self.special, other.special),
            shared: some(self.shared, other.shared),
            texture: some(self.texture, other.texture),
            upload: some(self.upload, other.upload),
            download: some(self.download, other.download),
        }
    }

    /// Whether all of them are positive numbers.
    pub fn sound(&self) -> bool {
        self.rows().iter().all(|(_, rate, _)| rate.is_finite() && *rate > 0.0)
    }
}

/// What was found of a processor's limits.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredLimits {
    /// Those of this processor.
    Found(Limits),
    /// None: not measured yet, or nothing is kept on this machine.
    Absent,
    /// A file that is damaged or of something else: what is wrong with it.
    Ignored(String),
}

/// The limits of `device` that were kept in `folder`.
pub fn stored(folder: Option<&Path>, device: &Device) -> StoredLimits {
    let Some(path) = folder.map(|folder| place(folder, &key(device))) else { return StoredLimits::Absent };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return StoredLimits::Absent,
        Err(error) => return StoredLimits::Ignored(format!("{}: {error}", path.display())),
    };
    let ignored = |why: String| StoredLimits::Ignored(format!("{}: {why}", path.display()));
    match serde_json::from_str::<Limits>(&text) {
        Err(error) => ignored(error.to_string()),
        Ok(limits) if limits.of != key(device) => {
            ignored(format!("expected limits of {}, found {}", key(device), limits.of))
        }
        Ok(limits) if !limits.rates.sound() => ignored("expected positive rates, found others".to_owned()),
        Ok(limits) => StoredLimits::Found(limits),
    }
}

/// The file in `folder` of the limits of `key`: FNV-1a of it, and the file says whose it is.
pub fn place(folder: &Path, key: &str) -> PathBuf {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    folder.join(format!("limits-{hash:016x}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            tensor_f64: None,
            tensor_f16: Some(9e9),
            special: None,
            shared: None,
            texture: Some(7e9),
            upload: None,
            download: Some(8e9),
        };
        let measured = Some("2026-05-04T12:00:00Z".to_owned());
        let limits = Limits { of: key(&device), measured, busy: false, rates };
        let faster = Rates { read: 3e9, write: 1e9, upload: Some(1.0), texture: None, ..rates };
        let largest = Rates { read: 3e9, upload: Some(1.0), ..rates };
        assert_eq!((rates.largest(&faster), faster.largest(&rates)), (largest, largest));
        let found = || stored(Some(&folder), &device);
        assert_eq!(found(), StoredLimits::Absent);
        assert_eq!(stored(None, &device), StoredLimits::Absent);
        std::fs::create_dir(&folder).unwrap();
        let path = place(&folder, &limits.of);
        let sound = serde_json::to_string_pretty(&limits).unwrap();
        std::fs::write(&path, &sound).unwrap();
        assert_eq!(found(), StoredLimits::Found(limits));
        for broken in [
            sound[..sound.len() / 2].to_owned(),
            String::new(),
            "{}".into(),
            sound.replace("probe 3", "probe 1"),
            sound.replace("1000000000.0", "-1.0"),
            sound.replace("1000000000.0", "0.0"),
        ] {
            std::fs::write(&path, broken).unwrap();
            assert!(matches!(found(), StoredLimits::Ignored(why) if why.contains("limits-")));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
