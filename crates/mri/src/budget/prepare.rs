//! What is done to coils before anything else.

use super::ledger::{COMPLEX, Ledger};
use super::voxels;
use crate::dense;
use crate::prepare::CompressionKind;
use crate::recon::ReconOptions;
use crate::scan::{Frame, Samples};

/// Bytes of a complex number in double precision.
const DOUBLE: u64 = 2 * COMPLEX;

/// Whitening and compression to `coils`: both make the samples anew beside the old ones.
pub(super) fn prepare(ledger: &mut Ledger, frame: &Frame, coils: u64, options: &ReconOptions) {
    let own = frame.coils() as u64;
    let points = match &frame.samples {
        Samples::Cartesian { sampled, .. } => voxels(sampled.shape()),
        Samples::NonCartesian { trajectory, .. } => trajectory.samples() as u64,
    };
    let calibration = frame.calibration.as_ref().map_or(0, |lines| voxels(lines.sampled.shape()));
    let before = COMPLEX * own * (points + calibration);
    let mut scratch = 0;
    if options.prepare.whitens() {
        scratch = COMPLEX * own * points;
    }
    if let Some(compression) = options.prepare.compression {
        let (all, kept) = (COMPLEX * own * points, COMPLEX * coils * points);
        scratch = scratch.max(match compression.kind {
            CompressionKind::Svd => (DOUBLE * own * points).min(dense::BLOCK_BYTES).max(kept),
            CompressionKind::Geometric => {
                let positions = frame.matrix.last().map_or(0, |&n| n as u64);
                let matrices = 3 * DOUBLE * own * own * positions;
                (2 * all).max(all + kept) + matrices
            }
        });
    }
    if scratch > 0 {
        ledger.once("coils", before + scratch);
    }
    // What becomes of the samples themselves is counted where they are used.
    ledger.hold_on_host(COMPLEX * coils * calibration);
}
