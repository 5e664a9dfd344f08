//! Reconstruction from samples anywhere.

use rayspin_core::{Result, Trajectory};
use rayspin_device::Device;
use rayspin_kernels::nufft::{Needs, Nufft};
use rayspin_kernels::off_resonance::Segments;
use rayspin_kernels::toeplitz::{Series, Toeplitz};
use rayspin_kernels::variant::Work;
use rayspin_kernels::{density, walsh};
use rayspin_solve::LanczosOptions;

use super::ledger::{COMPLEX, Ledger, REAL};
use super::{batch_of, combining, solver, solver_arrays, solver_work, to_host, together, voxels};
use crate::maps;
use crate::recon::{
    Combine, Density, Interpolators, Method, ReconOptions, block_needs, block_options, field_range,
};

/// Coil images between the operators of several sets of maps.
const SOFT_ARRAYS: u64 = 3;

/// What the NUFFT takes.
pub(super) struct Points {
    /// Of the plan, held.
    plan: u64,
    /// While it is made.
    planning: u64,
    /// Its fine grid and buffers, held from the first transform on.
    workspace: u64,
    /// Further ones, held from the first transform of several coils on.
    further: u64,
    /// While transforms are done by blocks; and on the host beside a GPU.
    passing: u64,
    beside: u64,
    /// One transform of one item.
    transform: Work,
}

impl Points {
    pub(super) fn new(
        device: &Device,
        trajectory: &Trajectory,
        matrix: &[usize],
        coils: u64,
        options: &ReconOptions,
    ) -> Result<Self> {
        let of = block_options(device, options.nufft_tolerance, matrix, trajectory.samples())?;
        let needs = Nufft::<f32>::needs(device, trajectory, matrix, &of)?;
        let Needs { plan, planning, workspace, transform, .. } = needs;
        Ok(match split(trajectory, options) {
            None => {
                let further = needs.batch(batch_of(coils, options) as usize) - workspace;
                Self { plan, planning, workspace, further, passing: 0, beside: 0, transform }
            }
            Some(points) => {
                let (passing, beside) = block_needs(device, trajectory, matrix, &of, points)?;
                Self { plan: 0, planning: 0, workspace: 0, further: 0, passing, beside, transform }
            }
        })
    }
}

/// What time segments take where the field is uneven.
pub(super) struct Segmented {
    /// Of the field and the weights, held; and of the times, which the host holds.
    held: u64,
    times: u64,
    /// Of the weights while the normal operator is made: of all segments on the host, and of the one that is made.
    table: u64,
    making: u64,
    encoding: u64,
    normal: u64,
}

impl Segmented {
    pub(super) fn new(times: &[f64], matrix: &[usize], options: &ReconOptions) -> Result<Option<Self>> {
        let Some(map) = &options.field_map else { return Ok(None) };
        let found = Interpolators::new(field_range(map), times, options.field_tolerance)?;
        let (encoding, normal) = (found.encoding.segments(), found.normal.segments());
        let s = times.len() as u64;
        let table = Segments::<f32>::bytes_needed(times, encoding);
        Ok(Some(Self {
            held: REAL * voxels(matrix) + table,
            times: COMPLEX * s,
            // Complex weights in double precision and an index a sample; a segment's own.
            table: 2 * Segments::<f32>::bytes_needed(times, normal) + REAL * s,
            // A segment's own again, and the weighted phases.
            making: (REAL + COMPLEX) * s,
            encoding: encoding as u64,
            normal: normal as u64,
        }))
    }
}

fn split(trajectory: &Trajectory, options: &ReconOptions) -> Option<usize> {
    options.point_batch.filter(|&points| points < trajectory.samples())
}

/// Bytes of the density iteration, on the host beside a GPU, and work of one spreading.
fn density_needs(
    device: &Device,
    trajectory: &Trajectory,
    matrix: &[usize],
    options: &ReconOptions,
) -> Result<(u64, u64, Work)> {
    let s = trajectory.samples() as u64;
    let whole = density::pipe_menon_needs(device, trajectory, matrix)?;
    let Some(points) = split(trajectory, options) else {
        let running = whole.plan + whole.workspace + 2 * COMPLEX * s;
        return Ok((whole.planning.max(running), 0, whole.spreading));
    };
    let (bytes, beside) = density::pipe_menon_by_blocks_needs(device, trajectory, matrix, points)?;
    Ok((bytes, beside, whole.spreading))
}

