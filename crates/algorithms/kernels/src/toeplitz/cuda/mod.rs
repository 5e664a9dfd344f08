//! Zero-pad → FFT → multiply → inverse FFT → crop on a GPU. The padded grid is never formed. The first axis
//! is padded, transformed, multiplied and cropped on the chip. Between the passes along the middle and the
//! first axis only a slab of the last axis' frequencies is in memory.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

mod cut;
mod make;
mod spectrum;

use std::sync::Arc;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, voxels};
use rayspin_device::cuda::{Argument, Define, Kernel, Launch, Source, View, ViewMut};
use rayspin_device::{Array, Cuda, Device};

pub(super) use cut::Cut;
pub(super) use make::{Points, mirror};

use super::cpu::{padded_size, three_axes};
use rayspin_tune::Build;

use crate::cuda::{define, limits};
use crate::fft::cuda::line::{Block, HEAVY, LIGHT, Line};
use crate::fft::cuda::{
    Beside, Extent, LIGHT_SPILL, LINE, Lie, LinePass, Side, Span, Touch, Weigh, general, gpu, launch,
};
use crate::workspace::WorkspaceCache;

pub(crate) static PAD_FFT: Source =
    Source { name: "toeplitz", files: &[LINE, ("pad_fft.cu", include_str!("pad_fft.cu"))] };
pub(crate) static FUSED: Source =
    Source { name: "toeplitz", files: &[LINE, ("fused.cu", include_str!("fused.cu"))] };
pub(crate) static IFFT_CROP: Source =
    Source { name: "toeplitz", files: &[LINE, ("ifft_crop.cu", include_str!("ifft_crop.cu"))] };
pub(crate) static KERNEL: Source =
    Source { name: "toeplitz kernel", files: &[("kernel.cu", include_str!("kernel.cu"))] };
pub(crate) static SPECTRUM: Source =
    Source { name: "toeplitz spectrum", files: &[LINE, ("spectrum.cu", include_str!("spectrum.cu"))] };

/// A kernel, and the block that it was compiled for.
struct Compiled {
    kernel: Kernel,
    block: Block,
}

/// Images as `[first, middle, last]`, transforms as the same axes padded; a missing axis has size 1.
pub(super) struct Convolution<R: Real> {
    device: Device,
    matrix: [usize; 3],
    padded: [usize; 3],
    cut: Cut,
    /// `[slab][first][middle][slab of the last]`, with the inverse transforms' 1/N. `None` while another
    /// kernel uses it.
    spectrum: Option<Array<R>>,
    tables: [[Array<Complex<R>>; 2]; 2],
    last: Line,
    pad_fft: [Compiled; 2],
    fused: Compiled,
    ifft_crop: Compiled,
    middle: Option<[LinePass<R>; 2]>,
    work: Arc<WorkspaceCache<Work<R>>>,
}

/// Buffers of some coils, reused by the next call.
struct Work<R: Real> {
    /// Coils that it was made for, and how many of them it holds.
    wanted: usize,
    coils: usize,
    rows: Array<Complex<R>>,
    slab: Array<Complex<R>>,
}

/// The arguments of the last axis on the way out: rows of `coils` coils, whose images times `maps` are
/// summed.
struct Last<'a, R> {
    work: View<'a, Complex<R>>,
    maps: View<'a, Complex<R>>,
    image: ViewMut<'a, Complex<R>>,
    coils: usize,
    rows: usize,
    add: bool,
}

impl<R: Real> std::fmt::Debug for Convolution<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Convolution({:?} in {:?}, {:?})", self.matrix, self.padded, self.cut)
    }
}

/// Whether the kernels take images of `matrix`.
pub(super) fn takes(matrix: &[usize]) -> Result<bool> {
    Ok(three_axes(matrix)?.iter().all(|&n| Line::new(padded_size(n)).is_some()))
}

/// Bytes of the spectrum, and of the buffers of the coils that are transformed together.
pub(super) fn bytes_needed<R: Real>(matrix: &[usize], coils: usize) -> Result<(u64, u64)> {
    let sizes = three_axes(matrix)?;
    let padded = sizes.map(padded_size);
    let cut = Cut::new::<R>(sizes, padded);
    let (rows, slab) = cut.coil_len(sizes, padded)?;
    let work = cut.together(coils) * (rows + slab) * size_of::<Complex<R>>();
    Ok(((voxels(&padded)? * size_of::<R>()) as u64, work as u64))
}

