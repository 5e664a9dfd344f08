//! Rays in voxel indices.

use rayspin_core::VolumeGrid;

use super::Scene;

/// The axes of a volume, as indices into (x, y, z): the main axis of a ray first, then the axes b and c of
/// its planes, b with the smaller stride.
pub(super) const AXES: [[usize; 3]; 3] = [[0, 1, 2], [1, 0, 2], [2, 0, 1]];

/// A ray through the box of the voxels. Its main axis, along which it passes voxels fastest, is cut into
/// cells, `samples` for each voxel. Cell k reaches from k to k + 1, and the ray is sampled in the cell's
/// middle, where it crosses the plane (b + k·db, c + k·dc).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ray {
    /// The main axis: 0, 1 or 2 for x, y or z.
    pub(super) main: usize,
    /// Whether the ray runs towards larger indices of the main axis.
    pub(super) ascending: bool,
    pub(super) b: f64,
    pub(super) db: f64,
    pub(super) c: f64,
    pub(super) dc: f64,
    /// The part of the main axis on which the ray is in the box, in cells.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Length in a cell, mm.
    pub(super) step: f64,
}

impl Ray {
    /// The first and the last cell of the ray, in the order of indices.
    pub(super) fn cells(&self, count: usize) -> [usize; 2] {
        let last = (count - 1) as f64;
        let first = self.low.floor().clamp(0.0, last);
        [first as usize, (self.high.ceil() - 1.0).clamp(first, last) as usize]
    }
}

/// What rays of a picture have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    /// The camera's rows in voxel indices, counted from the corner of the box: voxel i reaches from i to i +
    /// 1.
    start: [[f64; 3]; 3],
    along: [[f64; 3]; 3],
    from_point: bool,
    spacing: [f64; 3],
    pub(super) size: [usize; 3],
    samples: [u32; 3],
    shape: [usize; 2],
}

impl Setup {
    pub(super) fn new(scene: &Scene, grid: &VolumeGrid) -> Self {
        let (spacing, first) = (grid.spacing_mm(), grid.first_mm());
        let scaled = |v: [f64; 3]| -> [f64; 3] { std::array::from_fn(|axis| v[axis] / spacing[axis]) };
        let camera = &scene.camera;
        let corner = std::array::from_fn(|axis| first[axis] - 0.5 * spacing[axis]);
        let mut start = camera.start.map(scaled);
        start[0] = scaled(rayspin_core::vector::sub(camera.start[0], corner));
        Self {
            start,
            along: camera.along.map(scaled),
            from_point: camera.from_point,
            spacing,
            size: grid.shape_xyz(),
            samples: scene.samples,
            shape: camera.shape(),
        }
    }

    /// Cells of the main axis for each voxel, and in all.
    pub(super) fn cells(&self, main: usize) -> (usize, usize) {
        let samples = self.samples[main] as usize;
        (samples, samples * self.size[main])
    }

    /// The numbers that kernels read: start, direction and spacing.
    pub(super) fn numbers(&self) -> Vec<f64> {
        self.start.iter().chain(&self.along).flatten().chain(&self.spacing).copied().collect()
    }

    pub(super) fn samples(&self) -> [u32; 3] {
        self.samples
    }

    /// Whether rays start at one point.
    pub(super) fn starts_at_point(&self) -> bool {
        self.from_point
    }

    /// The ray of a pixel; none where it misses the box.
    #[inline(always)]
    pub(super) fn ray(&self, row: usize, column: usize) -> Option<Ray> {
        let (x, y) =
            (column as f64 - 0.5 * (self.shape[1] - 1) as f64, row as f64 - 0.5 * (self.shape[0] - 1) as f64);
        let (mut origin, mut along) = ([0.0; 3], [0.0; 3]);
        let mut range = [if self.from_point { 0.0 } else { f64::NEG_INFINITY }, f64::INFINITY];
        let mut length = 0.0;
        for axis in 0..3 {
            origin[axis] = self.start[0][axis] + x * self.start[1][axis] + y * self.start[2][axis];
            along[axis] = self.along[0][axis] + x * self.along[1][axis] + y * self.along[2][axis];
            let mm = along[axis] * self.spacing[axis];
            length += mm * mm;
            let size = self.size[axis] as f64;
            if along[axis] == 0.0 {
                if !(0.0..=size).contains(&origin[axis]) {
                    return None;
                }
                continue;
            }
            let inverse = 1.0 / along[axis];
            let (one, other) = (-origin[axis] * inverse, (size - origin[axis]) * inverse);
            range = [range[0].max(one.min(other)), range[1].min(one.max(other))];
        }
        let main = main_axis(along);
        if range[0] >= range[1] {
            return None;
        }
        let [a, b, c] = AXES[main];
        let samples = f64::from(self.samples[main]);
        let inverse = 1.0 / along[a];
        // Per cell.
        let (db, dc) = (along[b] * inverse / samples, along[c] * inverse / samples);
        let to_cell = |t: f64| (origin[a] + t * along[a]) * samples;
        let (one, other) = (to_cell(range[0]), to_cell(range[1]));
        let middle = 0.5 - origin[a] * samples;
        Some(Ray {
            main,
            ascending: along[a] > 0.0,
            // From corners to centres of voxels.
            b: origin[b] + middle * db - 0.5,
            db,
            c: origin[c] + middle * dc - 0.5,
            dc,
            low: one.min(other),
            high: one.max(other),
            step: length.sqrt() * inverse.abs() / samples,
        })
    }
}

/// An axis is a ray's main axis instead of an earlier one if the ray passes voxels along it faster by this
/// factor. So every variant takes the same axis where two differ by rounding alone. The samples of a ray
/// depend on its main axis.
pub(super) const MARGIN: f64 = 1.0 + 1e-9;

/// The axis along which a ray passes voxels fastest.
#[inline(always)]
fn main_axis(along: [f64; 3]) -> usize {
    let mut main = 0;
    for axis in 1..3 {
        if along[axis].abs() > MARGIN * along[main].abs() {
            main = axis;
        }
    }
    main
}

/// The planes of voxels before and after the middle of cell k, and where it lies between them. Beyond the
/// outer planes values stay as in them.
#[inline(always)]
pub(super) fn planes(cell: usize, samples: usize, count: usize) -> (usize, usize, f32) {
    if samples == 1 {
        return (cell, cell, 0.0);
    }
    // (k + ½)/n − ½ = (2k + 1 − n) / 2n
    let (twice, double) = (2 * cell + 1, 2 * samples);
    let Some(above) = twice.checked_sub(samples) else { return (0, 0, 0.0) };
    let low = above / double;
    (low.min(count - 1), (low + 1).min(count - 1), (above % double) as f32 / double as f32)
}
