use rayspin_core::{Real, Result};
use rayspin_device::cuda::{Argument, Define, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::Stream;
use super::draw::Shape;

/// The generator, for kernels of others.
pub(crate) const PHILOX: (&str, &str) = ("philox.cuh", include_str!("cuda/philox.cuh"));

static REALS: Source =
    Source { name: "random_reals", files: &[PHILOX, ("reals.cu", include_str!("cuda/reals.cu"))] };
static INTEGERS: Source =
    Source { name: "random_integers", files: &[PHILOX, ("integers.cu", include_str!("cuda/integers.cu"))] };

fn defines(double: bool, kind: u32) -> Vec<Define> {
    let mut defines: Vec<Define> = vec![("KIND", kind.to_string())];
    if double {
        defines.push(("DOUBLE", "1".to_owned()));
    }
    defines
}

pub(crate) fn programs() -> Vec<Build> {
    let build = |source, double, kind| Build { source, defines: defines(double, kind), spill_bytes: 0 };
    let reals = [false, true].into_iter().flat_map(|d| (0..3).map(move |k| build(&REALS, d, k)));
    reals.chain((0..2).map(|k| build(&INTEGERS, false, k))).collect()
}

/// How threads are laid over a stream.
pub(super) enum Way<'a> {
    /// As many blocks of a stream as threads, or a grid that goes over them with this many thread blocks.
    Fill { threads: u32, blocks: Option<u32> },
    /// A state for each thread, initialised, loaded and stored.
    States { threads: u32, blocks: u32, states: &'a mut Array<[u32; 4]> },
}

/// Runs the kernels of a way; `middle` are the arguments between the stream and the numbers.
fn go<T: rayspin_device::Element>(
    cuda: &Cuda,
    source: &'static Source,
    defines: &[Define],
    way: Way<'_>,
    stream: Stream,
    middle: &[Argument<'_>],
    each: usize,
    out: &mut Array<T>,
) -> Result<()>
where
    for<'a> Argument<'a>: From<rayspin_device::cuda::ViewMut<'a, T>>,
{
    let n = out.len() as u64;
    let needed = out.len().div_ceil(each).max(1);
    match way {
        Way::Fill { threads, blocks } => {
            let mut launch = Launch::covering(needed, threads);
            if let Some(blocks) = blocks {
                launch.blocks[0] = launch.blocks[0].min(blocks);
            }
            let mut arguments: Vec<Argument<'_>> = vec![stream.seed.into(), stream.number.into()];
            arguments.extend_from_slice(middle);
            arguments.push(out.cuda_mut().into());
            arguments.push(n.into());
            cuda.kernel(source, defines, "fill")?.launch(launch, &mut arguments)
        }
        Way::States { threads, blocks, states } => {
            let launch = Launch::linear(blocks, threads);
            let count = (threads * blocks).min(states.len() as u32);
            let mut arguments = [stream.number.into(), states.cuda_mut().into(), count.into()];
            cuda.kernel(source, defines, "initialise")?.launch(launch, &mut arguments)?;
            let mut arguments: Vec<Argument<'_>> =
                vec![states.cuda_mut().into(), count.into(), stream.seed.into()];
            arguments.extend_from_slice(middle);
            arguments.push(out.cuda_mut().into());
            arguments.push(n.into());
            cuda.kernel(source, defines, "from_states")?.launch(launch, &mut arguments)
        }
    }
}

pub(super) fn reals<T: Real + rayspin_device::Element>(
    cuda: &Cuda,
    way: Way<'_>,
    stream: Stream,
    shape: Shape<T>,
    out: &mut Array<T>,
) -> Result<()> {
    let (kind, location, scale) = match shape {
        Shape::Uniform => (0, T::zero(), T::zero()),
        Shape::Normal(location, scale) => (1, location, scale),
        Shape::LogNormal(location, scale) => (2, location, scale),
    };
    let double = size_of::<T>() == 8;
    let middle = [Argument::real(location), Argument::real(scale)];
    go(cuda, &REALS, &defines(double, kind), way, stream, &middle, 16 / size_of::<T>(), out)
}

/// Poisson numbers where `first` is given, with the thresholds in `table`; else the words.
pub(super) fn integers(
    cuda: &Cuda,
    way: Way<'_>,
    stream: Stream,
    first: Option<u32>,
    table: &Array<u64>,
    out: &mut Array<u32>,
) -> Result<()> {
    let (kind, each) = if first.is_some() { (1, 2) } else { (0, 4) };
    let middle = [table.cuda().into(), (table.len() as u32).into(), first.unwrap_or(0).into()];
    go(cuda, &INTEGERS, &defines(false, kind), way, stream, &middle, each, out)
}
