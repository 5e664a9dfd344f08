use std::path::PathBuf;

use ndarray::ArrayD;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::{Error, Geometry, Image};
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
use crate::error::{described, of_file, raised, raised_in, wrong_type};
use crate::exchange::to_numpy;
use crate::parameters::{expect_effect, named, parameters_of, table_of, values_in};
use crate::processor::Processor;
use crate::progress::Listener;
use crate::recon::host_array;
use crate::record;
use crate::texts::Call;

/// A volume of a CT scan, and how it came about: what `rayspin.ct.recon` returns.
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
    /// The files of its scan.
    sources: Vec<PathBuf>,
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

    /// Writes `volume`, as it stands now, in the format of the file's name: .nii, .nii.gz, .npy, .h5, .mha, .tif, .png and others.
    ///
    /// Returns notes on what the format cannot hold. Raises ValueError for a name of no format that holds images and for a file from which the
    /// scan was read, OSError (FileNotFoundError, PermissionError) for a file that cannot be written.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
        let volume =
            Image::new(host_array::<f32>("volume", self.volume.bind(py))?, self.placed).map_err(raised)?;
        let options = WriteOptions {
            png: PngOptions::preview(volume.shape_zyx()[0], 1),
            values: self.signed.then_some(Values::Real),
            hounsfield: self.signed.then_some(true),
            ..WriteOptions::default()
        };
        let written = py.detached(|| {
            rayspin::io::expect_apart(&self.sources, &[&path])?;
            rayspin::io::write_image(&path, &volume, &options)
        });
        let notes = written?.map_err(|error| of_file(Call::Ct, &error))?;
        Ok(notes.iter().map(|note| Call::Ct.told(note)).collect())
    }

    /// The picture and the notes, for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("rayspin._html")?.call_method1("html", (slf,))
    }

    fn __repr__(&self) -> String {
        format!("Reconstruction({} by {})", rayspin::core::format_shape(&self.shape), self.method)
    }
}

/// The methods of CT and their parameters, which are keywords of `recon`. Returns a dictionary as `rayspin.methods` does.
#[pyfunction]
pub(crate) fn ct_methods(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for method in Methods::default().iter() {
        all.set_item(method.about().name, (method.about().help, table_of(py, Call::Ct, method)?))?;
    }
    Ok(all)
}

/// The corrections of CT in the order in which they act, and their parameters, which `correct=` takes. Returns a dictionary as
/// `rayspin.methods` does.
#[pyfunction]
pub(crate) fn ct_corrections(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for correction in Table::default().iter() {
        all.set_item(
            correction.about().name,
            (correction.about().help, table_of(py, Call::Ct, correction)?),
        )?;
    }
    Ok(all)
}

/// The method with the given parameters.
///
/// Errors: keywords that it has not; values out of range; a parameter that does nothing as the others stand.
fn chosen_of(
    py: Python<'_>,
    methods: &Methods,
    method: &dyn Method,
    parameters: Option<&Bound<'_, PyDict>>,
) -> PyResult<std::sync::Arc<dyn Method>> {
    let given = parameters_of(py, methods, (method.about().name, &method.table()), KEYWORDS, parameters)?;
    let chosen = with(method, given.iter().cloned()).map_err(raised)?;
    chosen.check().map_err(raised)?;
    expect_effect(&chosen.idle(), &given)?;
    Ok(chosen)
}

/// The keywords of `recon` itself.
const KEYWORDS: &[&str] = &[
    "method",
    "device",
    "grid",
    "matrix",
    "voxel_mm",
    "centre_mm",
    "correct",
    "axis",
    "pixel_mm",
    "source_to_axis_mm",
    "axis_to_detector_mm",
    "progress",
];

