//! Voxel-driven back-projection: each voxel reads the place on which its centre falls.

use rayon::prelude::*;
use rayspin_core::{Real, Result};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Simd, dispatch};
use rayspin_device::cpu::{Stop, zeroed};

use super::columns::{Lines, mix_around, reach};
use super::resample::{PAD, Resample};
use super::{Scan, Weighting};
use crate::projection::matrix::{Matrix, times};

/// Rows and slices from which on columns of voxels are taken together.
const LEAST: usize = 8;
/// Voxels of a tile of columns along x and y. A tile reads a tenth of a view, which stays in the second-level
/// cache.
const TILE: usize = 16;
/// Bytes of the pixels, and of the voxels, that are held in another order.
const HELD: usize = 256 << 20;

/// Where the voxel `[i, j, k]` falls in a view: row, column and weight.
#[inline(always)]
fn place(scan: Scan<'_>, matrix: Option<&Matrix>, view: usize, voxel: [f64; 3]) -> Option<[f64; 3]> {
    let [i, j, k] = voxel;
    if let Some(matrix) = matrix {
        let w = times(&matrix.w, i, j, k);
        let inverse = 1.0 / w;
        let place =
            [times(&matrix.v, i, j, k) * inverse, times(&matrix.u, i, j, k) * inverse, inverse * inverse];
        return (w > 0.0).then_some(place);
    }
    let (first, spacing) = (scan.grid.first_mm(), scan.grid.spacing_mm());
    let point = std::array::from_fn(|axis| first[axis] + voxel[axis] * spacing[axis]);
    let [row, column] = scan.geometry.project(view, point)?;
    Some([row, column, magnification(scan, view, point).powi(2)])
}

/// The detector's distance from the source over the point's, both along the detector's normal. 1 for parallel
/// beams.
fn magnification(scan: Scan<'_>, view: usize, point: [f64; 3]) -> f64 {
    let pose = &scan.geometry.views()[view];
    let rayspin_core::RaySource::Point(source) = pose.source else { return 1.0 };
    let normal = pose.towards_source();
    let depth = |p: [f64; 3]| -> f64 { (0..3).map(|axis| (source[axis] - p[axis]) * normal[axis]).sum() };
    depth(pose.detector_mm) / depth(point)
}

/// The value between four pixels, 0 beyond the detector.
#[inline(always)]
fn bilinear<R: Real>(view: &[R], columns: usize, row: f64, column: f64) -> f64 {
    let rows = (view.len() / columns) as f64;
    let (r, c) = (row.floor(), column.floor());
    if !(r >= -1.0 && r < rows && c >= -1.0 && c < columns as f64) {
        return 0.0;
    }
    let (fr, fc) = (row - r, column - c);
    let value = |r: f64, c: f64| {
        let inside = r >= 0.0 && r < rows && c >= 0.0 && c < columns as f64;
        if inside { Real::to_f64(view[r as usize * columns + c as usize]) } else { 0.0 }
    };
    let line = |r: f64| value(r, c) * (1.0 - fc) + value(r, c + 1.0) * fc;
    line(r) * (1.0 - fr) + line(r + 1.0) * fr
}

fn matrices(scan: Scan<'_>) -> Vec<Option<Matrix>> {
    (0..scan.geometry.views().len()).map(|view| Matrix::new(scan.geometry, scan.grid, view)).collect()
}

/// A row of voxels along x.
fn row_of_voxels<R: Real>(
    scan: Scan<'_>,
    weighting: Weighting,
    matrices: &[Option<Matrix>],
    values: &[R],
    row: usize,
    out: &mut [R],
) {
    let [_, rows, columns] = scan.geometry.shape();
    let ny = scan.grid.shape_xyz()[1];
    let (j, k) = ((row % ny) as f64, (row / ny) as f64);
    for (i, out) in out.iter_mut().enumerate() {
        let mut sum = 0.0;
        for (view, values) in values.chunks(rows * columns).enumerate() {
            if let Some([row, column, weight]) = place(scan, matrices[view].as_ref(), view, [i as f64, j, k])
            {
                let weight = if weighting == Weighting::Even { 1.0 } else { weight };
                sum += weight * bilinear(values, columns, row, column);
            }
        }
        *out = <R as Real>::from_f64(sum);
    }
}

