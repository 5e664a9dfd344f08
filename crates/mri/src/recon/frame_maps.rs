//! Where a frame's sensitivity maps come from: given, of the frames before, or of its own samples.

use std::borrow::Cow;
use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Monitor, Result, expect_shape};
use rayspin_device::{Array, Backend, Device};
use rayspin_linop::CoilMaps;

use super::Reconstructor;
use super::plans::{Needs, Plans};
use super::samples::{CoilSamples, on_device};
use crate::crop::centre_crop;
use crate::maps::{self, Centre, NonCartesian};
use crate::prepare::Preparation;
use crate::scan::{CalibrationLines, Frame, Samples};

/// What is known of a frame's maps before its samples are looked at.
pub(super) enum Maps {
    /// The method needs none.
    Unused,
    /// `[coil, grid…]` or `[set, coil, grid…]`.
    Known(Arc<Array<C32>>),
    /// To be estimated.
    Unknown,
}

/// Maps of many frames.
#[derive(Debug, Clone)]
pub(super) struct SharedMaps {
    array: Arc<Array<C32>>,
    /// A copy for a GPU that may fail.
    host: Option<Arc<ArrayD<C32>>>,
}

impl SharedMaps {
    /// The maps, and a copy of them where the CPU is to take over from a GPU that fails.
    pub(super) fn new(array: Arc<Array<C32>>, finish_on_cpu: bool) -> Result<Self> {
        let copied = finish_on_cpu && !on_cpu(array.device());
        let host = if copied { Some(Arc::new(array.to_host()?)) } else { None };
        Ok(Self { array, host })
    }

    /// The maps on the host.
    pub(super) fn to_host(&self) -> Result<ArrayD<C32>> {
        match &self.host {
            Some(host) => Ok(host.as_ref().clone()),
            None => self.array.to_host(),
        }
    }

    fn on(&mut self, device: &Device) -> Result<Arc<Array<C32>>> {
        if on_cpu(device) && !on_cpu(self.array.device()) {
            let host = self.to_host()?;
            *self = Self { array: Arc::new(Array::from_host(device, &host)?), host: None };
        }
        Ok(self.array.clone())
    }
}

fn on_cpu(device: &Device) -> bool {
    matches!(device.backend(), Backend::Cpu(_))
}

impl Reconstructor {
    /// Finds what the coils of this frame, the next to come, become first.
    pub(super) fn prepare(
        &mut self,
        preparation: &mut Preparation,
        frame: &Frame,
        notes: &mut Vec<String>,
        monitor: &Monitor<'_>,
    ) -> Result<()> {
        let compresses = preparation.compresses();
        let mut find = || self.or_on_host(notes, |device, notes| preparation.mixing(device, frame, notes));
        self.mixing = if compresses { monitor.stage("virtual coils", 0, find) } else { find() }?;
        Ok(())
    }

    /// The maps that the frames to come take, as a frame before had them or [`Reconstructor::estimate`] found them; none: given
    /// ones, or each frame's own.
    pub(super) fn share(&mut self, maps: Option<SharedMaps>) {
        self.shared = maps;
    }

    /// The maps that a frame's samples tell, for [`Reconstructor::share`]; nothing is kept of its plans.
    ///
    /// Errors: as [`Reconstructor::frame`].
    pub(super) fn estimate(
        &mut self,
        frame: Frame,
        notes: &mut Vec<String>,
        monitor: &Monitor<'_>,
    ) -> Result<SharedMaps> {
        self.plans = None;
        let (maps, found) = self.recovering(frame, notes, |recon, frame| {
            let mut notes = Vec::new();
            let maps = recon.estimated(frame, &mut notes, monitor)?.resident().cloned();
            let maps = maps.ok_or_else(|| Error::value("shared maps", "ones on the device", "cut ones"))?;
            Ok((SharedMaps::new(maps, recon.options.finish_on_cpu)?, notes))
        })?;
        notes.extend(found);
        Ok(maps)
    }

    fn estimated(
        &mut self,
        frame: Cow<'_, Frame>,
        notes: &mut Vec<String>,
        monitor: &Monitor<'_>,
    ) -> Result<CoilMaps<f32>> {
        let mixing = self.mixing.as_deref();
        match &frame.samples {
            Samples::Cartesian { kspace, sampled } => {
                let kspace = CoilSamples::on_host(&self.device, kspace.view().into(), mixing);
                self.grid_maps(&kspace, sampled, frame.calibration.as_ref(), notes, monitor)
            }
            Samples::NonCartesian { trajectory, data } => {
                let needs = Needs { density: true, toeplitz: false };
                let plans = Plans::matching(
                    None,
                    &self.device,
                    Cow::Borrowed(trajectory),
                    &frame.matrix,
                    needs,
                    None,
                    &self.options,
                    monitor,
                )?;
                let data = CoilSamples::on_host(&self.device, data.view().into_dyn().into(), mixing);
                let data = self.arrived(data, monitor)?;
                self.maps_of_samples(&plans, &data, notes, monitor)
            }
        }
    }

