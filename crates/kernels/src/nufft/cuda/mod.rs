//! The transforms on a GPU: points sorted once, padded tiles in shared memory, several items of a batch at once.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

mod needs;
mod points;
#[cfg(test)]
mod tests;
mod tiles;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, voxels};
use rayspin_device::cuda::{Argument, Define, Kernel, Launch, Properties, Source, View, ViewMut};
use rayspin_device::{Array, Cuda, Device};

use super::coordinates::Coordinates;
use super::deconvolve::Deconvolution;
use super::form::{self, Asked};
use super::kernel::{Kernel as Window, terms};
use super::layout::Layout;
use rayspin_tune::Build;

use crate::cuda::{in_precision, limits};
use crate::fft::cuda::PaddedFft;
use crate::workspace::WorkspaceCache;
pub(super) use needs::Needs;
use points::Points;
use tiles::{Slots, Tiles};

pub(super) static SPREAD: Source = Source {
    name: "nufft_spread",
    files: &[("tile.cuh", include_str!("tile.cuh")), ("spread.cu", include_str!("spread.cu"))],
};
pub(super) static INTERP: Source = Source {
    name: "nufft_interp",
    files: &[("tile.cuh", include_str!("tile.cuh")), ("interp.cu", include_str!("interp.cu"))],
};

/// Points whose kernel values are computed together, in `spread.cu`.
const BATCH: usize = 32;
/// Maximum shared memory of a block of type 1, so that a multiprocessor holds two blocks.
const SPREAD_SHARED: usize = 100 << 10;
/// Maximum bytes of fine grids and padded tiles, unless one item needs more.
const WORKSPACE: u64 = 6 << 30;
/// Maximum items of a batch that are transformed at once.
const MOST_ITEMS: usize = 64;

/// The GPU's part of a plan.
#[derive(Debug)]
pub(super) struct Engine<R: Real> {
    device: Device,
    samples: usize,
    tiles: Tiles,
    /// The macros that fix tiles and kernel.
    program: Vec<Define>,
    matrix: Vec<usize>,
    points: Points<R>,
    slots: Array<[u32; 4]>,
    runs: Array<[u32; 2]>,
    slot_of: Array<u32>,
    /// Between images and the low modes of fine grids, times 1/φ̂.
    fft: PaddedFft<R>,
    workspace: WorkspaceCache<Workspace<R>>,
}

/// The workspace of a transform of several items.
#[derive(Debug)]
struct Workspace<R: Real> {
    /// The number of items that it was made for, and the number that it holds.
    wanted: usize,
    items: usize,
    /// Fine grids, `[item, cell]`.
    grids: Array<Complex<R>>,
    /// Padded tiles, `[item, slot, cell]`: for type 1 only.
    padded: Option<Array<Complex<R>>>,
}

/// The form of a launch of type 1 or 2: items per block, its other macro, its threads and its shared memory.
struct Form {
    coils: usize,
    define: Define,
    threads: u32,
    shared: usize,
}

/// The polynomials as text for a program.
fn coefficients(window: &Window) -> String {
    let rows = window.polynomials();
    rows.iter().flatten().map(|c| format!("{c:.17e}")).collect::<Vec<_>>().join(",")
}

fn program<R: Real>(tiles: &Tiles, window: &Window) -> Vec<Define> {
    let mut defines = points::defines::<R>(tiles.dims);
    let [z, y, x] = tiles.largest;
    defines.extend([
        ("WIDTH", window.width.to_string()),
        ("TERMS", terms(window.width).to_string()),
        ("COEFFICIENTS", coefficients(window)),
        ("TILE_Z", z.to_string()),
        ("TILE_Y", y.to_string()),
        ("TILE_X", x.to_string()),
    ]);
    defines
}

