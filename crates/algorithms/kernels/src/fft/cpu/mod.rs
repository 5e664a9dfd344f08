//! The N-D FFT engine: 1-D transforms of `rustfft` along each axis, over all cores.
//!
//! Along strided axes 32 columns at a time are copied into a cache-resident buffer and transformed side by
//! side in SIMD lanes. If a length has large prime factors, they are transposed and transformed one by one.
//! Trailing axes whose sub-array fits a core's second-level cache are transformed together, in one trip from
//! memory.

mod butterflies;
pub(crate) mod lanes;
pub(crate) mod line;
pub(crate) mod lines;
pub(crate) mod pass;
mod region;

use std::sync::Arc;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, expect_shape, format_shape, voxels};
use rayspin_device::Cpu;
use rayspin_device::cpu::Stop;
use rayspin_line_fft::{Fft, Lines, plan_f32, plan_f64};

use crate::concrete::{other_type, same, same_ref};
use lanes::LaneFft;
pub use region::Region;

/// The sign of the exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// e^{−i2πjk/n}.
    Forward,
    /// e^{+i2πjk/n}, not scaled.
    Inverse,
}

/// Options of one call of [`FftNd::process_with`].
#[derive(Debug, Clone, Copy)]
pub struct Options<'a, R> {
    /// The sign of the exponent.
    pub direction: Direction,
    /// The part of the input that is nonzero, the same for every batch item. Values elsewhere are never read,
    /// so the padding of a zero-padded array need not be written. `None` means everywhere.
    pub nonzero: Option<&'a Region>,
    /// The part of the output that is wanted. Values elsewhere are unspecified afterwards. `None` means all.
    pub wanted: Option<&'a Region>,
    /// Factor of the output, applied as the last axis is written.
    pub scale: R,
    /// Whether index ⌊n/2⌋, instead of index 0, is position 0 and frequency 0 along every axis.
    pub centred: bool,
}

impl<'a, R: Real> Options<'a, R> {
    /// The same options in another number type.
    fn with_type<T: Real>(&self) -> Options<'a, T> {
        Options {
            direction: self.direction,
            nonzero: self.nonzero,
            wanted: self.wanted,
            scale: <T as Real>::from_f64(self.scale.to_f64()),
            centred: self.centred,
        }
    }

    /// The whole transform, not scaled, index 0 being position and frequency 0.
    pub fn new(direction: Direction) -> Self {
        Self { direction, nonzero: None, wanted: None, scale: R::one(), centred: false }
    }
}

/// The methods that the engine uses; variants differ in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strategy {
    /// One column a SIMD lane along strided axes, where the length suits.
    pub(crate) lanes: bool,
    /// Trailing axes that fit a core's cache together.
    pub(crate) local: bool,
}

impl Strategy {
    pub(crate) const BEST: Self = Self { lanes: true, local: true };
}

/// An N-D complex FFT of one shape with any sizes: X\[k\] = Σ_j x\[j\] e^{∓i2π Σ_a j_a k_a / n_a}, without
/// scaling.
///
/// Holds twiddle factors only; one instance may be used from several threads at once.
pub struct FftNd<R: Real> {
    shape: Vec<usize>,
    lines: Lines<R>,
    lanes: Vec<Option<Arc<LaneFft<R>>>>,
}

/// Fails unless transforms of `shape` are possible.
pub(super) fn check_shape(shape: &[usize]) -> Result<()> {
    if !(1..=3).contains(&shape.len()) || shape.contains(&0) {
        return Err(Error::Shape {
            what: "FFT".into(),
            expected: "1 to 3 axes, none empty".into(),
            found: format_shape(shape),
        });
    }
    voxels(shape).map(|_| ())
}

impl<R: Real> FftNd<R> {
    /// Plans transforms of `shape`, 1 to 3 axes. Errors: another rank, an empty axis, or a size beyond the
    /// address space.
    pub fn new(shape: &[usize]) -> Result<Self> {
        check_shape(shape)?;
        let lines = match same(plan_f32(shape)) {
            Some(lines) => lines,
            None => same(plan_f64(shape)).ok_or_else(other_type::<R>)?,
        };
        Ok(Self { shape: shape.to_vec(), lines, lanes: shape.iter().map(|&n| lane_fft(n)).collect() })
    }

