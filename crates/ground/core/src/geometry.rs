use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Where an image lies in the patient.
///
/// A voxel has centred indices (i, j, k) along x (read), y (phase) and z (slice). It lies at `position +
/// i·sx·read + j·sy·phase + k·sz·slice`. Positions are in mm and LPS coordinates, as in DICOM and ISMRMRD: x
/// to the patient's left, y posterior, z superior.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Geometry {
    /// Voxel size along x, y, z in mm.
    pub spacing_mm: [f64; 3],
    /// The centre of the centre voxel (index n/2 along each axis), LPS, mm.
    pub position_mm: [f64; 3],
    /// Unit vector along x, LPS.
    pub read_dir: [f64; 3],
    /// Unit vector along y, LPS.
    pub phase_dir: [f64; 3],
    /// Unit vector along z, LPS.
    pub slice_dir: [f64; 3],
}

impl Default for Geometry {
    /// 1 mm voxels at the isocentre, x to the left, y posterior, z superior.
    fn default() -> Self {
        Self {
            spacing_mm: [1.0; 3],
            position_mm: [0.0; 3],
            read_dir: [1.0, 0.0, 0.0],
            phase_dir: [0.0, 1.0, 0.0],
            slice_dir: [0.0, 0.0, 1.0],
        }
    }
}

impl Geometry {
    /// A geometry, checked: positive finite spacing, finite position, direction vectors orthonormal within
    /// 1e-3 (they are stored as f32 in files).
    pub fn new(
        spacing_mm: [f64; 3],
        position_mm: [f64; 3],
        read_dir: [f64; 3],
        phase_dir: [f64; 3],
        slice_dir: [f64; 3],
    ) -> Result<Self> {
        if spacing_mm.iter().any(|s| !s.is_finite() || *s <= 0.0) {
            return Err(Error::value("voxel spacing", "positive lengths in mm", format!("{spacing_mm:?}")));
        }
        if position_mm.iter().any(|p| !p.is_finite()) {
            return Err(Error::value(
                "image position",
                "finite coordinates in mm",
                format!("{position_mm:?}"),
            ));
        }
        let axes = [read_dir, phase_dir, slice_dir];
        for (a, first) in axes.iter().enumerate() {
            for (b, second) in axes.iter().enumerate().skip(a) {
                let wanted = if a == b { 1.0 } else { 0.0 };
                let cosine = dot(first, second);
                if (cosine - wanted).abs() > 1e-3 || !cosine.is_finite() {
                    return Err(Error::value(
                        "direction cosines",
                        "three orthonormal vectors",
                        format!("{axes:?}"),
                    ));
                }
            }
        }
        Ok(Self { spacing_mm, position_mm, read_dir, phase_dir, slice_dir })
    }

    /// The 3 × 4 affine from voxel indices (i, j, k along x, y, z, from 0) of a `[nz, ny, nx]` image to LPS
    /// mm.
    pub fn affine_lps(&self, shape_zyx: [usize; 3]) -> [[f64; 4]; 3] {
        let [nz, ny, nx] = shape_zyx;
        let centre = [(nx / 2) as f64, (ny / 2) as f64, (nz / 2) as f64];
        let axes = [self.read_dir, self.phase_dir, self.slice_dir];
        std::array::from_fn(|row| {
            let mut out = [0.0; 4];
            out[3] = self.position_mm[row];
            for axis in 0..3 {
                out[axis] = axes[axis][row] * self.spacing_mm[axis];
                out[3] -= out[axis] * centre[axis];
            }
            out
        })
    }

    /// [`Geometry::affine_lps`] in RAS, as NIfTI has it.
    pub fn affine_ras(&self, shape_zyx: [usize; 3]) -> [[f64; 4]; 3] {
        let lps = self.affine_lps(shape_zyx);
        [lps[0].map(|v| -v), lps[1].map(|v| -v), lps[2]]
    }

    /// The geometry whose [`Geometry::affine_ras`] is `affine`. Errors: columns that are zero or not
    /// orthogonal (a sheared image has no direction cosines).
    pub fn from_affine_ras(affine: [[f64; 4]; 3], shape_zyx: [usize; 3]) -> Result<Self> {
        let lps = [affine[0].map(|v| -v), affine[1].map(|v| -v), affine[2]];
        let column = |axis: usize| [lps[0][axis], lps[1][axis], lps[2][axis]];
        let spacing: [f64; 3] = std::array::from_fn(|axis| dot(&column(axis), &column(axis)).sqrt());
        let direction = |axis: usize| column(axis).map(|v| v / spacing[axis]);
        let [nz, ny, nx] = shape_zyx;
        let centre = [(nx / 2) as f64, (ny / 2) as f64, (nz / 2) as f64];
        let position = std::array::from_fn(|row| {
            lps[row][3] + (0..3).map(|axis| lps[row][axis] * centre[axis]).sum::<f64>()
        });
        Self::new(spacing, position, direction(0), direction(1), direction(2))
    }
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn affine_round_trips(
            spacing in prop::array::uniform3(0.1f64..10.0),
            position in prop::array::uniform3(-300f64..300.0),
            angles in prop::array::uniform2(-3.0f64..3.0),
            mirrored in any::<bool>(),
            shape in prop::array::uniform3(1usize..300),
        ) {
            let ((s, c), (t, d)) = (angles[0].sin_cos(), angles[1].sin_cos());
            let sign = if mirrored { -1.0 } else { 1.0 };
            let slice = [s * t, -c * t, d].map(|v| sign * v);
            let g = Geometry::new(spacing, position, [c, s, 0.0], [-s * d, c * d, t], slice).unwrap();
            let (ras, lps) = (g.affine_ras(shape), g.affine_lps(shape));
            for column in 0..4 {
                prop_assert_eq!(ras[0][column], -lps[0][column]);
                prop_assert_eq!(ras[1][column], -lps[1][column]);
                prop_assert_eq!(ras[2][column], lps[2][column]);
            }
            let back = Geometry::from_affine_ras(g.affine_ras(shape), shape).unwrap();
            for axis in 0..3 {
                prop_assert!((back.spacing_mm[axis] - spacing[axis]).abs() < 1e-9);
                prop_assert!((back.position_mm[axis] - position[axis]).abs() < 1e-6);
                prop_assert!((back.read_dir[axis] - g.read_dir[axis]).abs() < 1e-9);
                prop_assert!((back.phase_dir[axis] - g.phase_dir[axis]).abs() < 1e-9);
                prop_assert!((back.slice_dir[axis] - g.slice_dir[axis]).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn the_centre_voxel_lies_at_the_position() {
        let g = Geometry { spacing_mm: [2.0, 3.0, 4.0], position_mm: [5.0, 6.0, 7.0], ..Geometry::default() };
        let a = g.affine_lps([5, 6, 7]);
        let at = |i: f64, j: f64, k: f64| a.map(|r| r[0] * i + r[1] * j + r[2] * k + r[3]);
        assert_eq!(at(3.0, 3.0, 2.0), [5.0, 6.0, 7.0]);
        assert_eq!(at(4.0, 3.0, 2.0), [7.0, 6.0, 7.0]);
    }

    #[test]
    fn skewed_directions_are_refused() {
        let skew = Geometry::new([1.0; 3], [0.0; 3], [1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]);
        assert!(matches!(skew, Err(Error::Value { .. })));
    }
}
