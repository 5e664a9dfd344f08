//! `rayspin.recon`: reconstruction in memory, with the methods and parameters of the command.

use std::path::PathBuf;
use std::sync::Arc;

use ndarray::ArrayD;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::{C32, C64, Error, Geometry, Image, Monitor};
use rayspin::device::Device;
use rayspin::io::WriteOptions;
use rayspin::mri::methods::{Methods, suited_to, with};
use rayspin::mri::prepare::{self, Compression, CompressionKind, VirtualCoils};
use rayspin::mri::recon::{ReconOptions, ScanImage, Selection, reconstruct_frame, reconstruct_scan};
use rayspin::mri::scan::{Facts, Frame, FrameOptions};

use crate::call::Detached;
use crate::copied::singles;
use crate::error::{of_file, raised};
use crate::exchange::{Given, Item, on_host, to_numpy};
use crate::parameters::{keyword, table_of, values_in, values_of};
use crate::processor::Processor;
use crate::progress::Listener;
use crate::record;
use crate::scan::{Held, Scan};

/// The images of a scan and how they came about.
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
    geometry: Geometry,
    shape: Vec<usize>,
    record: String,
}

#[pymethods]
impl Reconstruction {
    /// The run record, as the command writes it: program, version, device, parameters, stages, residuals, notes.
    #[getter]
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        record::read(py, &self.record)
    }

    /// Voxel size along x, y and z in mm.
    #[getter]
    fn spacing_mm(&self) -> [f64; 3] {
        self.geometry.spacing_mm
    }

    /// The centre of the centre voxel (index n/2 along each axis) in the patient's coordinates (LPS) in mm.
    #[getter]
    fn position_mm(&self) -> [f64; 3] {
        self.geometry.position_mm
    }

    /// Unit vectors along x, y and z in the patient's coordinates (LPS).
    #[getter]
    fn directions(&self) -> [[f64; 3]; 3] {
        [self.geometry.read_dir, self.geometry.phase_dir, self.geometry.slice_dir]
    }

    /// Writes `image`, as it stands now, in the format of the file's name. Returns notes on what the format cannot hold.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
        let image =
            Image::new(host_array::<C32>("image", self.image.bind(py))?, self.geometry).map_err(raised)?;
        let written = py.detached(|| rayspin::io::write_image(&path, &image, &WriteOptions::default()));
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

/// The methods of reconstruction: for each its name, what it does, and its parameters with default, range and help.
#[pyfunction]
pub(crate) fn methods(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for method in Methods::default().iter() {
        all.set_item(method.about().name, (method.about().help, table_of(py, method)?))?;
    }
    Ok(all)
}

