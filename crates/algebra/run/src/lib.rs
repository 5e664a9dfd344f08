#![doc = include_str!("../README.md")]

mod certify;
mod given;
mod gpus;
mod memory;
mod methods;
mod params;
mod plan;
mod recovery;
mod step;
mod store;
mod stream;

pub use certify::{CONFIDENCE, Certificate, Certify, draws, errors, errors_of};
pub use given::{BadInput, Given, Need, Row, refuse_idle};
pub use gpus::{Gpus, Undecided};
pub use memory::{Budget, Bytes, Ledger, Memory, Stage};
pub use methods::{About, Described, Idle, Rule, Table, changed};
pub use params::{Choice, Kind, Param, Parameter, Parameters, Remedy, Value, decisive, remedy_of};
pub use plan::{BatchSize, Job, Limits, OverBudget, Plan, halve, plan_within};
pub use recovery::{Recoverable, with_cpu_fallback, with_recovery};
pub use step::{Cost, Effort, Step, run};
pub use store::KernelStore;
pub use stream::{Endpoints, ITEMS_AHEAD, RESULTS_BEHIND, Sink, Source, StreamTimes, stream};

// What `params!` names.
#[doc(hidden)]
pub use rayspin_core as core;
