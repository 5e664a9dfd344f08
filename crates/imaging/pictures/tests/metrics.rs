//! Metrics against hand-computed values, plain references and scikit-image.

use ndarray::{Array2, Array3, ArrayD, IxDyn, array};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, C64, Error};
use rayspin_imaging::metrics::{Better, better, nrmse, ssim};
use rayspin_imaging::{CompareOptions, Compared, Numbers, Quality, compare};

const FIT: CompareOptions<'static> = CompareOptions { numbers: Numbers::ByKind, fit: true, mask: None };

#[test]
fn metrics_of_a_two_by_two_image_by_hand() {
    let reference = array![[3.0f32, 0.0], [0.0, 4.0]];
    let image = array![[3.0f32, 1.0], [2.0, 4.0]];
    let q = compare(image.view(), reference.view(), &CompareOptions::default()).unwrap();
    // Σ|I−I₀|² = 5, Σ|I₀|² = 25, N = 4, max = 4.
    assert_eq!((q.voxels, q.mse, q.max_error, q.reference_max), (4, 1.25, 2.0, 4.0));
    assert!((q.nrmse - 0.2f64.sqrt()).abs() < 1e-15);
    assert!((q.error_percent - 44.721359549995796).abs() < 1e-12);
    assert!((q.psnr_db - 10.0 * (16.0f64 / 1.25).log10()).abs() < 1e-12);
    assert!((q.snr_db - 10.0 * 5.0f64.log10()).abs() < 1e-12);
    assert_eq!(q.scale, [1.0, 0.0]);
    assert_eq!(nrmse(image.view(), reference.view()).unwrap(), q.nrmse);
}

#[test]
fn complex_errors_count_both_parts_and_magnitude_ignores_phase() {
    let reference = array![[C32::new(0.0, 2.0), C32::new(1.0, 0.0)]];
    let image = array![[C32::new(2.0, 0.0), C32::new(1.0, 1e-30)]];
    let q = compare(image.view(), reference.view(), &CompareOptions::default()).unwrap();
    assert_eq!((q.compared, q.mse, q.reference_max, q.ssim), (Compared::ComplexValues, 4.0, 2.0, None));
    assert_eq!(ssim(image.view(), reference.view()).unwrap(), 1.0);
    let magnitude = CompareOptions { numbers: Numbers::Magnitudes, ..CompareOptions::default() };
    let q = compare(image.view(), reference.view(), &magnitude).unwrap();
    assert_eq!((q.compared, q.mse, q.ssim), (Compared::Magnitudes, 0.0, Some(1.0)));
}

#[test]
fn the_kinds_of_both_images_decide_what_all_metrics_are_of() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let truth = Array2::<f32>::from_shape_fn((16, 16), |(y, x)| 1.0 + ((3 * x + y) % 7) as f32);
    let turned = truth.mapv(|v| C32::from_polar(v, 2.0 * rng.random::<f32>()));
    let stored = truth.mapv(C32::from);
    // A complex image against a magnitude, whichever type holds it, either way round: phases say nothing.
    for q in [
        compare(turned.view(), truth.view(), &CompareOptions::default()),
        compare(turned.view(), stored.view(), &CompareOptions::default()),
        compare(stored.view(), turned.view(), &CompareOptions::default()),
    ] {
        let q = q.unwrap();
        assert_eq!(q.compared, Compared::Magnitudes);
        assert!(q.nrmse < 1e-6 && q.ssim.unwrap() > 0.999999, "{q:?}");
    }
    let as_they_are = CompareOptions { numbers: Numbers::AsTheyAre, ..CompareOptions::default() };
    let q = compare(turned.view(), truth.view(), &as_they_are).unwrap();
    assert_eq!((q.compared, q.ssim), (Compared::ComplexValues, None));
    assert!(q.nrmse > 0.5, "{q:?}");
    // Signs of real images count, in every metric.
    let negative = stored.mapv(|v| -v);
    let q = compare(negative.view(), stored.view(), &CompareOptions::default()).unwrap();
    assert_eq!((q.compared, q.nrmse), (Compared::RealValues, 2.0));
    let shifted = stored.mapv(|v| v - 4.0);
    let of_reals = ssim(truth.mapv(|v| v - 4.0).view(), truth.view()).unwrap();
    let of_magnitudes = ssim(shifted.view(), stored.view()).unwrap();
    let q = compare(shifted.view(), stored.view(), &CompareOptions::default()).unwrap();
    assert_eq!((q.compared, q.ssim), (Compared::RealValues, Some(of_reals)));
    assert!(of_magnitudes > 2.0 * of_reals, "{of_reals} {of_magnitudes}");
}

