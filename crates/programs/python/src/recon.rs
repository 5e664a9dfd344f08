//! `rayspin.recon`: reconstruction in memory, with the methods and parameters of the command.

use std::path::PathBuf;
use std::sync::Arc;

use ndarray::{ArrayD, Axis};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::slices::Stack;
use rayspin::core::{C32, Error, Geometry, Image};
use rayspin::device::cpu::expect_memory;
use rayspin::io::cfl::Layout;
use rayspin::io::{Modality, Origin, Protocol, Values, WriteOptions, bids};
use rayspin::job::ct::Ct;
use rayspin::job::mri::{self as job, Input, Mri, Request};
use rayspin::job::{ComputeTarget, Error as RunError};
use rayspin::mri::recon::{LAMBDA, Searched, Volume};
use rayspin::mri::scan::{Label, VOLUME_COUNTERS, in_time};
use rayspin::run::Given as Names;

use crate::ct::CtScan;
use crate::error::{described, of_file, of_run, raised, wrong_type};
use crate::exchange::{Dtype, to_numpy};
use crate::finished::{certificates_of, host_array, plan_of, set_shape, with_template};
use crate::keywords::keyword;
use crate::parameters::{asked, table_of, values_in};
use crate::processor::Processor;
use crate::progress::Listener;
use crate::record;
use crate::remade::{self, Parts, Reduced, Remade, layout_of, layout_parts};
use crate::scan::{Held, Scan, sources};
use crate::settings::{listed, taken};
use crate::signals::Detached;
use crate::words::Call;

/// The images of a scan and how they came about: what `rayspin.recon` returns.
#[pyclass(frozen, module = "rayspin")]
pub(crate) struct Reconstruction {
    /// The image, complex64 `[z, y, x]`, or `[volume, z, y, x]` of several `volumes`.
    /// `-> NDArray[np.complex64]`
    #[pyo3(get)]
    image: Py<PyAny>,
    /// Sensitivity maps `[coil, z, y, x]`, where the method used any and `keep_maps` is true.
    /// `-> NDArray[np.complex64] | MaybeNone`
    #[pyo3(get)]
    maps: Option<Py<PyAny>>,
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
    /// The relative residuals of each image that was solved for by iterations.
    /// `-> list[list[float]]`
    #[pyo3(get)]
    residuals: Vec<Vec<f64>>,
    /// The search of lambda_="auto", a dictionary; None without a search. Its "lambda_" is the weight that is
    /// used. The entry "inside" says whether other weights on both sides of it were tried; if not, it is the
    /// weight where the search began. The entry "tried" is a list of pairs, a weight and its error: -1 is the
    /// best prediction of the samples that were held out, and an image of zeros has 0.
    /// `-> dict[str, Any] | MaybeNone`
    #[pyo3(get)]
    searched: Option<Py<PyDict>>,
    /// What `certify` measured: for each transform a dictionary with "transform", "outputs", "error",
    /// "largest", "tolerance" and "met".
    /// `-> list[dict[str, Any]]`
    #[pyo3(get)]
    certificates: Vec<Py<PyDict>>,
    stacks: Vec<Stack>,
    shape: Vec<usize>,
    record: String,
    /// The files of its scan.
    sources: Vec<PathBuf>,
    /// Where its axes go in a BART array: to the dimensions that they came from.
    layout: Layout,
    /// Whether the images are coil images, not combined.
    of_coils: bool,
    /// The volumes, as the labels of their slices 0; none of coefficients and coil images.
    labels: Vec<Label>,
    /// What the scan tells of the acquisition, where it has a header.
    protocol: Option<Arc<Protocol>>,
    /// The time from volume to volume in s, where it is known.
    repetition_time_s: Option<f64>,
}

/// The parts of complex numbers that are files under names of BIDS.
fn parts_of_bids(phase: bool) -> &'static [Values] {
    if phase { &[Values::Magnitude, Values::Phase] } else { &[Values::Magnitude] }
}

/// The geometry of all slices of an image. Errors: several stacks of slices.
pub(crate) fn geometry_of(stacks: &[Stack]) -> PyResult<&Geometry> {
    match stacks {
        [one] => Ok(&one.geometry),
        several => {
            let expected = "one stack of slices (`stacks` has the place of each)";
            Err(raised(Error::value("slices of the image", expected, several.len())))
        }
    }
}