/// Peak bytes while a plan is made from the kernel Q on the doubled grid: Q, its half, and the spectrum.
pub(super) fn bytes_of_making<R: Real>(matrix: &[usize]) -> Result<u64> {
    let sizes = three_axes(matrix)?;
    let padded = sizes.map(padded_size);
    let doubled: Vec<usize> = matrix.iter().map(|n| n.saturating_mul(2)).collect();
    let half = voxels(&[sizes[0], padded[1], padded[2]])?;
    let sums = spectrum::HERMITIAN_BLOCKS * size_of::<Complex<f64>>();
    let complex = (voxels(&doubled)? + half) * size_of::<Complex<R>>();
    Ok((complex + sums + voxels(&padded)? * size_of::<R>()) as u64)
}

fn flag(yes: bool) -> String {
    u32::from(yes).to_string()
}

impl<R: Real> Convolution<R> {
    /// `q` is `matrix` doubled, centred.
    pub(super) fn new(device: &Device, matrix: &[usize], q: &Array<Complex<R>>) -> Result<Self> {
        Self::cut(device, matrix, q, None)
    }

    /// The same, cut otherwise than for speed.
    pub(super) fn cut(
        device: &Device,
        matrix: &[usize],
        q: &Array<Complex<R>>,
        cut: Option<Cut>,
    ) -> Result<Self> {
        let mut this = Self::plan(device, matrix, cut)?;
        this.transform_kernel(matrix.len(), q)?;
        Ok(this)
    }

    /// `spectrum` is in the order of [`super::cpu::Convolution::spectrum`].
    pub(super) fn with_spectrum(device: &Device, matrix: &[usize], spectrum: &[R]) -> Result<Self> {
        let mut this = Self::plan(device, matrix, None)?;
        let ours = this.reordered(spectrum)?;
        this.spectrum = Some(Array::from_vec(device, &[ours.len()], ours)?);
        Ok(this)
    }

    fn plan(device: &Device, matrix: &[usize], cut: Option<Cut>) -> Result<Self> {
        let cuda = gpu(device)?;
        let sizes = three_axes(matrix)?;
        let padded = sizes.map(padded_size);
        let cut = cut.unwrap_or_else(|| Cut::new::<R>(sizes, padded));
        let line = |axis: usize| {
            Line::new(padded[axis]).ok_or_else(|| {
                Error::value(
                    "Toeplitz matrix size",
                    "a padded size that the GPU's kernels take",
                    padded[axis],
                )
            })
        };
        let (first, middle, last) = (line(0)?, line(1)?, line(2)?);
        let rows = Lie::Rows(sizes[0] * sizes[1]);
        let pad_fft = |sense: bool| -> Result<_> {
            let (block, defines) = rows.program::<R>(cuda, &PAD_FFT, &last, |block, lower| {
                let more = [lower_half(&last, sizes[2], lower), ("SENSE", flag(sense))];
                [last.defines::<R>(block, 1, LIGHT), more.into()].concat()
            })?;
            Ok(Compiled { kernel: cuda.kernel(&PAD_FFT, &defines, "pad_fft")?, block })
        };
        let columns = Lie::Columns(padded[1] * cut.width);
        let (block, defines) = columns.program::<R>(cuda, &FUSED, &first, |block, lower| {
            [first.defines::<R>(block, 1, HEAVY), vec![lower_half(&first, sizes[0], lower)]].concat()
        })?;
        let fused = Compiled { kernel: cuda.kernel(&FUSED, &defines, "fused")?, block };
        let passes = if padded[1] == 1 {
            None
        } else {
            let lie = Lie::Columns(cut.width);
            let n = Some(sizes[1]);
            Some([
                LinePass::new(device, &middle, lie, n, None)?,
                LinePass::new(device, &middle, lie, None, n)?,
            ])
        };
        let upload = |table: Vec<Complex<R>>| Array::from_vec(device, &[table.len()], table);
        let both = |line: &Line| Ok([upload(line.table())?, upload(line.reversed().table())?]);
        Ok(Self {
            device: device.clone(),
            matrix: sizes,
            padded,
            cut,
            spectrum: None,
            tables: [both(&first)?, both(&last)?],
            pad_fft: [pad_fft(false)?, pad_fft(true)?],
            fused,
            ifft_crop: rows_out::<R>(cuda, &last, rows, sizes[2], false)?,
            last,
            middle: passes,
            work: Arc::default(),
        })
    }

