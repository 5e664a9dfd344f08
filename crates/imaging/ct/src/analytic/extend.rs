//! Rows that end inside the object go on beyond the detector before they are filtered.
//!
//! The ramp takes what a detector does not see for air: at the rim of the field of view the volume is several
//! times too bright. An extension e(j) of a row beyond its end adds to the filtered row
//!
//! ```text
//! (ramp ∗ w e)(i) = a (ramp ∗ c)(i)
//! ```
//!
//! where a is the row's weighted value at its end and c(j) the outline of the extension, 1 at the end. The
//! outline belongs to a cylinder around the axis: c² falls linearly with the square of a ray's distance from
//! the axis. How fast follows from p² in the view's outer columns (after J. Hsieh, E. Chao, J. Thibault et
//! al., *A novel reconstruction algorithm to extend the CT scan field-of-view*, Med Phys 31:2385, 2004). Rows
//! keep their length, and the filter its transforms: one response of each view and side serves all rows.

use std::ops::Range;

use rayon::prelude::*;
use rayspin_core::{Error, ProjectionGeometry, Result, expect_len, voxels};
use rayspin_device::Array;
use rayspin_device::cpu::zeroed;
use rayspin_kernels::row_filter::{RowFilter, add_outer};
use rayspin_run::choices;
use serde::{Deserialize, Serialize};

use super::{FilteredBackprojection, ramp};
use crate::solving::parts;

choices! {
    /// How rows go on beyond the detector before they are filtered.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Extend {
        /// As a cylinder, at the ends of a view's rows that lie inside the object.
        #[default]
        Auto = "auto", "as a cylinder, where rows end inside the object";
        /// As air.
        None = "none", "as air";
        /// With their last value.
        Edge = "edge", "with their last value";
        /// As a cylinder around the axis, at every end of the rows.
        Cylinder = "cylinder", "as a cylinder, at every end of the rows";
    }
}

/// Rows end inside the object where the mean of their outer columns is above this part of the view's largest
/// value, and this many times as large as its noise. In air a tooth and a fan beam of the Helsinki challenge
/// have 0.013 at most, and noise alone 4.2 times itself in 720 views; a region of interest has 0.93 and 235
/// (`benches/results/2026-11-27-epyc-2/truncated.txt`).
const PART: f64 = 0.05;
const NOISE: f64 = 5.0;
/// Rows of a view that are looked at, at most.
const ROWS: usize = 64;
/// The outermost 1/END of the columns give the value at an end, and the outer 1/FIT the cylinder's outline,
/// of at least FITTED columns.
const END: usize = 64;
const FIT: usize = 4;
const FITTED: usize = 8;
/// Columns that a detector has at least: fewer show neither noise nor an outline.
const LEAST: usize = 4;
/// An end does not join on above this multiple of the columns beside it: its pixels are broken.
const BROKEN: f64 = 2.0;
/// Widths of the detector over which a cylinder goes on, and columns at least.
const REACH: usize = 3;
const REACHED: usize = 64;
/// Views at a time: what memory the extension takes does not grow with the scan.
pub(super) const VIEWS: usize = 64;
/// Views that are looked at, at most, to tell of rows that an iterative method takes as they are.
const LOOKED_AT: usize = 32;

/// An end of a view's rows.
#[derive(Debug, Clone, PartialEq)]
struct End {
    /// Where the cylinder ends: distance from the axis, mm. None for a constant.
    radius_mm: Option<f64>,
    /// The weighted value at the end of each row.
    values: Vec<f32>,
}

/// The ends of the rows of some views: what [`FilteredBackprojection::filter_extended`] continues.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ends(Vec<[Option<End>; 2]>);

impl Ends {
    /// Views whose rows go on before the first column, and beyond the last one.
    pub fn count(&self) -> [usize; 2] {
        [0, 1].map(|side| self.0.iter().filter(|ends| ends[side].is_some()).count())
    }

    /// Adds the ends of the views behind.
    pub(crate) fn append(&mut self, mut more: Self) {
        self.0.append(&mut more.0);
    }

