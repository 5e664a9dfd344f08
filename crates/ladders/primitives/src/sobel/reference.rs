//! The oracle: exact.

/// The pixel at (y, x), the nearest one where that is outside.
fn at(image: &[u8], rows: usize, columns: usize, y: isize, x: isize) -> i32 {
    let y = y.clamp(0, rows as isize - 1) as usize;
    let x = x.clamp(0, columns as isize - 1) as usize;
    i32::from(image[y * columns + x])
}

/// The scaled sum of gradients at (y, x).
pub fn pixel(image: &[u8], rows: usize, columns: usize, scale: f32, y: usize, x: usize) -> u8 {
    let p = |dy: isize, dx: isize| at(image, rows, columns, y as isize + dy, x as isize + dx);
    let across = p(-1, 1) + 2 * p(0, 1) + p(1, 1) - p(-1, -1) - 2 * p(0, -1) - p(1, -1);
    let down = p(1, -1) + 2 * p(1, 0) + p(1, 1) - p(-1, -1) - 2 * p(-1, 0) - p(-1, 1);
    let sum = across.abs() + down.abs();
    (sum as f32 * scale).trunc().clamp(0.0, 255.0) as u8
}
