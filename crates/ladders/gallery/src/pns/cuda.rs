#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::Array;
use rayspin_device::cuda::{Argument, Kernel, Launch, Source};
use rayspin_primitives::random::{PHILOX, keys};
use rayspin_tune::blocks::expect;
use rayspin_tune::{Build, Config, Space, gpu};

use super::{Data, Problem, TOGETHER};

static SOURCE: Source = Source { name: "pns", files: &[PHILOX, ("pns.cu", include_str!("cuda/pns.cu"))] };

/// Shared memory that a block may take on a GPU of compute capability 8.6, 8.9 or 12.0, less what kernels
/// declare themselves.
const SHARED: usize = (99 << 10) - 256;

fn form(words: u32) -> Build {
    Build { source: &SOURCE, defines: vec![("WORDS", words.to_string())], spill_bytes: 0 }
}

pub(super) fn one_form() -> Vec<Build> {
    vec![form(1)]
}

pub(super) fn several_forms() -> Vec<Build> {
    [1, 2, 4].map(form).to_vec()
}

/// Threads of a block that have a run each.
pub(super) fn runs_space(_: &Problem) -> Space {
    Space::none().axis("threads", &[32, 64, 128, 256], 128)
}

/// Threads of a block that have 32 runs each: few threads, so that a block has few.
pub(super) fn bits_space(_: &Problem) -> Space {
    Space::none().axis("threads", &[32, 64, 128, 256], 32)
}

/// Threads of a block that has one net.
pub(super) fn shared_space(problem: &Problem) -> Space {
    let threads = if problem.rows < 32 { 128 } else { 256 };
    Space::none().axis("threads", &[64, 128, 256, 512], threads)
}

/// The same and words of runs of a block, as shared memory has room for them.
pub(super) fn several_space(problem: &Problem) -> Space {
    let fit: Vec<_> = [1, 2, 4].into_iter().filter(|&words| bytes(problem, words) <= SHARED).collect();
    let most = if fit.contains(&2) { 2 } else { 1 };
    shared_space(problem).axis("words", &fit.into_iter().map(|words| words as i64).collect::<Vec<_>>(), most)
}

/// Shared memory of a block that has `words` words of runs.
fn bytes(problem: &Problem, words: usize) -> usize {
    words * problem.places() * size_of::<u32>()
}

/// Why shared memory does not hold a net.
pub(super) fn beyond_shared(problem: &Problem) -> Option<String> {
    let bytes = bytes(problem, 1);
    (bytes > SHARED)
        .then(|| format!("{problem}: 32 nets take {bytes} bytes of shared memory, which has {SHARED}"))
}

fn kernel(
    problem: &Problem,
    marking: &Array<u32>,
    sums: &Array<u64>,
    words: u32,
    name: &str,
) -> Result<Kernel> {
    problem.checked()?;
    expect_len("tokens of places", &[problem.places()], marking.len())?;
    expect_len("sums of tokens", &problem.shape(), sums.len())?;
    let Build { source, defines, .. } = form(words);
    gpu(marking.device())?.kernel(source, &defines, name)
}

/// Errors: other than whole warps. A thread that has a run meets the other threads of its warp.
fn threads(config: &Config, most: u32) -> Result<u32> {
    let threads = config.get("threads")?;
    expect("threads of a block", 32..=most, threads)?;
    if !threads.is_power_of_two() {
        return Err(Error::value("threads of a block", "a power of two", threads));
    }
    Ok(threads)
}

/// What all kernels that simulate begin with: marking, rows, runs or words of runs, steps.
fn net<'a>(problem: &Problem, marking: &'a Array<u32>, lanes: usize) -> Result<[Argument<'a>; 4]> {
    let count = Argument::count;
    Ok([marking.cuda().into(), count(problem.rows)?, count(lanes)?, count(problem.steps)?])
}

fn state(state: Option<&mut Array<u32>>, bytes: usize) -> Result<&mut Array<u32>> {
    let held = state.as_ref().map_or(0, |state| state.len() * size_of::<u32>());
    state
        .filter(|_| held >= bytes)
        .ok_or_else(|| Error::value("bytes of tokens on a GPU", bytes.to_string(), held))
}

