//! What the stored numbers of a frame mean: PS3.3 C.11.1 (Modality LUT), C.7.6.16.2.9 (Pixel Value
//! Transformation), C.7.6.16.2.11 (Real World Value Mapping), C.8.8.3 (RT Dose) and C.8.20.2 (Segmentation).

use std::path::Path;
use std::sync::Arc;

use super::dataset::Dataset;
use super::plane::Scopes;
use super::tag;
use crate::{Error, Result};

/// The numbers of a CT image, where no unit is stated.
const HOUNSFIELD: &str = "HU";
/// Hounsfield units as UCUM writes them.
const UCUM_HOUNSFIELD: &str = "[hnsf'U]";
/// A type of numbers that says nothing.
const UNSPECIFIED: &str = "US";
/// Numbers without a unit in UCUM.
const NO_UNIT: &str = "1";
/// Slope and intercept of numbers that are as they are stored.
const IDENTITY: (f64, f64) = (1.0, 0.0);

/// How stored numbers become values.
#[derive(Debug, Clone)]
pub(super) enum Scale {
    /// Slope · stored + intercept.
    Line(f64, f64),
    Table(Arc<Table>),
}

impl Scale {
    /// The value of a stored number.
    pub(super) fn value(&self, stored: f64) -> f32 {
        match self {
            Self::Line(slope, intercept) => (slope * stored + intercept) as f32,
            Self::Table(table) => table.value(stored as i64),
        }
    }
}

/// The values of the stored numbers from `first` on. Numbers before and behind have the values of the ends.
#[derive(Debug)]
pub(super) struct Table {
    first: i64,
    values: Vec<u16>,
}

impl Table {
    fn value(&self, stored: i64) -> f32 {
        let last = self.values.len().saturating_sub(1);
        let index = usize::try_from(stored.saturating_sub(self.first)).unwrap_or(0).min(last);
        self.values.get(index).copied().unwrap_or_default().into()
    }
}

/// Real numbers that differ by less than this part are the same, rounded: decimal ones have few digits.
const SAME: f64 = 1e-5;

/// The values of a frame.
#[derive(Debug, Clone)]
pub(super) struct Values {
    pub(super) scale: Scale,
    /// What they are, as the file states it, and the element that does.
    pub(super) unit: Option<(String, &'static str)>,
    /// A sentence on another meaning that the file states.
    pub(super) note: Option<String>,
    /// The element that gives them; none where they are read as they are stored.
    pub(super) source: Option<&'static str>,
    /// `RescaleSlope` and `RescaleIntercept`, where these give the values.
    pub(super) stated: [Option<f64>; 2],
}

impl Values {
    /// The values of a frame. A table of the file is read once, for all of them.
    ///
    /// Errors: a slope of 0; a table that is cut short; fractions without the number that stands for 1.
    pub(super) fn of(path: &Path, groups: &Scopes<'_>, table: Option<&Arc<Table>>) -> Result<Self> {
        let dataset = groups.dataset;
        let unit_in =
            |data: &Dataset<'_>, tag: tag::Tag| data.text(tag).map(|unit| (unit.into_owned(), tag.name));
        let given = |scale, source: tag::Tag, unit, note| {
            Ok(Self { scale, unit, note, source: Some(source.name), stated: [None; 2] })
        };
        let line = |slope: f64, intercept: f64, name: &str| match slope {
            0.0 => Err(Error::field(path, name, "another number than 0", slope)),
            _ => Ok(Scale::Line(slope, intercept)),
        };
        let slope = groups.number(path, tag::TRANSFORMATION, tag::SLOPE)?;
        let intercept = groups.number(path, tag::TRANSFORMATION, tag::INTERCEPT)?;
        let is_scaled = slope.is_some() || intercept.is_some();
        if let Some(table) = table {
            let unit = dataset.items(tag::LUT).first().and_then(|lut| unit_in(lut, tag::LUT_TYPE));
            let note =
                is_scaled.then(|| "ModalityLUTSequence gives the values: RescaleSlope is not applied".into());
            return given(Scale::Table(table.clone()), tag::LUT, unit, note);
        }
        if let Some(dose) = dataset.number(path, tag::DOSE_SCALING)? {
            let scale = line(dose, 0.0, tag::DOSE_SCALING.name)?;
            return given(scale, tag::DOSE_SCALING, unit_in(dataset, tag::DOSE_UNITS), None);
        }
        if dataset.text(tag::SEGMENTATION).is_some_and(|kind| kind == "FRACTIONAL") {
            let most = dataset.short(tag::MOST_FRACTION).filter(|&most| most > 0).ok_or_else(|| {
                Error::field(path, tag::MOST_FRACTION.name, "the number that stands for 1", "none, or 0")
            })?;
            let scale = Scale::Line(1.0 / f64::from(most), 0.0);
            return given(scale, tag::MOST_FRACTION, unit_in(dataset, tag::FRACTION_TYPE), None);
        }
        let (m, b) = (slope.unwrap_or(1.0), intercept.unwrap_or(0.0));
        let rescaled = Self {
            scale: line(m, b, tag::SLOPE.name)?,
            unit: unit_in(groups.of(tag::TRANSFORMATION, tag::RESCALE_TYPE), tag::RESCALE_TYPE),
            note: None,
            source: is_scaled.then_some(tag::SLOPE.name),
            stated: [slope, intercept],
        };
        // Parametric maps must state the identity, of no type: it says nothing about the values.
        let modality = dataset.text(tag::MODALITY).unwrap_or_default();
        let is_said = is_scaled && ((m, b) != IDENTITY || rescaled.quantity(&modality).is_some());
        Ok(rescaled.mapped((m, b), groups.items(tag::REAL_VALUES), is_said))
    }

