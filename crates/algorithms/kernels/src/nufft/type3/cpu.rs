//! Type 3 on the CPU.

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Real, Result};
use rayspin_device::cpu::Stop;
use rayspin_device::{Array, Cpu, Device};

use super::points::Factors;
use crate::nufft::Coordinates;
use crate::nufft::cpu::group::{self, Kernels, items};
use crate::nufft::cpu::points::Points;
use crate::nufft::cpu::{Engine as Transform, Fine, Gridding, Weights, simd};
use crate::nufft::kernel::Kernel;
use crate::nufft::layout::Layout;
use crate::workspace::WorkspaceCache;

/// The CPU's part of a plan.
#[derive(Debug)]
pub(super) struct Engine<R: Real> {
    host: Device,
    gridding: Gridding<R>,
    before: Array<Complex<R>>,
    after: Array<Complex<R>>,
    workspace: WorkspaceCache<Workspace<R>>,
}

/// The workspace: grids of a few items, halos for spreading, and input values.
#[derive(Debug)]
struct Workspace<R: Real> {
    items: usize,
    grids: Array<Complex<R>>,
    halo: Array<Complex<R>>,
    values: Array<Complex<R>>,
    /// Values at the positions of several items, `[position, item]`.
    interleaved: Array<Complex<R>>,
}

impl<R: Real> Engine<R> {
    /// For positions in cells of the grid; `host` is the CPU.
    pub(super) fn new(
        host: Device,
        layout: Layout,
        kernel: &Kernel,
        cells: &Coordinates<'_>,
        Factors { before, after }: Factors<R>,
    ) -> Result<Self> {
        let (cpu, weights) = (host.cpu_side(), Weights::new(layout.dims, &kernel.polynomials()));
        let mut points = Points::new();
        let matrix = &layout.fine[layout.outer()..];
        cpu.run(|| points.sort(cpu.level(), cpu.threads(), &layout, cells, matrix))?;
        let gridding = Gridding::new(layout, points, weights);
        Ok(Self { host, gridding, before, after, workspace: WorkspaceCache::default() })
    }

    fn positions(&self) -> usize {
        self.before.len()
    }

    fn frequencies(&self) -> usize {
        self.after.len()
    }

    /// Items of a batch that are taken together.
    fn together(&self) -> usize {
        items::<R>(self.gridding.layout.dims)
    }

    /// Bytes without the second stage, and the items of a batch that this stage takes together.
    pub(super) fn bytes(&self, batch: usize) -> (u64, usize) {
        let together = batch.clamp(1, self.together());
        let (positions, frequencies) = (self.positions(), self.frequencies());
        let entering = positions.max(frequencies) + if together > 1 { positions } else { 0 };
        let grids = together * (self.gridding.layout.cells() + entering) + self.gridding.halo_len();
        let values = positions + frequencies + grids;
        ((values * size_of::<Complex<R>>()) as u64 + self.gridding.points.bytes(), together)
    }

    pub(super) fn forward_items(
        &self,
        transform: &Transform<R>,
        values: &[Complex<R>],
        out: &mut [Complex<R>],
    ) -> Result<()> {
        let cpu = self.host.cpu_side();
        let together = self.together();
        let groups = out.chunks_mut(together * self.frequencies());
        for (values, out) in values.chunks(together * self.positions()).zip(groups) {
            self.with_workspace(values.len() / self.positions(), |work| {
                let weighted = &mut work.values.cpu_mut()[..values.len()];
                multiply(cpu, weighted, Some(values), self.before.cpu(), |factor| factor);
                let (grids, halo) = (work.grids.cpu_mut(), work.halo.cpu_mut());
                let each = grids.chunks_exact_mut(self.gridding.layout.cells());
                for (values, grid) in weighted.chunks_exact(self.positions()).zip(each) {
                    self.gridding.spread(cpu, values, Fine { grid, halo, add: false }, simd::spread);
                }
                let cells = self.gridding.layout.cells() * (values.len() / self.positions());
                transform.forward_items(cpu, &grids[..cells], out)?;
                multiply(cpu, out, None, self.after.cpu(), |factor| factor);
                Ok(())
            })?;
        }
        Ok(())
    }

