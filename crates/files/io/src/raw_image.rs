//! Numbers without a header: the user says what they are, behind a colon (`volume.raw:512x512x300,uint16`).

use std::path::Path;

use ndarray::{ArrayD, IxDyn};
use rayspin_core::{Geometry, Image};

use crate::element::{self, ByteOrder, Element, Numbers, Origin, Stop};
use crate::format::{ImageRead, Rows};
use crate::{Error, NumberType, Result, opening};

const EXPECTED: &str =
    "X x Y x Z and then int8, uint8, int16, uint16, int32, uint32, float32 or float64, big, skip=BYTES";

/// What the user says of a file.
struct Said {
    /// `[z, y, x]`.
    shape: Vec<usize>,
    element: Element,
    order: ByteOrder,
    skip: u64,
}

impl Said {
    fn of(text: &str) -> Option<Self> {
        let mut words = text.split(',').map(str::trim);
        let sizes: Option<Vec<usize>> =
            words.next()?.split('x').map(|size| size.trim().parse().ok()).collect();
        let mut shape =
            sizes.filter(|sizes| (2..=4).contains(&sizes.len()) && sizes.iter().all(|&n| n > 0))?;
        shape.reverse();
        let mut said = Self { shape, element: Element::F32, order: ByteOrder::Little, skip: 0 };
        for word in words {
            match word {
                "int8" => said.element = Element::I8,
                "uint8" => said.element = Element::U8,
                "int16" => said.element = Element::I16,
                "uint16" => said.element = Element::U16,
                "int32" => said.element = Element::I32,
                "uint32" => said.element = Element::U32,
                "float32" => said.element = Element::F32,
                "float64" => said.element = Element::F64,
                "big" => said.order = ByteOrder::Big,
                "little" => said.order = ByteOrder::Little,
                other => said.skip = other.strip_prefix("skip=")?.parse().ok()?,
            }
        }
        Some(said)
    }
}

/// Nothing but its size is known of it.
pub(crate) fn describe(_: &Path) -> Result<Rows> {
    Ok(Vec::new())
}

/// Reads an image for the table of formats.
pub(crate) fn image(path: &Path, said: Option<&str>) -> Result<ImageRead> {
    let Some(Said { shape, element, order, skip }) = said.and_then(Said::of) else {
        let found = said.map_or_else(|| "nothing".to_owned(), |text| format!("'{text}'"));
        return Err(Error::field(path, "description after the colon", EXPECTED, found)
            .with_hint(format!("{}:512x512x300,uint16 says what the numbers are", path.display())));
    };
    let io = |e| Error::read(path, e);
    let file = opening::open(path)?;
    let length = file.metadata().map_err(io)?.len();
    let bytes = element::count(&shape, element.size()).map(|count| (count * element.size()) as u64);
    if bytes.and_then(|bytes| bytes.checked_add(skip)) != Some(length) {
        let expected = match bytes {
            Some(bytes) => format!("{bytes} bytes for the stated size and type, after {skip}"),
            None => "a product that fits the address space".into(),
        };
        return Err(Error::field(path, "size of the file", expected, format!("{length} bytes")));
    }
    let count = shape.iter().product();
    let Numbers::<f32> { values, rounded } =
        element::read(Origin::File(&file, skip), count, element, order, None).map_err(|stop| match stop {
            Stop::Io(e) => Error::read(path, e),
            Stop::Memory(e) => Error::core(path, e),
            Stop::Short(got) => Error::truncated(path, "the image", "all numbers", format!("{got} bytes")),
            Stop::Range(index) => Error::field(
                path,
                "voxel",
                "values within single precision",
                format!("a larger one at {index}"),
            ),
        })?;
    let data = ArrayD::from_shape_vec(IxDyn(&shape), values)
        .map_err(|e| Error::field(path, "size", "a shape that fits the numbers", e))?;
    let image = Image::new(data, Geometry::default()).map_err(|e| Error::core(path, e))?;
    let mut notes = Vec::new();
    let stored = NumberType::from(element).read(rounded, &mut notes);
    Ok(ImageRead::new(image, stored, notes))
}
