//! How many blocks a multiprocessor holds, by the rules of the CUDA occupancy calculator.

use std::fmt;

use serde::Serialize;

/// 32-bit registers of a multiprocessor, and of a block at most, on every processor listed.
const REGISTERS: u64 = 65_536;
/// Registers are given to warps in such units.
const REGISTER_UNIT: u64 = 256;
/// A multiprocessor has four parts with a quarter of the registers each. A warp lies in one part.
const PARTS: u64 = 4;
const WARP: u32 = 32;
/// Threads of a block at most.
const THREADS: u32 = 1024;
/// From 8.0 on the system keeps 1 KiB of shared memory for each block.
const RESERVED: u32 = 1 << 10;

/// What a multiprocessor of one compute capability holds at once.
///
/// CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications per Compute
/// Capability"; units of allocation as in `cuda_occupancy.h` of the CUDA toolkit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) capability: (u32, u32),
    /// Threads.
    pub(super) threads: u32,
    /// Blocks.
    pub(super) blocks: u32,
    /// Bytes of shared memory.
    pub(super) shared: u32,
    /// Bytes of shared memory that one block may ask for.
    pub(super) shared_per_block: u32,
    /// Bytes of shared memory that the system keeps for each block.
    pub(super) reserved: u32,
    /// Blocks get shared memory in units of these bytes.
    pub(super) shared_unit: u32,
    /// A card of this capability.
    pub(super) card: Card,
}

/// A card, and its multiprocessors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Card {
    pub(super) name: &'static str,
    pub(super) multiprocessors: u32,
}

/// Limits of the processors that the report knows.
pub(super) const ALL: [Limits; 7] = [
    Limits {
        reserved: 0,
        shared_unit: 256,
        ..row((7, 5), [1024, 16], [64, 64], Card { name: "T4", multiprocessors: 40 })
    },
    row((8, 0), [2048, 32], [164, 163], Card { name: "A100", multiprocessors: 108 }),
    row((8, 6), [1536, 16], [100, 99], Card { name: "RTX 3090", multiprocessors: 82 }),
    row((8, 9), [1536, 24], [100, 99], Card { name: "RTX 4090", multiprocessors: 128 }),
    row((9, 0), [2048, 32], [228, 227], Card { name: "H100 SXM", multiprocessors: 132 }),
    row((10, 0), [2048, 32], [228, 227], Card { name: "B200", multiprocessors: 148 }),
    row((12, 0), [1536, 24], [100, 99], Card { name: "RTX 5090", multiprocessors: 170 }),
];

/// Shared memory in KiB: of a multiprocessor, and of one block at most.
const fn row(
    capability: (u32, u32),
    [threads, blocks]: [u32; 2],
    [shared, shared_per_block]: [u32; 2],
    card: Card,
) -> Limits {
    Limits {
        capability,
        threads,
        blocks,
        shared: shared << 10,
        shared_per_block: shared_per_block << 10,
        reserved: RESERVED,
        shared_unit: 128,
        card,
    }
}

impl Limits {
    /// Those of a compute capability, where it is in the table.
    pub(super) fn of(capability: (u32, u32)) -> Option<&'static Self> {
        ALL.iter().find(|limits| limits.capability == capability)
    }

    /// `sm_90`
    pub(super) fn name(&self) -> String {
        format!("sm_{}{}", self.capability.0, self.capability.1)
    }
}

/// What a block takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) threads: u32,
    /// Registers a thread.
    pub(super) registers: u32,
    /// Bytes of shared memory, declared and dynamic.
    pub(super) shared: u32,
}

/// What limits the blocks of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Limit {
    Threads,
    Registers,
    SharedMemory,
    Blocks,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Threads => "threads",
            Self::Registers => "registers",
            Self::SharedMemory => "shared memory",
            Self::Blocks => "blocks",
        })
    }
}

/// Blocks that a multiprocessor holds at once, 0 where the launch is refused; and everything that allows no
/// more.
pub(super) fn held(limits: &Limits, block: Block) -> (u32, Vec<Limit>) {
    let warps = block.threads.div_ceil(WARP).max(1);
    let by_threads = match block.threads {
        1..=THREADS => u64::from(limits.threads / WARP / warps),
        _ => 0,
    };
    let blocks_by_limit = [
        (Limit::Threads, by_threads),
        (Limit::Registers, by_registers(block.registers, warps)),
        (Limit::SharedMemory, by_shared(limits, block.shared)),
        (Limit::Blocks, u64::from(limits.blocks)),
    ];
    let least = blocks_by_limit.iter().map(|(_, blocks)| *blocks).min().unwrap_or(0);
    let by = blocks_by_limit.iter().filter(|(_, blocks)| *blocks == least).map(|(limit, _)| *limit).collect();
    (u32::try_from(least).unwrap_or(u32::MAX), by)
}

fn by_registers(registers: u32, warps: u32) -> u64 {
    let warps = u64::from(warps);
    let of_warp = (u64::from(registers) * u64::from(WARP)).next_multiple_of(REGISTER_UNIT);
    if of_warp == 0 {
        return u64::MAX;
    }
    // A launch is judged as if its warps took the same of each part.
    if of_warp * warps.next_multiple_of(PARTS) > REGISTERS {
        return 0;
    }
    REGISTERS / PARTS / of_warp * PARTS / warps
}

fn by_shared(limits: &Limits, shared: u32) -> u64 {
    if shared > limits.shared_per_block {
        return 0;
    }
    let bytes = (u64::from(shared) + u64::from(limits.reserved)).next_multiple_of(limits.shared_unit.into());
    u64::from(limits.shared).checked_div(bytes).unwrap_or(u64::MAX)
}

