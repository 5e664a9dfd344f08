use ndarray::{ArcArray2, Array2, ArrayView2, ArrayViewMut1, Axis, s};
use rayon::prelude::*;
use rayspin_core::{C32, Error, Result, Trajectory, TrajectoryUnits, all_finite};
use rayspin_device::cpu::{prefer_huge_pages, zeroed};

use super::frame::Samples;
use super::frames::FrameOptions;
use super::units::settle_units;
use super::{Counters, Encoding, TrajectoryFov, columns, repeats, times};
use crate::mri::corrections::{Centres, Readout, Readouts, of_points};
use crate::mri::raw::note;

/// Corrects the readouts of one image and joins them: trajectories to cycles per field of view, samples to
/// `[coil, sample]`.
pub(super) fn assemble(
    readouts: &mut Readouts<'_>,
    options: &FrameOptions,
    stated_units: Option<TrajectoryUnits>,
    notes: &mut Vec<String>,
) -> Result<(Vec<usize>, Samples, Option<Vec<f64>>)> {
    options.corrections.readouts(readouts, notes)?;
    let Readouts { encoding, centres, each: readouts, .. } = &*readouts;
    let components = columns::components(readouts, encoding, &options.trajectory, notes)?;
    let (mut points, rows) = join_trajectories(readouts, encoding, centres, components, notes)?;
    let matrix = encoding.recon.matrix;
    let dims = points.ncols();
    if dims == 2 && matrix[2] > 1 {
        return Err(Error::value(
            "trajectory dimensions",
            format!("3 for a matrix of {} along z", matrix[2]),
            "2, and no second phase encoding",
        ));
    }
    // Counters are cycles per field of view whatever the file's unit: only the file's own columns tell it and
    // are converted.
    let fov = &encoding.encoded.fov_mm[..rows.stated];
    let own = points.slice(s![.., ..rows.stated]);
    let units = options.units.or(stated_units);
    let units = settle_units(own, &encoding.encoded.matrix[..rows.stated], fov, units, notes)?;
    let counted_over = columns::fov_of(own, encoding, units, options.trajectory.fov, notes)?;
    for (d, &fov) in fov.iter().enumerate() {
        let factor = units.to_cycles_per_fov(encoding.encoded.matrix[d], fov);
        scale(&mut points, d, factor);
    }
    for d in 0..dims {
        let of_image = counted_over == TrajectoryFov::Recon && d < rows.stated;
        if let Some(factor) = of_points(encoding, d).filter(|_| !of_image) {
            scale(&mut points, d, factor);
        }
    }
    let coils = readouts[0].data.nrows();
    let timing = options.timing();
    let mut times = timing.map(|_| Vec::new());
    if let (Some(times), Some(timing)) = (&mut times, timing) {
        for readout in readouts {
            let centre = times::stated_centre(readout);
            let own = timing.of_readout(readout.index, readout, encoding, centre)?;
            times.extend_from_slice(&own[readout.kept.clone()]);
        }
    }
    let paths = paths(readouts, rows.stated);
    if let Some(path) = repeats::contradicted(&paths)
        && let Some((readout, _)) = readouts.iter().zip(&paths).find(|(_, own)| own.place == path)
    {
        repeats::say(&format!("the path of acquisition {}", readout.index), notes);
    }
    let data = join_samples(readouts, coils, points.nrows())?;
    let (points, data) = match within_matrix(points.view(), &matrix, notes)? {
        None => (points, data),
        Some(keep) => {
            times = times.map(|times| keep.iter().map(|&i| times[i]).collect());
            (points.select(Axis(0), &keep), data.select(Axis(1), &keep))
        }
    };
    let trajectory = Trajectory::from_cycles_per_fov(points)?;
    let matrix = if dims == 3 { vec![matrix[2], matrix[1], matrix[0]] } else { vec![matrix[1], matrix[0]] };
    Ok((matrix, Samples::NonCartesian { trajectory, data }, times))
}

/// Points of a trajectory that tell it from others.
const TELLING: usize = 8;

