//! Whole reconstructions as rows: samples in memory of the host to an image in memory of the host.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ndarray::ArrayD;
use rayspin::core::{C32, Error, Monitor, Progress, Result};
use rayspin::device::{Backend, BackendKind, Device};
use rayspin::mri::methods::{CgSense, Gridding};
use rayspin::mri::recon::{ReconOptions, reconstruct_frame};
use rayspin::mri::scan::{Frame, FrameOptions, Samples};
use rayspin::mri::simulate::trajectory::{CartesianPattern, Sampling};
use rayspin::mri::simulate::{SimulateOptions, simulate};
use rayspin_lab::application::{Bottleneck, Kind, Part, Resident, Row, Side};
use rayspin_shell::interrupt::STOP;

use super::{ApplicationOutcome, Processors};

/// A simulated scan and how its image is made.
pub(super) struct Reconstruction {
    /// The row's name.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// The stage that is the row's kernel.
    kernel: &'static str,
    /// Voxels along each axis unless asked otherwise.
    usual: usize,
    make: fn(usize) -> (SimulateOptions, ReconOptions),
}

/// Voxels along each axis that scans are simulated for.
const SIZES: std::ops::RangeInclusive<usize> = 16..=512;
/// Iterations, all of them made.
const ITERATIONS: usize = 30;
/// The stage of iterations.
const CG: &str = "conjugate gradients";
/// The signal-to-noise ratio of the scans.
const SNR: f64 = 60.0;
/// How far the images of both processors may be from each other, ‖a − b‖ / ‖b‖: less than noise is.
const TOLERANCE: f64 = 1e-2;
/// Seconds of a reconstruction by a CPU that is not made again to warm up.
const ENOUGH: f64 = 5.0;
/// What is between the stages: samples on their way to the device above all.
const REST: &str = "transfers, rest";

/// Every reconstruction that has a row.
pub(super) const ALL: [Reconstruction; 4] = [
    Reconstruction {
        name: "recon-gridding",
        title: "Gridding of a fully sampled spiral scan of 8 coils: density, NUFFT, root of the sum of squares",
        kernel: "gridding",
        usual: 256,
        make: |n| (spiral(n, 24, 1), ReconOptions::of(Gridding::default())),
    },
    Reconstruction {
        name: "recon-least-squares",
        title: "Least squares of a spiral scan of 8 coils and half of the samples: CG on the Toeplitz operator",
        kernel: CG,
        usual: 256,
        make: |n| (spiral(n, 12, 2), iterated()),
    },
    Reconstruction {
        name: "recon-cartesian",
        title: "CG-SENSE of a Cartesian scan of 8 coils and every third line",
        kernel: CG,
        usual: 256,
        make: |n| {
            let pattern = CartesianPattern::Uniform { acceleration: [3, 1], calibration: n.min(24) };
            (SimulateOptions { sampling: Sampling::Cartesian(pattern), ..slice(n) }, iterated())
        },
    },
    Reconstruction {
        name: "recon-volume",
        title: "Least squares of a stack of spirals of 8 coils and half of the samples: CG on the Toeplitz operator",
        kernel: CG,
        usual: 128,
        make: |n| {
            let sampling = Sampling::StackOfSpirals { interleaves: 8, acceleration: 2 };
            (
                SimulateOptions { dims: 3, matrix: [n; 3], fov_mm: [220.0; 3], sampling, ..slice(n) },
                iterated(),
            )
        },
    },
];

fn slice(n: usize) -> SimulateOptions {
    SimulateOptions { matrix: [n, n, 1], snr: Some(SNR), seed: 1, ..SimulateOptions::default() }
}

fn spiral(n: usize, interleaves: usize, acceleration: usize) -> SimulateOptions {
    SimulateOptions { sampling: Sampling::Spiral { interleaves, acceleration }, ..slice(n) }
}

/// As many iterations on one processor as on the other.
fn iterated() -> ReconOptions {
    ReconOptions::of(CgSense { iterations: ITERATIONS, tolerance: 0.0, ..CgSense::default() })
}

