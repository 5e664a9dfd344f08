//! `rayspin.recon`: reconstruction in memory, with the methods and parameters of the command.

mod keywords;

use std::path::PathBuf;
use std::sync::Arc;

use ndarray::{ArrayD, Axis};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::slices::Stack;
use rayspin::core::{C32, Error, Geometry, Image};
use rayspin::device::cpu::expect_memory;
use rayspin::io::WriteOptions;
use rayspin::io::cfl::Layout;
use rayspin::job::asked::{Asked, Typed};
use rayspin::job::mri::{self as job, Beside, Input, Mri, Request};
use rayspin::job::{Error as RunError, Place};
use rayspin::mri::methods::{Method, Value};
use rayspin::mri::recon::{Density, LAMBDA, Searched, Selection, Volume};
use rayspin::mri::scan::{Centres, ReversedCentre, TrajectoryFov, TrajectoryOptions};

use self::keywords::{
    Names, counter, estimation, numbers, one_of, searched_lambda, small_counter, window_of,
};
use crate::call::Detached;
use crate::copied::{complex, count, singles, whole_or_none};
use crate::ct::CtScan;
use crate::error::{described, of_file, of_run, raised, raised_of, wrong_type};
use crate::exchange::{Given, Item, on_host, to_numpy};
use crate::parameters::{asked_with, keyword, named, parameters_of, table_of, values_in};
use crate::processor::Processor;
use crate::progress::Listener;
use crate::record;
use crate::scan::{Held, Scan, sources};
use crate::texts::Call;

/// The images of a scan and how they came about: what `rayspin.recon` returns.
#[pyclass(frozen, module = "rayspin")]
pub(crate) struct Reconstruction {
    /// The image, complex64 `[z, y, x]`, or `[repetition, z, y, x]` of several.
    #[pyo3(get)]
    image: Py<PyAny>,
    /// Sensitivity maps `[coil, z, y, x]`, where the method used any and `keep_maps` is true.
    #[pyo3(get)]
    maps: Option<Py<PyAny>>,
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
    /// The relative residuals of each image that was solved for by iterations.
    #[pyo3(get)]
    residuals: Vec<Vec<f64>>,
    /// The search of lambda_="auto", a dictionary; None without a search. "lambda_" is the weight that is used. "inside" says whether other weights on both
    /// sides of it were tried; if not, it is the weight where the search began. "tried" is a list of pairs, a weight and its error: -1 is the best
    /// prediction of the samples that were held out, and an image of zeros has 0.
    #[pyo3(get)]
    searched: Option<Py<PyDict>>,
    stacks: Vec<Stack>,
    shape: Vec<usize>,
    record: String,
    /// The files of its scan.
    sources: Vec<PathBuf>,
    /// Where its axes go in a BART array: to the dimensions that they came from.
    layout: Layout,
    /// Whether the images are coil images, not combined.
    of_coils: bool,
}

impl Reconstruction {
    /// The geometry of all slices. Errors: several stacks of slices.
    fn geometry(&self) -> PyResult<&Geometry> {
        match &self.stacks[..] {
            [one] => Ok(&one.geometry),
            several => {
                let expected = "one stack of slices (`stacks` has the place of each)";
                Err(raised(Error::value("slices of the image", expected, several.len())))
            }
        }
    }
}

