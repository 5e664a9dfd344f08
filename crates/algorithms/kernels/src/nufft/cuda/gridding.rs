//! Spreading to grids and interpolation of grids on a GPU, for several items of a batch at once.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use std::sync::{Arc, Mutex, PoisonError};

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, voxels};
use rayspin_device::cuda::{Argument, Define, Kernel, Launch, Source, View, ViewMut};
use rayspin_device::{Array, Device};

use super::points::{Points, Slots};
use super::tiles::Tiles;
use super::{
    Form, INTERP, MOST_ITEMS, SPREAD, cuda, interp_form, missing, most_items, narrow, program, spread_form,
};
use crate::nufft::coordinates::Coordinates;
use crate::nufft::form::{self, Asked};
use crate::nufft::kernel::Kernel as Window;
use crate::workspace::WorkspaceCache;

/// Points sorted by tile of a grid, and the workspace of a batch.
#[derive(Debug)]
pub(in crate::nufft) struct Gridding<R: Real> {
    device: Device,
    pub(super) samples: usize,
    tiles: Tiles,
    /// The macros that fix tiles and kernel.
    program: Vec<Define>,
    matrix: Vec<usize>,
    points: Points<R>,
    pub(super) slots: Slots,
    /// Elements of [`Workspace::values`] for each item.
    values: usize,
    workspace: WorkspaceCache<Workspace<R>>,
    /// What was launched before: a small transform takes less time than to find its kernels by their macros.
    launched: Mutex<Vec<(Launched, Arc<Kernels>)>>,
}

/// Items that are transformed at once, and the form that was tuned for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::nufft) struct Batch {
    pub(in crate::nufft) items: usize,
    pub(in crate::nufft) tuned: Option<Asked>,
}

impl Batch {
    /// `items` items in the usual form.
    pub(in crate::nufft) fn usual(items: usize) -> Self {
        Self { items, tuned: None }
    }
}

/// What decides a launch: whether it spreads, and the batch.
type Launched = (bool, Batch);

/// The form of a launch, and its kernels.
struct Kernels {
    form: Form,
    kernels: Vec<Kernel>,
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kernels of {} items a block", self.form.coils)
    }
}

/// The workspace of several items.
#[derive(Debug)]
pub(in crate::nufft) struct Workspace<R: Real> {
    /// The number of items that it was made for, and the number that it holds.
    wanted: usize,
    items: usize,
    /// Grids, `[item, cell]`.
    pub(in crate::nufft) grids: Array<Complex<R>>,
    /// Padded tiles, `[item, slot, cell]`: for spreading only.
    padded: Option<Array<Complex<R>>>,
    /// Values of the caller, `[item, value]`.
    pub(in crate::nufft) values: Array<Complex<R>>,
}

impl<R: Real> Workspace<R> {
    /// Grids, padded tiles and the caller's values. Errors: no padded tiles.
    pub(in crate::nufft) fn parts(&mut self) -> Result<[&mut Array<Complex<R>>; 3]> {
        Ok([&mut self.grids, self.padded.as_mut().ok_or_else(missing)?, &mut self.values])
    }
}

impl<R: Real> Gridding<R> {
    /// Sorts points that are `coordinates` in cycles per field of view of a `matrix`, to a grid of `fine`
    /// cells (z, y, x). The workspace has `values` elements for each item besides grids and tiles.
    ///
    /// Errors: as [`Points::sort`], or a grid of 2³² cells or more.
    pub(in crate::nufft) fn new(
        device: &Device,
        coordinates: &Coordinates<'_>,
        matrix: &[usize],
        fine: [usize; 3],
        window: &Window,
        values: usize,
    ) -> Result<Self> {
        let cuda = cuda(device)?;
        let tiles = Tiles::new::<R>(matrix.len(), fine, window.width, cuda.properties());
        if tiles.cells() > u32::MAX as usize {
            return Err(Error::value("NUFFT fine grid", "fewer than 2^32 cells", tiles.cells()));
        }
        let (points, slots) = Points::sort(cuda, device, &tiles, coordinates, matrix)?;
        Ok(Self {
            device: device.clone(),
            samples: coordinates.samples(),
            program: program::<R>(&tiles, window),
            matrix: matrix.to_vec(),
            points,
            slots,
            tiles,
            values,
            workspace: WorkspaceCache::default(),
            launched: Mutex::default(),
        })
    }

