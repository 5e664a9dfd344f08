use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, Trajectory};
use rayspin_device::{Array, Device};

use super::*;
use crate::nufft::kernel::Kernel;
use crate::nufft::{Nufft, Options};

const PI: f64 = std::f64::consts::PI;

fn cpu() -> Device {
    Device::cpu_with_threads(2).unwrap()
}

fn trajectory(points: Vec<Vec<f64>>) -> Trajectory {
    let dims = points[0].len();
    let flat: Vec<f64> = points.concat();
    Trajectory::from_cycles_per_fov(Array2::from_shape_vec((flat.len() / dims, dims), flat).unwrap()).unwrap()
}

/// Full spokes, evenly spread: `readout` samples from −n/2 in steps of n/readout, plus `offset` steps.
fn spokes_2d(n: f64, spokes: usize, readout: usize, offset: f64) -> Trajectory {
    let mut points = Vec::new();
    for spoke in 0..spokes {
        let angle = PI * spoke as f64 / spokes as f64;
        for i in 0..readout {
            let r = n * ((i as f64 + offset) / readout as f64 - 0.5);
            points.push(vec![r * angle.cos(), r * angle.sin()]);
        }
    }
    trajectory(points)
}

/// Directions over a half sphere by golden angle.
fn spokes_3d(n: f64, spokes: usize, readout: usize, centre_out: bool) -> Trajectory {
    let mut points = Vec::new();
    for spoke in 0..spokes {
        let z = if centre_out { 2.0 } else { 1.0 } * (spoke as f64 + 0.5) / spokes as f64;
        let z = if centre_out { z - 1.0 } else { z };
        let (angle, flat) = (spoke as f64 * PI * (5f64.sqrt() - 1.0), (1.0 - z * z).sqrt());
        for i in 0..readout {
            let t = i as f64 / readout as f64;
            let r = n * if centre_out { 0.5 * t } else { t - 0.5 };
            points.push(vec![r * flat * angle.cos(), r * flat * angle.sin(), r * z]);
        }
    }
    trajectory(points)
}

fn radius(trajectory: &Trajectory, sample: usize) -> f64 {
    trajectory.point(sample).iter().map(|k| k * k).sum::<f64>().sqrt()
}

fn sum(weights: &[f32]) -> f64 {
    weights.iter().map(|&w| f64::from(w)).sum()
}

/// Fᴴ diag(w) F of an image.
fn gridded(trajectory: &Trajectory, matrix: &[usize], weights: &[f32], image: &[f32]) -> Vec<C32> {
    let device = cpu();
    let plan = Nufft::<f32>::new(&device, trajectory, matrix, &Options::tolerance(1e-5)).unwrap();
    let image: Vec<C32> = image.iter().map(|&v| C32::new(v, 0.0)).collect();
    let mut samples = Array::zeros(&device, &[trajectory.samples()]).unwrap();
    plan.forward(&Array::from_vec(&device, matrix, image).unwrap(), &mut samples).unwrap();
    for (s, w) in samples.cpu_mut().iter_mut().zip(weights) {
        *s *= *w;
    }
    let mut out = Array::zeros(&device, matrix).unwrap();
    plan.adjoint(&samples, &mut out).unwrap();
    out.cpu().to_vec()
}

/// A smooth object whose spectrum ends well inside the disc or ball, peak 1 at a point off the centre.
fn blob(matrix: &[usize]) -> Vec<f32> {
    let total: usize = matrix.iter().product();
    (0..total)
        .map(|flat| {
            let mut rest = flat;
            let mut exponent = 0.0;
            for &n in matrix.iter().rev() {
                let x = (rest % n) as f64 - (n / 2) as f64 - 2.0;
                rest /= n;
                exponent += (x / 2.5).powi(2);
            }
            (-exponent).exp() as f32
        })
        .collect()
}

fn largest_difference(found: &[C32], expected: &[f32]) -> f32 {
    found.iter().zip(expected).map(|(f, e)| (f - e).norm()).fold(0.0, f32::max)
}

