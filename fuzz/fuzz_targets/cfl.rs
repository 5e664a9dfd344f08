#![no_main]
//! A BART pair: the header up to a zero byte, then the values.

use libfuzzer_sys::fuzz_target;
use rayspin_io::{ScanFile, ScanOptions, cfl, read_image, read_scan};

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    rayspin_fuzz::file("a.hdr", &bytes[..end]);
    let path = rayspin_fuzz::file("a.cfl", bytes.get(end + 1..).unwrap_or_default());
    if let Err(error) = cfl::read(&path) {
        rayspin_fuzz::check_error(&error);
    }
    let _ = read_image(&path);
    let units = Some(rayspin_core::TrajectoryUnits::CyclesPerFov);
    let along = ScanOptions { trajectory: Some(path.clone()), units, ..ScanOptions::default() };
    for options in [ScanOptions::default(), along] {
        match read_scan(&path, &options, &rayspin_core::Monitor::silent()) {
            Ok(ScanFile::Frame(array)) => {
                let _ = (array.summary().to_string(), array.frame.doubts());
            }
            Ok(ScanFile::Series(series)) => {
                for label in series.labels().take(4) {
                    if let Ok(frame) = series.frame(label, &mut Vec::new()) {
                        let _ = (series.summary(&frame).to_string(), frame.doubts());
                    }
                }
            }
            Ok(ScanFile::Scan(_)) | Err(_) => {}
        }
    }
});
