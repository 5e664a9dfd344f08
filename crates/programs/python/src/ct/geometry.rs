use std::path::PathBuf;
use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView1, Ix1, Ix2};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use rayspin::core::{Detector, Error, Orbit, ProjectionGeometry, RaySource, View, VolumeGrid};
use rayspin::ct::geometry::{from_rtk, from_vectors, to_vectors};
use rayspin::ct::recon::{GridOptions, grid};
use rayspin::ct::scan::view_angles;

use crate::degrees::warn_of_degrees;
use crate::error::{of_file, raised};
use crate::exchange::copied::{doubles, exactly, lengths, several, whole};
use crate::exchange::to_numpy;
use crate::remade::{self, Parts, Reduced, Remade};
use crate::signals::Detached;
use crate::words::Call;

const PAIR: &str = "a length in mm, or two along columns and rows (u, v)";
const THREE: &str = "three numbers (x, y, z)";

/// The rays of a CT scan: a detector and its place in each view.
///
/// The axis of rotation is z and passes through the origin. At angle 0 rays run along +y, columns of the
/// detector are numbered along +x and rows along +z. The angle grows from x to y. Angles are in radian,
/// lengths in mm, projections are arrays `[view, row, column]`. `parallel`, `cone` and `helix` turn source
/// and detector together around z:
///
///     source   = -source_to_axis e2 + h e3            (parallel rays run along e2)
///     detector = axis_to_detector e2 + offset_u e1 + (h + offset_v) e3
///     u = cos(tilt) e1 + sin(tilt) e3,  v = -sin(tilt) e1 + cos(tilt) e3
///
/// with e1 = (cos, sin, 0), e2 = (-sin, cos, 0), e3 = (0, 0, 1) and the height h. `from_vectors` takes any
/// path.
///
/// >>> import numpy as np
/// >>> from rayspin import ct
/// >>> angles = np.linspace(0, 2 * np.pi, 8, endpoint=False)
/// >>> rays = ct.Geometry.cone(angles, 3, 5, 2.0, source_to_axis_mm=600, axis_to_detector_mm=400)
/// >>> rays.shape
/// (8, 3, 5)
/// >>> rays.vectors[0, :6].tolist()  # the source, the middle of the detector
/// [0.0, -600.0, 0.0, 0.0, 400.0, 0.0]
#[pyclass(frozen, name = "Geometry", module = "rayspin.ct")]
pub(crate) struct CtGeometry {
    pub(crate) rays: Arc<ProjectionGeometry>,
    pub(crate) angles: Vec<f64>,
}

/// What `parallel`, `cone` and `helix` share.
struct Common<'a, 'py> {
    angles: &'a Bound<'py, PyAny>,
    size: [usize; 2],
    pitch_mm: Option<&'a Bound<'py, PyAny>>,
    axis: Option<f64>,
    offset_mm: [f64; 2],
    tilt: f64,
    height_mm: f64,
}

impl Common<'_, '_> {
    /// An orbit with these, its distances from the axis, the height of a turn, and whether the detector is
    /// bent around the source.
    fn orbit(&self, distances: Option<[f64; 2]>, advance_mm: f64, curved: bool) -> PyResult<CtGeometry> {
        let angles = doubles::<Ix1>("angles", "[view]", self.angles)?.to_vec();
        warn_of_degrees(self.angles.py(), "angles", &angles)?;
        let ([rows, columns], pitch_mm) = (self.size, pitch(self.pitch_mm)?);
        let mut offset_mm = self.offset_mm;
        if let Some(axis) = self.axis {
            if offset_mm[0] != 0.0 {
                let found = format!("both, {axis} and {} mm", offset_mm[0]);
                return Err(raised(Error::value("axis", "the axis or an offset along u", found)));
            }
            if !axis.is_finite() {
                return Err(raised(Error::value("axis", "a column of the detector", axis)));
            }
            offset_mm[0] = (0.5 * (columns as f64 - 1.0) - axis) * pitch_mm[0];
        }
        let [source, detector] = distances.unwrap_or_default();
        let orbit = Orbit {
            source_to_axis_mm: distances.map(|_| source),
            axis_to_detector_mm: detector,
            offset_mm,
            tilt: self.tilt,
            height_mm: self.height_mm,
            advance_mm,
            angles,
        };
        let radius_mm = curved.then_some(source + detector);
        let rays = ProjectionGeometry::orbit(Detector { rows, columns, pitch_mm, radius_mm }, &orbit);
        Ok(CtGeometry { rays: Arc::new(rays.map_err(raised)?), angles: orbit.angles })
    }
}

