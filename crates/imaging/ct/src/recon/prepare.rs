use ndarray::Array3;
use rayspin_core::{Detector, Error, Orbit, ProjectionGeometry, RaySource, Result, View};
use rayspin_device::Device;

use crate::corrections::{Corrections, binned};
use crate::scan::{FoundAxis, Measured, Part, PixelSize, Scan, search_axis};
use crate::solving::checks::Means;

/// exp(-80) is less than one photon in 10^34: larger numbers are no line integrals of what was measured.
const MOST_OPAQUE: f32 = 80.0;
/// Views whose signs are looked at, at most.
const VIEWS: usize = 256;

/// Where the axis of rotation falls on the detector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AxisOn {
    /// On this column, counted from 0 at the middle of the first one.
    Column(f64),
    /// Where [`find_axis`](crate::scan::find_axis) finds it.
    Found,
}

/// What a user says of the rays of a scan that does not state them, and the axis of one that does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RayOptions {
    /// The distance between pixels along columns and rows, mm. When absent it is what the scan states, or 1.
    pub pixel_mm: Option<[f64; 2]>,
    /// Where the axis falls, which corrects rays that the scan states. When absent it is found in counts of
    /// parallel rays whose scan states none, and is in the middle of others.
    pub axis: Option<AxisOn>,
    /// Distance from the source to the axis, mm; none for parallel rays.
    pub source_to_axis_mm: Option<f64>,
    /// Distance from the axis to the detector, mm.
    pub axis_to_detector_mm: f64,
    /// The rays of these views on the whole detector, in place of those that the scan states.
    pub rays: Option<ProjectionGeometry>,
}

impl RayOptions {
    /// The distance between pixels of the detector: as the options say, or as a scan `states` it.
    pub fn pitch_mm(&self, stated: Option<PixelSize>) -> Option<[f64; 2]> {
        self.pixel_mm.or(self.stated_mm(stated))
    }

    /// The distance on the detector that a scan `states`.
    fn stated_mm(&self, stated: Option<PixelSize>) -> Option<[f64; 2]> {
        let magnification = match self.source_to_axis_mm {
            Some(source) if source > 0.0 => (source + self.axis_to_detector_mm) / source,
            _ => 1.0,
        };
        stated.map(|pixel| pixel.mm.map(|size| if pixel.at_object { size * magnification } else { size }))
    }

    /// Says how large pixels are taken, and who states it: the options, or a scan that `states` a size.
    pub fn pitch_note(&self, stated: Option<PixelSize>) -> String {
        let reason = match (self.pixel_mm, self.stated_mm(stated)) {
            (Some(given), Some(stated))
                if given.iter().zip(stated).any(|(a, b)| (a - b).abs() > 1e-3 * b) =>
            {
                format!(" (`--pixel`; the file states {})", sizes(stated))
            }
            (None, Some(_)) => " (as the file states them)".into(),
            (None, None) => " (neither the file nor `--pixel` states their size)".into(),
            (Some(_), _) => String::new(),
        };
        format!("pixels of {} mm{reason}", sizes(self.pitch_mm(stated).unwrap_or([1.0; 2])))
    }

    /// A circle with these angles, whose axis falls on the column `axis`, or on the middle one. The scan may
    /// `state` the size of a pixel. `notes` says what is taken.
    ///
    /// Errors: an axis beyond the detector; else as [`ProjectionGeometry::orbit`].
    pub fn orbit(
        &self,
        [rows, columns]: [usize; 2],
        angles: &[f64],
        axis: Option<f64>,
        stated: Option<PixelSize>,
        notes: &mut Vec<String>,
    ) -> Result<ProjectionGeometry> {
        let pitch_mm = self.pitch_mm(stated).unwrap_or([1.0; 2]);
        let middle = 0.5 * (columns - 1) as f64;
        let axis = axis.unwrap_or(middle);
        if !(axis.is_finite() && axis >= 0.0 && axis <= (columns - 1) as f64) {
            return Err(Error::value("axis", format!("a column from 0 to {}", columns - 1), axis));
        }
        let beam = if self.source_to_axis_mm.is_some() { "a fan or cone beam" } else { "parallel rays" };
        notes.push(format!(
            "the scan states no rays: {beam}, {} and the axis at column {} are taken",
            self.pitch_note(stated),
            (axis * 100.0).round() / 100.0
        ));
        let orbit = Orbit {
            angles: angles.to_vec(),
            source_to_axis_mm: self.source_to_axis_mm,
            axis_to_detector_mm: self.axis_to_detector_mm,
            offset_mm: [(middle - axis) * pitch_mm[0], 0.0],
            ..Orbit::default()
        };
        ProjectionGeometry::orbit(Detector { rows, columns, pitch_mm, radius_mm: None }, &orbit)
    }
}

