use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Trajectory};

use super::*;

const TAU: f64 = std::f64::consts::TAU;

pub(super) fn cpu() -> Device {
    Device::cpu_with_threads(2).unwrap()
}

/// Where points lie: `scale(d)` is the matrix along component d.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Set {
    /// Anywhere, beyond ±n/2 too.
    Uniform,
    /// Spokes through the centre.
    Radial,
    /// One arm from the centre outwards.
    Spiral,
    /// A ball of 1/50 of the extent.
    Clustered,
    OnePoint,
    /// Exactly on the edges ±n/2 and at integers.
    Lattice,
}

pub(super) const SETS: [Set; 6] =
    [Set::Uniform, Set::Radial, Set::Spiral, Set::Clustered, Set::OnePoint, Set::Lattice];

pub(super) fn points(set: Set, samples: usize, matrix: &[usize], rng: &mut ChaCha8Rng) -> Trajectory {
    let dims = matrix.len();
    let centre: Vec<f64> = (0..dims).map(|_| rng.random::<f64>() - 0.5).collect();
    let spokes = (samples as f64).sqrt().ceil() as usize;
    let points = Array2::from_shape_fn((samples, dims), |(i, d)| {
        let n = matrix[dims - 1 - d] as f64;
        let (angle, tilt) = ((i / spokes) as f64 * 2.4, (i / spokes) as f64 * 0.77);
        let direction = [angle.cos() * tilt.cos(), angle.sin() * tilt.cos(), tilt.sin()];
        n * match set {
            Set::Uniform => 3.0 * (rng.random::<f64>() - 0.5),
            Set::Radial => direction[d] * ((i % spokes) as f64 / spokes as f64 - 0.5),
            Set::Spiral => {
                let t = i as f64 / samples as f64;
                0.5 * t * [(40.0 * t).cos(), (40.0 * t).sin(), (9.0 * t).sin()][d]
            }
            Set::Clustered => centre[d] + 0.02 * (rng.random::<f64>() - 0.5),
            Set::OnePoint => centre[d],
            Set::Lattice => (rng.random_range(0..=2 * n as i64) as f64 * 0.5 - n / 2.0) / n,
        }
    });
    Trajectory::from_cycles_per_fov(points).unwrap()
}

pub(super) fn random(len: usize, rng: &mut ChaCha8Rng) -> Vec<C64> {
    (0..len).map(|_| C64::new(rng.random::<f64>() - 0.5, rng.random::<f64>() - 0.5)).collect()
}

/// The nearest values in another precision, and the same values widened again for the oracle.
pub(super) fn narrow<R: Real>(values: &[C64]) -> (Vec<Complex<R>>, Vec<C64>) {
    let narrow: Vec<Complex<R>> = values
        .iter()
        .map(|v| Complex::new(<R as Real>::from_f64(v.re), <R as Real>::from_f64(v.im)))
        .collect();
    let widened = widen(&narrow);
    (narrow, widened)
}

pub(super) fn widen<R: Real>(values: &[Complex<R>]) -> Vec<C64> {
    values.iter().map(|v| C64::new(v.re.to_f64(), v.im.to_f64())).collect()
}

pub(super) fn distance(found: &[C64], expected: &[C64]) -> f64 {
    let norm = |v: &mut dyn Iterator<Item = C64>| v.map(|c| c.norm_sqr()).sum::<f64>().sqrt();
    norm(&mut found.iter().zip(expected).map(|(f, e)| f - e)) / norm(&mut expected.iter().copied())
}

pub(super) fn nan<R: Real>(device: &Device, shape: &[usize]) -> Array<Complex<R>> {
    let mut array = Array::zeros(device, shape).unwrap();
    array.fill(Complex::new(R::nan(), R::nan())).unwrap();
    array
}

#[test]
fn upsampling_is_chosen_by_points_and_matrix() {
    // Few points on a large matrix: a small fine grid; many points on a small one: a narrow kernel.
    let chosen = |samples| choose::<f32>(1e-3, &[128, 128, 128], samples).unwrap().0;
    assert_eq!(chosen(100_000), 1.25);
    assert!(chosen(100_000_000) >= 1.875);
    // Rounding forbids the smallest grid in single precision.
    assert!(kernel_for::<f32>(1e-5, 1.25, 3).is_err());
    assert!(choose::<f32>(1e-5, &[128, 128, 128], 1).unwrap().0 > 1.25);
}

