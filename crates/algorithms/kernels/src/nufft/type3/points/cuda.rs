//! Points on a GPU.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Real, Result};
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_device::{Array, Cuda, Device};
use rayspin_tune::Build;

use super::Placed;
use crate::nufft::Coordinates;
use crate::nufft::cuda::cuda;
use crate::nufft::cuda::points::{COMPONENTS, Copies, defines};
use crate::nufft::type3::stages::{Axis, Extent, Stages};

static SOURCE: Source =
    Source { name: "nufft_type3", files: &[COMPONENTS, ("points.cu", include_str!("points.cu"))] };

const THREADS: u32 = 256;
/// Blocks that look for extents at most. The host reads two numbers of each.
const BLOCKS: u32 = 256;

/// Points on a GPU, or copied to it.
pub(in crate::nufft) struct Points<'a> {
    device: Device,
    points: Coordinates<'a>,
    copies: Copies,
    count: u32,
}

impl<'a> Points<'a> {
    /// Errors: more than 2³² − 1 points, points of another GPU, no memory for a copy.
    pub(super) fn new(device: &Device, points: Coordinates<'a>) -> Result<Self> {
        let copies = Copies::new(device, &points)?;
        let count = u32::try_from(points.samples())
            .map_err(|_| Error::value("points", "fewer than 2^32", points.samples()))?;
        Ok(Self { device: device.clone(), points, copies, count })
    }

    fn cuda(&self) -> Result<&Cuda> {
        cuda(&self.device)
    }

    /// The components, their number, and what kernels know of the axes, `[quantity][axis]`.
    fn arguments<'s>(&'s self, axes: &'s Array<f64>) -> Result<Vec<Argument<'s>>> {
        let mut arguments = self.copies.arguments(&self.device, &self.points)?;
        arguments.extend([Argument::from(self.count), axes.cuda().into()]);
        Ok(arguments)
    }

    /// The units of the components, and the numbers of the axes.
    fn axes(&self, axes: &[Axis]) -> Result<Array<f64>> {
        let mut numbers = [[0.0; 3]; 5];
        for (d, component) in self.points.components().iter().enumerate() {
            numbers[0][d] = component.unit();
        }
        for (d, axis) in axes.iter().enumerate() {
            numbers[1][d] = axis.x_centre;
            numbers[2][d] = axis.s_centre;
            numbers[3][d] = axis.spacing;
            numbers[4][d] = axis.cells as f64;
        }
        Array::from_slice(&self.device, &[5, 3], numbers.as_flattened())
    }

    pub(super) fn extents(&self) -> Result<Vec<Extent>> {
        let blocks = self.count.div_ceil(THREADS).min(BLOCKS);
        let dims = self.points.dims();
        let axes = self.axes(&[])?;
        let mut not_finite = Array::<u32>::zeros(&self.device, &[1])?;
        let mut limits = Array::<f64>::unset(&self.device, &[dims, 2, blocks as usize])?;
        let mut arguments = self.arguments(&axes)?;
        arguments.extend([Argument::from(limits.cuda_mut()), not_finite.cuda_mut().into()]);
        let kernel = self.cuda()?.kernel(&SOURCE, &defines::<f64>(dims), "extents")?;
        // SAFETY: the components have a number for each point; two limits of each component and block.
        unsafe { kernel.launch(Launch::linear(blocks, THREADS), &mut arguments) }?;
        drop(arguments);
        let left = not_finite.to_vec()?.first().copied().unwrap_or_default();
        if left > 0
            && let Some(error) = self.points.not_finite((self.count - left.min(self.count)) as usize)
        {
            return Err(error);
        }
        let limits = limits.to_vec()?;
        let extent = |limits: &[f64]| {
            let (least, most) = limits.split_at(blocks as usize);
            let least = least.iter().copied().fold(f64::INFINITY, f64::min);
            Extent::new(least, most.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        };
        Ok(limits.chunks_exact(2 * blocks as usize).map(extent).collect())
    }

    pub(super) fn positions<R: Real>(&self, stages: &Stages, axes: &[Axis]) -> Result<Placed<R>> {
        self.placed("positions", axes, &[stages.shift()])
    }

    pub(super) fn frequencies<R: Real>(&self, stages: &Stages, axes: &[Axis]) -> Result<Placed<R>> {
        let kernel = &stages.kernel;
        self.placed("frequencies", axes, &[stages.shift(), kernel.width as f64, kernel.beta, kernel.peak])
    }

    /// Runs the kernel `name`. Its own numbers follow the numbers of the axes.
    fn placed<R: Real>(&self, name: &str, axes: &[Axis], own: &[f64]) -> Result<Placed<R>> {
        let mut placed = Placed::new(&self.device, axes.len(), self.points.samples())?;
        let axes = self.axes(axes)?;
        let mut arguments = self.arguments(&axes)?;
        arguments.extend(own.iter().copied().map(Argument::from));
        arguments.extend([Argument::from(placed.numbers.cuda_mut()), placed.factors.cuda_mut().into()]);
        let kernel = self.cuda()?.kernel(&SOURCE, &defines::<R>(self.points.dims()), name)?;
        let launch = Launch::covering(self.points.samples(), THREADS);
        // SAFETY: the components have a number for each point; there is a number of each component and a
        // factor for each.
        unsafe { kernel.launch(launch, &mut arguments) }?;
        drop(arguments);
        Ok(placed)
    }
}

/// The programs of all dimensions.
pub(in crate::nufft) fn builds<R: Real>() -> Vec<Build> {
    (1..=3).map(|dims| Build { source: &SOURCE, defines: defines::<R>(dims), spill_bytes: 0 }).collect()
}