    pub(super) fn apply(&self, x: View<'_, Complex<R>>, mut y: ViewMut<'_, Complex<R>>) -> Result<()> {
        let image: usize = self.matrix.iter().product();
        let batch = x.len() / image;
        self.with_work(batch, |work| {
            for first in (0..batch).step_by(work.coils) {
                let count = work.coils.min(batch - first);
                let part = (first * image, count * image);
                let (Some(x), Some(y)) = (x.part(part.0, part.1), y.part(part.0, part.1)) else {
                    return Err(Error::shape("Toeplitz images", &[batch * image], &[x.len()]));
                };
                self.pad_fft(&self.pad_fft[0], x, x, work, count)?;
                self.inside(work, count)?;
                let rows = count * self.matrix[0] * self.matrix[1];
                let Compiled { kernel, block } = &self.ifft_crop;
                let launch = Launch { shared: block.shared as u32, ..launch(block, rows, 1)? };
                let work = work.rows.cuda();
                let last = Last { work, maps: work, image: y, coils: 1, rows, add: false };
                self.ifft_crop(kernel, launch, last)?;
            }
            Ok(())
        })
    }

    pub(super) fn apply_sense(
        &self,
        x: View<'_, Complex<R>>,
        maps: View<'_, Complex<R>>,
        mut y: ViewMut<'_, Complex<R>>,
        add: bool,
    ) -> Result<()> {
        let cuda = gpu(&self.device)?;
        let image: usize = self.matrix.iter().product();
        let batch = maps.len() / image;
        let rows = self.matrix[0] * self.matrix[1];
        self.with_work(batch, |work| {
            for first in (0..batch).step_by(work.coils) {
                let count = work.coils.min(batch - first);
                let Some(maps) = maps.part(first * image, count * image) else {
                    return Err(Error::shape("coil sensitivities", &[batch * image], &[maps.len()]));
                };
                self.pad_fft(&self.pad_fft[1], x, maps, work, count)?;
                self.inside(work, count)?;
                let (kernel, block, groups) = self.sums(cuda, rows, count)?;
                let sums =
                    (groups - 1) * self.last.elements() * block.threads as usize * size_of::<Complex<R>>();
                let mut launch = launch(&block, rows, 1)?.with_shared((groups * block.shared).max(sums));
                launch.threads[1] = groups as u32;
                let (work, image) = (work.rows.cuda(), y.reborrow());
                let last = Last { work, maps, image, coils: count, rows, add: add || first > 0 };
                self.ifft_crop(&kernel, launch, last)?;
            }
            Ok(())
        })
    }

    /// The kernel that adds up the coils, with its block, and how many coils' rows a block adds up side by
    /// side: more where there are too few rows to fill the GPU.
    fn sums(&self, cuda: &Cuda, rows: usize, coils: usize) -> Result<(Kernel, Block, usize)> {
        let n = self.matrix[2];
        if let Some((block, groups)) = self.groups(cuda, rows, coils)? {
            let defines =
                rows_out_defines::<R>(&self.last, &block, lower_half(&self.last, n, true), Some(groups));
            if cuda.offers(&IFFT_CROP, &defines) {
                return Ok((cuda.kernel(&IFFT_CROP, &defines, "ifft_crop")?, block, groups));
            }
        }
        let Compiled { kernel, block } = rows_out::<R>(cuda, &self.last, Lie::Rows(rows), n, true)?;
        Ok((kernel, block, 1))
    }

