#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::Result;
use rayspin_device::cuda::{Launch, Source};
use rayspin_device::{Array, Cuda, Device};
use rayspin_tune::{Build, Config};

use crate::random::Stream;
use crate::random::cuda::PHILOX;
use rayspin_tune::blocks::whole_warps;

static SOURCE: Source = Source { name: "pi", files: &[PHILOX, ("pi.cu", include_str!("cuda/pi.cu"))] };

pub(super) fn forms() -> Vec<Build> {
    vec![Build::plain(&SOURCE)]
}

/// Where hits are counted: one double or one integer.
pub(super) struct Sums {
    pub(super) double: Array<f64>,
    pub(super) integer: Array<u64>,
}

impl Sums {
    pub(super) fn new(device: &Device) -> Result<Self> {
        Ok(Self { double: Array::zeros(device, &[1])?, integer: Array::zeros(device, &[1])? })
    }
}

fn clear(cuda: &Cuda, sums: &mut Sums) -> Result<()> {
    let mut arguments = [sums.double.cuda_mut().into(), sums.integer.cuda_mut().into()];
    let kernel = cuda.kernel(&SOURCE, &[], "clear")?;
    // SAFETY: each sum has a number, as `Sums` says.
    unsafe { kernel.launch(Launch::linear(1, 1), &mut arguments) }
}

/// Threads of a block, and how many blocks there are at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    threads: u32,
    blocks: u32,
}

impl Grid {
    /// The grid of a configuration, whose `blocks` is the number of blocks a multiprocessor.
    pub(super) fn of(config: &Config, cuda: &Cuda) -> Result<Self> {
        let each: u32 = config.get("blocks")?;
        let blocks = each.saturating_mul(cuda.properties().multiprocessors);
        Ok(Self { threads: config.get("threads")?, blocks })
    }

    /// No larger than gives each thread two points.
    fn launch(self, points: u64) -> Launch {
        let useful = points.div_ceil(2).div_ceil(self.threads.into()).clamp(1, u32::MAX.into()) as u32;
        Launch::linear(self.blocks.min(useful), self.threads)
    }
}

pub(super) fn from_states(
    cuda: &Cuda,
    grid: Grid,
    stream: Stream,
    points: u64,
    states: &mut Array<[u32; 4]>,
    sums: &mut Sums,
) -> Result<()> {
    clear(cuda, sums)?;
    let launch = Launch::linear(grid.blocks, grid.threads);
    let count = grid.blocks.saturating_mul(grid.threads).min(states.len() as u32);
    let mut arguments = [stream.number.into(), states.cuda_mut().into(), count.into()];
    let kernel = cuda.kernel(&SOURCE, &[], "initialise")?;
    // SAFETY: there are at least `count` states.
    unsafe { kernel.launch(launch, &mut arguments) }?;
    let mut arguments = [
        states.cuda_mut().into(),
        count.into(),
        stream.seed.into(),
        points.into(),
        sums.double.cuda_mut().into(),
    ];
    let kernel = cuda.kernel(&SOURCE, &[], "from_states")?;
    // SAFETY: there are at least `count` states, and a sum.
    unsafe { kernel.launch(launch, &mut arguments) }
}

/// The kernels without states: `one_kernel`, whose sum is a double, `integers`, `shuffled` and `carried`.
pub(super) fn count(
    cuda: &Cuda,
    name: &'static str,
    grid: Grid,
    stream: Stream,
    points: u64,
    sums: &mut Sums,
) -> Result<()> {
    whole_warps(grid.threads)?;
    clear(cuda, sums)?;
    let sum =
        if name == "one_kernel" { sums.double.cuda_mut().into() } else { sums.integer.cuda_mut().into() };
    let mut arguments = [stream.seed.into(), stream.number.into(), points.into(), sum];
    let kernel = cuda.kernel(&SOURCE, &[], name)?;
    // SAFETY: a sum is all that the kernel writes, by blocks of whole warps.
    unsafe { kernel.launch(grid.launch(points), &mut arguments) }
}
