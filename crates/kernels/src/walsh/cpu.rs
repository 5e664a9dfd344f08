use rayon::prelude::*;
use rayspin_core::{C32, C64};
use rayspin_device::Cpu;

use super::{Problem, pairs};

/// Maximum number of power iterations. Calibration data are nearly of rank one, where four or five suffice. The README
/// states the accuracy at this limit.
const MAX_ITERATIONS: usize = 40;
/// Squared change of the unit vector at which power iteration ends.
const CONVERGED: f32 = 1e-8;

/// One row of voxels a task: the covariance of a column of the window is summed over the window's rows, then slid
/// along x by adding the column that enters and subtracting the one that leaves.
pub(super) fn rows(cpu: &Cpu, problem: &Problem, images: &[C32], reference: &[C32], maps: &mut [C32]) {
    let [_, ny, nx] = problem.shape_zyx;
    let ([first_plane, planes], coils, voxels) = (problem.planes, problem.coils, problem.voxels());
    if voxels == 0 {
        return;
    }
    // Rows are written coil-fastest by tasks that own them, then scattered to the coil-slowest layout, some at a time.
    let together = rows_together(cpu.threads(), problem);
    let mut by_row = vec![C32::ZERO; coils * nx * together];
    cpu.run(|| {
        for first in (0..planes * ny).step_by(together) {
            let rows = together.min(planes * ny - first);
            by_row[..rows * nx * coils].par_chunks_mut(nx * coils).enumerate().for_each_init(
                || Window::new(coils, nx),
                |window, (row, out)| {
                    let (z, y) = (first_plane + (first + row) / ny, (first + row) % ny);
                    window.fill(problem, images, z, y);
                    window.solve(problem.radius, reference, out);
                },
            );
            maps.par_chunks_mut(voxels).enumerate().for_each(|(j, map)| {
                for (voxel, value) in map[first * nx..][..rows * nx].iter_mut().enumerate() {
                    *value = by_row[voxel * coils + j];
                }
            });
        }
    });
}

/// Rows that are solved together: enough for the threads to share evenly.
fn rows_together(threads: usize, problem: &Problem) -> usize {
    (64 * threads).min(problem.planes[1] * problem.shape_zyx[1])
}

/// Bytes that [`rows`] takes beside images and maps: the rows under way, and each thread's window.
pub(super) fn scratch_bytes(threads: usize, problem: &Problem) -> u64 {
    let (coils, nx) = (problem.coils, problem.shape_zyx[2]);
    let window = pairs(coils) * (nx + 2) + coils * (coils + 2);
    ((coils * nx * rows_together(threads, problem) + threads * window) * size_of::<C32>()) as u64
}

/// Adds Σ_x m(x) m(x)ᴴ of images `[coil, voxel]` to its lower triangle.
pub(super) fn add(cpu: &Cpu, coils: usize, images: &[C32], sums: &mut [C64]) {
    let voxels = images.len() / coils;
    let pairs: Vec<(usize, usize)> = (0..coils).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
    cpu.run(|| {
        sums.par_iter_mut().zip(&pairs).for_each(|(sum, &(i, j))| {
            let (a, b) = (&images[i * voxels..(i + 1) * voxels], &images[j * voxels..(j + 1) * voxels]);
            *sum = a.iter().zip(b).fold(*sum, |sum, (a, b)| {
                let product = a * b.conj();
                sum + C64::new(product.re.into(), product.im.into())
            });
        });
    });
}

/// The dominant eigenvector of the matrix with the lower triangle `sums`.
pub(super) fn principal(coils: usize, sums: &[C64]) -> Vec<C32> {
    let mut covariance = vec![C32::ZERO; coils * coils];
    let mut sums = sums.iter();
    for i in 0..coils {
        for (j, sum) in (0..=i).zip(&mut sums) {
            let sum = C32::new(sum.re as f32, sum.im as f32);
            covariance[i * coils + j] = sum;
            covariance[j * coils + i] = sum.conj();
        }
    }
    let mut vector = vec![C32::ZERO; coils];
    dominant(&covariance, coils, &mut vector, &mut vec![C32::ZERO; coils]);
    vector
}

/// Scratch of one task.
struct Window {
    coils: usize,
    nx: usize,
    /// Covariance of each column of the window, lower triangle, `[pair, x]`.
    columns: Vec<C32>,
    covariance: Vec<C32>,
    sums: Vec<C64>,
    vector: Vec<C32>,
    next: Vec<C32>,
}

