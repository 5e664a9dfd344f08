//! Errors of the library as exceptions.

use pyo3::PyErr;
use pyo3::exceptions::{
    PyArithmeticError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyTypeError,
    PyValueError,
};
use rayspin::core::Error;

/// The exception for an error: wrong input is a `ValueError`, no memory a `MemoryError`, a breakdown of the numbers an
/// `ArithmeticError`, a device that fails a `RuntimeError`.
pub(crate) fn raised(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Memory { .. } => PyMemoryError::new_err(text),
        Error::Numerical { .. } => PyArithmeticError::new_err(text),
        Error::Device { .. } => PyRuntimeError::new_err(text),
        Error::Interrupted => PyKeyboardInterrupt::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// The exception for an error of a file: an `OSError` where the system refused, else as [`raised`].
pub(crate) fn of_file(error: &rayspin::io::Error) -> PyErr {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if inner.downcast_ref::<std::io::Error>().is_some() {
            return PyOSError::new_err(error.to_string());
        }
        cause = inner.source();
    }
    PyValueError::new_err(error.to_string())
}

/// A `TypeError` that names the argument, what it should be and what it is.
pub(crate) fn wrong_type(
    what: &str,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> PyErr {
    PyTypeError::new_err(format!("{what}: expected {expected}, found {found}"))
}
