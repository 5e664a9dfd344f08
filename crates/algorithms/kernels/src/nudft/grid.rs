//! The points at which a transform is evaluated: an image, or a grid of displacements.

use rayspin_core::{Error, Result, Trajectory, format_shape, voxels};

/// Equally spaced points along one axis: index i lies at (first + i)/n of the field of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Points per field of view.
    pub n: usize,
    /// Position of index 0, in units of 1/n.
    pub first: isize,
    /// Number of points.
    pub count: usize,
    /// Which component of the trajectory belongs to it (0 is x), or `None` where the trajectory has none: k
    /// is 0.
    pub component: Option<usize>,
}

impl Axis {
    const ABSENT: Axis = Axis { n: 1, first: 0, count: 1, component: None };

    /// Where index `i` lies, in fields of view.
    pub fn position(&self, i: usize) -> f64 {
        (self.first + i as isize) as f64 / self.n as f64
    }

    /// k of this axis, in cycles per field of view.
    pub fn k(&self, trajectory: &Trajectory, sample: usize) -> f64 {
        let component = self.component.and_then(|c| trajectory.point(sample).get(c));
        component.copied().unwrap_or(0.0)
    }
}

/// A box of points, axes z, y, x in C order; grids of fewer dimensions have absent leading axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// The axes z, y, x.
    pub axes: [Axis; 3],
}

impl Grid {
    /// The voxels of an image `[nz, ny, nx]` (or `[ny, nx]`, `[nx]`): index n/2 is position 0.
    pub fn image(matrix: &[usize]) -> Result<Self> {
        Self::centred(matrix, 1)
    }

    /// The displacements between voxels, `[2nz, 2ny, 2nx]`, spacing 1/n: index n is displacement 0.
    pub fn displacements(matrix: &[usize]) -> Result<Self> {
        Self::centred(matrix, 2)
    }

    fn centred(matrix: &[usize], scale: usize) -> Result<Self> {
        let dims = matrix.len();
        if !(1..=3).contains(&dims) || matrix.contains(&0) {
            let given = format_shape(matrix);
            return Err(Error::value("matrix", "1 to 3 axes, none empty", given));
        }
        let counts: Vec<usize> = matrix.iter().map(|&n| n.saturating_mul(scale)).collect();
        voxels(&counts)?;
        let mut axes = [Axis::ABSENT; 3];
        for (axis, (&n, &count)) in matrix.iter().zip(&counts).enumerate() {
            axes[3 - dims + axis] =
                Axis { n, first: -((count / 2) as isize), count, component: Some(dims - 1 - axis) };
        }
        Ok(Self { axes })
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.axes.iter().map(|a| a.count).product()
    }

    /// The number of images of these points in `values` numbers.
    pub(super) fn batch(&self, values: usize) -> usize {
        values / self.points()
    }

    /// Number of rows along x: points of z and y.
    pub fn rows(&self) -> usize {
        self.axes[0].count * self.axes[1].count
    }

    /// Positions z, y, x of a flat index, in fields of view.
    pub fn position(&self, index: usize) -> [f64; 3] {
        let [z, y, x] = &self.axes;
        let row = index / x.count;
        [z.position(row / y.count), y.position(row % y.count), x.position(index % x.count)]
    }

    /// k of a sample, z, y, x, in cycles per field of view.
    pub fn k(&self, trajectory: &Trajectory, sample: usize) -> [f64; 3] {
        self.axes.map(|axis| axis.k(trajectory, sample))
    }
}
