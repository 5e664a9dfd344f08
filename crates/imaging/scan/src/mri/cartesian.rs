use std::ops::Range;

use ndarray::{ArrayD, ArrayView2, IxDyn, s};
use rayon::prelude::*;
use rayspin_core::{C32, Error, Result};
use rayspin_device::cpu::{prefer_huge_pages, zeroed};

use super::frame::Samples;
use super::repeats;
use super::times::Timing;
use crate::mri::corrections::{Corrections, Readout, Readouts};
use crate::mri::raw::note;

/// Samples of a readout at most, for each place along x: scanners oversample less.
const LONGEST: usize = 16;

/// Corrects the readouts of one image and places them on the grid. Lines measured more than once are
/// averaged.
pub(super) fn assemble(
    readouts: &mut Readouts<'_>,
    corrections: &Corrections,
    timing: Option<Timing>,
    notes: &mut Vec<String>,
) -> Result<(Vec<usize>, Samples, Option<Vec<f64>>)> {
    corrections.readouts(readouts, notes)?;
    let readouts = &*readouts;
    let (encoding, centres) = (&readouts.encoding, &readouts.centres);
    let encoded = encoding.encoded.matrix;
    let [nx, ny, nz] = readouts.grid;
    let lines = ny * nz;
    let coils = readouts.each.first().map_or(0, |readout| readout.data.nrows());
    let mut placed = Vec::with_capacity(readouts.each.len());
    let mut counts = vec![0u32; lines * nx];
    let mut times = timing.map(|_| vec![0.0; lines * nx]);
    let centre_1 = centres.line.unwrap_or(encoded[1] / 2);
    let centre_2 = centres.partition.unwrap_or(encoded[2] / 2);
    let lowest =
        |step: fn(&Readout<'_>) -> u16| usize::from(readouts.each.iter().map(step).min().unwrap_or(0));
    let (lowest_1, lowest_2) = (lowest(|r| r.counters.step_1), lowest(|r| r.counters.step_2));
    let mut left_out = 0;

    for readout in &readouts.each {
        let Readout { index, kept, centre, reversed, .. } = readout;
        let most = LONGEST * encoded[0].max(nx);
        if kept.len() > most {
            return Err(Error::value(
                format!("acquisition {index}: samples of a readout"),
                format!(
                    "at most {most} for {} places along x: a train of lines, a spoke or a spiral needs a trajectory",
                    encoded[0]
                ),
                kept.len(),
            ));
        }
        let (samples, centre, reversed) = (readout.data.ncols(), *centre, *reversed);
        let y = line_place(readout.counters.step_1 as usize, centre_1, ny, lowest_1);
        let z = line_place(readout.counters.step_2 as usize, centre_2, nz, lowest_2);
        let (Some(y), Some(z)) = (y, z) else {
            // A grid coarser than what was encoded keeps the centre of k-space only.
            if ny >= encoded[1] && nz >= encoded[2] {
                return Err(Error::value(
                    format!("acquisition {index}: kspace_encode_step_1 and _2"),
                    format!(
                        "within the matrix of {ny} x {nz} lines around its centre {centre_1}, {centre_2}"
                    ),
                    format!("{} and {}", readout.counters.step_1, readout.counters.step_2),
                ));
            }
            left_out += 1;
            continue;
        };
        let own = match timing {
            Some(timing) => timing.of_readout(*index, readout, encoding, centre)?,
            None => Vec::new(),
        };
        // Those that fall on the grid are neighbours: of the places from `first` on.
        let position = |sample: usize| if reversed { samples - 1 - sample } else { sample };
        let on_grid = |sample: &usize| place(position(*sample), centre, nx).is_some();
        let (Some(low), Some(high)) = (kept.clone().find(on_grid), kept.clone().rev().find(on_grid)) else {
            continue;
        };
        let x = [low, high].into_iter().filter_map(|sample| place(position(sample), centre, nx)).min();
        let first = (z * ny + y) * nx + x.unwrap_or_default();
        let taken = first..first + high + 1 - low;
        counts[taken.clone()].iter_mut().for_each(|count| *count += 1);
        if let Some(times) = &mut times {
            let own = own.get(low..=high).unwrap_or_default().iter();
            add(&mut times[taken.clone()], own, reversed);
        }
        placed.push(Placed { samples: readout.data.slice(s![.., low..=high]), taken, reversed });
    }
    if left_out > 0 {
        note(notes, format!("{left_out} outer lines are left out: `--matrix` is coarser than the scan"));
    }
    for (time, &count) in times.iter_mut().flatten().zip(&counts) {
        *time /= f64::from(count.max(1));
    }
    if counts.iter().all(|&c| c == 0) {
        return Err(Error::value("acquisitions", "samples that fall on the matrix", "none"));
    }
    if counts.iter().any(|&count| count > 1) {
        let readouts = placed.iter().map(|readout| repeats::Readout {
            place: (readout.taken.start, readout.taken.end),
            samples: readout.samples,
            reversed: readout.reversed,
        });
        let readouts: Vec<_> = readouts.collect();
        if let Some((start, _)) = repeats::contradicted(&readouts) {
            let [y, z] = [start / nx % ny, start / nx / ny];
            let counter = |place: usize, centre: usize, n: usize| (place + centre).saturating_sub(n / 2);
            let line = counter(y, centre_1, ny);
            let partition =
                if nz > 1 { format!(" of partition {}", counter(z, centre_2, nz)) } else { String::new() };
            repeats::say(&format!("line {line}{partition}"), notes);
        }
    }
    let mut kspace = fill(&placed, coils, &counts)?;
    if readouts.scale != 1.0 {
        kspace.par_iter_mut().for_each(|value| *value *= readouts.scale as f32);
    }
    let flat = nz == 1 && encoding.recon.matrix[2] == 1;
    let shape = if flat { vec![ny, nx] } else { vec![nz, ny, nx] };
    let [rx, ry, rz] = encoding.recon.matrix;
    let matrix = if flat { vec![ry, rx] } else { vec![rz, ry, rx] };
    let with_coils: Vec<usize> = std::iter::once(coils).chain(shape.iter().copied()).collect();
    let array = |shape: &[usize], values| {
        ArrayD::from_shape_vec(IxDyn(shape), values).map_err(|e| Error::value("k-space", "a full grid", e))
    };
    let sampled = ArrayD::from_shape_vec(IxDyn(&shape), counts.iter().map(|&c| c > 0).collect())
        .map_err(|e| Error::value("k-space", "a full grid", e))?;
    Ok((matrix, Samples::Cartesian { kspace: array(&with_coils, kspace)?, sampled }, times))
}

/// The samples of a readout that fall on the grid.
struct Placed<'a> {
    /// `[coil, sample]`
    samples: ArrayView2<'a, C32>,
    /// Their places in the grid of a coil.
    taken: Range<usize>,
    /// Whether the first sample has the last place.
    reversed: bool,
}

