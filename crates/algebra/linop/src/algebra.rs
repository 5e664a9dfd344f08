use std::sync::Arc;

use num_complex::Complex;
use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::Array;
use rayspin_kernels::vector::{self, Scalar};

use crate::{LinearOp, Scratch};

/// An operator of any kind, shared.
pub type Op<S> = Arc<dyn LinearOp<S>>;

/// AB: first B, then A.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{FiniteDifference, Fourier, LinearOp, random};
///
/// let device = Device::cpu()?;
/// let fourier = Fourier::<f32>::new(&device, &[], &[6, 5])?;
/// let op = FiniteDifference::new(&[6, 5])?.compose(fourier)?;
/// assert_eq!((op.domain(), op.range()), (&[6, 5][..], &[2, 6, 5][..]));
/// assert_eq!(op.forward(&random(&device, &[6, 5], 1)?)?.shape(), [2, 6, 5]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Compose<S: Scalar> {
    name: String,
    outer: Op<S>,
    inner: Op<S>,
    scratch: Scratch<S>,
}

impl<S: Scalar> Compose<S> {
    /// A = `outer`, B = `inner`. Errors: the range of B is not the domain of A.
    pub fn new(outer: Op<S>, inner: Op<S>) -> Result<Self> {
        let name = format!("{} ∘ {}", outer.name(), inner.name());
        expect_shape(
            &format!("{name}: range of {} as domain of {}", inner.name(), outer.name()),
            outer.domain(),
            inner.range(),
        )?;
        Ok(Self { name, outer, inner, scratch: Scratch::default() })
    }
}

impl<S: Scalar> LinearOp<S> for Compose<S> {
    fn name(&self) -> &str {
        &self.name
    }
    fn domain(&self) -> &[usize] {
        self.inner.domain()
    }
    fn range(&self) -> &[usize] {
        self.outer.range()
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        let mut between = self.scratch.take(x.device(), self.inner.range())?;
        self.inner.forward_into(x, &mut between)?;
        self.outer.forward_into(&between, y)
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        let mut between = self.scratch.take(y.device(), self.inner.range())?;
        self.outer.adjoint_into(y, &mut between)?;
        self.inner.adjoint_into(&between, x)
    }
    /// Bᴴ(AᴴA)B, so that A's own normal operator is used.
    fn normal_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        let mut before = self.scratch.take(x.device(), self.inner.range())?;
        let mut after = self.scratch.take(x.device(), self.inner.range())?;
        self.inner.forward_into(x, &mut before)?;
        self.outer.normal_into(&before, &mut after)?;
        self.inner.adjoint_into(&after, y)
    }
}

/// αA.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{Identity, LinearOp, random};
///
/// let device = Device::cpu()?;
/// let x = random::<f32>(&device, &[4], 1)?;
/// let twice = Identity::new(&[4]).scaled(2.0).forward(&x)?.to_host()?;
/// assert_eq!(twice[1], x.to_host()?[1] * 2.0);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Scaled<S: Scalar> {
    name: String,
    alpha: Complex<f64>,
    op: Op<S>,
}

impl<S: Scalar> Scaled<S> {
    /// α = `alpha`, A = `op`.
    pub fn new(alpha: Complex<f64>, op: Op<S>) -> Self {
        let name = format!("({alpha}) {}", op.name());
        Self { name, alpha, op }
    }
}

impl<S: Scalar> LinearOp<S> for Scaled<S> {
    fn name(&self) -> &str {
        &self.name
    }
    fn domain(&self) -> &[usize] {
        self.op.domain()
    }
    fn range(&self) -> &[usize] {
        self.op.range()
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.op.forward_into(x, y)?;
        vector::scale(self.alpha, y)?;
        Ok(())
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        self.op.adjoint_into(y, x)?;
        vector::scale(self.alpha.conj(), x)?;
        Ok(())
    }
    fn normal_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.op.normal_into(x, y)?;
        vector::scale(self.alpha.norm_sqr().into(), y)?;
        Ok(())
    }
}

