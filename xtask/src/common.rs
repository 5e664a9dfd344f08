//! Rehearses common runs on a GPU driver that runs nothing, to learn which programs they load. These programs
//! are worth compiling beforehand.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use ndarray::{Array2, Array3, ArrayD, s};
use num_complex::Complex;
use rayspin_core::{Detector, Geometry, Image, Monitor, Orbit, ProjectionGeometry, Real, Trajectory};
use rayspin_ct::recon::GridOptions;
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::cuda::{NullDriver, Program, Properties};
use rayspin_device::{Array, Device};
use rayspin_filter::Filters;
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::nufft::{Nufft, Options};
use rayspin_kernels::render::{Camera, Knot, Lens, Mode, Renderer, Scene, Surface, Transfer};
use rayspin_mri::methods::Methods;
use rayspin_mri::recon::{ReconOptions, rehearse};
use rayspin_mri::scan::{Frame, Label, Samples};
use rayspin_mri::simulate::trajectory::{Grid, Hardware, Sampling, SphereOrder, SpokeAngles};

/// Voxels along each axis of slices, and of volumes `[z, y, x]`.
const SLICES: [usize; 12] = [128, 160, 192, 208, 224, 256, 288, 320, 352, 384, 448, 512];
const VOLUMES: [[usize; 3]; 12] = [
    [64; 3],
    [96; 3],
    [128; 3],
    [160; 3],
    [192; 3],
    [208; 3],
    [224; 3],
    [256; 3],
    [32, 256, 256],
    [64, 256, 256],
    [128, 256, 256],
    [192, 256, 256],
];
/// Numbers of coils. Every method is rehearsed with the first number, CG-SENSE with all of them. On grids of
/// volumes no program depends on the number.
const COILS: [usize; 8] = [8, 1, 4, 12, 16, 20, 24, 32];
const COILS_OF_VOLUMES: [usize; 3] = [8, 1, 12];
const COILS_OF_GRIDS: usize = 2;
/// Runs over volumes at once: some hold a few GiB.
const VOLUMES_AT_ONCE: usize = 4;
/// Columns of a detector. Its rows and the number of views only decide between programs of fixed forms.
const COLUMNS: [usize; 10] = [256, 367, 384, 512, 736, 768, 888, 1024, 1536, 2048];
const VIEWS: usize = 64;
/// Tolerances of plans in Python, and grids along an axis of 1, 2 and 3 dimensions.
const TOLERANCES: [f64; 7] = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-9, 1e-12];
const GRIDS: [&[usize]; 3] = [&[1000, 1024, 4096], &[128, 256, 320, 512], &[64, 128, 256]];
const ITEMS: [usize; 4] = [1, 2, 4, 8];

type Job = Box<dyn Fn(&Device) + Send + Sync>;

/// The programs that common runs load on a GPU with these properties. With `few`, only the programs of a
/// handful of small runs.
pub(crate) fn programs(properties: &Properties, few: bool) -> Result<Vec<Program>> {
    let mut jobs = slices(few);
    jobs.extend(ct(few)?);
    let host = Device::cpu()?;
    let threads = host.cpu_side().threads();
    let mut all = Vec::new();
    if !few {
        jobs.extend(transforms());
        jobs.extend(images()?);
        all.append(&mut loaded(&volumes(), properties, &host, threads.min(VOLUMES_AT_ONCE)));
    }
    all.append(&mut loaded(&jobs, properties, &host, threads));
    let mut seen = HashSet::new();
    all.retain(|program| seen.insert((program.name, program.text.len(), program.defines.clone())));
    Ok(all)
}

/// The programs that these jobs load. A program may be listed more than once.
fn loaded(jobs: &[Job], properties: &Properties, host: &Device, threads: usize) -> Vec<Program> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let driver = Arc::new(NullDriver::new(properties.clone(), true));
            job(&Device::with_driver(driver.clone(), host.clone()));
            found.lock().unwrap_or_else(PoisonError::into_inner).append(&mut driver.take_programs());
        }
    };
    // A thread of a pool that waits for another pool would begin further jobs on its stack.
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Slices on grids and on spokes.
fn slices(few: bool) -> Vec<Job> {
    let (sizes, coils) = if few { (&SLICES[..1], &COILS[..1]) } else { (&SLICES[..], &COILS[..]) };
    let mut jobs = Vec::new();
    for &n in sizes {
        for &coils in coils {
            let all = coils == COILS[0];
            for acceleration in [1, 2] {
                jobs.push(methods(all, move || Ok(on_grid(&[n, n], coils, acceleration))));
            }
            for spokes in [n / 4, 3 * n / 2] {
                let sampling = Sampling::Radial { spokes, angles: SpokeAngles::Golden };
                jobs.push(methods(all, move || on_trajectory(&[n, n], coils, &sampling)));
            }
        }
    }
    jobs
}

