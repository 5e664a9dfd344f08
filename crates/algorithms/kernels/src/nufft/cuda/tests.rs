use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Trajectory};

use super::*;
use crate::cuda::gpus;
use crate::nufft::tests::{Set, cpu, distance, nan, narrow, points, random, widen};
use crate::nufft::{Interp, Nufft, Options, Problem, Spread, interp_variants, spread_variants};
use crate::variant::Variant;
use rayspin_device::BackendKind;

/// The same few kernels in all tests: each is compiled. f32 spreads whole footprints by one warp, f64 in 3-D
/// planes by several.
fn options<R: Real>() -> Options {
    let (tolerance, upsampling) = if size_of::<R>() == 4 { (1e-3, 2.0) } else { (1e-6, 1.25) };
    Options { tolerance, upsampling: Some(upsampling) }
}

#[test]
fn upsampling_is_the_one_measured_to_be_fastest() {
    // benches/results/2026-11-21-h100/nufft_upsampling.txt
    let chosen = |matrix: &[usize], tolerance, samples| {
        crate::nufft::choose_by::<f32>(tolerance, matrix, samples, &crate::nufft::UPSAMPLINGS, cost::<f32>)
            .unwrap()
            .0
    };
    assert_eq!(chosen(&[128, 128, 128], 1e-3, 1_000_000), 1.5);
    assert_eq!(chosen(&[128, 128, 128], 1e-3, 10_000_000), 2.0);
    assert_eq!(chosen(&[256, 256, 256], 1e-3, 20_000_000), 1.5);
    assert_eq!(chosen(&[256, 256, 256], 1e-5, 20_000_000), 2.0);
    assert_eq!(chosen(&[512, 512], 1e-4, 5_000_000), 2.0);
}

#[test]
fn a_batch_is_its_items() {
    fn check<R: Real>(device: &Device, matrix: &[usize]) {
        const SAMPLES: usize = 300;
        let mut rng = ChaCha8Rng::seed_from_u64(29);
        let trajectory = points(Set::Uniform, SAMPLES, matrix, &mut rng);
        let voxels: usize = matrix.iter().product();
        let plan = Nufft::<R>::new(device, &trajectory, matrix, &options::<R>()).unwrap();
        for batch in [3, 9] {
            let (images, _) = narrow::<R>(&random(batch * voxels, &mut rng));
            let (data, _) = narrow::<R>(&random(batch * SAMPLES, &mut rng));
            let run = |together: usize| {
                let (mut forward, mut adjoint) = (Vec::new(), Vec::new());
                for (images, data) in images.chunks(together * voxels).zip(data.chunks(together * SAMPLES)) {
                    let images = Array::from_slice(device, &[&[together], matrix].concat(), images).unwrap();
                    let data = Array::from_slice(device, &[together, SAMPLES], data).unwrap();
                    let (mut f, mut a) = (nan(device, data.shape()), nan(device, images.shape()));
                    plan.forward(&images, &mut f).unwrap();
                    plan.adjoint(&data, &mut a).unwrap();
                    forward.extend(f.to_vec().unwrap());
                    adjoint.extend(a.to_vec().unwrap());
                }
                [forward, adjoint]
            };
            let unit = <R as Real>::EPSILON.to_f64();
            let bound = 10.0 * plan.kernel.rounding(plan.upsampling, matrix.len(), unit);
            for (together, single) in run(batch).iter().zip(&run(1)) {
                assert!(
                    distance(&widen(together), &widen(single)) < bound,
                    "{}, {matrix:?} {batch}",
                    R::NAME
                );
            }
        }
    }
    for device in gpus() {
        check::<f32>(device, &[90]);
        check::<f32>(device, &[21, 30]);
        check::<f32>(device, &[9, 8, 13]);
        check::<f64>(device, &[21, 30]);
    }
}

#[test]
fn crowded_tiles_are_cut_and_results_repeat_bit_for_bit() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for device in gpus() {
        for matrix in [vec![40], vec![24, 24], vec![8, 10, 12]] {
            let (dims, samples) = (matrix.len(), 1200);
            let trajectory =
                Trajectory::from_cycles_per_fov(ndarray::Array2::from_shape_fn((samples, dims), |(i, d)| {
                    let n = matrix[dims - 1 - d] as f64;
                    let scale = if i % 4 == 0 { 1.0 } else { 0.01 };
                    scale * n * (rng.random::<f64>() - 0.5)
                }))
                .unwrap();
            let image = |seed: &[C64]| {
                let plan = Nufft::<f64>::new(device, &trajectory, &matrix, &options::<f64>()).unwrap();
                assert!(plan.on_gpu().unwrap().gridding.slots.runs_count > 0);
                let mut image = nan(device, &matrix);
                plan.adjoint(&Array::from_slice(device, &[samples], seed).unwrap(), &mut image).unwrap();
                image.to_vec().unwrap()
            };
            let data = random(samples, &mut rng);
            let found = image(&data);
            let expected = crate::nufft::reference::adjoint(&trajectory, &matrix, &data);
            assert!(distance(&found, &expected) < 4e-6, "{matrix:?}");
            assert_eq!(found, image(&data), "{matrix:?}");
        }
    }
}

