//! Copies between the arrays of several devices, and work on all of them at the same time.

use rayspin_core::{Error, Result};

use crate::{Array, Backend, Cuda, Device, Element, HostCopy};

/// An array that takes part in an [`exchange`].
#[derive(Debug)]
pub enum Side<'a, T: Element> {
    /// Its elements are copied from it alone.
    Read(&'a Array<T>),
    /// Its elements are copied from it and to it.
    Written(&'a mut Array<T>),
}

impl<T: Element> Side<'_, T> {
    fn array(&self) -> &Array<T> {
        match self {
            Self::Read(array) => array,
            Self::Written(array) => array,
        }
    }
}

/// `len` elements of one array of an [`exchange`] that go to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The array that is read, by its place in the list, and the first element.
    pub from: (usize, usize),
    /// The array that is written, and the first element there.
    pub to: (usize, usize),
    /// Number of elements.
    pub len: usize,
}

/// Copies elements between arrays that may live on different devices. The copies of different GPUs run at the
/// same time. They start when the work queued so far on all of these devices is done, and later work of all
/// of them waits for all copies. The host does not wait for a copy between GPUs that reach each other.
///
/// Errors: a range outside its array; an array that is only read among those written; elements that are
/// written twice, or read and written; work that is being recorded; a device that fails, which the error
/// names.
///
/// ```
/// use rayspin_device::{Array, Device, Move, Side, exchange};
///
/// let devices = [Device::cpu_with_threads(1)?, Device::cpu_with_threads(1)?];
/// let x = Array::from_vec(&devices[0], &[3], vec![1.0f32, 2.0, 3.0])?;
/// let mut y = Array::zeros(&devices[1], &[2])?;
/// let arrays = &mut [Side::Read(&x), Side::Written(&mut y)];
/// exchange(arrays, &[Move { from: (0, 1), to: (1, 0), len: 2 }])?;
/// assert_eq!(y.to_vec()?, [2.0, 3.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn exchange<T: Element>(arrays: &mut [Side<'_, T>], moves: &[Move]) -> Result<()> {
    expect_apart(arrays, moves)?;
    let used = |place: usize| moves.iter().any(|step| step.from.0 == place || step.to.0 == place);
    let mut devices: Vec<Device> = Vec::new();
    for (place, side) in arrays.iter().enumerate() {
        let device = side.array().device();
        if used(place) && !devices.iter().any(|other| other.same_as(device)) {
            devices.push(device.clone());
        }
    }
    meet(&devices)?;
    let copied = moves.iter().filter(|step| step.len > 0).try_for_each(|step| copy(arrays, *step));
    let done = copied.and(meet(&devices));
    if done.is_err() {
        // Copies may be on their way to memory that the caller frees now, and which only its own device waits
        // for. A device that fails here has ended all its work.
        devices.iter().for_each(|device| drop(device.synchronize()));
    }
    done
}

/// Makes later work of each GPU wait for the work so far of all of them. Errors: the first one; all others
/// wait nonetheless.
fn meet(devices: &[Device]) -> Result<()> {
    let mut met = Ok(());
    for device in devices {
        for other in devices.iter().filter(|other| !other.same_as(device)) {
            if let (Backend::Cuda(own), Backend::Cuda(cuda)) = (device.backend(), other.backend()) {
                met = met.and(own.wait_for(cuda).map_err(|error| between(error, other, device)));
            }
        }
    }
    met
}

/// The error of work of two devices, with the name of the one that failed, or of both where neither says so.
fn between(error: Error, one: &Device, other: &Device) -> Error {
    let lost = [one, other].into_iter().find(|device| device.synchronize().is_err());
    match lost {
        Some(device) => device.named(error),
        None => error.with_place(&format!("{} or {}", one.name(), other.name())),
    }
}

