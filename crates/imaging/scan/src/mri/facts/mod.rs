//! Facts about a scan that are known before it is reconstructed: sampling pattern, undersampling, calibration
//! region, noise.

mod edge;
mod grid;
mod noise;
mod path;
mod region;

use rayspin_core::{Result, Trajectory};
use serde::Serialize;

pub use noise::{NoiseLevel, NoiseSource};
pub use path::{reach, readouts};

use super::{Frame, Samples};
use crate::mri::corrections::Noise;

/// How the samples of an image fill k-space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// A grid without gaps; with partial Fourier one side of it.
    Full,
    /// Every R-th line of a grid along one or two axes, with or without a full centre.
    Regular,
    /// A grid with irregular gaps, as many near the centre as far from it.
    Random,
    /// A grid with irregular gaps, fewer near the centre.
    VariableDensity,
    /// Straight readouts through the centre, in two or three dimensions.
    Radial,
    /// Radial in the plane, Cartesian along z.
    StackOfStars,
    /// Readouts that wind around the centre.
    Spiral,
    /// Spirals in the plane, Cartesian along z.
    StackOfSpirals,
    /// Parallel straight readouts with a trajectory, as of echo-planar imaging.
    Lines,
    /// Points in no order.
    Scattered,
    /// A trajectory of another kind.
    Other,
}

impl Pattern {
    /// The pattern of a trajectory in any unit.
    pub fn of(trajectory: &Trajectory) -> Self {
        path::pattern(trajectory, &readouts(trajectory))
    }

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full grid",
            Self::Regular => "regular undersampling",
            Self::Random => "random undersampling",
            Self::VariableDensity => "variable-density undersampling",
            Self::Radial => "radial",
            Self::StackOfStars => "stack of stars",
            Self::Spiral => "spiral",
            Self::StackOfSpirals => "stack of spirals",
            Self::Lines => "parallel lines with a trajectory",
            Self::Scattered => "scattered points",
            Self::Other => "other trajectory",
        }
    }
}

/// Facts about the samples of an image, and about the scan that it belongs to. Lists have one entry for each
/// axis of the matrix, in the order x, y, z.
///
/// **Undersampling** is the number of places that full sampling needs over the number of places that were
/// measured.
/// - On a grid the places are the smallest box around the centre of k-space that holds all samples. Zero
///   filling beyond this box does not count; the side that partial Fourier leaves out does, and so do corners
///   that an elliptical pattern leaves out.
/// - Along a trajectory the places are the unit cells (1 cycle per field of view along each axis) of the box,
///   cylinder or ellipsoid that it spans. A sample measures min(1, its distance from the sample before)
///   cells, and blocks of 8 cells along each axis count as measured once at most. So R of 64 spokes or of one
///   interleaf of two is about the ratio of cells to samples at Nyquist's distance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// Whether samples lie on a grid; else they have a trajectory.
    pub on_grid: bool,
    /// Voxels of the image.
    pub matrix: Vec<usize>,
    /// Receive coils.
    pub coils: usize,
    /// Images of the run, of all slices and repetitions.
    pub images: usize,
    /// Images of this image's slice, one behind the other in time, where their samples lie at other places
    /// from one image to the next ([`Facts::in_series`]); else 1.
    #[serde(skip)]
    pub series: usize,
    /// Coefficients of a temporal basis that the series is encoded over ([`Facts::over`]); none of images.
    #[serde(skip)]
    pub coefficients: Option<usize>,
    /// Readouts of this image: lines of a grid, or pieces of a trajectory.
    pub readouts: usize,
    /// Samples of a coil.
    pub samples: usize,
    /// How they fill k-space.
    pub pattern: Pattern,
    /// Places of full sampling over places measured; 1 is full sampling.
    pub undersampling: f64,
    /// R along each axis of a grid whose every R-th place was measured, beside the calibration region; none
    /// along an axis with irregular gaps, and along a trajectory.
    pub steps: Vec<Option<usize>>,
    /// Width of the fully sampled centre along each axis, in places of the grid or in cycles per field of
    /// view; 0 without one.
    pub calibration: Vec<usize>,
    /// Whether the calibration region comes from readouts of its own.
    pub calibration_apart: bool,
    /// The covered part of k-space along each axis: 1 where it reaches equally far on both sides of the
    /// centre, less with partial Fourier.
    pub coverage: Vec<f64>,
    /// Samples of noise readouts, of one coil; 0 where there is no usable noise scan.
    pub noise_samples: usize,
    /// How strong noise is; none where it cannot be known.
    pub noise: Option<NoiseLevel>,
}

