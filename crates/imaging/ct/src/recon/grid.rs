use std::f64::consts::TAU;

use rayspin_core::{Error, ProjectionGeometry, RaySource, Result, VolumeGrid};

/// What of a grid the user gives; the rest follows from the rays.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GridOptions {
    /// Number of voxels along x, y and z.
    pub matrix: Option<[usize; 3]>,
    /// Their size along x, y and z, mm.
    pub voxel_mm: Option<[f64; 3]>,
    /// The middle of the volume, mm.
    pub centre_mm: [f64; 3],
}

impl GridOptions {
    /// Says how large the voxels of a grid came out, where a matrix alone decided it.
    pub fn note(&self, grid: &VolumeGrid) -> Option<String> {
        let [x, y, z] = grid.spacing_mm().map(|mm| format!("{}", (mm * 1e6).round() / 1e6));
        let alone = self.matrix.is_some() && self.voxel_mm.is_none();
        alone.then(|| {
            format!(
                "voxels of {x} x {y} x {z} mm: `--matrix` keeps the field of view (`--voxel` says their size)"
            )
        })
    }
}

/// The voxels that a detector resolves in the plane and at the height of the axis. A voxel is as large as a
/// pixel over the magnification there. The grid has as many voxels along x and y as the detector has columns,
/// and along z as it has rows. For a shifted detector, twice the columns of its longer side count. A helix
/// gets more slices, as far as it advances. With a matrix or a voxel size alone, the other one covers the
/// same volume.
///
/// Errors: a source on the axis; sizes out of range.
///
/// ```
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry};
/// use rayspin_ct::recon::{GridOptions, grid};
///
/// let detector = Detector { rows: 30, columns: 40, pitch_mm: [4.0, 4.0], radius_mm: None };
/// let orbit = Orbit { source_to_axis_mm: Some(600.0), axis_to_detector_mm: 600.0, ..Orbit::default() };
/// let geometry = ProjectionGeometry::orbit(detector, &orbit.turn(90))?;
/// let voxels = grid(&geometry, &GridOptions::default())?;
/// assert_eq!((voxels.shape_xyz(), voxels.spacing_mm()), ([40, 40, 30], [2.0; 3]));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn grid(geometry: &ProjectionGeometry, options: &GridOptions) -> Result<VolumeGrid> {
    let detector = geometry.detector();
    let mut magnification = 0.0f64;
    let mut reach = 0.0f64;
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (index, view) in geometry.views().iter().enumerate() {
        let normal = view.towards_source();
        let distance = |from: [f64; 3], to: [f64; 3]| {
            (0..3).map(|axis| (from[axis] - to[axis]) * normal[axis]).sum::<f64>()
        };
        let (m, height) = match view.source {
            RaySource::Direction(_) => (1.0, view.detector_mm[2]),
            RaySource::Point(source) => {
                let axis = [0.0, 0.0, source[2]];
                let m = distance(source, view.detector_mm) / distance(source, axis);
                if !(m.is_finite() && m > 0.0) {
                    return Err(Error::value(
                        format!("source of view {index}"),
                        "away from the axis",
                        format!("{source:?}"),
                    ));
                }
                (m, source[2] + (view.detector_mm[2] - source[2]) / m)
            }
        };
        magnification += m;
        (low, high) = (low.min(height), high.max(height));
        // Where the axis falls on the detector.
        if let Some([_, column]) = geometry.project(index, [0.0, 0.0, height]) {
            let last = (detector.columns - 1) as f64;
            reach = reach.max(0.5 + column.max(last - column));
        }
    }
    let magnification = magnification / geometry.views().len() as f64;
    let [pitch_u, pitch_v] = detector.pitch_mm;
    let natural = [pitch_u / magnification, pitch_u / magnification, pitch_v / magnification];
    // A detector counts as centred if the axis falls within one pixel of its middle.
    let across =
        if 2.0 * reach - detector.columns as f64 <= 2.0 { detector.columns as f64 } else { 2.0 * reach };
    let along = match geometry.is_parallel() || high - low < 0.5 * natural[2] {
        true => detector.rows as f64,
        false => detector.rows as f64 + (high - low) / natural[2],
    };
    let extent = [across * natural[0], across * natural[1], along * natural[2]];
    let count =
        |length: f64, size: f64| ((length / size - 1e-6).ceil().max(1.0)).min(u32::MAX.into()) as usize;
    let voxel: [f64; 3] = match (options.voxel_mm, options.matrix) {
        (Some(voxel), _) => voxel,
        (None, Some(matrix)) => std::array::from_fn(|axis| match (axis, matrix[axis]) {
            // One slice is as thick as the rows that it lies in.
            (2, 1) => natural[2],
            (_, n) => extent[axis] / n.max(1) as f64,
        }),
        (None, None) => natural,
    };
    if let Some(bad) = voxel.iter().find(|size| !(size.is_finite() && **size > 0.0)) {
        return Err(Error::value("voxel size", "positive lengths in mm", bad));
    }
    let matrix =
        options.matrix.unwrap_or_else(|| std::array::from_fn(|axis| count(extent[axis], voxel[axis])));
    let middle = if low.is_finite() { 0.5 * (low + high) } else { 0.0 };
    let centre = [options.centre_mm[0], options.centre_mm[1], options.centre_mm[2] + middle];
    VolumeGrid::new([matrix[2], matrix[1], matrix[0]], voxel, centre)
}

/// Angles of `views` views, evenly over `span`, where a file states none.
pub fn even_angles(views: usize, span: f64) -> Vec<f64> {
    (0..views).map(|view| span.clamp(-1e3 * TAU, 1e3 * TAU) * view as f64 / views.max(1) as f64).collect()
}
