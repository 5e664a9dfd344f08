//! Counts what a profiler on a GPU counts, from the same source on a CPU: requests, sectors, turns of shared
//! memory, lanes, branches at which warps part, barriers; for each kernel, line and array.
//!
//! A program is compiled so that it reports every access and every block of code (`assembly`). The events of
//! each thread are recorded in order (`record`). The lanes of a warp are then run together (`replay`) along
//! the graph of the blocks (`graph`).

pub(crate) mod assembly;
mod emulator;
mod graph;
mod map;
mod metrics;
pub(crate) mod names;
pub(crate) mod record;
mod replay;
pub(crate) mod symbols;
mod types;

use std::collections::BTreeMap;

use rayspin_device::cuda::Launch;

pub use symbols::SourceLine;

/// Lanes of a warp.
pub const WARP: u32 = 32;
/// Bytes of a sector, which is the smallest piece that moves between caches.
pub const SECTOR: u64 = 32;

/// What a piece of code does, as `counting.cc` tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic operation.
    Atomic,
    /// A read of a texture.
    Texel,
    /// A barrier of the block.
    Barrier,
    /// An exchange between the lanes of a warp, or a barrier of a warp.
    Exchange,
    /// A comparison of each lane with all others (`__match_any_sync`).
    Match,
}

impl Kind {
    fn is_access(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Atomic | Self::Texel)
    }
}

/// Where an array lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Memory of the device.
    Global,
    /// Memory of a block.
    Shared,
    /// Constant memory.
    Constant,
    /// A texture.
    Texture,
}

/// Instructions of warps, as the host's compiler makes the source. They estimate a GPU's.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Work {
    /// On integers and addresses, comparisons among them.
    pub integer: f64,
    /// Single precision; a product and a sum are one.
    pub single: f64,
    /// Double precision.
    pub double: f64,
    /// Roots, sines and exponentials, which the special function unit computes.
    pub special: f64,
    /// Branches.
    pub branch: f64,
}

impl Work {
    /// What the instructions of a block of code do that is run this often.
    fn of(counts: &[u16; assembly::KINDS], times: f64) -> Self {
        let number = |kind: usize| f64::from(counts[kind]) * times;
        Self {
            integer: number(assembly::INTEGER),
            single: number(assembly::SINGLE),
            double: number(assembly::DOUBLE),
            special: number(assembly::SPECIAL),
            branch: number(assembly::BRANCH),
        }
    }

    fn add(&mut self, more: &Self) {
        self.integer += more.integer;
        self.single += more.single;
        self.double += more.double;
        self.special += more.special;
        self.branch += more.branch;
    }

    /// All of them.
    pub fn total(&self) -> f64 {
        self.integer + self.single + self.double + self.special + self.branch
    }
}

/// Requests of warps to one array, of one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// The name of the parameter, variable or shared array.
    pub array: String,
    /// Where it lies.
    pub space: Space,
    /// What is done.
    pub kind: Kind,
    /// Requests of warps.
    pub requests: f64,
    /// Active lanes of all requests.
    pub lanes: f64,
    /// Bytes that lanes ask for: of a texture one texel a lane, though a weighted one takes several.
    pub bytes: f64,
    /// Sectors of 32 bytes that move, of global memory and textures.
    pub sectors: f64,
    /// Rows of 128 bytes of all requests, of global memory and textures.
    pub rows: f64,
    /// Turns that shared memory takes; of constants, distinct addresses; of atomic operations in memory of
    /// the device, sectors, once more for each lane that has to wait for another at its address.
    pub turns: f64,
    /// The least turns for accesses of this width.
    pub least: f64,
    /// Requests in which all lanes want the same address.
    pub alike: f64,
    /// Distinct addresses of all requests: of shared memory, constants, textures and atomics.
    pub distinct: f64,
    /// Lanes at the most wanted address, of all requests.
    pub most: f64,
}

/// What a line of a kernel does.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Where it is.
    pub place: SourceLine,
    /// Its text.
    pub text: String,
    /// Its accesses, by array and kind.
    pub accesses: Vec<Access>,
    /// How often warps enter a block of code that begins in this line.
    pub visits: f64,
    /// Active lanes of all these visits.
    pub lanes: f64,
    /// How often lanes of a warp go different ways behind such a block.
    pub splits: f64,
    /// Barriers that warps reach.
    pub barriers: f64,
    /// Exchanges and barriers of warps.
    pub exchanges: f64,
    /// Comparisons of each lane with all others.
    pub matches: f64,
    /// Instructions of warps.
    pub work: Work,
    /// Active lanes of each instruction, summed over the instructions of warps.
    pub lane_work: f64,
}

/// An array's memory that a kernel touches.
#[derive(Debug, Clone, PartialEq)]
pub struct Touched {
    /// Its name.
    pub array: String,
    /// Where it lies.
    pub space: Space,
    /// Its bytes, as it was allocated.
    pub bytes: u64,
    /// Distinct sectors of the counted blocks.
    pub sectors: u64,
    /// The sum over blocks of the distinct sectors of each.
    pub by_block: f64,
}

