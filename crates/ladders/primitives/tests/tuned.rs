//! The library takes what tuning found on this machine, whichever the processor and the function.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use rayspin_core::Result;
use rayspin_device::cuda::{Launched, Program};
use rayspin_device::{Array, Device};
use rayspin_lab::{Bounds, OnDevice};
use rayspin_planes::{bicubic, box_filter, convolution, histogram};
use rayspin_primitives::matrix_product::{MatrixProduct, Problem, multiply};
use rayspin_primitives::{coulomb, matrix_add, pi, random, reduction, sad, sobel, transpose};
use rayspin_tune::wisdom::Trial;
use rayspin_tune::wisdom::{Key, Record, Wisdom, identity};
use rayspin_tune::{Algorithm, Config, Ladder, Session, Which, gpu, source_of, tuned, uniform};

const PROBLEM: Problem = Problem { m: 70, n: 45, k: 33 };

fn other() -> Config {
    Config::of(&[("inner", 64), ("rows", 48)])
}

fn timed() -> Trial {
    Trial::Timed { seconds: 1e-3, error: 0.0 }
}

/// Runs a test of this file that is ignored in a process of its own, which reads the file of results that it
/// is given.
fn in_a_process_of_its_own(test: &str, path: &Path) {
    let done = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test])
        .env("RAYSPIN_WISDOM", path)
        .output()
        .unwrap();
    std::fs::remove_file(path).unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}

/// Asserts in a process of its own, which reads the file that the other test wrote.
#[test]
#[ignore = "run by the other test"]
fn child() {
    let device = Device::cpu_with_threads(2).unwrap();
    let near = Problem { m: 75, ..PROBLEM };
    let rows = MatrixProduct.variants(&near);
    let row = |name| rows.iter().find(|row| row.name == name).unwrap();
    assert_eq!(tuned(&MatrixProduct, &near, row("threads"), &device), other());
    assert_ne!(tuned(&MatrixProduct, &near, row("simd"), &device), other());
    let one = Device::cpu_with_threads(1).unwrap();
    assert_ne!(tuned(&MatrixProduct, &near, row("threads"), &one), other(), "of another device");
    let Problem { m, n, k } = near;
    let a = Array::from_vec(&device, &[m, k], uniform(device.cpu_side(), 1, m * k).unwrap()).unwrap();
    let b = Array::from_vec(&device, &[k, n], uniform(device.cpu_side(), 2, k * n).unwrap()).unwrap();
    let mut c = Array::from_vec(&device, &[m, n], vec![f32::NAN; m * n]).unwrap();
    multiply(&a, &b, &mut c).unwrap();
    for (at, &found) in c.cpu().iter().enumerate() {
        let (i, j) = (at / n, at % n);
        let want: f64 = (0..k).map(|l| f64::from(a.cpu()[i * k + l]) * f64::from(b.cpu()[l * n + j])).sum();
        assert!((f64::from(found) - want).abs() < 1e-5, "{at}: {found} for {want}");
    }
}

#[test]
fn what_was_tuned_is_taken() {
    let device = Device::cpu_with_threads(2).unwrap();
    let row = MatrixProduct.variants(&PROBLEM).into_iter().find(|row| row.name == "threads").unwrap();
    assert_ne!((row.space)(&PROBLEM).default_config(), other());
    let path = std::env::temp_dir().join(format!("rayspin-tuned-{}.jsonl", std::process::id()));
    let mut wisdom = Wisdom::open(&path).unwrap();
    let (name, driver) = identity(&device);
    let (kind, sizes) = MatrixProduct.key(&PROBLEM);
    let text = |t: &str| t.to_owned();
    let key = Key {
        ladder: text("matrix-product"),
        variant: text("threads"),
        source: source_of(&[]),
        device: name,
        driver,
        kind,
        sizes,
    };
    wisdom.add(Record::new(key, other(), timed(), None)).unwrap();
    in_a_process_of_its_own("child", &path);
}

/// A public function, and the variant that it is: what it launches must be what the variant launches.
struct Function {
    ladder: &'static dyn Ladder,
    case: &'static str,
    size: &'static [usize],
    variant: &'static str,
    call: fn(&Device) -> Result<()>,
}

fn plane<T: rayspin_device::Element>(device: &Device) -> Array<T> {
    Array::zeros(device, &[20, 48]).unwrap()
}

