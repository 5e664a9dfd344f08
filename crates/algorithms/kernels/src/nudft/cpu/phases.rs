//! One-dimensional phases e^{i2πk·x} along an axis, in double precision, and the columns of a real matrix
//! product that they form.
//!
//! For equally spaced points e^{i2πκ(o + 8b + l)} is a product of two factors. An axis of n points therefore
//! costs n/8 + 8 sines and cosines per sample. The product adds one rounding of 1e-16.

use rayspin_core::Trajectory;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Lanes, Level, Simd, SimdReal, complex_mul, dispatch, sincos_2pi};

use super::gemm::ACROSS;
use crate::nudft::grid::Axis;

/// How the row axis becomes columns of a real matrix product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// One cosine and one sine column per point: 4 real multiply-adds per pair.
    Plain,
    /// One cosine and one sine column per pair of mirrored points, which share their products: 2
    /// multiply-adds per pair.
    Mirrored,
}

/// The columns of an axis: cosines of 2πκ(start + j) for j < cos, then sines of 2πκ(start + j) for j ≥ cos −
/// sin. κ is k/n. Positions count from the middle of the axis, so that every point but a central one has a
/// mirror image.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    pub(super) axis: Axis,
    pub(super) start: f64,
    pub(super) cos: usize,
    pub(super) sin: usize,
    fold: Fold,
}

impl Columns {
    pub(super) fn new(axis: Axis, fold: Fold) -> Self {
        let count = axis.count;
        let (start, cos, sin) = match fold {
            Fold::Plain => (0.5 - 0.5 * count as f64, count, count),
            Fold::Mirrored if count.is_multiple_of(2) => (0.5, count / 2, count / 2),
            Fold::Mirrored => (0.0, count / 2 + 1, count / 2),
        };
        Self { axis, start, cos, sin, fold }
    }

    /// Number of real columns.
    pub(super) fn len(&self) -> usize {
        self.cos + self.sin
    }

    /// The middle of the axis, in fields of view.
    pub(super) fn centre(&self) -> f64 {
        (self.axis.first as f64 + 0.5 * (self.axis.count as f64 - 1.0)) / self.axis.n as f64
    }

    /// The sine column that goes with cosine column `j`.
    pub(super) fn sine(&self, j: usize) -> Option<usize> {
        Some(self.cos + j.checked_sub(self.cos - self.sin)?)
    }

    /// The points at +offset and −offset of cosine column `j`.
    pub(super) fn points(&self, j: usize) -> (usize, Option<usize>) {
        match self.fold {
            Fold::Plain => (j, None),
            Fold::Mirrored => {
                let plus = self.axis.count / 2 + j;
                let minus = self.axis.count - 1 - plus;
                (plus, (minus != plus).then_some(minus))
            }
        }
    }
}

/// Elements in a vector of `T`.
pub(super) fn lanes<T: SimdReal>(level: Level) -> usize {
    #[inline(always)]
    fn of<S: Simd, T: SimdReal>(_: S) -> usize {
        Lanes::<S, T>::LEN
    }
    dispatch!(level, simd => of::<_, T>(simd))
}

/// κ = k/n of a run of samples, in turns a point; `padded` entries, zero past the last sample.
pub(super) fn steps(
    axis: &Axis,
    trajectory: &Trajectory,
    samples: std::ops::Range<usize>,
    padded: usize,
) -> Vec<f64> {
    let mut steps: Vec<f64> = samples.map(|m| axis.k(trajectory, m) / axis.n as f64).collect();
    steps.resize(padded, 0.0);
    steps
}

/// e^{i2πκ·o} for a vector of products κ·o.
#[inline(always)]
fn cis<S: Simd>(simd: S, turns: S::f64s) -> (S::f64s, S::f64s) {
    let (sin, cos) = sincos_2pi::<S, f64>(simd, turns);
    (cos, sin)
}

/// Calls `store(j, m, re, im)` with e^{i2πκ_m(start + j)} for all j < `count` and vectors of samples from m
/// on. `steps` holds whole vectors.
#[inline(always)]
pub(super) fn by_sample<S: Simd>(
    simd: S,
    steps: &[f64],
    start: f64,
    count: usize,
    mut store: impl FnMut(usize, usize, S::f64s, S::f64s),
) {
    const RUN: usize = 8;
    let lanes = S::f64s::LEN;
    for (vector, steps) in steps.chunks_exact(lanes).enumerate() {
        let step = S::f64s::from_slice(simd, steps);
        let mut low = [(step, step); RUN];
        for (l, low) in low.iter_mut().enumerate() {
            *low = cis(simd, step * l as f64);
        }
        for first in (0..count).step_by(RUN) {
            let high = cis(simd, step * (start + first as f64));
            for (l, low) in low.iter().enumerate().take(count - first) {
                let (re, im) = complex_mul::<S, f64>(high, *low);
                store(first + l, vector * lanes, re, im);
            }
        }
    }
}

/// Writes the columns of `columns` for every sample, cut into strips of [`ACROSS`] vectors:
/// `[strip][sample][column]` with room for `depth` samples in a strip, zero past the last column.
#[inline(always)]
pub(super) fn by_column<S: Simd, T: SimdReal>(
    simd: S,
    columns: &Columns,
    steps: &[f64],
    depth: usize,
    out: &mut [T],
) {
    let (lanes, strip) = (S::f64s::LEN, ACROSS * Lanes::<S, T>::LEN);
    let blocks = columns.cos.div_ceil(lanes);
    let skip = columns.cos - columns.sin;
    let (mut high_re, mut high_im) = (vec![0.0; blocks + lanes], vec![0.0; blocks + lanes]);
    let (mut cos, mut sin) = (vec![T::zero(); blocks * lanes], vec![T::zero(); blocks * lanes]);
    let mut row = vec![T::zero(); columns.len().next_multiple_of(strip)];
    let index = S::f64s::from_fn(simd, |i| i as f64);
    for (m, &step) in steps.iter().enumerate() {
        let low = cis(simd, index * step);
        for first in (0..blocks).step_by(lanes) {
            let offset = (index + first as f64).mul_add(lanes as f64, S::f64s::splat(simd, columns.start));
            let (re, im) = cis(simd, offset * step);
            re.store_slice(&mut high_re[first..first + lanes]);
            im.store_slice(&mut high_im[first..first + lanes]);
        }
        let stores = cos.chunks_exact_mut(lanes).zip(sin.chunks_exact_mut(lanes));
        for ((cos, sin), (re, im)) in stores.zip(high_re.iter().zip(&high_im)) {
            let high = (S::f64s::splat(simd, *re), S::f64s::splat(simd, *im));
            let (re, im) = complex_mul::<S, f64>(high, low);
            T::store_f64s::<S>(re, cos);
            T::store_f64s::<S>(im, sin);
        }
        row[..columns.cos].copy_from_slice(&cos[..columns.cos]);
        row[columns.cos..columns.len()].copy_from_slice(&sin[skip..columns.cos]);
        for (s, row) in row.chunks_exact(strip).enumerate() {
            out[(s * depth + m) * strip..][..strip].copy_from_slice(row);
        }
    }
}
