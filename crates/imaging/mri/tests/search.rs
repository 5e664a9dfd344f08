//! λ that is searched for, beside the best by the truth.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::sync::Arc;

use common::changed;
use ndarray::ArrayD;
use rayspin_core::{C32, Monitor};
use rayspin_device::Device;
use rayspin_mri::methods::{CgSense, Combine, LeastSquares, Value, Wavelet};
use rayspin_mri::recon::{ReconOptions, ScanImage, Selection, reconstruct_scan};
use rayspin_mri::scan::FrameOptions;
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, Simulation, simulate};

fn recon(simulation: &Simulation, options: &ReconOptions) -> Result<ScanImage, rayspin_core::Error> {
    let device = Device::cpu_with_threads(2).unwrap();
    let (all, frames) = (Selection::default(), FrameOptions::default());
    reconstruct_scan(&device, &simulation.scan, &all, &frames, options, &Monitor::silent())
}

/// √(Σ|a − b|² / Σ|b|²).
fn error(a: &ArrayD<C32>, b: &ArrayD<C32>) -> f64 {
    let difference: f64 = a.iter().zip(b).map(|(a, b)| f64::from((a - b).norm_sqr())).sum();
    (difference / b.iter().map(|b| f64::from(b.norm_sqr())).sum::<f64>()).sqrt()
}

fn scan(sampling: Sampling, snr: f64) -> Simulation {
    let options = SimulateOptions {
        matrix: [48, 48, 1],
        coils: 4,
        sampling,
        snr: Some(snr),
        repetitions: 2,
        ..SimulateOptions::default()
    };
    simulate(&options, &Monitor::silent()).unwrap()
}

#[test]
fn a_searched_lambda_is_nearly_as_good_as_the_best_by_the_truth() {
    let poisson =
        Sampling::Cartesian(CartesianPattern::PoissonDisc { acceleration: 2.0, calibration: 12, slope: 1.0 });
    let spokes = Sampling::Radial { spokes: 40, angles: SpokeAngles::Golden };
    for (sampling, snr) in [(poisson, 8.0), (spokes.clone(), 5.0), (spokes, 100.0)] {
        let simulation = scan(sampling, snr);
        let first = |image: &ArrayD<C32>| match image.ndim() {
            4 => image.index_axis(ndarray::Axis(0), 0).to_owned(),
            _ => image.clone(),
        };
        let truth = first(simulation.truth.data());
        let maps = Some(Arc::new(simulation.maps.clone().into_dyn()));
        for options in [ReconOptions::of(CgSense::default()), ReconOptions::of(Wavelet::default())] {
            let options = ReconOptions { maps: maps.clone(), ..options };
            let at = |exponent: f64| {
                let lambda = [("lambda", Value::Number(10f64.powf(exponent)))];
                let image = recon(&simulation, &changed(options.clone(), &lambda)).unwrap().image;
                error(&first(image.data()), &truth)
            };
            let errors: Vec<f64> = (-10..=0).map(|half| at(f64::from(half) / 2.0)).collect();
            let best = errors.iter().copied().fold(f64::INFINITY, f64::min);
            let found = recon(&simulation, &ReconOptions { search_lambda: true, ..options.clone() }).unwrap();
            let searched = found.searched.unwrap();
            let own = at(searched.lambda.log10());
            let name = options.method.about().name;
            assert!(
                own < 1.25 * best,
                "{name} at SNR {snr}: {own} with {searched:?}, best {best} of {errors:?}"
            );
            assert!(searched.tried.len() >= 5 && searched.tried.iter().all(|[_, error]| *error >= -1.0));
            // The image is the image for the λ found, in both repetitions.
            let lambda = [("lambda", Value::Number(searched.lambda))];
            let again = recon(&simulation, &changed(options, &lambda)).unwrap();
            assert!(error(found.image.data(), again.image.data()) < 1e-5, "{name}");
            assert!(found.notes.iter().any(|note| note.contains("held out")), "{:?}", found.notes);
        }
    }
}

#[test]
fn one_coil_whose_map_is_estimated_is_searched_like_several() {
    let sampling = Sampling::Radial { spokes: 60, angles: SpokeAngles::Golden };
    let options = SimulateOptions {
        matrix: [48, 48, 1],
        coils: 1,
        sampling,
        snr: Some(10.0),
        ..SimulateOptions::default()
    };
    let simulation = simulate(&options, &Monitor::silent()).unwrap();
    for options in [ReconOptions::of(CgSense::default()), ReconOptions::of(Wavelet::default())] {
        let found = recon(&simulation, &ReconOptions { search_lambda: true, ..options.clone() }).unwrap();
        let lambda = [("lambda", Value::Number(found.searched.unwrap().lambda))];
        let again = recon(&simulation, &changed(options, &lambda)).unwrap();
        assert!(error(found.image.data(), again.image.data()) < 1e-5);
    }
}

#[test]
fn a_method_without_one_image_of_all_coils_is_refused() {
    let simulation = scan(Sampling::Radial { spokes: 40, angles: SpokeAngles::Golden }, 20.0);
    let method = LeastSquares { combine: Some(Combine::RootSumOfSquares), ..LeastSquares::default() };
    let options = ReconOptions { search_lambda: true, ..ReconOptions::of(method) };
    let said = recon(&simulation, &options).unwrap_err().to_string();
    assert!(said.contains("lambda") && said.contains("ls"), "{said}");
}
