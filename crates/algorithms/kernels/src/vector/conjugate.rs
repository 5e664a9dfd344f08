//! The scalars of conjugate gradients on the device of the vectors, so that iterations can be queued without
//! waiting for a scalar.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use std::marker::PhantomData;

use rayspin_core::{C64, Real, Result, expect_len};
use rayspin_device::cuda::{Argument, Launch};
use rayspin_device::{Array, Backend, Cuda, Device, Pinned};

use super::{Scalar, cpu, cuda, expect_alike, expect_device};

/// Numbers of a state, in the order that vector.cu has as well.
const HALT: usize = 0;
const RHO: usize = 1;
const LENGTH: usize = 2;
const LARGEST: usize = 3;
const FORM_RE: usize = 4;
const FORM_IM: usize = 5;
const ALPHA: usize = 6;
const BETA: usize = 7;
const STATE: usize = 8;

/// When [`CgScalars`] halt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CgLimits {
    /// ‖b‖.
    pub size: f64,
    /// Halts when ‖r‖ is at most this share of ‖b‖.
    pub enough: f64,
    /// Halts when the curvature ⟨p, Ap⟩ / ‖p‖² of a direction is at most this share of the largest curvature
    /// met.
    pub vanishing: f64,
    /// Halts when |Im ⟨p, Ap⟩| exceeds this share of Re ⟨p, Ap⟩.
    pub indefinite: f64,
}

/// Why the scalars have halted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgHalt {
    /// ⟨p, Ap⟩ is not finite, too small, or not real. x and r keep their values from before the step.
    Curvature,
    /// ‖r‖ is small enough, or not finite. x and r have their values after the step, and p keeps its
    /// direction.
    Residual,
}

/// The scalars after some iterations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CgState {
    /// Whether they have halted.
    pub halt: Option<CgHalt>,
    /// ‖r‖².
    pub rho: f64,
    /// ‖p‖², by the recurrence ‖r + βp‖² = ‖r‖² + β²‖p‖² for orthogonal r and p.
    pub length: f64,
    /// The largest ⟨p, Ap⟩ / ‖p‖² so far.
    pub largest: f64,
    /// ⟨p, Ap⟩ of the last direction.
    pub form: C64,
}

/// ρ, α and β of conjugate gradients as f64 in the device's memory, with the buffers for their sums.
///
/// ```text
/// α = ρ / ⟨p, Ap⟩      x ← x + αp,  r ← r − αAp      ρ⁺ = ‖r‖²,  β = ρ⁺/ρ      p ← r + βp
/// ```
///
/// [`step_length`](Self::step_length), [`update`](Self::update) and
/// [`update_direction`](Self::update_direction) allocate nothing and wait for nothing. Many iterations can
/// therefore be queued on a GPU, and one can be recorded. When a limit is met they [halt](CgHalt): x, r, p
/// and the scalars then stay as they are, and queued iterations change nothing. Sums equal
/// [`dot`](super::dot) and [`cg_update`](super::cg_update) bit for bit.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::{CgLimits, CgScalars, norm_squared};
///
/// let device = Device::cpu()?;
/// // One iteration for A = 2 and b = (4, 6) ends at x = (2, 3).
/// let vector = |values: [f32; 2]| Array::from_vec(&device, &[2], values.map(C32::from).to_vec());
/// let (mut x, mut r, p, q) = (vector([0.0; 2])?, vector([4.0, 6.0])?, vector([4.0, 6.0])?, vector([8.0, 12.0])?);
/// let rho = norm_squared(&r)?;
/// let limits = CgLimits { size: rho.sqrt(), enough: 1e-6, vanishing: 1e-6, indefinite: 1e-3 };
/// let mut scalars = CgScalars::new(&device, 2, limits)?;
/// scalars.set(rho, rho, 0.0)?;
/// scalars.step_length(&p, &q)?;
/// scalars.update(&p, &q, &mut x, &mut r)?;
/// assert_eq!(x.to_vec()?, [2.0, 3.0].map(C32::from));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct CgScalars<S: Scalar> {
    limits: CgLimits,
    len: usize,
    state: Array<f64>,
    partial: Array<C64>,
    scalar: PhantomData<S>,
}