#[test]
fn every_point_is_in_one_slot_of_its_tile() {
    let mut rng = ChaCha8Rng::seed_from_u64(41);
    for device in gpus() {
        // 575 tiles, some without points, and one; points of a quarter of the tiles, and half of them in one
        // tile.
        for (matrix, samples) in [(vec![200, 180], 9000), (vec![40], 700), (vec![200], 1)] {
            let dims = matrix.len();
            let trajectory =
                Trajectory::from_cycles_per_fov(ndarray::Array2::from_shape_fn((samples, dims), |(i, d)| {
                    let n = matrix[dims - 1 - d] as f64;
                    n * rng.random::<f64>() * if i % 2 == 0 { 0.5 } else { 0.01 }
                }))
                .unwrap();
            let plan = Nufft::<f32>::new(device, &trajectory, &matrix, &options::<f32>()).unwrap();
            let gridding = &plan.on_gpu().unwrap().gridding;
            let (cut, expected) = (&gridding.slots, gridding.counts(&trajectory));
            let slots = &cut.slots.to_vec().unwrap()[..cut.count];
            let runs = &cut.runs.to_vec().unwrap()[..cut.runs_count];
            let slot_of = cut.slot_of.to_vec().unwrap();
            let mut next = 0;
            for &[_, first, count, rest] in slots {
                assert_eq!((first, rest), (next, 0));
                assert!(count > 0 && count <= slot_points(samples));
                next += count;
            }
            assert_eq!(next as usize, samples);
            for (tile, (&points, &first)) in expected.iter().zip(&slot_of).enumerate() {
                let own = slots.iter().filter(|slot| slot[0] as usize == tile);
                let counts: Vec<u32> = own.map(|slot| slot[2]).collect();
                assert_eq!(counts.iter().sum::<u32>(), points);
                assert_eq!(counts.len() as u32, points.div_ceil(slot_points(samples)));
                assert!(counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0) <= 1);
                let there = slots.iter().position(|slot| slot[0] as usize == tile);
                assert_eq!(first, there.map_or(u32::MAX, |at| at as u32));
                let run = (counts.len() > 1).then_some([first, counts.len() as u32]);
                assert_eq!(runs.iter().find(|run| run[0] == first).copied(), run);
            }
            assert!(runs.is_sorted() && (samples < 1000) == (runs.len() < 2), "{runs:?}");
        }
    }
}

#[test]
fn gridding_is_that_of_the_cpu() {
    fn check<R: Real>(device: &Device) {
        let mut rng = ChaCha8Rng::seed_from_u64(17);
        let host = cpu();
        for matrix in [vec![37], vec![20, 23], vec![9, 12, 10]] {
            let trajectory = points(Set::Radial, 500, &matrix, &mut rng);
            let plan =
                |device: &Device| Nufft::<R>::new(device, &trajectory, &matrix, &options::<R>()).unwrap();
            let (gpu, cpu) = (plan(device), plan(&host));
            let (data, _) = narrow::<R>(&random(500, &mut rng));
            let (cells, _) = narrow::<R>(&random(gpu.fine_shape().iter().product(), &mut rng));
            let run = |plan: &Nufft<R>,
                       spread: &Variant<Problem, Spread<R>>,
                       interp: &Variant<Problem, Interp<R>>| {
                let device = plan.device();
                let data = Array::from_slice(device, &[500], &data).unwrap();
                let cells = Array::from_slice(device, plan.fine_shape(), &cells).unwrap();
                let (mut grid, mut values) = (nan(device, plan.fine_shape()), nan(device, &[500]));
                (spread.implementation)(plan, &data, &mut grid).unwrap();
                (interp.implementation)(plan, &cells, &mut values).unwrap();
                let mut smooth = nan(device, &[500]);
                plan.convolve(&data, &mut smooth).unwrap();
                [grid, values, smooth].map(|a| widen(&a.to_vec().unwrap()))
            };
            // The CPU sums the kernel's even and odd powers separately. Here the two differ by at most 12 ε.
            let bound = 30.0 * <R as Real>::EPSILON.to_f64();
            let (spreads, interps) = (spread_variants::<R>(), interp_variants::<R>());
            let expected = run(&cpu, &spreads[0], &interps[0]);
            for (spread, interp) in
                spreads.iter().zip(&interps).filter(|(row, _)| row.backend == device.kind())
            {
                assert_eq!((spread.name, spread.backend), (interp.name, interp.backend));
                assert!((spread.refuses)(&Problem::of(&gpu)).is_none(), "{}", spread.name);
                assert!((interp.refuses)(&Problem::of(&gpu)).is_none(), "{}", interp.name);
                for (found, expected) in run(&gpu, spread, interp).iter().zip(&expected) {
                    assert!(distance(found, expected) < bound, "{} {} {matrix:?}", spread.name, R::NAME);
                }
            }
            assert!(
                (spread_variants::<R>()[2].implementation)(
                    &cpu,
                    &Array::zeros(&host, &[500]).unwrap(),
                    &mut Array::zeros(&host, cpu.fine_shape()).unwrap()
                )
                .is_err()
            );
            assert_eq!(spread_variants::<R>()[2].backend, BackendKind::Cuda);
        }
    }
    for device in gpus() {
        check::<f32>(device);
        check::<f64>(device);
    }
}

