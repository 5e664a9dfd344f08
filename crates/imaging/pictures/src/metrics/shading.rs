//! A smooth factor between two images.

/// Degree of the polynomial: the root of a coil array's sum of squares bends about as much.
const DEGREE: usize = 4;
/// The factor is fitted to about this number of voxels at most.
const VOXELS: usize = 1 << 17;
/// Voxels for each coefficient, at least: fewer would follow anything.
const EACH: usize = 40;
/// The part of the largest number of the reference from which on a voxel belongs to the object.
const OBJECT: f64 = 0.1;

/// How two images compare once one is multiplied by a smooth factor, a polynomial of the place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shading {
    /// What remains of the normalised root-mean-square error, %.
    pub error_percent: f64,
    /// The smallest and the largest factor within the object.
    pub factor: [f64; 2],
}

/// Fits the polynomial b(x) that minimises Σ |b I − I₀|² over voxels of the last three axes, on an even part
/// of many. None where voxels are too few, or where the factor is not positive within the object.
pub(super) fn fitted(
    image: &[f64],
    reference: &[f64],
    mask: Option<&[bool]>,
    shape: &[usize],
) -> Option<Shading> {
    let axis = |from_last: usize| shape.iter().rev().nth(from_last).copied().unwrap_or(1);
    let sizes = [axis(2), axis(1), axis(0)];
    let terms = terms(sizes);
    // An odd step visits all columns of images of even sizes.
    let step = (image.len() / VOXELS) | 1;
    let chosen: Vec<usize> =
        (0..image.len()).step_by(step).filter(|&voxel| mask.is_none_or(|mask| mask[voxel])).collect();
    if chosen.len() < EACH * terms.len() {
        return None;
    }
    let count = terms.len();
    let (mut normal, mut right) = (vec![vec![0.0; count]; count], vec![0.0; count]);
    for &voxel in &chosen {
        let values: Vec<f64> = basis(voxel, sizes, &terms).map(|value| value * image[voxel]).collect();
        for (row, &value) in values.iter().enumerate() {
            right[row] += value * reference[voxel];
            for (sum, other) in normal[row].iter_mut().zip(&values) {
                *sum += value * other;
            }
        }
    }
    let coefficients = solved(normal, right)?;
    let peak = chosen.iter().map(|&voxel| reference[voxel].abs()).fold(0.0, f64::max);
    let (mut error, mut power) = (0.0, 0.0);
    let mut factor = [f64::INFINITY, f64::NEG_INFINITY];
    for &voxel in &chosen {
        let b: f64 = basis(voxel, sizes, &terms).zip(&coefficients).map(|(value, c)| value * c).sum();
        error += (b * image[voxel] - reference[voxel]).powi(2);
        power += reference[voxel].powi(2);
        if reference[voxel].abs() > OBJECT * peak {
            factor = [factor[0].min(b), factor[1].max(b)];
        }
    }
    let shading = Shading { error_percent: 100.0 * (error / power).sqrt(), factor };
    (shading.error_percent.is_finite() && factor[0] > 0.0).then_some(shading)
}

/// The powers of z, y and x in each term: along an axis fewer than its voxels, which tell no more.
fn terms(sizes: [usize; 3]) -> Vec<[usize; 3]> {
    let powers = sizes.map(|n| DEGREE.min(n.saturating_sub(1)));
    let mut terms = Vec::new();
    for z in 0..=powers[0] {
        for y in 0..=powers[1] {
            terms.extend((0..=powers[2]).filter(|x| z + y + x <= DEGREE).map(|x| [z, y, x]));
        }
    }
    terms
}

/// The terms at a voxel: products of Chebyshev polynomials on −1 … 1.
fn basis(voxel: usize, [nz, ny, nx]: [usize; 3], terms: &[[usize; 3]]) -> impl Iterator<Item = f64> {
    let place = [voxel / (nx * ny) % nz, voxel / nx % ny, voxel % nx];
    let mut along = [[1.0; DEGREE + 1]; 3];
    for ((powers, i), n) in along.iter_mut().zip(place).zip([nz, ny, nx]) {
        powers[1] = if n > 1 { 2.0 * i as f64 / (n - 1) as f64 - 1.0 } else { 0.0 };
        for power in 2..=DEGREE {
            powers[power] = 2.0 * powers[1] * powers[power - 1] - powers[power - 2];
        }
    }
    terms.iter().map(move |[z, y, x]| along[0][*z] * along[1][*y] * along[2][*x])
}

/// Solves a symmetric positive definite system by Gaussian elimination. None where it is singular.
fn solved(mut normal: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let count = right.len();
    let largest = (0..count).map(|i| normal[i][i]).fold(0.0, f64::max);
    for i in 0..count {
        let pivot = normal[i][i];
        if pivot.is_nan() || pivot <= 1e-12 * largest {
            return None;
        }
        let (above, below) = normal.split_at_mut(i + 1);
        for (down, row) in below.iter_mut().enumerate() {
            let factor = row[i] / pivot;
            for (value, over) in row[i..].iter_mut().zip(&above[i][i..]) {
                *value -= factor * over;
            }
            right[i + 1 + down] -= factor * right[i];
        }
    }
    for i in (0..count).rev() {
        let rest: f64 = (i + 1..count).map(|j| normal[i][j] * right[j]).sum();
        right[i] = (right[i] - rest) / normal[i][i];
    }
    Some(right)
}
