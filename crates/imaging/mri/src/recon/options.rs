//! What the scientist chooses, and how a run is cut.

use std::sync::Arc;

use ndarray::ArrayD;
use rayon::prelude::*;
use rayspin_core::{C32, Error, Result};
use rayspin_device::Device;
use rayspin_run::{Certify, Step};

use crate::basis::Basis;
use crate::encoding::{
    BatchSizes, Context, Density, Inputs, KernelStore, Settings, Solving, Spec, row_of, takes,
};
use crate::maps::{AXES_OF_SETS, Sensitivities};
use crate::methods::{CgSense, Combine, MapUse, Method, Methods, Span};
use crate::prepare::PrepareOptions;

/// Everything that decides an image besides the scan: a [method](crate::methods) with its parameters, what
/// the samples encode, and what is done to coils.
///
/// ```
/// use rayspin_mri::methods::CgSense;
/// use rayspin_mri::recon::ReconOptions;
///
/// let options = ReconOptions::of(CgSense { lambda: 1e-4, ..CgSense::default() });
/// assert!(options.validate().is_ok());
/// ```
#[derive(Debug, Clone)]
pub struct ReconOptions {
    /// How the image is made, with its parameters.
    pub method: Arc<dyn Method>,
    /// Map `[z, y, x]` or `[y, x]` of the matrix: how far the field is from the receiver's frequency, in Hz.
    /// A sample is then ∫ c ρ e^{−i2πf(x)t} e^{−i2πk·x} dx with the frame's
    /// [times](crate::scan::Frame::times). It serves every method that does not transform a grid.
    pub field_map: Option<Arc<ArrayD<f32>>>,
    /// Temporal basis Φ, a row for each image of the series. All samples of a slice are then encoded together
    /// over its columns, and the images are the coefficients ([`Basis`]). It serves the methods whose
    /// [`Uses`](crate::methods::Uses) take coefficients.
    pub basis: Option<Arc<Basis>>,
    /// Largest error of the phases e^{−i2πf(x)t} that time segments stand for.
    pub field_tolerance: f64,
    /// Relative error of the NUFFT.
    pub nufft_tolerance: f64,
    /// Density compensation.
    pub density: Density,
    /// Iterations of [`Density::PipeMenon`]. From 7 on, the last five, ten, ... converge faster than the
    /// others.
    pub density_iterations: usize,
    /// What is done to coils first.
    pub prepare: PrepareOptions,
    /// Width of the calibration centre; the default is [`crate::maps::DEFAULT_WIDTH`].
    pub calibration: Option<usize>,
    /// How sensitivities are estimated. None lets the scan decide (see [`Sensitivities::for_grid`]).
    pub sensitivities: Option<Sensitivities>,
    /// Sensitivity maps `[coil, z, y, x]` or `[coil, y, x]` instead of estimated ones; several sets of them
    /// are `[set, coil, z, y, x]`. In a scan with several slices z counts these.
    pub maps: Option<Arc<ArrayD<C32>>>,
    /// The intensity of the given maps before they were divided by it, by which the image is divided:
    /// [`take_intensity`](super::take_intensity).
    pub intensity: Option<Arc<ArrayD<f32>>>,
    /// Whether each repetition of a slice has sensitivity maps of its own, and a λ relative to the largest
    /// eigenvalue of its own FᴴF. Otherwise the eigenvalue of the first repetition holds for all, and so do
    /// its maps, or maps of the first readouts: the coils do not move, and a λ that changes with time
    /// flickers.
    pub independent: bool,
    /// Whether the weight λ of the method's penalty is searched for with the first frame, from the method's
    /// own λ on ([`Searched`](super::Searched)).
    pub search_lambda: bool,
    /// Whether the result holds the maps in use.
    pub keep_maps: bool,
    /// Checks of the first frame's transforms against exact sums.
    pub certify: Option<Certify>,
    /// How the run is cut, which decides no image.
    pub run: RunOptions,
}

/// How a run goes on: batch sizes, and what becomes of a GPU that fails.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// What is done at once.
    pub batch_sizes: BatchSizes,
    /// Whether the CPU beside a GPU does what the GPU fails at, and all that follows: said in the notes.
    pub finish_on_cpu: bool,
    /// Where Toeplitz kernels are kept from run to run.
    pub kernels: Option<Arc<dyn KernelStore>>,
    /// Devices beside the one of the run. Frames of a series go to whichever is free.
    pub beside: Vec<Device>,
    /// Whether the coils of each image go to all devices instead, where the method may
    /// [share them](ReconOptions::may_share_coils).
    pub coils_beside: bool,
}

impl RunOptions {
    /// Whether maps of a GPU have a copy on the host, for the device that takes over or computes beside it.
    pub(crate) fn copies_maps(&self) -> bool {
        self.finish_on_cpu || !self.beside.is_empty()
    }
}

impl Default for ReconOptions {
    fn default() -> Self {
        Self::of(CgSense::default())
    }
}

