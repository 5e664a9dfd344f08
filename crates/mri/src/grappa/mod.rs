//! GRAPPA: missing lines of regularly undersampled k-space from their neighbours in all coils, with weights learnt from
//! calibration lines (Griswold et al., Magn Reson Med 47:1202, 2002).

mod lattice;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ndarray::{Array2, ArrayD, Axis};
use rayspin_core::{C32, Error, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::grappa::{Interpolation, fill};

use crate::dense::{Gram, Matrix, solve};
use crate::scan::CalibrationLines;
use lattice::Lattice;

/// Tikhonov regularisation of the weights, relative to the mean power of a source: little enough to leave noise-free
/// weights alone, enough to keep them bounded where sources depend on one another.
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

/// Fills in the lines that a regular pattern leaves out, in the box of what is sampled and up to R − 1 lines around it.
///
/// Weights minimise Σ |Σ_{r,j} w_{i,r,j} s_j(k + r) − s_i(k)|² + μ‖w‖² over all k where target and sources are measured:
/// in `calibration`, else in the scan's own centre. Sources are 5 positions along the readout by, in two dimensions, 4
/// lines of the lattice, in three the 2 nearest lines of the 2 nearest rows (3 where the target lies on a row or column
/// of it).
///
/// Errors: an irregular pattern, a grid without gaps, readouts sampled in different parts, too few calibration lines.
pub fn grappa(
    device: &Device,
    mut kspace: Array<C32>,
    sampled: &ArrayD<bool>,
    calibration: Option<&CalibrationLines>,
) -> Result<Filled> {
    let coils = kspace.shape()[0];
    let flat = sampled.ndim() == 2;
    let (lines, readout) = lines_of(sampled)?;
    let lattice = Lattice::of(lines.view())?;
    let (nz, ny) = lines.dim();
    let nx = readout.len();
    let mut missing: BTreeMap<[usize; 2], Vec<[usize; 2]>> = BTreeMap::new();
    let reach = |axis: usize| {
        let all: Vec<usize> =
            lines.indexed_iter().filter(|(_, s)| **s).map(|(at, _)| [at.0, at.1][axis]).collect();
        let (low, high) = (all.iter().min().copied().unwrap_or(0), all.iter().max().copied().unwrap_or(0));
        let margin = lattice.step[axis] - 1;
        low.saturating_sub(margin)..(high + margin + 1).min([nz, ny][axis])
    };
    for z in reach(0) {
        for y in reach(1) {
            if !lines[[z, y]] {
                missing.entry(lattice.class(z, y)).or_default().push([z, y]);
            }
        }
    }

    let (known, own);
    let (values, there) = match calibration {
        Some(calibration) => {
            own = Array::from_host(device, &calibration.kspace)?;
            let (lines, other) = lines_of(&calibration.sampled)?;
            if other != readout {
                return Err(Error::value(
                    "calibration readouts",
                    "the images' part of the readout",
                    "another",
                ));
            }
            known = lines;
            (own.cpu(), &known)
        }
        None => (kspace.cpu(), &lines),
    };
    let at = |coil: usize, z: usize, y: usize, x: usize| values[((coil * nz + z) * ny + y) * nx + x];
    let first = readout.iter().position(|&s| s).unwrap_or(0);
    let last = readout.iter().rposition(|&s| s).unwrap_or(0);
    let mut interpolations = Vec::with_capacity(missing.len());
    let mut used = 0;
    for (class, targets) in missing {
        let steps = lattice.sources(class, flat);
        let shifted = |i: usize, d: isize, n: usize| i.checked_add_signed(d).filter(|&i| i < n);
        let trained: Vec<[usize; 2]> = there
            .indexed_iter()
            .filter(|((z, y), s)| {
                **s && steps.iter().all(|[dz, dy]| {
                    matches!((shifted(*z, *dz, nz), shifted(*y, *dy, ny)), (Some(z), Some(y)) if there[[z, y]])
                })
            })
            .map(|((z, y), _)| [z, y])
            .collect();
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
        let mut gram = Gram::new(device, columns + coils);
        for &[z, y] in &trained {
            for x in from..to {
                let sources = steps.iter().flat_map(|[dz, dy]| {
                    let (z, y) = ((z as isize + dz) as usize, (y as isize + dy) as usize);
                    (-READOUT..=READOUT).flat_map(move |dx| {
                        (0..coils).map(move |coil| at(coil, z, y, (x as isize + dx) as usize))
                    })
                });
                gram.push(sources.chain((0..coils).map(|coil| at(coil, z, y, x))));
            }
        }
        let all = gram.finish();
        let normal = all.submatrix(0, 0, columns, columns).to_owned();
        let rhs: Matrix = all.submatrix(0, columns, columns, coils).to_owned();
        let found = solve(device, normal, RIDGE, &rhs)?;
        let weights = (0..coils)
            .flat_map(|target| (0..columns).map(move |column| (column, target)))
            .map(|(column, target)| {
                let w = found[(column, target)];
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
    let sampled = ArrayD::from_shape_fn(sampled.raw_dim(), |index| {
        let n = sampled.ndim();
        readout[index[n - 1]] && filled[[if flat { 0 } else { index[0] }, index[n - 2]]]
    });
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
