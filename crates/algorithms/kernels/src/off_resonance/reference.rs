//! The formulas in double precision: what a segment does, and the exact encoding that all segments
//! approximate.

use rayspin_core::{C64, Error, Real, Result, Trajectory};

use num_complex::Complex;

/// e^{i2πf(x)τ} y(x) for every image of a batch.
pub fn modulate(field: &[f64], tau: f64, x: &[C64]) -> Vec<C64> {
    x.iter().enumerate().map(|(i, x)| turned(tau * field[i % field.len()]) * x).collect()
}

/// `w[index[m]] x[m]`, or with the weights' conjugates, for every row of a batch.
pub fn weigh(weights: &[C64], index: &[u32], x: &[C64], conjugate: bool) -> Vec<C64> {
    let weight = |m: usize| weights[index[m % index.len()] as usize];
    let factor = |m: usize| if conjugate { weight(m).conj() } else { weight(m) };
    x.iter().enumerate().map(|(m, x)| factor(m) * x).collect()
}

/// d\[b, m\] = Σ_x ρ\[b, x\] e^{−i2π(k_m·x + f(x) t_m)}: `image` is `[batch, matrix..]` flat, the result
/// `[batch, sample]`.
///
/// Errors: a matrix that is not the trajectory's rank, other voxels than the field has, other times than
/// samples.
pub fn forward(
    trajectory: &Trajectory,
    times: &[f64],
    matrix: &[usize],
    field: &[f64],
    image: &[C64],
) -> Result<Vec<C64>> {
    let indices: Vec<usize> = (0..image.len() / field.len().max(1) * trajectory.samples()).collect();
    forward_at(trajectory, times, matrix, field, image, &indices)
}

/// ρ\[b, x\] = Σ_m d\[b, m\] e^{+i2π(k_m·x + f(x) t_m)}, the adjoint of [`forward`].
pub fn adjoint(
    trajectory: &Trajectory,
    times: &[f64],
    matrix: &[usize],
    field: &[f64],
    samples: &[C64],
) -> Result<Vec<C64>> {
    let indices: Vec<usize> = (0..samples.len() / trajectory.samples() * field.len()).collect();
    adjoint_at(trajectory, times, matrix, field, samples, &indices)
}

/// [`forward`] at `indices`, flat into `[batch, sample]`.
pub fn forward_at<R: Real>(
    trajectory: &Trajectory,
    times: &[f64],
    matrix: &[usize],
    field: &[f64],
    image: &[Complex<R>],
    indices: &[usize],
) -> Result<Vec<C64>> {
    check(trajectory, times, matrix, field)?;
    let (voxels, samples) = (field.len(), trajectory.samples());
    check_indices(indices, image.len() / voxels * samples)?;
    let one = |&index: &usize| {
        let (b, m) = (index / samples, index % samples);
        let image = &image[b * voxels..(b + 1) * voxels];
        let terms = image.iter().enumerate();
        terms.map(|(i, v)| double(*v) * phase(trajectory, times, matrix, field, m, i).conj()).sum()
    };
    Ok(indices.iter().map(one).collect())
}

/// [`adjoint`] at `indices`, flat into `[batch, matrix..]`.
pub fn adjoint_at<R: Real>(
    trajectory: &Trajectory,
    times: &[f64],
    matrix: &[usize],
    field: &[f64],
    samples: &[Complex<R>],
    indices: &[usize],
) -> Result<Vec<C64>> {
    check(trajectory, times, matrix, field)?;
    let (voxels, count) = (field.len(), trajectory.samples());
    check_indices(indices, samples.len() / count * voxels)?;
    let one = |&index: &usize| {
        let (b, i) = (index / voxels, index % voxels);
        let d = &samples[b * count..(b + 1) * count];
        let terms = d.iter().enumerate();
        terms.map(|(m, d)| double(*d) * phase(trajectory, times, matrix, field, m, i)).sum()
    };
    Ok(indices.iter().map(one).collect())
}

/// Samples of an image that is 1 at the voxel `from` and else 0.
pub fn column(
    trajectory: &Trajectory,
    times: &[f64],
    matrix: &[usize],
    field: &[f64],
    from: usize,
) -> Result<Vec<C64>> {
    check(trajectory, times, matrix, field)?;
    check_indices(&[from], field.len())?;
    let one = |m: usize| phase(trajectory, times, matrix, field, m, from).conj();
    Ok((0..trajectory.samples()).map(one).collect())
}

/// e^{+i2π(k_m·x_i + f_i t_m)}.
fn phase(trajectory: &Trajectory, times: &[f64], matrix: &[usize], field: &[f64], m: usize, i: usize) -> C64 {
    let (mut rest, mut turns) = (i, field[i] * times[m]);
    // Components are x, y, z and axes z, y, x.
    for (&n, &k) in matrix.iter().rev().zip(trajectory.point(m)) {
        turns += k * ((rest % n) as f64 - (n / 2) as f64) / n as f64;
        rest /= n;
    }
    turned(turns)
}

fn turned(turns: f64) -> C64 {
    C64::cis(std::f64::consts::TAU * (turns - turns.round()))
}

fn double<R: Real>(v: Complex<R>) -> C64 {
    C64::new(Real::to_f64(v.re), Real::to_f64(v.im))
}

fn check(trajectory: &Trajectory, times: &[f64], matrix: &[usize], field: &[f64]) -> Result<()> {
    rayspin_core::expect_shape("times of the samples", &[trajectory.samples()], &[times.len()])?;
    rayspin_core::expect_shape("field map", &[matrix.iter().product()], &[field.len()])?;
    if matrix.len() != trajectory.dims() {
        return Err(Error::value("matrix", format!("{} axes", trajectory.dims()), matrix.len()));
    }
    Ok(())
}

fn check_indices(indices: &[usize], len: usize) -> Result<()> {
    match indices.iter().find(|&&i| i >= len) {
        Some(&index) => Err(Error::value("index of an output", format!("below {len}"), index)),
        None => Ok(()),
    }
}
