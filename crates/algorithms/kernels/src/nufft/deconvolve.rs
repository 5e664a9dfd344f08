//! Between the image and the low modes of the fine grid: division by the kernel's Fourier transform.

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::Real;
use rayspin_device::Cpu;
use rayspin_device::cpu::PoolLoop;

use super::cpu::pass_rows;
use super::kernel::Kernel;
use super::layout::Layout;

/// 1/φ̂(m/n_fine) for every index of every axis z, y, x, index ⌊n/2⌋ being mode m = 0.
#[derive(Debug)]
pub(crate) struct Deconvolution<R> {
    matrix: [usize; 3],
    fine: [usize; 3],
    factors: [Vec<R>; 3],
}

impl<R: Real> Deconvolution<R> {
    pub(crate) fn new(matrix: &[usize], layout: &Layout, kernel: &Kernel) -> Self {
        let mut sizes = [1; 3];
        sizes[3 - matrix.len()..].copy_from_slice(matrix);
        let factors = std::array::from_fn(|axis| {
            if axis < layout.outer() {
                return vec![R::one()];
            }
            let n = sizes[axis];
            (0..n)
                .map(|i| {
                    let mode = i as f64 - (n / 2) as f64;
                    <R as Real>::from_f64(1.0 / kernel.fourier(mode / layout.fine[axis] as f64))
                })
                .collect()
        });
        Self { matrix: sizes, fine: layout.fine, factors }
    }

    /// Start of the fine grid's row that holds image row (z, y).
    fn fine_row(&self, row: usize) -> usize {
        let [_, ny, _] = self.matrix;
        let wrap = |i: usize, axis: usize| (i + self.fine[axis] - self.matrix[axis] / 2) % self.fine[axis];
        (wrap(row / ny, 0) * self.fine[1] + wrap(row % ny, 1)) * self.fine[2]
    }

    fn row_factor(&self, row: usize) -> R {
        let [_, ny, _] = self.matrix;
        self.factors[0][row / ny] * self.factors[1][row % ny]
    }

    /// image\[x\] = grid\[mode of x\] / φ̂.
    pub(crate) fn crop(&self, cpu: &Cpu, grid: &[Complex<R>], image: &mut [Complex<R>]) {
        let [_, _, nx] = self.matrix;
        let rows = pass_rows(nx);
        cpu.run(|| {
            image.par_chunks_mut(nx).with_min_len(rows).enumerate().each(|(row, to)| {
                let from = &grid[self.fine_row(row)..][..self.fine[2]];
                let factor = self.row_factor(row);
                let (negative, positive) = to.split_at_mut(nx / 2);
                let (fn_, fp) = self.factors[2].split_at(nx / 2);
                let tail = &from[self.fine[2] - nx / 2..];
                for ((t, f), p) in negative.iter_mut().zip(tail).zip(fn_) {
                    *t = *f * (factor * *p);
                }
                for ((t, f), p) in positive.iter_mut().zip(from).zip(fp) {
                    *t = *f * (factor * *p);
                }
            });
        });
    }

    /// grid\[mode of x\] = image\[x\] / φ̂; the rest of the grid is left as it is.
    pub(crate) fn pad(&self, cpu: &Cpu, image: &[Complex<R>], grid: &mut [Complex<R>]) {
        let [_, ny, nx] = self.matrix;
        let [fz, fy, fx] = self.fine;
        let unwrap = |i: usize, fine: usize, n: usize| {
            let index = (i + n / 2) % fine;
            (index < n).then_some(index)
        };
        let rows = pass_rows(fx);
        cpu.run(|| {
            grid.par_chunks_mut(fx).with_min_len(rows).enumerate().each(|(fine_row, to)| {
                let (Some(z), Some(y)) =
                    (unwrap(fine_row / fy, fz, self.matrix[0]), unwrap(fine_row % fy, fy, ny))
                else {
                    return;
                };
                let row = z * ny + y;
                let from = &image[row * nx..(row + 1) * nx];
                let factor = self.row_factor(row);
                let (negative, positive) = from.split_at(nx / 2);
                let (fn_, fp) = self.factors[2].split_at(nx / 2);
                for ((t, f), p) in to[fx - nx / 2..].iter_mut().zip(negative).zip(fn_) {
                    *t = *f * (factor * *p);
                }
                for ((t, f), p) in to.iter_mut().zip(positive).zip(fp) {
                    *t = *f * (factor * *p);
                }
            });
        });
    }

    /// Along z, y, x.
    pub(crate) fn factors(&self) -> &[Vec<R>; 3] {
        &self.factors
    }

    /// Number of image elements.
    pub(crate) fn voxels(&self) -> usize {
        self.matrix.iter().product()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.factors.iter().map(|f| (f.len() * size_of::<R>()) as u64).sum()
    }
}
