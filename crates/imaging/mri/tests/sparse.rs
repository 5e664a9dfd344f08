//! Sparse images and anatomical references on simulated scans, and one λ at any scanner gain.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::sync::Arc;

use common::{changed, iterations, of};
use ndarray::{ArrayD, Axis, IxDyn};
use rayspin_core::{C32, Error, Monitor};
use rayspin_device::Device;
use rayspin_mri::methods::{self, CgSense, Regulariser, TotalVariation, Value};
use rayspin_mri::recon::{ReconOptions, ScanImage, Selection, reconstruct_scan};
use rayspin_mri::scan::{FrameOptions, Scan};
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, Simulation, simulate};

fn simulated(n: usize, coils: usize, sampling: Sampling, snr: Option<f64>) -> Simulation {
    let options =
        SimulateOptions { matrix: [n, n, 1], coils, sampling, snr, seed: 3, ..SimulateOptions::default() };
    simulate(&options, &Monitor::silent()).unwrap()
}

fn try_recon(scan: &Scan, options: &ReconOptions) -> Result<ScanImage, Error> {
    let device = Device::cpu_with_threads(2).unwrap();
    let (selection, frames) = (Selection::default(), FrameOptions::default());
    reconstruct_scan(&device, scan, &selection, &frames, options, &Monitor::silent())
}

fn recon(simulation: &Simulation, options: &ReconOptions) -> ArrayD<C32> {
    try_recon(&simulation.scan, options).unwrap().image.data().index_axis(Axis(0), 0).to_owned()
}

fn with_maps(simulation: &Simulation, options: ReconOptions) -> ReconOptions {
    ReconOptions { maps: Some(Arc::new(simulation.maps.clone().into_dyn())), ..options }
}

fn truth(simulation: &Simulation) -> ArrayD<C32> {
    simulation.truth.data().index_axis(Axis(0), 0).to_owned()
}

/// √(Σ|a − b|² / Σ|b|²).
fn error(a: &ArrayD<C32>, b: &ArrayD<C32>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    let apart: f64 = a.iter().zip(b).map(|(a, b)| f64::from((a - b).norm_sqr())).sum();
    (apart / b.iter().map(|b| f64::from(b.norm_sqr())).sum::<f64>()).sqrt()
}

fn poisson(n: usize) -> Sampling {
    Sampling::Cartesian(CartesianPattern::PoissonDisc { acceleration: 3.0, calibration: n / 4, slope: 1.0 })
}

fn spokes(n: usize) -> Sampling {
    Sampling::Radial { spokes: n / 2, angles: SpokeAngles::Golden }
}

const METHODS: [(&str, f64); 3] = [("cg-sense", 0.1), ("wavelet", 0.05), ("tv", 0.05)];

fn options(method: &str, lambda: f64) -> ReconOptions {
    let values = [("lambda", Value::Number(lambda)), ("tolerance", Value::Number(1e-6))];
    changed(iterations(of(method), 80), &values)
}

#[test]
fn one_lambda_means_the_same_at_any_scanner_gain() {
    for sampling in [poisson(48), spokes(48)] {
        let simulation = simulated(48, 4, sampling, Some(30.0));
        for (method, lambda) in METHODS {
            let chosen = iterations(with_maps(&simulation, options(method, lambda)), 25);
            let plain = recon(&simulation, &chosen);
            for gain in [1e-3, 1e4] {
                let mut other = simulation.clone();
                for acquisition in &mut other.scan.acquisitions {
                    acquisition.data.mapv_inplace(|v| v * gain);
                }
                let back = recon(&other, &chosen).mapv(|v| v / gain);
                let apart = error(&back, &plain);
                assert!(apart < 1e-4, "{method}, gain {gain}: {apart:.1e}");
            }
        }
    }
}

#[test]
fn sparse_images_are_nearer_to_the_truth_than_least_squares() {
    for sampling in [poisson(64), Sampling::Radial { spokes: 20, angles: SpokeAngles::Golden }] {
        let simulation = simulated(64, 4, sampling, Some(20.0));
        let wanted = truth(&simulation);
        let found = |method| {
            let best = [3e-4, 1e-3, 3e-3, 1e-2, 3e-2].map(|lambda| {
                let chosen = changed(of(method), &[("lambda", Value::Number(lambda))]);
                error(&recon(&simulation, &with_maps(&simulation, chosen)), &wanted)
            });
            best.into_iter().fold(f64::INFINITY, f64::min)
        };
        let [plain, wavelet, variation] = ["cg-sense", "wavelet", "tv"].map(found);
        println!(
            "at each one's best λ: CG-SENSE {plain:.3}, wavelet {wavelet:.3}, total variation {variation:.3}"
        );
        assert!(wavelet < 0.95 * plain && variation < 0.9 * plain, "{plain} {wavelet} {variation}");
    }
}

