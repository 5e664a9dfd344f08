//! Machines with a driver and no compiler. For any problem, the host loads only programs of `precompiled`,
//! and results are the same as elsewhere.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;
use std::sync::Arc;

use ndarray::Array2;
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Real, Trajectory};
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::cuda::Program;
use rayspin_device::{Array, Backend, Device};
use rayspin_emu::{Emulator, null_driver};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::nufft::{Coordinates, Nufft, Options, Type3};
use rayspin_kernels::toeplitz::Toeplitz;
use rayspin_kernels::{
    coil_mixing, density, difference, gram, ladders, nudft, off_resonance, precompiled, select, sensitivity,
    shrink, vector, walsh, wavelet, window,
};
use rayspin_tune::Which;

fn random<R: Real>(rng: &mut ChaCha8Rng, len: usize) -> Vec<Complex<R>> {
    let mut one = || <R as Real>::from_f64(rng.random_range(-1.0..1.0));
    (0..len).map(|_| Complex::new(one(), one())).collect()
}

fn array<R: Real>(device: &Device, shape: &[usize]) -> Array<Complex<R>> {
    Array::zeros(device, shape).unwrap()
}

fn trajectory(rng: &mut ChaCha8Rng, matrix: &[usize], samples: usize) -> Trajectory {
    Trajectory::from_cycles_per_fov(Array2::from_shape_fn((samples, matrix.len()), |(_, d)| {
        matrix[matrix.len() - 1 - d] as f64 * rng.random_range(-0.5..0.5)
    }))
    .unwrap()
}

