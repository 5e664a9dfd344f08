#![no_main]
//! A NumPy array: as image, as k-space and as trajectory.

use libfuzzer_sys::fuzz_target;
use rayspin_io::{ScanOptions, npy, read_image, read_scan};

fuzz_target!(|bytes: &[u8]| {
    let path = rayspin_fuzz::file("a.npy", bytes);
    let _ = npy::describe(&path);
    let _ = npy::read_real(&path);
    if let Err(error) = read_image(&path, &Default::default()) {
        rayspin_fuzz::check_error(&error);
    }
    let _ = read_scan(&path, &Default::default(), &rayspin_core::Monitor::silent());
    let options = ScanOptions { trajectory: Some(path.clone()), ..ScanOptions::default() };
    let _ = read_scan(&path, &options, &rayspin_core::Monitor::silent());
});