/// Programs for narrow and wide kernels, one item and several.
pub(crate) fn builds() -> Vec<Build> {
    fn of<R: Real>(all: &mut Vec<Build>) {
        let row = |source, defines| Build { source, defines, spill_bytes: 0 };
        for dims in 1..=3 {
            all.push(row(&points::SOURCE, points::defines::<R>(dims)));
            for (width, coils) in [(3, 1), (6, 4), (16, 1)] {
                let tiles = Tiles { dims, width, fine: [64; 3], tiles: [8; 3], largest: tiles::cells(dims) };
                let mut defines = program::<R>(&tiles, &Window::new(width, 2.0));
                defines.push(("COILS", coils.to_string()));
                let with = |define| [&defines[..], &[define]].concat();
                // `merge` of several items in f64 lacks a few registers for four blocks a multiprocessor: 4 to 20 bytes.
                let spill_bytes = if size_of::<R>() == 8 && coils > 1 { 24 } else { 0 };
                let spread = with(("WARPS", tiles.warps::<R>().to_string()));
                all.push(Build { spill_bytes, ..row(&SPREAD, spread) });
                all.push(row(&INTERP, with(("THREADS", "256".to_owned()))));
            }
        }
    }
    let mut all = Vec::new();
    of::<f32>(&mut all);
    of::<f64>(&mut all);
    all
}

/// The forms of the program that spreads (`to_image`), or of the one that interpolates.
pub(super) fn forms<R: Real>(to_image: bool) -> Vec<Build> {
    let source = if to_image { &SPREAD } else { &INTERP };
    let mut all = in_precision::<R>(builds());
    all.retain(|build| std::ptr::eq(build.source, source));
    all
}

/// The usual form of `f32` on an H100.
pub(super) fn usual(to_image: bool, dims: usize, width: usize, items: usize) -> Asked {
    let properties = limits();
    let tiles = Tiles::new::<f32>(dims, [1; 3], width, &properties);
    let form = match to_image {
        true => spread_form::<f32>(&tiles, items, None),
        false => interp_form::<f32>(&tiles, items, properties.shared_per_block, None),
    };
    form.asked()
}

/// The programs for machines without a compiler: every tolerance, with the candidate upsamplings, and interpolation for
/// others.
pub(crate) fn precompiled<R: Real>(shared: u32, more: &[Window]) -> Vec<Build> {
    let properties = Properties { shared_per_block: shared, ..limits() };
    let row = |source, defines| Build { source, defines, spill_bytes: 0 };
    let mut all = Vec::new();
    for dims in 1..=3 {
        all.push(row(&points::SOURCE, points::defines::<R>(dims)));
        for window in super::windows::<R>(dims).iter().chain(more) {
            // The largest tile does not depend on the grid.
            let tiles = Tiles::new::<R>(dims, [1; 3], window.width, &properties);
            let plain = program::<R>(&tiles, window);
            for items in [1, MOST_ITEMS] {
                let forms = [
                    (&SPREAD, spread_form::<R>(&tiles, items, None)),
                    (&INTERP, interp_form::<R>(&tiles, items, shared, None)),
                ];
                all.extend(forms.map(|(source, form)| row(source, form.defines(&plain))));
            }
        }
    }
    all
}

impl Form {
    fn asked(&self) -> Asked {
        Asked { coils: self.coils, threads: Some(self.threads as usize) }
    }

    fn defines(&self, program: &[Define]) -> Vec<Define> {
        [program, &[("COILS", self.coils.to_string()), self.define.clone()]].concat()
    }
}

/// The wanted form of type 1, or else a form with as many items as fit twice in shared memory.
fn spread_form<R: Real>(tiles: &Tiles, items: usize, asked: Option<Asked>) -> Form {
    let (real, tile) = (size_of::<R>(), tiles.padded::<R>() * size_of::<Complex<R>>());
    let Tiles { dims, width, .. } = *tiles;
    let warps = tiles.warps::<R>();
    let planes = dims == 3 && width > 8;
    let rows = if planes { 0 } else { width.pow(dims as u32 - 1) | 1 };
    let shared =
        |coils: usize| coils * (tile + BATCH * 2 * real) + BATCH * (real * (((dims * width) | 1) + rows) + 4);
    let wanted = items.next_power_of_two().min(4);
    let usual = || [4, 2, 1].into_iter().find(|&c| c <= wanted && (c == 1 || shared(c) <= SPREAD_SHARED));
    let coils = asked.map(|form| form.coils).or_else(usual).unwrap_or(1);
    Form {
        coils,
        define: ("WARPS", warps.to_string()),
        threads: (32 * coils * warps) as u32,
        shared: shared(coils),
    }
}

