#![no_main]
//! An ISMRMRD file: its scan in every way of reading, its summary, the first image; its images.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rayspin_fuzz::ismrmrd(bytes));
