//! NUFFTs whose points are planned all at once, or a block at a time where memory is short.

use std::ops::Range;

use ndarray::s;
use rayspin_core::{C32, Result, Trajectory};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_kernels::nufft::{Cost, Nufft, Options};
use rayspin_kernels::vector;

/// The points in runs of at most `points`.
pub(crate) fn blocks(samples: usize, points: Option<usize>) -> impl Iterator<Item = Range<usize>> {
    let points = points.unwrap_or(samples).clamp(1, samples.max(1));
    (0..samples).step_by(points).map(move |first| first..(first + points).min(samples))
}

/// The points `range` of a trajectory.
pub(crate) fn points(trajectory: &Trajectory, range: Range<usize>) -> Result<Trajectory> {
    Trajectory::from_cycles_per_fov(trajectory.points().slice(s![range, ..]).to_owned())
}

/// Options that a plan of the whole trajectory would choose, for blocks of it: the same kernel on the same
/// fine grid.
pub(crate) fn settled(device: &Device, tolerance: f64, matrix: &[usize], samples: usize) -> Result<Options> {
    let upsampling = Some(Nufft::<f32>::upsampling_for(device, tolerance, matrix, samples)?);
    Ok(Options { tolerance, upsampling })
}

/// What transforming by blocks takes of the device's memory at one moment besides samples and images, and of
/// the host's where that is another.
pub(crate) fn needs(
    device: &Device,
    trajectory: &Trajectory,
    matrix: &[usize],
    options: &Options,
    points_at_once: usize,
) -> Result<(u64, u64)> {
    let complex = size_of::<C32>() as u64;
    let image = complex * matrix.iter().product::<usize>() as u64;
    let (mut most, mut host) = (0, 0);
    for range in blocks(trajectory.samples(), Some(points_at_once)) {
        let count = range.len() as u64;
        let Cost { plan, planning, workspace, .. } =
            Nufft::<f32>::needs(device, &points(trajectory, range)?, matrix, options)?;
        let (own, block) = (8 * trajectory.dims() as u64 * count, complex * count);
        match device.kind() {
            BackendKind::Cpu => most = most.max(plan + workspace + own + block + image),
            BackendKind::Cuda => {
                most = most.max(image + planning.max(plan + workspace + block));
                host = host.max(own);
            }
        }
    }
    Ok((most, host))
}

/// Both directions of the NUFFT of one trajectory.
///
/// Blocks: Fᴴd = Σ_b F_bᴴ d_b, and F ρ block by block, with the kernel and fine grid of the whole. Each block
/// is planned when its turn comes, so that no more than one is in memory.
pub(super) struct Transforms {
    device: Device,
    trajectory: Trajectory,
    matrix: Vec<usize>,
    whole: Option<Nufft<f32>>,
    options: Options,
    points: usize,
}

impl Transforms {
    pub(super) fn new(
        device: &Device,
        trajectory: &Trajectory,
        matrix: &[usize],
        tolerance: f64,
        points: Option<usize>,
    ) -> Result<Self> {
        let samples = trajectory.samples();
        let options = settled(device, tolerance, matrix, samples)?;
        let split = points.is_some_and(|points| points < samples);
        let whole = if split { None } else { Some(Nufft::new(device, trajectory, matrix, &options)?) };
        let points = points.unwrap_or(samples).max(1);
        let (device, trajectory, matrix) = (device.clone(), trajectory.clone(), matrix.to_vec());
        Ok(Self { device, trajectory, matrix, whole, options, points })
    }

    /// Whether points are planned a block at a time.
    pub(super) fn by_blocks(&self) -> bool {
        self.whole.is_none()
    }

    pub(super) fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn matrix(&self) -> &[usize] {
        &self.matrix
    }

    /// Fᴴ of `[batch.., sample]` to `[batch.., matrix..]`.
    pub(super) fn adjoint(&self, samples: &Array<C32>, images: &mut Array<C32>) -> Result<()> {
        if let Some(whole) = &self.whole {
            return whole.adjoint(samples, images);
        }
        images.fill(C32::ZERO)?;
        let (count, voxels) = (self.trajectory.samples(), self.matrix.iter().product::<usize>());
        let mut image = Array::zeros(&self.device, &self.matrix)?;
        let mut held = None;
        for range in blocks(count, Some(self.points)) {
            let plan = self.plan(&mut held, range.clone())?;
            let mut block = Array::zeros(&self.device, &[range.len()])?;
            for item in 0..samples.len() / count {
                vector::copy_part(samples, item * count + range.start, &mut block, 0, range.len())?;
                plan.adjoint(&block, &mut image)?;
                vector::add_part(&image, images, item * voxels)?;
            }
        }
        Ok(())
    }

