//! `rayspin.nufft`: plans of non-uniform fast Fourier transforms with the habits of finufft.

use std::f64::consts::TAU;
use std::sync::{Arc, PoisonError, RwLock};

use num_complex::Complex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::{Error, Real};
use rayspin::device::Array;
use rayspin::kernels::nufft::{Coordinates, Nufft, Options, Type3};

use crate::error::{described, raised, raised_of, wrong_type};
use crate::exchange::Line;
use crate::exchange::copied::{count, shape, whole, whole_or_none};
use crate::exchange::{Dtype, Given, Item, Output};
use crate::processor::{DeviceName, Processor};
use crate::remade::{self, Parts, Reduced, Remade, changed, own};
use crate::signals::Detached;

/// A transform whose points are set.
enum Transform<R: Real> {
    /// Types 1 and 2.
    Grid(Box<Nufft<R>>),
    Free(Box<Type3<R>>),
}

enum Engine {
    Single(Transform<f32>),
    Double(Transform<f64>),
    /// No points, or for type 3 no frequencies: all sums are empty. The numbers of both.
    Empty([usize; 2]),
}

/// The points of a plan, and the transform that is planned for them. Copies of the plan share it.
#[derive(Clone)]
struct Planned {
    engine: Arc<Engine>,
    points: Arc<[Kept]>,
}

/// A component of the points as the caller gave it, for pickles.
struct Kept {
    name: &'static str,
    array: Py<PyAny>,
    /// For an array on the host that type 3 takes or a plan on a GPU.
    print: Option<u64>,
}

/// Which way a plan's transform goes.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Forward,
    Adjoint,
}

/// A non-uniform fast Fourier transform to a tolerance, with finufft's arguments:
///
///     type 1   f[k] = sum_j c[j] exp(isign i k.x_j)      points to grid,   isign +1 unless given
///     type 2   c[j] = sum_k f[k] exp(isign i k.x_j)      grid to points,   isign -1 unless given
///     type 3   f[k] = sum_j c[j] exp(isign i s_k.x_j)    points to points, isign +1 unless given
///
/// k runs over whole numbers from -(n // 2) to (n - 1) // 2 along each axis of n, in this order.
///
/// nufft_type: 1, 2 or 3.
/// n_modes_or_dim: the grid's lengths, (n,), (n1, n2) or (n1, n2, n3), or n for one axis; for type 3 the
///     number of dimensions, 1 to 3.
/// n_trans: the product of the leading axes that each call must have; any number of transforms unless given.
/// eps: the relative error of results in the 2-norm, about 1e-6 or more for complex64 and 1e-13 or more for
///     complex128.
/// isign: the sign of the exponent; only its sign counts.
/// dtype: of data and results, "complex64" or "complex128" (the default), or their NumPy and torch types;
///     float32 and float64 name the same precisions.
/// device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU.
///
/// Raises ValueError for a type, a length, a tolerance or a device out of range, TypeError for arguments of
/// another type, RuntimeError for a GPU that fails.
///
/// >>> import numpy as np
/// >>> from rayspin.nufft import Plan
/// >>> plan = Plan(1, (4,), eps=1e-6, device="cpu")
/// >>> plan.setpts(np.array([0.0, np.pi / 2]))
/// >>> grid = plan.execute(np.ones(2, np.complex128))  # 1 + exp(i k pi / 2), k = -2, -1, 0, 1
/// >>> bool(np.allclose(grid, [0, 1 - 1j, 2, 1 + 1j], atol=1e-5))
/// True
///
/// `(nufft_type: int, n_modes_or_dim: int | Sequence[int], n_trans: int | None, eps: float, isign: int |
/// None, dtype: Any, *, device: str) -> Plan`
#[pyclass(frozen, module = "rayspin.nufft")]
pub(crate) struct Plan {
    kind: u8,
    /// The grid; empty for type 3.
    modes: Vec<usize>,
    dims: usize,
    transforms: Option<usize>,
    eps: f64,
    sign: f64,
    double: bool,
    processor: Processor,
    planned: RwLock<Option<Planned>>,
}

