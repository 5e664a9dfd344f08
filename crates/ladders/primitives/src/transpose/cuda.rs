#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{C32, C64, Error, Result, expect_len};
use rayspin_device::cuda::{Define, Kernel, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config, distinct};

use super::Entry;

static SOURCE: Source =
    Source { name: "transpose", files: &[("transpose.cu", include_str!("cuda/transpose.cu"))] };

/// The side of the lectures' tiles.
const SIDE: u32 = 32;

fn build<T: Entry>(form: Form) -> Build {
    Build { defines: form.defines::<T>(), ..Build::plain(&SOURCE) }
}

/// Of [`of_tiles`].
pub(super) fn lecture_forms() -> Vec<Build> {
    let plain = Form::PLAIN;
    let tall = build::<f32>(Form { tall: 16, ..plain });
    vec![build::<f32>(plain), tall, build::<u8>(plain), build::<f64>(plain)]
}

/// Of [`registers`].
pub(super) fn register_forms() -> Vec<Build> {
    let plain = Form::PLAIN;
    let wide = build::<f32>(Form { v: 4, ..plain });
    vec![build::<f32>(plain), wide, build::<u8>(plain), build::<f64>(plain)]
}

/// Of [`wide`].
pub(super) fn wide_forms() -> Vec<Build> {
    let form = |v, tile, tall, stream| Form { v, tile, tall, stream };
    let more = [
        build::<f32>(form(2, 64, 8, 0)),
        build::<f32>(form(4, 64, 16, 0)),
        build::<f32>(form(4, 64, 8, 1)),
        build::<u8>(form(4, 128, 8, 0)),
        build::<u8>(form(2, 64, 8, 0)),
        build::<u16>(form(4, 64, 16, 0)),
        build::<f64>(form(2, 32, 16, 0)),
        build::<C32>(form(2, 32, 16, 0)),
        build::<C64>(Form::PLAIN),
    ];
    distinct(lecture_forms().into_iter().chain(register_forms()).chain(more))
}

/// What a program fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// Elements a load: rows and columns are multiples of it.
    pub(super) v: u32,
    /// The side of a tile.
    pub(super) tile: u32,
    /// Threads of a block along y.
    pub(super) tall: u32,
    /// Whether caches are asked to forget.
    pub(super) stream: u32,
}

impl Form {
    /// What is not tuned: one element a load, the lectures' tile.
    pub(super) const PLAIN: Self = Self { v: 1, tile: SIDE, tall: 8, stream: 0 };

    fn kernel<T: Entry>(self, cuda: &Cuda, name: &str) -> Result<Kernel> {
        cuda.kernel(&SOURCE, &self.defines::<T>(), name)
    }

    /// 16 bytes a load where the sides allow it, and as many threads as give each one block of a tile.
    pub(super) fn usual<T: Entry>(rows: usize, columns: usize) -> Self {
        let v = widest::<T>(rows, columns);
        let tile = match (size_of::<T>(), v) {
            (_, 1) | (8.., _) => SIDE,
            (1, _) => 128,
            _ => 64,
        };
        // 256 threads, each with one block of the tile or a few.
        Self { v, tile, tall: 256 * v / tile, stream: 0 }
    }

    pub(super) fn of(config: &Config) -> Result<Self> {
        Ok(Self {
            v: config.get("v")?,
            tile: config.get("tile")?,
            tall: config.get("tall")?,
            stream: config.get("stream")?,
        })
    }

    /// That loads divide rows and columns, and that the steps of threads divide a tile of a power of two.
    fn check<T: Entry>(self, [rows, columns]: [usize; 2]) -> Result<()> {
        let Self { v, tile, tall, .. } = self;
        let word = (v as usize).saturating_mul(size_of::<T>());
        let loads = word.is_power_of_two()
            && word <= 16
            && [rows, columns].iter().all(|n| n.is_multiple_of(v as usize));
        if !loads {
            let given = format!("{v} of {rows} x {columns}");
            return Err(Error::value(
                "elements of a load",
                "as many as divide both sides, 16 bytes at most",
                given,
            ));
        }
        let steps = tall > 0
            && tile.is_multiple_of(tall)
            && tile.is_multiple_of(v)
            && (tile / v).is_multiple_of(tall);
        if !(steps && tile.is_power_of_two() && tile <= 1024) {
            let given = format!("{tile}, {tall} at a time by loads of {v}");
            return Err(Error::value("rows of a tile", "a power of two in whole steps, 1024 at most", given));
        }
        Ok(())
    }

