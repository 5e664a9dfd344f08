//! The oracle.

use rayspin_core::Result;
use rayspin_device::cpu::zeroed;

use super::Sample;

/// How many samples have the value b, for every b below `bins`; others are not counted.
///
/// Errors: memory.
pub fn counts<T: Sample>(samples: &[T], bins: usize) -> Result<Vec<u64>> {
    let mut counts = zeroed("counts", bins)?;
    for &v in samples {
        if let Some(count) = counts.get_mut(v.into() as usize) {
            *count += 1;
        }
    }
    Ok(counts)
}
