//! When samples are taken.

use rayspin_core::{Error, Result};

use super::{Acquisition, Encoding, Flags, TrajectoryKind};

/// Times of a readout's samples in s: (sample − centre) · dwell time, 0 at the sample `centre`.
///
/// Each readout follows an excitation of its own, at the same distance: what is constant turns the image's phase only.
///
/// Errors: no dwell time; a readout of an echo train, because ISMRMRD does not state when it is played.
pub(super) fn of_readout(
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
    let dwell = f64::from(readout.sample_time_us) * 1e-6;
    if !(dwell > 0.0 && dwell.is_finite()) {
        return Err(Error::value(
            format!("acquisition {index} sample_time_us, which a field map needs"),
            "a positive dwell time",
            readout.sample_time_us,
        ));
    }
    Ok((0..readout.data.ncols()).map(|sample| (sample as f64 - centre as f64) * dwell).collect())
}

/// The centre of a readout with a trajectory: the one stated, or its first sample where that is none of its samples.
pub(super) fn stated_centre(readout: &Acquisition) -> usize {
    if readout.centre_sample < readout.data.ncols() { readout.centre_sample } else { 0 }
}
