use std::path::{Path, PathBuf};

use ndarray::{Array2, ArrayD, s};
use rayspin_core::{C32, Geometry, Monitor, Ranges, Trajectory, TrajectoryUnits, format_shape};
use rayspin_scan::mri::{Frame, Label, MAX_MATRIX, Scan, Summary, may_count_voxels, reach, settle_units};

use crate::arrays::{Numbers, Runs};
use crate::cfl::images::Images;
use crate::cfl::{Axes, Layout};
use crate::format::any_of;
use crate::ismrmrd::Identity;
use crate::scan_reader::ScanReader;
use crate::{
    ArraySeries, AxisOrder, Error, Format, Input, Result, axis_order, detect, endings, expect_ending, vendors,
};

/// How [`read_scan`] reads.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// The trajectory of samples that come without one.
    pub trajectory: Option<PathBuf>,
    /// Units of that trajectory; by its range when absent.
    pub units: Option<TrajectoryUnits>,
    /// Matrix x, y and, where z is to change, z. When absent it is a grid's own, or follows from the extent
    /// of a trajectory whose unit is certain.
    pub matrix: Option<Vec<usize>>,
    /// Field of view along x, y and z in mm, for a file without geometry. Voxels are 1 mm along axes that are
    /// absent.
    pub fov_mm: Option<Vec<f64>>,
    /// Only these readouts of each image along a trajectory, counted from 0.
    pub readouts: Option<Ranges>,
    /// What the axes of the array count; by the format's convention when absent.
    pub order: Option<AxisOrder>,
    /// Whether the last column of the trajectory holds density weights, which are left out.
    pub weights: bool,
}

/// What a file of raw data holds.
#[derive(Debug, Clone)]
pub enum ScanFile {
    /// A scan with its header and every acquisition.
    Scan(Box<Scan>),
    /// The samples of one image, without a header.
    Frame(Box<ArrayFrame>),
    /// The samples of several images, without a header, that are read one at a time.
    Series(Box<ArraySeries>),
}

/// The samples of one image, from arrays without a header.
#[derive(Debug, Clone)]
pub struct ArrayFrame {
    /// The samples.
    pub frame: Frame,
    /// What became of the dimensions of a BART array, for images and maps that are written as one.
    pub layout: Layout,
    /// Samples of each readout along a trajectory, where the arrays tell it.
    pub readout: Option<usize>,
    /// What was assumed, one sentence each.
    pub notes: Vec<String>,
}

impl ArrayFrame {
    /// What the arrays were understood as; sizes in the order x, y, z, or BART's for a slice across the
    /// readout.
    pub fn summary(&self) -> Summary {
        let mut summary = self.frame.summary();
        if self.layout.axes == Axes::ReadIsZ {
            summary.matrix.reverse();
        }
        summary
    }
}

/// Opens a raw scan with a header. A name after a colon chooses one of several ([`Input`]).
///
/// Errors: a format without such scans, and errors of the format's reader.
pub fn open_scan(path: impl AsRef<Path>, monitor: &Monitor<'_>) -> Result<Box<dyn ScanReader>> {
    let input = Input::of(&path);
    let format = input.format()?;
    match &format.scans {
        Some(scans) => (scans.open)(&input.file, input.name.as_deref(), monitor)
            .map_err(|error| vendors::advised(&input.file, error)),
        None => {
            let expected = format!("a raw scan with a header ({})", any_of(&endings(Format::reads_scans)));
            Err(vendors::advised(&input.file, Error::not_this_format(&input.file, expected, format)))
        }
    }
}

