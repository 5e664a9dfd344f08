//! The oracle: the formulas in double precision, term by term; and exact values at chosen outputs of large
//! problems.

use num_complex::Complex;
use rayspin_core::{C64, Error, Real, Result, Trajectory};
use rayspin_device::cpu::try_with_capacity;

use super::grid::Grid;

/// d\[b, m\] = Σ_x ρ\[b, x\] e^{−i2πk_m·x}. `image` is `[batch, matrix..]` flat; the result `[batch,
/// sample]`.
pub fn forward(trajectory: &Trajectory, matrix: &[usize], image: &[C64]) -> Result<Vec<C64>> {
    let grid = Grid::image(matrix)?;
    let mut samples = try_with_capacity("exact samples", image.len() / grid.points() * trajectory.samples())?;
    for image in image.chunks_exact(grid.points()) {
        for m in 0..trajectory.samples() {
            let k = grid.k(trajectory, m);
            let terms = image.iter().enumerate();
            samples.push(terms.map(|(i, rho)| rho * phase(k, grid.position(i)).conj()).sum());
        }
    }
    Ok(samples)
}

/// ρ\[b, x\] = Σ_m d\[b, m\] e^{+i2πk_m·x}. `samples` is `[batch, sample]` flat; the result `[batch,
/// matrix..]`.
pub fn adjoint(trajectory: &Trajectory, matrix: &[usize], samples: &[C64]) -> Result<Vec<C64>> {
    adjoint_on(trajectory, &Grid::image(matrix)?, samples)
}

/// Q\[x\] = Σ_m w_m e^{+i2πk_m·x} at the displacements `[2nz, 2ny, 2nx]`; index n is displacement 0.
pub fn q(trajectory: &Trajectory, matrix: &[usize], weights: &[f64]) -> Result<Vec<C64>> {
    let mut samples = try_with_capacity("weights as samples", weights.len())?;
    samples.extend(weights.iter().map(|&w| C64::from(w)));
    adjoint_on(trajectory, &Grid::displacements(matrix)?, &samples)
}

fn adjoint_on(trajectory: &Trajectory, grid: &Grid, samples: &[C64]) -> Result<Vec<C64>> {
    let mut image = try_with_capacity("exact image", samples.len() / trajectory.samples() * grid.points())?;
    for d in samples.chunks_exact(trajectory.samples()) {
        for i in 0..grid.points() {
            let x = grid.position(i);
            let terms = d.iter().enumerate();
            image.push(terms.map(|(m, d)| d * phase(grid.k(trajectory, m), x)).sum());
        }
    }
    Ok(image)
}

/// e^{i2πk·x}.
pub(super) fn phase(k: [f64; 3], x: [f64; 3]) -> C64 {
    let turns = k[0] * x[0] + k[1] * x[1] + k[2] * x[2];
    Complex::cis(std::f64::consts::TAU * (turns - turns.round()))
}

/// Exact values of the forward transform at `indices`, flat into `[batch.., sample]`, in double precision.
///
/// `image` is `[batch.., matrix..]` flat. One output costs a complex product a voxel, so that a random
/// handful of a large transform's outputs can be certified in seconds. Errors: a matrix that is not the
/// trajectory's rank, an image that is not whole, an index out of range.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::{C32, C64, Trajectory};
/// use rayspin_kernels::nudft::forward_at;
///
/// let trajectory = Trajectory::from_cycles_per_fov(array![[0.5], [1.0]])?;
/// let spike = [0.0, 0.0, 0.0, 1.0].map(C32::from); // at x = ¼
/// let second = forward_at(&trajectory, &[4], &spike, &[1])?; // of two samples only the second
/// assert!((second[0] - C64::new(0.0, -1.0)).norm() < 1e-14); // e^{−i2π·1·¼}
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn forward_at<R: Real>(
    trajectory: &Trajectory,
    matrix: &[usize],
    image: &[Complex<R>],
    indices: &[usize],
) -> Result<Vec<C64>> {
    let grid = grid_of(trajectory, Grid::image(matrix)?)?;
    let batch = batch("image", image.len(), grid.points())?;
    check_indices(indices, batch * trajectory.samples())?;
    let row_of = grid.axes[2].count;
    Ok(indices
        .iter()
        .map(|index| {
            let (b, m) = (index / trajectory.samples(), index % trajectory.samples());
            let image = &image[b * grid.points()..(b + 1) * grid.points()];
            let [z, y, x] = axis_phases(&grid, trajectory, m);
            let rows = image.chunks_exact(row_of).enumerate();
            let sum: C64 = rows
                .map(|(row, values)| {
                    let line: C64 = values.iter().zip(&x).map(|(v, x)| double(*v) * x.conj()).sum();
                    line * (z[row / y.len()] * y[row % y.len()]).conj()
                })
                .sum();
            sum
        })
        .collect())
}

