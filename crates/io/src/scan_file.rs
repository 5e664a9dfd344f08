use std::path::{Path, PathBuf};

use ndarray::{Array2, ArrayD};
use rayspin_core::{C32, Geometry, Monitor, Trajectory, TrajectoryUnits, format_shape};
use rayspin_mri::scan::{Frame, MAX_MATRIX, Scan, Summary, may_count_voxels, settle_units};

use crate::cfl::{self, Axes, Cartesian, Layout, dim};
use crate::{Error, Format, Result, detect, ismrmrd, npy};

/// How [`read_scan`] reads.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// The group of an HDF5 file, or the array of an `.npz` archive, where there are several.
    pub name: Option<String>,
    /// The trajectory of samples that come without one.
    pub trajectory: Option<PathBuf>,
    /// The array of the trajectory's `.npz` archive, where there are several.
    pub trajectory_name: Option<String>,
    /// Units of that trajectory; by its range when absent.
    pub units: Option<TrajectoryUnits>,
    /// Matrix x, y and, where z is to change, z. When absent it is a grid's own, or follows from the extent of a trajectory
    /// whose unit is certain.
    pub matrix: Option<Vec<usize>>,
    /// Field of view x, y and z in mm of a file without geometry; 1 mm voxels along what is absent.
    pub fov_mm: Option<Vec<f64>>,
}

/// What a file of raw data holds.
#[derive(Debug, Clone)]
pub enum ScanFile {
    /// A scan with its header and every acquisition.
    Scan(Box<Scan>),
    /// The samples of one image, without a header.
    Frame(Box<ArrayFrame>),
}

/// The samples of one image, from arrays without a header.
#[derive(Debug, Clone)]
pub struct ArrayFrame {
    /// The samples.
    pub frame: Frame,
    /// What became of the dimensions of a BART array, for images and maps that are written as one.
    pub layout: Layout,
    /// What was assumed, one sentence each.
    pub notes: Vec<String>,
}

impl ArrayFrame {
    /// What the arrays were understood as; sizes in the order x, y, z, or BART's for a slice across the readout.
    pub fn summary(&self) -> Summary {
        let mut summary = self.frame.summary();
        if self.layout.axes == Axes::ReadIsZ {
            summary.matrix.reverse();
        }
        summary
    }
}

/// Reads raw data of any format: an ISMRMRD scan; or a grid of k-space as BART array (`[READ, PHS1, PHS2, COIL]`),
/// `.npy` or `.npz` (`[coil, z, y, x]` or `[coil, y, x]`); or, with a trajectory, samples as BART array
/// (`[1, readout, spoke, coil]`) or NumPy array (`[coil, sample]`, or `[coil, spoke, readout]`).
///
/// A trajectory is a BART array `[3, readout, spoke]`, or a NumPy array `[sample, dim]` or `[spoke, readout, dim]`, with
/// components in the order x, y, z.
///
/// Errors: a format without raw data, real numbers in a NumPy file, a trajectory whose unit or matrix is not certain, and
/// whatever the format's reader or [`Frame`] refuses.
pub fn read_scan(path: impl AsRef<Path>, options: &ScanOptions, monitor: &Monitor<'_>) -> Result<ScanFile> {
    let path = path.as_ref();
    let format = detect(path)?;
    let array = match format {
        Format::Hdf5 => {
            let read =
                ismrmrd::ReadOptions { group: options.name.clone(), ..ismrmrd::ReadOptions::default() };
            return Ok(ScanFile::Scan(Box::new(ismrmrd::read_with(path, &read, monitor)?)));
        }
        Format::Cfl => cfl::read(path)?,
        Format::Npy | Format::Npz => npy::read_samples(path, format, options.name.as_deref())?,
        Format::Nifti | Format::Png | Format::Twix => {
            return Err(Error::unsupported(path, format!("reading raw data from {format}"))
                .with_hint("give an ISMRMRD file, or k-space as BART or NumPy array"));
        }
    };
    let mut notes = Vec::new();
    let (frame, layout) = match &options.trajectory {
        Some(trajectory) => {
            let frame = along_trajectory(path, format, array, trajectory, options, &mut notes)?;
            (frame, Layout::default())
        }
        None => on_grid(path, format, array, options, &mut notes)?,
    };
    if options.fov_mm.is_none() {
        notes.push(
            "the file holds no geometry: voxels of 1 mm at the isocentre are assumed (--fov says otherwise)"
                .into(),
        );
    }
    Ok(ScanFile::Frame(Box::new(ArrayFrame { frame, layout, notes })))
}

