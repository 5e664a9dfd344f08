//! The kernel's spectrum: made from Q, and converted from and to the common order of all devices.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Error, Real, Result};
use rayspin_device::Array;
use rayspin_device::cuda::{Argument, Launch};

use super::{Convolution, KERNEL, SPECTRUM};
use crate::cuda::define;
use crate::fft::cpu::lanes::LaneFft;
use crate::fft::cpu::line::COLUMNS;
use crate::fft::cuda::line::{LIGHT, Line};
use crate::fft::cuda::{Beside, Extent, Lie, LinePass, Side, Span, Touch, Weigh, gpu, launch};
use crate::toeplitz::cpu::Parts;

/// Blocks of the kernel that finds the Hermitian part.
pub(super) const HERMITIAN_BLOCKS: usize = 1024;

impl<R: Real> Convolution<R> {
    /// The spectrum of Q from its planes of first displacement ≥ 0.
    pub(super) fn transform_kernel(&mut self, rank: usize, q: &Array<Complex<R>>) -> Result<()> {
        let device = self.device.clone();
        let cuda = gpu(&device)?;
        let [n0, n1, n2] = self.matrix;
        let [p0, p1, p2] = self.padded;
        // A missing axis is not doubled: its only displacement is at index 0.
        let doubled = |axis: usize, n: usize| match (rank, axis) {
            (1, 0 | 1) | (2, 1) => (1, 0),
            _ => (2 * n, n),
        };
        let ((_, c0), (m1, c1), (m2, c2)) = (doubled(0, n0), doubled(1, n1), doubled(2, n2));
        let mut half = Array::<Complex<R>>::zeros(&device, &[n0, p1, p2])?;
        let mut sums = Array::<Complex<f64>>::zeros(&device, &[HERMITIAN_BLOCKS])?;
        let mut arguments = vec![q.cuda().into(), half.cuda_mut().into(), sums.cuda_mut().into()];
        for size in [n0, n1, n2, p1, p2, m1, m2, c0, c1, c2] {
            let size = i32::try_from(size)
                .map_err(|_| Error::value("Toeplitz matrix size", "at most 2³¹ voxels an axis", size))?;
            arguments.push(size.into());
        }
        let shape = Launch::linear(HERMITIAN_BLOCKS as u32, 256);
        // SAFETY: `q` is the matrix doubled, as `Toeplitz::from_kernel` found, and displacements −n are not
        // read; a block has a sum of its own.
        unsafe { cuda.kernel(&KERNEL, &[define::<R>()], "hermitian")?.launch(shape, &mut arguments) }?;
        let total: Complex<f64> = sums.to_vec()?.into_iter().sum();
        crate::toeplitz::check_hermitian(total.re, total.im, || q.read())?;

        let middle = Line::new(p1);
        for (axis, line, inner) in [(1, middle, p2), (2, Some(self.last.clone()), 1)] {
            let Some(line) = line.filter(|line| line.n > 1) else { continue };
            let lines = n0 * p1 * p2 / (line.n * inner);
            let lie = if axis == 2 { Lie::Rows(lines) } else { Lie::Columns(inner) };
            let side = Side {
                batch: 0,
                a: Beside::packed(0),
                b: Beside::packed(line.n * inner),
                stride: inner,
                span: Span::full(line.n),
            };
            let extent = Extent { batch: 1, a: 1, b: lines, inner };
            let touch = Touch { inverse: false, scale: R::one(), weigh: Weigh::Not };
            let pass = LinePass::new(&device, &line, lie, None, None)?;
            pass.run(None, half.cuda_mut(), extent, [side, side], &touch)?;
        }

        let Some(line) = Line::new(p0) else {
            return Err(Error::value(
                "Toeplitz matrix size",
                "a padded size that the GPU's kernels take",
                p0,
            ));
        };
        let columns = Lie::Columns(p1 * p2);
        let (block, defines) =
            columns.program::<R>(cuda, &SPECTRUM, &line, |block, _| line.defines::<R>(block, 1, LIGHT))?;
        let mut spectrum = Array::zeros(&device, &[p0 * p1 * p2])?;
        let kernel = cuda.kernel(&SPECTRUM, &defines, "spectrum")?;
        let arguments = &mut [
            half.cuda().into(),
            spectrum.cuda_mut().into(),
            self.tables[0][0].cuda().into(),
            Argument::count(n0)?,
            Argument::count(p1)?,
            Argument::count(p2)?,
            Argument::count(self.cut.width)?,
            Argument::real(R::one() / <R as Real>::from_f64((p0 * p1 * p2) as f64)),
        ];
        // SAFETY: both arrays were just made of these sizes; the kernel is compiled for this block.
        unsafe { kernel.launch(launch(&block, 1, p1 * p2)?, arguments) }?;
        self.spectrum = Some(spectrum);
        Ok(())
    }

    /// The position of frequency (k0, k1, k2) in this spectrum.
    fn place(&self, k0: usize, k1: usize, k2: usize) -> usize {
        let [p0, p1, p2] = self.padded;
        let first = k2 / self.cut.width * self.cut.width;
        let width = self.cut.width.min(p2 - first);
        first * p0 * p1 + (k0 * p1 + k1) * width + k2 - first
    }

    /// The spectrum in the common order of all devices, the order of
    /// [`crate::toeplitz::cpu::Convolution::spectrum`].
    pub(in crate::toeplitz) fn spectrum(&self) -> Result<Vec<R>> {
        let [p0, p1, p2] = self.padded;
        let parts = Parts::of(p2);
        let blocks = (p1 * parts.width).div_ceil(COLUMNS);
        let ours = self.held()?.to_vec()?;
        let rows = self.digit_reversed()?;
        let mut common = vec![R::zero(); parts.count * blocks * COLUMNS * p0];
        let cpu = self.device.cpu_side();
        cpu.run(|| {
            common.par_chunks_exact_mut(p0 * COLUMNS).enumerate().for_each(|(block, common)| {
                let (part, block) = (block / blocks, block % blocks);
                for (k0, &row) in rows.iter().enumerate() {
                    for (c, value) in common[row * COLUMNS..][..COLUMNS].iter_mut().enumerate() {
                        let column = block * COLUMNS + c;
                        if column < p1 * parts.width {
                            let (k1, k2) = parts.frequency(part, column);
                            *value = ours[self.place(k0, k1, k2)];
                        }
                    }
                }
            });
        });
        Ok(common)
    }

    pub(super) fn reordered(&self, common: &[R]) -> Result<Vec<R>> {
        let [p0, p1, p2] = self.padded;
        let parts = Parts::of(p2);
        let blocks = (p1 * parts.width).div_ceil(COLUMNS);
        let rows = self.digit_reversed()?;
        let mut ours = vec![R::zero(); p0 * p1 * p2];
        for (k0, &row) in rows.iter().enumerate() {
            for (k1, k2) in (0..p1).flat_map(|k1| (0..p2).map(move |k2| (k1, k2))) {
                let (part, column) = parts.column(k1, k2);
                let block = part * blocks + column / COLUMNS;
                ours[self.place(k0, k1, k2)] = common[(block * p0 + row) * COLUMNS + column % COLUMNS];
            }
        }
        Ok(ours)
    }

    fn digit_reversed(&self) -> Result<Vec<usize>> {
        let fft = LaneFft::<R>::new(self.padded[0]);
        let rows = fft.map(|fft| fft.row_of().to_vec());
        rows.ok_or_else(|| Error::value("Toeplitz matrix size", "a smooth padded size", self.padded[0]))
    }
}
