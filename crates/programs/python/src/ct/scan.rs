use std::path::PathBuf;
use std::sync::Arc;

use ndarray::{Array1, Array3, ArrayD, Axis, Ix1, Ix3, IxDyn};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyString, PyType};
use rayspin::core::{Error, Ranges, format_shape};
use rayspin::ct::corrections::{Corrections, Table, with};
use rayspin::ct::recon::even_angles;
use rayspin::ct::scan::{Counts, Measured, Part, PixelSize, Scan, find_axis};
use rayspin::io::{Projections, data_exchange, read_views};

use super::CtGeometry;
use crate::degrees::warn_of_degrees;
use crate::error::{did_you_mean, of_file, raised, wrong_type};
use crate::exchange::copied::{doubles, singles};
use crate::exchange::to_numpy;
use crate::parameters::values_of;
use crate::processor::Processor;
use crate::remade::{self, Parts, Reduced, Remade};
use crate::signals::Detached;
use crate::words::Call;

/// A CT scan: line integrals, or counts of photons with the flat and dark fields of the detector; the angles,
/// and the rays where they are known. Properties return copies of arrays.
///
/// >>> import numpy as np
/// >>> from rayspin import ct
/// >>> rays = ct.Geometry.parallel(np.linspace(0, np.pi, 4, endpoint=False), 2, 8)
/// >>> counts = np.full((4, 2, 8), 50, np.uint16)
/// >>> scan = ct.Scan.from_arrays(counts, rays, flats=100)
/// >>> scan.shape, round(float(scan.line_integrals(device="cpu")[0, 0, 0]), 4)  # -ln(50 / 100)
/// ((4, 2, 8), 0.6931)
#[pyclass(frozen, name = "Scan", module = "rayspin.ct")]
pub(crate) struct CtScan {
    pub(crate) scan: Arc<Scan>,
    /// What the reader assumed or repaired.
    /// `-> list[str]`
    #[pyo3(get)]
    notes: Vec<String>,
    /// The files that the scan was read from. Nothing that is made from the scan may replace them.
    pub(crate) sources: Vec<PathBuf>,
}

impl CtScan {
    pub(crate) fn of(scan: Scan) -> Self {
        Self { scan: Arc::new(scan), notes: Vec::new(), sources: Vec::new() }
    }

    fn changed(&self, change: impl FnOnce(Scan) -> rayspin::core::Result<Scan>) -> PyResult<Self> {
        let scan = change((*self.scan).clone()).map_err(raised)?;
        Ok(Self { scan: Arc::new(scan), notes: self.notes.clone(), sources: self.sources.clone() })
    }
}

#[pymethods]
impl CtScan {
    /// A scan of `projections` `[view, row, column]` or `[view, column]`: line integrals, or counts if
    /// `flats` are given. Flat fields (without the object) and dark fields (without the beam; 0 unless they
    /// are given) are one number, or an image or several `[frame, row, column]`. Either `geometry` or
    /// `angles` (radian) states the views; without rays `recon` assumes some.
    ///
    /// Returns a `Scan`, which has float32 copies of the arrays: line integrals without unit, or counts.
    /// Raises ValueError for shapes that do not fit each other and numbers that are not finite, TypeError for
    /// complex numbers, for an argument that is no array, and for darks without flats.
    ///
    /// `(projections: Any, geometry: ct.Geometry | None, *, angles: ArrayLike | None, flats: Any, darks: Any)
    /// -> ct.Scan`
    #[classmethod]
    #[pyo3(signature = (projections, geometry=None, *, angles=None, flats=None, darks=None))]
    fn from_arrays(
        _class: &Bound<'_, PyType>,
        projections: &Bound<'_, PyAny>,
        geometry: Option<&CtGeometry>,
        angles: Option<&Bound<'_, PyAny>>,
        flats: Option<&Bound<'_, PyAny>>,
        darks: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let axes = "[view, row, column] or [view, column]";
        let views = singles::<IxDyn>("projections", axes, projections)?;
        let views = if views.ndim() == 2 { views.insert_axis(Axis(1)) } else { views };
        let found = format_shape(views.shape());
        let wrong = |_| PyValueError::new_err(format!("projections: expected {axes}, found shape {found}"));
        let views = views.into_dimensionality::<Ix3>().map_err(wrong)?;
        let (_, rows, columns) = views.dim();
        let angles = match (geometry, angles) {
            (_, Some(given)) => {
                let angles = doubles::<Ix1>("angles", "[view]", given)?.to_vec();
                warn_of_degrees(given.py(), "angles", &angles)?;
                angles
            }
            (Some(geometry), None) => geometry.angles.clone(),
            (None, None) => {
                return Err(PyTypeError::new_err("from_arrays: expected geometry or angles, found neither"));
            }
        };
        let measured = match (flats, darks) {
            (None, None) => Measured::Lines(views),
            (None, Some(_)) => {
                return Err(PyTypeError::new_err("darks: expected flats beside them, found none"));
            }
            (Some(flats), darks) => Measured::Counts(Counts {
                views,
                flats: frames("flats", flats, [rows, columns])?,
                darks: match darks {
                    Some(darks) => frames("darks", darks, [rows, columns])?,
                    None => Array3::zeros((0, rows, columns)),
                },
            }),
        };
        let rays = geometry.map(|geometry| (*geometry.rays).clone());
        Ok(Self::of(Scan::new(measured, angles, rays).map_err(raised)?))
    }

