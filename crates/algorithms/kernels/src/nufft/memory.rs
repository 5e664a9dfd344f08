//! The memory and work of a plan, before it is made.

use num_complex::Complex;
use rayspin_core::{Real, Result, Trajectory};
use rayspin_device::{Backend, Device};

use super::cpu::group::items;
use super::cpu::points::slab_starts;
use super::cpu::{Gridding, halo_len, records};
use super::kernel::Kernel;
use super::layout::Layout;
use super::{Nufft, Options, Problem, check_matrix, cuda};
use crate::fft;
use crate::variant::Work;

/// Bytes and work of a plan and its transforms. Bytes refer to the memory of the plan's device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Bytes that the plan holds: places, arguments and order of the points, deconvolution factors.
    pub plan: u64,
    /// Peak bytes while the plan is made, including `plan`.
    pub planning: u64,
    /// Bytes of the fine grid and the spreading buffers, held from the first transform on.
    pub workspace: u64,
    /// Additional bytes for the items of a batch that type 2 takes together, held from the first such batch
    /// on. 0 in 1-D and 3-D.
    pub group: u64,
    /// Bytes of workspace for each further item of a batch, and the maximum number of items at once. 0 on the
    /// CPU.
    pub item: (u64, usize),
    /// Work of one transform of one item, either direction.
    pub transform: Work,
    /// Work of one spreading or one interpolation.
    pub spreading: Work,
}

impl Cost {
    /// Bytes of workspace for the transforms of a batch, held from the first one on.
    pub fn batch(&self, items: usize) -> u64 {
        let (each, most) = self.item;
        let items = items.max(1);
        self.workspace + each * (items.div_ceil(items.div_ceil(most.max(1))) as u64 - 1)
    }
}

impl<R: Real> Nufft<R> {
    /// The memory and work of a plan that [`Nufft::new`] would make. Reads the trajectory once, to count the
    /// points of each tile or slab of tiles.
    ///
    /// Errors: as [`Nufft::new`].
    pub fn needs(
        device: &Device,
        trajectory: &Trajectory,
        matrix: &[usize],
        options: &Options,
    ) -> Result<Cost> {
        check_matrix(trajectory.dims(), matrix)?;
        let (upsampling, kernel) = options.settle::<R>(device, matrix, trajectory.samples())?;
        needs_of::<R>(device, trajectory, matrix, upsampling, &kernel)
    }
}

/// The memory and work of a plan with this kernel.
pub(crate) fn needs_of<R: Real>(
    device: &Device,
    trajectory: &Trajectory,
    matrix: &[usize],
    upsampling: f64,
    kernel: &Kernel,
) -> Result<Cost> {
    let layout = Layout::new::<R>(matrix, upsampling, kernel)?;
    let samples = trajectory.samples();
    let cells: usize = layout.fine.iter().product();
    let tiles: usize = layout.tiles.iter().product();
    let complex = size_of::<Complex<R>>() as u64;
    let points = records::bytes::<R>(samples, layout.dims) + 4 * (tiles as u64 + 1);
    // Axes that a transform lacks have a factor, 1.
    let factors = (matrix.iter().sum::<usize>() + layout.outer()) * size_of::<R>();
    let problem = Problem {
        points: samples,
        dims: layout.dims,
        width: kernel.width,
        cells,
        real_bytes: size_of::<R>(),
    };
    let spreading = super::variants::work(&problem);
    let fft = fft::work(&fft::Problem { shape: layout.fine[layout.outer()..].to_vec(), batch: 1 });
    let image: usize = matrix.iter().product();
    let transform = Work {
        bytes: spreading.bytes + fft.bytes + (image as u64 * complex) as f64,
        flops: spreading.flops + fft.flops + 3.0 * image as f64,
    };
    if let Backend::Cuda(cuda) = device.backend() {
        let on = cuda::PlanBytes::new::<R>(trajectory, matrix, &layout, kernel, cuda.properties());
        let (plan, planning, item) = (on.plan, on.planning, (on.item, on.items()));
        return Ok(Cost { plan, planning, workspace: on.item, group: 0, item, transform, spreading });
    }
    let parts = layout.parts(&slab_starts(&layout, trajectory, matrix), Gridding::<R>::part_points(samples));
    let plan = points + factors as u64;
    Ok(Cost {
        plan,
        planning: plan,
        workspace: complex * (cells + halo_len(&layout, &parts)) as u64,
        group: group_bytes::<R>(layout.dims, cells, samples),
        item: (0, 1),
        transform,
        spreading,
    })
}

/// Bytes that items taken together need in addition to a single item: their fine grids, and their interleaved
/// samples.
pub(super) fn group_bytes<R: Real>(dims: usize, cells: usize, samples: usize) -> u64 {
    let items = items::<R>(dims);
    if items == 1 {
        return 0;
    }
    (((items - 1) * cells + items * samples) * size_of::<Complex<R>>()) as u64
}
