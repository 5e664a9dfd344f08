//! Operators that are functions of the caller's.

use pyo3::prelude::*;
use rayspin::core::Result;
use rayspin::device::{Array, Backend, Device};
use rayspin::linop::LinearOp;

use super::{LinearOperator, Number, number_type};
use crate::call::{self, attached};
use crate::exchange::Dtype;
use crate::processor::Processor;

/// An operator of the caller's: `forward(x)` and `adjoint(y)` take arrays of their own and return arrays. They are NumPy arrays on the
/// CPU; on a GPU they are of the library whose array the operator is applied to.
#[pyfunction]
#[pyo3(signature = (forward, adjoint, ishape, oshape, *, name="custom", dtype=None, device="auto"))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn custom(
    forward: Py<PyAny>,
    adjoint: Py<PyAny>,
    ishape: Vec<usize>,
    oshape: Vec<usize>,
    name: &str,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let processor = Processor::named(device)?;
    let op = Custom {
        name: name.to_owned(),
        domain: ishape,
        range: oshape,
        forward,
        adjoint,
        processor: processor.clone(),
    };
    number_type!(Dtype::named(dtype, Dtype::C64)?, S => Ok(LinearOperator::new::<S>(op, &processor)))
}

struct Custom {
    name: String,
    domain: Vec<usize>,
    range: Vec<usize>,
    forward: Py<PyAny>,
    adjoint: Py<PyAny>,
    processor: Processor,
}

impl Custom {
    fn call<S: Number>(&self, function: &Py<PyAny>, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        expect_to_be_called(x.device())?;
        attached(&self.name, |py| {
            let result = function.bind(py).call1((call::shown(py, x)?,))?;
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
        self.call(&self.forward, x, y)
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        LinearOp::<S>::check_adjoint(self, y, x)?;
        self.call(&self.adjoint, y, x)
    }
}
