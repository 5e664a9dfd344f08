//! Order statistics of magnitudes: the brightness of an image that few voxels exceed.

mod cuda;
mod reference;
mod variants;

use rayon::prelude::*;
use rayspin_core::{Error, Result};
use rayspin_device::{Array, Backend};

pub(crate) use cuda::builds;
pub use reference::magnitude as reference_magnitude;
pub use variants::{Implementation, Problem, variants};

use crate::vector::Scalar;

fn on_cpu<S: Scalar>(x: &Array<S>, rank: usize) -> Result<f64> {
    let values = x.read()?;
    let mut sizes: Vec<f64> = x.device().cpu_side().run(|| {
        let squares = values.par_iter().with_min_len(4096);
        // The sign of a NaN would put it first.
        squares.map(|v| v.widen().norm_sqr().abs()).collect()
    });
    Ok(*sizes.select_nth_unstable_by(rank, f64::total_cmp).1)
}

/// The magnitude |x| of the element with exactly `rank` elements before it in the order of magnitudes, NaN
/// last.
///
/// The squares |x|² are formed in f64. For f32 numbers they take one rounding, so the CPU and a GPU find the
/// same bits. For f64 numbers they must not overflow.
///
/// Errors: no element of that rank.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::select::magnitude;
///
/// let values = vec![C32::new(3.0, 4.0), C32::ONE, C32::new(0.0, -2.0)];
/// let values = Array::from_vec(&Device::cpu()?, &[3], values)?;
/// assert_eq!(magnitude(&values, 1)?, 2.0); // the median of 1, 2, 5
/// assert_eq!(magnitude(&values, 2)?, 5.0);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn magnitude<S: Scalar>(x: &Array<S>, rank: usize) -> Result<f64> {
    if rank >= x.len() {
        return Err(Error::value("rank of a magnitude", format!("below {}", x.len()), rank));
    }
    let square = match x.device().backend() {
        Backend::Cpu(_) => on_cpu(x, rank),
        Backend::Cuda(cuda) => cuda::digits(cuda, x, rank),
    };
    Ok(square?.sqrt())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "helpers of tests")]

    use num_complex::Complex;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rayspin_core::{C32, C64, Real};
    use rayspin_emu::Coverage;

    use super::*;

    fn agree<R: Real>(x: &[C32], ranks: &[usize], coverage: &mut Coverage) {
        let wide: Vec<C64> = x.iter().map(|v| C64::new(v.re.into(), v.im.into())).collect();
        let of = |v: f32| <R as Real>::from_f64(v.into());
        let values: Vec<Complex<R>> = x.iter().map(|v| Complex::new(of(v.re), of(v.im))).collect();
        for device in rayspin_emu::devices().unwrap() {
            let array = Array::from_slice(&device, &[x.len()], &values).unwrap();
            for &rank in ranks {
                let wanted = reference::magnitude(&wide, rank);
                for variant in variants::<R>().iter().filter(|v| v.backend == device.kind()) {
                    let found = (variant.implementation)(&array, rank).unwrap().sqrt();
                    let error = (found - wanted).abs() / wanted.max(f64::MIN_POSITIVE);
                    coverage.compared(&device, variant.name, error, variant.tolerance);
                    assert!(
                        error <= variant.tolerance,
                        "{}, rank {rank} of {}: {found} {wanted}",
                        variant.name,
                        x.len()
                    );
                }
                assert!((magnitude(&array, rank).unwrap() - wanted).abs() <= 4.0 * f64::EPSILON * wanted);
            }
            assert!(magnitude(&array, x.len()).is_err());
            let rows = variants::<R>();
            let rows = rows.iter().filter(|v| v.backend == device.kind()).map(|v| v.name);
            assert_eq!(coverage.left_out(&device, rows), [""; 0]);
        }
    }

    #[test]
    fn every_variant_finds_the_number_of_that_rank() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut coverage = Coverage::default();
        for len in [1, 2, 3, 257, 1031, 5000] {
            let mut one = || rng.random_range(-1.0f32..1.0).powi(5);
            let x: Vec<C32> = (0..len).map(|_| C32::new(one(), one())).collect();
            agree::<f32>(&x, &[0, len / 2, len - 1], &mut coverage);
            agree::<f64>(&x, &[len * 99 / 100], &mut coverage);
        }
        // Many alike, zeros of both signs, numbers whose squares are below and above what f32 holds.
        let x: Vec<C32> = (0..600)
            .map(|i| match i % 4 {
                0 => C32::new(0.0, -0.0),
                1 => C32::new(3.0, -4.0),
                2 => C32::new(1e-30, 0.0),
                _ => C32::new(-1e30, 1e30),
            })
            .collect();
        agree::<f32>(&x, &[0, 149, 150, 299, 300, 449, 450, 599], &mut coverage);
        println!("selection:\n{coverage}");
    }

    #[test]
    fn what_is_no_number_comes_last_whatever_its_sign() {
        let x = [
            C32::new(-f32::NAN, 1.0),
            C32::new(2.0, 0.0),
            C32::new(0.0, f32::NAN),
            C32::new(f32::INFINITY, 1.0),
        ];
        for device in rayspin_emu::devices().unwrap() {
            let array = Array::from_slice(&device, &[4], &x).unwrap();
            let found: Vec<f64> = (0..4).map(|rank| magnitude(&array, rank).unwrap()).collect();
            assert_eq!(found[..2], [2.0, f64::INFINITY]);
            assert!(found[2..].iter().all(|v| v.is_nan()), "{found:?}");
            let nothing = Array::<C32>::from_slice(&device, &[0], &[]).unwrap();
            assert!(magnitude(&nothing, 0).is_err());
        }
    }
}
