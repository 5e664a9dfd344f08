use std::ops::{Add, Div, Mul, Sub};

use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::{DIRECTIONS, Flow, Problem, opposite};

/// Cells of a task at least: small boxes have a task for each thread, too.
const TASK: usize = 1 << 12;

/// What arrives at a cell, where `value(i, cell)` is population i of what left a cell.
#[inline(always)]
fn arrived(p: &Problem, [z, y, x]: [usize; 3], value: impl Fn(usize, usize) -> f32) -> [f32; 19] {
    let [nz, ny, nx] = p.shape;
    let mut g = [0.0; 19];
    for (i, [cx, cy, cz]) in DIRECTIONS.into_iter().enumerate() {
        let from = |axis: usize, coordinate: usize, c: i32, n: usize| match c {
            1 if coordinate == 0 => (!p.flow.walls[axis]).then_some(n - 1),
            -1 if coordinate == n - 1 => (!p.flow.walls[axis]).then_some(0),
            c => Some((coordinate as isize - c as isize) as usize),
        };
        let from = from(0, z, cz, nz).zip(from(1, y, cy, ny)).zip(from(2, x, cx, nx));
        g[i] = match from {
            Some(((z, y), x)) => value(i, (z * ny + y) * nx + x),
            None => value(opposite(i), (z * ny + y) * nx + x),
        };
    }
    if p.flow.walls[1] && y == ny - 1 {
        // The populations that fall from the lid have its momentum: 6 w c·U.
        g[8] -= p.flow.lid / 6.0;
        g[13] += p.flow.lid / 6.0;
    }
    g
}

/// Density less 1 and momentum.
#[inline(always)]
fn moments<V: Copy + Add<Output = V> + Sub<Output = V>>(g: &[V; 19]) -> [V; 4] {
    // No closures here: they would be functions of their own, without the vectors of the caller's instruction
    // set.
    let (mut sum, mut less) = ([g[0]; 9], [g[0]; 9]);
    for k in 0..9 {
        sum[k] = g[2 * k + 1] + g[2 * k + 2];
        less[k] = g[2 * k + 1] - g[2 * k + 2];
    }
    [
        g[0] + ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])) + sum[8],
        less[0] + less[3] + less[4] + less[6] + less[7],
        less[1] + less[3] + less[5] - less[6] + less[8],
        less[2] + less[4] + less[5] - less[7] - less[8],
    ]
}

/// g + ω (equilibrium − g), and what the force along x adds.
#[inline(always)]
fn toward<V>(g: &mut [V; 19], [d, ux, uy, uz]: [V; 4], omega: f32, force: f32, splat: impl Fn(f32) -> V)
where
    V: Copy + Add<Output = V> + Sub<Output = V> + Mul<Output = V>,
{
    let rho = splat(1.0) + d;
    let base = d - splat(1.5) * rho * (ux * ux + uy * uy + uz * uz);
    let omega = splat(omega);
    let along = [ux, uy, uz, ux + uy, ux + uz, uy + uz, ux - uy, ux - uz, uy - uz];
    g[0] = g[0] + omega * (splat(1.0 / 3.0) * base - g[0]);
    for k in 0..9 {
        let weight = if k < 3 { 1.0 / 18.0 } else { 1.0 / 36.0 };
        let kick = if DIRECTIONS[2 * k + 1][0] == 1 { 3.0 * weight * force } else { 0.0 };
        let (weight, kick) = (splat(weight), splat(kick));
        let even = weight * (base + splat(4.5) * rho * along[k] * along[k]);
        let odd = splat(3.0) * weight * rho * along[k];
        g[2 * k + 1] = g[2 * k + 1] + omega * (even + odd - g[2 * k + 1]) + kick;
        g[2 * k + 2] = g[2 * k + 2] + omega * (even - odd - g[2 * k + 2]) - kick;
    }
}