fn on_grid(
    path: &Path,
    format: Format,
    array: ArrayD<C32>,
    options: &ScanOptions,
    notes: &mut Vec<String>,
) -> Result<(Frame, Layout)> {
    let core = |error| Error::core(path, error);
    let (grid, layout) = if format == Format::Cfl {
        let cartesian = Cartesian::from_bart(array.view()).map_err(core)?;
        let layout = cartesian.layout;
        notes.extend(layout.axes.note().map(str::to_owned));
        (cartesian.single().map_err(core)?.into_dyn(), layout)
    } else {
        (array, Layout::default())
    };
    let matrix: Vec<usize> = grid.shape().iter().skip(1).copied().collect();
    let frame = Frame::from_grid(grid, geometry(&matrix, options)).map_err(core)?;
    let Some(wanted) = &options.matrix else { return Ok((frame, layout)) };
    let mut matrix = frame.matrix.clone();
    if wanted.iter().skip(matrix.len()).any(|&n| n != 1) {
        let expected = format!("{} numbers, as the grid has axes", matrix.len());
        return Err(
            Error::field(path, "matrix", expected, format_shape(wanted)).with_hint("shorten --matrix")
        );
    }
    for (own, &wanted) in matrix.iter_mut().rev().zip(wanted) {
        *own = wanted;
    }
    Ok((frame.with_matrix(&matrix).map_err(core)?, layout))
}

fn along_trajectory(
    path: &Path,
    format: Format,
    array: ArrayD<C32>,
    trajectory: &Path,
    options: &ScanOptions,
    notes: &mut Vec<String>,
) -> Result<Frame> {
    let (data, samples_in) = samples(path, format, array)?;
    let (points, points_in) = read_points(trajectory, options)?;
    // Neighbours in one array must be neighbours in the other.
    if samples_in.len() > 1 && points_in.len() > 1 && samples_in != points_in {
        let expected = format!("{} (spoke, readout) as the trajectory has", format_shape(&points_in));
        return Err(Error::field(path, "shape of the samples", expected, format_shape(&samples_in))
            .with_hint(
                "samples and trajectory run in the same order: along each readout, spoke after spoke",
            ));
    }
    let (trajectory, matrix) = place(trajectory, points, options, notes)?;
    let geometry = geometry(&matrix, options);
    Frame::from_samples(data, trajectory, matrix, geometry, notes).map_err(|e| Error::core(path, e))
}

/// How many points a trajectory has, and the largest |k| of each component in the file's own unit: BART `[3, readout, spoke]`,
/// `.npy` or `.npz` `[sample, dim]` or `[spoke, readout, dim]`. `name` is the array of an archive.
///
/// Errors: another format or shape, complex numbers, or numbers that are not finite.
pub fn trajectory_extent(path: impl AsRef<Path>, name: Option<&str>) -> Result<(usize, Vec<f64>)> {
    let path = path.as_ref();
    let options = ScanOptions { trajectory_name: name.map(str::to_owned), ..ScanOptions::default() };
    let (points, _) = read_points(path, &options)?;
    let trajectory = Trajectory::from_cycles_per_fov(points).map_err(|error| Error::core(path, error))?;
    Ok((trajectory.samples(), trajectory.extent()))
}

/// Samples `[coil, sample]`, and the sizes of what their samples run through, such as `[spoke, readout]`, without sizes of 1.
fn samples(path: &Path, format: Format, array: ArrayD<C32>) -> Result<(Array2<C32>, Vec<usize>)> {
    let shape = array.shape().to_vec();
    if format == Format::Cfl {
        let runs = [shape[dim::PHS2], shape[dim::PHS1]];
        let data = cfl::samples_from_bart(array.view()).map_err(|e| Error::core(path, e))?;
        return Ok((data, without_ones(&runs)));
    }
    let expected = "[coil, sample] or [coil, spoke, readout]";
    let wrong = || Error::field(path, "shape", expected, format_shape(&shape));
    let (&coils, runs) =
        shape.split_first().filter(|(_, runs)| (1..=2).contains(&runs.len())).ok_or_else(wrong)?;
    let values: Vec<C32> = array.iter().copied().collect();
    let data = Array2::from_shape_vec((coils, runs.iter().product()), values).map_err(|_| wrong())?;
    Ok((data, without_ones(runs)))
}

fn without_ones(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().copied().filter(|&n| n != 1).collect()
}

