use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::{Problem, sparse::Matrix};

/// What a step reads and writes.
pub(super) struct Vectors<'a> {
    pub(super) b: &'a [f32],
    pub(super) u: &'a mut [f32],
    pub(super) r: &'a mut [f32],
    pub(super) d: &'a mut [f32],
    pub(super) q: &'a mut [f32],
}

impl Vectors<'_> {
    /// u = 0 and r = d = b, which is 0 on the boundary; gives r·r.
    fn begin(&mut self, p: &Problem) -> f64 {
        self.u.fill(0.0);
        for (index, (r, &b)) in self.r.iter_mut().zip(self.b).enumerate() {
            *r = if p.inner(p.place(index)) { b } else { 0.0 };
        }
        self.d.copy_from_slice(self.r);
        dot(self.r, self.r)
    }
}

/// A row of u and of r.
type Pair<'a> = (&'a mut [f32], &'a mut [f32]);

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

/// a / b, or 0 where nothing is left to do.
fn over(a: f64, b: f64) -> f32 {
    if b > 0.0 { (a / b) as f32 } else { 0.0 }
}

/// The steps as textbooks have them, each operation a loop of its own; `apply(d, q)` is q = A d.
pub(super) fn plain(p: &Problem, mut v: Vectors<'_>, apply: impl Fn(&[f32], &mut [f32])) {
    let mut square = v.begin(p);
    for _ in 0..p.iterations {
        apply(v.d, v.q);
        let alpha = over(square, dot(v.d, v.q));
        v.u.iter_mut().zip(&*v.d).for_each(|(u, d)| *u += alpha * d);
        v.r.iter_mut().zip(&*v.q).for_each(|(r, q)| *r -= alpha * q);
        let before = std::mem::replace(&mut square, dot(v.r, v.r));
        let beta = over(square, before);
        v.d.iter_mut().zip(&*v.r).for_each(|(d, r)| *d = r + beta * *d);
    }
}

/// A row of the matrix after another.
pub(super) fn rows(m: &Matrix, d: &[f32], q: &mut [f32]) {
    let (starts, columns, values) = (m.starts.cpu(), m.columns.cpu(), m.values.cpu());
    for (index, q) in q.iter_mut().enumerate() {
        let row = starts[index] as usize..starts[index + 1] as usize;
        *q = columns[row.clone()].iter().zip(&values[row]).map(|(&c, v)| v * d[c as usize]).sum();
    }
}

/// A node after another, its eight elements each: 4 d less d at the corners that differ along two or three
/// axes.
pub(super) fn nodes(p: &Problem, kappa: &[f32], d: &[f32], q: &mut [f32]) {
    let [_, ny, nx] = p.shape;
    for (index, q) in q.iter_mut().enumerate() {
        let node = p.place(index);
        if !p.inner(node) {
            *q = 0.0;
            continue;
        }
        let mut sum = 0.0;
        for octant in 0..8 {
            let [ez, ey, ex] = [0, 1, 2].map(|axis| node[axis] - (octant >> axis & 1));
            let [z, y, x] = [0, 1, 2].map(|axis| node[axis] + 1 - 2 * (octant >> axis & 1));
            let far = [[z, y, node[2]], [z, node[1], x], [node[0], y, x], [z, y, x]];
            let others: f32 = far.iter().map(|&other| d[p.index(other)]).sum();
            sum += kappa[(ez * ny + ey) * nx + ex] * (4.0 * d[index] - others);
        }
        *q = sum / 12.0;
    }
}

