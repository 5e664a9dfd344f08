//! Pictures ray by ray, in double precision.

use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_core::vector::{norm, scaled};
use rayspin_device::Cpu;

use super::{DARK, Input};
use crate::render::ray::{AXES, Ray, Setup, planes};
use crate::render::voxels::Voxels;
use crate::render::{Mode, Surface, Transfer};

/// The index of the voxel below a place, the index of the next one, and how far the place is from the first.
#[inline(always)]
fn around(place: f64, count: usize) -> (usize, usize, f64) {
    let place = place.clamp(0.0, (count - 1) as f64);
    let low = place as usize;
    (low, (low + 1).min(count - 1), place - low as f64)
}

/// The volume as a ray sees it.
pub(super) struct Field<'a> {
    voxels: Voxels<'a>,
    setup: &'a Setup,
}

impl<'a> Field<'a> {
    pub(super) fn new(voxels: Voxels<'a>, setup: &'a Setup) -> Self {
        Self { voxels, setup }
    }

    /// The value at indices along x, y and z.
    fn at(&self, index: [f64; 3]) -> f64 {
        let ([nx, ny, nz], [_, line, slice]) = (self.setup.size, self.voxels.strides);
        let ([x, y], z) = ([around(index[0], nx), around(index[1], ny)], around(index[2], nz));
        let plane = |k: usize| {
            let row = |j: usize| {
                let row = &self.voxels.values[k * slice + j * line..][..nx];
                between(row[x.0].into(), row[x.1].into(), x.2)
            };
            between(row(y.0), row(y.1), y.2)
        };
        between(plane(z.0), plane(z.1), z.2)
    }

    /// Indices along x, y and z in the middle of a cell, or elsewhere on the ray.
    fn place(&self, ray: &Ray, cell: f64) -> [f64; 3] {
        let [a, b, c] = AXES[ray.main];
        let samples = self.setup.cells(ray.main).0 as f64;
        let mut index = [0.0; 3];
        index[a] = (cell + 0.5) / samples - 0.5;
        index[b] = ray.b + cell * ray.db;
        index[c] = ray.c + cell * ray.dc;
        index
    }

    /// The value in the middle of a cell.
    fn sample(&self, ray: &Ray, cell: usize) -> f64 {
        let (samples, _) = self.setup.cells(ray.main);
        let mut index = self.place(ray, cell as f64);
        let main = AXES[ray.main][0];
        let (low, _, fraction) = planes(cell, samples, self.setup.size[main]);
        index[main] = low as f64 + f64::from(fraction);
        self.at(index)
    }

    /// The colour of a surface that lies in a cell or just before it.
    pub(super) fn lit(&self, input: &Input<'_>, surface: &Surface, ray: &Ray, cell: usize) -> [f32; 4] {
        let [first, last] = ray.cells(self.setup.cells(ray.main).1);
        let before = if ray.ascending { cell.checked_sub(1) } else { Some(cell + 1) };
        let before = before.filter(|before| (first..=last).contains(before));
        let (wanted, here) = (f64::from(surface.value), self.sample(ray, cell));
        let position = before.map_or(cell as f64, |before| {
            let there = self.sample(ray, before);
            let share = if here > there { ((wanted - there) / (here - there)).clamp(0.0, 1.0) } else { 1.0 };
            before as f64 + share * (cell as f64 - before as f64)
        });
        let (index, spacing) = (self.place(ray, position), input.grid.spacing_mm());
        let mut gradient = [0.0; 3];
        for (axis, gradient) in gradient.iter_mut().enumerate() {
            let (mut low, mut high) = (index, index);
            low[axis] -= 1.0;
            high[axis] += 1.0;
            *gradient = (self.at(high) - self.at(low)) / (2.0 * spacing[axis]);
        }
        let [a, b, c] = AXES[ray.main];
        let way = if ray.ascending { 1.0 } else { -1.0 };
        let samples = self.setup.cells(ray.main).0 as f64;
        let mut along = [0.0; 3];
        along[a] = way / samples * spacing[a];
        along[b] = way * ray.db * spacing[b];
        along[c] = way * ray.dc * spacing[c];
        let along = scaled(along, 1.0 / norm(along));
        surface.lit(input.scene.camera.axes, gradient, along, spacing).map(|value| value as f32)
    }
}

#[inline(always)]
fn between(low: f64, high: f64, fraction: f64) -> f64 {
    low + fraction * (high - low)
}

