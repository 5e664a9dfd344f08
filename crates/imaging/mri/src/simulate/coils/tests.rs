use super::loops::Loop;
use super::*;
use crate::simulate::phantom::Contrast;
use crate::simulate::phantom::tests::integrate;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[test]
fn coil_images_have_the_k_space_of_the_product() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let solid = Phantom::shepp_logan_3d(Contrast::Modified);
    for (phantom, order, reach) in [
        (Phantom::shepp_logan_2d(Contrast::Modified), 96, 30.0),
        (Phantom::new(3, solid.parts()[1..3].to_vec()).unwrap(), 32, 4.0),
    ] {
        let dims = phantom.dims();
        let coils = CoilSensitivities::loops(dims, 3).unwrap();
        let k: [f64; 3] =
            std::array::from_fn(|axis| if axis < dims { rng.random_range(-reach..reach) } else { 0.0 });
        let points = Array2::from_shape_fn((1, dims), |(_, axis)| k[axis]);
        let samples = coils.sample(&phantom, points.view()).unwrap();
        for coil in 0..3 {
            let expected = integrate(&phantom, order, |x| {
                coils.at(x)[coil] * C64::cis(-TAU * (k[0] * x[0] + k[1] * x[1] + k[2] * x[2]))
            });
            let found = samples[[coil, 0]];
            assert!((found - expected).norm() < 1e-11, "{dims}-D k {k:?}: {found} {expected}");
        }
    }
}

#[test]
fn the_fit_is_close_to_the_loops_and_scaled() {
    for (dims, coils, bound) in
        [(2, 4, 0.03), (2, 8, 0.08), (2, 16, 0.08), (3, 4, 0.08), (3, 8, 0.08), (3, 16, 0.12), (3, 32, 0.12)]
    {
        let set = CoilSensitivities::loops(dims, coils).unwrap();
        println!(
            "{dims}-D {coils} coils: {} harmonics, fit error {:.4}",
            set.harmonics().len(),
            set.fit_error()
        );
        assert_eq!(set.coils(), coils);
        assert!(set.fit_error() < bound, "{dims} {coils} {}", set.fit_error());
        let n = if dims == 3 { 12 } else { 32 };
        let maps = set.maps([if dims == 3 { n } else { 1 }, n, n]);
        let rss = maps.mapv(|c| c.norm_sqr()).sum_axis(ndarray::Axis(0)).mapv(f32::sqrt);
        // Sensitivities stay of order one in the whole field, corners included.
        assert!(
            rss.iter().all(|v| *v > 0.15 && *v < 12.0),
            "{:?}",
            rss.iter().copied().fold((9f32, 0f32), |m, v| (m.0.min(v), m.1.max(v)))
        );
    }
}

#[test]
fn maps_and_slices_are_the_polynomial() {
    let set = CoilSensitivities::loops(3, 6).unwrap();
    let shape = [5, 4, 7];
    let maps = set.maps(shape);
    for ((coil, iz, iy, ix), value) in maps.indexed_iter() {
        let x = [(ix as f64 - 3.0) / 7.0, (iy as f64 - 2.0) / 4.0, (iz as f64 - 2.0) / 5.0];
        let expected = set.at(x)[coil];
        let found = C64::new(f64::from(value.re), f64::from(value.im));
        assert!((found - expected).norm() < 1e-6);
        let plane = set.slice(x[2]).at([x[0], x[1], 0.0])[coil];
        assert!((plane - expected).norm() < 1e-12);
    }
}

#[test]
fn loops_follow_biot_and_savart_on_their_axis() {
    // On the axis of a loop of radius a, at distance h: B = 2πa²/(a² + h²)^{3/2}.
    let one = Loop { centre: [0.7, 0.0, 0.0], normal: [1.0, 0.0, 0.0], radius: 0.3 };
    for x in [0.0, 0.3, 0.65] {
        let h: f64 = 0.7 - x;
        let expected = TAU * 0.09 / (0.09 + h * h).powf(1.5);
        let field = one.field(&[x, 0.0, 0.0]);
        assert!((field.re.abs() - expected).abs() < 1e-12 && field.im.abs() < 1e-12, "{field} {expected}");
    }
}

#[test]
fn bad_requests_are_refused() {
    assert!(CoilSensitivities::loops(2, 0).is_err());
    assert!(CoilSensitivities::loops(2, 257).is_err());
    assert!(CoilSensitivities::loops(1, 4).is_err());
    let set = CoilSensitivities::uniform(2);
    let phantom = Phantom::shepp_logan_2d(Contrast::Modified);
    assert!(set.sample(&phantom, Array2::zeros((4, 3)).view()).is_err());
    assert!(set.sample(&Phantom::shepp_logan_3d(Contrast::Modified), Array2::zeros((4, 2)).view()).is_err());
}
