//! `rayspin.solve`: solvers.

use std::cell::OnceCell;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::Result;
use rayspin::device::{Array, Device};
use rayspin::kernels::vector::norm_squared;
use rayspin::linop::{LinearOp, Normal, Op};
use rayspin::solve::{
    CgOptions, Distance, FistaOptions, LanczosOptions, LeastSquaresOptions, PdhgOptions, Problem, Proximal,
    Regularisation, Step, Term, Watch,
};

use crate::call::{self, attached};
use crate::exchange::copied::{count, whole};
use crate::exchange::{Given, give};
use crate::linop::{AnyOp, LinearOperator, Number, each};
use crate::processor::Processor;
use crate::progress::Listener;
use crate::prox::Asked;
use crate::remade::{self, Parts, Reduced, Remade};
use crate::signals::Signals;

/// What a solver found: an approximate minimum x, and the course of the iteration.
#[pyclass(frozen, module = "rayspin.solve")]
pub(crate) struct Solution {
    /// The solution, an array of the operator's input shape and dtype, of the data's library.
    /// `-> Array`
    #[pyo3(get)]
    x: Py<PyAny>,
    /// After each iteration, and for `cg` and `least_squares` also before the first, |b - Ax| / |b| of the
    /// linear system; for `fista` and `pdhg` the relative size of the last step.
    /// `-> list[float]`
    #[pyo3(get)]
    residuals: Vec<f64>,
    /// The stated objective after each iteration. Where it is small beside |y|^2 / 2, it holds mostly
    /// rounding: in single precision about 1e-7 |y|^2.
    ///
    /// `cg`: 1/2 <x, Ax> - Re <b, x>. `least_squares` and `fista`: the function at x, with the operator
    /// `normal` for A^H A. `pdhg`: the function at x, where `nonnegative` counts 0. A function of yours
    /// counts at its result, which tends to K_i x. A function of yours that returns no value counts as 0.
    /// With `average`, it is the objective of the last iterate, not of the mean.
    /// `-> list[float]`
    #[pyo3(get)]
    objective: Vec<f64>,
    /// Whether the tolerance was met.
    /// `-> bool`
    #[pyo3(get)]
    converged: bool,
    /// The largest eigenvalue of A^H A, if the solver needs it.
    /// `-> float | None`
    #[pyo3(get)]
    largest_eigenvalue: Option<f64>,
}

#[pymethods]
impl Solution {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    fn __repr__(&self) -> String {
        let last = self.residuals.last().copied().unwrap_or_default();
        format!("Solution(converged={}, last residual {last:.2e})", self.converged)
    }
}

impl Remade for Solution {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (parts, own) = (PyDict::new(object.py()), object.get());
        parts.set_item("x", &own.x)?;
        parts.set_item("residuals", &own.residuals)?;
        parts.set_item("objective", &own.objective)?;
        parts.set_item("converged", own.converged)?;
        parts.set_item("largest_eigenvalue", own.largest_eigenvalue)?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let solution = Self {
            x: parts.any("x")?.unbind(),
            residuals: parts.get("residuals")?,
            objective: parts.get("objective")?,
            converged: parts.get("converged")?,
            largest_eigenvalue: parts.get("largest_eigenvalue")?,
        };
        Ok(Bound::new(parts.python(), solution)?.into_any())
    }
}

/// What a solver returns beside the image.
#[derive(Default)]
struct Course {
    residuals: Vec<f64>,
    objective: Vec<f64>,
    converged: bool,
    largest_eigenvalue: Option<f64>,
}