    fn defines<T: Entry>(self) -> Vec<Define> {
        vec![
            ("ELEMENT", T::C.to_owned()),
            ("V", self.v.to_string()),
            ("TILE", self.tile.to_string()),
            ("TALL", self.tall.to_string()),
            ("STREAM", self.stream.to_string()),
        ]
    }
}

/// Elements that one load may move: 16 bytes at most, 4 elements at most since bytes are turned one by one,
/// and as many as both sides are multiples of.
fn widest<T: Entry>(rows: usize, columns: usize) -> u32 {
    let divides = |v: u32| rows.is_multiple_of(v as usize) && columns.is_multiple_of(v as usize);
    [4, 2].into_iter().find(|&v| v as usize * size_of::<T>() <= 16 && divides(v)).unwrap_or(1)
}

fn tiles(rows: usize, columns: usize, side: u32) -> u32 {
    let side = side as usize;
    u32::try_from(rows.div_ceil(side) as u64 * columns.div_ceil(side) as u64).unwrap_or(u32::MAX)
}

fn launch<T: Entry>(
    kernel: &Kernel,
    launch: Launch,
    [rows, columns]: [usize; 2],
    a: &Array<T>,
    b: &mut Array<T>,
) -> Result<()> {
    expect_len("matrix to transpose", &[rows, columns], a.len())?;
    expect_len("transpose of the matrix", &[columns, rows], b.len())?;
    let mut arguments = [a.cuda().into(), b.cuda_mut().into(), (rows as u64).into(), (columns as u64).into()];
    // SAFETY: both matrices have rows x columns elements, beyond which no kernel goes; the kernel's form has
    // passed `Form::check`, and the block is the one that it is made for.
    unsafe { kernel.launch(launch, &mut arguments) }
}

/// A kernel of the lectures' tiles.
pub(super) fn of_tiles<T: Entry>(
    cuda: &Cuda,
    kernel: &str,
    tall: u32,
    size: [usize; 2],
    a: &Array<T>,
    b: &mut Array<T>,
) -> Result<()> {
    let form = Form { tall, ..Form::PLAIN };
    form.check::<T>(size)?;
    let grid = Launch { blocks: [tiles(size[0], size[1], SIDE), 1, 1], threads: [SIDE, tall, 1], shared: 0 };
    launch(&form.kernel::<T>(cuda, kernel)?, grid, size, a, b)
}

/// Blocks of v×v elements, `x` by `y` of them a block of threads.
pub(super) fn registers<T: Entry>(
    cuda: &Cuda,
    form: Form,
    [x, y]: [u32; 2],
    size: [usize; 2],
    a: &Array<T>,
    b: &mut Array<T>,
) -> Result<()> {
    form.check::<T>(size)?;
    let [rows, columns] = size;
    let v = form.v as usize;
    let blocks = (rows / v).div_ceil(y as usize) as u64 * (columns / v).div_ceil(x as usize) as u64;
    let blocks = [u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1];
    let shape = Launch { blocks, threads: [x, y, 1], shared: 0 };
    launch(&form.kernel::<T>(cuda, "registers")?, shape, size, a, b)
}

/// Tiles through shared memory, `form.v` elements an access.
pub(super) fn wide<T: Entry>(
    cuda: &Cuda,
    form: Form,
    size: [usize; 2],
    a: &Array<T>,
    b: &mut Array<T>,
) -> Result<()> {
    form.check::<T>(size)?;
    let blocks = [tiles(size[0], size[1], form.tile), 1, 1];
    let threads = [form.tile / form.v, form.tall, 1];
    let shape = Launch { blocks, threads, shared: 0 };
    launch(&form.kernel::<T>(cuda, "wide")?, shape, size, a, b)
}