/// Errors: moves that do not fit the arrays, or that touch what another one writes.
fn expect_apart<T: Element>(arrays: &[Side<'_, T>], moves: &[Move]) -> Result<()> {
    for step in moves {
        for (place, start) in [step.from, step.to] {
            let found = || format!("array {place}");
            let side = arrays.get(place).ok_or_else(|| {
                Error::value("exchange", format!("one of {} arrays", arrays.len()), found())
            })?;
            side.array().expect_part(start, step.len)?;
        }
        if matches!(arrays[step.to.0], Side::Read(_)) {
            let found = format!("array {}, which is only read", step.to.0);
            return Err(Error::value("exchange", "a target that may be written", found));
        }
    }
    let overlap = |a: (usize, usize), b: (usize, usize), lengths: [usize; 2]| {
        a.0 == b.0 && a.1 < b.1 + lengths[1] && b.1 < a.1 + lengths[0]
    };
    for (index, step) in moves.iter().enumerate() {
        for (other_index, other) in moves.iter().enumerate() {
            let lengths = [step.len, other.len];
            if overlap(step.to, other.from, lengths)
                || (index != other_index && overlap(step.to, other.to, lengths))
            {
                return Err(Error::value(
                    "exchange",
                    "moves apart from each other",
                    format!("{step:?} and {other:?}"),
                ));
            }
        }
    }
    Ok(())
}

/// Queues one copy. The devices have met before, and meet after all copies.
#[allow(unsafe_code)]
fn copy<T: Element>(arrays: &mut [Side<'_, T>], step: Move) -> Result<()> {
    let Move { from: (source, first), to: (target, start), len } = step;
    if source == target {
        return within(&mut arrays[source], first, start, len);
    }
    let Ok([source, target]) = arrays.get_disjoint_mut([source, target]) else {
        return Err(Error::value("exchange", "two arrays", "one"));
    };
    let (source, Side::Written(target)) = (source.array(), target) else {
        return Err(Error::value("exchange", "a target that may be written", "one that is only read"));
    };
    if source.device().same_as(target.device()) {
        return target.copy_range(start, source, first, len);
    }
    let (one, other) = (source.device().clone(), target.device().clone());
    let done = match (one.backend(), other.backend()) {
        (Backend::Cpu(_), _) => target.put(start, &source.cpu()[first..first + len], HostCopy::Staged),
        (Backend::Cuda(_), Backend::Cpu(_)) => {
            source.get(first, &mut target.cpu_mut()[start..start + len], HostCopy::Staged)
        }
        (Backend::Cuda(own), Backend::Cuda(cuda)) => {
            let (from, mut whole) = (source.cuda(), target.cuda_mut());
            let outside = || Error::value("exchange", "a part of both arrays", format!("{step:?}"));
            let from = from.part(first, len).ok_or_else(outside)?;
            let mut to = whole.part(start, len).ok_or_else(outside)?;
            // SAFETY: the devices have met, and meet again before any later work of theirs. No other copy of
            // the exchange touches these elements.
            unsafe { Cuda::copy_to(own, &from, cuda, &mut to) }
        }
    };
    done.map_err(|error| between(error, &one, &other))
}

/// A copy within an array.
fn within<T: Element>(side: &mut Side<'_, T>, first: usize, start: usize, len: usize) -> Result<()> {
    let Side::Written(array) = side else {
        return Err(Error::value("exchange", "a target that may be written", "one that is only read"));
    };
    let mut part = Array::unset(array.device(), &[len])?;
    part.copy_range(0, array, first, len)?;
    array.copy_range(start, &part, 0, len)
}

/// Does the work of several devices at the same time: `work(k, item)` for the k-th item, which belongs to the
/// k-th device. The first one runs on this thread, each other one on a thread of its own. All have ended when
/// this returns.
///
/// Errors: the first device's that fails, in their order, with its name where there are several.
///
/// ```
/// use rayspin_device::{Device, at_once};
///
/// let devices = [Device::cpu_with_threads(1)?, Device::cpu_with_threads(1)?];
/// assert_eq!(at_once(&devices, [3, 4], |k, item| Ok(10 * k + item))?, [3, 14]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn at_once<I: Send, T: Send>(
    devices: &[Device],
    items: impl IntoIterator<Item = I>,
    work: impl Fn(usize, I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let several = devices.len() > 1;
    let one = |index: usize, item: I| {
        let named = |error| match devices.get(index).filter(|_| several) {
            Some(device) => device.named(error),
            None => error,
        };
        work(index, item).map_err(named)
    };
    let one = &one;
    std::thread::scope(|scope| {
        let mut items = items.into_iter().enumerate();
        let Some((_, first)) = items.next() else { return Ok(Vec::new()) };
        let begin = |(index, item)| std::thread::Builder::new().spawn_scoped(scope, move || one(index, item));
        let others: Vec<_> = items.map(begin).collect();
        let mut done = vec![one(0, first)];
        for other in others {
            done.push(match other {
                Ok(other) => other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(error) => Err(Error::Device {
                    what: "starting a thread for a device".to_owned(),
                    detail: error.to_string(),
                }),
            });
        }
        done.into_iter().collect()
    })
}