#[test]
fn many_points_in_several_parts_are_all_spread() {
    // More points than a part holds, most of them in one slab; few slabs and many.
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let few = [vec![40], vec![24, 24], vec![8, 10, 24]];
    let many = [vec![5000], vec![161, 24], vec![120, 8, 9]];
    for matrix in few.into_iter().chain(many) {
        let (dims, samples) = (matrix.len(), 80_000);
        let trajectory = Trajectory::from_cycles_per_fov(Array2::from_shape_fn((samples, dims), |(i, d)| {
            let n = matrix[dims - 1 - d] as f64;
            let scale = if i % 4 == 0 { 1.0 } else { 0.01 };
            scale * n * (rng.random::<f64>() - 0.5)
        }))
        .unwrap();
        let device = cpu();
        let plan = Nufft::<f64>::new(&device, &trajectory, &matrix, &Options::tolerance(1e-9)).unwrap();
        let gridding = &plan.on_cpu().unwrap().gridding;
        assert!(gridding.parts.len() > gridding.layout.slabs());
        let data = random(samples, &mut rng);
        let mut image = nan(&device, &matrix);
        plan.adjoint(&Array::from_vec(&device, &[samples], data.clone()).unwrap(), &mut image).unwrap();
        let which: Vec<usize> = (0..image.len()).step_by(image.len() / 20 + 1).collect();
        let expected = reference::adjoint_at(&trajectory, &matrix, &data, which.iter().copied());
        let found: Vec<C64> = which.iter().map(|&i| image.cpu()[i]).collect();
        assert!(distance(&found, &expected) < BOUND * 1e-9, "{matrix:?}");
        // What is added to a grid of zeros, or of ones, is what overwrites it, or that and one.
        let (cpu, data) = (device.cpu_side(), Array::from_vec(&device, &[samples], data).unwrap());
        let mut spread = nan(&device, plan.fine_shape());
        let mut halo = vec![C64::new(f64::NAN, f64::NAN); gridding.halo_len()];
        let fine = cpu::Fine { grid: spread.cpu_mut(), halo: &mut halo, add: false };
        gridding.spread(cpu, data.cpu(), fine, cpu::simd::spread);
        for start in [0.0, 1.0] {
            let mut grid = nan(&device, plan.fine_shape());
            grid.fill(C64::new(start, 0.0)).unwrap();
            plan.spread_onto(&data, 0, &mut grid).unwrap();
            let expected: Vec<C64> = spread.cpu().iter().map(|s| s + start).collect();
            assert!(distance(grid.cpu(), &expected) < 1e-14, "{matrix:?}, onto {start}");
        }
    }
}

