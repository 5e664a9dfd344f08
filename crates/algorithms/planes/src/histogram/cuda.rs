#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Call, Config, gpu};

use super::{Data, Samples, Width};
use rayspin_tune::blocks::whole_warps;

static SOURCES: Source =
    Source { name: "histogram", files: &[("sources.cu", include_str!("cuda/sources.cu"))] };
static BYTES: Source =
    Source { name: "histogram_bytes", files: &[("bytes.cu", include_str!("cuda/bytes.cu"))] };
static MODERN: Source =
    Source { name: "histogram_one_pass", files: &[LAST, ("modern.cu", include_str!("cuda/modern.cu"))] };
static PRIVATE: Source =
    Source { name: "histogram_private", files: &[LAST, ("private.cu", include_str!("cuda/private.cu"))] };
const LAST: (&str, &str) = ("last.cuh", include_str!("cuda/last.cuh"));

/// Numbers of 16-byte loads at once that programs are compiled for.
pub(super) const UNROLL: [i64; 3] = [1, 2, 4];
/// Blocks that have a row for the second pass.
pub(super) const MOST_BLOCKS: u32 = 1056;

pub(super) fn journal_forms() -> Vec<Build> {
    vec![Build::plain(&SOURCES)]
}

pub(super) fn bytes_forms() -> Vec<Build> {
    vec![Build::plain(&BYTES)]
}

/// Programs for samples of every width, with each number of loads at once.
pub(super) fn one_pass_forms(unroll: &[i64]) -> Vec<Build> {
    let widths = [Width::U32, Width::U16, Width::U8];
    let forms = widths.into_iter().flat_map(|width| unroll.iter().map(move |&unroll| (width, unroll)));
    let build = |(width, unroll)| Build {
        source: &MODERN,
        defines: defines(width, unroll),
        // Blocks of 1024 threads leave 64 registers each, which 32 samples on their way fill on compute
        // capability 12.
        spill_bytes: if unroll == 4 { 16 } else { 0 },
    };
    forms.map(build).collect()
}

fn defines(width: Width, unroll: impl ToString) -> Vec<(&'static str, String)> {
    vec![("UNROLL", unroll.to_string()), ("SAMPLE", sample(width).to_owned())]
}

/// Threads of a block that [`private`] has tables for.
pub(super) const PRIVATE_THREADS: [i64; 3] = [64, 128, 256];

fn private_defines(threads: u32) -> Vec<(&'static str, String)> {
    vec![("THREADS", threads.to_string())]
}

pub(super) fn private_forms() -> Vec<Build> {
    PRIVATE_THREADS.map(|n| Build { defines: private_defines(n as u32), ..Build::plain(&PRIVATE) }).to_vec()
}

/// A table of 256 counts of 8 bits for each thread.
pub(super) fn private(config: &Config, data: &mut Data) -> Result<()> {
    let limit = data.problem.form.limit();
    let device = data.samples.device().clone();
    let cuda = gpu(&device)?;
    let threads = config.get("threads")?;
    let a = data.arrays();
    a.check(limit)?;
    if a.samples.width() != Width::U8 || a.bins > 256 || !PRIVATE_THREADS.contains(&threads.into()) {
        let given = format!("{}, {} bins, {threads} threads", a.samples.width().name(), a.bins);
        let expected = format!("samples of 8 bits, at most 256 bins, one of {PRIVATE_THREADS:?} threads");
        return Err(Error::value("histogram in private tables", expected, given));
    }
    let kernel = cuda.kernel(&PRIVATE, &private_defines(threads), "private_tables")?;
    let useful = (a.samples.count() / 16).div_ceil(threads as usize).max(1);
    let blocks = cuda.properties().multiprocessors as usize * config.get("blocks")?.max(1) as usize;
    let launch = Launch::linear(blocks.min(useful) as u32, threads).with_shared(256 * threads as usize);
    let mut arguments = [
        a.samples.argument(),
        a.n(),
        a.bins(),
        limit.into(),
        a.wide.cuda_mut().into(),
        a.bytes.cuda_mut().into(),
        a.words.cuda_mut().into(),
    ];
    // SAFETY: the samples are bytes, as many as said; every array has a count for each bin; shared memory has
    // 256 bytes a thread.
    unsafe { kernel.launch(launch, &mut arguments) }
}

