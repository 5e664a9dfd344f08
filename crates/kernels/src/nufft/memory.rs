//! What a plan takes, before it is made.

use num_complex::Complex;
use rayspin_core::{Real, Result, Trajectory};

use super::cpu::group::items;
use super::cpu::points::slab_starts;
use super::cpu::{Gridding, halo_len, records};
use super::kernel::Kernel;
use super::layout::Layout;
use super::{Nufft, Options, Problem, check_matrix, choose, kernel_for};
use crate::fft;
use crate::variant::Work;

/// Bytes and work of a plan and its transforms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needs {
    /// Bytes that the plan holds: places, arguments and order of the points, deconvolution factors.
    pub plan: u64,
    /// Bytes of the fine grid and the spreading buffers, held from the first transform on.
    pub workspace: u64,
    /// Bytes more for the items of a batch that type 2 takes together, held from the first such batch on; 0 in 1-D and 3-D.
    pub group: u64,
    /// Work of one transform of one item, either direction.
    pub transform: Work,
    /// Work of one spreading or one interpolation.
    pub spreading: Work,
}

impl<R: Real> Nufft<R> {
    /// What [`Nufft::new`] would take. The trajectory is read once, to count the points of each slab of tiles.
    ///
    /// Errors: as [`Nufft::new`].
    pub fn needs(trajectory: &Trajectory, matrix: &[usize], options: &Options) -> Result<Needs> {
        check_matrix(trajectory, matrix)?;
        let (upsampling, kernel) = match options.upsampling {
            Some(upsampling) => (upsampling, kernel_for::<R>(options.tolerance, upsampling, matrix.len())?),
            None => choose::<R>(options.tolerance, matrix, trajectory.samples())?,
        };
        needs_of::<R>(trajectory, matrix, upsampling, &kernel)
    }
}

/// What a plan with this kernel takes.
pub(crate) fn needs_of<R: Real>(
    trajectory: &Trajectory,
    matrix: &[usize],
    upsampling: f64,
    kernel: &Kernel,
) -> Result<Needs> {
    let layout = Layout::new::<R>(matrix, upsampling, kernel)?;
    let samples = trajectory.samples();
    let cells: usize = layout.fine.iter().product();
    let tiles: usize = layout.tiles.iter().product();
    let parts = layout.parts(&slab_starts(&layout, trajectory, matrix), Gridding::<R>::part_points(samples));
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
    Ok(Needs {
        plan: points + factors as u64,
        workspace: complex * (cells + halo_len(&layout, &parts)) as u64,
        group: group_bytes::<R>(layout.dims, cells, samples),
        transform: Work {
            bytes: spreading.bytes + fft.bytes + (image as u64 * complex) as f64,
            flops: spreading.flops + fft.flops + 3.0 * image as f64,
        },
        spreading,
    })
}

/// Bytes that items taken together need beyond those of one: their fine grids, and their samples interleaved.
pub(super) fn group_bytes<R: Real>(dims: usize, cells: usize, samples: usize) -> u64 {
    let items = items::<R>(dims);
    if items == 1 {
        return 0;
    }
    (((items - 1) * cells + items * samples) * size_of::<Complex<R>>()) as u64
}
