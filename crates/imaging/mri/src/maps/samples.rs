//! Maps from samples anywhere.

use ndarray::Array2;
use rayon::prelude::*;
use rayspin_core::{C32, Error, Monitor, Result, Trajectory};
use rayspin_device::{Array, BackendKind, Device, cpu};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::nufft::{Cost, Nufft, Options};
use rayspin_kernels::toeplitz::{Series, Toeplitz};
use rayspin_kernels::vector::{self, Scalar};
use rayspin_linop::{CoilMaps, ToeplitzNormal};
use rayspin_solve::{CgOptions, cg};

use super::{
    Centre, Cut, DEFAULT_WIDTH, MIN_WIDTH, Sensitivities, centre_of, espirit_maps, hann, walsh_maps,
};

/// Iterations of conjugate gradients for the centre of k-space. Maps of a simulated kooshball (64³, 1500
/// spokes, 8 coils) are wrong by 1 − |⟨c, c'⟩| = 3.2e-3 inside the object if the centre is gridded, and by
/// 8e-4 after 10 iterations (`benches/results/2026-11-26-epyc-2/kooshball_maps.txt`).
const ITERATIONS: usize = 10;
/// Accuracy of the transform between the low-resolution images and their samples. With 1e-4, images of 256²
/// and 16 coils were wrong by 2.2e-3, and a CPU and a GPU differed by as much: faint voxels turned their
/// phase by up to 0.6. With 1e-6 they differ by 6e-5. Maps of 128³ and 8 coils take 0.33 s instead of 0.31 s
/// on 16 cores (`benches/results/2026-11-27-h100/centre.txt`).
const TOLERANCE: f64 = 1e-6;

/// The samples of one coil, `[1, sample]`.
pub type OfCoil<'a> = &'a mut dyn FnMut(usize) -> Result<Array<C32>>;

/// Samples anywhere, of all coils.
pub struct NonCartesian<'a> {
    /// Where the samples lie.
    pub trajectory: &'a Trajectory,
    /// Shape of an image.
    pub matrix: &'a [usize],
    /// Number of coils.
    pub coils: usize,
    /// The samples of each.
    pub of_coil: OfCoil<'a>,
    /// Density weights `[sample]`.
    pub density: &'a Array<f32>,
    /// Whether the host computes the centre of k-space, as for small images: where a GPU has no room for a
    /// plan of all points.
    pub on_host: bool,
}

