use rayspin_core::{Detector, Error, ProjectionGeometry, RaySource, Result, View};

/// A view in TIGRE's cone-beam geometry, lengths in mm and angles in radian.
///
/// With E = Rz(α) Ry(θ) Rz(ψ), D = Rz(r_z) Ry(r_y) Rx(r_x) and k = COR (−sin α, cos α, 0),
///
/// ```text
/// source   = E (DSO, 0, 0) + k
/// detector = E (−(DSD − DSO), offset u, offset v) + k
/// u = E D y,   v = E D z
/// ```
///
/// TIGRE's axes are ours, and its α is the angle θ of [`rayspin_core::Orbit`] less a quarter of a turn. In
/// Python its arrays are ordered v, u and z, y, x.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TigreView {
    /// `angles`: α, θ and ψ.
    pub angles: [f64; 3],
    /// `DSO`, from the source to the origin.
    pub source_to_origin_mm: f64,
    /// `DSD`, from the source to the detector.
    pub source_to_detector_mm: f64,
    /// `offDetector`, along u and v.
    pub detector_offset_mm: [f64; 2],
    /// `rotDetector`, about x, y and z.
    pub detector_rotation: [f64; 3],
    /// `COR`.
    pub centre_of_rotation_mm: f64,
}

type Matrix = [[f64; 3]; 3];

/// The rotation about x, y or z.
fn about(axis: usize, angle: f64) -> Matrix {
    let (sin, cos) = angle.sin_cos();
    let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
    let mut matrix = [[0.0; 3]; 3];
    matrix[axis][axis] = 1.0;
    (matrix[a][a], matrix[a][b], matrix[b][a], matrix[b][b]) = (cos, -sin, sin, cos);
    matrix
}

fn product(a: Matrix, b: Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
}

fn apply(a: Matrix, x: [f64; 3]) -> [f64; 3] {
    a.map(|row| (0..3).map(|k| row[k] * x[k]).sum())
}

fn euler([alpha, theta, psi]: [f64; 3]) -> Matrix {
    product(about(2, alpha), product(about(1, theta), about(2, psi)))
}

/// The geometry of TIGRE's views of a cone beam.
///
/// Errors: as [`ProjectionGeometry::new`].
///
/// ```
/// use rayspin_core::Detector;
/// use rayspin_scan::ct::geometry::{TigreView, from_tigre, to_tigre};
///
/// let detector = Detector { rows: 512, columns: 512, pitch_mm: [0.8; 2], radius_mm: None };
/// let view = TigreView { source_to_origin_mm: 1000.0, source_to_detector_mm: 1536.0, ..Default::default() };
/// let geometry = from_tigre(&[view], detector)?;
/// assert_eq!(geometry.views()[0].detector_mm, [-536.0, 0.0, 0.0]);
/// assert!((to_tigre(&geometry)?[0].source_to_detector_mm - 1536.0).abs() < 1e-9);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn from_tigre(views: &[TigreView], detector: Detector) -> Result<ProjectionGeometry> {
    let view = |view: &TigreView| {
        let turn = euler(view.angles);
        let [rx, ry, rz] = view.detector_rotation;
        let tilt = product(turn, product(about(2, rz), product(about(1, ry), about(0, rx))));
        let (sin, cos) = view.angles[0].sin_cos();
        let shift = [-sin * view.centre_of_rotation_mm, cos * view.centre_of_rotation_mm, 0.0];
        let place = |local: [f64; 3]| -> [f64; 3] {
            let point = apply(turn, local);
            std::array::from_fn(|axis| point[axis] + shift[axis])
        };
        let (source, [u, v]) = (view.source_to_origin_mm, view.detector_offset_mm);
        View {
            source: RaySource::Point(place([source, 0.0, 0.0])),
            detector_mm: place([source - view.source_to_detector_mm, u, v]),
            u: apply(tilt, [0.0, 1.0, 0.0]),
            v: apply(tilt, [0.0, 0.0, 1.0]),
        }
    };
    ProjectionGeometry::new(detector, views.iter().map(view).collect())
}

