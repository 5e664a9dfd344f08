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

use ndarray::{ArrayViewD, Axis, CowArray, IxDyn};
use rayspin_core::{C32, Error, Monitor, Result, expect_shape, voxels};
use rayspin_device::{Array, BackendKind, Device, Move, Side, at_once, exchange};
use rayspin_kernels::vector::SumAcross;
use rayspin_linop::{AcrossDevices, CoilMaps, LinearOp};
use rayspin_run::{Bytes, Ledger};

use super::{FrameImage, ReconOptions, Reconstructor};
use crate::encoding::{
    COMPLEX, Context, FrameCache, Inputs, Known, Made, Settings, SharedMaps, Solving, Spec, count, on_host,
    whole,
};
use crate::prepare::Mixing;
use crate::scan::Frame;

/// A device and its coils.
type Share = (Device, Range<usize>);

/// An array of maps that several places hold.
type SharedArray = Arc<Array<C32>>;

/// The maps of all coils.
enum Whole<'a> {
    /// Maps that were estimated, or a copy of them on the host.
    Array(SharedArray),
    /// Maps that were given, on the grid.
    Given(CowArray<'a, C32, IxDyn>),
}

impl Whole<'_> {
    fn shape(&self) -> &[usize] {
        match self {
            Self::Array(maps) => maps.shape(),
            Self::Given(maps) => maps.shape(),
        }
    }
}

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
    sets: usize,
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

/// The specification of a part: its maps are there, and the first part alone is certified.
fn spec_of_part<'a>(
    device: &Device,
    inputs: &'a Inputs<'a>,
    options: &'a ReconOptions,
    range: &Range<usize>,
    (sets, context): (usize, Context),
) -> Result<Spec<'a>> {
    let settings = options.settings();
    let certify = settings.certify.filter(|_| range.start == 0);
    let settings = Settings { certify, map_sets: sets, keep_maps: false, ..settings };
    let context = Context { coils: range.len(), shared_maps: true, ..context };
    Spec::new(device, inputs, settings, context)
}

/// The maps of each part's coils, copied to its device: `[coil, image…]` or `[set, coil, image…]`. Nothing
/// else holds the whole afterwards where nobody keeps it.
fn split(whole: SharedArray, shares: &[Share], sets: usize) -> Result<Vec<Array<C32>>> {
    let shape = whole.shape();
    let (leading, rest) = shape.split_at(shape.len().min(if sets > 1 { 2 } else { 1 }));
    let (coils, size) = (leading.last().copied().unwrap_or(0), voxels(rest)?);
    let of_part = |(device, range): &Share| {
        let shape = [&leading[..leading.len() - 1], &[range.len()], rest].concat();
        Array::unset(device, &shape).map_err(|error| device.named(error))
    };
    let mut parts: Vec<_> = shares.iter().map(of_part).collect::<Result<_>>()?;
    let moves = shares.iter().enumerate().flat_map(|(index, (_, range))| {
        (0..sets).map(move |set| Move {
            from: (0, (set * coils + range.start) * size),
            to: (1 + index, set * range.len() * size),
            len: range.len() * size,
        })
    });
    let moves: Vec<_> = moves.collect();
    let mut sides = vec![Side::Read(&whole)];
    sides.extend(parts.iter_mut().map(Side::Written));
    exchange(&mut sides, &moves)?;
    Ok(parts)
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
        let (estimated, notes) = self.maps_of_all(frame, of_frames, monitor)?;
        let context = self.context(self.coils(frame));
        let inputs = Inputs::new(Cow::Borrowed(frame)).of_frames(of_frames.map(<[usize]>::to_vec));
        let solver = Context { spread: true, ..context };
        let spec = self.options.encoding(&self.device, &inputs, solver)?;
        let maps = match (estimated, &self.options.maps) {
            (Some(maps), _) => Whole::Array(maps),
            (None, Some(given)) => Whole::Given(spec.on_grid(given.view())?),
            (None, None) => return Err(Error::value("sensitivity maps", "some", "none")),
        };
        let of_coils = [&[spec.coils()], spec.domain()].concat();
        let from = maps.shape().len().saturating_sub(of_coils.len());
        expect_shape("sensitivity maps", &of_coils, &maps.shape()[from..])?;
        let mixing = self.mixing.clone();
        let spread = Spread {
            frame,
            of_frames,
            options: &self.options,
            context,
            mixing: mixing.as_deref(),
            sets: spec.sets(),
        };
        let (maps, kept) = match maps {
            maps if !self.keeps_maps() => (maps, None),
            Whole::Array(maps) => (Whole::Array(maps.clone()), Some(maps)),
            Whole::Given(maps) => {
                let maps = Arc::new(on_host(&self.device, maps.into_owned())?);
                (Whole::Array(maps.clone()), Some(maps))
            }
        };
        let parts = spread.parts(shares, maps, monitor)?;
        monitor.check()?;
        let Part { rhs, normal, made: of_parts } = joined(shares, parts)?;
        let mut solving = Solving::of_series(&spec, &mut self.cache, rhs, normal);
        rayspin_run::run(self.options.method.steps(&spec)?, &mut solving, monitor)?;
        let mut made = solving.into_made()?;
        made.maps = kept.map(CoilMaps::from);
        // In the order in which one device would tell them.
        let mut all: Vec<String> = Vec::new();
        for text in of_parts.notes.into_iter().chain(notes).chain(std::mem::take(&mut made.notes)) {
            if !all.contains(&text) {
                all.push(text);
            }
        }
        Ok(Made { notes: all, certificates: of_parts.certificates, ..made })
    }

    /// Whether the frame leaves its maps.
    fn keeps_maps(&self) -> bool {
        self.options.keep_maps || self.remember
    }

    /// The maps of all coils on the grid: of a frame before, or estimated on the first device; none where
    /// they are given. Maps that are kept are on the host, where they take no device's memory.
    fn maps_of_all(
        &mut self,
        frame: &Frame,
        of_frames: Option<&[usize]>,
        monitor: &Monitor<'_>,
    ) -> Result<(Option<SharedArray>, Vec<String>)> {
        if let Some(shared) = &self.cache.shared {
            return Ok((Some(shared.whole()?), Vec::new()));
        }
        if self.options.maps.is_some() {
            return Ok((None, Vec::new()));
        }
        let (maps, notes) = self.estimate_once(frame, of_frames, monitor)?;
        let maps = match self.keeps_maps() {
            true => Arc::new(on_host(&self.device, maps.into_host()?)?),
            false => whole(maps)?,
        };
        Ok((Some(maps), notes))
    }
}