#[pymethods]
impl Plan {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the names are finufft's")]
    #[pyo3(signature = (nufft_type, n_modes_or_dim, n_trans=None, eps=1e-6, isign=None, dtype=None, *, device="auto"))]
    fn new(
        #[pyo3(from_py_with = whole)] nufft_type: i64,
        n_modes_or_dim: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole_or_none)] n_trans: Option<i64>,
        eps: f64,
        isign: Option<i32>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: &str,
    ) -> PyResult<Self> {
        let Some(kind) = u8::try_from(nufft_type).ok().filter(|kind| (1..=3).contains(kind)) else {
            return Err(raised(Error::value("nufft_type", "1, 2 or 3", nufft_type)));
        };
        let wrong = |expected| {
            let whole = match n_modes_or_dim.extract::<Vec<f64>>() {
                Ok(_) => ", whose numbers are not whole ones",
                Err(_) => "",
            };
            wrong_type("n_modes_or_dim", expected, format!("{}{whole}", described(n_modes_or_dim)))
        };
        let (modes, dims) = match (kind, whole(n_modes_or_dim)) {
            (3, Ok(dims)) => (Vec::new(), count("n_modes_or_dim", dims)?),
            (3, Err(_)) => return Err(wrong("the number of dimensions for type 3")),
            (_, Ok(one)) => (shape("n_modes_or_dim", vec![one])?, 1),
            _ => {
                let modes = n_modes_or_dim.extract().map_err(|_| wrong("a tuple of the grid's lengths"))?;
                let modes = shape("n_modes_or_dim", modes)?;
                let dims = modes.len();
                (modes, dims)
            }
        };
        if !(1..=3).contains(&dims) {
            return Err(raised(Error::value("n_modes_or_dim", "1 to 3 dimensions", dims)));
        }
        let transforms = n_trans.map(|n| count("n_trans", n)).transpose()?;
        if transforms == Some(0) {
            return Err(raised(Error::value("n_trans", "a whole number from 1", 0)));
        }
        let (double, processor) = (Dtype::named(dtype, Dtype::C128)?.is_double(), Processor::named(device)?);
        let checked = match double {
            false => Nufft::<f32>::upsampling_for(&processor.device, eps, &vec![8; dims], 8),
            true => Nufft::<f64>::upsampling_for(&processor.device, eps, &vec![8; dims], 8),
        };
        checked.map_err(|error| raised_of("eps", error))?;
        let default_sign = if kind == 2 { -1 } else { 1 };
        Ok(Self {
            kind,
            modes,
            dims,
            transforms,
            eps,
            sign: if isign.unwrap_or(default_sign) < 0 { -1.0 } else { 1.0 },
            double,
            processor,
            planned: RwLock::new(None),
        })
    }

    /// Sets the points x_j, and for type 3 the frequencies s_k, of the exponents exp(isign i k.x_j) and
    /// exp(isign i s_k.x_j).
    ///
    /// x, y, z: the components of the points, real numbers `[point]` in radian: one array for each dimension,
    ///     x for the first axis of the grid. Points are periodic: those beyond -pi to pi are taken 2 pi away
    ///     for types 1 and 2. Type 3 takes any real numbers.
    /// s, t, u: the components of the frequencies for type 3, `[frequency]`, in 1 over the unit of the
    ///     points.
    ///
    /// Arrays of float32 or float64 on the CPU or on the plan's GPU are read where they lie, with any stride.
    /// Arrays of other real types and on another GPU are copied, as are lists. Call it again to plan anew for
    /// other points; without points all sums are 0. Returns None.
    ///
    /// The plan keeps the arrays, without a copy, for pickles. Pickling raises ValueError if their points
    /// have changed; arrays on a GPU are not looked at.
    ///
    /// Raises ValueError for components that are missing, too many, of different lengths, of another number
    /// of axes or not finite; the plan then keeps its points. Raises TypeError for complex numbers and what
    /// is no array.
    ///
    /// `(x: Any, y: Any, z: Any, s: Any, t: Any, u: Any) -> None`
    #[pyo3(signature = (x, y=None, z=None, s=None, t=None, u=None))]
    #[expect(clippy::too_many_arguments, reason = "the names are finufft's")]
    fn setpts(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        y: Option<&Bound<'_, PyAny>>,
        z: Option<&Bound<'_, PyAny>>,
        s: Option<&Bound<'_, PyAny>>,
        t: Option<&Bound<'_, PyAny>>,
        u: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.processor.expect_own()?;
        let (axes, given) = ([("x", Some(x)), ("y", y), ("z", z)], [("s", s), ("t", t), ("u", u)]);
        let sources = self.points(axes)?;
        let mut kept: Vec<Kept> = axes
            .into_iter()
            .chain(given)
            .filter_map(|(name, array)| Some(Kept { name, array: array?.clone().unbind(), print: None }))
            .collect();
        if self.kind != 3 {
            if let Some((name, _)) = given.iter().find(|(_, axis)| axis.is_some()) {
                return Err(PyValueError::new_err(format!("{name}: only type 3 has target frequencies")));
            }
            return match sources[0].count {
                0 => self.set_empty(py, [0, 0], kept),
                _ => py.detached(|| {
                    // A plan on the CPU compares the points that it has; one on a GPU does not know them.
                    if self.processor.place != DeviceName::Cpu {
                        look_at(&mut kept, &[&sources]);
                    }
                    self.set_grid(&sources, kept.into())
                })?,
            };
        }
        let targets = self.points(given)?;
        let counts = [sources[0].count, targets[0].count];
        if counts.contains(&0) {
            return self.set_empty(py, counts, kept);
        }
        py.detached(|| {
            look_at(&mut kept, &[&sources, &targets]);
            self.set_free(&sources, &targets, kept.into())
        })?
    }

    /// The transform of `data`: from points to grid (type 1), from grid to points (type 2), or from points to
    /// points (type 3).
    ///
    /// data: `[..., point]` for types 1 and 3, `[..., n1, n2, n3]` for type 2, of the plan's dtype and in C
    ///     order. Leading axes are a batch.
    /// out: an array that takes the result and is returned, of the result's shape, dtype and library, in C
    ///     order, writable, in memory apart from `data`; a new one unless given.
    ///
    /// Returns `[..., n1, n2, n3]`, `[..., point]` or `[..., frequency]` of the plan's dtype, an array of the
    /// library and on the device of `data`; of NumPy for libraries besides NumPy, CuPy and torch. Sums are
    /// not scaled. NumPy arrays are copied to a GPU and back.
    ///
    /// Raises RuntimeError before `setpts`, ValueError for another shape, order or number of transforms,
    /// TypeError for another dtype, an array of another GPU, what is no array, and a tensor of torch that
    /// requires a gradient (`rayspin.torch` has these).
    ///
    /// `(data: NDArray[Number], out: NDArray[Number] | None) -> NDArray[Number]`
    /// `(data: Array, out: Array | None) -> Any`
    #[pyo3(signature = (data, out=None))]
    fn execute<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let natural = if self.kind == 1 { Direction::Adjoint } else { Direction::Forward };
        self.run(data, out, natural)
    }

    /// The adjoint of `execute`, the conjugate transpose of its sums: <execute(a), b> = <a,
    /// execute_adjoint(b)>.
    ///
    /// data: of the shape that `execute` returns. out: as `execute` takes it, of the shape of its `data`.
    ///
    /// Returns an array of the shape that `execute` takes. Raises as `execute`.
    ///
    /// `(data: NDArray[Number], out: NDArray[Number] | None) -> NDArray[Number]`
    /// `(data: Array, out: Array | None) -> Any`
    #[pyo3(signature = (data, out=None))]
    fn execute_adjoint<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let natural = if self.kind == 1 { Direction::Forward } else { Direction::Adjoint };
        self.run(data, out, natural)
    }

    /// The type: 1, 2 or 3.
    /// `-> int`
    #[getter]
    fn nufft_type(&self) -> u8 {
        self.kind
    }

    /// The grid's lengths; empty for type 3.
    /// `-> list[int]`
    #[getter]
    fn n_modes(&self) -> Vec<usize> {
        self.modes.clone()
    }

    /// The transforms of a call; none where any number is taken.
    /// `-> int | None`
    #[getter]
    fn n_trans(&self) -> Option<usize> {
        self.transforms
    }

    /// The tolerance.
    /// `-> float`
    #[getter]
    fn eps(&self) -> f64 {
        self.eps
    }

    /// The sign of the exponent.
    /// `-> int`
    #[getter]
    fn isign(&self) -> i32 {
        self.sign as i32
    }

    /// The name of the element type of data: complex64 or complex128.
    /// `-> str`
    #[getter]
    fn dtype(&self) -> &'static str {
        if self.double { Dtype::C128.name() } else { Dtype::C64.name() }
    }

    /// Where the plan computes: cpu, cuda:0 and so on.
    /// `-> str`
    #[getter]
    fn device(&self) -> String {
        self.processor.place.to_string()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    /// A plan with the same points. `setpts` of one leaves the points of the other.
    /// `() -> Plan`
    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        let planned = self.planned(py)?;
        let (modes, processor, planned) = (self.modes.clone(), self.processor.clone(), RwLock::new(planned));
        let Self { kind, dims, transforms, eps, sign, double, .. } = *self;
        Ok(Self { kind, modes, dims, transforms, eps, sign, double, processor, planned })
    }

    /// As `__copy__`.
    /// `(_memo: Any) -> Plan`
    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.__copy__(py)
    }

    fn __repr__(&self) -> String {
        let what = match self.kind {
            3 => format!("{} dimensions", self.dims),
            _ => format!("n_modes {:?}", self.modes),
        };
        format!("Plan(type {}, {what}, eps {:e}, {}, {})", self.kind, self.eps, self.dtype(), self.device())
    }
}

