//! Every CUDA program of Rayspin loads in the emulator with all of its kernels.

use rayon::prelude::*;
use rayspin_device::cuda::{Driver, Program};
use rayspin_emu::Emulator;

#[test]
fn every_program_loads_with_all_its_kernels() {
    let emulator = Emulator::new().unwrap();
    let mut programs = rayspin_kernels::programs();
    programs.extend(rayspin_primitives::programs());
    programs.extend(rayspin_tune::limits::programs());
    programs.par_iter().for_each(|build| {
        let program = Program::new(build.source, &build.defines);
        let module = emulator.load(&program).unwrap();
        for name in program.signatures().unwrap().keys() {
            module.function(name).unwrap();
        }
    });
}
