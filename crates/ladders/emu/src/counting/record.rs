//! Keeps what each thread of a block tells, and turns it into counts.

#![allow(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, c_char, c_int};

use rayspin_device::cuda::{Launch, Program};

use super::graph::{END, Graph};
use super::map::Map;
use super::replay::{Happened, Item, Known, Replay, Thread, Visit, Warp, together};
use super::symbols::{SourceLine, Symbols, lines};
use super::types::SIZES;
use super::{Access, Counts, Kind, Line, Space, Touched, WARP, Work, assembly, names};

/// Most events that are kept of one block: 16 bytes each.
const OF_BLOCK: u64 = 12 << 20;
/// Events of a launch after which no more blocks are counted than have to be.
const OF_LAUNCH: u64 = 24 << 20;
/// Blocks that are counted of any launch: the first, the last, and others. Those that do little are more.
const LEAST: u64 = 8;
/// Events that wait for the graph to be complete.
const WAITING: usize = 3 << 20;
/// Numbers of a block's shared arrays begin here.
const SHARED: u16 = 0x8000;

const BLOCK: u8 = 0;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawEvent {
    code: u32,
    kind: u8,
    size: u8,
    range: u16,
    value: u64,
}

#[repr(C)]
struct RawRange {
    begin: u64,
    end: u64,
}

#[repr(C)]
pub(crate) struct RawShared {
    begin: u64,
    bytes: u64,
    name: *const c_char,
}

#[repr(C)]
pub(crate) struct RawWork {
    begin: u64,
    branch: u64,
    counts: [u16; assembly::KINDS],
}

/// As in `counting.cc`.
#[repr(C)]
pub(crate) struct RawCounting {
    start: unsafe extern "C" fn(*const RawRange, u32, u64, u32, *const u8),
    stop: unsafe extern "C" fn(*mut c_int) -> u32,
    events: unsafe extern "C" fn(u32, *mut u64) -> *const RawEvent,
    arrays: unsafe extern "C" fn(*mut u32) -> *const RawShared,
    blocks: unsafe extern "C" fn(*mut u64, *mut u64) -> *const RawWork,
}

/// Added to the size of a volatile access.
const FIRM: u8 = 0x80;

fn kind(raw: u8) -> Option<Kind> {
    Some(match raw {
        1 => Kind::Read,
        2 => Kind::Write,
        3 => Kind::Atomic,
        4 => Kind::Texel,
        5 => Kind::Barrier,
        6 => Kind::Exchange,
        7 => Kind::Match,
        _ => return None,
    })
}

/// What a block of code does.
struct Block {
    counts: [u16; assembly::KINDS],
    /// Where its last branch is, if it has one.
    branch: Option<u32>,
}

/// What is known of a library that counts.
pub(crate) struct Counter {
    raw: *const RawCounting,
    symbols: Symbols,
    blocks: HashMap<u32, Block>,
    alignments: [u8; SIZES],
    program: Program,
    /// Whether the program has lines that only the emulator runs.
    twin: bool,
    lines: HashMap<SourceLine, String>,
}

// SAFETY: the table is constant, and its functions are called by one thread at a time.
unsafe impl Send for Counter {}

impl Counter {
    /// # Safety
    /// `raw` is the table of a library that stays loaded as long as this lives.
    pub(crate) unsafe fn new(
        raw: *const RawCounting,
        symbols: Symbols,
        program: Program,
        twin: bool,
    ) -> Self {
        let (mut count, mut base) = (0u64, 0u64);
        // SAFETY: as the caller promises; the library's table of blocks has as many rows.
        let table = unsafe {
            let first = ((*raw).blocks)(&raw mut count, &raw mut base);
            if first.is_null() { &[] } else { std::slice::from_raw_parts(first, count as usize) }
        };
        let inside = |address: u64| (address - base) as u32;
        let block = |row: &RawWork| {
            let branch = (row.branch != 0).then(|| inside(row.branch));
            (inside(row.begin), Block { counts: row.counts, branch })
        };
        let blocks = table.iter().map(block).collect();
        let alignments = symbols.types().alignments();
        let lines = lines(&program.text);
        Self { raw, symbols, blocks, alignments, program, twin, lines }
    }