impl Plan {
    /// The components of points, x first, where the caller has them or copied.
    fn points(&self, axes: [(&'static str, Option<&Bound<'_, PyAny>>); 3]) -> PyResult<Vec<Line>> {
        if let Some((name, _)) = axes[self.dims..].iter().find(|(_, axis)| axis.is_some()) {
            let text = format!("{name}: expected none in {} dimensions, found an array", self.dims);
            return Err(PyValueError::new_err(text));
        }
        let mut components = Vec::<Line>::with_capacity(self.dims);
        for (name, axis) in &axes[..self.dims] {
            let Some(axis) = axis else {
                let text = format!("{name}: expected an array in {} dimensions, found none", self.dims);
                return Err(PyValueError::new_err(text));
            };
            let axis = Line::new(name, axis, &self.processor)?;
            if let Some(first) = components.first().filter(|first| first.count != axis.count) {
                return Err(raised(Error::shape(*name, &[first.count], &[axis.count])));
            }
            components.push(axis);
        }
        Ok(components)
    }

    /// The points and their transform, none before `setpts`.
    fn planned(&self, py: Python<'_>) -> PyResult<Option<Planned>> {
        match self.planned.try_read() {
            Ok(planned) => Ok(planned.clone()),
            // `setpts` in another thread has the lock, and may want the interpreter.
            Err(_) => py.detached(|| self.planned.read().unwrap_or_else(PoisonError::into_inner).clone()),
        }
    }

