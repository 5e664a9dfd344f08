//! Reconstruction from samples anywhere.

use rayspin_core::{Result, Trajectory};
use rayspin_kernels::nufft::{Needs, Nufft};
use rayspin_kernels::toeplitz::Toeplitz;
use rayspin_kernels::variant::Work;
use rayspin_kernels::{density, walsh};
use rayspin_solve::LanczosOptions;

use super::ledger::{COMPLEX, Ledger, REAL};
use super::{batch_of, combining, solver, solver_arrays, solver_work, voxels};
use crate::maps;
use crate::recon::{Density, Method, ReconOptions, block_needs, block_options, block_points, blocks};

/// Coil images between the operators of several sets of maps.
const SOFT_ARRAYS: u64 = 3;

/// What the NUFFT takes.
pub(super) struct Points {
    /// Of the plan, held.
    plan: u64,
    /// Its fine grid and buffers, held from the first transform on.
    workspace: u64,
    /// While transforms are done by blocks.
    passing: u64,
    /// One transform of one item.
    transform: Work,
}

impl Points {
    pub(super) fn new(trajectory: &Trajectory, matrix: &[usize], options: &ReconOptions) -> Result<Self> {
        let of = block_options(options.nufft_tolerance, matrix, trajectory.samples())?;
        let Needs { plan, workspace, transform, .. } = Nufft::<f32>::needs(trajectory, matrix, &of)?;
        Ok(match split(trajectory, options) {
            None => Self { plan, workspace, passing: 0, transform },
            Some(points) => {
                let passing = block_needs(trajectory, matrix, &of, points)?;
                Self { plan: 0, workspace: 0, passing, transform }
            }
        })
    }
}

fn split(trajectory: &Trajectory, options: &ReconOptions) -> Option<usize> {
    options.point_batch.filter(|&points| points < trajectory.samples())
}

/// Bytes of the density iteration, and work of one spreading.
fn density_needs(trajectory: &Trajectory, matrix: &[usize], options: &ReconOptions) -> Result<(u64, Work)> {
    let s = trajectory.samples() as u64;
    let whole = density::pipe_menon_needs(trajectory, matrix)?;
    let Some(points) = split(trajectory, options) else {
        return Ok((whole.plan + whole.workspace + 2 * COMPLEX * s + REAL * s, whole.spreading));
    };
    let mut most = 0;
    for range in blocks(trajectory.samples(), Some(points)) {
        let count = range.len() as u64;
        let own = density::pipe_menon_needs(&block_points(trajectory, range)?, matrix)?;
        // The block's own trajectory, and its smoothed weights.
        most = most.max(own.plan + own.workspace + (trajectory.dims() as u64 + 1) * COMPLEX * count);
    }
    Ok(((most + COMPLEX * s).max((COMPLEX + REAL) * s), whole.spreading))
}

pub(super) fn trajectory_plans(
    ledger: &mut Ledger,
    trajectory: &Trajectory,
    matrix: &[usize],
    needs: &Points,
    options: &ReconOptions,
) -> Result<()> {
    let s = trajectory.samples() as u64;
    let n = COMPLEX * voxels(matrix);
    ledger.stage("NUFFT plan", needs.plan).once_in_all();
    ledger.hold(needs.plan);
    if options.needs_density() {
        if options.density == Density::PipeMenon {
            let (bytes, spreading) = density_needs(trajectory, matrix, options)?;
            let rounds = 2 * options.density_iterations as u64;
            let stage = ledger.stage("density", bytes);
            stage.iterations(rounds / 2).times(rounds, spreading).once_in_all();
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
        let stage = ledger.stage("Toeplitz kernel", (q + COMPLEX * s + n + needs.passing).max(q + kernel));
        stage.transforms(blocks, needs.transform).once_in_all();
        ledger.hold(kernel);
    }
    Ok(())
}

pub(super) fn trajectory_solve(
    ledger: &mut Ledger,
    trajectory: &Trajectory,
    matrix: &[usize],
    needs: &Points,
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
    let Points { transform, passing, .. } = *needs;
    let mut sets = 1;
    if options.needs_maps() {
        if options.maps.is_none() {
            let (mut scratch, solve) = walsh::needs(threads, coils as usize, matrix);
            let width = options.calibration.unwrap_or(maps::DEFAULT_WIDTH);
            let how = options.sensitivities.unwrap_or(maps::Sensitivities::Walsh);
            if let Some((needed, of_sets)) = maps::espirit_needs(how, width, coils as usize, matrix) {
                scratch = needed;
                sets = of_sets as u64;
            }
            let gridding = all + REAL * s + 2 * COMPLEX * s + n + passing;
            let stage = ledger.stage("coil sensitivities", gridding.max(2 * all + scratch));
            stage.transforms(coils, transform).add(solve);
        }
        ledger.hold(sets * all);
    }
    let part = if whole { 0 } else { COMPLEX * batch * s };
    let images = batch * n;
    if options.method == Method::Gridding {
        let weighted = COMPLEX * batch * s;
        // Taken whole, the samples are gone once they are weighted.
        let gridded = (weighted + images + passing).max(images + combining(coils, voxels, options));
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
        // Maps by set, and the images of all coils as they were and as they become.
        let soft = if sets > 1 { sets * all } else { 0 };
        ledger.hold(soft);
        ledger.stage("right-hand side", n + part + images + passing).transforms(coils, transform);
        ledger.release(data);
        ledger.hold(n);
        if sets > 1 {
            ledger.hold(SOFT_ARRAYS * all);
        }
    }
    let n = sets * n;
    ledger.stage("largest eigenvalue", 3 * n).iterations(power).transforms(each * power, normal);
    let beside = if sense { 0 } else { n + combining(coils, voxels, options) };
    if !sense {
        ledger.stage("right-hand side", part + images + passing).transforms(coils, transform);
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
