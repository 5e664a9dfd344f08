//! Scans of Zeiss X-ray microscopes, `.txrm`: an OLE compound file with a stream for each quantity and for
//! each image.
//!
//! | what | stream | numbers |
//! |---|---|---|
//! | columns, rows, images | `ImageInfo/ImageWidth`, `ImageHeight`, `NoOfImages` | int32 |
//! | type | `ImageInfo/DataType`: 3 is uint8, 5 uint16, 10 float32 | int32 |
//! | angles | `ImageInfo/Angles`, degrees | float32 |
//! | size of a pixel at the object | `ImageInfo/PixelSize`, µm | float32 |
//! | source to axis, axis to detector | `ImageInfo/StoRADistance`, `DtoRADistance`, mm | float32 an image |
//! | image n, from 1 | `ImageDataK/ImageN`, a hundred in each K | as the type says |
//! | flat field | `ReferenceData/Image` | as `ReferenceData/DataType` says |
//! | column of the axis from the middle | `ReconSettings/CenterShift` | float32 |
//!
//! The format has no public description; these are the fields that dxchange documents (F. De Carlo et al., J
//! Synchrotron Rad 21:1224, 2014).

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use cfb::CompoundFile;
use ndarray::Array3;
use rayspin_core::{Detector, Orbit, ProjectionGeometry, voxels};
use rayspin_device::Cpu;
use rayspin_device::cpu::try_reserve;
use rayspin_scan::ct::PixelSize;

use crate::element::{self, ByteOrder, Element, Origin, Stop};
use crate::format::Sample;
use crate::projections::{Header, Places, Projections, Source};
use crate::{Error, Result, opening};

/// The signature of OLE compound files.
pub(crate) const MAGIC: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
/// Images in a storage.
const IMAGES: usize = 100;
const PLACES: Places =
    Places { flats: "ReferenceData/Image (flat field)", angles: "ImageInfo/Angles", lines: None };
/// A distance that stands for an unknown one.
const PLACEHOLDER_MM: f64 = 1.0;

/// An open file.
struct Streams {
    path: PathBuf,
    file: CompoundFile<BufReader<File>>,
}

