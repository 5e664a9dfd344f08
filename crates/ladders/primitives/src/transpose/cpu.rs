//! Tiles that a core's first-level cache holds, turned in registers, by all cores.

use bytemuck::Pod;
use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

/// The side of a tile: 16 KB of f32, read by rows of four cache lines and written by such.
const TILE: usize = 64;

/// An element at a time; A is read by rows.
pub(super) fn naive<T: Pod>(rows: usize, columns: usize, a: &[T], b: &mut [T]) {
    for y in 0..rows {
        for x in 0..columns {
            b[x * rows + y] = a[y * columns + x];
        }
    }
}

/// An element at a time, tile by tile.
pub(super) fn tiled<T: Pod>(rows: usize, columns: usize, a: &[T], b: &mut [T]) {
    for y in (0..rows).step_by(TILE) {
        for x in (0..columns).step_by(TILE) {
            for i in x..(x + TILE).min(columns) {
                for j in y..(y + TILE).min(rows) {
                    b[i * rows + j] = a[j * columns + i];
                }
            }
        }
    }
}

/// Moves elements of one size: SIDE×SIDE of them are turned at once.
trait Block: Pod + Send + Sync {
    const SIDE: usize;
    /// `from` begins at the first of SIDE rows that are `pitch` apart; `to` alike, TILE apart.
    fn turn<S: Simd>(simd: S, from: &[Self], pitch: usize, to: &mut [Self]);
}

/// Rows i and i + SIDE/2 zipped, over and over: after log₂ SIDE rounds the rows are columns.
macro_rules! block {
    ($t:ty, $vector:ident, $side:literal, $rounds:literal) => {
        impl Block for $t {
            const SIDE: usize = $side;
            #[inline(always)]
            fn turn<S: Simd>(simd: S, from: &[Self], pitch: usize, to: &mut [Self]) {
                use fearless_simd::$vector;
                let mut rows = [$vector::<S>::splat(simd, 0 as $t); $side];
                for j in 0..$side {
                    rows[j] = $vector::from_slice(simd, &from[j * pitch..j * pitch + $side]);
                }
                for _ in 0..$rounds {
                    let before = rows;
                    for j in 0..$side / 2 {
                        let (low, high) = before[j].interleave(before[j + $side / 2]);
                        rows[2 * j] = low;
                        rows[2 * j + 1] = high;
                    }
                }
                for j in 0..$side {
                    rows[j].store_slice(&mut to[j * TILE..j * TILE + $side]);
                }
            }
        }
    };
}
block!(u8, u8x16, 16, 4);
block!(u16, u16x8, 8, 3);
block!(u32, u32x8, 8, 3);
block!(u64, u64x4, 4, 2);

/// What no vector holds in number.
impl<const N: usize> Block for [u32; N]
where
    [u32; N]: Pod,
{
    const SIDE: usize = 1;
    #[inline(always)]
    fn turn<S: Simd>(_: S, from: &[Self], _: usize, to: &mut [Self]) {
        to[0] = from[0];
    }
}

/// `a` and `b` as words of the size of their elements, whatever they mean.
macro_rules! as_words {
    ($a:ident, $b:ident, $body:expr) => {{
        macro_rules! attempt {
            ($word:ty) => {
                if let (Ok($a), Ok($b)) =
                    (bytemuck::try_cast_slice::<T, $word>($a), bytemuck::try_cast_slice_mut::<T, $word>($b))
                {
                    return $body;
                }
            };
        }
        match size_of::<T>() {
            1 => attempt!(u8),
            2 => attempt!(u16),
            4 => attempt!(u32),
            8 => {
                attempt!(u64);
                // Pairs of f32 need not lie where a u64 may.
                attempt!([u32; 2]);
            }
            16 => attempt!([u32; 4]),
            _ => {}
        }
    }};
}

/// One thread, tiles turned by vectors.
pub(super) fn simd<T: Pod>(level: Level, rows: usize, columns: usize, a: &[T], b: &mut [T]) {
    if a.is_empty() {
        return;
    }
    as_words!(a, b, {
        for (band, b) in b.chunks_mut(TILE * rows).enumerate() {
            of_band(level, a, columns, band * TILE, 0, &mut b.chunks_mut(rows).collect::<Vec<_>>());
        }
    });
    tiled(rows, columns, a, b);
}

/// All threads: bands of B's rows, or parts of all of them where there are too few.
pub(super) fn threads<T: Pod + Send + Sync>(cpu: &Cpu, rows: usize, columns: usize, a: &[T], b: &mut [T]) {
    if a.is_empty() {
        return;
    }
    let level = cpu.level();
    let tasks = 4 * cpu.threads();
    as_words!(a, b, {
        cpu.run(|| {
            if columns >= tasks * TILE || columns > rows {
                // A cache line of f32 at least.
                let high = columns.div_ceil(tasks).next_multiple_of(16).min(TILE);
                b.par_chunks_mut(high * rows).enumerate().for_each(|(band, b)| {
                    of_band(level, a, columns, band * high, 0, &mut b.chunks_mut(rows).collect::<Vec<_>>());
                });
            } else {
                let long = rows.div_ceil(tasks).next_multiple_of(TILE);
                let mut parts: Vec<Vec<&mut [_]>> = (0..rows.div_ceil(long)).map(|_| Vec::new()).collect();
                for row in b.chunks_mut(rows) {
                    for (part, piece) in parts.iter_mut().zip(row.chunks_mut(long)) {
                        part.push(piece);
                    }
                }
                parts.into_par_iter().enumerate().for_each(|(part, mut b)| {
                    for (band, b) in b.chunks_mut(TILE).enumerate() {
                        of_band(level, a, columns, band * TILE, part * long, b);
                    }
                });
            }
        });
    });
    tiled(rows, columns, a, b);
}

/// Rows of B: columns of A from `x` on, its rows from `y` on.
fn of_band<W: Block>(level: Level, a: &[W], columns: usize, x: usize, y: usize, b: &mut [&mut [W]]) {
    #[inline(always)]
    fn body<S: Simd, W: Block>(simd: S, a: &[W], columns: usize, x: usize, y: usize, b: &mut [&mut [W]]) {
        // Rows of A whose pitch is a power of two fall on the same lines of a cache, and so do rows of B. So
        // a tile is transposed into a piece of memory of its own, from which whole lines go out.
        let mut tile = [W::zeroed(); TILE * TILE];
        let wide = b.len().min(TILE);
        let rows = b.first().map_or(0, |row| row.len());
        let whole_wide = wide / W::SIDE * W::SIDE;
        for from in (0..rows).step_by(TILE) {
            let high = (rows - from).min(TILE);
            let whole_high = high / W::SIDE * W::SIDE;
            let a = &a[(y + from) * columns + x..];
            for j in (0..whole_high).step_by(W::SIDE) {
                for i in (0..whole_wide).step_by(W::SIDE) {
                    W::turn(simd, &a[j * columns + i..], columns, &mut tile[i * TILE + j..]);
                }
            }
            for j in 0..high {
                let begin = if j < whole_high { whole_wide } else { 0 };
                for i in begin..wide {
                    tile[i * TILE + j] = a[j * columns + i];
                }
            }
            for (row, tile) in b.iter_mut().zip(tile.chunks_exact(TILE)) {
                row[from..from + high].copy_from_slice(&tile[..high]);
            }
        }
    }
    dispatch!(level, simd => body(simd, a, columns, x, y, b));
}
