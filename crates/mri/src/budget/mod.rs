//! What a reconstruction takes, stage by stage, before it begins: memory as the code allocates it, and work.
//!
//! The sizes come from the plans' own accounts ([`Nufft::needs`], [`Toeplitz::bytes_needed`], …) and from the arrays that
//! [`crate::recon`] holds at each moment. Iterations are counted as if none converged early.

mod ledger;

use ndarray::ArrayD;
use rayspin_core::{Error, Result};
use rayspin_kernels::nufft::{self, Nufft};
use rayspin_kernels::toeplitz::Toeplitz;
use rayspin_kernels::variant::Work;
use rayspin_kernels::{density, fft, walsh};
use rayspin_solve::LanczosOptions;

use crate::maps;
use crate::recon::{Combine, Density, Method, ReconOptions, Regulariser};
use crate::scan::{Frame, Samples};
pub use ledger::{Budget, Stage};
use ledger::{COMPLEX, INDEX, Ledger, REAL};

/// What reconstructing `frames` frames like `frame` takes, one after another, `held` bytes (the scan that they are taken
/// from) beside it. `assembled`: whether the frames are taken from acquisitions, and not given whole.
///
/// Errors: a method that does not suit the frame; what planning refuses.
pub fn of_frames(
    frame: &Frame,
    frames: usize,
    held: u64,
    assembled: bool,
    options: &ReconOptions,
    threads: usize,
) -> Result<Budget> {
    let image: u64 = voxels(&frame.matrix);
    let coils = frame.coils() as u64;
    let mut ledger = Ledger::new(held, frames);
    if frames > 1 {
        ledger.hold(COMPLEX * image * frames as u64);
        if options.keep_maps && options.needs_maps() {
            ledger.hold(COMPLEX * coils * image * (frames as u64 - 1));
        }
    }
    let given = options.maps.as_ref().map_or(0, |maps| COMPLEX * maps.len() as u64);
    ledger.hold(given);
    match &frame.samples {
        Samples::Cartesian { sampled, .. } => {
            if options.method == Method::Gridding {
                return Err(Error::value("method", "cartesian, ls or cg-sense", "gridding"));
            }
            if assembled {
                ledger.once("samples", assembling(frame));
            }
            grid(&mut ledger, sampled, &frame.matrix, coils, options, threads);
        }
        Samples::NonCartesian { trajectory, .. } => {
            match options.method {
                Method::Cartesian => {
                    return Err(Error::value("method", "gridding, ls or cg-sense", "cartesian"));
                }
                Method::Grappa => return Err(Error::value("method", "gridding, ls or cg-sense", "grappa")),
                _ => {}
            }
            let s = trajectory.samples() as u64;
            let d = trajectory.dims() as u64;
            if assembled {
                ledger.once("samples", assembling(frame));
            }
            ledger.hold(COMPLEX * (d + coils) * s);
            trajectory_plans(&mut ledger, trajectory, &frame.matrix, options)?;
            trajectory_solve(&mut ledger, trajectory, &frame.matrix, coils, options, threads)?;
        }
    }
    Ok(ledger.finish())
}

/// Bytes of making a frame of its acquisitions, beside these: the frame itself, and what it takes to make it.
pub fn assembling(frame: &Frame) -> u64 {
    let coils = frame.coils() as u64;
    match &frame.samples {
        // How often each place was measured.
        Samples::Cartesian { sampled, .. } => (COMPLEX * coils + INDEX / 2 + 1) * voxels(sampled.shape()),
        Samples::NonCartesian { trajectory, .. } => {
            let (s, d) = (trajectory.samples() as u64, trajectory.dims() as u64);
            // Rows of three components, joined; then the samples, and the indices of those that are kept.
            let joined = (3 + d) * COMPLEX * s;
            joined.max((d + coils) * COMPLEX * s + INDEX * s)
        }
    }
}

fn voxels(shape: &[usize]) -> u64 {
    shape.iter().map(|&n| n as u64).product()
}

fn batch_of(coils: u64, options: &ReconOptions) -> u64 {
    options.coil_batch.map_or(coils, |b| (b as u64).clamp(1, coils.max(1)))
}