pub(super) fn alone<R: Real>(
    _: &Cpu,
    scan: Scan<'_>,
    weighting: Weighting,
    values: &[R],
    out: &mut [R],
) -> Result<()> {
    let matrices = matrices(scan);
    let nx = scan.grid.shape_xyz()[0];
    let rows = out.chunks_mut(nx).enumerate();
    rows.for_each(|(row, out)| row_of_voxels(scan, weighting, &matrices, values, row, out));
    Ok(())
}

pub(super) fn cores<R: Real>(
    cpu: &Cpu,
    scan: Scan<'_>,
    weighting: Weighting,
    values: &[R],
    out: &mut [R],
) -> Result<()> {
    let (matrices, stop) = (matrices(scan), Stop::of_caller());
    let nx = scan.grid.shape_xyz()[0];
    cpu.run(|| {
        let rows = out.par_chunks_mut(nx).enumerate();
        let rows = rows.filter(|_| !stop.is_set());
        rows.for_each(|(row, out)| row_of_voxels(scan, weighting, &matrices, values, row, out));
    });
    stop.check()
}

/// How the voxels of a scan are taken together.
enum Together {
    /// Columns along z: they fall on one column of pixels each.
    Columns,
    /// Rows along x of slices in which all views are parallel beams: they fall on one line of the detector at
    /// regular places.
    Rows,
}

fn together(scan: Scan<'_>, matrices: &[Option<Matrix>]) -> Option<Together> {
    let ([_, rows, _], [nz, _, _]) = (scan.geometry.shape(), scan.grid.shape_zyx());
    let none = |x: f64| x.abs() < 1e-12;
    if !matrices.iter().all(|matrix| matrix.as_ref().is_some_and(Matrix::is_upright)) {
        return None;
    }
    // 2.6 times as many updates a second as columns make (1024² and 256³ voxels, two threads of an EPYC).
    let level = |matrix: &Matrix| matrix.w[..3] == [0.0; 3] && none(matrix.v[0]) && none(matrix.v[1]);
    if matrices.iter().flatten().all(level) {
        return Some(Together::Rows);
    }
    (rows >= LEAST && nz >= LEAST).then_some(Together::Columns)
}

pub(super) fn columns<R: Resample>(
    cpu: &Cpu,
    scan: Scan<'_>,
    weighting: Weighting,
    values: &[R],
    out: &mut [R],
) -> Result<()> {
    let matrices = matrices(scan);
    match together(scan, &matrices) {
        None => cores(cpu, scan, weighting, values, out),
        Some(Together::Rows) => rows(cpu, scan, &matrices, values, out),
        Some(Together::Columns) => {
            let matrices: Vec<Matrix> = matrices.into_iter().flatten().collect();
            out.fill(R::zero());
            let [_, rows, columns] = scan.geometry.shape();
            let block = (HELD / (rows * columns * size_of::<R>())).max(1);
            let mut turned = Vec::new();
            for (matrices, values) in matrices.chunks(block).zip(values.chunks(block * rows * columns)) {
                add_views(cpu, scan, weighting, Views { matrices, values }, &mut turned, out)?;
            }
            Ok(())
        }
    }
}

/// Bytes that [`columns`] holds beside its arrays, for `[view, row, column]` projections of parallel beams or
/// others and `[z, y, x]` voxels, in f32.
pub(super) fn bytes(parallel: bool, [views, rows, columns]: [u64; 3], [slices, ny, nx]: [u64; 3]) -> u64 {
    let (held, real) = (HELD as u64, size_of::<f32>() as u64);
    if parallel {
        return real * views * (columns + 2 * PAD as u64);
    }
    if rows < LEAST as u64 || slices < LEAST as u64 {
        return 0;
    }
    let view = (real * rows * columns).max(1);
    let tile = real * (TILE * TILE) as u64 * slices;
    let tiles = nx.div_ceil(TILE as u64) * ny.div_ceil(TILE as u64);
    view * (held / view).max(1).min(views) + tile * (held / tile).max(1).min(tiles)
}

