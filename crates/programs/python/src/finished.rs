//! Parts of plans and results that MRI and CT share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ndarray::ArrayD;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rayspin::core::Error;
use rayspin::io::{DicomTemplate, Format, Origin, endings};
use rayspin::run::{Certificate, Plan, Stage};

use crate::error::{of_file, raised};
use crate::exchange::{Given, Item, on_host};
use crate::words::Call;

/// A plan as a dictionary.
pub(crate) fn plan_of<'py>(
    py: Python<'py>,
    words: Call,
    method: &str,
    plan: &Plan,
    cut: String,
    notes: &[String],
) -> PyResult<Bound<'py, PyDict>> {
    let stage = |stage: &Stage| {
        let fields = PyDict::new(py);
        fields.set_item("name", &stage.name)?;
        fields.set_item("memory", plan.process + stage.bytes)?;
        fields.set_item("gpu_memory", stage.gpu_bytes)?;
        fields.set_item("transforms", stage.effort.transforms)?;
        fields.set_item("iterations", stage.effort.iterations)?;
        fields.set_item("flops", stage.effort.flops)?;
        fields.set_item("traffic", stage.effort.traffic)?;
        Ok(fields)
    };
    let stages: Vec<_> = plan.budget.stages.iter().map(stage).collect::<PyResult<_>>()?;
    let fields = PyDict::new(py);
    fields.set_item("method", method)?;
    fields.set_item("cut", cut)?;
    fields.set_item("memory", plan.peak())?;
    fields.set_item("gpu_memory", plan.budget.gpu_peak())?;
    fields.set_item("stages", stages)?;
    fields.set_item("notes", notes.iter().map(|note| words.told(note)).collect::<Vec<_>>())?;
    Ok(fields)
}

/// Adds the axes of the result to a plan.
pub(crate) fn set_shape(plan: &Bound<'_, PyDict>, shape: Option<Vec<usize>>) -> PyResult<()> {
    let shape = shape.map(|shape| PyTuple::new(plan.py(), shape)).transpose()?;
    plan.set_item("shape", shape)
}

/// What was measured of transforms, each as a dictionary. `notes` say which missed their tolerance.
pub(crate) fn certificates_of<K>(
    py: Python<'_>,
    certificates: &[Certificate<K>],
    name: impl Fn(&Certificate<K>) -> String,
    notes: &mut Vec<String>,
) -> PyResult<Vec<Py<PyDict>>> {
    let one = |one: &Certificate<K>| {
        let fields = PyDict::new(py);
        fields.set_item("transform", name(one))?;
        fields.set_item("outputs", one.outputs)?;
        fields.set_item("error", one.error)?;
        fields.set_item("largest", one.largest)?;
        fields.set_item("tolerance", one.tolerance)?;
        fields.set_item("met", one.met())?;
        Ok(fields.unbind())
    };
    for missed in certificates.iter().filter(|one| !one.met()) {
        let (name, error, tolerance) = (name(missed), missed.error, missed.tolerance);
        notes.push(format!(
            "warning: {name}: relative error {error:.2e} above the tolerance of {tolerance:.0e}"
        ));
    }
    certificates.iter().map(one).collect()
}

/// Where a saved image comes from. Errors: a `ValueError` for a template of a format that names no patient,
/// or one that cannot be one; `OSError` for one that cannot be read.
pub(crate) fn with_template(
    call: Call,
    path: &Path,
    origin: Origin,
    template: Option<PathBuf>,
) -> PyResult<Origin> {
    let Some(template) = template else { return Ok(origin) };
    if !Format::of_name(path).is_some_and(Format::states_origin) {
        let endings = endings(Format::states_origin).join(", ");
        let expected = format!("a file that names a patient ({endings})");
        return Err(raised(Error::value("dicom_template", expected, path.display())));
    }
    let template = DicomTemplate::read(template).map_err(|error| of_file(call, &error))?;
    Ok(Origin { template: Some(Arc::new(template)), ..origin })
}

pub(crate) fn host_array<T: Item>(what: &'static str, array: &Bound<'_, PyAny>) -> PyResult<ArrayD<T>> {
    on_host::<T>(Given::new(what, array)?)?.into_host().map_err(raised)
}