#[pymethods]
impl Reconstruction {
    /// The run record, as the command writes it: program, version, device, parameters, stages, residuals, notes.
    #[getter]
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        record::read(py, &self.record)
    }

    /// Voxel size along x, y and z in mm. Raises ValueError where slices are several `stacks`, as the other places do.
    #[getter]
    fn spacing_mm(&self) -> PyResult<[f64; 3]> {
        Ok(self.geometry()?.spacing_mm)
    }

    /// The centre of the centre voxel (index n/2 along each axis) in the patient's coordinates (LPS) in mm.
    #[getter]
    fn position_mm(&self) -> PyResult<[f64; 3]> {
        Ok(self.geometry()?.position_mm)
    }

    /// Unit vectors along x, y and z in the patient's coordinates (LPS).
    #[getter]
    fn directions(&self) -> PyResult<[[f64; 3]; 3]> {
        Ok(directions(self.geometry()?))
    }

    /// The stacks of slices along z, in order: for each a dictionary with "slices" (their number), "spacing_mm", "position_mm" and
    /// "directions". They are several where slices differ in direction, or do not lie behind each other at one
    /// distance.
    #[getter]
    fn stacks<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let stack = |stack: &Stack| {
            let of = PyDict::new(py);
            of.set_item("slices", stack.slices)?;
            of.set_item("spacing_mm", stack.geometry.spacing_mm)?;
            of.set_item("position_mm", stack.geometry.position_mm)?;
            of.set_item("directions", directions(&stack.geometry))?;
            Ok(of)
        };
        self.stacks.iter().map(stack).collect()
    }

    /// Writes `image`, as it stands now, in the format of the file's name: .nii, .nii.gz, .npy, .h5, .cfl, .mha, .tif, .png and others.
    ///
    /// Several `stacks` become a file each: image_1.nii.gz and so on; arrays and TIFF hold all slices in one. Returns notes on what the format cannot hold, such as the phase.
    /// Raises ValueError for a name of no format that holds images and for a file from which the scan was read, OSError
    /// (FileNotFoundError, PermissionError) for a file that cannot be written.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
        let image = Image::of_stacks(host_array::<C32>("image", self.image.bind(py))?, self.stacks.clone())
            .map_err(raised)?;
        let written = py.detached(|| -> Result<Vec<String>, rayspin::io::Error> {
            let files = rayspin::io::stack_paths(&path, self.stacks.len())?;
            rayspin::io::expect_apart(&self.sources, &files.iter().collect::<Vec<_>>())?;
            let format = rayspin::io::Format::of_name(&path);
            if self.of_coils && format.is_some_and(rayspin::io::Format::writes_arrays) {
                rayspin::io::write_coil_array(&path, image.data().view(), self.layout)?;
                return Ok(Vec::new());
            }
            let options = WriteOptions { layout: self.layout, ..WriteOptions::default() };
            let mut notes = rayspin::io::write_image(&path, &image, &options)?;
            if self.of_coils && !format.is_some_and(rayspin::io::Format::is_picture) {
                notes.push("coils lie along the axis of repetitions".to_owned());
            }
            Ok(notes)
        });
        let notes = written?.map_err(|error| of_file(Call::Recon, &error))?;
        Ok(notes.iter().map(|note| Call::Recon.told(note)).collect())
    }

    /// The picture and the notes, for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("rayspin._html")?.call_method1("html", (slf,))
    }

    fn __repr__(&self) -> String {
        format!("Reconstruction({} by {})", rayspin::core::format_shape(&self.shape), self.method)
    }
}

fn directions(geometry: &Geometry) -> [[f64; 3]; 3] {
    [geometry.read_dir, geometry.phase_dir, geometry.slice_dir]
}

/// The methods of reconstruction and their parameters, which are keywords of `recon`.
///
/// Returns a dictionary by the methods' names. A value is what the method does, and a dictionary by the names of its parameters, whose
/// values have "kind" (number, count, choice or image), "default" (None: the method finds its own), "range" and "help".
#[pyfunction]
pub(crate) fn methods(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for method in job::methods().iter() {
        all.set_item(method.about().name, (method.about().help, table_of(py, Call::Recon, method)?))?;
    }
    Ok(all)
}

