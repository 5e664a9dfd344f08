//! The time that counts predict: the largest of what each part of a GPU needs, and the launch.

use std::fmt;

use rayspin_emu::counting::{Counts, Kind, Space};
use serde::Serialize;

use super::super::occupancy::{self, Block, Limits};
use super::gpus::Gpu;

const WARP: f64 = 32.0;
const SECTOR: f64 = 32.0;
/// Instructions that a multiprocessor issues in a cycle.
const ISSUED: f64 = 4.0;
/// Registers of a thread where no compiler says how many there are.
const REGISTERS: u32 = 32;
/// Loads of a loop's neighbouring turns that a compiler lets wait together.
const TOGETHER: f64 = 4.0;

/// What limits a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Limit {
    Memory,
    Cache,
    Rows,
    Shared,
    Atomics,
    Instructions,
    Wait,
    Launch,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory bytes",
            Self::Cache => "second-level cache",
            Self::Rows => "scattered requests",
            Self::Shared => "shared memory",
            Self::Atomics => "atomics",
            Self::Instructions => "instructions",
            Self::Wait => "wait for memory",
            Self::Launch => "launch",
        })
    }
}

/// A predicted time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Prediction {
    pub(super) seconds: f64,
    pub(super) limit: Limit,
    /// Seconds that each part needs.
    pub(super) parts: Vec<(Limit, f64)>,
    /// Threads that a multiprocessor holds, over the most it could.
    pub(super) occupancy: f64,
}

/// The time of all launches of a kernel.
pub(super) fn predict(gpu: &Gpu, counts: &Counts, registers: Option<u32>) -> Prediction {
    let threads: u32 = counts.launch.threads.iter().product();
    let block = Block { threads, registers: registers.unwrap_or(REGISTERS), shared: counts.shared };
    let limits = Limits::of(gpu.capability);
    let held = limits.map_or(1, |limits| occupancy::held(limits, block).0.max(1));
    let blocks = counts.blocks().max(1) as f64;
    // Multiprocessors that have something to do, and the blocks that each holds.
    let busy = gpu.multiprocessors.min(blocks);
    let resident = f64::from(held).min((blocks / busy).ceil());
    let warps = resident * f64::from(threads.div_ceil(32));
    let cycles = |per_multiprocessor: f64| per_multiprocessor / busy / gpu.clock;

    let global = |space: Space| matches!(space, Space::Global | Space::Texture);
    let sectors = counts.sum(|a| a.sectors, |a| global(a.space));
    let (memory, cached) = bytes(gpu, counts, resident);
    let rows = counts.sum(|a| a.rows, |a| global(a.space));
    let turns = counts.sum(|a| a.turns, |a| a.space == Space::Shared);
    let constants = counts.sum(|a| a.turns, |a| a.space == Space::Constant);
    let lanes = counts.sum(|a| a.lanes, |a| a.kind == Kind::Atomic && a.space == Space::Global);
    let hot = counts.sum(|a| a.most, |a| a.kind == Kind::Atomic && a.space == Space::Global);
    let mut work = super::total(counts);
    work.integer += work.branch;
    let requests = counts.sum(|a| a.requests, |_| true);
    let pipes = [
        counts.instructions() / ISSUED,
        work.single * WARP / gpu.single,
        work.integer * WARP / gpu.integer,
        work.double * WARP / gpu.double,
        work.special * WARP / gpu.special,
        // Loads and stores of all memories go through one pipe.
        requests + constants,
    ];
    let instructions = pipes.into_iter().fold(0.0, f64::max);
    // Little's law: what all warps wait, over the warps that wait at a time.
    let in_cache = memory * 2.0 < sectors * SECTOR;
    let latency = if in_cache { gpu.wait_cache } else { gpu.wait_memory };
    let each = counts.waits / counts.warps.max(1.0);
    let chain = |waits: f64| (waits / TOGETHER).max(waits.min(1.0));
    let waits = chain(each) * counts.warps * latency
        + chain(counts.shared_waits / counts.warps.max(1.0)) * counts.warps * gpu.wait_shared;
    let longest = chain(counts.longest) * latency * counts.launches as f64 / gpu.clock;
    let parts = vec![
        (Limit::Memory, memory / gpu.memory),
        (Limit::Cache, cached / gpu.cache),
        (Limit::Rows, cycles(rows)),
        (Limit::Shared, cycles(turns)),
        (Limit::Atomics, (lanes / gpu.atomics).max(hot * gpu.same_address / 64.0) / gpu.clock),
        (Limit::Instructions, cycles(instructions)),
        (Limit::Wait, (cycles(waits) / warps.max(1.0)).max(longest)),
        (Limit::Launch, counts.launches as f64 * gpu.launch),
    ];
    let launch = counts.launches as f64 * gpu.launch;
    let (limit, most) =
        parts.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((Limit::Launch, launch));
    let seconds = if limit == Limit::Launch { launch } else { most + launch };
    let most_threads = limits.map_or(2048, |limits| limits.threads);
    let occupancy = f64::from(held) * f64::from(threads) / f64::from(most_threads);
    Prediction { seconds, limit, parts, occupancy }
}

/// Bytes from memory, and from the second-level cache.
fn bytes(gpu: &Gpu, counts: &Counts, resident: f64) -> (f64, f64) {
    let share = counts.counted.max(1) as f64 / counts.blocks().max(1) as f64;
    let blocks = counts.blocks().max(1) as f64 * counts.launches as f64;
    let (mut memory, mut cache) = (0.0, 0.0);
    for touched in &counts.touched {
        let own = |a: &&rayspin_emu::counting::Access| a.array == touched.array && a.space == touched.space;
        let of = |kind: fn(Kind) -> bool| -> f64 {
            let accesses = counts.lines.iter().flat_map(|line| &line.accesses).filter(own);
            accesses.filter(|a| kind(a.kind)).map(|a| a.sectors).sum::<f64>() * SECTOR
        };
        let loads = of(|kind| matches!(kind, Kind::Read | Kind::Texel));
        let stores = of(|kind| matches!(kind, Kind::Write | Kind::Atomic));
        let of_blocks = touched.by_block * SECTOR;
        // What no block shares with another, at most the whole array.
        let whole = (touched.bytes as f64).min(of_blocks);
        let once = if share < 1.0 {
            whole.min(touched.sectors as f64 * SECTOR / share)
        } else {
            touched.sectors as f64 * SECTOR
        } * counts.launches as f64;
        // An array that the cache does not hold is read again by blocks that share it, if its pieces are small.
        let large = once > gpu.cache_bytes / 2.0;
        let scattered = loads + stores > 0.0 && of_blocks > 0.7 * (loads + stores);
        memory += if large && scattered { of_blocks.max(once) } else { once };
        // The first-level cache serves what a block reads again, where it holds the block's part.
        let fits = of_blocks / blocks * resident <= 160e3;
        cache += stores + if fits { of_blocks.min(loads) } else { loads };
    }
    (memory, cache)
}
