//! `rayspin.read_scan`: raw MRI scans in memory.

use std::path::PathBuf;
use std::sync::Arc;

use ndarray::{ArrayD, IxDyn};
use pyo3::prelude::*;
use rayspin::core::{C32, Error, Geometry, Monitor, Result, Trajectory, TrajectoryUnits, format_shape};
use rayspin::io::cfl::Layout;
use rayspin::io::{ArrayFrame, ScanFile, ScanOptions};
use rayspin::mri::scan::{Frame, FrameOptions, Samples, settle_units};

use crate::call::Detached;
use crate::copied::doubles;
use crate::error::{of_file, raised};
use crate::exchange::{Given, on_host, to_numpy};

/// What was read.
pub(crate) enum Held {
    /// A scan with a header.
    Whole(Box<rayspin::mri::scan::Scan>),
    /// The samples of one image, from arrays.
    Image(Box<ArrayFrame>),
}

/// A raw MRI scan.
#[pyclass(frozen, module = "rayspin")]
pub(crate) struct Scan {
    pub(crate) held: Arc<Held>,
}

/// The samples of an image, and their points where they lie along a trajectory.
type Arrays<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

#[pymethods]
impl Scan {
    /// A scan of one image from arrays.
    ///
    /// `kspace`: complex64. On a grid `[coil, y, x]` or `[coil, z, y, x]`, zero where nothing was measured. With a trajectory `[coil, sample]`
    /// or `[coil, spoke, readout]`. `trajectory`: `[sample, dim]` or `[spoke, readout, dim]`, components x, y, z. `units`: cycles/fov,
    /// cycles/voxel, radians/voxel, cycles/m or radians/m; the range tells them where they are absent. `shape`: the image's, `[z, y, x]` or
    /// `[y, x]`. `fov_mm`: x, y and z. `times`: of the samples in s, for a field map.
    #[staticmethod]
    #[pyo3(signature = (kspace, trajectory=None, *, shape=None, fov_mm=None, units=None, times=None))]
    fn from_arrays(
        kspace: &Bound<'_, PyAny>,
        trajectory: Option<&Bound<'_, PyAny>>,
        shape: Option<Vec<usize>>,
        fov_mm: Option<Vec<f64>>,
        units: Option<&str>,
        times: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let given = Given::new("kspace", kspace)?;
        let kspace = on_host::<C32>(given)?.into_host().map_err(raised)?;
        let fov_mm = fov_mm.unwrap_or_default();
        let mut notes = Vec::new();
        let frame = match trajectory {
            None => on_grid(kspace, shape.as_deref(), &fov_mm),
            Some(points) => {
                let points =
                    doubles::<IxDyn>("trajectory", "[sample, dim] or [spoke, readout, dim]", points)?;
                let units = units.map(str::parse).transpose().map_err(raised)?;
                along_trajectory(kspace, points, (shape, &fov_mm, units), &mut notes)
            }
        };
        let mut frame = frame.map_err(raised)?;
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
        Ok(Self { held: Arc::new(Held::Image(Box::new(array))) })
    }

    /// The samples and the trajectory of one image: on a grid k-space `[coil, y, x]` or `[coil, z, y, x]` and none; else samples
    /// `[coil, sample]` and points `[sample, dim]` in cycles per field of view. Images are counted from 0.
    #[pyo3(signature = (image=0))]
    fn arrays<'py>(&self, py: Python<'py>, image: usize) -> PyResult<Arrays<'py>> {
        let held = self.held.clone();
        let frame = py.detached(|| held.frame(image)).map_err(raised)?;
        Ok(match frame.samples {
            Samples::Cartesian { kspace, .. } => (to_numpy(py, kspace), None),
            Samples::NonCartesian { trajectory, data } => {
                let points = trajectory.points().to_owned().into_dyn();
                (to_numpy(py, data.into_dyn()), Some(to_numpy(py, points)))
            }
        })
    }

    /// The number of images: slices, repetitions, contrasts and so on.
    #[getter]
    fn images(&self, py: Python<'_>) -> PyResult<usize> {
        match &*self.held {
            Held::Image(_) => Ok(1),
            Held::Whole(scan) => py.detached(|| Ok(scan.frames()?.labels().count())).map_err(raised),
        }
    }

    /// What the reader assumed or repaired.
    #[getter]
    fn notes(&self) -> Vec<String> {
        match &*self.held {
            Held::Whole(scan) => scan.notes.clone(),
            Held::Image(array) => array.notes.clone(),
        }
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
    (shape, fov_mm, units): (Option<Vec<usize>>, &[f64], Option<TrajectoryUnits>),
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

/// Reads a raw MRI scan: ISMRMRD (`.h5`), or k-space as an array (`.cfl`, `.npy`, `.npz`).
#[pyfunction]
#[pyo3(signature = (path, *, trajectory=None, matrix=None))]
pub(crate) fn read_scan(
    py: Python<'_>,
    path: PathBuf,
    trajectory: Option<PathBuf>,
    matrix: Option<Vec<usize>>,
) -> PyResult<Scan> {
    let options = ScanOptions { trajectory, matrix, ..ScanOptions::default() };
    let read = py.detached(|| rayspin::io::read_scan(&path, &options, &Monitor::silent()));
    let held = match read.map_err(|error| of_file(&error))? {
        ScanFile::Scan(scan) => Held::Whole(scan),
        ScanFile::Frame(array) => Held::Image(array),
        ScanFile::Series(_) => {
            let (expected, found) = ("one image, or a scan with a header", "arrays of several images");
            return Err(raised(Error::value(path.display().to_string(), expected, found)));
        }
    };
    Ok(Scan { held: Arc::new(held) })
}