    fn table(&self) -> &RawCounting {
        // SAFETY: as `new` was promised.
        unsafe { &*self.raw }
    }
}

/// Memory of the device that counts.
#[derive(Debug, Clone)]
pub(crate) struct Array {
    pub(crate) begin: u64,
    pub(crate) bytes: u64,
    pub(crate) name: String,
    pub(crate) space: Space,
}

/// The arrays of a launch by name: those that parameters point to, variables, and the rest.
pub(crate) fn arrays(
    program: &Program,
    kernel: &str,
    pieces: &[(u64, u64)],
    variables: &[(String, u64, u64)],
    textures: &[u64],
    arguments: &[Vec<u128>],
) -> Vec<Array> {
    let parameters = names::parameters(&program.text, kernel);
    let constants = names::constants(&program.text);
    let mut owners: BTreeMap<u64, String> = BTreeMap::new();
    for (at, argument) in arguments.iter().enumerate() {
        let name = parameters.get(at).cloned().unwrap_or_else(|| format!("argument {}", at + 1));
        for half in argument.iter().flat_map(|word| [*word as u64, (*word >> 64) as u64]) {
            let inside = |&&(begin, bytes): &&(u64, u64)| half >= begin && half < begin + bytes.max(1);
            if let Some(&(begin, _)) = pieces.iter().find(inside) {
                let owner = owners.entry(begin).or_default();
                if !owner.split(", ").any(|other| other == name) {
                    *owner = if owner.is_empty() { name.clone() } else { format!("{owner}, {name}") };
                }
            }
        }
    }
    let piece = |&(begin, bytes): &(u64, u64)| {
        let space = if textures.contains(&begin) { Space::Texture } else { Space::Global };
        let other = || match space {
            Space::Texture => "a texture".to_owned(),
            _ => format!("an array of {bytes} bytes"),
        };
        Array { begin, bytes, name: owners.get(&begin).cloned().unwrap_or_else(other), space }
    };
    let variable = |(name, begin, bytes): &(String, u64, u64)| Array {
        begin: *begin,
        bytes: *bytes,
        name: name.clone(),
        space: if constants.contains(name) { Space::Constant } else { Space::Global },
    };
    let mut listed: Vec<Array> = pieces
        .iter()
        .map(piece)
        .chain(variables.iter().map(variable))
        .filter(|array| array.bytes > 0)
        .collect();
    listed.sort_by_key(|array| array.begin);
    // Numbers from here on are of shared arrays.
    listed.truncate(usize::from(SHARED) - 1);
    listed
}

/// Counts one launch.
pub(crate) struct Recording<'a> {
    counter: &'a mut Counter,
    arrays: Vec<Array>,
    ranges: Vec<RawRange>,
    spaces: Vec<Space>,
    /// Numbers of shared arrays by their names.
    shared: Vec<String>,
    nodes: Map<(u32, u32), u32>,
    codes: Vec<u32>,
    graph: Graph,
    waiting: Vec<Warp>,
    waiting_events: usize,
    happened: Happened,
    joins: Map<u32, (u32, u64)>,
    known: Map<u32, bool>,
    events: u64,
    counted: u64,
    /// Blocks that do much and are still to be counted.
    least: u64,
    /// Warps of a block whose events are kept, where all are too much.
    kept: u32,
    whole: bool,
    /// Chooses blocks: the same every time.
    state: u64,
}

/// A block to count, and the number of blocks from it on and before it that it stands for.
pub(crate) struct Sample {
    pub(crate) block: u64,
    pub(crate) stands_for: u64,
}

