use rayspin_core::{C32, C64, Error, Result};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_kernels::espirit;
use rayspin_kernels::gram::Rows;
use rayspin_kernels::variant::Work;
use rayspin_solve::dense::{Matrix, covariance, covariance_memory, eigen, panel_bytes, projector};
use serde::Serialize;

use super::cut::zyx;
/// How ESPIRiT maps are made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EspiritOptions {
    /// Width of the k-space neighbourhood; less where the calibration region is narrow, and in three
    /// dimensions where it would make matrices of more than [`LARGEST_MATRIX`] rows.
    pub kernel: usize,
    /// Singular values of the calibration matrix above this part of the largest span the signals.
    pub threshold: f64,
    /// Eigenvalue below which a map is 0.
    pub crop: f64,
    /// Sets of maps: 2 where an object larger than the field of view folds over itself.
    pub sets: usize,
}

impl Default for EspiritOptions {
    fn default() -> Self {
        Self { kernel: 6, threshold: 0.01, crop: 0.8, sets: 1 }
    }
}

impl EspiritOptions {
    /// Checks every range. Errors: the first value out of range, named.
    pub fn validate(&self) -> Result<()> {
        if !(2..=16).contains(&self.kernel) {
            return Err(Error::value("kernel of ESPIRiT", "2 to 16", self.kernel));
        }
        if !(self.threshold > 0.0 && self.threshold < 1.0) {
            return Err(Error::value("threshold of ESPIRiT", "0 < threshold < 1", self.threshold));
        }
        if !(0.0..1.0).contains(&self.crop) {
            return Err(Error::value("crop of maps", "0 <= crop < 1", self.crop));
        }
        if !(1..=2).contains(&self.sets) {
            return Err(Error::value("sets of maps", "1 or 2", self.sets));
        }
        Ok(())
    }
}

/// Rows of the matrix that is decomposed, at most: a decomposition takes time with their cube.
pub const LARGEST_MATRIX: usize = 1024;

/// The operator that leaves the k-space of a coil array unchanged, and the phase of maps.
pub(crate) struct Reproducing {
    /// Q `[coil, coil, lag z, lag y, lag x]`.
    pub(crate) correlation: Array<C32>,
    /// The vector `[coil]` that fixes the phase of maps.
    pub(crate) phase: Array<C32>,
}

/// Q from a fully sampled centre of k-space `[coil, z, y, x]` or without z.
///
/// The neighbourhoods of a coil array's k-space span a small space, with projector P; averaged over a
/// neighbourhood of m points, s_i(k) = Σ_{j,δ} Q_{ij}\[δ\] s_j(k + δ) with Q_{ij}\[δ\] = (1/m) Σ_r
/// P_{(i,r),(j,r+δ)}.
pub(crate) fn reproducing(
    device: &Device,
    centre: Array<C32>,
    options: &EspiritOptions,
) -> Result<Reproducing> {
    let coils = centre.shape()[0];
    let region = zyx(&centre.shape()[1..]);
    let kernel = kernel(options.kernel, region, coils);

    let (rows, columns) = neighbourhoods(coils, region, kernel);
    let neighbourhoods = covariance(&centre, Rows::Listed(&rows), &columns)?;
    let phase = principal(&centre)?;
    drop(centre);
    let (values, vectors) = eigen(device, &neighbourhoods)?;
    drop(neighbourhoods);
    let largest = values.first().copied().unwrap_or(0.0);
    if largest.is_nan() || largest <= 0.0 {
        return Err(Error::value("calibration centre", "samples that are not all zero", "zeros"));
    }
    let rank = values.iter().take_while(|&&v| v > options.threshold.powi(2) * largest).count();
    let signals = vectors.subcols(0, rank).to_owned();
    let projector = projector(device, &signals)?;
    let correlation = Array::from_vec(
        device,
        &[coils, coils, 2 * kernel[0] - 1, 2 * kernel[1] - 1, 2 * kernel[2] - 1],
        correlation(&projector, coils, kernel),
    )?;
    Ok(Reproducing { correlation, phase: Array::from_vec(device, &[coils], phase)? })
}

