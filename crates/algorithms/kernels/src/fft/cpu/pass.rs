use std::ops::Range;
use std::sync::Arc;

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Real, Result};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, dispatch};
use rayspin_device::cpu::{PoolLoop, Stop};
use rayspin_line_fft::Fft;

use super::lanes::{Decimation, LaneFft, Row};
use super::line::{COLUMNS, LineMap, Pieces, Rows, Whole, pitch};
use super::{Direction, FftNd, Options, Region, Strategy};

/// Sub-arrays up to this many bytes stay in a core's second-level cache while all their axes are transformed.
const LOCAL_BYTES: usize = 512 << 10;
/// Arrays up to this many bytes are not worth splitting over cores.
const SERIAL_BYTES: usize = 32 << 10;
/// Elements that one parallel task should hold at least.
const TASK_ELEMENTS: usize = 4096;
/// Column ranges a thread, where arrays are split over columns: enough that an idle thread finds some to
/// take.
const TASKS_A_THREAD: usize = 4;

/// Buffers of one thread.
pub(crate) struct Scratch<R> {
    lines: Vec<Complex<R>>,
    fft: Vec<Complex<R>>,
    lanes: Vec<Row<R>>,
}

impl<R: Real> Scratch<R> {
    pub(crate) fn new<'a>(passes: impl IntoIterator<Item = &'a LinePass<R>>) -> Self {
        let (mut lines, mut fft, mut lanes) = (0, 0, 0);
        for pass in passes {
            if pass.inner > 1 && pass.lanes.is_some() {
                lanes = lanes.max(pass.n);
                continue;
            }
            let columns = if pass.inner == 1 { 1 } else { COLUMNS };
            lines = lines.max(columns * pitch::<R>(pass.n));
            fft = fft.max(pass.fft.get_inplace_scratch_len());
        }
        let zero = Complex::new(R::zero(), R::zero());
        Self { lines: vec![zero; lines], fft: vec![zero; fft], lanes: vec![[R::zero(); 2 * COLUMNS]; lanes] }
    }
}

/// The transforms along one axis of a `[outer, n, inner]` array.
pub(crate) struct LinePass<R: Real> {
    fft: Arc<dyn Fft<R>>,
    lanes: Option<Arc<LaneFft<R>>>,
    direction: Direction,
    level: Level,
    n: usize,
    inner: usize,
    /// Indices along the outer axis to transform.
    outer: Vec<usize>,
    /// Whether `outer` is all there are.
    every_outer: bool,
    /// Columns to transform, at most [`COLUMNS`] at a time.
    blocks: Vec<Range<usize>>,
    map: LineMap,
    scale: Option<R>,
}

impl<R: Real> LinePass<R> {
    /// All columns of one `[n, inner]` array along `axis` of `fft`.
    pub(crate) fn new(
        fft: &FftNd<R>,
        axis: usize,
        direction: Direction,
        level: Level,
        inner: usize,
        map: LineMap,
    ) -> Self {
        Self {
            fft: Arc::clone(fft.line(axis, direction)),
            lanes: fft.lanes(axis).cloned(),
            direction,
            level,
            n: fft.shape()[axis],
            inner,
            outer: vec![0],
            every_outer: true,
            blocks: blocks(&(0..inner).collect::<Vec<_>>()),
            map,
            scale: None,
        }
    }

    /// One thread's work on a whole `[outer, n, inner]` array.
    pub(crate) fn run(&self, data: &mut [Complex<R>], scratch: &mut Scratch<R>) {
        if self.inner == 1 {
            if self.every_outer && self.map.is_identity() {
                self.fft.process_with_scratch(data, &mut scratch.fft);
                scale(data, self.scale);
                return;
            }
            for &outer in &self.outer {
                self.run_line(&mut data[outer * self.n..(outer + 1) * self.n], scratch);
            }
            return;
        }
        let size = self.n * self.inner;
        for &outer in &self.outer {
            let mut rows = Whole { data: &mut data[outer * size..(outer + 1) * size], inner: self.inner };
            for columns in &self.blocks {
                self.run_block(&mut rows, columns.clone(), scratch);
            }
        }
    }

