//! From a file to line integrals and their rays.

use anyhow::{Context as _, Result};
use ndarray::{Array3, ArrayD, Axis};
use rayspin::core::{Orbit, ProjectionGeometry, Ranges};
use rayspin::ct::geometry::from_rtk;
use rayspin::ct::recon::even_angles;
use rayspin::ct::scan::{Counts, Measured, Scan, find_axis};
use rayspin::device::Device;
use rayspin::io::npy::NpyStream;
use rayspin::io::{self, Format, Projections};
use rayspin_shell::BadInput;

use super::{flat, pixel};
use crate::args::ct::{AxisArg, FieldArg, ReconCt};

/// Line integrals, all of them or as they arrive.
pub(super) enum Source {
    Whole(Array3<f32>),
    Arriving(Passes),
}

/// Views that are read from the first on, once or as often as they are needed.
pub(super) struct Passes {
    args: ReconCt,
    kind: Kind,
    opened: Option<Projections>,
}

impl Passes {
    /// Whether they can be read again: a pipe's cannot.
    pub(super) fn repeat(&self) -> bool {
        self.args.scan.is_file()
    }

    /// The views from the first on. Errors: those of a pipe, again.
    pub(super) fn start(&mut self) -> Result<Projections> {
        match self.opened.take() {
            Some(views) => Ok(views),
            None => open(&self.args, self.kind),
        }
    }
}

/// Line integrals and their rays.
pub(super) struct Lines {
    pub(super) values: Source,
    pub(super) geometry: ProjectionGeometry,
    /// The column on which the axis falls, where an option says it or it was found.
    pub(super) axis: Option<f64>,
    /// What was assumed, for people.
    pub(super) notes: Vec<String>,
    /// Bytes that reading and preparing took at most.
    pub(super) bytes: u64,
}

/// What a scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// An array of line integrals; else a file with a header.
    array: bool,
    /// Whether its views are taken one after another.
    stream: bool,
}

impl Kind {
    /// Whether the options must say what the angles are.
    pub(super) fn is_array(self) -> bool {
        self.array
    }

    /// Whether its views are taken one after another.
    pub(super) fn is_stream(self) -> bool {
        self.stream
    }
}

/// Errors: a file of another kind.
pub(super) fn kind(args: &ReconCt) -> Result<Kind> {
    let stream = args.stream || args.scan.as_os_str() == "-";
    if stream && !args.scan.is_file() {
        return Ok(Kind { array: true, stream });
    }
    if Projections::are_in(&args.scan) {
        return Ok(Kind { array: false, stream });
    }
    let format = io::detect(&args.scan)?;
    let is_array =
        |format: &Format| (format.reads_arrays() || format.reads_images()) && !format.reads_scans();
    if is_array(format) {
        return Ok(Kind { array: true, stream });
    }
    let arrays = io::endings(is_array).join(", ");
    let message = format!(
        "{}: expected a CT scan (Data Exchange HDF5 with exchange/data) or an array ({arrays}), found {format}",
        args.scan.display()
    );
    Err(BadInput::new(message)
        .hint("rayspin info FILE says what the file is; rayspin recon mri takes ISMRMRD")
        .into())
}

/// Reads a scan, and says whether it states its rays. Rays are those of the file, or those that the options say.
///
/// Errors: a file that cannot be read; rays that neither the file nor the options state; views or rows that the scan lacks.
pub(super) fn read(args: &ReconCt, kind: Kind, device: &Device) -> Result<(Lines, bool)> {
    let mut notes = Vec::new();
    if kind.stream {
        return open_stream(args, kind);
    }
    let projections = open(args, kind)?;
    notes.extend(projections.notes());
    let scan = projections.into_scan(device.cpu_side())?;
    let fail = || args.scan.display().to_string();
    let scan = part(scan, args).with_context(fail)?;
    let (shape, rays) = (scan.shape(), scan.geometry.is_some());
    let (angles, stated) = (scan.angles.clone(), scan.geometry.clone());
    let count = shape.iter().product::<usize>() as u64;
    let bytes = match &scan.measured {
        // HDF5 reads a copy; means of flat and dark fields are in double precision.
        Measured::Counts(Counts { flats, darks, .. }) => {
            8 * count + 4 * (flats.len() + darks.len()) as u64 + 32 * (shape[1] * shape[2]) as u64
        }
        Measured::Lines(_) => 12 * count,
    };
    let values = scan.into_lines(device.cpu_side(), &mut notes).with_context(fail)?;
    let axis = match args.axis {
        Some(AxisArg::Find) if args.source_to_axis.is_some() => return Err(no_axis("a fan or cone beam")),
        Some(AxisArg::Find) => {
            let column = find_axis(device, values.view(), &angles).with_context(fail)?;
            notes.push(format!(
                "the axis falls on column {column:.2}, about which views are mirror images of others"
            ));
            Some(column)
        }
        Some(AxisArg::Column(column)) => Some(column),
        None => None,
    };
    let mut geometry = match (stated, &args.rtk) {
        (_, Some(_)) => rtk(args, shape)?,
        (Some(geometry), None) => geometry,
        (None, None) => orbit(args, shape, &angles, axis, &mut notes)?,
    };
    if let Some(rows) = &args.row {
        geometry = rows_of(&geometry, rows)?;
    }
    let values = match &args.row {
        Some(rows) => values.select(Axis(1), &rows.below(shape[1]).collect::<Vec<_>>()),
        None => values,
    };
    Ok((Lines { values: Source::Whole(values), geometry, axis, notes, bytes }, rays))
}

