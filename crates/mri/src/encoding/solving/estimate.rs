//! Coil sensitivity maps of a run: given, taken from the frame before, or estimated from the samples.

use rayspin_core::{Error, Monitor, Result, expect_shape};
use rayspin_linop::CoilMaps;

use super::super::samples::CoilSamples;
use super::super::spec::{Grid, MapSource, Place};
use super::{Solving, lost};
use crate::crop::centre_crop;
use crate::maps::{self, Centre};

impl Solving<'_> {
    /// Estimates the maps from the samples.
    pub(in crate::encoding) fn estimate_maps(&mut self, _: &Monitor<'_>) -> Result<()> {
        let options = self.spec.options();
        self.maps = Some(match &self.spec.place {
            Place::Grid(grid) => self.maps_of_grid(*grid)?,
            Place::Points(_) => {
                let plans = self.cache.plans.as_ref().ok_or_else(|| lost("plans of a trajectory"))?;
                let samples = self.samples.as_ref().ok_or_else(|| lost("samples"))?;
                let trajectory = plans.trajectory()?;
                let from = maps::NonCartesian {
                    trajectory,
                    matrix: self.spec.domain(),
                    coils: samples.coils(),
                    of_coil: &mut |coil| samples.part(&(coil..coil + 1)),
                    density: plans.density()?,
                    on_host: self.spec.centre_on_host(trajectory),
                };
                let (width, how) = (options.calibration, options.sensitivities);
                let (found, centre) = maps::from_samples(from, width, how, self.spec.map_cut())?;
                self.notes.push(format!(
                    "coil sensitivities from the central {} cycles per field of view by {} (--calibration, --sensitivities or --maps overrides)",
                    centre.width,
                    centre.how.name()
                ));
                found
            }
        });
        Ok(())
    }

    fn maps_of_grid(&mut self, grid: Grid<'_>) -> Result<CoilMaps<f32>> {
        let options = self.spec.options();
        let (width, how) = (options.calibration, options.sensitivities);
        let samples = self.samples.as_ref().ok_or_else(|| lost("samples"))?;
        let (region, centre) = match grid.calibration {
            Some(lines) => {
                let centre = Centre::of_grid(&lines.sampled, width, how)?;
                let own = CoilSamples::on_host(self.spec.device(), lines.kspace.view().into(), self.mixing);
                (own.centre(centre.width)?, centre)
            }
            None => {
                let centre = Centre::of_grid(grid.sampled, width, how)?;
                (samples.centre(centre.width)?, centre)
            }
        };
        let found = maps::from_grid(region, grid.sampled.shape(), &centre, self.spec.map_cut())?;
        self.notes.push(format!(
            "coil sensitivities from the central {} lines of {} by {} (--calibration, --sensitivities or --maps overrides)",
            centre.width,
            if grid.calibration.is_some() { "the calibration readouts" } else { "k-space" },
            centre.how.name()
        ));
        Ok(found)
    }

    /// Estimates the maps of a grid in an inhomogeneous field, on the image's matrix.
    pub(in crate::encoding) fn estimate_maps_of_grid(&mut self, _: &Monitor<'_>) -> Result<()> {
        let Place::Points(points) = &self.spec.place else { return Err(lost("grid")) };
        let Some((grid, _)) = &points.grid else { return Err(lost("grid")) };
        let found = self.maps_of_grid(*grid)?.into_host()?;
        let matrix = self.spec.voxels().matrix();
        if found.ndim() != matrix.len() + 1 {
            return Err(Error::value("sets of maps", "1 for a grid with a field map", found.shape()[0]));
        }
        self.own_maps = Some(centre_crop(found, &[&[self.spec.coils()], matrix].concat())?);
        Ok(())
    }

    /// Takes maps that need no look at the samples.
    pub(in crate::encoding) fn find_maps(&mut self) -> Result<()> {
        let spec = self.spec;
        let given = match &self.own_maps {
            Some(own) => Some(own),
            None => spec.options().maps.as_deref(),
        };
        self.maps = match (spec.map_source(), given) {
            (MapSource::Unused, _) => None,
            (MapSource::Uniform, _) => Some(spec.uniform_map()?),
            (MapSource::Shared, _) => {
                let shared = self.cache.shared.as_mut().ok_or_else(|| lost("shared sensitivity maps"))?;
                let maps = shared.on(spec.device())?;
                let expected = [&[spec.coils()], spec.domain()].concat();
                let from = maps.shape().len().saturating_sub(expected.len());
                expect_shape("sensitivity maps", &expected, &maps.shape()[from..])?;
                Some(maps)
            }
            (_, Some(given)) => Some(spec.given_maps(given)?),
            (_, None) => return Err(lost("sensitivity maps")),
        };
        self.own_maps = None;
        Ok(())
    }
}
