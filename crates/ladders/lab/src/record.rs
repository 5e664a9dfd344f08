//! What benchmark runs leave on disk: everything that a table, a page or a comparison is made of.

use rayspin_core::{Error, Result};
use rayspin_tune::limits::Limits;
use rayspin_tune::{About, Flow, Peak, Published, Unit};
use serde::{Deserialize, Serialize};

use crate::{BenchmarkRun, LaunchMode};

/// What files say that they are.
const FORMAT: &str = "rayspin-ladder";
/// Grows when what a field means changes.
const VERSION: u32 = 1;

/// The benchmark runs of one run of the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    format: String,
    version: u32,
    /// The version of Rayspin.
    pub rayspin: String,
    /// When it began, in UTC: `2026-05-04T12:00:00Z`.
    pub began: String,
    /// The measured limits of the processors.
    #[serde(default)]
    pub limits: Vec<Limits>,
    /// The benchmark runs, in the order in which they were made.
    #[serde(alias = "climbs")]
    pub runs: Vec<Entry>,
}

/// A benchmark run and what its numbers mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The ladder's name.
    pub ladder: String,
    /// Its title.
    pub title: String,
    /// The case, where the caller named one.
    pub case: Option<String>,
    /// The seed of the inputs.
    pub seed: u64,
    /// What rates count a second: `B`, `flop`, or the items' name.
    pub unit: String,
    /// What bounds the operations.
    pub peak: Peak,
    /// Which way the bytes go.
    #[serde(default)]
    pub flow: Flow,
    /// How the host launched its runs.
    #[serde(default)]
    pub launch: LaunchMode,
    /// Whether all runs used the same buffers.
    #[serde(default)]
    pub one_buffer: bool,
    /// The axis along which the configurations of its steps run, where it is a sweep.
    pub sweep: Option<String>,
    /// The processor's clock in MHz, the median over the variants, where it is known.
    pub clock_mhz: Option<f64>,
    /// The rows of the lecture or journal that the ladder follows.
    pub published: Vec<Row>,
    /// The variants.
    #[serde(flatten)]
    pub run: BenchmarkRun,
}

/// A [`Published`] row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The document that has it. Empty in records from before it was kept.
    #[serde(default)]
    pub document: String,
    /// The row's label.
    pub row: String,
    /// Seconds, where stated.
    pub seconds: Option<f64>,
    /// The rate in the unit of the benchmark run a second, where stated.
    pub rate: Option<f64>,
    /// The problem that was measured. Empty where no size is stated, and in records from before it was kept.
    #[serde(default)]
    pub problem: String,
    /// What a reader has to know of the row.
    #[serde(default)]
    pub note: String,
}

impl Record {
    /// A record without benchmark runs.
    pub fn new(rayspin: impl Into<String>, began: impl Into<String>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            rayspin: rayspin.into(),
            began: began.into(),
            limits: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// As JSON, with a line feed at its end.
    pub fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|e| Error::value("ladder record", "finite numbers", e))
    }

    /// From what [`Record::to_json`] gave. Errors: another format or version.
    pub fn from_json(text: &str) -> Result<Self> {
        let expected = || format!("{FORMAT} of version {VERSION}, as rayspin-ladder --json writes it");
        let record: Self =
            serde_json::from_str(text).map_err(|e| Error::value("ladder record", expected(), e))?;
        if record.format != FORMAT || record.version != VERSION {
            let found = format!("{} of version {}", record.format, record.version);
            return Err(Error::value("ladder record", expected(), found));
        }
        Ok(record)
    }
}

impl Entry {
    /// The benchmark run of a ladder.
    pub fn new(about: &About, published: &[Published], peak: Peak, run: BenchmarkRun) -> Self {
        Self {
            ladder: about.name.to_owned(),
            title: about.title.to_owned(),
            case: None,
            seed: 0,
            unit: match about.unit {
                Unit::Bytes => "B",
                Unit::Flops => "flop",
                Unit::Items(name) => name,
            }
            .to_owned(),
            peak,
            flow: Flow::Copy,
            launch: LaunchMode::Best,
            one_buffer: false,
            sweep: None,
            clock_mhz: run.clocks_mhz().map(|clocks| clocks[1]),
            published: published
                .iter()
                .map(|p| Row {
                    document: p.document.to_owned(),
                    row: p.row.to_owned(),
                    seconds: p.seconds,
                    rate: p.rate,
                    problem: p.problem.to_owned(),
                    note: p.note.to_owned(),
                })
                .collect(),
            run,
        }
    }

