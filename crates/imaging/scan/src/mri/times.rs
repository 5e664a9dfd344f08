//! When samples are taken.

use rayspin_core::{Error, Result};

use super::{Acquisition, Encoding, Flags, TrajectoryKind};

/// How the times of samples are found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    /// The dwell time in µs of readouts whose header states 0, as converted files and simulators do.
    pub(super) dwell_us: Option<f64>,
}

impl Timing {
    /// Times of a readout's samples in s: (sample − centre) · dwell time, 0 at the sample `centre`.
    ///
    /// Each readout follows an excitation of its own, at the same distance: what is constant turns the
    /// image's phase only.
    ///
    /// Errors: no dwell time, or two; a readout of an echo train, because ISMRMRD does not state when it is
    /// played.
    pub(super) fn of_readout(
        self,
        index: usize,
        readout: &Acquisition,
        encoding: &Encoding,
        centre: usize,
    ) -> Result<Vec<f64>> {
        if encoding.trajectory == TrajectoryKind::Epi || readout.flags.contains(Flags::REVERSE) {
            return Err(Error::value(
                "times of the samples, which a field map needs",
                "readouts that each follow an excitation of their own",
                "echo-planar trains, of whose lines the file does not state the times",
            ));
        }
        let stated = f64::from(readout.sample_time_us);
        let dwell = match self.dwell_us {
            Some(given) if stated == 0.0 => given * 1e-6,
            Some(_) => {
                let found = format!("{stated} µs in the header of acquisition {index}");
                return Err(Error::value("dwell time", "none beside that of the scan", found));
            }
            None => stated * 1e-6,
        };
        if !(dwell > 0.0 && dwell.is_finite()) {
            return Err(Error::value(
                format!("acquisition {index}: sample_time_us, which a field map needs"),
                "a positive dwell time",
                readout.sample_time_us,
            ));
        }
        Ok((0..readout.data.ncols()).map(|sample| (sample as f64 - centre as f64) * dwell).collect())
    }
}

/// The centre of a readout with a trajectory: the one stated, or its first sample where that is none of its
/// samples.
pub(super) fn stated_centre(readout: &Acquisition) -> usize {
    if readout.centre_sample < readout.data.ncols() { readout.centre_sample } else { 0 }
}
