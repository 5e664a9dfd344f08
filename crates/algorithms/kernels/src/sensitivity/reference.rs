//! The formulas, voxel by voxel in f64.

use rayspin_core::C64;

/// y_j(x) = c_j(x) ρ(x), `[coil, voxel]`.
pub fn expand(maps: &[C64], image: &[C64]) -> Vec<C64> {
    let voxels = image.len();
    (0..maps.len()).map(|i| maps[i] * image[i % voxels]).collect()
}

/// ρ(x) = Σ_j conj(c_j(x)) y_j(x) over `[coil, voxel]` arrays of `voxels` voxels.
pub fn combine(maps: &[C64], images: &[C64], voxels: usize) -> Vec<C64> {
    let coils = maps.len() / voxels;
    let one = |v: usize| (0..coils).map(|j| maps[j * voxels + v].conj() * images[j * voxels + v]).sum();
    (0..voxels).map(one).collect()
}

/// Σ_j |y_j(x)|².
pub fn sum_of_squares(images: &[C64], voxels: usize) -> Vec<f64> {
    let coils = images.len() / voxels;
    let one = |v: usize| (0..coils).map(|j| images[j * voxels + v].norm_sqr()).sum();
    (0..voxels).map(one).collect()
}
