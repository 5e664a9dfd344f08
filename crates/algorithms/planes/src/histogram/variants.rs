//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind;
use rayspin_tune::{Config, HostTransfer, Row, Runnable, Space, TransferArray, Variant, Work, gpu, runs_all};

use super::cuda::{self, UNROLL};
use super::ladder::{Data, Form, Histogram, Problem};
use super::sample::Width;

/// Every sample is read once; the bins are nothing beside that.
fn work(problem: &Problem) -> Work {
    let bin = if problem.form == Form::Counts { 4.0 } else { 1.0 };
    Work { bytes: (problem.width.bytes() * problem.samples) as f64 + bin * problem.bins as f64, flops: 0.0 }
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    let output: &mut dyn TransferArray = match data.problem.form {
        Form::Saturating => &mut data.bytes,
        Form::Counts => &mut data.words,
    };
    Some(HostTransfer { inputs: vec![data.samples.input()], outputs: vec![output] })
}

/// Kernels of samples of 32 bits.
fn words_only(problem: &Problem) -> Option<String> {
    (problem.width != Width::U32).then(|| format!("{problem}: samples of 32 bits alone"))
}

/// More bins than a block may count in shared memory of 48 KiB, which every launch has.
pub(super) fn shared_refuses(problem: &Problem) -> Option<String> {
    let many = || format!("{problem}: a block without asking has 48 KiB of shared memory, 12288 bins");
    words_only(problem).or_else(|| (4 * problem.bins > 48 << 10).then(many))
}

/// Tables of 256 counts.
fn bytes_only(problem: &Problem) -> Option<String> {
    (problem.width != Width::U8 || problem.bins > 256)
        .then(|| format!("{problem}: samples of 8 bits and at most 256 bins alone"))
}

/// What compares or clamps, where nothing is to be clamped.
fn no_limit(problem: &Problem) -> Option<String> {
    (problem.form == Form::Counts).then(|| "plain counts have no limit to test".to_owned())
}

fn saturating_only(problem: &Problem) -> Option<String> {
    no_limit(problem).or_else(|| shared_refuses(problem))
}

fn too_many_bins(problem: &Problem) -> Option<String> {
    (4 * problem.bins > 224 << 10)
        .then(|| format!("{problem}: a multiprocessor's shared memory holds 57344 bins of 32 bits"))
}

/// Copies of a block's counts that shared memory of an H100 holds, 4 bytes a bin: powers of two, one at
/// least.
pub(super) fn copies(bins: usize) -> Vec<i64> {
    let fit = (0..6).map(|p| 1i64 << p).filter(|&c| 4 * bins * c as usize <= 224 << 10);
    let fit: Vec<_> = fit.collect();
    if fit.is_empty() { vec![1] } else { fit }
}

fn most(copies: &[i64]) -> i64 {
    copies.last().copied().unwrap_or(1)
}

fn tables(default: i64) -> Space {
    Space::none().axis("tables", &[1, 2, 4, 8], default)
}

fn one_block(_: &Problem) -> Space {
    Space::none().axis("threads", &[128, 256, 512, 1024], 512)
}

fn many_blocks(_: &Problem) -> Space {
    Space::none().axis("threads", &[128, 256, 512, 1024], 256).axis(
        "blocks",
        &[132, 264, 528, i64::from(cuda::MOST_BLOCKS)],
        528,
    )
}

/// As many blocks at most as a multiprocessor holds at once.
fn pass(threads: i64, blocks: i64, unroll: &[i64]) -> Space {
    Space::none()
        .axis("threads", &[256, 512, 1024], threads)
        .axis("blocks", &[1, 2, 4, 8], blocks)
        .axis("unroll", unroll, 2)
        .where_(|c| matches!(c.find("threads").zip(c.find("blocks")), Some((t, b)) if t * b <= 2048))
}

fn all_copies(problem: &Problem) -> Space {
    let copies = copies(problem.bins);
    pass(1024, 1, &UNROLL).axis("copies", &copies, most(&copies))
}

/// Counts of 16 bits leave room for twice as many.
fn packed_copies(problem: &Problem) -> Space {
    let mut copies = copies(problem.bins);
    let most = (2 * most(&copies)).min(32);
    if !copies.contains(&most) {
        copies.push(most);
    }
    pass(1024, 1, &UNROLL).axis("copies", &copies, most)
}

fn some_copies(problem: &Problem) -> Space {
    let copies = copies(problem.bins);
    pass(1024, 2, &UNROLL).axis("copies", &copies, most(&copies).min(8))
}

