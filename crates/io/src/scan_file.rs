use std::path::{Path, PathBuf};

use ndarray::{Array2, ArrayD};
use rayspin_core::{C32, Geometry, Monitor, Trajectory, TrajectoryUnits};
use rayspin_mri::scan::{Frame, MAX_MATRIX, Scan, detect_units};

use crate::cfl::{self, Cartesian};
use crate::{Error, Format, Result, detect, ismrmrd, npy};

/// How [`read_scan`] reads.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// The group of an HDF5 file, or the array of an `.npz` archive, where there are several.
    pub name: Option<String>,
    /// The trajectory of samples that come without one.
    pub trajectory: Option<PathBuf>,
    /// Units of that trajectory; by its range when absent.
    pub units: Option<TrajectoryUnits>,
    /// Matrix x, y and, where z is to change, z; a grid's own, or by the trajectory's extent, when absent.
    pub matrix: Option<Vec<usize>>,
    /// Field of view x, y and z in mm of a file without geometry; 1 mm voxels along what is absent.
    pub fov_mm: Option<Vec<f64>>,
}

/// What a file of raw data holds.
#[derive(Debug, Clone)]
pub enum ScanFile {
    /// A scan with its header and every acquisition.
    Scan(Scan),
    /// The samples of one image, and what was assumed of them.
    Frame(Box<Frame>, Vec<String>),
}

/// Reads raw data of any format: an ISMRMRD scan; or a grid of k-space as BART array (`[READ, PHS1, PHS2, COIL]`),
/// `.npy` or `.npz` (`[coil, z, y, x]` or `[coil, y, x]`); or, with a trajectory, samples as BART array
/// (`[1, readout, spoke, coil]`) or NumPy array (`[coil, sample]`, or `[coil, spoke, readout]`).
///
/// Errors: a format without raw data, and whatever the format's reader or [`Frame`] refuses.
pub fn read_scan(path: impl AsRef<Path>, options: &ScanOptions, monitor: &Monitor<'_>) -> Result<ScanFile> {
    let path = path.as_ref();
    let format = detect(path)?;
    let array = match format {
        Format::Hdf5 => {
            let read =
                ismrmrd::ReadOptions { group: options.name.clone(), ..ismrmrd::ReadOptions::default() };
            return Ok(ScanFile::Scan(ismrmrd::read_with(path, &read, monitor)?));
        }
        Format::Cfl => cfl::read(path)?,
        Format::Npy => npy::read_complex(path)?,
        Format::Npz => npy::read_npz_complex(path, options.name.as_deref())?,
        Format::Nifti | Format::Png | Format::Twix => {
            return Err(Error::unsupported(path, format!("reading raw data from {format}"))
                .with_hint("give an ISMRMRD file, or k-space as BART or NumPy array"));
        }
    };
    let core = |error| Error::core(path, error);
    let mut notes = Vec::new();
    let frame = if let Some(trajectory) = &options.trajectory {
        let data = samples(path, format, array)?;
        let (trajectory, matrix) = read_trajectory(trajectory, options, &mut notes)?;
        let geometry = geometry(&matrix, options);
        Frame::from_samples(data, trajectory, matrix, geometry).map_err(core)?
    } else {
        let grid = if format == Format::Cfl {
            let cartesian = Cartesian::from_bart(array.view()).map_err(core)?;
            notes.extend(cartesian.axes.note().map(str::to_owned));
            cartesian.single().map_err(core)?.into_dyn()
        } else {
            array
        };
        let matrix: Vec<usize> = grid.shape().iter().skip(1).copied().collect();
        let frame = Frame::from_grid(grid, geometry(&matrix, options)).map_err(core)?;
        match &options.matrix {
            Some(asked) => {
                let mut matrix = frame.matrix.clone();
                for (own, &asked) in matrix.iter_mut().rev().zip(asked) {
                    *own = asked;
                }
                frame.with_matrix(&matrix).map_err(core)?
            }
            None => frame,
        }
    };
    if options.fov_mm.is_none() {
        notes.push(
            "the file holds no geometry: voxels of 1 mm at the isocentre are assumed (--fov says otherwise)"
                .into(),
        );
    }
    Ok(ScanFile::Frame(Box::new(frame), notes))
}

