//! GRAPPA: missing lines of regularly undersampled k-space from their neighbours in all coils, with weights
//! learnt from calibration lines (Griswold et al., Magn Reson Med 47:1202, 2002).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ndarray::{Array2, ArrayD, Axis};
use rayspin_core::{C32, Error, Result, expect_shape};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_kernels::gram::Rows;
use rayspin_kernels::grappa::{Interpolation, fill};
use rayspin_scan::mri::Lattice;
use rayspin_solve::dense::{BLOCK_BYTES, Matrix, covariance, covariance_memory, panel_bytes, solve};

/// Tikhonov regularisation of the weights, relative to the mean power of a source: little enough to leave
/// noise-free weights alone, enough to keep them bounded where sources depend on one another.
pub const RIDGE: f64 = 1e-4;
/// Sources along the readout on either side of the target.
const READOUT: isize = 2;
/// Equations for each unknown, at most: beyond, the outer readout, which holds little signal, is left out.
const EQUATIONS: usize = 20;

/// What was filled in.
#[derive(Debug)]
pub struct Filled {
    /// k-space `[coil, z, y, x]` or `[coil, y, x]`.
    pub kspace: Array<C32>,
    /// Where it is known now.
    pub sampled: ArrayD<bool>,
    /// Acceleration along z and y.
    pub acceleration: [usize; 2],
    /// Calibration lines that the weights were learnt from.
    pub calibration: usize,
}

/// The memory that [`grappa`] takes, and the samples that it will fill in.
#[derive(Debug)]
pub struct FillingPlan {
    /// Bytes of the host beside k-space and the calibration lines.
    pub host: u64,
    /// The same of a GPU.
    pub gpu: u64,
    /// Where k-space will be known.
    pub sampled: ArrayD<bool>,
}

/// What [`grappa`] takes with this sampling of the image and of the calibration lines. None if [`grappa`]
/// refuses it.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_device::Device;
/// use rayspin_mri::grappa::plan_filling;
///
/// let device = Device::cpu()?;
/// let every_second = ArrayD::from_shape_fn(IxDyn(&[32, 32]), |i| i[0] % 2 == 0 || i[0].abs_diff(16) < 8);
/// assert!(plan_filling(&device, &every_second, None, 8).is_some_and(|plan| plan.host > 0));
/// let full = ArrayD::from_elem(IxDyn(&[32, 32]), true);
/// assert!(plan_filling(&device, &full, None, 8).is_none()); // a grid without gaps
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn plan_filling(
    device: &Device,
    sampled: &ArrayD<bool>,
    calibration: Option<&ArrayD<bool>>,
    coils: usize,
) -> Option<FillingPlan> {
    let flat = sampled.ndim() == 2;
    let (lines, readout) = lines_of(sampled).ok()?;
    let lattice = Lattice::of(lines.view()).ok()?;
    let missing = missing(&lines, &lattice);
    let (there, trained_readout) = match calibration {
        Some(calibration) => lines_of(calibration).ok()?,
        None => (lines.clone(), readout.clone()),
    };
    let positions = trained_readout.iter().filter(|s| **s).count().saturating_sub(2 * READOUT as usize);
    let (mut learning, mut on_gpu, mut filling, mut weights) = (0, 0, 0, 0);
    let mut filled = lines;
    for (class, targets) in &missing {
        let steps = lattice.sources(*class, flat);
        let columns = steps.len() * (2 * READOUT + 1) as usize * coils;
        let size = columns + coils;
        let lines = trained(&there, &steps).len();
        let rows = lines * (EQUATIONS * columns).div_ceil(lines.max(1)).min(positions);
        let (_, gpu) = covariance_memory(device, Rows::Listed(&vec![0; rows]), size);
        let double = size_of::<rayspin_core::C64>();
        // On the CPU rows of equations, some at a time.
        let block = match device.kind() {
            BackendKind::Cpu => ((double * rows * size) as u64).min(BLOCK_BYTES),
            BackendKind::Cuda => 0,
        };
        // First the sum and a product; then the sum, its part, and the workspace for the factors.
        let matrices = 3 * (double * size * size) as u64;
        learning = learning.max(block + matrices + panel_bytes(size) + (size_of::<u32>() * rows) as u64);
        on_gpu = on_gpu.max(gpu);
        filling = filling.max(rayspin_kernels::grappa::fill_bytes(coils, sampled.shape(), targets.len()));
        weights += (size_of::<C32>() * coils * columns) as u64;
        for &[z, y] in targets {
            filled[[z, y]] = true;
        }
    }
    let sampled = filled_mask(sampled, &readout, &filled);
    Some(match device.kind() {
        BackendKind::Cpu => FillingPlan { host: weights + learning.max(filling), gpu: 0, sampled },
        BackendKind::Cuda => {
            FillingPlan { host: weights + learning, gpu: on_gpu.max(weights + filling), sampled }
        }
    })
}