    /// No points or no frequencies.
    fn set_empty(&self, py: Python<'_>, counts: [usize; 2], points: Vec<Kept>) -> PyResult<()> {
        py.detached(|| self.set(Engine::Empty(counts), points.into()))
    }

    fn set(&self, engine: Engine, points: Arc<[Kept]>) {
        let planned = Planned { engine: Arc::new(engine), points };
        *self.planned.write().unwrap_or_else(PoisonError::into_inner) = Some(planned);
    }

    /// Points of types 1 and 2. finufft's points are in radians per grid cell, its first axis is x. Rayspin's
    /// are in cycles per field of view, its last axis is x.
    fn of_grid<'a>(&self, axes: &'a [Line]) -> PyResult<Coordinates<'a>> {
        // Type 2 is the forward transform with e^{−i}, type 1 its adjoint with e^{+i}: another sign is the
        // mirrored point.
        let natural = if self.kind == 2 { -1.0 } else { 1.0 };
        let unit = |n: usize| self.sign * natural * n as f64 / TAU;
        let components: rayspin::core::Result<Vec<_>> =
            self.modes.iter().zip(axes).rev().map(|(&n, axis)| axis.component(unit(n))).collect();
        components.and_then(|components| Coordinates::new(&components)).map_err(raised)
    }

    /// Types 1 and 2.
    fn set_grid(&self, axes: &[Line], kept: Arc<[Kept]>) -> PyResult<()> {
        let points = self.of_grid(axes)?;
        let mut planned = self.planned.write().unwrap_or_else(PoisonError::into_inner);
        // A call that runs in another thread, and a copy of the plan, keep the engine that they have.
        let replaced = match planned.as_mut().and_then(|planned| Arc::get_mut(&mut planned.engine)) {
            Some(Engine::Single(Transform::Grid(plan))) => Some(plan.set_points(points)),
            Some(Engine::Double(Transform::Grid(plan))) => Some(plan.set_points(points)),
            _ => None,
        };
        match replaced {
            Some(Ok(())) => {
                planned.iter_mut().for_each(|planned| planned.points = kept.clone());
                Ok(())
            }
            Some(Err(error)) => {
                // Another error may leave no points.
                if !matches!(error, Error::NotFinite { .. }) {
                    *planned = None;
                }
                Err(raised(error))
            }
            None => {
                let (device, options) = (&self.processor.device, Options::tolerance(self.eps));
                let made = match self.double {
                    false => Nufft::new(device, points, &self.modes, &options)
                        .map(|plan| Engine::Single(Transform::Grid(Box::new(plan)))),
                    true => Nufft::new(device, points, &self.modes, &options)
                        .map(|plan| Engine::Double(Transform::Grid(Box::new(plan)))),
                };
                *planned = Some(Planned { engine: Arc::new(made.map_err(raised)?), points: kept });
                Ok(())
            }
        }
    }

    /// Type 3: Σ c_j e^{±i s·x}; Rayspin's exponent is −i2πs·x.
    fn set_free(&self, sources: &[Line], targets: &[Line], kept: Arc<[Kept]>) -> PyResult<()> {
        let (positions, frequencies) = (coordinates(sources, 1.0)?, coordinates(targets, -self.sign / TAU)?);
        let (device, options) = (&self.processor.device, Options::tolerance(self.eps));
        let made = match self.double {
            false => Type3::new(device, positions, frequencies, &options)
                .map(|plan| Engine::Single(Transform::Free(Box::new(plan)))),
            true => Type3::new(device, positions, frequencies, &options)
                .map(|plan| Engine::Double(Transform::Free(Box::new(plan)))),
        };
        self.set(made.map_err(raised)?, kept);
        Ok(())
    }

    fn run<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        direction: Direction,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.processor.expect_own()?;
        let given = Given::new("data", data)?;
        given.expect_within_reach(&self.processor)?;
        let planned = self.planned(data.py())?;
        match planned.as_ref().map(|planned| &*planned.engine) {
            None => Err(PyRuntimeError::new_err("the plan has no points yet: call setpts first")),
            Some(Engine::Single(transform)) => self.run_in(transform, given, out, direction),
            Some(Engine::Double(transform)) => self.run_in(transform, given, out, direction),
            Some(Engine::Empty(counts)) => match self.double {
                false => self.run_empty::<f32>(*counts, &given, out, direction),
                true => self.run_empty::<f64>(*counts, &given, out, direction),
            },
        }
    }

    /// Sums of nothing: zeros, or an array without elements.
    fn run_empty<'py, R: Real>(
        &self,
        [sources, targets]: [usize; 2],
        given: &Given<'py>,
        out: Option<&Bound<'py, PyAny>>,
        direction: Direction,
    ) -> PyResult<Bound<'py, PyAny>>
    where
        Complex<R>: Item,
    {
        given.expect::<Complex<R>>()?;
        let (from, to) = match (self.kind, direction) {
            (3, Direction::Forward) => (vec![sources], vec![targets]),
            (3, Direction::Adjoint) => (vec![targets], vec![sources]),
            (_, Direction::Forward) => (self.modes.clone(), vec![0]),
            (_, Direction::Adjoint) => (vec![0], self.modes.clone()),
        };
        let shape = [self.batch(&given.shape, &from)?, to].concat();
        let mut output = Output::<Complex<R>>::new(out, &shape, given, &self.processor)?;
        output.array.fill(Complex::new(R::zero(), R::zero())).map_err(raised)?;
        output.finish()
    }

    fn run_in<'py, R: Real>(
        &self,
        transform: &Transform<R>,
        given: Given<'py>,
        out: Option<&Bound<'py, PyAny>>,
        direction: Direction,
    ) -> PyResult<Bound<'py, PyAny>>
    where
        Complex<R>: Item,
    {
        let (from, to) = match (transform, direction) {
            (Transform::Grid(plan), Direction::Forward) => (self.modes.clone(), vec![plan.samples()]),
            (Transform::Grid(plan), Direction::Adjoint) => (vec![plan.samples()], self.modes.clone()),
            (Transform::Free(plan), Direction::Forward) => (vec![plan.positions()], vec![plan.frequencies()]),
            (Transform::Free(plan), Direction::Adjoint) => (vec![plan.frequencies()], vec![plan.positions()]),
        };
        let py = given.python();
        let batch = self.batch(&given.shape, &from)?;
        let shape = [batch, to].concat();
        let mut output = Output::<Complex<R>>::new(out, &shape, &given, &self.processor)?;
        if shape.contains(&0) {
            return output.finish();
        }
        let input = given.read::<Complex<R>>(&self.processor)?;
        let target = &mut output.array;
        py.detached(|| apply(transform, &input, target, direction))?.map_err(raised)?;
        drop(input);
        output.finish()
    }

    /// The leading axes of data. Errors: other trailing axes, another number of transforms than the plan's.
    fn batch(&self, shape: &[usize], trailing: &[usize]) -> PyResult<Vec<usize>> {
        let leading =
            shape.strip_suffix(trailing).ok_or_else(|| raised(Error::shape("data", trailing, shape)))?;
        let count: usize = leading.iter().product();
        match self.transforms {
            Some(expected) if expected != count => {
                Err(raised(Error::value("data", format!("{expected} transforms (n_trans)"), count)))
            }
            _ => Ok(leading.to_vec()),
        }
    }
}

