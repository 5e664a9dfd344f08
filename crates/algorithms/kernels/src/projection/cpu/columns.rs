//! Joseph's method for a detector whose columns are parallel to the axis of rotation.
//!
//! The rays of such a column of pixels lie in one upright plane. At a plane of voxels they read the same two
//! columns of voxels with the same two weights, at heights that are affine in the row. So the two columns are
//! mixed once, and the mixture is resampled for all rows. A sample costs two reads of a line in the
//! first-level cache, and no index of its own.

use std::ops::Range;

use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Lanes, Simd, dispatch};
use rayspin_device::cpu::{Stop, zeroed};

use super::resample::{PAD, Resample};
use super::{Scan, rays};
use crate::projection::line::{AXES, Line, part};

/// Rows and slices from which on columns are worth their set-up.
const LEAST: usize = 8;
/// Bytes of the voxels and pixels that are held in another order. More need fewer passes over the volume.
const HELD: usize = 256 << 20;
/// Planes that columns of pixels are summed over, or spread to, while they are in the first-level cache.
const PLANES: usize = 8;
/// Columns of pixels that read neighbouring columns of voxels in turn, while these are in the second-level
/// cache.
const COLUMNS: usize = 64;

/// The rays of a column of pixels. Row r crosses plane i at (b + i·db, (c + r·cr) + i·(dc + r·dcr)).
#[derive(Clone, Copy)]
struct Column {
    line: Line,
    cr: f64,
    dcr: f64,
    /// Whether row 0 is the detector's last, so that heights grow with the row.
    flipped: bool,
}

/// Whether the columns of a view's detector are parallel to z.
fn upright(scan: Scan<'_>, view: usize) -> bool {
    let pose = &scan.geometry.views()[view];
    let none = |x: f64| x.abs() < 1e-12;
    none(pose.u[2]) && none(pose.v[0]) && none(pose.v[1])
}

impl Column {
    /// The column where its rays lie in an upright plane and none is steeper than half a right angle, in
    /// voxels.
    fn new(scan: Scan<'_>, view: usize, column: usize) -> Option<Self> {
        let rows = scan.geometry.detector().rows;
        if rows < LEAST || scan.grid.shape_zyx()[0] < LEAST || !upright(scan, view) {
            return None;
        }
        let flipped = scan.geometry.views()[view].v[2] < 0.0;
        let last = (rows - 1) as f64;
        let line = |row: f64, main| {
            let row = if flipped { last - row } else { row };
            Line::new(scan.geometry, scan.grid, view, [row, column as f64], main)
        };
        let bottom = line(0.0, None);
        let (main, top) = (bottom.main, line(last, None));
        if main == 2 || top.main != main {
            return None;
        }
        let second = line(1.0, Some(main));
        Some(Self { line: bottom, cr: second.c - bottom.c, dcr: second.dc - bottom.dc, flipped })
    }

    /// The place of row 0 and the distance between rows along a column of voxels in a plane.
    fn heights(&self, plane: usize) -> (f64, f64) {
        let i = plane as f64;
        (self.line.c + i * self.line.dc, self.cr + i * self.dcr)
    }

    /// Length between planes along each row's ray, mm.
    fn step(&self, spacing: [f64; 3], row: usize) -> f64 {
        let [a, b, c] = AXES[self.line.main].map(|axis| spacing[axis]);
        let (db, dc) = (self.line.db * b, (self.line.dc + row as f64 * self.dcr) * c);
        (a * a + db * db + dc * dc).sqrt()
    }

    /// The planes that the column's rays cross.
    fn planes(&self, among: Range<usize>, width: usize) -> Range<usize> {
        // Heights differ between rows: the resampling finds where they lie in the volume.
        let level = Line { c: 0.0, dc: 0.0, ..self.line };
        let range = level.planes(among.end, [width, 1]);
        range.start.max(among.start)..range.end.max(among.start)
    }
}

/// Sizes of the planes along a main axis: their number, their rows of voxels (b), and voxels of a column (c,
/// along z).
struct Planes {
    main: usize,
    count: usize,
    width: usize,
    height: usize,
}

