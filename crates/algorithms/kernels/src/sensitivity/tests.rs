use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::C64;
use rayspin_device::Device;

use super::*;

const SIZES: [(usize, &[usize]); 9] = [
    (3, &[2, 191, 197]),
    (1, &[1]),
    (3, &[1, 1, 1]),
    (1, &[7, 5]),
    (8, &[13, 11]),
    (5, &[32, 32]),
    (4, &[2, 17, 31]),
    (32, &[3, 41, 19]),
    (2, &[1025]),
];

fn random<R: Real>(len: usize, rng: &mut ChaCha8Rng) -> Vec<Complex<R>> {
    let mut one = || <R as Real>::from_f64(rng.random_range(-1.0..1.0));
    (0..len).map(|_| Complex::new(one(), one())).collect()
}

fn wide<R: Real>(x: &[Complex<R>]) -> Vec<C64> {
    x.iter().map(|v| C64::new(v.re.to_f64(), v.im.to_f64())).collect()
}

fn assert_near(found: &[C64], expected: &[C64], tolerance: f64, what: &str) {
    let scale: f64 = expected.iter().map(C64::norm_sqr).sum::<f64>().sqrt();
    let apart: f64 = found.iter().zip(expected).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>().sqrt();
    assert!(apart <= tolerance * scale, "{what}: {apart} of {scale}");
}

fn variants_match_the_reference<R: Real>() {
    let device = Device::cpu_with_threads(2).unwrap();
    let cpu = device.cpu_side();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let nan = Complex::new(R::nan(), R::nan());
    for variant in variants::<R>() {
        for (coils, shape) in SIZES {
            let what = format!("{} {} {coils} × {shape:?}", variant.name, R::NAME);
            let (f, tol) = (&variant.implementation, variant.tolerance);
            let voxels = shape.iter().product();
            let maps = random::<R>(coils * voxels, &mut rng);
            let images = random::<R>(coils * voxels, &mut rng);
            let image = random::<R>(voxels, &mut rng);
            let (wmaps, wimages, wimage) = (wide(&maps), wide(&images), wide(&image));

            let mut out = vec![nan; coils * voxels];
            (f.expand)(cpu, &maps, &image, &mut out);
            assert_near(&wide(&out), &reference::expand(&wmaps, &wimage), tol, &what);

            let mut out = vec![nan; voxels];
            (f.combine)(cpu, &maps, &images, &mut out, false);
            let sum = reference::combine(&wmaps, &wimages, voxels);
            assert_near(&wide(&out), &sum, tol, &what);
            let mut out = image.clone();
            (f.combine)(cpu, &maps, &images, &mut out, true);
            let sum: Vec<_> = sum.iter().zip(&wimage).map(|(a, b)| a + b).collect();
            assert_near(&wide(&out), &sum, tol, &what);

            let squares = reference::sum_of_squares(&wimages, voxels);
            for root in [false, true] {
                let mut out = vec![R::nan(); voxels];
                (f.sum_of_squares)(cpu, &images, &mut out, root);
                let found: Vec<C64> = out.iter().map(|&v| v.to_f64().into()).collect();
                let expected: Vec<C64> =
                    squares.iter().map(|&s| if root { s.sqrt() } else { s }.into()).collect();
                assert_near(&found, &expected, tol, &what);
            }
        }
    }
}

#[test]
fn every_variant_matches_the_reference() {
    variants_match_the_reference::<f32>();
    variants_match_the_reference::<f64>();
}

