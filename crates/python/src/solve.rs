//! `rayspin.solve`: solvers.

use std::cell::OnceCell;
use std::sync::Arc;

use pyo3::prelude::*;
use rayspin::core::{Monitor, Result};
use rayspin::device::{Array, Device};
use rayspin::linop::{LinearOp, Normal, Op};
use rayspin::solve::{
    CgOptions, Distance, FistaOptions, LanczosOptions, LeastSquaresOptions, PdhgOptions, Problem, Proximal,
    Step, Term, Watch,
};

use crate::call::{self, Detached, attached};
use crate::exchange::{Given, give};
use crate::linop::{AnyOp, LinearOperator, Number, each};
use crate::processor::Processor;
use crate::progress::Listener;
use crate::prox::Asked;

/// What a solver found.
#[pyclass(frozen, module = "rayspin.solve")]
pub(crate) struct Solution {
    /// The solution, an array of the data's library.
    #[pyo3(get)]
    x: Py<PyAny>,
    /// The solver's residual: after each iteration, and for conjugate gradients also before the first.
    #[pyo3(get)]
    residuals: Vec<f64>,
    /// The objective after each iteration, where the solver has one.
    #[pyo3(get)]
    objective: Vec<f64>,
    /// Whether the tolerance was met.
    #[pyo3(get)]
    converged: bool,
    /// The largest eigenvalue of AᴴA, where the solver wants it.
    #[pyo3(get)]
    largest_eigenvalue: Option<f64>,
}

