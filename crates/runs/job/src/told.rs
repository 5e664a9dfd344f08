//! What a run tells, of MRI and of CT.

use std::path::Path;
use std::time::Duration;

use rayspin_core::Monitor;
use rayspin_report::RunRecorder;

/// What a run tells: its progress, its notes, and its record.
pub struct Told<'a> {
    /// Where progress goes, and the times of stages.
    pub monitor: Monitor<'a>,
    /// The record so far.
    pub recorder: RunRecorder,
    /// What was assumed, one sentence each, in the order in which it was told.
    pub notes: Vec<String>,
}

impl<'a> Told<'a> {
    /// Begins with the record's stage "read".
    pub(crate) fn new(monitor: Monitor<'a>, mut recorder: RunRecorder) -> Self {
        recorder.stage("read");
        Self { monitor, recorder, notes: Vec::new() }
    }

    /// Tells something.
    pub fn say(&mut self, note: String) {
        self.monitor.note(&note);
        self.notes.push(note);
    }

    /// Moves the notes so far to the record, as they were told.
    pub fn record_notes(&mut self) {
        self.notes.drain(..).for_each(|note| self.recorder.note(note));
    }

    /// Gives the running stage's time to the stages that were measured within it. Reading is a stage of the
    /// record's own.
    pub(crate) fn record_stages(&mut self) {
        for (stage, seconds) in self.monitor.stages().into_iter().filter(|(stage, _)| stage != "read") {
            self.recorder.within(stage, Duration::from_secs_f64(seconds));
        }
    }
}

/// An error about a scan, with the name of its file where it has one.
pub(crate) fn of_scan(file: Option<&Path>, error: rayspin_core::Error) -> crate::Error {
    match file {
        Some(path) => rayspin_io::Error::core(path, error).into(),
        None => error.into(),
    }
}
