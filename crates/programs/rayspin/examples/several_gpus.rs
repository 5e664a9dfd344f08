//! Times of scans in memory on several GPUs: frames of a series, an iteration of CG-SENSE whose coils go to
//! all GPUs, sums of vectors, and FDK.
//!
//! ```text
//! cargo run --release -p rayspin --example several_gpus -- cuda:0 cuda:0,1
//! ```
//!
//! Each argument is a list of GPUs, which may name a GPU twice. These variables set sizes; `IMAGE=0`,
//! `FRAMES=0` and `CT=0` leave a part out:
//!
//! | variable | default | sets |
//! |---|---|---|
//! | `IMAGE` | 1 | 0 leaves out the single image |
//! | `SIZE`, `COILS`, `SPOKES` | 256, 32, 20000 | the image: voxels along an axis, coils, spokes |
//! | `ITERATIONS` | 20 | iterations of CG-SENSE, of the image and of each frame |
//! | `FRAMES` | 32 | frames of the series, with half the size, a quarter of the coils and an eighth of the spokes |
//! | `CT` | 1024 | rows and columns of the detector, and voxels along an axis; 720 views at 1024 |

use std::error::Error as AnyError;
use std::sync::Arc;
use std::time::Instant;

use ndarray::{Array2, Array3, Array4, ArrayD};
use rayspin::core::{
    C32, Detector, Error, Geometry, Monitor, Orbit, ProjectionGeometry, Trajectory, VolumeGrid,
};
use rayspin::ct;
use rayspin::device::cpu::prefer_huge_pages;
use rayspin::device::{Array, Device};
use rayspin::kernels::vector::SumAcross;
use rayspin::mri::methods::CgSense;
use rayspin::mri::recon::{Frames, ReconOptions, reconstruct_frame, reconstruct_frames};
use rayspin::mri::scan::{Frame, Label, Samples};

type Result<T> = std::result::Result<T, Box<dyn AnyError>>;

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// `cpu` is a processor of two threads, for trying the program out.
fn devices(list: &str) -> Result<Vec<Device>> {
    let host = Device::cpu()?;
    if list.starts_with("cpu") {
        return list.split(',').map(|_| Ok(Device::cpu_with_threads(2)?)).collect();
    }
    let numbers = list.strip_prefix("cuda:").unwrap_or(list).split(',');
    let open = |text: &str| match text.parse() {
        Ok(ordinal) => Ok(Device::cuda(ordinal, host.clone())?),
        Err(_) => Err(Error::value("list of GPUs", "cuda:N,M", list).into()),
    };
    numbers.map(open).collect()
}

/// Spokes through the centre in all directions, with samples of no meaning: their values change no time.
fn frame(size: usize, coils: usize, spokes: usize) -> Result<Frame> {
    let samples = 2 * size;
    let golden = std::f64::consts::PI * (3.0 - 5f64.sqrt());
    let directions: Vec<[f64; 3]> = (0..spokes)
        .map(|spoke| {
            let z = 1.0 - (2 * spoke + 1) as f64 / spokes as f64;
            let (sin, cos) = (golden * spoke as f64).sin_cos();
            let flat = (1.0 - z * z).sqrt();
            [flat * cos, flat * sin, z]
        })
        .collect();
    let points = Array2::from_shape_fn((spokes * samples, 3), |(row, axis)| {
        let (spoke, sample) = (row / samples, row % samples);
        directions[spoke][axis] * (sample as f64 / samples as f64 - 0.5) * size as f64 * 0.999
    });
    let trajectory = Trajectory::from_cycles_per_fov(points)?;
    let data = Array2::from_shape_fn((coils, spokes * samples), |(coil, i)| {
        C32::new(((coil + i) % 13) as f32 - 6.0, ((coil + 3 * i) % 7) as f32 - 3.0)
    });
    let samples = Samples::NonCartesian { trajectory, data };
    let (matrix, geometry) = (vec![size; 3], Geometry::default());
    Ok(Frame {
        label: Label::default(),
        matrix,
        geometry,
        samples,
        times: None,
        calibration: None,
        interpolated: false,
    })
}

/// A copy in large pages, as readers of files make them.
fn as_read<T: Copy>(values: &[T]) -> Vec<T> {
    let mut copy = Vec::with_capacity(values.len());
    prefer_huge_pages(copy.spare_capacity_mut());
    copy.extend_from_slice(values);
    copy
}

/// A copy of a frame.
fn frame_as_read(frame: &Frame) -> Result<Frame> {
    let mut copy = frame.clone();
    if let Samples::NonCartesian { data, .. } = &mut copy.samples {
        *data = Array2::from_shape_vec(data.dim(), as_read(data.as_slice().unwrap_or_default()))?;
    }
    Ok(copy)
}

