//! Moves lines between an array and the contiguous buffer for 1-D transforms.

use std::ops::Range;

use num_complex::Complex;
use rayspin_core::Real;

use super::lanes::{Row, join, split};

/// Columns worked on at a time: 256 bytes of complex64, four cache lines a row, which memory delivers better
/// than two.
pub(crate) const COLUMNS: usize = 32;

/// `len` consecutive array indices that lie consecutively in the buffer too.
#[derive(Debug, Clone, Copy)]
struct Interval {
    array: usize,
    buffer: usize,
    len: usize,
}

/// Which indices of a line are read and written, and where they lie in the buffer.
///
/// Array index i lies at buffer index (i − shift) mod n: a shift of ⌊n/2⌋ makes an uncentred transform a
/// centred one at no cost, for any n.
#[derive(Debug, Clone)]
pub(crate) struct LineMap {
    n: usize,
    read: Vec<Interval>,
    gaps: Vec<Range<usize>>,
    write: Vec<Interval>,
}

impl LineMap {
    /// Reads the array indices `read` (the others count as 0) and writes `write`, all below `n`.
    pub(crate) fn new(n: usize, shift: usize, read: &[Range<usize>], write: &[Range<usize>]) -> Self {
        let mut read = intervals(n, shift, read);
        let mut gaps = Vec::new();
        let mut end = 0;
        read.sort_unstable_by_key(|interval| interval.buffer);
        for interval in &read {
            if interval.buffer > end {
                gaps.push(end..interval.buffer);
            }
            end = interval.buffer + interval.len;
        }
        if end < n {
            gaps.push(end..n);
        }
        Self { n, read, gaps, write: intervals(n, shift, write) }
    }

    /// Whether the buffer would be a plain copy of the line, so that contiguous lines may be transformed in
    /// place.
    pub(crate) fn is_identity(&self) -> bool {
        let whole = |intervals: &[Interval]| matches!(intervals, [Interval { array: 0, buffer: 0, len }] if *len == self.n);
        whole(&self.read) && whole(&self.write)
    }

    /// Copies one contiguous line into the buffer, zeros where nothing is read.
    pub(crate) fn gather_line<R: Real>(&self, line: &[Complex<R>], buffer: &mut [Complex<R>]) {
        for interval in &self.read {
            buffer[interval.buffer..interval.buffer + interval.len]
                .copy_from_slice(&line[interval.array..interval.array + interval.len]);
        }
        for gap in &self.gaps {
            buffer[gap.clone()].fill(zero());
        }
    }

    /// Copies the wanted part of the buffer to a contiguous line.
    pub(crate) fn scatter_line<R: Real>(&self, buffer: &[Complex<R>], line: &mut [Complex<R>]) {
        for interval in &self.write {
            line[interval.array..interval.array + interval.len]
                .copy_from_slice(&buffer[interval.buffer..interval.buffer + interval.len]);
        }
    }

    /// Transposes `columns` of `rows` into as many lines of the buffer, `pitch` apart.
    pub(crate) fn gather<R: Real>(
        &self,
        rows: &impl Rows<Complex<R>>,
        columns: Range<usize>,
        buffer: &mut [Complex<R>],
        pitch: usize,
    ) {
        for interval in &self.read {
            let mut t = 0;
            if columns.len() == COLUMNS {
                while t + TILE <= interval.len {
                    let tile: [[Complex<R>; COLUMNS]; TILE] = std::array::from_fn(|r| {
                        let mut row = [zero(); COLUMNS];
                        row.copy_from_slice(&rows.row(interval.array + t + r)[columns.start..][..COLUMNS]);
                        row
                    });
                    for (j, line) in buffer.chunks_mut(pitch).take(COLUMNS).enumerate() {
                        let start = interval.buffer + t;
                        line[start..start + TILE]
                            .copy_from_slice(&[tile[0][j], tile[1][j], tile[2][j], tile[3][j]]);
                    }
                    t += TILE;
                }
            }
            for t in t..interval.len {
                let row = &rows.row(interval.array + t)[columns.clone()];
                for (j, value) in row.iter().enumerate() {
                    buffer[j * pitch + interval.buffer + t] = *value;
                }
            }
        }
        for gap in &self.gaps {
            for j in 0..columns.len() {
                buffer[j * pitch + gap.start..j * pitch + gap.end].fill(zero());
            }
        }
    }

