//! One image on several devices, each of which encodes a part of the coils.
//!
//! ```text
//! Eᴴd = Σ_g E_gᴴ d_g,   EᴴE = Σ_g E_gᴴ E_g,   E_g = F diag(c_j) over the coils j of device g
//! ```
//!
//! Samples, plans, spectra and maps of a part are on its device alone. The first device estimates the maps of
//! all coils, because maps of a voxel depend on all of them. It also runs the method: each iteration copies
//! the image to the other devices and adds what they make of it ([`AcrossDevices`]).

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ndarray::{ArrayD, Axis};
use rayspin_core::{C32, Error, Monitor, Result, expect_shape};
use rayspin_device::{Array, Device, at_once};
use rayspin_kernels::vector::SumAcross;
use rayspin_linop::{AcrossDevices, CoilMaps, LinearOp};
use rayspin_run::{Bytes, Ledger};

use super::{FrameImage, ReconOptions, Reconstructor};
use crate::encoding::{COMPLEX, Context, FrameCache, Inputs, Known, Made, Settings, Solving, Spec, count};
use crate::maps::AXES_OF_SETS;
use crate::prepare::Mixing;
use crate::scan::Frame;

/// A device and its coils.
type Share = (Device, Range<usize>);

/// What the coils of a device, or of all, leave for the method.
struct Part {
    rhs: Array<C32>,
    normal: Arc<dyn LinearOp<C32>>,
    /// Notes and certificates.
    made: Made,
}

/// A frame whose coils go to several devices.
struct Spread<'a> {
    frame: &'a Frame,
    of_frames: Option<&'a [usize]>,
    options: &'a ReconOptions,
    context: Context,
    mixing: Option<&'a Mixing>,
    /// `[coil, image…]`, or `[set, coil, image…]`.
    maps: &'a ArrayD<C32>,
    sets: usize,
}

/// Maps of the host.
pub(super) fn on_host(device: &Device, maps: ArrayD<C32>) -> Result<CoilMaps<f32>> {
    let shape = maps.shape().to_vec();
    let values = maps.as_standard_layout().into_owned().into_raw_vec_and_offset().0;
    Ok(Array::from_vec(&device.host(), &shape, values)?.into())
}

impl ReconOptions {
    /// The devices and the coils of each, in order; none where one device takes all.
    pub(super) fn spread(&self, lead: &Device, coils: usize) -> Option<Vec<Share>> {
        let mut first = 0;
        let ranges = self.shares(coils)?.into_iter().map(|count| {
            first += count;
            first - count..first
        });
        let devices = std::iter::once(lead).chain(&self.run.beside);
        Some(devices.cloned().zip(ranges).collect())
    }
}

/// The settings of a part: its maps are there, and the first part alone is certified.
fn settings_of_part<'a>(
    options: &'a ReconOptions,
    maps: &'a ArrayD<C32>,
    range: &Range<usize>,
    sets: usize,
) -> Settings<'a> {
    let settings = options.settings();
    let certify = settings.certify.filter(|_| range.start == 0);
    Settings { certify, maps: Some(maps), map_sets: sets, keep_maps: false, ..settings }
}

impl Reconstructor {
    /// Reconstructs one frame on several devices. Errors: as [`Reconstructor::frame`]; the first device that
    /// fails, by name.
    pub(super) fn attempt_spread(
        &mut self,
        frame: &Frame,
        of_frames: Option<&[usize]>,
        shares: &[Share],
        monitor: &Monitor<'_>,
    ) -> Result<FrameImage> {
        let made = self.solve_spread(frame, of_frames, shares, monitor);
        // An error without a name is of what this device alone does: maps of all coils, and the method.
        let made = made.map_err(|error| self.device.named(error));
        // What has failed on another device may not be told yet.
        let made = made.and_then(|made| {
            let settled = |(device, _): &Share| device.synchronize().map_err(|error| device.named(error));
            shares.iter().try_for_each(settled)?;
            Ok(made)
        });
        self.done(made)
    }

