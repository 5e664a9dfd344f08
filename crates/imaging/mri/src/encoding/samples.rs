//! A frame's samples on their way from the host to the device.

use std::ops::Range;

use ndarray::{CowArray, IxDyn, SliceInfoElem};
use rayspin_core::{C32, Error, Result};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_kernels::vector;

use super::coils::part;
use crate::maps;
use crate::prepare::Mixing;

/// Samples `[coil, …]` as they are on the host.
pub(super) type HostSamples<'a> = CowArray<'a, C32, IxDyn>;

/// The prepared coils of a frame, `[coil, …]`, for the device: whitened and compressed on it.
///
/// All of them are there at once, except where a GPU takes some coils at a time: then the samples stay on the
/// host, and each run of coils is made of them when its turn comes.
pub(super) struct CoilSamples<'a> {
    device: Device,
    /// `[coil, …]` of the prepared coils.
    shape: Vec<usize>,
    location: Location<'a>,
    /// What samples of the host are multiplied by.
    factor: f64,
}

enum Location<'a> {
    Device(Array<C32>),
    Host(HostSamples<'a>, Option<&'a Mixing>),
    Gone,
}

impl<'a> CoilSamples<'a> {
    /// Samples that stay on the host, whatever is taken of them, until they [move to the
    /// device](Self::into_device).
    pub(super) fn on_host(device: &Device, samples: HostSamples<'a>, mixing: Option<&'a Mixing>) -> Self {
        let coils = mixing.map_or(samples.shape()[0], Mixing::kept);
        let shape = [&[coils], &samples.shape()[1..]].concat();
        Self { device: device.clone(), shape, location: Location::Host(samples, mixing), factor: 1.0 }
    }

    /// Moves the samples to the device, if it is the CPU or if all coils are taken at a time (`batch` is none
    /// or no less than the coils). Else they stay on the host. Samples that this value owns on the host are
    /// freed after the move.
    pub(super) fn into_device(mut self, batch: Option<usize>) -> Result<Self> {
        if !self.moves_to_device(batch) {
            return Ok(self);
        }
        let coils = self.coils();
        let mut array = match std::mem::replace(&mut self.location, Location::Gone) {
            Location::Host(samples, Some(mixing)) => mixing.of(&self.device, &samples.view(), 0..coils)?,
            Location::Host(samples, None) => on_device(&self.device, samples)?,
            location => {
                self.location = location;
                return Ok(self);
            }
        };
        if self.factor != 1.0 {
            vector::scale(self.factor.into(), &mut array)?;
        }
        Ok(Self::from(array))
    }

    /// The samples of the host, and what their coils become. Errors: they are on the device.
    pub(super) fn into_host(self) -> Result<(HostSamples<'a>, Option<&'a Mixing>)> {
        match self.location {
            Location::Host(samples, mixing) => Ok((samples, mixing)),
            Location::Device(_) | Location::Gone => {
                Err(Error::value("samples", "samples of the host", "others"))
            }
        }
    }

    fn moves_to_device(&self, batch: Option<usize>) -> bool {
        self.device.kind() == BackendKind::Cpu || batch.is_none_or(|batch| batch >= self.coils())
    }

    /// Prepared coils.
    pub(super) fn coils(&self) -> usize {
        self.shape[0]
    }

    /// Axes of a coil's samples.
    pub(super) fn of_coil(&self) -> &[usize] {
        &self.shape[1..]
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Multiplies them all.
    pub(super) fn scale(&mut self, factor: f64) -> Result<()> {
        match &mut self.location {
            Location::Device(array) => vector::scale(factor.into(), array)?,
            Location::Host(..) | Location::Gone => self.factor *= factor,
        }
        Ok(())
    }

    /// A copy of the coils `range`.
    pub(super) fn part(&self, range: &Range<usize>) -> Result<Array<C32>> {
        let (samples, mixing) = match &self.location {
            Location::Device(array) => return part(array, range),
            Location::Host(samples, mixing) => (samples, mixing),
            Location::Gone => return Err(Error::value("coils", "each coil once", format!("{range:?}"))),
        };
        let mut taken = match mixing {
            Some(mixing) => mixing.of(&self.device, &samples.view(), range.clone())?,
            None => {
                let coils = ndarray::Slice::from(range.clone());
                Array::from_host(&self.device, samples.slice_axis(ndarray::Axis(0), coils))?
            }
        };
        if self.factor != 1.0 {
            vector::scale(self.factor.into(), &mut taken)?;
        }
        Ok(taken)
    }

    /// The coils `range`, to be taken in turn; when they are all of them nothing is left.
    pub(super) fn take(&mut self, range: &Range<usize>) -> Result<Array<C32>> {
        if range.len() < self.coils() {
            return self.part(range);
        }
        match std::mem::replace(&mut self.location, Location::Gone) {
            Location::Device(array) => Ok(array),
            location => {
                self.location = location;
                let taken = self.part(range)?;
                self.location = Location::Gone;
                Ok(taken)
            }
        }
    }

    /// All of them.
    pub(super) fn all(mut self) -> Result<Array<C32>> {
        self.take(&(0..self.coils()))
    }

    /// The centred box of `width` of a grid, of all coils.
    pub(super) fn centre(&self, width: usize) -> Result<Array<C32>> {
        let (samples, mixing) = match &self.location {
            Location::Device(array) => return maps::centre(array, width),
            Location::Host(samples, mixing) => (samples, mixing),
            Location::Gone => return Err(Error::value("k-space", "samples of coils", "none")),
        };
        // A mixing along the readout takes whole lines.
        let lines = mixing.is_some_and(Mixing::needs_lines);
        let last = samples.ndim() - 1;
        let of_axis = |axis: usize| match axis {
            0 => 0..samples.shape()[0],
            axis if axis == last && lines => 0..samples.shape()[axis],
            axis => maps::centre_of(samples.shape()[axis], width),
        };
        let ranges: Vec<SliceInfoElem> = (0..=last).map(|axis| of_axis(axis).into()).collect();
        let region = samples.slice(&ranges[..]).to_owned();
        let region = Self { factor: self.factor, ..Self::on_host(&self.device, region.into(), *mixing) };
        let region = region.all()?;
        if lines { maps::centre(&region, width) } else { Ok(region) }
    }
}

impl From<Array<C32>> for CoilSamples<'_> {
    fn from(array: Array<C32>) -> Self {
        let (device, shape) = (array.device().clone(), array.shape().to_vec());
        Self { device, shape, location: Location::Device(array), factor: 1.0 }
    }
}

/// A host array's values on the device; one that is given up is not copied where the device is the host.
pub(super) fn on_device(device: &Device, array: HostSamples<'_>) -> Result<Array<C32>> {
    if !array.is_owned() || !array.is_standard_layout() {
        return Array::from_host(device, array.view());
    }
    let shape = array.shape().to_vec();
    match array.into_owned().into_raw_vec_and_offset() {
        (values, None | Some(0)) => Array::from_vec(device, &shape, values),
        (values, Some(offset)) => {
            let len: usize = shape.iter().product();
            Array::from_vec(device, &shape, values[offset..offset + len].to_vec())
        }
    }
}
