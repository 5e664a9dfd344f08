use std::path::Path;

use hdf5::{Dataset, Group, H5Type};
use rayspin_core::{Geometry, Image};

use super::header_out::{Xml, ascii};
use super::layout::{ImageHeaderOut, RealImag};
use super::write::write_xml;
use crate::atomic::Pending;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::format::VolumeWriter;
use crate::hdf5_file::{create, group, string, writing};
use crate::{NumberType, Slices, Values};
use rayspin_scan::mri::Label;

/// Where an image series goes in a file, the numbers that it stores, and its header and attributes.
#[derive(Debug, Clone)]
pub struct ImageOptions {
    /// The numbers that are stored.
    pub values: Values,
    /// The group of the file; readers look in `dataset`.
    pub group: String,
    /// The series within it; `image_0`, `image_1`, … by custom.
    pub series: String,
    /// The XML header of the scan that the image was made from, to go with it as it is, names included.
    pub header_xml: Option<String>,
    /// The volumes, as the labels of their slices 0. Without as many as the image has, volumes are
    /// repetitions.
    pub volumes: Vec<Label>,
    /// Names and values for the image's attributes (how it was reconstructed, for example).
    pub attributes: Vec<(String, String)>,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self {
            values: Values::Magnitude,
            group: "dataset".into(),
            series: "image_0".into(),
            header_xml: None,
            volumes: Vec::new(),
            attributes: Vec::new(),
        }
    }
}

/// Writes `image` to a new file as an ISMRMRD image series, one image a volume: `header`, `attributes`
/// and `data` `[image, channel, z, y, x]`, as the reference implementation lays them out.
///
/// `position` is the position of the voxel at index n/2, as everywhere in Rayspin; lengths in mm, directions
/// LPS.
///
/// Errors: a matrix beyond the format's 16 bits, [`Error::Write`]. The file appears whole or not at all.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Geometry, Image};
/// use rayspin_io::ismrmrd::{read_images, write_images};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("images.h5");
/// let data = ArrayD::from_elem(IxDyn(&[2, 4, 5]), C32::new(3.0, 0.0));
/// let image = Image::new(data, Geometry::default())?;
/// write_images(&path, &image, &Default::default())?;
/// assert_eq!(read_images(&path, None)?.0.shape_zyx(), [2, 4, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_images(path: impl AsRef<Path>, image: &Image, options: &ImageOptions) -> Result<()> {
    let path = path.as_ref();
    let mut series =
        ImageSeries::create(path, image.repetitions(), image.shape_zyx(), image.geometry(), options, None)?;
    match image.data().ndim() {
        4 => image.data().outer_iter().try_for_each(|volume| series.push(&volume.into()))?,
        _ => series.push(&image.data().view().into())?,
    }
    Box::new(series).finish(path, image.repetitions()).map(drop)
}

/// An image series in the making, volume by volume.
pub(super) struct ImageSeries {
    // The order of fields is that in which they are closed.
    data: Dataset,
    headers: Dataset,
    attributes: Dataset,
    file: hdf5::File,
    pending: Pending,
    values: Values,
    integers: Option<NumberType>,
    frames: usize,
    shape: [usize; 3],
    /// Slices.
    pushed: usize,
}

impl ImageSeries {
    /// For `frames` volumes `[z, y, x]`.
    pub(super) fn create(
        path: &Path,
        frames: usize,
        shape: [usize; 3],
        geometry: &Geometry,
        options: &ImageOptions,
        integers: Option<NumberType>,
    ) -> Result<Self> {
        for name in [&options.group, &options.series] {
            if name.is_empty() || name.contains('\0') {
                return Err(Error::field(path, "group name", "a name", format!("{name:?}")));
            }
        }
        let text = attributes(&options.attributes);
        let kind = kind(options.values, integers);
        let mut headers = headers(path, frames, shape, geometry, kind, text.len())?;
        if options.volumes.len() == frames {
            for (header, label) in headers.iter_mut().zip(&options.volumes) {
                let Label { set, phase, repetition, contrast, .. } = *label;
                (header.set, header.phase) = (set, phase);
                (header.repetition, header.contrast) = (repetition, contrast);
            }
        }
        let pending = Pending::create(path)?;
        let fail = |e: hdf5::Error| writing(path, &e);
        let file = create(pending.path()).map_err(fail)?;
        let parent = group(&file, &options.group).map_err(fail)?;
        if let Some(xml) = &options.header_xml {
            write_xml(path, &parent, xml)?;
        }
        let series = group(&parent, &options.series).map_err(fail)?;
        let heads = series
            .new_dataset_builder()
            .packed(true)
            .chunk(frames.min(64))
            .empty::<ImageHeaderOut>()
            .shape((frames..,))
            .create("header")
            .map_err(fail)?;
        heads.write(&headers).map_err(fail)?;
        let text = string(path, "attributes", &text)?;
        let attributes = series
            .new_dataset_builder()
            .chunk(frames.min(64))
            .empty::<hdf5::types::VarLenAscii>()
            .shape((frames..,))
            .create("attributes")
            .map_err(fail)?;
        attributes.write(&vec![text; frames]).map_err(fail)?;
        let data = match (options.values, integers.map(|integers| integers.element)) {
            (_, Some(Element::U16)) => dataset::<u16>(&series, frames, shape),
            (_, Some(Element::I16)) => dataset::<i16>(&series, frames, shape),
            (_, Some(Element::U32)) => dataset::<u32>(&series, frames, shape),
            (_, Some(Element::I32)) => dataset::<i32>(&series, frames, shape),
            (Values::Complex, _) => dataset::<RealImag>(&series, frames, shape),
            (Values::Magnitude | Values::Real | Values::Phase, _) => dataset::<f32>(&series, frames, shape),
        };
        let data = data.map_err(fail)?;
        let values = options.values;
        let headers = heads;
        Ok(Self { data, headers, attributes, file, pending, values, integers, frames, shape, pushed: 0 })
    }

