//! From image to picture: one real part, a window, 8-bit grey or colour, montages and enlargement.
//!
//! Pictures are `[row, column]` (grey) or `[row, column, 3]` (RGB). Rows run along y downwards and columns
//! along x to the right, as arrays are stored. Nothing is flipped or rotated.
//!
//! ```
//! use ndarray::Array3;
//! use rayspin_core::C32;
//! use rayspin_imaging::display::{Montage, Part, Window, montage, part, to_grey};
//!
//! let volume = Array3::from_shape_fn((6, 8, 10), |(z, y, x)| C32::new((z + y + x) as f32, 0.0));
//! let magnitude = part(volume.view(), Part::Magnitude);
//! let limits = Window::default().limits(magnitude.view())?;
//! let picture = montage(to_grey(magnitude.view(), limits).view(), &Montage::default())?;
//! assert_eq!(picture.dim(), (3 * 8, 2 * 10));
//! # Ok::<(), rayspin_core::Error>(())
//! ```

mod colour;
mod layout;
mod window;

use ndarray::{Array, ArrayView, Dimension};
use rayspin_core::{C32, Result, expect_shape};
use serde::{Deserialize, Serialize};

pub use colour::{ColourMap, to_colour};
pub use layout::{
    Montage, evenly_spaced, montage, montage_filled, resample, square_pixels, upscale_bilinear,
    upscale_nearest,
};
pub use window::{Limits, Window, to_grey};

use crate::metrics::Sample;

/// The real number of a complex voxel that a picture shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// |v|.
    #[default]
    Magnitude,
    /// arg v, −π … π.
    Phase,
    /// Re v.
    Real,
    /// Im v.
    Imaginary,
}

/// One real part of a complex image, the same shape.
pub fn part<D: Dimension>(image: ArrayView<'_, C32, D>, part: Part) -> Array<f32, D> {
    match part {
        Part::Magnitude => image.mapv(|v| v.norm()),
        Part::Phase => image.mapv(|v| v.arg()),
        Part::Real => image.mapv(|v| v.re),
        Part::Imaginary => image.mapv(|v| v.im),
    }
}

/// |αI − I₀| voxel by voxel, with α as [`compare`](crate::compare) fitted it ([`Quality::scale`](crate::Quality::scale)). Where
/// magnitudes were compared, I and I₀ are magnitudes.
///
/// Errors: shapes that differ.
pub fn error_map<T: Sample, U: Sample, D: Dimension>(
    image: ArrayView<'_, T, D>,
    reference: ArrayView<'_, U, D>,
    scale: [f64; 2],
) -> Result<Array<f32, D>> {
    expect_shape("image compared with the reference", reference.shape(), image.shape())?;
    let scale = rayspin_core::C64::new(scale[0], scale[1]);
    Ok(ndarray::Zip::from(image)
        .and(reference)
        .map_collect(|i, r| (i.to_c64() * scale - r.to_c64()).norm() as f32))
}