#[inline(always)]
fn collide<V>(g: &mut [V; 19], omega: f32, force: f32, splat: impl Fn(f32) -> V)
where
    V: Copy + Add<Output = V> + Sub<Output = V> + Mul<Output = V> + Div<Output = V>,
{
    let [d, jx, jy, jz] = moments(g);
    let inverse = splat(1.0) / (splat(1.0) + d);
    toward(g, [d, inverse * jx, inverse * jy, inverse * jz], omega, force, splat);
}

/// What leaves a cell first: an equilibrium, which a collision leaves as it is.
fn first(p: &Problem, start: &[f32], cell: usize) -> [f32; 19] {
    let (mut g, cells) = ([0.0; 19], p.cells());
    toward(&mut g, [0, 1, 2, 3].map(|f| start[f * cells + cell]), 1.0, p.flow.force, |v| v);
    g
}

/// Density less 1 and velocity: the mean of before and after a collision.
fn last(p: &Problem, g: &[f32; 19]) -> [f32; 4] {
    let [d, jx, jy, jz] = moments(g);
    let inverse = 1.0 / (1.0 + d);
    [d, inverse * (jx + 0.5 * p.flow.force), inverse * jy, inverse * jz]
}

/// A cell after another. `RECORDS`: its populations lie side by side; otherwise each has an array of its own.
pub(super) fn scalar<const RECORDS: bool>(p: &Problem, start: &[f32], f: &mut [f32], out: &mut [f32]) {
    let cells = p.cells();
    let index = |i: usize, cell: usize| if RECORDS { 19 * cell + i } else { i * cells + cell };
    let [_, ny, nx] = p.shape;
    let place = |cell: usize| [cell / nx / ny, cell / nx % ny, cell % nx];
    let (mut from, mut to) = f.split_at_mut(19 * cells);
    for cell in 0..cells {
        for (i, g) in first(p, start, cell).into_iter().enumerate() {
            from[index(i, cell)] = g;
        }
    }
    for _ in 1..p.steps {
        for cell in 0..cells {
            let mut g = arrived(p, place(cell), |i, cell| from[index(i, cell)]);
            collide(&mut g, p.flow.omega, p.flow.force, |v| v);
            for (i, g) in g.into_iter().enumerate() {
                to[index(i, cell)] = g;
            }
        }
        std::mem::swap(&mut from, &mut to);
    }
    for cell in 0..cells {
        let g = arrived(p, place(cell), |i, cell| from[index(i, cell)]);
        for (field, value) in last(p, &g).into_iter().enumerate() {
            out[field * cells + cell] = value;
        }
    }
}

/// Vectors along x, on one thread or on the threads of `cpu`.
pub(super) fn vectors(
    level: Level,
    cpu: Option<&Cpu>,
    p: &Problem,
    start: &[f32],
    f: &mut [f32],
    out: &mut [f32],
) {
    let (cells, nx) = (p.cells(), p.shape[2]);
    let (mut from, mut to) = f.split_at_mut(19 * cells);
    over_rows(cpu, p, from, |row, planes| {
        for x in 0..nx {
            for (plane, g) in planes.iter_mut().zip(first(p, start, row * nx + x)) {
                plane[x] = g;
            }
        }
    });
    for _ in 1..p.steps {
        let before = &*from;
        over_rows(cpu, p, to, |row, planes| dispatch!(level, simd => one_row(simd, p, before, row, planes)));
        std::mem::swap(&mut from, &mut to);
    }
    let from = &*from;
    over_rows(cpu, p, out, |row, fields| {
        for x in 0..nx {
            let g = arrived(p, [row / p.shape[1], row % p.shape[1], x], |i, cell| from[i * cells + cell]);
            for (field, value) in fields.iter_mut().zip(last(p, &g)) {
                field[x] = value;
            }
        }
    });
}

