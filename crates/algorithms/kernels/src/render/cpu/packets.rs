//! Pictures in packets: neighbouring rays fill a vector, and the rays of a tile of pixels walk through the
//! volume together, a layer of blocks at a time.
//!
//! All rays of a group have one main axis and run the same way along it, so that they are in the same cells
//! at the same time. What a layer shows the group is found once: whether any block in it matters, and whether
//! all rays stay between voxels, so that no place must be clamped. The voxels of a layer that a tile sees fit
//! into the first-level cache.
#![allow(
    unsafe_code,
    reason = "voxels are read at places that were clamped to the volume, without another test"
)]

use std::ops::Range;

use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Simd, dispatch};

use super::Input;
use super::group::Group;
use super::rays::{Field, cores};
use super::shade::{First, Glow, Largest, Sample, Shade, Sum};
use crate::render::blocks::SIDE;
use crate::render::ray::{AXES, Ray, Setup, planes};
use crate::render::{Mode, Transfer};

/// Pixels along each side of a tile.
const TILE: usize = 16;
/// Pixels of a tile.
pub(super) const RAYS: usize = TILE * TILE;
/// Numbers of the widest vector.
const MOST_LANES: usize = 16;

/// The volume along one main axis.
#[derive(Clone, Copy)]
struct Planes<'a> {
    values: &'a [f32],
    count: usize,
    samples: usize,
    /// Voxels along b and c.
    sizes: [usize; 2],
    /// Distances of neighbours along the main axis, b and c.
    strides: [usize; 3],
    /// Blocks along the three axes, and their distances.
    blocks: [usize; 3],
    block_strides: [usize; 3],
}

impl<'a> Planes<'a> {
    fn new(input: &Input<'a>, setup: &Setup, main: usize) -> Self {
        let order = |values: [usize; 3]| AXES[main].map(|axis| values[axis]);
        let blocks = input.blocks.size;
        let [count, b, c] = order(setup.size);
        Self {
            values: input.voxels.values,
            count,
            samples: setup.cells(main).0,
            sizes: [b, c],
            strides: order(input.voxels.strides),
            blocks: order(blocks),
            block_strides: order([1, blocks[0], blocks[0] * blocks[1]]),
        }
    }
}

/// The largest of the numbers of the blocks of a layer that lie around a range of places along b and c.
fn key(planes: &Planes<'_>, keys: &[f32], layer: usize, bounds: [[f32; 2]; 2]) -> f32 {
    let range = |axis: usize| -> Range<usize> {
        let most = planes.sizes[axis] as f32 - 1.0;
        let block = |place: f32| place.clamp(0.0, most) as usize / SIDE;
        block(bounds[axis][0])..(block(bounds[axis][1]) + 1).min(planes.blocks[axis + 1])
    };
    let (along, [a, b, c]) = (range(0), planes.block_strides);
    let mut most = f32::NEG_INFINITY;
    for k in range(1) {
        for j in along.clone() {
            most = most.max(keys[layer * a + j * b + k * c]);
        }
    }
    most
}

/// The smallest and the largest place along b and c of a group's rays in two cells.
#[inline(always)]
fn bounds<S: Simd>(simd: S, group: &Group, cells: [f32; 2]) -> [[f32; 2]; 2] {
    let lanes = S::f32s::LEN;
    let mut out = [[f32::INFINITY, f32::NEG_INFINITY]; 2];
    for (out, (start, gain)) in out.iter_mut().zip([(&group.b, &group.db), (&group.c, &group.dc)]) {
        let mut low = S::f32s::splat(simd, f32::INFINITY);
        let mut high = S::f32s::splat(simd, f32::NEG_INFINITY);
        for first in (0..group.count).step_by(lanes) {
            let start = S::f32s::from_slice(simd, &start[first..first + lanes]);
            let gain = S::f32s::from_slice(simd, &gain[first..first + lanes]);
            for cell in cells {
                let place = gain.mul_add(S::f32s::splat(simd, cell), start);
                low = low.min(place);
                high = high.max(place);
            }
        }
        for lane in 0..lanes {
            *out = [out[0].min(low[lane]), out[1].max(high[lane])];
        }
    }
    out
}

