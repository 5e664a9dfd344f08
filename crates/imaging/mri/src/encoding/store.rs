//! Toeplitz kernels that outlive a run.

use rayspin_core::{C32, Result};
use rayspin_device::Array;
use rayspin_kernels::toeplitz::Toeplitz;
use rayspin_kernels::vector;
pub use rayspin_run::KernelStore;

use super::blocks::Transforms;

/// What decides a kernel's bits besides the trajectory and its weights: the library's version, the
/// instruction set, the order in memory.
fn key(plan: &Transforms, weights: Option<&[f32]>, tolerance: f64) -> [u8; 32] {
    let (mut hasher, trajectory) = (blake3::Hasher::new(), plan.trajectory());
    let device = match plan.device().backend() {
        rayspin_device::Backend::Cpu(cpu) => cpu.simd_name(),
        rayspin_device::Backend::Cuda(cuda) => &cuda.properties().name,
    };
    let head = format!(
        "Toeplitz spectrum in order {}, rayspin {}, {device}, {:?}, ",
        Toeplitz::<f32>::ORDER,
        env!("CARGO_PKG_VERSION"),
        plan.matrix()
    );
    hasher.update(head.as_bytes()).update(&tolerance.to_le_bytes());
    hasher.update(&(trajectory.dims() as u64).to_le_bytes());
    for k in trajectory.points() {
        hasher.update(&k.to_le_bytes());
    }
    for w in weights.into_iter().flatten() {
        hasher.update(&w.to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// The kernel from the store, or made and kept there.
pub(super) fn kept_or_made(
    store: &dyn KernelStore,
    plan: &Transforms,
    weights: Option<&[f32]>,
    tolerance: f64,
    notes: &mut Vec<String>,
) -> Result<Toeplitz<f32>> {
    let key = key(plan, weights, tolerance);
    let len = Toeplitz::<f32>::spectrum_len(plan.matrix())?;
    if let Some(values) = store.load(&key, len, notes)
        && let Ok(kernel) = Toeplitz::from_spectrum(plan.device(), plan.matrix(), values)
    {
        notes.push("the Toeplitz kernel comes from `--cache`".into());
        return Ok(kernel);
    }
    let kernel = toeplitz(plan, weights)?;
    notes.push("the Toeplitz kernel was not in `--cache`: it is computed and kept there".into());
    store.keep(&key, &kernel.spectrum()?, notes);
    Ok(kernel)
}

/// FᴴWF by the plan's own adjoint transform, with real weights W of the samples or 1.
pub(super) fn toeplitz(plan: &Transforms, weights: Option<&[f32]>) -> Result<Toeplitz<f32>> {
    let device = plan.device();
    let mut weighing = match weights {
        None => None,
        Some(weights) => Some((
            Array::from_slice(device, &[weights.len()], weights)?,
            Array::zeros(device, &[weights.len()])?,
        )),
    };
    let adjoint = &mut |phases: &Array<C32>, block: &mut Array<C32>| match &mut weighing {
        None => plan.adjoint(phases, block),
        Some((weights, weighted)) => {
            vector::weight(weights, phases, weighted)?;
            plan.adjoint(weighted, block)
        }
    };
    Toeplitz::from_adjoint(device, plan.trajectory(), plan.matrix(), adjoint)
}
