//! Physics: the resonances of a cavity, and the energy that the scheme keeps.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::f64::consts::PI;

use rayspin_device::{Array, BackendKind, Device};
use rayspin_tune::input;

use super::*;

fn after(device: &Device, shape: &[usize], steps: usize, start: &[f32]) -> Vec<f32> {
    let start = Array::from_slice(device, shape, start).unwrap();
    let mut out = Array::zeros(device, shape).unwrap();
    advance(steps, &start, &mut out).unwrap();
    out.into_vec().unwrap()
}

/// Phase of a step in a mode with `half` half waves in `n` cells along each axis: sin²(ωΔt/2) = S² Σ
/// sin²(k/2) (Taflove, "Computational electrodynamics", section 4.3), and of the wave itself, S |k|.
fn phases(half: &[usize], n: &[usize]) -> (f64, f64) {
    let k: Vec<f64> = half.iter().zip(n).map(|(&m, &n)| PI * m as f64 / n as f64).collect();
    let sines: f64 = k.iter().map(|k| (0.5 * k).sin().powi(2)).sum();
    let s = f64::from(COURANT);
    (2.0 * (s * sines.sqrt()).asin(), s * k.iter().map(|k| k * k).sum::<f64>().sqrt())
}

/// The spectrum of Ez at a point after a pulse has its lines where a cavity of perfect conductor resonates.
/// They agree with the resonances of the scheme within a part in 10⁵. They agree with the resonances of
/// Maxwell's equations within a part in 200, as 24 and 30 cells allow.
#[test]
fn a_cavity_rings_at_its_resonances() {
    let cpu = Device::cpu_with_threads(2).unwrap();
    let (ny, nx, steps) = (24, 30, 6000);
    let mut fields = vec![0.0; 3 * ny * nx];
    fields[7 * nx + 11] = 1.0;
    let mut heard = Vec::with_capacity(steps);
    for _ in 0..steps {
        fields = after(&cpu, &[3, ny, nx], 1, &fields);
        heard.push(f64::from(fields[9 * nx + 13]));
    }
    let strength = |phase: f64| {
        let mut sum = [0.0; 2];
        for (n, v) in heard.iter().enumerate() {
            let window = 0.5 - 0.5 * (2.0 * PI * n as f64 / steps as f64).cos();
            let (sin, cos) = (phase * n as f64).sin_cos();
            sum = [sum[0] + window * v * cos, sum[1] + window * v * sin];
        }
        sum[0].hypot(sum[1])
    };
    for half in [[1, 1], [1, 2], [2, 1]] {
        let (scheme, wave) = phases(&half, &[ny, nx]);
        // The line's peak within a part in 50 of the wave's own frequency.
        let (mut low, mut high) = (0.98 * wave, 1.02 * wave);
        let at = |low: f64, high: f64, i: usize| low + (high - low) * i as f64 / 40.0;
        for _ in 0..5 {
            let best =
                (0..=40).max_by(|&a, &b| strength(at(low, high, a)).total_cmp(&strength(at(low, high, b))));
            let best = best.unwrap();
            (low, high) = (at(low, high, best.saturating_sub(1)), at(low, high, (best + 1).min(40)));
        }
        let found = 0.5 * (low + high);
        assert!((found / scheme - 1.0).abs() < 1e-5, "{half:?}: {found} for {scheme}");
        assert!((found / wave - 1.0).abs() < 5e-3, "{half:?}: {found} for {wave}");
    }
}

/// A mode of a box keeps its form: E(n) = E(0) cos(n ωΔt), if H half a step earlier is minus H half a step
/// later.
#[test]
fn a_mode_of_a_box_turns_with_its_phase() {
    for device in rayspin_emu::devices().unwrap() {
        let (n, half) = ([9, 12, 10], [1, 2, 1]);
        let cells = n.iter().product::<usize>();
        let (phase, wave) = phases(&half, &n);
        assert!((phase / wave - 1.0).abs() < 0.02);
        let k = [0, 1, 2].map(|axis| PI * half[axis] as f64 / n[axis] as f64);
        // Amplitudes along z, y, x whose divergence is 0 on the grid: Σ A sin(k/2) = 0.
        let sines = k.map(|k| (0.5 * k).sin());
        let amplitude = [1.0, -0.4, -(sines[0] - 0.4 * sines[1]) / sines[2]];
        let mode = |field: usize, cell: usize| {
            let at = [cell / n[2] / n[1], cell / n[2] % n[1], cell % n[2]];
            let own = 2 - field;
            let along = |axis: usize| match axis == own {
                true => (k[axis] * (at[axis] as f64 + 0.5)).cos(),
                false => (k[axis] * at[axis] as f64).sin(),
            };
            amplitude[own] * along(0) * along(1) * along(2)
        };
        let mut start = vec![0.0; 6 * cells];
        for (at, value) in start[..3 * cells].iter_mut().enumerate() {
            *value = mode(at / cells, at % cells) as f32;
        }
        let shape = [6, n[0], n[1], n[2]];
        let once = after(&device, &shape, 1, &start);
        for (value, later) in start.iter_mut().zip(&once).skip(3 * cells) {
            *value = -0.5 * later;
        }
        let steps = 43;
        let found = after(&device, &shape, steps, &start);
        for (at, &found) in found[..3 * cells].iter().enumerate() {
            let want = mode(at / cells, at % cells) * (steps as f64 * phase).cos();
            assert!(
                (f64::from(found) - want).abs() < 1e-5,
                "{}: {at}: {found} for {want}",
                device.describe()
            );
        }
    }
}

/// Σ E(n)² + H(n − ½) · H(n + ½) does not change.
#[test]
fn the_energy_stays() {
    for device in rayspin_emu::devices().unwrap() {
        for problem in [Problem { shape: [6, 5, 9], steps: 1 }, Problem { shape: [1, 17, 23], steps: 1 }] {
            let data = Fdtd.data(&problem, &device, 5).unwrap();
            let shape = match problem.flat() {
                true => vec![3, 17, 23],
                false => vec![6, 6, 5, 9],
            };
            let electric = problem.fields() / if problem.flat() { 3 } else { 2 } * problem.cells();
            let energy = |steps: usize| {
                let now = match steps {
                    0 => data.host.clone(),
                    _ => after(&device, &shape, steps, &data.host),
                };
                let next = after(&device, &shape, steps + 1, &data.host);
                let terms = now.iter().zip(&next).enumerate().map(|(at, (now, next))| {
                    f64::from(*now) * f64::from(if at < electric { *now } else { *next })
                });
                terms.sum::<f64>()
            };
            let steps = if device.kind() == BackendKind::Cpu { 1000 } else { 60 };
            let (before, later) = (energy(0), energy(steps));
            assert!((later / before - 1.0).abs() < 1e-5, "{}: {before}, {later}", device.describe());
        }
    }
}

#[test]
fn what_is_no_field_is_refused() {
    for device in rayspin_emu::devices().unwrap() {
        let fields = |shape: &[usize]| Array::<f32>::zeros(&device, shape).unwrap();
        assert!(advance(0, &fields(&[3, 4, 5]), &mut fields(&[3, 4, 5])).is_err());
        assert!(advance(1, &fields(&[3, 4, 5]), &mut fields(&[3, 5, 4])).is_err());
        assert!(advance(1, &fields(&[6, 1, 4, 5]), &mut fields(&[6, 1, 4, 5])).is_err());
        let data = Fdtd.data(&Problem { shape: [2, 3, 4], steps: 1 }, &device, input::bits(1, 1)).unwrap();
        assert!(data.host[..4].iter().all(|&v| v == 0.0), "Ex in the conductor");
    }
}
