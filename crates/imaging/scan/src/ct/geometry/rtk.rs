use rayspin_core::{Detector, Error, ProjectionGeometry, RaySource, Result, View};

/// A projection of RTK's `ThreeDCircularProjectionGeometry`, angles in radian.
///
/// In RTK's coordinates the axis of rotation is y. With R = Ry(gantry) Rx(out of plane) Rz(in plane),
///
/// ```text
/// source   = R (source offset x, source offset y, source to isocenter)
/// detector = R (projection offset x, projection offset y, source to isocenter − source to detector)
/// u = R x,   v = R y
/// ```
///
/// RTK's x, y, z are our x, z, −y: the gantry angle is the angle θ of [`rayspin_core::Orbit`]. A distance of
/// 0 from source to detector means a parallel beam.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RtkProjection {
    /// `GantryAngle`.
    pub gantry: f64,
    /// `OutOfPlaneAngle`.
    pub out_of_plane: f64,
    /// `InPlaneAngle`.
    pub in_plane: f64,
    /// `SourceToIsocenterDistance`, mm.
    pub source_to_isocenter_mm: f64,
    /// `SourceToDetectorDistance`, mm; 0 for a parallel beam.
    pub source_to_detector_mm: f64,
    /// `SourceOffsetX` and `SourceOffsetY`, mm.
    pub source_offset_mm: [f64; 2],
    /// `ProjectionOffsetX` and `ProjectionOffsetY`, mm: where the point (0, 0) of the projection images lies
    /// on the detector.
    pub projection_offset_mm: [f64; 2],
}

type Matrix = [[f64; 3]; 3];

/// The columns are R x, R y and R z.
fn rotation(p: &RtkProjection) -> Matrix {
    let (sg, cg) = p.gantry.sin_cos();
    let (so, co) = p.out_of_plane.sin_cos();
    let (si, ci) = p.in_plane.sin_cos();
    [
        [cg * ci + sg * so * si, co * si, -sg * ci + cg * so * si],
        [-cg * si + sg * so * ci, co * ci, sg * si + cg * so * ci],
        [sg * co, -so, cg * co],
    ]
}

fn from_rtk_axes([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x, -z, y]
}

fn to_rtk_axes([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x, z, -y]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|axis| a[axis] * b[axis]).sum()
}

impl RtkProjection {
    /// RTK's matrix: (x, y, z, 1) in RTK's coordinates to (u, v, 1) up to a factor.
    pub fn matrix(&self) -> [[f64; 4]; 3] {
        let [u, v, w] = rotation(self);
        let ([px, py], [sx, sy]) = (self.projection_offset_mm, self.source_offset_mm);
        if self.source_to_detector_mm == 0.0 {
            return [[u[0], u[1], u[2], -px], [v[0], v[1], v[2], -py], [0.0, 0.0, 0.0, 1.0]];
        }
        let depth = [w[0], w[1], w[2], -self.source_to_isocenter_mm];
        let line = |axis: [f64; 3], source: f64, shift: f64| -> [f64; 4] {
            let across = [axis[0], axis[1], axis[2], -source];
            std::array::from_fn(|axis| -self.source_to_detector_mm * across[axis] + shift * depth[axis])
        };
        [line(u, sx, sx - px), line(v, sy, sy - py), depth]
    }
}

/// The geometry of RTK's projections. `middle_mm` is where the middle of the detector lies in RTK's
/// projection images: origin + (size − 1) spacing / 2 along both axes, 0 for centred images.
///
/// Errors: as [`ProjectionGeometry::new`].
///
/// ```
/// use rayspin_core::Detector;
/// use rayspin_scan::ct::geometry::{RtkProjection, from_rtk, to_rtk};
///
/// let detector = Detector { rows: 128, columns: 128, pitch_mm: [4.0; 2], radius_mm: None };
/// let view = |gantry: f64| RtkProjection { gantry, source_to_isocenter_mm: 600.0, source_to_detector_mm: 1200.0, ..Default::default() };
/// let geometry = from_rtk(&[view(0.0), view(0.1)], detector, [0.0; 2])?;
/// assert_eq!(geometry.ray(0, 0, 0).0, [0.0, -600.0, 0.0]);
/// assert!((to_rtk(&geometry)?[1].gantry - 0.1).abs() < 1e-12);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn from_rtk(
    projections: &[RtkProjection],
    detector: Detector,
    middle_mm: [f64; 2],
) -> Result<ProjectionGeometry> {
    let view = |p: &RtkProjection| {
        let columns = rotation(p).map(from_rtk_axes);
        let place = |local: [f64; 3]| -> [f64; 3] {
            std::array::from_fn(|axis| (0..3).map(|column| columns[column][axis] * local[column]).sum())
        };
        let parallel = p.source_to_detector_mm == 0.0;
        let [u, v, normal] = columns;
        let depth = if parallel {
            -p.source_to_isocenter_mm
        } else {
            p.source_to_isocenter_mm - p.source_to_detector_mm
        };
        let [x, y] = [0, 1].map(|axis| p.projection_offset_mm[axis] + middle_mm[axis]);
        let source = match parallel {
            true => RaySource::Direction(normal.map(|n| -n)),
            false => RaySource::Point(place([
                p.source_offset_mm[0],
                p.source_offset_mm[1],
                p.source_to_isocenter_mm,
            ])),
        };
        View { source, detector_mm: place([x, y, depth]), u, v }
    };
    ProjectionGeometry::new(detector, projections.iter().map(view).collect())
}

