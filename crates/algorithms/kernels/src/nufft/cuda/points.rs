//! Points sorted by tile on a GPU.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use std::borrow::Cow;

use rayspin_core::{Error, Real, Result};
use rayspin_device::cuda::{Argument, Define, Kernel, Launch, Source, View};
use rayspin_device::{Array, Cuda, Device, Element};

use super::slot_points;
use super::tiles::Tiles;
use crate::nufft::coordinates::{Component, Coordinates, Values};

pub(super) static SOURCE: Source =
    Source { name: "nufft_points", files: &[COMPONENTS, ("points.cu", include_str!("points.cu"))] };
/// How kernels read points.
pub(in crate::nufft) const COMPONENTS: (&str, &str) = ("components.cuh", include_str!("components.cuh"));

const THREADS: u32 = 256;
/// Numbers that the host reads of sorted points.
const TOTALS: usize = 3;
/// Keys that a block sorts at a time.
const BLOCK_KEYS: usize = 256 * 16;
/// Bits of a sorting pass at most.
const DIGIT_BITS: u32 = 8;

/// Points sorted by tile; within a tile in the order of the trajectory.
#[derive(Debug)]
pub(super) struct Points<R: Real> {
    /// The index of each point's sample in the trajectory.
    pub(super) order: Array<u32>,
    /// First cell of each footprint in its tile, x + 2¹⁰y + 2²⁰z.
    pub(super) places: Array<u32>,
    /// Arguments of the kernel's polynomials, `[axis][point]`, axes x, y, z.
    pub(super) arguments: Array<R>,
}

impl<R: Real> Points<R> {
    /// Sorts points and cuts them into slots.
    ///
    /// Errors: more points than 2³² − 4097, numbers that are not finite, points on another GPU, or no memory.
    pub(super) fn sort(
        cuda: &Cuda,
        device: &Device,
        tiles: &Tiles,
        coordinates: &Coordinates<'_>,
        matrix: &[usize],
    ) -> Result<(Self, Slots)> {
        let (samples, dims) = (coordinates.samples(), coordinates.dims());
        let n = u32::try_from(samples)
            .ok()
            .filter(|&n| n < u32::MAX - BLOCK_KEYS as u32)
            .ok_or_else(|| Error::value("points", "fewer than 2^32 − 4096", samples))?;
        let kernel = |name: &str| cuda.kernel(&SOURCE, &defines::<R>(dims), name);
        let unset = |len: usize| Array::<u32>::unset(device, &[len]);

        // The number of slots and of runs; and n − j of the first point j with a number that is not finite.
        let mut totals = Array::<u32>::zeros(device, &[TOTALS])?;
        let (mut keys, mut order) = (unset(samples)?, unset(samples)?);
        let mut records = unset(samples * record_bytes::<R>(dims) / size_of::<u32>())?;
        let shape = Launch::covering(samples, THREADS);
        {
            let copies = Copies::new(device, coordinates)?;
            let mut not_finite = totals.cuda_mut();
            let not_finite = not_finite.part(2, 1).ok_or_else(super::missing)?;
            let mut arguments = copies.arguments(device, coordinates)?;
            arguments.push(n.into());
            arguments.extend(axes(tiles, coordinates, matrix));
            arguments.extend([Argument::from(keys.cuda_mut()), order.cuda_mut().into()]);
            arguments.extend([Argument::from(records.cuda_mut()), not_finite.into()]);
            // SAFETY: the components have a number for each of n points; there is a key, a place in the order
            // and a record for each.
            unsafe { kernel("locate")?.launch(shape, &mut arguments) }?;
        }
        (keys, order) = sort_keys(device, &kernel, keys, order, tiles.count())?;

        let mut starts = unset(tiles.count() + 1)?;
        let count = Argument::count(tiles.count())?;
        let arguments = &mut [keys.cuda().into(), n.into(), count, starts.cuda_mut().into()];
        // SAFETY: n keys, and a start for each tile and the end.
        unsafe { kernel("find_starts")?.launch(Launch::covering(tiles.count() + 1, THREADS), arguments) }?;
        // The keys' memory holds the places from now on.
        let mut places = keys;
        let mut z = Array::<R>::unset(device, &[dims, samples])?;
        let arguments = &mut [
            records.cuda().into(),
            order.cuda().into(),
            n.into(),
            places.cuda_mut().into(),
            z.cuda_mut().into(),
        ];
        // SAFETY: the order is one of the points; there is a place and `dims` arguments for each.
        unsafe { kernel("place")?.launch(shape, arguments) }?;
        drop(records);
        let mut slots = Slots::cut(device, &kernel, starts, samples, &mut totals)?;
        // Only now does the host wait for the GPU.
        let totals = totals.to_vec()?;
        if let [count, runs, left] = totals[..] {
            (slots.count, slots.runs_count) = (count as usize, runs as usize);
            if left > 0
                && let Some(error) = coordinates.not_finite((n - left.min(n)) as usize)
            {
                return Err(error);
            }
        }
        Ok((Self { order, places, arguments: z }, slots))
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        (4 * (self.order.len() + self.places.len()) + size_of::<R>() * self.arguments.len()) as u64
    }
}