/// Lines that are missing in the box around the sampled lines and up to R − 1 lines beside it, by class.
fn missing(lines: &Array2<bool>, lattice: &Lattice) -> BTreeMap<[usize; 2], Vec<[usize; 2]>> {
    let mut missing: BTreeMap<[usize; 2], Vec<[usize; 2]>> = BTreeMap::new();
    let reach = |axis: usize| {
        let indices: Vec<usize> =
            lines.indexed_iter().filter(|(_, s)| **s).map(|(index, _)| [index.0, index.1][axis]).collect();
        let (low, high) =
            (indices.iter().min().copied().unwrap_or(0), indices.iter().max().copied().unwrap_or(0));
        let margin = lattice.step[axis] - 1;
        low.saturating_sub(margin)..(high + margin + 1).min([lines.nrows(), lines.ncols()][axis])
    };
    for z in reach(0) {
        for y in reach(1) {
            if !lines[[z, y]] {
                missing.entry(lattice.class(z, y)).or_default().push([z, y]);
            }
        }
    }
    missing
}

/// Lines that are measured, and with them the sources at these steps.
fn trained(there: &Array2<bool>, steps: &[[isize; 2]]) -> Vec<[usize; 2]> {
    let (nz, ny) = there.dim();
    let shifted = |i: usize, d: isize, n: usize| i.checked_add_signed(d).filter(|&i| i < n);
    let source = |[z, y]: [usize; 2], [dz, dy]: [isize; 2]| matches!((shifted(z, dz, nz), shifted(y, dy, ny)), (Some(z), Some(y)) if there[[z, y]]);
    let measured = there.indexed_iter().filter(|(_, s)| **s).map(|((z, y), _)| [z, y]);
    measured.filter(|&line| steps.iter().all(|&step| source(line, step))).collect()
}

/// The sampling of the grid, from the sampled lines and the sampled part of the readout.
fn filled_mask(sampled: &ArrayD<bool>, readout: &[bool], lines: &Array2<bool>) -> ArrayD<bool> {
    let n = sampled.ndim();
    let mut filled = ArrayD::from_elem(sampled.raw_dim(), false);
    for (mut row, index) in filled.rows_mut().into_iter().zip(ndarray::indices(&sampled.shape()[..n - 1])) {
        if lines[[if n == 2 { 0 } else { index[0] }, index[n - 2]]] {
            row.iter_mut().zip(readout).for_each(|(filled, &known)| *filled = known);
        }
    }
    filled
}

