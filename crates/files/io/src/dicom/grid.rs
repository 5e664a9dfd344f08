//! Slices that are unevenly spaced or shifted, on a rectangular grid.

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, Zip};

use super::series::Stack;

/// A rectangular grid for the slices of a stack.
pub(super) struct Grid {
    /// `[z, y, x]`.
    pub(super) shape: [usize; 3],
    /// mm.
    pub(super) step: f64,
    /// Where its first pixel lies along x and y, in pixels from the first of the stack.
    pub(super) start: [f64; 2],
}

impl Grid {
    /// A grid for the slices at their even distance. Uneven slices get one distance from the first to the
    /// last: the one nearest to the lower quartile of the distances, so that thick slices are divided and
    /// thin ones are kept. The plane holds all slices.
    pub(super) fn of(stack: &Stack) -> Self {
        let [rows, columns] = stack.planes[0].size;
        let count = stack.planes.len();
        let (depth, step) = match stack.even_spacing() {
            Some(step) => (count, step),
            None => {
                let mut steps: Vec<f64> = stack.heights.windows(2).map(|pair| pair[1] - pair[0]).collect();
                steps.sort_by(f64::total_cmp);
                let height = stack.heights.last().copied().unwrap_or_default();
                let parts = (height / steps[steps.len() / 4]).round().max(1.0);
                ((parts as usize).saturating_add(1), height / parts)
            }
        };
        let range = |axis: usize| {
            let along = stack.shifts.iter().map(|shift| shift[axis]);
            let (low, high) = along.fold((0f64, 0f64), |(low, high), v| (low.min(v), high.max(v)));
            (low.floor(), high.ceil())
        };
        let ((left, right), (top, bottom)) = (range(0), range(1));
        let wider = |count: usize, by: f64| count.saturating_add(by as usize);
        let (nx, ny) = (wider(columns, right - left), wider(rows, bottom - top));
        Self { shape: [depth, ny, nx], step, start: [left, top] }
    }

    /// Writes slice `depth` of the grid, by linear interpolation between the two nearest slices and within
    /// them. What no slice covers is `outside`.
    pub(super) fn fill(
        &self,
        stack: &Stack,
        slices: ArrayView3<'_, f32>,
        depth: usize,
        outside: f32,
        mut to: ArrayViewMut2<'_, f32>,
    ) {
        let last = stack.heights.len() - 1;
        let even = self.shape[0] == stack.heights.len() && stack.even_spacing().is_some();
        let (below, part) = match even {
            true => (depth, 0.0),
            false => {
                let height = depth as f64 * self.step;
                let above = stack.heights.partition_point(|&h| h <= height).clamp(1, last);
                let below = above - 1;
                let gap = stack.heights[above] - stack.heights[below];
                (below, ((height - stack.heights[below]) / gap).clamp(0.0, 1.0))
            }
        };
        to.fill(0.0);
        for (slice, weight) in [(below, 1.0 - part), (below + 1, part)] {
            if weight > 0.0 {
                let [x, y] = stack.shifts[slice];
                let shift = [self.start[0] - x, self.start[1] - y];
                add_shifted(
                    slices.index_axis(ndarray::Axis(0), slice),
                    shift,
                    weight as f32,
                    outside,
                    &mut to,
                );
            }
        }
    }
}

/// Adds `weight` times the slice, read at `[x, y]` pixels beside each pixel of `to`, by bilinear
/// interpolation.
fn add_shifted(
    slice: ArrayView2<'_, f32>,
    [x, y]: [f64; 2],
    weight: f32,
    outside: f32,
    to: &mut ArrayViewMut2<'_, f32>,
) {
    let split = |shift: f64| (shift.floor() as isize, (shift - shift.floor()) as f32);
    let ((left, fx), (top, fy)) = (split(x), split(y));
    let value = |row: isize, column: isize| {
        let place = usize::try_from(row).ok().zip(usize::try_from(column).ok());
        place.and_then(|(row, column)| slice.get([row, column]).copied()).unwrap_or(outside)
    };
    Zip::indexed(to).for_each(|(row, column), to| {
        let (row, column) = (row as isize + top, column as isize + left);
        let along = |row: isize| match fx {
            0.0 => value(row, column),
            _ => (1.0 - fx) * value(row, column) + fx * value(row, column + 1),
        };
        *to += weight
            * match fy {
                0.0 => along(row),
                _ => (1.0 - fy) * along(row) + fy * along(row + 1),
            };
    });
}
