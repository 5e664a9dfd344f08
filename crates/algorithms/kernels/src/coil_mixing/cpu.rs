use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{C32, C64, Real};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::dispatch;

use super::Input;
use crate::vector::SERIAL;

/// Samples per task: with 32 coils, input and output stay in the second-level cache.
const CHUNK: usize = 1024;
/// Positions that are summed side by side.
const SIDE: usize = 8;

/// out ← out + m y, one m for all.
#[inline(always)]
fn add_alike<R: Real>(m: Complex<R>, y: &[Complex<R>], out: &mut [Complex<R>]) {
    for (out, &v) in out.iter_mut().zip(y) {
        out.re += m.re * v.re - m.im * v.im;
        out.im += m.re * v.im + m.im * v.re;
    }
}

/// out ← out + m y, an m each.
#[inline(always)]
fn add_each<R: Real>(m: &[Complex<R>], y: &[Complex<R>], out: &mut [Complex<R>]) {
    for ((out, &v), &m) in out.iter_mut().zip(y).zip(m) {
        out.re += m.re * v.re - m.im * v.im;
        out.im += m.re * v.im + m.im * v.re;
    }
}

/// The points of `out`, which begin at `start` among the samples, of the row of matrices `[coil, position]`.
#[inline(always)]
fn row<R: Real>(input: &Input<'_, R>, matrices: &[Complex<R>], start: usize, out: &mut [Complex<R>]) {
    let (points, n) = (input.samples.len() / input.coils, input.positions);
    out.fill(Complex::default());
    for (m, y) in matrices.chunks(n).zip(input.samples.chunks(points)) {
        let y = &y[start..start + out.len()];
        if n == 1 {
            add_alike(m[0], y, out);
            continue;
        }
        let mut done = 0;
        while done < out.len() {
            let from = (start + done) % n;
            let end = (done + n - from).min(out.len());
            add_each(&m[from..from + end - done], &y[done..end], &mut out[done..end]);
            done = end;
        }
    }
}

/// Row after row on one thread, each in passes over all its points.
pub(super) fn coilwise<R: Real>(_: &Cpu, input: &Input<'_, R>, parts: Vec<&mut [Complex<R>]>) {
    for (matrices, out) in input.matrices.chunks(input.coils * input.positions).zip(parts) {
        row(input, matrices, 0, out);
    }
}

/// Blocks of points on all cores, all rows of a block in turn.
pub(super) fn blocks<R: Real>(cpu: &Cpu, input: &Input<'_, R>, parts: Vec<&mut [Complex<R>]>) {
    let points = input.samples.len() / input.coils;
    let total = points * parts.len();
    let mut tasks: Vec<Vec<&mut [Complex<R>]>> = Vec::new();
    tasks.resize_with(points.div_ceil(CHUNK), || Vec::with_capacity(parts.len()));
    for part in parts {
        for (task, block) in tasks.iter_mut().zip(part.chunks_mut(CHUNK)) {
            task.push(block);
        }
    }
    let run = |(i, blocks): (usize, Vec<&mut [Complex<R>]>)| {
        for (matrices, out) in input.matrices.chunks(input.coils * input.positions).zip(blocks) {
            dispatch!(cpu.level(), _simd => row(input, matrices, i * CHUNK, out));
        }
    };
    if cpu.threads() == 1 || total <= SERIAL {
        tasks.into_iter().enumerate().for_each(run);
    } else {
        cpu.run(|| tasks.into_par_iter().enumerate().for_each(run));
    }
}

/// The sums of neighbouring positions from `first` on, side by side.
#[inline(always)]
fn sums(samples: &[C32], coils: usize, positions: usize, first: usize, out: &mut [C64]) {
    let points = samples.len() / coils;
    let count = out.len() / (coils * coils);
    let mut values = vec![[[0.0f64; SIDE]; 2]; coils];
    let mut totals = vec![[[0.0f64; SIDE]; 2]; coils * (coils + 1) / 2];
    for line in (first..points).step_by(positions) {
        for (j, [re, im]) in values.iter_mut().enumerate() {
            let from = &samples[j * points + line..][..count];
            for ((re, im), v) in re.iter_mut().zip(im).zip(from) {
                (*re, *im) = (v.re.into(), v.im.into());
            }
        }
        let mut pair = 0;
        for i in 0..coils {
            let [a, b] = values[i];
            for [c, d] in &values[..=i] {
                let [re, im] = &mut totals[pair];
                for s in 0..SIDE {
                    re[s] += a[s] * c[s] + b[s] * d[s];
                    im[s] += b[s] * c[s] - a[s] * d[s];
                }
                pair += 1;
            }
        }
    }
    for (s, out) in out.chunks_mut(coils * coils).enumerate() {
        let mut pair = 0;
        for i in 0..coils {
            for j in 0..=i {
                let sum = C64::new(totals[pair][0][s], if i == j { 0.0 } else { totals[pair][1][s] });
                out[i * coils + j] += sum;
                if i != j {
                    out[j * coils + i] += sum.conj();
                }
                pair += 1;
            }
        }
    }
}

pub(super) fn covariances(
    cpu: &Cpu,
    samples: &[C32],
    coils: usize,
    positions: usize,
    out: &mut [C64],
    add: bool,
) {
    if !add {
        out.fill(C64::ZERO);
    }
    cpu.run(|| {
        out.par_chunks_mut(SIDE * coils * coils).enumerate().for_each(|(block, out)| {
            dispatch!(cpu.level(), _simd => sums(samples, coils, positions, block * SIDE, out));
        });
    });
}
