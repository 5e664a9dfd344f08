//! Rates of the GPUs that times are predicted for.

/// A GPU. Rates are of the whole card unless they say otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::ladder) struct Gpu {
    /// As `--on` takes it.
    pub(super) name: &'static str,
    pub(in crate::ladder) card: &'static str,
    pub(super) capability: (u32, u32),
    pub(super) multiprocessors: f64,
    /// Cycles a second under load.
    pub(super) clock: f64,
    /// Bytes a second from memory, as a copy reaches it.
    pub(super) memory: f64,
    /// Bytes a second from the second-level cache.
    pub(super) cache: f64,
    /// Bytes of the second-level cache.
    pub(super) cache_bytes: f64,
    /// Lanes that a multiprocessor serves in a cycle: single precision, integers, double precision, special
    /// functions.
    pub(super) single: f64,
    pub(super) integer: f64,
    pub(super) double: f64,
    pub(super) special: f64,
    /// Cycles until a load arrives: from memory, from the second-level cache, from shared memory.
    pub(super) wait_memory: f64,
    pub(super) wait_cache: f64,
    pub(super) wait_shared: f64,
    /// Atomic operations a cycle of the second-level cache, on different addresses; and cycles of one address
    /// for one.
    pub(super) atomics: f64,
    pub(super) same_address: f64,
    /// Seconds of a launch in a graph.
    pub(super) launch: f64,
    /// Where the numbers are from.
    pub(super) sources: &'static [&'static str],
}

const WHITE_PAPERS: &str = "NVIDIA's architecture white papers (multiprocessors, lanes, caches, memory)";
const GUIDE: &str = "CUDA C++ Programming Guide, \"Arithmetic Instructions\" (lanes a cycle)";

const ESTIMATES: &str =
    "estimates that no measurement of ours confirms: bandwidth of the second-level cache, atomics, launches";

const H100: Gpu = Gpu {
    name: "h100",
    card: "H100 SXM",
    capability: (9, 0),
    multiprocessors: 132.0,
    clock: 1.93e9,
    memory: 3.0e12,
    cache: 5.5e12,
    cache_bytes: 50e6,
    single: 128.0,
    integer: 64.0,
    double: 64.0,
    special: 16.0,
    wait_memory: 560.0,
    wait_cache: 270.0,
    wait_shared: 30.0,
    atomics: 2400.0,
    same_address: 21.0,
    launch: 2.2e-6,
    sources: &[
        WHITE_PAPERS,
        GUIDE,
        ESTIMATES,
        "Luo et al., \"Dissecting the NVIDIA Hopper Architecture through Microbenchmarking and Multiple Level Analysis\", 2025 (waits, rounded)",
        "benches/results/2026-11-21-h100/ladders.json (copy, single precision, special functions, shared memory; atomics of one \
         address: fitted to histogram gpu-device-memory)",
    ],
};

/// The GPUs.
pub(super) const ALL: [Gpu; 4] = [
    H100,
    Gpu {
        name: "h200",
        card: "H200 SXM",
        clock: 1.98e9,
        memory: 4.19e12,
        sources: &[
            WHITE_PAPERS,
            GUIDE,
            ESTIMATES,
            "Luo et al., \"Dissecting the NVIDIA Hopper Architecture through Microbenchmarking and Multiple Level Analysis\", 2025 (waits, rounded)",
            "benches/results/2026-11-28-h200/ladders.json (copy, clock); the rest is the H100's, which has the same chip",
        ],
        ..H100
    },
    Gpu {
        name: "a100",
        card: "A100 SXM 80 GB",
        capability: (8, 0),
        multiprocessors: 108.0,
        clock: 1.41e9,
        memory: 1.75e12,
        cache: 4.5e12,
        cache_bytes: 40e6,
        single: 64.0,
        integer: 64.0,
        double: 32.0,
        special: 16.0,
        wait_memory: 470.0,
        wait_cache: 200.0,
        wait_shared: 29.0,
        atomics: 1280.0,
        same_address: 1.0,
        launch: 2.5e-6,
        sources: &[
            WHITE_PAPERS,
            GUIDE,
            ESTIMATES,
            "Luo et al., \"Benchmarking and Dissecting the Nvidia Hopper GPU Architecture\", 2024 (waits, rounded)",
        ],
    },
    Gpu {
        name: "rtx4090",
        card: "GeForce RTX 4090",
        capability: (8, 9),
        multiprocessors: 128.0,
        clock: 2.52e9,
        memory: 0.92e12,
        cache: 4.5e12,
        cache_bytes: 72e6,
        single: 128.0,
        integer: 64.0,
        double: 2.0,
        special: 16.0,
        wait_memory: 540.0,
        wait_cache: 270.0,
        wait_shared: 30.0,
        atomics: 1500.0,
        same_address: 1.0,
        launch: 2.2e-6,
        sources: &[
            WHITE_PAPERS,
            GUIDE,
            ESTIMATES,
            "Luo et al., \"Benchmarking and Dissecting the Nvidia Hopper GPU Architecture\", 2024 (waits, rounded)",
        ],
    },
];
