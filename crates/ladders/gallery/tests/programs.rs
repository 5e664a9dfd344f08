//! Every CUDA program of the ladders compiles, and loads in the emulator with all of its kernels. The
//! product's own are tested with the emulator.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../../tests/nvrtc.rs"]
mod nvrtc;

use rayon::prelude::*;
use rayspin_device::cuda::{Driver, Program};
use rayspin_emu::Emulator;
use rayspin_tune::Build;

fn programs() -> Vec<Build> {
    [rayspin_primitives::programs(), rayspin_gallery::programs(), rayspin_lab::limits::programs()].concat()
}

#[test]
fn every_program_compiles_and_keeps_to_its_registers() {
    nvrtc::check(&programs());
}

#[test]
fn every_program_loads_with_all_its_kernels() {
    let emulator = Emulator::new().unwrap();
    programs().par_iter().for_each(|build| {
        let program = Program::new(build.source, &build.defines);
        let module = emulator.load(&program).unwrap();
        for name in program.signatures().unwrap().keys() {
            module.function(name).unwrap();
        }
    });
}
