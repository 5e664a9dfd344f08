//! Runs the lanes of a warp together, as a multiprocessor does, from what each thread did by itself.
//!
//! Lanes that take different ways at a branch go one way after the other, and meet again at the branch's
//! immediate post-dominator. An access that several lanes make together is one request.

use super::graph::END;
use super::map::Map;
use super::metrics::{ROW, atomic_sectors, least_turns, sectors, turns, words};
use super::{Kind, Space};

/// Something that a thread did in a block of code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    /// The code's address.
    pub(crate) code: u32,
    pub(crate) kind: Kind,
    pub(crate) size: u8,
    /// Whether the access is volatile: loads that follow are not moved across it.
    pub(crate) firm: bool,
    /// The array's number, of accesses.
    pub(crate) array: u16,
    pub(crate) value: u64,
}

/// A thread's stay in a block of code, and the number of the first thing it did there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit {
    pub(crate) node: u32,
    pub(crate) first: u32,
}

/// What one thread did.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    pub(crate) visits: Vec<Visit>,
    pub(crate) items: Vec<Item>,
}

impl Thread {
    fn items_of(&self, visit: usize) -> &[Item] {
        let from = self.visits[visit].first as usize;
        let until = self.visits.get(visit + 1).map_or(self.items.len(), |next| next.first as usize);
        &self.items[from..until]
    }
}

/// How often warps were in a block of code.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Node {
    pub(crate) visits: f64,
    pub(crate) lanes: f64,
    /// How often lanes of a warp went different ways from here.
    pub(crate) splits: f64,
}

/// Requests of one kind, of one piece of code, to one array.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Requests {
    pub(crate) requests: f64,
    pub(crate) lanes: f64,
    pub(crate) bytes: f64,
    pub(crate) sectors: f64,
    pub(crate) rows: f64,
    pub(crate) turns: f64,
    pub(crate) least: f64,
    /// Requests in which all lanes want the same.
    pub(crate) alike: f64,
    pub(crate) distinct: f64,
    /// Lanes at the most wanted address.
    pub(crate) most: f64,
}

/// What happened in the warps of a kernel, each with the number of warps that it stands for.
#[derive(Debug, Default)]
pub(crate) struct Happened {
    pub(crate) nodes: Vec<Node>,
    pub(crate) requests: Map<(u32, u16, Kind), Requests>,
    /// The distinct sectors of each array.
    pub(crate) touched: Map<u16, Touched>,
    pub(crate) warps: f64,
    /// Times that warps wait for global memory ([`Waits`]).
    pub(crate) waits: f64,
    /// Blocks of code that use shared memory.
    pub(crate) shared_waits: f64,
    /// The same of the warp with most, not weighted.
    pub(crate) longest: f64,
}

/// The sectors of an array that are touched.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    first: u64,
    /// For each sector the last block that touched it, 0 if none did.
    last: Vec<u32>,
    /// The sum over blocks of the distinct sectors of each.
    pub(crate) by_block: f64,
}

impl Touched {
    fn insert(&mut self, sector: u64, block: u32, weight: f64) {
        if self.last.is_empty() {
            self.first = sector;
        }
        if sector < self.first {
            let more = (self.first - sector) as usize;
            self.last.splice(0..0, std::iter::repeat_n(0, more));
            self.first = sector;
        }
        let index = (sector - self.first) as usize;
        if index >= self.last.len() {
            self.last.resize(index + 1, 0);
        }
        self.by_block += if self.last[index] == block { 0.0 } else { weight };
        self.last[index] = block;
    }

    pub(crate) fn count(&self) -> u64 {
        self.last.iter().filter(|&&block| block != 0).count() as u64
    }
}

