//! The rows: every variant of the exact transforms.

use std::any::TypeId;

use num_complex::Complex;
use rayspin_core::{Result, Trajectory};
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::{Backend, BackendKind, Device};
use rayspin_tune::Build;

use super::cuda::Rung;
use super::grid::Grid;
use super::tune::{Host, samples, sums};
use super::{Operation, Problem, cpu};
use crate::variant::{Variant, Work};

/// From trajectory, grid and input to output, all flat, of the same batch and not empty.
///
/// Errors: memory, as of [`Kernel`].
pub(super) type Transform<T> =
    fn(&Host<'_>, &Trajectory, &Grid, &[Complex<T>], &mut [Complex<T>]) -> Result<()>;

/// From trajectory, matrix and real weights to Q, likewise.
pub(super) type Kernel<T> = fn(&Host<'_>, &Trajectory, &[usize], &[T], &mut [Complex<T>]) -> Result<()>;

/// One implementation of the three transforms.
pub enum Launch<T: SimdReal> {
    /// On a CPU, that beside a GPU included.
    Cpu(CpuLaunch<T>),
    /// On a GPU.
    Cuda(Rung),
}

/// One implementation on a CPU.
pub struct CpuLaunch<T: SimdReal> {
    pub(super) forward: Transform<T>,
    pub(super) adjoint: Transform<T>,
    pub(super) q: Kernel<T>,
}

/// Pairs that one thread's rows take on: a few seconds of them.
const MOST_OF_ONE_THREAD: f64 = 2e9;

/// Every variant, those of the CPU first, slowest first each; [`forward`](super::forward), [`adjoint`](super::adjoint) and [`q`](super::q)
/// run the last of the CPU, and on a GPU what the README says.
pub fn variants<T: SimdReal>() -> Vec<Variant<Problem, Launch<T>>> {
    let double = TypeId::of::<T>() == TypeId::of::<f64>();
    // Rows of 1e-5 add up all samples in one f32: 2.2e-6 of a ladder's case (benches/results/2026-11-21-h100/ladders.json), others round
    // phases and parts of sums. In f64 phases of hundreds of turns leave 4.6e-14.
    let within = |single: f64| if double { 1e-12 } else { single };
    let cpu = |name, summary, launch, single| {
        Variant::new(name, BackendKind::Cpu, summary, Launch::Cpu(launch), work::<T>)
            .tolerance(within(single))
    };
    let gpu = |rung: Rung, summary, single, forms: fn() -> Vec<Build>| {
        let row = Variant::new(rung.name(), BackendKind::Cuda, summary, Launch::Cuda(rung), work::<T>);
        let row = row.tolerance(within(single)).forms(forms);
        if rung == Rung::Naive { row } else { row.refuses(samples_to_image_only) }
    };
    // Only the first rows of the GPU do the work that is counted: the others share products between voxels, most of them on units that are
    // no multiply-adds of the peak.
    let mut rows = vec![
        cpu(
            "naive",
            "one thread scatters each input over all outputs; library sine and cosine",
            cpu::naive(),
            1e-5,
        )
        .refuses(too_long)
        .unforeseeable()
        .reproduces(if double { "CPU double" } else { "CPU single" }),
        cpu(
            "interchanged",
            "loops interchanged: one output at a time in registers, on all cores; library sine and cosine",
            cpu::interchanged(),
            1e-5,
        )
        .refuses(too_long)
        .unforeseeable(),
        cpu(
            "simd",
            "voxels in the lanes, polynomial sine and cosine, tiled over samples, on all cores",
            cpu::simd(),
            1e-6,
        )
        .space(|_| samples(&[64, 128, 256, 512, 1024]))
        .unforeseeable(),
        cpu(
            "separable",
            "phases of each axis once, then a register-blocked matrix product: 4 multiply-adds a pair",
            cpu::separable::plain(),
            1e-6,
        )
        .space(|_| sums())
        .unforeseeable(),
        cpu(
            "mirrored",
            "the same with mirrored voxels sharing products: 2 multiply-adds a pair, 1 for Q",
            cpu::separable::mirrored(),
            1e-6,
        )
        .space(|_| sums())
        .unforeseeable(),
        gpu(Rung::Naive, "one output a thread, f64 phases, library sine and cosine", 1e-5, || {
            Rung::Naive.forms::<T>()
        })
        .space(|_| Rung::Naive.space::<T>())
        .reproduces("GPU naive"),
        gpu(Rung::Constant, "samples in constant memory, a few of them a launch", 1e-5, || {
            Rung::Constant.forms::<T>()
        })
        .space(|_| Rung::Constant.space::<T>())
        .reproduces("GPU constant memory"),
    ];
    if !double {
        rows.extend([
            gpu(
                Rung::Sfu,
                "32-bit fixed-point phases, sine and cosine by the special-function units",
                1e-5,
                || Rung::Sfu.forms::<T>(),
            )
            .space(|_| Rung::Sfu.space::<T>())
            .reproduces("GPU + SFU"),
            gpu(
                Rung::Tuned,
                "the same, several voxels of a row a thread, which a sample's load serves together",
                1e-5,
                || Rung::Tuned.forms::<T>(),
            )
            .space(|_| Rung::Tuned.space::<T>())
            .reproduces("GPU + tuning"),
            gpu(
                Rung::Separable,
                "matrix product of separable phases, f32 multiply-adds: 2 a pair, 1 for Q",
                3e-6,
                || Rung::Separable.forms::<T>(),
            )
            .space(|_| Rung::Separable.space::<T>())
            .unforeseeable(),
        ]);
    }
    rows.push(
        gpu(
            Rung::Double,
            "the same product on the FP64 tensor cores (the emulator sums their operands by plain loops)",
            1e-6,
            || Rung::Double.forms::<T>(),
        )
        .space(|_| Rung::Double.space::<T>())
        .unforeseeable(),
    );
    if !double {
        rows.push(
            gpu(
                Rung::Tensor,
                "the same on the FP16 tensor cores, numbers in two halves (the emulator sums their operands by plain loops)",
                1e-6,
                || Rung::Tensor.forms::<T>(),
            )
            .space(|_| Rung::Tensor.space::<T>())
            .unforeseeable(),
        );
        rows.push(
            gpu(
                Rung::Wgmma,
                "the same by groups of four warps, columns read from shared memory (the emulator sums them by plain loops)",
                1e-6,
                || Rung::Wgmma.forms::<T>(),
            )
            .space(|_| Rung::Wgmma.space::<T>())
            .lacks(wgmma)
            .unforeseeable(),
        );
    }
    rows
}

/// The programs of all rows in both precisions.
pub(crate) fn builds() -> Vec<Build> {
    fn of<T: SimdReal>() -> impl Iterator<Item = Build> {
        variants::<T>().into_iter().flat_map(|row| (row.forms)())
    }
    of::<f32>().chain(of::<f64>()).collect()
}

fn wgmma(device: &Device) -> Option<String> {
    match device.backend() {
        Backend::Cuda(cuda) => Rung::Wgmma.expect_on(cuda).err().map(|error| error.to_string()),
        Backend::Cpu(_) => None,
    }
}

fn samples_to_image_only(problem: &Problem) -> Option<String> {
    (problem.operation == Operation::Forward).then(|| "made for samples to image only".to_owned())
}

fn too_long(problem: &Problem) -> Option<String> {
    let pairs = problem.pairs();
    (pairs > MOST_OF_ONE_THREAD).then(|| {
        format!("{pairs:.1e} pairs take too long without vectors: at most {MOST_OF_ONE_THREAD:.0e}, as in case 128x128")
    })
}

/// 12 flops a pair: ten of phase and complex multiply-add, two for sine and cosine, as the sources count.
fn work<T: SimdReal>(problem: &Problem) -> Work {
    let complex = size_of::<Complex<T>>() as f64;
    let dims = problem.matrix.len() as f64;
    let (batch, samples) = (problem.batch as f64, problem.samples as f64);
    let points = problem.pairs() / (batch * samples).max(1.0);
    let values = match problem.operation {
        Operation::Q => complex * points + 0.5 * complex * samples,
        Operation::Forward | Operation::Adjoint => complex * batch * (points + samples),
    };
    Work { bytes: values + size_of::<f64>() as f64 * dims * samples, flops: 12.0 * problem.pairs() }
}
