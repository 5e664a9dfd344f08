//! From simulated scans, whose truth is known, to images.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::sync::Arc;

use common::{alike, changed, iterations};
use ndarray::{ArrayD, Axis, IxDyn};
use rayspin_core::{C32, Error, Geometry, Image, Monitor};
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::{sensitivity, vector};
use rayspin_linop::{FiniteDifference, LinearOp, Nudft, Sense};
use rayspin_mri::maps::{EspiritOptions, Sensitivities};
use rayspin_mri::methods::{
    Cartesian, CgSense, Combine, Gridding, LeastSquares, Regulariser, Value, Wavelet,
};
use rayspin_mri::recon::second_set;
use rayspin_mri::recon::{
    BatchSizes, Certify, ReconOptions, Reconstructor, ScanImage, Selection, reconstruct_frame,
    reconstruct_scan,
};
use rayspin_mri::scan::{Frame, FrameOptions, Label, Samples};
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SphereOrder, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, Simulation, simulate};

fn device() -> Device {
    Device::cpu_with_threads(2).unwrap()
}

fn scan(options: SimulateOptions) -> Simulation {
    simulate(&options, &Monitor::silent()).unwrap()
}

fn recon(simulation: &Simulation, options: ReconOptions) -> ScanImage {
    reconstruct_scan(
        &device(),
        &simulation.scan,
        &Selection::default(),
        &FrameOptions::default(),
        &options,
        &Monitor::silent(),
    )
    .unwrap()
}

fn slice(n: usize, coils: usize, sampling: Sampling) -> SimulateOptions {
    SimulateOptions { matrix: [n, n, 1], coils, sampling, ..SimulateOptions::default() }
}

/// √(Σ|a − b|² / Σ|b|²).
fn error(a: &ArrayD<C32>, b: &ArrayD<C32>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    let difference: f64 = a.iter().zip(b).map(|(a, b)| f64::from((a - b).norm_sqr())).sum();
    (difference / b.iter().map(|b| f64::from(b.norm_sqr())).sum::<f64>()).sqrt()
}

fn magnitude(image: &Image) -> ArrayD<C32> {
    image.data().mapv(|v| C32::from(v.norm()))
}

/// The truth as a combination without the coils' shading undone shows it: |ρ| √Σ|c|².
fn shaded(simulation: &Simulation) -> ArrayD<C32> {
    let rss = simulation.maps.map_axis(Axis(0), |c| c.iter().map(|v| v.norm_sqr()).sum::<f32>().sqrt());
    let mut image = magnitude(&simulation.truth);
    image.zip_mut_with(&rss.into_dyn(), |v, &w| *v *= w);
    image
}

const FULL: Sampling = Sampling::Cartesian(CartesianPattern::Full);

#[test]
fn a_full_grid_gives_the_object_up_to_ringing() {
    let simulation = scan(slice(96, 1, FULL));
    let unpenalised = LeastSquares { regulariser: Regulariser::None, ..LeastSquares::default() };
    for options in [ReconOptions::of(Cartesian::default()), ReconOptions::of(unpenalised)] {
        let method = options.method.about().name;
        let found = error(recon(&simulation, options).image.data(), simulation.truth.data());
        assert!(found < 0.13, "{method}: {found}");
    }
    let coils = scan(slice(96, 4, FULL));
    let rss = recon(&coils, ReconOptions::of(Cartesian::default()));
    assert!(error(rss.image.data(), &shaded(&coils)) < 0.13);
}

#[test]
fn readout_oversampling_is_cropped_and_the_object_keeps_its_place() {
    let plain = scan(slice(64, 2, FULL));
    let wide = scan(SimulateOptions { oversampling: 2, ..slice(64, 2, FULL) });
    let options = || ReconOptions::of(Cartesian::default());
    let (a, b) = (recon(&wide, options()), recon(&plain, options()));
    assert_eq!(a.image.shape_zyx(), [1, 64, 64]);
    // Ringing beyond the field of view folds back in one and not in the other; one voxel's shift would be 0.3
    // and more.
    let difference = error(a.image.data(), b.image.data());
    assert!(difference < 0.05, "{difference}");
    assert_eq!(a.image.geometry(), b.image.geometry());
}