impl ReconOptions {
    /// A method, and the defaults of all else.
    pub fn of(method: impl Method + 'static) -> Self {
        Self::with_method(Arc::new(method))
    }

    /// [`Self::of`] a method that is known by name only.
    pub fn with_method(method: Arc<dyn Method>) -> Self {
        Self {
            method,
            field_map: None,
            basis: None,
            field_tolerance: 1e-4,
            nufft_tolerance: 1e-4,
            density: Density::PipeMenon,
            density_iterations: 7,
            prepare: PrepareOptions::default(),
            calibration: None,
            sensitivities: None,
            maps: None,
            intensity: None,
            independent: false,
            search_lambda: false,
            keep_maps: true,
            certify: None,
            run: RunOptions::default(),
        }
    }

    /// Checks every range. Errors: the first value out of range, named.
    pub fn validate(&self) -> Result<()> {
        self.method.check_values()?;
        self.method.check()?;
        if !(1e-6..=0.1).contains(&self.nufft_tolerance) {
            return Err(Error::value("epsilon", "1e-6 to 0.1 (single precision)", self.nufft_tolerance));
        }
        if !(1..=1000).contains(&self.density_iterations) {
            return Err(Error::value("density iterations", "1 to 1000", self.density_iterations));
        }
        if let Some(certify) = &self.certify {
            certify.validate()?;
        }
        if !(1e-6..=0.5).contains(&self.field_tolerance) {
            return Err(Error::value(
                "tolerance of the field map's segments",
                "1e-6 to 0.5",
                self.field_tolerance,
            ));
        }
        if let Some(map) = &self.field_map {
            expect_finite("field map", map, |f| f.is_finite())?;
            if map.is_empty() {
                return Err(Error::value("field map", "at least one voxel", 0));
            }
        }
        self.check_basis()?;
        self.run.batch_sizes.validate()?;
        if let Some(width) = self.calibration
            && width < crate::maps::MIN_WIDTH
        {
            return Err(Error::value(
                "calibration centre",
                format!("a width of at least {}", crate::maps::MIN_WIDTH),
                width,
            ));
        }
        self.prepare.validate()?;
        if let Some(Sensitivities::Espirit(espirit)) = &self.sensitivities {
            espirit.validate()?;
        }
        let sets = self.map_sets();
        if sets > 1 && self.method.uses().maps != MapUse::Sets {
            return Err(Error::value(
                "sets of maps",
                format!("1 with the method {}, which makes one image", self.method.about().name),
                sets,
            ));
        }
        match &self.maps {
            Some(maps) => expect_finite("sensitivity maps", maps, |v| v.re.is_finite() & v.im.is_finite()),
            None => Ok(()),
        }
    }

    /// Fails where a temporal basis does not go together with the others.
    fn check_basis(&self) -> Result<()> {
        if self.basis.is_none() {
            return Ok(());
        }
        if !self.method.uses().coefficients {
            let methods = Methods::default().names(|method| method.uses().coefficients);
            let expected = format!("{methods} with a temporal basis");
            return Err(Error::value("method", expected, self.method.about().name));
        }
        let expected = "none with a temporal basis";
        if self.field_map.is_some() {
            return Err(Error::value("field map", expected, "one"));
        }
        if self.search_lambda {
            return Err(Error::value("search for lambda", expected, "one"));
        }
        if self.independent {
            let expected = "frames that share maps, with a temporal basis";
            return Err(Error::value("independent frames", expected, "independent ones"));
        }
        match self.map_sets() {
            1 => Ok(()),
            sets => Err(Error::value("sets of maps", "1 with a temporal basis", sets)),
        }
    }

    /// Whether all images of a slice are made together, once all its samples are there: by a method over a
    /// series, or as coefficients of a temporal basis.
    pub fn solves_together(&self) -> bool {
        self.basis.is_some() || self.method.uses().span == Span::Series
    }

    /// Whether several devices may encode a part of the coils of an image each: the method iterates with the
    /// normal operator of one image that all coils see.
    pub fn may_share_coils(&self) -> bool {
        let uses = self.method.uses();
        let of_all_coils = !matches!(uses.maps, MapUse::Combining(_));
        uses.normal && uses.span == Span::Frame && of_all_coils && !self.search_lambda
    }

    /// The number of coils that each device takes of an image of `coils` coils, where they go to several: the
    /// first device, which solves for the image too, takes the fewest. None where one device takes all.
    ///
    /// ```
    /// use rayspin_device::Device;
    /// use rayspin_mri::recon::ReconOptions;
    ///
    /// let mut options = ReconOptions::default();
    /// options.run.beside = vec![Device::cpu()?, Device::cpu()?];
    /// assert_eq!(options.shares(32), None);
    /// options.run.coils_beside = true;
    /// assert_eq!(options.shares(32), Some(vec![10, 11, 11]));
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn shares(&self, coils: usize) -> Option<Vec<usize>> {
        let devices = coils.min(1 + self.run.beside.len());
        if devices < 2 || !self.run.coils_beside || !self.may_share_coils() {
            return None;
        }
        let even = coils / devices;
        let first = self.run.batch_sizes.first.map_or(even, |first| first.min(even));
        let (rest, others) = (coils - first, devices - 1);
        let others = (0..others).map(|k| rest / others + usize::from(k < rest % others));
        Some(std::iter::once(first).chain(others).collect())
    }

