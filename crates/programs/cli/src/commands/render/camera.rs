//! Where the volume is seen from.

use std::f64::consts::TAU;

use anyhow::Result;
use rayspin::core::vector::{cross, dot, norm, scaled};
use rayspin::kernels::render::{Camera, Lens};
use rayspin_shell::BadInput;

use super::volume::Volume;
use crate::args::render::{Render, ViewArg};
use rayspin_shell::args::numbers;

/// Pixels of a side, at most.
const MOST: usize = 16_384;

/// Rows and columns.
pub(super) fn size(args: &Render) -> Result<[usize; 2]> {
    let sizes = numbers::<usize>("--size", &args.size, &[1, 2])?;
    let shape = [sizes.get(1).copied().unwrap_or(sizes[0]), sizes[0]];
    if shape.iter().any(|side| !(1..=MOST).contains(side)) {
        let message = format!("`--size`: expected 1 to {MOST} pixels a side, found {}", args.size);
        return Err(BadInput::new(message).hint("`--size 512,384`").into());
    }
    Ok(shape)
}

/// The camera of each picture.
///
/// Errors: angles, lengths and numbers of views that make no sense.
pub(super) fn views(args: &Render, volume: &Volume, shape: [usize; 2]) -> Result<Views> {
    let [azimuth, elevation] = args.view.unwrap_or(ViewArg::Front).angles();
    let angle = |name: &str, given: Option<f64>, otherwise: f64, most: f64| -> Result<f64> {
        let angle = given.unwrap_or(otherwise);
        if angle.is_nan() || angle.abs() > most {
            let message = format!("`{name}`: expected at most {most}°, found {angle}°");
            return Err(BadInput::new(message).hint(format!("`{name} 30`")).into());
        }
        Ok(angle.to_radians())
    };
    let azimuth = angle("--azimuth", args.azimuth, azimuth, 36_000.0)?;
    let elevation = angle("--elevation", args.elevation, elevation, 90.0)?;
    let count = args.turntable.unwrap_or(1);
    if !(1..=3600).contains(&count) {
        let message = format!("`--turntable`: expected 1 to 3600 views, found {count}");
        return Err(BadInput::new(message).hint("`--turntable 36`").into());
    }
    let sides: Vec<Side> = (0..count)
        .map(|index| Side::new(volume, azimuth + index as f64 * TAU / count as f64, elevation))
        .collect();
    let frame = Frame::new(args, volume, &sides, shape)?;
    let eye = |side: &Side| scaled(side.towards, frame.distance);
    let cameras = sides.iter().map(|side| Camera::new(frame.lens, eye(side), [0.0; 3], side.above, shape));
    Ok(Views {
        cameras: cameras.collect::<rayspin::core::Result<_>>()?,
        pitch_mm: frame.width / shape[1] as f64,
    })
}

/// The cameras of all pictures.
pub(super) struct Views {
    pub(super) cameras: Vec<Camera>,
    /// The size of a pixel at the middle of the volume.
    pub(super) pitch_mm: f64,
}

/// A side of the patient, along the volume's axes.
struct Side {
    /// To the viewer.
    towards: [f64; 3],
    /// Upwards in the picture.
    above: [f64; 3],
}

impl Side {
    fn new(volume: &Volume, azimuth: f64, elevation: f64) -> Self {
        let (along, across, up) = (azimuth.sin_cos(), elevation.cos(), elevation.sin());
        // The patient's front is at −y, the left side at +x, the head at +z.
        let towards = [along.0 * across, -along.1 * across, up];
        let above = [-along.0 * up, along.1 * up, across];
        Self { towards: volume.along_axes(towards), above: volume.along_axes(above) }
    }

    /// How far a corner of the box is to the side, above or below, and towards the viewer.
    fn corner(&self, half: [f64; 3], corner: usize) -> [f64; 3] {
        let place =
            std::array::from_fn(|axis| if corner >> axis & 1 == 1 { half[axis] } else { -half[axis] });
        let right = cross(self.above, self.towards);
        [dot(place, right).abs(), dot(place, self.above).abs(), dot(place, self.towards)]
    }
}

/// What all pictures of a command have in common.
struct Frame {
    lens: Lens,
    /// Distance of the eye from the middle of the volume, mm.
    distance: f64,
    /// Width of the picture at the middle of the volume, mm.
    width: f64,
}

impl Frame {
    /// A frame that the volume's box fits from all sides, unless the user says otherwise.
    fn new(args: &Render, volume: &Volume, sides: &[Side], shape: [usize; 2]) -> Result<Self> {
        let wide = shape[1] as f64 / shape[0] as f64;
        let half = volume.grid.extent_mm().map(|length| 0.5 * length);
        let corners = || sides.iter().flat_map(|side| (0..8).map(|corner| side.corner(half, corner)));
        let most = |distance: &dyn Fn([f64; 3]) -> f64| corners().map(distance).fold(0.0, f64::max);
        let Some(degrees) = args.perspective else {
            let width = args.width.unwrap_or_else(|| 2.0 * most(&|[x, y, _]| x.max(y * wide)));
            return Ok(Self {
                lens: Lens::Orthographic { width_mm: width },
                distance: norm(half).max(1.0),
                width,
            });
        };
        let field_of_view = degrees.to_radians();
        let slope = (0.5 * field_of_view).tan();
        let distance = args.distance.unwrap_or_else(|| most(&|[x, y, z]| z + x.max(y * wide) / slope));
        if !(distance > 0.0 && distance.is_finite()) {
            let message = format!("`--distance`: expected a positive length in mm, found {distance}");
            let hint = "leave `--distance` out: the volume then fills the picture";
            return Err(BadInput::new(message).hint(hint).into());
        }
        Ok(Self { lens: Lens::Perspective { field_of_view }, distance, width: 2.0 * slope * distance })
    }
}
