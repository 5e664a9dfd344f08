//! Values of any device as slices of the host: for what is set up once and is not worth a kernel of its own on a GPU,
//! whose CPU then does it.

use std::borrow::Cow;

use rayspin_core::Result;
use rayspin_device::{Array, Backend, Element};

/// The values of `array`: its own on the CPU, a copy from a GPU.
pub(crate) fn reading<T: Element>(array: &Array<T>) -> Result<Cow<'_, [T]>> {
    match array.device().backend() {
        Backend::Cpu(_) => Ok(Cow::Borrowed(array.cpu())),
        Backend::Cuda(_) => Ok(Cow::Owned(array.to_vec()?)),
    }
}

/// `work` on the values of `array`, which hold what they held; to a GPU they are copied back.
pub(crate) fn writing<T: Element, O>(array: &mut Array<T>, work: impl FnOnce(&mut [T]) -> O) -> Result<O> {
    let device = array.device().clone();
    match device.backend() {
        Backend::Cpu(_) => Ok(work(array.cpu_mut())),
        Backend::Cuda(_) => {
            let mut values = array.to_vec()?;
            let done = work(&mut values);
            array.set(&values)?;
            Ok(done)
        }
    }
}
