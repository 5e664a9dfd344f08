//! A stochastic Petri net: tokens move at random on a tube of n × 2n places. Mean and variance of tokens over
//! many independent runs.

mod cpu;
mod cuda;
pub mod reference;
#[cfg(test)]
mod tests;
mod variants;

use std::fmt;

use rayon::prelude::*;
use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::{Array, Backend, BackendKind, Device};
use rayspin_tune::{
    About, Algorithm, Call, Case, Counts, Peak, PublishedApplication, Row, Signature, Unit, input, tuned,
};

/// Rows of a net, at most: its places are then counted in 21 bits, and squares of tokens of 32 runs in 47.
pub const MOST_ROWS: usize = 1 << 10;
/// Runs that share the words of the random numbers: run j of them has bit j.
pub const TOGETHER: usize = 32;

/// A net, its runs and their steps.
///
/// Places are `[n, 2n]`, n even. Columns form a ring; row n − 1 is the lowest. A place holds at most one
/// token. A transition moves a token to a neighbouring place. It is enabled where the place holds a token and
/// the neighbour holds none. A step is two half steps. Half step h cuts the places into tiles of 2 × 2. Tile
/// (i, j) has rows 2i − o and 2i − o + 1 and columns 2j + o and 2j + o + 1, where o = h mod 2. Row −1 is row
/// n − 1, and column 2n is column 0. In a tile first the transitions along its rows fire, then those between
/// its rows. An enabled transition fires with probability 1/2 along a row and upwards; downwards it fires
/// always. No transition joins row n − 1 and row 0.
///
/// Block (h, i·n + j) of Philox's stream w has the random bits of tile (i, j) for runs 32w … 32w + 31. Its
/// words are for the upper row, the lower row, the left column and the right column. Bit j belongs to run
/// 32w + j; a transition of probability 1/2 fires where it is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Rows n of the net, half its columns.
    pub rows: usize,
    /// Independent runs, a multiple of [`TOGETHER`].
    pub runs: usize,
    /// Steps of a run.
    pub steps: usize,
}

impl Problem {
    fn checked(self) -> Result<Self> {
        let Self { rows, runs, steps } = self;
        let counted = 1..1usize << 31;
        let whole = rows.is_multiple_of(2) && runs.is_multiple_of(TOGETHER);
        if !whole || !(2..=MOST_ROWS).contains(&rows) || !counted.contains(&runs) || !counted.contains(&steps)
        {
            let expected = format!(
                "2 to {MOST_ROWS} rows, an even number, and a multiple of {TOGETHER} runs; fewer than 2^31 runs and steps"
            );
            return Err(Error::value("size of pns", expected, self));
        }
        voxels(&[self.places(), self.words()])?;
        voxels(&self.shape())?;
        Ok(self)
    }

    fn places(&self) -> usize {
        2 * self.rows * self.rows
    }

    /// Words of a bit a run.
    fn words(&self) -> usize {
        self.runs / TOGETHER
    }

    /// The shape of the sums: words of runs, rows and the whole net, Σ t and Σ t².
    fn shape(&self) -> [usize; 3] {
        [self.words(), self.rows + 1, 2]
    }

    /// Sums of a word of runs.
    fn sums(&self) -> usize {
        2 * (self.rows + 1)
    }

    /// Tiles of all half steps of a run.
    fn tiles(&self) -> f64 {
        (self.rows * self.rows) as f64 * self.steps as f64
    }

    fn updates(&self) -> f64 {
        self.places() as f64 * self.runs as f64 * self.steps as f64
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, runs, steps } = self;
        write!(f, "{rows} rows, {runs} runs, {steps} steps")
    }
}