/// Rays whose axis falls on `column`: the detector is shifted along its columns. Returns the column before as
/// well, the mean of all views.
///
/// Errors: a column beyond the detector; a curved detector; an axis that the rays do not meet.
pub fn with_axis(rays: &ProjectionGeometry, column: f64) -> Result<(ProjectionGeometry, f64)> {
    let detector = *rays.detector();
    let last = (detector.columns - 1) as f64;
    if !(column.is_finite() && (-0.5..=last + 0.5).contains(&column)) {
        return Err(Error::value("axis", format!("a column from 0 to {last}"), column));
    }
    let place = |(view, pose): (usize, &View)| {
        let height = match pose.source {
            RaySource::Point(source) => source[2],
            RaySource::Direction(_) => pose.detector_mm[2],
        };
        rays.project(view, [0.0, 0.0, height]).map(|[_, column]| column)
    };
    let places: Option<Vec<f64>> = rays.views().iter().enumerate().map(place).collect();
    let places = places
        .ok_or_else(|| Error::value("axis", "an axis in front of the detector", "one behind a source"))?;
    let stated = places.iter().sum::<f64>() / places.len() as f64;
    if detector.radius_mm.is_some() && (stated - column).abs() > 1e-6 {
        return Err(Error::value("axis", format!("column {stated:.2} of a curved detector"), column));
    }
    let shift = (stated - column) * detector.pitch_mm[0];
    let moved = rays.views().iter().map(|view| View {
        detector_mm: std::array::from_fn(|axis| view.detector_mm[axis] + shift * view.u[axis]),
        ..*view
    });
    Ok((ProjectionGeometry::new(detector, moved.collect())?, stated))
}

/// What people should know of [`with_axis`].
pub fn axis_note(column: f64, stated: f64) -> String {
    if (column - stated).abs() < 0.005 {
        return format!("the axis is taken on column {column:.2}, as the scan's rays state");
    }
    format!(
        "the axis is taken on column {column:.2}, in place of column {stated:.2}, which the scan's rays state"
    )
}

/// Lengths in mm for people, once where they are the same.
fn sizes([u, v]: [f64; 2]) -> String {
    let text = |mm: f64| format!("{}", (mm * 1e9).round() / 1e9);
    if u == v { text(u) } else { format!("{} x {}", text(u), text(v)) }
}

/// Corrected line integrals and their rays.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// Line integrals `[view, row, column]`.
    pub lines: Array3<f32>,
    /// Their rays.
    pub geometry: ProjectionGeometry,
    /// The column of the whole detector on which the axis falls, where an option says it or it was found.
    pub axis: Option<f64>,
}

