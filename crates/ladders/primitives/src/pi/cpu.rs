use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use crate::random::Stream;
use crate::random::draw::blocks;

/// Blocks of the stream side by side.
const WIDE: usize = 32;
/// Blocks of a task.
const TASK: u64 = 1 << 16;

#[inline(always)]
fn inside(x: u32, y: u32) -> u32 {
    let square = |word: u32| {
        let cell = u64::from(word >> 6 | 1);
        cell * cell
    };
    u32::from(square(x) + square(y) < 1 << 52)
}

/// Hits of the two points of each of `count` blocks from `first` on, W blocks at a time. At most 2³⁰ blocks.
#[inline(always)]
fn of_blocks<const W: usize>(stream: Stream, first: u64, count: u64) -> u64 {
    let mut sums = [0u32; W];
    let steps = count / W as u64;
    for step in 0..steps {
        let [x0, y0, x1, y1] = blocks::<W>(first + step * W as u64, stream.number, stream.seed);
        for (l, sum) in sums.iter_mut().enumerate() {
            *sum += inside(x0[l], y0[l]) + inside(x1[l], y1[l]);
        }
    }
    let rest = (steps * W as u64..count).map(|index| {
        let [[x0], [y0], [x1], [y1]] = blocks::<1>(first + index, stream.number, stream.seed);
        inside(x0, y0) + inside(x1, y1)
    });
    sums.iter().copied().chain(rest).map(u64::from).sum()
}

/// The first point of the block after the whole ones, where the number of points is odd.
fn odd(stream: Stream, points: u64) -> u64 {
    if points.is_multiple_of(2) {
        return 0;
    }
    let [[x], [y], ..] = blocks::<1>(points / 2, stream.number, stream.seed);
    inside(x, y).into()
}

pub(super) fn scalar(stream: Stream, points: u64) -> u64 {
    tasks(points / 2).map(|(first, count)| of_blocks::<1>(stream, first, count)).sum::<u64>()
        + odd(stream, points)
}

fn vector(level: Level, stream: Stream, first: u64, count: u64) -> u64 {
    #[inline(always)]
    fn body<S: Simd>(_: S, stream: Stream, first: u64, count: u64) -> u64 {
        of_blocks::<WIDE>(stream, first, count)
    }
    dispatch!(level, simd => body(simd, stream, first, count))
}

pub(super) fn simd(level: Level, stream: Stream, points: u64) -> u64 {
    tasks(points / 2).map(|(first, count)| vector(level, stream, first, count)).sum::<u64>()
        + odd(stream, points)
}

pub(super) fn threads(cpu: &Cpu, stream: Stream, points: u64) -> u64 {
    let (level, blocks) = (cpu.level(), points / 2);
    let sum: u64 = cpu.run(|| {
        let each = (0..blocks.div_ceil(TASK)).into_par_iter();
        each.map(|task| vector(level, stream, task * TASK, TASK.min(blocks - task * TASK))).sum()
    });
    sum + odd(stream, points)
}

fn tasks(blocks: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..blocks.div_ceil(TASK)).map(move |task| (task * TASK, TASK.min(blocks - task * TASK)))
}