impl Planes {
    fn new(scan: Scan<'_>, main: usize) -> Self {
        let size = scan.grid.shape_xyz();
        let [a, b, c] = AXES[main].map(|axis| size[axis]);
        Self { main, count: a, width: b, height: c }
    }

    fn len(&self) -> usize {
        self.width * self.height
    }

    /// Distances in `[z, y, x]` between neighbours along the main axis and along b.
    fn strides(&self, scan: Scan<'_>) -> [usize; 2] {
        let nx = scan.grid.shape_xyz()[0];
        if self.main == 0 { [1, nx] } else { [nx, 1] }
    }

    /// Copies planes of a volume `[z, y, x]` to `[plane, b, z]`.
    fn take<R: Resample>(&self, cpu: &Cpu, scan: Scan<'_>, volume: &[R], first: usize, to: &mut [R]) {
        let ([along, across], slice) = (self.strides(scan), self.count * self.width);
        cpu.run(|| {
            to.par_chunks_mut(self.height).enumerate().for_each(|(index, column)| {
                let from = (first + index / self.width) * along + index % self.width * across;
                for (z, value) in column.iter_mut().enumerate() {
                    *value = volume[z * slice + from];
                }
            });
        });
    }

    /// Adds planes `[plane, b, z]` to a volume `[z, y, x]`.
    fn add<R: Resample>(&self, cpu: &Cpu, scan: Scan<'_>, planes: &[R], first: usize, to: &mut [R]) {
        let ([along, across], slice) = (self.strides(scan), self.count * self.width);
        cpu.run(|| {
            to.par_chunks_mut(slice).enumerate().for_each(|(z, out)| {
                for (index, column) in planes.chunks(self.height).enumerate() {
                    out[(first + index / self.width) * along + index % self.width * across] += column[z];
                }
            });
        });
    }
}

/// Planes of voxels `[plane, b, z]`, from plane `first` of the volume on.
struct Slab<'a, V> {
    voxels: V,
    size: &'a Planes,
    first: usize,
}

/// Lines of `len` numbers, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a, R> {
    pub(super) values: &'a [R],
    pub(super) len: usize,
}

/// Numbers of views that are held at once as `[view, column, row]`, and of planes as `[plane, b, z]`.
fn held<R: Resample>(scan: Scan<'_>, planes: usize) -> (usize, usize) {
    let [views, rows, columns] = scan.geometry.shape();
    let fit = |each: usize| (HELD / (each * size_of::<R>()).max(1)).max(1);
    (fit(rows * columns).min(views), fit(planes))
}

/// Bytes of what projections and their transpose hold beside their arrays.
pub(super) fn bytes([views, rows, columns]: [u64; 3], voxels: [u64; 3]) -> u64 {
    let (held, real) = (HELD as u64, size_of::<f32>() as u64);
    if rows < LEAST as u64 || voxels[0] < LEAST as u64 {
        return 0;
    }
    let block = (held / (real * rows * columns).max(1)).clamp(1, views.max(1));
    let pixels = block * columns * (real * (rows + 2 * PAD as u64) + size_of::<Option<Column>>() as u64);
    let volume = real * voxels.iter().product::<u64>();
    let plane = volume / voxels[1].min(voxels[2]).max(1);
    pixels + volume.min(held.max(plane))
}

/// The columns of some views.
fn columns_of(cpu: &Cpu, scan: Scan<'_>, views: Range<usize>) -> Vec<Option<Column>> {
    let columns = scan.geometry.detector().columns;
    let pixels = views.start * columns..views.end * columns;
    cpu.run(|| pixels.into_par_iter().map(|i| Column::new(scan, i / columns, i % columns)).collect())
}

