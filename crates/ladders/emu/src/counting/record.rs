//! Keeps what each thread of a block tells, and turns it into counts.

#![allow(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, c_char, c_int};

use rayspin_device::cuda::{Launch, Program};

use super::graph::{END, Graph};
use super::map::Map;
use super::replay::{Happened, Item, Known, Replay, Thread, Visit};
use super::symbols::{SourceLine, Symbols, lines};
use super::{Access, Counts, Kind, Line, Space, Touched, assembly, names};

/// Most events that are kept of one block: 16 bytes each.
const OF_BLOCK: u64 = 12 << 20;
/// Events of a launch after which no more blocks are counted than have to be.
const OF_LAUNCH: u64 = 24 << 20;
/// Blocks that are counted of any launch: the first, the last, and others.
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
    at: u64,
    counts: [u16; assembly::KINDS],
}

/// As in `counting.cc`.
#[repr(C)]
pub(crate) struct RawCounting {
    start: unsafe extern "C" fn(*const RawRange, u32, u64, u32),
    stop: unsafe extern "C" fn() -> c_int,
    events: unsafe extern "C" fn(u32, *mut u64) -> *const RawEvent,
    arrays: unsafe extern "C" fn(*mut u32) -> *const RawShared,
    blocks: unsafe extern "C" fn(*mut u64, *mut u64) -> *const RawWork,
}

fn kind(raw: u8) -> Option<Kind> {
    Some(match raw {
        1 => Kind::Read,
        2 => Kind::Write,
        3 => Kind::Atomic,
        4 => Kind::Texel,
        5 => Kind::Barrier,
        6 => Kind::Exchange,
        _ => return None,
    })
}

/// What is known of a library that counts.
pub(crate) struct Counter {
    raw: *const RawCounting,
    symbols: Symbols,
    work: HashMap<u32, [u16; assembly::KINDS]>,
    program: Program,
    lines: HashMap<SourceLine, String>,
}

// SAFETY: the table is constant, and its functions are called by one thread at a time.
unsafe impl Send for Counter {}

