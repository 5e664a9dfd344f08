use rayon::prelude::*;
use rayspin_core::{C32, C64};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::dispatch;

use super::{MAX_SETS, Problem, weight};

/// Iterations at most; within the object the start from the neighbour needs two or three. The README says
/// what the limit leaves.
const MAX_ITERATIONS: usize = 40;
/// Residual ‖Gv − λv‖ of unit vectors at which iteration ends.
const CONVERGED: f32 = 1e-4;
/// Vectors iterated: one beyond those wanted makes the last of them converge too.
const BLOCK: usize = MAX_SETS + 1;

/// One plane of voxels after another: lags along z are summed once a plane, along y once a row, along x once
/// a voxel. One row a task.
pub(super) fn rows(cpu: &Cpu, problem: &Problem, correlation: &[C32], phase: &[C32], maps: &mut [C32]) {
    let [_, ny, nx] = problem.shape_zyx;
    let (coils, sets, [first_plane, planes]) = (problem.coils, problem.sets, problem.planes);
    let voxels = problem.voxels();
    if voxels == 0 {
        return;
    }
    let [lz, ly, lx] = problem.reach_zyx.map(|h| 2 * h + 1);
    let pairs = coils * (coils + 1) / 2;
    let phases = [0, 1, 2].map(|axis| phases(problem.shape_zyx[axis], problem.reach_zyx[axis]));
    cpu.run(|| {
        let mut plane = vec![C32::ZERO; ly * lx * pairs];
        let mut by_row = vec![C32::ZERO; sets * coils * ny * nx];
        for (plane_index, z) in (first_plane..first_plane + planes).enumerate() {
            plane.par_chunks_mut(pairs).enumerate().for_each(|(lag, out)| {
                let mut pair = 0;
                for i in 0..coils {
                    for j in 0..=i {
                        let lags = &correlation[(i * coils + j) * lz * ly * lx..];
                        out[pair] = (0..lz)
                            .map(|d| lags[d * ly * lx + lag] * phases[0][z * lz + d])
                            .fold(C32::ZERO, |sum, v| sum + v);
                        pair += 1;
                    }
                }
            });
            by_row.par_chunks_mut(nx * sets * coils).enumerate().for_each_init(
                || Row::new(problem, pairs, lx),
                |row, (y, out)| {
                    dispatch!(cpu.level(), _simd => row.sum_y(&plane, &phases[1][y * ly..(y + 1) * ly]));
                    row.start();
                    for (x, out) in out.chunks_exact_mut(sets * coils).enumerate() {
                        dispatch!(cpu.level(), _simd => row.sum_x(&phases[2][x * lx..(x + 1) * lx]));
                        row.voxel(problem, phase, out);
                    }
                },
            );
            maps.par_chunks_mut(voxels).enumerate().for_each(|(map, out)| {
                let out = &mut out[plane_index * ny * nx..(plane_index + 1) * ny * nx];
                for (out, values) in out.iter_mut().zip(by_row.chunks_exact(sets * coils)) {
                    *out = values[map];
                }
            });
        }
    });
}

/// e^{−i2πδx} for every position (slow) and lag −h..=h (fast) of an axis.
fn phases(n: usize, reach: usize) -> Vec<C32> {
    let lags = 2 * reach + 1;
    (0..n * lags)
        .map(|index| {
            let x = ((index / lags) as f64 - (n / 2) as f64) / n as f64;
            let value = C64::cis(-std::f64::consts::TAU * ((index % lags) as f64 - reach as f64) * x);
            C32::new(value.re as f32, value.im as f32)
        })
        .collect()
}

/// Scratch of one task.
struct Row {
    coils: usize,
    wanted: usize,
    block: usize,
    /// Lags along x of the row, `[lag, pair]`, real and imaginary parts apart.
    lags: [Vec<f32>; 2],
    /// Lower triangle of G, `[pair]`.
    pairs: [Vec<f32>; 2],
    matrix: Vec<C32>,
    /// Orthonormal vectors `[vector, coil]`, and G applied to them.
    vectors: Vec<C32>,
    images: Vec<C32>,
    turned: Vec<C32>,
}

