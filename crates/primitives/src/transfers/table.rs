//! The rows.

use rayspin_device::{BackendKind, Way};
use rayspin_tune::Space;
use rayspin_tune::variant::{Variant, Work, runs_all};

use super::{Launch, Problem, Topic, cuda};

type Row = Variant<Problem, Launch>;

fn row(name: &'static str, summary: &'static str, launch: Launch) -> Row {
    Variant {
        name,
        backend: BackendKind::Cuda,
        summary,
        launch,
        refuses: runs_all,
        work,
        tolerance: 0.0,
        reproduces: None,
    }
}

/// Bytes over the link, and the operations between.
fn work(p: &Problem) -> Work {
    let n = p.n as f64;
    match p.topic {
        Topic::Upload | Topic::Download => Work { bytes: 4.0 * n, flops: 0.0 },
        Topic::Both => Work { bytes: 8.0 * n, flops: 0.0 },
        Topic::Overlap => Work { bytes: 8.0 * n, flops: 2.0 * f64::from(p.rounds) * n },
    }
}

pub(super) fn variants(problem: &Problem) -> Vec<Row> {
    match problem.topic {
        Topic::Upload => vec![
            row("gpu-pageable", "from memory that is not pinned, by the driver", |c, d| {
                cuda::upload_pageable(Way::Unstaged, c, d)
            }),
            row(
                "gpu-staged",
                "from memory that is not pinned, through pinned buffers that several threads fill",
                |c, d| cuda::upload_pageable(Way::Staged, c, d),
            ),
            row("gpu-mapped", "read by a kernel where it is", cuda::upload_mapped),
            row("gpu-pinned", "from pinned memory", cuda::upload_pinned),
        ],
        Topic::Download => vec![
            row("gpu-pageable", "to memory that is not pinned, by the driver", |c, d| {
                cuda::download_pageable(Way::Unstaged, c, d)
            }),
            row(
                "gpu-staged",
                "to memory that is not pinned, through pinned buffers that several threads empty",
                |c, d| cuda::download_pageable(Way::Staged, c, d),
            ),
            row("gpu-mapped", "written by a kernel where it goes", cuda::download_mapped),
            row("gpu-pinned", "to pinned memory", cuda::download_pinned),
        ],
        Topic::Both => vec![
            row(
                "gpu-pageable",
                "memory that is not pinned, by the driver, one way after the other",
                |c, d| cuda::both_pageable(Way::Unstaged, c, d),
            ),
            row(
                "gpu-staged",
                "through pinned buffers of several threads, one way after the other",
                |c, d| cuda::both_pageable(Way::Staged, c, d),
            ),
            row("gpu-pinned", "pinned memory, one way after the other", cuda::both_pinned),
            row("gpu-mapped", "a kernel that reads and writes the host's memory", cuda::both_mapped),
            row("gpu-beside", "pinned memory, a stream each way", cuda::both_beside),
        ],
        Topic::Overlap => vec![
            row(
                "gpu-pageable",
                "copied, worked on, copied back; memory that is not pinned, by the driver",
                |_, d| cuda::there_and_back_pageable(Way::Unstaged, d),
            ),
            row("gpu-staged", "the same through pinned buffers of several threads", |_, d| {
                cuda::there_and_back_pageable(Way::Staged, d)
            }),
            row("gpu-pinned", "the same from and to pinned memory, in one stream", |_, d| {
                cuda::there_and_back_pinned(d)
            }),
            row(
                "gpu-mapped",
                "worked on where it is: a kernel reads and writes the host's memory",
                |_, d| cuda::there_and_back_mapped(d),
            ),
            row(
                "gpu-overlap",
                "in parts: one is worked on while the next comes and the last goes",
                cuda::there_and_back_overlapped,
            ),
        ],
    }
}

/// KiB of a copy, in powers of 4 up to all of the largest case.
const KIB: [i64; 9] = [4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10];

pub(super) fn space(problem: &Problem, variant: &str) -> Space {
    match (problem.topic, variant) {
        // Powers of two, which leave equal parts: the parts' kernels are then one, as the tuner sees it.
        (Topic::Overlap, "gpu-overlap") => Space::none().axis("parts", &[1, 2, 4, 8, 16, 32, 64, 128], 32),
        (Topic::Overlap, _) => Space::none(),
        _ => Space::none().axis("kib", &KIB, 256 << 10),
    }
}
