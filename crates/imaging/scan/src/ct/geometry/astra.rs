use ndarray::{Array2, ArrayView2, Axis};
use rayspin_core::{Detector, Error, ProjectionGeometry, RaySource, Result, View};

/// Numbers of a view.
const NUMBERS: usize = 12;
/// The distances between pixels of all views agree to this part.
const SAME: f64 = 1e-6;

fn length(a: [f64; 3]) -> f64 {
    a.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// A geometry as the vectors `[view, 12]` of ASTRA's `parallel3d_vec` and `cone_vec`. A view has four
/// vectors: the direction of the rays or the place of the source, the middle of the detector, and the steps
/// from a pixel to its neighbours along a row and along a column. Lengths are mm, so that ASTRA's volume
/// geometry has its extents in mm too. ASTRA's axes x, y and z are ours.
///
/// Errors: a curved detector, which ASTRA has not.
///
/// ```
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry};
/// use rayspin_scan::ct::geometry::{from_astra, to_astra};
///
/// let detector = Detector { rows: 4, columns: 6, pitch_mm: [0.5, 0.25], radius_mm: None };
/// let orbit = Orbit { source_to_axis_mm: Some(100.0), axis_to_detector_mm: 50.0, ..Orbit::default() };
/// let geometry = ProjectionGeometry::orbit(detector, &orbit.turn(3))?;
/// let vectors = to_astra(&geometry)?;
/// // As astra.geom_2vec has it at angle 0: the source at −y, u along x, v along z.
/// assert_eq!(vectors.row(0).to_vec(), [0.0, -100.0, 0.0, 0.0, 50.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.25]);
/// assert!(from_astra(vectors.view(), [4, 6], false)?.views().len() == 3);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn to_astra(geometry: &ProjectionGeometry) -> Result<Array2<f64>> {
    match geometry.detector().radius_mm {
        None => Ok(to_vectors(geometry)),
        Some(radius) => {
            Err(Error::value("detector for ASTRA", "a flat one", format!("one of radius {radius} mm")))
        }
    }
}

/// The vectors `[view, 12]` of [`to_astra`], of curved detectors too.
pub fn to_vectors(geometry: &ProjectionGeometry) -> Array2<f64> {
    let Detector { pitch_mm, .. } = *geometry.detector();
    let mut vectors = Array2::zeros((geometry.views().len(), NUMBERS));
    for (view, mut row) in geometry.views().iter().zip(vectors.rows_mut()) {
        let (RaySource::Point(source) | RaySource::Direction(source)) = view.source;
        let (u, v) = (view.u.map(|x| x * pitch_mm[0]), view.v.map(|x| x * pitch_mm[1]));
        let numbers = source.into_iter().chain(view.detector_mm).chain(u).chain(v);
        row.iter_mut().zip(numbers).for_each(|(to, from)| *to = from);
    }
    vectors
}

/// The geometry of ASTRA's vectors `[view, 12]` for a detector of `[rows, columns]`. They are those of
/// `parallel3d_vec` if `parallel`, else of `cone_vec`.
///
/// Errors: another number of columns; distances between pixels that differ between views; else as
/// [`ProjectionGeometry::new`].
pub fn from_astra(
    vectors: ArrayView2<'_, f64>,
    size: [usize; 2],
    parallel: bool,
) -> Result<ProjectionGeometry> {
    from_vectors(vectors, size, parallel, None)
}