/// The arguments that every solver has.
struct Call<'a, 'py> {
    processor: &'a Processor,
    /// The data, and what errors call them.
    data: (&'static str, &'a Bound<'py, PyAny>),
    start: Option<&'a Bound<'py, PyAny>>,
    name: &'static str,
    iterations: usize,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
}

impl Call<'_, '_> {
    /// Runs a solver on the data and the start, which it gets on the processor.
    fn solve<S: Number>(
        self,
        work: impl FnOnce(&Array<S>, Option<&Array<S>>, Watch<'_, S>) -> Result<(Array<S>, Course)> + Send,
    ) -> PyResult<Solution> {
        self.processor.expect_own()?;
        let (what, like) = self.data;
        let given = Given::new(what, like)?;
        given.expect_within_reach(self.processor)?;
        let data = given.read::<S>(self.processor)?;
        let start = self.start.map(|start| Given::new("start", start)?.read::<S>(self.processor));
        let start = start.transpose()?;
        let listener = Listener::new(like.py(), self.progress)?;
        let callback = self.callback;
        let solved = call::run(like, &listener.signals, || {
            let monitor = listener.monitor();
            let mut observe = |step: &Step<'_, S>| match &callback {
                Some(callback) => attached("callback", |py| {
                    let x = call::shown(py, step.solution)?;
                    callback.call1(py, (step.iteration, step.residual, x)).map(drop)
                }),
                None => Ok(()),
            };
            monitor.stage(self.name, self.iterations, || {
                let watch = Watch::from(&monitor);
                match &callback {
                    Some(_) => work(&data, start.as_ref(), watch.with_observer(&mut observe)),
                    None => work(&data, start.as_ref(), watch),
                }
            })
        });
        let (x, course) = solved?;
        drop((data, start));
        Ok(Solution {
            x: give(x, like, self.processor)?.unbind(),
            residuals: course.residuals,
            objective: course.objective,
            converged: course.converged,
            largest_eigenvalue: course.largest_eigenvalue,
        })
    }
}

/// Solves A x = b for Hermitian positive semidefinite A by conjugate gradients: the minimum of 1/2 <x, Ax> -
/// Re <b, x>.
///
/// a: an operator with equal input and output shapes, such as `A.N` or `rayspin.toeplitz(...)`.
/// b: the right-hand side, an array of the operator's shape and dtype.
/// start: where the iteration begins, an array as b; 0 unless given.
/// iterations: the most iterations, each one application of A.
/// tolerance: stops where |b - Ax| <= tolerance |b|; 0 runs all iterations.
/// progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
/// callback: a function f(iteration, residual, x), which sees a copy of every iterate.
///
/// Returns a `Solution`; x is an array of b's library.
///
/// Raises TypeError for another dtype or device. Raises ValueError for another shape, numbers that are not
/// finite and options out of range. Raises ArithmeticError for an operator that is not Hermitian positive
/// semidefinite, KeyboardInterrupt after Ctrl-C, and the exceptions of `progress`, `callback` and your own
/// functions.
///
/// >>> import numpy as np
/// >>> from rayspin import linop, solve
/// >>> A = linop.diagonal(np.array([1.0, 2.0, 4.0]), device="cpu")
/// >>> solve.cg(A, np.ones(3)).x.round(6)
/// array([1.  , 0.5 , 0.25])
///
/// M. R. Hestenes, E. Stiefel, J Res Natl Bur Stand 49:409, 1952.
///
/// `(a: LinearOperator, b: Array, *, start: Array | None, iterations: int, tolerance: float, progress: Heard,
/// callback: Callback) -> Solution`
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
#[pyo3(signature = (a, b, *, start=None, iterations=30, tolerance=1e-4, progress=None, callback=None))]
pub(crate) fn cg(
    a: &Bound<'_, LinearOperator>,
    b: &Bound<'_, PyAny>,
    start: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = whole)] iterations: i64,
    tolerance: f64,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Solution> {
    let (a, iterations) = (a.get(), count("iterations", iterations)?);
    let name = "conjugate gradients";
    let run = Call { processor: &a.processor, data: ("b", b), start, name, iterations, progress, callback };
    let options = CgOptions { max_iterations: iterations, tolerance };
    each!(&a.op, op => run.solve(|b, start, watch| {
        let solved = rayspin::solve::cg(op, b, start, &options, watch)?;
        let course = Course {
            residuals: solved.residuals,
            objective: solved.objective,
            converged: solved.converged,
            largest_eigenvalue: None,
        };
        Ok((solved.solution, course))
    }))
}

