//! The convolution of one image, of a batch, and of one image seen by many coils.

use std::ops::Range;

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Real, Result};
use rayspin_device::Cpu;
use rayspin_device::cpu::Stop;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{
    Lanes, Level, Simd, SimdReal, complex_mul, dispatch, load_complex, store_complex,
};

use super::pool::Lease;
use super::{Convolution, TASK_ELEMENTS, buffers};
use crate::fft::Direction;
use crate::fft::cpu::lanes::Row;
use crate::fft::cpu::line::{COLUMNS, LineMap, Rows};
use crate::fft::cpu::pass::{BlockWork, LinePass, Scratch, blocks, for_each_block};

/// An image on its way into the work buffer. A coil's sensitivity multiplies it there, and its conjugate on
/// the way out.
#[derive(Clone, Copy)]
struct Input<'a, R> {
    image: &'a [Complex<R>],
    map: Option<&'a [Complex<R>]>,
    /// The part of the spectrum.
    part: usize,
    /// Whether the result is added to what is there.
    add: bool,
}

impl<R: SimdReal> Convolution<R> {
    /// `q` is `matrix` doubled, centred.
    pub(in crate::toeplitz) fn new(cpu: &Cpu, matrix: &[usize], q: &[Complex<R>]) -> Result<Self> {
        let mut this = Self::with_spectrum(matrix, Vec::new())?;
        this.spectrum = this.transform_kernel(cpu, matrix.len(), q)?;
        Ok(this)
    }

    pub(in crate::toeplitz) fn apply(&self, cpu: &Cpu, x: &[Complex<R>], y: &mut [Complex<R>]) -> Result<()> {
        let image: usize = self.matrix.iter().product();
        let batch = x.len() / image;
        let (passes, stop) = (self.passes(cpu), Stop::of_caller());
        // One image a thread, where there are enough of them.
        let at_once = batch.min(self.most);
        if batch > 1 && at_once >= cpu.threads() && buffers::<R>(self.work.len, cpu.threads(), batch) > 1 {
            return cpu.run(|| {
                y.par_chunks_exact_mut(image)
                    .zip(x.par_chunks_exact(image))
                    .map_init(
                        || self.work.take(),
                        |lease, (y, x)| match lease {
                            Ok(work) => {
                                for part in 0..self.parts.count {
                                    stop.check()?;
                                    self.convolve(&passes, 1, work, Input::plain(x, part), y);
                                }
                                Ok(())
                            }
                            Err(error) => Err(error.clone()),
                        },
                    )
                    .collect()
            });
        }
        let mut work = self.work.take()?;
        cpu.run(|| {
            for (y, x) in y.chunks_exact_mut(image).zip(x.chunks_exact(image)) {
                for part in 0..self.parts.count {
                    stop.check()?;
                    self.convolve(&passes, cpu.threads(), &mut work, Input::plain(x, part), y);
                }
            }
            stop.check()
        })
    }

    pub(in crate::toeplitz) fn apply_sense(
        &self,
        cpu: &Cpu,
        image: &[Complex<R>],
        maps: &[Complex<R>],
        y: &mut [Complex<R>],
        add: bool,
    ) -> Result<()> {
        let (passes, stop) = (self.passes(cpu), Stop::of_caller());
        let threads = cpu.threads();
        let together = buffers::<R>(self.work.len, threads, self.most.min(maps.len() / image.len()));
        let mut buffers = (0..together).map(|_| self.work.take()).collect::<Result<Vec<_>>>()?;
        cpu.run(|| {
            // One order of the sum for any number of threads: part by part, coil by coil.
            for part in 0..self.parts.count {
                let coil = |index: usize, map| Input { image, map: Some(map), part, add: add || index > 0 };
                let maps = maps.chunks_exact(image.len()).enumerate();
                let coils: Vec<_> = maps.map(|(index, map)| coil(index, map)).collect();
                for coils in coils.chunks(together) {
                    stop.check()?;
                    if let [coil] = coils {
                        self.convolve(&passes, threads, &mut buffers[0], *coil, y);
                    } else {
                        self.convolve_together(&passes, &mut buffers, coils, part, y);
                    }
                }
            }
            stop.check()
        })
    }

    fn passes(&self, cpu: &Cpu) -> Passes<R> {
        let [_, n1, _] = self.matrix;
        let ([_, p1, _], width) = (self.padded, self.parts.width);
        let middle = |direction, read: Range<usize>, write: Range<usize>| {
            let map = LineMap::new(p1, 0, std::slice::from_ref(&read), std::slice::from_ref(&write));
            LinePass::new(&self.engine, 1, direction, cpu.level(), width, map)
        };
        Passes {
            forward: middle(Direction::Forward, 0..n1, 0..p1),
            inverse: middle(Direction::Inverse, 0..p1, 0..n1),
            level: cpu.level(),
            blocks: blocks(&(0..p1 * width).collect::<Vec<_>>()),
            plane: p1 * width,
            planes: (TASK_ELEMENTS / (p1 * width)).max(1),
        }
    }