    /// The same scan with these rays, in place of those that it has. Returns a `Scan`. Raises ValueError if
    /// their shape is not the scan's.
    ///
    /// `(geometry: ct.Geometry) -> ct.Scan`
    fn with_geometry(&self, geometry: &CtGeometry) -> PyResult<Self> {
        let (rays, angles) = ((*geometry.rays).clone(), geometry.angles.clone());
        self.changed(|scan| Scan::new(scan.measured, angles, Some(rays)))
    }

    /// Some views, and the rows and columns of the detector that lie side by side: slices, ranges or lists of
    /// numbers from 0.
    ///
    /// Returns a `Scan`. Raises ValueError for numbers out of range, TypeError for other arguments.
    ///
    /// `(views: slice | Sequence[int] | None, rows: slice | Sequence[int] | None, columns: slice |
    /// Sequence[int] | None) -> ct.Scan`
    #[pyo3(signature = (views=None, rows=None, columns=None))]
    fn select(
        &self,
        views: Option<&Bound<'_, PyAny>>,
        rows: Option<&Bound<'_, PyAny>>,
        columns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let shape = self.scan.shape();
        let chosen = |what: &str, given: Option<&Bound<'_, PyAny>>, axis: usize| {
            given.map(|given| ranges(what, given, shape[axis])).transpose()
        };
        let (views, rows) = (chosen("views", views, 0)?, chosen("rows", rows, 1)?);
        let columns = chosen("columns", columns, 2)?;
        let part = Part::of(shape, views.as_ref(), rows.as_ref(), columns.as_ref()).map_err(raised)?;
        self.changed(|scan| part.scan(scan))
    }

    /// The line integrals `[view, row, column]`. From counts they are -ln((counts - dark) / (flat - dark)),
    /// after the corrections that `correct` names, as `recon` takes them.
    ///
    /// Returns float32 `[view, row, column]` without unit. Raises ValueError for an unknown correction,
    /// TypeError for a parameter of another name or type.
    ///
    /// `(*, correct: Corrections | None, device: str) -> NDArray[np.float32]`
    #[pyo3(signature = (*, correct=None, device="auto"))]
    fn line_integrals<'py>(
        &self,
        py: Python<'py>,
        correct: Option<&Bound<'py, PyAny>>,
        device: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (processor, corrections) = (Processor::named(device)?, corrections_of(correct)?);
        let scan = (*self.scan).clone();
        let lines = py.detached(|| corrections.lines(&processor.device, scan, None, &mut Vec::new()));
        match lines?.map_err(raised)?.measured {
            Measured::Lines(lines) => Ok(to_numpy(py, lines.into_dyn())),
            Measured::Counts(_) => Err(raised(Error::value("corrected scan", "line integrals", "counts"))),
        }
    }

    /// The column on which the axis of rotation falls in the middle row of parallel rays, counted from 0 at
    /// the middle of the first column. Views cover half a turn or more; their steps may be uneven.
    ///
    /// Returns a float, in columns. Raises ValueError for a fan or cone beam, for other views, and where the
    /// views do not show an axis.
    ///
    /// `(*, device: str) -> float`
    #[pyo3(signature = (*, device="auto"))]
    fn find_axis(&self, py: Python<'_>, device: &str) -> PyResult<f64> {
        if self.scan.geometry.as_ref().is_some_and(|rays| !rays.is_parallel()) {
            return Err(raised(Error::value(
                "rays to find the axis in",
                "parallel ones",
                "a fan or cone beam",
            )));
        }
        let processor = Processor::named(device)?;
        let scan = (*self.scan).clone();
        let axis = py.detached(|| {
            let angles = scan.angles.clone();
            let lines = scan.into_lines(processor.device.cpu_side(), &mut Vec::new())?;
            find_axis(&processor.device, lines.view(), &angles)
        });
        axis?.map_err(raised)
    }

    /// Writes the scan as Data Exchange HDF5, with the rays of each view. Returns None. Raises ValueError for
    /// a file from which the scan was read, OSError where the system refuses the file.
    ///
    /// `(path: str | PathLike[str]) -> None`
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detached(|| {
            rayspin::io::expect_apart(&self.sources, &[&path])?;
            data_exchange::write(&path, &self.scan)
        });
        written?.map_err(|error| of_file(Call::Ct, &error))
    }

    /// What was measured, `[view, row, column]`: line integrals, or counts where there are flat fields.
    /// `-> NDArray[np.float32]`
    #[getter]
    fn projections<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        let (Measured::Lines(views) | Measured::Counts(Counts { views, .. })) = &self.scan.measured;
        to_numpy(py, views.clone().into_dyn())
    }

    /// Flat fields `[frame, row, column]`; none where the projections are line integrals.
    /// `-> NDArray[np.float32] | None`
    #[getter]
    fn flats<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match &self.scan.measured {
            Measured::Lines(_) => None,
            Measured::Counts(counts) => Some(to_numpy(py, counts.flats.clone().into_dyn())),
        }
    }

    /// Dark fields `[frame, row, column]`; none where the projections are line integrals.
    /// `-> NDArray[np.float32] | None`
    #[getter]
    fn darks<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match &self.scan.measured {
            Measured::Lines(_) => None,
            Measured::Counts(counts) => Some(to_numpy(py, counts.darks.clone().into_dyn())),
        }
    }

    /// The angle of each view, radian.
    /// `-> NDArray[np.float64]`
    #[getter]
    fn angles<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        to_numpy(py, Array1::from(self.scan.angles.clone()).into_dyn())
    }

    /// The rays; none where they are not known.
    /// `-> ct.Geometry | None`
    #[getter]
    fn geometry(&self) -> Option<CtGeometry> {
        let rays = self.scan.geometry.clone()?;
        Some(CtGeometry::with_angles(rays, self.scan.angles.clone()))
    }

    /// The size of a pixel along columns and rows in mm: of the rays' detector, else as the file states it;
    /// none where it is not known.
    /// `-> tuple[float, float] | None`
    #[getter]
    fn pixel_mm(&self) -> Option<(f64, f64)> {
        let of_rays = self.scan.geometry.as_ref().map(|rays| rays.detector().pitch_mm);
        of_rays.or(self.scan.pixel.map(|pixel| pixel.mm)).map(Into::into)
    }

    /// The shape of the projections, (views, rows, columns).
    /// `-> tuple[int, int, int]`
    #[getter]
    fn shape(&self) -> (usize, usize, usize) {
        self.scan.shape().into()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    /// The scan itself, which never changes.
    /// `() -> ct.Scan`
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// As `__copy__`.
    /// `(_memo: Any) -> ct.Scan`
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// The number of views.
    fn __len__(&self) -> usize {
        self.scan.shape()[0]
    }

    fn __repr__(&self) -> String {
        let [views, rows, columns] = self.scan.shape();
        let what = match self.scan.measured {
            Measured::Lines(_) => "line integrals",
            Measured::Counts(_) => "counts",
        };
        format!("Scan({views} views of {rows} x {columns} {what})")
    }
}

