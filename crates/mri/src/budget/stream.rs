//! Frames that come as a stream: what is in memory does not grow with their number.

use rayspin_core::Result;
use rayspin_device::Device;
use rayspin_kernels::walsh;

use super::ledger::{Budget, COMPLEX, Ledger};
use super::trajectory::trajectory_maps;
use super::{assembling, batch_of, hold_given, one_frame, prepare::prepare, voxels};
use crate::maps;
use crate::recon::{FRAMES_AHEAD, ReconOptions, VOLUMES_BEHIND};
use crate::scan::{Frame, Samples};

/// A stream of frames.
#[derive(Debug, Clone, Copy)]
pub struct Streaming<'a> {
    /// Frames in all.
    pub frames: usize,
    /// Slices of each point in time.
    pub slices: usize,
    /// Bytes of the source: acquisitions that it holds, and their heads.
    pub held: u64,
    /// Coils that a frame has once it is prepared.
    pub coils: usize,
    /// The samples that maps are learned from before the first image, where they are.
    pub maps: Option<&'a Frame>,
    /// Whether each frame has a trajectory of its own.
    pub plans_each: bool,
}

/// What [`reconstruct_stream`](crate::recon::reconstruct_stream) takes for frames like `frame`.
///
/// Errors: a method that does not suit the frame; what planning refuses.
pub fn of_stream(
    frame: &Frame,
    stream: &Streaming<'_>,
    options: &ReconOptions,
    device: &Device,
) -> Result<Budget> {
    let (slices, coils) = (stream.slices as u64, stream.coils as u64);
    let image = COMPLEX * voxels(&frame.matrix);
    // The source makes the next frame while this one is computed.
    let ahead = FRAMES_AHEAD as u64 * samples(frame) + assembling(frame);
    let mut held = stream.held + ahead;
    let mut first = Budget::default();
    if let Some(frame) = stream.maps {
        let mut ledger = Ledger::new(device, held + samples(frame), 1);
        prepare(&mut ledger, frame, coils, options, device);
        match &frame.samples {
            Samples::Cartesian { sampled, .. } => {
                let all = COMPLEX * coils * voxels(sampled.shape());
                let (width, how) = (options.calibration, options.sensitivities);
                match maps::espirit_on_grid(device, sampled, width, how, stream.coils) {
                    Some(needs) if ledger.on_gpu() => {
                        let gpu = needs.sets * all + needs.gpu;
                        ledger.stage_beside("coil sensitivities", gpu, needs.host);
                    }
                    Some(needs) => ledger.once("coil sensitivities", all.max(needs.host)),
                    None => {
                        let (scratch, _) = walsh::needs_on(device, stream.coils, sampled.shape());
                        ledger.stage("coil sensitivities", 2 * all + scratch);
                    }
                }
            }
            Samples::NonCartesian { trajectory, .. } => {
                if !ledger.on_gpu() || batch_of(coils, options) == coils {
                    ledger.hold(COMPLEX * coils * trajectory.samples() as u64);
                }
                trajectory_maps(&mut ledger, trajectory, &frame.matrix, coils, options, device)?;
            }
        }
        first = ledger.finish();
        first.stages.retain(|stage| stage.name != "gridding");
        for stage in &mut first.stages {
            stage.name = format!("maps: {}", stage.name);
        }
    }
    if options.keep_maps && options.needs_maps() {
        held += slices * frame.coils() as u64 * image;
    }
    let mut ledger = Ledger::new(device, held + slices * VOLUMES_BEHIND as u64 * image, stream.frames);
    if options.needs_maps() && !options.independent {
        // Those of the slice in work are counted with its frame.
        let sets = options.sensitivities.map_or(1, |how| how.sets()) as u64;
        ledger.hold((slices - 1) * sets * coils * image);
    }
    ledger.maps_known = stream.maps.is_some();
    ledger.plans_each = stream.plans_each;
    hold_given(&mut ledger, frame, coils, options);
    one_frame(&mut ledger, frame, coils, options, device)?;
    let images = ledger.finish();
    first.stages.extend(images.stages);
    let kept_maps = if options.keep_maps && options.needs_maps() { frame.coils() as u64 * slices } else { 0 };
    Ok(Budget { frames: stream.frames, result: image * kept_maps, ..first })
}

/// Bytes of a frame on its way.
fn samples(frame: &Frame) -> u64 {
    let coils = frame.coils() as u64;
    let times = COMPLEX * frame.times.as_ref().map_or(0, Vec::len) as u64;
    let values = match &frame.samples {
        Samples::Cartesian { sampled, .. } => (COMPLEX * coils + 1) * voxels(sampled.shape()),
        Samples::NonCartesian { trajectory, .. } => {
            COMPLEX * (coils + trajectory.dims() as u64) * trajectory.samples() as u64
        }
    };
    times + values
}
