#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{Define, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config, Space, gpu};

use super::{Data, Problem};
use crate::blocks::expect;

static NAIVE: Source =
    Source { name: "matrix_product", files: &[("01_naive.cu", include_str!("cuda/01_naive.cu"))] };
static TILED: Source =
    Source { name: "matrix_product", files: &[("02_tiled.cu", include_str!("cuda/02_tiled.cu"))] };
static REGISTERS: Source =
    Source { name: "matrix_product", files: &[("03_registers.cu", include_str!("cuda/03_registers.cu"))] };
const TILE: (&str, &str) = ("tile.cu", include_str!("cuda/tile.cu"));
pub(super) static WIDE: Source =
    Source { name: "matrix_product", files: &[TILE, ("04_wide.cu", include_str!("cuda/04_wide.cu"))] };
static STAGES: Source =
    Source { name: "matrix_product", files: &[TILE, ("05_async.cu", include_str!("cuda/05_async.cu"))] };

/// Outputs of a block, of a thread, and numbers of a row of A at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tile {
    bm: u32,
    bn: u32,
    bk: u32,
    tm: u32,
    tn: u32,
}

impl Tile {
    fn of(config: &Config) -> Result<Self> {
        let get = |name: &str| {
            let value = config.get(name)?;
            expect(name, 1..=1024, value).map(|()| value)
        };
        Ok(Self { bm: get("bm")?, bn: get("bn")?, bk: get("bk")?, tm: get("tm")?, tn: get("tn")? })
    }

    /// The same of the kernels whose warps have 4 x 8 threads and whose accesses take 16 bytes.
    fn of_warps(config: &Config) -> Result<Self> {
        let tile = Self::of(config)?;
        let Self { bm, bn, bk, tm, tn } = tile;
        if bm.is_multiple_of(4 * tm)
            && bn.is_multiple_of(8 * tn)
            && [bk, tm, tn].iter().all(|n| n.is_multiple_of(4))
        {
            return Ok(tile);
        }
        Err(Error::value(
            "tile of a matrix product",
            "whole warps of threads with multiples of 4 a side",
            config,
        ))
    }

    fn defines(&self) -> Vec<Define> {
        [("BM", self.bm), ("BN", self.bn), ("BK", self.bk), ("TM", self.tm), ("TN", self.tn)]
            .map(|(name, value)| (name, value.to_string()))
            .to_vec()
    }

    fn launch(&self, problem: &Problem) -> Result<Launch> {
        let blocks = problem.m.div_ceil(self.bm as usize) * problem.n.div_ceil(self.bn as usize);
        Ok(Launch::linear(count(blocks)?, self.bm / self.tm * (self.bn / self.tn)))
    }
}

fn count(blocks: usize) -> Result<u32> {
    u32::try_from(blocks)
        .map_err(|_| Error::value("blocks of a matrix product", "at most 2147483647", blocks))
}

/// The numbers of a tile as an axis of a space, each at most what the matrix fills.
fn tiles(problem: &Problem) -> (Vec<i64>, Vec<i64>, [i64; 2]) {
    let within = |n: usize| match n {
        1024.. => (vec![64, 128, 256], 128),
        256..1024 => (vec![64, 128, 256], 64),
        _ => (vec![64], 64),
    };
    let ((bm, m), (bn, n)) = (within(problem.m), within(problem.n));
    (bm, bn, [m, n])
}

/// What `wide` and `stages` leave open; by default tiles `bk` deep and `rows` rows a thread, which spill no registers.
fn warp_tiles(problem: &Problem, bk: i64, rows: i64) -> Space {
    let (bm, bn, [m, n]) = tiles(problem);
    let large = problem.m.min(problem.n) >= 256;
    let sides: &[i64] = if large { &[4, 8, 16] } else { &[8] };
    Space::none()
        .axis("bm", &bm, m)
        .axis("bn", &bn, n)
        .axis("bk", if large { &[8, 16, 32] } else { &[] }, bk)
        .axis("tm", sides, if m == 128 { rows } else { 8 })
        .axis("tn", sides, 8)
        .axis("blocks", if large { &[1, 2, 3, 4] } else { &[1] }, if large { 2 } else { 1 })
}

