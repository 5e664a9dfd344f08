//! The numbers of an image as a file stores them.

use std::fmt;

use ndarray::ArrayViewD;
use rayon::prelude::*;

use crate::element::{Element, Scale};

/// How a file stores the numbers of an image: a type, and for integers perhaps a slope and an intercept, with
/// which a value is slope · stored + intercept.
///
/// Images are in memory in single precision, which holds every integer of 16 bits.
/// [`WriteOptions::stored`](crate::WriteOptions::stored) makes integers of them again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberType {
    pub(crate) element: Element,
    pub(crate) scale: Option<Scale>,
    /// Whether numbers of the file were rounded on their way into memory.
    is_rounded: bool,
}

impl From<Element> for NumberType {
    fn from(element: Element) -> Self {
        Self::new(element, None)
    }
}

impl fmt::Display for NumberType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.scale {
            Some((slope, intercept)) => write!(f, ", slope {slope}, intercept {intercept}"),
            None => Ok(()),
        }
    }
}

impl NumberType {
    pub(crate) fn new(element: Element, scale: Option<Scale>) -> Self {
        Self { element, scale, is_rounded: false }
    }

    /// The same after reading, which may have rounded some numbers; `notes` says so.
    pub(crate) fn read(self, is_rounded: bool, notes: &mut Vec<String>) -> Self {
        notes.extend(is_rounded.then(|| self.rounded()));
        Self { is_rounded, ..self }
    }

    /// The name of the type, as NumPy has it: `int16`, `float32`, `complex64`.
    pub fn name(&self) -> &'static str {
        self.element.name()
    }

    /// Slope and intercept, where the file states them.
    pub fn scale(&self) -> Option<(f64, f64)> {
        self.scale
    }

    /// The note on numbers with more digits than single precision.
    pub(crate) fn rounded(&self) -> String {
        let name = self.name();
        match self.element.range() {
            Some(_) => format!("{name} numbers beyond 16777216 are rounded to single precision (24 bits)"),
            None => format!("{name} numbers are rounded to single precision (7 digits)"),
        }
    }

    /// The number that stands for a value.
    pub(crate) fn stored(&self, value: f32) -> f64 {
        match self.scale {
            Some((slope, intercept)) => ((f64::from(value) - intercept) / slope).round(),
            None => value.into(),
        }
    }

    /// The integers of a format, `integers`, that hold every value as it is: these, or the narrowest others.
    /// None if the values are no such integers, have changed since they were read, or were rounded on
    /// reading: they would pass for the file's own numbers.
    pub(crate) fn integers_of(
        self,
        values: &ArrayViewD<'_, f32>,
        is_scaled: bool,
        integers: &[Element],
    ) -> Option<Self> {
        self.element.range().filter(|_| !self.is_rounded)?;
        let values = values.as_slice()?;
        let scaled = self.scale.filter(|_| is_scaled).map(|scale| Self { scale: Some(scale), ..self });
        let ways: Vec<(Self, (i128, i128))> = [Some(Self { scale: None, ..self }), scaled]
            .into_iter()
            .flatten()
            .filter_map(|way| Some((way, way.range_of(values)?)))
            .collect();
        let with = |element: Element| {
            let (least, most) = element.range()?;
            let holds = |(_, (low, high)): &&(Self, (i128, i128))| least <= *low && *high <= most;
            ways.iter().find(holds).map(|(way, _)| Self { element, ..*way })
        };
        let own = integers.contains(&self.element).then_some(self.element);
        own.into_iter().chain(integers.iter().copied()).find_map(with)
    }

    /// The least and the largest number that stand for some values; none where one stands for no value.
    fn range_of(self, values: &[f32]) -> Option<(i128, i128)> {
        let whole = |value: f32| {
            let stored = self.stored(value);
            let exact = match self.scale {
                None => stored.fract() == 0.0,
                // The value was rounded to single precision.
                Some((slope, intercept)) => {
                    let product = slope * stored;
                    let off = product + intercept - f64::from(value);
                    off.abs() <= SINGLE * (product.abs() + intercept.abs())
                }
            };
            exact.then_some(stored)
        };
        let part = |values: &[f32]| {
            values.iter().try_fold(NOTHING, |(low, high), &value| {
                let stored = whole(value)?;
                Some((stored.min(low), stored.max(high)))
            })
        };
        let join = |a: (f64, f64), b: (f64, f64)| Some((a.0.min(b.0), a.1.max(b.1)));
        let (low, high) = values.par_chunks(1 << 16).map(part).try_reduce(|| NOTHING, join)?;
        // Conversion saturates; no type holds such a number.
        (low <= high).then_some((low as i128, high as i128))
    }
}

/// The range of no numbers.
const NOTHING: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);
/// How far a product of 24 bits may be off, as a part of its terms.
const SINGLE: f64 = 1.0 / (1 << 22) as f64;