    /// These values, slope · stored + intercept, beside mappings to real-world values. With `is_said` the
    /// slope or the type states the values; else a single mapping does.
    fn mapped(self, own: (f64, f64), mappings: &[Dataset<'_>], is_said: bool) -> Self {
        let line = |one: &Dataset<'_>| one.double(tag::REAL_SLOPE).zip(one.double(tag::REAL_INTERCEPT));
        let agrees = |one: &Dataset<'_>| line(one).is_some_and(|line| same(line, own));
        let unit = |one: &Dataset<'_>| {
            let code = one.items(tag::REAL_UNITS).first()?.text(tag::CODE)?.into_owned();
            Some((code, tag::REAL_UNITS.name))
        };
        if mappings.iter().all(agrees) {
            let unit = match mappings {
                [one] if self.quantity("").is_none() => unit(one).filter(|(unit, _)| unit != NO_UNIT),
                _ => None,
            };
            return Self { unit: unit.or(self.unit), ..self };
        }
        if let [one] = mappings
            && let Some((slope, intercept)) = line(one)
            && !is_said
            && slope != 0.0
            && slope.is_finite()
            && intercept.is_finite()
        {
            let source = Some(tag::REAL_VALUES.name);
            return Self {
                scale: Scale::Line(slope, intercept),
                unit: unit(one),
                note: None,
                source,
                stated: [None; 2],
            };
        }
        let kept =
            if is_said { "RescaleSlope gives the values" } else { "numbers are read as they are stored" };
        let note = format!("{kept}: RealWorldValueMappingSequence states others, which are not applied");
        Self { note: Some(note), ..self }
    }

    /// The unit, where it is one: Hounsfield units for CT images without a stated one (C.8.2.1).
    pub(super) fn quantity(&self, modality: &str) -> Option<&str> {
        match self.unit.as_ref().map(|(unit, _)| unit.as_str()) {
            None if modality == "CT" => Some(HOUNSFIELD),
            Some(unit) if unit == UCUM_HOUNSFIELD || unit.eq_ignore_ascii_case(HOUNSFIELD) => {
                Some(HOUNSFIELD)
            }
            Some(UNSPECIFIED | NO_UNIT) | None => None,
            unit => unit,
        }
    }

    /// True for Hounsfield units.
    pub(super) fn is_hounsfield(&self, modality: &str) -> bool {
        modality == "CT" && self.quantity(modality) == Some(HOUNSFIELD)
    }

    /// True for numbers that are as they are stored.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.scale, Scale::Line(slope, intercept) if (slope, intercept) == IDENTITY)
    }
}

/// Whether two lines, slope and intercept, are the same but for their digits.
fn same(one: (f64, f64), other: (f64, f64)) -> bool {
    let size = other.0.abs().max(other.1.abs());
    (one.0 - other.0).abs() <= SAME * other.0.abs() && (one.1 - other.1).abs() <= SAME * size
}

/// The table of a file's values, if it has one. `signed` says how the first stored number is to be
/// understood.
///
/// Errors: fewer numbers than the descriptor promises.
pub(super) fn table(path: &Path, dataset: &Dataset<'_>, signed: bool) -> Result<Option<Arc<Table>>> {
    let Some(lut) = dataset.items(tag::LUT).first() else { return Ok(None) };
    let descriptor = lut.shorts(tag::LUT_DESCRIPTOR);
    let [entries, first, bits] = descriptor[..] else {
        let found = format!("{} numbers", descriptor.len());
        return Err(Error::field(path, tag::LUT_DESCRIPTOR.name, "3 numbers", found));
    };
    // 16 bits cannot state the most entries.
    let entries = if entries == 0 { 1 << 16 } else { usize::from(entries) };
    let first = if signed { i64::from(first as i16) } else { first.into() };
    let mut values = lut.shorts(tag::LUT_DATA);
    if bits == 8 && values.len() < entries {
        // Two entries in each word, the first in its low byte.
        values = values.into_iter().flat_map(u16::to_le_bytes).map(u16::from).collect();
    }
    if values.len() < entries {
        let found = format!("{} entries", values.len());
        return Err(Error::truncated(path, tag::LUT_DATA.name, format!("{entries} entries"), found));
    }
    values.truncate(entries);
    Ok(Some(Arc::new(Table { first, values })))
}