/// Everything that kernels do, on problems of many sizes.
fn ask<R: SimdReal>(device: &Device, rng: &mut ChaCha8Rng) {
    for _ in 0..60 {
        let dims = rng.random_range(1..=3);
        let most = [0, 9000, 300, 40][dims];
        let shape: Vec<usize> = (0..dims).map(|_| rng.random_range(1..most)).collect();
        // Lengths beyond the kernels, and too large for this GPU's shared memory, are refused at planning.
        if let Ok(fft) = Fft::<R>::new(device, &shape, Norm::None) {
            let batch = [&[rng.random_range(1..4)], &shape[..]].concat();
            fft.forward(&mut array(device, &batch)).unwrap();
        }
        let shape: Vec<usize> = shape.iter().map(|n| n.div_ceil(1 + dims % 2)).collect();
        let coils = rng.random_range(1..20);
        let doubled: Vec<usize> = shape.iter().map(|n| 2 * n).collect();
        if let Ok(toeplitz) = Toeplitz::<R>::from_kernel(device, &shape, &array(device, &doubled)) {
            let all = [&[coils], &shape[..]].concat();
            toeplitz.apply(&array(device, &all), &mut array(device, &all)).unwrap();
            toeplitz
                .apply_sense(&array(device, &shape), &array(device, &all), &mut array(device, &shape))
                .unwrap();
        }
    }
    let mut asked_for_weights = 0;
    for _ in 0..40 {
        let dims = rng.random_range(1..=3);
        let most = [0, 3000, 200, 30][dims];
        let matrix: Vec<usize> = (0..dims).map(|_| rng.random_range(1..most)).collect();
        let tolerance = 10f64.powf(rng.random_range(-13.0..-0.5));
        let upsampling = [None, Some(2.0), Some(1.5), Some(1.25)][rng.random_range(0..4)];
        let samples = rng.random_range(1..3000);
        let t = trajectory(rng, &matrix, samples);
        let Ok(plan) = Nufft::<R>::new(device, &t, &matrix, &Options { tolerance, upsampling }) else {
            continue;
        };
        if asked_for_weights < 6 && density::pipe_menon(device, &t, &matrix, 1).is_ok() {
            asked_for_weights += 1;
        }
        for items in [1, rng.random_range(2..20)] {
            let (images, data) = ([&[items], &matrix[..]].concat(), [items, samples]);
            plan.forward(&array(device, &images), &mut array(device, &data)).unwrap();
            plan.adjoint(&array(device, &data), &mut array(device, &images)).unwrap();
        }
    }
    for i in 0..20 {
        let dims = 1 + i % 3;
        let mut points = |count: usize| Array2::from_shape_fn((count, dims), |_| rng.random_range(-1.5..1.5));
        let (x, s) = (points(300), points(400));
        // The tightest, where the second stage's kernels are wider than types 1 and 2 have, and others.
        let least = if size_of::<R>() == 4 { -5.6 } else { -12.6 };
        let tolerance =
            10f64.powf(if i < 6 { least + 0.1 * i as f64 } else { rng.random_range(least..-1.0) });
        let rows = |points| Coordinates::rows("points", points).unwrap();
        let options = Options::tolerance(tolerance);
        let Ok(plan) = Type3::<R>::new(device, rows(x.view()), rows(s.view()), &options) else {
            continue;
        };
        for items in [1, rng.random_range(2..20)] {
            plan.forward(&array(device, &[items, 300]), &mut array(device, &[items, 400])).unwrap();
            plan.adjoint(&array(device, &[items, 400]), &mut array(device, &[items, 300])).unwrap();
        }
    }
    for matrix in [&[70][..], &[33, 9], &[200, 300], &[5, 6, 7], &[40, 40, 40]] {
        let t = trajectory(rng, matrix, 50);
        let (image, data) = ([&[2], matrix].concat(), [2, 50]);
        let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
        for row in nudft::variants::<R>().iter().filter(|row| row.backend == device.kind()) {
            let _ = nudft::forward_with(row, &t, &array(device, &image), &mut array(device, &data));
            let _ = nudft::adjoint_with(row, &t, &array(device, &data), &mut array(device, &image));
            let _ = nudft::q_with(row, &t, None, matrix, &mut array(device, &doubled));
        }
        nudft::forward(&t, &array::<R>(device, &image), &mut array(device, &data)).unwrap();
        nudft::adjoint(&t, &array::<R>(device, &data), &mut array(device, &image)).unwrap();
        nudft::q(&t, None, matrix, &mut array::<R>(device, &doubled)).unwrap();
    }
    let (x, mut y) = (array::<R>(device, &[2, 9, 7]), array::<R>(device, &[2, 9, 7]));
    vector::axpy(C64::new(1.0, 0.0), &x, &mut y).unwrap();
    shrink::clip(1.0, &mut y).unwrap();
    sensitivity::sum_of_squares(&x).unwrap();
    select::magnitude(&x, 3).unwrap();
    window::separable::<R>(device, &[vec![0.5; 9], vec![2.0; 7]], None).unwrap();
    coil_mixing::mix(&array::<R>(device, &[3, 2, 7]), 0..3, &x, &mut array(device, &[3, 63]), 0).unwrap();
    let mut matrices = Array::zeros(device, &[7, 2, 2]).unwrap();
    coil_mixing::covariances(&Array::zeros(device, &[2, 9, 7]).unwrap(), &mut matrices, false).unwrap();
    difference::forward(
        &[1, 2],
        &[1.0, 1.0],
        &x,
        &mut array(device, &difference::range(&[2, 9, 7], &[1, 2]).unwrap()),
    )
    .unwrap();
    off_resonance::modulate(&Array::zeros(device, &[9, 7]).unwrap(), 0.1, &x, &mut y, true).unwrap();
    walsh::maps(&Array::zeros(device, &[3, 9, 7]).unwrap(), walsh::DEFAULT_RADIUS).unwrap();
    walsh::maps(&Array::zeros(device, &[3, 4, 9, 7]).unwrap(), walsh::DEFAULT_RADIUS).unwrap();
    // No program of this width is precompiled: the CPU computes it.
    walsh::maps(&Array::zeros(device, &[3, 9, 7]).unwrap(), 2).unwrap();
    for n in [1, 17, 40] {
        let values = Array::zeros(device, &[50]).unwrap();
        let columns: Vec<u32> = (0..n).collect();
        let mut matrix = Array::zeros(device, &[n as usize, n as usize]).unwrap();
        gram::gram(&values, gram::Rows::First(10), &columns, &mut matrix, false).unwrap();
    }
    let transform = wavelet::Wavelet::<R>::new(&[9, 7], wavelet::Family::Haar, None).unwrap();
    transform.forward(&[0, 0], &array(device, &[9, 7]), &mut array(device, &[9, 7])).unwrap();
}