/// The geometry of [`to_vectors`], for a detector of `[rows, columns]` that is curved with a radius or flat.
///
/// Errors: as [`from_astra`].
pub fn from_vectors(
    vectors: ArrayView2<'_, f64>,
    [rows, columns]: [usize; 2],
    parallel: bool,
    radius_mm: Option<f64>,
) -> Result<ProjectionGeometry> {
    if vectors.ncols() != NUMBERS {
        return Err(Error::shape("vectors of views", &[vectors.nrows(), NUMBERS], vectors.shape()));
    }
    if let Some((index, value)) = vectors.iter().enumerate().find(|(_, v)| !v.is_finite()) {
        return Err(Error::NotFinite { what: "vectors of views".into(), index, found: value.to_string() });
    }
    let mut pitch_mm = None;
    let mut views = Vec::with_capacity(vectors.nrows());
    for (view, row) in vectors.axis_iter(Axis(0)).enumerate() {
        let part = |first: usize| -> [f64; 3] { std::array::from_fn(|axis| row[first + axis]) };
        let (source, detector_mm, u, v) = (part(0), part(3), part(6), part(9));
        let lengths = [length(u), length(v)];
        let pitch = *pitch_mm.get_or_insert(lengths);
        if !lengths.iter().zip(pitch).all(|(a, b)| (a - b).abs() <= SAME * b) {
            let expected = format!("pixels as in view 0, {pitch:?} mm");
            return Err(Error::value(
                format!("view {view} of the vectors"),
                expected,
                format!("{lengths:?} mm"),
            ));
        }
        let unit = |a: [f64; 3]| a.map(|x| x / length(a));
        let source = match parallel {
            true => RaySource::Direction(unit(source)),
            false => RaySource::Point(source),
        };
        views.push(View { source, detector_mm, u: unit(u), v: unit(v) });
    }
    let pitch_mm = pitch_mm.unwrap_or([1.0; 2]);
    ProjectionGeometry::new(Detector { rows, columns, pitch_mm, radius_mm }, views)
}

#[cfg(test)]
mod tests {
    use rayspin_core::Orbit;

    use super::*;

    #[test]
    fn vectors_round_trip() {
        let detector = Detector { rows: 3, columns: 5, pitch_mm: [0.7, 0.9], radius_mm: None };
        for source_to_axis_mm in [None, Some(80.0)] {
            let orbit = Orbit {
                source_to_axis_mm,
                axis_to_detector_mm: 30.0,
                offset_mm: [4.0, -2.0],
                tilt: 0.1,
                ..Orbit::default()
            };
            let geometry = ProjectionGeometry::orbit(detector, &orbit.turn(7)).unwrap();
            let vectors = to_astra(&geometry).unwrap();
            let back = from_astra(vectors.view(), [3, 5], source_to_axis_mm.is_none()).unwrap();
            for view in 0..7 {
                for (row, column) in [(0.0, 0.0), (2.0, 4.0), (1.0, 3.3)] {
                    let (a, b) = (geometry.pixel_mm(view, row, column), back.pixel_mm(view, row, column));
                    assert!((0..3).all(|axis| (a[axis] - b[axis]).abs() < 1e-12));
                }
                let marker = [1.0, -2.0, 3.0];
                let (a, b) = (geometry.project(view, marker).unwrap(), back.project(view, marker).unwrap());
                assert!((0..2).all(|axis| (a[axis] - b[axis]).abs() < 1e-10));
            }
        }
    }

    #[test]
    fn what_is_no_geometry_is_refused() {
        let good =
            Array2::from_shape_vec((1, 12), vec![0., -9., 0., 0., 5., 0., 1., 0., 0., 0., 0., 1.]).unwrap();
        assert!(from_astra(good.view(), [2, 2], false).is_ok());
        let refused = |change: &dyn Fn(&mut Array2<f64>), message: &str| {
            let mut vectors = ndarray::concatenate![Axis(0), good, good];
            change(&mut vectors);
            let text = from_astra(vectors.view(), [2, 2], false).unwrap_err().to_string();
            assert!(text.contains(message), "{text} has no {message}");
        };
        refused(&|v| v[[1, 6]] = 1.5, "view 1");
        refused(&|v| v[[1, 6]] = f64::NAN, "finite");
        refused(&|v| v.fill(0.0), "distance between pixels");
        assert!(from_astra(good.slice(ndarray::s![.., ..6]), [2, 2], false).is_err());
        assert!(from_astra(good.slice(ndarray::s![..0, ..]), [2, 2], false).is_err());
        let curved = Detector { rows: 1, columns: 1, pitch_mm: [1.0; 2], radius_mm: Some(9.0) };
        let curved = ProjectionGeometry::orbit(curved, &Orbit::default().turn(1)).unwrap();
        assert!(to_astra(&curved).is_err());
    }
}
