//! What a reconstruction takes, stage by stage, before it begins: memory of the host and of a GPU as the code allocates it, and
//! work.
//!
//! The sizes come from the plans' own accounts ([`needs`](rayspin_kernels::nufft::Nufft::needs), [`bytes_needed`](rayspin_kernels::toeplitz::Toeplitz::bytes_needed), …) and from the arrays that
//! [`crate::recon`] holds at each moment. Iterations are counted as if none converged early.

mod cartesian;
mod ledger;
mod prepare;
mod stream;
mod trajectory;

use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{Error, Result, Trajectory};
use rayspin_device::Device;
use rayspin_kernels::variant::Work;
use rayspin_kernels::walsh;

use crate::maps;
use crate::prepare::CompressionKind;
use crate::recon::{Combine, Method, ReconOptions, Regulariser, expect_times, places_of_grid};
use crate::scan::{Frame, Samples};
use cartesian::grid;
pub use ledger::{Budget, Stage};
use ledger::{COMPLEX, INDEX, Ledger, REAL};
use prepare::prepare;
pub use stream::{Streaming, of_stream};
use trajectory::{Points, Segmented, trajectory_plans, trajectory_solve};

/// The frames of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// How many, one after another.
    pub count: usize,
    /// Bytes of what they are taken from, the scan, held beside them.
    pub held: u64,
    /// Whether they are made of acquisitions, and not given whole.
    pub assembled: bool,
    /// Coils that a frame has once it is prepared ([`crate::prepare::coils_kept`]).
    pub coils: usize,
}

/// What reconstructing frames like `frame` takes.
///
/// Errors: a method that does not suit the frame; what planning refuses.
pub fn of_frames(
    frame: &Frame,
    &Frames { count: frames, held, assembled, coils }: &Frames,
    options: &ReconOptions,
    device: &Device,
) -> Result<Budget> {
    let image: u64 = voxels(&frame.matrix);
    let own = frame.coils() as u64;
    let mut ledger = Ledger::new(device, held, frames);
    if frames > 1 {
        ledger.hold_on_host(COMPLEX * image * frames as u64);
        if options.keep_maps && options.needs_maps() {
            ledger.hold_on_host(COMPLEX * own * image * (frames as u64 - 1));
        }
    }
    hold_given(&mut ledger, frame, coils as u64, options);
    if assembled {
        ledger.once("samples", assembling(frame));
    }
    one_frame(&mut ledger, frame, coils as u64, options, device)?;
    Ok(ledger.finish())
}

fn hold_given(ledger: &mut Ledger, frame: &Frame, coils: u64, options: &ReconOptions) {
    if let Some(maps) = &options.maps {
        ledger.hold_on_host(COMPLEX * maps.len() as u64);
        if options.prepare.changes_coils() {
            ledger.hold_on_host(COMPLEX * coils * voxels(&frame.matrix));
        }
    }
    if let Some(map) = &options.field_map {
        ledger.hold_on_host(REAL * map.len() as u64);
    }
}

fn one_frame(
    ledger: &mut Ledger,
    frame: &Frame,
    coils: u64,
    options: &ReconOptions,
    device: &Device,
) -> Result<()> {
    match &frame.samples {
        Samples::Cartesian { sampled, .. } if options.field_map.is_some() => {
            expect_times(frame, sampled.len())?;
            prepare(ledger, frame, coils, options, device);
            let (trajectory, times, mapped) = grid_in_field(ledger, frame, sampled, coils, options, device)?;
            let samples = Anywhere { trajectory: &trajectory, times: &times };
            anywhere(ledger, frame, &samples, (coils, device), &mapped)?;
        }
        Samples::Cartesian { sampled, .. } => {
            if options.method == Method::Gridding {
                return Err(Error::value("method", "cartesian, ls or cg-sense", "gridding"));
            }
            prepare(ledger, frame, coils, options, device);
            grid(ledger, frame, sampled, coils, options, device);
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
            ledger.hold_on_host(COMPLEX * d * s);
            prepare(ledger, frame, coils, options, device);
            if ledger.on_gpu() {
                // The frame stays on the host until it is done, and the plans have a trajectory of their own.
                ledger.hold_on_host(COMPLEX * (frame.coils() as u64 + d) * s);
            }
            if options.field_map.is_some() {
                expect_times(frame, trajectory.samples())?;
            }
            let samples = Anywhere { trajectory, times: frame.times.as_deref().unwrap_or_default() };
            anywhere(ledger, frame, &samples, (coils, device), options)?;
        }
    }
    Ok(())
}

/// Samples anywhere, with their times where the field is uneven.
struct Anywhere<'a> {
    trajectory: &'a Trajectory,
    times: &'a [f64],
}

fn anywhere(
    ledger: &mut Ledger,
    frame: &Frame,
    &Anywhere { trajectory, times }: &Anywhere<'_>,
    (coils, device): (u64, &Device),
    options: &ReconOptions,
) -> Result<()> {
    let matrix = &frame.matrix[..];
    let needs = Points::new(device, trajectory, matrix, coils, options)?;
    let segmented = Segmented::new(times, matrix, options)?;
    // The samples come to a GPU once there are plans, all of them or those of some coils at a time; on the CPU they are there.
    let data = COMPLEX * coils * trajectory.samples() as u64;
    let whole = batch_of(coils, options) == coils;
    let (before, after) = match ledger.on_gpu() {
        false => (data, 0),
        true if whole => (0, data),
        true => (0, 0),
    };
    ledger.hold(before);
    trajectory_plans(ledger, trajectory, matrix, &needs, segmented.as_ref(), options, device)?;
    ledger.hold(after);
    trajectory_solve(ledger, trajectory, matrix, &needs, segmented.as_ref(), (coils, device), options)
}

