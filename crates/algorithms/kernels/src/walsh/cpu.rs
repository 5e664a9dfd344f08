//! A row of voxels a task; a SIMD lane a voxel, from the windows' sums to the eigenvectors.

use rayon::prelude::*;
use rayspin_core::{C32, C64};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch, load_complex, store_complex};

use super::{Problem, pairs};

/// Maximum number of power iterations. Calibration data are nearly of rank one, where four or five suffice.
/// The README states the accuracy at this limit.
const MAX_ITERATIONS: usize = 40;
/// Squared change of the unit vector at which power iteration ends.
const CONVERGED: f32 = 1e-8;
/// Lanes of the widest vectors.
const WIDEST: usize = 16;
/// Parts of an image whose covariances are summed apart: the same on every machine, as are the bits of their
/// sum.
const PARTS: usize = 64;
/// Voxels of all coils that stay in the second-level cache while the pairs go over them.
const RUN: usize = 1024;

/// Maps of the wanted planes.
pub(super) fn rows(cpu: &Cpu, problem: &Problem, images: &[C32], reference: &[C32], maps: &mut [C32]) {
    let [_, ny, nx] = problem.shape_zyx;
    let ([first_plane, planes], coils, voxels) = (problem.planes, problem.coils, problem.voxels());
    if voxels == 0 {
        return;
    }
    let together = rows_together(cpu.threads(), problem);
    cpu.run(|| {
        for first in (0..planes * ny).step_by(together) {
            let count = together.min(planes * ny - first);
            // The row of every coil, for the task that writes it.
            let mut rows: Vec<Vec<&mut [C32]>> = Vec::new();
            rows.resize_with(count, || Vec::with_capacity(coils));
            for map in maps.chunks_exact_mut(voxels) {
                let of_coil = map[first * nx..][..count * nx].chunks_exact_mut(nx);
                rows.iter_mut().zip(of_coil).for_each(|(row, of_coil)| row.push(of_coil));
            }
            rows.par_iter_mut().enumerate().for_each_init(
                || Window::new(problem),
                |window, (row, out)| {
                    let (z, y) = (first_plane + (first + row) / ny, (first + row) % ny);
                    dispatch!(cpu.level(), simd => {
                        window.fill(simd, problem, images, z, y);
                        window.solve(simd, reference, out);
                    });
                },
            );
        }
    });
}

/// Rows that are solved together: enough for the threads to share evenly.
fn rows_together(threads: usize, problem: &Problem) -> usize {
    (64 * threads).min(problem.planes[1] * problem.shape_zyx[1])
}

/// Bytes that [`rows`] takes beside images and maps: where the rows under way lie, and each thread's window.
/// Before that, the covariances of [`add`].
pub(super) fn scratch_bytes(threads: usize, problem: &Problem) -> u64 {
    let coils = problem.coils;
    let rows = rows_together(threads, problem) * (size_of::<Vec<&mut [C32]>>() + coils * size_of::<&[C32]>());
    let window = 2 * pairs(coils) * (pitch(problem) + WIDEST) + 4 * coils * WIDEST;
    let solving = rows + threads * window * size_of::<f32>();
    solving.max(PARTS * pairs(coils) * size_of::<C64>()) as u64
}

/// Adds Σ_x m(x) m(x)ᴴ of images `[coil, voxel]` to its lower triangle.
pub(super) fn add(cpu: &Cpu, coils: usize, images: &[C32], sums: &mut [C64]) {
    let voxels = images.len() / coils;
    let part = voxels.div_ceil(PARTS).max(1);
    let parts: Vec<Vec<C64>> = cpu.run(|| {
        let starts = (0..voxels.div_ceil(part)).into_par_iter().map(|index| index * part);
        starts
            .map(|start| {
                let mut sums = vec![C64::ZERO; sums.len()];
                let end = (start + part).min(voxels);
                for from in (start..end).step_by(RUN) {
                    let run = from..(from + RUN).min(end);
                    let part = |coil: usize| &images[coil * voxels..][run.clone()];
                    let mut sums = sums.iter_mut();
                    for i in 0..coils {
                        for (j, sum) in (0..=i).zip(&mut sums) {
                            *sum += dispatch!(cpu.level(), simd => product(simd, part(i), part(j)));
                        }
                    }
                }
                sums
            })
            .collect()
    });
    for part in &parts {
        sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
    }
}