#[test]
fn the_rule_is_told_in_words() {
    let reference = array![[C32::new(3.0, 0.0), C32::new(0.0, 4.0)]];
    let rule = |image: &Array2<C32>, options: &CompareOptions<'_>| {
        compare(image.view(), reference.view(), options).unwrap().rule()
    };
    let half = reference.mapv(|v| v / 2.0);
    assert_eq!(rule(&half, &CompareOptions::default()), "complex values compared, no scale fitted");
    let quarter_turn = half.mapv(|v| v * C32::I);
    assert_eq!(rule(&quarter_turn, &FIT), "complex values compared, scale and phase fitted: ×2.0000, -90.0°");
    let magnitudes = half.mapv(|v| C32::from(v.norm()));
    assert_eq!(rule(&magnitudes, &FIT), "magnitudes compared, scale fitted: ×2.0000");
    let real = compare(array![[1.0f32]].view(), array![[-3.0f32]].view(), &FIT).unwrap();
    assert_eq!(real.rule(), "real values compared, scale fitted: ×-3.0000");
}

#[test]
fn a_zero_reference_has_defined_results() {
    let zero = Array2::<f32>::zeros((16, 16));
    let one = Array2::<f32>::ones((16, 16));
    let same = compare(zero.view(), zero.view(), &FIT).unwrap();
    assert_eq!((same.mse, same.nrmse, same.ssim), (0.0, 0.0, Some(1.0)));
    assert_eq!((same.psnr_db, same.snr_db), (f64::INFINITY, f64::INFINITY));
    let other = compare(one.view(), zero.view(), &CompareOptions::default()).unwrap();
    assert_eq!((other.mse, other.nrmse, other.ssim), (1.0, f64::INFINITY, Some(0.0)));
    assert_eq!((other.psnr_db, other.snr_db), (f64::NEG_INFINITY, f64::NEG_INFINITY));
    for quality in [same, other] {
        let text = serde_json::to_string(&quality).unwrap();
        assert_eq!(serde_json::from_str::<Quality>(&text).unwrap(), quality, "{text}");
    }
}

#[test]
fn a_constant_reference_scores_its_luminance_only() {
    let five = Array2::<f64>::from_elem((13, 17), 5.0);
    let three = Array2::<f64>::from_elem((13, 17), 3.0);
    let score = ssim(three.view(), five.view()).unwrap();
    assert!((score - 30.0 / 34.0).abs() < 1e-12, "{score}");
    assert_eq!(ssim(five.view(), five.view()).unwrap(), 1.0);
}

#[test]
fn refusals_name_the_array() {
    let a = Array2::<f32>::ones((3, 4));
    let b = Array2::<f32>::ones((4, 3));
    let options = CompareOptions::default();
    assert!(matches!(compare(a.view(), b.view(), &options), Err(Error::Shape { .. })));
    let mut bad = a.clone();
    bad[[1, 2]] = f32::NAN;
    match compare(bad.view(), a.view(), &options) {
        Err(Error::NotFinite { what, index, .. }) => assert_eq!((what.as_str(), index), ("image", 6)),
        other => panic!("{other:?}"),
    }
    bad[[1, 2]] = f32::INFINITY;
    match nrmse(a.view(), bad.view()) {
        Err(Error::NotFinite { what, .. }) => assert_eq!(what, "reference"),
        other => panic!("{other:?}"),
    }
    let empty = Array2::<f32>::zeros((0, 3));
    assert!(matches!(compare(empty.view(), empty.view(), &options), Err(Error::Value { .. })));
    assert!(matches!(nrmse(empty.view(), empty.view()), Err(Error::Value { .. })));
    let huge = Array2::<f64>::from_elem((2, 2), 1e200);
    let tiny = Array2::<f64>::zeros((2, 2));
    assert!(matches!(compare(huge.view(), tiny.view(), &options), Err(Error::Numerical { .. })));
}

