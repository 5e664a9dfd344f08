#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{C64, Error, Result, expect_len};
use rayspin_device::cuda::{Argument, Kernel, Launch, Source, View, ViewMut};
use rayspin_device::{Array, Cuda, Device};
use rayspin_tune::Build;

use super::{SCALAR, Scalar, Side, defines, scalars};

static SOURCE: Source =
    Source { name: "vector", files: &[SCALAR, ("vector.cu", include_str!("cuda/vector.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    scalars(&SOURCE)
}

pub(super) const THREADS: u32 = 256;

/// Blocks of a sum: enough for the largest GPU, few enough that adding them takes no time. Together with the
/// length this fixes every bit of a sum.
const BLOCKS: usize = 2048;

pub(super) fn kernel<S: Scalar>(cuda: &Cuda, name: &str) -> Result<Kernel> {
    cuda.kernel(&SOURCE, &defines::<S>(), name)
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
unsafe fn sum<S: Scalar>(
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
    let mut with_partial: Vec<Argument<'_>> = arguments;
    with_partial.push((len as u64).into());
    with_partial.push(partial.cuda_mut().into());
    // SAFETY: the caller promises that `len` elements are there; a block writes one partial sum.
    unsafe { kernel::<S>(cuda, name)?.launch(Launch::linear(count, THREADS), &mut with_partial) }?;
    let whole = &mut [partial.cuda().into(), count.into(), total.cuda_mut().into()];
    // SAFETY: `count` partial sums are read, one is written.
    unsafe { kernel::<S>(cuda, "finish")?.launch(Launch::linear(1, THREADS), whole) }?;
    Ok(total.to_vec()?[0])
}

pub(super) fn dot<S: Scalar>(cuda: &Cuda, x: &Array<S>, y: &Array<S>) -> Result<C64> {
    // SAFETY: the shapes of both were compared.
    unsafe { sum::<S>(cuda, x.device(), "dot", x.len(), vec![x.cuda().into(), y.cuda().into()]) }
}

pub(super) fn norm_squared<S: Scalar>(cuda: &Cuda, x: &Array<S>) -> Result<f64> {
    // SAFETY: it is the vector's own length.
    Ok(unsafe { sum::<S>(cuda, x.device(), "norm_squared", x.len(), vec![x.cuda().into()]) }?.re)
}

pub(super) fn cg_update<S: Scalar>(
    cuda: &Cuda,
    alpha: S::Real,
    p: &Array<S>,
    q: &Array<S>,
    x: &mut Array<S>,
    r: &mut Array<S>,
) -> Result<f64> {
    let arguments = vec![
        Argument::real(alpha),
        p.cuda().into(),
        q.cuda().into(),
        x.cuda_mut().into(),
        r.cuda_mut().into(),
    ];
    // SAFETY: the shapes of all four were compared.
    Ok(unsafe { sum::<S>(cuda, p.device(), "cg_update", p.len(), arguments) }?.re)
}

pub(super) fn axpy<S: Scalar>(cuda: &Cuda, alpha: S, x: &Array<S>, y: ViewMut<'_, S>) -> Result<()> {
    let len = x.len();
    let arguments = &mut [alpha.argument(), x.cuda().into(), y.into(), (len as u64).into()];
    // SAFETY: the shapes of both were compared, or `y` is a part of this length.
    unsafe { kernel::<S>(cuda, "axpy")?.launch(over(len), arguments) }
}

pub(super) fn xpby<S: Scalar>(cuda: &Cuda, x: &Array<S>, beta: S, y: &mut Array<S>) -> Result<()> {
    let len = x.len();
    let arguments = &mut [x.cuda().into(), beta.argument(), y.cuda_mut().into(), (len as u64).into()];
    // SAFETY: the shapes of both were compared.
    unsafe { kernel::<S>(cuda, "xpby")?.launch(over(len), arguments) }
}

pub(super) fn scale<S: Scalar>(cuda: &Cuda, alpha: S, x: &mut Array<S>) -> Result<()> {
    let len = x.len();
    let arguments = &mut [alpha.argument(), x.cuda_mut().into(), (len as u64).into()];
    // SAFETY: it is the vector's own length.
    unsafe { kernel::<S>(cuda, "scale")?.launch(over(len), arguments) }
}

/// y ← d ⊙ x, or conj(d) ⊙ x, where d is repeated along x. Errors: x and y of different lengths, no factors
/// for them.
pub(crate) fn multiply<S: Scalar>(
    cuda: &Cuda,
    d: View<'_, S>,
    x: View<'_, S>,
    y: ViewMut<'_, S>,
    conjugate: bool,
) -> Result<()> {
    let len = x.len();
    expect_len("multiply", &[len], y.len())?;
    if len == 0 {
        return Ok(());
    }
    if d.is_empty() {
        return Err(Error::value("multiply", "factors", "none"));
    }
    let arguments = &mut [
        d.into(),
        (d.len() as u64).into(),
        x.into(),
        y.into(),
        (len as u64).into(),
        u32::from(conjugate).into(),
    ];
    // SAFETY: `x` and `y` have `len` elements; `d` is read modulo its length, which is not 0.
    unsafe { kernel::<S>(cuda, "multiply")?.launch(over(len), arguments) }
}

pub(super) fn weight<S: Scalar>(
    cuda: &Cuda,
    w: &Array<S::Real>,
    x: &Array<S>,
    y: &mut Array<S>,
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
    // SAFETY: the shapes of `x` and `y` were compared; `w` is read modulo its length, which is not 0 where
    // `x` has elements.
    unsafe { kernel::<S>(cuda, "weight")?.launch(over(x.len()), arguments) }
}

pub(super) fn gather<S: Scalar>(
    cuda: &Cuda,
    x: &Array<S>,
    places: &Array<u32>,
    y: &mut Array<S>,
) -> Result<()> {
    let len = y.len();
    let arguments = &mut [
        x.cuda().into(),
        (x.len() as u64).into(),
        places.cuda().into(),
        y.cuda_mut().into(),
        (len as u64).into(),
    ];
    // SAFETY: there are as many places as elements of `y`; the kernel reads no element beyond the length of
    // `x`.
    unsafe { kernel::<S>(cuda, "gather")?.launch(over(len), arguments) }
}

pub(super) fn divide<S: Scalar>(cuda: &Cuda, x: &Array<S>, d: &Array<S>, y: &mut Array<S>) -> Result<()> {
    let len = x.len();
    let arguments = &mut [x.cuda().into(), d.cuda().into(), y.cuda_mut().into(), (len as u64).into()];
    // SAFETY: the shapes of all three were compared.
    unsafe { kernel::<S>(cuda, "divide")?.launch(over(len), arguments) }
}

pub(super) fn cut_negative<S: Scalar>(cuda: &Cuda, x: &mut Array<S>) -> Result<()> {
    let len = x.len();
    let arguments = &mut [x.cuda_mut().into(), (len as u64).into()];
    // SAFETY: it is the vector's own length.
    unsafe { kernel::<S>(cuda, "cut_negative")?.launch(over(len), arguments) }
}

/// A box of `extent` along four axes.
pub(super) fn copy_box<S: Scalar>(
    cuda: &Cuda,
    from: &Array<S>,
    source: Side,
    to: &mut Array<S>,
    target: Side,
    extent: [usize; 4],
) -> Result<()> {
    let mut arguments: Vec<Argument<'_>> = vec![from.cuda().into(), to.cuda_mut().into()];
    for Side { first, strides: [a, b, c] } in [source, target] {
        arguments.extend([first, a, b, c].map(|value| Argument::from(value as u64)));
    }
    arguments.extend(extent.map(|value| Argument::from(value as u64)));
    // SAFETY: the box lies inside both arrays, as `Side::new` found.
    unsafe { kernel::<S>(cuda, "copy_box")?.launch(over(extent.iter().product()), &mut arguments) }
}

pub(super) fn first_not_finite<S: Scalar>(cuda: &Cuda, x: &Array<S>) -> Result<Option<usize>> {
    if x.is_empty() {
        return Ok(None);
    }
    let mut first = Array::from_slice(x.device(), &[1], &[u64::MAX])?;
    let arguments = &mut [x.cuda().into(), (x.len() as u64).into(), first.cuda_mut().into()];
    // SAFETY: it is the vector's own length; one number is written.
    unsafe { kernel::<S>(cuda, "first_not_finite")?.launch(over(x.len()), arguments) }?;
    let first = first.to_vec()?[0];
    Ok((first != u64::MAX).then_some(first as usize))
}
