#![no_main]
//! Pulseq sequences.

use libfuzzer_sys::fuzz_target;
use rayspin_io::pulseq::Sequence;

fuzz_target!(|bytes: &[u8]| {
    let path = rayspin_fuzz::file("a.seq", bytes);
    match Sequence::read(&path) {
        Ok(sequence) => drop((sequence.readouts().len(), sequence.fov_mm())),
        Err(error) => rayspin_fuzz::check_error(&error),
    }
});
