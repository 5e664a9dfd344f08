//! An encoding before anything is allocated, and the steps that make it.

use std::borrow::Cow;
use std::cell::OnceCell;

use ndarray::{ArrayD, ArrayViewD};
use rayspin_core::{C32, Error, Geometry, Result, Trajectory, expect_shape};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_kernels::fft;
use rayspin_kernels::walsh;
use rayspin_linop::{CoilMaps, MapsBuilder};
use rayspin_run::{Bytes, Effort, Memory, Needs, Step};
use rayspin_solve::LanczosOptions;

use super::points::{Field, Known, PointNeeds, Points};
use super::samples::HostSamples;
use super::solving::Solving;
use super::voxels::Voxels;
use super::{COMPLEX, Combiner, INDEX, REAL, count, off_resonance};
use crate::maps;
use crate::methods::{Combine, MapUse, Uses, takes};
use crate::prepare::{CompressionKind, mixing_needs};
use crate::recon::{Cuts, ReconOptions};
use crate::scan::{CalibrationLines, Frame, Samples};

/// Coil images between the operators of several sets of maps.
const SOFT_ARRAYS_GRID: u64 = 5;
const SOFT_ARRAYS_POINTS: u64 = 3;

/// A frame taken apart: its samples, which may be given up, and what describes them.
pub struct Inputs<'a> {
    matrix: Vec<usize>,
    geometry: Geometry,
    coils: usize,
    sampled: Option<Cow<'a, ArrayD<bool>>>,
    trajectory: Option<Trajectory>,
    calibration: Option<Cow<'a, CalibrationLines>>,
    times: Option<Cow<'a, [f64]>>,
    samples: Option<HostSamples<'a>>,
}

impl<'a> Inputs<'a> {
    /// Of a frame that is borrowed or given up.
    pub fn new(frame: Cow<'a, Frame>) -> Self {
        let (matrix, geometry, coils) = (frame.matrix.clone(), frame.geometry, frame.coils());
        let (sampled, trajectory, samples, calibration, times) = match frame {
            Cow::Owned(Frame { samples, calibration, times, .. }) => {
                let (sampled, trajectory, data) = match samples {
                    Samples::Cartesian { kspace, sampled } => (Some(sampled), None, kspace),
                    Samples::NonCartesian { trajectory, data } => (None, Some(trajectory), data.into_dyn()),
                };
                (
                    sampled.map(Cow::Owned),
                    trajectory,
                    data.into(),
                    calibration.map(Cow::Owned),
                    times.map(Cow::Owned),
                )
            }
            Cow::Borrowed(Frame { samples, calibration, times, .. }) => {
                let (sampled, trajectory, data) = match samples {
                    Samples::Cartesian { kspace, sampled } => (Some(sampled), None, kspace.view()),
                    Samples::NonCartesian { trajectory, data } => {
                        (None, Some(trajectory.clone()), data.view().into_dyn())
                    }
                };
                (
                    sampled.map(Cow::Borrowed),
                    trajectory,
                    data.into(),
                    calibration.as_ref().map(Cow::Borrowed),
                    times.as_deref().map(Cow::Borrowed),
                )
            }
        };
        Self { matrix, geometry, coils, sampled, trajectory, calibration, times, samples: Some(samples) }
    }

    /// The samples, once.
    pub(crate) fn take_samples(&mut self) -> Result<HostSamples<'a>> {
        self.samples.take().ok_or_else(|| Error::value("samples of a frame", "samples", "none any more"))
    }
}

/// Samples of a grid.
#[derive(Clone, Copy)]
pub(crate) struct Grid<'a> {
    /// Where it was measured.
    pub(crate) sampled: &'a ArrayD<bool>,
    /// Lines of a scan of their own.
    pub(crate) calibration: Option<&'a CalibrationLines>,
}

pub(super) enum Place<'a> {
    Grid(Grid<'a>),
    Points(Box<Points<'a>>),
}

/// Where sensitivity maps come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapSource {
    /// The method uses none.
    Unused,
    /// They are given to the run.
    Given,
    /// A frame before had them.
    Shared,
    /// A single coil sees everything alike.
    Uniform,
    /// They are estimated from the frame.
    Estimated,
}

