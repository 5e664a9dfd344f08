//! The GPUs whose kernels are compiled beforehand. Forms of kernels depend on a GPU's properties.

use rayspin_device::cuda::Properties;

/// A GPU of each kind, and the capability that its machine code is compiled for.
pub(crate) fn gpus() -> Vec<(Properties, (u32, u32))> {
    const KIB: u32 = 1 << 10;
    let of = |name: &str, capability, multiprocessors, shared_per_block, threads, gib: u64, cache: u64| {
        Properties {
            name: name.to_owned(),
            capability,
            multiprocessors,
            memory: gib << 30,
            cache: cache << 20,
            threads_per_block: 1024,
            threads_per_multiprocessor: threads,
            shared_per_block,
            shared_per_multiprocessor: shared_per_block + KIB,
            registers_per_multiprocessor: 65_536,
            driver: (12, 8),
        }
    };
    vec![
        (of("A100", (8, 0), 108, 163 * KIB, 2048, 80, 40), (8, 0)),
        // Code for 8.0 serves all 8.x. These have less shared memory than an A100, and so other forms.
        (of("RTX 4090", (8, 9), 128, 99 * KIB, 1536, 24, 72), (8, 0)),
        (of("H100", (9, 0), 132, 227 * KIB, 2048, 80, 50), (9, 0)),
        (of("B200", (10, 0), 148, 227 * KIB, 2048, 180, 126), (10, 0)),
        (of("RTX 5090", (12, 0), 170, 99 * KIB, 1536, 32, 96), (12, 0)),
    ]
}