    /// Replaces the points. Grids, and padded tiles where there are enough, stay. Errors: as
    /// [`Points::sort`]; nothing changes then.
    pub(in crate::nufft) fn set_points(&mut self, coordinates: &Coordinates<'_>) -> Result<()> {
        let (device, tiles) = (&self.device, &self.tiles);
        (self.points, self.slots) = Points::sort(cuda(device)?, device, tiles, coordinates, &self.matrix)?;
        self.samples = coordinates.samples();
        // The tuned form depends on the number of points.
        self.launched.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        let padded = self.padded_len();
        if let Some(space) = self.workspace.held_mut() {
            let items = space.items;
            space.padded.take_if(|held| held.len() / items.max(1) < padded);
        }
        Ok(())
    }

    /// The number of points in each tile.
    #[cfg(test)]
    pub(super) fn counts(&self, trajectory: &rayspin_core::Trajectory) -> Vec<u32> {
        super::plan_bytes::counts(&self.tiles, &self.matrix, trajectory)
    }

    /// Cells of a grid.
    pub(in crate::nufft) fn cells(&self) -> usize {
        self.tiles.cells()
    }

    /// Bytes of points and tables.
    pub(in crate::nufft) fn bytes(&self) -> u64 {
        self.points.bytes() + self.slots.bytes()
    }

    /// Bytes of the workspace for a batch, and the number of items that it holds.
    pub(in crate::nufft) fn workspace_bytes(&self, batch: usize) -> (u64, usize) {
        let group = self.group(batch);
        (group as u64 * self.item_bytes(), group)
    }

    /// Cells of all padded tiles of an item.
    fn padded_len(&self) -> usize {
        self.slots.count * self.tiles.padded::<R>()
    }

    fn item_bytes(&self) -> u64 {
        ((self.cells() + self.padded_len() + self.values) * size_of::<Complex<R>>()) as u64
    }

    /// Items of a batch that are transformed at once if memory allows.
    fn group(&self, batch: usize) -> usize {
        // Groups of about one size.
        batch.div_ceil(batch.div_ceil(most_items(self.item_bytes())).max(1)).max(1)
    }

