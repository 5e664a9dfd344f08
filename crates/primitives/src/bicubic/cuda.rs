use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Filter, Launch, Outside, Sampling, Source, Texture};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::{Kernel, Pixel};

pub(super) static SOURCE: Source =
    Source { name: "bicubic", files: &[("bicubic.cu", include_str!("cuda/bicubic.cu"))] };

pub(crate) fn programs() -> Vec<Build> {
    vec![Build { source: &SOURCE, defines: vec![], spill_bytes: 0 }]
}

pub(super) const POINTS: Sampling =
    Sampling { filter: Filter::Point, outside: Outside::Clamp, normalized: false };
pub(super) const LINEAR: Sampling =
    Sampling { filter: Filter::Linear, outside: Outside::Clamp, normalized: false };

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

    fn sizes(&self) -> [i32; 4] {
        [self.from[0], self.from[1], self.to[0], self.to[1]].map(|n| n as i32)
    }

    pub(super) fn sixteen(&mut self, x: u32, y: u32, kernel: Kernel) -> Result<()> {
        let [rows, columns, high, wide] = self.sizes();
        let step = |axis: usize| self.from[axis] as f64 / self.to[axis] as f64;
        let (step_y, step_x) = (step(0), step(1));
        let a = match kernel {
            Kernel::Keys(a) => a,
            Kernel::Spline => 1.0,
        };
        self.kernel("sixteen")?.launch(
            self.grid(x, y),
            &mut [
                self.image.cuda().into(),
                self.out.cuda_mut().into(),
                rows.into(),
                columns.into(),
                high.into(),
                wide.into(),
                step_y.into(),
                step_x.into(),
                a.into(),
            ],
        )
    }

    pub(super) fn tabled(&mut self, x: u32, y: u32) -> Result<()> {
        let [rows, columns, high, wide] = self.sizes();
        self.kernel("tabled")?.launch(
            self.grid(x, y),
            &mut [
                self.image.cuda().into(),
                self.out.cuda_mut().into(),
                rows.into(),
                columns.into(),
                high.into(),
                wide.into(),
                self.tables.places.cuda().into(),
                self.tables.weights.cuda().into(),
            ],
        )
    }

    /// `points` or `four`, from a texture of the image.
    pub(super) fn textured(&mut self, name: &str, x: u32, y: u32, texture: Option<&Texture>) -> Result<()> {
        let [_, _, high, wide] = self.sizes();
        let missing = || {
            Error::value(
                "bicubic through textures",
                "an image that a texture holds",
                format!("{:?}", self.from),
            )
        };
        let texture = texture.ok_or_else(missing)?;
        self.kernel(name)?.launch(
            self.grid(x, y),
            &mut [
                texture.into(),
                self.out.cuda_mut().into(),
                high.into(),
                wide.into(),
                self.tables.places.cuda().into(),
                self.tables.weights.cuda().into(),
                T::UNIT.into(),
            ],
        )
    }

    pub(super) fn sliding(&mut self, threads: u32, each: usize) -> Result<()> {
        let [rows, columns, high, wide] = self.sizes();
        let across = self.to[1].div_ceil(threads as usize);
        let blocks = across.checked_mul(self.to[0].div_ceil(each)).filter(|&n| n <= i32::MAX as usize);
        let blocks = blocks.ok_or_else(|| {
            Error::value("blocks of a grid", "at most 2147483647", format!("{:?} pixels", self.to))
        })?;
        self.kernel("sliding")?.launch(
            Launch::linear(blocks as u32, threads),
            &mut [
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
            ],
        )
    }
}
