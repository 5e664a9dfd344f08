use std::sync::{Mutex, PoisonError};

use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::{Array, Backend, Device};
use rayspin_kernels::vector::{Scalar, SumAcross, broadcast};

use crate::{LinearOp, Op};

/// A = Σ_g A_g, where each A_g is computed on a device of its own: the normal operator Σ_g E_gᴴE_g of coils
/// that are spread over GPUs.
///
/// x and Ax live on the first device. Each application copies x to the others, applies all A_g at the same
/// time, and adds their results in the order of the devices. So Ax has the same bits from run to run, and
/// agrees with the sum that one device computes to rounding. The first device may have no operator, and then
/// adds alone. An application cannot be recorded for repetition.
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
    devices: Vec<Device>,
    parts: Vec<Option<Op<S>>>,
    shape: Vec<usize>,
    /// Memory of applications that are done, for the next ones.
    free: Mutex<Vec<Work<S>>>,
}

/// The memory of one application.
struct Work<S: Scalar> {
    /// x and A_g x of the devices behind the first.
    x: Vec<Array<S>>,
    y: Vec<Array<S>>,
    sum: SumAcross<S>,
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
        Ok(Self { devices, parts, shape, free: Mutex::default() })
    }

    /// Bytes that an application takes for a domain of `len` elements on `devices` devices, besides x, Ax and
    /// the work of the operators: on the first device, and on each other one.
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

    fn apply(
        &self,
        x: &Array<S>,
        y: &mut Array<S>,
        one: impl Fn(&dyn LinearOp<S>, &Array<S>, &mut Array<S>) -> Result<()> + Sync,
    ) -> Result<()> {
        let lead = &self.devices[0];
        if !x.device().same_as(lead) {
            return Err(Error::value("operator over devices: input", lead.name(), x.device().name()));
        }
        if let Backend::Cuda(cuda) = lead.backend() {
            cuda.expect_not_recording("work on several devices")?;
        }
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = free().pop();
        let mut work = kept.map_or_else(|| self.make(), Ok)?;
        broadcast(x, &mut work.x.iter_mut().collect::<Vec<_>>())?;
        std::thread::scope(|scope| {
            let one = &one;
            let mut others = Vec::new();
            let parts = self.parts.iter().zip(&self.devices).skip(1);
            for (((part, device), x), y) in parts.zip(&work.x).zip(&mut work.y) {
                let Some(part) = part else { continue };
                let apply = move || one(&**part, x, y).map_err(|error| device.named(error));
                let begun = std::thread::Builder::new().spawn_scoped(scope, apply);
                others.push(begun.map_err(|error| Error::Device {
                    what: "starting a thread for a device".to_owned(),
                    detail: error.to_string(),
                })?);
            }
            let own = match &self.parts[0] {
                Some(part) => one(&**part, x, y),
                None => y.fill(S::factor(0.0.into())?),
            };
            let own = own.map_err(|error| lead.named(error));
            // An error waits until all threads have ended.
            let done: Vec<_> = others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect();
            own.and(done.into_iter().collect::<Result<()>>())
        })?;
        let mut parts: Vec<_> = std::iter::once(y).chain(&mut work.y).collect();
        work.sum.to_first(&mut parts)?;
        free().push(work);
        Ok(())
    }
}

impl<S: Scalar> LinearOp<S> for AcrossDevices<S> {
    fn name(&self) -> &str {
        "sum over devices"
    }
    fn domain(&self) -> &[usize] {
        &self.shape
    }
    fn range(&self) -> &[usize] {
        &self.shape
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