#[test]
fn masks_select_voxels_and_broadcast_over_leading_axes() {
    let reference = Array3::<f32>::from_shape_fn((2, 2, 3), |(z, y, x)| (z + y + x) as f32);
    let mut image = reference.clone();
    image[[0, 0, 0]] += 3.0;
    image[[1, 1, 2]] += 100.0;
    let mask = array![[true, true, false], [false, false, false]];
    let options = CompareOptions { mask: Some(mask.view().into_dyn()), ..CompareOptions::default() };
    let q = compare(image.view(), reference.view(), &options).unwrap();
    assert_eq!((q.voxels, q.mse, q.max_error, q.reference_max), (4, 2.25, 3.0, 2.0));

    let none = Array2::from_elem((2, 3), false);
    let wrong = Array2::from_elem((3, 2), true);
    for mask in [none, wrong] {
        let options = CompareOptions { mask: Some(mask.view().into_dyn()), ..CompareOptions::default() };
        let refused = compare(image.view(), reference.view(), &options);
        assert!(matches!(refused, Err(Error::Value { .. } | Error::Shape { .. })), "{refused:?}");
    }
}

#[test]
fn ssim_with_a_mask_averages_window_centres_inside_it() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let y = Array2::<f64>::from_shape_fn((30, 40), |_| rng.random());
    let x = Array2::<f64>::from_shape_fn((30, 40), |_| rng.random());
    let (map, _) = ssim_reference(&x, &y);
    let mask = Array2::from_shape_fn((30, 40), |(r, c)| (r * 7 + c * 3) % 5 == 0);
    let options = CompareOptions { mask: Some(mask.view().into_dyn()), ..CompareOptions::default() };
    let found = compare(x.view(), y.view(), &options).unwrap().ssim.unwrap();
    let inside: Vec<f64> =
        map.indexed_iter().filter(|((r, c), _)| mask[[r + 5, c + 5]]).map(|(_, v)| *v).collect();
    let expected = inside.iter().sum::<f64>() / inside.len() as f64;
    assert!((found - expected).abs() < 1e-12);

    let corner = Array2::from_shape_fn((30, 40), |(r, c)| r == 0 && c == 0);
    let options = CompareOptions { mask: Some(corner.view().into_dyn()), ..CompareOptions::default() };
    assert_eq!(compare(x.view(), y.view(), &options).unwrap().ssim, None);
}

/// The formula as the paper has it: a full two-dimensional window at every position where it fits, central
/// moments.
fn ssim_reference(x: &Array2<f64>, y: &Array2<f64>) -> (Array2<f64>, f64) {
    let (ny, nx) = y.dim();
    let odd = |n: usize| (0..=n.min(11)).rev().find(|l| l % 2 == 1).unwrap_or(1);
    let (wy, wx) = (odd(ny), odd(nx));
    let mut window = Array2::from_shape_fn((wy, wx), |(i, j)| {
        let (a, b) = (i as f64 - (wy / 2) as f64, j as f64 - (wx / 2) as f64);
        (-(a * a + b * b) / (2.0 * 1.5 * 1.5)).exp()
    });
    window /= window.sum();
    let range = y.iter().fold(f64::MIN, |m, &v| m.max(v)) - y.iter().fold(f64::MAX, |m, &v| m.min(v));
    let (c1, c2) = ((0.01 * range).powi(2), (0.03 * range).powi(2));
    let map = Array2::from_shape_fn((ny - wy + 1, nx - wx + 1), |(r, c)| {
        let cut = |a: &Array2<f64>| a.slice(ndarray::s![r..r + wy, c..c + wx]).to_owned();
        let (p, q) = (cut(x), cut(y));
        let (mp, mq) = ((&p * &window).sum(), (&q * &window).sum());
        let (dp, dq) = (&p - mp, &q - mq);
        let vp = (&dp * &dp * &window).sum();
        let vq = (&dq * &dq * &window).sum();
        let cov = (&dp * &dq * &window).sum();
        (2.0 * mp * mq + c1) * (2.0 * cov + c2) / ((mp * mp + mq * mq + c1) * (vp + vq + c2))
    });
    let mean = map.sum() / map.len() as f64;
    (map, mean)
}

