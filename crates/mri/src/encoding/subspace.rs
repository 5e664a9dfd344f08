//! Encoding over a temporal subspace: the frames of a series are sums of k coefficient images.
//!
//! ```text
//! d_f = F_f S x_f,   x_f = Σ_i Φ_fi c_i   ⇒   A c = Σ_i diag(Φ_i(m)) F S c_i
//! (Aᴴd)_i = Sᴴ Fᴴ diag(conj Φ_i(m)) d,        (AᴴA)_ij = Sᴴ T_ij S,   T_ij = Fᴴ diag(conj Φ_i Φ_j) F
//! ```
//!
//! All frames are one set of points m, and Φ_i(m) is the row of the point's frame. So one plan serves all
//! frames, and A takes k transforms of all points instead of one transform for each frame. AᴴA is a k × k
//! block Toeplitz matrix without weights of density. Its blocks are sums of convolutions with real spectra
//! ([`SubspaceToeplitz`]): k(k + 1)/2 of them, or k² where Φ is complex. A GPU may hold some of the spectra
//! ([`BatchSizes::segments`](crate::recon::BatchSizes::segments)); the others are copied from the host one
//! after another.
//!
//! Frames on a grid are points at their measured places.
//!
//! Tamir et al., *T2 shuffling: sharp, multicontrast, volumetric fast spin-echo imaging*, Magn Reson Med
//! 77:180, 2017.

use std::sync::{Arc, OnceLock};

use ndarray::{Array2, ArrayView2, Axis, concatenate, s};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, C64, Error, Result, Trajectory, expect_shape};
use rayspin_device::{Array, Device};
use rayspin_kernels::toeplitz::{Series, Toeplitz};
use rayspin_kernels::{nudft, vector};
use rayspin_linop::{CoilMaps, LinearOp, SubspaceToeplitz, batches};
use rayspin_run::{Bytes, Certify, Memory, Needs, draws, errors};

use super::blocks::Transforms;
use super::certify::{COLUMNS, displacement};
use super::plans::Plans;
use super::samples::CoilSamples;
use super::solving::Solving;
use super::spec::Spec;
use super::{COMPLEX, off_resonance};
use crate::basis::Basis;
use crate::recon::Certificate;
use crate::scan::{Frame, Samples};

/// The largest weight of a convolution that cancelled, relative to the largest of all.
const CANCELLED: f64 = 1e-9;

/// The frames that points are of.
pub(super) struct Frames<'a> {
    pub(super) basis: &'a Arc<Basis>,
    /// The number of points of each frame, in the order of the points.
    pub(super) samples: &'a [usize],
}

impl<'a> Frames<'a> {
    /// Errors: another number of frames than the basis has.
    pub(super) fn new(basis: &'a Arc<Basis>, samples: &'a [usize]) -> Result<Self> {
        basis.expect_frames(samples.len())?;
        Ok(Self { basis, samples })
    }

    /// What the tables of Φ take.
    pub(super) fn needs(&self, spec: &Spec<'_>) -> Needs {
        let one = COMPLEX * self.samples.iter().map(|&n| n as u64).sum::<u64>();
        let held = spec.arrays(one * self.basis.coefficients() as u64);
        Needs::of(Memory::temporary(Bytes::host(one)).holding(held))
    }
}

