use num_complex::Complex;
use rayspin_core::{C64, Real};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Simd, dispatch, sincos_2pi};

use super::{Implementation, Weights};
use crate::vector::for_chunks;

/// Numbers a task: their phases stay in the first-level cache.
const CHUNK: usize = 2048;

/// cos 2πfτ and sin 2πfτ of a stretch of at most [`CHUNK`] voxels, in double precision.
#[inline(always)]
fn phases<S: Simd, R: Real>(simd: S, field: &[R], tau: f64, cos: &mut [f64], sin: &mut [f64]) {
    let lanes = S::f64s::LEN;
    let mut turns = [0.0; CHUNK];
    for (turns, f) in turns.iter_mut().zip(field) {
        *turns = Real::to_f64(*f) * tau;
    }
    for first in (0..field.len()).step_by(lanes) {
        let (s, c) = sincos_2pi::<S, f64>(simd, S::f64s::from_slice(simd, &turns[first..first + lanes]));
        c.store_slice(&mut cos[first..first + lanes]);
        s.store_slice(&mut sin[first..first + lanes]);
    }
}

#[inline(always)]
fn turn<R: Real>(cos: &[f64], sin: &[f64], x: &[Complex<R>], out: &mut [Complex<R>], add: bool) {
    for (((out, x), c), s) in out.iter_mut().zip(x).zip(cos).zip(sin) {
        let (c, s) = (<R as Real>::from_f64(*c), <R as Real>::from_f64(*s));
        let turned = Complex::new(c * x.re - s * x.im, c * x.im + s * x.re);
        *out = if add { *out + turned } else { turned };
    }
}

fn modulate<R: Real>(cpu: &Cpu, field: &[R], tau: f64, x: &[Complex<R>], out: &mut [Complex<R>], add: bool) {
    for_chunks(cpu, CHUNK, out, |start, out| {
        // Whole vectors are read and written at every SIMD level; the widest has 8 doubles.
        let (mut cos, mut sin) = ([0.0; CHUNK], [0.0; CHUNK]);
        let mut done = 0;
        while done < out.len() {
            // A chunk may reach from one image of the batch into the next.
            let voxel = (start + done) % field.len();
            let len = (field.len() - voxel).min(out.len() - done);
            let field = &field[voxel..voxel + len];
            dispatch!(cpu.level(), simd => phases(simd, field, tau, &mut cos, &mut sin));
            let (x, out) = (&x[start + done..][..len], &mut out[done..done + len]);
            dispatch!(cpu.level(), _simd => turn(&cos, &sin, x, out, add));
            done += len;
        }
    });
}

#[inline(always)]
fn weigh_chunk<R: Real>(
    weights: &[Complex<R>],
    index: &[u32],
    x: &[Complex<R>],
    out: &mut [Complex<R>],
    sign: R,
    add: bool,
) {
    for ((out, x), &i) in out.iter_mut().zip(x).zip(index) {
        let w = weights[i as usize];
        let (c, s) = (w.re, sign * w.im);
        let product = Complex::new(c * x.re - s * x.im, c * x.im + s * x.re);
        *out = if add { *out + product } else { product };
    }
}

fn weigh<R: Real>(
    cpu: &Cpu,
    Weights { by_time, index, conjugate }: Weights<'_, R>,
    x: &[Complex<R>],
    out: &mut [Complex<R>],
    add: bool,
) {
    let sign = if conjugate { -R::one() } else { R::one() };
    for_chunks(cpu, CHUNK, out, |start, out| {
        let mut done = 0;
        while done < out.len() {
            let sample = (start + done) % index.len();
            let len = (index.len() - sample).min(out.len() - done);
            let (x, out) = (&x[start + done..][..len], &mut out[done..done + len]);
            let index = &index[sample..sample + len];
            dispatch!(cpu.level(), _simd => weigh_chunk(by_time, index, x, out, sign, add));
            done += len;
        }
    });
}

/// One thread, one number after the other, library sine and cosine.
pub(super) fn plain<R: Real>() -> Implementation<R> {
    fn product<R: Real>(phase: C64, x: Complex<R>) -> Complex<R> {
        Complex::new(<R as Real>::from_f64(phase.re), <R as Real>::from_f64(phase.im)) * x
    }
    Implementation {
        modulate: |_, field, tau, x, out, add| {
            for (i, (out, &x)) in out.iter_mut().zip(x).enumerate() {
                let turns = Real::to_f64(field[i % field.len()]) * tau;
                let turned = product(C64::cis(std::f64::consts::TAU * (turns - turns.round())), x);
                *out = if add { *out + turned } else { turned };
            }
        },
        weigh: |_, Weights { by_time, index, conjugate }, x, out, add| {
            for (m, (out, &x)) in out.iter_mut().zip(x).enumerate() {
                let w = by_time[index[m % index.len()] as usize];
                let product = if conjugate { w.conj() } else { w } * x;
                *out = if add { *out + product } else { product };
            }
        },
    }
}

/// All cores, sines and cosines of whole vectors.
pub(super) fn vectors<R: Real>() -> Implementation<R> {
    Implementation { modulate, weigh }
}
