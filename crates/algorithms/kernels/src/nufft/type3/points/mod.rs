//! Points on their way to the plans of the two stages: their extents, their places in the units of these
//! plans, and the factors of values at them. All of it happens where the points are, once a plan.

mod cpu;
pub(in crate::nufft) mod cuda;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::{Array, Backend, Device};

use super::stages::{Axis, Extent, Stages};
use crate::nufft::{Component, Coordinates};

/// Points that a plan reads, on the processor that computes it.
pub(super) enum Points<'a> {
    Cpu(cpu::Points<'a>),
    Cuda(cuda::Points<'a>),
}

/// Points in the unit of a stage's plan, and the factors of values at them.
pub(super) struct Placed<R: Real> {
    /// `[dim, point]`, in the order x, y, z.
    pub(super) numbers: Array<f64>,
    pub(super) factors: Array<Complex<R>>,
}

/// The factors of values at the positions and at the frequencies.
pub(super) struct Factors<R: Real> {
    pub(super) before: Array<Complex<R>>,
    pub(super) after: Array<Complex<R>>,
}

impl<'a> Points<'a> {
    /// Points for a plan on this processor.
    ///
    /// Errors: no points, points of another GPU, no memory for a copy on the GPU.
    pub(super) fn new(processor: &Device, points: Coordinates<'a>) -> Result<Self> {
        Ok(match processor.backend() {
            Backend::Cpu(_) => Self::Cpu(cpu::Points::new(processor, points)?),
            Backend::Cuda(_) => Self::Cuda(cuda::Points::new(processor, points)?),
        })
    }

    /// Middle and half-width along each component. Errors: numbers that are not finite.
    pub(super) fn extents(&self) -> Result<Vec<Extent>> {
        match self {
            Self::Cpu(points) => points.extents(),
            Self::Cuda(points) => points.extents(),
        }
    }

    /// Positions in cells of the grid. Their factors are e^{−i2πs_c·x_k}, s_c the centre of the frequencies.
    pub(super) fn positions<R: Real>(&self, stages: &Stages, axes: &[Axis]) -> Result<Placed<R>> {
        match self {
            Self::Cpu(points) => points.positions(stages, axes),
            Self::Cuda(points) => points.positions(stages, axes),
        }
    }

    /// Frequencies in cycles per extent of the grid. Their factors are e^{−i2π(s_j − s_c)·(x_c − hδ)} /
    /// φ̂(h(s_j − s_c)), x_c the centre of the positions, h the grid's spacing, δ the place of that centre
    /// from the grid's middle, in cells.
    pub(super) fn frequencies<R: Real>(&self, stages: &Stages, axes: &[Axis]) -> Result<Placed<R>> {
        match self {
            Self::Cpu(points) => points.frequencies(stages, axes),
            Self::Cuda(points) => points.frequencies(stages, axes),
        }
    }
}

impl<R: Real> Placed<R> {
    fn new(processor: &Device, dims: usize, count: usize) -> Result<Self> {
        Ok(Self {
            numbers: Array::unset(processor, &[dims, count])?,
            factors: Array::unset(processor, &[count])?,
        })
    }
}

/// The points of an array `[dim, point]`.
pub(super) fn coordinates(numbers: &Array<f64>) -> Result<Coordinates<'_>> {
    let Some((&count, [dims])) = numbers.shape().split_last() else {
        return Err(Error::shape("type 3 NUFFT points", &[3, 1], numbers.shape()));
    };
    let component = |d| Component::new("points", numbers)?.strided(d * count, 1, count);
    Coordinates::new(&(0..*dims).map(component).collect::<Result<Vec<_>>>()?)
}
