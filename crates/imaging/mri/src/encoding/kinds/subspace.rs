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

use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array2, ArrayView2, s};
use rayspin_core::{C32, C64, Error, Result, Trajectory};
use rayspin_device::Array;
use rayspin_kernels::toeplitz::Series;
use rayspin_kernels::{nudft, vector};
use rayspin_linop::{CoilMaps, LinearOp, SubspaceToeplitz};
use rayspin_run::{Bytes, Cost, Memory};

use super::points::{Counts, MakeKernel, Modulated, Modulation, Points, missing};
use super::{EncodingSpec, Given, Row};
use crate::basis::Basis;
use crate::encoding::blocks::Transforms;
use crate::encoding::certify::{Exact, displacement};
use crate::encoding::joined::measured;
use crate::encoding::{COMPLEX, Extent, REAL, Settings, Spec};

pub(super) const ROW: Row = Row {
    encodes: |_, settings| settings.basis.is_some(),
    on_grid: false,
    place: "for a scan with a trajectory",
    spec,
    extent: |frame, settings| {
        let (frames, segments) = settings.basis.map_or((1, 0), |basis| (basis.frames(), basis.spectra()));
        Extent { segments, points: frames * measured(frame), subspace: true, ..Extent::default() }
    },
    #[cfg(test)]
    examples,
};

fn spec<'a>(given: &Given<'a>) -> Result<Box<dyn EncodingSpec + 'a>> {
    let Given { inputs, settings, .. } = given;
    // Frames that are not joined have no rows of a temporal basis.
    let unjoined = || {
        let expected = "the frames of a series joined, as reconstruct_frames and reconstruct_scan do";
        Error::value("temporal basis", expected, "a frame alone")
    };
    if settings.field_map.is_some() {
        return Err(Error::value("field map", "none with a temporal basis", "one"));
    }
    let basis = settings.basis.ok_or_else(|| Error::value("temporal basis", "one", "none"))?;
    let samples = inputs.samples_of_frames().ok_or_else(unjoined)?;
    let trajectory = inputs.expect_trajectory().map_err(|_| unjoined())?.clone();
    basis.expect_frames(samples.len())?;
    Ok(Box::new(Points::new(given, trajectory, Frames { basis, samples })))
}

/// The largest weight of a convolution that cancelled, relative to the largest of all.
const CANCELLED: f64 = 1e-9;

/// The frames that points are of.
pub(super) struct Frames<'a> {
    basis: &'a Arc<Basis>,
    /// The number of points of each frame, in the order of the points.
    samples: &'a [usize],
}

impl Modulation for Frames<'_> {
    type Plans = Subspace;
    const STEP: &'static str = "temporal subspace";

    fn coefficients(&self) -> Option<usize> {
        Some(self.basis.coefficients())
    }

    fn counts(&self, _: &Settings<'_>, samples: u64, _: u64) -> Result<Counts> {
        Ok(Counts {
            encodings: self.basis.coefficients() as u64,
            convolutions: self.basis.spectra() as u64,
            // The weighted samples.
            of_coil: COMPLEX * samples,
        })
    }

    fn table(&self, samples: u64, _: u64) -> u64 {
        REAL * samples
    }

    /// The tables of Φ.
    fn needs(&self, spec: &Spec<'_>, encodings: u64) -> Cost {
        let one = COMPLEX * self.samples.iter().map(|&n| n as u64).sum::<u64>();
        Cost::of(Memory::temporary(Bytes::host(one)).holding(spec.arrays(one * encodings)))
    }

    /// Copies Φ to the device, a row for each point. Errors: memory.
    fn plan(&self, spec: &Spec<'_>) -> Result<(Subspace, Vec<String>)> {
        let (basis, samples) = (self.basis.clone(), self.samples.to_vec());
        let columns = (0..basis.coefficients()).map(|i| {
            let of_frame = |f: usize| {
                let value = basis.matrix()[[f, i]];
                C32::new(value.re as f32, value.im as f32)
            };
            let values: Vec<C32> = at_points(&samples, of_frame).collect();
            Array::from_vec(spec.device(), &[values.len()], values)
        });
        let columns = columns.collect::<Result<_>>()?;
        let notes = basis.notes();
        Ok((Subspace { basis, samples, columns, kernels: None }, notes))
    }

    /// Φ at the points of the same frames.
    fn take_over(&self, _: &Spec<'_>, plans: &mut Subspace) -> Result<bool> {
        Ok(plans.samples[..] == *self.samples && plans.basis == *self.basis)
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
    kernels: Option<Arc<Series<f32>>>,
}

impl Subspace {
    /// Fᴴ diag(conj Φ_i) of `[batch.., sample]`; `weighted` is an array to work in.
    fn coefficient(
        &self,
        i: usize,
        plan: &Transforms,
        samples: &Array<C32>,
        weighted: &mut Array<C32>,
        images: &mut Array<C32>,
    ) -> Result<()> {
        vector::multiply_conj(&self.columns[i], samples, weighted)?;
        plan.adjoint(weighted, images)
    }