    /// Maps that need no look at the samples.
    pub(super) fn known_maps(&mut self, coils: usize, matrix: &[usize], grid: &[usize]) -> Result<Maps> {
        if !self.options.needs_maps() {
            return Ok(Maps::Unused);
        }
        if let Some(shared) = &mut self.shared {
            let maps = shared.on(&self.device)?;
            let expected = [&[coils], grid].concat();
            let from = maps.shape().len().saturating_sub(expected.len());
            expect_shape("sensitivity maps", &expected, &maps.shape()[from..])?;
            return Ok(Maps::Known(maps));
        }
        if let Some(given) = self.options.maps.take() {
            return Ok(Maps::Known(Arc::new(self.given_maps(given, coils, matrix, grid)?)));
        }
        if coils == 1 && self.options.method.is_sparse() {
            return Ok(Maps::Known(Arc::new(self.one_coil(grid)?)));
        }
        Ok(Maps::Unknown)
    }

    pub(super) fn grid_maps(
        &self,
        kspace: &CoilSamples<'_>,
        sampled: &ArrayD<bool>,
        calibration: Option<&CalibrationLines>,
        notes: &mut Vec<String>,
        monitor: &Monitor<'_>,
    ) -> Result<CoilMaps<f32>> {
        let (width, how) = (self.options.calibration, self.options.sensitivities);
        let (maps, centre) = monitor.stage("coil sensitivities", 0, || {
            let (region, centre) = match calibration {
                Some(lines) => {
                    let centre = Centre::of_grid(&lines.sampled, width, how)?;
                    let own = lines.kspace.view().into();
                    let own = CoilSamples::on_host(&self.device, own, self.mixing.as_deref());
                    (own.centre(centre.width)?, centre)
                }
                None => {
                    let centre = Centre::of_grid(sampled, width, how)?;
                    (kspace.centre(centre.width)?, centre)
                }
            };
            Ok::<_, rayspin_core::Error>((maps::from_grid(region, sampled.shape(), &centre, None)?, centre))
        })?;
        notes.push(format!(
            "coil sensitivities from the central {} lines of {} ({})",
            centre.width,
            if calibration.is_some() { "the calibration readouts" } else { "k-space" },
            centre.how.name()
        ));
        Ok(maps)
    }

    pub(super) fn maps_of_samples(
        &self,
        plans: &Plans,
        data: &CoilSamples<'_>,
        notes: &mut Vec<String>,
        monitor: &Monitor<'_>,
    ) -> Result<CoilMaps<f32>> {
        let density = plans.density()?;
        let (maps, centre) = monitor.stage("coil sensitivities", 0, || {
            let samples = NonCartesian {
                adjoint: &mut |samples, images| plans.adjoint(samples, images),
                trajectory: plans.trajectory(),
                matrix: plans.matrix(),
                coils: data.coils(),
                of_coil: &mut |coil| data.part(&(coil..coil + 1)),
                density,
            };
            maps::from_samples(samples, self.options.calibration, self.options.sensitivities, None)
        })?;
        notes.push(format!(
            "coil sensitivities from the central {} cycles per field of view ({})",
            centre.width,
            centre.how.name()
        ));
        Ok(maps)
    }

    /// The maps on the host, when they are wanted.
    pub(super) fn kept_maps(&self, maps: Option<Arc<Array<C32>>>) -> Result<Option<ArrayD<C32>>> {
        let Some(maps) = maps.filter(|_| self.options.keep_maps) else {
            return Ok(None);
        };
        match Arc::try_unwrap(maps) {
            Ok(maps) => maps.into_host().map(Some),
            Err(shared) => shared.to_host().map(Some),
        }
    }

    /// The maps that were given, `[coil, matrix…]` (a z of 1 may be missing or there), on the grid: beyond the matrix the
    /// coils see nothing, which confines the image to it. They are given back to the options for the next frame.
    fn given_maps(
        &mut self,
        given: Arc<ArrayD<C32>>,
        coils: usize,
        matrix: &[usize],
        grid: &[usize],
    ) -> Result<Array<C32>> {
        self.options.maps = Some(given.clone());
        let with_coils =
            |shape: &[usize]| -> Vec<usize> { std::iter::once(coils).chain(shape.iter().copied()).collect() };
        let mut view = given.view();
        if view.ndim() == matrix.len() + 2 && view.shape()[1] == 1 {
            view.index_axis_inplace(ndarray::Axis(1), 0);
        }
        if view.shape() == with_coils(grid) {
            return Array::from_host(&self.device, view);
        }
        expect_shape("sensitivity maps", &with_coils(matrix), view.shape())?;
        on_device(&self.device, centre_crop(view.to_owned(), &with_coils(grid))?.into())
    }

    /// The map of a coil that sees everything alike.
    fn one_coil(&self, shape: &[usize]) -> Result<Array<C32>> {
        let mut maps = Array::zeros(&self.device, &[&[1], shape].concat())?;
        maps.fill(C32::ONE)?;
        Ok(maps)
    }
}
