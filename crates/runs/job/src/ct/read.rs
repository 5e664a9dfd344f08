//! From a file to line integrals and their rays.

use std::path::Path;
use std::sync::Arc;

use ndarray::{Array3, ArrayD, Axis};
use rayspin_core::{Detector, Error, ProjectionGeometry};
use rayspin_ct::geometry::from_rtk;
use rayspin_ct::recon::{AxisOn, Prepared, axis_note, even_angles, prepare, with_axis};
use rayspin_ct::scan::{Counts, Measured, Part, Scan};
use rayspin_device::Device;
use rayspin_device::cpu::expect_memory;
use rayspin_io::npy::NpyStream;
use rayspin_io::{self as io, Format, Projections};
use rayspin_run::BadInput;

use super::request::{Field, Input, Request};
use crate::Result;

/// Line integrals, all of them or as they arrive.
pub(super) enum Source {
    Whole(Array3<f32>),
    Arriving(Passes),
}

/// Views that are read from the first on, once or as often as they are needed.
pub(super) struct Passes {
    request: Arc<Request>,
    kind: Kind,
    opened: Option<Box<Projections>>,
}

impl Passes {
    /// Whether they can be read again: a pipe's cannot.
    pub(super) fn repeat(&self) -> bool {
        self.request.input.file().is_some_and(Path::is_file)
    }

