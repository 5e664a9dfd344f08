//! A CT scan as it was measured, and the line integrals in it.

mod angles;
pub mod geometry;
mod lines;
mod part;

pub use angles::{angle_notes, turns_of_degrees, view_angles};
pub use lines::Light;
use ndarray::Array3;
pub use part::Part;
use rayspin_core::{Error, ProjectionGeometry, Result};

/// What a detector measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// Line integrals of the attenuation, without a unit.
    Lines(Array3<f32>),
    /// Counts of photons, or numbers that are proportional to them.
    Counts(Counts),
}

/// Counts with the object in the beam, and what the detector counts without it and without the beam.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// With the object, `[view, row, column]`.
    pub views: Array3<f32>,
    /// Without the object (flat fields), `[frame, row, column]`.
    pub flats: Array3<f32>,
    /// Without the beam (dark fields), `[frame, row, column]`; without frames they are taken as 0.
    pub darks: Array3<f32>,
}

/// A CT scan.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    /// What the detector measured.
    pub measured: Measured,
    /// The angle of each view, radian.
    pub angles: Vec<f64>,
    /// The rays; none where the file does not tell them.
    pub geometry: Option<ProjectionGeometry>,
    /// The size of a pixel, where it is known beside or without the rays.
    pub pixel: Option<PixelSize>,
}

/// The size of a detector's pixel, as a file states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelSize {
    /// Along columns and rows, mm.
    pub mm: [f64; 2],
    /// Whether it is the size at the axis of rotation; else on the detector. For parallel rays both are the
    /// same.
    pub at_object: bool,
}

impl Scan {
    /// A scan, checked.
    ///
    /// Errors: no views, rows or columns; another number of angles than views; flat or dark fields of another
    /// size, or no flat field; a geometry of another shape; angles that are not finite.
    pub fn new(measured: Measured, angles: Vec<f64>, geometry: Option<ProjectionGeometry>) -> Result<Self> {
        let scan = Self { measured, angles, geometry, pixel: None };
        let shape = scan.shape();
        if shape.contains(&0) {
            return Err(Error::value(
                "projections",
                "at least one view, row and column",
                format!("shape {shape:?}"),
            ));
        }
        if scan.angles.len() != shape[0] {
            return Err(Error::value(
                "angles",
                format!("one for each of {} views", shape[0]),
                scan.angles.len(),
            ));
        }
        if let Some((index, angle)) = scan.angles.iter().enumerate().find(|(_, angle)| !angle.is_finite()) {
            return Err(Error::NotFinite { what: "angles".into(), index, found: angle.to_string() });
        }
        if let Some(geometry) = &scan.geometry {
            rayspin_core::expect_shape("projections", &geometry.shape(), &shape)?;
        }
        if let Measured::Counts(Counts { flats, darks, .. }) = &scan.measured {
            let frames = |what: &str, frames: &Array3<f32>| {
                rayspin_core::expect_shape(what, &shape[1..], &frames.shape()[1..])
            };
            frames("flat fields", flats)?;
            if !darks.is_empty() {
                frames("dark fields", darks)?;
            }
            if flats.is_empty() {
                return Err(Error::value("flat fields", "at least one", "none"));
            }
        }
        Ok(scan)
    }

    /// The shape of the projections, `[view, row, column]`.
    pub fn shape(&self) -> [usize; 3] {
        let (views, rows, columns) = match &self.measured {
            Measured::Lines(lines) => lines.dim(),
            Measured::Counts(counts) => counts.views.dim(),
        };
        [views, rows, columns]
    }
}

#[cfg(test)]
mod tests;
