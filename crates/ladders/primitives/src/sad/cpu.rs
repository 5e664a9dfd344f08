use rayon::prelude::*;
use rayspin_core::{Result, voxels};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, dispatch};
use rayspin_device::cpu::zeroed;

use super::{Problem, reference};

/// Displacements along x at a time: u16 sums that fill one to four vectors.
const WIDTH: usize = 16;

pub(super) fn scalar(current: &[u8], reference_frame: &[u8], sums: &mut [u16], p: &Problem) {
    let (side, across) = (p.side(), p.across());
    for (block, sums) in sums.chunks_exact_mut(side * side).enumerate() {
        for (i, sum) in sums.iter_mut().enumerate() {
            let place = [block / across, block % across, i / side, i % side];
            *sum = reference::sum(current, reference_frame, p, place);
        }
    }
}

/// Both frames with their edges continued, as far as displacements and whole vectors reach.
pub(super) struct Padded {
    current: Vec<u8>,
    reference: Vec<u8>,
}

impl Padded {
    pub(super) fn new(p: &Problem) -> Result<Self> {
        let room = |rows: usize, row: usize| zeroed("padded frames", voxels(&[rows, row])?);
        let rows = 4 * p.down();
        Ok(Self {
            current: room(rows, 4 * p.across())?,
            reference: room(rows + 2 * p.radius, reference_row(p))?,
        })
    }

    fn fill(&mut self, current: &[u8], reference: &[u8], p: &Problem) {
        pad(current, &mut self.current, 4 * p.across(), 0, p);
        pad(reference, &mut self.reference, reference_row(p), p.radius, p);
    }
}

fn reference_row(p: &Problem) -> usize {
    4 * p.across() + p.side().next_multiple_of(WIDTH)
}

fn pad(frame: &[u8], to: &mut [u8], row: usize, margin: usize, p: &Problem) {
    for (y, to) in to.chunks_exact_mut(row).enumerate() {
        let from = &frame[y.saturating_sub(margin).min(p.height - 1) * p.width..][..p.width];
        let (left, rest) = to.split_at_mut(margin.min(row));
        left.fill(from[0]);
        let within = p.width.min(rest.len());
        let (middle, right) = rest.split_at_mut(within);
        middle.copy_from_slice(&from[..within]);
        right.fill(from[p.width - 1]);
    }
}

/// On one thread, or on the threads of `cpu`.
pub(super) fn simd(
    level: Level,
    cpu: Option<&Cpu>,
    [current, reference]: [&[u8]; 2],
    padded: &mut Padded,
    sums: &mut [u16],
    p: &Problem,
) {
    padded.fill(current, reference, p);
    let (padded, line) = (&*padded, p.across() * p.side() * p.side());
    let row = |(by, sums): (usize, &mut [u16])| {
        dispatch!(level, simd => row_of(simd, padded, by, sums, p));
    };
    match cpu {
        None => sums.chunks_exact_mut(line).enumerate().for_each(row),
        Some(cpu) => cpu.run(|| sums.par_chunks_exact_mut(line).enumerate().for_each(row)),
    }
}

/// All blocks of a row. Plain loops over arrays of fixed length, which the compiler makes vectors of.
#[inline(always)]
fn row_of<S: rayspin_device::cpu::simd::Simd>(
    _: S,
    padded: &Padded,
    by: usize,
    sums: &mut [u16],
    p: &Problem,
) {
    let (side, wide, row) = (p.side(), 4 * p.across(), reference_row(p));
    for (bx, sums) in sums.chunks_exact_mut(side * side).enumerate() {
        let mut pixels = [[0; 4]; 4];
        for (r, pixels) in pixels.iter_mut().enumerate() {
            pixels.copy_from_slice(&padded.current[(4 * by + r) * wide + 4 * bx..][..4]);
        }
        for (dy, sums) in sums.chunks_exact_mut(side).enumerate() {
            for (group, sums) in sums.chunks_mut(WIDTH).enumerate() {
                let mut made = [0u16; WIDTH];
                for (r, pixels) in pixels.iter().enumerate() {
                    let line = &padded.reference[(4 * by + r + dy) * row + 4 * bx + group * WIDTH..];
                    for (c, &pixel) in pixels.iter().enumerate() {
                        let Some(others) = line[c..].first_chunk::<WIDTH>() else { continue };
                        for (sum, other) in made.iter_mut().zip(others) {
                            *sum += u16::from(pixel.abs_diff(*other));
                        }
                    }
                }
                sums.copy_from_slice(&made[..sums.len()]);
            }
        }
    }
}
