use std::path::Path;

use hdf5::{Group, H5Type};
use ndarray::Axis;
use rayspin_core::Image;

use super::header_out::{Xml, ascii};
use super::layout::{ImageHeaderOut, RealImag};
use super::open::writing;
use super::write::{create, group, string, write_xml};
use crate::atomic::write_atomically;
use crate::error::{Error, Result};

/// What to store of a complex image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ImageKind {
    /// |value| as 32-bit float.
    #[default]
    Magnitude,
    /// The complex values.
    Complex,
}

/// Where an image series goes and what is said of it.
#[derive(Debug, Clone)]
pub struct ImageOptions {
    /// Magnitude or complex values.
    pub kind: ImageKind,
    /// The group of the file; readers look in `dataset`.
    pub group: String,
    /// The series within it; `image_0`, `image_1`, … by custom.
    pub series: String,
    /// The XML header of the scan that the image was made from, to go with it.
    pub header_xml: Option<String>,
    /// Names and values for the image's attributes (how it was reconstructed, for example).
    pub attributes: Vec<(String, String)>,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self {
            kind: ImageKind::Magnitude,
            group: "dataset".into(),
            series: "image_0".into(),
            header_xml: None,
            attributes: Vec::new(),
        }
    }
}

/// Writes `image` to a new file as an ISMRMRD image series, one image a repetition: `header`, `attributes` and `data`
/// `[repetition, channel, z, y, x]`, as the reference implementation lays them out.
///
/// `position` is that of the voxel at index n/2, as everywhere in Rayspin; lengths in mm, directions LPS.
///
/// Errors: a matrix beyond the format's 16 bits, [`Error::Write`]. The file appears whole or not at all.
pub fn write_images(path: impl AsRef<Path>, image: &Image, options: &ImageOptions) -> Result<()> {
    let path = path.as_ref();
    for name in [&options.group, &options.series] {
        if name.is_empty() || name.contains('\0') {
            return Err(Error::field(path, "group name", "a name", format!("{name:?}")));
        }
    }
    let attributes = attributes(&options.attributes);
    let headers = headers(path, image, options.kind, attributes.len())?;
    write_atomically(path, |temporary| {
        let fail = |e: hdf5::Error| writing(path, &e);
        let file = create(temporary).map_err(fail)?;
        let parent = group(&file, &options.group).map_err(fail)?;
        if let Some(xml) = &options.header_xml {
            write_xml(path, &parent, xml)?;
        }
        let series = group(&parent, &options.series).map_err(fail)?;
        let count = headers.len();
        series
            .new_dataset_builder()
            .packed(true)
            .chunk(count.min(64))
            .empty::<ImageHeaderOut>()
            .shape((count..,))
            .create("header")
            .and_then(|d| d.write(&headers))
            .map_err(fail)?;
        let text = string(path, "attributes", &attributes)?;
        series
            .new_dataset_builder()
            .chunk(count.min(64))
            .empty::<hdf5::types::VarLenAscii>()
            .shape((count..,))
            .create("attributes")
            .and_then(|d| d.write(&vec![text; count]))
            .map_err(fail)?;
        match options.kind {
            ImageKind::Magnitude => write_values(&series, image, |z| z.norm()),
            ImageKind::Complex => write_values(&series, image, |z| RealImag { real: z.re, imag: z.im }),
        }
        .map_err(fail)?;
        drop((series, parent));
        file.flush().map_err(fail)?;
        file.close().map_err(fail)
    })
}

/// Writes one slice at a time, so that the copy in another type stays small.
fn write_values<T: H5Type>(
    series: &Group,
    image: &Image,
    convert: impl Fn(&rayspin_core::C32) -> T,
) -> hdf5::Result<()> {
    let [nz, ny, nx] = image.shape_zyx();
    let repetitions = image.repetitions();
    let data = series
        .new_dataset_builder()
        .chunk((1, 1, 1, ny, nx))
        .empty::<T>()
        .shape((repetitions.., 1, nz, ny, nx))
        .create("data")?;
    let planes = (0..repetitions).flat_map(|r| (0..nz).map(move |z| (r, z)));
    for (repetition, z) in planes {
        let values = image.data();
        let volume = if values.ndim() == 4 { values.index_axis(Axis(0), repetition) } else { values.view() };
        let plane: Vec<T> = volume.index_axis(Axis(0), z).iter().map(&convert).collect();
        let plane = ndarray::Array2::from_shape_vec((ny, nx), plane)?;
        data.write_slice(&plane, (repetition, 0, z, .., ..))?;
    }
    Ok(())
}

fn headers(path: &Path, image: &Image, kind: ImageKind, attributes: usize) -> Result<Vec<ImageHeaderOut>> {
    let [nz, ny, nx] = image.shape_zyx();
    let matrix = [nx, ny, nz];
    let short =
        |what: &str, n: usize| u16::try_from(n).map_err(|_| Error::field(path, what, "at most 65535", n));
    let mut matrix_size = [0; 3];
    for (out, n) in matrix_size.iter_mut().zip(matrix) {
        *out = short("image matrix", n)?;
    }
    let geometry = image.geometry();
    let single = |v: [f64; 3]| v.map(|x| x as f32);
    let fov = std::array::from_fn(|axis| geometry.spacing_mm[axis] * matrix[axis] as f64);
    // The standard's codes: data types 5 (float) and 7 (complex float), image types 1 (magnitude) and 5 (complex).
    let (data_type, image_type) = match kind {
        ImageKind::Magnitude => (5, 1),
        ImageKind::Complex => (7, 5),
    };
    short("image repetitions", image.repetitions())?;
    (0..image.repetitions())
        .map(|repetition| {
            let number = short("image repetitions", repetition)?;
            Ok(ImageHeaderOut {
                version: 1,
                data_type,
                matrix_size,
                field_of_view: single(fov),
                channels: 1,
                position: single(geometry.position_mm),
                read_dir: single(geometry.read_dir),
                phase_dir: single(geometry.phase_dir),
                slice_dir: single(geometry.slice_dir),
                repetition: number,
                image_type,
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