/// The readouts by their paths: the bits of some of their points, and the counters that stand for the
/// components that the file lacks.
fn paths<'a>(
    readouts: &'a [Readout<'_>],
    stated: usize,
) -> Vec<repeats::Readout<'a, ([u32; 3 * TELLING], [u16; 2])>> {
    let path = |readout: &'a Readout<'_>| {
        let mut bits = [0; 3 * TELLING];
        if let Some(points) = readout.trajectory.as_ref().filter(|points| points.nrows() > 0) {
            let last = points.nrows().saturating_sub(1);
            let some = (0..TELLING).map(|index| points.row(last * index / (TELLING - 1)));
            let some = some.flat_map(|row| row.into_iter());
            bits.iter_mut().zip(some).for_each(|(bits, k)| *bits = k.to_bits());
        }
        let Counters { step_1, step_2, .. } = readout.counters;
        let counters = [if stated < 2 { step_1 } else { 0 }, if stated < 3 { step_2 } else { 0 }];
        repeats::Readout { place: (bits, counters), samples: readout.data.view(), reversed: false }
    };
    readouts.par_iter().map(path).collect()
}

/// Readouts of a task that copies samples.
const READOUTS: usize = 64;

/// The samples of all readouts, `[coil, sample]`.
fn join_samples(readouts: &[Readout<'_>], coils: usize, samples: usize) -> Result<Array2<C32>> {
    // Nothing has touched the memory of these zeros yet, and all threads write it.
    let mut data: Vec<C32> = zeroed("samples", coils * samples)?;
    prefer_huge_pages(&mut data);
    data.par_chunks_exact_mut(samples).enumerate().for_each(|(coil, mut row)| {
        let mut parts = Vec::with_capacity(readouts.len().div_ceil(READOUTS));
        for some in readouts.chunks(READOUTS) {
            let (part, behind) = row.split_at_mut(some.iter().map(|readout| readout.kept.len()).sum());
            parts.push((some, part));
            row = behind;
        }
        parts.into_par_iter().for_each(|(some, mut part)| {
            for readout in some {
                let own = readout.data.slice(s![coil, readout.kept.clone()]);
                let (to, behind) = part.split_at_mut(own.len());
                ArrayViewMut1::from(to).assign(&own);
                part = behind;
            }
        });
    });
    Array2::from_shape_vec((coils, samples), data).map_err(|e| Error::value("samples", "[coil, sample]", e))
}

/// Scales a component of all points.
fn scale(points: &mut Array2<f64>, dim: usize, factor: f64) {
    if factor != 1.0 {
        points
            .axis_iter_mut(Axis(0))
            .into_par_iter()
            .with_min_len(1 << 12)
            .for_each(|mut k| k[dim] *= factor);
    }
}

/// Beyond n/2 by this many cycles a sample still belongs to the matrix: files round their trajectories.
const EDGE: f64 = 0.51;

/// The samples within the matrix's own k-space, where not all are: on n voxels k and k − n are the same, so
/// the others would fold into the image. `matrix` is in the order x, y, z.
///
/// Errors: fewer than a twentieth of the samples lie within, as with a trajectory in another unit.
pub(super) fn within_matrix(
    points: ArrayView2<'_, f64>,
    matrix: &[usize],
    notes: &mut Vec<String>,
) -> Result<Option<Vec<usize>>> {
    let inside = |row: &[usize], k: &ndarray::ArrayView1<'_, f64>| {
        k.iter().zip(row).all(|(k, &n)| k.abs() <= n as f64 / 2.0 + EDGE)
    };
    if points.axis_iter(Axis(0)).into_par_iter().with_min_len(1 << 12).all(|k| inside(matrix, &k)) {
        return Ok(None);
    }
    let keep: Vec<usize> =
        points.rows().into_iter().enumerate().filter(|(_, k)| inside(matrix, k)).map(|(i, _)| i).collect();
    let total = points.nrows();
    if keep.len() * 20 < total {
        let largest = points.iter().fold(0.0f64, |m, k| m.max(k.abs()));
        return Err(Error::value(
            "trajectory units",
            format!("samples within matrix {matrix:?}, |k| up to n/2 cycles per field of view"),
            format!("{} of {total} samples within, max |k| = {largest:.1}", keep.len()),
        ));
    }
    note(
        notes,
        format!(
            "{} of {total} samples lie beyond the matrix's k-space and are left out (a larger `--matrix` takes them)",
            total - keep.len()
        ),
    );
    Ok(Some(keep))
}

