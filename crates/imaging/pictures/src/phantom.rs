//! Tables of published phantoms, which simulations of every kind of scan share.

use serde::Serialize;

/// Which intensities the phantom has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contrast {
    /// The original intensities (skull 2, brain 1.02, features of 1 %): Shepp & Logan, IEEE Trans Nucl Sci
    /// 21:21, 1974; in 3-D Kak & Slaney, Principles of Computerized Tomographic Imaging, 1988, p. 102.
    Standard,
    /// Intensities raised so that every feature is visible (skull 1, brain 0.2): in 2-D Toft, The Radon
    /// Transform, 1996; in 3-D Yu, Ye & Wang, Proc SPIE 5535:550, 2004, on the geometry of Kak & Slaney.
    #[default]
    Modified,
}

/// One ellipse or ellipsoid of constant intensity.
///
/// Lengths are in fields of view (the whole field is 1 wide), positions in image coordinates: x to the right,
/// y **downward** in display (as the image index runs), z up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ellipsoid {
    /// Added to the intensity of whatever it overlaps.
    pub intensity: f64,
    /// Semi-axes; the third is unused in 2-D.
    pub semi_axes: [f64; 3],
    /// Centre; the third is unused in 2-D.
    pub centre: [f64; 3],
    /// Angle of the first semi-axis from +x towards +y (about z), radian.
    pub angle: f64,
}

// The tables are in their own units: lengths in half fields of view, y upward, angles in degree.

/// a, b, x₀, y₀, φ (Shepp & Logan 1974, table 1).
const ELLIPSES: [[f64; 5]; 10] = [
    [0.69, 0.92, 0.0, 0.0, 0.0],
    [0.6624, 0.874, 0.0, -0.0184, 0.0],
    [0.11, 0.31, 0.22, 0.0, -18.0],
    [0.16, 0.41, -0.22, 0.0, 18.0],
    [0.21, 0.25, 0.0, 0.35, 0.0],
    [0.046, 0.046, 0.0, 0.1, 0.0],
    [0.046, 0.046, 0.0, -0.1, 0.0],
    [0.046, 0.023, -0.08, -0.605, 0.0],
    [0.023, 0.023, 0.0, -0.606, 0.0],
    [0.023, 0.046, 0.06, -0.605, 0.0],
];

const ELLIPSES_STANDARD: [f64; 10] = [2.0, -0.98, -0.02, -0.02, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01];
const ELLIPSES_MODIFIED: [f64; 10] = [1.0, -0.8, -0.2, -0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1];

/// a, b, c, x₀, y₀, z₀, φ (Kak & Slaney 1988, table 3.1).
const ELLIPSOIDS: [[f64; 7]; 10] = [
    [0.69, 0.92, 0.9, 0.0, 0.0, 0.0, 0.0],
    [0.6624, 0.874, 0.88, 0.0, 0.0, 0.0, 0.0],
    [0.41, 0.16, 0.21, -0.22, 0.0, -0.25, 108.0],
    [0.31, 0.11, 0.22, 0.22, 0.0, -0.25, 72.0],
    [0.21, 0.25, 0.5, 0.0, 0.35, -0.25, 0.0],
    [0.046, 0.046, 0.046, 0.0, 0.1, -0.25, 0.0],
    [0.046, 0.023, 0.02, -0.08, -0.65, -0.25, 0.0],
    [0.046, 0.023, 0.02, 0.06, -0.65, -0.25, 90.0],
    [0.056, 0.04, 0.1, 0.06, -0.105, 0.625, 90.0],
    [0.056, 0.056, 0.1, 0.0, 0.1, 0.625, 0.0],
];

const ELLIPSOIDS_STANDARD: [f64; 10] = [2.0, -0.98, -0.02, -0.02, 0.02, 0.02, 0.01, 0.01, 0.02, -0.02];
const ELLIPSOIDS_MODIFIED: [f64; 10] = [1.0, -0.8, -0.2, -0.2, 0.2, 0.2, 0.1, 0.1, 0.2, -0.2];

/// What changes of a part of a phantom while it is scanned.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Change {
    /// The largest relative change of its semi-axes in a beat.
    pub beat: f64,
    /// Whether contrast agent arrives in it.
    pub enhances: bool,
}