/// The wanted form of type 2, or else a form with as many items as fit in shared memory. `most` is the maximum shared memory
/// of a block.
fn interp_form<R: Real>(tiles: &Tiles, items: usize, most: u32, asked: Option<Asked>) -> Form {
    let tile = tiles.padded_even() * size_of::<Complex<R>>();
    let wanted = items.next_power_of_two().min(8);
    let usual = || [8, 4, 2, 1].into_iter().find(|&c| c <= wanted && (c == 1 || c * tile <= most as usize));
    let coils = asked.map(|form| form.coils).or_else(usual).unwrap_or(1);
    // As many threads as there are points of a slot to give them: in 2-D 128 took as long as 512, or up to 18 % less.
    let lanes = if size_of::<R>() == 4 { coils.div_ceil(2) } else { coils };
    let enough = if size_of::<R>() == 4 && tiles.dims < 3 { 128 } else { 512 };
    let threads = asked.and_then(|form| form.threads).unwrap_or((128 * lanes).min(enough));
    Form { coils, define: ("THREADS", threads.to_string()), threads: threads as u32, shared: coils * tile }
}

/// The cost of a type 1 and a type 2 together in nanoseconds. In 3-D it is 0.0028 for each cell of a point's footprint and
/// 0.08 for each cell of the fine grid. Otherwise it is 0.06 per point, 0.0018 for each cell of its footprint and 0.06 for
/// each cell of the fine grid. In f64 it is twice that. Fitted to the measurements of
/// benches/results/2026-11-21-h100/nufft_upsampling.txt.
pub(super) fn cost<R: Real>(matrix: &[usize], upsampling: f64, width: usize, samples: usize) -> f64 {
    let footprint = width.pow(matrix.len() as u32) as f64;
    let cells: f64 = matrix.iter().map(|&n| (n as f64 * upsampling).max(2.0 * width as f64)).product();
    let (point, tap, cell) = if matrix.len() == 3 { (0.0, 0.0028, 0.08) } else { (0.06, 0.0018, 0.06) };
    (samples as f64 * (point + tap * footprint) + cell * cells) * size_of::<R>() as f64 / 4.0
}

/// Maximum points of a slot: enough to be worth a tile's memory, and few enough to give the largest GPU many blocks.
fn slot_points(samples: usize) -> u32 {
    (samples / 8192).next_multiple_of(BATCH).clamp(256, 2048) as u32
}

/// Maximum items of `item` bytes that are transformed at once.
fn most_items(item: u64) -> usize {
    (WORKSPACE / item.max(1)).clamp(1, MOST_ITEMS as u64) as usize
}

fn narrow(values: [usize; 3]) -> Result<[i32; 3]> {
    let mut out = [0; 3];
    for (to, &value) in out.iter_mut().zip(&values) {
        *to = i32::try_from(value).map_err(|_| Error::value("NUFFT fine grid", "axes below 2^31", value))?;
    }
    Ok(out)
}

fn cuda(device: &Device) -> Result<&Cuda> {
    match device.backend() {
        rayspin_device::Backend::Cuda(cuda) => Ok(cuda),
        rayspin_device::Backend::Cpu(_) => Err(Error::value("device", "a GPU", device.describe())),
    }
}

fn missing() -> Error {
    Error::value("NUFFT batch", "arrays as long as their shapes say", "shorter ones")
}

impl<R: Real> Engine<R> {
    pub(super) fn new(
        device: &Device,
        coordinates: &Coordinates<'_>,
        matrix: &[usize],
        layout: &Layout,
        window: &Window,
    ) -> Result<Self> {
        let cuda = cuda(device)?;
        let tiles = Tiles::new::<R>(matrix.len(), layout.fine, window.width, cuda.properties());
        if tiles.cells() > u32::MAX as usize {
            return Err(Error::value("NUFFT fine grid", "fewer than 2^32 cells", tiles.cells()));
        }
        let (points, starts) = Points::sort(cuda, device, &tiles, coordinates, matrix)?;
        let Slots { slots, runs, slot_of } = Slots::new(&starts, slot_points(coordinates.samples()));
        let outer = 3 - matrix.len();
        let deconvolution = Deconvolution::<R>::new(matrix, layout, window);
        let fft = PaddedFft::new(device, matrix, &layout.fine[outer..], &deconvolution.factors()[outer..])?;
        Ok(Self {
            device: device.clone(),
            fft,
            samples: coordinates.samples(),
            program: program::<R>(&tiles, window),
            matrix: matrix.to_vec(),
            points,
            slots: Array::from_vec(device, &[slots.len()], slots)?,
            runs: Array::from_vec(device, &[runs.len()], runs)?,
            slot_of: Array::from_vec(device, &[slot_of.len()], slot_of)?,
            tiles,
            workspace: WorkspaceCache::default(),
        })
    }

