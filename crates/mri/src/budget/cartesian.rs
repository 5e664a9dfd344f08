//! Reconstruction on the grid.

use ndarray::ArrayD;
use rayspin_device::Device;
use rayspin_kernels::{fft, walsh};
use rayspin_solve::LanczosOptions;

use super::ledger::{COMPLEX, Ledger, REAL};
use super::{batch_of, combining, solver, solver_arrays, solver_work, to_host, voxels};
use crate::grappa;
use crate::maps;
use crate::partial::{PartialFourier, PartialImages, uneven_axes};
use crate::recon::{Method, ReconOptions};
use crate::scan::Frame;

/// Coil images between the operators of several sets of maps.
const SOFT_ARRAYS: u64 = 5;

pub(super) fn grid(
    ledger: &mut Ledger,
    frame: &Frame,
    sampled: &ArrayD<bool>,
    coils: u64,
    options: &ReconOptions,
    device: &Device,
) {
    let (grid, matrix) = (sampled.shape(), &frame.matrix[..]);
    let g = voxels(grid);
    let all = COMPLEX * coils * g;
    let batch = batch_of(coils, options);
    let whole = batch == coils;
    // A GPU has a copy, of some coils at a time where not all are taken at once: the frame stays on the host until it is done.
    let own = COMPLEX * frame.coils() as u64 * g;
    let held = if ledger.on_gpu() && !whole { 0 } else { all };
    ledger.hold(held);
    ledger.hold_on_host(if ledger.on_gpu() { own + g } else { g });
    let transform = fft::Problem { shape: grid.to_vec(), batch: 1 }.work();
    let calibrated = match &frame.calibration {
        Some(lines) => COMPLEX * coils * voxels(lines.sampled.shape()),
        None => 0,
    };
    let mut sets = 1;
    if options.needs_maps() {
        if options.maps.is_none() && !ledger.maps_known {
            let sampled = frame.calibration.as_ref().map_or(sampled, |lines| &lines.sampled);
            let (width, how) = (options.calibration, options.sensitivities);
            match maps::espirit_on_grid(device, sampled, width, how, coils as usize) {
                Some(needs) => {
                    sets = needs.sets;
                    let of_sets = sets * all;
                    let stage = if ledger.on_gpu() {
                        ledger.stage_beside("coil sensitivities", of_sets + needs.gpu, needs.host)
                    } else {
                        ledger.stage("coil sensitivities", of_sets.max(needs.host))
                    };
                    stage.add(needs.work);
                }
                None => {
                    let (scratch, solve) = walsh::needs_on(device, coils as usize, grid);
                    let stage = ledger.stage("coil sensitivities", 2 * all + scratch);
                    stage.transforms(coils, transform).add(solve);
                }
            }
        }
        ledger.hold(sets * all);
    }
    let part = if whole { 0 } else { COMPLEX * batch * g };
    if !options.iterates() {
        let mut filled = None;
        if options.method == Method::Grappa
            && let Some(needs) =
                grappa::needs(device, sampled, frame.calibration.as_ref().map(|c| &c.sampled), coils as usize)
        {
            // It takes all coils at once.
            ledger.hold(all - held);
            match ledger.on_gpu() {
                true => ledger.stage_beside("GRAPPA", calibrated + needs.gpu, needs.host),
                false => ledger.stage("GRAPPA", calibrated + needs.host),
            };
            filled = Some(needs.sampled);
        }
        let uneven = match options.partial_fourier {
            Some(PartialFourier::None) => 0,
            _ if uneven_axes(filled.as_ref().unwrap_or(sampled)).is_empty() => 0,
            _ => PartialImages::bytes_needed(grid),
        };
        // The grid itself is transformed when all coils are taken at once.
        let bytes = part + uneven.max(combining(ledger, coils, g, options));
        let stage = ledger.stage_beside("inverse FFT", bytes, to_host(g).max(uneven));
        stage.transforms(coils, transform);
        ledger.image(voxels(matrix), coils, options);
        return;
    }
    let n = COMPLEX * g * sets;
    let sense = options.method.sees_all_coils();
    let vectors = solver_arrays(ledger, options, grid.len()) * n;
    let mask = REAL * g;
    let iterations = options.iterations as u64;
    let power = LanczosOptions::default().max_iterations as u64;
    let (solves, transforms, normal_scratch) = match sense {
        // Maps by set, and what each operator hands to the next.
        true if sets > 1 => (1, 2 * coils, sets * all + SOFT_ARRAYS * all),
        true => (1, 2 * coils, 2 * COMPLEX * batch * g),
        false => (coils, 2, n),
    };
    if sense {
        // Several sets of maps see all coils at once.
        let taken = if sets > 1 { all - held } else { part };
        ledger.stage("right-hand side", n + taken).transforms(coils, transform);
        ledger.release(held);
        ledger.hold(n);
    }
    ledger.hold(mask + normal_scratch);
    ledger.stage("largest eigenvalue", 3 * n).iterations(power).transforms(transforms * power, transform);
    let images = if sense { 0 } else { part + n + combining(ledger, coils, g, options) };
    ledger
        .stage_beside(solver(options), vectors + images, to_host(g * sets))
        .iterations(solves * iterations)
        .transforms(solves * transforms * iterations, transform)
        .add(solver_work(g, solves * iterations, options));
    ledger.release(mask + normal_scratch);
    ledger.image(voxels(matrix), coils, options);
}