pub(super) fn trajectory_plans(
    ledger: &mut Ledger,
    trajectory: &Trajectory,
    matrix: &[usize],
    needs: &Points,
    segmented: Option<&Segmented>,
    options: &ReconOptions,
    device: &Device,
) -> Result<()> {
    let s = trajectory.samples() as u64;
    if let Some(segmented) = segmented {
        ledger.hold_on_host(segmented.times);
        ledger.stage("time segments", 2 * segmented.held).once_in_all();
        ledger.hold(segmented.held);
    }
    ledger.stage("NUFFT plan", needs.planning).once_in_all();
    ledger.hold(needs.plan);
    if options.method == Method::Gridding || (options.needs_density() && !ledger.maps_known) {
        if options.density == Density::PipeMenon {
            let (bytes, beside, spreading) = density_needs(device, trajectory, matrix, options)?;
            let rounds = 2 * options.density_iterations as u64;
            let stage = ledger.stage_beside("density", bytes, beside);
            stage.iterations(rounds / 2).times(rounds, spreading).once_in_all();
        } else {
            ledger.stage_beside("density", REAL * s, REAL * s).once_in_all();
        }
        ledger.hold(REAL * s);
    }
    // The plan's workspace is made for the first transform, and kept.
    ledger.hold(needs.workspace);
    if options.iterates() {
        let blocks = 1u64 << (matrix.len() - 1);
        let making = Toeplitz::<f32>::bytes_of_making(device, matrix)?;
        let filling = Toeplitz::<f32>::from_adjoint_needs(device, trajectory.samples(), matrix)?;
        let (kernels, weights, table) =
            segmented.map_or((1, 0, 0), |segmented| (segmented.normal, segmented.making, segmented.table));
        let spectra = |count: u64| {
            Series::<f32>::bytes_needed_on(device, matrix, count as usize, options.segment_batch)
        };
        let ((held, pinned), (others, _)) = (spectra(kernels)?, spectra(kernels - 1)?);
        // Those made before have no work buffer yet; all but one are where they stay.
        let before = if pinned > 0 { held } else { others };
        let on_host = if ledger.on_gpu() { 0 } else { table };
        let bytes = (filling + needs.passing).max(making) + before + weights + on_host;
        // What a GPU does not hold comes to the host.
        if pinned > 0 {
            ledger.hold_on_host(pinned);
        }
        let stage = ledger.stage_beside("Toeplitz kernel", bytes, needs.beside + table);
        stage.transforms(blocks * kernels, needs.transform).once_in_all();
        ledger.hold(held);
    }
    Ok(())
}

/// The maps of samples anywhere, from the plan on.
pub(super) fn trajectory_maps(
    ledger: &mut Ledger,
    trajectory: &Trajectory,
    matrix: &[usize],
    coils: u64,
    options: &ReconOptions,
    device: &Device,
) -> Result<()> {
    let needs = Points::new(device, trajectory, matrix, coils, options)?;
    // Neither solver nor combination: only what both need first.
    let gridding = ReconOptions { method: Method::Gridding, combine: Combine::Maps, ..options.clone() };
    trajectory_plans(ledger, trajectory, matrix, &needs, None, &gridding, device)?;
    trajectory_solve(ledger, trajectory, matrix, &needs, None, (coils, device), &gridding)
}

