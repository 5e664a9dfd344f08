#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{AddressMode, Argument, Define, Filter, Launch, Sampling, Source, Texture};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config, Space, gpu};

use super::{Data, Problem};
use rayspin_tune::blocks::expect;

static SOURCE: Source = Source { name: "sad", files: &[("sad.cu", include_str!("cuda/sad.cu"))] };

fn form(blocks: u32, threads: u32) -> Build {
    Build { source: &SOURCE, defines: defines(blocks, threads), spill_bytes: 0 }
}

/// The form of the kernels with a thread a sum, which no macro changes.
pub(super) fn a_thread_forms() -> Vec<Build> {
    vec![form(4, 256)]
}

pub(super) fn window_forms() -> Vec<Build> {
    // The defaults of wide and of narrow frames, and the most of both.
    vec![form(4, 256), form(4, 64), form(16, 512)]
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
    let sampling = Sampling { filter: Filter::Point, address_mode: AddressMode::Clamp, normalized: false };
    let [current, reference] = frames;
    Ok([cuda.texture(current, sampling)?, cuda.texture(reference, sampling)?])
}

/// The sizes that frames and sums have, for kernels that add them up in 32 bits.
fn sizes(problem: &Problem, frames: [&Array<u8>; 2], sums: &Array<u16>) -> Result<[Argument<'static>; 3]> {
    let Problem { height, width, radius } = *problem;
    for (what, most, value) in [
        ("height of a frame", 1 << 30, height),
        ("width of a frame", 1 << 30, width),
        ("radius of displacements", 1 << 29, radius),
    ] {
        if value > most {
            return Err(Error::value(what, format!("at most {most}"), value));
        }
    }
    for frame in frames {
        expect_len("frame", &[height, width], frame.len())?;
    }
    expect_len("sums of differences", &problem.shape(), sums.len())?;
    Ok([(height as i32).into(), (width as i32).into(), (radius as i32).into()])
}

fn blocks(count: usize) -> Result<u32> {
    u32::try_from(count).map_err(|_| Error::value("blocks of a block matching", "at most 2147483647", count))
}

/// Shared memory of a block: the window, and the sums before they are stored.
fn shared(problem: &Problem, group: usize) -> usize {
    let window = (4 * ((4 * group + 2 * problem.radius + 11) / 4)).saturating_mul(4 + 2 * problem.radius);
    let sums = problem.side().saturating_mul(problem.side()).saturating_mul(2 * group);
    window.saturating_add(sums)
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
    let sizes = sizes(&data.problem, [&data.current, &data.reference], &data.sums)?;
    let mut arguments =
        vec![data.current.cuda().into(), data.reference.cuda().into(), data.sums.cuda_mut().into()];
    arguments.extend(sizes);
    // SAFETY: frames and sums have these sizes, and the kernel holds places to the frames.
    unsafe { kernel.launch(launch, &mut arguments) }
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
    let sizes = sizes(&data.problem, [&data.current, &data.reference], &data.sums)?;
    let mut arguments = vec![current.into(), reference.into(), data.sums.cuda_mut().into()];
    arguments.extend(sizes);
    // SAFETY: the sums have these sizes, and textures hold places to themselves.
    unsafe { kernel.launch(launch, &mut arguments) }
}

/// A kernel with a window of the reference in shared memory.
pub(super) struct Window<'a> {
    name: &'a str,
    /// Blocks of pixels of a block of threads.
    group: u32,
    /// Threads of a block.
    threads: u32,
}

impl<'a> Window<'a> {
    pub(super) fn new(name: &'a str, config: &Config) -> Result<Self> {
        Ok(Self { name, group: config.get("blocks")?, threads: config.get("threads")? })
    }

    pub(super) fn launch(
        &self,
        cuda: &Cuda,
        [current, reference]: [&Array<u8>; 2],
        sums: &mut Array<u16>,
        problem: &Problem,
    ) -> Result<()> {
        let Self { name, group, threads } = *self;
        expect("blocks of pixels of a block", 1..=64, group)?;
        expect("threads of a block", 1..=1024, threads)?;
        let sizes = sizes(problem, [current, reference], sums)?;
        let kernel = cuda.kernel(&SOURCE, &defines(group, threads), name)?;
        let count = problem.across().div_ceil(group as usize) * problem.down();
        let launch = Launch::linear(blocks(count)?, threads).with_shared(shared(problem, group as usize));
        let mut arguments = vec![current.cuda().into(), reference.cuda().into(), sums.cuda_mut().into()];
        arguments.extend(sizes);
        // SAFETY: frames and sums have these sizes, to which the kernel holds places; shared memory has room
        // for the window and the sums.
        unsafe { kernel.launch(launch, &mut arguments) }
    }
}

/// [`Window`] on a ladder's data.
pub(super) fn window_of(name: &str, config: &Config, data: &mut Data) -> Result<()> {
    let device = data.sums.device().clone();
    let window = Window::new(name, config)?;
    window.launch(gpu(&device)?, [&data.current, &data.reference], &mut data.sums, &data.problem)
}
