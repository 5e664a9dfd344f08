//! The kinds of encodings: each a file that opens with its equation, and a row of [`ENCODINGS`].
//!
//! An encoding is two values. Its [`EncodingSpec`] knows a frame before anything is allocated: shapes, the
//! steps that plan the encoding, and the memory and work of everything that a run does with it. Its
//! [`Encoding`] holds the plans, which later frames use again, and has the adjoint, the normal operator and
//! the certificates. A run and its methods ask these two and nothing else.
//!
//! Adding an encoding is one file with both, and one row. What is encoded by a NUFFT of points with products
//! before and after it, as an inhomogeneous field and a temporal subspace are, needs less: a
//! [`Modulation`](points::Modulation) of [`Points`](points::Points), which has all else. Every row brings
//! small examples with their matrices, and the tests of this module check on them what holds for every
//! encoding.

mod grid;
mod in_field;
mod points;
mod subspace;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use rayspin_core::{C32, Error, Result};
use rayspin_device::Array;
use rayspin_linop::{CoilMaps, LinearOp, SoftSense};
use rayspin_run::{Bytes, Certify, Cost, Effort, Step};

use super::samples::CoilSamples;
use super::solving::Solving;
use super::spec::Inputs;
use super::{Certificate, Extent, Settings, Spec};
use crate::prepare::Mixing;
use crate::scan::Frame;

pub use grid::FFT_TOLERANCE;
pub(crate) use grid::Grid;
pub(super) use grid::{places, values_at};
pub(crate) use in_field::range_of;
pub(super) use points::{Modulated, Plans};

/// The kinds, each asked in turn whether a frame is its own.
static ENCODINGS: [Row; 4] = [subspace::ROW, in_field::ROW, grid::ROW, points::ROW];

/// A kind of encoding.
pub(crate) struct Row {
    /// Whether it encodes frames with these settings that lie on a grid, or else on a trajectory.
    encodes: fn(on_grid: bool, &Settings<'_>) -> bool,
    /// Whether methods of a grid take it. Other encodings are for methods of a trajectory.
    pub(crate) on_grid: bool,
    /// Where a method stands that it does not suit, for the error: "with a field map".
    pub(crate) place: &'static str,
    /// Its specification. Errors: what the frame lacks.
    pub(super) spec: for<'a> fn(&Given<'a>) -> Result<Box<dyn EncodingSpec + 'a>>,
    /// What batches may cut of it, besides coils.
    pub(crate) extent: fn(&Frame, &Settings<'_>) -> Extent,
    /// Small encodings and their matrices.
    #[cfg(test)]
    examples: fn(&mut tests::Draw) -> Vec<tests::Example>,
}

/// What a specification is made from.
pub(crate) struct Given<'a> {
    pub(super) inputs: &'a Inputs<'a>,
    pub(super) settings: Settings<'a>,
    /// Lowest and highest frequency of the fields of all frames.
    pub(super) field_range: Option<[f64; 2]>,
}

