#![no_main]
//! A NumPy archive.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = rayspin_fuzz::file("a.npz", bytes);
    let _ = rayspin_io::npy::npz_names(&path);
    if let Err(error) = rayspin_io::read_image(&path) {
        rayspin_fuzz::check_error(&error);
    }
});
