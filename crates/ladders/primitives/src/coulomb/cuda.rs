#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{Argument, Define, Kernel, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config, gpu};

use super::{Data, Grid};
use rayspin_tune::blocks::expect;

const PLACE: (&str, &str) = ("place.cuh", include_str!("cuda/place.cuh"));

static SOURCE: Source =
    Source { name: "coulomb", files: &[PLACE, ("coulomb.cu", include_str!("cuda/coulomb.cu"))] };

static CONSTANT: Source =
    Source { name: "coulomb_constant", files: &[PLACE, ("constant.cu", include_str!("cuda/constant.cu"))] };

/// Atoms that constant memory holds, 16 bytes each.
const PIECE: usize = 4096;

pub(super) fn plain_forms() -> Vec<Build> {
    vec![Build::plain(&SOURCE)]
}

pub(super) fn pieces_forms() -> Vec<Build> {
    [2, 16].map(|unroll| Build { defines: unrolled(unroll), ..Build::plain(&CONSTANT) }).to_vec()
}

pub(super) fn points_forms() -> Vec<Build> {
    [[64, 4, 8, 0], [256, 8, 2, 3]]
        .map(|form| Build { defines: defines(form), ..Build::plain(&SOURCE) })
        .to_vec()
}

fn unrolled(times: u32) -> Vec<Define> {
    vec![("UNROLL", times.to_string())]
}

fn defines([threads, points, unroll, soft]: [u32; 4]) -> Vec<Define> {
    [("THREADS", threads), ("POINTS", points), ("UNROLL", unroll), ("SOFT", soft)]
        .map(|(name, value)| (name, value.to_string()))
        .to_vec()
}

/// What kernels count in 32 bits, with room for what the last block has beyond.
fn size(what: &str, n: usize) -> Result<i32> {
    let most = i32::MAX - (1 << 16);
    let size = i32::try_from(n).ok().filter(|&n| n <= most);
    size.ok_or_else(|| Error::value(what, format!("at most {most}"), n))
}

/// The grid whose points `v` holds.
pub(super) fn place(grid: &Grid, v: &Array<f32>) -> Result<[Argument<'static>; 7]> {
    let [nz, ny, nx] = grid.shape;
    expect_len("potential", &grid.shape, v.len())?;
    let size = |n: usize| size("side of a grid", n);
    let [ox, oy, oz] = grid.origin;
    Ok([
        size(nx)?.into(),
        size(ny)?.into(),
        size(nz)?.into(),
        ox.into(),
        oy.into(),
        oz.into(),
        grid.spacing.into(),
    ])
}

pub(super) fn atom_count(atoms: &Array<[f32; 4]>) -> Result<i32> {
    size("number of atoms", atoms.len())
}

/// A kernel of all atoms at once.
fn all_atoms(
    kernel: &Kernel,
    shape: Launch,
    atoms: &Array<[f32; 4]>,
    grid: &Grid,
    v: &mut Array<f32>,
) -> Result<()> {
    let place = place(grid, v)?;
    let mut arguments = vec![atoms.cuda().into(), atom_count(atoms)?.into(), v.cuda_mut().into()];
    arguments.extend(place);
    // SAFETY: the count is the atoms' own, and the potential has the grid's points.
    unsafe { kernel.launch(shape, &mut arguments) }
}

pub(super) fn scatter(config: &Config, data: &mut Data) -> Result<()> {
    let device = data.v.device().clone();
    let (cuda, threads) = (gpu(&device)?, config.get("threads")?);
    let zero = cuda.kernel(&SOURCE, &[], "zero")?;
    let points = data.v.len();
    let arguments = &mut [data.v.cuda_mut().into(), (points as u64).into()];
    // SAFETY: the potential has this number of points.
    unsafe { zero.launch(Launch::covering(points, 256), arguments) }?;
    let shape = Launch::covering(data.atoms.len(), threads);
    all_atoms(&cuda.kernel(&SOURCE, &[], "scatter")?, shape, &data.atoms, &data.grid, &mut data.v)
}

pub(super) fn gather(config: &Config, data: &mut Data) -> Result<()> {
    let device = data.v.device().clone();
    let shape = Launch::covering(data.v.len(), config.get("threads")?);
    all_atoms(&gpu(&device)?.kernel(&SOURCE, &[], "gather")?, shape, &data.atoms, &data.grid, &mut data.v)
}

/// The kernels that read atoms from constant memory: as many as it holds are copied there, and launches add a
/// few of them each.
pub(super) fn pieces(name: &str, config: &Config, data: &mut Data) -> Result<()> {
    let device = data.v.device().clone();
    let cuda = gpu(&device)?;
    let defines = unrolled(config.get("unroll")?);
    let kernel = cuda.kernel(&CONSTANT, &defines, name)?;
    let each = config.get("atoms")?.max(1) as usize;
    if each > PIECE {
        let expected = format!("at most {PIECE}, the 16 bytes each that constant memory holds");
        return Err(Error::value("atoms of a launch", expected, each));
    }
    let shape = Launch::covering(data.v.len(), config.get("threads")?);
    let count = atom_count(&data.atoms)? as usize;
    let place = place(&data.grid, &data.v)?;
    for first in (0..count).step_by(PIECE) {
        let held = (count - first).min(PIECE);
        let missing = || Error::value("atoms", format!("at least {}", first + held), count);
        let piece = data.atoms.cuda().part(first, held).ok_or_else(missing)?;
        cuda.fill_variable(&CONSTANT, &defines, "piece", piece)?;
        for from in (0..held).step_by(each) {
            let to = (from + each).min(held);
            let add = i32::from(first + from > 0);
            let mut arguments =
                vec![(from as i32).into(), (to as i32).into(), add.into(), data.v.cuda_mut().into()];
            arguments.extend(place);
            // SAFETY: the piece has the atoms `from` to `to`, and the potential has the grid's points.
            unsafe { kernel.launch(shape, &mut arguments) }?;
        }
    }
    Ok(())
}

pub(super) fn points(
    cuda: &Cuda,
    config: &Config,
    atoms: &Array<[f32; 4]>,
    grid: &Grid,
    v: &mut Array<f32>,
) -> Result<()> {
    let [threads, points, unroll, soft] =
        [config.get("threads")?, config.get("points")?, config.get("unroll")?, config.get("soft")?];
    let [nz, ny, nx] = grid.shape;
    expect("threads of a block", 1..=1024, threads)?;
    expect("points of a thread", 1..=64, points)?;
    let blocks = nx.div_ceil((threads * points) as usize) * ny * nz;
    let blocks = u32::try_from(blocks)
        .map_err(|_| Error::value("blocks of a grid of points", "at most 2147483647", blocks))?;
    let shape = Launch { blocks: [blocks, 1, 1], threads: [threads, 1, 1], shared: 0 };
    let kernel = cuda.kernel(&SOURCE, &defines([threads, points, unroll, soft]), "points")?;
    all_atoms(&kernel, shape, atoms, grid, v)
}
