//! `rayspin.linop`: linear operators over the caller's arrays.

mod custom;
mod made;
mod make;
mod penalised;

use std::sync::Arc;

use num_complex::Complex;
use pyo3::exceptions::{PyTypeError, PyValueError, PyZeroDivisionError};
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use rayspin::core::{C32, C64, Error, format_shape};
use rayspin::kernels::vector::Scalar;
use rayspin::linop::{LinearOp, Op, Scaled, Sum};

pub(crate) use self::custom::expect_to_be_called;
pub(crate) use self::made::Made;
pub(crate) use self::make::family;
pub(crate) use self::penalised::Penalised;
use crate::call;
use crate::error::{raised, wrong_type};
use crate::exchange::{Dtype, Given, Item, Output};
use crate::processor::Processor;
use crate::remade::{self, Reduced};
use crate::signals::Signals;

/// An operator over numbers of any type.
#[derive(Clone)]
pub(crate) enum AnyOp {
    F32(Op<f32>),
    F64(Op<f64>),
    C64(Op<C32>),
    C128(Op<C64>),
}

/// The type of an operator's numbers.
pub(crate) trait Number: Scalar + Item + Penalised {
    /// An operator over numbers of this type, as one of any type.
    fn any(op: Op<Self>) -> AnyOp;

    /// The operator, where its numbers are of this type.
    fn of(op: &AnyOp) -> Option<&Op<Self>>;
}

macro_rules! number {
    ($type:ty, $variant:ident) => {
        impl Number for $type {
            fn any(op: Op<Self>) -> AnyOp {
                AnyOp::$variant(op)
            }
            fn of(op: &AnyOp) -> Option<&Op<Self>> {
                match op {
                    AnyOp::$variant(op) => Some(op),
                    _ => None,
                }
            }
        }
    };
}
number!(f32, F32);
number!(f64, F64);
number!(C32, C64);
number!(C64, C128);

/// `$body` with `$op`, whatever the type of its numbers.
macro_rules! each {
    ($any:expr, $op:ident => $body:expr) => {
        match $any {
            AnyOp::F32($op) => $body,
            AnyOp::F64($op) => $body,
            AnyOp::C64($op) => $body,
            AnyOp::C128($op) => $body,
        }
    };
}
pub(crate) use each;

/// `$body` with the type `$S` of numbers.
macro_rules! number_type {
    ($dtype:expr, $S:ident => $body:expr) => {
        match $dtype {
            $crate::exchange::Dtype::F32 => {
                type $S = f32;
                $body
            }
            $crate::exchange::Dtype::F64 => {
                type $S = f64;
                $body
            }
            $crate::exchange::Dtype::C64 => {
                type $S = ::num_complex::Complex<f32>;
                $body
            }
            $crate::exchange::Dtype::C128 => {
                type $S = ::num_complex::Complex<f64>;
                $body
            }
        }
    };
}

pub(crate) use number_type;

/// A linear map A from arrays of `ishape` to arrays of `oshape`, with its adjoint: <Ax, y> = <x, A.H y>.
///
/// `A(x)` and `A @ x` apply it, `A.H` is the adjoint, `A.N` is A^H A. `A @ B`, `A + B`, `A - B`, `2 * A`, `A
/// / 2` and `-A` are operators too. x is an array of NumPy, CuPy or torch with the operator's dtype, in C
/// order; the result is of the same library. For other libraries with DLPack, such as JAX, it is NumPy's.
/// Calls record no gradients; `rayspin.torch.apply` does.
///
/// `__call__(x: NDArray[Number], out: NDArray[Number] | None = None) -> NDArray[Number]`
/// `__call__(x: Array, out: Array | None = None) -> Any`
/// `__matmul__(value: LinearOperator, /) -> LinearOperator`
/// `__matmul__(value: NDArray[Number], /) -> NDArray[Number]`
/// `__matmul__(value: Array, /) -> Any`
/// `__mul__(value: complex | LinearOperator, /) -> LinearOperator`
/// `__mul__(value: NDArray[Number], /) -> NDArray[Number]`
/// `__mul__(value: Array, /) -> Any`
/// `__rmul__(value: complex, /) -> LinearOperator`
/// `__truediv__(value: complex, /) -> LinearOperator`
/// `__rtruediv__(value: LinearOperator, /) -> LinearOperator`
/// `__neg__() -> LinearOperator`
/// `__add__(value: LinearOperator, /) -> LinearOperator`
/// `__sub__(value: LinearOperator, /) -> LinearOperator`
/// `__radd__(value: LinearOperator, /) -> LinearOperator`
/// `__rsub__(value: LinearOperator, /) -> LinearOperator`
/// `__rmatmul__(value: LinearOperator, /) -> LinearOperator`
#[pyclass(frozen, module = "rayspin.linop")]
pub(crate) struct LinearOperator {
    pub(crate) op: AnyOp,
    pub(crate) processor: Processor,
    /// How it was made. It holds the functions of the caller's that the operator calls.
    made: Made,
}

