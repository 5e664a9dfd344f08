use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_device::cpu::zeroed;
use rayspin_primitives::random::draw::philox;

use super::{Problem, TOGETHER};

/// Words of runs side by side: a vector of AVX-512.
const WIDTH: usize = 16;

/// Which runs are simulated together, and their generator's key.
#[derive(Clone, Copy)]
struct Runs {
    /// The first of the words.
    word: u32,
    /// One run of this word: a place is then 0 or 1. `None`: all of them.
    only: Option<u32>,
    key: [u32; 2],
}

impl Runs {
    fn new(word: usize, only: Option<u32>, seed: u64) -> Self {
        Self { word: word as u32, only, key: [seed as u32, (seed >> 32) as u32] }
    }

    /// The random bits of a tile, for W words of runs.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "lanes, of several arrays at once")]
    fn bits<const W: usize>(self, half: u32, tile: u32) -> [[u32; W]; 4] {
        let mut bits = [[0; W]; 4];
        for l in 0..W {
            let words = philox([tile, half, self.word + l as u32, 0], self.key);
            for i in 0..4 {
                bits[i][l] = words[i];
            }
        }
        if let Some(run) = self.only {
            bits.as_flattened_mut().iter_mut().for_each(|word| *word = *word >> run & 1);
        }
        bits
    }
}

/// The two transitions between two places of a row: what they hold changes places where the bits are 1.
#[inline(always)]
fn exchange<const W: usize>(net: &mut [[u32; W]], left: usize, right: usize, bits: &[u32; W]) {
    let (mut a, mut b) = (net[left], net[right]);
    for l in 0..W {
        let moves = (a[l] ^ b[l]) & bits[l];
        a[l] ^= moves;
        b[l] ^= moves;
    }
    (net[left], net[right]) = (a, b);
}

/// Those between a place and the place below it: a token falls always and climbs where the bits are 1.
#[inline(always)]
fn fall<const W: usize>(net: &mut [[u32; W]], above: usize, below: usize, bits: &[u32; W]) {
    let (mut a, mut b) = (net[above], net[below]);
    for l in 0..W {
        let moves = (a[l] ^ b[l]) & (a[l] | bits[l]);
        a[l] ^= moves;
        b[l] ^= moves;
    }
    (net[above], net[below]) = (a, b);
}

/// All steps of W words of runs.
#[inline(always)]
fn advance<const W: usize>(problem: &Problem, net: &mut [[u32; W]], runs: Runs) {
    let (n, columns) = (problem.rows, 2 * problem.rows);
    for half in 0..2 * problem.steps as u32 {
        let odd = half as usize % 2;
        for i in 0..n / 2 {
            let (above, below) = ((2 * i + n - odd) % n * columns, (2 * i + 1 - odd) * columns);
            for j in 0..n {
                let [left, right] = [2 * j + odd, (2 * j + odd + 1) % columns];
                let bits = runs.bits(half, (i * n + j) as u32);
                exchange(net, above + left, above + right, &bits[0]);
                exchange(net, below + left, below + right, &bits[1]);
                // No token moves between the last row and the first.
                if above < below {
                    fall(net, above + left, below + left, &bits[2]);
                    fall(net, above + right, below + right, &bits[3]);
                }
            }
        }
    }
}

/// Adds the first `BITS` runs of word `lane` to the word's sums.
#[inline(always)]
fn add<const W: usize, const BITS: usize>(
    problem: &Problem,
    net: &[[u32; W]],
    lane: usize,
    sums: &mut [u64],
) {
    let mut whole = [0u64; BITS];
    let (of_rows, of_net) = sums.split_at_mut(2 * problem.rows);
    for (row, sums) in net.chunks_exact(2 * problem.rows).zip(of_rows.chunks_exact_mut(2)) {
        let mut tokens = [0u32; BITS];
        for place in row {
            for (run, tokens) in tokens.iter_mut().enumerate() {
                *tokens += place[lane] >> run & 1;
            }
        }
        for (tokens, whole) in tokens.into_iter().map(u64::from).zip(&mut whole) {
            sums[0] += tokens;
            sums[1] += tokens * tokens;
            *whole += tokens;
        }
    }
    for tokens in whole {
        of_net[0] += tokens;
        of_net[1] += tokens * tokens;
    }
}

