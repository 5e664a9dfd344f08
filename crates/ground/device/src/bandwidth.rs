use rayspin_core::{Error, Result};

use crate::{Array, Backend, Device};

/// Bytes per second that a copy within the device's memory reads and writes together. The best of five copies
/// of 1 GiB or a quarter of the free memory.
pub fn copy_bandwidth(device: &Device) -> Result<f64> {
    let Backend::Cuda(cuda) = device.backend() else {
        return Err(Error::value("device", "a GPU", device.describe()));
    };
    let len = (cuda.memory_left()? / 4).min(1 << 30) as usize / 4;
    let from = Array::<f32>::zeros(device, &[len])?;
    let mut to = Array::<f32>::zeros(device, &[len])?;
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        best = best.min(cuda.seconds(|| to.copy_from(&from))?);
    }
    Ok(8.0 * len as f64 / best)
}
