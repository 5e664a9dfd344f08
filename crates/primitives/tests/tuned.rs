//! The library takes what tuning found on this machine.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_device::Device;
use rayspin_primitives::matrix_product::{MatrixProduct, Problem, multiply};
use rayspin_tune::wisdom::{Key, Record, Wisdom, identity};
use rayspin_tune::{Algorithm, Config, Trial, source_of, tuned, uniform};

const PROBLEM: Problem = Problem { m: 70, n: 45, k: 33 };

fn other() -> Config {
    Config::of(&[("inner", 64), ("rows", 48)])
}

/// Asserts in a process of its own, which reads the file that the other test wrote.
#[test]
#[ignore = "run by the other test"]
fn child() {
    let device = Device::cpu_with_threads(2).unwrap();
    let near = Problem { m: 75, ..PROBLEM };
    assert_eq!(tuned(&MatrixProduct, &near, "threads", &device, &[]), other());
    assert_ne!(tuned(&MatrixProduct, &near, "simd", &device, &[]), other());
    let one = Device::cpu_with_threads(1).unwrap();
    assert_ne!(tuned(&MatrixProduct, &near, "threads", &one, &[]), other(), "of another device");
    let Problem { m, n, k } = near;
    let a = rayspin_device::Array::from_vec(&device, &[m, k], uniform(1, m * k)).unwrap();
    let b = rayspin_device::Array::from_vec(&device, &[k, n], uniform(2, k * n)).unwrap();
    let mut c = rayspin_device::Array::from_vec(&device, &[m, n], vec![f32::NAN; m * n]).unwrap();
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
    assert_ne!(MatrixProduct.space(&PROBLEM, "threads").default_config(), other());
    let path = std::env::temp_dir().join(format!("rayspin-tuned-{}.jsonl", std::process::id()));
    let mut wisdom = Wisdom::open(&path).unwrap();
    let (name, driver) = identity(&device);
    let (kind, sizes) = MatrixProduct.key(&PROBLEM);
    let text = |t: &str| t.to_owned();
    let key = Key {
        ladder: text("matrix-product"),
        rung: text("threads"),
        source: source_of(&[]),
        device: name,
        driver,
        kind,
        sizes,
    };
    wisdom.add(Record::new(key, other(), Trial::Timed { seconds: 1e-3, error: 0.0 }, None)).unwrap();
    let done = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child"])
        .env("RAYSPIN_WISDOM", &path)
        .output()
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}
