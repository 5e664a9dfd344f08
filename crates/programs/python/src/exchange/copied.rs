//! Arrays and numbers of the caller that a call copies: any numeric array of NumPy or list, and arrays of
//! other libraries.

use ndarray::{ArrayD, Dimension, IxDyn};
use num_complex::Complex;
use numpy::{PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use rayspin::core::{Error, Real, format_shape};

use super::{Dtype, Given, Item, expect_unmasked, on_host};
use crate::error::{described, raised, wrong_type};
pub(crate) use crate::whole::{count, counts, whole, whole_or_none};

/// Real or complex numbers of any array.
pub(crate) enum Numbers {
    Single(ArrayD<f32>),
    Double(ArrayD<f64>),
    Complex(ArrayD<Complex<f64>>),
}

impl Numbers {
    /// The numbers of an array. Whole numbers and booleans become double precision.
    ///
    /// Errors: a `TypeError` for what is no array of numbers.
    pub(crate) fn of(what: &'static str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let numpy = object.py().import("numpy")?;
        let is_numpy = object.is_instance(&numpy.getattr("ndarray")?)?;
        if !is_numpy && object.hasattr("__dlpack__")? {
            let given = Given::new(what, object)?;
            return Ok(match given.dtype {
                Dtype::F32 => Self::Single(host(given)?),
                Dtype::F64 => Self::Double(host(given)?),
                Dtype::C64 => {
                    let values = host::<Complex<f32>>(given)?;
                    Self::Complex(values.mapv(|value| Complex::new(value.re.into(), value.im.into())))
                }
                Dtype::C128 => Self::Complex(host(given)?),
            });
        }
        let array = asarray(what, object)?;
        let dtype = array.getattr("dtype")?;
        let kind: String = dtype.getattr("kind")?.extract()?;
        let bytes: usize = dtype.getattr("itemsize")?.extract()?;
        match (&kind[..], bytes) {
            ("f", ..=4) => Ok(Self::Single(copied(&array, "float32")?)),
            ("f" | "i" | "u" | "b", _) => Ok(Self::Double(copied(&array, "float64")?)),
            ("c", _) => Ok(Self::Complex(copied(&array, "complex128")?)),
            _ => Err(wrong_type(what, "an array of numbers", format!("one of {dtype}"))),
        }
    }
}

/// An array or list as an array of NumPy. Errors: NumPy's. A `ValueError` (a list whose rows differ in
/// length) and a `TypeError` name the argument.
pub(crate) fn asarray<'py>(what: &str, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    expect_unmasked(what, object)?;
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        object.try_iter()?.try_for_each(|part| expect_unmasked(what, &part?))?;
    }
    let made = object.py().import("numpy")?.call_method1("asarray", (object,));
    made.map_err(|error| {
        let py = object.py();
        let text = format!("{what}: expected an array of numbers: {}", error.value(py));
        if error.is_instance_of::<PyValueError>(py) {
            PyValueError::new_err(text)
        } else if error.is_instance_of::<PyTypeError>(py) {
            PyTypeError::new_err(text)
        } else {
            error
        }
    })
}

/// Complex numbers of a precision, of any array of numbers and any memory order. An array of other numbers is
/// converted: what is copied anyway may as well be.
///
/// Errors: a `TypeError` for what is no array of numbers.
pub(crate) fn complex<R: Real>(what: &'static str, object: &Bound<'_, PyAny>) -> PyResult<ArrayD<Complex<R>>>
where
    Complex<R>: Item,
{
    expect_unmasked(what, object)?;
    let numpy = object.py().import("numpy")?;
    let is_numpy = object.is_instance(&numpy.getattr("ndarray")?)?;
    let dtype = if is_numpy { object.getattr("dtype")?.to_string() } else { String::new() };
    if dtype == <Complex<R> as Item>::DTYPE.name() {
        let array = numpy.call_method1("ascontiguousarray", (object,))?;
        return host(Given::new(what, &array)?);
    }
    if !is_numpy && object.hasattr("__dlpack__")? {
        let given = Given::new(what, object)?;
        if given.dtype == <Complex<R> as Item>::DTYPE {
            return host(given);
        }
    }
    let complex = |re: f64, im: f64| Complex::new(<R as Real>::from_f64(re), <R as Real>::from_f64(im));
    Ok(match Numbers::of(what, object)? {
        Numbers::Single(values) => values.mapv(|value| complex(value.into(), 0.0)),
        Numbers::Double(values) => values.mapv(|value| complex(value, 0.0)),
        Numbers::Complex(values) => values.mapv(|value| complex(value.re, value.im)),
    })
}