/// What is known of an encoding besides the frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// Coils once they are prepared.
    pub(crate) coils: usize,
    /// Whether these are not the scan's own.
    pub(crate) prepared: bool,
    /// Whether maps of a frame before are there.
    pub(crate) shared_maps: bool,
    /// Lowest and highest frequency of the fields of all frames.
    pub(crate) field_range: Option<[f64; 2]>,
    /// Frames that the method solves for together.
    pub(crate) together: usize,
    /// Whether the frame is no image, and tells maps alone.
    pub(crate) maps_alone: bool,
}

/// The encoding of one frame as a run will have it: shapes, and the steps that make it, each with what it takes.
pub struct Spec<'a> {
    device: Device,
    options: &'a ReconOptions,
    voxels: Voxels,
    pub(super) own_coils: usize,
    context: Context,
    pub(super) place: Place<'a>,
    uses: Uses,
    maps: MapSource,
    points: OnceCell<PointNeeds>,
    known: Option<&'a Known>,
}

impl<'a> Spec<'a> {
    /// Of a frame's inputs, with the run's options.
    ///
    /// Errors: a method that does not suit the frame; a field map without times, or of another matrix.
    pub(crate) fn new(
        device: &Device,
        inputs: &'a Inputs<'_>,
        options: &'a ReconOptions,
        context: Context,
    ) -> Result<Self> {
        let of_method = options.method.uses();
        let uses = match context.maps_alone {
            true => {
                Uses { place: crate::methods::Place::Anywhere, density: false, normal: false, ..of_method }
            }
            false => of_method,
        };
        let calibration = inputs.calibration.as_deref();
        let on_grid = inputs.sampled.is_some();
        let field = options.field_map.as_deref();
        if !takes(uses, on_grid && field.is_none()) {
            return Err(misplaced(options, on_grid, field.is_some()));
        }
        let voxels = Voxels::new(&inputs.matrix, &inputs.geometry.spacing_mm);
        let range = |map: &ArrayD<f32>| context.field_range.unwrap_or_else(|| off_resonance::range_of(map));
        let place = match (&inputs.sampled, &inputs.trajectory, field) {
            (Some(sampled), _, None) => Place::Grid(Grid { sampled, calibration }),
            (Some(sampled), _, Some(map)) => {
                let times = off_resonance::expect_times(inputs.times.as_deref(), sampled.len())?;
                let (places, trajectory) = off_resonance::places_of_grid(sampled, &inputs.matrix)?;
                let times = places.iter().map(|&place| times[place]).collect();
                let field = Some(Field { map, times: Cow::Owned(times), range: range(map) });
                let grid = Some((Grid { sampled, calibration }, places));
                Place::Points(Box::new(Points { trajectory, field, grid }))
            }
            (None, Some(trajectory), map) => {
                let field = match map {
                    None => None,
                    Some(map) => {
                        let times =
                            off_resonance::expect_times(inputs.times.as_deref(), trajectory.samples())?;
                        Some(Field { map, times: Cow::Borrowed(times), range: range(map) })
                    }
                };
                Place::Points(Box::new(Points { trajectory: trajectory.clone(), field, grid: None }))
            }
            (None, None, _) => return Err(Error::value("samples", "a grid or a trajectory", "neither")),
        };
        let maps = if !options.needs_maps() {
            MapSource::Unused
        } else if context.shared_maps {
            MapSource::Shared
        } else if options.maps.is_some() {
            MapSource::Given
        } else if context.coils == 1 && uses.maps == MapUse::One {
            MapSource::Uniform
        } else {
            MapSource::Estimated
        };
        Ok(Self {
            device: device.clone(),
            options,
            voxels,
            own_coils: inputs.coils,
            context,
            place,
            uses,
            maps,
            points: OnceCell::new(),
            known: None,
        })
    }

    /// With what plans of the same frame found.
    pub(crate) fn knowing(self, known: &'a Known) -> Self {
        Self { known: Some(known), ..self }
    }