/// The grid of all coils: at each place the mean of the samples there. `counts` has the number of samples at
/// each place.
fn fill(placed: &[Placed<'_>], coils: usize, counts: &[u32]) -> Result<Vec<C32>> {
    // Nothing has touched the memory of these zeros yet, and all threads write it.
    let mut kspace: Vec<C32> = zeroed("k-space", coils * counts.len())?;
    prefer_huge_pages(&mut kspace);
    let averaged = counts.iter().any(|&count| count > 1);
    kspace.par_chunks_exact_mut(counts.len()).enumerate().for_each(|(coil, grid)| {
        for Placed { samples, taken, reversed } in placed {
            add(&mut grid[taken.clone()], samples.row(coil).iter(), *reversed);
        }
        if averaged {
            for (value, &count) in grid.iter_mut().zip(counts).filter(|(_, count)| **count > 1) {
                *value /= count as f32;
            }
        }
    });
    Ok(kspace)
}

/// Adds numbers to a line, from its end where they run backwards.
fn add<'a, T: Copy + std::ops::AddAssign + 'a>(
    line: &mut [T],
    values: impl DoubleEndedIterator<Item = &'a T>,
    reversed: bool,
) {
    let pairs = |line: &mut T, value: &T| *line += *value;
    if reversed {
        line.iter_mut().zip(values.rev()).for_each(|(line, value)| pairs(line, value));
    } else {
        line.iter_mut().zip(values).for_each(|(line, value)| pairs(line, value));
    }
}

/// Index on an axis of `n` of what lies at `position` when `centre` is the k-space centre.
fn place(position: usize, centre: usize, n: usize) -> Option<usize> {
    (position + n / 2).checked_sub(centre).filter(|&i| i < n)
}

/// Index on an axis of `n` lines of the line at `position`, where lines from `lowest` on were measured. On n
/// pixels, n even, the line n/2 is the line −n/2: lines may run from 1 − n/2 to n/2.
fn line_place(position: usize, centre: usize, n: usize, lowest: usize) -> Option<usize> {
    // A user may state any centre: nothing is added to it.
    let last =
        n.is_multiple_of(2) && (position + n / 2).checked_sub(n) == Some(centre) && lowest + n / 2 > centre;
    if last { Some(0) } else { place(position, centre, n) }
}