#[pymethods]
impl Solution {
    fn __repr__(&self) -> String {
        let last = self.residuals.last().copied().unwrap_or_default();
        format!("Solution(converged={}, last residual {last:.2e})", self.converged)
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
struct Run<'a, 'py> {
    processor: &'a Processor,
    data: &'a Bound<'py, PyAny>,
    start: Option<&'a Bound<'py, PyAny>>,
    name: &'static str,
    iterations: usize,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
}

impl Run<'_, '_> {
    /// Runs a solver on the data and the start, which it gets on the processor.
    fn solve<S: Number>(
        self,
        work: impl FnOnce(&Array<S>, Option<&Array<S>>, Watch<'_, S>) -> Result<(Array<S>, Course)> + Send,
    ) -> PyResult<Solution> {
        self.processor.expect_own()?;
        let given = Given::new("data", self.data)?;
        given.expect_within_reach(self.processor)?;
        let data = given.read::<S>(self.processor)?;
        let start = self.start.map(|start| Given::new("start", start)?.read::<S>(self.processor));
        let start = start.transpose()?;
        let listener = Listener::new(self.data.py(), self.progress)?;
        let callback = self.callback;
        let found = call::run(self.data, || {
            let monitor = Monitor::new(&listener, Some(&listener.stop));
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
        let (x, course) = found.map_err(|error| listener.exception(error))?;
        drop((data, start));
        Ok(Solution {
            x: give(x, self.data, self.processor)?.unbind(),
            residuals: course.residuals,
            objective: course.objective,
            converged: course.converged,
            largest_eigenvalue: course.largest_eigenvalue,
        })
    }
}

/// Solves Ax = b for Hermitian positive semidefinite A, such as `A.N`, by conjugate gradients.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
#[pyo3(signature = (a, b, *, start=None, iterations=30, tolerance=1e-4, progress=None, callback=None))]
pub(crate) fn cg(
    a: &Bound<'_, LinearOperator>,
    b: &Bound<'_, PyAny>,
    start: Option<&Bound<'_, PyAny>>,
    iterations: usize,
    tolerance: f64,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Solution> {
    let a = a.get();
    let name = "conjugate gradients";
    let run = Run { processor: &a.processor, data: b, start, name, iterations, progress, callback };
    let options = CgOptions { max_iterations: iterations, tolerance };
    each!(&a.op, op => run.solve(|b, start, watch| {
        let found = rayspin::solve::cg(op, b, start, &options, watch)?;
        let course = Course { residuals: found.residuals, converged: found.converged, ..Course::default() };
        Ok((found.solution, course))
    }))
}

/// Minimises |Ax - y|^2 + weight L Σ |W_i x|^2 by conjugate gradients, L the largest eigenvalue of AᴴA: the given one, or an estimate,
/// which may be 1 % too small. Without operators W, W = 1.
#[pyfunction]
#[pyo3(signature = (a, y, *, weight=0.0, regularisers=vec![], normal=None, iterations=30, tolerance=1e-4, largest_eigenvalue=None, progress=None, callback=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn least_squares(
    a: &Bound<'_, LinearOperator>,
    y: &Bound<'_, PyAny>,
    weight: f64,
    regularisers: Vec<Bound<'_, LinearOperator>>,
    normal: Option<&Bound<'_, LinearOperator>>,
    iterations: usize,
    tolerance: f64,
    largest_eigenvalue: Option<f64>,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Solution> {
    let a = a.get();
    let name = "least squares";
    let run = Run { processor: &a.processor, data: y, start: None, name, iterations, progress, callback };
    let cg = CgOptions { max_iterations: iterations, tolerance };
    each!(&a.op, op => {
        let (normal, squares) = (normal_of(a, op, normal)?, squared(a, op, &regularisers)?);
        run.solve(|y, _, watch| {
            let squares: Vec<_> = squares.iter().map(|w| w as &dyn LinearOp<_>).collect();
            let options = LeastSquaresOptions { cg, largest_eigenvalue, ..LeastSquaresOptions::default() };
            let rhs = op.adjoint(y)?;
            let penalty = (weight, &squares[..]);
            let found = rayspin::solve::least_squares(&normal, &rhs, None, penalty, &options, watch)?;
            let course = Course {
                residuals: found.cg.residuals,
                converged: found.cg.converged,
                largest_eigenvalue: Some(found.largest_eigenvalue.value),
                ..Course::default()
            };
            Ok((found.cg.solution, course))
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

/// Minimises 1/2 |Ax - y|^2 + weight g(x) by accelerated proximal gradients (FISTA). With `relative`, weight is relative to the data and
/// to A: 1/(2L) |Ax - y|^2 + weight s g(x), L the largest eigenvalue of AᴴA and s the 99th percentile of |Aᴴy|/L.
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
    iterations: usize,
    tolerance: f64,
    average: usize,
    largest_eigenvalue: Option<f64>,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Solution> {
    let a = a.get();
    let processor = &a.processor;
    let run = Run { processor, data: y, start, name: "FISTA", iterations, progress, callback };
    let options = FistaOptions { max_iterations: iterations, tolerance, average };
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
            let found = if relative {
                rayspin::solve::sparse_least_squares(&problem, start, weight, &mut *g, &options, watch)?.fista
            } else {
                rayspin::solve::fista(&problem, start, weight, &mut *g, &options, watch)?
            };
            let course = Course {
                residuals: found.residuals,
                objective: found.objective,
                converged: found.converged,
                largest_eigenvalue: Some(largest),
            };
            Ok((found.solution, course))
        })
    })
}

/// Minimises 1/2 |Ax - y|^2 + g(x) + Σ weight_i f_i(K_i x) by the primal-dual hybrid gradient method. `terms` are tuples
/// (K_i, f_i, weight_i); g is a penalty or a function.
#[pyfunction]
#[pyo3(signature = (a, y, terms, *, g=None, start=None, iterations=300, tolerance=1e-4, balance=1.0, progress=None, callback=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn pdhg(
    a: &Bound<'_, LinearOperator>,
    y: &Bound<'_, PyAny>,
    terms: Vec<(Bound<'_, LinearOperator>, Bound<'_, PyAny>, f64)>,
    g: Option<&Bound<'_, PyAny>>,
    start: Option<&Bound<'_, PyAny>>,
    iterations: usize,
    tolerance: f64,
    balance: f64,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Solution> {
    let a = a.get();
    let processor = &a.processor;
    let run = Run { processor, data: y, start, name: "PDHG", iterations, progress, callback };
    let options = PdhgOptions { max_iterations: iterations, tolerance, balance };
    each!(&a.op, op => {
        let mut all = Vec::with_capacity(terms.len());
        for (k, f, weight) in &terms {
            let k = same_as(a, op, k)?;
            all.push((k, Asked::new("penalty", f, processor)?, *weight));
        }
        let g = g.map(|g| Asked::new("g", g, processor)).transpose()?;
        run.solve(|y, start, watch| primal_dual((op, y), all, g, (processor, &options), start, watch))
    })
}

fn same_as<S: Number>(a: &LinearOperator, _: &Op<S>, k: &Bound<'_, LinearOperator>) -> PyResult<Op<S>> {
    a.same::<S>(k.get()).cloned()
}

fn primal_dual<S: Number>(
    (op, y): (&Op<S>, &Array<S>),
    terms: Vec<(Op<S>, Asked<S>, f64)>,
    g: Option<Asked<S>>,
    (processor, options): (&Processor, &PdhgOptions),
    start: Option<&Array<S>>,
    watch: Watch<'_, S>,
) -> Result<(Array<S>, Course)> {
    let device = &processor.device;
    let kept: Vec<_> = terms.iter().map(|_| OnceCell::new()).collect();
    let of_g = OnceCell::new();
    let mut g = g.map(|g| g.proximal(processor, &of_g)).transpose()?;
    let mut distance = Distance::new(y.try_clone()?);
    let largest = eigenvalue_of(op, device)?;
    let mut parts = Vec::with_capacity(terms.len());
    for ((k, penalty, weight), kept) in terms.into_iter().zip(&kept) {
        let largest = eigenvalue_of(&k, device)?;
        parts.push((k, penalty.proximal(processor, kept)?, weight, largest));
    }
    let mut all = vec![Term { op, penalty: &mut distance, weight: 1.0, largest_eigenvalue: largest }];
    all.extend(parts.iter_mut().map(|(k, penalty, weight, largest)| Term {
        op: k as &dyn LinearOp<S>,
        penalty: &mut **penalty,
        weight: *weight,
        largest_eigenvalue: *largest,
    }));
    let g = g.as_mut().map(|g| &mut **g as &mut dyn Proximal<S>);
    let found = rayspin::solve::pdhg(device, g, &mut all, start, options, watch)?;
    let course = Course {
        residuals: found.residuals,
        objective: found.objective,
        converged: found.converged,
        largest_eigenvalue: Some(largest),
    };
    Ok((found.solution, course))
}

/// A bound of the largest eigenvalue of KᴴK: the estimate, which is at most a thousandth too small, and 1 % more.
fn eigenvalue_of<S: Number>(k: &Op<S>, device: &Device) -> Result<f64> {
    let options = LanczosOptions { tolerance: 1e-3, ..LanczosOptions::default() };
    let found = rayspin::solve::largest_eigenvalue(&Normal::new(k.clone()), device, &options)?;
    Ok(1.01 * found.value)
}

/// The largest eigenvalue of a Hermitian positive semidefinite operator, such as `A.N`.
#[pyfunction]
#[pyo3(signature = (a, *, tolerance=1e-3))]
pub(crate) fn largest_eigenvalue(a: &Bound<'_, LinearOperator>, tolerance: f64) -> PyResult<f64> {
    let (py, a) = (a.py(), a.get());
    a.processor.expect_own()?;
    let options = LanczosOptions { tolerance, ..LanczosOptions::default() };
    let device = &a.processor.device;
    let found = each!(&a.op, op => py.detached(|| rayspin::solve::largest_eigenvalue(op, device, &options)));
    found.map(|found| found.value).map_err(call::exception)
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
