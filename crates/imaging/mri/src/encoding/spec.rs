//! An encoding before anything is allocated, and the steps that make it.

use std::borrow::Cow;
use std::ops::Range;

use ndarray::{ArrayD, ArrayViewD};
use rayspin_core::{C32, Error, Geometry, Result, Trajectory, expect_shape};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_linop::{CoilMaps, MapsBuilder};
use rayspin_run::Bytes;

use super::kinds::{self, EncodingSpec, Given, Grid, Scale};
use super::known::Known;
use super::samples::HostSamples;
use super::voxels::Voxels;
use super::{BatchSizes, COMPLEX, Combine, Combiner, MapUse, REAL, Settings, Uses, count};
use crate::maps::AXES_OF_SETS;
use crate::scan::{CalibrationLines, Frame, Samples};

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
    /// The number of samples of each frame, where they are of several.
    of_frames: Option<Vec<usize>>,
}

impl<'a> Inputs<'a> {
    /// The inputs from a frame, which is borrowed or given up.
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
        let samples = Some(samples);
        Self { matrix, geometry, coils, sampled, trajectory, calibration, times, samples, of_frames: None }
    }

    /// With the number of samples of each frame, where several are joined.
    pub(crate) fn of_frames(self, of_frames: Option<Vec<usize>>) -> Self {
        Self { of_frames, ..self }
    }

    /// Of a part of the coils alone, where they are the scan's own. The samples are there still.
    pub(crate) fn of_coils(self, coils: Range<usize>) -> Self {
        let count = coils.len();
        let samples = self.samples.map(|mut samples| {
            samples.slice_axis_inplace(ndarray::Axis(0), coils.into());
            samples
        });
        Self { coils: count, samples, ..self }
    }

    pub(super) fn matrix(&self) -> &[usize] {
        &self.matrix
    }

    /// When the samples were taken, if the frame states it.
    pub(super) fn times(&self) -> Option<&[f64]> {
        self.times.as_deref()
    }

    /// The number of samples of each frame, where several are joined.
    pub(super) fn samples_of_frames(&self) -> Option<&[usize]> {
        self.of_frames.as_deref()
    }

    /// Whether the samples lie on a grid, and not on a trajectory.
    pub(crate) fn on_grid(&self) -> bool {
        self.sampled.is_some()
    }

    /// The grid. Errors: samples that lie on none.
    pub(super) fn expect_grid(&self) -> Result<Grid<'_>> {
        let sampled =
            self.sampled.as_deref().ok_or_else(|| Error::value("samples", "a grid", "a trajectory"))?;
        Ok(Grid { sampled, calibration: self.calibration.as_deref() })
    }

    /// The trajectory. Errors: samples of a grid.
    pub(super) fn expect_trajectory(&self) -> Result<&Trajectory> {
        self.trajectory.as_ref().ok_or_else(|| Error::value("samples", "a trajectory", "a grid"))
    }

    /// The samples, once.
    pub(crate) fn take_samples(&mut self) -> Result<HostSamples<'a>> {
        self.samples.take().ok_or_else(|| Error::value("samples of a frame", "samples", "none any more"))
    }
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
    /// Whether its coils are encoded on several devices, and the right-hand side and normal operator of all
    /// are there.
    pub(crate) spread: bool,
}

/// The encoding of one frame as a run will have it: shapes, and the steps that make it, each with what it
/// takes.
pub struct Spec<'a> {
    device: Device,
    settings: Settings<'a>,
    voxels: Voxels,
    pub(super) own_coils: usize,
    context: Context,
    kind: Box<dyn EncodingSpec + 'a>,
    maps: MapSource,
    known: Option<&'a Known>,
}

