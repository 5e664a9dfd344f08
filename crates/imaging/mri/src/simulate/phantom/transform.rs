//! The Fourier transforms of ellipses and ellipsoids, many shifted points at a time.

use std::f64::consts::{PI, TAU};

use rayspin_core::C64;

use super::{Ellipsoid, Phantom};

/// J₁(2πK)/K; π at K = 0.
pub(super) fn jinc(k: f64) -> f64 {
    if k < 1e-150 { PI } else { libm::j1(TAU * k) / k }
}

/// (sin 2πK − 2πK cos 2πK)/(2π²K³) = 4π (sin x − x cos x)/x³ with x = 2πK; 4π/3 at K = 0.
pub(super) fn ball(k: f64) -> f64 {
    let x = TAU * k;
    let x2 = x * x;
    if x < 0.7 {
        // The difference cancels for small x: Σ (−1)ⁿ 2(n+1) x^{2n}/(2n+3)!, whose ninth term is below 1e-18
        // here.
        let mut term = 1.0 / 3.0;
        let mut sum = term;
        for n in 1..8 {
            let m = n as f64;
            term *= -x2 * (m + 1.0) / (m * (2.0 * m + 2.0) * (2.0 * m + 3.0));
            sum += term;
        }
        2.0 * TAU * sum
    } else {
        let (sin, cos) = x.sin_cos();
        2.0 * TAU * (sin - x * cos) / (x2 * x)
    }
}

/// A radial function as polynomials of degree 11 on cells a quarter of a cycle wide: within 1e-13 of its
/// value at 0, ten times faster than the Bessel function.
struct Table {
    exact: fn(f64) -> f64,
    cells: Vec<[f64; TERMS]>,
}

const TERMS: usize = 12;
const CELLS_PER_CYCLE: f64 = 4.0;

impl Table {
    /// Covers 0 … `reach`; beyond it the function itself is called.
    fn new(exact: fn(f64) -> f64, reach: f64) -> Self {
        let count = (reach * CELLS_PER_CYCLE).ceil().clamp(0.0, 1e5) as usize;
        Self { exact, cells: (0..count).map(|cell| chebyshev_cell(exact, cell as f64)).collect() }
    }

    #[inline(always)]
    fn at(&self, k: f64) -> f64 {
        let place = k * CELLS_PER_CYCLE;
        let cell = place as usize;
        match self.cells.get(cell) {
            Some(c) => {
                let t = 2.0 * (place - cell as f64) - 1.0;
                // Three interleaved chains, so that one does not wait for itself.
                let (t2, t3) = (t * t, t * t * t);
                let chain =
                    |from: usize| c[from] + t3 * (c[from + 3] + t3 * (c[from + 6] + t3 * c[from + 9]));
                chain(0) + t * chain(1) + t2 * chain(2)
            }
            None => (self.exact)(k),
        }
    }
}

/// Coefficients of t⁰ … t¹¹ on a cell (t from −1 to 1) of the interpolant at Chebyshev nodes, whose error
/// there is at most (π/4)¹²/(2¹¹ 12!) = 6e-14 of the function's amplitude.
fn chebyshev_cell(f: fn(f64) -> f64, cell: f64) -> [f64; TERMS] {
    let angle = |i: usize| PI * (i as f64 + 0.5) / TERMS as f64;
    let values: [f64; TERMS] =
        std::array::from_fn(|i| f((cell + 0.5 + 0.5 * angle(i).cos()) / CELLS_PER_CYCLE));
    let mut out = [0.0; TERMS];
    // T₀ and T₁ as powers of t; T_{m+1} = 2t T_m − T_{m−1}.
    let (mut before, mut now) = ([0.0; TERMS], [0.0; TERMS]);
    now[0] = 1.0;
    for m in 0..TERMS {
        let sum: f64 = (0..TERMS).map(|i| values[i] * (m as f64 * angle(i)).cos()).sum();
        let coefficient = sum * if m == 0 { 1.0 } else { 2.0 } / TERMS as f64;
        for (to, from) in out.iter_mut().zip(&now) {
            *to += coefficient * from;
        }
        let double = if m == 0 { 1.0 } else { 2.0 };
        let next = std::array::from_fn(|i| if i > 0 { double * now[i - 1] } else { 0.0 } - before[i]);
        (before, now) = (now, next);
    }
    out
}

