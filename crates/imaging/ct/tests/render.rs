//! X-ray images of voxelised phantoms against exact line integrals.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_core::VolumeGrid;
use rayspin_core::vector::{add, dot, scaled, sub};
use rayspin_ct::phantom::{Form, Phantom, Solid};
use rayspin_device::{Array, Device};
use rayspin_kernels::render::{Camera, Lens, Mode, Renderer, Scene};

const PARALLEL: Lens = Lens::Orthographic { width_mm: 210.0 };
const FAN: Lens = Lens::Perspective { field_of_view: 0.5 };
const SIDES: [(Lens, [f64; 3]); 3] =
    [(PARALLEL, [0.0, -500.0, 0.0]), (PARALLEL, [300.0, -400.0, 150.0]), (FAN, [-200.0, -350.0, 60.0])];

fn grid(voxels: usize) -> VolumeGrid {
    VolumeGrid::new([voxels; 3], [200.0 / voxels as f64; 3], [0.0; 3]).unwrap()
}

/// The root mean square of the difference over all pixels, relative to the largest line integral. `exact`
/// takes a point of the ray before the volume, and the ray's direction.
fn error(
    grid: &VolumeGrid,
    volume: Vec<f32>,
    (lens, eye): (Lens, [f64; 3]),
    exact: impl Fn([f64; 3], [f64; 3]) -> f64,
) -> f64 {
    let device = Device::cpu().unwrap();
    let renderer = Renderer::new(grid, Array::from_vec(&device, &grid.shape_zyx(), volume).unwrap()).unwrap();
    let camera = Camera::new(lens, eye, [0.0; 3], [0.0, 0.0, 1.0], [96, 128]).unwrap();
    let scene = Scene::new(camera.clone(), Mode::XRay).step(grid, grid.spacing_mm()[0]).unwrap();
    let mut picture = Array::zeros(&device, &scene.shape()).unwrap();
    renderer.draw(&scene, &mut picture).unwrap();
    let (mut wrong, mut most) = (0.0, 0.0f64);
    for (at, found) in picture.to_vec().unwrap().into_iter().enumerate() {
        let (start, along) = camera.ray((at / 128) as f64, (at % 128) as f64);
        let start = if matches!(lens, Lens::Orthographic { .. }) {
            add(start, scaled(along, -1000.0))
        } else {
            start
        };
        let exact = exact(start, along);
        wrong += (f64::from(found) - exact).powi(2);
        most = most.max(exact);
    }
    (wrong / (96.0 * 128.0f64)).sqrt() / most
}

/// A smooth object: (centre, standard deviation in mm, attenuation at the centre in 1/mm). Its parts end
/// within the volume.
const SMOOTH: [([f64; 3], f64, f64); 3] =
    [([0.0; 3], 18.0, 0.02), ([20.0, -30.0, 10.0], 9.0, 0.03), ([-25.0, 25.0, -20.0], 12.0, -0.01)];

#[test]
fn x_ray_images_are_the_exact_line_integrals() {
    let grid = grid(96);
    let [first, spacing] = [grid.first_mm(), grid.spacing_mm()];
    let place = |at: usize| -> [f64; 3] {
        let index = [at % 96, at / 96 % 96, at / 96 / 96];
        std::array::from_fn(|axis| first[axis] + index[axis] as f64 * spacing[axis])
    };
    let at = |place: [f64; 3]| -> f64 {
        let part = |&(centre, deviation, value): &([f64; 3], f64, f64)| {
            let away = sub(place, centre);
            value * (-0.5 * dot(away, away) / (deviation * deviation)).exp()
        };
        SMOOTH.iter().map(part).sum()
    };
    let volume: Vec<f32> = (0..96 * 96 * 96).map(|voxel| at(place(voxel)) as f32).collect();
    // The integral of a Gaussian along a line: √(2π) σ times its value in the nearest point.
    let exact = |start: [f64; 3], along: [f64; 3]| -> f64 {
        let part = |&(centre, deviation, value): &([f64; 3], f64, f64)| {
            let to = sub(centre, start);
            let nearest = dot(to, to) - dot(to, along).powi(2) / dot(along, along);
            let peak = value * (-0.5 * nearest / (deviation * deviation)).exp();
            peak * deviation * std::f64::consts::TAU.sqrt()
        };
        SMOOTH.iter().map(part).sum()
    };
    for side in SIDES {
        let found = error(&grid, volume.clone(), side, exact);
        println!("{side:?}: {found:.2e}");
        assert!(found <= 1e-3, "{side:?}: {found}");
    }
}

#[test]
fn errors_at_sharp_edges_halve_with_the_voxels() {
    let ball = |centre: [f64; 3], radii: [f64; 3], attenuation| {
        Solid::new(Form::Ellipsoid, centre, radii, attenuation)
    };
    let phantom = Phantom::new(vec![
        ball([0.0; 3], [80.0, 90.0, 85.0], 0.02),
        ball([20.0, -30.0, 10.0], [25.0, 20.0, 30.0], 0.01),
        ball([-35.0, 25.0, -20.0], [15.0, 30.0, 20.0], 0.02),
    ])
    .unwrap();
    let device = Device::cpu().unwrap();
    for side in SIDES {
        let found = [32, 64, 128].map(|voxels| {
            let volume = phantom.volume(device.cpu_side(), &grid(voxels)).unwrap();
            error(&grid(voxels), volume, side, |start, along| {
                phantom.line_integral(start, add(start, scaled(along, 3000.0)))
            })
        });
        println!("{side:?}: {found:?}");
        // The error of a ray that grazes a solid: 1e-3 would take voxels of 0.4 mm, 512 along each axis.
        assert!(found[2] <= 4.2e-3 && found[2] < 0.6 * found[1] && found[1] < 0.6 * found[0], "{found:?}");
    }
}
