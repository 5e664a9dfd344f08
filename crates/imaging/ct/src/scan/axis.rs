//! Where the axis of rotation falls on the detector.

use std::f64::consts::{PI, TAU};

use ndarray::{Array2, ArrayView2, ArrayView3, Axis};
use rayon::prelude::*;
use rayspin_core::{C32, Error, Result};
use rayspin_device::{Array, Cpu, Device};
use rayspin_kernels::fft::{Fft, Norm};

use super::around::{Around, Between, interpolated};
use super::spoilt::mended;

/// Views that are compared at most, and columns while the axis is sought roughly.
const VIEWS: usize = 256;
const COLUMNS: usize = 512;
/// The part of the columns that must be on either side of the axis.
const SHARED: f64 = 0.1;
/// Part of half a turn, 1/SEAM, from whose ends views are compared.
const SEAM: usize = 90;
/// The part of the views that have an opposite view in a whole turn.
const TURN: f64 = 0.9;
/// Pairs of opposite views that show the axis of a scan without half a turn.
const LEAST: usize = 8;
/// Two ways to find the axis disagree if they differ by more columns than this.
const APART: f64 = 0.5;
/// An overlap has at least this part of the variance per pixel of the views.
const FLAT: f64 = 1e-3;
/// Standard deviations by which a match is better than chance.
const CHANCE: f64 = 4.0;

/// A column on which the axis of rotation was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundAxis {
    /// Counted from 0 at the middle of the first column.
    pub column: f64,
    /// The column about which the first and last views of half a turn are mirror images, if it is another
    /// one.
    pub other: Option<f64>,
}

/// The column on which the axis of rotation falls in the middle row of line integrals `[view, row, column]`
/// of parallel rays, counted from 0 at the middle of the first column. `angles` are the angles of the views,
/// radian. Where no view looks from an angle, the views beside it are interpolated.
///
/// **A whole turn**: the view at θ + π is the mirror image of the view at θ. The axis is where mirror images
/// differ least, in the sum of squares over the columns that both have, relative to the variance there. It
/// may be near an end of the detector, as in half acquisition: a tenth of the columns must be on either side.
///
/// **Half a turn**: views and their mirror images about the axis make up a whole turn, whose two-dimensional
/// transform is small where
/// |frequency along columns| is less than |frequency along views| over the object's radius. The axis is where it is smallest
/// (N. T. Vo, M. Drakopoulos, R. C. Atwood, C. Reinhard, Opt Express 22:19078, 2014).
///
/// Columns and half columns are tried, of half a turn in the middle half of the detector; a parabola through
/// the best three gives the rest. The first and last views of half a turn are nearly mirror images, too.
/// Where they match elsewhere and not on the column that was found, the axis is sought around their match.
///
/// Dead columns, and single pixels that are far from all around them, are mended first.
///
/// Errors: fewer than 8 views or columns; less than half a turn; views that do not show the axis. Their
/// mirror images then differ everywhere, match on several columns, or match best at the end of the columns
/// that are tried.
///
/// ```
/// use ndarray::Array3;
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry};
/// use rayspin_ct::phantom::{Form, Phantom, Solid};
/// use rayspin_ct::scan::find_axis;
/// use rayspin_device::Device;
///
/// let device = Device::cpu()?;
/// let detector = Detector { rows: 1, columns: 64, pitch_mm: [1.0, 1.0], radius_mm: None };
/// // The middle of the detector is 3 columns behind the axis.
/// let orbit = Orbit { offset_mm: [3.0, 0.0], ..Orbit::default() }.arc(0.0, std::f64::consts::TAU, 90);
/// let geometry = ProjectionGeometry::orbit(detector, &orbit)?;
/// let rod = Phantom::new(vec![Solid::new(Form::Cylinder, [6.0, 2.0, 0.0], [20.0, 15.0, 1e3], 0.02)])?;
/// let lines = Array3::from_shape_vec((90, 1, 64), rod.project(device.cpu_side(), &geometry)?)?;
/// let found = find_axis(&device, lines.view(), &orbit.angles)?;
/// assert!((found - 28.5).abs() < 0.1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn find_axis(device: &Device, lines: ArrayView3<'_, f32>, angles: &[f64]) -> Result<f64> {
    Ok(search_axis(device, lines, angles)?.column)
}

