//! The ladders of this crate on every device: every variant of every trial against the oracle.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_device::BackendKind;
use rayspin_kernels::{ladders, programs};
use rayspin_lab::{Conformance, LaunchMode, Protocol, measure};
use rayspin_tune::{Config, Which};

/// Macros that follow from the sizes of a problem, or from its accuracy: the plans of an FFT and of a NUFFT.
const OF_PROBLEMS: [&str; 14] = [
    "LENGTH",
    "RADICES",
    "REVERSED",
    "TEAM",
    "COLUMNS",
    "PAD",
    "RESIDENT",
    "LINES",
    "WIDTH",
    "TERMS",
    "COEFFICIENTS",
    "COILS",
    "WARPS",
    "THREADS",
];

#[test]
fn every_variant_of_every_trial_meets_its_tolerance() {
    let (all, programs) = (ladders(), programs());
    // Corners of spaces have a test of their own.
    let how = Conformance { seed: 3, configs: 0, open: &OF_PROBLEMS, others: &programs };
    for device in rayspin_emu::devices().unwrap() {
        let found = how.check(&all, &device);
        found.coverage.iter().for_each(|(name, coverage)| println!("{name}:\n{coverage}"));
        assert!(found.wrong.is_empty(), "{}:\n{}", device.describe(), found.wrong.join("\n"));
        assert!(found.ran > 0, "nothing ran on {}", device.describe());
    }
}

/// The graph runs on sets of data whose plans have no buffers yet.
#[test]
fn fast_transforms_on_a_gpu_can_be_timed_as_one_graph() {
    let protocol = Protocol {
        rounds: 1,
        round: 1e-9,
        budget: 0.0,
        launch_mode: LaunchMode::Graph,
        ..Protocol::default()
    };
    for device in rayspin_emu::devices().unwrap().into_iter().filter(|d| d.kind() == BackendKind::Cuda) {
        for ladder in ladders().into_iter().filter(|l| l.about().name.starts_with("nufft")) {
            let name = ladder.about().name;
            let mut session = ladder.open(Which::Trial(2), &device, 1).unwrap();
            assert_eq!(session.rotate(4).unwrap(), 4);
            for (at, variant) in session.variants().to_vec().iter().enumerate() {
                if !["gpu-one-by-one", "gpu-batched"].contains(&variant.name) {
                    continue;
                }
                let config = variant.space.default_config();
                let timing = measure(&device, &protocol, |turn| session.run(at, &config, turn));
                let timing = timing.unwrap_or_else(|error| panic!("{name} {}: {error}", variant.name));
                assert!(timing.graph, "{name} {}", variant.name);
            }
        }
    }
}

#[test]
fn ladders_explain_themselves() {
    let wrong = rayspin_lab::unexplained(&ladders()).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sizes_without_sense_are_refused() {
    for ladder in ladders() {
        let beyond =
            [&[usize::MAX, 4, 4][..], &[1 << 32, (1 << 32) - 1, 4, 4], &[1 << 60, 1, 1], &[usize::MAX; 3]];
        let wrong = [&[][..], &[0, 4], &[1; 9], &[4, usize::MAX], &[4, 4, 1 << 60]];
        for size in wrong.into_iter().chain(beyond) {
            let outline = ladder.outline(Which::Case(None, Some(size)));
            assert!(outline.is_err(), "{} {size:?}", ladder.about().name);
        }
    }
}

/// The first and the last values of all axes, on problems with a remainder along everything that is cut; of
/// variants that read samples from constant memory with more of them than that holds.
#[test]
fn corners_of_the_direct_transforms_spaces_meet_their_tolerance() {
    let mut wrong = Vec::new();
    let mut ran = 0;
    for device in rayspin_emu::devices().unwrap() {
        for ladder in ladders().into_iter().filter(|l| l.about().name.starts_with("nudft")) {
            let name = ladder.about().name;
            for size in [&[7, 2053][..], &[19, 3, 5, 131]] {
                let mut session = ladder.open(Which::Case(None, Some(size)), &device, 7).unwrap();
                for (at, variant) in session.variants().to_vec().iter().enumerate() {
                    let many = ["gpu-constant", "gpu-fixed", "gpu-sfu", "gpu-tuned"].contains(&variant.name);
                    let runs = variant.backend == device.kind() && variant.refuses.is_none();
                    if !runs || variant.space.is_empty() || (size.len() == 2 && !many) {
                        continue;
                    }
                    let all = variant.space.configs();
                    for config in [all.first(), all.last()].into_iter().flatten() {
                        ran += 1;
                        match session.verify(at, config) {
                            Ok(error) if error <= variant.tolerance => {}
                            other => wrong.push(format!(
                                "{name} {} on {} with {config}: {other:?}",
                                variant.name,
                                session.problem()
                            )),
                        }
                    }
                }
            }
        }
    }
    assert!(ran > 40, "{ran}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Launches that constant memory has no room for, or that no device holds, are refused with the limit's name.
#[test]
fn configurations_that_cannot_run_name_the_limit() {
    let device = rayspin_emu::Emulator::device().unwrap();
    for (name, variant, config, limit) in [
        ("nudft-q", "gpu-constant", [("threads", 128), ("points", 4096)], "at most 2048"),
        ("nudft-q-f64", "gpu-constant", [("threads", 128), ("points", 2048)], "at most 1024"),
        ("nudft-q", "gpu-sfu", [("threads", 1024), ("points", 64)], "threads of a block: at most 512"),
        ("nudft-q", "gpu-sfu", [("threads", 0), ("points", 64)], "threads of a block"),
    ] {
        let ladder = ladders().into_iter().find(|l| l.about().name == name).unwrap();
        let mut session = ladder.open(Which::Trial(0), &device, 1).unwrap();
        let at = session.variants().iter().position(|r| r.name == variant).unwrap();
        let config = Config::of(&config);
        assert!(!session.variants()[at].space.contains(&config));
        let error = session.run(at, &config, 0).unwrap_err().to_string();
        assert!(error.contains(limit), "{error}");
    }
    // The lecture's space, less what f64 has no room for.
    let count = |name: &str, variant: &str| {
        let ladder = ladders().into_iter().find(|l| l.about().name == name).unwrap();
        let variants = ladder.outline(Which::Trial(0)).unwrap().variants;
        variants.into_iter().find(|r| r.name == variant).unwrap().space.configs().len()
    };
    assert_eq!((count("nudft-q", "gpu-constant"), count("nudft-adjoint", "gpu-sfu")), (175, 175));
    assert_eq!(count("nudft-q", "gpu-fixed"), 175);
    assert_eq!(count("nudft-adjoint-f64", "gpu-constant"), 150);
}
