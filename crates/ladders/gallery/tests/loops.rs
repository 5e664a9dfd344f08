//! Kernels as loops over the threads of a block, compared with the same oracles as kernels as fibres.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use rayspin_device::cuda::Program;
use rayspin_device::{BackendKind, Device};
use rayspin_emu::{Emulator, How};
use rayspin_tune::{Ladder, Which};

/// How the kernels of a variant ran.
type Ran = Vec<(String, How)>;

/// Some variants of some trials of a ladder.
fn variants(ladder: &dyn Ladder, trials: &[usize], wanted: &[&str]) -> Vec<(&'static str, Ran)> {
    let emulator = Arc::new(Emulator::new().unwrap().measuring(2, None, true).unwrap());
    let device = Device::with_driver(emulator.clone(), Device::cpu_with_threads(2).unwrap());
    let mut outcomes = Vec::new();
    for &trial in trials {
        let mut session = ladder.open(Which::Trial(trial), &device, 7).unwrap();
        let variants = session.variants().to_vec();
        for (index, variant) in
            variants.iter().enumerate().filter(|(_, variant)| variant.backend == BackendKind::Cuda)
        {
            if variant.refuses.is_some() || !(wanted.is_empty() || wanted.contains(&variant.name)) {
                continue;
            }
            emulator.take_ran();
            let name = ladder.about().name;
            let error = session.verify(index, &variant.space.default_config());
            let error = error.unwrap_or_else(|e| panic!("{name} {}: {e}", variant.name));
            assert!(error <= variant.tolerance, "{name} {}, trial {trial}: {error}", variant.name);
            outcomes.push((variant.name, emulator.take_ran().into_iter().collect()));
        }
    }
    outcomes
}

fn ladders() -> Vec<Box<dyn Ladder>> {
    let mut ladders = rayspin_primitives::ladders();
    ladders.extend(rayspin_kernels::ladders());
    ladders.extend(rayspin_gallery::ladders());
    ladders
}

fn ladder(name: &str) -> Box<dyn Ladder> {
    ladders().into_iter().find(|ladder| ladder.about().name == name).unwrap()
}

#[test]
fn kernels_as_loops_meet_their_oracles() {
    // Kernels with a barrier, of the ladders that the lecture has a table of.
    let split = [
        ("matrix-product", "gpu-tiled", "matrix_product::tiled"),
        ("coulomb", "gpu-points", "coulomb::points"),
        ("sad", "gpu-shared", "sad::shared_bytes"),
        ("nudft-adjoint", "gpu-separable", "nudft_separable::adjoint"),
    ];
    for (name, variant, kernel) in split {
        let outcomes = variants(ladder(name).as_ref(), &[2, 4], &[variant]);
        let ran = outcomes.iter().flat_map(|(_, ran)| ran).find(|(other, _)| other == kernel);
        assert!(matches!(ran, Some((_, How::Loops(2..)))), "{outcomes:?}");
    }
}

#[test]
#[ignore = "minutes: every variant of every trial of every ladder"]
fn all_kernels_as_loops_meet_their_oracles() {
    let only = std::env::var("RAYSPIN_TEST_LADDER").ok();
    for ladder in ladders().iter().filter(|l| only.as_ref().is_none_or(|only| l.about().name == only)) {
        let trials: Vec<_> = (0..ladder.trials()).collect();
        let outcomes: BTreeMap<_, _> = variants(ladder.as_ref(), &trials, &[]).into_iter().collect();
        for (variant, ran) in outcomes {
            for (kernel, how) in ran {
                println!("{} {variant}: {kernel} {how:?}", ladder.about().name);
            }
        }
    }
}

/// Every kernel of Rayspin, and how it runs in each of the forms it is compiled in.
fn all_ways() -> BTreeMap<String, Vec<How>> {
    let emulator = Emulator::new().unwrap();
    let mut builds = rayspin_kernels::programs();
    builds.extend(rayspin_primitives::programs());
    builds.extend(rayspin_gallery::programs());
    builds.extend(rayspin_lab::limits::programs());
    let each: Vec<_> = builds
        .par_iter()
        .map(|build| {
            let program = Program::new(build.source, &build.defines);
            (program.name, emulator.ways(&program).unwrap())
        })
        .collect();
    let mut ways_by_kernel: BTreeMap<String, Vec<How>> = BTreeMap::new();
    for (program, ways) in each {
        for (kernel, how) in ways {
            let list = ways_by_kernel.entry(format!("{program}::{kernel}")).or_default();
            if !list.contains(&how) {
                list.push(how);
            }
        }
    }
    ways_by_kernel
}

/// Kernels that are one loop, and those that are split at barriers, in every form they are compiled in.
const SINGLE: usize = 132;
const SPLIT: usize = 42;

#[test]
fn as_many_kernels_are_loops_as_were_before() {
    let ways_by_kernel = all_ways();
    let mut counts = [0; 3];
    for (kernel, ways) in &ways_by_kernel {
        println!("{kernel}: {ways:?}");
        counts[match ways[..] {
            [How::Loops(1)] => 0,
            _ if ways.iter().all(|how| matches!(how, How::Loops(_))) => 1,
            _ => 2,
        }] += 1;
    }
    let [single, split, written] = counts;
    println!("{single} as one loop, {split} as several, {written} as written in some form");
    // These may grow. A kernel that no longer becomes loops is listed above with its reason.
    assert!(single >= SINGLE && split >= SPLIT, "{single} as one loop, {split} split: {ways_by_kernel:#?}");
    let refused =
        ways_by_kernel.values().flatten().filter(|how| matches!(how, How::Written(why) if why.is_empty()));
    assert_eq!(refused.count(), 0);
}
