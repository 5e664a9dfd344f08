//! The transforms take what tuning found on this machine, and give the same values whichever form they run
//! in.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use num_complex::Complex32;
use rayspin_core::Trajectory;
use rayspin_device::cuda::Launched;
use rayspin_device::{Array, Device};
use rayspin_kernels::nudft;
use rayspin_kernels::nufft::{Fast, Nufft, Options};
use rayspin_lab::{Bounds, OnDevice};
use rayspin_tune::input::bits;
use rayspin_tune::wisdom::Trial;
use rayspin_tune::wisdom::{Record, Wisdom};
use rayspin_tune::{Config, Ladder, Session, Which, gpu};

const MATRIX: [usize; 2] = [13, 16];
const SAMPLES: usize = 300;
const COILS: usize = 3;

fn ladder(to_image: bool) -> Fast {
    if to_image { Fast::type1() } else { Fast::type2() }
}

fn open(to_image: bool, device: &Device) -> (Box<dyn Session>, usize) {
    let size = [MATRIX[0], MATRIX[1], SAMPLES, COILS];
    let session = ladder(to_image).open(Which::Case(None, Some(&size)), device, 1).unwrap();
    let variant = session.variants().iter().position(|r| r.name == "gpu-batched").unwrap();
    (session, variant)
}

fn other(to_image: bool) -> Config {
    if to_image { Config::of(&[("coils", 2)]) } else { Config::of(&[("coils", 2), ("threads", 64)]) }
}

/// Spreading or interpolation: kernel, blocks, threads.
fn what(launched: &[Launched]) -> Vec<String> {
    let of = launched.iter().filter(|l| ["spread", "interp"].contains(&l.kernel.as_str()));
    of.map(|l| format!("{} {:?}", l.kernel, l.launch)).collect()
}

/// Both directions of a plan, and what they launch.
fn transform(device: &Device) -> ([Vec<Complex32>; 2], [Vec<String>; 2]) {
    let number = |at: usize| (bits(3, at as u64) >> 40) as f64 / f64::from(1 << 23) - 1.0;
    let points = ndarray::Array2::from_shape_fn((SAMPLES, 2), |(m, d)| 7.0 * number(2 * m + d));
    let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
    let plan = Nufft::<f32>::new(device, &trajectory, &MATRIX, &Options::tolerance(1e-5)).unwrap();
    let values = |len: usize| (0..len).map(|i| Complex32::new(number(i) as f32, 0.3)).collect::<Vec<_>>();
    let shape = [COILS, MATRIX[0], MATRIX[1]];
    let images = Array::from_vec(device, &shape, values(shape.iter().product())).unwrap();
    let samples = Array::from_vec(device, &[COILS, SAMPLES], values(COILS * SAMPLES)).unwrap();
    let nan = Complex32::new(f32::NAN, f32::NAN);
    let (mut to_images, mut to_samples) =
        (Array::zeros(device, &shape).unwrap(), Array::zeros(device, &[COILS, SAMPLES]).unwrap());
    to_images.fill(nan).unwrap();
    to_samples.fill(nan).unwrap();
    let cuda = gpu(device).unwrap();
    let first = cuda.launches(|| plan.adjoint(&samples, &mut to_images)).unwrap();
    let second = cuda.launches(|| plan.forward(&images, &mut to_samples)).unwrap();
    ([to_images.to_vec().unwrap(), to_samples.to_vec().unwrap()], [what(&first), what(&second)])
}

fn bytes(values: &[Vec<Complex32>; 2]) -> Vec<u8> {
    values.iter().flatten().flat_map(|c| [c.re.to_ne_bytes(), c.im.to_ne_bytes()]).flatten().collect()
}

#[test]
#[ignore = "run by the other test"]
fn child() {
    let device = rayspin_emu::Emulator::device().unwrap();
    let (values, launched) = transform(&device);
    for (to_image, launched) in [(true, &launched[0]), (false, &launched[1])] {
        let (mut session, variant) = open(to_image, &device);
        let asked = gpu(&device).unwrap().launches(|| session.run(variant, &other(to_image), 0)).unwrap();
        assert_eq!(launched.len(), 1);
        // The points are others: the same threads and blocks a run of points, as many blocks of items.
        let threads = |text: &str| text.split_once("threads").unwrap().1.to_owned();
        assert_eq!(threads(&launched[0]), threads(&what(&asked)[0]));
    }
    std::fs::write(std::env::var_os("RAYSPIN_TEST_OUT").unwrap(), bytes(&values)).unwrap();
}