/// Reconstructs a scan. Without a method it takes the one that suits the scan. The method's parameters are keywords.
///
/// `maps`: sensitivities `[coil, z, y, x]` instead of estimated ones. `field_map`: `[z, y, x]` in Hz, corrects off-resonance.
/// `noise_covariance`: `[coil, coil]`, whitens instead of the scan's own noise. `coils`: compresses to that many coils; a number below 1 is
/// the part of the energy that stays. `keep_maps=False` leaves out the result's `maps`, which take time and memory for large volumes.
#[pyfunction]
#[pyo3(signature = (
    scan, method=None, *, device="auto", maps=None, field_map=None, prewhiten=true, noise_covariance=None, coils=None,
    nufft_tolerance=None, keep_maps=true, progress=None, **parameters
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn recon(
    py: Python<'_>,
    scan: &Scan,
    method: Option<&str>,
    device: &str,
    maps: Option<&Bound<'_, PyAny>>,
    field_map: Option<&Bound<'_, PyAny>>,
    prewhiten: bool,
    noise_covariance: Option<&Bound<'_, PyAny>>,
    coils: Option<f64>,
    nufft_tolerance: Option<f64>,
    keep_maps: bool,
    progress: Option<Py<PyAny>>,
    parameters: Option<&Bound<'_, PyDict>>,
) -> PyResult<Reconstruction> {
    let processor = Processor::named(device)?;
    let mut recorder = record::start(&processor.device);
    let held = scan.held.clone();
    let mut notes = Vec::new();
    let facts = py.detached(|| facts_of(&held)).map_err(raised)?;
    let all = Methods::default();
    let named = match method {
        Some(name) => all.named(name).map_err(raised)?,
        None => {
            let suited = all.suited(&facts, false);
            let none = || Error::value("method", "one that suits the scan", "none");
            let (method, reason) = suited.ok_or_else(none).map_err(raised)?;
            notes.push(format!("method {}: {reason} (method= chooses another)", method.about().name));
            method
        }
    };
    let given = values_of(&format!("method {}", named.about().name), &named.table(), parameters)?;
    let chosen = with(named, given.iter().cloned()).map_err(raised)?;
    let is_given = |name: &str| given.iter().any(|(one, _)| one == name);
    let (chosen, rules) = suited_to(&*chosen, &facts, is_given).map_err(raised)?;
    for rule in rules {
        let name = keyword(rule.name);
        notes.push(format!("{name} {}: {} ({name}= overrides)", rule.value, rule.reason));
    }
    let used = values_in(py, &*chosen)?;
    let name = chosen.about().name;
    record::method(&mut recorder, name, &*chosen);
    let mut options = ReconOptions { method: chosen, keep_maps, ..ReconOptions::default() };
    options.maps = maps.map(|maps| host_array::<C32>("maps", maps)).transpose()?.map(Arc::new);
    options.field_map = match field_map {
        Some(map) => Some(Arc::new(singles("field_map", "[z, y, x] or [y, x]", map)?)),
        None => None,
    };
    options.nufft_tolerance = nufft_tolerance.unwrap_or(options.nufft_tolerance);
    options.prepare.prewhiten = prewhiten;
    options.prepare.compression = coils.map(compression).transpose()?;
    if let Some(covariance) = noise_covariance {
        let covariance = host_array::<C64>("noise_covariance", covariance)?;
        let found = rayspin::core::format_shape(covariance.shape());
        let wrong = |_| {
            raised(Error::Shape { what: "noise_covariance".into(), expected: "[coil, coil]".into(), found })
        };
        options.prepare.noise_covariance = Some(covariance.into_dimensionality().map_err(wrong)?);
    }
    let listener = Listener::new(py, progress)?;
    let monitor = Monitor::new(&listener, Some(&listener.stop));
    let found = py.detached(|| reconstruct(&processor.device, &held, &options, &monitor));
    let ScanImage { image, solves, maps, notes: more, .. } =
        found.map_err(|error| listener.exception(error))?;
    notes.extend(more);
    for (image, solve) in solves.iter().enumerate() {
        recorder.parameter("largest eigenvalue", solve.eigenvalue);
        recorder.converged(format!("image {image}"), solve.residuals.iter().copied());
    }
    let geometry = *image.geometry();
    let image = image.into_data();
    Ok(Reconstruction {
        record: record::finish(recorder, &monitor, &notes)?,
        geometry,
        shape: image.shape().to_vec(),
        image: to_numpy(py, image).unbind(),
        maps: maps.map(|maps| to_numpy(py, maps).unbind()),
        method: name,
        parameters: used.unbind(),
        notes,
        stages: monitor.stages(),
        residuals: solves.into_iter().map(|solve| solve.residuals).collect(),
    })
}

pub(crate) fn host_array<T: Item>(what: &'static str, array: &Bound<'_, PyAny>) -> PyResult<ArrayD<T>> {
    on_host::<T>(Given::new(what, array)?)?.into_host().map_err(raised)
}

/// Whole numbers count coils; less than 1 is a part of the energy.
fn compression(coils: f64) -> PyResult<Compression> {
    let coils = match coils {
        energy if energy > 0.0 && energy < 1.0 => VirtualCoils::Energy(energy),
        count if count >= 1.0 && count.fract() == 0.0 => VirtualCoils::Count(count as usize),
        other => return Err(raised(Error::value("coils", "a whole number from 1, or a part of 1", other))),
    };
    Ok(Compression { coils, kind: CompressionKind::default() })
}

fn reconstruct(
    device: &Device,
    held: &Held,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> rayspin::core::Result<ScanImage> {
    match held {
        Held::Whole(scan) => {
            let selection = Selection::default();
            let frames = FrameOptions { times: options.field_map.is_some(), ..FrameOptions::default() };
            reconstruct_scan(device, scan, &selection, &frames, options, monitor)
        }
        Held::Image(array) => {
            reconstruct_frame(device, array.frame.clone(), array.notes.clone(), options, monitor)
        }
    }
}

/// The facts that choose a method and its parameters, of the first image.
fn facts_of(held: &Held) -> rayspin::core::Result<Facts> {
    match held {
        Held::Image(array) => Facts::of(&array.frame, None, 1),
        Held::Whole(scan) => {
            let (index, mut notes) = (scan.frames()?, Vec::new());
            let labels = Selection::default().labels(&index, &mut notes)?;
            let first = labels.first().ok_or_else(|| Error::value("scan", "at least one image", 0))?;
            let frame: Frame = index.assemble(*first, &FrameOptions::default(), &mut notes)?;
            Facts::of(&frame, Some(&prepare::measure(scan)), labels.len())
        }
    }
}
