//! The oracle.

use rayon::prelude::*;
use rayspin_device::Cpu;

use super::{BINS, EDGES, Problem, edge};

/// How far an edge may seem to be moved: rounding of edges and of squared chords in `f32`. Their sum is below
/// 4 · 10⁻⁷.
const ROUNDING: f64 = 1e-6;

/// The pairs of a row whose |a − b|² in f64 is less than each of `edges`.
pub fn below(cpu: &Cpu, points: &[f32], problem: &Problem, row: usize, edges: &[f64]) -> Vec<usize> {
    let n = problem.points;
    let ([a, b], own) = problem.sets_of(row);
    let point = |set: usize, i: usize| [0, 1, 2].map(|d| f64::from(points[(set * 3 + d) * n + i]));
    let histogram = |i: usize| {
        let mut below = vec![0; edges.len()];
        let p = point(a, i);
        for j in if own { i + 1 } else { 0 }..n {
            let q = point(b, j);
            let square: f64 = p.iter().zip(q).map(|(p, q)| (p - q) * (p - q)).sum();
            let first = edges.iter().rposition(|&edge| square >= edge).map_or(0, |k| k + 1);
            if let Some(count) = below.get_mut(first) {
                *count += 1;
            }
        }
        below
    };
    let add = |mut a: Vec<usize>, b: Vec<usize>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let mut below = cpu.run(|| (0..n).into_par_iter().map(histogram).reduce(|| vec![0; edges.len()], add));
    (1..below.len()).for_each(|k| below[k] += below[k - 1]);
    below
}

/// How many sums of a row's counts up to an edge are wrong: not between the sums up to slightly smaller and
/// slightly larger edges. The last sum counts all pairs.
pub(super) fn wrong(cpu: &Cpu, points: &[f32], counts: &[u32], problem: &Problem, row: usize) -> usize {
    // Two edges around each edge: bins are wider.
    let edges: Vec<f64> =
        (0..EDGES).flat_map(|k| [edge(k) * (1.0 - ROUNDING), edge(k) * (1.0 + ROUNDING)]).collect();
    let want = below(cpu, points, problem, row, &edges);
    let mut sum = 0;
    let mut wrong = 0;
    for (k, &count) in counts[row * BINS..][..BINS].iter().enumerate() {
        sum += count as usize;
        let pairs = problem.pairs_of(row);
        let within = want.get(2 * k..2 * k + 2).map_or(pairs..=pairs, |between| between[0]..=between[1]);
        wrong += usize::from(!within.contains(&sum));
    }
    wrong
}
