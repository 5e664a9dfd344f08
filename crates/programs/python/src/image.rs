//! `rayspin.Image`, `rayspin.read_image` and `rayspin.filter`: images in files, and filters of them.

use std::path::PathBuf;

use ndarray::{ArrayD, Axis};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::slices::Stack;
use rayspin::core::{C32, Error, Geometry, Image as CoreImage, format_shape};
use rayspin::filter::{Filters, run, with};
use rayspin::io::png::PngOptions;
use rayspin::io::{AnyImage, ImageFile, Modality, Origin, Values, WriteOptions};

use crate::error::{of_file, raised};
use crate::exchange::copied::{Numbers, exactly, several};
use crate::exchange::{Dtype, to_numpy};
use crate::finished::with_template;
use crate::parameters::{named, table_of, values_of};
use crate::processor::Processor;
use crate::progress::Listener;
use crate::recon::{directions, geometry_of, stacks_of};
use crate::remade::{self, Parts, Reduced, Remade};
use crate::signals::Detached;
use crate::words::Call;

/// An image and its place in the patient: what `rayspin.read_image` reads and `save` writes.
///
/// data: float32 or complex64 `[z, y, x]`, `[y, x]` or `[repetition, z, y, x]`; other numbers are converted.
/// spacing_mm: the size of a voxel along (x, y, z), or one number for all.
/// position_mm: the centre of the centre voxel (index n // 2 along each axis) in the patient's coordinates
///     (LPS).
/// directions: unit vectors along x, y and z in the patient's coordinates (LPS).
/// hounsfield: whether the numbers are Hounsfield units.
///
/// Raises ValueError for an empty array, lengths that are not positive and vectors that are no right angles,
/// TypeError for what is no array of numbers.
///
/// >>> import numpy as np, rayspin
/// >>> image = rayspin.Image(np.ones((2, 4, 4)), spacing_mm=(1.5, 1.5, 3))
/// >>> image.save("ones.nii.gz")  # doctest: +SKIP
/// >>> image
/// Image([2, 4, 4], real, 1.5 x 1.5 x 3 mm)
///
/// `(data: Array, *, spacing_mm: float | Sequence[float] | None, position_mm: Sequence[float] | None,
/// directions: Sequence[Sequence[float]] | None, hounsfield: bool) -> Image`
#[pyclass(frozen, module = "rayspin")]
pub(crate) struct Image {
    /// The numbers, float32 or complex64 `[z, y, x]`, or `[repetition, z, y, x]` of several.
    /// `-> NDArray[Any]`
    #[pyo3(get)]
    data: Py<PyAny>,
    /// Whether the numbers are Hounsfield units.
    /// `-> bool`
    #[pyo3(get)]
    hounsfield: bool,
    /// The time between repetitions in s, where it is known.
    /// `-> float | None`
    #[pyo3(get)]
    repetition_time_s: Option<f64>,
    /// What the reader assumed or repaired.
    /// `-> list[str]`
    #[pyo3(get)]
    notes: Vec<String>,
    /// What made it, where its file states that.
    modality: Option<Modality>,
    stacks: Vec<Stack>,
    shape: Vec<usize>,
    /// The file that it was read from.
    source: Option<PathBuf>,
}

/// An image of real or complex numbers. Errors: what is no array of numbers; an empty one.
fn any_image(data: &Bound<'_, PyAny>, stacks: Vec<Stack>) -> PyResult<AnyImage> {
    let image = match Numbers::of("data", data)? {
        Numbers::Single(values) => CoreImage::of_stacks(values, stacks).map(AnyImage::Real),
        Numbers::Double(values) => {
            CoreImage::of_stacks(values.mapv(|value| value as f32), stacks).map(AnyImage::Real)
        }
        Numbers::Complex(values) => {
            let values = values.mapv(|value| C32::new(value.re as f32, value.im as f32));
            CoreImage::of_stacks(values, stacks).map(AnyImage::Complex)
        }
    };
    image.map_err(raised)
}