impl Remade for CtScan {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, own) = (object.py(), object.get());
        let parts = PyDict::new(py);
        parts.set_item("projections", own.projections(py))?;
        parts.set_item("flats", own.flats(py))?;
        parts.set_item("darks", own.darks(py))?;
        parts.set_item("angles", own.angles(py))?;
        parts.set_item("geometry", own.geometry())?;
        parts.set_item("pixel", own.scan.pixel.map(|pixel| (pixel.mm, pixel.at_object)))?;
        parts.set_item("notes", &own.notes)?;
        parts.set_item("sources", own.sources.iter().map(|file| file.as_os_str()).collect::<Vec<_>>())?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (axes, of_fields) = ("[view, row, column]", "[frame, row, column]");
        let views = parts.array::<f32, Ix3>("projections", axes)?;
        let measured = match parts.array_or_none::<f32, Ix3>("flats", of_fields)? {
            None => Measured::Lines(views),
            Some(flats) => {
                Measured::Counts(Counts { views, flats, darks: parts.array::<f32, Ix3>("darks", of_fields)? })
            }
        };
        let angles = parts.array::<f64, Ix1>("angles", "[view]")?.to_vec();
        let geometry: Option<Bound<'py, CtGeometry>> = parts.get("geometry")?;
        let rays = geometry.map(|geometry| (*geometry.get().rays).clone());
        let mut scan = Scan::new(measured, angles, rays).map_err(raised)?;
        let pixel: Option<([f64; 2], bool)> = parts.get("pixel")?;
        scan.pixel = pixel.map(|(mm, at_object)| PixelSize { mm, at_object });
        let scan = Self { scan: Arc::new(scan), notes: parts.get("notes")?, sources: parts.get("sources")? };
        Ok(Bound::new(parts.python(), scan)?.into_any())
    }
}