    /// Replaces the points. Fine grids, and padded tiles where there are enough, stay. Errors: as [`Points::sort`]; nothing changes then.
    pub(super) fn set_points(&mut self, coordinates: &Coordinates<'_>) -> Result<()> {
        let (device, tiles) = (&self.device, &self.tiles);
        let (points, starts) = Points::sort(cuda(device)?, device, tiles, coordinates, &self.matrix)?;
        let Slots { slots, runs, slot_of } = Slots::new(&starts, slot_points(coordinates.samples()));
        let slots = Array::from_vec(device, &[slots.len()], slots)?;
        let runs = Array::from_vec(device, &[runs.len()], runs)?;
        let slot_of = Array::from_vec(device, &[slot_of.len()], slot_of)?;
        (self.points, self.slots, self.runs, self.slot_of) = (points, slots, runs, slot_of);
        self.samples = coordinates.samples();
        let padded = self.padded_len();
        if let Some(space) = self.workspace.held_mut() {
            let items = space.items;
            space.padded.take_if(|held| held.len() / items.max(1) < padded);
        }
        Ok(())
    }

    /// Type 2 of images `[item, voxel]` to `[item, sample]`.
    pub(super) fn forward(
        &self,
        images: &Array<Complex<R>>,
        samples: &mut Array<Complex<R>>,
        asked: Option<Asked>,
    ) -> Result<()> {
        let voxels = self.voxels();
        self.in_groups(images.len() / voxels, false, |work, first, count| {
            let images = images.cuda().part(first * voxels, count * voxels).ok_or_else(missing)?;
            let mut grids = work.grids.cuda_mut();
            let grids = grids.part(0, count * self.tiles.cells()).ok_or_else(missing)?;
            self.fft.forward_padded(images, grids, count)?;
            let mut samples = samples.cuda_mut();
            let samples = samples.part(first * self.samples, count * self.samples).ok_or_else(missing)?;
            self.interp(work.grids.cuda(), samples, count, asked)
        })
    }

    /// Type 1 of `[item, sample]` to images `[item, voxel]`.
    pub(super) fn adjoint(
        &self,
        samples: &Array<Complex<R>>,
        images: &mut Array<Complex<R>>,
        asked: Option<Asked>,
    ) -> Result<()> {
        let voxels = self.voxels();
        self.in_groups(images.len() / voxels, true, |work, first, count| {
            let samples =
                samples.cuda().part(first * self.samples, count * self.samples).ok_or_else(missing)?;
            let padded = work.padded.as_mut().ok_or_else(missing)?;
            self.spread(samples, padded, work.grids.cuda_mut(), (count, asked), false)?;
            let (mut grids, mut images) = (work.grids.cuda_mut(), images.cuda_mut());
            let grids = grids.part(0, count * self.tiles.cells()).ok_or_else(missing)?;
            let images = images.part(first * voxels, count * voxels).ok_or_else(missing)?;
            self.fft.inverse_cropped(grids, images, count)
        })
    }

    /// Interpolation after spreading of one item, without transforms.
    pub(super) fn convolve(&self, samples: &Array<Complex<R>>, out: &mut Array<Complex<R>>) -> Result<()> {
        self.in_groups(1, true, |work, _, _| {
            let padded = work.padded.as_mut().ok_or_else(missing)?;
            self.spread(samples.cuda(), padded, work.grids.cuda_mut(), (1, None), false)?;
            self.interp(work.grids.cuda(), out.cuda_mut(), 1, None)
        })
    }

    /// Spreads one item to a fine grid, or adds to what is there.
    pub(super) fn spread_to(
        &self,
        samples: View<'_, Complex<R>>,
        grid: &mut Array<Complex<R>>,
        add: bool,
    ) -> Result<()> {
        let mut padded = Array::zeros(&self.device, &[self.padded_len()])?;
        self.spread(samples, &mut padded, grid.cuda_mut(), (1, None), add)
    }

