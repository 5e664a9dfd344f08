#![doc = include_str!("../README.md")]

mod certify;
mod memory;
mod plan;
mod recovery;
mod step;
mod stream;

pub use certify::{CONFIDENCE, Certificate, Certify, draws, errors};
pub use memory::{Budget, Bytes, Ledger, Memory, Stage};
pub use plan::{BatchSize, Job, Limits, OverBudget, Plan, halve, plan_within};
pub use recovery::{Recoverable, with_cpu_fallback, with_recovery};
pub use step::{Effort, Needs, Step, run};
pub use stream::{Endpoints, ITEMS_AHEAD, RESULTS_BEHIND, Sink, Source, StreamTimes, stream};