/// The stacks of slices for Python, a dictionary each.
pub(crate) fn stacks_of<'py>(py: Python<'py>, stacks: &[Stack]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let stack = |stack: &Stack| {
        let fields = PyDict::new(py);
        fields.set_item("slices", stack.slices)?;
        fields.set_item("spacing_mm", stack.geometry.spacing_mm)?;
        fields.set_item("position_mm", stack.geometry.position_mm)?;
        fields.set_item("directions", directions(&stack.geometry))?;
        Ok(fields)
    };
    stacks.iter().map(stack).collect()
}

#[pymethods]
impl Reconstruction {
    /// The run record, as the command writes it: program, version, device, parameters, stages, residuals,
    ///     notes.
    /// `-> dict[str, Any]`
    #[getter]
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        record::read(py, &self.record)
    }

    /// Voxel size along x, y and z in mm. Raises ValueError where slices are several `stacks`, as the other
    /// places do.
    /// `-> list[float]`
    #[getter]
    fn spacing_mm(&self) -> PyResult<[f64; 3]> {
        Ok(geometry_of(&self.stacks)?.spacing_mm)
    }

    /// The centre of the centre voxel (index n/2 along each axis) in the patient's coordinates (LPS) in mm.
    /// `-> list[float]`
    #[getter]
    fn position_mm(&self) -> PyResult<[f64; 3]> {
        Ok(geometry_of(&self.stacks)?.position_mm)
    }

    /// Unit vectors along x, y and z in the patient's coordinates (LPS).
    /// `-> list[list[float]]`
    #[getter]
    fn directions(&self) -> PyResult<[[f64; 3]; 3]> {
        Ok(directions(geometry_of(&self.stacks)?))
    }

    /// The stacks of slices along z, in order: for each a dictionary with "slices" (their number),
    /// "spacing_mm", "position_mm" and "directions". They are several where slices differ in direction, or do
    /// not lie behind each other at one distance.
    /// `-> list[dict[str, Any]]`
    #[getter]
    fn stacks<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        stacks_of(py, &self.stacks)
    }

    /// The volumes along the first axis of `image`, in order: a dictionary each with the scan's counters
    /// "set", "cardiac_phase", "repetition" and "contrast". With `window` the repetitions count the windows.
    /// The list is empty for coefficients of a basis and for coil images.
    /// `-> list[dict[str, int]]`
    #[getter]
    fn volumes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        volumes_of(py, &self.labels)
    }

    /// Writes `image`, as it stands now, in the format of the file's name (`.nii.gz`, `.npy`, `.png`), any
    /// that `rayspin convert` writes.
    ///
    /// Several `stacks` become a file each, image_1.nii.gz and so on. Arrays and TIFF hold all slices in one
    /// file. Returns notes on what the format cannot hold, such as the phase.
    ///
    /// bids: NIfTI with names of BIDS: a file for each contrast and set, and a .json that tells the sequence.
    /// phase: the phase in rad in place of complex numbers or magnitudes; with bids beside the magnitudes.
    /// dicom_template: a DICOM file whose patient and study a .dicom takes over; by default it names none.
    ///
    /// Raises ValueError for a name of no format that holds images, for a file from which the scan was read
    /// and for a file that is no template, OSError (FileNotFoundError, PermissionError) for a file that
    /// cannot be written.
    ///
    /// `(path: str | PathLike[str], *, bids: bool, phase: bool, dicom_template: str | PathLike[str] | None)
    /// -> list[str]`
    #[pyo3(signature = (path, *, bids=false, phase=false, dicom_template=None))]
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        bids: bool,
        phase: bool,
        dicom_template: Option<PathBuf>,
    ) -> PyResult<Vec<String>> {
        let origin = Origin { protocol: self.protocol.clone(), ..Origin::measured(Modality::Mr) };
        let origin = with_template(Call::Recon, &path, origin, dicom_template)?;
        if bids && self.labels.is_empty() {
            return Err(raised(Error::value("bids", "images", "coil images or coefficients")));
        }
        let image = Image::of_stacks(host_array::<C32>("image", self.image.bind(py))?, self.stacks.clone())
            .map_err(raised)?;
        let written = py.detached(|| -> Result<Vec<String>, rayspin::io::Error> {
            let nothing = Protocol::default();
            let protocol = self.protocol.as_deref().unwrap_or(&nothing);
            let files = match bids {
                true => {
                    let (stacks, parts) = (self.stacks.len(), parts_of_bids(phase));
                    let files = bids::files(&path, &self.labels, stacks, parts, protocol)?;
                    files.into_iter().flat_map(|file| [file.sidecar(), file.path]).collect()
                }
                false => rayspin::io::stack_paths(&path, self.stacks.len())?,
            };
            rayspin::io::expect_apart(&self.sources, &files.iter().collect::<Vec<_>>())?;
            if bids {
                let step = self.repetition_time_s;
                return bids::write_image(&path, &image, &self.labels, parts_of_bids(phase), protocol, step);
            }
            let format = rayspin::io::Format::of_name(&path);
            if self.of_coils && !phase && format.is_some_and(rayspin::io::Format::writes_arrays) {
                rayspin::io::write_coil_array(&path, image.data().view(), self.layout)?;
                return Ok(Vec::new());
            }
            let volumes = self.labels.clone();
            let options = WriteOptions {
                layout: self.layout,
                repetition_time_s: self.repetition_time_s.filter(|_| in_time(&volumes)),
                volumes,
                values: phase.then_some(Values::Phase),
                origin,
                ..WriteOptions::default()
            };
            let mut notes = rayspin::io::write_image(&path, &image, &options)?;
            if self.of_coils && !format.is_some_and(rayspin::io::Format::is_picture) {
                notes.push("coils lie along the axis of repetitions".to_owned());
            }
            Ok(notes)
        });
        let notes = written?.map_err(|error| of_file(Call::Recon, &error))?;
        Ok(notes.iter().map(|note| Call::Recon.told(note)).collect())
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

impl Remade for Reconstruction {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (parts, own) = (PyDict::new(object.py()), object.get());
        parts.set_item("image", &own.image)?;
        parts.set_item("maps", &own.maps)?;
        parts.set_item("stacks", remade::stacks_of(&own.stacks))?;
        parts.set_item("method", &own.method)?;
        parts.set_item("parameters", &own.parameters)?;
        parts.set_item("notes", &own.notes)?;
        parts.set_item("stages", &own.stages)?;
        parts.set_item("residuals", &own.residuals)?;
        parts.set_item("searched", &own.searched)?;
        parts.set_item("certificates", &own.certificates)?;
        parts.set_item("record", &own.record)?;
        parts.set_item("sources", own.sources.iter().map(|file| file.as_os_str()).collect::<Vec<_>>())?;
        parts.set_item("layout", layout_parts(&own.layout))?;
        parts.set_item("of_coils", own.of_coils)?;
        let counters = |label: &Label| VOLUME_COUNTERS.map(|(_, counter)| counter(label));
        parts.set_item("volumes", own.labels.iter().map(counters).collect::<Vec<_>>())?;
        let protocol = own.protocol.as_deref().map(serde_json::to_string).transpose();
        parts.set_item("protocol", protocol.map_err(unreadable)?)?;
        parts.set_item("repetition_time_s", own.repetition_time_s)?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (image, shape) = parts.image("image", &[Dtype::C64])?;
        let protocol = parts.get::<Option<String>>("protocol")?;
        let protocol = protocol.map(|text| serde_json::from_str::<Protocol>(&text));
        let reconstruction = Self {
            image: image.unbind(),
            maps: parts.get("maps")?,
            stacks: parts.stacks(&shape)?,
            shape,
            method: parts.get("method")?,
            parameters: parts.get("parameters")?,
            notes: parts.get("notes")?,
            stages: parts.get("stages")?,
            residuals: parts.get("residuals")?,
            searched: parts.get("searched")?,
            certificates: parts.get("certificates")?,
            record: parts.get("record")?,
            sources: parts.get("sources")?,
            layout: layout_of(parts.get("layout")?)?,
            of_coils: parts.get("of_coils")?,
            labels: parts.get::<Vec<[u16; 4]>>("volumes")?.into_iter().map(label_of).collect(),
            protocol: protocol.transpose().map_err(unreadable)?.map(Arc::new),
            repetition_time_s: parts.get("repetition_time_s")?,
        };
        Ok(Bound::new(parts.python(), reconstruction)?.into_any())
    }
}