#[test]
fn every_trajectory_gives_the_object_by_gridding_and_by_cg_sense() {
    let volume = |sampling| SimulateOptions {
        dims: 3,
        matrix: [24, 24, 24],
        fov_mm: [220.0; 3],
        coils: 4,
        sampling,
        ..SimulateOptions::default()
    };
    let golden = SpokeAngles::Golden;
    // Bounds are the ringing of each trajectory's k-space support plus a fifth.
    let cases = [
        (slice(64, 4, Sampling::Radial { spokes: 104, angles: SpokeAngles::Uniform }), 0.20, 0.17),
        (slice(64, 4, Sampling::Radial { spokes: 160, angles: golden }), 0.20, 0.17),
        (slice(64, 4, Sampling::Spiral { interleaves: 8, acceleration: 1 }), 0.20, 0.17),
        (slice(64, 4, Sampling::Epi { shots: 2 }), 0.20, 0.17),
        (volume(Sampling::Kooshball { spokes: 1100, order: SphereOrder::Spiral }), 0.40, 0.30),
        (volume(Sampling::StackOfStars { spokes: 40, angles: SpokeAngles::Uniform }), 0.35, 0.30),
        (volume(Sampling::StackOfSpirals { interleaves: 4, acceleration: 1 }), 0.35, 0.30),
        (volume(Sampling::Random { shots: 200, samples: 256 }), 0.60, 0.30),
    ];
    for (options, gridding_bound, sense_bound) in cases {
        let simulation = scan(options.clone());
        let maps = Some(Arc::new(simulation.maps.clone().into_dyn()));
        let gridding = ReconOptions {
            maps: maps.clone(),
            ..ReconOptions::of(Gridding { combine: Some(Combine::Maps) })
        };
        let found = error(recon(&simulation, gridding).image.data(), simulation.truth.data());
        println!("{:?}: gridding {found:.3}", options.sampling);
        assert!(found < gridding_bound, "{:?}: gridding {found}", options.sampling);
        let sense = CgSense { lambda: 1e-5, iterations: 40, ..CgSense::default() };
        let sense = ReconOptions { maps, ..ReconOptions::of(sense) };
        let result = recon(&simulation, sense);
        let found = error(result.image.data(), simulation.truth.data());
        println!("{:?}: CG-SENSE {found:.3}", options.sampling);
        assert!(found < sense_bound, "{:?}: CG-SENSE {found}", options.sampling);
        let residuals = &result.solves[0].residuals;
        assert!(residuals.last() < residuals.first());
    }
}

#[test]
fn cg_sense_with_its_own_maps_undoes_the_aliasing_of_a_thinned_grid() {
    let pattern = CartesianPattern::Uniform { acceleration: [2, 1], calibration: 20 };
    let simulation = scan(slice(96, 8, Sampling::Cartesian(pattern)));
    let truth = shaded(&simulation);
    let aliased = recon(&simulation, ReconOptions::of(Cartesian::default()));
    let sense = recon(&simulation, ReconOptions::of(CgSense::default()));
    let (before, after) =
        (error(&magnitude(&aliased.image), &truth), error(&magnitude(&sense.image), &truth));
    println!("aliased {before:.3}, CG-SENSE {after:.3}");
    assert!(after < 0.13 && before > 2.0 * after, "aliased {before}, CG-SENSE {after}");
    assert!(sense.notes.iter().any(|note| note.contains("central 21 lines")), "{:?}", sense.notes);
}

#[test]
fn cg_sense_with_its_own_maps_removes_the_streaks_of_few_spokes() {
    let simulation = scan(slice(96, 8, Sampling::Radial { spokes: 40, angles: SpokeAngles::Golden }));
    let truth = shaded(&simulation);
    let gridded = recon(&simulation, ReconOptions::of(Gridding::default()));
    let options = ReconOptions::of(CgSense { lambda: 1e-4, ..CgSense::default() });
    let sense = recon(&simulation, options);
    let (before, after) =
        (error(&magnitude(&gridded.image), &truth), error(&magnitude(&sense.image), &truth));
    println!("gridded {before:.3}, CG-SENSE {after:.3}");
    assert!(after < 0.22 && before > 2.0 * after, "gridded {before}, CG-SENSE {after}");
}