/// Σ_x a(x) b̄(x): products in f32, sums in f64.
#[inline(always)]
fn product<S: Simd>(simd: S, a: &[C32], b: &[C32]) -> C64 {
    let lanes = S::f32s::LEN;
    let mut sums = [S::f64s::splat(simd, 0.0); 4];
    for (a, b) in a.chunks(lanes).zip(b.chunks(lanes)) {
        let ((ar, ai), (br, bi)) = (load(simd, a), load(simd, b));
        let (low, high) = ar.mul_add(br, ai * bi).widen();
        sums[0] += low;
        sums[1] += high;
        let (low, high) = ai.mul_add(br, -(ar * bi)).widen();
        sums[2] += low;
        sums[3] += high;
    }
    let (re, im) = (sums[0] + sums[1], sums[2] + sums[3]);
    C64::new(re.as_slice().iter().sum(), im.as_slice().iter().sum())
}

/// The dominant eigenvector of the matrix with the lower triangle `sums`.
pub(super) fn principal(level: Level, coils: usize, sums: &[C64]) -> Vec<C32> {
    let mut block = Block::new(coils);
    dispatch!(level, simd => {
        let lanes = block.of_one(simd, sums);
        block.iterate(simd);
        let vector = block.vector.chunks_exact(2 * lanes).take(coils);
        vector.map(|parts| C32::new(parts[0], parts[lanes])).collect()
    })
}

/// As many complex numbers as a vector has lanes, zeros where `from` has fewer.
#[inline(always)]
fn load<S: Simd>(simd: S, from: &[C32]) -> (S::f32s, S::f32s) {
    let lanes = S::f32s::LEN;
    if from.len() == lanes {
        return load_complex::<S, f32>(simd, from);
    }
    let mut padded = [C32::ZERO; WIDEST];
    padded[..from.len()].copy_from_slice(from);
    load_complex::<S, f32>(simd, &padded[..lanes])
}

/// The `index`-th complex vector of `[index, part, lane]`.
#[inline(always)]
fn get<S: Simd>(simd: S, from: &[f32], index: usize) -> (S::f32s, S::f32s) {
    let lanes = S::f32s::LEN;
    let (re, im) = from[2 * index * lanes..][..2 * lanes].split_at(lanes);
    (S::f32s::from_slice(simd, re), S::f32s::from_slice(simd, im))
}

/// Writes the `index`-th complex vector of `[index, part, lane]`.
#[inline(always)]
fn set<S: Simd>(to: &mut [f32], index: usize, value: (S::f32s, S::f32s)) {
    let lanes = S::f32s::LEN;
    let (to_re, to_im) = to[2 * index * lanes..][..2 * lanes].split_at_mut(lanes);
    value.0.store_slice(to_re);
    value.1.store_slice(to_im);
}

/// Zeros on either side of a row, so that windows need no bounds.
fn padding(problem: &Problem) -> usize {
    problem.radius.min(problem.shape_zyx[2])
}

/// Numbers of a row with its padding, in whole vectors.
fn pitch(problem: &Problem) -> usize {
    problem.shape_zyx[2].next_multiple_of(WIDEST) + 2 * padding(problem)
}

/// Scratch of one task.
struct Window {
    padding: usize,
    pitch: usize,
    /// Covariances of the columns of the windows, lower triangle, `[pair, part, padding + x]`.
    columns: Vec<f32>,
    block: Block,
}

impl Window {
    fn new(problem: &Problem) -> Self {
        let (padding, pitch) = (padding(problem), pitch(problem));
        let columns = vec![0.0; 2 * pairs(problem.coils) * pitch];
        Self { padding, pitch, columns, block: Block::new(problem.coils) }
    }