fn unreadable(error: serde_json::Error) -> PyErr {
    raised(Error::value("protocol", "that of a scan", error))
}

/// The counters of volumes, a dictionary each.
fn volumes_of<'py>(py: Python<'py>, labels: &[Label]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let volume = |label: &Label| {
        let counters = PyDict::new(py);
        for (name, counter) in VOLUME_COUNTERS {
            counters.set_item(name.replace(' ', "_"), counter(label))?;
        }
        Ok(counters)
    };
    labels.iter().map(volume).collect()
}

/// The volume with these counters, in the order of [`VOLUME_COUNTERS`].
fn label_of([set, phase, repetition, contrast]: [u16; 4]) -> Label {
    Label { set, phase, repetition, contrast, ..Label::default() }
}

pub(crate) fn directions(geometry: &Geometry) -> [[f64; 3]; 3] {
    [geometry.read_dir, geometry.phase_dir, geometry.slice_dir]
}

/// The methods of reconstruction and their parameters, which are keywords of `recon`.
///
/// Returns a dictionary by the methods' names. A value is what the method does, and a dictionary by the names
/// of its parameters, whose values have "kind" (number, count, choice or image), "default" (None: the method
/// finds its own), "range" and "help".
///
/// `() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]`
#[pyfunction]
pub(crate) fn methods(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let methods = PyDict::new(py);
    for method in job::methods().iter() {
        methods.set_item(method.about().name, (method.about().help, table_of(py, Call::Recon, method)?))?;
    }
    Ok(methods)
}

