//! From voxels to pixels.

use rayspin_core::{ProjectionGeometry, RaySource, VolumeGrid};

/// The pixels on which the voxels of a view with a flat detector fall:
///
/// ```text
/// (U, V, W) = rows · (i, j, k, 1)        column = U / W,  row = V / W,  magnification = 1 / W
/// ```
///
/// W is the distance of the voxel from the source, along the detector's normal, in distances of the detector;
/// 1 for parallel beams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Matrix {
    pub(super) u: [f64; 4],
    pub(super) v: [f64; 4],
    pub(super) w: [f64; 4],
}

impl Matrix {
    /// The matrix of a view; none where the detector is curved.
    pub(super) fn new(geometry: &ProjectionGeometry, grid: &VolumeGrid, view: usize) -> Option<Self> {
        let detector = geometry.detector();
        if detector.radius_mm.is_some() {
            return None;
        }
        let pose = &geometry.views()[view];
        let dot = |a: [f64; 3], b: [f64; 3]| -> f64 { (0..3).map(|axis| a[axis] * b[axis]).sum() };
        let minus = |a: [f64; 3], b: [f64; 3]| -> [f64; 3] { std::array::from_fn(|axis| a[axis] - b[axis]) };
        let normal = pose.towards_source();
        // The detector's coordinates of a point p, in mm: (p − middle)·axis, moved along the ray to the
        // detector.
        // Parallel: (p − middle)·axis − ((p − middle)·n / d·n) d·axis. Point: source + (p − source) / W.
        let along = |axis: [f64; 3]| -> ([f64; 3], f64, [f64; 3], f64) {
            match pose.source {
                RaySource::Direction(direction) => {
                    let slant = dot(direction, axis) / dot(direction, normal);
                    let row: [f64; 3] = std::array::from_fn(|a| axis[a] - slant * normal[a]);
                    (row, -dot(row, pose.detector_mm), [0.0; 3], 1.0)
                }
                RaySource::Point(source) => {
                    let distance = dot(minus(source, pose.detector_mm), normal);
                    let w: [f64; 3] = std::array::from_fn(|a| -normal[a] / distance);
                    let w0 = dot(source, normal) / distance;
                    // (source − middle)·axis W + (p − source)·axis
                    let shift = dot(minus(source, pose.detector_mm), axis);
                    let row = std::array::from_fn(|a| axis[a] + shift * w[a]);
                    (row, shift * w0 - dot(source, axis), w, w0)
                }
            }
        };
        let (first, spacing) = (grid.first_mm(), grid.spacing_mm());
        let of_index = |row: [f64; 3], constant: f64| -> [f64; 4] {
            [row[0] * spacing[0], row[1] * spacing[1], row[2] * spacing[2], constant + dot(row, first)]
        };
        let [u, v] = pose.measures();
        let (u, u0, w, w0) = along(u);
        let (v, v0, ..) = along(v);
        let (u, v, w) = (of_index(u, u0), of_index(v, v0), of_index(w, w0));
        let pixel = |row: [f64; 4], pitch: f64, count: usize| -> [f64; 4] {
            std::array::from_fn(|component| row[component] / pitch + 0.5 * (count - 1) as f64 * w[component])
        };
        Some(Self {
            u: pixel(u, detector.pitch_mm[0], detector.columns),
            v: pixel(v, detector.pitch_mm[1], detector.rows),
            w,
        })
    }

    /// Whether voxels along z fall on one column of pixels, at one magnification.
    pub(super) fn is_upright(&self) -> bool {
        self.u[2].abs() < 1e-12 && self.w[2].abs() < 1e-12
    }
}

/// Row of a matrix times (i, j, k, 1).
#[inline(always)]
pub(super) fn times(row: &[f64; 4], i: f64, j: f64, k: f64) -> f64 {
    row[0] * i + row[1] * j + row[2] * k + row[3]
}
