//! The GPU variants: launches, and how a grid becomes rows and columns of a product.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use std::ops::Range;

use num_complex::Complex;
use rayspin_core::{C64, Error, Real, Result, Trajectory};
use rayspin_device::cpu::try_with_capacity;
use rayspin_device::cuda::{Argument, Launch, View};
use rayspin_device::{Array, Cuda, Device};

use rayspin_tune::Config;

use super::grid::Grid;
use super::tune::value;
use crate::cuda::define;

mod pieces;
mod target;
mod variants;

use target::{List, Target, faces};
pub use variants::CudaVariant;
pub(crate) use variants::PHASE;
use variants::{NAIVE, TABLES, TILE_V, Tiling};

const THREADS: usize = 128;
/// Maximum number of samples. Threads of the last block count beyond it in 32 bits.
const MOST_SAMPLES: usize = i32::MAX as usize - 1024;
/// Samples of a table of an image of few voxels.
const LONG_CHUNK: usize = 65536;
/// Bytes of the table that grows with the batch.
const WEIGHTED_BYTES: usize = 64 << 20;

/// A variant and its parameters.
#[derive(Clone, Copy)]
pub(super) struct Chosen<'a> {
    pub(super) variant: CudaVariant,
    pub(super) config: &'a Config,
}

/// The arguments that all launches of one transform share.
struct Work<'a> {
    cuda: &'a Cuda,
    device: &'a Device,
    k: Array<f64>,
    dims: usize,
    samples: usize,
}

impl<'a> Work<'a> {
    fn new(cuda: &'a Cuda, device: &'a Device, trajectory: &Trajectory) -> Result<Self> {
        let (dims, samples) = (trajectory.dims(), trajectory.samples());
        if samples > MOST_SAMPLES {
            return Err(Error::value("samples", format!("at most {MOST_SAMPLES}"), samples));
        }
        let mut k: Vec<f64> = try_with_capacity("trajectory for the GPU", samples * dims)?;
        k.extend((0..samples).flat_map(|m| trajectory.point(m)));
        Ok(Self { cuda, device, k: Array::from_vec(device, &[samples * dims], k)?, dims, samples })
    }

    /// Runs the kernel `adjoint` or `forward` between images of `grid` and samples, for the same number of
    /// batch entries. `launch` has one thread for each output of an entry, and along y one block for each
    /// entry.
    fn naive<R: Real>(
        &self,
        name: &str,
        grid: &Grid,
        launch: Launch,
        from: &Array<Complex<R>>,
        to: &mut Array<Complex<R>>,
    ) -> Result<()> {
        let mut arguments = vec![
            self.k.cuda().into(),
            int(self.dims)?,
            int(self.samples)?,
            from.cuda().into(),
            to.cuda_mut().into(),
        ];
        arguments.extend(grid.axes.map(|axis| Argument::from(axis.count as i32)));
        arguments.extend(grid.axes.map(|axis| Argument::from(axis.first as i32)));
        arguments.extend(grid.axes.map(|axis| Argument::from(axis.n as i32)));
        // SAFETY: `super::check` found samples and images of the same batch, of this trajectory and this
        // grid; a thread takes one output that there is.
        unsafe { self.cuda.kernel(&NAIVE, &[define::<R>()], name)?.launch(launch, &mut arguments) }
    }

    /// Makes a table of the phases of `samples`, which may end after the trajectory's last: runs the kernel
    /// `name` with the common arguments, then `more`.
    ///
    /// # Safety
    /// The kernel also takes the arguments `more`. The last array of `more` has an element for each of
    /// `samples` of each block along y and z. Values exist for the trajectory's samples for each block along
    /// z.
    unsafe fn table<R: Real>(
        &self,
        name: &str,
        samples: Range<usize>,
        launch: Launch,
        list: &List,
        more: Vec<Argument<'_>>,
    ) -> Result<()> {
        let (first, width) = (int(samples.start)?, int(samples.len())?);
        let mut arguments = vec![self.k.cuda().into(), int(self.dims)?, first, int(self.samples)?, width];
        arguments.extend(list.a.iter().chain(&list.b).map(|&v| Argument::from(v)));
        arguments.extend(more);
        // SAFETY: as the caller promises; every sample of the trajectory has phases.
        unsafe { self.cuda.kernel(&TABLES, &[define::<R>()], name)?.launch(launch, &mut arguments) }
    }

