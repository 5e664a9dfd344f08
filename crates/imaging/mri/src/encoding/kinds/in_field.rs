//! Samples in an inhomogeneous field of f(x) Hz, at points or on a grid, where no FFT is the encoding.
//!
//! ```text
//! (Aρ)(m) = Σ_x ρ(x) e^{−i2π(f(x) t_m + k_m·x)} ≈ Σ_l b_l(t_m) F [ e^{−i2πf τ_l} ρ ](m)
//! AᴴA ρ ≈ Σ_l e^{i2πf τ′_l} T_l [ e^{−i2πf τ′_l} ρ ],   T_l = Fᴴ diag(b′_l(t_m)) F
//! ```
//!
//! The phase is interpolated between a few times τ_l ([`Interpolator`]); the normal operator has an
//! interpolator of its own, for frequency differences, and takes a convolution for each segment
//! ([`OffResonanceToeplitz`]). A GPU may hold some of their spectra
//! ([`BatchSizes::segments`](crate::recon::BatchSizes::segments)).
//!
//! Sutton, Noll, Fessler, *Fast, iterative image reconstruction for MRI in the presence of field
//! inhomogeneities*, IEEE Trans Med Imaging 22:178, 2003; Fessler et al., *Toeplitz-based iterative image
//! reconstruction for MRI with correction for magnetic field inhomogeneity*, IEEE Trans Signal Process
//! 53:3393, 2005.

use std::borrow::Cow;
use std::sync::Arc;

use ndarray::{ArrayD, ArrayViewD, Axis};
use rayspin_core::{C32, C64, Error, Result, Trajectory, expect_shape};
use rayspin_device::{Array, Device};
use rayspin_kernels::off_resonance::{Interpolator, Scratch, Segments, reference};
use rayspin_kernels::toeplitz::Series;
use rayspin_linop::{CoilMaps, LinearOp, OffResonanceToeplitz};
use rayspin_run::{Bytes, Cost, Memory};

use super::points::{Counts, MakeKernel, Modulated, Modulation, Points, missing};
use super::{EncodingSpec, Given, Row, places};
use crate::encoding::blocks::Transforms;
use crate::encoding::certify::Exact;
use crate::encoding::joined::measured;
use crate::encoding::{COMPLEX, Extent, REAL, Settings, Spec, count};
use crate::scan::{Frame, Samples};

pub(super) const ROW: Row = Row {
    encodes: |_, settings| settings.field_map.is_some(),
    on_grid: false,
    place: "with a field map",
    spec,
    extent: |frame, settings| Extent {
        points: measured(frame),
        segments: normal_segments(frame, settings).unwrap_or(0),
        ..Extent::default()
    },
    #[cfg(test)]
    examples,
};

fn spec<'a>(given: &Given<'a>) -> Result<Box<dyn EncodingSpec + 'a>> {
    let Given { inputs, settings, field_range } = given;
    let map = settings.field_map.ok_or_else(|| Error::value("field map", "one", "none"))?;
    let field = |times| Field { map, times, range: field_range.unwrap_or_else(|| range_of(map)) };
    let Ok(grid) = inputs.expect_grid() else {
        let trajectory = inputs.expect_trajectory()?.clone();
        let times = expect_times(inputs.times(), trajectory.samples())?;
        return Ok(Box::new(Points::new(given, trajectory, field(Cow::Borrowed(times)))));
    };
    let times = expect_times(inputs.times(), grid.sampled.len())?;
    let (places, trajectory) = places(grid.sampled, inputs.matrix())?;
    let times = places.iter().map(|&place| times[place]).collect();
    let points = Points::new(given, trajectory, field(Cow::Owned(times)));
    Ok(Box::new(points.of_grid(grid, places)))
}

/// The map of an inhomogeneous field, and when samples are taken.
pub(super) struct Field<'a> {
    map: &'a ArrayD<f32>,
    times: Cow<'a, [f64]>,
    /// The lowest and the highest frequency of all frames.
    range: [f64; 2],
}

impl Field<'_> {
    /// The map on the device. Errors: another matrix, memory.
    fn on(&self, device: &Device, matrix: &[usize]) -> Result<Arc<Array<f32>>> {
        Ok(Arc::new(Array::from_host(device, of_matrix(self.map, matrix)?)?))
    }
}

