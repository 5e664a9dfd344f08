use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use indexmap::IndexMap;
use jiff::Timestamp;
use serde_json::Value;

use super::{Convergence, FileEntry, History, Quality, RecordError, RunRecord, SCHEMA, Stage};

/// Collects a [`RunRecord`] while the run goes on.
///
/// Time is always in exactly one stage: [`stage`](Self::stage) ends the stage before and opens the next, so
/// stages can neither overlap nor be left open, and they add up to the total.
///
/// ```
/// use rayspin_report::RunRecorder;
///
/// let mut run = RunRecorder::start("rayspin", "0.1.0", ["rayspin", "recon", "scan.h5"], "8 cores, AVX2", 8);
/// run.stage("read");
/// run.parameter("matrix", vec![256, 256]);
/// run.stage("solve");
/// run.converged("frame 0", [1.0, 0.1, 0.01]);
/// let record = run.finish(None);
/// assert_eq!(record.stages[1].name, "solve");
/// assert_eq!(record, rayspin_report::RunRecord::from_json(&record.to_json()?)?);
/// # Ok::<(), rayspin_report::record::RecordError>(())
/// ```
#[derive(Debug)]
#[must_use = "a run is recorded only once `finish` is called"]
pub struct RunRecorder {
    record: RunRecord,
    begun: Instant,
    stage_begun: Instant,
    current: Option<usize>,
    /// Time of the running stage that [`RunRecorder::within`] gave to other stages.
    given: Duration,
}

/// The name of the time before the first stage is named.
const START: &str = "start";

impl RunRecorder {
    /// Starts the clocks.
    ///
    /// `command` is the command line, the program first; `device` the device's description of itself.
    pub fn start<A: Into<String>>(
        program: impl Into<String>,
        version: impl Into<String>,
        command: impl IntoIterator<Item = A>,
        device: impl Into<String>,
        threads: usize,
    ) -> Self {
        let now = Instant::now();
        Self {
            record: RunRecord {
                schema: SCHEMA,
                program: program.into(),
                version: version.into(),
                command: command.into_iter().map(Into::into).collect(),
                started: to_milliseconds(SystemTime::now()),
                device: device.into(),
                threads,
                inputs: Vec::new(),
                outputs: Vec::new(),
                parameters: IndexMap::new(),
                versions: IndexMap::new(),
                stages: Vec::new(),
                total_seconds: 0.0,
                peak_memory_bytes: None,
                convergence: Vec::new(),
                history: Vec::new(),
                quality: Vec::new(),
                notes: Vec::new(),
            },
            begun: now,
            stage_begun: now,
            current: None,
            given: Duration::ZERO,
        }
    }

    /// Names the device where it was chosen after the start.
    pub fn device(&mut self, device: impl Into<String>) {
        self.record.device = device.into();
    }

    /// Enters a stage; the one before ends here. A name that was used before goes on collecting.
    ///
    /// Time before the first call counts as `start` where it reaches a millisecond, and to the first stage
    /// otherwise.
    pub fn stage(&mut self, name: impl Into<String>) {
        let name = name.into();
        let now = Instant::now();
        match self.current {
            Some(_) => self.close(now),
            None if now - self.stage_begun >= Duration::from_millis(1) => {
                self.current = Some(self.index_of(START));
                self.close(now);
            }
            None => {}
        }
        self.current = Some(self.index_of(&name));
    }

    /// Says that `time` of the running stage was spent on `name`, as measured by whoever did the work. The
    /// total is unchanged; time beyond what the running stage has is cut off.
    pub fn within(&mut self, name: impl Into<String>, time: Duration) {
        let running = self.stage_begun.elapsed().saturating_sub(self.given);
        let time = time.min(running);
        if self.current.is_none() {
            self.current = Some(self.index_of(START));
        }
        let index = self.index_of(&name.into());
        self.record.stages[index].seconds += time.as_secs_f64();
        self.given += time;
    }

