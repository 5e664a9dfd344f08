//! Errors of the library as exceptions, in the words of Python.

use std::path::Path;

use pyo3::exceptions::{
    PyArithmeticError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyTypeError,
    PyValueError,
};
use pyo3::prelude::*;
use rayspin::core::Error;
use rayspin_cli::in_memory;

use crate::words::Call;

/// The exception for an error: wrong input is a `ValueError`, no memory a `MemoryError`, a breakdown of the
/// numbers an `ArithmeticError`, a device that fails a `RuntimeError`.
pub(crate) fn raised(error: Error) -> PyErr {
    raised_in(Call::Any, error)
}

/// [`raised`] for an argument that the library calls otherwise.
pub(crate) fn raised_of(argument: &str, mut error: Error) -> PyErr {
    if let Error::Value { what, .. } | Error::Shape { what, .. } | Error::NotFinite { what, .. } = &mut error
    {
        argument.clone_into(what);
    }
    raised(error)
}

/// [`raised`] in the words of a call.
pub(crate) fn raised_in(call: Call, error: Error) -> PyErr {
    let (error, text) = told(call, error);
    of_kind(&error, text)
}

/// The error with the call's names of arguments, and its text in the words of the call.
fn told(call: Call, mut error: Error) -> (Error, String) {
    if let Error::Value { what, .. } | Error::Shape { what, .. } | Error::NotFinite { what, .. } = &mut error
        && let Some(argument) = call.argument(what)
    {
        argument.clone_into(what);
    }
    let text = call.told(&error.to_string());
    (error, text)
}

/// What to do about an error, where the call has keywords for all of it, and unless the error says it by
/// naming the keyword.
fn remedy(call: Call, error: &Error) -> Option<String> {
    let of_error = |what: &str| call.argument(what).unwrap_or(what).replace(' ', "_");
    let remedy = call.told_whole(&in_memory::hint(error)?)?;
    let named = match error {
        Error::Value { what, .. } | Error::Shape { what, .. } | Error::NotFinite { what, .. } => {
            of_error(what)
        }
        _ => String::new(),
    };
    (remedy != format!("{named}= sets this")).then_some(remedy)
}

fn told_input(call: Call, bad: &rayspin::run::BadInput) -> String {
    with_hint(call.told(&bad.to_string()), bad.remedy().and_then(|remedy| call.told_whole(remedy)))
}

/// The exception for an error of a run, in the words of a call.
pub(crate) fn of_run(call: Call, error: rayspin::job::Error) -> PyErr {
    use rayspin::job::Error as E;
    match error {
        E::Core(error) => {
            let remedy = remedy(call, &error);
            let (error, text) = told(call, error);
            of_kind(&error, with_hint(text, remedy))
        }
        E::File(error) => of_file(call, &error),
        E::Input(bad) => PyValueError::new_err(told_input(call, &bad)),
        E::Gpu(bad) => PyMemoryError::new_err(told_input(call, &bad)),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

/// The exception for this kind of error, with another text.
pub(crate) fn of_kind(error: &Error, text: String) -> PyErr {
    match error {
        Error::Memory { .. } => PyMemoryError::new_err(text),
        Error::Numerical { .. } => PyArithmeticError::new_err(text),
        Error::Device { .. } => PyRuntimeError::new_err(text),
        Error::Interrupted => PyKeyboardInterrupt::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// The exception for an error of a file in the words of a call, with a word on what to do. Where the system
/// refused, and for a folder that is no scan, it is the `OSError` that `open` raises (`FileNotFoundError`,
/// `IsADirectoryError`, `PermissionError`), else as [`raised`].
pub(crate) fn of_file(call: Call, error: &rayspin::io::Error) -> PyErr {
    let of_core = || match error {
        rayspin::io::Error::Core { source, .. } => remedy(call, source),
        _ => None,
    };
    let hint = error.hint().map(|hint| call.told(&hint)).or_else(of_core);
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(system) = inner.downcast_ref::<std::io::Error>() {
            return of_system(system, error, hint);
        }
        cause = inner.source();
    }
    // A path may look like an option.
    let path = error.path().display().to_string();
    let whole = error.to_string();
    let told = match (path.is_empty(), whole.split_once(&path)) {
        (false, Some((before, after))) => format!("{}{path}{}", call.told(before), call.told(after)),
        _ => call.told(&whole),
    };
    let text = with_hint(told, hint);
    match error {
        rayspin::io::Error::Core { source, .. } => of_kind(source, text),
        _ if error.path().is_dir() => of_number(EISDIR, error.path(), text),
        _ => PyValueError::new_err(text),
    }
}

fn with_hint(text: String, hint: Option<String>) -> String {
    hint.iter().fold(text, |text, hint| format!("{text}; {hint}"))
}

const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const ENOTDIR: i32 = 20;
const EISDIR: i32 = 21;
const ENOSPC: i32 = 28;

fn of_system(system: &std::io::Error, error: &rayspin::io::Error, hint: Option<String>) -> PyErr {
    use std::io::ErrorKind as Kind;
    // Errors that a library made anew have a kind and no number.
    let number = system.raw_os_error().or(match system.kind() {
        Kind::NotFound => Some(ENOENT),
        Kind::PermissionDenied => Some(EACCES),
        Kind::NotADirectory => Some(ENOTDIR),
        Kind::IsADirectory => Some(EISDIR),
        Kind::StorageFull => Some(ENOSPC),
        _ => None,
    });
    let Some(number) = number else { return PyOSError::new_err(with_hint(error.to_string(), hint)) };
    let text = std::io::Error::from_raw_os_error(number).to_string();
    let text = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text);
    of_number(number, error.path(), with_hint(text.to_owned(), hint))
}

/// The `OSError` of the system's number: Python finds its type.
fn of_number(number: i32, path: &Path, text: String) -> PyErr {
    PyOSError::new_err((number, text, path.display().to_string()))
}

/// A `TypeError` that names the argument, what it should be and what it is.
pub(crate) fn wrong_type(
    what: &str,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> PyErr {
    PyTypeError::new_err(format!("{what}: expected {expected}, found {found}"))
}

/// What errors say about a value that is no array: its type, and a short value itself.
pub(crate) fn described(value: &Bound<'_, PyAny>) -> String {
    let kind =
        value.get_type().qualname().map_or_else(|_| "another object".to_owned(), |name| name.to_string());
    match value.repr() {
        Ok(text) if text.to_string().len() <= 60 => format!("{kind} {text}"),
        _ => kind,
    }
}

/// The nearest of the names to one that is none of them, as the end of a message; empty where none is near.
pub(crate) fn did_you_mean(py: Python<'_>, name: &str, names: &[String]) -> PyResult<String> {
    let near = py.import("difflib")?.call_method1("get_close_matches", (name, names, 1))?;
    let near: Vec<String> = near.extract()?;
    Ok(near.first().map_or_else(String::new, |near| format!("; did you mean {near}?")))
}