/// Voxels of a plane around places whose index below is `index`, and between them.
///
/// # Safety
/// `plane` and all of `index`, with the steps along b and c, lie in the volume.
#[inline(always)]
unsafe fn bilinear<S: Simd>(
    simd: S,
    plane: *const f32,
    index: &S::i32s,
    [beside, below]: [usize; 2],
    [fb, fc]: [S::f32s; 2],
) -> S::f32s {
    let lanes = S::f32s::LEN;
    let (v00, v10, v01, v11);
    if beside == 1 {
        // Neighbours in memory are read together: half as many reads.
        let mut pairs = [[0.0f32; 2 * MOST_LANES]; 2];
        for lane in 0..lanes {
            // SAFETY: by the contract.
            let [upper, lower] = unsafe {
                let corner = plane.add(index[lane] as usize);
                [corner.cast::<[f32; 2]>().read(), corner.add(below).cast::<[f32; 2]>().read()]
            };
            pairs[0][2 * lane..2 * lane + 2].copy_from_slice(&upper);
            pairs[1][2 * lane..2 * lane + 2].copy_from_slice(&lower);
        }
        let [upper, lower] = &pairs;
        let first = S::f32s::from_slice(simd, &upper[..lanes]);
        (v00, v10) = first.deinterleave(S::f32s::from_slice(simd, &upper[lanes..2 * lanes]));
        let first = S::f32s::from_slice(simd, &lower[..lanes]);
        (v01, v11) = first.deinterleave(S::f32s::from_slice(simd, &lower[lanes..2 * lanes]));
    } else {
        let mut corners = [[0.0f32; MOST_LANES]; 4];
        for lane in 0..lanes {
            // SAFETY: by the contract.
            unsafe {
                let corner = plane.add(index[lane] as usize);
                corners[0][lane] = *corner;
                corners[1][lane] = *corner.add(beside);
                corners[2][lane] = *corner.add(below);
                corners[3][lane] = *corner.add(below + beside);
            }
        }
        v00 = S::f32s::from_slice(simd, &corners[0][..lanes]);
        v10 = S::f32s::from_slice(simd, &corners[1][..lanes]);
        v01 = S::f32s::from_slice(simd, &corners[2][..lanes]);
        v11 = S::f32s::from_slice(simd, &corners[3][..lanes]);
    }
    let low = (v10 - v00).mul_add(fb, v00);
    let high = (v11 - v01).mul_add(fb, v01);
    (high - low).mul_add(fc, low)
}

/// Walks a group through some cells. `EDGE`: some ray starts, ends or leaves the voxels' centres there; else
/// none does. `key`: the largest number of the blocks.
#[inline(always)]
fn walk<S: Simd, M: Shade, const EDGE: bool, const BETWEEN: bool>(
    simd: S,
    shade: M,
    volume: &Planes<'_>,
    group: &mut Group,
    cells: Range<usize>,
    key: f32,
) -> bool {
    let lanes = S::f32s::LEN;
    let zero = S::f32s::splat(simd, 0.0);
    let one = S::f32s::splat(simd, 1.0);
    let mut done = true;
    let most = [
        S::f32s::splat(simd, (volume.sizes[0] - 1) as f32),
        S::f32s::splat(simd, (volume.sizes[1] - 1) as f32),
    ];
    // The index below the last voxel, so that there is a next one. An axis of one voxel has it twice.
    let last = [
        S::f32s::splat(simd, volume.sizes[0].saturating_sub(2) as f32),
        S::f32s::splat(simd, volume.sizes[1].saturating_sub(2) as f32),
    ];
    let [a, b, c] = volume.strides;
    let next = [if volume.sizes[0] > 1 { b } else { 0 }, if volume.sizes[1] > 1 { c } else { 0 }];
    let (b, c) = (S::i32s::splat(simd, b as i32), S::i32s::splat(simd, c as i32));
    for first in (0..group.count).step_by(lanes) {
        let part = first..first + lanes;
        let mut state = [zero; 4];
        for (state, from) in state.iter_mut().zip(&group.state) {
            *state = S::f32s::from_slice(simd, &from[part.clone()]);
        }
        if shade.is_done(simd, &state, key) {
            done &= shade.is_done(simd, &state, f32::INFINITY);
            continue;
        }
        let start = [
            S::f32s::from_slice(simd, &group.b[part.clone()]),
            S::f32s::from_slice(simd, &group.c[part.clone()]),
        ];
        let gain = [
            S::f32s::from_slice(simd, &group.db[part.clone()]),
            S::f32s::from_slice(simd, &group.dc[part.clone()]),
        ];
        let low = S::f32s::from_slice(simd, &group.low[part.clone()]);
        let high = S::f32s::from_slice(simd, &group.high[part.clone()]);
        let step = S::f32s::from_slice(simd, &group.step[part.clone()]);
        for turn in 0..cells.len() {
            let cell = if group.ascending { cells.start + turn } else { cells.end - 1 - turn };
            // A signed number of 32 bits becomes a float in one instruction.
            let at_cell = cell as i32 as f32;
            let k = S::f32s::splat(simd, at_cell);
            let mut place_b = gain[0].mul_add(k, start[0]);
            let mut place_c = gain[1].mul_add(k, start[1]);
            if EDGE {
                place_b = place_b.max(zero).min(most[0]);
                place_c = place_c.max(zero).min(most[1]);
            }
            let mut below_b = place_b.floor();
            let mut below_c = place_c.floor();
            if EDGE {
                below_b = below_b.min(last[0]);
                below_c = below_c.min(last[1]);
            }
            let fractions = [place_b - below_b, place_c - below_c];
            let index: S::i32s = below_b.to_int::<S::i32s>() * b + below_c.to_int::<S::i32s>() * c;
            let (before, after, share) =
                if BETWEEN { planes(cell, volume.samples, volume.count) } else { (cell, cell, 0.0) };
            // SAFETY: cells belong to the volume's planes, and so do the two planes. Indices lie from 0 to
            // the last voxel but one along b and c: `EDGE` clamps them, and without it all places in the
            // first and the last of these cells, and so in all of them, do.
            let value = unsafe {
                let voxels = volume.values.as_ptr();
                let value = bilinear(simd, voxels.add(before * a), &index, next, fractions);
                if BETWEEN {
                    let other = bilinear(simd, voxels.add(after * a), &index, next, fractions);
                    (other - value).mul_add(S::f32s::splat(simd, share), value)
                } else {
                    value
                }
            };
            let inside = if EDGE { ((k + one).min(high) - k.max(low)).max(zero) } else { one };
            shade.add(simd, &mut state, Sample { value, part: inside, step, cell: at_cell });
        }
        done &= shade.is_done(simd, &state, f32::INFINITY);
        for (state, to) in state.iter().zip(&mut group.state) {
            state.store_slice(&mut to[part.clone()]);
        }
    }
    done
}

