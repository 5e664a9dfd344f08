//! The steps of both directions, over a batch.

use num_complex::Complex;
use rayspin_core::{Real, Result};
use rayspin_device::cpu::Stop;
use rayspin_device::{Array, Cpu, Device};

use super::group::{self, Kernels, items};
use super::points::Points;
use super::{Fine, Gridding, Weights, simd};
use crate::fft::cpu::{Direction, FftNd, Options as FftOptions, Region};
use crate::nufft::coordinates::Coordinates;
use crate::nufft::deconvolve::Deconvolution;
use crate::nufft::kernel::Kernel;
use crate::nufft::layout::Layout;
use crate::nufft::memory;
use crate::workspace::WorkspaceCache;

/// The CPU's part of a plan.
#[derive(Debug)]
pub(crate) struct Engine<R: Real> {
    host: Device,
    samples: usize,
    pub(crate) gridding: Gridding<R>,
    deconvolution: Deconvolution<R>,
    fft: FftNd<R>,
    modes: Region,
    workspace: WorkspaceCache<Workspace<R>>,
}

/// The workspace of a transform of one item, or of several items interpolated together.
#[derive(Debug)]
struct Workspace<R: Real> {
    items: usize,
    /// Fine grids, `[item, cell]`.
    grids: Array<Complex<R>>,
    /// The halos for spreading.
    halo: Array<Complex<R>>,
    /// Samples of several items, `[sample, item]`.
    interleaved: Array<Complex<R>>,
}

/// Points that one thread sorts about as soon as it wakes another.
const FEW: usize = 1000;

/// Sorts points on the cores of the CPU, few of them in the caller's own thread.
fn sorting<T: Send>(cpu: &Cpu, points: &Coordinates<'_>, sort: impl FnOnce() -> T + Send) -> T {
    if points.samples() <= FEW { cpu.run_small(sort) } else { cpu.run(sort) }
}

impl<R: Real> Engine<R> {
    /// Plans for these points; `host` is the CPU.
    pub(crate) fn new(
        host: &Device,
        coordinates: &Coordinates<'_>,
        matrix: &[usize],
        layout: Layout,
        kernel: &Kernel,
    ) -> Result<Self> {
        let shape = &layout.fine[layout.outer()..];
        let fft = FftNd::new(shape)?;
        let modes = Region::wrapped(shape, matrix)?;
        let deconvolution = Deconvolution::new(matrix, &layout, kernel);
        let cpu = host.cpu_side();
        let weights = Weights::new(matrix.len(), &kernel.polynomials());
        let mut points = Points::new();
        sorting(cpu, coordinates, || points.sort(cpu.level(), cpu.threads(), &layout, coordinates, matrix))?;
        Ok(Self {
            host: host.clone(),
            samples: coordinates.samples(),
            gridding: Gridding::new(layout, points, weights),
            deconvolution,
            fft,
            modes,
            workspace: WorkspaceCache::default(),
        })
    }

    /// Replaces the points.
    pub(crate) fn set_points(&mut self, points: &Coordinates<'_>, matrix: &[usize]) -> Result<()> {
        let cpu = self.host.cpu_side();
        sorting(cpu, points, || self.gridding.set_points(cpu, points, matrix))?;
        self.samples = points.samples();
        Ok(())
    }

    /// Whether the plan has these points, as far as its transforms can tell.
    pub(crate) fn has_points(&self, coordinates: &Coordinates<'_>, matrix: &[usize]) -> Result<bool> {
        let (cpu, layout) = (self.host.cpu_side(), &self.gridding.layout);
        let mut points = Points::new();
        sorting(cpu, coordinates, || points.sort(cpu.level(), cpu.threads(), layout, coordinates, matrix))?;
        Ok(points == self.gridding.points)
    }

    /// Bytes that the plan and its workspace hold while a batch of that many items is transformed.
    pub(crate) fn bytes(&self, batch: usize) -> u64 {
        let group = if batch >= items::<R>(self.dims()) {
            memory::group_bytes::<R>(self.dims(), self.fft.len(), self.samples)
        } else {
            0
        };
        let work = (self.fft.len() + self.gridding.halo_len()) * size_of::<Complex<R>>();
        work as u64 + group + self.gridding.points.bytes() + self.deconvolution.bytes()
    }

    fn dims(&self) -> usize {
        self.gridding.layout.dims
    }

    fn voxels(&self) -> usize {
        self.deconvolution.voxels()
    }

