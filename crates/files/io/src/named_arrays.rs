//! Arrays that a file holds under names, whatever its format.

use std::path::Path;

use ndarray::ArrayD;
use rayspin_core::{C32, format_shape};

use crate::arrays::Numbers;
use crate::element::Element;
use crate::{Error, NumberType, Result, opening};

/// An array that a file holds, or something else.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// The name, as it follows the colon.
    pub(crate) name: String,
    /// As the owner of the file sees it.
    pub(crate) shape: Vec<usize>,
    /// What its numbers are; none of something else than numbers.
    pub(crate) element: Option<Element>,
    /// What it is, in words.
    pub(crate) kind: String,
}

impl Entry {
    /// `[200, 200, 8], complex64`
    pub(crate) fn about(&self) -> String {
        format!("{}, {}", format_shape(&self.shape), self.kind)
    }

    /// Whether it is an array of numbers.
    pub(crate) fn is_array(&self) -> bool {
        self.element.is_some() && !self.shape.contains(&0)
    }
}

/// An array, with the numbers that its file has.
pub(crate) enum AnyArray {
    Real(ArrayD<f32>),
    Complex(ArrayD<C32>),
}

/// An array as an image's reader wants it.
pub(crate) struct Stored {
    pub(crate) array: AnyArray,
    pub(crate) stored: NumberType,
    /// Whether numbers were rounded.
    pub(crate) rounded: bool,
}

/// The array to read: the one named, or the only one.
pub(crate) fn choose(path: &Path, entries: Vec<Entry>, given: Option<&str>) -> Result<Entry> {
    if let Some(other) = entries.iter().find(|entry| Some(&*entry.name) == given && !entry.is_array()) {
        let what = format!("array {}", other.name);
        return Err(Error::field(path, what, "numbers, one or more", other.about()));
    }
    let names: Vec<String> =
        entries.iter().filter(|entry| entry.is_array()).map(|entry| entry.name.clone()).collect();
    let name = opening::choose(path, "array", &names, given)?;
    let found = entries.into_iter().find(|entry| entry.name == name);
    found.ok_or_else(|| Error::field(path, "array", name, "none"))
}

/// Errors: other numbers than wanted.
pub(crate) fn expect_numbers(path: &Path, chosen: &Entry, numbers: Numbers) -> Result<()> {
    let is_complex = chosen.element.is_some_and(Element::is_complex);
    match (numbers, is_complex) {
        (Numbers::Real, true) => Err(Error::field(path, "number type", "real numbers", &chosen.kind)),
        (Numbers::Complex, false) => {
            Err(Error::field(path, "number type", "complex numbers, as k-space has", &chosen.kind)
                .with_hint("a magnitude or a real part is no k-space; join real and imaginary parts"))
        }
        _ => Ok(()),
    }
}