/// The type of samples in kernels.
pub(super) fn sample(width: Width) -> &'static str {
    match width {
        Width::U8 => "unsigned char",
        Width::U16 => "unsigned short",
        Width::U32 => "unsigned int",
    }
}

/// Arrays that every kernel may take, apart so that each is borrowed by itself.
pub(super) struct Arrays<'a> {
    pub samples: &'a dyn Samples,
    pub bins: usize,
    pub wide: &'a mut Array<u32>,
    pub bytes: &'a mut Array<u8>,
    pub words: &'a mut Array<u32>,
}

impl Arrays<'_> {
    /// That there is room for the counts, those that stop at 255 apart.
    fn check(&self, limit: u32) -> Result<()> {
        let room = if limit == 255 { self.bytes.len() } else { self.words.len() };
        if self.bins > 0
            && u32::try_from(self.bins).is_ok()
            && room >= self.bins
            && self.wide.len() >= wide_len(self.bins)
        {
            return Ok(());
        }
        let given = format!("{room}, and {} to count in", self.wide.len());
        Err(Error::value("counts of a histogram", format!("{}, and one more to count in", self.bins), given))
    }

    fn n(&self) -> Argument<'static> {
        (self.samples.count() as u64).into()
    }

    fn bins(&self) -> Argument<'static> {
        (self.bins as u32).into()
    }
}

/// Words of `wide`: a count for each bin and the blocks that have ended.
pub(super) fn wide_len(bins: usize) -> usize {
    bins + 1
}

/// Variants of one block, with the counts in the device's memory or in shared memory.
pub(super) fn single(name: &'static str, threads: u32, shared: bool, data: &mut Data) -> Result<()> {
    let limit = data.problem.form.limit();
    let bytes = if shared { 4 * data.problem.bins } else { 0 };
    let device = data.samples.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCES, &[], name)?;
    let a = data.arrays();
    a.check(limit)?;
    let mut arguments = vec![a.samples.argument(), a.n(), a.bins(), limit.into()];
    if !shared {
        arguments.push(a.wide.cuda_mut().into());
    }
    arguments.extend::<[Argument<'_>; 2]>([a.bytes.cuda_mut().into(), a.words.cuda_mut().into()]);
    // SAFETY: the samples are as many as said; every array has a count for each bin, and so has shared memory
    // where they lie there.
    unsafe { kernel.launch(Launch::linear(1, threads).with_shared(bytes), &mut arguments) }?;
    // The variants of one pass find their counts at zero.
    if shared { Ok(()) } else { clear(data) }
}

fn clear(data: &mut Data) -> Result<()> {
    let device = data.samples.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCES, &[], "clear")?;
    let a = data.arrays();
    a.check(u32::MAX)?;
    let launch = Launch::covering(a.bins, 256);
    // SAFETY: there is a count for each bin.
    unsafe { kernel.launch(launch, &mut [a.bins(), a.wide.cuda_mut().into()]) }
}

/// Variants of many blocks that add to the counts of all: counted, clamped, cleared.
pub(super) fn added(name: &'static str, clamp: &'static str, config: &Config, data: &mut Data) -> Result<()> {
    let limit = data.problem.form.limit();
    let device = data.samples.device().clone();
    let cuda = gpu(&device)?;
    let count = cuda.kernel(&SOURCES, &[], name)?;
    let a = data.arrays();
    a.check(limit)?;
    let mut arguments = [a.samples.argument(), a.n(), a.bins(), limit.into(), a.wide.cuda_mut().into()];
    // SAFETY: the samples are as many as said; there is a count for each bin, in the array and in shared
    // memory.
    unsafe { count.launch(grid(config, a.bins)?, &mut arguments) }?;
    clamped(clamp, data)
}

