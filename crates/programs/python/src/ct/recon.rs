use std::path::PathBuf;

use ndarray::ArrayD;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::{Error, Geometry, Image};
use rayspin::ct::corrections::ActsOn;
use rayspin::io::png::PngOptions;
use rayspin::io::{Modality, Origin, Values, WriteOptions};
use rayspin::job::ct::{self as job, Ct, Input, Planned, Request};
use rayspin::job::{ComputeTarget, Error as RunError};
use rayspin::report::number;
use rayspin::run::{BadInput, Certificate, Given};

use super::scan::corrections_of;
use super::{CtGeometry, CtScan, Grid};
use crate::error::{described, of_file, of_run, raised, wrong_type};
use crate::exchange::{Dtype, to_numpy};
use crate::finished::{certificates_of, host_array, plan_of, set_shape, with_template};
use crate::parameters::{asked, table_of, values_in};
use crate::processor::Processor;
use crate::progress::Listener;
use crate::record;
use crate::remade::{self, Parts, Reduced, Remade};
use crate::scan::sources;
use crate::settings::taken;
use crate::signals::Detached;
use crate::words::Call;

/// A volume of a CT scan, and how it came about: what `rayspin.ct.recon` returns.
#[pyclass(frozen, name = "Reconstruction", module = "rayspin.ct")]
pub(crate) struct CtReconstruction {
    /// The attenuation in 1/mm, float32 `[z, y, x]`; in Hounsfield units after the correction `hounsfield`.
    /// `-> NDArray[np.float32]`
    #[pyo3(get)]
    volume: Py<PyAny>,
    /// The voxels.
    /// `-> ct.Grid`
    #[pyo3(get)]
    grid: Py<Grid>,
    /// The rays that were used.
    /// `-> ct.Geometry`
    #[pyo3(get)]
    geometry: Py<CtGeometry>,
    /// The column on which the axis falls, where it was given or found.
    /// `-> float | None`
    #[pyo3(get)]
    axis: Option<f64>,
    /// The method's name.
    /// `-> str`
    #[pyo3(get)]
    method: String,
    /// The method's parameters, as they were used.
    /// `-> dict[str, Any]`
    #[pyo3(get)]
    parameters: Py<PyDict>,
    /// What was assumed, one sentence each.
    /// `-> list[str]`
    #[pyo3(get)]
    notes: Vec<String>,
    /// Seconds of each stage, in their order.
    /// `-> list[tuple[str, float]]`
    #[pyo3(get)]
    stages: Vec<(String, f64)>,
    /// The relative residuals of the iterations, from 1 on; empty for methods that do not iterate.
    /// `-> list[float]`
    #[pyo3(get)]
    residuals: Vec<f64>,
    /// What `certify` measured: for each transform a dictionary with "transform", "outputs", "error",
    /// "largest", "tolerance" and "met".
    /// `-> list[dict[str, Any]]`
    #[pyo3(get)]
    certificates: Vec<Py<PyDict>>,
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
    /// The run record, as the command writes it: program, version, device, parameters, stages, residuals,
    ///     notes.
    /// `-> dict[str, Any]`
    #[getter]
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        record::read(py, &self.record)
    }

    /// Writes `volume`, as it stands now, in the format of the file's name (`.nii.gz`, `.npy`, `.png`), any
    /// that `rayspin convert` writes.
    ///
    /// dicom_template: a DICOM file whose patient and study a .dicom takes over; by default it names none.
    ///
    /// Returns notes on what the format cannot hold. Raises ValueError for a name of no format that holds
    /// images, for a file from which the scan was read and for a file that is no template, OSError
    /// (FileNotFoundError, PermissionError) for a file that cannot be written.
    ///
    /// `(path: str | PathLike[str], *, dicom_template: str | PathLike[str] | None) -> list[str]`
    #[pyo3(signature = (path, *, dicom_template=None))]
    fn save(&self, py: Python<'_>, path: PathBuf, dicom_template: Option<PathBuf>) -> PyResult<Vec<String>> {
        let origin = with_template(Call::Ct, &path, Origin::measured(Modality::Ct), dicom_template)?;
        let volume =
            Image::new(host_array::<f32>("volume", self.volume.bind(py))?, self.placed).map_err(raised)?;
        let options = WriteOptions {
            png: PngOptions::preview(volume.shape_zyx()[0], 1),
            values: self.signed.then_some(Values::Real),
            hounsfield: self.signed.then_some(true),
            origin,
            ..WriteOptions::default()
        };
        let written = py.detached(|| {
            rayspin::io::expect_apart(&self.sources, &[&path])?;
            rayspin::io::write_image(&path, &volume, &options)
        });
        let notes = written?.map_err(|error| of_file(Call::Ct, &error))?;
        Ok(notes.iter().map(|note| Call::Ct.told(note)).collect())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    /// The picture and the notes, for notebooks.
    ///
    /// `() -> str`
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("rayspin._html")?.call_method1("html", (slf,))
    }

    fn __repr__(&self) -> String {
        format!("Reconstruction({} by {})", rayspin::core::format_shape(&self.shape), self.method)
    }
}

