//! The progress of a run, told to Python, and its end where Python has a signal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use rayspin::core::{Error, Progress};

use crate::call;
use crate::error::raised_in;
use crate::texts::Call;

/// Tells Python about progress, and stops where Python has a signal (Ctrl-C).
pub(crate) struct Listener {
    progress: Option<Py<PyAny>>,
    pub(crate) stop: AtomicBool,
    stage: Mutex<(String, usize, usize)>,
    raised: Mutex<Option<PyErr>>,
}

impl Listener {
    /// `progress` is called with the stage, the step and the number of steps. Without it a bar of tqdm appears in terminals and notebooks;
    /// with `False` nothing does.
    pub(crate) fn new(py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<Self> {
        let progress = py.import("rayspin._progress")?.call_method1("listener", (progress,))?;
        let progress = if progress.is_none() { None } else { Some(progress.unbind()) };
        Ok(Self { progress, stop: AtomicBool::new(false), stage: Mutex::default(), raised: Mutex::default() })
    }

    fn tell(&self) {
        if call::is_closing() {
            self.stop.store(true, Ordering::Relaxed);
            return;
        }
        let (stage, step, steps) = self.stage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let told = Python::try_attach(|py| {
            py.check_signals()?;
            match &self.progress {
                Some(progress) => progress.call1(py, (stage, step, steps)).map(drop),
                None => Ok(()),
            }
        });
        match told {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                self.stop.store(true, Ordering::Relaxed);
            }
            // The interpreter is shutting down.
            None => self.stop.store(true, Ordering::Relaxed),
        }
    }

    /// The exception that stopped the run, or the one for its error.
    pub(crate) fn exception(&self, error: Error) -> PyErr {
        self.raised_before().unwrap_or_else(|| call::exception(error))
    }

    /// [`Self::exception`] in the words of a call.
    pub(crate) fn exception_in(&self, words: Call, error: Error) -> PyErr {
        self.raised_before().unwrap_or_else(|| raised_in(words, error))
    }

    /// The exception that stopped the run.
    pub(crate) fn raised_before(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
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
