//! The f64 reference.

/// q(i) = Σ_j h(|i − j|) p(j), row by row; rows are as long as the kernel.
pub fn convolve(kernel: &[f64], rows: &[f64]) -> Vec<f64> {
    let len = kernel.len();
    let row = |p: &[f64]| -> Vec<f64> {
        (0..len).map(|i| (0..len).map(|j| kernel[i.abs_diff(j)] * p[j]).sum()).collect()
    };
    rows.chunks(len).flat_map(row).collect()
}