impl Modulation for Field<'_> {
    type Plans = OffResonance;
    const STEP: &'static str = "time segments";

    fn counts(&self, settings: &Settings<'_>, samples: u64, voxels: u64) -> Result<Counts> {
        let interpolators = Interpolators::new(self.range, &self.times, settings.field_tolerance)?;
        Ok(Counts {
            encodings: interpolators.encoding.segments() as u64,
            convolutions: interpolators.normal.segments() as u64,
            // The image and samples of a segment.
            of_coil: COMPLEX * (voxels + samples),
        })
    }

    /// Complex weights in double precision and an index per sample, of all segments, and the weights of one.
    fn table(&self, samples: u64, convolutions: u64) -> u64 {
        2 * Segments::<f32>::bytes_needed(&self.times, convolutions as usize) + REAL * samples
    }

    fn needs(&self, spec: &Spec<'_>, encodings: u64) -> Cost {
        let table = Segments::<f32>::bytes_needed(&self.times, encodings as usize);
        let held = REAL * count(spec.domain()) + table;
        let times = Bytes::host(COMPLEX * self.times.len() as u64);
        Cost::of(
            Memory::held(times).then(Memory::temporary(spec.arrays(2 * held)).holding(spec.arrays(held))),
        )
    }

    fn plan(&self, spec: &Spec<'_>) -> Result<(OffResonance, Vec<String>)> {
        let field = self.on(spec.device(), spec.domain())?;
        let (times, range, tolerance) = (self.times.to_vec(), self.range, spec.settings().field_tolerance);
        let interpolators = Interpolators::new(range, &times, tolerance)?;
        let segments = Segments::new(spec.device(), &interpolators.encoding, &times)?;
        let note = interpolators.note(tolerance, spec.needs_normal());
        Ok((OffResonance { times, range, interpolators, segments, field, kernels: None }, vec![note]))
    }

    /// Samples at the same times in fields of the same range: another frame's field.
    fn take_over(&self, spec: &Spec<'_>, plans: &mut OffResonance) -> Result<bool> {
        if plans.times[..] != self.times[..] || plans.range != self.range {
            return Ok(false);
        }
        plans.field = self.on(spec.device(), spec.domain())?;
        Ok(true)
    }
}

/// The interpolators that an inhomogeneous field takes: of the encoding, and of its normal operator.
struct Interpolators {
    encoding: Interpolator,
    normal: Interpolator,
    duration: f64,
    range: [f64; 2],
}

impl Interpolators {
    /// For frequencies in `range` (Hz) and samples at `times` (s). Errors: as [`Interpolator::new`].
    fn new(range: [f64; 2], times: &[f64], tolerance: f64) -> Result<Self> {
        let first = times.iter().copied().fold(f64::INFINITY, f64::min);
        let last = times.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let width = range[1] - range[0];
        Ok(Self {
            encoding: Interpolator::new(range, [first, last], tolerance)?,
            normal: Interpolator::new([-width, width], [first, last], tolerance)?,
            duration: last - first,
            range,
        })
    }

    /// What a run says of them.
    fn note(&self, tolerance: f64, iterates: bool) -> String {
        let text = |i: &Interpolator| {
            format!(
                "{} time segments (largest residual {:.1e} of {tolerance:.0e} allowed)",
                i.segments(),
                i.error()
            )
        };
        let normal =
            if iterates { format!("; its normal operator {}", text(&self.normal)) } else { String::new() };
        format!(
            "off-resonance: field map from {:.1} to {:.1} Hz, samples over {:.2} ms; encoding by {}{normal}",
            self.range[0],
            self.range[1],
            1e3 * self.duration,
            text(&self.encoding)
        )
    }
}

/// Plans of time segments.
pub(super) struct OffResonance {
    times: Vec<f64>,
    range: [f64; 2],
    interpolators: Interpolators,
    segments: Segments<f32>,
    field: Arc<Array<f32>>,
    /// The kernels of T_l.
    kernels: Option<Arc<Series<f32>>>,
}

