//! Encoding while the field is inhomogeneous: plans of time segments, and grids as trajectories with times.

use std::sync::{Arc, OnceLock};

use ndarray::{Array2, ArrayD, Axis};
use rayspin_core::{C32, C64, Error, Result, Trajectory, expect_shape};
use rayspin_device::{Array, Device};
use rayspin_kernels::off_resonance::{Interpolator, Segments, reference};
use rayspin_kernels::toeplitz::{Series, Toeplitz};
use rayspin_linop::{CoilMaps, LinearOp, OffResonanceToeplitz};

use super::blocks::Transforms;
use super::points::Field;
use crate::recon::ReconOptions;
use crate::scan::{Frame, Samples};

/// The field of one frame, and when its samples are taken.
pub(super) struct DeviceField {
    times: Vec<f64>,
    /// The lowest and the highest frequency of all frames.
    range: [f64; 2],
    field: Array<f32>,
}

impl DeviceField {
    /// Copies a field map to the device. Errors: another matrix, memory.
    pub(super) fn new(device: &Device, field: &Field<'_>, matrix: &[usize]) -> Result<Self> {
        let map = Array::from_host(device, of_matrix(field.map, matrix)?)?;
        Ok(Self { times: field.times.to_vec(), range: field.range, field: map })
    }
}

/// The interpolators that an inhomogeneous field takes: of the encoding, and of its normal operator.
pub(crate) struct Interpolators {
    pub(crate) encoding: Interpolator,
    pub(crate) normal: Interpolator,
    duration: f64,
    range: [f64; 2],
}

impl Interpolators {
    /// For frequencies in `range` (Hz) and samples at `times` (s). Errors: as [`Interpolator::new`].
    pub(crate) fn new(range: [f64; 2], times: &[f64], tolerance: f64) -> Result<Self> {
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
        let of = |i: &Interpolator| {
            format!(
                "{} time segments (largest residual {:.1e} of {tolerance:.0e} allowed)",
                i.segments(),
                i.error()
            )
        };
        let normal =
            if iterates { format!("; its normal operator {}", of(&self.normal)) } else { String::new() };
        format!(
            "off-resonance: field map from {:.1} to {:.1} Hz, samples over {:.2} ms; encoding by {}{normal}",
            self.range[0],
            self.range[1],
            1e3 * self.duration,
            of(&self.encoding)
        )
    }
}

/// What a plan of a trajectory has besides where the field is inhomogeneous.
pub(super) struct OffResonance {
    times: Vec<f64>,
    range: [f64; 2],
    interpolators: Interpolators,
    segments: Segments<f32>,
    field: Arc<Array<f32>>,
    toeplitz: OnceLock<Arc<Series<f32>>>,
    note: String,
}

impl OffResonance {
    pub(super) fn new(device: &Device, field: DeviceField, tolerance: f64, iterates: bool) -> Result<Self> {
        let DeviceField { times, range, field } = field;
        let interpolators = Interpolators::new(range, &times, tolerance)?;
        let segments = Segments::new(device, &interpolators.encoding, &times)?;
        let note = interpolators.note(tolerance, iterates);
        let field = Arc::new(field);
        Ok(Self { times, range, interpolators, segments, field, toeplitz: OnceLock::new(), note })
    }

    /// Whether these are the plans of samples at the same times in fields of the same range.
    pub(super) fn fits(&self, field: &Field<'_>) -> bool {
        self.times[..] == field.times[..] && self.range == field.range
    }

    /// Takes the field of the next frame.
    pub(super) fn take_field(&mut self, field: DeviceField) {
        self.field = Arc::new(field.field);
    }

    pub(super) fn note(&self) -> &str {
        &self.note
    }

    /// Makes the convolutions T_l, each by `make` from its weights; of their spectra a GPU holds `resident`.
    pub(super) fn plan_normal(
        &self,
        resident: Option<usize>,
        mut make: impl FnMut(&[f32]) -> Result<Toeplitz<f32>>,
    ) -> Result<()> {
        let normal = &self.interpolators.normal;
        let table = normal.table(&self.times)?;
        let mut made = Series::new(self.field.device(), self.field.shape(), normal.segments(), resident)?;
        for segment in 0..normal.segments() {
            let weights: Vec<f32> = table.real(segment).map(|w| w as f32).collect();
            made.push(make(&weights)?)?;
        }
        let _ = self.toeplitz.set(Arc::new(made));
        Ok(())
    }

    pub(super) fn adjoint(
        &self,
        nufft: &Transforms,
        trajectory: &Trajectory,
        samples: &Array<C32>,
        images: &mut Array<C32>,
    ) -> Result<()> {
        let mut image = Array::zeros(samples.device(), images.shape())?;
        let mut weighted = Array::zeros(samples.device(), samples.shape())?;
        let mut transform = |d: &Array<C32>, x: &mut Array<C32>| nufft.adjoint(trajectory, d, x);
        let work = (&mut image, &mut weighted);
        self.segments.adjoint(&self.field, samples, images, work, &mut transform)
    }

    pub(super) fn forward(
        &self,
        nufft: &Transforms,
        trajectory: &Trajectory,
        images: &Array<C32>,
        samples: &mut Array<C32>,
    ) -> Result<()> {
        let mut image = Array::zeros(images.device(), images.shape())?;
        let mut weighted = Array::zeros(images.device(), samples.shape())?;
        let mut transform = |x: &Array<C32>, d: &mut Array<C32>| nufft.forward(trajectory, x, d);
        let work = (&mut image, &mut weighted);
        self.segments.forward(&self.field, images, samples, work, &mut transform)
    }

