//! Another machine in the place of this one, for tests: its processor's name, its number of cores, and its
//! best instruction set.
//!
//! Results do not depend on any of them. A switch that names nothing sensible does nothing, and no
//! instruction set is assumed that the processor lacks.

/// `RAYSPIN_TEST_PROCESSOR`: the processor's name.
pub(super) fn processor() -> Option<String> {
    std::env::var("RAYSPIN_TEST_PROCESSOR").ok()
}

/// `RAYSPIN_TEST_CORES`: the number of cores, 1 to 64.
pub(super) fn cores() -> Option<usize> {
    std::env::var("RAYSPIN_TEST_CORES").ok()?.parse().ok().filter(|cores| (1..=64).contains(cores))
}

/// `RAYSPIN_TEST_SIMD`: the best instruction set, baseline or avx2.
pub(super) fn simd() -> Option<String> {
    std::env::var("RAYSPIN_TEST_SIMD").ok()
}
