//! Points on the CPU.

use std::sync::atomic::{AtomicBool, Ordering};

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{C64, Real, Result};
use rayspin_device::Device;

use super::Placed;
use crate::nufft::Coordinates;
use crate::nufft::coordinates::HostComponent;
use crate::nufft::type3::stages::{Axis, Extent, Stages};

/// Points in a thread's part.
const PART: usize = 1 << 12;

/// Points on the host.
pub(in crate::nufft) struct Points<'a> {
    host: Device,
    points: Coordinates<'a>,
    /// Components x, y, z, and the unit of their numbers.
    components: Vec<(HostComponent<'a>, f64)>,
}

impl<'a> Points<'a> {
    /// Errors: points on a GPU.
    pub(super) fn new(host: &Device, points: Coordinates<'a>) -> Result<Self> {
        let component =
            |component: &crate::nufft::Component<'a>| Ok((component.on_host()?, component.unit()));
        let components = points.components().iter().map(component).collect::<Result<_>>()?;
        Ok(Self { host: host.clone(), points, components })
    }

    pub(super) fn extents(&self) -> Result<Vec<Extent>> {
        let count = self.points.samples();
        let finite = AtomicBool::new(true);
        let extent = |&(component, unit): &(HostComponent<'_>, f64)| {
            let limits = |part: usize| {
                let mut numbers = [0.0; PART];
                let numbers = &mut numbers[..PART.min(count - part * PART)];
                component.read(part * PART, numbers);
                if numbers.iter().any(|number| !number.is_finite()) {
                    finite.store(false, Ordering::Relaxed);
                }
                let scaled = numbers.iter().map(|number| number * unit);
                scaled.fold(NO_LIMITS, |(least, most), number| (least.min(number), most.max(number)))
            };
            let limits = (0..count.div_ceil(PART)).into_par_iter().map(limits);
            let (least, most) = limits.reduce(|| NO_LIMITS, |a, b| (a.0.min(b.0), a.1.max(b.1)));
            Extent::new(least, most)
        };
        let extents = self.host.cpu_side().run(|| self.components.iter().map(extent).collect());
        if finite.into_inner() { Ok(extents) } else { Err(self.points.first_not_finite()) }
    }

    pub(super) fn positions<R: Real>(&self, stages: &Stages, axes: &[Axis]) -> Result<Placed<R>> {
        let shift = stages.shift();
        let place =
            |x: f64, axis: &Axis| (x - axis.x_centre) / axis.spacing + shift + (axis.cells / 2) as f64;
        let factor = |point: &[f64]| {
            let each = point.iter().zip(axes);
            (each.map(|(&x, axis)| turns(axis.s_centre, x)).sum(), 1.0)
        };
        self.placed(axes, place, factor)
    }

    pub(super) fn frequencies<R: Real>(&self, stages: &Stages, axes: &[Axis]) -> Result<Placed<R>> {
        let shift = stages.shift();
        let place = |s: f64, axis: &Axis| (s - axis.s_centre) * axis.spacing * axis.cells as f64;
        let factor = |point: &[f64]| {
            let (mut sum, mut scale) = (0.0, 1.0);
            for (&s, axis) in point.iter().zip(axes) {
                // These products are exact, but the difference of frequencies is not.
                sum += turns(s, axis.x_centre) - turns(axis.s_centre, axis.x_centre);
                let cycles = (s - axis.s_centre) * axis.spacing;
                sum -= cycles * shift;
                scale /= stages.kernel.fourier(cycles);
            }
            (sum, scale)
        };
        self.placed(axes, place, factor)
    }

    /// The `place` of every number, and the phase in turns and the modulus of every point's `factor`.
    fn placed<R: Real>(
        &self,
        axes: &[Axis],
        place: impl Fn(f64, &Axis) -> f64 + Sync,
        factor: impl Fn(&[f64]) -> (f64, f64) + Sync,
    ) -> Result<Placed<R>> {
        let count = self.points.samples();
        let mut placed = Placed::new(&self.host, axes.len(), count)?;
        let (numbers, factors) = (placed.numbers.cpu_mut(), placed.factors.cpu_mut());
        self.host.cpu_side().run(|| {
            for ((column, axis), (component, unit)) in
                numbers.chunks_exact_mut(count).zip(axes).zip(&self.components)
            {
                column.par_chunks_mut(PART).enumerate().for_each(|(part, column)| {
                    component.read(part * PART, column);
                    column.iter_mut().for_each(|number| *number = place(*number * unit, axis));
                });
            }
            factors.par_chunks_mut(PART).enumerate().for_each(|(part, factors)| {
                let mut columns = vec![0.0; self.components.len() * factors.len()];
                let each = columns.chunks_exact_mut(factors.len());
                for (column, (component, unit)) in each.zip(&self.components) {
                    component.read(part * PART, column);
                    column.iter_mut().for_each(|number| *number *= unit);
                }
                let mut point = [0.0; 3];
                let stride = factors.len();
                for (i, to) in factors.iter_mut().enumerate() {
                    for (number, column) in point.iter_mut().zip(columns.chunks_exact(stride)) {
                        *number = column[i];
                    }
                    let (turns, scale) = factor(&point[..self.components.len()]);
                    let value = C64::cis(-std::f64::consts::TAU * turns) * scale;
                    *to = Complex::new(<R as Real>::from_f64(value.re), <R as Real>::from_f64(value.im));
                }
            });
        });
        Ok(placed)
    }
}

/// The least and the largest of no numbers.
const NO_LIMITS: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);

/// The product ab minus a whole number, exact up to the last rounding for any size of the product.
fn turns(a: f64, b: f64) -> f64 {
    let product = a * b;
    (product - product.round()) + a.mul_add(b, -product)
}