impl Image {
    fn of(py: Python<'_>, image: AnyImage) -> Self {
        let (data, stacks, shape) = match image {
            AnyImage::Real(image) => {
                let (stacks, data) = (image.stacks(), image.into_data());
                let shape = data.shape().to_vec();
                (to_numpy(py, data).unbind(), stacks, shape)
            }
            AnyImage::Complex(image) => {
                let (stacks, data) = (image.stacks(), image.into_data());
                let shape = data.shape().to_vec();
                (to_numpy(py, data).unbind(), stacks, shape)
            }
        };
        Self {
            data,
            hounsfield: false,
            repetition_time_s: None,
            notes: Vec::new(),
            modality: None,
            stacks,
            shape,
            source: None,
        }
    }
}

#[pymethods]
impl Image {
    #[new]
    #[pyo3(signature = (data, *, spacing_mm=None, position_mm=None, directions=None, hounsfield=false))]
    fn new(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        spacing_mm: Option<&Bound<'_, PyAny>>,
        position_mm: Option<&Bound<'_, PyAny>>,
        directions: Option<[[f64; 3]; 3]>,
        hounsfield: bool,
    ) -> PyResult<Self> {
        let own = Geometry::default();
        let size = |given| several("spacing_mm", "a length in mm, or three (x, y, z)", given);
        let spacing = spacing_mm.map_or(Ok(own.spacing_mm), size)?;
        let place = |given| exactly("position_mm", "three lengths in mm (x, y, z)", given);
        let position = position_mm.map_or(Ok(own.position_mm), place)?;
        let [x, y, z] = directions.unwrap_or([own.read_dir, own.phase_dir, own.slice_dir]);
        let geometry = Geometry::new(spacing, position, x, y, z).map_err(raised)?;
        let numbers = Numbers::of("data", data)?;
        let shape = match &numbers {
            Numbers::Single(values) => values.shape().to_vec(),
            Numbers::Double(values) => values.shape().to_vec(),
            Numbers::Complex(values) => values.shape().to_vec(),
        };
        let slices = if shape.len() < 3 { 1 } else { shape[shape.len() - 3] };
        let image = any_image(data, vec![Stack { slices, geometry }])?;
        Ok(Self { hounsfield, ..Self::of(py, image) })
    }

    /// Voxel size along x, y and z in mm. Raises ValueError where slices are several stacks, as the other
    /// places do.
    /// `-> list[float]`
    #[getter]
    fn spacing_mm(&self) -> PyResult<[f64; 3]> {
        Ok(geometry_of(&self.stacks)?.spacing_mm)
    }

    /// The centre of the centre voxel (index n // 2 along each axis) in the patient's coordinates (LPS) in
    /// mm.
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