    fn run_line(&self, line: &mut [Complex<R>], scratch: &mut Scratch<R>) {
        if self.map.is_identity() {
            self.fft.process_with_scratch(line, &mut scratch.fft);
            scale(line, self.scale);
            return;
        }
        let buffer = &mut scratch.lines[..self.n];
        self.map.gather_line(line, buffer);
        self.fft.process_with_scratch(buffer, &mut scratch.fft);
        scale(buffer, self.scale);
        self.map.scatter_line(buffer, line);
    }

    fn run_block(&self, rows: &mut impl Rows<Complex<R>>, columns: Range<usize>, scratch: &mut Scratch<R>) {
        if let Some(lanes) = &self.lanes {
            match self.direction {
                Direction::Forward => self.run_lanes::<false>(lanes, rows, columns, &mut scratch.lanes),
                Direction::Inverse => self.run_lanes::<true>(lanes, rows, columns, &mut scratch.lanes),
            }
            return;
        }
        let pitch = pitch::<R>(self.n);
        self.map.gather(rows, columns.clone(), &mut scratch.lines, pitch);
        for line in scratch.lines.chunks_exact_mut(pitch).take(columns.len()) {
            self.fft.process_with_scratch(&mut line[..self.n], &mut scratch.fft);
            scale(&mut line[..self.n], self.scale);
        }
        self.map.scatter(&scratch.lines, pitch, rows, columns);
    }
}

impl<R: Real> LinePass<R> {
    fn run_lanes<const INVERSE: bool>(
        &self,
        lanes: &LaneFft<R>,
        rows: &mut impl Rows<Complex<R>>,
        columns: Range<usize>,
        buffer: &mut [Row<R>],
    ) {
        let row_of = lanes.row_of();
        let scale = self.scale.unwrap_or(R::one());
        dispatch!(self.level, _simd => self.map.gather_lanes::<R, INVERSE>(&*rows, columns.clone(), &mut *buffer));
        lanes.process(self.level, buffer, Decimation::Frequency);
        dispatch!(self.level, _simd =>
            self.map.scatter_lanes::<R, INVERSE>(&*buffer, |k| row_of[k], scale, &mut *rows, columns));
    }
}

/// How one call goes over the axes: trailing axes `first_local..` chunk by chunk, the others one pass each.
pub(crate) struct Plan<R: Real> {
    first_local: usize,
    chunk: usize,
    item: usize,
    /// Chunks of an item that the local passes visit.
    chunks: Vec<usize>,
    local: Vec<LinePass<R>>,
    global: Vec<LinePass<R>>,
    local_first: bool,
}

