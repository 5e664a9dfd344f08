//! What the header says of each slice.

use std::fmt;
use std::path::{Path, PathBuf};

use rayspin_core::vector::{dot, norm, scaled, sub};

use super::dataset::{Dataset, File};
use super::pixels::Layout;
use super::tag::{self, Tag};
use crate::element::Element;
use crate::folder;
use crate::{Error, Result};

/// A slice: a file of one, or a frame of several.
#[derive(Debug, Clone)]
pub(super) struct Plane {
    pub(super) file: PathBuf,
    /// The frame from 0, and how many the file has.
    pub(super) frame: (usize, usize),
    /// Rows and columns.
    pub(super) size: [usize; 2],
    /// Distances between rows and between columns, mm.
    pub(super) spacing: Option<[f64; 2]>,
    /// Unit vectors along a row and along a column, LPS.
    pub(super) axes: Option<[[f64; 3]; 2]>,
    /// The centre of the first pixel, LPS, mm.
    pub(super) position: Option<[f64; 3]>,
    pub(super) thickness: Option<f64>,
    pub(super) between: Option<f64>,
    /// What stored numbers are multiplied by, and what is added then.
    pub(super) scale: (f64, f64),
    pub(super) padding: Option<(i64, i64)>,
    /// The type of the stored numbers.
    pub(super) element: Element,
    pub(super) localizer: bool,
    pub(super) modality: String,
    /// True for Hounsfield units. CT images have them unless another type is stated (PS3.3, C.8.2.1).
    pub(super) hounsfield: bool,
    /// The UID of the series, and its number.
    pub(super) series: (String, Option<String>),
}

/// The file's name, and the frame's number where there are several.
impl fmt::Display for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&folder::name(&self.file))?;
        match self.frame {
            (_, 1) => Ok(()),
            (frame, _) => write!(f, " frame {}", frame + 1),
        }
    }
}

/// Where the elements of a frame stand: its own groups, the groups of all frames, and the file's elements.
struct Scopes<'a> {
    own: Option<&'a Dataset<'a>>,
    shared: Option<&'a Dataset<'a>>,
    all: &'a Dataset<'a>,
}

impl<'a> Scopes<'a> {
    fn of(&self, group: Tag, tag: Tag) -> &'a Dataset<'a> {
        let in_group = |groups: Option<&'a Dataset<'a>>| {
            groups.and_then(|groups| groups.items(group).first()).filter(|item| item.get(tag).is_some())
        };
        in_group(self.own).or_else(|| in_group(self.shared)).unwrap_or(self.all)
    }

    fn numbers<const N: usize>(&self, path: &Path, group: Tag, tag: Tag) -> Result<Option<[f64; N]>> {
        self.of(group, tag).numbers(path, tag)
    }

    fn number(&self, path: &Path, group: Tag, tag: Tag) -> Result<Option<f64>> {
        self.of(group, tag).number(path, tag)
    }
}

/// The slices of a file; none of a file without pixels, such as a report.
///
/// Errors: no DICOM file, or damaged; pixels of a kind that is not read; numbers that no valid file has.
pub(super) fn planes(path: &Path) -> Result<Vec<Plane>> {
    let file = File::read(path)?;
    let all = file.dataset()?;
    if all.get(tag::PIXEL_DATA).is_none() {
        return Ok(Vec::new());
    }
    let layout = Layout::of(path, &file, &all)?;
    (0..layout.frames).map(|frame| plane(path, &all, &layout, frame)).collect()
}

fn plane(path: &Path, all: &Dataset<'_>, layout: &Layout, frame: usize) -> Result<Plane> {
    let groups =
        Scopes { own: all.items(tag::PER_FRAME).get(frame), shared: all.items(tag::SHARED).first(), all };
    let spacing = groups.numbers::<2>(path, tag::PIXEL_MEASURES, tag::PIXEL_SPACING)?;
    if let Some(found) = spacing.filter(|spacing| spacing.iter().any(|&mm| mm <= 0.0)) {
        return Err(Error::field(path, tag::PIXEL_SPACING.name, "positive distances", format!("{found:?}")));
    }
    let cosines = groups.numbers::<6>(path, tag::PLANE_ORIENTATION, tag::ORIENTATION)?;
    let axes = match cosines {
        None => None,
        Some(found) => Some(unit_axes(found).ok_or_else(|| {
            let expected = "two unit vectors at a right angle";
            Error::field(path, tag::ORIENTATION.name, expected, format!("{found:?}"))
        })?),
    };
    let slope = groups.number(path, tag::TRANSFORMATION, tag::SLOPE)?.unwrap_or(1.0);
    if slope == 0.0 {
        return Err(Error::field(path, tag::SLOPE.name, "another number than 0", slope));
    }
    let text = |tag| all.text(tag).map(|text| text.into_owned());
    Ok(Plane {
        file: path.to_owned(),
        frame: (frame, layout.frames),
        size: layout.size,
        spacing,
        axes,
        position: groups.numbers(path, tag::PLANE_POSITION, tag::POSITION)?,
        thickness: groups.number(path, tag::PIXEL_MEASURES, tag::THICKNESS)?.filter(|&mm| mm > 0.0),
        between: groups.number(path, tag::PIXEL_MEASURES, tag::BETWEEN_SLICES)?.filter(|&mm| mm > 0.0),
        scale: (slope, groups.number(path, tag::TRANSFORMATION, tag::INTERCEPT)?.unwrap_or(0.0)),
        padding: layout.padding(all),
        element: layout.element(),
        localizer: all
            .text(tag::IMAGE_TYPE)
            .is_some_and(|text| text.split('\\').any(|word| word == "LOCALIZER")),
        hounsfield: all.text(tag::MODALITY).is_some_and(|modality| modality == "CT")
            && all.text(tag::RESCALE_TYPE).is_none_or(|unit| unit == "HU"),
        modality: text(tag::MODALITY).unwrap_or_else(|| "of no stated modality".into()),
        series: (text(tag::SERIES).unwrap_or_default(), text(tag::SERIES_NUMBER)),
    })
}

/// Unit vectors along a row and a column; none where the cosines are not orthonormal within 1e-3. The column is turned into the
/// right angle exactly.
fn unit_axes([a, b, c, d, e, f]: [f64; 6]) -> Option<[[f64; 3]; 2]> {
    let (row, column) = ([a, b, c], [d, e, f]);
    let (along, across, mixed) = (dot(row, row), dot(column, column), dot(row, column));
    if [along - 1.0, across - 1.0, mixed].iter().any(|off| off.is_nan() || off.abs() > 1e-3) {
        return None;
    }
    let row = scaled(row, 1.0 / along.sqrt());
    let column = sub(column, scaled(row, dot(row, column)));
    Some([row, scaled(column, 1.0 / norm(column))])
}