    fn solve_spread(
        &mut self,
        frame: &Frame,
        of_frames: Option<&[usize]>,
        shares: &[Share],
        monitor: &Monitor<'_>,
    ) -> Result<Made> {
        let (maps, notes) = self.maps_of_all(frame, of_frames, monitor)?;
        let context = self.context(self.coils(frame));
        let inputs = Inputs::new(Cow::Borrowed(frame)).of_frames(of_frames.map(<[usize]>::to_vec));
        let solver = Context { spread: true, ..context };
        let spec = self.options.encoding(&self.device, &inputs, solver)?;
        let maps = match (maps, &self.options.maps) {
            (Some(maps), _) => maps,
            (None, Some(given)) => spec.on_grid(given.view())?.into_owned(),
            (None, None) => return Err(Error::value("sensitivity maps", "some", "none")),
        };
        let of_coils = [&[spec.coils()], spec.domain()].concat();
        let from = maps.ndim().saturating_sub(of_coils.len());
        expect_shape("sensitivity maps", &of_coils, &maps.shape()[from..])?;
        let mixing = self.mixing.clone();
        let spread = Spread {
            frame,
            of_frames,
            options: &self.options,
            context,
            mixing: mixing.as_deref(),
            maps: &maps,
            sets: spec.sets(),
        };
        let parts = spread.parts(shares, monitor)?;
        monitor.check()?;
        let Part { rhs, normal, made: of_parts } = joined(shares, parts)?;
        let mut solving = Solving::of_series(&spec, &mut self.cache, rhs, normal);
        rayspin_run::run(self.options.method.steps(&spec)?, &mut solving, monitor)?;
        let mut made = solving.into_made()?;
        made.maps = Some(on_host(&self.device, maps)?);
        // In the order in which one device would tell them.
        let mut all: Vec<String> = Vec::new();
        for text in of_parts.notes.into_iter().chain(notes).chain(std::mem::take(&mut made.notes)) {
            if !all.contains(&text) {
                all.push(text);
            }
        }
        Ok(Made { notes: all, certificates: of_parts.certificates, ..made })
    }

    /// The maps of all coils on the host and the grid: of a frame before, or estimated on the first device,
    /// where nothing of them stays; none where they are given.
    fn maps_of_all(
        &mut self,
        frame: &Frame,
        of_frames: Option<&[usize]>,
        monitor: &Monitor<'_>,
    ) -> Result<(Option<ArrayD<C32>>, Vec<String>)> {
        if let Some(shared) = &self.cache.shared {
            return Ok((Some(shared.to_host()?), Vec::new()));
        }
        if self.options.maps.is_some() {
            return Ok((None, Vec::new()));
        }
        let (maps, notes) = self.estimate_once(frame, of_frames, monitor)?;
        Ok((Some(maps.into_host()?), notes))
    }
}

impl Spread<'_> {
    /// All parts, each made by a thread of its own. The first one with coils tells the stages.
    fn parts(&self, shares: &[Share], monitor: &Monitor<'_>) -> Result<Vec<Option<Part>>> {
        let tells = shares.iter().position(|(_, range)| !range.is_empty());
        let devices: Vec<Device> = shares.iter().map(|(device, _)| device.clone()).collect();
        at_once(&devices, shares, |index, (device, range)| {
            if range.is_empty() {
                return Ok(None);
            }
            let quiet = Monitor::silent();
            let monitor = if tells == Some(index) { monitor } else { &quiet };
            self.part(device, range.clone(), monitor).map(Some)
        })
    }

    /// The right-hand side and the normal operator of some coils. Their plans are gone.
    fn part(&self, device: &Device, range: Range<usize>, monitor: &Monitor<'_>) -> Result<Part> {
        let mut inputs = inputs_of_part(self.frame, self.of_frames, self.mixing.is_some(), &range);
        let samples = inputs.take_samples()?;
        let mixing = self.mixing.map(|mixing| mixing.rows(range.clone()));
        let mut maps = self.maps.view();
        let axis = if self.sets > 1 { 1 } else { 0 };
        maps.slice_axis_inplace(Axis(axis), range.clone().into());
        // Sets of maps are known by their number of axes.
        while self.sets > 1 && maps.ndim() < AXES_OF_SETS {
            maps = maps.insert_axis(Axis(2));
        }
        let maps = maps.to_owned();
        let settings = settings_of_part(self.options, &maps, &range, self.sets);
        let context = Context { coils: range.len(), shared_maps: false, ..self.context };
        let spec = Spec::new(device, &inputs, settings, context)?;
        let mut cache = FrameCache::default();
        let mut solving = Solving::new(&spec, samples, mixing.as_ref(), &mut cache)?;
        rayspin_run::run(spec.frame_of_series(), &mut solving, monitor)?;
        let (rhs, normal) = (solving.take_rhs()?, solving.normal()?);
        Ok(Part { rhs, normal, made: Made { maps: None, ..solving.into_encoded() } })
    }
}

