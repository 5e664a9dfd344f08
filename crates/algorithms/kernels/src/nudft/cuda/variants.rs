//! The programs of the variants, and how the product's programs are cut.

use rayspin_core::{Error, Real, Result};
use rayspin_device::Cuda;
use rayspin_device::cuda::{Define, Source};
use rayspin_tune::{Build, Config, Space};

use super::pieces;
use crate::cuda::define;
use crate::nudft::tune::value;

pub(super) static NAIVE: Source =
    source("nudft_naive", &[PHASE, ("01_naive.cu", include_str!("01_naive.cu"))]);
pub(super) static CONSTANT: Source =
    source("nudft_constant", &[("02_constant.cu", include_str!("02_constant.cu"))]);
pub(super) static FIXED_POINT: Source =
    source("nudft_fixed", &[FIXED, ("03_fixed.cu", include_str!("03_fixed.cu"))]);
pub(super) static SFU: Source = source("nudft_sfu", &[FIXED, ("04_sfu.cu", include_str!("04_sfu.cu"))]);
pub(super) static TUNED: Source =
    source("nudft_tuned", &[FIXED, ("05_tuned.cu", include_str!("05_tuned.cu"))]);
pub(super) static TABLES: Source =
    source("nudft_tables", &[PHASE, MATRIX, ("tables.cu", include_str!("tables.cu"))]);
static SEPARABLE: Source =
    source("nudft_separable", &[MATRIX, TILE, ("06_separable.cu", include_str!("06_separable.cu"))]);
static DOUBLE: Source =
    source("nudft_double", &[MATRIX, TILE, ("07_double.cu", include_str!("07_double.cu"))]);
static TENSOR: Source =
    source("nudft_tensor", &[MATRIX, TILE, ("08_tensor.cu", include_str!("08_tensor.cu"))]);
static WGMMA: Source = source("nudft_wgmma", &[MATRIX, TILE, ("09_wgmma.cu", include_str!("09_wgmma.cu"))]);

pub(crate) const PHASE: (&str, &str) = ("phase.cuh", include_str!("phase.cuh"));
const FIXED: (&str, &str) = ("fixed.cuh", include_str!("fixed.cuh"));
const MATRIX: (&str, &str) = ("matrix.cuh", include_str!("matrix.cuh"));
const TILE: (&str, &str) = ("tile.cuh", include_str!("tile.cuh"));

const fn source(name: &'static str, files: &'static [(&'static str, &'static str)]) -> Source {
    Source { name, files }
}

/// One of the ladder's steps on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CudaVariant {
    /// `01_naive.cu`.
    Naive,
    /// `02_constant.cu`.
    Constant,
    /// `03_fixed.cu`.
    Fixed,
    /// `04_sfu.cu`.
    Sfu,
    /// `05_tuned.cu`.
    Tuned,
    /// `06_separable.cu`.
    Separable,
    /// `07_double.cu`.
    Double,
    /// `08_tensor.cu`.
    Tensor,
    /// `09_wgmma.cu`.
    Wgmma,
}

impl CudaVariant {
    /// All of them, in the order of the ladder.
    pub(in crate::nudft) const ALL: [Self; 9] = [
        Self::Naive,
        Self::Constant,
        Self::Fixed,
        Self::Sfu,
        Self::Tuned,
        Self::Separable,
        Self::Double,
        Self::Tensor,
        Self::Wgmma,
    ];