    /// One image on `threads` threads of the current pool.
    fn convolve(
        &self,
        passes: &Passes<R>,
        threads: usize,
        work: &mut [Complex<R>],
        input: Input<'_, R>,
        y: &mut [Complex<R>],
    ) {
        let Passes { plane, planes, .. } = *passes;
        let [_, n1, n2] = self.matrix;
        let fused = Fused { convolution: self, level: passes.level, part: input.part };
        if threads == 1 {
            let mut scratch = self.scratch(passes);
            self.forward(&mut scratch, input, 0, work);
            for_each_block(vec![&mut *work], plane, &passes.blocks, 1, &fused);
            self.inverse(&mut scratch, input, 0, work, y);
            return;
        }
        let scratch = || self.scratch(passes);
        work.par_chunks_mut(planes * plane).enumerate().for_each_init(scratch, |scratch, (index, work)| {
            self.forward(scratch, input, index * planes, work);
        });
        for_each_block(vec![&mut *work], plane, &passes.blocks, threads, &fused);
        work.par_chunks_mut(planes * plane)
            .zip(y.par_chunks_mut(planes * n1 * n2))
            .enumerate()
            .for_each_init(scratch, |scratch, (index, (work, y))| {
                self.inverse(scratch, input, index * planes, work, y);
            });
    }

    /// A few coils at once, one a thread until their results are added, in the order of the coils: the sum
    /// does not depend on the number of threads. Threads wait for each other twice for each group of coils,
    /// and not three times for each coil.
    fn convolve_together(
        &self,
        passes: &Passes<R>,
        buffers: &mut [Lease<'_, R>],
        coils: &[Input<'_, R>],
        part: usize,
        y: &mut [Complex<R>],
    ) {
        let Passes { plane, planes, .. } = *passes;
        let [_, n1, n2] = self.matrix;
        let scratch = || self.scratch(passes);
        let fused = Fused { convolution: self, level: passes.level, part };
        buffers[..coils.len()].par_iter_mut().zip(coils).for_each_init(scratch, |scratch, (work, coil)| {
            self.forward(scratch, *coil, 0, work);
            for_each_block(vec![&mut **work], plane, &passes.blocks, 1, &fused);
        });
        // For each group of planes, the same planes of every coil.
        let mut groups: Vec<Vec<&mut [Complex<R>]>> = Vec::new();
        groups.resize_with(self.matrix[0].div_ceil(planes), Vec::new);
        for work in &mut buffers[..coils.len()] {
            for (group, work) in groups.iter_mut().zip(work.chunks_mut(planes * plane)) {
                group.push(work);
            }
        }
        groups.into_par_iter().zip(y.par_chunks_mut(planes * n1 * n2)).enumerate().for_each_init(
            scratch,
            |scratch, (index, (of_coils, y))| {
                for (work, coil) in of_coils.into_iter().zip(coils) {
                    self.inverse(scratch, *coil, index * planes, work, y);
                }
            },
        );
    }

    fn scratch<'a>(&self, passes: &'a Passes<R>) -> PlaneScratch<'a, R> {
        let zero = Complex::new(R::zero(), R::zero());
        let last = |direction| self.engine.line(2, direction).get_inplace_scratch_len();
        PlaneScratch {
            passes,
            fft: vec![zero; last(Direction::Forward).max(last(Direction::Inverse))],
            middle: Scratch::new([&passes.forward, &passes.inverse]),
        }
    }

    /// Some planes of the image from plane `first` on, padded and transformed along the last and the middle
    /// axis.
    fn forward(
        &self,
        scratch: &mut PlaneScratch<'_, R>,
        input: Input<'_, R>,
        first: usize,
        work: &mut [Complex<R>],
    ) {
        let (passes, [_, n1, n2]) = (scratch.passes, self.matrix);
        let width = self.parts.width;
        let fft = self.engine.line(2, Direction::Forward);
        let turn = (input.part > 0).then(|| &self.turn[..n2]);
        let lines =
            work.chunks_exact_mut(passes.plane).flat_map(|plane| plane.chunks_exact_mut(width).take(n1));
        for (index, line) in lines.enumerate() {
            let (inside, padding) = line.split_at_mut(n2);
            let row = (first * n1 + index) * n2..(first * n1 + index + 1) * n2;
            let map = input.map.map(|map| &map[row.clone()]);
            let how = Weigh { conjugate: false, add: false };
            weigh(passes.level, how, &input.image[row], [map, turn], inside);
            padding.fill(Complex::new(R::zero(), R::zero()));
            fft.process_with_scratch(line, &mut scratch.fft);
        }
        if self.padded[1] > 1 {
            for plane in work.chunks_exact_mut(passes.plane) {
                passes.forward.run(plane, &mut scratch.middle);
            }
        }
    }