/// How a grid fills a processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Waves {
    /// Blocks over those that all multiprocessors hold at once.
    pub(super) count: f64,
    /// The share of the last wave that is filled.
    pub(super) last: f64,
    /// The share of all places for blocks that stays empty, if all blocks take equally long.
    pub(super) empty: f64,
}

impl Waves {
    /// `None` where nothing is launched or held.
    pub(super) fn of(blocks: u64, held: u32, multiprocessors: u32) -> Option<Self> {
        let places = u64::from(held) * u64::from(multiprocessors);
        if places == 0 || blocks == 0 {
            return None;
        }
        let in_last = (blocks - 1) % places + 1;
        let slots = blocks.div_ceil(places) as f64 * places as f64;
        Some(Self {
            count: blocks as f64 / places as f64,
            last: in_last as f64 / places as f64,
            empty: 1.0 - blocks as f64 / slots,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(capability: (u32, u32), threads: u32, registers: u32, shared: u32) -> (u32, Vec<Limit>) {
        held(Limits::of(capability).unwrap(), Block { threads, registers, shared })
    }

    #[test]
    fn blocks_are_those_of_the_occupancy_calculator() {
        use Limit::{Blocks, Registers, SharedMemory, Threads};
        for (capability, threads, registers, shared, blocks, by) in [
            ((9, 0), 256, 32, 0, 8, &[Threads, Registers][..]),
            ((9, 0), 256, 16, 0, 8, &[Threads]),
            ((9, 0), 256, 64, 0, 4, &[Registers]),
            // 33 registers are 1056 a warp, given as 1280: 12 warps a part.
            ((9, 0), 256, 33, 0, 6, &[Registers]),
            // 168 registers are 5376 a warp: 3 warps a part, 12 in all.
            ((9, 0), 128, 168, 0, 3, &[Registers]),
            ((9, 0), 160, 168, 0, 2, &[Registers]),
            ((9, 0), 1024, 64, 0, 1, &[Registers]),
            ((9, 0), 1024, 65, 0, 0, &[Registers]),
            ((9, 0), 32, 32, 0, 32, &[Blocks]),
            ((9, 0), 33, 16, 0, 32, &[Threads, Blocks]),
            ((9, 0), 256, 32, 100 << 10, 2, &[SharedMemory]),
            // The reserved KiB makes the difference between 2 and 3.
            ((9, 0), 256, 32, 75 << 10, 3, &[SharedMemory]),
            ((9, 0), 256, 32, 76 << 10, 2, &[SharedMemory]),
            ((9, 0), 256, 32, 227 << 10, 1, &[SharedMemory]),
            ((9, 0), 256, 32, (227 << 10) + 1, 0, &[SharedMemory]),
            ((9, 0), 1025, 32, 0, 0, &[Threads]),
            ((9, 0), 0, 32, 0, 0, &[Threads]),
            ((8, 6), 64, 16, 0, 16, &[Blocks]),
            ((8, 6), 256, 40, 0, 6, &[Threads, Registers]),
            ((8, 6), 1024, 32, 0, 1, &[Threads]),
            ((8, 6), 128, 32, 48 << 10, 2, &[SharedMemory]),
            ((8, 9), 64, 16, 0, 24, &[Threads, Blocks]),
            ((8, 0), 128, 32, 40 << 10, 4, &[SharedMemory]),
            // No memory is reserved, and units are larger.
            ((7, 5), 256, 32, 16 << 10, 4, &[Threads, SharedMemory]),
            ((7, 5), 32, 32, 4097, 15, &[SharedMemory]),
            ((7, 5), 128, 32, 0, 8, &[Threads]),
        ] {
            let computed = on(capability, threads, registers, shared);
            assert_eq!(computed, (blocks, by.to_vec()), "{capability:?} {threads} {registers} {shared}");
        }
    }

    #[test]
    fn occupancy_is_a_share_of_the_most_threads() {
        for (capability, threads, registers, percent) in
            [((9, 0), 256, 32, 100.0), ((9, 0), 256, 64, 50.0), ((8, 6), 64, 16, 200.0 / 3.0)]
        {
            let limits = Limits::of(capability).unwrap();
            let (blocks, _) = on(capability, threads, registers, 0);
            let occupancy = 100.0 * f64::from(blocks * threads) / f64::from(limits.threads);
            assert!((occupancy - percent).abs() < 1e-9, "{capability:?} {threads} {registers}: {occupancy}");
        }
    }

    #[test]
    fn rows_are_in_order_and_named() {
        assert!(ALL.is_sorted_by_key(|limits| limits.capability));
        assert_eq!(ALL.map(|limits| limits.name())[3..6], ["sm_89", "sm_90", "sm_100"]);
        assert!(Limits::of((9, 1)).is_none());
    }

    #[test]
    fn waves_count_the_places_of_all_multiprocessors() {
        let waves = |blocks, held, multiprocessors| {
            Waves::of(blocks, held, multiprocessors).map(|w| (w.count, w.last, w.empty))
        };
        assert_eq!(waves(0, 8, 132), None);
        assert_eq!(waves(9, 0, 132), None);
        assert_eq!(waves(20, 1, 10), Some((2.0, 1.0, 0.0)));
        assert_eq!(waves(25, 2, 5), Some((2.5, 0.5, 1.0 - 25.0 / 30.0)));
        assert_eq!(waves(5, 2, 5), Some((0.5, 0.5, 0.5)));
    }
}
