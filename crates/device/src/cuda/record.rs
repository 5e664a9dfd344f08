//! Recorded work: who may ask for what meanwhile, and how long a recording may be repeated.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use rayspin_core::{Error, Result};

use super::driver::Graph;
use super::{Cuda, Memory};

/// What every call to the driver passes. While one thread records, others wait: what they ask for is not part of the recording.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    turn: RwLock<()>,
    /// The thread that records, or 0.
    recorder: AtomicU64,
    /// Whether it asked for something that cannot be recorded.
    refused: AtomicBool,
    /// How often memory was given back so far.
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

    /// For one call whose work can be recorded. The pass is given back before the next call is made.
    pub(crate) fn pass(&self) -> Option<RwLockReadGuard<'_, ()>> {
        (!self.records()).then(|| self.turn.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// For one call that cannot be recorded. Errors: this thread records.
    pub(crate) fn pass_now(&self, what: &str) -> Result<Option<RwLockReadGuard<'_, ()>>> {
        if self.records() {
            self.refused.store(true, Ordering::Relaxed);
            let detail = "not possible while work is recorded".to_owned();
            return Err(Error::Device { what: what.to_owned(), detail });
        }
        Ok(self.pass())
    }

    /// Memory goes: what was recorded may name it.
    pub(crate) fn goes(&self) {
        self.given_back.fetch_add(1, Ordering::Relaxed);
        if self.records() {
            self.refused.store(true, Ordering::Relaxed);
        }
    }
}

impl Memory {
    /// Whether memory that goes now may be given back now. Where not, it is kept: recorded work may name it, or a copy that
    /// could not be waited for.
    pub(super) fn may_free(&self, address: u64, bytes: u64) -> bool {
        self.gate.goes();
        let may = !self.gate.records() && !self.kept.unsettled();
        if !may {
            self.kept.piece(address, bytes);
        }
        may
    }
}

/// What [`Cuda::try_record`] gives.
#[derive(Debug)]
pub enum Recording {
    /// All of the work.
    Ready(Recorded),
    /// The work asks for something that cannot be recorded, which the error names; nothing was done.
    Refused(Error),
}

/// Recorded work, to be done as often as it is launched.
///
/// It names arrays by their addresses. Where memory of the device was given back since, an array of the work's may be gone:
/// it is then no longer [current](Recorded::current), and refuses to be launched.
pub struct Recorded {
    graph: Box<dyn Graph>,
    memory: Arc<Memory>,
    given_back: u64,
}

impl Recorded {
    /// Whether no memory of the device was given back since.
    pub fn current(&self) -> bool {
        self.memory.gate.given_back.load(Ordering::Relaxed) == self.given_back
    }

    /// Asks for all of it once more. Errors: it is not current; an error of the device.
    pub fn launch(&self) -> Result<()> {
        let _pass = self.memory.gate.pass_now("launching recorded work")?;
        if !self.current() {
            let found = "a recording from before memory was given back";
            return Err(Error::value("recorded work", "a current recording", found));
        }
        self.graph.launch()
    }
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recorded(current: {})", self.current())
    }
}

/// On an H100 a recording of a CG iteration costs the host 0.3 to 0.9 ms and a repetition gains 23 µs (64², 4 coils) to 5 µs (256²,
/// 12 coils): `benches/results/2026-11-21-h100/cg_graph.txt`.
pub(super) const WORTH: usize = 100;

impl Cuda {
    /// Repetitions to come from which loops record their work and repeat the recording; `usize::MAX` where they may not:
    /// `RAYSPIN_CUDA_GRAPHS=0` and `RAYSPIN_CUDA_WAIT=1` forbid it. It changes no result.
    pub fn graphs_from(&self) -> usize {
        self.graphs_from.load(Ordering::Relaxed)
    }

    /// Lets loops record, from now on, whatever they repeat three times or more, or forbids it altogether.
    pub fn allow_graphs(&self, yes: bool) {
        self.graphs_from.store(if yes && !self.wait { 3 } else { usize::MAX }, Ordering::Relaxed);
    }

    /// For work of several calls that cannot be recorded, before it touches anything or waits for another thread. Errors: this
    /// thread records.
    pub fn expect_not_recording(&self, what: &str) -> Result<()> {
        self.memory.gate.pass_now(what).map(drop)
    }

    /// Records the launches of `work`, which are not done now. `work` may not allocate, give memory back, load programs, nor
    /// copy from or to the host.
    ///
    /// Errors: those of `work`, among them that it asked for what cannot be recorded. However it ends, nothing is being
    /// recorded afterwards.
    pub fn record(&self, work: impl FnOnce() -> Result<()>) -> Result<Recorded> {
        match self.try_record(work)? {
            Recording::Ready(recorded) => Ok(recorded),
            Recording::Refused(error) => Err(error),
        }
    }

    /// [`Cuda::record`], where work that cannot be recorded is no error.
    pub fn try_record(&self, work: impl FnOnce() -> Result<()>) -> Result<Recording> {
        let gate = &self.memory.gate;
        drop(gate.pass_now("recording")?);
        let turn = gate.turn.write().unwrap_or_else(PoisonError::into_inner);
        self.driver.begin_recording()?;
        gate.refused.store(false, Ordering::Relaxed);
        gate.recorder.store(this_thread(), Ordering::Relaxed);
        // Whatever happens, the recording ends.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        gate.recorder.store(0, Ordering::Relaxed);
        let ended = self.driver.end_recording();
        let refused = gate.refused.swap(false, Ordering::Relaxed);
        let given_back = gate.given_back.load(Ordering::Relaxed);
        let gone = self.memory.kept_so_far();
        drop(turn);
        // The recording that may name it is not kept.
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
