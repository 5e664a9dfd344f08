//! The lab: variants verified, timed, compared with the machine's limits, and tuned.
//!
//! `rayspin-tune` defines variants, algorithms and tuning spaces. [`climb()`] checks each rung (variant) that a device can run against the oracle,
//! times it, and returns a [`Climb`], the source of tables and pages. [`search()`] finds the fastest
//! configuration of a rung. [`Conformance::check`] runs all variants of ladders on small problems: use it on your
//! own. The program that reconstructs does not link this crate.

pub mod application;
mod climb;
mod clock;
mod conformance;
mod foresee;
pub mod limits;
mod measure;
mod on_device;
pub mod ptx;
pub mod record;
mod search;

pub use climb::{Climb, Outcome, Step, Timed, climb, sets};
pub use clock::Clock;
pub use conformance::{Conformance, Conformed};
pub use foresee::{Bounds, Foresight, pareto};
pub use measure::{Asking, Protocol, Timing, measure};
pub use on_device::OnDevice;
pub use search::{Evaluate, Found, Options, Progress, Pruned, Replay, Tried, search};