#[test]
fn nothing_else_is_asked_for_without_a_compiler() {
    let listed: HashSet<_> =
        precompiled(usize::MAX).iter().map(|b| (b.source.name, b.defines.clone())).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut asked = 0;
    for (capability, shared) in [((8, 0), 163), ((8, 9), 99), ((9, 0), 227), ((12, 0), 99)] {
        let driver = Arc::new(null_driver(capability, shared << 10, false));
        let device = Device::with_driver(driver.clone(), Device::cpu_with_threads(2).unwrap());
        ask::<f32>(&device, &mut rng);
        ask::<f64>(&device, &mut rng);
        for program in driver.take_programs() {
            asked += 1;
            let known = listed.contains(&(program.name, program.defines.clone()));
            assert!(known, "{capability:?}: {} {:?} is not precompiled", program.name, program.defines);
        }
    }
    assert!(asked > 500, "{asked} programs");
    // With a compiler there are other forms: the list is not simply everything.
    let driver = Arc::new(null_driver((9, 0), 227 << 10, true));
    let device = Device::with_driver(driver.clone(), Device::cpu_with_threads(2).unwrap());
    ask::<f32>(&device, &mut rng);
    assert!(driver.take_programs().iter().any(|p| !listed.contains(&(p.name, p.defines.clone()))));
}

fn apart<R: Real>(a: &Array<Complex<R>>, b: &Array<Complex<R>>) -> f64 {
    let (a, b) = (a.to_vec().unwrap(), b.to_vec().unwrap());
    let wide = |v: &Complex<R>| C64::new(v.re.to_f64(), v.im.to_f64());
    let norm: f64 = b.iter().map(|v| wide(v).norm_sqr()).sum();
    let apart: f64 = a.iter().zip(&b).map(|(a, b)| (wide(a) - wide(b)).norm_sqr()).sum();
    assert!(norm > 0.0);
    (apart / norm).sqrt()
}

#[test]
fn general_programs_give_what_the_cpu_gives() {
    let cpu = Device::cpu_with_threads(2).unwrap();
    let all = precompiled(64).iter().map(|b| Program::new(b.source, &b.defines)).collect();
    let emulator = Emulator::new().unwrap().without_compiler(all);
    let gpu = Device::with_driver(Arc::new(emulator), cpu.clone());
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    // Rows shorter and longer than a block's, fewer columns than a block's, and more.
    for shape in [&[12, 10][..], &[10, 3]] {
        let data = random::<f32>(&mut rng, shape.iter().product());
        let [there, here] = [&gpu, &cpu].map(|device| {
            let mut data = Array::from_slice(device, shape, &data).unwrap();
            Fft::<f32>::new(device, shape, Norm::None).unwrap().forward(&mut data).unwrap();
            data
        });
        assert!(apart(&there, &here) < 1e-6, "{shape:?}");
    }
    let (matrix, coils, samples) = ([6, 5], 3, 60);
    let t = trajectory(&mut rng, &matrix, samples);
    let image = random::<f32>(&mut rng, 30);
    let maps = random::<f32>(&mut rng, coils * 30);
    let [there, here] = [&gpu, &cpu].map(|device| {
        let on = |shape: &[usize], values: &[_]| Array::from_slice(device, shape, values).unwrap();
        let mut q = array(device, &[12, 10]);
        nudft::q(&t, None, &matrix, &mut q).unwrap();
        let toeplitz = Toeplitz::from_kernel(device, &matrix, &q).unwrap();
        let (image, maps) = (on(&matrix, &image), on(&[coils, 6, 5], &maps));
        let (mut normal, mut sense) = (array(device, &[coils, 6, 5]), array(device, &matrix));
        toeplitz.apply(&maps, &mut normal).unwrap();
        toeplitz.apply_sense(&image, &maps, &mut sense).unwrap();
        let plan = Nufft::<f32>::new(device, &t, &matrix, &Options::tolerance(1e-4)).unwrap();
        let (mut data, mut back) = (array(device, &[coils, samples]), array(device, &[coils, 6, 5]));
        plan.forward(&maps, &mut data).unwrap();
        plan.adjoint(&data, &mut back).unwrap();
        [normal, sense, data, back]
    });
    for (there, here) in there.iter().zip(&here) {
        assert!(apart(there, here) < 5e-4);
    }
    // Parameters that were tuned elsewhere: macros without a precompiled program take their default values.
    let ladder = ladders().into_iter().find(|l| l.about().name == "nudft-q").unwrap();
    let mut session = ladder.open(Which::Case(None, Some(&[6, 5, 70])), &gpu, 1).unwrap();
    for (at, variant) in
        session.variants().to_vec().iter().enumerate().filter(|(_, r)| r.backend == gpu.kind())
    {
        for config in [variant.space.configs().first(), variant.space.configs().last()].into_iter().flatten()
        {
            let error = session.verify(at, config).unwrap();
            assert!(error <= variant.tolerance, "{} {config}: {error:.1e}", variant.name);
        }
    }
    // What is not among them is named, not compiled.
    let error = Fft::<f32>::new(&gpu, &[4, 250], Norm::None).unwrap_err().to_string();
    assert!(error.contains("not among the precompiled programs") && error.contains("250"), "{error}");
}

