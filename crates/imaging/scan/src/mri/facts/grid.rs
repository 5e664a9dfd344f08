use ndarray::{Array2, ArrayD, ArrayView2, Axis, Dimension};

use super::edge::Readouts;
use super::region::Region;
use super::{Found, Pattern, covered};
use crate::mri::CalibrationLines;
use crate::mri::centre::{centre_of, reach, sampled_centre};
use crate::mri::lattice::Lattice;

/// Fewer lines than this on a lattice are regular by chance.
const LEAST_LINES: usize = 4;
/// Density within half of the radius over the density beyond, at least, where the density varies.
const VARIES: f64 = 1.3;

/// What the places of samples on a grid `[z, y, x]` or `[y, x]` say.
pub(super) fn of(sampled: &ArrayD<bool>, calibration: Option<&CalibrationLines>, matrix: &[usize]) -> Found {
    let shape = sampled.shape();
    let dims = shape.len();
    let Seen { ends, count, rows } = seen(sampled);
    let full = count == ends.iter().map(|[low, high]| high - low + 1).product::<usize>();
    let lattice = if full { None } else { regular(sampled) };
    let widths = centre_widths(calibration.map_or(sampled, |lines| &lines.sampled));
    let steps: Vec<Option<usize>> = match (&lattice, full) {
        (_, true) => vec![Some(1); dims],
        (Some(steps), _) => steps.iter().map(|&step| Some(step)).collect(),
        (None, false) => complete_axes(sampled).into_iter().map(|complete| complete.then_some(1)).collect(),
    };
    let mut cells = Vec::new();
    let mut coverage = Vec::new();
    for (axis, &n) in shape.iter().enumerate() {
        let (centre, [low, high], gap) = (n / 2, ends[axis], steps[axis].unwrap_or(1));
        let (left, right) = (centre.saturating_sub(low), (high + 1).saturating_sub(centre));
        let part = covered(left as f64, right as f64, (2 * gap) as f64);
        // A lattice of every R-th line stands for R places each.
        let width = if part == 1.0 { high - low + gap } else { 2 * left.max(right) + gap - 1 };
        let places = centre_of(n, width.min(n));
        coverage.push(part);
        cells.push([places.start as i64 - centre as i64, places.end as i64 - centre as i64 - 1]);
    }
    let places: usize = cells.iter().map(|[low, high]| (high - low + 1) as usize).product();
    let pattern = match (full, &lattice) {
        (true, _) => Pattern::Full,
        (_, Some(_)) => Pattern::Regular,
        _ if is_denser_inside(sampled, &cells, &widths, &steps) => Pattern::VariableDensity,
        _ => Pattern::Random,
    };
    let undersampling = places as f64 / count.max(1) as f64;
    // The readout is the last of the axes along which every line is sampled alike.
    let readout = (0..dims).rev().find(|&axis| lines_along(sampled, axis).is_some());
    let along = readout
        .map_or(Readouts::None, |axis| Readouts::Lines(axis, matrix[axis] as f64 / shape[axis] as f64));
    let turned = |mut list: Vec<[i64; 2]>| {
        list.reverse();
        list
    };
    let region = Region::of_box(turned(cells));
    Found {
        readouts: rows,
        samples: count,
        pattern,
        undersampling,
        steps: steps.into_iter().rev().collect(),
        calibration: widths.into_iter().rev().collect(),
        coverage: coverage.into_iter().rev().collect(),
        counts: region.counts(),
        region,
        along,
    }
}

/// The box of what was sampled, its places, and its rows along the last axis.
struct Seen {
    ends: Vec<[usize; 2]>,
    count: usize,
    rows: usize,
}

fn seen(sampled: &ArrayD<bool>) -> Seen {
    let outer = &sampled.shape()[..sampled.ndim().saturating_sub(1)];
    let mut ends = vec![[usize::MAX, 0]; sampled.ndim()];
    let (mut count, mut rows) = (0, 0);
    for (row, index) in sampled.rows().into_iter().zip(ndarray::indices(outer)) {
        let (Some(first), Some(last)) = (row.iter().position(|&s| s), row.iter().rposition(|&s| s)) else {
            continue;
        };
        rows += 1;
        count += row.iter().filter(|&&s| s).count();
        let position = index.as_array_view();
        for (ends, [low, high]) in
            ends.iter_mut().zip(position.iter().map(|&i| [i, i]).chain([[first, last]]))
        {
            *ends = [ends[0].min(low), ends[1].max(high)];
        }
    }
    // Nothing sampled: the first place alone.
    let known = |[low, high]: [usize; 2]| if low > high { [0, 0] } else { [low, high] };
    Seen { ends: ends.into_iter().map(known).collect(), count, rows }
}

/// For each axis whether every line along it that has a sample is sampled between the same ends.
fn complete_axes(sampled: &ArrayD<bool>) -> Vec<bool> {
    (0..sampled.ndim()).map(|axis| lines_along(sampled, axis).is_some()).collect()
}