/// Reads raw data of any format.
///
/// * A scan with a header: ISMRMRD's, fastMRI's, or a scanner's own (Siemens, Bruker, GE).
/// * A grid of k-space: a BART array (`[READ, PHS1, PHS2, COIL]`), or `.npy` or `.npz` (`[coil, z, y, x]` or
///   `[coil, y, x]`).
/// * Samples, with a trajectory: a BART array (`[1, readout, spoke, coil]`) or a NumPy array
///   (`[coil, sample]` or `[coil, spoke, readout]`).
///
/// A BART array of several images, along TE, TIME, TIME2, SLICE or BATCH, is an [`ArraySeries`]. Its
/// trajectory has the same sizes along these, or 1 where one trajectory serves all.
///
/// A trajectory is a BART array `[3, readout, spoke]`, or a NumPy array `[sample, dim]` or `[spoke, readout,
/// dim]`, with components in the order x, y, z. A name after a colon chooses one of several scans or arrays
/// of a file ([`Input`]).
///
/// Errors: a format without raw data, real numbers in a NumPy file, a trajectory whose unit or matrix is not
/// certain, and whatever the format's reader or [`Frame`] refuses.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Monitor};
/// use rayspin_io::{ScanFile, ScanOptions, npy, read_scan};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("kspace.npy");
/// // 4 coils, 12 lines of 16 samples.
/// npy::write(&path, ArrayD::from_elem(IxDyn(&[4, 12, 16]), C32::ONE).view())?;
/// let ScanFile::Frame(array) = read_scan(&path, &ScanOptions::default(), &Monitor::silent())? else {
///     unreachable!("an array holds one image")
/// };
/// assert_eq!((array.frame.coils(), &array.frame.matrix[..]), (4, &[12, 16][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_scan(path: impl AsRef<Path>, options: &ScanOptions, monitor: &Monitor<'_>) -> Result<ScanFile> {
    let input = Input::of(&path);
    if let Some(scans) = &input.format()?.scans {
        let reader = (scans.open)(&input.file, input.name.as_deref(), monitor)
            .map_err(|error| vendors::advised(&input.file, error))?;
        return Ok(ScanFile::Scan(Box::new(reader.into_scan(monitor)?)));
    }
    read_arrays(path.as_ref(), options, Beyond::LeftOut)
}

/// What becomes of samples along a trajectory that lie beyond the matrix's own k-space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// They are not read.
    LeftOut,
    /// They are in the frame, which is to be written.
    Property,
}

/// [`read_scan`] of arrays. Errors: as [`read_scan`], and a format without arrays.
pub(crate) fn read_arrays(path: &Path, options: &ScanOptions, beyond: Beyond) -> Result<ScanFile> {
    let input = Input::of(path);
    let (path, name, format) = (&input.file, input.name.as_deref(), input.format()?);
    let Some(arrays) = &format.arrays else {
        let readable = endings(|format| format.reads_scans() || format.reads_arrays());
        let error = Error::unsupported(path, format!("reading raw data from {format}")).with_hint(format!(
            "give raw data as {}; ISMRMRD's converters make .h5 of vendors' files (ge_to_ismrmrd, philips_to_ismrmrd and the like)",
            any_of(&readable)
        ));
        return Err(vendors::advised(path, error));
    };
    let (images, reading) = match &options.order {
        Some(order) => {
            let array = (arrays.read)(path, name, Numbers::Complex)?;
            let array = order.arranged(path, array, arrays.drops_ones, options.trajectory.is_some())?;
            (Some(Images::in_memory(path, array)?), axis_order::READING)
        }
        None => (arrays.images.map(|images| images(path)).transpose()?, arrays.axes),
    };
    if let Some(images) = images.as_ref().filter(|images| images.count() > 1) {
        let series = ArraySeries::new(path, images.clone(), reading, options, beyond)?;
        return Ok(ScanFile::Series(Box::new(series)));
    }
    if let (Some(trajectory), Some(images)) = (&options.trajectory, &images) {
        images_of(trajectory)?.map_or(Ok(()), |of_points| of_points.expect_to_fit(images))?;
    }
    let array = match images.as_ref().filter(|_| options.order.is_some()) {
        Some(images) => images.read(&Label::default())?,
        None => (arrays.read)(path, name, Numbers::Complex)?,
    };
    let mut notes = Vec::new();
    let (frame, layout, readout) = match &options.trajectory {
        Some(trajectory) => {
            let (points, points_in) = read_components(trajectory, options)?;
            let (data, samples_in) = (reading.samples)(path, array, Some(points.nrows()))?;
            expect_runs(path, &samples_in, &points_in)?;
            let (trajectory, matrix) = place(trajectory, points, options, &mut notes)?;
            let readout = [samples_in, points_in].iter().find_map(|runs| readout_of(runs));
            let frame = along_trajectory(data, trajectory, &matrix, options, beyond, &mut notes);
            let frame = match &options.readouts {
                Some(readouts) => frame.and_then(|frame| frame.with_readouts(readouts)),
                None => frame,
            };
            (frame.map_err(|e| Error::core(path, e))?, Layout::default(), readout)
        }
        None => {
            let grid = (reading.grid)(path, array)?;
            notes.extend(grid.axes.map(axes_note));
            notes.extend(grid.notes);
            (on_grid(path, grid.values, options)?, grid.layout, None)
        }
    };
    notes.extend(geometry_note(options));
    Ok(ScanFile::Frame(Box::new(ArrayFrame { frame, layout, readout, notes })))
}

