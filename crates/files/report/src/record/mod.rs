//! The run record: everything needed to say what a run did, and to do it again.
//!
//! A [`RunRecorder`] collects while the work goes on; [`RunRecorder::finish`] gives the [`RunRecord`], which
//! goes to JSON and back. Keys keep one order, so two records compare line by line.

mod recorder;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::number::{lossless, lossless_list, lossless_map};

pub use jiff::Timestamp;
pub use recorder::RunRecorder;

/// The version of the record's layout that this library writes. It rises when a field changes its meaning or
/// goes; fields that are merely added leave it as it is.
pub const SCHEMA: u32 = 2;

/// What a run did: its program, inputs, parameters, times, convergence and quality.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunRecord {
    /// The layout's version, [`SCHEMA`].
    pub schema: u32,
    /// The program that ran.
    pub program: String,
    /// Its version.
    pub version: String,
    /// The command line, one entry an argument, the program first.
    pub command: Vec<String>,
    /// When the run began, UTC, to the millisecond; ISO 8601 in JSON.
    pub started: Timestamp,
    /// The device's own description of itself.
    pub device: String,
    /// Threads that the run could use.
    pub threads: usize,
    /// Files read.
    #[serde(default)]
    pub inputs: Vec<FileEntry>,
    /// Files written.
    #[serde(default)]
    pub outputs: Vec<FileEntry>,
    /// Every parameter with the value used, defaults included, in the order given.
    #[serde(default)]
    pub parameters: IndexMap<String, Value>,
    /// Versions of whatever else decides the result (libraries, compiler, driver).
    #[serde(default)]
    pub versions: IndexMap<String, String>,
    /// Time in each stage, in order.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// Wall time of the whole run, s.
    #[serde(with = "lossless")]
    pub total_seconds: f64,
    /// The most memory that the process held, bytes, where the system says.
    pub peak_memory_bytes: Option<u64>,
    /// How iterations converged, one entry a solve.
    #[serde(default)]
    pub convergence: Vec<Convergence>,
    /// Other quantities that were followed from iteration to iteration, such as an objective.
    #[serde(default)]
    pub history: Vec<History>,
    /// How near each image came to its reference, where there is one.
    #[serde(default)]
    pub quality: Vec<Quality>,
    /// What was assumed or repaired, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A file as it was at the time of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The path as it was given.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// The BLAKE3 hash of its content, 64 hexadecimal digits.
    pub blake3: String,
}

/// A named part of a run and the time in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// What was done.
    pub name: String,
    /// Wall time, s.
    #[serde(with = "lossless")]
    pub seconds: f64,
}

/// The residual of one iterative solve, iteration by iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Convergence {
    /// What was solved.
    pub name: String,
    /// The residual before the first iteration and after each, relative to the solver's own scale.
    #[serde(with = "lossless_list")]
    pub residual: Vec<f64>,
}

/// A quantity of one iterative solve, iteration by iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// What was solved.
    pub name: String,
    /// The quantity.
    pub quantity: String,
    /// Its value after each iteration.
    #[serde(with = "lossless_list")]
    pub values: Vec<f64>,
}

/// An image measured against a reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The image measured.
    pub image: String,
    /// The image it was measured against.
    pub reference: String,
    /// Which numbers were compared and whether a scale was fitted, in words.
    #[serde(default)]
    pub rule: String,
    /// The measures by name, in the order given.
    #[serde(with = "lossless_map")]
    pub metrics: IndexMap<String, f64>,
}

/// What reading files or records can fail at.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A file could not be read for its length and hash.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is no run record, or a record could not be put into JSON.
    #[error("run record: {0}")]
    Json(#[from] serde_json::Error),
    /// The record has a layout that this library does not know.
    #[error("run record: expected schema {SCHEMA} or older, found {found}")]
    Schema {
        /// The record's schema.
        found: u64,
    },
}

impl FileEntry {
    /// Reads the file at `path` once, for its length and hash.
    pub fn read(path: impl AsRef<std::path::Path>) -> Result<Self, RecordError> {
        let shown = path.as_ref().to_string_lossy().into_owned();
        let hash = || -> std::io::Result<(u64, String)> {
            // A pipe would wait for another program, and a device never end.
            if !std::fs::metadata(path.as_ref())?.is_file() {
                return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "no regular file"));
            }
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(std::fs::File::open(path.as_ref())?)?;
            Ok((hasher.count(), hasher.finalize().to_hex().to_string()))
        };
        match hash() {
            Ok((bytes, blake3)) => Ok(Self { path: shown, bytes, blake3 }),
            Err(source) => Err(RecordError::File { path: shown, source }),
        }
    }

    /// The entry of a file whose content is in memory.
    pub fn of(path: impl AsRef<std::path::Path>, content: &[u8]) -> Self {
        Self {
            path: path.as_ref().to_string_lossy().into_owned(),
            bytes: content.len() as u64,
            blake3: blake3::hash(content).to_hex().to_string(),
        }
    }
}

impl RunRecord {
    /// The record as indented JSON with a newline at its end.
    pub fn to_json(&self) -> Result<String, RecordError> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Reads a record back. Fields it does not know are passed over; a newer schema is refused.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Layout {
            schema: u64,
        }
        // The schema is looked at first: the rest of a newer record may not even parse.
        let layout: Layout = serde_json::from_str(text)?;
        if layout.schema == 0 || layout.schema > u64::from(SCHEMA) {
            return Err(RecordError::Schema { found: layout.schema });
        }
        Ok(serde_json::from_str(text)?)
    }
}

#[cfg(test)]
mod tests;