impl Spread<'_> {
    /// All parts, each made by a thread of its own. The first one with coils tells the stages.
    fn parts(&self, shares: &[Share], maps: Whole<'_>, monitor: &Monitor<'_>) -> Result<Vec<Option<Part>>> {
        let tells = shares.iter().position(|(_, range)| !range.is_empty());
        let devices: Vec<Device> = shares.iter().map(|(device, _)| device.clone()).collect();
        let batch = self.options.run.batch_sizes.maps.filter(|_| self.sets == 1);
        let cut = batch.is_some_and(|batch| shares.iter().any(|(_, range)| batch < range.len()));
        // From GPU to GPU: no more of the whole is needed then, and its memory is free again. From the host
        // each part copies its own, as it does where a GPU holds some of its maps at a time.
        let (own, whole) = match maps {
            Whole::Array(maps) if !cut && maps.device().kind() == BackendKind::Cuda => {
                (split(maps, shares, self.sets)?, None)
            }
            maps => (Vec::new(), Some(maps)),
        };
        let read;
        let host = match &whole {
            None => None,
            Some(Whole::Given(maps)) => Some(maps.view()),
            Some(Whole::Array(maps)) => {
                read = maps.read()?;
                let view = ArrayViewD::from_shape(maps.shape(), &read);
                Some(view.map_err(|_| Error::value("sensitivity maps", "their shape", "another"))?)
            }
        };
        let mut own = own.into_iter();
        let work: Vec<_> = shares.iter().map(|share| (share, own.next())).collect();
        at_once(&devices, work, |index, ((device, range), own)| {
            if range.is_empty() {
                return Ok(None);
            }
            let quiet = Monitor::silent();
            let monitor = if tells == Some(index) { monitor } else { &quiet };
            let mut inputs = inputs_of_part(self.frame, self.of_frames, self.mixing.is_some(), range);
            let samples = inputs.take_samples()?;
            let spec = spec_of_part(device, &inputs, self.options, range, (self.sets, self.context))?;
            let maps = match (own, &host) {
                (Some(own), _) => own.into(),
                (None, Some(host)) => {
                    let axis = Axis(usize::from(self.sets > 1));
                    spec.maps_from_host(host.slice_axis(axis, range.clone().into()))?
                }
                (None, None) => return Err(Error::value("sensitivity maps", "some", "none")),
            };
            self.part(&spec, samples, maps, (range, monitor)).map(Some)
        })
    }

    /// The right-hand side and the normal operator of some coils. Their plans are gone.
    fn part(
        &self,
        spec: &Spec<'_>,
        samples: CowArray<'_, C32, IxDyn>,
        maps: CoilMaps<f32>,
        (range, monitor): (&Range<usize>, &Monitor<'_>),
    ) -> Result<Part> {
        let mixing = self.mixing.map(|mixing| mixing.rows(range.clone()));
        let mut cache = FrameCache::default();
        cache.shared = Some(SharedMaps::new(maps, false)?);
        let mut solving = Solving::new(spec, samples, mixing.as_ref(), &mut cache)?;
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
    // Maps that are given, kept, or too many for a GPU are on the host.
    ledger.hold(Bytes::host(maps));
    let before = ledger.held();
    if spec.estimates_maps() {
        let alone = Context { shared_maps: false, maps_alone: true, ..context };
        let alone = options.encoding(lead, &inputs, alone)?.knowing(known);
        alone.encoding_steps().into_iter().try_for_each(|step| ledger.add(step))?;
        if !options.keep_maps && alone.map_cut().is_none() {
            // The plans are gone. Each GPU gets the maps of its coils while the maps of all coils are there.
            ledger.keep(before + alone.maps_held()?);
            let own = maps / context.coils.max(1) as u64 * shares[0].1.len() as u64;
            ledger.hold_briefly(Bytes::on(lead, own));
        }
        ledger.keep(before);
    }
    let (on_first, on_others) = AcrossDevices::<C32>::bytes(shares.len(), len);
    let mut parts = Vec::with_capacity(shares.len());
    for (index, (device, range)) in shares.iter().enumerate() {
        let mut part = ledger.part();
        let mut held = Bytes::on(device, if index == 0 { on_first } else { on_others });
        if !range.is_empty() {
            let inputs = inputs_of_part(frame, of_frames, context.prepared, range);
            let spec = spec_of_part(device, &inputs, options, range, (sets, context))?.knowing(known);
            // The maps are there before all else.
            part.hold(spec.maps_held()?);
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
