//! What works without a C++ compiler, without NVRTC and without a GPU.

use rayspin::core::Error;

/// Without a C++ compiler.
pub(crate) const COMPILER: &str = "without a C++ compiler rayspin-ladder NAME runs the CPU's variants, and list, explain, source, compare, \
                                   applications (published figures) and tune --replay work";
/// Without NVRTC.
pub(crate) const NVRTC: &str = "without NVRTC --emulate and try run CUDA sources on the CPU (with a C++ compiler), and source prints them";
/// Without a GPU.
pub(crate) const GPU: &str = "without a GPU --emulate and try run CUDA sources on the CPU (with a C++ compiler), applications shows \
                              published figures, and --device cpu runs the CPU's variants";

/// An error of something that the machine lacks, with what works without it.
#[derive(Debug)]
pub(crate) struct Missing {
    source: Error,
    /// What works.
    pub(crate) hint: &'static str,
}

impl Missing {
    /// Says what works without it.
    pub(crate) fn with(hint: &'static str) -> impl FnOnce(Error) -> Self {
        move |source| Self { source, hint }
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.source.fmt(f)
    }
}

impl std::error::Error for Missing {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