fn pitch(given: Option<&Bound<'_, PyAny>>) -> PyResult<[f64; 2]> {
    given.map_or(Ok([1.0; 2]), |given| several("pitch_mm", PAIR, given))
}

/// The pixels of a detector. Errors: a `ValueError` for none.
fn size(rows: i64, columns: i64) -> PyResult<[usize; 2]> {
    let at_least_one = |what, n: i64| {
        usize::try_from(n).ok().filter(|&n| n > 0).ok_or_else(|| raised(Error::value(what, "1 or more", n)))
    };
    Ok([at_least_one("rows", rows)?, at_least_one("columns", columns)?])
}

impl CtGeometry {
    /// Rays without the angles of their views: these follow from the detectors.
    pub(crate) fn of(rays: ProjectionGeometry) -> Self {
        let angles = view_angles(&rays);
        Self { rays: Arc::new(rays), angles }
    }

    /// The same rays, for views at these angles.
    pub(crate) fn with_angles(rays: ProjectionGeometry, angles: Vec<f64>) -> Self {
        Self { rays: Arc::new(rays), angles }
    }

    /// The number of a view. Errors: a `ValueError` for one that there is not.
    fn view(&self, view: i64) -> PyResult<usize> {
        let views = self.rays.views().len();
        let index = usize::try_from(view).ok().filter(|&view| view < views);
        index.ok_or_else(|| raised(Error::value("view", format!("one of 0 to {}", views - 1), view)))
    }
}