    /// The shape of one transform.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements of one transform.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Transforms `data`, a batch of C-order arrays of [`FftNd::shape`], in place. Not scaled; index 0 is
    /// position and frequency 0. Errors: a length that is not a multiple of [`FftNd::len`].
    pub fn process(&self, cpu: &Cpu, data: &mut [Complex<R>], direction: Direction) -> Result<()> {
        self.process_with(cpu, data, &Options::new(direction))
    }

    /// [`FftNd::process`], optionally scaled, centred or pruned. Pruning skips lines that are known to be
    /// zero or are not wanted.
    ///
    /// Doubled in each of three axes, a zero-padded forward or a cropped inverse transform takes 7/12 of the
    /// full transform's flops. Errors: as [`FftNd::process`], or a region of another shape.
    pub fn process_with(&self, cpu: &Cpu, data: &mut [Complex<R>], options: &Options<'_, R>) -> Result<()> {
        self.process_by(cpu, data, options, Strategy::BEST)
    }

    /// [`FftNd::process_with`] by the given methods.
    pub(crate) fn process_by(
        &self,
        cpu: &Cpu,
        data: &mut [Complex<R>],
        options: &Options<'_, R>,
        strategy: Strategy,
    ) -> Result<()> {
        if !data.len().is_multiple_of(self.len()) {
            return Err(Error::value(
                format!("FFT of {}", format_shape(&self.shape)),
                format!("a multiple of {} elements", self.len()),
                data.len(),
            ));
        }
        for (what, region) in [("nonzero", options.nonzero), ("wanted", options.wanted)] {
            if let Some(region) = region {
                expect_shape(&format!("{what} region of an FFT"), &self.shape, region.shape())?;
            }
        }
        if data.is_empty() {
            return Ok(());
        }
        if let Some(engine) = same_ref(self) {
            run_f32(engine, cpu, bytemuck::cast_slice_mut(data), &options.with_type(), strategy)
        } else {
            let engine = same_ref(self).ok_or_else(other_type::<R>)?;
            run_f64(engine, cpu, bytemuck::cast_slice_mut(data), &options.with_type(), strategy)
        }
    }

    /// The transform of [`line::COLUMNS`] columns at once along one axis, where its length suits.
    pub(crate) fn lanes(&self, axis: usize) -> Option<&Arc<LaneFft<R>>> {
        self.lanes[axis].as_ref()
    }

    /// The 1-D transform along one axis.
    pub(crate) fn line(&self, axis: usize, direction: Direction) -> &Arc<dyn Fft<R>> {
        match direction {
            Direction::Forward => &self.lines.forward[axis],
            Direction::Inverse => &self.lines.inverse[axis],
        }
    }
}

fn run<R: Real>(
    engine: &FftNd<R>,
    cpu: &Cpu,
    data: &mut [Complex<R>],
    options: &Options<'_, R>,
    strategy: Strategy,
) -> Result<()> {
    pass::Plan::new(engine, options, data.len() / engine.len(), cpu, strategy)?.run(cpu, data);
    Stop::of_caller().check()
}

#[inline(never)]
fn run_f32(
    engine: &FftNd<f32>,
    cpu: &Cpu,
    data: &mut [Complex<f32>],
    options: &Options<'_, f32>,
    strategy: Strategy,
) -> Result<()> {
    run(engine, cpu, data, options, strategy)
}

#[inline(never)]
fn run_f64(
    engine: &FftNd<f64>,
    cpu: &Cpu,
    data: &mut [Complex<f64>],
    options: &Options<'_, f64>,
    strategy: Strategy,
) -> Result<()> {
    run(engine, cpu, data, options, strategy)
}

fn lane_fft<R: Real>(n: usize) -> Option<Arc<LaneFft<R>>> {
    if (2..=lanes::LONGEST).contains(&n) { LaneFft::new(n).map(Arc::new) } else { None }
}

impl<R: Real> std::fmt::Debug for FftNd<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FftNd<{}>{:?}", R::NAME, self.shape)
    }
}
