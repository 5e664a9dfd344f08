use proptest::prelude::*;
use rayspin_core::{Detector, Orbit, ProjectionGeometry};
use rayspin_device::cpu::simd::levels;
use rayspin_tune::input::signed_unit;

use super::voxels::Voxels;
use super::*;
use crate::projection::Projector;

/// A picture of a volume.
#[derive(Debug, Clone)]
struct Case {
    scene: Scene,
    grid: VolumeGrid,
    volume: Vec<f32>,
}

fn knot(value: f32, colour: [f32; 3], opacity: f32) -> Knot {
    Knot { value, colour, opacity }
}

/// Opaque from 0.7 on, and clear up to 0.3.
fn transfer() -> Transfer {
    Transfer::new(vec![
        knot(0.3, [1.0, 0.0, 0.2], 0.0),
        knot(0.5, [0.2, 0.9, 0.1], 0.05),
        knot(0.7, [0.1, 0.3, 1.0], 0.4),
        knot(1.0, [1.0, 1.0, 1.0], 0.2),
    ])
    .unwrap()
}

fn mode(kind: usize) -> Mode {
    match kind {
        0 => Mode::XRay,
        1 => Mode::Maximum { missed: -7.0 },
        2 => Mode::Volume(transfer()),
        _ => Mode::Surface(Surface { shininess: 5.0, ..Surface::of(0.6) }),
    }
}

/// Waves from 0 to 1, of some voxels' length, and empty where they are low, so that blocks may be left out.
fn waves(shape: [usize; 3], seed: u64) -> Vec<f32> {
    let [_, ny, nx] = shape;
    let rate = |i: usize| 0.25 + 0.15 * f64::from(signed_unit(seed, i));
    let phase = |i: usize| 6.0 * f64::from(signed_unit(seed, 10 + i));
    let wave = |i: usize, at: usize| (rate(i) * at as f64 + phase(i)).sin();
    (0..shape.iter().product())
        .map(|at| {
            let sum = wave(0, at % nx) + wave(1, at / nx % ny) + wave(2, at / nx / ny);
            ((0.5 + 0.3 * sum).clamp(0.0, 1.0) - 0.2).max(0.0) as f32 / 0.8
        })
        .collect()
}

fn cases(kinds: std::ops::Range<usize>) -> impl Strategy<Value = Case> {
    let size = prop_oneof![Just(1usize), 2usize..6, 8usize..24];
    let sizes = (size.clone(), size.clone(), size, 1usize..20, 1usize..20);
    let direction = prop_oneof![
        prop::array::uniform3(-1.0f64..1.0).prop_filter("a direction", |d| d.iter().any(|x| x.abs() > 0.05)),
        // Along an axis, and exactly between two.
        prop::sample::select(vec![
            [1.0, 0.0, 0.0],
            [0.0, -1.0, 0.0],
            [0.0, 0.0, 1.0],
            [1.0, 1.0, 0.0],
            [0.0, 1.0, -1.0]
        ]),
    ];
    let lens = (any::<bool>(), 0.2f64..2.2, prop_oneof![Just(0.0f64), 0.0..1.0, 2.0..5.0]);
    (
        sizes,
        kinds,
        direction,
        lens,
        prop::array::uniform3(-3.0f64..3.0),
        0.4f64..2.0,
        0.3f64..3.0,
        any::<u64>(),
    )
        .prop_map(
            |(
                (nz, ny, nx, rows, columns),
                kind,
                direction,
                (perspective, angle, far),
                aside,
                voxel,
                step,
                seed,
            )| {
                let grid = VolumeGrid::new([nz, ny, nx], [voxel, 0.8 * voxel, 1.3 * voxel], [3.0, -1.0, 0.5])
                    .unwrap();
                let extent = grid.extent_mm().into_iter().fold(1.0, f64::max);
                let target: [f64; 3] = std::array::from_fn(|axis| grid.centre_mm()[axis] + 0.1 * aside[axis]);
                // Some eyes are in the volume.
                let eye = std::array::from_fn(|axis| target[axis] + (0.2 + far * extent) * direction[axis]);
                let lens = match perspective {
                    true => Lens::Perspective { field_of_view: angle },
                    false => Lens::Orthographic { width_mm: 1.5 * extent },
                };
                let up = if direction[0] == 0.0 && direction[1] == 0.0 {
                    [0.0, 1.0, 0.0]
                } else {
                    [0.1, 0.0, 1.0]
                };
                let camera = Camera::new(lens, eye, target, up, [rows, columns]).unwrap();
                let scene = Scene::new(camera, mode(kind)).step(&grid, step * voxel).unwrap();
                Case { scene, grid, volume: waves([nz, ny, nx], seed) }
            },
        )
}