/// Volumes on grids, and on spokes or stacks of them.
fn volumes() -> Vec<Job> {
    let mut jobs = Vec::new();
    for shape in VOLUMES {
        for acceleration in [1, 2] {
            jobs.push(methods(true, move || Ok(on_grid(&shape, COILS_OF_GRIDS, acceleration))));
        }
        for coils in COILS_OF_VOLUMES {
            let [nz, n, _] = shape;
            let sampling = match nz == n {
                true => Sampling::Kooshball { spokes: n * n / 64, order: SphereOrder::GoldenMeans },
                false => Sampling::StackOfStars { spokes: n / 16, angles: SpokeAngles::Golden },
            };
            jobs.push(methods(coils == COILS_OF_VOLUMES[0], move || on_trajectory(&shape, coils, &sampling)));
        }
    }
    jobs
}

/// Every method with its defaults, or CG-SENSE alone.
fn methods(all: bool, frame: impl Fn() -> Result<Frame> + Send + Sync + 'static) -> Job {
    Box::new(move |device| {
        let Ok(frame) = frame() else { return };
        for method in Methods::default().iter().filter(|m| all || m.about().name == "cg-sense") {
            // A method that does not take these samples loads nothing.
            let options = ReconOptions::with_method(method.copy().into());
            rehearse(device, &frame, &ReconOptions { keep_maps: false, ..options });
        }
    })
}

/// Zeros on a grid, with every `acceleration`-th line and the centre measured.
fn on_grid(matrix: &[usize], coils: usize, acceleration: usize) -> Frame {
    let mut sampled = ArrayD::from_elem(matrix, false);
    let (lines, n) = (matrix.len() - 2, matrix[matrix.len() - 2]);
    for line in (0..n).filter(|line| line % acceleration == 0 || line.abs_diff(n / 2) < 12) {
        sampled.index_axis_mut(ndarray::Axis(lines), line).fill(true);
    }
    let kspace = ArrayD::zeros([&[coils], matrix].concat());
    frame(matrix, Samples::Cartesian { kspace, sampled })
}

fn on_trajectory(matrix: &[usize], coils: usize, sampling: &Sampling) -> Result<Frame> {
    let mut along = [1; 3];
    along.iter_mut().zip(matrix.iter().rev()).for_each(|(to, &n)| *to = n);
    let grid = Grid { dims: matrix.len(), matrix: along, fov_mm: [220.0; 3], oversampling: 2 };
    let layout = sampling.layout(&grid, &Hardware::default(), 0, 0)?;
    let samples: usize = layout.shots.iter().map(|shot| shot.points.nrows()).sum();
    let mut points = Array2::zeros((samples, matrix.len()));
    let mut first = 0;
    for shot in &layout.shots {
        let end = first + shot.points.nrows();
        points.slice_mut(s![first..end, ..]).assign(&shot.points);
        first = end;
    }
    let trajectory = Trajectory::from_cycles_per_fov(points)?;
    Ok(frame(matrix, Samples::NonCartesian { trajectory, data: Array2::zeros((coils, samples)) }))
}

fn frame(matrix: &[usize], samples: Samples) -> Frame {
    Frame {
        label: Label::default(),
        matrix: matrix.to_vec(),
        geometry: Geometry::default(),
        samples,
        times: None,
        calibration: None,
        interpolated: false,
    }
}

/// Every method with its defaults on parallel beams, fans and cones.
fn ct(few: bool) -> Result<Vec<Job>> {
    let detector = |rows, columns, radius_mm| Detector { rows, columns, pitch_mm: [1.0; 2], radius_mm };
    let distant = |columns: usize| Orbit {
        source_to_axis_mm: Some(2.0 * columns as f64),
        axis_to_detector_mm: columns as f64,
        ..Orbit::default()
    };
    let mut scans = Vec::new();
    for &columns in if few { &COLUMNS[..1] } else { &COLUMNS[..] } {
        let half_turn = Orbit::default().arc(0.0, std::f64::consts::PI, VIEWS);
        let turn = distant(columns).turn(VIEWS);
        let curved = Some(3.0 * columns as f64);
        scans.push(ProjectionGeometry::orbit(detector(1, columns, None), &half_turn)?);
        for rows in [1, 16] {
            scans.push(ProjectionGeometry::orbit(detector(rows, columns, None), &turn)?);
            scans.push(ProjectionGeometry::orbit(detector(rows, columns, curved), &turn)?);
        }
    }
    let mut jobs: Vec<Job> = Vec::new();
    for geometry in scans {
        jobs.push(Box::new(move |device| {
            let Ok(grid) = rayspin_ct::recon::grid(&geometry, &GridOptions::default()) else { return };
            for method in rayspin_ct::methods::Methods::default().iter() {
                let mut options =
                    rayspin_ct::recon::ReconOptions::new(rayspin_ct::methods::Fbp::default(), grid);
                options.method = method.copy().into();
                let lines = Array3::zeros(geometry.shape());
                // A method that does not take these rays loads nothing.
                let _ =
                    rayspin_ct::recon::reconstruct(device, lines, &geometry, &options, &Monitor::silent());
            }
        }));
    }
    Ok(jobs)
}