/// Images x from the samples d of a scan: for most methods the minimum of |F x - d|^2 plus a penalty, with F
/// the encoding by coils and k-space. `rayspin.methods()` says what each method minimises or computes.
///
/// scan: from `read_scan`, `Scan.from_arrays` or `simulate.mri`, or the path of a file, which is then read as
///     the run needs it: volumes and windows one after another, and image by image what does not fit
///     `memory`.
/// method: a name of `rayspin.methods()`; the one that suits the scan unless given, which `notes` say.
/// device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU. "cuda:all" and
///     "cuda:0,2" are several GPUs: the images of a scan go to them, or the coils of each image where images
///     are fewer than GPUs, or too large for one.
/// keep_maps: False leaves out the result's `maps`, which take time and memory for large volumes.
/// progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
/// client: a `distributed.Client`. Its cluster then makes the images, a task for each group of slices;
///     `rayspin.dask.recon` is the same with more arguments. `device` names the device of each worker, and
///     "auto" takes the worker's own. `memory` limits each worker, and `progress` is called for tasks.
/// options: keywords that say what is reconstructed and how, listed below, and parameters of the method, as
///     `rayspin.methods()` lists them. lambda_="auto" searches for the weight whose image best predicts
///     samples that were held out.
///
/// Returns a `Reconstruction`: `image` is complex64 `[z, y, x]`, or `[volume, z, y, x]`, signal per field
/// of view.
///
/// Arrays of NumPy, CuPy and torch, and lists, are copied; numbers of another precision are converted to
/// complex64 (maps), float32 (field_map) and complex128 (noise_covariance).
///
/// Raises TypeError for a keyword that the method lacks or a value of another type. Raises ValueError for a
/// method, shape, number of coils or value that does not fit the scan. Raises MemoryError where memory is
/// short, KeyboardInterrupt after Ctrl-C, and the exceptions of `progress`. If `client` is given, it raises
/// ImportError where dask.distributed is not installed, TypeError for what is no client, and TimeoutError
/// where no worker has a device that works.
///
/// >>> import rayspin
/// >>> scan = rayspin.simulate.mri(matrix=(32, 32), coils=2, trajectory="radial").scan
/// >>> found = rayspin.recon(scan, "cg-sense", iterations=5, device="cpu")
/// >>> found.image.shape, found.image.dtype, found.maps.shape
/// ((1, 32, 32), dtype('complex64'), (2, 1, 32, 32))
///
/// `(scan: Scan | str | PathLike[str], method: str | None, *, device: str, keep_maps: bool, progress: Heard,
/// client: Any, **options: Any) -> Reconstruction`
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
#[pyo3(
    signature = (scan, method=None, *, device="auto", keep_maps=true, progress=None, client=None, **options)
)]
pub(crate) fn recon<'py>(
    py: Python<'py>,
    scan: &Bound<'py, PyAny>,
    method: Option<&str>,
    device: &str,
    keep_maps: bool,
    progress: Option<Py<PyAny>>,
    client: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, Reconstruction>> {
    if let Some(client) = client {
        let options = options.map_or_else(|| PyDict::new(py), Clone::clone);
        let given = (scan, method, client, device, keep_maps, progress, options);
        return Ok(py.import("rayspin.dask")?.call_method1("_of_recon", given)?.cast_into()?);
    }
    Bound::new(py, here(scan, method, device, keep_maps, progress, options)?)
}

