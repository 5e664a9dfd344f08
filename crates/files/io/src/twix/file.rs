//! A file's layout: its generation, and the measurements that it holds.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::text::latin;
use crate::{Error, Result, opening};

/// Measurements that the table of a file of VD and later has room for.
const MOST_MEASUREMENTS: u32 = 64;
/// The first number of a file of VD and later is below this; of a file of VB it is the length of its header.
const FIRST: u32 = 10_000;
/// Parts that the header of a measurement has at most: it is 6 in VB and 7 in XA.
const MOST_TEXTS: u32 = 32;
/// Bytes before the entries of the table, and bytes of each.
const TABLE: u64 = 8;
const ENTRY: u64 = 152;

/// How heads of readouts are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// A head for each coil (VB17 to VB19).
    Vb,
    /// A head for each readout, and a small one for each coil (VD, VE, XA).
    Vd,
}

/// A measurement of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Measurement {
    /// Its first byte.
    pub(super) start: u64,
    /// The byte behind its last one, within the file.
    pub(super) end: u64,
    /// The protocol's name, where the table states it.
    pub(super) protocol: String,
    /// What the table states and the file does not hold, in a sentence.
    pub(super) note: Option<String>,
}

/// An open file.
#[derive(Debug)]
pub(super) struct TwixFile {
    pub(super) path: PathBuf,
    file: File,
    pub(super) bytes: u64,
    pub(super) generation: Generation,
    pub(super) measurements: Vec<Measurement>,
}

/// Whether a file whose name ends in `.dat` begins like one.
pub(crate) fn begins(start: &[u8]) -> bool {
    generation_of(start).is_some()
}

fn generation_of(start: &[u8]) -> Option<Generation> {
    let (first, second) = (word(start, 0)?, word(start, 4)?);
    if first < FIRST && (1..=MOST_MEASUREMENTS).contains(&second) {
        Some(Generation::Vd)
    } else if first > FIRST && (1..=MOST_TEXTS).contains(&second) {
        Some(Generation::Vb)
    } else {
        None
    }
}

/// Four bytes as a number; none where they are not there.
pub(super) fn word(bytes: &[u8], place: usize) -> Option<u32> {
    bytes.get(place..)?.first_chunk::<4>().map(|four| u32::from_le_bytes(*four))
}

/// Eight bytes, likewise.
fn long(bytes: &[u8], place: usize) -> Option<u64> {
    bytes.get(place..)?.first_chunk::<8>().map(|eight| u64::from_le_bytes(*eight))
}

impl TwixFile {
    /// Errors: a file that cannot be read, or that does not begin like one; measurements that begin beyond
    /// its end.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = opening::open(path)?;
        let bytes = file.metadata().map_err(|e| Error::read(path, e))?.len();
        let mut open = Self {
            path: path.to_owned(),
            file,
            bytes,
            generation: Generation::Vb,
            measurements: vec![Measurement { start: 0, end: bytes, protocol: String::new(), note: None }],
        };
        let start = open.read(0, 8.min(bytes), "start")?;
        open.generation = generation_of(&start)
            .ok_or_else(|| Error::not_this_format(path, "Siemens raw data (twix)", "another signature"))?;
        if open.generation == Generation::Vd {
            open.measurements = open.table(word(&start, 4).unwrap_or(0))?;
        }
        Ok(open)
    }

    /// The measurements that the table of a file of VD and later lists.
    fn table(&self, count: u32) -> Result<Vec<Measurement>> {
        let table = self.read(TABLE, u64::from(count) * ENTRY, "table of measurements")?;
        let places: Vec<[u64; 2]> = table
            .chunks_exact(ENTRY as usize)
            .filter_map(|entry| Some([long(entry, 8)?, long(entry, 16)?]))
            .collect();
        let behind = TABLE + u64::from(count) * ENTRY;
        let mut measurements = Vec::with_capacity(places.len());
        for (index, ([start, length], entry)) in
            places.iter().copied().zip(table.chunks_exact(ENTRY as usize)).enumerate()
        {
            let number = index + 1;
            if start < behind || start >= self.bytes {
                let expected = format!("from {behind} to {}, within the file", self.bytes.saturating_sub(1));
                return Err(Error::field(
                    &self.path,
                    format!("measurement {number}: offset"),
                    expected,
                    start,
                ));
            }
            // Aborted scans state no length, and XA does not either.
            let next = places.iter().map(|[other, _]| *other).filter(|other| *other > start).min();
            let next = next.unwrap_or(self.bytes).min(self.bytes);
            let (end, note) = match start.checked_add(length) {
                _ if length == 0 => (next, None),
                Some(end) if end <= self.bytes => (end, None),
                _ => (
                    next,
                    Some(format!(
                        "measurement {number} is cut short: its length is stated as {length} bytes, and the file holds {}",
                        next - start
                    )),
                ),
            };
            let name = entry.get(88..).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            measurements.push(Measurement { start, end, protocol: latin(name), note });
        }
        Ok(measurements)
    }

    /// Bytes of the file. Errors: fewer there; more than memory has.
    pub(super) fn read(&self, start: u64, length: u64, what: &str) -> Result<Vec<u8>> {
        let there = self.bytes.saturating_sub(start);
        if length > there {
            return Err(Error::truncated(&self.path, what, format!("{length} bytes"), format!("{there}")));
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let mut bytes =
            rayspin_device::cpu::zeroed(what, length).map_err(|error| Error::core(&self.path, error))?;
        self.fill(start, &mut bytes)?;
        Ok(bytes)
    }

    /// Fills a buffer with the bytes of a place.
    pub(super) fn fill(&self, start: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buffer, start).map_err(|e| Error::read(&self.path, e))
    }

    /// The number of the measurement that a name chooses, from 0; the last one without a name.
    ///
    /// Errors: a name that is no number of a measurement.
    pub(super) fn choose(&self, name: Option<&str>) -> Result<usize> {
        let count = self.measurements.len();
        let Some(name) = name else { return Ok(count.saturating_sub(1)) };
        let number = name.trim().parse::<usize>().ok().filter(|number| (1..=count).contains(number));
        number.map(|number| number - 1).ok_or_else(|| {
            let expected = match count {
                1 => "1, the only one".to_owned(),
                _ => format!("a number from 1 to {count}"),
            };
            Error::field(&self.path, "measurement after the colon", expected, name)
        })
    }
}
