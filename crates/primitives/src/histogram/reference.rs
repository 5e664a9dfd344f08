//! The oracle.

use super::Sample;

/// How many samples have the value b, for every b below `bins`; others are not counted.
pub fn counts<T: Sample>(samples: &[T], bins: usize) -> Vec<u64> {
    let mut counts = vec![0; bins];
    for &v in samples {
        if let Some(count) = counts.get_mut(v.into() as usize) {
            *count += 1;
        }
    }
    counts
}