/// Maps that are given in sets make the image that they made when they were estimated.
#[test]
fn sets_of_maps_are_given_back() {
    let lines = Sampling::Cartesian(CartesianPattern::Uniform { acceleration: [2, 1], calibration: 20 });
    let spokes = Sampling::Radial { spokes: 60, angles: SpokeAngles::Golden };
    for (sampling, repetitions) in [(lines.clone(), 1), (lines, 2), (spokes.clone(), 1), (spokes, 2)] {
        let simulation = scan(SimulateOptions { repetitions, ..slice(48, 5, sampling) });
        let sets = Some(Sensitivities::Espirit(EspiritOptions { sets: 2, ..EspiritOptions::default() }));
        let options =
            ReconOptions { sensitivities: sets, keep_maps: true, ..ReconOptions::of(CgSense::default()) };
        let estimated = recon(&simulation, options);
        let maps = estimated.maps.unwrap();
        assert_eq!(maps.shape(), [2, 5, 1, 48, 48]);
        let maps = Some(Arc::new(maps));
        let options = ReconOptions { maps: maps.clone(), ..ReconOptions::of(CgSense::default()) };
        let given = recon(&simulation, options);
        let difference = error(given.image.data(), estimated.image.data());
        assert!(difference < 1e-5, "{difference}");
        let refused = ReconOptions { maps, ..ReconOptions::of(LeastSquares::default()) }.validate();
        assert!(refused.unwrap_err().to_string().contains("sets of maps"));
    }
}

/// k-space `[coil, rows, x]` of a field of view that holds the middle `rows` of the image's rows: the others
/// fold over them.
fn folded(simulation: &Simulation, rows: usize) -> ArrayD<C32> {
    let device = device();
    let index = simulation.scan.frames().unwrap();
    let frame = index.assemble(Label::default(), &FrameOptions::default(), &mut vec![]).unwrap();
    let Samples::Cartesian { kspace, .. } = frame.samples else { panic!("expected a grid") };
    let (coils, all, columns) = (kspace.shape()[0], kspace.shape()[1], kspace.shape()[2]);
    let mut images = Array::from_host(&device, &kspace).unwrap();
    Fft::new(&device, &[all, columns], Norm::Unitary).unwrap().inverse(&mut images).unwrap();
    let images = images.into_host().unwrap();
    let mut sum = ArrayD::zeros(IxDyn(&[coils, rows, columns]));
    for ((coil, y, x), value) in images.into_dimensionality::<ndarray::Ix3>().unwrap().indexed_iter() {
        let row = (y + rows - (all - rows) / 2) % rows;
        sum[[coil, row, x]] += *value;
    }
    let mut kspace = Array::from_host(&device, &sum).unwrap();
    Fft::new(&device, &[rows, columns], Norm::Unitary).unwrap().forward(&mut kspace).unwrap();
    kspace.into_host().unwrap()
}

/// √Σ|y_j|² of the coil images of k-space `[coil, y, x]`.
fn coil_sum(kspace: &ArrayD<C32>) -> ArrayD<C32> {
    let frame = Frame::from_grid(kspace.clone(), Geometry::default()).unwrap();
    let options = ReconOptions::of(Cartesian::default());
    let found = reconstruct_frame(&device(), frame, Vec::new(), &options, &Monitor::silent()).unwrap();
    found.image.data().clone()
}

