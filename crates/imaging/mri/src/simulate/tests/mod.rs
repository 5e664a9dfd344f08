mod noise;
mod options;

use super::trajectory::{CartesianPattern, Hardware, Sampling, SphereOrder, SpokeAngles};
use super::*;
use crate::scan::{Acquisition, Flags, TrajectoryKind};
use ndarray::{Array2, Array3};
use rayspin_core::{C32, C64, Error, Monitor, TrajectoryUnits};
use std::f64::consts::TAU;

fn run(options: &SimulateOptions) -> Simulation {
    simulate(options, &Monitor::silent()).unwrap()
}

/// k of every sample of a readout, from its counters or its trajectory.
fn points(simulation: &Simulation, readout: &Acquisition) -> Vec<[f64; 3]> {
    let encoding = &simulation.scan.header.encodings[0];
    let os = (encoding.encoded.matrix[0] / encoding.recon.matrix[0]) as f64;
    let samples = readout.data.ncols();
    match &readout.trajectory {
        Some(t) => t
            .rows()
            .into_iter()
            .map(|row| std::array::from_fn(|axis| row.get(axis).map_or(0.0, |k| f64::from(*k))))
            .collect(),
        None => (0..samples)
            .map(|i| {
                [
                    (i as f64 - readout.centre_sample as f64) / os,
                    f64::from(readout.counters.step_1) - encoding.step_1.unwrap().centre as f64,
                    f64::from(readout.counters.step_2) - encoding.step_2.unwrap().centre as f64,
                ]
            })
            .collect(),
    }
}

/// Σ w_k d_k e^{+i2πk·x} of one coil by direct summation, factored along x; image readouts of one slice only.
fn adjoint(
    simulation: &Simulation,
    coil: usize,
    slice: u16,
    weight: impl Fn(&[f64; 3]) -> f64,
) -> Array3<C64> {
    let recon = simulation.scan.header.encodings[0].recon.matrix;
    let [nx, ny, nz] = recon;
    let at = |i: usize, n: usize| (i as f64 - (n / 2) as f64) / n as f64;
    let mut image = Array3::zeros((nz, ny, nx));
    let readouts = simulation.scan.acquisitions.iter();
    for readout in readouts.filter(|r| r.flags.is_image() && r.counters.slice == slice) {
        for (k, d) in points(simulation, readout).iter().zip(readout.data.row(coil)) {
            let value = C64::new(f64::from(d.re), f64::from(d.im)) * weight(k);
            let row: Vec<C64> = (0..nx).map(|ix| C64::cis(TAU * k[0] * at(ix, nx)) * value).collect();
            for iz in 0..nz {
                for iy in 0..ny {
                    let phase = C64::cis(TAU * (k[1] * at(iy, ny) + k[2] * at(iz, nz)));
                    for ix in 0..nx {
                        image[[iz, iy, ix]] += row[ix] * phase;
                    }
                }
            }
        }
    }
    image
}

/// ‖a − b‖/‖b‖ over the voxels.
fn distance(a: impl Iterator<Item = C64>, b: impl Iterator<Item = C64>) -> f64 {
    let (mut error, mut total) = (0.0, 0.0);
    for (x, y) in a.zip(b) {
        error += (x - y).norm_sqr();
        total += y.norm_sqr();
    }
    (error / total).sqrt()
}

#[test]
fn full_cartesian_k_space_shows_the_truth_up_to_gibbs_ringing() {
    for (matrix, oversampling) in [([64, 64, 1], 1), ([48, 37, 1], 2)] {
        let simulation = run(&SimulateOptions { matrix, oversampling, coils: 1, ..Default::default() });
        let encoding = &simulation.scan.header.encodings[0];
        assert_eq!(encoding.encoded.matrix, [matrix[0] * oversampling, matrix[1], 1]);
        assert!(simulation.scan.acquisitions.iter().all(|a| a.trajectory.is_none()));
        let image = adjoint(&simulation, 0, 0, |_| 1.0 / oversampling as f64);
        let truth = simulation.truth.data();
        let error = distance(image.iter().copied(), truth.iter().map(|v| C64::from(f64::from(v.re))));
        println!("Gibbs-limited error at {matrix:?}: {error:.3}");
        assert!(error < 0.2, "{error}");
        // Away from the edges of the ellipses the value is the phantom's: brain, dark ventricle, outside.
        let [nx, ny, _] = matrix;
        let mean = |x: f64, y: f64| {
            let (cx, cy) = ((nx as f64 * (0.5 + 0.5 * x)) as usize, (ny as f64 * (0.5 + 0.5 * y)) as usize);
            image.slice(ndarray::s![0, cy - 1..=cy + 1, cx - 1..=cx + 1]).iter().sum::<C64>() / 9.0
        };
        for (x, y, expected) in [(0.0, -0.42, 0.3), (0.0, 0.4, 0.2), (-0.26, 0.02, 0.0), (0.85, -0.8, 0.0)] {
            assert!((mean(x, y) - expected).norm() < 0.03, "({x}, {y}): {}", mean(x, y));
        }
    }
}

