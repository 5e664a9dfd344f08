#![no_main]
//! An ISMRMRD file: its scan in every way of reading, its summary, the first image; its images.

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/files/io/tests/ismrmrd/ways.rs"]
mod ways;

fuzz_target!(|bytes: &[u8]| {
    let path = rayspin_fuzz::file("scan.h5", bytes);
    let options = rayspin_io::ismrmrd::ReadOptions { memory_limit: Some(1 << 30), ..Default::default() };
    match ways::read(&path, &options) {
        Ok(scan) => {
            drop(rayspin_io::ismrmrd::summarise(&scan));
            if let Ok(frames) = scan.frames() {
                let matrix = |n: [usize; 3]| n.iter().product::<usize>() < 1 << 22;
                let small = |e: &rayspin_mri::scan::Encoding| matrix(e.encoded.matrix) && matrix(e.recon.matrix);
                if let Some(label) = frames.labels().next()
                    && scan.header.encodings.iter().all(small)
                {
                    let _ = frames.assemble(label, &Default::default(), &mut Vec::new());
                }
            }
        }
        Err(error) => rayspin_fuzz::check_error(&error),
    }
    if let Err(error) = rayspin_io::read_image(&path) {
        rayspin_fuzz::check_error(&error);
    }
});
