//! Coil sensitivities applied to images: from one image to coil images and back.
//!
//! Pruessmann, Weiger, Scheidegger, Boesiger, *SENSE: sensitivity encoding for fast MRI*, Magn Reson Med
//! 42:952, 1999; Roemer et al., *The NMR phased array*, Magn Reson Med 16:192, 1990 (root sum of squares).

mod cpu;
mod cuda;
mod ladder;
pub mod reference;
mod variants;

pub(crate) use cuda::builds;
pub(crate) use ladder::ladder;
pub use variants::{Implementation, Operation, Problem, variants};

use std::ops::Range;

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Error, Real, Result, expect_shape, format_shape};
use rayspin_device::{Array, Backend};

use crate::vector::expect_device;

/// Splits the shape `[coil, image…]` into coils and the image's shape. Errors call the array `what`.
fn split<'a>(what: &str, shape: &'a [usize]) -> Result<(usize, &'a [usize])> {
    shape.split_first().map(|(&coils, image)| (coils, image)).ok_or_else(|| Error::Shape {
        what: what.to_owned(),
        expected: "[coil, image…]".into(),
        found: format_shape(shape),
    })
}

/// Checks `maps [coil, image…]`, the coils taken of them, their `images [taken, image…]`, or rows of more
/// images, and `image [image…]`; returns the stretches of the maps and of the images.
fn check<R: Real>(
    what: &str,
    maps: &Array<Complex<R>>,
    coils: &Range<usize>,
    images: &Array<Complex<R>>,
    rows: Option<&Range<usize>>,
    image: &Array<Complex<R>>,
) -> Result<[Range<usize>; 2]> {
    let (len, shape) = split(&format!("{what}: maps"), maps.shape())?;
    let within = |items: &str, range: &Range<usize>, len: usize| {
        if range.start <= range.end && range.end <= len {
            return Ok(());
        }
        let expected = format!("a range within 0..{len}");
        Err(Error::value(format!("{what}: {items}"), expected, format!("{range:?}")))
    };
    within("coils", coils, len)?;
    expect_shape(&format!("{what}: image"), shape, image.shape())?;
    let count = rows.and_then(|_| images.shape().first().copied()).unwrap_or(coils.len());
    expect_shape(&format!("{what}: coil images"), &[&[count], shape].concat(), images.shape())?;
    let rows = rows.cloned().unwrap_or(0..count);
    within("rows of coil images", &rows, count)?;
    expect_shape(&format!("{what}: rows of coil images"), &[coils.len()], &[rows.len()])?;
    expect_device(what, maps.device(), images)?;
    expect_device(what, maps.device(), image)?;
    Ok([coils, &rows].map(|range| range.start * image.len()..range.end * image.len()))
}

fn all_coils<R: Real>(maps: &Array<Complex<R>>) -> Range<usize> {
    0..maps.shape().first().copied().unwrap_or(0)
}

/// y_j(x) = c_j(x) ρ(x): `maps [coil, image…]`, `image [image…]`, `out [coil, image…]`.
///
/// Errors: shapes that do not fit, or different devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::sensitivity::expand;
///
/// let device = Device::cpu()?;
/// let maps = Array::from_vec(&device, &[2, 2], [1.0, 0.5, 0.0, 0.5].map(C32::from).to_vec())?; // [coil, x]
/// let image = Array::from_vec(&device, &[2], [3.0, 4.0].map(C32::from).to_vec())?;
/// let mut coils = Array::zeros(&device, &[2, 2])?;
/// expand(&maps, &image, &mut coils)?;
/// assert_eq!(coils.to_vec()?, [3.0, 2.0, 0.0, 2.0].map(C32::from));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn expand<R: Real>(
    maps: &Array<Complex<R>>,
    image: &Array<Complex<R>>,
    out: &mut Array<Complex<R>>,
) -> Result<()> {
    expand_coils(maps, all_coils(maps), image, out)
}

/// [`expand`] for the coils of a range only: `out [taken, image…]`.
pub fn expand_coils<R: Real>(
    maps: &Array<Complex<R>>,
    coils: Range<usize>,
    image: &Array<Complex<R>>,
    out: &mut Array<Complex<R>>,
) -> Result<()> {
    let [taken, _] = check("expand", maps, &coils, out, None, image)?;
    if taken.is_empty() {
        return Ok(());
    }
    match maps.device().backend() {
        Backend::Cpu(cpu) => (cpu::blocks().expand)(cpu, &maps.cpu()[taken], image.cpu(), out.cpu_mut()),
        Backend::Cuda(cuda) => cuda::expand(cuda, maps, taken, image, out)?,
    }
    Ok(())
}

