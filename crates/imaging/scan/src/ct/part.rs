use std::ops::Range;

use ndarray::{Array3, Axis, s};
use rayspin_core::{Error, ProjectionGeometry, Ranges, Result, View};

use super::{Counts, Measured, Scan};

/// Some views of a scan, and a rectangle of its detector.
///
/// ```
/// use ndarray::Array3;
/// use rayspin_scan::ct::{Measured, Part, Scan};
///
/// let scan = Scan::new(Measured::Lines(Array3::zeros((6, 4, 8))), vec![0.0; 6], None)?;
/// let part = Part::of(scan.shape(), Some(&"0,2,4".parse()?), None, Some(&"2-6".parse()?))?;
/// assert_eq!(part.scan(scan)?.shape(), [3, 4, 5]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The views; all when absent.
    views: Option<Vec<usize>>,
    rows: Range<usize>,
    columns: Range<usize>,
    /// Rows and columns of the whole detector.
    detector: [usize; 2],
}

impl Part {
    /// These views, rows and columns of projections `[view, row, column]`; all of those that are not named.
    ///
    /// Errors: numbers that the scan lacks; rows or columns that are not side by side.
    pub fn of(
        [count, high, wide]: [usize; 3],
        views: Option<&Ranges>,
        rows: Option<&Ranges>,
        columns: Option<&Ranges>,
    ) -> Result<Self> {
        let views = match views {
            None => None,
            Some(wanted) => {
                wanted.expect_among("view", &Vec::from_iter(0..count))?;
                Some(wanted.below(count).collect())
            }
        };
        let (rows, columns) = (side_by_side("row", rows, high)?, side_by_side("column", columns, wide)?);
        Ok(Self { views, rows, columns, detector: [high, wide] })
    }

    /// The columns.
    pub fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// Rows and columns of the whole detector.
    pub fn detector(&self) -> [usize; 2] {
        self.detector
    }

    fn is_whole(&self, rows: usize, columns: usize) -> bool {
        self.rows.len() == rows && self.columns.len() == columns
    }

    /// This part of a scan.
    ///
    /// Errors: as [`rays`](Self::rays).
    pub fn scan(&self, scan: Scan) -> Result<Scan> {
        let [_, rows, columns] = scan.shape();
        let whole = self.is_whole(rows, columns);
        if whole && self.views.is_none() {
            return Ok(scan);
        }
        let cut = |values: Array3<f32>| match whole {
            true => values,
            false => values.slice(s![.., self.rows.clone(), self.columns.clone()]).to_owned(),
        };
        let chosen = |values: Array3<f32>| match &self.views {
            Some(kept) => values.select(Axis(0), kept),
            None => values,
        };
        let measured = match scan.measured {
            Measured::Lines(lines) => Measured::Lines(cut(chosen(lines))),
            Measured::Counts(Counts { views, flats, darks }) => {
                let darks = if darks.is_empty() { darks } else { cut(darks) };
                Measured::Counts(Counts { views: cut(chosen(views)), flats: cut(flats), darks })
            }
        };
        let (mut angles, mut geometry) = (scan.angles, scan.geometry);
        if let Some(kept) = &self.views {
            angles = kept.iter().map(|&view| angles[view]).collect();
            geometry = geometry.map(|geometry| geometry.select(kept.iter().copied())).transpose()?;
        }
        let geometry = geometry.map(|geometry| self.rays(&geometry)).transpose()?;
        Ok(Scan { pixel: scan.pixel, ..Scan::new(measured, angles, geometry)? })
    }

    /// The rays of all views of `geometry` on this part of its detector.
    ///
    /// Errors: more columns left out on one side of a curved detector than on the other.
    pub fn rays(&self, geometry: &ProjectionGeometry) -> Result<ProjectionGeometry> {
        let mut detector = *geometry.detector();
        let (rows, columns) = (detector.rows, detector.columns);
        if self.is_whole(rows, columns) {
            return Ok(geometry.clone());
        }
        // How far the middle of the part is from the middle of the detector.
        let shift = |part: &Range<usize>, whole: usize, pitch: f64| {
            (part.start as f64 + 0.5 * (part.len() as f64 - whole as f64)) * pitch
        };
        let across = shift(&self.columns, columns, detector.pitch_mm[0]);
        let along = shift(&self.rows, rows, detector.pitch_mm[1]);
        if detector.radius_mm.is_some() && across != 0.0 {
            return Err(Error::value(
                "columns of a curved detector",
                "as many left out on both sides",
                format!("{}-{} of 0-{}", self.columns.start, self.columns.end - 1, columns - 1),
            ));
        }
        detector.rows = self.rows.len();
        detector.columns = self.columns.len();
        let moved = geometry.views().iter().map(|view| View {
            detector_mm: std::array::from_fn(|axis| {
                view.detector_mm[axis] + across * view.u[axis] + along * view.v[axis]
            }),
            ..*view
        });
        ProjectionGeometry::new(detector, moved.collect())
    }
}

/// Numbers side by side; all of them where none are named.
fn side_by_side(what: &str, wanted: Option<&Ranges>, count: usize) -> Result<Range<usize>> {
    let Some(wanted) = wanted else { return Ok(0..count) };
    wanted.expect_among(what, &Vec::from_iter(0..count))?;
    let kept: Vec<usize> = wanted.below(count).collect();
    match (kept.first(), kept.last()) {
        (Some(first), Some(last)) if last - first + 1 == kept.len() => Ok(*first..last + 1),
        _ => Err(Error::value(what, format!("{what}s side by side"), wanted)),
    }
}
