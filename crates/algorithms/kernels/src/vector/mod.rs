//! Sums and updates of real and complex vectors, for iterative solvers between two applications of an
//! operator. Memory bandwidth bounds all of them.

mod across;
mod conjugate;
mod cpu;
mod cuda;
mod ladder;
pub mod reference;
mod scalar;
mod variants;

pub use across::{SumAcross, broadcast};
pub use conjugate::{CgHalt, CgLimits, CgScalars, CgState};
pub(crate) use cpu::{SERIAL, for_chunks};
pub(crate) use cuda::{builds, multiply as multiply_on_gpu};
pub(crate) use ladder::ladder;
pub use scalar::Scalar;
pub(crate) use scalar::{SCALAR, defines, scalars};
pub use variants::{CgUpdate, Implementation, Operation, Problem, variants};

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, expect_shape, format_shape};
use rayspin_device::{Array, Backend, Device, Element};

/// Fails unless `other` lives on `device`.
pub(crate) fn expect_device<T: Element>(what: &str, device: &Device, other: &Array<T>) -> Result<()> {
    if device.same_as(other.device()) {
        Ok(())
    } else {
        Err(Error::value(
            what,
            format!("an array on {}", device.describe()),
            format!("one on another device ({})", other.device().describe()),
        ))
    }
}

fn expect_alike<S: Scalar>(what: &str, x: &Array<S>, y: &Array<S>) -> Result<()> {
    expect_shape(what, x.shape(), y.shape())?;
    expect_device(what, x.device(), y)
}

/// Fails unless the trailing axes of `x` equal the axes of `d`.
fn expect_trailing<D: Element, S: Scalar>(what: &str, d: &Array<D>, x: &Array<S>) -> Result<()> {
    if !x.shape().ends_with(d.shape()) {
        return Err(Error::Shape {
            what: format!("{what}: factors"),
            expected: format!("the trailing axes of {}", format_shape(x.shape())),
            found: format_shape(d.shape()),
        });
    }
    expect_device(what, x.device(), d)
}

/// ⟨x, y⟩ = Σ conj(x_i) y_i, summed in f64.
///
/// Fixed chunks are summed and added in a fixed order, so the result has the same bits for any number of
/// threads and any vector width. Errors: different shapes or devices.
///
/// ```
/// use rayspin_core::{C32, C64};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::dot;
///
/// let device = Device::cpu()?;
/// let x = Array::from_vec(&device, &[2], vec![C32::I, C32::from(2.0)])?;
/// let y = Array::from_vec(&device, &[2], vec![C32::ONE, C32::from(3.0)])?;
/// assert_eq!(dot(&x, &y)?, C64::new(6.0, -1.0)); // conj(i)·1 + 2·3
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn dot<S: Scalar>(x: &Array<S>, y: &Array<S>) -> Result<Complex<f64>> {
    expect_alike("dot", x, y)?;
    match x.device().backend() {
        Backend::Cpu(cpu) => Ok(cpu::dot(cpu, x.cpu(), y.cpu())),
        Backend::Cuda(cuda) => cuda::dot(cuda, x, y),
    }
}

/// ‖x‖² = Σ |x_i|², summed in f64 as in [`dot`]. Errors: of the device.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::norm_squared;
///
/// let x = Array::from_vec(&Device::cpu()?, &[2], vec![C32::new(3.0, 4.0), C32::I])?;
/// assert_eq!(norm_squared(&x)?, 26.0);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn norm_squared<S: Scalar>(x: &Array<S>) -> Result<f64> {
    match x.device().backend() {
        Backend::Cpu(cpu) => Ok(cpu::norm_squared(cpu, x.cpu())),
        Backend::Cuda(cuda) => cuda::norm_squared(cuda, x),
    }
}

/// y ← αx + y. Errors: different shapes or devices.
///
/// ```
/// use rayspin_core::{C32, C64};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::axpy;
///
/// let device = Device::cpu()?;
/// let x = Array::from_vec(&device, &[2], [1.0, 2.0].map(C32::from).to_vec())?;
/// let mut y = Array::from_vec(&device, &[2], vec![C32::ONE; 2])?;
/// axpy(C64::I, &x, &mut y)?;
/// assert_eq!(y.to_vec()?, [C32::new(1.0, 1.0), C32::new(1.0, 2.0)]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn axpy<S: Scalar>(alpha: Complex<f64>, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
    expect_alike("axpy", x, y)?;
    match x.device().backend() {
        Backend::Cpu(cpu) => cpu::axpy(cpu, S::factor(alpha)?, x.cpu(), y.cpu_mut()),
        Backend::Cuda(cuda) => cuda::axpy(cuda, S::factor(alpha)?, x, y.cuda_mut())?,
    }
    Ok(())
}