/// Minimises |Ax - y|^2 + weight L sum_i |W_i x|^2 by conjugate gradients on (A^H A + weight L sum_i W_i^H
/// W_i) x = A^H y.
///
/// L is the largest eigenvalue of A^H A, so that the weight has no unit: it means the same whatever the scale
/// of A and the number of samples.
///
/// a: the operator A.
/// y: the data, an array of A's output shape and dtype.
/// weight: of the penalty, 0 or more.
/// regularisers: the operators W_i, from A's input shape; W = 1 unless given.
/// normal: A^H A in another way, such as `rayspin.toeplitz(...)`, which is faster along a trajectory.
/// start: where the iteration begins, an array of A's input shape; 0 unless given.
/// iterations, tolerance: the most iterations; stops where the residual of the linear system is at most
///     tolerance times its right-hand side.
/// largest_eigenvalue: L; an estimate, which may be 1 % too small, unless given.
/// progress, callback: as for `cg`.
///
/// Returns a `Solution`; x is an array of y's library, of A's input shape. Raises as `cg`.
///
/// >>> import numpy as np
/// >>> from rayspin import linop, solve
/// >>> A = linop.diagonal(np.array([1.0, 2.0]), device="cpu")
/// >>> found = solve.least_squares(A, np.array([3.0, 4.0]), weight=0.25, largest_eigenvalue=4.0)
/// >>> found.x.round(6)  # a y / (a^2 + 0.25 * 4)
/// array([1.5, 1.6])
///
/// `(a: LinearOperator, y: Array, *, weight: float, regularisers: Sequence[LinearOperator], normal:
/// LinearOperator | None, start: Array | None, iterations: int, tolerance: float, largest_eigenvalue: float |
/// None, progress: Heard, callback: Callback) -> Solution`
#[pyfunction]
#[pyo3(signature = (a, y, *, weight=0.0, regularisers=vec![], normal=None, start=None, iterations=30, tolerance=1e-4, largest_eigenvalue=None, progress=None, callback=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn least_squares(
    a: &Bound<'_, LinearOperator>,
    y: &Bound<'_, PyAny>,
    weight: f64,
    regularisers: Vec<Bound<'_, LinearOperator>>,
    normal: Option<&Bound<'_, LinearOperator>>,
    start: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = whole)] iterations: i64,
    tolerance: f64,
    largest_eigenvalue: Option<f64>,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Solution> {
    let (a, iterations) = (a.get(), count("iterations", iterations)?);
    let name = "least squares";
    let run = Call { processor: &a.processor, data: ("y", y), start, name, iterations, progress, callback };
    let cg = CgOptions { max_iterations: iterations, tolerance };
    each!(&a.op, op => {
        let (normal, squares) = (normal_of(a, op, normal)?, squared(a, op, &regularisers)?);
        run.solve(|y, start, watch| {
            let squares: Vec<_> = squares.iter().map(|w| w as &dyn LinearOp<_>).collect();
            let options = LeastSquaresOptions { cg, largest_eigenvalue, ..LeastSquaresOptions::default() };
            let rhs = op.adjoint(y)?;
            let regularisation = Regularisation::new(weight, &squares);
            let solved =
                rayspin::solve::least_squares(&normal, &rhs, start, regularisation, &options, watch)?;
            let size = norm_squared(y)?;
            let course = Course {
                residuals: solved.cg.residuals,
                objective: solved.cg.objective.iter().map(|half| size + 2.0 * half).collect(),
                converged: solved.cg.converged,
                largest_eigenvalue: Some(solved.largest_eigenvalue.value),
            };
            Ok((solved.cg.solution, course))
        })
    })
}

/// AᴴA: the operator that is given, such as `rayspin.toeplitz`, or A's own.
fn normal_of<S: Number>(
    a: &LinearOperator,
    op: &Op<S>,
    normal: Option<&Bound<'_, LinearOperator>>,
) -> PyResult<Op<S>> {
    match normal {
        Some(normal) => a.same::<S>(normal.get()).cloned(),
        None => Ok(Arc::new(Normal::new(op.clone()))),
    }
}