    /// Reads the file once and notes its path, length and hash among the inputs.
    pub fn input(&mut self, path: impl AsRef<Path>) -> Result<(), RecordError> {
        self.record.inputs.push(FileEntry::read(path)?);
        Ok(())
    }

    /// Reads the finished file once and notes its path, length and hash among the outputs.
    pub fn output(&mut self, path: impl AsRef<Path>) -> Result<(), RecordError> {
        self.record.outputs.push(FileEntry::read(path)?);
        Ok(())
    }

    /// Notes an input whose entry is known already.
    pub fn input_entry(&mut self, entry: FileEntry) {
        self.record.inputs.push(entry);
    }

    /// Notes an output whose entry is known already.
    pub fn output_entry(&mut self, entry: FileEntry) {
        self.record.outputs.push(entry);
    }

    /// Notes a parameter; a name given twice keeps its place and takes the later value.
    pub fn parameter(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.record.parameters.insert(name.into(), value.into());
    }

    /// Notes the version of something that decides the result.
    pub fn version(&mut self, name: impl Into<String>, version: impl Into<String>) {
        self.record.versions.insert(name.into(), version.into());
    }

    /// Notes the residuals of a solve, the first before any iteration.
    pub fn converged(&mut self, name: impl Into<String>, residual: impl IntoIterator<Item = f64>) {
        self.record
            .convergence
            .push(Convergence { name: name.into(), residual: residual.into_iter().collect() });
    }

    /// Notes a quantity of a solve after each iteration.
    pub fn followed(
        &mut self,
        name: impl Into<String>,
        quantity: impl Into<String>,
        values: impl IntoIterator<Item = f64>,
    ) {
        let values = values.into_iter().collect();
        self.record.history.push(History { name: name.into(), quantity: quantity.into(), values });
    }

    /// Notes how near `image` came to `reference`, and by which `rule` the two were compared.
    pub fn quality<N: Into<String>>(
        &mut self,
        image: impl Into<String>,
        reference: impl Into<String>,
        rule: impl Into<String>,
        metrics: impl IntoIterator<Item = (N, f64)>,
    ) {
        self.record.quality.push(Quality {
            image: image.into(),
            reference: reference.into(),
            rule: rule.into(),
            metrics: metrics.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        });
    }

    /// Notes what was assumed or repaired, with parameters as options; the same sentence is kept once.
    pub fn note(&mut self, sentence: impl AsRef<str>) {
        let sentence = rayspin_core::as_options(sentence.as_ref()).into_owned();
        if !self.record.notes.contains(&sentence) {
            self.record.notes.push(sentence);
        }
    }

    /// Stops the clocks and gives the record. `peak_memory_bytes` is what the system says of the process
    /// (`rayspin_device::cpu::peak_memory`).
    pub fn finish(mut self, peak_memory_bytes: Option<u64>) -> RunRecord {
        let now = Instant::now();
        if self.current.is_some() {
            self.close(now);
        }
        self.record.total_seconds = (now - self.begun).as_secs_f64();
        self.record.peak_memory_bytes = peak_memory_bytes;
        self.record
    }

    fn index_of(&mut self, name: &str) -> usize {
        let stages = &mut self.record.stages;
        stages.iter().position(|stage| stage.name == name).unwrap_or_else(|| {
            stages.push(Stage { name: name.to_owned(), seconds: 0.0 });
            stages.len() - 1
        })
    }

    fn close(&mut self, now: Instant) {
        if let Some(index) = self.current {
            let own = (now - self.stage_begun).saturating_sub(self.given);
            self.record.stages[index].seconds += own.as_secs_f64();
        }
        self.stage_begun = now;
        self.given = Duration::ZERO;
    }
}

/// A clock that stands outside the calendar's range (year 9999) is taken as the epoch.
fn to_milliseconds(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time)
        .and_then(|time| time.round(jiff::Unit::Millisecond))
        .unwrap_or(Timestamp::UNIX_EPOCH)
}
