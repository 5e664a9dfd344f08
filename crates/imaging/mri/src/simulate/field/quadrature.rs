//! Integrals over ellipses that no closed form has.

use std::f64::consts::{PI, TAU};

use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;
use rayspin_core::{C64, Result};
use rayspin_device::cpu::expect_memory;
use rayspin_device::{Array, Device};
use rayspin_kernels::nufft::{Coordinates, Options, Type3};

use crate::simulate::coils::CoilSensitivities;
use crate::simulate::phantom::{Ellipsoid, Phantom};

/// Relative error of the sums: errors are below 1e-8 of the largest sample (tested).
const TOLERANCE: f64 = 1e-10;

/// Nodes (x, y, f(x, y)) over the ellipses of a two-dimensional phantom, and w c_n(x) ρ(x) of each coil
/// there.
pub(in crate::simulate) struct Quadrature {
    nodes: Array2<f64>,
    /// `[coil, node]`.
    values: Vec<C64>,
    coils: usize,
}

impl Quadrature {
    /// For integrands of up to `reach` cycles per field of view: over each ellipse the Gauss–Legendre rule
    /// along the radius and the trapezoid rule round the circle, which converge exponentially beyond π and 2π
    /// points a cycle. Errors: memory.
    pub(super) fn new(
        phantom: &Phantom,
        coils: &CoilSensitivities,
        field: &dyn Fn([f64; 3]) -> f64,
        reach: f64,
    ) -> Result<Self> {
        let harmonic = |k: &[f64; 3]| k.iter().map(|v| v * v).sum::<f64>().sqrt();
        let reach = reach + coils.harmonics().iter().map(harmonic).fold(0.0, f64::max);
        // Phase, in radians, from the centre to the rim.
        let phase = |part: &Ellipsoid| TAU * reach * part.semi_axes[0].max(part.semi_axes[1]);
        let along = |phase: f64| 0.3 * phase + 30.0;
        let around = |phase: f64| phase + 12.0 * phase.cbrt() + 40.0;
        // No circle has more nodes than the rim. A node has a place, f, and its coils by themselves and among
        // all nodes.
        let most: f64 = phantom.parts().iter().map(|part| along(phase(part)) * around(phase(part))).sum();
        let each = size_of::<Vec<C64>>() + 2 * coils.coils() * size_of::<C64>() + 6 * size_of::<f64>();
        expect_memory("nodes of the field", (most * each as f64) as u64)?;
        let mut places: Vec<([f64; 2], f64)> = Vec::new();
        for part in phantom.parts() {
            let [a, b, _] = part.semi_axes;
            let (sin, cos) = part.angle.sin_cos();
            for (r, weight) in gauss_legendre(along(phase(part)) as usize) {
                let turns = around(phase(part) * r) as usize;
                for turn in 0..turns {
                    let (s, c) = (TAU * turn as f64 / turns as f64).sin_cos();
                    let (p, q) = (a * r * c, b * r * s);
                    let x = [part.centre[0] + cos * p - sin * q, part.centre[1] + sin * p + cos * q];
                    places.push((x, part.intensity * a * b * r * weight * TAU / turns as f64));
                }
            }
        }
        let nodes = Array2::from_shape_fn((places.len(), 3), |(i, d)| match d {
            2 => field([places[i].0[0], places[i].0[1], 0.0]),
            d => places[i].0[d],
        });
        let seen: Vec<Vec<C64>> = places
            .par_iter()
            .map(|([x, y], w)| coils.at([*x, *y, 0.0]).iter().map(|c| c * w).collect())
            .collect();
        let coils = coils.coils();
        let values = (0..coils).flat_map(|coil| seen.iter().map(move |node| node[coil])).collect();
        Ok(Self { nodes, values, coils })
    }

    /// Σ w c ρ e^{−i2π(k·x + t f)} at `points` `[sample, 2]` in cycles per field of view and `times` in s:
    /// `[coil, sample]`.
    pub(super) fn samples(&self, points: ArrayView2<'_, f64>, times: &[f64]) -> Result<Array2<C64>> {
        let count = points.nrows();
        let frequencies =
            Array2::from_shape_fn((count, 3), |(m, d)| if d == 2 { times[m] } else { points[[m, d]] });
        let device = Device::cpu_with_threads(rayon::current_num_threads())?;
        let options = Options::tolerance(TOLERANCE);
        let nodes = Coordinates::rows("quadrature nodes", self.nodes.view())?;
        let frequencies = Coordinates::rows("frequencies", frequencies.view())?;
        let plan = Type3::<f64>::new(&device, nodes, frequencies, &options)?;
        let nodes = self.nodes.nrows();
        let mut samples = Array2::zeros((self.coils, count));
        // One coil at a time: the grid of a coil is what takes memory.
        let mut there = Array::zeros(&device, &[count])?;
        for (values, mut row) in self.values.chunks_exact(nodes).zip(samples.rows_mut()) {
            plan.forward(&Array::from_slice(&device, &[nodes], values)?, &mut there)?;
            for (to, from) in row.iter_mut().zip(there.read()?.iter()) {
                *to = *from;
            }
        }
        Ok(samples)
    }
}

/// Gauss–Legendre nodes and weights on [0, 1] by Newton's iteration on the Legendre recurrence.
pub(crate) fn gauss_legendre(n: usize) -> Vec<(f64, f64)> {
    (0..n)
        .map(|i| {
            let mut x = (PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
            let mut slope = 0.0;
            for _ in 0..100 {
                let (mut p0, mut p1) = (1.0, x);
                for k in 2..=n {
                    let m = k as f64;
                    (p0, p1) = (p1, ((2.0 * m - 1.0) * x * p1 - (m - 1.0) * p0) / m);
                }
                slope = n as f64 * (x * p1 - p0) / (x * x - 1.0);
                let step = p1 / slope;
                x -= step;
                if step.abs() < 1e-15 {
                    break;
                }
            }
            (0.5 * (1.0 - x), 1.0 / ((1.0 - x * x) * slope * slope))
        })
        .collect()
}
