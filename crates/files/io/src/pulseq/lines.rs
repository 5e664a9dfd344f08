//! Straight readouts of a sequence that lie on the lines of a grid: a Cartesian or echo-planar scan.
//!
//! ```text
//! k(s) = (k_x(s), l_y + e_y, l_z + e_z),   |e| ≤ ε,   k_x the same for all readouts of a direction
//! ```
//!
//! k counts cycles per field of view, and l are whole numbers. k_x rises along forward readouts and falls
//! along reversed ones.

use std::sync::Arc;

use ndarray::Array2;
use rayspin_scan::mri::{EncodedSpace, Encoding, Flags, Limits, ReadoutPlaces, TrajectoryKind};

/// ε: how far samples may lie off their line, and places of readouts apart, in cycles per field of view. Over
/// an eighth of the field of view from the middle, this turns the phase by less than 3°.
const NEAR: f64 = 0.05;
/// By how much steps may be larger than a cycle per field of view, as a part of it.
const ROUNDED: f64 = 1e-3;
/// How far from even places samples may lie and count as even, in samples, and from whole numbers.
const EVEN: f64 = 0.02;
const WHOLE: f64 = 0.01;

/// The readouts of a sequence on a grid.
pub(super) struct Lines {
    /// Of each ADC event: its line along y and z from the centre of k-space, and whether k falls along it.
    pub(super) each: Vec<Line>,
    /// What was encoded.
    encoded: EncodedSpace,
    /// The sample at the centre of k-space, in the direction in which k rises.
    pub(super) centre: usize,
    /// Where samples lie in cycles per encoded field of view; none where they lie at whole numbers.
    places: Option<ReadoutPlaces>,
}

/// The line of an ADC event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) y: i32,
    pub(super) z: i32,
    pub(super) reversed: bool,
}

