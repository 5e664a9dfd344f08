//! Helpers of all CUDA kernels, and the list of all programs.

use rayspin_core::{Real, Result};
use rayspin_device::Cuda;
use rayspin_device::cuda::{Define, Properties, Source};
use rayspin_tune::{Build, distinct};

/// Pairs of coils and teams of lanes, for kernels that take one voxel's small matrix together.
pub(crate) const TEAM: (&str, &str) = ("team.cuh", include_str!("team.cuh"));

/// What kernels over real or complex numbers share.
pub(crate) const SCALAR: (&str, &str) = ("scalar.cuh", include_str!("scalar.cuh"));

/// The builds of a source over real and complex numbers in both precisions, without spills.
pub(crate) fn scalars(source: &'static Source) -> Vec<Build> {
    let build = |defines| Build { source, defines, spill_bytes: 0 };
    vec![
        build(crate::vector::defines::<num_complex::Complex32>()),
        build(crate::vector::defines::<num_complex::Complex64>()),
        build(crate::vector::defines::<f32>()),
        build(crate::vector::defines::<f64>()),
    ]
}

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

/// Every program of every folder, in every form that matters to its resources. Continuous integration compiles them without
/// a GPU.
pub fn programs() -> Vec<Build> {
    let folders = [
        crate::coil_mixing::builds,
        crate::density::builds,
        crate::difference::builds,
        crate::espirit::builds,
        crate::fft::cuda::builds,
        crate::gram::builds,
        crate::grappa::builds,
        crate::nudft::builds,
        crate::nufft::cuda::builds,
        crate::off_resonance::builds,
        crate::pocs::builds,
        crate::projection::builds,
        crate::render::builds,
        crate::row_filter::builds,
        crate::select::builds,
        crate::sensitivity::builds,
        crate::shrink::builds,
        crate::toeplitz::builds,
        crate::vector::builds,
        crate::walsh::builds,
        crate::wavelet::builds,
        crate::window::builds,
    ];
    distinct(folders.iter().flat_map(|builds| builds()))
}

/// A form of a kernel for one problem where the GPU offers its program, or else the general form. Each is what a launch needs,
/// and its macros.
pub(crate) fn exact_or_general<T>(
    cuda: &Cuda,
    source: &'static Source,
    exact: (T, Vec<Define>),
    general: impl FnOnce() -> Result<(T, Vec<Define>)>,
) -> Result<(T, Vec<Define>)> {
    if cuda.offers(source, &exact.1) { Ok(exact) } else { general() }
}

/// Bytes of shared memory that a block may have: capabilities 8.6, 8.9 and 12; 8.0 and 8.7; 9, 10 and 11.
const SHARED: [u32; 3] = [99 << 10, 163 << 10, 227 << 10];

/// The general programs, which a machine without a compiler loads where exact ones are not precompiled
/// ([`rayspin_device::Cuda::offers`]), with Fourier transforms of up
/// to `longest` points. `usize::MAX` gives all lengths that have kernels.
pub fn precompiled(longest: usize) -> Vec<Build> {
    let mut all = programs();
    for shared in SHARED {
        all.extend(of_type::<f32>(longest, shared));
        all.extend(of_type::<f64>(longest, shared));
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|build| seen.insert((std::ptr::from_ref(build.source).addr(), build.defines.clone())));
    all
}

fn of_type<R: Real>(longest: usize, shared: u32) -> Vec<Build> {
    let longest = longest.min(crate::fft::cuda::line::LONGEST);
    let mut all = crate::fft::cuda::precompiled::<R>(longest, shared);
    all.extend(crate::toeplitz::precompiled::<R>(longest, shared));
    if size_of::<R>() == 4 {
        all.extend(crate::row_filter::precompiled(longest, shared));
    }
    all.extend(crate::nufft::cuda::precompiled::<R>(shared, &[crate::density::window()]));
    all
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