impl<'a> Spec<'a> {
    /// The specification of a frame's reconstruction, from its inputs and the run's settings. The method must
    /// take samples of this encoding.
    ///
    /// Errors: a field map without times, or of another matrix.
    pub(crate) fn new(
        device: &Device,
        inputs: &'a Inputs<'a>,
        mut settings: Settings<'a>,
        context: Context,
    ) -> Result<Self> {
        let row = kinds::row_of(inputs.on_grid(), &settings);
        if context.maps_alone {
            settings.uses = Uses { density: false, normal: false, ..settings.uses };
        }
        let voxels = Voxels::new(&inputs.matrix, &inputs.geometry.spacing_mm);
        let kind = (row.spec)(&Given { inputs, settings, field_range: context.field_range })?;
        let maps = if !settings.needs_maps {
            MapSource::Unused
        } else if context.shared_maps {
            MapSource::Shared
        } else if settings.maps.is_some() {
            MapSource::Given
        } else if context.coils == 1 && settings.uses.maps == MapUse::One {
            MapSource::Uniform
        } else {
            MapSource::Estimated
        };
        Ok(Self {
            device: device.clone(),
            settings,
            voxels,
            own_coils: inputs.coils,
            context,
            kind,
            maps,
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

    /// Whether preparation mixes the scan's coils: it whitens their noise or compresses them.
    pub(super) fn will_mix_coils(&self) -> bool {
        self.context.prepared
    }

    /// Frames that the method solves for together.
    pub fn frames(&self) -> usize {
        self.context.together
    }

    /// Whether the frame is no image, and tells maps alone.
    pub(super) fn tells_maps_alone(&self) -> bool {
        self.context.maps_alone
    }

    /// Whether its coils are encoded on several devices, of which this one solves.
    pub(super) fn is_spread(&self) -> bool {
        self.context.spread
    }

    /// Whether plans weigh samples by their density: to grid, or to estimate maps from them.
    pub(super) fn needs_density(&self) -> bool {
        self.settings.uses.density || self.maps == MapSource::Estimated
    }

    pub(super) fn needs_normal(&self) -> bool {
        self.settings.uses.normal
    }

    /// Whether an image is solved for that all coils see.
    pub(super) fn sees_all_coils(&self) -> bool {
        !matches!(self.settings.uses.maps, MapUse::Combining(_))
    }

    /// The kind of encoding.
    pub(super) fn kind(&self) -> &(dyn EncodingSpec + 'a) {
        &*self.kind
    }

    /// Coefficients of a temporal subspace, `[coefficient, image…]`, if the frames of a series are encoded
    /// over one.
    pub fn coefficients(&self) -> Option<usize> {
        self.kind.coefficients()
    }

    /// The shape of one image that is solved for: the grid, which may be larger than the image's matrix, or
    /// the matrix.
    pub fn domain(&self) -> &[usize] {
        self.kind.domain()
    }

    /// The shape of what one set of maps sees: the [domain](Self::domain), or `[coefficient, image…]`.
    pub(super) fn image_shape(&self) -> Vec<usize> {
        self.kind.coefficients().into_iter().chain(self.domain().iter().copied()).collect()
    }

    /// What samples are multiplied by, and when.
    pub(super) fn scale(&self) -> Scale {
        self.kind.scale(self.voxels.count())
    }

    /// Voxels of the [domain](Self::domain).
    pub fn voxels_of_domain(&self) -> u64 {
        count(self.domain())
    }

    /// How much is done at once.
    pub fn batch_sizes(&self) -> &BatchSizes {
        &self.settings.batch_sizes
    }

    pub(crate) fn uses(&self) -> &Uses {
        &self.settings.uses
    }

    pub(crate) fn settings(&self) -> &Settings<'a> {
        &self.settings
    }

    /// Whether maps are estimated from the frame.
    pub(crate) fn estimates_maps(&self) -> bool {
        self.maps == MapSource::Estimated
    }

    pub(crate) fn map_source(&self) -> MapSource {
        self.maps
    }

    /// Sets of maps, each with an image of its own.
    pub fn sets(&self) -> usize {
        match self.maps {
            MapSource::Unused | MapSource::Uniform => 1,
            MapSource::Given | MapSource::Shared | MapSource::Estimated => self.settings.map_sets,
        }
    }

    /// The grid. Errors: an encoding that is no FFT of one.
    pub(crate) fn expect_grid(&self) -> Result<Grid<'_>> {
        self.kind.grid().ok_or_else(|| Error::value("samples", "a grid", "a trajectory"))
    }

    /// Bytes of everything that is solved for: an image of each set of maps, of each frame or coefficient.
    pub fn image_bytes(&self) -> u64 {
        let images = self.sets() * self.context.together * self.coefficients().unwrap_or(1);
        COMPLEX * self.voxels_of_domain() * images as u64
    }

    /// So many bytes of arrays.
    pub fn arrays(&self, bytes: u64) -> Bytes {
        Bytes::on(&self.device, bytes)
    }

    /// Coils that are taken at once.
    pub(crate) fn batch(&self) -> u64 {
        let coils = self.coils() as u64;
        self.batch_sizes().coils.map_or(coils, |b| (b as u64).clamp(1, coils.max(1)))
    }

    pub(super) fn takes_all_coils(&self) -> bool {
        self.batch() == self.coils() as u64
    }

    /// Samples of a coil.
    pub(super) fn points_of_coil(&self) -> u64 {
        self.kind.samples()
    }

    /// Bytes of all coils' samples.
    pub(super) fn samples(&self) -> u64 {
        COMPLEX * self.coils() as u64 * self.points_of_coil()
    }

    /// Bytes of them that are on the device all along: none of a GPU that takes some coils at a time.
    pub(super) fn samples_held(&self) -> u64 {
        if self.on_gpu() && !self.takes_all_coils() { 0 } else { self.samples() }
    }

    /// Bytes of samples that a method which takes all coils at once brings to the device.
    pub(crate) fn samples_to_come(&self) -> u64 {
        self.samples() - self.samples_held()
    }

    /// Bytes of the coils' samples that are taken at once, beside what is held.
    pub(crate) fn part_of_samples(&self) -> u64 {
        if self.takes_all_coils() { 0 } else { COMPLEX * self.batch() * self.points_of_coil() }
    }

    /// Bytes on the host while a GPU's image becomes the frame's: itself, and a sum.
    pub(crate) fn to_host(&self) -> u64 {
        (COMPLEX + REAL) * self.images_of_one() * self.image_bytes() / COMPLEX
    }

    /// Coil images on their way to one image.
    pub(crate) fn combiner<'m>(&self, maps: Option<&'m CoilMaps<f32>>) -> Combiner<'m> {
        Combiner::new(&self.device, self.coils(), self.domain(), maps, self.settings.combine)
    }

    /// Bytes of combining coil images: the sum, and the image made of it, which a GPU leaves to the host.
    pub(crate) fn combining(&self) -> u64 {
        let n = self.voxels_of_domain();
        match self.settings.combine {
            Combine::Maps if self.on_gpu() => COMPLEX * n,
            Combine::Maps => COMPLEX * n + REAL * n,
            Combine::RootSumOfSquares if self.coils() == 1 => 0,
            Combine::RootSumOfSquares if self.on_gpu() => REAL * n,
            Combine::RootSumOfSquares => REAL * n + COMPLEX * n,
            // A GPU's go to the host.
            Combine::None if self.on_gpu() || self.takes_all_coils() => 0,
            Combine::None => COMPLEX * n * self.coils() as u64,
        }
    }

    /// Images of one image that is solved for: one, or one for each coil.
    fn images_of_one(&self) -> u64 {
        if self.settings.coil_images { self.coils() as u64 } else { 1 }
    }

    /// Bytes of the frame's result: its image, and the maps if the options keep them.
    pub(crate) fn result(&self) -> u64 {
        let maps = if self.settings.keep_maps && self.settings.needs_maps { self.coils() as u64 } else { 0 };
        let images = self.images_of_one() * self.coefficients().unwrap_or(1) as u64;
        COMPLEX * count(self.voxels.matrix()) * (images + maps)
    }

    /// The map of a coil that sees everything alike.
    pub(super) fn uniform_map(&self) -> Result<CoilMaps<f32>> {
        let mut maps = Array::zeros(&self.device, &[&[1], self.domain()].concat())?;
        maps.fill(C32::ONE)?;
        Ok(maps.into())
    }

    /// The maps that were given, [on the grid](Self::on_grid) and the device.
    pub(super) fn given_maps(&self, given: &ArrayD<C32>) -> Result<CoilMaps<f32>> {
        self.maps_from_host(self.on_grid(given.view())?.view())
    }

    /// Maps of the grid `[coil, image…]` from the host, on the device as they are to be kept there.
    pub(crate) fn maps_from_host(&self, maps: ArrayViewD<'_, C32>) -> Result<CoilMaps<f32>> {
        from_host(&self.device, maps, self.map_cut().map(|cut| cut.coils))
    }

    /// The maps that were given, `[coil, matrix…]` (a z of 1 may be missing or there) or `[set, coil, z, y,
    /// x]`, on the grid: beyond the matrix the coils see nothing, which confines the image to it. Maps of the
    /// grid stay as they are.
    pub(crate) fn on_grid<'m>(&self, given: ArrayViewD<'m, C32>) -> Result<HostSamples<'m>> {
        let (matrix, grid) = (self.voxels.matrix(), self.domain());
        let mut view = given;
        let mut leading = vec![self.coils()];
        if view.ndim() == AXES_OF_SETS {
            match view.shape()[0] {
                1 => view.index_axis_inplace(ndarray::Axis(0), 0),
                sets => leading.insert(0, sets),
            }
        }
        let with_coils = |shape: &[usize]| [&leading, shape].concat();
        // z of a two-dimensional image.
        if view.ndim() == leading.len() + matrix.len() + 1 && view.shape()[leading.len()] == 1 {
            view.index_axis_inplace(ndarray::Axis(leading.len()), 0);
        }
        if view.shape() == with_coils(grid) {
            return Ok(view.into());
        }
        expect_shape("sensitivity maps", &with_coils(matrix), view.shape())?;
        Ok(crate::crop::centre_crop(view.to_owned(), &with_coils(grid))?.into())
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