    /// `None` where a block takes one coil at a time.
    fn groups(&self, cuda: &Cuda, rows: usize, coils: usize) -> Result<Option<(Block, usize)>> {
        let limits = cuda.properties();
        let wanted = limits.multiprocessors as usize * 1024;
        let team = self.last.team;
        if rows * team >= wanted || coils == 1 {
            return Ok(None);
        }
        let block = Lie::Rows((32usize.div_ceil(team)).next_power_of_two()).block::<R>(&self.last, cuda)?;
        let threads = block.threads as usize;
        let element = size_of::<Complex<R>>();
        let fits = |groups: usize| {
            threads * groups <= (512 * 8 * 8 / (self.last.elements().max(8) * element)).clamp(threads, 1024)
                && groups * block.shared.max(self.last.elements() * threads * element)
                    <= limits.shared_per_block as usize
        };
        let most = (1..=coils).rev().find(|&groups| fits(groups)).unwrap_or(1);
        // As even as may be.
        let groups = coils.div_ceil(coils.div_ceil(most));
        Ok((groups > 1).then_some((block, groups)))
    }

    fn pad_fft(
        &self,
        Compiled { kernel, block }: &Compiled,
        x: View<'_, Complex<R>>,
        maps: View<'_, Complex<R>>,
        work: &mut Work<R>,
        coils: usize,
    ) -> Result<()> {
        let rows = self.matrix[0] * self.matrix[1];
        let mut launch = launch(block, rows, 1)?;
        launch.blocks[0] = u32::try_from(launch.blocks[0] as usize * coils)
            .map_err(|_| Error::value("Toeplitz", "2^32 blocks of rows", coils))?;
        let arguments = &mut [
            x.into(),
            maps.into(),
            work.rows.cuda_mut().into(),
            self.tables[1][0].cuda().into(),
            Argument::count(coils)?,
            Argument::count(rows)?,
            Argument::count(self.matrix[2])?,
        ];
        // SAFETY: the images, or the image and the maps of these coils, have the plan's matrix, as the public
        // functions found. The buffer holds the padded rows of these coils, and the block is the one that the
        // kernel was compiled for.
        unsafe { kernel.launch(launch, arguments) }
    }

    /// The middle and the first axis, slab by slab.
    fn inside(&self, work: &mut Work<R>, coils: usize) -> Result<()> {
        let [n0, n1, _] = self.matrix;
        let [p0, p1, p2] = self.padded;
        let held = self.held()?;
        for first in (0..p2).step_by(self.cut.width) {
            let width = self.cut.width.min(p2 - first);
            let spectrum = held.cuda().part(p0 * p1 * first, p0 * p1 * width);
            let (Some(spectrum), Some([forward, inverse])) = (spectrum, &self.middle) else {
                // Nothing lies between the first axis and the last.
                return self.fused(work.rows.cuda_mut(), held.cuda(), coils, n0 * p2, p2);
            };
            let rows = Side {
                batch: n0 * n1 * p2,
                a: Beside::packed(0),
                b: Beside::packed(n1 * p2),
                stride: p2,
                span: Span::lower(n1),
            };
            let slab = Side {
                batch: n0 * p1 * width,
                b: Beside::packed(p1 * width),
                stride: width,
                span: Span::full(p1),
                ..rows
            };
            let extent = Extent { batch: coils, a: 1, b: n0, inner: width };
            let outside =
                || Error::shape("Toeplitz work buffer", &[coils * n0 * n1 * p2], &[work.rows.len()]);
            let len = work.rows.len() - first;
            let touch = |inverse| Touch { inverse, scale: R::one(), weigh: Weigh::Not };
            let from = work.rows.cuda().part(first, len).ok_or_else(outside)?;
            forward.run(Some(from), work.slab.cuda_mut(), extent, [rows, slab], &touch(false))?;
            self.fused(work.slab.cuda_mut(), spectrum, coils, n0 * p1 * width, p1 * width)?;
            let outside = Error::shape("Toeplitz work buffer", &[coils * n0 * n1 * p2], &[len + first]);
            let mut output = work.rows.cuda_mut();
            let to = output.part(first, len).ok_or(outside)?;
            inverse.run(Some(work.slab.cuda()), to, extent, [slab, rows], &touch(true))?;
        }
        Ok(())
    }

