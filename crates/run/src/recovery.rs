//! What becomes of work that a GPU does not finish: it is cut smaller where memory ran out, or done on the CPU.

use rayspin_core::{Error, Result};
use rayspin_device::{Backend, Device};

/// Work that can be begun anew.
pub trait Recovers {
    /// Where it is done.
    fn device(&self) -> &Device;
    /// Whether the CPU beside a GPU takes over what the GPU fails at.
    fn finish_on_cpu(&self) -> bool;
    /// Gives back every array that was made.
    fn give_back(&mut self);
    /// Halves what is done at once from here on, and says what that is; nothing where it can be no less.
    fn cut(&mut self) -> Result<Option<String>>;
    /// Goes on elsewhere.
    fn move_to(&mut self, device: Device);
}

/// Attempts work until it is done. Where a GPU's memory runs out, what was made is given back and the work begun anew,
/// [cut](Recovers::cut) smaller; where that does not help, or the GPU fails, the CPU takes over if it may. Both hold from there
/// on, and go to `notes`.
///
/// `attempt` is told whether it is the last one, and may use up then what it works on.
///
/// Errors: those of the attempt that nothing helps against.
pub fn recovering<J: Recovers, T>(
    job: &mut J,
    notes: &mut Vec<String>,
    mut attempt: impl FnMut(&mut J, bool) -> Result<T>,
) -> Result<T> {
    while let Some(before) = refusals(job.device()) {
        let error = match attempt(job, false) {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        job.give_back();
        let ran_out =
            matches!(error, Error::Memory { .. }) && refusals(job.device()).is_some_and(|now| now > before);
        if ran_out && let Some(cut) = job.cut()? {
            notes.push(format!("GPU memory ran out: {cut} from here on"));
        } else if job.finish_on_cpu() && (ran_out || matches!(error, Error::Device { .. })) {
            notes.push(taken_over(&error));
            job.move_to(job.device().host());
        } else {
            return Err(error);
        }
    }
    attempt(job, true)
}

/// Does on the device what comes before: on the CPU where a GPU's memory does not do, and where it fails and the CPU may take
/// over, which is said in `notes` and moves the job.
///
/// Errors: those of `work`.
pub fn or_on_host<J: Recovers, T>(
    job: &mut J,
    notes: &mut Vec<String>,
    mut work: impl FnMut(&Device, &mut Vec<String>) -> Result<T>,
) -> Result<T> {
    let error = match work(job.device(), notes) {
        Err(error) if refusals(job.device()).is_some() => error,
        done => return done,
    };
    match error {
        Error::Memory { .. } => {}
        Error::Device { .. } if job.finish_on_cpu() => {
            notes.push(taken_over(&error));
            job.move_to(job.device().host());
        }
        error => return Err(error),
    }
    work(&job.device().host(), notes)
}

fn taken_over(error: &Error) -> String {
    format!("the GPU failed, computed on the CPU from here on: {error}")
}

/// How often a GPU refused memory so far; nothing of the CPU.
fn refusals(device: &Device) -> Option<u64> {
    match device.backend() {
        Backend::Cpu(_) => None,
        Backend::Cuda(cuda) => Some(cuda.refusals()),
    }
}