#[test]
fn plans_launch_what_was_tuned_and_give_the_same_values() {
    let device = rayspin_emu::Emulator::device().unwrap();
    let (values, usual) = transform(&device);
    let name = |end: &str| std::env::temp_dir().join(format!("rayspin-nufft-{}-{end}", std::process::id()));
    let (path, out) = (name("wisdom.jsonl"), name("out"));
    let mut wisdom = Wisdom::open(Path::new(&path)).unwrap();
    for (to_image, usual) in [(true, &usual[0]), (false, &usual[1])] {
        let (mut session, variant) = open(to_image, &device);
        let error = session.verify(variant, &other(to_image)).unwrap();
        assert!(error <= session.variants()[variant].tolerance, "{error}");
        let asked = gpu(&device).unwrap().launches(|| session.run(variant, &other(to_image), 0)).unwrap();
        assert_ne!(usual, &what(&asked), "{to_image}");
        let ladder = ladder(to_image).about().name;
        let key = OnDevice::new(session.as_mut(), &device, variant, Bounds::NONE).key(ladder).unwrap();
        let timed = Trial::Timed { seconds: 1e-3, error: 0.0 };
        wisdom.add(Record::new(key, other(to_image), timed, None)).unwrap();
    }
    let done = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child"])
        .env("RAYSPIN_WISDOM", &path)
        .env("RAYSPIN_TEST_OUT", &out)
        .output()
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    let number = |b: &[u8]| f64::from(f32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    let (found, want) = (std::fs::read(&out).unwrap(), bytes(&values));
    assert_eq!(found.len(), want.len());
    let (mut off, mut norm) = (0.0, 0.0);
    for (found, want) in found.chunks_exact(4).map(number).zip(want.chunks_exact(4).map(number)) {
        off += (found - want).powi(2);
        norm += want * want;
    }
    assert!((off / norm).sqrt() < 1e-6, "{}", (off / norm).sqrt());
    std::fs::remove_file(&out).unwrap();
}

/// Columns of an exact transform that take one wide tile, or two.
const WIDE: [usize; 2] = [3, 70];

fn open_direct(device: &Device) -> (Box<dyn Session>, usize) {
    let size = [WIDE[0], WIDE[1], 40];
    let session = nudft::Direct::<f32>::adjoint().open(Which::Case(None, Some(&size)), device, 1).unwrap();
    let variant = session.variants().iter().position(|r| r.name == "gpu-wgmma").unwrap();
    (session, variant)
}

/// The launches of the product: blocks, threads, macros.
fn products(launched: &[Launched]) -> Vec<String> {
    let of = launched.iter().filter(|l| l.kernel == "adjoint");
    of.map(|l| format!("{:?} {:?}", l.launch, l.program.defines)).collect()
}

fn direct(device: &Device) -> Vec<String> {
    let points = ndarray::Array2::from_shape_fn((40, 2), |(m, d)| (m as f64 - 20.0) * [1.7, 0.07][d]);
    let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
    let values: Vec<_> = (0..40).map(|m| Complex32::new(1.0, m as f32 / 40.0)).collect();
    let samples = Array::from_slice(device, &[40], &values).unwrap();
    let mut image = Array::zeros(device, &WIDE).unwrap();
    image.fill(Complex32::new(f32::NAN, f32::NAN)).unwrap();
    let launched =
        gpu(device).unwrap().launches(|| nudft::adjoint(&trajectory, &samples, &mut image)).unwrap();
    let wide: Vec<_> = values.iter().map(|v| num_complex::Complex64::new(v.re.into(), v.im.into())).collect();
    let want = nudft::reference::adjoint(&trajectory, &WIDE, &wide).unwrap();
    for (found, want) in image.to_vec().unwrap().iter().zip(&want) {
        assert!(
            (f64::from(found.re) - want.re).hypot(f64::from(found.im) - want.im) < 1e-4,
            "{found} {want}"
        );
    }
    products(&launched)
}

#[test]
#[ignore = "run by the other test"]
fn direct_child() {
    let device = rayspin_emu::Emulator::device().unwrap();
    let (mut session, variant) = open_direct(&device);
    let config = Config::of(&[("table", 2048), ("columns", 64)]);
    let asked = gpu(&device).unwrap().launches(|| session.run(variant, &config, 0)).unwrap();
    assert_eq!(direct(&device), products(&asked));
}

#[test]
fn exact_transforms_launch_what_was_tuned() {
    let device = rayspin_emu::Emulator::device().unwrap();
    let path = std::env::temp_dir().join(format!("rayspin-nudft-{}-wisdom.jsonl", std::process::id()));
    let mut wisdom = Wisdom::open(&path).unwrap();
    let (mut session, variant) = open_direct(&device);
    let config = Config::of(&[("table", 2048), ("columns", 64)]);
    let asked = gpu(&device).unwrap().launches(|| session.run(variant, &config, 0)).unwrap();
    assert_ne!(direct(&device), products(&asked));
    let key = OnDevice::new(session.as_mut(), &device, variant, Bounds::NONE).key("nudft-adjoint").unwrap();
    wisdom.add(Record::new(key, config, Trial::Timed { seconds: 1e-3, error: 0.0 }, None)).unwrap();
    let done = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "direct_child"])
        .env("RAYSPIN_WISDOM", &path)
        .output()
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}