/// Maps from non-Cartesian samples: from the low-resolution coil images that fit the samples within the
/// centre, for Walsh's method tapered by a radial Hann window in k-space.
///
/// The images y_j minimise Σ_s w_s |(F y_j − d_j)_s|² over the samples s of the centre, with density weights
/// w. They are found by a few iterations of conjugate gradients. Gridding, Fᴴ diag(w) d_j, has the errors of
/// the weights in full, and those at the centre, where samples are largest, fill the whole image. An
/// inhomogeneous field blurs the images of all coils alike, and is left out. With `cut` a GPU holds no more
/// than some coils or some planes of the maps at a time, and the maps lie on the host.
///
/// Errors: a centre that is too narrow or holds no samples; several sets of maps that are cut; errors of the
/// transform; memory.
///
/// ```
/// use ndarray::Array2;
/// use rayspin_core::{C32, Trajectory};
/// use rayspin_device::{Array, Device};
/// use rayspin_mri::maps::{NonCartesian, from_samples};
///
/// let device = Device::cpu()?;
/// // 8 × 8 points around k = 0 of a flat object, which two coils see with 0.6 and 0.8.
/// let points = Array2::from_shape_fn((64, 2), |(i, dim)| [i % 8, i / 8][dim] as f64 - 4.0);
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// let samples = NonCartesian {
///     trajectory: &trajectory,
///     matrix: &[16, 16],
///     coils: 2,
///     of_coil: &mut |coil| {
///         let mut samples = vec![C32::ZERO; 64];
///         samples[4 * 8 + 4] = C32::from([0.6, 0.8][coil]);
///         Array::from_vec(&device, &[1, 64], samples)
///     },
///     density: &Array::from_vec(&device, &[64], vec![1.0; 64])?,
///     on_host: false,
/// };
/// let (maps, centre) = from_samples(samples, Some(8), None, None)?;
/// let maps = maps.to_host()?;
/// assert_eq!(centre.width, 8);
/// assert!((maps[[0, 3, 5]].norm() - 0.6).abs() < 1e-3 && (maps[[1, 3, 5]].norm() - 0.8).abs() < 1e-3);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn from_samples(
    samples: NonCartesian<'_>,
    width: Option<usize>,
    how: Option<Sensitivities>,
    cut: Option<Cut>,
) -> Result<(CoilMaps<f32>, Centre)> {
    let how = how.unwrap_or(Sensitivities::Walsh);
    let width = width.unwrap_or(DEFAULT_WIDTH);
    if width < MIN_WIDTH {
        return Err(Error::value("calibration centre", format!("a width of at least {MIN_WIDTH}"), width));
    }
    let matrix = samples.matrix;
    let region = region(samples, width)?;
    let centre = Centre { width, how };
    if let Sensitivities::Espirit(options) = &centre.how {
        return Ok((espirit_maps(region, matrix, options, cut)?, centre));
    }
    let device = region.device().clone();
    let extent = &region.shape()[1..];
    let profile: Vec<Vec<f64>> = extent.iter().map(|&n| squares(n)).collect();
    let taper: Vec<f32> = ndarray::indices(extent)
        .into_iter()
        .map(|index| {
            let squared: f64 = (0..extent.len()).map(|axis| profile[axis][index[axis]]).sum();
            hann(squared.sqrt() / (width as f64 / 2.0)) as f32
        })
        .collect();
    let taper = Array::from_vec(&device, extent, taper)?;
    let mut tapered = Array::zeros(&device, region.shape())?;
    vector::weight(&taper, &region, &mut tapered)?;
    drop((region, taper));
    Ok((walsh_maps(tapered, matrix, cut)?, centre))
}

/// Squared distances from the centre along an axis of `n`.
fn squares(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i as f64 - (n / 2) as f64).powi(2)).collect()
}

/// Elements at these places, on the device that has them all.
fn gathered<S: Scalar>(values: &Array<S>, places: &Array<u32>) -> Result<Array<S>> {
    let mut taken = Array::zeros(values.device(), &[places.len()])?;
    vector::gather(values, places, &mut taken)?;
    Ok(taken)
}

/// The samples of the centre: their indices and places. Errors: none, or 2³² samples and more.
fn inside(
    host: &Device,
    trajectory: &Trajectory,
    extent: &[usize],
    width: usize,
) -> Result<(Vec<u32>, Trajectory)> {
    /// Number of samples in a thread's part.
    const PART: usize = 1 << 14;
    let (samples, dims) = trajectory.points().dim();
    u32::try_from(samples).map_err(|_| Error::value("samples", "fewer than 2^32", samples))?;
    // Points are (x, y, z), matrices [z, y, x].
    let half: Vec<f64> = extent.iter().rev().map(|&n| n as f64 / 2.0).collect();
    let there = |point: &[f64]| point.iter().zip(&half).all(|(k, half)| k.abs() <= *half);
    let coordinates = trajectory.points();
    let coordinates = coordinates.as_standard_layout();
    let parts: Vec<&[f64]> = coordinates.as_slice().unwrap_or_default().chunks(PART * dims).collect();
    let count = |points: &&[f64]| points.chunks_exact(dims).filter(|point| there(point)).count();
    let counts: Vec<usize> = host.cpu_side().run(|| parts.par_iter().map(count).collect());
    let total = counts.iter().sum::<usize>();
    let mut indices = cpu::zeroed("samples of the centre", total)?;
    let mut points = cpu::zeroed("points of the centre", total * dims)?;
    let (mut own_indices, mut own_points) = (&mut indices[..], &mut points[..]);
    let own = counts.iter().map(|&count| {
        let indices = own_indices.split_off_mut(..count).unwrap_or_default();
        (indices, own_points.split_off_mut(..count * dims).unwrap_or_default())
    });
    let own: Vec<(&mut [u32], &mut [f64])> = own.collect();
    let gather = |(part, (indices, own)): (usize, (&mut [u32], &mut [f64]))| {
        let central = parts[part].chunks_exact(dims).enumerate().filter(|(_, point)| there(point));
        let own = indices.iter_mut().zip(own.chunks_exact_mut(dims));
        for ((sample, point), (index, own)) in central.zip(own) {
            *index = (part * PART + sample) as u32;
            own.copy_from_slice(point);
        }
    };
    host.cpu_side().run(|| own.into_par_iter().enumerate().for_each(gather));
    if indices.is_empty() {
        return Err(Error::value(
            "calibration centre",
            format!("samples within {} cycles per field of view", width as f64 / 2.0),
            "none",
        ));
    }
    let points = Array2::from_shape_vec((indices.len(), dims), points)
        .map_err(|error| Error::value("points of the centre", "one for each index", error))?;
    Ok((indices, Trajectory::from_cycles_per_fov(points)?))
}

