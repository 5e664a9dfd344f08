use ndarray::{Array2, ArrayD, ArrayView2, ArrayViewD, Axis, s};
use rayspin_core::{C32, C64, Error, Result};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_kernels::coil_mixing;
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::gram::Rows as GramRows;
use rayspin_run::{Bytes, Cost, Memory};
use rayspin_solve::dense::{self, Matrix, covariance_memory, eigen, eigen_of_each, nearest_unitary};

use super::mixing::{Mixing, needs as mixing_needs, pieces};
use super::{Compression, CompressionKind, PrepareOptions, VirtualCoils, mix};
use crate::scan::{Frame, Samples};

/// Positions on either side whose samples a position's components are taken from too, as Zhang et al. do:
/// they make neighbours alike.
const WINDOW: usize = 2;

/// Orthonormal rows: the virtual coils in terms of the coils.
#[derive(Debug)]
pub(super) struct Basis {
    rows: Rows,
    /// Part of the energy that they hold.
    pub(super) energy: f64,
}

#[derive(Debug)]
enum Rows {
    /// `[virtual coil, coil]`.
    Same(Array2<C32>),
    /// One for each position along the readout.
    Along(Vec<Array2<C32>>),
}

impl Basis {
    /// From a frame's samples, as `whiten` would make them; `kept` virtual coils where an earlier slice has
    /// decided.
    pub(super) fn of_frame(
        device: &Device,
        frame: &Frame,
        compression: Compression,
        kept: Option<usize>,
        whiten: Option<ArrayView2<'_, C32>>,
    ) -> Result<Self> {
        let whiten = whiten.map(|w| {
            Matrix::from_fn(w.nrows(), w.ncols(), |i, j| C64::new(w[[i, j]].re.into(), w[[i, j]].im.into()))
        });
        let whitened = |gram: Matrix| match &whiten {
            None => gram,
            Some(w) => w * &gram * w.adjoint(),
        };
        let coils = frame.coils();
        if let VirtualCoils::Count(count) = compression.coils
            && count >= coils
        {
            return Err(Error::value("virtual coils", format!("fewer than the scan's {coils} coils"), count));
        }
        let count = |energies: &[f64]| match (kept, compression.coils) {
            (Some(kept), _) => kept,
            (None, VirtualCoils::Count(count)) => count,
            (None, VirtualCoils::Energy(part)) => reach(energies, part),
        };
        match compression.kind {
            CompressionKind::Svd => {
                let gram = match &frame.samples {
                    Samples::Cartesian { kspace, .. } => covariance(device, &kspace.view())?,
                    Samples::NonCartesian { data, .. } => covariance(device, &data.view().into_dyn())?,
                };
                let gram = whitened(gram);
                let (values, vectors) = eigen(device, &gram)?;
                let count = count(&values);
                let rows = rows(&vectors, count);
                Ok(Self { rows: Rows::Same(narrow(&rows)), energy: part(&values, count) })
            }
            CompressionKind::Geometric => {
                let Samples::Cartesian { kspace, sampled } = &frame.samples else {
                    return Err(unsuited("a scan with a trajectory"));
                };
                let full = sampled
                    .lanes(Axis(sampled.ndim() - 1))
                    .into_iter()
                    .all(|line| line.iter().all(|&s| s) || line.iter().all(|&s| !s));
                if !full {
                    return Err(unsuited("readouts that are sampled in part"));
                }
                let single: Vec<Matrix> =
                    at_each_position(device, &kspace.view())?.into_iter().map(whitened).collect();
                let nx = single.len();
                let sums: Vec<Matrix> = (0..nx)
                    .map(|x| {
                        let mut sum = Matrix::zeros(coils, coils);
                        for near in &single[x.saturating_sub(WINDOW)..(x + WINDOW + 1).min(nx)] {
                            sum += near;
                        }
                        sum
                    })
                    .collect();
                let mut energies = vec![0.0; coils];
                let mut vectors = Vec::with_capacity(nx);
                for (values, eigenvectors) in eigen_of_each(device, &sums)? {
                    energies.iter_mut().zip(&values).for_each(|(e, v)| *e += v);
                    vectors.push(eigenvectors);
                }
                let count = count(&energies);
                let mut aligned: Vec<Matrix> = vectors.iter().map(|v| rows(v, count)).collect();
                // From the middle outwards: there the object is, beyond it noise alone may decide.
                let middle = nx / 2;
                for x in middle + 1..nx {
                    aligned[x] = align(&aligned[x], &aligned[x - 1])?;
                }
                for x in (0..middle).rev() {
                    aligned[x] = align(&aligned[x], &aligned[x + 1])?;
                }
                let energy = part(&energies, count);
                Ok(Self { rows: Rows::Along(aligned.iter().map(narrow).collect()), energy })
            }
        }
    }