/// The same, and whether the views disagree.
///
/// Errors: as [`find_axis`].
pub fn search_axis(device: &Device, lines: ArrayView3<'_, f32>, angles: &[f64]) -> Result<FoundAxis> {
    let (views, rows, columns) = lines.dim();
    rayspin_core::expect_len("angles", &[views], angles.len())?;
    if views < 8 || columns < 8 {
        let found = format!("{views} views of {columns} columns");
        return Err(Error::value("views to find the axis in", "at least 8 views of 8 columns", found));
    }
    let around = Around::new(angles);
    if around.step <= 0.0 {
        return Err(Error::value(
            "views to find the axis in",
            "some of different directions",
            "one direction",
        ));
    }
    let row = mended(lines.index_axis(Axis(1), rows / 2));
    let (cpu, row) = (device.cpu_side(), row.view());
    // From the first view over half a turn, as the scan turns.
    let forwards = angles[views - 1] >= angles[0];
    let from_first = |angle: f64| if forwards { angle - angles[0] } else { angles[0] - angle };
    let mut ahead: Vec<usize> = (0..views).collect();
    ahead.retain(|&view| from_first(angles[view]).rem_euclid(TAU) < PI - 1e-9);
    let pairs: Vec<[Between; 2]> =
        ahead.iter().filter_map(|&view| Some([([view; 2], 0.0), around.opposite(angles[view])?])).collect();
    let by_pairs = |pairs: Vec<[Between; 2]>| {
        let every = pairs.len().div_ceil(VIEWS).max(1);
        let some: Vec<_> = pairs.into_iter().step_by(every).collect();
        Mirrored::new(cpu, row, &some).convincing().map(|column| FoundAxis { column, other: None })
    };
    if pairs.len() as f64 >= TURN * ahead.len() as f64 {
        return by_pairs(pairs);
    }
    let half = around
        .half_turn(angles[0], forwards)
        .or_else(|| around.half_turn(around.start(), true))
        .map(|half| interpolated(row, &half));
    let Some(half) = half else {
        if pairs.len() >= LEAST {
            return by_pairs(pairs);
        }
        let found = format!("none over {:.0}° of it", around.missing().to_degrees());
        return Err(Error::value("views to find the axis in", "views all over at least half a turn", found));
    };
    let count = half.dim().0;
    // Views on both sides of the step from the last view to the first one's mirror image.
    let near = (count / SEAM).max(1);
    let pairs: Vec<[Between; 2]> =
        (0..near).map(|view| [view, count - 1 - view].map(|view| ([view; 2], 0.0))).collect();
    let seam = Mirrored::new(cpu, half.view(), &pairs);
    let mut column = by_wedge(&device.host(), half.view(), None)?;
    let matched = seam.convincing()?;
    if !seam.agrees(column, matched) {
        column = by_wedge(&device.host(), half.view(), Some(matched))?;
    }
    // The views are a step away from mirror images, which moves what is near the detector's end.
    let apart = APART + 0.25 * columns as f64 * around.step;
    Ok(FoundAxis { column, other: ((column - matched).abs() > apart).then_some(matched) })
}

/// Twice the columns that are tried.
fn tried(columns: usize) -> std::ops::RangeInclusive<usize> {
    columns / 2..=(3 * (columns - 1)).div_ceil(2)
}

/// The place of the least of values at integers from `first` on, by the parabola through it and its
/// neighbours.
fn least(first: usize, values: &[f64]) -> f64 {
    let index = (0..values.len()).min_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0);
    let place = (first + index) as f64;
    if index == 0 || index + 1 >= values.len() {
        return place;
    }
    let [before, here, after] = [values[index - 1], values[index], values[index + 1]];
    let bend = before - 2.0 * here + after;
    if bend > 0.0 && bend.is_finite() { place + 0.5 * (before - after) / bend } else { place }
}