    /// Transforms some planes back along the middle and the last axis, and crops them to the planes of the
    /// result from plane `first` on.
    fn inverse(
        &self,
        scratch: &mut PlaneScratch<'_, R>,
        input: Input<'_, R>,
        first: usize,
        work: &mut [Complex<R>],
        y: &mut [Complex<R>],
    ) {
        let (passes, [_, n1, n2]) = (scratch.passes, self.matrix);
        let width = self.parts.width;
        if self.padded[1] > 1 {
            for plane in work.chunks_exact_mut(passes.plane) {
                passes.inverse.run(plane, &mut scratch.middle);
            }
        }
        let fft = self.engine.line(2, Direction::Inverse);
        let turn = (input.part > 0).then(|| &self.turn[..n2]);
        let lines =
            work.chunks_exact_mut(passes.plane).flat_map(|plane| plane.chunks_exact_mut(width).take(n1));
        for (index, (line, y)) in lines.zip(y.chunks_exact_mut(n2)).enumerate() {
            fft.process_with_scratch(line, &mut scratch.fft);
            let map = input.map.map(|map| &map[(first * n1 + index) * n2..][..n2]);
            let how = Weigh { conjugate: true, add: input.add || input.part > 0 };
            weigh(passes.level, how, &line[..n2], [map, turn], y);
        }
    }
}

impl<'a, R> Input<'a, R> {
    fn plain(image: &'a [Complex<R>], part: usize) -> Self {
        Self { image, map: None, part, add: false }
    }
}

/// How values are multiplied by factors: forward, or back by the conjugate factors, and whether the products
/// are added to what is there.
#[derive(Clone, Copy)]
struct Weigh {
    conjugate: bool,
    add: bool,
}

/// Each value times its factors, as far as there are any.
fn weigh<R: SimdReal>(
    level: Level,
    how: Weigh,
    values: &[Complex<R>],
    factors: [Option<&[Complex<R>]>; 2],
    out: &mut [Complex<R>],
) {
    match factors {
        [Some(one), Some(other)] => {
            dispatch!(level, simd => products(simd, how, values, [one, other], &mut *out));
        }
        [Some(one), None] | [None, Some(one)] => {
            dispatch!(level, simd => products(simd, how, values, [one], &mut *out));
        }
        [None, None] => dispatch!(level, simd => products(simd, how, values, [], &mut *out)),
    }
}

#[inline(always)]
fn products<S: Simd, R: SimdReal, const N: usize>(
    simd: S,
    how: Weigh,
    values: &[Complex<R>],
    factors: [&[Complex<R>]; N],
    out: &mut [Complex<R>],
) {
    let len = Lanes::<S, R>::LEN;
    let whole = values.len() / len * len;
    let sign = if how.conjugate { -R::one() } else { R::one() };
    let signs = Lanes::<S, R>::splat(simd, sign);
    for first in (0..whole).step_by(len) {
        let part = first..first + len;
        let mut value = load_complex::<S, R>(simd, &values[part.clone()]);
        for factor in factors {
            let (re, im) = load_complex::<S, R>(simd, &factor[part.clone()]);
            value = complex_mul::<S, R>(value, (re, im * signs));
        }
        if how.add {
            let before = load_complex::<S, R>(simd, &out[part.clone()]);
            value = (before.0 + value.0, before.1 + value.1);
        }
        store_complex::<S, R>(value.0, value.1, &mut out[part]);
    }
    for i in whole..values.len() {
        let mut value = values[i];
        for factor in factors {
            value *= Complex::new(factor[i].re, factor[i].im * sign);
        }
        out[i] = if how.add { out[i] + value } else { value };
    }
}

/// What one thread needs for the last and the middle axis.
struct PlaneScratch<'a, R: Real> {
    passes: &'a Passes<R>,
    fft: Vec<Complex<R>>,
    middle: Scratch<R>,
}

/// What [`Convolution::convolve`] needs beside the plan; cheap to make, made once a call.
struct Passes<R: Real> {
    forward: LinePass<R>,
    inverse: LinePass<R>,
    level: Level,
    blocks: Vec<Range<usize>>,
    /// Elements of a plane of the work buffer.
    plane: usize,
    /// Planes that one task takes.
    planes: usize,
}

/// Pad, transform, multiply, transform back and crop along the first axis, a block of columns at a time.
struct Fused<'a, R: Real> {
    convolution: &'a Convolution<R>,
    level: Level,
    part: usize,
}

impl<R: SimdReal> BlockWork<R> for Fused<'_, R> {
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
        let first = &self.convolution.first;
        let Convolution { spectrum, parts, padded, .. } = self.convolution;
        let (of_part, block) = (spectrum.len() / parts.count * self.part, padded[0] * COLUMNS);
        let spectrum = &spectrum[of_part + index * block..][..block];
        first.convolve(self.level, &mut rows.columns(columns), spectrum, buffer);
    }
}
