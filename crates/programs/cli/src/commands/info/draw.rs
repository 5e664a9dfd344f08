//! The picture of a sampling pattern.

use anyhow::Result;
use ndarray::{Array2, Array3, ArrayD, Axis, Ix2, s};
use rayspin::core::Trajectory;
use rayspin::imaging::display::{ColourMap, evenly_spaced};
use rayspin::mri::scan::{Frame, Samples, readouts};

use super::file::Sampling;

/// Pixels along the longer side of a panel, about.
const SIDE: usize = 768;
/// Readouts that a picture shows, at most: more cover each other.
const SHOWN: usize = 4000;

const BACK: [u8; 3] = [18, 20, 26];
const AXIS: [u8; 3] = [52, 56, 66];
const MEASURED: [u8; 3] = [235, 238, 242];
const CALIBRATION: [u8; 3] = [246, 150, 60];

/// The picture `[row, column, 3]`, and what it shows.
pub(super) fn picture(sampling: &Sampling) -> Result<(Array3<u8>, String)> {
    match sampling {
        Sampling::Frame(frame) => match &frame.samples {
            Samples::Cartesian { sampled, .. } => grid(frame, sampled),
            Samples::NonCartesian { trajectory, .. } => Ok(path(trajectory)),
        },
        Sampling::Trajectory(trajectory) => Ok(path(trajectory)),
    }
}

/// The places of a grid: measured, for calibration alone, or neither.
fn grid(frame: &Frame, sampled: &ArrayD<bool>) -> Result<(Array3<u8>, String)> {
    let (image, axes) = plane(sampled)?;
    let own = frame.calibration.as_ref().map(|lines| plane(&lines.sampled)).transpose()?;
    let (rows, columns) = image.dim();
    let enlarge = (SIDE / rows.max(columns)).max(1);
    let colour = |y: usize, x: usize| match (image[[y, x]], &own) {
        (true, _) => MEASURED,
        (false, Some((own, _))) if own.get([y, x]) == Some(&true) => CALIBRATION,
        _ => BACK,
    };
    let picture = Array3::from_shape_fn((rows * enlarge, columns * enlarge, 3), |(y, x, channel)| {
        colour(y / enlarge, x / enlarge)[channel]
    });
    let orange = if own.is_some() { ", orange for calibration alone" } else { "" };
    Ok((picture, format!("measured places of the grid are white{orange}; {axes}")))
}

/// Two axes of a grid, and their names: the phase encodings of a volume whose readouts are sampled alike,
/// else the plane through the centre.
fn plane(sampled: &ArrayD<bool>) -> Result<(Array2<bool>, &'static str)> {
    if sampled.ndim() == 2 {
        return Ok((sampled.clone().into_dimensionality::<Ix2>()?, "kx to the right, ky down"));
    }
    let lines = sampled.map_axis(Axis(2), |line| line.iter().any(|&s| s)).into_dimensionality::<Ix2>()?;
    let row = sampled.rows().into_iter().find(|row| row.iter().any(|&s| s));
    let alike = |lane: ndarray::ArrayView1<'_, bool>| lane.iter().all(|&s| !s) || Some(lane) == row;
    if sampled.rows().into_iter().all(alike) {
        return Ok((lines, "readouts along kx, ky to the right, kz down"));
    }
    let centre = sampled.index_axis(Axis(0), sampled.shape()[0] / 2).to_owned();
    Ok((centre.into_dimensionality::<Ix2>()?, "the plane kz = 0, kx to the right, ky down"))
}