impl Counter {
    /// # Safety
    /// `raw` is the table of a library that stays loaded as long as this lives.
    pub(crate) unsafe fn new(raw: *const RawCounting, symbols: Symbols, program: Program) -> Self {
        let (mut count, mut base) = (0u64, 0u64);
        // SAFETY: as the caller promises; the library's table of blocks has as many rows.
        let table = unsafe {
            let first = ((*raw).blocks)(&raw mut count, &raw mut base);
            if first.is_null() { &[] } else { std::slice::from_raw_parts(first, count as usize) }
        };
        let work = table.iter().map(|row| ((row.at - base) as u32, row.counts)).collect();
        let lines = lines(&program.text);
        Self { raw, symbols, work, program, lines }
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
    let mut all: Vec<Array> = pieces
        .iter()
        .map(piece)
        .chain(variables.iter().map(variable))
        .filter(|array| array.bytes > 0)
        .collect();
    all.sort_by_key(|array| array.begin);
    // Numbers from here on are of shared arrays.
    all.truncate(usize::from(SHARED) - 1);
    all
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
    waiting: Vec<(u32, Vec<Thread>)>,
    waiting_events: usize,
    happened: Happened,
    joins: Map<u32, u32>,
    known: Map<u32, bool>,
    events: u64,
    counted: u64,
    /// Warps of the counted blocks that were kept.
    warps: u64,
    /// Whether one warp of a block is kept, because a whole block is too much.
    lone: bool,
    whole: bool,
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
            warps: 0,
            lone: false,
            whole: true,
        }
    }

    /// The blocks that are to be counted after the first, in order.
    pub(crate) fn sample(&self, blocks: u64) -> Vec<u64> {
        let many = (OF_LAUNCH / self.events.max(1)).max(LEAST).min(blocks);
        if many == blocks {
            return (1..blocks).collect();
        }
        // A fixed sequence of numbers: the same blocks every time.
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        let mut chosen = std::collections::BTreeSet::from([blocks - 1]);
        while (chosen.len() as u64) < many - 1 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            chosen.insert(1 + ((u128::from(state >> 1) * u128::from(blocks - 1)) >> 63) as u64);
        }
        chosen.into_iter().filter(|&block| block < blocks).collect()
    }

    /// Runs one of `blocks` blocks and keeps what its threads tell. If that is too much, the block is left
    /// out, and of later ones a warp each is kept.
    pub(crate) fn block<T>(&mut self, blocks: u64, threads: u32, run: impl FnOnce() -> T) -> T {
        let warps = threads.div_ceil(32).max(1);
        let chosen = if self.lone { 1 << ((5 * self.counted + 3) % u64::from(warps)) } else { u32::MAX };
        // SAFETY: the ranges live until the block has run; one thread runs it.
        unsafe {
            (self.counter.table().start)(self.ranges.as_ptr(), self.ranges.len() as u32, OF_BLOCK, chosen);
        }
        let done = run();
        // SAFETY: no requirements.
        let whole = unsafe { (self.counter.table().stop)() } != 0;
        if !whole && !self.lone && self.counted == 0 && blocks > 1 {
            self.lone = true;
            self.events = OF_BLOCK;
            return done;
        }
        self.whole &= whole;
        self.counted += 1;
        let shared = self.shared_arrays();
        let number = self.counted.min(u32::MAX.into()) as u32;
        for first in (0..threads).step_by(32).filter(|first| chosen >> (first / 32) & 1 == 1) {
            let lanes = first..threads.min(first + 32);
            let warp = lanes.map(|thread| self.thread(thread, &shared)).collect();
            self.waiting.push((number, warp));
            self.warps += 1;
        }
        if self.waiting_events > WAITING {
            self.replay();
        }
        done
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
            let at = self.shared.iter().position(|other| *other == name).unwrap_or_else(|| {
                self.shared.push(name);
                self.spaces.push(Space::Shared);
                self.shared.len() - 1
            });
            numbers.push((self.arrays.len() + at) as u16);
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
            && self.counter.lines.get(place).is_some_and(|text| names::has_member(text))
        {
            let number = place.line.wrapping_mul(0x9E37_79B1) ^ place.file.len() as u32;
            self.joins.insert(code, number);
        }
        self.known.insert(code, place.is_some());
        place.is_some()
    }

    fn node(&mut self, context: u32, code: u32) -> u32 {
        let new = self.codes.len() as u32;
        let at = *self.nodes.entry((context, code)).or_insert(new);
        if at == new {
            self.codes.push(code);
        }
        at
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
                at if at >= SHARED => shared.get(usize::from(at - SHARED)).copied().unwrap_or(u16::MAX),
                at => at,
            };
            thread.items.push(Item { code: event.code, kind, size: event.size, array, value: event.value });
        }
        if let Some(last) = last {
            self.graph.edge(last, END);
        }
        thread
    }

    /// Runs the warps that wait.
    fn replay(&mut self) {
        let meetings = self.graph.meetings();
        let known = Known { meetings: &meetings, spaces: &self.spaces, joins: &self.joins };
        for (block, warp) in self.waiting.drain(..) {
            Replay::run(&known, block, &warp, &mut self.happened);
        }
        self.waiting_events = 0;
    }

    /// The counts, scaled to all blocks.
    pub(crate) fn finish(mut self, kernel: &str, launch: Launch, shared: u32) -> Counts {
        self.replay();
        let blocks: u64 = launch.blocks.iter().map(|&side| u64::from(side)).product();
        let warps = u64::from(launch.threads.iter().product::<u32>().div_ceil(32));
        let scale = (blocks * warps) as f64 / self.warps.max(1) as f64;
        let mut all: BTreeMap<SourceLine, Line> = BTreeMap::new();
        let Counter { symbols, lines, work, program, .. } = &mut *self.counter;
        let mut line_of = |code: u32| -> Option<SourceLine> {
            let place = symbols.place(code)?;
            let text = || lines.get(&place).cloned().unwrap_or_default();
            all.entry(place.clone()).or_insert_with(|| Line::new(place.clone(), text()));
            Some(place)
        };
        let nodes: Vec<_> = self
            .happened
            .nodes
            .iter()
            .zip(&self.codes)
            .map(|(node, &code)| (*node, code, line_of(code)))
            .collect();
        let mut requests: Vec<_> = self.happened.requests.iter().map(|(key, value)| (*key, *value)).collect();
        requests.sort_unstable_by_key(|(key, _)| *key);
        let requests: Vec<_> =
            requests.into_iter().map(|(key, value)| (key, value, line_of(key.0))).collect();
        for (node, code, place) in nodes {
            let Some(line) = place.and_then(|place| all.get_mut(&place)) else { continue };
            line.visits += node.visits as f64 * scale;
            line.lanes += node.lanes as f64 * scale;
            line.splits += node.splits as f64 * scale;
            if let Some(counts) = work.get(&code) {
                line.work.add(counts, node.visits as f64 * scale);
                line.lane_work +=
                    counts.iter().map(|&n| f64::from(n)).sum::<f64>() * node.lanes as f64 * scale;
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
            let Some(line) = place.and_then(|place| all.get_mut(&place)) else { continue };
            match kind {
                Kind::Barrier => line.barriers += counted.requests as f64 * scale,
                Kind::Exchange => line.exchanges += counted.requests as f64 * scale,
                Kind::Read | Kind::Write | Kind::Atomic | Kind::Texel => {
                    let (array, space) = name(array);
                    let scaled = |n: u64| n as f64 * scale;
                    line.insert(Access {
                        array,
                        space,
                        kind,
                        requests: scaled(counted.requests),
                        lanes: scaled(counted.lanes),
                        bytes: scaled(counted.bytes),
                        sectors: scaled(counted.sectors),
                        rows: scaled(counted.rows),
                        turns: scaled(counted.turns),
                        least: scaled(counted.least),
                        alike: scaled(counted.alike),
                        distinct: scaled(counted.distinct),
                        most: scaled(counted.most),
                    });
                }
            }
        }
        let mut touched: Vec<Touched> = Vec::new();
        for (&array, set) in &self.happened.touched {
            let (own, space) = name(array);
            let bytes = self.arrays.get(usize::from(array)).map_or(0, |array| array.bytes);
            let by_block = set.by_block as f64 * scale;
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
            lone: self.lone,
            whole: self.whole,
            twin: program.text.contains("RAYSPIN_EMULATED"),
            lines: all.into_values().collect(),
            touched,
            warps: self.happened.warps as f64 * scale,
            waits: self.happened.waits as f64 * scale,
            shared_waits: self.happened.shared_waits as f64 * scale,
            longest: self.happened.longest as f64,
        }
    }
}
