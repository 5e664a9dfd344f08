#![no_main]
//! A CT scan in a Data Exchange file, and its line integrals.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = rayspin_fuzz::file("scan.h5", bytes);
    match rayspin_io::data_exchange::read(&path) {
        Ok(scan) => {
            if let Ok(device) = rayspin_device::Device::cpu_with_threads(1) {
                let _ = scan.into_lines(device.cpu_side(), &mut Vec::new());
            }
        }
        Err(error) => rayspin_fuzz::check_error(&error),
    }
});
