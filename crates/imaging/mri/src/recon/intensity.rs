//! The intensity of sensitivity maps: I(r) = √(Σ_c |S_c(r)|²).
//!
//! The image ρ for maps S is u/I for the image u of the maps S_c/I, as S_c ρ = (S_c/I)(I ρ). Iterations for u
//! converge faster where I varies, and a penalty weighs all of the image alike. Their quotient has no shading
//! by the coils. Several sets of maps share one I.
//!
//! Source: Pruessmann, Weiger, Börnert, Boesiger, Magn Reson Med 46:638, 2001, whose matrix I is 1/I here.

use ndarray::{ArrayD, ArrayViewMutD, Axis, Zip};
use rayspin_core::{C32, Error, Result, format_shape};

use super::AXES_OF_SETS;

/// Divides maps `[coil, z, y, x]`, `[coil, y, x]` or `[set, coil, z, y, x]` by their intensity, which is
/// returned: `[z, y, x]` or `[y, x]`. Where it is 0 the maps stay 0.
///
/// Errors: maps of other axes, numbers that are not finite.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::C32;
/// use rayspin_mri::recon::take_intensity;
///
/// let mut maps = array![[[3.0, 0.0]], [[4.0, 0.0]]].mapv(C32::from).into_dyn();
/// let intensity = take_intensity(&mut maps)?;
/// assert_eq!(intensity, array![[5.0, 0.0]].into_dyn());
/// assert_eq!(maps[[0, 0, 0]], C32::from(0.6));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn take_intensity(maps: &mut ArrayD<C32>) -> Result<ArrayD<f32>> {
    let axes = maps.ndim();
    if !(3..=AXES_OF_SETS).contains(&axes) {
        let expected = "[coil, z, y, x], [coil, y, x] or [set, coil, z, y, x]".to_owned();
        let found = format_shape(maps.shape());
        return Err(Error::Shape { what: "sensitivity maps".to_owned(), expected, found });
    }
    let infinite = |(_, value): &(usize, &C32)| !(value.re.is_finite() && value.im.is_finite());
    if let Some((index, value)) = maps.iter().enumerate().find(infinite) {
        return Err(Error::NotFinite { what: "sensitivity maps".into(), index, found: value.to_string() });
    }
    let leading = if axes == AXES_OF_SETS { 2 } else { 1 };
    let mut power = ArrayD::<f32>::zeros(&maps.shape()[leading..]);
    each(maps.view_mut(), leading, &mut |map| {
        Zip::from(&mut power).and(&map).for_each(|sum, value| *sum += value.norm_sqr());
    });
    let intensity = power.mapv_into(f32::sqrt);
    each(maps.view_mut(), leading, &mut |map| divide(map, &intensity));
    Ok(intensity)
}

/// Divides images `[.., z, y, x]` or `[.., y, x]` by the intensity of the slice at `position` of the scan's
/// `slices`. Images are 0 where it is.
///
/// Errors: images of another matrix.
pub(super) fn divide_images(
    images: &mut ArrayD<C32>,
    intensity: &ArrayD<f32>,
    position: usize,
    slices: usize,
) -> Result<()> {
    let depth = images.shape()[images.ndim().saturating_sub(3)];
    let mut own = intensity.clone();
    if own.ndim() == 2 {
        own.insert_axis_inplace(Axis(0));
    }
    if slices > 1 && depth == 1 && own.shape()[0] == slices {
        own.slice_axis_inplace(Axis(0), (position..position + 1).into());
    }
    let leading = images.ndim().saturating_sub(3);
    rayspin_core::expect_shape("intensity of the maps", &images.shape()[leading..], own.shape())?;
    each(images.view_mut(), leading, &mut |image| divide(image, &own));
    Ok(())
}

/// Calls `by` with each array that is left of `array` without its first `leading` axes.
fn each(mut array: ArrayViewMutD<'_, C32>, leading: usize, by: &mut impl FnMut(ArrayViewMutD<'_, C32>)) {
    match leading {
        0 => by(array.view_mut()),
        _ => array.outer_iter_mut().for_each(|inner| each(inner, leading - 1, by)),
    }
}

fn divide(values: ArrayViewMutD<'_, C32>, by: &ArrayD<f32>) {
    Zip::from(values).and(by).for_each(|value, &by| {
        *value = if by > 0.0 { *value / by } else { C32::ZERO };
    });
}

#[cfg(test)]
mod tests {
    use ndarray::{Dimension, IxDyn};

    use super::*;

    /// Values that differ everywhere, in double precision.
    fn value(index: &IxDyn) -> C32 {
        let at: usize = index.slice().iter().enumerate().map(|(axis, i)| (axis + 2) * (i + 1)).sum();
        C32::new((at as f32).sin(), (at as f32 * 0.7).cos())
    }

    #[test]
    fn maps_and_intensity_are_the_maps_that_were() {
        for shape in [&[3, 5, 4][..], &[1, 1, 7], &[4, 2, 5, 3], &[2, 3, 2, 5, 4]] {
            let before = ArrayD::from_shape_fn(shape, |index| value(&index));
            let mut maps = before.clone();
            let intensity = take_intensity(&mut maps).unwrap();
            let leading = shape.len() - intensity.ndim();
            let mut power = ArrayD::<f64>::zeros(intensity.shape());
            for (index, map) in maps.indexed_iter() {
                let place = IxDyn(&index.slice()[leading..]);
                let back = *map * intensity[&place];
                assert!((back - before[&index]).norm() < 1e-6, "{shape:?}");
                power[&place] += f64::from(map.norm_sqr());
            }
            assert!(power.iter().all(|power| (power - 1.0).abs() < 1e-6), "{shape:?}");
        }
        assert!(take_intensity(&mut ArrayD::zeros(IxDyn(&[3, 3]))).is_err());
    }

    #[test]
    fn images_are_divided_slice_by_slice() {
        let intensity = ArrayD::from_shape_fn(IxDyn(&[3, 2, 2]), |i| (i[0] * 4) as f32);
        let mut images = ArrayD::from_elem(IxDyn(&[5, 1, 2, 2]), C32::from(2.0));
        divide_images(&mut images, &intensity, 1, 3).unwrap();
        assert!(images.iter().all(|value| *value == C32::from(0.5)));
        // Without maps there is no image.
        divide_images(&mut images, &intensity, 0, 3).unwrap();
        assert!(images.iter().all(|value| *value == C32::ZERO));
        let mut volume = ArrayD::from_elem(IxDyn(&[3, 2, 2]), C32::from(2.0));
        divide_images(&mut volume, &intensity, 0, 1).unwrap();
        assert_eq!(volume[[2, 1, 1]], C32::from(0.25));
        assert!(divide_images(&mut volume, &ArrayD::zeros(IxDyn(&[2, 3])), 0, 1).is_err());
    }
}
