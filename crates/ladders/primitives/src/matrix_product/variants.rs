//! The rows.

use rayspin_core::{Error, Result};
use rayspin_device::BackendKind::{self, Cpu, Cuda};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row, Space, gpu};

use super::cpu::Workers;
use super::{Data, MatrixProduct, Problem, cpu, cuda};

/// What a sum of products in f32 may be off: rounding of a few thousand sums, far less than one product.
const TOLERANCE: f64 = 1e-6;

pub(super) fn rows() -> Vec<Row<MatrixProduct>> {
    let on_cpu = |name, summary, implementation| row(name, Cpu, summary, implementation);
    vec![
        on_cpu("naive", "three loops as the formula has them, one thread", |_, d| {
            cpu::naive(d.a.cpu(), d.b.cpu(), d.c.cpu_mut(), d.problem);
            Ok(())
        })
        .refuses(minutes),
        on_cpu("interchanged", "the inner loop along rows of B and C", |_, d| {
            cpu::interchanged(d.a.cpu(), d.b.cpu(), d.c.cpu_mut(), d.problem);
            Ok(())
        }),
        on_cpu("tiled", "a tile of B that stays in cache while all rows pass", |_, d| {
            cpu::tiled(d.a.cpu(), d.b.cpu(), d.c.cpu_mut(), d.problem);
            Ok(())
        }),
        on_cpu("simd", "packed panels, sums in the widest vectors' registers, one thread", |config, d| {
            let level = d.a.device().cpu_side().level();
            packed(config, d, |_| Workers::one(level))
        })
        .space(cuts),
        cpu_threads(),
        row("gpu-naive", Cuda, "a thread an output", cuda::naive).space(naive).forms(cuda::naive_forms),
        row("gpu-tiled", Cuda, "tiles of A and B in shared memory", cuda::tiled)
            .space(|p| Space::none().axis("tile", if p.m < 256 { &[8, 16] } else { &[8, 16, 32] }, 16))
            .forms(cuda::tiled_forms)
            .reproduces("CUDA on a GPU"),
        row("gpu-registers", Cuda, "several outputs a thread, from registers", cuda::registers)
            .space(registers)
            .forms(cuda::registers_forms),
        gpu_wide(),
        row("gpu-async", Cuda, "several tiles under way that pass no register", |config, d| {
            let device = d.a.device().clone();
            cuda::stages(gpu(&device)?, config, [&d.a, &d.b], &mut d.c, &d.problem)
        })
        .space(stages)
        .forms(cuda::stages_forms),
    ]
}

/// What [`multiply`](super::multiply) runs on a CPU.
pub(super) fn cpu_threads() -> Row<MatrixProduct> {
    row("threads", Cpu, "the same on all cores", |config, d| packed(config, d, Workers::all))
        .space(cuts)
        .reproduces("C on a CPU")
}

/// What [`multiply`](super::multiply) runs on a GPU.
pub(super) fn gpu_wide() -> Row<MatrixProduct> {
    row("gpu-wide", Cuda, "16-byte loads, tiles of warps, the next tile under way", |config, d| {
        let device = d.a.device().clone();
        cuda::wide(gpu(&device)?, config, [&d.a, &d.b], &mut d.c, &d.problem)
    })
    .space(wide)
    .forms(cuda::wide_forms)
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<MatrixProduct> {
    Variant::new(name, backend, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
        .tolerance(TOLERANCE)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: vec![&mut data.a, &mut data.b], outputs: vec![&mut data.c] })
}

fn cuts(_: &Problem) -> Space {
    let space = Space::none().axis("inner", &[64, 128, 256, 384, 512], 256);
    space.axis("rows", &[24, 48, 96, 192, 384], 96)
}

fn naive(_: &Problem) -> Space {
    Space::none()
        .axis("x", &[16, 32, 64, 128], 32)
        .axis("y", &[1, 2, 4, 8, 16], 8)
        .where_(|c| matches!(c.find("x").zip(c.find("y")), Some((x, y)) if (64..=1024).contains(&(x * y))))
}

/// The numbers of a tile as an axis of a space, each at most what the matrix fills.
fn tiles(problem: &Problem) -> (Vec<i64>, Vec<i64>, [i64; 2]) {
    let within = |n: usize| match n {
        1024.. => (vec![64, 128, 256], 128),
        256..1024 => (vec![64, 128, 256], 64),
        _ => (vec![64], 64),
    };
    let ((bm, m), (bn, n)) = (within(problem.m), within(problem.n));
    (bm, bn, [m, n])
}

/// What `wide` and `stages` leave open; by default tiles `bk` deep and `rows` rows a thread, which spill no
/// registers.
fn warp_tiles(problem: &Problem, bk: i64, rows: i64) -> Space {
    let (bm, bn, [m, n]) = tiles(problem);
    let large = problem.m.min(problem.n) >= 256;
    let sides: &[i64] = if large { &[4, 8, 16] } else { &[8] };
    Space::none()
        .axis("bm", &bm, m)
        .axis("bn", &bn, n)
        .axis("bk", if large { &[8, 16, 32] } else { &[] }, bk)
        .axis("tm", sides, if m == 128 { rows } else { 8 })
        .axis("tn", sides, 8)
        .axis("blocks", if large { &[1, 2, 3, 4] } else { &[1] }, if large { 2 } else { 1 })
}