    /// Virtual coils.
    pub(super) fn kept(&self) -> usize {
        match &self.rows {
            Rows::Same(rows) => rows.nrows(),
            Rows::Along(matrices) => matrices.first().map_or(0, Array2::nrows),
        }
    }

    /// What coils become that are whitened before.
    pub(super) fn mixing(&self, whiten: Option<ArrayView2<'_, C32>>) -> Mixing {
        let both = |rows: &Array2<C32>| match &whiten {
            Some(whiten) => rows.dot(whiten),
            None => rows.clone(),
        };
        match &self.rows {
            Rows::Same(rows) => Mixing::alike(both(rows)),
            Rows::Along(matrices) => Mixing::along(&matrices.iter().map(both).collect::<Vec<_>>()),
        }
    }

    /// Turns maps `[coil, matrix…]` of the coils into maps of the virtual coils, or back.
    pub(super) fn maps(&self, maps: ArrayD<C32>, back: bool) -> Result<ArrayD<C32>> {
        let expected = match &self.rows {
            Rows::Same(rows) => rows.dim(),
            Rows::Along(matrices) => matrices[0].dim(),
        };
        let expected = if back { expected.0 } else { expected.1 };
        if maps.shape()[0] != expected {
            let wanted = [&[expected], &maps.shape()[1..]].concat();
            return Err(Error::shape("sensitivity maps", &wanted, maps.shape()));
        }
        match &self.rows {
            Rows::Same(rows) if back => mix(maps, |data| adjoint(rows).dot(&data)),
            Rows::Same(rows) => mix(maps, |data| rows.dot(&data)),
            Rows::Along(matrices) => {
                // The matrix is the centre of the grid, on which the positions are counted.
                let n = maps.shape()[maps.ndim() - 1];
                let first = (matrices.len() / 2).saturating_sub(n / 2);
                match matrices.get(first..first + n) {
                    Some(part) => at_positions(maps, part, back),
                    None => Err(Error::value(
                        "sensitivity maps",
                        format!("at most {} voxels along x", matrices.len()),
                        n,
                    )),
                }
            }
        }
    }
}

fn unsuited(found: &str) -> Error {
    Error::value("geometric compression", "a Cartesian scan with fully sampled readouts", found)
}

/// Another matrix of coils for every position along the last axis.
fn at_positions(array: ArrayD<C32>, matrices: &[Array2<C32>], back: bool) -> Result<ArrayD<C32>> {
    let shape = array.shape().to_vec();
    let nx = shape[shape.len() - 1];
    let lines = array.len() / (shape[0] * nx).max(1);
    let wrong = || Error::shape("coils", &[shape[0], lines, nx], &shape);
    let flat = array.as_standard_layout().into_owned();
    let flat = flat.into_shape_with_order((shape[0], lines, nx)).map_err(|_| wrong())?;
    let coils = matrices.first().map_or(0, |rows| if back { rows.ncols() } else { rows.nrows() });
    let mut out = ndarray::Array3::<C32>::zeros((coils, lines, nx));
    for (x, rows) in matrices.iter().enumerate() {
        let from = flat.slice(s![.., .., x]);
        let mixed = if back { adjoint(rows).dot(&from) } else { rows.dot(&from) };
        out.slice_mut(s![.., .., x]).assign(&mixed);
    }
    let out_shape = [&[coils], &shape[1..]].concat();
    out.into_dyn().into_shape_with_order(out_shape).map_err(|_| wrong())
}

/// Samples that a CPU sums side by side.
pub(crate) const SIDE: usize = 64;

/// Σ y yᴴ over the samples `[coil, …]`. A CPU first makes 64 sums on all cores, each over every 64th sample.
pub(super) fn covariance(device: &Device, samples: &ArrayViewD<'_, C32>) -> Result<Matrix> {
    let coils = samples.shape()[0];
    let points = samples.len() / coils.max(1);
    let whole = match device.kind() {
        BackendKind::Cpu => points / SIDE * SIDE,
        BackendKind::Cuda => 0,
    };
    let flat = samples
        .to_shape((coils, points))
        .map_err(|_| Error::shape("k-space", &[coils, points], samples.shape()))?;
    let (side, rest) = flat.view().split_at(Axis(1), whole);
    let mut sums = Array::zeros(device, &[if whole > 0 { SIDE } else { 0 }, coils, coils])?;
    pieces(device, &side.into_dyn(), SIDE, |_, piece| coil_mixing::covariances(&piece, &mut sums, true))?;
    let sums = sums.to_vec()?;
    let mut sum = Matrix::zeros(coils, coils);
    for part in sums.chunks(coils * coils) {
        sum += Matrix::from_fn(coils, coils, |i, j| part[i * coils + j]);
    }
    pieces(device, &rest.into_dyn(), 1, |_, piece| {
        let points = piece.len() / coils;
        let columns: Vec<u32> = (0..coils).map(|coil| (coil * points) as u32).collect();
        sum += dense::covariance(&piece, GramRows::First(points), &columns)?;
        Ok(())
    })?;
    Ok(sum)
}

