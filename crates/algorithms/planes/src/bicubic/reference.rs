//! The oracle, in f64.

use super::Kernel;

/// k(t), the weight of a pixel at distance t.
pub fn weight(kernel: Kernel, t: f64) -> f64 {
    let t = t.abs();
    match kernel {
        Kernel::Keys(a) => {
            let a = f64::from(a);
            match t {
                ..1.0 => (a + 2.0) * t.powi(3) - (a + 3.0) * t.powi(2) + 1.0,
                ..2.0 => a * (t.powi(3) - 5.0 * t.powi(2) + 8.0 * t - 4.0),
                _ => 0.0,
            }
        }
        Kernel::Spline => match t {
            ..1.0 => 2.0 / 3.0 - t.powi(2) + t.powi(3) / 2.0,
            ..2.0 => (2.0 - t).powi(3) / 6.0,
            _ => 0.0,
        },
    }
}

/// Where pixel `pixel` of `to` lies among `from`: the pixel before it and the distance from that.
pub fn place(pixel: usize, from: usize, to: usize) -> (isize, f64) {
    let x = (pixel as f64 + 0.5) * from as f64 / to as f64 - 0.5;
    (x.floor() as isize, x - x.floor())
}

/// The resampled value at (y, x) of `to`, not rounded.
pub fn pixel<T: Copy + Into<f64>>(
    image: &[T],
    from: [usize; 2],
    to: [usize; 2],
    kernel: Kernel,
    [y, x]: [usize; 2],
) -> f64 {
    let ((y0, v), (x0, u)) = (place(y, from[0], to[0]), place(x, from[1], to[1]));
    let mut sum = 0.0;
    for j in -1..=2isize {
        let row = (y0 + j).clamp(0, from[0] as isize - 1) as usize;
        for i in -1..=2isize {
            let column = (x0 + i).clamp(0, from[1] as isize - 1) as usize;
            let value: f64 = image[row * from[1] + column].into();
            sum += weight(kernel, v - j as f64) * weight(kernel, u - i as f64) * value;
        }
    }
    sum
}
