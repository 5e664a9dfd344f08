//! The rows: every variant of the exact transforms.

use std::any::TypeId;

use num_complex::Complex;
use rayspin_core::{Result, Trajectory};
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::{Backend, BackendKind, Device};
use rayspin_tune::{Build, Peak};

use super::cuda::CudaVariant;
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
pub enum Implementation<T: SimdReal> {
    /// On a CPU, that beside a GPU included.
    Cpu(CpuImplementation<T>),
    /// On a GPU.
    Cuda(CudaVariant),
}

/// One implementation on a CPU.
pub struct CpuImplementation<T: SimdReal> {
    pub(super) forward: Transform<T>,
    pub(super) adjoint: Transform<T>,
    pub(super) q: Kernel<T>,
}

/// Pairs that one thread's rows take on: a few seconds of them.
const MOST_OF_ONE_THREAD: f64 = 2e9;

/// Every variant: the CPU's, then the GPU's, each slowest first. [`forward`](super::forward),
/// [`adjoint`](super::adjoint) and [`q`](super::q) run the CPU's last variant. The README lists the variants
/// that they run on a GPU.
pub fn variants<T: SimdReal>() -> Vec<Variant<Problem, Implementation<T>>> {
    let double = is_double::<T>();
    let mut rows = vec![
        on_cpu(
            "naive",
            "one thread scatters each input over all outputs; library sine and cosine",
            cpu::naive(),
            1e-5,
        )
        .refuses(too_long)
        .reproduces(if double { "CPU double" } else { "CPU single" }),
        on_cpu(
            "interchanged",
            "loops interchanged: one output at a time in registers, on all cores; library sine and cosine",
            cpu::interchanged(),
            1e-5,
        )
        .refuses(too_long),
        on_cpu(
            "simd",
            "voxels in the lanes, polynomial sine and cosine, tiled over samples, on all cores",
            cpu::simd(),
            1e-6,
        )
        .space(|_| samples(&[64, 128, 256, 512, 1024])),
        on_cpu(
            "separable",
            "phases of each axis once, then a register-blocked matrix product: 4 multiply-adds a pair",
            cpu::separable::plain(),
            1e-6,
        )
        .space(|_| sums())
        .counting(work_of_products::<T, 4, 4>),
        mirrored(),
    ];
    let single = [
        CudaVariant::Fixed,
        CudaVariant::Sfu,
        CudaVariant::Tuned,
        CudaVariant::Separable,
        CudaVariant::Tensor,
        CudaVariant::Wgmma,
    ];
    let variants = CudaVariant::ALL.into_iter().filter(|variant| !(double && single.contains(variant)));
    rows.extend(variants.map(on_gpu));
    rows
}

/// The variant that the public functions run on a CPU.
pub(super) fn mirrored<T: SimdReal>() -> Variant<Problem, Implementation<T>> {
    on_cpu(
        "mirrored",
        "the same with mirrored voxels sharing products: 2 multiply-adds a pair, 1 for Q",
        cpu::separable::mirrored(),
        1e-6,
    )
    .space(|_| sums())
    .counting(work_of_products::<T, 2, 1>)
}

fn on_cpu<T: SimdReal>(
    name: &'static str,
    summary: &'static str,
    implementation: CpuImplementation<T>,
    single: f64,
) -> Variant<Problem, Implementation<T>> {
    Variant::new(name, BackendKind::Cpu, summary, Implementation::Cpu(implementation), work::<T>)
        .tolerance(tolerance::<T>(single))
        .unpredictable()
}

