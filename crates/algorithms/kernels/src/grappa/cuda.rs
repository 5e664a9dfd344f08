#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{C32, Error, Result, expect_len};
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::{Interpolation, Problem};
use crate::cuda::{define, single};

static SOURCE: Source = Source { name: "grappa", files: &[("grappa.cu", include_str!("cuda/grappa.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    single(&SOURCE)
}

const THREADS: usize = 128;
/// `TARGETS` of the source.
const TARGETS: usize = 4;

/// Samples of an axis at most: the threads of the last block count beyond it in 32 bits.
const MOST: usize = i32::MAX as usize - THREADS;

fn int(value: usize) -> Result<Argument<'static>> {
    match i32::try_from(value) {
        Ok(int) if value <= MOST => Ok(int.into()),
        _ => Err(Error::value("k-space", format!("axes of at most {MOST} samples"), value)),
    }
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
    expect_len("k-space", &[coils, nz, ny, nx], kspace.len())?;
    expect_len("GRAPPA weights", &[coils, coils, by.sources.len()], by.weights.len())?;
    expect_len("GRAPPA lines", &[by.lines.len(), coils, nx], out.len())?;
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
    let targets = targets(by, kspace)?;
    let shape =
        Launch { blocks: [blocks, coils.div_ceil(TARGETS) as u32, 1], ..Launch::linear(1, THREADS as u32) };
    let arguments = &mut [
        kspace.cuda().into(),
        sources.cuda().into(),
        weights.cuda().into(),
        targets.cuda().into(),
        Argument::count(coils)?,
        Argument::count(by.sources.len())?,
        int(nz)?,
        int(ny)?,
        int(nx)?,
        Argument::count(tiles)?,
        out.cuda_mut().into(),
    ];
    // SAFETY: k-space, weights and lines have the sizes that are given; sources outside the grid are passed
    // over, and a block has a line that is listed.
    unsafe { cuda.kernel(&SOURCE, &[define::<f32>()], "lines")?.launch(shape, arguments) }
}

/// Writes lines `[line, coil, x]`, all of them within k-space, to it.
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
    let arguments = &mut [
        out.cuda().into(),
        targets.cuda().into(),
        Argument::count(coils)?,
        (elements as u64).into(),
        int(nz)?,
        int(ny)?,
        int(nx)?,
        kspace.cuda_mut().into(),
    ];
    let shape = Launch::covering(elements, THREADS as u32);
    // SAFETY: `fill` found every line within k-space, whose shape this is, and made `out` for these lines.
    unsafe { cuda.kernel(&SOURCE, &[define::<f32>()], "place")?.launch(shape, arguments) }
}
