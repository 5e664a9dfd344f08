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
    /// The maps, and a copy of them where the CPU is to take over from a GPU that fails.
    pub(crate) fn new(maps: CoilMaps<f32>, finish_on_cpu: bool) -> Result<Self> {
        let copied = finish_on_cpu && maps.device().kind() == BackendKind::Cuda;
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

    /// The maps on a device, to which they move from a GPU that failed.
    pub(crate) fn on(&mut self, device: &Device) -> Result<CoilMaps<f32>> {
        if device.kind() == BackendKind::Cpu && self.maps.device().kind() == BackendKind::Cuda {
            let host = self.to_host()?;
            *self = Self { maps: Array::from_host(device, &host)?.into(), host: None };
        }
        Ok(self.maps.clone())
    }
}
