use std::ops::Range;

use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::block::{Quantizer, bits, signed};
use super::{MOST_RADIUS, Problem, SIDE, displacement, key, pixel};

/// What some rows of macroblocks become.
pub(super) struct Rows<'a> {
    pub(super) vectors: &'a mut [[i16; 2]],
    pub(super) levels: &'a mut [[i16; 16]],
    pub(super) bits: &'a mut [u32],
    pub(super) reconstruction: &'a mut [u8],
}

impl<'a> Rows<'a> {
    fn each(self, p: &Problem) -> Vec<Rows<'a>> {
        let blocks = 4 * p.across();
        let vectors = self.vectors.chunks_mut(p.macroblocks()[1]);
        let (levels, bits) = (self.levels.chunks_mut(blocks), self.bits.chunks_mut(blocks));
        let reconstruction = self.reconstruction.chunks_mut(SIDE * p.width);
        let zipped = vectors.zip(levels).zip(bits).zip(reconstruction);
        let row =
            |(((vectors, levels), bits), reconstruction)| Rows { vectors, levels, bits, reconstruction };
        zipped.map(row).collect()
    }
}

/// Codes a frame, on one thread or on the threads of `cpu`: `find` gives a macroblock's displacement.
pub(super) fn encode(
    cpu: Option<&Cpu>,
    frames: [&[u8]; 2],
    p: &Problem,
    q: &Quantizer,
    coded: Rows<'_>,
    find: impl Fn([usize; 2]) -> [i16; 2] + Sync,
) {
    let row = |(i, mut row): (usize, Rows<'_>)| {
        for j in 0..row.vectors.len() {
            row.vectors[j] = find([i, j]);
            code(frames, p, q, [i, j], &mut row);
        }
    };
    let rows = coded.each(p);
    match cpu {
        None => rows.into_iter().enumerate().for_each(row),
        Some(cpu) => cpu.run(|| rows.into_par_iter().enumerate().for_each(row)),
    }
}

/// Codes the blocks of a macroblock whose displacement is known.
fn code(
    [current, reference]: [&[u8]; 2],
    p: &Problem,
    q: &Quantizer,
    macroblock: [usize; 2],
    to: &mut Rows<'_>,
) {
    let [v, u] = to.vectors[macroblock[1]];
    let [ys, xs]: [Range<usize>; 2] = p.pixels(macroblock);
    let mut of_vector = signed(v.into()) + signed(u.into());
    for y in ys.step_by(4) {
        for x in xs.clone().step_by(4) {
            let block_of = |frame, dy: i16, dx: i16| -> [i32; 16] {
                let place =
                    |k: usize| [(y + k / 4) as isize + dy as isize, (x + k % 4) as isize + dx as isize];
                std::array::from_fn(|k| i32::from(pixel(frame, p, place(k)[0], place(k)[1])))
            };
            let (mut pixels, predicted) = (block_of(current, 0, 0), block_of(reference, v, u));
            for (pixel, predicted) in pixels.iter_mut().zip(&predicted) {
                *pixel -= predicted;
            }
            let levels = q.levels(&pixels);
            let residual = q.residual(&levels);
            let block = (y / 4 - 4 * macroblock[0]) * p.across() + x / 4;
            to.levels[block] = levels;
            to.bits[block] = bits(&levels) + std::mem::take(&mut of_vector);
            for k in (0..16).filter(|k| y + k / 4 < p.height && x + k % 4 < p.width) {
                let decoded = (predicted[k] + residual[k]).clamp(0, 255) as u8;
                to.reconstruction[(y + k / 4 - SIDE * macroblock[0]) * p.width + x + k % 4] = decoded;
            }
        }
    }
}

/// Side of what the displacements of a macroblock reach, at most.
const REACH: usize = SIDE + 2 * MOST_RADIUS;

/// The displacement of a macroblock, 16 differences at a time.
pub(super) fn search(level: Level, frames: [&[u8]; 2], p: &Problem, macroblock: [usize; 2]) -> [i16; 2] {
    dispatch!(level, simd => search_of(simd, frames, p, macroblock))
}

#[inline(always)]
fn search_of<S: Simd>(
    _: S,
    [current, reference]: [&[u8]; 2],
    p: &Problem,
    macroblock: [usize; 2],
) -> [i16; 2] {
    let ([ys, xs], side) = (p.pixels(macroblock), p.side());
    let (mut pixels, mut window) = ([[0; SIDE]; SIDE], [[0; REACH]; REACH]);
    let fill = |to: &mut [u8], frame, y, x: isize| {
        (x..).zip(to).for_each(|(x, to)| *to = pixel(frame, p, y, x));
    };
    for (y, row) in (ys.start as isize..).zip(&mut pixels) {
        fill(row, current, y, xs.start as isize);
    }
    let [top, left] = [&ys, &xs].map(|range| range.start as isize - p.radius as isize);
    for (y, row) in (top..).zip(&mut window[..ys.len() + 2 * p.radius]) {
        fill(&mut row[..xs.len() + 2 * p.radius], reference, y, left);
    }
    let mut best = u64::MAX;
    for index in 0..side * side {
        let (v, u) = (index / side, index % side);
        // A sum for each column: at most 16 · 255 fits 16 bits.
        let mut sums = [0u16; SIDE];
        for (row, there) in pixels[..ys.len()].iter().zip(&window[v..]) {
            let Some(there) = there[u..].first_chunk::<SIDE>() else { continue };
            for x in 0..SIDE {
                sums[x] += u16::from(row[x].abs_diff(there[x]));
            }
        }
        let sum = sums[..xs.len()].iter().map(|&sum| u32::from(sum)).sum();
        best = best.min(key(p, index, sum));
    }
    displacement(p, best)
}

/// Displacements whose sums are added at a time.
const WIDTH: usize = 64;

/// The displacement of a macroblock from the sums of its blocks of 4 × 4.
pub(super) fn from_sums(sums: &[u16], p: &Problem, [i, j]: [usize; 2]) -> [i16; 2] {
    let displacements = p.side() * p.side();
    let blocks = (4 * i..p.down().min(4 * i + 4))
        .flat_map(|y| (4 * j..p.across().min(4 * j + 4)).map(move |x| y * p.across() + x));
    let group = |from: usize| {
        // Sixteen sums of at most 4080 fit 16 bits.
        let (mut added, here) = ([0u16; WIDTH], WIDTH.min(displacements - from));
        for block in blocks.clone() {
            for (sum, of_block) in added.iter_mut().zip(&sums[block * displacements + from..][..here]) {
                *sum += of_block;
            }
        }
        added.into_iter().take(here)
    };
    let keys = (0..displacements).step_by(WIDTH).flat_map(group).enumerate();
    displacement(p, keys.map(|(index, sum)| key(p, index, sum.into())).min().unwrap_or(0))
}
