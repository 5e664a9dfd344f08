//! Filtered back-projection of parallel rays through Fourier space.

use std::f64::consts::TAU;
use std::ops::Range;

use ndarray::Array2;
use rayon::prelude::*;
use rayspin_core::{C32, C64, Error, Result, Trajectory, expect_len, voxels};
use rayspin_device::cpu::{try_with_capacity, zeroed};
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::nufft::{self, Nufft};
use rayspin_kernels::row_filter::spectrum;
use rayspin_kernels::vector;

use super::extend::VIEWS;
use super::{Ends, Filter, FilteredBackprojection, ramp};

/// Filtered back-projection of parallel rays by a non-uniform Fourier transform.
///
/// ```text
/// f(x) = Σ_v Δθ_v Σ_m Q_v(m) exp(i2π m s_v(x)/L),   Q_v = H DFT(w p_v)
/// ```
///
/// with the symbols of [`FilteredBackprojection`], H the spectrum of the ramp over L pixels, at least twice
/// as many as a row has, and s_v(x) the column on which a voxel falls. Each view is a line through the
/// volume's Fourier space, and the sum over views and frequencies is a transform of type 1. It needs V N log
/// N + N² log N operations for N² voxels, back-projection V N². Projections are sinc-interpolated between
/// pixels, and linearly between rows. The highest frequency is left out.
///
/// ```
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry, VolumeGrid};
/// use rayspin_ct::analytic::{Filter, FourierBackprojection};
/// use rayspin_ct::phantom::{Form, Phantom, Solid};
/// use rayspin_device::Device;
///
/// let device = Device::cpu()?;
/// let detector = Detector { rows: 1, columns: 64, pitch_mm: [1.0, 1.0], radius_mm: None };
/// let orbit = Orbit::default().arc(0.0, std::f64::consts::PI, 90);
/// let geometry = ProjectionGeometry::orbit(detector, &orbit)?;
/// let grid = VolumeGrid::new([1, 64, 64], [1.0; 3], [0.0; 3])?;
/// let rod = Phantom::new(vec![Solid::new(Form::Cylinder, [0.0; 3], [20.0, 20.0, 1e3], 0.02)])?;
/// let lines = rod.project(device.cpu_side(), &geometry)?;
/// let method = FourierBackprojection::new(&device, &geometry, &grid, Filter::default(), 1e-4)?;
/// let slice = method.slices(&lines, 0..1)?;
/// assert!((slice[32 * 64 + 32] - 0.02).abs() < 5e-4); // 1/mm
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct FourierBackprojection {
    rows: FilteredBackprojection,
    fft: Fft<f32>,
    nufft: Nufft<f32>,
    /// The filter, Δθ and the place of the axis `[view, frequency]`.
    factors: Array<C32>,
    /// w of `[view, column]`.
    weights: Vec<f32>,
}

impl FourierBackprojection {
    /// A method for the rays of a scan and the voxels of a grid. `tolerance` is the relative error of the
    /// transform.
    ///
    /// Errors: rays that are not parallel; as [`FilteredBackprojection::new`]; a tolerance out of range;
    /// memory.
    pub fn new(
        device: &Device,
        geometry: &rayspin_core::ProjectionGeometry,
        grid: &rayspin_core::VolumeGrid,
        filter: Filter,
        tolerance: f64,
    ) -> Result<Self> {
        // Weights, margins and views are the same as in back-projection.
        let rows = FilteredBackprojection::new(&device.host(), geometry, grid, filter)?;
        let points = Self::points(geometry, grid, rows.length())?;
        let [_, ny, nx] = grid.shape_zyx();
        let nufft = Nufft::new(device, &points, &[ny, nx], &nufft::Options::tolerance(tolerance))?;
        let fft = Fft::new(device, &[rows.length()], Norm::None)?;
        let factors = Array::from_vec(device, &[points.samples()], rows.factors(filter)?)?;
        let columns = geometry.detector().columns;
        let factor = |index: usize| rows.weight(index / columns, index % columns + rows.margins[0]) as f32;
        let count = voxels(&[rows.positions.len(), columns])?;
        let mut weights = try_with_capacity("weights", count)?;
        weights.extend((0..count).map(factor));
        Ok(Self { rows, fft, nufft, factors, weights })
    }

