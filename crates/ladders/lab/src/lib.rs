//! The lab: variants verified, timed, compared with the machine's limits, and tuned.
//!
//! `rayspin-tune` defines variants, algorithms and tuning spaces. The function [`benchmark()`] checks each
//! variant that a device can run against the oracle, times it, and returns a [`BenchmarkRun`]. Tables and
//! pages are made from it. The function [`search()`] finds the fastest configuration of a variant.
//! [`Conformance::check`] runs all variants of ladders on small problems: use it on your own. The program
//! that reconstructs does not link this crate.

pub mod application;
mod benchmark;
mod clock;
mod conformance;
mod cost_model;
pub mod limits;
mod measure;
mod on_device;
pub mod ptx;
pub mod record;
mod search;

pub use benchmark::{BenchmarkRun, Outcome, Step, Timed, benchmark, sets};
pub use clock::Clock;
pub use conformance::{Conformance, Conformed, unexplained};
pub use cost_model::{Bounds, CostModel, pareto};
pub use measure::{LaunchMode, Protocol, Timing, measure};
pub use on_device::OnDevice;
pub use search::{Evaluate, Options, Progress, Pruned, Replay, SearchResult, Tried, search};