#[test]
fn coil_images_are_the_maps_times_the_truth() {
    let simulation = run(&SimulateOptions { matrix: [48, 48, 1], coils: 4, ..Default::default() });
    let truth = simulation.truth.data();
    let alone = run(&SimulateOptions { matrix: [48, 48, 1], coils: 1, ..Default::default() });
    let plain = adjoint(&alone, 0, 0, |_| 1.0);
    for coil in 0..4 {
        let image = adjoint(&simulation, coil, 0, |_| 1.0);
        let product = |object: &dyn Fn(usize) -> C64| -> Vec<C64> {
            simulation
                .maps
                .index_axis(ndarray::Axis(0), coil)
                .iter()
                .enumerate()
                .map(|(i, c)| C64::new(f64::from(c.re), f64::from(c.im)) * object(i))
                .collect()
        };
        let values: Vec<C64> = truth.iter().map(|v| C64::from(f64::from(v.re))).collect();
        let expected = product(&|i| values[i]);
        assert!(distance(image.iter().copied(), expected.iter().copied()) < 0.3);
        // Ringing is nearly the same with and without the smooth sensitivity, so this comparison is tighter.
        let ringing: Vec<C64> = plain.iter().copied().collect();
        let expected = product(&|i| ringing[i]);
        let error = distance(image.iter().copied(), expected.iter().copied());
        assert!(error < 0.12, "coil {coil}: {error}");
    }
}

#[test]
fn radial_and_three_dimensional_scans_show_the_object_too() {
    let radial = run(&SimulateOptions {
        matrix: [48, 48, 1],
        coils: 1,
        oversampling: 2,
        sampling: Sampling::Radial { spokes: 80, angles: SpokeAngles::Uniform },
        ..Default::default()
    });
    // A spoke's sample stands for the annulus sector |k| Δk π/M with Δk = ½, the centre's for a disc of
    // radius ¼.
    let image =
        adjoint(&radial, 0, 0, |k| (0.5 * k[0].hypot(k[1])).max(0.0625) * std::f64::consts::PI / 80.0);
    let truth = radial.truth.data();
    let error = distance(image.iter().copied(), truth.iter().map(|v| C64::from(f64::from(v.re))));
    println!("radial error: {error:.3}");
    assert!(error < 0.3, "{error}");
    assert_eq!(radial.scan.header.trajectory_units, Some(TrajectoryUnits::CyclesPerFov));

    let solid = run(&SimulateOptions { dims: 3, matrix: [24, 20, 16], coils: 1, ..Default::default() });
    assert_eq!(solid.scan.acquisitions.len(), 320);
    let image = adjoint(&solid, 0, 0, |_| 1.0);
    let truth = solid.truth.data();
    let error = distance(image.iter().copied(), truth.iter().map(|v| C64::from(f64::from(v.re))));
    println!("3-D Gibbs-limited error: {error:.3}");
    assert!(error < 0.35, "{error}");
    let centre = image[[8, 4, 12]];
    assert!((centre - C64::from(f64::from(truth[[8, 4, 12]].re))).norm() < 0.1, "{centre}");
}