#[pymethods]
impl CtGeometry {
    /// Parallel rays.
    ///
    /// angles: one for each view in radian, `[view]`.
    /// rows, columns: the numbers of the detector's pixels.
    /// pitch_mm: the distance between pixels, one length or (along columns, along rows); 1 mm unless given.
    /// axis: the column on which the axis of rotation falls, counted from 0; the middle one unless given.
    /// offset_mm: the shift (u, v) of the detector. tilt: its rotation in its plane in radian. height_mm: h.
    ///
    /// Returns a `Geometry`. Raises ValueError for numbers out of range or not finite, TypeError for
    /// arguments of another type. Warns of angles that look like degrees.
    ///
    /// `(angles: ArrayLike, rows: int, columns: int, pitch_mm: float | Sequence[float] | None, *, axis: float
    /// | None, offset_mm: Sequence[float] | None, tilt: float, height_mm: float) -> ct.Geometry`
    #[classmethod]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    #[pyo3(signature = (angles, rows, columns, pitch_mm=None, *, axis=None, offset_mm=None, tilt=0.0, height_mm=0.0))]
    fn parallel(
        _class: &Bound<'_, PyType>,
        angles: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole)] rows: i64,
        #[pyo3(from_py_with = whole)] columns: i64,
        pitch_mm: Option<&Bound<'_, PyAny>>,
        axis: Option<f64>,
        offset_mm: Option<[f64; 2]>,
        tilt: f64,
        height_mm: f64,
    ) -> PyResult<Self> {
        let (size, offset_mm) = (size(rows, columns)?, offset_mm.unwrap_or_default());
        Common { angles, size, pitch_mm, axis, offset_mm, tilt, height_mm }.orbit(None, 0.0, false)
    }

    /// A cone beam on a circle; a fan beam with one row.
    ///
    /// source_to_axis_mm, axis_to_detector_mm: distances in mm. curved: bends the detector around the source.
    /// The rest, and what it returns and raises, is as for `parallel`.
    ///
    /// `(angles: ArrayLike, rows: int, columns: int, pitch_mm: float | Sequence[float] | None, *,
    /// source_to_axis_mm: float, axis_to_detector_mm: float, curved: bool, axis: float | None, offset_mm:
    /// Sequence[float] | None, tilt: float, height_mm: float) -> ct.Geometry`
    #[classmethod]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    #[pyo3(signature = (angles, rows, columns, pitch_mm=None, *, source_to_axis_mm, axis_to_detector_mm, curved=false, axis=None,
        offset_mm=None, tilt=0.0, height_mm=0.0))]
    fn cone(
        _class: &Bound<'_, PyType>,
        angles: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole)] rows: i64,
        #[pyo3(from_py_with = whole)] columns: i64,
        pitch_mm: Option<&Bound<'_, PyAny>>,
        source_to_axis_mm: f64,
        axis_to_detector_mm: f64,
        curved: bool,
        axis: Option<f64>,
        offset_mm: Option<[f64; 2]>,
        tilt: f64,
        height_mm: f64,
    ) -> PyResult<Self> {
        let (size, offset_mm) = (size(rows, columns)?, offset_mm.unwrap_or_default());
        let common = Common { angles, size, pitch_mm, axis, offset_mm, tilt, height_mm };
        common.orbit(Some([source_to_axis_mm, axis_to_detector_mm]), 0.0, curved)
    }

    /// A cone beam on a helix.
    ///
    /// advance_mm: the height that the helix gains in a turn; the middle view has the height `height_mm`. The
    /// rest, and what it returns and raises, is as for `cone`.
    ///
    /// `(angles: ArrayLike, rows: int, columns: int, pitch_mm: float | Sequence[float] | None, *,
    /// source_to_axis_mm: float, axis_to_detector_mm: float, advance_mm: float, curved: bool, axis: float |
    /// None, offset_mm: Sequence[float] | None, tilt: float, height_mm: float) -> ct.Geometry`
    #[classmethod]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    #[pyo3(signature = (angles, rows, columns, pitch_mm=None, *, source_to_axis_mm, axis_to_detector_mm, advance_mm, curved=false,
        axis=None, offset_mm=None, tilt=0.0, height_mm=0.0))]
    fn helix(
        _class: &Bound<'_, PyType>,
        angles: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole)] rows: i64,
        #[pyo3(from_py_with = whole)] columns: i64,
        pitch_mm: Option<&Bound<'_, PyAny>>,
        source_to_axis_mm: f64,
        axis_to_detector_mm: f64,
        advance_mm: f64,
        curved: bool,
        axis: Option<f64>,
        offset_mm: Option<[f64; 2]>,
        tilt: f64,
        height_mm: f64,
    ) -> PyResult<Self> {
        let (size, offset_mm) = (size(rows, columns)?, offset_mm.unwrap_or_default());
        let common = Common { angles, size, pitch_mm, axis, offset_mm, tilt, height_mm };
        common.orbit(Some([source_to_axis_mm, axis_to_detector_mm]), advance_mm, curved)
    }

    /// Any path: the vectors `[view, 12]` of ASTRA's `cone_vec`, or of `parallel3d_vec` if `parallel`. Each
    /// row has the source (or the direction of the rays), the middle of the detector, the step from a pixel
    /// to its neighbour along a row, and along a column. These need not be at right angles on a flat
    /// detector, whose projections iterative methods take.
    ///
    /// rows, columns: the detector's pixels. radius_mm: of a detector that is bent. Returns a `Geometry`,
    /// lengths in the vectors' unit, mm. Raises ValueError for another shape and for vectors that make no
    /// detector.
    ///
    /// `(vectors: ArrayLike, rows: int, columns: int, *, parallel: bool, radius_mm: float | None) ->
    /// ct.Geometry`
    #[classmethod]
    #[pyo3(signature = (vectors, rows, columns, *, parallel=false, radius_mm=None))]
    fn from_vectors(
        _class: &Bound<'_, PyType>,
        vectors: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole)] rows: i64,
        #[pyo3(from_py_with = whole)] columns: i64,
        parallel: bool,
        radius_mm: Option<f64>,
    ) -> PyResult<Self> {
        let vectors = doubles::<Ix2>("vectors", "[view, 12]", vectors)?;
        from_vectors(vectors.view(), size(rows, columns)?, parallel, radius_mm).map(Self::of).map_err(raised)
    }

    /// The rays of a geometry file of RTK (XML); the middle of the detector is the origin of RTK's
    /// projections.
    ///
    /// Returns a `Geometry`. Raises FileNotFoundError or another OSError where the system refuses the file,
    /// ValueError for another file.
    ///
    /// `(path: str | PathLike[str], rows: int, columns: int, pitch_mm: float | Sequence[float] | None) ->
    /// ct.Geometry`
    #[classmethod]
    #[pyo3(signature = (path, rows, columns, pitch_mm=None))]
    fn read_rtk(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        path: PathBuf,
        #[pyo3(from_py_with = whole)] rows: i64,
        #[pyo3(from_py_with = whole)] columns: i64,
        pitch_mm: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let [rows, columns] = size(rows, columns)?;
        let read = py.detached(|| rayspin::io::rtk::read(&path));
        let file = read?.map_err(|error| of_file(Call::Ct, &error))?;
        let detector = Detector { rows, columns, pitch_mm: pitch(pitch_mm)?, radius_mm: file.radius_mm };
        from_rtk(&file.projections, detector, [0.0; 2]).map(Self::of).map_err(raised)
    }

    /// The rays of some of the views, numbers from 0, in this order.
    ///
    /// Returns a `Geometry`. Raises ValueError for a view that there is not.
    ///
    /// `(views: Sequence[int]) -> ct.Geometry`
    fn select(&self, views: Vec<i64>) -> PyResult<Self> {
        let views = views.into_iter().map(|view| self.view(view)).collect::<PyResult<Vec<_>>>()?;
        let rays = self.rays.select(views.iter().copied()).map_err(raised)?;
        Ok(Self { rays: Arc::new(rays), angles: views.iter().map(|&view| self.angles[view]).collect() })
    }

    /// The voxels that the detector resolves at the axis, or as many and as large as `matrix` (x, y, z),
    /// `voxel_mm` and `centre_mm` (from the axis and the middle of the orbit) say.
    ///
    /// Returns a `Grid`. Raises ValueError for numbers out of range, TypeError for arguments of another type.
    ///
    /// `(matrix: Sequence[int] | None, voxel_mm: float | Sequence[float] | None, centre_mm: Sequence[float] |
    /// None) -> ct.Grid`
    #[pyo3(signature = (matrix=None, voxel_mm=None, centre_mm=None))]
    fn grid(
        &self,
        matrix: Option<&Bound<'_, PyAny>>,
        voxel_mm: Option<&Bound<'_, PyAny>>,
        centre_mm: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Grid> {
        let options = grid_options(matrix, voxel_mm, centre_mm)?;
        Ok(Grid { grid: grid(&self.rays, &options).map_err(raised)? })
    }

    /// Returns the centre of a pixel, (x, y, z) in mm. Rows and columns are counted from 0 and may lie
    /// between pixels. Raises ValueError for a view that there is not.
    ///
    /// `(view: int, row: float, column: float) -> tuple[float, float, float]`
    fn pixel_mm(
        &self,
        #[pyo3(from_py_with = whole)] view: i64,
        row: f64,
        column: f64,
    ) -> PyResult<(f64, f64, f64)> {
        Ok(self.rays.pixel_mm(self.view(view)?, row, column).into())
    }

    /// Returns the row and column at which the ray through a point (x, y, z) in mm meets the detector; None
    /// where it does not. Raises ValueError for a view that there is not.
    ///
    /// `(view: int, point_mm: Sequence[float]) -> tuple[float, float] | None`
    fn project(
        &self,
        #[pyo3(from_py_with = whole)] view: i64,
        point_mm: &Bound<'_, PyAny>,
    ) -> PyResult<Option<(f64, f64)>> {
        Ok(self.rays.project(self.view(view)?, exactly("point_mm", THREE, point_mm)?).map(Into::into))
    }

    /// The shape of projections, (views, rows, columns).
    /// `-> tuple[int, int, int]`
    #[getter]
    fn shape(&self) -> (usize, usize, usize) {
        self.rays.shape().into()
    }

    /// Distance between pixels along columns and rows (u, v) in mm.
    /// `-> tuple[float, float]`
    #[getter]
    fn pitch_mm(&self) -> (f64, f64) {
        self.rays.detector().pitch_mm.into()
    }

    /// Radius of a curved detector in mm; none where it is flat.
    /// `-> float | None`
    #[getter]
    fn radius_mm(&self) -> Option<f64> {
        self.rays.detector().radius_mm
    }

    /// Whether the rays of a view are parallel.
    /// `-> bool`
    #[getter]
    fn is_parallel(&self) -> bool {
        self.rays.is_parallel()
    }

    /// The angle of each view, radian.
    /// `-> NDArray[np.float64]`
    #[getter]
    fn angles<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        to_numpy(py, Array1::from(self.angles.clone()).into_dyn())
    }

    /// Source or direction, detector, u and v of each view, `[view, 12]`, as `from_vectors` takes them.
    /// `-> NDArray[np.float64]`
    #[getter]
    fn vectors<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        let vectors: Array2<f64> = to_vectors(&self.rays);
        to_numpy(py, vectors.into_dyn())
    }

    /// The number of views.
    fn __len__(&self) -> usize {
        self.rays.views().len()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    /// The geometry itself, which never changes.
    /// `() -> ct.Geometry`
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// As `__copy__`.
    /// `(_memo: Any) -> ct.Geometry`
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.rays == other.rays
    }

    fn __repr__(&self) -> String {
        let [views, rows, columns] = self.rays.shape();
        let rays = if self.rays.is_parallel() { "parallel rays" } else { "rays from a point" };
        format!("Geometry({views} views of {rows} x {columns} pixels, {rays})")
    }
}