/// Plans of NUFFTs and FFTs in both precisions.
fn transforms() -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for tolerance in TOLERANCES {
        for (lengths, dims) in GRIDS.iter().zip(1..) {
            jobs.push(Box::new(move |device| {
                for &n in *lengths {
                    let matrix = vec![n; dims];
                    let cells: usize = matrix.iter().product();
                    nufft::<f32>(device, &matrix, cells.min(10_000), tolerance);
                    nufft::<f64>(device, &matrix, cells.min(10_000), tolerance);
                }
            }));
        }
    }
    // The grids of images, at each upsampling: which one a plan takes depends on the number of samples.
    let matrices = SLICES.iter().map(|&n| vec![n; 2]).chain(VOLUMES.iter().map(|shape| shape.to_vec()));
    for matrix in matrices {
        jobs.push(Box::new(move |device| nufft::<f32>(device, &matrix, 1000, 1e-4)));
    }
    jobs.push(Box::new(|device| {
        for (lengths, dims) in GRIDS.iter().zip(1..) {
            for &n in *lengths {
                fft::<f32>(device, &vec![n; dims]);
                fft::<f64>(device, &vec![n; dims]);
            }
        }
    }));
    jobs
}

fn zeros<R: Real>(device: &Device, shape: &[usize]) -> Option<Array<Complex<R>>> {
    Array::zeros(device, shape).ok()
}

/// Points spread over ±`half` along each axis.
fn points(samples: usize, dims: usize, half: f64) -> Array2<f64> {
    // Multiples of irrational numbers fill a box evenly.
    let steps = [0.819_172_513_396, 0.671_043_606_704, 0.549_700_477_901];
    Array2::from_shape_fn((samples, dims), |(i, d)| half * (2.0 * (i as f64 * steps[d]).fract() - 1.0))
}

fn nufft<R: SimdReal>(device: &Device, matrix: &[usize], samples: usize, tolerance: f64) {
    let dims = matrix.len();
    let shortest = matrix.iter().copied().min().unwrap_or(1) as f64;
    let Ok(trajectory) = Trajectory::from_cycles_per_fov(points(samples, dims, 0.49 * shortest)) else {
        return;
    };
    for upsampling in [None, Some(2.0), Some(1.5), Some(1.25)] {
        // A precision that cannot reach the tolerance has no plan.
        let options = Options { tolerance, upsampling };
        let Ok(plan) = Nufft::<R>::new(device, &trajectory, matrix, &options) else { continue };
        for items in ITEMS {
            let images = zeros::<R>(device, &[&[items], matrix].concat());
            let Some((mut images, mut data)) = images.zip(zeros::<R>(device, &[items, samples])) else {
                return;
            };
            let _ = plan.forward(&images, &mut data).and_then(|()| plan.adjoint(&data, &mut images));
        }
    }
}

fn fft<R: SimdReal>(device: &Device, shape: &[usize]) {
    if let (Ok(fft), Some(mut data)) = (Fft::<R>::new(device, shape, Norm::None), zeros::<R>(device, shape)) {
        let _ = fft.forward(&mut data).and_then(|()| fft.inverse(&mut data));
    }
}

/// Every mode of rendering, and every filter with its defaults.
fn images() -> Result<Vec<Job>> {
    let knot = |value, opacity| Knot { value, colour: [1.0; 3], opacity };
    let modes = vec![
        Mode::XRay,
        Mode::Maximum { missed: 0.0 },
        Mode::Volume(Transfer::new(vec![knot(0.0, 0.0), knot(1.0, 0.5)])?),
        Mode::Surface(Surface::of(0.5)),
    ];
    let render = move |device: &Device| -> Result<()> {
        let grid = rayspin_core::VolumeGrid::new([64; 3], [1.0; 3], [0.0; 3])?;
        let renderer = Renderer::new(&grid, Array::zeros(device, &[64; 3])?)?;
        for lens in [Lens::Perspective { field_of_view: 0.5 }, Lens::Orthographic { width_mm: 100.0 }] {
            let camera = Camera::new(lens, [0.0, -300.0, 0.0], [0.0; 3], [0.0, 0.0, 1.0], [256, 256])?;
            for mode in &modes {
                let scene = Scene::new(camera.clone(), mode.clone());
                renderer.draw(&scene, &mut Array::zeros(device, &scene.shape())?)?;
            }
        }
        Ok(())
    };
    let filter = |device: &Device| -> Result<()> {
        for filter in Filters::default().iter() {
            for shape in [[1, 256, 256], [64, 64, 64]] {
                let image = Image::new(ArrayD::zeros(&shape[..]), Geometry::default())?;
                // A filter without defaults refuses.
                let _ = rayspin_filter::run(device, &[filter.copy().into()], image, &Monitor::silent());
            }
        }
        Ok(())
    };
    Ok(vec![Box::new(move |device| drop(render(device))), Box::new(move |device| drop(filter(device)))])
}
