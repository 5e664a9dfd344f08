//! Rys quadrature: points and weights for ∫ f(t²) e^(−X t²) dt from 0 to 1. They are exact for polynomials f
//! of degree 2n − 1 (Dupuis, Rys and King, "Evaluation of molecular integrals over Gaussian basis functions",
//! 1976).

use std::sync::LazyLock;

/// Most points: integrals of four p shells need three.
pub const MOST: usize = 3;
/// Intervals of X have this width. From the last on, the upper end of the integral makes no difference in
/// `f64`.
pub const INTERVALS: usize = 80;
const WIDTH: f64 = 0.5;
/// Where constants begin.
pub const LARGE: f64 = INTERVALS as f64 * WIDTH;
/// Coefficients of a polynomial of an interval.
pub const TERMS: usize = 10;

/// Points t² and weights of n points, by the recurrence of the polynomials that are orthogonal under the
/// weight (Stieltjes' procedure). Sums over 48 points of Gauss and Legendre stand for integrals.
pub fn quadrature(n: usize, x: f64) -> ([f64; MOST], [f64; MOST]) {
    static LEGENDRE: LazyLock<Vec<[f64; 2]>> = LazyLock::new(|| legendre(48));
    let measure: Vec<[f64; 2]> = LEGENDRE.iter().map(|[t, w]| [t * t, w * (-x * t * t).exp()]).collect();
    // p_{k+1} = (u − a_k) p_k − b_k p_{k−1}, and the squared norm of p_k.
    let (mut a, mut b, mut norms) = ([0.0; MOST], [0.0; MOST], [1.0; MOST + 1]);
    let value = |a: &[f64], b: &[f64], k: usize, u: f64| {
        (0..k).fold([0.0, 1.0], |[before, p], k| [p, (u - a[k]) * p - b[k] * before])[1]
    };
    for k in 0..n {
        let moment = |power: i32| {
            measure.iter().map(|[u, w]| w * u.powi(power) * value(&a, &b, k, *u).powi(2)).sum::<f64>()
        };
        let (norm, first) = (moment(0), moment(1));
        (norms[k], a[k]) = (norm, first / norm);
        b[k] = if k == 0 { 0.0 } else { norm / norms[k - 1] };
    }
    // A zero of a polynomial lies between each two neighbouring zeros of the polynomial before.
    let mut zeros: Vec<f64> = Vec::new();
    for k in 1..=n {
        let bounds: Vec<f64> = [0.0].into_iter().chain(zeros).chain([1.0]).collect();
        zeros = bounds
            .windows(2)
            .map(|ends| {
                let (mut low, mut high) = (ends[0], ends[1]);
                let rises = value(&a, &b, k, high) > value(&a, &b, k, low);
                for _ in 0..90 {
                    let middle = 0.5 * (low + high);
                    if (value(&a, &b, k, middle) > 0.0) == rises { high = middle } else { low = middle }
                }
                0.5 * (low + high)
            })
            .collect();
    }
    let (mut points, mut weights) = ([0.0; MOST], [0.0; MOST]);
    for (i, u) in zeros.into_iter().enumerate() {
        points[i] = u;
        weights[i] = 1.0 / (0..n).map(|k| value(&a, &b, k, u).powi(2) / norms[k]).sum::<f64>();
    }
    (points, weights)
}

/// Points and weights of Gauss and Legendre on 0 to 1.
fn legendre(n: usize) -> Vec<[f64; 2]> {
    let point = |i: usize| {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..20 {
            let step = |[before, p]: [f64; 2], k: usize| {
                let k = k as f64;
                [p, ((2.0 * k + 1.0) * x * p - k * before) / (k + 1.0)]
            };
            let [before, p] = (0..n).fold([0.0, 1.0], step);
            slope = n as f64 * (x * p - before) / (x * x - 1.0);
            x -= p / slope;
        }
        [0.5 * (1.0 - x), 1.0 / ((1.0 - x * x) * slope * slope)]
    };
    (0..n).map(point).collect()
}

/// Where the numbers of n points begin in [`table`]: intervals, then the constants of large X.
pub const fn start(n: usize) -> usize {
    n * (n - 1) * (INTERVALS * TERMS + 1)
}

/// For n = 1, 2, 3 and every interval: the polynomials of n points and n weights in y = 4 X − (2 interval +
/// 1) from −1 to 1, the highest coefficient first. Then X t² and √X w for large X.
pub fn table() -> &'static [f64] {
    static TABLE: LazyLock<Vec<f64>> = LazyLock::new(make_table);
    &TABLE
}

fn make_table() -> Vec<f64> {
    let mut table = Vec::with_capacity(start(MOST + 1));
    // Values at Chebyshev's points, T_k as a polynomial in y.
    let angle = |i: usize| std::f64::consts::PI * (i as f64 + 0.5) / TERMS as f64;
    let mut chebyshev = [[0.0; TERMS]; TERMS];
    (chebyshev[0][0], chebyshev[1][1]) = (1.0, 1.0);
    for k in 2..TERMS {
        for power in 0..TERMS {
            let raised = if power > 0 { 2.0 * chebyshev[k - 1][power - 1] } else { 0.0 };
            chebyshev[k][power] = raised - chebyshev[k - 2][power];
        }
    }
    for n in 1..=MOST {
        for interval in 0..INTERVALS {
            let rule = |i: usize| quadrature(n, WIDTH * (interval as f64 + 0.5 + 0.5 * angle(i).cos()));
            let values: Vec<_> = (0..TERMS).map(rule).collect();
            for f in 0..2 * n {
                let value = |i: usize| if f < n { values[i].0[f] } else { values[i].1[f - n] };
                let mut sum = [0.0; TERMS];
                for (k, powers) in chebyshev.iter().enumerate() {
                    let c: f64 = (0..TERMS).map(|i| value(i) * (k as f64 * angle(i)).cos()).sum();
                    let c = c * if k == 0 { 1.0 } else { 2.0 } / TERMS as f64;
                    sum.iter_mut().zip(powers).for_each(|(sum, power)| *sum += c * power);
                }
                table.extend(sum.into_iter().rev());
            }
        }
        let (points, weights) = quadrature(n, LARGE);
        table.extend(points[..n].iter().map(|u| u * LARGE));
        table.extend(weights[..n].iter().map(|w| w * LARGE.sqrt()));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpes::reference::boys;

    #[test]
    fn moments_are_boys_functions() {
        let table = table();
        assert_eq!(table.len(), start(MOST + 1));
        for n in 1..=MOST {
            for x in (0..1000).map(|i| 0.0503 * f64::from(i)) {
                let (u, w) = crate::rpes::cpu::points_of(n, &[x], table);
                let want = boys(2 * n - 1, x);
                for (m, want) in want.iter().enumerate() {
                    let found: f64 = (0..n).map(|i| w[i][0] * u[i][0].powi(m as i32)).sum();
                    assert!(
                        (found / want - 1.0).abs() < 2e-12,
                        "{n} points, X = {x}, m = {m}: {found} {want}"
                    );
                }
            }
        }
    }
}
