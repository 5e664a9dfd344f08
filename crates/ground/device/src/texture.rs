//! Textures of arrays.

use rayspin_core::{Error, Result, expect_shape};

use crate::cuda::{Sampling, Texel, Texture, View};
use crate::{Array, Backend, Cuda};

impl Cuda {
    /// Makes a texture of `values`, `[x]`, `[y, x]` or `[z, y, x]`.
    ///
    /// Errors: another number of axes; an axis that is empty or too long for the hardware; a repeated texture
    /// with coordinates in texels; no memory.
    pub fn texture<T: Texel>(&self, values: &Array<T>, sampling: Sampling) -> Result<Texture> {
        self.texture_of(on_gpu(values)?, values.shape(), sampling, false)
    }

    /// Makes a texture of images `[layer, y, x]`, for `tex2DLayered`. Errors: as [`Cuda::texture`].
    pub fn layered_texture<T: Texel>(&self, values: &Array<T>, sampling: Sampling) -> Result<Texture> {
        self.texture_of(on_gpu(values)?, values.shape(), sampling, true)
    }
}

impl Texture {
    /// Replaces the values by others of the same shape, in the order of the device's work.
    ///
    /// Errors: another shape, kind of texel or device.
    pub fn set<T: Texel>(&mut self, values: &Array<T>) -> Result<()> {
        expect_shape("texture", self.shape(), values.shape())?;
        self.fill(on_gpu(values)?)
    }
}

/// Errors: an array on the CPU.
fn on_gpu<T: Texel>(values: &Array<T>) -> Result<View<'_, T>> {
    match values.device().backend() {
        Backend::Cuda(_) => Ok(values.cuda()),
        Backend::Cpu(_) => {
            let given = format!("{:?} on {}", T::KIND, values.device().describe());
            Err(Error::value("texture", "texels on a GPU", given))
        }
    }
}