/// `mixed = a·first + b·second`
#[inline(always)]
fn mix<S: Simd, R: Resample>(simd: S, weights: [R; 2], first: &[R], second: &[R], mixed: &mut [R]) {
    let lanes = Lanes::<S, R>::LEN;
    let [a, b] = weights.map(|weight| Lanes::<S, R>::splat(simd, weight));
    let whole = mixed.len() / lanes * lanes;
    for i in (0..whole).step_by(lanes) {
        let one = Lanes::<S, R>::from_slice(simd, &first[i..i + lanes]) * a;
        Lanes::<S, R>::from_slice(simd, &second[i..i + lanes])
            .mul_add(b, one)
            .store_slice(&mut mixed[i..i + lanes]);
    }
    for i in whole..mixed.len() {
        mixed[i] = first[i] * weights[0] + second[i] * weights[1];
    }
}

/// `to += weight·from`
#[inline(always)]
pub(super) fn add_scaled<S: Simd, R: Resample>(simd: S, weight: R, from: &[R], to: &mut [R]) {
    let lanes = Lanes::<S, R>::LEN;
    let factor = Lanes::<S, R>::splat(simd, weight);
    let whole = to.len() / lanes * lanes;
    for i in (0..whole).step_by(lanes) {
        let sum = Lanes::<S, R>::from_slice(simd, &to[i..i + lanes]);
        Lanes::<S, R>::from_slice(simd, &from[i..i + lanes])
            .mul_add(factor, sum)
            .store_slice(&mut to[i..i + lanes]);
    }
    for i in whole..to.len() {
        to[i] += weight * from[i];
    }
}

/// Mixes the two neighbouring lines around `place`. Lines outside are 0. False where both are outside.
#[inline(always)]
pub(super) fn mix_around<S: Simd, R: Resample>(
    simd: S,
    lines: Lines<'_, R>,
    place: f64,
    weight: f64,
    part: Range<usize>,
    mixed: &mut [R],
) -> bool {
    let Lines { values, len } = lines;
    let count = (values.len() / len) as f64;
    let low = place.floor();
    let real = <R as rayspin_core::Real>::from_f64;
    let [a, b] = [real(weight * (1.0 - (place - low))), real(weight * (place - low))];
    let mixed = &mut mixed[PAD + part.start..PAD + part.end];
    let line = |index: f64| &values[index as usize * len..][part.clone()];
    if low >= 0.0 && low + 1.0 < count {
        mix(simd, [a, b], line(low), line(low + 1.0), mixed);
    } else if low == -1.0 {
        mix(simd, [b, R::zero()], line(0.0), line(0.0), mixed);
    } else if low + 1.0 == count {
        mix(simd, [a, R::zero()], line(low), line(low), mixed);
    } else {
        return false;
    }
    true
}

/// The elements of a line of `len` that places from `start` on, `count` of them, read; one more on each side.
#[inline(always)]
pub(super) fn reach(start: f64, slope: f64, count: usize, len: usize) -> Range<usize> {
    let end = start + (count - 1) as f64 * slope;
    let low = (start.min(end).floor() - 1.0).clamp(0.0, len as f64) as usize;
    let high = (start.max(end).floor() + 3.0).clamp(0.0, len as f64) as usize;
    low..high.max(low)
}

/// Sums of one column over some planes `[plane, b, z]`. They start at plane `first` of the volume.
///
/// A plane's mixture is resampled while the next one is mixed into the other line: vectors that were just
/// stored, and lie across those that are read, would stall the processor.
#[inline(always)]
fn sum_column<S: Simd, R: Resample>(
    simd: S,
    slab: &Slab<'_, &[R]>,
    column: &Column,
    mixed: &mut [Vec<R>; 2],
    out: &mut [R],
) {
    let Slab { voxels, size, first } = *slab;
    let among = first..first + voxels.len() / size.len();
    let [one, other] = mixed;
    let (mut now, mut before) = (one, other);
    let mut waiting: Option<(f64, f64)> = None;
    for i in column.planes(among, size.width) {
        let share = part(column.line.ends, i);
        let (start, slope) = column.heights(i);
        let range = reach(start, slope, out.len(), size.height);
        if share == 0.0 || range.is_empty() {
            continue;
        }
        let plane = Lines { values: &voxels[(i - first) * size.len()..][..size.len()], len: size.height };
        let place = column.line.b + i as f64 * column.line.db;
        if mix_around(simd, plane, place, share, range, now) {
            if let Some((start, slope)) = waiting.replace((start, slope)) {
                R::gather(simd, before, start, slope, out);
            }
            std::mem::swap(&mut now, &mut before);
        }
    }
    if let Some((start, slope)) = waiting {
        R::gather(simd, before, start, slope, out);
    }
}

