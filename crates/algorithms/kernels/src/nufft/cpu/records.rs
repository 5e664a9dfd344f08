//! The points for spreading and interpolation, one record each, in the order of visiting.
//!
//! A record is written and read as a whole. Sorting writes each record to its own place; with one array per
//! field it would touch as many cache lines as there are fields.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use rayspin_core::{Real, Result};
use rayspin_device::cpu::{prefer_huge_pages, try_with_capacity};

/// A point of the trajectory.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Point<R, const D: usize> {
    /// The index of the sample in the trajectory.
    pub(super) sample: u32,
    /// First cell of its footprint in its tile's local grid.
    pub(super) cell: u32,
    /// Arguments of the kernel's polynomials: x, y, z.
    pub(super) z: [R; D],
}

// SAFETY: all fields may be zero.
unsafe impl<R: Real, const D: usize> Zeroable for Point<R, D> {}
// SAFETY: all fields are plain data, and no padding lies between or behind them: two 4-byte numbers are
// followed by numbers whose size and alignment are 4 or 8 bytes ([`Real`] is f32 or f64).
unsafe impl<R: Real, const D: usize> Pod for Point<R, D> {}

/// A cache line.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Records of points, `[point]`. The first begins a cache line, so that each record of 16 or 32 bytes lies in
/// one line.
#[derive(Debug, PartialEq)]
pub(crate) struct Records<R> {
    lines: Vec<Line>,
    len: usize,
    dims: usize,
    real: PhantomData<R>,
}

/// Reals that take as many bytes as a record.
fn stride<R>(dims: usize) -> usize {
    8 / size_of::<R>() + dims
}

fn lines<R>(len: usize, dims: usize) -> usize {
    (len * stride::<R>(dims) * size_of::<R>()).div_ceil(size_of::<Line>())
}

/// Bytes that the records of `len` points take.
pub(crate) fn bytes<R>(len: usize, dims: usize) -> u64 {
    (lines::<R>(len, dims) * size_of::<Line>()) as u64
}

impl<R: Real> Records<R> {
    /// No points.
    pub(super) fn new() -> Self {
        Self { lines: Vec::new(), len: 0, dims: 1, real: PhantomData }
    }

    /// Replaces all records by `len` records that `write` writes. Returns whether it wrote all of them; if
    /// not, the list is empty. Reuses the memory if it is large enough, because the system clears fresh
    /// memory first, which takes a quarter to two fifths of the time for sorting.
    ///
    /// Errors: no memory. Nothing changes then.
    ///
    /// # Safety
    ///
    /// `write` returns true only if it has written every one of them.
    pub(super) unsafe fn rewrite<const D: usize>(
        &mut self,
        len: usize,
        write: impl FnOnce(&mut [MaybeUninit<Point<R, D>>]) -> bool,
    ) -> Result<bool> {
        let count = lines::<R>(len, D);
        let mut lines = if self.lines.capacity() < count {
            let mut lines = try_with_capacity("points of the NUFFT", count)?;
            // Each page is first touched at a random time by either thread, and nearly every record lies on
            // another page.
            prefer_huge_pages(lines.spare_capacity_mut());
            lines
        } else {
            std::mem::take(&mut self.lines)
        };
        *self = Self::new();
        lines.clear();
        let spare = &mut lines.spare_capacity_mut()[..count];
        if let Some(last) = spare.last_mut() {
            last.write(Line::zeroed());
        }
        // SAFETY: `count` lines have room for `len` points, whose alignment is at most a line's, and the
        // slice is gone before `lines` is used again.
        if !write(unsafe { std::slice::from_raw_parts_mut(spare.as_mut_ptr().cast(), len) }) {
            return Ok(false);
        }
        // SAFETY: every byte is written: the caller promises it for the points, and the bytes behind them are
        // written above.
        unsafe { lines.set_len(count) };
        *self = Self { lines, len, dims: D, real: PhantomData };
        Ok(true)
    }

    /// All points, of a transform of D dimensions.
    pub(super) fn all_mut<const D: usize>(&mut self) -> &mut [Point<R, D>] {
        assert_eq!(self.dims, D);
        let stride = stride::<R>(D);
        let reals: &mut [R] = bytemuck::cast_slice_mut(&mut self.lines);
        bytemuck::cast_slice_mut(&mut reals[..self.len * stride])
    }

    /// Number of points.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        (self.lines.capacity() * size_of::<Line>()) as u64
    }

    /// A run of points.
    pub(crate) fn get(&self, points: Range<usize>) -> TilePoints<'_, R> {
        let stride = stride::<R>(self.dims);
        let reals: &[R] = bytemuck::cast_slice(&self.lines);
        TilePoints {
            reals: &reals[..self.len * stride][points.start * stride..points.end * stride],
            dims: self.dims,
        }
    }
}

/// A tile's share of the points, or part of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TilePoints<'a, R> {
    reals: &'a [R],
    dims: usize,
}

impl<'a, R: Real> TilePoints<'a, R> {
    /// The points of a transform of D dimensions.
    #[inline(always)]
    pub(super) fn of<const D: usize>(self) -> &'a [Point<R, D>] {
        assert_eq!(self.dims, D);
        bytemuck::cast_slice(self.reals)
    }

    /// Which samples of the trajectory the points are.
    pub(super) fn samples(self) -> impl ExactSizeIterator<Item = usize> + 'a {
        self.heads().map(|(head, _)| head[0] as usize)
    }

    /// First cells of the footprints, and the arguments of the kernel's polynomials.
    pub(super) fn footprints(self) -> impl ExactSizeIterator<Item = (usize, &'a [R])> {
        self.heads().map(|(head, z)| (head[1] as usize, z))
    }

    fn heads(self) -> impl ExactSizeIterator<Item = (&'a [u32], &'a [R])> {
        let stride = stride::<R>(self.dims);
        self.reals.chunks_exact(stride).map(move |record| {
            let (head, z) = record.split_at(stride - self.dims);
            (bytemuck::cast_slice(head), z)
        })
    }

    /// Under the name of its own type.
    pub(super) fn cast<T: Real>(self) -> TilePoints<'a, T> {
        TilePoints { reals: bytemuck::cast_slice(self.reals), dims: self.dims }
    }
}