impl<'a> Recording<'a> {
    pub(crate) fn new(counter: &'a mut Counter, arrays: Vec<Array>) -> Self {
        let ranges = arrays.iter().map(|a| RawRange { begin: a.begin, end: a.begin + a.bytes }).collect();
        let spaces = arrays.iter().map(|array| array.space).collect();
        Self {
            counter,
            arrays,
            ranges,
            spaces,
            shared: Vec::new(),
            nodes: Map::default(),
            codes: Vec::new(),
            graph: Graph::default(),
            waiting: Vec::new(),
            waiting_events: 0,
            happened: Happened::default(),
            joins: Map::default(),
            known: Map::default(),
            events: 0,
            counted: 0,
            least: LEAST - 2,
            kept: u32::MAX,
            whole: true,
            state: 0x9E37_79B9_7F4A_7C15,
        }
    }

    /// The block to count of those from `next` on: the first and the last of all blocks stand for themselves;
    /// of the others each stands for its neighbours, for more of them the more the blocks so far did.
    pub(crate) fn sample(&mut self, next: u64, blocks: u64) -> Option<Sample> {
        if next >= blocks {
            return None;
        }
        let left = blocks - 1 - next;
        if next == 0 || left == 0 {
            return Some(Sample { block: next, stands_for: 1 });
        }
        let each = (self.events / self.counted.max(1)).max(1);
        let many = (OF_LAUNCH.saturating_sub(self.events) / each).max(self.least).max(1);
        let stands_for = left.div_ceil(many.min(left));
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let chosen = ((u128::from(self.state >> 1) * u128::from(stands_for)) >> 63) as u64;
        Some(Sample { block: next + chosen, stands_for })
    }

    /// Runs a block that `stands_for` so many blocks and keeps what its threads tell; if that is too much, of
    /// fewer warps.
    pub(crate) fn block<T>(&mut self, stands_for: u64, threads: u32, run: impl FnOnce() -> T) -> T {
        let warps = threads.div_ceil(WARP).clamp(1, WARP);
        let chosen = self.warps(warps);
        let (raw, count) = (self.ranges.as_ptr(), self.ranges.len() as u32);
        // SAFETY: the ranges live until the block has run; one thread runs it; the table has as many sizes as
        // the library.
        unsafe {
            (self.counter.table().start)(raw, count, OF_BLOCK, chosen, self.counter.alignments.as_ptr());
        }
        let done = run();
        let mut whole = 0;
        // SAFETY: no requirements.
        let kept = unsafe { (self.counter.table().stop)(&raw mut whole) };
        self.kept = self.kept.min(kept.count_ones());
        self.whole &= whole != 0;
        self.counted += 1;
        let before = self.events;
        let shared = self.shared_arrays();
        let block = self.counted.min(u32::MAX.into()) as u32;
        let weight = stands_for as f64 * f64::from(warps) / f64::from(kept.count_ones().max(1));
        for first in (0..threads).step_by(32).filter(|first| kept >> (first / 32) & 1 == 1) {
            let lanes = first..threads.min(first + 32);
            let threads = lanes.map(|thread| self.thread(thread, &shared)).collect();
            self.waiting.push(Warp { block, weight, threads });
        }
        if self.counted > 1 && (self.events - before > OF_LAUNCH / (4 * LEAST) || self.events > OF_LAUNCH) {
            self.least = self.least.saturating_sub(1);
        }
        if self.waiting_events > WAITING {
            self.replay();
        }
        done
    }

    /// The warps of the next block that are kept: others in each block.
    fn warps(&self, warps: u32) -> u32 {
        let kept = self.kept.min(warps);
        let first = ((5 * self.counted + 3) % u64::from(warps)) as u32;
        (0..kept).fold(0, |mask, k| mask | 1 << ((first + k * warps / kept) % warps))
    }