impl<S: Scalar> CgScalars<S> {
    /// For vectors of `len` numbers. Call [`CgScalars::set`] before the first iteration. Errors: no memory.
    pub fn new(device: &Device, len: usize, limits: CgLimits) -> Result<Self> {
        let parts = match device.backend() {
            Backend::Cpu(_) => 0,
            Backend::Cuda(_) => cuda::blocks(len) as usize,
        };
        let (state, partial) = (Array::zeros(device, &[STATE])?, Array::zeros(device, &[parts])?);
        Ok(Self { limits, len, state, partial, scalar: PhantomData })
    }

    /// Starts with ρ = ‖r‖², ‖p‖² and the largest curvature met so far, not halted.
    pub fn set(&mut self, rho: f64, length: f64, largest: f64) -> Result<()> {
        let mut state = [0.0; STATE];
        (state[RHO], state[LENGTH], state[LARGEST]) = (rho, length, largest);
        self.state.set(&state)
    }

    /// Errors: `x` has another length, or lives on another device.
    fn expect(&self, x: &Array<S>) -> Result<()> {
        expect_len("conjugate gradients", &[self.len], x.len())?;
        expect_device("conjugate gradients", self.state.device(), x)
    }

    /// Computes ⟨p, Ap⟩ and from it α. Errors: shapes; another length; a failure of the device.
    pub fn step_length(&mut self, p: &Array<S>, q: &Array<S>) -> Result<()> {
        self.expect(p)?;
        expect_alike("conjugate gradients", p, q)?;
        match p.device().clone().backend() {
            Backend::Cpu(cpu) => bend(self.state.cpu_mut(), cpu::dot(cpu, p.cpu(), q.cpu()), &self.limits),
            Backend::Cuda(cuda) => {
                let len = (p.len() as u64).into();
                let sum = &mut [p.cuda().into(), q.cuda().into(), len, self.partial.cuda_mut().into()];
                // SAFETY: both have the length that was said, and there is a partial sum for each block.
                unsafe { sums::<S>(cuda, p.len(), "dot", sum) }?;
                let limits = [self.limits.vanishing, self.limits.indefinite];
                self.finish(cuda, "cg_alpha", limits)?;
            }
        }
        Ok(())
    }

    /// x ← x + αp, r ← r − αq. Computes ‖r‖² and from it β. Errors: as [`CgScalars::step_length`].
    pub fn update(&mut self, p: &Array<S>, q: &Array<S>, x: &mut Array<S>, r: &mut Array<S>) -> Result<()> {
        self.expect(p)?;
        expect_alike("conjugate gradients", p, q)?;
        expect_alike("conjugate gradients", p, x)?;
        expect_alike("conjugate gradients", p, r)?;
        match p.device().clone().backend() {
            Backend::Cpu(cpu) => {
                let state = self.state.cpu_mut();
                if state[HALT] == 0.0 {
                    let alpha = <S::Real as Real>::from_f64(state[ALPHA]);
                    let next = cpu::cg_update(cpu, alpha, p.cpu(), q.cpu(), x.cpu_mut(), r.cpu_mut());
                    settle(state, next, &self.limits);
                }
            }
            Backend::Cuda(cuda) => {
                let arguments = &mut [
                    self.state.cuda().into(),
                    p.cuda().into(),
                    q.cuda().into(),
                    x.cuda_mut().into(),
                    r.cuda_mut().into(),
                    (p.len() as u64).into(),
                    self.partial.cuda_mut().into(),
                ];
                // SAFETY: all four have the length that was said, and there is a partial sum for each block.
                unsafe { sums::<S>(cuda, p.len(), "cg_step", arguments) }?;
                self.finish(cuda, "cg_beta", [self.limits.size, self.limits.enough])?;
            }
        }
        Ok(())
    }

