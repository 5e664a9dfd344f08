//! The spreading kernel: Kaiser–Bessel, its Fourier transform in closed form, and its piecewise polynomials.

use std::f64::consts::PI;

/// The widest kernel, in fine-grid cells.
pub(crate) const MAX_WIDTH: usize = 16;

/// φ(t) = I₀(β√(1 − (2t/W)²)) / I₀(β) for |t| ≤ W/2 fine-grid cells, 0 beyond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Kernel {
    pub(crate) width: usize,
    pub(crate) beta: f64,
    /// I₀(β).
    pub(crate) peak: f64,
}

/// Relative l2 error of a d-dimensional transform by aliasing alone, for random points and coefficients: √d ·
/// 5.5g · e^{−πW√g} · (1 + 0.3g^{−1.6}e^{−W}), g = 1 − 1/σ. It is fitted to sums over aliases, within 12 %
/// for W = 2 … 12.
pub(crate) fn aliasing(width: usize, upsampling: f64, dims: usize) -> f64 {
    let gap = 1.0 - 1.0 / upsampling;
    let narrow = 1.0 + 0.3 * gap.powf(-1.6) * (-(width as f64)).exp();
    (dims as f64).sqrt() * 5.5 * gap * (-PI * gap.sqrt() * width as f64).exp() * narrow
}

/// Number of coefficients of the piecewise polynomials. Their error stays a tenth of the kernel's aliasing at
/// upsampling 2, which is the largest upsampling and has the steepest kernel.
pub(crate) const fn terms(width: usize) -> usize {
    match width {
        0..=3 => width + 3,
        4..=9 => width + 2,
        _ => width + 1,
    }
}

impl Kernel {
    /// The narrowest kernel whose aliasing and rounding are at most `tolerance` each, or the least tolerance
    /// that any kernel reaches.
    pub(crate) fn for_tolerance(
        tolerance: f64,
        upsampling: f64,
        dims: usize,
        epsilon: f64,
    ) -> std::result::Result<Self, f64> {
        let mut least = f64::INFINITY;
        for width in 2..=MAX_WIDTH {
            let kernel = Self::new(width, upsampling);
            let error = aliasing(width, upsampling, dims).max(kernel.rounding(upsampling, dims, epsilon));
            if error <= tolerance {
                return Ok(kernel);
            }
            least = least.min(error);
        }
        Err(least)
    }

    /// Relative l2 error by rounding. The FFT's error, about unit round-off, spreads evenly over the modes
    /// and is divided by φ̂. It grows by rms φ̂ · rms 1/φ̂ over the kept modes along every axis.
    pub(crate) fn rounding(&self, upsampling: f64, dims: usize, epsilon: f64) -> f64 {
        let nodes = 32;
        let (mut square, mut inverse) = (0.0, 0.0);
        for i in 0..nodes {
            let value = self.fourier((f64::from(i) + 0.5) / f64::from(nodes) * 0.5 / upsampling);
            square += value * value / f64::from(nodes);
            inverse += 1.0 / (value * value) / f64::from(nodes);
        }
        epsilon * (square * inverse).sqrt().powi(dims as i32)
    }

    /// The kernel of a width. Its shape parameter is β = γπW(1 − 1/2σ) with γ = 1 − 0.37 / (W²√(1 − 1/σ)),
    /// fitted for the least root-mean-square aliasing over the kept modes.
    pub(crate) fn new(width: usize, upsampling: f64) -> Self {
        let w = width as f64;
        let gamma = 1.0 - 0.37 / (w * w * (1.0 - 1.0 / upsampling).sqrt());
        let beta = gamma * PI * w * (1.0 - 0.5 / upsampling);
        Self { width, beta, peak: bessel_i0(beta) }
    }

    /// φ at `t` cells from the centre, continued analytically a little beyond the edge.
    pub(crate) fn value(&self, t: f64) -> f64 {
        let z = 2.0 * t / self.width as f64;
        // I₀(β√y) is entire in y, so that rounding 1 − z² below zero is harmless.
        i0_of_square(self.beta * self.beta * (1.0 - z * z)) / self.peak
    }

    /// φ̂(ξ) = ∫ φ(t) e^{i2πξt} dt = W sinh(s)/(s I₀(β)), s = √(β² − (πWξ)²), ξ in cycles per cell.
    pub(crate) fn fourier(&self, xi: f64) -> f64 {
        let w = self.width as f64;
        let square = self.beta * self.beta - (PI * w * xi).powi(2);
        let ratio = if square.abs() < 1e-8 {
            1.0 + square / 6.0
        } else if square > 0.0 {
            square.sqrt().sinh() / square.sqrt()
        } else {
            (-square).sqrt().sin() / (-square).sqrt()
        };
        w * ratio / self.peak
    }

    /// Coefficients `[term][tap]`, highest power first, of polynomials in z ∈ \[−1, 1). They give the kernel
    /// at the W grid cells of a footprint. Cell t lies (z − W + 1)/2 + t cells from the point.
    ///
    /// Interpolation at Chebyshev nodes, whose error is within a small factor of the best polynomial's.
    pub(crate) fn polynomials(&self) -> Vec<Vec<f64>> {
        let n = terms(self.width);
        let nodes: Vec<f64> = (0..n).map(|i| (PI * (i as f64 + 0.5) / n as f64).cos()).collect();
        let taps: Vec<Vec<f64>> = (0..self.width)
            .map(|tap| {
                let values: Vec<f64> = nodes
                    .iter()
                    .map(|z| self.value((z - self.width as f64 + 1.0) / 2.0 + tap as f64))
                    .collect();
                let chebyshev: Vec<f64> = (0..n)
                    .map(|k| {
                        let sum: f64 = (0..n)
                            .map(|i| values[i] * (PI * k as f64 * (i as f64 + 0.5) / n as f64).cos())
                            .sum();
                        sum * if k == 0 { 1.0 } else { 2.0 } / n as f64
                    })
                    .collect();
                monomials(&chebyshev)
            })
            .collect();
        (0..n).map(|term| taps.iter().map(|powers| powers[n - 1 - term]).collect()).collect()
    }
}