fn apply<R: Real>(
    transform: &Transform<R>,
    input: &Array<Complex<R>>,
    out: &mut Array<Complex<R>>,
    direction: Direction,
) -> rayspin::core::Result<()> {
    match (transform, direction) {
        (Transform::Grid(plan), Direction::Forward) => plan.forward(input, out),
        (Transform::Grid(plan), Direction::Adjoint) => plan.adjoint(input, out),
        (Transform::Free(plan), Direction::Forward) => plan.forward(input, out),
        (Transform::Free(plan), Direction::Adjoint) => plan.adjoint(input, out),
    }
}

/// Points of these components, all in one unit.
fn coordinates(axes: &[Line], unit: f64) -> PyResult<Coordinates<'_>> {
    let components: rayspin::core::Result<Vec<_>> = axes.iter().map(|axis| axis.component(unit)).collect();
    components.and_then(|components| Coordinates::new(&components)).map_err(raised)
}

/// Takes the fingerprints of components.
fn look_at(kept: &mut [Kept], lines: &[&[Line]]) {
    let lines = lines.iter().copied().flatten();
    kept.iter_mut().zip(lines).for_each(|(kept, line)| kept.print = line.fingerprint());
}

impl Remade for Plan {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, own) = (object.py(), object.get());
        let arguments = PyDict::new(py);
        arguments.set_item("nufft_type", own.kind)?;
        match own.kind {
            3 => arguments.set_item("n_modes_or_dim", own.dims)?,
            _ => arguments.set_item("n_modes_or_dim", &own.modes)?,
        }
        arguments.set_item("n_trans", own.transforms)?;
        arguments.set_item("eps", own.eps)?;
        arguments.set_item("isign", own.isign())?;
        arguments.set_item("dtype", own.dtype())?;
        arguments.set_item("device", own.device())?;
        let parts = PyDict::new(py);
        parts.set_item("arguments", arguments)?;
        let Some(planned) = own.planned(py)? else {
            parts.set_item("points", py.None())?;
            return Ok(parts);
        };
        let points = PyDict::new(py);
        let mut lines = Vec::with_capacity(planned.points.len());
        for kept in &*planned.points {
            let line = Line::new(kept.name, kept.array.bind(py), &own.processor)?;
            if kept.print.is_some() && kept.print != line.fingerprint() {
                return Err(changed(kept.name));
            }
            points.set_item(kept.name, line.to_numpy(py)?)?;
            lines.push(line);
        }
        let same = match &*planned.engine {
            Engine::Single(Transform::Grid(plan)) => plan.has_points(own.of_grid(&lines)?),
            Engine::Double(Transform::Grid(plan)) => plan.has_points(own.of_grid(&lines)?),
            _ => Ok(None),
        };
        match same {
            Ok(Some(false)) | Err(Error::NotFinite { .. }) => {
                let names: Vec<_> = planned.points.iter().map(|kept| kept.name).collect();
                return Err(changed(&names.join(", ")));
            }
            Err(error) => return Err(raised(error)),
            Ok(Some(true) | None) => {}
        }
        parts.set_item("points", points)?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let arguments = parts.within("arguments")?;
        let plan = own(parts.python(), "Plan")?.call((), Some(arguments.dict()))?;
        if !parts.any("points")?.is_none() {
            plan.call_method("setpts", (), Some(parts.within("points")?.dict()))?;
        }
        Ok(plan)
    }
}
