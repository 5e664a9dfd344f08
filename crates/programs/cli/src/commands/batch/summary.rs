//! What became of the scans of a batch: a table, a page, a file, and one of the files of all parts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rayspin::report::page::{Page, Section};
use rayspin::report::record::FileEntry;
use rayspin::report::table::{Cell, Column, Table};
use rayspin_shell::BadInput;
use serde::{Deserialize, Serialize};

use crate::args::batch::Shard;
use crate::commands::files;

/// The version of the layout of summaries.
const SCHEMA: u32 = 1;

/// What became of a part of a list of scans, or of all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Summary {
    schema: u32,
    #[serde(flatten)]
    pub(super) of: Whole,
    /// The part, counted from 1, and the number of parts.
    shard: [usize; 2],
    /// Wall time, of all parts together.
    pub(super) seconds: f64,
    /// In the order of the list.
    pub(super) scans: Vec<Row>,
}

/// What all parts of a batch have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Whole {
    pub(super) version: String,
    /// `mri` or `ct`
    pub(super) kind: String,
    /// The patterns of `--output`.
    pub(super) outputs: Vec<String>,
    /// What stands behind `--`.
    pub(super) options: Vec<String>,
    pub(super) list: List,
}

/// The whole list of scans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct List {
    scans: usize,
    /// The hash of the names.
    blake3: String,
}

/// A scan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    /// Its place in the list, counted from 1.
    pub(super) number: usize,
    pub(super) scan: String,
    pub(super) images: Vec<String>,
    pub(super) result: Became,
    /// Why it failed.
    pub(super) why: Option<String>,
    /// From the first byte read to the last one written.
    pub(super) seconds: Option<f64>,
    /// The files of the images.
    pub(super) files: Vec<FileEntry>,
}

/// What became of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Became {
    #[serde(rename = "reconstructed")]
    Reconstructed,
    #[serde(rename = "there before")]
    ThereBefore,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "left to another run")]
    Elsewhere,
    #[serde(rename = "left")]
    Left,
}

impl Became {
    const fn name(self) -> &'static str {
        match self {
            Self::Reconstructed => "reconstructed",
            Self::ThereBefore => "there before",
            Self::Failed => "failed",
            Self::Elsewhere => "left to another run",
            Self::Left => "left",
        }
    }
}

impl List {
    pub(super) fn of(scans: &[PathBuf]) -> Self {
        let names: Vec<String> = scans.iter().map(|scan| scan.display().to_string()).collect();
        // No name has a line that is empty.
        let blake3 = FileEntry::of("", names.join("\n").as_bytes()).blake3;
        Self { scans: scans.len(), blake3 }
    }
}

impl Summary {
    pub(super) fn new(of: Whole, shard: Option<Shard>, seconds: f64, scans: Vec<Row>) -> Self {
        let shard = shard.map_or([1, 1], |shard| [shard.number + 1, shard.count]);
        Self { schema: SCHEMA, of, shard, seconds, scans }
    }

    /// Errors: a file that is no summary.
    fn read(path: &Path) -> Result<Self> {
        let refused = |found: String| {
            let message = format!("{}: expected a summary of rayspin batch, found {found}", path.display());
            BadInput::new(message).hint("rayspin batch --summary FILE writes one")
        };
        let text = rayspin::io::read_text(path).map_err(|error| refused(format!("none ({error})")))?;
        let summary: Self =
            serde_json::from_str(&text).map_err(|error| refused(format!("other text ({error})")))?;
        if summary.schema != SCHEMA {
            return Err(refused(format!("one of layout {}, not {SCHEMA}", summary.schema)).into());
        }
        Ok(summary)
    }

