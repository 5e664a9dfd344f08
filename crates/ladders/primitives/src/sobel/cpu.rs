use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::Problem;

/// Pixels of a task at least: some rows, whose neighbours are read twice.
const TASK: usize = 1 << 17;

/// A pixel by itself, each of its neighbours looked for.
pub(super) fn scalar(image: &[u8], problem: Problem, out: &mut [u8]) {
    let Problem { rows, columns, scale } = problem;
    for y in 0..rows {
        let [above, below] = [y.saturating_sub(1), (y + 1).min(rows - 1)];
        for x in 0..columns {
            let [left, right] = [x.saturating_sub(1), (x + 1).min(columns - 1)];
            let p = |y: usize, x: usize| i32::from(image[y * columns + x]);
            let across = p(above, right) + 2 * p(y, right) + p(below, right)
                - p(above, left)
                - 2 * p(y, left)
                - p(below, left);
            let down = p(below, left) + 2 * p(below, x) + p(below, right)
                - p(above, left)
                - 2 * p(above, x)
                - p(above, right);
            out[y * columns + x] = ((across.abs() + down.abs()) as f32 * scale) as u8;
        }
    }
}

/// Rows `first..` of the output, as many as `out` has.
pub(super) fn simd(level: Level, image: &[u8], problem: Problem, first: usize, out: &mut [u8]) {
    let Problem { rows, columns, scale } = problem;
    for (line, out) in out.chunks_exact_mut(columns).enumerate() {
        let y = first + line;
        let row = |y: usize| &image[y * columns..][..columns];
        let near = [row(y.saturating_sub(1)), row(y), row((y + 1).min(rows - 1))];
        if scale == 1.0 {
            dispatch!(level, simd => one_row::<_, true>(simd, near, scale, out));
        } else {
            dispatch!(level, simd => one_row::<_, false>(simd, near, scale, out));
        }
    }
}

/// A row, whose interior the compiler makes vectors of: gradients fit 16 bits.
#[inline(always)]
fn one_row<S: Simd, const ONE: bool>(_: S, [a, b, c]: [&[u8]; 3], scale: f32, out: &mut [u8]) {
    let n = out.len();
    for x in [0, n - 1] {
        let [left, right] = [x.saturating_sub(1), (x + 1).min(n - 1)];
        out[x] =
            finish::<ONE>(sum([a[left], a[x], a[right], b[left], b[right], c[left], c[x], c[right]]), scale);
    }
    if n < 3 {
        return;
    }
    let m = n - 2;
    let out = &mut out[1..=m];
    let (a0, a1, a2) = (&a[..m], &a[1..=m], &a[2..m + 2]);
    let (b0, b2) = (&b[..m], &b[2..m + 2]);
    let (c0, c1, c2) = (&c[..m], &c[1..=m], &c[2..m + 2]);
    for x in 0..m {
        out[x] = finish::<ONE>(sum([a0[x], a1[x], a2[x], b0[x], b2[x], c0[x], c1[x], c2[x]]), scale);
    }
}

/// |H| + |V| of the eight neighbours, row by row.
#[inline(always)]
fn sum(near: [u8; 8]) -> i16 {
    let [a0, a1, a2, b0, b2, c0, c1, c2] = near.map(i16::from);
    let across = (a2 - a0) + 2 * (b2 - b0) + (c2 - c0);
    let down = (c0 - a0) + 2 * (c1 - a1) + (c2 - a2);
    across.abs() + down.abs()
}

#[inline(always)]
fn finish<const ONE: bool>(sum: i16, scale: f32) -> u8 {
    if ONE { sum.min(255) as u8 } else { (f32::from(sum) * scale).min(255.0) as i32 as u8 }
}

pub(super) fn threads(cpu: &Cpu, image: &[u8], problem: Problem, out: &mut [u8]) {
    let (level, columns) = (cpu.level(), problem.columns);
    let each = TASK.div_ceil(columns);
    cpu.run(|| {
        out.par_chunks_mut(each * columns)
            .enumerate()
            .for_each(|(task, out)| simd(level, image, problem, task * each, out));
    });
}
