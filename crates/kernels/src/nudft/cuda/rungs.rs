//! The programs of the rungs, and how those of the product are cut.

use rayspin_core::{Error, Real, Result};
use rayspin_device::Cuda;
use rayspin_device::cuda::{Define, Source};
use rayspin_tune::{Build, Config};

use super::pieces;
use crate::nudft::tune::value;

pub(super) static NAIVE: Source =
    source("nudft_naive", &[PHASE, ("01_naive.cu", include_str!("01_naive.cu"))]);
pub(super) static CONSTANT: Source =
    source("nudft_constant", &[("02_constant.cu", include_str!("02_constant.cu"))]);
pub(super) static SFU: Source = source("nudft_sfu", &[FIXED, ("03_sfu.cu", include_str!("03_sfu.cu"))]);
pub(super) static TUNED: Source =
    source("nudft_tuned", &[FIXED, ("04_tuned.cu", include_str!("04_tuned.cu"))]);
pub(super) static TABLES: Source =
    source("nudft_tables", &[PHASE, MATRIX, ("tables.cu", include_str!("tables.cu"))]);
static SEPARABLE: Source =
    source("nudft_separable", &[MATRIX, TILE, ("05_separable.cu", include_str!("05_separable.cu"))]);
static DOUBLE: Source =
    source("nudft_double", &[MATRIX, TILE, ("06_double.cu", include_str!("06_double.cu"))]);
static TENSOR: Source =
    source("nudft_tensor", &[MATRIX, TILE, ("07_tensor.cu", include_str!("07_tensor.cu"))]);
static WGMMA: Source = source("nudft_wgmma", &[MATRIX, TILE, ("08_wgmma.cu", include_str!("08_wgmma.cu"))]);

pub(crate) const PHASE: (&str, &str) = ("phase.cuh", include_str!("phase.cuh"));
const FIXED: (&str, &str) = ("fixed.cuh", include_str!("fixed.cuh"));
const MATRIX: (&str, &str) = ("matrix.cuh", include_str!("matrix.cuh"));
const TILE: (&str, &str) = ("tile.cuh", include_str!("tile.cuh"));

const fn source(name: &'static str, files: &'static [(&'static str, &'static str)]) -> Source {
    Source { name, files }
}

/// Every program in every form, for the checks that need no GPU.
pub(crate) fn programs() -> Vec<Build> {
    let build = |source: &'static Source, double: &str, more: &[Define]| {
        let mut defines = vec![("DOUBLE", double.to_owned())];
        defines.extend_from_slice(more);
        // The tensor rung holds as many sums and operands as there are registers: a few bytes are kept elsewhere over the loop.
        // The plain rung is not written for registers.
        let name = source.name;
        let spill_bytes = if name == TENSOR.name || name == NAIVE.name { 64 } else { 0 };
        Build { source, defines, spill_bytes }
    };
    let mut all = Vec::new();
    for double in ["0", "1"] {
        all.extend([&NAIVE, &TABLES].map(|source| build(source, double, &[])));
        all.push(build(&DOUBLE, double, &double_defines(DOUBLE_THREADS)));
        for defines in pieces::forms(Rung::Constant) {
            all.push(build(&CONSTANT, double, &defines));
        }
    }
    for (rung, source) in [(Rung::Sfu, &SFU), (Rung::Tuned, &TUNED)] {
        all.extend(pieces::forms(rung).iter().map(|defines| build(source, "0", defines)));
    }
    all.push(build(&SEPARABLE, "0", &[]));
    for tiles in TENSOR_TILES {
        all.push(build(&TENSOR, "0", &tensor_defines(tiles)));
        all.push(build(&WGMMA, "0", &wgmma_defines(tiles)));
    }
    all
}

/// One of the ladder's steps on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// `01_naive.cu`.
    Naive,
    /// `02_constant.cu`.
    Constant,
    /// `03_sfu.cu`.
    Sfu,
    /// `04_tuned.cu`.
    Tuned,
    /// `05_separable.cu`.
    Separable,
    /// `06_double.cu`.
    Double,
    /// `07_tensor.cu`.
    Tensor,
    /// `08_wgmma.cu`.
    Wgmma,
}

