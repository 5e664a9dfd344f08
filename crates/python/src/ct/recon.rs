use std::path::PathBuf;

use ndarray::ArrayD;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::{Error, Geometry, Image, Monitor, Result};
use rayspin::ct::corrections::{Place, Table};
use rayspin::ct::methods::{Facts, Method, Methods, with};
use rayspin::ct::recon::{
    AxisOn, BatchSizes, Prepared, RayOptions, ReconOptions, Reconstruction, grid as resolved, prepare,
    reconstruct,
};
use rayspin::ct::scan::Part;
use rayspin::io::png::PngOptions;
use rayspin::io::{Values, WriteOptions};

use super::geometry::grid_options;
use super::scan::corrections_of;
use super::{CtGeometry, CtScan, Grid};
use crate::call::Detached;
use crate::copied::several;
use crate::error::{of_file, raised, wrong_type};
use crate::exchange::to_numpy;
use crate::parameters::{table_of, values_in, values_of};
use crate::processor::Processor;
use crate::progress::Listener;
use crate::recon::host_array;
use crate::record;

/// A volume of a CT scan, and how it came about.
#[pyclass(frozen, name = "Reconstruction", module = "rayspin.ct")]
pub(crate) struct CtReconstruction {
    /// The attenuation in 1/mm, float32 `[z, y, x]`; in Hounsfield units after the correction `hounsfield`.
    #[pyo3(get)]
    volume: Py<PyAny>,
    /// The voxels.
    #[pyo3(get)]
    grid: Py<Grid>,
    /// The rays that were used.
    #[pyo3(get)]
    geometry: Py<CtGeometry>,
    /// The column on which the axis falls, where it was given or found.
    #[pyo3(get)]
    axis: Option<f64>,
    /// The method's name.
    #[pyo3(get)]
    method: &'static str,
    /// The method's parameters, as they were used.
    #[pyo3(get)]
    parameters: Py<PyDict>,
    /// What was assumed, one sentence each.
    #[pyo3(get)]
    notes: Vec<String>,
    /// Seconds of each stage, in their order.
    #[pyo3(get)]
    stages: Vec<(String, f64)>,
    /// The relative residuals of the iterations, from 1 on; empty for methods that do not iterate.
    #[pyo3(get)]
    residuals: Vec<f64>,
    placed: Geometry,
    shape: Vec<usize>,
    record: String,
    /// Whether black is not 0 in pictures.
    signed: bool,
}

#[pymethods]
impl CtReconstruction {
    /// The run record, as the command writes it: program, version, device, parameters, stages, residuals, notes.
    #[getter]
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        record::read(py, &self.record)
    }

    /// Writes `volume`, as it stands now, in the format of the file's name. Returns notes on what the format cannot hold.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
        let volume =
            Image::new(host_array::<f32>("volume", self.volume.bind(py))?, self.placed).map_err(raised)?;
        let options = WriteOptions {
            png: PngOptions::preview(volume.shape_zyx()[0], 1),
            values: self.signed.then_some(Values::Real),
            ..WriteOptions::default()
        };
        let written = py.detached(|| rayspin::io::write_image(&path, &volume, &options));
        written.map_err(|error| of_file(&error))
    }

    /// The picture and the notes, for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("rayspin._html")?.call_method1("html", (slf,))
    }

    fn __repr__(&self) -> String {
        format!("Reconstruction({} by {})", rayspin::core::format_shape(&self.shape), self.method)
    }
}

/// The methods of CT: for each its name, what it does, and its parameters with default, range and help.
#[pyfunction]
pub(crate) fn ct_methods(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for method in Methods::default().iter() {
        all.set_item(method.about().name, (method.about().help, table_of(py, method)?))?;
    }
    Ok(all)
}

/// The corrections of CT in the order in which they act: for each its name, what it does, and its parameters with default, range and
/// help.
#[pyfunction]
pub(crate) fn ct_corrections(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for correction in Table::default().iter() {
        all.set_item(correction.about().name, (correction.about().help, table_of(py, correction)?))?;
    }
    Ok(all)
}

/// The method with the given parameters.
///
/// Errors: keywords that it has not; values out of range; a parameter that does nothing as the others stand.
fn chosen_of(
    method: &dyn Method,
    parameters: Option<&Bound<'_, PyDict>>,
) -> PyResult<std::sync::Arc<dyn Method>> {
    let given = values_of(&format!("method {}", method.about().name), &method.table(), parameters)?;
    let chosen = with(method, given.iter().cloned()).map_err(raised)?;
    chosen.check().map_err(raised)?;
    match chosen.idle().iter().find(|idle| given.iter().any(|(name, _)| name == idle.name)) {
        Some(idle) => Err(raised(Error::value(idle.name, idle.expected, &idle.found))),
        None => Ok(chosen),
    }
}

fn axis_of(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<AxisOn>> {
    let Some(given) = given else { return Ok(None) };
    if let Ok(column) = given.extract::<f64>() {
        return Ok(Some(AxisOn::Column(column)));
    }
    match given.extract::<String>().as_deref() {
        Ok("find") => Ok(Some(AxisOn::Found)),
        _ => Err(wrong_type("axis", "a column or 'find'", given)),
    }
}

/// Makes a volume of a scan. The method is the one that suits the rays where none is named; its parameters are keywords.
///
/// `grid`, or `matrix` (x, y, z), `voxel_mm` and `centre_mm`, are the voxels; by default those that the detector resolves. `correct`
/// names corrections, or has their parameters `{name: {parameter: value}}`. `axis` (a column, or 'find'), `pixel_mm`,
/// `source_to_axis_mm` and `axis_to_detector_mm` are for scans that do not state their rays. Angles are in radian, lengths in mm.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
#[pyo3(name = "recon_ct", signature = (scan, method=None, *, device="auto", grid=None, matrix=None, voxel_mm=None, centre_mm=None,
    correct=None, axis=None, pixel_mm=None, source_to_axis_mm=None, axis_to_detector_mm=0.0, progress=None, **parameters))]
