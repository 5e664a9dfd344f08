#![no_main]
//! A CT scan in a Data Exchange or NXtomo file, and its line integrals.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rayspin_fuzz::data_exchange(bytes));