    /// Sums of all samples over the outputs of `target`, which lie within each of the `batch` entries of
    /// `out`.
    fn product<R: Real>(
        &self,
        chosen: Chosen<'_>,
        target: &Target,
        batch: usize,
        d: &Array<Complex<R>>,
        out: &mut Array<Complex<R>>,
    ) -> Result<()> {
        let Chosen { variant, config } = chosen;
        let whole = out.len() / batch;
        variant.expect_on(self.cuda)?;
        let shape = target.rows();
        let tiling = Tiling::offered(self.cuda, variant, shape.columns, config, &[define::<R>()])?;
        let (depth, tiles) = (tiling.depth, tiling.columns);
        let element = if variant == CudaVariant::Double { 16 } else { 8 };
        let column_tiles = shape.columns.next_multiple_of(2).div_ceil(8 * tiles);
        let blocks = shape.nu.div_ceil(tiling.u) * shape.nv.div_ceil(TILE_V) * column_tiles;
        // With few outputs, parts of the samples are summed separately, so that every multiprocessor has
        // work, and added at the end. Their tables are read once and need not stay in the cache. No sum has
        // more samples than with few parts.
        let wanted = (tiling.blocks * self.cuda.properties().multiprocessors as usize) / (blocks * batch);
        let chunk = (wanted.max(1) * value(config, "table", 8192)?.max(1) as usize).min(LONG_CHUNK);
        // Tables are cut into whole stages.
        let chunk = (chunk / depth).max(1) * depth;
        let room = (WEIGHTED_BYTES / (batch * shape.nu * element)).max(512) / depth * depth;
        let width = self.samples.next_multiple_of(depth).min(chunk).min(room);
        let parts = wanted.min(width / (8 * depth)).max(1);
        let pairs = int(shape.columns.div_ceil(2))?;
        let mut tables = Tables::new(variant, self.device, &shape, batch, width, column_tiles * tiles)?;
        let compact = (parts > 1).then(|| target.compact());
        let (place, stride) = compact.as_ref().map_or((target, whole), |c| (c, c.points()));
        let shape = place.rows();
        let mut sums =
            Array::<Complex<R>>::zeros(self.device, &[if parts > 1 { parts } else { 0 }, batch, stride])?;
        let mut largest = Array::<u32>::zeros(self.device, &[1])?;
        let halves = matches!(variant, CudaVariant::Tensor | CudaVariant::Wgmma);
        if halves {
            let blocks = d.len().div_ceil(THREADS).min(1024) as u32;
            let arguments = &mut [d.cuda().into(), (d.len() as u64).into(), largest.cuda_mut().into()];
            let kernel = self.cuda.kernel(&TABLES, &[define::<R>()], "largest")?;
            // SAFETY: the length is the array's; one number is written.
            unsafe { kernel.launch(Launch::linear(blocks, THREADS as u32), arguments) }?;
        }
        let u32_of =
            |n: usize| u32::try_from(n).map_err(|_| Error::value("NUDFT blocks", "at most 32 bits", n));
        let launch = Launch {
            blocks: [u32_of(blocks)?, u32_of(batch)?, u32_of(parts)?],
            threads: [tiling.threads, 1, 1],
            shared: u32_of(tiling.shared)?,
        };
        let (source, more) = variant.product(&tiling);
        let mut defines = vec![define::<R>()];
        defines.extend(more);
        let kernel = self.cuda.kernel(source, &defines, "adjoint")?;
        for first in (0..self.samples).step_by(width) {
            let part = first..first + width;
            let rows = over(width, shape.nu, batch)?;
            let values = d.cuda().into();
            let (name, more) = match &mut tables {
                Tables::Single { p, .. } | Tables::Fp16 { p, .. } if halves => {
                    ("weighted_scaled", vec![values, largest.cuda().into(), p.cuda_mut().into()])
                }
                Tables::Single { p, .. } | Tables::Fp16 { p, .. } => {
                    ("weighted_single", vec![values, p.cuda_mut().into()])
                }
                Tables::Double { p, .. } => ("weighted_double", vec![values, p.cuda_mut().into()]),
            };
            // SAFETY: P is `[batch][nu][width]`, and `d` has the trajectory's samples for each batch entry.
            unsafe { self.table::<R>(name, part.clone(), rows, &shape.u, more) }?;
            let rows = over(width, shape.nv, 1)?;
            let (name, more) = match &mut tables {
                Tables::Single { y, .. } | Tables::Fp16 { y, .. } => ("phases_single", y.cuda_mut().into()),
                Tables::Double { y, .. } => ("phases_double", y.cuda_mut().into()),
            };
            // SAFETY: Y is `[nv][width]`.
            unsafe { self.table::<R>(name, part.clone(), rows, &shape.v, vec![more]) }?;
            let strips = column_tiles * tiles;
            let (name, cover, more) = match &mut tables {
                Tables::Single { b, .. } => {
                    let blocks = [width as u32, column_tiles as u32, 1];
                    let cover = Launch { blocks, ..Launch::linear(1, THREADS as u32) };
                    ("columns_single", cover, vec![pairs, b.cuda_mut().into()])
                }
                Tables::Double { b, .. } => {
                    ("columns_double", over(width * 4, strips, 1)?, vec![pairs, b.cuda_mut().into()])
                }
                Tables::Fp16 { b, .. } if variant == CudaVariant::Wgmma => {
                    let more = vec![pairs, int(8 * tiles)?, b.cuda_mut().into()];
                    ("columns_wgmma", over(width * tiles, column_tiles, 1)?, more)
                }
                Tables::Fp16 { b, .. } => {
                    ("columns_fp16", over(width * 2, strips, 1)?, vec![pairs, b.cuda_mut().into()])
                }
            };
            // SAFETY: `width` samples are whole stages, and their columns are `strips` eights; blocks cover
            // them in the way that each kernel counts.
            unsafe { self.table::<R>(name, part, cover, &shape.x, more) }?;
            let arguments: [Argument<'_>; 3] = match &tables {
                Tables::Single { p, y, b } => [p.cuda().into(), y.cuda().into(), b.cuda().into()],
                Tables::Double { p, y, b } => [p.cuda().into(), y.cuda().into(), b.cuda().into()],
                Tables::Fp16 { p, y, b } => [p.cuda().into(), y.cuda().into(), b.cuda().into()],
            };
            let mut arguments = arguments.to_vec();
            arguments.push(int(width / depth)?);
            if halves {
                arguments.push(largest.cuda().into());
            }
            arguments.push(if parts > 1 { sums.cuda_mut() } else { out.cuda_mut() }.into());
            for n in [shape.columns, shape.nu, shape.nv, shape.limit, shape.wu, shape.wv, shape.wx] {
                arguments.push(int(n)?);
            }
            for n in [place.base, shape.su, shape.sv, shape.sx, stride] {
                arguments.push((n as i64).into());
            }
            arguments.push(i32::from(first > 0).into());
            // SAFETY: the tables have `width` samples; rows past the last are read as the last, and stores
            // end where `target`, a box within each `stride` outputs, ends.
            unsafe { kernel.launch(launch, &mut arguments) }?;
        }
        if parts == 1 {
            return Ok(());
        }
        let mut arguments: Vec<Argument<'_>> = vec![sums.cuda().into(), int(parts)?];
        for n in target.counts() {
            arguments.push(int(n)?);
        }
        arguments.push(out.cuda_mut().into());
        arguments.push((target.base as i64).into());
        for n in target.strides() {
            arguments.push((n as i64).into());
        }
        arguments.push((whole as i64).into());
        let kernel = self.cuda.kernel(&TABLES, &[define::<R>()], "gather")?;
        // SAFETY: `parts` sums of the box's points are there for each batch entry; the box lies inside the
        // outputs.
        unsafe { kernel.launch(over(stride, batch, 1)?, &mut arguments) }
    }
}

