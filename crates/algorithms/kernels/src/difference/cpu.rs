use num_complex::Complex;
use num_traits::Zero as _;
use rayspin_core::Real;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::dispatch;

use super::{Axis, Implementation};
use crate::vector::{Scalar, for_chunks};

/// Real numbers a task: they stay in the first-level cache while the axes go by.
const CHUNK: usize = 4096;

/// Calls `body(from, to, position)` for the stretches of `start..start + len` whose elements share a position
/// along the axis; `from..to` counts from `start`.
#[inline(always)]
fn stretches(axis: Axis, start: usize, len: usize, mut body: impl FnMut(usize, usize, AxisPosition)) {
    let Axis { size, step, .. } = axis;
    let mut done = 0;
    while done < len {
        let element = start + done;
        let inside = element % (size * step);
        let (position, end) = if size == 1 {
            (AxisPosition::Only, step)
        } else if inside < step {
            (AxisPosition::First, step)
        } else if inside < (size - 1) * step {
            (AxisPosition::Middle, (size - 1) * step)
        } else {
            (AxisPosition::Last, size * step)
        };
        let count = (end - inside).min(len - done);
        body(done, done + count, position);
        done += count;
    }
}

/// Where along an axis an element lies.
#[derive(Clone, Copy, PartialEq)]
enum AxisPosition {
    First,
    Middle,
    Last,
    /// The axis has one element.
    Only,
}

#[inline(always)]
fn subtract<R: Real>(weight: R, a: &[R], b: &[R], out: &mut [R]) {
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *out = weight * (a - b);
    }
}

#[inline(always)]
fn add_difference<R: Real>(weight: R, a: &[R], b: &[R], out: &mut [R]) {
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *out += weight * (a - b);
    }
}

#[inline(always)]
fn add_curvature<R: Real>(weight: R, before: &[R], here: &[R], after: &[R], out: &mut [R]) {
    for (((out, &a), &b), &c) in out.iter_mut().zip(before).zip(here).zip(after) {
        *out += weight * ((b - a) + (b - c));
    }
}

#[inline(always)]
fn forward_chunk<R: Real>(axis: Axis, x: &[R], start: usize, out: &mut [R]) {
    let weight = <R as Real>::from_f64(axis.weight);
    stretches(axis, start, out.len(), |from, to, position| {
        let (first, out) = (start + from, &mut out[from..to]);
        match position {
            AxisPosition::Last | AxisPosition::Only => out.fill(R::zero()),
            AxisPosition::First | AxisPosition::Middle => {
                subtract(weight, &x[first + axis.step..], &x[first..], out)
            }
        }
    });
}

#[inline(always)]
fn adjoint_chunk<R: Real>(axis: Axis, d: &[R], start: usize, out: &mut [R]) {
    let weight = <R as Real>::from_f64(axis.weight);
    stretches(axis, start, out.len(), |from, to, position| {
        let (first, out) = (start + from, &mut out[from..to]);
        match position {
            AxisPosition::First => {
                for (out, &d) in out.iter_mut().zip(&d[first..]) {
                    *out -= weight * d;
                }
            }
            AxisPosition::Middle => add_difference(weight, &d[first - axis.step..], &d[first..], out),
            AxisPosition::Last => {
                for (out, &d) in out.iter_mut().zip(&d[first - axis.step..]) {
                    *out += weight * d;
                }
            }
            AxisPosition::Only => {}
        }
    });
}

#[inline(always)]
fn normal_chunk<R: Real>(axis: Axis, x: &[R], start: usize, out: &mut [R]) {
    let weight = <R as Real>::from_f64(axis.weight * axis.weight);
    stretches(axis, start, out.len(), |from, to, position| {
        let (first, out) = (start + from, &mut out[from..to]);
        match position {
            AxisPosition::First => add_difference(weight, &x[first..], &x[first + axis.step..], out),
            AxisPosition::Middle => {
                add_curvature(weight, &x[first - axis.step..], &x[first..], &x[first + axis.step..], out)
            }
            AxisPosition::Last => add_difference(weight, &x[first..], &x[first - axis.step..], out),
            AxisPosition::Only => {}
        }
    });
}

/// The same axes of an array of the numbers' parts, which differences need not tell apart.
fn of_parts<S: Scalar>(axes: &[Axis]) -> Vec<Axis> {
    let parts = if S::COMPLEX { 2 } else { 1 };
    axes.iter().map(|axis| Axis { step: parts * axis.step, ..*axis }).collect()
}

pub(super) fn forward<S: Scalar>(cpu: &Cpu, axes: &[Axis], x: &[S], out: &mut [S]) {
    let (x, out) = (S::flat(x), S::flat_mut(out));
    for (axis, out) in of_parts::<S>(axes).into_iter().zip(out.chunks_mut(x.len())) {
        for_chunks(cpu, CHUNK, out, |start, out| {
            dispatch!(cpu.level(), _simd => forward_chunk(axis, x, start, out));
        });
    }
}

pub(super) fn adjoint<S: Scalar>(cpu: &Cpu, axes: &[Axis], d: &[S], out: &mut [S]) {
    let (d, out) = (S::flat(d), S::flat_mut(out));
    let (axes, len) = (of_parts::<S>(axes), out.len());
    for_chunks(cpu, CHUNK, out, |start, out| {
        out.fill(S::Real::zero());
        for (&axis, d) in axes.iter().zip(d.chunks(len)) {
            dispatch!(cpu.level(), _simd => adjoint_chunk(axis, d, start, out));
        }
    });
}

pub(super) fn normal<S: Scalar>(cpu: &Cpu, axes: &[Axis], x: &[S], out: &mut [S]) {
    let (x, out) = (S::flat(x), S::flat_mut(out));
    let axes = of_parts::<S>(axes);
    for_chunks(cpu, CHUNK, out, |start, out| {
        out.fill(S::Real::zero());
        for &axis in &axes {
            dispatch!(cpu.level(), _simd => normal_chunk(axis, x, start, out));
        }
    });
}

/// One thread, one axis after the other; the normal operator through the differences themselves.
pub(super) fn plain<R: Real>() -> Implementation<R> {
    fn forward<R: Real>(_: &Cpu, axes: &[Axis], x: &[Complex<R>], out: &mut [Complex<R>]) {
        for (axis, out) in axes.iter().zip(out.chunks_mut(x.len())) {
            let weight = <R as Real>::from_f64(axis.weight);
            for i in 0..x.len() {
                let last = (i / axis.step) % axis.size == axis.size - 1;
                out[i] = if last { Complex::default() } else { (x[i + axis.step] - x[i]) * weight };
            }
        }
    }
    fn adjoint<R: Real>(_: &Cpu, axes: &[Axis], d: &[Complex<R>], out: &mut [Complex<R>]) {
        out.fill(Complex::default());
        for (axis, d) in axes.iter().zip(d.chunks(out.len())) {
            let weight = <R as Real>::from_f64(axis.weight);
            for (i, &d) in d.iter().enumerate() {
                if (i / axis.step) % axis.size < axis.size - 1 {
                    out[i + axis.step] += d * weight;
                    out[i] -= d * weight;
                }
            }
        }
    }
    Implementation {
        forward,
        adjoint,
        normal: |cpu, axes, x, out| {
            let mut d = vec![Complex::default(); axes.len() * x.len()];
            forward(cpu, axes, x, &mut d);
            adjoint(cpu, axes, &d, out);
        },
    }
}

/// All cores over stretches of elements, every axis while they are in cache; the normal operator in one pass.
pub(super) fn stretched<R: Real>() -> Implementation<R> {
    Implementation { forward, adjoint, normal }
}
