//! What was measured, kept: one line of JSON a result in a file that only grows.
//!
//! A result belongs to the source that was compiled, the device, its driver, the kind of problem and its
//! size, rounded to powers of two. A line that cannot be read, of another version or of a space that has
//! changed is passed over and counted, never trusted.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rayspin_core::{Error, Result};
use rayspin_device::{Backend, Device, cpu, cuda};
use serde::{Deserialize, Serialize};

use crate::space::{Config, Space};

const VERSION: u32 = 1;

/// What a result belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The algorithm.
    pub ladder: String,
    /// Its variant.
    #[serde(alias = "rung")]
    pub variant: String,
    /// Hash of the source.
    pub source: String,
    /// The device by name, with the threads of a CPU.
    pub device: String,
    /// The driver's version, or Rayspin's on a CPU.
    pub driver: String,
    /// Type, kind of input: what sizes do not say.
    pub kind: String,
    /// Sizes.
    pub sizes: Vec<usize>,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    version: u32,
    /// What it belongs to.
    pub key: Key,
    /// The configuration.
    pub config: Config,
    /// What became of it.
    pub trial: Trial,
    /// What was known of it before, where anything was.
    #[serde(alias = "foreseen")]
    pub estimate: Option<CostEstimate>,
}

impl Record {
    /// A result of this version of Rayspin.
    pub fn new(key: Key, config: Config, trial: Trial, estimate: Option<CostEstimate>) -> Self {
        Self { version: VERSION, key, config, trial, estimate }
    }
}

/// What became of a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trial {
    /// It met its tolerance, and takes so long.
    Timed {
        /// The median.
        seconds: f64,
        /// The error against the oracle.
        error: f64,
    },
    /// A few rounds showed that it is slower than the best: how long those took.
    Slow {
        /// The fastest of them.
        seconds: f64,
    },
    /// It did not compile, not launch, or was wrong: why.
    Failed(String),
}

impl Trial {
    /// Seconds of a whole measurement.
    pub fn seconds(&self) -> Option<f64> {
        match self {
            Self::Timed { seconds, .. } => Some(*seconds),
            Self::Slow { .. } | Self::Failed(_) => None,
        }
    }
}

/// Metrics of a configuration, known before it is timed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CostEstimate {
    /// 1 / (instructions a thread · threads).
    pub efficiency: f64,
    /// How much independent work covers a wait.
    pub utilisation: f64,
    /// Seconds that it takes at least: the work's floor, or issuing its instructions.
    pub least: f64,
    /// Whether memory, not instructions, sets that bound: the metrics say nothing of such a kernel, as their
    /// authors state.
    pub by_memory: bool,
}

/// Why a configuration is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Basis {
    /// The best that was measured for this size.
    Measured,
    /// The best that was measured for the nearest size.
    Nearest,
    /// The shipped default: nothing was measured.
    Default,
}

/// All results of a file.
#[derive(Debug, Default)]
pub struct Wisdom {
    path: Option<PathBuf>,
    records: Vec<Record>,
    passed_over: usize,
}

/// Reading it takes longer than a small problem.
static MODEL: LazyLock<String> = LazyLock::new(cpu::model_name);

/// Name and driver of a device, as keys have them.
pub fn identity(device: &Device) -> (String, String) {
    match device.backend() {
        Backend::Cuda(cuda) => {
            let p = cuda.properties();
            (p.name.clone(), format!("{}.{}", p.driver.0, p.driver.1))
        }
        Backend::Cpu(host) => (
            format!("{}, {} threads, {}", *MODEL, host.threads(), host.simd_name()),
            format!("rayspin {}", env!("CARGO_PKG_VERSION")),
        ),
    }
}

/// The file: `RAYSPIN_WISDOM`, else `wisdom.jsonl` beside the compiled kernels. `None` where it is set to
/// nothing, or there is no home.
pub fn file() -> Option<PathBuf> {
    if let Some(set) = std::env::var_os("RAYSPIN_WISDOM") {
        return (!set.is_empty()).then(|| PathBuf::from(set));
    }
    Some(cuda::cache_folder()?.parent()?.join("wisdom.jsonl"))
}

impl Wisdom {
    /// The results in `path`; none where there is no such file. Errors: it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let text = match std::fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(path, &error)),
        };
        Ok(Self { path: Some(path.to_owned()), ..Self::of_text(&text) })
    }

    /// The results that a file of this text has, kept in memory only.
    pub fn of_text(text: &str) -> Self {
        let mut wisdom = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str::<Record>(line) {
                Ok(record) if record.version == VERSION && record.is_sound() => wisdom.records.push(record),
                _ => wisdom.passed_over += 1,
            }
        }
        wisdom
    }

    /// Results that are kept in memory only.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Lines that were not understood.
    pub fn passed_over(&self) -> usize {
        self.passed_over
    }

    /// All results, oldest first.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Adds a result, to the file in one write. Errors: the file cannot be written.
    pub fn add(&mut self, record: Record) -> Result<()> {
        if let Some(path) = &self.path {
            let whole = |error: serde_json::Error| failed(path, &std::io::Error::other(error));
            let line = serde_json::to_string(&record).map_err(whole)? + "\n";
            let append = || -> std::io::Result<()> {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                let mut file = std::fs::OpenOptions::new().create(true).read(true).append(true).open(path)?;
                let mut last = [b'\n'];
                if file.metadata()?.len() > 0 {
                    file.seek(SeekFrom::End(-1))?;
                    file.read_exact(&mut last)?;
                }
                // A line that a killed process left unfinished ends here, and is passed over when read.
                let line = if last == [b'\n'] { line } else { format!("\n{line}") };
                file.write_all(line.as_bytes())
            };
            append().map_err(|error| failed(path, &error))?;
        }
        self.records.push(record);
        Ok(())
    }

    /// The last result of every configuration of exactly this problem, in the order of measurement.
    pub fn of(&self, key: &Key) -> Vec<&Record> {
        let mut records: Vec<&Record> = Vec::new();
        for record in self.records.iter().filter(|record| record.key == *key) {
            records.retain(|other| other.config != record.config);
            records.push(record);
        }
        records
    }

    /// The configuration of `space` to use for `key`, and why: the fastest that was measured for the same
    /// size rounded to powers of two, else for the nearest size, else the default.
    pub fn best(&self, key: &Key, space: &Space) -> (Config, Basis) {
        let mut best: Option<(f64, f64, &Config)> = None;
        for record in &self.records {
            let Trial::Timed { seconds, .. } = record.trial else { continue };
            let Some(distance) = record.key.distance(key).filter(|_| space.contains(&record.config)) else {
                continue;
            };
            // Later results of one configuration replace earlier ones.
            if best.is_none_or(|(d, s, config)| {
                distance < d || (distance == d && (seconds < s || *config == record.config))
            }) {
                best = Some((distance, seconds, &record.config));
            }
        }
        match best {
            Some((0.0, _, config)) => (config.clone(), Basis::Measured),
            Some((_, _, config)) => (config.clone(), Basis::Nearest),
            None => (space.default_config(), Basis::Default),
        }
    }
}