impl Facts {
    /// The facts about a frame and the noise readouts of its scan
    /// ([`measure`](crate::mri::corrections::measure)); `images` counts the images of the run. It reads every
    /// sample once, on the pool of threads that it finds itself in.
    ///
    /// Errors: memory.
    ///
    /// ```
    /// use rayspin_core::{C32, Geometry};
    /// use rayspin_scan::mri::{Facts, Frame, Pattern};
    ///
    /// // Every third line of 48, and 9 lines around the centre.
    /// let measured = |y: usize| y % 3 == 0 || (20..29).contains(&y);
    /// let kspace = ndarray::Array3::from_shape_fn((4, 48, 64), |(_, y, _)| C32::new(f32::from(measured(y)), 0.0));
    /// let frame = Frame::from_grid(kspace.into_dyn(), Geometry::default())?;
    /// let facts = Facts::of(&frame, None, 1)?;
    /// assert_eq!((facts.pattern, facts.coils), (Pattern::Regular, 4));
    /// assert_eq!(facts.steps, [Some(1), Some(3)]);
    /// assert_eq!(facts.calibration, [64, 9]);
    /// assert!((facts.undersampling - 48.0 / 22.0).abs() < 1e-9);
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn of(frame: &Frame, noise: Option<&Noise>, images: usize) -> Result<Self> {
        let sampling = match &frame.samples {
            Samples::Cartesian { sampled, .. } => {
                grid::of(sampled, frame.calibration.as_ref(), &frame.matrix)
            }
            Samples::NonCartesian { trajectory, .. } => path::of(trajectory, &frame.matrix)?,
        };
        let along = if frame.interpolated { &edge::Readouts::None } else { &sampling.along };
        let measured = match noise {
            Some(Noise::Measured(measured)) if measured.covariance.nrows() == frame.coils() => Some(measured),
            _ => None,
        };
        Ok(Self {
            on_grid: matches!(frame.samples, Samples::Cartesian { .. }),
            matrix: frame.matrix.iter().rev().copied().collect(),
            coils: frame.coils(),
            images,
            series: 1,
            coefficients: None,
            readouts: sampling.readouts,
            samples: sampling.samples,
            pattern: sampling.pattern,
            undersampling: sampling.undersampling,
            steps: sampling.steps,
            calibration: sampling.calibration,
            calibration_apart: frame.calibration.is_some(),
            coverage: sampling.coverage,
            noise_samples: measured.map_or(0, |measured| measured.samples),
            noise: noise::level(&frame.samples, &sampling.region, &sampling.counts, along, measured)?,
        })
    }

    /// The facts about the first of `repetitions` images of a slice, if the second was sampled at other
    /// places.
    ///
    /// ```
    /// use rayspin_core::{C32, Geometry};
    /// use rayspin_scan::mri::{Facts, Frame};
    ///
    /// let lines = |first: usize| {
    ///     let measured = |y: usize| (y + first) % 4 == 0;
    ///     let kspace = ndarray::Array3::from_shape_fn((2, 32, 32), |(_, y, _)| C32::from(f32::from(measured(y))));
    ///     Frame::from_grid(kspace.into_dyn(), Geometry::default())
    /// };
    /// let [first, second] = [lines(0)?, lines(1)?];
    /// let facts = Facts::of(&first, None, 20)?;
    /// assert_eq!(facts.clone().in_series(20, &first, &second).series, 20);
    /// assert_eq!(facts.in_series(20, &first, &first).series, 1);
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    #[must_use]
    pub fn in_series(self, repetitions: usize, first: &Frame, second: &Frame) -> Self {
        Self { series: if sampled_apart(first, second) { repetitions } else { 1 }, ..self }
    }