/// A Fourier transform, a NUFFT and a normal operator of three coils.
fn small_problem(device: &Device) {
    let t = trajectory(&mut ChaCha8Rng::seed_from_u64(14), &[6, 5], 60);
    Fft::<f32>::new(device, &[12, 10], Norm::None).unwrap().forward(&mut array(device, &[12, 10])).unwrap();
    let plan = Nufft::<f32>::new(device, &t, &[6, 5], &Options::tolerance(1e-4)).unwrap();
    let (mut images, mut data) = (array(device, &[3, 6, 5]), array(device, &[3, 60]));
    plan.forward(&images, &mut data).unwrap();
    plan.adjoint(&data, &mut images).unwrap();
    let toeplitz = Toeplitz::<f32>::from_kernel(device, &[6, 5], &array(device, &[12, 10])).unwrap();
    toeplitz.apply_sense(&array(device, &[6, 5]), &images, &mut array(device, &[6, 5])).unwrap();
}

#[test]
fn exact_programs_are_taken_where_they_are_precompiled() {
    let cpu = Device::cpu_with_threads(2).unwrap();
    let driver = Arc::new(null_driver((9, 0), 227 << 10, true));
    small_problem(&Device::with_driver(driver.clone(), cpu.clone()));
    let exact = driver.take_programs();
    let general: Vec<_> = precompiled(64).iter().map(|b| Program::new(b.source, &b.defines)).collect();
    let named = |programs: &[Program]| -> HashSet<_> {
        programs.iter().map(|program| (program.name, program.defines.clone())).collect()
    };
    let loaded = |programs| -> HashSet<_> {
        let emulator = Emulator::new().unwrap().without_compiler(programs);
        let device = Device::with_driver(Arc::new(emulator), cpu.clone());
        small_problem(&device);
        let Backend::Cuda(cuda) = device.backend() else { unreachable!("the emulator is a CUDA device") };
        cuda.loaded().into_iter().collect()
    };
    assert_eq!(loaded([exact.clone(), general.clone()].concat()), named(&exact));
    let others = loaded(general.clone());
    assert!(others.is_subset(&named(&general)) && others != named(&exact));
}

#[test]
fn the_widest_kernels_fit_the_shared_memory_of_desktop_gpus() {
    let cpu = Device::cpu_with_threads(2).unwrap();
    let gpu = Device::with_driver(Arc::new(Emulator::with_shared(99 << 10).unwrap()), cpu.clone());
    let mut rng = ChaCha8Rng::seed_from_u64(13);
    let (matrix, samples) = ([4, 9, 5], 50);
    let t = trajectory(&mut rng, &matrix, samples);
    let data = random::<f64>(&mut rng, samples);
    let [there, here] = [&gpu, &cpu].map(|device| {
        let data = Array::from_slice(device, &[1, samples], &data).unwrap();
        let options = Options { tolerance: 7e-10, upsampling: Some(1.25) };
        let plan = Nufft::<f64>::new(device, &t, &matrix, &options).unwrap();
        assert_eq!(plan.width(), 16);
        let (mut image, mut again) = (array(device, &[1, 4, 9, 5]), array(device, &[1, samples]));
        plan.adjoint(&data, &mut image).unwrap();
        plan.forward(&image, &mut again).unwrap();
        [image, again]
    });
    for (there, here) in there.iter().zip(&here) {
        let far = apart(there, here);
        assert!(far < 1e-11, "{far}");
    }
}