const STREAM: random::Stream = random::Stream { seed: 1, number: 2 };

const FUNCTIONS: &[Function] = &[
    Function {
        ladder: &matrix_add::MatrixAdd,
        case: "",
        size: &[20, 48],
        variant: "gpu-wide",
        call: |d| matrix_add::add(&plane(d), &plane(d), &mut plane(d)),
    },
    Function {
        ladder: &sobel::Sobel,
        case: "",
        size: &[20, 48],
        variant: "gpu-halves",
        call: |d| sobel::sobel(&plane(d), 1.0, &mut plane(d)),
    },
    Function {
        ladder: &box_filter::BoxFilter,
        case: "",
        size: &[20, 48, 3],
        variant: "gpu-fused",
        call: |d| box_filter::box_mean::<u8>(&plane(d), 3, &mut plane(d)),
    },
    Function {
        ladder: &box_filter::BoxFilter,
        case: "",
        size: &[20, 48, 200],
        variant: "gpu-scanned",
        call: |d| box_filter::box_mean::<u8>(&plane(d), 200, &mut plane(d)),
    },
    Function {
        ladder: &reduction::Reduction,
        case: "2^28-f32",
        size: &[960],
        variant: "gpu-flags",
        call: |d| reduction::sum::<f32>(&plane(d)).map(drop),
    },
    Function {
        ladder: &reduction::Reduction,
        case: "max-2^28-i32",
        size: &[960],
        variant: "gpu-flags",
        call: |d| reduction::max::<i32>(&plane(d)).map(drop),
    },
    Function {
        ladder: &reduction::Reduction,
        case: "mse-2^27-f32",
        size: &[960],
        variant: "gpu-flags",
        call: |d| reduction::mean_square_error::<f32>(&plane(d), &plane(d)).map(drop),
    },
    Function {
        ladder: &histogram::Histogram,
        case: "walk-counts",
        size: &[960, 30],
        variant: "gpu-copies",
        call: |d| histogram::counts(&plane::<u32>(d), &mut Array::zeros(d, &[30])?),
    },
    Function {
        ladder: &pi::Pi,
        case: "",
        size: &[20_000],
        variant: "gpu-carry",
        call: |d| pi::estimate(STREAM, 20_000, d).map(drop),
    },
    Function {
        ladder: &random::RandomNumbers,
        case: "bits",
        size: &[960],
        variant: "gpu-grid",
        call: |d| random::fill_bits(STREAM, &mut plane(d)),
    },
    Function {
        ladder: &random::RandomNumbers,
        case: "normal-f32",
        size: &[960],
        variant: "gpu-grid",
        call: |d| random::fill_normal::<f32>(STREAM, 3.0, 2.0, &mut plane(d)),
    },
    Function {
        ladder: &random::RandomNumbers,
        case: "poisson-4",
        size: &[960],
        variant: "gpu-grid",
        call: |d| random::fill_poisson(STREAM, 4.3, &mut plane(d)),
    },
    Function {
        ladder: &sad::Sad,
        case: "",
        size: &[48, 160, 3],
        variant: "gpu-packed",
        call: |d| {
            let frame = Array::zeros(d, &[48, 160])?;
            sad::block_match(&frame, &frame, 3, &mut Array::zeros(d, &[12, 40, 7, 7])?)
        },
    },
    Function {
        ladder: &coulomb::Coulomb,
        case: "",
        size: &[50, 1, 20, 300],
        variant: "gpu-points",
        call: |d| {
            let grid = coulomb::Grid { shape: [1, 20, 300], origin: [0.1; 3], spacing: 0.3 };
            coulomb::potential(&Array::zeros(d, &[50])?, &grid, &mut Array::zeros(d, &[1, 20, 300])?)
        },
    },
    Function {
        ladder: &transpose::Transpose,
        case: "",
        size: &[20, 48],
        variant: "gpu-wide",
        call: |d| transpose::transpose::<f32>(&plane(d), &mut Array::zeros(d, &[48, 20])?),
    },
    Function {
        ladder: &MatrixProduct,
        case: "",
        size: &[20, 48, 30],
        variant: "gpu-wide",
        call: |d| multiply(&Array::zeros(d, &[20, 30])?, &Array::zeros(d, &[30, 48])?, &mut plane(d)),
    },
    Function {
        ladder: &convolution::Convolution,
        case: "",
        size: &[20, 48, 3],
        variant: "gpu-sliding",
        call: |d| convolution::separable(&plane(d), &[0.1; 7], &[0.1; 7], &mut plane(d)),
    },
    Function {
        ladder: &convolution::Convolution,
        case: "",
        size: &[20, 48, 15],
        variant: "gpu-separable",
        call: |d| convolution::separable(&plane(d), &[0.1; 31], &[0.1; 31], &mut plane(d)),
    },
    Function {
        ladder: &bicubic::Bicubic,
        case: "",
        size: &[20, 48, 33, 70],
        variant: "gpu-sliding",
        call: |d| {
            bicubic::resize::<f32>(&plane(d), bicubic::Kernel::Keys(-0.5), &mut Array::zeros(d, &[33, 70])?)
        },
    },
];

