//! What becomes of a frame that a GPU does not finish: its work is cut smaller where memory ran out, or done on the CPU.

use std::borrow::Cow;

use rayspin_core::{Error, Monitor, Result};
use rayspin_device::{Backend, Device};

use super::{FrameImage, Reconstructor};
use crate::scan::{Frame, Samples};

/// Fewer points of a trajectory at a time save nothing beside the fine grid of their plan.
pub const LEAST_POINTS: usize = 1 << 14;

impl Reconstructor {
    /// Reconstructs one frame.
    ///
    /// Where a GPU's memory runs out, what was made is given back and the frame begun anew with half as many coils at a time,
    /// then, with one coil, half as many points of a trajectory; that holds for later frames too, and is said in the notes.
    /// With [`finish_on_cpu`](super::ReconOptions::finish_on_cpu) the CPU takes over where that does not help, and where the GPU
    /// fails.
    ///
    /// Errors: a method that does not suit the frame, maps of another shape, no calibration centre, memory, a device that fails,
    /// interruption.
    pub fn frame(&mut self, frame: Frame, monitor: &Monitor<'_>) -> Result<FrameImage> {
        let mut notes = Vec::new();
        let mut done = self.recovering(frame, &mut notes, |recon, frame| recon.attempt(frame, monitor))?;
        done.notes.append(&mut notes);
        Ok(done)
    }

    /// Attempts what a frame is for until it is done, smaller or on the CPU where a GPU does not finish.
    pub(super) fn recovering<T>(
        &mut self,
        frame: Frame,
        notes: &mut Vec<String>,
        attempt: impl Fn(&mut Self, Cow<'_, Frame>) -> Result<T>,
    ) -> Result<T> {
        while let Some(refusals) = refusals(&self.device) {
            let certified = self.certified_grid.clone();
            let error = match attempt(self, Cow::Borrowed(&frame)) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            // Every array of the plans is given back; whatever was certified is so again with the plans that come.
            self.plans = None;
            self.certified_grid = certified;
            let ran_out = matches!(error, Error::Memory { .. })
                && self::refusals(&self.device).is_some_and(|now| now > refusals);
            if ran_out && let Some(cut) = self.cut_smaller(&frame) {
                notes.push(format!("GPU memory ran out: {cut} at a time from here on"));
            } else if self.options.finish_on_cpu && (ran_out || matches!(error, Error::Device { .. })) {
                notes.push(format!("the GPU failed, computed on the CPU from here on: {error}"));
                self.device = self.device.host();
            } else {
                return Err(error);
            }
        }
        attempt(self, Cow::Owned(frame))
    }

    /// Halves what is done at once; says what that is, or nothing where it can be no less.
    fn cut_smaller(&mut self, frame: &Frame) -> Option<String> {
        let coils = frame.coils().min(self.options.coil_batch.unwrap_or(usize::MAX));
        if coils > 1 {
            let coils = coils.div_ceil(2);
            self.options.coil_batch = Some(coils);
            return Some(format!("coils taken {coils}"));
        }
        let Samples::NonCartesian { trajectory, .. } = &frame.samples else { return None };
        let points = trajectory.samples().min(self.options.point_batch.unwrap_or(usize::MAX));
        if points <= LEAST_POINTS {
            return None;
        }
        let points = points.div_ceil(2);
        self.options.point_batch = Some(points);
        Some(format!("points taken {points}"))
    }
}

/// How often a GPU refused memory so far; nothing of the CPU.
fn refusals(device: &Device) -> Option<u64> {
    match device.backend() {
        Backend::Cpu(_) => None,
        Backend::Cuda(cuda) => Some(cuda.refusals()),
    }
}
