#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{Argument, Define, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config};

use super::Problem;

const YEE: (&str, &str) = ("yee.cuh", include_str!("cuda/yee.cuh"));
static PASSES: Source =
    Source { name: "fdtd_passes", files: &[YEE, ("01_passes.cu", include_str!("cuda/01_passes.cu"))] };
static FUSED: Source =
    Source { name: "fdtd_fused", files: &[YEE, ("02_fused.cu", include_str!("cuda/02_fused.cu"))] };
static BLOCKED: Source =
    Source { name: "fdtd_blocked", files: &[YEE, ("03_blocked.cu", include_str!("cuda/03_blocked.cu"))] };

/// The most steps of a pass.
pub(super) const MOST_STEPS: u32 = 4;

fn define<const N: usize>(values: [(&'static str, u32); N]) -> Vec<Define> {
    values.map(|(name, value)| (name, value.to_string())).to_vec()
}

fn dims(p: &Problem) -> u32 {
    if p.flat() { 2 } else { 3 }
}

fn passes_defines(dims: u32, strided: bool) -> Vec<Define> {
    define([("DIMS", dims), ("STRIDED", strided.into())])
}

fn blocked_defines(dims: u32, [steps, tx, ty]: [u32; 3]) -> Vec<Define> {
    define([("DIMS", dims), ("STEPS", steps), ("TX", tx), ("TY", ty)])
}

pub(super) fn passes_forms(strided: bool) -> Vec<Build> {
    [2, 3].map(|dims| Build { defines: passes_defines(dims, strided), ..Build::plain(&PASSES) }).to_vec()
}

pub(super) fn fused_forms() -> Vec<Build> {
    [2, 3].map(|dims| Build { defines: define([("DIMS", dims)]), ..Build::plain(&FUSED) }).to_vec()
}

pub(super) fn blocked_forms() -> Vec<Build> {
    [(2, [4, 32, 32]), (2, [1, 64, 8]), (3, [2, 32, 16]), (3, [1, 32, 16]), (3, [4, 32, 16])]
        .map(|(dims, form)| Build { defines: blocked_defines(dims, form), ..Build::plain(&BLOCKED) })
        .to_vec()
}

/// Along y and z a grid has at most this number of blocks.
const MOST: usize = 65_535;

pub(super) fn refuses(p: &Problem) -> Option<String> {
    (p.shape[0].max(p.shape[1]) > MOST)
        .then(|| format!("{p}: a grid has at most {MOST} blocks along y and z"))
}

/// Errors: arrays of another length, more blocks than a grid has.
fn sizes<'a>(p: &Problem, arrays: &[&Array<f32>]) -> Result<[Argument<'a>; 3]> {
    let p = p.checked()?;
    if let Some(reason) = refuses(&p) {
        return Err(Error::value("cells of a field", "as many as a grid covers", reason));
    }
    for array in arrays {
        expect_len("fields", &[p.fields(), p.cells()], array.len())?;
    }
    let [nz, ny, nx] = p.shape;
    Ok([(nx as i32).into(), (ny as i32).into(), (nz as i32).into()])
}

/// A pass for H and a pass for E, a thread a cell.
pub(super) fn passes(
    cuda: &Cuda,
    config: &Config,
    p: &Problem,
    strided: bool,
    start: &Array<f32>,
    out: &mut Array<f32>,
) -> Result<()> {
    let sizes = sizes(p, &[start, out])?;
    let threads = config.get("threads")?.max(1);
    if p.cells().div_ceil(threads as usize) > i32::MAX as usize {
        return Err(Error::value("cells of a field", "at most 2^31 blocks of them", p));
    }
    let shape = Launch::covering(p.cells(), threads);
    let defines = passes_defines(dims(p), strided);
    let kernels = [cuda.kernel(&PASSES, &defines, "magnetic")?, cuda.kernel(&PASSES, &defines, "electric")?];
    for step in 0..p.steps {
        for kernel in &kernels {
            let arrays = [start.cuda().into(), out.cuda_mut().into()];
            let arguments = &mut [&arrays[..], &sizes, &[i32::from(step == 0).into()]].concat();
            // SAFETY: both arrays hold all components of all cells, and threads beyond the last cell end.
            unsafe { kernel.launch(shape, arguments) }?;
        }
    }
    Ok(())
}

/// The fields at the start, room for others, and the result.
pub(super) struct Fields<'a> {
    pub(super) start: &'a Array<f32>,
    pub(super) room: &'a mut Array<f32>,
    pub(super) out: &'a mut Array<f32>,
}