/// [`recon`] in this process.
fn here(
    scan: &Bound<'_, PyAny>,
    method: Option<&str>,
    device: &str,
    keep_maps: bool,
    progress: Option<Py<PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Reconstruction> {
    let py = scan.py();
    let words = Call::Recon;
    let mut wanted = Wanted::of(scan, method, device, options)?;
    wanted.request.options.keep_maps = keep_maps;
    let Wanted { request, place, sources } = wanted;
    let (listener, recorder) = (Listener::new(py, progress)?, record::start(&place.device));
    let monitor = listener.monitor();
    let finished = listener.run(py, || {
        let planned = request.begin(place, monitor, recorder)?.read()?.choose()?.plan()?;
        let step_s = planned.stream().and_then(|stream| stream.step_s);
        let mut collected =
            Collected { frames: planned.stream().map_or(1, |stream| stream.frames), image: None };
        let mut finished = planned.run::<RunError>(&mut |volume| Ok(collected.push(volume)?))?;
        finished.image = finished.image.or(collected.image);
        finished.record()?;
        Ok::<_, RunError>((finished, step_s))
    });
    let (finished, repetition_time_s) = finished?.map_err(|error| of_run(words, error))?;
    let used = values_in(py, &*finished.options.method)?;
    let name = finished.options.method.about().name;
    let mut notes: Vec<String> = finished.told.notes.iter().map(|note| words.told(note)).collect();
    let measured = &finished.certificates;
    let certificates = certificates_of(py, measured, |one| job::name_of(one, measured), &mut notes)?;
    let missing = || raised(Error::value("images", "those of the scan", "none"));
    let image = finished.image.ok_or_else(missing)?;
    let stacks = image.stacks();
    let image = image.into_data();
    let of_coils = finished.options.coil_images();
    Ok(Reconstruction {
        record: record::with_notes(finished.told.recorder, &notes)?,
        stacks,
        shape: image.shape().to_vec(),
        image: to_numpy(py, image).unbind(),
        maps: finished.maps.map(|maps| to_numpy(py, maps).unbind()),
        method: name.to_owned(),
        parameters: used.unbind(),
        notes,
        stages: finished.told.monitor.stages(),
        residuals: finished.solves.into_iter().map(|solve| solve.residuals).collect(),
        searched: finished.searched.map(|searched| found_by_search(py, searched)).transpose()?,
        certificates,
        sources,
        layout: finished.layout,
        of_coils,
        protocol: finished.protocol,
        repetition_time_s,
        labels: if of_coils || finished.options.basis.is_some() { Vec::new() } else { finished.labels },
    })
}

/// What `recon` will take with the same arguments: its method, and the memory and work of each stage. Nothing
/// is computed.
///
/// scan, method, device, options: as `rayspin.recon` takes them.
///
/// Returns a dictionary with "method" and "notes". Its "cut" says how the run is taken in parts. Its "shape"
/// has the axes of the image; it is None for coil images and several sets of maps. Its "slices" is the number
/// of slices that are measured apart, and its "volumes" and "parameters" are those of a `Reconstruction`. Its
/// "memory" and "gpu_memory" are the bytes that the process and arrays on the GPU take at most. Its "stages"
/// is a list of dictionaries with "name", "memory", "gpu_memory", "transforms", "iterations", "flops" and
/// "traffic" (bytes). Raises as `rayspin.recon` does.
///
/// >>> import rayspin
/// >>> scan = rayspin.simulate.mri(matrix=(32, 32), coils=2, trajectory="radial").scan
/// >>> plan = rayspin.plan(scan, "cg-sense", device="cpu")
/// >>> plan["method"], plan["cut"], plan["memory"] > 0
/// ('cg-sense', '1 image', True)
///
/// `(scan: Scan | str | PathLike[str], method: str | None, *, device: str, **options: Any) -> dict[str, Any]`
#[pyfunction]
#[pyo3(name = "plan_recon", signature = (scan, method=None, *, device="auto", **options))]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    scan: &Bound<'py, PyAny>,
    method: Option<&str>,
    device: &str,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let Wanted { mut request, place, .. } = Wanted::of(scan, method, device, options)?;
    request.dry_run = true;
    let (listener, recorder) = (Listener::silent(), record::start(&place.device));
    let monitor = listener.monitor();
    let planned = listener.run(py, || request.begin(place, monitor, recorder)?.read()?.choose()?.plan())?;
    let planned = planned.map_err(|error| of_run(Call::Recon, error))?;
    let plan = plan_of(py, Call::Recon, planned.method(), planned.plan(), planned.cut(), planned.notes())?;
    set_shape(&plan, planned.image_shape())?;
    plan.set_item("slices", planned.slices())?;
    plan.set_item("parameters", values_in(py, &*planned.options().method)?)?;
    let labels = if planned.is_of_volumes() { planned.labels() } else { Vec::new() };
    plan.set_item("volumes", volumes_of(py, &labels)?)?;
    Ok(plan)
}

