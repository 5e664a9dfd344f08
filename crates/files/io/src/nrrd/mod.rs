//! NRRD files of Teem, ITK and 3D Slicer: `.nrrd`, and `.nhdr` with the numbers in files of their own.
//!
//! A header of lines `field: value` up to an empty line, then the numbers, the first axis fastest: read
//! backwards, the axes are in the C order of Rayspin's `[repetition, z, y, x]`. The reader takes numbers
//! of 8 to 64 bits in either byte order: raw, compressed by gzip, as text or as hexadecimal digits. Axes are
//! two or three of space, one of repetitions (`list`, `time`) in any place, and a first one of complex
//! numbers. Written: 32-bit floats, complex numbers, and integers that were read as such, in LPS, compressed
//! by gzip.
//!
//! Source: <http://teem.sourceforge.net/nrrd/format.html>.

mod axes;
mod data;
mod header;
mod samples;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ndarray::{ArrayD, Axis, IxDyn};
use rayspin_core::{Geometry, Image};

use crate::atomic::Pending;
use crate::element::{self, Element, Numbers};
use crate::format::{ImageRead, Target, VolumeWriter};
use crate::gzip::GzipWriter;
use crate::{AnyImage, Error, NumberType, Result, Slices, Values};

use axes::Axes;
use data::Stored;
use header::Header;

pub(crate) use samples::samples;

/// The header's file, and the files of the numbers where they are other ones.
pub(crate) fn parts(path: &Path) -> Vec<PathBuf> {
    let part_files = || data::files(path, &Header::read(path).ok()?).ok();
    let files = part_files().unwrap_or_default().into_iter().filter_map(|part| part.file);
    std::iter::once(path.to_owned()).chain(files).collect()
}

/// Reads an image for the table of formats.
pub(crate) fn image(path: &Path, _: Option<&str>) -> Result<ImageRead> {
    let header = Header::read(path)?;
    let stored = Stored::of(path, &header)?;
    let mut axes = axes::axes(path, &header)?;
    let mut notes = std::mem::take(&mut axes.notes);
    let (image, element, rounded) = match axes.is_complex {
        true => {
            let element = if stored.element == Element::F64 { Element::C64 } else { Element::C32 };
            let Numbers { values, rounded } = data::complex(path, &header, &stored)?;
            (AnyImage::from(arranged(path, &axes, values)?), element, rounded)
        }
        false => {
            let Numbers { values, rounded } = data::real(path, &header, &stored)?;
            (AnyImage::from(arranged(path, &axes, values)?), stored.element, rounded)
        }
    };
    let stored = NumberType::from(element).read(rounded, &mut notes);
    Ok(ImageRead { repetition_time_s: axes.step_s, ..ImageRead::new(image, stored, notes) })
}

/// The numbers of a file as `[z, y, x]` or `[repetition, z, y, x]`.
fn arranged<T: Clone>(path: &Path, axes: &Axes, values: Vec<T>) -> Result<Image<T>> {
    let data = ArrayD::from_shape_vec(IxDyn(&axes.shape), values)
        .map_err(|e| Error::field(path, "sizes", "a shape that fits the numbers", e))?;
    let data = match axes.repetitions {
        None => data,
        Some(from) => {
            let mut order: Vec<usize> = (0..data.ndim()).filter(|&axis| axis != from).collect();
            order.insert(0, from);
            let mut data = data.permuted_axes(order);
            if data.ndim() < 4 {
                data = data.insert_axis(Axis(1));
            }
            if data.is_standard_layout() { data } else { data.as_standard_layout().into_owned() }
        }
    };
    Image::new(data, axes.geometry).map_err(|e| Error::core(path, e))
}