/// Kernel, blocks, threads and shared memory, macros.
fn what(launched: &[Launched]) -> Vec<String> {
    launched.iter().map(|l| format!("{} {:?} {:?}", l.kernel, l.launch, l.program.defines)).collect()
}

/// The texts of what a variant says that its results belong to, and of what it launches.
fn texts(session: &mut dyn Session, variant: usize, device: &Device) -> [Vec<String>; 2] {
    let config = session.variants()[variant].space.default_config();
    let named = rayspin_tune::sources(&session.variants()[variant].forms)
        .into_iter()
        .map(|source| Program::new(source, &[]).text)
        .collect();
    let launched = gpu(device).unwrap().launches(|| session.run(variant, &config, 0)).unwrap();
    let mut both: [Vec<_>; 2] = [named, launched.iter().map(|l| l.program.text.clone()).collect()];
    for texts in &mut both {
        texts.sort_unstable();
        texts.dedup();
    }
    both
}

fn open(function: &Function, device: &Device) -> (Box<dyn Session>, usize) {
    let which = Which::Case((!function.case.is_empty()).then_some(function.case), Some(function.size));
    let session = function.ladder.open(which, device, 1).unwrap();
    let variant = session.variants().iter().position(|r| r.name == function.variant).unwrap();
    (session, variant)
}

/// One that is not the default and launches other blocks or threads of, mostly, the same program.
fn another(session: &mut dyn Session, variant: usize, device: &Device) -> (Config, Vec<String>) {
    let cuda = gpu(device).unwrap();
    let space = session.variants()[variant].space.clone();
    let mut of = |config: &Config| what(&cuda.launches(|| session.run(variant, config, 0)).unwrap());
    let usual = of(&space.default_config());
    let near = space.neighbours(&space.default_config());
    near.into_iter().map(|c| (of(&c), c)).find(|(l, _)| *l != usual).map(|(l, c)| (c, l)).unwrap()
}

#[test]
#[ignore = "run by the other test"]
fn functions() {
    let device = rayspin_emu::Emulator::device().unwrap();
    let cuda = gpu(&device).unwrap();
    for function in FUNCTIONS {
        let (mut session, variant) = open(function, &device);
        let (config, want) = another(session.as_mut(), variant, &device);
        let found = what(&cuda.launches(|| (function.call)(&device)).unwrap());
        assert_eq!(found, want, "{} {} {config}", function.ladder.about().name, function.variant);
    }
}

#[test]
fn functions_launch_what_was_tuned() {
    let device = rayspin_emu::Emulator::device().unwrap();
    let path = std::env::temp_dir().join(format!("rayspin-tuned-functions-{}.jsonl", std::process::id()));
    let mut wisdom = Wisdom::open(&path).unwrap();
    for function in FUNCTIONS {
        let (mut session, variant) = open(function, &device);
        let [named, launched] = texts(session.as_mut(), variant, &device);
        assert!(named == launched, "{} {}: its sources", function.ladder.about().name, function.variant);
        let (config, _) = another(session.as_mut(), variant, &device);
        let key = OnDevice::new(session.as_mut(), &device, variant, Bounds::NONE)
            .key(function.ladder.about().name)
            .unwrap();
        wisdom.add(Record::new(key, config, timed(), None)).unwrap();
    }
    in_a_process_of_its_own("functions", &path);
}
