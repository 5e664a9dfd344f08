use super::*;

#[test]
fn headers_say_what_was_played() {
    let kind = |sampling, dims| {
        let simulation = run(&SimulateOptions {
            dims,
            matrix: [8, 8, if dims == 3 { 4 } else { 1 }],
            coils: 1,
            sampling,
            ..Default::default()
        });
        simulation.scan.header.encodings[0].trajectory
    };
    assert_eq!(kind(Sampling::Cartesian(CartesianPattern::Full), 2), TrajectoryKind::Cartesian);
    assert_eq!(kind(Sampling::Epi { shots: 1 }, 2), TrajectoryKind::Epi);
    assert_eq!(kind(Sampling::Spiral { interleaves: 2, acceleration: 1 }, 2), TrajectoryKind::Spiral);
    assert_eq!(
        kind(Sampling::Radial { spokes: 3, angles: SpokeAngles::Golden }, 2),
        TrajectoryKind::GoldenAngle
    );
    assert_eq!(
        kind(Sampling::StackOfStars { spokes: 3, angles: SpokeAngles::Uniform }, 3),
        TrajectoryKind::Radial
    );
    assert_eq!(kind(Sampling::Random { shots: 1, samples: 4 }, 3), TrajectoryKind::Other);
}

#[test]
fn bad_options_are_refused_by_name() {
    let base = SimulateOptions { matrix: [8, 8, 1], coils: 1, ..Default::default() };
    let refused = |options: SimulateOptions| match simulate(&options, &Monitor::silent()) {
        Err(error @ (Error::Value { .. } | Error::Shape { .. } | Error::NotFinite { .. })) => {
            error.to_string()
        }
        other => panic!("{options:?} gave {:?}", other.map(|s| s.notes)),
    };
    assert!(refused(SimulateOptions { matrix: [0, 8, 1], ..base.clone() }).contains("matrix along x"));
    assert!(refused(SimulateOptions { matrix: [8, 1 << 40, 1], ..base.clone() }).contains("matrix along y"));
    assert!(refused(SimulateOptions { matrix: [4096, 4096, 4096], ..base.clone() }).contains("coil images"));
    assert!(refused(SimulateOptions { fov_mm: [-1.0, 8.0, 1.0], ..base.clone() }).contains("field of view"));
    assert!(refused(SimulateOptions { coils: 0, ..base.clone() }).contains("coils"));
    assert!(refused(SimulateOptions { dims: 4, ..base.clone() }).contains("dimensions"));
    assert!(refused(SimulateOptions { repetitions: 0, ..base.clone() }).contains("repetitions"));
    assert!(refused(SimulateOptions { oversampling: 0, ..base.clone() }).contains("oversampling"));
    assert!(refused(SimulateOptions { snr: Some(-1.0), ..base.clone() }).contains("signal-to-noise"));
    assert!(refused(SimulateOptions { snr: Some(f64::NAN), ..base.clone() }).contains("signal-to-noise"));
    assert!(refused(SimulateOptions { noise_readouts: 3, ..base.clone() }).contains("signal-to-noise"));
    let covariance = Some(Array2::eye(3));
    assert!(
        refused(SimulateOptions { snr: Some(1.0), noise_covariance: covariance, ..base.clone() })
            .contains("covariance")
    );
    let slow = Hardware { dwell_us: 0.0, ..Hardware::default() };
    assert!(refused(SimulateOptions { hardware: slow, ..base.clone() }).contains("dwell"));
    let poisson = CartesianPattern::PoissonDisc { acceleration: 0.5, calibration: 0, slope: 1.0 };
    assert!(
        refused(SimulateOptions { sampling: Sampling::Cartesian(poisson), ..base.clone() })
            .contains("acceleration")
    );
    let volume = Sampling::Kooshball { spokes: 3, order: SphereOrder::Spiral };
    assert!(refused(SimulateOptions { sampling: volume, ..base.clone() }).contains("dimensions"));
    let stop = std::sync::atomic::AtomicBool::new(true);
    let stopped = simulate(&base, &Monitor::new(&rayspin_core::Silent, Some(&stop)));
    assert!(matches!(stopped, Err(Error::Interrupted)));
}

#[test]
fn the_smallest_scans_work() {
    for (dims, matrix) in [(2, [1, 1, 1]), (3, [1, 2, 3]), (2, [3, 1, 2])] {
        let simulation =
            run(&SimulateOptions { dims, matrix, coils: 2, snr: Some(5.0), ..Default::default() });
        let finite = |v: &C32| v.is_finite();
        assert!(simulation.scan.acquisitions.iter().all(|a| a.data.iter().all(finite)));
        assert!(simulation.maps.iter().all(finite));
    }
}
