use super::*;
use crate::simulate::field::gauss_legendre;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::{PI, TAU};

/// ∫ f(x) over every ellipsoid of the phantom times its intensity, by Gauss–Legendre rules and, round the
/// circle, the
/// trapezoid rule: both converge exponentially for smooth f.
pub(crate) fn integrate(phantom: &Phantom, order: usize, f: impl Fn([f64; 3]) -> C64) -> C64 {
    let radii = gauss_legendre(order);
    let turns = 2 * order;
    let mut total = C64::default();
    for part in phantom.parts() {
        let (sin, cos) = part.angle.sin_cos();
        let [a, b, c] = part.semi_axes;
        let place = |u: f64, v: f64, w: f64| {
            let (p, q) = (a * u, b * v);
            [
                part.centre[0] + cos * p - sin * q,
                part.centre[1] + sin * p + cos * q,
                if phantom.dims() == 3 { part.centre[2] + c * w } else { 0.0 },
            ]
        };
        let mut sum = C64::default();
        for &(r, wr) in &radii {
            for turn in 0..turns {
                let (s, t) = (TAU * turn as f64 / turns as f64).sin_cos();
                if phantom.dims() == 2 {
                    sum += f(place(r * t, r * s, 0.0)) * (r * wr * TAU / turns as f64);
                } else {
                    for &(h, wh) in &radii {
                        let z = 2.0 * h - 1.0;
                        let rho = r * (1.0 - z * z).sqrt();
                        let weight = r * r * wr * 2.0 * wh * TAU / turns as f64;
                        sum += f(place(rho * t, rho * s, r * z)) * weight;
                    }
                }
            }
        }
        let volume = a * b * if phantom.dims() == 3 { c } else { 1.0 };
        total += sum * part.intensity * volume;
    }
    total
}

#[test]
fn closed_form_2d_equals_the_integral() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for contrast in [Contrast::Standard, Contrast::Modified] {
        let phantom = Phantom::shepp_logan_2d(contrast);
        for round in 0..12 {
            let reach = [0.0, 1e-9, 1e-3, 1.0, 40.0][round % 5];
            let k: [f64; 3] = [rng.random_range(-1.0..1.0) * reach, rng.random_range(-1.0..1.0) * reach, 0.0];
            let wave = |x: [f64; 3]| C64::cis(-TAU * (k[0] * x[0] + k[1] * x[1]));
            let expected = integrate(&phantom, 120, wave);
            let found = phantom.transform(&k[..2]);
            assert!((found - expected).norm() < 1e-12, "k {k:?}: {found} against {expected}");
        }
    }
}

#[test]
fn closed_form_3d_equals_the_integral() {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let phantom = Phantom::shepp_logan_3d(Contrast::Modified);
    for reach in [0.0, 1e-9, 0.02, 0.3, 10.0] {
        let k: [f64; 3] = std::array::from_fn(|_| rng.random_range(-1.0..1.0) * reach);
        let wave = |x: [f64; 3]| C64::cis(-TAU * (k[0] * x[0] + k[1] * x[1] + k[2] * x[2]));
        let expected = integrate(&phantom, 48, wave);
        let found = phantom.transform(&k);
        assert!((found - expected).norm() < 1e-12, "k {k:?}: {found} against {expected}");
    }
}

#[test]
fn radial_functions_are_smooth_where_their_formulas_change() {
    use super::transform::{ball, jinc};
    assert_eq!(jinc(0.0), PI);
    assert!((jinc(1e-8) - PI).abs() < 1e-14);
    assert!((ball(0.0) - 4.0 * PI / 3.0).abs() < 1e-15);
    // J₁(3.7)/(3.7/2π) from tables: J₁(3.7) = 0.05383398774…
    assert!((jinc(3.7 / TAU) * 3.7 / TAU - 0.053_833_987_745_14).abs() < 1e-12);
    let edge = 0.7 / TAU;
    let (below, above) = (ball(edge * (1.0 - 1e-12)), ball(edge * (1.0 + 1e-12)));
    assert!((below - above).abs() < 1e-11, "{below} {above}");
}

#[test]
fn a_slice_of_the_3d_phantom_is_its_cross_section() {
    let phantom = Phantom::shepp_logan_3d(Contrast::Modified);
    let mut rng = ChaCha8Rng::seed_from_u64(13);
    for z in [-0.3, -0.125, 0.0, 0.31] {
        let slice = phantom.slice(z).unwrap();
        for _ in 0..2000 {
            let x = [rng.random_range(-0.5..0.5), rng.random_range(-0.5..0.5), z];
            assert!((phantom.intensity(&x) - slice.intensity(&x[..2])).abs() < 1e-12);
        }
    }
    assert!(phantom.slice(0.46).unwrap().parts().is_empty());
    assert!(Phantom::shepp_logan_2d(Contrast::Standard).slice(0.0).is_err());
}

