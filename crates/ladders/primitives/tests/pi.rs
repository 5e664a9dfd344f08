//! The estimate of π: the same integer everywhere, and π within its error.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_device::{Device, cpu::simd::levels};
use rayspin_primitives::pi::{MOST, estimate, reference};
use rayspin_primitives::random::Stream;

const STREAM: Stream = Stream { seed: 11, number: 1 << 40 };

#[test]
fn every_processor_counts_the_same() {
    for points in [1, 2, 777, 140_001] {
        let want = reference::hits(STREAM, points);
        for level in levels() {
            let cpu = Device::cpu_with_level(2, level).unwrap();
            assert_eq!(estimate(STREAM, points, &cpu).unwrap().hits, want, "{points} {level:?}");
        }
        for device in rayspin_emu::devices().unwrap() {
            let found = estimate(STREAM, points, &device).unwrap();
            assert_eq!((found.points, found.hits), (points, want), "{}", device.describe());
        }
    }
}

#[test]
fn pi_lies_within_five_standard_errors() {
    let cpu = Device::cpu_with_threads(2).unwrap();
    // One normal error in 1.7 million lies beyond five standard errors; the stream is fixed.
    let found = estimate(STREAM, 3_000_000, &cpu).unwrap();
    assert!((found.pi() - std::f64::consts::PI).abs() < 5.0 * found.sigma(), "{found:?}");
    assert!((found.sigma() * 3e6f64.sqrt() - 1.6421).abs() < 1e-2, "4 sqrt(p (1 - p)) at p = pi / 4");
}

#[test]
fn no_points_and_too_many_are_refused() {
    let cpu = Device::cpu_with_threads(1).unwrap();
    for points in [0, MOST + 1] {
        let error = estimate(STREAM, points, &cpu).unwrap_err().to_string();
        assert!(error.contains("points"), "{error}");
    }
}
