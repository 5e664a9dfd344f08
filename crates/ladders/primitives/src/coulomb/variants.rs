//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind::{self, Cpu, Cuda};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row, Space, gpu};

use super::{Coulomb, Data, Problem, cpu, cuda, pairs};

/// Rounding of a sum of tens of thousands of terms, and of places that are rounded to f32; 5.3e-7 at most was
/// measured.
const TOLERANCE: f64 = 2e-6;

pub(super) fn rows() -> Vec<Row<Coulomb>> {
    let threads = |_: &Problem| Space::none().axis("threads", &[32, 64, 128, 256, 512, 1024], 128);
    vec![
        row("scatter", Cpu, "an atom at a time, all points of the grid, one thread", |_, d| {
            cpu::scatter(d.atoms.cpu(), &d.grid, d.v.cpu_mut());
            Ok(())
        })
        .refuses(minutes),
        row("gather", Cpu, "a point at a time, all atoms", |_, d| {
            cpu::gather(d.atoms.cpu(), &d.grid, d.v.cpu_mut());
            Ok(())
        })
        .refuses(minutes)
        .reproduces("C on a CPU"),
        row("simd", Cpu, "vectors of points, dy² + dz² once for all of them, one thread", |_, d| {
            let level = d.v.device().cpu_side().level();
            cpu::simd(level, d.atoms.cpu(), &d.grid, d.v.cpu_mut());
            Ok(())
        }),
        row("threads", Cpu, "the same on all cores", |_, d| {
            let device = d.v.device().clone();
            cpu::threads(device.cpu_side(), d.atoms.cpu(), &d.grid, d.v.cpu_mut());
            Ok(())
        }),
        row("gpu-scatter", Cuda, "a thread an atom, atomic sums", cuda::scatter)
            .space(threads)
            .forms(cuda::plain_forms),
        row("gpu-gather", Cuda, "a thread a point, atoms from global memory", cuda::gather)
            .space(threads)
            .forms(cuda::plain_forms),
        row("gpu-constant", Cuda, "atoms from constant memory, a few of them a launch", |config, d| {
            cuda::pieces("constant", config, d)
        })
        .space(|_| pieces(2, 2048))
        .forms(cuda::pieces_forms),
        row("gpu-special", Cuda, "the special-function unit's inverse root", |config, d| {
            cuda::pieces("special", config, d)
        })
        .space(|_| pieces(16, 512))
        .forms(cuda::pieces_forms)
        .reproduces("CUDA on a GPU"),
        gpu_points(),
    ]
}

/// What [`potential`](super::potential) runs on a GPU.
pub(super) fn gpu_points() -> Row<Coulomb> {
    row("gpu-points", Cuda, "several points a thread, some roots by arithmetic", |config, d| {
        let device = d.v.device().clone();
        cuda::points(gpu(&device)?, config, &d.atoms, &d.grid, &mut d.v)
    })
    .space(points)
    .forms(cuda::points_forms)
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Coulomb> {
    Variant::new(name, backend, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
        .tolerance(TOLERANCE)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: vec![&mut data.atoms], outputs: vec![&mut data.v] })
}

/// The same space as for the exact transforms' variants with samples in constant memory, where atoms are
/// here.
///
/// Tuning found the defaults on an H100 (`benches/results/2026-11-21-h100/coulomb.txt`): 32 and 8 KB a
/// launch.
fn pieces(unroll: i64, atoms: i64) -> Space {
    Space::none()
        .axis("unroll", &[1, 2, 4, 8, 16], unroll)
        .axis("threads", &[32, 64, 128, 256, 512], 512)
        .axis("atoms", &[32, 64, 128, 256, 512, 1024, 2048, 4096], atoms)
}

fn points(problem: &Problem) -> Space {
    let row = problem.shape[2];
    // Points beyond the end of a row are work for nothing; small problems need no large space.
    let most = row.next_multiple_of(32).max(64) as i64;
    let within = |values: &[i64]| values.iter().copied().filter(|&n| n <= most).collect::<Vec<_>>();
    let (threads, points) = match row {
        512.. => (64, 8),
        256..512 => (64, 4),
        _ => (32, 2),
    };
    Space::none()
        .axis("threads", &within(&[32, 64, 128, 256, 512]), threads)
        .axis("points", &within(if row < 256 { &[2] } else { &[1, 2, 4, 8, 16] }), points)
        .axis("unroll", if row < 256 { &[4] } else { &[1, 2, 4, 8] }, if row < 256 { 4 } else { 8 })
        .axis("soft", if row < 256 { &[0, 1] } else { &[0, 1, 2, 3, 4] }, 1)
        .where_(|c| c.find("soft").unwrap_or(0) < c.find("points").unwrap_or(1).max(2))
}

/// Atoms read, points written; of a pair three differences, three squares in two sums, a root, a quotient, a
/// sum.
fn work(problem: &Problem) -> Work {
    let points: f64 = problem.shape.iter().map(|&n| n as f64).product();
    Work { bytes: 16.0 * problem.atoms as f64 + 4.0 * points, flops: 11.0 * pairs(problem) }
}

/// 4 ns a pair are what roots and quotients of one at a time take.
fn minutes(problem: &Problem) -> Option<String> {
    (pairs(problem) > 2e10)
        .then(|| format!("{problem}: {:.0e} pairs, which would take minutes", pairs(problem)))
}
