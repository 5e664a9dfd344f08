#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use std::ops::Range;

use num_complex::Complex;
use rayspin_core::{C32, C64, Error, Real, Result};
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use crate::cuda::{both, define};

static SOURCE: Source =
    Source { name: "coil_mixing", files: &[("coil_mixing.cu", include_str!("cuda/coil_mixing.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    both(&SOURCE)
}

const THREADS: u32 = 256;
/// Coils that a thread computes at once from one read of the samples.
const ROWS: usize = 8;
/// Coils along either axis of a thread's tile of a covariance, and positions of a block.
const TILE: usize = 4;
const LANES: usize = 32;

pub(super) fn mix<R: Real>(
    cuda: &Cuda,
    matrices: &Array<Complex<R>>,
    rows: &Range<usize>,
    samples: &Array<Complex<R>>,
    out: &mut Array<Complex<R>>,
    first: usize,
) -> Result<()> {
    let (coils, positions) = (matrices.shape()[1], matrices.shape()[2]);
    let (points, stride) = (samples.len() / coils, out.len() / rows.len());
    let of_row = coils * positions;
    let matrices = matrices.cuda().part(rows.start * of_row, rows.len() * of_row).ok_or_else(|| {
        Error::value(
            "matrices of coils",
            format!("a range within 0..{}", matrices.len()),
            format!("{rows:?}"),
        )
    })?;
    let Launch { blocks: [across, ..], threads, .. } = Launch::covering(points, THREADS);
    let groups = u32::try_from(rows.len().div_ceil(ROWS))
        .map_err(|_| Error::value("coils made", "fewer than 2^19", rows.len()))?;
    let shape = Launch { blocks: [across, groups, 1], threads, ..Launch::linear(1, THREADS) };
    let arguments = &mut [
        matrices.into(),
        samples.cuda().into(),
        out.cuda_mut().into(),
        (points as u64).into(),
        Argument::count(coils)?,
        Argument::count(rows.len())?,
        (positions as u64).into(),
        (stride as u64).into(),
        (first as u64).into(),
    ];
    // SAFETY: the part has a matrix row for each coil made; `super::mix` found the points of every coil and,
    // within each row of `out`, those from `first` on.
    unsafe { cuda.kernel(&SOURCE, &[define::<R>()], "mix")?.launch(shape, arguments) }
}

pub(super) fn covariances(
    cuda: &Cuda,
    samples: &Array<C32>,
    coils: usize,
    positions: usize,
    out: &mut Array<C64>,
    add: bool,
) -> Result<()> {
    let tiles = coils.div_ceil(TILE);
    let blocks = |count: usize| {
        u32::try_from(count).map_err(|_| Error::value("coils and positions", "fewer than 2^31 pairs", count))
    };
    let pairs = blocks(tiles * (tiles + 1) / 2)?;
    let shape =
        Launch { blocks: [blocks(positions.div_ceil(LANES))?, pairs, 1], ..Launch::linear(1, THREADS) };
    let arguments = &mut [
        samples.cuda().into(),
        out.cuda_mut().into(),
        ((samples.len() / coils) as u64).into(),
        Argument::count(coils)?,
        Argument::count(positions)?,
        i32::from(add).into(),
    ];
    // SAFETY: `super::covariances` found as many points of every coil, and a matrix of all coils for each
    // position.
    unsafe { cuda.kernel(&SOURCE, &[define::<f32>()], "covariances")?.launch(shape, arguments) }
}