/// The samples of a part: of its own coils, or of all where a mixing makes the coils of them.
fn inputs_of_part<'a>(
    frame: &'a Frame,
    of_frames: Option<&[usize]>,
    mixes: bool,
    range: &Range<usize>,
) -> Inputs<'a> {
    let inputs = Inputs::new(Cow::Borrowed(frame)).of_frames(of_frames.map(<[usize]>::to_vec));
    if mixes { inputs } else { inputs.of_coils(range.clone()) }
}

/// The right-hand side and normal operator of all coils, and what was said of the parts.
fn joined(shares: &[Share], parts: Vec<Option<Part>>) -> Result<Part> {
    let shape = parts.iter().flatten().next().map(|part| part.rhs.shape().to_vec()).unwrap_or_default();
    let (mut sums, mut operators, mut said) = (Vec::new(), Vec::new(), None);
    for (part, (device, _)) in parts.into_iter().zip(shares) {
        let (rhs, normal) = match part {
            Some(Part { rhs, normal, made }) => {
                said = Some(match said {
                    None => made,
                    Some(before) => Made::with(before, made),
                });
                (rhs, Some(normal))
            }
            None => (Array::zeros(device, &shape).map_err(|error| device.named(error))?, None),
        };
        sums.push(rhs);
        operators.push((device.clone(), normal));
    }
    let said = said.ok_or_else(|| Error::value("coils of devices", "at least one", 0))?;
    let devices: Vec<Device> = shares.iter().map(|(device, _)| device.clone()).collect();
    let len = shape.iter().product();
    SumAcross::new(&devices, len)?.to_first(&mut sums.iter_mut().collect::<Vec<_>>())?;
    let (rhs, normal) = (sums.swap_remove(0), Arc::new(AcrossDevices::new(operators)?));
    Ok(Part { rhs, normal, made: said })
}

/// Adds the steps of a frame whose coils go to several devices, up to the method's own, to a plan that is of
/// the first device. The frame is held.
///
/// Errors: what planning refuses.
pub(super) fn plan(
    ledger: &mut Ledger,
    frame: &Frame,
    of_frames: Option<&[usize]>,
    shares: &[Share],
    (options, context, known): (&ReconOptions, Context, &Known),
) -> Result<()> {
    let (lead, context) = (&shares[0].0, Context { spread: false, ..context });
    let inputs = Inputs::new(Cow::Borrowed(frame)).of_frames(of_frames.map(<[usize]>::to_vec));
    let spec = options.encoding(lead, &inputs, context)?.knowing(known);
    let (sets, len) = (spec.sets(), (spec.image_bytes() / COMPLEX) as usize);
    let maps = COMPLEX * count(spec.domain()) * (context.coils * sets) as u64;
    // Each part has the maps of its coils once more, and maps of a slice stay for its next frame.
    ledger.hold(Bytes::host(maps * if context.shared_maps { 3 } else { 2 }));
    let before = ledger.held();
    if spec.estimates_maps() {
        let alone = Context { shared_maps: false, maps_alone: true, ..context };
        let alone = options.encoding(lead, &inputs, alone)?.knowing(known);
        alone.encoding_steps().into_iter().try_for_each(|step| ledger.add(step))?;
        ledger.keep(before);
    }
    let (on_first, on_others) = AcrossDevices::<C32>::bytes(shares.len(), len);
    // Those of a part are shared ones to its plan.
    let none = ArrayD::zeros(vec![0]);
    let mut parts = Vec::with_capacity(shares.len());
    for (index, (device, range)) in shares.iter().enumerate() {
        let mut part = ledger.part();
        let mut held = Bytes::on(device, if index == 0 { on_first } else { on_others });
        if !range.is_empty() {
            let inputs = inputs_of_part(frame, of_frames, context.prepared, range);
            let own = Context { coils: range.len(), shared_maps: true, ..context };
            let spec = Spec::new(device, &inputs, settings_of_part(options, &none, range, sets), own)?;
            let spec = spec.knowing(known);
            spec.frame_of_series().into_iter().try_for_each(|step| part.add(step))?;
            held = held + spec.kept_in_series()? + spec.maps_held()?;
        }
        if index > 0 || range.is_empty() {
            // Right-hand sides are added on the first device.
            let rhs = Bytes::on(device, COMPLEX * len as u64);
            held = if index > 0 { held.less(rhs) } else { held + rhs };
        }
        part.keep(held);
        parts.push(part);
    }
    ledger.at_once(parts);
    Ok(())
}
