//! Whole numbers of the caller.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use rayspin::core::Error;

use crate::error::{described, raised};

/// A whole number of the caller, which True and False are not. Errors: a `TypeError` for anything else.
pub(crate) fn whole(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    if object.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(format!("expected a whole number, found {}", described(object))));
    }
    object.extract()
}

/// [`whole`], or None.
pub(crate) fn whole_or_none(object: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if object.is_none() { Ok(None) } else { whole(object).map(Some) }
}

/// A whole number from 0. Errors: a `ValueError` for a negative one.
pub(crate) fn count(what: &str, given: i64) -> PyResult<usize> {
    usize::try_from(given).map_err(|_| raised(Error::value(what, "a whole number from 0", given)))
}

/// The lengths of axes, numbers of axes and the like. Errors: a `ValueError` for a negative number.
pub(crate) fn counts(what: &str, given: Vec<i64>) -> PyResult<Vec<usize>> {
    let counts: Option<Vec<usize>> = given.iter().map(|&n| n.try_into().ok()).collect();
    counts.ok_or_else(|| raised(Error::value(what, "whole numbers from 0", format!("{given:?}"))))
}