/// What launches of a kernel with one grid do.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// The program.
    pub program: String,
    /// The kernel.
    pub kernel: String,
    /// Its grid.
    pub launch: Launch,
    /// How often it was launched so.
    pub launches: u64,
    /// Bytes of shared memory of a block, declared and dynamic.
    pub shared: u32,
    /// Blocks of a launch that were counted; the numbers are scaled to all.
    pub counted: u64,
    /// Warps of a counted block whose events were kept, the fewest: not all of blocks that do much.
    pub kept: u32,
    /// Whether all that these warps did was kept.
    pub whole: bool,
    /// Whether the program has lines that only the emulator runs.
    pub twin: bool,
    /// Lines that do anything, in order.
    pub lines: Vec<Line>,
    /// Arrays in memory of the device.
    pub touched: Vec<Touched>,
    /// Warps.
    pub warps: f64,
    /// Times that warps wait for global memory, the sum of all warps.
    pub waits: f64,
    /// The same for shared memory.
    pub shared_waits: f64,
    /// The same for global memory, of the warp with most.
    pub longest: f64,
}

impl Counts {
    /// Blocks of a launch.
    pub fn blocks(&self) -> u64 {
        self.launch.blocks.iter().map(|&side| u64::from(side)).product()
    }

    /// Warps of a block.
    pub fn warps_of_block(&self) -> u32 {
        self.launch.threads.iter().product::<u32>().div_ceil(WARP)
    }

    /// The share of all warps of a launch that was counted.
    pub fn share(&self) -> f64 {
        let blocks = self.counted as f64 / self.blocks().max(1) as f64;
        blocks * f64::from(self.kept) / f64::from(self.warps_of_block().max(1))
    }

    /// Instructions of all lines.
    pub fn work(&self) -> Work {
        let mut total = Work::default();
        self.lines.iter().for_each(|line| total.add(&line.work));
        total
    }

    /// The sum of something over accesses.
    pub fn sum(&self, value: impl Fn(&Access) -> f64, wanted: impl Fn(&Access) -> bool) -> f64 {
        self.lines.iter().flat_map(|line| &line.accesses).filter(|access| wanted(access)).map(value).sum()
    }

    /// Instructions of warps, accesses among them.
    pub fn instructions(&self) -> f64 {
        let own = |line: &Line| {
            line.work.total()
                + line.barriers
                + line.exchanges
                + line.matches
                + line.accesses.iter().map(|access| access.requests).sum::<f64>()
        };
        self.lines.iter().map(own).sum()
    }

    /// Exchanges of warps.
    pub fn exchanges(&self) -> f64 {
        self.lines.iter().map(|line| line.exchanges).sum()
    }

    /// Comparisons of each lane of a warp with all others.
    pub fn matches(&self) -> f64 {
        self.lines.iter().map(|line| line.matches).sum()
    }

    /// Active lanes of an instruction, on average.
    pub fn lanes_per_instruction(&self) -> f64 {
        let accesses = self.sum(|access| access.lanes, |_| true);
        let own: f64 = self.lines.iter().map(|line| line.lane_work).sum();
        let requests = self.sum(|access| access.requests, |_| true);
        let instructions = self.work().total();
        if instructions + requests > 0.0 { (own + accesses) / (instructions + requests) } else { 0.0 }
    }

    /// Adds another launch of the same kernel with the same grid.
    pub(crate) fn add(&mut self, other: Self) {
        self.launches += other.launches;
        self.whole &= other.whole;
        self.kept = self.kept.min(other.kept);
        self.counted = self.counted.min(other.counted);
        self.warps += other.warps;
        self.waits += other.waits;
        self.shared_waits += other.shared_waits;
        self.longest = self.longest.max(other.longest);
        for touched in other.touched {
            match self.touched.iter_mut().find(|own| own.array == touched.array && own.space == touched.space)
            {
                Some(own) => {
                    own.sectors = own.sectors.max(touched.sectors);
                    own.by_block += touched.by_block;
                    own.bytes = own.bytes.max(touched.bytes);
                }
                None => self.touched.push(touched),
            }
        }
        let mut lines: BTreeMap<SourceLine, Line> =
            std::mem::take(&mut self.lines).into_iter().map(|line| (line.place.clone(), line)).collect();
        for line in other.lines {
            match lines.get_mut(&line.place) {
                Some(own) => own.add(line),
                None => drop(lines.insert(line.place.clone(), line)),
            }
        }
        self.lines = lines.into_values().collect();
    }
}

impl Line {
    fn new(place: SourceLine, text: String) -> Self {
        Self {
            place,
            text,
            accesses: Vec::new(),
            visits: 0.0,
            lanes: 0.0,
            splits: 0.0,
            barriers: 0.0,
            exchanges: 0.0,
            matches: 0.0,
            work: Work::default(),
            lane_work: 0.0,
        }
    }

    fn add(&mut self, other: Self) {
        for (own, more) in [
            (&mut self.visits, other.visits),
            (&mut self.lanes, other.lanes),
            (&mut self.splits, other.splits),
            (&mut self.barriers, other.barriers),
            (&mut self.exchanges, other.exchanges),
            (&mut self.matches, other.matches),
            (&mut self.lane_work, other.lane_work),
        ] {
            *own += more;
        }
        self.work.add(&other.work);
        other.accesses.into_iter().for_each(|access| self.insert(access));
    }

    fn insert(&mut self, access: Access) {
        let same = |own: &&mut Access| {
            own.array == access.array && own.space == access.space && own.kind == access.kind
        };
        let Some(own) = self.accesses.iter_mut().find(same) else {
            self.accesses.push(access);
            return;
        };
        for (sum, more) in [
            (&mut own.requests, access.requests),
            (&mut own.lanes, access.lanes),
            (&mut own.bytes, access.bytes),
            (&mut own.sectors, access.sectors),
            (&mut own.rows, access.rows),
            (&mut own.turns, access.turns),
            (&mut own.least, access.least),
            (&mut own.alike, access.alike),
            (&mut own.distinct, access.distinct),
            (&mut own.most, access.most),
        ] {
            *sum += more;
        }
    }
}