/// Whether a file holds a raw scan with a header, and not images or arrays alone. Errors: as [`detect`], and
/// a damaged file.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_io::{WriteOptions, holds_scan, ismrmrd, write_image, write_scan};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// # let folder = tempfile::tempdir()?;
/// let options = SimulateOptions { matrix: [16, 16, 1], ..SimulateOptions::default() };
/// let simulation = simulate(&options, &Monitor::silent())?;
/// let (raw, image) = (folder.path().join("raw.h5"), folder.path().join("image.h5"));
/// write_scan(&raw, &simulation.scan, ismrmrd::Identity::LeaveOut)?;
/// write_image(&image, &simulation.truth, &WriteOptions::default())?;
/// assert_eq!((holds_scan(&raw)?, holds_scan(&image)?), (true, false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn holds_scan(path: impl AsRef<Path>) -> Result<bool> {
    let input = Input::of(path);
    let name = input.name.as_deref();
    input.format()?.scans.as_ref().map_or(Ok(false), |scans| (scans.holds)(&input.file, name))
}

/// Writes a raw scan in the format of the name; `identity` says what becomes of the patient's name and the
/// like. Returns the paths of the header's elements that are left out.
///
/// Errors: an ending of a format without raw scans; errors of the format's writer.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_io::ismrmrd::Identity;
/// use rayspin_io::{holds_scan, write_scan};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("scan.h5");
/// let options = SimulateOptions { matrix: [16, 16, 1], coils: 2, ..SimulateOptions::default() };
/// let scan = simulate(&options, &Monitor::silent())?.scan;
/// write_scan(&path, &scan, Identity::LeaveOut)?;
/// assert!(holds_scan(&path)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_scan(path: impl AsRef<Path>, scan: &Scan, identity: Identity) -> Result<Vec<String>> {
    let path = path.as_ref();
    match expect_ending(path, Format::writes_scans)?.scans.as_ref().and_then(|scans| scans.write) {
        Some(write) => write(path, scan, identity),
        None => Ok(Vec::new()),
    }
}

/// What the axes of an array are taken as.
fn axes_note(axes: &str) -> String {
    format!("{AXES} {axes} (`--order` names others)")
}

/// How the note on axes begins.
pub const AXES: &str = "the array's axes are taken as";

/// What is assumed of the geometry.
pub(crate) fn geometry_note(options: &ScanOptions) -> Option<String> {
    options.fov_mm.is_none().then(|| {
        "the file holds no geometry: 1 mm for each place of its own matrix, at the isocentre, is assumed (`--fov` says otherwise)"
            .into()
    })
}

/// The images of a trajectory, in a format that numbers them.
pub(crate) fn images_of(trajectory: &Path) -> Result<Option<Images>> {
    let input = Input::of(trajectory);
    input
        .format()?
        .arrays
        .as_ref()
        .and_then(|arrays| arrays.images)
        .map(|images_of| images_of(&input.file))
        .transpose()
}

pub(crate) fn on_grid(path: &Path, grid: ArrayD<C32>, options: &ScanOptions) -> Result<Frame> {
    let core = |error| Error::core(path, error);
    let matrix: Vec<usize> = grid.shape().iter().skip(1).copied().collect();
    let frame = Frame::from_grid(grid, geometry(&matrix, options)).map_err(core)?;
    let Some(wanted) = &options.matrix else { return Ok(frame) };
    let matrix = matrix_of_grid(path, &frame.matrix, wanted)?;
    frame.with_matrix(&matrix).map_err(core)
}

