//! Coil sensitivities from coil images by local principal components (Walsh, Gmitro, Marcellin,
//! *Adaptive reconstruction of phased array MR imagery*, Magn Reson Med 43:682, 2000).

mod cpu;
mod reference;

use rayspin_core::{C32, Error, Result, format_shape};
use rayspin_device::{Array, BackendKind, Cpu};

use crate::variant::{Variant, Work, runs_all};

pub use reference::maps as reference_maps;

/// Half-width of the window along each axis, in voxels: 3 gives the 7-voxel windows of common practice.
pub const DEFAULT_RADIUS: usize = 3;

/// What a variant is given: `[coil, z, y, x]` with z = 1 in 2-D.
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    /// Number of coils.
    pub coils: usize,
    /// Image shape.
    pub shape_zyx: [usize; 3],
    /// Window half-width.
    pub radius: usize,
}

/// Entry point of a variant: problem, coil images, maps (written).
pub type Launch = fn(&Cpu, &Problem, &[C32], &mut [C32]);

/// Every variant, slowest first.
pub static VARIANTS: &[Variant<Problem, Launch>] = &[Variant {
    name: "rows",
    backend: BackendKind::Cpu,
    summary: "running window sums of the covariance along x, power iteration per voxel, one row a task",
    launch: cpu::rows,
    refuses: runs_all,
    work,
    tolerance: 2e-3,
    reproduces: None,
}];

fn work(p: &Problem) -> Work {
    let voxels = p.shape_zyx.iter().product::<usize>() as f64;
    let coils = p.coils as f64;
    let pairs = coils * (coils + 1.0) / 2.0;
    let side = (2 * p.radius + 1) as f64;
    let window_rows = if p.shape_zyx[0] > 1 { side * side } else { side };
    Work {
        bytes: 16.0 * voxels * coils,
        flops: voxels * (pairs * 8.0 * (window_rows + 2.0) + 8.0 * coils * coils * 8.0),
    }
}

/// Sensitivities c(x) as the dominant eigenvector of the local coil covariance
/// R(x) = Σ_{x' ∈ window(x)} m(x') m(x')ᴴ, with Σ_j |c_j(x)|² = 1.
///
/// `images` is `[coil, z, y, x]` or `[coil, y, x]`; the result has its shape. `radius` is the window's half-width in
/// voxels (windows are cut at the border). An eigenvector's phase is free: here the component along the dominant
/// eigenvector of the covariance of the whole image is real and positive, which keeps maps smooth and leaves the
/// image its own phase. Where a window holds no signal at all the maps are 0.
///
/// Errors: a rank other than 3 or 4, or no coils.
pub fn maps(images: &Array<C32>, radius: usize) -> Result<Array<C32>> {
    let shape = images.shape();
    let (coils, shape_zyx) = match *shape {
        [coils, y, x] => (coils, [1, y, x]),
        [coils, z, y, x] => (coils, [z, y, x]),
        _ => {
            return Err(Error::Shape {
                what: "coil images".into(),
                expected: "[coil, y, x] or [coil, z, y, x]".into(),
                found: format_shape(shape),
            });
        }
    };
    if coils == 0 {
        return Err(Error::value("coil images", "at least one coil", 0));
    }
    let mut out = Array::zeros(images.device(), shape)?;
    let problem = Problem { coils, shape_zyx, radius };
    let cpu = images.device().cpu_side();
    let images = images.read()?;
    out.update(|out| cpu::rows(cpu, &problem, &images, out))?;
    Ok(out)
}

/// Bytes that [`maps`] takes beside the images and the maps, and its work, with the default radius on `threads` threads.
pub fn needs(threads: usize, coils: usize, matrix: &[usize]) -> (u64, Work) {
    let mut shape_zyx = [1; 3];
    for (to, &n) in shape_zyx.iter_mut().rev().zip(matrix.iter().rev()) {
        *to = n;
    }
    let problem = Problem { coils, shape_zyx, radius: DEFAULT_RADIUS };
    (cpu::scratch_bytes(threads, &problem), work(&problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rayspin_device::Device;

    fn random(len: usize, seed: u64) -> Vec<C32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..len).map(|_| C32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect()
    }

    /// Smooth coils times a positive image: a clear dominant component, as in real calibration data.
    fn coil_images(coils: usize, shape: [usize; 3], noise: f32, seed: u64) -> Vec<C32> {
        let voxels: usize = shape.iter().product();
        let mut values = random(coils * voxels, seed);
        for (i, v) in values.iter_mut().enumerate() {
            let (j, at) = (i / voxels, i % voxels);
            let x = (at % shape[2]) as f32 / shape[2] as f32;
            let y = (at / shape[2] % shape[1]) as f32 / shape[1] as f32;
            let angle = j as f32 * 0.9 + 1.5 * x - 0.7 * y;
            let gain = 1.0 + 0.6 * (j as f32 + 2.0 * x + y).cos();
            *v = C32::from_polar(gain, angle) + *v * noise;
        }
        values
    }

    #[test]
    fn every_variant_agrees_with_the_oracle() {
        let device = Device::cpu_with_threads(2).unwrap();
        let cpu = device.cpu_side();
        for (seed, (coils, shape)) in
            [(1, [1, 1, 1]), (3, [1, 7, 1]), (4, [1, 16, 13]), (2, [5, 6, 11]), (8, [1, 9, 20])]
                .into_iter()
                .enumerate()
        {
            let images = coil_images(coils, shape, 0.1, seed as u64);
            for radius in [0, 1, 3] {
                let problem = Problem { coils, shape_zyx: shape, radius };
                let wanted = reference_maps(coils, shape, radius, &images);
                for variant in VARIANTS {
                    let mut found = vec![C32::new(f32::NAN, f32::NAN); images.len()];
                    (variant.launch)(cpu, &problem, &images, &mut found);
                    let norm: f64 = wanted.iter().map(|v| v.norm_sqr()).sum();
                    let error: f64 = wanted
                        .iter()
                        .zip(&found)
                        .map(|(w, f)| (w - rayspin_core::C64::new(f.re.into(), f.im.into())).norm_sqr())
                        .sum();
                    let relative = (error / norm).sqrt();
                    assert!(
                        relative <= variant.tolerance,
                        "{} on {coils} coils {shape:?} radius {radius}: {relative:e}",
                        variant.name
                    );
                }
            }
        }
    }

    #[test]
    fn true_sensitivities_are_recovered_up_to_the_common_phase() {
        let device = Device::cpu_with_threads(1).unwrap();
        let shape = [1, 24, 24];
        let images = coil_images(4, shape, 0.0, 1);
        let array = Array::from_vec(&device, &[4, 24, 24], images.clone()).unwrap();
        let found = maps(&array, 1).unwrap();
        for at in 0..24 * 24 {
            let norm = (0..4).map(|j| images[j * 576 + at].norm_sqr()).sum::<f32>().sqrt();
            let overlap: C32 = (0..4).map(|j| found.cpu()[j * 576 + at].conj() * images[j * 576 + at]).sum();
            assert!((overlap.norm() / norm - 1.0).abs() < 0.01, "voxel {at}: {overlap} of {norm}");
        }
    }

    #[test]
    fn silence_gives_zero_maps_and_bad_shapes_are_named() {
        let device = Device::cpu_with_threads(1).unwrap();
        let silent = Array::<C32>::zeros(&device, &[2, 4, 4]).unwrap();
        assert!(maps(&silent, 3).unwrap().cpu().iter().all(|v| v.norm() == 0.0));
        assert!(maps(&Array::zeros(&device, &[4, 4]).unwrap(), 3).is_err());
    }
}
