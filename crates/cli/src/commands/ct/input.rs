//! From a file to line integrals and their rays.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use ndarray::{Array3, Axis, Ix2, Ix3};
use rayspin::core::{Orbit, ProjectionGeometry, Ranges};
use rayspin::ct::geometry::from_rtk;
use rayspin::ct::recon::even_angles;
use rayspin::ct::scan::{Counts, Measured, Scan, find_axis};
use rayspin::device::{Cpu, Device};
use rayspin::io::npy::NpyStream;
use rayspin::io::{self, Format, Projections};
use rayspin_shell::BadInput;

use super::{flat, pixel};
use crate::args::ct::{AxisArg, ReconCt};

/// Line integrals, all of them or as they arrive.
pub(super) enum Source {
    Whole(Array3<f32>),
    Arriving(Passes),
}

/// Views, one after another.
pub(super) enum Views {
    Array(NpyStream),
    Scan(Box<Projections>),
}

impl Views {
    fn open(path: &Path, kind: Kind) -> Result<Self> {
        Ok(match kind.is_array() {
            true => Self::Array(NpyStream::open(path)?),
            false => Self::Scan(Box::new(Projections::open(path)?)),
        })
    }

    /// Line integrals of the next `views` views of `pixels` pixels, or of as many as are left.
    pub(super) fn read(&mut self, views: usize, pixels: usize, cpu: &Cpu) -> io::Result<Vec<f32>> {
        match self {
            Self::Array(stream) => stream.read(views * pixels),
            Self::Scan(scan) => scan.lines(views, cpu),
        }
    }

    /// What was assumed and mended, for people.
    pub(super) fn notes(&self) -> Vec<String> {
        match self {
            Self::Array(_) => Vec::new(),
            Self::Scan(scan) => scan.notes(),
        }
    }
}

/// Views that are read from the first on, once or as often as they are needed.
pub(super) struct Passes {
    path: PathBuf,
    kind: Kind,
    opened: Option<Views>,
}

impl Passes {
    /// Whether they can be read again: a pipe's cannot.
    pub(super) fn repeat(&self) -> bool {
        self.path.is_file()
    }

    /// The views from the first on. Errors: those of a pipe, again.
    pub(super) fn start(&mut self) -> Result<Views> {
        match self.opened.take() {
            Some(views) => Ok(views),
            None => Views::open(&self.path, self.kind),
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
    if format.reads_arrays() && !format.reads_scans() {
        return Ok(Kind { array: true, stream });
    }
    let arrays = io::endings(|format: &Format| format.reads_arrays() && !format.reads_scans()).join(", ");
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
    let scan = match kind.array {
        true => read_array(args)?,
        false => {
            let projections = Projections::open(&args.scan)?;
            notes.extend(projections.notes());
            projections.into_scan(device.cpu_side())?
        }
    };
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
    let views = Views::open(&args.scan, kind)?;
    let shape = match &views {
        Views::Scan(scan) => scan.shape(),
        Views::Array(stream) => match *stream.shape() {
            [views, columns] => [views, 1, columns],
            [views, rows, columns] => [views, rows, columns],
            ref other => return Err(another_shape(args, other)),
        },
    };
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
    let (stated, angles) = match &views {
        Views::Scan(scan) => (scan.geometry().cloned(), scan.angles().to_vec()),
        Views::Array(_) => (None, even_angles(shape[0], arc(args)?.to_radians())),
    };
    let rays = stated.is_some();
    let geometry = match (stated, &args.rtk) {
        (_, Some(_)) => rtk(args, shape)?,
        (Some(geometry), None) => geometry,
        (None, None) => orbit(args, shape, &angles, axis, &mut notes)?,
    };
    let passes = Passes { path: args.scan.clone(), kind, opened: Some(views) };
    Ok((Lines { values: Source::Arriving(passes), geometry, axis, notes, bytes: 0 }, rays))
}

fn another_shape(args: &ReconCt, shape: &[usize]) -> anyhow::Error {
    let shown = args.scan.display();
    BadInput::new(format!(
        "{shown}: expected an array [view, row, column] or [view, column], found {shape:?}"
    ))
    .into()
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

/// Line integrals `[view, row, column]` or `[view, column]`, with angles spread evenly.
fn read_array(args: &ReconCt) -> Result<Scan> {
    let array = io::read_array(&args.scan, "line integrals")?;
    let shown = args.scan.display();
    if let Some(value) = array.iter().find(|value| value.im != 0.0) {
        let message = format!("{shown}: expected real line integrals, found the complex number {value}");
        return Err(BadInput::new(message).into());
    }
    let real = array.mapv(|value| value.re);
    let shape = real.shape().to_vec();
    let lines = match shape.len() {
        2 => real.into_dimensionality::<Ix2>().map(|plane| plane.insert_axis(Axis(1))),
        _ => real.into_dimensionality::<Ix3>(),
    };
    let lines = lines.map_err(|_| another_shape(args, &shape))?;
    let arc = arc(args)?;
    let angles = even_angles(lines.dim().0, arc.to_radians());
    Scan::new(Measured::Lines(lines), angles, None).with_context(|| shown.to_string())
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