/// Whole warps, threads that have the registers they need, and tiles within `shared` numbers of shared memory. Beside sums and two
/// lines of operands a thread takes `addresses` registers, and those of the `ahead` loads of 16 bytes that it has under way.
fn fits(
    config: &Config,
    addresses: i64,
    ahead: impl Fn(i64, i64, i64, i64) -> i64,
    shared: impl Fn(i64, i64, i64) -> i64,
) -> bool {
    let at = |name| config.find(name).unwrap_or(0);
    let [bm, bn, bk, tm, tn] = ["bm", "bn", "bk", "tm", "tn"].map(at);
    if tm * tn < 16 || tm * tn > 128 || bm % (4 * tm) != 0 || bn % (8 * tn) != 0 {
        return false;
    }
    let threads = (bm / tm) * (bn / tn);
    if !(32..=512).contains(&threads) {
        return false;
    }
    let registers = tm * tn + 2 * (tm + tn) + addresses + 4 * ahead(bm, bn, bk, threads);
    // A thread has 255; from 240 foreseen ones on some were kept in memory.
    registers <= 232
        && registers * threads * at("blocks") <= 65_536
        && 4 * shared(bm, bn, bk) * at("blocks") <= 224 * 1024
}

pub(super) fn registers_space(problem: &Problem) -> Space {
    let (bm, bn, [m, n]) = tiles(problem);
    let large = problem.m.min(problem.n) >= 256;
    Space::none()
        .axis("bm", &bm, m)
        .axis("bn", &bn, n)
        .axis("bk", if large { &[8, 16, 32] } else { &[8] }, 8)
        .axis("tm", if large { &[2, 4, 8] } else { &[4] }, if large { 8 } else { 4 })
        .axis("tn", if large { &[2, 4, 8] } else { &[4] }, if large { 8 } else { 4 })
        .where_(|c| {
            let at = |name| c.find(name).unwrap_or(1);
            let threads = at("bm") / at("tm") * (at("bn") / at("tn"));
            (64..=512).contains(&threads) && 4 * at("bk") * (at("bm") + 1 + at("bn")) <= 48 * 1024
        })
}

pub(super) fn wide_space(problem: &Problem) -> Space {
    warp_tiles(problem, 8, 8).axis("buffers", &[1, 2], 2).where_(|c| {
        let buffers = c.find("buffers").unwrap_or(1);
        let ceil = |loads: i64, threads: i64| (loads + threads - 1) / threads;
        let ahead = |bm, bn, bk, threads| ceil(bm * bk / 4, threads) + ceil(bn * bk / 4, threads);
        // Shared memory that a kernel declares is at most 48 KB.
        fits(c, 24, ahead, |bm, bn, bk| buffers * bk * (bm + 4 + bn))
            && buffers
                * 4
                * c.find("bk").unwrap_or(0)
                * (c.find("bm").unwrap_or(0) + 4 + c.find("bn").unwrap_or(0))
                <= 48 * 1024
    })
}

pub(super) fn stages_space(problem: &Problem) -> Space {
    let large = problem.m.min(problem.n) >= 256;
    warp_tiles(problem, 16, 16).axis("stages", if large { &[2, 3, 4, 5] } else { &[2, 3] }, 3).where_(|c| {
        let stages = c.find("stages").unwrap_or(1);
        fits(c, 40, |_, _, _, _| 0, |bm, bn, bk| stages * (bm * (bk + 4) + bk * bn))
    })
}

pub(crate) fn programs() -> Vec<Build> {
    let build = |source, tile: Option<(Tile, u32, &'static str, u32)>, wide: bool| {
        let mut defines = vec![];
        if let Some((tile, blocks, name, value)) = tile {
            defines = warp_defines(&tile, blocks, [wide; 2]);
            defines.push((name, value.to_string()));
        }
        Build { source, defines, spill_bytes: 0 }
    };
    let small = Tile { bm: 64, bn: 64, bk: 16, tm: 8, tn: 8 };
    let usual = Tile { bm: 128, bn: 128, bk: 16, tm: 8, tn: 8 };
    let tall = Tile { tm: 16, ..usual };
    vec![
        build(&NAIVE, None, false),
        build(&TILED, None, false),
        Build { source: &TILED, defines: vec![("TILE", "32".to_owned())], spill_bytes: 0 },
        build(&REGISTERS, None, false),
        Build { source: &REGISTERS, defines: Tile { bk: 8, ..usual }.defines(), spill_bytes: 0 },
        build(&WIDE, Some((small, 1, "BUFFERS", 1)), false),
        build(&WIDE, Some((Tile { bk: 8, ..usual }, 2, "BUFFERS", 2)), true),
        build(&STAGES, Some((small, 1, "STAGES", 2)), false),
        build(&STAGES, Some((tall, 2, "STAGES", 3)), true),
    ]
}

