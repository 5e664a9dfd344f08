//! `rayspin.simulate`: scans of phantoms, with the options of the command.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin_cli::in_memory::{CtSimulation, Task};

use crate::ct::{CtScan, Grid};
use crate::exchange::to_numpy;
use crate::options::{listed, noted, raised_by, words};
use crate::processor::Processor;
use crate::progress::Listener;
use crate::remade::{self, Parts, Reduced, Remade};
use crate::scan::{Held, Scan};

/// A simulated MRI scan and what is in it.
#[pyclass(frozen, module = "rayspin.simulate")]
pub(crate) struct MriSimulation {
    /// The scan.
    /// `-> Scan`
    #[pyo3(get)]
    scan: Py<Scan>,
    /// The object's voxel means, complex64 `[z, y, x]`, or `[image, z, y, x]` of one that changes.
    /// `-> NDArray[np.complex64]`
    #[pyo3(get)]
    truth: Py<PyAny>,
    /// The coil sensitivities at the voxel centres, complex64 `[coil, z, y, x]`.
    /// `-> NDArray[np.complex64]`
    #[pyo3(get)]
    maps: Py<PyAny>,
    /// The field at the voxel centres in Hz, float32 `[z, y, x]`, where it is inhomogeneous.
    /// `-> NDArray[np.float32] | None`
    #[pyo3(get)]
    field_hz: Option<Py<PyAny>>,
    /// Standard deviation of the real part of the noise of a sample.
    /// `-> float`
    #[pyo3(get)]
    noise_std: f64,
    /// What was chosen, one sentence each.
    /// `-> list[str]`
    #[pyo3(get)]
    notes: Vec<String>,
    /// Voxel size along (x, y, z) in mm.
    /// `-> tuple[float, float, float]`
    #[pyo3(get)]
    spacing_mm: (f64, f64, f64),
}

#[pymethods]
impl MriSimulation {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("MriSimulation({})", self.scan.bind(py).repr()?))
    }
}

/// A simulated CT scan and what is in it.
#[pyclass(frozen, name = "CtSimulation", module = "rayspin.simulate")]
pub(crate) struct SimulatedCt {
    /// The scan.
    /// `-> ct.Scan`
    #[pyo3(get)]
    scan: Py<CtScan>,
    /// The attenuation at 60 keV, voxel means in 1/mm, float32 `[z, y, x]`.
    /// `-> NDArray[np.float32]`
    #[pyo3(get)]
    truth: Py<PyAny>,
    /// The voxels of the truth.
    /// `-> ct.Grid`
    #[pyo3(get)]
    grid: Py<Grid>,
}

#[pymethods]
impl SimulatedCt {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("CtSimulation({})", self.scan.bind(py).repr()?))
    }
}

impl Remade for MriSimulation {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (parts, own) = (PyDict::new(object.py()), object.get());
        parts.set_item("scan", &own.scan)?;
        parts.set_item("truth", &own.truth)?;
        parts.set_item("maps", &own.maps)?;
        parts.set_item("field_hz", &own.field_hz)?;
        parts.set_item("noise_std", own.noise_std)?;
        parts.set_item("notes", &own.notes)?;
        parts.set_item("spacing_mm", own.spacing_mm)?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = Self {
            scan: parts.get("scan")?,
            truth: parts.get("truth")?,
            maps: parts.get("maps")?,
            field_hz: parts.get("field_hz")?,
            noise_std: parts.get("noise_std")?,
            notes: parts.get("notes")?,
            spacing_mm: parts.get("spacing_mm")?,
        };
        Ok(Bound::new(parts.python(), made)?.into_any())
    }
}

impl Remade for SimulatedCt {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (parts, own) = (PyDict::new(object.py()), object.get());
        parts.set_item("scan", &own.scan)?;
        parts.set_item("truth", &own.truth)?;
        parts.set_item("grid", &own.grid)?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = Self { scan: parts.get("scan")?, truth: parts.get("truth")?, grid: parts.get("grid")? };
        Ok(Bound::new(parts.python(), made)?.into_any())
    }
}