fn wanted(case: &Case) -> Vec<f64> {
    let ([rows, columns], channels) = (case.scene.camera.shape(), case.scene.mode.channels());
    let pixel =
        |at: usize| reference::pixel(&case.scene, &case.grid, &case.volume, at / columns, at % columns);
    (0..rows * columns).flat_map(|at| pixel(at).into_iter().take(channels)).collect()
}

/// Whether a picture is the reference's within a share of the largest number. Rays that graze a surface may
/// meet it or not.
fn compare(case: &Case, name: &str, found: &[f32], wanted: &[f64], tolerance: f64) {
    let whole = wanted.iter().fold(1.0, |most: f64, w| most.max(w.abs()));
    let channels = case.scene.mode.channels();
    let mut apart = Vec::new();
    for (at, (found, wanted)) in found.chunks(channels).zip(wanted.chunks(channels)).enumerate() {
        let worst = found
            .iter()
            .zip(wanted)
            .map(|(f, w)| (f64::from(*f) - w).abs())
            .fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a });
        if worst.is_nan() || worst > tolerance * whole {
            apart.push((at, found.to_vec(), wanted.to_vec()));
        }
    }
    let allowed =
        if matches!(case.scene.mode, Mode::Surface(_)) { 1 + wanted.len() / channels / 20 } else { 0 };
    assert!(
        apart.len() <= allowed,
        "{name}: {} pixels of {} differ by more than {tolerance:e}, the first {:?}, of {:?} through {:?}",
        apart.len(),
        wanted.len() / channels,
        apart[0],
        case.scene,
        case.grid
    );
}

/// The allowed difference of one number.
fn tolerance(mode: &Mode, texture: bool) -> f64 {
    match mode {
        Mode::XRay | Mode::Maximum { .. } if !texture => 2e-5,
        Mode::XRay | Mode::Maximum { .. } => 1e-2,
        Mode::Volume(_) => {
            if texture {
                2e-2
            } else {
                2e-3
            }
        }
        Mode::Surface(_) => {
            if texture {
                5e-2
            } else {
                1e-2
            }
        }
    }
}

fn on_cpu(case: &Case, device: &Device, draw: cpu::Draw, spread_out: bool) -> Vec<f32> {
    let (cpu, Case { scene, grid, volume }) = (device.cpu_side(), case);
    let size = grid.shape_xyz();
    let (blocks, spread) = (Blocks::new(cpu, volume, size).unwrap(), Spread::new(cpu, volume, size).unwrap());
    let voxels = if spread_out { spread.voxels() } else { Voxels::dense(volume, size) };
    let mut out = vec![f32::NAN; scene.shape().iter().product()];
    draw(cpu, Input { scene, grid, voxels, blocks: &blocks }, &mut out).unwrap();
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_variant_draws_the_reference(case in cases(0..4)) {
        let wanted = wanted(&case);
        for level in levels() {
            let device = Device::cpu_with_level(2, level).unwrap();
            for variant in variants(&case.scene.mode) {
                let Implementation::Cpu(implementation) = variant.implementation else { continue };
                let found = on_cpu(&case, &device, implementation.draw, implementation.spread);
                compare(&case, variant.name, &found, &wanted, tolerance(&case.scene.mode, false));
            }
        }
    }

    #[test]
    fn what_is_left_out_changes_nothing(case in cases(0..4)) {
        let device = Device::cpu_with_threads(1).unwrap();
        let (all, skipping) = (on_cpu(&case, &device, cpu::packets, false), on_cpu(&case, &device, cpu::skipping, false));
        for (all, skipping) in all.iter().zip(&skipping) {
            prop_assert!((all - skipping).abs() <= 1e-6 * all.abs().max(1.0), "{all} {skipping}");
        }
    }

    #[test]
    fn the_largest_value_of_a_ray_is_none_beyond_the_volumes(case in cases(1..2)) {
        let device = Device::cpu_with_threads(1).unwrap();
        let most = case.volume.iter().copied().fold(0.0, f32::max);
        for value in on_cpu(&case, &device, cpu::skipping, false) {
            prop_assert!(value == -7.0 || (0.0..=most * (1.0 + 1e-6)).contains(&value), "{value} of {most}");
        }
    }

    #[test]
    fn a_constant_volume_gives_chords_and_their_opacity(case in cases(0..1), value in 0.31f32..0.99) {
        let mut case = Case { volume: vec![value; case.volume.len()], ..case };
        let device = Device::cpu_with_threads(1).unwrap();
        let lengths: Vec<f64> = chords(&case);
        for draw in [cpu::alone as cpu::Draw, cpu::packets, cpu::skipping] {
            for (found, length) in on_cpu(&case, &device, draw, false).iter().zip(&lengths) {
                let wanted = f64::from(value) * length;
                prop_assert!((f64::from(*found) - wanted).abs() <= 2e-5 * wanted.max(1.0), "{found} for {wanted}");
            }
        }
        let transfer = transfer();
        let opacity = f64::from(transfer.most_opaque(value, value));
        case.scene.mode = Mode::Volume(transfer);
        for draw in [cpu::alone as cpu::Draw, cpu::packets, cpu::skipping] {
            for (found, length) in on_cpu(&case, &device, draw, false).chunks(4).zip(&lengths) {
                let wanted = 1.0 - (-opacity * length).exp();
                prop_assert!((f64::from(found[3]) - wanted).abs() <= 1.1e-3, "{found:?} for {wanted}");
                // Colours are constant, too.
                prop_assert!(found[..3].iter().all(|light| *light <= found[3] + 1e-5));
            }
        }
    }
}