#[test]
fn a_cartesian_scan_has_equal_weights_of_one_over_n() {
    let (ny, nx) = (20, 17);
    let points = (0..ny * nx)
        .map(|i| vec![(i % nx) as f64 - (nx / 2) as f64, (i / nx) as f64 - (ny / 2) as f64])
        .collect();
    let trajectory = trajectory(points);
    let weights = pipe_menon(&cpu(), &trajectory, &[ny, nx], 10).unwrap();
    for w in weights.cpu() {
        assert!((w * (nx * ny) as f32 - 1.0).abs() < 3e-3, "{}", w * (nx * ny) as f32);
    }
    let image = blob(&[ny, nx]);
    let found = gridded(&trajectory, &[ny, nx], weights.cpu(), &image);
    assert!(largest_difference(&found, &image) < 4e-3);
}

#[test]
fn pipe_menon_is_what_the_plain_iteration_gives() {
    let mut rng = ChaCha8Rng::seed_from_u64(31);
    for matrix in [vec![11], vec![8, 13], vec![6, 5, 7]] {
        let dims = matrix.len();
        let trajectory = Trajectory::from_cycles_per_fov(Array2::from_shape_fn((300, dims), |(_, d)| {
            let u: f64 = rng.random::<f64>() - 0.5;
            4.0 * u * u * u * matrix[dims - 1 - d] as f64
        }))
        .unwrap();
        for device in rayspin_emu::devices().unwrap() {
            let plan =
                Nufft::<f32>::with_kernel(&device, &trajectory, &matrix, 2.0, Kernel::new(8, 2.0)).unwrap();
            let found = pipe_menon(&device, &trajectory, &matrix, 8).unwrap().to_vec().unwrap();
            let expected = reference::pipe_menon(&trajectory, &matrix, plan.fine_shape(), 8, 8);
            for (f, e) in found.iter().zip(&expected) {
                assert!((f64::from(*f) / e - 1.0).abs() < 1e-3, "{}: {f} {e}", device.describe());
            }
        }
    }
}

#[test]
fn radial_weights_are_the_ramp_with_a_quarter_step_at_the_centre() {
    let (n, spokes, readout) = (16.0, 40, 32);
    let trajectory = spokes_2d(n, spokes, readout, 0.0);
    let weights = radial(&trajectory, &[16, 16]).unwrap();
    let step = n / readout as f64;
    for (j, &weight) in weights.iter().enumerate() {
        let r = radius(&trajectory, j);
        let k = if r < 1e-9 { step / 4.0 } else { r };
        // The outermost sample is on one side only, so half as many arms reach it.
        let arms = if r > n / 2.0 - step / 2.0 { spokes } else { 2 * spokes } as f64;
        let expected = 2.0 * PI * k * step / arms / 256.0;
        assert!((f64::from(weight) / expected - 1.0).abs() < 1e-4, "{r}");
    }
    // Half a step aside: two samples share the centre, and Σ w is the disc's area.
    let weights = radial(&spokes_2d(n, spokes, readout, 0.5), &[16, 16]).unwrap();
    assert!((sum(&weights) - PI / 4.0).abs() < 1e-5);
}

#[test]
fn radial_weights_fill_the_ball() {
    let trajectory = spokes_3d(10.0, 300, 20, true);
    let weights = radial(&trajectory, &[10, 10, 10]).unwrap();
    let reach = 5.0 - 0.125;
    assert!((sum(&weights) * 1000.0 / (4.0 / 3.0 * PI * reach * reach * reach) - 1.0).abs() < 1e-5);
    let trajectory = spokes_3d(10.0, 300, 20, false);
    let weights = radial(&trajectory, &[10, 10, 10]).unwrap();
    let step = 0.5;
    for j in [4, 10, 13, 51] {
        let r = radius(&trajectory, j);
        let expected = 4.0 * PI * (r * r + step * step / 12.0) * step / 600.0 / 1000.0;
        assert!((f64::from(weights[j]) / expected - 1.0).abs() < 1e-4);
    }
}

