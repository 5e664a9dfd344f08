use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::Error;
use rayspin::device::BackendKind;
use rayspin::linop::Projection;

use super::{CtGeometry, Grid};
use crate::error::{raised, wrong_type};
use crate::exchange::Dtype;
use crate::linop::{LinearOperator, Made};
use crate::processor::Processor;
use crate::remade::{self, Parts, Reduced, Remade, own};
use crate::signals::Detached;

/// The line integrals of a volume `[z, y, x]` along the rays of a scan, `[view, row, column]`, by Joseph's
/// method:
///
///     p(ray) = l sum_i w_i f(i, b_i, c_i)
///
/// The ray crosses plane i of voxels at (b_i, c_i), where f is linear between four voxels; l is its length
/// between two planes in mm. Line integrals of an attenuation in 1/mm have no unit. `adjoint` is the exact
/// transpose, with the same weights. float64 works on a CPU only.
///
/// Arrays come from NumPy, CuPy, torch or another library with DLPack. They have C order and the projector's
/// dtype, and are used where they lie. An array of another shape raises a ValueError, of another dtype or
/// device a TypeError.
///
/// >>> import numpy as np
/// >>> from rayspin import ct
/// >>> rays = ct.Geometry.parallel(np.linspace(0, np.pi, 4, endpoint=False), 1, 9)
/// >>> project = ct.Projector(rays, ct.Grid((1, 8, 8), 1.0), device="cpu")
/// >>> water = np.full((1, 8, 8), 0.02, np.float32)  # 1/mm
/// >>> projections = project.forward(water)
/// >>> round(float(projections[0, 0, 4]), 5)  # the middle ray is 8 mm long
/// 0.16
/// >>> back = project.adjoint(projections)
/// >>> bool(np.isclose(np.vdot(projections, projections), np.vdot(water, back)))
/// True
///
/// `(geometry: ct.Geometry, grid: ct.Grid, *, device: str, dtype: Any) -> ct.Projector`
#[pyclass(frozen, name = "Projector", module = "rayspin.ct")]
pub(crate) struct CtProjector {
    geometry: Py<CtGeometry>,
    grid: Py<Grid>,
    forward: Py<LinearOperator>,
    adjoint: Py<LinearOperator>,
}

#[pymethods]
impl CtProjector {
    #[new]
    #[pyo3(signature = (geometry, grid, *, device="auto", dtype=None))]
    fn new(
        py: Python<'_>,
        geometry: Py<CtGeometry>,
        grid: Py<Grid>,
        device: &str,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let processor = Processor::named(device)?;
        let (rays, voxels) = (&geometry.get().rays, &grid.get().grid);
        let dtype = Dtype::named(dtype, Dtype::F32)?;
        let made = Made::by(py, "projector").with(py, "geometry", &geometry)?.with(py, "grid", &grid)?;
        let made = made.with(py, "dtype", dtype.name())?.with(py, "device", processor.place.to_string())?;
        let forward = match dtype {
            Dtype::F32 => {
                let op = py.detached(|| Projection::<f32>::new(&processor.device, rays, voxels));
                LinearOperator::new(op?.map_err(raised)?, &processor, made)
            }
            Dtype::F64 if processor.device.kind() == BackendKind::Cuda => {
                let expected = "float32 on a GPU (device='cpu' has float64)";
                return Err(raised(Error::value("dtype", expected, "float64")));
            }
            Dtype::F64 => {
                let op = py.detached(|| Projection::<f64>::new(&processor.device, rays, voxels));
                LinearOperator::new(op?.map_err(raised)?, &processor, made)
            }
            other => return Err(wrong_type("dtype", "float32 or float64", other.name())),
        };
        let forward = Bound::new(py, forward)?;
        let adjoint = Py::new(py, LinearOperator::adjoint(&forward)?)?;
        Ok(Self { geometry, grid, forward: forward.unbind(), adjoint })
    }

    /// The line integrals p(ray) of a volume.
    ///
    /// volume: `[z, y, x]`, for example in 1/mm. out: an array that takes the result and is returned; a new
    ///     one unless given.
    ///
    /// Returns `[view, row, column]` of the projector's dtype, an array of the library that `volume` is of.
    /// Raises ValueError for another shape or order, TypeError for another dtype or device, what is no array,
    /// and a tensor of torch that requires a gradient.
    ///
    /// `(volume: NDArray[Number], out: NDArray[Number] | None) -> NDArray[Number]`
    /// `(volume: Array, out: Array | None) -> Any`
    #[pyo3(signature = (volume, out=None))]
    fn forward<'py>(
        &self,
        volume: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.forward.get().apply("volume", volume, out)
    }

    /// The exact transpose of `forward`: <forward(a), b> = <a, adjoint(b)>.
    ///
    /// projections: `[view, row, column]`. out: an array that takes the result and is returned; a new one
    ///     unless given.
    ///
    /// Returns `[z, y, x]` of the projector's dtype, in the projections' unit times mm. Raises as `forward`.
    ///
    /// `(projections: NDArray[Number], out: NDArray[Number] | None) -> NDArray[Number]`
    /// `(projections: Array, out: Array | None) -> Any`
    #[pyo3(signature = (projections, out=None))]
    fn adjoint<'py>(
        &self,
        projections: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.adjoint.get().apply("projections", projections, out)
    }

    /// The projector as an operator of `rayspin.linop`.
    /// `-> LinearOperator`
    #[getter]
    fn operator(&self, py: Python<'_>) -> Py<LinearOperator> {
        self.forward.clone_ref(py)
    }

    /// The rays.
    /// `-> ct.Geometry`
    #[getter]
    fn geometry(&self, py: Python<'_>) -> Py<CtGeometry> {
        self.geometry.clone_ref(py)
    }

    /// The voxels.
    /// `-> ct.Grid`
    #[getter]
    fn grid(&self, py: Python<'_>) -> Py<Grid> {
        self.grid.clone_ref(py)
    }

    /// The name of the element type: float32 or float64.
    /// `-> str`
    #[getter]
    fn dtype(&self) -> &'static str {
        self.forward.get().number().name()
    }

    /// Where the projector computes: cpu, cuda:0 and so on.
    /// `-> str`
    #[getter]
    fn device(&self) -> String {
        self.forward.get().processor.place.to_string()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    /// The projector itself, which never changes.
    /// `() -> ct.Projector`
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// As `__copy__`.
    /// `(_memo: Any) -> ct.Projector`
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        let (from, to) = (self.grid.get().grid.shape_zyx(), self.geometry.get().rays.shape());
        format!("Projector({from:?} to {to:?}, {}, {})", self.dtype(), self.device())
    }
}

impl Remade for CtProjector {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (parts, own) = (PyDict::new(object.py()), object.get());
        parts.set_item("geometry", &own.geometry)?;
        parts.set_item("grid", &own.grid)?;
        parts.set_item("device", own.device())?;
        parts.set_item("dtype", own.dtype())?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        own(parts.python(), "CtProjector")?.call((), Some(parts.dict()))
    }
}
