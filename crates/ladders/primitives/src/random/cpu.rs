use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::Stream;
use super::draw::{Draw, From, blocks};

/// Blocks side by side: a few vectors.
const WIDE: usize = 32;
/// Numbers of a task. They fit a core's second-level cache, and are a multiple of the numbers of a step.
const CHUNK: usize = 1 << 14;

/// Numbers of a stream from block `block` on, W blocks at a time.
#[inline(always)]
fn fill<D: Draw, const W: usize>(draw: &D, stream: Stream, mut block: u64, out: &mut [D::Out]) {
    let mut steps = out.chunks_exact_mut(W * D::EACH);
    for step in &mut steps {
        draw.draw::<W>(From { stream, block }, &blocks::<W>(block, stream.number, stream.seed), step);
        block += W as u64;
    }
    for rest in steps.into_remainder().chunks_mut(D::EACH) {
        let mut last = [D::Out::default(); 4];
        let words = blocks::<1>(block, stream.number, stream.seed);
        draw.draw::<1>(From { stream, block }, &words, &mut last[..D::EACH]);
        rest.copy_from_slice(&last[..rest.len()]);
        block += 1;
    }
}

pub(super) fn scalar<D: Draw>(draw: &D, stream: Stream, block: u64, out: &mut [D::Out]) {
    fill::<D, 1>(draw, stream, block, out);
}

pub(super) fn simd<D: Draw>(level: Level, draw: &D, stream: Stream, block: u64, out: &mut [D::Out]) {
    #[inline(always)]
    fn body<S: Simd, D: Draw>(_: S, draw: &D, stream: Stream, block: u64, out: &mut [D::Out]) {
        fill::<D, WIDE>(draw, stream, block, out);
    }
    dispatch!(level, simd => body(simd, draw, stream, block, out));
}

pub(super) fn threads<D: Draw>(cpu: &Cpu, draw: &D, stream: Stream, out: &mut [D::Out]) {
    let level = cpu.level();
    cpu.run(|| {
        out.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, out)| {
            simd(level, draw, stream, (chunk * (CHUNK / D::EACH)) as u64, out);
        });
    });
}
