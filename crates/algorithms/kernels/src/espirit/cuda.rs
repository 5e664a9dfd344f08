#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{C32, Error, Result, expect_len};
use rayspin_device::cuda::{Argument, Define, Launch, Source};
use rayspin_device::{Array, Cuda};

use super::{MAX_SETS, Problem};
use rayspin_tune::Build;

use crate::cuda::define;

static SOURCE: Source =
    Source { name: "espirit", files: &[crate::cuda::TEAM, ("espirit.cu", include_str!("cuda/espirit.cu"))] };

const THREADS: usize = 128;
/// Bytes of the rows' sums that are in memory at once, where that is more than a row.
const CHUNK_BYTES: usize = 64 << 20;
/// Bytes of shared memory that a tile of voxels takes, where there is a choice.
const TILE_BYTES: usize = 48 << 10;
/// Bytes of shared memory that every GPU of compute capability 8 and later gives a block.
const SHARED: usize = 99 << 10;

fn pairs(problem: &Problem) -> usize {
    problem.coils * (problem.coils + 1) / 2
}

/// Vectors iterated: one beyond those wanted makes the last of them converge too.
fn block(problem: &Problem) -> usize {
    (problem.sets + 1).min(problem.coils)
}

fn lags(problem: &Problem) -> [usize; 3] {
    problem.reach_zyx.map(|h| 2 * h + 1)
}

/// Bytes of shared memory of a tile of `tile` voxels.
fn tile_bytes(problem: &Problem, tile: usize) -> usize {
    let entries = (pairs(problem) + 2 * block(problem) * problem.coils) * (tile | 1);
    (entries + lags(problem)[2] * tile) * size_of::<C32>()
}

/// Voxels of a block.
fn tile(problem: &Problem) -> usize {
    [32, 16, 8, 4, 2].into_iter().find(|&tile| tile_bytes(problem, tile) <= TILE_BYTES).unwrap_or(1)
}

/// Why the kernels cannot run a problem.
pub(super) fn refuses(problem: &Problem) -> Option<String> {
    if tile_bytes(problem, 1) > SHARED || lags(problem).iter().any(|&n| n * size_of::<C32>() > SHARED) {
        return Some("more coils or lags than a block's shared memory has room for".to_owned());
    }
    // Rows and lags are counted in 32 bits, and blocks along one axis.
    let [nz, ny, nx] = problem.shape_zyx;
    let [_, ly, lx] = lags(problem);
    let counted = nz.saturating_mul(ny).saturating_mul(nx.div_ceil(tile(problem))).max(nx);
    (counted > i32::MAX as usize || ly.saturating_mul(lx).saturating_mul(pairs(problem)) > i32::MAX as usize)
        .then(|| "more than 2³¹ rows of voxels or lags of pairs".to_owned())
}

/// Rows of voxels whose sums are in memory at once.
fn rows_at_once(problem: &Problem) -> usize {
    let rows = problem.planes[1] * problem.shape_zyx[1];
    let row = lags(problem)[2] * pairs(problem) * size_of::<C32>();
    (CHUNK_BYTES / row.max(1)).clamp(1, rows.max(1))
}

/// Planes that `rows` rows may lie in.
fn planes_of(problem: &Problem, rows: usize) -> usize {
    let ([_, ny, _], [_, planes]) = (problem.shape_zyx, problem.planes);
    (rows.div_ceil(ny.max(1)) + 1).min(planes).min(rows.max(1))
}

/// Bytes that [`maps`] takes beside correlation and maps.
pub(super) fn scratch_bytes(problem: &Problem) -> u64 {
    let [_, ly, lx] = lags(problem);
    let rows = rows_at_once(problem);
    ((rows + planes_of(problem, rows) * ly) * lx * pairs(problem) * size_of::<C32>()) as u64
}

fn defines(block: usize) -> Vec<Define> {
    vec![define::<f32>(), ("BLOCK", block.to_string())]
}