/// Walks a group through the volume.
#[inline(always)]
fn through<S: Simd, M: Shade>(
    simd: S,
    shade: M,
    volume: &Planes<'_>,
    group: &mut Group,
    keys: Option<&[f32]>,
    dynamic: bool,
) {
    let (thick, count) = (SIDE * volume.samples, volume.samples * volume.count);
    let first = group.some[0].floor().clamp(0.0, (count - 1) as f32) as usize;
    let end = group.some[1].ceil().clamp(1.0, count as f32) as usize;
    if first >= end {
        return;
    }
    let layers = first / thick..(end - 1) / thick + 1;
    for turn in 0..layers.len() {
        let layer = if group.ascending { layers.start + turn } else { layers.end - 1 - turn };
        let cells = (layer * thick).max(first)..((layer + 1) * thick).min(end);
        let bounds = bounds(simd, group, [cells.start as f32, (cells.end - 1) as f32]);
        let key = keys.map_or(f32::INFINITY, |keys| key(volume, keys, layer, bounds));
        if !dynamic && key <= 0.0 {
            continue;
        }
        let inner = |axis: usize| bounds[axis][0] >= 0.0 && bounds[axis][1] < volume.sizes[axis] as f32 - 1.0;
        let whole = group.common[0] <= cells.start as f32 && group.common[1] >= cells.end as f32;
        let edge = !(whole && inner(0) && inner(1));
        let done = match (edge, volume.samples > 1) {
            (false, false) => walk::<S, M, false, false>(simd, shade, volume, group, cells, key),
            (false, true) => walk::<S, M, false, true>(simd, shade, volume, group, cells, key),
            (true, false) => walk::<S, M, true, false>(simd, shade, volume, group, cells, key),
            (true, true) => walk::<S, M, true, true>(simd, shade, volume, group, cells, key),
        };
        if done {
            return;
        }
    }
}

/// Where a tile's numbers go.
struct Picture<'a> {
    /// Rows of pixels of the tile's row of tiles.
    rows: &'a mut [f32],
    first_row: usize,
    columns: usize,
    channels: usize,
}

/// What is drawn; `keys` are the largest numbers of the blocks, where layers are skipped by them.
struct Drawing<'a> {
    input: Input<'a>,
    setup: Setup,
    keys: Option<&'a [f32]>,
}

