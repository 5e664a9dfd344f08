use std::f64::consts::TAU;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::simulate::phantom::Contrast;

const SHAPES: [FieldShape; 3] = [FieldShape::Linear, FieldShape::Quadratic, FieldShape::Smooth];

#[test]
fn the_peak_is_the_largest_magnitude_over_the_field_of_view() {
    for shape in SHAPES {
        for dims in [2, 3] {
            let field = FieldMap { shape, peak_hz: -80.0 };
            let deep = if dims == 3 { 41 } else { 1 };
            let at = |i: usize, n: usize| if n == 1 { 0.0 } else { i as f64 / (n - 1) as f64 - 0.5 };
            let mut peak = 0.0f64;
            for z in 0..deep {
                for i in 0..101 * 101 {
                    let x = [at(i % 101, 101), at(i / 101, 101), at(z, deep)];
                    peak = peak.max(field.at(x, dims).abs());
                }
            }
            assert!((0.9..=1.0 + 1e-12).contains(&(peak / 80.0)), "{shape:?} {dims}-D: {}", peak / 80.0);
        }
    }
}

/// Σ over voxels 1/n wide, each ellipse's share of a voxel counted at `fine`² points, that formula that no
/// transform shares.
fn brute(
    phantom: &Phantom,
    coils: &CoilSensitivities,
    field: &FieldMap,
    n: usize,
    samples: &[([f64; 2], f64)],
) -> Vec<Vec<C64>> {
    let mut sums = vec![vec![C64::default(); samples.len()]; coils.coils()];
    let means = phantom.voxel_means([1, n, n]);
    for ((_, iy, ix), &mean) in means.indexed_iter().filter(|(_, mean)| **mean != 0.0) {
        let at = |i: usize| (i as f64 - (n / 2) as f64) / n as f64;
        let x = [at(ix), at(iy), 0.0];
        let seen = coils.at(x);
        let f = field.at(x, 2);
        for (m, (k, t)) in samples.iter().enumerate() {
            let wave = C64::cis(-TAU * (k[0] * x[0] + k[1] * x[1] + f * t)) * mean / (n * n) as f64;
            for (sum, c) in sums.iter_mut().zip(&seen) {
                sum[m] += c * wave;
            }
        }
    }
    sums
}

#[test]
fn samples_in_a_field_are_the_sum_over_fine_voxels() {
    let phantom = Phantom::shepp_logan_2d(Contrast::Modified);
    let coils = CoilSensitivities::loops(2, 2).unwrap();
    let samples = [([0.0, 0.0], 0.01), ([3.25, -2.5], 0.02), ([-7.0, 5.5], 0.013), ([1.0, 9.0], -0.004)];
    let points = Array2::from_shape_fn((4, 2), |(m, d)| samples[m].0[d]);
    let times: Vec<f64> = samples.iter().map(|s| s.1).collect();
    for shape in SHAPES {
        let field = FieldMap { shape, peak_hz: 90.0 };
        let slice = FieldSlice { z: 0.0, dims: 2 };
        let sampler = FieldSampler::new(&field, slice, &phantom, &coils, 10.0, 0.02).unwrap();
        let found = match sampler.shifted(&points, &times) {
            Some(shifted) => coils.sample(&phantom, shifted.view()).unwrap(),
            None => sampler.samples(points.view(), &times).unwrap().unwrap(),
        };
        let largest = found.iter().map(|v| v.norm()).fold(0.0, f64::max);
        // The midpoint rule's error falls with the square of the voxels: two of its sums tell where it goes.
        let [coarse, fine] = [300, 600].map(|n| brute(&phantom, &coils, &field, n, &samples));
        for (coil, row) in found.rows().into_iter().enumerate() {
            for (m, value) in row.iter().enumerate() {
                let (coarse, fine) = (coarse[coil][m], fine[coil][m]);
                let limit = fine + (fine - coarse) / 3.0;
                let apart = (value - limit).norm() / largest;
                assert!(apart < 1e-4, "{shape:?} coil {coil} sample {m}: {apart:.1e}");
            }
        }
    }
}

#[test]
fn quadrature_is_the_closed_form_where_there_is_one() {
    // A linear field seen as any other, over the whole range of a 128 matrix and of a long readout.
    let phantom = Phantom::shepp_logan_2d(Contrast::Modified);
    let coils = CoilSensitivities::loops(2, 3).unwrap();
    let field = FieldMap { shape: FieldShape::Linear, peak_hz: 100.0 };
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let points =
        Array2::from_shape_fn((300, 2), |(m, _)| if m == 0 { 0.0 } else { rng.random_range(-45.0..45.0) });
    let times: Vec<f64> = (0..300).map(|m| 1e-4 * m as f64 - 5e-3).collect();
    let shifted = FieldSampler::Linear { gradient: field.gradient(2) }.shifted(&points, &times).unwrap();
    let exact = coils.sample(&phantom, shifted.view()).unwrap();
    let at = |x: [f64; 3]| field.at(x, 2);
    let curved = Quadrature::new(&phantom, &coils, &at, 64.0 + 8.0 * 100.0 * 0.025).unwrap();
    let found = curved.samples(points.view(), &times).unwrap();
    let largest = exact.iter().map(|v| v.norm()).fold(0.0, f64::max);
    let apart = found.iter().zip(&exact).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
    assert!(apart < 1e-8 * largest, "{:.1e}", apart / largest);
}

#[test]
fn what_cannot_be_sampled_exactly_is_refused() {
    let field = |shape, peak_hz| FieldMap { shape, peak_hz };
    assert!(field(FieldShape::Quadratic, 50.0).check(3).is_err());
    assert!(field(FieldShape::Linear, 50.0).check(3).is_ok());
    assert!(field(FieldShape::Smooth, f64::NAN).check(2).is_err());
}

#[test]
fn a_field_with_more_nodes_than_memory_is_refused() {
    let field = FieldMap { shape: FieldShape::Smooth, peak_hz: 1e5 };
    let phantom = Phantom::shepp_logan_2d(crate::simulate::Contrast::Modified);
    let coils = CoilSensitivities::loops(2, 8).unwrap();
    let slice = FieldSlice { z: 0.0, dims: 2 };
    let refused = FieldSampler::new(&field, slice, &phantom, &coils, 128.0, 1e3).err();
    assert!(matches!(refused, Some(Error::Memory { .. })), "{refused:?}");
}
