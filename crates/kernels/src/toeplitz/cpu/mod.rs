//! Zero-pad → FFT → multiply → inverse FFT → crop on the cores, without ever forming the padded grid.
//!
//! The first axis is padded, transformed, multiplied, transformed back and cropped within one cache-resident block of
//! columns. The work buffer is therefore padded along the other axes only, half of the padded grid.

mod pool;
mod setup;

use std::ops::Range;
use std::sync::Arc;

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Error, Real, Result, voxels};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, dispatch};

use pool::Pool;

use crate::fft::Direction;
use crate::fft::cpu::FftNd;
use crate::fft::cpu::lanes::{Decimation, LaneFft, Row};
use crate::fft::cpu::line::{COLUMNS, LineMap, Rows};
use crate::fft::cpu::pass::{BlockWork, LinePass, Scratch, blocks, for_each_block};

/// Work buffers up to this many bytes go one to a thread, each thread taking whole images of a batch.
const OWN_BUFFER_BYTES: usize = 2 << 20;
/// Elements that one parallel task should hold at least.
const TASK_ELEMENTS: usize = 4096;

/// The smallest length of at least 2n − 1 without prime factors above 7, divisible by 4 unless short.
pub(super) fn padded_size(n: usize) -> usize {
    let least = n.saturating_mul(2).saturating_sub(1).max(1);
    if least > 1 << 32 {
        // Beyond any plan that can be made; the memory it would take can still be stated.
        return least;
    }
    let smooth = |mut m: usize| {
        for p in [2, 3, 5, 7] {
            while m.is_multiple_of(p) {
                m /= p;
            }
        }
        m == 1
    };
    let step = if least < 16 { 1 } else { 4 };
    let first = least.next_multiple_of(step);
    (first..).step_by(step).find(|&m| smooth(m)).unwrap_or(least)
}

/// The matrix as `[first, middle, last]`, where a missing axis has size 1.
pub(super) fn three_axes(matrix: &[usize]) -> Result<[usize; 3]> {
    match *matrix {
        [x] => Ok([1, 1, x]),
        [y, x] => Ok([y, 1, x]),
        [z, y, x] => Ok([z, y, x]),
        _ => Err(Error::value("Toeplitz matrix size", "1 to 3 axes", matrix.len())),
    }
}

/// Real elements of the spectrum and complex ones of a work buffer.
pub(super) fn elements(matrix: &[usize]) -> Result<(usize, usize)> {
    let sizes = three_axes(matrix)?;
    let [p0, p1, p2] = sizes.map(padded_size);
    let columns = voxels(&[p1, p2])?.saturating_add(COLUMNS - 1) / COLUMNS;
    Ok((voxels(&[p0, columns, COLUMNS])?, voxels(&[sizes[0], p1, p2])?))
}

/// Images as `[first, middle, last]`, transforms as the same axes padded; a missing axis has size 1.
#[derive(Debug)]
pub(super) struct Convolution<R: Real> {
    matrix: [usize; 3],
    padded: [usize; 3],
    engine: FftNd<R>,
    first: LaneFft<R>,
    /// `[block, row, column]`: in the order in which blocks of [`COLUMNS`] columns (middle, last) are visited, and their
    /// buffers laid out. The inverse transforms' 1/N is in it.
    spectrum: Vec<R>,
    work: Arc<Pool<R>>,
}

/// One image's way into the work buffer and out of it, a row along the last axis at a time.
trait Ends<R: Real>: Sync {
    /// Writes row `row` of the image.
    fn load(&self, row: usize, line: &mut [Complex<R>]);
    /// Takes row `row` of the result.
    fn store(&self, row: usize, line: &[Complex<R>], out: &mut [Complex<R>]);
}

struct Copy<'a, R>(&'a [Complex<R>]);

impl<R: Real> Ends<R> for Copy<'_, R> {
    fn load(&self, row: usize, line: &mut [Complex<R>]) {
        line.copy_from_slice(&self.0[row * line.len()..(row + 1) * line.len()]);
    }
    fn store(&self, _: usize, line: &[Complex<R>], out: &mut [Complex<R>]) {
        out.copy_from_slice(line);
    }
}

/// Multiplies by a coil's sensitivity on the way in; by its conjugate, and adds up, on the way out.
struct Weighted<'a, R> {
    image: &'a [Complex<R>],
    map: &'a [Complex<R>],
    first: bool,
}

impl<R: Real> Ends<R> for Weighted<'_, R> {
    fn load(&self, row: usize, line: &mut [Complex<R>]) {
        let at = row * line.len()..(row + 1) * line.len();
        for ((value, x), s) in line.iter_mut().zip(&self.image[at.clone()]).zip(&self.map[at]) {
            *value = x * s;
        }
    }
    fn store(&self, row: usize, line: &[Complex<R>], out: &mut [Complex<R>]) {
        let at = row * line.len()..(row + 1) * line.len();
        for ((out, value), s) in out.iter_mut().zip(line).zip(&self.map[at]) {
            let value = value * s.conj();
            *out = if self.first { value } else { *out + value };
        }
    }
}