/// The programs of all numbers of sets.
pub(crate) fn builds() -> Vec<Build> {
    let build = |block| Build { source: &SOURCE, defines: defines(block), spill_bytes: 0 };
    (1..=MAX_SETS + 1).map(build).collect()
}

/// Lags summed along z for some planes, along y for their rows, along x for a tile of voxels in shared
/// memory; there a team of lanes iterates for each voxel.
pub(super) fn maps(
    cuda: &Cuda,
    problem: &Problem,
    correlation: &Array<C32>,
    phase: &Array<C32>,
    maps: &mut Array<C32>,
) -> Result<()> {
    maps_by(cuda, problem, correlation, phase, maps, rows_at_once(problem))
}

fn maps_by(
    cuda: &Cuda,
    problem: &Problem,
    correlation: &Array<C32>,
    phase: &Array<C32>,
    maps: &mut Array<C32>,
    rows_at_once: usize,
) -> Result<()> {
    let ([nz, ny, nx], [begin, wanted]) = (problem.shape_zyx, problem.planes);
    let (coils, sets) = (problem.coils, problem.sets);
    problem.expect_planes()?;
    if coils == 0 || sets == 0 || sets > MAX_SETS.min(coils) {
        return Err(Error::value("sets of maps", format!("1 to {}", MAX_SETS.min(coils)), sets));
    }
    expect_len("phase of coils", &[coils], phase.len())?;
    expect_len("maps", &[sets, coils, wanted, ny, nx], maps.len())?;
    // Beyond this no array has as many lags.
    let reach = problem.reach_zyx.into_iter().max().unwrap_or(0);
    if reach > i32::MAX as usize {
        return Err(Error::value("lags of coils", "at most 2³¹ along an axis", reach));
    }
    let [lz, ly, lx] = lags(problem);
    expect_len("correlation of coils", &[coils, coils, lz, ly, lx], correlation.len())?;
    if let Some(reason) = refuses(problem) {
        return Err(Error::value("correlation of coils", "a problem that the GPU's kernels take", reason));
    }
    if problem.voxels() == 0 {
        return Ok(());
    }
    let device = correlation.device();
    let defines = defines(block(problem));
    let kernel = |name: &str| cuda.kernel(&SOURCE, &defines, name);
    let int = |value: usize| Argument::from(value as i32);
    // The assembler unrolls the loop and reads ahead in fours; without padding memcheck reports a read past a
    // single lag.
    let shared = |lags: usize| lags.next_multiple_of(4) * size_of::<C32>();
    let pairs = pairs(problem);
    let (all_rows, items) = (wanted * ny, lx * pairs);
    let most = planes_of(problem, rows_at_once);
    let mut by_plane = Array::<C32>::zeros(device, &[most, ly, items])?;
    let mut by_row = Array::<C32>::zeros(device, &[rows_at_once, items])?;
    let tile = tile(problem);
    let tiles = nx.div_ceil(tile);
    let team = problem.coils.next_power_of_two().min(32);
    for first in (0..all_rows).step_by(rows_at_once) {
        let rows = rows_at_once.min(all_rows - first);
        let first_plane = begin + first / ny;
        let planes = begin + (first + rows - 1) / ny + 1 - first_plane;
        for from in (0..planes).step_by(65535) {
            let some = (planes - from).min(65535);
            let mut out = by_plane.cuda_mut();
            let out = out.part(from * ly * items, some * ly * items);
            let out = out.ok_or_else(|| {
                Error::shape("planes of lags", &[planes * ly * items], &[most * ly * items])
            })?;
            let shape = Launch {
                blocks: [(ly * items).div_ceil(THREADS) as u32, some as u32, 1],
                ..Launch::linear(1, THREADS as u32).with_shared(shared(lz))
            };
            let arguments = &mut [
                correlation.cuda().into(),
                int(lz),
                int(ly * lx),
                int(nz),
                int(first_plane + from),
                Argument::count(pairs)?,
                Argument::count(coils)?,
                out.into(),
            ];
            // SAFETY: the correlation has all lags of all pairs; a plane's lags of all pairs are written for
            // `some` planes.
            unsafe { kernel("planes")?.launch(shape, arguments) }?;
        }
        let shape = Launch {
            blocks: [rows as u32, items.div_ceil(4 * THREADS).min(65535) as u32, 1],
            ..Launch::linear(1, THREADS as u32).with_shared(shared(ly))
        };
        let arguments = &mut [
            by_plane.cuda().into(),
            int(ly),
            Argument::count(items)?,
            int(ny),
            Argument::count(begin * ny + first)?,
            Argument::count(first_plane)?,
            by_row.cuda_mut().into(),
        ];
        // SAFETY: `rows` rows lie in the `planes_of` planes from the first one on.
        unsafe { kernel("rows")?.launch(shape, arguments) }?;
        let shape =
            Launch::linear((rows * tiles) as u32, THREADS as u32).with_shared(tile_bytes(problem, tile));
        let arguments = &mut [
            by_row.cuda().into(),
            phase.cuda().into(),
            maps.cuda_mut().into(),
            Argument::count(coils)?,
            Argument::count(sets)?,
            Argument::real(problem.crop),
            int(lx),
            int(nx),
            (first as u64).into(),
            (problem.voxels() as u64).into(),
            Argument::count(tiles)?,
            Argument::count(tile)?,
            Argument::count(team)?,
        ];
        // SAFETY: sums of `rows` rows are there, a number for each coil, and every voxel of every map; shared
        // memory holds a tile. No more than BLOCK vectors become maps.
        unsafe { kernel("solve")?.launch(shape, arguments) }?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rayspin_device::Backend;

    use super::*;
    use crate::espirit::tests::{correlation, phase, problems};

    #[test]
    fn however_the_volume_is_cut_the_bits_are_the_same() {
        let problem = Problem { shape_zyx: [3, 7, 35], planes: [0, 3], ..problems()[4] };
        for device in crate::cuda::gpus() {
            let Backend::Cuda(cuda) = device.backend() else { panic!("expected a GPU") };
            let q = correlation(&problem, 9);
            let [lz, ly, lx] = lags(&problem);
            let q = Array::from_vec(device, &[5, 5, lz, ly, lx], q).unwrap();
            let phase = Array::from_vec(device, &[5], phase(5)).unwrap();
            let by = |rows: usize| {
                let mut found = Array::zeros(device, &[1, 5, 3, 7, 35]).unwrap();
                found.fill(C32::new(f32::NAN, f32::NAN)).unwrap();
                maps_by(cuda, &problem, &q, &phase, &mut found, rows).unwrap();
                found.to_vec().unwrap()
            };
            let whole = by(21);
            assert!(whole == by(1) && whole == by(5) && whole == by(8) && whole == by(20));
        }
    }

    #[test]
    fn scratch_memory_is_stated_beforehand() {
        for problem in problems() {
            for device in rayspin_emu::devices().unwrap() {
                let Backend::Cuda(cuda) = device.backend() else { continue };
                let [lz, ly, lx] = lags(&problem);
                let (n, q) = (problem.coils, correlation(&problem, 2));
                let q = Array::from_vec(&device, &[n, n, lz, ly, lx], q).unwrap();
                let phase = Array::from_vec(&device, &[n], phase(n)).unwrap();
                let mut found =
                    Array::zeros(&device, &[&[problem.sets, n], &problem.shape_zyx[..]].concat()).unwrap();
                cuda.reset_peak();
                let before = cuda.memory_used().0;
                maps(cuda, &problem, &q, &phase, &mut found).unwrap();
                assert_eq!(cuda.memory_used().1 - before, scratch_bytes(&problem));
            }
        }
        let many = Problem { coils: 160, ..problems()[4] };
        assert!(refuses(&many).is_some());
    }
}
