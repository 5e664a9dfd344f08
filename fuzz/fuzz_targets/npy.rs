#![no_main]
//! A NumPy array: as image, as k-space and as trajectory.

use libfuzzer_sys::fuzz_target;
use rayspin_io::{ScanFile, ScanOptions, npy, read_image, read_scan, read_trajectory};

fuzz_target!(|bytes: &[u8]| {
    let path = rayspin_fuzz::file("a.npy", bytes);
    let _ = npy::describe(&path);
    let _ = npy::read_real(&path);
    if let Err(error) = read_image(&path) {
        rayspin_fuzz::check_error(&error);
    }
    let units = Some(rayspin_core::TrajectoryUnits::CyclesPerFov);
    let along = ScanOptions { trajectory: Some(path.clone()), units, ..ScanOptions::default() };
    for options in [ScanOptions::default(), along] {
        if let Ok(ScanFile::Frame(array)) = read_scan(&path, &options, &rayspin_core::Monitor::silent()) {
            let _ = (array.summary().to_string(), array.frame.doubts());
        }
    }
    // An array is never both samples and their trajectory: these are complex, and that is not.
    let _ = read_trajectory(&path);
});
