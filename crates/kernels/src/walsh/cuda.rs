#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{C32, C64, Error, Result, expect_len};
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_device::{Array, Cuda, Device};
use rayspin_tune::Build;

use super::{Problem, pairs};
use crate::cuda::{define, single};

static SOURCE: Source =
    Source { name: "walsh", files: &[crate::cuda::TEAM, ("walsh.cu", include_str!("cuda/walsh.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    single(&SOURCE)
}

const THREADS: usize = 128;
/// `STRIP` and `TILE` of the source.
const STRIP: usize = 16;
const TILE: usize = 32;
/// Blocks of the sum over the whole image at most; with the number of voxels they fix its bits.
const BLOCKS: usize = 256;
/// Bytes of the windows' sums that are in memory at once, where the halo of a chunk leaves the choice: a quarter of the images, within
/// these bounds. The smaller a chunk, the more of it is halo: 256³ with 32 coils stores 13 planes for 7 in 256 MiB, 62 for 56 in 1 GiB.
const CHUNK_BYTES: [usize; 2] = [256 << 20, 1 << 30];
/// Planes of a chunk at most: blocks along an axis of a launch.
const MOST_PLANES: usize = 1 << 15;
/// Bytes of shared memory that a tile of voxels takes, where there is a choice.
const TILE_BYTES: usize = 48 << 10;
/// Bytes of shared memory that every GPU of compute capability 8 and later gives a block.
const SHARED: usize = 99 << 10;

/// Covariances of all pairs of coils and two vectors.
fn entries(coils: usize) -> usize {
    pairs(coils) + 2 * coils
}

/// Why the kernels refuse this number of coils, if they do.
pub(super) fn refuses_coils(coils: usize) -> Option<String> {
    (entries(coils) * size_of::<C32>() > SHARED)
        .then(|| "more coils than a block's shared memory has room for".to_owned())
}

/// Why the kernels refuse a problem, if they do.
pub(super) fn refuses(problem: &Problem) -> Option<String> {
    let [nz, ny, nx] = problem.shape_zyx;
    if let Some(reason) = refuses_coils(problem.coils) {
        return Some(reason);
    }
    if (2 * reach(problem) + 1) * THREADS * size_of::<C32>() > SHARED {
        return Some("a window longer than a block's shared memory has room for".to_owned());
    }
    // Strips, tiles and rows are counted in 32 bits.
    let most = i32::MAX as usize / 2;
    (ny.saturating_mul(nx) > most || nz > most).then(|| "more than 2³⁰ voxels a plane".to_owned())
}

/// The window's half-width, limited to the image.
fn reach(problem: &Problem) -> usize {
    problem.radius.min(problem.shape_zyx.into_iter().max().unwrap_or(1))
}

/// The part of the windows' sums that is in memory at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chunk {
    /// Planes that are solved.
    planes: usize,
    /// Planes with those that their windows reach.
    stored: usize,
    rows: usize,
}

impl Chunk {
    fn new(problem: &Problem) -> Self {
        let ([nz, ny, _], [_, wanted]) = (problem.shape_zyx, problem.planes);
        let (row, halo) = (row_bytes(problem), 2 * reach(problem));
        let most = chunk_bytes(problem);
        let fit = most / (row * ny).max(1);
        // The planes that the windows of all wanted ones reach.
        let reached = nz.min(wanted.saturating_add(halo));
        if fit >= reached && reached <= MOST_PLANES {
            return Self { planes: wanted, stored: reached, rows: ny };
        }
        // At most as many planes for the windows' sake as are solved.
        let strips = most / (row * STRIP.min(ny)).max(1);
        let stored = fit.max((2 * halo + 1).max(strips)).min(reached).min(MOST_PLANES);
        let planes = if stored == reached { wanted } else { (stored - halo.min(stored - 1)).max(1) };
        let rows = (most / (row * stored)).clamp(1, ny);
        let rows = if rows > STRIP && rows < ny { rows / STRIP * STRIP } else { rows };
        Self { planes, stored, rows }
    }

    fn bytes(&self, problem: &Problem) -> usize {
        row_bytes(problem) * self.rows * self.stored
    }
}

fn chunk_bytes(problem: &Problem) -> usize {
    let images = problem.coils * problem.shape_zyx.iter().product::<usize>() * size_of::<C32>();
    (images / 4).clamp(CHUNK_BYTES[0], CHUNK_BYTES[1])
}

/// Bytes of the sums of a row of voxels.
fn row_bytes(problem: &Problem) -> usize {
    pairs(problem.coils) * problem.shape_zyx[2] * size_of::<C32>()
}

fn blocks(voxels: usize) -> usize {
    voxels.div_ceil(8 * TILE).clamp(1, BLOCKS)
}

/// Bytes that the covariance of the whole image and, when it is gone, [`maps`] take beside images and maps.
pub(super) fn scratch_bytes(problem: &Problem) -> u64 {
    let whole = BLOCKS * pairs(problem.coils) * size_of::<C64>();
    let chunk = if problem.voxels() == 0 { 0 } else { Chunk::new(problem).bytes(problem) };
    (problem.coils * size_of::<C32>() + whole.max(chunk)) as u64
}

/// Sums of no voxels.
pub(super) fn no_sums(device: &Device, coils: usize) -> Result<Array<C64>> {
    Array::zeros(device, &[BLOCKS, pairs(coils)])
}

/// Adds Σ_x m(x) m(x)ᴴ of images `[coil, …]` to [`no_sums`].
pub(super) fn add(cuda: &Cuda, coils: usize, images: &Array<C32>, sums: &mut Array<C64>) -> Result<()> {
    let voxels = images.len() / coils;
    if voxels == 0 {
        return Ok(());
    }
    let tile = coils * (TILE + 1) * size_of::<C32>();
    let shape = Launch::linear(blocks(voxels) as u32, THREADS as u32).with_shared(tile);
    let count = Argument::count(coils)?;
    let arguments = &mut [images.cuda().into(), count, (voxels as u64).into(), sums.cuda_mut().into()];
    // SAFETY: the images have `voxels` elements a coil; a block has a sum of its own for each pair, and a tile of shared memory.
    unsafe { cuda.kernel(&SOURCE, &[define::<f32>()], "whole")?.launch(shape, arguments) }
}

/// The dominant eigenvector of the added sums.
pub(super) fn principal(cuda: &Cuda, coils: usize, sums: &Array<C64>) -> Result<Array<C32>> {
    let mut reference = Array::zeros(sums.device(), &[coils])?;
    let shape = Launch::linear(1, THREADS as u32).with_shared(entries(coils) * size_of::<C32>());
    let (blocks, count) = (Argument::count(BLOCKS)?, Argument::count(coils)?);
    let arguments = &mut [sums.cuda().into(), blocks, count, reference.cuda_mut().into()];
    // SAFETY: the sums of `BLOCKS` blocks are read, a number for each coil is written.
    unsafe { cuda.kernel(&SOURCE, &[define::<f32>()], "principal")?.launch(shape, arguments) }?;
    Ok(reference)
}

/// Sums of products over the windows' rows and columns of some planes at a time, then a team of lanes for each voxel.
pub(super) fn maps(
    cuda: &Cuda,
    problem: &Problem,
    images: &Array<C32>,
    reference: &Array<C32>,
    maps: &mut Array<C32>,
) -> Result<()> {
    let Problem { coils, shape_zyx: [nz, ny, nx], planes: [_, planes], .. } = *problem;
    problem.expect_planes()?;
    expect_len("coil images", &[coils, nz, ny, nx], images.len())?;
    expect_len("phase reference of coils", &[coils], reference.len())?;
    expect_len("maps", &[coils, planes, ny, nx], maps.len())?;
    if let Some(reason) = refuses(problem) {
        return Err(Error::value("coil images", "a problem that the GPU's kernels take", reason));
    }
    if maps.is_empty() {
        return Ok(());
    }
    maps_by(cuda, problem, (images, reference), maps, Chunk::new(problem))
}

/// [`maps`] of images and maps of the problem's size, which the kernels take, in chunks that fit it.
fn maps_by(
    cuda: &Cuda,
    problem: &Problem,
    (images, reference): (&Array<C32>, &Array<C32>),
    maps: &mut Array<C32>,
    chunk: Chunk,
) -> Result<()> {
    let [nz, ny, nx] = problem.shape_zyx;
    let [first_plane, wanted] = problem.planes;
    let coils = problem.coils;
    let (voxels, solved) = (nz * ny * nx, problem.voxels());
    let device = images.device();
    let defines = [define::<f32>()];
    let kernel = |name: &str| cuda.kernel(&SOURCE, &defines, name);
    let (pairs, count) = (pairs(coils), Argument::count(coils)?);
    let radius = reach(problem);
    let int = |value: usize| Argument::from(value as i32);
    let mut sums = Array::<C32>::zeros(device, &[pairs, chunk.stored, chunk.rows, nx])?;
    let (tile, team) = tile_and_team(coils);
    let shared = entries(coils) * (tile | 1) * size_of::<C32>();
    let ring = (2 * radius + 1) * THREADS * size_of::<C32>();
    for z in (first_plane..first_plane + wanted).step_by(chunk.planes) {
        let planes = chunk.planes.min(first_plane + wanted - z);
        let first = z.saturating_sub(radius);
        let stored = (z + planes + radius).min(nz) - first;
        for y in (0..ny).step_by(chunk.rows) {
            let rows = chunk.rows.min(ny - y);
            let items = nx * rows.div_ceil(STRIP);
            let shape = Launch {
                blocks: [items.div_ceil(THREADS) as u32, pairs as u32, stored as u32],
                ..Launch::linear(1, THREADS as u32).with_shared(ring)
            };
            let arguments = &mut [
                images.cuda().into(),
                (voxels as u64).into(),
                int(ny),
                int(nx),
                int(radius),
                int(first),
                int(stored),
                int(y),
                int(rows),
                sums.cuda_mut().into(),
            ];
            // SAFETY: planes and rows are the image's own; there is room for the sums of a chunk, and a ring of shared memory for
            // each thread.
            unsafe { kernel("windows")?.launch(shape, arguments) }?;
            let shape = Launch {
                blocks: [((rows * nx).div_ceil(tile) * planes) as u32, 1, 1],
                ..Launch::linear(1, THREADS as u32).with_shared(shared)
            };
            let arguments = &mut [
                sums.cuda().into(),
                reference.cuda().into(),
                maps.cuda_mut().into(),
                count,
                (solved as u64).into(),
                int(nz),
                int(radius),
                int(first),
                int(stored),
                int(z),
                int(planes),
                int(z - first_plane),
                Argument::count(rows * nx)?,
                ((y * nx) as u64).into(),
                ((ny * nx) as u64).into(),
                Argument::count(tile)?,
                Argument::count(team)?,
            ];
            // SAFETY: the planes that the windows reach were stored; the maps have `solved` elements a coil, and shared memory holds a
            // tile.
            unsafe { kernel("solve")?.launch(shape, arguments) }?;
        }
    }
    Ok(())
}

/// Voxels of a block, and lanes that a voxel has.
fn tile_and_team(coils: usize) -> (usize, usize) {
    let bytes = |tile: usize| entries(coils) * (tile | 1) * size_of::<C32>();
    let tile = [32, 16, 8, 4, 2].into_iter().find(|&tile| bytes(tile) <= TILE_BYTES).unwrap_or(1);
    (tile, coils.next_power_of_two().min(32))
}

#[cfg(test)]
mod tests {
    use rayspin_device::Backend;

    use super::*;
    use crate::walsh::tests::coil_images;

    #[test]
    fn chunks_fit_and_cover_the_window() {
        for (coils, shape_zyx, radius) in [
            (8, [128, 128, 128], 3),
            (32, [256, 256, 256], 3),
            (128, [64, 300, 320], 3),
            (12, [1, 512, 512], 3),
            (156, [5, 4000, 4000], 6),
            (4, [3, 2, 2], 40),
            (2, [70_000, 1, 1], 3),
        ] {
            let problem = Problem::whole(coils, shape_zyx, radius);
            assert_eq!(refuses(&problem), None);
            let chunk = Chunk::new(&problem);
            let [nz, ny, _] = shape_zyx;
            assert!(chunk.planes >= 1 && chunk.rows >= 1 && chunk.rows <= ny && chunk.stored <= nz);
            assert!(chunk.stored <= MOST_PLANES);
            assert!(chunk.stored == nz || chunk.planes + 2 * reach(&problem) <= chunk.stored);
            assert!(
                chunk.bytes(&problem) <= chunk_bytes(&problem) || chunk.rows == 1,
                "{problem:?}: {chunk:?}"
            );
        }
        let many = Problem::whole(157, [1, 8, 8], 3);
        let long = Problem::whole(2, [1, 8, 900], 70);
        assert!(refuses(&many).is_some() && refuses(&long).is_some());
    }

    #[test]
    fn however_the_volume_is_cut_the_bits_are_the_same() {
        let problem = Problem::whole(3, [9, 21, 5], 2);
        let images = coil_images(problem.coils, problem.shape_zyx, 0.3, 7);
        for device in crate::cuda::gpus() {
            let Backend::Cuda(cuda) = device.backend() else { panic!("expected a GPU") };
            let images = Array::from_slice(device, &[3, 9, 21, 5], &images).unwrap();
            let mut whole = crate::walsh::Covariance::new(device, 3).unwrap();
            whole.add(&images).unwrap();
            let reference = whole.principal().unwrap();
            let by = |planes: usize, stored: usize, rows: usize| {
                let mut found = Array::zeros(device, images.shape()).unwrap();
                found.fill(C32::new(f32::NAN, f32::NAN)).unwrap();
                let chunk = Chunk { planes, stored, rows };
                maps_by(cuda, &problem, (&images, &reference), &mut found, chunk).unwrap();
                found.to_vec().unwrap()
            };
            let whole = by(9, 9, 21);
            assert!(whole == by(1, 5, 1) && whole == by(4, 8, 17) && whole == by(9, 9, 20));
        }
    }
}
