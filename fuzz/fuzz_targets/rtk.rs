#![no_main]
//! A geometry file of RTK, and the geometry in it.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rayspin_fuzz::rtk(bytes));