/// Makes line integrals of a scan, and finds the rays that it does not state. `scan` has been cut to `part`
/// already. `notes` says what was assumed.
///
/// Errors: counts that cannot be corrected; an axis that is to be found in fan or cone beams, or is not
/// found; as [`RayOptions::orbit`].
///
/// ```
/// use ndarray::Array3;
/// use rayspin_ct::corrections::Corrections;
/// use rayspin_ct::recon::{RayOptions, even_angles, prepare};
/// use rayspin_ct::scan::{Counts, Measured, Part, Scan};
/// use rayspin_device::Device;
///
/// let counts = Counts {
///     views: Array3::from_elem((4, 1, 8), 50.0),
///     flats: Array3::from_elem((1, 1, 8), 100.0),
///     darks: Array3::zeros((0, 1, 8)),
/// };
/// let scan = Scan::new(Measured::Counts(counts), even_angles(4, 3.14), None)?;
/// let part = Part::of(scan.shape(), None, None, None)?;
/// let options = RayOptions { pixel_mm: Some([0.5; 2]), ..RayOptions::default() };
/// let mut notes = Vec::new();
/// let made = prepare(&Device::cpu()?, scan, &part, &Corrections::default(), &options, &mut notes)?;
/// assert!((made.lines[[0, 0, 0]] - 2f32.ln()).abs() < 1e-6);
/// // Four views are too few to find the axis: it is taken in the middle, and a note says so.
/// assert!(made.axis.is_none() && notes.iter().any(|note| note.contains("not found")));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn prepare(
    device: &Device,
    scan: Scan,
    part: &Part,
    corrections: &Corrections,
    options: &RayOptions,
    notes: &mut Vec<String>,
) -> Result<Prepared> {
    let stated = options.rays.as_ref().or(scan.geometry.as_ref());
    let diverging = stated.map_or(options.source_to_axis_mm.is_some(), |rays| !rays.is_parallel());
    if options.axis == Some(AxisOn::Found) && diverging {
        return Err(Error::value("rays to find the axis in", "parallel ones", "a fan or cone beam"));
    }
    // Files of counts often state no rays, and their axis is seldom in the middle.
    let is_guessed = matches!(scan.measured, Measured::Counts(_))
        && scan.geometry.is_none()
        && options.rays.is_none()
        && !diverging;
    let stated = scan.pixel;
    let Scan { measured, angles, geometry, .. } =
        corrections.lines(device, scan, options.pitch_mm(stated), notes)?;
    let Measured::Lines(lines) = measured else {
        return Err(Error::value("corrected scan", "line integrals", "counts"));
    };
    let largest = lines.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    if largest > MOST_OPAQUE {
        notes.push(format!(
            "line integrals as large as {largest} let nothing through: what a detector counts needs flat fields (`--flat`)"
        ));
    }
    let mut means = Means::default();
    lines.outer_iter().step_by(lines.dim().0.div_ceil(VIEWS)).for_each(|view| means.add(view));
    notes.extend(means.note());
    let bins @ [_, high, wide] = corrections.bins();
    let find = |notes: &mut Vec<String>| -> Result<f64> {
        let FoundAxis { column, other } = search_axis(device, lines.view(), &angles)?;
        let whole = |column: f64| part.columns().start as f64 + (column + 0.5) * wide as f64 - 0.5;
        let column = whole(column);
        notes.push(format!(
            "the axis falls on column {column:.2}, about which views are mirror images of others"
        ));
        notes.extend(other.map(|other| {
            format!(
                "the axis is not certain: the first and the last view are mirror images about column {:.2}; compare volumes (`--axis`)",
                whole(other)
            )
        }));
        Ok(column)
    };
    let axis = match options.axis {
        Some(AxisOn::Found) => Some(find(notes)?),
        Some(AxisOn::Column(column)) => Some(column),
        None if is_guessed => match find(notes) {
            Ok(column) => Some(column),
            Err(error) => {
                notes.push(format!("the axis was not found: {error}"));
                None
            }
        },
        None => None,
    };
    // The column of the part's detector, after bins.
    let here = |column: f64| (column - part.columns().start as f64 + 0.5) / wide as f64 - 0.5;
    let corrected = |rays: ProjectionGeometry, notes: &mut Vec<String>| match axis {
        Some(axis) => {
            let (rays, stated) = with_axis(&rays, here(axis))?;
            let stated = part.columns().start as f64 + (stated + 0.5) * wide as f64 - 0.5;
            notes.push(axis_note(axis, stated));
            Ok(rays)
        }
        None => Ok(rays),
    };
    let geometry = match (geometry, &options.rays) {
        (_, Some(rays)) => corrected(binned(&part.rays(rays)?, bins)?, notes)?,
        (Some(geometry), None) => corrected(geometry, notes)?,
        (None, None) => {
            let rays = options.orbit(part.detector(), &angles, axis, stated, notes)?;
            binned(&part.rays(&rays)?, [1, high, wide])?
        }
    };
    Ok(Prepared { lines, geometry, axis })
}
