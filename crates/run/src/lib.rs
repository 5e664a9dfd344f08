//! What every reconstruction needs, whatever was scanned: [memory](Memory) that composes, [steps](Step) that are summed
//! before they run, the search for [batch sizes](fit) within limits, [recovery](recovering) of a GPU that fails, a
//! [stream](stream()) of many images, and [certificates](Certificate) of transforms.
//!
//! A reconstruction is a list of steps. Each step states what it takes beside the code that takes it, and the list that is
//! summed for a plan is the list that runs:
//!
//! ```
//! use rayspin_core::{Monitor, Result};
//! use rayspin_run::{Bytes, Ledger, Memory, Needs, Step, run};
//!
//! fn steps<'a>(samples: usize) -> Vec<Step<'a, Vec<f32>>> {
//!     let bytes = Bytes::host(4 * samples as u64);
//!     vec![
//!         Step::new("read", move |data: &mut Vec<f32>, _| Ok(data.resize(samples, 1.0)))
//!             .needs(move || Ok(Needs::of(Memory::held(bytes)))),
//!         Step::new("double", move |data: &mut Vec<f32>, _| Ok(data.iter_mut().for_each(|v| *v *= 2.0)))
//!             .needs(move || Ok(Needs::default())),
//!     ]
//! }
//! let mut ledger = Ledger::new(Bytes::default(), 1);
//! steps(100).into_iter().try_for_each(|step| ledger.add(step))?;
//! assert_eq!(ledger.finish().peak(), 400);
//! let mut data = Vec::new();
//! run(steps(100), &mut data, &Monitor::silent())?;
//! assert_eq!(data, [2.0; 100]);
//! # Result::<()>::Ok(())
//! ```

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