/// sums\[w, y, k\] = Σ tᵏ⁺¹ over runs 32w … 32w + 31, where t is the number of tokens in row y after `steps`
/// steps of a run. Row n is the whole net.
///
/// `marking` is the number of tokens of each place before the first step, 0 or 1, `[n, 2n]`. `sums` has the
/// shape `[runs / 32, n + 1, 2]`. [`Problem`] defines the net; [`moments`] makes mean and variance of the
/// sums. All devices give the same sums.
///
/// Errors: other shapes, arrays on different devices, a marking of other numbers, an odd number of rows or
/// more than [`MOST_ROWS`], no steps, memory.
pub fn simulate(marking: &Array<u32>, steps: usize, seed: u64, sums: &mut Array<u64>) -> Result<()> {
    let (&[rows, _], &[words, ..]) = (marking.shape(), sums.shape()) else {
        return Err(Error::shape("tokens of places", &[1, 2], marking.shape()));
    };
    let problem = Problem { rows, runs: words.saturating_mul(TOGETHER), steps }.checked()?;
    expect_shape("tokens of places", &[rows, 2 * rows], marking.shape())?;
    expect_shape("sums of tokens", &problem.shape(), sums.shape())?;
    let device = marking.device().clone();
    if !device.same_as(sums.device()) {
        return Err(Error::value("sums of tokens", "arrays on one device", sums.device().describe()));
    }
    if let Some(&wrong) = marking.read()?.iter().find(|&&tokens| tokens > 1) {
        return Err(Error::value("tokens of a place", "0 or 1", wrong));
    }
    match device.backend() {
        Backend::Cpu(cpu) => cpu::threads(cpu, &problem, marking.cpu(), seed, sums.cpu_mut()),
        Backend::Cuda(_) if cuda::beyond_shared(&problem).is_none() => {
            let config = tuned(&Pns, &problem, &variants::gpu_several(), &device);
            cuda::several(&config, &problem, marking, seed, sums)
        }
        Backend::Cuda(_) => {
            let config = tuned(&Pns, &problem, &variants::gpu_bits(), &device);
            let mut state = Array::zeros(&device, &[problem.places(), problem.words()])?;
            cuda::bits(&config, &problem, marking, seed, &mut state, sums)
        }
    }
}

/// Mean and variance of a number of tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Σ t / R over R runs.
    pub mean: f64,
    /// Σ (t − mean)² / (R − 1): 0 exactly where all runs have the same number.
    pub variance: f64,
}

/// Mean and variance over all runs for each row, and last for the whole net, from the sums of [`simulate`].
///
/// Sums are integers, so that a variance of the whole net other than 0 shows a run that gained or lost a
/// token.
pub fn moments(sums: &[u64], problem: &Problem) -> Vec<Moments> {
    let runs = problem.runs as u128;
    let total = |start: usize| {
        let sum = |k: usize| {
            sums.chunks_exact(problem.sums()).map(|of_word| u128::from(of_word[start + k])).sum::<u128>()
        };
        let (first, second) = (sum(0), sum(1));
        Moments {
            mean: first as f64 / runs as f64,
            variance: (runs * second - first * first) as f64 / (runs * (runs - 1)) as f64,
        }
    };
    (0..=problem.rows).map(|row| total(2 * row)).collect()
}

/// A net, its marking and the sums of its runs.
pub struct Data {
    problem: Problem,
    marking: Array<u32>,
    /// The same for the oracle.
    host: Vec<u32>,
    sums: Array<u64>,
    /// On a GPU: tokens of every place and run, a byte each, or a bit each where bytes are more than
    /// [`variants::MOST_BYTES`].
    state: Option<Array<u32>>,
    seed: u64,
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Pns;

/// Updates that the oracle repeats. It repeats two words of runs at least.
const WHOLE: f64 = 1e8;

/// A kernel of a user's own.
fn called_by(data: &mut Data, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, marking, sums, seed, .. } = data;
    let device = marking.device().clone();
    let sizes = [problem.rows, problem.words(), problem.steps].map(|n| (n as i32).into());
    let arrays = [marking.cuda().into(), sums.cuda_mut().into()];
    call(&device, &mut [arrays[0], sizes[0], sizes[1], sizes[2], (*seed).into(), arrays[1]])
}

/// Declaration of a user's own kernel.
const OWN: &str = "\
// Runs of a stochastic Petri net of n = rows rows and 2 n columns. The columns form a ring; rows do not. A
// place holds one token or none. marking[y * 2 * n + x] is the number of tokens before the first step, in
// all runs. There are 32 runs for each w < words: run j of word w has its random bits in bit j.
// A step is two half steps, h = 0, 1, ... Half step h has o = h % 2 and tiles (i, j) with i < n / 2 and j <
// n: rows 2 i - o and 2 i - o + 1, row -1 being n - 1, and columns 2 j + o and 2 j + o + 1, column 2 n being
// 0. A tile does two things, first one, then the other. Along each of its rows: where one of the two places
// holds a token and the other none, the token moves to the other where the row's random bit is 1. Along each
// of its columns, if the tile is not of rows n - 1 and 0: a token above a free place falls; a token below a
// free place climbs where the column's random bit is 1.
// The bits of the tile are the words r[0] to r[3] of a block of Philox 4x32-10: r[0] for the upper row, r[1]
// for the lower, r[2] for the left column, r[3] for the right. The block begins as r[0] = i * n + j, r[1] =
// h, r[2] = w, r[3] = 0, with the key k[0], k[1] = the low and the high 32 bits of `seed`. Ten times: with
// the 64-bit products p = 0xD2511F53 * r[0] and q = 0xCD9E8D57 * r[2], r is
// (high(q) ^ r[1] ^ k[0], low(q), high(p) ^ r[3] ^ k[1], low(p)). After each time k[0] += 0x9E3779B9 and
// k[1] += 0xBB67AE85.
// sums[(w * (n + 1) + y) * 2] and the number behind it become the sums of t and of t^2 over the 32 runs of
// word w. t is the number of tokens of row y after `steps` steps, and of the whole net for y = n. A list of
// launches has arrays for the tokens.
extern \"C\" __global__ void pns(const unsigned* marking, int rows, int words, int steps, unsigned long long seed, unsigned long long* sums)";

