//! Type 3 on a GPU.

use num_complex::Complex;
use rayspin_core::{Real, Result};
use rayspin_device::cuda::{View, ViewMut};
use rayspin_device::{Array, Device, Element};

use super::points::Factors;
use crate::nufft::Coordinates;
use crate::nufft::cuda::{Batch, Engine as Transform, Gridding, cuda, missing};
use crate::nufft::kernel::Kernel;
use crate::nufft::layout::Layout;
use crate::vector::multiply_on_gpu as multiply;

/// The GPU's part of a plan.
#[derive(Debug)]
pub(super) struct Engine<R: Real> {
    device: Device,
    /// Its workspace holds values at the positions or at the frequencies.
    gridding: Gridding<R>,
    before: Array<Complex<R>>,
    after: Array<Complex<R>>,
}

impl<R: Real> Engine<R> {
    /// For positions in cells of the grid.
    pub(super) fn new(
        device: &Device,
        layout: &Layout,
        kernel: &Kernel,
        cells: &Coordinates<'_>,
        Factors { before, after }: Factors<R>,
    ) -> Result<Self> {
        let (matrix, values) = (&layout.fine[layout.outer()..], before.len().max(after.len()));
        Ok(Self {
            device: device.clone(),
            gridding: Gridding::new(device, cells, matrix, layout.fine, kernel, values)?,
            before,
            after,
        })
    }

    /// Bytes without the second stage, and the items of a batch that this stage takes together.
    pub(super) fn bytes(&self, batch: usize) -> (u64, usize) {
        let factors = (self.before.len() + self.after.len()) * size_of::<Complex<R>>();
        let (workspace, together) = self.gridding.workspace_bytes(batch);
        (self.gridding.bytes() + factors as u64 + workspace, together)
    }

    /// Values at the positions `[item, position]` to values at the frequencies `[item, frequency]`.
    pub(super) fn forward(
        &self,
        transform: &Transform<R>,
        values: View<'_, Complex<R>>,
        mut out: ViewMut<'_, Complex<R>>,
    ) -> Result<()> {
        let (cuda, cells) = (cuda(&self.device)?, self.gridding.cells());
        let (from, to) = (self.before.len(), self.after.len());
        self.gridding.in_groups(values.len() / from, true, |work, first, count| {
            let [grids, padded, held] = work.parts()?;
            let mut held = held.cuda_mut();
            let mut weighted = part(&mut held, 0, count * from)?;
            let values = values.part(first * from, count * from).ok_or_else(missing)?;
            multiply(cuda, self.before.cuda(), values, weighted.reborrow(), false)?;
            self.gridding.spread(weighted.view(), padded, grids.cuda_mut(), Batch::usual(count), false)?;
            let grids = grids.cuda().part(0, count * cells).ok_or_else(missing)?;
            let mut sums = part(&mut held, 0, count * to)?;
            transform.forward(grids, sums.reborrow(), None)?;
            multiply(cuda, self.after.cuda(), sums.view(), part(&mut out, first * to, count * to)?, false)
        })
    }

    /// Values at the frequencies `[item, frequency]` to values at the positions `[item, position]`.
    pub(super) fn adjoint(
        &self,
        transform: &Transform<R>,
        values: View<'_, Complex<R>>,
        mut out: ViewMut<'_, Complex<R>>,
    ) -> Result<()> {
        let (cuda, cells) = (cuda(&self.device)?, self.gridding.cells());
        let (from, to) = (self.after.len(), self.before.len());
        self.gridding.in_groups(values.len() / from, false, |work, first, count| {
            let mut held = work.values.cuda_mut();
            let mut weighted = part(&mut held, 0, count * from)?;
            let values = values.part(first * from, count * from).ok_or_else(missing)?;
            multiply(cuda, self.after.cuda(), values, weighted.reborrow(), true)?;
            let mut grids = work.grids.cuda_mut();
            transform.adjoint(weighted.view(), part(&mut grids, 0, count * cells)?, None)?;
            let mut sums = part(&mut held, 0, count * to)?;
            self.gridding.interp(grids.view(), sums.reborrow(), Batch::usual(count))?;
            multiply(cuda, self.before.cuda(), sums.view(), part(&mut out, first * to, count * to)?, true)
        })
    }
}

/// `len` elements from `from` on. Errors: fewer are there.
fn part<'a, T: Element>(view: &'a mut ViewMut<'_, T>, from: usize, len: usize) -> Result<ViewMut<'a, T>> {
    view.part(from, len).ok_or_else(missing)
}
