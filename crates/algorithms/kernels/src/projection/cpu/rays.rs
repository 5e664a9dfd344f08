//! Joseph's method ray by ray (P. M. Joseph, IEEE Trans Med Imaging 1:192, 1982).

use std::ops::Range;

use rayon::prelude::*;
use rayspin_core::{Real, Result};
use rayspin_device::Cpu;
use rayspin_device::cpu::{Stop, zeroed};

use super::Scan;
use crate::projection::line::{AXES, Line};

/// A volume in memory: the lengths of its axes b and c for a main axis, and the distances of neighbours along
/// main axis, b and c.
#[derive(Clone, Copy)]
struct Layout {
    planes: usize,
    sizes: [usize; 2],
    strides: [usize; 3],
}

impl Layout {
    /// A volume `[z, y, x]`, seen along a main axis.
    fn native(scan: Scan<'_>, main: usize) -> Self {
        let [nx, ny, nz] = scan.grid.shape_xyz();
        let (size, stride) = ([nx, ny, nz], [1, nx, nx * ny]);
        let [a, b, c] = AXES[main];
        Self { planes: size[a], sizes: [size[b], size[c]], strides: [stride[a], stride[b], stride[c]] }
    }

    /// The same volume as `[main, b, c]`.
    fn in_planes(scan: Scan<'_>, main: usize) -> Self {
        let Self { planes, sizes, .. } = Self::native(scan, main);
        Self { planes, sizes, strides: [sizes[0] * sizes[1], sizes[1], 1] }
    }
}

/// The four voxels around the place where a line crosses a plane, and their weights. Places outside the
/// volume have weight 0 and a voxel of the volume.
#[inline(always)]
fn corners(line: &Line, layout: &Layout, plane: usize) -> [(usize, f64); 4] {
    let part = line.part(plane);
    let i = plane as f64;
    let mut axes = [[(0, 0.0); 2]; 2];
    for (axis, (place, size)) in
        [line.b + i * line.db, line.c + i * line.dc].into_iter().zip(layout.sizes).enumerate()
    {
        let low = place.floor();
        let fraction = place - low;
        let share = |index: f64, share: f64| {
            let inside = index >= 0.0 && index < size as f64;
            (if inside { index as usize } else { 0 }, if inside { share } else { 0.0 })
        };
        axes[axis] = [share(low, 1.0 - fraction), share(low + 1.0, fraction)];
    }
    let start = plane * layout.strides[0];
    let [b, c] = axes;
    let corner = |b: (usize, f64), c: (usize, f64)| {
        (start + b.0 * layout.strides[1] + c.0 * layout.strides[2], part * b.1 * c.1)
    };
    [corner(b[0], c[0]), corner(b[0], c[1]), corner(b[1], c[0]), corner(b[1], c[1])]
}

fn integral<R: Real>(scan: Scan<'_>, volume: &[R], line: &Line) -> R {
    let layout = Layout::native(scan, line.main);
    let [before, inner, after] = parts(line, &layout);
    let mut sum = 0.0;
    for plane in before.chain(after) {
        for (voxel, weight) in corners(line, &layout, plane) {
            sum += weight * Real::to_f64(volume[voxel]);
        }
    }
    let mut within = 0.0;
    for plane in inner {
        let (voxel, fraction) = between(line, &layout, plane);
        let (low, high) = (Real::to_f64(volume[voxel]), Real::to_f64(volume[voxel + layout.strides[1]]));
        within += low + fraction * (high - low);
    }
    <R as Real>::from_f64((sum + slice_share(line) * within) * line.step)
}

/// The planes that a line crosses, in three parts. In the middle part, which only volumes of one slice have,
/// the line lies between two voxels of the slice and has the weight [`slice_share`] along c: nothing is
/// tested there, which makes slices three times as fast.
fn parts(line: &Line, layout: &Layout) -> [Range<usize>; 3] {
    let planes = line.planes(layout.planes, layout.sizes);
    if layout.sizes[1] != 1 || line.dc != 0.0 {
        return [planes.clone(), planes.end..planes.end, planes.end..planes.end];
    }
    let inner = line.inner(layout.planes, layout.sizes[0]);
    let first = inner.start.clamp(planes.start, planes.end);
    let last = inner.end.clamp(first, planes.end);
    [planes.start..first, first..last, last..planes.end]
}

/// The weight along c of a line that runs beside or in the only slice.
fn slice_share(line: &Line) -> f64 {
    (1.0 - line.c.abs()).max(0.0)
}

/// The voxel below the place where a line crosses a plane of the middle part, and how far it is from there to
/// the next.
#[inline(always)]
fn between(line: &Line, layout: &Layout, plane: usize) -> (usize, f64) {
    let place = line.b + plane as f64 * line.db;
    // Rounding may leave the part by its last digit.
    let low = (place as usize).min(layout.sizes[0] - 2);
    (plane * layout.strides[0] + low * layout.strides[1], place - low as f64)
}

fn line(scan: Scan<'_>, view: usize, row: usize, column: usize) -> Line {
    Line::new(scan.geometry, scan.grid, view, [row as f64, column as f64], None)
}

/// View, row and column of a flat index.
fn pixel(scan: Scan<'_>, index: usize) -> [usize; 3] {
    let [_, rows, columns] = scan.geometry.shape();
    [index / (rows * columns), index / columns % rows, index % columns]
}

pub(super) fn forward_alone<R: Real>(_: &Cpu, scan: Scan<'_>, volume: &[R], out: &mut [R]) -> Result<()> {
    for (index, out) in out.iter_mut().enumerate() {
        let [view, row, column] = pixel(scan, index);
        *out = integral(scan, volume, &line(scan, view, row, column));
    }
    Ok(())
}

