//! Facts about simulated scans of every kind.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_core::Monitor;
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SphereOrder, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, simulate};
use rayspin_scan::mri::corrections::measure;
use rayspin_scan::mri::{Facts, Frame, FrameOptions, NoiseSource, Pattern};

/// The facts about the first image of a simulated scan.
fn facts(sampling: Sampling, change: impl FnOnce(&mut SimulateOptions)) -> Facts {
    let mut options =
        SimulateOptions { coils: 4, matrix: [96, 96, 1], sampling, ..SimulateOptions::default() };
    change(&mut options);
    let scan = simulate(&options, &Monitor::silent()).unwrap().scan;
    let index = scan.frames().unwrap();
    let label = index.labels().next().unwrap();
    let frame = index.assemble(label, &FrameOptions::default(), &mut Vec::new()).unwrap();
    Facts::of(&frame, Some(&measure(&scan)), index.labels().count()).unwrap()
}

fn plain(_: &mut SimulateOptions) {}

fn volume(options: &mut SimulateOptions) {
    options.dims = 3;
    options.matrix = [32, 32, 24];
}

fn uniform(acceleration: [usize; 2], calibration: usize) -> Sampling {
    Sampling::Cartesian(CartesianPattern::Uniform { acceleration, calibration })
}

fn radial(spokes: usize, angles: SpokeAngles) -> Sampling {
    Sampling::Radial { spokes, angles }
}

#[test]
fn every_pattern_of_the_simulator_is_told() {
    let poisson = |acceleration, slope| {
        Sampling::Cartesian(CartesianPattern::PoissonDisc { acceleration, calibration: 8, slope })
    };
    let stars = |spokes| Sampling::StackOfStars { spokes, angles: SpokeAngles::Uniform };
    let ball = |spokes| Sampling::Kooshball { spokes, order: SphereOrder::GoldenMeans };
    for (sampling, three, pattern, readouts, factor) in [
        (Sampling::Cartesian(CartesianPattern::Full), false, Pattern::Full, 96, 1.0),
        (uniform([2, 1], 0), false, Pattern::Regular, 48, 2.0),
        // Nine lines of the lattice stand for ten places each.
        (uniform([10, 1], 16), false, Pattern::Regular, 24, 90.0 / 24.0),
        (uniform([2, 3], 8), true, Pattern::Regular, 180, 768.0 / 180.0),
        (poisson(4.0, 2.0), true, Pattern::VariableDensity, 192, 4.0),
        (radial(16, SpokeAngles::Uniform), false, Pattern::Radial, 16, 5.2),
        (radial(151, SpokeAngles::Uniform), false, Pattern::Radial, 151, 1.0),
        (radial(151, SpokeAngles::Golden), false, Pattern::Radial, 151, 1.05),
        (Sampling::Spiral { interleaves: 8, acceleration: 1 }, false, Pattern::Spiral, 8, 1.0),
        (Sampling::Spiral { interleaves: 8, acceleration: 2 }, false, Pattern::Spiral, 8, 2.0),
        (Sampling::Spiral { interleaves: 4, acceleration: 4 }, false, Pattern::Spiral, 4, 4.0),
        (Sampling::Spiral { interleaves: 1, acceleration: 1 }, false, Pattern::Spiral, 1, 1.0),
        (Sampling::Epi { shots: 1 }, false, Pattern::Lines, 1, 1.0),
        (Sampling::Epi { shots: 4 }, false, Pattern::Lines, 96, 1.0),
        (stars(16), true, Pattern::StackOfStars, 16 * 24, 1.87),
        (stars(51), true, Pattern::StackOfStars, 51 * 24, 1.0),
        (
            Sampling::StackOfSpirals { interleaves: 4, acceleration: 1 },
            true,
            Pattern::StackOfSpirals,
            4 * 24,
            1.0,
        ),
        (ball(400), true, Pattern::Radial, 400, 1.85),
        (ball(1600), true, Pattern::Radial, 1600, 1.0),
    ] {
        let found = facts(sampling.clone(), if three { volume } else { plain });
        assert_eq!((found.pattern, found.coils, found.images), (pattern, 4, 1), "{sampling:?}");
        // Partitions of a Poisson disc are random.
        let about = found.readouts.abs_diff(readouts) <= readouts / 20;
        assert!(found.readouts == readouts || (about && found.on_grid), "{sampling:?}: {found:?}");
        let ratio = found.undersampling / factor;
        assert!((0.95..1.07).contains(&ratio), "{sampling:?}: {found:?}");
        assert!(!found.is_partial(), "{sampling:?}: {found:?}");
        // Full sampling has a centre as wide as the matrix, or nearly.
        let whole = found.matrix.iter().zip(&found.calibration).all(|(n, width)| 8 * width >= 7 * n);
        assert_eq!(whole, found.undersampling < 1.1, "{sampling:?}: {found:?}");
    }
    let scattered = facts(Sampling::Random { shots: 40, samples: 96 }, plain);
    assert_eq!((scattered.pattern, scattered.samples), (Pattern::Scattered, 3840));
    assert!((2.4..3.2).contains(&scattered.undersampling), "{scattered:?}");
}