    /// EᴴE over leading axes `batch`.
    pub(super) fn normal(&self, batch: &[usize]) -> Result<Arc<dyn LinearOp<C32>>> {
        Ok(Arc::new(OffResonanceToeplitz::new(
            batch,
            &self.interpolators.normal.times(),
            self.convolutions()?,
            self.field.clone(),
        )?))
    }

    /// Σ_j c̄_j EᴴE c_j.
    pub(super) fn sense_normal(&self, maps: CoilMaps<f32>) -> Result<Arc<dyn LinearOp<C32>>> {
        Ok(Arc::new(OffResonanceToeplitz::sense(
            maps,
            &self.interpolators.normal.times(),
            self.convolutions()?,
            self.field.clone(),
        )?))
    }

    fn convolutions(&self) -> Result<Arc<Series<f32>>> {
        let missing = || Error::Numerical {
            what: "Toeplitz kernels of an inhomogeneous field".into(),
            detail: "not planned for this method".into(),
        };
        self.toeplitz.get().cloned().ok_or_else(missing)
    }

    /// Exact sums of the adjoint, of the encoding and of one column of its normal operator, for certificates.
    pub(super) fn exact(&self) -> Result<Exact<'_>> {
        let field = self.field.read()?.iter().map(|&f| f64::from(f)).collect();
        Ok(Exact { times: &self.times, field })
    }
}

/// The exact encoding in an inhomogeneous field.
pub(super) struct Exact<'a> {
    times: &'a [f64],
    field: Vec<f64>,
}

impl Exact<'_> {
    pub(super) fn adjoint(
        &self,
        trajectory: &Trajectory,
        matrix: &[usize],
        samples: &[C32],
        at: &[usize],
    ) -> Result<Vec<C64>> {
        reference::adjoint_at(trajectory, self.times, matrix, &self.field, samples, at)
    }

    pub(super) fn forward(
        &self,
        trajectory: &Trajectory,
        matrix: &[usize],
        image: &[C32],
        at: &[usize],
    ) -> Result<Vec<C64>> {
        reference::forward_at(trajectory, self.times, matrix, &self.field, image, at)
    }

    pub(super) fn column(
        &self,
        trajectory: &Trajectory,
        matrix: &[usize],
        from: usize,
        at: &[usize],
    ) -> Result<Vec<C64>> {
        let samples = reference::column(trajectory, self.times, matrix, &self.field, from)?;
        reference::adjoint_at(trajectory, self.times, matrix, &self.field, &samples, at)
    }
}

/// Time segments of the normal operator of a frame in an inhomogeneous field; none of methods without it, and of frames or maps that
/// are refused.
pub(crate) fn normal_segments(frame: &Frame, options: &ReconOptions) -> Option<usize> {
    let map = options.field_map.as_ref().filter(|_| options.method.uses().normal)?;
    let times = frame.times.as_ref()?;
    let taken: Vec<f64> = match &frame.samples {
        Samples::Cartesian { sampled, .. } => {
            sampled.iter().zip(times).filter(|(known, _)| **known).map(|(_, time)| *time).collect()
        }
        Samples::NonCartesian { .. } => times.clone(),
    };
    let found = Interpolators::new(range_of(map), &taken, options.field_tolerance).ok()?;
    Some(found.normal.segments())
}

/// The lowest and the highest value of a field map.
pub(crate) fn range_of(map: &ArrayD<f32>) -> [f64; 2] {
    let low = map.iter().copied().fold(f32::INFINITY, f32::min);
    let high = map.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    [f64::from(low), f64::from(high)]
}

/// `[z, y, x]` or `[y, x]` as the matrix has it: leading axes of one voxel may be missing or there.
fn of_matrix<'a>(map: &'a ArrayD<f32>, matrix: &[usize]) -> Result<ndarray::ArrayViewD<'a, f32>> {
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
pub(crate) fn expect_times(times: Option<&[f64]>, places: usize) -> Result<&[f64]> {
    let times = times.ok_or_else(|| {
        let expected = "those of a scan that states its dwell time (ISMRMRD)";
        Error::value("times of the samples, which a field map needs", expected, "none")
    })?;
    expect_shape("times of the samples", &[places], &[times.len()])?;
    Ok(times)
}

/// What was measured of a grid as a trajectory, and where it lies in the grid: in an inhomogeneous field no FFT is the encoding.
///
/// The grid has the image's voxels over a field of view that may be larger, so that its places are matrix/grid cycles per field
/// of view of the image apart.
pub(crate) fn places_of_grid(sampled: &ArrayD<bool>, matrix: &[usize]) -> Result<(Vec<usize>, Trajectory)> {
    let grid = sampled.shape();
    let places: Vec<usize> =
        sampled.iter().enumerate().filter(|(_, known)| **known).map(|(place, _)| place).collect();
    let points = Array2::from_shape_fn((places.len(), grid.len()), |(row, component)| {
        // Components are x, y, z and axes z, y, x.
        let axis = grid.len() - 1 - component;
        let below: usize = grid[axis + 1..].iter().product();
        let index = places[row] / below % grid[axis];
        (index as f64 - (grid[axis] / 2) as f64) * matrix[axis] as f64 / grid[axis] as f64
    });
    Ok((places, Trajectory::from_cycles_per_fov(points)?))
}

/// The samples `[coil, place]` of a grid.
pub(super) fn values_at(kspace: &ArrayD<C32>, places: &[usize]) -> Array2<C32> {
    let coils = kspace.shape()[0];
    let mut data = Array2::zeros((coils, places.len()));
    for (mut row, coil) in data.rows_mut().into_iter().zip(kspace.outer_iter()) {
        let coil = coil.as_standard_layout();
        let flat = coil.as_slice().unwrap_or_default();
        for (to, &place) in row.iter_mut().zip(places) {
            *to = flat[place];
        }
    }
    data
}
