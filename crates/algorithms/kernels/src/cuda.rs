//! Helpers of all CUDA kernels.

use rayspin_core::{Real, Result};
use rayspin_device::Cuda;
use rayspin_device::cuda::{Define, Properties, Source};
use rayspin_tune::Build;

/// Pairs of coils and teams of lanes, for kernels that take one voxel's small matrix together.
pub(crate) const TEAM: (&str, &str) = ("team.cuh", include_str!("team.cuh"));

/// The macro that sets a program's `real` and `cplx` to the types of `R`.
pub(crate) fn define<R: Real>() -> Define {
    ("DOUBLE", u32::from(size_of::<R>() == 8).to_string())
}

/// The builds of a source in both precisions, without spills.
pub(crate) fn both(source: &'static Source) -> Vec<Build> {
    [build::<f32>(source), build::<f64>(source)].into()
}

/// The build of a source in single precision, without spills.
pub(crate) fn single(source: &'static Source) -> Vec<Build> {
    vec![build::<f32>(source)]
}

fn build<R: Real>(source: &'static Source) -> Build {
    Build { source, defines: vec![define::<R>()], spill_bytes: 0 }
}

/// Keeps the builds that compute in `R`.
pub(crate) fn in_precision<R: Real>(mut builds: Vec<Build>) -> Vec<Build> {
    builds.retain(|build| build.defines.contains(&define::<R>()));
    builds
}

/// The form of a kernel for one problem if the GPU offers its program, else the general form. A form is the
/// data of a launch and the macros of its program.
pub(crate) fn exact_or_general<T>(
    cuda: &Cuda,
    source: &'static Source,
    exact: (T, Vec<Define>),
    general: impl FnOnce() -> Result<(T, Vec<Define>)>,
) -> Result<(T, Vec<Define>)> {
    if cuda.offers(source, &exact.1) { Ok(exact) } else { general() }
}

/// The shared memory that blocks of current GPUs may have, for programs whose form depends on it.
pub(crate) fn limits() -> Properties {
    Properties {
        name: String::new(),
        capability: (9, 0),
        multiprocessors: 132,
        memory: 80 << 30,
        cache: 50 << 20,
        threads_per_block: 1024,
        threads_per_multiprocessor: 2048,
        shared_per_block: 227 << 10,
        shared_per_multiprocessor: 228 << 10,
        registers_per_multiprocessor: 65536,
        driver: (13, 0),
    }
}

/// The devices that run CUDA kernels here: the emulator, and the GPU where there is one.
#[cfg(test)]
pub(crate) fn gpus() -> &'static [rayspin_device::Device] {
    use rayspin_device::{Device, cuda};
    static GPUS: std::sync::OnceLock<Vec<Device>> = std::sync::OnceLock::new();
    GPUS.get_or_init(|| {
        let mut gpus = vec![rayspin_emu::Emulator::device().unwrap()];
        gpus.extend(cuda::count().is_ok().then(|| Device::cuda(0, Device::cpu().unwrap()).unwrap()));
        gpus
    })
}
