//! Linear maps of coils: they whiten noise and compress many coils to few, at every sample or at each
//! position along the readout. Also the covariances from which such maps are found.
//!
//! Pruessmann, Weiger, Börnert, Boesiger, *Advances in sensitivity encoding with arbitrary k-space
//! trajectories*, Magn Reson Med 46:638, 2001 (whitening); Huang et al., Magn Reson Imaging 26:133, 2008, and
//! Zhang et al., Magn Reson Med 69:571, 2013 (compression).

mod cpu;
mod cuda;
mod ladder;
pub mod reference;
#[cfg(test)]
mod tests;
mod variants;

pub(crate) use cuda::builds;
pub(crate) use ladder::ladder;
pub use variants::{Implementation, Problem, variants};

use std::ops::Range;

use num_complex::Complex;
use rayspin_core::{C32, C64, Error, Real, Result, expect_shape, format_shape};
use rayspin_device::{Array, Backend};

use crate::vector::expect_device;

/// The sizes of a problem: matrices `[kept, coil, position]`, samples `[coil, point]`.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a, R: Real> {
    matrices: &'a [Complex<R>],
    samples: &'a [Complex<R>],
    coils: usize,
    positions: usize,
}

/// y'_i(s) = Σ_j M_{ij}(s mod n) y_j(s) for the coils i of `rows`. `matrices` is `[kept, coil, n]`, and
/// `samples` is `[coil, …]` with P points per coil. n divides P. `out` is `[rows, …]`; the call writes the
/// points from `first` to `first` + P of each row.
///
/// Errors: shapes that do not fit, rows or points out of range, different devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::coil_mixing::mix;
///
/// let device = Device::cpu()?;
/// // One virtual coil y'(s) = ½ y_0(s) + i y_1(s), the same at all samples.
/// let matrix = Array::from_vec(&device, &[1, 2, 1], vec![C32::new(0.5, 0.0), C32::I])?; // [kept, coil, position]
/// let samples = [2.0, 4.0, 1.0, 3.0].map(C32::from).to_vec();
/// let samples = Array::from_vec(&device, &[2, 2], samples)?; // [coil, sample]
/// let mut mixed = Array::zeros(&device, &[1, 2])?;
/// mix(&matrix, 0..1, &samples, &mut mixed, 0)?;
/// assert_eq!(mixed.to_vec()?, [C32::new(1.0, 1.0), C32::new(2.0, 3.0)]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn mix<R: Real>(
    matrices: &Array<Complex<R>>,
    rows: Range<usize>,
    samples: &Array<Complex<R>>,
    out: &mut Array<Complex<R>>,
    first: usize,
) -> Result<()> {
    let &[kept, coils, positions] = matrices.shape() else {
        return Err(Error::Shape {
            what: "matrices of coils".into(),
            expected: "[kept, coil, position]".into(),
            found: format_shape(matrices.shape()),
        });
    };
    if rows.start > rows.end || rows.end > kept {
        return Err(Error::value("coils made", format!("a range within 0..{kept}"), format!("{rows:?}")));
    }
    let points = points_of(samples, coils, positions)?;
    let stride = out.len() / rows.len().max(1);
    if out.shape().first() != Some(&rows.len()) {
        return Err(Error::value("mixed coils", format!("{} rows", rows.len()), format_shape(out.shape())));
    }
    if !rows.is_empty() && first.checked_add(points).is_none_or(|end| end > stride) {
        let expected = format!("{points} from {first} on within {stride}");
        return Err(Error::value("points of mixed coils", expected, format_shape(out.shape())));
    }
    expect_device("mix", samples.device(), matrices)?;
    expect_device("mix", samples.device(), out)?;
    if rows.is_empty() || points == 0 {
        return Ok(());
    }
    match samples.device().backend() {
        Backend::Cpu(cpu) => {
            let of_row = coils * positions;
            let matrices = &matrices.cpu()[rows.start * of_row..rows.end * of_row];
            let input = Input { matrices, samples: samples.cpu(), coils, positions };
            let parts = out.cpu_mut().chunks_mut(stride).map(|row| &mut row[first..first + points]).collect();
            cpu::blocks(cpu, &input, parts);
            Ok(())
        }
        Backend::Cuda(cuda) => cuda::mix(cuda, matrices, &rows, samples, out, first),
    }
}

/// C\[p, i, j\] = Σ_l y_i(l, p) conj(y_j(l, p)), optionally added to the values of `out`. `samples` is
/// `[coil, …]`, and its last axis holds the n positions; `out` is `[n, coil, coil]`. Sums are in double
/// precision and the same from run to run.
///
/// Errors: shapes that do not fit, different devices.
///
/// ```
/// use rayspin_core::{C32, C64};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::coil_mixing::covariances;
///
/// let device = Device::cpu()?;
/// let samples = [2.0, 4.0, 1.0, 3.0].map(C32::from).to_vec();
/// let samples = Array::from_vec(&device, &[2, 2, 1], samples)?; // [coil, line, position]
/// let mut found = Array::zeros(&device, &[1, 2, 2])?; // [position, coil, coil]
/// covariances(&samples, &mut found, false)?;
/// assert_eq!(found.to_vec()?, [20.0, 14.0, 14.0, 10.0].map(C64::from));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn covariances(samples: &Array<C32>, out: &mut Array<C64>, add: bool) -> Result<()> {
    let (Some(&coils), Some(&positions)) = (samples.shape().first(), samples.shape().last()) else {
        return Err(Error::shape("samples of coils", &[1, 1], samples.shape()));
    };
    points_of(samples, coils, positions)?;
    expect_shape("covariances of coils", &[positions, coils, coils], out.shape())?;
    if !samples.device().same_as(out.device()) {
        return Err(Error::value(
            "covariances: device",
            samples.device().describe(),
            out.device().describe(),
        ));
    }
    if out.is_empty() {
        return Ok(());
    }
    match samples.device().backend() {
        Backend::Cpu(cpu) => cpu::covariances(cpu, samples.cpu(), coils, positions, out.cpu_mut(), add),
        Backend::Cuda(cuda) => cuda::covariances(cuda, samples, coils, positions, out, add)?,
    }
    Ok(())
}

/// The number of points per coil. Errors: no coils, or a number of points that is no multiple of the
/// positions.
fn points_of<R: Real>(samples: &Array<Complex<R>>, coils: usize, positions: usize) -> Result<usize> {
    if samples.shape().first() != Some(&coils) || coils == 0 || positions == 0 {
        let expected = format!("[{coils}, …] of at least one coil and position");
        return Err(Error::Shape {
            what: "samples of coils".into(),
            expected,
            found: format_shape(samples.shape()),
        });
    }
    let points = samples.len() / coils;
    if !points.is_multiple_of(positions) {
        return Err(Error::value("points of a coil", format!("a multiple of {positions} positions"), points));
    }
    Ok(points)
}
