//! The machine's limits, measured once.

use anyhow::Result;
use rayspin::core::Progress;
use rayspin::device::{Device, cuda};
use rayspin::tune::limits::{Kept, Limits, kept};
use rayspin_lab::limits::{Effort, keep, measure};
use rayspin_shell::Context;

/// The limits of the processors that were climbed on.
#[derive(Default)]
pub(crate) struct MachineLimits(pub(super) Vec<(Device, Limits)>);

impl MachineLimits {
    /// Those of a device: of this run, kept from another, or measured now and kept.
    pub(crate) fn of(&mut self, context: &Context, device: &Device, anew: bool) -> Result<&Limits> {
        if let Some(at) = self.0.iter().position(|(other, _)| other.same_as(device)) {
            return Ok(&self.0[at].1);
        }
        let folder = cuda::cache_folder();
        let found = match kept(folder.as_deref(), device) {
            Kept::Found(limits) if !anew => Some(limits),
            Kept::Ignored(why) => {
                context.console.note(&format!("limits are measured anew: {why}"));
                None
            }
            _ => None,
        };
        let limits = match found {
            Some(limits) => limits,
            None => {
                let limits = measure(device, &Effort::default())?;
                if let Some(Err(error)) = folder.map(|folder| keep(&folder, &limits)) {
                    context.console.note(&format!("limits are not kept: {error}"));
                }
                limits
            }
        };
        self.0.push((device.clone(), limits));
        Ok(&self.0[self.0.len() - 1].1)
    }
}
