//! Ladders: an algorithm's variants from naive to best, what each of them is, and the parameters that it runs
//! with.
//!
//! [`variant::Variant`] is the table row that every variant is. An algorithm that implements [`Algorithm`] is
//! a [`Ladder`]: its problems, its rows, their tuning [`Space`]s and its f64 oracle, whatever its types.
//! [`tuned()`] gives the library the best parameters that [`wisdom`] holds. `rayspin-lab` verifies, times and
//! tunes variants through [`Session`]s, which are opened problems.

use rayspin_core::{Error, Result};
use rayspin_device::{Backend, Cuda, Device};

mod algorithm;
pub mod blocks;
mod build;
mod host_transfer;
pub mod input;
mod ladder;
mod launch_list;
pub mod limits;
mod own;
mod space;
mod tuned;
pub mod variant;
pub mod wisdom;
mod with;

pub use algorithm::{
    About, Algorithm, Case, Counts, Flow, Peak, Published, PublishedApplication, Row, Unit, documents,
};
pub use build::{Build, distinct, sources};
pub use host_transfer::{Arrays, EndToEnd, HostTransfer, TransferArray};
pub use input::uniform;
pub use ladder::{Ladder, Outline, Session, VariantInfo, Which};
pub use own::{Call, Own, Signature};
pub use space::{Axis, Config, Space};
pub use tuned::{source_of, source_of_texts, tuned, tuned_as};
pub use variant::{Runnable, Variant, Work, runs_all};
pub use with::With;

/// The GPU behind a device. Errors: it is a CPU.
pub fn gpu(device: &Device) -> Result<&Cuda> {
    match device.backend() {
        Backend::Cuda(cuda) => Ok(cuda),
        Backend::Cpu(_) => Err(Error::value("device", "a GPU", device.describe())),
    }
}