impl Remade for CtGeometry {
    /// Numbers of a view: the source or direction, the middle of the detector, unit vectors along rows and
    ///     columns.
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, own) = (object.py(), object.get());
        let Detector { rows, columns, pitch_mm, radius_mm } = *own.rays.detector();
        let numbers = |view: &View| {
            let (RaySource::Point(source) | RaySource::Direction(source)) = view.source;
            [source, view.detector_mm, view.u, view.v].concat()
        };
        let components: Vec<f64> = own.rays.views().iter().flat_map(numbers).collect();
        let views = Array2::from_shape_vec((own.rays.views().len(), 12), components);
        let views = views.map_err(|error| raised(Error::value("views", "12 numbers each", error)))?;
        let parts = PyDict::new(py);
        parts.set_item("views", to_numpy(py, views.into_dyn()))?;
        parts.set_item("parallel", own.rays.is_parallel())?;
        parts.set_item("detector", (rows, columns, pitch_mm, radius_mm))?;
        parts.set_item("angles", to_numpy(py, Array1::from(own.angles.clone()).into_dyn()))?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (rows, columns, pitch_mm, radius_mm) = parts.get("detector")?;
        let (numbers, angles) =
            (parts.array::<f64, Ix2>("views", "[view, 12]")?, parts.array::<f64, Ix1>("angles", "[view]")?);
        if numbers.ncols() != 12 || angles.len() != numbers.nrows() {
            return Err(raised(Error::shape("views", &[angles.len(), 12], numbers.shape())));
        }
        let parallel: bool = parts.get("parallel")?;
        let view = |row: ArrayView1<'_, f64>| {
            let vector = |first: usize| std::array::from_fn(|axis| row[first + axis]);
            let source = if parallel { RaySource::Direction(vector(0)) } else { RaySource::Point(vector(0)) };
            View { source, detector_mm: vector(3), u: vector(6), v: vector(9) }
        };
        let views = numbers.rows().into_iter().map(view).collect();
        let detector = Detector { rows, columns, pitch_mm, radius_mm };
        let rays = ProjectionGeometry::new(detector, views).map_err(raised)?;
        Ok(Bound::new(parts.python(), Self::with_angles(rays, angles.to_vec()))?.into_any())
    }
}

