//! GPUs whose memory runs out, or that fail, in the middle of a reconstruction: on the emulator, behind a
//! driver that fails as asked.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use common::{alike, iterations};
use ndarray::ArrayD;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, Error, Monitor, Result};
use rayspin_device::{Backend, Device};
use rayspin_emu::{Emulator, Fault, Faulty};
use rayspin_mri::prepare::{Compression, CompressionKind, VirtualCoils, coils_kept};
use rayspin_mri::recon::{BatchSizes, ReconOptions, Reconstructor, RunOptions, reconstruct_frame};
use rayspin_mri::scan::{Frame, FrameOptions};
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, simulate};

/// A GPU that fails as asked.
struct Rig {
    driver: Arc<Faulty>,
    device: Device,
}

impl Rig {
    fn new() -> Self {
        let driver = Arc::new(Faulty::new(Arc::new(Emulator::new().unwrap())));
        let device = Device::with_driver(driver.clone(), Device::cpu_with_threads(1).unwrap());
        Self { driver, device }
    }

    /// Most bytes that arrays took since the last call.
    fn peak(&self) -> u64 {
        let Backend::Cuda(cuda) = self.device.backend() else { unreachable!() };
        let (_, peak) = cuda.memory_used();
        cuda.reset_peak();
        peak
    }
}

fn frame(sampling: Sampling, coils: usize) -> Frame {
    let options = SimulateOptions {
        dims: 2,
        matrix: [24, 24, 1],
        fov_mm: [220.0, 220.0, 5.0],
        coils,
        sampling,
        ..SimulateOptions::default()
    };
    let scan = simulate(&options, &Monitor::silent()).unwrap().scan;
    let index = scan.frames().unwrap();
    let label = index.labels().next().unwrap();
    let options = FrameOptions { times: true, ..FrameOptions::default() };
    index.assemble(label, &options, &mut Vec::new()).unwrap()
}

fn radial(coils: usize) -> Frame {
    frame(Sampling::Radial { spokes: 16, angles: SpokeAngles::Golden }, coils)
}

fn options(method: &str) -> ReconOptions {
    ReconOptions { density_iterations: 2, ..iterations(alike(method), 2) }
}

fn cut(coils: Option<usize>, segments: Option<usize>) -> RunOptions {
    RunOptions {
        batch_sizes: BatchSizes { coils, segments, ..BatchSizes::default() },
        ..RunOptions::default()
    }
}

fn spiral(coils: usize) -> Frame {
    frame(Sampling::Spiral { interleaves: 2, acceleration: 1 }, coils)
}

/// Options for a field of a few time segments. A GPU holds `segment_batch` of them.
fn with_field_map(coil_batch: Option<usize>, segment_batch: Option<usize>) -> ReconOptions {
    let field = ArrayD::from_shape_fn(vec![24, 24], |i| 80.0 * (0.3 * i[0] as f32 + 0.1 * i[1] as f32).sin());
    ReconOptions {
        field_map: Some(Arc::new(field)),
        field_tolerance: 1e-2,
        run: cut(coil_batch, segment_batch),
        ..options("cg-sense")
    }
}

fn image(reconstructor: &mut Reconstructor, frame: &Frame) -> Result<(Vec<C32>, Vec<String>)> {
    let done = reconstructor.frame(frame.clone(), &Monitor::silent())?;
    Ok((done.image.iter().copied().collect(), done.notes))
}

fn apart(a: &[C32], b: &[C32]) -> f32 {
    let brightest = b.iter().map(|v| v.norm()).fold(0.0, f32::max);
    let worst = a.iter().zip(b).map(|(a, b)| (a - b).norm()).fold(0.0, f32::max) / brightest;
    // A NaN is as far as can be.
    if worst.is_nan() || a.iter().any(|v| v.re.is_nan() || v.im.is_nan()) { f32::INFINITY } else { worst }
}