/// Maps `[coil, z, y, x]` (or without z; `[set, coil, …]` for several sets) on a grid of `shape`. In the
/// image the operator is G(x) c(x) = c(x), which [`rayspin_kernels::espirit`] solves for every voxel.
pub(super) fn maps(operator: &Reproducing, shape: &[usize], options: &EspiritOptions) -> Result<Array<C32>> {
    let Reproducing { correlation, phase } = operator;
    let coils = phase.len();
    let sets = options.sets.min(coils);
    let maps = espirit::maps(correlation, phase, zyx(shape), sets, options.crop)?;
    let mut map_shape = vec![coils];
    map_shape.extend_from_slice(shape);
    if options.sets > 1 {
        map_shape.insert(0, sets);
    }
    maps.reshape(&map_shape)
}

/// Where neighbourhoods begin in a region `[coil, z, y, x]`, and their points from there, `[coil, z, y, x]`.
fn neighbourhoods(coils: usize, region: [usize; 3], kernel: [usize; 3]) -> (Vec<u32>, Vec<u32>) {
    let place = |[z, y, x]: [usize; 3]| ((z * region[1] + y) * region[2] + x) as u32;
    let positions = |n: [usize; 3]| {
        (0..n[0]).flat_map(move |z| (0..n[1]).flat_map(move |y| (0..n[2]).map(move |x| place([z, y, x]))))
    };
    let volume = region.iter().product::<usize>() as u32;
    let columns =
        (0..coils as u32).flat_map(|coil| positions(kernel).map(move |position| coil * volume + position));
    (positions([0, 1, 2].map(|axis| region[axis] + 1 - kernel[axis])).collect(), columns.collect())
}

/// Q `[coil, coil, lag z, lag y, lag x]`.
fn correlation(projector: &Matrix, coils: usize, kernel: [usize; 3]) -> Vec<C32> {
    let points: usize = kernel.iter().product();
    let lags = kernel.map(|k| 2 * k - 1);
    let place = |r: usize| [r / (kernel[1] * kernel[2]), r / kernel[2] % kernel[1], r % kernel[2]];
    let mut q = vec![C64::ZERO; coils * coils * lags.iter().product::<usize>()];
    for i in 0..coils {
        for j in 0..coils {
            for r in 0..points {
                for s in 0..points {
                    let (a, b) = (place(r), place(s));
                    let [z, y, x] = [0, 1, 2].map(|axis| b[axis] + kernel[axis] - 1 - a[axis]);
                    let lag = (((i * coils + j) * lags[0] + z) * lags[1] + y) * lags[2] + x;
                    q[lag] += projector[(i * points + r, j * points + s)];
                }
            }
        }
    }
    q.iter().map(|v| C32::new((v.re / points as f64) as f32, (v.im / points as f64) as f32)).collect()
}

/// Bytes of the host, bytes of the device, and the work of all voxels that [`maps`] takes, beside the maps
/// themselves.
///
/// The host first holds the matrix of the neighbourhoods and two blocks of rows. Then it holds the matrix,
/// the copy of it that is reduced, the eigenvectors as they are found and in order, and a panel to work in. A
/// GPU holds the centre and the workspace of the covariance, then Q and the workspace of the maps. For slabs
/// of `planes` planes the bytes of the device's memory include a slab's maps.
pub(crate) fn needs(
    device: &Device,
    options: &EspiritOptions,
    width: usize,
    coils: usize,
    shape: &[usize],
    planes: Option<usize>,
) -> (u64, u64, Work) {
    let whole = zyx(shape);
    let region = zyx(shape).map(|n| n.min(width));
    let kernel = kernel(options.kernel, region, coils);
    let (reach_zyx, sets) = (kernel.map(|k| k - 1), options.sets.min(coils));
    let (rows, columns) = neighbourhoods(coils, region, kernel);
    let (host, on_gpu) = covariance_memory(device, Rows::Listed(&rows), columns.len());
    let solved = planes.unwrap_or(whole[0]).min(whole[0]);
    let problem =
        espirit::Problem { coils, reach_zyx, shape_zyx: whole, planes: [0, solved], sets, crop: 0.0 };
    let maps = (size_of::<C32>() * sets * coils * solved * whole[1] * whole[2]) as u64;
    // Maps of the whole are counted elsewhere, and are not there yet while Q is made.
    let (with_maps, not_yet) = if planes.is_some() { (maps, 0) } else { (0, maps) };
    let on_gpu = match device.kind() {
        BackendKind::Cpu => with_maps,
        BackendKind::Cuda => {
            let lags: usize = kernel.iter().map(|k| 2 * k - 1).product();
            let q = size_of::<C32>() * (coils * coils * lags + coils);
            let region = size_of::<C32>() * coils * region.iter().product::<usize>();
            (region as u64 + on_gpu)
                .saturating_sub(not_yet)
                .max(q as u64 + problem.scratch_bytes_on(device) + with_maps)
        }
    };
    let work = espirit::Problem { planes: [0, whole[0]], ..problem }.work();
    let matrix = (size_of::<C64>() * columns.len().pow(2)) as u64;
    ((4 * matrix + panel_bytes(columns.len())).max(host), on_gpu, work)
}