#[test]
fn a_plan_goes_over_to_other_points() {
    fn check<R: Real>(device: &Device, matrix: &[usize], rng: &mut ChaCha8Rng) {
        let options = Options::tolerance(1e-3);
        let first = points(Set::Uniform, 3000, matrix, rng);
        let mut plan = Nufft::<R>::new(device, &first, matrix, &options).unwrap();
        let (upsampling, voxels) = (Some(plan.upsampling()), matrix.iter().product::<usize>());
        // A whole group of items, and one more; fewer points, more points, and fewer again.
        let batch = 5;
        for samples in [3000, 700, 5000, 1] {
            let trajectory = points(Set::Radial, samples, matrix, rng);
            plan.set_points(&trajectory).unwrap();
            assert_eq!(plan.samples(), samples);
            let fresh =
                Nufft::<R>::new(device, &trajectory, matrix, &Options { upsampling, ..options }).unwrap();
            let shape = [&[batch], matrix].concat();
            let image = Array::from_vec(device, &shape, narrow::<R>(&random(batch * voxels, rng)).0).unwrap();
            let data =
                Array::from_vec(device, &[batch, samples], narrow::<R>(&random(batch * samples, rng)).0)
                    .unwrap();
            let run = |plan: &Nufft<R>| {
                let (mut forward, mut adjoint) =
                    (nan::<R>(device, data.shape()), nan::<R>(device, image.shape()));
                plan.forward(&image, &mut forward).unwrap();
                plan.adjoint(&data, &mut adjoint).unwrap();
                [forward.to_vec().unwrap(), adjoint.to_vec().unwrap()]
            };
            for (found, expected) in run(&plan).iter().zip(&run(&fresh)) {
                let bound = 10.0 * <R as Real>::EPSILON.to_f64();
                assert!(distance(&widen(found), &widen(expected)) < bound, "{matrix:?}, {samples}");
            }
        }
        // A trajectory of other axes is refused, and the plan stays as it was.
        let other = points(Set::Uniform, 10, &[8, 8, 8][..matrix.len() % 3 + 1], rng);
        assert!(plan.set_points(&other).is_err());
        assert_eq!(plan.samples(), 1);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(31);
    for device in std::iter::once(&cpu()).chain(crate::cuda::gpus()) {
        for matrix in [&[30][..], &[21, 30], &[9, 8, 13]] {
            check::<f32>(device, matrix, &mut rng);
            check::<f64>(device, matrix, &mut rng);
        }
    }
}

#[test]
fn types_are_adjoint() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let device = cpu();
    for matrix in [vec![19], vec![14, 9], vec![6, 11, 8]] {
        let trajectory = points(Set::Uniform, 333, &matrix, &mut rng);
        // The pair is adjoint to rounding at any tolerance: spreading is the transpose of interpolation.
        let plan = Nufft::<f64>::new(&device, &trajectory, &matrix, &Options::tolerance(1e-2)).unwrap();
        let image = Array::from_vec(&device, &matrix, random(matrix.iter().product(), &mut rng)).unwrap();
        let data = Array::from_vec(&device, &[333], random(333, &mut rng)).unwrap();
        let (mut forward, mut adjoint) = (nan(&device, &[333]), nan(&device, &matrix));
        plan.forward(&image, &mut forward).unwrap();
        plan.adjoint(&data, &mut adjoint).unwrap();
        let inner = |a: &[C64], b: &[C64]| a.iter().zip(b).map(|(a, b)| a.conj() * b).sum::<C64>();
        let (left, right) = (inner(forward.cpu(), data.cpu()), inner(image.cpu(), adjoint.cpu()));
        assert!((left - right).norm() < 1e-13 * left.norm().max(1.0), "{left} {right}");
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut rng = ChaCha8Rng::seed_from_u64(13);
    let matrix = [40, 50];
    let trajectory = points(Set::Radial, 100_000, &matrix, &mut rng);
    let (data, _) = narrow::<f32>(&random(100_000, &mut rng));
    let images: Vec<_> = [1, 2, 3]
        .map(|threads| {
            let device = Device::cpu_with_threads(threads).unwrap();
            let plan = Nufft::<f32>::new(&device, &trajectory, &matrix, &Options::tolerance(1e-4)).unwrap();
            let mut image = nan(&device, &matrix);
            let data = Array::from_vec(&device, &[100_000], data.clone()).unwrap();
            plan.adjoint(&data, &mut image).unwrap();
            image.to_host().unwrap()
        })
        .to_vec();
    assert_eq!(images[0], images[1]);
    assert_eq!(images[0], images[2]);
}

#[test]
fn a_batch_is_its_items_whatever_the_number_of_threads() {
    fn check<R: Real>(matrix: &[usize], tolerance: f64) {
        const SAMPLES: usize = 9001;
        let mut rng = ChaCha8Rng::seed_from_u64(29);
        let trajectory = points(Set::Uniform, SAMPLES, matrix, &mut rng);
        let voxels: usize = matrix.iter().product();
        // A whole group and some.
        let batch = cpu::group::items::<R>(2) + 1;
        let (images, _) = narrow::<R>(&random(batch * voxels, &mut rng));
        let (data, _) = narrow::<R>(&random(batch * SAMPLES, &mut rng));
        let run = |threads: usize, together: usize| {
            let device = Device::cpu_with_threads(threads).unwrap();
            let plan = Nufft::<R>::new(&device, &trajectory, matrix, &Options::tolerance(tolerance)).unwrap();
            let (mut forward, mut adjoint) = (Vec::new(), Vec::new());
            for (images, data) in images.chunks(together * voxels).zip(data.chunks(together * SAMPLES)) {
                let images =
                    Array::from_vec(&device, &[&[together], matrix].concat(), images.to_vec()).unwrap();
                let data = Array::from_vec(&device, &[together, SAMPLES], data.to_vec()).unwrap();
                let (mut f, mut a) = (nan(&device, data.shape()), nan(&device, images.shape()));
                plan.forward(&images, &mut f).unwrap();
                plan.adjoint(&data, &mut a).unwrap();
                forward.extend_from_slice(f.cpu());
                adjoint.extend_from_slice(a.cpu());
            }
            [forward, adjoint]
        };
        let [one, two, three] = [1, 2, 3].map(|threads| run(threads, batch));
        assert_eq!(one, two);
        assert_eq!(one, three);
        for (together, single) in one.iter().zip(&run(2, 1)) {
            let bound = 10.0 * <R as Real>::EPSILON.to_f64();
            assert!(distance(&widen(together), &widen(single)) < bound, "{}, {matrix:?}", R::NAME);
        }
    }
    for matrix in [&[90][..], &[21, 30], &[9, 8, 13]] {
        for tolerance in [1e-1, 1e-3, 1e-5] {
            check::<f32>(matrix, tolerance);
            check::<f64>(matrix, tolerance);
        }
    }
}

#[test]
fn every_variant_agrees_with_the_first() {
    fn check<R: Real>() {
        let mut rng = ChaCha8Rng::seed_from_u64(17);
        let device = cpu();
        for matrix in [vec![37], vec![20, 23], vec![9, 12, 10]] {
            for tolerance in [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6] {
                let trajectory = points(Set::Uniform, 500, &matrix, &mut rng);
                let plan =
                    Nufft::<R>::new(&device, &trajectory, &matrix, &Options::tolerance(tolerance)).unwrap();
                let (data, _) = narrow::<R>(&random(500, &mut rng));
                let data = Array::from_vec(&device, &[500], data).unwrap();
                let (cells, _) = narrow::<R>(&random(plan.fine_shape().iter().product(), &mut rng));
                let cells = Array::from_vec(&device, plan.fine_shape(), cells).unwrap();
                let mut first: Option<(Vec<C64>, Vec<C64>)> = None;
                let rows = spread_variants::<R>().into_iter().zip(interp_variants::<R>());
                for (spread, interp) in rows.filter(|(spread, _)| spread.backend == device.kind()) {
                    assert!((spread.refuses)(&Problem::of(&plan)).is_none());
                    assert!((spread.work)(&Problem::of(&plan)).flops > 0.0);
                    let mut grid = nan(&device, plan.fine_shape());
                    let mut values = nan(&device, &[500]);
                    (spread.implementation)(&plan, &data, &mut grid).unwrap();
                    (interp.implementation)(&plan, &cells, &mut values).unwrap();
                    let (grid, values) = (widen(grid.cpu()), widen(values.cpu()));
                    if let Some((g, v)) = &first {
                        assert!(distance(&grid, g) < spread.tolerance, "{}", spread.name);
                        assert!(distance(&values, v) < interp.tolerance, "{}", interp.name);
                    } else {
                        first = Some((grid, values));
                    }
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn a_centred_delta_gives_ones_and_a_shifted_one_its_phase() {
    let device = cpu();
    let mut rng = ChaCha8Rng::seed_from_u64(19);
    let matrix = [6, 9];
    let trajectory = points(Set::Uniform, 40, &matrix, &mut rng);
    let plan = Nufft::<f64>::new(&device, &trajectory, &matrix, &Options::tolerance(1e-12)).unwrap();
    let mut image = vec![C64::default(); 54];
    // Two voxels up in y, one back in x: x = −1/9, y = 2/6.
    image[(3 + 2) * 9 + 4 - 1] = C64::new(1.0, 0.0);
    let mut samples = nan(&device, &[40]);
    plan.forward(&Array::from_vec(&device, &matrix, image).unwrap(), &mut samples).unwrap();
    for (j, s) in samples.cpu().iter().enumerate() {
        let k = trajectory.point(j);
        let expected = C64::cis(-TAU * (k[1] * 2.0 / 6.0 - k[0] / 9.0));
        assert!((s - expected).norm() < 1e-11);
    }
}

#[test]
fn bad_input_is_named() {
    let device = cpu();
    let mut rng = ChaCha8Rng::seed_from_u64(23);
    let trajectory = points(Set::Uniform, 10, &[8, 8], &mut rng);
    let new = |matrix: &[usize], tolerance, upsampling| {
        Nufft::<f32>::new(&device, &trajectory, matrix, &Options { tolerance, upsampling })
            .err()
            .map(|e| e.to_string())
    };
    assert!(new(&[8, 8], 1e-3, None).is_none());
    assert!(new(&[8], 1e-3, None).unwrap().contains("2 axes"));
    assert!(new(&[8, 0], 1e-3, None).is_some());
    assert!(new(&[8, 8], 1e-8, None).unwrap().contains("1.0e-6 to 0.1"));
    assert!(new(&[8, 8], 0.5, None).is_some());
    assert!(new(&[8, 8], f64::NAN, None).is_some());
    assert!(new(&[8, 8], 1e-3, Some(1.0)).unwrap().contains("upsampling"));
    assert!(new(&[1 << 40, 1 << 40], 1e-3, None).is_some());
    assert!(new(&[1 << 24, 1 << 24], 1e-3, None).unwrap().contains("bytes of memory"));
    assert!(new(&[1 << 40, 2], 1e-3, None).unwrap().contains("2^30"));
    let plan = Nufft::<f32>::new(&device, &trajectory, &[8, 8], &Options::tolerance(1e-3)).unwrap();
    let array = |shape: &[usize]| Array::<Complex<f32>>::zeros(&device, shape).unwrap();
    assert!(plan.forward(&array(&[8, 8]), &mut array(&[10])).is_ok());
    assert!(plan.forward(&array(&[3, 8, 8]), &mut array(&[10])).is_err());
    assert!(plan.adjoint(&array(&[11]), &mut array(&[8, 8])).is_err());
    assert!(plan.adjoint(&array(&[10]), &mut array(&[8])).is_err());
    let other = Device::cpu_with_threads(1).unwrap();
    assert!(plan.forward(&Array::zeros(&other, &[8, 8]).unwrap(), &mut array(&[10])).is_err());
    assert!(plan.bytes(1) > 0);
}

#[test]
fn what_a_plan_takes_is_known_before_it_is_made() {
    let device = rayspin_device::Device::cpu_with_threads(2).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for (matrix, samples) in [(vec![90], 5000), (vec![48, 64], 70_000), (vec![24, 20, 33], 200_000)] {
        // Most points near the centre, so that slabs differ.
        let k = ndarray::Array2::from_shape_fn((samples, matrix.len()), |(_, d)| {
            let n = matrix[matrix.len() - 1 - d] as f64;
            n * (rng.random::<f64>() - 0.5).powi(3) * 4.0
        });
        let trajectory = rayspin_core::Trajectory::from_cycles_per_fov(k).unwrap();
        for tolerance in [1e-2, 1e-4] {
            let options = super::Options::tolerance(tolerance);
            let needs = super::Nufft::<f32>::needs(&device, &trajectory, &matrix, &options).unwrap();
            let plan = super::Nufft::<f32>::new(&device, &trajectory, &matrix, &options).unwrap();
            let one = needs.plan + needs.workspace;
            assert_eq!(one, plan.bytes(1), "{matrix:?} {tolerance}");
            assert_eq!(one + needs.group, plan.bytes(4), "{matrix:?} {tolerance}");
            assert_eq!(needs.group > 0, matrix.len() == 2);
        }
    }
}

/// In each problem that was measured at every upsampling, the chosen upsampling takes at most a tenth longer
/// than the fastest.
#[test]
fn the_upsampling_chosen_is_near_the_fastest() {
    let measured = include_str!("../../../../../benches/results/2026-11-22-epyc-2/nufft_upsampling.txt");
    // Upsampling, width and milliseconds; by matrix, points, precision and tolerance.
    type Time = (f64, f64, f64);
    let mut problems: Vec<([&str; 4], Vec<Time>)> = Vec::new();
    for row in measured.lines().filter(|row| !row.starts_with('#')) {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let after = |name: &str| fields[fields.iter().position(|field| *field == name).unwrap() + 1];
        let number = |name: &str| after(name).parse::<f64>().unwrap();
        let problem = [after("--matrix"), after("--points"), after("--precision"), after("--tolerance")];
        let found = (number("--upsampling"), number("width"), number("type1_ms") + number("type2_ms"));
        match problems.iter_mut().find(|(known, _)| *known == problem) {
            Some((_, times)) => times.push(found),
            None => problems.push((problem, vec![found])),
        }
    }
    assert_eq!(problems.len(), 17);
    for ([matrix, points, precision, tolerance], times) in problems {
        let matrix: Vec<usize> = matrix.split(',').map(|n| n.parse().unwrap()).collect();
        let (points, tolerance) = (points.parse().unwrap(), tolerance.parse().unwrap());
        let (upsampling, kernel) = match precision {
            "f32" => super::choose::<f32>(tolerance, &matrix, points),
            _ => super::choose::<f64>(tolerance, &matrix, points),
        }
        .unwrap();
        let least = times.iter().map(|time| time.2).fold(f64::INFINITY, f64::min);
        // All but one of the candidate upsamplings were measured.
        let Some(chosen) = times.iter().find(|time| time.0 == upsampling) else {
            assert_eq!(upsampling, 1.40625);
            continue;
        };
        assert_eq!(chosen.1, kernel.width as f64);
        assert!(
            chosen.2 <= 1.1 * least,
            "{matrix:?}, {points}, {precision}, {tolerance}: {chosen:?}, {least}"
        );
    }
}
