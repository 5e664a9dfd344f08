use std::fmt;

use super::{Frame, Samples};

/// What a frame was understood as, for the user to check: `8 coils, 230 × 180, Cartesian, 12.4 % sampled`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Number of coils.
    pub coils: usize,
    /// The image's matrix in the order x, y and, where it has one, z.
    pub matrix: Vec<usize>,
    /// How k-space was sampled.
    pub sampling: String,
}

impl Frame {
    /// What the frame was understood as.
    pub fn summary(&self) -> Summary {
        let sampling = match &self.samples {
            Samples::Cartesian { sampled, .. } => {
                let count = sampled.iter().filter(|&&s| s).count();
                if count == sampled.len() {
                    "Cartesian, fully sampled".to_owned()
                } else {
                    let percent = 100.0 * count as f64 / sampled.len() as f64;
                    format!("Cartesian, {} % sampled", rounded(percent))
                }
            }
            Samples::NonCartesian { trajectory, .. } => {
                let voxels: f64 = self.matrix.iter().map(|&n| n as f64).product();
                let samples = trajectory.samples();
                let density = rounded(samples as f64 / voxels);
                format!("{samples} samples along a trajectory, {density} a voxel")
            }
        };
        Summary { coils: self.coils(), matrix: self.matrix.iter().rev().copied().collect(), sampling }
    }
}

/// Three digits, or two where the number is below 1.
fn rounded(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v >= 0.0995 => format!("{v:.2}"),
        v if v >= 0.00995 => format!("{v:.3}"),
        v => format!("{v:.1e}"),
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.matrix.iter().map(ToString::to_string).collect();
        let plural = if self.coils == 1 { "" } else { "s" };
        write!(f, "{} coil{plural}, {}, {}", self.coils, sizes.join(" × "), self.sampling)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, ArrayD, IxDyn};
    use rayspin_core::{C32, Geometry, Trajectory};

    use super::*;

    #[test]
    fn a_grid_and_a_trajectory_are_summed_up_in_a_line() {
        let mut kspace = ArrayD::from_elem(IxDyn(&[8, 180, 230]), C32::ONE);
        let full = Frame::from_grid(kspace.clone(), Geometry::default()).unwrap();
        assert_eq!(full.summary().to_string(), "8 coils, 230 × 180, Cartesian, fully sampled");
        for (index, value) in kspace.indexed_iter_mut() {
            if index[1] % 8 > 0 {
                *value = C32::ZERO;
            }
        }
        let part = Frame::from_grid(kspace, Geometry::default()).unwrap();
        assert_eq!(part.summary().to_string(), "8 coils, 230 × 180, Cartesian, 12.8 % sampled");

        let points = Array2::from_shape_fn((512, 3), |(i, d)| ((i >> d) % 8) as f64 - 4.0);
        let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
        let data = Array2::from_elem((1, 512), C32::ONE);
        let frame =
            Frame::from_samples(data, trajectory, vec![8, 8, 16], Geometry::default(), &mut Vec::new());
        let text = frame.unwrap().summary().to_string();
        assert_eq!(text, "1 coil, 16 × 8 × 8, 512 samples along a trajectory, 0.50 a voxel");
    }

    #[test]
    fn numbers_have_three_digits_at_most() {
        for (value, text) in [
            (99.97, "100"),
            (99.9, "99.9"),
            (12.43, "12.4"),
            (9.994, "9.99"),
            (0.2, "0.20"),
            (0.0977, "0.098"),
            (0.00123, "1.2e-3"),
        ] {
            assert_eq!(rounded(value), text);
        }
    }
}