impl Algorithm for Pns {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "pns",
            title: "Many runs of a stochastic Petri net",
            readme: include_str!("README.md"),
            unit: Unit::Items("updates"),
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, [rows, runs, steps]: [usize; 3]| Case {
            name,
            summary,
            problem: Problem { rows, runs, steps },
        };
        vec![
            case("small", "16 x 32 places, 4096 runs, 64 steps", [16, 1 << 12, 64]),
            case("large", "64 x 128 places, 131072 runs, 256 steps: 1 GiB as bytes", [64, 1 << 17, 256]),
        ]
    }

    fn default_case(&self, kind: BackendKind) -> Option<&'static str> {
        (kind == BackendKind::Cuda).then_some("large")
    }

    fn published_application(&self) -> Option<PublishedApplication> {
        let cases = &[("large", "small")];
        Some(PublishedApplication::of_lecture("PNS", "global memory capacity", 2048, [24.0, 23.7], cases))
    }

    fn trials(&self) -> Vec<Problem> {
        [[2, 32, 1], [2, 64, 5], [4, 160, 4], [34, 64, 2], [14, 96, 6], [6, 32 * 37, 3]]
            .map(|[rows, runs, steps]| Problem { rows, runs, steps })
            .to_vec()
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [rows, runs] => Problem { rows, runs, ..*problem }.checked(),
            [rows, runs, steps] => Problem { rows, runs, steps }.checked(),
            _ => Err(Error::value("size of pns", "ROWSxRUNS or ROWSxRUNSxSTEPS", format!("{size:?}"))),
        }
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { peak: Peak::I32, items: problem.updates(), ..Counts::default() }
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "pns",
            declaration: OWN,
            extent: |p| [p.words(), 1, 1],
            defines: |_| Vec::new(),
            call: called_by,
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let host: Vec<u32> =
            (0..problem.places()).map(|place| input::bits(seed, place as u64) as u32 & 1).collect();
        let state = match device.backend() {
            Backend::Cpu(_) => None,
            Backend::Cuda(_) => Some(Array::zeros(device, &[variants::state_words(problem)])?),
        };
        Ok(Data {
            problem: *problem,
            marking: Array::from_slice(device, &[problem.rows, 2 * problem.rows], &host)?,
            host,
            sums: Array::zeros(device, &problem.shape())?,
            state,
            seed,
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.sums.fill(u64::MAX)
    }

    /// The share of wrong sums: of the whole net in all words of runs, where tokens are conserved, and of
    /// rows in the words that the oracle repeats.
    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let (sums, words) = (data.sums.read()?, problem.words());
        let tokens: u64 = data.host.iter().map(|&tokens| u64::from(tokens)).sum();
        let kept = [tokens, tokens * tokens].map(|sum| TOGETHER as u64 * sum);
        let of_word = problem.sums();
        let leaking = sums.chunks_exact(of_word).filter(|sums| sums[of_word - 2..] != kept).count();
        let most = ((WHOLE / problem.updates() * words as f64) as usize).max(2);
        let chosen: Vec<usize> = match words <= most {
            true => (0..words).collect(),
            // The first and the last, and others at random.
            false => [0, words - 1]
                .into_iter()
                .chain(
                    (2..most)
                        .map(|turn| (input::bits(data.seed ^ 0x945, turn as u64) % words as u64) as usize),
                )
                .collect(),
        };
        let wrong = |&word: &usize| {
            let want = reference::sums(problem, &data.host, data.seed, word);
            sums[word * of_word..][..of_word].iter().zip(want).filter(|(sum, want)| *sum != want).count()
        };
        let wrong: usize = data.sums.device().cpu_side().run(|| chosen.par_iter().map(wrong).sum());
        Ok((leaking + wrong) as f64 / (words + chosen.len() * of_word) as f64)
    }
}
