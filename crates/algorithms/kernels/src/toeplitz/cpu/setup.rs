//! From the kernel to its spectrum.

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Real, Result};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::cpu::zeroed;

use super::super::check_hermitian;
use super::{Convolution, Parts, TASK_ELEMENTS};
use crate::fft::Direction;
use crate::fft::cpu::FftNd;
use crate::fft::cpu::lanes::{Decimation, split};
use crate::fft::cpu::line::COLUMNS;

impl<R: SimdReal> Convolution<R> {
    /// The spectrum of Q from its planes of first displacement ≥ 0. The other planes are their conjugate
    /// mirrors. Lines along the first axis are therefore Hermitian, and their transform is real.
    pub(super) fn transform_kernel(&self, cpu: &Cpu, rank: usize, q: &[Complex<R>]) -> Result<Vec<R>> {
        let [n0, n1, n2] = self.matrix;
        let [p0, p1, p2] = self.padded;
        // A missing axis is not doubled: its only displacement is at index 0.
        let doubled = |axis: usize, n: usize| match (rank, axis) {
            (1, 0 | 1) | (2, 1) => (1, 0),
            _ => (2 * n, n),
        };
        let (_, c0) = doubled(0, n0);
        let (m1, c1) = doubled(1, n1);
        let (m2, c2) = doubled(2, n2);
        let Parts { count, width } = self.parts;
        let mut lease = self.work.take()?;
        let half = <R as Real>::from_f64(0.5);
        let zero = Complex::new(R::zero(), R::zero());
        let (plane, block) = (p1 * width, p0 * COLUMNS);
        let of_part = plane.div_ceil(COLUMNS) * block;
        let mut spectrum = zeroed::<R>("Toeplitz spectrum", count * of_part)?;
        let scale = R::one() / <R as Real>::from_f64((p0 * p1 * p2) as f64);
        for (part, spectrum) in spectrum.chunks_exact_mut(of_part).enumerate() {
            let sums: Vec<(f64, f64)> = cpu.run(|| {
                lease
                    .par_chunks_exact_mut(plane)
                    .enumerate()
                    .map(|(d0, plane)| {
                        plane.fill(zero);
                        let (mut odd, mut total) = (0.0, 0.0);
                        for d1 in 1 - n1 as isize..n1 as isize {
                            let row = &mut plane[wrap(d1, p1) * width..][..width];
                            let line = |sign: isize| {
                                let at0 = c0.wrapping_add_signed(sign * d0 as isize);
                                let at1 = c1.wrapping_add_signed(sign * d1);
                                &q[(at0 * m1 + at1) * m2..][..m2]
                            };
                            let (there, back) = (line(1), line(-1));
                            for d2 in 1 - n2 as isize..n2 as isize {
                                let a = there[c2.wrapping_add_signed(d2)];
                                let b = back[c2.wrapping_add_signed(-d2)].conj();
                                let (column, value) = (wrap(d2, p2), (a + b).scale(half));
                                row[column % width] +=
                                    if part == 0 { value } else { value * self.turn[column] };
                                odd += norm_sqr(a - b) / 4.0;
                                total += norm_sqr(a);
                            }
                        }
                        (odd, total)
                    })
                    .collect()
            });
            let (odd, total) = sums.iter().fold((0.0, 0.0), |(odd, total), (o, a)| (odd + o, total + a));
            check_hermitian(odd, total, || Ok(q.into()))?;
            FftNd::new(&[p1, width])?.process(cpu, &mut lease, Direction::Forward)?;
            let half = &*lease;
            cpu.run(|| {
                spectrum
                    .par_chunks_exact_mut(block)
                    .with_min_len((TASK_ELEMENTS / block).max(1))
                    .enumerate()
                    .for_each_init(
                        || vec![[R::zero(); 2 * COLUMNS]; p0],
                        |rows, (block, out)| {
                            rows.fill([R::zero(); 2 * COLUMNS]);
                            let first = block * COLUMNS;
                            let width = COLUMNS.min(plane - first);
                            for d0 in 0..n0 {
                                let from = &half[d0 * plane + first..][..width];
                                split::<R, false>(from, &mut rows[d0]);
                                let mut mirrored = rows[d0];
                                mirrored[COLUMNS..].iter_mut().for_each(|im| *im = -*im);
                                if d0 > 0 {
                                    rows[p0 - d0] = mirrored;
                                }
                            }
                            self.first.process(cpu.level(), rows, Decimation::Frequency);
                            for (out, row) in out.chunks_exact_mut(COLUMNS).zip(&*rows) {
                                for (out, re) in out.iter_mut().zip(&row[..COLUMNS]) {
                                    *out = *re * scale;
                                }
                            }
                        },
                    );
            });
        }
        Ok(spectrum)
    }
}

/// |value|² in f64, which no f32 overflows.
fn norm_sqr<R: Real>(value: Complex<R>) -> f64 {
    value.re.to_f64() * value.re.to_f64() + value.im.to_f64() * value.im.to_f64()
}

/// `displacement` modulo `n`.
fn wrap(displacement: isize, n: usize) -> usize {
    displacement.rem_euclid(n as isize) as usize
}