    /// AᴴA, with sensitivities or without.
    fn normal_seen(&self, maps: Option<CoilMaps<f32>>) -> Result<Arc<dyn LinearOp<C32>>> {
        let kernels =
            self.kernels.clone().ok_or_else(|| missing("Toeplitz kernels of a temporal subspace"))?;
        Ok(Arc::new(SubspaceToeplitz::new(self.basis.coefficients(), kernels, maps)?))
    }
}

impl Modulated for Subspace {
    const CERTIFICATES: [&'static str; 3] =
        ["subspace adjoint", "subspace forward", "subspace Toeplitz normal operator"];

    fn has_normal(&self) -> bool {
        self.kernels.is_some()
    }

    fn plan_normal(
        &mut self,
        plan: &Transforms,
        resident: Option<usize>,
        make: MakeKernel<'_>,
    ) -> Result<()> {
        let mut weights = SubspaceToeplitz::<f32>::weights(self.basis.matrix());
        add_at_same_points(&mut weights, plan.trajectory(), &self.samples);
        let mut made = Series::new(plan.device(), plan.matrix(), weights.nrows(), resident)?;
        for row in weights.rows() {
            let of_samples: Vec<f32> = at_points(&self.samples, |f| row[f] as f32).collect();
            made.push(make(Some(&of_samples))?)?;
        }
        self.kernels = Some(Arc::new(made));
        Ok(())
    }

    fn adjoint(&self, plan: &Transforms, samples: &Array<C32>, images: &mut Array<C32>) -> Result<()> {
        let leading = samples.shape().split_last().map_or(&[][..], |(_, leading)| leading);
        let mut weighted = Array::zeros(plan.device(), samples.shape())?;
        let mut one = Array::zeros(plan.device(), &[leading, plan.matrix()].concat())?;
        let (k, voxels) = (self.columns.len(), plan.matrix().iter().product::<usize>());
        for i in 0..k {
            self.coefficient(i, plan, samples, &mut weighted, &mut one)?;
            for item in 0..one.len() / voxels {
                vector::copy_part(&one, item * voxels, images, (item * k + i) * voxels, voxels)?;
            }
        }
        Ok(())
    }

    fn forward(&self, plan: &Transforms, image: &Array<C32>, samples: &mut Array<C32>) -> Result<()> {
        let device = plan.device();
        let mut one = Array::zeros(device, plan.matrix())?;
        let mut seen = Array::zeros(device, samples.shape())?;
        let mut weighted = Array::zeros(device, samples.shape())?;
        let n = one.len();
        samples.fill(C32::ZERO)?;
        for (i, column) in self.columns.iter().enumerate() {
            vector::copy_part(image, i * n, &mut one, 0, n)?;
            plan.forward(&one, &mut seen)?;
            vector::multiply(column, &seen, &mut weighted)?;
            vector::axpy(1.0.into(), &weighted, samples)?;
        }
        Ok(())
    }

    /// One coefficient after another: coil images of one are there at once.
    fn combine(
        &self,
        plan: &Transforms,
        samples: Array<C32>,
        maps: &CoilMaps<f32>,
        coils: Range<usize>,
        sum: &mut Array<C32>,
    ) -> Result<()> {
        let device = plan.device();
        let mut one = Array::zeros(device, plan.matrix())?;
        let mut weighted = Array::zeros(device, samples.shape())?;
        let mut images = Array::zeros(device, &[&[coils.len()], plan.matrix()].concat())?;
        let voxels = one.len();
        for i in 0..self.columns.len() {
            self.coefficient(i, plan, &samples, &mut weighted, &mut images)?;
            one.fill(C32::ZERO)?;
            maps.combine_add(coils.clone(), &images, &mut one)?;
            vector::add_part(&one, sum, i * voxels)?;
        }
        Ok(())
    }

    /// Errors: leading axes, for which there is no such operator.
    fn normal(&self, batch: &[usize]) -> Result<Arc<dyn LinearOp<C32>>> {
        match batch {
            [] => self.normal_seen(None),
            several => Err(Error::value("sets of maps", "1 with a temporal basis", several.len())),
        }
    }

    fn normal_of_coils(&self, maps: CoilMaps<f32>) -> Result<Arc<dyn LinearOp<C32>>> {
        self.normal_seen(Some(maps))
    }

    fn exact<'e>(&'e self, plan: &'e Transforms) -> Result<Box<dyn Exact + 'e>> {
        let (trajectory, matrix) = (plan.trajectory(), plan.matrix());
        let voxels = matrix.iter().product();
        Ok(Box::new(Sums { subspace: self, trajectory, matrix, voxels }))
    }
}

/// The sums of A over the points of all frames.
struct Sums<'e> {
    subspace: &'e Subspace,
    trajectory: &'e Trajectory,
    matrix: &'e [usize],
    voxels: usize,
}