impl Row {
    fn new(problem: &Problem, pairs: usize, lags: usize) -> Self {
        let coils = problem.coils;
        let block = (problem.sets + 1).min(coils);
        let vectors = vec![C32::ZERO; block * coils];
        Self {
            coils,
            wanted: problem.sets,
            block,
            lags: [vec![0.0; lags * pairs], vec![0.0; lags * pairs]],
            pairs: [vec![0.0; pairs], vec![0.0; pairs]],
            matrix: vec![C32::ZERO; coils * coils],
            images: vectors.clone(),
            turned: vectors.clone(),
            vectors,
        }
    }

    /// Vectors with something of every direction, the same for every row.
    fn start(&mut self) {
        for (index, v) in self.vectors.iter_mut().enumerate() {
            let (k, j) = ((index / self.coils) as f32, (index % self.coils) as f32);
            *v = C32::from_polar(1.0, 1.7 * k * j + 0.9 * k * k + 0.4 * j);
        }
        orthonormalise(&mut self.vectors, self.coils);
    }

    #[inline(always)]
    fn sum_y(&mut self, plane: &[C32], phases: &[C32]) {
        let [re, im] = &mut self.lags;
        let len = re.len();
        re.fill(0.0);
        im.fill(0.0);
        for (plane, p) in plane.chunks_exact(len).zip(phases) {
            for ((re, im), v) in re.iter_mut().zip(im.iter_mut()).zip(plane) {
                *re += v.re * p.re - v.im * p.im;
                *im += v.re * p.im + v.im * p.re;
            }
        }
    }

    #[inline(always)]
    fn sum_x(&mut self, phases: &[C32]) {
        let [out_re, out_im] = &mut self.pairs;
        let len = out_re.len();
        out_re.fill(0.0);
        out_im.fill(0.0);
        let lags = self.lags[0].chunks_exact(len).zip(self.lags[1].chunks_exact(len));
        for ((re, im), p) in lags.zip(phases) {
            let out = out_re.iter_mut().zip(out_im.iter_mut());
            for ((out_re, out_im), (re, im)) in out.zip(re.iter().zip(im)) {
                *out_re += re * p.re - im * p.im;
                *out_im += re * p.im + im * p.re;
            }
        }
    }

    /// Subspace iteration with Rayleigh–Ritz: V ← orthonormal basis of GV, turned to the eigenvectors of
    /// VᴴGV.
    fn voxel(&mut self, problem: &Problem, phase: &[C32], out: &mut [C32]) {
        let n = self.coils;
        let mut pair = 0;
        for i in 0..n {
            for j in 0..=i {
                let value = C32::new(self.pairs[0][pair], self.pairs[1][pair]);
                self.matrix[i * n + j] = value;
                self.matrix[j * n + i] = value.conj();
                pair += 1;
            }
            self.matrix[i * n + i].im = 0.0;
        }
        let mut values = [0.0f32; BLOCK];
        for iteration in 0..MAX_ITERATIONS {
            for (image, v) in self.images.chunks_exact_mut(n).zip(self.vectors.chunks_exact(n)) {
                for (image, row) in image.iter_mut().zip(self.matrix.chunks_exact(n)) {
                    *image = row.iter().zip(v).map(|(m, v)| m * v).fold(C32::ZERO, |sum, v| sum + v);
                }
            }
            self.ritz(&mut values);
            let residual = (0..self.wanted)
                .map(|k| {
                    let pairs = self.images[k * n..][..n].iter().zip(&self.vectors[k * n..][..n]);
                    pairs.map(|(g, v)| (g - v * values[k]).norm_sqr()).sum::<f32>()
                })
                .fold(0.0f32, f32::max);
            if residual < CONVERGED * CONVERGED || iteration + 1 == MAX_ITERATIONS {
                break;
            }
            std::mem::swap(&mut self.vectors, &mut self.images);
            orthonormalise(&mut self.vectors, n);
        }
        for (set, out) in out.chunks_exact_mut(n).enumerate() {
            let vector = &self.vectors[set * n..][..n];
            let overlap: C32 = phase.iter().zip(vector).map(|(p, v)| p.conj() * v).sum();
            let turn = if overlap.norm_sqr() > 0.0 { overlap.conj() / overlap.norm() } else { C32::ONE };
            let scale = turn * weight(values[set].into(), problem.crop.into()) as f32;
            for (out, v) in out.iter_mut().zip(vector) {
                *out = v * scale;
            }
        }
    }