impl OffResonance {
    fn kernels(&self) -> Result<Arc<Series<f32>>> {
        self.kernels.clone().ok_or_else(|| missing("Toeplitz kernels of an inhomogeneous field"))
    }
}

impl Modulated for OffResonance {
    fn tolerance(settings: &Settings<'_>) -> f64 {
        settings.field_tolerance
    }

    fn has_normal(&self) -> bool {
        self.kernels.is_some()
    }

    fn plan_normal(
        &mut self,
        plan: &Transforms,
        resident: Option<usize>,
        make: MakeKernel<'_>,
    ) -> Result<()> {
        let normal = &self.interpolators.normal;
        let table = normal.table(&self.times)?;
        let mut made = Series::new(plan.device(), plan.matrix(), normal.segments(), resident)?;
        for segment in 0..normal.segments() {
            let weights: Vec<f32> = table.real(segment).map(|w| w as f32).collect();
            made.push(make(Some(&weights))?)?;
        }
        self.kernels = Some(Arc::new(made));
        Ok(())
    }

    fn adjoint(&self, plan: &Transforms, samples: &Array<C32>, images: &mut Array<C32>) -> Result<()> {
        let mut image = Array::zeros(samples.device(), images.shape())?;
        let mut weighted = Array::zeros(samples.device(), samples.shape())?;
        let mut transform = |d: &Array<C32>, x: &mut Array<C32>| plan.adjoint(d, x);
        let work = Scratch { image: &mut image, samples: &mut weighted };
        self.segments.adjoint(&self.field, samples, images, work, &mut transform)
    }

    fn forward(&self, plan: &Transforms, images: &Array<C32>, samples: &mut Array<C32>) -> Result<()> {
        let mut image = Array::zeros(images.device(), images.shape())?;
        let mut weighted = Array::zeros(images.device(), samples.shape())?;
        let mut transform = |x: &Array<C32>, d: &mut Array<C32>| plan.forward(x, d);
        let work = Scratch { image: &mut image, samples: &mut weighted };
        self.segments.forward(&self.field, images, samples, work, &mut transform)
    }

    fn normal(&self, batch: &[usize]) -> Result<Arc<dyn LinearOp<C32>>> {
        let times = self.interpolators.normal.times();
        Ok(Arc::new(OffResonanceToeplitz::new(batch, &times, self.kernels()?, self.field.clone())?))
    }

    fn normal_of_coils(&self, maps: CoilMaps<f32>) -> Result<Arc<dyn LinearOp<C32>>> {
        let times = self.interpolators.normal.times();
        Ok(Arc::new(OffResonanceToeplitz::sense(maps, &times, self.kernels()?, self.field.clone())?))
    }

    fn exact<'e>(&'e self, plan: &'e Transforms) -> Result<Box<dyn Exact + 'e>> {
        let field = self.field.read()?.iter().map(|&f| f64::from(f)).collect();
        let (trajectory, matrix) = (plan.trajectory(), plan.matrix());
        Ok(Box::new(Sums { trajectory, matrix, times: &self.times, field }))
    }
}

/// The sums of A, with its phases at every sample.
struct Sums<'e> {
    trajectory: &'e Trajectory,
    matrix: &'e [usize],
    times: &'e [f64],
    field: Vec<f64>,
}

impl Exact for Sums<'_> {
    fn adjoint(&self, samples: &[C32], indices: &[usize]) -> Result<Vec<C64>> {
        reference::adjoint_at(self.trajectory, self.times, self.matrix, &self.field, samples, indices)
    }

    fn forward(&self, image: &[C32], indices: &[usize]) -> Result<Vec<C64>> {
        reference::forward_at(self.trajectory, self.times, self.matrix, &self.field, image, indices)
    }

    fn column(&self, from: usize, indices: &[usize]) -> Result<Vec<C64>> {
        let samples = reference::column(self.trajectory, self.times, self.matrix, &self.field, from)?;
        reference::adjoint_at(self.trajectory, self.times, self.matrix, &self.field, &samples, indices)
    }
}

