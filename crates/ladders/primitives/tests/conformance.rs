//! Every variant of every algorithm on every trial and device, against the oracle, and some configurations of
//! each on the last trial.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_device::Device;
use rayspin_lab::Conformance;
use rayspin_primitives::ladders;
use rayspin_tune::Which;

/// Macros whose values follow from the sizes and numbers of a problem.
const OF_PROBLEMS: [&str; 5] = ["RX", "RY", "TAPS", "WIDE_A", "WIDE_B"];

/// A test's own: what it launches stands beside what others launch at the same time.
fn devices() -> Vec<Device> {
    rayspin_emu::devices().unwrap()
}

/// With `--nocapture` the largest error of every variant.
fn check(name: &str) {
    let all: Vec<_> = ladders().into_iter().filter(|l| l.about().name == name).collect();
    let how = Conformance { seed: 7, open: &OF_PROBLEMS, ..Conformance::default() };
    let mut ran = 0;
    for device in &devices() {
        let found = how.check(&all, device);
        found.coverage.iter().for_each(|(name, coverage)| println!("{name}:\n{coverage}"));
        assert!(found.wrong.is_empty(), "{}:\n{}", device.describe(), found.wrong.join("\n"));
        ran += found.ran;
    }
    assert!(ran > 0, "{name}: nothing ran");
}

/// A test for each algorithm, and one that none is left out.
macro_rules! conformance {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            check($name);
        })*

        #[test]
        fn every_algorithm_is_tested() {
            let mut tested = vec![$($name),*];
            tested.sort_unstable();
            let all: Vec<_> = ladders().iter().map(|l| l.about().name).collect();
            assert_eq!(tested, all);
        }
    };
}

conformance! {
    access: "access",
    bicubic: "bicubic",
    box_filter: "box-filter",
    convolution: "convolution",
    coulomb: "coulomb",
    histogram: "histogram",
    matrix_add: "matrix-add",
    matrix_product: "matrix-product",
    sad: "sad",
    sobel: "sobel",
    reduction: "reduction",
    transfers: "transfers",
    transpose: "transpose",
    pi: "pi",
    random: "random",
}

#[test]
fn ladders_explain_themselves() {
    let wrong = rayspin_lab::unexplained(&ladders()).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unknown_cases_and_sizes_are_refused() {
    for ladder in ladders() {
        let cpu = &Device::cpu_with_threads(1).unwrap();
        for which in [
            Which::Case(Some("no such case"), None),
            Which::Case(None, Some(&[])),
            Which::Case(None, Some(&[0, 0, 0, 0, 0, 0, 0])),
            Which::Case(None, Some(&[usize::MAX])),
            Which::Case(None, Some(&[1 << 32, (1 << 32) - 1])),
            Which::Case(None, Some(&[usize::MAX; 2])),
            Which::Case(None, Some(&[1 << 31; 3])),
            Which::Case(None, Some(&[1 << 31; 4])),
            Which::Trial(usize::MAX),
        ] {
            let error = ladder.open(which, cpu, 1).err();
            let kind = error.map(|e| e.kind());
            assert_eq!(kind, Some(rayspin_core::ErrorKind::Input), "{} {which:?}", ladder.about().name);
        }
    }
}

/// Every size of a copy and every number of parts, also of cases that are not the last trial.
#[test]
fn copies_are_whole_in_pieces_of_any_size() {
    let all = ladders();
    let ladder = all.iter().find(|l| l.about().name == "transfers").unwrap();
    let mut wrong = Vec::new();
    for device in devices().iter().filter(|device| device.kind() == rayspin_device::BackendKind::Cuda) {
        for case in ladder.cases() {
            let mut session =
                ladder.open(Which::Case(Some(case.0), Some(&[3 * 1024 + 5])), device, 3).unwrap();
            for at in 0..session.variants().len() {
                let variant = session.variants()[at].clone();
                for config in variant.space.configs() {
                    match session.verify(at, &config) {
                        Ok(error) if error <= variant.tolerance => {}
                        other => wrong.push(format!("{} {config} of {}: {other:?}", variant.name, case.0)),
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