/// Fills in the lines that a regular pattern leaves out, in the box around the sampled lines and up to R − 1
/// lines beside it.
///
/// Weights minimise Σ |Σ_{r,j} w_{i,r,j} s_j(k + r) − s_i(k)|² + μ‖w‖² over all k where target and sources
/// are measured. They are learnt in `calibration`, k-space of the same grid and where it was measured, else
/// in the scan's own centre. Sources are 5 positions along the readout on each of a few lines. In two
/// dimensions these are 4 lines of the lattice. In three they are the 2 nearest lines of the 2 nearest rows
/// (3 where the target lies on a row or column of it).
///
/// Errors: an irregular pattern, a grid without gaps, readouts sampled in different parts, too few
/// calibration lines.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_device::{Array, Device};
/// use rayspin_mri::grappa::grappa;
/// use rayspin_mri::scan::{FrameOptions, Samples};
/// use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// let pattern = CartesianPattern::Uniform { acceleration: [2, 1], calibration: 16 };
/// let options = SimulateOptions {
///     matrix: [32, 32, 1],
///     sampling: Sampling::Cartesian(pattern),
///     ..SimulateOptions::default()
/// };
/// let scan = simulate(&options, &Monitor::silent())?.scan;
/// let index = scan.frames()?;
/// let Some(label) = index.labels().next() else { panic!("a scan of one image") };
/// let frame = index.assemble(label, &FrameOptions::default(), &mut Vec::new())?;
/// let Samples::Cartesian { kspace, sampled } = frame.samples else { panic!("a scan on the grid") };
/// let device = Device::cpu()?;
/// let filled = grappa(&device, Array::from_host(&device, &kspace)?, &sampled, None)?;
/// assert_eq!(filled.acceleration, [1, 2]); // z, y
/// assert!(sampled.iter().any(|known| !known) && filled.sampled.iter().all(|&known| known));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn grappa(
    device: &Device,
    mut kspace: Array<C32>,
    sampled: &ArrayD<bool>,
    calibration: Option<(&Array<C32>, &ArrayD<bool>)>,
) -> Result<Filled> {
    let coils = kspace.shape()[0];
    let flat = sampled.ndim() == 2;
    let (lines, readout) = lines_of(sampled)?;
    let lattice = Lattice::of(lines.view())?;
    let (nz, ny) = lines.dim();
    let nx = readout.len();
    let missing = missing(&lines, &lattice);

    let (known, calibrated);
    let (values, there, learnt) = match calibration {
        Some((own, measured)) => {
            expect_shape("calibration lines", kspace.shape(), own.shape())?;
            (known, calibrated) = lines_of(measured)?;
            (Some(own), &known, &calibrated)
        }
        None => (None, &lines, &readout),
    };
    if u32::try_from(coils * nz * ny * nx).is_err() {
        return Err(Error::value("k-space for grappa", "fewer than 2³² values", coils * nz * ny * nx));
    }
    // Weights are alike all along the readout: calibration may cover a part of it.
    let first = learnt.iter().position(|&s| s).unwrap_or(0);
    let last = learnt.iter().rposition(|&s| s).unwrap_or(0);
    let mut interpolations = Vec::with_capacity(missing.len());
    let mut used = 0;
    for (class, targets) in missing {
        let steps = lattice.sources(class, flat);
        let trained = trained(there, &steps);
        let columns = steps.len() * (2 * READOUT + 1) as usize * coils;
        let positions = (last + 1).saturating_sub(first + 2 * READOUT as usize);
        if trained.is_empty() || trained.len() * positions < columns {
            return Err(Error::value(
                "calibration lines for grappa",
                format!("enough for {columns} weights a coil, with the lines around them"),
                format!("{} lines of {positions} positions", trained.len()),
            ));
        }
        used = used.max(trained.len());
        let wanted = (EQUATIONS * columns).div_ceil(trained.len()).clamp(1, positions);
        let middle = (nx / 2).clamp(first + READOUT as usize, last - READOUT as usize);
        let from = middle.saturating_sub(wanted / 2).max(first + READOUT as usize);
        let to = (from + wanted).min(last + 1 - READOUT as usize);
        // Targets ride along as further columns: AᴴA and AᴴB come from one product.
        let low = [0, 1].map(|axis| steps.iter().map(|step| step[axis]).min().unwrap_or(0).min(0));
        let place = |z: isize, y: isize, x: isize| ((z * ny as isize + y) * nx as isize + x) as u32;
        let coil = |coil: usize| (coil * nz * ny * nx) as u32;
        let rows: Vec<u32> = trained
            .iter()
            .map(|&[z, y]| place(z as isize + low[0], y as isize + low[1], 0))
            .flat_map(|line| (from..to).map(move |x| line + x as u32 - READOUT as u32))
            .collect();
        let offset = |[z, y]: [isize; 2], x: isize| place(z - low[0], y - low[1], x + READOUT);
        let sources = steps.iter().flat_map(|&step| (-READOUT..=READOUT).map(move |x| offset(step, x)));
        let both =
            sources.chain([offset([0, 0], 0)]).flat_map(|place| (0..coils).map(move |j| coil(j) + place));
        let both: Vec<u32> = both.collect();
        let products = covariance(values.unwrap_or(&kspace), Rows::Listed(&rows), &both)?;
        let normal = products.submatrix(0, 0, columns, columns).to_owned();
        let rhs: Matrix = products.submatrix(0, columns, columns, coils).to_owned();
        let weights = solve(device, normal, RIDGE, &rhs)?;
        let weights = (0..coils)
            .flat_map(|target| (0..columns).map(move |column| (column, target)))
            .map(|(column, target)| {
                // The covariance is the conjugate of AᴴA.
                let w = weights[(column, target)].conj();
                C32::new(w.re as f32, w.im as f32)
            })
            .collect();
        let sources =
            steps.iter().flat_map(|&[dz, dy]| (-READOUT..=READOUT).map(move |dx| [dz, dy, dx])).collect();
        interpolations.push(Interpolation { sources, weights, lines: targets });
    }
    let mut filled = lines.clone();
    for interpolation in &interpolations {
        fill(&mut kspace, interpolation)?;
        for &[z, y] in &interpolation.lines {
            filled[[z, y]] = true;
        }
    }
    let sampled = filled_mask(sampled, &readout, &filled);
    Ok(Filled { kspace, sampled, acceleration: lattice.step, calibration: used })
}

/// Which lines `[z, y]` are sampled, and which part of the readout in all of them.
fn lines_of(sampled: &ArrayD<bool>) -> Result<(Array2<bool>, Vec<bool>)> {
    let (ny, nx) = (sampled.shape()[sampled.ndim() - 2], sampled.shape()[sampled.ndim() - 1]);
    let nz = sampled.len() / (ny * nx).max(1);
    let mut readout: Option<Vec<bool>> = None;
    let mut lines = Vec::with_capacity(nz * ny);
    for line in sampled.lanes(Axis(sampled.ndim() - 1)) {
        let any = line.iter().any(|&s| s);
        lines.push(any);
        if any {
            let line = line.to_vec();
            if readout.get_or_insert_with(|| line.clone()) != &line {
                return Err(Error::value(
                    "sampling for grappa",
                    "the same part of the readout in every line",
                    "different parts",
                ));
            }
        }
    }
    let lines = Array2::from_shape_vec((nz, ny), lines)
        .map_err(|_| Error::shape("sampling", &[nz, ny, nx], sampled.shape()))?;
    let readout = readout.ok_or_else(|| Error::value("k-space", "at least one line", "none"))?;
    Ok((lines, readout))
}