#[allow(clippy::single_range_in_vec_init)]
fn one(range: Range<usize>) -> [Range<usize>; 1] {
    [range]
}

impl<R: Real> Convolution<R> {
    /// `q` is `matrix` doubled, centred.
    pub(super) fn new(cpu: &Cpu, matrix: &[usize], q: &[Complex<R>]) -> Result<Self> {
        let mut this = Self::with_spectrum(matrix, Vec::new())?;
        this.spectrum = this.transform_kernel(cpu, matrix.len(), q)?;
        Ok(this)
    }

    pub(super) fn spectrum(&self) -> &[R] {
        &self.spectrum
    }

    pub(super) fn with_spectrum(matrix: &[usize], spectrum: Vec<R>) -> Result<Self> {
        let sizes = three_axes(matrix)?;
        let padded = sizes.map(padded_size);
        let work = Arc::new(Pool::new(elements(matrix)?.1));
        let first = LaneFft::new(padded[0])
            .ok_or_else(|| Error::value("Toeplitz matrix size", "at most 2³¹ voxels an axis", sizes[0]))?;
        Ok(Self { matrix: sizes, padded, engine: FftNd::new(&padded)?, first, spectrum, work })
    }

    pub(super) fn apply(&self, cpu: &Cpu, x: &[Complex<R>], y: &mut [Complex<R>]) -> Result<()> {
        let image: usize = self.matrix.iter().product();
        let batch = x.len() / image;
        let bytes = self.work.len * size_of::<Complex<R>>();
        if batch > 1 && (batch >= cpu.threads() && bytes <= OWN_BUFFER_BYTES) {
            let passes = self.passes(cpu);
            return cpu.run(|| {
                y.par_chunks_exact_mut(image)
                    .zip(x.par_chunks_exact(image))
                    .map_init(
                        || self.work.take(),
                        |lease, (y, x)| match lease {
                            Ok(work) => {
                                self.convolve(&passes, 1, work, &Copy(x), y);
                                Ok(())
                            }
                            Err(error) => Err(error.clone()),
                        },
                    )
                    .collect()
            });
        }
        let passes = self.passes(cpu);
        let mut work = self.work.take()?;
        cpu.run(|| {
            for (y, x) in y.chunks_exact_mut(image).zip(x.chunks_exact(image)) {
                self.convolve(&passes, cpu.threads(), &mut work, &Copy(x), y);
            }
        });
        Ok(())
    }

    pub(super) fn apply_sense(
        &self,
        cpu: &Cpu,
        image: &[Complex<R>],
        maps: &[Complex<R>],
        y: &mut [Complex<R>],
        add: bool,
    ) -> Result<()> {
        let passes = self.passes(cpu);
        let mut work = self.work.take()?;
        cpu.run(|| {
            for (coil, map) in maps.chunks_exact(image.len()).enumerate() {
                let ends = Weighted { image, map, first: coil == 0 && !add };
                self.convolve(&passes, cpu.threads(), &mut work, &ends, y);
            }
        });
        Ok(())
    }

    pub(super) fn bytes(&self) -> u64 {
        let work = self.work.allocated() * self.work.len * size_of::<Complex<R>>();
        (self.spectrum.len() * size_of::<R>() + work) as u64
    }

    /// Works in the buffers of `other`, a plan for the same matrix.
    pub(super) fn share_work(&mut self, other: &Self) {
        self.work = other.work.clone();
    }

    fn passes(&self, cpu: &Cpu) -> Passes<R> {
        let [n0, n1, _] = self.matrix;
        let [p0, p1, p2] = self.padded;
        let middle = |direction, read, write| {
            let map = LineMap::new(p1, 0, &one(read), &one(write));
            LinePass::new(&self.engine, 1, direction, cpu.level(), p2, map)
        };
        Passes {
            forward: middle(Direction::Forward, 0..n1, 0..p1),
            inverse: middle(Direction::Inverse, 0..p1, 0..n1),
            map: LineMap::new(p0, 0, &one(0..n0), &one(0..n0)),
            level: cpu.level(),
            blocks: blocks(&(0..p1 * p2).collect::<Vec<_>>()),
        }
    }