    /// Calls `work(workspace, first item, items)` for a batch's groups, on the plan's workspace, or on a new
    /// one if another thread uses it. The workspace has padded tiles if they are wanted. If memory is too
    /// short for the workspace, or for what `work` allocates, groups become smaller.
    pub(in crate::nufft) fn in_groups(
        &self,
        batch: usize,
        padded: bool,
        mut work: impl FnMut(&mut Workspace<R>, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let group = self.group(batch);
        self.workspace.with(
            // The workspace may hold fewer items than wanted because memory was short. It is compared by the
            // wanted number, not by the number it holds.
            |held| held.wanted >= group,
            || self.new_workspace(group, group, padded),
            |space| {
                if padded && space.padded.is_none() {
                    self.add_padded(space)?;
                }
                let mut first = 0;
                while first < batch {
                    let count = group.min(space.items).min(batch - first);
                    match work(space, first, count) {
                        Err(Error::Memory { .. }) if count > 1 => self.shrink(space, count, padded)?,
                        done => {
                            done?;
                            first += count;
                        }
                    }
                }
                Ok(())
            },
        )
    }

    /// Buffers of `items` items, or of fewer if the memory left is too small.
    fn new_workspace(&self, wanted: usize, mut items: usize, padded: bool) -> Result<Workspace<R>> {
        let zeros = |items: usize, each: usize| Array::zeros(&self.device, &[items, each]);
        let make = |items: usize| {
            let grids = zeros(items, self.cells())?;
            let padded = padded.then(|| zeros(items, self.padded_len())).transpose()?;
            Ok(Workspace { wanted, items, grids, padded, values: zeros(items, self.values)? })
        };
        loop {
            match make(items) {
                Err(Error::Memory { .. }) if items > 1 => items = items.div_ceil(2),
                other => return other,
            }
        }
    }

    fn add_padded(&self, space: &mut Workspace<R>) -> Result<()> {
        match Array::zeros(&self.device, &[space.items, self.padded_len()]) {
            Ok(tiles) => space.padded = Some(tiles),
            Err(Error::Memory { .. }) if space.items > 1 => self.shrink(space, space.items, true)?,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes a workspace of half of `items` items instead.
    fn shrink(&self, space: &mut Workspace<R>, items: usize, padded: bool) -> Result<()> {
        let none = || Array::zeros(&self.device, &[0]);
        // The old buffers are freed first. Without them the workspace serves no later call.
        let wanted = std::mem::take(&mut space.wanted);
        (space.grids, space.padded, space.values) = (none()?, None, none()?);
        *space = self.new_workspace(wanted, items.div_ceil(2), padded)?;
        Ok(())
    }

    /// Spreads one item to a grid, or adds to what is there.
    pub(in crate::nufft) fn spread_to(
        &self,
        samples: View<'_, Complex<R>>,
        grid: &mut Array<Complex<R>>,
        add: bool,
    ) -> Result<()> {
        let mut padded = Array::zeros(&self.device, &[self.padded_len()])?;
        self.spread(samples, &mut padded, grid.cuda_mut(), Batch::usual(1), add)
    }

    /// The form and the kernels of type 1 (`to_image`) or type 2.
    fn kernels(&self, to_image: bool, batch: Batch) -> Result<Arc<Kernels>> {
        let Batch { items, tuned } = batch;
        let wanted = (to_image, batch);
        let known = || self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kernels)) = known().iter().find(|(launched, _)| *launched == wanted) {
            return Ok(kernels.clone());
        }
        let (source, names, form) = match to_image {
            true => (&SPREAD, &["spread", "fold", "merge"][..], self.spread_form(items, tuned)?),
            false => (&INTERP, &["interp"][..], self.interp_form(items, tuned)?),
        };
        let (cuda, defines) = (cuda(&self.device)?, form.defines(&self.program));
        let kernels = names.iter().map(|name| cuda.kernel(source, &defines, name)).collect::<Result<_>>()?;
        let kernels = Arc::new(Kernels { form, kernels });
        known().push((wanted, kernels.clone()));
        Ok(kernels)
    }

    /// The usual form of `form` for this number of items. General programs take one item, or many.
    fn usual_form(
        &self,
        source: &'static Source,
        items: usize,
        form: impl Fn(usize) -> Form,
    ) -> Result<Form> {
        let (exact, cuda) = (form(items), cuda(&self.device)?);
        let general = if items == 1 { 1 } else { MOST_ITEMS };
        let offered = cuda.offers(source, &exact.defines(&self.program));
        Ok(if offered { exact } else { form(general) })
    }

    /// The form of type 1: the wanted one, or else the tuned one if this GPU can run it, or else the usual
    /// one.
    fn spread_form(&self, items: usize, asked: Option<Asked>) -> Result<Form> {
        if asked.is_some() {
            return Ok(spread_form::<R>(&self.tiles, items, asked));
        }
        let usual = self.usual_spread(items)?;
        let tuned = self.tuned(true, items, &usual)?;
        Ok(tuned
            .map(|form| spread_form::<R>(&self.tiles, items, Some(form)))
            .filter(|form| self.takes(&SPREAD, form))
            .unwrap_or(usual))
    }

    /// The form of type 2, chosen likewise.
    fn interp_form(&self, items: usize, asked: Option<Asked>) -> Result<Form> {
        let most = cuda(&self.device)?.properties().shared_per_block;
        let form = |items, asked| interp_form::<R>(&self.tiles, items, most, asked);
        if asked.is_some() {
            return Ok(form(items, asked));
        }
        let usual = self.usual_interp(items)?;
        let tuned = self.tuned(false, items, &usual)?;
        Ok(tuned
            .map(|asked| form(items, Some(asked)))
            .filter(|form| self.takes(&INTERP, form))
            .unwrap_or(usual))
    }

    fn usual_spread(&self, items: usize) -> Result<Form> {
        self.usual_form(&SPREAD, items, |items| spread_form::<R>(&self.tiles, items, None))
    }

    fn usual_interp(&self, items: usize) -> Result<Form> {
        let most = cuda(&self.device)?.properties().shared_per_block;
        self.usual_form(&INTERP, items, |items| interp_form::<R>(&self.tiles, items, most, None))
    }

    /// The form without tuning.
    pub(in crate::nufft) fn usual(&self, to_image: bool, items: usize) -> Result<Asked> {
        let form = if to_image { self.usual_spread(items)? } else { self.usual_interp(items)? };
        Ok(form.asked())
    }

    /// Whether the GPU has room for a form of `source`, and offers its program.
    fn takes(&self, source: &'static Source, form: &Form) -> bool {
        cuda(&self.device).is_ok_and(|cuda| {
            form.shared <= cuda.properties().shared_per_block as usize
                && form.threads <= 1024
                && cuda.offers(source, &form.defines(&self.program))
        })
    }

    /// The tuned form for several items in f32. A single item has no choice.
    fn tuned(&self, to_image: bool, items: usize, usual: &Form) -> Result<Option<Asked>> {
        if size_of::<R>() != 4 || items == 1 {
            return Ok(None);
        }
        let key = || form::key(self.tiles.width, &self.matrix, self.samples, items);
        Ok(form::tuned(to_image, key, usual.asked(), &self.device))
    }

    /// grids\[item\]\[l\] = Σ_j samples\[item\]\[j\] φ(l − u_j), periodic: overwrites `grids`, or adds to
    /// them.
    pub(in crate::nufft) fn spread(
        &self,
        samples: View<'_, Complex<R>>,
        padded: &mut Array<Complex<R>>,
        grids: ViewMut<'_, Complex<R>>,
        batch: Batch,
        add: bool,
    ) -> Result<()> {
        let (items, launched) = (batch.items, self.kernels(true, batch)?);
        let (Kernels { form, .. }, [spread, fold, merge]) = (&*launched, &launched.kernels[..]) else {
            return Err(missing());
        };
        let slots = Argument::count(self.slots.count)?;
        self.expect(samples.len(), self.samples, items)?;
        self.expect(padded.len(), self.padded_len(), items)?;
        self.expect(grids.len(), self.tiles.cells(), items)?;
        let shape = Launch {
            blocks: [self.slots.count as u32, items.div_ceil(form.coils) as u32, 1],
            threads: [form.threads, 1, 1],
            shared: form.shared as u32,
        };
        let arguments = &mut [
            samples.into(),
            self.points.order.cuda().into(),
            self.points.places.cuda().into(),
            self.points.arguments.cuda().into(),
            Argument::count(self.samples)?,
            self.slots.slots.cuda().into(),
            padded.cuda_mut().into(),
            Argument::count(items)?,
        ];
        // SAFETY: samples and padded tiles of all items were just found; footprints lie inside the padded
        // tile of their slot, as sorting left them, and the form's shared memory is there.
        unsafe { spread.launch(shape, arguments) }?;
        let tile_blocks = self.tiles.padded::<R>().div_ceil(128) as u32;
        let shape = Launch {
            blocks: [self.slots.runs_count as u32, tile_blocks, items as u32],
            ..Launch::linear(1, 128)
        };
        let arguments = &mut [padded.cuda_mut().into(), self.slots.runs.cuda().into(), slots];
        // SAFETY: runs consist of existing slots, each with a padded tile of every item.
        unsafe { fold.launch(shape, arguments) }?;
        let mut arguments = vec![padded.cuda().into(), self.slots.slot_of.cuda().into(), slots, grids.into()];
        arguments.extend([Argument::count(items)?, i32::from(add).into()]);
        arguments.extend(self.geometry()?);
        let shape = Launch {
            blocks: [self.tiles.count() as u32, items.div_ceil(form.coils) as u32, 1],
            ..Launch::linear(1, 256)
        };
        // SAFETY: grids and padded tiles of all items were found above; a tile's first slot is one of the
        // plan's.
        unsafe { merge.launch(shape, &mut arguments) }
    }

    /// Errors: `len` elements are fewer than `items` items of `each`.
    fn expect(&self, len: usize, each: usize, items: usize) -> Result<()> {
        if voxels(&[items, each])? <= len { Ok(()) } else { Err(missing()) }
    }

    /// samples\[item\]\[j\] = Σ_l grids\[item\]\[l\] φ(l − u_j), periodic: the transpose of
    /// [`Gridding::spread`].
    pub(in crate::nufft) fn interp(
        &self,
        grids: View<'_, Complex<R>>,
        samples: ViewMut<'_, Complex<R>>,
        batch: Batch,
    ) -> Result<()> {
        let (items, launched) = (batch.items, self.kernels(false, batch)?);
        let (Kernels { form, .. }, [interp]) = (&*launched, &launched.kernels[..]) else {
            return Err(missing());
        };
        self.expect(grids.len(), self.tiles.cells(), items)?;
        self.expect(samples.len(), self.samples, items)?;
        let mut arguments = vec![
            grids.into(),
            self.points.order.cuda().into(),
            self.points.places.cuda().into(),
            self.points.arguments.cuda().into(),
            Argument::count(self.samples)?,
            self.slots.slots.cuda().into(),
            samples.into(),
            Argument::count(items)?,
        ];
        arguments.extend(self.geometry()?);
        let shape = Launch {
            blocks: [self.slots.count as u32, items.div_ceil(form.coils) as u32, 1],
            threads: [form.threads, 1, 1],
            shared: form.shared as u32,
        };
        // SAFETY: as for `spread`.
        unsafe { interp.launch(shape, &mut arguments) }
    }

    /// Fine grid and tiles along z, y, x.
    fn geometry(&self) -> Result<[Argument<'static>; 6]> {
        let ([fz, fy, fx], [tz, ty, tx]) = (narrow(self.tiles.fine)?, narrow(self.tiles.tiles)?);
        Ok([fz, fy, fx, tz, ty, tx].map(Argument::from))
    }
}
