//! Physics: mass, Poiseuille's profile, and the velocities that Ghia et al. published for a cavity.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_device::{Array, Device};
use rayspin_tune::input;

use super::*;

fn after(device: &Device, flow: &Flow, shape: [usize; 3], steps: usize, start: Vec<f32>) -> Vec<f32> {
    let shape = [4, shape[0], shape[1], shape[2]];
    let start = Array::from_vec(device, &shape, start).unwrap();
    let mut out = Array::zeros(device, &shape).unwrap();
    advance(flow, steps, &start, &mut out).unwrap();
    out.into_vec().unwrap()
}

fn mean(values: &[f32]) -> f64 {
    values.iter().map(|&v| f64::from(v)).sum::<f64>() / values.len() as f64
}

/// A cavity with a moving lid is closed: what goes in at the lid's left comes out at its right.
#[test]
fn a_closed_box_keeps_its_mass() {
    for device in rayspin_emu::devices().unwrap() {
        let (shape, steps) =
            ([6, 7, 20], if device.kind() == rayspin_device::BackendKind::Cpu { 2000 } else { 60 });
        let cells = shape.iter().product::<usize>();
        let start: Vec<_> = (0..4 * cells).map(|at| 0.02 * input::signed_unit(3, at)).collect();
        let flow = Flow::cavity(shape, 1.95, 0.05);
        let before = mean(&start[..cells]);
        let out = after(&device, &flow, shape, steps, start);
        let (found, moved) = (mean(&out[..cells]), mean(&out[cells..2 * cells]));
        assert!((found - before).abs() < 1e-6, "{}: {before} became {found}", device.describe());
        assert!(moved > 1e-4, "the lid drags the fluid along: {moved}");
    }
}

/// Between plates H apart u = F y (H − y) / 2ν. Where (1/ω − 1/2)² = 3/16 walls lie exactly halfway between
/// cells (Ginzbourg and Adler, "Boundary flow condition analysis for the three-dimensional lattice Boltzmann
/// model", 1994).
#[test]
fn a_channel_has_the_profile_of_poiseuille() {
    let omega = 1.0 / (0.5 + (3.0f64 / 16.0).sqrt());
    let nu = (1.0 / omega - 0.5) / 3.0;
    let (shape, force) = ([1, 12, 37], 1e-4);
    let cells = shape.iter().product::<usize>();
    let flow = Flow::channel(omega as f32, force);
    let cpu = Device::cpu_with_threads(2).unwrap();
    let out = after(&cpu, &flow, shape, 4000, vec![0.0; 4 * cells]);
    for (cell, &u) in out[cells..2 * cells].iter().enumerate() {
        let (y, height) = ((cell / shape[2]) as f64 + 0.5, shape[1] as f64);
        let want = f64::from(force) / (2.0 * nu) * y * (height - y);
        assert!((f64::from(u) / want - 1.0).abs() < 1e-4, "cell {cell}: {u} for {want}");
    }
}

/// (place, velocity) along the lines through the centre at Re = 1000 for a lid of velocity 1 and a box of
/// side 1: u at heights, then v at distances from the left (U. Ghia, K. N. Ghia and C. T. Shin, "High-Re
/// solutions for incompressible flow using the Navier-Stokes equations and a multigrid method", J. Comput.
/// Phys. 48, 1982, tables I and II). Where the paper's points crowd, every second.
const GHIA: [&[(f64, f64)]; 2] = [
    &[
        (0.9531, 0.46604),
        (0.8516, 0.33304),
        (0.7344, 0.18719),
        (0.6172, 0.05702),
        (0.5, -0.06080),
        (0.4531, -0.10648),
        (0.2813, -0.27805),
        (0.1719, -0.38289),
        (0.1016, -0.29730),
        (0.0703, -0.22220),
        (0.0547, -0.18109),
    ],
    &[
        (0.9609, -0.27669),
        (0.9453, -0.39188),
        (0.9063, -0.51550),
        (0.8594, -0.42665),
        (0.8047, -0.31966),
        (0.5, 0.02526),
        (0.2344, 0.32235),
        (0.1563, 0.37095),
        (0.0938, 0.32627),
        (0.0703, 0.29012),
    ],
];

#[test]
fn a_square_cavity_has_the_velocities_of_ghia() {
    let (n, lid) = (96, 0.1f32);
    let omega = 1.0 / (0.5 + 3.0 * f64::from(lid) * n as f64 / 1000.0);
    let shape = [1, n, n];
    let cells = n * n;
    let cpu = Device::cpu_with_threads(2).unwrap();
    let flow = Flow::cavity(shape, omega as f32, lid);
    // The lid passes 50 times; 120 times change the fourth digit.
    let out = after(&cpu, &flow, shape, (50.0 * n as f64 / f64::from(lid)) as usize, vec![0.0; 4 * cells]);
    // The mean of the two middle rows of cells, then the value between the two nearest of their centres.
    let along = |field: usize, at: f64| {
        let value = |i: usize| {
            let [a, b] = [n / 2 - 1, n / 2].map(|half| match field {
                1 => out[field * cells + i * n + half],
                _ => out[field * cells + half * n + i],
            });
            f64::from(a + b) / f64::from(2.0 * lid)
        };
        let place = at * n as f64 - 0.5;
        let low = place.floor() as usize;
        value(low) + (place - low as f64) * (value(low + 1) - value(low))
    };
    for (field, table) in [(1, GHIA[0]), (2, GHIA[1])] {
        for &(at, want) in table {
            let found = along(field, at);
            assert!((found - want).abs() < 0.02, "velocity {field} at {at}: {found} for {want}");
        }
    }
}

#[test]
fn what_is_no_flow_is_refused() {
    for device in rayspin_emu::devices().unwrap() {
        let flow = Flow::cavity([2, 3, 6], 1.9, 0.1);
        let fields = |shape: &[usize]| Array::<f32>::zeros(&device, shape).unwrap();
        let mut out = fields(&[4, 2, 3, 6]);
        assert!(advance(&flow, 0, &fields(&[4, 2, 3, 6]), &mut out).is_err());
        assert!(advance(&flow, 1, &fields(&[4, 3, 2, 6]), &mut out).is_err());
        assert!(advance(&flow, 1, &fields(&[3, 2, 3, 6]), &mut out).is_err());
    } // Kernels count cells in 32 bits.
    let huge = |shape| super::cuda::refuses(&Problem { shape, ..Lbm.trials()[0] });
    assert!(huge([1625, 1625, 1625]).is_none() && huge([1626, 1626, 1626]).is_some());
}
