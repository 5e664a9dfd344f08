use std::f64::consts::TAU;

use proptest::prelude::*;
use rayspin_core::{Detector, Orbit};
use rayspin_tune::input::signed_unit;

use super::*;
use crate::variant::Variant;

/// Numbers from 0.1 to 1.9: sums of them do not cancel, so that rounding is small beside them.
fn numbers(len: usize, seed: u64) -> Vec<f64> {
    (0..len).map(|i| 1.0 + 0.9 * f64::from(signed_unit(seed, i))).collect()
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

/// The error relative to the size of the result, or of outputs of 1. A ray that grazes the volume, or a voxel
/// at the edge of the detector, has a small weight, whose rounding is not small beside it.
fn relative(found: impl Iterator<Item = f64>, wanted: &[f64]) -> f64 {
    let wrong: f64 = found.zip(wanted).map(|(f, w)| (f - w) * (f - w)).sum();
    let whole: f64 = wanted.iter().map(|w| w * w).sum();
    (wrong / whole.max(wanted.len() as f64)).sqrt()
}

/// One size and path of a scan.
#[derive(Debug, Clone)]
struct Case {
    geometry: ProjectionGeometry,
    grid: VolumeGrid,
    weighting: Weighting,
}

fn cases() -> impl Strategy<Value = Case> {
    let size = prop_oneof![Just(1usize), 2usize..6, 8usize..20];
    let sizes = (size.clone(), size.clone(), size.clone(), size.clone(), size, 1usize..5);
    let path = (0usize..4, -4.0f64..4.0, any::<bool>(), -0.6f64..0.6, any::<[bool; 2]>(), any::<bool>());
    let weighting = prop_oneof![Just(Weighting::Even), Just(Weighting::Magnification)];
    (sizes, path, weighting, -5.0f64..5.0, 0.3f64..2.5, 0.4f64..2.0).prop_map(
        |(
            (nz, ny, nx, rows, columns, views),
            (kind, start, helix, tilt, flips, inside),
            weighting,
            shift,
            voxel,
            pitch,
        )| {
            let grid =
                VolumeGrid::new([nz, ny, nx], [voxel, 0.8 * voxel, 1.3 * voxel], [shift, -0.3, 0.4 * shift])
                    .unwrap();
            let extent = grid.extent_mm().into_iter().fold(1.0, f64::max);
            // Some sources stand inside the volume.
            let distance = if inside { 0.3 * extent } else { 2.0 * extent + 7.0 };
            let orbit = Orbit {
                source_to_axis_mm: (kind != 0).then_some(distance),
                axis_to_detector_mm: 0.9 * extent,
                offset_mm: [0.2 * shift, 0.1],
                tilt: if kind == 3 { tilt } else { 0.0 },
                height_mm: 0.1,
                advance_mm: if helix { 2.0 } else { 0.0 },
                ..Orbit::default()
            }
            .arc(start, TAU, views);
            let radius_mm = (kind == 2).then_some(20.0 * extent + 60.0);
            let detector = Detector { rows, columns, pitch_mm: [pitch, 1.1 * pitch], radius_mm };
            let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
            let mut views = geometry.views().to_vec();
            for view in &mut views {
                if flips[0] {
                    view.u = view.u.map(|x| -x);
                }
                if flips[1] {
                    view.v = view.v.map(|x| -x);
                }
            }
            Case { geometry: ProjectionGeometry::new(detector, views).unwrap(), grid, weighting }
        },
    )
}

fn run<R: Number>(
    variant: &Variant<Problem, Implementation<R>>,
    operation: Operation,
    case: &Case,
    input: &[R],
) -> Option<Vec<R>> {
    let Implementation::Cpu(implementation) = &variant.implementation else { return None };
    let scan = Scan { geometry: &case.geometry, grid: &case.grid };
    let device = Device::cpu().unwrap();
    let [volume, pixels] = [case.grid.shape_zyx(), case.geometry.shape()].map(|shape| shape.iter().product());
    let nan = <R as rayspin_core::Real>::from_f64(f64::NAN);
    let mut out = vec![nan; if operation == Operation::Forward { pixels } else { volume }];
    let cpu = device.cpu_side();
    match operation {
        Operation::Forward => (implementation.forward)(cpu, scan, input, &mut out),
        Operation::Adjoint => (implementation.adjoint)(cpu, scan, input, &mut out),
        Operation::Backproject => (implementation.backproject)(cpu, scan, case.weighting, input, &mut out),
    }
    .unwrap();
    Some(out)
}

/// The same on a GPU; none where the variant does not run the operation.
fn run_on_gpu(
    device: &Device,
    implementation: &CudaImplementation,
    operation: Operation,
    case: &Case,
    input: &[f32],
) -> Option<Vec<f32>> {
    let plan = cuda::Plan::new(device, Scan { geometry: &case.geometry, grid: &case.grid }).unwrap();
    run_planned(&plan, device, implementation, operation, case, input)
}

fn run_planned(
    plan: &cuda::Plan,
    device: &Device,
    implementation: &CudaImplementation,
    operation: Operation,
    case: &Case,
    input: &[f32],
) -> Option<Vec<f32>> {
    let Backend::Cuda(gpu) = device.backend() else { return None };
    let (volume, pixels) = (case.grid.shape_zyx(), case.geometry.shape());
    let (from, to) = if operation == Operation::Forward { (volume, pixels) } else { (pixels, volume) };
    let input = Array::from_slice(device, &from, input).unwrap();
    let mut out = Array::zeros(device, &to).unwrap();
    out.fill(f32::NAN).unwrap();
    match operation {
        Operation::Forward => implementation.forward?(gpu, plan, &input, &mut out),
        Operation::Adjoint => implementation.adjoint?(gpu, plan, &input, &mut out),
        Operation::Backproject if case.geometry.detector().radius_mm.is_some() => {
            assert!((implementation.backproject)(gpu, plan, case.weighting, &input, &mut out).is_err());
            return None;
        }
        Operation::Backproject => (implementation.backproject)(gpu, plan, case.weighting, &input, &mut out),
    }
    .unwrap();
    Some(out.to_vec().unwrap())
}

fn wanted(operation: Operation, case: &Case, input: &[f64]) -> Vec<f64> {
    let Case { geometry, grid, weighting } = case;
    match operation {
        Operation::Forward => reference::forward(reference::JOSEPH, geometry, grid, input),
        Operation::Adjoint => reference::adjoint(reference::JOSEPH, geometry, grid, input),
        Operation::Backproject => reference::backproject(geometry, grid, *weighting, input),
    }
}

const OPERATIONS: [Operation; 3] = [Operation::Forward, Operation::Adjoint, Operation::Backproject];

/// Volume and projections of a case.
fn inputs(case: &Case, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let [voxels, pixels] = [case.grid.shape_zyx(), case.geometry.shape()].map(|shape| shape.iter().product());
    (numbers(voxels, seed), numbers(pixels, seed ^ 1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_variant_computes_the_references(case in cases(), seed in any::<u64>()) {
        let (volume, values) = inputs(&case, seed);
        for operation in OPERATIONS {
            let input = if operation == Operation::Forward { &volume } else { &values };
            let wanted = wanted(operation, &case, input);
            for variant in variants::<f64>() {
                let found = run(&variant, operation, &case, input).unwrap();
                let error = relative(found.into_iter(), &wanted);
                prop_assert!(error <= 1e-9, "{} {operation:?} f64: {error:e}", variant.name);
            }
            for variant in variants::<f32>() {
                let Some(found) = run(&variant, operation, &case, &narrow(input)) else { continue };
                let error = relative(found.into_iter().map(f64::from), &wanted);
                prop_assert!(error <= variant.tolerance, "{} {operation:?}: {error:e}", variant.name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_variant_of_a_gpu_computes_the_references(case in cases(), seed in any::<u64>()) {
        let (volume, values) = inputs(&case, seed);
        for (device, operation) in crate::cuda::gpus().iter().flat_map(|gpu| OPERATIONS.map(|operation| (gpu, operation))) {
            let input = if operation == Operation::Forward { &volume } else { &values };
            let wanted = wanted(operation, &case, input);
            for variant in variants::<f32>() {
                let Implementation::Cuda(implementation) = &variant.implementation else { continue };
                let Some(found) = run_on_gpu(device, implementation, operation, &case, &narrow(input)) else { continue };
                let error = relative(found.into_iter().map(f64::from), &wanted);
                prop_assert!(error <= variant.tolerance, "{} {operation:?}: {error:e}", variant.name);
            }
        }
    }
}

#[test]
fn the_projector_runs_the_best_variant_and_refuses_what_does_not_fit() {
    let detector = Detector { rows: 9, columns: 12, pitch_mm: [1.5; 2], radius_mm: None };
    let orbit =
        Orbit { source_to_axis_mm: Some(60.0), axis_to_detector_mm: 30.0, ..Orbit::default() }.turn(5);
    let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
    let grid = VolumeGrid::new([8, 9, 10], [1.0; 3], [0.0; 3]).unwrap();
    let case = Case { geometry, grid, weighting: Weighting::Magnification };
    let (volume, values) = inputs(&case, 7);
    for device in crate::cuda::gpus().iter().chain([&Device::cpu().unwrap()]) {
        let projector = Projector::new(device, &case.geometry, &case.grid).unwrap();
        let mut v = Array::from_vec(device, &[8, 9, 10], narrow(&volume)).unwrap();
        let mut p = Array::zeros(device, &[5, 9, 12]).unwrap();
        projector.forward(&v, &mut p).unwrap();
        let check = |found: &Array<f32>, operation, input: &[f64]| {
            let wanted = wanted(operation, &case, input);
            assert!(
                relative(found.to_vec().unwrap().into_iter().map(f64::from), &wanted) < 4e-6,
                "{operation:?}"
            );
        };
        check(&p, Operation::Forward, &volume);
        let p = Array::from_vec(device, &[5, 9, 12], narrow(&values)).unwrap();
        projector.adjoint(&p, &mut v).unwrap();
        check(&v, Operation::Adjoint, &values);
        projector.backproject(case.weighting, &p, &mut v).unwrap();
        check(&v, Operation::Backproject, &values);
        let mut small = Array::zeros(device, &[5, 9, 11]).unwrap();
        assert!(projector.forward(&v, &mut small).is_err() && projector.adjoint(&small, &mut v).is_err());
        let wide = Array::<f64>::zeros(device, &[8, 9, 10]).unwrap();
        let found = projector.forward(&wide, &mut Array::zeros(device, &[5, 9, 12]).unwrap());
        assert_eq!(found.is_ok(), matches!(device.backend(), Backend::Cpu(_)));
    }
}

/// `rows` x `columns` pixels of `pitch_mm`, and voxels of 1 mm, seen from far away so that no ray is steep.
fn tall(
    rows: usize,
    columns: usize,
    pitch_mm: [f64; 2],
    views: usize,
    shape: [usize; 3],
    flip: bool,
) -> Case {
    let detector = Detector { rows, columns, pitch_mm, radius_mm: None };
    let orbit =
        Orbit { source_to_axis_mm: Some(20.0 * rows as f64), axis_to_detector_mm: 900.0, ..Orbit::default() };
    let geometry = ProjectionGeometry::orbit(detector, &orbit.arc(0.3, TAU, views)).unwrap();
    let mut views = geometry.views().to_vec();
    for view in views.iter_mut().filter(|_| flip) {
        view.v = view.v.map(|x| -x);
    }
    let geometry = ProjectionGeometry::new(detector, views).unwrap();
    let grid = VolumeGrid::new(shape, [1.0; 3], [0.3, 0.1, -0.2]).unwrap();
    Case { geometry, grid, weighting: Weighting::Magnification }
}

#[test]
fn lines_longer_than_a_warp_takes_run_in_tiles_and_many_views_in_parts() {
    let cases = [
        // Tiles of 256; 5 columns of pixels within 1 of a voxel; 35 views are read by two rounds of lanes.
        tall(290, 23, [0.4, 1.0], 35, [270, 5, 6], false),
        // Voxels are 5 rows apart, or rows 4 voxels, and mixed lines hold few of them.
        tall(290, 7, [1.0, 0.2], 3, [270, 5, 6], true),
        tall(290, 7, [1.0, 4.0], 3, [1000, 3, 4], false),
        // Places on a large detector are as exact as on a small one.
        tall(2049, 3, [1.0, 1.0], 2, [2001, 2, 2], true),
    ];
    for (case, device) in cases.iter().flat_map(|case| crate::cuda::gpus().iter().map(move |gpu| (case, gpu)))
    {
        // Rows that are 4 voxels apart make errors of their places 4 times as large in voxels.
        let bound = 1e-6 * case.geometry.detector().pitch_mm[1].max(1.0);
        let (volume, values) = inputs(case, 3);
        let mut plan = cuda::Plan::new(device, Scan { geometry: &case.geometry, grid: &case.grid }).unwrap();
        let Backend::Cuda(cuda) = device.backend() else { unreachable!() };
        assert!(plan.runs_in_lines(cuda));
        let implementation = CudaImplementation {
            forward: Some(cuda::lines::forward),
            adjoint: Some(cuda::lines::adjoint),
            backproject: cuda::lines::backproject,
        };
        for operation in OPERATIONS {
            let input = if operation == Operation::Forward { &volume } else { &values };
            let wanted = wanted(operation, case, input);
            let run =
                || run_planned(&plan, device, &implementation, operation, case, &narrow(input)).unwrap();
            let whole = run();
            let error = relative(whole.iter().map(|&value| f64::from(value)), &wanted);
            assert!(error <= bound, "{} voxels along z, {operation:?}: {error:e}", case.grid.shape_zyx()[0]);
            assert_eq!(run(), whole, "{operation:?} again");
            // Room for 32 of 35 views at once, or one of 2 or 3.
            let room = plan.held;
            plan.held = if case.geometry.views().len() > 32 { 33 * 23 * 1240 } else { 1 };
            let parts = run_planned(&plan, device, &implementation, operation, case, &narrow(input)).unwrap();
            let error = relative(parts.into_iter().map(f64::from), &wanted);
            assert!(error <= bound, "{operation:?} in parts: {error:e}");
            plan.held = room;
        }
    }
}
