//! One line of f64 per formula.

use rayspin_core::C64;

/// Σ conj(x_i) y_i.
pub fn dot(x: &[C64], y: &[C64]) -> C64 {
    x.iter().zip(y).map(|(x, y)| x.conj() * y).sum()
}

/// Σ |x_i|².
pub fn norm_squared(x: &[C64]) -> f64 {
    x.iter().map(C64::norm_sqr).sum()
}

/// αx + y.
pub fn axpy(alpha: C64, x: &[C64], y: &[C64]) -> Vec<C64> {
    x.iter().zip(y).map(|(x, y)| alpha * x + y).collect()
}

/// x + βy.
pub fn xpby(x: &[C64], beta: C64, y: &[C64]) -> Vec<C64> {
    x.iter().zip(y).map(|(x, y)| x + beta * y).collect()
}

/// d ⊙ x, with d repeated along the leading axes of x.
pub fn multiply(d: &[C64], x: &[C64]) -> Vec<C64> {
    x.iter().enumerate().map(|(i, x)| d[i % d.len()] * x).collect()
}

/// conj(d) ⊙ x, with d repeated along the leading axes of x.
pub fn multiply_conj(d: &[C64], x: &[C64]) -> Vec<C64> {
    x.iter().enumerate().map(|(i, x)| d[i % d.len()].conj() * x).collect()
}

/// x + αp, r − αq and ‖r − αq‖².
pub fn cg_update(alpha: f64, p: &[C64], q: &[C64], x: &[C64], r: &[C64]) -> (Vec<C64>, Vec<C64>, f64) {
    let x = axpy(alpha.into(), p, x);
    let r = axpy((-alpha).into(), q, r);
    let norm = norm_squared(&r);
    (x, r, norm)
}