/// Σ y yᴴ at each position along the readout of a grid `[coil, …, x]`.
fn at_each_position(device: &Device, kspace: &ArrayViewD<'_, C32>) -> Result<Vec<Matrix>> {
    let (coils, nx) = (kspace.shape()[0], kspace.shape()[kspace.ndim() - 1]);
    let fft = Fft::new(device, &[nx], Norm::Unitary)?;
    let mut sums = Array::zeros(device, &[nx, coils, coils])?;
    pieces(device, kspace, nx, |_, mut piece| {
        fft.inverse(&mut piece)?;
        coil_mixing::covariances(&piece, &mut sums, true)
    })?;
    let sums = sums.to_vec()?;
    let matrix_of = |sum: &[C64]| Matrix::from_fn(coils, coils, |i, j| sum[i * coils + j]);
    Ok(sums.chunks(coils * coils).map(matrix_of).collect())
}

/// Vᴴ of the first `count` columns.
fn rows(vectors: &Matrix, count: usize) -> Matrix {
    vectors.subcols(0, count).adjoint().to_owned()
}

/// T A with the unitary T that brings it closest to the neighbour's.
fn align(rows: &Matrix, neighbour: &Matrix) -> Result<Matrix> {
    Ok(nearest_unitary(&(neighbour * rows.adjoint()))? * rows)
}

fn narrow(rows: &Matrix) -> Array2<C32> {
    Array2::from_shape_fn((rows.nrows(), rows.ncols()), |(i, j)| {
        let v: C64 = rows[(i, j)];
        C32::new(v.re as f32, v.im as f32)
    })
}

fn adjoint(rows: &Array2<C32>) -> Array2<C32> {
    rows.t().mapv(|v| v.conj())
}

/// How many of the energies, largest first, make up a part of their sum.
fn reach(energies: &[f64], part: f64) -> usize {
    let total: f64 = energies.iter().sum();
    let mut sum = 0.0;
    let below = energies.iter().take_while(|&&energy| {
        sum += energy;
        sum < part * total
    });
    (below.count() + 1).min(energies.len())
}

fn part(energies: &[f64], count: usize) -> f64 {
    let total: f64 = energies.iter().sum();
    if total > 0.0 { energies[..count].iter().sum::<f64>() / total } else { 1.0 }
}
/// The stage in which virtual coils are found.
pub(crate) const STAGE: &str = "virtual coils";

/// What finding the virtual coils of a frame takes: its samples come to the device a piece at a time. Nothing
/// where none are found.
pub(crate) fn finding(
    device: &Device,
    options: &PrepareOptions,
    frame: &Frame,
    coils: usize,
) -> Option<Cost> {
    let compression = options.compression?;
    let own = frame.coils() as u64;
    let (points, line) = match &frame.samples {
        Samples::Cartesian { sampled, .. } => (sampled.len(), sampled.shape().last().copied().unwrap_or(1)),
        Samples::NonCartesian { trajectory, .. } => (trajectory.samples(), 1),
    };
    let line = if compression.kind == CompressionKind::Geometric { line } else { 1 };
    let on_gpu = device.kind() == BackendKind::Cuda;
    let piece = mixing_needs(device.kind(), own, coils as u64, points as u64, line as u64);
    let complex = size_of::<C32>() as u64;
    let rows = match (on_gpu, line) {
        (true, 1) => points.min((piece / (complex * own)) as usize),
        // What is no multiple of those that are summed side by side.
        (false, 1) => points % SIDE,
        _ => 0,
    };
    let (host, gpu) = covariance_memory(device, GramRows::First(rows), own as usize);
    // Sums, and what is made of them, in double precision.
    let matrices = 2 * complex * own * own * if on_gpu { line } else { line.max(SIDE) } as u64;
    let beside = host + 4 * matrices;
    Some(Cost::of(Memory::temporary(if on_gpu {
        Bytes { gpu: piece + gpu + matrices, host: beside }
    } else {
        Bytes::host(complex * own * points as u64 + beside + piece)
    })))
}