    /// Turns vectors and their images to the eigenvectors of VᴴGV, the largest eigenvalue first.
    fn ritz(&mut self, values: &mut [f32; BLOCK]) {
        let (n, b) = (self.coils, self.block);
        let mut h = [[C32::ZERO; BLOCK]; BLOCK];
        for (i, row) in h.iter_mut().enumerate().take(b) {
            for (j, h) in row.iter_mut().enumerate().take(b) {
                let (v, g) = (&self.vectors[i * n..][..n], &self.images[j * n..][..n]);
                *h = v.iter().zip(g).map(|(v, g)| v.conj() * g).sum();
            }
        }
        let turn = jacobi(&mut h, b);
        let mut order = [0; BLOCK];
        for (i, place) in order.iter_mut().enumerate() {
            *place = i;
        }
        order[..b].sort_by(|&i, &j| h[j][j].re.total_cmp(&h[i][i].re));
        for (value, &k) in values.iter_mut().zip(&order[..b]) {
            *value = h[k][k].re;
        }
        for array in [&mut self.vectors, &mut self.images] {
            for (out, &k) in self.turned.chunks_exact_mut(n).zip(&order[..b]) {
                out.fill(C32::ZERO);
                for (v, turn) in array.chunks_exact(n).zip(&turn) {
                    for (out, v) in out.iter_mut().zip(v) {
                        *out += v * turn[k];
                    }
                }
            }
            std::mem::swap(array, &mut self.turned);
        }
    }
}

/// Makes a Hermitian matrix of `n` rows diagonal by plane rotations; returns U with diag = Uᴴ h U.
fn jacobi(h: &mut [[C32; BLOCK]; BLOCK], n: usize) -> [[C32; BLOCK]; BLOCK] {
    let mut u = [[C32::ZERO; BLOCK]; BLOCK];
    for (i, row) in u.iter_mut().enumerate() {
        row[i] = C32::ONE;
    }
    // One sweep is exact for two vectors; more of them are nearly diagonal from the iteration before.
    let sweeps = if n > 2 { 4 } else { 1 };
    for _ in 0..sweeps {
        for p in 0..n {
            for q in p + 1..n {
                let size = h[p][q].norm();
                if size <= f32::MIN_POSITIVE {
                    continue;
                }
                let direction = h[p][q] / size;
                let angle = 0.5 * (2.0 * size).atan2(h[p][p].re - h[q][q].re);
                let (s, c) = angle.sin_cos();
                // Columns p and q of h and u become c p + s conj(d) q and −s d p + c q.
                for matrix in [&mut *h, &mut u] {
                    for row in matrix.iter_mut().take(n) {
                        let (a, b) = (row[p], row[q]);
                        row[p] = a * c + b * direction.conj() * s;
                        row[q] = b * c - a * direction * s;
                    }
                }
                let (above, below) = h.split_at_mut(q);
                for (top, low) in above[p].iter_mut().zip(&mut below[0]).take(n) {
                    let (a, b) = (*top, *low);
                    *top = a * c + b * direction * s;
                    *low = b * c - a * direction.conj() * s;
                }
            }
        }
    }
    u
}

/// Gram–Schmidt; a vector that the others leave nothing of is replaced by a coil's own direction.
fn orthonormalise(vectors: &mut [C32], n: usize) {
    for k in 0..vectors.len() / n {
        let (before, rest) = vectors.split_at_mut(k * n);
        let v = &mut rest[..n];
        let size = |v: &[C32]| v.iter().map(|v| v.norm_sqr()).sum::<f32>().sqrt();
        for attempt in 0..=n {
            let full = size(v);
            // Twice is enough to be orthogonal in the precision of the numbers.
            for _ in 0..2 {
                for b in before.chunks_exact(n) {
                    let overlap: C32 = b.iter().zip(v.iter()).map(|(b, v)| b.conj() * v).sum();
                    v.iter_mut().zip(b).for_each(|(v, b)| *v -= b * overlap);
                }
            }
            let left = size(v);
            if left > 1e-5 * full && left > f32::MIN_POSITIVE {
                v.iter_mut().for_each(|v| *v /= left);
                break;
            }
            v.fill(C32::ZERO);
            if attempt < n {
                v[attempt] = C32::ONE;
            }
        }
    }
}
