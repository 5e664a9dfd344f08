//! Maps that lie on the host while a GPU uses them: the operators that see them, and the memory that is
//! stated, on every device.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use ndarray::{Array2, ArrayD, IxDyn};
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Trajectory};
use rayspin_device::{Array, Backend, Device};
use rayspin_kernels::off_resonance::Interpolator;
use rayspin_kernels::{nufft, sensitivity, vector};
use rayspin_linop::laws::check;
use rayspin_linop::*;

const COILS: usize = 7;
const MATRIX: [usize; 3] = [4, 6, 5];
const VOXELS: usize = 120;

fn maps() -> Array<C64> {
    random(&Device::cpu_with_threads(1).unwrap(), &[COILS, 4, 6, 5], 1).unwrap()
}

/// The maps, filled one stretch of planes after another. The first stretch is filled coil by coil.
fn filled(device: &Device, cut: Option<usize>) -> CoilMaps<f64> {
    let all = maps().to_device(device).unwrap();
    let mut builder = MapsBuilder::new(device, all.shape(), cut).unwrap();
    for coil in 0..COILS {
        let mut one = Array::zeros(device, &[1, VOXELS]).unwrap();
        vector::copy_part(&all, coil * VOXELS, &mut one, 0, VOXELS).unwrap();
        builder.put(coil..coil + 1, 0..40, &one, 0).unwrap();
    }
    builder.put(0..COILS, 40..VOXELS, &all, 40).unwrap();
    let mut back = Array::zeros(device, &[COILS, 60]).unwrap();
    builder.get(30..90, &mut back, 0).unwrap();
    let back = back.to_vec().unwrap();
    for (coil, row) in back.chunks_exact(60).enumerate() {
        assert_eq!(row, &maps().cpu()[coil * VOXELS + 30..coil * VOXELS + 90]);
    }
    assert!(builder.put(6..8, 0..1, &all, 0).is_err());
    assert!(builder.put(0..COILS, 0..VOXELS, &all, 1).is_err());
    assert!(builder.get(110..121, &mut all.try_clone().unwrap(), 0).is_err());
    builder.finish().unwrap()
}

fn assert_near(found: &Array<C64>, wanted: &Array<C64>, what: &str) {
    assert_eq!(found.shape(), wanted.shape());
    let (found, wanted) = (found.to_vec().unwrap(), wanted.to_vec().unwrap());
    let apart: f64 = found.iter().zip(&wanted).map(|(a, b)| (a - b).norm_sqr()).sum();
    let size: f64 = wanted.iter().map(C64::norm_sqr).sum();
    assert!(apart.sqrt() < 1e-13 * size.sqrt(), "{what}: {:.1e}", (apart / size).sqrt());
}

/// The operators over maps; all in double precision.
fn operators(device: &Device, maps: &CoilMaps<f64>) -> Vec<Box<dyn LinearOp<Complex<f64>>>> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let points = Array2::from_shape_fn((90, 3), |(_, d)| rng.random_range(-0.5..0.5) * MATRIX[2 - d] as f64);
    let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
    let times: Vec<f64> = (0..90).map(|m| f64::from(m) * 1e-4).collect();
    let field = random::<f64>(device, &MATRIX, 5).unwrap().to_vec().unwrap();
    let field = Array::from_vec(device, &MATRIX, field.iter().map(|f| 40.0 * f.re).collect()).unwrap();
    let differences = Interpolator::new([-80.0, 80.0], [0.0, 9e-3], 1e-3).unwrap();
    let (moments, kernels) =
        OffResonanceToeplitz::exact_segments(device, &trajectory, &times, &differences, &MATRIX).unwrap();
    let toeplitz = ToeplitzNormal::exact(device, &[], &trajectory, None, &MATRIX).unwrap();
    let plan = nufft::Nufft::new(device, &trajectory, &MATRIX, &nufft::Options::tolerance(1e-6)).unwrap();
    let sampled = ArrayD::from_shape_fn(IxDyn(&MATRIX), |i| i[1] % 2 == 0);
    let grid = |batch| GridNormal::new(device, sampled.view(), Some(maps.clone()), batch).unwrap();
    vec![
        Box::new(SenseToeplitz::new(maps.clone(), toeplitz.toeplitz().clone()).unwrap()),
        Box::new(OffResonanceToeplitz::sense(maps.clone(), &moments, kernels, field).unwrap()),
        Box::new(SenseNufft::new(maps.clone(), plan).unwrap()),
        Box::new(grid(None)),
        Box::new(grid(Some(2))),
    ]
}

