#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use num_complex::Complex;
use rayspin_core::{C64, Real, Result};
use rayspin_device::cuda::{Argument, Kernel, Launch, Source, ViewMut};
use rayspin_device::{Array, Cuda, Device};
use rayspin_tune::Build;

use super::Side;
use crate::cuda::{both, define};

static SOURCE: Source = Source { name: "vector", files: &[("vector.cu", include_str!("cuda/vector.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    both(&SOURCE)
}

pub(super) const THREADS: u32 = 256;

/// Blocks of a sum: enough for the largest GPU, few enough that adding them takes no time. Together with the length this
/// fixes every bit of a sum.
const BLOCKS: usize = 2048;

pub(super) fn kernel<R: Real>(cuda: &Cuda, name: &str) -> Result<Kernel> {
    cuda.kernel(&SOURCE, &[define::<R>()], name)
}

pub(super) fn blocks(len: usize) -> u32 {
    len.div_ceil(THREADS as usize).clamp(1, BLOCKS) as u32
}

pub(super) fn over(len: usize) -> Launch {
    // Four elements a thread keep enough loads under way.
    Launch::covering(len.div_ceil(4), THREADS)
}

/// Runs the kernel `name` with `arguments`, the length and a place for partial sums, and adds these.
///
/// # Safety
/// The kernel is one of a sum over `len` elements of every view among the arguments, which have as many.
unsafe fn sum<R: Real>(
    cuda: &Cuda,
    device: &Device,
    name: &str,
    len: usize,
    arguments: Vec<Argument<'_>>,
) -> Result<C64> {
    if len == 0 {
        return Ok(C64::default());
    }
    let count = blocks(len);
    let mut partial = Array::<C64>::zeros(device, &[count as usize])?;
    let mut total = Array::<C64>::zeros(device, &[1])?;
    let mut all: Vec<Argument<'_>> = arguments;
    all.push((len as u64).into());
    all.push(partial.cuda_mut().into());
    // SAFETY: the caller promises that `len` elements are there; a block writes one partial sum.
    unsafe { kernel::<R>(cuda, name)?.launch(Launch::linear(count, THREADS), &mut all) }?;
    let whole = &mut [partial.cuda().into(), count.into(), total.cuda_mut().into()];
    // SAFETY: `count` partial sums are read, one is written.
    unsafe { kernel::<R>(cuda, "finish")?.launch(Launch::linear(1, THREADS), whole) }?;
    Ok(total.to_vec()?[0])
}

pub(super) fn dot<R: Real>(cuda: &Cuda, x: &Array<Complex<R>>, y: &Array<Complex<R>>) -> Result<C64> {
    // SAFETY: the shapes of both were compared.
    unsafe { sum::<R>(cuda, x.device(), "dot", x.len(), vec![x.cuda().into(), y.cuda().into()]) }
}

pub(super) fn norm_squared<R: Real>(cuda: &Cuda, x: &Array<Complex<R>>) -> Result<f64> {
    // SAFETY: it is the vector's own length.
    Ok(unsafe { sum::<R>(cuda, x.device(), "norm_squared", x.len(), vec![x.cuda().into()]) }?.re)
}

pub(super) fn cg_update<R: Real>(
    cuda: &Cuda,
    alpha: R,
    p: &Array<Complex<R>>,
    q: &Array<Complex<R>>,
    x: &mut Array<Complex<R>>,
    r: &mut Array<Complex<R>>,
) -> Result<f64> {
    let arguments = vec![
        Argument::real(alpha),
        p.cuda().into(),
        q.cuda().into(),
        x.cuda_mut().into(),
        r.cuda_mut().into(),
    ];
    // SAFETY: the shapes of all four were compared.
    Ok(unsafe { sum::<R>(cuda, p.device(), "cg_update", p.len(), arguments) }?.re)
}

pub(super) fn axpy<R: Real>(
    cuda: &Cuda,
    alpha: Complex<R>,
    x: &Array<Complex<R>>,
    y: ViewMut<'_, Complex<R>>,
) -> Result<()> {
    let len = x.len();
    let arguments = &mut [Argument::complex(alpha), x.cuda().into(), y.into(), (len as u64).into()];
    // SAFETY: the shapes of both were compared, or `y` is a part of this length.
    unsafe { kernel::<R>(cuda, "axpy")?.launch(over(len), arguments) }
}

pub(super) fn xpby<R: Real>(
    cuda: &Cuda,
    x: &Array<Complex<R>>,
    beta: Complex<R>,
    y: &mut Array<Complex<R>>,
) -> Result<()> {
    let len = x.len();
    let arguments = &mut [x.cuda().into(), Argument::complex(beta), y.cuda_mut().into(), (len as u64).into()];
    // SAFETY: the shapes of both were compared.
    unsafe { kernel::<R>(cuda, "xpby")?.launch(over(len), arguments) }
}

pub(super) fn scale<R: Real>(cuda: &Cuda, alpha: Complex<R>, x: &mut Array<Complex<R>>) -> Result<()> {
    let len = x.len();
    let arguments = &mut [Argument::complex(alpha), x.cuda_mut().into(), (len as u64).into()];
    // SAFETY: it is the vector's own length.
    unsafe { kernel::<R>(cuda, "scale")?.launch(over(len), arguments) }
}

pub(super) fn multiply<R: Real>(
    cuda: &Cuda,
    d: &Array<Complex<R>>,
    x: &Array<Complex<R>>,
    y: &mut Array<Complex<R>>,
    conjugate: bool,
) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    let arguments = &mut [
        d.cuda().into(),
        (d.len() as u64).into(),
        x.cuda().into(),
        y.cuda_mut().into(),
        (x.len() as u64).into(),
        u32::from(conjugate).into(),
    ];
    // SAFETY: the shapes of `x` and `y` were compared; `d` is read modulo its length, which is not 0 where `x` has elements.
    unsafe { kernel::<R>(cuda, "multiply")?.launch(over(x.len()), arguments) }
}

pub(super) fn weight<R: Real>(
    cuda: &Cuda,
    w: &Array<R>,
    x: &Array<Complex<R>>,
    y: &mut Array<Complex<R>>,
) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    let arguments = &mut [
        w.cuda().into(),
        (w.len() as u64).into(),
        x.cuda().into(),
        y.cuda_mut().into(),
        (x.len() as u64).into(),
    ];
    // SAFETY: as for `multiply`.
    unsafe { kernel::<R>(cuda, "weight")?.launch(over(x.len()), arguments) }
}

/// A box of `extent` along four axes.
pub(super) fn copy_box<R: Real>(
    cuda: &Cuda,
    from: &Array<Complex<R>>,
    source: Side,
    to: &mut Array<Complex<R>>,
    target: Side,
    extent: [usize; 4],
) -> Result<()> {
    let mut arguments: Vec<Argument<'_>> = vec![from.cuda().into(), to.cuda_mut().into()];
    for Side { first, strides: [a, b, c] } in [source, target] {
        arguments.extend([first, a, b, c].map(|value| Argument::from(value as u64)));
    }
    arguments.extend(extent.map(|value| Argument::from(value as u64)));
    // SAFETY: the box lies inside both arrays, as `Side::new` found.
    unsafe { kernel::<R>(cuda, "copy_box")?.launch(over(extent.iter().product()), &mut arguments) }
}

pub(super) fn first_not_finite<R: Real>(cuda: &Cuda, x: &Array<Complex<R>>) -> Result<Option<usize>> {
    if x.is_empty() {
        return Ok(None);
    }
    let mut first = Array::from_slice(x.device(), &[1], &[u64::MAX])?;
    let arguments = &mut [x.cuda().into(), (x.len() as u64).into(), first.cuda_mut().into()];
    // SAFETY: it is the vector's own length; one number is written.
    unsafe { kernel::<R>(cuda, "first_not_finite")?.launch(over(x.len()), arguments) }?;
    let first = first.to_vec()?[0];
    Ok((first != u64::MAX).then_some(first as usize))
}
