#![no_main]
//! Trajectory units as text.

use libfuzzer_sys::fuzz_target;
use rayspin_core::TrajectoryUnits;

fuzz_target!(|text: &str| {
    if let Ok(units) = text.parse::<TrajectoryUnits>() {
        assert_eq!(units.to_string().parse(), Ok(units));
        let factor = units.to_cycles_per_fov(128, 240.0);
        assert!(factor.is_finite() && factor > 0.0);
    }
});