/// Runs of points that blocks take: each of one tile.
#[derive(Debug)]
pub(super) struct Slots {
    /// Tile, first point, number of points, 0. Only the first [`Slots::count`] are set.
    pub(super) slots: Array<[u32; 4]>,
    pub(super) count: usize,
    /// First slot and number of slots of each tile that has more than one. Only the first
    /// [`Slots::runs_count`] are set.
    pub(super) runs: Array<[u32; 2]>,
    pub(super) runs_count: usize,
    /// First slot of every tile, or `u32::MAX` where it has no points.
    pub(super) slot_of: Array<u32>,
}

impl Slots {
    /// Cuts each tile's points into about equal runs of at most [`slot_points`]. `starts`: first point of
    /// each tile, and the number of points. The GPU writes the number of slots and of runs to `totals`.
    fn cut(
        device: &Device,
        kernel: &impl Fn(&str) -> Result<Kernel>,
        starts: Array<u32>,
        samples: usize,
        totals: &mut Array<u32>,
    ) -> Result<Self> {
        let tiles = starts.len() - 1;
        let (most_slots, most_runs) = most_slots(samples, tiles);
        let (count, most) = (Argument::count(tiles)?, Argument::from(slot_points(samples)));
        let by_tile = Launch::covering(tiles, THREADS);
        let blocks = tiles.div_ceil(THREADS as usize);
        let mut sums = Array::<u32>::unset(device, &[2, blocks])?;
        let mut before = Array::<u32>::unset(device, &[tiles + 1])?;
        let mut slots = Array::unset(device, &[most_slots])?;
        let mut runs = Array::unset(device, &[most_runs])?;
        let mut slot_of = Array::unset(device, &[tiles])?;
        let arguments = &mut [starts.cuda().into(), count, most, sums.cuda_mut().into()];
        // SAFETY: a start for each tile and the end, and two sums for each block.
        unsafe { kernel("count_slots")?.launch(by_tile, arguments) }?;
        let arguments = &mut [sums.cuda_mut().into(), Argument::count(blocks)?, totals.cuda_mut().into()];
        // SAFETY: two rows of sums, and a total for each.
        unsafe { kernel("add_counts")?.launch(Launch::linear(2, THREADS), arguments) }?;
        let arguments = &mut [
            starts.cuda().into(),
            count,
            most,
            sums.cuda().into(),
            before.cuda_mut().into(),
            slot_of.cuda_mut().into(),
            runs.cuda_mut().into(),
        ];
        // SAFETY: as before; there is a number for each tile and the end, and no more tiles have more than
        // `most` points than there are runs.
        unsafe { kernel("number_slots")?.launch(by_tile, arguments) }?;
        let arguments = &mut [starts.cuda().into(), before.cuda().into(), count, slots.cuda_mut().into()];
        // SAFETY: a thread a slot, and there are at most as many slots as `most_slots` says.
        unsafe { kernel("fill_slots")?.launch(Launch::covering(most_slots, THREADS), arguments) }?;
        Ok(Self { slots, count: 0, runs, runs_count: 0, slot_of })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        (16 * self.slots.len() + 8 * self.runs.len() + 4 * self.slot_of.len()) as u64
    }

    /// [`Slots::bytes`] of slots that are yet to be cut.
    pub(super) fn bytes_needed(samples: usize, tiles: usize) -> u64 {
        let (slots, runs) = most_slots(samples, tiles);
        (16 * slots + 8 * runs + 4 * tiles) as u64
    }
}