    /// p ← r + βp. Errors: as [`CgScalars::step_length`].
    pub fn update_direction(&mut self, r: &Array<S>, p: &mut Array<S>) -> Result<()> {
        self.expect(r)?;
        expect_alike("conjugate gradients", r, p)?;
        match r.device().clone().backend() {
            Backend::Cpu(cpu) => {
                let state = self.state.cpu();
                if state[HALT] == 0.0 {
                    cpu::xpby(cpu, r.cpu(), S::nearest(state[BETA].into()), p.cpu_mut());
                }
                Ok(())
            }
            Backend::Cuda(cuda) => {
                let len = p.len();
                let state = self.state.cuda();
                let arguments =
                    &mut [state.into(), r.cuda().into(), p.cuda_mut().into(), (len as u64).into()];
                // SAFETY: both have `len` elements; the scalars are read.
                unsafe { cuda::kernel::<S>(cuda, "cg_turn")?.launch(cuda::over(len), arguments) }
            }
        }
    }

    /// Allocates pinned memory for [`CgScalars::send`].
    pub fn pinned(&self) -> Result<Pinned<f64>> {
        Pinned::new(self.state.device(), STATE)
    }

    /// Queues a copy of the scalars in the order of the device's work, and does not wait. [`CgState::read`]
    /// does.
    pub fn send(&self, to: Pinned<f64>) -> Result<Pinned<f64>> {
        self.state.send(to)
    }

    fn finish(&mut self, cuda: &Cuda, name: &str, limits: [f64; 2]) -> Result<()> {
        let count = self.partial.len() as u32;
        let [a, b] = limits;
        let arguments =
            &mut [self.partial.cuda().into(), count.into(), a.into(), b.into(), self.state.cuda_mut().into()];
        // SAFETY: the partial sums are read, and a state has all scalars.
        unsafe { cuda::kernel::<S>(cuda, name)?.launch(Launch::linear(1, cuda::THREADS), arguments) }
    }
}

/// # Safety
/// The kernel is one of a sum over `len` elements of every vector among the arguments; they have as many, and
/// there is a partial sum for each of its blocks.
unsafe fn sums<S: Scalar>(cuda: &Cuda, len: usize, name: &str, arguments: &mut [Argument<'_>]) -> Result<()> {
    let blocks = Launch::linear(cuda::blocks(len), cuda::THREADS);
    // SAFETY: as the caller promises.
    unsafe { cuda::kernel::<S>(cuda, name)?.launch(blocks, arguments) }
}

impl CgState {
    /// Waits for the scalars from [`CgScalars::send`]. Errors: a failure of the device.
    pub fn read(from: &mut Pinned<f64>) -> Result<Self> {
        let state = from.values()?;
        let halt = match state[HALT] {
            0.0 => None,
            1.0 => Some(CgHalt::Curvature),
            _ => Some(CgHalt::Residual),
        };
        let form = C64::new(state[FORM_RE], state[FORM_IM]);
        Ok(Self { halt, rho: state[RHO], length: state[LENGTH], largest: state[LARGEST], form })
    }
}

/// The CPU's version of the kernel `cg_alpha`.
fn bend(state: &mut [f64], form: C64, limits: &CgLimits) {
    if state[HALT] != 0.0 {
        return;
    }
    (state[FORM_RE], state[FORM_IM]) = (form.re, form.im);
    let finite = form.re.is_finite() && form.im.is_finite();
    if finite {
        state[LARGEST] = state[LARGEST].max(form.re / state[LENGTH]);
    }
    let least = limits.vanishing * state[LARGEST] * state[LENGTH];
    if finite && form.re > least && form.im.abs() <= limits.indefinite * form.re {
        state[ALPHA] = state[RHO] / form.re;
    } else {
        state[HALT] = 1.0;
    }
}

/// The CPU's version of the kernel `cg_beta`.
fn settle(state: &mut [f64], next: f64, limits: &CgLimits) {
    let beta = if state[RHO] > 0.0 { next / state[RHO] } else { 0.0 };
    let relative = next.sqrt() / limits.size;
    state[RHO] = next;
    state[LENGTH] = next + beta * beta * state[LENGTH];
    state[BETA] = beta;
    if relative.is_nan() || relative <= limits.enough || relative.is_infinite() {
        state[HALT] = 2.0;
    }
}
