//! The transform as a matrix a level and axis, in f64.

use rayspin_core::C64;

use super::{Family, Plan};

/// The matrix of one level along an axis of `n` elements: rows low, high and, for odd `n`, the element left
/// over.
pub fn matrix(n: usize, family: Family) -> Vec<Vec<f64>> {
    let (low, high) = (family.low(), family.high());
    let half = n / 2;
    let mut rows = vec![vec![0.0; n]; n];
    for k in 0..half {
        for (j, (l, h)) in low.iter().zip(&high).enumerate() {
            let i = (2 * k + j) % (2 * half);
            rows[k][i] += l;
            rows[half + k][i] += h;
        }
    }
    if n % 2 == 1 {
        rows[n - 1][n - 1] = 1.0;
    }
    rows
}

/// Multiplies the box of `size` elements at the origin of `x` along `axis` by a matrix, or by its transpose.
fn along(shape: &[usize], size: &[usize], axis: usize, rows: &[Vec<f64>], transpose: bool, x: &mut [C64]) {
    let stride = |a: usize| shape[a + 1..].iter().product::<usize>();
    for start in 0..x.len() {
        let index = |a: usize| start / stride(a) % shape[a];
        if index(axis) != 0 || (0..shape.len()).any(|a| index(a) >= size[a]) {
            continue;
        }
        let n = size[axis];
        let line: Vec<C64> = (0..n).map(|i| x[start + i * stride(axis)]).collect();
        for r in 0..n {
            let entry = |i: usize| if transpose { rows[i][r] } else { rows[r][i] };
            x[start + r * stride(axis)] = (0..n).map(|i| line[i] * entry(i)).sum();
        }
    }
}

/// x(i + shift), or with `back` x(i − shift), on a torus, along the axes that the first level splits.
fn roll(plan: &Plan, shift: &[usize], back: bool, x: &[C64]) -> Vec<C64> {
    let shape = plan.shape();
    let stride = |a: usize| shape[a + 1..].iter().product::<usize>();
    let moved = |i: usize| -> usize {
        (0..shape.len())
            .map(|a| {
                let (n, position) = (shape[a], i / stride(a) % shape[a]);
                let by = if plan.levels().first().is_some_and(|l| l.split[a]) { shift[a] % n } else { 0 };
                (if back { position + n - by } else { position + by }) % n * stride(a)
            })
            .sum()
    };
    (0..x.len()).map(|i| x[moved(i)]).collect()
}

/// The coefficients of `x` shifted by `shift`.
pub fn forward(plan: &Plan, shift: &[usize], x: &[C64]) -> Vec<C64> {
    let mut out = roll(plan, shift, false, x);
    for level in plan.levels() {
        for axis in (0..plan.shape().len()).filter(|&a| level.split[a]) {
            let rows = matrix(level.size[axis], plan.family());
            along(plan.shape(), &level.size, axis, &rows, false, &mut out);
        }
    }
    out
}

/// The transpose of [`forward`], which is its inverse.
pub fn inverse(plan: &Plan, shift: &[usize], c: &[C64]) -> Vec<C64> {
    let mut out = c.to_vec();
    for level in plan.levels().iter().rev() {
        for axis in (0..plan.shape().len()).filter(|&a| level.split[a]) {
            let rows = matrix(level.size[axis], plan.family());
            along(plan.shape(), &level.size, axis, &rows, true, &mut out);
        }
    }
    roll(plan, shift, true, &out)
}