/// What a scan holds. Errors: a `TypeError` for what is no scan of CT, with what makes one.
fn scan_of(scan: &Bound<'_, PyAny>) -> PyResult<std::sync::Arc<rayspin::ct::scan::Scan>> {
    if let Ok(scan) = scan.cast::<CtScan>() {
        return Ok(scan.get().scan.clone());
    }
    let found = match scan.cast::<crate::scan::Scan>() {
        Ok(_) => "rayspin.Scan; rayspin.recon takes it".to_owned(),
        Err(_) => {
            format!("{}; ct.read_scan reads one from a file, ct.Scan.from_arrays makes one", described(scan))
        }
    };
    Err(wrong_type("scan", "a rayspin.ct.Scan", found))
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

/// The attenuation f of a volume from line integrals p = A f of a scan: by filtered back-projection, or iterations that make |A f - p| small.
/// `ct.methods()` says what each method computes.
///
/// scan: from `ct.read_scan`, `ct.Scan.from_arrays` or `simulate.ct`.
/// method: a name of `ct.methods()`; the one that suits the rays unless given, which `notes` say.
/// device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU.
/// grid: the voxels, or matrix (x, y) or (x, y, z), voxel_mm and centre_mm (x, y, z); those that the detector resolves unless given.
/// correct: names of `ct.corrections()`, or `{name: {parameter: value}}`.
/// axis: the column on which the axis of rotation falls, or "find"; it corrects rays that the scan states.
/// pixel_mm, source_to_axis_mm, axis_to_detector_mm: lengths in mm, for scans that do not state their rays.
/// progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
/// parameters: keywords of the method, as `ct.methods()` lists them.
///
/// Returns a `Reconstruction`: `volume` is float32 `[z, y, x]` in 1/mm.
///
/// Raises TypeError for a keyword that the method has not or a value of another type. Raises ValueError for a method, shape or value that does
/// not fit the scan. Raises MemoryError where memory is short, KeyboardInterrupt after Ctrl-C, and the exceptions of `progress`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
#[pyo3(name = "recon_ct", signature = (scan, method=None, *, device="auto", grid=None, matrix=None, voxel_mm=None, centre_mm=None,
    correct=None, axis=None, pixel_mm=None, source_to_axis_mm=None, axis_to_detector_mm=0.0, progress=None, **parameters))]
pub(crate) fn recon_ct(
    py: Python<'_>,
    scan: &Bound<'_, PyAny>,
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
    let (held, words) = (scan_of(scan)?, Call::Ct);
    let all = Methods::default();
    let mut chosen = match method {
        Some(name) => Some(chosen_of(py, &all, named(py, &all, name)?, parameters)?),
        None => None,
    };
    let corrections = corrections_of(correct)?;
    if held.geometry.is_some() {
        let given = [("pixel_mm", pixel_mm.is_some()), ("source_to_axis_mm", source_to_axis_mm.is_some())];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
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
    let monitor = listener.monitor();
    let mut notes = Vec::new();
    let [_, rows, columns] = held.shape();
    let prepared = listener.run(py, || {
        monitor.stage("line integrals", 0, || {
            let part = Part::of(held.shape(), None, None, None)?;
            let scan = (*held).clone();
            prepare(&processor.device, scan, (&part, [rows, columns]), &corrections, &rays, &mut notes)
        })
    });
    let Prepared { lines, geometry, axis } = prepared?.map_err(|error| raised_in(words, error))?;
    let mut notes: Vec<String> = notes.iter().map(|note: &String| words.told(note)).collect();
    if chosen.is_none() {
        let suited = all.suited(&Facts::of(&geometry));
        let none = || Error::value("method", "one that suits the scan", "none");
        let (method, reason) = suited.ok_or_else(none).map_err(raised)?;
        let reason = words.told(&reason);
        notes.push(format!("method {}: {reason} (method= chooses another)", method.about().name));
        chosen = Some(chosen_of(py, &all, method, parameters)?);
    }
    let method = chosen.ok_or_else(|| raised(Error::value("method", "one", "none")))?;
    let grid = match grid {
        Some(grid) => grid.grid,
        None => {
            let grid = resolved(&geometry, &wanted).map_err(raised)?;
            notes.extend(wanted.note(&grid).iter().map(|note| words.told(note)));
            grid
        }
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
    let found = listener.run(py, || {
        let mut made = reconstruct(&processor.device, lines, &geometry, &options, &monitor)?;
        corrections.volume(processor.device.cpu_side(), &mut made.volume)?;
        Ok::<Reconstruction, Error>(made)
    });
    let made = found?.map_err(|error| raised_in(words, error))?;
    notes.extend(made.notes.iter().map(|note| words.told(note)));
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
        sources: scan.cast::<CtScan>().map(|scan| scan.get().sources.clone()).unwrap_or_default(),
        signed: corrections.iter().any(|one| one.place() == Place::Volume),
    })
}