    fn close(self) -> Result<Pending> {
        let Self { data, headers, attributes, file, pending, .. } = self;
        drop((data, headers, attributes));
        let closed = file.flush().and_then(|()| file.close());
        closed.map_err(|e| writing(pending.wanted(), &e))?;
        Ok(pending)
    }
}

impl VolumeWriter for ImageSeries {
    /// Writes one slice at a time, so that the copy in another type stays small.
    fn push(&mut self, slices: &Slices<'_>) -> Result<()> {
        let nz = self.shape[0];
        let write = |slice: usize, plane: &Slices<'_>| -> hdf5::Result<()> {
            let place = (slice / nz, 0, slice % nz, .., ..);
            if self.values == Values::Complex {
                let pairs = plane.complex().mapv(|v| RealImag { real: v.re, imag: v.im });
                return self.data.write_slice(&pairs, place);
            }
            let values = plane.stored(self.values);
            // Integers hold these numbers exactly.
            match self.integers.map(|integers| integers.element) {
                Some(Element::U16) => self.data.write_slice(&values.mapv(|value| value as u16), place),
                Some(Element::I16) => self.data.write_slice(&values.mapv(|value| value as i16), place),
                Some(Element::U32) => self.data.write_slice(&values.mapv(|value| value as u32), place),
                Some(Element::I32) => self.data.write_slice(&values.mapv(|value| value as i32), place),
                _ => self.data.write_slice(&values, place),
            }
        };
        let mut planes = slices.planes().zip(self.pushed..);
        planes
            .try_for_each(|(plane, slice)| write(slice, &plane))
            .map_err(|e| writing(self.pending.wanted(), &e))?;
        self.pushed += slices.shape()[0];
        Ok(())
    }

    fn finish(self: Box<Self>, path: &Path, frames: usize) -> Result<Option<String>> {
        let [nz, ny, nx] = self.shape;
        if frames != self.frames {
            let resized = self
                .data
                .resize((frames, 1, nz, ny, nx))
                .and_then(|()| self.headers.resize(frames))
                .and_then(|()| self.attributes.resize(frames));
            resized.map_err(|e| writing(path, &e))?;
        }
        self.close()?.finish_as(path).map(|()| None)
    }
}

fn dataset<T: H5Type>(series: &Group, frames: usize, [nz, ny, nx]: [usize; 3]) -> hdf5::Result<Dataset> {
    series
        .new_dataset_builder()
        .chunk((1, 1, 1, ny, nx))
        .empty::<T>()
        .shape((frames.., 1, nz, ny, nx))
        .create("data")
}

/// The standard's codes of an image.
struct ImageKind {
    /// 1 (unsigned short) to 5 (float) and 7 (complex float).
    data_type: u16,
    /// 1 (magnitude) to 5 (complex).
    image_type: u16,
}

fn kind(values: Values, integers: Option<NumberType>) -> ImageKind {
    let data_type = match integers.map(|integers| integers.element) {
        Some(Element::U16) => 1,
        Some(Element::I16) => 2,
        Some(Element::U32) => 3,
        Some(Element::I32) => 4,
        _ if values == Values::Complex => 7,
        _ => 5,
    };
    let image_type = match values {
        Values::Magnitude => 1,
        Values::Phase => 2,
        Values::Real => 3,
        Values::Complex => 5,
    };
    ImageKind { data_type, image_type }
}

fn headers(
    path: &Path,
    frames: usize,
    [nz, ny, nx]: [usize; 3],
    geometry: &Geometry,
    kind: ImageKind,
    attributes: usize,
) -> Result<Vec<ImageHeaderOut>> {
    let matrix = [nx, ny, nz];
    let short =
        |what: &str, n: usize| u16::try_from(n).map_err(|_| Error::field(path, what, "at most 65535", n));
    let mut matrix_size = [0; 3];
    for (out, n) in matrix_size.iter_mut().zip(matrix) {
        *out = short("image matrix", n)?;
    }
    let single = |v: [f64; 3]| v.map(|x| x as f32);
    let fov = std::array::from_fn(|axis| geometry.spacing_mm[axis] * matrix[axis] as f64);
    short("image repetitions", frames)?;
    (0..frames)
        .map(|repetition| {
            let number = short("image repetitions", repetition)?;
            Ok(ImageHeaderOut {
                version: 1,
                data_type: kind.data_type,
                matrix_size,
                field_of_view: single(fov),
                channels: 1,
                position: single(geometry.position_mm),
                read_dir: single(geometry.read_dir),
                phase_dir: single(geometry.phase_dir),
                slice_dir: single(geometry.slice_dir),
                repetition: number,
                image_type: kind.image_type,
                image_index: number.saturating_add(1),
                image_series_index: 0,
                attribute_string_len: u32::try_from(attributes).unwrap_or(u32::MAX),
                ..ImageHeaderOut::default()
            })
        })
        .collect()
}

/// The attributes as the standard's meta XML.
fn attributes(pairs: &[(String, String)]) -> String {
    let mut out = Xml::default();
    out.text.push_str("<?xml version=\"1.0\"?>\n");
    out.open("ismrmrdMeta");
    let data_role = [("DataRole".to_owned(), "Image".to_owned())];
    for (name, value) in data_role.iter().chain(pairs) {
        out.open("meta");
        out.leaf("name", name);
        out.leaf("value", value);
        out.close("meta");
    }
    out.close("ismrmrdMeta");
    ascii(&out.text)
}