/// Intensity added, a, b, c, x₀, y₀, φ of the thorax's parts and the relative change of semi-axes in a beat.
/// Lengths are in fields of view, y downward, angles in degree. Parts overlap only where one lies in another.
const THORAX: [[f64; 8]; 21] = [
    // Fat under the skin, and the muscles within.
    [0.80, 0.460, 0.335, 0.48, 0.0, 0.0, 0.0, 0.0],
    [-0.45, 0.430, 0.300, 0.46, 0.0, 0.0, 0.0, 0.0],
    // Right and left lung.
    [-0.30, 0.135, 0.215, 0.36, -0.245, 0.0, 0.0, 0.0],
    [-0.30, 0.100, 0.180, 0.36, 0.295, 0.010, 0.0, 0.0],
    // Left ventricle: its wall, its blood, two papillary muscles.
    [0.10, 0.105, 0.088, 0.13, 0.09, -0.035, 35.0, 0.05],
    [0.55, 0.070, 0.058, 0.10, 0.09, -0.035, 35.0, 0.25],
    [-0.45, 0.010, 0.010, 0.05, 0.112, -0.047, 0.0, 0.0],
    [-0.45, 0.009, 0.009, 0.05, 0.082, -0.011, 0.0, 0.0],
    // Right ventricle and left atrium.
    [0.60, 0.078, 0.040, 0.10, -0.055, -0.100, 114.0, 0.20],
    [0.55, 0.050, 0.027, 0.06, 0.0, 0.075, 0.0, -0.12],
    // Descending aorta, inferior vena cava.
    [0.60, 0.028, 0.028, 0.44, 0.075, 0.135, 0.0, 0.04],
    [0.55, 0.024, 0.024, 0.40, -0.080, 0.030, 0.0, 0.0],
    // A vertebra, the canal behind it, the cord in the canal.
    [0.20, 0.055, 0.042, 0.42, 0.0, 0.192, 0.0, 0.0],
    [0.55, 0.019, 0.016, 0.42, 0.0, 0.254, 0.0, 0.0],
    [-0.40, 0.009, 0.007, 0.42, 0.0, 0.254, 0.0, 0.0],
    // The sternum, ribs.
    [0.20, 0.045, 0.014, 0.30, 0.0, -0.260, 0.0, 0.0],
    [-0.25, 0.028, 0.008, 0.03, -0.369, -0.130, 112.0, 0.0],
    [-0.25, 0.028, 0.008, 0.03, -0.364, 0.140, 66.0, 0.0],
    [-0.25, 0.028, 0.008, 0.03, 0.393, -0.080, 75.0, 0.0],
    [-0.25, 0.030, 0.008, 0.03, -0.170, -0.238, 160.0, 0.0],
    [-0.25, 0.030, 0.008, 0.03, 0.190, -0.232, 22.0, 0.0],
];
/// The part of the thorax in which contrast agent arrives: the wall of the left ventricle.
const ENHANCING: usize = 4;

/// A thorax at the height of the heart: fat, muscles, lungs, both ventricles, an atrium, large vessels,
/// spine, sternum and ribs, 21 ellipsoids with the contrast of a steady-state image. It follows no published
/// model. Each part comes with what changes of it.
///
/// ```
/// let parts = rayspin_imaging::phantom::thorax();
/// let beating = parts.iter().filter(|(_, change)| change.beat != 0.0).count();
/// assert_eq!((parts.len(), beating), (21, 5));
/// ```
pub fn thorax() -> Vec<(Ellipsoid, Change)> {
    let part = |(index, row): (usize, &[f64; 8])| {
        let &[intensity, a, b, c, x, y, angle, beat] = row;
        let ellipsoid =
            Ellipsoid { intensity, semi_axes: [a, b, c], centre: [x, y, 0.0], angle: angle.to_radians() };
        (ellipsoid, Change { beat, enhances: index == ENHANCING })
    };
    THORAX.iter().enumerate().map(part).collect()
}

/// The 2-D Shepp–Logan head, ten ellipses, upright: top of the head at small y.
///
/// ```
/// use rayspin_imaging::phantom::{Contrast, shepp_logan_2d};
/// let skull = shepp_logan_2d(Contrast::Standard)[0];
/// assert_eq!((skull.intensity, skull.semi_axes[1]), (2.0, 0.46));
/// ```
pub fn shepp_logan_2d(contrast: Contrast) -> Vec<Ellipsoid> {
    let intensities = match contrast {
        Contrast::Standard => ELLIPSES_STANDARD,
        Contrast::Modified => ELLIPSES_MODIFIED,
    };
    let part = |(row, intensity): (&[f64; 5], f64)| {
        let [a, b, x, y, angle] = *row;
        image_part(intensity, [a, b, 2.0], [x, y, 0.0], angle)
    };
    ELLIPSES.iter().zip(intensities).map(part).collect()
}

/// The 3-D Shepp–Logan head, ten ellipsoids; its axial slices show the front of the head at small y.
pub fn shepp_logan_3d(contrast: Contrast) -> Vec<Ellipsoid> {
    let intensities = match contrast {
        Contrast::Standard => ELLIPSOIDS_STANDARD,
        Contrast::Modified => ELLIPSOIDS_MODIFIED,
    };
    let part = |(row, intensity): (&[f64; 7], f64)| {
        let [a, b, c, x, y, z, angle] = *row;
        image_part(intensity, [a, b, c], [x, y, z], angle)
    };
    ELLIPSOIDS.iter().zip(intensities).map(part).collect()
}

/// From the tables' units to image coordinates: half the lengths, y turned downward, and with it the sense of
/// rotation.
fn image_part(intensity: f64, semi_axes: [f64; 3], centre: [f64; 3], degrees: f64) -> Ellipsoid {
    let [x, y, z] = centre.map(|v| 0.5 * v);
    Ellipsoid {
        intensity,
        semi_axes: semi_axes.map(|a| 0.5 * a),
        centre: [x, -y, z],
        angle: -degrees.to_radians(),
    }
}
