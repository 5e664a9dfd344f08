#![no_main]
//! A MetaImage with its numbers behind the header.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = rayspin_fuzz::file("a.mha", bytes);
    if let Err(error) = rayspin_io::read_any_image(&path) {
        rayspin_fuzz::check_error(&error);
    }
});