fn warp_defines(tile: &Tile, blocks: u32, [wide_a, wide_b]: [bool; 2]) -> Vec<Define> {
    let mut defines = tile.defines();
    defines.push(("BLOCKS", blocks.to_string()));
    defines.push(("WIDE_A", u32::from(wide_a).to_string()));
    defines.push(("WIDE_B", u32::from(wide_b).to_string()));
    defines
}

/// The kernel's arguments: three matrices and their sizes.
fn launch(
    cuda: &Cuda,
    (source, defines, name): (&'static Source, &[Define], &str),
    launch: Launch,
    [a, b]: [&Array<f32>; 2],
    c: &mut Array<f32>,
    problem: &Problem,
) -> Result<()> {
    // With room for what a tile has beyond the last row, column and product.
    let most = i32::MAX - 4096;
    let size = |n: usize| {
        let size = i32::try_from(n).ok().filter(|&n| n <= most);
        size.ok_or_else(|| Error::value("size of a matrix", format!("at most {most}"), n))
    };
    expect_len("first factor of a matrix product", &[problem.m, problem.k], a.len())?;
    expect_len("second factor of a matrix product", &[problem.k, problem.n], b.len())?;
    expect_len("matrix product", &[problem.m, problem.n], c.len())?;
    let kernel = cuda.kernel(source, defines, name)?;
    let mut arguments = [
        a.cuda().into(),
        b.cuda().into(),
        c.cuda_mut().into(),
        size(problem.m)?.into(),
        size(problem.n)?.into(),
        size(problem.k)?.into(),
    ];
    // SAFETY: the matrices have these sizes, beyond which the kernel neither reads nor writes. The callers give it the program's own
    // blocks, tiles and shared memory.
    unsafe { kernel.launch(launch, &mut arguments) }
}

fn run(data: &mut Data, program: (&'static Source, &[Define], &str), shape: Launch) -> Result<()> {
    let device = data.a.device().clone();
    launch(gpu(&device)?, program, shape, [&data.a, &data.b], &mut data.c, &data.problem)
}

pub(super) fn naive(config: &Config, data: &mut Data) -> Result<()> {
    let (x, y) = (config.get("x")?, config.get("y")?);
    let blocks = data.problem.n.div_ceil(x as usize) * data.problem.m.div_ceil(y as usize);
    let shape = Launch { blocks: [count(blocks)?, 1, 1], threads: [x, y, 1], shared: 0 };
    run(data, (&NAIVE, &[], "naive"), shape)
}

pub(super) fn tiled(config: &Config, data: &mut Data) -> Result<()> {
    let tile = config.get("tile")?;
    let blocks = data.problem.n.div_ceil(tile as usize) * data.problem.m.div_ceil(tile as usize);
    let shape = Launch { blocks: [count(blocks)?, 1, 1], threads: [tile, tile, 1], shared: 0 };
    run(data, (&TILED, &[("TILE", tile.to_string())], "tiled"), shape)
}

pub(super) fn registers(config: &Config, data: &mut Data) -> Result<()> {
    let tile = Tile::of(config)?;
    let shape = tile.launch(&data.problem)?;
    run(data, (&REGISTERS, &tile.defines(), "registers"), shape)
}

pub(super) fn wide(
    cuda: &Cuda,
    config: &Config,
    [a, b]: [&Array<f32>; 2],
    c: &mut Array<f32>,
    problem: &Problem,
) -> Result<()> {
    let (tile, buffers) = (Tile::of_warps(config)?, config.get("buffers")?);
    expect("buffers", 1..=2, buffers)?;
    let mut defines = warp_defines(&tile, config.get("blocks")?, problem.wide());
    defines.push(("BUFFERS", buffers.to_string()));
    launch(cuda, (&WIDE, &defines, "wide"), tile.launch(problem)?, [a, b], c, problem)
}

pub(super) fn stages(
    cuda: &Cuda,
    config: &Config,
    [a, b]: [&Array<f32>; 2],
    c: &mut Array<f32>,
    problem: &Problem,
) -> Result<()> {
    let (tile, stages) = (Tile::of_warps(config)?, config.get("stages")?);
    expect("stages", 2..=64, stages)?;
    let mut defines = warp_defines(&tile, config.get("blocks")?, problem.wide());
    defines.push(("STAGES", stages.to_string()));
    let stage = tile.bm * (tile.bk + 4) + tile.bk * tile.bn;
    let shape = tile.launch(problem)?.with_shared(4 * stages as usize * stage as usize);
    launch(cuda, (&STAGES, &defines, "stages"), shape, [a, b], c, problem)
}