impl Remade for CtReconstruction {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (parts, own) = (PyDict::new(object.py()), object.get());
        parts.set_item("volume", &own.volume)?;
        parts.set_item("grid", &own.grid)?;
        parts.set_item("geometry", &own.geometry)?;
        parts.set_item("axis", own.axis)?;
        parts.set_item("method", &own.method)?;
        parts.set_item("parameters", &own.parameters)?;
        parts.set_item("notes", &own.notes)?;
        parts.set_item("stages", &own.stages)?;
        parts.set_item("residuals", &own.residuals)?;
        parts.set_item("certificates", &own.certificates)?;
        parts.set_item("record", &own.record)?;
        parts.set_item("sources", own.sources.iter().map(|file| file.as_os_str()).collect::<Vec<_>>())?;
        parts.set_item("signed", own.signed)?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let grid: Bound<'py, Grid> = parts.get("grid")?;
        let (volume, shape) = parts.image("volume", &[Dtype::F32])?;
        let expected = grid.get().grid.shape_zyx();
        if shape != expected {
            return Err(raised(Error::shape("volume", &expected, &shape)));
        }
        let reconstruction = Self {
            volume: volume.unbind(),
            placed: grid.get().grid.geometry(),
            grid: grid.unbind(),
            geometry: parts.get("geometry")?,
            axis: parts.get("axis")?,
            method: parts.get("method")?,
            parameters: parts.get("parameters")?,
            notes: parts.get("notes")?,
            stages: parts.get("stages")?,
            residuals: parts.get("residuals")?,
            certificates: parts.get("certificates")?,
            shape,
            record: parts.get("record")?,
            sources: parts.get("sources")?,
            signed: parts.get("signed")?,
        };
        Ok(Bound::new(parts.python(), reconstruction)?.into_any())
    }
}

/// The methods of CT and their parameters, which are keywords of `recon`. Returns a dictionary as
/// `rayspin.methods` does.
///
/// `() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]`
#[pyfunction]
pub(crate) fn ct_methods(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let methods = PyDict::new(py);
    for method in job::methods().iter() {
        methods.set_item(method.about().name, (method.about().help, table_of(py, Call::Ct, method)?))?;
    }
    Ok(methods)
}

/// The corrections of CT in the order in which they act, and their parameters, which `correct=` takes.
/// Returns a dictionary as `rayspin.methods` does.
///
/// `() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]`
#[pyfunction]
pub(crate) fn ct_corrections(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let corrections = PyDict::new(py);
    for correction in job::corrections().iter() {
        corrections.set_item(
            correction.about().name,
            (correction.about().help, table_of(py, Call::Ct, correction)?),
        )?;
    }
    Ok(corrections)
}

