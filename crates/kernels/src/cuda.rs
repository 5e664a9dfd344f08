//! What all CUDA kernels have in common, and the list of them all.

use rayspin_core::Real;
use rayspin_device::cuda::{Define, Source};

/// The macro that makes a program's `real` and `cplx` those of `R`.
pub(crate) fn define<R: Real>() -> Define {
    ("DOUBLE", u32::from(size_of::<R>() == 8).to_string())
}

/// A program as it is compiled for use.
pub struct Build {
    /// Its source.
    pub source: &'static Source,
    /// The macros that fix one of its forms.
    pub defines: Vec<Define>,
    /// Bytes of registers that its kernels may spill, with the reason beside the row.
    pub spill_bytes: u32,
}

/// Every program in every form that matters to its resources: what continuous integration compiles without a GPU.
pub fn programs() -> Vec<Build> {
    let both = |source: &'static Source| {
        ["0", "1"].map(|double| Build {
            source,
            defines: vec![("DOUBLE", double.to_owned())],
            spill_bytes: 0,
        })
    };
    let mut all = Vec::new();
    for source in [
        &crate::vector::SOURCE,
        &crate::sensitivity::SOURCE,
        &crate::difference::SOURCE,
        &crate::shrink::SOURCE,
        &crate::wavelet::SOURCE,
    ] {
        all.extend(both(source));
    }
    all
}
