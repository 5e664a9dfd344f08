#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{C32, C64, Error, Result, expect_len};
use rayspin_device::cuda::{Argument, Define, Launch, Source};
use rayspin_device::{Array, Cuda, Device};
use rayspin_tune::Build;

use super::{DEFAULT_RADIUS, Problem, pairs};
use crate::cuda::{define, single};

static SOURCE: Source =
    Source { name: "walsh", files: &[crate::cuda::TEAM, ("walsh.cu", include_str!("cuda/walsh.cu"))] };
static WINDOWS: Source = Source {
    name: "walsh_windows",
    files: &[crate::cuda::TEAM, ("windows.cu", include_str!("cuda/windows.cu"))],
};

pub(crate) fn builds() -> Vec<Build> {
    // On compute capabilities 8.0 and 12.0 the compiler has one register too few.
    let windows =
        |(radius, planes)| Build { source: &WINDOWS, defines: window(radius, planes), spill_bytes: 8 };
    let forms = [(DEFAULT_RADIUS, 1), (DEFAULT_RADIUS, 2), (MOST_RADIUS, 2)];
    [single(&SOURCE), forms.map(windows).to_vec()].concat()
}

/// The window's half-width. A window wider than the image has the same sums as one that just covers it. Small
/// images use the default form, which is precompiled.
fn reach(problem: &Problem) -> usize {
    let covering = problem.shape_zyx.into_iter().max().map_or(0, |n| n.saturating_sub(1));
    problem.radius.min(covering.max(DEFAULT_RADIUS))
}

/// The form for windows of half-width `radius` in an image of `planes` planes.
fn window(radius: usize, planes: usize) -> Vec<Define> {
    let side = 2 * radius + 1;
    let deep = if planes > 1 { side } else { 1 };
    vec![define::<f32>(), ("SIDE", side.to_string()), ("DEEP", deep.to_string())]
}

const THREADS: usize = 128;
/// `TILE` of walsh.cu.
const TILE: usize = 32;
/// `THREADS`, `COLUMNS` and `ROWS` of windows.cu.
const WINDOW_THREADS: usize = 256;
const COLUMNS: usize = 58;
const ROWS: usize = 16;
/// The unfinished sums of wider windows do not fit in registers, in 3-D.
const MOST_RADIUS: usize = 6;
/// Blocks of the sum over the whole image at most; with the number of voxels they fix its bits.
const BLOCKS: usize = 256;
/// Bytes of the windows' sums that are in memory at once: a quarter of the images, within these bounds. A
/// chunk has at least a row. The next chunk along z adds up 2·radius planes again.
const CHUNK_BYTES: [usize; 2] = [256 << 20, 1 << 30];
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
    if reach(problem) > MOST_RADIUS {
        return Some(format!("a window of more than {} voxels", 2 * MOST_RADIUS + 1));
    }
    // Tiles and rows are counted in 32 bits.
    let most = i32::MAX as usize / 2;
    (ny.saturating_mul(nx) > most || nz > most).then(|| "more than 2³⁰ voxels a plane".to_owned())
}

/// Whether the kernels for a problem that they do not refuse can be loaded.
pub(super) fn offers(cuda: &Cuda, problem: &Problem) -> bool {
    cuda.offers(&WINDOWS, &window(reach(problem), problem.shape_zyx[0]))
}

/// The part of the windows' sums that is in memory at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chunk {
    planes: usize,
    rows: usize,
}