/// Gives the first of several frames with the same points the sum of their weights, `[q, frame]`, and the
/// others none. Orthogonal columns of Φ cancel there exactly: of weights that cancel in a transform, rounding
/// is left, which is no Hermitian kernel.
fn add_at_same_points(weights: &mut Array2<f64>, trajectory: &Trajectory, samples: &[usize]) {
    let points = trajectory.points();
    let largest = weights.iter().fold(0.0, |most: f64, weight| most.max(weight.abs()));
    let mut start = 0;
    let mut firsts: Vec<(usize, ArrayView2<'_, f64>)> = Vec::new();
    for (frame, &count) in samples.iter().enumerate() {
        let own = points.slice(s![start..start + count, ..]);
        start += count;
        let Some(&(first, _)) = firsts.iter().find(|(_, points)| *points == own) else {
            firsts.push((frame, own));
            continue;
        };
        for mut row in weights.rows_mut() {
            row[first] += row[frame];
            row[frame] = 0.0;
        }
    }
    for mut row in weights.rows_mut() {
        let most = row.iter().fold(0.0, |most: f64, weight| most.max(weight.abs()));
        // What rounding leaves of a sum that is 0.
        if most < CANCELLED * largest {
            row.fill(0.0);
        }
    }
}

/// Φ at the points, and the convolutions of AᴴA.
pub(super) struct Subspace {
    basis: Arc<Basis>,
    samples: Vec<usize>,
    /// Φ_i(m), `[sample]` for each i.
    columns: Vec<Array<C32>>,
    kernels: OnceLock<Arc<Series<f32>>>,
}

impl Subspace {
    /// Copies Φ to the device, a row for each point. Errors: memory.
    pub(super) fn new(device: &Device, frames: &Frames<'_>) -> Result<Self> {
        let (basis, samples) = (frames.basis.clone(), frames.samples.to_vec());
        let columns = (0..basis.coefficients()).map(|i| {
            let of_frame = |f: usize| {
                let value = basis.matrix()[[f, i]];
                C32::new(value.re as f32, value.im as f32)
            };
            let values: Vec<C32> = at_points(&samples, of_frame).collect();
            Array::from_vec(device, &[values.len()], values)
        });
        let columns = columns.collect::<Result<_>>()?;
        Ok(Self { basis, samples, columns, kernels: OnceLock::new() })
    }

    /// Whether this is Φ at the points of other frames.
    pub(super) fn fits(&self, frames: &Frames<'_>) -> bool {
        self.samples[..] == *frames.samples && self.basis == *frames.basis
    }

    /// Makes the convolutions at the points, each by `make` from its weights. A GPU holds `resident` of their
    /// spectra.
    pub(super) fn plan_normal(
        &self,
        plan: &Transforms,
        trajectory: &Trajectory,
        resident: Option<usize>,
        mut make: impl FnMut(&[f32]) -> Result<Toeplitz<f32>>,
    ) -> Result<()> {
        let mut weights = SubspaceToeplitz::<f32>::weights(self.basis.matrix());
        add_at_same_points(&mut weights, trajectory, &self.samples);
        let mut made = Series::new(plan.device(), plan.matrix(), weights.nrows(), resident)?;
        for row in weights.rows() {
            let of_samples: Vec<f32> = at_points(&self.samples, |f| row[f] as f32).collect();
            made.push(make(&of_samples)?)?;
        }
        let _ = self.kernels.set(Arc::new(made));
        Ok(())
    }

    /// AᴴA, with sensitivities or without.
    pub(super) fn normal(&self, maps: Option<CoilMaps<f32>>) -> Result<Arc<dyn LinearOp<C32>>> {
        let missing = || Error::Numerical {
            what: "Toeplitz kernels of a temporal subspace".into(),
            detail: "not planned for this method".into(),
        };
        let kernels = self.kernels.get().cloned().ok_or_else(missing)?;
        Ok(Arc::new(SubspaceToeplitz::new(self.basis.coefficients(), kernels, maps)?))
    }

    /// Fᴴ diag(conj Φ_i) of `[batch.., sample]`; `weighted` is an array to work in.
    fn adjoint(
        &self,
        i: usize,
        plans: &Plans,
        samples: &Array<C32>,
        weighted: &mut Array<C32>,
        images: &mut Array<C32>,
    ) -> Result<()> {
        vector::multiply_conj(&self.columns[i], samples, weighted)?;
        plans.adjoint(weighted, images)
    }

    /// Σ_i diag(Φ_i) F c_i of one coil's coefficients `[coefficient, matrix…]`.
    fn forward(&self, plans: &Plans, images: &Array<C32>) -> Result<Array<C32>> {
        let (device, points) = (images.device(), self.columns[0].len());
        let mut image = Array::zeros(device, &images.shape()[1..])?;
        let mut sum = Array::zeros(device, &[points])?;
        let (mut seen, mut weighted) = (Array::zeros(device, &[points])?, Array::zeros(device, &[points])?);
        let n = image.len();
        for (i, column) in self.columns.iter().enumerate() {
            vector::copy_part(images, i * n, &mut image, 0, n)?;
            plans.forward(&image, &mut seen)?;
            vector::multiply(column, &seen, &mut weighted)?;
            vector::axpy(1.0.into(), &weighted, &mut sum)?;
        }
        Ok(sum)
    }

    /// A number for each point, of its frame.
    fn exact(&self, of_frame: impl Fn(usize) -> C64) -> Vec<C64> {
        at_points(&self.samples, of_frame).collect()
    }

    /// Random outputs of Aᴴ on one coil's samples, of A on what that gives, and of AᴴA on single voxels of
    /// single coefficients, against the exact sums over the points of all frames. The bounds are those of a
    /// single frame: the transforms are linear in Φ.
    pub(super) fn certificates(
        &self,
        Certify { outputs, seed }: Certify,
        (plans, tolerance): (&Plans, f64),
        data: &CoilSamples<'_>,
    ) -> Result<Vec<Certificate>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (device, matrix, trajectory) = (data.device(), plans.matrix()?, plans.trajectory()?);
        let (voxels, k) = (matrix.iter().product::<usize>(), self.basis.coefficients());
        let phi = self.basis.matrix();
        let coil = rng.random_range(0..data.coils());
        let samples = data.part(&(coil..coil + 1))?.reshape(&[trajectory.samples()])?;
        let mut coefficients = Array::zeros(device, &[&[k], matrix].concat())?;
        let mut image = Array::zeros(device, matrix)?;
        let mut weighted = Array::zeros(device, samples.shape())?;
        for i in 0..k {
            self.adjoint(i, plans, &samples, &mut weighted, &mut image)?;
            vector::copy_part(&image, 0, &mut coefficients, i * voxels, voxels)?;
        }
        let values = samples.read()?.to_vec();
        let indices = draws(&mut rng, outputs, k * voxels);
        let exact = each_coefficient(&indices, voxels, |i, at| {
            let row = self.exact(|f| phi[[f, i]].conj());
            let of_points: Vec<C64> = row.iter().zip(&values).map(|(phi, d)| phi * wide(*d)).collect();
            nudft::reference::adjoint_at(trajectory, matrix, &of_points, at)
        })?;
        let found = errors(&coefficients.read()?, &exact, &indices);
        let mut all = vec![Certificate::new("subspace adjoint", k * voxels, &found, tolerance)];

        let seen = self.forward(plans, &coefficients)?;
        let indices = draws(&mut rng, outputs, trajectory.samples());
        let mut exact = vec![C64::ZERO; indices.len()];
        let images = coefficients.read()?.to_vec();
        for (i, image) in images.chunks_exact(voxels).enumerate() {
            let row = self.exact(|f| phi[[f, i]]);
            let part = nudft::reference::forward_at(trajectory, matrix, image, &indices)?;
            exact.iter_mut().zip(&part).zip(&indices).for_each(|((sum, part), &m)| *sum += row[m] * part);
        }
        let found = errors(&seen.read()?, &exact, &indices);
        all.push(Certificate::new("subspace forward", trajectory.samples(), &found, tolerance));

        let normal = self.normal(None)?;
        let (mut found, mut columns) =
            (Vec::with_capacity(outputs), Array::zeros(device, coefficients.shape())?);
        let count = COLUMNS.min(outputs);
        for part in 0..count {
            let from = rng.random_range(0..k * voxels);
            coefficients.fill(C32::ZERO)?;
            coefficients.update(|images| images[from] = C32::ONE)?;
            normal.forward_into(&coefficients, &mut columns)?;
            let indices = draws(&mut rng, (outputs + part) / count, k * voxels);
            let exact = each_coefficient(&indices, voxels, |i, at| {
                let displaced: Vec<usize> =
                    at.iter().map(|&to| displacement(matrix, from % voxels, to)).collect();
                let products = self.exact(|f| phi[[f, i]].conj() * phi[[f, from / voxels]]);
                let sums = |of: fn(&C64) -> f64| {
                    let weights: Vec<f64> = products.iter().map(of).collect();
                    nudft::reference::q_at(trajectory, matrix, Some(&weights[..]), &displaced)
                };
                let (real, imaginary) = (sums(|v| v.re)?, sums(|v| v.im)?);
                Ok(real.iter().zip(&imaginary).map(|(re, im)| re + C64::I * im).collect())
            })?;
            found.extend(errors(&columns.read()?, &exact, &indices));
        }
        let population = count * k * voxels;
        all.push(Certificate::new("subspace Toeplitz normal operator", population, &found, 2.0 * tolerance));
        Ok(all)
    }
}