    /// One image on `threads` threads of the current pool.
    fn convolve(
        &self,
        passes: &Passes<R>,
        threads: usize,
        work: &mut [Complex<R>],
        ends: &impl Ends<R>,
        y: &mut [Complex<R>],
    ) {
        let [_, n1, n2] = self.matrix;
        let [_, p1, p2] = self.padded;
        let zero = Complex::new(R::zero(), R::zero());
        let last = |direction| self.engine.line(2, direction);
        let scratch = || {
            let (a, b) = (last(Direction::Forward), last(Direction::Inverse));
            let len = a.get_inplace_scratch_len().max(b.get_inplace_scratch_len());
            (vec![zero; len], Scratch::new([&passes.forward, &passes.inverse]))
        };
        let forward = |(fft, scratch): &mut (Vec<_>, Scratch<R>),
                       (index, plane): (usize, &mut [Complex<R>])| {
            for (row, line) in plane.chunks_exact_mut(p2).take(n1).enumerate() {
                let (inside, padding) = line.split_at_mut(n2);
                ends.load(index * n1 + row, inside);
                padding.fill(zero);
                last(Direction::Forward).process_with_scratch(line, fft);
            }
            if p1 > 1 {
                passes.forward.run(plane, scratch);
            }
        };
        let inverse = |(fft, scratch): &mut (Vec<_>, Scratch<R>),
                       (index, (plane, y)): (usize, (Slice<'_, R>, Slice<'_, R>))| {
            if p1 > 1 {
                passes.inverse.run(plane, scratch);
            }
            let rows = plane.chunks_exact_mut(p2).zip(y.chunks_exact_mut(n2));
            for (row, (line, y)) in rows.enumerate() {
                last(Direction::Inverse).process_with_scratch(line, fft);
                ends.store(index * n1 + row, &line[..n2], y);
            }
        };
        let fused = Fused { convolution: self, level: passes.level, map: &passes.map };
        let plane = p1 * p2;
        if threads == 1 {
            let mut state = scratch();
            for indexed in work.chunks_exact_mut(plane).enumerate() {
                forward(&mut state, indexed);
            }
            for_each_block(vec![&mut *work], plane, &passes.blocks, 1, &fused);
            let planes = work.chunks_exact_mut(plane).zip(y.chunks_exact_mut(n1 * n2));
            for indexed in planes.enumerate() {
                inverse(&mut state, indexed);
            }
            return;
        }
        let min = (TASK_ELEMENTS / plane).max(1);
        work.par_chunks_exact_mut(plane).enumerate().with_min_len(min).for_each_init(scratch, forward);
        for_each_block(vec![&mut *work], plane, &passes.blocks, threads, &fused);
        work.par_chunks_exact_mut(plane)
            .zip(y.par_chunks_exact_mut(n1 * n2))
            .enumerate()
            .with_min_len(min)
            .for_each_init(scratch, inverse);
    }
}

type Slice<'a, R> = &'a mut [Complex<R>];

/// What [`Convolution::convolve`] needs beside the plan; cheap to make, made once a call.
struct Passes<R: Real> {
    forward: LinePass<R>,
    inverse: LinePass<R>,
    map: LineMap,
    level: Level,
    blocks: Vec<Range<usize>>,
}

/// Pad, transform, multiply, transform back and crop along the first axis, a block of columns at a time.
struct Fused<'a, R: Real> {
    convolution: &'a Convolution<R>,
    level: Level,
    map: &'a LineMap,
}

impl<R: Real> BlockWork<R> for Fused<'_, R> {
    type State = Vec<Row<R>>;

    fn state(&self) -> Vec<Row<R>> {
        vec![[R::zero(); 2 * COLUMNS]; self.convolution.padded[0]]
    }

    fn block(
        &self,
        buffer: &mut Vec<Row<R>>,
        rows: &mut impl Rows<Complex<R>>,
        _: usize,
        index: usize,
        columns: Range<usize>,
    ) {
        let (level, first) = (self.level, &self.convolution.first);
        let block = self.convolution.padded[0] * COLUMNS;
        let spectrum = &self.convolution.spectrum[index * block..(index + 1) * block];
        dispatch!(level, _simd => self.map.gather_lanes::<R, false>(&*rows, columns.clone(), &mut *buffer));
        first.process(level, buffer, Decimation::Frequency);
        dispatch!(level, _simd => multiply_and_exchange(&mut *buffer, spectrum));
        first.process(level, buffer, Decimation::Time);
        dispatch!(level, _simd =>
            self.map.scatter_lanes::<R, true>(&*buffer, |row| row, R::one(), &mut *rows, columns));
    }
}

/// Multiplies by the real spectrum; real and imaginary parts change places, as the inverse transform wants them.
#[inline(always)]
fn multiply_and_exchange<R: Real>(buffer: &mut [Row<R>], spectrum: &[R]) {
    for (row, factor) in buffer.iter_mut().zip(spectrum.as_chunks::<COLUMNS>().0) {
        for j in 0..COLUMNS {
            (row[j], row[COLUMNS + j]) = (row[COLUMNS + j] * factor[j], row[j] * factor[j]);
        }
    }
}