pub(super) fn trajectory_solve(
    ledger: &mut Ledger,
    trajectory: &Trajectory,
    matrix: &[usize],
    needs: &Points,
    segmented: Option<&Segmented>,
    (coils, device): (u64, &Device),
    options: &ReconOptions,
) -> Result<()> {
    let s = trajectory.samples() as u64;
    let voxels = voxels(matrix);
    let n = COMPLEX * voxels;
    let all = coils * n;
    let data = COMPLEX * coils * s;
    let batch = batch_of(coils, options);
    let whole = batch == coils;
    // A GPU that takes some coils at a time has no others.
    let held = if whole || !ledger.on_gpu() { data } else { 0 };
    let Points { transform, passing, further, beside, .. } = *needs;
    // An uneven field's segments are transformed one by one, images and samples in arrays of their own.
    let passing_of = |coils: u64| passing + if segmented.is_some() { coils * (n + COMPLEX * s) } else { 0 };
    let (encodings, convolutions) = segmented.map_or((1, 1), |of| (of.encoding, of.normal));
    let mut sets = 1;
    if options.needs_maps() {
        if options.maps.is_none() {
            let (scratch, mut solve) = walsh::needs_on(device, coils as usize, matrix);
            let mut solving = 2 * all + scratch;
            let mut on_host = 2 * REAL * s + beside;
            let width = options.calibration.unwrap_or(maps::DEFAULT_WIDTH);
            let how = options.sensitivities.unwrap_or(maps::Sensitivities::Walsh);
            if let Some(needs) = maps::espirit_needs(device, how, width, coils as usize, matrix) {
                (sets, solve) = (needs.sets, needs.work);
                solving = sets * all + if ledger.on_gpu() { needs.gpu } else { needs.host };
                on_host = on_host.max(needs.host);
            }
            if !ledger.maps_known {
                let gridding = all + REAL * s + 2 * COMPLEX * s + n + passing_of(1);
                let estimating = gridding.max(solving);
                let stage = ledger.stage_beside("coil sensitivities", estimating, on_host);
                stage.transforms(coils * encodings, transform).add(solve);
            }
        }
        ledger.hold(sets * all);
    }
    let part = if whole { 0 } else { COMPLEX * batch * s };
    let images = batch * n;
    if options.method == Method::Gridding {
        ledger.hold(further);
        let weighted = COMPLEX * batch * s;
        // Taken whole, the samples are gone once they are weighted.
        // The sum of the coils before.
        let sum = match options.combine {
            _ if whole => 0,
            Combine::Maps => n,
            Combine::RootSumOfSquares => REAL * voxels,
        };
        let gridded = (weighted + images + passing_of(batch) + sum)
            .max(images + combining(ledger, coils, voxels, options));
        let gridded = if whole { gridded.saturating_sub(data) } else { gridded };
        let stage = ledger.stage_beside("gridding", (part + weighted).max(gridded), to_host(voxels) + beside);
        stage.transforms(coils * encodings, transform);
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
        ledger.hold(further);
        // Several sets of maps see all coils at once.
        let (part, images) = if sets > 1 { (data - held, all) } else { (part, images) };
        let stage = ledger.stage_beside("right-hand side", n + part + images + passing_of(batch), beside);
        stage.transforms(coils * encodings, transform);
        ledger.release(held);
        ledger.hold(sets * n);
        if sets > 1 {
            ledger.hold(SOFT_ARRAYS * all);
        }
    }
    let n = sets * n;
    if segmented.is_some() {
        // What is turned, and what becomes of it: of all coils where several sets of maps see them.
        ledger.hold(2 * if sets > 1 { all } else { n });
    }
    let each = each * convolutions;
    // With several sets of maps all coils are images at once.
    let together = if sense { together(coils, options) } else { 1 };
    ledger.hold(Toeplitz::<f32>::bytes_of_work(device, matrix, together as usize)?);
    ledger.stage("largest eigenvalue", 3 * n).iterations(power).transforms(each * power, normal);
    let combined = if sense { 0 } else { n + combining(ledger, coils, voxels, options) };
    if !sense {
        ledger.hold(further);
        let stage = ledger.stage_beside("right-hand side", part + images + passing_of(batch), beside);
        stage.transforms(coils * encodings, transform);
        ledger.hold(images);
        ledger.release(if whole { data } else { 0 });
    }
    let vectors = solver_arrays(ledger, options, matrix.len()) * n;
    ledger
        .stage_beside(solver(options), vectors + combined, to_host(n / COMPLEX))
        .iterations(solves * iterations)
        .transforms(solves * each * iterations, normal)
        .add(solver_work(voxels, solves * iterations, options));
    ledger.image(voxels, coils, options);
    Ok(())
}
