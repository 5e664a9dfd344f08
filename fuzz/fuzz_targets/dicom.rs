#![no_main]
//! A DICOM file: as image, and what it holds.

use libfuzzer_sys::fuzz_target;
use rayspin_io::{describe, names, read_volume};

fuzz_target!(|bytes: &[u8]| {
    let path = rayspin_fuzz::file("a.dcm", bytes);
    let _ = (describe(&path), names(&path));
    if let Err(error) = read_volume(&path) {
        rayspin_fuzz::check_error(&error);
    }
});