/// How much views differ from mirror images about columns and half columns that leave a tenth of the columns
/// on either side.
///
/// ```text
/// Σ (a − b)² / (Σ (a − ā)² + Σ (b − b̄)²)
/// ```
///
/// of views a and the mirror images b of others. Equal views give 0; noise and air give about 1.
struct Mirrored {
    /// Twice the first column that is tried.
    first: usize,
    differences: Vec<f64>,
    columns: usize,
}

impl Mirrored {
    fn new(cpu: &Cpu, row: ArrayView2<'_, f32>, pairs: &[[Between; 2]]) -> Self {
        let columns = row.dim().1;
        // Views that are compared come one after the other.
        let row = interpolated(row, pairs.as_flattened());
        let shared = ((2.0 * SHARED * columns as f64).ceil() as usize).max(2);
        let sums = shared - 1..=2 * columns - 1 - shared;
        let first = *sums.start();
        let (mut count, mut sum, mut square) = (0.0, 0.0, 0.0);
        for value in row.iter().map(|&value| f64::from(value)) {
            (count, sum, square) = (count + 1.0, sum + value, square + value * value);
        }
        // The variance of a pixel. Overlaps of air alone, or of a detector that is saturated, tell nothing;
        // nor do numbers that differ by their rounding.
        let spread = square / count - (sum / count) * (sum / count);
        let enough = (FLAT * spread).max(1e-10 * square / count);
        let difference = |sum: usize| {
            let (from, to) = ((sum + 1).saturating_sub(columns), sum.min(columns - 1));
            let (mut squares, mut sum_a, mut sum_b, mut square_a, mut square_b) = (0.0, 0.0, 0.0, 0.0, 0.0);
            let mut count = 0.0;
            for pair in 0..pairs.len() {
                let (a, b) = (row.row(2 * pair), row.row(2 * pair + 1));
                let pairs = (from..=to).map(|column| (f64::from(a[column]), f64::from(b[sum - column])));
                for (a, b) in pairs {
                    squares += (a - b).powi(2);
                    sum_a += a;
                    sum_b += b;
                    square_a += a * a;
                    square_b += b * b;
                }
                count += (to + 1 - from) as f64;
            }
            let variance = square_a + square_b - (sum_a * sum_a + sum_b * sum_b) / count;
            if variance > enough * 2.0 * count { squares / variance } else { f64::INFINITY }
        };
        let differences = cpu.run(|| sums.into_par_iter().map(difference).collect());
        Self { first, differences, columns }
    }

    /// The column at which mirror images differ least.
    ///
    /// Errors: one that does not convince.
    fn convincing(&self) -> Result<f64> {
        let Self { first, differences, columns } = self;
        let none = |found: String| {
            Err(Error::value(
                "axis of rotation",
                "views that are mirror images of others about one column",
                found,
            ))
        };
        let index =
            (0..differences.len()).min_by(|&a, &b| differences[a].total_cmp(&differences[b])).unwrap_or(0);
        let (lowest, column) = (differences[index], 0.5 * (first + index) as f64);
        if !lowest.is_finite() {
            return none("the same value everywhere".into());
        }
        let overlap = (first + index + 1).min(2 * columns - 1 - first - index) as f64;
        // The least of many tries is below 1 without an object, too.
        if lowest > (1.0 - CHANCE / overlap.sqrt()).clamp(0.3, 0.75) {
            return none(format!(
                "that the best one, {column}, leaves {:.0} % of their variance",
                100.0 * lowest
            ));
        }
        if index == 0 || index + 1 == differences.len() {
            let most = first + differences.len() - 1;
            let range = format!("{} to {}", 0.5 * *first as f64, 0.5 * most as f64);
            return none(format!(
                "that {column}, at the end of the columns {range} that are tried, is the best"
            ));
        }
        // Another minimum that is as good, behind a rise.
        let rise = |mut ahead: Box<dyn Iterator<Item = usize>>| {
            let mut high = 0.0f64;
            ahead.find(|&other| {
                high = high.max(differences[other]);
                differences[other] <= 1.5 * lowest + 0.01 && high > 3.0 * lowest + 0.1
            })
        };
        if let Some(other) =
            rise(Box::new((0..index).rev())).or_else(|| rise(Box::new(index + 1..differences.len())))
        {
            return none(format!(
                "that they match about the columns {column} and {}",
                0.5 * (first + other) as f64
            ));
        }
        Ok(0.5 * least(*first, differences))
    }

