use std::ops::Range;

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::Real;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, dispatch};

use super::{Implementation, Scalar};

/// Numbers a task. Sums are formed per task and added in order, so this constant, and neither the number of
/// threads nor the vector width, fixes every bit of a result.
const CHUNK: usize = 4096;

/// Independent accumulators: enough that additions of the widest vectors overlap.
const LANES: usize = 16;

/// Numbers up to which one thread is faster than waking the others: some 20 µs of work.
pub(crate) const SERIAL: usize = 16 * CHUNK;

/// Calls `body(start, out[start..])` for chunks of `out`, on all threads when there is work enough.
pub(crate) fn for_chunks<T: Send>(
    cpu: &Cpu,
    chunk: usize,
    out: &mut [T],
    body: impl Fn(usize, &mut [T]) + Send + Sync,
) {
    let chunk = chunk.max(1);
    if out.len() <= SERIAL || cpu.threads() == 1 {
        for (i, out) in out.chunks_mut(chunk).enumerate() {
            body(i * chunk, out);
        }
    } else {
        cpu.run(|| {
            out.par_chunks_mut(chunk).enumerate().for_each(|(i, out)| body(i * chunk, out));
        });
    }
}

/// Σ over chunks of 0..len of `body(range)`, added in the order of the chunks.
fn sum_chunks(
    cpu: &Cpu,
    len: usize,
    body: impl Fn(Range<usize>) -> Complex<f64> + Send + Sync,
) -> Complex<f64> {
    let range = |i: usize| i * CHUNK..len.min((i + 1) * CHUNK);
    let chunks = len.div_ceil(CHUNK);
    if len <= SERIAL || cpu.threads() == 1 {
        (0..chunks).map(|i| body(range(i))).sum()
    } else {
        let parts: Vec<_> = cpu.run(|| (0..chunks).into_par_iter().map(|i| body(range(i))).collect());
        parts.into_iter().sum()
    }
}

#[inline(always)]
fn total(lanes: [f64; LANES]) -> f64 {
    lanes.iter().sum()
}

#[inline(always)]
fn norm_squared_chunk<R: Real>(x: &[R]) -> f64 {
    let mut lanes = [0.0; LANES];
    let whole = x.chunks_exact(LANES);
    let rest = whole.remainder();
    for x in whole {
        for (lane, &x) in lanes.iter_mut().zip(x) {
            let x = x.to_f64();
            *lane += x * x;
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        let x = x.to_f64();
        *lane += x * x;
    }
    total(lanes)
}

#[inline(always)]
fn dot_chunk<R: Real>(x: &[R], y: &[R]) -> Complex<f64> {
    // The imaginary part is Σ x_k y_{k^1} over even k less the same over odd k: one shuffle instead of
    // strided loads.
    let (mut re, mut im) = ([0.0; LANES], [0.0; LANES]);
    let mut add = |x: &[R; LANES], y: &[R; LANES]| {
        let x: [f64; LANES] = std::array::from_fn(|k| x[k].to_f64());
        let y: [f64; LANES] = std::array::from_fn(|k| y[k].to_f64());
        for k in 0..LANES {
            re[k] += x[k] * y[k];
        }
        for k in 0..LANES {
            im[k] += x[k] * y[k ^ 1];
        }
    };
    let (x, rest_x) = x.as_chunks::<LANES>();
    let (y, rest_y) = y.as_chunks::<LANES>();
    for (x, y) in x.iter().zip(y) {
        add(x, y);
    }
    let padded = |rest: &[R]| std::array::from_fn(|k| rest.get(k).copied().unwrap_or(R::zero()));
    add(&padded(rest_x), &padded(rest_y));
    let sign = |k: usize| if k.is_multiple_of(2) { 1.0 } else { -1.0 };
    let im = std::array::from_fn(|k| sign(k) * im[k]);
    Complex::new(total(re), total(im))
}

#[inline(always)]
fn dot_real_chunk<R: Real>(x: &[R], y: &[R]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (x, rest_x) = x.as_chunks::<LANES>();
    let (y, rest_y) = y.as_chunks::<LANES>();
    for (x, y) in x.iter().zip(y) {
        for k in 0..LANES {
            lanes[k] += x[k].to_f64() * y[k].to_f64();
        }
    }
    for ((lane, x), y) in lanes.iter_mut().zip(rest_x).zip(rest_y) {
        *lane += Real::to_f64(*x) * Real::to_f64(*y);
    }
    total(lanes)
}

#[inline(always)]
fn axpy_real<R: Real>(alpha: R, x: &[R], y: &mut [R]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y += alpha * x;
    }
}

