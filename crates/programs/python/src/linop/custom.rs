//! Operators that are functions of the caller's.

use pyo3::exceptions::PyReferenceError;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use rayspin::core::Result;
use rayspin::device::{Array, Backend, Device};
use rayspin::linop::LinearOp;

use super::{LinearOperator, Made, Number, number_type};
use crate::call::{self, attached};
use crate::exchange::Dtype;
use crate::exchange::copied::shape;
use crate::processor::Processor;

/// An operator of yours: A x = forward(x), A^H y = adjoint(y).
///
/// forward, adjoint: functions of one array that return an array of the other shape, of the operator's dtype.
///     They get arrays of their own: NumPy's on the CPU; on a GPU arrays of the library whose array the
///     operator is applied to.
/// ishape, oshape: the shapes of x and A x.
/// name: what `repr` and errors call it. dtype, device: as for `identity`, complex64 unless given.
///
/// Methods of an object that holds the operator are freed with the object.
///
/// Returns a `LinearOperator`, which raises what the functions raise, ValueError where they return another
/// shape and TypeError for another dtype. The functions must be linear and adjoint to each other; the
/// operator does not check it.
///
/// `(forward: Callable[[Array], Array], adjoint: Callable[[Array], Array], ishape: Sequence[int], oshape:
/// Sequence[int], *, name: str, dtype: Any, device: str) -> LinearOperator`
#[pyfunction]
#[pyo3(signature = (forward, adjoint, ishape, oshape, *, name="custom", dtype=None, device="auto"))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn custom(
    py: Python<'_>,
    forward: Py<PyAny>,
    adjoint: Py<PyAny>,
    ishape: Vec<i64>,
    oshape: Vec<i64>,
    name: &str,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let processor = Processor::named(device)?;
    let functions = Bound::new(py, Functions { both: Some([forward, adjoint]) })?;
    let (domain, range) = (shape("ishape", ishape)?, shape("oshape", oshape)?);
    let dtype = Dtype::named(dtype, Dtype::C64)?;
    let made = Made::on(py, "custom", &processor)?.with(py, "ishape", &domain)?.with(py, "oshape", &range)?;
    let made = made.with(py, "name", name)?.with(py, "dtype", dtype.name())?;
    let op = Custom {
        name: name.to_owned(),
        domain,
        range,
        functions: PyWeakrefReference::new(&functions)?.unbind(),
        processor: processor.clone(),
    };
    let made = made.calling(functions.unbind());
    number_type!(dtype, S => Ok(LinearOperator::new::<S>(op, &processor, made)))
}

/// The forward and adjoint function of an operator.
///
/// They may be methods of an object that holds the operator, which Python's collector must see. An operator
/// of Rust belongs to several of Python's, such as A and A.H, so that none of these can tell the collector
/// what it holds. The first of these holds the functions instead, as an object of Python, the others hold the
/// first, and Rust's operator refers to the functions weakly.
#[pyclass(weakref)]
pub(crate) struct Functions {
    both: Option<[Py<PyAny>; 2]>,
}

#[pymethods]
impl Functions {
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        self.both.iter().flatten().try_for_each(|function| visit.call(function))
    }

    fn __clear__(&mut self) {
        self.both = None;
    }
}

impl Functions {
    /// Both, unless the collector freed them.
    pub(super) fn functions(&self, py: Python<'_>) -> Option<[Py<PyAny>; 2]> {
        self.both.as_ref().map(|both| both.each_ref().map(|function| function.clone_ref(py)))
    }
}

struct Custom {
    name: String,
    domain: Vec<usize>,
    range: Vec<usize>,
    functions: Py<PyWeakrefReference>,
    processor: Processor,
}

impl Custom {
    /// Calls the function `which`: 0 is forward, 1 the adjoint.
    fn call<S: Number>(&self, which: usize, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        expect_to_be_called(x.device())?;
        attached(&self.name, |py| {
            let freed = || PyReferenceError::new_err(format!("{}: its functions were freed", self.name));
            let held = self.functions.bind(py).upgrade_as::<Functions>()?.ok_or_else(freed)?;
            let both = held.borrow().functions(py).ok_or_else(freed)?;
            let result = both[which].bind(py).call1((call::shown(py, x)?,))?;
            call::taken(&result, &self.processor, y)
        })
    }
}

/// Errors: the device records its work, which Python's would not be part of.
pub(crate) fn expect_to_be_called(device: &Device) -> Result<()> {
    match device.backend() {
        Backend::Cuda(cuda) => cuda.expect_not_recording("a function in Python"),
        Backend::Cpu(_) => Ok(()),
    }
}

impl<S: Number> LinearOp<S> for Custom {
    fn name(&self) -> &str {
        &self.name
    }
    fn domain(&self) -> &[usize] {
        &self.domain
    }
    fn range(&self) -> &[usize] {
        &self.range
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        LinearOp::<S>::check_forward(self, x, y)?;
        self.call(0, x, y)
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        LinearOp::<S>::check_adjoint(self, y, x)?;
        self.call(1, y, x)
    }
}