/// Options of a grid.
pub(crate) fn grid_options(
    matrix: Option<&Bound<'_, PyAny>>,
    voxel_mm: Option<&Bound<'_, PyAny>>,
    centre_mm: Option<&Bound<'_, PyAny>>,
) -> PyResult<GridOptions> {
    let expected = "whole numbers (x, y) or (x, y, z)";
    let matrix = matrix.map(|given| match given.extract::<[i64; 2]>() {
        Ok(_) => lengths("matrix", expected, given).map(|[x, y]| [x, y, 1]),
        Err(_) => lengths("matrix", expected, given),
    });
    let voxel = |given| several("voxel_mm", "a length in mm, or three (x, y, z)", given);
    Ok(GridOptions {
        matrix: matrix.transpose()?,
        voxel_mm: voxel_mm.map(voxel).transpose()?,
        centre_mm: centre_mm.map_or(Ok([0.0; 3]), |given| exactly("centre_mm", THREE, given))?,
    })
}

/// The voxels of a volume `[z, y, x]`: their number `shape`, their size `spacing_mm` along (x, y, z), and the
/// middle of their box `centre_mm` (x, y, z), in the coordinates of `Geometry`.
///
/// The centre of voxel `[k, j, i]` lies at centre + ((i, j, k) - (n - 1)/2) spacing.
///
/// >>> from rayspin import ct
/// >>> ct.Grid((1, 4, 5), (0.5, 0.5, 2.0), (0, 0, 10)).first_mm
/// (-1.0, -0.75, 10.0)
///
/// `(shape: Sequence[int], spacing_mm: float | Sequence[float], centre_mm: Sequence[float] | None) ->
/// ct.Grid`
#[pyclass(frozen, module = "rayspin.ct")]
pub(crate) struct Grid {
    pub(crate) grid: VolumeGrid,
}

