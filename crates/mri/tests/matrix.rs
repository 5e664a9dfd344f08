//! One image at any matrix: its values, and what λ does to it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use ndarray::{ArrayD, Axis, Slice};
use rayspin_core::{C32, Monitor};
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_mri::recon::{Combine, Method, ReconOptions, Regulariser, Selection, reconstruct_scan};
use rayspin_mri::scan::FrameOptions;
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, Simulation, simulate};

const COILS: usize = 4;

/// A scan of `[x, y]` voxels over the same field of view.
fn simulated(matrix: [usize; 2], sampling: Sampling) -> Simulation {
    let [nx, ny] = matrix;
    let options =
        SimulateOptions { matrix: [nx, ny, 1], coils: COILS, sampling, ..SimulateOptions::default() };
    simulate(&options, &Monitor::silent()).unwrap()
}

/// The image of a scan with `[x, y]` voxels.
fn image(scan: &Simulation, matrix: [usize; 2], options: &ReconOptions) -> ArrayD<C32> {
    let device = Device::cpu_with_threads(2).unwrap();
    // The coils' maps at this matrix.
    let maps = simulated(matrix, Sampling::Cartesian(CartesianPattern::Full)).maps.into_dyn();
    let options = ReconOptions { maps: Some(Arc::new(maps)), combine: Combine::Maps, ..options.clone() };
    let frames = FrameOptions { matrix: Some(matrix.to_vec()), ..FrameOptions::default() };
    let monitor = Monitor::silent();
    let found = reconstruct_scan(&device, &scan.scan, &Selection::default(), &frames, &options, &monitor);
    found.unwrap().image.data().index_axis(Axis(0), 0).to_owned()
}

/// The Fourier coefficients (1/N) Σ ρ e^{−i2πk·x} of an image at |k| < `width`/2.
fn centre(image: &ArrayD<C32>, width: usize) -> ArrayD<C32> {
    let device = Device::cpu_with_threads(1).unwrap();
    let mut spectrum = Array::from_host(&device, image).unwrap();
    Fft::new(&device, image.shape(), Norm::Unitary).unwrap().forward(&mut spectrum).unwrap();
    let root = (image.len() as f32).sqrt();
    let spectrum = spectrum.into_host().unwrap().mapv(|v| v / root);
    let cut = |n: usize| Slice::from(n / 2 - width / 2..n / 2 - width / 2 + width);
    spectrum.slice_each_axis(|axis| cut(axis.len)).to_owned()
}

/// √(Σ|a − b|² / Σ|b|²).
fn error(a: &ArrayD<C32>, b: &ArrayD<C32>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    let apart: f64 = a.iter().zip(b).map(|(a, b)| f64::from((a - b).norm_sqr())).sum();
    (apart / b.iter().map(|b| f64::from(b.norm_sqr())).sum::<f64>()).sqrt()
}

const HALF: Sampling =
    Sampling::Cartesian(CartesianPattern::Uniform { acceleration: [2, 1], calibration: 16 });
const SPOKES: Sampling = Sampling::Radial { spokes: 64, angles: SpokeAngles::Golden };

/// The frequencies that every matrix here resolves well.
const WIDTH: usize = 20;

#[test]
fn every_method_gives_the_same_values_at_any_matrix() {
    let truth = simulated([96, 96], HALF).truth.data().index_axis(Axis(0), 0).to_owned();
    let truth = centre(&truth, WIDTH);
    let cases = [
        (HALF, Method::Grappa, 0.05),
        (HALF, Method::CgSense, 0.05),
        (HALF, Method::LeastSquares, 1.0),
        (Sampling::Cartesian(CartesianPattern::Full), Method::Cartesian, 0.02),
        (SPOKES, Method::Gridding, 0.05),
        (SPOKES, Method::CgSense, 0.05),
        (SPOKES, Method::Wavelet, 0.05),
        (SPOKES, Method::TotalVariation, 0.05),
    ];
    for (sampling, method, bound) in cases {
        let options = ReconOptions::of(method);
        let scan = simulated([96, 96], sampling.clone());
        let large = centre(&image(&scan, [96, 96], &options), WIDTH);
        let off = error(&large, &truth);
        println!("{method:?}: {off:.4} from the truth");
        assert!(off < bound, "{method:?}: {off:.4} from the truth");
        // The scan itself on another matrix, and another scan.
        for (scan, matrix) in
            [(&scan, [48, 48]), (&scan, [64, 96]), (&simulated([48, 48], sampling), [48, 48])]
        {
            let apart = error(&centre(&image(scan, matrix, &options), WIDTH), &large);
            println!("{method:?} {matrix:?}: {apart:.4}");
            assert!(apart < 0.015, "{method:?} {matrix:?}: {apart:.4}");
        }
    }
}

#[test]
fn one_lambda_means_the_same_at_any_matrix() {
    let of = |method, lambda| ReconOptions {
        lambda,
        iterations: 40,
        cg_tolerance: 1e-5,
        ..ReconOptions::of(method)
    };
    let smooth =
        |lambda| ReconOptions { regulariser: Regulariser::Differences, ..of(Method::CgSense, lambda) };
    let cases = [
        (HALF, of(Method::CgSense, 0.1)),
        (HALF, smooth(3.0)),
        (HALF, of(Method::TotalVariation, 0.03)),
        (SPOKES, of(Method::LeastSquares, 0.1)),
        (SPOKES, smooth(3.0)),
        (SPOKES, of(Method::TotalVariation, 0.03)),
        (SPOKES, of(Method::Wavelet, 0.02)),
    ];
    for (sampling, options) in cases {
        let scan = simulated([96, 96], sampling);
        let run = |matrix, options: &ReconOptions| centre(&image(&scan, matrix, options), WIDTH);
        let large = run([96, 96], &options);
        let doubled = ReconOptions { lambda: 2.0 * options.lambda, ..options.clone() };
        let effect = error(&run([48, 48], &doubled), &large);
        let what = (options.method, options.regulariser);
        for matrix in [[48, 48], [64, 96]] {
            let apart = error(&run(matrix, &options), &large);
            println!("{what:?} {matrix:?}: {apart:.4} apart, {effect:.4} with twice the λ");
            assert!(apart < 0.02 && apart < 0.7 * effect, "{what:?} {matrix:?}: {apart:.4} of {effect:.4}");
        }
    }
}