/// What is known of code and arrays.
pub(crate) struct Known<'a> {
    /// Where lanes that part in a block meet again.
    pub(crate) meetings: &'a [u32],
    /// For each block of code how many turns of it wait together ([`together`]).
    pub(crate) together: &'a [f64],
    /// For each array its memory.
    pub(crate) spaces: &'a [Space],
    /// The line of code whose neighbouring accesses may be one, and how wide this may be: 8, 16, both, none.
    pub(crate) joins: &'a Map<u32, (u32, u64)>,
}

/// A warp, its block's number, which is at least 1, and the number of warps that it stands for.
pub(crate) struct Warp {
    pub(crate) block: u32,
    pub(crate) weight: f64,
    pub(crate) threads: Vec<Thread>,
}

/// A request before it is counted.
struct Request {
    item: Item,
    lanes: Vec<(u64, u8)>,
    /// The array of each lane, where they differ: a pointer that depends on the lane.
    arrays: Vec<u16>,
}

impl Request {
    fn new(item: Item) -> Self {
        Self { item, lanes: Vec::new(), arrays: Vec::new() }
    }

    fn push(&mut self, item: Item, lane: usize) {
        if item.array != self.item.array && self.arrays.is_empty() {
            self.arrays = vec![self.item.array; self.lanes.len()];
        }
        if item.array != self.item.array || !self.arrays.is_empty() {
            self.arrays.push(item.array);
        }
        self.lanes.push((item.value, lane as u8));
    }

    /// The lanes by array; the first part is the request, the others go with it.
    fn parts(self) -> Vec<Self> {
        if self.arrays.is_empty() {
            return vec![self];
        }
        let mut parts: Vec<Self> = Vec::new();
        for (&lane, &array) in self.lanes.iter().zip(&self.arrays) {
            match parts.iter_mut().find(|part| part.item.array == array) {
                Some(part) => part.lanes.push(lane),
                None => parts.push(Self {
                    item: Item { array, ..self.item },
                    lanes: vec![lane],
                    arrays: Vec::new(),
                }),
            }
        }
        parts
    }
}

/// Replays the threads of a warp.
pub(crate) struct Replay<'a> {
    known: &'a Known<'a>,
    threads: &'a [Thread],
    positions: [usize; 32],
    happened: &'a mut Happened,
    block: u32,
    weight: f64,
    sectors: Vec<u64>,
    waits: Waits,
}

/// Instructions that a loop may have when it is unrolled, and the most and fewest turns whose loads then wait
/// together. NVRTC 13.0's machine code has 16 turns of loops that only load and add (matrix-product `naive`,
/// histogram `second_pass`), and 4 of one with about 14 instructions (histogram `add_bytes`).
const UNROLLED: u32 = 100;
const TOGETHER: (u32, u32) = (4, 16);

/// Blocks of so many instructions whose loads wait together.
pub(crate) fn together(instructions: u32) -> f64 {
    let turns = UNROLLED / instructions.max(1);
    f64::from(turns.checked_ilog2().map_or(0, |power| 1 << power).clamp(TOGETHER.0, TOGETHER.1))
}

/// How often a warp waits for loads.
///
/// The loads of a block of code wait together, and so do those of some blocks after each other
/// ([`together`]). Loads are not moved across an atomic operation, a volatile access or a barrier: those
/// behind it wait anew. An atomic operation itself is not waited for, as most are made for their effect
/// alone.
#[derive(Debug, Default)]
struct Waits {
    done: f64,
    /// Blocks with loads since the last access that loads are not moved across, each as its part of a wait.
    open: f64,
}

impl Waits {
    /// A block of code that has loads or none, and whose loads wait together with those of others.
    fn load(&mut self, loads: bool, together: f64) {
        self.open += if loads { 1.0 / together } else { 0.0 };
    }

    fn close(&mut self) {
        if self.open > 0.0 {
            self.done += self.open.max(1.0);
            self.open = 0.0;
        }
    }
}

