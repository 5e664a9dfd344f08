//! What the header says of each slice.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayspin_core::vector::{cross, dot, norm, scaled, sub};

use super::dataset::{Dataset, File};
use super::mosaic::MosaicPlane;
use super::pixels::{self, Layout};
use super::tag::{self, Tag};
use super::values::{self, Table, Values};
use super::volumes::{self, Telling};
use crate::element::Element;
use crate::error;
use crate::{Error, Result};

/// A slice: a file of one, a frame of several, or a tile of a mosaic.
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
    /// What stored numbers mean.
    pub(super) values: Values,
    pub(super) padding: Option<(f64, f64)>,
    /// The type of the stored numbers.
    pub(super) element: Element,
    pub(super) localizer: bool,
    /// Whether larger numbers are shown darker.
    pub(super) dark: bool,
    pub(super) modality: String,
    /// The UID of the series, and its number.
    pub(super) series: (String, Option<String>),
    /// Its number among the images of the series.
    pub(super) number: Option<i64>,
    /// What may tell its volume from others of the series.
    pub(super) telling: Telling,
    /// How many images there are with this one, and the element that says so.
    pub(super) stated_count: Option<(usize, &'static str)>,
    /// Sentences on what is assumed.
    pub(super) notes: Vec<String>,
}

/// The file's name, and the frame's number where there are several.
impl fmt::Display for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&error::name(&self.file))?;
        match self.frame {
            (_, 1) => Ok(()),
            (frame, _) => write!(f, " frame {}", frame + 1),
        }
    }
}

/// Where the elements of a frame stand: its own groups, the groups of all frames, and the file's elements.
pub(super) struct Scopes<'a> {
    own: Option<&'a Dataset<'a>>,
    shared: Option<&'a Dataset<'a>>,
    pub(super) dataset: &'a Dataset<'a>,
}

impl<'a> Scopes<'a> {
    /// What holds an element of a group.
    pub(super) fn of(&self, group: Tag, tag: Tag) -> &'a Dataset<'a> {
        let in_group = |groups: Option<&'a Dataset<'a>>| {
            groups.and_then(|groups| groups.items(group).first()).filter(|item| item.get(tag).is_some())
        };
        in_group(self.own).or_else(|| in_group(self.shared)).unwrap_or(self.dataset)
    }

    fn numbers<const N: usize>(&self, path: &Path, group: Tag, tag: Tag) -> Result<Option<[f64; N]>> {
        self.of(group, tag).numbers(path, tag)
    }

    pub(super) fn number(&self, path: &Path, group: Tag, tag: Tag) -> Result<Option<f64>> {
        self.of(group, tag).number(path, tag)
    }

    /// The items of a group.
    pub(super) fn items(&self, group: Tag) -> &'a [Dataset<'a>] {
        let scopes = [self.own, self.shared, Some(self.dataset)].into_iter().flatten();
        scopes.map(|groups| groups.items(group)).find(|items| !items.is_empty()).unwrap_or_default()
    }
}

/// What a file holds.
pub(super) enum Found {
    Slices(Vec<Plane>),
    /// No image, as reports hold none.
    Nothing,
    /// Images that are no slices of numbers, and why.
    Aside(PathBuf, String),
}

/// The slices of a file.
///
/// Errors: no DICOM file, or damaged; an image without its pixels; pixels of a kind that is not read; numbers
/// that no valid file has.
pub(super) fn found(path: &Path) -> Result<Found> {
    let file = File::read(path)?;
    let dataset = file.dataset()?;
    if pixels::holder(&dataset).is_none() {
        // A file that was cut between two elements. Spectra have rows and columns, too.
        let is_image = dataset.get(tag::ROWS).is_some() && dataset.get(tag::SPECTROSCOPY).is_none();
        return match is_image || dataset.text(tag::SOP_CLASS).is_some_and(|class| is_slice(&class)) {
            true => Err(Error::truncated(path, "the image", tag::PIXEL_DATA.name, "none")),
            false => Ok(Found::Nothing),
        };
    }
    if let Some(reason) = pixels::aside(&dataset) {
        return Ok(Found::Aside(path.to_owned(), reason));
    }
    let layout = Layout::of(path, &file, &dataset)?;
    let table = values::table(path, &dataset, layout.signed)?;
    let offsets = offsets(path, &dataset, layout.slices())?;
    let planes =
        (0..layout.slices()).map(|slice| plane(path, &dataset, &layout, slice, &offsets, table.as_ref()));
    planes.collect::<Result<_>>().map(Found::Slices)
}

/// Whether the files of a class are slices: of CT, MR, PET, nuclear medicine, and RT Dose.
fn is_slice(class: &str) -> bool {
    let Some(number) = class.strip_prefix("1.2.840.10008.5.1.4.1.1.") else { return false };
    ["2", "2.1", "2.2", "4", "4.1", "4.4", "20", "128", "128.1", "130", "481.2"].contains(&number)
}

/// The heights of the frames of RT Dose above the first, mm; none where the file states none.
fn offsets(path: &Path, dataset: &Dataset<'_>, frames: usize) -> Result<Vec<f64>> {
    let Some(offsets) = dataset.decimals(path, tag::FRAME_OFFSETS)? else { return Ok(Vec::new()) };
    match offsets.len() == frames {
        true => Ok(offsets.iter().map(|offset| offset - offsets[0]).collect()),
        false => {
            let expected = format!("{frames} numbers, one for each frame");
            Err(Error::field(path, tag::FRAME_OFFSETS.name, expected, offsets.len()))
        }
    }
}

