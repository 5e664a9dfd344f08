//! Parameter files of ParaVision: JCAMP-DX 4.24 with private labels.
//!
//! ```text
//! ##$NAME=value                       a number, a word, <text>, or (a, struct)
//! ##$NAME=( 3, 2 )                    sizes, and the elements behind them
//! 1 2 @3*(0) 5                        four of them written as a run
//! $$ a comment
//! ```
//!
//! Values are kept as text and read as what a caller asks for, so that memory grows with the file alone. A
//! value is wrapped near 80 columns, also within `<text>`, where the break is no part of it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::{Error, Result, opening};

/// The most bytes of a file of parameters; real ones have a few hundred kB.
const LONGEST: u64 = 16 << 20;

/// The parameters of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Parameters {
    path: PathBuf,
    records: BTreeMap<String, Record>,
}

/// A value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Record {
    /// Sizes, where the file states them.
    sizes: Vec<usize>,
    text: String,
}

impl Parameters {
    /// Errors: a file that cannot be read, or that is too long or no JCAMP-DX.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        let read = opening::open(path)?.take(LONGEST + 1).read_to_end(&mut bytes);
        read.map_err(|e| Error::read(path, e))?;
        if bytes.len() as u64 > LONGEST {
            let expected = format!("at most {} MiB", LONGEST >> 20);
            return Err(Error::field(path, "parameters", expected, "more"));
        }
        // ParaVision 360 writes UTF-8, and older versions Latin-1.
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|e| e.into_bytes().iter().map(|b| char::from(*b)).collect());
        let parameters = Self::of(path, &text);
        if !text.trim_start().starts_with("##TITLE") {
            return Err(Error::not_this_format(path, "parameters of ParaVision (JCAMP-DX)", "another start"));
        }
        if !text.lines().any(|line| line.starts_with("##END")) {
            return Err(Error::truncated(path, "the list of parameters", "a last line ##END=", "none"));
        }
        Ok(parameters)
    }

    /// The parameters of a text.
    fn of(path: &Path, text: &str) -> Self {
        let mut records = BTreeMap::new();
        let mut open: Option<(String, String)> = None;
        let mut close = |open: Option<(String, String)>| {
            if let Some((name, value)) = open {
                records.insert(name, Record::of(&value));
            }
        };
        for line in text.lines() {
            if line.starts_with("$$") {
                continue;
            }
            if let Some(label) = line.strip_prefix("##") {
                close(open.take());
                open = label.strip_prefix('$').and_then(|label| {
                    let (name, value) = label.split_once('=')?;
                    Some((name.trim().to_owned(), format!("{value}\n")))
                });
            } else if let Some((_, value)) = &mut open {
                value.push_str(line);
                value.push('\n');
            }
        }
        close(open);
        Self { path: path.to_owned(), records }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.records.contains_key(name)
    }

    /// An error of a parameter.
    pub(super) fn field(&self, name: &str, expected: impl ToString, found: impl ToString) -> Error {
        Error::field(&self.path, name, expected, found)
    }

    /// All numbers of a parameter. None where it is absent. Errors: a word that is no number; more than
    /// `most` numbers.
    pub(super) fn numbers(&self, name: &str, most: usize) -> Result<Option<Vec<f64>>> {
        let Some(record) = self.records.get(name) else { return Ok(None) };
        let mut numbers = Vec::new();
        for word in record.text.split_whitespace() {
            let run = word.strip_prefix('@').and_then(|run| {
                let (count, value) = run.split_once("*(")?;
                Some((count.parse::<usize>().ok()?, value.strip_suffix(')')?))
            });
            let (count, value) = run.unwrap_or((1, word));
            let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
            let number = number.ok_or_else(|| self.field(name, "numbers", word))?;
            if count > most - numbers.len() {
                return Err(self.field(name, format!("at most {most} numbers"), "more"));
            }
            numbers.resize(numbers.len() + count, number);
        }
        let stated = record.sizes.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        if !record.sizes.is_empty() && stated != Some(numbers.len()) {
            let expected = format!("{} numbers, as its sizes say", stated.unwrap_or(usize::MAX));
            return Err(self.field(name, expected, numbers.len()));
        }
        Ok(Some(numbers))
    }

    /// The first number of a parameter.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>> {
        Ok(self.numbers(name, MOST)?.and_then(|numbers| numbers.first().copied()))
    }

    /// The first number of a parameter, which is whole and from 0 to [`LARGEST`].
    pub(super) fn count(&self, name: &str) -> Result<Option<usize>> {
        self.number(name)?.map(|number| self.whole(name, number)).transpose()
    }

    /// As [`Self::count`]. Errors: a parameter that is absent.
    pub(super) fn expect_count(&self, name: &str) -> Result<usize> {
        self.count(name)?.ok_or_else(|| self.field(name, "a number", "nothing"))
    }

    /// All numbers of a parameter, which are whole and from 0 to [`LARGEST`].
    pub(super) fn counts(&self, name: &str) -> Result<Option<Vec<usize>>> {
        let Some(numbers) = self.numbers(name, MOST)? else { return Ok(None) };
        numbers.into_iter().map(|number| self.whole(name, number)).collect::<Result<_>>().map(Some)
    }

    fn whole(&self, name: &str, number: f64) -> Result<usize> {
        if number.fract() == 0.0 && (0.0..=LARGEST as f64).contains(&number) {
            return Ok(number as usize);
        }
        Err(self.field(name, format!("a whole number from 0 to {LARGEST}"), number))
    }

    /// The value as a word, without angle brackets; empty where it is absent.
    pub(super) fn word(&self, name: &str) -> &str {
        let text = self.records.get(name).map_or("", |record| record.text.trim());
        text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(text).trim()
    }

    /// Whether the value is `Yes` or `On`.
    pub(super) fn is_on(&self, name: &str) -> bool {
        matches!(self.word(name), "Yes" | "On")
    }

    /// The words of an array.
    pub(super) fn words(&self, name: &str) -> Vec<&str> {
        let text = self.records.get(name).map_or("", |record| record.text.as_str());
        text.split_whitespace().map(|word| word.trim_matches(['<', '>'])).collect()
    }

    /// The fields of each struct of an array, as text without angle brackets.
    pub(super) fn structs(&self, name: &str) -> Vec<Vec<String>> {
        let text = self.records.get(name).map_or("", |record| record.text.as_str());
        let mut structs = Vec::new();
        let (mut fields, mut depth, mut quoted) = (vec![String::new()], 0usize, false);
        for c in text.chars() {
            match c {
                '<' if !quoted => quoted = true,
                '>' if quoted => quoted = false,
                '(' if !quoted && depth == 0 => {
                    (fields, depth) = (vec![String::new()], 1);
                    continue;
                }
                '(' if !quoted => depth += 1,
                ')' if !quoted => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        let own = std::mem::take(&mut fields);
                        structs.push(own.into_iter().map(|field| bare(&field)).collect());
                        continue;
                    }
                }
                ',' if !quoted && depth == 1 => {
                    fields.push(String::new());
                    continue;
                }
                _ => {}
            }
            if let Some(field) = fields.last_mut().filter(|_| depth > 0) {
                field.push(c);
            }
        }
        structs
    }
}

