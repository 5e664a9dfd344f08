#![no_main]
//! A CT scan in a Data Exchange or NXtomo file, and its line integrals.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| rayspin_fuzz::read_projections(&rayspin_fuzz::file("scan.h5", bytes)));
