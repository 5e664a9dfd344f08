//! Recorded work: the calls that are allowed during a recording, and how long a recording stays valid.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use rayspin_core::{Error, Result};

use super::driver::Graph;
use super::{Cuda, Memory};

/// The lock that every call to the driver takes. While one thread records, the others wait, so that their
/// work is no part of the recording.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    turn: RwLock<()>,
    /// The thread that records, or 0.
    recorder: AtomicU64,
    /// Whether the recording thread made a call that cannot be recorded.
    refused: AtomicBool,
    /// Number of times that memory was freed so far.
    given_back: AtomicU64,
}

/// A number that no other thread has.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static OWN: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    OWN.with(|own| *own)
}

impl Gate {
    /// Whether this thread records.
    pub(crate) fn records(&self) -> bool {
        self.recorder.load(Ordering::Relaxed) == this_thread()
    }

    /// Takes the lock for one call that can be recorded. The caller releases it before the next call.
    pub(crate) fn pass(&self) -> Option<RwLockReadGuard<'_, ()>> {
        (!self.records()).then(|| self.turn.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the lock for one call that cannot be recorded. Errors: this thread records.
    pub(crate) fn pass_now(&self, what: &str) -> Result<Option<RwLockReadGuard<'_, ()>>> {
        if self.records() {
            self.refused.store(true, Ordering::Relaxed);
            let detail = "not possible while work is recorded".to_owned();
            return Err(Error::Device { what: what.to_owned(), detail });
        }
        Ok(self.pass())
    }

    /// Notes that memory is freed, because recorded work may name it.
    pub(crate) fn note_free(&self) {
        self.given_back.fetch_add(1, Ordering::Relaxed);
        if self.records() {
            self.refused.store(true, Ordering::Relaxed);
        }
    }
}

impl Memory {
    /// Whether dropped memory may be freed now. If not, the free is deferred, because recorded work or a copy
    /// that could not be waited for may use the memory.
    pub(super) fn may_free(&self, address: u64, bytes: u64) -> bool {
        self.gate.note_free();
        let may = !self.gate.records() && !self.deferred.unsettled();
        if !may {
            self.deferred.defer_free(address, bytes);
        }
        may
    }
}

/// The result of [`Cuda::try_record`].
#[derive(Debug)]
pub enum Recording {
    /// The recording of all of the work.
    Ready(Recorded),
    /// The work makes a call that cannot be recorded; the error names it. No work was done.
    Refused(Error),
}

/// Recorded work (a CUDA graph), which can be launched any number of times.
///
/// The recording holds the addresses of arrays. If device memory was freed since, one of these arrays may be
/// gone. The recording is then no longer [current](Recorded::current), and launching it is an error.
pub struct Recorded {
    graph: Box<dyn Graph>,
    memory: Arc<Memory>,
    given_back: u64,
}

impl Recorded {
    /// Whether no device memory was freed since the recording.
    pub fn current(&self) -> bool {
        self.memory.gate.given_back.load(Ordering::Relaxed) == self.given_back
    }

    /// Queues all of the work once more. Errors: the recording is not current; an error of the device.
    pub fn launch(&self) -> Result<()> {
        let _pass = self.memory.gate.pass_now("launching recorded work")?;
        if !self.current() {
            let given = "a recording from before memory was given back";
            return Err(Error::value("recorded work", "a current recording", given));
        }
        self.graph.launch()
    }
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recorded(current: {})", self.current())
    }
}

/// On an H100 a recording of a CG iteration costs the host 0.3 to 0.9 ms and a repetition gains 23 µs (64², 4
/// coils) to 5 µs (256², 12 coils): `benches/results/2026-11-21-h100/cg_graph.txt`.
pub(super) const MIN_REPETITIONS: usize = 100;

impl Cuda {
    /// The number of remaining repetitions from which a loop records its work and launches the recording.
    /// `usize::MAX` if
    /// loops must not record: `RAYSPIN_CUDA_GRAPHS=0` and `RAYSPIN_CUDA_WAIT=1` forbid it. Recording changes
    /// no result.
    pub fn graphs_from(&self) -> usize {
        self.graphs_from.load(Ordering::Relaxed)
    }

    /// Lets loops record work that they repeat three times or more, or forbids recording.
    pub fn allow_graphs(&self, yes: bool) {
        self.graphs_from.store(if yes && !self.wait { 3 } else { usize::MAX }, Ordering::Relaxed);
    }

    /// Checks that this thread does not record, before work of several calls that cannot be recorded. The
    /// work has then touched nothing and waited for no thread. Errors: this thread records.
    pub fn expect_not_recording(&self, what: &str) -> Result<()> {
        self.memory.gate.pass_now(what).map(drop)
    }

    /// Records the launches of `work` without doing them. `work` must not allocate or free memory, load
    /// programs, or copy from or to the host.
    ///
    /// Errors: errors of `work`; a call of `work` that cannot be recorded. The recording ends with the call
    /// in every case.
    pub fn record(&self, work: impl FnOnce() -> Result<()>) -> Result<Recorded> {
        match self.try_record(work)? {
            Recording::Ready(recorded) => Ok(recorded),
            Recording::Refused(error) => Err(error),
        }
    }

    /// [`Cuda::record`] that returns [`Recording::Refused`] for work that cannot be recorded.
    pub fn try_record(&self, work: impl FnOnce() -> Result<()>) -> Result<Recording> {
        let gate = &self.memory.gate;
        drop(gate.pass_now("recording")?);
        let turn = gate.turn.write().unwrap_or_else(PoisonError::into_inner);
        self.driver.begin_recording()?;
        gate.refused.store(false, Ordering::Relaxed);
        gate.recorder.store(this_thread(), Ordering::Relaxed);
        // The recording ends even after a panic.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        gate.recorder.store(0, Ordering::Relaxed);
        let ended = self.driver.end_recording();
        let refused = gate.refused.swap(false, Ordering::Relaxed);
        let given_back = gate.given_back.load(Ordering::Relaxed);
        let gone = self.memory.take_deferred();
        drop(turn);
        // A recording that names this memory is not kept.
        self.memory.give_back(&*self.driver, gone);
        let done = done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (done, ended) {
            (Err(error), Err(_)) => Err(error),
            (Ok(()), Err(error)) => Err(error),
            (Ok(()), Ok(Some(graph))) if !refused => {
                Ok(Recording::Ready(Recorded { graph, memory: self.memory.clone(), given_back }))
            }
            (Err(error), Ok(Some(_))) if !refused => Err(error),
            (Err(error), Ok(_)) => Ok(Recording::Refused(error)),
            (Ok(()), Ok(_)) => {
                let detail = "the work asks for what cannot be recorded".to_owned();
                Ok(Recording::Refused(Error::Device { what: "recording".to_owned(), detail }))
            }
        }
    }
}
