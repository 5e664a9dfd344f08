//! Maps that a GPU has no room for: they lie on the host and are solved slab by slab.

use std::ops::Range;

use rayspin_core::{C32, Error, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::variant::Work;
use rayspin_kernels::{espirit, vector, walsh};
use rayspin_linop::{CoilMaps, MapsBuilder};

use super::espirit::Reproducing;
use super::{EspiritOptions, Sensitivities, centre_of};

/// How maps are made and kept where a GPU has no room for all of them. An image without z, or with one plane,
/// is one slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Planes of z that are solved at once, at least 1.
    pub planes: usize,
    /// Coils whose maps come to the GPU at once, at least 1: [`MapsBuilder::new`].
    pub coils: usize,
}

/// Sizes along z, y, x of an image without or with z.
pub(crate) fn zyx(shape: &[usize]) -> [usize; 3] {
    let missing = 3 - shape.len().min(3);
    std::array::from_fn(|axis| axis.checked_sub(missing).map_or(1, |axis| shape[axis]))
}

/// The slabs of `planes` planes of `nz`.
fn slabs(nz: usize, planes: usize) -> impl Iterator<Item = Range<usize>> {
    let planes = planes.max(1);
    (0..nz).step_by(planes).map(move |z| z..(z + planes).min(nz))
}

/// Walsh's maps of the coil images that `maps` holds, which they replace slab by slab: the images that the
/// next slab's windows reach back to are kept on the device.
pub(super) fn walsh(mut maps: MapsBuilder<f32>, planes: usize) -> Result<CoilMaps<f32>> {
    let (device, coils) = (maps.device().clone(), maps.shape()[0]);
    let [nz, ny, nx] = zyx(&maps.shape()[1..]);
    let plane = ny * nx;
    let radius = walsh::DEFAULT_RADIUS;
    let array = |planes: usize| Array::zeros(&device, &[coils, planes, ny, nx]);

    let mut whole = walsh::Covariance::new(&device, coils)?;
    for slab in slabs(nz, planes) {
        let mut images = array(slab.len())?;
        maps.get(slab.start * plane..slab.end * plane, &mut images, 0)?;
        whole.add(&images)?;
    }
    let reference = whole.principal()?;
    drop(whole);

    let mut before: Option<Array<C32>> = None;
    for slab in slabs(nz, planes) {
        let reached = slab.start.saturating_sub(radius)..(slab.end + radius).min(nz);
        let mut images = array(reached.len())?;
        if let Some(before) = before.take() {
            vector::copy_box(&before, &[0; 4], &mut images, &[0; 4], before.shape())?;
        }
        let there = slab.start - reached.start;
        maps.get(slab.start * plane..reached.end * plane, &mut images, there * plane)?;
        let solved = walsh::slab(&images, there..there + slab.len(), radius, &reference)?;
        maps.put(0..coils, slab.start * plane..slab.end * plane, &solved, 0)?;
        drop(solved);
        if slab.end < nz {
            let kept = slab.end.saturating_sub(radius)..slab.end;
            let mut copy = array(kept.len())?;
            let from = [0, kept.start - reached.start, 0, 0];
            vector::copy_box(&images, &from, &mut copy, &[0; 4], &[coils, kept.len(), ny, nx])?;
            before = Some(copy);
        }
    }
    maps.finish()
}

/// ESPIRiT's maps on a grid of `shape`.
pub(super) fn espirit(
    operator: &Reproducing,
    shape: &[usize],
    options: &EspiritOptions,
    cut: Cut,
) -> Result<CoilMaps<f32>> {
    let coils = operator.phase.len();
    let device = operator.phase.device();
    let [nz, ny, nx] = zyx(shape);
    let mut maps = MapsBuilder::new(device, &[&[coils], shape].concat(), Some(cut.coils))?;
    for slab in slabs(nz, cut.planes) {
        let voxels = slab.start * ny * nx..slab.end * ny * nx;
        let Reproducing { correlation, phase } = operator;
        let solved = espirit::slab(correlation, phase, [nz, ny, nx], slab, 1, options.crop)?;
        maps.put(0..coils, voxels, &solved, 0)?;
    }
    maps.finish()
}

/// Errors: several sets of maps, which are not cut.
pub(super) fn expect_one_set(options: &EspiritOptions) -> Result<()> {
    if options.sets > 1 {
        return Err(Error::value("sets of maps", "1 where a GPU has no room for all maps", options.sets));
    }
    Ok(())
}