/// The row of frames that lie on a grid, or else on a trajectory, with these settings.
pub(crate) fn row_of(on_grid: bool, settings: &Settings<'_>) -> &'static Row {
    ENCODINGS.iter().find(|row| (row.encodes)(on_grid, settings)).unwrap_or(&points::ROW)
}

/// What samples d are multiplied by, F ρ = s d, and when.
pub(crate) enum Scale {
    /// When they come to the device.
    Arriving(f64),
    /// When they are transformed: methods see them as they were measured.
    Transformed(f64),
}

/// What an image passes before F.
pub(crate) enum Seen {
    /// Nothing: FᴴF.
    Alone,
    /// Coils: Σ_j c̄_j FᴴF c_j.
    Coils(CoilMaps<f32>),
    /// Coils with several sets of maps, each with an image of its own.
    Sets(Arc<SoftSense<f32>>),
}

/// An encoding before anything is allocated.
pub(crate) trait EncodingSpec {
    /// The shape of one image that is solved for: the grid, which may be larger than the image's matrix, or
    /// the matrix.
    fn domain(&self) -> &[usize];

    /// Samples of a coil.
    fn samples(&self) -> u64;

    /// The number of coefficient images, `[coefficient, image…]`, that together make the images of all
    /// frames; none where each frame is an image.
    fn coefficients(&self) -> Option<usize> {
        None
    }

    /// The grid, where F is its FFT, for methods that take nothing else.
    fn grid(&self) -> Option<Grid<'_>> {
        None
    }

    /// s of F ρ = s d for an image with this number of voxels.
    fn scale(&self, voxels: f64) -> Scale;

    /// Bytes of the frame itself, on the host.
    fn frame_bytes(&self, spec: &Spec<'_>) -> u64;

    /// The encoding without plans.
    fn unplanned(&self) -> Box<dyn Encoding>;

    /// The encoding of a frame before, if its plans do for this one.
    fn reuse(&self, spec: &Spec<'_>, before: Box<dyn Encoding>) -> Result<Option<Box<dyn Encoding>>>;

    /// The steps that bring samples to the device and make plans.
    fn planning<'s>(&'s self, spec: &'s Spec<'s>) -> Vec<Step<'s, Solving<'s>>>;

    /// Whether maps are estimated while it is planned.
    fn estimates_maps_first(&self) -> bool {
        false
    }

    /// What [`Encoding::estimate_maps`] takes.
    fn maps(&self, spec: &Spec<'_>) -> Result<Cost>;

    /// What the right-hand side takes, after which the samples are gone.
    fn right_hand_side(&self, spec: &Spec<'_>) -> Result<Cost>;

    /// Bytes that the normal operator works in, held from its first application on.
    fn normal_bytes(&self, spec: &Spec<'_>) -> Result<u64>;

    /// The work of `count` applications of FᴴF.
    fn normal_effort(&self, spec: &Spec<'_>, count: u64) -> Result<Effort>;

    /// What a normal operator holds of a frame whose plans are gone.
    fn kept_by_normal(&self, _: &Spec<'_>) -> Result<Bytes> {
        Ok(Bytes::default())
    }

    /// What the coils' images before they are solved for take, for a method that goes coil by coil.
    fn coil_images(&self, spec: &Spec<'_>) -> Result<Cost>;

    /// What gridding takes. Errors: samples without weights of density.
    fn gridding(&self, _: &Spec<'_>) -> Result<Cost> {
        Err(unweighted())
    }
}

/// An encoding with its plans, which outlive a frame.
pub(crate) trait Encoding: Any {
    /// Fᴴ of samples `[coil, …]`: `[coil, image…]`.
    fn adjoint(&mut self, spec: &Spec<'_>, samples: Array<C32>) -> Result<Array<C32>>;

    /// Adds Σ_j c̄_j Fᴴ d_j of the samples `[coil, …]` of some coils to `sum`.
    fn combine(
        &mut self,
        spec: &Spec<'_>,
        samples: Array<C32>,
        maps: &CoilMaps<f32>,
        coils: Range<usize>,
        sum: &mut Array<C32>,
    ) -> Result<()> {
        let images = self.adjoint(spec, samples)?;
        maps.combine_add(coils, &images, sum)
    }

    /// FᴴF, or EᴴE where coils see the image, in its fastest form.
    fn normal(&self, spec: &Spec<'_>, seen: Seen) -> Result<Arc<dyn LinearOp<C32>>>;

    /// Random outputs of its transforms of these samples against the exact sums.
    fn certify(
        &self,
        spec: &Spec<'_>,
        certify: &Certify,
        samples: &CoilSamples<'_>,
    ) -> Result<Vec<Certificate>>;

    /// Sensitivity maps from the samples, and what a run says of them.
    fn estimate_maps(
        &self,
        spec: &Spec<'_>,
        samples: &CoilSamples<'_>,
        mixing: Option<&Mixing>,
    ) -> Result<(CoilMaps<f32>, String)>;

    /// Weights of the samples by their density. Errors: a method that does not use them.
    fn density(&self) -> Result<&Array<f32>> {
        Err(unweighted())
    }

    /// What a run says of its plans.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// The encoding without its plans, where something else of it holds for later frames.
    fn give_back(self: Box<Self>) -> Option<Box<dyn Encoding>> {
        None
    }
}

/// An encoding as the kind that it is.
pub(super) fn as_kind<E: Encoding>(encoding: Box<dyn Encoding>) -> Option<Box<E>> {
    let any: Box<dyn Any> = encoding;
    any.downcast().ok()
}

fn unweighted() -> Error {
    Error::value("samples", "a trajectory", "a grid")
}
