//! What a reconstruction takes, before it begins: the sum of the steps that it will run.

use std::borrow::Cow;

use rayspin_core::Result;
use rayspin_device::Device;
use rayspin_run::{Budget, Bytes, Cost, Ledger, Memory, Step};

use super::{FRAMES_AHEAD, ReconOptions, VOLUMES_BEHIND, search, spread};
pub use crate::encoding::Known;
use crate::encoding::{COMPLEX, Context, INDEX, Inputs, REAL, count, range_of, repeated};
use crate::methods::Span;
use crate::prepare;
use crate::scan::{Frame, Samples};

/// The frames of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// How many, one after another.
    pub count: usize,
    /// Bytes of what they are taken from, the scan, held beside them.
    pub held: u64,
    /// Whether they are made of acquisitions, and not given whole.
    pub assembled: bool,
    /// Coils that a frame has once it is prepared ([`crate::prepare::coils_kept`]).
    pub coils: usize,
}

/// What reconstructing frames like `frame` takes; `known` is of plans of this frame on this device.
///
/// Errors: a method that does not suit the frame; what planning refuses.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::{C32, Geometry};
/// use rayspin_device::Device;
/// use rayspin_mri::methods::CgSense;
/// use rayspin_mri::recon::ReconOptions;
/// use rayspin_mri::recon::plan::{Known, Planned, of_frames};
/// use rayspin_mri::scan::Frame;
///
/// let frame = Frame::from_grid(ArrayD::from_elem(vec![8, 64, 64], C32::ONE), Geometry::default())?;
/// let frames = Planned { count: 10, held: 0, assembled: false, coils: 8 };
/// let options = ReconOptions::of(CgSense::default());
/// let budget = of_frames(&frame, &frames, &options, &Device::cpu()?, &Known::default())?;
/// assert!(budget.peak() > 8 * 64 * 64 * 8); // more than k-space itself
/// assert_eq!((budget.frames, budget.gpu_peak()), (10, 0));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn of_frames(
    frame: &Frame,
    frames: &Planned,
    options: &ReconOptions,
    device: &Device,
    known: &Known,
) -> Result<Budget> {
    let image = COMPLEX * count(&frame.matrix);
    // Over a temporal basis the frames of each slice are solved for at once.
    let (solved, images) = match &options.basis {
        None => (frames.count, frames.count),
        Some(basis) => {
            let slices = (frames.count / basis.frames()).max(1);
            basis.expect_frames(frames.count.div_ceil(slices))?;
            (slices, slices * basis.coefficients())
        }
    };
    let mut ledger = Ledger::new(Bytes::host(frames.held), solved);
    if images > 1 {
        ledger.hold(Bytes::host(image * images as u64));
        if options.keep_maps && options.needs_maps() {
            ledger.hold(Bytes::host(frame.coils() as u64 * image * (solved as u64 - 1)));
        }
    }
    hold_given(&mut ledger, frame, frames.coils, options);
    if frames.assembled {
        ledger.add(stage::<()>("samples", assembling(frame)))?;
    }
    let context = context(frames.coils, options);
    let result =
        add_frame(&mut ledger, frame, &Like { context, frames: frames.count, options, device, known })?;
    ledger.result(result * solved as u64);
    Ok(Budget { frames: frames.count, ..ledger.finish() })
}

/// A stage of the host without work.
fn stage<'a, S>(name: &str, bytes: u64) -> Step<'a, S> {
    Step::new(name, |_: &mut S, _| Ok(())).needs(move || Ok(Cost::of(Memory::temporary(Bytes::host(bytes)))))
}

/// What is known of the encoding of a frame that is planned for.
fn context(coils: usize, options: &ReconOptions) -> Context {
    Context {
        coils,
        prepared: options.prepare.changes_coils(),
        shared_maps: false,
        field_range: options.field_map.as_deref().map(range_of),
        together: 1,
        maps_alone: false,
        spread: false,
    }
}

/// What is given to the run.
fn hold_given(ledger: &mut Ledger, frame: &Frame, coils: usize, options: &ReconOptions) {
    if let Some(maps) = &options.maps {
        ledger.hold(Bytes::host(COMPLEX * maps.len() as u64));
        if options.prepare.changes_coils() {
            ledger.hold(Bytes::host(COMPLEX * coils as u64 * count(&frame.matrix)));
        }
    }
    if let Some(map) = &options.field_map {
        ledger.hold(Bytes::host(REAL * map.len() as u64));
    }
}