/// Memory and work of making cut maps, beside the maps themselves. [`CoilMaps::bytes_needed`] states the
/// bytes of the maps. The maps take their pinned memory from the start. They take their places on the device
/// only at the end, when the bytes stated here are free again. Maps that come out resident take their bytes
/// of the device from the start.
#[derive(Debug, Clone, Copy)]
pub struct CutNeeds {
    /// Bytes of the device's memory while a grid's coil images are made. For samples off the grid they are an
    /// image, and what the transform of the samples takes.
    pub images: u64,
    /// Bytes of the device's memory while slabs are solved.
    pub solving: u64,
    /// Bytes of the host beside a GPU.
    pub host: u64,
    /// Work of all voxels.
    pub work: Work,
}

/// What [`from_grid`](super::from_grid) and [`from_samples`](super::from_samples) take for cut maps of
/// `coils` on a grid of `shape`, from a centre of `width`.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_mri::maps::{Cut, Sensitivities, cut_needs};
///
/// let device = Device::cpu()?;
/// let needs = |planes| cut_needs(&device, Sensitivities::Walsh, 24, 8, &[64, 64, 64], Cut { planes, coils: 2 });
/// assert!(needs(4).solving <= needs(32).solving);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn cut_needs(
    device: &Device,
    how: Sensitivities,
    width: usize,
    coils: usize,
    shape: &[usize],
    cut: Cut,
) -> CutNeeds {
    const COMPLEX: u64 = size_of::<C32>() as u64;
    let [nz, ny, nx] = zyx(shape);
    let planes = cut.planes.clamp(1, nz.max(1));
    let of_planes = |planes: usize| COMPLEX * (coils * planes.min(nz) * ny * nx) as u64;
    let region: usize = shape.iter().map(|&n| centre_of(n, width).len()).product();
    match how {
        Sensitivities::Espirit(options) => {
            let (host, gpu, work) =
                super::espirit::needs(device, &options, width, coils, shape, Some(planes));
            CutNeeds { images: COMPLEX * (coils * region) as u64, solving: gpu, host, work }
        }
        Sensitivities::Walsh => {
            let (scratch, _) = walsh::slab_needs_on(device, coils, shape, planes);
            let (_, work) = walsh::needs_on(device, coils, shape);
            let stored = of_planes(planes + 2 * walsh::DEFAULT_RADIUS);
            let window = (size_of::<f32>() * region) as u64;
            let image = COMPLEX * (nz * ny * nx) as u64;
            let regions = COMPLEX * (coils * region) as u64;
            CutNeeds {
                images: regions + (regions + window).max(image),
                solving: stored + of_planes(planes) + scratch,
                host: 0,
                work,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, ArrayD, IxDyn};
    use rayspin_core::Trajectory;
    use rayspin_device::Backend;
    use rayspin_kernels::{nudft, vector};

    use super::*;
    use crate::maps::{Centre, NonCartesian, centre, from_grid, from_samples};

    /// Coil images `[coil, z, y, x]` (or without z): smooth coils of an object.
    fn images(device: &Device, shape: &[usize]) -> Array<C32> {
        let [nz, ny, nx] = zyx(&shape[1..]);
        let value = |at: usize| {
            let at_axis = |at: usize, n: usize| (at % n) as f32 / n as f32 - 0.5;
            let (x, y) = (at_axis(at, nx), at_axis(at / nx, ny));
            let (z, coil) = (at_axis(at / nx / ny, nz.max(2)), (at / (nx * ny * nz)) as f32);
            let inside = if x * x + y * y + z * z < 0.2 { 1.0 + x - 0.5 * y } else { 0.0 };
            C32::from_polar(inside * (1.0 + 0.6 * (coil + 2.0 * x + y - z).cos()), coil * 0.9 + 1.5 * x + z)
        };
        let values = (0..shape.iter().product()).map(value).collect();
        Array::from_vec(device, shape, values).unwrap()
    }

    fn distance(found: &CoilMaps<f32>, wanted: &CoilMaps<f32>) -> f64 {
        let (found, wanted) = (found.to_host().unwrap(), wanted.to_host().unwrap());
        assert_eq!(found.shape(), wanted.shape());
        let apart: f64 = found.iter().zip(&wanted).map(|(a, b)| f64::from((a - b).norm_sqr())).sum();
        (apart / wanted.iter().map(|v| f64::from(v.norm_sqr())).sum::<f64>()).sqrt()
    }

    /// The most device memory that `work` takes, and what is taken afterwards, beside what was there before.
    fn taken<O>(device: &Device, work: impl FnOnce() -> O) -> (u64, O) {
        let Backend::Cuda(cuda) = device.backend() else { return (0, work()) };
        let before = cuda.memory_used().0;
        cuda.reset_peak();
        let out = work();
        (cuda.memory_used().1 - before, out)
    }

    const METHODS: [Sensitivities; 2] = [
        Sensitivities::Walsh,
        Sensitivities::Espirit(EspiritOptions { kernel: 4, threshold: 0.01, crop: 0.6, sets: 1 }),
    ];

    #[test]
    fn cut_maps_of_a_grid_are_the_whole_ones() {
        for device in rayspin_emu::devices().unwrap() {
            for shape in [&[5, 11, 10, 12][..], &[4, 12, 14]] {
                let mut kspace = images(&device, shape);
                let fft =
                    rayspin_kernels::fft::Fft::new(&device, &shape[1..], rayspin_kernels::fft::Norm::Unitary);
                fft.unwrap().forward(&mut kspace).unwrap();
                let sampled = ArrayD::from_elem(IxDyn(&shape[1..]), true);
                for how in METHODS {
                    let found = Centre::of_grid(&sampled, Some(8), Some(how)).unwrap();
                    let region = || centre(&kspace, found.width).unwrap();
                    let whole = from_grid(region(), &shape[1..], &found, None).unwrap();
                    assert!(whole.is_resident());
                    for (planes, coils) in [(1, 1), (4, 1), (3, 2), (20, 1)] {
                        let cut = Cut { planes, coils };
                        let (peak, maps) =
                            taken(&device, || from_grid(region(), &shape[1..], &found, Some(cut)).unwrap());
                        let placed = CoilMaps::<f32>::bytes_needed(&device, shape, Some(coils)).unwrap();
                        assert_eq!(maps.is_resident(), placed.1 == 0);
                        let apart = distance(&maps, &whole);
                        assert!(
                            apart < 1e-5,
                            "{how:?} {shape:?} {cut:?}: {apart:e} on {}",
                            device.describe()
                        );
                        let needs = cut_needs(&device, how, found.width, shape[0], &shape[1..], cut);
                        let stated =
                            needs.images.max(needs.solving) + if maps.is_resident() { placed.0 } else { 0 };
                        let stated = stated.max(placed.0);
                        assert!(peak <= stated, "{how:?} {shape:?} {cut:?}: {peak} of {stated}");
                        assert!(
                            peak == 0 || 2 * peak > stated,
                            "{how:?} {shape:?} {cut:?}: {peak} of {stated}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn cut_maps_of_samples_anywhere_are_the_whole_ones() {
        let matrix = [9, 8, 10];
        let points = Array2::from_shape_fn((900, 3), |(i, d)| {
            let (at, n) = ([i / 100, i / 10 % 10, i % 10][2 - d], matrix[2 - d]);
            (at as f64 + 0.2 * (i as f64).sin()) % n as f64 - (n / 2) as f64
        });
        let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
        for device in rayspin_emu::devices().unwrap() {
            let coils = images(&device, &[5, 9, 8, 10]);
            let mut samples = Array::zeros(&device, &[5, 900]).unwrap();
            nudft::forward(&trajectory, &coils, &mut samples).unwrap();
            let mut density = Array::zeros(&device, &[900]).unwrap();
            density.fill(1.0f32).unwrap();
            let make = |how, cut| {
                let input = NonCartesian {
                    trajectory: &trajectory,
                    matrix: &matrix,
                    coils: 5,
                    of_coil: &mut |coil| {
                        let mut one = Array::zeros(&device, &[1, 900])?;
                        vector::copy_part(&samples, coil * 900, &mut one, 0, 900)?;
                        Ok(one)
                    },
                    density: &density,
                    on_host: false,
                };
                from_samples(input, Some(8), Some(how), cut).unwrap().0
            };
            for how in METHODS {
                let whole = make(how, None);
                let maps = make(how, Some(Cut { planes: 4, coils: 2 }));
                assert_eq!(maps.is_resident(), matches!(device.backend(), Backend::Cpu(_)));
                let apart = distance(&maps, &whole);
                assert!(apart < 1e-5, "{how:?}: {apart:e} on {}", device.describe());
            }
        }
    }

    #[test]
    fn several_sets_of_maps_are_not_cut() {
        let device = Device::cpu_with_threads(1).unwrap();
        let how = Sensitivities::Espirit(EspiritOptions { sets: 2, ..EspiritOptions::default() });
        let centre = Centre { width: 12, how };
        let cut = Some(Cut { planes: 1, coils: 1 });
        assert!(from_grid(images(&device, &[3, 12, 12]), &[12, 12], &centre, cut).is_err());
    }
}
