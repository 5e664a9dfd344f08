//! What is refused of arrays of the caller's, with what to do.

use numpy::PyUntypedArray;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::wrong_type;
use crate::processor::DeviceName;

/// Errors: a `ValueError` for an array of numpy.ma with masked values, which have no numbers; a `TypeError`
/// for an array of NumPy with a unit, which the numbers alone have not.
pub(crate) fn expect_unmasked(what: &str, array: &Bound<'_, PyAny>) -> PyResult<()> {
    if array.is_exact_instance_of::<PyUntypedArray>() || !array.is_instance_of::<PyUntypedArray>() {
        return Ok(());
    }
    let masked = array.py().import("numpy")?.getattr("ma")?;
    if masked.call_method1("is_masked", (array,))?.extract::<bool>()? {
        let count: usize = masked.call_method1("count_masked", (array,))?.extract()?;
        return Err(PyValueError::new_err(format!(
            "{what}: expected numbers everywhere, found {count} that are masked; {what}.filled(value) puts a number in their place"
        )));
    }
    match array.getattr_opt("unit")? {
        Some(unit) if !unit.is_none() => {
            let found = format!("an array in {unit}; {what}.to_value(unit) gives its numbers in a unit");
            Err(wrong_type(what, "numbers without a unit", found))
        }
        _ => Ok(()),
    }
}

pub(super) fn unknown(what: &str, dtype: impl std::fmt::Display) -> PyErr {
    let found = format!("{dtype}; .astype() converts an array (torch: .to())");
    wrong_type(what, "float32, float64, complex64 or complex128", found)
}

/// Errors: a `TypeError` for a tensor of torch that DLPack does not export, with what to do.
pub(super) fn expect_plain(what: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    let is = |name: &Bound<'_, PyString>| -> PyResult<bool> {
        match object.getattr_opt(name)? {
            Some(flag) if flag.is_callable() => flag.call0()?.extract(),
            Some(flag) => flag.extract(),
            None => Ok(false),
        }
    };
    let (found, remedy) = if is(intern!(py, "requires_grad"))? {
        let remedy = "calls of operators and plans record no gradients: rayspin.torch has functions that do, such as \
                      rayspin.torch.apply(A, x)";
        ("a tensor that requires a gradient", format!("{remedy}; without gradients, pass {what}.detach()"))
    } else if is(intern!(py, "is_conj"))? {
        ("a tensor whose conjugate is not computed yet", format!("pass {what}.resolve_conj()"))
    } else if is(intern!(py, "is_neg"))? {
        ("a tensor whose negative is not computed yet", format!("pass {what}.resolve_neg()"))
    } else {
        return Ok(());
    };
    Err(wrong_type(what, "plain numbers", format!("{found}; {remedy}")))
}

pub(super) fn strided(what: &str) -> PyErr {
    let text = format!(
        "{what}: expected elements in C order without gaps, found another order; numpy.ascontiguousarray({what}) (torch: \
         {what}.contiguous()) makes a copy"
    );
    PyValueError::new_err(text)
}

pub(super) fn elsewhere(what: &str, found: DeviceName, expected: DeviceName) -> PyErr {
    let text = format!(
        "{what}: expected an array on {expected}, found one on {found}; make the plan or operator with device='{found}', or move the array"
    );
    PyTypeError::new_err(text)
}