    /// The ends of some of the views.
    pub(crate) fn part(&self, views: Range<usize>) -> Self {
        Self(self.0.get(views).map(<[_]>::to_vec).unwrap_or_default())
    }

    /// The weighted value between rows, given with their shares, at a side of a view; 0 where it is not
    /// continued.
    pub(super) fn value(&self, view: usize, side: usize, rows: impl Iterator<Item = (usize, f32)>) -> f32 {
        let end = self.0[view][side].as_ref();
        end.map_or(0.0, |end| rows.map(|(row, share)| share * end.values[row]).sum())
    }

    fn is_empty(&self) -> bool {
        self.0.iter().flatten().all(Option::is_none)
    }
}

/// The filter of the outlines of extensions. Its rows are `pad` columns longer on each side. Responses keep
/// `more` of these.
pub(super) struct Outlines {
    filter: RowFilter,
    pad: usize,
    more: usize,
}

/// The sides on which rows end inside the object: `count` is the number of views with such rows on either
/// side. None if both are 0.
fn sides(count: [usize; 2]) -> Option<&'static str> {
    match count {
        [0, 0] => None,
        [_, 0] => Some("before the first column"),
        [0, _] => Some("behind the last column"),
        _ => Some("on both sides"),
    }
}

/// What people should know of rows that an iterative method takes as they are, `[view, row, column]`. None
/// where all end in air.
pub(crate) fn note_of_truncated(geometry: &ProjectionGeometry, lines: &[f32]) -> Option<String> {
    let [views, rows, columns] = geometry.shape();
    if columns < LEAST {
        return None;
    }
    let outer = outer(columns);
    let some = (0..views).step_by(views.div_ceil(LOOKED_AT).max(1));
    let (looked_at, mut count) = (some.len(), [0; 2]);
    for view in some {
        let Some([_, axis]) = geometry.project(view, [0.0; 3]) else { continue };
        let means = means(&lines[view * rows * columns..][..rows * columns], columns);
        // The shorter side of a shifted detector is seen half a turn later.
        let distances = [axis + 0.5, columns as f64 - 0.5 - axis];
        for side in [0, 1] {
            let longest = distances[side] >= distances[1 - side] - 2.0;
            count[side] += usize::from(longest && ends_inside(&means, side, outer));
        }
    }
    let (sides, most) = (sides(count)?, count[0].max(count[1]));
    Some(format!(
        "the detector does not see the whole object {sides} (in {most} of {looked_at} views that were looked at): values near the rim are too large \
         unless the volume holds all of the object (`--matrix`, `--voxel`), and fbp and fdk continue such rows; if it does see \
         the whole object, air does not measure 0"
    ))
}

/// What people should know of rows that were extended in `count` of `views` views on either side. None where
/// none was.
pub(crate) fn note(extend: Extend, count: [usize; 2], views: usize) -> Option<String> {
    let sides = sides(count)?;
    let most = count[0].max(count[1]);
    Some(match extend {
        Extend::Auto => format!(
            "the detector does not see the whole object {sides} (in {most} of {views} views): rows go on as a cylinder before they are filtered, \
             and values near the rim depend on it (`--extend none` turns it off); if it does see the whole object, air \
             does not measure 0"
        ),
        Extend::Edge => format!("rows go on with their last value {sides} before they are filtered"),
        _ => format!("rows go on as a cylinder {sides} before they are filtered"),
    })
}

impl FilteredBackprojection {
    /// Columns of an extension.
    fn reach(&self) -> usize {
        let columns = self.measured.detector().columns;
        if self.filter.extend == Extend::Edge { columns } else { (REACH * columns).max(REACHED) }
    }

    /// The detector's coordinate u of a measured column of a view, which may lie beyond the detector, mm.
    fn u_mm(&self, view: usize, column: f64) -> f64 {
        let place = self.positions[view].principal[1] - self.margins[0] as f64;
        (column - place) * self.measured.detector().pitch_mm[0]
    }

    /// The distance from the axis of the ray to u in the plane of the circle, mm.
    fn axis_distance(&self, view: usize, u: f64) -> f64 {
        self.positions[view].distances.map_or(u, |[radius, depth]| radius * u / u.hypot(depth))
    }