/// Any one call that fails, for once or for good: an error that names it, or the right image; then the right
/// image again.
#[test]
fn a_call_that_fails_gives_an_error_or_the_image() {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let grid = frame(Sampling::Cartesian(CartesianPattern::Full), 2);
    let rig = Rig::new();
    for (frame, options) in [
        (radial(2), options("gridding")),
        (radial(2), options("cg-sense")),
        (spiral(2), with_field_map(Some(1), Some(2))),
        (grid.clone(), options("wavelet")),
        (grid, options("cartesian")),
    ] {
        let method = options.method.about().name;
        rig.driver.set(Fault::Never);
        let (expected, _) =
            image(&mut Reconstructor::new(&rig.device, options.clone()).unwrap(), &frame).unwrap();
        let calls = rig.driver.calls();
        assert!(calls > 10, "{method}: {calls}");
        for trial in 0..3 {
            let number = rng.random_range(0..calls);
            let sticky = trial % 2 == 0;
            // A device of its own for half of them, so that loading programs is among the calls.
            let fresh = (trial % 3 == 0).then(Rig::new);
            let of = fresh.as_ref().unwrap_or(&rig);
            let mut reconstructor = Reconstructor::new(&of.device, options.clone()).unwrap();
            of.driver.set(Fault::Call { number, sticky });
            let found = image(&mut reconstructor, &frame);
            let failed = of.driver.failed();
            let told = format!("seed {seed}: {method}, call {number} of {calls}, {failed:?}");
            match found {
                Ok((found, _)) => assert!(apart(&found, &expected) < 1e-5, "{told}"),
                Err(Error::Device { what, detail }) => {
                    let text = format!("{what}: {detail}");
                    assert!(!failed.is_empty() && text.contains(failed[0]), "{told}: {text}");
                }
                Err(error) => panic!("{told}: {error}"),
            }
            of.driver.set(Fault::Never);
            let (again, _) = image(&mut reconstructor, &frame).unwrap();
            assert!(apart(&again, &expected) < 1e-5, "{told}, then again");
            drop(reconstructor);
            assert_eq!(of.driver.used(), 0, "{told}: all is given back");
        }
    }
}

/// A lost GPU: an error without leave to go on, the CPU's image and a note with it, for this frame and those
/// that follow.
#[test]
fn the_cpu_takes_over_where_it_may() {
    let frame = radial(3);
    let cpu = Device::cpu_with_threads(1).unwrap();
    let of = |device: &Device, finish_on_cpu: bool| {
        let run = RunOptions { finish_on_cpu, ..RunOptions::default() };
        let options = ReconOptions { run, ..options("cg-sense") };
        Reconstructor::new(device, options).unwrap()
    };
    let (expected, _) = image(&mut of(&cpu, false), &frame).unwrap();
    let rig = Rig::new();
    rig.driver.set(Fault::Call { number: 40, sticky: true });
    assert!(matches!(image(&mut of(&rig.device, false), &frame), Err(Error::Device { .. })));
    rig.driver.set(Fault::Call { number: 40, sticky: true });
    let mut reconstructor = of(&rig.device, true);
    let (found, notes) = image(&mut reconstructor, &frame).unwrap();
    assert_eq!(found, expected);
    let said =
        notes.iter().filter(|note| note.starts_with("the GPU failed, computed on the CPU from here on: "));
    assert_eq!(said.count(), 1, "{notes:?}");
    let calls = rig.driver.calls();
    let (found, notes) = image(&mut reconstructor, &frame).unwrap();
    assert_eq!(found, expected);
    assert!(notes.iter().all(|note| !note.contains("GPU")), "{notes:?}");
    assert_eq!(rig.driver.calls(), calls, "the GPU is left alone");
}

/// Memory that another process takes in the middle: the frame is done in smaller parts, as the notes say.
#[test]
fn work_is_cut_smaller_where_memory_runs_out() {
    for method in ["gridding", "ls", "cg-sense"] {
        let frame = radial(8);
        let rig = Rig::new();
        let of = |coil_batch| {
            let options = ReconOptions { run: cut(coil_batch, None), ..options(method) };
            Reconstructor::new(&rig.device, options).unwrap()
        };
        let (expected, _) = image(&mut of(None), &frame).unwrap();
        let most = rig.peak();
        let mut reconstructor = of(Some(1));
        let (one_by_one, _) = image(&mut reconstructor, &frame).unwrap();
        // The next frame finds the plans of the first.
        image(&mut reconstructor, &frame).unwrap();
        drop(reconstructor);
        let least = rig.peak();
        assert!(apart(&one_by_one, &expected) < 1e-5, "{method}");
        assert!(least < most, "{method}: {least} {most}");
        rig.driver.set(Fault::Memory { after: 30, bytes: least + 512 });
        let mut reconstructor = of(None);
        let (found, notes) = image(&mut reconstructor, &frame).unwrap();
        assert!(apart(&found, &expected) < 1e-5, "{method}");
        assert!(!rig.driver.failed().is_empty(), "{method}: {notes:?}");
        // Transforms alone that found too little take fewer coils at a time by themselves.
        if method != "cg-sense" {
            assert!(notes.iter().any(|n| n == "GPU memory ran out: coils taken 4 at a time from here on"));
        }
        // The next frame, beside the plans of the first.
        let (found, _) = image(&mut reconstructor, &frame).unwrap();
        assert!(apart(&found, &expected) < 1e-5, "{method}");
        drop(reconstructor);
        // With almost no memory the recovery fails too.
        rig.driver.set(Fault::Memory { after: 10, bytes: 1000 });
        assert!(matches!(image(&mut of(None), &frame), Err(Error::Memory { .. })), "{method}");
    }
}