    /// Sums over the rows of the windows around row (z, y).
    #[inline(always)]
    fn fill<S: Simd>(&mut self, simd: S, problem: &Problem, images: &[C32], z: usize, y: usize) {
        let ([nz, ny, nx], radius, lanes) = (problem.shape_zyx, problem.radius, S::f32s::LEN);
        let Block { coils, matrix, vector, .. } = &mut self.block;
        let matrix = &mut matrix[..2 * pairs(*coils) * lanes];
        for x in (0..nx).step_by(lanes) {
            let count = lanes.min(nx - x);
            matrix.fill(0.0);
            for zz in z.saturating_sub(radius)..(z + radius + 1).min(nz) {
                for yy in y.saturating_sub(radius)..(y + radius + 1).min(ny) {
                    let voxel = (zz * ny + yy) * nx + x;
                    for coil in 0..*coils {
                        let from = &images[coil * nz * ny * nx + voxel..][..count];
                        set::<S>(vector, coil, load(simd, from));
                    }
                    let mut pair = 0;
                    for i in 0..*coils {
                        let (ar, ai) = get(simd, vector, i);
                        let minus = -ar;
                        for j in 0..=i {
                            let (br, bi) = get(simd, vector, j);
                            let (re, im) = get(simd, matrix, pair);
                            let re = ai.mul_add(bi, ar.mul_add(br, re));
                            let im = minus.mul_add(bi, ai.mul_add(br, im));
                            set::<S>(matrix, pair, (re, im));
                            pair += 1;
                        }
                    }
                }
            }
            for (column, sum) in self.columns.chunks_exact_mut(self.pitch).zip(matrix.chunks_exact(lanes)) {
                column[self.padding + x..][..lanes].copy_from_slice(sum);
            }
        }
    }

    /// Sums over the columns of each window; writes the eigenvectors `[coil][x]`.
    #[inline(always)]
    fn solve<S: Simd>(&mut self, simd: S, reference: &[C32], out: &mut [&mut [C32]]) {
        let (lanes, nx) = (S::f32s::LEN, out.first().map_or(0, |row| row.len()));
        for x in (0..nx).step_by(lanes) {
            let sums = self.block.matrix.chunks_exact_mut(lanes);
            for (column, sum) in self.columns.chunks_exact(self.pitch).zip(sums) {
                let window = &column[x..][..lanes + 2 * self.padding];
                let mut total = S::f32s::from_slice(simd, &window[..lanes]);
                for from in 1..=2 * self.padding {
                    total += S::f32s::from_slice(simd, &window[from..from + lanes]);
                }
                total.store_slice(sum);
            }
            self.block.iterate(simd);
            let (re, im) = self.block.phase(simd, reference);
            let count = lanes.min(nx - x);
            for (coil, out) in out.iter_mut().enumerate() {
                let (vr, vi) = get(simd, &self.block.vector, coil);
                let turned = (vr.mul_add(re, -(vi * im)), vr.mul_add(im, vi * re));
                let mut values = [C32::ZERO; WIDEST];
                store_complex::<S, f32>(turned.0, turned.1, &mut values[..lanes]);
                out[x..x + count].copy_from_slice(&values[..count]);
            }
        }
    }
}

/// The matrices of as many voxels as a vector has lanes, and their dominant eigenvectors.
struct Block {
    coils: usize,
    /// Lower triangles, `[pair, part, lane]`.
    matrix: Vec<f32>,
    /// `[coil, part, lane]`.
    vector: Vec<f32>,
    next: Vec<f32>,
}

impl Block {
    fn new(coils: usize) -> Self {
        let zeros = |numbers: usize| vec![0.0; 2 * numbers * WIDEST];
        Self { coils, matrix: zeros(pairs(coils)), vector: zeros(coils), next: zeros(coils) }
    }

    /// Takes one matrix in every lane; returns the number of lanes.
    #[inline(always)]
    fn of_one<S: Simd>(&mut self, simd: S, sums: &[C64]) -> usize {
        for (pair, sum) in sums.iter().enumerate() {
            let splat = (S::f32s::splat(simd, sum.re as f32), S::f32s::splat(simd, sum.im as f32));
            set::<S>(&mut self.matrix, pair, splat);
        }
        S::f32s::LEN
    }

