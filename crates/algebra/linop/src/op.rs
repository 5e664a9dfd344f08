use std::sync::Arc;

use num_complex::Complex;
use rayspin_core::{Result, expect_shape};
use rayspin_device::Array;
use rayspin_kernels::vector::Scalar;

use crate::{Adjoint, Compose, Normal, Scaled, Scratch, Stack, Sum};

/// A linear map A from arrays of shape [`domain`](LinearOp::domain) to arrays of shape
/// [`range`](LinearOp::range), with
/// its adjoint: ⟨Ax, y⟩ = ⟨x, Aᴴy⟩. `S` is the type of their numbers: real (`f32`, `f64`) or complex.
///
/// An operator of your own implements the two shapes, [`forward_into`](LinearOp::forward_into) and
/// [`adjoint_into`](LinearOp::adjoint_into). Test it with [`laws::check`](crate::laws::check).
///
/// ```
/// use rayspin_core::Result;
/// use rayspin_device::{Array, Device};
/// use rayspin_linop::{LinearOp, laws};
///
/// /// x ↦ −x, for real numbers.
/// struct Negative(Vec<usize>);
///
/// impl LinearOp<f32> for Negative {
///     fn name(&self) -> &str {
///         "negative"
///     }
///     fn domain(&self) -> &[usize] {
///         &self.0
///     }
///     fn range(&self) -> &[usize] {
///         &self.0
///     }
///     fn forward_into(&self, x: &Array<f32>, y: &mut Array<f32>) -> Result<()> {
///         self.check_forward(x, y)?;
///         let x = x.read()?;
///         y.update(|y| y.iter_mut().zip(x.iter()).for_each(|(y, x)| *y = -x))
///     }
///     fn adjoint_into(&self, y: &Array<f32>, x: &mut Array<f32>) -> Result<()> {
///         self.forward_into(y, x)
///     }
/// }
///
/// laws::check(&Negative(vec![4, 3]), &Device::cpu()?, 1)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait LinearOp<S: Scalar>: Send + Sync {
    /// The operator's name in errors and reports.
    fn name(&self) -> &str;

    /// Shape of x.
    fn domain(&self) -> &[usize];

    /// Shape of Ax.
    fn range(&self) -> &[usize];

    /// y ← Ax. Overwrites all of `y`, whatever it holds.
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()>;

    /// x ← Aᴴy. Overwrites all of `x`, whatever it holds.
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()>;

    /// y ← AᴴAx. Overwrites all of `y`, whatever it holds.
    ///
    /// The default implementation calls [`forward_into`](LinearOp::forward_into) with an array of its
    /// [`scratch`](LinearOp::scratch), then [`adjoint_into`](LinearOp::adjoint_into). Some operators have a
    /// shorter way.
    fn normal_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        let mut both = |between: &mut Array<S>| {
            self.forward_into(x, between)?;
            self.adjoint_into(between, y)
        };
        match self.scratch() {
            Some(scratch) => both(&mut *scratch.take(x.device(), self.range())?),
            None => both(&mut Array::zeros(x.device(), self.range())?),
        }
    }

    /// The scratch memory for Ax in [`normal_into`](LinearOp::normal_into). With `None` each call allocates.
    /// Operators for iterative solvers have one.
    fn scratch(&self) -> Option<&Scratch<S>> {
        None
    }

    /// Ax in a new array. Errors: a shape other than the domain, named with the operator.
    fn forward(&self, x: &Array<S>) -> Result<Array<S>> {
        let mut y = Array::zeros(x.device(), self.range())?;
        self.check_forward(x, &y)?;
        self.forward_into(x, &mut y)?;
        Ok(y)
    }

    /// Aᴴy in a new array. Errors: a shape other than the range, named with the operator.
    fn adjoint(&self, y: &Array<S>) -> Result<Array<S>> {
        let mut x = Array::zeros(y.device(), self.domain())?;
        self.check_adjoint(y, &x)?;
        self.adjoint_into(y, &mut x)?;
        Ok(x)
    }

    /// AᴴAx in a new array. Errors: a shape other than the domain, named with the operator.
    fn normal(&self, x: &Array<S>) -> Result<Array<S>> {
        let mut y = Array::zeros(x.device(), self.domain())?;
        self.check_normal(x, &y)?;
        self.normal_into(x, &mut y)?;
        Ok(y)
    }

    /// Fails, naming the operator, unless x and y have the shapes of domain and range. Implementations of
    /// [`forward_into`](LinearOp::forward_into) call this first.
    fn check_forward(&self, x: &Array<S>, y: &Array<S>) -> Result<()> {
        expect_shape(&format!("{}: input of forward", self.name()), self.domain(), x.shape())?;
        expect_shape(&format!("{}: output of forward", self.name()), self.range(), y.shape())
    }

    /// Fails, naming the operator, unless y and x have the shapes of range and domain.
    fn check_adjoint(&self, y: &Array<S>, x: &Array<S>) -> Result<()> {
        expect_shape(&format!("{}: input of adjoint", self.name()), self.range(), y.shape())?;
        expect_shape(&format!("{}: output of adjoint", self.name()), self.domain(), x.shape())
    }

    /// Fails, naming the operator, unless x and y have the shape of the domain.
    fn check_normal(&self, x: &Array<S>, y: &Array<S>) -> Result<()> {
        expect_shape(&format!("{}: input of normal", self.name()), self.domain(), x.shape())?;
        expect_shape(&format!("{}: output of normal", self.name()), self.domain(), y.shape())
    }

    /// AB: first `inner`, then this. Errors: the range of `inner` is not this domain.
    fn compose<B: LinearOp<S> + 'static>(self, inner: B) -> Result<Compose<S>>
    where
        Self: Sized + 'static,
    {
        Compose::new(Arc::new(self), Arc::new(inner))
    }

    /// αA.
    fn scaled(self, alpha: impl Into<Complex<f64>>) -> Scaled<S>
    where
        Self: Sized + 'static,
    {
        Scaled::new(alpha.into(), Arc::new(self))
    }

    /// A + B. Errors: other shapes.
    fn plus<B: LinearOp<S> + 'static>(self, other: B) -> Result<Sum<S>>
    where
        Self: Sized + 'static,
    {
        Sum::new(vec![(1.0.into(), Arc::new(self)), (1.0.into(), Arc::new(other))])
    }

    /// \[A; B\]: applies both to the same input and joins the outputs in one flat array. Errors: domains that
    /// differ.
    fn stack<B: LinearOp<S> + 'static>(self, below: B) -> Result<Stack<S>>
    where
        Self: Sized + 'static,
    {
        Stack::new(vec![Arc::new(self), Arc::new(below)])
    }

    /// Aᴴ as an operator.
    fn adjoint_op(self) -> Adjoint<S>
    where
        Self: Sized + 'static,
    {
        Adjoint::new(Arc::new(self))
    }

    /// AᴴA as an operator, Hermitian and positive semidefinite, as conjugate gradients need.
    fn normal_op(self) -> Normal<S>
    where
        Self: Sized + 'static,
    {
        Normal::new(Arc::new(self))
    }
}

impl<S: Scalar, T: LinearOp<S> + ?Sized> LinearOp<S> for Arc<T> {
    fn name(&self) -> &str {
        (**self).name()
    }
    fn domain(&self) -> &[usize] {
        (**self).domain()
    }
    fn range(&self) -> &[usize] {
        (**self).range()
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        (**self).forward_into(x, y)
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        (**self).adjoint_into(y, x)
    }
    fn normal_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        (**self).normal_into(x, y)
    }
}