/// Arrays of the image's size while the solver runs.
///
/// Conjugate gradients: scaled right-hand side, solution, residual, product, direction, and a penalty's term. FISTA: scaled
/// right-hand side, the image shown, three images and what FᴴF makes of them, and what the penalty works in: coefficients,
/// what may be shrunk, and two boxes for wavelets; the dual image thrice and one image for total variation.
fn solver_arrays(options: &ReconOptions, axes: usize) -> u64 {
    let axes = axes as u64;
    // Weights are real; differences are weighted in an array of their own.
    let weights = if options.anatomy.is_some() { axes.div_ceil(2) + axes } else { 0 };
    match options.method {
        Method::Wavelet => 8 + 4,
        Method::TotalVariation => 8 + 3 * axes + 1 + weights,
        _ if options.lambda == 0.0 || options.regulariser == Regulariser::None => 5,
        _ if options.anatomy.is_some() => 6 + weights + 2 * axes,
        _ => 6,
    }
}

/// The solver's stage.
fn solver(options: &ReconOptions) -> &'static str {
    if options.method.is_sparse() { "FISTA" } else { "conjugate gradients" }
}

/// Bytes of combining coil images `n` voxels large: the sum, and the image made of it.
fn combining(coils: u64, n: u64, options: &ReconOptions) -> u64 {
    match options.combine {
        _ if options.method.sees_all_coils() => 0,
        Combine::Maps => COMPLEX * n + REAL * n,
        Combine::RootSumOfSquares if coils == 1 => 0,
        Combine::RootSumOfSquares => REAL * n + COMPLEX * n,
    }
}

/// A vector operation or two on every array, each iteration; sparse methods pass over the image some five times as often.
fn solver_work(n: u64, iterations: u64, options: &ReconOptions) -> Work {
    let n = n as f64 * iterations as f64 * if options.method.is_sparse() { 5.0 } else { 1.0 };
    Work { bytes: 11.0 * COMPLEX as f64 * n, flops: 40.0 * n }
}

fn grid(
    ledger: &mut Ledger,
    sampled: &ArrayD<bool>,
    matrix: &[usize],
    coils: u64,
    options: &ReconOptions,
    threads: usize,
) {
    let grid = sampled.shape();
    let g = voxels(grid);
    let all = COMPLEX * coils * g;
    let batch = batch_of(coils, options);
    let whole = batch == coils;
    ledger.hold(all + g);
    let transform = fft::Problem { shape: grid.to_vec(), batch: 1 }.work();
    if options.needs_maps() {
        if options.maps.is_none() {
            let (width, how) = (options.calibration, options.sensitivities);
            match maps::espirit_on_grid(sampled, width, how, coils as usize) {
                Some((scratch, _)) => {
                    ledger.stage("coil sensitivities", all.max(scratch));
                }
                None => {
                    let (scratch, solve) = walsh::needs(threads, coils as usize, grid);
                    let stage = ledger.stage("coil sensitivities", (all + REAL * g).max(2 * all + scratch));
                    stage.transforms(coils, transform).add(solve);
                }
            }
        }
        ledger.hold(all);
    }
    let part = if whole { 0 } else { COMPLEX * batch * g };
    if !options.iterates() {
        // The grid itself is transformed when all coils are taken at once.
        let stage = ledger.stage("inverse FFT", part + combining(coils, g, options));
        stage.transforms(coils, transform);
        ledger.image(voxels(matrix), coils, options);
        return;
    }
    let n = COMPLEX * g;
    let sense = options.method.sees_all_coils();
    let vectors = solver_arrays(options, grid.len()) * n;
    let mask = REAL * g;
    let iterations = options.iterations as u64;
    let power = LanczosOptions::default().max_iterations as u64;
    let (solves, transforms, normal_scratch) =
        if sense { (1, 2 * coils, 2 * COMPLEX * batch * g) } else { (coils, 2, n) };
    if sense {
        ledger.stage("right-hand side", n + part).transforms(coils, transform);
        ledger.release(all);
        ledger.hold(n);
    }
    ledger.hold(mask + normal_scratch);
    ledger.stage("largest eigenvalue", 3 * n).iterations(power).transforms(transforms * power, transform);
    let images = if sense { 0 } else { part + n + combining(coils, g, options) };
    ledger
        .stage(solver(options), vectors + images)
        .iterations(solves * iterations)
        .transforms(solves * transforms * iterations, transform)
        .add(solver_work(g, solves * iterations, options));
    ledger.release(mask + normal_scratch);
    ledger.image(voxels(matrix), coils, options);
}

fn nufft_needs(
    trajectory: &rayspin_core::Trajectory,
    matrix: &[usize],
    options: &ReconOptions,
) -> Result<nufft::Needs> {
    Nufft::<f32>::needs(trajectory, matrix, &nufft::Options::tolerance(options.nufft_tolerance))
}