/// Red, green, blue and opacity of a value.
fn look(base: [f32; 4], ramps: &[[f32; 6]], value: f64) -> [f64; 4] {
    let mut sums = base.map(f64::from);
    for [from, width, slopes @ ..] in ramps {
        let rise = (value - f64::from(*from)).clamp(0.0, (*width).into());
        for (sum, slope) in sums.iter_mut().zip(slopes) {
            *sum += rise * f64::from(*slope);
        }
    }
    sums
}

/// A picture's pixels, one by one.
struct Tracer<'a> {
    input: Input<'a>,
    setup: &'a Setup,
    ramps: ([f32; 4], Vec<[f32; 6]>),
}

impl<'a> Tracer<'a> {
    fn new(input: Input<'a>, setup: &'a Setup) -> Self {
        let ramps = match &input.scene.mode {
            Mode::Volume(transfer) => Transfer::ramps(transfer),
            _ => ([0.0; 4], Vec::new()),
        };
        Self { input, setup, ramps }
    }

    fn pixel(&self, row: usize, column: usize, out: &mut [f32]) {
        let ray = self.setup.ray(row, column);
        let values = match &self.input.scene.mode {
            Mode::Maximum { missed } => {
                [ray.and_then(|ray| self.maximum(&ray)).unwrap_or(*missed), 0.0, 0.0, 0.0]
            }
            _ => ray.map_or([0.0; 4], |ray| self.trace(&ray)),
        };
        out.copy_from_slice(&values[..out.len()]);
    }

    /// The cells of a ray, in its order, with the part of each that it is in.
    fn cells(&self, ray: &Ray) -> impl Iterator<Item = (usize, f64)> + use<> {
        let [first, last] = ray.cells(self.setup.cells(ray.main).1);
        let ray = *ray;
        (0..=last - first)
            .map(move |turn| {
                let cell = if ray.ascending { first + turn } else { last - turn };
                let part = (cell as f64 + 1.0).min(ray.high) - (cell as f64).max(ray.low);
                (cell, part)
            })
            .filter(|(_, part)| *part > 0.0)
    }

    fn maximum(&self, ray: &Ray) -> Option<f32> {
        let field = Field::new(self.input.voxels, self.setup);
        self.cells(ray).map(|(cell, _)| field.sample(ray, cell) as f32).reduce(f32::max)
    }

    fn trace(&self, ray: &Ray) -> [f32; 4] {
        let field = Field::new(self.input.voxels, self.setup);
        match &self.input.scene.mode {
            Mode::XRay => {
                let sum: f64 = self.cells(ray).map(|(cell, part)| part * field.sample(ray, cell)).sum();
                [(sum * ray.step) as f32, 0.0, 0.0, 0.0]
            }
            Mode::Volume(_) => {
                let (mut light, mut clear) = ([0.0; 3], 1.0);
                for (cell, part) in self.cells(ray) {
                    let [r, g, b, opacity] = look(self.ramps.0, &self.ramps.1, field.sample(ray, cell));
                    let through = (-opacity * part * ray.step).exp();
                    for (light, colour) in light.iter_mut().zip([r, g, b]) {
                        *light += clear * (1.0 - through) * colour;
                    }
                    clear *= through;
                    if clear < f64::from(DARK) {
                        break;
                    }
                }
                [light[0], light[1], light[2], 1.0 - clear].map(|value| value as f32)
            }
            Mode::Surface(surface) => self
                .cells(ray)
                .find(|(cell, _)| field.sample(ray, *cell) >= surface.value.into())
                .map_or([0.0; 4], |(cell, _)| field.lit(&self.input, surface, ray, cell)),
            Mode::Maximum { .. } => [0.0; 4],
        }
    }
}

pub(in crate::render) fn alone(_: &Cpu, input: Input<'_>, out: &mut [f32]) -> Result<()> {
    let (setup, channels) = (input.setup(), input.scene.mode.channels());
    let tracer = Tracer::new(input, &setup);
    let columns = input.scene.camera.shape()[1];
    for (index, out) in out.chunks_mut(channels).enumerate() {
        tracer.pixel(index / columns, index % columns, out);
    }
    Ok(())
}

pub(in crate::render) fn cores(cpu: &Cpu, input: Input<'_>, out: &mut [f32]) -> Result<()> {
    let (setup, channels) = (input.setup(), input.scene.mode.channels());
    let tracer = Tracer::new(input, &setup);
    let columns = input.scene.camera.shape()[1];
    cpu.run(|| {
        out.par_chunks_mut(columns * channels).enumerate().for_each(|(row, line)| {
            for (column, out) in line.chunks_mut(channels).enumerate() {
                tracer.pixel(row, column, out);
            }
        });
    });
    Ok(())
}