    /// The numbers of the present block's shared arrays.
    fn shared_arrays(&mut self) -> Vec<u16> {
        let mut count = 0;
        // SAFETY: the list has as many rows, and lives until the next start.
        let list = unsafe {
            let first = (self.counter.table().arrays)(&raw mut count);
            std::slice::from_raw_parts(first, count as usize)
        };
        let mut numbers = Vec::new();
        for row in list {
            // SAFETY: a literal of the library.
            let name = unsafe { CStr::from_ptr(row.name) }.to_string_lossy().into_owned();
            let position = self.shared.iter().position(|other| *other == name).unwrap_or_else(|| {
                self.shared.push(name);
                self.spaces.push(Space::Shared);
                self.shared.len() - 1
            });
            numbers.push((self.arrays.len() + position) as u16);
        }
        numbers
    }

    /// Whether code is a line of the program; notes the lines whose neighbouring accesses may be one.
    fn own(&mut self, code: u32) -> bool {
        if let Some(&known) = self.known.get(&code) {
            return known;
        }
        let place = self.counter.symbols.place(code);
        if let Some(place) = &place
            && let Some(text) = self.counter.lines.get(place)
        {
            let types = self.counter.symbols.types();
            let several = names::members(text).into_iter().filter(|members| members.len() > 1);
            let several: Vec<_> = several.collect();
            let fits = |&width: &u64| several.iter().all(|members| types.joined(members, width));
            let widths: u64 = [8, 16].into_iter().filter(fits).filter(|_| !several.is_empty()).sum();
            let number = place.line.wrapping_mul(0x9E37_79B1) ^ place.file.len() as u32;
            self.joins.insert(code, (number, widths));
        }
        self.known.insert(code, place.is_some());
        place.is_some()
    }

    fn node(&mut self, context: u32, code: u32) -> u32 {
        let new = self.codes.len() as u32;
        let index = *self.nodes.entry((context, code)).or_insert(new);
        if index == new {
            self.codes.push(code);
        }
        index
    }

    fn thread(&mut self, number: u32, shared: &[u16]) -> Thread {
        let mut count = 0;
        // SAFETY: the thread's list has as many events, and lives until the next start.
        let events = unsafe {
            let first = (self.counter.table().events)(number, &raw mut count);
            if count == 0 { &[] } else { std::slice::from_raw_parts(first, count as usize) }
        };
        self.events += count;
        self.waiting_events += events.len();
        let mut thread = Thread::default();
        let mut last = None;
        for event in events {
            if !self.own(event.code) {
                continue;
            }
            if event.kind == BLOCK {
                let node = self.node(event.value as u32, event.code);
                if let Some(last) = last {
                    self.graph.edge(last, node);
                }
                last = Some(node);
                thread.visits.push(Visit { node, first: thread.items.len() as u32 });
                continue;
            }
            let Some((kind, node)) = kind(event.kind).zip(last) else { continue };
            self.graph.busy(node);
            let array = match event.range {
                number if number >= SHARED => {
                    shared.get(usize::from(number - SHARED)).copied().unwrap_or(u16::MAX)
                }
                number => number,
            };
            let (size, firm) = (event.size & !FIRM, event.size & FIRM != 0);
            thread.items.push(Item { code: event.code, kind, size, firm, array, value: event.value });
        }
        if let Some(last) = last {
            self.graph.edge(last, END);
        }
        thread
    }

    /// Runs the warps that wait.
    fn replay(&mut self) {
        let meetings = self.graph.meetings();
        let instructions = |code| {
            let block = self.counter.blocks.get(code);
            block.map_or(0, |block| block.counts.iter().map(|&count| u32::from(count)).sum())
        };
        let together: Vec<f64> = self.codes.iter().map(|code| together(instructions(code))).collect();
        let known =
            Known { meetings: &meetings, together: &together, spaces: &self.spaces, joins: &self.joins };
        for warp in self.waiting.drain(..) {
            Replay::run(&known, &warp, &mut self.happened);
        }
        self.waiting_events = 0;
    }