/// A field of view that does not hold the object is noticed, and none that does, at any noise.
#[test]
fn an_object_larger_than_the_field_of_view_gets_a_second_set_of_maps() {
    let options = ReconOptions::of(CgSense::default());
    let lines = |kspace: &ArrayD<C32>, width: usize| {
        let half = kspace.shape()[1] / 2;
        let mut kept = kspace.clone();
        for (y, mut line) in kept.axis_iter_mut(Axis(1)).enumerate() {
            if y % 2 == 1 && y.abs_diff(half) > width / 2 {
                line.fill(C32::ZERO);
            }
        }
        Frame::from_grid(kept, Geometry::default()).unwrap()
    };
    for (coils, snr) in [(4, None), (8, Some(8.0)), (6, Some(30.0))] {
        let simulation =
            scan(SimulateOptions { snr, ..slice(96, coils, Sampling::Cartesian(CartesianPattern::Full)) });
        for rows in [96, 80, 68] {
            let kspace = folded(&simulation, rows);
            let frame = lines(&kspace, 24);
            let found = second_set(&device(), &frame, &options).unwrap();
            let Some((how, reason)) = found else {
                assert!(rows == 96, "{coils} coils, {rows} rows");
                continue;
            };
            assert!(rows < 96 && how.sets() == 2 && reason.contains("% of the object"), "{rows}: {reason}");
            if snr.is_some() {
                continue;
            }
            let truth = coil_sum(&kspace);
            let [one, two] = [None, Some(how)].map(|sensitivities| {
                let options = ReconOptions { sensitivities, ..options.clone() };
                let silent = Monitor::silent();
                let found =
                    reconstruct_frame(&device(), frame.clone(), Vec::new(), &options, &silent).unwrap();
                error(&magnitude(&found.image), &truth)
            });
            println!("{coils} coils, {rows} of 96 rows: one set {one:.3}, two {two:.3}");
            assert!(two < 0.7 * one, "{coils} coils, {rows} rows: {one} {two}");
        }
    }
    let frame = lines(&folded(&scan(slice(96, 6, Sampling::Cartesian(CartesianPattern::Full))), 72), 24);
    let none = |options: ReconOptions| second_set(&device(), &frame, &options).unwrap().is_none();
    assert!(none(ReconOptions::of(Wavelet::default())) && none(ReconOptions::of(Cartesian::default())));
    assert!(none(ReconOptions { sensitivities: Some(Sensitivities::Walsh), ..options.clone() }));
    assert!(!none(options));
}

/// Few samples of a small matrix lie together in its centre, where a NUFFT errs by more than ε, and by less
/// than its bound.
#[test]
fn transforms_of_small_radial_scans_are_certified() {
    for (n, spokes, coils) in [(12, 19, 1), (18, 28, 3), (28, 44, 2), (40, 21, 1)] {
        let angles = SpokeAngles::Uniform;
        let simulation = scan(slice(n, coils, Sampling::Radial { spokes, angles }));
        let certify = Some(Certify { outputs: 500, seed: 4 });
        for options in [ReconOptions::of(Gridding::default()), ReconOptions::of(LeastSquares::default())] {
            for nufft_tolerance in [1e-2, 1e-4] {
                let found = recon(&simulation, ReconOptions { certify, nufft_tolerance, ..options.clone() });
                for certificate in found.certificates {
                    assert!(certificate.met() && certificate.error > 0.0, "{n}: {certificate:?}");
                    assert!(certificate.tolerance <= 6.0 * nufft_tolerance, "{certificate:?}");
                }
            }
        }
    }
}