fn squared<S: Number>(
    a: &LinearOperator,
    _: &Op<S>,
    operators: &[Bound<'_, LinearOperator>],
) -> PyResult<Vec<Normal<S>>> {
    operators.iter().map(|w| Ok(Normal::new(a.same::<S>(w.get())?.clone()))).collect()
}

/// Minimises 1/2 |Ax - y|^2 + weight g(x) by accelerated proximal gradient steps:
///
///     x+ = prox(weight/L, z - (A^H A z - A^H y)/L), z+ = x+ + ((t - 1)/t+) (x+ - x), t+ = (1 + sqrt(1 + 4
///     t^2))/2
///
/// a: the operator A.
/// y: the data, an array of A's output shape and dtype.
/// penalty: g, one of `rayspin.prox`, or a function f(t, x) that returns argmin_u 1/2 |u - x|^2 + t g(u), or
///     that array and g of it.
/// weight: of g, 0 or more.
/// relative: multiplies the weight by L and by s, the 99th percentile of |A^H y| / L. The weight then has no
///     unit, for g with g(cx) = |c| g(x).
/// normal: A^H A in another way, such as `rayspin.toeplitz(...)`, which is faster along a trajectory.
/// start: where the iteration begins, an array of A's input shape; 0 unless given.
/// iterations, tolerance: the most iterations; stops where a step moves x by at most tolerance times its
///     norm.
/// average: after all iterations, x is the mean of the last `average` iterates, for penalties that differ
///     each time.
/// largest_eigenvalue: L of A^H A; an estimate unless given, which grows if a step meets a larger curvature.
/// progress, callback: as for `cg`.
///
/// Returns a `Solution`; x is an array of y's library, of A's input shape. Raises as `cg`.
///
/// >>> import numpy as np
/// >>> from rayspin import linop, prox, solve
/// >>> A = linop.identity((3,), dtype="float64", device="cpu")
/// >>> found = solve.fista(A, np.array([3.0, -0.5, -2.0]), prox.l1(), 1.0)
/// >>> found.x.round(4) + 0.0, round(found.objective[-1], 4)  # 1/2 |x - y|^2 + |x|_1
/// (array([ 2.,  0., -1.]), 4.125)
///
/// A. Beck, M. Teboulle, SIAM J Imaging Sci 2:183, 2009; B. O'Donoghue, E. Candes, Found Comput Math 15:715,
/// 2015.
///
/// `(a: LinearOperator, y: Array, penalty: Penalty | Map, weight: float, *, relative: bool, normal:
/// LinearOperator | None, start: Array | None, iterations: int, tolerance: float, average: int,
/// largest_eigenvalue: float | None, progress: Heard, callback: Callback) -> Solution`
#[pyfunction]
#[pyo3(signature = (a, y, penalty, weight, *, relative=false, normal=None, start=None, iterations=100, tolerance=1e-4, average=1, largest_eigenvalue=None, progress=None, callback=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn fista(
    a: &Bound<'_, LinearOperator>,
    y: &Bound<'_, PyAny>,
    penalty: &Bound<'_, PyAny>,
    weight: f64,
    relative: bool,
    normal: Option<&Bound<'_, LinearOperator>>,
    start: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = whole)] iterations: i64,
    tolerance: f64,
    #[pyo3(from_py_with = whole)] average: i64,
    largest_eigenvalue: Option<f64>,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Solution> {
    let a = a.get();
    let processor = &a.processor;
    let iterations = count("iterations", iterations)?;
    let average = count("average", average)?;
    let run = Call { processor, data: ("y", y), start, name: "FISTA", iterations, progress, callback };
    let options = FistaOptions { max_iterations: iterations, tolerance, average, ..FistaOptions::default() };
    each!(&a.op, op => {
        let (normal, penalty) = (normal_of(a, op, normal)?, Asked::new("penalty", penalty, processor)?);
        run.solve(|y, start, watch| {
            let rhs = op.adjoint(y)?;
            let largest = match largest_eigenvalue {
                Some(value) => value,
                None => {
                    rayspin::solve::largest_eigenvalue_from(&normal, &rhs, &LanczosOptions::default())?.value
                }
            };
            let problem = Problem { normal: &normal, rhs: &rhs, largest_eigenvalue: largest };
            let kept = OnceCell::new();
            let mut g = penalty.proximal(processor, &kept)?;
            // The solver leaves out 1/2 |y|^2, and with relative weights counts in units of L s^2.
            let (solved, unit) = if relative {
                let solved =
                    rayspin::solve::sparse_least_squares(&problem, start, weight, &mut *g, &options, watch)?;
                (solved.fista, largest * solved.scale * solved.scale)
            } else {
                (rayspin::solve::fista(&problem, start, weight, &mut *g, &options, watch)?, 1.0)
            };
            let constant = 0.5 * norm_squared(y)?;
            let course = Course {
                residuals: solved.residuals,
                objective: solved.objective.iter().map(|value| constant + unit * value).collect(),
                converged: solved.converged,
                largest_eigenvalue: Some(largest),
            };
            Ok((solved.solution, course))
        })
    })
}

