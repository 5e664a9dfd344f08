//! The oracle.

/// (Σ_k a\[i, k\] b\[k, j\], ‖a\[i, :\]‖ ‖b\[:, j\]‖) in f64, for C-order matrices of `inner` columns and
/// rows.
pub fn product(a: &[f32], b: &[f32], [columns, inner]: [usize; 2], [i, j]: [usize; 2]) -> (f64, f64) {
    let (mut sum, mut left, mut right) = (0.0, 0.0, 0.0);
    for k in 0..inner {
        let (x, y) = (f64::from(a[i * inner + k]), f64::from(b[k * columns + j]));
        sum += x * y;
        left += x * x;
        right += y * y;
    }
    (sum, (left * right).sqrt())
}