    /// The summary of the whole list, of those of its parts.
    ///
    /// Errors: files that are no summaries; summaries of different batches; a part that is missing or comes
    /// twice; a scan that is missing or in two parts.
    pub(super) fn merged(paths: &[PathBuf]) -> Result<Self> {
        let mut parts: BTreeMap<usize, (&PathBuf, Self)> = BTreeMap::new();
        let mut first: Option<(&PathBuf, Whole, usize)> = None;
        for path in paths {
            let part = Self::read(path)?;
            let [number, count] = part.shard;
            let refused = |what: &str, hint: &str| {
                let message = format!("{}: expected {what}", path.display());
                BadInput::new(message).hint(hint.to_owned())
            };
            let (other, whole, parts_in_all) = first.get_or_insert_with(|| (path, part.of.clone(), count));
            let other = other.display();
            if part.of.list != whole.list {
                let what = format!(
                    "a part of the list of {other} ({} scans), found another list ({} scans)",
                    whole.list.scans, part.of.list.scans
                );
                return Err(
                    refused(&what, "scans came or went between the jobs: run all of them again").into()
                );
            }
            if part.of != *whole {
                let what = format!("the outputs, options and version of {other}, found others");
                return Err(refused(&what, "parts of one batch are made by one command").into());
            }
            if count != *parts_in_all {
                let what = format!("one of {parts_in_all} parts as in {other}, found part {number}/{count}");
                return Err(refused(&what, "all jobs take the same number of parts").into());
            }
            if let Some((twice, _)) = parts.insert(number, (path, part)) {
                let what = format!("another part than {}, found {number}/{count} again", twice.display());
                return Err(refused(&what, "name one summary of each part").into());
            }
        }
        let Some((_, of, count)) = first else {
            return Err(BadInput::new("--merge: expected summaries, found none").into());
        };
        let missing: Vec<String> = (1..=count)
            .filter(|number| !parts.contains_key(number))
            .map(|number| format!("{number}/{count}"))
            .collect();
        if !missing.is_empty() {
            let message = format!(
                "--merge: expected a summary of each of {count} parts, found none of {}",
                missing.join(", ")
            );
            return Err(BadInput::new(message).hint("run these parts, or run them again").into());
        }
        let seconds = parts.values().map(|(_, part)| part.seconds).sum();
        let mut scans: Vec<Row> = parts.into_values().flat_map(|(_, part)| part.scans).collect();
        scans.sort_by_key(|row| row.number);
        if !scans.iter().map(|row| row.number).eq(1..=of.list.scans) {
            let message = format!(
                "--merge: expected each of {} in one summary, found {}",
                files::count(of.list.scans, "scan"),
                files::count(scans.len(), "row")
            );
            return Err(BadInput::new(message)
                .hint("a summary was changed or cut: run its part again")
                .into());
        }
        Ok(Self::new(of, None, seconds, scans))
    }

    pub(super) fn count(&self, what: Became) -> usize {
        self.scans.iter().filter(|row| row.result == what).count()
    }

    /// One line for people.
    pub(super) fn lead(&self) -> String {
        let (scans, seconds) = (files::count(self.scans.len(), "scan"), self.seconds);
        let made = self.count(Became::Reconstructed);
        let mut lead = format!("{scans} in {seconds:.2} s: {made} reconstructed");
        for what in [Became::ThereBefore, Became::Failed, Became::Elsewhere, Became::Left] {
            match self.count(what) {
                0 => {}
                number => lead += &format!(", {number} {}", what.name()),
            }
        }
        lead
    }

    pub(super) fn table(&self) -> Table {
        let columns =
            [Column::text("Scan"), Column::text("Images"), Column::text("Result"), Column::number("Seconds")];
        let mut table = Table::new("", columns);
        for row in &self.scans {
            table.push([
                Cell::from(row.scan.clone()),
                Cell::from(row.images.join(", ")),
                Cell::from(row.why.clone().unwrap_or_else(|| row.result.name().to_owned())),
                Cell::from(row.seconds),
            ]);
        }
        table
    }

    /// Writes the page and the file that are wanted.
    pub(super) fn write(&self, page: Option<&Path>, file: Option<&Path>) -> Result<()> {
        if let Some(page) = page {
            let section = Section::new("Scans").table(self.table());
            files::write_text(page, &Page::new("Batch", self.lead()).section(section).render())?;
        }
        if let Some(file) = file {
            files::write_text(file, &(serde_json::to_string_pretty(self)? + "\n"))?;
        }
        Ok(())
    }
}