#[test]
fn ssim_matches_the_plain_formula_on_every_kind_of_size() {
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    for (ny, nx) in [(64, 48), (11, 11), (12, 31), (7, 40), (10, 4), (1, 20), (2, 2), (1, 1), (37, 53)] {
        let offset = rng.random::<f64>() * 1e3;
        let y = Array2::<f64>::from_shape_fn((ny, nx), |_| offset + rng.random::<f64>());
        let x = y.mapv(|v| v + 0.3 * rng.random::<f64>());
        if ny * nx == 1 {
            assert_eq!(ssim(y.view(), y.view()).unwrap(), 1.0);
            continue;
        }
        let (_, expected) = ssim_reference(&x, &y);
        let found = ssim(x.view(), y.view()).unwrap();
        assert!((found - expected).abs() < 1e-9, "{ny}×{nx}: {found} {expected}");
    }
}

fn formula_images() -> (Array3<f64>, Array3<f64>) {
    let shape = (3, 33, 40);
    let y = Array3::from_shape_fn(shape, |(z, y, x)| {
        let (z, y, x) = (z as f64, y as f64, x as f64);
        (0.3 * x + z).sin() * (0.2 * y).cos() + 0.05 * x
    });
    let x = Array3::from_shape_fn(shape, |(k, j, i)| {
        y[[k, j, i]] + 0.2 * (1.7 * i as f64 + 2.3 * j as f64 + k as f64).sin()
    });
    (x, y)
}

