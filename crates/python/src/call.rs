//! Work that releases the interpreter and may call functions of the caller's on the way.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayspin::core::{Error, Result, format_shape};
use rayspin::device::cpu::listening;
use rayspin::device::{Array, Backend};

use crate::error::raised;
use crate::exchange::{Given, Item, empty, expect_unmasked, to_numpy};
use crate::processor::{Place, Processor};

thread_local! {
    /// The array that the call in this thread began with: functions of the caller's get arrays of its library.
    static LIKE: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
    /// The exception that a function of the caller's raised.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Whether the interpreter is about to end.
static CLOSING: AtomicBool = AtomicBool::new(false);
/// The thread that ends the interpreter.
static LAST: OnceLock<ThreadId> = OnceLock::new();
/// Calls that have released the interpreter, and the process that they are in: a forked process has none of its parent's.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The end of a call before its time: where Python has a signal (Ctrl-C), a function of the caller's raises, or the interpreter ends.
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
    /// Releases the interpreter while `work` runs in this thread. While other threads compute for it, this one handles Python's signals.
    ///
    /// Errors: what the handler of a signal raised, such as `KeyboardInterrupt`.
    fn detached<T: Send>(self, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        self.detached_for(&Signals::default(), work)
    }

    /// [`detached`](Self::detached) for signals that others hear of too.
    ///
    /// A thread that comes back to an interpreter that has ended dies within the code that called Python, so [`finish`] waits for all, and
    /// a thread that comes later stays here for good.
    fn detached_for<T: Send>(self, signals: &Signals, work: impl FnOnce() -> T + Send) -> PyResult<T>;
}

impl Detached for Python<'_> {
    fn detached_for<T: Send>(self, signals: &Signals, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        if is_closing() && LAST.get() != Some(&std::thread::current().id()) {
            self.detach(|| {
                loop {
                    std::thread::park();
                }
            })
        }
        let counted = count_run();
        let done = self.detach(|| {
            let heard = signals.clone();
            listening(&signals.stop, move || heard.attend(|py| py.check_signals()), work)
        });
        drop(counted);
        signals.raised().map_or(Ok(done), Err)
    }
}

/// One of [`RUNNING`].
pub(crate) struct Counted;

/// Counts a run, for whose end the interpreter waits. The caller holds the interpreter, so that no other thread counts at the same time.
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

/// How long the end of the interpreter waits for runs of other threads. Runs with steps stop at their next step.
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

/// Releases the interpreter while `work`, which may call functions of the caller's, runs in this thread. `like` is an array of the caller.
///
/// Errors: what a signal or a function raised, and the exceptions of errors.
pub(crate) fn run<T: Send>(
    like: &Bound<'_, PyAny>,
    signals: &Signals,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    let before = LIKE.replace(Some(like.clone().unbind()));
    let done = run_without(like.py(), signals, work);
    LIKE.set(before);
    done
}

/// [`run`] where the caller has no array.
pub(crate) fn run_without<T: Send>(
    py: Python<'_>,
    signals: &Signals,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    let done = py.detached_for(signals, work);
    let of_function = RAISED.take();
    done?.map_err(|error| of_function.unwrap_or_else(|| raised(error)))
}

/// Calls `work` with the interpreter. Its exception becomes an error; [`run`] then raises the exception itself.
pub(crate) fn attached<T>(what: &str, work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
    if is_closing() {
        return Err(Error::Interrupted);
    }
    let done = Python::try_attach(|py| {
        work(py).map_err(|error| {
            let detail = error.to_string();
            RAISED.set(Some(error));
            Error::Numerical { what: what.to_owned(), detail }
        })
    });
    // The interpreter is shutting down.
    done.unwrap_or(Err(Error::Interrupted))
}

/// A copy of an array for a function of the caller's.
pub(crate) fn shown<'py, S: Item>(py: Python<'py>, x: &Array<S>) -> PyResult<Bound<'py, PyAny>> {
    if let Backend::Cuda(_) = x.device().backend() {
        let like = LIKE.with_borrow(|like| like.as_ref().map(|like| like.bind(py).clone()));
        if let Some(like) = like
            && let given = Given::new("x", &like)?
            && let Place::Cuda(_) = given.place
        {
            let copy = empty(&like, x.shape(), S::DTYPE)?;
            let processor = Processor::at(given.place)?;
            let mut target = Given::new("x", &copy)?.read::<S>(&processor)?;
            target.copy_from(x).map_err(raised)?;
            return Ok(copy);
        }
    }
    Ok(to_numpy(py, x.to_host().map_err(raised)?))
}

/// Copies what a function of the caller's returned. Errors: another shape or element type.
pub(crate) fn taken<S: Item>(
    result: &Bound<'_, PyAny>,
    processor: &Processor,
    to: &mut Array<S>,
) -> PyResult<()> {
    expect_unmasked("result of a function", result)?;
    let result = match result.hasattr("__dlpack_device__")? && !result.hasattr("__array_interface__")? {
        true => result.clone(),
        false => result.py().import("numpy")?.call_method1("ascontiguousarray", (result,))?,
    };
    let given = Given::new("result of a function", &result)?;
    if given.shape != to.shape() {
        let (expected, found) = (format_shape(to.shape()), format_shape(&given.shape));
        return Err(PyValueError::new_err(format!(
            "result of a function: expected shape {expected}, found {found}"
        )));
    }
    to.copy_from(&given.read::<S>(processor)?).map_err(raised)
}
