//! What anyone may call with any arrays, numbers and configurations: a GPU's kernels are launched only on
//! what stays inside its arrays.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use ndarray::Array2;
use rayspin_core::{C32, C64, Error, Result, Trajectory};
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::{Array, BackendKind, Device, Element};
use rayspin_emu::Emulator;
use rayspin_kernels::nufft::{Nufft, Options};
use rayspin_kernels::variant::Variant;
use rayspin_kernels::vector::{CgLimits, CgScalars};
use rayspin_kernels::{espirit, gram, grappa, nudft, walsh};

/// What a GPU runs.
fn on_gpu<P, I: Copy>(variants: &[Variant<P, I>]) -> I {
    variants.iter().find(|v| v.backend == BackendKind::Cuda).unwrap().implementation
}

fn zeros<T: Element>(device: &Device, len: usize) -> Array<T> {
    Array::zeros(device, &[len]).unwrap()
}

/// Every array of the right length, then each one element short; `run` is given the lengths.
fn each_too_short<const N: usize>(lengths: [usize; N], run: impl Fn([usize; N]) -> Result<()>) {
    run(lengths).unwrap();
    for short in 0..N {
        let mut lengths = lengths;
        lengths[short] -= 1;
        match run(lengths) {
            Err(Error::Shape { .. } | Error::Value { .. }) => {}
            other => panic!("array {short} one element short: {other:?}"),
        }
    }
}

#[test]
fn coil_maps_are_made_of_arrays_of_the_problem_s_size() {
    let device = Emulator::device().unwrap();
    let (coils, shape_zyx) = (3, [2, 4, 5]);
    let implementation = on_gpu(espirit::VARIANTS);
    let problem =
        espirit::Problem { coils, reach_zyx: [0, 1, 1], shape_zyx, planes: [0, 2], sets: 2, crop: 0.0 };
    each_too_short([9 * 9, 3, 2 * 3 * 40], |[correlation, phase, maps]| {
        let (correlation, phase) = (zeros::<C32>(&device, correlation), zeros::<C32>(&device, phase));
        implementation(&problem, &correlation, &phase, &mut zeros(&device, maps))
    });
    let implementation = on_gpu(walsh::VARIANTS);
    let problem = walsh::Problem::whole(coils, shape_zyx, 1);
    each_too_short([3 * 40, 3, 3 * 40], |[images, reference, maps]| {
        let (images, reference) = (zeros::<C32>(&device, images), zeros::<C32>(&device, reference));
        implementation(&problem, &images, &reference, &mut zeros(&device, maps))
    });
    let beyond = walsh::Problem { planes: [1, 2], ..problem };
    let (images, reference) = (zeros::<C32>(&device, 3 * 40), zeros::<C32>(&device, 3));
    assert!(implementation(&beyond, &images, &reference, &mut zeros(&device, 3 * 40)).is_err());
}

#[test]
fn lines_of_k_space_are_made_of_arrays_of_the_problem_s_size() {
    let device = Emulator::device().unwrap();
    let implementation = on_gpu(grappa::VARIANTS);
    let problem = grappa::Problem { coils: 2, shape_zyx: [1, 4, 6] };
    let interpolation = |line| grappa::Interpolation {
        sources: vec![[0, -1, 0], [0, 1, 1]],
        weights: vec![C32::new(0.5, 0.0); 2 * 2 * 2],
        lines: vec![line],
    };
    let run = |by: &grappa::Interpolation, [kspace, out]: [usize; 2]| {
        implementation(&problem, by, &zeros::<C32>(&device, kspace), &mut zeros(&device, out))
    };
    each_too_short([2 * 24, 2 * 6], |lengths| run(&interpolation([0, 3]), lengths));
    // For a line far beyond k-space all sources lie beyond it too.
    run(&interpolation([7, 1 << 20]), [2 * 24, 2 * 6]).unwrap();
    let few = grappa::Interpolation { weights: vec![C32::default(); 7], ..interpolation([0, 3]) };
    assert!(run(&few, [2 * 24, 2 * 6]).is_err(), "too few weights");
}

