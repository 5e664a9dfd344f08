//! The rows.

use rayspin_device::BackendKind;
use rayspin_tune::Space;
use rayspin_tune::variant::{Variant, Work, runs_all};

use super::reference::{FIELDS, Pattern, READS};
use super::{Data, Launch, Problem, Topic, cpu, cuda};

type Row = Variant<Problem, Launch>;

fn row(name: &'static str, summary: &'static str, launch: Launch, work: fn(&Problem) -> Work) -> Row {
    let backend = if name.starts_with("gpu-") { BackendKind::Cuda } else { BackendKind::Cpu };
    Variant { name, backend, summary, launch, refuses: runs_all, work, tolerance: 0.0, reproduces: None }
}

fn bytes(bytes: f64) -> Work {
    Work { bytes, flops: 0.0 }
}

/// Bytes that a kernel asks for; of those that hardware moves beside them none count.
fn copied(p: &Problem) -> Work {
    bytes(8.0 * p.n as f64)
}
fn indexed(p: &Problem) -> Work {
    bytes(12.0 * p.n as f64)
}
fn all_fields(p: &Problem) -> Work {
    bytes(4.0 * (FIELDS + 1) as f64 * p.n as f64)
}
fn texels(p: &Problem) -> Work {
    bytes(8.0 * (p.n as f64).powi(2))
}
fn reads(p: &Problem, width: f64) -> Work {
    bytes((READS * READS) as f64 * width * p.n as f64)
}

pub(super) fn variants(problem: &Problem) -> Vec<Row> {
    match problem.topic {
        Topic::Order => order(),
        Topic::Records => records(),
        Topic::Banks => vec![
            row("gpu-banks-1", "bytes", |c, d| cuda::banks(1, c, d), |p| reads(p, 1.0)),
            row("gpu-banks-4", "4 bytes", |c, d| cuda::banks(4, c, d), |p| reads(p, 4.0)),
            row("gpu-banks-8", "8 bytes", |c, d| cuda::banks(8, c, d), |p| reads(p, 8.0)),
            row("gpu-banks-16", "16 bytes", |c, d| cuda::banks(16, c, d), |p| reads(p, 16.0)),
        ],
        Topic::Constant => vec![
            row("gpu-constant", "constant memory", |c, d| cuda::table(true, c, d), |p| reads(p, 4.0)),
            row(
                "gpu-global",
                "global memory, by its caches",
                |c, d| cuda::table(false, c, d),
                |p| reads(p, 4.0),
            ),
        ],
        Topic::Texture => vec![
            row("gpu-image", "from global memory", |c, d| cuda::image(false, c, d), texels),
            row("gpu-texture", "through a texture", |c, d| cuda::image(true, c, d), texels),
        ],
    }
}

fn order() -> Vec<Row> {
    vec![
        row(
            "random",
            "all cores, in the order of a random permutation",
            |_, d| on_cpu(Pattern::Random, d),
            indexed,
        ),
        row(
            "stride",
            "all cores, `stride` words between neighbours",
            |c, d| on_cpu(Pattern::Stride(c.get("stride")? as usize), d),
            copied,
        ),
        row("copy", "all cores, in order", |_, d| on_cpu(Pattern::Offset(0), d), copied),
        row("gpu-random", "in the order of a random permutation", |_, d| cuda::random(d), indexed),
        row(
            "gpu-stride",
            "`stride` words between neighbours",
            |c, d| cuda::strided(c.get("stride")?, d),
            copied,
        ),
        row(
            "gpu-permuted",
            "another order within segments",
            |c, d| {
                let by = c.get("segment")?;
                cuda::copy("permuted", by, Pattern::Permuted(by as usize), d)
            },
            copied,
        ),
        row(
            "gpu-offset",
            "in order, from `offset` words behind a boundary",
            |c, d| {
                let by = c.get("offset")?.min(d.problem.n as u32 - 1);
                cuda::copy("offset", by, Pattern::Offset(by as usize), d)
            },
            copied,
        ),
        row("gpu-copy", "in order", |_, d| cuda::copy("offset", 0, Pattern::Offset(0), d), copied),
    ]
}

fn records() -> Vec<Row> {
    vec![
        row(
            "by-columns",
            "all cores, a field of all records after the other",
            |_, d| fields_on_cpu(1, d),
            all_fields,
        ),
        row("by-rows", "all cores, a record after the other", |_, d| fields_on_cpu(0, d), all_fields),
        row(
            "gpu-one-by-rows",
            "one field of each record",
            |_, d| cuda::records(0, [FIELDS, 0], 1, d),
            copied,
        ),
        row(
            "gpu-one-by-columns",
            "one field, which is an array",
            |_, d| cuda::records(1, [1, 0], 1, d),
            copied,
        ),
        row(
            "gpu-by-rows",
            "array of structures",
            |_, d| cuda::records(0, [FIELDS, 1], FIELDS, d),
            all_fields,
        ),
        row(
            "gpu-pitched",
            "array of structures padded to 128 bytes",
            |_, d| cuda::records(2, [FIELDS + 2, 1], FIELDS, d),
            all_fields,
        ),
        row(
            "gpu-by-columns",
            "structure of arrays",
            |_, d| {
                let n = d.problem.n;
                cuda::records(1, [1, n], FIELDS, d)
            },
            all_fields,
        ),
    ]
}

fn on_cpu(pattern: Pattern, data: &mut Data) -> rayspin_core::Result<()> {
    data.ran = Some(pattern);
    let device = data.out.device().clone();
    let (input, index) = (data.inputs[0].cpu(), data.inputs[1].cpu());
    cpu::copy(device.cpu_side(), pattern, input, index, data.out.cpu_mut());
    Ok(())
}

/// Input 0 is by rows, 1 by columns.
fn fields_on_cpu(which: usize, data: &mut Data) -> rayspin_core::Result<()> {
    data.ran = Some(Pattern::Records(FIELDS));
    let device = data.out.device().clone();
    let steps = if which == 0 { [FIELDS, 1] } else { [1, data.problem.n] };
    cpu::records(device.cpu_side(), steps, data.inputs[which].cpu(), data.out.cpu_mut());
    Ok(())
}

pub(super) fn space(variant: &str) -> Space {
    let none = Space::none();
    match variant {
        "stride" | "gpu-stride" => {
            none.axis("stride", &[1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 128], 32)
        }
        "gpu-permuted" => none.axis("segment", &[8, 16, 32, 64, 128, 256, 1024], 32),
        "gpu-offset" => {
            none.axis("offset", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33], 1)
        }
        "gpu-banks-1" | "gpu-banks-4" | "gpu-banks-8" | "gpu-banks-16" => {
            let strides: Vec<i64> = (0..=33).chain([48, 64]).collect();
            none.axis("stride", &strides, 1)
        }
        "gpu-constant" | "gpu-global" => none.axis("stride", &[0, 1, 2, 3, 4, 8, 16, 32], 0),
        "gpu-image" | "gpu-texture" => none.axis("x", &[1, 2, 4, 8, 16, 32, 64, 128, 256], 32),
        _ => none,
    }
}
