//! The plainest form: one line at a time on one thread.

use num_complex::Complex;
use rayspin_core::Real;

use super::{Direction, FftNd};

/// Copies every line of every axis to a buffer, transforms it and copies it back: along the first axis of a
/// large array each element costs a cache line.
pub(crate) fn process<R: Real>(fft: &FftNd<R>, data: &mut [Complex<R>], direction: Direction) {
    let mut inner = fft.len();
    for (axis, &n) in fft.shape().iter().enumerate() {
        inner /= n;
        let plan = fft.line(axis, direction);
        let zero = Complex::new(R::zero(), R::zero());
        let (mut line, mut scratch) = (vec![zero; n], vec![zero; plan.get_inplace_scratch_len()]);
        for outer in 0..data.len() / (n * inner) {
            for column in 0..inner {
                let first = outer * n * inner + column;
                for (j, value) in line.iter_mut().enumerate() {
                    *value = data[first + j * inner];
                }
                plan.process_with_scratch(&mut line, &mut scratch);
                for (j, value) in line.iter().enumerate() {
                    data[first + j * inner] = *value;
                }
            }
        }
    }
}