#[test]
fn steps_and_calibration_run_along_x_y_z() {
    let found = facts(uniform([2, 3], 8), volume);
    assert_eq!(found.steps, [Some(1), Some(2), Some(3)]);
    assert_eq!(found.calibration[0], 32);
    // Lines beside the region may lie on the lattice.
    assert!(found.calibration[1..].iter().all(|width| (8..=9).contains(width)), "{found:?}");
    let poisson = CartesianPattern::PoissonDisc { acceleration: 4.0, calibration: 8, slope: 2.0 };
    let found = facts(Sampling::Cartesian(poisson), volume);
    assert_eq!(found.steps, [Some(1), None, None]);
    // Wider than 16 spokes are dense there is no centre: S spokes of a circle are a cycle apart at the radius
    // S/π.
    for spokes in [16, 48] {
        let found = facts(radial(spokes, SpokeAngles::Uniform), plain);
        let dense = 2.0 * spokes as f64 / std::f64::consts::PI;
        assert!((0.9..1.4).contains(&(found.calibration[0] as f64 / dense)), "{found:?}");
    }
}

#[test]
fn a_pattern_in_another_order_of_axes_is_the_same() {
    // Every fourth column instead of every fourth line, in a grid that was zero-padded from 48 × 32 to 64 ×
    // 64.
    let measured = |y: usize, x: usize| (16..48).contains(&y) && (8..56).contains(&x) && x.is_multiple_of(4);
    let kspace = ndarray::Array3::from_shape_fn((2, 64, 64), |(_, y, x)| {
        rayspin_core::C32::new(f32::from(measured(y, x)), 0.0)
    });
    let frame = Frame::from_grid(kspace.into_dyn(), rayspin_core::Geometry::default()).unwrap();
    let found = Facts::of(&frame, None, 1).unwrap();
    assert_eq!((found.pattern, &found.steps[..]), (Pattern::Regular, &[Some(4), Some(1)][..]));
    assert!((found.undersampling - 4.0).abs() < 1e-9, "{found:?}");
    assert!(!found.is_partial(), "{found:?}");
}

#[test]
fn one_side_of_k_space_is_named() {
    let measured = |y: usize| y < 40;
    let kspace = ndarray::Array3::from_shape_fn((1, 64, 16), |(_, y, _)| {
        rayspin_core::C32::new(f32::from(measured(y)), 0.0)
    });
    let frame = Frame::from_grid(kspace.into_dyn(), rayspin_core::Geometry::default()).unwrap();
    let found = Facts::of(&frame, None, 1).unwrap();
    assert_eq!((found.pattern, &found.coverage[..]), (Pattern::Full, &[1.0, 0.625][..]));
    assert!((found.undersampling - 1.6).abs() < 1e-9);
    assert_eq!(found.calibration, [16, 16]);
}

#[test]
fn noise_does_not_depend_on_the_pattern() {
    let noisy = |options: &mut SimulateOptions| {
        options.snr = Some(10.0);
        options.noise_readouts = 8;
    };
    let full = facts(Sampling::Cartesian(CartesianPattern::Full), noisy).noise.unwrap();
    assert_eq!(full.source, NoiseSource::NoiseScan);
    // SNR relates the mean within the object to the noise, this one the root mean square over the field of
    // view.
    assert!((0.8..1.6).contains(&(full.snr / 10.0)), "{full:?}");
    for sampling in [
        uniform([3, 1], 12),
        radial(151, SpokeAngles::Uniform),
        radial(24, SpokeAngles::Golden),
        Sampling::Spiral { interleaves: 8, acceleration: 2 },
    ] {
        let found = facts(sampling.clone(), noisy).noise.unwrap();
        // The corners of the box, which most trajectories leave out, hold noise alone.
        assert!((0.95..1.25).contains(&(found.snr / full.snr)), "{sampling:?}: {found:?} and {full:?}");
        assert!((found.sample_std / full.sample_std - 1.0).abs() < 0.05, "{sampling:?}: {found:?}");
        // Without the noise scan it is about the same where noise exceeds the signal at the rim.
        let rim = facts(sampling.clone(), |options| options.snr = Some(5.0)).noise.unwrap();
        assert_ne!(rim.source, NoiseSource::NoiseScan);
        assert!((2.0 * rim.snr / found.snr - 1.0).abs() < 0.25, "{sampling:?}: {rim:?} and {found:?}");
    }
    // Beyond the field of view, and at its edge, a clean scan has hardly any.
    for sampling in [
        Sampling::Cartesian(CartesianPattern::Full),
        uniform([2, 1], 0),
        radial(40, SpokeAngles::Golden),
        Sampling::Spiral { interleaves: 8, acceleration: 1 },
    ] {
        let clean = facts(sampling.clone(), plain).noise.unwrap();
        assert!(clean.source == NoiseSource::Edge && clean.snr > 200.0, "{sampling:?}: {clean:?}");
    }
}

#[test]
fn repetitions_are_counted_as_images() {
    let sampling = radial(8, SpokeAngles::Golden);
    assert_eq!(facts(sampling, |options| options.repetitions = 3).images, 3);
}
