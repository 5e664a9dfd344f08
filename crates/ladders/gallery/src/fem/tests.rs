//! Mathematics: convergence to a manufactured solution, and a system of one unknown.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::f64::consts::PI;

use rayspin_device::{Array, Device};

use super::*;

/// The largest error of u = sin πx sin πy sin πz in the unit cube with κ = 1 + x y / 2, n elements a side.
fn error(device: &Device, n: usize, iterations: usize) -> f64 {
    let h = 1.0 / n as f64;
    let p = Problem { shape: [n; 3], iterations };
    let exact = |[z, y, x]: [f64; 3]| (PI * x).sin() * (PI * y).sin() * (PI * z).sin();
    // f = -div(kappa grad u) = 3 π² κ u - (y/2 ∂u/∂x + x/2 ∂u/∂y).
    let f = |[z, y, x]: [f64; 3]| {
        let across = y * (PI * x).cos() * (PI * y).sin() + x * (PI * x).sin() * (PI * y).cos();
        3.0 * PI * PI * (1.0 + 0.5 * x * y) * exact([z, y, x]) - 0.5 * PI * across * (PI * z).sin()
    };
    let at = |node: usize| p.place(node).map(|i| i as f64 * h);
    let kappa = (0..n * n * n).map(|e| {
        let [_, y, x] = [e / n / n, e / n % n, e % n].map(|i| (i as f64 + 0.5) * h);
        (1.0 + 0.5 * x * y) as f32
    });
    let b = (0..p.nodes()).map(|node| (h * h * f(at(node))) as f32);
    let kappa = Array::from_vec(device, &p.shape, kappa.collect()).unwrap();
    let b = Array::from_vec(device, &p.grid(), b.collect()).unwrap();
    let mut u = Array::zeros(device, &p.grid()).unwrap();
    solve(&kappa, &b, iterations, &mut u).unwrap();
    let u = u.to_vec().unwrap();
    u.iter().enumerate().map(|(node, &u)| (f64::from(u) - exact(at(node))).abs()).fold(0.0, f64::max)
}

#[test]
fn errors_fall_with_the_square_of_the_elements_size() {
    for device in rayspin_emu::devices().unwrap() {
        let sides =
            if device.kind() == rayspin_device::BackendKind::Cpu { vec![8, 16, 32] } else { vec![8, 16] };
        let errors: Vec<_> = sides.iter().map(|&n| error(&device, n, 4 * n)).collect();
        for pair in errors.windows(2) {
            let ratio = pair[0] / pair[1];
            assert!((3.6..4.4).contains(&ratio), "{}: {errors:?}", device.describe());
        }
        assert!(errors[errors.len() - 1] < 4.5 / (sides[sides.len() - 1] as f64).powi(2), "{errors:?}");
    }
}

/// Eight cubes have one inner node, and κ / 3 is the stiffness of a corner with itself: u = 3 b / Σ κ after
/// one step, and after many.
#[test]
fn one_unknown_takes_one_step() {
    for device in rayspin_emu::devices().unwrap() {
        let kappa = Array::from_vec(&device, &[2, 2, 2], (1..9).map(|k| k as f32).collect()).unwrap();
        let mut b = vec![7.0; 27];
        b[13] = 24.0;
        let b = Array::from_vec(&device, &[3, 3, 3], b).unwrap();
        for steps in [1, 5] {
            let mut u = Array::zeros(&device, &[3, 3, 3]).unwrap();
            solve(&kappa, &b, steps, &mut u).unwrap();
            for (node, &u) in u.to_vec().unwrap().iter().enumerate() {
                assert!((u - if node == 13 { 2.0 } else { 0.0 }).abs() < 1e-6, "{node}: {u}");
            }
        }
        let mut u = Array::zeros(&device, &[3, 3, 3]).unwrap();
        assert!(solve(&kappa, &b, 0, &mut u).is_err());
        assert!(solve(&u.try_clone().unwrap(), &b, 1, &mut u).is_err());
    }
}

/// A matrix of finite elements is symmetric, and without κ's jumps its inner rows add up to 0.
#[test]
fn the_assembled_matrix_is_symmetric() {
    let cpu = Device::cpu_with_threads(1).unwrap();
    let p = Problem { shape: [4, 5, 6], iterations: 1 };
    let kappa: Vec<_> = (0..120).map(|e| 1.0 + input::signed_unit(1, e) / 2.0).collect();
    let m = sparse::Matrix::new(&p, &kappa, &cpu).unwrap();
    let mut dense = vec![0.0; p.nodes() * p.nodes()];
    for row in 0..p.nodes() {
        for at in m.starts.cpu()[row] as usize..m.starts.cpu()[row + 1] as usize {
            dense[row * p.nodes() + m.columns.cpu()[at] as usize] += m.values.cpu()[at];
        }
    }
    for i in 0..p.nodes() {
        for j in 0..i {
            assert_eq!(dense[i * p.nodes() + j], dense[j * p.nodes() + i], "{i} {j}");
        }
    }
    // A node that is two away from the boundary has all of its 21 columns.
    let middle = p.index([2, 2, 3]);
    assert_eq!(m.starts.cpu()[middle + 1] - m.starts.cpu()[middle], sparse::ROW as u32);
    let sum: f32 = dense[middle * p.nodes()..(middle + 1) * p.nodes()].iter().sum();
    assert!(sum.abs() < 1e-5, "{sum}");
}