#[test]
fn ssim_is_that_of_scikit_image() {
    let (x, y) = formula_images();
    let found = ssim(x.view(), y.view()).unwrap();
    // structural_similarity of scikit-image 0.26 (gaussian_weights, sigma 1.5, use_sample_covariance=False,
    // data_range of the reference volume), mean over the three slices.
    assert!((found - SCIKIT_IMAGE).abs() < 1e-9, "{found:?}");

    let Ok(python) = std::env::var("RAYSPIN_PYTHON") else {
        println!("skipped: RAYSPIN_PYTHON is not set");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let noisy = y.mapv(|v| v + 0.1 * rng.random::<f64>());
    for image in [&x, &noisy] {
        let paths = [folder.path().join("x"), folder.path().join("y")];
        for (path, values) in paths.iter().zip([image, &y]) {
            std::fs::write(path, bytemuck::cast_slice(values.as_slice().unwrap())).unwrap();
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/interop/ssim_skimage.py");
        let run = std::process::Command::new(&python)
            .arg(script)
            .args(&paths)
            .args(["3", "33", "40"])
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let theirs: f64 = String::from_utf8(run.stdout).unwrap().trim().parse().unwrap();
        let ours = ssim(image.view(), y.view()).unwrap();
        assert!((ours - theirs).abs() < 1e-10, "{ours} {theirs}");
    }
}

const SCIKIT_IMAGE: f64 = 0.8536385906258929;

fn random_complex(seed: u64, n: usize) -> ArrayD<C32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    ArrayD::from_shape_simple_fn(IxDyn(&[n]), || {
        C32::new(rng.random::<f32>() - 0.5, rng.random::<f32>() - 0.5)
    })
}

/// Shading of four coils around an object of three parts, and other differences that are none.
#[test]
fn a_smooth_factor_between_images_is_found() {
    let place = |n: usize, i: usize| 2.0 * i as f64 / n as f64 - 1.0;
    let shape = IxDyn(&[2, 2, 48, 40]);
    let truth = ArrayD::from_shape_fn(shape.clone(), |i| {
        let (y, x) = (place(48, i[2]), place(40, i[3]));
        let inside =
            f64::from(u8::from(y.hypot(x) < 0.8)) + 0.6 * f64::from(u8::from(y.hypot(x - 0.2) < 0.3));
        (inside * (1.0 + 0.2 * i[0] as f64)) as f32
    });
    let coil = |y: f64, x: f64| 1.0 / ((y - 0.9).powi(2) + (x + 0.7).powi(2) + 1.5);
    let rss = |y: f64, x: f64| (coil(y, x).powi(2) + coil(-y, x).powi(2) + 0.05).sqrt();
    let shaded = ArrayD::from_shape_fn(shape.clone(), |i| {
        truth[&i] * 1.6 * rss(place(48, i[2]), place(40, i[3])) as f32
    });
    let other = |image: &ArrayD<f32>, options: &CompareOptions<'_>| {
        let quality = compare(image.view(), truth.view(), options).unwrap();
        (quality, better(image.view(), truth.view(), options, &quality).unwrap())
    };
    for options in [CompareOptions::default(), FIT] {
        let (quality, found) = other(&shaded, &options);
        let Some(Better::Shading(shading)) = found else { panic!("{found:?} of {quality:?}") };
        assert!(shading.error_percent < 0.25 * quality.error_percent, "{shading:?} of {quality:?}");
        let exact = truth.iter().zip(&shaded).filter(|(truth, _)| **truth > 0.2);
        let exact: Vec<f64> = exact.map(|(truth, shaded)| f64::from(truth / shaded)).collect();
        let [low, high] = shading.factor;
        let (least, most) =
            exact.iter().fold((f64::INFINITY, 0.0f64), |(least, most), &b| (least.min(b), most.max(b)));
        assert!((low / least - 1.0).abs() < 0.1 && (high / most - 1.0).abs() < 0.1, "{shading:?}");
    }
    // A smooth factor explains neither a shift nor a missing part.
    let shifted = ArrayD::from_shape_fn(shape.clone(), |i| truth[[i[0], i[1], i[2], (i[3] + 39) % 40]]);
    let missing = ArrayD::from_shape_fn(shape, |i| if i[3] == 22 { 0.0 } else { truth[&i] });
    for image in [&shifted, &missing] {
        let (quality, found) = other(image, &CompareOptions::default());
        assert!(quality.nrmse > 0.02 && found.is_none(), "{found:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sums_match_a_plain_reference(seed in any::<u64>(), n in 1usize..40_000) {
        let (image, reference) = (random_complex(seed, n), random_complex(!seed, n));
        let q = compare(image.view(), reference.view(), &CompareOptions::default()).unwrap();
        let (mut error, mut power) = (0.0f64, 0.0f64);
        for (i, r) in image.iter().zip(&reference) {
            error += (f64::from(i.re) - f64::from(r.re)).powi(2) + (f64::from(i.im) - f64::from(r.im)).powi(2);
            power += f64::from(r.re).powi(2) + f64::from(r.im).powi(2);
        }
        prop_assert!((q.mse - error / n as f64).abs() <= 1e-12 * q.mse);
        prop_assert!((q.nrmse - (error / power).sqrt()).abs() <= 1e-12 * q.nrmse);
    }

    #[test]
    fn a_fit_undoes_any_scale_and_is_real_where_numbers_are(
        seed in any::<u64>(),
        n in 1usize..500,
        size in 1e-3f64..1e3,
        angle in -3.0f64..3.0,
    ) {
        let reference = random_complex(seed, n).mapv(|v| C64::new(v.re.into(), v.im.into()));
        let factor = C64::from_polar(size, angle);
        let q = compare(reference.mapv(|v| v * factor).view(), reference.view(), &FIT).unwrap();
        prop_assert!(q.nrmse < 1e-14);
        let inverse = 1.0 / factor;
        prop_assert!((C64::new(q.scale[0], q.scale[1]) - inverse).norm() < 1e-12 * inverse.norm());
        // The factor of real numbers and of magnitudes is real, and no other does better.
        let real = reference.mapv(|v| v.re);
        let q = compare(real.mapv(|v| v * -size).view(), real.view(), &FIT).unwrap();
        prop_assert!(q.nrmse < 1e-14 && q.scale[1] == 0.0);
        let turned = reference.mapv(|v| v * factor + size);
        let of_magnitudes = |fit| CompareOptions { numbers: Numbers::Magnitudes, fit, mask: None };
        let best = compare(turned.view(), reference.view(), &of_magnitudes(true)).unwrap();
        prop_assert!(best.scale[0] > 0.0 && best.scale[1] == 0.0);
        for nudge in [0.99, 1.01] {
            let scaled = turned.mapv(|v| v * best.scale[0] * nudge);
            prop_assert!(compare(scaled.view(), reference.view(), &of_magnitudes(false)).unwrap().mse >= best.mse);
        }
    }

    #[test]
    fn memory_order_does_not_matter(seed in any::<u64>(), ny in 1usize..30, nx in 1usize..30) {
        let image = random_complex(seed, ny * nx).into_shape_with_order((ny, nx)).unwrap();
        let reference = random_complex(!seed, ny * nx).into_shape_with_order((ny, nx)).unwrap();
        let fortran = |a: &Array2<C32>| a.t().as_standard_layout().into_owned();
        let (i, r) = (fortran(&image), fortran(&reference));
        let options = CompareOptions::default();
        let c = compare(image.view(), reference.view(), &options).unwrap();
        let f = compare(i.t(), r.t(), &options).unwrap();
        prop_assert_eq!(c, f);
    }
}