    /// The rate's unit with its prefix for 10⁹, as tables head their column: `GB/s`.
    pub fn giga(&self) -> String {
        match self.unit.as_str() {
            "B" => "GB/s".to_owned(),
            "flop" => "GFLOP/s".to_owned(),
            items => format!("10⁹ {items}/s"),
        }
    }

    /// What heads the column of published rows: the document that has them.
    pub fn document(&self) -> &str {
        let mut named =
            self.published.iter().map(|row| row.document.as_str()).filter(|name| !name.is_empty());
        named.next().unwrap_or("Published")
    }

    /// The published row that a step reproduces.
    pub fn published_row(&self, reproduces: Option<&str>) -> Option<&Row> {
        self.published.iter().find(|row| Some(row.row.as_str()) == reproduces)
    }
}

#[cfg(test)]
mod tests {
    use rayspin_tune::Config;

    use super::*;
    use crate::{Outcome, Step, Timed, Timing};

    #[test]
    fn a_record_comes_back_and_others_are_refused() {
        let timing = Timing { median: 1e-3, low: 0.9e-3, high: 1.2e-3, rounds: 15, runs: 2, graph: false };
        let outcomes = [
            Outcome::Timed(Timed {
                timing,
                rate: 3e9,
                error: 0.0,
                step: 1.0,
                cumulative: 1.0,
                clock_mhz: Some(1980.0),
            }),
            Outcome::Refused("too large".into()),
            Outcome::Failed("error 1".into()),
        ];
        let step = |outcome| Step {
            name: "a".into(),
            summary: "b".into(),
            config: Config::of(&[("threads", 64)]),
            bytes: 3e6,
            flops: 1.0,
            peak: None,
            floor: Some(5e-4),
            tolerance: 0.0,
            reproduces: Some("K1".into()),
            outcome,
        };
        let run = BenchmarkRun {
            device: "d".into(),
            problem: "p".into(),
            sets: 2,
            steps: outcomes.into_iter().map(step).collect(),
        };
        assert_eq!(run.steps[0].share(), Some(0.5));
        assert_eq!(run.steps[1].share(), None);
        let about = About { name: "n", title: "t", readme: "", unit: Unit::Items("pairs") };
        let published =
            [Published::new("a journal", "K1").seconds(8e-3).measured_at("9 pairs").note("a slow one")];
        let mut record = Record::new("0.1.0", "2026-05-04T12:00:00Z");
        record.runs.push(Entry::new(&about, &published, Peak::F32, run));
        let text = record.to_json().unwrap();
        assert_eq!(Record::from_json(&text).unwrap(), record);
        assert_eq!(record.runs[0].clock_mhz, Some(1980.0));
        // Files from before variants had clocks.
        let clock = ",\n              \"clock_mhz\": 1980.0";
        assert!(text.contains(clock), "{text}");
        let before = Record::from_json(&text.replace(clock, "")).unwrap();
        assert_eq!(before.runs[0].run.clocks_mhz(), None);
        // Files in which runs had another name.
        let named = text.replace("\"runs\": [", "\"climbs\": [");
        assert!(named != text && Record::from_json(&named).unwrap() == record);
        // Files from before published rows named their document.
        let document = "\"document\": \"a journal\",\n";
        assert_eq!(record.runs[0].document(), "a journal");
        assert!(text.contains(document), "{text}");
        assert_eq!(Record::from_json(&text.replace(document, "")).unwrap().runs[0].document(), "Published");
        for other in [
            text.replace("rayspin-ladder", "another"),
            text.replace("\"version\": 1", "\"version\": 2"),
            text[..text.len() / 2].to_owned(),
            "{}".into(),
            String::new(),
        ] {
            assert_eq!(Record::from_json(&other).unwrap_err().kind(), rayspin_core::ErrorKind::Input);
        }
    }
}