impl Reconstruction {
    /// Voxels along each axis. Errors: not one number, or one that no scan is simulated for.
    pub(super) fn size(&self, size: Option<&[usize]>) -> Result<usize> {
        match size {
            None => Ok(self.usual),
            Some(&[n]) if SIZES.contains(&n) => Ok(n),
            Some(other) => Err(Error::value(
                format!("size of {}", self.name),
                format!("voxels along each axis, one number from {} to {}", SIZES.start(), SIZES.end()),
                format!("{other:?}"),
            )),
        }
    }
}

/// Seconds of stages, each with the work that it left to the device.
struct Stages<'a> {
    device: &'a Device,
    began: Mutex<Instant>,
    ended: Mutex<Vec<(String, f64)>>,
}

impl<'a> Stages<'a> {
    fn new(device: &'a Device) -> Self {
        Self { device, began: Mutex::new(Instant::now()), ended: Mutex::default() }
    }
}

impl Progress for Stages<'_> {
    fn begin(&self, _: &str, _: usize) {
        // A device that fails tells the next one who asks.
        let _ = self.device.synchronize();
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn step(&self, _: &str) {}

    fn end(&self, stage: &str, _: f64) {
        let _ = self.device.synchronize();
        let seconds = self.began.lock().unwrap_or_else(PoisonError::into_inner).elapsed().as_secs_f64();
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        match ended.iter_mut().find(|(name, _)| name == stage) {
            Some((_, total)) => *total += seconds,
            None => ended.push((stage.to_owned(), seconds)),
        }
    }

    fn note(&self, _: &str) {}
}

/// A reconstruction on one processor.
struct Timed {
    seconds: f64,
    stages: Vec<(String, f64)>,
    image: ArrayD<C32>,
}

impl Timed {
    fn stage(&self, name: &str) -> Option<f64> {
        self.stages.iter().find(|(stage, _)| stage == name).map(|(_, seconds)| *seconds)
    }

    fn parts(&self) -> Vec<Part> {
        let staged: f64 = self.stages.iter().map(|(_, seconds)| seconds).sum();
        let rest = (REST.to_owned(), (self.seconds - staged).max(0.0));
        let stages = self.stages.iter().cloned().chain([rest]);
        stages.map(|(name, seconds)| Part { name, seconds }).collect()
    }

    fn side(&self, kernel: &str, seconds: f64, bytes: Option<(u64, u64)>) -> Side {
        Side {
            kernel: kernel.to_owned(),
            kernel_seconds: seconds,
            application_seconds: Some(self.seconds),
            parts: self.parts(),
            bytes,
        }
    }
}

fn once(device: &Device, frame: &Frame, options: &ReconOptions) -> Result<Timed> {
    let frame = frame.clone();
    let stages = Stages::new(device);
    device.synchronize()?;
    let began = Instant::now();
    let monitor = Monitor::new(&stages, Some(&STOP));
    let image = reconstruct_frame(device, frame, Vec::new(), options, &monitor)?.image;
    device.synchronize()?;
    let seconds = began.elapsed().as_secs_f64();
    let stages = stages.ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Timed { seconds, stages, image: image.into_data() })
}

/// ‖a − b‖ / ‖b‖.
fn distance(a: &ArrayD<C32>, b: &ArrayD<C32>) -> f64 {
    if a.shape() != b.shape() {
        return f64::INFINITY;
    }
    let square = |v: C32| f64::from(v.re).powi(2) + f64::from(v.im).powi(2);
    let apart: f64 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
    (apart / b.iter().map(|&b| square(b)).sum::<f64>()).sqrt()
}

/// Samples of a coil, and bytes that go to a device: of all coils, with where they lie.
fn counted(frame: &Frame) -> (usize, u64) {
    match &frame.samples {
        Samples::Cartesian { kspace, sampled } => {
            let measured = sampled.iter().filter(|&&sampled| sampled).count();
            (measured, (kspace.len() * size_of::<C32>()) as u64)
        }
        Samples::NonCartesian { trajectory, data } => {
            let places = trajectory.samples() * trajectory.dims() * size_of::<f64>();
            (data.ncols(), (data.len() * size_of::<C32>() + places) as u64)
        }
    }
}