/// Time segments of the normal operator of a frame in an inhomogeneous field; none of methods without it, and
/// of frames or maps that are refused.
fn normal_segments(frame: &Frame, settings: &Settings<'_>) -> Option<usize> {
    let map = settings.field_map.filter(|_| settings.uses.normal)?;
    let times = frame.times.as_ref()?;
    let taken: Vec<f64> = match &frame.samples {
        Samples::Cartesian { sampled, .. } => {
            sampled.iter().zip(times).filter(|(known, _)| **known).map(|(_, time)| *time).collect()
        }
        Samples::NonCartesian { .. } => times.clone(),
    };
    let interpolators = Interpolators::new(range_of(map), &taken, settings.field_tolerance).ok()?;
    Some(interpolators.normal.segments())
}

/// The lowest and the highest value of a field map.
pub(crate) fn range_of(map: &ArrayD<f32>) -> [f64; 2] {
    let low = map.iter().copied().fold(f32::INFINITY, f32::min);
    let high = map.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    [f64::from(low), f64::from(high)]
}

/// `[z, y, x]` or `[y, x]` as the matrix has it: leading axes of one voxel may be missing or there.
fn of_matrix<'a>(map: &'a ArrayD<f32>, matrix: &[usize]) -> Result<ArrayViewD<'a, f32>> {
    let mut view = map.view();
    while view.ndim() > matrix.len() && view.shape()[0] == 1 {
        view.index_axis_inplace(Axis(0), 0);
    }
    while view.ndim() < matrix.len() && matrix[matrix.len() - view.ndim() - 1] == 1 {
        view.insert_axis_inplace(Axis(0));
    }
    expect_shape("field map", matrix, view.shape())?;
    Ok(view)
}

/// The times of the frame's samples. Fails if the frame holds none, or not one for each of the `places`.
fn expect_times(times: Option<&[f64]>, places: usize) -> Result<&[f64]> {
    let times = times.ok_or_else(|| {
        let expected = "those of a scan that states its dwell time (ISMRMRD)";
        Error::value("times of the samples, which a field map needs", expected, "none")
    })?;
    expect_shape("times of the samples", &[places], &[times.len()])?;
    Ok(times)
}

/// Points, and a grid that is larger than the image.
#[cfg(test)]
fn examples(draw: &mut super::tests::Draw) -> Vec<super::tests::Example> {
    use super::tests::{Example, options, places_of, rows, waves};
    use crate::recon::ReconOptions;
    let (matrix, grid) = (vec![6, 5], vec![7, 9]);
    let (points, trajectory) = draw.points(&matrix, 33);
    let of_grid = draw.grid(&matrix, &grid);
    let Samples::Cartesian { sampled, .. } = &of_grid.samples else { unreachable!("a grid") };
    let measured = places_of(&grid).into_iter().zip(sampled).filter(|(_, known)| **known);
    let ratio = |component: usize| matrix[1 - component] as f64 / grid[1 - component] as f64;
    let measured = measured.map(|(place, _)| vec![place[0] * ratio(0), place[1] * ratio(1)]).collect();
    let known: Vec<bool> = sampled.iter().copied().collect();
    let cases = [(points, rows(&trajectory), vec![true; 33]), (of_grid, measured, known)];
    let example = |(mut frame, places, known): (Frame, Vec<Vec<f64>>, Vec<bool>)| {
        let map = ArrayD::from_shape_fn(matrix.clone(), |_| draw.real(-60.0, 90.0) as f32);
        let times: Vec<f64> = known.iter().map(|_| draw.real(2e-3, 9e-3)).collect();
        let mut waves = waves(&places, &matrix);
        let taken = times.iter().zip(&known).filter(|(_, known)| **known).map(|(time, _)| *time);
        for (mut row, time) in waves.outer_iter_mut().zip(taken) {
            let phase = |f: &f32| C64::cis(-std::f64::consts::TAU * f64::from(*f) * time);
            row.iter_mut().zip(&map).for_each(|(wave, f)| *wave *= phase(f));
        }
        frame.times = Some(times);
        let options = ReconOptions { field_map: Some(Arc::new(map)), ..options() };
        let scale = matrix.iter().product::<usize>() as f64;
        Example { frame, of_frames: None, options, matrix: waves, scale }
    };
    cases.into_iter().map(example).collect()
}