    pub(super) fn adjoint_items(
        &self,
        transform: &Transform<R>,
        values: &[Complex<R>],
        out: &mut [Complex<R>],
    ) -> Result<()> {
        let cpu = self.host.cpu_side();
        let kernels = group::kernels(cpu.level(), &self.gridding.weights);
        let together = self.together();
        let groups = out.chunks_mut(together * self.positions());
        for (values, out) in values.chunks(together * self.frequencies()).zip(groups) {
            self.with_workspace(values.len() / self.frequencies(), |work| {
                let weighted = &mut work.values.cpu_mut()[..values.len()];
                multiply(cpu, weighted, Some(values), self.after.cpu(), |factor| factor.conj());
                let cells = self.gridding.layout.cells() * (values.len() / self.frequencies());
                let grids = &mut work.grids.cpu_mut()[..cells];
                transform.adjoint_items(cpu, weighted, grids)?;
                self.interp(cpu, grids, out, work.interleaved.cpu_mut(), kernels.as_ref());
                multiply(cpu, out, None, self.before.cpu(), |factor| factor.conj());
                Stop::of_caller().check()
            })?;
        }
        Ok(())
    }

    fn interp(
        &self,
        cpu: &Cpu,
        grids: &[Complex<R>],
        values: &mut [Complex<R>],
        interleaved: &mut [Complex<R>],
        kernels: Option<&Kernels<R>>,
    ) {
        match kernels {
            Some(kernels) if values.len() == self.together() * self.positions() => {
                self.gridding.interp_group(cpu, grids, values, interleaved, kernels);
            }
            _ => {
                let grids = grids.chunks_exact(self.gridding.layout.cells());
                for (values, grid) in values.chunks_exact_mut(self.positions()).zip(grids) {
                    self.gridding.interp(cpu, grid, values, simd::interp);
                }
            }
        }
    }

    /// Runs `work` on the plan's workspace for at least `items` items. If another thread uses it, runs `work`
    /// on a new one.
    fn with_workspace(&self, items: usize, work: impl FnOnce(&mut Workspace<R>) -> Result<()>) -> Result<()> {
        self.workspace.with(|held| held.items >= items, || self.new_workspace(items), work)
    }

    fn new_workspace(&self, items: usize) -> Result<Workspace<R>> {
        let values = self.positions().max(self.frequencies());
        Ok(Workspace {
            items,
            grids: Array::zeros(&self.host, &[items, self.gridding.layout.cells()])?,
            halo: Array::zeros(&self.host, &[self.gridding.halo_len()])?,
            values: Array::zeros(&self.host, &[items, values])?,
            interleaved: Array::zeros(&self.host, &[if items > 1 { items * self.positions() } else { 0 }])?,
        })
    }
}

/// to ← from · factors, item by item. Without `from`, `to` itself is multiplied.
fn multiply<R: Real>(
    cpu: &Cpu,
    to: &mut [Complex<R>],
    from: Option<&[Complex<R>]>,
    factors: &[Complex<R>],
    adapt: impl Fn(Complex<R>) -> Complex<R> + Sync,
) {
    const RUN: usize = 1 << 14;
    cpu.run(|| {
        for (i, to) in to.chunks_exact_mut(factors.len()).enumerate() {
            let from = from.map(|from| &from[i * factors.len()..]);
            to.par_chunks_mut(RUN).zip(factors.par_chunks(RUN)).enumerate().for_each(|(r, (to, factors))| {
                if let Some(from) = from {
                    to.copy_from_slice(&from[r * RUN..][..to.len()]);
                }
                for (to, &factor) in to.iter_mut().zip(factors) {
                    *to *= adapt(factor);
                }
            });
        }
    });
}