impl Processors<'_> {
    /// A reconstruction on both processors, which must give the same image.
    pub(super) fn reconstruction(
        &self,
        what: &Reconstruction,
        size: Option<&[usize]>,
    ) -> Result<ApplicationOutcome> {
        let n = what.size(size)?;
        let (scan, options) = (what.make)(n);
        let matrix = scan.matrix[..scan.dims].iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
        let scan = SimulateOptions { seed: self.seed, ..scan };
        let frame = self.staged(&format!("scan of {}", what.name), || {
            let simulated = self
                .cpu
                .cpu_side()
                .run(|| simulate(&scan, &Monitor::new(&rayspin::core::Silent, Some(&STOP))))?;
            let index = simulated.scan.frames()?;
            let label = index.labels().next();
            let label = label.ok_or_else(|| Error::value("scan", "an image", "none"))?;
            index.assemble(label, &FrameOptions::default(), &mut Vec::new())
        })?;
        let cpu =
            self.staged(&format!("{} on CPU", what.name), || self.timed(&self.cpu, &frame, &options))?;
        let gpu =
            self.staged(&format!("{} on GPU", what.name), || self.timed(&self.gpu, &frame, &options))?;
        let apart = distance(&gpu.image, &cpu.image);
        if apart.is_nan() || apart > TOLERANCE {
            let why = format!(
                "images of both processors are {apart:.2e} apart, at most {TOLERANCE:.0e} is allowed"
            );
            let failed = vec![format!("{}: {why}", what.name)];
            return Ok(ApplicationOutcome { row: Err(format!("failed: {why}")), failed });
        }
        let Some((on_cpu, on_gpu)) = cpu.stage(what.kernel).zip(gpu.stage(what.kernel)) else {
            let why = format!("failed: no stage {}", what.kernel);
            return Ok(ApplicationOutcome {
                row: Err(why.clone()),
                failed: vec![format!("{}: {why}", what.name)],
            });
        };
        let parts = gpu.parts();
        let named = parts.iter().map(|part| (part.name.as_str(), part.seconds));
        let Some(bottleneck) = Bottleneck::of_parts(named, gpu.seconds) else {
            return Ok(ApplicationOutcome { row: Err("no stage was timed".to_owned()), failed: vec![] });
        };
        let (samples, read) = counted(&frame);
        let bytes = (read, (gpu.image.len() * size_of::<C32>()) as u64);
        let row = Row {
            name: what.name.to_owned(),
            case: None,
            title: what.title.to_owned(),
            problem: format!("{matrix} voxels, {samples} samples of {} coils", frame.coils()),
            kind: Kind::Reconstruction,
            bottleneck,
            resident: self.resident(&frame, &options)?,
            cpu: cpu.side(what.kernel, on_cpu, None),
            gpu: gpu.side(what.kernel, on_gpu, Some(bytes)),
            one_core: None,
            published: None,
            day: None,
        };
        Ok(ApplicationOutcome { row: Ok(row), failed: Vec::new() })
    }

    /// The median of several whole reconstructions, each with plans of its own, after one that warms up.
    fn timed(&self, device: &Device, frame: &Frame, options: &ReconOptions) -> Result<Timed> {
        let first = once(device, frame, options)?;
        // A CPU has nothing to compile: after seconds it is as warm as it gets.
        if device.kind() == BackendKind::Cpu && first.seconds > ENOUGH {
            return Ok(first);
        }
        let began = Instant::now();
        let mut rounds = Vec::new();
        while rounds.len() < self.protocol.rounds.max(1) {
            if STOP.load(Ordering::SeqCst) {
                return Err(Error::Interrupted);
            }
            rounds.push(once(device, frame, options)?);
            if began.elapsed().as_secs_f64() > self.protocol.budget {
                break;
            }
        }
        rounds.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(rounds.swap_remove(rounds.len() / 2))
    }

    /// Threads of the kernel with most of them in all.
    fn resident(&self, frame: &Frame, options: &ReconOptions) -> Result<Option<Resident>> {
        let Backend::Cuda(cuda) = self.gpu.backend() else { return Ok(None) };
        let launched = cuda.launches(|| once(&self.gpu, frame, options).map(drop))?;
        Ok(Resident::of(&self.gpu, &launched))
    }
}