/// How many leading columns of the joined trajectory came from the file rather than from counters.
struct Columns {
    stated: usize,
}

fn join_trajectories(
    readouts: &[Readout<'_>],
    encoding: &Encoding,
    centres: &Centres,
    stated: usize,
    notes: &mut Vec<String>,
) -> Result<(Array2<f64>, Columns)> {
    let columns = readouts[0].trajectory.as_ref().map_or(0, ArcArray2::ncols);
    let check = |index: usize, trajectory: &ArcArray2<f32>, readout: &Readout<'_>| {
        if trajectory.ncols() != columns || trajectory.nrows() != readout.data.ncols() {
            return Err(Error::Shape {
                what: format!("acquisition {index}: trajectory"),
                expected: format!("[{}, {columns}]", readout.data.ncols()),
                found: rayspin_core::format_shape(trajectory.shape()),
            });
        }
        if !trajectory.as_slice().is_some_and(all_finite)
            && let Some((place, value)) = trajectory.iter().enumerate().find(|(_, v)| !v.is_finite())
        {
            return Err(Error::NotFinite {
                what: format!("acquisition {index}: trajectory"),
                index: place,
                found: value.to_string(),
            });
        }
        Ok(())
    };
    let with: Vec<_> = readouts
        .iter()
        .filter_map(|readout| Some((readout.index, readout.trajectory.as_ref()?, readout)))
        .collect();
    let checked = with.par_iter().map(|&(index, trajectory, readout)| check(index, trajectory, readout));
    if let Some(Err(first)) = checked.find_first(Result::is_err) {
        return Err(first);
    }
    let count: usize = with.iter().map(|(_, _, readout)| readout.kept.len()).sum();
    if count == 0 {
        return Err(Error::value("trajectory", "at least one sample", "0 samples"));
    }
    let mut rows: Vec<[f64; 3]> = zeroed("trajectory", count)?;
    prefer_huge_pages(&mut rows);
    let mut rest = &mut rows[..];
    let mut parts = Vec::with_capacity(with.len());
    for (_, trajectory, readout) in with {
        let (part, behind) = rest.split_at_mut(readout.kept.len());
        parts.push((readout, trajectory, part));
        rest = behind;
    }
    let [_, ny, nz] = encoding.encoded.matrix;
    let (line, partition) =
        (centres.line.unwrap_or(ny / 2) as f64, centres.partition.unwrap_or(nz / 2) as f64);
    parts.into_par_iter().for_each(|(readout, trajectory, part)| {
        let counters =
            [f64::from(readout.counters.step_1) - line, f64::from(readout.counters.step_2) - partition];
        for (row, sample) in part.iter_mut().zip(readout.kept.clone()) {
            let k = |d: usize| f64::from(trajectory[[sample, d]]);
            *row = match stated {
                1 => [k(0), counters[0], counters[1]],
                2 => [k(0), k(1), counters[1]],
                _ => [k(0), k(1), k(2)],
            };
        }
    });
    let flat = encoding.recon.matrix[2] == 1;
    let third_is_zero = rows.par_iter().all(|r| r[2] == 0.0);
    let dims = if flat {
        if !third_is_zero {
            return Err(Error::value(
                "trajectory",
                "kz = 0 throughout for a matrix of one voxel along z",
                "kz that varies",
            ));
        }
        if stated == 3 {
            note(notes, "the trajectory's third column is zero throughout: a two-dimensional scan");
        }
        2
    } else if stated < 3 && third_is_zero {
        2
    } else {
        3
    };
    let points = match dims {
        3 => Array2::from_shape_vec((count, 3), bytemuck::allocation::cast_vec(rows))
            .map_err(|e| Error::value("trajectory", "three numbers a sample", e))?,
        _ => Array2::from_shape_fn((count, dims), |(i, d)| rows[i][d]),
    };
    Ok((points, Columns { stated: stated.min(dims) }))
}
