#![no_main]
//! A CT scan in a Zeiss txrm file.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| rayspin_fuzz::read_projections(&rayspin_fuzz::file("a.txrm", bytes)));
