//! The header: lines `field: value` up to an empty line.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::error::one_line;
use crate::{Error, Result, element, opening};

/// The most bytes of a header. Headers with the gradients of a diffusion scan are far shorter.
const LONGEST: usize = 1 << 20;

/// The most axes, as Teem has them.
const MOST_AXES: usize = 16;

/// The field that names the files of the numbers.
pub(super) const DATA_FILE: &str = "data file";

/// The value of [`DATA_FILE`] before a list of names.
pub(super) const LIST: &str = "LIST";

/// A header, and where it ends.
pub(super) struct Header {
    /// Fields by their names in lower case without spaces.
    fields: Vec<(String, String)>,
    /// The lines after `data file: LIST`.
    pub(super) list: Vec<String>,
    pub(super) end: u64,
}

/// Several spellings are one field: `byteskip` and `byte skip`, `centers` and `centerings`.
fn plain(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
    if name == "centerings" { "centers".to_owned() } else { name }
}

impl Header {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let mut file = BufReader::new(opening::open(path)?);
        let mut end = 0;
        let mut next = || -> Result<Option<String>> {
            let mut line = Vec::new();
            let most = (LONGEST - end) as u64;
            let got =
                file.by_ref().take(most).read_until(b'\n', &mut line).map_err(|e| Error::read(path, e))?;
            end += got;
            if end == LONGEST {
                return Err(Error::field(path, "header", "an empty line within 1 MiB", "none"));
            }
            Ok((got > 0).then(|| String::from_utf8_lossy(&line).trim_end().to_owned()))
        };
        let first = next()?.unwrap_or_default();
        match first.strip_prefix("NRRD000").map(str::parse::<u32>) {
            Some(Ok(1..=5)) => {}
            Some(Ok(_)) => {
                return Err(Error::unsupported(path, format!("{first}, a later version than NRRD0005")));
            }
            _ => return Err(Error::not_this_format(path, "NRRD0001 to NRRD0005", first)),
        }
        let (mut fields, mut list) = (Vec::<(String, String)>::new(), Vec::new());
        loop {
            let Some(line) = next()? else {
                // Beside its numbers a header may end with the file.
                if fields.iter().any(|(name, _)| *name == plain(DATA_FILE)) {
                    break;
                }
                let found = "the end of the file";
                return Err(Error::truncated(path, "the header", "an empty line before the numbers", found));
            };
            if line.is_empty() {
                break;
            }
            if line.starts_with('#') {
                continue;
            }
            let Some((name, value)) = line.split_once(':') else {
                let found = one_line(line.chars().take(40).collect::<String>());
                return Err(Error::field(path, "header", "lines field: value up to an empty line", found));
            };
            // A key of the writer's own.
            if value.starts_with('=') {
                continue;
            }
            let (name, value) = (plain(name), value.trim().to_owned());
            if fields.iter().any(|(other, _)| *other == name) {
                return Err(Error::field(path, name, "one line of the header", "two"));
            }
            let is_list = name == plain(DATA_FILE) && value.split_whitespace().next() == Some(LIST);
            fields.push((name, value));
            if is_list {
                while let Some(line) = next()? {
                    list.push(line);
                }
                while list.last().is_some_and(String::is_empty) {
                    list.pop();
                }
                break;
            }
        }
        Ok(Self { fields, list, end: end as u64 })
    }

    pub(super) fn get(&self, field: &str) -> Option<&str> {
        let name = plain(field);
        self.fields.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn expect(&self, path: &Path, field: &str) -> Result<&str> {
        self.get(field).ok_or_else(|| Error::field(path, field, "a line of the header", "none"))
    }

    /// The sizes of all axes, the fastest first.
    pub(super) fn sizes(&self, path: &Path) -> Result<Vec<usize>> {
        let dimension = self.expect(path, "dimension")?;
        let Some(axes) = dimension.parse().ok().filter(|axes| (1..=MOST_AXES).contains(axes)) else {
            return Err(Error::field(path, "dimension", format!("1 to {MOST_AXES}"), dimension));
        };
        let text = self.expect(path, "sizes")?;
        let sizes: Option<Vec<usize>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
        let sizes = sizes.filter(|sizes| sizes.len() == axes && sizes.iter().all(|&size| size > 0));
        let sizes = sizes.ok_or_else(|| Error::field(path, "sizes", format!("{axes} sizes"), text))?;
        match element::count(&sizes, 16) {
            Some(_) => Ok(sizes),
            None => Err(Error::field(path, "sizes", "a product that fits the address space", text)),
        }
    }

    /// A number for each axis; NaN where it is unknown.
    pub(super) fn numbers(&self, path: &Path, field: &str, axes: usize) -> Result<Option<Vec<f64>>> {
        let Some(text) = self.get(field) else { return Ok(None) };
        let numbers: Option<Vec<f64>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
        match numbers
            .filter(|numbers| numbers.len() == axes && !numbers.iter().any(|number| number.is_infinite()))
        {
            Some(numbers) => Ok(Some(numbers)),
            None => Err(Error::field(path, field, format!("{axes} finite numbers or NaN"), text)),
        }
    }

    /// A word for each axis, in quotes or without; nothing where the field is not there.
    pub(super) fn words(&self, path: &Path, field: &str, axes: usize) -> Result<Vec<String>> {
        let Some(text) = self.get(field) else { return Ok(Vec::new()) };
        let words: Vec<String> = match text.contains('"') {
            true => text.split('"').skip(1).step_by(2).map(str::to_owned).collect(),
            false => text.split_whitespace().map(str::to_owned).collect(),
        };
        match words.len() == axes {
            true => Ok(words),
            false => Err(Error::field(path, field, format!("{axes} words"), text)),
        }
    }

    /// `count` vectors `(a,b,c)` of `length` finite numbers; none for the word `none`.
    pub(super) fn vectors(
        &self,
        path: &Path,
        field: &str,
        count: usize,
        length: usize,
    ) -> Result<Option<Vec<Option<Vec<f64>>>>> {
        let Some(text) = self.get(field) else { return Ok(None) };
        let wrong = || {
            let expected = format!("{count} of: none, or {length} finite numbers in parentheses");
            Error::field(path, field, expected, text)
        };
        let (mut rest, mut vectors) = (text, Vec::new());
        while !rest.is_empty() {
            let (vector, after) = match (rest.strip_prefix("none"), rest.strip_prefix('(')) {
                (Some(after), _) => (None, after),
                (_, Some(inner)) => {
                    let (inner, after) = inner.split_once(')').ok_or_else(wrong)?;
                    let numbers: Option<Vec<f64>> =
                        inner.split(',').map(|word| word.trim().parse().ok()).collect();
                    let numbers = numbers
                        .filter(|numbers| numbers.len() == length && numbers.iter().all(|n| n.is_finite()));
                    (Some(numbers.ok_or_else(wrong)?), after)
                }
                (None, None) => return Err(wrong()),
            };
            vectors.push(vector);
            rest = after.trim_start();
        }
        if vectors.len() == count { Ok(Some(vectors)) } else { Err(wrong()) }
    }
}