/// The lines along an axis that were sampled, where all of them are sampled between the same ends: `[z, y]`
/// of the other axes.
fn lines_along(sampled: &ArrayD<bool>, axis: usize) -> Option<Array2<bool>> {
    let mut ends = None;
    let mut lines = Vec::new();
    for lane in sampled.lanes(Axis(axis)) {
        let Some(first) = lane.iter().position(|&s| s) else {
            lines.push(false);
            continue;
        };
        let last = lane.iter().rposition(|&s| s)?;
        if *ends.get_or_insert([first, last]) != [first, last]
            || !lane.iter().skip(first).take(last - first).all(|&s| s)
        {
            return None;
        }
        lines.push(true);
    }
    let others: Vec<usize> = (0..sampled.ndim()).filter(|&a| a != axis).map(|a| sampled.shape()[a]).collect();
    let (rows, columns) = match others[..] {
        [n] => (1, n),
        [m, n] => (m, n),
        _ => return None,
    };
    Array2::from_shape_vec((rows, columns), lines).ok()
}

/// The steps of a regular pattern along each axis of the array.
fn regular(sampled: &ArrayD<bool>) -> Option<Vec<usize>> {
    (0..sampled.ndim()).rev().find_map(|readout| {
        let lines = lines_along(sampled, readout)?;
        let [rz, ry] = lattice_steps(lines.view())?;
        let mut steps = if sampled.ndim() == 2 { vec![ry] } else { vec![rz, ry] };
        steps.insert(readout, 1);
        Some(steps)
    })
}

fn lattice_steps(lines: ArrayView2<'_, bool>) -> Option<[usize; 2]> {
    let (rows, columns) = lines.dim();
    // Two axes are searched as far as reconstruction goes; along one axis every step is.
    let largest = if rows > 1 && columns > 1 { Lattice::LARGEST } else { rows.max(columns) / LEAST_LINES };
    let lattice = Lattice::of_at_most(lines, largest.max(1)).ok()?;
    let on = lines.indexed_iter().filter(|((z, y), known)| **known && lattice.class(*z, *y) == [0, 0]);
    (on.count() >= LEAST_LINES).then_some(lattice.step)
}

/// Width of the fully sampled box around the centre along each axis: the widest cube, made longer along each
/// axis in turn, the last one first.
fn centre_widths(sampled: &ArrayD<bool>) -> Vec<usize> {
    let shape = sampled.shape();
    let cube = sampled_centre(sampled);
    let mut widths: Vec<usize> = shape.iter().map(|&n| n.min(cube)).collect();
    if cube == 0 {
        return widths;
    }
    let outer = &shape[..shape.len() - 1];
    let last = shape.len() - 1;
    for axis in (0..shape.len()).rev() {
        let mut width = shape[axis];
        for (row, index) in sampled.rows().into_iter().zip(ndarray::indices(outer)) {
            let position = index.as_array_view();
            let inside = |a: usize| a == axis || reach(position[a], shape[a]) < widths[a];
            if !(0..last).all(inside) {
                continue;
            }
            let missing =
                row.iter().enumerate().filter(|(_, known)| !**known).map(|(x, _)| reach(x, shape[last]));
            if axis == last {
                width = missing.fold(width, usize::min);
            } else if missing.into_iter().any(|reach| reach < widths[last]) {
                width = width.min(reach(position[axis], shape[axis]));
            }
        }
        widths[axis] = width.max(widths[axis]);
    }
    widths
}

/// Whether places nearer the centre than half of the radius were measured more often than the others; the
/// calibration region does not count, and neither do axes that are sampled fully.
fn is_denser_inside(
    sampled: &ArrayD<bool>,
    cells: &[[i64; 2]],
    widths: &[usize],
    steps: &[Option<usize>],
) -> bool {
    let shape = sampled.shape();
    let last = shape.len() - 1;
    // Squared distance from the centre relative to the box, and whether the place is within the calibration
    // region.
    let part = |axis: usize, index: usize| {
        let offset = index as i64 - (shape[axis] / 2) as i64;
        let half = cells[axis][0].abs().max(1) as f64;
        let square = if steps[axis].is_some() { 0.0 } else { (offset as f64 / half).powi(2) };
        (square, reach(index, shape[axis]) < widths[axis])
    };
    let (mut inner, mut outer) = ([0usize; 2], [0usize; 2]);
    for (row, index) in sampled.rows().into_iter().zip(ndarray::indices(&shape[..last])) {
        let position = index.as_array_view();
        let (square, within) = (0..last)
            .map(|axis| part(axis, position[axis]))
            .fold((0.0, true), |(sum, inside), (square, within)| (sum + square, inside && within));
        for (x, &known) in row.iter().enumerate() {
            let (own, own_within) = part(last, x);
            let radius = square + own;
            if (within && own_within) || radius > 1.0 {
                continue;
            }
            let ring = if radius < 0.25 { &mut inner } else { &mut outer };
            ring[0] += usize::from(known);
            ring[1] += 1;
        }
    }
    let density = |[known, count]: [usize; 2]| known as f64 / count.max(1) as f64;
    inner[1] > 0 && density(inner) > VARIES * density(outer)
}