/// A view as `[column, row]`, with rows in the order in which z falls on them.
fn turn<R: Resample>(rows: usize, columns: usize, matrix: &Matrix, view: &[R], to: &mut [R]) {
    for (column, line) in to.chunks_mut(rows).enumerate() {
        for (row, value) in line.iter_mut().enumerate() {
            let from = if matrix.v[2] < 0.0 { rows - 1 - row } else { row };
            *value = view[from * columns + column];
        }
    }
}

/// Some views `[view, row, column]`, and the matrix of each.
struct Views<'a, R> {
    matrices: &'a [Matrix],
    values: &'a [R],
}

fn add_views<R: Resample>(
    cpu: &Cpu,
    scan: Scan<'_>,
    weighting: Weighting,
    Views { matrices, values }: Views<'_, R>,
    turned: &mut Vec<R>,
    out: &mut [R],
) -> Result<()> {
    let [_, rows, columns] = scan.geometry.shape();
    let [nx, ny, nz] = scan.grid.shape_xyz();
    let each = rows * columns;
    if turned.len() != values.len() {
        *turned = zeroed("columns of pixels", values.len())?;
    }
    cpu.run(|| {
        let views = turned.par_chunks_mut(each).zip(values.par_chunks(each)).zip(matrices);
        views.for_each(|((to, view), matrix)| turn(rows, columns, matrix, view, to));
    });
    let turned = &turned[..];
    let (across, down) = (nx.div_ceil(TILE), ny.div_ceil(TILE));
    let tile = TILE * TILE * nz;
    let at_once = (HELD / (tile * size_of::<R>())).clamp(1, across * down);
    let mut tiles: Vec<R> = zeroed("columns of voxels", at_once * tile)?;
    let stop = Stop::of_caller();
    for first in (0..across * down).step_by(at_once) {
        stop.check()?;
        let count = at_once.min(across * down - first);
        tiles[..count * tile].fill(R::zero());
        cpu.run(|| {
            tiles[..count * tile].par_chunks_mut(tile).enumerate().for_each_init(
                || super::resample::padded(rows),
                |mixed, (index, voxels)| {
                    let corner = [(first + index) % across * TILE, (first + index) / across * TILE];
                    let mut tile = Tile { voxels, corner, shape: [nx, ny, nz] };
                    let views = turned.chunks(each).zip(matrices);
                    dispatch!(cpu.level(), simd => {
                        for (view, matrix) in views {
                            if stop.is_set() {
                                break;
                            }
                            tile.add(simd, matrix, weighting, Lines { values: view, len: rows }, mixed);
                        }
                    });
                },
            );
            out.par_chunks_mut(nx * ny).enumerate().for_each(|(z, slice)| {
                for (index, tile) in tiles[..count * tile].chunks(tile).enumerate() {
                    let [x, y] = [(first + index) % across * TILE, (first + index) / across * TILE];
                    for (inside, column) in tile.chunks(nz).enumerate() {
                        let (i, j) = (x + inside % TILE, y + inside / TILE);
                        if i < nx && j < ny {
                            slice[j * nx + i] += column[z];
                        }
                    }
                }
            });
        });
    }
    stop.check()
}

/// A tile `[y, x, z]` of columns of voxels.
struct Tile<'a, R> {
    voxels: &'a mut [R],
    /// The first voxel along x and y.
    corner: [usize; 2],
    /// The volume's voxels along x, y and z.
    shape: [usize; 3],
}

