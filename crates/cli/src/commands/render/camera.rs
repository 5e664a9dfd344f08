//! Where the volume is seen from.

use std::f64::consts::TAU;

use anyhow::Result;
use rayspin::core::vector::{norm, scaled};
use rayspin::kernels::render::{Camera, Lens};
use rayspin_shell::BadInput;

use super::volume::Volume;
use crate::args::numbers;
use crate::args::render::{Render, ViewArg};

/// Pixels of a side, at most.
const MOST: usize = 16_384;

/// Rows and columns.
pub(super) fn size(args: &Render) -> Result<[usize; 2]> {
    let sizes = numbers::<usize>("--size", &args.size, &[1, 2])?;
    let shape = [sizes.get(1).copied().unwrap_or(sizes[0]), sizes[0]];
    if shape.iter().any(|side| !(1..=MOST).contains(side)) {
        let message = format!("--size: expected 1 to {MOST} pixels a side, found {}", args.size);
        return Err(BadInput::new(message).into());
    }
    Ok(shape)
}

/// The camera of each picture.
pub(super) fn views(args: &Render, volume: &Volume, shape: [usize; 2]) -> Result<Vec<Camera>> {
    let [azimuth, elevation] = args.view.unwrap_or(ViewArg::Front).angles();
    let angle = |name: &str, given: Option<f64>, otherwise: f64, most: f64| -> Result<f64> {
        let angle = given.unwrap_or(otherwise);
        if angle.is_nan() || angle.abs() > most {
            let message = format!("{name}: expected at most {most}°, found {angle}°");
            return Err(BadInput::new(message).into());
        }
        Ok(angle.to_radians())
    };
    let azimuth = angle("--azimuth", args.azimuth, azimuth, 36_000.0)?;
    let elevation = angle("--elevation", args.elevation, elevation, 90.0)?;
    let count = args.turntable.unwrap_or(1);
    if !(1..=3600).contains(&count) {
        return Err(BadInput::new(format!("--turntable: expected 1 to 3600 views, found {count}")).into());
    }
    (0..count)
        .map(|at| view(args, volume, shape, azimuth + at as f64 * TAU / count as f64, elevation))
        .collect()
}

/// The ball around the volume fits the shorter side of the picture.
fn radius(volume: &Volume) -> f64 {
    0.5 * norm(volume.grid.extent_mm())
}

/// The picture's width in its shorter sides.
fn narrow([rows, columns]: [usize; 2]) -> f64 {
    columns as f64 / rows.min(columns) as f64
}

/// The size of a pixel in mm; of a perspective at the middle of the volume.
pub(super) fn pitch_mm(args: &Render, volume: &Volume, shape: [usize; 2]) -> f64 {
    let fitting = 2.0 * radius(volume) * narrow(shape);
    let width = match args.perspective {
        None => args.width.unwrap_or(fitting),
        Some(degrees) => {
            let half = (0.5 * degrees.to_radians()).tan();
            2.0 * half * distance(args, volume, shape, degrees)
        }
    };
    width / shape[1] as f64
}

/// The distance of the eye from the middle of the volume.
fn distance(args: &Render, volume: &Volume, shape: [usize; 2], degrees: f64) -> f64 {
    // The half angle of the shorter side.
    let half = ((0.5 * degrees.to_radians()).tan() / narrow(shape)).atan();
    args.distance.unwrap_or(radius(volume) / half.sin().max(1e-6))
}

fn view(args: &Render, volume: &Volume, shape: [usize; 2], azimuth: f64, elevation: f64) -> Result<Camera> {
    let (along, across, up) = (azimuth.sin_cos(), elevation.cos(), elevation.sin());
    // The patient's front is at −y, the left side at +x, the head at +z.
    let towards = [along.0 * across, -along.1 * across, up];
    let above = [-along.0 * up, along.1 * up, across];
    let [towards, above] = [towards, above].map(|direction| volume.along_axes(direction));
    let (radius, narrow) = (radius(volume), narrow(shape));
    let (lens, distance) = match args.perspective {
        None => {
            let width = args.width.unwrap_or(2.0 * radius * narrow);
            (Lens::Orthographic { width_mm: width }, radius.max(1.0))
        }
        Some(degrees) => {
            let field_of_view = degrees.to_radians();
            let distance = distance(args, volume, shape, degrees);
            if !(distance > 0.0 && distance.is_finite()) {
                let message = format!("--distance: expected a positive length in mm, found {distance}");
                return Err(BadInput::new(message).into());
            }
            (Lens::Perspective { field_of_view }, distance)
        }
    };
    Ok(Camera::new(lens, scaled(towards, distance), [0.0; 3], above, shape)?)
}
