//! Textures in CUDA arrays, the memory in which the hardware interpolates.

use std::sync::Arc;

use cudarc::driver::sys;
use rayspin_core::{Error, Result};

use super::{Shared, failed};
use crate::cuda::{AddressMode, Filter, TexelKind, TextureLayout, TextureMemory};

pub(super) struct Surface {
    array: sys::CUarray,
    object: sys::CUtexObject,
    layout: TextureLayout,
    shared: Arc<Shared>,
}

// SAFETY: arrays and texture objects may be used from any thread that makes the context current.
unsafe impl Send for Surface {}
unsafe impl Sync for Surface {}

impl Surface {
    pub(super) fn new(layout: &TextureLayout, shared: Arc<Shared>) -> Result<Self> {
        let [x, y, z] = layout.size;
        let (format, channels) = match layout.kind {
            TexelKind::F32 => (sys::CUarray_format::CU_AD_FORMAT_FLOAT, 1),
            TexelKind::F32x2 => (sys::CUarray_format::CU_AD_FORMAT_FLOAT, 2),
            TexelKind::U8 => (sys::CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8, 1),
        };
        let described = sys::CUDA_ARRAY3D_DESCRIPTOR {
            Width: x,
            Height: y,
            Depth: z,
            Format: format,
            NumChannels: channels,
            Flags: if layout.layered { sys::CUDA_ARRAY3D_LAYERED } else { 0 },
        };
        let mut array = std::ptr::null_mut();
        // SAFETY: the context is current; a place to write to.
        unsafe { sys::cuArray3DCreate_v2(&mut array, &described) }.result().map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::Memory {
                what: format!("texture {:?} on the GPU", layout.size),
                needed: (layout.texels() * layout.kind.bytes()) as u64,
                available: 0,
            },
            _ => failed("making a texture")(e),
        })?;
        let mut surface = Self { array, object: 0, layout: *layout, shared };
        let outside = match layout.sampling.address_mode {
            AddressMode::Clamp => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP,
            AddressMode::Border => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER,
            AddressMode::Wrap => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP,
            AddressMode::Mirror => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR,
        };
        let filter = match layout.sampling.filter {
            Filter::Point => sys::CUfilter_mode::CU_TR_FILTER_MODE_POINT,
            Filter::Linear => sys::CUfilter_mode::CU_TR_FILTER_MODE_LINEAR,
        };
        // SAFETY: plain numbers and a union of plain numbers, for which 0 is a value; the array is our own.
        unsafe {
            let mut resource: sys::CUDA_RESOURCE_DESC = std::mem::zeroed();
            resource.resType = sys::CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
            resource.res.array.hArray = array;
            let mut texture: sys::CUDA_TEXTURE_DESC = std::mem::zeroed();
            // A missing axis is read at 0, half a texel from the border. With a border, an H100 would halve
            // the values of a one-dimensional texture.
            texture.addressMode = layout
                .size
                .map(|n| if n == 0 { sys::CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP } else { outside });
            texture.filterMode = filter;
            texture.flags = if layout.sampling.normalized { sys::CU_TRSF_NORMALIZED_COORDINATES } else { 0 };
            sys::cuTexObjectCreate(&mut surface.object, &resource, &texture, std::ptr::null())
        }
        .result()
        .map_err(failed("making a texture"))?;
        Ok(surface)
    }
}

impl TextureMemory for Surface {
    fn handle(&self) -> u64 {
        self.object
    }

    unsafe fn fill(&self, from: u64) -> Result<()> {
        let _entered = self.shared.enter()?;
        let [x, y, z] = self.layout.size;
        let row = x * self.layout.kind.bytes();
        let copy = sys::CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: std::ptr::null(),
            srcDevice: from,
            srcArray: std::ptr::null_mut(),
            reserved0: std::ptr::null_mut(),
            srcPitch: row,
            srcHeight: y.max(1),
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_ARRAY,
            dstHost: std::ptr::null_mut(),
            dstDevice: 0,
            dstArray: self.array,
            reserved1: std::ptr::null_mut(),
            dstPitch: 0,
            dstHeight: 0,
            WidthInBytes: row,
            Height: y.max(1),
            Depth: z.max(1),
        };
        // SAFETY: the array has the texels of the layout, and `from` has as many, as the caller promises.
        unsafe { sys::cuMemcpy3DAsync_v2(&copy, self.shared.stream) }
            .result()
            .map_err(failed("filling a texture"))
    }
}

impl Drop for Surface {
    fn drop(&mut self) {
        let Ok(_entered) = self.shared.enter() else { return };
        // SAFETY: both are our own; who drops a texture has waited for the kernels that read it.
        unsafe {
            if self.object != 0 {
                let _ = sys::cuTexObjectDestroy(self.object);
            }
            let _ = sys::cuArrayDestroy(self.array);
        }
    }
}