impl<R: Real> Plan<R> {
    pub(crate) fn new(
        fft: &FftNd<R>,
        options: &Options<'_, R>,
        batch: usize,
        cpu: &Cpu,
        strategy: Strategy,
    ) -> Result<Self> {
        let threads = cpu.threads();
        let shape = fft.shape();
        let rank = shape.len();
        let full = Region::full(shape)?;
        let nonzero = options.nonzero.unwrap_or(&full);
        let wanted = options.wanted.unwrap_or(&full);

        // Axes in ascending or descending order: whichever leaves fewer lines.
        let lines = |ascending: bool| -> usize {
            (0..rank)
                .map(|axis| {
                    let counts = (0..rank).filter(|&b| b != axis).map(|b| {
                        let done = (b < axis) == ascending;
                        if done { wanted.count(b) } else { nonzero.count(b) }
                    });
                    counts.product::<usize>() * shape[axis]
                })
                .sum()
        };
        let ascending = lines(true) < lines(false);
        // At one axis' pass, an earlier-transformed axis is restricted to what is wanted, a later one to what
        // is nonzero.
        let region = |before: bool| if before == ascending { wanted } else { nonzero };

        let size = |from: usize| -> usize { shape[from..].iter().product() };
        let first_local = (0..rank)
            .filter(|_| strategy.local)
            .find(|&from| {
                let bytes = size(from) * size_of::<Complex<R>>();
                let chunks: usize = (0..from).map(|b| region(true).count(b)).product::<usize>() * batch;
                bytes <= SERIAL_BYTES || (bytes <= LOCAL_BYTES && (threads == 1 || chunks >= 2 * threads))
            })
            .unwrap_or(rank - 1);

        let last_axis = if ascending { rank - 1 } else { 0 };
        let pass = |axis: usize| {
            let root = if axis >= first_local { first_local } else { 0 };
            let outer = region(true).flat(root..axis);
            let n = shape[axis];
            let shift = if options.centred { n / 2 } else { 0 };
            LinePass {
                fft: Arc::clone(fft.line(axis, options.direction)),
                lanes: fft.lanes(axis).filter(|_| strategy.lanes).cloned(),
                direction: options.direction,
                level: cpu.level(),
                n,
                inner: size(axis + 1),
                every_outer: outer.len() == shape[root..axis].iter().product::<usize>(),
                outer,
                blocks: blocks(&region(false).flat(axis + 1..rank)),
                map: LineMap::new(n, shift, nonzero.axis(axis), wanted.axis(axis)),
                scale: (axis == last_axis && options.scale != R::one()).then_some(options.scale),
            }
        };
        let mut local: Vec<_> = (first_local..rank).map(pass).collect();
        let mut global: Vec<_> = (0..first_local).map(pass).collect();
        if !ascending {
            local.reverse();
            global.reverse();
        }
        Ok(Self {
            first_local,
            chunk: size(first_local),
            item: size(0),
            chunks: region(true).flat(0..first_local),
            local,
            global,
            local_first: !ascending,
        })
    }

    pub(crate) fn run(&self, cpu: &Cpu, data: &mut [Complex<R>]) {
        if self.first_local == 0 && data.len() == self.item {
            // One small array: not worth waking the pool.
            let mut scratch = Scratch::new(&self.local);
            for pass in &self.local {
                pass.run(data, &mut scratch);
            }
            return;
        }
        cpu.run(|| {
            if self.local_first {
                self.run_local(data);
            }
            for pass in &self.global {
                let lines: Vec<&mut [Complex<R>]> = data.chunks_exact_mut(self.item).collect();
                run_global(pass, lines, cpu.threads());
            }
            if !self.local_first {
                self.run_local(data);
            }
        });
    }

    fn run_local(&self, data: &mut [Complex<R>]) {
        let (min, stop) = ((TASK_ELEMENTS / self.chunk).max(1), Stop::of_caller());
        let per_item = self.item / self.chunk;
        let work = |scratch: &mut Scratch<R>, chunk: &mut [Complex<R>]| {
            for pass in self.local.iter().take_while(|_| !stop.is_set()) {
                pass.run(chunk, scratch);
            }
        };
        if self.chunks.len() == per_item {
            data.par_chunks_exact_mut(self.chunk)
                .with_min_len(min)
                .each_with(|| Scratch::new(&self.local), work);
        } else {
            let mut wanted = vec![false; per_item];
            self.chunks.iter().for_each(|&chunk| wanted[chunk] = true);
            let chunks: Vec<_> = data
                .chunks_exact_mut(self.chunk)
                .enumerate()
                .filter(|(index, _)| wanted[index % per_item])
                .map(|(_, chunk)| chunk)
                .collect();
            chunks.into_par_iter().with_min_len(min).each_with(|| Scratch::new(&self.local), work);
        }
    }
}

/// One axis of every batch item, split over outer indices and, where these are few, over columns.
fn run_global<R: Real>(pass: &LinePass<R>, items: Vec<&mut [Complex<R>]>, threads: usize) {
    let size = pass.n * pass.inner;
    let mut visit = vec![false; pass.outer.last().map_or(0, |last| last + 1)];
    pass.outer.iter().for_each(|&outer| visit[outer] = true);
    let arrays: Vec<&mut [Complex<R>]> = items
        .into_iter()
        .flat_map(|item| item.chunks_exact_mut(size).zip(&visit).filter(|(_, visit)| **visit))
        .map(|(array, _)| array)
        .collect();
    for_each_block(arrays, pass.inner, &pass.blocks, threads, pass);
}

