use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::{Detector, ProjectionGeometry, RaySource, View};
use crate::vector::{add, scaled};
use crate::{Error, Result};

/// A source and a detector that turn together around z: a circle, a short scan or a helix.
///
/// A view at the angle θ has the unit vectors e₁ = (cos θ, sin θ, 0), e₂ = (−sin θ, cos θ, 0) and
/// e₃ = (0, 0, 1). Its height is h = `height_mm` + `advance_mm` (θ − θ_m)/2π, where θ_m is the mean of the
/// first and the last angle:
///
/// ```text
/// source   = −source_to_axis · e₂ + h e₃                      (a parallel beam runs along e₂)
/// detector = axis_to_detector · e₂ + offset_u e₁ + (h + offset_v) e₃
/// u = cos(tilt) e₁ + sin(tilt) e₃        v = −sin(tilt) e₁ + cos(tilt) e₃
/// ```
///
/// [`ProjectionGeometry::orbit`] makes its views.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Orbit {
    /// The angle θ of each view, radian.
    pub angles: Vec<f64>,
    /// Distance from the source to the axis of rotation, mm; none for a parallel beam.
    pub source_to_axis_mm: Option<f64>,
    /// Distance from the axis of rotation to the detector, mm.
    pub axis_to_detector_mm: f64,
    /// Shift of the detector along e₁ and e₃, mm. Half-fan scans shift it along e₁ by up to half its width.
    pub offset_mm: [f64; 2],
    /// Rotation of the detector in its own plane, radian.
    pub tilt: f64,
    /// Height of the orbit, mm.
    pub height_mm: f64,
    /// Height that a helix gains in a turn, mm.
    pub advance_mm: f64,
}

impl Default for Orbit {
    /// A parallel beam without views.
    fn default() -> Self {
        Self {
            angles: Vec::new(),
            source_to_axis_mm: None,
            axis_to_detector_mm: 0.0,
            offset_mm: [0.0; 2],
            tilt: 0.0,
            height_mm: 0.0,
            advance_mm: 0.0,
        }
    }
}

impl Orbit {
    /// Sets `views` angles, evenly over a full turn from 0.
    #[must_use]
    pub fn turn(self, views: usize) -> Self {
        self.arc(0.0, TAU, views)
    }

    /// Sets `views` angles, evenly from `start` over `span` (radian). The end of the span is the place of the
    /// view after the last.
    #[must_use]
    pub fn arc(mut self, start: f64, span: f64, views: usize) -> Self {
        self.angles = (0..views).map(|view| start + span * view as f64 / views as f64).collect();
        self
    }

    /// The angles that a short scan covers at least, for all points within `radius_mm` of the axis: π plus
    /// the full angle of their fan, radian; π for a parallel beam.
    ///
    /// Errors: a radius that reaches the source.
    pub fn short_scan(&self, radius_mm: f64) -> Result<f64> {
        let half_turn = TAU / 2.0;
        match self.source_to_axis_mm {
            None => Ok(half_turn),
            Some(distance) if radius_mm >= 0.0 && radius_mm < distance => {
                Ok(half_turn + 2.0 * (radius_mm / distance).asin())
            }
            Some(distance) => Err(Error::value(
                "radius",
                format!("less than {distance} mm, where the source is"),
                radius_mm,
            )),
        }
    }

    fn check(&self) -> Result<()> {
        let distances = [
            ("distance from the source to the axis", self.source_to_axis_mm.unwrap_or(1.0), false),
            ("distance from the axis to the detector", self.axis_to_detector_mm, true),
        ];
        for (what, distance, may_be_zero) in distances {
            if !distance.is_finite() || distance < 0.0 || (distance == 0.0 && !may_be_zero) {
                let expected =
                    if may_be_zero { "a length in mm, not negative" } else { "a positive length in mm" };
                return Err(Error::value(what, expected, distance));
            }
        }
        if let Some((index, angle)) = self.angles.iter().enumerate().find(|(_, angle)| !angle.is_finite()) {
            return Err(Error::NotFinite { what: "angles".into(), index, found: angle.to_string() });
        }
        Ok(())
    }

    fn view(&self, angle: f64, middle: f64) -> View {
        let ((sin, cos), (slant, upright)) = (angle.sin_cos(), self.tilt.sin_cos());
        let (across, along, up) = ([cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]);
        let height = self.height_mm + self.advance_mm * (angle - middle) / TAU;
        let [offset_u, offset_v] = self.offset_mm;
        let source = match self.source_to_axis_mm {
            None => RaySource::Direction(along),
            Some(distance) => RaySource::Point(add(scaled(along, -distance), scaled(up, height))),
        };
        let shift = add(scaled(across, offset_u), scaled(up, height + offset_v));
        View {
            source,
            detector_mm: add(scaled(along, self.axis_to_detector_mm), shift),
            u: add(scaled(across, upright), scaled(up, slant)),
            v: add(scaled(across, -slant), scaled(up, upright)),
        }
    }
}

impl ProjectionGeometry {
    /// The geometry of an orbit.
    ///
    /// Errors: distances that are negative; a source on the axis; else as [`ProjectionGeometry::new`].
    pub fn orbit(detector: Detector, orbit: &Orbit) -> Result<Self> {
        orbit.check()?;
        let ends = orbit.angles.first().zip(orbit.angles.last());
        let middle = ends.map_or(0.0, |(first, last)| 0.5 * (first + last));
        Self::new(detector, orbit.angles.iter().map(|&angle| orbit.view(angle, middle)).collect())
    }
}
