#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Real, Result};
use rayspin_device::cuda::{Argument, Define, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::Stream;
use super::draw::{FARTHEST_F64, Shape, Singles, base_two};
use super::poisson::Table;
use super::ziggurat;

/// The generator, for kernels of others.
pub const PHILOX: (&str, &str) = ("philox.cuh", include_str!("cuda/philox.cuh"));

static REALS: Source =
    Source { name: "random_reals", files: &[PHILOX, ("reals.cu", include_str!("cuda/reals.cu"))] };
static ZIGGURAT: Source =
    Source { name: "random_ziggurat", files: &[PHILOX, ("ziggurat.cu", include_str!("cuda/ziggurat.cu"))] };
static INTEGERS: Source =
    Source { name: "random_integers", files: &[PHILOX, ("integers.cu", include_str!("cuda/integers.cu"))] };

fn defines(double: bool, kind: u32) -> Vec<Define> {
    let mut defines: Vec<Define> = vec![("KIND", kind.to_string())];
    if double {
        defines.push(("DOUBLE", "1".to_owned()));
    }
    defines
}

fn build(source: &'static Source, double: bool, kind: u32) -> Build {
    Build { defines: defines(double, kind), ..Build::plain(source) }
}

pub(super) fn real_forms() -> Vec<Build> {
    (0..4).map(|kind| build(&REALS, false, kind)).chain([build(&REALS, true, 0)]).collect()
}

pub(super) fn ziggurat_forms() -> Vec<Build> {
    (1..4).map(|kind| build(&ZIGGURAT, true, kind)).collect()
}

pub(super) fn integer_forms() -> Vec<Build> {
    (0..3).map(|kind| build(&INTEGERS, false, kind)).collect()
}

/// How threads are laid over a stream.
pub(super) enum Way<'a> {
    /// As many blocks of a stream as threads, or a grid that goes over them with this many thread blocks.
    Fill { threads: u32, blocks: Option<u32> },
    /// A state for each thread, initialised, loaded and stored.
    States { threads: u32, blocks: u32, states: &'a mut Array<[u32; 4]> },
}

/// The program that turns blocks of a stream into numbers of a law.
struct Law<'a> {
    source: &'static Source,
    defines: Vec<Define>,
    /// The arguments between the stream and the numbers.
    middle: Vec<Argument<'a>>,
    /// Numbers of a block of the stream.
    each: usize,
    /// Bytes of shared memory.
    shared: usize,
}

