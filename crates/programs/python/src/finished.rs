//! Parts of plans and results that MRI and CT share.

use ndarray::ArrayD;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::run::{Certificate, Plan, Stage};

use crate::error::raised;
use crate::exchange::{Given, Item, on_host};
use crate::words::Call;

/// A plan as a dictionary.
pub(crate) fn plan_of<'py>(
    py: Python<'py>,
    words: Call,
    method: &str,
    (plan, cut): (&Plan, String),
    notes: &[String],
) -> PyResult<Bound<'py, PyDict>> {
    let stage = |stage: &Stage| {
        let of = PyDict::new(py);
        of.set_item("name", &stage.name)?;
        of.set_item("memory", plan.process + stage.bytes)?;
        of.set_item("gpu_memory", stage.gpu_bytes)?;
        of.set_item("transforms", stage.effort.transforms)?;
        of.set_item("iterations", stage.effort.iterations)?;
        of.set_item("flops", stage.effort.flops)?;
        of.set_item("traffic", stage.effort.traffic)?;
        Ok(of)
    };
    let stages: Vec<_> = plan.budget.stages.iter().map(stage).collect::<PyResult<_>>()?;
    let of = PyDict::new(py);
    of.set_item("method", method)?;
    of.set_item("cut", cut)?;
    of.set_item("memory", plan.peak())?;
    of.set_item("gpu_memory", plan.budget.gpu_peak())?;
    of.set_item("stages", stages)?;
    of.set_item("notes", notes.iter().map(|note| words.told(note)).collect::<Vec<_>>())?;
    Ok(of)
}

/// What was measured of transforms, each as a dictionary. `notes` say which missed their tolerance.
pub(crate) fn certificates_of<K>(
    py: Python<'_>,
    all: &[Certificate<K>],
    name: impl Fn(&Certificate<K>) -> String,
    notes: &mut Vec<String>,
) -> PyResult<Vec<Py<PyDict>>> {
    let one = |one: &Certificate<K>| {
        let of = PyDict::new(py);
        of.set_item("transform", name(one))?;
        of.set_item("outputs", one.outputs)?;
        of.set_item("error", one.error)?;
        of.set_item("largest", one.largest)?;
        of.set_item("tolerance", one.tolerance)?;
        of.set_item("met", one.met())?;
        Ok(of.unbind())
    };
    for missed in all.iter().filter(|one| !one.met()) {
        let (name, error, tolerance) = (name(missed), missed.error, missed.tolerance);
        notes.push(format!(
            "warning: {name}: relative error {error:.2e} above the tolerance of {tolerance:.0e}"
        ));
    }
    all.iter().map(one).collect()
}

pub(crate) fn host_array<T: Item>(what: &'static str, array: &Bound<'_, PyAny>) -> PyResult<ArrayD<T>> {
    on_host::<T>(Given::new(what, array)?)?.into_host().map_err(raised)
}