    /// The facts about a series of `frames` images that are sampled as this one, encoded over a temporal
    /// basis of `coefficients`: the samples of F images tell k coefficients, and frames on a grid are taken
    /// as points.
    ///
    /// ```
    /// use rayspin_core::{C32, Geometry};
    /// use rayspin_scan::mri::{Facts, Frame};
    ///
    /// let measured = |y: usize| y % 4 == 0;
    /// let kspace = ndarray::Array3::from_shape_fn((2, 32, 32), |(_, y, _)| C32::from(f32::from(measured(y))));
    /// let facts = Facts::of(&Frame::from_grid(kspace.into_dyn(), Geometry::default())?, None, 12)?;
    /// let over = facts.clone().over(12, 4);
    /// assert!((over.undersampling - facts.undersampling * 4.0 / 12.0).abs() < 1e-12);
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    #[must_use]
    pub fn over(self, frames: usize, coefficients: usize) -> Self {
        Self {
            on_grid: false,
            series: 1,
            coefficients: Some(coefficients),
            readouts: self.readouts * frames,
            samples: self.samples * frames,
            undersampling: (self.undersampling * coefficients as f64 / frames as f64).max(1.0),
            ..self
        }
    }

    /// Whether one side of k-space was left out along an axis.
    pub fn is_partial(&self) -> bool {
        self.coverage.iter().any(|&part| part < 1.0)
    }
}

/// The part of the samples that lie elsewhere, from which on two images are sampled apart, and how far from
/// its place in cycles per field of view a sample of a trajectory then is.
const ELSEWHERE: (f64, f64) = (0.1, 0.25);

/// Whether two frames of one slice were sampled at different places.
fn sampled_apart(first: &Frame, second: &Frame) -> bool {
    let (part, far) = ELSEWHERE;
    match (&first.samples, &second.samples) {
        (Samples::Cartesian { sampled: one, .. }, Samples::Cartesian { sampled: other, .. }) => {
            let count =
                |sampled: &ndarray::ArrayD<bool>| sampled.iter().filter(|measured| **measured).count();
            let moved = one.iter().zip(other).filter(|(one, other)| **other && !**one).count();
            one.shape() != other.shape() || moved as f64 >= part * count(other) as f64
        }
        (Samples::NonCartesian { trajectory: one, .. }, Samples::NonCartesian { trajectory: other, .. }) => {
            let distance = |sample: usize| {
                let places = one.point(sample).iter().zip(other.point(sample)).map(|(a, b)| a - b);
                places.fold(0.0f64, |far, apart| far.max(apart.abs()))
            };
            let moved = || (0..one.samples()).filter(|&sample| distance(sample) > far).count();
            one.samples() != other.samples() || moved() as f64 >= part * one.samples() as f64
        }
        _ => true,
    }
}

/// What the places of the samples say; lists in the order x, y, z.
struct Found {
    readouts: usize,
    samples: usize,
    pattern: Pattern,
    undersampling: f64,
    steps: Vec<Option<usize>>,
    calibration: Vec<usize>,
    coverage: Vec<f64>,
    region: region::Region,
    /// The number of cells of the region at each rounded distance from the centre.
    counts: Vec<f64>,
    along: edge::Readouts,
}

/// A side that reaches less far than the other by this part of both is no rounding of the centre.
const UNEVEN: f64 = 1.0 / 32.0;

/// The part of 2·max(left, right) places that reach `left` and `right` of the centre; 1 where they are about
/// alike. `gap` is the distance of neighbouring places.
fn covered(left: f64, right: f64, gap: f64) -> f64 {
    let whole = 2.0 * left.max(right);
    if (left - right).abs() > (whole * UNEVEN).max(gap) { (left + right) / whole } else { 1.0 }
}