/// The row of a variant. The first five compute each pair by itself; the others share products between
/// voxels, most of them on tensor cores.
pub(super) fn on_gpu<T: SimdReal>(variant: CudaVariant) -> Variant<Problem, Implementation<T>> {
    let row = |summary, single, forms: fn() -> Vec<Build>, space| {
        let row = Variant::new(
            variant.name(),
            BackendKind::Cuda,
            summary,
            Implementation::Cuda(variant),
            work::<T>,
        );
        let row = row.tolerance(tolerance::<T>(single)).forms(forms).space(space);
        if variant == CudaVariant::Naive { row } else { row.refuses(samples_to_image_only) }
    };
    macro_rules! row {
        ($variant:ident, $summary:expr, $single:expr) => {
            row(
                $summary,
                $single,
                || CudaVariant::$variant.forms::<T>(),
                |_: &Problem| CudaVariant::$variant.space::<T>(),
            )
        };
    }
    match variant {
        CudaVariant::Naive => row!(Naive, "one output a thread, f64 phases, library sine and cosine", 1e-5)
            .reproduces("GPU naive"),
        CudaVariant::Constant => row!(Constant, "samples in constant memory, a few of them a launch", 1e-5)
            .reproduces("GPU constant memory"),
        CudaVariant::Fixed => row!(Fixed, "the same, phases of 32-bit fixed point in place of f64", 1e-5),
        CudaVariant::Sfu => row!(Sfu, "the same, sine and cosine by the special-function units", 1e-5)
            .reproduces("GPU + SFU"),
        CudaVariant::Tuned => row!(
            Tuned,
            "the same, several voxels of a row a thread, which a sample's load serves together",
            1e-5
        )
        .reproduces("GPU + tuning"),
        CudaVariant::Separable => row!(
            Separable,
            "matrix product of separable phases, f32 multiply-adds: 2 a pair, 1 for Q",
            3e-6
        )
        .counting(work_of_products::<T, 2, 1>)
        .unpredictable(),
        CudaVariant::Double => row!(
            Double,
            "the same product on the FP64 tensor cores (the emulator sums their operands by plain loops)",
            1e-6
        )
        .counting(work_of_products::<T, 2, 1>)
        .on(Peak::TensorF64)
        .unpredictable(),
        CudaVariant::Tensor => row!(
            Tensor,
            "the same on the FP16 tensor cores, numbers in two halves (the emulator sums their operands by plain loops)",
            1e-6
        )
        .counting(work_of_products::<T, 6, 3>)
        .on(Peak::TensorF16)
        .unpredictable(),
        CudaVariant::Wgmma => row!(
            Wgmma,
            "the same by groups of four warps, columns read from shared memory (the emulator sums them by plain loops)",
            1e-6
        )
        .lacks(wgmma)
        .counting(work_of_products::<T, 6, 3>)
        .on(Peak::TensorF16)
        .unpredictable(),
    }
}

/// Rows of 1e-5 add up all samples in one f32: 2.2e-6 of a ladder's case
/// (benches/results/2026-11-21-h100/ladders.json), others round phases and parts of sums. In f64 phases of
/// hundreds of turns leave 4.6e-14.
fn tolerance<T: SimdReal>(single: f64) -> f64 {
    if is_double::<T>() { 1e-12 } else { single }
}

fn is_double<T: SimdReal>() -> bool {
    TypeId::of::<T>() == TypeId::of::<f64>()
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
        Backend::Cuda(cuda) => CudaVariant::Wgmma.expect_on(cuda).err().map(|error| error.to_string()),
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

/// The lecture's operations a pair ([`Problem::flops`]): what variants do that compute each pair by itself.
fn work<T: SimdReal>(problem: &Problem) -> Work {
    let complex = size_of::<Complex<T>>() as f64;
    let dims = problem.matrix.len() as f64;
    let (batch, samples) = (problem.batch as f64, problem.samples as f64);
    let points = problem.pairs() / (batch * samples).max(1.0);
    let values = match problem.operation {
        Operation::Q => complex * points + 0.5 * complex * samples,
        Operation::Forward | Operation::Adjoint => complex * batch * (points + samples),
    };
    Work { bytes: values + size_of::<f64>() as f64 * dims * samples, flops: problem.flops() }
}

/// Matrix products of phases: `PAIR` multiply-adds a pair, `Q` for the kernel Q.
fn work_of_products<T: SimdReal, const PAIR: u32, const Q: u32>(problem: &Problem) -> Work {
    let products = if problem.operation == Operation::Q { Q } else { PAIR };
    Work { flops: 2.0 * f64::from(products) * problem.pairs(), ..work::<T>(problem) }
}