    /// Type 2 of images `[item, voxel]` to `[item, sample]`.
    pub(crate) fn forward_items(
        &self,
        cpu: &Cpu,
        images: &[Complex<R>],
        samples: &mut [Complex<R>],
    ) -> Result<()> {
        let (kernels, together) = match self.group(cpu, images.len() / self.voxels()) {
            Some(kernels) => (Some(kernels), items::<R>(self.dims())),
            None => (None, 1),
        };
        let samples = samples.chunks_mut(together * self.samples);
        for (images, samples) in images.chunks(together * self.voxels()).zip(samples) {
            let count = images.len() / self.voxels();
            self.with_workspace(count, |work| {
                let grids = &mut work.grids.cpu_mut()[..count * self.fft.len()];
                let options =
                    FftOptions { nonzero: Some(&self.modes), ..FftOptions::new(Direction::Forward) };
                for (image, grid) in
                    images.chunks_exact(self.voxels()).zip(grids.chunks_exact_mut(self.fft.len()))
                {
                    self.deconvolution.pad(cpu, image, grid);
                    self.fft.process_with(cpu, grid, &options)?;
                }
                match &kernels {
                    Some(kernels) if count == together => {
                        let interleaved = &mut work.interleaved.cpu_mut()[..samples.len()];
                        self.gridding.interp_group(cpu, grids, samples, interleaved, kernels);
                    }
                    _ => {
                        let grids = grids.chunks_exact(self.fft.len());
                        for (grid, samples) in grids.zip(samples.chunks_exact_mut(self.samples)) {
                            self.gridding.interp(cpu, grid, samples, simd::interp);
                        }
                    }
                }
                Stop::of_caller().check()
            })?;
        }
        Ok(())
    }

    /// Type 1 of `[item, sample]` to images `[item, voxel]`.
    pub(crate) fn adjoint_items(
        &self,
        cpu: &Cpu,
        samples: &[Complex<R>],
        images: &mut [Complex<R>],
    ) -> Result<()> {
        self.with_workspace(1, |work| {
            let (grid, halo) = (&mut work.grids.cpu_mut()[..self.fft.len()], work.halo.cpu_mut());
            let options = FftOptions { wanted: Some(&self.modes), ..FftOptions::new(Direction::Inverse) };
            for (samples, image) in
                samples.chunks_exact(self.samples).zip(images.chunks_exact_mut(self.voxels()))
            {
                self.gridding.spread(cpu, samples, Fine { grid, halo, add: false }, simd::spread);
                self.fft.process_with(cpu, grid, &options)?;
                self.deconvolution.crop(cpu, grid, image);
            }
            Ok(())
        })
    }

    /// Interpolation after spreading of one item, without transforms.
    pub(crate) fn convolve(&self, cpu: &Cpu, samples: &[Complex<R>], out: &mut [Complex<R>]) -> Result<()> {
        self.with_workspace(1, |work| {
            let (grid, halo) = (&mut work.grids.cpu_mut()[..self.fft.len()], work.halo.cpu_mut());
            self.gridding.spread(cpu, samples, Fine { grid, halo, add: false }, simd::spread);
            self.gridding.interp(cpu, grid, out, simd::interp);
            Stop::of_caller().check()
        })
    }

    /// Spreads one item and adds the result to a fine grid.
    pub(crate) fn spread_onto(&self, cpu: &Cpu, samples: &[Complex<R>], grid: &mut [Complex<R>]) {
        let mut halo = vec![Complex::new(R::zero(), R::zero()); self.gridding.halo_len()];
        self.gridding.spread(cpu, samples, Fine { grid, halo: &mut halo, add: true }, simd::spread);
    }

    /// One item's values from a fine grid.
    pub(crate) fn interp_from(&self, cpu: &Cpu, grid: &[Complex<R>], samples: &mut [Complex<R>]) {
        self.gridding.interp(cpu, grid, samples, simd::interp);
    }

    /// The code that interpolates several items together. `None` if the batch has too few items, if no code
    /// exists for the width and level, or if memory for their fine grids is short.
    fn group(&self, cpu: &Cpu, batch: usize) -> Option<Kernels<R>> {
        let items = items::<R>(self.dims());
        if items == 1 || batch < items {
            return None;
        }
        let kernels = group::kernels(cpu.level(), &self.gridding.weights)?;
        let held = self.workspace.peek(|work| work.items).unwrap_or(0);
        let fits = held >= items
            || rayspin_device::cpu::memory().is_none_or(|(_, available)| self.bytes(batch) <= available);
        fits.then_some(kernels)
    }

    /// Runs `work` on the plan's workspace for at least `items` items. If another thread uses it, runs `work`
    /// on a new one.
    fn with_workspace(&self, items: usize, work: impl FnOnce(&mut Workspace<R>) -> Result<()>) -> Result<()> {
        let interleaved = self.interleaved(items);
        let fits = |held: &Workspace<R>| {
            held.items >= items
                && held.halo.len() >= self.gridding.halo_len()
                && held.interleaved.len() >= interleaved
        };
        self.workspace.with(fits, || self.new_workspace(items), work)
    }

    /// Number of samples of `items` items that are interpolated together.
    fn interleaved(&self, items: usize) -> usize {
        if items > 1 { items * self.samples } else { 0 }
    }

    fn new_workspace(&self, items: usize) -> Result<Workspace<R>> {
        Ok(Workspace {
            items,
            grids: Array::zeros(&self.host, &[items, self.fft.len()])?,
            halo: Array::zeros(&self.host, &[self.gridding.halo_len()])?,
            interleaved: Array::zeros(&self.host, &[self.interleaved(items)])?,
        })
    }
}