    /// The views from the first on. Errors: a pipe that was read before; a file that cannot be read.
    pub(super) fn start(&mut self) -> Result<Projections> {
        match self.opened.take() {
            Some(views) => Ok(*views),
            None => open(&self.request, self.kind).map(|(views, _)| views),
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
    /// The distance between pixels, where the file or an option states it.
    pub(super) pixel_mm: Option<[f64; 2]>,
    /// What the file states.
    pub(super) stated: Stated,
}

/// What a file states, which options may not say again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stated {
    pub(super) rays: bool,
    pub(super) angles: bool,
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
    /// Whether the options must state the angles.
    pub(super) fn is_array(self) -> bool {
        self.array
    }

    /// Whether its views are taken one after another.
    pub(super) fn is_stream(self) -> bool {
        self.stream
    }
}

/// Errors: a file of another kind.
pub(super) fn kind(request: &Request) -> Result<Kind> {
    let Input::File(scan) = &request.input else { return Ok(Kind { array: false, stream: false }) };
    let stream = request.stream || scan.as_os_str() == "-";
    if stream && !scan.is_file() {
        return Ok(Kind { array: true, stream });
    }
    if Projections::are_in(scan)? {
        return Ok(Kind { array: false, stream });
    }
    let format = io::detect(scan)?;
    let is_array =
        |format: &Format| (format.reads_arrays() || format.reads_images()) && !format.reads_scans();
    if is_array(format) {
        return Ok(Kind { array: true, stream });
    }
    let arrays = io::endings(is_array).join(", ");
    let message = format!(
        "{}: expected a CT scan (Data Exchange HDF5 with exchange/data) or an array ({arrays}), found {format}",
        scan.display()
    );
    Err(BadInput::new(message)
        .hint("`rayspin info FILE` says what the file is; `rayspin recon mri` takes ISMRMRD")
        .into())
}

/// Reads a scan. The file states the rays, or the options do.
///
/// Errors: a file that cannot be read; rays that neither the file nor the options state; views, rows or
/// columns that the scan lacks; corrections that it does not take.
pub(super) fn read(request: &Arc<Request>, kind: Kind, device: &Device) -> Result<Lines> {
    let mut notes = Vec::new();
    if kind.stream {
        return open_stream(request, kind);
    }
    let of_scan = |error| request.input.error(of_option(error));
    let (scan, middle, angles, own) = match &request.input {
        Input::File(_) => {
            let (projections, angles) = open(request, kind)?;
            let middle = projections.middle_mm();
            notes.extend(projections.notes());
            (projections.into_scan(device.cpu_side())?, middle, angles, true)
        }
        Input::Scan(scan) => ((**scan).clone(), None, true, false),
    };
    let mut options = request.rays.clone();
    if options.axis == Some(AxisOn::Found) && options.source_to_axis_mm.is_some() {
        return Err(no_axis("a fan or cone beam"));
    }
    let (bytes, whole) = (bytes_of(&scan), scan.shape());
    let stated = Stated { rays: scan.geometry.is_some(), angles };
    let part = Part::of(whole, request.view.as_ref(), request.row.as_ref(), request.column.as_ref());
    let part = part.map_err(of_option)?;
    let scan = part.scan(scan).map_err(|error| request.input.error(error))?;
    let pixel_mm =
        scan.geometry.as_ref().map(|rays| rays.detector().pitch_mm).or_else(|| options.pitch_mm(scan.pixel));
    // The corrections' own, beside what is left of the scan.
    let threads = device.cpu_side().threads();
    let bytes = bytes.max(bytes_of(&scan) / 2 + request.corrections.bytes(scan.shape(), threads));
    let [views, rows, columns] = [scan.shape()[0], whole[1], whole[2]];
    if request.rtk.is_some() {
        notes.push(format!("{} are taken", options.pitch_note(scan.pixel)));
        let pitch_mm = options.pitch_mm(scan.pixel);
        options.rays = Some(rtk(request, [views, rows, columns], pitch_mm, middle, &mut notes)?);
    }
    let made = prepare(device, scan, &part, &request.corrections, &options, &mut notes);
    let Prepared { lines, geometry, axis } = made.map_err(of_scan)?;
    // The owner of a scan in memory holds its samples already. Line integrals are made of a copy, which is
    // counted.
    let owners = 4 * whole.iter().product::<usize>() as u64;
    let bytes = if own { bytes } else { bytes.saturating_sub(owners) };
    Ok(Lines { values: Source::Whole(lines), geometry, axis, notes, bytes, pixel_mm, stated })
}

/// The error of the library with the name of the option whose value is wrong.
fn of_option(error: Error) -> Error {
    match error {
        Error::Value { what, expected, found } if ["axis", "row", "column"].contains(&&what[..]) => {
            Error::Value { what: format!("`--{what}`"), expected, found }
        }
        other => other,
    }
}

/// Bytes that a scan took while it was read and made into line integrals.
fn bytes_of(scan: &Scan) -> u64 {
    let shape = scan.shape();
    let count = shape.iter().product::<usize>() as u64;
    match &scan.measured {
        // HDF5 reads a copy; means of flat and dark fields are in double precision.
        Measured::Counts(Counts { flats, darks, .. }) => {
            8 * count + 4 * (flats.len() + darks.len()) as u64 + 32 * (shape[1] * shape[2]) as u64
        }
        Measured::Lines(_) => 12 * count,
    }
}

/// The header of a scan whose views arrive one after another, and its rays or those that the options say.
fn open_stream(request: &Arc<Request>, kind: Kind) -> Result<Lines> {
    let (views, has_angles) = open(request, kind)?;
    views.expect_complete()?;
    let shape = views.shape();
    request.corrections.check_arriving(shape[1])?;
    let mut notes = Vec::new();
    rayspin_core::voxels(&shape).map_err(|error| request.input.error(error))?;
    if shape.contains(&0) {
        let name = request.input.name();
        let message = format!("{name}: expected at least one view, row and column, found {shape:?}");
        return Err(BadInput::new(message).into());
    }
    let axis = match request.rays.axis {
        Some(AxisOn::Found) => return Err(no_axis("views that arrive")),
        Some(AxisOn::Column(column)) => Some(column),
        None => None,
    };
    let (own, angles, pixel) = (views.geometry().cloned(), views.angles().to_vec(), views.pixel());
    let options = &request.rays;
    let stated = Stated { rays: own.is_some(), angles: has_angles };
    let pitch_mm = options.pitch_mm(pixel);
    let own = match &request.rtk {
        Some(_) => {
            notes.push(format!("{} are taken", options.pitch_note(pixel)));
            Some(rtk(request, shape, pitch_mm, views.middle_mm(), &mut notes)?)
        }
        None => own,
    };
    let geometry = match (own, axis) {
        (Some(geometry), None) => geometry,
        (Some(geometry), Some(column)) => {
            let (moved, before) = with_axis(&geometry, column).map_err(of_option)?;
            notes.push(axis_note(column, before));
            moved
        }
        (None, _) => {
            if axis.is_none() && views.frames().is_some() && options.source_to_axis_mm.is_none() {
                notes.push(
                    "views that arrive do not show the axis before the last one: it is searched for in a file without `--stream`, and `--axis COLUMN` states it"
                        .into(),
                );
            }
            options.orbit([shape[1], shape[2]], &angles, axis, pixel, &mut notes).map_err(of_option)?
        }
    };
    let pixel_mm = views.geometry().map(|rays| rays.detector().pitch_mm).or(pitch_mm);
    let passes = Passes { request: request.clone(), kind, opened: Some(Box::new(views)) };
    Ok(Lines { values: Source::Arriving(passes), geometry, axis, notes, bytes: 0, pixel_mm, stated })
}

fn no_axis(found: &str) -> crate::Error {
    BadInput::new(format!("`--axis find`: expected parallel views that are read as a whole, found {found}"))
        .hint("`--axis COLUMN` says where the axis falls")
        .into()
}

/// The angle over which the views of an array are spread, rad.
fn arc(request: &Request) -> Result<f64> {
    let full = request.rtk.as_ref().map(|_| 360f64.to_radians());
    request.arc.or(full).ok_or_else(|| {
        let name = request.input.name();
        BadInput::new(format!("{name}: expected the angle over which views are spread, found none"))
            .hint("`--arc 180` of parallel rays, `--arc 360` of most others; `--rtk` reads a geometry file")
            .into()
    })
}

/// Opens a scan, and says whether it states its angles; other scans have evenly spread angles.
///
/// Errors: a file that cannot be read; fields of another size.
fn open(request: &Request, kind: Kind) -> Result<(Projections, bool)> {
    let path = request.input.file().unwrap_or_else(|| Path::new(""));
    let even = |views: usize| -> Result<Vec<f64>> {
        // A header may state any number of them, and a stream tells later that they are not there.
        expect_memory("angles", (views as u64).saturating_mul(size_of::<f64>() as u64))?;
        Ok(even_angles(views, arc(request)?))
    };
    let projections = match kind {
        Kind { array: false, .. } => {
            let scan = Projections::open(path)?;
            let angles = scan.states_angles();
            let scan = match angles || (request.arc.is_none() && request.rtk.is_none()) {
                true => scan,
                false => {
                    let views = scan.shape()[0];
                    scan.with_angles(even(views)?)?
                }
            };
            return Ok((with_fields(scan, request)?, angles));
        }
        Kind { stream: true, .. } => {
            let stream = NpyStream::open(path)?;
            let angles = even(stream.shape().first().copied().unwrap_or(0))?;
            Projections::of_stream(path, stream, angles)?
        }
        Kind { .. } => {
            let views = io::read_views(path)?;
            let angles = even(views.values.shape()[0])?;
            Projections::of_array(path, views, angles)?
        }
    };
    Ok((with_fields(projections, request)?, false))
}

/// An image with three axes, where it has fewer.
fn as_volume(image: &ArrayD<f32>) -> ArrayD<f32> {
    let mut image = image.clone();
    while image.ndim() < 3 {
        image.insert_axis_inplace(Axis(0));
    }
    image
}

/// Projections with the flat and dark fields that the options say, in place of the file's.
fn with_fields(projections: Projections, request: &Request) -> Result<Projections> {
    let [_, rows, columns] = projections.shape();
    let field = |field: &Field, option: &str| -> Result<Array3<f32>> {
        let (image, name) = match field {
            Field::Number(value) => return Ok(Array3::from_elem((1, rows, columns), *value)),
            Field::File(path) => {
                (io::read_volume(path)?.image.into_data(), format!("{option}: {}", path.display()))
            }
            Field::Image(image) => (as_volume(image), option.to_owned()),
        };
        let shape = image.shape().to_vec();
        let wrong = || {
            let size = format!("{rows} x {columns} pixels, as the projections have");
            BadInput::new(format!("{name}: expected {size}, found {shape:?}"))
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
    let Some(flat) = &request.flat else { return Ok(projections) };
    let dark = request.dark.as_ref().map(|dark| field(dark, "`--dark`")).transpose()?;
    Ok(projections.with_fields(field(flat, "`--flat`")?, dark))
}

/// The rays of a geometry file of RTK. Pixels are `pitch_mm` apart, and the middle of the detector is at
/// `middle` of its images.
fn rtk(
    request: &Request,
    [views, rows, columns]: [usize; 3],
    pitch_mm: Option<[f64; 2]>,
    middle: Option<[f64; 2]>,
    notes: &mut Vec<String>,
) -> Result<ProjectionGeometry> {
    let path = request.rtk.as_deref().unwrap_or(Path::new(""));
    let file = io::rtk::read(path)?;
    let projections: Vec<_> = match &request.view {
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
    let pitch = pitch_mm.unwrap_or([1.0; 2]);
    let detector = Detector { rows, columns, pitch_mm: pitch, radius_mm: file.radius_mm };
    if let Some([u, v]) = middle {
        notes.push(format!(
            "the middle of the detector is at {u}, {v} mm of the projections, as their origin states"
        ));
    }
    let rays = from_rtk(&projections, detector, middle.unwrap_or_default());
    Ok(rays.map_err(|error| io::Error::core(path, error))?)
}