    /// F of `[batch.., matrix..]` to `[batch.., sample]`.
    pub(super) fn forward(&self, images: &Array<C32>, samples: &mut Array<C32>) -> Result<()> {
        if let Some(whole) = &self.whole {
            return whole.forward(images, samples);
        }
        let (count, voxels) = (self.trajectory.samples(), self.matrix.iter().product::<usize>());
        let mut image = Array::zeros(&self.device, &self.matrix)?;
        let mut held = None;
        for range in blocks(count, Some(self.points)) {
            let plan = self.plan(&mut held, range.clone())?;
            let mut block = Array::zeros(&self.device, &[range.len()])?;
            for item in 0..images.len() / voxels {
                vector::copy_part(images, item * voxels, &mut image, 0, voxels)?;
                plan.forward(&image, &mut block)?;
                vector::copy_part(&block, 0, samples, item * count + range.start, range.len())?;
            }
        }
        Ok(())
    }

    /// The plan for a range of points, in place of the one that is held. On the CPU that goes over to them
    /// and keeps its grid; on a GPU two sets of points would be in memory at one moment.
    fn plan<'a>(&self, held: &'a mut Option<Nufft<f32>>, range: Range<usize>) -> Result<&'a Nufft<f32>> {
        let points = points(&self.trajectory, range)?;
        let mut plan = held.take().filter(|_| self.device.kind() == BackendKind::Cpu);
        if let Some(plan) = &mut plan {
            plan.set_points(&points)?;
        }
        Ok(held.insert(match plan {
            Some(plan) => plan,
            None => Nufft::new(&self.device, &points, &self.matrix, &self.options)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn blocks_of_points_transform_as_the_whole() {
        let device = Device::cpu_with_threads(2).unwrap();
        for (matrix, samples, seed) in [(vec![14, 9], 371, 1), (vec![8, 7, 6], 500, 2), (vec![16, 16], 1, 3)]
        {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let points = Array2::from_shape_fn((samples, matrix.len()), |(_, d)| {
                let n = matrix[matrix.len() - 1 - d] as f64;
                rng.random_range(-n / 2.0..n / 2.0)
            });
            let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
            let mut random = |shape: &[usize]| {
                let values = (0..shape.iter().product::<usize>())
                    .map(|_| C32::new(rng.random_range(-1.0f32..1.0), rng.random_range(-1.0f32..1.0)));
                Array::from_vec(&device, shape, values.collect()).unwrap()
            };
            let (data, images) = (random(&[3, samples]), random(&[&[3], &matrix[..]].concat()));
            let of = |split| {
                let transforms = Transforms::new(&device, &trajectory, &matrix, 1e-4, split).unwrap();
                let mut image = random_like(&device, images.shape());
                transforms.adjoint(&data, &mut image).unwrap();
                let mut there = random_like(&device, data.shape());
                transforms.forward(&images, &mut there).unwrap();
                (image, there)
            };
            let whole = of(None);
            for split in [1, 40, samples - samples / 3, samples, samples + 5] {
                if split == 1 && samples > 400 {
                    continue;
                }
                let found = of(Some(split));
                for (a, b) in [(&found.0, &whole.0), (&found.1, &whole.1)] {
                    let norm = vector::norm_squared(b).unwrap().sqrt();
                    let difference: f32 = a.cpu().iter().zip(b.cpu()).map(|(a, b)| (a - b).norm_sqr()).sum();
                    assert!(f64::from(difference).sqrt() < 2e-6 * norm, "{matrix:?} {split}");
                }
            }
        }
    }

    /// What is overwritten.
    fn random_like(device: &Device, shape: &[usize]) -> Array<C32> {
        let mut array = Array::zeros(device, shape).unwrap();
        array.fill(C32::new(f32::NAN, f32::NAN)).unwrap();
        array
    }
}
