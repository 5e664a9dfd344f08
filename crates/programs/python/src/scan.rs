//! `rayspin.read_scan`: raw MRI scans in memory.

mod parts;

use std::path::PathBuf;
use std::sync::Arc;

use ndarray::{ArrayD, IxDyn};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rayspin::core::{
    C32, Error, Geometry, Monitor, Result, Silent, Trajectory, TrajectoryUnits, format_shape,
};
use rayspin::io::cfl::Layout;
use rayspin::io::ismrmrd::Identity;
use rayspin::io::{ArrayFrame, RawOptions, ScanFile, ScanOptions};
use rayspin::mri::scan::{Acquisition, Frame, FrameOptions, Samples, ScanBuilder, settle_units};

use crate::error::{of_file, raised, raised_in, raised_of};
use crate::exchange::copied::{self, complex, doubles, whole};
use crate::exchange::to_numpy;
use crate::processor::Processor;
use crate::remade::{self, Reduced};
use crate::signals::{Detached, Signals};
use crate::words::Call;

/// What was read.
pub(crate) enum Held {
    /// A scan with a header.
    Whole(Arc<rayspin::mri::scan::Scan>),
    /// The samples of one image, from arrays.
    Image(Arc<ArrayFrame>),
}

/// A raw MRI scan in memory: the samples of each coil, where they lie in k-space, and the matrix of the
///     image.
///
/// `rayspin.read_scan` reads one from a file, `Scan.from_arrays` makes one of arrays, `rayspin.simulate.mri`
/// simulates one, and `rayspin.recon` makes an image of it.
#[pyclass(frozen, module = "rayspin")]
pub(crate) struct Scan {
    pub(crate) held: Arc<Held>,
    /// The files that it was read from, which no image of it replaces.
    pub(crate) sources: Vec<PathBuf>,
}

/// Paths that stay the same where the process changes its folder.
pub(crate) fn sources<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    files.into_iter().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone())).collect()
}

/// The samples of an image, and their points where they lie along a trajectory.
type Arrays<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

#[pymethods]
impl Scan {
    /// A scan of one image from its samples d(c, j) = sum_x c(x) image(x) exp(-2 pi i k_j.x), x in fields of
    /// view.
    ///
    /// kspace: on a grid `[coil, y, x]` or `[coil, z, y, x]`, the centre of k-space at index n // 2, zero
    ///     where nothing was measured. With a trajectory `[coil, sample]` or `[coil, spoke, readout]`.
    /// trajectory: the points k_j, real `[sample, dim]` or `[spoke, readout, dim]`, components in the order
    ///     x, y, z.
    /// shape: the image's, `(z, y, x)` or `(y, x)`; a trajectory needs it, a grid has its own unless given.
    /// fov_mm: the field of view along x, y and z in mm; 1 mm for each voxel unless given.
    /// units: of the trajectory: cycles/fov, cycles/voxel, radians/voxel, or cycles/m, radians/m or
    ///     cycles/cm, which need fov_mm. The range of the points tells them unless given, and `notes` say so.
    /// times: of the samples in s, as many as samples; a field map needs them.
    ///
    /// Returns a `Scan`, which has copies of the arrays, of NumPy, CuPy, torch or lists. Numbers of another
    /// precision, such as complex128, are converted to complex64. Samples beyond n/2 cycles of an axis of n
    /// voxels are left out, and `notes` say so.
    ///
    /// Raises ValueError for shapes that do not fit each other, numbers that are not finite and units that
    /// are none or not certain, TypeError for what is no array of numbers.
    ///
    /// >>> import numpy as np, rayspin
    /// >>> grid = np.fft.fftshift(np.fft.fft2(np.ones((2, 8, 8))), axes=(1, 2))
    /// >>> rayspin.Scan.from_arrays(grid)
    /// Scan(one image of 2 coils, [8, 8])
    ///
    /// `(kspace: Array, trajectory: Array | None, *, shape: Sequence[int] | None, fov_mm: Sequence[float] |
    /// None, units: str | None, times: Array | None) -> Scan`
    #[staticmethod]
    #[pyo3(signature = (kspace, trajectory=None, *, shape=None, fov_mm=None, units=None, times=None))]
    fn from_arrays(
        kspace: &Bound<'_, PyAny>,
        trajectory: Option<&Bound<'_, PyAny>>,
        shape: Option<Vec<i64>>,
        fov_mm: Option<Vec<f64>>,
        units: Option<&str>,
        times: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let words = Call::FromArrays;
        // The first computation starts the threads.
        Processor::named("cpu")?;
        let kspace = complex::<f32>("kspace", kspace)?;
        let shape = shape.map(|shape| copied::shape("shape", shape)).transpose()?;
        let fov_mm = fov_mm.unwrap_or_default();
        let mut notes = Vec::new();
        let frame = match trajectory {
            None => on_grid(kspace, shape.as_deref(), &fov_mm),
            Some(points) => {
                let points =
                    doubles::<IxDyn>("trajectory", "[sample, dim] or [spoke, readout, dim]", points)?;
                let units = units_of(units)?;
                along_trajectory(kspace, points, shape, &fov_mm, units, &mut notes)
            }
        };
        let mut frame = frame.map_err(|error| raised_in(words, error))?;
        let notes = notes.iter().map(|note| words.told(note)).collect();
        if let Some(times) = times {
            let times = doubles::<IxDyn>("times", "those of the samples", times)?.into_raw_vec_and_offset().0;
            let expected = match &frame.samples {
                Samples::Cartesian { sampled, .. } => sampled.len(),
                Samples::NonCartesian { trajectory, .. } => trajectory.samples(),
            };
            if times.len() != expected {
                return Err(raised(Error::shape("times", &[expected], &[times.len()])));
            }
            frame.times = Some(times);
        }
        let array = ArrayFrame { frame, layout: Layout::default(), readout: None, notes };
        Ok(Self { held: Arc::new(Held::Image(Arc::new(array))), sources: Vec::new() })
    }

