use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// Receives the progress of a run. The command line draws a bar or prints lines; tests and libraries use [`Silent`].
pub trait Progress: Sync {
    /// A stage begins; `steps` is how many [`Progress::step`] calls it expects, 0 when unknown.
    fn begin(&self, stage: &str, steps: usize);
    /// One step of the current stage ended; `detail` is a short text such as `residual 1.2e-3`.
    fn step(&self, detail: &str);
    /// The current stage ended after `seconds`.
    fn end(&self, stage: &str, seconds: f64);
    /// Something that the user should know and that is not an error (an assumption, a fallback).
    fn note(&self, text: &str);
}

/// Progress that nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: usize) {}
    fn step(&self, _: &str) {}
    fn end(&self, _: &str, _: f64) {}
    fn note(&self, _: &str) {}
}

/// What a long computation carries: where to report progress, and whether to stop.
///
/// Stage times are measured here, so that every caller's run record has them.
pub struct Monitor<'a> {
    progress: &'a dyn Progress,
    stop: Option<&'a AtomicBool>,
    stages: std::sync::Mutex<Vec<(String, f64)>>,
}

impl<'a> Monitor<'a> {
    /// A monitor that reports to `progress` and stops when `stop` becomes true.
    pub fn new(progress: &'a dyn Progress, stop: Option<&'a AtomicBool>) -> Self {
        Self { progress, stop, stages: std::sync::Mutex::new(Vec::new()) }
    }

    /// Nobody watches and nothing stops.
    pub fn silent() -> Monitor<'static> {
        Monitor::new(&Silent, None)
    }

    /// Runs `work` as a named stage of `steps` steps and records its wall time under that name.
    pub fn stage<T, E>(
        &self,
        name: &str,
        steps: usize,
        work: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.progress.begin(name, steps);
        let start = std::time::Instant::now();
        let result = work();
        let seconds = start.elapsed().as_secs_f64();
        self.progress.end(name, seconds);
        let mut stages = self.stages.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match stages.iter_mut().find(|(stage, _)| stage == name) {
            Some((_, total)) => *total += seconds,
            None => stages.push((name.to_owned(), seconds)),
        }
        result
    }

    /// One step of the current stage ended. Fails with [`Error::Interrupted`] when the user asked to stop.
    pub fn step(&self, detail: &str) -> Result<()> {
        self.progress.step(detail);
        self.check()
    }

    /// Fails with [`Error::Interrupted`] when the user asked to stop.
    pub fn check(&self) -> Result<()> {
        match self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    /// Tells the user something that is not an error.
    pub fn note(&self, text: &str) {
        self.progress.note(text);
    }

    /// Wall seconds of every stage so far, in the order in which they first ended; repeated stages add up.
    pub fn stages(&self) -> Vec<(String, f64)> {
        self.stages.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_recorded_in_order_and_repeats_add_up() {
        let monitor = Monitor::silent();
        for name in ["read", "solve", "read"] {
            monitor.stage(name, 0, || Ok::<_, Error>(())).unwrap();
        }
        let names: Vec<_> = monitor.stages().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["read", "solve"]);
    }

    #[test]
    fn a_stop_request_interrupts_the_next_step() {
        let stop = AtomicBool::new(false);
        let monitor = Monitor::new(&Silent, Some(&stop));
        assert_eq!(monitor.step(""), Ok(()));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(monitor.step(""), Err(Error::Interrupted));
    }
}
