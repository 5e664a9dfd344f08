//! Compressed shapes: differences of neighbours. Equal differences in a row are counted.

use super::parse::{LONGEST, Version};

/// A shape as the file has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    /// Samples that it stands for.
    pub(super) samples: usize,
    pub(super) packed: Vec<f64>,
}

impl Shape {
    /// The samples: v_i = Σ_{j ≤ i} d_j, where two equal differences in a row are followed by the number of
    /// more of them. From version 1.4 on as many numbers as samples are the samples themselves.
    ///
    /// None where the numbers do not make as many samples.
    pub(super) fn unpacked(&self, version: Version) -> Option<Vec<f64>> {
        if version >= Version::TIMED && self.packed.len() == self.samples {
            return Some(self.packed.clone());
        }
        if self.samples > LONGEST {
            return None;
        }
        let mut differences = Vec::with_capacity(self.samples.min(1 << 16));
        let mut index = 0;
        while let Some(&value) = self.packed.get(index) {
            differences.push(value);
            index += 1;
            if self.packed.get(index) == Some(&value) {
                let more = *self.packed.get(index + 1)?;
                let room = self.samples.checked_sub(differences.len() + 1)?;
                if more < 0.0 || more.fract() != 0.0 || more > room as f64 {
                    return None;
                }
                differences.resize(differences.len() + 1 + more as usize, value);
                index += 2;
            }
            if differences.len() > self.samples {
                return None;
            }
        }
        let mut sum = 0.0;
        differences.iter_mut().for_each(|value| {
            sum += *value;
            *value = sum;
        });
        (differences.len() == self.samples).then_some(differences)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_counted_and_summed() {
        let shape = |samples, packed: &[f64]| Shape { samples, packed: packed.to_vec() };
        let old = Version(1, 3, 1);
        // The example of the format's specification.
        let found = shape(11, &[0.0, 0.1, 0.25, 0.0, 0.0, 2.0, -0.25, -0.1, 0.0, 0.0, 0.0]).unpacked(old);
        let wanted = [0.0, 0.1, 0.35, 0.35, 0.35, 0.35, 0.35, 0.1, 0.0, 0.0, 0.0];
        let found = found.unwrap_or_default();
        assert_eq!(found.len(), 11);
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        assert_eq!(shape(2, &[1.0, 1.0]).unpacked(Version::TIMED), Some(vec![1.0, 1.0]));
        for (samples, packed) in [
            (3, &[1.0, 1.0][..]),
            (3, &[1.0, 1.0, 2.0]),
            (3, &[1.0, 1.0, 0.5]),
            (3, &[1.0, 1.0, -1.0]),
            (4, &[1.0]),
            (usize::MAX, &[1.0, 1.0, 1e18]),
        ] {
            assert_eq!(shape(samples, packed).unpacked(old), None, "{packed:?}");
        }
    }
}
