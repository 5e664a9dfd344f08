#![no_main]
//! Pulseq sequences.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rayspin_fuzz::pulseq(bytes));
