//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind;
use rayspin_tune::{Config, Row, Runnable, Space, Variant, Work};

use super::cuda::{self, Form};
use super::ladder::{Problem, Transpose, Type, Ways};

/// Every element read and written once.
fn work(problem: &Problem) -> Work {
    let bytes = match problem.element {
        Type::U8 => 1.0,
        Type::F32 => 4.0,
        Type::F64 => 8.0,
    };
    Work { bytes: 2.0 * bytes * problem.rows as f64 * problem.columns as f64, flops: 0.0 }
}

fn lectures(_: &Problem) -> Space {
    Space::none().axis("tall", &[4, 8, 16], 8)
}

fn usual(&Problem { rows, columns, element }: &Problem) -> Form {
    match element {
        Type::U8 => Form::usual::<u8>(rows, columns),
        Type::F32 => Form::usual::<f32>(rows, columns),
        Type::F64 => Form::usual::<f64>(rows, columns),
    }
}

/// Elements of a load, as many at most as the usual form has.
fn loads(usual: Form) -> Space {
    let widest = i64::from(usual.v);
    let loads: Vec<i64> = [1, 2, 4].into_iter().filter(|&v| v <= widest).collect();
    Space::none().axis("v", &loads, widest)
}

fn registers(problem: &Problem) -> Space {
    loads(usual(problem))
        .axis("x", &[4, 8, 16, 32], 8)
        .axis("y", &[4, 8, 16, 32], 32)
        .axis("stream", &[0, 1], 0)
        .where_(|c| matches!(c.find("x").zip(c.find("y")), Some((x, y)) if x * y >= 64))
}

fn wide(problem: &Problem) -> Space {
    let usual = usual(problem);
    // The shared memory of a tile of 128: 16 KB of bytes, more than a block may declare of others.
    let tiles: &[i64] = if problem.element == Type::U8 { &[32, 64, 128] } else { &[32, 64] };
    loads(usual)
        .axis("tile", tiles, usual.tile.into())
        .axis("tall", &[2, 4, 8, 16], usual.tall.into())
        .axis("stream", &[0, 1], 0)
        .where_(|c| {
            let value = |name| c.find(name).unwrap_or(0);
            let words = value("tile") / value("v").max(1);
            (64..=1024).contains(&(words * value("tall"))) && value("tall") <= words
        })
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: impl Fn(&Config, &mut Box<dyn Ways>) -> Result<()> + Send + Sync + 'static,
) -> Row<Transpose> {
    Variant::new(
        name,
        backend,
        summary,
        Runnable::new(implementation).host_transfer(|d| Some(d.host_transfer())),
        work,
    )
}

pub(super) fn rows() -> Vec<Row<Transpose>> {
    use BackendKind::{Cpu, Cuda};
    let lecture = |name, reproduces, summary, kernel, copies| {
        row(name, Cuda, summary, move |c, d| d.of_tiles(kernel, copies, c))
            .reproduces(reproduces)
            .space(lectures)
            .forms(cuda::lecture_forms)
    };
    let shared = "a copy by way of shared memory, to compare with";
    vec![
        row("naive", Cpu, "one thread, an element at a time", |_, d| d.naive()),
        row("tiled", Cpu, "one thread, tiles that a cache holds", |_, d| d.tiled()),
        row("simd", Cpu, "one thread, tiles turned in vector registers", |_, d| d.simd()),
        row("threads", Cpu, "the same on all cores", |_, d| d.threads()),
        lecture("gpu-copy", "copy", "a copy, to compare with", "copy", true).to_compare(),
        lecture("gpu-copy-shared", "copy through shared", shared, "copy_shared", true).to_compare(),
        lecture("gpu-naive", "naive", "writes strewn over all rows", "naive", false),
        lecture(
            "gpu-coalesced",
            "coalesced",
            "a tile in shared memory, both sides by rows",
            "coalesced",
            false,
        ),
        lecture("gpu-padded", "padded", "a tile whose columns are spread over the banks", "padded", false),
        row("gpu-registers", Cuda, "blocks turned in registers, no shared memory", |c, d| d.registers(c))
            .space(registers)
            .forms(cuda::register_forms),
        gpu_wide(),
    ]
}

/// What [`transpose`](super::transpose) runs on a GPU.
pub(super) fn gpu_wide() -> Row<Transpose> {
    let summary = "blocks turned in registers, whole rows by way of shared memory";
    row("gpu-wide", BackendKind::Cuda, summary, |c, d| d.wide(c)).space(wide).forms(cuda::wide_forms)
}