#[test]
fn memory_is_as_stated() {
    // A device of its own: on those that tests share, others allocate too.
    let mut devices = vec![rayspin_emu::Emulator::device().unwrap()];
    devices.extend(rayspin_device::cuda::count().is_ok().then(|| Device::cuda(0, cpu()).unwrap()));
    for device in &devices {
        let rayspin_device::Backend::Cuda(cuda) = device.backend() else { panic!("not a GPU") };
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for matrix in [vec![300], vec![30, 40], vec![10, 9, 12]] {
            let trajectory = points(Set::Uniform, 2000, &matrix, &mut rng);
            let before = cuda.memory_used().0;
            let plan = Nufft::<f32>::new(device, &trajectory, &matrix, &options::<f32>()).unwrap();
            let data = Array::zeros(device, &[3, 2000]).unwrap();
            let mut image = Array::zeros(device, &[&[3], &matrix[..]].concat()).unwrap();
            let arrays = ((data.len() + image.len()) * 8) as u64;
            plan.adjoint(&data, &mut image).unwrap();
            assert_eq!(cuda.memory_used().0 - before - arrays, plan.bytes(3), "{matrix:?}");
        }
    }
}

/// A plan and its batches take the stated memory. If memory is short, batches are transformed in smaller
/// parts, with the same values.
#[test]
fn memory_is_as_stated_and_short_memory_makes_smaller_parts() {
    is_as_stated::<f32>();
    is_as_stated::<f64>();
}

fn is_as_stated<R: Real>() {
    // Nobody else's arrays are there.
    let device = rayspin_emu::Emulator::device().unwrap();
    let cuda = cuda(&device).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(31);
    for (matrix, samples) in [
        (vec![400], 3000),
        (vec![40, 37], 9000),
        (vec![14, 12, 10], 5000),
        (vec![400, 300], 40),
        (vec![7], 3),
    ] {
        let trajectory = points(Set::Radial, samples, &matrix, &mut rng);
        let samples = trajectory.samples();
        let options = options::<R>();
        let needs = Nufft::<R>::needs(&device, &trajectory, &matrix, &options).unwrap();
        let (before, _) = cuda.memory_used();
        cuda.reset_peak();
        let plan = Nufft::<R>::new(&device, &trajectory, &matrix, &options).unwrap();
        let (held, peak) = cuda.memory_used();
        assert_eq!(held - before, needs.plan, "{matrix:?}");
        assert_eq!(peak - before, needs.planning, "{matrix:?}");
        for batch in [1, 5, 70] {
            assert_eq!(plan.bytes(batch), needs.plan + needs.batch(batch), "{matrix:?} {batch}");
        }
        let (data, _) = narrow::<R>(&random(5 * samples, &mut rng));
        let data = Array::from_slice(&device, &[5, samples], &data).unwrap();
        let mut images = nan::<R>(&device, &[&[5], &matrix[..]].concat());
        let mut back = nan::<R>(&device, data.shape());
        let mut run = |plan: &Nufft<R>| {
            plan.adjoint(&data, &mut images).unwrap();
            plan.forward(&images, &mut back).unwrap();
            (images.to_vec().unwrap(), back.to_vec().unwrap())
        };
        let expected = run(&plan);
        drop(plan);
        let plan = Nufft::<R>::new(&device, &trajectory, &matrix, &options).unwrap();
        let (held, _) = cuda.memory_used();
        cuda.limit_memory(Some(held + 2 * needs.workspace - 1));
        let unit = <R as Real>::EPSILON.to_f64();
        let bound = 10.0 * plan.kernel.rounding(plan.upsampling, matrix.len(), unit);
        let found = run(&plan);
        cuda.limit_memory(None);
        assert!(distance(&widen(&found.0), &widen(&expected.0)) < bound, "{matrix:?}");
        assert!(distance(&widen(&found.1), &widen(&expected.1)) < bound, "{matrix:?}");
    }
}