/// y\[at + i\] ← y\[at + i\] + x\[i\], in C order. Errors: `x` reaches beyond `y`, different devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::add_part;
///
/// let device = Device::cpu()?;
/// let x = Array::from_vec(&device, &[2], [1.0, 2.0].map(C32::from).to_vec())?;
/// let mut y = Array::from_vec(&device, &[4], vec![C32::ONE; 4])?;
/// add_part(&x, &mut y, 1)?;
/// assert_eq!(y.to_vec()?, [1.0, 2.0, 3.0, 1.0].map(C32::from));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn add_part<S: Scalar>(x: &Array<S>, y: &mut Array<S>, start: usize) -> Result<()> {
    expect_device("add_part", x.device(), y)?;
    let (len, size) = (x.len(), y.len());
    let outside = || Error::value("add_part", format!("{len} of {size} elements"), format!("start {start}"));
    let one = S::factor(1.0.into())?;
    match x.device().backend() {
        Backend::Cpu(cpu) => {
            let end = start.checked_add(len).ok_or_else(outside)?;
            cpu::axpy(cpu, one, x.cpu(), y.cpu_mut().get_mut(start..end).ok_or_else(outside)?);
            Ok(())
        }
        Backend::Cuda(cuda) => cuda::axpy(cuda, one, x, y.cuda_mut().part(start, len).ok_or_else(outside)?),
    }
}

/// y ← x + βy. Errors: different shapes or devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::xpby;
///
/// let device = Device::cpu()?;
/// let x = Array::from_vec(&device, &[2], [1.0, 2.0].map(C32::from).to_vec())?;
/// let mut y = Array::from_vec(&device, &[2], vec![C32::ONE; 2])?;
/// xpby(&x, 10.0.into(), &mut y)?;
/// assert_eq!(y.to_vec()?, [11.0, 12.0].map(C32::from));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn xpby<S: Scalar>(x: &Array<S>, beta: Complex<f64>, y: &mut Array<S>) -> Result<()> {
    expect_alike("xpby", x, y)?;
    match x.device().backend() {
        Backend::Cpu(cpu) => cpu::xpby(cpu, x.cpu(), S::factor(beta)?, y.cpu_mut()),
        Backend::Cuda(cuda) => cuda::xpby(cuda, x, S::factor(beta)?, y)?,
    }
    Ok(())
}

/// x ← αx. Errors: of the device.
///
/// ```
/// use rayspin_core::{C32, C64};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::scale;
///
/// let mut x = Array::from_vec(&Device::cpu()?, &[2], [1.0, 2.0].map(C32::from).to_vec())?;
/// scale(C64::I, &mut x)?;
/// assert_eq!(x.to_vec()?, [C32::new(0.0, 1.0), C32::new(0.0, 2.0)]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn scale<S: Scalar>(alpha: Complex<f64>, x: &mut Array<S>) -> Result<()> {
    let device = x.device().clone();
    match device.backend() {
        Backend::Cpu(cpu) => cpu::scale(cpu, S::factor(alpha)?, x.cpu_mut()),
        Backend::Cuda(cuda) => cuda::scale(cuda, S::factor(alpha)?, x)?,
    }
    Ok(())
}

/// y ← d ⊙ x, where d has the trailing axes of x and is repeated along the leading ones.
///
/// Errors: shapes that do not fit, or different devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::multiply;
///
/// let device = Device::cpu()?;
/// let d = Array::from_vec(&device, &[2], vec![C32::I, C32::from(3.0)])?;
/// let x = Array::from_vec(&device, &[2, 2], vec![C32::ONE; 4])?; // d repeats along the first axis
/// let mut y = Array::zeros(&device, &[2, 2])?;
/// multiply(&d, &x, &mut y)?;
/// assert_eq!(y.to_vec()?, [C32::I, C32::from(3.0), C32::I, C32::from(3.0)]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn multiply<S: Scalar>(d: &Array<S>, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
    expect_alike("multiply", x, y)?;
    expect_trailing("multiply", d, x)?;
    match x.device().backend() {
        Backend::Cpu(cpu) => cpu::multiply(cpu, d.cpu(), x.cpu(), y.cpu_mut()),
        Backend::Cuda(cuda) => cuda::multiply(cuda, d.cuda(), x.cuda(), y.cuda_mut(), false)?,
    }
    Ok(())
}