    /// Images that `frames` frames of a slice give: as many, or the coefficients of a temporal basis.
    pub fn images_of(&self, frames: usize) -> usize {
        self.basis.as_ref().map_or(frames, |basis| basis.coefficients())
    }

    /// Sets of sensitivity maps, given or estimated: each has an image of its own.
    pub fn map_sets(&self) -> usize {
        match &self.maps {
            Some(given) if given.ndim() == AXES_OF_SETS => given.shape()[0],
            Some(_) => 1,
            None => self.sensitivities.map_or(1, |how| how.sets()),
        }
    }

    /// Whether coil images stay apart, `[coil, z, y, x]`.
    pub fn coil_images(&self) -> bool {
        matches!(self.method.uses().maps, MapUse::Combining(_)) && self.combine() == Combine::None
    }

    /// How coil images become one, where the method combines any.
    pub fn combine(&self) -> Combine {
        match self.method.uses().maps {
            MapUse::Combining(Some(how)) => how,
            _ if self.maps.is_some() => Combine::Maps,
            _ => Combine::RootSumOfSquares,
        }
    }

    /// Whether the images of a series may share maps that are estimated from more readouts than one image
    /// has. In an inhomogeneous field maps come from the first image, which is encoded with the field; over a
    /// temporal basis they come from all samples of a slice.
    pub fn learns_maps(&self) -> bool {
        let own = self.field_map.is_some() || self.basis.is_some() || self.independent;
        self.needs_maps() && self.maps.is_none() && !own
    }

    /// What an encoding takes of a run with these options.
    pub(crate) fn settings(&self) -> Settings<'_> {
        Settings {
            uses: self.method.uses(),
            field_map: self.field_map.as_deref(),
            basis: self.basis.as_ref(),
            field_tolerance: self.field_tolerance,
            nufft_tolerance: self.nufft_tolerance,
            density: self.density,
            density_iterations: self.density_iterations,
            compression: self.prepare.compression,
            calibration: self.calibration,
            sensitivities: self.sensitivities,
            maps: self.maps.as_deref(),
            needs_maps: self.needs_maps(),
            map_sets: self.map_sets(),
            keep_maps: self.keep_maps,
            combine: self.combine(),
            coil_images: self.coil_images(),
            certify: self.certify.as_ref(),
            batch_sizes: self.run.batch_sizes,
            kernels: self.run.kernels.as_deref(),
        }
    }

    /// The encoding of a frame in a run with these options.
    ///
    /// Errors: a method that does not suit the frame; as [`Spec::new`].
    pub(crate) fn encoding<'a>(
        &'a self,
        device: &Device,
        inputs: &'a Inputs<'a>,
        context: Context,
    ) -> Result<Spec<'a>> {
        let settings = self.settings();
        let row = row_of(inputs.on_grid(), &settings);
        // A frame that tells maps alone suits every method.
        if !context.maps_alone && !takes(settings.uses, row.on_grid) {
            let fitting = Methods::default().names(|method| takes(method.uses(), row.on_grid));
            let expected = format!("{fitting} {}", row.place);
            return Err(Error::value("method", expected, self.method.about().name));
        }
        // Estimates make no more sets than there are coils.
        let most = if settings.maps.is_some() { usize::MAX } else { context.coils.max(1) };
        let settings = Settings { map_sets: settings.map_sets.min(most), ..settings };
        Spec::new(device, inputs, settings, context)
    }

    /// All steps from a frame with this encoding to its image.
    pub(crate) fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        let mut steps = spec.encoding_steps();
        steps.extend(self.method.steps(spec)?);
        Ok(steps)
    }

    /// Whether sensitivity maps are used.
    pub fn needs_maps(&self) -> bool {
        match self.method.uses().maps {
            MapUse::Combining(_) => self.combine() == Combine::Maps,
            MapUse::One | MapUse::Sets => true,
        }
    }
}

/// On the threads of the pool that the caller runs in: one thread takes 0.6 s for maps of 256³ voxels and 32
/// coils.
fn expect_finite<T: ToString + Sync>(
    what: &str,
    values: &ArrayD<T>,
    finite: impl Fn(&T) -> bool + Sync,
) -> Result<()> {
    // Without an early end within a part, which the compiler cannot vectorise.
    let all = |part: &[T]| part.iter().fold(true, |all, value| all & finite(value));
    if values.as_slice().is_some_and(|values| values.par_chunks(1 << 14).all(all)) {
        return Ok(());
    }
    match values.iter().enumerate().find(|(_, value)| !finite(value)) {
        Some((index, value)) => Err(Error::NotFinite { what: what.into(), index, found: value.to_string() }),
        None => Ok(()),
    }
}