impl LinearOperator {
    pub(crate) fn new<S: Number>(op: impl LinearOp<S> + 'static, processor: &Processor, made: Made) -> Self {
        Self { op: S::any(Arc::new(op)), processor: processor.clone(), made }
    }

    /// An operator on the device of this one.
    fn beside(&self, op: AnyOp, made: Made) -> Self {
        Self { op, processor: self.processor.clone(), made }
    }

    pub(crate) fn number(&self) -> Dtype {
        match &self.op {
            AnyOp::F32(_) => Dtype::F32,
            AnyOp::F64(_) => Dtype::F64,
            AnyOp::C64(_) => Dtype::C64,
            AnyOp::C128(_) => Dtype::C128,
        }
    }

    /// Another operator's, over the same numbers. Errors: a `TypeError` for other numbers or another device.
    pub(crate) fn same<'a, S: Number>(&self, other: &'a Self) -> PyResult<&'a Op<S>> {
        if self.processor.place != other.processor.place {
            let (expected, found) = (self.processor.place.to_string(), other.processor.place);
            return Err(wrong_type("operator", format!("one on {expected}"), format!("one on {found}")));
        }
        let found = other.number().name();
        S::of(&other.op).ok_or_else(|| wrong_type("operator", format!("one of {}", S::DTYPE.name()), found))
    }

    fn scaled(slf: &Bound<'_, Self>, factor: Complex<f64>) -> PyResult<Self> {
        let (py, own) = (slf.py(), slf.get());
        if factor.im != 0.0 && matches!(own.op, AnyOp::F32(_) | AnyOp::F64(_)) {
            return Err(PyTypeError::new_err(format!(
                "factor: expected a real number, for the operator is of {}",
                own.number().name()
            )));
        }
        let op = each!(&own.op, op => Number::any(Arc::new(Scaled::new(factor, op.clone()))));
        Ok(own.beside(op, Made::by(py, "multiple").of("operator", slf)?.with(py, "factor", factor)?))
    }

    fn plus(slf: &Bound<'_, Self>, factor: f64, other: &Bound<'_, Self>) -> PyResult<Self> {
        let (py, own) = (slf.py(), slf.get());
        let made = Made::by(py, "sum").of("first", slf)?.of("second", other)?.with(py, "factor", factor)?;
        each!(&own.op, op => {
            let terms = vec![(1.0.into(), op.clone()), (factor.into(), own.same(other.get())?.clone())];
            Ok(own.beside(Number::any(Arc::new(Sum::new(terms).map_err(raised)?)), made))
        })
    }

    fn after(slf: &Bound<'_, Self>, inner: &Bound<'_, Self>) -> PyResult<Self> {
        let own = slf.get();
        let made = Made::by(slf.py(), "product").of("outer", slf)?.of("inner", inner)?;
        each!(&own.op, op => {
            let both = rayspin::linop::Compose::new(op.clone(), own.same(inner.get())?.clone());
            Ok(own.beside(Number::any(Arc::new(both.map_err(raised)?)), made))
        })
    }

    pub(crate) fn apply<'py>(
        &self,
        what: &'static str,
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.processor.expect_own()?;
        each!(&self.op, op => apply(op, &self.processor, what, x, out))
    }
}

fn apply<'py, S: Number>(
    op: &Op<S>,
    processor: &Processor,
    what: &'static str,
    x: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let given = Given::new(what, x)?;
    given.expect_within_reach(processor)?;
    if given.shape != op.domain() {
        let what = format!("{}: {what}", op.name());
        return Err(raised(Error::shape(what, op.domain(), &given.shape)));
    }
    let mut output = Output::<S>::new(out, op.range(), &given, processor)?;
    let input = given.read::<S>(processor)?;
    let target = &mut output.array;
    call::run(x, &Signals::default(), || op.forward_into(&input, target))?;
    drop(input);
    output.finish()
}

#[pymethods]
impl LinearOperator {
    /// NumPy's scalars and arrays leave `2 * A` to the operator.
    #[classattr]
    #[expect(non_upper_case_globals, reason = "NumPy's name")]
    const __array_ufunc__: Option<bool> = None;

