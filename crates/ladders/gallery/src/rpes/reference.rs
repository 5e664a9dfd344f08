//! The oracle: integrals by Hermite functions and Boys' function (McMurchie and Davidson, "One- and
//! two-electron integrals over Cartesian Gaussian functions", 1978), which shares nothing with Rys'
//! quadrature.

use std::f64::consts::PI;

use super::Shell;

/// F_m(x) = ∫ t^(2m) e^(−x t²) dt from 0 to 1 for m = 0 … `most`.
pub fn boys(most: usize, x: f64) -> Vec<f64> {
    let mut f = vec![0.0; most + 1];
    if x > 100.0 {
        f[0] = 0.5 * (PI / x).sqrt();
        (1..=most).for_each(|m| f[m] = f[m - 1] * (2.0 * m as f64 - 1.0) / (2.0 * x));
        return f;
    }
    // A series of positive terms for the last, and downwards, where errors shrink.
    let (mut term, mut k) = (1.0 / (2.0 * most as f64 + 1.0), 0.0);
    while term > 1e-17 * f[most] {
        f[most] += term;
        k += 1.0;
        term *= 2.0 * x / (2.0 * (most as f64 + k) + 1.0);
    }
    f[most] *= (-x).exp();
    for m in (1..=most).rev() {
        f[m - 1] = (2.0 * x * f[m] + (-x).exp()) / (2.0 * m as f64 - 1.0);
    }
    f
}

/// The coefficient of the Hermite function of order t in the product of powers i and j around A and B: `pa`,
/// `pb` lead from these to the product's centre.
pub(super) fn hermite(i: i32, j: i32, t: i32, p: f64, pa: f64, pb: f64) -> f64 {
    if t < 0 || t > i + j {
        return 0.0;
    }
    let lower = |i, j, distance: f64| {
        let next = |t| hermite(i, j, t, p, pa, pb);
        next(t - 1) / (2.0 * p) + distance * next(t) + f64::from(t + 1) * next(t + 1)
    };
    match (i, j) {
        (0, 0) => 1.0,
        (0, _) => lower(0, j - 1, pb),
        _ => lower(i - 1, j, pa),
    }
}

/// The derivative of these `orders` of the Coulomb potential of a Gaussian distribution with exponent ρ,
/// `from` its centre.
pub(super) fn coulomb(orders: [i32; 3], n: usize, rho: f64, from: [f64; 3], f: &[f64]) -> f64 {
    match orders.iter().position(|&order| order > 0) {
        None => (-2.0 * rho).powi(n as i32) * f[n],
        Some(axis) => {
            let (mut once, mut twice) = (orders, orders);
            once[axis] -= 1;
            twice[axis] -= 2;
            let first = from[axis] * coulomb(once, n + 1, rho, from, f);
            if twice[axis] < 0 {
                first
            } else {
                first + f64::from(once[axis]) * coulomb(twice, n + 1, rho, from, f)
            }
        }
    }
}

/// A product of two primitive functions: exponent, centre, size, and powers and distances of each axis.
pub(super) struct Product {
    pub p: f64,
    pub center: [f64; 3],
    pub size: f64,
    pub powers: [[i32; 2]; 3],
    pub distances: [[f64; 2]; 3],
}

impl Product {
    /// The product of primitives `i` and `j` of two shells, with components `c` (x, y, z for p).
    pub(super) fn new([a, b]: [&Shell; 2], [i, j]: [usize; 2], c: [usize; 2]) -> Self {
        let (ea, eb) = (a.exponents[i], b.exponents[j]);
        let p = ea + eb;
        let center = [0, 1, 2].map(|d| (ea * a.center[d] + eb * b.center[d]) / p);
        let apart: f64 = (0..3).map(|d| (a.center[d] - b.center[d]).powi(2)).sum();
        let size = a.coefficients[i] * b.coefficients[j] * (-ea * eb / p * apart).exp();
        let power = |shell: &Shell, c: usize, d: usize| i32::from(shell.p && c == d);
        let powers = [0, 1, 2].map(|d| [power(a, c[0], d), power(b, c[1], d)]);
        let distances = [0, 1, 2].map(|d| [center[d] - a.center[d], center[d] - b.center[d]]);
        Self { p, center, size, powers, distances }
    }

    /// Orders and coefficients of its Hermite functions.
    pub(super) fn terms(&self) -> Vec<([i32; 3], f64)> {
        let most = self.powers.map(|[i, j]| i + j);
        let e = |d: usize, t: i32| {
            let ([i, j], [pa, pb]) = (self.powers[d], self.distances[d]);
            hermite(i, j, t, self.p, pa, pb)
        };
        let mut terms = Vec::new();
        for t in 0..=most[0] {
            for u in 0..=most[1] {
                for v in 0..=most[2] {
                    terms.push(([t, u, v], self.size * e(0, t) * e(1, u) * e(2, v)));
                }
            }
        }
        terms
    }
}

/// (ab|cd) of four functions: a component of each shell.
pub fn integral(shells: [&Shell; 4], components: [usize; 4]) -> f64 {
    let [a, b, c, d] = shells;
    let mut sum = 0.0;
    for ij in 0..9 {
        let bra = Product::new([a, b], [ij / 3, ij % 3], [components[0], components[1]]);
        let bra_terms = bra.terms();
        for kl in 0..9 {
            let ket = Product::new([c, d], [kl / 3, kl % 3], [components[2], components[3]]);
            let (p, q) = (bra.p, ket.p);
            let rho = p * q / (p + q);
            let from = [0, 1, 2].map(|d| bra.center[d] - ket.center[d]);
            let f = boys(4, rho * from.iter().map(|x| x * x).sum::<f64>());
            let mut both = 0.0;
            for ([k, l, m], e) in ket.terms() {
                let sign = if (k + l + m) % 2 == 0 { e } else { -e };
                for ([t, u, v], e) in &bra_terms {
                    both += e * sign * coulomb([t + k, u + l, v + m], 0, rho, from, &f);
                }
            }
            sum += 2.0 * PI.powf(2.5) / (p * q * (p + q).sqrt()) * both;
        }
    }
    sum
}
