//! Slices of an image on their way into a file.

use ndarray::{ArrayD, ArrayViewD, CowArray, IxDyn};
use rayon::prelude::*;
use rayspin_core::{C32, Geometry, Image};

use crate::Values;

/// Slices `[z, y, x]` of an image of real or of complex numbers.
#[derive(Debug, Clone)]
pub enum Slices<'a> {
    /// Real numbers.
    Real(ArrayViewD<'a, f32>),
    /// Complex numbers.
    Complex(ArrayViewD<'a, C32>),
}

impl<'a> From<ArrayViewD<'a, f32>> for Slices<'a> {
    fn from(slices: ArrayViewD<'a, f32>) -> Self {
        Self::Real(slices)
    }
}

impl<'a> From<ArrayViewD<'a, C32>> for Slices<'a> {
    fn from(slices: ArrayViewD<'a, C32>) -> Self {
        Self::Complex(slices)
    }
}

/// A number of an image: `f32` or `C32`.
pub trait Pixel: Clone + Into<C32> {
    /// An array of these numbers as [`Slices`].
    fn slices(array: ArrayViewD<'_, Self>) -> Slices<'_>;
}

impl Pixel for f32 {
    fn slices(array: ArrayViewD<'_, Self>) -> Slices<'_> {
        Slices::Real(array)
    }
}

impl Pixel for C32 {
    fn slices(array: ArrayViewD<'_, Self>) -> Slices<'_> {
        Slices::Complex(array)
    }
}

impl<'a> Slices<'a> {
    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            Self::Real(slices) => slices.shape(),
            Self::Complex(slices) => slices.shape(),
        }
    }

    /// One after another, `[y, x]`.
    pub(crate) fn planes(&self) -> Box<dyn Iterator<Item = Slices<'_>> + '_> {
        match self {
            Self::Real(slices) => Box::new(slices.outer_iter().map(Slices::Real)),
            Self::Complex(slices) => Box::new(slices.outer_iter().map(Slices::Complex)),
        }
    }

    /// As complex numbers; real ones are copied.
    pub(crate) fn complex(&self) -> CowArray<'_, C32, IxDyn> {
        match self {
            Self::Real(slices) => slices.mapv(Into::into).into(),
            Self::Complex(slices) => slices.view().into(),
        }
    }

    /// The one real number of each that `values` names; the real part for [`Values::Complex`].
    pub(crate) fn stored(&self, values: Values) -> ArrayD<f32> {
        match self {
            Self::Real(slices) => slices.mapv(|value| values.of(value.into()).re),
            Self::Complex(slices) => slices.mapv(|value| values.of(value).re),
        }
    }

    /// Whether `values` tell less than the numbers.
    pub(crate) fn lose(&self, values: Values) -> bool {
        match (self, values) {
            // Who writes phases has chosen to.
            (_, Values::Complex | Values::Phase) | (Self::Real(_), Values::Real) => false,
            (Self::Real(slices), Values::Magnitude) => slices.iter().any(|value| *value < 0.0),
            (Self::Complex(slices), Values::Magnitude) => slices.iter().any(|v| v.im != 0.0 || v.re < 0.0),
            (Self::Complex(slices), Values::Real) => slices.iter().any(|v| v.im != 0.0),
        }
    }
}

/// An image of real or of complex numbers, as its file has them.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyImage {
    /// Real numbers.
    Real(Image<f32>),
    /// Complex numbers.
    Complex(Image),
}

impl AnyImage {
    /// The image in real numbers: magnitudes where a number has an imaginary part. Also tells whether they
    /// are.
    ///
    /// ```
    /// use ndarray::{ArrayD, IxDyn};
    /// use rayspin_core::{C32, Geometry, Image};
    /// use rayspin_io::AnyImage;
    ///
    /// let image = |value| Image::new(ArrayD::from_elem(IxDyn(&[1, 1, 1]), value), Geometry::default());
    /// let (real, magnitudes) = AnyImage::from(image(C32::new(-2.0, 0.0))?).into_real();
    /// assert_eq!((real.data()[[0, 0, 0]], magnitudes), (-2.0, false));
    /// let (real, magnitudes) = AnyImage::from(image(C32::new(3.0, -4.0))?).into_real();
    /// assert_eq!((real.data()[[0, 0, 0]], magnitudes), (5.0, true));
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn into_real(self) -> (Image<f32>, bool) {
        match self {
            Self::Real(image) => (image, false),
            Self::Complex(image) => {
                let complex = image.data().iter().any(|value| value.im != 0.0);
                let real = |value: &C32| if complex { value.norm() } else { value.re };
                (image.map(real), complex)
            }
        }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        match self {
            Self::Real(image) => image.geometry(),
            Self::Complex(image) => image.geometry(),
        }
    }

    /// Says how many numbers are not finite, where some are not.
    pub(crate) fn not_finite_note(&self) -> Option<String> {
        fn count<T: Sync>(data: &ArrayD<T>, finite: impl Fn(&T) -> bool + Sync) -> (usize, usize) {
            let not_finite = |part: &[T]| part.iter().filter(|value| !finite(value)).count();
            let slice = data.as_slice_memory_order().unwrap_or_default();
            (slice.par_chunks(1 << 16).map(not_finite).sum(), slice.len())
        }
        let (some, count) = match self {
            Self::Real(image) => count(image.data(), |value| value.is_finite()),
            Self::Complex(image) => count(image.data(), |value| value.is_finite()),
        };
        let message = || {
            format!(
                "{some} of {count} numbers are not finite (NaN or infinite): nothing can be told of these voxels"
            )
        };
        (some > 0).then(message)
    }

    /// The image, with imaginary parts of 0 where its numbers are real.
    pub fn into_complex(self) -> Image {
        match self {
            Self::Real(image) => image.to_complex(),
            Self::Complex(image) => image,
        }
    }
}

impl From<Image<f32>> for AnyImage {
    fn from(image: Image<f32>) -> Self {
        Self::Real(image)
    }
}

impl From<Image> for AnyImage {
    fn from(image: Image) -> Self {
        Self::Complex(image)
    }
}