fn maps(size: usize, coils: usize) -> Arc<ArrayD<C32>> {
    let maps = Array4::from_shape_fn([coils, size, size, size], |(coil, z, y, x)| {
        let axis = [x, y, z][coil % 3] as f32 / size as f32;
        C32::new(1.0 / (1.0 + axis + coil as f32), axis - 0.5)
    });
    Arc::new(maps.into_dyn())
}

fn options(iterations: usize, maps: &Arc<ArrayD<C32>>, devices: &[Device]) -> ReconOptions {
    let method = CgSense { iterations, tolerance: 0.0, ..CgSense::default() };
    let mut options = ReconOptions { keep_maps: false, ..ReconOptions::of(method) };
    options.maps = Some(maps.clone());
    options.run.beside = devices[1..].to_vec();
    options
}

fn main() -> Result<()> {
    let (size, coils, spokes) = (number("SIZE", 256), number("COILS", 32), number("SPOKES", 20_000));
    let (iterations, frames, detector) = (number("ITERATIONS", 20), number("FRAMES", 32), number("CT", 1024));
    let lists: Vec<(String, Vec<Device>)> =
        std::env::args().skip(1).map(|list| Ok((list.clone(), devices(&list)?))).collect::<Result<_>>()?;
    for (list, devices) in &lists {
        println!("{list}: {}", devices.iter().map(Device::name).collect::<Vec<_>>().join(", "));
    }
    if number("IMAGE", 1) > 0 {
        let (one, maps) = (frame(size, coils, spokes)?, maps(size, coils));
        println!("CG-SENSE, {size}³ voxels, {coils} coils, {} samples a coil", spokes * 2 * size);
        let mut first = None;
        for (list, devices) in &lists {
            image(list, devices, &one, &maps, iterations, &mut first)?;
            if devices.len() > 1 {
                sum(devices, size.pow(3))?;
            }
        }
    }
    if frames > 0 {
        let (size, coils, spokes) = (size / 2, (coils / 4).max(1), spokes / 8);
        let (one, maps) = (frame(size, coils, spokes)?, maps(size, coils));
        println!("{frames} frames of {size}³ voxels, {coils} coils, {} samples a coil", spokes * 2 * size);
        let mut first = None;
        for (list, devices) in &lists {
            series(list, devices, &one, &maps, (frames, iterations), &mut first)?;
        }
    }
    if detector > 0 {
        fdk(&lists, detector, false)?;
        fdk(&lists, detector, true)?;
    }
    Ok(())
}

/// The norm of the difference to what the first list made, as a part of the norm of that.
fn apart(first: &mut Option<Vec<f32>>, made: impl Iterator<Item = f32>) -> f64 {
    // Some of a large volume.
    let made: Vec<f32> = made.step_by(7).collect();
    let first = first.get_or_insert_with(|| made.clone());
    let pairs = made.iter().zip(&*first).map(|(&a, &b)| (f64::from(a), f64::from(b)));
    let [difference, whole] =
        pairs.fold([0.0; 2], |[difference, whole], (a, b)| [difference + (a - b).powi(2), whole + b.powi(2)]);
    (difference / whole).sqrt()
}

fn values(image: &ArrayD<C32>) -> impl Iterator<Item = f32> {
    image.iter().flat_map(|value| [value.re, value.im])
}

/// One image whose coils go to all devices.
fn image(
    list: &str,
    devices: &[Device],
    frame: &Frame,
    maps: &Arc<ArrayD<C32>>,
    iterations: usize,
    first: &mut Option<Vec<f32>>,
) -> Result<()> {
    let (mut seconds, mut each, mut made) = (0.0, 0.0, None);
    // The second round has everything compiled.
    for _ in 0..2 {
        let mut options = options(iterations, maps, devices);
        options.run.coils_beside = true;
        let (frame, monitor) = (frame.clone(), Monitor::silent());
        let start = Instant::now();
        made = Some(reconstruct_frame(&devices[0], frame, Vec::new(), &options, &monitor)?);
        seconds = start.elapsed().as_secs_f64();
        let stages = monitor.stages();
        let solved = stages.iter().find(|(stage, _)| stage == "conjugate gradients");
        each = solved.map_or(0.0, |(_, seconds)| seconds / iterations.max(1) as f64);
    }
    let apart = made.map_or(0.0, |made| apart(first, values(made.image.data())));
    println!(
        "  {list:12} image of {iterations} iterations: {seconds:.3} s, an iteration: {:.3} ms, {apart:.1e} apart",
        each * 1e3
    );
    Ok(())
}