/// Requires whole warps, enough registers for each thread, and room for tiles of `shared` numbers in shared
/// memory.
///
/// A thread needs registers for its sums, for two lines of operands, for `addresses`, and for the `ahead`
/// loads of 16 bytes that it has under way.
fn fits(
    config: &Config,
    addresses: i64,
    ahead: impl Fn(i64, i64, i64, i64) -> i64,
    shared: impl Fn(i64, i64, i64) -> i64,
) -> bool {
    let value = |name| config.find(name).unwrap_or(0);
    let [bm, bn, bk, tm, tn] = ["bm", "bn", "bk", "tm", "tn"].map(value);
    if tm * tn < 16 || tm * tn > 128 || bm % (4 * tm) != 0 || bn % (8 * tn) != 0 {
        return false;
    }
    let threads = (bm / tm) * (bn / tn);
    if !(32..=512).contains(&threads) {
        return false;
    }
    let registers = tm * tn + 2 * (tm + tn) + addresses + 4 * ahead(bm, bn, bk, threads);
    // A thread has 255; from 240 estimated ones on some were kept in memory.
    registers <= 232
        && registers * threads * value("blocks") <= 65_536
        && 4 * shared(bm, bn, bk) * value("blocks") <= 224 * 1024
}

fn registers(problem: &Problem) -> Space {
    let (bm, bn, [m, n]) = tiles(problem);
    let large = problem.m.min(problem.n) >= 256;
    Space::none()
        .axis("bm", &bm, m)
        .axis("bn", &bn, n)
        .axis("bk", if large { &[8, 16, 32] } else { &[8] }, 8)
        .axis("tm", if large { &[2, 4, 8] } else { &[4] }, if large { 8 } else { 4 })
        .axis("tn", if large { &[2, 4, 8] } else { &[4] }, if large { 8 } else { 4 })
        .where_(|c| {
            let value = |name| c.find(name).unwrap_or(1);
            let threads = value("bm") / value("tm") * (value("bn") / value("tn"));
            (64..=512).contains(&threads) && 4 * value("bk") * (value("bm") + 1 + value("bn")) <= 48 * 1024
        })
}

fn wide(problem: &Problem) -> Space {
    warp_tiles(problem, 8, 8).axis("buffers", &[1, 2], 2).where_(|c| {
        let buffers = c.find("buffers").unwrap_or(1);
        let ceil = |loads: i64, threads: i64| (loads + threads - 1) / threads;
        let ahead = |bm, bn, bk, threads| ceil(bm * bk / 4, threads) + ceil(bn * bk / 4, threads);
        // Shared memory that a kernel declares is at most 48 KB.
        fits(c, 24, ahead, |bm, bn, bk| buffers * bk * (bm + 4 + bn))
            && buffers
                * 4
                * c.find("bk").unwrap_or(0)
                * (c.find("bm").unwrap_or(0) + 4 + c.find("bn").unwrap_or(0))
                <= 48 * 1024
    })
}

fn stages(problem: &Problem) -> Space {
    let large = problem.m.min(problem.n) >= 256;
    warp_tiles(problem, 16, 16).axis("stages", if large { &[2, 3, 4, 5] } else { &[2, 3] }, 3).where_(|c| {
        let stages = c.find("stages").unwrap_or(1);
        fits(c, 40, |_, _, _, _| 0, |bm, bn, bk| stages * (bm * (bk + 4) + bk * bn))
    })
}

fn packed<'a>(
    config: &Config,
    data: &'a mut Data,
    on: impl FnOnce(&'a rayspin_device::Cpu) -> Workers<'a>,
) -> Result<()> {
    let cut = cpu::Cut::of(config)?;
    let Data { a, b, c, room, problem, .. } = data;
    let room = room
        .as_mut()
        .ok_or_else(|| Error::value("device of a matrix product", "a CPU", a.device().describe()))?;
    let matrices = cpu::Matrices { a: a.cpu(), b: b.cpu(), c: c.cpu_mut(), p: *problem };
    cpu::packed(on(a.device().cpu_side()), cut, room, matrices);
    Ok(())
}

/// Each matrix once; a multiplication and an addition a triple.
fn work(p: &Problem) -> Work {
    let [m, n, k] = [p.m, p.n, p.k].map(|n| n as f64);
    Work { bytes: 4.0 * (m * k + k * n + m * n), flops: 2.0 * m * n * k }
}

/// Columns of B are read with a stride: beyond the caches a cache line for every product.
fn minutes(problem: &Problem) -> Option<String> {
    let products = problem.m as f64 * problem.n as f64 * problem.k as f64;
    (products > 1e10).then(|| format!("{problem}: {products:.0e} products, which would take minutes"))
}