/// Three passes a step: q and d·q, then u, r and r·r, then d. On one thread or on the threads of `cpu`.
pub(super) fn fused(level: Level, cpu: Option<&Cpu>, p: &Problem, kappa: &[f32], mut v: Vectors<'_>) {
    let mx = p.grid()[2];
    let mut square = v.begin(p);
    let Vectors { u, r, d, q, .. } = v;
    for _ in 0..p.iterations {
        let whole = &*d;
        let of_row = |(row, q): (usize, &mut [f32])| {
            f64::from(dispatch!(level, simd => product(simd, p, kappa, whole, row, q)))
        };
        let curvature: f64 = match cpu {
            None => q.chunks_exact_mut(mx).enumerate().map(of_row).sum(),
            Some(cpu) => {
                cpu.run(|| q.par_chunks_exact_mut(mx).with_min_len(16).enumerate().map(of_row).sum())
            }
        };
        let alpha = over(square, curvature);
        let whole = &*q;
        let changed = |(row, ((u, r), d)): (usize, (Pair<'_>, &[f32]))| {
            let q = &whole[row * mx..][..mx];
            f64::from(dispatch!(level, simd => change(simd, alpha, [u, r], [d, q])))
        };
        let sum: f64 = match cpu {
            None => {
                let rows = u.chunks_exact_mut(mx).zip(r.chunks_exact_mut(mx)).zip(d.chunks_exact(mx));
                rows.enumerate().map(changed).sum()
            }
            Some(cpu) => cpu.run(|| {
                let rows =
                    u.par_chunks_exact_mut(mx).zip(r.par_chunks_exact_mut(mx)).zip(d.par_chunks_exact(mx));
                rows.with_min_len(64).enumerate().map(changed).sum()
            }),
        };
        let beta = over(sum, std::mem::replace(&mut square, sum));
        let turned = |(d, r): (&mut [f32], &[f32])| dispatch!(level, simd => turn(simd, beta, d, r));
        match cpu {
            None => turned((d, r)),
            Some(cpu) => cpu.run(|| d.par_chunks_mut(1 << 13).zip(r.par_chunks(1 << 13)).for_each(turned)),
        }
    }
}

/// q of a row of nodes; gives its d·q.
#[inline(always)]
fn product<S: Simd>(simd: S, p: &Problem, kappa: &[f32], d: &[f32], row: usize, q: &mut [f32]) -> f32 {
    let ([nz, ny, nx], [_, my, mx]) = (p.shape, p.grid());
    let (z, y) = (row / my, row % my);
    q.fill(0.0);
    if z == 0 || z == nz || y == 0 || y == ny || nx < 2 {
        return 0.0;
    }
    let inner = nx - 1;
    let line = |z: usize, y: usize| &d[(z * my + y) * mx..][..mx];
    let own = line(z, y);
    for (ez, far_z) in [(z - 1, z - 1), (z, z + 1)] {
        for (ey, far_y) in [(y - 1, y - 1), (y, y + 1)] {
            let kappa = &kappa[(ez * ny + ey) * nx..][..nx];
            let (a, b, c) = (line(z, far_y), line(far_z, y), line(far_z, far_y));
            let q = &mut q[1..][..inner];
            let (left, right) = (&kappa[..inner], &kappa[1..][..inner]);
            let (a0, b0, c0) = (&a[..inner], &b[..inner], &c[..inner]);
            let (own, c1) = (&own[1..][..inner], &c[1..][..inner]);
            let (a2, b2, c2) = (&a[2..][..inner], &b[2..][..inner], &c[2..][..inner]);
            for x in 0..inner {
                let near = 4.0 * own[x] - c1[x];
                q[x] +=
                    left[x] * (near - (a0[x] + b0[x] + c0[x])) + right[x] * (near - (a2[x] + b2[x] + c2[x]));
            }
        }
    }
    for q in &mut q[1..=inner] {
        *q *= 1.0 / 12.0;
    }
    products(simd, own, q)
}

/// Σ a b of a row, in as many sums as vectors have lanes.
#[inline(always)]
fn products<S: Simd>(_: S, a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    let (a, rest_a) = a.as_chunks::<16>();
    let (b, rest_b) = b.as_chunks::<16>();
    for (a, b) in a.iter().zip(b) {
        for i in 0..16 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f32>() + rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum::<f32>()
}

/// u += α d and r −= α q; gives r·r.
#[inline(always)]
fn change<S: Simd>(simd: S, alpha: f32, [u, r]: [&mut [f32]; 2], [d, q]: [&[f32]; 2]) -> f32 {
    for ((u, r), (d, q)) in u.iter_mut().zip(&mut *r).zip(d.iter().zip(q)) {
        *u += alpha * d;
        *r -= alpha * q;
    }
    products(simd, r, r)
}

/// d = r + β d.
#[inline(always)]
fn turn<S: Simd>(_: S, beta: f32, d: &mut [f32], r: &[f32]) {
    for (d, r) in d.iter_mut().zip(r) {
        *d = r + beta * *d;
    }
}
