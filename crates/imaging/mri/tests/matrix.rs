//! One image at any matrix: its values, and what λ does to it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::sync::Arc;

use common::{changed, of};
use ndarray::{ArrayD, Axis, Slice};
use rayspin_core::{C32, Monitor};
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_mri::methods::Value;
use rayspin_mri::recon::{ReconOptions, Selection, reconstruct_scan};
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
    let options = changed(options.clone(), &[("combine", Value::Choice("maps"))]);
    let options = ReconOptions { maps: Some(Arc::new(maps)), ..options };
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
        (HALF, "grappa", 0.05),
        (HALF, "cg-sense", 0.05),
        (HALF, "ls", 1.0),
        (Sampling::Cartesian(CartesianPattern::Full), "cartesian", 0.02),
        (SPOKES, "gridding", 0.05),
        (SPOKES, "cg-sense", 0.05),
        (SPOKES, "wavelet", 0.05),
        (SPOKES, "tv", 0.05),
    ];
    for (sampling, method, bound) in cases {
        let options = of(method);
        let scan = simulated([96, 96], sampling.clone());
        let large = centre(&image(&scan, [96, 96], &options), WIDTH);
        let off = error(&large, &truth);
        println!("{method}: {off:.4} from the truth");
        assert!(off < bound, "{method}: {off:.4} from the truth");
        // The scan itself on another matrix, and another scan.
        for (scan, matrix) in
            [(&scan, [48, 48]), (&scan, [64, 96]), (&simulated([48, 48], sampling), [48, 48])]
        {
            let apart = error(&centre(&image(scan, matrix, &options), WIDTH), &large);
            println!("{method} {matrix:?}: {apart:.4}");
            assert!(apart < 0.015, "{method} {matrix:?}: {apart:.4}");
        }
    }
}

#[test]
fn one_lambda_means_the_same_at_any_matrix() {
    let of = |method, lambda| {
        let (lambda, tolerance) = (Value::Number(lambda), Value::Number(1e-5));
        changed(of(method), &[("lambda", lambda), ("iterations", Value::Count(40)), ("tolerance", tolerance)])
    };
    let smooth = |lambda| changed(of("cg-sense", lambda), &[("regulariser", Value::Choice("differences"))]);
    let cases = [
        (HALF, of("cg-sense", 0.1)),
        (HALF, smooth(3.0)),
        (HALF, of("tv", 0.03)),
        (SPOKES, of("ls", 0.1)),
        (SPOKES, smooth(3.0)),
        (SPOKES, of("tv", 0.03)),
        (SPOKES, of("wavelet", 0.02)),
    ];
    for (sampling, options) in cases {
        let scan = simulated([96, 96], sampling);
        let run = |matrix, options: &ReconOptions| centre(&image(&scan, matrix, options), WIDTH);
        let large = run([96, 96], &options);
        let Some(Value::Number(lambda)) = options.method.get("lambda") else { panic!("no λ") };
        let doubled = changed(options.clone(), &[("lambda", Value::Number(2.0 * lambda))]);
        let effect = error(&run([48, 48], &doubled), &large);
        let what = (options.method.about().name, options.method.get("regulariser"));
        for matrix in [[48, 48], [64, 96]] {
            let apart = error(&run(matrix, &options), &large);
            println!("{what:?} {matrix:?}: {apart:.4} apart, {effect:.4} with twice the λ");
            assert!(apart < 0.02 && apart < 0.7 * effect, "{what:?} {matrix:?}: {apart:.4} of {effect:.4}");
        }
    }
}