/// TIGRE's views of a cone beam. ψ and COR are 0; offsets and rotations of the detector take their place.
///
/// Errors: a parallel beam; a curved detector; a source at the origin.
pub fn to_tigre(geometry: &ProjectionGeometry) -> Result<Vec<TigreView>> {
    if let Some(radius) = geometry.detector().radius_mm {
        return Err(Error::value("detector for TIGRE", "a flat one", format!("one of radius {radius} mm")));
    }
    let convert = |(index, view): (usize, &View)| {
        let fail = |expected: &str| {
            Err(Error::value(format!("view {index} for TIGRE"), expected, format!("{:?}", view.source)))
        };
        view.expect_square(index, " for TIGRE")?;
        let RaySource::Point([x, y, z]) = view.source else { return fail("a source at a point") };
        let distance = (x * x + y * y + z * z).sqrt();
        if distance == 0.0 {
            return fail("a source away from the origin");
        }
        let angles = [y.atan2(x), -(z / distance).clamp(-1.0, 1.0).asin(), 0.0];
        let turn = euler(angles);
        let back: Matrix = std::array::from_fn(|i| std::array::from_fn(|j| turn[j][i]));
        let (middle, u, v) = (apply(back, view.detector_mm), apply(back, view.u), apply(back, view.v));
        // D x = D y × D z.
        let normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
        Ok(TigreView {
            angles,
            source_to_origin_mm: distance,
            source_to_detector_mm: distance - middle[0],
            detector_offset_mm: [middle[1], middle[2]],
            detector_rotation: [
                u[2].atan2(v[2]),
                -normal[2].clamp(-1.0, 1.0).asin(),
                normal[1].atan2(normal[0]),
            ],
            centre_of_rotation_mm: 0.0,
        })
    };
    geometry.views().iter().enumerate().map(convert).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rayspin_core::Orbit;

    use super::*;

    const DETECTOR: Detector = Detector { rows: 5, columns: 7, pitch_mm: [2.0, 3.0], radius_mm: None };

    fn same(a: &ProjectionGeometry, b: &ProjectionGeometry) -> bool {
        (0..a.views().len()).all(|view| {
            let ends = [(0, 0), (4, 6), (2, 3)]
                .map(|(row, column)| (a.ray(view, row, column), b.ray(view, row, column)));
            ends.iter().all(|((s, p), (t, q))| {
                (0..3).all(|axis| (s[axis] - t[axis]).abs() < 1e-8 && (p[axis] - q[axis]).abs() < 1e-8)
            })
        })
    }

    proptest! {
        #[test]
        fn views_keep_their_rays_there_and_back(
            angles in (-3.1f64..3.1, -1.4f64..1.4, -3.1f64..3.1),
            rotation in (-3.1f64..3.1, -1.4f64..1.4, -1.4f64..1.4),
            offsets in prop::array::uniform3(-40.0f64..40.0),
        ) {
            let view = TigreView {
                angles: [angles.0, angles.1, angles.2],
                source_to_origin_mm: 500.0,
                source_to_detector_mm: 900.0,
                detector_offset_mm: [offsets[0], offsets[1]],
                detector_rotation: [rotation.0, rotation.1, rotation.2],
                centre_of_rotation_mm: offsets[2],
            };
            let geometry = from_tigre(&[view], DETECTOR).unwrap();
            let back = from_tigre(&to_tigre(&geometry).unwrap(), DETECTOR).unwrap();
            prop_assert!(same(&geometry, &back));
        }
    }

    #[test]
    fn an_orbit_is_a_quarter_of_a_turn_behind() {
        let orbit = Orbit {
            source_to_axis_mm: Some(600.0),
            axis_to_detector_mm: 400.0,
            offset_mm: [7.0, -3.0],
            ..Orbit::default()
        };
        let geometry = ProjectionGeometry::orbit(DETECTOR, &orbit.turn(6)).unwrap();
        let views: Vec<TigreView> = (0..6)
            .map(|view| TigreView {
                angles: [(f64::from(view) / 6.0 - 0.25) * std::f64::consts::TAU, 0.0, 0.0],
                source_to_origin_mm: 600.0,
                source_to_detector_mm: 1000.0,
                detector_offset_mm: [7.0, -3.0],
                ..TigreView::default()
            })
            .collect();
        assert!(same(&geometry, &from_tigre(&views, DETECTOR).unwrap()));
        let found = to_tigre(&geometry).unwrap();
        assert!(found.iter().all(|view| view.detector_rotation.iter().all(|angle| angle.abs() < 1e-12)));
    }

    #[test]
    fn what_tigre_has_no_numbers_for_is_refused() {
        let parallel = ProjectionGeometry::orbit(DETECTOR, &Orbit::default().turn(2)).unwrap();
        assert!(to_tigre(&parallel).is_err());
        let orbit = Orbit { source_to_axis_mm: Some(600.0), ..Orbit::default() }.turn(2);
        let curved =
            ProjectionGeometry::orbit(Detector { radius_mm: Some(600.0), ..DETECTOR }, &orbit).unwrap();
        assert!(to_tigre(&curved).is_err());
        let view = View {
            source: RaySource::Point([0.0; 3]),
            detector_mm: [0.0, 9.0, 0.0],
            u: [1.0, 0.0, 0.0],
            v: [0.0, 0.0, 1.0],
        };
        assert!(to_tigre(&ProjectionGeometry::new(DETECTOR, vec![view]).unwrap()).is_err());
    }
}