impl<'a> Replay<'a> {
    /// Replays at most 32 threads of a block, and adds what happened.
    pub(crate) fn run(known: &'a Known<'a>, warp: &'a Warp, happened: &'a mut Happened) {
        let Warp { block, weight, ref threads } = *warp;
        let mut replay = Self {
            known,
            threads,
            positions: [0; 32],
            happened,
            block,
            weight,
            sectors: Vec::new(),
            waits: Waits::default(),
        };
        let present = (0..threads.len()).filter(|&lane| !threads[lane].visits.is_empty());
        let mask = present.fold(0u32, |mask, lane| mask | 1 << lane);
        for start in replay.groups(mask) {
            replay.together(start.1, END);
        }
        replay.waits.close();
        let waits = replay.waits.done;
        replay.happened.warps += weight;
        replay.happened.waits += waits * weight;
        replay.happened.longest = replay.happened.longest.max(waits);
    }

    fn next(&self, lane: usize) -> u32 {
        self.threads[lane].visits.get(self.positions[lane]).map_or(END, |visit| visit.node)
    }

    /// The lanes by the block that comes next, those that have ended left out.
    fn groups(&self, mask: u32) -> Vec<(u32, u32)> {
        let mut groups: Vec<(u32, u32)> = Vec::new();
        for lane in lanes_of(mask) {
            let next = self.next(lane);
            if next == END {
                continue;
            }
            match groups.iter_mut().find(|(node, _)| *node == next) {
                Some((_, lanes)) => *lanes |= 1 << lane,
                None => groups.push((next, 1 << lane)),
            }
        }
        groups
    }

    /// Lanes that are about to enter the same block go on until all are at `stop` or have ended.
    fn together(&mut self, mut mask: u32, stop: u32) {
        while mask != 0 {
            let node = self.next(mask.trailing_zeros() as usize);
            if node == stop || node == END {
                return;
            }
            self.visit(node, mask);
            let alive = mask;
            let groups = self.groups(mask);
            let going = groups.iter().fold(0, |mask, (_, lanes)| mask | lanes);
            if groups.len() > 1 || (going != alive && going != 0) {
                self.happened.nodes[node as usize].splits += self.weight;
            }
            if groups.len() <= 1 {
                mask = going;
                continue;
            }
            let meet = self.known.meetings.get(node as usize).copied().unwrap_or(END);
            let mut apart: Vec<u32> =
                groups.iter().filter(|(next, _)| *next != meet).map(|(_, lanes)| *lanes).collect();
            if meet == stop {
                // The last ones go on here: a loop that lanes leave one after another nests no deeper.
                mask = apart.pop().unwrap_or(0);
                apart.into_iter().for_each(|lanes| self.together(lanes, stop));
                continue;
            }
            apart.into_iter().for_each(|lanes| self.together(lanes, meet));
            mask = lanes_of(going)
                .filter(|&lane| self.next(lane) == meet && meet != END)
                .fold(0, |mask, lane| mask | 1 << lane);
        }
    }

    /// What lanes do in a block, and the step to the next.
    fn visit(&mut self, node: u32, mask: u32) {
        let index = node as usize;
        if self.happened.nodes.len() <= index {
            self.happened.nodes.resize(index + 1, Node::default());
        }
        let counted = &mut self.happened.nodes[index];
        counted.visits += self.weight;
        counted.lanes += f64::from(mask.count_ones()) * self.weight;
        let mut requests = self.requests(mask);
        if requests.len() > 1 {
            self.join(&mut requests);
        }
        let (mut global, mut shared) = (false, false);
        let together = self.known.together.get(index).copied().unwrap_or(1.0);
        let parts = requests.into_iter().flat_map(|request| request.parts().into_iter().enumerate());
        for (part, request) in parts {
            let space = self.known.spaces.get(request.item.array as usize).copied();
            let Item { kind, firm, .. } = request.item;
            let loads = matches!(kind, Kind::Read | Kind::Texel)
                && matches!(space, Some(Space::Global | Space::Texture));
            if firm || matches!(kind, Kind::Atomic | Kind::Barrier) {
                self.waits.load(std::mem::take(&mut global), together);
                self.waits.close();
                self.waits.load(loads, together);
                self.waits.close();
            } else {
                global |= loads;
            }
            shared |= request.item.kind.is_access() && space == Some(Space::Shared);
            self.count(&request, space, part == 0);
        }
        self.waits.load(global, together);
        self.happened.shared_waits += if shared { self.weight } else { 0.0 };
        for lane in lanes_of(mask) {
            self.positions[lane] += 1;
        }
    }

