//! Numbers of an image beside its header: names of files by a pattern, numbers as text, and several files
//! one after another.

use std::io::BufRead;
use std::path::Path;

use rayspin_device::cpu::try_reserve;

use crate::element::{Element, Numbers, Value};
use crate::{Error, Result};

/// The longest number of a text.
const LONGEST_NUMBER: usize = 64;

/// The most files of a pattern.
pub(crate) const MOST_FILES: usize = 1_000_000;

/// Names of files by their numbers: `slice%03d.raw`.
pub(crate) struct Pattern<'a> {
    before: &'a str,
    after: &'a str,
    width: usize,
    zeros: bool,
}

impl<'a> Pattern<'a> {
    /// None of a name without one `%d` or `%03d`.
    pub(crate) fn of(name: &'a str) -> Option<Self> {
        let (before, rest) = name.split_once('%')?;
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (width, rest) = rest.split_at(end);
        let after = rest.strip_prefix(['d', 'i', 'u'])?;
        let (zeros, width) = (width.starts_with('0'), width.parse().unwrap_or(0usize));
        (!after.contains('%') && width <= 32).then_some(Self { before, after, width, zeros })
    }

    pub(crate) fn name(&self, number: usize) -> String {
        let Self { before, after, width, zeros } = self;
        match zeros {
            true => format!("{before}{number:0width$}{after}"),
            false => format!("{before}{number:width$}{after}"),
        }
    }
}

/// `count` numbers as text, with spaces, lines or commas between them. `expected` is what a word should be.
pub(crate) fn text(
    file: &Path,
    text: impl BufRead,
    count: usize,
    element: Element,
    expected: &str,
) -> Result<Numbers<f32>> {
    let (mut values, mut rounded) = (Vec::<f32>::new(), false);
    let mut word = String::new();
    let is_between = |byte: u8| byte.is_ascii_whitespace() || byte == b',';
    let end = std::iter::once(Ok(b'\n'));
    for byte in text.bytes().chain(end) {
        let byte = byte.map_err(|e| Error::read(file, e))?;
        if !is_between(byte) && word.len() < LONGEST_NUMBER {
            word.push(char::from(byte));
            continue;
        }
        if word.is_empty() {
            continue;
        }
        let number = word.parse::<f64>().ok().filter(|&number| element.holds(number));
        let Some(number) = number else {
            return Err(Error::field(file, format!("voxel {}", values.len()), expected, word));
        };
        if values.len() == values.capacity() {
            let more = (count - values.len()).min(values.len().max(1 << 16));
            try_reserve("numbers of the file", &mut values, more).map_err(|e| Error::core(file, e))?;
        }
        // The text of a float is rarely a number of single precision, and loses nothing that its type has.
        rounded |= element != Element::F32 && f64::from(number as f32) != number && !number.is_nan();
        values.push(number as f32);
        if values.len() == count {
            return Ok(Numbers { values, rounded });
        }
        word.clear();
    }
    let found = format!("{} numbers", values.len());
    Err(Error::truncated(file, "the image", format!("{count} numbers"), found))
}

/// The numbers of several files, one after another.
pub(crate) fn joined<T: Value>(
    path: &Path,
    parts: impl Iterator<Item = Result<Numbers<T>>>,
) -> Result<Numbers<T>> {
    let (mut values, mut rounded) = (Vec::new(), false);
    for part in parts {
        let Numbers { values: own, rounded: some } = part?;
        rounded |= some;
        if values.is_empty() {
            values = own;
            continue;
        }
        if values.capacity() < values.len() + own.len() {
            let more = own.len().max(values.len());
            try_reserve("image", &mut values, more).map_err(|e| Error::core(path, e))?;
        }
        values.extend(own);
    }
    Ok(Numbers { values, rounded })
}
