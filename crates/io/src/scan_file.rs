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
    /// Matrix x, y, z of samples with a trajectory; by its extent when absent.
    pub matrix: Option<[usize; 3]>,
    /// Field of view x, y, z in mm of a file without geometry; 1 mm voxels when absent.
    pub fov_mm: Option<[f64; 3]>,
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
            let read = ismrmrd::ReadOptions { group: options.name.clone(), memory_limit: None };
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
        let mut frame = Frame::from_grid(grid, geometry(&matrix, options)).map_err(core)?;
        if let Some([x, y, z]) = options.matrix {
            frame.matrix = if frame.matrix.len() == 3 { vec![z, y, x] } else { vec![y, x] };
        }
        frame
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
    let matrix: Vec<usize> = match options.matrix {
        Some(matrix) => matrix[..dims].to_vec(),
        None => stated.extent().iter().map(|k| (2.0 * k).round().max(1.0) as usize).collect(),
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
    let fov: Vec<f64> = match options.fov_mm {
        Some(fov) => fov[..dims].to_vec(),
        None => matrix.iter().map(|&n| n as f64).collect(),
    };
    let units = match (options.units, options.matrix) {
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
    if let Some(fov) = options.fov_mm {
        for (axis, &n) in matrix.iter().rev().enumerate().take(3) {
            geometry.spacing_mm[axis] = fov[axis] / n.max(1) as f64;
        }
    }
    geometry
}