impl Drawing<'_> {
    /// Draws one row of tiles.
    fn tiles<M: Shade>(
        &self,
        level: rayspin_device::cpu::simd::Level,
        shade: M,
        finish: &(dyn Fn([f32; 4], &Ray) -> [f32; 4] + Sync),
        picture: &mut Picture<'_>,
    ) {
        let Self { input, setup, keys } = self;
        let (planes, dynamic) = (
            [0, 1, 2].map(|main| Planes::new(input, setup, main)),
            matches!(input.scene.mode, Mode::Maximum { .. }),
        );
        let missed = if let Mode::Maximum { missed } = input.scene.mode { missed } else { 0.0 };
        picture.rows.fill(missed);
        let rows = picture.rows.len() / (picture.columns * picture.channels);
        let mut groups: [[Group; 2]; 3] =
            [0, 1, 2].map(|main| [false, true].map(|way| Group::new(main, way)));
        let mut rays: Vec<Option<Ray>> = vec![None; RAYS];
        for left in (0..picture.columns).step_by(TILE) {
            let width = TILE.min(picture.columns - left);
            groups.iter_mut().flatten().for_each(Group::clear);
            for (pixel, kept) in rays.iter_mut().enumerate().take(rows * width) {
                let ray = setup.ray(picture.first_row + pixel / width, left + pixel % width);
                if let Some(ray) = &ray {
                    groups[ray.main][usize::from(ray.ascending)].push(pixel, ray, M::START);
                }
                *kept = ray;
            }
            for group in groups.iter_mut().flatten().filter(|group| group.count > 0) {
                let volume = &planes[group.main];
                dispatch!(level, simd => {
                    group.fill(lanes_of(simd));
                    through(simd, shade, volume, group, *keys, dynamic);
                });
                for index in 0..group.count {
                    let pixel = usize::from(group.pixel[index]);
                    let Some(ray) = &rays[pixel] else { continue };
                    let state = [0, 1, 2, 3].map(|channel| group.state[channel][index]);
                    let to = (pixel / width * picture.columns + left + pixel % width) * picture.channels;
                    let values = finish(state, ray);
                    picture.rows[to..to + picture.channels].copy_from_slice(&values[..picture.channels]);
                }
            }
        }
    }
}

#[inline(always)]
fn lanes_of<S: Simd>(_: S) -> usize {
    S::f32s::LEN
}

fn draw(cpu: &Cpu, input: Input<'_>, keys: Option<&[f32]>, out: &mut [f32]) -> Result<()> {
    // Indices within a volume are signed numbers of 32 bits.
    if i32::try_from(input.voxels.values.len()).is_err() {
        return cores(cpu, input, out);
    }
    let (setup, level) = (input.setup(), cpu.level());
    let channels = input.scene.mode.channels();
    let columns = input.scene.camera.shape()[1];
    let ramps = match &input.scene.mode {
        Mode::Volume(transfer) => Transfer::ramps(transfer),
        _ => ([0.0; 4], Vec::new()),
    };
    let drawing = Drawing { input, setup, keys };
    let Drawing { input, setup, .. } = &drawing;
    cpu.run(|| {
        out.par_chunks_mut(TILE * columns * channels).enumerate().for_each(|(band, rows)| {
            let picture = &mut Picture { rows, first_row: band * TILE, columns, channels };
            match &input.scene.mode {
                Mode::XRay => {
                    drawing.tiles(level, Sum, &|sum, ray| sum.map(|sum| sum * ray.step as f32), picture)
                }
                Mode::Maximum { missed } => {
                    let finish = |state: [f32; 4], _: &Ray| {
                        if state[0] == f32::NEG_INFINITY { [*missed; 4] } else { state }
                    };
                    drawing.tiles(level, Largest, &finish, picture);
                }
                Mode::Volume(_) => {
                    let shade = Glow { base: ramps.0, ramps: &ramps.1 };
                    drawing.tiles(level, shade, &|[r, g, b, clear], _| [r, g, b, 1.0 - clear], picture);
                }
                Mode::Surface(surface) => {
                    let field = Field::new(input.voxels, setup);
                    let finish = |state: [f32; 4], ray: &Ray| match state[0] >= 0.0 {
                        true => field.lit(input, surface, ray, state[0] as usize),
                        false => [0.0; 4],
                    };
                    drawing.tiles(level, First { value: surface.value }, &finish, picture);
                }
            }
        });
    });
    Ok(())
}

/// Every sample of every ray.
pub(in crate::render) fn packets(cpu: &Cpu, input: Input<'_>, out: &mut [f32]) -> Result<()> {
    draw(cpu, input, None, out)
}

/// Without the layers in which a tile's rays meet nothing.
pub(in crate::render) fn skipping(cpu: &Cpu, input: Input<'_>, out: &mut [f32]) -> Result<()> {
    let keys = cpu.run(|| input.blocks.keys(&input.scene.mode));
    draw(cpu, input, Some(&keys), out)
}
