//! Small things beside the data: attributes and data sets of one text or number, in whatever type a program
//! wrote them.

use std::path::Path;

use hdf5::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenAscii, VarLenUnicode};
use hdf5::{Container, Location};

use super::{check_holder, reading};
use crate::error::{Error, Result};

/// The longest text of fixed length that is read whole.
const LONGEST: usize = 1024;
/// The most values of an attribute that are looked at.
const MOST: usize = 1 << 10;

/// The value of an attribute or of a small data set: a single one, or an array whose elements are the same.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Text without the white space around it.
    Text(String),
    /// A number of any type.
    Number(f64),
    /// Another type or several values, in words.
    Other(String),
}

impl Value {
    /// The text; none of other values.
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Number(number) => number.fmt(f),
            Self::Other(words) => f.write_str(words),
        }
    }
}

/// The value of an attribute; none where it is absent or empty. `owner` is what errors call its owner.
///
/// Errors: an attribute that cannot be read.
pub(crate) fn attribute(path: &Path, location: &Location, owner: &str, name: &str) -> Result<Option<Value>> {
    if !location.attr_names().is_ok_and(|names| names.iter().any(|known| known == name)) {
        return Ok(None);
    }
    let what = format!("the attribute {name} of {owner}");
    let attribute = location.attr(name).map_err(|e| reading(path, &what, &e))?;
    value(path, &attribute, &what)
}

/// The value of an attribute or a small data set; none where it is empty. `what` names it for errors.
///
/// Errors: values that cannot be read.
pub(crate) fn value(path: &Path, held: &Container, what: &str) -> Result<Option<Value>> {
    let fail = |e: hdf5::Error| reading(path, what, &e);
    let count = held.space().map_err(fail)?.size();
    if count == 0 {
        return Ok(None);
    }
    let Ok(kind) = held.dtype().and_then(|kind| kind.to_descriptor()) else {
        return Ok(Some(Value::Other("a type that is neither text nor a number".into())));
    };
    if count > MOST {
        return Ok(Some(Value::Other(format!("{count} values of the type {kind}"))));
    }
    if matches!(kind, TypeDescriptor::VarLenAscii | TypeDescriptor::VarLenUnicode) {
        check_holder(path, held)?;
    }
    let texts: Vec<String> = match kind {
        TypeDescriptor::VarLenUnicode => {
            held.read_raw::<VarLenUnicode>().map_err(fail)?.iter().map(|t| decoded(t.as_bytes())).collect()
        }
        TypeDescriptor::VarLenAscii => {
            held.read_raw::<VarLenAscii>().map_err(fail)?.iter().map(|t| decoded(t.as_bytes())).collect()
        }
        // HDF5 fits texts of other lengths and paddings into these.
        TypeDescriptor::FixedAscii(_) => {
            let texts = held.read_raw::<FixedAscii<LONGEST>>().map_err(fail)?;
            texts.iter().map(|t| decoded(t.as_bytes())).collect()
        }
        TypeDescriptor::FixedUnicode(_) => {
            let texts = held.read_raw::<FixedUnicode<LONGEST>>().map_err(fail)?;
            texts.iter().map(|t| decoded(t.as_bytes())).collect()
        }
        TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) | TypeDescriptor::Float(_) => {
            let numbers = held.read_raw::<f64>().map_err(fail)?;
            // NaN differs from itself.
            let same = one(&numbers)
                .or_else(|| numbers.first().filter(|_| numbers.iter().all(|number| number.is_nan())));
            return Ok(Some(match same {
                Some(number) => Value::Number(*number),
                None => Value::Other(format!("{count} different numbers")),
            }));
        }
        other => return Ok(Some(Value::Other(format!("the type {other}")))),
    };
    Ok(match one(&texts) {
        Some(text) if text.is_empty() => None,
        Some(text) => Some(Value::Text(text.clone())),
        None => Some(Value::Other(format!("several texts: {}", texts.join(", ")))),
    })
}

/// The value that all share.
fn one<T: PartialEq>(values: &[T]) -> Option<&T> {
    let first = values.first()?;
    values.iter().all(|value| value == first).then_some(first)
}

/// Text up to the first NUL, without white space around it. Bytes that are not UTF-8 are Latin-1, as older
/// programs write ° and µ.
fn decoded(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    };
    text.trim().to_owned()
}

/// The one number of a data set. Errors: text, several different numbers, none.
pub(crate) fn number(path: &Path, held: &Container, what: &str) -> Result<f64> {
    match value(path, held, what)? {
        Some(Value::Number(number)) => Ok(number),
        other => {
            let found = other.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
            Err(Error::field(path, what, "one number", found))
        }
    }
}