/// In an inhomogeneous field, where one coil at a time is still too much: spectra of time segments stay on
/// the host, with the same bits.
#[test]
fn spectra_leave_a_gpu_whose_memory_runs_out() {
    let frame = spiral(2);
    let rig = Rig::new();
    let of = |coils, segments| Reconstructor::new(&rig.device, with_field_map(coils, segments)).unwrap();
    // Two frames: the next one finds the plans of the first.
    let twice = |segments| {
        let mut reconstructor = of(Some(1), segments);
        let (first, _) = image(&mut reconstructor, &frame).unwrap();
        let (second, _) = image(&mut reconstructor, &frame).unwrap();
        assert_eq!(first, second);
        drop(reconstructor);
        (first, rig.peak())
    };
    let ((expected, most), (found, least)) = (twice(None), twice(Some(1)));
    assert_eq!(found, expected);
    assert!(least < most, "{least} {most}");
    rig.driver.set(Fault::Memory { after: 30, bytes: least + 512 });
    let mut reconstructor = of(None, None);
    for first in [true, false] {
        let (found, notes) = image(&mut reconstructor, &frame).unwrap();
        assert!(apart(&found, &expected) < 1e-5);
        let cut = "GPU memory ran out: the spectrum of 1 time segment held at a time from here on";
        assert_eq!(notes.iter().any(|n| n == cut), first, "{notes:?}");
    }
    drop(reconstructor);
    assert_eq!(rig.driver.used(), 0);
}

/// Virtual coils are found and made whatever becomes of the GPU while they are: an error, or the image, and
/// as many as ever.
#[test]
fn coils_are_compressed_whatever_becomes_of_the_gpu() {
    let frame = radial(5);
    for kind in [CompressionKind::Svd, CompressionKind::Geometric] {
        let grid = CartesianPattern::Full;
        let (frame, method) = match kind {
            CompressionKind::Svd => (frame.clone(), "gridding"),
            CompressionKind::Geometric => (self::frame(Sampling::Cartesian(grid), 5), "cartesian"),
        };
        let mut options = options(method);
        options.prepare.compression = Some(Compression { coils: VirtualCoils::Energy(0.9), kind });
        let rig = Rig::new();
        let run = |options: &ReconOptions| {
            let done = reconstruct_frame(&rig.device, frame.clone(), vec![], options, &Monitor::silent())?;
            Ok::<_, Error>((done.image.data().iter().copied().collect::<Vec<_>>(), done.notes))
        };
        let (expected, _) = run(&options).unwrap();
        let calls = rig.driver.calls();
        let kept = coils_kept(&rig.device, &options.prepare, &frame).unwrap();
        assert!(kept < 5, "{kind:?}: {kept}");
        for number in [0, 1, 3, 5, 8, 12, 20, 40].into_iter().filter(|&number| number < calls) {
            rig.driver.set(Fault::Call { number, sticky: true });
            options.run.finish_on_cpu = false;
            assert!(matches!(run(&options), Err(Error::Device { .. })), "{kind:?} call {number}");
            rig.driver.set(Fault::Call { number, sticky: true });
            options.run.finish_on_cpu = true;
            let (found, notes) = run(&options).unwrap();
            assert!(apart(&found, &expected) < 1e-4, "{kind:?} call {number}");
            let said = notes.iter().filter(|n| n.contains("computed on the CPU from here on")).count();
            assert_eq!(said, 1, "{kind:?} call {number}: {notes:?}");
        }
        rig.driver.set(Fault::Memory { after: 0, bytes: 100 });
        assert_eq!(coils_kept(&rig.device, &options.prepare, &frame).unwrap(), kept);
        let (found, _) = run(&options).unwrap();
        assert!(apart(&found, &expected) < 1e-4, "{kind:?} without memory");
        rig.driver.set(Fault::Never);
        assert_eq!(rig.driver.used(), 0, "{kind:?}: all is given back");
    }
}
