//! The f64 reference.

/// q(i) = Σ_j h(|i − j|) p(j), row by row; rows are as long as the kernel.
pub fn convolve(kernel: &[f64], rows: &[f64]) -> Vec<f64> {
    let len = kernel.len();
    let row = |p: &[f64]| -> Vec<f64> {
        (0..len).map(|i| (0..len).map(|j| kernel[i.abs_diff(j)] * p[j]).sum()).collect()
    };
    rows.chunks(len).flat_map(row).collect()
}

/// to(first + v, r, c) + Σ_s values(v, s, r) responses(v, s, c).
pub fn added(
    [first, views, sides]: [usize; 3],
    [rows, columns]: [usize; 2],
    values: &[f32],
    responses: &[f32],
    to: &[f32],
) -> Vec<f64> {
    let mut sums: Vec<f64> = to.iter().map(|&value| f64::from(value)).collect();
    for index in 0..views * sides * rows * columns {
        let (c, r) = (index % columns, index / columns % rows);
        let of_side = index / columns / rows;
        let (value, response) = (values[of_side * rows + r], responses[of_side * columns + c]);
        let line = (first + of_side / sides) * rows + r;
        sums[line * columns + c] += f64::from(value) * f64::from(response);
    }
    sums
}