/// The readouts of a trajectory, from the first (dark) to the last (bright); a second panel shows kx and kz
/// of a volume.
fn path(trajectory: &Trajectory) -> (Array3<u8>, String) {
    let readouts = readouts(trajectory);
    let shown = evenly_spaced(readouts.len(), SHOWN);
    let reach = trajectory.extent().into_iter().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let panels = if trajectory.dims() > 2 { 2 } else { 1 };
    let mut picture = Array3::from_shape_fn((SIDE, panels * SIDE, 3), |(_, _, channel)| BACK[channel]);
    for panel in 0..panels {
        let mut canvas = Canvas { pixels: picture.slice_mut(s![.., panel * SIDE..(panel + 1) * SIDE, ..]) };
        canvas.cross();
        let place = |sample: usize| {
            let k = trajectory.point(sample);
            let pixel = |axis: usize| {
                let k = k.get(axis).copied().unwrap_or(0.0) / reach;
                (0.5 + 0.48 * k) * SIDE as f64
            };
            [pixel(0), pixel(1 + panel)]
        };
        for (index, &readout) in shown.iter().enumerate() {
            let order = index as f32 / (shown.len().max(2) - 1) as f32;
            let colour = ColourMap::Inferno.colour(0.35 + 0.65 * order);
            let samples = readouts[readout].clone();
            if samples.len() == 1 {
                canvas.dot(place(samples.start), colour);
            }
            for sample in samples.clone().skip(1) {
                canvas.line(place(sample - 1), place(sample), colour);
            }
        }
    }
    let some = match readouts.len() {
        count if count > shown.len() => format!("{} of {count} readouts", shown.len()),
        1 => "1 readout".into(),
        count => format!("{count} readouts"),
    };
    let axes = match panels {
        1 => "kx to the right, ky down",
        _ => "left kx to the right and ky down, right kx to the right and kz down",
    };
    (picture, format!("{some}, the first dark and the last bright; {axes}"))
}

/// A panel that lines are drawn on.
struct Canvas<'a> {
    pixels: ndarray::ArrayViewMut3<'a, u8>,
}

impl Canvas<'_> {
    /// Lines through the centre of k-space.
    fn cross(&mut self) {
        for pixel in 0..SIDE {
            for place in [[pixel, SIDE / 2], [SIDE / 2, pixel]] {
                for (channel, &level) in AXIS.iter().enumerate() {
                    self.pixels[[place[0], place[1], channel]] = level;
                }
            }
        }
    }

    /// Mixes a colour into the four pixels around a place.
    fn dot(&mut self, [x, y]: [f64; 2], colour: [u8; 3]) {
        let (x, y) = (x - 0.5, y - 0.5);
        for (dx, dy) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
            let (column, row) = (x.floor() + dx, y.floor() + dy);
            let inside = |coordinate: f64| coordinate >= 0.0 && coordinate < SIDE as f64;
            if !(inside(column) && inside(row)) {
                continue;
            }
            let weight = (1.0 - (x - column).abs()) * (1.0 - (y - row).abs());
            for (channel, &level) in colour.iter().enumerate() {
                let pixel = &mut self.pixels[[row as usize, column as usize, channel]];
                let mixed = f64::from(*pixel) + weight * (f64::from(level) - f64::from(*pixel));
                *pixel = mixed.round() as u8;
            }
        }
    }

    fn line(&mut self, from: [f64; 2], to: [f64; 2], colour: [u8; 3]) {
        let length = (to[0] - from[0]).hypot(to[1] - from[1]);
        let steps = (2.0 * length).ceil().max(1.0);
        for step in 0..=steps as usize {
            let part = step as f64 / steps;
            self.dot([0, 1].map(|axis| from[axis] + part * (to[axis] - from[axis])), colour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readouts_are_drawn_where_they_run() {
        // A spoke along x, then one along y.
        let points =
            Array2::from_shape_fn((64, 2), |(i, d)| if i / 32 == d { (i % 32) as f64 - 16.0 } else { 0.0 });
        let (picture, words) = path(&Trajectory::from_cycles_per_fov(points).unwrap());
        assert!(words.starts_with("2 readouts"), "{words}");
        let drawn = |row: usize, column: usize| {
            let pixel: Vec<u8> = picture.slice(s![row, column, ..]).to_vec();
            pixel != BACK && pixel != AXIS
        };
        assert!(drawn(SIDE / 2, SIDE / 8) && drawn(SIDE / 8, SIDE / 2));
        assert!(!drawn(SIDE / 8, SIDE / 8) && !drawn(SIDE / 2, SIDE - 2));
    }

    #[test]
    fn a_volume_shows_its_phase_encodings_or_its_central_plane() {
        let mut sampled = ArrayD::from_elem(ndarray::IxDyn(&[4, 6, 8]), false);
        sampled.slice_mut(s![.., 1, ..]).fill(true);
        let (lines, axes) = plane(&sampled).unwrap();
        assert_eq!((lines.dim(), lines.iter().filter(|&&s| s).count()), ((4, 6), 4));
        assert!(axes.starts_with("readouts"), "{axes}");
        sampled[[2, 3, 5]] = true;
        let (lines, axes) = plane(&sampled).unwrap();
        assert_eq!((lines.dim(), lines.iter().filter(|&&s| s).count()), ((6, 8), 9));
        assert!(axes.contains("kz = 0"), "{axes}");
    }
}