pub(crate) fn recon_ct(
    py: Python<'_>,
    scan: &CtScan,
    method: Option<&str>,
    device: &str,
    grid: Option<&Grid>,
    matrix: Option<&Bound<'_, PyAny>>,
    voxel_mm: Option<&Bound<'_, PyAny>>,
    centre_mm: Option<&Bound<'_, PyAny>>,
    correct: Option<&Bound<'_, PyAny>>,
    axis: Option<&Bound<'_, PyAny>>,
    pixel_mm: Option<&Bound<'_, PyAny>>,
    source_to_axis_mm: Option<f64>,
    axis_to_detector_mm: f64,
    progress: Option<Py<PyAny>>,
    parameters: Option<&Bound<'_, PyDict>>,
) -> PyResult<CtReconstruction> {
    let processor = Processor::named(device)?;
    let mut recorder = record::start(&processor.device);
    let all = Methods::default();
    let mut chosen = match method {
        Some(name) => Some(chosen_of(all.named(name).map_err(raised)?, parameters)?),
        None => None,
    };
    let corrections = corrections_of(correct)?;
    if scan.scan.geometry.is_some() {
        let given = [("axis", axis.is_some()), ("pixel_mm", pixel_mm.is_some())];
        let more = [("source_to_axis_mm", source_to_axis_mm.is_some())];
        if let Some((name, _)) = given.iter().chain(&more).find(|(_, given)| *given) {
            return Err(raised(Error::value(*name, "a scan that does not state its rays", "one that does")));
        }
    }
    if grid.is_some() && (matrix.is_some() || voxel_mm.is_some() || centre_mm.is_some()) {
        let found = "both";
        return Err(raised(Error::value("grid", "a grid, or matrix, voxel_mm and centre_mm", found)));
    }
    let wanted = grid_options(matrix, voxel_mm, centre_mm)?;
    let pixel = |given| several("pixel_mm", "a length in mm, or two along columns and rows (u, v)", given);
    let rays = RayOptions {
        pixel_mm: pixel_mm.map(pixel).transpose()?,
        axis: axis_of(axis)?,
        source_to_axis_mm,
        axis_to_detector_mm,
        rays: None,
    };
    let listener = Listener::new(py, progress)?;
    let monitor = Monitor::new(&listener, Some(&listener.stop));
    let mut notes = Vec::new();
    let held = scan.scan.clone();
    let [_, rows, columns] = held.shape();
    let prepared = py.detached(|| {
        monitor.stage("line integrals", 0, || {
            let part = Part::of(held.shape(), None, None, None)?;
            let scan = (*held).clone();
            prepare(&processor.device, scan, (&part, [rows, columns]), &corrections, &rays, &mut notes)
        })
    });
    let Prepared { lines, geometry, axis } = prepared.map_err(|error| listener.exception(error))?;
    if chosen.is_none() {
        let suited = all.suited(&Facts::of(&geometry));
        let none = || Error::value("method", "one that suits the scan", "none");
        let (method, reason) = suited.ok_or_else(none).map_err(raised)?;
        notes.push(format!("method {}: {reason} (method= chooses another)", method.about().name));
        chosen = Some(chosen_of(method, parameters)?);
    }
    let method = chosen.ok_or_else(|| raised(Error::value("method", "one", "none")))?;
    let grid = match grid {
        Some(grid) => grid.grid,
        None => resolved(&geometry, &wanted).map_err(raised)?,
    };
    corrections.expect_volume(grid.shape_zyx()).map_err(raised)?;
    let (name, used) = (method.about().name, values_in(py, &*method)?);
    record::method(&mut recorder, name, &*method);
    let options = ReconOptions {
        method,
        grid,
        certify: None,
        batch_sizes: BatchSizes::default(),
        finish_on_cpu: device == "auto",
    };
    let found: Result<Reconstruction> = py.detached(|| {
        let mut made = reconstruct(&processor.device, lines, &geometry, &options, &monitor)?;
        corrections.volume(processor.device.cpu_side(), &mut made.volume)?;
        Ok(made)
    });
    let made = found.map_err(|error| listener.exception(error))?;
    notes.extend(made.notes);
    recorder.parameter("voxels", serde_json::json!(grid));
    recorder
        .parameter("corrections", corrections.iter().map(record::correction).collect::<serde_json::Value>());
    recorder.parameter("axis", axis);
    recorder.parameter("iterations done", serde_json::json!(made.solve));
    let residuals = made.solve.map_or_else(Vec::new, |solve| solve.residuals);
    let volume: ArrayD<f32> = made.volume.into_dyn();
    Ok(CtReconstruction {
        record: record::finish(recorder, &monitor, &notes)?,
        placed: grid.geometry(),
        shape: volume.shape().to_vec(),
        volume: to_numpy(py, volume).unbind(),
        grid: Py::new(py, Grid { grid })?,
        geometry: Py::new(py, CtGeometry::of(geometry))?,
        axis,
        method: name,
        parameters: used.unbind(),
        notes,
        stages: monitor.stages(),
        residuals,
        signed: corrections.iter().any(|one| one.place() == Place::Volume),
    })
}