#[test]
fn voxel_means_agree_with_dense_sampling_and_keep_the_integral() {
    for (phantom, shape) in [
        (Phantom::shepp_logan_2d(Contrast::Modified), [1, 37, 24]),
        (Phantom::shepp_logan_3d(Contrast::Standard), [9, 10, 7]),
    ] {
        let image = phantom.voxel_means(shape);
        let [nz, ny, nx] = shape;
        let voxels = (nz * ny * nx) as f64;
        // At odd n the voxels reach (n/2 + ½)/n = ½ on both sides; at even n they miss half a voxel of
        // background.
        let total = phantom.transform(&[0.0; 3]).re;
        assert!((image.sum() / voxels - total).abs() < 2e-3 * total);
        let fine = 24;
        for (iz, iy, ix) in [(nz / 2, ny / 2, nx / 2), (nz / 2, 3, nx / 3), (nz / 3, ny / 4, nx / 2)] {
            let mut mean = 0.0;
            let at = |i: usize, s: usize, n: usize| {
                (i as f64 - (n / 2) as f64 - 0.5 + (s as f64 + 0.5) / fine as f64) / n as f64
            };
            let deep = if phantom.dims() == 3 { fine } else { 1 };
            for (sz, sy, sx) in
                (0..deep).flat_map(|z| (0..fine).flat_map(move |y| (0..fine).map(move |x| (z, y, x))))
            {
                mean += phantom.intensity(&[at(ix, sx, nx), at(iy, sy, ny), at(iz, sz, nz)]);
            }
            mean /= (deep * fine * fine) as f64;
            assert!((image[[iz, iy, ix]] - mean).abs() < 0.03, "{iz} {iy} {ix}");
        }
    }
}

#[test]
fn the_head_is_upright_and_the_larger_ventricle_is_on_the_left_of_the_display() {
    let phantom = Phantom::shepp_logan_2d(Contrast::Modified);
    let image = phantom.voxel_means([1, 64, 64]);
    // The bright blob lies above the centre, the three small tumours below it.
    assert!((image[[0, 20, 32]] - 0.3).abs() < 1e-9, "{}", image[[0, 20, 32]]);
    assert!(phantom.intensity(&[0.0, 0.303]) > 0.29);
    // Ventricles are dark on both sides; the left one is wider.
    let row = |from: usize, to: usize| (from..to).filter(|x| image[[0, 32, *x]].abs() < 0.05).count();
    assert!(row(16, 32) > row(32, 48) && row(32, 48) > 2);
}

#[test]
fn bad_phantoms_are_refused() {
    let good = Phantom::shepp_logan_2d(Contrast::Standard).parts()[0];
    assert!(Phantom::new(2, vec![good]).is_ok());
    assert!(Phantom::new(1, vec![good]).is_err());
    assert!(Phantom::new(2, vec![]).is_err());
    let flat = Ellipsoid { semi_axes: [0.0, 1.0, 1.0], ..good };
    assert!(Phantom::new(2, vec![flat]).is_err());
    let nan = Ellipsoid { intensity: f64::NAN, ..good };
    assert!(matches!(Phantom::new(2, vec![nan]), Err(Error::NotFinite { .. })));
}

/// The parts of the thorax lie in each other or apart at every time of a beat, so intensities stay between 0
/// and 1.
#[test]
fn the_parts_of_a_thorax_do_not_cross() {
    use crate::simulate::Dynamics;
    let still = Phantom::thorax(2);
    for step in 0..8 {
        let beat = Dynamics::Beat { period_s: 1.0 };
        let thorax = beat.at(&still, f64::from(step) / 8.0).unwrap();
        let parts = thorax.parts();
        let outline = |part: &Ellipsoid| -> Vec<[f64; 2]> {
            let (sin, cos) = part.angle.sin_cos();
            let point = |turn: i32| {
                let (s, c) = (TAU * f64::from(turn) / 200.0).sin_cos();
                let (p, q) = (part.semi_axes[0] * c, part.semi_axes[1] * s);
                [part.centre[0] + cos * p - sin * q, part.centre[1] + sin * p + cos * q]
            };
            (0..200).map(point).collect()
        };
        for (i, inner) in parts.iter().enumerate() {
            let points = outline(inner);
            for (j, outer) in parts.iter().enumerate().filter(|&(j, _)| j != i) {
                let inside = points.iter().filter(|point| contains(outer, &point[..], 2)).count();
                assert!([0, points.len()].contains(&inside), "time {step}: {i} crosses {j}");
            }
        }
        for x in voxels_of(&thorax) {
            assert!((-1e-12..=1.0 + 1e-12).contains(&x), "time {step}: intensity {x}");
        }
    }
}

fn voxels_of(phantom: &Phantom) -> Vec<f64> {
    phantom.voxel_means([1, 96, 96]).into_iter().collect()
}
