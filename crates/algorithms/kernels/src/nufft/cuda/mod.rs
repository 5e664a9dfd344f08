//! The transforms on a GPU: points sorted once, padded tiles in shared memory, several items of a batch at
//! once.

mod gridding;
mod plan_bytes;
pub(super) mod points;
#[cfg(test)]
mod tests;
mod tiles;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::cuda::{Define, Properties, Source, View, ViewMut};
use rayspin_device::{Array, Cuda, Device};

use super::coordinates::Coordinates;
use super::deconvolve::Deconvolution;
use super::form::Asked;
use super::kernel::{Kernel as Window, terms};
use super::layout::Layout;
use rayspin_tune::Build;

use crate::cuda::{in_precision, limits};
use crate::fft::cuda::PaddedFft;
pub(super) use gridding::{Batch, Gridding};
pub(super) use plan_bytes::PlanBytes;
use tiles::Tiles;

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
    pub(super) gridding: Gridding<R>,
    /// Between images and the low modes of fine grids, times 1/φ̂.
    fft: PaddedFft<R>,
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
    fn of<R: Real>(builds: &mut Vec<Build>) {
        let row = |source, defines| Build { source, defines, spill_bytes: 0 };
        builds.extend(super::type3::builds::<R>());
        for dims in 1..=3 {
            builds.push(row(&points::SOURCE, points::defines::<R>(dims)));
            for (width, coils) in [(3, 1), (6, 4), (16, 1)] {
                let tiles = Tiles { dims, width, fine: [64; 3], tiles: [8; 3], largest: tiles::cells(dims) };
                let mut defines = program::<R>(&tiles, &Window::new(width, 2.0));
                defines.push(("COILS", coils.to_string()));
                let with = |define| [&defines[..], &[define]].concat();
                // `merge` of several items in f64 lacks a few registers for four blocks a multiprocessor: 4
                // to 20 bytes.
                let spill_bytes = if size_of::<R>() == 8 && coils > 1 { 24 } else { 0 };
                let spread = with(("WARPS", tiles.warps::<R>().to_string()));
                builds.push(Build { spill_bytes, ..row(&SPREAD, spread) });
                builds.push(row(&INTERP, with(("THREADS", "256".to_owned()))));
            }
        }
    }
    let mut builds = Vec::new();
    of::<f32>(&mut builds);
    of::<f64>(&mut builds);
    builds
}

