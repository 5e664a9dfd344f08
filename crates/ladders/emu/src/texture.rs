//! Textures as `texture.h` reads them.

#![allow(unsafe_code)]

use std::sync::Arc;

use rayspin_core::Result;
use rayspin_device::cuda::{AddressMode, Filter, TexelKind, TextureLayout, TextureMemory};

use crate::{Inner, Work, lock};

/// As in `texture.h`.
#[repr(C)]
struct Raw {
    texels: u64,
    size: [u32; 3],
    kind: u32,
    linear: u32,
    outside: u32,
    normalized: u32,
    layered: u32,
    pitch: u32,
}

pub(crate) struct Surface {
    raw: Box<Raw>,
    bytes: u64,
    inner: Arc<Inner>,
}

impl Surface {
    pub(crate) fn new(layout: &TextureLayout, inner: Arc<Inner>) -> Result<Self> {
        let bytes = (layout.texels() * layout.kind.bytes()) as u64;
        let texels = lock(&inner.heap).allocate(bytes)?;
        lock(&inner.textures).push(texels);
        let raw = Raw {
            texels,
            size: layout.size.map(|n| n.max(1) as u32),
            kind: match layout.kind {
                TexelKind::F32 => 0,
                TexelKind::F32x2 => 1,
                TexelKind::U8 => 2,
            },
            linear: u32::from(layout.sampling.filter == Filter::Linear),
            outside: match layout.sampling.address_mode {
                AddressMode::Clamp => 0,
                AddressMode::Border => 1,
                AddressMode::Wrap => 2,
                AddressMode::Mirror => 3,
            },
            normalized: u32::from(layout.sampling.normalized),
            layered: u32::from(layout.layered),
            pitch: 0,
        };
        let raw = Box::new(raw);
        lock(&inner.surfaces).insert(std::ptr::from_ref(&*raw) as u64, (*layout, texels));
        Ok(Self { raw, bytes, inner })
    }
}

impl TextureMemory for Surface {
    fn handle(&self) -> u64 {
        std::ptr::from_ref(&*self.raw) as u64
    }

    unsafe fn fill(&self, from: u64) -> Result<()> {
        self.inner.ask(Work::Copy { from, to: self.raw.texels, bytes: self.bytes })
    }
}

impl Drop for Surface {
    fn drop(&mut self) {
        lock(&self.inner.textures).retain(|&address| address != self.raw.texels);
        lock(&self.inner.surfaces).remove(&self.handle());
        if self.inner.frees_later(self.raw.texels) {
            return;
        }
        if let Err(error) = lock(&self.inner.heap).free(self.raw.texels) {
            lock(&self.inner.order).failure.get_or_insert(error);
        }
    }
}
