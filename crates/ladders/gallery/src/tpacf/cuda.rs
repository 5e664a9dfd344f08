#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{Argument, Define, Launch, Source, View};
use rayspin_device::{Array, Device, Element};
use rayspin_tune::blocks::expect;
use rayspin_tune::{Build, Config, Space, gpu};

use super::{BINS, Data, Problem, cpu, edges};

static SOURCE: Source = Source { name: "tpacf", files: &[("tpacf.cu", include_str!("cuda/tpacf.cu"))] };

fn defines(threads: u32, each: u32, atomic: u32) -> Vec<Define> {
    vec![("THREADS", threads.to_string()), ("EACH", each.to_string()), ("ATOMIC", atomic.to_string())]
}

fn form([threads, each, atomic]: [u32; 3]) -> Build {
    Build { source: &SOURCE, defines: defines(threads, each, atomic), spill_bytes: 0 }
}

pub(super) fn forms() -> Vec<Build> {
    vec![form([128, 1, 0])]
}

pub(super) fn bits_forms() -> Vec<Build> {
    [[128, 4, 0], [256, 8, 1]].map(form).to_vec()
}

pub(super) fn space(_: &Problem) -> Space {
    Space::none().axis("threads", &[32, 64, 128, 256], 128)
}

pub(super) fn bits_space(problem: &Problem) -> Space {
    // A block for small problems has few points, so that there are enough blocks.
    let each = if problem.points < 4096 { 1 } else { 4 };
    space(problem).axis("each", &[1, 2, 4, 8], each).axis("atomic", &[0, 1], 0)
}

/// The edges, and the intervals that have one each, on a device.
pub(super) struct Tables {
    pub(super) edges: Array<f32>,
    intervals: Array<[u32; 2]>,
}

impl Tables {
    pub(super) fn new(device: &Device) -> Result<Self> {
        let intervals = cpu::intervals().map(|(edge, before)| [edge.to_bits(), before]);
        Ok(Self {
            edges: Array::from_slice(device, &[edges().len()], &edges())?,
            intervals: Array::from_slice(device, &[intervals.len()], &intervals)?,
        })
    }
}

/// A kernel of `each` points a thread, over all rows.
fn launch<T: Element>(
    (name, [threads, each, atomic], columns): (&str, [u32; 3], bool),
    problem: &Problem,
    points: &Array<f32>,
    table: View<'_, T>,
    counts: &mut Array<u32>,
) -> Result<()> {
    expect("threads of a block", 32..=1024, threads)?;
    expect("points of a thread", 1..=64, each)?;
    if !threads.is_multiple_of(32) {
        return Err(Error::value("threads of a block", "a multiple of 32", threads));
    }
    expect_len("points on the sky", &problem.shape(), points.len())?;
    expect_len("counts of pairs", &[problem.rows(), BINS], counts.len())?;
    let device = points.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCE, &defines(threads, each, atomic), name)?;
    counts.fill(0)?;
    // At most MOST_POINTS points, and at most 2 · MOST_SETS + 1 rows.
    let tiles = problem.points.div_ceil((threads * each) as usize) as u32;
    let shared = if columns { BINS * threads as usize * size_of::<u32>() } else { 0 };
    let shape = Launch { blocks: [tiles, problem.rows() as u32, 1], threads: [threads, 1, 1], shared: 0 };
    let arguments = &mut [
        points.cuda().into(),
        Argument::count(problem.points)?,
        Argument::count(problem.sets)?,
        table.into(),
        counts.cuda_mut().into(),
    ];
    // SAFETY: points and counts have these sizes, to which the kernel holds; shared memory has a column of
    // counts for each thread.
    unsafe { kernel.launch(shape.with_shared(shared), arguments) }
}

/// The kernels of one point a thread that look for edges.
pub(super) fn by_edges(name: &str, columns: bool, config: &Config, data: &mut Data) -> Result<()> {
    let Data { problem, points, tables, counts, .. } = data;
    let form = (name, [config.get("threads")?, 1, 0], columns);
    launch(form, problem, points, on_gpu(tables.as_ref(), points)?.edges.cuda(), counts)
}

pub(super) fn bits(
    config: &Config,
    problem: &Problem,
    points: &Array<f32>,
    tables: &Tables,
    counts: &mut Array<u32>,
) -> Result<()> {
    let form = [config.get("threads")?, config.get("each")?, config.get("atomic")?];
    launch(("bits", form, true), problem, points, tables.intervals.cuda(), counts)
}

/// [`bits`] on a ladder's data.
pub(super) fn bits_of(config: &Config, data: &mut Data) -> Result<()> {
    let Data { problem, points, tables, counts, .. } = data;
    bits(config, problem, points, on_gpu(tables.as_ref(), points)?, counts)
}

pub(super) fn on_gpu<'a>(tables: Option<&'a Tables>, points: &Array<f32>) -> Result<&'a Tables> {
    tables.ok_or_else(|| Error::value("device of counts of pairs", "a GPU", points.device().describe()))
}
