//! Angles that look like degrees.

use std::ffi::CString;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use rayspin::ct::scan::turns_of_degrees;

/// Warns where angles in radian look like degrees. The largest less the smallest are the turns.
pub(crate) fn warn_of_degrees(py: Python<'_>, what: &str, angles: &[f64]) -> PyResult<()> {
    let Some(turns) = turns_of_degrees(angles) else { return Ok(()) };
    let text = format!(
        "{what}: {turns:.1} turns, as degrees that are taken to be radian make; numpy.radians({what}) makes radian of degrees"
    );
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text)?, 1)
}
