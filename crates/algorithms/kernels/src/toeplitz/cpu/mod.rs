//! Zero-pad → FFT → multiply → inverse FFT → crop on the cores, without ever forming the padded grid.
//!
//! The first axis is padded, transformed, multiplied, transformed back and cropped within one cache-resident
//! block of columns. Frequencies of the last axis are taken in two parts, the even ones and the odd ones.
//! Take x of n values, padded with zeros to 2m. Its even frequencies are the transform of x, padded to m. Its
//! odd frequencies are the transform of x e^{−iπj/m}, padded to m. Where the padded length is odd, as short
//! ones may be, there is one part. The work buffer holds a quarter of the padded grid, or half with one part.

mod convolve;
mod pool;
mod setup;

use std::sync::Arc;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, voxels};

use pool::Pool;

use crate::fft::cpu::FftNd;
use crate::fft::cpu::lanes::LaneFft;
use crate::fft::cpu::line::COLUMNS;

/// Work buffers up to this many bytes go one to a thread, each thread taking whole images of a batch.
const OWN_BUFFER_BYTES: usize = 2 << 20;
/// Elements that one parallel task should hold at least.
const TASK_ELEMENTS: usize = 4096;

/// The smallest length of at least 2n − 1 without prime factors above 7, divisible by 4 unless short.
pub(super) fn padded_size(n: usize) -> usize {
    let least = n.saturating_mul(2).saturating_sub(1).max(1);
    if least > 1 << 32 {
        // Beyond any plan that can be made; the memory it would take can still be stated.
        return least;
    }
    let smooth = |mut m: usize| {
        for p in [2, 3, 5, 7] {
            while m.is_multiple_of(p) {
                m /= p;
            }
        }
        m == 1
    };
    let step = if least < 16 { 1 } else { 4 };
    let first = least.next_multiple_of(step);
    (first..).step_by(step).find(|&m| smooth(m)).unwrap_or(least)
}

/// The matrix as `[first, middle, last]`, where a missing axis has size 1.
pub(super) fn three_axes(matrix: &[usize]) -> Result<[usize; 3]> {
    match *matrix {
        [x] => Ok([1, 1, x]),
        [y, x] => Ok([y, 1, x]),
        [z, y, x] => Ok([z, y, x]),
        _ => Err(Error::value("Toeplitz matrix size", "1 to 3 axes", matrix.len())),
    }
}

/// Real elements of the spectrum and complex ones of a work buffer.
pub(super) fn elements(matrix: &[usize]) -> Result<(usize, usize)> {
    let sizes = three_axes(matrix)?;
    let [p0, p1, p2] = sizes.map(padded_size);
    let Parts { count, width } = Parts::of(p2);
    let columns = voxels(&[p1, width])?.saturating_add(COLUMNS - 1) / COLUMNS;
    Ok((voxels(&[p0, count, columns, COLUMNS])?, voxels(&[sizes[0], p1, width])?))
}

/// The number of work buffers, each of `elements` elements, that `images` images or coils take at once.
pub(super) fn buffers<R>(elements: usize, threads: usize, images: usize) -> usize {
    if elements.saturating_mul(size_of::<Complex<R>>()) <= OWN_BUFFER_BYTES {
        threads.min(images).max(1)
    } else {
        1
    }
}

/// The frequencies of the last axis: part `s` holds the frequencies `s + count · j`, j < `width`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    pub(super) count: usize,
    pub(super) width: usize,
}

impl Parts {
    pub(super) fn of(padded: usize) -> Self {
        let count = if padded.is_multiple_of(2) { 2 } else { 1 };
        Self { count, width: padded / count }
    }

    /// The part of frequency (k1, k2) of the middle and the last axis, and its column in the part.
    pub(super) fn column(self, k1: usize, k2: usize) -> (usize, usize) {
        (k2 % self.count, k1 * self.width + k2 / self.count)
    }

    /// The frequency of a column: the reverse of [`Self::column`].
    pub(super) fn frequency(self, part: usize, column: usize) -> (usize, usize) {
        (column / self.width, part + self.count * (column % self.width))
    }
}

/// Images as `[first, middle, last]`, transforms as the same axes padded; a missing axis has size 1.
#[derive(Debug)]
pub(super) struct Convolution<R: Real> {
    matrix: [usize; 3],
    padded: [usize; 3],
    parts: Parts,
    /// e^{−i2πj/L} along the last axis, padded to L.
    turn: Vec<Complex<R>>,
    /// Transforms along the padded axes, and along a part of the last one.
    engine: FftNd<R>,
    first: LaneFft<R>,
    /// `[part, block, row, column]`: in the order in which blocks of [`COLUMNS`] columns (middle, last) are
    /// visited, and their buffers laid out. The inverse transforms' 1/N is in it.
    spectrum: Vec<R>,
    work: Arc<Pool<R>>,
    /// Images or coils that are taken at a time, at most.
    most: usize,
}

impl<R: Real> Convolution<R> {
    pub(super) fn spectrum(&self) -> &[R] {
        &self.spectrum
    }

    pub(super) fn with_spectrum(matrix: &[usize], spectrum: Vec<R>) -> Result<Self> {
        let sizes = three_axes(matrix)?;
        let padded = sizes.map(padded_size);
        let work = Arc::new(Pool::new(elements(matrix)?.1));
        let first = LaneFft::new(padded[0])
            .ok_or_else(|| Error::value("Toeplitz matrix size", "at most 2³¹ voxels an axis", sizes[0]))?;
        let [p0, p1, p2] = padded;
        let parts = Parts::of(p2);
        let engine = FftNd::new(&[p0, p1, parts.width])?;
        let turn = (0..p2).map(|j| {
            let (sin, cos) = (std::f64::consts::TAU * j as f64 / p2 as f64).sin_cos();
            Complex::new(<R as Real>::from_f64(cos), <R as Real>::from_f64(-sin))
        });
        let turn = turn.collect();
        Ok(Self { matrix: sizes, padded, parts, turn, engine, first, spectrum, work, most: usize::MAX })
    }

    pub(super) fn bytes(&self) -> u64 {
        let work = self.work.allocated() * self.work.len * size_of::<Complex<R>>();
        (self.spectrum.len() * size_of::<R>() + work) as u64
    }

    pub(super) fn limit_batch(&mut self, images: usize) {
        self.most = images.max(1);
    }

    /// Works in the buffers of `other`, a plan for the same matrix.
    pub(super) fn share_work(&mut self, other: &Self) {
        self.work = other.work.clone();
    }
}