    /// Whether a column is as good as the matched one, or close to it.
    fn agrees(&self, column: f64, matched: f64) -> bool {
        let difference = |column: f64| {
            let index = ((2.0 * column).round() as usize).checked_sub(self.first);
            index.and_then(|index| self.differences.get(index)).copied().unwrap_or(f64::INFINITY)
        };
        (column - matched).abs() <= (0.02 * self.columns as f64).max(2.0)
            || difference(column) <= difference(matched) + 0.05
    }
}

/// Roughly in wider columns, then exactly; around a column where it is roughly known.
fn by_wedge(cpu: &Device, row: ArrayView2<'_, f32>, known: Option<f64>) -> Result<f64> {
    let every = row.dim().0.div_ceil(VIEWS);
    let row = row.slice(ndarray::s![..;every, ..]);
    let wide = row.dim().1.div_ceil(COLUMNS);
    let middle = match known {
        Some(column) => (2.0 * column).round() as usize,
        None => {
            let merged = merged(row, wide);
            let columns = merged.dim().1;
            let rough = Wedge::new(cpu, merged.view())?;
            let sums: Vec<usize> = tried(columns).step_by(2).collect();
            let values = sums.iter().map(|&sum| rough.inside(sum)).collect::<Result<Vec<_>>>()?;
            let index = least(0, &values).round() as usize;
            // Column c of the merged ones is (wide c + (wide − 1)/2) of the others.
            wide * sums[index.min(sums.len() - 1)] + wide - 1
        }
    };
    let fine = Wedge::new(cpu, row)?;
    let (first, last) = (middle.saturating_sub(3 * wide), (middle + 3 * wide).min(2 * (row.dim().1 - 1)));
    let values = (first..=last).map(|sum| fine.inside(sum)).collect::<Result<Vec<_>>>()?;
    Ok(0.5 * least(first, &values))
}

/// Means of `wide` neighbouring columns; the last ones that make up no whole one are left out.
fn merged(row: ArrayView2<'_, f32>, wide: usize) -> Array2<f32> {
    let (views, columns) = row.dim();
    Array2::from_shape_fn((views, columns / wide), |(view, column)| {
        row.slice(ndarray::s![view, column * wide..(column + 1) * wide]).mean().unwrap_or(0.0)
    })
}

/// Views over half a turn, and the frequencies at which a whole turn has next to nothing.
struct Wedge<'a> {
    cpu: &'a Device,
    row: ArrayView2<'a, f32>,
    fft: Fft<f32>,
    empty: Vec<usize>,
}

impl<'a> Wedge<'a> {
    fn new(cpu: &'a Device, row: ArrayView2<'a, f32>) -> Result<Self> {
        let (views, columns) = row.dim();
        let (height, radius) = (2 * views, 0.5 * columns as f64);
        // Frequency k along 2V views of a turn is k oscillations, m along N columns m/N a column.
        let narrow = (0.05 * height as f64).ceil().min(20.0);
        let mut empty = Vec::new();
        for k in 0..height {
            let along_views = (k as f64 - views as f64).abs();
            let reach = along_views / (TAU * radius) * columns as f64;
            for m in 0..columns {
                let along_columns = (m as f64 - (columns / 2) as f64).abs();
                if along_views > narrow && along_columns > 1.0 && along_columns <= reach {
                    empty.push(k * columns + m);
                }
            }
        }
        if empty.is_empty() {
            let found = format!("{views} views of {columns} columns");
            return Err(Error::value("views to find the axis in", "more views over half a turn", found));
        }
        Ok(Self { cpu, row, fft: Fft::new(cpu, &[height, columns], Norm::None)?, empty })
    }

