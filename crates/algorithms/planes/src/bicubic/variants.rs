//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind;
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Build, Config, HostTransfer, Row, Space, TransferArray};

use super::{Bicubic, Data, Images, Kernel, Problem, SEGMENT, cuda, strips};

type Implementation = fn(&Config, &mut Data) -> Result<()>;

/// The same of bytes and of f32.
macro_rules! of_either {
    ($data:ident, $set:ident => $run:expr) => {
        match &mut $data.0 {
            Images::Bytes($set) => $run,
            Images::Floats($set) => $run,
        }
    };
}

pub(super) fn rows() -> Vec<Row<Bicubic>> {
    let a_thread =
        |name, summary, implementation| on_gpu(name, summary, run(implementation)).refuses(grid).space(plane);
    let fetched = |name, summary, implementation| {
        let run = run(implementation).set_up(|_, d| of_either!(d, set => set.set_up(true)));
        on_gpu(name, summary, run).space(plane)
    };
    vec![
        on_cpu("sixteen", "sixteen pixels and their weights, one thread", |_, d| {
            of_either!(d, set => {
                let kernel = set.problem.kernel;
                set.on_cpu(|job, _, out| {
                    job.scalar(kernel, out);
                    Ok(())
                })
            })
        }),
        on_cpu("tabled", "places and weights from tables", |_, d| {
            of_either!(d, set => set.on_cpu(|job, _, out| {
                job.tabled(out);
                Ok(())
            }))
        }),
        on_cpu(
            "simd",
            "along x four pixels an instruction, along y vectors",
            |_, d| of_either!(d, set => set.on_cpu(|job, cpu, out| job.vectors(cpu.level(), 0, out))),
        ),
        on_cpu(
            "threads",
            "the same on all cores, in bands",
            |_, d| of_either!(d, set => set.on_cpu(|job, cpu, out| job.threads(cpu, out))),
        ),
        cpu_strips(),
        a_thread("gpu-sixteen", "sixteen reads and their weights", |c, d| {
            of_either!(d, set => {
                let kernel = set.problem.kernel;
                set.on_gpu()?.0.sixteen(c.get("x")?, c.get("y")?, kernel)
            })
        }),
        a_thread(
            "gpu-tabled",
            "places and weights from tables",
            |c, d| of_either!(d, set => set.on_gpu()?.0.tabled(c.get("x")?, c.get("y")?)),
        ),
        fetched("gpu-points", "sixteen fetches of the texture unit", |c, d| {
            of_either!(d, set => {
                let (mut job, textures) = set.on_gpu()?;
                job.textured("points", c.get("x")?, c.get("y")?, textures.map(|t| &t[0]))
            })
        })
        .refuses(texture),
        fetched("gpu-four", "four fetches that the unit interpolates", |c, d| {
            of_either!(d, set => {
                let (mut job, textures) = set.on_gpu()?;
                job.textured("four", c.get("x")?, c.get("y")?, textures.map(|t| &t[1]))
            })
        })
        .refuses(four)
        // The texture unit rounds weights to 8 bits, by 2⁻⁹ along each of two axes, which sums of magnitudes
        // of weights make larger: 1.3e-3 at most was measured.
        .tolerance(8e-3),
        gpu_sliding(),
    ]
}

/// What [`resize`](super::resize) runs on a CPU.
pub(super) fn cpu_strips() -> Row<Bicubic> {
    on_cpu("strips", "along x sixteen columns by permutations, in strips", |c, d| {
        let columns = c.get("columns")? as usize;
        of_either!(d, set => set.on_cpu(|job, cpu, out| job.strips(cpu, columns, out)))
    })
    .space(|_| Space::none().axis("columns", &[256, 512, 1024, 2048, 4096, 8192], strips::COLUMNS as i64))
}

/// What [`resize`](super::resize) runs on a GPU.
pub(super) fn gpu_sliding() -> Row<Bicubic> {
    on_gpu(
        "gpu-sliding",
        "rows filtered along x stay in registers",
        run(|c, d| {
            let (threads, each) = (c.get("threads")?, c.get("each")? as usize);
            of_either!(d, set => set.on_gpu()?.0.sliding(threads, each))
        }),
    )
    .space(|_| {
        let each = [8, 16, 32, 64, 128, 256];
        Space::none().axis("threads", &[32, 64, 128, 256], 128).axis("each", &each, SEGMENT as i64)
    })
}

fn run(implementation: Implementation) -> Runnable<Problem, Data> {
    Runnable::new(implementation)
        .host_transfer(host_transfer)
        .set_up(|_, d| of_either!(d, set => set.set_up(false)))
}

fn on_cpu(name: &'static str, summary: &'static str, implementation: Implementation) -> Row<Bicubic> {
    row(name, BackendKind::Cpu, summary, run(implementation))
}

fn on_gpu(name: &'static str, summary: &'static str, run: Runnable<Problem, Data>) -> Row<Bicubic> {
    row(name, BackendKind::Cuda, summary, run).forms(|| vec![Build::plain(&cuda::SOURCE)])
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    run: Runnable<Problem, Data>,
) -> Row<Bicubic> {
    // Rounding of sixteen products: 9.8e-8 at most was measured.
    Variant::new(name, backend, summary, run, work).tolerance(6e-7)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    let (image, out): (&mut dyn TransferArray, &mut dyn TransferArray) =
        of_either!(data, set => (&mut set.image, &mut set.out));
    Some(HostTransfer { inputs: vec![image], outputs: vec![out] })
}

/// Blocks of a thread a pixel.
fn plane(_: &Problem) -> Space {
    Space::none()
        .axis("x", &[16, 32, 64, 128, 256], 32)
        .axis("y", &[1, 2, 4, 8, 16], 8)
        .where_(|c| c.find("x").zip(c.find("y")).is_some_and(|(x, y)| (32..=1024).contains(&(x * y))))
}

/// Each pixel of both images once; five products of four weights an output where rows are not resampled
/// twice.
fn work(problem: &Problem) -> Work {
    let [from, to] = [problem.from, problem.to].map(|[rows, columns]| rows as f64 * columns as f64);
    let along = problem.from[0].min(4 * problem.to[0]) as f64 * problem.to[1] as f64;
    Work { bytes: if problem.bytes { 1.0 } else { 4.0 } * (from + to), flops: 8.0 * (to + along) }
}

fn grid(problem: &Problem) -> Option<String> {
    (problem.to[0] > 65535).then(|| format!("{problem}: a grid has at most 65535 blocks along y"))
}

pub(super) fn texture(problem: &Problem) -> Option<String> {
    (problem.from[1] > 131_072 || problem.from[0] > 65_536)
        .then(|| format!("{problem}: a texture has at most 65536 x 131072 texels"))
        .or_else(|| grid(problem))
}

fn four(problem: &Problem) -> Option<String> {
    matches!(problem.kernel, Kernel::Keys(_))
        .then(|| format!("{problem}: weights of both signs; a fetch between two texels needs one sign"))
        .or_else(|| texture(problem))
}
