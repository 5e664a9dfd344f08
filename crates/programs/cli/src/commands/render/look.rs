//! What a pixel is made of.

use std::path::Path;

use anyhow::{Context as _, Result};
use ndarray::aview1;
use rayon::prelude::*;
use rayspin::imaging::display::Window;
use rayspin::kernels::render::{Knot, Mode, Surface, Transfer, attenuation};
use rayspin_shell::BadInput;

use super::volume::Volume;
use crate::args::render::{ModeArg, PresetArg, Render};
use rayspin_shell::args::numbers;

/// How voxels become a mode's values.
#[derive(Clone, Copy)]
pub(super) enum Values {
    /// Attenuations from Hounsfield units.
    Attenuation,
    /// Hounsfield units from attenuations.
    Hounsfield,
}

impl Values {
    /// Changes a volume's numbers.
    pub(super) fn of(self, volume: &mut Volume) {
        let water = volume.water;
        volume.values.par_iter_mut().for_each(|value| match self {
            Self::Attenuation => *value = attenuation(*value, water),
            Self::Hounsfield => *value = 1000.0 * (*value / water - 1.0),
        });
    }
}

/// The mode of the picture, and how voxels become its values.
pub(super) struct Look {
    pub(super) mode: Mode,
    /// None where voxels have them.
    pub(super) values: Option<Values>,
}

impl Look {
    /// The message about a picture of `volume` on which nothing is seen. `None` in modes that draw every
    /// number.
    pub(super) fn unseen(&self, volume: &Volume) -> Option<Unseen> {
        let why = match &self.mode {
            Mode::Surface(surface) => format!("no ray meets the isosurface of {}", surface.value),
            Mode::Volume(_) => {
                "the preset or the transfer function leaves every value that is met transparent".into()
            }
            _ => return None,
        };
        let range = |a: (f32, f32), b: (f32, f32)| (a.0.min(b.0), a.1.max(b.1));
        let (low, high) = volume.values.par_iter().map(|&value| (value, value)).reduce_with(range)?;
        let unit = match (self.values, volume.hounsfield) {
            (Some(Values::Hounsfield), _) | (None, true) => " HU",
            _ => "",
        };
        let values = format!("the values of the volume go from {low} to {high}{unit}");
        Some(match &self.mode {
            Mode::Surface(surface) if surface.value <= low => Unseen::Filled(format!(
                "the picture shows the box of the volume alone: every value lies within the isosurface of {}; {values}",
                surface.value
            )),
            _ => Unseen::Empty(format!("the picture is empty: {why}; {values}")),
        })
    }
}

/// Why nothing of a volume is seen.
pub(super) enum Unseen {
    /// Where the background alone is seen.
    Empty(String),
    /// Whatever is seen.
    Filled(String),
}

/// The mode as users name it.
pub(super) fn name(mode: ModeArg) -> &'static str {
    match mode {
        ModeArg::Xray => "xray",
        ModeArg::Mip => "mip",
        ModeArg::Volume => "volume",
        ModeArg::Surface => "surface",
    }
}

/// `transfer` is the user's own transfer function.
///
/// Errors: a colour beyond 0 to 1; an isosurface without a finite value.
pub(super) fn of(args: &Render, volume: &Volume, transfer: Option<Transfer>) -> Result<Look> {
    Ok(match args.mode {
        ModeArg::Xray if volume.hounsfield => Look { mode: Mode::XRay, values: Some(Values::Attenuation) },
        ModeArg::Xray => Look { mode: Mode::XRay, values: None },
        ModeArg::Mip => {
            let missed = volume.values.par_iter().copied().reduce(|| f32::INFINITY, f32::min);
            Look { mode: Mode::Maximum { missed }, values: None }
        }
        ModeArg::Volume => match transfer {
            Some(transfer) => Look { mode: Mode::Volume(transfer), values: None },
            None => {
                let knots = preset(args.preset.unwrap_or(PresetArg::Bone));
                let values = (!volume.hounsfield).then_some(Values::Hounsfield);
                Look { mode: Mode::Volume(Transfer::new(knots)?), values }
            }
        },
        ModeArg::Surface => {
            let mut surface = Surface::of(match args.iso {
                Some(value) => value,
                None if volume.hounsfield => 300.0,
                None => 0.5 * high(volume)?,
            });
            if !surface.value.is_finite() {
                let message = format!("`--iso`: expected a finite value, found {}", surface.value);
                return Err(BadInput::new(message).hint("`--iso 300`").into());
            }
            if let Some(text) = &args.colour {
                surface.colour = colour("--colour", text)?;
            }
            Look { mode: Mode::Surface(surface), values: None }
        }
    })
}

