//! The direct sums in f64, as plain as the formula.

use ndarray::ArrayView2;
use rayspin_core::C64;

/// s\[j\] = Σ_k values\[k\] e^{−i2πs_j·x_k}.
pub fn forward(positions: ArrayView2<'_, f64>, frequencies: ArrayView2<'_, f64>, values: &[C64]) -> Vec<C64> {
    sums(frequencies, positions, values, -1.0)
}

/// f\[k\] = Σ_j values\[j\] e^{+i2πs_j·x_k}.
pub fn adjoint(positions: ArrayView2<'_, f64>, frequencies: ArrayView2<'_, f64>, values: &[C64]) -> Vec<C64> {
    sums(positions, frequencies, values, 1.0)
}

fn sums(to: ArrayView2<'_, f64>, from: ArrayView2<'_, f64>, values: &[C64], sign: f64) -> Vec<C64> {
    let term = |a: &f64, b: &f64| {
        // The product's whole turns, and what its rounding took, are left out exactly: far points have many.
        let product = a * b;
        (product - product.round()) + a.mul_add(*b, -product)
    };
    to.rows()
        .into_iter()
        .map(|to| {
            let terms = from.rows().into_iter().zip(values).map(|(from, value)| {
                let turns: f64 = to.iter().zip(from).map(|(a, b)| term(a, b)).sum();
                value * C64::cis(sign * std::f64::consts::TAU * turns)
            });
            terms.sum()
        })
        .collect()
}
