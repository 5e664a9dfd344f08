//! Rays in voxel indices.

use std::ops::Range;

use rayspin_core::{ProjectionGeometry, RaySource, VolumeGrid};

/// The axes of a volume, as indices into (x, y, z): the main axis of a ray first, then the axes `b` and `c`
/// of its planes. `c` is the axis along which columns of voxels are taken together.
pub(super) const AXES: [[usize; 3]; 3] = [[0, 1, 2], [1, 0, 2], [2, 1, 0]];

/// A ray as Joseph's method sees it. It crosses plane i of voxels along its main axis at (b + i·db, c +
/// i·dc).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    /// The main axis, along which the ray passes voxels fastest: 0, 1 or 2 for x, y or z.
    pub(super) main: usize,
    /// Indices along the other axes at plane 0, and their gains from plane to plane.
    pub(super) b: f64,
    pub(super) db: f64,
    pub(super) c: f64,
    pub(super) dc: f64,
    /// The ray starts and ends at these positions of the main axis.
    pub(super) ends: [f64; 2],
    /// Length between neighbouring planes, mm.
    pub(super) step: f64,
}

impl Line {
    /// The ray of a pixel. Its row may lie between pixels. `main` chooses the main axis where it is given.
    pub(super) fn new(
        geometry: &ProjectionGeometry,
        grid: &VolumeGrid,
        view: usize,
        pixel: [f64; 2],
        main: Option<usize>,
    ) -> Self {
        let end = geometry.pixel_mm(view, pixel[0], pixel[1]);
        let (start, infinite) = match geometry.views()[view].source {
            RaySource::Point(source) => (source, false),
            RaySource::Direction(along) => (std::array::from_fn(|axis| end[axis] - along[axis]), true),
        };
        let (first, spacing) = (grid.first_mm(), grid.spacing_mm());
        let begin: [f64; 3] = std::array::from_fn(|axis| (start[axis] - first[axis]) / spacing[axis]);
        let along: [f64; 3] = std::array::from_fn(|axis| (end[axis] - start[axis]) / spacing[axis]);
        let main = main.unwrap_or_else(|| main_axis(along));
        let [a, b, c] = AXES[main];
        let (db, dc) = (along[b] / along[a], along[c] / along[a]);
        let length = start.iter().zip(end).map(|(s, e)| (e - s) * (e - s)).sum::<f64>().sqrt();
        let ends = match infinite {
            true => [f64::NEG_INFINITY, f64::INFINITY],
            false => [begin[a].min(begin[a] + along[a]), begin[a].max(begin[a] + along[a])],
        };
        Self {
            main,
            b: begin[b] - begin[a] * db,
            db,
            c: begin[c] - begin[a] * dc,
            dc,
            ends,
            step: length / along[a].abs(),
        }
    }

    /// The planes of `0..count` where both indices are in (−1, n) for n = `sizes`, and which the ray does not
    /// end before.
    pub(super) fn planes(&self, count: usize, sizes: [usize; 2]) -> Range<usize> {
        let mut range = [self.ends[0] - 0.5, self.ends[1] + 0.5];
        for ((start, gain), size) in [(self.b, self.db), (self.c, self.dc)].into_iter().zip(sizes) {
            range = within(range, start, gain, size as f64);
        }
        let first = range[0].ceil().clamp(0.0, count as f64) as usize;
        let last = (range[1].floor() + 1.0).clamp(0.0, count as f64) as usize;
        first..last.max(first)
    }

    /// The planes of `0..count` that the ray crosses whole, between two of the `size` voxels along b.
    pub(super) fn inner(&self, count: usize, size: usize) -> Range<usize> {
        if size < 2 {
            return 0..0;
        }
        let whole = [self.ends[0] + 0.5, self.ends[1] - 0.5];
        let range = within(whole, self.b - 1.0, self.db, size as f64 - 2.0);
        let first = range[0].ceil().clamp(0.0, count as f64) as usize;
        let last = (range[1].floor() + 1.0).clamp(0.0, count as f64) as usize;
        first..last.max(first)
    }

    /// The part of plane i's interval [i − ½, i + ½] that the ray runs through.
    #[inline(always)]
    pub(super) fn part(&self, plane: usize) -> f64 {
        part(self.ends, plane)
    }
}

#[inline(always)]
pub(super) fn part(ends: [f64; 2], plane: usize) -> f64 {
    let i = plane as f64;
    ((i + 0.5).min(ends[1]) - (i - 0.5).max(ends[0])).clamp(0.0, 1.0)
}

/// The axis along which a direction passes voxels fastest; among equal axes the first.
fn main_axis(along: [f64; 3]) -> usize {
    let size = along.map(f64::abs);
    match (size[0] >= size[1], size[0] >= size[2], size[1] >= size[2]) {
        (true, true, _) => 0,
        (false, _, true) => 1,
        _ => 2,
    }
}

/// The part of `range` in which −1 < at + i·gain < size.
fn within(range: [f64; 2], start: f64, gain: f64, size: f64) -> [f64; 2] {
    if gain == 0.0 {
        return if start > -1.0 && start < size { range } else { [1.0, 0.0] };
    }
    let (one, other) = ((-1.0 - start) / gain, (size - start) / gain);
    [range[0].max(one.min(other)), range[1].min(one.max(other))]
}