/// Starts a file for the table of formats.
pub(crate) fn create(target: &Target<'_>) -> Result<Box<dyn VolumeWriter>> {
    let usual = if target.values == Values::Complex { Element::C32 } else { Element::F32 };
    let head = Head {
        volume: target.volume(),
        repetitions: target.repetitions(),
        geometry: *target.geometry,
        element: target.integers.map_or(usual, |integers| integers.element),
        step_s: target.options.repetition_time_s,
    };
    let fail = |e| Error::write(target.path, e);
    let pending = Pending::create(target.path)?;
    let mut file = pending.open()?;
    file.write_all(head.text(head.repetitions).as_bytes()).map_err(fail)?;
    let [nz, ny, nx] = head.volume;
    let count =
        [nz, ny, nx, head.repetitions.unwrap_or(1)].iter().fold(1usize, |n, &size| n.saturating_mul(size));
    let bytes = count.saturating_mul(head.element.size());
    let stream = GzipWriter::new(file, bytes as u64).map_err(fail)?;
    Ok(Box::new(Nrrd { pending, stream, head, values: target.values, integers: target.integers }))
}

/// What the header of a file says.
struct Head {
    volume: [usize; 3],
    repetitions: Option<usize>,
    geometry: Geometry,
    element: Element,
    step_s: Option<f64>,
}

impl Head {
    /// As many bytes for each number of repetitions up to the announced one.
    fn text(&self, repetitions: Option<usize>) -> String {
        let vector = |values: [f64; 3]| format!("({},{},{})", values[0], values[1], values[2]);
        let [nz, ny, nx] = self.volume;
        let affine = self.geometry.affine_lps(self.volume);
        let direction = |axis: usize| vector(affine.map(|row| row[axis]));
        let mut sizes = vec![nx.to_string(), ny.to_string(), nz.to_string()];
        let mut directions: Vec<String> = (0..3).map(direction).collect();
        let mut kinds = vec!["domain"; 3];
        let kind = match self.element {
            Element::C32 => {
                sizes.insert(0, "2".into());
                directions.insert(0, "none".into());
                kinds.insert(0, "complex");
                "float"
            }
            element => data::type_name(element).unwrap_or("float"),
        };
        let mut time = String::new();
        if let (Some(announced), Some(repetitions)) = (self.repetitions, repetitions) {
            let width = announced.to_string().len();
            sizes.push(format!("{repetitions:<width$}"));
            directions.push("none".into());
            // ITK takes `time` for an axis of space, and reads no such file.
            kinds.push("list");
            if let Some(step) = self.step_s {
                let others = kinds.len() - 1;
                time = format!(
                    "spacings: {}{step}\nunits: {}\"s\"\n",
                    "NaN ".repeat(others),
                    "\"\" ".repeat(others)
                );
            }
        }
        format!(
            "NRRD0004\n# Complete NRRD file format specification at:\n\
             # http://teem.sourceforge.net/nrrd/format.html\n\
             # Rayspin {}\ntype: {kind}\ndimension: {}\nspace: left-posterior-superior\nsizes: {}\n\
             space directions: {}\nkinds: {}\nendian: little\nencoding: gzip\n\
             space units: \"mm\" \"mm\" \"mm\"\n\
             space origin: {}\n{time}\n",
            env!("CARGO_PKG_VERSION"),
            sizes.len(),
            sizes.join(" "),
            directions.join(" "),
            kinds.join(" "),
            vector(affine.map(|row| row[3])),
        )
    }
}

/// An image or a series in the making.
struct Nrrd {
    pending: Pending,
    stream: GzipWriter,
    head: Head,
    values: Values,
    integers: Option<NumberType>,
}

impl VolumeWriter for Nrrd {
    fn push(&mut self, slices: &Slices<'_>) -> Result<()> {
        element::write(&mut self.stream, slices, self.values, self.integers)
            .map_err(|e| Error::write(self.pending.wanted(), e))
    }

    fn finish(self: Box<Self>, path: &Path, frames: usize) -> Result<Option<String>> {
        let fail = |e| Error::write(path, e);
        let mut file: File = self.stream.finish().map_err(fail)?;
        if let Some(announced) = self.head.repetitions.filter(|announced| *announced != frames) {
            debug_assert!(frames < announced);
            file.seek(SeekFrom::Start(0)).map_err(fail)?;
            file.write_all(self.head.text(Some(frames)).as_bytes()).map_err(fail)?;
        }
        drop(file);
        self.pending.finish_as(path).map(|()| None)
    }
}