fn wide(value: C32) -> C64 {
    C64::new(value.re.into(), value.im.into())
}

/// A value of each frame at each of its points.
fn at_points<'a, T: Clone + 'a>(
    samples: &'a [usize],
    of_frame: impl Fn(usize) -> T + 'a,
) -> impl Iterator<Item = T> + 'a {
    samples.iter().enumerate().flat_map(move |(f, &count)| std::iter::repeat_n(of_frame(f), count))
}

/// Values at indices into `[coefficient, voxel]`, in their order: `of` gives those of one coefficient at its
/// voxels.
fn each_coefficient(
    indices: &[usize],
    voxels: usize,
    mut of: impl FnMut(usize, &[usize]) -> Result<Vec<C64>>,
) -> Result<Vec<C64>> {
    let mut all = vec![C64::ZERO; indices.len()];
    let last = indices.iter().map(|index| index / voxels).max().unwrap_or(0);
    for i in 0..=last {
        let own: Vec<usize> = (0..indices.len()).filter(|&at| indices[at] / voxels == i).collect();
        let at: Vec<usize> = own.iter().map(|&at| indices[at] % voxels).collect();
        own.iter().zip(of(i, &at)?).for_each(|(&at, value)| all[at] = value);
    }
    Ok(all)
}

/// Aᴴd, `[coefficient, image…]`, some coils at a time; the samples are taken.
pub(super) fn right_hand_side(
    state: &mut Solving<'_>,
    spec: &Spec<'_>,
    maps: &CoilMaps<f32>,
) -> Result<Array<C32>> {
    let (device, k) = (spec.device(), spec.coefficients().unwrap_or(1));
    let mut all = Array::zeros(device, &[&[k], spec.domain()].concat())?;
    let mut one = Array::zeros(device, spec.domain())?;
    let voxels = one.len();
    for range in batches(spec.coils(), spec.batch_sizes().coils) {
        let samples = state.take_samples(&range)?;
        let plans = state.plans()?;
        let mut weighted = Array::zeros(device, samples.shape())?;
        let mut images = Array::zeros(device, &[&[range.len()], spec.domain()].concat())?;
        for i in 0..k {
            plans.subspace()?.adjoint(i, plans, &samples, &mut weighted, &mut images)?;
            one.fill(C32::ZERO)?;
            maps.combine_add(range.clone(), &images, &mut one)?;
            vector::add_part(&one, &mut all, i * voxels)?;
        }
    }
    Ok(all)
}

