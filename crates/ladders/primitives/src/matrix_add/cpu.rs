use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, dispatch};

/// Elements a task: three pieces of 64 KB stay within a core's second-level cache.
const CHUNK: usize = 1 << 14;

pub(super) fn scalar(a: &[f32], b: &[f32], c: &mut [f32]) {
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        *c = a + b;
    }
}

pub(super) fn simd(level: Level, a: &[f32], b: &[f32], c: &mut [f32]) {
    #[inline(always)]
    fn body<S: rayspin_device::cpu::simd::Simd>(_: S, a: &[f32], b: &[f32], c: &mut [f32]) {
        for ((a, b), c) in a.iter().zip(b).zip(c) {
            *c = a + b;
        }
    }
    dispatch!(level, simd => body(simd, a, b, c));
}

pub(super) fn threads(cpu: &Cpu, a: &[f32], b: &[f32], c: &mut [f32]) {
    let level = cpu.level();
    cpu.run(|| {
        (a.par_chunks(CHUNK), b.par_chunks(CHUNK), c.par_chunks_mut(CHUNK))
            .into_par_iter()
            .for_each(|(a, b, c)| simd(level, a, b, c));
    });
}
