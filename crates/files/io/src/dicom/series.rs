//! Which slices are one image, and in which order.

use std::cmp::Ordering;
use std::path::Path;

use rayspin_core::Geometry;
use rayspin_core::slices::{EVEN, SAME_DIRECTION, SAME_PLACE, even_spacing, median, near};
use rayspin_core::vector::{cross, dot};

use super::plane::Plane;
use super::tag;
use super::values::Scale;
use super::volumes;
use crate::element::Element;
use crate::{Error, Held, NumberType, Result, opening};

/// Slices that are this many usual distances apart have others between them, which are missing.
const GAP: f64 = 1.5;
/// How far slices may be shifted in their planes, in pixels, and count as lying behind each other.
const ALIGNED: f64 = 0.05;

/// What to do with frames of one file that are no volume.
pub(super) const FRAMES_APART: &str = "frames of several times or segments, or without places, are read one at a time: write each to a file of its own, \
                            for example with pydicom";

/// The slices of a series.
pub(super) struct Series {
    pub(super) name: String,
    uid: String,
    pub(super) planes: Vec<Plane>,
}

/// The series of some files, in the order of their names: a series' number, or its UID where another has that
/// number.
pub(super) fn all(planes: Vec<Plane>) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for plane in planes {
        match series.iter_mut().find(|series| series.uid == plane.series.0) {
            Some(series) => series.planes.push(plane),
            None => {
                series.push(Series { name: String::new(), uid: plane.series.0.clone(), planes: vec![plane] })
            }
        }
    }
    let number = |series: &Series| series.planes[0].series.1.clone();
    let names: Vec<String> = series
        .iter()
        .map(|one| {
            let own = number(one)
                .filter(|own| series.iter().filter(|s| number(s).as_ref() == Some(own)).count() == 1);
            own.unwrap_or_else(|| one.uid.clone())
        })
        .collect();
    series.iter_mut().zip(names).for_each(|(series, name)| series.name = name);
    series.sort_by(|a, b| match (a.name.parse::<i64>(), b.name.parse::<i64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.name.cmp(&b.name),
    });
    series
}

impl Series {
    fn is_localizer(&self) -> bool {
        self.planes.iter().all(|plane| plane.localizer)
    }

    pub(super) fn held(&self) -> Held {
        Held { what: "image series", name: self.name.clone() }
    }

    /// What it holds, in a line.
    pub(super) fn summary(&self) -> String {
        let first = &self.planes[0];
        let [rows, columns] = first.size;
        let volumes = volumes::split(self.planes.clone()).map_or(1, |(volumes, _)| volumes.len());
        let slices = self.planes.len() / volumes;
        let of = if volumes == 1 { String::new() } else { format!("{volumes} volumes of ") };
        let plural = if slices == 1 { "" } else { "s" };
        format!("{}, {of}{slices} slice{plural} of {columns} x {rows} (columns x rows)", first.modality)
    }
}

/// The series that a name chooses, by its number or UID. Without a name it is the only one, or the only one
/// beside localizers, which a sentence tells. Errors: no such series, or several.
pub(super) fn chosen(
    path: &Path,
    mut series_list: Vec<Series>,
    name: Option<&str>,
) -> Result<(Series, Option<String>)> {
    if let Some(index) = name.and_then(|name| series_list.iter().position(|series| series.uid == name)) {
        return Ok((series_list.swap_remove(index), None));
    }
    let own: Vec<usize> =
        (0..series_list.len()).filter(|&index| !series_list[index].is_localizer()).collect();
    if let (None, [only], true) = (name, &own[..], series_list.len() > 1) {
        let others: Vec<&str> = series_list
            .iter()
            .filter(|series| series.is_localizer())
            .map(|series| series.name.as_str())
            .collect();
        let note = format!(
            "series {} is read: the others ({}) are localizers (ImageType)",
            series_list[*only].name,
            others.join(", ")
        );
        return Ok((series_list.swap_remove(*only), Some(note)));
    }
    let names: Vec<String> = series_list.iter().map(|series| series.name.clone()).collect();
    let wanted = opening::choose(path, "image series", &names, name)?;
    let index = names.iter().position(|name| *name == wanted).unwrap_or_default();
    Ok((series_list.swap_remove(index), None))
}