    /// The frequencies of the rows of all views, in cycles over the volume's width.
    ///
    /// Errors: rays that are not parallel; memory.
    pub(crate) fn points(
        geometry: &rayspin_core::ProjectionGeometry,
        grid: &rayspin_core::VolumeGrid,
        length: usize,
    ) -> Result<Trajectory> {
        if !geometry.is_parallel() {
            return Err(Error::value(
                "rays of a reconstruction through Fourier space",
                "parallel ones",
                "a fan or a cone",
            ));
        }
        let ([nx, ny, _], spacing, pitch) =
            (grid.shape_xyz(), grid.spacing_mm(), geometry.detector().pitch_mm[0]);
        let count = voxels(&[geometry.views().len(), length, 2])? / 2;
        let mut points = try_with_capacity("frequencies", 2 * count)?;
        for view in geometry.views() {
            for m in 0..length {
                let frequency = (m as f64 - (length / 2) as f64) / (length as f64 * pitch);
                points.push(frequency * view.u[0] * spacing[0] * nx as f64);
                points.push(frequency * view.u[1] * spacing[1] * ny as f64);
            }
        }
        let points = Array2::from_shape_vec((count, 2), points)
            .map_err(|e| Error::value("frequencies", "two for each point", e))?;
        Trajectory::from_cycles_per_fov(points)
    }

    /// What was assumed about the scan, for people.
    pub fn notes(&self) -> &[String] {
        self.rows.notes()
    }

    /// The slices `planes` of the volume, `[z, y, x]` in C order, of line integrals `[view, row, column]`.
    ///
    /// Errors: another number of line integrals; slices beyond the volume; memory.
    pub fn slices(&self, lines: &[f32], planes: Range<usize>) -> Result<Vec<f32>> {
        let ends = self.ends(lines)?;
        Ok(self.watched_slices(lines, planes, &[], &ends)?.0)
    }

    /// The radius around the axis within which each voxel gets all rays that it needs, mm.
    pub(crate) fn seen_radius_mm(&self) -> f64 {
        self.rows.seen_radius_mm()
    }

    /// The ends of rows that go on beyond the detector.
    ///
    /// Errors: another number of line integrals.
    pub(crate) fn ends(&self, lines: &[f32]) -> Result<Ends> {
        self.rows.ends(lines, 0..self.rows.positions.len())
    }

    /// The same, and the exact sums at some voxels of these slices, given by their index in the volume.
    pub(crate) fn watched_slices(
        &self,
        lines: &[f32],
        planes: Range<usize>,
        watched: &[usize],
        ends: &Ends,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        let [_, ny, nx] = self.rows.grid.shape_zyx();
        expect_len("projections", &self.rows.measured.shape(), lines.len())?;
        self.rows.grid.slab(planes.start, planes.len())?;
        let mut volume = zeroed("volume", voxels(&[planes.len(), ny, nx])?)?;
        let mut exact = vec![0.0; watched.len()];
        let device = self.nufft.device();
        let mut image = Array::zeros(device, &[ny, nx])?;
        // Two slices are the real and the imaginary part of one image: a ramp treats both alike.
        for (pair, to) in volume.chunks_mut(2 * ny * nx).enumerate() {
            let first = planes.start + 2 * pair;
            let pair = [first, if first + 1 < planes.end { first + 1 } else { first }];
            let shape = [self.rows.positions.len(), self.rows.length()];
            let mut rows = Array::from_vec(device, &shape, self.packed(lines, pair)?)?;
            self.fft.forward(&mut rows)?;
            let rows = rows.reshape(&[self.nufft.samples()])?;
            let mut samples = Array::zeros(device, &[self.nufft.samples()])?;
            vector::multiply(&self.factors, &rows, &mut samples)?;
            drop(rows);
            if ends.count() != [0, 0] {
                let added = self.extensions(ends, pair)?.into_device(device)?;
                vector::axpy(1.0.into(), &added.reshape(&[self.nufft.samples()])?, &mut samples)?;
            }
            self.nufft.adjoint(&samples, &mut image)?;
            let (low, high) = to.split_at_mut(ny * nx);
            let values = image.read()?;
            low.iter_mut().zip(values.iter()).for_each(|(to, value): (_, &C32)| *to = value.re);
            high.iter_mut().zip(values.iter()).for_each(|(to, value)| *to = value.im);
            let mine = |voxel: usize| voxel / (ny * nx) == first || voxel / (ny * nx) == first + 1;
            if watched.iter().any(|&voxel| mine(voxel)) {
                let samples = samples.read()?;
                for (exact, &voxel) in exact.iter_mut().zip(watched).filter(|(_, voxel)| mine(**voxel)) {
                    let sum = self.sum(&samples, voxel);
                    *exact = if voxel / (ny * nx) == first { sum.re } else { sum.im };
                }
            }
        }
        self.rows.clear_unseen(&mut volume);
        Ok((volume, exact))
    }