    /// What the lanes do together: for each piece of code its first, second … time in this block.
    fn requests(&self, mask: u32) -> Vec<Request> {
        let first = mask.trailing_zeros() as usize;
        let items = self.threads[first].items_of(self.positions[first]);
        let alike = lanes_of(mask).all(|lane| {
            let other = self.threads[lane].items_of(self.positions[lane]);
            other.len() == items.len()
                && other.iter().zip(items).all(|(a, b)| a.code == b.code && a.array == b.array)
        });
        if alike {
            let lanes = |k: usize| {
                lanes_of(mask)
                    .map(|lane| (self.threads[lane].items_of(self.positions[lane])[k].value, lane as u8))
                    .collect()
            };
            let whole = |(k, &item)| Request { item, lanes: lanes(k), arrays: Vec::new() };
            return texels(items.iter().enumerate().map(whole).collect());
        }
        let mut requests: Vec<(u32, Request)> = Vec::new();
        for lane in lanes_of(mask) {
            let own = self.threads[lane].items_of(self.positions[lane]);
            for (k, &item) in own.iter().enumerate() {
                let time = own[..k].iter().filter(|other| other.code == item.code).count() as u32;
                let same = |(t, other): &(u32, Request)| {
                    let apart = item.kind == Kind::Texel && other.item.array != item.array;
                    *t == time && other.item.code == item.code && !apart
                };
                let index = requests.iter().position(same).unwrap_or_else(|| {
                    requests.push((time, Request::new(item)));
                    requests.len() - 1
                });
                requests[index].1.push(item, lane);
            }
        }
        texels(requests.into_iter().map(|(_, request)| request).collect())
    }

    /// Members of a vector that one line reads or writes are one access, as a compiler for GPUs makes them.
    fn join(&self, requests: &mut Vec<Request>) {
        let line = |request: &Request| self.known.joins.get(&request.item.code).copied();
        let mut index = 0;
        while index < requests.len() {
            let mut joined = false;
            if let Some((own, widths)) = line(&requests[index])
                .filter(|_| matches!(requests[index].item.kind, Kind::Read | Kind::Write))
            {
                for total in [16u64, 8].into_iter().filter(|&total| total & widths != 0) {
                    if let Some(parts) = self.parts(requests, index, own, total) {
                        let lead =
                            parts.iter().copied().min_by_key(|&k| requests[k].lanes[0].0).unwrap_or(index);
                        requests[index].lanes = requests[lead].lanes.clone();
                        requests[index].item.size = total as u8;
                        let mut gone: Vec<usize> = parts.into_iter().filter(|&k| k != index).collect();
                        gone.sort_unstable_by(|a, b| b.cmp(a));
                        gone.into_iter().for_each(|k| drop(requests.remove(k)));
                        joined = true;
                        break;
                    }
                }
            }
            index += usize::from(!joined);
        }
    }