/// Σ α_i A_i.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{Identity, LinearOp, random};
///
/// let device = Device::cpu()?;
/// let x = random::<f32>(&device, &[4], 1)?;
/// let sum = Identity::new(&[4]).plus(Identity::new(&[4]))?;
/// assert_eq!(sum.forward(&x)?.to_host()?[3], x.to_host()?[3] * 2.0);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Sum<S: Scalar> {
    name: String,
    terms: Vec<(Complex<f64>, Op<S>)>,
    scratch: Scratch<S>,
}

impl<S: Scalar> Sum<S> {
    /// From the terms (α_i, A_i). Errors: no terms, or shapes that differ.
    pub fn new(terms: Vec<(Complex<f64>, Op<S>)>) -> Result<Self> {
        let names: Vec<_> = terms.iter().map(|(_, op)| op.name()).collect();
        let name = names.join(" + ");
        let Some((_, first)) = terms.first() else {
            return Err(Error::value("sum of operators", "at least one", "none"));
        };
        for (_, op) in &terms[1..] {
            expect_shape(&format!("{name}: domain of {}", op.name()), first.domain(), op.domain())?;
            expect_shape(&format!("{name}: range of {}", op.name()), first.range(), op.range())?;
        }
        Ok(Self { name, terms, scratch: Scratch::default() })
    }

    /// out ← Σ factor(α_i) apply(A_i).
    fn gather(
        &self,
        out: &mut Array<S>,
        factor: impl Fn(Complex<f64>) -> Complex<f64>,
        apply: impl Fn(&dyn LinearOp<S>, &mut Array<S>) -> Result<()>,
    ) -> Result<()> {
        let Some(((alpha, first), rest)) = self.terms.split_first() else {
            return Ok(());
        };
        apply(first.as_ref(), out)?;
        if *alpha != Complex::new(1.0, 0.0) {
            vector::scale(factor(*alpha), out)?;
        }
        for (alpha, op) in rest {
            let mut term = self.scratch.take(out.device(), out.shape())?;
            apply(op.as_ref(), &mut term)?;
            vector::axpy(factor(*alpha), &term, out)?;
        }
        Ok(())
    }
}

impl<S: Scalar> LinearOp<S> for Sum<S> {
    fn name(&self) -> &str {
        &self.name
    }
    fn domain(&self) -> &[usize] {
        self.terms.first().map_or(&[], |(_, op)| op.domain())
    }
    fn range(&self) -> &[usize] {
        self.terms.first().map_or(&[], |(_, op)| op.range())
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.check_forward(x, y)?;
        self.gather(y, |a| a, |op, out| op.forward_into(x, out))
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        self.check_adjoint(y, x)?;
        self.gather(x, |a| a.conj(), |op, out| op.adjoint_into(y, out))
    }
    fn scratch(&self) -> Option<&Scratch<S>> {
        Some(&self.scratch)
    }
}

/// \[A_1; A_2; …\]: applies every operator to the same input and joins the outputs in one array of one axis.
///
/// The normal operator is Σ A_iᴴA_i. Stacking √λ W below F gives regularised least squares.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{FiniteDifference, Identity, LinearOp, random};
///
/// let device = Device::cpu()?;
/// let both = Identity::new(&[6]).stack(FiniteDifference::new(&[6])?)?;
/// let x = random::<f32>(&device, &[6], 1)?;
/// assert_eq!(both.forward(&x)?.len(), 12);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Stack<S: Scalar> {
    name: String,
    ops: Vec<Op<S>>,
    range: [usize; 1],
    scratch: Scratch<S>,
}

impl<S: Scalar> Stack<S> {
    /// From operators, top to bottom. Errors: no operators, or domains that differ.
    pub fn new(ops: Vec<Op<S>>) -> Result<Self> {
        let names: Vec<_> = ops.iter().map(|op| op.name()).collect();
        let name = format!("[{}]", names.join("; "));
        let Some(first) = ops.first() else {
            return Err(Error::value("stack of operators", "at least one", "none"));
        };
        let mut rows = 0usize;
        for op in &ops {
            expect_shape(&format!("{name}: domain of {}", op.name()), first.domain(), op.domain())?;
            rows = rows
                .checked_add(voxels(op.range())?)
                .ok_or_else(|| Error::value(name.as_str(), "a range that fits the address space", "more"))?;
        }
        Ok(Self { name, range: [rows], ops, scratch: Scratch::default() })
    }