/// The counts as the result, which the kernel `clamp` gives, and zero again.
fn clamped(clamp: &'static str, data: &mut Data) -> Result<()> {
    let limit = data.problem.form.limit();
    let device = data.samples.device().clone();
    let clamp = gpu(&device)?.kernel(&SOURCES, &[], clamp)?;
    let a = data.arrays();
    let mut arguments =
        [a.bins(), limit.into(), a.wide.cuda().into(), a.bytes.cuda_mut().into(), a.words.cuda_mut().into()];
    // SAFETY: every array has a count for each bin.
    unsafe { clamp.launch(Launch::covering(a.bins, 256), &mut arguments) }?;
    clear(data)
}

/// Counts by a kernel that is called with the samples, their number, the bins and the counts at zero.
pub(super) fn counted_by(data: &mut Data, call: &mut Call<'_>) -> Result<()> {
    let limit = data.problem.form.limit();
    let device = data.samples.device().clone();
    let a = data.arrays();
    a.check(limit)?;
    call(&device, &mut [a.samples.argument(), a.n(), a.bins(), a.wide.cuda_mut().into()])?;
    clamped("clamp_by_min", data)
}

fn grid(config: &Config, bins: usize) -> Result<Launch> {
    let blocks = config.get("blocks")?.min(MOST_BLOCKS);
    Ok(Launch::linear(blocks, config.get("threads")?).with_shared(4 * bins))
}

/// Counts of 8 bits, four in a word: a row of words for each block, added by a second kernel.
pub(super) fn bytes(config: &Config, data: &mut Data) -> Result<()> {
    let limit = data.problem.form.limit();
    let device = data.samples.device().clone();
    let cuda = gpu(&device)?;
    let (count, add) = (cuda.kernel(&BYTES, &[], "count_bytes")?, cuda.kernel(&BYTES, &[], "add_bytes")?);
    let each = data.problem.bins.div_ceil(4);
    let launch = grid(config, each)?;
    let (a, parts) = data.arrays_and_parts();
    a.check(limit)?;
    if limit != 255 {
        return Err(Error::value("histogram in counts of 8 bits", "counts that stop at 255", limit));
    }
    let blocks = launch.blocks[0];
    if parts.len() < (blocks as usize).saturating_mul(each) {
        let expected = format!("a row of {each} for each of {blocks} blocks");
        return Err(Error::value("counts of blocks", expected, parts.len()));
    }
    let mut arguments = [a.samples.argument(), a.n(), a.bins(), parts.cuda_mut().into()];
    // SAFETY: the samples are as many as said; every block has a row of its own, and a byte for each bin in
    // shared memory.
    unsafe { count.launch(launch, &mut arguments) }?;
    let mut arguments = [blocks.into(), a.bins(), parts.cuda().into(), a.bytes.cuda_mut().into()];
    // SAFETY: every block has left a row, and the result has a byte for each bin.
    unsafe { add.launch(Launch::covering(each, 64), &mut arguments) }
}

/// Variants of many blocks that store a row each, added by a second kernel.
pub(super) fn second_pass(name: &'static str, config: &Config, data: &mut Data) -> Result<()> {
    let limit = data.problem.form.limit();
    let device = data.samples.device().clone();
    let cuda = gpu(&device)?;
    let (count, add) = (cuda.kernel(&SOURCES, &[], name)?, cuda.kernel(&SOURCES, &[], "second_pass")?);
    let launch = grid(config, data.problem.bins)?;
    let (a, parts) = data.arrays_and_parts();
    a.check(limit)?;
    if parts.len() < (launch.blocks[0] as usize).saturating_mul(a.bins) {
        let expected = format!("a row of {} for each of {} blocks", a.bins, launch.blocks[0]);
        return Err(Error::value("counts of blocks", expected, parts.len()));
    }
    let mut arguments = [a.samples.argument(), a.n(), a.bins(), limit.into(), parts.cuda_mut().into()];
    // SAFETY: the samples are as many as said; every block has a row of its own, and a count for each bin in
    // shared memory.
    unsafe { count.launch(launch, &mut arguments) }?;
    let mut arguments = [
        launch.blocks[0].into(),
        a.bins(),
        limit.into(),
        parts.cuda().into(),
        a.bytes.cuda_mut().into(),
        a.words.cuda_mut().into(),
    ];
    // SAFETY: every block has left a row, and the result has a count for each bin.
    unsafe { add.launch(Launch::covering(a.bins, 64), &mut arguments) }
}