    /// u of the columns of a side, from the end inwards.
    fn inwards(&self, view: usize, side: usize, count: usize) -> impl Iterator<Item = (usize, f64)> {
        let last = self.measured.detector().columns - 1;
        (0..count)
            .map(move |step| if side == 0 { step } else { last - step })
            .map(move |column| (column, self.u_mm(view, column as f64)))
    }

    /// The ends of rows that lie inside the object, of line integrals `[view, row, column]` of these views.
    ///
    /// Both sides are judged apart. The side of a shifted detector at the axis is no end: the other half of
    /// the turn continues it.
    ///
    /// Errors: another number of line integrals.
    pub fn ends(&self, lines: &[f32], views: Range<usize>) -> Result<Ends> {
        let [_, rows, columns] = self.measured.shape();
        expect_len("projections", &[views.len(), rows, columns], lines.len())?;
        if self.filter.extend == Extend::None || columns < LEAST {
            return Ok(Ends::default());
        }
        let of_view = |(index, lines): (usize, &[f32])| {
            let view = views.start + index;
            let means = means(lines, columns);
            [0, 1].map(|side| self.end(view, side, lines, &means))
        };
        let ends = self
            .device
            .cpu_side()
            .run(|| lines.par_chunks(rows * columns).enumerate().map(of_view).collect());
        Ok(Ends(ends))
    }

    fn end(&self, view: usize, side: usize, lines: &[f32], means: &[f64]) -> Option<End> {
        let columns = means.len();
        let outer = outer(columns);
        let edge = self.u_mm(view, if side == 0 { 0.0 } else { (columns - 1) as f64 });
        let outwards = if side == 0 { -1.0 } else { 1.0 };
        // The side at the axis of a shifted detector, and one that does not reach the axis.
        if self.margins[side] > 0 || edge * outwards < outer as f64 * self.measured.detector().pitch_mm[0] {
            return None;
        }
        let extend = self.filter.extend;
        if extend == Extend::Auto && !ends_inside(means, side, outer) {
            return None;
        }
        let radius_mm = (extend != Extend::Edge).then(|| self.radius(view, side, lines, means));
        // The mean of the outer columns stands for the outline's mean there.
        let outline = |u: f64| self.outline(view, radius_mm, edge, u);
        let mean = self.inwards(view, side, outer).map(|(_, u)| outline(u)).sum::<f64>();
        let column = if side == 0 { 0 } else { columns - 1 };
        let weight = self.weight(view, column + self.margins[0]) / mean;
        let values = lines.chunks(columns).enumerate().map(|(row, line)| {
            let sum: f64 = self.inwards(view, side, outer).map(|(column, _)| f64::from(line[column])).sum();
            (sum * weight * self.cosine(view, edge, row)) as f32
        });
        Some(End { radius_mm, values: values.collect() })
    }

    /// The cosine between a ray and the detector's normal.
    fn cosine(&self, view: usize, u: f64, row: usize) -> f64 {
        let position = &self.positions[view];
        let v = (row as f64 - position.principal[0]) * self.measured.detector().pitch_mm[1];
        position.distances.map_or(1.0, |[_, depth]| depth / (depth * depth + u * u + v * v).sqrt())
    }

    /// c(u): 1 at the edge, 0 beyond the cylinder.
    fn outline(&self, view: usize, radius_mm: Option<f64>, edge: f64, u: f64) -> f64 {
        let Some(radius) = radius_mm else { return 1.0 };
        let square = |u: f64| radius * radius - self.axis_distance(view, u).powi(2);
        (square(u).max(0.0) / square(edge)).sqrt()
    }