/// A run at a time, a word a place.
pub(super) fn scalar(problem: &Problem, marking: &[u32], seed: u64, sums: &mut [u64]) -> Result<()> {
    let mut net: Vec<[u32; 1]> = zeroed("places of a net", marking.len())?;
    for (word, sums) in sums.chunks_exact_mut(problem.sums()).enumerate() {
        sums.fill(0);
        for run in 0..TOGETHER as u32 {
            net.iter_mut().zip(marking).for_each(|(place, &tokens)| *place = [tokens]);
            advance(problem, &mut net, Runs::new(word, Some(run), seed));
            add::<1, 1>(problem, &net, 0, sums);
        }
    }
    Ok(())
}

/// The runs of `sums.len() / problem.sums()` words, at most W, from word `first` on.
#[inline(always)]
fn part<const W: usize>(
    problem: &Problem,
    marking: &[u32],
    runs: Runs,
    net: &mut [[u32; W]],
    sums: &mut [u64],
) {
    for (place, &tokens) in net.iter_mut().zip(marking) {
        *place = [tokens.wrapping_neg(); W];
    }
    advance(problem, net, runs);
    for (lane, sums) in sums.chunks_exact_mut(problem.sums()).enumerate() {
        sums.fill(0);
        add::<W, TOGETHER>(problem, net, lane, sums);
    }
}

/// 32 runs at a time, a bit each of a place's word.
pub(super) fn bits(problem: &Problem, marking: &[u32], seed: u64, sums: &mut [u64]) -> Result<()> {
    let mut net: Vec<[u32; 1]> = zeroed("places of a net", marking.len())?;
    for (word, sums) in sums.chunks_exact_mut(problem.sums()).enumerate() {
        part(problem, marking, Runs::new(word, None, seed), &mut net, sums);
    }
    Ok(())
}

/// Words of runs side by side.
#[inline(always)]
fn side_by_side<S: Simd>(
    _: S,
    problem: &Problem,
    marking: &[u32],
    runs: Runs,
    net: &mut [[u32; WIDTH]],
    sums: &mut [u64],
) {
    part(problem, marking, runs, net, sums);
}

/// Task `task` of `WIDTH` words, the last of fewer.
fn task(
    level: Level,
    problem: &Problem,
    marking: &[u32],
    seed: u64,
    task: usize,
    sums: &mut [u64],
) -> Result<()> {
    let mut net: Vec<[u32; WIDTH]> = zeroed("places of a net", marking.len())?;
    let runs = Runs::new(task * WIDTH, None, seed);
    dispatch!(level, simd => side_by_side(simd, problem, marking, runs, &mut net, sums));
    Ok(())
}

pub(super) fn simd(
    level: Level,
    problem: &Problem,
    marking: &[u32],
    seed: u64,
    sums: &mut [u64],
) -> Result<()> {
    let mut tasks = sums.chunks_mut(WIDTH * problem.sums()).enumerate();
    tasks.try_for_each(|(index, sums)| task(level, problem, marking, seed, index, sums))
}

pub(super) fn threads(
    cpu: &Cpu,
    problem: &Problem,
    marking: &[u32],
    seed: u64,
    sums: &mut [u64],
) -> Result<()> {
    let level = cpu.level();
    cpu.run(|| {
        let tasks = sums.par_chunks_mut(WIDTH * problem.sums()).enumerate();
        tasks.try_for_each(|(index, sums)| task(level, problem, marking, seed, index, sums))
    })
}
