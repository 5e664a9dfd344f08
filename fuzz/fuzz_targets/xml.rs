#![no_main]
//! The XML header of an ISMRMRD scan.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = std::path::Path::new("rayspin-fuzz-header.xml");
    if let Err(error) = rayspin_io::ismrmrd::parse_header(path, bytes) {
        rayspin_fuzz::check_error(&error);
    }
});