    /// The cylinder's radius: where the line through p² of the outer columns over the square of their
    /// distance from the axis meets 0. It is between a column beyond the edge and the end of the extension,
    /// or the end of the detector's other side where that sees more.
    fn radius(&self, view: usize, side: usize, lines: &[f32], means: &[f64]) -> f64 {
        let detector = self.measured.detector();
        let outwards = if side == 0 { -1.0 } else { 1.0 };
        let [first, last] = [0.0, (detector.columns - 1) as f64].map(|column| self.u_mm(view, column));
        let (edge, other) = if side == 0 { (first, last) } else { (last, first) };
        let distance = |columns: usize| {
            self.axis_distance(view, edge + outwards * columns as f64 * detector.pitch_mm[0]).abs()
        };
        let [least, mut most] = [distance(1), distance(self.reach())];
        let other = self.axis_distance(view, other).abs();
        if other > least
            && self.margins[1 - side] == 0
            && !ends_inside(means, 1 - side, outer(detector.columns))
        {
            most = other;
        }
        let count = (detector.columns / FIT).max(FITTED);
        let some = chosen_rows(lines.len() / detector.columns);
        let (mut n, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (column, u) in self.inwards(view, side, count).take_while(|(_, u)| u * outwards > 0.0) {
            let square: f64 =
                some.clone().map(|row| f64::from(lines[row * detector.columns + column]).powi(2)).sum();
            let distance = self.axis_distance(view, u).powi(2);
            n += 1.0;
            (x, y, xx, xy) = (x + distance, y + square, xx + distance * distance, xy + distance * square);
        }
        let slope = (n * xy - x * y) / (n * xx - x * x);
        let root = (x - y / slope) / n;
        // A rising line, and one that meets 0 far outside, belong to an object that is much wider than the
        // detector.
        if slope < 0.0 && root.is_finite() { root.max(0.0).sqrt().clamp(least, most) } else { most }
    }

    /// The filter of outlines, whose responses go `more` columns beyond the filtered row.
    pub(super) fn outlines(&self, more: usize) -> Result<Outlines> {
        let pad = self.reach().max(more);
        let detector = self.widened.detector();
        let kernel = ramp(detector.columns + 2 * pad, detector.pitch_mm[0]);
        let filter = RowFilter::new(&self.device.host(), &kernel, |f| self.filter.at(f))?;
        Ok(Outlines { filter, pad, more })
    }

    /// The filtered outlines of the ends of views, on both sides: `[view, side, column]`. `first` is the view
    /// of the first ends.
    pub(super) fn responses(
        &self,
        Outlines { filter, pad, more }: &Outlines,
        ends: &Ends,
        first: usize,
        range: Range<usize>,
    ) -> Result<Vec<f32>> {
        let (columns, reach, host) = (self.widened.detector().columns, self.reach(), filter.device());
        let length = columns + 2 * pad;
        let mut rows = zeroed("extensions of rows", voxels(&[range.len(), 2, length])?)?;
        host.cpu_side().run(|| {
            rows.par_chunks_mut(length).enumerate().for_each(|(index, row)| {
                let (view, side) = (range.start + index / 2, index % 2);
                let Some(end) = &ends.0[view - first][side] else { return };
                let last = self.measured.detector().columns - 1;
                let column = |step: usize| if side == 0 { -(step as f64) } else { (last + step) as f64 };
                let edge = self.u_mm(view, column(0));
                let middle = self.positions[view].principal[0] as usize;
                for step in 1..=reach {
                    let u = self.u_mm(view, column(step));
                    let value = self.outline(view, end.radius_mm, edge, u) * self.cosine(view, u, middle)
                        / self.cosine(view, edge, middle);
                    // A side without margin ends where the filtered row ends.
                    let place = if side == 0 { pad - step } else { pad + columns - 1 + step };
                    row[place] = value as f32;
                }
            });
        });
        let rows = filter.apply(Array::from_vec(host, &[2 * range.len(), length], rows)?, 0, None)?;
        let wide = columns + 2 * more;
        let mut responses = zeroed("extensions of rows", 2 * range.len() * wide)?;
        let pairs = responses.chunks_mut(wide).zip(rows.cpu().chunks(length));
        pairs.for_each(|(to, row)| to.copy_from_slice(&row[pad - more..][..wide]));
        Ok(responses)
    }

    /// Adds what extensions of the rows of `views` add to filtered projections of these views.
    pub(super) fn add_extensions(
        &self,
        filtered: &mut Array<f32>,
        views: Range<usize>,
        ends: &Ends,
    ) -> Result<()> {
        if ends.is_empty() {
            return Ok(());
        }
        if ends.0.len() != views.len() {
            return Err(Error::value(
                "ends of rows",
                format!("those of {} views", views.len()),
                ends.0.len(),
            ));
        }
        let [_, rows, columns] = self.widened.shape();
        let outlines = self.outlines(0)?;
        for part in parts(views.len(), VIEWS) {
            let of_part = &ends.0[part.clone()];
            if of_part.iter().flatten().all(Option::is_none) {
                continue;
            }
            let range = views.start + part.start..views.start + part.end;
            let responses = self.responses(&outlines, ends, views.start, range)?;
            let mut values = zeroed("ends of rows", of_part.len() * 2 * rows)?;
            for (end, to) in of_part.iter().flatten().zip(values.chunks_mut(rows)) {
                if let Some(end) = end {
                    to.copy_from_slice(&end.values[self.first_row..self.first_row + rows]);
                }
            }
            let device = filtered.device();
            let values = Array::from_vec(device, &[part.len(), 2, rows], values)?;
            let responses = Array::from_vec(device, &[part.len(), 2, columns], responses)?;
            add_outer(&values, &responses, filtered, part.start)?;
        }
        Ok(())
    }

    /// Bytes that extensions of the rows of `views` views take on the host and on a GPU.
    pub(crate) fn extension_bytes(&self, views: usize) -> [u64; 2] {
        if self.filter.extend == Extend::None {
            return [0, 0];
        }
        let [_, rows, columns] = self.widened.shape();
        // Through Fourier space the response covers the padded row.
        let length = columns + 2 * self.reach().max(self.length());
        let (real, some) = (size_of::<f32>(), VIEWS.min(views));
        let ends = views * (2 * rows * real + 2 * size_of::<Option<End>>());
        let responses = some * 2 * 2 * length * real;
        let added = some * 2 * (rows + columns) * real;
        [(ends + responses + added) as u64, added as u64]
    }

    /// Whether rows may go on beyond the detector.
    pub(crate) fn extend(&self) -> Extend {
        self.filter.extend
    }
}

/// Columns that give the value at an end.
fn outer(columns: usize) -> usize {
    (columns / END).clamp(2, 16)
}

/// Some rows of a view, evenly over it.
fn chosen_rows(rows: usize) -> std::iter::StepBy<Range<usize>> {
    (0..rows).step_by(rows.div_ceil(ROWS).max(1))
}

/// The mean of some rows of a view in each column.
fn means(lines: &[f32], columns: usize) -> Vec<f64> {
    let mut means = vec![0.0; columns];
    let some = chosen_rows(lines.len() / columns);
    for row in some.clone() {
        let line = &lines[row * columns..][..columns];
        means.iter_mut().zip(line).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let count = some.len().max(1) as f64;
    means.iter_mut().for_each(|sum| *sum /= count);
    means
}

/// Whether a side of a view's mean row ends inside the object: not in air, whose values are small and noise.
fn ends_inside(means: &[f64], side: usize, outer: usize) -> bool {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let wide = (4 * outer).min(means.len());
    let inwards = |columns: Range<usize>| match side {
        0 => &means[columns],
        _ => &means[means.len() - columns.end..means.len() - columns.start],
    };
    let (outermost, end, around) = (inwards(0..1)[0], mean(inwards(0..outer)), inwards(0..wide));
    let largest = means.windows(outer).map(mean).fold(0.0, f64::max);
    // Second differences: a slope is no noise.
    let second = |w: &[f64]| (w[0] - 2.0 * w[1] + w[2]).powi(2) / 6.0;
    let noise = around.windows(3).map(second).sum::<f64>() / (wide - 2) as f64;
    // On a narrow detector the outer columns may reach into an object that ends before them: the outermost
    // column must show it too.
    let inside = end.min(outermost) > PART * largest && end > NOISE * (noise / outer as f64).sqrt();
    let beside = inwards(outer..wide).iter().copied().fold(0.0, f64::max);
    inside && end <= BROKEN * beside + PART * largest
}