/// ρ(x) = Σ_j conj(c_j(x)) y_j(x): `maps` and `images` `[coil, image…]`, `out [image…]`. The adjoint of
/// [`expand`].
///
/// Errors: shapes that do not fit, or different devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::sensitivity::{combine, normalise};
///
/// let device = Device::cpu()?;
/// let maps = Array::from_vec(&device, &[2, 1], vec![C32::from(3.0), C32::new(0.0, 4.0)])?; // [coil, x]
/// let coils = Array::from_vec(&device, &[2, 1], vec![C32::from(6.0), C32::new(0.0, 8.0)])?; // of an image 2
/// let mut image = Array::zeros(&device, &[1])?;
/// combine(&maps, &coils, &mut image)?;
/// assert_eq!(image.to_vec()?, [C32::from(50.0)]); // 3·6 + 4·8
/// normalise(&maps, &mut image)?; // over 3² + 4²
/// assert_eq!(image.to_vec()?, [C32::from(2.0)]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn combine<R: Real>(
    maps: &Array<Complex<R>>,
    images: &Array<Complex<R>>,
    out: &mut Array<Complex<R>>,
) -> Result<()> {
    combine_inner(maps, all_coils(maps), images, None, out, false)
}

/// ρ(x) ← ρ(x) + Σ_j conj(c_j(x)) y_j(x) over the coils of a range: `images [taken, image…]`.
pub fn combine_coils_add<R: Real>(
    maps: &Array<Complex<R>>,
    coils: Range<usize>,
    images: &Array<Complex<R>>,
    out: &mut Array<Complex<R>>,
) -> Result<()> {
    combine_inner(maps, coils, images, None, out, true)
}

/// [`combine_coils_add`] with the coils' images at the `rows` of `images [row, image…]`.
pub fn combine_rows_add<R: Real>(
    maps: &Array<Complex<R>>,
    coils: Range<usize>,
    images: &Array<Complex<R>>,
    rows: Range<usize>,
    out: &mut Array<Complex<R>>,
) -> Result<()> {
    combine_inner(maps, coils, images, Some(rows), out, true)
}

fn combine_inner<R: Real>(
    maps: &Array<Complex<R>>,
    coils: Range<usize>,
    images: &Array<Complex<R>>,
    rows: Option<Range<usize>>,
    out: &mut Array<Complex<R>>,
    add: bool,
) -> Result<()> {
    let [taken, from] = check("combine", maps, &coils, images, rows.as_ref(), out)?;
    if out.is_empty() {
        return Ok(());
    }
    match maps.device().backend() {
        Backend::Cpu(cpu) => {
            (cpu::blocks().combine)(cpu, &maps.cpu()[taken], &images.cpu()[from], out.cpu_mut(), add);
        }
        Backend::Cuda(cuda) => {
            let (maps, images) = (cuda::stretch(maps, &taken)?, cuda::stretch(images, &from)?);
            cuda::combine(cuda, maps, images, out, add)?;
        }
    }
    Ok(())
}

/// Σ_j |y_j(x)|² of `[coil, image…]`, summed in f64: of maps, the diagonal of [`combine`] ∘ [`expand`].
///
/// Errors: an array without axes, or memory.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::sensitivity::sum_of_squares;
///
/// let maps = vec![C32::from(3.0), C32::new(0.0, 4.0)];
/// let maps = Array::from_vec(&Device::cpu()?, &[2, 1], maps)?; // [coil, x]
/// assert_eq!(sum_of_squares(&maps)?.to_vec()?, [25.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn sum_of_squares<R: Real>(images: &Array<Complex<R>>) -> Result<Array<R>> {
    squares(images, false)
}

/// √(Σ_j |y_j(x)|²) of `[coil, image…]`, summed in f64: combines coil images without maps.
///
/// Errors: an array without axes, or memory.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::sensitivity::root_sum_of_squares;
///
/// let coils = vec![C32::from(3.0), C32::ZERO, C32::new(0.0, 4.0), C32::ONE];
/// let coils = Array::from_vec(&Device::cpu()?, &[2, 2], coils)?; // [coil, x]
/// assert_eq!(root_sum_of_squares(&coils)?.to_vec()?, [5.0, 1.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn root_sum_of_squares<R: Real>(images: &Array<Complex<R>>) -> Result<Array<R>> {
    squares(images, true)
}

