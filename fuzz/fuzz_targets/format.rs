#![no_main]
//! Files of the format that RAYSPIN_FORMAT names, read in every way there is.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rayspin_fuzz::format(bytes));