/// How frames are planned for.
struct Like<'a> {
    context: Context,
    frames: usize,
    options: &'a ReconOptions,
    device: &'a Device,
    known: &'a Known,
}

/// Adds the steps of a frame, or of `frames` frames that the method solves for together. Returns the bytes of
/// one frame's result.
fn add_frame(ledger: &mut Ledger, frame: &Frame, like: &Like<'_>) -> Result<u64> {
    let Like { context, frames, options, device, known } = *like;
    let joined = match &options.basis {
        None => None,
        Some(basis) => {
            // The frames of the other slices wait.
            let waiting = frames.saturating_sub(basis.frames()) as u64;
            ledger.hold(Bytes::host(samples_of(frame) * waiting));
            Some(repeated(frame, basis.frames())?)
        }
    };
    let (frame, of_frames) = match &joined {
        None => (frame, None),
        Some((frame, of_frames)) => (frame, Some(of_frames.clone())),
    };
    let shares = options.spread(device, context.coils);
    let context = Context { spread: shares.is_some(), ..context };
    let inputs = Inputs::new(Cow::Borrowed(frame)).of_frames(of_frames.clone());
    let spec = options.encoding(device, &inputs, context)?.knowing(known);
    ledger.hold(spec.frame_bytes());
    if let Some(needs) = prepare::finding(device, &options.prepare, frame, context.coils) {
        ledger.add(Step::<()>::new(prepare::STAGE, |_, _| Ok(())).needs(move || Ok(needs)))?;
    }
    if options.search_lambda {
        // The samples in two parts, and what those held out leave.
        let copies = if matches!(frame.samples, Samples::Cartesian { .. }) { 2 } else { 1 };
        ledger.hold(Bytes::host(copies * samples_of(frame)));
        ledger.hold(spec.kept_in_series()?);
        ledger.repeat(search::MOST);
    }
    if let Some(shares) = shares {
        spread::plan(ledger, frame, of_frames.as_deref(), &shares, (options, context, known))?;
        options.method.steps(&spec)?.into_iter().try_for_each(|step| ledger.add(step))?;
        return Ok(spec.result());
    }
    if context.shared_maps {
        ledger.hold(spec.maps_held()?);
    }
    if options.method.uses().span == Span::Frame {
        options.steps(&spec)?.into_iter().try_for_each(|step| ledger.add(step))?;
        return Ok(spec.result());
    }
    // All frames are there, and leave what the method solves with.
    ledger.hold(Bytes::host(samples_of(frame) * frames as u64));
    spec.frame_of_series().into_iter().try_for_each(|step| ledger.add(step))?;
    ledger.hold(spec.kept_in_series()? * (frames as u64 - 1));
    let spec = options.encoding(device, &inputs, Context { together: frames, ..context })?.knowing(known);
    ledger.all_together();
    options.method.steps(&spec)?.into_iter().try_for_each(|step| ledger.add(step))?;
    Ok(spec.result())
}

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