impl<R: Resample> Tile<'_, R> {
    /// Adds one view, whose lines are the columns of its pixels.
    #[inline(always)]
    fn add<S: Simd>(
        &mut self,
        simd: S,
        matrix: &Matrix,
        weighting: Weighting,
        view: Lines<'_, R>,
        mixed: &mut [R],
    ) {
        let ([nx, ny, nz], rows) = (self.shape, view.len);
        for (inside, column) in self.voxels.chunks_mut(nz).enumerate() {
            let (i, j) = (self.corner[0] + inside % TILE, self.corner[1] + inside / TILE);
            let (x, y) = (i as f64, j as f64);
            let w = times(&matrix.w, x, y, 0.0);
            if i >= nx || j >= ny || w <= 0.0 {
                continue;
            }
            let inverse = 1.0 / w;
            let weight = if weighting == Weighting::Even { 1.0 } else { inverse * inverse };
            let (start, slope) = (times(&matrix.v, x, y, 0.0) * inverse, matrix.v[2] * inverse);
            let (start, slope) =
                if slope < 0.0 { ((rows - 1) as f64 - start, -slope) } else { (start, slope) };
            let part = reach(start, slope, nz, rows);
            let place = times(&matrix.u, x, y, 0.0) * inverse;
            if !part.is_empty() && mix_around(simd, view, place, weight, part, mixed) {
                R::gather(simd, mixed, start, slope, column);
            }
        }
    }
}

/// Slices of parallel beams, each from one line of every view: the mixture of the two rows of pixels between
/// which it falls.
fn rows<R: Resample>(
    cpu: &Cpu,
    scan: Scan<'_>,
    matrices: &[Option<Matrix>],
    values: &[R],
    out: &mut [R],
) -> Result<()> {
    let [_, rows, columns] = scan.geometry.shape();
    let [nx, ny, _] = scan.grid.shape_xyz();
    let long = columns + 2 * PAD;
    // Where the column falls along x, the view is reversed.
    let mut lines: Vec<R> = zeroed("rows of pixels", matrices.len() * long)?;
    let stop = Stop::of_caller();
    for (z, slice) in out.chunks_mut(nx * ny).enumerate() {
        cpu.run(|| {
            let views = lines.par_chunks_mut(long).zip(values.par_chunks(rows * columns));
            views.zip(matrices).for_each(|((line, view), matrix)| {
                let Some(matrix) = matrix else { return };
                let line = &mut line[PAD..PAD + columns];
                line_of(view, times(&matrix.v, 0.0, 0.0, z as f64), line);
                if matrix.u[0] < 0.0 {
                    line.reverse();
                }
            });
            let bands = slice.par_chunks_mut(nx * TILE).enumerate().filter(|_| !stop.is_set());
            bands.for_each(|(band, out)| {
                out.fill(R::zero());
                dispatch!(cpu.level(), simd => {
                    for (line, matrix) in lines.chunks(long).zip(matrices.iter().flatten()) {
                        add_to_rows(simd, line, matrix, band * TILE, out, nx);
                    }
                });
            });
        });
        stop.check()?;
    }
    Ok(())
}

/// A view at a row between its rows of pixels; 0 beyond them.
fn line_of<R: Real>(view: &[R], row: f64, line: &mut [R]) {
    let (columns, low) = (line.len(), row.floor());
    let share = row - low;
    line.fill(R::zero());
    for (row, share) in [(low, 1.0 - share), (low + 1.0, share)] {
        if share > 0.0 && row >= 0.0 && (row as usize) < view.len() / columns {
            let (from, share) = (&view[row as usize * columns..], <R as Real>::from_f64(share));
            line.iter_mut().zip(from).for_each(|(to, &value)| *to += share * value);
        }
    }
}

#[inline(always)]
fn add_to_rows<S: Simd, R: Resample>(
    simd: S,
    line: &[R],
    matrix: &Matrix,
    first: usize,
    out: &mut [R],
    nx: usize,
) {
    let last = (line.len() - 2 * PAD - 1) as f64;
    for (j, row) in out.chunks_mut(nx).enumerate() {
        let (start, slope) = (times(&matrix.u, 0.0, (first + j) as f64, 0.0), matrix.u[0]);
        let (start, slope) = if slope < 0.0 { (last - start, -slope) } else { (start, slope) };
        R::gather(simd, line, start, slope, row);
    }
}