#[test]
fn gram_matrices_are_made_of_rows_and_columns_within_the_values() {
    let device = Emulator::device().unwrap();
    let implementation = on_gpu(gram::VARIANTS);
    each_too_short([4 + 7, 2 * 2], |[values, gram]| {
        let rows = gram::Rows::Listed(&[0, 4, 2]);
        implementation(&zeros::<C32>(&device, values), rows, &[0, 6], &mut zeros::<C64>(&device, gram), false)
    });
}

#[test]
fn scalars_of_conjugate_gradients_serve_vectors_of_their_length_alone() {
    let device = Emulator::device().unwrap();
    let limits = CgLimits { size: 1.0, enough: 0.0, vanishing: 0.0, indefinite: 1.0 };
    let mut scalars = CgScalars::<C32>::new(&device, 300, limits).unwrap();
    scalars.set(1.0, 1.0, 1.0).unwrap();
    let vector = |len| zeros::<C32>(&device, len);
    scalars.step_length(&vector(300), &vector(300)).unwrap();
    // More blocks than there are partial sums.
    for len in [299, 301, 1 << 20] {
        assert!(scalars.step_length(&vector(len), &vector(len)).is_err(), "{len}");
        assert!(
            scalars.update(&vector(len), &vector(len), &mut vector(len), &mut vector(len)).is_err(),
            "{len}"
        );
        assert!(scalars.update_direction(&vector(len), &mut vector(len)).is_err(), "{len}");
    }
}

/// Points so far out that numbers there are more than a turn apart.
#[test]
fn points_at_any_distance_are_sorted_into_the_grid() {
    let device = Emulator::device().unwrap();
    let far = [0.0, 1e20, -1e20, 1e300, -1e300, f64::MAX, f64::MIN, 4_503_599_627_370_497.5, -0.25, 7.75];
    for matrix in [vec![16], vec![12, 16], vec![8, 12, 16]] {
        let points = Array2::from_shape_fn((far.len(), matrix.len()), |(i, d)| far[(i + 3 * d) % far.len()]);
        let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
        let plan = Nufft::<f32>::new(&device, &trajectory, &matrix, &Options::tolerance(1e-3)).unwrap();
        let samples = Array::from_vec(&device, &[far.len()], vec![C32::new(1.0, 0.5); far.len()]).unwrap();
        let mut image = Array::zeros(&device, &matrix).unwrap();
        plan.adjoint(&samples, &mut image).unwrap();
        let mut again = Array::zeros(&device, &[far.len()]).unwrap();
        plan.forward(&image, &mut again).unwrap();
        let found = [image.to_vec().unwrap(), again.to_vec().unwrap()].concat();
        assert!(found.iter().all(|v| v.is_finite()), "{matrix:?}: {found:?}");
    }
}

fn adjoint<T: SimdReal + rayspin_core::Real>(device: &Device, variant: nudft::CudaVariant) -> Result<()> {
    let points = Array2::from_shape_fn((40, 2), |(i, d)| ((7 * i + d) % 11) as f64 - 5.0);
    let trajectory = Trajectory::from_cycles_per_fov(points)?;
    // The variant's row in single precision gives the parameters.
    let is = |implementation: &nudft::Implementation<f32>| matches!(implementation, nudft::Implementation::Cuda(found) if *found == variant);
    let space = nudft::variants::<f32>().into_iter().find(|v| is(&v.implementation)).map(|v| v.space);
    let row = nudft::variants::<T>().into_iter().find(|v| v.backend == BackendKind::Cuda).unwrap();
    let space = space.unwrap_or(row.space);
    let variant = row.run_by(|_| nudft::Implementation::<T>::Cuda(variant)).space(space);
    let samples = Array::zeros(device, &[40])?;
    nudft::adjoint_with(&variant, &trajectory, &samples, &mut Array::zeros(device, &[8, 6])?)
}

#[test]
fn transforms_for_single_precision_refuse_numbers_of_double_precision() {
    let device = Emulator::device().unwrap();
    for variant in [
        nudft::CudaVariant::Fixed,
        nudft::CudaVariant::Sfu,
        nudft::CudaVariant::Tuned,
        nudft::CudaVariant::Separable,
    ] {
        adjoint::<f32>(&device, variant).unwrap();
        let refused = adjoint::<f64>(&device, variant).unwrap_err().to_string();
        assert!(refused.contains("f32"), "{refused}");
    }
    adjoint::<f64>(&device, nudft::CudaVariant::Double).unwrap();
}