    /// Interpolates one item's fine grid.
    pub(super) fn interp_from(
        &self,
        grid: &Array<Complex<R>>,
        samples: &mut Array<Complex<R>>,
    ) -> Result<()> {
        self.interp(grid.cuda(), samples.cuda_mut(), 1, None)
    }

    /// Bytes that the plan holds, and with its workspace while a batch of that many items is transformed.
    pub(super) fn bytes(&self, batch: usize) -> u64 {
        let tables = 16 * self.slots.len() + 8 * self.runs.len() + 4 * self.slot_of.len();
        let work = self.group(batch) as u64 * self.item_bytes(true);
        self.points.bytes() + tables as u64 + self.fft.bytes() + work
    }

    fn voxels(&self) -> usize {
        self.fft.image_len()
    }

    /// Cells of all padded tiles of an item.
    fn padded_len(&self) -> usize {
        self.slots.len() * self.tiles.padded::<R>()
    }

    fn item_bytes(&self, padded: bool) -> u64 {
        let cells = self.tiles.cells() + if padded { self.padded_len() } else { 0 };
        (cells * size_of::<Complex<R>>()) as u64
    }

    /// Items of a batch that are transformed at once if memory allows.
    fn group(&self, batch: usize) -> usize {
        // Groups of about one size.
        batch.div_ceil(batch.div_ceil(most_items(self.item_bytes(true))).max(1)).max(1)
    }