/// What is done to one block of columns of a `[n, inner]` array.
pub(crate) trait BlockWork<R: Real>: Sync {
    type State: Send;
    /// What one thread needs.
    fn state(&self) -> Self::State;
    /// Works on `columns`, counted from the start of `rows`: the `index`-th block of array `array`.
    fn block(
        &self,
        state: &mut Self::State,
        rows: &mut impl Rows<Complex<R>>,
        array: usize,
        index: usize,
        columns: Range<usize>,
    );
}

impl<R: Real> BlockWork<R> for LinePass<R> {
    type State = Scratch<R>;

    fn state(&self) -> Scratch<R> {
        Scratch::new([self])
    }

    fn block(
        &self,
        scratch: &mut Scratch<R>,
        rows: &mut impl Rows<Complex<R>>,
        _: usize,
        _: usize,
        columns: Range<usize>,
    ) {
        self.run_block(rows, columns, scratch);
    }
}

/// Visits `blocks` of every `[n, inner]` array on all threads of the current pool: one task an array, or
/// where arrays are few, several column ranges of each.
pub(crate) fn for_each_block<R: Real, W: BlockWork<R>>(
    arrays: Vec<&mut [Complex<R>]>,
    inner: usize,
    blocks: &[Range<usize>],
    threads: usize,
    work: &W,
) {
    let parts = (TASKS_A_THREAD * threads).div_ceil(arrays.len().max(1)).min(blocks.len());
    let stop = Stop::of_caller();
    if threads == 1 || parts <= 1 || arrays.len() >= 2 * threads {
        arrays.into_par_iter().enumerate().each_with(
            || work.state(),
            |state, (array, data)| {
                let mut rows = Whole { data, inner };
                for (index, columns) in blocks.iter().enumerate().take_while(|_| !stop.is_set()) {
                    work.block(state, &mut rows, array, index, columns.clone());
                }
            },
        );
        return;
    }
    let per_part = blocks.len().div_ceil(parts);
    // One slice a row and part: a few thousand in all, which buys disjoint mutable columns without unsafe
    // code.
    let mut tasks = Vec::new();
    for (array, data) in arrays.into_iter().enumerate() {
        let rows = data.len() / inner;
        let mut part_rows: Vec<Vec<&mut [Complex<R>]>> = Vec::new();
        part_rows.resize_with(blocks.len().div_ceil(per_part), || Vec::with_capacity(rows));
        for row in data.chunks_exact_mut(inner) {
            let (mut rest, mut start) = (row, 0);
            for (part, blocks) in part_rows.iter_mut().zip(blocks.chunks(per_part)) {
                let end = blocks.last().map_or(start, |columns| columns.end);
                let (piece, after) = rest.split_at_mut(end - start);
                part.push(piece);
                (rest, start) = (after, end);
            }
        }
        let mut start = 0;
        for (part, rows) in part_rows.into_iter().enumerate() {
            let indices = part * per_part..((part + 1) * per_part).min(blocks.len());
            let end = blocks[indices.end - 1].end;
            tasks.push((array, indices, start, Pieces { rows }));
            start = end;
        }
    }
    tasks.into_par_iter().each_with(
        || work.state(),
        |state, (array, indices, start, mut rows)| {
            for index in indices.take_while(|_| !stop.is_set()) {
                let columns = blocks[index].start - start..blocks[index].end - start;
                work.block(state, &mut rows, array, index, columns);
            }
        },
    );
}

/// Columns as blocks of at most [`COLUMNS`] consecutive ones.
pub(crate) fn blocks(columns: &[usize]) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for &column in columns {
        match blocks.last_mut() {
            Some(block) if block.end == column && block.len() < COLUMNS => block.end += 1,
            _ => blocks.push(column..column + 1),
        }
    }
    blocks
}

fn scale<R: Real>(data: &mut [Complex<R>], factor: Option<R>) {
    if let Some(factor) = factor {
        data.iter_mut().for_each(|value| *value = value.scale(factor));
    }
}
