use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result, printable};

/// Receives the progress of a run. The command line draws a bar or prints lines; tests and libraries use
/// [`Silent`].
pub trait Progress: Sync {
    /// A stage begins; `steps` is how many [`Progress::step`] calls it expects, 0 when unknown.
    fn begin(&self, stage: &str, steps: usize);
    /// One step of the current stage ended; `detail` is a short text such as `residual 1.2e-3`.
    fn step(&self, detail: &str);
    /// The current stage ended after `seconds`.
    fn end(&self, stage: &str, seconds: f64);
    /// A message that is no error: an assumption or a fallback.
    fn note(&self, text: &str);
}

/// Progress that is not reported.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: usize) {}
    fn step(&self, _: &str) {}
    fn end(&self, _: &str, _: f64) {}
    fn note(&self, _: &str) {}
}

/// Reports the progress of a long computation and tells it when to stop.
///
/// Stage times are measured here, so that every caller's run record has them.
pub struct Monitor<'a> {
    progress: &'a dyn Progress,
    stop: Option<&'a AtomicBool>,
    stages: std::sync::Mutex<Vec<(String, f64)>>,
    /// Whether a series is running. Its stages are timed but not reported one by one.
    in_series: AtomicBool,
}

impl<'a> Monitor<'a> {
    /// A monitor that reports to `progress` and stops when `stop` becomes true.
    pub fn new(progress: &'a dyn Progress, stop: Option<&'a AtomicBool>) -> Self {
        Self { progress, stop, stages: std::sync::Mutex::new(Vec::new()), in_series: AtomicBool::new(false) }
    }

    /// A monitor that reports nothing and never stops.
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
        let reported = !self.in_series.load(Ordering::Relaxed);
        if reported {
            self.progress.begin(name, steps);
        }
        let start = std::time::Instant::now();
        let result = work();
        let seconds = start.elapsed().as_secs_f64();
        if reported {
            self.progress.end(name, seconds);
        }
        let mut stages = self.stages.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match stages.iter_mut().find(|(stage, _)| stage == name) {
            Some((_, total)) => *total += seconds,
            None => stages.push((name.to_owned(), seconds)),
        }
        result
    }

    /// Runs `work`, which makes `count` similar things one after another, each with its own stages. These
    /// stages are timed but not reported. `count` calls of [`Monitor::advance`] report the progress.
    pub fn series<T, E>(
        &self,
        name: &str,
        count: usize,
        work: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.progress.begin(name, count);
        let start = std::time::Instant::now();
        self.in_series.store(true, Ordering::Relaxed);
        let result = work();
        self.in_series.store(false, Ordering::Relaxed);
        self.progress.end(name, start.elapsed().as_secs_f64());
        result
    }

    /// One thing of the current series is done. Fails with [`Error::Interrupted`] when the user asked to
    /// stop.
    pub fn advance(&self, detail: &str) -> Result<()> {
        self.progress.step(detail);
        self.check()
    }

    /// One step of the current stage ended. Fails with [`Error::Interrupted`] when the user asked to stop.
    pub fn step(&self, detail: &str) -> Result<()> {
        if !self.in_series.load(Ordering::Relaxed) {
            self.progress.step(detail);
        }
        self.check()
    }

    /// Fails with [`Error::Interrupted`] when the user asked to stop.
    pub fn check(&self) -> Result<()> {
        match self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    /// Tells the user something that is not an error, as [`printable`] text.
    pub fn note(&self, text: &str) {
        self.progress.note(&printable(text));
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
    fn stages_of_a_series_are_timed_and_not_reported() {
        #[derive(Default)]
        struct Heard(std::sync::Mutex<Vec<String>>);
        impl Heard {
            fn push(&self, text: String) {
                self.0.lock().unwrap().push(text);
            }
        }
        impl Progress for Heard {
            fn begin(&self, stage: &str, steps: usize) {
                self.push(format!("{stage} of {steps}"));
            }
            fn step(&self, detail: &str) {
                self.push(detail.into());
            }
            fn end(&self, stage: &str, _: f64) {
                self.push(format!("end of {stage}"));
            }
            fn note(&self, _: &str) {}
        }
        let heard = Heard::default();
        let monitor = Monitor::new(&heard, None);
        monitor
            .series("frames", 2, || {
                for frame in ["a", "b"] {
                    monitor.stage("solve", 1, || monitor.step("inner"))?;
                    monitor.advance(frame)?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        monitor.stage("after", 0, || Ok::<_, Error>(())).unwrap();
        let names: Vec<_> = monitor.stages().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["solve", "after"]);
        let heard = heard.0.into_inner().unwrap();
        assert_eq!(heard, ["frames of 2", "a", "b", "end of frames", "after of 0", "end of after"]);
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