/// `launches` launches of `launch`(arguments of the arrays, number): from the start, between room and result,
/// to the result.
fn between(
    Fields { start, room, out }: Fields<'_>,
    launches: usize,
    launch: impl Fn([Argument<'_>; 2], usize) -> Result<()>,
) -> Result<()> {
    for number in 0..launches {
        let to_result = (launches - number) % 2 == 1;
        let (from, to) = if to_result { (&*room, &mut *out) } else { (&*out, &mut *room) };
        let from = if number == 0 { start } else { from };
        launch([from.cuda().into(), to.cuda_mut().into()], number)?;
    }
    Ok(())
}

/// A step a pass.
pub(super) fn fused(cuda: &Cuda, config: &Config, p: &Problem, fields: Fields<'_>) -> Result<()> {
    let sizes = sizes(p, &[fields.start, fields.room, fields.out])?;
    let kernel = cuda.kernel(&FUSED, &define([("DIMS", dims(p))]), "fused")?;
    let (x, y) = (config.get("x")?.max(1), config.get("y")?.max(1));
    let [nz, ny, nx] = p.shape.map(|n| n as u32);
    let shape = Launch { blocks: [nx.div_ceil(x), ny.div_ceil(y), nz], threads: [x, y, 1], shared: 0 };
    between(fields, p.steps, |arrays, _| {
        let arguments = &mut [&arrays[..], &sizes].concat();
        // SAFETY: all arrays hold all components of all cells, and threads beyond the box end.
        unsafe { kernel.launch(shape, arguments) }
    })
}

/// Several steps a pass.
pub(super) fn blocked(cuda: &Cuda, config: &Config, p: &Problem, fields: Fields<'_>) -> Result<()> {
    let sizes = sizes(p, &[fields.start, fields.room, fields.out])?;
    let [steps, tx, ty, planes] = ["steps", "tx", "ty", "planes"].map(|name| config.get(name));
    let (steps, tx, ty, planes) = (steps?, tx?, ty?, planes?);
    let fits = (1..=MOST_STEPS).contains(&steps) && tx.min(ty) > 2 * steps && planes > 0;
    if !fits || tx.saturating_mul(ty) > 1024 {
        let expected = format!("1 to {MOST_STEPS} steps of tiles wider than twice their number");
        return Err(Error::value("configuration of a field", expected, config));
    }
    let [nz, ny, nx] = p.shape.map(|n| n as u32);
    let count = p.steps.div_ceil(steps as usize);
    between(fields, count, |arrays, number| {
        // The first pass makes what is left over.
        let steps = if number == 0 { (p.steps - (count - 1) * steps as usize) as u32 } else { steps };
        let kernel = cuda.kernel(&BLOCKED, &blocked_defines(dims(p), [steps, tx, ty]), "blocked")?;
        let blocks = [nx.div_ceil(tx - 2 * steps), ny.div_ceil(ty - 2 * steps), nz.div_ceil(planes)];
        let shape = Launch { blocks, threads: [tx, ty, 1], shared: 0 };
        let arguments = &mut [&arrays[..], &sizes, &[planes.min(nz).cast_signed().into()]].concat();
        // SAFETY: all arrays hold all components of all cells; threads read and write cells inside the box
        // alone.
        unsafe { kernel.launch(shape, arguments) }
    })
}