    pub(super) fn known(&self) -> Option<&'a Known> {
        self.known
    }

    /// Where it is computed.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether that is a GPU.
    pub fn on_gpu(&self) -> bool {
        self.device.kind() == BackendKind::Cuda
    }

    /// The image's voxels.
    pub fn voxels(&self) -> &Voxels {
        &self.voxels
    }

    /// Coils once they are prepared.
    pub fn coils(&self) -> usize {
        self.context.coils
    }

    /// Frames that the method solves for together.
    pub fn frames(&self) -> usize {
        self.context.together
    }

    /// The shape of one image that is solved for: the grid, which may be larger than the image's matrix, or the matrix.
    pub fn domain(&self) -> &[usize] {
        match &self.place {
            Place::Grid(grid) => grid.sampled.shape(),
            Place::Points(_) => self.voxels.matrix(),
        }
    }

    /// Voxels of the [domain](Self::domain).
    pub fn voxels_of_domain(&self) -> u64 {
        count(self.domain())
    }

    /// How much is done at once.
    pub fn cuts(&self) -> &Cuts {
        &self.options.run.cuts
    }

    pub(crate) fn uses(&self) -> &Uses {
        &self.uses
    }

    pub(crate) fn options(&self) -> &'a ReconOptions {
        self.options
    }

    pub(crate) fn map_source(&self) -> MapSource {
        self.maps
    }

    /// Sets of maps, each with an image of its own.
    pub fn sets(&self) -> usize {
        match self.maps {
            MapSource::Estimated | MapSource::Shared => {
                self.options.sensitivities.map_or(1, |how| how.sets()).min(self.coils().max(1))
            }
            _ => 1,
        }
    }

    /// The grid. Errors: samples that lie on none.
    pub(crate) fn expect_grid(&self) -> Result<Grid<'_>> {
        match &self.place {
            Place::Grid(grid) => Ok(*grid),
            Place::Points(_) => Err(Error::value("samples", "a grid", "a trajectory")),
        }
    }

    /// Bytes of everything that is solved for: an image of each set of maps, of each frame.
    pub fn image_bytes(&self) -> u64 {
        COMPLEX * self.voxels_of_domain() * (self.sets() * self.context.together) as u64
    }

    /// So many bytes of arrays.
    pub fn arrays(&self, bytes: u64) -> Bytes {
        Bytes::on(&self.device, bytes)
    }

    /// Coils that are taken at once.
    pub(crate) fn batch(&self) -> u64 {
        let coils = self.coils() as u64;
        self.cuts().coils.map_or(coils, |b| (b as u64).clamp(1, coils.max(1)))
    }

    fn whole(&self) -> bool {
        self.batch() == self.coils() as u64
    }

    /// Samples of a coil.
    fn points_of_coil(&self) -> u64 {
        match &self.place {
            Place::Grid(grid) => count(grid.sampled.shape()),
            Place::Points(points) => points.trajectory.samples() as u64,
        }
    }

    /// Bytes of all coils' samples.
    fn samples(&self) -> u64 {
        COMPLEX * self.coils() as u64 * self.points_of_coil()
    }

    /// Bytes of them that are on the device all along: none of a GPU that takes some coils at a time.
    fn samples_held(&self) -> u64 {
        if self.on_gpu() && !self.whole() { 0 } else { self.samples() }
    }

    /// Bytes of samples that a method which takes all coils at once brings to the device.
    pub(crate) fn samples_to_come(&self) -> u64 {
        self.samples() - self.samples_held()
    }

    /// Bytes of the coils' samples that are taken at once, beside what is held.
    pub(crate) fn part_of_samples(&self) -> u64 {
        if self.whole() { 0 } else { COMPLEX * self.batch() * self.points_of_coil() }
    }

    /// Bytes on the host while a GPU's image becomes the frame's: itself, and a sum.
    pub(crate) fn to_host(&self) -> u64 {
        (COMPLEX + REAL) * self.image_bytes() / COMPLEX
    }

    /// Coil images on their way to one image.
    pub(crate) fn combiner<'m>(&self, maps: Option<&'m CoilMaps<f32>>) -> Combiner<'m> {
        Combiner::new(&self.device, self.coils(), self.domain(), maps)
    }

    /// Bytes of combining coil images: the sum, and the image made of it, which a GPU leaves to the host.
    pub(crate) fn combining(&self) -> u64 {
        let n = self.voxels_of_domain();
        match self.options.combine() {
            Combine::Maps if self.on_gpu() => COMPLEX * n,
            Combine::Maps => COMPLEX * n + REAL * n,
            Combine::RootSumOfSquares if self.coils() == 1 => 0,
            Combine::RootSumOfSquares if self.on_gpu() => REAL * n,
            Combine::RootSumOfSquares => REAL * n + COMPLEX * n,
        }
    }

    /// What is known of the trajectory's plans, found once.
    pub(super) fn point_needs(&self, points: &Points<'_>) -> Result<&PointNeeds> {
        if let Some(needs) = self.points.get() {
            return Ok(needs);
        }
        let found = PointNeeds::new(self, points)?;
        Ok(self.points.get_or_init(|| found))
    }

    /// All steps from the frame to its image.
    pub(crate) fn steps(&'a self) -> Result<Vec<Step<'a, Solving<'a>>>> {
        let mut steps = self.encoding_steps();
        steps.extend(self.options.method.steps(self)?);
        Ok(steps)
    }

    /// Samples, plans and maps.
    pub(crate) fn encoding_steps(&'a self) -> Vec<Step<'a, Solving<'a>>> {
        let mut steps = Vec::new();
        match &self.place {
            Place::Grid(_) => steps.push(self.arrival()),
            Place::Points(points) => self.point_steps(points, &mut steps),
        }
        if self.options.certify.is_some() {
            steps.push(
                Step::new("certify", |state: &mut Solving<'_>, _| state.certify())
                    .unless(|state| state.is_certified()),
            );
        }
        steps.extend(self.map_steps());
        steps
    }

    /// The steps that make the maps of a frame that is no image.
    pub(crate) fn maps_only(&'a self) -> Vec<Step<'a, Solving<'a>>> {
        let mut steps = Vec::new();
        match &self.place {
            Place::Grid(_) => {}
            Place::Points(points) => self.point_steps(points, &mut steps),
        }
        steps.extend(self.map_steps());
        steps
    }

    /// The steps of one frame of those that a method solves for together, up to its right-hand side and normal operator.
    pub(crate) fn frame_of_series(&'a self) -> Vec<Step<'a, Solving<'a>>> {
        let mut steps = self.encoding_steps();
        steps.extend([self.right_hand_side(), self.normal_operator()]);
        steps
    }

    /// Bytes that each further frame of a series leaves held: its right-hand side and its normal operator. Its plans make room for
    /// the next one's.
    pub(crate) fn kept_in_series(&self) -> Result<Bytes> {
        let kernels = match &self.place {
            Place::Grid(_) => Bytes::default(),
            Place::Points(points) => self.spectra(points)?,
        };
        Ok(kernels + self.arrays(self.image_bytes() + self.normal_bytes()?))
    }

    /// Bytes of the frame itself, on the host.
    pub(crate) fn frame_bytes(&self) -> Bytes {
        let own = COMPLEX * self.own_coils as u64;
        let lines = |grid: &Grid<'_>| grid.calibration.map_or(0, |lines| own * count(lines.sampled.shape()));
        Bytes::host(match &self.place {
            Place::Grid(grid) => {
                // A GPU has a copy, of some coils at a time where not all are taken at once: the frame stays.
                let frame = if self.on_gpu() { own } else { 0 };
                (frame + 1) * self.points_of_coil() + lines(grid)
            }
            Place::Points(points) => {
                let trajectory = COMPLEX * points.trajectory.dims() as u64;
                let of_grid = |(grid, _): &(Grid<'_>, Vec<usize>)| {
                    (own + COMPLEX + 1) * count(grid.sampled.shape()) + lines(grid)
                };
                let frame = if self.on_gpu() && points.grid.is_none() { own } else { 0 };
                (trajectory + frame) * self.points_of_coil() + points.grid.as_ref().map_or(0, of_grid)
            }
        })
    }

    /// Samples come to the device, where coils become others.
    pub(super) fn arrival(&'a self) -> Step<'a, Solving<'a>> {
        let (work, prepared) = (Solving::arrive, self.context.prepared);
        let step = if prepared && (!self.on_gpu() || self.whole()) {
            Step::new("coils", work)
        } else {
            Step::silent(work)
        };
        step.needs(move || {
            let held = self.arrays(self.samples_held());
            if !prepared {
                return Ok(Needs::of(Memory::held(held)));
            }
            let (own, points) = (self.own_coils as u64, self.points_of_coil());
            let line = match (&self.place, self.options.prepare.compression) {
                (Place::Grid(grid), Some(of)) if of.kind == CompressionKind::Geometric => {
                    grid.sampled.shape().last().copied().unwrap_or(1)
                }
                _ => 1,
            };
            let piece = mixing_needs(self.device.kind(), own, self.coils() as u64, points, line as u64);
            Ok(Needs::of(if self.on_gpu() {
                // Wherever samples come to the GPU.
                Memory::held(held + self.arrays(piece))
            } else {
                Memory::passing(Bytes::host(COMPLEX * own * points + self.samples() + piece)).holding(held)
            }))
        })
    }

    /// Maps, wherever they come from.
    fn map_steps(&'a self) -> Option<Step<'a, Solving<'a>>> {
        // In an uneven field the grid's maps were estimated before it became a trajectory.
        let of_grid = matches!(&self.place, Place::Points(points) if points.grid.is_some());
        let held = move || self.maps_held();
        match self.maps {
            MapSource::Unused => None,
            MapSource::Estimated if !of_grid => Some(
                Step::new("coil sensitivities", Solving::estimate_maps).needs(move || match &self.place {
                    Place::Grid(grid) => self.grid_maps_needs(*grid),
                    Place::Points(points) => self.point_maps_needs(points),
                }),
            ),
            _ => Some(
                Step::silent(|state: &mut Solving<'_>, _| state.find_maps())
                    .needs(move || Ok(Needs::of(Memory::held(held()?)))),
            ),
        }
    }

    /// What the maps take all along.
    pub(super) fn maps_held(&self) -> Result<Bytes> {
        let shape = [&[self.coils()], self.domain()].concat();
        let (gpu, pinned) =
            CoilMaps::<f32>::bytes_needed(&self.device, &shape, self.map_cut().map(|cut| cut.coils))?;
        Ok(Bytes::beside(&self.device, gpu, pinned) * self.sets() as u64)
    }

    /// How maps are made and kept, where a GPU does not hold those of all coils: so many that two places hold what it may, and
    /// slabs of about as much.
    pub(crate) fn map_cut(&self) -> Option<maps::Cut> {
        let held = self.cuts().maps.filter(|&held| held < self.coils())?;
        if !self.on_gpu() || self.sets() > 1 {
            return None;
        }
        let planes = self.domain().first().copied().unwrap_or(1);
        Some(maps::Cut { planes: (planes * held).div_ceil(2 * self.coils()), coils: (held / 2).max(1) })
    }

    /// What making cut maps takes, with `images` bytes of arrays while coil images are made: their places on the GPU are taken at the
    /// end.
    pub(super) fn cut_maps_needs(&self, needs: &maps::CutNeeds, images: u64, beside: u64) -> Result<Needs> {
        let shape = [&[self.coils()], self.domain()].concat();
        let (gpu, pinned) =
            CoilMaps::<f32>::bytes_needed(&self.device, &shape, self.map_cut().map(|cut| cut.coils))?;
        let arrays = images.max(needs.solving);
        let passing = Memory::passing(Bytes { gpu: arrays, host: needs.host.max(beside) });
        let memory = match pinned {
            0 => Memory::held(Bytes { gpu, host: 0 }).then(passing),
            _ => Memory::held(Bytes::host(pinned)).then(passing.holding(Bytes { gpu, host: 0 })),
        };
        Ok(Needs::of(memory).and(Effort::of(needs.work)))
    }

    fn grid_maps_needs(&self, grid: Grid<'_>) -> Result<Needs> {
        let (coils, domain) = (self.coils(), grid.sampled.shape());
        let held = self.maps_held()?;
        let sampled = grid.calibration.map_or(grid.sampled, |lines| &lines.sampled);
        let (width, how) = (self.options.calibration, self.options.sensitivities);
        if let Some(cut) = self.map_cut() {
            let centre = maps::Centre::of_grid(sampled, width, how)?;
            let needs = maps::cut_needs(&self.device, centre.how, centre.width, (coils, domain), cut);
            return self.cut_maps_needs(&needs, needs.images, 0);
        }
        let espirit = maps::espirit_on_grid(&self.device, sampled, width, how, coils);
        let all = self.sets() as u64 * COMPLEX * coils as u64 * count(domain);
        Ok(match espirit {
            Some(needs) => {
                let bytes = if self.on_gpu() { all + needs.gpu } else { all.max(needs.host) };
                let passing = Memory::passing(Bytes::beside(&self.device, bytes, needs.host));
                Needs::of(passing.holding(held)).and(Effort::of(needs.work))
            }
            None => {
                let (scratch, solve) = walsh::needs_on(&self.device, coils, domain);
                let transform = fft::Problem { shape: domain.to_vec(), batch: 1 }.work();
                Needs::of(Memory::passing(self.arrays(2 * all + scratch)).holding(held))
                    .and(Effort::transforms(coils as u64, transform).and(solve))
            }
        })
    }

    /// The maps of a grid in an uneven field, which come back to the host, and the samples of its places.
    pub(super) fn grid_in_field(&'a self, points: &'a Points<'a>) -> Vec<Step<'a, Solving<'a>>> {
        let Some((grid, places)) = &points.grid else { return Vec::new() };
        let mut steps = Vec::new();
        if self.maps == MapSource::Estimated {
            let needs = move || {
                let needs = self.grid_maps_needs(*grid)?;
                let host = Bytes::host(COMPLEX * self.coils() as u64 * count(self.voxels.matrix()));
                // On the CPU they are the host's already.
                let beside = if self.on_gpu() { host } else { Bytes::default() };
                let passing = Memory::passing(needs.memory.peak + beside).holding(host);
                Ok(Needs { memory: passing, ..needs })
            };
            steps.push(Step::new("coil sensitivities", Solving::estimate_maps_of_grid).needs(needs));
        }
        // Samples along the readout become others on the grid, beside it.
        let along =
            matches!(self.options.prepare.compression, Some(of) if of.kind == CompressionKind::Geometric);
        let needs = move || {
            let own = if along { self.coils() } else { self.own_coils } as u64;
            let s = places.len() as u64;
            let beside = if along { COMPLEX * self.coils() as u64 * count(grid.sampled.shape()) } else { 0 };
            let memory = Memory::passing(Bytes::host(beside + (COMPLEX * own + INDEX) * s));
            Ok(Needs::of(if self.on_gpu() {
                // The grid stays until the frame is done.
                memory.holding(Bytes::host(COMPLEX * own * s))
            } else {
                let own = COMPLEX * self.own_coils as u64;
                memory.freeing(Bytes::host((own + COMPLEX + 1) * count(grid.sampled.shape())))
            }))
        };
        let take = move |state: &mut Solving<'_>, _: &rayspin_core::Monitor<'_>| state.take_places(places);
        steps.push(Step::new("trajectory of the grid", take).needs(needs));
        steps
    }

    /// Eᴴd, after which the samples are gone.
    pub fn right_hand_side(&'a self) -> Step<'a, Solving<'a>> {
        Step::new("right-hand side", |state: &mut Solving<'_>, _| state.make_rhs()).needs(move || {
            let (sets, freed) = (self.sets() as u64, self.arrays(self.samples_held()));
            let one = COMPLEX * self.voxels_of_domain();
            match &self.place {
                Place::Grid(grid) => {
                    // Several sets of maps see all coils at once.
                    let taken = if sets > 1 { self.samples_to_come() } else { self.part_of_samples() };
                    let memory = Memory::passing(self.arrays(sets * one + taken));
                    let transform = fft::Problem { shape: grid.sampled.shape().to_vec(), batch: 1 }.work();
                    Ok(Needs::of(memory.freeing(freed).holding(self.arrays(sets * one)))
                        .and(Effort::transforms(self.coils() as u64, transform)))
                }
                Place::Points(points) => {
                    let needs = self.point_needs(points)?;
                    let all = COMPLEX * self.coils() as u64 * self.voxels_of_domain();
                    // Maps by set, and the images of all coils as they were and as they become.
                    let soft = if sets > 1 { sets * all } else { 0 };
                    let held = Memory::held(self.arrays(soft + needs.further));
                    let (part, images) = if sets > 1 {
                        (self.samples_to_come(), all)
                    } else {
                        (self.part_of_samples(), self.batch() * one)
                    };
                    let arrays = one + part + images + needs.passing(self.batch());
                    let memory = Memory::passing(Bytes::beside(&self.device, arrays, needs.beside));
                    Ok(Needs::of(held.then(memory.freeing(freed).holding(self.arrays(sets * one))))
                        .and(Effort::transforms(self.coils() as u64 * needs.encodings, needs.transform)))
                }
            }
        })
    }

    /// EᴴE of a method that solves for one image, FᴴF of one that goes coil by coil.
    pub fn normal_operator(&'a self) -> Step<'a, Solving<'a>> {
        Step::silent(|state: &mut Solving<'_>, _| state.make_normal())
            .needs(move || Ok(Needs::of(Memory::held(self.arrays(self.normal_bytes()?)))))
    }

    fn sees_all_coils(&self) -> bool {
        !matches!(self.uses.maps, MapUse::Combining(_))
    }

    /// Bytes that the normal operator works in, held from its first application on.
    fn normal_bytes(&self) -> Result<u64> {
        let (sets, coils) = (self.sets() as u64, self.coils() as u64);
        let n = COMPLEX * self.voxels_of_domain();
        let all = coils * n;
        Ok(match &self.place {
            Place::Grid(_) => {
                let mask = REAL * self.voxels_of_domain();
                mask + match self.sees_all_coils() {
                    // Maps by set, and what each operator hands to the next.
                    true if sets > 1 => sets * all + SOFT_ARRAYS_GRID * all,
                    true => 2 * self.batch() * n,
                    false => n,
                }
            }
            Place::Points(points) => {
                let needs = self.point_needs(points)?;
                let soft = if sets > 1 { SOFT_ARRAYS_POINTS * all } else { 0 };
                // What is turned, and what becomes of it: of all coils where several sets of maps see them.
                let turned = if points.field.is_none() {
                    0
                } else if sets > 1 {
                    2 * all
                } else {
                    2 * n
                };
                // With several sets of maps all coils are images at once: batches of about one size.
                let together =
                    if self.sees_all_coils() { coils.div_ceil(coils.div_ceil(self.batch())) } else { 1 };
                soft + turned + needs.convolution_bytes(self, together)?
            }
        })
    }

    /// The work of so many applications of the normal operator, to all that is solved for at once.
    pub fn normal_effort(&self, applications: u64) -> Result<Effort> {
        let coils = if self.sees_all_coils() { self.coils() as u64 } else { 1 };
        let count = coils * applications * self.context.together as u64;
        Ok(match &self.place {
            Place::Grid(grid) => {
                let transform = fft::Problem { shape: grid.sampled.shape().to_vec(), batch: 1 }.work();
                Effort::transforms(2 * count, transform)
            }
            Place::Points(points) => {
                let needs = self.point_needs(points)?;
                Effort::transforms(count * needs.convolutions, needs.convolution)
            }
        })
    }

    /// L, the largest eigenvalue of the normal operator, unless a frame before has it.
    pub fn largest_eigenvalue(&'a self) -> Step<'a, Solving<'a>> {
        Step::new("largest eigenvalue", |state: &mut Solving<'_>, _| state.find_eigenvalue())
            .unless(|state| state.has_eigenvalue())
            .needs(move || {
                let iterations = LanczosOptions::default().max_iterations as u64;
                let effort = self.normal_effort(iterations)?.iterations(iterations);
                Ok(Needs::of(Memory::passing(self.arrays(3 * self.image_bytes()))).and(effort))
            })
    }

    /// What the coils' images before they are solved for take, for a method that goes coil by coil.
    pub(crate) fn coil_images(&self) -> Result<Needs> {
        Ok(match &self.place {
            Place::Grid(grid) => {
                let transform = fft::Problem { shape: grid.sampled.shape().to_vec(), batch: 1 }.work();
                Needs::of(Memory::held(self.arrays(self.part_of_samples())))
                    .and(Effort::transforms(self.coils() as u64, transform))
            }
            Place::Points(points) => {
                let needs = self.point_needs(points)?;
                let images = COMPLEX * self.batch() * self.voxels_of_domain();
                let arrays = self.part_of_samples() + images + needs.passing(self.batch());
                let freed = if self.whole() { self.samples() } else { 0 };
                let memory = Memory::passing(Bytes::beside(&self.device, arrays, needs.beside))
                    .freeing(self.arrays(freed))
                    .holding(self.arrays(images));
                Needs::of(Memory::held(self.arrays(needs.further)).then(memory))
                    .and(Effort::transforms(self.coils() as u64 * needs.encodings, needs.transform))
            }
        })
    }

    /// What gridding takes.
    pub(crate) fn gridding_needs(&self) -> Result<Needs> {
        let Place::Points(points) = &self.place else {
            return Err(Error::value("samples", "a trajectory", "a grid"));
        };
        let needs = self.point_needs(points)?;
        let (voxels, whole) = (self.voxels_of_domain(), self.whole());
        let weighted = COMPLEX * self.batch() * self.points_of_coil();
        let images = COMPLEX * self.batch() * voxels;
        // The sum of the coils before.
        let sum = match self.options.combine() {
            _ if whole => 0,
            Combine::Maps => COMPLEX * voxels,
            Combine::RootSumOfSquares => REAL * voxels,
        };
        let gridded = (weighted + images + needs.passing(self.batch()) + sum).max(images + self.combining());
        // Taken whole, the samples are gone once they are weighted.
        let gridded = if whole { gridded.saturating_sub(self.samples()) } else { gridded };
        let arrays = (self.part_of_samples() + weighted).max(gridded);
        let beside = self.to_host() + needs.beside;
        let memory = Memory::held(self.arrays(needs.further)).then(Memory::passing(Bytes::beside(
            &self.device,
            arrays,
            beside,
        )));
        Ok(Needs::of(memory).and(Effort::transforms(self.coils() as u64 * needs.encodings, needs.transform)))
    }

    /// Bytes that the frame gives back: its image, and the maps where they are kept.
    pub(crate) fn result(&self) -> u64 {
        let maps = if self.options.keep_maps && self.options.needs_maps() { self.coils() as u64 } else { 0 };
        COMPLEX * count(self.voxels.matrix()) * (1 + maps)
    }

    /// The map of a coil that sees everything alike.
    pub(super) fn uniform_map(&self) -> Result<CoilMaps<f32>> {
        let mut maps = Array::zeros(&self.device, &[&[1], self.domain()].concat())?;
        maps.fill(C32::ONE)?;
        Ok(maps.into())
    }

    /// The maps that were given, `[coil, matrix…]` (a z of 1 may be missing or there), on the grid: beyond the matrix the
    /// coils see nothing, which confines the image to it.
    pub(super) fn given_maps(&self, given: &ArrayD<C32>) -> Result<CoilMaps<f32>> {
        let (matrix, grid) = (self.voxels.matrix(), self.domain());
        let with_coils = |shape: &[usize]| [&[self.coils()], shape].concat();
        let mut view = given.view();
        if view.ndim() == matrix.len() + 2 && view.shape()[1] == 1 {
            view.index_axis_inplace(ndarray::Axis(1), 0);
        }
        if view.shape() == with_coils(grid) {
            return from_host(&self.device, view, self.map_cut().map(|cut| cut.coils));
        }
        expect_shape("sensitivity maps", &with_coils(matrix), view.shape())?;
        let on_grid = crate::crop::centre_crop(view.to_owned(), &with_coils(grid))?;
        from_host(&self.device, on_grid.view(), self.map_cut().map(|cut| cut.coils))
    }
}

/// Maps of the host `[coil, image…]`, cut as they are to be.
fn from_host(device: &Device, maps: ArrayViewD<'_, C32>, cut: Option<usize>) -> Result<CoilMaps<f32>> {
    if cut.is_none() {
        return Ok(Array::from_host(device, maps)?.into());
    }
    let mut made = MapsBuilder::new(device, maps.shape(), cut)?;
    for (coil, image) in maps.outer_iter().enumerate() {
        let image = Array::from_host(device, image.insert_axis(ndarray::Axis(0)))?;
        made.put(coil..coil + 1, 0..image.len(), &image, 0)?;
    }
    made.finish()
}

/// What is wrong with a method for these samples.
fn misplaced(options: &ReconOptions, on_grid: bool, field: bool) -> Error {
    let place = match (on_grid, field) {
        (_, true) => "with a field map",
        (true, false) => "for a scan on the grid",
        (false, false) => "for a scan with a trajectory",
    };
    let methods = crate::methods::Methods::default();
    let fitting = methods.names(|method| takes(method.uses(), on_grid && !field));
    Error::value("method", format!("{fitting} {place}"), options.method.about().name)
}
