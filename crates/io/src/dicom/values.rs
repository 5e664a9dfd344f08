//! What the stored numbers of a frame mean: PS3.3 C.11.1 (Modality LUT), C.7.6.16.2.9 (Pixel Value Transformation), C.7.6.16.2.11 (Real
//! World Value Mapping) and C.8.8.3 (RT Dose).

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

/// How stored numbers become values.
#[derive(Debug, Clone)]
pub(super) enum Scale {
    /// Slope · stored + intercept.
    Line(f64, f64),
    Table(Arc<Table>),
}

/// The values of the stored numbers from `first` on. Numbers before and behind have the values of the ends.
#[derive(Debug)]
pub(super) struct Table {
    first: i64,
    values: Vec<u16>,
}

impl Table {
    pub(super) fn value(&self, stored: i64) -> f32 {
        let last = self.values.len().saturating_sub(1);
        let at = usize::try_from(stored.saturating_sub(self.first)).unwrap_or(0).min(last);
        self.values.get(at).copied().unwrap_or_default().into()
    }
}

/// The values of a frame.
#[derive(Debug, Clone)]
pub(super) struct Values {
    pub(super) scale: Scale,
    /// What they are, as the file states it, and the element that does.
    pub(super) unit: Option<(String, &'static str)>,
    /// A sentence on another meaning that the file states.
    pub(super) note: Option<String>,
}

impl Values {
    /// The values of a frame. A table of the file is read once, for all of them.
    ///
    /// Errors: a slope of 0; a table that is cut short.
    pub(super) fn of(path: &Path, groups: &Scopes<'_>, table: Option<&Arc<Table>>) -> Result<Self> {
        let all = groups.all;
        let stated =
            |data: &Dataset<'_>, tag: tag::Tag| data.text(tag).map(|unit| (unit.into_owned(), tag.name));
        let slope = groups.number(path, tag::TRANSFORMATION, tag::SLOPE)?;
        let intercept = groups.number(path, tag::TRANSFORMATION, tag::INTERCEPT)?;
        let is_scaled = slope.is_some() || intercept.is_some();
        if let Some(table) = table {
            let unit = all.items(tag::LUT).first().and_then(|lut| stated(lut, tag::LUT_TYPE));
            let note =
                is_scaled.then(|| "ModalityLUTSequence gives the values: RescaleSlope is not applied".into());
            return Ok(Self { scale: Scale::Table(table.clone()), unit, note });
        }
        let line = |slope: f64, intercept: f64, name: &str| match slope {
            0.0 => Err(Error::field(path, name, "another number than 0", slope)),
            _ => Ok(Scale::Line(slope, intercept)),
        };
        if let Some(dose) = all.number(path, tag::DOSE_SCALING)? {
            let scale = line(dose, 0.0, tag::DOSE_SCALING.name)?;
            return Ok(Self { scale, unit: stated(all, tag::DOSE_UNITS), note: None });
        }
        let unit = stated(groups.of(tag::TRANSFORMATION, tag::RESCALE_TYPE), tag::RESCALE_TYPE);
        let rescaled = (slope.unwrap_or(1.0), intercept.unwrap_or(0.0));
        let scale = line(rescaled.0, rescaled.1, tag::SLOPE.name)?;
        let real = groups.items(tag::REAL_VALUES);
        let lines = || {
            let pair = |one: &Dataset<'_>| one.double(tag::REAL_SLOPE).zip(one.double(tag::REAL_INTERCEPT));
            real.iter().map(pair)
        };
        if real.is_empty() || lines().all(|pair| pair == Some(rescaled)) {
            return Ok(Self { scale, unit, note: None });
        }
        let mapped = lines().next().flatten().filter(|(slope, intercept)| {
            real.len() == 1 && *slope != 0.0 && slope.is_finite() && intercept.is_finite()
        });
        match mapped {
            Some((slope, intercept)) if !is_scaled => {
                let code = real[0].items(tag::REAL_UNITS).first();
                let unit =
                    code.and_then(|code| Some((code.text(tag::CODE)?.into_owned(), tag::REAL_UNITS.name)));
                Ok(Self { scale: Scale::Line(slope, intercept), unit, note: None })
            }
            _ => {
                let kept = if is_scaled {
                    "RescaleSlope gives the values"
                } else {
                    "numbers are read as they are stored"
                };
                let note = Some(format!(
                    "{kept}: RealWorldValueMappingSequence states others, which are not applied"
                ));
                Ok(Self { scale, unit, note })
            }
        }
    }

    /// The unit, where it is one: Hounsfield units for CT images without a stated one (C.8.2.1).
    pub(super) fn quantity(&self, modality: &str) -> Option<&str> {
        match self.unit.as_ref().map(|(unit, _)| unit.as_str()) {
            None if modality == "CT" => Some(HOUNSFIELD),
            Some(UCUM_HOUNSFIELD) => Some(HOUNSFIELD),
            Some(UNSPECIFIED) | None => None,
            unit => unit,
        }
    }

    /// True for Hounsfield units.
    pub(super) fn is_hounsfield(&self, modality: &str) -> bool {
        modality == "CT" && self.quantity(modality) == Some(HOUNSFIELD)
    }
}

/// The table of a file's values, if it has one. `signed` says how the first stored number is to be understood.
///
/// Errors: fewer numbers than the descriptor promises.
pub(super) fn table(path: &Path, all: &Dataset<'_>, signed: bool) -> Result<Option<Arc<Table>>> {
    let Some(lut) = all.items(tag::LUT).first() else { return Ok(None) };
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
        // Two entries in each word.
        values = lut.bytes(tag::LUT_DATA).iter().map(|&byte| byte.into()).collect();
    }
    if values.len() < entries {
        let found = format!("{} entries", values.len());
        return Err(Error::truncated(path, tag::LUT_DATA.name, format!("{entries} entries"), found));
    }
    values.truncate(entries);
    Ok(Some(Arc::new(Table { first, values })))
}