/// The frames of a series as one frame of points, and the number of points of each. Frames are given up one
/// after another.
///
/// Errors: no frame; frames of other matrices or numbers of coils than the first one's; memory.
pub(crate) fn joined(frames: Vec<Frame>) -> Result<(Frame, Vec<usize>)> {
    let Some(first) = frames.first() else { return Err(Error::value("frames", "at least one", 0)) };
    let (label, matrix, geometry, coils) = (first.label, first.matrix.clone(), first.geometry, first.coils());
    let samples: Vec<usize> = frames.iter().map(measured).collect();
    let count: usize = samples.iter().sum();
    let mut points = Vec::with_capacity(frames.len());
    let mut data = Array2::zeros((coils, count));
    let mut at = 0;
    for frame in frames {
        if frame.matrix != matrix {
            return Err(Error::value("frames of a series", "one matrix throughout", "different matrices"));
        }
        expect_shape("coils of a frame of the series", &[coils], &[frame.coils()])?;
        let (trajectory, values) = match frame.samples {
            Samples::NonCartesian { trajectory, data } => (trajectory, data),
            Samples::Cartesian { kspace, sampled } => {
                let (places, trajectory) = off_resonance::places_of_grid(&sampled, &matrix)?;
                (trajectory, off_resonance::values_at(&kspace, &places))
            }
        };
        data.slice_mut(s![.., at..at + values.ncols()]).assign(&values);
        at += values.ncols();
        points.push(trajectory);
    }
    let views: Vec<_> = points.iter().map(Trajectory::points).collect();
    let all = concatenate(Axis(0), &views).map_err(|_| {
        Error::value("frames of a series", "points of as many dimensions", "different numbers")
    })?;
    let trajectory = Trajectory::from_cycles_per_fov(all)?;
    let joined = Samples::NonCartesian { trajectory, data };
    Ok((Frame { label, matrix, geometry, samples: joined, times: None, calibration: None }, samples))
}