    /// The samples and the trajectory of one image, which are counted from 0.
    ///
    /// Returns copies. On a grid they are complex64 k-space `[coil, y, x]` or `[coil, z, y, x]`, and None.
    /// Along a trajectory they are complex64 samples `[coil, sample]` and float64 points `[sample, dim]`, x,
    /// y and z in cycles per field of view. Raises ValueError for an image that the scan has not.
    ///
    /// `(image: int) -> tuple[NDArray[np.complex64], NDArray[np.float64] | None]`
    #[pyo3(signature = (image=0))]
    fn arrays<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = whole)] image: i64,
    ) -> PyResult<Arrays<'py>> {
        let image = copied::count("image", image)?;
        let held = self.held.clone();
        let frame = py.detached(|| held.frame(image))?.map_err(raised)?;
        Ok(match frame.samples {
            Samples::Cartesian { kspace, .. } => (to_numpy(py, kspace), None),
            Samples::NonCartesian { trajectory, data } => {
                let points = trajectory.points().to_owned().into_dyn();
                (to_numpy(py, data.into_dyn()), Some(to_numpy(py, points)))
            }
        })
    }

    /// The number of images: slices, repetitions, contrasts and so on.
    /// `-> int`
    #[getter]
    fn images(&self, py: Python<'_>) -> PyResult<usize> {
        match &*self.held {
            Held::Image(_) => Ok(1),
            Held::Whole(scan) => py.detached(|| Ok(scan.frames()?.labels().count()))?.map_err(raised),
        }
    }

    /// The matrix of the first image, `(z, y, x)` or `(y, x)`.
    /// `-> tuple[int, ...]`
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.extent(py)?.0)
    }

    /// The number of receive coils.
    /// `-> int`
    #[getter]
    fn coils(&self) -> usize {
        let is_image = |readout: &&Acquisition| readout.flags.is_image();
        match &*self.held {
            Held::Whole(scan) => scan.acquisitions.iter().find(is_image).map_or(0, |one| one.data.nrows()),
            Held::Image(array) => array.frame.coils(),
        }
    }

    /// The field of view of the first image along x, y and z in mm; of a plane z is its thickness.
    /// `-> list[float]`
    #[getter]
    fn fov_mm(&self, py: Python<'_>) -> PyResult<[f64; 3]> {
        let (matrix, geometry) = self.extent(py)?;
        let mut fov = geometry.spacing_mm;
        fov.iter_mut().zip(matrix.iter().rev()).for_each(|(fov, &n)| *fov *= n as f64);
        Ok(fov)
    }

    /// Writes the scan as ISMRMRD (.h5), with a trajectory in cycles per field of view where it was made of
    /// arrays.
    ///
    /// What a header tells of the patient, the study, the place and the date is left out;
    /// `keep_identity=True` writes it. Returns notes on what is not written. Raises ValueError for a name of
    /// no format that holds scans and for a file from which the scan was read, OSError (FileNotFoundError,
    /// PermissionError) for a file that cannot be written.
    ///
    /// `(path: str | PathLike[str], *, keep_identity: bool) -> list[str]`
    #[pyo3(signature = (path, *, keep_identity=false))]
    fn save(&self, py: Python<'_>, path: PathBuf, keep_identity: bool) -> PyResult<Vec<String>> {
        let identity = if keep_identity { Identity::Keep } else { Identity::LeaveOut };
        let written = py.detached(|| -> std::result::Result<Vec<String>, rayspin::io::Error> {
            rayspin::io::expect_apart(&self.sources, &[&path])?;
            let of_path = |error| rayspin::io::Error::core(&path, error);
            let array = match &*self.held {
                Held::Whole(scan) => {
                    let left_out = rayspin::io::write_scan(&path, scan, identity)?.join(", ");
                    let why = "left out of the header, as it may tell whose scan it is (keep_identity=True writes it)";
                    return Ok((!left_out.is_empty()).then(|| format!("{why}: {left_out}")).into_iter().collect());
                }
                Held::Image(array) => array,
            };
            let mut builder = ScanBuilder::new(0.0).map_err(of_path)?;
            builder.frame(&array.frame, array.readout).map_err(of_path)?;
            rayspin::io::write_scan(&path, &builder.finish().map_err(of_path)?, identity)?;
            Ok(array.frame.times.as_ref().map(|_| "times of the samples are not written".to_owned()).into_iter().collect())
        });
        written?.map_err(|error| of_file(Call::Any, &error))
    }

    /// What the reader assumed or repaired.
    /// `-> list[str]`
    #[getter]
    fn notes(&self) -> Vec<String> {
        match &*self.held {
            Held::Whole(scan) => scan.notes.iter().map(|note| Call::ReadScan.told(note)).collect(),
            Held::Image(array) => array.notes.clone(),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    /// The scan itself, which never changes.
    /// `() -> Scan`
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// As `__copy__`.
    /// `(_memo: Any) -> Scan`
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// The number of acquisitions; 1 for arrays without a header.
    fn __len__(&self) -> usize {
        match &*self.held {
            Held::Whole(scan) => scan.acquisitions.len(),
            Held::Image(_) => 1,
        }
    }

    fn __repr__(&self) -> String {
        match &*self.held {
            Held::Whole(scan) => format!("Scan({} acquisitions)", scan.acquisitions.len()),
            Held::Image(array) => {
                format!(
                    "Scan(one image of {} coils, {})",
                    array.frame.coils(),
                    format_shape(&array.frame.matrix)
                )
            }
        }
    }
}

impl Scan {
    /// The matrix and the place of the first image.
    fn extent(&self, py: Python<'_>) -> PyResult<(Vec<usize>, Geometry)> {
        if let Held::Image(array) = &*self.held {
            return Ok((array.frame.matrix.clone(), array.frame.geometry));
        }
        let held = self.held.clone();
        let frame = py.detached(|| held.frame(0))?.map_err(raised)?;
        Ok((frame.matrix, frame.geometry))
    }
}

impl Held {
    /// The samples of the image of this number.
    fn frame(&self, image: usize) -> Result<Frame> {
        match self {
            Self::Image(array) if image == 0 => Ok(array.frame.clone()),
            Self::Image(_) => Err(Error::value("image", "0, the only one", image)),
            Self::Whole(scan) => {
                let index = scan.frames()?;
                let count = index.labels().count();
                let label = index.labels().nth(image);
                let label = label.ok_or_else(|| {
                    Error::value("image", format!("less than {count}, the number of images"), image)
                })?;
                index.assemble(label, &FrameOptions::default(), &mut Vec::new())
            }
        }
    }
}

/// `matrix` is `[z, y, x]` or `[y, x]`.
fn geometry(matrix: &[usize], fov_mm: &[f64]) -> Geometry {
    let mut geometry = Geometry::default();
    for (spacing, (&n, fov)) in geometry.spacing_mm.iter_mut().zip(matrix.iter().rev().zip(fov_mm)) {
        *spacing = fov / n.max(1) as f64;
    }
    geometry
}

fn on_grid(kspace: ArrayD<C32>, shape: Option<&[usize]>, fov_mm: &[f64]) -> Result<Frame> {
    let own = kspace.shape().get(1..).unwrap_or_default().to_vec();
    let frame = Frame::from_grid(kspace, geometry(&own, fov_mm))?;
    match shape {
        Some(shape) => frame.with_matrix(shape),
        None => Ok(frame),
    }
}

fn along_trajectory(
    kspace: ArrayD<C32>,
    points: ArrayD<f64>,
    shape: Option<Vec<usize>>,
    fov_mm: &[f64],
    units: Option<TrajectoryUnits>,
    notes: &mut Vec<String>,
) -> Result<Frame> {
    let (coils, runs) =
        (kspace.shape().first().copied().unwrap_or(0), kspace.shape().get(1..).unwrap_or_default());
    let (of_points, dims) = match points.shape() {
        [of_points @ .., dims] => (of_points, *dims),
        [] => (&[][..], 0),
    };
    if runs != of_points && runs.iter().product::<usize>() != of_points.iter().product::<usize>() {
        let expected = format!("[coil, {}] as the trajectory has", format_shape(of_points));
        return Err(Error::Shape {
            what: "kspace".to_owned(),
            expected,
            found: format_shape(kspace.shape()),
        });
    }
    let samples = of_points.iter().product::<usize>();
    let reshaped = |_| Error::Shape {
        what: "trajectory".to_owned(),
        expected: "[sample, dim] or [spoke, readout, dim]".to_owned(),
        found: format_shape(points.shape()),
    };
    let stated = points.clone().into_shape_with_order((samples, dims)).map_err(reshaped)?;
    let found = format_shape(kspace.shape());
    let data = kspace.into_shape_with_order((coils, samples)).map_err(|_| Error::Shape {
        what: "kspace".to_owned(),
        expected: "[coil, sample] or [coil, spoke, readout]".to_owned(),
        found,
    })?;
    let shape = shape.ok_or_else(|| Error::value("shape", "the image's, with a trajectory", "none"))?;
    let matrix: Vec<usize> = shape.iter().rev().copied().collect();
    let fov: Vec<f64> = (0..dims).map(|dim| fov_mm.get(dim).copied().unwrap_or(f64::NAN)).collect();
    if matrix.len() != dims || matrix.contains(&0) {
        let expected = format!("{dims} numbers from 1, as the trajectory has");
        return Err(Error::value("shape", expected, format_shape(&shape)));
    }
    let checked = Trajectory::from_cycles_per_fov(stated)?;
    let units = settle_units(checked.points(), &matrix, &fov, units, notes)?;
    let trajectory = Trajectory::from_units(checked.points().to_owned(), units, &matrix, &fov)?;
    Frame::from_samples(data, trajectory, shape.clone(), geometry(&shape, fov_mm), notes)
}

fn units_of(units: Option<&str>) -> PyResult<Option<TrajectoryUnits>> {
    units.map(str::parse).transpose().map_err(|error| raised_of("units", error))
}

/// Reads a raw MRI scan with a header (ISMRMRD, fastMRI, Siemens, Bruker, GE), or k-space as an array (BART,
///     NumPy, MATLAB, HDF5).
///
/// path: the file; a name after a colon chooses one of several scans or arrays in it.
/// trajectory: the file of the points of an array of samples.
/// matrix: the image's matrix (x, y) or (x, y, z) for an array.
/// fov_mm: the field of view along x, y and z in mm of an array; 1 mm for each voxel unless given.
/// units: of the trajectory, as `Scan.from_arrays` takes them.
/// order: what each axis of an array counts, such as "x,y,coil"; the format's own unless given. On a grid x,
///     y, z and coil, along a trajectory readout, spoke, sample and coil; 1 is an axis of length 1.
/// trajectory_weights: whether the trajectory's last column holds density weights, which are left out.
///
/// Returns a `Scan`, whose `notes` say what was assumed or repaired. A scan with a header (ISMRMRD, or a
/// scanner's own files: Siemens' .dat, the folder of a scan of Bruker's, GE's .7) states its own matrix,
/// field of view and trajectory.
///
/// If the axes of an array count slices, repetitions, contrasts, cardiac phases or sets, all images are read:
/// `images` counts them, and `arrays` takes the number of one, in the order of set, cardiac phase,
/// repetition, contrast and slice, the last one fastest.
///
/// Raises FileNotFoundError, IsADirectoryError, PermissionError or another OSError where the system refuses
/// the file, ValueError for a file of another format, one that is damaged, and for keywords that the file's
/// header settles.
///
/// `(path: str | PathLike[str], *, trajectory: str | PathLike[str] | None, matrix: Sequence[int] | None,
/// fov_mm: Sequence[float] | None, units: str | None, order: str | None, trajectory_weights: bool) -> Scan`
#[pyfunction]
#[pyo3(signature = (path, *, trajectory=None, matrix=None, fov_mm=None, units=None, order=None, trajectory_weights=false))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn read_scan(
    py: Python<'_>,
    path: PathBuf,
    trajectory: Option<PathBuf>,
    matrix: Option<Vec<i64>>,
    fov_mm: Option<Vec<f64>>,
    units: Option<&str>,
    order: Option<&str>,
    trajectory_weights: bool,
) -> PyResult<Scan> {
    let words = Call::ReadScan;
    let matrix = matrix.map(|matrix| copied::shape("matrix", matrix)).transpose()?;
    let given = [
        ("trajectory", trajectory.is_some()),
        ("matrix", matrix.is_some()),
        ("fov_mm", fov_mm.is_some()),
        ("units", units.is_some()),
        ("order", order.is_some()),
        ("trajectory_weights", trajectory_weights),
    ];
    let has_header =
        || py.detached(|| rayspin::io::holds_scan(&path))?.map_err(|error| of_file(words, &error));
    if let Some((name, _)) = given.iter().find(|(_, given)| *given)
        && has_header()?
    {
        let found = format!("{}, whose header states its own; leave {name} out", path.display());
        return Err(raised(Error::value(*name, "a file of arrays without a header", found)));
    }
    let sources = sources(std::iter::once(&path).chain(&trajectory));
    let options = ScanOptions {
        trajectory,
        matrix,
        fov_mm,
        units: units_of(units)?,
        order: order.map(str::parse).transpose().map_err(|error| raised_of("order", error))?,
        weights: trajectory_weights,
        ..ScanOptions::default()
    };
    let (signals, processor) = (Signals::default(), Processor::named("cpu")?);
    // On other threads, so that this one hears of signals meanwhile.
    let read = py.detached_for(&signals, || {
        let monitor = Monitor::new(&Silent, Some(signals.stop()));
        processor.device.cpu_side().run(|| {
            Ok::<_, rayspin::io::Error>(match rayspin::io::read_scan(&path, &options, &monitor)? {
                ScanFile::Scan(scan) => Held::Whole(scan.into()),
                ScanFile::Frame(mut array) => {
                    array.notes.iter_mut().for_each(|note| *note = words.told(note));
                    Held::Image(array.into())
                }
                // Images that the axes count become those of a scan with a header.
                ScanFile::Series(_) => {
                    let raw = RawOptions::default();
                    Held::Whole(rayspin::io::scan_of_arrays(&path, &options, &raw, &monitor)?.into())
                }
            })
        })
    });
    let held = read?.map_err(|error| of_file(words, &error))?;
    Ok(Scan { held: Arc::new(held), sources })
}
