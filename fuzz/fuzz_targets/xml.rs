#![no_main]
//! The XML header of an ISMRMRD scan.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rayspin_fuzz::xml(bytes));