/// What a run says of frames that are [`joined`].
pub(crate) fn notes_of_joined(frames: &[Frame]) -> Vec<String> {
    let mut notes = Vec::new();
    if frames.iter().any(|frame| matches!(frame.samples, Samples::Cartesian { .. })) {
        let text = "temporal subspace: lines of the grid are encoded as points at their places, by a NUFFT";
        notes.push(text.to_owned());
    }
    if frames.iter().any(|frame| frame.calibration.is_some()) {
        let text = "calibration lines apart from the images are not used with a temporal basis: sensitivities \
                    come from the samples of all frames (--maps overrides)";
        notes.push(text.to_owned());
    }
    notes
}

/// `count` frames that are measured as this one, [`joined`], with values of 0, which take no memory until
/// something reads them: for plans, where the other frames are not known.
pub(crate) fn repeated(frame: &Frame, count: usize) -> Result<(Frame, Vec<usize>)> {
    let trajectory = match &frame.samples {
        Samples::NonCartesian { trajectory, .. } => trajectory.clone(),
        Samples::Cartesian { sampled, .. } => off_resonance::places_of_grid(sampled, &frame.matrix)?.1,
    };
    let samples = trajectory.samples();
    let views = vec![trajectory.points(); count];
    let all = concatenate(Axis(0), &views)
        .map_err(|_| Error::value("frames of a series", "at least one", count))?;
    let data = Array2::zeros((frame.coils(), samples * count));
    let joined = Samples::NonCartesian { trajectory: Trajectory::from_cycles_per_fov(all)?, data };
    let (label, matrix, geometry) = (frame.label, frame.matrix.clone(), frame.geometry);
    let joined = Frame { label, matrix, geometry, samples: joined, times: None, calibration: None };
    Ok((joined, vec![samples; count]))
}

/// The number of samples of a coil that a frame holds.
pub(crate) fn measured(frame: &Frame) -> usize {
    match &frame.samples {
        Samples::NonCartesian { trajectory, .. } => trajectory.samples(),
        Samples::Cartesian { sampled, .. } => sampled.iter().filter(|known| **known).count(),
    }
}

#[cfg(test)]
mod tests;