    /// The name of its row.
    pub(in crate::nudft) fn name(self) -> &'static str {
        match self {
            Self::Naive => "gpu-naive",
            Self::Constant => "gpu-constant",
            Self::Fixed => "gpu-fixed",
            Self::Sfu => "gpu-sfu",
            Self::Tuned => "gpu-tuned",
            Self::Separable => "gpu-separable",
            Self::Double => "gpu-double",
            Self::Tensor => "gpu-tensor",
            Self::Wgmma => "gpu-wgmma",
        }
    }

    /// The forms of its programs in one precision.
    pub(in crate::nudft) fn forms<R: Real>(self) -> Vec<Build> {
        // The tensor variant holds as many sums and operands as there are registers: a few bytes are kept
        // elsewhere over the loop. The plain variant is not written for registers.
        let spill_bytes = if matches!(self, Self::Tensor | Self::Naive) { 64 } else { 0 };
        let build = |source, more: &[Define], spill_bytes| Build {
            source,
            defines: [&[define::<R>()], more].concat(),
            spill_bytes,
        };
        let pieces = |source| pieces::forms(self).iter().map(|more| build(source, more, 0)).collect();
        let product = |source, forms: &[Vec<Define>]| {
            let forms = forms.iter().map(|more| build(source, more, spill_bytes));
            std::iter::once(build(&TABLES, &[], 0)).chain(forms).collect()
        };
        match self {
            Self::Naive => vec![build(&NAIVE, &[], spill_bytes)],
            Self::Constant => pieces(&CONSTANT),
            Self::Fixed => pieces(&FIXED_POINT),
            Self::Sfu => pieces(&SFU),
            Self::Tuned => pieces(&TUNED),
            Self::Separable => product(&SEPARABLE, &[Vec::new()]),
            Self::Double => product(&DOUBLE, &[double_defines(DOUBLE_THREADS).into()]),
            Self::Tensor => product(&TENSOR, &TENSOR_TILES.map(|tiles| tensor_defines(tiles).into())),
            Self::Wgmma => product(&WGMMA, &TENSOR_TILES.map(|tiles| wgmma_defines(tiles).into())),
        }
    }

    /// What it leaves open in one precision.
    ///
    /// Those of `Constant`, `Fixed` and `Sfu` are the lecture's 175: how often the loop over samples is
    /// unrolled, threads of a block, samples of a launch.
    pub(in crate::nudft) fn space<R: Real>(self) -> Space {
        const THREADS: &[i64] = &[32, 64, 128, 256, 512];
        // Samples of a table of phases: by default all tables of a 128³ image's Q stay in the second-level
        // cache. Sums of more samples than the most would lose digits of f32.
        let tables = Space::none().axis("table", &[2048, 4096, 8192, 16384], 8192);
        match self {
            Self::Naive => Space::none().axis("threads", THREADS, 128),
            Self::Constant | Self::Fixed | Self::Sfu => {
                let space = Space::none()
                    .axis("unroll", &[1, 2, 4, 8, 16], 16)
                    .axis("threads", THREADS, 128)
                    .axis("points", &[32, 64, 128, 256, 512, 1024, 2048], 64);
                // Constant memory has 64 KB, a sample of the one f64 variant 48 bytes.
                let fits: fn(&Config) -> bool = |c| c.find("points").is_some_and(|points| points <= 1024);
                if size_of::<R>() == 8 { space.where_(fits) } else { space }
            }
            Self::Tuned => Space::none()
                .axis("voxels", &[1, 2, 4, 8, 16], 4)
                .axis("unroll", &[1, 2, 4], 2)
                .axis("threads", &[64, 128, 256], 64)
                .axis("points", &[32, 64, 256, 1024, 2048], 256),
            Self::Separable => tables,
            // A warp has two points of a tile: 16 registers' sums a thread leave room for 256 threads a
            // multiprocessor.
            Self::Double => tables.axis("threads", &[64, 128, 256], 128),
            Self::Tensor | Self::Wgmma => tables.axis("columns", &[64, 128], 128),
        }
    }

    /// The program of a variant of the product, and the macros of its form.
    pub(super) fn product(self, tiling: &Tiling) -> (&'static Source, Vec<Define>) {
        match self {
            Self::Double => (&DOUBLE, double_defines(tiling.threads).into()),
            Self::Tensor => (&TENSOR, tensor_defines(tiling.columns).into()),
            Self::Wgmma => (&WGMMA, wgmma_defines(tiling.columns).into()),
            _ => (&SEPARABLE, Vec::new()),
        }
    }

    /// Whether the GPU has the variant's instructions.
    pub fn runs_on(self, cuda: &Cuda) -> bool {
        self.expect_on(cuda).is_ok()
    }

    /// Errors: the GPU has not the variant's instructions.
    pub(in crate::nudft) fn expect_on(self, cuda: &Cuda) -> Result<()> {
        let capability = cuda.properties().capability;
        if self != Self::Wgmma || capability == HOPPER {
            return Ok(());
        }
        let capability = format!("{}.{}", capability.0, capability.1);
        Err(Error::value("compute capability for wgmma", "9.0, whose instructions it is made of", capability))
    }

    /// Errors: the variant is made for f32 alone.
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

/// How a variant of the product is cut.
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
    /// The form of the parameters where the GPU offers its program, or else the usual one.
    pub(super) fn offered(
        cuda: &Cuda,
        variant: CudaVariant,
        columns: usize,
        config: &Config,
        more: &[Define],
    ) -> Result<Self> {
        let exact = Self::new(variant, columns, config, value(config, "threads", DOUBLE_THREADS.into())?)?;
        let (source, defines) = variant.product(&exact);
        match cuda.offers(source, &[more, &defines].concat()) {
            true => Ok(exact),
            false => Self::new(variant, columns, config, DOUBLE_THREADS),
        }
    }

    fn new(variant: CudaVariant, columns: usize, config: &Config, threads: u32) -> Result<Self> {
        let wide = columns > 64 && value(config, "columns", 128)? > 64;
        let tensor = TENSOR_TILES[usize::from(wide)];
        if variant == CudaVariant::Double && !(threads.is_multiple_of(32) && (32..=512).contains(&threads)) {
            let whole = "whole warps, 32 to 512 threads";
            return Err(Error::value(format!("threads of {}", variant.name()), whole, threads));
        }
        let plain = Self { depth: 16, u: 16, columns: 16, threads: 256, shared: 0, blocks: 2 };
        Ok(match variant {
            CudaVariant::Double => {
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
            CudaVariant::Tensor => {
                Self { depth: 32, columns: tensor, shared: 3 * (24 * 320 + tensor * 1024), ..plain }
            }
            CudaVariant::Wgmma => Self {
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
/// Column tiles of 8 that the tensor variant is compiled with, the smaller where 64 columns are enough.
const TENSOR_TILES: [usize; 2] = [8, 16];
/// Two blocks a multiprocessor, which wait apart: with one of twice the threads the units rest 38 % of the
/// time.
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
