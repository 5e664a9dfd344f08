//! The rows.

use rayspin_device::BackendKind;
use rayspin_tune::variant::{Variant, runs_all};
use rayspin_tune::{Published, Space, gpu};

use super::{Launch, Problem, cpu, cuda, pairs, work};

/// The lectures state the times, not the sizes.
pub(super) const PUBLISHED: &[Published] = &Published::on_processors([180.0, 45.0, 0.28]);

/// Rounding of a sum of tens of thousands of terms, and of places that are rounded to f32; 5.3e-7 at most was measured.
const TOLERANCE: f64 = 2e-6;

pub(super) fn variants() -> Vec<Variant<Problem, Launch>> {
    let row = |name, backend, summary, launch: Launch, refuses, reproduces| Variant {
        name,
        backend,
        summary,
        launch,
        refuses,
        work,
        tolerance: TOLERANCE,
        reproduces,
    };
    let on_cpu = |name, summary, launch: Launch, refuses: fn(&Problem) -> Option<String>, reproduces| {
        row(name, BackendKind::Cpu, summary, launch, refuses, reproduces)
    };
    let on_gpu = |name, summary, launch: Launch, reproduces| {
        row(name, BackendKind::Cuda, summary, launch, runs_all, reproduces)
    };
    vec![
        on_cpu(
            "scatter",
            "an atom at a time, all points of the grid, one thread",
            |_, d| {
                cpu::scatter(d.atoms.cpu(), &d.grid, d.v.cpu_mut());
                Ok(())
            },
            minutes,
            None,
        ),
        on_cpu(
            "gather",
            "a point at a time, all atoms",
            |_, d| {
                cpu::gather(d.atoms.cpu(), &d.grid, d.v.cpu_mut());
                Ok(())
            },
            minutes,
            Some("C on a CPU"),
        ),
        on_cpu(
            "simd",
            "vectors of points, dy² + dz² once for all of them, one thread",
            |_, d| {
                let level = d.v.device().cpu_side().level();
                cpu::simd(level, d.atoms.cpu(), &d.grid, d.v.cpu_mut());
                Ok(())
            },
            runs_all,
            None,
        ),
        on_cpu(
            "threads",
            "the same on all cores",
            |_, d| {
                let device = d.v.device().clone();
                cpu::threads(device.cpu_side(), d.atoms.cpu(), &d.grid, d.v.cpu_mut());
                Ok(())
            },
            runs_all,
            None,
        ),
        on_gpu("gpu-scatter", "a thread an atom, atomic sums", cuda::scatter, None),
        on_gpu("gpu-gather", "a thread a point, atoms from global memory", cuda::gather, None),
        on_gpu(
            "gpu-constant",
            "atoms from constant memory, a few of them a launch",
            |config, d| cuda::pieces("constant", config, d),
            None,
        ),
        on_gpu(
            "gpu-special",
            "the special-function unit's inverse root",
            |config, d| cuda::pieces("special", config, d),
            Some("CUDA on a GPU"),
        ),
        on_gpu(
            "gpu-points",
            "several points a thread, some roots by arithmetic",
            |config, d| {
                let device = d.v.device().clone();
                cuda::points(gpu(&device)?, config, &d.atoms, &d.grid, &mut d.v)
            },
            None,
        ),
    ]
}

pub(super) fn space(problem: &Problem, variant: &str) -> Space {
    match variant {
        "gpu-scatter" | "gpu-gather" => Space::none().axis("threads", &[32, 64, 128, 256, 512, 1024], 128),
        "gpu-constant" => cuda::pieces_space(false),
        "gpu-special" => cuda::pieces_space(true),
        "gpu-points" => {
            let grid = super::Grid { shape: problem.shape, origin: [0.0; 3], spacing: 1.0 };
            cuda::points_space(&grid)
        }
        _ => Space::none(),
    }
}

/// 4 ns a pair are what roots and quotients of one at a time take.
fn minutes(problem: &Problem) -> Option<String> {
    (pairs(problem) > 2e10)
        .then(|| format!("{problem}: {:.0e} pairs, which would take minutes", pairs(problem)))
}