impl Sums<'_> {
    /// A number for each point, of its frame.
    fn of_points(&self, of_frame: impl Fn(usize) -> C64) -> Vec<C64> {
        at_points(&self.subspace.samples, of_frame).collect()
    }
}

impl Exact for Sums<'_> {
    fn adjoint(&self, samples: &[C32], indices: &[usize]) -> Result<Vec<C64>> {
        let phi = self.subspace.basis.matrix();
        each_coefficient(indices, self.voxels, |i, voxels| {
            let row = self.of_points(|f| phi[[f, i]].conj());
            let of_points: Vec<C64> = row.iter().zip(samples).map(|(phi, d)| phi * wide(*d)).collect();
            nudft::reference::adjoint_at(self.trajectory, self.matrix, &of_points, voxels)
        })
    }

    fn forward(&self, image: &[C32], indices: &[usize]) -> Result<Vec<C64>> {
        let phi = self.subspace.basis.matrix();
        let mut exact = vec![C64::ZERO; indices.len()];
        for (i, image) in image.chunks_exact(self.voxels).enumerate() {
            let row = self.of_points(|f| phi[[f, i]]);
            let part = nudft::reference::forward_at(self.trajectory, self.matrix, image, indices)?;
            exact.iter_mut().zip(&part).zip(indices).for_each(|((sum, part), &m)| *sum += row[m] * part);
        }
        Ok(exact)
    }

    fn column(&self, from: usize, indices: &[usize]) -> Result<Vec<C64>> {
        let phi = self.subspace.basis.matrix();
        let (voxels, matrix) = (self.voxels, self.matrix);
        each_coefficient(indices, voxels, |i, indices| {
            let displaced: Vec<usize> =
                indices.iter().map(|&to| displacement(matrix, from % voxels, to)).collect();
            let products = self.of_points(|f| phi[[f, i]].conj() * phi[[f, from / voxels]]);
            let sums = |part: fn(&C64) -> f64| {
                let weights: Vec<f64> = products.iter().map(part).collect();
                nudft::reference::q_at(self.trajectory, matrix, Some(&weights[..]), &displaced)
            };
            let (real, imaginary) = (sums(|v| v.re)?, sums(|v| v.im)?);
            Ok(real.iter().zip(&imaginary).map(|(re, im)| re + C64::I * im).collect())
        })
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

/// Values at indices into `[coefficient, voxel]`, in the order of the indices. `compute` gives the values of
/// one coefficient at its voxels.
fn each_coefficient(
    indices: &[usize],
    voxels: usize,
    mut compute: impl FnMut(usize, &[usize]) -> Result<Vec<C64>>,
) -> Result<Vec<C64>> {
    let mut values = vec![C64::ZERO; indices.len()];
    let last = indices.iter().map(|index| index / voxels).max().unwrap_or(0);
    for i in 0..=last {
        let own: Vec<usize> = (0..indices.len()).filter(|&output| indices[output] / voxels == i).collect();
        let places: Vec<usize> = own.iter().map(|&output| indices[output] % voxels).collect();
        own.iter().zip(compute(i, &places)?).for_each(|(&output, value)| values[output] = value);
    }
    Ok(values)
}

#[cfg(test)]
fn examples(draw: &mut super::tests::Draw) -> Vec<super::tests::Example> {
    use super::tests::{Example, options, rows, waves};
    use crate::recon::ReconOptions;
    let example = |(matrix, samples, k, complex): (Vec<usize>, Vec<usize>, usize, bool)| {
        let (frame, trajectory) = draw.points(&matrix, samples.iter().sum());
        let mut value = || {
            let value = wide(draw.complex());
            if complex { value } else { C64::from(value.re) }
        };
        let phi = Array2::from_shape_fn((samples.len(), k), |_| value());
        let waves = waves(&rows(&trajectory), &matrix);
        let of_points: Vec<usize> = at_points(&samples, |f| f).collect();
        let voxels = waves.ncols();
        let entry = |(m, at): (usize, usize)| phi[[of_points[m], at / voxels]] * waves[[m, at % voxels]];
        let matrix = Array2::from_shape_fn((waves.nrows(), k * voxels), entry);
        let options = ReconOptions { basis: Some(Arc::new(Basis::new(phi).unwrap())), ..options() };
        Example { frame, of_frames: Some(samples), options, matrix, scale: voxels as f64 }
    };
    [(vec![6, 7], vec![13, 5, 20], 2, false), (vec![3, 5, 4], vec![30, 12, 9], 3, true)]
        .into_iter()
        .map(example)
        .collect()
}

#[cfg(test)]
mod tests;