impl Record {
    fn is_sound(&self) -> bool {
        match &self.trial {
            Trial::Timed { seconds, .. } | Trial::Slow { seconds } => seconds.is_finite() && *seconds > 0.0,
            Trial::Failed(_) => true,
        }
    }
}

impl Key {
    /// Powers of two between the sizes of two problems; `None` where they have nothing to say of each other.
    fn distance(&self, other: &Self) -> Option<f64> {
        let same = self.ladder == other.ladder
            && self.variant == other.variant
            && self.source == other.source
            && self.device == other.device
            && self.driver == other.driver
            && self.kind == other.kind
            && self.sizes.len() == other.sizes.len();
        let power = |size: usize| (size.max(1) as f64).log2().round();
        same.then(|| self.sizes.iter().zip(&other.sizes).map(|(&a, &b)| (power(a) - power(b)).abs()).sum())
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::Device { what: format!("tuning results {}", path.display()), detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(sizes: &[usize]) -> Key {
        let text = |t: &str| t.to_owned();
        Key {
            ladder: text("sum"),
            variant: text("gpu"),
            source: text("abc"),
            device: text("GPU"),
            driver: text("13.0"),
            kind: text("f32"),
            sizes: sizes.to_vec(),
        }
    }

    fn timed(seconds: f64) -> Trial {
        Trial::Timed { seconds, error: 0.0 }
    }

    fn space() -> Space {
        Space::none().axis("threads", &[32, 64, 128], 64)
    }

    #[test]
    fn the_fastest_of_the_nearest_size_is_taken() {
        let mut wisdom = Wisdom::in_memory();
        let config = |threads| Config::of(&[("threads", threads)]);
        assert_eq!(wisdom.best(&key(&[1000]), &space()), (config(64), Basis::Default));
        for (size, threads, seconds) in
            [(1000, 32, 2.0), (1000, 128, 1.0), (1000, 512, 0.1), (1 << 20, 32, 5.0)]
        {
            wisdom.add(Record::new(key(&[size]), config(threads), timed(seconds), None)).unwrap();
        }
        wisdom.add(Record::new(key(&[1000]), config(64), Trial::Failed("wrong".into()), None)).unwrap();
        assert_eq!(wisdom.best(&key(&[1100]), &space()), (config(128), Basis::Measured));
        assert_eq!(wisdom.best(&key(&[1 << 19]), &space()), (config(32), Basis::Nearest));
        let other = Key { driver: "14.0".into(), ..key(&[1000]) };
        assert_eq!(wisdom.best(&other, &space()).1, Basis::Default);
        assert_eq!(wisdom.of(&key(&[1000])).len(), 4);
    }

    #[test]
    fn damaged_foreign_and_torn_lines_are_passed_over() {
        let folder = std::env::temp_dir().join(format!("rayspin-wisdom-{}", std::process::id()));
        let path = folder.join("wisdom.jsonl");
        let mut wisdom = Wisdom::open(&path).unwrap();
        let record = |threads, seconds| {
            Record::new(key(&[8]), Config::of(&[("threads", threads)]), timed(seconds), None)
        };
        wisdom.add(record(32, 1.0)).unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        let bad = [
            "not json".to_owned(),
            whole.replace("\"version\":1", "\"version\":2"),
            whole.replace("1.0", "-1.0"),
            "\u{0}\u{1}".to_owned(),
            whole[..whole.len() / 2].to_owned(),
        ];
        std::fs::write(&path, format!("{whole}{}", bad.join("\n"))).unwrap();
        let mut wisdom = Wisdom::open(&path).unwrap();
        assert_eq!((wisdom.records().len(), wisdom.passed_over()), (1, 5));
        let old = whole.replace("\"variant\":", "\"rung\":").replace("\"estimate\":", "\"foreseen\":");
        assert!(old != whole);
        assert_eq!(serde_json::from_str::<Record>(&old).unwrap(), wisdom.records()[0]);
        wisdom.add(record(64, 0.5)).unwrap();
        let again = Wisdom::open(&path).unwrap();
        assert_eq!((again.records().len(), again.passed_over()), (2, 5));
        assert_eq!(again.best(&key(&[8]), &space()).0, Config::of(&[("threads", 64)]));
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::write(&folder, "no folder").unwrap();
        assert!(wisdom.add(record(64, 0.5)).is_err());
        std::fs::remove_file(&folder).unwrap();
    }
}