/// RTK's projections of a geometry, for images whose middle is their point (0, 0). Where u × v points away
/// from the source, both distances are negative, as RTK has them.
///
/// Errors: parallel rays that are not at right angles to the detector; rows and columns of pixels that are
/// not at right angles.
pub fn to_rtk(geometry: &ProjectionGeometry) -> Result<Vec<RtkProjection>> {
    let projection = |(index, view): (usize, &View)| {
        view.expect_square(index, " for RTK")?;
        let (u, v) = (to_rtk_axes(view.u), to_rtk_axes(view.v));
        let normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
        let local = |point: [f64; 3]| {
            let point = to_rtk_axes(point);
            [dot(point, u), dot(point, v), dot(point, normal)]
        };
        let detector = local(view.detector_mm);
        let (source, depth) = match view.source {
            RaySource::Point(point) => {
                let source = local(point);
                (source, source[2] - detector[2])
            }
            RaySource::Direction(direction) => {
                let along = local(direction);
                if (along[2].abs() - 1.0).abs() > 1e-9 {
                    let (what, expected) =
                        (format!("view {index} for RTK"), "parallel rays at right angles to the detector");
                    return Err(Error::value(what, expected, format!("{view:?}")));
                }
                ([0.0, 0.0, -detector[2]], 0.0)
            }
        };
        Ok(RtkProjection {
            gantry: normal[0].atan2(normal[2]),
            out_of_plane: -normal[1].clamp(-1.0, 1.0).asin(),
            in_plane: u[1].atan2(v[1]),
            source_to_isocenter_mm: source[2],
            source_to_detector_mm: depth,
            source_offset_mm: [source[0], source[1]],
            projection_offset_mm: [detector[0], detector[1]],
        })
    };
    geometry.views().iter().enumerate().map(projection).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DETECTOR: Detector = Detector { rows: 5, columns: 7, pitch_mm: [2.0, 3.0], radius_mm: None };

    /// Projections, and the matrices that RTK 2.7 (PyPI) writes of them: (x, y, z, 1) to homogeneous (u, v).
    fn written_by_rtk() -> Vec<(RtkProjection, [[f64; 4]; 3])> {
        let projection = |numbers: [f64; 9]| RtkProjection {
            source_to_isocenter_mm: numbers[0],
            source_to_detector_mm: numbers[1],
            gantry: numbers[2].to_radians(),
            projection_offset_mm: [numbers[3], numbers[4]],
            out_of_plane: numbers[5].to_radians(),
            in_plane: numbers[6].to_radians(),
            source_offset_mm: [numbers[7], numbers[8]],
        };
        vec![
            (
                projection([600., 1200., 0., 0., 0., 0., 0., 0., 0.]),
                [[-1200., 0., 0., 0.], [0., -1200., 0., 0.], [0., 0., 1., -600.]],
            ),
            (
                projection([650., 1220., 30., 5., 2., 0., 0., 1., -3.]),
                [
                    [-1058.55099261702, 0., 606.535898384862, 3820.],
                    [-2.5, -1220., -4.33012701892219, -410.],
                    [0.5, 0., 0.866025403784439, -650.],
                ],
            ),
            (
                projection([700., 1240., 90., -7., 4., 7., 11., -2., 2.]),
                [
                    [-23.8719402998893, -235.448896950851, 1217.2177074751, -5980.],
                    [-150.326615094392, -1207.90101257728, -236.603154266916, 3880.],
                    [0.992546151641322, -0.121869343405147, 6.07759233806784e-17, -700.],
                ],
            ),
            (
                projection([750., 1260., 200.5, 3., -6., 357., 5., 3., 1.]),
                [
                    [1173.70315457152, -109.665736527417, -444.965539318238, 3780.],
                    [-128.31585920479, -1253.11875263552, -29.6214798708214, -3990.],
                    [-0.349727434214759, 0.0523359562429438, -0.935388512566676, -750.],
                ],
            ),
        ]
    }

    proptest! {
        /// Markers fall where RTK's own matrices have them.
        #[test]
        fn markers_fall_where_rtk_has_them(marker in prop::array::uniform3(-100.0f64..100.0), middle in prop::array::uniform2(-9.0f64..9.0)) {
            let (projections, matrices): (Vec<_>, Vec<_>) = written_by_rtk().into_iter().unzip();
            let geometry = from_rtk(&projections, DETECTOR, middle).unwrap();
            let [x, y, z] = marker;
            for (view, matrix) in matrices.iter().enumerate() {
                let found = projections[view].matrix();
                prop_assert!(matrix.iter().flatten().zip(found.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
                let product = matrix.map(|row| row[0] * x + row[1] * y + row[2] * z + row[3]);
                let [row, column] = geometry.project(view, from_rtk_axes(marker)).unwrap();
                let found = [(column - 3.0) * 2.0 + middle[0], (row - 2.0) * 3.0 + middle[1]];
                for axis in 0..2 {
                    let wanted = product[axis] / product[2];
                    prop_assert!((found[axis] - wanted).abs() < 1e-8, "view {view}: {found:?} for {wanted}");
                }
            }
        }

        #[test]
        fn projections_round_trip(
            angles in (-3.1f64..3.1, -1.4f64..1.4, -3.1f64..3.1),
            distances in (100.0f64..900.0, 1000.0f64..1500.0),
            offsets in prop::array::uniform4(-50.0f64..50.0),
            parallel in any::<bool>(),
        ) {
            let projection = RtkProjection {
                gantry: angles.0,
                out_of_plane: angles.1,
                in_plane: angles.2,
                source_to_isocenter_mm: distances.0,
                source_to_detector_mm: if parallel { 0.0 } else { distances.1 },
                source_offset_mm: if parallel { [0.0; 2] } else { [offsets[0], offsets[1]] },
                projection_offset_mm: [offsets[2], offsets[3]],
            };
            let geometry = from_rtk(&[projection], DETECTOR, [0.0; 2]).unwrap();
            let found = to_rtk(&geometry).unwrap()[0];
            let numbers = |p: RtkProjection| {
                [p.gantry, p.out_of_plane, p.in_plane, p.source_to_isocenter_mm, p.source_to_detector_mm, p.source_offset_mm[0],
                 p.source_offset_mm[1], p.projection_offset_mm[0], p.projection_offset_mm[1]]
            };
            for (a, b) in numbers(found).into_iter().zip(numbers(projection)) {
                prop_assert!((a - b).abs() < 1e-8, "{found:?} for {projection:?}");
            }
        }
    }

    #[test]
    fn mirrored_detectors_have_negative_distances_and_slanted_parallel_rays_are_refused() {
        let good = from_rtk(&[written_by_rtk()[2].0], DETECTOR, [0.0; 2]).unwrap();
        let view = good.views()[0];
        let mirrored =
            ProjectionGeometry::new(DETECTOR, vec![View { u: view.u.map(|x| -x), ..view }]).unwrap();
        let projection = to_rtk(&mirrored).unwrap()[0];
        assert!(projection.source_to_isocenter_mm < 0.0 && projection.source_to_detector_mm < 0.0);
        let back = from_rtk(&[projection], DETECTOR, [0.0; 2]).unwrap();
        for marker in [[0.0; 3], [3.0, -20.0, 10.0]] {
            let (a, b) = (mirrored.project(0, marker).unwrap(), back.project(0, marker).unwrap());
            assert!((0..2).all(|axis| (a[axis] - b[axis]).abs() < 1e-9), "{a:?} {b:?}");
        }
        let source = RaySource::Direction([0.6, 0.8, 0.0]);
        let slanted = View { source, u: [1.0, 0.0, 0.0], v: [0.0, 0.0, 1.0], detector_mm: [0.0; 3] };
        assert!(to_rtk(&ProjectionGeometry::new(DETECTOR, vec![slanted]).unwrap()).is_err());
    }
}