fn samples(path: &Path, format: Format, array: ArrayD<C32>) -> Result<Array2<C32>> {
    if format == Format::Cfl {
        return cfl::samples_from_bart(array.view()).map_err(|e| Error::core(path, e));
    }
    let shape = array.shape().to_vec();
    let (coils, count) = match shape[..] {
        [coils, samples] => (coils, samples),
        [coils, spokes, readout] => (coils, spokes * readout),
        _ => {
            return Err(Error::field(
                path,
                "shape",
                "[coil, sample] or [coil, spoke, readout]",
                format!("{shape:?}"),
            ));
        }
    };
    let values: Vec<C32> = array.iter().copied().collect();
    Array2::from_shape_vec((coils, count), values)
        .map_err(|_| Error::field(path, "shape", "[coil, sample]", format!("{shape:?}")))
}

/// Points `[sample, dim]` and the matrix `[z, y, x]` or `[y, x]` they are for.
fn read_trajectory(
    path: &Path,
    options: &ScanOptions,
    notes: &mut Vec<String>,
) -> Result<(Trajectory, Vec<usize>)> {
    let core = |error| Error::core(path, error);
    let stated = match detect(path)? {
        Format::Cfl => cfl::trajectory_from_bart(cfl::read(path)?.view()).map_err(core)?,
        Format::Npy => {
            let array = npy::read_real(path)?;
            let shape = array.shape().to_vec();
            let dims = shape.last().copied().unwrap_or(0);
            let points = array
                .as_standard_layout()
                .into_owned()
                .into_shape_with_order((shape.iter().rev().skip(1).product(), dims))
                .map_err(|_| {
                    Error::field(
                        path,
                        "shape",
                        "[sample, dim] or [spoke, readout, dim]",
                        format!("{shape:?}"),
                    )
                })?;
            Trajectory::from_cycles_per_fov(points).map_err(core)?
        }
        other => {
            return Err(Error::unsupported(path, format!("reading a trajectory from {other}"))
                .with_hint("give a BART array [3, readout, spoke] or a NumPy array [sample, dim]"));
        }
    };
    let dims = stated.dims();
    if dims == 1 {
        return Err(Error::field(path, "trajectory dimensions", "2 or 3", 1));
    }
    let matrix: Vec<usize> = match &options.matrix {
        Some(matrix) if matrix.len() >= dims => matrix[..dims].to_vec(),
        Some(matrix) => {
            return Err(Error::field(
                path,
                "matrix",
                format!("{dims} numbers, as the trajectory has"),
                format!("{matrix:?}"),
            ));
        }
        None if options.units.is_some_and(|units| units != TrajectoryUnits::CyclesPerFov) => {
            return Err(Error::field(
                path,
                "matrix",
                "a matrix, which the trajectory's extent in these units does not tell",
                "none",
            )
            .with_hint("say it with --matrix"));
        }
        // Spokes may miss the edge by half a cycle; the margin is for what rounding to f32 adds.
        None => stated.extent().iter().map(|k| (2.0 * (k - 1e-3).ceil()).max(1.0) as usize).collect(),
    };
    if matrix.iter().any(|&n| n == 0 || n > MAX_MATRIX) {
        return Err(Error::field(
            path,
            "matrix",
            format!("1 to {MAX_MATRIX} along each axis"),
            format!("{matrix:?}"),
        )
        .with_hint("say it with --matrix"));
    }
    let fov: Vec<f64> = (0..dims)
        .map(|d| options.fov_mm.as_ref().and_then(|fov| fov.get(d)).copied().unwrap_or(matrix[d] as f64))
        .collect();
    let units = match (options.units, &options.matrix) {
        (Some(units), _) => units,
        // Without a matrix to compare with, BART's own unit is the only sound guess.
        (None, None) => TrajectoryUnits::CyclesPerFov,
        (None, Some(_)) => detect_units(stated.points(), &matrix, &fov).map_err(core)?,
    };
    if options.units.is_none() {
        notes.push(format!("trajectory units: {units} assumed"));
    }
    if options.matrix.is_none() {
        notes.push(format!("matrix {matrix:?} (x, y, z) by the trajectory's extent"));
    }
    let trajectory =
        Trajectory::from_units(stated.points().to_owned(), units, &matrix, &fov).map_err(core)?;
    Ok((trajectory, matrix.into_iter().rev().collect()))
}

/// `matrix` is `[z, y, x]` or `[y, x]`.
fn geometry(matrix: &[usize], options: &ScanOptions) -> Geometry {
    let mut geometry = Geometry::default();
    if let Some(fov) = &options.fov_mm {
        for (axis, (&n, fov)) in matrix.iter().rev().zip(fov).enumerate().take(3) {
            geometry.spacing_mm[axis] = fov / n.max(1) as f64;
        }
    }
    geometry
}