impl Rung {
    /// The name of its row.
    pub(in crate::nudft) fn name(self) -> &'static str {
        match self {
            Self::Naive => "gpu-naive",
            Self::Constant => "gpu-constant",
            Self::Sfu => "gpu-sfu",
            Self::Tuned => "gpu-tuned",
            Self::Separable => "gpu-separable",
            Self::Double => "gpu-double",
            Self::Tensor => "gpu-tensor",
            Self::Wgmma => "gpu-wgmma",
        }
    }

    /// The programs that its parameters are of.
    pub(in crate::nudft) fn sources(self) -> Vec<&'static Source> {
        match self {
            Self::Naive => vec![&NAIVE],
            Self::Constant => vec![&CONSTANT],
            Self::Sfu => vec![&SFU],
            Self::Tuned => vec![&TUNED],
            Self::Separable => vec![&TABLES, &SEPARABLE],
            Self::Double => vec![&TABLES, &DOUBLE],
            Self::Tensor => vec![&TABLES, &TENSOR],
            Self::Wgmma => vec![&TABLES, &WGMMA],
        }
    }

    /// The program of a rung of the product, and the macros of its form.
    pub(super) fn product(self, tiling: &Tiling) -> (&'static Source, Vec<Define>) {
        match self {
            Self::Double => (&DOUBLE, double_defines(tiling.threads).into()),
            Self::Tensor => (&TENSOR, tensor_defines(tiling.columns).into()),
            Self::Wgmma => (&WGMMA, wgmma_defines(tiling.columns).into()),
            _ => (&SEPARABLE, Vec::new()),
        }
    }

    /// Whether the GPU has the rung's instructions.
    pub fn runs_on(self, cuda: &Cuda) -> bool {
        self.expect_on(cuda).is_ok()
    }

    /// Errors: the GPU has not the rung's instructions.
    pub(in crate::nudft) fn expect_on(self, cuda: &Cuda) -> Result<()> {
        let found = cuda.properties().capability;
        if self != Self::Wgmma || found == HOPPER {
            return Ok(());
        }
        let found = format!("{}.{}", found.0, found.1);
        Err(Error::value("compute capability for wgmma", "9.0, whose instructions it is made of", found))
    }

    /// Errors: the rung is made for f32 alone.
    pub(super) fn expect_for<R: Real>(self) -> Result<()> {
        match (self, size_of::<R>()) {
            (_, 4) | (Self::Naive | Self::Constant | Self::Double, _) => Ok(()),
            _ => Err(Error::value(format!("numbers of {}", self.name()), "f32", R::NAME)),
        }
    }

    /// The fastest that keeps the public functions' accuracy.
    pub(in crate::nudft) fn best<R: Real>(cuda: &Cuda) -> Self {
        match size_of::<R>() {
            4 if Self::Wgmma.runs_on(cuda) => Self::Wgmma,
            4 => Self::Tensor,
            _ => Self::Double,
        }
    }
}

/// How a rung of the product is cut.
pub(super) struct Tiling {
    /// Samples of a stage.
    pub(super) depth: usize,
    /// Points u of a tile.
    pub(super) u: usize,
    /// Eights of columns of a tile.
    pub(super) columns: usize,
    pub(super) threads: u32,
    /// Bytes of shared memory.
    pub(super) shared: usize,
    /// Blocks that a multiprocessor holds.
    pub(super) blocks: usize,
}

impl Tiling {
    /// Where nothing can be compiled, a form that was beforehand.
    pub(super) fn new(rung: Rung, columns: usize, config: &Config, compiles: bool) -> Result<Self> {
        let wide = columns > 64 && value(config, "columns", 128)? > 64;
        let tensor = TENSOR_TILES[usize::from(wide)];
        let threads =
            if compiles { value(config, "threads", DOUBLE_THREADS.into())? } else { DOUBLE_THREADS };
        if rung == Rung::Double && !(threads.is_multiple_of(32) && (32..=512).contains(&threads)) {
            let whole = "whole warps, 32 to 512 threads";
            return Err(Error::value(format!("threads of {}", rung.name()), whole, threads));
        }
        let plain = Self { depth: 16, u: 16, columns: 16, threads: 256, shared: 0, blocks: 2 };
        Ok(match rung {
            Rung::Double => {
                let u = (threads / DOUBLE_THREADS_A_POINT) as usize;
                Self {
                    u,
                    columns: 8,
                    threads,
                    shared: 3 * ((u + TILE_V) * 320 + 8 * 1024),
                    blocks: double_blocks(threads) as usize,
                    ..plain
                }
            }
            Rung::Tensor => {
                Self { depth: 32, columns: tensor, shared: 3 * (24 * 320 + tensor * 1024), ..plain }
            }
            Rung::Wgmma => Self {
                depth: 64,
                u: WGMMA_U,
                columns: tensor,
                threads: WGMMA_THREADS,
                shared: 4 * (16 * 576 + tensor * 2048),
                blocks: 1,
            },
            _ => Self { shared: 3 * (24 * 144 + 16 * 512), ..plain },
        })
    }
}

/// Points v of the rows of a tile: `TILE_V` of `tile.cuh`.
pub(super) const TILE_V: usize = 8;
/// Column tiles of 8 that the tensor rung is compiled with, the smaller where 64 columns are enough.
const TENSOR_TILES: [usize; 2] = [8, 16];
/// Two blocks a multiprocessor, which wait apart: with one of twice the threads the units rest 38 % of the time.
const DOUBLE_THREADS: u32 = 128;
/// A warp has two points u.
const DOUBLE_THREADS_A_POINT: u32 = 16;
/// The one processor that has `wgmma`.
const HOPPER: (u32, u32) = (9, 0);
const WGMMA_U: usize = 8;
/// Two groups of four warps, and one that queues copies.
const WGMMA_THREADS: u32 = 384;

/// What the registers of a multiprocessor hold.
fn double_blocks(threads: u32) -> u32 {
    (256 / threads.max(1)).max(1)
}

fn double_defines(threads: u32) -> [Define; 3] {
    let tile = threads / DOUBLE_THREADS_A_POINT;
    [("TILE_U", tile), ("THREADS", threads), ("BLOCKS", double_blocks(threads))]
        .map(|(name, value)| (name, value.to_string()))
}

fn tensor_defines(tiles: usize) -> [Define; 2] {
    [("TILES", tiles.to_string()), ("BLOCKS", (16 / tiles).to_string())]
}

fn wgmma_defines(tiles: usize) -> [Define; 3] {
    [("TILES", tiles.to_string()), ("TILE_U", WGMMA_U.to_string()), ("THREADS", WGMMA_THREADS.to_string())]
}
