//! The ladders of this crate on every device: every rung of every trial against the oracle.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use rayspin_device::BackendKind;
use rayspin_emu::Coverage;
use rayspin_kernels::ladders;
use rayspin_lab::{Asking, Protocol, measure};
use rayspin_tune::{Config, Which};

#[test]
fn every_rung_of_every_trial_meets_its_tolerance() {
    let mut wrong = Vec::new();
    for device in rayspin_emu::devices().unwrap() {
        for ladder in ladders() {
            let about = ladder.about();
            let (mut ran, mut coverage, mut expected) = (0, Coverage::default(), BTreeSet::new());
            for trial in 0..ladder.trials() {
                let of_problem = ladder.outline(Which::Trial(trial)).unwrap().rungs;
                let mut session = ladder.open(Which::Trial(trial), &device, 3 + trial as u64).unwrap();
                for (at, rung) in session.rungs().to_vec().iter().enumerate() {
                    if rung.backend != device.kind() {
                        continue;
                    }
                    expected.insert(rung.name);
                    match (&of_problem[at].refuses, &rung.refuses) {
                        (None, None) => {}
                        (Some(why), _) => {
                            coverage.refused(&device, rung.name, why);
                            continue;
                        }
                        (None, Some(why)) => {
                            coverage.ruled_out(&device, rung.name, why);
                            continue;
                        }
                    }
                    ran += 1;
                    let found = session.verify(at, &rung.space.default_config());
                    let error = *found.as_ref().unwrap_or(&f64::NAN);
                    coverage.compared(&device, rung.name, error, rung.tolerance);
                    match found {
                        Ok(error) if error <= rung.tolerance => {}
                        other => wrong.push(format!(
                            "{} {} on {}: {other:?}",
                            about.name,
                            rung.name,
                            session.problem()
                        )),
                    }
                    if trial + 1 == ladder.trials() {
                        let whole = session.whole(at, &rung.space.default_config()).unwrap();
                        let error = session.found().unwrap();
                        assert!(whole.is_some() && error <= rung.tolerance, "{} {}", about.name, rung.name);
                    }
                }
            }
            // Some ladders have rows for the CPU alone.
            if device.kind() == BackendKind::Cuda && expected.is_empty() {
                continue;
            }
            assert!(ran > 0, "{}: nothing ran on {}", about.name, device.describe());
            println!("{}:\n{coverage}", about.name);
            wrong.extend(coverage.left_out(&device, expected));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The graph runs on sets of data whose plans have no buffers yet.
#[test]
fn fast_transforms_on_a_gpu_can_be_timed_as_one_graph() {
    let protocol =
        Protocol { rounds: 1, round: 1e-9, budget: 0.0, asking: Asking::Graph, ..Protocol::default() };
    for device in rayspin_emu::devices().unwrap().into_iter().filter(|d| d.kind() == BackendKind::Cuda) {
        for ladder in ladders().into_iter().filter(|l| l.about().name.starts_with("nufft")) {
            let name = ladder.about().name;
            let mut session = ladder.open(Which::Trial(2), &device, 1).unwrap();
            assert_eq!(session.rotate(4).unwrap(), 4);
            for (at, rung) in session.rungs().to_vec().iter().enumerate() {
                if !["gpu-one-by-one", "gpu-batched"].contains(&rung.name) {
                    continue;
                }
                let config = rung.space.default_config();
                let timing = measure(&device, &protocol, |turn| session.run(at, &config, turn));
                let timing = timing.unwrap_or_else(|error| panic!("{name} {}: {error}", rung.name));
                assert!(timing.graph, "{name} {}", rung.name);
            }
        }
    }
}

#[test]
fn rows_are_named_once_and_reproduce_known_rows() {
    for ladder in ladders() {
        let about = ladder.about();
        let rungs = ladder.outline(Which::Trial(0)).unwrap().rungs;
        let mut names: Vec<_> = rungs.iter().map(|r| r.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rungs.len(), "{}", about.name);
        for rung in rungs {
            assert!(
                about.readme.contains(rung.name),
                "{}: its README does not name {}",
                about.name,
                rung.name
            );
            let known = rung.reproduces.is_none_or(|row| ladder.published().iter().any(|p| p.row == row));
            assert!(known, "{}: {} reproduces an unknown row", about.name, rung.name);
        }
        let beyond =
            [&[usize::MAX, 4, 4][..], &[1 << 32, (1 << 32) - 1, 4, 4], &[1 << 60, 1, 1], &[usize::MAX; 3]];
        let wrong = [&[][..], &[0, 4], &[1; 9], &[4, usize::MAX], &[4, 4, 1 << 60]];
        for size in wrong.into_iter().chain(beyond) {
            assert!(ladder.outline(Which::Case(None, Some(size))).is_err(), "{} {size:?}", about.name);
        }
    }
}

/// The first and the last values of all axes, on problems with a remainder along everything that is cut; of rungs that read samples
/// from constant memory with more of them than that holds.
#[test]
fn corners_of_the_direct_transforms_spaces_meet_their_tolerance() {
    let mut wrong = Vec::new();
    let mut ran = 0;
    for device in rayspin_emu::devices().unwrap() {
        for ladder in ladders().into_iter().filter(|l| l.about().name.starts_with("nudft")) {
            let name = ladder.about().name;
            for size in [&[7, 2053][..], &[19, 3, 5, 131]] {
                let mut session = ladder.open(Which::Case(None, Some(size)), &device, 7).unwrap();
                for (at, rung) in session.rungs().to_vec().iter().enumerate() {
                    let many = ["gpu-constant", "gpu-sfu", "gpu-tuned"].contains(&rung.name);
                    let runs = rung.backend == device.kind() && rung.refuses.is_none();
                    if !runs || rung.space.is_empty() || (size.len() == 2 && !many) {
                        continue;
                    }
                    let all = rung.space.configs();
                    for config in [all.first(), all.last()].into_iter().flatten() {
                        ran += 1;
                        match session.verify(at, config) {
                            Ok(error) if error <= rung.tolerance => {}
                            other => wrong.push(format!(
                                "{name} {} on {} with {config}: {other:?}",
                                rung.name,
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
    for (name, rung, config, limit) in [
        ("nudft-q", "gpu-constant", [("threads", 128), ("points", 4096)], "at most 2048"),
        ("nudft-q-f64", "gpu-constant", [("threads", 128), ("points", 2048)], "at most 1024"),
        ("nudft-q", "gpu-sfu", [("threads", 1024), ("points", 64)], "threads of a block: at most 512"),
        ("nudft-q", "gpu-sfu", [("threads", 0), ("points", 64)], "threads of a block"),
    ] {
        let ladder = ladders().into_iter().find(|l| l.about().name == name).unwrap();
        let mut session = ladder.open(Which::Trial(0), &device, 1).unwrap();
        let at = session.rungs().iter().position(|r| r.name == rung).unwrap();
        let config = Config::of(&config);
        assert!(!session.rungs()[at].space.contains(&config));
        let error = session.run(at, &config, 0).unwrap_err().to_string();
        assert!(error.contains(limit), "{error}");
    }
    // The published space, less what f64 has no room for.
    let count = |name: &str, rung: &str| {
        let ladder = ladders().into_iter().find(|l| l.about().name == name).unwrap();
        let rungs = ladder.outline(Which::Trial(0)).unwrap().rungs;
        rungs.into_iter().find(|r| r.name == rung).unwrap().space.configs().len()
    };
    assert_eq!((count("nudft-q", "gpu-constant"), count("nudft-adjoint", "gpu-sfu")), (175, 175));
    assert_eq!(count("nudft-adjoint-f64", "gpu-constant"), 150);
}
