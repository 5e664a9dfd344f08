use std::sync::{Mutex, PoisonError};

use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::{Array, Backend, Device, at_once};
use rayspin_kernels::vector::{Scalar, SumAcross, broadcast};

use crate::{LinearOp, Op};

/// Sums y = Σ_g f_g(x) over devices. Each device computes one f_g.
///
/// x and y live on the first device. x is copied to the others, all f_g run at the same time, and their
/// results are added in the order of the devices. So y has the same bits from run to run if the f_g have.
/// With one device nothing is copied.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_linop::Across;
///
/// let devices = [Device::cpu_with_threads(1)?, Device::cpu_with_threads(1)?];
/// let across = Across::new(&devices, &[2])?;
/// let x = Array::from_vec(&devices[0], &[2], vec![1.0f32, 2.0])?;
/// let mut y = Array::zeros(&devices[0], &[2])?;
/// across.sum(&x, &mut y, |_, x, y| y.copy_from(x))?;
/// assert_eq!(y.to_vec()?, [2.0, 4.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Across<S: Scalar> {
    devices: Vec<Device>,
    shape: Vec<usize>,
    /// Memory of sums that are done, for the next ones.
    free: Mutex<Vec<Work<S>>>,
}

/// The memory of one sum.
struct Work<S: Scalar> {
    /// x and f_g(x) of the devices behind the first.
    x: Vec<Array<S>>,
    y: Vec<Array<S>>,
    sum: SumAcross<S>,
}

impl<S: Scalar> Across<S> {
    /// For x and y of this shape. Errors: no device.
    pub fn new(devices: &[Device], shape: &[usize]) -> Result<Self> {
        if devices.is_empty() {
            return Err(Error::value("devices of a sum", "at least one", 0));
        }
        Ok(Self { devices: devices.to_vec(), shape: shape.to_vec(), free: Mutex::default() })
    }

    /// Bytes that a sum takes for x of `len` elements on `devices` devices, besides x, y and the work of the
    /// f_g: on the first device, and on each other one.
    pub fn bytes(devices: usize, len: usize) -> (u64, u64) {
        let sum = SumAcross::<S>::bytes(devices, len);
        (sum, sum + 2 * (len * size_of::<S>()) as u64)
    }

    fn make(&self) -> Result<Work<S>> {
        let arrays = || -> Result<Vec<_>> {
            let made = |device| Array::zeros(device, &self.shape).map_err(|error| device.named(error));
            self.devices[1..].iter().map(made).collect()
        };
        Ok(Work { x: arrays()?, y: arrays()?, sum: SumAcross::new(&self.devices, voxels(&self.shape)?)? })
    }

    /// y = Σ_g f_g(x), where `one(g, x, y)` writes f_g(x) to y.
    ///
    /// Errors: another device or shape; work that is being recorded; the first device that fails, by name.
    pub fn sum(
        &self,
        x: &Array<S>,
        y: &mut Array<S>,
        one: impl Fn(usize, &Array<S>, &mut Array<S>) -> Result<()> + Sync,
    ) -> Result<()> {
        let lead = &self.devices[0];
        for (what, array) in [("input", x), ("output", &*y)] {
            expect_shape(&format!("sum over devices: {what}"), &self.shape, array.shape())?;
            if !array.device().same_as(lead) {
                let found = array.device().name();
                return Err(Error::value(format!("sum over devices: {what}"), lead.name(), found));
            }
        }
        if self.devices.len() == 1 {
            return one(0, x, y);
        }
        if let Backend::Cuda(cuda) = lead.backend() {
            cuda.expect_not_recording("work on several devices")?;
        }
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = free().pop();
        let mut work = kept.map_or_else(|| self.make(), Ok)?;
        broadcast(x, &mut work.x.iter_mut().collect::<Vec<_>>())?;
        let outputs = std::iter::once(&mut *y).chain(&mut work.y);
        let pairs = std::iter::once(x).chain(&work.x).zip(outputs);
        at_once(&self.devices, pairs, |device, (x, y)| one(device, x, y))?;
        let mut parts: Vec<_> = std::iter::once(y).chain(&mut work.y).collect();
        work.sum.to_first(&mut parts)?;
        free().push(work);
        Ok(())
    }
}

/// A = Σ_g A_g, where each A_g is computed on a device of its own: the normal operator Σ_g E_gᴴE_g of coils
/// that are spread over GPUs.
///
/// [`Across`] adds. So Ax has the same bits from run to run, and agrees with the sum that one device computes
/// to rounding. The first device may have no operator, and then adds alone. An application cannot be recorded
/// for repetition.
///
/// ```
/// use std::sync::Arc;
///
/// use rayspin_core::C32;
/// use rayspin_device::Device;
/// use rayspin_linop::{AcrossDevices, Identity, LinearOp, Op, random};
///
/// let devices = [Device::cpu_with_threads(1)?, Device::cpu_with_threads(1)?];
/// let twice: Op<C32> = Arc::new(Identity::new(&[4]).scaled(2.0));
/// let parts = devices.iter().map(|device| (device.clone(), Some(twice.clone()))).collect();
/// let sum = AcrossDevices::new(parts)?;
/// let x = random(&devices[0], &[4], 1)?;
/// assert_eq!(sum.forward(&x)?.to_host()?[[2]], x.to_host()?[[2]] * 4.0);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct AcrossDevices<S: Scalar> {
    parts: Vec<Option<Op<S>>>,
    across: Across<S>,
}

impl<S: Scalar> AcrossDevices<S> {
    /// From the devices and their operators, all of one domain, which is their range as well. Errors: no
    /// operator, or other shapes.
    pub fn new(parts: Vec<(Device, Option<Op<S>>)>) -> Result<Self> {
        let (devices, parts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let Some(first) = parts.iter().flatten().next() else {
            return Err(Error::value("operators of devices", "at least one", 0));
        };
        let shape = first.domain().to_vec();
        for part in parts.iter().flatten() {
            expect_shape("domain of a device's operator", &shape, part.domain())?;
            expect_shape("range of a device's operator", &shape, part.range())?;
        }
        if parts[1..].iter().any(Option::is_none) {
            return Err(Error::value("operators of devices", "one for each behind the first", "fewer"));
        }
        Ok(Self { across: Across::new(&devices, &shape)?, parts })
    }

    /// Bytes that an application takes besides x, Ax and the work of the operators, as [`Across::bytes`].
    pub fn bytes(devices: usize, len: usize) -> (u64, u64) {
        Across::<S>::bytes(devices, len)
    }

    fn apply(
        &self,
        x: &Array<S>,
        y: &mut Array<S>,
        one: impl Fn(&dyn LinearOp<S>, &Array<S>, &mut Array<S>) -> Result<()> + Sync,
    ) -> Result<()> {
        self.across.sum(x, y, |device, x, y| match &self.parts[device] {
            Some(part) => one(&**part, x, y),
            None => y.fill(S::factor(0.0.into())?),
        })
    }
}

impl<S: Scalar> LinearOp<S> for AcrossDevices<S> {
    fn name(&self) -> &str {
        "sum over devices"
    }
    fn domain(&self) -> &[usize] {
        &self.across.shape
    }
    fn range(&self) -> &[usize] {
        &self.across.shape
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.check_forward(x, y)?;
        self.apply(x, y, |part, x, y| part.forward_into(x, y))
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        self.check_adjoint(y, x)?;
        self.apply(y, x, |part, y, x| part.adjoint_into(y, x))
    }
}