/// Slices in order, and where they lie.
pub(super) struct Stack {
    pub(super) planes: Vec<Plane>,
    /// Along the normal of the slices, from the first, mm.
    pub(super) heights: Vec<f64>,
    /// How far each slice is shifted along x and y from the first, in pixels; 0 where all lie behind each
    /// other.
    pub(super) shifts: Vec<[f64; 2]>,
    /// The centre of the first pixel of the first slice, LPS, mm.
    pub(super) origin: [f64; 3],
    /// x, y and the normal.
    pub(super) axes: [[f64; 3]; 3],
    /// Along x and y, mm.
    pub(super) spacing: [f64; 2],
    pub(super) notes: Vec<String>,
}

/// The slices of a series without localizers among them, which a sentence tells.
pub(super) fn without_localizers(mut planes: Vec<Plane>) -> (Vec<Plane>, Option<String>) {
    let localizers = planes.iter().filter(|plane| plane.localizer).count();
    if !(1..planes.len()).contains(&localizers) {
        return (planes, None);
    }
    planes.retain(|plane| !plane.localizer);
    let note = format!("{localizers} of the slices are localizers (ImageType), which are left out");
    (planes, Some(note))
}

impl Stack {
    /// Sorts the slices of a volume by their places along their normal.
    ///
    /// Errors: slices of several sizes, orientations or pixel spacings; a slice without a place among
    /// several; two in one place; missing slices.
    pub(super) fn of(mut planes: Vec<Plane>) -> Result<Self> {
        expect_alike(&planes)?;
        expect_scaled_alike(&planes)?;
        let mut notes = meanings(&planes);
        let first = &planes[0];
        if planes.len() > 1 && (first.axes.is_none() || planes.iter().any(|plane| plane.position.is_none())) {
            let expected = "a place and an orientation for each of several slices";
            let name = "ImagePositionPatient and ImageOrientationPatient";
            let plane = planes.iter().find(|plane| plane.position.is_none()).unwrap_or(first);
            let error = Error::field(&plane.file, name, expected, format!("none in {plane}"));
            return Err(match plane.frame {
                (_, 1) => error,
                _ => error.with_hint(FRAMES_APART),
            });
        }
        let unstated = match (first.axes, first.position) {
            (Some(_), Some(_)) => None,
            (None, None) => {
                Some("the file states no place: axes are taken as left, posterior, superior at the isocentre")
            }
            (None, Some(_)) => Some(
                "the file states no ImageOrientationPatient: axes are taken as left, posterior, superior",
            ),
            (Some(_), None) => Some(
                "the file states no ImagePositionPatient: the first pixel is taken to lie at the isocentre",
            ),
        };
        notes.extend(unstated.map(str::to_owned));
        if first.spacing.is_none() {
            notes.push("the file states no PixelSpacing: pixels of 1 mm are assumed".into());
        }
        let [row, column] = first.axes.unwrap_or([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);
        let normal = cross(row, column);
        let [sy, sx] = first.spacing.unwrap_or([1.0; 2]);
        let place = |plane: &Plane| plane.position.unwrap_or_default();
        let height = |plane: &Plane| dot(place(plane), normal);
        let order = |a: &Plane, b: &Plane| height(a).partial_cmp(&height(b)).unwrap_or(Ordering::Equal);
        planes.sort_by(order);
        let (origin, bottom) = (place(&planes[0]), height(&planes[0]));
        let heights: Vec<f64> = planes.iter().map(|plane| height(plane) - bottom).collect();
        expect_complete(&planes, &heights)?;
        let off = |plane: &Plane, axis, step: f64| (dot(place(plane), axis) - dot(origin, axis)) / step;
        let mut shifts: Vec<[f64; 2]> =
            planes.iter().map(|plane| [off(plane, row, sx), off(plane, column, sy)]).collect();
        if shifts.as_flattened().iter().all(|shift| shift.abs() < ALIGNED) {
            shifts.fill([0.0; 2]);
        }
        Ok(Self { planes, heights, shifts, origin, axes: [row, column, normal], spacing: [sx, sy], notes })
    }

    pub(super) fn is_aligned(&self) -> bool {
        self.shifts.iter().all(|shift| *shift == [0.0; 2])
    }

    /// The distance of slices that are evenly spaced.
    pub(super) fn even_spacing(&self) -> Option<f64> {
        match &self.heights[..] {
            [_] => Some(self.lone_thickness()),
            heights => even_spacing(heights),
        }
    }

    /// How many slices seem to be missing: all distances are multiples of the least, and some are not the
    /// least.
    pub(super) fn seem_missing(&self) -> Option<usize> {
        let steps = || self.heights.windows(2).map(|pair| pair[1] - pair[0]);
        let least = steps().fold(f64::MAX, f64::min);
        let places = |step: f64| (step / least).round();
        let on = |step: f64| (step / least - places(step)).abs() <= EVEN;
        let missing = steps().map(|step| places(step) - 1.0).sum::<f64>();
        (steps().all(on) && missing >= 1.0).then_some(missing as usize)
    }

    /// What stands for the distance of a slice without neighbours.
    fn lone_thickness(&self) -> f64 {
        let plane = &self.planes[0];
        plane.between.or(plane.thickness).unwrap_or(1.0)
    }

    /// The place of a volume `[z, y, x]` whose first pixel is `[x, y]` pixels from the first of the stack.
    pub(super) fn geometry(
        &self,
        path: &Path,
        [nz, ny, nx]: [usize; 3],
        step: f64,
        [x, y]: [f64; 2],
    ) -> Result<Geometry> {
        let [sx, sy] = self.spacing;
        let to_centre = [(x + (nx / 2) as f64) * sx, (y + (ny / 2) as f64) * sy, (nz / 2) as f64 * step];
        let position = std::array::from_fn(|i| {
            self.origin[i] + self.axes.iter().zip(to_centre).map(|(axis, mm)| axis[i] * mm).sum::<f64>()
        });
        let [read, phase, slice] = self.axes;
        Geometry::new([sx, sy, step], position, read, phase, slice).map_err(|e| Error::core(path, e))
    }
}

/// What the numbers of slices are stored as: of the first slice, with slope and intercept where all have the
/// same.
pub(super) fn stored(planes: &[Plane]) -> NumberType {
    let first = &planes[0];
    let line = |plane: &Plane| match plane.values.scale {
        Scale::Line(slope, intercept) => Some((slope, intercept)),
        Scale::Table(_) => None,
    };
    // A table has whole numbers of 16 bits.
    let Some(scale) = line(first) else { return Element::U16.into() };
    let alike = planes.iter().all(|plane| line(plane) == Some(scale));
    NumberType::new(first.element, Some(scale).filter(|scale| alike && *scale != (1.0, 0.0)))
}

/// What the numbers are, where they are no plain numbers of their modality, and what was not done to them.
fn meanings(planes: &[Plane]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let mut say = |note: String| {
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    if let Some(plane) = planes.iter().find(|plane| plane.dark) {
        say(format!(
            "MONOCHROME1 shows larger numbers darker: the numbers are as {plane} stores them, not inverted"
        ));
    }
    if let Some(plane) = planes
        .iter()
        .find(|plane| plane.modality == "CT" && plane.values.source.is_none() && plane.values.unit.is_none())
    {
        say(format!(
            "{plane} is CT and states neither RescaleSlope nor RescaleType: its numbers are assumed to be Hounsfield units"
        ));
    }
    for plane in planes {
        plane.notes.iter().for_each(|note| say(note.clone()));
        let stated = plane.values.unit.as_ref().filter(|_| plane.values.quantity(&plane.modality).is_some());
        if let Some((unit, element)) = stated.filter(|_| !plane.values.is_hounsfield(&plane.modality)) {
            let not = if plane.modality == "CT" { ", no Hounsfield units" } else { "" };
            say(format!("values are {unit} ({element}){not}"));
        }
        if let Some(note) = &plane.values.note {
            say(note.clone());
        }
    }
    notes
}

/// Errors: a slice that differs from the first in size, orientation, pixel spacing or unit.
pub(super) fn expect_alike(planes: &[Plane]) -> Result<()> {
    let first = &planes[0];
    let refuse = |plane: &Plane, what: &str, own: String, others: String| {
        Err(Error::field(&plane.file, what, format!("{others} as in {first}"), format!("{own} in {plane}"))
            .with_hint("give the slices of one orientation and size a folder of their own"))
    };
    for plane in planes {
        let size = |plane: &Plane| format!("{} x {}", plane.size[0], plane.size[1]);
        if plane.size != first.size {
            return refuse(plane, "Rows and Columns", size(plane), size(first));
        }
        let flat = |plane: &Plane| plane.axes.map(|axes| axes.concat());
        let text = |plane: &Plane| match flat(plane) {
            Some(axes) => axes.iter().map(|v| format!("{v:.4}")).collect::<Vec<_>>().join(" "),
            None => "none".into(),
        };
        let alike = match (flat(plane), flat(first)) {
            (Some(own), Some(others)) => near(&own, &others, SAME_DIRECTION),
            (own, others) => own.is_none() && others.is_none(),
        };
        if !alike {
            return refuse(plane, tag::ORIENTATION.name, text(plane), text(first));
        }
        let text = |plane: &Plane| plane.spacing.map_or("none".into(), |[y, x]| format!("{y} x {x} mm"));
        let alike = match (plane.spacing, first.spacing) {
            (Some(own), Some(others)) => near(&own, &others, 1e-3 * others[0].min(others[1])),
            (own, others) => own.is_none() && others.is_none(),
        };
        if !alike {
            return refuse(plane, tag::PIXEL_SPACING.name, text(plane), text(first));
        }
        let unit = |plane: &Plane| plane.values.quantity(&plane.modality).map(str::to_owned);
        // A type that says nothing (US) may stand beside another one.
        let unstated = |plane: &Plane| plane.values.unit.is_none() && unit(plane).is_none();
        match (unit(plane), unit(first)) {
            (Some(own), Some(others)) if own != others => {
                return refuse(plane, tag::RESCALE_TYPE.name, own, others);
            }
            (Some(own), None) if unstated(first) => {
                return refuse(plane, tag::RESCALE_TYPE.name, own, "none".into());
            }
            (None, Some(others)) if unstated(plane) => {
                return refuse(plane, tag::RESCALE_TYPE.name, "none".into(), others);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Errors: slices that lack what gives the values of others.
pub(super) fn expect_scaled_alike(planes: &[Plane]) -> Result<()> {
    let refuse = |with: &Plane, without: &Plane, name: &str, found: &str| {
        Err(Error::field(
            &without.file,
            name,
            format!("{name} in each slice, as in {with}"),
            format!("{found} in {without}"),
        )
        .with_hint("add what is missing, or give the slices that state it a folder of their own"))
    };
    let Some(scaled) = planes.iter().find(|plane| !plane.values.is_plain()) else { return Ok(()) };
    let source = scaled.values.source;
    if let (Some(name), Some(other)) = (source, planes.iter().find(|plane| plane.values.source != source)) {
        return refuse(scaled, other, name, other.values.source.unwrap_or("none"));
    }
    for (index, name, neutral) in [(0, tag::SLOPE.name, 1.0), (1, tag::INTERCEPT.name, 0.0)] {
        let stated = |plane: &Plane| plane.values.stated[index];
        let with = planes.iter().find(|plane| stated(plane).is_some_and(|number| number != neutral));
        let without = planes.iter().find(|plane| stated(plane).is_none());
        if let (Some(with), Some(without)) = (with, without) {
            return refuse(with, without, name, "none");
        }
    }
    Ok(())
}

/// Errors: two sorted slices in one place, or slices that are missing between two. Slices of one thickness
/// have one usual
/// distance, their median: a series may change from thin to thick slices.
fn expect_complete(planes: &[Plane], heights: &[f64]) -> Result<()> {
    let steps: Vec<f64> = heights.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let same = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-3 * a,
        (a, b) => a.is_none() && b.is_none(),
    };
    let usual = |thickness: Option<f64>| {
        let alike = |index: &usize| [*index, index + 1].iter().all(|&i| same(planes[i].thickness, thickness));
        median((0..steps.len()).filter(alike).map(|index| steps[index]).collect())
    };
    let median_step = median(steps.clone()).unwrap_or(0.0);
    for (index, &step) in steps.iter().enumerate() {
        let (one, next) = (&planes[index], &planes[index + 1]);
        if step <= SAME_PLACE * median_step || step == 0.0 {
            let hint = if one.file == next.file { FRAMES_APART } else { "remove one of them" };
            return Err(Error::field(
                &next.file,
                tag::POSITION.name,
                "a place of its own for each slice",
                format!("that of {one} in {next}"),
            )
            .with_hint(hint));
        }
        let most = [one, next].iter().filter_map(|plane| usual(plane.thickness)).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { median_step };
        if step > GAP * most {
            let missing = ((step / most).round() - 1.0).max(1.0);
            return Err(Error::field(
                &next.file,
                "series",
                format!("slices every {most:.2} mm"),
                format!("{step:.2} mm between {one} and {next}: {missing} missing"),
            )
            .with_hint("add the missing slices, or give each part a folder of its own"));
        }
    }
    Ok(())
}
