#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{Argument, Define, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::blocks::whole_warps;
use rayspin_tune::{Build, Config};

use super::Problem;

const LATTICE: (&str, &str) = ("lattice.cuh", include_str!("cuda/lattice.cuh"));
const KERNELS: (&str, &str) = ("kernels.cuh", include_str!("cuda/kernels.cuh"));

static TWO_ARRAYS: Source = Source {
    name: "lbm",
    files: &[LATTICE, ("two_arrays.cuh", include_str!("cuda/two_arrays.cuh")), KERNELS],
};
static IN_PLACE: Source = Source {
    name: "lbm_in_place",
    files: &[LATTICE, ("in_place.cuh", include_str!("cuda/in_place.cuh")), KERNELS],
};

static WORDS: Source =
    Source { name: "lbm_words", files: &[LATTICE, ("words.cuh", include_str!("cuda/words.cuh"))] };

/// Which program, and cells of a thread.
#[derive(Debug, Clone)]
pub(super) struct Form {
    build: Build,
    cells: usize,
    /// Numbers of f32 that hold a population of a cell, at most: 2 for two arrays.
    arrays: usize,
}

impl Form {
    pub(super) fn two_arrays(pull: bool, records: bool) -> Self {
        let defines = [("PULL", pull), ("RECORDS", records)];
        Self { build: build(&TWO_ARRAYS, &defines), cells: 1, arrays: 2 }
    }

    pub(super) fn in_place(half: bool) -> Self {
        Self { build: build(&IN_PLACE, &[("HALF", half)]), cells: 1, arrays: 1 }
    }

    /// Halves, two cells a thread.
    pub(super) fn words() -> Self {
        Self { build: build(&WORDS, &[("HALF", true)]), cells: 2, arrays: 1 }
    }

    pub(super) fn build(self) -> Build {
        self.build
    }
}

fn build(source: &'static Source, defines: &[(&'static str, bool)]) -> Build {
    let defines: Vec<Define> =
        defines.iter().map(|&(name, value)| (name, u32::from(value).to_string())).collect();
    Build { defines, ..Build::plain(source) }
}

/// Along y and z a grid has at most this number of blocks.
const MOST: usize = 65_535;

pub(super) fn refuses(p: &Problem) -> Option<String> {
    if p.shape[0].max(p.shape[1]) > MOST {
        return Some(format!("{p}: a grid has at most {MOST} blocks along y and z"));
    }
    (u32::try_from(p.cells()).is_err()).then(|| format!("{p}: kernels count at most {} cells", u32::MAX))
}

/// Words of two cells lie within a row.
pub(super) fn odd_rows(p: &Problem) -> Option<String> {
    (!p.shape[2].is_multiple_of(2)).then(|| format!("{p}: a thread takes two cells of a row"))
}

/// Density and velocity at the start, the populations, and the result.
pub(super) struct Arrays<'a> {
    pub(super) start: &'a Array<f32>,
    pub(super) f: &'a mut Array<f32>,
    pub(super) out: &'a mut Array<f32>,
}

/// All steps, from `start` to `out`.
pub(super) fn run(
    cuda: &Cuda,
    form: Form,
    config: &Config,
    p: &Problem,
    Arrays { start, f, out }: Arrays<'_>,
) -> Result<()> {
    let p = p.checked()?;
    let [nz, ny, nx] = p.shape;
    expect_len("start of a flow", &[4, p.cells()], start.len())?;
    expect_len("result of a flow", &[4, p.cells()], out.len())?;
    if f.len() < form.arrays * 19 * p.cells() {
        return Err(Error::shape("populations", &[form.arrays, 19, p.cells()], f.shape()));
    }
    if let Some(reason) = refuses(&p).or_else(|| (form.cells == 2).then(|| odd_rows(&p)).flatten()) {
        return Err(Error::value("cells of a flow", "as many as a grid covers", reason));
    }
    let (x, y) = (config.get("x")?.max(1), config.get("y")?.max(1));
    // Lanes of a warp exchange cells of a row.
    whole_warps(x)?;
    let blocks = [((nx / form.cells) as u32).div_ceil(x), (ny as u32).div_ceil(y), nz as u32];
    let shape = Launch { blocks, threads: [x, y, 1], shared: 0 };
    let walls = p.flow.walls.iter().fold(0, |bits, &wall| 2 * bits + i32::from(wall));
    let sizes = [(nx as i32).into(), (ny as i32).into(), (nz as i32).into(), walls.into()];
    let (omega, lid, force) = (p.flow.omega.into(), p.flow.lid.into(), p.flow.force.into());
    let kernel = |name| cuda.kernel(form.build.source, &form.build.defines, name);
    let launch = |name, arrays: [Argument<'_>; 2], rest: &[Argument<'_>]| {
        let arguments = &mut [&arrays[..], &sizes, rest].concat();
        // SAFETY: start and result have four numbers a cell and the populations 19 (or 38), of at most 4
        // bytes; threads beyond the box end.
        unsafe { kernel(name)?.launch(shape, arguments) }
    };
    launch("start", [start.cuda().into(), f.cuda_mut().into()], &[lid, force])?;
    let step = kernel("step")?;
    for turn in 1..p.steps {
        let turn = i32::from(turn % 2 == 1).into();
        let arguments = &mut [&[f.cuda_mut().into()], &sizes[..], &[omega, lid, force, turn]].concat();
        // SAFETY: as above; each thread of a step reads and writes populations of its own cells alone.
        unsafe { step.launch(shape, arguments) }?;
    }
    let turn = i32::from(p.steps % 2 == 1).into();
    launch("finish", [f.cuda().into(), out.cuda_mut().into()], &[lid, force, turn])
}