    /// The mean magnitude where there should be nothing, if the axis is at half of `sum`.
    fn inside(&self, sum: usize) -> Result<f64> {
        let (views, columns) = self.row.dim();
        let value = |index: usize| -> C32 {
            let (view, column) = (index / columns, index % columns);
            let value = match view.checked_sub(views) {
                None => self.row[[view, column]],
                // Beyond the detector the views themselves, in the opposite order, which make no step to the
                // first one.
                Some(view) => match sum.checked_sub(column).filter(|&mirrored| mirrored < columns) {
                    Some(mirrored) => self.row[[view, mirrored]],
                    None => self.row[[views - 1 - view, column]],
                },
            };
            C32::new(value, 0.0)
        };
        let turn: Vec<C32> = (0..2 * views * columns).map(value).collect();
        let mut turn = Array::from_vec(self.cpu, &[2 * views, columns], turn)?;
        self.fft.forward(&mut turn)?;
        let values = turn.cpu();
        Ok(self.empty.iter().map(|&index| f64::from(values[index].norm())).sum::<f64>()
            / self.empty.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;
    use rayspin_core::{Detector, Orbit, ProjectionGeometry};
    use rayspin_imaging::phantom::Contrast;

    use super::*;
    use crate::phantom::Phantom;

    fn head(columns: usize, offset: f64, span: f64, views: usize) -> (Array3<f32>, Vec<f64>) {
        let device = Device::cpu().unwrap();
        let detector = Detector { rows: 3, columns, pitch_mm: [1.0, 1.0], radius_mm: None };
        let orbit = Orbit { offset_mm: [offset, 0.0], ..Orbit::default() }.arc(0.4, span, views);
        let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
        let head = Phantom::shepp_logan(2, 0.7 * columns as f64, Contrast::Modified, 0.02).unwrap();
        let mut lines = head.project(device.cpu_side(), &geometry).unwrap();
        for (at, value) in lines.iter_mut().enumerate() {
            *value += 0.02 * ((at * 7919 % 1009) as f32 / 504.5 - 1.0);
        }
        (Array3::from_shape_vec(geometry.shape(), lines).unwrap(), orbit.angles)
    }

    #[test]
    fn the_axis_is_found_over_whole_and_half_turns() {
        let device = Device::cpu().unwrap();
        for (columns, offset) in [(160, 0.0), (161, 7.3), (160, -11.6), (96, 3.25)] {
            for (span, views) in [(TAU, 180), (-TAU, 181), (2.5 * PI, 225), (PI, 150), (1.1 * PI, 165)] {
                let (lines, angles) = head(columns, offset, span, views);
                let found = find_axis(&device, lines.view(), &angles).unwrap();
                let wanted = 0.5 * (columns - 1) as f64 - offset;
                assert!((found - wanted).abs() < 0.3, "{columns} {offset} {span}: {found} for {wanted}");
            }
        }
        // Half acquisition: most of the object is on one side.
        for (columns, offset) in [(160, 60.0), (161, -55.3)] {
            let (lines, angles) = head(columns, offset, TAU, 180);
            let found = find_axis(&device, lines.view(), &angles).unwrap();
            let wanted = 0.5 * (columns - 1) as f64 - offset;
            assert!((found - wanted).abs() < 0.3, "{columns} {offset}: {found} for {wanted}");
        }
        // Wide detectors are merged first.
        let (lines, angles) = head(1300, 41.5, PI, 300);
        let found = find_axis(&device, lines.view(), &angles).unwrap();
        assert!((found - 608.0).abs() < 0.4, "{found}");
    }

    #[test]
    fn what_has_no_axis_is_refused() {
        let device = Device::cpu().unwrap();
        let (lines, angles) = head(64, 0.0, PI, 60);
        let part =
            |views: usize| find_axis(&device, lines.slice(ndarray::s![..views, .., ..]), &angles[..views]);
        assert!(part(60).is_ok());
        assert!(part(50).unwrap_err().to_string().contains("half a turn"));
        assert!(part(5).unwrap_err().to_string().contains("8 views"));
        let mut uneven = angles.clone();
        uneven[30] += 0.03;
        assert!((find_axis(&device, lines.view(), &uneven).unwrap() - 31.5).abs() < 0.3);
        uneven.fill(0.7);
        assert!(find_axis(&device, lines.view(), &uneven).unwrap_err().to_string().contains("one direction"));
        assert!(find_axis(&device, lines.view(), &angles[1..]).is_err());
    }
}