/// Calls `work` for every row of cells with that row of each of the arrays that lie in `arrays`.
fn over_rows(
    cpu: Option<&Cpu>,
    p: &Problem,
    arrays: &mut [f32],
    work: impl Fn(usize, &mut [&mut [f32]]) + Sync,
) {
    let nx = p.shape[2];
    let rows = TASK.div_ceil(nx);
    let mut parts: Vec<_> =
        arrays.chunks_exact_mut(p.cells()).map(|plane| plane.chunks_mut(rows * nx)).collect();
    let tasks: Vec<Vec<&mut [f32]>> = (0..p.cells().div_ceil(rows * nx))
        .map(|_| parts.iter_mut().filter_map(Iterator::next).collect())
        .collect();
    let task = |(index, planes): (usize, Vec<&mut [f32]>)| {
        let mut planes: Vec<_> = planes.into_iter().map(|plane| plane.chunks_exact_mut(nx)).collect();
        let mut of_row = Vec::with_capacity(planes.len());
        for row in index * rows.. {
            of_row.extend(planes.iter_mut().filter_map(Iterator::next));
            if of_row.is_empty() {
                break;
            }
            work(row, &mut of_row);
            of_row.clear();
        }
    };
    match cpu {
        None => tasks.into_iter().enumerate().for_each(task),
        Some(cpu) => cpu.run(|| tasks.into_par_iter().enumerate().for_each(task)),
    }
}

/// A row: its ends by themselves, the cells between them in vectors. The last vector may overlap the one
/// before.
#[inline(always)]
fn one_row<S: Simd>(simd: S, p: &Problem, from: &[f32], row: usize, to: &mut [&mut [f32]]) {
    let ([nz, ny, nx], cells, lanes) = (p.shape, p.cells(), S::f32s::LEN);
    let (z, y) = (row / ny, row % ny);
    let Flow { omega, force, lid, .. } = p.flow;
    let alone = |x: usize, to: &mut [&mut [f32]]| {
        let mut g = arrived(p, [z, y, x], |i, cell| from[i * cells + cell]);
        collide(&mut g, omega, force, |v| v);
        for (to, g) in to.iter_mut().zip(g) {
            to[x] = g;
        }
    };
    if nx < lanes + 2 {
        (0..nx).for_each(|x| alone(x, to));
        return;
    }
    alone(0, to);
    alone(nx - 1, to);
    // Where each population comes from: a row, and how far back along x, plus 1.
    let mut lines: [(&[f32], usize); 19] = [(&[], 0); 19];
    for (i, [cx, cy, cz]) in DIRECTIONS.into_iter().enumerate() {
        let from_row = |axis: usize, coordinate: usize, c: i32, n: usize| match c {
            1 if coordinate == 0 => (!p.flow.walls[axis]).then_some(n - 1),
            -1 if coordinate == n - 1 => (!p.flow.walls[axis]).then_some(0),
            c => Some((coordinate as isize - c as isize) as usize),
        };
        lines[i] = match from_row(0, z, cz, nz).zip(from_row(1, y, cy, ny)) {
            Some((z, y)) => (&from[i * cells + (z * ny + y) * nx..][..nx], (1 + cx) as usize),
            None => (&from[opposite(i) * cells + row * nx..][..nx], 1),
        };
    }
    let under_lid = p.flow.walls[1] && y == ny - 1;
    let mut x = 1;
    while x < nx - 1 {
        let first = x.min(nx - 1 - lanes);
        let mut g = [S::f32s::splat(simd, 0.0); 19];
        // Places and no iterators by value, which would copy all vectors through memory once more.
        for i in 0..19 {
            let (line, back) = lines[i];
            g[i] = S::f32s::from_slice(simd, &line[first + 1 - back..][..lanes]);
        }
        if under_lid {
            g[8] -= lid / 6.0;
            g[13] += lid / 6.0;
        }
        collide(
            &mut g,
            omega,
            force,
            #[inline(always)]
            |v| S::f32s::splat(simd, v),
        );
        for i in 0..19 {
            g[i].store_slice(&mut to[i][first..first + lanes]);
        }
        x += lanes;
    }
}
