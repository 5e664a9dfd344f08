#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{AddressMode, Filter, Launch, Sampling, Source, Texture};
use rayspin_device::{Array, Cuda};

use super::{Kernel, Pixel};
use crate::plane;

pub(super) static SOURCE: Source =
    Source { name: "bicubic", files: &[("bicubic.cu", include_str!("cuda/bicubic.cu"))] };

pub(super) const POINTS: Sampling =
    Sampling { filter: Filter::Point, address_mode: AddressMode::Clamp, normalized: false };
pub(super) const LINEAR: Sampling =
    Sampling { filter: Filter::Linear, address_mode: AddressMode::Clamp, normalized: false };

/// Places and weights on a GPU, rows' first.
pub(super) struct Tables {
    pub places: Array<i32>,
    pub weights: Array<[f32; 4]>,
}

/// An image and where it is resampled to.
pub(super) struct Job<'a, T: Pixel> {
    pub cuda: &'a Cuda,
    pub image: &'a Array<T>,
    pub out: &'a mut Array<T>,
    pub tables: &'a Tables,
    pub from: [usize; 2],
    pub to: [usize; 2],
}

impl<T: Pixel> Job<'_, T> {
    fn kernel(&self, name: &str) -> Result<rayspin_device::cuda::Kernel> {
        self.cuda.kernel(&SOURCE, &[], &format!("{name}_{}", T::NAME))
    }

    fn grid(&self, x: u32, y: u32) -> Launch {
        let blocks = [(self.to[1] as u32).div_ceil(x), (self.to[0] as u32).div_ceil(y), 1];
        Launch { blocks, threads: [x, y, 1], shared: 0 }
    }

    /// Rows and columns before and after, which the arrays have.
    fn sizes(&self) -> Result<[i32; 4]> {
        plane::asked("bicubic resampling", &self.from)?;
        plane::asked("output of bicubic resampling", &self.to)?;
        expect_len("image", &self.from, self.image.len())?;
        expect_len("resampled image", &self.to, self.out.len())?;
        let lines = self.to[0] + self.to[1];
        expect_len("places of rows and columns", &[lines], self.tables.places.len())?;
        expect_len("weights of rows and columns", &[lines], self.tables.weights.len())?;
        Ok([self.from[0], self.from[1], self.to[0], self.to[1]].map(|n| n as i32))
    }

    pub(super) fn sixteen(&mut self, x: u32, y: u32, kernel: Kernel) -> Result<()> {
        let [rows, columns, high, wide] = self.sizes()?;
        let step = |axis: usize| self.from[axis] as f64 / self.to[axis] as f64;
        let (step_y, step_x) = (step(0), step(1));
        let a = match kernel {
            Kernel::Keys(a) => a,
            Kernel::Spline => 1.0,
        };
        let shape = self.grid(x, y);
        let kernel = self.kernel("sixteen")?;
        let arguments = &mut [
            self.image.cuda().into(),
            self.out.cuda_mut().into(),
            rows.into(),
            columns.into(),
            high.into(),
            wide.into(),
            step_y.into(),
            step_x.into(),
            a.into(),
        ];
        // SAFETY: image and output have the sizes given, and the kernel holds places to the image.
        unsafe { kernel.launch(shape, arguments) }
    }

    pub(super) fn tabled(&mut self, x: u32, y: u32) -> Result<()> {
        let [rows, columns, high, wide] = self.sizes()?;
        let shape = self.grid(x, y);
        let kernel = self.kernel("tabled")?;
        let arguments = &mut [
            self.image.cuda().into(),
            self.out.cuda_mut().into(),
            rows.into(),
            columns.into(),
            high.into(),
            wide.into(),
            self.tables.places.cuda().into(),
            self.tables.weights.cuda().into(),
        ];
        // SAFETY: image, output and tables have the sizes given, and the kernel holds places to the image.
        unsafe { kernel.launch(shape, arguments) }
    }

    /// `points` or `four`, from a texture of the image.
    pub(super) fn textured(&mut self, name: &str, x: u32, y: u32, texture: Option<&Texture>) -> Result<()> {
        let [_, _, high, wide] = self.sizes()?;
        let missing = || {
            Error::value(
                "bicubic through textures",
                "an image that a texture holds",
                format!("{:?}", self.from),
            )
        };
        let texture = texture.ok_or_else(missing)?;
        let shape = self.grid(x, y);
        let kernel = self.kernel(name)?;
        let arguments = &mut [
            texture.into(),
            self.out.cuda_mut().into(),
            high.into(),
            wide.into(),
            self.tables.places.cuda().into(),
            self.tables.weights.cuda().into(),
            T::UNIT.into(),
        ];
        // SAFETY: output and tables have the sizes given; a texture holds places to itself.
        unsafe { kernel.launch(shape, arguments) }
    }

    pub(super) fn sliding(&mut self, threads: u32, each: usize) -> Result<()> {
        let [rows, columns, high, wide] = self.sizes()?;
        let across = self.to[1].div_ceil(threads as usize);
        let blocks = across.checked_mul(self.to[0].div_ceil(each)).filter(|&n| n <= i32::MAX as usize);
        let blocks = blocks.ok_or_else(|| {
            Error::value("blocks of a grid", "at most 2147483647", format!("{:?} pixels", self.to))
        })?;
        let shape = Launch::linear(blocks as u32, threads);
        let kernel = self.kernel("sliding")?;
        let arguments = &mut [
            self.image.cuda().into(),
            self.out.cuda_mut().into(),
            rows.into(),
            columns.into(),
            high.into(),
            wide.into(),
            self.tables.places.cuda().into(),
            self.tables.weights.cuda().into(),
            (each as i32).into(),
            (across as i32).into(),
        ];
        // SAFETY: image, output and tables have the sizes given, and the kernel holds places to the image.
        unsafe { kernel.launch(shape, arguments) }
    }
}
