#![doc = include_str!("../README.md")]

mod certify;
mod fit;
mod memory;
mod recovery;
mod step;
mod stream;

pub use certify::{CONFIDENCE, Certificate, Certify, draws, errors};
pub use fit::{Job, Knob, Limits, Plan, Short, fit, halve};
pub use memory::{Budget, Bytes, Ledger, Memory, Stage};
pub use recovery::{Recovers, or_on_host, recovering};
pub use step::{Effort, Needs, Step, run};
pub use stream::{AHEAD, BEHIND, Ends, Sink, Source, StreamTimes, stream};
