//! The oracle, in f64.

/// The convolution at (y, x): Σ down\[j\] across\[i\] image\[y − j, x − i\], taps from −radius on.
pub fn pixel(
    image: &[f32],
    [rows, columns]: [usize; 2],
    across: &[f32],
    down: &[f32],
    [y, x]: [usize; 2],
) -> f64 {
    let (rx, ry) = (across.len() as isize / 2, down.len() as isize / 2);
    let mut sum = 0.0;
    for (j, &d) in down.iter().enumerate() {
        let row = (y as isize + ry - j as isize).clamp(0, rows as isize - 1) as usize;
        for (i, &a) in across.iter().enumerate() {
            let column = (x as isize + rx - i as isize).clamp(0, columns as isize - 1) as usize;
            sum += f64::from(d) * f64::from(a) * f64::from(image[row * columns + column]);
        }
    }
    sum
}