/// Images x from the samples d of a scan: for most methods the minimum of |F x - d|^2 plus a penalty, with F the encoding by coils and
/// k-space. `rayspin.methods()` says what each method minimises or computes.
///
/// scan: from `read_scan`, `Scan.from_arrays` or `simulate.mri`, or the path of a file, which is then read as the run needs it: repetitions
///     and windows one after another, and image by image what does not fit `memory`. Its matrix is the image's.
/// method: a name of `rayspin.methods()`; the one that suits the scan unless given, which `notes` say.
/// device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU.
/// maps: coil sensitivities `[coil, z, y, x]` or `[coil, y, x]` on the scan's matrix, in place of estimated ones.
/// field_map: the field's deviation `[z, y, x]` or `[y, x]` in Hz, whose off-resonance is then corrected; the scan needs times.
/// prewhiten: whether the noise that the scan measured whitens the coils.
/// noise_covariance: `[coil, coil]`, whitens in place of the scan's own noise.
/// coils: compresses to that many coils; a number below 1 is the part of the energy that stays.
/// nufft_tolerance: the relative error of non-uniform transforms.
/// centre_line, centre_partition: the line and the partition at the centre of k-space, as `kspace_encode_step_1` and `_2` count, in place of the
/// header's.
/// reversed_centre: how `center_sample` counts the samples of reversed readouts: "stored", or "forward" as Siemens' scanners do; as the readouts
/// tell unless given.
/// trajectory_units: of the points of the scan, as `Scan.from_arrays` takes them.
/// trajectory_fov: the field of view, "encoded" or "recon", of points in cycles per field of view; as the points tell unless given.
/// trajectory_weights: whether the last column of the scan's trajectory holds density weights, which are left out.
/// encoding, contrast, cardiac_phase, set: the number of the encoding, contrast and so on to reconstruct; the first unless given.
/// slices, repetitions: only these, by their numbers in the scan from 0: one number or several. Images come in the order of the scan.
/// readouts: only these of each image of a scan with a header, counted from 0 in order of acquisition: one number or several.
/// window: the number of readouts of an image, taken in order of acquisition and across repetitions, as for golden angles.
/// stride: the readouts from one window to the next; the window unless given, so that no readout is in two images.
/// windows: the number of windows; all that the readouts fill unless given.
/// calibration: the width of the centre of k-space that maps are estimated from, at most the fully sampled width; 24 unless given.
/// sensitivities: how maps are estimated, "walsh" or "espirit"; espirit on a grid and walsh along a trajectory unless given.
/// map_sets: the number of sets of ESPIRiT maps, 1 or 2. Unless given, 2 on a grid where the object is larger than the field of view, else 1.
/// map_crop: the eigenvalue below which ESPIRiT maps are 0; 0.8 unless given.
/// density: how samples along a trajectory are weighed to grid them and to estimate maps, "pipe-menon" for any trajectory (the default), or "radial",
/// the ramp of straight spokes.
/// field_tolerance: the largest error of the phases of `field_map`, which decides the number of time segments; 1e-4 unless given.
/// compression: how `coils` are compressed, "svd" by the principal components of all samples (the default), or "geometric" by those at each position
/// along the readout.
/// independent: whether maps, and the largest eigenvalue that lambda_ is relative to, are found anew for each repetition; else once for all.
/// memory: the bytes that this process may take. The run takes its work in parts to fit; if nothing fits, the error states what it needs.
/// keep_maps: False leaves out the result's `maps`, which take time and memory for large volumes.
/// progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
/// parameters: keywords of the method, as `rayspin.methods()` lists them. lambda_="auto" searches for the weight whose image best predicts
///     samples that were held out.
///
/// Returns a `Reconstruction`: `image` is complex64 `[z, y, x]`, or `[repetition, z, y, x]`, signal per field of view.
///
/// Arrays of NumPy, CuPy and torch, and lists, are copied; numbers of another precision are converted to complex64 (maps), float32
/// (field_map) and complex128 (noise_covariance).
///
/// Raises TypeError for a keyword that the method has not or a value of another type. Raises ValueError for a method, shape, number of coils or
/// value that does not fit the scan. Raises MemoryError where memory is short, KeyboardInterrupt after Ctrl-C, and the exceptions of
/// `progress`.
///
/// >>> import rayspin
/// >>> scan = rayspin.simulate.mri(matrix=(32, 32), coils=2, trajectory="radial").scan
/// >>> found = rayspin.recon(scan, "cg-sense", iterations=5, device="cpu")
/// >>> found.image.shape, found.image.dtype, found.maps.shape
/// ((1, 32, 32), dtype('complex64'), (2, 1, 32, 32))
#[pyfunction]
#[pyo3(signature = (
    scan, method=None, *, device="auto", maps=None, field_map=None, prewhiten=true, noise_covariance=None, coils=None,
    nufft_tolerance=None, centre_line=None, centre_partition=None, reversed_centre=None, trajectory_units=None, trajectory_fov=None,
    trajectory_weights=false, encoding=None, slices=None, repetitions=None, contrast=None, cardiac_phase=None, set=None, readouts=None, window=None, stride=None, windows=None,
    calibration=None, sensitivities=None, map_sets=None, map_crop=None, density=None, field_tolerance=None, compression=None, independent=false, memory=None, keep_maps=true, progress=None, **parameters
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn recon(
    py: Python<'_>,
    scan: &Bound<'_, PyAny>,
    method: Option<&str>,
    device: &str,
    maps: Option<&Bound<'_, PyAny>>,
    field_map: Option<&Bound<'_, PyAny>>,
    prewhiten: bool,
    noise_covariance: Option<&Bound<'_, PyAny>>,
    coils: Option<f64>,
    nufft_tolerance: Option<f64>,
    centre_line: Option<i64>,
    centre_partition: Option<i64>,
    reversed_centre: Option<&str>,
    trajectory_units: Option<&str>,
    trajectory_fov: Option<&str>,
    trajectory_weights: bool,
    #[pyo3(from_py_with = whole_or_none)] encoding: Option<i64>,
    slices: Option<&Bound<'_, PyAny>>,
    repetitions: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = whole_or_none)] contrast: Option<i64>,
    #[pyo3(from_py_with = whole_or_none)] cardiac_phase: Option<i64>,
    #[pyo3(from_py_with = whole_or_none)] set: Option<i64>,
    readouts: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = whole_or_none)] window: Option<i64>,
    #[pyo3(from_py_with = whole_or_none)] stride: Option<i64>,
    #[pyo3(from_py_with = whole_or_none)] windows: Option<i64>,
    #[pyo3(from_py_with = whole_or_none)] calibration: Option<i64>,
    sensitivities: Option<&str>,
    #[pyo3(from_py_with = whole_or_none)] map_sets: Option<i64>,
    map_crop: Option<f64>,
    density: Option<&str>,
    field_tolerance: Option<f64>,
    compression: Option<&str>,
    independent: bool,
    #[pyo3(from_py_with = whole_or_none)] memory: Option<i64>,
    keep_maps: bool,
    progress: Option<Py<PyAny>>,
    parameters: Option<&Bound<'_, PyDict>>,
) -> PyResult<Reconstruction> {
    let words = Call::Recon;
    let processor = Processor::named(device)?;
    let (input, sources) = input_of(scan)?;
    let mut given = Names::default();
    let mut request = Request { collects: true, ..Request::of(input) };
    let conventions = [("stored", ReversedCentre::Stored), ("forward", ReversedCentre::Forward)];
    request.frames.centres = Centres {
        line: given.take("centre_line", counter("centre_line", centre_line)?),
        partition: given.take("centre_partition", counter("centre_partition", centre_partition)?),
        reversed: given.take("reversed_centre", one_of("reversed_centre", reversed_centre, &conventions)?),
    };
    request.selection = Selection {
        encoding: given.take("encoding", counter("encoding", encoding)?),
        slice: given.take("slice", numbers("slices", slices)?),
        repetition: given.take("repetition", numbers("repetitions", repetitions)?),
        contrast: given.take("contrast", small_counter("contrast", contrast)?),
        phase: given.take("cardiac_phase", small_counter("cardiac_phase", cardiac_phase)?),
        set: given.take("set", small_counter("set", set)?),
        window: given.take("window", window_of(window, stride, windows)?),
    };
    request.frames.readouts = given.take("readouts", numbers("readouts", readouts)?);
    let views = [("encoded", TrajectoryFov::Encoded), ("recon", TrajectoryFov::Recon)];
    let units = trajectory_units.map(str::parse).transpose();
    request.frames.units =
        given.take("traj_units", units.map_err(|error| raised_of("trajectory_units", error))?);
    request.frames.trajectory = TrajectoryOptions {
        weights: given.flag("traj_weights", trajectory_weights),
        fov: given.take("traj_fov", one_of("trajectory_fov", trajectory_fov, &views)?),
    };
    let of_trajectory = ["traj_units", "traj_fov", "traj_weights"].iter().any(|field| given.0.has(field));
    if matches!(request.input, Input::Image(_)) && of_trajectory {
        let expected = "a scan whose file holds a trajectory";
        return Err(raised(Error::value("trajectory keywords", expected, "arrays, or a grid")));
    }
    request.maps =
        maps.map(|maps| complex::<f32>("maps", maps)).transpose()?.map(|maps| Beside::Array(Arc::new(maps)));
    given.flag("maps", maps.is_some());
    request.field_map = match field_map {
        Some(map) => Some(Beside::Array(Arc::new(singles("field_map", "[z, y, x] or [y, x]", map)?))),
        None => None,
    };
    request.frames.times = given.flag("field_map", field_map.is_some());
    let options = &mut request.options;
    options.keep_maps = keep_maps;
    let calibration = calibration.map(|width| count("calibration", width)).transpose()?;
    options.calibration = given.take("calibration", calibration);
    options.sensitivities = estimation(sensitivities, map_sets, map_crop)?;
    let of_maps = [
        ("sensitivities", sensitivities.is_some()),
        ("map_sets", map_sets.is_some()),
        ("map_crop", map_crop.is_some()),
    ];
    for (name, there) in of_maps {
        given.flag(name, there);
    }
    options.independent = given.flag("independent", independent);
    let tolerance = given.take("epsilon", nufft_tolerance);
    options.nufft_tolerance = tolerance.unwrap_or(options.nufft_tolerance);
    options.prepare.prewhiten = !given.flag("no_prewhiten", !prewhiten);
    options.prepare.compression = given.take("coils", keywords::compression(coils, compression)?);
    let densities = [("pipe-menon", Density::PipeMenon), ("radial", Density::Radial)];
    let density = given.take("density", one_of("density", density, &densities)?);
    options.density = density.unwrap_or(options.density);
    if let Some(tolerance) = field_tolerance {
        if field_map.is_none() {
            return Err(raised(Error::value("field_tolerance", "field_map= beside it", "none")));
        }
        options.field_tolerance = tolerance;
    }
    if let Some(covariance) = given.take("noise_covariance", noise_covariance) {
        let covariance = complex::<f64>("noise_covariance", covariance)?;
        let found = rayspin::core::format_shape(covariance.shape());
        let wrong = |_| {
            raised(Error::Shape { what: "noise_covariance".into(), expected: "[coil, coil]".into(), found })
        };
        options.prepare.noise_covariance = Some(covariance.into_dimensionality().map_err(wrong)?);
    }
    let memory = memory.map(|bytes| count("memory", bytes)).transpose()?.map(|bytes| bytes as u64);
    let place = Place { finish_on_cpu: device == "auto", memory, ..Place::of(processor.device.clone()) };

    let all = job::methods();
    let asked = match method {
        Some(name) => asked_of(py, named(py, all, name)?, parameters, &mut given)?,
        None => asked_by_name(parameters),
    };
    (request.method, request.given) = (asked, given.0.clone());
    let listener = Listener::new(py, progress)?;
    let recorder = record::start(&processor.device);
    let monitor = listener.monitor();
    let mut understood = listener
        .run(py, || request.begin(place, monitor, recorder)?.read())?
        .map_err(|error| of_run(words, error))?;
    let chosen_by_scan = listener.run(py, || understood.method())?.map_err(|error| of_run(words, error))?;
    if method.is_none() {
        let asked = asked_of(py, chosen_by_scan, parameters, &mut given)?;
        understood.set_parameters(asked, given.0);
    }
    let finished = listener.run(py, || {
        let planned = understood.choose()?.plan()?;
        let mut collected =
            Collected { frames: planned.stream().map_or(1, |stream| stream.frames), image: None };
        let mut finished = planned.run::<RunError>(&mut |volume| Ok(collected.push(volume)?))?;
        finished.image = finished.image.or(collected.image);
        finished.record()?;
        Ok::<_, RunError>(finished)
    });
    let finished = finished?.map_err(|error| of_run(words, error))?;
    let used = values_in(py, &*finished.options.method)?;
    let name = finished.options.method.about().name;
    let notes: Vec<String> = finished.told.notes.iter().map(|note| words.told(note)).collect();
    let missing = || raised(Error::value("images", "those of the scan", "none"));
    let image = finished.image.ok_or_else(missing)?;
    let stacks = image.stacks();
    let image = image.into_data();
    Ok(Reconstruction {
        record: record::with_notes(finished.told.recorder, &notes)?,
        stacks,
        shape: image.shape().to_vec(),
        image: to_numpy(py, image).unbind(),
        maps: finished.maps.map(|maps| to_numpy(py, maps).unbind()),
        method: name,
        parameters: used.unbind(),
        notes,
        stages: finished.told.monitor.stages(),
        residuals: finished.solves.into_iter().map(|solve| solve.residuals).collect(),
        searched: finished.searched.map(|searched| found_by_search(py, searched)).transpose()?,
        sources,
        layout: finished.layout,
        of_coils: finished.options.coil_images(),
    })
}