impl Chunk {
    /// As many planes as fit with the rows of a tile, then rows.
    fn new(problem: &Problem) -> Self {
        let ([_, ny, _], [_, wanted]) = (problem.shape_zyx, problem.planes);
        let (row, most) = (row_bytes(problem), chunk_bytes(problem));
        let planes = (most / (row * ROWS.min(ny)).max(1)).clamp(1, wanted);
        let rows = (most / (row * planes).max(1)).clamp(1, ny);
        let rows = if rows > ROWS && rows < ny { rows / ROWS * ROWS } else { rows };
        Self { planes, rows }
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
    // Chunks of fewer planes may have more rows, up to this bound.
    let row = row_bytes(problem);
    let chunks = chunk_bytes(problem).max(row).min(row * problem.planes[1] * problem.shape_zyx[1]);
    (problem.coils * size_of::<C32>() + whole.max(chunks)) as u64
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
    // SAFETY: the images have `voxels` elements a coil; a block has a sum of its own for each pair, and a
    // tile of shared memory.
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

/// Sums of products over the windows of a chunk of voxels at a time, then a team of lanes for each voxel.
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
    maps_by(cuda, problem, images, reference, maps, Chunk::new(problem))
}

/// [`maps`] of images and maps of the problem's size, which the kernels take, in chunks that fit it.
fn maps_by(
    cuda: &Cuda,
    problem: &Problem,
    images: &Array<C32>,
    reference: &Array<C32>,
    maps: &mut Array<C32>,
    chunk: Chunk,
) -> Result<()> {
    let [nz, ny, nx] = problem.shape_zyx;
    let [first_plane, wanted] = problem.planes;
    let coils = problem.coils;
    let (voxels, solved) = (nz * ny * nx, problem.voxels());
    let (walsh, windows) = ([define::<f32>()], window(reach(problem), nz));
    let (pairs, count) = (pairs(coils), Argument::count(coils)?);
    let int = |value: usize| Argument::from(value as i32);
    let mut sums = Array::<C32>::zeros(images.device(), &[pairs, chunk.planes, chunk.rows, nx])?;
    let (tile, team) = tile_and_team(coils);
    let shared = entries(coils) * (tile | 1) * size_of::<C32>();
    for z in (first_plane..first_plane + wanted).step_by(chunk.planes) {
        let planes = chunk.planes.min(first_plane + wanted - z);
        for y in (0..ny).step_by(chunk.rows) {
            let rows = chunk.rows.min(ny - y);
            let tiles = nx.div_ceil(COLUMNS) * rows.div_ceil(ROWS);
            let shape = Launch {
                blocks: [tiles as u32, pairs as u32, 1],
                ..Launch::linear(1, WINDOW_THREADS as u32)
            };
            let arguments = &mut [
                images.cuda().into(),
                (voxels as u64).into(),
                int(nz),
                int(ny),
                int(nx),
                int(z),
                int(planes),
                int(y),
                int(rows),
                sums.cuda_mut().into(),
            ];
            // SAFETY: `maps` checked the images' length. The kernel clamps x and y to the image, and reads
            // planes below `nz` only. It writes pairs · planes · rows · nx sums, at most what `sums` holds,
            // two at once only if nx is even.
            unsafe { cuda.kernel(&WINDOWS, &windows, "windows")?.launch(shape, arguments) }?;
            let inner = rows * nx;
            let shape =
                Launch::linear((planes * inner).div_ceil(tile) as u32, THREADS as u32).with_shared(shared);
            let arguments = &mut [
                sums.cuda().into(),
                reference.cuda().into(),
                maps.cuda_mut().into(),
                count,
                (solved as u64).into(),
                Argument::count(inner)?,
                ((planes * inner) as u64).into(),
                (((z - first_plane) * ny + y) as u64 * nx as u64).into(),
                ((ny * nx) as u64).into(),
                Argument::count(tile)?,
                Argument::count(team)?,
            ];
            // SAFETY: the chunk's sums are there; the chunk has rows and planes of the maps, which have
            // `solved` elements a coil; and shared memory holds a tile.
            unsafe { cuda.kernel(&SOURCE, &walsh, "solve")?.launch(shape, arguments) }?;
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
    fn chunks_fit() {
        for (coils, shape_zyx, radius) in [
            (8, [128, 128, 128], 3),
            (32, [256, 256, 256], 3),
            (128, [64, 300, 320], 3),
            (12, [1, 512, 512], 3),
            (32, [127, 128, 128], 3),
            (32, [127, 63, 63], 3),
            (156, [5, 4000, 4000], 6),
            (4, [3, 2, 2], 40),
            (2, [70_000, 1, 1], 3),
        ] {
            let problem = Problem::whole(coils, shape_zyx, radius);
            assert_eq!(refuses(&problem), None);
            let chunk = Chunk::new(&problem);
            let [nz, ny, _] = shape_zyx;
            assert!((1..=nz).contains(&chunk.planes) && (1..=ny).contains(&chunk.rows));
            // A slab of fewer planes takes no more than is stated for this one.
            let stated = scratch_bytes(&problem);
            for planes in [nz, nz - nz / 8, nz / 2 + 1, 1] {
                let slab = Problem { planes: [0, planes], ..problem };
                let chunk = Chunk::new(&slab);
                let taken = (row_bytes(&slab) * chunk.rows * chunk.planes) as u64;
                assert!(taken <= stated, "{slab:?}: {taken} of {stated}");
            }
        }
        let many = Problem::whole(157, [1, 8, 8], 3);
        let long = Problem::whole(2, [1, 8, 900], 9);
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
            let by_planes = |wanted: [usize; 2], planes: usize, rows: usize| {
                let problem = Problem { planes: wanted, ..problem };
                let mut found = Array::zeros(device, &[3, wanted[1], 21, 5]).unwrap();
                found.fill(C32::new(f32::NAN, f32::NAN)).unwrap();
                let chunk = Chunk { planes, rows };
                maps_by(cuda, &problem, &images, &reference, &mut found, chunk).unwrap();
                found.to_vec().unwrap()
            };
            let by = |planes, rows| by_planes([0, 9], planes, rows);
            let whole = by(9, 21);
            assert!(whole == by(1, 1) && whole == by(4, 17) && whole == by(9, 20));
            let plane = 21 * 5;
            let part: Vec<C32> =
                (0..3).flat_map(|coil| whole[(9 * coil + 2) * plane..][..5 * plane].to_vec()).collect();
            assert!(part == by_planes([2, 5], 5, 21) && part == by_planes([2, 5], 2, 16));
        }
    }
}