#[pymethods]
impl Grid {
    #[new]
    #[pyo3(signature = (shape, spacing_mm, centre_mm=None))]
    fn new(
        shape: &Bound<'_, PyAny>,
        spacing_mm: &Bound<'_, PyAny>,
        centre_mm: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let shape = lengths("shape", "three whole numbers (z, y, x)", shape)?;
        let spacing = several("spacing_mm", "a length in mm, or three (x, y, z)", spacing_mm)?;
        let centre = centre_mm.map_or(Ok([0.0; 3]), |given| exactly("centre_mm", THREE, given))?;
        Ok(Self { grid: VolumeGrid::new(shape, spacing, centre).map_err(raised)? })
    }

    /// Number of voxels along (z, y, x), the shape of volumes.
    /// `-> tuple[int, int, int]`
    #[getter]
    fn shape(&self) -> (usize, usize, usize) {
        self.grid.shape_zyx().into()
    }

    /// Voxel size along (x, y, z) in mm.
    /// `-> tuple[float, float, float]`
    #[getter]
    fn spacing_mm(&self) -> (f64, f64, f64) {
        self.grid.spacing_mm().into()
    }

    /// The middle of the box, (x, y, z) in mm.
    /// `-> tuple[float, float, float]`
    #[getter]
    fn centre_mm(&self) -> (f64, f64, f64) {
        self.grid.centre_mm().into()
    }

    /// The centre of voxel `[0, 0, 0]`, (x, y, z) in mm.
    /// `-> tuple[float, float, float]`
    #[getter]
    fn first_mm(&self) -> (f64, f64, f64) {
        self.grid.first_mm().into()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.grid == other.grid
    }

    fn __repr__(&self) -> String {
        format!("Grid({:?}, {:?}, {:?})", self.shape(), self.spacing_mm(), self.centre_mm())
    }
}

impl Remade for Grid {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (parts, own) = (PyDict::new(object.py()), object.get());
        parts.set_item("shape", own.shape())?;
        parts.set_item("spacing_mm", own.spacing_mm())?;
        parts.set_item("centre_mm", own.centre_mm())?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let grid = VolumeGrid::new(parts.get("shape")?, parts.get("spacing_mm")?, parts.get("centre_mm")?);
        Ok(Bound::new(parts.python(), Self { grid: grid.map_err(raised)? })?.into_any())
    }
}
