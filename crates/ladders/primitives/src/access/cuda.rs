#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result};
use rayspin_device::Cuda;
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_tune::{Build, Config, gpu};

use super::reference::{Pattern, READS, WORDS, word};
use super::{Data, Topic};

static SOURCE: Source = Source { name: "access", files: &[("access.cu", include_str!("cuda/access.cu"))] };

/// Threads of a block.
pub(super) const THREADS: u32 = 256;

pub(super) fn forms() -> Vec<Build> {
    vec![Build::plain(&SOURCE)]
}

/// Puts the table into constant memory, where it stays.
pub(super) fn set_table(cuda: &Cuda) -> Result<()> {
    let table: Vec<u32> = (0..WORDS + READS).map(word).collect();
    cuda.set_variable(&SOURCE, &[], "constants", bytemuck::cast_slice(&table))
}

/// Data of another topic have other arrays.
pub(super) fn expect(data: &Data, topic: Topic) -> Result<()> {
    if data.problem.topic == topic {
        return Ok(());
    }
    Err(Error::value("data of an access pattern", format!("those of {topic:?}"), data.problem))
}

/// A copy with `stride` words between neighbours.
pub(super) fn strided(stride: u32, data: &mut Data) -> Result<()> {
    expect(data, Topic::Order)?;
    if stride == 0 {
        return Err(Error::value("stride", "at least 1", stride));
    }
    data.ran = Some(Pattern::Stride(stride as usize));
    let n = data.out.len();
    let lines = n / stride as usize;
    let device = data.out.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], "stride")?;
    // A row of blocks for each place within a line, and one for what does not fill a line.
    let across = lines.max(n % stride as usize).div_ceil(THREADS as usize);
    let across = u32::try_from(across).map_err(|_| Error::value("words of a copy", "at most 2³² − 1", n))?;
    let shape = Launch { blocks: [across, stride.saturating_add(1), 1], threads: [THREADS, 1, 1], shared: 0 };
    let mut arguments = [
        data.inputs[0].cuda().into(),
        data.out.cuda_mut().into(),
        (n as u64).into(),
        (lines as u64).into(),
        u64::from(stride).into(),
    ];
    // SAFETY: input and output have n words; `lines` lines of `stride` words are at most those.
    unsafe { kernel.launch(shape, &mut arguments) }
}

/// A copy by one of the kernels that take one number: of `permuted` a power of two.
pub(super) fn copy(name: &str, by: u32, pattern: Pattern, data: &mut Data) -> Result<()> {
    expect(data, Topic::Order)?;
    if name == "permuted" && !by.is_power_of_two() {
        return Err(Error::value("segment", "a power of two", by));
    }
    data.ran = Some(pattern);
    let n = data.out.len();
    let device = data.out.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], name)?;
    let mut arguments =
        [data.inputs[0].cuda().into(), data.out.cuda_mut().into(), (n as u64).into(), u64::from(by).into()];
    // SAFETY: input and output have n words; an offset wraps within them, and segments of a power of two stay
    // within themselves.
    unsafe { kernel.launch(Launch::covering(n, THREADS), &mut arguments) }
}

pub(super) fn random(data: &mut Data) -> Result<()> {
    expect(data, Topic::Order)?;
    data.ran = Some(Pattern::Random);
    let n = data.out.len();
    let device = data.out.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], "indexed")?;
    let mut arguments = [
        data.inputs[0].cuda().into(),
        data.inputs[1].cuda().into(),
        data.out.cuda_mut().into(),
        (n as u64).into(),
    ];
    // SAFETY: input, indices and output have n words, and the indices are a permutation of them.
    unsafe { kernel.launch(Launch::covering(n, THREADS), &mut arguments) }
}

/// Sums of the first `fields` fields of the records of input `which`.
pub(super) fn records(
    which: usize,
    [record, next]: [usize; 2],
    fields: usize,
    data: &mut Data,
) -> Result<()> {
    expect(data, Topic::Records)?;
    data.ran = Some(Pattern::Records(fields));
    let n = data.out.len();
    let device = data.out.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], "records")?;
    let mut arguments = [
        data.inputs[which].cuda().into(),
        data.out.cuda_mut().into(),
        (n as u64).into(),
        (record as u64).into(),
        (next as u64).into(),
        (fields as i32).into(),
    ];
    // SAFETY: the table of rows gives each input the steps of its n records; the output has a word for each.
    unsafe { kernel.launch(Launch::covering(n, THREADS), &mut arguments) }
}

/// Reads of elements of `width` bytes from a block's shared memory.
pub(super) fn banks(width: usize, config: &Config, data: &mut Data) -> Result<()> {
    let stride = config.get("stride")?;
    data.ran = Some(Pattern::Table { width, stride: stride as usize });
    let n = data.out.len();
    let device = data.out.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], "banks")?;
    let mut arguments = [data.out.cuda_mut().into(), (n as u64).into(), stride.into(), (width as i32).into()];
    // SAFETY: the output has n words, and the kernel keeps places in its tile below the tile's length.
    unsafe { kernel.launch(Launch::covering(n, THREADS), &mut arguments) }
}

/// Reads of a table in constant or in global memory.
pub(super) fn table(constant: bool, config: &Config, data: &mut Data) -> Result<()> {
    expect(data, Topic::Constant)?;
    let stride = config.get("stride")?;
    data.ran = Some(Pattern::Table { width: 4, stride: stride as usize });
    let n = data.out.len();
    let device = data.out.device().clone();
    let name = if constant { "constant_memory" } else { "global_memory" };
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], name)?;
    let mut arguments: Vec<Argument<'_>> = if constant { vec![] } else { vec![data.inputs[0].cuda().into()] };
    arguments.extend::<[Argument<'_>; 3]>([data.out.cuda_mut().into(), (n as u64).into(), stride.into()]);
    // SAFETY: the output has n words, and the kernel keeps places in the table below the table's length.
    unsafe { kernel.launch(Launch::covering(n, THREADS), &mut arguments) }
}