/// y ← conj(d) ⊙ x, shapes as in [`multiply`].
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::multiply_conj;
///
/// let device = Device::cpu()?;
/// let d = Array::from_vec(&device, &[2], vec![C32::I, C32::from(3.0)])?;
/// let x = Array::from_vec(&device, &[2], vec![C32::ONE; 2])?;
/// let mut y = Array::zeros(&device, &[2])?;
/// multiply_conj(&d, &x, &mut y)?;
/// assert_eq!(y.to_vec()?, [-C32::I, C32::from(3.0)]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn multiply_conj<S: Scalar>(d: &Array<S>, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
    expect_alike("multiply_conj", x, y)?;
    expect_trailing("multiply_conj", d, x)?;
    match x.device().backend() {
        Backend::Cpu(cpu) => cpu::multiply_conj(cpu, d.cpu(), x.cpu(), y.cpu_mut()),
        Backend::Cuda(cuda) => cuda::multiply(cuda, d.cuda(), x.cuda(), y.cuda_mut(), true)?,
    }
    Ok(())
}

/// y ← w ⊙ x with real weights, shapes as in [`multiply`]: density compensation, sampling masks.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::weight;
///
/// let device = Device::cpu()?;
/// let density = Array::from_vec(&device, &[2], vec![0.5f32, 2.0])?; // [sample]
/// let samples = Array::from_vec(&device, &[2, 2], vec![C32::ONE; 4])?; // [coil, sample]
/// let mut weighted = Array::zeros(&device, &[2, 2])?;
/// weight(&density, &samples, &mut weighted)?;
/// assert_eq!(weighted.to_vec()?, [0.5, 2.0, 0.5, 2.0].map(C32::from));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn weight<S: Scalar>(w: &Array<S::Real>, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
    expect_alike("weight", x, y)?;
    expect_trailing("weight", w, x)?;
    match x.device().backend() {
        Backend::Cpu(cpu) => cpu::weight(cpu, w.cpu(), x.cpu(), y.cpu_mut()),
        Backend::Cuda(cuda) => cuda::weight(cuda, w, x, y)?,
    }
    Ok(())
}

/// y ← x / d, element by element, for real numbers; 0 where d is 0. Errors: different shapes or devices.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::divide;
///
/// let device = Device::cpu()?;
/// let vector = |values: [f32; 3]| Array::from_vec(&device, &[3], values.to_vec());
/// let mut ratio = vector([0.0; 3])?;
/// divide(&vector([6.0, 1.0, 2.0])?, &vector([3.0, 0.0, 4.0])?, &mut ratio)?;
/// assert_eq!(ratio.to_vec()?, [2.0, 0.0, 0.5]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn divide<R: Scalar<Real = R> + Real>(x: &Array<R>, d: &Array<R>, y: &mut Array<R>) -> Result<()> {
    expect_alike("divide", x, y)?;
    expect_alike("divide", x, d)?;
    match x.device().backend() {
        Backend::Cpu(cpu) => cpu::divide(cpu, x.cpu(), d.cpu(), y.cpu_mut()),
        Backend::Cuda(cuda) => cuda::divide(cuda, x, d, y)?,
    }
    Ok(())
}

/// x ← max(x, 0) for real numbers. Errors: of the device.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::cut_negative;
///
/// let mut x = Array::from_vec(&Device::cpu()?, &[2], vec![-1.0f32, 2.0])?;
/// cut_negative(&mut x)?;
/// assert_eq!(x.to_vec()?, [0.0, 2.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn cut_negative<R: Scalar<Real = R> + Real>(x: &mut Array<R>) -> Result<()> {
    let device = x.device().clone();
    match device.backend() {
        Backend::Cpu(cpu) => cpu::cut_negative(cpu, x.cpu_mut()),
        Backend::Cuda(cuda) => cuda::cut_negative(cuda, x)?,
    }
    Ok(())
}

