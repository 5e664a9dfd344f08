//! The oracle: exact for bytes, f64 otherwise.

/// The pixel at (y, x), the nearest one where that is outside.
fn at<T: Copy>(image: &[T], rows: usize, columns: usize, y: isize, x: isize) -> T {
    let y = y.clamp(0, rows as isize - 1) as usize;
    let x = x.clamp(0, columns as isize - 1) as usize;
    image[y * columns + x]
}

/// The mean around (y, x), for bytes before it is rounded.
pub fn pixel<T: Copy + Into<f64>>(
    image: &[T],
    [rows, columns]: [usize; 2],
    radius: usize,
    [y, x]: [usize; 2],
) -> f64 {
    let r = radius as isize;
    let mut sum = 0.0;
    for j in -r..=r {
        for i in -r..=r {
            sum += at(image, rows, columns, y as isize + j, x as isize + i).into();
        }
    }
    sum / (2.0 * radius as f64 + 1.0).powi(2)
}