/// The image must satisfy the equation that is documented, with the exact transform in place of NUFFT and
/// Toeplitz.
#[test]
fn the_image_solves_the_normal_equations_of_the_exact_transform() {
    let device = device();
    let simulation = scan(slice(20, 3, Sampling::Radial { spokes: 24, angles: SpokeAngles::Golden }));
    let index = simulation.scan.frames().unwrap();
    let frame = index.assemble(Label::default(), &FrameOptions::default(), &mut vec![]).unwrap();
    let Samples::NonCartesian { trajectory, data } = &frame.samples else { panic!("expected a trajectory") };
    let maps = simulation.maps.clone().into_shape_with_order(IxDyn(&[3, 20, 20])).unwrap();
    let lambda = 1.6;
    let options = ReconOptions {
        nufft_tolerance: 1e-6,
        maps: Some(Arc::new(maps.clone())),
        ..ReconOptions::of(CgSense {
            regulariser: Regulariser::Differences,
            lambda,
            iterations: 400,
            tolerance: 1e-6,
            ..CgSense::default()
        })
    };
    let mut reconstructor = Reconstructor::new(&device, options).unwrap();
    let result = reconstructor.frame(frame.clone(), &Monitor::silent()).unwrap();

    let maps = Array::from_host(&device, &maps).unwrap();
    let exact = Nudft::<f32>::new(&[3], trajectory.clone(), &[20, 20]).unwrap();
    let encode = exact.compose(Sense::new(maps.try_clone().unwrap()).unwrap()).unwrap();
    let image = Array::from_host(&device, &result.image).unwrap();
    // Fρ = N d, as ρ is a density.
    let scaled = data.mapv(|d| d * 400.0).into_dyn();
    let rhs = encode.adjoint(&Array::from_host(&device, &scaled).unwrap()).unwrap();
    let mut left = encode.normal(&image).unwrap();
    let penalty = FiniteDifference::new(&[20, 20]).unwrap().normal(&image).unwrap();
    let eigenvalue = result.solve.unwrap().eigenvalue;
    // The gradient is counted in 256ths of the field of view.
    let factor = (20.0f64 / 256.0).powi(2);
    vector::axpy((lambda * factor * eigenvalue).into(), &penalty, &mut left).unwrap();
    vector::axpy((-1.0).into(), &rhs, &mut left).unwrap();
    let relative = (vector::norm_squared(&left).unwrap() / vector::norm_squared(&rhs).unwrap()).sqrt();
    assert!(relative < 2e-5, "{relative:e}");
    // The equation is not met by nothing: the right-hand side alone is far from 0.
    assert!(sensitivity::sum_of_squares(&maps).unwrap().cpu().iter().any(|&w| w > 0.1));
}

#[test]
fn one_lambda_means_the_same_at_any_gain() {
    let simulation = scan(SimulateOptions { snr: Some(20.0), ..slice(48, 4, FULL) });
    let mut loud = simulation.clone();
    for acquisition in &mut loud.scan.acquisitions {
        acquisition.data.mapv_inplace(|v| v * 1e6);
    }
    let options = |lambda| {
        let regulariser = Regulariser::Differences;
        ReconOptions::of(CgSense { regulariser, lambda, ..CgSense::default() })
    };
    let quiet = recon(&simulation, options(1.5));
    let loud = recon(&loud, options(1.5));
    let back = loud.image.data().mapv(|v| v / 1e6);
    assert!(error(&back, quiet.image.data()) < 1e-4);
    let plain = recon(&simulation, options(0.0));
    assert!(error(quiet.image.data(), plain.image.data()) > 0.02, "lambda must matter");
}

#[test]
fn slices_and_repetitions_come_out_stacked_with_their_geometry() {
    let simulation = scan(SimulateOptions {
        matrix: [32, 32, 3],
        fov_mm: [200.0, 200.0, 30.0],
        repetitions: 2,
        ..slice(32, 2, FULL)
    });
    let options = || ReconOptions::of(Cartesian::default());
    let all = recon(&simulation, options());
    assert_eq!(all.image.data().shape(), [2, 3, 32, 32]);
    let (found, wanted) = (all.image.geometry(), simulation.truth.geometry());
    for axis in 0..3 {
        assert!((found.spacing_mm[axis] - wanted.spacing_mm[axis]).abs() < 1e-4, "{found:?} {wanted:?}");
        assert!((found.position_mm[axis] - wanted.position_mm[axis]).abs() < 1e-3, "{found:?} {wanted:?}");
    }
    let volume = all.image.data().index_axis(Axis(0), 0).to_owned();
    assert!(error(&volume, &shaded(&simulation)) < 0.25);
    let one = reconstruct_scan(
        &device(),
        &simulation.scan,
        &Selection { slice: Some(1.into()), repetition: Some(1.into()), ..Selection::default() },
        &FrameOptions::default(),
        &options(),
        &Monitor::silent(),
    )
    .unwrap();
    assert_eq!(
        one.image.data().index_axis(Axis(0), 0),
        all.image.data().index_axis(Axis(0), 1).index_axis(Axis(0), 1)
    );
}