/// Exact values of the adjoint at `indices`, flat into `[batch.., matrix..]`, in double precision.
///
/// `samples` is `[batch.., sample]` flat. Errors: as [`forward_at`].
///
/// ```
/// use ndarray::array;
/// use rayspin_core::{C32, C64, Trajectory};
/// use rayspin_kernels::nudft::adjoint_at;
///
/// let trajectory = Trajectory::from_cycles_per_fov(array![[1.0]])?;
/// let found = adjoint_at(&trajectory, &[4], &[C32::ONE], &[2, 3])?; // at x = 0 and ¼
/// assert!((found[0] - C64::ONE).norm() < 1e-14 && (found[1] - C64::I).norm() < 1e-14);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn adjoint_at<R: Real>(
    trajectory: &Trajectory,
    matrix: &[usize],
    samples: &[Complex<R>],
    indices: &[usize],
) -> Result<Vec<C64>> {
    let grid = grid_of(trajectory, Grid::image(matrix)?)?;
    let batch = batch("samples", samples.len(), trajectory.samples())?;
    check_indices(indices, batch * grid.points())?;
    Ok(indices
        .iter()
        .map(|index| {
            let b = index / grid.points();
            let d = &samples[b * trajectory.samples()..(b + 1) * trajectory.samples()];
            point(trajectory, &grid, index % grid.points(), |m| double(d[m]))
        })
        .collect())
}

/// Exact values of Q at `indices`, flat into `[2nz, 2ny, 2nx]`, in double precision; no weights means all 1.
///
/// Errors: as [`forward_at`].
///
/// ```
/// use ndarray::array;
/// use rayspin_core::Trajectory;
/// use rayspin_kernels::nudft::q_at;
///
/// let trajectory = Trajectory::from_cycles_per_fov(array![[0.3], [-1.7], [2.0]])?;
/// let at_displacement_0 = q_at::<f32>(&trajectory, &[4], Some(&[1.0, 2.0, 3.0]), &[4])?;
/// assert_eq!(at_displacement_0[0].re, 6.0); // the sum of the weights
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn q_at<R: Real>(
    trajectory: &Trajectory,
    matrix: &[usize],
    weights: Option<&[R]>,
    indices: &[usize],
) -> Result<Vec<C64>> {
    let grid = grid_of(trajectory, Grid::displacements(matrix)?)?;
    if let Some(weights) = weights {
        rayspin_core::expect_shape("weights", &[trajectory.samples()], &[weights.len()])?;
    }
    check_indices(indices, grid.points())?;
    let weight = |m: usize| C64::from(weights.map_or(1.0, |w| Real::to_f64(w[m])));
    Ok(indices.iter().map(|&index| point(trajectory, &grid, index, weight)).collect())
}

fn point(trajectory: &Trajectory, grid: &Grid, index: usize, d: impl Fn(usize) -> C64) -> C64 {
    let x = grid.position(index);
    (0..trajectory.samples()).map(|m| d(m) * phase(grid.k(trajectory, m), x)).sum()
}

fn axis_phases(grid: &Grid, trajectory: &Trajectory, m: usize) -> [Vec<C64>; 3] {
    grid.axes.map(|axis| {
        let k = axis.k(trajectory, m);
        (0..axis.count).map(|i| phase([k, 0.0, 0.0], [axis.position(i), 0.0, 0.0])).collect()
    })
}

fn double<R: Real>(value: Complex<R>) -> C64 {
    C64::new(Real::to_f64(value.re), Real::to_f64(value.im))
}

/// The grid again, when its rank is the trajectory's.
pub(super) fn grid_of(trajectory: &Trajectory, grid: Grid) -> Result<Grid> {
    let rank = grid.axes.iter().filter(|a| a.component.is_some()).count();
    if rank == trajectory.dims() {
        Ok(grid)
    } else {
        let expected = format!("{} axes, as the trajectory has dimensions", trajectory.dims());
        Err(Error::value("matrix", expected, format!("{rank} axes")))
    }
}

fn batch(what: &str, len: usize, one: usize) -> Result<usize> {
    if len.is_multiple_of(one) {
        Ok(len / one)
    } else {
        Err(Error::value(what, format!("a multiple of {one} values"), len))
    }
}

fn check_indices(indices: &[usize], len: usize) -> Result<()> {
    match indices.iter().find(|&&i| i >= len) {
        Some(index) => Err(Error::value("index", format!("less than {len}"), index)),
        None => Ok(()),
    }
}
