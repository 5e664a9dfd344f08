use rayspin_core::{C32, Error, Result};
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_device::{Array, Cuda};

use super::{Interpolation, Problem};
use crate::cuda::define;

pub(crate) static SOURCE: Source =
    Source { name: "grappa", files: &[("grappa.cu", include_str!("cuda/grappa.cu"))] };

const THREADS: usize = 128;
/// `TARGETS` of the source.
const TARGETS: usize = 4;

fn int(value: usize) -> Result<Argument<'static>> {
    i32::try_from(value)
        .map(Argument::from)
        .map_err(|_| Error::value("k-space", "axes of at most 2³¹ − 1 samples", value))
}

/// Where the lines lie, in the GPU's memory.
fn targets(by: &Interpolation, kspace: &Array<C32>) -> Result<Array<[u32; 2]>> {
    let lines: Vec<[u32; 2]> = by.lines.iter().map(|line| line.map(|i| i as u32)).collect();
    Array::from_vec(kspace.device(), &[lines.len()], lines)
}

/// One line of four coils a block.
pub(super) fn lines(
    cuda: &Cuda,
    problem: &Problem,
    by: &Interpolation,
    kspace: &Array<C32>,
    out: &mut Array<C32>,
) -> Result<()> {
    let Problem { coils, shape_zyx: [nz, ny, nx] } = *problem;
    if out.is_empty() {
        return Ok(());
    }
    // A step that an `i32` cannot hold leads out of every grid: so does the largest.
    let step = |s: isize| i32::try_from(s).unwrap_or(i32::MAX / 2).clamp(-i32::MAX / 2, i32::MAX / 2);
    let sources: Vec<[i32; 4]> = by.sources.iter().map(|&[z, y, x]| [step(z), step(y), step(x), 0]).collect();
    let device = kspace.device();
    let sources = Array::from_vec(device, &[sources.len()], sources)?;
    let weights = Array::from_slice(device, &[by.weights.len()], &by.weights)?;
    let tiles = nx.div_ceil(THREADS);
    let blocks = by.lines.len() * tiles;
    let blocks = u32::try_from(blocks).map_err(|_| Error::value("GRAPPA lines", "2³² blocks", blocks))?;
    cuda.kernel(&SOURCE, &[define::<f32>()], "lines")?.launch(
        Launch { blocks: [blocks, coils.div_ceil(TARGETS) as u32, 1], ..Launch::linear(1, THREADS as u32) },
        &mut [
            kspace.cuda().into(),
            sources.cuda().into(),
            weights.cuda().into(),
            targets(by, kspace)?.cuda().into(),
            Argument::count(coils)?,
            Argument::count(by.sources.len())?,
            int(nz)?,
            int(ny)?,
            int(nx)?,
            Argument::count(tiles)?,
            out.cuda_mut().into(),
        ],
    )
}

/// Writes lines `[line, coil, x]` to k-space.
pub(super) fn place(
    cuda: &Cuda,
    problem: &Problem,
    by: &Interpolation,
    out: &Array<C32>,
    kspace: &mut Array<C32>,
) -> Result<()> {
    let Problem { coils, shape_zyx: [nz, ny, nx] } = *problem;
    let elements = by.lines.len() * coils * nx;
    if elements == 0 {
        return Ok(());
    }
    let targets = targets(by, kspace)?;
    cuda.kernel(&SOURCE, &[define::<f32>()], "place")?.launch(
        Launch::covering(elements, THREADS as u32),
        &mut [
            out.cuda().into(),
            targets.cuda().into(),
            Argument::count(coils)?,
            (elements as u64).into(),
            int(nz)?,
            int(ny)?,
            int(nx)?,
            kspace.cuda_mut().into(),
        ],
    )
}
