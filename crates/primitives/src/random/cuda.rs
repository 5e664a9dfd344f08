use rayspin_core::{Real, Result};
use rayspin_device::cuda::{Argument, Define, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::Stream;
use super::draw::{FARTHEST_F32, Shape, base_two};
use super::poisson::Table;

/// The generator, for kernels of others.
pub(crate) const PHILOX: (&str, &str) = ("philox.cuh", include_str!("cuda/philox.cuh"));

pub(super) static REALS: Source =
    Source { name: "random_reals", files: &[PHILOX, ("reals.cu", include_str!("cuda/reals.cu"))] };
pub(super) static INTEGERS: Source =
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
    let reals = [(false, 4), (true, 3)]
        .into_iter()
        .flat_map(|(d, kinds)| (0..kinds).map(move |k| build(&REALS, d, k)));
    reals.chain((0..3).map(|k| build(&INTEGERS, false, k))).collect()
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
    (each, shared): (usize, usize),
    out: &mut Array<T>,
) -> Result<()>
where
    for<'a> Argument<'a>: From<rayspin_device::cuda::ViewMut<'a, T>>,
{
    let n = out.len() as u64;
    let needed = out.len().div_ceil(each).max(1);
    match way {
        Way::Fill { threads, blocks } => {
            let mut launch = Launch::covering(needed, threads).with_shared(shared);
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
            let launch = Launch::linear(blocks, threads).with_shared(shared);
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
    let double = size_of::<T>() == 8;
    let (kind, location, scale) = match shape {
        Shape::Uniform => (0, T::zero(), T::zero()),
        Shape::Normal(location, scale) => (1, location, scale),
        Shape::LogNormal(location, scale) if double => (2, location, scale),
        Shape::LogNormal(location, scale) => {
            let (location, scale) = base_two(Real::to_f64(location) as f32, Real::to_f64(scale) as f32);
            // Within the exponents that a shift of the exponent's bits can make.
            let kind = if location.abs() + FARTHEST_F32 * scale < 125.0 { 3 } else { 2 };
            (kind, Real::from_f64(location.into()), Real::from_f64(scale.into()))
        }
    };
    let middle = [Argument::real(location), Argument::real(scale)];
    go(cuda, &REALS, &defines(double, kind), way, stream, &middle, (16 / size_of::<T>(), 0), out)
}

/// Columns that are copied into the shared memory of a block: 32 KB.
const COPIED: usize = 1 << 12;

/// Poisson numbers where a table is given, whose columns `columns` is; else the words.
pub(super) fn integers(
    cuda: &Cuda,
    way: Way<'_>,
    stream: Stream,
    table: Option<&Table>,
    columns: &Array<u64>,
    out: &mut Array<u32>,
) -> Result<()> {
    let (bits, first) = table.map_or((0, 0), |t| (t.bits, t.first));
    let (kind, shared) = match table {
        None => (0, 0),
        Some(_) if 1 << bits <= COPIED => (1, 8 << bits),
        Some(_) => (2, 0),
    };
    let middle = [columns.cuda().into(), bits.into(), first.into()];
    go(cuda, &INTEGERS, &defines(false, kind), way, stream, &middle, (4, shared), out)
}