/// An MRI scan of a phantom: samples d(c, k) = integral of c(x) image(x) exp(-2 pi i k.x), in closed form,
///     with noise if `snr` is given.
///
/// options: keywords that `simulate.options("mri")` lists, the options of the command `rayspin simulate mri`.
/// progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
///
/// Returns an `MriSimulation`: the scan, its truth, maps and field. Raises TypeError for an option that there
/// is not or a value of another type, ValueError for a value out of range or an option that does nothing
/// beside the others.
///
/// `(*, progress: Heard, **options: Any) -> MriSimulation`
#[pyfunction]
#[pyo3(signature = (*, progress=None, **options))]
pub(crate) fn simulate_mri(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<MriSimulation> {
    let words = words(Task::SimulateMri, "simulate.mri", options)?;
    let (processor, listener) = (Processor::named("cpu")?, Listener::new(py, progress)?);
    let made = listener.run(py, || {
        let monitor = listener.monitor();
        rayspin_cli::in_memory::simulate_mri(processor.device.cpu_side(), words, &monitor)
    });
    let made = made?.map_err(|error| raised_by(Task::SimulateMri, error))?;
    let scan = Scan { held: Arc::new(Held::Whole(Arc::new(made.scan))), sources: Vec::new() };
    let spacing_mm = made.truth.geometry().spacing_mm.into();
    Ok(MriSimulation {
        scan: Py::new(py, scan)?,
        truth: to_numpy(py, made.truth.into_data()).unbind(),
        maps: to_numpy(py, made.maps.into_dyn()).unbind(),
        field_hz: made.field.map(|field| to_numpy(py, field.data().mapv(|value| value.re)).unbind()),
        noise_std: made.noise_std,
        notes: made.notes.iter().map(|note| noted(Task::SimulateMri, note)).collect(),
        spacing_mm,
    })
}

/// A CT scan of a phantom: exact line integrals p, or counts of photons with mean N exp(-p) and noise.
///
/// options: keywords that `simulate.options("ct")` lists, the options of the command `rayspin simulate ct`.
///     Angles are in radian.
/// progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
///
/// Returns a `CtSimulation`: the scan, its truth and its voxels. Raises as `simulate.mri`.
///
/// `(*, progress: Heard, **options: Any) -> CtSimulation`
#[pyfunction]
#[pyo3(signature = (*, progress=None, **options))]
pub(crate) fn simulate_ct(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<SimulatedCt> {
    let words = words(Task::SimulateCt, "simulate.ct", options)?;
    let (processor, listener) = (Processor::named("cpu")?, Listener::new(py, progress)?);
    let made = listener.run(py, || {
        let monitor = listener.monitor();
        rayspin_cli::in_memory::simulate_ct(processor.device.cpu_side(), words, &monitor)
    });
    let CtSimulation { scan, truth, grid } = made?.map_err(|error| raised_by(Task::SimulateCt, error))?;
    Ok(SimulatedCt {
        scan: Py::new(py, CtScan::of(scan))?,
        truth: to_numpy(py, truth.into_data()).unbind(),
        grid: Py::new(py, Grid { grid })?,
    })
}

/// The options of `simulate.mri` or `simulate.ct`, by kind: "mri" or "ct".
///
/// Returns a dictionary by the options' names. A value has "default" (text; None where it follows from the
/// others), "names" (the names to choose from), "unit" ("radian" for angles, else None; "help" states other
/// units), and "help". Raises ValueError for another kind.
///
/// `(kind: Literal["mri", "ct"]) -> dict[str, dict[str, Any]]`
#[pyfunction]
pub(crate) fn simulate_options<'py>(py: Python<'py>, kind: &str) -> PyResult<Bound<'py, PyDict>> {
    match kind {
        "mri" => listed(py, Task::SimulateMri),
        "ct" => listed(py, Task::SimulateCt),
        _ => Err(crate::error::raised(rayspin::core::Error::value("kind", "mri or ct", kind))),
    }
}

/// Adds the classes and functions of `rayspin.simulate`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<MriSimulation>()?;
    module.add_class::<SimulatedCt>()?;
    module.add_function(wrap_pyfunction!(simulate_mri, module)?)?;
    module.add_function(wrap_pyfunction!(simulate_ct, module)?)?;
    module.add_function(wrap_pyfunction!(simulate_options, module)?)
}
