//! The list of all CUDA programs.

use rayspin_core::Real;
use rayspin_tune::{Build, distinct};

/// Every program of every folder, in every form that matters to its resources. Continuous integration
/// compiles them without a GPU.
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

/// Bytes of shared memory that a block may have: capabilities 8.6, 8.9 and 12; 8.0 and 8.7; 9, 10 and 11.
const SHARED: [u32; 3] = [99 << 10, 163 << 10, 227 << 10];

/// The general programs, which a machine without a compiler loads where exact ones are not precompiled
/// ([`rayspin_device::Cuda::offers`]), with Fourier transforms of up to `longest` points. `usize::MAX` gives
/// all lengths that have kernels.
pub fn precompiled(longest: usize) -> Vec<Build> {
    let mut builds = programs();
    for shared in SHARED {
        builds.extend(of_type::<f32>(longest, shared));
        builds.extend(of_type::<f64>(longest, shared));
    }
    let mut seen = std::collections::HashSet::new();
    builds.retain(|build| seen.insert((std::ptr::from_ref(build.source).addr(), build.defines.clone())));
    builds
}

fn of_type<R: Real>(longest: usize, shared: u32) -> Vec<Build> {
    let longest = longest.min(crate::fft::cuda::line::LONGEST);
    let mut builds = crate::fft::cuda::precompiled::<R>(longest, shared);
    builds.extend(crate::toeplitz::precompiled::<R>(longest, shared));
    if size_of::<R>() == 4 {
        builds.extend(crate::row_filter::precompiled(longest, shared));
    }
    builds.extend(crate::nufft::cuda::precompiled::<R>(shared, &[crate::density::window()]));
    builds
}
