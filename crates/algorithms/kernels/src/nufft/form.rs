//! The tuned form of transforms of several items on a GPU: the number of items that share a block, and the
//! block's threads.

use rayspin_device::Device;
use rayspin_tune::{Config, Space, tuned_as};

use super::variants::gpu_batched;

/// The items of a batch per block, and the threads of a block in type 2. In type 1 the tiles determine the
/// threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) coils: usize,
    pub(super) threads: Option<usize>,
}

impl Asked {
    /// The form in a configuration; `None` if it names no coils.
    pub(super) fn of(config: &Config) -> Option<Self> {
        let value = |name| config.find(name).and_then(|v| usize::try_from(v).ok());
        Some(Self { coils: value("coils")?, threads: value("threads") })
    }
}

/// Name of the ladder of type 1, or of type 2.
pub(super) fn ladder(to_image: bool) -> &'static str {
    if to_image { "nufft-type1" } else { "nufft-type2" }
}

/// The key of tuning results. The kernel's width decides how much fits in shared memory, and the sizes decide
/// how many points a tile has.
pub(super) fn key(width: usize, matrix: &[usize], samples: usize, coils: usize) -> (String, Vec<usize>) {
    (format!("f32, kernels of {width} cells, {}-D", matrix.len()), [matrix, &[samples, coils]].concat())
}

/// The parameters. The default is `usual`.
pub(super) fn space(to_image: bool, usual: Asked) -> Space {
    let default = |n: usize| i64::try_from(n).unwrap_or(1);
    match (to_image, usual.threads) {
        (false, Some(threads)) => Space::none().axis("coils", &[1, 2, 4, 8], default(usual.coils)).axis(
            "threads",
            &[64, 128, 256, 512],
            default(threads),
        ),
        _ => Space::none().axis("coils", &[1, 2, 4], default(usual.coils)),
    }
}

/// The tuned form for an `f32` plan with several items, by its [`key`].
pub(super) fn tuned(
    to_image: bool,
    key: impl FnOnce() -> (String, Vec<usize>),
    usual: Asked,
    device: &Device,
) -> Option<Asked> {
    let config = tuned_as(ladder(to_image), &gpu_batched(to_image), key, || space(to_image, usual), device)?;
    Asked::of(&config)
}
