use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::Grid;

/// Points of a task: their sums stay in the first-level cache.
const CHUNK: usize = 1024;
/// Vectors of points that one atom serves at a time.
const VECTORS: usize = 4;

/// As the first C program would have it: an atom at a time, all points.
pub(super) fn scatter(atoms: &[[f32; 4]], grid: &Grid, v: &mut [f32]) {
    v.fill(0.0);
    let [_, ny, nx] = grid.shape;
    for &[ax, ay, az, q] in atoms {
        for (row, v) in v.chunks_exact_mut(nx).enumerate() {
            let (dy, dz) = (grid.place(1, row % ny) - ay, grid.place(2, row / ny) - az);
            for (ix, v) in v.iter_mut().enumerate() {
                let dx = grid.place(0, ix) - ax;
                *v += q / (dx * dx + dy * dy + dz * dz).sqrt();
            }
        }
    }
}

/// Points outside, atoms inside.
pub(super) fn gather(atoms: &[[f32; 4]], grid: &Grid, v: &mut [f32]) {
    let [_, ny, nx] = grid.shape;
    for (row, v) in v.chunks_exact_mut(nx).enumerate() {
        let (y, z) = (grid.place(1, row % ny), grid.place(2, row / ny));
        for (ix, v) in v.iter_mut().enumerate() {
            let x = grid.place(0, ix);
            let term = |&[ax, ay, az, q]: &[f32; 4]| {
                let (dx, dy, dz) = (x - ax, y - ay, z - az);
                q / (dx * dx + dy * dy + dz * dz).sqrt()
            };
            *v = atoms.iter().map(term).sum();
        }
    }
}

pub(super) fn simd(level: Level, atoms: &[[f32; 4]], grid: &Grid, v: &mut [f32]) {
    let nx = grid.shape[2];
    for (row, v) in v.chunks_exact_mut(nx).enumerate() {
        part(level, atoms, grid, row, 0, v);
    }
}

pub(super) fn threads(cpu: &Cpu, atoms: &[[f32; 4]], grid: &Grid, v: &mut [f32]) {
    let (level, nx) = (cpu.level(), grid.shape[2]);
    cpu.run(|| {
        v.par_chunks_exact_mut(nx).enumerate().for_each(|(row, v)| {
            let chunks = v.par_chunks_mut(CHUNK).enumerate();
            chunks.for_each(|(chunk, v)| part(level, atoms, grid, row, chunk * CHUNK, v));
        });
    });
}

/// Points of a row from `first` on.
fn part(level: Level, atoms: &[[f32; 4]], grid: &Grid, row: usize, first: usize, v: &mut [f32]) {
    dispatch!(level, simd => part_of(simd, atoms, grid, row, first, v));
}

#[inline(always)]
fn part_of<S: Simd>(simd: S, atoms: &[[f32; 4]], grid: &Grid, row: usize, first: usize, v: &mut [f32]) {
    let lanes = S::f32s::LEN;
    let ny = grid.shape[1];
    let (y, z) = (grid.place(1, row % ny), grid.place(2, row / ny));
    let mut point = first;
    for v in v.chunks_mut(VECTORS * lanes) {
        let mut places = [0.0; VECTORS * 16];
        for (i, x) in places[..VECTORS * lanes].iter_mut().enumerate() {
            *x = grid.place(0, point + i);
        }
        let zero = S::f32s::splat(simd, 0.0);
        let (mut x, mut sums) = ([zero; VECTORS], [zero; VECTORS]);
        for (x, places) in x.iter_mut().zip(places.chunks_exact(lanes)) {
            *x = S::f32s::from_slice(simd, places);
        }
        for &[ax, ay, az, q] in atoms {
            let (dy, dz) = (y - ay, z - az);
            let (ax, q) = (S::f32s::splat(simd, ax), S::f32s::splat(simd, q));
            let across = S::f32s::splat(simd, dy * dy + dz * dz);
            for (sum, x) in sums.iter_mut().zip(x) {
                let dx = x - ax;
                *sum += q / dx.mul_add(dx, across).sqrt();
            }
        }
        for (places, sum) in places.chunks_exact_mut(lanes).zip(sums) {
            sum.store_slice(places);
        }
        v.copy_from_slice(&places[..v.len()]);
        point += v.len();
    }
}