    /// The stacks of slices along z, in order, as `Reconstruction.stacks`.
    /// `-> list[dict[str, Any]]`
    #[getter]
    fn stacks<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        stacks_of(py, &self.stacks)
    }

    /// Writes `data`, as it stands now, in the format of the file's name: .nii, .nii.gz, .npy, .h5, .cfl,
    /// .mha, .tif, .png and others. Signs and phases are kept where the format can.
    ///
    /// dicom_template: a DICOM file whose patient and study a .dicom takes over, and its modality where the
    ///     image has none; by default it names no patient.
    ///
    /// Returns notes on what the format cannot hold. Raises ValueError for a name of no format that holds
    /// images, for the file that the image was read from and for a file that is no template, OSError
    /// (FileNotFoundError, PermissionError) for a file that cannot be written.
    ///
    /// `(path: str | PathLike[str], *, dicom_template: str | PathLike[str] | None) -> list[str]`
    #[pyo3(signature = (path, *, dicom_template=None))]
    fn save(&self, py: Python<'_>, path: PathBuf, dicom_template: Option<PathBuf>) -> PyResult<Vec<String>> {
        let origin = Origin { modality: self.modality, ..Origin::default() };
        let origin = with_template(Call::Any, &path, origin, dicom_template)?;
        let image = any_image(self.data.bind(py), self.stacks.clone())?;
        let (slices, repetitions) = match &image {
            AnyImage::Real(image) => (image.shape_zyx()[0], image.repetitions()),
            AnyImage::Complex(image) => (image.shape_zyx()[0], image.repetitions()),
        };
        let options = WriteOptions {
            png: PngOptions::preview(slices, repetitions),
            hounsfield: Some(self.hounsfield),
            repetition_time_s: self.repetition_time_s,
            origin,
            ..WriteOptions::default()
        };
        let written = py.detached(|| {
            rayspin::io::expect_apart(self.source.as_slice(), &[&path])?;
            match &image {
                AnyImage::Real(image) => {
                    let real = WriteOptions { values: Some(Values::Real), ..options };
                    rayspin::io::write_image(&path, image, &real)
                }
                AnyImage::Complex(image) => rayspin::io::write_image(&path, image, &options),
            }
        });
        let notes = written?.map_err(|error| of_file(Call::Any, &error))?;
        Ok(notes.iter().map(|note| Call::Any.told(note)).collect())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let kind: String = self.data.getattr(py, "dtype")?.getattr(py, "kind")?.extract(py)?;
        let kind = if kind == "c" { "complex" } else { "real" };
        let place = match &self.stacks[..] {
            [one] => one.geometry.spacing_mm.map(|size| size.to_string()).join(" x ") + " mm",
            several => format!("{} stacks", several.len()),
        };
        Ok(format!("Image({}, {kind}, {place})", format_shape(&self.shape)))
    }
}

impl Remade for Image {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (parts, own) = (PyDict::new(object.py()), object.get());
        parts.set_item("data", &own.data)?;
        parts.set_item("stacks", remade::stacks_of(&own.stacks))?;
        parts.set_item("hounsfield", own.hounsfield)?;
        parts.set_item("repetition_time_s", own.repetition_time_s)?;
        parts.set_item("notes", &own.notes)?;
        parts.set_item("modality", own.modality.map(Modality::code))?;
        parts.set_item("source", own.source.as_ref().map(|file| file.as_os_str()))?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (data, shape) = parts.image("data", &[Dtype::F32, Dtype::C64])?;
        let modality: Option<String> = parts.get("modality")?;
        let image = Self {
            data: data.unbind(),
            stacks: parts.stacks(&shape)?,
            shape,
            hounsfield: parts.get("hounsfield")?,
            repetition_time_s: parts.get("repetition_time_s")?,
            notes: parts.get("notes")?,
            modality: modality.and_then(|code| Modality::of_code(&code)),
            source: parts.get("source")?,
        };
        Ok(Bound::new(parts.python(), image)?.into_any())
    }
}

/// Reads an image of any format that `rayspin convert` reads: NIfTI, DICOM files and folders, MetaImage,
/// TIFF, ISMRMRD images, arrays and others.
///
/// path: the file. A colon names one of several arrays or series in it, as `data.npz:image`.
///
/// Returns an `Image`. Raises FileNotFoundError, PermissionError or another OSError where the system refuses
/// the file, ValueError for a file that holds no image or is damaged.
///
/// `(path: str | PathLike[str]) -> Image`
#[pyfunction]
pub(crate) fn read_image(py: Python<'_>, path: PathBuf) -> PyResult<Image> {
    let read = py.detached(|| rayspin::io::read_any_image(&path))?;
    let ImageFile { image, hounsfield, modality, notes, repetition_time_s, .. } =
        read.map_err(|error| of_file(Call::Any, &error))?;
    let notes = notes.iter().map(|note| Call::Any.told(note)).collect();
    let source = Some(path);
    Ok(Image { hounsfield, modality, notes, repetition_time_s, source, ..Image::of(py, image) })
}