/// Coefficients of Σ c_k T_k(z) in powers of z, lowest first.
fn monomials(chebyshev: &[f64]) -> Vec<f64> {
    let n = chebyshev.len();
    let mut out = vec![0.0; n];
    let mut before = vec![0.0; n];
    let mut current = vec![0.0; n];
    current[0] = 1.0;
    for (k, c) in chebyshev.iter().enumerate() {
        for (o, t) in out.iter_mut().zip(&current) {
            *o += c * t;
        }
        // T_{k+1} = 2zT_k − T_{k−1}, and T_1 = z.
        let factor = if k == 0 { 1.0 } else { 2.0 };
        let next: Vec<f64> =
            (0..n).map(|p| factor * if p > 0 { current[p - 1] } else { 0.0 } - before[p]).collect();
        before = std::mem::replace(&mut current, next);
    }
    out
}

/// I₀(x) = Σ (x²/4)^k / (k!)².
fn bessel_i0(x: f64) -> f64 {
    i0_of_square(x * x)
}

/// I₀(√y); all terms are positive for y ≥ 0, so the sum keeps full precision.
fn i0_of_square(y: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..200 {
        term *= 0.25 * y / f64::from(k * k);
        sum += term;
        if term.abs() <= 1e-17 * sum.abs() {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bessel_function_has_its_tabulated_values() {
        // Abramowitz & Stegun, table 9.8 and 9.9 (values times e^x undone).
        assert!((bessel_i0(1.0) - 1.266_065_877_752_008_4).abs() < 1e-15);
        assert!((bessel_i0(5.0) / 27.239_871_823_604_44 - 1.0).abs() < 1e-14);
        assert!((bessel_i0(20.0) / 4.355_828_255_955_353e7 - 1.0).abs() < 1e-14);
    }

    #[test]
    fn the_closed_form_is_the_fourier_integral() {
        for width in 2..=MAX_WIDTH {
            for sigma in [1.25, 2.0] {
                let kernel = Kernel::new(width, sigma);
                for xi in [0.0, 0.1, 0.25, 0.4, 0.9] {
                    // z = sin θ smooths the edges, so the midpoint rule converges fast.
                    let n = 4000;
                    let half = width as f64 / 2.0;
                    let sum: f64 = (0..n)
                        .map(|i| {
                            let theta = PI * ((i as f64 + 0.5) / n as f64 - 0.5);
                            let t = half * theta.sin();
                            kernel.value(t) * (2.0 * PI * xi * t).cos() * theta.cos()
                        })
                        .sum();
                    let integral = sum * half * PI / n as f64;
                    assert!(
                        (integral - kernel.fourier(xi)).abs() < 1e-6 * kernel.fourier(0.0),
                        "W {width}, σ {sigma}, ξ {xi}: {integral} {}",
                        kernel.fourier(xi)
                    );
                }
            }
        }
    }

    #[test]
    fn polynomials_follow_the_kernel() {
        for width in 2..=MAX_WIDTH {
            for sigma in [1.25, 1.5, 2.0] {
                let kernel = Kernel::new(width, sigma);
                let rows = kernel.polynomials();
                let mut worst: f64 = 0.0;
                for tap in 0..width {
                    for i in 0..=50 {
                        let z = i as f64 / 25.0 - 1.0;
                        let p = rows.iter().fold(0.0, |acc, row| acc * z + row[tap]);
                        let exact = kernel.value((z - width as f64 + 1.0) / 2.0 + tap as f64);
                        worst = worst.max((p - exact).abs());
                    }
                }
                let edge = kernel.fourier(0.5 / sigma);
                let allowed = 0.15 * aliasing(width, sigma, 1) * edge / (width as f64).sqrt() + 1e-14;
                assert!(worst < allowed, "W {width}, σ {sigma}: {worst:e} above {allowed:e}");
            }
        }
    }

    #[test]
    fn aliasing_is_what_the_sum_over_aliases_gives() {
        for (sigma, widths) in [(1.25, 2..=13), (1.5, 2..=12), (2.0, 2..=11)] {
            for width in widths {
                let kernel = Kernel::new(width, sigma);
                let modes = 64;
                let mean: f64 = (0..modes)
                    .map(|i| {
                        let xi = (i as f64 + 0.5) / modes as f64 * 0.5 / sigma;
                        let aliases: f64 = (1..2000)
                            .map(|l| {
                                kernel.fourier(xi + f64::from(l)).powi(2)
                                    + kernel.fourier(xi - f64::from(l)).powi(2)
                            })
                            .sum();
                        aliases / kernel.fourier(xi).powi(2)
                    })
                    .sum::<f64>()
                    / modes as f64;
                let ratio = mean.sqrt() / aliasing(width, sigma, 1);
                assert!((0.85..1.1).contains(&ratio), "W {width}, σ {sigma}: {ratio}");
            }
        }
    }
}
