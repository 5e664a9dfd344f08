//! Sums and copies of vectors of several devices.
//!
//! Each device owns a slice of every vector. It receives the others' values of its slice and adds them in the
//! order of the devices (reduce-scatter); then the slices are copied to the devices that want the sum
//! (all-gather). So each of n devices sends and receives 2 (n − 1)/n of a vector at most, and the sum has the
//! same bits from run to run.
//!
//! Patarasuk, Yuan, *Bandwidth optimal all-reduce algorithms for clusters of workstations*, J Parallel
//! Distrib Comput 69:117, 2009.

use std::ops::Range;

use rayspin_core::{Result, expect_len};
use rayspin_device::{Array, Device, Move, Side, exchange};

use super::{Scalar, add_part, axpy, expect_device};

/// Slices begin at multiples of this number of elements, for kernels that read several at once.
const ALIGN: usize = 64;

/// The slice of a vector of `len` elements that each of `count` devices owns.
fn slices(count: usize, len: usize) -> Vec<Range<usize>> {
    let size = len.div_ceil(count.max(1)).next_multiple_of(ALIGN);
    (0..count).map(|k| (k * size).min(len)..((k + 1) * size).min(len)).collect()
}

/// The memory for sums over vectors of several devices, Σ_k x_k in the order of the devices.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::SumAcross;
///
/// let devices = [Device::cpu_with_threads(1)?, Device::cpu_with_threads(1)?];
/// let mut x = Array::from_vec(&devices[0], &[3], vec![1.0f32, 2.0, 3.0])?;
/// let mut y = Array::from_vec(&devices[1], &[3], vec![10.0f32; 3])?;
/// SumAcross::new(&devices, 3)?.to_all(&mut [&mut x, &mut y])?;
/// assert_eq!((x.to_vec()?, y.to_vec()?), (vec![11.0, 12.0, 13.0], vec![11.0, 12.0, 13.0]));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct SumAcross<S: Scalar> {
    devices: Vec<Device>,
    len: usize,
    slices: Vec<Range<usize>>,
    /// For each device, its slice of every other device's vector.
    received: Vec<Vec<Array<S>>>,
}

impl<S: Scalar> SumAcross<S> {
    /// The memory for vectors of `len` elements, one on each of the devices. Errors: memory, with the name of
    /// the device.
    pub fn new(devices: &[Device], len: usize) -> Result<Self> {
        let slices = slices(devices.len(), len);
        let received = devices.iter().zip(&slices).map(|(device, slice)| {
            let others = 1..devices.len();
            let arrays: Result<_> = others.map(|_| Array::unset(device, &[slice.len()])).collect();
            arrays.map_err(|error| device.named(error))
        });
        let received = received.collect::<Result<_>>()?;
        Ok(Self { devices: devices.to_vec(), len, slices, received })
    }

    /// Bytes that it takes on each of `devices` devices at most.
    pub fn bytes(devices: usize, len: usize) -> u64 {
        let slice = slices(devices, len).first().map_or(0, Range::len);
        (slice * size_of::<S>()) as u64 * devices.saturating_sub(1) as u64
    }

    /// Each vector becomes Σ_k x_k: an all-reduce. `parts` has a vector of each device, in their order.
    ///
    /// Errors: other lengths or devices; a device that fails, with its name.
    pub fn to_all(&mut self, parts: &mut [&mut Array<S>]) -> Result<()> {
        self.sum(parts, self.devices.len())
    }

    /// The first vector becomes Σ_k x_k, with the same bits as in [`Self::to_all`]; of the others any part
    /// does.
    ///
    /// Errors: as [`Self::to_all`].
    pub fn to_first(&mut self, parts: &mut [&mut Array<S>]) -> Result<()> {
        self.sum(parts, 1)
    }