/// The matrix `[z, y, x]` or `[y, x]` of an image of a grid. Errors: more numbers `wanted`, in the order x,
/// y, z, than it has axes.
pub(crate) fn matrix_of_grid(path: &Path, own: &[usize], wanted: &[usize]) -> Result<Vec<usize>> {
    let mut matrix = own.to_vec();
    if wanted.iter().skip(matrix.len()).any(|&n| n != 1) {
        let expected = format!("{} numbers, as the grid has axes", matrix.len());
        return Err(
            Error::field(path, "matrix", expected, format_shape(wanted)).with_hint("shorten `--matrix`")
        );
    }
    for (own, &wanted) in matrix.iter_mut().rev().zip(wanted) {
        *own = wanted;
    }
    Ok(matrix)
}

/// Samples of each readout, where samples run through `[spoke, readout]`.
fn readout_of(runs: &[usize]) -> Option<usize> {
    runs.get(1).copied()
}

/// The frame of samples and their points; what was left out goes to `notes` (once).
pub(crate) fn along_trajectory(
    data: Array2<C32>,
    trajectory: Trajectory,
    matrix: &[usize],
    options: &ScanOptions,
    beyond: Beyond,
    notes: &mut Vec<String>,
) -> rayspin_core::Result<Frame> {
    let geometry = geometry(matrix, options);
    if beyond == Beyond::Property {
        return Frame::of_all_samples(data, trajectory, matrix.to_vec(), geometry);
    }
    let mut own = Vec::new();
    let frame = Frame::from_samples(data, trajectory, matrix.to_vec(), geometry, &mut own)?;
    own.retain(|note| !notes.contains(note));
    notes.extend(own);
    Ok(frame)
}

/// Errors: neighbours in one array that are no neighbours in the other.
pub(crate) fn expect_runs(path: &Path, samples_in: &[usize], points_in: &[usize]) -> Result<()> {
    if samples_in.len() < 2 || points_in.len() < 2 || samples_in == points_in {
        return Ok(());
    }
    let expected = format!("{} (spoke, readout) as the trajectory has", format_shape(points_in));
    Err(Error::field(path, "shape of the samples", expected, format_shape(samples_in))
        .with_hint("samples and trajectory run in the same order: along each readout, spoke after spoke"))
}

/// Reads a trajectory in the file's own unit: BART `[3, readout, spoke]`, `.npy` or `.npz` `[sample, dim]` or
/// `[spoke, readout, dim]`. A name after a colon chooses the array of an archive. The points of several
/// images (BART's TE, TIME, TIME2, SLICE, BATCH) follow one another.
///
/// Errors: another format or shape, complex numbers, or numbers that are not finite.
///
/// ```
/// use rayspin_io::{npy, read_trajectory};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("spokes.npy");
/// // [spoke, readout, dim], in cycles per field of view.
/// let spokes = ndarray::Array3::from_shape_fn((3, 64, 2), |(_, i, d)| if d == 0 { i as f64 - 32.0 } else { 0.0 });
/// npy::write(&path, spokes.view())?;
/// let points = read_trajectory(&path)?;
/// assert_eq!((points.samples(), points.dims()), (192, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_trajectory(path: impl AsRef<Path>) -> Result<Trajectory> {
    let path = path.as_ref();
    let (points, _) = read_points(path, Numbers::Real)?;
    Trajectory::from_cycles_per_fov(points).map_err(|error| Error::core(path, error))
}

fn read_points(path: &Path, numbers: Numbers) -> Result<Runs<f64>> {
    let input = Input::of(path);
    let (path, format) = (&input.file, input.format()?);
    let Some(arrays) = &format.arrays else {
        let readable = endings(Format::reads_arrays);
        return Err(Error::unsupported(path, format!("reading a trajectory from {format}")).with_hint(
            format!("give points [sample, dim] or BART's [3, readout, spoke], as {}", any_of(&readable)),
        ));
    };
    (arrays.points)(path, input.name.as_deref(), numbers)
}

