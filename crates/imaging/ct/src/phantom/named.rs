//! Published phantoms.

use rayspin_core::{Error, Result};
use rayspin_imaging::phantom::{Contrast, Ellipsoid, shepp_logan_2d, shepp_logan_3d};

use super::{Form, Phantom, Solid};

impl Phantom {
    /// The Shepp–Logan head `width_mm` wide (its field of view), whose intensity 1 attenuates by
    /// `attenuation` (1/mm). `dims` is 2 for a head that is the same at all heights, or 3.
    ///
    /// Errors: other dimensions; a width that is not positive; numbers that are not finite.
    pub fn shepp_logan(dims: usize, width_mm: f64, contrast: Contrast, attenuation: f64) -> Result<Self> {
        let parts = match dims {
            2 => shepp_logan_2d(contrast),
            3 => shepp_logan_3d(contrast),
            _ => return Err(Error::value("dimensions of the phantom", "2 or 3", dims)),
        };
        if !(width_mm.is_finite() && width_mm > 0.0) {
            return Err(Error::value("width of the phantom", "a positive length in mm", width_mm));
        }
        let solid = |part: Ellipsoid| {
            let mut half = part.semi_axes.map(|length| length * width_mm);
            let form = if dims == 2 { Form::Cylinder } else { Form::Ellipsoid };
            if dims == 2 {
                half[2] = f64::INFINITY;
            }
            Solid::new(form, part.centre.map(|x| x * width_mm), half, part.intensity * attenuation)
                .turned(part.angle)
        };
        Self::new(parts.into_iter().map(solid).collect())
    }

    /// Flat discs at different heights, within a field of view of `width_mm`: seven discs of 0.9 of its
    /// diameter and a fortieth of its height, a tenth apart (M. Defrise, R. Clack, IEEE Trans Med Imaging
    /// 13:186, 1994). Where the orbit is a circle, cone-beam reconstructions smear discs away from its plane.
    ///
    /// Errors: a width that is not positive, an attenuation that is not finite.
    pub fn defrise(width_mm: f64, attenuation: f64) -> Result<Self> {
        if !(width_mm.is_finite() && width_mm > 0.0) {
            return Err(Error::value("width of the phantom", "a positive length in mm", width_mm));
        }
        let half = [0.45 * width_mm, 0.45 * width_mm, width_mm / 80.0];
        let disc = |index: i32| {
            let height = f64::from(index) * 0.1 * width_mm;
            Solid::new(Form::Cylinder, [0.0, 0.0, height], half, attenuation)
        };
        Self::new((-3..=3).map(disc).collect())
    }
}