/// What [`reconstruct_stream`](crate::recon::reconstruct_stream) takes for frames like `frame`: what is in
/// memory does not grow with their number, unless the method solves for all of them together.
///
/// Errors: a method that does not suit the frame; what planning refuses.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::{C32, Geometry};
/// use rayspin_device::Device;
/// use rayspin_mri::methods::CgSense;
/// use rayspin_mri::recon::ReconOptions;
/// use rayspin_mri::recon::plan::{Known, Streaming, of_stream};
/// use rayspin_mri::scan::Frame;
///
/// let (device, options) = (Device::cpu()?, ReconOptions::of(CgSense::default()));
/// let frame = Frame::from_grid(ArrayD::from_elem(vec![8, 64, 64], C32::ONE), Geometry::default())?;
/// let peak = |frames| -> rayspin_core::Result<u64> {
///     let stream = Streaming { frames, slices: 1, held: 0, coils: 8, maps: None, plans_each: false };
///     Ok(of_stream(&frame, &stream, &options, &device, &Known::default())?.peak())
/// };
/// assert_eq!(peak(100)?, peak(1000)?);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn of_stream(
    frame: &Frame,
    stream: &Streaming<'_>,
    options: &ReconOptions,
    device: &Device,
    known: &Known,
) -> Result<Budget> {
    let (slices, coils) = (stream.slices as u64, stream.coils);
    let image = COMPLEX * count(&frame.matrix);
    // The source makes the next frame while this one is computed.
    let ahead = FRAMES_AHEAD as u64 * samples_of(frame) + assembling(frame);
    let mut held = stream.held + ahead;
    let mut stages = Vec::new();
    let context = context(coils, options);
    if let Some(frame) = stream.maps {
        let mut ledger = Ledger::new(Bytes::host(held + samples_of(frame)), 1);
        let inputs = Inputs::new(Cow::Borrowed(frame));
        let spec = options.encoding(device, &inputs, Context { maps_alone: true, ..context })?;
        if let Some(needs) = prepare::finding(device, &options.prepare, frame, coils) {
            ledger.add(Step::<()>::new(prepare::STAGE, |_, _| Ok(())).needs(move || Ok(needs)))?;
        }
        spec.encoding_steps().into_iter().try_for_each(|step| ledger.add(step))?;
        stages = ledger.finish().stages;
        for stage in &mut stages {
            stage.name = format!("maps: {}", stage.name);
        }
    }
    let kept =
        if options.keep_maps && options.needs_maps() { frame.coils() as u64 * slices * image } else { 0 };
    held += kept;
    let images = match options.solves_together() {
        false => slices * VOLUMES_BEHIND as u64,
        true => slices * (VOLUMES_BEHIND + options.images_of(stream.frames)) as u64,
    };
    let solved = if options.basis.is_some() { stream.slices } else { stream.frames };
    let mut ledger = Ledger::new(Bytes::host(held + images * image), solved);
    if options.needs_maps() && !options.independent {
        // Those of the slice in work are counted with its frame.
        let others = (slices - 1) * options.map_sets() as u64 * coils as u64 * image;
        let shared = options.shares(coils).is_some();
        ledger.hold(if shared { Bytes::host(others) } else { Bytes::on(device, others) });
    }
    ledger.repeat_once_steps(stream.plans_each);
    hold_given(&mut ledger, frame, coils, options);
    let context = Context { shared_maps: stream.maps.is_some(), ..context };
    add_frame(&mut ledger, frame, &Like { context, frames: stream.frames, options, device, known })?;
    let own = ledger.finish();
    stages.extend(own.stages);
    Ok(Budget { stages, frames: stream.frames, result: kept, cards: own.cards })
}

/// Bytes of making a frame of its acquisitions, beside these: the frame itself, and what it takes to make it.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::{C32, Geometry};
/// use rayspin_mri::recon::plan::assembling;
/// use rayspin_mri::scan::Frame;
///
/// let frame = Frame::from_grid(ArrayD::from_elem(vec![8, 64, 64], C32::ONE), Geometry::default())?;
/// assert!(assembling(&frame) >= 8 * 64 * 64 * 8); // 8 bytes for each number
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn assembling(frame: &Frame) -> u64 {
    let coils = frame.coils() as u64;
    let times = COMPLEX * frame.times.as_ref().map_or(0, Vec::len) as u64;
    times
        + match &frame.samples {
            // How often each place was measured.
            Samples::Cartesian { sampled, .. } => {
                let grid = (COMPLEX * coils + INDEX / 2 + 1) * count(sampled.shape());
                grid + frame.calibration.as_ref().map_or(0, |_| grid)
            }
            Samples::NonCartesian { trajectory, .. } => {
                let (s, d) = (trajectory.samples() as u64, trajectory.dims() as u64);
                // Rows of three components, joined; then the samples, and the indices of those that are kept.
                let joined = (3 + d) * COMPLEX * s;
                joined.max((d + coils) * COMPLEX * s + INDEX * s)
            }
        }
}

/// Bytes of host memory that a frame takes while it waits in a queue.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::{C32, Geometry};
/// use rayspin_mri::recon::plan::{assembling, samples_of};
/// use rayspin_mri::scan::Frame;
///
/// let frame = Frame::from_grid(ArrayD::from_elem(vec![8, 64, 64], C32::ONE), Geometry::default())?;
/// assert!(samples_of(&frame) >= 8 * 64 * 64 * 8 && samples_of(&frame) < assembling(&frame));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn samples_of(frame: &Frame) -> u64 {
    let coils = frame.coils() as u64;
    let times = COMPLEX * frame.times.as_ref().map_or(0, Vec::len) as u64;
    let values = match &frame.samples {
        Samples::Cartesian { sampled, .. } => (COMPLEX * coils + 1) * count(sampled.shape()),
        Samples::NonCartesian { trajectory, .. } => {
            COMPLEX * (coils + trajectory.dims() as u64) * trajectory.samples() as u64
        }
    };
    times + values
}