    /// The first `receivers` vectors become the sum.
    fn sum(&mut self, parts: &mut [&mut Array<S>], receivers: usize) -> Result<()> {
        let count = self.devices.len();
        expect_len("vectors of a sum over devices", &[count], parts.len())?;
        for (part, device) in parts.iter().zip(&self.devices) {
            expect_len("vector of a sum over devices", &[self.len], part.len())?;
            expect_device("vector of a sum over devices", device, part)?;
        }
        // Device k's place among those from which `to` receives.
        let place = |k: usize, to: usize| if k < to { k } else { k - 1 };
        let whole = |k: usize, to: usize, owner: usize| {
            let slice = &self.slices[owner];
            Move { from: (k, slice.start), to: (to, slice.start), len: slice.len() }
        };
        let scatter: Vec<Move> = pairs(count)
            .map(|(k, to)| Move { to: (count + to * (count - 1) + place(k, to), 0), ..whole(k, to, to) })
            .collect();
        let others = self.received.iter_mut().flatten().map(Side::Written);
        let mut sides: Vec<_> = written(parts).chain(others).collect();
        exchange(&mut sides, &scatter)?;
        for (k, (part, received)) in parts.iter_mut().zip(&mut self.received).enumerate() {
            let start = self.slices[k].start;
            add_in_order(received, k, part, start).map_err(|error| self.devices[k].named(error))?;
        }
        let gather: Vec<Move> =
            pairs(count).filter(|(_, to)| *to < receivers).map(|(k, to)| whole(k, to, k)).collect();
        exchange(&mut written(parts).collect::<Vec<_>>(), &gather)
    }
}

/// All pairs of two of `count` devices, such that each round of `count` pairs has each device once on either
/// side.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (1..count).flat_map(move |round| (0..count).map(move |k| (k, (k + round) % count)))
}

fn written<'a, S: Scalar>(parts: &'a mut [&mut Array<S>]) -> impl Iterator<Item = Side<'a, S>> {
    parts.iter_mut().map(|part| Side::Written(part))
}

/// part ← x_0 + x_1 + …, from left to right, where the part itself is x_k and `received` are the others.
fn add_in_order<S: Scalar>(
    received: &mut [Array<S>],
    k: usize,
    part: &mut Array<S>,
    start: usize,
) -> Result<()> {
    let (before, behind) = received.split_at_mut(k);
    if let Some((sum, others)) = before.split_first_mut() {
        others.iter().try_for_each(|x| axpy(1.0.into(), x, sum))?;
        // x + y has the bits of y + x.
        add_part(sum, part, start)?;
    }
    behind.iter().try_for_each(|x| add_part(x, part, start))
}

/// Copies a vector of the first device to the others': slices go to their owners, and from these to all.
///
/// Errors: other lengths; a device that fails, with its name.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::broadcast;
///
/// let devices = [Device::cpu_with_threads(1)?, Device::cpu_with_threads(1)?];
/// let x = Array::from_vec(&devices[0], &[2], vec![1.0f32, 2.0])?;
/// let mut y = Array::zeros(&devices[1], &[2])?;
/// broadcast(&x, &mut [&mut y])?;
/// assert_eq!(y.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn broadcast<S: Scalar>(x: &Array<S>, others: &mut [&mut Array<S>]) -> Result<()> {
    others.iter().try_for_each(|other| expect_len("vector that a copy goes to", &[x.len()], other.len()))?;
    let count = others.len();
    let slices = slices(count, x.len());
    let step = |from: usize, to: usize, owner: usize| {
        let slice = &slices[owner];
        Move { from: (from, slice.start), to: (to, slice.start), len: slice.len() }
    };
    let scatter: Vec<Move> = (0..count).map(|k| step(0, 1 + k, k)).collect();
    let mut sides: Vec<_> = std::iter::once(Side::Read(x)).chain(written(others)).collect();
    exchange(&mut sides, &scatter)?;
    let gather: Vec<Move> = pairs(count).map(|(k, to)| step(1 + k, 1 + to, k)).collect();
    if gather.is_empty() { Ok(()) } else { exchange(&mut sides, &gather) }
}