/// Slots at most, and tiles with more than one at most.
fn most_slots(samples: usize, tiles: usize) -> (usize, usize) {
    let full = samples / slot_points(samples) as usize;
    (samples.min(tiles) + full, full.min(tiles))
}

/// Bytes of what the kernel `locate` writes of a point: its arguments and its first cell.
fn record_bytes<R: Real>(dims: usize) -> usize {
    let alignment = if dims == 1 && size_of::<R>() == 4 { 8 } else { 16 };
    (dims * size_of::<R>() + 4).next_multiple_of(alignment)
}

/// Numbers of the host, copied to a GPU.
enum Numbers {
    Single(Array<f32>),
    Double(Array<f64>),
}

/// The components that a GPU needs copies of.
pub(in crate::nufft) struct Copies {
    /// All components of a trajectory, one point after the other.
    whole: Option<Array<f64>>,
    /// Each component on its own.
    parts: Vec<Option<Numbers>>,
}

impl Copies {
    pub(in crate::nufft) fn new(device: &Device, coordinates: &Coordinates<'_>) -> Result<Self> {
        fn upload<T: Element>(device: &Device, values: Cow<'_, [T]>) -> Result<Array<T>> {
            Array::from_slice(device, &[values.len()], &values)
        }
        if let Some(values) = coordinates.interleaved() {
            return Ok(Self { whole: Some(upload(device, values.into())?), parts: Vec::new() });
        }
        let copy = |component: &Component<'_>| match component.values() {
            Values::Single(values) => {
                Ok(Some(Numbers::Single(upload(device, component.without_gaps(values)?)?)))
            }
            Values::Double(values) => {
                Ok(Some(Numbers::Double(upload(device, component.without_gaps(values)?)?)))
            }
            Values::SingleOnGpu(_) | Values::DoubleOnGpu(_) => Ok(None),
        };
        let parts = coordinates.components().iter().map(copy).collect::<Result<_>>()?;
        Ok(Self { whole: None, parts })
    }

    /// The arguments of kernels that read the points, up to `singles`. Every point has a number in each
    /// component.
    ///
    /// Errors: components on another GPU.
    pub(in crate::nufft) fn arguments<'a>(
        &'a self,
        device: &Device,
        coordinates: &Coordinates<'a>,
    ) -> Result<Vec<Argument<'a>>> {
        fn words<T: Element>(array: &Array<T>) -> Result<View<'_, u32>> {
            array.cuda().words().ok_or_else(super::missing)
        }
        let check = |array: &Device| crate::fft::check_device("NUFFT points", device, array);
        let (mut numbers, mut starts, mut strides) = (Vec::new(), [0i64; 3], [0i64; 3]);
        let mut singles = 0u32;
        for (d, component) in coordinates.components().iter().enumerate() {
            let own = (component.first as i64, component.stride as i64);
            let copy = self.parts.get(d).and_then(Option::as_ref);
            let (view, single, (start, stride)) = match (component.values(), copy, &self.whole) {
                (_, _, Some(whole)) => (words(whole)?, false, own),
                (_, Some(Numbers::Single(copy)), _) => (words(copy)?, true, (0, 1)),
                (_, Some(Numbers::Double(copy)), _) => (words(copy)?, false, (0, 1)),
                (Values::SingleOnGpu(array), ..) => {
                    check(array.device())?;
                    (words(array)?, true, own)
                }
                (Values::DoubleOnGpu(array), ..) => {
                    check(array.device())?;
                    (words(array)?, false, own)
                }
                _ => return Err(super::missing()),
            };
            numbers.push(Argument::from(view));
            (starts[d], strides[d]) = (start, stride);
            singles |= u32::from(single) << d;
        }
        // The kernel reads no others for fewer axes.
        numbers.resize(3, numbers[0]);
        numbers.extend(starts.into_iter().chain(strides).map(Argument::from));
        numbers.push(singles.into());
        Ok(numbers)
    }
}

