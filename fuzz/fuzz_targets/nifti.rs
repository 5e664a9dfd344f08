#![no_main]
//! A NIfTI image: the bytes as they are, and compressed.

use std::io::Write;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for (name, content) in [("a.nii", bytes.to_vec()), ("a.nii.gz", compressed(bytes))] {
        let path = rayspin_fuzz::file(name, &content);
        if let Err(error) = rayspin_io::read_image(&path) {
            rayspin_fuzz::check_error(&error);
        }
    }
});

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    stream.write_all(bytes).expect("memory");
    stream.finish().expect("memory")
}
