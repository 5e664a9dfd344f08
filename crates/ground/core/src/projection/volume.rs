use serde::{Deserialize, Serialize};

use crate::{Error, Geometry, Result, voxels};

/// The voxels of a CT volume, in the scanner's coordinates and in mm. Their axes are parallel to the
/// scanner's axes.
///
/// The centre of voxel `[k, j, i]` lies at `centre + ((i, j, k) − (n − 1)/2) · spacing` along x, y and z.
///
/// ```
/// use rayspin_core::VolumeGrid;
///
/// let grid = VolumeGrid::new([1, 4, 5], [0.5, 0.5, 2.0], [0.0, 0.0, 10.0])?;
/// assert_eq!(grid.first_mm(), [-1.0, -0.75, 10.0]);
/// assert_eq!(grid.extent_mm(), [2.5, 2.0, 2.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct VolumeGrid {
    shape_zyx: [usize; 3],
    spacing_mm: [f64; 3],
    centre_mm: [f64; 3],
}

impl VolumeGrid {
    /// A grid of `shape_zyx` voxels of `spacing_mm` (x, y, z), whose box has its middle at `centre_mm` (x, y,
    /// z).
    ///
    /// Errors: an axis without voxels, more voxels than an array may have, a spacing that is not positive,
    /// numbers that are not finite.
    pub fn new(shape_zyx: [usize; 3], spacing_mm: [f64; 3], centre_mm: [f64; 3]) -> Result<Self> {
        if voxels(&shape_zyx)? == 0 {
            return Err(Error::value(
                "volume",
                "at least one voxel along each axis",
                format!("{shape_zyx:?}"),
            ));
        }
        if spacing_mm.iter().any(|s| !s.is_finite() || *s <= 0.0) {
            return Err(Error::value("voxel spacing", "positive lengths in mm", format!("{spacing_mm:?}")));
        }
        if centre_mm.iter().any(|c| !c.is_finite()) {
            return Err(Error::value(
                "centre of the volume",
                "finite coordinates in mm",
                format!("{centre_mm:?}"),
            ));
        }
        Ok(Self { shape_zyx, spacing_mm, centre_mm })
    }

    /// Number of voxels along z, y and x.
    pub fn shape_zyx(&self) -> [usize; 3] {
        self.shape_zyx
    }

    /// Voxel size along x, y and z in mm.
    pub fn spacing_mm(&self) -> [f64; 3] {
        self.spacing_mm
    }

    /// The middle of the box, (x, y, z) in mm.
    pub fn centre_mm(&self) -> [f64; 3] {
        self.centre_mm
    }

    /// Number of voxels along x, y and z.
    pub fn shape_xyz(&self) -> [usize; 3] {
        let [nz, ny, nx] = self.shape_zyx;
        [nx, ny, nz]
    }

    /// The size of the box along x, y and z in mm.
    pub fn extent_mm(&self) -> [f64; 3] {
        let shape = self.shape_xyz();
        std::array::from_fn(|axis| shape[axis] as f64 * self.spacing_mm[axis])
    }

    /// The centre of voxel `[0, 0, 0]`, (x, y, z) in mm.
    pub fn first_mm(&self) -> [f64; 3] {
        let shape = self.shape_xyz();
        std::array::from_fn(|axis| {
            self.centre_mm[axis] - 0.5 * (shape[axis] - 1) as f64 * self.spacing_mm[axis]
        })
    }

    /// The slices `first .. first + count` as a grid of their own.
    ///
    /// Errors: no slices, or slices beyond the volume.
    pub fn slab(&self, first: usize, count: usize) -> Result<Self> {
        let slices = self.shape_zyx[0];
        if count == 0 || first.checked_add(count).is_none_or(|end| end > slices) {
            let given = format!("{count} slices from {first}");
            return Err(Error::value("slab", format!("some of the {slices} slices"), given));
        }
        let middle = first as f64 + 0.5 * (count - 1) as f64 - 0.5 * (slices - 1) as f64;
        let mut slab = *self;
        slab.shape_zyx[0] = count;
        slab.centre_mm[2] += middle * self.spacing_mm[2];
        Ok(slab)
    }

    /// The grid as the [`Geometry`] of an image: the scanner's x, y and z are its x, y and z.
    pub fn geometry(&self) -> Geometry {
        let (first, shape) = (self.first_mm(), self.shape_xyz());
        let position_mm =
            std::array::from_fn(|axis| first[axis] + (shape[axis] / 2) as f64 * self.spacing_mm[axis]);
        Geometry { spacing_mm: self.spacing_mm, position_mm, ..Geometry::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_lie_where_their_slices_lay() {
        let whole = VolumeGrid::new([7, 2, 3], [1.0, 1.0, 0.3], [4.0, 5.0, -6.0]).unwrap();
        for (first, count) in [(0, 7), (0, 1), (3, 2), (6, 1)] {
            let slab = whole.slab(first, count).unwrap();
            let wanted = whole.first_mm()[2] + first as f64 * 0.3;
            assert!((slab.first_mm()[2] - wanted).abs() < 1e-12);
            assert_eq!(slab.first_mm()[..2], whole.first_mm()[..2]);
        }
        for (first, count) in [(0, 0), (0, 8), (7, 1), (usize::MAX, 2)] {
            assert!(whole.slab(first, count).is_err());
        }
    }

    #[test]
    fn the_image_has_the_positions_of_the_grid() {
        let grid = VolumeGrid::new([4, 5, 6], [0.5, 0.7, 0.9], [1.0, 2.0, 3.0]).unwrap();
        let affine = grid.geometry().affine_lps([4, 5, 6]);
        for (axis, row) in affine.iter().enumerate() {
            assert!((row[3] - grid.first_mm()[axis]).abs() < 1e-12);
            assert_eq!(row[axis], grid.spacing_mm()[axis]);
        }
    }

    #[test]
    fn grids_without_sense_are_refused() {
        for (shape, spacing, centre) in [
            ([0, 1, 1], [1.0; 3], [0.0; 3]),
            ([usize::MAX, 2, 1], [1.0; 3], [0.0; 3]),
            ([1, 1, 1], [1.0, 0.0, 1.0], [0.0; 3]),
            ([1, 1, 1], [1.0, f64::NAN, 1.0], [0.0; 3]),
            ([1, 1, 1], [1.0; 3], [0.0, f64::INFINITY, 0.0]),
        ] {
            assert!(VolumeGrid::new(shape, spacing, centre).is_err());
        }
    }
}