/// Parameters of the variants of one pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnePass {
    pub threads: u32,
    /// Blocks for each multiprocessor.
    pub blocks: u32,
    pub copies: u32,
    pub unroll: u32,
}

impl OnePass {
    pub(super) fn of(config: &Config) -> Result<Self> {
        Ok(Self {
            threads: config.get("threads")?,
            blocks: config.get("blocks")?,
            copies: config.find("copies").map_or(Ok(1), |_| config.get("copies"))?,
            unroll: config.get("unroll")?,
        })
    }
}

/// Words of shared memory, one row of copies for each bin or pair of bins.
fn words(name: &str, copies: u32, bins: usize) -> usize {
    copies as usize
        * match name {
            "packed" => bins.div_ceil(2),
            "everywhere" => 0,
            _ => bins,
        }
}

/// Whether shared memory holds the counts of a block.
pub(super) fn fits(cuda: &Cuda, copies: u32, bins: usize) -> bool {
    // A kernel has a word of its own.
    4 * words("each", copies, bins) + 64 <= cuda.properties().shared_per_block as usize
}

pub(super) fn one_pass(
    cuda: &Cuda,
    name: &'static str,
    pass: OnePass,
    limit: u32,
    a: &mut Arrays<'_>,
) -> Result<()> {
    a.check(if name == "tested_one_pass" { 255 } else { limit })?;
    whole_warps(pass.threads)?;
    if !pass.copies.is_power_of_two() || !UNROLL.contains(&pass.unroll.into()) {
        let given = format!("{} and {}", pass.copies, pass.unroll);
        return Err(Error::value("copies and loads", format!("a power of two and one of {UNROLL:?}"), given));
    }
    let width = a.samples.width();
    let kernel = cuda.kernel(&MODERN, &defines(width, pass.unroll), name)?;
    let of_a_load = 16 / width.bytes();
    let loads = a.samples.count().div_ceil(of_a_load).max(1);
    let useful = loads.div_ceil(pass.threads as usize);
    let mut blocks = cuda.properties().multiprocessors as usize * pass.blocks as usize;
    if name == "packed" {
        // A word that all of a row's samples went to must stay below 65536: the threads of a copy, each with
        // its loads and one of the last samples.
        let sharing = (pass.threads / pass.copies).max(1) as usize;
        let loads_of_a_thread = (65_535 / sharing).saturating_sub(1) / of_a_load;
        let threads = loads.div_ceil(loads_of_a_thread.max(1));
        blocks = blocks.max(threads.div_ceil(pass.threads as usize));
    }
    let launch = Launch::linear(blocks.min(useful) as u32, pass.threads)
        .with_shared(words(name, pass.copies, a.bins).saturating_mul(4));
    let mut arguments = vec![a.samples.argument(), a.n(), a.bins()];
    if name != "everywhere" {
        arguments.push(pass.copies.trailing_zeros().into());
    }
    if name != "tested_one_pass" {
        arguments.push(limit.into());
    }
    arguments.extend::<[Argument<'_>; 3]>([
        a.wide.cuda_mut().into(),
        a.bytes.cuda_mut().into(),
        a.words.cuda_mut().into(),
    ]);
    // SAFETY: the samples are as many as said; every array has a count for each bin, and shared memory has as
    // many as there are copies. Blocks are whole warps.
    unsafe { kernel.launch(launch, &mut arguments) }
}