/// Peak bytes of [`Points::sort`] for a trajectory: while points are located; while keys are sorted, with
/// keys and order twice and counts of digits; while records are brought into order; or while slots are cut.
pub(super) fn sorting_bytes<R: Real>(samples: usize, dims: usize, tiles: usize) -> u64 {
    let points = 8 * dims * samples;
    let records = record_bytes::<R>(dims) * samples;
    let (passes, digit_bits) = passes(tiles);
    let digits = if passes == 0 { 0 } else { 1usize << digit_bits };
    let counts = 4 * digits * (samples.div_ceil(BLOCK_KEYS).max(1) + 1);
    let next = if passes == 0 { 0 } else { 8 * samples };
    let starts = 4 * (tiles + 1);
    let kept = (8 + dims * size_of::<R>()) * samples + starts;
    let cutting =
        8 * tiles.div_ceil(THREADS as usize) + starts + Slots::bytes_needed(samples, tiles) as usize;
    let sorting = (records + 8 * samples) + points.max(next + counts);
    (4 * TOTALS + sorting.max(records + kept).max(kept + cutting)) as u64
}

/// Passes over keys below `bound`, and the bits of each.
fn passes(bound: usize) -> (u32, u32) {
    let bits = usize::BITS - bound.saturating_sub(1).leading_zeros();
    let passes = bits.div_ceil(DIGIT_BITS);
    (passes, bits.div_ceil(passes.max(1)))
}

pub(in crate::nufft) fn defines<R: Real>(dims: usize) -> Vec<Define> {
    vec![crate::cuda::define::<R>(), ("DIMS", dims.to_string())]
}

/// W/2, then along x, y, z the turns per number of a component, the fine grid and the tiles.
fn axes(tiles: &Tiles, coordinates: &Coordinates<'_>, matrix: &[usize]) -> [Argument<'static>; 10] {
    let mut values = [1.0; 10];
    values[0] = 0.5 * tiles.width as f64;
    for (axis, (component, &n)) in coordinates.components().iter().zip(matrix.iter().rev()).enumerate() {
        values[1 + axis] = component.inverse(n);
    }
    for axis in 0..3 {
        values[4 + axis] = tiles.fine[2 - axis] as f64;
        values[7 + axis] = tiles.tiles[2 - axis] as f64;
    }
    values.map(Argument::from)
}

/// Stable passes over the digits of keys below `bound`, the lowest digit first. There are as many keys as
/// places in the order.
fn sort_keys(
    device: &Device,
    kernel: &impl Fn(&str) -> Result<Kernel>,
    mut keys: Array<u32>,
    mut order: Array<u32>,
    bound: usize,
) -> Result<(Array<u32>, Array<u32>)> {
    let (passes, digit_bits) = passes(bound);
    if passes == 0 {
        return Ok((keys, order));
    }
    let samples = keys.len();
    let n = Argument::count(samples)?;
    let digits = 1u32 << digit_bits;
    let blocks = samples.div_ceil(BLOCK_KEYS).max(1);
    let launch = Launch::linear(blocks as u32, THREADS);
    let unset = |len: usize| Array::<u32>::unset(device, &[len]);
    let (mut counts, mut totals) = (unset(digits as usize * blocks)?, unset(digits as usize)?);
    let mut next = (unset(samples)?, unset(samples)?);
    for pass in 0..passes {
        let shift = pass * digit_bits;
        let arguments = &mut [keys.cuda().into(), n, shift.into(), digits.into(), counts.cuda_mut().into()];
        // SAFETY: n keys, and a count for each digit of each block.
        unsafe { kernel("count")?.launch(launch, arguments) }?;
        let arguments = &mut [counts.cuda_mut().into(), Argument::count(blocks)?, totals.cuda_mut().into()];
        // SAFETY: a block a digit, and a total for each.
        unsafe { kernel("add_counts")?.launch(Launch::linear(digits, THREADS), arguments) }?;
        let arguments = &mut [
            keys.cuda().into(),
            order.cuda().into(),
            n,
            shift.into(),
            digits.into(),
            counts.cuda().into(),
            totals.cuda().into(),
            next.0.cuda_mut().into(),
            next.1.cuda_mut().into(),
        ];
        // SAFETY: the counts of the same keys and digits give each of n keys a place of its own.
        unsafe { kernel("move_keys")?.launch(launch, arguments) }?;
        std::mem::swap(&mut keys, &mut next.0);
        std::mem::swap(&mut order, &mut next.1);
    }
    Ok((keys, order))
}