fn trajectory_plans(
    ledger: &mut Ledger,
    trajectory: &rayspin_core::Trajectory,
    matrix: &[usize],
    options: &ReconOptions,
) -> Result<()> {
    let s = trajectory.samples() as u64;
    let n = COMPLEX * voxels(matrix);
    let needs = nufft_needs(trajectory, matrix, options)?;
    ledger.stage("NUFFT plan", needs.plan).once_in_all();
    ledger.hold(needs.plan);
    if options.needs_density() {
        if options.density == Density::PipeMenon {
            let own = density::pipe_menon_needs(trajectory, matrix)?;
            let rounds = 2 * options.density_iterations as u64;
            let stage = ledger.stage("density", own.plan + own.workspace + 2 * COMPLEX * s + REAL * s);
            stage.iterations(rounds / 2).times(rounds, own.spreading).once_in_all();
        } else {
            ledger.stage("density", REAL * s).once_in_all();
        }
        ledger.hold(REAL * s);
    }
    // The plan's workspace is made for the first transform, and kept.
    ledger.hold(needs.workspace);
    if options.iterates() {
        let blocks = 1u64 << (matrix.len() - 1);
        let q = 2 * blocks * n;
        let kernel = Toeplitz::<f32>::bytes_needed(matrix)?;
        let stage = ledger.stage("Toeplitz kernel", (q + COMPLEX * s + n).max(q + kernel));
        stage.transforms(blocks, needs.transform).once_in_all();
        ledger.hold(kernel);
    }
    Ok(())
}

fn trajectory_solve(
    ledger: &mut Ledger,
    trajectory: &rayspin_core::Trajectory,
    matrix: &[usize],
    coils: u64,
    options: &ReconOptions,
    threads: usize,
) -> Result<()> {
    let s = trajectory.samples() as u64;
    let voxels = voxels(matrix);
    let n = COMPLEX * voxels;
    let all = coils * n;
    let data = COMPLEX * coils * s;
    let batch = batch_of(coils, options);
    let whole = batch == coils;
    let transform = nufft_needs(trajectory, matrix, options)?.transform;
    if options.needs_maps() {
        if options.maps.is_none() {
            let (mut scratch, solve) = walsh::needs(threads, coils as usize, matrix);
            let width = options.calibration.unwrap_or(maps::DEFAULT_WIDTH);
            let how = options.sensitivities.unwrap_or(maps::Sensitivities::Walsh);
            if let Some((needed, _)) = maps::espirit_needs(how, width, coils as usize, matrix) {
                scratch = needed;
            }
            let gridding = all + REAL * s + 2 * COMPLEX * s + n;
            let stage = ledger.stage("coil sensitivities", gridding.max(2 * all + scratch));
            stage.transforms(coils, transform).add(solve);
        }
        ledger.hold(all);
    }
    let part = if whole { 0 } else { COMPLEX * batch * s };
    let images = batch * n;
    if options.method == Method::Gridding {
        let weighted = COMPLEX * batch * s;
        // Taken whole, the samples are gone once they are weighted.
        let gridded = (weighted + images).max(images + combining(coils, voxels, options));
        let gridded = if whole { gridded.saturating_sub(data) } else { gridded };
        ledger.stage("gridding", (part + weighted).max(gridded)).transforms(coils, transform);
        ledger.image(voxels, coils, options);
        return Ok(());
    }
    let sense = options.method.sees_all_coils();
    let (solves, each) = if sense { (1, coils) } else { (coils, 1) };
    let normal = Toeplitz::<f32>::work(matrix);
    let power = LanczosOptions::default().max_iterations as u64;
    let iterations = options.iterations as u64;
    if sense {
        ledger.stage("right-hand side", n + part + images).transforms(coils, transform);
        ledger.release(data);
        ledger.hold(n);
    }
    ledger.stage("largest eigenvalue", 3 * n).iterations(power).transforms(each * power, normal);
    let beside = if sense { 0 } else { n + combining(coils, voxels, options) };
    if !sense {
        ledger.stage("right-hand side", part + images).transforms(coils, transform);
        ledger.hold(images);
        ledger.release(if whole { data } else { 0 });
    }
    ledger
        .stage(solver(options), solver_arrays(options, matrix.len()) * n + beside)
        .iterations(solves * iterations)
        .transforms(solves * each * iterations, normal)
        .add(solver_work(voxels, solves * iterations, options));
    ledger.image(voxels, coils, options);
    Ok(())
}