#[test]
fn slices_are_cuts_through_the_volume() {
    let options = SimulateOptions {
        matrix: [32, 32, 5],
        fov_mm: [200.0, 200.0, 150.0],
        coils: 2,
        ..Default::default()
    };
    let simulation = run(&options);
    assert_eq!(simulation.scan.acquisitions.len(), 5 * 32);
    assert_eq!(simulation.truth.shape_zyx(), [5, 32, 32]);
    assert_eq!(simulation.maps.dim(), (2, 5, 32, 32));
    let encoding = &simulation.scan.header.encodings[0];
    assert_eq!((encoding.recon.matrix, encoding.recon.fov_mm[2]), ([32, 32, 1], 30.0));
    assert_eq!(encoding.slice.unwrap().maximum, 4);
    for slice in 0..5u16 {
        let readouts: Vec<_> =
            simulation.scan.acquisitions.iter().filter(|a| a.counters.slice == slice).collect();
        assert_eq!(readouts[0].position, [0.0, 0.0, 30.0 * (f32::from(slice) - 2.0)]);
        assert!(readouts[0].flags.contains(Flags::FIRST_IN_SLICE));
        assert!(readouts[31].flags.contains(Flags::LAST_IN_SLICE));
        let image = adjoint(&simulation, 1, slice, |_| 1.0);
        let s = usize::from(slice);
        let expected: Vec<C64> = simulation
            .truth
            .data()
            .index_axis(ndarray::Axis(0), s)
            .iter()
            .zip(simulation.maps.slice(ndarray::s![1, s, .., ..]))
            .map(|(v, c)| C64::new(f64::from(c.re), f64::from(c.im)) * f64::from(v.re))
            .collect();
        let error = distance(image.iter().copied(), expected.iter().copied());
        assert!(error < 0.3, "slice {slice}: {error}");
    }
    let geometry = simulation.truth.geometry();
    assert_eq!(geometry.spacing_mm, [6.25, 6.25, 30.0]);
    assert!(simulation.scan.acquisitions.last().unwrap().flags.contains(Flags::LAST_IN_MEASUREMENT));
}

#[test]
fn repetitions_repeat_the_object_with_their_own_noise_and_golden_angles() {
    let golden = SimulateOptions {
        matrix: [16, 16, 1],
        coils: 2,
        repetitions: 3,
        sampling: Sampling::Radial { spokes: 4, angles: SpokeAngles::Golden },
        ..Default::default()
    };
    let simulation = run(&golden);
    let readouts = &simulation.scan.acquisitions;
    assert_eq!(readouts.len(), 12);
    assert_eq!(readouts[11].counters.repetition, 2);
    assert_ne!(readouts[0].trajectory, readouts[4].trajectory);
    let uniform = SimulateOptions {
        sampling: Sampling::Radial { spokes: 4, angles: SpokeAngles::Uniform },
        ..golden.clone()
    };
    let simulation = run(&uniform);
    assert_eq!(simulation.scan.acquisitions[1].data, simulation.scan.acquisitions[5].data);
    let noisy = run(&SimulateOptions { snr: Some(30.0), ..uniform });
    assert_ne!(noisy.scan.acquisitions[1].data, noisy.scan.acquisitions[5].data);
}

#[test]
fn every_sampling_gives_the_closed_form_at_the_points_the_file_holds() {
    let samplings = [
        (2, Sampling::Spiral { interleaves: 4, acceleration: 1 }),
        (2, Sampling::Epi { shots: 2 }),
        (2, Sampling::Random { shots: 3, samples: 20 }),
        (3, Sampling::Kooshball { spokes: 5, order: SphereOrder::GoldenMeans }),
        (3, Sampling::StackOfStars { spokes: 3, angles: SpokeAngles::Uniform }),
        (3, Sampling::StackOfSpirals { interleaves: 4, acceleration: 1 }),
        (
            3,
            Sampling::Cartesian(CartesianPattern::PoissonDisc {
                acceleration: 3.0,
                calibration: 3,
                slope: 1.0,
            }),
        ),
    ];
    for (dims, sampling) in samplings {
        let simulation = run(&SimulateOptions {
            dims,
            matrix: [16, 12, if dims == 3 { 9 } else { 1 }],
            fov_mm: [160.0, 120.0, 90.0],
            coils: 3,
            sampling: sampling.clone(),
            ..Default::default()
        });
        let coils = CoilSensitivities::loops(dims, 3).unwrap();
        let phantom = if dims == 3 {
            Phantom::shepp_logan_3d(Contrast::Modified)
        } else {
            Phantom::shepp_logan_2d(Contrast::Modified)
        };
        let header = &simulation.scan.header;
        assert_eq!(header.coils, Some(3));
        for readout in simulation.scan.acquisitions.iter().step_by(3) {
            for (sample, k) in points(&simulation, readout).iter().enumerate().step_by(7) {
                for coil in 0..3 {
                    // Σ_j w_j ρ̂(k − κ_j), term by term.
                    let expected: C64 = coils
                        .harmonics()
                        .iter()
                        .zip(coils.weights().row(coil))
                        .map(|(kappa, w)| {
                            let shifted: Vec<f64> = (0..dims).map(|axis| k[axis] - kappa[axis]).collect();
                            phantom.transform(&shifted) * w
                        })
                        .sum();
                    let found = readout.data[[coil, sample]];
                    let error = (C64::new(f64::from(found.re), f64::from(found.im)) - expected).norm();
                    assert!(error < 1e-6, "{sampling:?}: {found} against {expected}");
                }
            }
        }
    }
}

