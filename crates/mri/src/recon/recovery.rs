//! What becomes of a frame that a GPU does not finish: its work is cut smaller where memory ran out, or done on the CPU.

use std::borrow::Cow;

use rayspin_core::{Error, Monitor, Result};
use rayspin_device::{Backend, Device};

use super::{FrameImage, ReconOptions, Reconstructor, normal_segments};
use crate::scan::{Frame, Samples};

/// Fewer points of a trajectory at a time save nothing beside the fine grid of their plan.
pub const LEAST_POINTS: usize = 1 << 14;

/// What is done at once from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Coils.
    Coils(usize),
    /// Time segments whose spectra a GPU holds.
    Segments(usize),
    /// Points of a trajectory.
    Points(usize),
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Coils(count) => write!(f, "coils taken {count} at a time"),
            Self::Segments(1) => f.write_str("the spectrum of 1 time segment held at a time"),
            Self::Segments(count) => write!(f, "the spectra of {count} time segments held at a time"),
            Self::Points(count) => write!(f, "points taken {count} at a time"),
        }
    }
}

impl ReconOptions {
    /// Halves what is done at once of a frame like this one, with so many coils once it is prepared: coils, then the spectra of
    /// time segments that a GPU holds where `gpu` says that its memory is short (the host's takes them), then points of a
    /// trajectory. Nothing where it can be no less.
    pub fn cut_smaller(&mut self, frame: &Frame, coils: usize, gpu: bool) -> Option<Cut> {
        let coils = coils.min(self.coil_batch.unwrap_or(usize::MAX));
        if coils > 1 {
            let coils = coils.div_ceil(2);
            self.coil_batch = Some(coils);
            return Some(Cut::Coils(coils));
        }
        if gpu && let Some(segments) = normal_segments(frame, self) {
            let segments = segments.min(self.segment_batch.unwrap_or(usize::MAX));
            if segments > 1 {
                let segments = segments.div_ceil(2);
                self.segment_batch = Some(segments);
                return Some(Cut::Segments(segments));
            }
        }
        let points = match &frame.samples {
            Samples::NonCartesian { trajectory, .. } => trajectory.samples(),
            Samples::Cartesian { sampled, .. } if self.field_map.is_some() => {
                sampled.iter().filter(|known| **known).count()
            }
            Samples::Cartesian { .. } => return None,
        };
        let points = points.min(self.point_batch.unwrap_or(usize::MAX));
        if points <= LEAST_POINTS {
            return None;
        }
        let points = points.div_ceil(2);
        self.point_batch = Some(points);
        Some(Cut::Points(points))
    }
}

impl Reconstructor {
    /// Reconstructs one frame.
    ///
    /// Where a GPU's memory runs out, what was made is given back and the frame begun anew with half of what is done at once, as
    /// [`ReconOptions::cut_smaller`] has it; that holds for later frames too, and is said in the notes.
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
            let coils = self.mixing.as_ref().map_or(frame.coils(), |mixing| mixing.kept());
            let cut = || self.options.cut_smaller(&frame, coils, true);
            if let Some(cut) = ran_out.then(cut).flatten() {
                notes.push(format!("GPU memory ran out: {cut} from here on"));
            } else if self.options.finish_on_cpu && (ran_out || matches!(error, Error::Device { .. })) {
                notes.push(format!("the GPU failed, computed on the CPU from here on: {error}"));
                self.device = self.device.host();
            } else {
                return Err(error);
            }
        }
        attempt(self, Cow::Owned(frame))
    }

    /// Does on the device what comes before frames; on the CPU where a GPU's memory does not do, and where it fails and
    /// [`finish_on_cpu`](super::ReconOptions::finish_on_cpu) is set.
    pub(super) fn or_on_host<T>(
        &mut self,
        notes: &mut Vec<String>,
        mut work: impl FnMut(&Device, &mut Vec<String>) -> Result<T>,
    ) -> Result<T> {
        let error = match work(&self.device, notes) {
            Err(error) if refusals(&self.device).is_some() => error,
            done => return done,
        };
        match error {
            Error::Memory { .. } => {}
            Error::Device { .. } if self.options.finish_on_cpu => {
                notes.push(format!("the GPU failed, computed on the CPU from here on: {error}"));
                self.device = self.device.host();
            }
            error => return Err(error),
        }
        work(&self.device.host(), notes)
    }
}

/// How often a GPU refused memory so far; nothing of the CPU.
fn refusals(device: &Device) -> Option<u64> {
    match device.backend() {
        Backend::Cpu(_) => None,
        Backend::Cuda(cuda) => Some(cuda.refusals()),
    }
}
