#![no_main]
//! A geometry file of RTK, and the geometry in it.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = rayspin_fuzz::file("geometry.xml", bytes);
    match rayspin_io::rtk::read(&path) {
        Ok(found) => {
            let radius_mm = found.radius_mm;
            let detector = rayspin_core::Detector { rows: 3, columns: 4, pitch_mm: [1.0; 2], radius_mm };
            if let Ok(geometry) = rayspin_ct::geometry::from_rtk(&found.projections, detector, [0.0; 2]) {
                let _ = rayspin_ct::geometry::to_rtk(&geometry);
            }
        }
        Err(error) => rayspin_fuzz::check_error(&error),
    }
});