/// The header of a scan whose views arrive one after another, and its rays or those that the options say.
fn open_stream(args: &ReconCt, kind: Kind) -> Result<(Lines, bool)> {
    let views = open(args, kind)?;
    let shape = views.shape();
    let mut notes = Vec::new();
    let fail = || args.scan.display().to_string();
    rayspin::core::voxels(&shape).with_context(fail)?;
    if shape.contains(&0) {
        let message = format!("{}: expected at least one view, row and column, found {shape:?}", fail());
        return Err(BadInput::new(message).into());
    }
    let axis = match args.axis {
        Some(AxisArg::Find) => return Err(no_axis("views that arrive")),
        Some(AxisArg::Column(column)) => Some(column),
        None => None,
    };
    let (stated, angles) = (views.geometry().cloned(), views.angles().to_vec());
    let rays = stated.is_some();
    let geometry = match (stated, &args.rtk) {
        (_, Some(_)) => rtk(args, shape)?,
        (Some(geometry), None) => geometry,
        (None, None) => orbit(args, shape, &angles, axis, &mut notes)?,
    };
    let passes = Passes { args: args.clone(), kind, opened: Some(views) };
    Ok((Lines { values: Source::Arriving(passes), geometry, axis, notes, bytes: 0 }, rays))
}

fn no_axis(found: &str) -> anyhow::Error {
    BadInput::new(format!("--axis find: expected parallel views that are read as a whole, found {found}"))
        .hint("--axis COLUMN says where the axis falls")
        .into()
}

/// The angle over which the views of an array are spread.
fn arc(args: &ReconCt) -> Result<f64> {
    args.arc.or(args.rtk.as_ref().map(|_| 360.0)).ok_or_else(|| {
        let shown = args.scan.display();
        BadInput::new(format!("{shown}: expected the angle over which views are spread, found none"))
            .hint("--arc 180 of parallel rays, --arc 360 of most others; --rtk reads a geometry file")
            .into()
    })
}

/// Opens a scan, or an array with angles spread evenly.
///
/// Errors: a file that cannot be read; fields of another size.
fn open(args: &ReconCt, kind: Kind) -> Result<Projections> {
    let even = |views: usize| -> Result<Vec<f64>> { Ok(even_angles(views, arc(args)?.to_radians())) };
    let projections = match kind {
        Kind { array: false, .. } => Projections::open(&args.scan)?,
        Kind { stream: true, .. } => {
            let stream = NpyStream::open(&args.scan)?;
            let angles = even(stream.shape().first().copied().unwrap_or(0))?;
            Projections::of_stream(&args.scan, stream, angles)?
        }
        Kind { .. } => {
            let array = read_array(args)?;
            let angles = even(array.shape()[0])?;
            Projections::of_array(&args.scan, array, angles)?
        }
    };
    with_fields(projections, args)
}

/// The numbers of an array; of an image its slices are views, and one slice is a sinogram.
fn read_array(args: &ReconCt) -> Result<ArrayD<f32>> {
    let format = io::detect(&args.scan)?;
    if !format.reads_arrays() {
        let image = io::read_volume(&args.scan)?.image.into_data();
        return Ok(if image.shape()[0] == 1 { image.index_axis_move(Axis(0), 0) } else { image });
    }
    let array = io::read_array(&args.scan, "line integrals")?;
    let shown = args.scan.display();
    if let Some(value) = array.iter().find(|value| value.im != 0.0) {
        let message = format!("{shown}: expected real line integrals, found the complex number {value}");
        return Err(BadInput::new(message).into());
    }
    Ok(array.mapv(|value| value.re))
}

/// Projections with the flat and dark fields that the options say.
fn with_fields(projections: Projections, args: &ReconCt) -> Result<Projections> {
    let [_, rows, columns] = projections.shape();
    let field = |field: &FieldArg, option: &str| -> Result<Array3<f32>> {
        let path = match field {
            FieldArg::Number(value) => return Ok(Array3::from_elem((1, rows, columns), *value)),
            FieldArg::File(path) => path,
        };
        let image = io::read_volume(path)?.image.into_data();
        let shape = image.shape().to_vec();
        let wrong = || {
            let size = format!("{rows} x {columns} pixels, as the projections have");
            BadInput::new(format!("{option}: {}: expected {size}, found {shape:?}", path.display()))
        };
        // Frames of one row come as [frame, column].
        let image = match shape[..] {
            [1, frames, width] if rows == 1 && width == columns => {
                image.into_shape_with_order([frames, 1, width])
            }
            [frames, height, width] if [height, width] == [rows, columns] => {
                image.into_shape_with_order([frames, height, width])
            }
            _ => return Err(wrong().into()),
        };
        image.map_err(|_| wrong().into())
    };
    let Some(flat) = &args.flat else {
        return match &args.dark {
            Some(_) => Err(BadInput::new("--dark: expected --flat beside it, found none").into()),
            None => Ok(projections),
        };
    };
    let dark = args.dark.as_ref().map(|dark| field(dark, "--dark")).transpose()?;
    let dark = dark.unwrap_or_else(|| Array3::zeros((0, rows, columns)));
    Ok(projections.with_fields(field(flat, "--flat")?, dark))
}

