//! The published parameter tables, in their own units: lengths in half fields of view, y upward, angles in degree.

use super::{Contrast, Ellipsoid};

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

pub(super) fn ellipses(contrast: Contrast) -> Vec<Ellipsoid> {
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

pub(super) fn ellipsoids(contrast: Contrast) -> Vec<Ellipsoid> {
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

/// From the tables' units to image coordinates: half the lengths, y turned downward, and with it the sense of rotation.
fn image_part(intensity: f64, semi_axes: [f64; 3], centre: [f64; 3], degrees: f64) -> Ellipsoid {
    let [x, y, z] = centre.map(|v| 0.5 * v);
    Ellipsoid {
        intensity,
        semi_axes: semi_axes.map(|a| 0.5 * a),
        centre: [x, -y, z],
        angle: -degrees.to_radians(),
    }
}
