//! Ladders: an algorithm's variants from naive to best, how each is verified, timed and compared with the machine's limits.
//!
//! [`variant::Variant`] is the table row that every variant is. An algorithm that implements [`Algorithm`] is a [`Ladder`]: its
//! problems, its rows, their tuning [`Space`]s and its f64 oracle, whatever its types. [`climb`] runs the rungs that a device can
//! run, each against the oracle before it is timed, and gives the [`Climb`] that tables and pages are made of.

use rayspin_core::{Error, Result};
use rayspin_device::{Backend, Cuda, Device};

mod algorithm;
pub mod application;
mod build;
mod carry;
mod climb;
mod clock;
mod foresee;
pub mod input;
mod ladder;
pub mod limits;
mod measure;
mod own;
pub mod ptx;
pub mod record;
mod search;
mod space;
mod tuned;
pub mod variant;
pub mod wisdom;

pub use algorithm::{About, Algorithm, Case, Counts, Flow, Peak, Published, Row, Unit, documents};
pub use build::{Build, distinct, sources};
pub use carry::{Carried, Carry, Whole};
pub use climb::{Climb, Outcome, Step, Timed, climb, sets};
pub use clock::Clock;
pub use foresee::{Bounds, Foreseen, Foresight, pareto};
pub use input::uniform;
pub use ladder::{Ladder, Outline, Rung, Session, Which};
pub use measure::{Asking, Protocol, Timing, measure};
pub use own::{Call, Own, Signature};
pub use search::{Evaluate, Found, Options, Progress, Pruned, Replay, Trial, Tried, search};
pub use space::{Axis, Config, Space};
pub use tuned::{OnDevice, source_of, tuned, tuned_as};
pub use variant::{Run, Variant, Work, runs_all};

/// The GPU behind a device. Errors: it is a CPU.
pub fn gpu(device: &Device) -> Result<&Cuda> {
    match device.backend() {
        Backend::Cuda(cuda) => Ok(cuda),
        Backend::Cpu(_) => Err(Error::value("device", "a GPU", device.describe())),
    }
}