/// The scan of the views that `--view` names.
fn part(scan: Scan, args: &ReconCt) -> Result<Scan> {
    let Some(wanted) = &args.view else { return Ok(scan) };
    let views = scan.shape()[0];
    wanted.expect_among("view", &Vec::from_iter(0..views))?;
    let kept: Vec<usize> = wanted.below(views).collect();
    let measured = match scan.measured {
        Measured::Lines(lines) => Measured::Lines(lines.select(Axis(0), &kept)),
        Measured::Counts(counts) => {
            Measured::Counts(Counts { views: counts.views.select(Axis(0), &kept), ..counts })
        }
    };
    let angles = kept.iter().map(|&view| scan.angles[view]).collect();
    let geometry = scan.geometry.map(|geometry| geometry.select(kept.iter().copied())).transpose()?;
    Ok(Scan::new(measured, angles, geometry)?)
}

/// The rays of neighbouring rows.
fn rows_of(geometry: &ProjectionGeometry, wanted: &Ranges) -> Result<ProjectionGeometry> {
    let mut detector = *geometry.detector();
    wanted.expect_among("row", &Vec::from_iter(0..detector.rows))?;
    let kept: Vec<usize> = wanted.below(detector.rows).collect();
    if kept.windows(2).any(|pair| pair[1] != pair[0] + 1) {
        return Err(BadInput::new(format!("--row: expected rows side by side, found {wanted}")).into());
    }
    let middle = kept[0] as f64 + 0.5 * (kept.len() - 1) as f64;
    let shift = (middle - 0.5 * (detector.rows - 1) as f64) * detector.pitch_mm[1];
    detector.rows = kept.len();
    let moved = geometry.views().iter().map(|view| rayspin::core::View {
        detector_mm: std::array::from_fn(|axis| view.detector_mm[axis] + shift * view.v[axis]),
        ..*view
    });
    Ok(ProjectionGeometry::new(detector, moved.collect())?)
}

/// The rays of a geometry file of RTK.
fn rtk(args: &ReconCt, [views, rows, columns]: [usize; 3]) -> Result<ProjectionGeometry> {
    let path = args.rtk.as_deref().unwrap_or(std::path::Path::new(""));
    let file = io::rtk::read(path)?;
    let projections: Vec<_> = match &args.view {
        Some(wanted) => wanted.below(file.projections.len()).map(|view| file.projections[view]).collect(),
        None => file.projections,
    };
    if projections.len() != views {
        let message = format!(
            "{}: expected {views} projections, one a view, found {}",
            path.display(),
            projections.len()
        );
        return Err(BadInput::new(message).into());
    }
    let pitch = args.pixel.as_deref().map_or(Ok([1.0; 2]), pixel)?;
    let detector = rayspin::core::Detector { radius_mm: file.radius_mm, ..flat(rows, columns, pitch) };
    from_rtk(&projections, detector, [0.0; 2]).with_context(|| path.display().to_string())
}

/// The rays that the options say: an orbit with the scan's angles, and the axis on this column or the middle one.
fn orbit(
    args: &ReconCt,
    [_, rows, columns]: [usize; 3],
    angles: &[f64],
    axis: Option<f64>,
    notes: &mut Vec<String>,
) -> Result<ProjectionGeometry> {
    let pitch = args.pixel.as_deref().map_or(Ok([1.0; 2]), pixel)?;
    let middle = 0.5 * (columns - 1) as f64;
    let axis = axis.unwrap_or(middle);
    if !(axis.is_finite() && axis >= 0.0 && axis <= (columns - 1) as f64) {
        let message = format!("--axis: expected a column from 0 to {}, found {axis}", columns - 1);
        return Err(BadInput::new(message).into());
    }
    let beam = if args.source_to_axis.is_some() { "a fan or cone beam" } else { "parallel rays" };
    notes.push(format!(
        "the file states no rays: {beam}, pixels of {} mm and the axis at column {} are taken",
        pitch[0],
        (axis * 100.0).round() / 100.0
    ));
    let orbit = Orbit {
        angles: angles.to_vec(),
        source_to_axis_mm: args.source_to_axis,
        axis_to_detector_mm: args.axis_to_detector.unwrap_or(0.0),
        offset_mm: [(middle - axis) * pitch[0], 0.0],
        ..Orbit::default()
    };
    Ok(ProjectionGeometry::orbit(flat(rows, columns, pitch), &orbit)?)
}