impl Window {
    fn new(coils: usize, nx: usize) -> Self {
        let pairs = pairs(coils);
        Self {
            coils,
            nx,
            columns: vec![C32::ZERO; pairs * nx],
            covariance: vec![C32::ZERO; coils * coils],
            sums: vec![C64::ZERO; pairs],
            vector: vec![C32::ZERO; coils],
            next: vec![C32::ZERO; coils],
        }
    }

    fn fill(&mut self, problem: &Problem, images: &[C32], z: usize, y: usize) {
        let [nz, ny, nx] = problem.shape_zyx;
        let radius = problem.radius;
        self.columns.fill(C32::ZERO);
        for zz in z.saturating_sub(radius)..(z + radius + 1).min(nz) {
            for yy in y.saturating_sub(radius)..(y + radius + 1).min(ny) {
                let start = (zz * ny + yy) * nx;
                let row = |j: usize| &images[j * nz * ny * nx + start..][..nx];
                let mut columns = self.columns.chunks_exact_mut(nx);
                for i in 0..self.coils {
                    for j in 0..=i {
                        let Some(out) = columns.next() else { return };
                        for ((out, a), b) in out.iter_mut().zip(row(i)).zip(row(j)) {
                            *out += a * b.conj();
                        }
                    }
                }
            }
        }
    }

    fn solve(&mut self, radius: usize, reference: &[C32], out: &mut [C32]) {
        let (coils, nx) = (self.coils, self.nx);
        let wide = |v: C32| C64::new(v.re.into(), v.im.into());
        // Running sums are kept in f64, or subtracting would leave a strong neighbour's rounding in a weak window.
        for (sum, column) in self.sums.iter_mut().zip(self.columns.chunks_exact(nx)) {
            *sum = column[..radius.min(nx)].iter().map(|&v| wide(v)).sum();
        }
        for x in 0..nx {
            for (sum, column) in self.sums.iter_mut().zip(self.columns.chunks_exact(nx)) {
                if x + radius < nx {
                    *sum += wide(column[x + radius]);
                }
                if x > radius {
                    *sum -= wide(column[x - radius - 1]);
                }
            }
            let mut pair = 0;
            for i in 0..coils {
                for j in 0..=i {
                    let sum = C32::new(self.sums[pair].re as f32, self.sums[pair].im as f32);
                    self.covariance[i * coils + j] = sum;
                    self.covariance[j * coils + i] = sum.conj();
                    pair += 1;
                }
            }
            dominant(&self.covariance, coils, &mut self.vector, &mut self.next);
            let overlap: C32 = reference.iter().zip(&self.vector).map(|(r, v)| r.conj() * v).sum();
            let phase = if overlap.norm_sqr() > 0.0 { overlap.conj() / overlap.norm() } else { C32::ONE };
            for (out, v) in out[x * coils..(x + 1) * coils].iter_mut().zip(&self.vector) {
                *out = v * phase;
            }
        }
    }
}

/// Unit dominant eigenvector of a Hermitian positive semidefinite `n` × `n` matrix, or zeros when the matrix is zero.
fn dominant(matrix: &[C32], n: usize, vector: &mut [C32], next: &mut [C32]) {
    let strongest =
        (0..n).fold(0, |best, j| if matrix[j * n + j].re > matrix[best * n + best].re { j } else { best });
    let top = matrix[strongest * n + strongest].re;
    // Sliding sums leave rounding residue where a window holds nothing: that is no signal.
    if top <= f32::MIN_POSITIVE {
        vector.fill(C32::ZERO);
        return;
    }
    for (i, v) in vector.iter_mut().enumerate() {
        *v = matrix[i * n + strongest] / top;
    }
    normalise(vector);
    for _ in 0..MAX_ITERATIONS {
        for (i, out) in next.iter_mut().enumerate() {
            *out = matrix[i * n..(i + 1) * n].iter().zip(vector.iter()).map(|(m, v)| (m / top) * v).sum();
        }
        if !normalise(next) {
            break;
        }
        let change: f32 = next.iter().zip(vector.iter()).map(|(a, b)| (a - b).norm_sqr()).sum();
        vector.copy_from_slice(next);
        if change < CONVERGED {
            break;
        }
    }
}

fn normalise(vector: &mut [C32]) -> bool {
    let norm = vector.iter().map(|v| v.norm_sqr()).sum::<f32>().sqrt();
    if norm > 0.0 {
        vector.iter_mut().for_each(|v| *v /= norm);
    }
    norm > 0.0
}
