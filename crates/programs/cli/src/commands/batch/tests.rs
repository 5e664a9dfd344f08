use std::path::Path;
use std::sync::Arc;

use clap::FromArgMatches as _;
use rayspin::core::Monitor;
use rayspin::device::Device;
use rayspin::mri::simulate::{SimulateOptions, simulate};
use rayspin_emu::{Emulator, Fault, Faulty};
use rayspin_shell::effect::Given;
use rayspin_shell::{Console, Context};

use super::run;
use crate::args::batch::Batch;
use crate::args::{self, Cli, Command};

/// Emulated GPUs that fail as asked.
fn cards(count: usize) -> (Vec<Arc<Faulty>>, Vec<Device>) {
    let drivers: Vec<_> =
        (0..count).map(|_| Arc::new(Faulty::new(Arc::new(Emulator::new().unwrap())))).collect();
    let host = Device::cpu_with_threads(1).unwrap();
    let device = |driver: &Arc<Faulty>| Device::with_driver(driver.clone(), host.clone());
    let devices = drivers.iter().map(device).collect();
    (drivers, devices)
}

fn context(devices: &[Device]) -> Context {
    Context {
        device: devices[0].clone(),
        finish_on_cpu: false,
        undecided: None,
        gpus: None,
        beside: devices[1..].to_vec(),
        both: false,
        gpu_memory: None,
        console: Console::new(true),
        quiet: true,
        given: Given::default(),
    }
}

fn batch(folder: &Path, out: &str, options: &str) -> Box<Batch> {
    let text = |name: &str| folder.join(name).display().to_string();
    let (scans, images) = (text("*.h5"), text(&format!("{out}/{{stem}}.npy")));
    let line = ["rayspin", "batch", &scans, "-o", &images, "--summary", &text(&format!("{out}.json")), "--"];
    let line = line.into_iter().chain(options.split_whitespace());
    let matches = args::command().try_get_matches_from(line).unwrap();
    match Cli::from_arg_matches(&matches).unwrap().command {
        Command::Batch(batch) => Box::new(batch),
        _ => panic!("expected a batch"),
    }
}

const SCANS: usize = 5;

/// Small scans of a grid.
fn scans(folder: &Path) {
    for seed in 0..SCANS as u64 {
        let options = SimulateOptions {
            matrix: [16, 16, 1],
            dims: 2,
            coils: 2,
            snr: Some(30.0),
            seed,
            ..SimulateOptions::default()
        };
        let scan = simulate(&options, &Monitor::silent()).unwrap().scan;
        rayspin::io::write_scan(folder.join(format!("s{seed}.h5")), &scan, Default::default()).unwrap();
    }
}

fn images(folder: &Path) -> Vec<Vec<u8>> {
    (0..SCANS).map(|seed| std::fs::read(folder.join(format!("s{seed}.npy"))).unwrap()).collect()
}

const OPTIONS: &str = "-m cg-sense --iterations 3";

/// Each GPU computes, and the images equal the images of one GPU. If a GPU fails, its scan goes to another
/// one.
#[test]
fn scans_go_to_all_gpus_and_leave_one_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    scans(f);
    let (drivers, one) = cards(1);
    run(&context(&one), &batch(f, "one", OPTIONS)).unwrap();
    let (expected, calls) = (images(&f.join("one")), drivers[0].calls());
    let (drivers, several) = cards(3);
    run(&context(&several), &batch(f, "several", OPTIONS)).unwrap();
    assert!(images(&f.join("several")) == expected);
    assert!(drivers.iter().all(|driver| driver.calls() > 0), "each computes");
    // From its first call on, and in the middle of a scan.
    for (case, number) in [0, calls / (2 * SCANS as u64)].into_iter().enumerate() {
        let out = format!("left{case}");
        let (drivers, several) = cards(2);
        drivers[1].set(Fault::Call { number, sticky: true });
        run(&context(&several), &batch(f, &out, OPTIONS)).unwrap();
        assert!(images(&f.join(&out)) == expected);
        assert!(drivers[1].calls() > number, "it was asked");
        assert!(several[1].synchronize().is_err() && several[0].synchronize().is_ok());
    }
}

/// A GPU with too little memory for a scan is not quicker with the next ones: they go to the other one.
#[test]
fn scans_that_do_not_fit_a_gpu_go_to_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    scans(f);
    run(&context(&cards(1).1), &batch(f, "one", OPTIONS)).unwrap();
    let (drivers, several) = cards(2);
    drivers[0].set(Fault::Memory { after: 0, bytes: 1000 });
    run(&context(&several), &batch(f, "two", OPTIONS)).unwrap();
    assert!(images(&f.join("one")) == images(&f.join("two")));
    assert!(drivers[0].calls() > 0 && several[0].synchronize().is_ok());
    // Where both have too little, the summary has the reason.
    let (drivers, several) = cards(2);
    drivers.iter().for_each(|driver| driver.set(Fault::Memory { after: 0, bytes: 1000 }));
    let error = run(&context(&several), &batch(f, "none", OPTIONS)).unwrap_err().to_string();
    assert!(error.contains("5 of 5 scans failed"), "{error}");
    let summary = std::fs::read_to_string(f.join("none.json")).unwrap();
    assert_eq!(summary.matches("memory").count(), SCANS, "{summary}");
}

/// Where all GPUs fail, the summary has a reason for each scan, and no scan has an image.
#[test]
fn scans_without_a_gpu_that_works_fail() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    scans(f);
    let (drivers, several) = cards(2);
    drivers.iter().for_each(|driver| driver.set(Fault::Call { number: 3, sticky: true }));
    let error = run(&context(&several), &batch(f, "out", OPTIONS)).unwrap_err().to_string();
    assert!(error.contains("5 of 5 scans failed"), "{error}");
    let made = |seed: usize| f.join(format!("out/s{seed}.npy")).exists();
    assert!(!(0..SCANS).any(made));
    let summary = std::fs::read_to_string(f.join("out.json")).unwrap();
    let reasons = ["no GPU is left that works", "fails as asked"].map(|text| summary.matches(text).count());
    assert!(reasons.iter().sum::<usize>() == SCANS && reasons[1] > 0, "{summary}");
}

/// A limit of the memory counts one scan.
#[test]
fn a_limit_of_the_memory_takes_one_gpu() {
    let folder = tempfile::tempdir().unwrap();
    scans(folder.path());
    let options = format!("{OPTIONS} --memory 2G");
    let error = run(&context(&cards(2).1), &batch(folder.path(), "out", &options)).unwrap_err().to_string();
    assert!(error.contains("--memory: expected one GPU"), "{error}");
    run(&context(&cards(1).1), &batch(folder.path(), "out", &options)).unwrap();
}
