#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config, gpu};

use super::{Data, Problem};

static SOURCE: Source =
    Source { name: "matrix_add", files: &[("matrix_add.cu", include_str!("cuda/matrix_add.cu"))] };

pub(super) fn forms() -> Vec<Build> {
    vec![Build::plain(&SOURCE)]
}

/// That all matrices have as many elements.
fn check(a: &Array<f32>, b: &Array<f32>, c: &Array<f32>) -> Result<()> {
    expect_len("second matrix", a.shape(), b.len())?;
    expect_len("sum of matrices", a.shape(), c.len())
}

pub(super) fn one_block(_: &Config, data: &mut Data) -> Result<()> {
    check(&data.a, &data.b, &data.c)?;
    let n = data.a.len();
    let device = data.a.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], "one_block")?;
    let mut arguments = [data.a.cuda().into(), data.b.cuda().into(), data.c.cuda_mut().into()];
    let threads = u32::try_from(n).unwrap_or(u32::MAX);
    // SAFETY: the matrices have as many elements as the block has threads.
    unsafe { kernel.launch(Launch::linear(1, threads), &mut arguments) }
}

pub(super) fn tiled_refuses(problem: &Problem) -> Option<String> {
    let most = i32::MAX as usize;
    // Blocks along y are at most 65535, of at least one row each.
    (problem.rows > 65535 || problem.columns > most)
        .then(|| format!("{problem}: a grid has at most 65535 blocks along y"))
}

pub(super) fn tiled(config: &Config, data: &mut Data) -> Result<()> {
    let (x, y) = (config.get("x")?, config.get("y")?);
    let device = data.a.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], "tiled")?;
    check(&data.a, &data.b, &data.c)?;
    expect_len("first matrix", &[data.problem.rows, data.problem.columns], data.a.len())?;
    if let Some(reason) = tiled_refuses(&data.problem) {
        return Err(Error::value("size of a matrix", "one that a grid covers", reason));
    }
    let (rows, columns) = (data.problem.rows as u32, data.problem.columns as u32);
    let launch = Launch { blocks: [columns.div_ceil(x), rows.div_ceil(y), 1], threads: [x, y, 1], shared: 0 };
    let mut arguments =
        [data.a.cuda().into(), data.b.cuda().into(), data.c.cuda_mut().into(), rows.into(), columns.into()];
    // SAFETY: the matrices have rows x columns elements.
    unsafe { kernel.launch(launch, &mut arguments) }
}

pub(super) fn wide(
    cuda: &Cuda,
    threads: u32,
    a: &Array<f32>,
    b: &Array<f32>,
    c: &mut Array<f32>,
) -> Result<()> {
    check(a, b, c)?;
    let n = a.len();
    let kernel = cuda.kernel(&SOURCE, &[], "wide")?;
    let mut arguments = [a.cuda().into(), b.cuda().into(), c.cuda_mut().into(), (n as u64).into()];
    // SAFETY: the matrices have n elements.
    unsafe { kernel.launch(Launch::covering(n.div_ceil(4), threads), &mut arguments) }
}
