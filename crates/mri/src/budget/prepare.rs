//! What is done to coils before anything else.

use rayspin_device::Device;
use rayspin_kernels::gram::Rows;
use rayspin_solve::dense;

use super::ledger::{COMPLEX, Ledger};
use super::voxels;
use crate::prepare::{CompressionKind, SIDE, mixing_needs};
use crate::recon::ReconOptions;
use crate::scan::{Frame, Samples};

/// Bytes of a complex number in double precision.
const DOUBLE: u64 = 2 * COMPLEX;

/// Whitening and compression to `coils`: samples become them on their way to the device, a piece at a time. On the CPU what is
/// made lies beside the frame's own until all is.
pub(super) fn prepare(
    ledger: &mut Ledger,
    frame: &Frame,
    coils: u64,
    options: &ReconOptions,
    device: &Device,
) {
    let own = frame.coils() as u64;
    let points = match &frame.samples {
        Samples::Cartesian { sampled, .. } => voxels(sampled.shape()),
        Samples::NonCartesian { trajectory, .. } => trajectory.samples() as u64,
    };
    // Calibration lines stay as they are until their turn comes.
    let calibration = frame.calibration.as_ref().map_or(0, |lines| voxels(lines.sampled.shape()));
    ledger.hold_on_host(COMPLEX * own * calibration);
    if !options.prepare.changes_coils() {
        return;
    }
    let line = match (&frame.samples, options.prepare.compression) {
        (Samples::Cartesian { sampled, .. }, Some(of)) if of.kind == CompressionKind::Geometric => {
            sampled.shape().last().copied().unwrap_or(1)
        }
        _ => 1,
    };
    let piece = mixing_needs(device.kind(), own, coils, points, line as u64);
    let (mut finding, mut beside) = (0, 0);
    if options.prepare.compression.is_some() {
        let rows = match (ledger.on_gpu(), line) {
            (true, 1) => (points as usize).min(piece as usize / (COMPLEX * own) as usize),
            // What is no multiple of those that are summed side by side.
            (false, 1) => points as usize % SIDE,
            _ => 0,
        };
        let (host, gpu) = dense::covariance_needs(device, Rows::First(rows), own as usize);
        // Sums, and what is made of them.
        let matrices = DOUBLE * own * own * if ledger.on_gpu() { line } else { line.max(SIDE) } as u64;
        beside = host + 4 * matrices;
        finding = if ledger.on_gpu() { gpu + matrices } else { beside };
    }
    let frame_itself = COMPLEX * own * points;
    if ledger.on_gpu() {
        if finding > 0 {
            ledger.stage_beside("virtual coils", piece + finding, frame_itself + beside);
        }
        // Wherever samples come to the GPU.
        ledger.hold(piece);
    } else {
        if finding > 0 {
            ledger.stage("virtual coils", frame_itself + finding + piece);
        }
        ledger.stage("coils", frame_itself + COMPLEX * coils * points + piece);
    }
}