/// Points `[sample, dim]` in the file's own unit, and the sizes of what they run through, as [`samples`] has them. A third
/// component that is zero throughout is dropped.
fn read_points(path: &Path, options: &ScanOptions) -> Result<(Array2<f64>, Vec<usize>)> {
    let core = |error| Error::core(path, error);
    let array = match detect(path)? {
        Format::Cfl => {
            let array = cfl::read(path)?;
            let runs = [array.shape()[dim::PHS2], array.shape()[dim::PHS1]];
            let trajectory = cfl::trajectory_from_bart(array.view()).map_err(core)?;
            return Ok((trajectory.points().to_owned(), without_ones(&runs)));
        }
        Format::Npy => npy::read_real(path)?,
        Format::Npz => npy::read_npz_real(path, options.trajectory_name.as_deref())?,
        other => {
            return Err(Error::unsupported(path, format!("reading a trajectory from {other}"))
                .with_hint("give a BART array [3, readout, spoke] or a NumPy array [sample, dim]"));
        }
    };
    let shape = array.shape().to_vec();
    let expected = "[sample, dim] or [spoke, readout, dim], dim being 2 or 3 (x, y, z)";
    let wrong = || Error::field(path, "shape of the trajectory", expected, format_shape(&shape));
    let (&dims, runs) = shape.split_last().filter(|(dims, _)| (2..=3).contains(*dims)).ok_or_else(wrong)?;
    let points = array.as_standard_layout().into_owned();
    let mut points = points.into_shape_with_order((runs.iter().product(), dims)).map_err(|_| wrong())?;
    if dims == 3 && points.column(2).iter().all(|&kz| kz == 0.0) {
        points = points.slice(ndarray::s![.., ..2]).to_owned();
    }
    Ok((points, without_ones(runs)))
}

/// The points in cycles per field of view, and the matrix `[z, y, x]` or `[y, x]` that they are for.
fn place(
    path: &Path,
    points: Array2<f64>,
    options: &ScanOptions,
    notes: &mut Vec<String>,
) -> Result<(Trajectory, Vec<usize>)> {
    let core = |error| Error::core(path, error);
    // Refuses numbers that are not finite.
    let stated = Trajectory::from_cycles_per_fov(points).map_err(core)?;
    let dims = stated.dims();
    let (matrix, units) = match &options.matrix {
        Some(matrix) => {
            let (own, beyond) = matrix.split_at_checked(dims).unwrap_or_default();
            if own.is_empty() || beyond.iter().any(|&n| n != 1) {
                let expected = format!("{dims} numbers, as the trajectory has");
                return Err(Error::field(path, "matrix", expected, format_shape(matrix))
                    .with_hint("say it with --matrix"));
            }
            (own.to_vec(), options.units)
        }
        None => {
            let units = certain_units(path, &stated, options.units, notes)?;
            // Spokes may miss the edge by half a cycle; the margin is for what rounding to f32 adds.
            let size = |k: &f64| (2.0 * (k - 1e-3).ceil()).max(1.0) as usize;
            let matrix = stated.extent().iter().map(size).collect();
            notes.push(format!("matrix {matrix:?} (x, y, z) by the trajectory's extent"));
            (matrix, Some(units))
        }
    };
    if matrix.iter().any(|&n| n == 0 || n > MAX_MATRIX) {
        let expected = format!("1 to {MAX_MATRIX} along each axis");
        return Err(
            Error::field(path, "matrix", expected, format_shape(&matrix)).with_hint("say it with --matrix")
        );
    }
    let fov = |d: usize| options.fov_mm.as_ref().and_then(|fov| fov.get(d)).copied();
    let fov: Vec<f64> = (0..dims).map(|d| fov(d).unwrap_or(f64::NAN)).collect();
    let units = settle_units(stated.points(), &matrix, &fov, units, notes).map_err(core)?;
    let trajectory =
        Trajectory::from_units(stated.points().to_owned(), units, &matrix, &fov).map_err(core)?;
    Ok((trajectory, matrix.into_iter().rev().collect()))
}

/// The unit of a trajectory from which the matrix is to follow: cycles per field of view, where the user or the format says
/// so.
fn certain_units(
    path: &Path,
    trajectory: &Trajectory,
    stated: Option<TrajectoryUnits>,
    notes: &mut Vec<String>,
) -> Result<TrajectoryUnits> {
    let native = TrajectoryUnits::CyclesPerFov;
    match stated {
        Some(units) if units == native => Ok(native),
        Some(units) => {
            let expected = format!("a matrix, which the extent of a trajectory in {units} does not tell");
            Err(Error::field(path, "matrix", expected, "none").with_hint("say it with --matrix"))
        }
        None if detect(path)? == Format::Cfl && !may_count_voxels(trajectory.points()) => {
            notes.push(format!("trajectory units are not stated: {native}, BART's own"));
            Ok(native)
        }
        None => {
            let largest = trajectory.extent().into_iter().fold(0.0, f64::max);
            let found = format!("neither, and max |k| = {largest:.4}");
            Err(Error::field(path, "trajectory units", "the matrix or the trajectory's unit", found).with_hint(
                "with --matrix X,Y the range tells the unit; with --traj-units cycles/fov the range tells the matrix",
            ))
        }
    }
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