#[test]
fn operators_do_not_depend_on_where_maps_lie() {
    for device in rayspin_emu::devices().unwrap() {
        let resident = CoilMaps::from(maps().to_device(&device).unwrap());
        let wanted = operators(&device, &resident);
        for cut in [1, 2, 3] {
            let cut = filled(&device, Some(cut));
            assert_eq!(cut.is_resident(), matches!(device.backend(), Backend::Cpu(_)));
            for (found, wanted) in operators(&device, &cut).iter().zip(&wanted) {
                let x = random(&device, &MATRIX, 7).unwrap();
                // The second time the first maps are under way already.
                for _ in 0..2 {
                    let (found, wanted) = (found.normal(&x).unwrap(), wanted.normal(&x).unwrap());
                    assert_near(&found, &wanted, "normal");
                }
                let (y, wanted_y) = (found.forward(&x).unwrap(), wanted.forward(&x).unwrap());
                assert_near(&y, &wanted_y, found.name());
                assert_near(&found.adjoint(&y).unwrap(), &wanted.adjoint(&y).unwrap(), found.name());
                check(&**found, &device, 11).unwrap();
            }
        }
    }
}

#[test]
fn images_are_combined_some_coils_at_a_time() {
    for device in rayspin_emu::devices().unwrap() {
        let all = maps().to_device(&device).unwrap();
        let images = random::<f64>(&device, &[COILS, 4, 6, 5], 9).unwrap();
        let mut wanted = Array::zeros(&device, &MATRIX).unwrap();
        sensitivity::combine(&all, &images, &mut wanted).unwrap();
        sensitivity::normalise(&all, &mut wanted).unwrap();
        for cut in [None, Some(1), Some(2), Some(3), Some(9)] {
            let maps = filled(&device, cut);
            assert_eq!((maps.shape(), maps.coils()), (all.shape(), COILS));
            for batch in [None, Some(1), Some(4)] {
                let mut found = Array::zeros(&device, &MATRIX).unwrap();
                for range in batches(COILS, batch) {
                    let mut some = Array::zeros(&device, &[range.len(), 4, 6, 5]).unwrap();
                    vector::copy_part(&images, range.start * VOXELS, &mut some, 0, range.len() * VOXELS)
                        .unwrap();
                    maps.combine_add(range, &some, &mut found).unwrap();
                }
                maps.normalise(&mut found).unwrap();
                assert_near(&found, &wanted, "combined");
            }
            assert!(maps.combine_add(6..8, &images, &mut wanted.try_clone().unwrap()).is_err());
            assert!(maps.each_of(5..5, None, |_, _, _| panic!("no coils")).is_ok());
            let mut seen = Vec::new();
            maps.each(Some(2), |coils, held, at| {
                assert!(coils.len() == at.len() && at.len() <= 2 && at.end <= held.shape()[0]);
                seen.extend(coils);
                Ok(())
            })
            .unwrap();
            assert!(seen.into_iter().eq(0..COILS));
            assert_eq!(maps.to_host().unwrap(), all.to_host().unwrap());
            assert_eq!(maps.into_host().unwrap(), all.to_host().unwrap());
        }
    }
}

#[test]
fn memory_of_maps_is_stated_beforehand() {
    for device in rayspin_emu::devices().unwrap() {
        let Backend::Cuda(cuda) = device.backend() else {
            let all = (COILS * VOXELS * size_of::<C64>()) as u64;
            let shape = [COILS, 4, 6, 5];
            assert_eq!(CoilMaps::<f64>::bytes_needed(&device, &shape, Some(1)).unwrap(), (all, 0));
            continue;
        };
        for (cut, on_gpu, pinned) in [
            (None, 7, 0),
            (Some(1), 2, 7),
            (Some(2), 4, 8),
            (Some(3), 6, 9),
            (Some(4), 7, 0),
            (Some(0), 2, 7),
        ] {
            let coil = (VOXELS * size_of::<C64>()) as u64;
            let stated = CoilMaps::<f64>::bytes_needed(&device, &[COILS, 4, 6, 5], cut).unwrap();
            assert_eq!(stated, (on_gpu * coil, pinned * coil), "{cut:?}");
            let before = cuda.memory_used().0;
            let maps = filled(&device, cut);
            assert_eq!(cuda.memory_used().0 - before, stated.0, "{cut:?}");
            drop(maps);
            assert_eq!(cuda.memory_used().0, before);
        }
    }
}

#[test]
fn maps_of_other_images_are_refused() {
    let device = Device::cpu_with_threads(1).unwrap();
    let maps = Array::<Complex<f32>>::zeros(&device, &[2, 5, 4]).unwrap();
    let sampled = ArrayD::from_elem(IxDyn(&[4, 5]), true);
    assert!(GridNormal::new(&device, sampled.view(), Some(maps.into()), None).is_err());
    let line = Array::<Complex<f32>>::zeros(&device, &[20]).unwrap();
    assert!(GridNormal::new(&device, sampled.view(), Some(line.into()), None).is_err());
    assert!(MapsBuilder::<f32>::new(&device, &[3], None).is_err());
}