#[test]
fn a_changing_object_is_seen_as_it_is_at_each_readout() {
    let spokes = Sampling::Radial { spokes: 7, angles: SpokeAngles::Golden };
    let (beat, enhance) = (Dynamics::Beat { period_s: 0.31 }, Dynamics::Enhance { time_s: 0.2 });
    for (object, dynamics, slices) in [
        (Object::SheppLogan, beat, 1),
        (Object::SheppLogan, enhance, 1),
        (Object::SheppLogan, beat, 3),
        (Object::Thorax, beat, 3),
        (Object::Thorax, enhance, 1),
    ] {
        let interval = 7.5;
        let options = SimulateOptions {
            phantom: object,
            matrix: [24, 24, slices],
            coils: 1,
            sampling: spokes.clone(),
            repetitions: 4,
            dynamics: Some(dynamics),
            readout_interval_ms: Some(interval),
            truth_window: Some(TruthWindow { readouts: 9, stride: 5 }),
            ..Default::default()
        };
        let simulation = run(&options);
        let phantom_at = |slice: usize, t: f64| match slices {
            1 => dynamics.at(&options.phantom(2), t).unwrap(),
            _ => {
                let whole = dynamics.at(&options.phantom(3), t).unwrap();
                whole.slice((slice as f64 - (slices / 2) as f64) / slices as f64).unwrap()
            }
        };
        let mut times = vec![Vec::new(); slices];
        for (index, readout) in simulation.scan.acquisitions.iter().enumerate() {
            let t = index as f64 * interval / 1e3;
            assert_eq!(readout.time_stamp, (t * 1e3 / 2.5).round() as u32);
            let slice = usize::from(readout.counters.slice);
            times[slice].push(t);
            let phantom = phantom_at(slice, t);
            for (k, d) in points(&simulation, readout).iter().zip(readout.data.row(0)).step_by(5) {
                let expected = phantom.transform(&k[..2]);
                assert!((C64::new(d.re.into(), d.im.into()) - expected).norm() < 1e-6, "{dynamics:?}");
            }
        }
        // Windows 0, 5, 10 and 15 of 28 readouts of each slice.
        assert_eq!(simulation.truth.data().shape(), [4, slices, 24, 24]);
        for image in 0..4 {
            for (slice, times) in times.iter().enumerate() {
                let mean = times[5 * image..5 * image + 9].iter().sum::<f64>() / 9.0;
                let expected = phantom_at(slice, mean).voxel_means([1, 24, 24]);
                let found = simulation.truth.data().index_axis(ndarray::Axis(0), image);
                let found = found.index_axis(ndarray::Axis(0), slice);
                let pairs = found.iter().zip(expected.iter());
                assert!(pairs.map(|(a, b)| (f64::from(a.re) - b).abs()).fold(0.0, f64::max) < 1e-6);
            }
        }
        let still = run(&SimulateOptions { dynamics: None, truth_window: None, ..options.clone() });
        let differ = simulation.scan.acquisitions.iter().zip(&still.scan.acquisitions);
        assert!(differ.filter(|(a, b)| a.data != b.data).count() > 4, "{dynamics:?} changes nothing");
        for wrong in [
            SimulateOptions { readout_interval_ms: None, ..options.clone() },
            SimulateOptions { readout_interval_ms: Some(0.0), ..options.clone() },
            SimulateOptions { dynamics: Some(Dynamics::Beat { period_s: -1.0 }), ..options.clone() },
            SimulateOptions { dynamics: None, ..options.clone() },
            SimulateOptions {
                truth_window: Some(TruthWindow { readouts: 29, stride: 1 }),
                ..options.clone()
            },
        ] {
            assert!(simulate(&wrong, &Monitor::silent()).is_err());
        }
    }
}