/// Runs the kernels of a way.
fn go<T: rayspin_device::Element>(
    cuda: &Cuda,
    law: &Law<'_>,
    way: Way<'_>,
    stream: Stream,
    out: &mut Array<T>,
) -> Result<()>
where
    for<'a> Argument<'a>: From<rayspin_device::cuda::ViewMut<'a, T>>,
{
    let Law { source, defines, middle, each, shared } = law;
    let n = out.len() as u64;
    let needed = out.len().div_ceil(*each).max(1);
    match way {
        Way::Fill { threads, blocks } => {
            let mut launch = Launch::covering(needed, threads).with_shared(*shared);
            if let Some(blocks) = blocks {
                launch.blocks[0] = launch.blocks[0].min(blocks);
            }
            let mut arguments: Vec<Argument<'_>> = vec![stream.seed.into(), stream.number.into()];
            arguments.extend_from_slice(middle);
            arguments.push(out.cuda_mut().into());
            arguments.push(n.into());
            let kernel = cuda.kernel(source, defines, "fill")?;
            // SAFETY: the output has n numbers; a table that the kernel reads has the columns that `integers`
            // found.
            unsafe { kernel.launch(launch, &mut arguments) }
        }
        Way::States { threads, blocks, states } => {
            let launch = Launch::linear(blocks, threads).with_shared(*shared);
            let count = threads.saturating_mul(blocks).min(states.len() as u32);
            let mut arguments = [stream.number.into(), states.cuda_mut().into(), count.into()];
            let kernel = cuda.kernel(source, defines, "initialise")?;
            // SAFETY: there are at least `count` states.
            unsafe { kernel.launch(launch, &mut arguments) }?;
            let mut arguments: Vec<Argument<'_>> =
                vec![states.cuda_mut().into(), count.into(), stream.seed.into()];
            arguments.extend_from_slice(middle);
            arguments.push(out.cuda_mut().into());
            arguments.push(n.into());
            let kernel = cuda.kernel(source, defines, "from_states")?;
            // SAFETY: there are at least `count` states, the output has n numbers, and a table the columns
            // that `integers` found.
            unsafe { kernel.launch(launch, &mut arguments) }
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
    spanning(SPAN, cuda, way, stream, shape, out)
}

/// Blocks of the stream that one launch tells apart.
const SPAN: usize = 1 << 29;

/// [`reals`] by launches of `span` blocks, a power of 2.
pub(super) fn spanning<T: Real + rayspin_device::Element>(
    span: usize,
    cuda: &Cuda,
    way: Way<'_>,
    stream: Stream,
    shape: Shape<T>,
    out: &mut Array<T>,
) -> Result<()> {
    let (double, each) = (size_of::<T>() == 8, 16 / size_of::<T>());
    let (source, kind, middle) = match shape {
        Shape::Normal(location, scale) if double => (&ZIGGURAT, 1, pair(location.to_f64(), scale.to_f64())),
        Shape::LogNormal(location, scale) if double => {
            let (location, scale) = base_two(location, scale);
            // Within the exponents that a shift of the exponent's bits can make.
            let narrow = location.abs() + FARTHEST_F64 * scale < 1020.0;
            (&ZIGGURAT, if narrow { 3 } else { 2 }, pair(location, scale))
        }
        _ => {
            let law = Singles::new(shape.to_single());
            (&REALS, law.kind(), law.packed().map(Argument::from).to_vec())
        }
    };
    let defines = defines(double, kind);
    if std::ptr::eq(source, &ZIGGURAT) {
        let ziggurat = ziggurat::layers();
        for (name, pairs) in [("layers", &ziggurat.layers), ("sides", &ziggurat.sides)] {
            cuda.set_table(source, &defines, name, || bytemuck::cast_slice(pairs).to_vec())?;
        }
    }
    let law = Law { source, defines, middle, each, shared: 0 };
    match way {
        // Uniform numbers are as fast as they are written either way.
        Way::Fill { threads, blocks: Some(blocks) } if kind > 0 => {
            grid(span, cuda, &law, Launch::linear(blocks, threads), stream, out)
        }
        way => go(cuda, &law, way, stream, out),
    }
}

fn pair(location: f64, scale: f64) -> Vec<Argument<'static>> {
    vec![location.into(), scale.into()]
}

/// Numbers by a few times as many threads as run at once: at most as many as `most` has.
fn grid<T: rayspin_device::Element>(
    span: usize,
    cuda: &Cuda,
    law: &Law<'_>,
    most: Launch,
    stream: Stream,
    out: &mut Array<T>,
) -> Result<()> {
    let Law { source, defines, middle, each, .. } = law;
    let each = *each;
    let kernel = cuda.kernel(source, defines, "grid")?;
    let (keys, n) = (keys(stream.seed), out.len());
    for from in (0..n.div_ceil(each)).step_by(span) {
        let whole = (n / each - from).min(span);
        let rest = if whole < span { n % each } else { 0 };
        let mut launch = Launch::covering(whole.max(1), most.threads[0]);
        launch.blocks[0] = launch.blocks[0].min(most.blocks[0]);
        let numbers = each * whole + rest;
        let mut output = out.cuda_mut();
        let part = output.part(each * from, numbers).ok_or_else(|| {
            Error::value("random numbers of a launch", format!("{n} from {}", each * from), numbers)
        })?;
        let mut arguments: Vec<Argument<'_>> = keys.map(Argument::from).to_vec();
        arguments.push(stream.number.into());
        arguments.extend_from_slice(middle);
        arguments.push(part.into());
        arguments.push((from as u64).into());
        arguments.extend([Argument::count(whole)?, Argument::count(rest)?]);
        arguments.push(launch.blocks[0].saturating_mul(launch.threads[0]).into());
        // SAFETY: the part has `whole` blocks of the stream and `rest` numbers.
        unsafe { kernel.launch(launch, &mut arguments) }?;
    }
    Ok(())
}

/// What the ten rounds add to a key, four words at a time: arguments of a kernel, and so operands of its
/// instructions.
pub fn keys(seed: u64) -> [[u32; 4]; 5] {
    let round = |r: u32| {
        let low = (seed as u32).wrapping_add(r.wrapping_mul(0x9E37_79B9));
        [low, ((seed >> 32) as u32).wrapping_add(r.wrapping_mul(0xBB67_AE85))]
    };
    std::array::from_fn(|i| {
        let ([a, b], [c, d]) = (round(2 * i as u32), round(2 * i as u32 + 1));
        [a, b, c, d]
    })
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
    if let Some(table) = table
        && columns.len() != table.columns.len()
    {
        return Err(Error::value(
            "columns of Poisson's table",
            table.columns.len().to_string(),
            columns.len(),
        ));
    }
    let (kind, shared) = match table {
        None => (0, 0),
        Some(_) if 1 << bits <= COPIED => (1, 8 << bits),
        Some(_) => (2, 0),
    };
    let middle = vec![columns.cuda().into(), bits.into(), first.into()];
    let law = Law { source: &INTEGERS, defines: defines(false, kind), middle, each: 4, shared };
    go(cuda, &law, way, stream, out)
}
