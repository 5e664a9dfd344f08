//! Real weights of a grid: products of one number per axis, and sampling masks.

mod cuda;
pub mod reference;

pub(crate) use cuda::builds;

use std::borrow::Cow;

use ndarray::ArrayViewD;
use rayon::prelude::*;
use rayspin_core::{Real, Result, expect_shape};
use rayspin_device::{Array, Backend, Device};

/// w\[x\] = Π_a p_a\[x_a\] with one profile p_a for each axis, and 0 where `known` is false. The lengths of
/// the profiles are the shape of the grid.
///
/// Products are formed in f64 except for the product with the last axis. The result has the same bits on
/// every device.
///
/// Errors: `known` of another shape, or memory.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_kernels::window::separable;
///
/// let window = separable::<f32>(&Device::cpu()?, &[vec![1.0, 0.5], vec![1.0, 2.0, 3.0]], None)?;
/// assert_eq!(window.shape(), [2, 3]);
/// assert_eq!(window.to_vec()?, [1.0, 2.0, 3.0, 0.5, 1.0, 1.5]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn separable<R: Real>(
    device: &Device,
    profiles: &[Vec<f64>],
    known: Option<ArrayViewD<'_, bool>>,
) -> Result<Array<R>> {
    let shape: Vec<usize> = profiles.iter().map(Vec::len).collect();
    if let Some(known) = &known {
        expect_shape("sampled positions", &shape, known.shape())?;
    }
    let mut out = Array::zeros(device, &shape)?;
    if out.is_empty() {
        return Ok(out);
    }
    let alone = vec![1.0];
    let (last, outer) = profiles.split_last().unwrap_or((&alone, &[]));
    let rows = outer.iter().fold(vec![1.0], |rows: Vec<f64>, profile| {
        rows.iter().flat_map(|row| profile.iter().map(move |p| row * p)).collect()
    });
    let [rows, last] =
        [&rows, last].map(|values| values.iter().map(|&v| <R as Real>::from_f64(v)).collect::<Vec<R>>());
    let known = known.as_ref().map(bytes);
    match device.backend() {
        Backend::Cpu(cpu) => {
            let out = out.cpu_mut();
            cpu.run(|| {
                let each = out.par_chunks_exact_mut(last.len()).enumerate().with_min_len(16);
                each.for_each(|(row, out)| {
                    let of_row = rows[row];
                    out.iter_mut().zip(&last).for_each(|(out, &p)| *out = of_row * p);
                    if let Some(known) = &known {
                        let known = &known[row * last.len()..];
                        out.iter_mut()
                            .zip(known)
                            .filter(|(_, known)| **known == 0)
                            .for_each(|(out, _)| *out = R::zero());
                    }
                });
            });
        }
        Backend::Cuda(cuda) => cuda::separable(cuda, &rows, &last, known.as_deref(), &mut out)?,
    }
    Ok(out)
}

/// 1 where `known` is true, 0 elsewhere. A GPU gets one byte for each element.
///
/// Errors: memory.
///
/// ```
/// use ndarray::array;
/// use rayspin_device::Device;
/// use rayspin_kernels::window::indicator;
///
/// let known = array![true, false, true].into_dyn();
/// assert_eq!(indicator::<f32>(&Device::cpu()?, known.view())?.to_vec()?, [1.0, 0.0, 1.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn indicator<R: Real>(device: &Device, known: ArrayViewD<'_, bool>) -> Result<Array<R>> {
    let mut out = Array::zeros(device, known.shape())?;
    if out.is_empty() {
        return Ok(out);
    }
    let known = bytes(&known);
    match device.backend() {
        Backend::Cpu(cpu) => {
            let values = out.cpu_mut().par_iter_mut().zip(&*known).with_min_len(4096);
            cpu.run(|| values.for_each(|(out, &known)| *out = if known == 0 { R::zero() } else { R::one() }));
        }
        Backend::Cuda(cuda) => cuda::indicator(cuda, &known, &mut out)?,
    }
    Ok(out)
}

/// The values in C order. Copies them only if they are in another order.
fn bytes<'a>(known: &'a ArrayViewD<'_, bool>) -> Cow<'a, [u8]> {
    match known.as_slice() {
        Some(known) => Cow::Borrowed(bytemuck::cast_slice(known)),
        None => known.iter().map(|&known| u8::from(known)).collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use ndarray::{ArrayD, IxDyn};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn agree<R: Real>(shape: &[usize]) {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let profiles: Vec<Vec<f64>> =
            shape.iter().map(|&n| (0..n).map(|_| rng.random_range(-1.0..2.0)).collect()).collect();
        let known = ArrayD::from_shape_simple_fn(IxDyn(shape), || rng.random_range(0..3) > 0);
        let all = ArrayD::from_elem(IxDyn(shape), true);
        for device in rayspin_emu::devices().unwrap() {
            let near = |found: Array<R>, wanted: Vec<f64>| {
                assert_eq!(found.shape(), shape);
                for (found, wanted) in found.to_vec().unwrap().iter().zip(&wanted) {
                    let off = (Real::to_f64(*found) - wanted).abs();
                    assert!(
                        off <= 2.0 * Real::to_f64(R::EPSILON) * wanted.abs(),
                        "{shape:?}: {found:?} {wanted}"
                    );
                }
            };
            let flat = |known: &ArrayD<bool>| known.iter().copied().collect::<Vec<_>>();
            near(separable(&device, &profiles, None).unwrap(), reference::separable(&profiles, &flat(&all)));
            let masked = separable(&device, &profiles, Some(known.view())).unwrap();
            near(masked, reference::separable(&profiles, &flat(&known)));
            let ones = flat(&known).iter().map(|&known| f64::from(u8::from(known))).collect();
            near(indicator(&device, known.view()).unwrap(), ones);
            // A view whose memory is in another order.
            let turned = known.view().reversed_axes();
            let ones = turned.iter().map(|&known| f64::from(u8::from(known))).collect::<Vec<_>>();
            let found = indicator::<R>(&device, turned).unwrap().to_vec().unwrap();
            assert!(found.iter().map(|v| Real::to_f64(*v)).eq(ones));
            let other = ArrayD::from_elem(IxDyn(&[shape, &[2]].concat()), true);
            assert!(separable::<R>(&device, &profiles, Some(other.view())).is_err());
        }
    }

    #[test]
    fn weights_are_products_over_the_axes() {
        for shape in
            [&[7][..], &[], &[1], &[5, 0], &[40, 33], &[1, 600], &[600, 1], &[6, 5, 7], &[2, 3, 1, 9]]
        {
            agree::<f32>(shape);
            agree::<f64>(shape);
        }
    }
}