/// A grid becomes a trajectory where the field is uneven; maps are estimated on the grid before.
fn grid_in_field(
    ledger: &mut Ledger,
    frame: &Frame,
    sampled: &ArrayD<bool>,
    coils: u64,
    options: &ReconOptions,
    device: &Device,
) -> Result<(Trajectory, Vec<f64>, ReconOptions)> {
    let g = voxels(sampled.shape());
    // Samples along the readout become others on the grid, beside it.
    let along = matches!(options.prepare.compression, Some(of) if of.kind == CompressionKind::Geometric);
    let beside = if along { COMPLEX * coils * g } else { 0 };
    let grid = (COMPLEX * frame.coils() as u64 + COMPLEX + 1) * g + beside;
    ledger.hold_on_host(grid);
    let mut mapped = options.clone();
    if options.needs_maps() && options.maps.is_none() {
        let all = COMPLEX * coils * g;
        let own = frame.calibration.as_ref().map_or(sampled, |lines| &lines.sampled);
        let (width, how) = (options.calibration, options.sensitivities);
        let (arrays, beside) = match maps::espirit_on_grid(device, own, width, how, coils as usize) {
            Some(needs) if ledger.on_gpu() => (needs.sets * all + needs.gpu, all + needs.host),
            Some(needs) => (all.max(needs.host), 0),
            None => {
                let (scratch, _) = walsh::needs_on(device, coils as usize, sampled.shape());
                (2 * all + scratch, all)
            }
        };
        ledger.stage_beside("coil sensitivities", arrays, beside);
        ledger.hold_on_host(COMPLEX * coils * voxels(&frame.matrix));
        // They are given from here on, and counted.
        mapped.maps = Some(Arc::default());
    }
    let (places, trajectory) = places_of_grid(sampled, &frame.matrix)?;
    let (s, d) = (places.len() as u64, trajectory.dims() as u64);
    let own = if along { coils } else { frame.coils() as u64 };
    ledger.once("trajectory of the grid", (COMPLEX * (d + own) + INDEX) * s);
    if ledger.on_gpu() {
        // The grid stays until the frame is done.
        ledger.hold_on_host(COMPLEX * (2 * d + own) * s);
    } else {
        ledger.release(grid);
        ledger.hold(COMPLEX * d * s);
    }
    let times = frame.times.as_deref().unwrap_or_default();
    let taken = places.iter().map(|&place| times.get(place).copied().unwrap_or_default()).collect();
    Ok((trajectory, taken, mapped))
}

/// Bytes of making a frame of its acquisitions, beside these: the frame itself, and what it takes to make it.
pub fn assembling(frame: &Frame) -> u64 {
    let coils = frame.coils() as u64;
    let times = COMPLEX * frame.times.as_ref().map_or(0, Vec::len) as u64;
    times
        + match &frame.samples {
            // How often each place was measured.
            Samples::Cartesian { sampled, .. } => {
                let grid = (COMPLEX * coils + INDEX / 2 + 1) * voxels(sampled.shape());
                grid + frame.calibration.as_ref().map_or(0, |_| grid)
            }
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

/// Coils of which a Toeplitz convolution holds buffers at once at most: batches of about one size.
fn together(coils: u64, options: &ReconOptions) -> u64 {
    coils.div_ceil(coils.div_ceil(batch_of(coils, options)))
}

/// Arrays of the image's size while the solver runs.
///
/// Conjugate gradients: scaled right-hand side, solution, residual, product, direction, and a penalty's term. FISTA: scaled
/// right-hand side, the image shown, three images and what FᴴF makes of them, and what the penalty works in: coefficients,
/// what may be shrunk, two boxes and the mean of iterates for wavelets; the dual image thrice and one image for total variation.
fn solver_arrays(ledger: &Ledger, options: &ReconOptions, axes: usize) -> u64 {
    let axes = axes as u64;
    // Weights are real; differences are weighted in an array of their own.
    let weights = if options.anatomy.is_some() { axes.div_ceil(2) + axes } else { 0 };
    match options.method {
        // A GPU's boxes are the coefficients anew, and a quarter of an image or less.
        Method::Wavelet => 8 + 1 + if ledger.on_gpu() { 3 } else { 4 },
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

/// Bytes of combining coil images `n` voxels large: the sum, and the image made of it, which a GPU leaves to the host.
fn combining(ledger: &Ledger, coils: u64, n: u64, options: &ReconOptions) -> u64 {
    match options.combine {
        _ if options.method.sees_all_coils() => 0,
        Combine::Maps if ledger.on_gpu() => COMPLEX * n,
        Combine::Maps => COMPLEX * n + REAL * n,
        Combine::RootSumOfSquares if coils == 1 => 0,
        Combine::RootSumOfSquares if ledger.on_gpu() => REAL * n,
        Combine::RootSumOfSquares => REAL * n + COMPLEX * n,
    }
}

/// Bytes on the host while a GPU's image of `n` voxels becomes the frame's: itself, and a sum.
fn to_host(n: u64) -> u64 {
    (COMPLEX + REAL) * n
}

/// A vector operation or two on every array, each iteration; sparse methods pass over the image some five times as often.
fn solver_work(n: u64, iterations: u64, options: &ReconOptions) -> Work {
    let n = n as f64 * iterations as f64 * if options.method.is_sparse() { 5.0 } else { 1.0 };
    Work { bytes: 11.0 * COMPLEX as f64 * n, flops: 40.0 * n }
}