/// P and Y `[point][sample]` and the columns, as a variant reads them.
enum Tables {
    Single { p: Array<Complex<f32>>, y: Array<Complex<f32>>, b: Array<f32> },
    Double { p: Array<C64>, y: Array<C64>, b: Array<C64> },
    Fp16 { p: Array<Complex<f32>>, y: Array<Complex<f32>>, b: Array<[u32; 4]> },
}

impl Tables {
    fn new(
        variant: CudaVariant,
        device: &Device,
        shape: &target::Rows,
        batch: usize,
        width: usize,
        strips: usize,
    ) -> Result<Self> {
        let (p, y) = ([batch, shape.nu, width], [shape.nv, width]);
        Ok(match variant {
            CudaVariant::Tensor | CudaVariant::Wgmma => Self::Fp16 {
                p: Array::zeros(device, &p)?,
                y: Array::zeros(device, &y)?,
                b: Array::zeros(device, &[strips, width * 2])?,
            },
            CudaVariant::Double => Self::Double {
                p: Array::zeros(device, &p)?,
                y: Array::zeros(device, &y)?,
                b: Array::zeros(device, &[strips, width * 4])?,
            },
            _ => Self::Single {
                p: Array::zeros(device, &p)?,
                y: Array::zeros(device, &y)?,
                b: Array::zeros(device, &[strips, width * 8])?,
            },
        })
    }
}

