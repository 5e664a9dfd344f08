//! Recovery when a GPU fails: a run continues with smaller batches after memory ran out, or on the CPU.

use rayspin_core::{Error, Result};
use rayspin_device::{Backend, Device};

/// Work that can be started again.
pub trait Recoverable {
    /// The device that does the work.
    fn device(&self) -> &Device;
    /// The devices that do a part of it.
    fn beside(&self) -> &[Device] {
        &[]
    }
    /// Whether the CPU takes over when the GPU fails.
    fn finish_on_cpu(&self) -> bool;
    /// Frees every array of the work.
    fn give_back(&mut self);
    /// Halves one batch size for the rest of the run and describes the new size. `None` if no batch can
    /// become smaller.
    fn reduce_batch(&mut self) -> Result<Option<String>>;
    /// Continues on another device.
    fn move_to(&mut self, device: Device);
}

/// Attempts work until it is done. If GPU memory runs out, frees the work's arrays and starts the work again
/// with [smaller batches](Recoverable::reduce_batch). If no batch can become smaller, or the GPU fails
/// otherwise, the CPU takes over if it may. The smaller batches and the CPU stay in use for the rest of the
/// run. `notes` report both.
///
/// The second argument of `attempt` says whether this is the last attempt. A last attempt may consume its
/// input.
///
/// Errors: the error of an attempt that neither remedy helps.
pub fn with_recovery<J: Recoverable, T>(
    job: &mut J,
    notes: &mut Vec<String>,
    mut attempt: impl FnMut(&mut J, bool) -> Result<T>,
) -> Result<T> {
    while let Some(before) = refusals_of(job) {
        let error = match attempt(job, false) {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        job.give_back();
        let ran_out =
            matches!(error, Error::Memory { .. }) && refusals_of(job).is_some_and(|now| now > before);
        if ran_out && let Some(smaller) = job.reduce_batch()? {
            notes.push(format!("GPU memory ran out: {smaller} from here on"));
        } else if job.finish_on_cpu() && (ran_out || matches!(error, Error::Device { .. })) {
            notes.push(taken_over(&error));
            job.move_to(job.device().host());
        } else {
            return Err(error);
        }
    }
    attempt(job, true)
}

/// Does work that precedes the attempts, on the job's device. If the GPU's memory is too small, does this
/// work alone on the CPU. If the GPU fails and the CPU may take over, moves the job to the CPU, with a note
/// in `notes`.
///
/// Errors: errors of `work`.
pub fn with_cpu_fallback<J: Recoverable, T>(
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

/// Number of failed GPU allocations so far on all devices of a job; `None` on the CPU.
fn refusals_of<J: Recoverable>(job: &J) -> Option<u64> {
    let own = refusals(job.device())?;
    Some(own + job.beside().iter().filter_map(refusals).sum::<u64>())
}

/// Number of failed GPU allocations so far; `None` on the CPU.
fn refusals(device: &Device) -> Option<u64> {
    match device.backend() {
        Backend::Cpu(_) => None,
        Backend::Cuda(cuda) => Some(cuda.failed_allocations()),
    }
}
