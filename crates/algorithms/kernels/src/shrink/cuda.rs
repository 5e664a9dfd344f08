#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::Result;
use rayspin_device::cuda::{Argument, Kernel, Launch, Source};
use rayspin_device::{Array, Cuda, Device};
use rayspin_tune::Build;

use crate::vector::{SCALAR, Scalar, defines, scalars};

static SOURCE: Source =
    Source { name: "shrink", files: &[SCALAR, ("shrink.cu", include_str!("cuda/shrink.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    scalars(&SOURCE)
}

const THREADS: u32 = 256;
/// Blocks of a sum at most; with the length they fix its bits.
const BLOCKS: usize = 2048;

fn kernel<S: Scalar>(cuda: &Cuda, name: &str) -> Result<Kernel> {
    cuda.kernel(&SOURCE, &defines::<S>(), name)
}

/// Runs a kernel that ends with a place for partial sums, and adds these.
///
/// # Safety
/// The kernel is one of a sum over `len` places, and its other arguments have as many elements as it reads
/// and writes then.
unsafe fn summed<S: Scalar>(
    cuda: &Cuda,
    device: &Device,
    name: &str,
    len: usize,
    arguments: Vec<Argument<'_>>,
) -> Result<f64> {
    let count = len.div_ceil(THREADS as usize).clamp(1, BLOCKS);
    let mut partial = Array::<f64>::zeros(device, &[count])?;
    let mut total = Array::<f64>::zeros(device, &[1])?;
    let mut with_partial: Vec<Argument<'_>> = arguments;
    with_partial.push(partial.cuda_mut().into());
    // SAFETY: as the caller promises; a block writes one partial sum.
    unsafe { kernel::<S>(cuda, name)?.launch(Launch::linear(count as u32, THREADS), &mut with_partial) }?;
    let whole = &mut [partial.cuda().into(), Argument::count(count)?, total.cuda_mut().into()];
    // SAFETY: `count` partial sums are read, one is written.
    unsafe { kernel::<S>(cuda, "finish")?.launch(Launch::linear(1, THREADS), whole) }?;
    Ok(total.to_vec()?[0])
}

pub(super) fn soft<S: Scalar>(
    cuda: &Cuda,
    threshold: S::Real,
    weights: &Array<S::Real>,
    x: &mut Array<S>,
) -> Result<f64> {
    let (device, len) = (x.device().clone(), x.len());
    let arguments =
        vec![Argument::real(threshold), weights.cuda().into(), x.cuda_mut().into(), (len as u64).into()];
    // SAFETY: the shapes of numbers and weights were compared.
    unsafe { summed::<S>(cuda, &device, "soft", len, arguments) }
}

pub(super) fn clip<S: Scalar>(cuda: &Cuda, radius: S::Real, len: usize, x: &mut Array<S>) -> Result<()> {
    let components = Argument::count(x.len() / len)?;
    let arguments = &mut [Argument::real(radius), x.cuda_mut().into(), (len as u64).into(), components];
    // SAFETY: as many components as have all of their `len` numbers are read and written.
    unsafe { kernel::<S>(cuda, "clip")?.launch(Launch::covering(len, THREADS), arguments) }
}

pub(super) fn joint_norm<S: Scalar>(cuda: &Cuda, len: usize, x: &Array<S>) -> Result<f64> {
    let arguments = vec![x.cuda().into(), (len as u64).into(), Argument::count(x.len() / len)?];
    // SAFETY: as for `clip`.
    unsafe { summed::<S>(cuda, x.device(), "joint_norm", len, arguments) }
}