/// The 99.5th percentile of at most a million voxels, evenly spread: a choice for a picture needs no more.
fn high(volume: &Volume) -> Result<f32> {
    let apart = volume.values.len().div_ceil(1 << 20).max(1);
    // No multiple of a row: else every sample would lie in the same columns.
    let apart = if apart > 1 { apart | 1 } else { 1 };
    let values: Vec<f32> = volume.values.iter().step_by(apart).copied().collect();
    Ok(Window::default().limits(aview1(&values))?.high)
}

/// Red, green and blue of an option.
pub(super) fn colour(option: &str, text: &str) -> Result<[f32; 3]> {
    let parts = numbers::<f32>(option, text, &[3])?;
    if parts.iter().any(|part| !(0.0..=1.0).contains(part)) {
        let message = format!("`{option}`: expected red, green and blue from 0 to 1, found {text}");
        return Err(BadInput::new(message).hint(format!("`{option} 0.9,0.8,0.7`")).into());
    }
    Ok([parts[0], parts[1], parts[2]])
}

fn preset(preset: PresetArg) -> Vec<Knot> {
    let knot = |value, colour, opacity| Knot { value, colour, opacity };
    match preset {
        PresetArg::Bone => vec![
            knot(150.0, [0.75, 0.55, 0.4], 0.0),
            knot(300.0, [0.85, 0.72, 0.58], 0.08),
            knot(700.0, [1.0, 0.95, 0.86], 0.5),
            knot(1500.0, [1.0, 1.0, 1.0], 1.0),
        ],
        PresetArg::Skin => vec![
            knot(-500.0, [0.85, 0.6, 0.5], 0.0),
            knot(-200.0, [0.9, 0.65, 0.55], 0.15),
            knot(-50.0, [0.85, 0.55, 0.45], 0.08),
            knot(80.0, [0.8, 0.4, 0.35], 0.1),
            knot(300.0, [0.95, 0.85, 0.75], 0.3),
            knot(1000.0, [1.0, 1.0, 0.95], 1.0),
        ],
        PresetArg::Lung => vec![
            knot(-950.0, [0.2, 0.3, 0.5], 0.0),
            knot(-850.0, [0.4, 0.55, 0.8], 0.004),
            knot(-600.0, [0.9, 0.6, 0.5], 0.02),
            knot(-400.0, [0.9, 0.7, 0.6], 0.0),
            knot(200.0, [1.0, 0.9, 0.8], 0.0),
            knot(600.0, [1.0, 1.0, 0.95], 0.1),
        ],
    }
}

/// Errors: a file that cannot be read; a line that does not hold five numbers; points that [`Transfer::new`]
/// refuses.
pub(super) fn read_transfer(path: &Path) -> Result<Transfer> {
    let text = rayspin::io::read_text(path)?;
    let mut knots = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let parts = line.split([',', ' ', '\t']).filter(|part| !part.is_empty()).map(str::parse::<f32>);
        let values: Option<Vec<f32>> = parts.map(Result::ok).collect();
        let Some(&[value, r, g, b, opacity]) = values.as_deref() else {
            let message = format!(
                "{}: line {}: expected a value, red, green, blue and opacity, found '{line}'",
                path.display(),
                number + 1
            );
            return Err(BadInput::new(message).hint("one point a line: 300 1.0 0.9 0.8 0.2").into());
        };
        knots.push(Knot { value, colour: [r, g, b], opacity });
    }
    Transfer::new(knots).with_context(|| path.display().to_string())
}
