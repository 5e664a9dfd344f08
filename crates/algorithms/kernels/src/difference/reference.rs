//! Differences as sparse formulas, element by element in f64.

use rayspin_core::C64;

/// Number of elements between neighbours along `axis`.
fn stride(shape: &[usize], axis: usize) -> usize {
    shape[axis + 1..].iter().product()
}

/// d_a(i) = w_a (x(i + e_a) − x(i)), 0 at the far edge; `[axes, shape…]`.
pub fn forward(shape: &[usize], axes: &[usize], weights: &[f64], x: &[C64]) -> Vec<C64> {
    let mut out = Vec::new();
    for (&axis, weight) in axes.iter().zip(weights) {
        let step = stride(shape, axis);
        for i in 0..x.len() {
            let last = (i / step) % shape[axis] == shape[axis] - 1;
            out.push(if last { C64::default() } else { (x[i + step] - x[i]) * weight });
        }
    }
    out
}

/// Σ_a w_a (d_a(i − e_a) − d_a(i)), terms outside the differences left out.
pub fn adjoint(shape: &[usize], axes: &[usize], weights: &[f64], d: &[C64]) -> Vec<C64> {
    let len = shape.iter().product();
    let mut out = vec![C64::default(); len];
    for (a, &axis) in axes.iter().enumerate() {
        let step = stride(shape, axis);
        for i in 0..len {
            if (i / step) % shape[axis] < shape[axis] - 1 {
                let d = d[a * len + i] * weights[a];
                out[i + step] += d;
                out[i] -= d;
            }
        }
    }
    out
}