/// Sizes of the centre's low-resolution images.
fn extent(matrix: &[usize], width: usize) -> Vec<usize> {
    matrix.iter().map(|&n| centre_of(n, width).len()).collect()
}

/// The centre of k-space `[coil, z, y, x]` on the grid, `width` wide or less along short axes.
fn region(samples: NonCartesian<'_>, width: usize) -> Result<Array<C32>> {
    let NonCartesian { trajectory, matrix, coils, of_coil, density, on_host } = samples;
    let extent = extent(matrix, width);
    let device = &place(density.device(), matrix, &extent, on_host);
    let (kept, trajectory) = inside(&device.host(), trajectory, &extent, width)?;
    let kept = Array::from_vec(density.device(), &[kept.len()], kept)?;
    let weighting = gathered(density, &kept)?.into_device(device)?;
    let plan = Nufft::<f32>::new(device, &trajectory, &extent, &Options::tolerance(TOLERANCE))?;
    let normal = ToeplitzNormal::by_plan(&[coils], &plan, &trajectory, Some(&weighting))?;
    let mut rhs = Array::zeros(device, &[&[coils], &extent[..]].concat())?;
    let mut image = Array::zeros(device, &extent)?;
    let mut weighted = Array::zeros(device, &[kept.len()])?;
    for coil in 0..coils {
        let samples = gathered(&of_coil(coil)?, &kept)?.into_device(device)?;
        vector::weight(&weighting, &samples, &mut weighted)?;
        plan.adjoint(&weighted, &mut image)?;
        vector::copy_part(&image, 0, &mut rhs, coil * image.len(), image.len())?;
    }
    drop((plan, image, weighting, weighted, kept));
    let options = CgOptions { max_iterations: ITERATIONS, tolerance: 0.0 };
    let mut region = cg(&normal, &rhs, None, &options, &Monitor::silent())?.solution;
    drop((normal, rhs));
    Fft::new(device, &extent, Norm::Unitary)?.forward(&mut region)?;
    region.into_device(density.device())
}

/// The processor that computes the centre of k-space: the device, or the host where `on_host` says so or the
/// image is not much larger than the centre.
fn place(device: &Device, matrix: &[usize], extent: &[usize], on_host: bool) -> Device {
    /// Voxels of an image for each of its centre, for which a GPU computes the centre: 128³ and 8 coils take
    /// 0.02 s on an H100 and 0.13 s on 16 cores. The arrays of the centre are then smaller than those of the
    /// image, and do not decide how much memory a run takes.
    const VOXELS: usize = 64;
    let voxels = |sizes: &[usize]| sizes.iter().product::<usize>();
    if on_host || voxels(matrix) < VOXELS * voxels(extent) { device.host() } else { device.clone() }
}

