//! Work that releases the interpreter and may call functions of the caller's on the way.

use std::cell::RefCell;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayspin::core::{Error, Result, format_shape};
use rayspin::device::{Array, Backend};

use crate::error::raised;
use crate::exchange::{Given, Item, empty, expect_unmasked, to_numpy};
use crate::processor::{DeviceName, Processor};
use crate::signals::{Detached as _, Signals, is_closing};

thread_local! {
    /// The array that the call in this thread began with: functions of the caller's get arrays of its
    /// library.
    static LIKE: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
    /// The exception that a function of the caller's raised.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Releases the interpreter while `work`, which may call functions of the caller's, runs in this thread.
/// `like` is an array of the caller.
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

/// Calls `work` with the interpreter. Its exception becomes an error; [`run`] then raises the exception
/// itself.
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
            && let DeviceName::Cuda(_) = given.place
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
