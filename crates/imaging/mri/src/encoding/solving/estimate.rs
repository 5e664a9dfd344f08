//! Coil sensitivity maps of a run: given, taken from the frame before, or estimated from the samples.

use rayspin_core::{Error, Result, expect_shape};

use super::super::kinds::Grid;
use super::super::spec::MapSource;
use super::{Solving, lost};
use crate::crop::centre_crop;

impl Solving<'_> {
    /// Estimates the maps from the samples.
    pub(in crate::encoding) fn estimate_maps(&mut self) -> Result<()> {
        let samples = self.samples.as_ref().ok_or_else(|| lost("samples"))?;
        let (maps, note) = self.encoding()?.estimate_maps(self.spec, samples, self.mixing)?;
        self.maps = Some(maps);
        self.notes.push(note);
        Ok(())
    }

    /// Estimates the maps of a grid whose places are encoded as points, on the image's matrix.
    pub(in crate::encoding) fn estimate_maps_of_grid(&mut self, grid: Grid<'_>) -> Result<()> {
        let samples = self.samples.as_ref().ok_or_else(|| lost("samples"))?;
        let (maps, note) = grid.estimate_maps(self.spec, samples, self.mixing)?;
        self.notes.push(note);
        let maps = maps.into_host()?;
        let matrix = self.spec.voxels().matrix();
        if maps.ndim() != matrix.len() + 1 {
            return Err(Error::value("sets of maps", "1 for a grid with a field map", maps.shape()[0]));
        }
        self.own_maps = Some(centre_crop(maps, &[&[self.spec.coils()], matrix].concat())?);
        Ok(())
    }

    /// Takes maps that need no look at the samples.
    pub(in crate::encoding) fn find_maps(&mut self) -> Result<()> {
        let spec = self.spec;
        let given = match &self.own_maps {
            Some(own) => Some(own),
            None => spec.settings().maps,
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
