use rayspin_core::Result;
use rayspin_device::cuda::{Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use crate::random::Stream;
use crate::random::cuda::PHILOX;

pub(super) static SOURCE: Source =
    Source { name: "pi", files: &[PHILOX, ("pi.cu", include_str!("cuda/pi.cu"))] };

pub(crate) fn programs() -> Vec<Build> {
    vec![Build { source: &SOURCE, defines: vec![], spill_bytes: 0 }]
}

/// Where hits are counted: a double or an integer.
pub(super) struct Sums {
    pub(super) double: Array<f64>,
    pub(super) integer: Array<u64>,
}

fn clear(cuda: &Cuda, sums: &mut Sums) -> Result<()> {
    let mut arguments = [sums.double.cuda_mut().into(), sums.integer.cuda_mut().into()];
    cuda.kernel(&SOURCE, &[], "clear")?.launch(Launch::linear(1, 1), &mut arguments)
}

/// A grid of at most `blocks` blocks, no larger than gives each thread two points.
fn grid(threads: u32, blocks: u32, points: u64) -> Launch {
    let useful = points.div_ceil(2).div_ceil(threads.into()).clamp(1, u32::MAX.into()) as u32;
    Launch::linear(blocks.min(useful), threads)
}

pub(super) fn from_states(
    cuda: &Cuda,
    threads: u32,
    blocks: u32,
    stream: Stream,
    points: u64,
    states: &mut Array<[u32; 4]>,
    sums: &mut Sums,
) -> Result<()> {
    clear(cuda, sums)?;
    let launch = Launch::linear(blocks, threads);
    let count = (blocks * threads).min(states.len() as u32);
    let mut arguments = [stream.number.into(), states.cuda_mut().into(), count.into()];
    cuda.kernel(&SOURCE, &[], "initialise")?.launch(launch, &mut arguments)?;
    let mut arguments = [
        states.cuda_mut().into(),
        count.into(),
        stream.seed.into(),
        points.into(),
        sums.double.cuda_mut().into(),
    ];
    cuda.kernel(&SOURCE, &[], "from_states")?.launch(launch, &mut arguments)
}

/// The kernels without states: `one_kernel`, whose sum is a double, `integers`, `shuffled` and `carried`.
pub(super) fn count(
    cuda: &Cuda,
    name: &'static str,
    threads: u32,
    blocks: u32,
    stream: Stream,
    points: u64,
    sums: &mut Sums,
) -> Result<()> {
    clear(cuda, sums)?;
    let sum =
        if name == "one_kernel" { sums.double.cuda_mut().into() } else { sums.integer.cuda_mut().into() };
    let mut arguments = [stream.seed.into(), stream.number.into(), points.into(), sum];
    cuda.kernel(&SOURCE, &[], name)?.launch(grid(threads, blocks, points), &mut arguments)
}