/// The keywords of `recon` itself.
const KEYWORDS: &[&str] = &[
    "method",
    "device",
    "maps",
    "field_map",
    "prewhiten",
    "noise_covariance",
    "coils",
    "nufft_tolerance",
    "centre_line",
    "centre_partition",
    "reversed_centre",
    "trajectory_units",
    "trajectory_fov",
    "trajectory_weights",
    "encoding",
    "slices",
    "repetitions",
    "contrast",
    "cardiac_phase",
    "set",
    "readouts",
    "window",
    "stride",
    "windows",
    "calibration",
    "sensitivities",
    "map_sets",
    "map_crop",
    "density",
    "field_tolerance",
    "compression",
    "independent",
    "memory",
    "keep_maps",
    "progress",
];

const MATRIX: &str = "matrix: no keyword of recon, which takes the matrix of the scan. A scan with a header states its own; \
                      Scan.from_arrays(..., shape=) and, for files without a header, read_scan(..., matrix=) set it";

/// The scan of a run, and its files. Errors: a `TypeError` for what is no scan, with what makes one.
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
        let mut all = match self.image.take() {
            Some(image) => image.into_data(),
            None => {
                let shape = [&[self.frames], volume.data.shape()].concat();
                expect_memory("images", (shape.iter().product::<usize>() * size_of::<C32>()) as u64)?;
                ArrayD::zeros(shape)
            }
        };
        all.index_axis_mut(Axis(0), volume.index).assign(&volume.data);
        self.image = Some(Image::of_stacks(all, volume.stacks)?);
        Ok(())
    }
}