    fn fused(
        &self,
        data: ViewMut<'_, Complex<R>>,
        spectrum: View<'_, R>,
        coils: usize,
        coil: usize,
        columns: usize,
    ) -> Result<()> {
        let Compiled { kernel, block } = &self.fused;
        let mut launch = launch(block, 1, columns)?;
        // Each part of the coils reads the spectrum once: more than one only where that many blocks are at
        // work at once.
        let held = kernel.occupancy(block.threads, launch.shared)?.max(1)
            * gpu(&self.device)?.properties().multiprocessors;
        let parts = (held / launch.blocks[0]).clamp(1, 65535) as usize;
        let parts = parts.min(coils);
        launch.blocks[1] = coils.div_ceil(coils.div_ceil(parts)) as u32;
        let arguments = &mut [
            data.into(),
            spectrum.into(),
            self.tables[0][0].cuda().into(),
            self.tables[0][1].cuda().into(),
            Argument::count(coils)?,
            Argument::from(coil as i64),
            Argument::count(columns)?,
            Argument::count(self.matrix[0])?,
        ];
        // SAFETY: `inside` gives rows, or a slab, of these columns for each coil, and the spectrum of as many
        // columns.
        unsafe { kernel.launch(launch, arguments) }
    }

    fn ifft_crop(&self, kernel: &Kernel, launch: Launch, last: Last<'_, R>) -> Result<()> {
        let arguments = &mut [
            last.work.into(),
            last.maps.into(),
            last.image.into(),
            self.tables[1][1].cuda().into(),
            Argument::count(last.coils)?,
            Argument::count(last.rows)?,
            Argument::count(self.matrix[2])?,
            u32::from(last.add).into(),
        ];
        // SAFETY: as for `pad_fft`; shared memory holds the groups' lines and then their sums.
        unsafe { kernel.launch(launch, arguments) }
    }

    /// Runs `run` on the plan's buffers for the coils that are transformed together. If another thread uses
    /// them, runs `run` on new ones.
    fn with_work(&self, coils: usize, run: impl FnOnce(&mut Work<R>) -> Result<()>) -> Result<()> {
        if coils == 0 {
            return Ok(());
        }
        let coils = self.cut.together(coils);
        // The workspace may hold fewer coils than wanted because memory was short. It is compared by the
        // wanted number, not by the number it holds.
        self.work.with(|work| work.wanted >= coils, || self.new_work(coils), run)
    }

    /// Buffers of `coils` coils, or of fewer if the memory left is too small.
    fn new_work(&self, coils: usize) -> Result<Work<R>> {
        let (rows, slab) = self.cut.coil_len(self.matrix, self.padded)?;
        let (wanted, mut coils) = (coils, coils);
        loop {
            let rows = Array::zeros(&self.device, &[coils, rows]);
            match rows.and_then(|rows| Ok((rows, Array::zeros(&self.device, &[coils, slab])?))) {
                Ok((rows, slab)) => return Ok(Work { wanted, coils, rows, slab }),
                Err(Error::Memory { .. }) if coils > 1 => coils = coils.div_ceil(2),
                Err(error) => return Err(error),
            }
        }
    }

    /// Limits the coils taken at a time to `coils`.
    pub(super) fn limit_batch(&mut self, coils: usize) {
        self.cut.limit_batch(coils);
    }

    pub(super) fn bytes(&self) -> u64 {
        let work = self.work.peek(|work| (work.rows.len() + work.slab.len()) * size_of::<Complex<R>>());
        let spectrum = self.spectrum.as_ref().map_or(0, Array::len) * size_of::<R>();
        (spectrum + work.unwrap_or(0)) as u64
    }

    /// Works in the buffers of `other`, a plan for the same matrix.
    pub(super) fn share_work(&mut self, other: &Self) {
        self.work = other.work.clone();
    }

    /// Exchanges the spectrum with another one of the same matrix in the GPU's order. While the plan is not
    /// applied it may hold anything.
    pub(super) fn swap_spectrum(&mut self, with: &mut Array<R>) {
        if let Some(own) = &mut self.spectrum {
            std::mem::swap(own, with);
        }
    }

    fn held(&self) -> Result<&Array<R>> {
        self.spectrum.as_ref().ok_or_else(|| Error::value("Toeplitz spectrum", "one on the GPU", "none"))
    }
}

