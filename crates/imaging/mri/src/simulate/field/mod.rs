//! Fields that are not the same everywhere, and samples taken in them.

mod quadrature;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use quadrature::gauss_legendre;

use ndarray::{Array2, Array3, ArrayView2};
use rayspin_core::{C64, Error, Result};

use super::coils::CoilSensitivities;
use super::phantom::Phantom;
use quadrature::Quadrature;

/// How the field runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldShape {
    /// f = g·x.
    Linear,
    /// 2 |x|²/R² − 1, from −1 at the centre to 1 in the corners of the field of view.
    Quadratic,
    /// A Gaussian at the front of the head, as above the nose, over a weaker linear and quadratic field.
    #[default]
    Smooth,
}

/// f(x) in Hz, x in fields of view: how far the field is from the receiver's frequency.
///
/// ```
/// use rayspin_mri::simulate::{FieldMap, FieldShape};
///
/// let field = FieldMap { shape: FieldShape::Linear, peak_hz: 60.0 };
/// assert_eq!(field.at([0.0; 3], 2), 0.0);
/// assert!((field.at([0.5, 0.5, 0.0], 2) - 60.0).abs() < 1e-9); // in the corner of the field of view
/// ```
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct FieldMap {
    /// How it runs.
    pub shape: FieldShape,
    /// Its largest magnitude over the field of view (of [`FieldShape::Smooth`] within 1 %), Hz; below 0 the
    /// shape is turned over.
    pub peak_hz: f64,
}

impl FieldMap {
    /// f at a point in fields of view, for a field over `dims` axes.
    pub fn at(&self, x: [f64; 3], dims: usize) -> f64 {
        self.peak_hz * self.relative(x, dims)
    }

    /// g of a linear field, Hz a field of view.
    fn gradient(&self, dims: usize) -> [f64; 3] {
        let z = if dims == 3 { 1.0 } else { 0.0 };
        [4.0, 2.0, z].map(|g| self.peak_hz * g / (3.0 + 0.5 * z))
    }

    /// At most 1 over the field of view.
    fn relative(&self, x: [f64; 3], dims: usize) -> f64 {
        let z = if dims == 3 { 1.0 } else { 0.0 };
        let square = (x[0] * x[0] + x[1] * x[1] + z * x[2] * x[2]) / (0.25 * dims as f64);
        match self.shape {
            FieldShape::Linear => (4.0 * x[0] + 2.0 * x[1] + z * x[2]) / (3.0 + 0.5 * z),
            FieldShape::Quadratic => 2.0 * square - 1.0,
            FieldShape::Smooth => {
                let from = [x[0] / 0.16, (x[1] + 0.25) / 0.13, z * (x[2] - 0.1) / 0.2];
                let peak = (-0.5 * from.iter().map(|d| d * d).sum::<f64>()).exp();
                // Its largest value over the field of view is 0.99 in two dimensions and 0.999 in three.
                1.027 * peak - 0.3 * square + 0.25 * x[0]
            }
        }
    }

    /// At the voxel centres of a `[z, y, x]` matrix, Hz.
    pub fn map(&self, shape_zyx: [usize; 3], dims: usize) -> Array3<f64> {
        let coordinate = |i: usize, n: usize| (i as f64 - (n / 2) as f64) / n as f64;
        let [nz, ny, nx] = shape_zyx;
        Array3::from_shape_fn((nz, ny, nx), |(z, y, x)| {
            self.at([coordinate(x, nx), coordinate(y, ny), coordinate(z, nz)], dims)
        })
    }

    pub(super) fn check(&self, dims: usize) -> Result<()> {
        if !self.peak_hz.is_finite() || self.peak_hz.abs() > 1e5 {
            return Err(Error::value("peak of the field map in Hz", "a number up to 100000", self.peak_hz));
        }
        if dims == 3 && self.shape != FieldShape::Linear {
            return Err(Error::value(
                "shape of the field map of a volume",
                "linear (its samples have a closed form), or slices in two dimensions",
                format!("{:?}", self.shape).to_lowercase(),
            ));
        }
        Ok(())
    }
}

/// Where a slice lies in the field.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldSlice {
    /// Its height, in fields of view.
    pub(super) z: f64,
    /// Dimensions of the field.
    pub(super) dims: usize,
}

/// An object, its coils and the field, from which samples are taken.
///
/// A linear field moves k, d(k, t) = d(k + g t), in closed form. Any other field is integrated over each
/// ellipse by quadrature that converges exponentially. One non-uniform transform of the places (x, f(x)) sums
/// it at all (k, t): e^{−i2π(k·x + t f)} is a Fourier kernel of one dimension more.
pub(super) enum FieldSampler {
    Linear { gradient: [f64; 3] },
    Curved(Box<Quadrature>),
}

impl FieldSampler {
    /// For samples of a slice up to `reach` cycles per field of view and `duration` s from 0. Errors:
    /// memory.
    pub(super) fn new(
        field: &FieldMap,
        slice: FieldSlice,
        phantom: &Phantom,
        coils: &CoilSensitivities,
        reach: f64,
        duration: f64,
    ) -> Result<Self> {
        if field.shape == FieldShape::Linear && (phantom.dims() == 3 || slice.dims == 2) {
            return Ok(Self::Linear { gradient: field.gradient(slice.dims) });
        }
        let hertz = |x: [f64; 3]| field.at([x[0], x[1], slice.z], slice.dims);
        // No shape's gradient is above 8 of its peak a field of view.
        let steepest = 8.0 * field.peak_hz.abs() * duration;
        Ok(Self::Curved(Box::new(Quadrature::new(phantom, coils, &hertz, reach + steepest)?)))
    }

    /// k + g t of a linear field, which a sampler without field takes.
    pub(super) fn shifted(&self, points: &Array2<f64>, times: &[f64]) -> Option<Array2<f64>> {
        let Self::Linear { gradient } = self else { return None };
        let shifted = |(m, d): (usize, usize)| points[[m, d]] + gradient[d] * times[m];
        Some(Array2::from_shape_fn(points.raw_dim(), shifted))
    }

    /// Samples `[coil, sample]` of a field that is not linear.
    pub(super) fn samples(&self, points: ArrayView2<'_, f64>, times: &[f64]) -> Result<Option<Array2<C64>>> {
        match self {
            Self::Linear { .. } => Ok(None),
            Self::Curved(quadrature) => quadrature.samples(points, times).map(Some),
        }
    }
}