    /// The rows of the detector on both sides of a slice in a view, and their shares.
    fn between(&self, view: usize, slice: usize) -> impl Iterator<Item = (usize, f32)> + use<> {
        let (geometry, grid) = (&self.rows.measured, &self.rows.grid);
        let (detector, pose) = (geometry.detector(), &geometry.views()[view]);
        let (rows, z) = (detector.rows, grid.first_mm()[2] + slice as f64 * grid.spacing_mm()[2]);
        let row = (z - pose.detector_mm[2]) * pose.v[2] / detector.pitch_mm[1] + 0.5 * (rows as f64 - 1.0);
        let share = (row - row.floor()) as f32;
        [(row.floor(), 1.0 - share), (row.floor() + 1.0, share)]
            .into_iter()
            .filter(move |(row, share)| *row >= 0.0 && *row < rows as f64 && *share != 0.0)
            .map(|(row, share)| (row as usize, share))
    }

    /// The samples of what extensions of the rows of two slices add to filtered rows, on the host.
    fn extensions(&self, ends: &Ends, slices: [usize; 2]) -> Result<Array<C32>> {
        let (host, views, length) = (self.rows.device.host(), self.rows.positions.len(), self.rows.length());
        let mut added = zeroed("extensions of rows", voxels(&[views, length])?)?;
        let (before, columns) = (self.rows.before(), self.rows.widened.detector().columns);
        // The filtered row's first column is that many behind a padded row's first element.
        let front = before - self.rows.margins[0];
        let more = front.max(length - front - columns);
        let outlines = self.rows.outlines(more)?;
        for part in crate::solving::parts(views, VIEWS) {
            let wide = columns + 2 * more;
            let responses = self.rows.responses(&outlines, ends, 0, part.clone())?;
            let to = &mut added[part.start * length..part.end * length];
            host.cpu_side().run(|| {
                to.par_chunks_mut(length).enumerate().for_each(|(index, to)| {
                    let view = part.start + index;
                    for side in 0..2 {
                        let value = |slice| ends.value(view, side, self.between(view, slice));
                        let low = value(slices[0]);
                        let high = if slices[1] == slices[0] { 0.0 } else { value(slices[1]) };
                        let response = &responses[(2 * index + side) * wide + more - front..][..length];
                        let factor = C32::new(low, high);
                        to.iter_mut().zip(response).for_each(|(to, value)| *to += factor * *value);
                    }
                });
            });
        }
        let mut added = Array::from_vec(&host, &[views, length], added)?;
        Fft::new(&host, &[length], Norm::None)?.forward(&mut added)?;
        let values = added.cpu_mut();
        host.cpu_side().run(|| {
            values.par_chunks_mut(length).enumerate().for_each(|(view, row)| {
                let phases = self.rows.phases(view);
                row.iter_mut().zip(phases).for_each(|(value, phase)| {
                    let phase = phase / length as f64;
                    *value *= C32::new(phase.re as f32, phase.im as f32);
                });
                // The highest frequency, as the filter leaves it out.
                row[0] = C32::default();
            });
        });
        Ok(added)
    }