/// Lengths of rays in the box, from its six planes.
fn chords(case: &Case) -> Vec<f64> {
    let ([rows, columns], grid) = (case.scene.camera.shape(), &case.grid);
    let chord = |at: usize| {
        let (start, along) = case.scene.camera.ray((at / columns) as f64, (at % columns) as f64);
        let mut range = [if case.scene.camera.from_point { 0.0 } else { f64::NEG_INFINITY }, f64::INFINITY];
        for axis in 0..3 {
            let half = 0.5 * grid.extent_mm()[axis];
            let middle = grid.centre_mm()[axis];
            let [one, other] = [middle - half, middle + half].map(|side| {
                if along[axis] == 0.0 {
                    (side - start[axis]).signum() * f64::INFINITY
                } else {
                    (side - start[axis]) / along[axis]
                }
            });
            range = [range[0].max(one.min(other)), range[1].min(one.max(other))];
        }
        (range[1] - range[0]).max(0.0)
    };
    (0..rows * columns).map(chord).collect()
}

fn on_gpu(case: &Case, device: &Device, implementation: cuda::CudaImplementation) -> Vec<f32> {
    let Backend::Cuda(gpu) = device.backend() else { return Vec::new() };
    let volume = Array::from_slice(device, &case.grid.shape_zyx(), &case.volume).unwrap();
    let prepared = cuda::Volume::new(gpu, &volume).unwrap();
    let mut frame = cuda::Frame::new(device, &case.scene, &case.grid).unwrap();
    let mut out = Array::zeros(device, &case.scene.shape()).unwrap();
    out.fill(f32::NAN).unwrap();
    let volume = cuda::PreparedVolume { voxels: &volume, prepared: &prepared };
    implementation.draw(gpu, &Config::default(), volume, &mut frame, &mut out).unwrap();
    out.to_vec().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn every_variant_of_a_gpu_draws_the_reference(case in cases(0..4)) {
        let wanted = wanted(&case);
        for device in crate::cuda::gpus() {
            for variant in variants(&case.scene.mode) {
                let Implementation::Cuda(implementation) = variant.implementation else { continue };
                let found = on_gpu(&case, device, implementation);
                compare(&case, variant.name, &found, &wanted, tolerance(&case.scene.mode, implementation.texture));
            }
        }
    }
}