/// Minimises 1/2 |Ax - y|^2 + g(x) + sum_i weight_i f_i(K_i x) by the primal-dual hybrid gradient method.
///
/// a: the operator A.
/// y: the data, an array of A's output shape and dtype.
/// terms: tuples (K_i, f_i, weight_i) of an operator from A's input shape, a penalty and a positive weight.
///     f_i is one of `rayspin.prox` or a function f(t, u), as for `fista`.
/// g: a penalty or a function; 0 unless given.
/// start: where the iteration begins, an array of A's input shape; 0 unless given.
/// iterations, tolerance: the most iterations, each one application of A, every K_i and their adjoints; stops
///     where a step moves x and the dual variables by at most tolerance times their norms.
/// balance: multiplies the step of x and divides the steps of the dual variables; the norms of A and the K_i
///     choose the steps unless given, which suits any scale of A and y.
/// progress, callback: as for `cg`.
///
/// Returns a `Solution`; x is an array of y's library, of A's input shape. Raises as `cg`. For one penalty
/// without K, `fista` needs far fewer applications of A.
///
/// >>> import numpy as np
/// >>> from rayspin import linop, prox, solve
/// >>> A, D = (make((8,), dtype="float64", device="cpu") for make in (linop.identity, linop.differences))
/// >>> found = solve.pdhg(A, np.repeat([0.0, 1.0], 4), [(D, prox.groups(), 0.4)], iterations=3000, tolerance=1e-8)
/// >>> found.x.round(3)  # the halves of the step are nearer by 0.4 / 4 each
/// array([0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9])
///
/// A. Chambolle, T. Pock, J Math Imaging Vis 40:120, 2011, algorithm 1.
///
/// `(a: LinearOperator, y: Array, terms: Sequence[tuple[LinearOperator, Penalty | Map, float]], *, g: Penalty
/// | Map | None, start: Array | None, iterations: int, tolerance: float, balance: float | None, progress:
/// Heard, callback: Callback) -> Solution`
#[pyfunction]
#[pyo3(signature = (a, y, terms, *, g=None, start=None, iterations=300, tolerance=1e-4, balance=None, progress=None, callback=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn pdhg(
    a: &Bound<'_, LinearOperator>,
    y: &Bound<'_, PyAny>,
    terms: Vec<(Bound<'_, LinearOperator>, Bound<'_, PyAny>, f64)>,
    g: Option<&Bound<'_, PyAny>>,
    start: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = whole)] iterations: i64,
    tolerance: f64,
    balance: Option<f64>,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Solution> {
    let a = a.get();
    let processor = &a.processor;
    let iterations = count("iterations", iterations)?;
    let run = Call { processor, data: ("y", y), start, name: "PDHG", iterations, progress, callback };
    let options = PdhgOptions { max_iterations: iterations, tolerance, balance };
    each!(&a.op, op => {
        let mut asked = Vec::with_capacity(terms.len());
        for (k, f, weight) in &terms {
            let k = same_as(a, op, k)?;
            asked.push((k, Asked::new("penalty", f, processor)?, *weight));
        }
        let g = g.map(|g| Asked::new("g", g, processor)).transpose()?;
        run.solve(|y, start, watch| {
            let fit = PenalisedFit { a: op, y, terms: asked, g };
            primal_dual(fit, processor, &options, start, watch)
        })
    })
}

fn same_as<S: Number>(a: &LinearOperator, _: &Op<S>, k: &Bound<'_, LinearOperator>) -> PyResult<Op<S>> {
    a.same::<S>(k.get()).cloned()
}