/// [`read_points`] without density weights. Errors: more than three components; no column that may hold
/// weights.
pub(crate) fn read_components(path: &Path, options: &ScanOptions) -> Result<Runs<f64>> {
    let (mut points, runs) = read_points(path, Numbers::Any)?;
    let columns = points.ncols();
    let wrong = |expected: &str| Error::field(path, "columns of the trajectory", expected, columns);
    match (options.weights, columns) {
        (false, 4..) => {
            return Err(wrong("2 or 3 (x, y, z)")
                .with_hint("`--traj-weights` leaves out a column of density weights"));
        }
        (false, _) => {}
        (true, 3 | 4) => {
            points = points.slice_move(s![.., ..columns - 1]);
            if columns == 4 && points.column(2).iter().all(|&kz| kz == 0.0) {
                points = points.slice_move(s![.., ..2]);
            }
        }
        (true, _) => return Err(wrong("3 or 4, the last one of density weights")),
    }
    Ok((points.as_standard_layout().into_owned(), runs))
}

/// The points in cycles per field of view, and the matrix `[z, y, x]` or `[y, x]` that they are for.
pub(crate) fn place(
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
                let hint = match (dims, matrix.len()) {
                    (3, 2) => {
                        "say it with `--matrix`; `--traj-weights` leaves out a third column of density weights"
                    }
                    _ => "say it with `--matrix`",
                };
                return Err(Error::field(path, "matrix", expected, format_shape(matrix)).with_hint(hint));
            }
            (own.to_vec(), options.units)
        }
        None => {
            let units = certain_units(path, &stated, options.units, notes)?;
            // Spokes may miss the edge by half a cycle; the margin is for what rounding to f32 adds.
            let size = |k: &f64| (2.0 * (k - 1e-3).ceil()).max(1.0) as usize;
            let matrix = reach(&stated).iter().map(size).collect();
            notes.push(format!("matrix {matrix:?} (x, y, z) by the trajectory's extent"));
            (matrix, Some(units))
        }
    };
    if matrix.iter().any(|&n| n == 0 || n > MAX_MATRIX) {
        let expected = format!("1 to {MAX_MATRIX} along each axis");
        return Err(
            Error::field(path, "matrix", expected, format_shape(&matrix)).with_hint("say it with `--matrix`")
        );
    }
    let fov = |d: usize| options.fov_mm.as_ref().and_then(|fov| fov.get(d)).copied();
    let fov: Vec<f64> = (0..dims).map(|d| fov(d).unwrap_or(f64::NAN)).collect();
    let units = settle_units(stated.points(), &matrix, &fov, units, notes).map_err(core)?;
    let trajectory =
        Trajectory::from_units(stated.points().to_owned(), units, &matrix, &fov).map_err(core)?;
    Ok((trajectory, matrix.into_iter().rev().collect()))
}

/// The unit of a trajectory from which the matrix is to follow: cycles per field of view, where the user or
/// the format says so.
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
            Err(Error::field(path, "matrix", expected, "none").with_hint("say it with `--matrix`"))
        }
        None => {
            let whose = detect(path)?.arrays.as_ref().and_then(|arrays| arrays.cycles_per_fov);
            if let Some(whose) = whose.filter(|_| !may_count_voxels(trajectory.points())) {
                notes.push(format!("trajectory units are not stated: {native}, {whose}'s own"));
                return Ok(native);
            }
            let largest = trajectory.extent().into_iter().fold(0.0, f64::max);
            let found = format!("neither, and max |k| = {largest:.4}");
            Err(Error::field(path, "trajectory units", "the matrix or the trajectory's unit", found).with_hint(
                "with `--matrix X,Y` the range tells the unit; with `--traj-units cycles/fov` the range tells the matrix",
            ))
        }
    }
}

/// `matrix` is `[z, y, x]` or `[y, x]`.
pub(crate) fn geometry(matrix: &[usize], options: &ScanOptions) -> Geometry {
    let mut geometry = Geometry::default();
    if let Some(fov) = &options.fov_mm {
        for (axis, (&n, fov)) in matrix.iter().rev().zip(fov).enumerate().take(3) {
            geometry.spacing_mm[axis] = fov / n.max(1) as f64;
        }
    }
    geometry
}