/// The transpose of [`sum_column`]; `values` are padded.
#[inline(always)]
fn spread_column<S: Simd, R: Resample>(
    simd: S,
    slab: Slab<'_, &mut [R]>,
    column: &Column,
    values: &[R],
    spread: &mut [R],
) {
    let Slab { voxels, size, first } = slab;
    let among = first..first + voxels.len() / size.len();
    let rows = values.len() - 2 * PAD;
    for i in column.planes(among, size.width) {
        let share = part(column.line.ends, i);
        let (start, slope) = column.heights(i);
        let range = reach(start, slope, rows, size.height);
        if share == 0.0 || range.is_empty() {
            continue;
        }
        spread[range.clone()].fill(R::zero());
        R::scatter(simd, values, start, slope, &mut spread[..size.height]);
        let plane = &mut voxels[(i - first) * size.len()..][..size.len()];
        let place = column.line.b + i as f64 * column.line.db;
        let low = place.floor();
        let weights = [share * (1.0 - (place - low)), share * (place - low)];
        for (index, weight) in [low, low + 1.0].into_iter().zip(weights) {
            if index >= 0.0 && index < size.width as f64 {
                let to = &mut plane[index as usize * size.height..][range.clone()];
                add_scaled(simd, <R as rayspin_core::Real>::from_f64(weight), &spread[range.clone()], to);
            }
        }
    }
}

pub(super) fn forward<R: Resample>(cpu: &Cpu, scan: Scan<'_>, volume: &[R], out: &mut [R]) -> Result<()> {
    let ([views, rows, columns], stop) = (scan.geometry.shape(), Stop::of_caller());
    let (block, _) = held::<R>(scan, 1);
    let mut sums: Vec<R> = Vec::new();
    let mut planes: Vec<R> = Vec::new();
    // Columns whose rays are summed one by one.
    let mut alone: Vec<bool> = Vec::new();
    for first_view in (0..views).step_by(block) {
        let some = first_view..(first_view + block).min(views);
        let list = columns_of(cpu, scan, some.clone());
        alone.extend(list.iter().map(Option::is_none));
        if list.iter().all(Option::is_none) {
            continue;
        }
        if sums.len() != list.len() * rows {
            sums = zeroed("columns of pixels", list.len() * rows)?;
        }
        sums.fill(R::zero());
        for main in 0..2 {
            if !list.iter().flatten().any(|column| column.line.main == main) {
                continue;
            }
            let size = Planes::new(scan, main);
            let at_once = held::<R>(scan, size.len()).1.min(size.count);
            if planes.len() < at_once * size.len() {
                planes = zeroed("columns of voxels", at_once * size.len())?;
            }
            for first in (0..size.count).step_by(at_once) {
                let part = &mut planes[..at_once.min(size.count - first) * size.len()];
                size.take(cpu, scan, volume, first, part);
                let part = &*part;
                cpu.run(|| {
                    // A view's columns in turn read neighbouring columns of voxels.
                    sums.par_chunks_mut(rows * columns.min(COLUMNS)).zip(list.par_chunks(columns.min(COLUMNS))).for_each_init(
                        || [(); 2].map(|()| super::resample::padded(size.height)),
                        |mixed, (sums, list)| {
                            dispatch!(cpu.level(), simd => {
                                for (group, voxels) in part.chunks(PLANES * size.len()).enumerate() {
                                    if stop.is_set() {
                                        break;
                                    }
                                    let slab = Slab { voxels, size: &size, first: first + group * PLANES };
                                    for (column, sums) in list.iter().zip(sums.chunks_mut(rows)) {
                                        if let Some(column) = column.as_ref().filter(|column| column.line.main == main) {
                                            sum_column(simd, &slab, column, mixed, sums);
                                        }
                                    }
                                }
                            });
                        },
                    );
                });
                stop.check()?;
            }
        }
        let (sums, list) = (&sums, &list);
        let out = &mut out[some.start * rows * columns..some.end * rows * columns];
        cpu.run(|| {
            out.par_chunks_mut(rows * columns).enumerate().for_each(|(view, out)| {
                for (index, column) in list[view * columns..(view + 1) * columns].iter().enumerate() {
                    let Some(column) = column else { continue };
                    let sums = &sums[(view * columns + index) * rows..][..rows];
                    for (row, sum) in sums.iter().enumerate() {
                        let step = column.step(scan.grid.spacing_mm(), row);
                        let to = if column.flipped { rows - 1 - row } else { row };
                        out[to * columns + index] = *sum * <R as rayspin_core::Real>::from_f64(step);
                    }
                }
            });
        });
    }
    if alone.contains(&true) {
        rays::forward_where(cpu, scan, volume, out, &|view, column| alone[view * columns + column])?;
    }
    Ok(())
}

