use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::Real;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::dispatch;

use super::Implementation;
use crate::vector::{SERIAL, for_chunks};

/// Voxels per task. The one array without coils stays in the second-level cache for all coils, and the
/// stretches are long enough for prefetching.
const CHUNK: usize = 8192;

#[inline(always)]
fn expand_chunk<R: Real>(map: &[Complex<R>], image: &[Complex<R>], out: &mut [Complex<R>]) {
    for ((out, &c), &v) in out.iter_mut().zip(map).zip(image) {
        *out = Complex::new(c.re * v.re - c.im * v.im, c.re * v.im + c.im * v.re);
    }
}

#[inline(always)]
fn combine_chunk<R: Real>(map: &[Complex<R>], image: &[Complex<R>], out: &mut [Complex<R>]) {
    for ((out, &c), &v) in out.iter_mut().zip(map).zip(image) {
        out.re += c.re * v.re + c.im * v.im;
        out.im += c.re * v.im - c.im * v.re;
    }
}

#[inline(always)]
fn squares_chunk<R: Real>(image: &[Complex<R>], sums: &mut [f64]) {
    for (sum, &v) in sums.iter_mut().zip(image) {
        let (re, im) = (v.re.to_f64(), v.im.to_f64());
        *sum += re * re + im * im;
    }
}

fn expand<R: Real>(cpu: &Cpu, maps: &[Complex<R>], image: &[Complex<R>], out: &mut [Complex<R>]) {
    let (voxels, out_len) = (image.len(), out.len());
    let mut tasks: Vec<Vec<&mut [Complex<R>]>> = Vec::new();
    tasks.resize_with(voxels.div_ceil(CHUNK), || Vec::with_capacity(maps.len() / voxels));
    for coil in out.chunks_mut(voxels) {
        for (task, part) in tasks.iter_mut().zip(coil.chunks_mut(CHUNK)) {
            task.push(part);
        }
    }
    let run = |(i, parts): (usize, Vec<&mut [Complex<R>]>)| {
        for (j, out) in parts.into_iter().enumerate() {
            let start = i * CHUNK;
            let map = &maps[j * voxels + start..];
            dispatch!(cpu.level(), _simd => expand_chunk(map, &image[start..], out));
        }
    };
    if cpu.threads() == 1 || out_len <= SERIAL {
        tasks.into_iter().enumerate().for_each(run);
    } else {
        cpu.run(|| tasks.into_par_iter().enumerate().for_each(run));
    }
}

fn combine<R: Real>(
    cpu: &Cpu,
    maps: &[Complex<R>],
    images: &[Complex<R>],
    out: &mut [Complex<R>],
    add: bool,
) {
    let voxels = out.len();
    for_chunks(cpu, CHUNK, out, |start, out| {
        if !add {
            out.fill(Complex::default());
        }
        for (map, image) in maps.chunks(voxels).zip(images.chunks(voxels)) {
            dispatch!(cpu.level(), _simd => combine_chunk(&map[start..], &image[start..], out));
        }
    });
}

fn sum_of_squares<R: Real>(cpu: &Cpu, images: &[Complex<R>], out: &mut [R], root: bool) {
    let voxels = out.len();
    for_chunks(cpu, CHUNK, out, |start, out| {
        let mut sums = [0.0; CHUNK];
        let sums = &mut sums[..out.len()];
        for image in images.chunks(voxels) {
            dispatch!(cpu.level(), _simd => squares_chunk(&image[start..], sums));
        }
        for (out, &sum) in out.iter_mut().zip(&*sums) {
            *out = <R as Real>::from_f64(if root { sum.sqrt() } else { sum });
        }
    });
}

/// Coil after coil on one thread, each a pass over the image.
pub(super) fn coilwise<R: Real>() -> Implementation<R> {
    Implementation {
        expand: |_, maps, image, out| {
            for (map, out) in maps.chunks(image.len()).zip(out.chunks_mut(image.len())) {
                expand_chunk(map, image, out);
            }
        },
        combine: |_, maps, images, out, add| {
            if !add {
                out.fill(Complex::default());
            }
            for (map, image) in maps.chunks(out.len()).zip(images.chunks(out.len())) {
                combine_chunk(map, image, out);
            }
        },
        sum_of_squares: |_, images, out, root| {
            let mut sums = vec![0.0; out.len()];
            for image in images.chunks(out.len()) {
                squares_chunk(image, &mut sums);
            }
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = <R as Real>::from_f64(if root { sum.sqrt() } else { sum });
            }
        },
    }
}

/// Blocks of voxels on all cores, all coils of a block in turn.
pub(super) fn blocks<R: Real>() -> Implementation<R> {
    Implementation { expand, combine, sum_of_squares }
}
