//! The oracle: every transition of [`Problem`]'s definition in turn, and the generator from its definition.

use rayspin_primitives::random::reference::words;

use super::{Problem, TOGETHER};

/// Sums of the runs of one word after the last step: of each row and of the whole net, Σ t and Σ t².
#[allow(clippy::needless_range_loop, reason = "a run of two places at once")]
pub fn sums(problem: &Problem, marking: &[u32], seed: u64, word: usize) -> Vec<u64> {
    let (n, columns) = (problem.rows, 2 * problem.rows);
    let mut tokens: Vec<[bool; TOGETHER]> = marking.iter().map(|&tokens| [tokens == 1; TOGETHER]).collect();
    for half in 0..2 * problem.steps {
        let o = half % 2;
        // The random bits of the tile that has the place (y, x).
        let bits = |y: usize, x: usize| {
            let (i, j) = ((y + o) % n / 2, (x + columns - o) % columns / 2);
            words((half as u64) << 32 | (i * n + j) as u64, word as u64, seed)
        };
        for y in 0..n {
            for x in (o..columns).step_by(2) {
                let random = bits(y, x)[(y + o) % 2];
                let (left, right) = (y * columns + x, y * columns + (x + 1) % columns);
                for run in 0..TOGETHER {
                    // One of the two transitions is enabled where one place holds a token and the other none.
                    if tokens[left][run] != tokens[right][run] && random >> run & 1 == 1 {
                        tokens[left][run] ^= true;
                        tokens[right][run] ^= true;
                    }
                }
            }
        }
        for y in (o..n - 1).step_by(2) {
            for x in 0..columns {
                let random = bits(y, x)[2 + (x + o) % 2];
                let (upper, lower) = (y * columns + x, (y + 1) * columns + x);
                for run in 0..TOGETHER {
                    let falls = tokens[upper][run] && !tokens[lower][run];
                    let climbs = !tokens[upper][run] && tokens[lower][run] && random >> run & 1 == 1;
                    if falls || climbs {
                        tokens[upper][run] ^= true;
                        tokens[lower][run] ^= true;
                    }
                }
            }
        }
    }
    let powers = |places: &[[bool; TOGETHER]]| {
        let count = |run| places.iter().filter(|place| place[run]).count() as u64;
        let counts: [u64; TOGETHER] = std::array::from_fn(count);
        [counts.iter().sum(), counts.iter().map(|t| t * t).sum::<u64>()]
    };
    tokens.chunks_exact(columns).chain([&tokens[..]]).flat_map(powers).collect()
}
