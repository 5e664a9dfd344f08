//! Kernels as loops over the threads of a block, against the oracles that the same kernels as fibres meet.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use rayspin_device::{BackendKind, Device};
use rayspin_emu::Emulator;
use rayspin_tune::{Ladder, Which};

/// Every rung of some trials of a ladder; which of the rungs' kernels were loops.
fn rungs(ladder: &dyn Ladder, trials: &[usize]) -> Vec<(&'static str, Vec<(String, bool)>)> {
    let emulator = Arc::new(Emulator::new().unwrap().measuring(2, None, true).unwrap());
    let device = Device::with_driver(emulator.clone(), Device::cpu_with_threads(2).unwrap());
    let mut found = Vec::new();
    for &trial in trials {
        let mut session = ladder.open(Which::Trial(trial), &device, 7).unwrap();
        let rungs = session.rungs().to_vec();
        for (at, rung) in rungs.iter().enumerate().filter(|(_, rung)| rung.backend == BackendKind::Cuda) {
            if rung.refuses.is_some() {
                continue;
            }
            emulator.take_ran();
            let name = ladder.about().name;
            let error = session.verify(at, &rung.space.default_config());
            let error = error.unwrap_or_else(|e| panic!("{name} {}: {e}", rung.name));
            assert!(error <= rung.tolerance, "{name} {}, trial {trial}: {error}", rung.name);
            found.push((rung.name, emulator.take_ran().into_iter().collect()));
        }
    }
    found
}

fn ladder(name: &str) -> Box<dyn Ladder> {
    let mut all = rayspin_primitives::ladders();
    all.extend(rayspin_kernels::ladders());
    all.into_iter().find(|ladder| ladder.about().name == name).unwrap()
}

#[test]
fn kernels_as_loops_meet_their_oracles() {
    let all = std::env::var("RAYSPIN_TEST_ALL_LOOPS").is_ok();
    let mut names = vec!["coulomb", "matrix-add", "sad"];
    if all {
        names = rayspin_primitives::ladders()
            .iter()
            .chain(&rayspin_kernels::ladders())
            .map(|l| l.about().name)
            .collect();
    }
    for name in names {
        let ladder = ladder(name);
        let trials: Vec<_> = if all { (0..ladder.trials()).collect() } else { vec![2, 4] };
        let found = rungs(ladder.as_ref(), &trials);
        assert!(found.iter().all(|(_, kernels)| !kernels.is_empty()), "{name}: {found:?}");
        let looped = |(_, kernels): &&(&str, Vec<(String, bool)>)| kernels.iter().all(|(_, whole)| *whole);
        let loops: Vec<_> = found.iter().filter(looped).map(|(rung, _)| *rung).collect();
        println!("{name}: as loops {loops:?}, of {}", found.len());
        match name {
            "coulomb" => {
                assert!(loops.contains(&"gpu-gather") && !loops.contains(&"gpu-points"), "{loops:?}")
            }
            "matrix-add" | "sad" => assert!(!loops.is_empty(), "{found:?}"),
            _ => {}
        }
    }
}
