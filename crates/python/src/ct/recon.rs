use std::path::PathBuf;

use ndarray::ArrayD;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::{Error, Geometry, Image};
use rayspin::ct::corrections::Place;
use rayspin::ct::methods::Method;
use rayspin::ct::recon::{AxisOn, RayOptions};
use rayspin::io::png::PngOptions;
use rayspin::io::{Values, WriteOptions};
use rayspin::job::asked::Asked;
use rayspin::job::ct::{self as job, Ct, Input, Request};
use rayspin::job::{Error as RunError, Place as Where};
use rayspin::run::Given;

use super::geometry::grid_options;
use super::scan::corrections_of;
use super::{CtGeometry, CtScan, Grid};
use crate::call::Detached;
use crate::copied::{count, several, whole_or_none};
use crate::error::{described, of_file, of_run, raised, wrong_type};
use crate::exchange::to_numpy;
use crate::parameters::{asked_with, named, parameters_of, table_of, values_in};
use crate::processor::Processor;
use crate::progress::Listener;
use crate::recon::host_array;
use crate::record;
use crate::scan::sources;
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
    for method in job::methods().iter() {
        all.set_item(method.about().name, (method.about().help, table_of(py, Call::Ct, method)?))?;
    }
    Ok(all)
}

/// The corrections of CT in the order in which they act, and their parameters, which `correct=` takes. Returns a dictionary as
/// `rayspin.methods` does.
#[pyfunction]
pub(crate) fn ct_corrections(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for correction in job::corrections().iter() {
        all.set_item(
            correction.about().name,
            (correction.about().help, table_of(py, Call::Ct, correction)?),
        )?;
    }
    Ok(all)
}

/// The method with the values of its parameters, whose keywords `given` gets.
///
/// Errors: keywords that it has not; values of another kind or out of range.
fn asked_of(
    py: Python<'_>,
    method: &dyn Method,
    parameters: Option<&Bound<'_, PyDict>>,
    given: &mut Given,
) -> PyResult<Asked<Ct>> {
    let (name, table) = (method.about().name, method.table());
    let values = parameters_of(py, job::methods(), (name, &table), KEYWORDS, parameters)?;
    Ok(asked_with(name, table, values, given))
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
    "memory",
    "progress",
];