/// Adds [`sum_of_squares`] to `sum`, `[image…]`.
///
/// Errors: an array without axes, other shapes or devices, or memory.
pub fn sum_of_squares_add<R: Real>(images: &Array<Complex<R>>, sum: &mut Array<R>) -> Result<()> {
    let (_, shape) = split("coil images", images.shape())?;
    expect_shape("sum of squares", shape, sum.shape())?;
    crate::vector::expect_device("sum of squares", images.device(), sum)?;
    if sum.is_empty() {
        return Ok(());
    }
    match images.device().backend() {
        Backend::Cpu(cpu) => {
            let here = sum_of_squares(images)?;
            let (sum, here) = (sum.cpu_mut(), here.cpu());
            cpu.run(|| {
                let both = sum.par_iter_mut().zip(here).with_min_len(4096);
                both.for_each(|(sum, here)| *sum += *here);
            });
            Ok(())
        }
        Backend::Cuda(cuda) => cuda::sum_of_squares(cuda, images, sum, false, true),
    }
}

/// ρ ← ρ / Σ_j |c_j|² for maps `[coil, image…]`, and 0 where no coil has sensitivity. It turns the result of
/// [`combine`] into an image.
///
/// Errors: other shapes or devices, or memory.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::sensitivity::normalise;
///
/// let device = Device::cpu()?;
/// let maps = Array::from_vec(&device, &[1, 2], [2.0, 0.0].map(C32::from).to_vec())?; // [coil, x]
/// let mut image = Array::from_vec(&device, &[2], vec![C32::from(8.0); 2])?;
/// normalise(&maps, &mut image)?;
/// assert_eq!(image.to_vec()?, [2.0, 0.0].map(C32::from)); // no coil sees the second voxel
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn normalise<R: Real>(maps: &Array<Complex<R>>, image: &mut Array<Complex<R>>) -> Result<()> {
    let (_, shape) = split("sensitivity maps", maps.shape())?;
    expect_shape("combined image", shape, image.shape())?;
    crate::vector::expect_device("combined image", maps.device(), image)?;
    if image.is_empty() {
        return Ok(());
    }
    match maps.device().backend() {
        Backend::Cpu(_) => divide(&sum_of_squares(maps)?, image),
        Backend::Cuda(cuda) => cuda::normalise(cuda, maps, image),
    }
}

/// ρ ← ρ / w, and 0 where w is not positive: [`normalise`] with a given Σ_j |c_j|², `[image…]`.
///
/// Errors: other shapes or devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::sensitivity::divide;
///
/// let device = Device::cpu()?;
/// let weight = Array::from_vec(&device, &[2], vec![4.0f32, 0.0])?;
/// let mut image = Array::from_vec(&device, &[2], vec![C32::from(8.0); 2])?;
/// divide(&weight, &mut image)?;
/// assert_eq!(image.to_vec()?, [2.0, 0.0].map(C32::from));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn divide<R: Real>(weight: &Array<R>, image: &mut Array<Complex<R>>) -> Result<()> {
    expect_shape("combined image", weight.shape(), image.shape())?;
    crate::vector::expect_device("combined image", weight.device(), image)?;
    if image.is_empty() {
        return Ok(());
    }
    match weight.device().backend() {
        Backend::Cpu(cpu) => {
            let zero = Complex::new(R::zero(), R::zero());
            let (image, weight) = (image.cpu_mut(), weight.cpu());
            cpu.run(|| {
                let both = image.par_iter_mut().zip(weight).with_min_len(4096);
                both.for_each(|(v, &w)| *v = if w > R::zero() { *v / w } else { zero });
            });
            Ok(())
        }
        Backend::Cuda(cuda) => cuda::divide(cuda, weight, image),
    }
}

fn squares<R: Real>(images: &Array<Complex<R>>, root: bool) -> Result<Array<R>> {
    let (_, shape) = split("coil images", images.shape())?;
    let mut out = Array::zeros(images.device(), shape)?;
    if !out.is_empty() {
        match images.device().backend() {
            Backend::Cpu(cpu) => (cpu::blocks().sum_of_squares)(cpu, images.cpu(), out.cpu_mut(), root),
            Backend::Cuda(cuda) => cuda::sum_of_squares(cuda, images, &mut out, root, false)?,
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
