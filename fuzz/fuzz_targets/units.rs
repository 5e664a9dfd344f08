#![no_main]
//! Trajectory units as text.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rayspin_fuzz::units(bytes));