/// The scan of a run, and its files. Errors: a `TypeError` for what is no scan of CT, with what makes one.
fn input_of(scan: &Bound<'_, PyAny>) -> PyResult<(Input, Vec<PathBuf>)> {
    if let Ok(path) = scan.extract::<PathBuf>() {
        let states = scan.py().detached(|| rayspin::io::Projections::are_in(&path))?;
        if !states.map_err(|error| of_file(Call::Ct, &error))? {
            let expected = "a CT scan with a header";
            let found = "another file; rayspin.ct.read_scan(path, arc=...) reads arrays of projections";
            return Err(raised(Error::value(path.display().to_string(), expected, found)));
        }
        let files = sources(std::iter::once(&path));
        return Ok((Input::File(path), files));
    }
    if let Ok(scan) = scan.cast::<CtScan>() {
        let scan = scan.get();
        return Ok((Input::Scan(scan.scan.clone()), scan.sources.clone()));
    }
    let found = match scan.cast::<crate::scan::Scan>() {
        Ok(_) => "rayspin.Scan; rayspin.recon takes it".to_owned(),
        Err(_) => {
            format!("{}; ct.read_scan reads one from a file, ct.Scan.from_arrays makes one", described(scan))
        }
    };
    Err(wrong_type("scan", "a rayspin.ct.Scan, or the path of a file", found))
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
/// scan: from `ct.read_scan`, `ct.Scan.from_arrays` or `simulate.ct`, or the path of a file with a header.
/// method: a name of `ct.methods()`; the one that suits the rays unless given, which `notes` say.
/// device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU.
/// grid: the voxels, or matrix (x, y) or (x, y, z), voxel_mm and centre_mm (x, y, z); those that the detector resolves unless given.
/// correct: names of `ct.corrections()`, or `{name: {parameter: value}}`.
/// axis: the column on which the axis of rotation falls, or "find"; it corrects rays that the scan states.
/// pixel_mm, source_to_axis_mm, axis_to_detector_mm: lengths in mm, for scans that do not state their rays.
/// memory: the bytes that this process may take; if the run does not fit, the error states what it needs.
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
    correct=None, axis=None, pixel_mm=None, source_to_axis_mm=None, axis_to_detector_mm=0.0, memory=None, progress=None, **parameters))]
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
    #[pyo3(from_py_with = whole_or_none)] memory: Option<i64>,
    progress: Option<Py<PyAny>>,
    parameters: Option<&Bound<'_, PyDict>>,
) -> PyResult<CtReconstruction> {
    let words = Call::Ct;
    let processor = Processor::named(device)?;
    let (input, sources) = input_of(scan)?;
    if grid.is_some() && (matrix.is_some() || voxel_mm.is_some() || centre_mm.is_some()) {
        let found = "both";
        return Err(raised(Error::value("grid", "a grid, or matrix, voxel_mm and centre_mm", found)));
    }
    let mut given = Given::default();
    for (field, name, there) in [
        ("pixel", "pixel_mm", pixel_mm.is_some()),
        ("source_to_axis", "source_to_axis_mm", source_to_axis_mm.is_some()),
    ] {
        if there {
            given.insert(field, name);
        }
    }
    let pixel = |given| several("pixel_mm", "a length in mm, or two along columns and rows (u, v)", given);
    let mut request = Request {
        corrections: corrections_of(correct)?,
        grid: grid.map(|grid| grid.grid),
        wanted: grid_options(matrix, voxel_mm, centre_mm)?,
        rays: RayOptions {
            pixel_mm: pixel_mm.map(pixel).transpose()?,
            axis: axis_of(axis)?,
            source_to_axis_mm,
            axis_to_detector_mm,
            rays: None,
        },
        ..Request::of(input)
    };
    let memory = memory.map(|bytes| count("memory", bytes)).transpose()?.map(|bytes| bytes as u64);
    let place = Where { finish_on_cpu: device == "auto", memory, ..Where::of(processor.device.clone()) };
    if let Some(name) = method {
        request.method = asked_of(py, named(py, job::methods(), name)?, parameters, &mut given)?;
    }
    request.given = given.clone();
    let listener = Listener::new(py, progress)?;
    let (monitor, recorder) = (listener.monitor(), record::start(&processor.device));
    let understood = listener.run(py, || request.begin(place, monitor, recorder)?.read())?;
    let mut understood = understood.map_err(|error| of_run(words, error))?;
    let suited = listener.run(py, || understood.method())?.map_err(|error| of_run(words, error))?;
    if method.is_none() {
        let asked = asked_of(py, suited, parameters, &mut given)?;
        understood.set_parameters(asked, given);
    }
    let finished = listener.run(py, || {
        let mut finished = understood.choose()?.plan()?.run::<RunError>(&mut |_| Ok(()))?;
        finished.record()?;
        Ok::<_, RunError>(finished)
    });
    let finished = finished?.map_err(|error| of_run(words, error))?;
    let notes: Vec<String> = finished.told.notes.iter().map(|note| words.told(note)).collect();
    let used = values_in(py, &*finished.options.method)?;
    let residuals = finished.made.solve.map_or_else(Vec::new, |solve| solve.residuals);
    let volume: ArrayD<f32> = finished.made.volume.into_dyn();
    let grid = finished.options.grid;
    Ok(CtReconstruction {
        record: record::with_notes(finished.told.recorder, &notes)?,
        placed: grid.geometry(),
        shape: volume.shape().to_vec(),
        volume: to_numpy(py, volume).unbind(),
        grid: Py::new(py, Grid { grid })?,
        geometry: Py::new(py, CtGeometry::of(finished.geometry))?,
        axis: finished.axis,
        method: finished.options.method.about().name,
        parameters: used.unbind(),
        notes,
        stages: finished.told.monitor.stages(),
        residuals,
        sources,
        signed: finished.request.corrections.iter().any(|one| one.place() == Place::Volume),
    })
}