#[inline(always)]
fn axpy_complex<S: Scalar>(alpha: S, x: &[S], y: &mut [S]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = y.plus(alpha.product(x, false));
    }
}

#[inline(always)]
fn xpby_real<R: Real>(x: &[R], beta: R, y: &mut [R]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = x + beta * *y;
    }
}

#[inline(always)]
fn xpby_complex<S: Scalar>(x: &[S], beta: S, y: &mut [S]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = x.plus(beta.product(*y, false));
    }
}

#[inline(always)]
fn scale_chunk<S: Scalar>(alpha: S, x: &mut [S]) {
    for x in x {
        *x = alpha.product(*x, false);
    }
}

#[inline(always)]
fn multiply_chunk<S: Scalar>(d: &[S], x: &[S], y: &mut [S]) {
    for ((y, &d), &x) in y.iter_mut().zip(d).zip(x) {
        *y = d.product(x, false);
    }
}

#[inline(always)]
fn multiply_conj_chunk<S: Scalar>(d: &[S], x: &[S], y: &mut [S]) {
    for ((y, &d), &x) in y.iter_mut().zip(d).zip(x) {
        *y = d.product(x, true);
    }
}

#[inline(always)]
fn weight_chunk<S: Scalar>(w: &[S::Real], x: &[S], y: &mut [S]) {
    for ((y, &w), &x) in y.iter_mut().zip(w).zip(x) {
        *y = x.scaled(w);
    }
}

/// Calls `body(d, x, y)` on the stretches over which `d`, repeated along `y`, is contiguous.
fn broadcast<D: Sync, T: Sync + Send>(
    cpu: &Cpu,
    d: &[D],
    x: &[T],
    y: &mut [T],
    body: impl Fn(Level, &[D], &[T], &mut [T]) + Send + Sync,
) {
    for_chunks(cpu, CHUNK, y, |start, y| {
        let mut done = 0;
        while done < y.len() {
            let first = (start + done) % d.len();
            let count = (d.len() - first).min(y.len() - done);
            let from = start + done;
            body(cpu.level(), &d[first..first + count], &x[from..from + count], &mut y[done..done + count]);
            done += count;
        }
    });
}

pub(super) fn dot<S: Scalar>(cpu: &Cpu, x: &[S], y: &[S]) -> Complex<f64> {
    sum_chunks(cpu, x.len(), |range| {
        let (x, y) = (S::flat(&x[range.clone()]), S::flat(&y[range]));
        match S::COMPLEX {
            true => dispatch!(cpu.level(), _simd => dot_chunk(x, y)),
            false => dispatch!(cpu.level(), _simd => dot_real_chunk(x, y)).into(),
        }
    })
}

pub(super) fn norm_squared<S: Scalar>(cpu: &Cpu, x: &[S]) -> f64 {
    sum_chunks(cpu, x.len(), |range| {
        let x = S::flat(&x[range]);
        dispatch!(cpu.level(), _simd => norm_squared_chunk(x)).into()
    })
    .re
}

pub(super) fn axpy<S: Scalar>(cpu: &Cpu, alpha: S, x: &[S], y: &mut [S]) {
    for_chunks(cpu, CHUNK, y, |start, y| {
        let x = &x[start..start + y.len()];
        if alpha.widen().im == 0.0 {
            dispatch!(cpu.level(), _simd => axpy_real(S::flat(&[alpha])[0], S::flat(x), S::flat_mut(y)));
        } else {
            dispatch!(cpu.level(), _simd => axpy_complex(alpha, x, y));
        }
    });
}

