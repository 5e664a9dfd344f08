#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use super::*;
use crate::spectra;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::C64;
use rayspin_device::{BackendKind, Device};
use rayspin_emu::Coverage;

fn random(len: usize, seed: u64) -> Vec<C32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| C32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect()
}

/// Smooth coils times a positive image: a clear dominant component, as in real calibration data.
pub(super) fn coil_images(coils: usize, shape: [usize; 3], noise: f32, seed: u64) -> Vec<C32> {
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

/// The principal vector of the covariance of several parts of an image.
fn principal(parts: &[&Array<C32>]) -> Array<C32> {
    let mut whole = Covariance::new(parts[0].device(), parts[0].shape()[0]).unwrap();
    parts.iter().for_each(|part| whole.add(part).unwrap());
    whole.principal().unwrap()
}

fn distance(wanted: &[C64], found: &[C32]) -> f64 {
    let norm: f64 = wanted.iter().map(|v| v.norm_sqr()).sum();
    let wide = |v: &C32| C64::new(v.re.into(), v.im.into());
    let error: f64 = wanted.iter().zip(found).map(|(w, f)| (w - wide(f)).norm_sqr()).sum();
    (error / norm).sqrt()
}

#[test]
fn every_variant_agrees_with_the_oracle() {
    let devices = rayspin_emu::devices().unwrap();
    let mut coverage = Coverage::default();
    let cases = [
        (1, [1, 1, 1]),
        (3, [1, 7, 1]),
        (4, [1, 16, 13]),
        (2, [5, 6, 11]),
        (8, [1, 9, 20]),
        (33, [1, 3, 5]),
        (7, [2, 1, 37]),
        (2, [1, 17, 59]),
        (2, [3, 2, 117]),
    ];
    for (seed, (coils, shape)) in cases.into_iter().enumerate() {
        let images = coil_images(coils, shape, 0.1, seed as u64);
        let of: Vec<usize> = [&[coils], &shape[..]].concat();
        for radius in [0, 1, 3, 6] {
            let problem = Problem::whole(coils, shape, radius);
            let wanted = reference_maps(coils, shape, radius, &images);
            for device in &devices {
                let images = Array::from_slice(device, &of, &images).unwrap();
                let reference = principal(&[&images]);
                for variant in VARIANTS.iter().filter(|v| v.backend == device.kind()) {
                    if let Some(why) = (variant.refuses)(&problem) {
                        coverage.refused(device, variant.name, &why);
                        continue;
                    }
                    let mut found = Array::zeros(device, &of).unwrap();
                    found.fill(C32::new(f32::NAN, f32::NAN)).unwrap();
                    (variant.implementation)(&problem, &images, &reference, &mut found).unwrap();
                    let relative = distance(&wanted, &found.to_vec().unwrap());
                    coverage.compared(device, variant.name, relative, variant.tolerance);
                    assert!(
                        relative <= variant.tolerance,
                        "{} on {coils} coils {shape:?} radius {radius}: {relative:e}",
                        variant.name
                    );
                }
            }
        }
    }
    println!("Walsh:\n{coverage}");
    for device in &devices {
        let rows = VARIANTS.iter().filter(|v| v.backend == device.kind()).map(|v| v.name);
        assert_eq!(coverage.left_out(device, rows), [""; 0]);
    }
}

#[test]
fn devices_agree_and_repeat_their_bits() {
    let (coils, shape) = (6, [4, 19, 23]);
    let images = coil_images(coils, shape, 0.2, 3);
    let wanted = reference_maps(coils, shape, DEFAULT_RADIUS, &images);
    for device in rayspin_emu::devices().unwrap() {
        let images = Array::from_slice(&device, &[6, 4, 19, 23], &images).unwrap();
        let found = maps(&images, DEFAULT_RADIUS).unwrap().to_vec().unwrap();
        let relative = distance(&wanted, &found);
        assert!(relative < 2e-4, "{}: {relative:e}", device.describe());
        assert_eq!(found, maps(&images, DEFAULT_RADIUS).unwrap().to_vec().unwrap());
    }
}

/// The planes `range` of `[coil, z, y, x]`.
fn planes_of(images: &[C32], [coils, z, y, x]: [usize; 4], range: &Range<usize>) -> Vec<C32> {
    let plane = y * x;
    (0..coils)
        .flat_map(|j| images[(j * z + range.start) * plane..(j * z + range.end) * plane].to_vec())
        .collect()
}

#[test]
fn slabs_have_the_bits_of_the_whole() {
    for (coils, [nz, ny, nx], radius) in [(5, [11, 7, 9], 3), (3, [1, 12, 10], 3), (4, [6, 5, 8], 1)] {
        let shape = [coils, nz, ny, nx];
        let images = coil_images(coils, [nz, ny, nx], 0.3, 11);
        for device in rayspin_emu::devices().unwrap() {
            let part = |range: &Range<usize>| {
                let values = planes_of(&images, shape, range);
                Array::from_vec(&device, &[coils, range.len(), ny, nx], values).unwrap()
            };
            let all = part(&(0..nz));
            let whole = maps(&all, radius).unwrap().to_vec().unwrap();
            let reference = principal(&[&all]);
            for planes in [1, 2, 4, nz] {
                let slabs: Vec<_> = (0..nz).step_by(planes).map(|z| z..(z + planes).min(nz)).collect();
                let parts: Vec<_> = slabs.iter().map(part).collect();
                let of_slabs = principal(&parts.iter().collect::<Vec<_>>());
                for (slab, same_reference) in slabs.iter().flat_map(|slab| [(slab, true), (slab, false)]) {
                    let reached = slab.start.saturating_sub(radius)..(slab.end + radius).min(nz);
                    let within = slab.start - reached.start..slab.end - reached.start;
                    let by = if same_reference { &reference } else { &of_slabs };
                    let found = super::slab(&part(&reached), within, radius, by).unwrap();
                    assert_eq!(found.shape(), [coils, slab.len(), ny, nx]);
                    let (found, wanted) = (found.to_vec().unwrap(), planes_of(&whole, shape, slab));
                    if same_reference {
                        assert_eq!(found, wanted, "{slab:?} on {}", device.describe());
                    } else {
                        let wide: Vec<_> =
                            wanted.iter().map(|v| C64::new(v.re.into(), v.im.into())).collect();
                        assert!(distance(&wide, &found) < 1e-6, "{slab:?} on {}", device.describe());
                    }
                }
            }
            let beyond = super::slab(&all, 1..nz + 1, radius, &reference);
            assert!(beyond.is_err());
            assert!(super::slab(&all, 0..1, radius, &Array::zeros(&device, &[coils + 1]).unwrap()).is_err());
        }
    }
}

/// What the limit of the iteration leaves, for a second eigenvalue that is `apart` from the first: the worst
/// of some random matrices whose other eigenvalues are all the same.
#[test]
fn the_limit_of_the_iteration_leaves_a_small_residual() {
    let n = 8;
    for device in rayspin_emu::devices().unwrap() {
        for apart in [1e-3, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5] {
            let mut worst = 0.0f64;
            for seed in 0..24 {
                let basis = spectra::basis(n, seed);
                let values: Vec<f64> = (0..n).map(|k| if k < 1 { 1.0 } else { 1.0 - apart }).collect();
                // One voxel an eigenvector, all of them in one window.
                let image = |at: usize| {
                    let value = basis[at % n][at / n] * values[at % n].sqrt();
                    C32::new(value.re as f32, value.im as f32)
                };
                let images = Array::from_vec(&device, &[n, 2, 4], (0..n * n).map(image).collect()).unwrap();
                assert_eq!(
                    device.kind() == BackendKind::Cuda,
                    on_kernels(&device, &Problem::whole(n, [1, 2, 4], n))
                );
                let found = maps(&images, n).unwrap().to_vec().unwrap();
                let matrix = spectra::matrix(&values, &basis);
                for at in 0..n {
                    let wide = |v: C32| C64::new(v.re.into(), v.im.into());
                    let map: Vec<C64> = (0..n).map(|j| wide(found[j * n + at])).collect();
                    worst = worst.max(spectra::residual(&matrix, &map));
                }
            }
            println!("Walsh, {apart} apart: {worst:.1e}  {}", device.describe());
            let allowed = if apart >= 0.3 { 1.2e-4 } else { 0.03 };
            assert!(worst <= allowed, "{apart} apart on {}: {worst:e}", device.describe());
        }
    }
}

#[test]
fn scratch_memory_is_stated_beforehand() {
    let (coils, matrix) = (5, [12, 20, 18]);
    let images = coil_images(coils, matrix, 0.2, 4);
    for device in rayspin_emu::devices().unwrap() {
        let Backend::Cuda(cuda) = device.backend() else { continue };
        let images = Array::from_slice(&device, &[5, 12, 20, 18], &images).unwrap();
        cuda.reset_peak();
        let before = cuda.memory_used().0;
        let made = maps(&images, DEFAULT_RADIUS).unwrap();
        let taken = cuda.memory_used().1 - before - (images.len() * size_of::<C32>()) as u64;
        let (stated, _) = needs_on(&device, coils, &matrix);
        assert!(taken <= stated && 2 * taken > stated, "{taken} of {stated}");
        drop(made);

        let (slab, planes) = (Array::<C32>::zeros(&device, &[coils, 10, 20, 18]).unwrap(), 3..7);
        cuda.reset_peak();
        let before = cuda.memory_used().0;
        let mut whole = Covariance::new(&device, coils).unwrap();
        whole.add(&slab).unwrap();
        let reference = whole.principal().unwrap();
        drop(whole);
        let found = super::slab(&slab, planes, DEFAULT_RADIUS, &reference).unwrap();
        let taken = cuda.memory_used().1 - before - (found.len() * size_of::<C32>()) as u64;
        let (stated, _) = slab_needs_on(&device, coils, &matrix, 4);
        assert_eq!(taken, stated);
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

/// Rows that fill vectors of every width, and such that do not.
#[test]
fn every_instruction_set_agrees_with_the_oracle() {
    for level in rayspin_device::cpu::simd::levels() {
        let device = Device::cpu_with_level(2, level).unwrap();
        for (coils, shape) in [(5, [1, 6, 47]), (3, [4, 5, 16]), (12, [1, 9, 3])] {
            let images = coil_images(coils, shape, 0.1, 21);
            let of: Vec<usize> = [&[coils], &shape[..]].concat();
            for radius in [1, 3, 20] {
                let wanted = reference_maps(coils, shape, radius, &images);
                let found = maps(&Array::from_slice(&device, &of, &images).unwrap(), radius).unwrap();
                let relative = distance(&wanted, &found.to_vec().unwrap());
                assert!(relative < 1e-4, "{level:?}, {coils} coils {shape:?} radius {radius}: {relative:e}");
            }
        }
    }
}

#[test]
fn silence_gives_zero_maps_and_bad_shapes_are_named() {
    for device in rayspin_emu::devices().unwrap() {
        let silent = Array::<C32>::zeros(&device, &[2, 4, 4]).unwrap();
        assert!(maps(&silent, 3).unwrap().to_vec().unwrap().iter().all(|v| v.norm() == 0.0));
        assert!(maps(&Array::zeros(&device, &[4, 4]).unwrap(), 3).is_err());
        assert!(maps(&Array::zeros(&device, &[3, 0, 4]).unwrap(), 3).unwrap().is_empty());
    }
}
