//! Work that releases the interpreter, and its end before its time.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rayspin::device::cpu::listening;

/// Whether the interpreter is about to end.
static CLOSING: AtomicBool = AtomicBool::new(false);
/// The thread that ends the interpreter.
static LAST: OnceLock<ThreadId> = OnceLock::new();
/// Calls that have released the interpreter, and the process that they are in: a forked process has none of
/// its parent's.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The end of a call before its time: where Python has a signal (Ctrl-C), a function of the caller's raises,
///     or the interpreter ends.
#[derive(Clone, Default)]
pub(crate) struct Signals {
    stop: Arc<AtomicBool>,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Signals {
    /// True where the call is to end.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Does `work` with the interpreter. Its exception ends the call.
    pub(crate) fn attend(&self, work: impl FnOnce(Python<'_>) -> PyResult<()>) {
        let raised = if is_closing() { None } else { Python::try_attach(work) };
        match raised {
            Some(Ok(())) => return,
            Some(Err(error)) => {
                self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
            // The interpreter is shutting down.
            None => {}
        }
        self.stop.store(true, Ordering::Relaxed);
    }

    fn raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Releases the interpreter.
pub(crate) trait Detached: Sized {
    /// Releases the interpreter while `work` runs in this thread. While other threads compute for it, this
    /// one handles Python's signals.
    ///
    /// Errors: what the handler of a signal raised, such as `KeyboardInterrupt`.
    fn detached<T: Send>(self, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        self.detached_for(&Signals::default(), work)
    }

    /// [`detached`](Self::detached) for signals that others hear of too.
    ///
    /// A thread that comes back to an interpreter that has ended dies within the code that called Python, so
    /// [`finish`] waits for all. A thread that comes later stays here for good. So does one whose work ends
    /// while the interpreter does: it would print an exception while the interpreter closes stderr, which
    /// aborts the process.
    fn detached_for<T: Send>(self, signals: &Signals, work: impl FnOnce() -> T + Send) -> PyResult<T>;
}

impl Detached for Python<'_> {
    fn detached_for<T: Send>(self, signals: &Signals, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        if is_too_late() {
            self.detach(|| stay())
        }
        let counted = count_run();
        let (done, counted) = self.detach(move || {
            let heard = signals.clone();
            let done = listening(&signals.stop, move || heard.attend(|py| py.check_signals()), work);
            if is_too_late() {
                drop(counted);
                stay();
            }
            (done, counted)
        });
        drop(counted);
        signals.raised().map_or(Ok(done), Err)
    }
}

/// One of [`RUNNING`].
pub(crate) struct Counted;

/// Counts a run, for whose end the interpreter waits. The caller holds the interpreter, so that no other
/// thread counts at the same time.
pub(crate) fn count_run() -> Counted {
    let process = std::process::id();
    if PROCESS.swap(process, Ordering::SeqCst) != process {
        RUNNING.store(0, Ordering::SeqCst);
    }
    RUNNING.fetch_add(1, Ordering::SeqCst);
    Counted
}

impl Drop for Counted {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether runs are to stop, because the interpreter is about to end.
pub(crate) fn is_closing() -> bool {
    CLOSING.load(Ordering::SeqCst)
}

/// Whether the interpreter is about to end, by another thread.
fn is_too_late() -> bool {
    is_closing() && LAST.get() != Some(&std::thread::current().id())
}

/// Keeps this thread until the process ends.
fn stay() -> ! {
    loop {
        std::thread::park();
    }
}

/// How long the end of the interpreter waits for runs of other threads. Runs with steps stop at their next
/// step.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until no thread is within a call: what the interpreter does before it ends.
#[pyfunction]
pub(crate) fn finish(py: Python<'_>) {
    let _ = LAST.set(std::thread::current().id());
    CLOSING.store(true, Ordering::SeqCst);
    let end = Instant::now() + PATIENCE;
    let own = PROCESS.load(Ordering::SeqCst) == std::process::id();
    while own && RUNNING.load(Ordering::SeqCst) > 0 && Instant::now() < end {
        py.detach(|| std::thread::sleep(Duration::from_millis(1)));
    }
}