/// The method with the values of its parameters, whose keywords `given` gets. Errors: keywords that the method has not, values of another
/// kind or out of range.
fn asked_of(
    py: Python<'_>,
    method: &dyn Method,
    parameters: Option<&Bound<'_, PyDict>>,
    given: &mut Names,
) -> PyResult<Asked<Mri>> {
    let (searches, others) = searched_lambda(method, parameters)?;
    let others = others.as_ref();
    if others.is_some_and(|all| all.contains("matrix").unwrap_or(false)) {
        return Err(PyTypeError::new_err(MATRIX));
    }
    let (name, table) = (method.about().name, method.table());
    let values = parameters_of(py, job::methods(), (name, &table), KEYWORDS, others)?;
    let mut asked = asked_with(name, table, values, &mut given.0);
    if searches {
        asked.insert(LAMBDA, Typed::Searched);
        given.0.insert(LAMBDA, keyword(LAMBDA));
    }
    Ok(asked)
}

/// The parameters that have keywords, without values: which method they belong to is decided first.
fn asked_by_name(parameters: Option<&Bound<'_, PyDict>>) -> Asked<Mri> {
    let mut asked = Asked::default();
    for (param, _) in job::methods().params() {
        if parameters.is_some_and(|given| given.contains(keyword(param.name)).unwrap_or(false)) {
            asked.insert(param.name, Typed::Value(Value::Nothing));
        }
    }
    asked
}

pub(crate) fn host_array<T: Item>(what: &'static str, array: &Bound<'_, PyAny>) -> PyResult<ArrayD<T>> {
    on_host::<T>(Given::new(what, array)?)?.into_host().map_err(raised)
}

fn found_by_search(py: Python<'_>, searched: Searched) -> PyResult<Py<PyDict>> {
    let found = PyDict::new(py);
    found.set_item(keyword(LAMBDA), searched.lambda)?;
    found.set_item("inside", searched.inside)?;
    found.set_item(
        "tried",
        searched.tried.iter().map(|[lambda, error]| (*lambda, *error)).collect::<Vec<_>>(),
    )?;
    Ok(found.unbind())
}