pub(super) fn adjoint<R: Resample>(cpu: &Cpu, scan: Scan<'_>, values: &[R], out: &mut [R]) -> Result<()> {
    out.fill(R::zero());
    let ([views, rows, columns], stop) = (scan.geometry.shape(), Stop::of_caller());
    let (block, _) = held::<R>(scan, 1);
    let long = rows + 2 * PAD;
    let mut turned: Vec<R> = Vec::new();
    let mut planes: Vec<R> = Vec::new();
    let mut alone: Vec<bool> = Vec::new();
    for first_view in (0..views).step_by(block) {
        let some = first_view..(first_view + block).min(views);
        let list = columns_of(cpu, scan, some.clone());
        alone.extend(list.iter().map(Option::is_none));
        if list.iter().all(Option::is_none) {
            continue;
        }
        if turned.len() != list.len() * long {
            turned = zeroed("columns of pixels", list.len() * long)?;
        }
        let of_block = &values[some.start * rows * columns..some.end * rows * columns];
        cpu.run(|| {
            turned.par_chunks_mut(long).zip(&list).enumerate().for_each(|(index, (line, column))| {
                let Some(column) = column else { return };
                let view = &of_block[index / columns * rows * columns..][..rows * columns];
                for (row, value) in line[PAD..PAD + rows].iter_mut().enumerate() {
                    let from = if column.flipped { rows - 1 - row } else { row };
                    let step = column.step(scan.grid.spacing_mm(), row);
                    *value =
                        view[from * columns + index % columns] * <R as rayspin_core::Real>::from_f64(step);
                }
            });
        });
        for main in 0..2 {
            if !list.iter().flatten().any(|column| column.line.main == main) {
                continue;
            }
            let size = Planes::new(scan, main);
            let at_once = held::<R>(scan, size.len()).1.min(size.count);
            if planes.len() < at_once * size.len() {
                planes = zeroed("columns of voxels", at_once * size.len())?;
            }
            for first in (0..size.count).step_by(at_once) {
                let part = &mut planes[..at_once.min(size.count - first) * size.len()];
                part.fill(R::zero());
                cpu.run(|| {
                    let group = PLANES.min(at_once.div_ceil(cpu.threads()));
                    part.par_chunks_mut(group * size.len()).enumerate().for_each_init(
                        || vec![R::zero(); size.height],
                        |spread, (index, voxels)| {
                            dispatch!(cpu.level(), simd => {
                                for (column, values) in list.iter().zip(turned.chunks(long)) {
                                    if stop.is_set() {
                                        break;
                                    }
                                    if let Some(column) = column.as_ref().filter(|column| column.line.main == main) {
                                        let slab = Slab { voxels: &mut *voxels, size: &size, first: first + index * group };
                                        spread_column(simd, slab, column, values, spread);
                                    }
                                }
                            });
                        },
                    );
                });
                stop.check()?;
                size.add(cpu, scan, part, first, out);
            }
        }
    }
    match alone.contains(&true) {
        true => {
            rays::add_adjoint_where(cpu, scan, values, out, &|view, column| alone[view * columns + column])
        }
        false => Ok(()),
    }
}