/// Sums of vectors of as many complex numbers.
fn sum(devices: &[Device], len: usize) -> Result<()> {
    let vectors = devices.iter().map(|device| Array::<C32>::zeros(device, &[len]));
    let mut vectors = vectors.collect::<std::result::Result<Vec<_>, _>>()?;
    let mut across = SumAcross::new(devices, len)?;
    let mut times = Vec::new();
    for _ in 0..50 {
        devices.iter().try_for_each(Device::synchronize)?;
        let start = Instant::now();
        across.to_all(&mut vectors.iter_mut().collect::<Vec<_>>())?;
        devices.iter().try_for_each(Device::synchronize)?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let (median, bytes) = (times[times.len() / 2], 8.0 * len as f64);
    let moved = 2.0 * bytes * (devices.len() - 1) as f64 / devices.len() as f64;
    println!(
        "  sum of vectors of {:.0} MB: {:.3} ms ({:.3} to {:.3}), {:.1} GB/s each way",
        bytes / 1e6,
        median * 1e3,
        times[0] * 1e3,
        times[times.len() - 1] * 1e3,
        moved / median / 1e9
    );
    Ok(())
}

/// Frames of a series, each for whichever device is free.
fn series(
    list: &str,
    devices: &[Device],
    frame: &Frame,
    maps: &Arc<ArrayD<C32>>,
    (frames, iterations): (usize, usize),
    first: &mut Option<Vec<f32>>,
) -> Result<()> {
    let labels: Vec<Label> =
        (0..frames as u16).map(|repetition| Label { repetition, ..Label::default() }).collect();
    let options = options(iterations, maps, devices);
    let (mut seconds, mut made) = (Vec::new(), None);
    for _ in 0..3 {
        let mut ready = (0..frames).map(|_| frame_as_read(frame)).collect::<Result<Vec<_>>>()?;
        let mut source = |label, _: &mut Vec<String>| {
            let frame = ready.pop().ok_or_else(|| Error::value("frames", "one more", "none"))?;
            Ok(Frame { label, ..frame })
        };
        let frames = Frames { labels: &labels, slices: &[0], notes: Vec::new() };
        let start = Instant::now();
        made = Some(reconstruct_frames(&devices[0], frames, &mut source, &options, &Monitor::silent())?);
        seconds.push(start.elapsed().as_secs_f64());
    }
    let seconds = seconds[1].min(seconds[2]);
    let apart = made.map_or(0.0, |made| apart(first, values(made.image.data())));
    println!(
        "  {list:12} {seconds:.3} s, a frame: {:.2} ms, {apart:.1e} apart",
        seconds * 1e3 / frames as f64
    );
    Ok(())
}

/// FDK of a cubic volume, from line integrals in memory to the volume in memory.
fn fdk(lists: &[(String, Vec<Device>)], size: usize, truncated: bool) -> Result<()> {
    let views = 720 * size / 1024;
    let pitch = 400.0 / size as f64;
    let detector = Detector { rows: size, columns: size, pitch_mm: [2.0 * pitch; 2], radius_mm: None };
    let orbit = Orbit { source_to_axis_mm: Some(1000.0), axis_to_detector_mm: 1000.0, ..Orbit::default() };
    let geometry = ProjectionGeometry::orbit(detector, &orbit.turn(views))?;
    // The object ends in air, or beyond the detector.
    let half = if truncated { size } else { size * 2 / 5 };
    let patterns: Vec<_> = (0..11)
        .map(|pattern| {
            Array2::from_shape_fn((size, size), |(row, column)| {
                let value = 0.5 + ((pattern + 3 * row + 5 * column) % 11) as f32 * 1e-2;
                if column.abs_diff(size / 2) < half { value } else { 0.0 }
            })
        })
        .collect();
    let mut lines = Array3::zeros((views, size, size));
    let of_views = lines.outer_iter_mut().zip(patterns.iter().cycle());
    of_views.for_each(|(mut lines, pattern)| lines.assign(pattern));
    let grid = VolumeGrid::new([size; 3], [pitch / 2f64.sqrt(); 3], [0.0; 3])?;
    let object = if truncated { "of an object that is wider" } else { "that see the whole object" };
    println!("FDK, {size}³ voxels, {views} views of {size} x {size} {object}");
    let mut first = None;
    for (list, devices) in lists {
        let mut options = ct::recon::ReconOptions::new(ct::methods::Fdk::default(), grid);
        options.beside = devices[1..].to_vec();
        let (mut seconds, mut made) = (Vec::new(), None);
        for _ in 0..3 {
            let values = as_read(lines.as_slice().unwrap_or_default());
            let lines = Array3::from_shape_vec(lines.dim(), values)?;
            // The volume before goes first.
            drop(made.take());
            let start = Instant::now();
            made = Some(ct::recon::reconstruct(&devices[0], lines, &geometry, &options, &Monitor::silent())?);
            seconds.push(start.elapsed().as_secs_f64());
        }
        let apart = made.map_or(0.0, |made| apart(&mut first, made.volume.iter().copied()));
        println!("  {list:12} {:.3} s, {apart:.1e} apart", seconds[1].min(seconds[2]));
    }
    Ok(())
}