#[test]
fn one_coil_needs_no_maps() {
    let simulation = simulated(48, 1, spokes(48), None);
    for method in ["wavelet", "tv"] {
        let result = try_recon(&simulation.scan, &of(method)).unwrap();
        let maps = result.maps.unwrap();
        assert!(maps.iter().all(|&c| c == C32::ONE));
        assert_eq!(result.solves[0].solver, "FISTA");
        let objective = &result.solves[0].objective;
        assert_eq!(objective.len(), result.solves[0].iterations());
        assert!(objective.last() < objective.first());
    }
}

/// Edges of the reference stay where a uniform penalty blurs them.
#[test]
fn an_anatomical_reference_keeps_its_edges() {
    let simulation = simulated(64, 4, poisson(64), Some(10.0));
    let wanted = truth(&simulation);
    // Another contrast of the same anatomy.
    let reference = Arc::new(simulation.truth.data().mapv(|v| (v.norm() * 7.0).sqrt()));
    // Mean height of the strongest steps of the truth, relative to the truth's own.
    let steps: Vec<_> = wanted
        .indexed_iter()
        .filter(|(i, _)| i[1] + 1 < 64)
        .map(|(i, v)| (wanted[[i[0], i[1] + 1]] - v, i[0], i[1]))
        .filter(|(d, _, _)| d.norm() > 0.5)
        .collect();
    assert!(steps.len() > 50);
    let sharpness = |image: &ArrayD<C32>| {
        let along = |&(d, y, x): &(C32, usize, usize)| {
            let found = image[[y, x + 1]] - image[[y, x]];
            f64::from((found * d.conj()).re / d.norm_sqr())
        };
        steps.iter().map(along).sum::<f64>() / steps.len() as f64
    };
    for (method, regulariser, lambda) in [("cg-sense", "differences", 1.6), ("tv", "identity", 0.1)] {
        let run = |anatomy: Option<Arc<ArrayD<f32>>>| {
            // Total variation has a penalty of its own.
            let values = [
                ("regulariser", Value::Choice(regulariser)),
                ("lambda", Value::Number(lambda)),
                ("anatomy", anatomy.map_or(Value::Nothing, Value::Image)),
            ];
            recon(&simulation, &with_maps(&simulation, changed(of(method), &values)))
        };
        let (plain, guided) = (run(None), run(Some(reference.clone())));
        let errors = [&plain, &guided].map(|image| error(image, &wanted));
        let edges = [&plain, &guided].map(sharpness);
        println!("{method}: errors {errors:.3?}, edges {edges:.3?}");
        assert!(errors[1] < 0.8 * errors[0], "{method}: {errors:?}");
        assert!(edges[1] > edges[0] + 0.05 && edges[1] > 0.8, "{method}: {edges:?}");
    }
}

#[test]
fn references_that_do_not_fit_or_have_no_effect_are_refused() {
    let simulation = simulated(16, 2, Sampling::Cartesian(CartesianPattern::Full), None);
    let what = |options: ReconOptions| match try_recon(&simulation.scan, &options).unwrap_err() {
        Error::Value { what, .. } | Error::Shape { what, .. } | Error::NotFinite { what, .. } => what,
        other => panic!("{other}"),
    };
    let sense = |regulariser, reference: ArrayD<f32>| {
        let anatomy = Some(Arc::new(reference));
        ReconOptions::of(CgSense { regulariser, anatomy, ..CgSense::default() })
    };
    let variation = |reference: ArrayD<f32>| {
        let anatomy = Some(Arc::new(reference));
        ReconOptions::of(TotalVariation { anatomy, ..TotalVariation::default() })
    };
    let ones = |shape: &[usize]| ArrayD::from_elem(IxDyn(shape), 1.0f32);
    let broken = ArrayD::from_elem(IxDyn(&[16, 16]), f32::NAN);
    let named = "anatomical reference";
    for options in [
        sense(Regulariser::Identity, ones(&[16, 16])),
        variation(ones(&[16, 15])),
        variation(ones(&[2, 16, 16])),
        sense(Regulariser::Differences, ArrayD::zeros(IxDyn(&[16, 16]))),
        variation(broken),
    ] {
        assert_eq!(what(options.clone()), named, "{}", options.method.about().name);
    }
    // These have no such parameter.
    for method in ["wavelet", "gridding"] {
        let reference = Value::Image(Arc::new(ones(&[16, 16])));
        let error = methods::with(&*of(method).method, [("anatomy".to_owned(), reference)]).unwrap_err();
        assert!(matches!(&error, Error::Value { found, .. } if found == "anatomy"), "{method}: {error}");
    }
}
