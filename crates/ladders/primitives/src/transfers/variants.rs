//! The rows.

use rayspin_core::Result;
use rayspin_device::{BackendKind, HostCopy};
use rayspin_tune::{Config, Row, Runnable, Space, Variant, Work};

use super::{Data, Problem, Topic, Transfers, cuda};

/// Bytes over the link, and the operations between.
fn work(p: &Problem) -> Work {
    let n = p.n as f64;
    match p.topic {
        Topic::Upload | Topic::Download => Work { bytes: 4.0 * n, flops: 0.0 },
        Topic::Both => Work { bytes: 8.0 * n, flops: 0.0 },
        Topic::Overlap => Work { bytes: 8.0 * n, flops: 2.0 * f64::from(p.rounds) * n },
    }
}

/// KiB of a copy, in powers of 4 up to all of the largest case.
const KIB: [i64; 9] = [4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10];

fn pieces(_: &Problem) -> Space {
    Space::none().axis("kib", &KIB, 256 << 10)
}

/// Powers of two, which leave equal parts: the parts' kernels are then one, as the tuner sees it.
fn parts(_: &Problem) -> Space {
    Space::none().axis("parts", &[1, 2, 4, 8, 16, 32, 64, 128], 32)
}

/// None is the best from host to host: a run begins or ends on the host already.
fn row(
    name: &'static str,
    summary: &'static str,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Transfers> {
    Variant::new(name, BackendKind::Cuda, summary, Runnable::new(implementation), work).to_compare()
}

pub(super) fn rows(problem: &Problem) -> Vec<Row<Transfers>> {
    use HostCopy::{Staged, Unstaged};
    type Implementation = fn(&Config, &mut Data) -> Result<()>;
    let copy =
        |name, summary, implementation: Implementation| row(name, summary, implementation).space(pieces);
    let mapped = |summary, implementation: Implementation| {
        row("gpu-mapped", summary, implementation).space(pieces).forms(cuda::forms)
    };
    let worked =
        |name, summary, implementation: Implementation| row(name, summary, implementation).forms(cuda::forms);
    match problem.topic {
        Topic::Upload => vec![
            copy("gpu-pageable", "from memory that is not pinned, by the driver", |c, d| {
                cuda::upload_pageable(Unstaged, c, d)
            }),
            copy(
                "gpu-staged",
                "from memory that is not pinned, through pinned buffers that several threads fill",
                |c, d| cuda::upload_pageable(Staged, c, d),
            ),
            mapped("read by a kernel where it is", cuda::upload_mapped),
            copy("gpu-pinned", "from pinned memory", cuda::upload_pinned),
        ],
        Topic::Download => vec![
            copy("gpu-pageable", "to memory that is not pinned, by the driver", |c, d| {
                cuda::download_pageable(Unstaged, c, d)
            }),
            copy(
                "gpu-staged",
                "to memory that is not pinned, through pinned buffers that several threads empty",
                |c, d| cuda::download_pageable(Staged, c, d),
            ),
            mapped("written by a kernel where it goes", cuda::download_mapped),
            copy("gpu-pinned", "to pinned memory", cuda::download_pinned),
        ],
        Topic::Both => vec![
            copy(
                "gpu-pageable",
                "memory that is not pinned, by the driver, one way after the other",
                |c, d| cuda::both_pageable(Unstaged, c, d),
            ),
            copy(
                "gpu-staged",
                "through pinned buffers of several threads, one way after the other",
                |c, d| cuda::both_pageable(Staged, c, d),
            ),
            copy("gpu-pinned", "pinned memory, one way after the other", cuda::both_pinned),
            mapped("a kernel that reads and writes the host's memory", cuda::both_mapped),
            copy("gpu-beside", "pinned memory, a stream each way", cuda::both_beside),
        ],
        Topic::Overlap => vec![
            worked(
                "gpu-pageable",
                "copied, worked on, copied back; memory that is not pinned, by the driver",
                |_, d| cuda::there_and_back_pageable(Unstaged, d),
            ),
            worked("gpu-staged", "the same through pinned buffers of several threads", |_, d| {
                cuda::there_and_back_pageable(Staged, d)
            }),
            worked("gpu-pinned", "the same from and to pinned memory, in one stream", |_, d| {
                cuda::there_and_back_pinned(d)
            }),
            worked(
                "gpu-mapped",
                "worked on where it is: a kernel reads and writes the host's memory",
                |_, d| cuda::there_and_back_mapped(d),
            ),
            worked(
                "gpu-overlap",
                "in parts: one is worked on while the next comes and the last goes",
                cuda::there_and_back_overlapped,
            )
            .space(parts),
        ],
    }
}
