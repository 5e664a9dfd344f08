//! The progress of a run, told to Python.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use rayspin::core::{Monitor, Progress};

use crate::signals::{Detached, Signals};

/// Tells Python about progress, and stops where Python has a signal (Ctrl-C) or the caller's function raises.
pub(crate) struct Listener {
    progress: Option<Py<PyAny>>,
    pub(crate) signals: Signals,
    stage: Mutex<(String, usize, usize)>,
}

impl Listener {
    /// `progress` is called with the stage, the step and the number of steps. Without it a bar of tqdm
    /// appears in terminals and notebooks; with `False` nothing does.
    pub(crate) fn new(py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<Self> {
        let progress = py.import("rayspin._progress")?.call_method1("listener", (progress,))?;
        let progress = if progress.is_none() { None } else { Some(progress.unbind()) };
        Ok(Self { progress, signals: Signals::default(), stage: Mutex::default() })
    }

    /// One that tells nothing.
    pub(crate) fn silent() -> Self {
        Self { progress: None, signals: Signals::default(), stage: Mutex::default() }
    }

    /// What the library tells progress to.
    pub(crate) fn monitor(&self) -> Monitor<'_> {
        Monitor::new(self, Some(self.signals.stop()))
    }

    /// Releases the interpreter while `work` runs in this thread. Errors: what a signal or the caller's
    /// function raised meanwhile.
    pub(crate) fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        py.detached_for(&self.signals, work)
    }

    fn tell(&self) {
        let (stage, step, steps) = self.stage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.signals.attend(|py| {
            py.check_signals()?;
            match &self.progress {
                Some(progress) => progress.call1(py, (stage, step, steps)).map(drop),
                None => Ok(()),
            }
        });
    }
}

impl Progress for Listener {
    fn begin(&self, stage: &str, steps: usize) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = (stage.to_owned(), 0, steps);
        self.tell();
    }
    fn step(&self, _: &str) {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner).1 += 1;
        self.tell();
    }
    fn end(&self, _: &str, _: f64) {
        self.tell();
    }
    fn note(&self, _: &str) {}
}
