#![no_main]
//! A TIFF file: as image, and as the views of a CT scan.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = rayspin_fuzz::file("a.tif", bytes);
    if let Err(error) = rayspin_io::read_any_image(&path) {
        rayspin_fuzz::check_error(&error);
    }
    rayspin_fuzz::read_projections(&path);
});
