//! Points sorted by tile on a GPU.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use std::borrow::Cow;

use rayspin_core::{Error, Real, Result};
use rayspin_device::cuda::{Argument, Define, Kernel, Launch, Source, View};
use rayspin_device::{Array, Cuda, Device, Element};

use super::tiles::Tiles;
use crate::nufft::coordinates::{Component, Coordinates, Values};

pub(super) static SOURCE: Source =
    Source { name: "nufft_points", files: &[("points.cu", include_str!("points.cu"))] };

const THREADS: u32 = 256;
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
    /// Sorts points. Also returns the first point of every tile, and the number of points.
    ///
    /// Errors: more points than 2³² − 4097, numbers that are not finite, points on another GPU, or no memory.
    pub(super) fn sort(
        cuda: &Cuda,
        device: &Device,
        tiles: &Tiles,
        coordinates: &Coordinates<'_>,
        matrix: &[usize],
    ) -> Result<(Self, Vec<u32>)> {
        let (samples, dims) = (coordinates.samples(), coordinates.dims());
        let n = u32::try_from(samples)
            .ok()
            .filter(|&n| n < u32::MAX - BLOCK_KEYS as u32)
            .ok_or_else(|| Error::value("points", "fewer than 2^32 − 4096", samples))?;
        let copies = Copies::new(device, coordinates)?;
        let components = copies.arguments(device, coordinates)?;
        let kernel = |name: &str| cuda.kernel(&SOURCE, &defines::<R>(dims), name);
        let unset = |len: usize| Array::<u32>::unset(device, &[len]);
        let axes = axes(tiles, coordinates, matrix);

        // The last one becomes n − j of the first point j with a number that is not finite.
        let mut starts = Array::<u32>::zeros(device, &[tiles.count() + 2])?;
        let (mut keys, mut order) = (unset(samples)?, unset(samples)?);
        let mut not_finite = starts.cuda_mut();
        let not_finite = not_finite.part(tiles.count() + 1, 1).ok_or_else(super::missing)?;
        let mut arguments = components.clone();
        arguments.push(n.into());
        arguments.extend(axes);
        arguments.extend([Argument::from(keys.cuda_mut()), order.cuda_mut().into(), not_finite.into()]);
        let shape = Launch::covering(samples, THREADS);
        // SAFETY: the components have a number for each of n points; there is a key and a place in the order for each.
        unsafe { kernel("locate")?.launch(shape, &mut arguments) }?;
        (keys, order) = sort_keys(device, &kernel, keys, order, tiles.count())?;

        let count = Argument::count(tiles.count())?;
        let arguments = &mut [keys.cuda().into(), n.into(), count, starts.cuda_mut().into()];
        // SAFETY: n keys, and a start for each tile and the end.
        unsafe { kernel("find_starts")?.launch(Launch::covering(tiles.count() + 1, THREADS), arguments) }?;
        let mut starts = starts.to_vec()?;
        if let Some(left @ 1..) = starts.pop()
            && let Some(error) = coordinates.not_finite((n - left.min(n)) as usize)
        {
            return Err(error);
        }
        // The keys' memory holds the places from now on.
        let mut places = keys;
        let mut z = Array::<R>::unset(device, &[dims, samples])?;
        let mut arguments = components;
        arguments.extend([Argument::from(order.cuda()), n.into()]);
        arguments.extend(axes);
        arguments.extend([Argument::from(places.cuda_mut()), z.cuda_mut().into()]);
        // SAFETY: the order is one of the points; there is a place and `dims` arguments for each.
        unsafe { kernel("place")?.launch(shape, &mut arguments) }?;
        Ok((Self { order, places, arguments: z }, starts))
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        (4 * (self.order.len() + self.places.len()) + size_of::<R>() * self.arguments.len()) as u64
    }
}

/// Numbers of the host, copied to a GPU.
enum Numbers {
    Single(Array<f32>),
    Double(Array<f64>),
}

/// The components that a GPU needs copies of.
struct Copies {
    /// All components of a trajectory, one point after the other.
    whole: Option<Array<f64>>,
    /// Each component on its own.
    parts: Vec<Option<Numbers>>,
}

impl Copies {
    fn new(device: &Device, coordinates: &Coordinates<'_>) -> Result<Self> {
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

    /// The arguments of kernels that read the points, up to `singles`. Every point has a number in each component.
    ///
    /// Errors: components on another GPU.
    fn arguments<'a>(&'a self, device: &Device, coordinates: &Coordinates<'a>) -> Result<Vec<Argument<'a>>> {
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
        // Kernels of fewer axes do not read the rest.
        numbers.resize(3, numbers[0]);
        numbers.extend(starts.into_iter().chain(strides).map(Argument::from));
        numbers.push(singles.into());
        Ok(numbers)
    }
}

/// Peak bytes of [`Points::sort`] for a trajectory. It is the larger of two sums, besides the trajectory and the first point of every
/// tile: keys and order twice, and counts of digits; or the sorted points.
pub(super) fn sorting_bytes<R: Real>(samples: usize, dims: usize, tiles: usize) -> u64 {
    let points = 8 * dims * samples;
    let (passes, digit_bits) = passes(tiles);
    let digits = if passes == 0 { 0 } else { 1usize << digit_bits };
    let counts = 4 * digits * (samples.div_ceil(BLOCK_KEYS).max(1) + 1);
    let next = if passes == 0 { 0 } else { 8 * samples };
    let kept = (8 + dims * size_of::<R>()) * samples;
    (points + 4 * (tiles + 2) + (8 * samples + next + counts).max(kept)) as u64
}

/// Passes over keys below `bound`, and the bits of each.
fn passes(bound: usize) -> (u32, u32) {
    let bits = usize::BITS - bound.saturating_sub(1).leading_zeros();
    let passes = bits.div_ceil(DIGIT_BITS);
    (passes, bits.div_ceil(passes.max(1)))
}

pub(super) fn defines<R: Real>(dims: usize) -> Vec<Define> {
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

/// Stable passes over the digits of keys below `bound`, the lowest digit first. There are as many keys as places in the order.
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