impl Streams {
    fn open(path: &Path) -> Result<Self> {
        let file = opening::open(path)?;
        let file = CompoundFile::open(BufReader::new(file)).map_err(|e| {
            Error::field(path, "OLE compound file", "sound tables", crate::error::one_line(e))
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    fn has(&self, name: &str) -> bool {
        self.file.is_stream(name)
    }

    /// The numbers of a stream: `count` of them, or all.
    fn numbers(&mut self, name: &str, element: Element, count: Option<usize>) -> Result<Vec<f32>> {
        let path = &self.path;
        if !self.file.is_stream(name) {
            return Err(Error::field(path, name, "a stream of that name", "none"));
        }
        let mut stream = self.file.open_stream(name).map_err(|e| Error::read(path, e))?;
        let held = usize::try_from(stream.len()).unwrap_or(usize::MAX) / element.size();
        let count = match count {
            Some(count) if held < count => {
                let expected = format!("{} bytes", count * element.size());
                return Err(Error::truncated(path, name, expected, format!("{} bytes", stream.len())));
            }
            Some(count) => count,
            None => held,
        };
        let read = element::read(Origin::Stream(&mut stream), count, element, ByteOrder::Little, None);
        read.map(|numbers| numbers.values).map_err(|stop| match stop {
            Stop::Io(e) => Error::field(path, name, "a sound chain of sectors", crate::error::one_line(e)),
            Stop::Memory(e) => Error::core(path, e),
            Stop::Short(got) => {
                Error::truncated(path, name, format!("{count} numbers"), format!("{got} bytes"))
            }
            Stop::Range(index) => {
                Error::field(path, name, "values within single precision", format!("a larger one at {index}"))
            }
        })
    }

    /// One int32, which float32 holds exactly below 2²⁴.
    fn integer(&mut self, name: &str) -> Result<i64> {
        let path = self.path.clone();
        let mut bytes = [0; 4];
        if !self.file.is_stream(name) {
            return Err(Error::field(path, name, "a stream of that name", "none"));
        }
        let mut stream = self.file.open_stream(name).map_err(|e| Error::read(&path, e))?;
        stream.read_exact(&mut bytes).map_err(|_| Error::truncated(&path, name, "4 bytes", "fewer"))?;
        Ok(i32::from_le_bytes(bytes).into())
    }

    fn size(&mut self, name: &str) -> Result<usize> {
        let size = self.integer(name)?;
        usize::try_from(size)
            .ok()
            .filter(|&n| n > 0)
            .ok_or_else(|| Error::field(&self.path, name, "a positive number", size))
    }

    fn element(&mut self, name: &str) -> Result<Element> {
        match self.integer(name)? {
            3 => Ok(Element::U8),
            5 => Ok(Element::U16),
            10 => Ok(Element::F32),
            other => Err(Error::field(&self.path, name, "3 (uint8), 5 (uint16) or 10 (float32)", other)),
        }
    }

    /// The distance in mm, which all images share, without its sign; `None` where the file states none.
    fn distance(&mut self, name: &str) -> Result<Option<f64>> {
        if !self.has(name) {
            return Ok(None);
        }
        let distances = self.numbers(name, Element::F32, None)?;
        let Some(&first) = distances.first() else { return Ok(None) };
        match distances.iter().find(|&&other| (other - first).abs() > 1e-3 * first.abs()) {
            Some(other) => Err(Error::field(
                &self.path,
                name,
                format!("{first} mm for every image"),
                format!("{other} mm"),
            )),
            None => Ok(Some(f64::from(first.abs()))),
        }
    }
}

/// Whether an OLE compound file is a scan. Errors: one that cannot be read.
pub(crate) fn holds(path: &Path) -> Result<bool> {
    let file = Streams::open(path)?;
    Ok(file.has("ImageInfo/ImageWidth") && file.has("ImageInfo/Angles"))
}

/// Opens a scan for the table of formats.
pub(crate) fn projections(path: &Path, _: Option<&str>) -> Result<Projections> {
    let mut file = Streams::open(path)?;
    if !file.has("ImageInfo/ImageWidth") {
        let expected = "a Zeiss scan (OLE with ImageInfo)";
        return Err(Error::not_this_format(path, expected, "another OLE compound file"));
    }
    let (columns, rows) = (file.size("ImageInfo/ImageWidth")?, file.size("ImageInfo/ImageHeight")?);
    let views = file.size("ImageInfo/NoOfImages")?;
    let element = file.element("ImageInfo/DataType")?;
    let core = |e| Error::core(path, e);
    let pixels = voxels(&[rows, columns]).map_err(core)?;
    let angles = file.numbers("ImageInfo/Angles", Element::F32, Some(views))?;
    let angles: Vec<f64> = angles.into_iter().map(|angle| f64::from(angle).to_radians()).collect();
    let mut notes = Vec::new();
    let flats = match file.has("ReferenceData/Image") {
        true => {
            let element = match file.has("ReferenceData/DataType") {
                true => file.element("ReferenceData/DataType")?,
                false => Element::F32,
            };
            let flat = file.numbers("ReferenceData/Image", element, Some(pixels))?;
            Array3::from_shape_vec((1, rows, columns), flat)
                .map_err(|e| Error::field(path, "ReferenceData/Image", "a view", e))?
        }
        false => Array3::zeros((0, rows, columns)),
    };
    let pixel_mm = match file.has("ImageInfo/PixelSize") {
        true => f64::from(file.numbers("ImageInfo/PixelSize", Element::F32, Some(1))?[0]) * 1e-3,
        false => 0.0,
    };
    let geometry = geometry(&mut file, [rows, columns], &angles, pixel_mm, &mut notes)?;
    let is_size = pixel_mm.is_finite() && pixel_mm > 0.0;
    let pixel = is_size.then_some(PixelSize { mm: [pixel_mm; 2], at_object: true });
    let shifted = ["Alignment/X-Shifts", "Alignment/Y-Shifts"].into_iter().any(|name| {
        file.has(name)
            && file
                .numbers(name, Element::F32, None)
                .is_ok_and(|shifts| shifts.iter().any(|shift| *shift != 0.0))
    });
    if shifted {
        notes.push("the shifts of each view that the file states (Alignment) are not applied".into());
    }
    let frames = Some([flats, Array3::zeros((0, rows, columns))]);
    let (shape, angles, places) = ([views, rows, columns], Some(angles), PLACES);
    let header = Header { shape, frames, angles, geometry, pixel, notes, places };
    Projections::new(path, "Zeiss txrm", Box::new(Images { file, element, pixels }), header)
}

/// A cone beam where the file states both distances; none where these are placeholders.
fn geometry(
    file: &mut Streams,
    [rows, columns]: [usize; 2],
    angles: &[f64],
    pixel_mm: f64,
    notes: &mut Vec<String>,
) -> Result<Option<ProjectionGeometry>> {
    let (source, detector) =
        (file.distance("ImageInfo/StoRADistance")?, file.distance("ImageInfo/DtoRADistance")?);
    let (source, detector) = match (source, detector) {
        (Some(source), Some(detector))
            if source > 0.0 && [source, detector] != [PLACEHOLDER_MM; 2] && pixel_mm > 0.0 =>
        {
            (source, detector)
        }
        (source, detector) => {
            let text = |mm: Option<f64>| mm.map_or_else(|| "none".to_owned(), |mm| format!("{mm} mm"));
            notes.push(format!(
                "the distances in the file are placeholders (source to axis {}, axis to detector {}): \
                 `--source-to-axis` and `--axis-to-detector` say what they are; a pixel is {} mm at the object",
                text(source),
                text(detector),
                (pixel_mm * 1e9).round() / 1e9,
            ));
            return Ok(None);
        }
    };
    let magnification = (source + detector) / source;
    let pitch = pixel_mm * magnification;
    let shift = match file.has("ReconSettings/CenterShift") {
        true => f64::from(file.numbers("ReconSettings/CenterShift", Element::F32, Some(1))?[0]),
        false => 0.0,
    };
    let grid = Detector { rows, columns, pitch_mm: [pitch; 2], radius_mm: None };
    let orbit = Orbit {
        angles: angles.to_vec(),
        source_to_axis_mm: Some(source),
        axis_to_detector_mm: detector,
        offset_mm: [-shift * pitch, 0.0],
        ..Orbit::default()
    };
    ProjectionGeometry::orbit(grid, &orbit).map(Some).map_err(|e| Error::core(&file.path, e))
}

/// The images of a file.
struct Images {
    file: Streams,
    element: Element,
    pixels: usize,
}

impl Source for Images {
    fn read(&mut self, views: Range<usize>, _: &Cpu) -> Result<Vec<f32>> {
        let mut values = Vec::new();
        let count = voxels(&[views.len(), self.pixels]).map_err(|e| Error::core(&self.file.path, e))?;
        try_reserve("projections", &mut values, count).map_err(|e| Error::core(&self.file.path, e))?;
        for view in views {
            let name = format!("ImageData{}/Image{}", view / IMAGES + 1, view + 1);
            values.extend(self.file.numbers(&name, self.element, Some(self.pixels))?);
        }
        Ok(values)
    }
}

/// A small scan.
pub(crate) fn samples() -> Vec<Sample> {
    written().into_iter().map(|bytes| vec![("a.txrm", bytes)]).collect()
}

fn written() -> std::io::Result<Vec<u8>> {
    let mut file = CompoundFile::create(Cursor::new(Vec::new()))?;
    let int = |value: i32| value.to_le_bytes().to_vec();
    let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    for storage in ["ImageInfo", "ImageData1", "ReferenceData"] {
        file.create_storage(storage)?;
    }
    for (name, bytes) in [
        ("ImageInfo/ImageWidth", int(4)),
        ("ImageInfo/ImageHeight", int(2)),
        ("ImageInfo/NoOfImages", int(2)),
        ("ImageInfo/DataType", int(10)),
        ("ImageInfo/Angles", floats(&[0.0, 90.0])),
        ("ImageInfo/PixelSize", floats(&[10.0])),
        ("ImageInfo/StoRADistance", floats(&[-20.0; 2])),
        ("ImageInfo/DtoRADistance", floats(&[60.0; 2])),
        ("ReferenceData/Image", floats(&[50.0; 8])),
        ("ImageData1/Image1", floats(&[25.0; 8])),
        ("ImageData1/Image2", floats(&[35.0; 8])),
    ] {
        file.create_stream(name)?.write_all(&bytes)?;
    }
    Ok(file.into_inner().into_inner())
}
