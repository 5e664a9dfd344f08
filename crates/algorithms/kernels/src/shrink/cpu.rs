use num_complex::Complex;
use num_traits::{Float as _, One as _, Zero as _};
use rayon::prelude::*;
use rayspin_core::Real;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::dispatch;

use super::Implementation;
use crate::vector::{SERIAL, Scalar};

/// Numbers a task: sums are formed per task and added in order, so this fixes every bit of them.
const CHUNK: usize = 4096;

/// Numbers whose magnitudes are formed at once, in registers.
const BLOCK: usize = 16;

fn sum_tasks<T: Send>(
    cpu: &Cpu,
    len: usize,
    tasks: Vec<T>,
    body: impl Fn(usize, T) -> f64 + Send + Sync,
) -> f64 {
    let run = |(i, task)| body(i, task);
    if len <= SERIAL || cpu.threads() == 1 {
        tasks.into_iter().enumerate().map(run).sum()
    } else {
        let parts: Vec<f64> = cpu.run(|| tasks.into_par_iter().enumerate().map(run).collect());
        parts.into_iter().sum()
    }
}

#[inline(always)]
fn soft_block<S: Scalar>(threshold: S::Real, w: &[S::Real], x: &mut [S], sums: &mut [f64; BLOCK]) {
    let len = x.len().min(BLOCK);
    let (mut size, mut factor) = ([S::Real::zero(); BLOCK], [S::Real::zero(); BLOCK]);
    for k in 0..len {
        size[k] = x[k].norm_sqr().sqrt();
    }
    for k in 0..len {
        // At 0/0 and where the threshold is larger the comparison fails.
        let left = size[k] - threshold * w[k];
        factor[k] = if left > S::Real::zero() { left / size[k] } else { S::Real::zero() };
        sums[k] += (w[k] * factor[k] * size[k]).to_f64();
    }
    for k in 0..len {
        x[k] = x[k].scaled(factor[k]);
    }
}

#[inline(always)]
fn soft_chunk<S: Scalar>(threshold: S::Real, w: &[S::Real], x: &mut [S]) -> f64 {
    let mut sums = [0.0; BLOCK];
    for (x, w) in x.chunks_mut(BLOCK).zip(w.chunks(BLOCK)) {
        soft_block(threshold, w, x, &mut sums);
    }
    sums.iter().sum()
}

pub(super) fn soft<S: Scalar>(cpu: &Cpu, threshold: S::Real, w: &[S::Real], x: &mut [S]) -> f64 {
    let len = x.len();
    let tasks: Vec<_> = x.chunks_mut(CHUNK).zip(w.chunks(CHUNK)).collect();
    sum_tasks(cpu, len, tasks, |_, (x, w)| dispatch!(cpu.level(), _simd => soft_chunk(threshold, w, x)))
}

/// √Σ_a |x_a|² of the numbers `at..at + BLOCK` of every component.
#[inline(always)]
fn magnitudes<S: Scalar, X: AsRef<[S]>>(parts: &[X], start: usize) -> [S::Real; BLOCK] {
    let mut squares = [S::Real::zero(); BLOCK];
    for part in parts {
        let part = &part.as_ref()[start..];
        for (s, x) in squares.iter_mut().zip(part) {
            *s += x.norm_sqr();
        }
    }
    squares.map(|square| square.sqrt())
}

#[inline(always)]
fn clip_chunk<S: Scalar>(radius: S::Real, parts: &mut [&mut [S]]) {
    let len = parts[0].len();
    for start in (0..len).step_by(BLOCK) {
        let size = magnitudes(parts, start);
        let factor = size.map(|size| if size > radius { radius / size } else { S::Real::one() });
        for part in &mut *parts {
            for (x, &f) in part[start..].iter_mut().zip(&factor) {
                *x = x.scaled(f);
            }
        }
    }
}

pub(super) fn clip<S: Scalar>(cpu: &Cpu, radius: S::Real, len: usize, x: &mut [S]) {
    let total = x.len();
    let mut tasks: Vec<Vec<&mut [S]>> = Vec::new();
    tasks.resize_with(len.div_ceil(CHUNK), || Vec::with_capacity(total / len));
    for component in x.chunks_mut(len) {
        for (task, part) in tasks.iter_mut().zip(component.chunks_mut(CHUNK)) {
            task.push(part);
        }
    }
    sum_tasks(cpu, total, tasks, |_, mut parts| {
        dispatch!(cpu.level(), _simd => clip_chunk(radius, &mut parts));
        0.0
    });
}

#[inline(always)]
fn norm_chunk<S: Scalar>(parts: &[&[S]]) -> f64 {
    let mut sums = [0.0; BLOCK];
    for start in (0..parts[0].len()).step_by(BLOCK) {
        for (sum, size) in sums.iter_mut().zip(magnitudes(parts, start)) {
            *sum += size.to_f64();
        }
    }
    sums.iter().sum()
}

pub(super) fn joint_norm<S: Scalar>(cpu: &Cpu, len: usize, x: &[S]) -> f64 {
    let tasks: Vec<_> = (0..len.div_ceil(CHUNK)).collect();
    sum_tasks(cpu, x.len(), tasks, |_, task| {
        let (from, to) = (task * CHUNK, len.min((task + 1) * CHUNK));
        let parts: Vec<_> = x.chunks(len).map(|component| &component[from..to]).collect();
        dispatch!(cpu.level(), _simd => norm_chunk(&parts))
    })
}

/// All cores over chunks, all components of a chunk in turn.
pub(super) fn chunks<R: Real>() -> Implementation<R> {
    Implementation { soft, clip, joint_norm }
}

/// One thread, one number or group after another.
pub(super) fn plain<R: Real>() -> Implementation<R> {
    fn size<R: Real>(len: usize, i: usize, x: &[Complex<R>]) -> R {
        x.iter().skip(i).step_by(len).map(Complex::norm_sqr).sum::<R>().sqrt()
    }
    Implementation {
        soft: |_, threshold, w, x| {
            let mut sum = 0.0;
            for (x, &w) in x.iter_mut().zip(w) {
                let size = x.norm();
                let left = size - threshold * w;
                *x = if left > R::zero() { *x * (left / size) } else { Complex::default() };
                sum += (w * x.norm()).to_f64();
            }
            sum
        },
        clip: |_, radius, len, x| {
            for i in 0..len {
                let size = size(len, i, x);
                if size > radius {
                    x.iter_mut().skip(i).step_by(len).for_each(|x| *x *= radius / size);
                }
            }
        },
        joint_norm: |_, len, x| (0..len).map(|i| size(len, i, x).to_f64()).sum(),
    }
}