/// Flat or dark fields. Errors: an argument that is no number, image or stack of images.
fn frames(
    what: &'static str,
    given: &Bound<'_, PyAny>,
    [rows, columns]: [usize; 2],
) -> PyResult<Array3<f32>> {
    let axes = "[frame, row, column]";
    let values: ArrayD<f32> = singles(what, axes, given)?;
    let shape = match *values.shape() {
        [] => {
            let value = values.first().copied().unwrap_or_default();
            return Ok(Array3::from_elem((1, rows, columns), value));
        }
        [wide] if rows == 1 => [1, 1, wide],
        [count, wide] if rows == 1 => [count, 1, wide],
        [high, wide] => [1, high, wide],
        [count, high, wide] => [count, high, wide],
        ref other => return Err(raised(Error::value(what, format!("axes {axes}"), format_shape(other)))),
    };
    values.into_shape_with_order(shape).map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
}

/// Numbers from a slice, a range or a list of Python. A slice runs over `count` elements.
fn ranges(what: &str, given: &Bound<'_, PyAny>, count: usize) -> PyResult<Ranges> {
    let numbers: Vec<usize> = match given.cast::<PySlice>() {
        Ok(slice) => {
            let builtins = given.py().import("builtins")?;
            let bounds = slice.call_method1("indices", (count,))?;
            let bounds = bounds.cast::<pyo3::types::PyTuple>()?;
            builtins
                .getattr("range")?
                .call1(bounds)?
                .try_iter()?
                .map(|one| one?.extract())
                .collect::<PyResult<_>>()?
        }
        Err(_) => {
            let wrong = |_| wrong_type(what, "a slice, a range or a list of numbers from 0", given);
            given.extract().map_err(wrong)?
        }
    };
    let text: Vec<String> = numbers.iter().map(usize::to_string).collect();
    let none = |_| raised(Error::value(what, "at least one number", "none"));
    text.join(",").parse().map_err(none)
}

/// Corrections by name: one, several, or with parameters `{name: {parameter: value}}`.
///
/// Errors: unknown names and parameters; a correction that lacks a parameter.
pub(crate) fn corrections_of(given: Option<&Bound<'_, PyAny>>) -> PyResult<Corrections> {
    let Some(given) = given else { return Ok(Corrections::default()) };
    let expected = "names of corrections, or {name: {parameter: value}}";
    let table = Table::default();
    let mut chosen = Vec::new();
    let py = given.py();
    let mut add = |name: &str, parameters: Option<&Bound<'_, PyDict>>| -> PyResult<()> {
        let Some(correction) = table.iter().find(|one| one.about().name == name) else {
            let names: Vec<String> = table.iter().map(|one| one.about().name.to_owned()).collect();
            let found = format!("{name}{}", did_you_mean(py, name, &names)?);
            return Err(raised(Error::value("correct", table.names(|_| true), found)));
        };
        let values = values_of(py, &format!("correction {name}"), &correction.table(), parameters)?;
        chosen.push(with(correction, values).map_err(raised)?);
        Ok(())
    };
    if let Ok(by_name) = given.cast::<PyDict>() {
        for (name, parameters) in by_name {
            let name: String = name.extract().map_err(|_| wrong_type("correct", expected, given))?;
            let parameters =
                parameters.cast::<PyDict>().map_err(|_| wrong_type("correct", expected, given))?;
            add(&name, Some(parameters))?;
        }
    } else if given.is_instance_of::<PyString>() {
        add(&given.extract::<String>()?, None)?;
    } else {
        let names: Vec<String> = given.extract().map_err(|_| wrong_type("correct", expected, given))?;
        names.iter().try_for_each(|name| add(name, None))?;
    }
    Corrections::of(chosen).map_err(raised)
}