    /// out ← Σ apply(A_i, i-th output's start).
    fn gather(
        &self,
        out: &mut Array<S>,
        mut apply: impl FnMut(&Op<S>, usize, &mut Array<S>) -> Result<()>,
    ) -> Result<()> {
        let mut start = 0;
        for (i, op) in self.ops.iter().enumerate() {
            if i == 0 {
                apply(op, start, out)?;
            } else {
                let mut term = self.scratch.take(out.device(), out.shape())?;
                apply(op, start, &mut term)?;
                vector::axpy(1.0.into(), &term, out)?;
            }
            start += voxels(op.range())?;
        }
        Ok(())
    }
}

impl<S: Scalar> LinearOp<S> for Stack<S> {
    fn name(&self) -> &str {
        &self.name
    }
    fn domain(&self) -> &[usize] {
        self.ops.first().map_or(&[], |op| op.domain())
    }
    fn range(&self) -> &[usize] {
        &self.range
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.check_forward(x, y)?;
        let mut start = 0;
        for op in &self.ops {
            let mut part = self.scratch.take(x.device(), op.range())?;
            op.forward_into(x, &mut part)?;
            vector::copy_part(&part, 0, y, start, part.len())?;
            start += part.len();
        }
        Ok(())
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        self.check_adjoint(y, x)?;
        self.gather(x, |op, start, out| {
            let mut part = self.scratch.take(y.device(), op.range())?;
            let len = part.len();
            vector::copy_part(y, start, &mut part, 0, len)?;
            op.adjoint_into(&part, out)
        })
    }
    fn normal_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.check_normal(x, y)?;
        self.gather(y, |op, _, out| op.normal_into(x, out))
    }
}

/// Aᴴ.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::Device;
/// use rayspin_linop::{FiniteDifference, LinearOp, random};
///
/// let device = Device::cpu()?;
/// let divergence = FiniteDifference::<C32>::new(&[6, 5])?.adjoint_op();
/// assert_eq!(divergence.forward(&random(&device, &[2, 6, 5], 1)?)?.shape(), [6, 5]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Adjoint<S: Scalar> {
    name: String,
    op: Op<S>,
}

impl<S: Scalar> Adjoint<S> {
    /// A = `op`.
    pub fn new(op: Op<S>) -> Self {
        let name = format!("({})ᴴ", op.name());
        Self { name, op }
    }
}

impl<S: Scalar> LinearOp<S> for Adjoint<S> {
    fn name(&self) -> &str {
        &self.name
    }
    fn domain(&self) -> &[usize] {
        self.op.range()
    }
    fn range(&self) -> &[usize] {
        self.op.domain()
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.op.adjoint_into(x, y)
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        self.op.forward_into(y, x)
    }
}

/// AᴴA.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{Fourier, LinearOp, random};
///
/// let device = Device::cpu()?;
/// let fourier = Fourier::<f32>::new(&device, &[], &[6, 5])?;
/// // F is unitary, so that FᴴF is the identity.
/// let x = random(&device, &[6, 5], 1)?;
/// let same = fourier.normal_op().forward(&x)?.to_host()?;
/// assert!(same.iter().zip(&x.to_host()?).all(|(a, b)| (a - b).norm() < 1e-5));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Normal<S: Scalar> {
    name: String,
    op: Op<S>,
}

impl<S: Scalar> Normal<S> {
    /// A = `op`.
    pub fn new(op: Op<S>) -> Self {
        let name = format!("({0})ᴴ({0})", op.name());
        Self { name, op }
    }
}

impl<S: Scalar> LinearOp<S> for Normal<S> {
    fn name(&self) -> &str {
        &self.name
    }
    fn domain(&self) -> &[usize] {
        self.op.domain()
    }
    fn range(&self) -> &[usize] {
        self.op.domain()
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.op.normal_into(x, y)
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        self.op.normal_into(y, x)
    }
}