pub(super) fn xpby<S: Scalar>(cpu: &Cpu, x: &[S], beta: S, y: &mut [S]) {
    for_chunks(cpu, CHUNK, y, |start, y| {
        let x = &x[start..start + y.len()];
        if beta.widen().im == 0.0 {
            dispatch!(cpu.level(), _simd => xpby_real(S::flat(x), S::flat(&[beta])[0], S::flat_mut(y)));
        } else {
            dispatch!(cpu.level(), _simd => xpby_complex(x, beta, y));
        }
    });
}

pub(super) fn scale<S: Scalar>(cpu: &Cpu, alpha: S, x: &mut [S]) {
    for_chunks(cpu, CHUNK, x, |_, x| {
        dispatch!(cpu.level(), _simd => scale_chunk(alpha, x));
    });
}

pub(super) fn multiply<S: Scalar>(cpu: &Cpu, d: &[S], x: &[S], y: &mut [S]) {
    broadcast(cpu, d, x, y, |level, d, x, y| dispatch!(level, _simd => multiply_chunk(d, x, y)));
}

pub(super) fn multiply_conj<S: Scalar>(cpu: &Cpu, d: &[S], x: &[S], y: &mut [S]) {
    broadcast(cpu, d, x, y, |level, d, x, y| dispatch!(level, _simd => multiply_conj_chunk(d, x, y)));
}

pub(super) fn weight<S: Scalar>(cpu: &Cpu, w: &[S::Real], x: &[S], y: &mut [S]) {
    broadcast(cpu, w, x, y, |level, w, x, y| dispatch!(level, _simd => weight_chunk(w, x, y)));
}

pub(super) fn gather<S: Scalar>(cpu: &Cpu, x: &[S], places: &[u32], y: &mut [S]) {
    for_chunks(cpu, CHUNK, y, |start, y| {
        for (y, &place) in y.iter_mut().zip(&places[start..]) {
            *y = x.get(place as usize).copied().unwrap_or_default();
        }
    });
}

#[inline(always)]
fn divide_chunk<R: Real>(x: &[R], d: &[R], y: &mut [R]) {
    for ((y, &x), &d) in y.iter_mut().zip(x).zip(d) {
        let ratio = x / d;
        *y = if d == R::zero() { R::zero() } else { ratio };
    }
}

pub(super) fn divide<R: Real>(cpu: &Cpu, x: &[R], d: &[R], y: &mut [R]) {
    for_chunks(cpu, CHUNK, y, |start, y| {
        let part = start..start + y.len();
        dispatch!(cpu.level(), _simd => divide_chunk(&x[part.clone()], &d[part], y));
    });
}

pub(super) fn cut_negative<R: Real>(cpu: &Cpu, x: &mut [R]) {
    for_chunks(cpu, CHUNK, x, |_, x| {
        dispatch!(cpu.level(), _simd => x.iter_mut().for_each(|x| *x = if *x > R::zero() { *x } else { R::zero() }));
    });
}

/// Both updates and the norm of the new residual while a chunk is in cache: 6 streams instead of 7.
pub(super) fn cg_update<S: Scalar>(
    cpu: &Cpu,
    alpha: S::Real,
    p: &[S],
    q: &[S],
    x: &mut [S],
    r: &mut [S],
) -> f64 {
    let body = |i: usize, x: &mut [S], r: &mut [S]| {
        let range = i * CHUNK..i * CHUNK + x.len();
        let (p, q) = (S::flat(&p[range.clone()]), S::flat(&q[range]));
        let (x, r) = (S::flat_mut(x), S::flat_mut(r));
        dispatch!(cpu.level(), _simd => {
            axpy_real(alpha, p, x);
            axpy_real(-alpha, q, r);
            norm_squared_chunk(r)
        })
    };
    if x.len() <= SERIAL || cpu.threads() == 1 {
        let chunks = x.chunks_mut(CHUNK).zip(r.chunks_mut(CHUNK)).enumerate();
        chunks.map(|(i, (x, r))| body(i, x, r)).sum()
    } else {
        let parts: Vec<f64> = cpu.run(|| {
            let chunks = x.par_chunks_mut(CHUNK).zip(r.par_chunks_mut(CHUNK)).enumerate();
            chunks.map(|(i, (x, r))| body(i, x, r)).collect()
        });
        parts.into_iter().sum()
    }
}

