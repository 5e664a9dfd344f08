//! Discarded samples: a readout has samples at its ends that carry no signal, as while gradients ramp or an
//! echo is still to come.
//!
//! ```text
//! d(s) is kept where   discard_pre ≤ s < n − discard_post
//! ```
//!
//! s counts the n samples of the readout as they are stored, reversed or not (ISMRMRD, `discard_pre` and
//! `discard_post`). Places of a grid that only discarded samples fall on were not measured. Places of the
//! samples that are kept do not change.

use rayspin_core::{Error, Result};
use rayspin_run::{About, params};

use super::{Correction, Readouts};

params! {
    /// Samples at the ends of readouts are left out, as many as their heads state.
    pub struct Discard {}
}

impl Correction for Discard {
    fn about(&self) -> About {
        About {
            name: "discard",
            help: "Leaves out the samples at the ends of readouts that their heads state to carry no signal",
        }
    }

    fn readouts(&self, readouts: &mut Readouts<'_>, _notes: &mut Vec<String>) -> Result<()> {
        for readout in &mut readouts.each {
            let samples = readout.data.ncols();
            let (start, end) = (readout.discard_pre, samples.saturating_sub(readout.discard_post));
            if start >= end && readout.trajectory.is_none() {
                return Err(Error::value(
                    format!("acquisition {}: discard_pre and discard_post", readout.index),
                    format!("below {samples} samples together"),
                    format!("{start} and {}", readout.discard_post),
                ));
            }
            readout.kept = start.min(end)..end;
        }
        for reference in &mut readouts.references {
            let end = reference.data.ncols().saturating_sub(reference.discard_post);
            reference.kept = reference.discard_pre.min(end)..end;
        }
        Ok(())
    }
}