#[test]
fn what_does_not_suit_is_refused_by_name() {
    let grid = scan(slice(16, 2, FULL));
    let spokes = scan(slice(16, 2, Sampling::Radial { spokes: 20, angles: SpokeAngles::Uniform }));
    let refused = |simulation: &Simulation, selection: Selection, options: ReconOptions| {
        let result = reconstruct_scan(
            &device(),
            &simulation.scan,
            &selection,
            &FrameOptions::default(),
            &options,
            &Monitor::silent(),
        );
        match result.unwrap_err() {
            Error::Value { what, .. } | Error::Shape { what, .. } => what,
            other => panic!("{other}"),
        }
    };
    let with = alike;
    let first = Selection::default();
    assert_eq!(refused(&grid, first.clone(), with("gridding")), "method");
    assert_eq!(refused(&spokes, first.clone(), with("cartesian")), "method");
    let negative = ReconOptions::of(CgSense { lambda: -1.0, ..CgSense::default() });
    assert_eq!(refused(&grid, first.clone(), negative), "lambda");
    assert_eq!(
        refused(&grid, first.clone(), ReconOptions { nufft_tolerance: 1e-9, ..ReconOptions::default() }),
        "epsilon"
    );
    assert_eq!(
        refused(&grid, Selection { slice: Some(7.into()), ..first.clone() }, with("cartesian")),
        "slice"
    );
    let maps = Some(Arc::new(ArrayD::zeros(IxDyn(&[3, 16, 16]))));
    assert_eq!(
        refused(&grid, first.clone(), ReconOptions { maps, ..ReconOptions::default() }),
        "sensitivity maps"
    );
    let gaps = CartesianPattern::Uniform { acceleration: [2, 1], calibration: 0 };
    let no_centre = scan(slice(16, 2, Sampling::Cartesian(gaps)));
    assert_eq!(refused(&no_centre, first.clone(), with("cg-sense")), "calibration centre");
}

#[test]
fn coil_images_that_stay_apart_are_those_that_are_combined() {
    let grid = scan(slice(21, 3, FULL));
    let spokes = scan(slice(20, 3, Sampling::Radial { spokes: 30, angles: SpokeAngles::Golden }));
    for (simulation, methods) in [(&grid, ["cartesian", "ls"]), (&spokes, ["gridding", "ls"])] {
        for method in methods {
            let image = |combine| {
                let combine = [("combine", Value::Choice(combine))];
                recon(simulation, changed(alike(method), &combine)).image.data().clone()
            };
            let (apart, together) = (image("none"), image("rss"));
            assert_eq!(apart.shape(), [&[3], together.shape()].concat(), "{method}");
            let squares = apart.mapv(|v| v.norm_sqr()).sum_axis(ndarray::Axis(0));
            let largest = together.iter().map(|v| v.norm()).fold(0.0, f32::max);
            for (sum, root) in squares.iter().zip(&together) {
                assert!((sum.sqrt() - root.re).abs() <= 1e-5 * largest, "{method}: {sum} {root}");
            }
            assert!(apart.iter().any(|v| v.im.abs() > 1e-3 * largest), "{method}: coil images have no phase");
        }
    }
}

#[test]
fn coils_taken_some_at_a_time_give_the_same_image() {
    let grid = scan(slice(24, 5, FULL));
    let spokes = scan(slice(24, 5, Sampling::Radial { spokes: 30, angles: SpokeAngles::Golden }));
    for (simulation, methods) in
        [(&grid, ["cartesian", "ls", "cg-sense"]), (&spokes, ["gridding", "ls", "cg-sense"])]
    {
        for method in methods {
            for combine in ["rss", "maps", "none"] {
                let image = |coil_batch| {
                    let combine = [("combine", Value::Choice(combine))];
                    let mut options = changed(iterations(alike(method), 5), &combine);
                    options.run.batch_sizes = BatchSizes { coils: coil_batch, ..BatchSizes::default() };
                    recon(simulation, options).image.data().clone()
                };
                let whole = image(None);
                let largest = whole.iter().map(|v| v.norm()).fold(0.0, f32::max);
                for batch in [1, 2] {
                    for (a, b) in image(Some(batch)).iter().zip(&whole) {
                        assert!((a - b).norm() <= 2e-5 * largest, "{method} {combine} {batch}: {a} {b}");
                    }
                }
            }
        }
    }
}
