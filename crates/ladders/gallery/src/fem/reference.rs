//! The oracle: the same number of steps of conjugate gradients in f64, with the stiffness matrix of an
//! element as it is defined.

use rayon::prelude::*;

use super::Problem;

/// 12 times the stiffness ∫ ∇φ_a · ∇φ_b of trilinear φ between two corners of a cube of side 1. The index is
/// the number of axes along which the corners differ.
pub const STIFFNESS: [f64; 4] = [4.0, 0.0, -1.0, -1.0];

/// u after all steps, on all nodes.
pub fn solve(p: &Problem, kappa: &[f32], b: &[f32]) -> Vec<f64> {
    let inner = |index: usize| p.inner(p.place(index));
    let mut u = vec![0.0; p.nodes()];
    let mut r: Vec<f64> =
        b.iter().enumerate().map(|(index, &b)| if inner(index) { f64::from(b) } else { 0.0 }).collect();
    let mut d = r.clone();
    let dot = |a: &[f64], b: &[f64]| a.par_iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut square = dot(&r, &r);
    for _ in 0..p.iterations {
        let q = apply(p, kappa, &d);
        let curvature = dot(&d, &q);
        let alpha = if curvature > 0.0 { square / curvature } else { 0.0 };
        u.par_iter_mut().zip(&d).for_each(|(u, d)| *u += alpha * d);
        r.par_iter_mut().zip(&q).for_each(|(r, q)| *r -= alpha * q);
        let before = std::mem::replace(&mut square, dot(&r, &r));
        let beta = if before > 0.0 { square / before } else { 0.0 };
        d.par_iter_mut().zip(&r).for_each(|(d, r)| *d = r + beta * *d);
    }
    u
}

/// (A x)_i = Σ over the elements at node i, κ Σ over their corners of stiffness · x; 0 at the boundary.
pub fn apply(p: &Problem, kappa: &[f32], x: &[f64]) -> Vec<f64> {
    let [_, ny, nx] = p.shape;
    let row = |index: usize| {
        let node = p.place(index);
        if !p.inner(node) {
            return 0.0;
        }
        let mut sum = 0.0;
        for octant in 0..8 {
            // The element's first corner, and this node's corner in it.
            let element = [0, 1, 2].map(|axis| node[axis] - (octant >> axis & 1));
            let k = f64::from(kappa[(element[0] * ny + element[1]) * nx + element[2]]);
            for corner in 0..8 {
                let apart = (octant ^ corner) as u32;
                let other = [0, 1, 2].map(|axis| element[axis] + (corner >> axis & 1));
                sum += k * STIFFNESS[apart.count_ones() as usize] / 12.0 * x[p.index(other)];
            }
        }
        sum
    };
    (0..p.nodes()).into_par_iter().map(row).collect()
}