fn host<T: Item>(given: Given<'_>) -> PyResult<ArrayD<T>> {
    on_host::<T>(given)?.into_host().map_err(raised)
}

fn copied<T: Item>(array: &Bound<'_, PyAny>, dtype: &str) -> PyResult<ArrayD<T>> {
    let array = array.call_method1("astype", (dtype,))?;
    let array = array.cast::<PyArrayDyn<T>>().map_err(|error| PyTypeError::new_err(error.to_string()))?;
    Ok(array.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))?.as_array().to_owned())
}

/// Real numbers in single precision, with the axes that `D` has.
///
/// Errors: a `TypeError` for complex numbers and what is no array; a `ValueError` for another number of axes.
pub(crate) fn singles<D: Dimension>(
    what: &'static str,
    axes: &str,
    object: &Bound<'_, PyAny>,
) -> PyResult<ndarray::Array<f32, D>> {
    let values = match Numbers::of(what, object)? {
        Numbers::Single(values) => values,
        Numbers::Double(values) => values.mapv(|value| value as f32),
        _ => {
            return Err(wrong_type(what, "real numbers", "complex ones; take .real, or numpy.abs() of them"));
        }
    };
    with_axes(what, axes, values)
}

/// Real numbers in double precision, with the axes that `D` has. Errors: as [`singles`].
pub(crate) fn doubles<D: Dimension>(
    what: &'static str,
    axes: &str,
    object: &Bound<'_, PyAny>,
) -> PyResult<ndarray::Array<f64, D>> {
    let values = match Numbers::of(what, object)? {
        Numbers::Single(values) => values.mapv(f64::from),
        Numbers::Double(values) => values,
        _ => {
            return Err(wrong_type(what, "real numbers", "complex ones; take .real, or numpy.abs() of them"));
        }
    };
    with_axes(what, axes, values)
}

pub(crate) fn with_axes<T, D: Dimension>(
    what: &str,
    axes: &str,
    values: ndarray::Array<T, IxDyn>,
) -> PyResult<ndarray::Array<T, D>> {
    let found = format_shape(values.shape());
    let text = || PyValueError::new_err(format!("{what}: expected the axes {axes}, found shape {found}"));
    values.into_dimensionality().map_err(|_| text())
}

/// The shape of an array. Errors: a `ValueError` for an axis of length 0 or less, or no axis.
pub(crate) fn shape(what: &str, given: Vec<i64>) -> PyResult<Vec<usize>> {
    let lengths: Option<Vec<usize>> = given.iter().map(|&n| n.try_into().ok().filter(|&n| n > 0)).collect();
    let wrong =
        || raised(Error::value(what, "the lengths of the axes, each 1 or more", format!("{given:?}")));
    lengths.filter(|lengths| !lengths.is_empty()).ok_or_else(wrong)
}

/// `N` numbers: of a sequence, or one number for all of them. Errors: a `TypeError` for anything else.
pub(crate) fn several<'py, T, const N: usize>(
    what: &str,
    expected: &str,
    object: &Bound<'py, PyAny>,
) -> PyResult<[T; N]>
where
    T: Copy + for<'a> FromPyObject<'a, 'py>,
{
    if let Ok(one) = object.extract::<T>() {
        return Ok([one; N]);
    }
    exactly(what, expected, object)
}

/// `N` lengths of axes of a sequence. Errors: a `TypeError` for anything else; as [`shape`].
pub(crate) fn lengths<const N: usize>(
    what: &str,
    expected: &str,
    object: &Bound<'_, PyAny>,
) -> PyResult<[usize; N]> {
    let given: [i64; N] = exactly(what, expected, object)?;
    let lengths = shape(what, given.to_vec())?;
    lengths.try_into().map_err(|_| wrong_type(what, expected, described(object)))
}

/// `N` numbers of a sequence. Errors: a `TypeError` for anything else.
pub(crate) fn exactly<'py, T, const N: usize>(
    what: &str,
    expected: &str,
    object: &Bound<'py, PyAny>,
) -> PyResult<[T; N]>
where
    T: Copy + for<'a> FromPyObject<'a, 'py>,
{
    let wrong = || wrong_type(what, expected, described(object));
    let values: Vec<T> = object.extract().map_err(|_| wrong())?;
    values.try_into().map_err(|_| wrong())
}