    /// Calls `work(workspace, first item, items)` for a batch's groups, on the plan's workspace, or on a new one if another
    /// thread uses it.
    fn in_groups(
        &self,
        batch: usize,
        padded: bool,
        mut work: impl FnMut(&mut Workspace<R>, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let group = self.group(batch);
        self.workspace.with(
            // The workspace may hold fewer items than wanted because memory was short. It is compared by the wanted number,
            // not by the number it holds.
            |held| held.wanted >= group,
            || self.new_workspace(group, group, padded),
            |space| {
                if padded && space.padded.is_none() {
                    self.add_padded(space)?;
                }
                let group = group.min(space.items);
                (0..batch).step_by(group).try_for_each(|first| work(space, first, group.min(batch - first)))
            },
        )
    }

    /// Buffers of `items` items, or of fewer if the memory left is too small.
    fn new_workspace(&self, wanted: usize, mut items: usize, padded: bool) -> Result<Workspace<R>> {
        loop {
            let grids = Array::zeros(&self.device, &[items, self.tiles.cells()]);
            let both = grids.and_then(|grids| {
                let padded = padded.then(|| self.padded_tiles(items)).transpose()?;
                Ok(Workspace { wanted, items, grids, padded })
            });
            match both {
                Err(Error::Memory { .. }) if items > 1 => items = items.div_ceil(2),
                other => return other,
            }
        }
    }

    fn padded_tiles(&self, items: usize) -> Result<Array<Complex<R>>> {
        Array::zeros(&self.device, &[items, self.padded_len()])
    }

    fn add_padded(&self, space: &mut Workspace<R>) -> Result<()> {
        match self.padded_tiles(space.items) {
            Ok(tiles) => space.padded = Some(tiles),
            Err(Error::Memory { .. }) if space.items > 1 => {
                space.grids = Array::zeros(&self.device, &[0])?;
                *space = self.new_workspace(space.wanted, space.items.div_ceil(2), true)?;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn kernel(&self, source: &'static Source, form: &Form, name: &str) -> Result<Kernel> {
        cuda(&self.device)?.kernel(source, &form.defines(&self.program), name)
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

    /// The form of type 1: the wanted one, or else the tuned one if this GPU can run it, or else the usual one.
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
    pub(super) fn usual(&self, to_image: bool, items: usize) -> Result<Asked> {
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
        let problem = (self.tiles.width, self.matrix.as_slice(), self.samples, items);
        Ok(form::tuned(to_image, problem, usual.asked(), &self.device))
    }

    /// grids\[item\]\[l\] = Σ_j samples\[item\]\[j\] φ(l − u_j), periodic: overwrites `grids`, or adds to them.
    fn spread(
        &self,
        samples: View<'_, Complex<R>>,
        padded: &mut Array<Complex<R>>,
        grids: ViewMut<'_, Complex<R>>,
        (items, asked): (usize, Option<Asked>),
        add: bool,
    ) -> Result<()> {
        let form = self.spread_form(items, asked)?;
        let slots = Argument::count(self.slots.len())?;
        self.expect(samples.len(), self.samples, items)?;
        self.expect(padded.len(), self.padded_len(), items)?;
        self.expect(grids.len(), self.tiles.cells(), items)?;
        let shape = Launch {
            blocks: [self.slots.len() as u32, items.div_ceil(form.coils) as u32, 1],
            threads: [form.threads, 1, 1],
            shared: form.shared as u32,
        };
        let arguments = &mut [
            samples.into(),
            self.points.order.cuda().into(),
            self.points.places.cuda().into(),
            self.points.arguments.cuda().into(),
            Argument::count(self.samples)?,
            self.slots.cuda().into(),
            padded.cuda_mut().into(),
            Argument::count(items)?,
        ];
        // SAFETY: samples and padded tiles of all items were just found; footprints lie inside the padded tile of their slot, as
        // sorting left them, and the form's shared memory is there.
        unsafe { self.kernel(&SPREAD, &form, "spread")?.launch(shape, arguments) }?;
        let tile_blocks = self.tiles.padded::<R>().div_ceil(128) as u32;
        let shape =
            Launch { blocks: [self.runs.len() as u32, tile_blocks, items as u32], ..Launch::linear(1, 128) };
        let arguments = &mut [padded.cuda_mut().into(), self.runs.cuda().into(), slots];
        // SAFETY: runs consist of existing slots, each with a padded tile of every item.
        unsafe { self.kernel(&SPREAD, &form, "fold")?.launch(shape, arguments) }?;
        let mut arguments = vec![padded.cuda().into(), self.slot_of.cuda().into(), slots, grids.into()];
        arguments.extend([Argument::count(items)?, i32::from(add).into()]);
        arguments.extend(self.geometry()?);
        let shape = Launch {
            blocks: [self.tiles.count() as u32, items.div_ceil(form.coils) as u32, 1],
            ..Launch::linear(1, 256)
        };
        // SAFETY: grids and padded tiles of all items were found above; a tile's first slot is one of the plan's.
        unsafe { self.kernel(&SPREAD, &form, "merge")?.launch(shape, &mut arguments) }
    }

    /// Errors: fewer than `items` items of `each` elements.
    fn expect(&self, found: usize, each: usize, items: usize) -> Result<()> {
        if voxels(&[items, each])? <= found { Ok(()) } else { Err(missing()) }
    }

    /// samples\[item\]\[j\] = Σ_l grids\[item\]\[l\] φ(l − u_j), periodic: the transpose of [`Engine::spread`].
    fn interp(
        &self,
        grids: View<'_, Complex<R>>,
        samples: ViewMut<'_, Complex<R>>,
        items: usize,
        asked: Option<Asked>,
    ) -> Result<()> {
        let form = self.interp_form(items, asked)?;
        self.expect(grids.len(), self.tiles.cells(), items)?;
        self.expect(samples.len(), self.samples, items)?;
        let mut arguments = vec![
            grids.into(),
            self.points.order.cuda().into(),
            self.points.places.cuda().into(),
            self.points.arguments.cuda().into(),
            Argument::count(self.samples)?,
            self.slots.cuda().into(),
            samples.into(),
            Argument::count(items)?,
        ];
        arguments.extend(self.geometry()?);
        let shape = Launch {
            blocks: [self.slots.len() as u32, items.div_ceil(form.coils) as u32, 1],
            threads: [form.threads, 1, 1],
            shared: form.shared as u32,
        };
        // SAFETY: as for `spread`.
        unsafe { self.kernel(&INTERP, &form, "interp")?.launch(shape, &mut arguments) }
    }

    /// Fine grid and tiles along z, y, x.
    fn geometry(&self) -> Result<[Argument<'static>; 6]> {
        let ([fz, fy, fx], [tz, ty, tx]) = (narrow(self.tiles.fine)?, narrow(self.tiles.tiles)?);
        Ok([fz, fy, fx, tz, ty, tx].map(Argument::from))
    }
}
