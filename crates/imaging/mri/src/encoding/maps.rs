//! Maps that many frames share.

use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Result};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_linop::CoilMaps;

/// Maps of many frames.
#[derive(Debug, Clone)]
pub(crate) struct SharedMaps {
    maps: CoilMaps<f32>,
    /// A copy for a GPU that may fail.
    host: Option<Arc<ArrayD<C32>>>,
}

impl SharedMaps {
    /// The maps, and a copy of them on the host where other devices are to take them over from a GPU.
    pub(crate) fn new(maps: CoilMaps<f32>, copies: bool) -> Result<Self> {
        let copied = copies && maps.device().kind() == BackendKind::Cuda;
        let host = if copied { Some(Arc::new(maps.to_host()?)) } else { None };
        Ok(Self { maps, host })
    }

    /// The maps on the host.
    pub(crate) fn to_host(&self) -> Result<ArrayD<C32>> {
        match &self.host {
            Some(host) => Ok(host.as_ref().clone()),
            None => self.maps.to_host(),
        }
    }

    /// The maps as they are, on a GPU or on the host. Where a GPU holds some of them at a time, a copy on the
    /// host.
    pub(crate) fn whole(&self) -> Result<Arc<Array<C32>>> {
        whole(self.maps.clone())
    }

    /// The maps on a device, to which they move from another one. A copy on the host stays beside a GPU's
    /// maps.
    pub(crate) fn on(&mut self, device: &Device) -> Result<CoilMaps<f32>> {
        if !self.maps.device().same_as(device) {
            let host = match self.host.take() {
                Some(host) => host,
                None => Arc::new(self.maps.to_host()?),
            };
            self.maps = Array::from_host(device, &*host)?.into();
            self.host = (device.kind() == BackendKind::Cuda).then_some(host);
        }
        Ok(self.maps.clone())
    }
}

/// The maps of all coils as one array, on the device that holds all of them, or else on the host.
pub(crate) fn whole(maps: CoilMaps<f32>) -> Result<Arc<Array<C32>>> {
    match maps.resident() {
        Some(resident) => Ok(resident.clone()),
        None => on_host(&maps.device().clone(), maps.into_host()?).map(Arc::new),
    }
}

/// Maps of the host as an array.
pub(crate) fn on_host(device: &Device, maps: ArrayD<C32>) -> Result<Array<C32>> {
    let shape = maps.shape().to_vec();
    let values = match maps.is_standard_layout() {
        true => maps.into_raw_vec_and_offset().0,
        false => maps.iter().copied().collect(),
    };
    Array::from_vec(&device.host(), &shape, values)
}