/// The scan of a run, and its files. Errors: a `TypeError` for what is no scan of CT, with what makes one.
fn input_of(scan: &Bound<'_, PyAny>) -> PyResult<(Input, Vec<PathBuf>)> {
    if let Ok(path) = scan.extract::<PathBuf>() {
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

/// The attenuation f of a volume from line integrals p = A f of a scan: by filtered back-projection, or
/// iterations that make |A f - p| small. `ct.methods()` says what each method computes.
///
/// scan: from `ct.read_scan`, `ct.Scan.from_arrays` or `simulate.ct`, or the path of a file: a scan with a
///     header, or an array of projections with `arc`.
/// method: a name of `ct.methods()`; the one that suits the rays unless given, which `notes` say.
/// device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU. "cuda:all" and
///     "cuda:0,2" are several GPUs: each makes some slices of the volume, or in iterations projects along
///     the rays of some views.
/// grid: the voxels, or `matrix`, `voxel_mm` and `centre_mm`; those that the detector resolves unless given.
/// correct: names of `ct.corrections()`, or `{name: {parameter: value}}`.
/// progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
/// options: keywords that say what is reconstructed and how, listed below, and parameters of the method, as
///     `ct.methods()` lists them.
///
/// Returns a `Reconstruction`: `volume` is float32 `[z, y, x]` in 1/mm.
///
/// Raises TypeError for a keyword that the method has not or a value of another type. Raises ValueError for a
/// method, shape or value that does not fit the scan. Raises MemoryError where memory is short,
/// KeyboardInterrupt after Ctrl-C, and the exceptions of `progress`.
///
/// `(scan: ct.Scan | str | PathLike[str], method: str | None, *, device: str, grid: ct.Grid | None, correct:
/// Corrections | None, progress: Heard, **options: Any) -> ct.Reconstruction`
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
#[pyo3(name = "recon_ct", signature = (scan, method=None, *, device="auto", grid=None, correct=None, progress=None, **options))]
pub(crate) fn recon_ct(
    py: Python<'_>,
    scan: &Bound<'_, PyAny>,
    method: Option<&str>,
    device: &str,
    grid: Option<&Grid>,
    correct: Option<&Bound<'_, PyAny>>,
    progress: Option<Py<PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<CtReconstruction> {
    let words = Call::Ct;
    let Wanted { request, place, sources } = Wanted::of(scan, method, device, grid, correct, options)?;
    let (listener, recorder) = (Listener::new(py, progress)?, record::start(&place.device));
    let monitor = listener.monitor();
    let finished = listener.run(py, || {
        let planned = request.begin(place, monitor, recorder)?.read()?.choose()?.plan()?;
        expect_whole(&planned)?;
        let mut finished = planned.run::<RunError>(&mut |_| Ok(()))?;
        finished.record()?;
        Ok::<_, RunError>(finished)
    });
    let finished = finished?.map_err(|error| of_run(words, error))?;
    let mut notes: Vec<String> = finished.told.notes.iter().map(|note| words.told(note)).collect();
    let named = |one: &Certificate<_>| one.transform.clone();
    let certificates = certificates_of(py, &finished.made.certificates, named, &mut notes)?;
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
        method: finished.options.method.about().name.to_owned(),
        parameters: used.unbind(),
        notes,
        stages: finished.told.monitor.stages(),
        residuals,
        certificates,
        sources,
        signed: finished.request.corrections.iter().any(|one| one.acts_on() == ActsOn::Volume),
    })
}

/// What `ct.recon` will take with the same arguments: its method, and the memory and work of each stage.
/// Nothing is computed.
///
/// scan, method, device, grid, correct, options: as `ct.recon` takes them.
///
/// Returns a dictionary as `rayspin.plan` does. Raises as `ct.recon` does.
///
/// >>> from rayspin import ct, simulate
/// >>> scan = simulate.ct(matrix=(16, 16, 16), views=8).scan
/// >>> ct.plan(scan, device="cpu")["method"]
/// 'fdk'
///
/// `(scan: ct.Scan | str | PathLike[str], method: str | None, *, device: str, grid: ct.Grid | None, correct:
/// Corrections | None, **options: Any) -> dict[str, Any]`
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
#[pyo3(name = "plan_recon_ct", signature = (scan, method=None, *, device="auto", grid=None, correct=None, **options))]
pub(crate) fn plan_ct<'py>(
    py: Python<'py>,
    scan: &Bound<'py, PyAny>,
    method: Option<&str>,
    device: &str,
    grid: Option<&Grid>,
    correct: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let Wanted { mut request, place, .. } = Wanted::of(scan, method, device, grid, correct, options)?;
    request.dry_run = true;
    let (listener, recorder) = (Listener::silent(), record::start(&place.device));
    let monitor = listener.monitor();
    let planned = listener.run(py, || request.begin(place, monitor, recorder)?.read()?.choose()?.plan())?;
    let planned = planned.map_err(|error| of_run(Call::Ct, error))?;
    let method = planned.options().method.about().name;
    let plan = plan_of(py, Call::Ct, method, planned.plan(), planned.cut(), planned.notes())?;
    set_shape(&plan, Some(planned.options().grid.shape_zyx().to_vec()))?;
    Ok(plan)
}

/// What a caller wants of a run.
struct Wanted {
    request: Request,
    place: ComputeTarget,
    /// The files of the scan.
    sources: Vec<PathBuf>,
}

impl Wanted {
    /// From the arguments of a call.
    fn of(
        scan: &Bound<'_, PyAny>,
        method: Option<&str>,
        device: &str,
        grid: Option<&Grid>,
        correct: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = scan.py();
        let (processor, beside) = Processor::several(device)?;
        let (input, sources) = input_of(scan)?;
        let keywords = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
        let mut given = Given::default();
        let settings = taken::<Ct>(&keywords, &mut given)?;
        if grid.is_some() && ["matrix", "voxel", "centre"].iter().any(|name| given.has(name)) {
            let found = "both";
            return Err(raised(Error::value("grid", "a grid, or matrix, voxel_mm and centre_mm", found)));
        }
        let method = asked(py, method, &keywords, &mut given)?;
        let mut request = Request {
            corrections: corrections_of(correct)?,
            grid: grid.map(|grid| grid.grid),
            method,
            given: given.clone(),
            ..Request::of(input)
        };
        settings.put(job::options(), &given, &mut request).map_err(|error| of_run(Call::Ct, error))?;
        let mut place = ComputeTarget::of(processor.device);
        place.beside = beside.into_iter().map(|processor| processor.device).collect();
        place.finish_on_cpu = device == "auto";
        Ok(Self { request, place, sources })
    }
}

/// Errors: a run that makes the volume slab by slab. The command writes such slabs; here the whole volume is
/// returned.
fn expect_whole(planned: &Planned<'_>) -> Result<(), RunError> {
    if !planned.is_cut() {
        return Ok(());
    }
    let volume = planned.options().grid.shape_zyx().iter().product::<usize>() * size_of::<f32>();
    let needed = number::bytes(planned.plan().peak() + volume as u64);
    let message = format!("volume: expected memory for all of it at once (at least {needed}), found less");
    let hint =
        "a larger --memory, or a smaller --matrix; rayspin recon ct --stream writes a volume slab by slab";
    Err(BadInput::new(message).hint(hint).into())
}