/// Reads a CT scan: Data Exchange or NXtomo (`.h5`), Zeiss (`.txrm`), or an array or image `[view, row,
/// column]`. A file without angles, such as an array, needs `geometry`, or the `arc` in radian over which its
/// views are spread evenly. `geometry` replaces the rays that a file states. `flats` and `darks` replace its
/// flat and dark fields, as `Scan.from_arrays` takes them; without `darks` its own stay. An array without
/// `flats` holds line integrals.
///
/// Returns a `Scan`. Raises FileNotFoundError, IsADirectoryError, PermissionError or another OSError where
/// the system refuses the file, ValueError for another file, one that is damaged, and rays that do not fit
/// it.
///
/// `(path: str | PathLike[str], *, geometry: ct.Geometry | None, arc: float | None, flats: Any, darks: Any)
/// -> ct.Scan`
#[pyfunction]
#[pyo3(signature = (path, *, geometry=None, arc=None, flats=None, darks=None))]
pub(crate) fn read_ct_scan(
    py: Python<'_>,
    path: PathBuf,
    geometry: Option<&CtGeometry>,
    arc: Option<f64>,
    flats: Option<&Bound<'_, PyAny>>,
    darks: Option<&Bound<'_, PyAny>>,
) -> PyResult<CtScan> {
    let file = |error: rayspin::io::Error| of_file(Call::Ct, &error);
    let is_scan = py.detached(|| Projections::are_in(&path))?.map_err(file)?;
    let angles = |views: usize| match (geometry, arc) {
        (Some(geometry), None) => Ok(geometry.angles.clone()),
        (None, Some(arc)) => {
            let angles = even_angles(views, arc);
            warn_of_degrees(py, "arc", &angles)?;
            Ok(angles)
        }
        _ => {
            let expected = "geometry= or arc= for a file without angles";
            Err(raised(Error::value(path.display().to_string(), expected, "neither or both")))
        }
    };
    let mut projections = match is_scan {
        true => {
            let scan = py.detached(|| Projections::open(&path))?.map_err(file)?;
            match (scan.states_angles(), arc) {
                (true, None) => scan,
                (true, Some(_)) => {
                    return Err(raised(Error::value("arc", "a file without angles", "one that states them")));
                }
                (false, _) => {
                    let views = scan.shape()[0];
                    scan.with_angles(angles(views)?).map_err(file)?
                }
            }
        }
        false => {
            let views = py.detached(|| read_views(&path))?.map_err(file)?;
            let angles = angles(views.values.shape()[0])?;
            Projections::of_array(&path, views, angles).map_err(file)?
        }
    };
    let [_, rows, columns] = projections.shape();
    if flats.is_some() || darks.is_some() {
        let none = || PyTypeError::new_err("darks: expected flats beside them, found none");
        let flats = frames("flats", flats.ok_or_else(none)?, [rows, columns])?;
        let darks = darks.map(|darks| frames("darks", darks, [rows, columns])).transpose()?;
        projections = projections.with_fields(flats, darks);
    }
    let notes = projections.notes().iter().map(|note| Call::Ct.told(note)).collect();
    let processor = Processor::named("cpu")?;
    let scan = py.detached(|| projections.into_scan(processor.device.cpu_side()))?.map_err(file)?;
    let scan = CtScan { scan: Arc::new(scan), notes, sources: crate::scan::sources([&path]) };
    match geometry {
        Some(geometry) => scan.with_geometry(geometry),
        None => Ok(scan),
    }
}