    /// A x.
    ///
    /// x: an array of `ishape` and the operator's dtype, in C order, on the operator's device or NumPy's.
    /// out: an array that takes the result and is returned: of `oshape`, the same dtype and library, in C
    ///     order, writable, in memory apart from x; a new one unless given.
    ///
    /// Returns an array of `oshape` of the library that x is of. Raises ValueError for another shape or
    /// order, TypeError for another dtype, an array of another GPU, what is no array, and a tensor of torch
    /// that requires a gradient.
    #[pyo3(signature = (x, out=None))]
    fn __call__<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.apply("x", x, out)
    }

    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match other.cast::<Self>() {
            Ok(inner) => Ok(Bound::new(slf.py(), Self::after(slf, inner)?)?.into_any()),
            Err(_) => slf.get().apply("x", other, None),
        }
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let array = other.hasattr("shape")? && other.getattr("shape")?.len()? > 0;
        match other.extract::<Complex<f64>>() {
            Ok(factor) if !array => Ok(Bound::new(slf.py(), Self::scaled(slf, factor)?)?.into_any()),
            _ => Self::__matmul__(slf, other),
        }
    }

    fn __rmul__(slf: &Bound<'_, Self>, factor: Complex<f64>) -> PyResult<Self> {
        Self::scaled(slf, factor)
    }

    /// A/c for a number c.
    fn __truediv__(slf: &Bound<'_, Self>, divisor: Complex<f64>) -> PyResult<Self> {
        if divisor == Complex::ZERO {
            return Err(PyZeroDivisionError::new_err("an operator is divided by zero"));
        }
        // |divisor|^2 of `inv` is 0 or infinite where the divisor itself is neither.
        let size = divisor.re.abs().max(divisor.im.abs());
        let inverse = (divisor / size).inv() / size;
        if !(inverse.re.is_finite() && inverse.im.is_finite()) {
            return Err(PyValueError::new_err(format!(
                "divisor: expected a number with an inverse, found {divisor}"
            )));
        }
        Self::scaled(slf, inverse)
    }

    fn __neg__(slf: &Bound<'_, Self>) -> PyResult<Self> {
        Self::scaled(slf, (-1.0).into())
    }

    fn __add__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Self> {
        Self::plus(slf, 1.0, other)
    }

    fn __sub__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Self> {
        Self::plus(slf, -1.0, other)
    }

    /// Aᴴ.
    /// `-> LinearOperator`
    #[getter]
    #[pyo3(name = "H")]
    pub(crate) fn adjoint(slf: &Bound<'_, Self>) -> PyResult<Self> {
        let own = slf.get();
        let op = each!(&own.op, op => Number::any(Arc::new(rayspin::linop::Adjoint::new(op.clone()))));
        Ok(own.beside(op, Made::by(slf.py(), "adjoint").of("operator", slf)?))
    }

    /// AᴴA, by the operator's own short cut where it has one.
    /// `-> LinearOperator`
    #[getter]
    #[pyo3(name = "N")]
    fn normal(slf: &Bound<'_, Self>) -> PyResult<Self> {
        let own = slf.get();
        let op = each!(&own.op, op => Number::any(Arc::new(rayspin::linop::Normal::new(op.clone()))));
        Ok(own.beside(op, Made::by(slf.py(), "normal").of("operator", slf)?))
    }

    /// The shape of x.
    /// `-> tuple[int, ...]`
    #[getter]
    fn ishape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, each!(&self.op, op => op.domain()))
    }

    /// The shape of Ax.
    /// `-> tuple[int, ...]`
    #[getter]
    fn oshape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, each!(&self.op, op => op.range()))
    }

    /// The name of the element type of x and Ax.
    /// `-> str`
    #[getter]
    fn dtype(&self) -> &'static str {
        self.number().name()
    }

    /// Where the operator computes: cpu, cuda:0 and so on.
    /// `-> str`
    #[getter]
    fn device(&self) -> String {
        self.processor.place.to_string()
    }

    /// Returns the operator as SciPy's `LinearOperator` on flat NumPy vectors, for its solvers. Raises
    /// ImportError without SciPy.
    ///
    /// `() -> Any`
    fn as_scipy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("rayspin._scipy")?.call_method1("as_scipy", (slf,))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.made.traverse(&visit)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    /// The operator itself, which never changes.
    /// `() -> LinearOperator`
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The operator itself. One that calls functions is made anew: they may be methods of an object that is
    /// copied.
    /// `(memo: Any) -> LinearOperator`
    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().made.calls() { remade::copied_deeply(slf, memo) } else { Ok(slf.clone().into_any()) }
    }

    fn __repr__(&self) -> String {
        each!(&self.op, op => format!(
            "LinearOperator({}: {} -> {}, {}, {})",
            op.name(),
            format_shape(op.domain()),
            format_shape(op.range()),
            self.dtype(),
            self.device()
        ))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LinearOperator>()?;
    module.add_function(wrap_pyfunction!(make::identity, module)?)?;
    module.add_function(wrap_pyfunction!(make::fft, module)?)?;
    module.add_function(wrap_pyfunction!(make::nufft_operator, module)?)?;
    module.add_function(wrap_pyfunction!(make::nudft, module)?)?;
    module.add_function(wrap_pyfunction!(make::toeplitz, module)?)?;
    module.add_function(wrap_pyfunction!(make::sense, module)?)?;
    module.add_function(wrap_pyfunction!(make::diagonal, module)?)?;
    module.add_function(wrap_pyfunction!(make::mask, module)?)?;
    module.add_function(wrap_pyfunction!(make::differences, module)?)?;
    module.add_function(wrap_pyfunction!(make::wavelet, module)?)?;
    module.add_function(wrap_pyfunction!(make::stack, module)?)?;
    module.add_function(wrap_pyfunction!(make::block_diagonal, module)?)?;
    module.add_function(wrap_pyfunction!(custom::custom, module)?)?;
    Ok(())
}