    /// Unit dominant eigenvectors of Hermitian positive semidefinite matrices, or zeros where the matrix is
    /// zero.
    #[inline(always)]
    fn iterate<S: Simd>(&mut self, simd: S) {
        let zero = S::f32s::splat(simd, 0.0);
        self.start(simd);
        let Self { coils, matrix, vector, next } = self;
        for _ in 0..MAX_ITERATIONS {
            let mut size = zero;
            let mut pair = 0;
            for i in 0..*coils {
                let (vr, vi) = get(simd, vector, i);
                let minus = -vr;
                // Re of m·v is `re − less`.
                let (mut re, mut less, mut im) = (zero, zero, zero);
                for j in 0..i {
                    let (mr, mi) = get(simd, matrix, pair);
                    let (wr, wi) = get(simd, vector, j);
                    re = mr.mul_add(wr, re);
                    less = mi.mul_add(wi, less);
                    im = mi.mul_add(wr, mr.mul_add(wi, im));
                    let (nr, ni) = get(simd, next, j);
                    let nr = mi.mul_add(vi, mr.mul_add(vr, nr));
                    let ni = mi.mul_add(minus, mr.mul_add(vi, ni));
                    set::<S>(next, j, (nr, ni));
                    pair += 1;
                }
                let (diagonal, _) = get(simd, matrix, pair);
                pair += 1;
                set::<S>(next, i, (diagonal.mul_add(vr, re - less), diagonal.mul_add(vi, im)));
            }
            for i in 0..*coils {
                let (re, im) = get(simd, next, i);
                size = im.mul_add(im, re.mul_add(re, size));
            }
            let scale = inverse_root(simd, size);
            let mut change = zero;
            for i in 0..*coils {
                let ((nr, ni), (vr, vi)) = (get(simd, next, i), get(simd, vector, i));
                let (nr, ni) = (nr * scale, ni * scale);
                let (dr, di) = (nr - vr, ni - vi);
                change = di.mul_add(di, dr.mul_add(dr, change));
                set::<S>(vector, i, (nr, ni));
            }
            if !change.simd_ge(S::f32s::splat(simd, CONVERGED)).any_true() {
                break;
            }
        }
    }

    /// Scales each matrix to a largest diagonal of 1, and starts from the column of this diagonal.
    #[inline(always)]
    fn start<S: Simd>(&mut self, simd: S) {
        let (zero, one) = (S::f32s::splat(simd, 0.0), S::f32s::splat(simd, 1.0));
        let Self { coils, matrix, vector, .. } = self;
        let mut top = zero;
        vector.fill(0.0);
        for c in 0..*coils {
            let (diagonal, _) = get(simd, matrix, pairs(c) + c);
            let stronger = diagonal.simd_gt(top);
            if !stronger.any_true() {
                continue;
            }
            top = stronger.select(diagonal, top);
            for i in 0..*coils {
                let (re, im) = get(simd, matrix, pairs(i.max(c)) + i.min(c));
                let im = if i < c { -im } else { im };
                let (vr, vi) = get(simd, vector, i);
                set::<S>(vector, i, (stronger.select(re, vr), stronger.select(im, vi)));
            }
        }
        let signal = top.simd_gt(S::f32s::splat(simd, f32::MIN_POSITIVE));
        let scale = signal.select(one / top, zero);
        for pair in 0..pairs(*coils) {
            let (re, im) = get(simd, matrix, pair);
            set::<S>(matrix, pair, (re * scale, im * scale));
        }
        let mut size = zero;
        for i in 0..*coils {
            let (re, im) = get(simd, vector, i);
            let (re, im) = (re * scale, im * scale);
            size = im.mul_add(im, re.mul_add(re, size));
            set::<S>(vector, i, (re, im));
        }
        let scale = inverse_root(simd, size);
        for i in 0..*coils {
            let (re, im) = get(simd, vector, i);
            set::<S>(vector, i, (re * scale, im * scale));
        }
    }

    /// The factors that make the vectors' components along `reference` real and positive.
    #[inline(always)]
    fn phase<S: Simd>(&self, simd: S, reference: &[C32]) -> (S::f32s, S::f32s) {
        let (zero, one) = (S::f32s::splat(simd, 0.0), S::f32s::splat(simd, 1.0));
        let (mut re, mut im) = (zero, zero);
        for (coil, r) in reference.iter().enumerate() {
            let (vr, vi) = get(simd, &self.vector, coil);
            re = vi.mul_add(S::f32s::splat(simd, r.im), vr.mul_add(S::f32s::splat(simd, r.re), re));
            im = vr.mul_add(S::f32s::splat(simd, -r.im), vi.mul_add(S::f32s::splat(simd, r.re), im));
        }
        let size = im.mul_add(im, re * re);
        let scale = inverse_root(simd, size);
        (size.simd_gt(zero).select(re * scale, one), -(im * scale))
    }
}

/// 1/√x, or 0 for 0.
#[inline(always)]
fn inverse_root<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let (zero, one) = (S::f32s::splat(simd, 0.0), S::f32s::splat(simd, 1.0));
    x.simd_gt(zero).select(one / x.sqrt(), zero)
}