/// ρ̂(k − κ_j) for a fixed list of shifts κ_j: what no k changes is computed once.
///
/// The axes' map u = diag(a, b, c)·Rᵀk is linear, so u(k − κ) = u(k) − u(κ). The centre's phase factors into
/// e^{−i2πk·c}·e^{+i2πκ·c}. For each pair of shift and ellipsoid there remain one square root and one radial
/// function.
pub(crate) struct Evaluator {
    radial: Table,
    parts: Vec<Prepared>,
}

struct Prepared {
    /// Rows of diag(a, b, c)·Rᵀ.
    axes: [[f64; 3]; 3],
    centre: [f64; 3],
    /// Intensity times the semi-axes.
    weight: f64,
    /// u(κ_j), one list a component.
    shifts: [Vec<f64>; 3],
    /// e^{+i2πκ_j·c}.
    factors: Vec<C64>,
}

/// Harmonics taken at once: enough for the square roots to be vectors, few enough for their lengths to stay
/// in cache.
const LANES: usize = 16;

impl Evaluator {
    /// For a phantom and shifts in cycles per field of view (the third component is ignored in 2-D). Points
    /// up to |k| = `reach` take tabulated radial functions, others exact ones.
    pub(crate) fn new(phantom: &Phantom, shifts: &[[f64; 3]], reach: f64) -> Self {
        let dims = phantom.dims;
        let longest = |v: &[f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let axis = phantom.parts.iter().flat_map(|p| p.semi_axes[..dims].iter().copied()).fold(0.0, f64::max);
        let shift = shifts.iter().map(longest).fold(0.0, f64::max);
        let table_reach = if reach > 0.0 { axis * (reach + shift) } else { 0.0 };
        Self {
            radial: Table::new(if dims == 2 { jinc } else { ball }, table_reach),
            parts: phantom.parts.iter().map(|p| Prepared::new(p, dims, shifts)).collect(),
        }
    }

    /// Writes ρ̂(k − κ_j) into `out[j]`.
    pub(crate) fn evaluate(&self, k: [f64; 3], out: &mut [C64]) {
        out.fill(C64::default());
        for part in &self.parts {
            let u = apply(&part.axes, k);
            let turns: f64 = (0..3).map(|axis| k[axis] * part.centre[axis]).sum();
            let phase = C64::cis(-TAU * turns) * part.weight;
            let [s0, s1, s2] = part.shifts.each_ref().map(|s| s.chunks(LANES));
            let groups = out.chunks_mut(LANES).zip(part.factors.chunks(LANES));
            for ((values, factors), ((s0, s1), s2)) in groups.zip(s0.zip(s1).zip(s2)) {
                let mut radii = [0.0; LANES];
                for (((radius, s0), s1), s2) in radii.iter_mut().zip(s0).zip(s1).zip(s2) {
                    let d = [u[0] - s0, u[1] - s1, u[2] - s2];
                    *radius = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt();
                }
                for ((value, factor), radius) in values.iter_mut().zip(factors).zip(radii) {
                    *value += phase * factor * self.radial.at(radius);
                }
            }
        }
    }
}

impl Prepared {
    fn new(part: &Ellipsoid, dims: usize, shifts: &[[f64; 3]]) -> Self {
        let (sin, cos) = part.angle.sin_cos();
        let [a, b, c] = part.semi_axes;
        let third = if dims == 3 { c } else { 0.0 };
        let axes = [[a * cos, a * sin, 0.0], [-b * sin, b * cos, 0.0], [0.0, 0.0, third]];
        let mut centre = part.centre;
        if dims == 2 {
            centre[2] = 0.0;
        }
        let moved: Vec<[f64; 3]> = shifts.iter().map(|kappa| apply(&axes, *kappa)).collect();
        let turns = |kappa: &[f64; 3]| (0..3).map(|axis| kappa[axis] * centre[axis]).sum::<f64>();
        Self {
            axes,
            centre,
            weight: part.intensity * a * b * if dims == 3 { c } else { 1.0 },
            shifts: std::array::from_fn(|axis| moved.iter().map(|u| u[axis]).collect()),
            factors: shifts.iter().map(|kappa| C64::cis(TAU * turns(kappa))).collect(),
        }
    }
}

fn apply(rows: &[[f64; 3]; 3], k: [f64; 3]) -> [f64; 3] {
    rows.map(|row| row[0] * k[0] + row[1] * k[1] + row[2] * k[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_function() {
        for exact in [jinc as fn(f64) -> f64, ball] {
            let table = Table::new(exact, 150.0);
            for i in 0..200_000 {
                let k = i as f64 * 150.3 / 2e5;
                let (found, expected) = (table.at(k), exact(k));
                assert!((found - expected).abs() < 4e-13, "{k}: {found} against {expected}");
            }
        }
    }
}
