//! Fields of circular loops around the object, and their fit by harmonics.

use std::f64::consts::TAU;

use ndarray::Array2;
use rayon::prelude::*;
use rayspin_core::{C64, Result};
use rayspin_solve::dense::cholesky::{cholesky, solve};

use super::wave;

/// Distance of the loops' centres from the axis, in fields of view: just outside the field's corners.
const ARRAY_RADIUS: f64 = 0.72;
/// Semi-axes of the ellipsoid that counts as the object for the fit's weights, its error and the scale.
const OBJECT: [f64; 3] = [0.36, 0.47, 0.46];

/// A circular wire: centre and radius in fields of view, and the unit vector through it.
pub(super) struct Loop {
    pub(super) centre: [f64; 3],
    pub(super) normal: [f64; 3],
    pub(super) radius: f64,
}

pub(super) fn in_object(x: &[f64; 3]) -> bool {
    (0..3).map(|axis| (x[axis] / OBJECT[axis]).powi(2)).sum::<f64>() <= 1.0
}

/// A regular grid of n points an axis over the field of view.
pub(super) fn fit_points(dims: usize, n: usize) -> Vec<[f64; 3]> {
    let coordinate = |i: usize| (i as f64 + 0.5) / n as f64 - 0.5;
    let deep = if dims == 3 { n } else { 1 };
    (0..deep * n * n)
        .map(|i| {
            let z = if dims == 3 { coordinate(i / (n * n)) } else { 0.0 };
            [coordinate(i % n), coordinate(i / n % n), z]
        })
        .collect()
}

pub(super) fn place_loops(dims: usize, coils: usize) -> Vec<Loop> {
    let rings = if dims == 3 { (coils as f64 / 4.0).sqrt().ceil().max(1.0) as usize } else { 1 };
    let mut loops = Vec::with_capacity(coils);
    for ring in 0..rings {
        let here = coils * (ring + 1) / rings - coils * ring / rings;
        let turn = if ring % 2 == 1 { 0.5 } else { 0.0 };
        let z = (ring as f64 + 0.5) / rings as f64 - 0.5;
        // Neighbours overlap by a tenth; large arrays keep loops large enough to see the middle of the
        // object.
        let radius = 1.1 * ARRAY_RADIUS * (0.5 * TAU / here as f64).sin();
        for place in 0..here {
            let (sin, cos) = (TAU * (place as f64 + turn) / here as f64).sin_cos();
            loops.push(Loop {
                centre: [ARRAY_RADIUS * cos, ARRAY_RADIUS * sin, z],
                normal: [cos, sin, 0.0],
                radius: radius.clamp(0.3, 0.45),
            });
        }
    }
    loops
}

impl Loop {
    /// B_x − iB_y at x by the law of Biot and Savart, ∮ dl × r/|r|³, without constants. The trapezoid rule on
    /// a circle converges exponentially at any distance from the wire.
    pub(super) fn field(&self, x: &[f64; 3]) -> C64 {
        const SEGMENTS: usize = 64;
        let [nx, ny, _] = self.normal;
        let mut b = [0.0; 2];
        for segment in 0..SEGMENTS {
            let (sin, cos) = (TAU * segment as f64 / SEGMENTS as f64).sin_cos();
            // The loop's plane is spanned by z and by the tangent (−n_y, n_x, 0).
            let wire = [
                self.centre[0] - self.radius * cos * ny,
                self.centre[1] + self.radius * cos * nx,
                self.centre[2] + self.radius * sin,
            ];
            let dl = [sin * ny, -sin * nx, cos].map(|v| v * self.radius * TAU / SEGMENTS as f64);
            let r = [x[0] - wire[0], x[1] - wire[1], x[2] - wire[2]];
            let cube = (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]).powf(1.5);
            b[0] += (dl[1] * r[2] - dl[2] * r[1]) / cube;
            b[1] += (dl[2] * r[0] - dl[0] * r[2]) / cube;
        }
        C64::new(b[0], -b[1])
    }
}

/// Weights `[coil, harmonic]` that minimise Σ_x q(x)|Σ_j w_j e^{i2πκ_j·x} − B(x)|² + ε‖w‖², q = 1 in the
/// object and 0.1 in the rest of the field, so that maps stay sane where nothing is.
pub(super) fn fit(dims: usize, harmonics: &[[f64; 3]], loops: &[Loop]) -> Result<Array2<C64>> {
    let count = harmonics.len();
    let points = fit_points(dims, if dims == 2 { 33 } else { 13 });
    let weight = |x: &[f64; 3]| if in_object(x) { 1.0 } else { 0.1 };
    let design = Array2::from_shape_fn((points.len(), count), |(p, j)| wave(&harmonics[j], &points[p]));
    let adjoint =
        Array2::from_shape_fn((count, points.len()), |(j, p)| design[[p, j]].conj() * weight(&points[p]));
    let mut gram = adjoint.dot(&design);
    let trace: f64 = (0..count).map(|j| gram[[j, j]].re).sum();
    for j in 0..count {
        gram[[j, j]] += 1e-10 * trace / count as f64;
    }
    let factor = cholesky("normal matrix of the coil fit", gram.view())?;
    let rows: Vec<Vec<C64>> = loops
        .par_iter()
        .map(|one| {
            let field: Vec<C64> = points.iter().map(|x| one.field(x)).collect();
            let mut row: Vec<C64> =
                adjoint.rows().into_iter().map(|a| a.iter().zip(&field).map(|(a, f)| a * f).sum()).collect();
            solve(factor.view(), &mut row);
            row
        })
        .collect();
    Ok(Array2::from_shape_fn((loops.len(), count), |(coil, j)| rows[coil][j]))
}
