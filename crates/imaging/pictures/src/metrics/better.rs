use ndarray::{ArrayView, Dimension};
use rayspin_core::Result;

use super::shading::{self, Shading};
use super::{CompareOptions, Compared, Numbers, Quality, Sample, compare, expand};

/// Another way to compare is worth a word where its error is below this part of the one at hand.
const BETTER: f64 = 0.5;
/// A fitted factor farther from 1 than this says that two scales are compared.
const OTHER_SCALE: f64 = 0.2;
/// A smooth factor is worth a word beside an error above this.
const SHADED: f64 = 0.02;

/// A way to compare two images in which they differ much less.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Better {
    /// With a fitted scale, and phase where complex values are compared.
    Fitted(Quality),
    /// Magnitudes of complex values.
    Magnitudes(Quality),
    /// But for a smooth factor, as coil sensitivities leave it on images of MRI.
    Shading(Shading),
}

/// Whether images whose `quality` was found with `options` differ in scale, phase or shading more than in
/// anything else: another way to compare them has less than half the error.
///
/// Errors: as [`compare`].
///
/// ```
/// use ndarray::array;
/// use rayspin_imaging::metrics::{Better, CompareOptions, better, compare};
///
/// let (image, reference) = (array![[2.0, 4.0], [6.0, 8.0]], array![[1.0, 2.0], [3.0, 4.0]]);
/// let options = CompareOptions::default();
/// let quality = compare(image.view(), reference.view(), &options)?;
/// let other = better(image.view(), reference.view(), &options, &quality)?;
/// assert!(matches!(other, Some(Better::Fitted(quality)) if quality.scale == [0.5, 0.0]));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn better<T: Sample, U: Sample, D: Dimension>(
    image: ArrayView<'_, T, D>,
    reference: ArrayView<'_, U, D>,
    options: &CompareOptions<'_>,
    quality: &Quality,
) -> Result<Option<Better>> {
    let compared = |numbers, fit| {
        let options = CompareOptions { numbers, fit, mask: options.mask.clone() };
        compare(image.view(), reference.view(), &options)
    };
    let complex = quality.compared == Compared::ComplexValues;
    let fitted = if options.fit { None } else { Some(compared(options.numbers, true)?) };
    let magnitudes = if complex { Some(compared(Numbers::Magnitudes, options.fit)?) } else { None };
    let other_scale = fitted.filter(|fitted| {
        let [re, im] = fitted.scale;
        (re - 1.0).hypot(im) > OTHER_SCALE && fitted.nrmse < BETTER * quality.nrmse
    });
    let other_phase = magnitudes.filter(|magnitudes| magnitudes.nrmse < BETTER * quality.nrmse);
    Ok(match (other_scale, other_phase) {
        (scale, Some(magnitudes)) if scale.is_none_or(|scale| magnitudes.nrmse < BETTER * scale.nrmse) => {
            Some(Better::Magnitudes(magnitudes))
        }
        (Some(scale), _) => Some(Better::Fitted(scale)),
        (None, _) if quality.nrmse > SHADED => {
            shaded(image, reference, options, quality)?.map(Better::Shading)
        }
        (None, _) => None,
    })
}

/// The smooth factor without which the images differ much less.
fn shaded<T: Sample, U: Sample, D: Dimension>(
    image: ArrayView<'_, T, D>,
    reference: ArrayView<'_, U, D>,
    options: &CompareOptions<'_>,
    quality: &Quality,
) -> Result<Option<Shading>> {
    let number = |value: rayspin_core::C64| match quality.compared {
        Compared::Magnitudes => value.norm(),
        Compared::RealValues | Compared::ComplexValues => value.re,
    };
    if quality.compared == Compared::ComplexValues {
        return Ok(None);
    }
    let shape = reference.shape().to_vec();
    let mask = options.mask.as_ref().map(|mask| expand(mask, &shape)).transpose()?;
    let image: Vec<f64> = image.iter().map(|value| number(value.to_c64())).collect();
    let reference: Vec<f64> = reference.iter().map(|value| number(value.to_c64())).collect();
    let shading = shading::fitted(&image, &reference, mask.as_deref(), &shape);
    Ok(shading.filter(|shading| shading.error_percent < BETTER * quality.error_percent))
}
