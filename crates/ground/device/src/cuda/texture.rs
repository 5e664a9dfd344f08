//! Textures: values that kernels read at any coordinate and that the hardware interpolates.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use num_complex::Complex;
use rayspin_core::{Error, Result};

use super::argument::Home;
use super::{Argument, Cuda, Driver, Memory, TextureMemory, View};
use crate::Element;

/// The numbers of a texel as the hardware stores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TexelKind {
    /// `tex2D<float>` returns the number.
    F32,
    /// `tex2D<float2>` returns both numbers.
    F32x2,
    /// `tex2D<float>` returns the number divided by 255.
    U8,
}

impl TexelKind {
    /// Bytes of a texel.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F32x2 => 8,
            Self::U8 => 1,
        }
    }
}

/// Elements that a texture can hold. Copies to and from a texture rely on the size of [`Texel::KIND`], so
/// other crates cannot implement this trait:
///
/// ```compile_fail
/// use rayspin_device::cuda::{Texel, TexelKind};
///
/// #[derive(Debug, Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
/// #[repr(transparent)]
/// struct Byte(u8);
///
/// impl Texel for Byte {
///     const KIND: TexelKind = TexelKind::F32x2;
/// }
/// ```
pub trait Texel: Element + sealed::Sealed {
    /// How the hardware stores the elements.
    const KIND: TexelKind;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for num_complex::Complex<f32> {}
    impl Sealed for u8 {}
}

impl Texel for f32 {
    const KIND: TexelKind = TexelKind::F32;
}
impl Texel for Complex<f32> {
    const KIND: TexelKind = TexelKind::F32x2;
}
impl Texel for u8 {
    const KIND: TexelKind = TexelKind::U8;
}

/// The value at a coordinate between texels. Texel i lies at i + ½.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// The texel that the coordinate lies in.
    Point,
    /// (1 − α) T\[i\] + α T\[i + 1\] along every axis, with i = ⌊x − ½⌋ and α = x − ½ − i rounded to 1/256.
    /// Along several axes the hardware also rounds each texel's product of weights to 1/256 (seen on an
    /// H100).
    Linear,
}

/// The value at a coordinate outside the texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressMode {
    /// The nearest texel.
    Clamp,
    /// 0.
    Border,
    /// The texture repeats. For normalised coordinates only.
    Wrap,
    /// The texture repeats, every other time reversed. For normalised coordinates only.
    Mirror,
}

/// How a texture is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// How values between texels are found.
    pub filter: Filter,
    /// How values outside the texture are found, along every axis.
    pub address_mode: AddressMode,
    /// Whether coordinates go from 0 to 1 rather than from 0 to the number of texels.
    pub normalized: bool,
}

impl Sampling {
    /// Linear, 0 outside, coordinates in texels.
    pub const LINEAR: Self =
        Self { filter: Filter::Linear, address_mode: AddressMode::Border, normalized: false };
}

/// The description of a texture, for a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextureLayout {
    /// Texels along x, y and z; 0 for an axis that is missing. z is the number of layers if the texture has
    /// layers.
    pub size: [usize; 3],
    /// Whether z counts layers. Nothing is interpolated between layers.
    pub layered: bool,
    /// The texels.
    pub kind: TexelKind,
    /// How kernels read the texture.
    pub sampling: Sampling,
}

impl TextureLayout {
    /// Number of texels.
    pub fn texels(&self) -> usize {
        self.size.iter().map(|&n| n.max(1)).product()
    }

    /// Number of axes, layers included.
    pub fn axes(&self) -> usize {
        self.size.iter().filter(|&&n| n > 0).count()
    }
}

/// Maximum texels along x, y and z for 1, 2 and 3 axes on every processor since capability 8.0, and the
/// maximum number of layers.
const MOST: [[usize; 3]; 3] = [[131_072, 0, 0], [131_072, 65_536, 0], [16_384; 3]];
const MOST_LAYERED: [usize; 3] = [32_768, 32_768, 2048];

/// A copy of an array that kernels read through `tex1D`, `tex2D`, `tex3D` or `tex2DLayered`: a parameter
/// `cudaTextureObject_t`.
pub struct Texture {
    texels: Texels,
    layout: TextureLayout,
    shape: Vec<usize>,
}

/// The memory of a texture. It is freed when all kernels queued so far have read it.
struct Texels {
    inner: Arc<dyn TextureMemory>,
    driver: Arc<dyn Driver>,
    memory: Arc<Memory>,
    bytes: u64,
}