/// The kernels of a run a thread, `naive` and `columns`.
pub(super) fn by_runs(name: &str, config: &Config, data: &mut Data) -> Result<()> {
    let Data { problem, marking, sums, seed, .. } = data;
    let kernel = kernel(problem, marking, sums, 1, name)?;
    let state = state(data.state.as_mut(), problem.places() * problem.runs)?;
    let shape = Launch::covering(problem.runs, threads(config, 256)?);
    let rest = [(*seed).into(), state.cuda_mut().into(), sums.cuda_mut().into()];
    let arguments = &mut [&net(problem, marking, problem.runs)?[..], &rest].concat();
    // SAFETY: marking and sums have the problem's sizes, and the state a byte for each place of each run.
    // Threads beyond the runs end.
    unsafe { kernel.launch(shape, arguments) }
}

/// A word of runs a thread; `tokens` has a bit for each place of each run.
pub(super) fn bits(
    config: &Config,
    problem: &Problem,
    marking: &Array<u32>,
    seed: u64,
    tokens: &mut Array<u32>,
    sums: &mut Array<u64>,
) -> Result<()> {
    let words = problem.words();
    let tokens = state(Some(tokens), problem.places() * problem.runs / 8)?;
    let shape = Launch::covering(words, threads(config, 256)?);
    let rest = [seed.into(), tokens.cuda_mut().into()];
    let arguments = &mut [&net(problem, marking, words)?[..], &rest].concat();
    let [bits, count] = ["bits", "count"].map(|name| kernel(problem, marking, sums, 1, name));
    // SAFETY: the marking has the problem's size, and the state a word for each place of 32 runs. Threads
    // beyond the words end.
    unsafe { bits?.launch(shape, arguments) }?;
    let sizes = [Argument::count(problem.rows)?, Argument::count(words)?];
    let arguments = &mut [&[tokens.cuda().into()], &sizes[..], &[sums.cuda_mut().into()]].concat();
    // SAFETY: a block for each word, which has its places in the state and its sums.
    unsafe { count?.launch(Launch::linear(words as u32, 256), arguments) }
}

/// [`bits`] on a ladder's data.
pub(super) fn bits_of(config: &Config, data: &mut Data) -> Result<()> {
    let Data { problem, marking, sums, seed, .. } = data;
    let state = state(data.state.as_mut(), 0)?;
    bits(config, problem, marking, *seed, state, sums)
}

/// A kernel whose blocks have some words of runs in shared memory.
struct BlockKernel<'a> {
    name: &'a str,
    words: u32,
}

/// Launches a kernel of blocks; `random` is the seed or the keys that come of it.
fn by_blocks(
    BlockKernel { name, words }: BlockKernel<'_>,
    random: &[Argument<'_>],
    config: &Config,
    problem: &Problem,
    marking: &Array<u32>,
    sums: &mut Array<u64>,
) -> Result<()> {
    let threads = threads(config, 512)?;
    let kernel = kernel(problem, marking, sums, words, name)?;
    // Tiles of a row to lanes of a warp, as far as there are tiles.
    let along = (problem.rows.next_power_of_two() as u32).min(TOGETHER as u32);
    let blocks = problem.words().div_ceil(words as usize) as u32;
    let shape = Launch { blocks: [blocks, 1, 1], threads: [along, threads / along, 1], shared: 0 };
    let net = net(problem, marking, problem.words())?;
    let arguments = &mut [&net[..], random, &[sums.cuda_mut().into()]].concat();
    // SAFETY: marking and sums have the problem's sizes; shared memory has a word for each place of each word
    // of runs of a block.
    unsafe { kernel.launch(shape.with_shared(bytes(problem, words as usize)), arguments) }
}

/// The kernels of one word of runs a block, `shared` and `planes`, on a ladder's data.
pub(super) fn one(name: &str, config: &Config, data: &mut Data) -> Result<()> {
    let Data { problem, marking, sums, seed, .. } = data;
    by_blocks(BlockKernel { name, words: 1 }, &[(*seed).into()], config, problem, marking, sums)
}

pub(super) fn several(
    config: &Config,
    problem: &Problem,
    marking: &Array<u32>,
    seed: u64,
    sums: &mut Array<u64>,
) -> Result<()> {
    let words = config.get("words")?;
    if ![1, 2, 4].contains(&words) {
        return Err(Error::value("words of runs of a block", "1, 2 or 4", words));
    }
    let kernel = BlockKernel { name: "several", words };
    by_blocks(kernel, &keys(seed).map(Argument::from), config, problem, marking, sums)
}