fn plane(
    path: &Path,
    dataset: &Dataset<'_>,
    layout: &Layout,
    slice: usize,
    offsets: &[f64],
    table: Option<&Arc<Table>>,
) -> Result<Plane> {
    let groups = Scopes {
        own: dataset.items(tag::PER_FRAME).get(slice),
        shared: dataset.items(tag::SHARED).first(),
        dataset,
    };
    let mut notes: Vec<String> = layout.note(dataset).into_iter().collect();
    let spacing = spacing(path, &groups, &mut notes)?;
    let cosines = groups.numbers::<6>(path, tag::PLANE_ORIENTATION, tag::ORIENTATION)?;
    let axes = match cosines {
        None => None,
        Some(cosines) => Some(unit_axes(cosines).ok_or_else(|| {
            let expected = "two unit vectors at a right angle";
            Error::field(path, tag::ORIENTATION.name, expected, format!("{cosines:?}"))
        })?),
    };
    let text = |tag| dataset.text(tag).map(|text| text.into_owned());
    let thickness = groups.number(path, tag::PIXEL_MEASURES, tag::THICKNESS)?.filter(|&mm| mm > 0.0);
    let between = groups.number(path, tag::PIXEL_MEASURES, tag::BETWEEN_SLICES)?.filter(|&mm| mm > 0.0);
    let mut position = groups.numbers(path, tag::PLANE_POSITION, tag::POSITION)?;
    if let (Some(place), Some([row, column]), Some(&offset)) = (&mut position, axes, offsets.get(slice)) {
        let normal = cross(row, column);
        *place = std::array::from_fn(|i| place[i] + offset * normal[i]);
    }
    if let Some(mosaic) = layout.mosaic {
        let stated = position.zip(spacing).zip(axes).zip(between);
        let Some((((corner, spacing), axes), between)) = stated else {
            let expected = "a place, an orientation, PixelSpacing and SpacingBetweenSlices";
            return Err(mosaic.refused(path, expected, "not all of them"));
        };
        if !mosaic.is_straight(cross(axes[0], axes[1])) {
            let found = format!("SliceNormalVector {:?}", mosaic.normal);
            return Err(mosaic.refused(path, "slices along the normal of their planes", found));
        }
        notes.extend(mosaic.note());
        let mosaic_plane = MosaicPlane { corner, size: layout.size, spacing, axes };
        position = Some(mosaic.place(slice, mosaic_plane, between));
    }
    Ok(Plane {
        file: path.to_owned(),
        frame: (slice, layout.slices()),
        size: layout.slice_size(),
        spacing,
        axes,
        position,
        thickness,
        between,
        values: Values::of(path, &groups, table)?,
        padding: layout.padding(dataset),
        element: layout.element(),
        localizer: dataset
            .text(tag::IMAGE_TYPE)
            .is_some_and(|text| text.split('\\').any(|word| word == "LOCALIZER")),
        dark: dataset.text(tag::PHOTOMETRIC).is_some_and(|text| text == "MONOCHROME1"),
        modality: text(tag::MODALITY).unwrap_or_else(|| "of no stated modality".into()),
        series: (text(tag::SERIES).unwrap_or_default(), text(tag::SERIES_NUMBER)),
        number: text(tag::INSTANCE).and_then(|number| number.trim().parse().ok()),
        telling: volumes::telling(&groups),
        stated_count: stated_count(dataset),
        notes,
    })
}

/// How many images a file says there are with this one, and the element that says so. A number that cannot be
/// read says nothing.
fn stated_count(dataset: &Dataset<'_>) -> Option<(usize, &'static str)> {
    let text = |tag: Tag| Some((dataset.text(tag)?.trim().parse().ok()?, tag.name));
    let slices = dataset.short(tag::SLICES).map(|count| (count.into(), tag::SLICES.name));
    slices.or_else(|| text(tag::IN_ACQUISITION)).or_else(|| text(tag::IN_SERIES))
}

/// Elements that state distances of pixels elsewhere than in the patient, and where.
const OTHER_SPACINGS: [(Tag, &str); 3] = [
    (tag::IMAGER_SPACING, "at the detector, where the patient appears enlarged"),
    (tag::NOMINAL_SPACING, "on the scanned film"),
    (tag::IMAGE_PLANE_SPACING, "in the plane of the image receptor"),
];

/// The distances between rows and between columns, mm. Without `PixelSpacing` another element states them,
/// which a sentence tells.
///
/// Errors: distances that are not positive.
fn spacing(path: &Path, groups: &Scopes<'_>, notes: &mut Vec<String>) -> Result<Option<[f64; 2]>> {
    if let Some(spacing) = groups.numbers::<2>(path, tag::PIXEL_MEASURES, tag::PIXEL_SPACING)? {
        return match spacing.iter().all(|&mm| mm > 0.0) {
            true => Ok(Some(spacing)),
            false => {
                Err(Error::field(path, tag::PIXEL_SPACING.name, "positive distances", format!("{spacing:?}")))
            }
        };
    }
    for (tag, place) in OTHER_SPACINGS {
        let spacing = groups.dataset.numbers::<2>(path, tag)?;
        if let Some([y, x]) = spacing.filter(|spacing| spacing.iter().all(|&mm| mm > 0.0)) {
            notes.push(format!(
                "the file states no PixelSpacing: pixels of {x} x {y} mm are taken from {}, which are distances {place}",
                tag.name
            ));
            return Ok(Some([y, x]));
        }
    }
    Ok(None)
}

/// Unit vectors along a row and a column; none where the cosines are not orthonormal within 1e-3. The column
/// is turned into the right angle exactly.
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
