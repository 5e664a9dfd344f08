use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::{BINS, EDGES, Problem, edges};

/// Points whose squared chords are compared with an edge at a time.
const WIDTH: usize = 64;
/// Points of a task.
const TASK: usize = 128;

/// |a − b|² of a point and point j of a set.
#[inline(always)]
fn chord(p: [f32; 3], [x, y, z]: [&[f32]; 3], j: usize) -> f32 {
    let (dx, dy, dz) = (p[0] - x[j], p[1] - y[j], p[2] - z[j]);
    dx * dx + dy * dy + dz * dz
}

fn set(points: &[f32], n: usize, index: usize) -> [&[f32]; 3] {
    [0, 1, 2].map(|d| &points[(index * 3 + d) * n..][..n])
}

/// A pair at a time. `bin` finds the number of edges at or below its squared chord.
fn pairs(points: &[f32], counts: &mut [u32], p: &Problem, bin: impl Fn(f32) -> usize) {
    counts.fill(0);
    for (row, counts) in counts.chunks_exact_mut(BINS).enumerate() {
        let ([a, b], own) = p.sets_of(row);
        let (a, b) = (set(points, p.points, a), set(points, p.points, b));
        for i in 0..p.points {
            let point = a.map(|axis| axis[i]);
            for j in if own { i + 1 } else { 0 }..p.points {
                counts[bin(chord(point, b, j))] += 1;
            }
        }
    }
}

pub(super) fn search(points: &[f32], counts: &mut [u32], p: &Problem) {
    let edges = edges();
    pairs(points, counts, p, |square| edges.partition_point(|&edge| edge <= square));
}

/// What an edge's neighbourhood is found by: the exponent of a number and the first bit of its mantissa. An
/// interval of numbers that are alike in these has at most one edge.
const DROPPED: u32 = 22;
/// Smaller squared chords are below the first edge like this one.
const LEAST: f32 = 1.0 / (1 << 24) as f32;
/// The first interval begins with [`LEAST`], the last holds infinity.
const FIRST: u32 = LEAST.to_bits() >> DROPPED;
pub(super) const INTERVALS: usize = ((f32::INFINITY.to_bits() >> DROPPED) - FIRST + 1) as usize;

/// For each interval: the edge in it, or infinity, and the number of edges before.
pub(super) fn intervals() -> [(f32, u32); INTERVALS] {
    let edges = edges();
    std::array::from_fn(|index| {
        let begin = f32::from_bits((FIRST + index as u32) << DROPPED);
        let before = edges.partition_point(|&edge| edge < begin);
        let is_inside = |edge: f32| (edge.to_bits() >> DROPPED) as usize == FIRST as usize + index;
        (edges.get(before).copied().filter(|&edge| is_inside(edge)).unwrap_or(f32::INFINITY), before as u32)
    })
}

pub(super) fn table(points: &[f32], counts: &mut [u32], p: &Problem) {
    let intervals = intervals();
    pairs(points, counts, p, |square| {
        let interval = (square.max(LEAST).to_bits() >> DROPPED) - FIRST;
        let (edge, before) = intervals[interval as usize];
        before as usize + usize::from(square >= edge)
    });
}

pub(super) fn simd(level: Level, points: &[f32], counts: &mut [u32], p: &Problem) {
    for (row, counts) in counts.chunks_exact_mut(BINS).enumerate() {
        counts.copy_from_slice(&part(level, points, p, row, 0..p.points));
    }
}

pub(super) fn threads(cpu: &Cpu, points: &[f32], counts: &mut [u32], p: &Problem) {
    let (level, tasks) = (cpu.level(), p.points.div_ceil(TASK));
    let row = |(row, counts): (usize, &mut [u32])| {
        let task =
            |index: usize| part(level, points, p, row, index * TASK..((index + 1) * TASK).min(p.points));
        let add = |a: [u32; BINS], b: [u32; BINS]| std::array::from_fn(|bin| a[bin] + b[bin]);
        counts.copy_from_slice(&(0..tasks).into_par_iter().map(task).reduce(|| [0; BINS], add));
    };
    cpu.run(|| counts.par_chunks_exact_mut(BINS).enumerate().for_each(row));
}

/// Counts of the pairs of some points of the first set of a row.
fn part(level: Level, points: &[f32], p: &Problem, row: usize, range: std::ops::Range<usize>) -> [u32; BINS] {
    dispatch!(level, simd => part_of(simd, points, p, row, range.clone()))
}

/// Counts how many squared chords are below each edge, the farthest edge first. It ends where none is below:
/// most pairs are far apart.
#[inline(always)]
fn part_of<S: Simd>(
    _: S,
    points: &[f32],
    p: &Problem,
    row: usize,
    range: std::ops::Range<usize>,
) -> [u32; BINS] {
    let edges = edges();
    let ([a, b], own) = p.sets_of(row);
    let (a, b) = (set(points, p.points, a), set(points, p.points, b));
    let (mut below, mut pairs) = ([0u32; EDGES], 0);
    for i in range {
        let point = a.map(|axis| axis[i]);
        let first = if own { i + 1 } else { 0 };
        pairs += (p.points - first) as u32;
        for from in (first..p.points).step_by(WIDTH) {
            let mut squares = [f32::INFINITY; WIDTH];
            let here = b.map(|axis| &axis[from..]);
            if let [Some(x), Some(y), Some(z)] = here.map(|axis| axis.first_chunk::<WIDTH>()) {
                for l in 0..WIDTH {
                    let (dx, dy, dz) = (point[0] - x[l], point[1] - y[l], point[2] - z[l]);
                    squares[l] = dx * dx + dy * dy + dz * dz;
                }
            } else {
                squares
                    .iter_mut()
                    .take(here[0].len())
                    .enumerate()
                    .for_each(|(l, s)| *s = chord(point, here, l));
            }
            for k in (0..EDGES).rev() {
                let mut count = 0;
                for square in &squares {
                    count += u32::from(*square < edges[k]);
                }
                if count == 0 {
                    break;
                }
                below[k] += count;
            }
        }
    }
    std::array::from_fn(|bin| match bin {
        0 => below[0],
        EDGES => pairs - below[EDGES - 1],
        _ => below[bin] - below[bin - 1],
    })
}