#[test]
fn blocks_of_coils_add_up_to_all_of_them() {
    let device = Device::cpu_with_threads(2).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (coils, shape) = (7, [13, 90]);
    let all = [coils, shape[0], shape[1]];
    let voxels = shape[0] * shape[1];
    let make = |len: usize, shape: &[usize], rng: &mut ChaCha8Rng| {
        Array::from_vec(&device, shape, random::<f64>(len, rng)).unwrap()
    };
    let maps = make(coils * voxels, &all, &mut rng);
    let image = make(voxels, &shape, &mut rng);
    let mut whole = make(coils * voxels, &all, &mut rng);
    expand(&maps, &image, &mut whole).unwrap();
    let mut combined = make(voxels, &shape, &mut rng);
    combine(&maps, &whole, &mut combined).unwrap();

    let mut sum = Array::zeros(&device, &shape).unwrap();
    let mut of_rows = Array::zeros(&device, &shape).unwrap();
    for range in [0..3, 3..6, 6..7] {
        combine_rows_add(&maps, range.clone(), &whole, range.clone(), &mut of_rows).unwrap();
        let mut block = make(range.len() * voxels, &[range.len(), 13, 90], &mut rng);
        expand_coils(&maps, range.clone(), &image, &mut block).unwrap();
        assert_eq!(block.cpu(), &whole.cpu()[range.start * voxels..range.end * voxels]);
        combine_coils_add(&maps, range, &block, &mut sum).unwrap();
    }
    assert_near(sum.cpu(), combined.cpu(), 1e-14, "blocks");
    assert_eq!(of_rows.cpu(), sum.cpu());
    assert!(combine_rows_add(&maps, 0..2, &whole, 6..8, &mut sum).is_err());
    assert!(combine_rows_add(&maps, 0..2, &whole, 3..6, &mut sum).is_err());
}

#[test]
fn an_image_is_divided_by_the_sum_of_squares() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let (mut maps, image) = (random::<f64>(3 * 70, &mut rng), random::<f64>(70, &mut rng));
    // No coil sees this voxel.
    (0..3).for_each(|coil| maps[coil * 70 + 9] = Complex::default());
    for device in rayspin_emu::devices().unwrap() {
        let maps = Array::from_slice(&device, &[3, 7, 10], &maps).unwrap();
        let whole = |by: &dyn Fn(&mut Array<C64>)| {
            let mut image = Array::from_slice(&device, &[7, 10], &image).unwrap();
            by(&mut image);
            image.to_vec().unwrap()
        };
        let expected = whole(&|image| normalise(&maps, image).unwrap());
        let found = whole(&|image| divide(&sum_of_squares(&maps).unwrap(), image).unwrap());
        assert_near(&found, &expected, 1e-14, "divide");
        assert_eq!(found[9], C64::default());
    }
}

#[test]
fn squares_of_extreme_f32_neither_overflow_nor_vanish() {
    let device = Device::cpu_with_threads(1).unwrap();
    for size in [1e30f32, 1e-30] {
        let images = Array::from_vec(
            &device,
            &[2, 1],
            vec![Complex::new(3.0 * size, 0.0), Complex::new(0.0, 4.0 * size)],
        );
        let root = root_sum_of_squares(&images.unwrap()).unwrap();
        assert!((root.cpu()[0] / (5.0 * size) - 1.0).abs() < 1e-6);
    }
}

#[test]
fn mismatches_are_named() {
    let device = Device::cpu_with_threads(1).unwrap();
    let zeros = |shape: &[usize]| Array::<Complex<f32>>::zeros(&device, shape).unwrap();
    let maps = zeros(&[4, 6, 5]);
    let error = expand(&maps, &zeros(&[5, 6]), &mut zeros(&[4, 6, 5])).unwrap_err();
    assert_eq!(error.to_string(), "expand: image: expected shape [6, 5], found [5, 6]");
    let error = combine(&maps, &zeros(&[3, 6, 5]), &mut zeros(&[6, 5])).unwrap_err();
    assert_eq!(error.to_string(), "combine: coil images: expected shape [4, 6, 5], found [3, 6, 5]");
    assert!(expand_coils(&maps, 3..5, &zeros(&[6, 5]), &mut zeros(&[2, 6, 5])).is_err());
    assert!(sum_of_squares(&zeros(&[])).is_err());
    assert_eq!(sum_of_squares(&zeros(&[0, 3])).unwrap().cpu(), [0.0; 3]);
    assert_eq!(sum_of_squares(&zeros(&[3, 0])).unwrap().len(), 0);
    let mut poisoned = zeros(&[3]);
    poisoned.fill(Complex::new(f32::NAN, 0.0)).unwrap();
    combine(&zeros(&[0, 3]), &zeros(&[0, 3]), &mut poisoned).unwrap();
    assert_eq!(poisoned.cpu(), [Complex::default(); 3]);
}