/// Width of the neighbourhood along z, y, x: as wished, at most half of the region, and smaller while the
/// matrix is too large.
fn kernel(wished: usize, region: [usize; 3], coils: usize) -> [usize; 3] {
    let bounded = |width: usize| region.map(|n| if n == 1 { 1 } else { width.min(n.div_ceil(2)) });
    let fits = |k: [usize; 3]| coils * k.iter().product::<usize>() <= LARGEST_MATRIX;
    (2..=wished).rev().map(bounded).find(|&k| fits(k)).unwrap_or(bounded(2))
}

/// The dominant eigenvector of the covariance of coils.
fn principal(centre: &Array<C32>) -> Result<Vec<C32>> {
    let coils = centre.shape()[0];
    let points = centre.len() / coils;
    let columns: Vec<u32> = (0..coils).map(|coil| (coil * points) as u32).collect();
    let (_, vectors) = eigen(centre.device(), &covariance(centre, Rows::First(points), &columns)?)?;
    Ok((0..coils).map(|j| C32::new(vectors[(j, 0)].re as f32, vectors[(j, 0)].im as f32)).collect())
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn};

    use super::*;
    use crate::maps::{Centre, Sensitivities, centre, from_grid};
    use crate::scan::{FrameOptions, Label, Samples};
    use crate::simulate::trajectory::{CartesianPattern, Sampling};
    use crate::simulate::{SimulateOptions, simulate};

    /// Mean over the voxels with signal of 1 − |⟨c, c'⟩|/(‖c‖‖c'‖), and the share of voxels without signal
    /// whose map is 0.
    fn compare(found: &[C32], truth: &[C32], image: &[C32], coils: usize) -> (f64, f64) {
        let voxels = image.len();
        let (mut sum, mut inside, mut silent, mut outside) = (0.0, 0, 0, 0);
        for voxel in 0..voxels {
            let at = |maps: &[C32], j: usize| maps[j * voxels + voxel];
            let norm = |maps: &[C32]| (0..coils).map(|j| at(maps, j).norm_sqr()).sum::<f32>().sqrt();
            if image[voxel].norm() > 0.0 {
                let overlap: C32 = (0..coils).map(|j| at(found, j).conj() * at(truth, j)).sum();
                sum += 1.0 - f64::from(overlap.norm() / (norm(found) * norm(truth)).max(1e-9));
                inside += 1;
            } else {
                outside += 1;
                silent += usize::from(norm(found) == 0.0);
            }
        }
        (sum / f64::from(inside), silent as f64 / outside.max(1) as f64)
    }

    #[test]
    fn the_maps_of_a_simulated_scan_are_recovered() {
        let device = Device::cpu_with_threads(2).unwrap();
        let plane = SimulateOptions { matrix: [64, 56, 1], coils: 6, snr: Some(60.0), ..Default::default() };
        let volume = SimulateOptions {
            dims: 3,
            matrix: [20, 18, 16],
            fov_mm: [220.0; 3],
            coils: 4,
            sampling: Sampling::Cartesian(CartesianPattern::Full),
            ..Default::default()
        };
        for (options, width) in [(plane, None), (volume, Some(12))] {
            let simulation = simulate(&options, &rayspin_core::Monitor::silent()).unwrap();
            let index = simulation.scan.frames().unwrap();
            let frame = index.assemble(Label::default(), &FrameOptions::default(), &mut vec![]).unwrap();
            let Samples::Cartesian { kspace, sampled } = &frame.samples else { panic!("expected a grid") };
            let kspace = Array::from_host(&device, kspace).unwrap();
            let how = Sensitivities::Espirit(EspiritOptions::default());
            let found = Centre::of_grid(sampled, width, Some(how)).unwrap();
            let region = centre(&kspace, found.width).unwrap();
            let maps = from_grid(region, sampled.shape(), &found, None).unwrap().resident().unwrap().clone();
            let truth: Vec<C32> = simulation.maps.iter().copied().collect();
            let image: Vec<C32> = simulation.truth.data().iter().copied().collect();
            let (error, silent) = compare(maps.cpu(), &truth, &image, options.coils);
            println!("{:?}: {error:.1e}, silent {silent:.2}", options.matrix);
            assert!(error < 4e-3, "{:?}: {error:e}", options.matrix);
            assert!(options.dims == 3 || silent > 0.3, "{silent}");
        }
    }

    #[test]
    fn an_object_that_folds_over_itself_needs_two_sets() {
        // Half of the field of view: every second line of k-space alone, as a grid of its own.
        let device = Device::cpu_with_threads(2).unwrap();
        let options = SimulateOptions { matrix: [48, 96, 1], coils: 6, ..Default::default() };
        let simulation = simulate(&options, &rayspin_core::Monitor::silent()).unwrap();
        let index = simulation.scan.frames().unwrap();
        let frame = index.assemble(Label::default(), &FrameOptions::default(), &mut vec![]).unwrap();
        let Samples::Cartesian { kspace, .. } = &frame.samples else { panic!("expected a grid") };
        let kspace = kspace.slice_axis(ndarray::Axis(1), ndarray::Slice::new(0, None, 2)).to_owned();
        let kspace = Array::from_host(&device, &kspace).unwrap();
        let sampled = ArrayD::from_elem(IxDyn(&[48, 48]), true);
        let how =
            Sensitivities::Espirit(EspiritOptions { sets: 2, threshold: 0.005, ..EspiritOptions::default() });
        let found = Centre::of_grid(&sampled, None, Some(how)).unwrap();
        let region = centre(&kspace, found.width).unwrap();
        let maps = from_grid(region, sampled.shape(), &found, None).unwrap().resident().unwrap().clone();
        assert_eq!(maps.shape(), [2, 6, 48, 48]);
        // The second set is there where the object folds, and is as strong there as the first.
        let second: f32 = maps.cpu()[6 * 48 * 48..].iter().map(|v| v.norm_sqr()).sum();
        let first: f32 = maps.cpu()[..6 * 48 * 48].iter().map(|v| v.norm_sqr()).sum();
        assert!(second > 0.15 * first && second < 0.95 * first, "{first} {second}");
        // Both layers lie in what the two maps span, and not in what one does.
        let voxels = 48 * 48;
        let truth = |j: usize, y: usize, x: usize| simulation.maps[[j, 0, y, x]];
        let (mut one, mut both, mut folded) = (0.0, 0.0, 0);
        for y in 0..48 {
            for x in 0..48 {
                let layers = [(y + 24) % 96, (y + 72) % 96];
                if layers.iter().any(|&y| simulation.truth.data()[[0, y, x]].norm() == 0.0) {
                    continue;
                }
                folded += 1;
                for layer in layers {
                    let norm: f32 = (0..6).map(|j| truth(j, layer, x).norm_sqr()).sum();
                    let part = |set: usize| -> f32 {
                        let overlap: C32 = (0..6)
                            .map(|j| {
                                maps.cpu()[(set * 6 + j) * voxels + y * 48 + x].conj() * truth(j, layer, x)
                            })
                            .sum();
                        overlap.norm_sqr() / norm
                    };
                    one += part(0) / 2.0;
                    both += (part(0) + part(1)) / 2.0;
                }
            }
        }
        let (one, both) = (one / folded as f32, both / folded as f32);
        println!("{folded} voxels: {one} of the layers by one set, {both} by two");
        assert!(folded > 100 && both > 0.97 && one < 0.9, "{folded} {one} {both}");
    }

    #[test]
    fn neighbourhoods_shrink_to_what_fits() {
        assert_eq!(kernel(6, [1, 24, 24], 8), [1, 6, 6]);
        assert_eq!(kernel(6, [1, 24, 24], 32), [1, 5, 5]);
        assert_eq!(kernel(6, [24, 24, 24], 8), [5, 5, 5]);
        assert_eq!(kernel(6, [1, 5, 24], 4), [1, 3, 6]);
    }
}