/// One step of conjugate gradients in one pass: x ← x + αp, r ← r − αq. Returns ‖r‖² with the bits of
/// [`norm_squared`].
///
/// Errors: different shapes or devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::cg_update;
///
/// let device = Device::cpu()?;
/// let vector = |values: [f32; 2]| Array::from_vec(&device, &[2], values.map(C32::from).to_vec());
/// let (p, q, mut x, mut r) = (vector([1.0, 2.0])?, vector([1.0, 1.0])?, vector([0.0, 0.0])?, vector([2.0, 5.0])?);
/// assert_eq!(cg_update(2.0, &p, &q, &mut x, &mut r)?, 9.0); // ‖r‖²
/// assert_eq!((x.to_vec()?, r.to_vec()?), (vector([2.0, 4.0])?.to_vec()?, vector([0.0, 3.0])?.to_vec()?));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn cg_update<S: Scalar>(
    alpha: f64,
    p: &Array<S>,
    q: &Array<S>,
    x: &mut Array<S>,
    r: &mut Array<S>,
) -> Result<f64> {
    expect_alike("cg_update", p, q)?;
    expect_alike("cg_update", p, x)?;
    expect_alike("cg_update", p, r)?;
    match p.device().backend() {
        Backend::Cpu(cpu) => Ok(cpu::cg_update(
            cpu,
            <S::Real as Real>::from_f64(alpha),
            p.cpu(),
            q.cpu(),
            x.cpu_mut(),
            r.cpu_mut(),
        )),
        Backend::Cuda(cuda) => cuda::cg_update(cuda, <S::Real as Real>::from_f64(alpha), p, q, x, r),
    }
}

/// Copies `len` consecutive elements (C order) of `from` starting at `from_at` to `to` starting at `to_at`.
///
/// Errors: a range outside its array, or different devices.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::copy_part;
///
/// let device = Device::cpu()?;
/// let from = Array::from_vec(&device, &[4], vec![1, 2, 3, 4])?;
/// let mut to = Array::from_vec(&device, &[3], vec![0; 3])?;
/// copy_part(&from, 2, &mut to, 1, 2)?;
/// assert_eq!(to.to_vec()?, [0, 3, 4]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn copy_part<T: Element>(
    from: &Array<T>,
    from_at: usize,
    to: &mut Array<T>,
    to_at: usize,
    len: usize,
) -> Result<()> {
    let outside = |what: &str, start: usize, size: usize| {
        Error::value(
            format!("copy_part: {what}"),
            format!("{len} of {size} elements"),
            format!("start {start}"),
        )
    };
    expect_device("copy_part", from.device(), to)?;
    let size = to.len();
    match from.device().backend() {
        Backend::Cpu(cpu) => {
            let source = from_at
                .checked_add(len)
                .and_then(|end| from.cpu().get(from_at..end))
                .ok_or_else(|| outside("source", from_at, from.len()))?;
            let target = to_at
                .checked_add(len)
                .and_then(|end| to.cpu_mut().get_mut(to_at..end))
                .ok_or_else(|| outside("target", to_at, size))?;
            cpu::copy(cpu, source, target);
        }
        Backend::Cuda(_) => to.copy_range(to_at, from, from_at, len)?,
    }
    Ok(())
}

/// Copies a box of `extent` elements from position `from_start` in `from` to position `to_start` in `to`. The
/// arrays have 1 to 4 axes.
///
/// Errors: other ranks, a box outside its array, different devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::copy_box;
///
/// let device = Device::cpu()?;
/// let image = Array::from_vec(&device, &[3, 3], (0..9).map(|i| C32::from(i as f32)).collect())?;
/// let mut cut = Array::zeros(&device, &[2, 2])?;
/// copy_box(&image, &[1, 1], &mut cut, &[0, 0], &[2, 2])?; // the lower right corner
/// assert_eq!(cut.to_vec()?, [4.0, 5.0, 7.0, 8.0].map(C32::from));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn copy_box<S: Scalar>(
    from: &Array<S>,
    from_start: &[usize],
    to: &mut Array<S>,
    to_start: &[usize],
    extent: &[usize],
) -> Result<()> {
    expect_device("copy of a box", from.device(), to)?;
    let source = Side::new(from.shape(), from_start, extent)?;
    let target = Side::new(to.shape(), to_start, extent)?;
    let mut size = [1; 4];
    size[4 - extent.len()..].copy_from_slice(extent);
    if size.contains(&0) {
        return Ok(());
    }
    match from.device().backend() {
        Backend::Cpu(_) => {
            let (values, out) = (from.cpu(), to.cpu_mut());
            for row in 0..size[0] * size[1] * size[2] {
                let index = [row / (size[1] * size[2]), row / size[2] % size[1], row % size[2]];
                out[target.at(index)..][..size[3]].copy_from_slice(&values[source.at(index)..][..size[3]]);
            }
            Ok(())
        }
        Backend::Cuda(cuda) => cuda::copy_box(cuda, from, source, to, target, size),
    }
}