pub(super) fn forward<R: Real>(cpu: &Cpu, scan: Scan<'_>, volume: &[R], out: &mut [R]) -> Result<()> {
    forward_where(cpu, scan, volume, out, &|_, _| true)
}

/// The pixels of the columns that are `wanted` (view, column). Errors: interruption.
pub(super) fn forward_where<R: Real>(
    cpu: &Cpu,
    scan: Scan<'_>,
    volume: &[R],
    out: &mut [R],
    wanted: &(dyn Fn(usize, usize) -> bool + Sync),
) -> Result<()> {
    let ([_, rows, columns], stop) = (scan.geometry.shape(), Stop::of_caller());
    cpu.run(|| {
        out.par_chunks_mut(columns).enumerate().filter(|_| !stop.is_set()).for_each(|(index, out)| {
            let (view, row) = (index / rows, index % rows);
            for (column, out) in out.iter_mut().enumerate().filter(|(column, _)| wanted(view, *column)) {
                *out = integral(scan, volume, &line(scan, view, row, column));
            }
        });
    });
    stop.check()
}

pub(super) fn adjoint_alone<R: Real>(_: &Cpu, scan: Scan<'_>, values: &[R], out: &mut [R]) -> Result<()> {
    out.fill(R::zero());
    for (index, value) in values.iter().enumerate() {
        let [view, row, column] = pixel(scan, index);
        let line = line(scan, view, row, column);
        let layout = Layout::native(scan, line.main);
        let value = Real::to_f64(*value) * line.step;
        for plane in line.planes(layout.planes, layout.sizes) {
            for (voxel, weight) in corners(&line, &layout, plane) {
                out[voxel] += <R as Real>::from_f64(weight * value);
            }
        }
    }
    Ok(())
}

pub(super) fn adjoint<R: Real>(cpu: &Cpu, scan: Scan<'_>, values: &[R], out: &mut [R]) -> Result<()> {
    out.fill(R::zero());
    add_adjoint_where(cpu, scan, values, out, &|_, _| true)
}

/// Adds the pixels of the columns that are `wanted` (view, column). Each thread has planes of its own: no two
/// write one voxel.
///
/// Errors: memory, of one volume and of the lines of one view; interruption.
pub(super) fn add_adjoint_where<R: Real>(
    cpu: &Cpu,
    scan: Scan<'_>,
    values: &[R],
    out: &mut [R],
    wanted: &(dyn Fn(usize, usize) -> bool + Sync),
) -> Result<()> {
    let ([views, rows, columns], stop) = (scan.geometry.shape(), Stop::of_caller());
    for main in 0..3 {
        let layout = Layout::in_planes(scan, main);
        let mut planes: Vec<R> = Vec::new();
        for view in 0..views {
            stop.check()?;
            let lines: Vec<(Line, f64)> = cpu.run(|| {
                (0..rows * columns)
                    .into_par_iter()
                    .filter(|pixel| wanted(view, pixel % columns))
                    .filter_map(|pixel| {
                        let line = line(scan, view, pixel / columns, pixel % columns);
                        let value = Real::to_f64(values[view * rows * columns + pixel]) * line.step;
                        (line.main == main && value != 0.0).then_some((line, value))
                    })
                    .collect()
            });
            if lines.is_empty() {
                continue;
            }
            if planes.is_empty() {
                planes = zeroed("planes of a volume", out.len())?;
            }
            let (plane, group) = (layout.strides[0], layout.planes.div_ceil(4 * cpu.threads()));
            cpu.run(|| {
                planes.par_chunks_mut(plane * group).enumerate().for_each(|(index, part)| {
                    let first = index * group;
                    let shifted = Layout { planes: part.len() / plane, ..layout };
                    for (line, value) in &lines {
                        // The part starts at its first plane.
                        let here = |range: Range<usize>| {
                            range.start.max(first)..range.end.min(first + shifted.planes)
                        };
                        let [before, inner, after] = parts(line, &layout).map(here);
                        for i in before.chain(after) {
                            for (voxel, weight) in corners(line, &shifted, i) {
                                part[voxel - first * plane] += <R as Real>::from_f64(weight * value);
                            }
                        }
                        let value = slice_share(line) * value;
                        for i in inner {
                            let (voxel, fraction) = between(line, &layout, i);
                            let low = voxel - first * plane;
                            part[low] += <R as Real>::from_f64((1.0 - fraction) * value);
                            part[low + layout.strides[1]] += <R as Real>::from_f64(fraction * value);
                        }
                    }
                });
            });
        }
        if !planes.is_empty() {
            add_planes(cpu, scan, main, &planes, out);
        }
    }
    Ok(())
}

/// Adds a volume `[main, b, c]` to one `[z, y, x]`.
fn add_planes<R: Real>(cpu: &Cpu, scan: Scan<'_>, main: usize, planes: &[R], out: &mut [R]) {
    let [nx, ny, _] = scan.grid.shape_xyz();
    let Layout { strides, .. } = Layout::in_planes(scan, main);
    // Where (x, y, z) lie among the axes of the planes.
    let mut stride = [0; 3];
    AXES[main].into_iter().zip(strides).for_each(|(axis, step)| stride[axis] = step);
    cpu.run(|| {
        out.par_chunks_mut(nx * ny).enumerate().for_each(|(z, out)| {
            for (index, out) in out.iter_mut().enumerate() {
                *out += planes[z * stride[2] + index / nx * stride[1] + index % nx * stride[0]];
            }
        });
    });
}