    /// Rows of two slices, weighted and in the middle of L zeros, one as real and one as imaginary part.
    fn packed(&self, lines: &[f32], slices: [usize; 2]) -> Result<Vec<C32>> {
        let (geometry, length) = (&self.rows.measured, self.rows.length());
        let [_, rows, columns] = geometry.shape();
        let mut packed = zeroed("rows of two slices", voxels(&[geometry.views().len(), length])?)?;
        let before = self.rows.before();
        self.rows.device.cpu_side().run(|| {
            packed.par_chunks_mut(length).enumerate().for_each(|(view, to)| {
                let weights = &self.weights[view * columns..(view + 1) * columns];
                let mut add = |slice: usize, part: fn(&mut C32) -> &mut f32| {
                    for (row, share) in self.between(view, slice) {
                        let from = &lines[(view * rows + row) * columns..][..columns];
                        let pairs = from.iter().zip(weights).zip(&mut to[before..]);
                        pairs.for_each(|((value, weight), to)| *part(to) += share * weight * value);
                    }
                };
                add(slices[0], |value| &mut value.re);
                if slices[1] != slices[0] {
                    add(slices[1], |value| &mut value.im);
                }
            });
        });
        Ok(packed)
    }

    /// The sum over all frequencies at a voxel, in f64; 0 where not all views see it.
    fn sum(&self, samples: &[C32], voxel: usize) -> C64 {
        let (grid, geometry, length) = (&self.rows.grid, &self.rows.measured, self.rows.length());
        let ([nx, ny, _], spacing, pitch) =
            (grid.shape_xyz(), grid.spacing_mm(), geometry.detector().pitch_mm[0]);
        let place = [voxel % nx, voxel / nx % ny];
        let [x, y] = [0, 1].map(|axis| grid.first_mm()[axis] + place[axis] as f64 * spacing[axis]);
        if x.hypot(y) > self.rows.seen_radius_mm() {
            return C64::default();
        }
        let from_middle =
            |axis: usize, n: usize| (place[axis] as f64 - (n / 2) as f64) * spacing[axis] / pitch;
        let (x, y) = (from_middle(0, nx), from_middle(1, ny));
        let of_view = |(view, values): (usize, &[C32])| -> C64 {
            let u = geometry.views()[view].u;
            let place = x * u[0] + y * u[1];
            let term = |(m, value): (usize, &C32)| {
                let turns = (m as f64 - (length / 2) as f64) / length as f64 * place;
                C64::new(value.re.into(), value.im.into()) * C64::cis(TAU * turns)
            };
            values.iter().enumerate().map(term).sum()
        };
        samples.chunks(length).enumerate().map(of_view).sum()
    }
}

impl FilteredBackprojection {
    /// L: pixels of a padded row.
    pub(crate) fn length(&self) -> usize {
        (2 * self.widened.detector().columns).next_power_of_two()
    }

    /// Zeros before a padded row's first measured pixel.
    fn before(&self) -> usize {
        (self.length() - self.measured.detector().columns) / 2
    }

    /// H(m) exp(i2π m (place of the volume's middle)/L) of every view and frequency.
    fn factors(&self, filter: Filter) -> Result<Vec<C32>> {
        let (length, detector) = (self.length(), self.measured.detector());
        let mut spectrum =
            spectrum(&ramp(self.widened.detector().columns, detector.pitch_mm[0]), length, |f| filter.at(f))?;
        spectrum[length / 2] = 0.0;
        let mut factors = try_with_capacity("factors", voxels(&[self.positions.len(), length])?)?;
        for view in 0..self.positions.len() {
            factors.extend(self.phases(view).enumerate().map(|(m, phase)| {
                let value = phase * f64::from(spectrum[(m + length / 2) % length]);
                C32::new(value.re as f32, value.im as f32)
            }));
        }
        Ok(factors)
    }

    /// exp(i2π m (place of the volume's middle)/L) of every frequency of a view.
    fn phases(&self, view: usize) -> impl Iterator<Item = C64> + use<> {
        let (length, detector, view) =
            (self.length(), self.measured.detector(), &self.measured.views()[view]);
        let ([nx, ny, _], first, spacing) =
            (self.grid.shape_xyz(), self.grid.first_mm(), self.grid.spacing_mm());
        let middle = [(0, nx), (1, ny)].map(|(axis, n)| first[axis] + (n / 2) as f64 * spacing[axis]);
        let along: f64 = (0..2).map(|axis| (middle[axis] - view.detector_mm[axis]) * view.u[axis]).sum();
        let column = along / detector.pitch_mm[0] + 0.5 * (detector.columns as f64 - 1.0);
        // From the element that the transform counts from.
        let place = column + self.before() as f64 - (length / 2) as f64;
        (0..length).map(move |m| {
            let frequency = m as f64 - (length / 2) as f64;
            C64::cis(TAU * frequency / length as f64 * place)
        })
    }
}