/// The filters of images and their parameters, which are keywords of `filter`. Returns a dictionary as
/// `rayspin.methods` does.
///
/// `() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]`
#[pyfunction]
pub(crate) fn filters(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let filters = PyDict::new(py);
    for filter in Filters::default().iter() {
        filters.set_item(filter.about().name, (filter.about().help, table_of(py, Call::Any, filter)?))?;
    }
    Ok(filters)
}

/// An image or an array after a filter: smoothing, edges, another size, equalised grey values.
///     `rayspin.filters()` says what each computes.
///
/// image: an `Image`, or an array `[z, y, x]`, `[y, x]` or `[repetition, z, y, x]`. Repetitions are filtered
///     one by one, and of complex numbers the magnitudes. The place of an `Image` stays right.
/// name: a name of `rayspin.filters()`.
/// device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU.
/// progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
/// parameters: keywords of the filter, as `rayspin.filters()` lists them.
///
/// Returns an `Image` of an `Image`, else an array of NumPy, float32. Raises ValueError for a name or value
/// that there is not and numbers that are not finite, TypeError for keywords that the filter has not,
/// KeyboardInterrupt after Ctrl-C.
///
/// >>> import numpy as np, rayspin
/// >>> spot = np.zeros((9, 9)); spot[4, 4] = 1
/// >>> smooth = rayspin.filter(spot, "gaussian", sigma=1.0, device="cpu")
/// >>> smooth.shape, bool(abs(smooth.sum() - 1) < 1e-3)
/// ((9, 9), True)
///
/// `(image: Image, name: str, *, device: str, progress: Heard, **parameters: Any) -> Image`
/// `(image: Array, name: str, *, device: str, progress: Heard, **parameters: Any) -> NDArray[np.float32]`
#[pyfunction]
#[pyo3(signature = (image, name, *, device="auto", progress=None, **parameters))]
pub(crate) fn filter<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyAny>,
    name: &str,
    device: &str,
    progress: Option<Py<PyAny>>,
    parameters: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let processor = Processor::named(device)?;
    let filters = Filters::default();
    let filter = named(py, &filters, name)?;
    let values = values_of(py, &format!("filter {name}"), &filter.table(), parameters)?;
    let filter = with(filter, values).map_err(raised)?;
    let keeps_unit = filter.keeps_unit();
    let own = image.cast::<Image>().ok();
    let (data, stacks) = match own {
        Some(own) => (own.get().data.bind(py).clone(), Some(own.get().stacks.clone())),
        None => (image.clone(), None),
    };
    let shape: Vec<usize> = data.getattr("shape").and_then(|shape| shape.extract()).unwrap_or_default();
    let slices = if shape.len() < 3 { 1 } else { shape[shape.len() - 3] };
    let stacks = stacks.unwrap_or_else(|| vec![Stack { slices, geometry: Geometry::default() }]);
    if stacks.len() > 1 {
        return Err(raised(Error::value("slices of the image", "one stack of slices", stacks.len())));
    }
    let (values, _) = any_image(&data, stacks)?.into_real();
    let listener = Listener::new(py, progress)?;
    let monitor = listener.monitor();
    let filtered = listener.run(py, || run(&processor.device, &[filter], values, &monitor))?;
    let filtered = filtered.map_err(raised)?;
    match own {
        Some(own) => {
            let (hounsfield, time) = (own.get().hounsfield && keeps_unit, own.get().repetition_time_s);
            let image = Image {
                repetition_time_s: time,
                hounsfield,
                modality: own.get().modality,
                ..Image::of(py, AnyImage::Real(filtered))
            };
            Ok(Py::new(py, image)?.into_bound(py).into_any())
        }
        None => {
            let values: ArrayD<f32> = filtered.into_data();
            // An image of one slice was given without the axis of slices.
            let plane = shape.len() == 2 && values.ndim() == 3;
            Ok(to_numpy(py, if plane { values.index_axis_move(Axis(0), 0) } else { values }))
        }
    }
}