impl Lines {
    /// The lines of readouts `[sample, axis]` in cycles/m, with what each is for. `space` is the image; along
    /// axes that are not `encoded` all lines are one.
    ///
    /// Errors: why they are none, in words.
    pub(super) fn of(
        readouts: &[Array2<f64>],
        flags: &[Flags],
        space: &EncodedSpace,
        encoded: [bool; 3],
    ) -> std::result::Result<Self, &'static str> {
        let cycles = space.fov_mm.map(|mm| 1e-3 * mm);
        if cycles.iter().any(|fov| !(fov.is_finite() && *fov > 0.0)) {
            return Err("no field of view is known");
        }
        let samples = readouts.first().map_or(0, Array2::nrows);
        if samples < 2 || readouts.iter().any(|readout| readout.nrows() != samples) {
            return Err("its readouts have several numbers of samples");
        }
        let mut places: [Option<Vec<f64>>; 2] = [None, None];
        let mut each = Vec::with_capacity(readouts.len());
        for (readout, flags) in readouts.iter().zip(flags) {
            if !readout.iter().all(|k| k.is_finite()) {
                return Err("its places are not all numbers");
            }
            let along: Vec<f64> = readout.column(0).iter().map(|k| k * cycles[0]).collect();
            let reversed = along[samples - 1] < along[0];
            let mut line = [0, 0];
            for (axis, line) in (1..3).zip(&mut line).filter(|(axis, _)| encoded[*axis]) {
                let column = readout.column(axis);
                let (low, high) = column
                    .iter()
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), k| (low.min(*k), high.max(*k)));
                let (low, high) = (low * cycles[axis], high * cycles[axis]);
                let whole = low.midpoint(high).round();
                if high - low > NEAR {
                    return Err("its readouts are no lines along x");
                }
                // Readouts that are no part of the image need not lie on its lines.
                let of_image = flags.is_image() || flags.is_calibration_line();
                if of_image && (high - whole).abs().max((low - whole).abs()) > NEAR {
                    return Err("its lines are not whole cycles per field of view apart");
                }
                let half = (space.matrix[axis] / 2) as f64;
                if space.matrix[axis] == 1 && whole != 0.0 || whole.abs() > half.max(1.0) && of_image {
                    return Err("its lines lie beyond the matrix");
                }
                *line = whole.clamp(-half, half) as i32;
            }
            let own = places[usize::from(reversed)].get_or_insert_with(|| along.clone());
            if !own.iter().zip(&along).all(|(a, b)| (a - b).abs() <= NEAR) {
                return Err("its readouts have several places along x");
            }
            each.push(Line { y: line[0], z: line[1], reversed });
        }
        let [forward, reversed] = places;
        let mirrored = |places: &Vec<f64>| places.iter().rev().copied().collect::<Vec<f64>>();
        let (forward, reversed) = match (forward, reversed) {
            (Some(forward), Some(reversed)) => (forward, reversed),
            (Some(forward), None) => (forward.clone(), mirrored(&forward)),
            (None, Some(reversed)) => (mirrored(&reversed), reversed),
            (None, None) => return Err("it has no readouts"),
        };
        let rising = |places: &[f64]| places.windows(2).all(|two| two[1] > two[0]);
        if !rising(&forward) || !rising(&mirrored(&reversed)) {
            return Err("k does not rise or fall along its readouts");
        }
        Self::encoded(each, [forward, reversed], space)
    }

    /// What readouts at these places, in cycles per field of view, encode.
    fn encoded(
        each: Vec<Line>,
        [forward, reversed]: [Vec<f64>; 2],
        space: &EncodedSpace,
    ) -> std::result::Result<Self, &'static str> {
        let (samples, pixels) = (forward.len(), space.matrix[0]);
        let widest =
            |places: &[f64]| places.windows(2).map(|two| (two[1] - two[0]).abs()).fold(0.0, f64::max);
        let step = (forward[samples - 1] - forward[0]) / (samples - 1) as f64;
        if widest(&forward).max(widest(&reversed)) > 1.0 + ROUNDED {
            return Err("its samples lie more than a cycle per field of view apart");
        }
        // Even samples whose field of view holds a whole number of pixels keep their step.
        let wide = (pixels as f64 / step).round();
        let scaled = |columns: f64| {
            let scale = columns / pixels as f64;
            [&forward, &reversed].map(|places| places.iter().map(|k| k * scale).collect::<Vec<f64>>())
        };
        let one_apart = |places: &Vec<f64>| {
            let (first, sign) = (places[0], (places[samples - 1] - places[0]).signum());
            places.iter().enumerate().all(|(s, k)| (k - first - sign * s as f64).abs() < EVEN)
        };
        let even = scaled(wide).iter().all(one_apart);
        let columns = if even { wide as usize } else { samples };
        if columns < pixels {
            return Err("it has fewer samples than the image has pixels along x");
        }
        let [forward, reversed] = scaled(columns as f64);
        let most = forward.iter().chain(&reversed).fold(0.0, |most: f64, k| most.max(k.abs()));
        let lowest = [forward[0], reversed[samples - 1]];
        let usual = (samples / 2) as f64;
        let near = |k: f64| if (k + usual).abs() < 0.5 + EVEN { usual } else { (-k).round() };
        let [centre, other] = lowest.map(|k| if even { near(k) } else { usual });
        let measured = |centre: f64| (0.0..samples as f64).contains(&centre);
        if !measured(centre) || !measured(other) || !even && most > samples as f64 / 2.0 + 0.5 {
            return Err("its readouts do not reach the centre of k-space, or not evenly to both sides");
        }
        let whole = even && centre == other && lowest.iter().all(|k| (k + centre).abs() < WHOLE);
        let mut encoded = *space;
        encoded.matrix[0] = columns;
        encoded.fov_mm[0] *= columns as f64 / pixels as f64;
        let places = ReadoutPlaces { forward: Arc::from(forward), reversed: Arc::from(reversed) };
        Ok(Self { each, encoded, centre: centre as usize, places: (!whole).then_some(places) })
    }

    /// Describes the scan in the header's words. Lines count from 0 at −n/2.
    pub(super) fn describe(&self, encoding: &mut Encoding) {
        let lines = |axis: usize, of: fn(&Line) -> i32| {
            let centre = self.encoded.matrix[axis] / 2;
            let counts = || self.each.iter().map(|line| counter(of(line), centre));
            let (minimum, maximum) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
            Some(Limits { minimum, maximum, centre })
        };
        encoding.trajectory = match self.each.iter().any(|line| line.reversed) {
            true => TrajectoryKind::Epi,
            false => TrajectoryKind::Cartesian,
        };
        encoding.encoded = self.encoded;
        (encoding.step_1, encoding.step_2) = (lines(1, |line| line.y), lines(2, |line| line.z));
        (encoding.ramps, encoding.places) = (None, self.places.clone());
    }

    /// The counters of a line along y and z.
    pub(super) fn counters(&self, line: &Line) -> [u16; 2] {
        let [_, ny, nz] = self.encoded.matrix;
        [counter(line.y, ny / 2), counter(line.z, nz / 2)].map(|counter| counter as u16)
    }
}

/// A line as counters have it.
fn counter(line: i32, centre: usize) -> usize {
    centre.saturating_add_signed(line as isize)
}
