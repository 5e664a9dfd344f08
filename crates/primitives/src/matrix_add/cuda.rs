use rayspin_core::Result;
use rayspin_device::cuda::{Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config, gpu};

use super::{Data, Problem};

pub(super) static SOURCE: Source =
    Source { name: "matrix_add", files: &[("matrix_add.cu", include_str!("cuda/matrix_add.cu"))] };

pub(crate) fn programs() -> Vec<Build> {
    vec![Build { source: &SOURCE, defines: vec![], spill_bytes: 0 }]
}

pub(super) fn one_block(_: &Config, data: &mut Data) -> Result<()> {
    let n = data.a.len();
    let device = data.a.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], "one_block")?;
    let mut arguments = [data.a.cuda().into(), data.b.cuda().into(), data.c.cuda_mut().into()];
    kernel.launch(Launch::linear(1, n as u32), &mut arguments)
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
    let (rows, columns) = (data.problem.rows as u32, data.problem.columns as u32);
    let launch = Launch { blocks: [columns.div_ceil(x), rows.div_ceil(y), 1], threads: [x, y, 1], shared: 0 };
    let mut arguments =
        [data.a.cuda().into(), data.b.cuda().into(), data.c.cuda_mut().into(), rows.into(), columns.into()];
    kernel.launch(launch, &mut arguments)
}

pub(super) fn wide(
    cuda: &Cuda,
    threads: u32,
    a: &Array<f32>,
    b: &Array<f32>,
    c: &mut Array<f32>,
) -> Result<()> {
    let n = a.len();
    let kernel = cuda.kernel(&SOURCE, &[], "wide")?;
    let mut arguments = [a.cuda().into(), b.cuda().into(), c.cuda_mut().into(), (n as u64).into()];
    kernel.launch(Launch::covering(n.div_ceil(4), threads), &mut arguments)
}