/// The forms of the program that spreads (`to_image`), or of the one that interpolates.
pub(super) fn forms<R: Real>(to_image: bool) -> Vec<Build> {
    let source = if to_image { &SPREAD } else { &INTERP };
    let mut builds = in_precision::<R>(builds());
    builds.retain(|build| std::ptr::eq(build.source, source));
    builds
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

/// The programs for machines without a compiler: every tolerance, with the candidate upsamplings, and
/// interpolation for others.
pub(crate) fn precompiled<R: Real>(shared: u32, more: &[Window]) -> Vec<Build> {
    let properties = Properties { shared_per_block: shared, ..limits() };
    let row = |source, defines| Build { source, defines, spill_bytes: 0 };
    let mut builds = Vec::new();
    for dims in 1..=3 {
        builds.push(row(&points::SOURCE, points::defines::<R>(dims)));
        let mut windows = super::windows::<R>(dims);
        windows.extend(super::type3::windows::<R>(dims));
        for window in windows.iter().chain(more) {
            // The largest tile does not depend on the grid.
            let tiles = Tiles::new::<R>(dims, [1; 3], window.width, &properties);
            let plain = program::<R>(&tiles, window);
            for items in [1, MOST_ITEMS] {
                let forms = [
                    (&SPREAD, spread_form::<R>(&tiles, items, None)),
                    (&INTERP, interp_form::<R>(&tiles, items, shared, None)),
                ];
                builds.extend(forms.map(|(source, form)| row(source, form.defines(&plain))));
            }
        }
    }
    builds
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

/// The wanted form of type 2, or else a form with as many items as fit in shared memory. `most` is the
/// maximum shared memory of a block.
fn interp_form<R: Real>(tiles: &Tiles, items: usize, most: u32, asked: Option<Asked>) -> Form {
    let tile = tiles.padded_even() * size_of::<Complex<R>>();
    let wanted = items.next_power_of_two().min(8);
    let usual = || [8, 4, 2, 1].into_iter().find(|&c| c <= wanted && (c == 1 || c * tile <= most as usize));
    let coils = asked.map(|form| form.coils).or_else(usual).unwrap_or(1);
    // As many threads as there are points of a slot to give them: in 2-D 128 took as long as 512, or up to 18
    // % less.
    let lanes = if size_of::<R>() == 4 { coils.div_ceil(2) } else { coils };
    let enough = if size_of::<R>() == 4 && tiles.dims < 3 { 128 } else { 512 };
    let threads = asked.and_then(|form| form.threads).unwrap_or((128 * lanes).min(enough));
    Form { coils, define: ("THREADS", threads.to_string()), threads: threads as u32, shared: coils * tile }
}

/// The cost of a type 1 and a type 2 together in nanoseconds. In 3-D it is 0.0028 for each cell of a point's
/// footprint and 0.08 for each cell of the fine grid. Otherwise it is 0.06 per point, 0.0018 for each cell of
/// its footprint and 0.06 for each cell of the fine grid. In f64 it is twice that. Fitted to the measurements
/// of benches/results/2026-11-21-h100/nufft_upsampling.txt.
pub(super) fn cost<R: Real>(matrix: &[usize], upsampling: f64, width: usize, samples: usize) -> f64 {
    let footprint = width.pow(matrix.len() as u32) as f64;
    let cells: f64 = matrix.iter().map(|&n| (n as f64 * upsampling).max(2.0 * width as f64)).product();
    let (point, tap, cell) = if matrix.len() == 3 { (0.0, 0.0028, 0.08) } else { (0.06, 0.0018, 0.06) };
    (samples as f64 * (point + tap * footprint) + cell * cells) * size_of::<R>() as f64 / 4.0
}

/// Maximum points of a slot: enough to be worth a tile's memory, and few enough to give the largest GPU many
/// blocks.
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

pub(super) fn cuda(device: &Device) -> Result<&Cuda> {
    match device.backend() {
        rayspin_device::Backend::Cuda(cuda) => Ok(cuda),
        rayspin_device::Backend::Cpu(_) => Err(Error::value("device", "a GPU", device.describe())),
    }
}

pub(super) fn missing() -> Error {
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
        let gridding = Gridding::new(device, coordinates, matrix, layout.fine, window, 0)?;
        let outer = layout.outer();
        let deconvolution = Deconvolution::<R>::new(matrix, layout, window);
        let fft = PaddedFft::new(device, matrix, &layout.fine[outer..], &deconvolution.factors()[outer..])?;
        Ok(Self { gridding, fft })
    }

    /// Type 2 of images `[item, voxel]` to `[item, sample]`.
    pub(super) fn forward(
        &self,
        images: View<'_, Complex<R>>,
        mut samples: ViewMut<'_, Complex<R>>,
        asked: Option<Asked>,
    ) -> Result<()> {
        let (voxels, each) = (self.fft.image_len(), self.gridding.samples);
        self.gridding.in_groups(images.len() / voxels, false, |work, first, count| {
            let images = images.part(first * voxels, count * voxels).ok_or_else(missing)?;
            let mut grids = work.grids.cuda_mut();
            let grids = grids.part(0, count * self.gridding.cells()).ok_or_else(missing)?;
            self.fft.forward_padded(images, grids, count)?;
            let samples = samples.part(first * each, count * each).ok_or_else(missing)?;
            self.gridding.interp(work.grids.cuda(), samples, Batch { items: count, tuned: asked })
        })
    }

    /// Type 1 of `[item, sample]` to images `[item, voxel]`.
    pub(super) fn adjoint(
        &self,
        samples: View<'_, Complex<R>>,
        mut images: ViewMut<'_, Complex<R>>,
        asked: Option<Asked>,
    ) -> Result<()> {
        let (voxels, each) = (self.fft.image_len(), self.gridding.samples);
        self.gridding.in_groups(images.len() / voxels, true, |work, first, count| {
            let samples = samples.part(first * each, count * each).ok_or_else(missing)?;
            let [grids, padded, _] = work.parts()?;
            self.gridding.spread(
                samples,
                padded,
                grids.cuda_mut(),
                Batch { items: count, tuned: asked },
                false,
            )?;
            let mut grids = grids.cuda_mut();
            let grids = grids.part(0, count * self.gridding.cells()).ok_or_else(missing)?;
            let images = images.part(first * voxels, count * voxels).ok_or_else(missing)?;
            self.fft.inverse_cropped(grids, images, count)
        })
    }

    /// Interpolation after spreading of one item, without transforms.
    pub(super) fn convolve(&self, samples: &Array<Complex<R>>, out: &mut Array<Complex<R>>) -> Result<()> {
        self.gridding.in_groups(1, true, |work, _, _| {
            let [grids, padded, _] = work.parts()?;
            self.gridding.spread(samples.cuda(), padded, grids.cuda_mut(), Batch::usual(1), false)?;
            self.gridding.interp(grids.cuda(), out.cuda_mut(), Batch::usual(1))
        })
    }

    /// Bytes that the plan holds, and with its workspace while a batch of that many items is transformed.
    pub(super) fn bytes(&self, batch: usize) -> u64 {
        self.gridding.bytes() + self.fft.bytes() + self.gridding.workspace_bytes(batch).0
    }
}
