use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Argument, Define, Filter, Launch, Outside, Sampling, Source, Texture};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config, Space, gpu};

use super::{Data, Problem};

pub(super) static SOURCE: Source = Source { name: "sad", files: &[("sad.cu", include_str!("cuda/sad.cu"))] };

pub(crate) fn programs() -> Vec<Build> {
    let form = |blocks, threads| Build { source: &SOURCE, defines: defines(blocks, threads), spill_bytes: 0 };
    vec![form(4, 256), form(16, 512)]
}

fn defines(blocks: u32, threads: u32) -> Vec<Define> {
    vec![("BLOCKS", blocks.to_string()), ("THREADS", threads.to_string())]
}

pub(super) fn window_space(problem: &Problem) -> Space {
    let (blocks, threads): (&[i64], &[i64]) =
        if problem.width < 128 { (&[2, 4], &[64]) } else { (&[1, 2, 4, 8, 16], &[64, 128, 256, 512]) };
    Space::none().axis("blocks", blocks, 4).axis(
        "threads",
        threads,
        if problem.width < 128 { 64 } else { 256 },
    )
}

/// Both frames as textures that go on beyond their edges.
pub(super) fn textures(cuda: &Cuda, frames: [&Array<u8>; 2]) -> Result<[Texture; 2]> {
    let sampling = Sampling { filter: Filter::Point, outside: Outside::Clamp, normalized: false };
    let [current, reference] = frames;
    Ok([cuda.texture(current, sampling)?, cuda.texture(reference, sampling)?])
}

fn sizes(problem: &Problem) -> Result<[Argument<'static>; 3]> {
    let size = |n: usize| i32::try_from(n).map_err(|_| Error::value("side of a frame", "at most 2³¹ − 1", n));
    Ok([size(problem.height)?.into(), size(problem.width)?.into(), size(problem.radius)?.into()])
}

fn blocks(count: usize) -> Result<u32> {
    u32::try_from(count).map_err(|_| Error::value("blocks of a block matching", "at most 2147483647", count))
}

/// Shared memory of a block: the window, and the sums before they are stored.
fn shared(problem: &Problem, group: usize) -> usize {
    let window = 4 * ((4 * group + 2 * problem.radius + 11) / 4) * (4 + 2 * problem.radius);
    window + 2 * group * problem.side() * problem.side()
}

/// Windows of large radii do not fit into shared memory.
pub(super) fn window_refuses(problem: &Problem) -> Option<String> {
    let bytes = shared(problem, 4);
    (bytes > 200 * 1024)
        .then(|| format!("a radius of {} takes {bytes} bytes of shared memory", problem.radius))
}

pub(super) fn naive(config: &Config, data: &mut Data) -> Result<()> {
    let device = data.sums.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCE, &defines(4, 256), "naive")?;
    let threads = config.get("threads")?;
    let launch = Launch {
        blocks: [blocks(data.sums.len().div_ceil(threads as usize))?, 1, 1],
        threads: [threads, 1, 1],
        shared: 0,
    };
    let mut arguments =
        vec![data.current.cuda().into(), data.reference.cuda().into(), data.sums.cuda_mut().into()];
    arguments.extend(sizes(&data.problem)?);
    kernel.launch(launch, &mut arguments)
}

pub(super) fn textured(config: &Config, data: &mut Data) -> Result<()> {
    let device = data.sums.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCE, &defines(4, 256), "textured")?;
    let [current, reference] = data
        .textures
        .as_ref()
        .ok_or_else(|| Error::value("block matching", "textures of both frames", "none on this device"))?;
    let threads = config.get("threads")?;
    let launch = Launch {
        blocks: [blocks(data.sums.len().div_ceil(threads as usize))?, 1, 1],
        threads: [threads, 1, 1],
        shared: 0,
    };
    let mut arguments = vec![current.into(), reference.into(), data.sums.cuda_mut().into()];
    arguments.extend(sizes(&data.problem)?);
    kernel.launch(launch, &mut arguments)
}

/// The kernels with a window of the reference in shared memory.
pub(super) fn window(
    cuda: &Cuda,
    (name, group, threads): (&str, u32, u32),
    [current, reference]: [&Array<u8>; 2],
    sums: &mut Array<u16>,
    problem: &Problem,
) -> Result<()> {
    let kernel = cuda.kernel(&SOURCE, &defines(group, threads), name)?;
    let count = problem.across().div_ceil(group as usize) * problem.down();
    let launch = Launch {
        blocks: [blocks(count)?, 1, 1],
        threads: [threads, 1, 1],
        shared: shared(problem, group as usize).try_into().unwrap_or(u32::MAX / 2),
    };
    let mut arguments = vec![current.cuda().into(), reference.cuda().into(), sums.cuda_mut().into()];
    arguments.extend(sizes(problem)?);
    kernel.launch(launch, &mut arguments)
}

/// [`window`] on a ladder's data.
pub(super) fn window_of(name: &str, config: &Config, data: &mut Data) -> Result<()> {
    let device = data.sums.device().clone();
    let form = (name, config.get("blocks")?, config.get("threads")?);
    window(gpu(&device)?, form, [&data.current, &data.reference], &mut data.sums, &data.problem)
}