/// ρ ← Fᴴ d.
pub(super) fn adjoint<R: Real>(
    cuda: &Cuda,
    chosen: Chosen<'_>,
    trajectory: &Trajectory,
    grid: &Grid,
    samples: &Array<Complex<R>>,
    image: &mut Array<Complex<R>>,
) -> Result<()> {
    let Chosen { variant, config } = chosen;
    variant.expect_for::<R>()?;
    let device = samples.device().clone();
    let work = Work::new(cuda, &device, trajectory)?;
    let batch = grid.batch(image.len());
    match variant {
        CudaVariant::Naive => {
            let launch = blocks_of(value(config, "threads", 128)?, grid.points(), batch, 1)?;
            work.naive("adjoint", grid, launch, samples, image)
        }
        CudaVariant::Constant | CudaVariant::Fixed | CudaVariant::Sfu | CudaVariant::Tuned => {
            work.pieces(variant, config, grid, samples, image)
        }
        CudaVariant::Separable | CudaVariant::Double | CudaVariant::Tensor | CudaVariant::Wgmma => {
            work.product(chosen, &Target::of(grid), batch, samples, image)
        }
    }
}

/// d ← F ρ: from the formula.
pub(super) fn forward<R: Real>(
    cuda: &Cuda,
    config: &Config,
    trajectory: &Trajectory,
    grid: &Grid,
    image: &Array<Complex<R>>,
    samples: &mut Array<Complex<R>>,
) -> Result<()> {
    let device = image.device().clone();
    let work = Work::new(cuda, &device, trajectory)?;
    let batch = grid.batch(image.len());
    let launch = blocks_of(value(config, "threads", 128)?, work.samples, batch, 1)?;
    work.naive("forward", grid, launch, image, samples)
}

/// Q of `matrix`. Missing weights count as 1.
pub(super) fn q<R: Real>(
    cuda: &Cuda,
    chosen: Chosen<'_>,
    trajectory: &Trajectory,
    matrix: &[usize],
    weights: Option<View<'_, R>>,
    out: &mut Array<Complex<R>>,
) -> Result<()> {
    let variant = chosen.variant;
    variant.expect_for::<R>()?;
    let device = out.device().clone();
    let count = trajectory.samples();
    let mut d = Array::<Complex<R>>::zeros(&device, &[count])?;
    match weights {
        Some(weights) => {
            let arguments = &mut [weights.into(), (count as u64).into(), d.cuda_mut().into()];
            // SAFETY: `run_q` found a weight for each sample.
            unsafe {
                cuda.kernel(&TABLES, &[define::<R>()], "widen")?.launch(over(count, 1, 1)?, arguments)
            }?;
        }
        None => d.fill(Complex::from(R::one()))?,
    }
    let grid = Grid::displacements(matrix)?;
    if !matches!(
        variant,
        CudaVariant::Separable | CudaVariant::Double | CudaVariant::Tensor | CudaVariant::Wgmma
    ) {
        return adjoint(cuda, chosen, trajectory, &grid, &d, out);
    }
    let work = Work::new(cuda, &device, trajectory)?;
    for target in faces(&grid) {
        work.product(chosen, &target, 1, &d, out)?;
    }
    let lead = 3 - matrix.len();
    let mut arguments = vec![out.cuda_mut().into()];
    for axis in 0..3 {
        arguments.push(int(if axis < lead { 0 } else { grid.axes[axis].n })?);
    }
    arguments.push(int(lead)?);
    let kernel = cuda.kernel(&TABLES, &[define::<R>()], "mirror")?;
    // SAFETY: `run_q` found all displacements of the matrix in `out`.
    unsafe { kernel.launch(over(grid.points(), 1, 1)?, &mut arguments) }
}

fn int(n: usize) -> Result<Argument<'static>> {
    i32::try_from(n)
        .map(Argument::from)
        .map_err(|_| Error::value("NUDFT size", format!("at most {}", i32::MAX), n))
}

/// A thread for each of `items`, and further axes of blocks.
fn over(items: usize, y: usize, z: usize) -> Result<Launch> {
    blocks_of(THREADS as u32, items, y, z)
}

/// [`over`] in blocks of `threads` threads.
fn blocks_of(threads: u32, items: usize, y: usize, z: usize) -> Result<Launch> {
    let blocks = [items.div_ceil(threads.max(1) as usize), y, z].map(u32::try_from);
    match blocks {
        [Ok(x), Ok(y), Ok(z)] => Ok(Launch { blocks: [x, y, z], threads: [threads, 1, 1], shared: 0 }),
        _ => Err(Error::value("NUDFT size", "a number of blocks of at most 32 bits", items)),
    }
}