/// The sum 1/2 |Ax - y|^2 + g(x) + sum_i weight_i f_i(K_i x); `terms` holds K_i, f_i and the weight.
struct PenalisedFit<'a, S: Number> {
    a: &'a Op<S>,
    y: &'a Array<S>,
    terms: Vec<(Op<S>, Asked<S>, f64)>,
    g: Option<Asked<S>>,
}

fn primal_dual<S: Number>(
    fit: PenalisedFit<'_, S>,
    processor: &Processor,
    options: &PdhgOptions,
    start: Option<&Array<S>>,
    watch: Watch<'_, S>,
) -> Result<(Array<S>, Course)> {
    let PenalisedFit { a, y, terms, g } = fit;
    let device = &processor.device;
    let kept: Vec<_> = terms.iter().map(|_| OnceCell::new()).collect();
    let of_g = OnceCell::new();
    let mut g = g.map(|g| g.proximal(processor, &of_g)).transpose()?;
    let mut distance = Distance::new(y.try_clone()?);
    let largest = eigenvalue_of(a, device)?;
    let mut parts = Vec::with_capacity(terms.len());
    for ((k, penalty, weight), kept) in terms.into_iter().zip(&kept) {
        let largest = eigenvalue_of(&k, device)?;
        parts.push((k, penalty.proximal(processor, kept)?, weight, largest));
    }
    let mut terms = vec![Term { op: a, penalty: &mut distance, weight: 1.0, largest_eigenvalue: largest }];
    terms.extend(parts.iter_mut().map(|(k, penalty, weight, largest)| Term {
        op: k as &dyn LinearOp<S>,
        penalty: &mut **penalty,
        weight: *weight,
        largest_eigenvalue: *largest,
    }));
    let g = g.as_mut().map(|g| &mut **g as &mut dyn Proximal<S>);
    let solved = rayspin::solve::pdhg(device, g, &mut terms, start, options, watch)?;
    let course = Course {
        residuals: solved.residuals,
        objective: solved.objective,
        converged: solved.converged,
        largest_eigenvalue: Some(largest),
    };
    Ok((solved.solution, course))
}

/// An upper bound of the largest eigenvalue of KᴴK: the estimate and 1 % more. The estimate is at most a
/// thousandth too small.
fn eigenvalue_of<S: Number>(k: &Op<S>, device: &Device) -> Result<f64> {
    let options = LanczosOptions { tolerance: 1e-3, ..LanczosOptions::default() };
    let estimate = rayspin::solve::largest_eigenvalue(&Normal::new(k.clone()), device, &options)?;
    Ok(1.01 * estimate.value)
}

/// The largest eigenvalue max_x <x, Ax> / <x, x> of a Hermitian positive semidefinite operator, such as
/// `A.N`, by the Lanczos process.
///
/// tolerance: its relative error; the estimate is never too large.
///
/// Returns a float. Raises ValueError for an operator whose shapes differ, ArithmeticError for one that is
/// not Hermitian.
///
/// >>> import numpy as np
/// >>> from rayspin import linop, solve
/// >>> round(solve.largest_eigenvalue(linop.diagonal(np.array([1.0, 5.0, 2.0]), device="cpu")), 2)
/// 5.0
///
/// `(a: LinearOperator, *, tolerance: float) -> float`
#[pyfunction]
#[pyo3(signature = (a, *, tolerance=1e-3))]
pub(crate) fn largest_eigenvalue(a: &Bound<'_, LinearOperator>, tolerance: f64) -> PyResult<f64> {
    let (py, a) = (a.py(), a.get());
    a.processor.expect_own()?;
    let options = LanczosOptions { tolerance, ..LanczosOptions::default() };
    let device = &a.processor.device;
    let signals = Signals::default();
    let estimate = each!(&a.op, op => {
        call::run_without(py, &signals, || rayspin::solve::largest_eigenvalue(op, device, &options))
    });
    estimate.map(|estimate| estimate.value)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Solution>()?;
    module.add_function(wrap_pyfunction!(cg, module)?)?;
    module.add_function(wrap_pyfunction!(least_squares, module)?)?;
    module.add_function(wrap_pyfunction!(fista, module)?)?;
    module.add_function(wrap_pyfunction!(pdhg, module)?)?;
    module.add_function(wrap_pyfunction!(largest_eigenvalue, module)?)?;
    Ok(())
}