/// Numbers of a parameter at most: a run of few characters may be as many.
pub(super) const MOST: usize = 1 << 20;
/// The largest count.
const LARGEST: usize = 1 << 30;

fn bare(field: &str) -> String {
    let field = field.trim();
    field.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(field).trim().to_owned()
}

impl Record {
    /// The value that follows a label, with its lines.
    fn of(value: &str) -> Self {
        let (first, rest) = value.split_once('\n').unwrap_or((value, ""));
        let sizes =
            first.trim().strip_prefix('(').and_then(|sizes| sizes.strip_suffix(')')).and_then(|sizes| {
                sizes.split(',').map(|size| size.trim().parse().ok()).collect::<Option<Vec<usize>>>()
            });
        // A struct of whole numbers looks like sizes, and has nothing behind it.
        match sizes {
            Some(sizes) if !rest.trim().is_empty() => Self { sizes, text: joined(rest) },
            _ => Self { sizes: Vec::new(), text: joined(value) },
        }
    }
}

/// The lines of a value as one: the ends of lines vanish within `<text>` and are spaces elsewhere.
fn joined(lines: &str) -> String {
    let mut text = String::with_capacity(lines.len());
    let mut quoted = false;
    for c in lines.chars() {
        match c {
            '<' if !quoted => quoted = true,
            '>' if quoted => quoted = false,
            '\r' => continue,
            '\n' if quoted => continue,
            _ => {}
        }
        text.push(if c == '\n' { ' ' } else { c });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "##TITLE=Parameter List\n##OWNER=nmr\n$$ a comment\n##$ACQ_size=( 2 )\n256 128\n$$ @vis= ACQ_size\n\
        ##$Method=<Bruker:RARE>\n##$BYTORDA=little\n##$Run=( 2, 3 )\n1 @4*(0.5) \n-2e1\n##$Fixed=1 2\n\
        ##$TPQQ=( 2 )\n(<gauss, (a).exc>, 37, 0 1\n 2) (<\n>, 30, 0)\n##$Pack=(1, 1)\n##$Names=( 2, 65 )\n<T2 \nmap> <b>\n##END=\n";

    #[test]
    fn values_are_read_as_what_they_are() {
        let all = Parameters::of(Path::new("acqp"), TEXT);
        assert_eq!(all.counts("ACQ_size").unwrap(), Some(vec![256, 128]));
        assert_eq!(
            (all.word("Method"), all.word("BYTORDA"), all.word("nothing")),
            ("Bruker:RARE", "little", "")
        );
        assert_eq!(all.numbers("Run", 6).unwrap(), Some(vec![1.0, 0.5, 0.5, 0.5, 0.5, -20.0]));
        assert_eq!(all.numbers("Fixed", 9).unwrap(), Some(vec![1.0, 2.0]));
        assert_eq!(
            all.structs("TPQQ"),
            [vec!["gauss, (a).exc", "37", "0 1  2"], vec!["", "30", "0"]].map(|own| own.map_owned())
        );
        assert_eq!(all.structs("Pack"), [vec!["1".to_owned(), "1".to_owned()]]);
        assert_eq!(all.word("Names"), "T2 map> <b");
        assert!(all.numbers("none", 1).unwrap().is_none());
    }

    trait MapOwned {
        fn map_owned(self) -> Vec<String>;
    }

    impl MapOwned for Vec<&str> {
        fn map_owned(self) -> Vec<String> {
            self.into_iter().map(str::to_owned).collect()
        }
    }

    #[test]
    fn numbers_that_cannot_be_are_refused_before_memory_is_taken() {
        let text = "##$a=( 2 )\n@99999999999999*(1)\n##$b=( 3 )\n1 2\n##$c=<x>\n##$d=1.5\n##$e=-3\n##$f=( 99999999999, 99999999999 )\n1\n##$g=nan\n";
        let all = Parameters::of(Path::new("method"), text);
        for (name, told) in
            [("a", "at most"), ("b", "3 numbers"), ("c", "<x>"), ("f", "as its sizes"), ("g", "nan")]
        {
            let error = all.numbers(name, 1 << 20).unwrap_err().to_string();
            assert!(error.starts_with("method: ") && error.contains(told), "{name}: {error}");
        }
        for name in ["d", "e"] {
            assert!(all.count(name).unwrap_err().to_string().contains("a whole number"), "{name}");
        }
    }
}