/// The programs for machines without a compiler: every image whose padded axes are no longer than `longest`.
pub(crate) fn precompiled<R: Real>(longest: usize, shared: u32) -> Vec<Build> {
    let mut builds = vec![Build { source: &KERNEL, defines: vec![define::<R>()], spill_bytes: 0 }];
    let mut push = |source: &'static Source, mut defines: Vec<Define>, more: &[Define]| {
        defines.extend_from_slice(more);
        builds.push(Build { source, defines, spill_bytes: 0 });
    };
    let mut lengths: Vec<usize> = (1..=longest).map(padded_size).filter(|&n| n <= longest).collect();
    lengths.dedup();
    let whole = ("LOWER", flag(false));
    for line in lengths.into_iter().filter_map(Line::new) {
        let [rows, columns] = general::<R>(&line, shared);
        if let Some(rows) = rows {
            for sense in [false, true].map(|sense| ("SENSE", flag(sense))) {
                let one = ("GROUPS", "1".to_owned());
                push(&PAD_FFT, line.defines::<R>(&rows, 1, LIGHT), &[whole.clone(), sense.clone()]);
                push(&IFFT_CROP, line.defines::<R>(&rows, 1, HEAVY), &[whole.clone(), sense, one]);
            }
        }
        if let Some(columns) = columns {
            push(&FUSED, line.defines::<R>(&columns, 1, HEAVY), std::slice::from_ref(&whole));
            push(&SPECTRUM, line.defines::<R>(&columns, 1, LIGHT), &[]);
        }
    }
    builds
}

/// Whether a kernel leaves out half of a line that holds `n` elements. General kernels do not.
fn lower_half(line: &Line, n: usize, exact: bool) -> Define {
    ("LOWER", flag(exact && line.halves(n)))
}

/// Every program in the forms that images of 256 voxels an axis take.
pub(crate) fn builds() -> Vec<Build> {
    [builds_in::<f32>(), builds_in::<f64>()].concat()
}

fn builds_in<R: Real>() -> Vec<Build> {
    let limits = limits();
    let mut builds: Vec<Build> = [&KERNEL, &make::SOURCE]
        .map(|source| Build { source, defines: vec![define::<R>()], spill_bytes: 0 })
        .into();
    let Some(line) = Line::new(padded_size(256)) else { return builds };
    let (rows, columns) = (line.rows::<R>(1 << 16, &limits), line.columns::<R>(1 << 16, &limits));
    let (Some(rows), Some(columns)) = (rows, columns) else { return builds };
    let lower = ("LOWER", flag(true));
    let mut push =
        |source: &'static Source, mut defines: Vec<Define>, more: Vec<Define>, spill_bytes: u32| {
            defines.extend(more);
            builds.push(Build { source, defines, spill_bytes });
        };
    let sense = |yes: bool| ("SENSE", flag(yes));
    push(&PAD_FFT, line.defines::<R>(&rows, 1, LIGHT), vec![lower.clone(), sense(true)], LIGHT_SPILL);
    let one = ("GROUPS", "1".to_owned());
    push(&IFFT_CROP, line.defines::<R>(&rows, 1, HEAVY), vec![lower.clone(), sense(false), one], 0);
    if let Some(row) = line.rows::<R>(1, &limits) {
        let four = ("GROUPS", "4".to_owned());
        push(&IFFT_CROP, line.defines::<R>(&row, 4, HEAVY), vec![lower.clone(), sense(true), four], 0);
    }
    push(&FUSED, line.defines::<R>(&columns, 1, HEAVY), vec![lower], 0);
    push(&SPECTRUM, line.defines::<R>(&columns, 1, LIGHT), vec![], LIGHT_SPILL);
    builds
}

/// The kernel of the last axis on the way out, of one coil at a time. With `sense` it adds up the coils.
fn rows_out<R: Real>(cuda: &Cuda, last: &Line, rows: Lie, n: usize, sense: bool) -> Result<Compiled> {
    let (block, defines) = rows.program::<R>(cuda, &IFFT_CROP, last, |block, lower| {
        rows_out_defines::<R>(last, block, lower_half(last, n, lower), sense.then_some(1))
    })?;
    Ok(Compiled { kernel: cuda.kernel(&IFFT_CROP, &defines, "ifft_crop")?, block })
}

/// Its macros; with `groups`, of coils that are added up.
fn rows_out_defines<R: Real>(
    last: &Line,
    block: &Block,
    lower: Define,
    groups: Option<usize>,
) -> Vec<Define> {
    let count = groups.unwrap_or(1);
    let mut defines = last.defines::<R>(block, count, HEAVY);
    defines.extend([lower, ("SENSE", flag(groups.is_some())), ("GROUPS", count.to_string())]);
    defines
}