/// Where a box lies in an array.
#[derive(Debug, Clone, Copy)]
struct Side {
    first: usize,
    /// Strides of all axes but the last, which is packed.
    strides: [usize; 3],
}

impl Side {
    fn new(shape: &[usize], start: &[usize], extent: &[usize]) -> Result<Self> {
        let rank = extent.len();
        let inside =
            |axis: usize| start[axis].checked_add(extent[axis]).is_some_and(|end| end <= shape[axis]);
        if !(1..=4).contains(&rank) || shape.len() != rank || start.len() != rank || !(0..rank).all(inside) {
            return Err(Error::Shape {
                what: "copy of a box".into(),
                expected: format!("room for {} from {} on", format_shape(extent), format_shape(start)),
                found: format_shape(shape),
            });
        }
        let (mut first, mut stride, mut strides) = (0, 1, [0; 4]);
        for axis in (0..rank).rev() {
            strides[4 - rank + axis] = stride;
            first += start[axis] * stride;
            stride *= shape[axis];
        }
        Ok(Self { first, strides: [strides[0], strides[1], strides[2]] })
    }

    fn at(&self, index: [usize; 3]) -> usize {
        self.first + index.iter().zip(self.strides).map(|(i, stride)| i * stride).sum::<usize>()
    }
}

/// y\[i\] ← x\[places\[i\]\], and 0 for places beyond the end of x: samples of part of a trajectory.
///
/// Errors: places and `y` of different lengths, different devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::gather;
///
/// let device = Device::cpu()?;
/// let x = Array::from_vec(&device, &[1, 3], vec![C32::ONE, C32::I, C32::from(2.0)])?;
/// let places = Array::from_vec(&device, &[3], vec![2, 0, 7])?;
/// let mut y = Array::zeros(&device, &[3])?;
/// gather(&x, &places, &mut y)?;
/// assert_eq!(y.to_vec()?, [C32::from(2.0), C32::ONE, C32::ZERO]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn gather<S: Scalar>(x: &Array<S>, places: &Array<u32>, y: &mut Array<S>) -> Result<()> {
    expect_device("gather", x.device(), y)?;
    expect_device("gather", places.device(), y)?;
    expect_shape("gather", &[places.len()], &[y.len()])?;
    match x.device().backend() {
        Backend::Cpu(cpu) => cpu::gather(cpu, x.cpu(), places.cpu(), y.cpu_mut()),
        Backend::Cuda(cuda) => cuda::gather(cuda, x, places, y)?,
    }
    Ok(())
}

/// Fails with [`Error::NotFinite`] at the first NaN or infinity of `x`. The error calls the array `what`.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::expect_finite;
///
/// let x = Array::from_vec(&Device::cpu()?, &[2], vec![C32::ONE, C32::from(f32::NAN)])?;
/// assert!(expect_finite("samples", &x).is_err());
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn expect_finite<S: Scalar>(what: &str, x: &Array<S>) -> Result<()> {
    let Some(index) = first_not_finite(x)? else { return Ok(()) };
    let mut value = Array::zeros(x.device(), &[1])?;
    value.copy_range(0, x, index, 1)?;
    Err(Error::NotFinite { what: what.to_owned(), index, found: value.to_vec()?[0].to_string() })
}

/// The index of the first NaN or infinity of `x`, if there is one.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::first_not_finite;
///
/// let x = Array::from_vec(&Device::cpu()?, &[3], vec![0.0f32, f32::INFINITY, f32::NAN])?;
/// assert_eq!(first_not_finite(&x)?, Some(1));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn first_not_finite<S: Scalar>(x: &Array<S>) -> Result<Option<usize>> {
    match x.device().backend() {
        Backend::Cpu(cpu) => Ok(cpu::first_not_finite(cpu, x.cpu())),
        Backend::Cuda(cuda) => cuda::first_not_finite(cuda, x),
    }
}

#[cfg(test)]
mod tests;