    /// The requests that together with `index` fill aligned pieces of `total` bytes in every lane.
    fn parts(&self, requests: &[Request], index: usize, line: u32, total: u64) -> Option<Vec<usize>> {
        let own = &requests[index];
        let size = u64::from(own.item.size);
        if size >= total || size < 4 || !own.arrays.is_empty() {
            return None;
        }
        let begin = own.lanes[0].0 / total * total;
        let inside = own.lanes[0].0 - begin;
        if own.lanes.iter().any(|(value, _)| value % total != inside) {
            return None;
        }
        let mut parts = Vec::new();
        for place in (0..total).step_by(size as usize) {
            let fits = |other: &Request| {
                other.item.kind == own.item.kind
                    && other.item.array == own.item.array
                    && u64::from(other.item.size) == size
                    && other.arrays.is_empty()
                    && self.known.joins.get(&other.item.code).is_some_and(|(own, _)| *own == line)
                    && other.lanes.len() == own.lanes.len()
                    && other
                        .lanes
                        .iter()
                        .zip(&own.lanes)
                        .all(|((a, l), (b, m))| l == m && *a + inside == b + place)
            };
            parts.push((index..requests.len()).find(|&k| fits(&requests[k]))?);
        }
        Some(parts)
    }

    /// Counts a request, or the part of it that goes to another array than its `first` lane.
    fn count(&mut self, request: &Request, space: Option<Space>, first: bool) {
        let Request { item, lanes, .. } = request;
        let weight = self.weight;
        let array = if item.kind.is_access() { item.array } else { u16::MAX };
        let counted = self.happened.requests.entry((item.code, array, item.kind)).or_default();
        counted.requests += if first { weight } else { 0.0 };
        if !item.kind.is_access() {
            counted.lanes += lanes.len() as f64 * weight;
            return;
        }
        let size = u64::from(item.size);
        // A texel of each corner is a place of its own; the lanes are those that asked.
        let active = lanes.iter().fold(0u32, |mask, (_, lane)| mask | 1 << lane).count_ones();
        let times = |number: u64| number as f64 * weight;
        counted.lanes += times(active.into());
        counted.bytes += times(size * u64::from(active));
        let (distinct, most) = words(lanes);
        if space != Some(Space::Global) || item.kind == Kind::Atomic {
            counted.distinct += times(distinct);
            counted.most += times(most);
            counted.alike += times(u64::from(distinct == 1 && active > 1));
        }
        if space == Some(Space::Global) && item.kind == Kind::Atomic {
            counted.turns += times(atomic_sectors(lanes));
        }
        match space {
            Some(Space::Shared) => {
                let turns = turns(lanes, size);
                counted.turns += times(if item.kind == Kind::Atomic { most.max(turns) } else { turns });
                counted.least += times(least_turns(lanes, size));
            }
            Some(Space::Constant) => {
                counted.turns += times(distinct);
                counted.least += weight;
            }
            Some(Space::Global | Space::Texture) | None => {
                sectors(lanes, size, &mut self.sectors);
                counted.sectors += times(self.sectors.len() as u64);
                let mut row = None;
                for sector in &self.sectors {
                    let own = sector / ROW;
                    counted.rows += times(u64::from(row.replace(own) != Some(own)));
                }
                let touched = self.happened.touched.entry(array).or_default();
                self.sectors.iter().for_each(|&sector| touched.insert(sector, self.block, weight));
            }
        }
    }
}

/// The texels of one call are one request.
fn texels(mut requests: Vec<Request>) -> Vec<Request> {
    let mut index = 0;
    while index < requests.len() {
        if requests[index].item.kind == Kind::Texel
            && let Some(first) = requests[..index].iter().position(|other| {
                other.item.kind == Kind::Texel
                    && other.item.code == requests[index].item.code
                    && other.item.array == requests[index].item.array
            })
        {
            let lanes = requests.remove(index).lanes;
            requests[first].lanes.extend(lanes);
        } else {
            index += 1;
        }
    }
    requests
}

fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_loops_are_unrolled_more() {
        // A load and an addition; what `add_bytes` does; much; nothing that is known.
        assert_eq!([5, 14, 200, 0].map(together), [16.0, 4.0, 4.0, 16.0]);
        let mut waits = Waits::default();
        (0..32).for_each(|_| waits.load(true, together(5)));
        waits.close();
        assert_eq!(waits.done, 2.0);
    }
}