#[test]
fn a_fully_sampled_radial_scan_keeps_amplitudes() {
    // 2-D, both kinds of weights.
    let n = 32;
    let trajectory = spokes_2d(n as f64, 80, 64, 0.0);
    let image = blob(&[n, n]);
    let analytic = radial(&trajectory, &[n, n]).unwrap();
    let found = gridded(&trajectory, &[n, n], &analytic, &image);
    assert!(largest_difference(&found, &image) < 0.01);
    let iterated = pipe_menon(&cpu(), &trajectory, &[n, n], 30).unwrap();
    let found = gridded(&trajectory, &[n, n], iterated.cpu(), &image);
    assert!(largest_difference(&found, &image) < 0.02);
    // A point object: the disc holds Σ w ≈ π/4 of it.
    let mut point = vec![0.0; n * n];
    point[16 * n + 16] = 1.0;
    let peak = gridded(&trajectory, &[n, n], &analytic, &point)[16 * n + 16].re;
    assert!((f64::from(peak) - sum(&analytic)).abs() < 1e-3);
    // The outermost samples stand for half a step beyond the disc.
    let area = PI * (16.0f64 + 0.25).powi(2) / 1024.0;
    assert!((f64::from(peak) - area).abs() < 2e-3, "{peak} {area}");

    // 3-D.
    let n = 12;
    let trajectory = spokes_3d(n as f64, 500, 24, false);
    let image = blob(&[n, n, n]);
    let analytic = radial(&trajectory, &[n, n, n]).unwrap();
    let found = gridded(&trajectory, &[n, n, n], &analytic, &image);
    assert!(largest_difference(&found, &image) < 0.05, "{}", largest_difference(&found, &image));
}

#[test]
fn both_kinds_of_weights_agree_inside_a_dense_radial_scan() {
    let n = 32;
    let trajectory = spokes_2d(n as f64, 160, 128, 0.0);
    let analytic = radial(&trajectory, &[n, n]).unwrap();
    let iterated = pipe_menon(&cpu(), &trajectory, &[n, n], 40).unwrap();
    let mut worst: f32 = 0.0;
    for (j, (a, i)) in analytic.iter().zip(iterated.cpu()).enumerate() {
        let r = radius(&trajectory, j);
        if (3.0..n as f64 / 2.0 - 4.0).contains(&r) {
            worst = worst.max((i / a - 1.0).abs());
        }
    }
    assert!(worst < 0.05, "{worst}");
}

#[test]
fn bad_input_is_named() {
    let device = cpu();
    let spokes = spokes_2d(8.0, 5, 8, 0.0);
    assert!(pipe_menon(&device, &spokes, &[8, 8], 0).is_err());
    assert!(pipe_menon(&device, &spokes, &[8], 3).is_err());
    assert!(radial(&spokes, &[8, 0]).is_err());
    assert!(radial(&trajectory(vec![vec![1.0], vec![2.0]]), &[8]).is_err());
    // Parallel lines are no spokes, and neither is a spiral.
    let lines = (0..64).map(|i| vec![(i % 8) as f64 - 4.0, (i / 8) as f64 - 4.0]).collect();
    assert!(radial(&trajectory(lines), &[8, 8]).is_err());
    let spiral = (0..64)
        .map(|i| {
            let t = i as f64 / 5.0;
            vec![t * t.cos(), t * t.sin()]
        })
        .collect();
    assert!(radial(&trajectory(spiral), &[8, 8]).is_err());
    assert!(radial(&trajectory(vec![vec![0.0, 0.0]]), &[8, 8]).is_err());
    assert!(radial(&trajectory(vec![vec![0.0, 0.0]; 4]), &[8, 8]).is_err());
}

#[test]
fn density_by_blocks_is_that_of_the_whole() {
    for device in rayspin_emu::devices().unwrap() {
        for (trajectory, matrix, blocks) in [
            (spokes_2d(24.0, 30, 48, 0.0), vec![24, 24], [300, 517]),
            (spokes_3d(10.0, 60, 20, false), vec![10, 10, 10], [500, 1199]),
        ] {
            let whole = pipe_menon(&cpu(), &trajectory, &matrix, 6).unwrap();
            for points in [blocks[0], blocks[1], trajectory.samples(), 1 << 20] {
                let found = pipe_menon_by_blocks(&device, &trajectory, &matrix, 6, points).unwrap();
                for (a, b) in found.to_vec().unwrap().iter().zip(whole.cpu()) {
                    assert!((a - b).abs() <= 1e-4 * b, "{}, {points}: {a} {b}", device.describe());
                }
            }
            assert!(pipe_menon_by_blocks(&device, &trajectory, &matrix, 6, 0).is_err());
        }
    }
}