impl Cuda {
    /// A texture of values of this shape, as [`Cuda::texture`] makes it.
    pub(crate) fn texture_of<T: Texel>(
        &self,
        values: View<'_, T>,
        shape: &[usize],
        sampling: Sampling,
        layered: bool,
    ) -> Result<Texture> {
        let wanted = if layered { 3..=3 } else { 1..=3 };
        if !wanted.contains(&shape.len()) || values.is_empty() {
            let axes = if layered { "[layer, y, x]" } else { "one to three axes" };
            return Err(Error::value("texture", format!("{axes} with texels"), format!("{shape:?}")));
        }
        let mut size = [0; 3];
        size.iter_mut().zip(shape.iter().rev()).for_each(|(size, &n)| *size = n);
        let most = if layered { MOST_LAYERED } else { MOST[shape.len() - 1] };
        if size.iter().zip(most).any(|(&n, most)| n > most) {
            let most: Vec<_> = most[..shape.len()].iter().rev().collect();
            return Err(Error::value("texture", format!("at most {most:?} texels"), format!("{shape:?}")));
        }
        if matches!(sampling.address_mode, AddressMode::Wrap | AddressMode::Mirror) && !sampling.normalized {
            let wanted = "normalised coordinates, without which the hardware repeats nothing";
            return Err(Error::value("texture", wanted, format!("{sampling:?}")));
        }
        let layout = TextureLayout { size, layered, kind: T::KIND, sampling };
        let bytes = (layout.texels() * T::KIND.bytes()) as u64;
        let pass = self.memory.gate.pass_now("making a texture")?;
        self.memory.take(bytes, "texture")?;
        let inner = self.driver.texture(&layout).inspect_err(|_| self.memory.untake(bytes))?;
        drop(pass);
        let (driver, memory) = (self.driver.clone(), self.memory.clone());
        let texels = Texels { inner, driver, memory, bytes };
        let mut texture = Texture { texels, layout, shape: shape.to_vec() };
        texture.fill(values)?;
        Ok(texture)
    }
}

impl Memory {
    fn take(&self, bytes: u64, what: &str) -> Result<()> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let limit = self.limit.load(Ordering::Relaxed);
        if limit != 0 && used > limit {
            self.untake(bytes);
            self.refused.fetch_add(1, Ordering::Relaxed);
            let available = limit.saturating_sub(used - bytes);
            return Err(Error::Memory { what: format!("{what} on the GPU"), needed: bytes, available });
        }
        self.peak.fetch_max(used, Ordering::Relaxed);
        Ok(())
    }

    fn untake(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Texture {
    /// Replaces the values, in the order of the device's work. Errors: another number of values, kind of
    /// texel or device.
    #[allow(unsafe_code)]
    pub(crate) fn fill<T: Texel>(&mut self, values: View<'_, T>) -> Result<()> {
        rayspin_core::expect_shape("texture", &[self.layout.texels()], &[values.len()])?;
        let home = Home::of(&self.texels.memory);
        if values.home != home || T::KIND != self.layout.kind {
            let place = if values.home == home { "its own GPU" } else { "another device" };
            let given = format!("{:?} on {place}", T::KIND);
            return Err(Error::value("texture", format!("{:?} on its own GPU", self.layout.kind), given));
        }
        let _pass = self.texels.memory.gate.pass();
        // SAFETY: the view holds as many texels as the texture.
        unsafe { self.texels.inner.fill(values.address) }
    }

    /// The shape of the array that the texture was made of.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
}

impl<'a> From<&'a Texture> for Argument<'a> {
    fn from(texture: &'a Texture) -> Self {
        let Texels { inner, memory, .. } = &texture.texels;
        Self::texture(inner.handle(), Home::of(memory))
    }
}

impl Texels {
    fn wait(&self) -> Result<()> {
        let _pass = self.memory.gate.pass_now("giving a texture back")?;
        self.driver.synchronize()
    }
}

impl Drop for Texels {
    fn drop(&mut self) {
        self.memory.gate.note_free();
        if self.wait().is_err() && !self.memory.idle(&*self.driver) {
            let (inner, driver) = (self.inner.clone(), self.driver.clone());
            return self.memory.defer(Self { inner, driver, memory: self.memory.clone(), bytes: self.bytes });
        }
        self.memory.untake(self.bytes);
    }
}

impl std::fmt::Debug for Texture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Texture({:?}, {:?})", self.shape, self.layout.sampling)
    }
}