/// The arguments of a run.
pub(crate) struct Wanted {
    pub(crate) request: Request,
    pub(crate) place: ComputeTarget,
    /// The files of the scan.
    pub(crate) sources: Vec<PathBuf>,
}

impl Wanted {
    /// From the arguments of a call.
    pub(crate) fn of(
        scan: &Bound<'_, PyAny>,
        method: Option<&str>,
        device: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = scan.py();
        let (processor, beside) = Processor::several(device)?;
        let (input, sources) = input_of(scan)?;
        let keywords = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
        let mut given = Names::default();
        let settings = taken::<Mri>(&keywords, &mut given)?;
        let method = asked(py, method, &keywords, &mut given)?;
        let mut request = Request { collects: true, method, given: given.clone(), ..Request::of(input) };
        settings.put(job::options(), &given, &mut request).map_err(|error| of_run(Call::Recon, error))?;
        let mut place = ComputeTarget::of(processor.device);
        place.beside = beside.into_iter().map(|processor| processor.device).collect();
        place.finish_on_cpu = device == "auto";
        Ok(Self { request, place, sources })
    }
}

/// The keywords of `recon` and `ct.recon` that its table of options has.
///
/// `(kind: str) -> dict[str, dict[str, Any]]`
#[pyfunction]
pub(crate) fn recon_options<'py>(py: Python<'py>, kind: &str) -> PyResult<Bound<'py, PyDict>> {
    match kind {
        "ct" => listed::<Ct>(py, Call::Ct),
        _ => listed::<Mri>(py, Call::Recon),
    }
}

/// The scan of a run, and its files. Errors: a `TypeError` for an argument that is no scan. It names what
/// makes one.
fn input_of(scan: &Bound<'_, PyAny>) -> PyResult<(Input, Vec<PathBuf>)> {
    if let Ok(path) = scan.extract::<PathBuf>() {
        let files = sources(std::iter::once(&path));
        return Ok((Input::File(path), files));
    }
    if let Ok(scan) = scan.cast::<Scan>() {
        let scan = scan.get();
        let input = match &*scan.held {
            Held::Whole(scan) => Input::Scan(scan.clone()),
            Held::Image(array) => Input::Image(array.clone()),
        };
        return Ok((input, scan.sources.clone()));
    }
    let remedy = match scan.cast::<CtScan>() {
        Ok(_) => "rayspin.ct.Scan; rayspin.ct.recon takes it".to_owned(),
        Err(_) => {
            format!(
                "{}; rayspin.read_scan reads one from a file, Scan.from_arrays makes one",
                described(scan)
            )
        }
    };
    Err(wrong_type("scan", "a rayspin.Scan, or the path of a file", remedy))
}

/// The volumes of a stream as one image.
struct Collected {
    frames: usize,
    image: Option<Image>,
}

impl Collected {
    fn push(&mut self, volume: Volume) -> rayspin::core::Result<()> {
        if self.frames == 1 {
            self.image = Some(Image::of_stacks(volume.data, volume.stacks)?);
            return Ok(());
        }
        let mut images = match self.image.take() {
            Some(image) => image.into_data(),
            None => {
                let shape = [&[self.frames], volume.data.shape()].concat();
                expect_memory("images", (shape.iter().product::<usize>() * size_of::<C32>()) as u64)?;
                ArrayD::zeros(shape)
            }
        };
        images.index_axis_mut(Axis(0), volume.index).assign(&volume.data);
        self.image = Some(Image::of_stacks(images, volume.stacks)?);
        Ok(())
    }
}

fn found_by_search(py: Python<'_>, searched: Searched) -> PyResult<Py<PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item(keyword(LAMBDA), searched.lambda)?;
    fields.set_item("inside", searched.inside)?;
    fields.set_item(
        "tried",
        searched.tried.iter().map(|[lambda, error]| (*lambda, *error)).collect::<Vec<_>>(),
    )?;
    Ok(fields.unbind())
}