    /// Transposes the wanted part of the buffer's lines back into `columns` of `rows`.
    pub(crate) fn scatter<R: Real>(
        &self,
        buffer: &[Complex<R>],
        pitch: usize,
        rows: &mut impl Rows<Complex<R>>,
        columns: Range<usize>,
    ) {
        for interval in &self.write {
            let mut t = 0;
            if columns.len() == COLUMNS {
                while t + TILE <= interval.len {
                    let mut tile = [[zero(); COLUMNS]; TILE];
                    for j in 0..COLUMNS {
                        let start = j * pitch + interval.buffer + t;
                        let line = &buffer[start..start + TILE];
                        for (r, row) in tile.iter_mut().enumerate() {
                            row[j] = line[r];
                        }
                    }
                    for (r, row) in tile.iter().enumerate() {
                        rows.row_mut(interval.array + t + r)[columns.start..][..COLUMNS].copy_from_slice(row);
                    }
                    t += TILE;
                }
            }
            for t in t..interval.len {
                let row = &mut rows.row_mut(interval.array + t)[columns.clone()];
                for (j, value) in row.iter_mut().enumerate() {
                    *value = buffer[j * pitch + interval.buffer + t];
                }
            }
        }
    }
}

impl LineMap {
    /// Copies columns of `rows` into buffer rows, one a lane; `INVERSE` exchanges real and imaginary parts.
    #[inline(always)]
    pub(crate) fn gather_lanes<R: Real, const INVERSE: bool>(
        &self,
        rows: &impl Rows<Complex<R>>,
        columns: Range<usize>,
        buffer: &mut [Row<R>],
    ) {
        for interval in &self.read {
            let to = &mut buffer[interval.buffer..interval.buffer + interval.len];
            for (t, to) in to.iter_mut().enumerate() {
                split::<R, INVERSE>(&rows.row(interval.array + t)[columns.clone()], to);
            }
        }
        for gap in &self.gaps {
            buffer[gap.clone()].fill([R::zero(); 2 * COLUMNS]);
        }
    }

    /// Copies buffer rows back to columns of `rows`; `row_of` says where each index of the result lies.
    #[inline(always)]
    pub(crate) fn scatter_lanes<R: Real, const INVERSE: bool>(
        &self,
        buffer: &[Row<R>],
        row_of: impl Fn(usize) -> usize,
        scale: R,
        rows: &mut impl Rows<Complex<R>>,
        columns: Range<usize>,
    ) {
        for interval in &self.write {
            for t in 0..interval.len {
                let from = &buffer[row_of(interval.buffer + t)];
                join::<R, INVERSE>(from, scale, &mut rows.row_mut(interval.array + t)[columns.clone()]);
            }
        }
    }
}

/// Rows transposed together, so that stores into a buffer line are a vector wide.
const TILE: usize = 4;

/// Distance between buffer lines: not a multiple of 2 KiB, which would put all lines into the same few cache
/// sets.
pub(crate) fn pitch<R: Real>(n: usize) -> usize {
    let pitch = n.next_multiple_of(8);
    if (pitch * size_of::<Complex<R>>()).is_multiple_of(2048) { pitch + 8 } else { pitch }
}

/// The rows of a `[n, inner]` array. A task may hold only some of the columns.
pub(crate) trait Rows<T> {
    fn row(&self, index: usize) -> &[T];
    fn row_mut(&mut self, index: usize) -> &mut [T];
    /// Some columns of every row.
    fn columns(&mut self, columns: Range<usize>) -> Vec<&mut [T]>;
}

/// All columns of a C-order array.
pub(crate) struct Whole<'a, T> {
    pub(crate) data: &'a mut [T],
    pub(crate) inner: usize,
}

impl<T> Rows<T> for Whole<'_, T> {
    #[inline(always)]
    fn row(&self, index: usize) -> &[T] {
        &self.data[index * self.inner..(index + 1) * self.inner]
    }
    #[inline(always)]
    fn row_mut(&mut self, index: usize) -> &mut [T] {
        &mut self.data[index * self.inner..(index + 1) * self.inner]
    }
    fn columns(&mut self, columns: Range<usize>) -> Vec<&mut [T]> {
        self.data.chunks_exact_mut(self.inner).map(|row| &mut row[columns.clone()]).collect()
    }
}

/// Some columns of each row, held as one slice a row.
pub(crate) struct Pieces<'a, T> {
    pub(crate) rows: Vec<&'a mut [T]>,
}

impl<T> Rows<T> for Pieces<'_, T> {
    #[inline(always)]
    fn row(&self, index: usize) -> &[T] {
        &*self.rows[index]
    }
    #[inline(always)]
    fn row_mut(&mut self, index: usize) -> &mut [T] {
        &mut *self.rows[index]
    }
    fn columns(&mut self, columns: Range<usize>) -> Vec<&mut [T]> {
        self.rows.iter_mut().map(|row| &mut row[columns.clone()]).collect()
    }
}

fn zero<R: Real>() -> Complex<R> {
    Complex::new(R::zero(), R::zero())
}

fn intervals(n: usize, shift: usize, ranges: &[Range<usize>]) -> Vec<Interval> {
    let mut intervals = Vec::new();
    let mut push = |array: usize, end: usize, buffer: usize| {
        if array < end {
            intervals.push(Interval { array, buffer, len: end - array });
        }
    };
    for range in ranges {
        let below = range.end.min(shift);
        push(range.start, below, range.start + n - shift);
        let from = range.start.max(shift);
        push(from, range.end, from.wrapping_sub(shift));
    }
    intervals
}