    /// The counts of all blocks.
    pub(crate) fn finish(mut self, kernel: &str, launch: Launch, shared: u32) -> Counts {
        self.replay();
        let mut counted_lines: BTreeMap<SourceLine, Line> = BTreeMap::new();
        let Counter { symbols, lines, blocks, program, twin, .. } = &mut *self.counter;
        let mut line_of = |code: u32| -> Option<SourceLine> {
            let place = symbols.place(code)?;
            let text = || lines.get(&place).cloned().unwrap_or_default();
            counted_lines.entry(place.clone()).or_insert_with(|| Line::new(place.clone(), text()));
            Some(place)
        };
        let nodes: Vec<_> = self
            .happened
            .nodes
            .iter()
            .zip(&self.codes)
            .map(|(node, &code)| {
                // Lanes part at the branch, which may lie behind the line that the block begins with.
                let branch = blocks.get(&code).and_then(|block| block.branch).filter(|_| node.splits > 0.0);
                (*node, code, line_of(code), branch.and_then(&mut line_of))
            })
            .collect();
        let mut requests: Vec<_> = self.happened.requests.iter().map(|(key, value)| (*key, *value)).collect();
        requests.sort_unstable_by_key(|(key, _)| *key);
        let requests: Vec<_> =
            requests.into_iter().map(|(key, value)| (key, value, line_of(key.0))).collect();
        for (node, code, place, branch) in nodes {
            if let Some(line) =
                branch.or_else(|| place.clone()).and_then(|branch| counted_lines.get_mut(&branch))
            {
                line.splits += node.splits;
            }
            let Some(line) = place.and_then(|place| counted_lines.get_mut(&place)) else { continue };
            line.visits += node.visits;
            line.lanes += node.lanes;
            if let Some(Block { counts, .. }) = blocks.get(&code) {
                line.work.add(&Work::of(counts, node.visits));
                line.lane_work += Work::of(counts, node.lanes).total();
            }
        }
        let name = |array: u16| match self.arrays.get(usize::from(array)) {
            Some(array) => (array.name.clone(), array.space),
            None => {
                let shared = self.shared.get(usize::from(array).wrapping_sub(self.arrays.len()));
                (shared.cloned().unwrap_or_default(), Space::Shared)
            }
        };
        for ((_, array, kind), counted, place) in requests {
            let Some(line) = place.and_then(|place| counted_lines.get_mut(&place)) else { continue };
            match kind {
                Kind::Barrier => line.barriers += counted.requests,
                Kind::Exchange => line.exchanges += counted.requests,
                Kind::Match => line.matches += counted.requests,
                Kind::Read | Kind::Write | Kind::Atomic | Kind::Texel => {
                    let (array, space) = name(array);
                    line.insert(Access {
                        array,
                        space,
                        kind,
                        requests: counted.requests,
                        lanes: counted.lanes,
                        bytes: counted.bytes,
                        sectors: counted.sectors,
                        rows: counted.rows,
                        turns: counted.turns,
                        least: counted.least,
                        alike: counted.alike,
                        distinct: counted.distinct,
                        most: counted.most,
                    });
                }
            }
        }
        let mut touched: Vec<Touched> = Vec::new();
        for (&array, set) in &self.happened.touched {
            let (own, space) = name(array);
            let bytes = self.arrays.get(usize::from(array)).map_or(0, |array| array.bytes);
            let by_block = set.by_block;
            touched.push(Touched { array: own, space, bytes, sectors: set.count(), by_block });
        }
        touched.sort_by(|a, b| a.array.cmp(&b.array));
        Counts {
            program: program.name.to_owned(),
            kernel: kernel.to_owned(),
            launch,
            launches: 1,
            shared,
            counted: self.counted,
            kept: self.kept.min(launch.threads.iter().product::<u32>().div_ceil(WARP)),
            whole: self.whole,
            twin: *twin,
            lines: counted_lines.into_values().collect(),
            touched,
            warps: self.happened.warps,
            waits: self.happened.waits,
            shared_waits: self.happened.shared_waits,
            longest: self.happened.longest,
        }
    }
}