/// Bytes of the device's memory that the centre of k-space on the grid takes while it is made, and the host's
/// where that is another. `on_host` is as in [`NonCartesian`].
pub(crate) fn region_needs(
    device: &Device,
    trajectory: &Trajectory,
    matrix: &[usize],
    coils: usize,
    width: usize,
    on_host: bool,
) -> Result<(u64, u64)> {
    const COMPLEX: u64 = size_of::<C32>() as u64;
    const REAL: u64 = size_of::<f32>() as u64;
    const INDEX: u64 = size_of::<u32>() as u64;
    let extent = extent(matrix, width);
    let place = &place(device, matrix, &extent, on_host);
    let sample_count = trajectory.samples() as u64;
    let (kept, trajectory) = inside(&device.host(), trajectory, &extent, width)?;
    let count = kept.len() as u64;
    let image = COMPLEX * extent.iter().product::<usize>() as u64;
    let images = coils as u64 * image;
    let Cost { plan, planning, workspace, .. } =
        Nufft::<f32>::needs(place, &trajectory, &extent, &Options::tolerance(TOLERANCE))?;
    let (spectrum, _) = Series::<f32>::bytes_needed_on(place, &extent, 1, None)?;
    let filling = Toeplitz::<f32>::from_adjoint_needs(place, kept.len(), &extent)?;
    let making = filling.max(Toeplitz::<f32>::bytes_of_making(place, &extent)?);
    let kernel = plan + workspace + making;
    // A coil's samples are on the device of the run.
    let coil = COMPLEX * sample_count;
    let together = device.same_as(place);
    let gridding =
        plan + workspace + spectrum + images + image + COMPLEX * count + if together { coil } else { 0 };
    // Right-hand side, solution, residual, direction and product.
    let solving = spectrum + Toeplitz::<f32>::bytes_of_work(place, &extent, coils)? + 5 * images;
    let arrays = planning.max(kernel).max(gridding).max(solving);
    let points = count * (8 * extent.len() as u64 + INDEX);
    // Indices, and one coil's samples or the weights as complex numbers; and the weights.
    let central = count * (INDEX + COMPLEX);
    let beside = central + REAL * count;
    Ok(match (device.kind(), together) {
        (BackendKind::Cpu, _) => (arrays + beside + points, 0),
        (BackendKind::Cuda, true) => (arrays + beside, points),
        // First a coil's samples and its central ones; then the images.
        (BackendKind::Cuda, false) => ((coil + central).max(images), arrays + beside + points),
    })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rayspin_kernels::density::pipe_menon;

    use super::*;
    use crate::scan::{FrameOptions, Label, Samples};
    use crate::simulate::trajectory::{Sampling, SphereOrder};
    use crate::simulate::{SimulateOptions, simulate};

    #[test]
    fn the_maps_of_a_kooshball_are_recovered() {
        let device = Device::cpu_with_threads(2).unwrap();
        let options = SimulateOptions {
            dims: 3,
            matrix: [32; 3],
            fov_mm: [220.0; 3],
            coils: 6,
            snr: Some(100.0),
            sampling: Sampling::Kooshball { spokes: 500, order: SphereOrder::GoldenMeans },
            ..Default::default()
        };
        let simulation = simulate(&options, &Monitor::silent()).unwrap();
        let index = simulation.scan.frames().unwrap();
        let frame = index.assemble(Label::default(), &FrameOptions::default(), &mut vec![]).unwrap();
        let Samples::NonCartesian { trajectory, data } = &frame.samples else { panic!("expected spokes") };
        let density = pipe_menon(&device, trajectory, &[32; 3], 7).unwrap();
        let samples = NonCartesian {
            trajectory,
            matrix: &[32; 3],
            coils: 6,
            of_coil: &mut |coil| {
                Array::from_vec(&device, &[1, trajectory.samples()], data.row(coil).to_vec())
            },
            density: &density,
            on_host: false,
        };
        let (maps, _) = from_samples(samples, None, None, None).unwrap();
        let (maps, voxels) = (maps.to_host().unwrap(), 32 * 32 * 32);
        let (found, truth): (Vec<C32>, Vec<C32>) =
            (maps.iter().copied().collect(), simulation.maps.iter().copied().collect());
        let norm =
            |of: &[C32], voxel: usize| (0..6).map(|j| of[j * voxels + voxel].norm_sqr()).sum::<f32>().sqrt();
        let apart = |voxel: usize| {
            let overlap: C32 =
                (0..6).map(|j| found[j * voxels + voxel].conj() * truth[j * voxels + voxel]).sum();
            1.0 - f64::from(overlap.norm() / (norm(&found, voxel) * norm(&truth, voxel)))
        };
        let image: Vec<C32> = simulation.truth.data().iter().copied().collect();
        let inside: Vec<usize> = (0..voxels).filter(|&voxel| image[voxel].norm() > 0.0).collect();
        let error = inside.iter().map(|&voxel| apart(voxel)).sum::<f64>() / inside.len() as f64;
        // The gridded centre gives 5.3e-3.
        assert!(error < 3e-3, "{error:e}");
    }

    #[test]
    fn a_gpu_makes_the_centre_of_the_host_in_the_memory_that_is_stated() {
        let gpu = rayspin_emu::Emulator::device().unwrap();
        let rayspin_device::Backend::Cuda(cuda) = gpu.backend() else { unreachable!("the emulator") };
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for (matrix, spread, samples) in
            [(&[36, 32][..], 16.0, 5000), (&[36, 32], 2.0, 700), (&[17, 16, 20], 8.0, 9000)]
        {
            let (coils, width) = (3, 4);
            let points =
                Array2::from_shape_simple_fn((samples, matrix.len()), || rng.random_range(-spread..spread));
            let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
            let mut number = || rng.random_range(-1.0f32..1.0);
            let data: Vec<C32> = (0..coils * samples).map(|_| C32::new(number(), number())).collect();
            let weights: Vec<f32> = (0..samples).map(|_| number().abs() + 0.1).collect();
            let density = Array::from_vec(&gpu, &[samples], weights).unwrap();
            let made = [true, false].map(|on_host| {
                let needs = region_needs(&gpu, &trajectory, matrix, coils, width, on_host).unwrap();
                let (held, _) = cuda.memory_used();
                cuda.reset_peak();
                let of_coil = &mut |coil: usize| {
                    Array::from_slice(&gpu, &[1, samples], &data[coil * samples..(coil + 1) * samples])
                };
                let trajectory = &trajectory;
                let from = NonCartesian { trajectory, matrix, coils, of_coil, density: &density, on_host };
                let region = region(from, width).unwrap().to_vec().unwrap();
                let ratio = needs.0 as f64 / (cuda.memory_used().1 - held) as f64;
                assert!((0.99..1.06).contains(&ratio), "{matrix:?}, on the host {on_host}: {ratio}");
                region
            });
            let [of_host, of_gpu] = &made;
            let size: f32 = of_host.iter().map(C32::norm_sqr).sum();
            let apart: f32 = of_host.iter().zip(of_gpu).map(|(a, b)| (a - b).norm_sqr()).sum();
            assert!(
                of_gpu != of_host && apart.sqrt() < 1e-5 * size.sqrt(),
                "{matrix:?}: {}",
                (apart / size).sqrt()
            );
        }
    }

    #[test]
    fn a_centre_without_samples_is_refused() {
        let device = Device::cpu_with_threads(1).unwrap();
        let points = ndarray::Array2::from_elem((3, 2), 7.0);
        let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
        let samples = NonCartesian {
            trajectory: &trajectory,
            matrix: &[16, 16],
            coils: 1,
            of_coil: &mut |_| Array::zeros(&device, &[1, 3]),
            density: &Array::zeros(&device, &[3]).unwrap(),
            on_host: false,
        };
        let error = from_samples(samples, Some(8), None, None).unwrap_err().to_string();
        assert!(error.contains("samples within 4 cycles"), "{error}");
    }
}