#[test]
fn line_integrals_of_a_view_are_the_projectors() {
    let detector = Detector { rows: 23, columns: 31, pitch_mm: [1.4, 1.1], radius_mm: None };
    let orbit =
        Orbit { source_to_axis_mm: Some(90.0), axis_to_detector_mm: 60.0, tilt: 0.1, ..Orbit::default() }
            .turn(5);
    let parallel = ProjectionGeometry::orbit(detector, &Orbit::default().turn(3)).unwrap();
    let grid = VolumeGrid::new([14, 17, 15], [1.1, 0.9, 1.0], [0.5, 1.0, -0.7]).unwrap();
    // The projector's volume falls to 0 beyond the outer voxels, where a picture's has their value: they are
    // 0 here.
    let mut volume = waves(grid.shape_zyx(), 3);
    for (at, value) in volume.iter_mut().enumerate() {
        let outer = |at: usize, count: usize| at == 0 || at + 1 == count;
        if outer(at % 15, 15) || outer(at / 15 % 17, 17) || outer(at / 255, 14) {
            *value = 0.0;
        }
    }
    for geometry in [ProjectionGeometry::orbit(detector, &orbit).unwrap(), parallel] {
        for device in crate::cuda::gpus().iter().chain([&Device::cpu().unwrap()]) {
            let array = Array::from_slice(device, &grid.shape_zyx(), &volume).unwrap();
            let mut projections = Array::zeros(device, &geometry.shape()).unwrap();
            Projector::new(device, &geometry, &grid).unwrap().forward(&array, &mut projections).unwrap();
            let projections = projections.to_vec().unwrap();
            let renderer = Renderer::new(&grid, array).unwrap();
            for view in 0..geometry.views().len() {
                let scene = Scene::new(Camera::of_view(&geometry, view).unwrap(), Mode::XRay);
                let mut picture = Array::zeros(device, &scene.shape()).unwrap();
                renderer.draw(&scene, &mut picture).unwrap();
                for (found, wanted) in picture.to_vec().unwrap().iter().zip(&projections[view * 23 * 31..]) {
                    assert!((found - wanted).abs() <= 2e-5 * wanted.abs().max(1.0), "{found} for {wanted}");
                }
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let device = Device::cpu().unwrap();
    let grid = VolumeGrid::new([2, 3, 4], [1.0; 3], [0.0; 3]).unwrap();
    let camera = |lens, eye, up| Camera::new(lens, eye, [0.0; 3], up, [5, 6]);
    let (lens, up) = (Lens::Orthographic { width_mm: 9.0 }, [0.0, 0.0, 1.0]);
    let wrong = [
        camera(lens, [0.0; 3], up),
        camera(lens, [0.0, 0.0, 4.0], up),
        camera(lens, [f64::NAN, 0.0, 4.0], up),
        camera(Lens::Orthographic { width_mm: 0.0 }, [0.0, 4.0, 0.0], up),
        camera(Lens::Perspective { field_of_view: 3.2 }, [0.0, 4.0, 0.0], up),
        Camera::new(lens, [0.0, 4.0, 0.0], [0.0; 3], up, [0, 6]),
        Camera::new(lens, [0.0, 4.0, 0.0], [0.0; 3], up, [usize::MAX, 6]),
    ];
    assert!(wrong.iter().all(Result::is_err), "{wrong:?}");
    let scene = Scene::new(camera(lens, [0.0, 9.0, 0.0], up).unwrap(), Mode::XRay);
    for step in [0.0, -1.0, f64::NAN, 1e-3] {
        assert!(scene.clone().step(&grid, step).is_err(), "{step}");
    }
    assert!(Renderer::new(&grid, Array::zeros(&device, &[2, 3, 5]).unwrap()).is_err());
    let renderer = Renderer::new(&grid, Array::zeros(&device, &[2, 3, 4]).unwrap()).unwrap();
    assert!(renderer.draw(&scene, &mut Array::zeros(&device, &[6, 5]).unwrap()).is_err());
    for knots in [
        vec![],
        vec![knot(1.0, [0.0; 3], 1.0), knot(1.0, [0.0; 3], 1.0)],
        vec![knot(1.0, [0.0, 0.0, 1.5], 1.0)],
        vec![knot(1.0, [0.0; 3], -1.0)],
        vec![knot(f32::NAN, [0.0; 3], 1.0)],
        (0..65).map(|i| knot(i as f32, [0.0; 3], 1.0)).collect(),
    ] {
        assert!(Transfer::new(knots).is_err());
    }
}
