#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{Define, Kernel, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config, gpu};

use super::{Data, Problem};
use rayspin_tune::blocks::expect;

static NAIVE: Source =
    Source { name: "matrix_product", files: &[("01_naive.cu", include_str!("cuda/01_naive.cu"))] };
static TILED: Source =
    Source { name: "matrix_product", files: &[("02_tiled.cu", include_str!("cuda/02_tiled.cu"))] };
static REGISTERS: Source =
    Source { name: "matrix_product", files: &[("03_registers.cu", include_str!("cuda/03_registers.cu"))] };
const TILE: (&str, &str) = ("tile.cu", include_str!("cuda/tile.cu"));
static WIDE: Source =
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

const SMALL: Tile = Tile { bm: 64, bn: 64, bk: 16, tm: 8, tn: 8 };
const USUAL: Tile = Tile { bm: 128, bn: 128, bk: 8, tm: 8, tn: 8 };
const TALL: Tile = Tile { bk: 16, tm: 16, ..USUAL };

fn form(source: &'static Source, defines: Vec<Define>) -> Build {
    Build { defines, ..Build::plain(source) }
}

/// Forms of the kernels with tiles of warps: a small tile for unaligned rows, a large tile for aligned rows.
fn warp_forms(source: &'static Source, name: &'static str, tile: Tile, numbers: [u32; 2]) -> Vec<Build> {
    let form = |tile: Tile, blocks, wide, number: u32| {
        let mut defines = warp_defines(&tile, blocks, [wide; 2]);
        defines.push((name, number.to_string()));
        form(source, defines)
    };
    vec![form(SMALL, 1, false, numbers[0]), form(tile, 2, true, numbers[1])]
}

pub(super) fn naive_forms() -> Vec<Build> {
    vec![Build::plain(&NAIVE)]
}

pub(super) fn tiled_forms() -> Vec<Build> {
    vec![Build::plain(&TILED), form(&TILED, vec![("TILE", "32".to_owned())])]
}

pub(super) fn registers_forms() -> Vec<Build> {
    vec![Build::plain(&REGISTERS), form(&REGISTERS, USUAL.defines())]
}

pub(super) fn wide_forms() -> Vec<Build> {
    warp_forms(&WIDE, "BUFFERS", USUAL, [1, 2])
}

pub(super) fn stages_forms() -> Vec<Build> {
    warp_forms(&STAGES, "STAGES", TALL, [2, 3])
}

fn warp_defines(tile: &Tile, blocks: u32, [wide_a, wide_b]: [bool; 2]) -> Vec<Define> {
    let mut defines = tile.defines();
    defines.push(("BLOCKS", blocks.to_string()));
    defines.push(("WIDE_A", u32::from(wide_a).to_string()));
    defines.push(("WIDE_B", u32::from(wide_b).to_string()));
    defines
}

/// Launches a kernel of this ladder, whose arguments are three matrices and their sizes.
fn launch(
    kernel: &Kernel,
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
    let mut arguments = [
        a.cuda().into(),
        b.cuda().into(),
        c.cuda_mut().into(),
        size(problem.m)?.into(),
        size(problem.n)?.into(),
        size(problem.k)?.into(),
    ];
    // SAFETY: the matrices have these sizes, beyond which the kernel neither reads nor writes. The callers
    // give it the program's own blocks, tiles and shared memory.
    unsafe { kernel.launch(launch, &mut arguments) }
}

fn run(
    data: &mut Data,
    source: &'static Source,
    defines: &[Define],
    name: &str,
    shape: Launch,
) -> Result<()> {
    let kernel = gpu(data.a.device())?.kernel(source, defines, name)?;
    launch(&kernel, shape, [&data.a, &data.b], &mut data.c, &data.problem)
}

pub(super) fn naive(config: &Config, data: &mut Data) -> Result<()> {
    let (x, y) = (config.get("x")?, config.get("y")?);
    let blocks = data.problem.n.div_ceil(x as usize) * data.problem.m.div_ceil(y as usize);
    let shape = Launch { blocks: [count(blocks)?, 1, 1], threads: [x, y, 1], shared: 0 };
    run(data, &NAIVE, &[], "naive", shape)
}

pub(super) fn tiled(config: &Config, data: &mut Data) -> Result<()> {
    let tile = config.get("tile")?;
    let blocks = data.problem.n.div_ceil(tile as usize) * data.problem.m.div_ceil(tile as usize);
    let shape = Launch { blocks: [count(blocks)?, 1, 1], threads: [tile, tile, 1], shared: 0 };
    run(data, &TILED, &[("TILE", tile.to_string())], "tiled", shape)
}

pub(super) fn registers(config: &Config, data: &mut Data) -> Result<()> {
    let tile = Tile::of(config)?;
    let shape = tile.launch(&data.problem)?;
    run(data, &REGISTERS, &tile.defines(), "registers", shape)
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
    launch(&cuda.kernel(&WIDE, &defines, "wide")?, tile.launch(problem)?, [a, b], c, problem)
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
    launch(&cuda.kernel(&STAGES, &defines, "stages")?, shape, [a, b], c, problem)
}
