//! The time that counts predict: the largest of what each part of a GPU needs, and the launch.

use std::fmt;

use rayspin_emu::counting::{self, Access, Counts, Kind, Space, Touched};
use serde::Serialize;

use super::super::occupancy::{self, Block, Limits};
use super::gpus::Gpu;

const WARP: f64 = counting::WARP as f64;
const SECTOR: f64 = counting::SECTOR as f64;
/// Instructions that a multiprocessor issues in a cycle.
const ISSUED: f64 = 4.0;
/// Registers of a thread where no compiler says how many there are.
const REGISTERS: u32 = 32;
/// Lanes that a multiprocessor's texture units serve in a cycle.
const TEXTURES: f64 = 4.0;
/// Memory moves at least two sectors together.
const SCATTERED: f64 = 2.0;
/// Where stores fill less than this share of their sectors, the second-level cache reads, changes and writes;
/// and the factor that this takes longer. Source: the naive transpose of 8192² on an H100,
/// benches/results/2026-11-21-h100.
const PARTIAL: (f64, f64) = (0.6, 3.0);
/// Cycles until an instruction may use the result of the one before it. A warp's instructions are taken to
/// follow from each other. Source: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via
/// Microbenchmarking", 2018, for arithmetic; taken for later GPUs as well.
const DEPENDENT: f64 = 4.0;
/// Uses of shared memory in neighbouring blocks of code that wait together.
const TOGETHER: f64 = 4.0;
/// Cycles of a multiprocessor for a comparison of each lane with all others. Source: histogram `gpu-matched`
/// on an H100, benches/results/2026-11-21-h100.
const MATCH: f64 = 31.0;

/// What limits a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Limit {
    Memory,
    Cache,
    Rows,
    Shared,
    Textures,
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
            Self::Textures => "textures",
            Self::Atomics => "atomics",
            Self::Instructions => "instructions",
            Self::Wait => "waits of few warps",
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
    let texels = counts.sum(|a| a.lanes, |a| a.kind == Kind::Texel);
    let lanes = counts.sum(|a| a.lanes, |a| a.kind == Kind::Atomic && a.space == Space::Global);
    let hot = counts.sum(|a| a.most, |a| a.kind == Kind::Atomic && a.space == Space::Global);
    let mut work = counts.work();
    work.integer += work.branch;
    let requests = counts.sum(|a| a.requests, |_| true);
    let pipes = [
        counts.instructions() / ISSUED,
        work.single * WARP / gpu.single,
        work.integer * WARP / gpu.integer,
        work.double * WARP / gpu.double,
        work.special * WARP / gpu.special,
        // Loads and stores of all memories go through one pipe, and exchanges too.
        requests + constants + counts.exchanges() + MATCH * counts.matches(),
    ];
    let instructions = pipes.into_iter().fold(0.0, f64::max);
    // Little's law: what all warps wait, over the warps that wait at a time.
    // What fits half of the second-level cache stays there from the kernel or the run before.
    let fits = memory / counts.launches.max(1) as f64 <= gpu.cache_bytes / 2.0;
    let in_cache = fits || memory * 2.0 < sectors * SECTOR;
    let latency = if in_cache { gpu.wait_cache } else { gpu.wait_memory };
    let shared_waits = counts.shared_waits / TOGETHER;
    let shared_waits = shared_waits.max(counts.shared_waits.min(counts.warps));
    // A warp does one thing after another: where there are few, none is there to go on meanwhile.
    let waits = counts.waits * latency + shared_waits * gpu.wait_shared + DEPENDENT * counts.instructions();
    let longest = counts.longest * latency * counts.launches as f64 / gpu.clock;
    let parts = vec![
        (Limit::Memory, memory / gpu.memory),
        (Limit::Cache, cached / gpu.cache),
        (Limit::Rows, cycles(rows)),
        (Limit::Shared, cycles(turns)),
        (Limit::Textures, cycles(texels / TEXTURES)),
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
    let share = counts.share();
    let blocks = counts.blocks().max(1) as f64 * counts.launches as f64;
    let (mut memory, mut cache) = (0.0, 0.0);
    for touched in &counts.touched {
        let own = |a: &&Access| a.array == touched.array && a.space == touched.space;
        let bytes_of = |kind: fn(Kind) -> bool| -> f64 {
            let accesses = counts.lines.iter().flat_map(|line| &line.accesses).filter(own);
            accesses.filter(|a| kind(a.kind)).map(|a| a.sectors).sum::<f64>() * SECTOR
        };
        let loads = bytes_of(|kind| matches!(kind, Kind::Read | Kind::Texel));
        let stores = bytes_of(|kind| matches!(kind, Kind::Write | Kind::Atomic));
        let of_blocks = touched.by_block * SECTOR;
        // What no block shares with another, at most the whole array.
        let whole = (touched.bytes as f64).min(of_blocks);
        let once = if share < 1.0 {
            whole.min(touched.sectors as f64 * SECTOR / share)
        } else {
            touched.sectors as f64 * SECTOR
        } * counts.launches as f64;
        // An array that the cache does not hold is read again by blocks that share it, if its pieces are
        // small.
        let large = once > gpu.cache_bytes / 2.0;
        let scattered = loads + stores > 0.0 && of_blocks > 0.7 * (loads + stores);
        let asked: f64 =
            counts.lines.iter().flat_map(|line| &line.accesses).filter(own).map(|a| a.bytes).sum();
        let alone = asked < PARTIAL.0 * (loads + stores);
        memory += match large && scattered {
            true if alone => (SCATTERED * of_blocks).max(once),
            true => of_blocks.max(once),
            false => once,
        };
        // The first-level cache serves what a block reads again, where it holds the block's part.
        let fits = of_blocks / blocks * resident <= 160e3;
        cache += stores_in_full(counts, touched) + if fits { of_blocks.min(loads) } else { loads };
    }
    (memory, cache)
}

