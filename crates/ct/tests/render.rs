//! X-ray images of a voxelised phantom against its exact line integrals.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_core::VolumeGrid;
use rayspin_core::vector::{add, scaled};
use rayspin_ct::phantom::{Form, Phantom, Solid};
use rayspin_device::{Array, Device};
use rayspin_kernels::render::{Camera, Lens, Mode, Renderer, Scene};

/// The root mean square of the difference over all pixels, relative to the largest line integral.
fn error(voxels: usize, lens: Lens, eye: [f64; 3], step_mm: f64) -> f64 {
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
    let grid = VolumeGrid::new([voxels; 3], [200.0 / voxels as f64; 3], [0.0; 3]).unwrap();
    let volume = phantom.volume(device.cpu_side(), &grid).unwrap();
    let renderer =
        Renderer::new(&grid, Array::from_vec(&device, &grid.shape_zyx(), volume).unwrap()).unwrap();
    let camera = Camera::new(lens, eye, [0.0; 3], [0.0, 0.0, 1.0], [96, 128]).unwrap();
    let scene = Scene::new(camera.clone(), Mode::XRay).step(&grid, step_mm).unwrap();
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
        let exact = phantom.line_integral(start, add(start, scaled(along, 3000.0)));
        wrong += (f64::from(found) - exact).powi(2);
        most = most.max(exact);
    }
    (wrong / (96.0 * 128.0f64)).sqrt() / most
}

#[test]
fn x_ray_images_are_the_exact_line_integrals() {
    let (parallel, fan) = (Lens::Orthographic { width_mm: 210.0 }, Lens::Perspective { field_of_view: 0.5 });
    for (lens, eye) in
        [(parallel, [0.0, -500.0, 0.0]), (parallel, [300.0, -400.0, 150.0]), (fan, [-200.0, -350.0, 60.0])]
    {
        let found = [64, 128].map(|voxels| error(voxels, lens, eye, 200.0 / voxels as f64));
        println!("{lens:?} from {eye:?}: {found:.2?}");
        // What is left is the error of voxels at the edges of the solids, which halves with their size.
        assert!(found[1] <= 5e-3 && found[1] < 0.6 * found[0], "{found:?}");
    }
}
