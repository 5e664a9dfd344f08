//! How operators were made, so that pickles and copies make them again.

use std::sync::Arc;

use ndarray::IxDyn;
use numpy::PyUntypedArray;
use pyo3::exceptions::PyReferenceError;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::PyDict;
use rayspin::core::Error;
use rayspin::device::Array;

use super::LinearOperator;
use super::custom::Functions;
use crate::error::raised;
use crate::exchange::copied::doubles;
use crate::exchange::fingerprint;
use crate::exchange::{Item, to_numpy};
use crate::processor::Processor;
use crate::remade::{Parts, Remade, changed, own};

/// The operator's copy of an array, as an array of NumPy.
type Held = Box<dyn Fn(Python<'_>) -> PyResult<Py<PyAny>> + Send + Sync>;

/// The call that made an operator: the function's name and its arguments.
pub(crate) struct Made {
    maker: &'static str,
    /// Arguments by name: numbers, names, operators, and arrays of the caller's as they were given.
    arguments: Py<PyDict>,
    /// The fingerprints of these arrays.
    prints: Vec<(&'static str, u64)>,
    /// Arguments that the operator has copied anyway.
    held: Vec<(&'static str, Held)>,
    functions: Option<Py<Functions>>,
    /// Whether it, or an operator in it, calls functions of the caller's.
    calls: bool,
}

/// The functions of `rayspin.linop`, by their names in this module.
const MAKERS: [&str; 13] = [
    "identity",
    "fft",
    "nufft_operator",
    "nudft",
    "toeplitz",
    "sense",
    "diagonal",
    "mask",
    "differences",
    "wavelet",
    "stack",
    "block_diagonal",
    "custom",
];

impl Made {
    pub(crate) fn by(py: Python<'_>, maker: &'static str) -> Self {
        let arguments = PyDict::new(py).unbind();
        Self { maker, arguments, prints: Vec::new(), held: Vec::new(), functions: None, calls: false }
    }

    /// By a function that takes the device.
    pub(super) fn on(py: Python<'_>, maker: &'static str, processor: &Processor) -> PyResult<Self> {
        Self::by(py, maker).with(py, "device", processor.place.to_string())
    }

    pub(crate) fn with<'py>(
        self,
        py: Python<'py>,
        name: &str,
        value: impl IntoPyObject<'py>,
    ) -> PyResult<Self> {
        self.arguments.bind(py).set_item(name, value)?;
        Ok(self)
    }

    /// With an array of the caller's, and its values in double precision.
    pub(super) fn with_array(
        mut self,
        name: &'static str,
        array: &Bound<'_, PyAny>,
        values: &[f64],
    ) -> PyResult<Self> {
        self.prints.push((name, fingerprint(values.len(), |index| values[index])));
        self.with(array.py(), name, array)
    }

    /// With an array that the operator has.
    pub(super) fn holding<S: Item>(self, name: &'static str, array: &Arc<Array<S>>) -> Self {
        let array = array.clone();
        self.holding_of(name, move |py| Ok(to_numpy(py, array.to_host().map_err(raised)?).unbind()))
    }

    pub(super) fn holding_of(
        mut self,
        name: &'static str,
        array: impl Fn(Python<'_>) -> PyResult<Py<PyAny>> + Send + Sync + 'static,
    ) -> Self {
        self.held.push((name, Box::new(array)));
        self
    }

    /// A part of another operator.
    pub(super) fn of(self, name: &str, operator: &Bound<'_, LinearOperator>) -> PyResult<Self> {
        self.of_all([operator])?.with(operator.py(), name, operator)
    }

    /// A combination of the operators that an argument names.
    pub(super) fn of_all<'a, 'py: 'a>(
        mut self,
        operators: impl IntoIterator<Item = &'a Bound<'py, LinearOperator>>,
    ) -> PyResult<Self> {
        self.calls |= operators.into_iter().any(|one| one.get().made.calls);
        Ok(self)
    }

    pub(super) fn calling(self, functions: Py<Functions>) -> Self {
        Self { functions: Some(functions), calls: true, ..self }
    }

    pub(super) fn calls(&self) -> bool {
        self.calls
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.arguments)?;
        visit.call(&self.functions)
    }

    /// The arguments, with arrays as arrays of NumPy. Errors: an array of the caller's that has changed;
    /// functions that were freed.
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arguments = self.arguments.bind(py).copy()?;
        for &(name, print) in &self.prints {
            let Some(given) = arguments.get_item(name)? else { continue };
            let values = doubles::<IxDyn>(name, "of the array", &given)?;
            let values = values.as_standard_layout().into_owned();
            let numbers = values.as_slice().unwrap_or_default();
            if fingerprint(numbers.len(), |index| numbers[index]) != print {
                return Err(changed(name));
            }
            if !given.is_exact_instance_of::<PyUntypedArray>() {
                arguments.set_item(name, to_numpy(py, values))?;
            }
        }
        for (name, held) in &self.held {
            arguments.set_item(name, held(py)?)?;
        }
        if let Some(functions) = &self.functions {
            let freed = || PyReferenceError::new_err("the operator's functions were freed");
            let [forward, adjoint] = functions.bind(py).borrow().functions(py).ok_or_else(freed)?;
            arguments.set_item("forward", forward)?;
            arguments.set_item("adjoint", adjoint)?;
        }
        Ok(arguments)
    }
}

impl Remade for LinearOperator {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, made) = (object.py(), &object.get().made);
        let parts = PyDict::new(py);
        parts.set_item("maker", made.maker)?;
        parts.set_item("arguments", made.arguments(py)?)?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (py, maker) = (parts.python(), parts.get::<String>("maker")?);
        let arguments = parts.within("arguments")?;
        let operator = |name: &str| arguments.get::<Bound<'py, Self>>(name);
        let made = match &maker[..] {
            "product" => Self::after(&operator("outer")?, &operator("inner")?)?,
            "multiple" => Self::scaled(&operator("operator")?, arguments.get("factor")?)?,
            "sum" => Self::plus(&operator("first")?, arguments.get("factor")?, &operator("second")?)?,
            "adjoint" => Self::adjoint(&operator("operator")?)?,
            "normal" => Self::normal(&operator("operator")?)?,
            "projector" => {
                return own(py, "CtProjector")?.call((), Some(arguments.dict()))?.getattr("operator");
            }
            name if MAKERS.contains(&name) => return own(py, name)?.call((), Some(arguments.dict())),
            _ => {
                let expected = format!("{} or an operation", MAKERS.join(", "));
                return Err(raised(Error::value("maker", expected, maker)));
            }
        };
        Ok(Bound::new(py, made)?.into_any())
    }
}