/// Bytes of an array's stores as the second-level cache sees them.
fn stores_in_full(counts: &Counts, touched: &Touched) -> f64 {
    let accesses = counts.lines.iter().flat_map(|line| &line.accesses);
    let stores = accesses.filter(|a| {
        a.array == touched.array && a.space == touched.space && matches!(a.kind, Kind::Write | Kind::Atomic)
    });
    let seen = |access: &Access| {
        let bytes = access.sectors * SECTOR;
        if access.bytes < PARTIAL.0 * bytes { PARTIAL.1 * bytes } else { bytes }
    };
    stores.map(seen).sum()
}

#[cfg(test)]
mod tests {
    use rayspin::device::cuda::Launch;
    use rayspin_emu::counting::{Line, SourceLine, Work};

    use super::super::gpus::ALL;
    use super::*;

    /// A copy of 64 MiB by blocks of 256 threads, whose stores move this many sectors.
    fn copy(sectors: f64) -> Counts {
        let numbers = (16 << 20) as f64;
        let access = |array: &str, kind, sectors: f64| Access {
            array: array.to_owned(),
            space: Space::Global,
            kind,
            requests: numbers / 32.0,
            lanes: numbers,
            bytes: 4.0 * numbers,
            sectors,
            rows: (sectors / 4.0).max(numbers / 32.0),
            turns: 0.0,
            least: 0.0,
            alike: 0.0,
            distinct: 0.0,
            most: 0.0,
        };
        let touched = |array: &str| Touched {
            array: array.to_owned(),
            space: Space::Global,
            bytes: 64 << 20,
            sectors: 2 << 20,
            by_block: numbers / 8.0,
        };
        let line = Line {
            place: SourceLine { file: "copy.cu".to_owned(), line: 1 },
            text: String::new(),
            accesses: vec![access("in", Kind::Read, numbers / 8.0), access("out", Kind::Write, sectors)],
            visits: numbers / 32.0,
            lanes: numbers,
            splits: 0.0,
            barriers: 0.0,
            exchanges: 0.0,
            matches: 0.0,
            work: Work::default(),
            lane_work: 0.0,
        };
        Counts {
            program: "copy".to_owned(),
            kernel: "copy".to_owned(),
            launch: Launch { blocks: [1 << 16, 1, 1], threads: [256, 1, 1], shared: 0 },
            launches: 1,
            shared: 0,
            counted: 1 << 16,
            kept: 8,
            whole: true,
            twin: false,
            lines: vec![line],
            touched: vec![touched("in"), touched("out")],
            warps: numbers / 32.0,
            waits: numbers / 32.0,
            shared_waits: 0.0,
            longest: 1.0,
        }
    }

    #[test]
    fn a_copy_takes_its_bytes_and_scattered_stores_take_longer() {
        let full = (16 << 20) as f64 / 8.0;
        for gpu in &ALL {
            let plain = predict(gpu, &copy(full), None);
            assert_eq!(plain.limit, Limit::Memory, "{}", gpu.name);
            let least = 2.0 * f64::from(64 << 20) / gpu.memory;
            assert!(plain.seconds >= least && plain.seconds < 1.2 * least + gpu.launch, "{plain:?}");
            let scattered = predict(gpu, &copy(8.0 * full), None);
            // Reads, and eight sectors where one would do, pass the second-level cache. It moves two to five
            // times what memory moves, most on the RTX 4090.
            let through_cache = 9.0 * f64::from(64 << 20) / gpu.cache;
            let longer = scattered.seconds >= through_cache && scattered.seconds > 2.0 * plain.seconds;
            assert!(longer, "{}: {scattered:?}", gpu.name);
        }
    }
}