fn one_pass(kernel: &'static str, config: &Config, data: &mut Data) -> Result<()> {
    let limit = data.problem.form.limit();
    let device = data.samples.device().clone();
    cuda::one_pass(gpu(&device)?, kernel, cuda::OnePass::of(config)?, limit, &mut data.arrays())
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: impl Fn(&Config, &mut Data) -> Result<()> + Send + Sync + 'static,
) -> Row<Histogram> {
    Variant::new(name, backend, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
}

/// A row of the lab journal.
fn journal(
    name: &'static str,
    reproduces: &'static str,
    summary: &'static str,
    implementation: impl Fn(&Config, &mut Data) -> Result<()> + Send + Sync + 'static,
) -> Row<Histogram> {
    let row = row(name, BackendKind::Cuda, summary, implementation).reproduces(reproduces);
    row.refuses(shared_refuses).forms(cuda::journal_forms)
}

pub(super) fn rows() -> Vec<Row<Histogram>> {
    let single = |name, reproduces, summary, kernel, shared| {
        journal(name, reproduces, summary, move |c, d| cuda::single(kernel, c.get("threads")?, shared, d))
            .space(one_block)
    };
    let added = |name, reproduces, summary, kernel, clamp| {
        journal(name, reproduces, summary, move |c, d| cuda::added(kernel, clamp, c, d)).space(many_blocks)
    };
    vec![
        on_cpu("cpu-scalar", "one thread, one table", |_, d| {
            let wide = &mut d.wide.cpu_mut()[..d.problem.bins];
            wide.fill(0);
            d.samples.scalar(wide);
            d.give()
        })
        .reproduces("CPU"),
        on_cpu("cpu-tables", "one thread, neighbours in tables of their own", |c, d| {
            d.samples.tables(c.get("tables")? as usize, d.wide.cpu_mut(), d.problem.bins);
            d.give()
        })
        .space(|_| tables(4)),
        on_cpu("cpu-blocks", "compared with the number of bins in vectors, counted in 16 bits", |c, d| {
            let level = d.samples.device().cpu_side().level();
            d.samples.blocks(level, c.get("tables")? as usize, d.wide.cpu_mut(), d.problem.bins);
            d.give()
        })
        .space(|_| tables(8)),
        cpu_threads(),
        journal("o1", "O1", "one thread", |_, d| cuda::single("one_thread", 1, false, d)).refuses(words_only),
        single("o2", "O2", "one block, a piece of the samples for each thread", "one_block", false)
            .refuses(words_only),
        single("o3", "O3", "one block, neighbours by neighbouring threads", "interleaved", false)
            .refuses(words_only),
        single("o4", "O4", "one block, counts in shared memory", "in_shared", true),
        added("o5", "O5", "many blocks, then a kernel that clamps", "many_blocks", "clamp_by_branch"),
        added("o6", "O6", "clamped by min", "many_blocks", "clamp_by_min").refuses(saturating_only),
        added("o7", "O7", "a full bin of all blocks is not added to", "tested", "clamp_by_min")
            .refuses(saturating_only),
        added("o8", "O8", "4 samples of a thread at once", "unrolled_4", "clamp_by_min"),
        added("o9", "O9", "12 samples of a thread at once", "unrolled_12", "clamp_by_min"),
        journal("o10", "O10", "plain stores, added by a second kernel", |c, d| {
            cuda::second_pass("stored", c, d)
        })
        .space(many_blocks),
        journal("o11", "O11", "four 8-bit counts in a word of 32 bits", cuda::bytes)
            .refuses(saturating_only)
            .space(many_blocks)
            .forms(cuda::bytes_forms),
        row("gpu-stored-wide", BackendKind::Cuda, "o10 with 16-byte loads", |c, d| {
            cuda::second_pass("stored_wide", c, d)
        })
        .refuses(shared_refuses)
        .space(many_blocks)
        .forms(cuda::journal_forms),
        row(
            "gpu-private",
            BackendKind::Cuda,
            "bytes: 8-bit counts of each thread, no atomic additions",
            cuda::private,
        )
        .refuses(bytes_only)
        .space(|_| {
            let space = Space::none().axis("threads", &cuda::PRIVATE_THREADS, 256).axis(
                "blocks",
                &[1, 2, 3, 6, 12],
                3,
            );
            // A multiprocessor has shared memory for 768 threads.
            space.where_(|c| matches!(c.find("threads").zip(c.find("blocks")), Some((t, b)) if t * b <= 768))
        })
        .forms(cuda::private_forms),
        gpu_device_memory(),
        modern("gpu-one-pass", "one kernel: the block that ends last gives the result", "each")
            .space(|_| pass(1024, 2, &UNROLL).axis("copies", &[1], 1)),
        modern("gpu-matched", "equal values of a warp are added once", "matched")
            .space(|_| pass(1024, 2, &UNROLL)),
        gpu_copies(),
        modern("gpu-packed", "two 16-bit counts in a word, runs added at once", "packed")
            .space(packed_copies),
        modern("gpu-runs", "copies, and runs of a thread added at once", "runs").space(all_copies),
        modern("gpu-tested", "copies, and a full bin is not added to", "tested_one_pass")
            .refuses(|problem| no_limit(problem).or_else(|| too_many_bins(problem)))
            .space(some_copies),
    ]
}

/// What the public functions run on a CPU.
pub(super) fn cpu_threads() -> Row<Histogram> {
    on_cpu("cpu-threads", "the same on all cores", |c, d| {
        let device = d.samples.device().clone();
        let tables = c.get("tables")? as usize;
        d.samples.threads(device.cpu_side(), tables, d.wide.cpu_mut(), d.problem.bins);
        d.give()
    })
    .space(|_| tables(8))
}

/// What the public functions run on a GPU where shared memory holds the bins.
pub(super) fn gpu_copies() -> Row<Histogram> {
    modern("gpu-copies", "a copy of the counts for each lane", "each").space(all_copies)
}

/// What they run for more bins.
pub(super) fn gpu_device_memory() -> Row<Histogram> {
    modern("gpu-device-memory", "counts in the device's memory: any number of bins", "everywhere")
        .refuses(runs_all)
        .space(|_| pass(256, 8, &[2]))
        .forms(|| cuda::one_pass_forms(&[2]))
}

fn on_cpu(
    name: &'static str,
    summary: &'static str,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Histogram> {
    row(name, BackendKind::Cpu, summary, implementation)
}

fn modern(name: &'static str, summary: &'static str, kernel: &'static str) -> Row<Histogram> {
    let row = row(name, BackendKind::Cuda, summary, move |c, d| one_pass(kernel, c, d));
    row.refuses(too_many_bins).forms(|| cuda::one_pass_forms(&UNROLL))
}
