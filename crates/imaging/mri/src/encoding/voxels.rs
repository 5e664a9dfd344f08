//! What voxels are to an image that is an integral over them.

/// The matrix size at which λ of penalties on differences and wavelets counts as it is given.
pub const LAMBDA_MATRIX: f64 = 256.0;

/// How many voxels an image has along each axis, and how long they are beside one another.
///
/// ‖Fρ − Nd‖²/L is N times an integral over the field of view (𝓔ρ = Fρ/N is the mean (1/N) Σ c ρ e^{−i2πk·x},
/// and L is N times the largest eigenvalue of 𝓔ᴴ𝓔). A penalty means the same at any matrix when it is N times
/// an integral as well:
///
/// ```text
/// ∫|ρ|²            N · (1/N) Σ|ρ|²                       1
/// ℓ²∫|∇ρ|²         N · (1/N) Σ_a Σ (ℓ/h_a)² |Δ_aρ|²      (n/256)² r_a² for each axis
/// ℓ ∫|∇ρ|          N · (1/N) Σ √Σ_a (ℓ/h_a)² |Δ_aρ|²     (n/256) r_a
/// ℓ^{d/2} Σ|⟨ψ,ρ⟩|   N · ℓ^{d/2} Σ |(Wρ)|/√N             (n/256)^{d/2}
/// ```
///
/// The voxel sizes are h_a, their geometric mean is h, and r_a = h/h_a. The geometric mean of the matrix
/// sizes is n. The length ℓ = nh/256 is a 256th of the field of view. The wavelets ψ have ∫|ψ|² = 1. The
/// wavelets of W, on voxels, are √N times as tall. Axes of one voxel do not count.
#[derive(Debug, Clone, PartialEq)]
pub struct Voxels {
    matrix: Vec<usize>,
    slopes: Vec<f64>,
}

impl Voxels {
    /// The voxels of an image `[z, y, x]` or `[y, x]`, from voxel sizes along x, y, z; cubes where these are
    /// no lengths.
    pub(crate) fn new(matrix: &[usize], spacing_mm: &[f64; 3]) -> Self {
        let sized: Vec<usize> = (0..matrix.len()).filter(|&a| matrix[a] > 1).collect();
        let size = |axis: usize| spacing_mm.get(matrix.len() - 1 - axis).copied().unwrap_or(1.0);
        let known = sized.iter().all(|&a| size(a).is_finite() && size(a) > 0.0);
        let log = sized.iter().map(|&a| size(a).ln()).sum::<f64>() / sized.len().max(1) as f64;
        let slope = |axis| if known && sized.contains(&axis) { log.exp() / size(axis) } else { 1.0 };
        Self { matrix: matrix.to_vec(), slopes: (0..matrix.len()).map(slope).collect() }
    }

    /// The matrix `[z, y, x]` or `[y, x]`.
    pub fn matrix(&self) -> &[usize] {
        &self.matrix
    }

    /// N.
    pub fn count(&self) -> f64 {
        voxels(&self.matrix)
    }

    /// r_a.
    pub fn slopes(&self) -> &[f64] {
        &self.slopes
    }

    fn axes(&self) -> usize {
        self.matrix.iter().filter(|&&n| n > 1).count().max(1)
    }

    /// n/256.
    pub fn gradient(&self) -> f64 {
        self.count().powf(1.0 / self.axes() as f64) / LAMBDA_MATRIX
    }

    /// (n/256)^{d/2}.
    pub fn wavelet(&self) -> f64 {
        self.gradient().powf(0.5 * self.axes() as f64)
    }
}

/// N, the voxels of a matrix.
fn voxels(matrix: &[usize]) -> f64 {
    matrix.iter().product::<usize>() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_has_one_size() {
        let size = |matrix: &[usize]| Voxels::new(matrix, &[1.0; 3]).gradient() * LAMBDA_MATRIX;
        assert!((size(&[256, 256]) - 256.0).abs() < 1e-9);
        assert!((size(&[1, 256, 256]) - 256.0).abs() < 1e-9);
        assert!((size(&[64, 128]) - 90.50966799187809).abs() < 1e-9);
        assert_eq!(size(&[1]), 1.0);
        let volume = Voxels::new(&[32, 64, 128], &[1.0; 3]);
        assert!((volume.gradient() - 0.25).abs() < 1e-12 && (volume.wavelet() - 0.125).abs() < 1e-12);
    }

    #[test]
    fn slopes_are_those_of_the_voxels_sides() {
        // x 2 mm, y 8 mm: the mean is 4 mm.
        let flat = Voxels::new(&[16, 64], &[2.0, 8.0, 5.0]);
        assert!((flat.slopes()[0] - 0.5).abs() < 1e-12 && (flat.slopes()[1] - 2.0).abs() < 1e-12);
        let slab = Voxels::new(&[1, 16, 64], &[2.0, 8.0, 5.0]);
        assert_eq!(slab.slopes()[0], 1.0);
        assert!((slab.slopes()[1] - 0.5).abs() < 1e-12);
        assert_eq!(Voxels::new(&[16, 64], &[0.0, 8.0, 5.0]).slopes(), [1.0, 1.0]);
    }
}