/// The loops as one would write them first: one thread, one accumulator, a pass for every step.
pub(super) fn plain<R: Real>() -> Implementation<R> {
    Implementation {
        dot: |_, x, y| {
            let wide = |v: &Complex<R>| Complex::new(v.re.to_f64(), v.im.to_f64());
            x.iter().zip(y).map(|(x, y)| wide(x).conj() * wide(y)).sum()
        },
        norm_squared: plain_norm_squared,
        axpy: |_, alpha, x, y| axpy_complex(alpha, x, y),
        xpby: |_, x, beta, y| xpby_complex(x, beta, y),
        scale: |_, alpha, x| scale_chunk(alpha, x),
        multiply: |_, d, x, y| {
            for (x, y) in x.chunks(d.len()).zip(y.chunks_mut(d.len())) {
                multiply_chunk(d, x, y);
            }
        },
        multiply_conj: |_, d, x, y| {
            for (x, y) in x.chunks(d.len()).zip(y.chunks_mut(d.len())) {
                multiply_conj_chunk(d, x, y);
            }
        },
        weight: |_, w, x, y| {
            for (x, y) in x.chunks(w.len()).zip(y.chunks_mut(w.len())) {
                weight_chunk(w, x, y);
            }
        },
        cg_update: |cpu, alpha, p, q, x, r| {
            axpy_complex(alpha.into(), p, x);
            axpy_complex((-alpha).into(), q, r);
            plain_norm_squared(cpu, r)
        },
    }
}

fn plain_norm_squared<R: Real>(_: &Cpu, x: &[Complex<R>]) -> f64 {
    let square = |v: R| v.to_f64() * v.to_f64();
    x.iter().map(|v| square(v.re) + square(v.im)).sum()
}

/// The functions above: all cores, vectors, fused where it saves a pass.
pub(super) fn parallel<R: Real>() -> Implementation<R> {
    Implementation { dot, norm_squared, axpy, xpby, scale, multiply, multiply_conj, weight, cg_update }
}

pub(super) fn copy<T: Copy + Send + Sync>(cpu: &Cpu, from: &[T], to: &mut [T]) {
    for_chunks(cpu, 8 * CHUNK, to, |start, to| {
        to.copy_from_slice(&from[start..start + to.len()]);
    });
}

pub(super) fn first_not_finite<S: Scalar>(cpu: &Cpu, x: &[S]) -> Option<usize> {
    let broken = |v: &S| !v.is_finite();
    if x.len() <= SERIAL {
        return x.iter().position(broken);
    }
    // A sum of zeros tells in one vectorised pass whether a search is needed at all: 0·NaN and 0·∞ are NaN.
    let clean = cpu.run(|| {
        x.par_chunks(CHUNK).all(|x| {
            let zero = dispatch!(cpu.level(), _simd => zeros(S::flat(x)));
            zero.to_f64() == 0.0
        })
    });
    if clean { None } else { x.iter().position(broken) }
}

#[inline(always)]
fn zeros<R: Real>(x: &[R]) -> R {
    let mut lanes = [R::zero(); LANES];
    let whole = x.chunks_exact(LANES);
    let rest = whole.remainder();
    for x in whole {
        for (lane, &x) in lanes.iter_mut().zip(x) {
            *lane += x * R::zero();
        }
    }
    lanes.into_iter().sum::<R>() + rest.iter().map(|&x| x * R::zero()).sum::<R>()
}
