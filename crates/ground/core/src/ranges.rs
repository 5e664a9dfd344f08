use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::Error;

/// A choice of whole numbers, counted from 0, written as numbers and ranges: `3`, `1-2`, `0,3`, `0-4,8`. Both
/// ends of a range belong to it.
///
/// ```
/// use rayspin_core::Ranges;
///
/// let slices: Ranges = "0-2,7".parse()?;
/// assert!(slices.contains(2) && !slices.contains(3));
/// assert_eq!(slices.largest(), 7);
/// assert_eq!(slices.to_string(), "0-2,7");
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges(Vec<RangeInclusive<usize>>);

impl Ranges {
    /// Whether the choice has this number.
    pub fn contains(&self, number: usize) -> bool {
        self.0.iter().any(|range| range.contains(&number))
    }

    /// The largest number of the choice.
    pub fn largest(&self) -> usize {
        self.0.iter().map(|range| *range.end()).max().unwrap_or_default()
    }

    /// The numbers below `count`, in ascending order, each once.
    pub fn below(&self, count: usize) -> impl Iterator<Item = usize> + '_ {
        (0..count).filter(|&number| self.contains(number))
    }

    /// The first range whose numbers `present` lacks, as text.
    fn missing(&self, present: impl Fn(usize) -> bool) -> Option<String> {
        let lacks = |range: &&RangeInclusive<usize>| !(*range).clone().all(&present);
        self.0.iter().find(lacks).map(text)
    }

    /// That every number of the choice is among `present`, which is sorted. Errors: names `what` and the
    /// range that is not.
    pub fn expect_among(&self, what: &str, present: &[usize]) -> Result<(), Error> {
        // Beyond the largest number nothing is present, however long the range.
        let known = present.last().copied().unwrap_or_default();
        let has = |number: usize| number <= known && present.binary_search(&number).is_ok();
        match self.missing(has) {
            None => Ok(()),
            Some(range) => Err(Error::value(what, among(present), range)),
        }
    }
}

/// `0 to 11`, or the numbers where they have gaps.
fn among(present: &[usize]) -> String {
    match present {
        [] => "none".to_owned(),
        [only] => only.to_string(),
        [first, .., last] if last - first + 1 == present.len() => format!("numbers from {first} to {last}"),
        several => format!("one of {several:?}"),
    }
}

fn text(range: &RangeInclusive<usize>) -> String {
    match (range.start(), range.end()) {
        (start, end) if start == end => start.to_string(),
        (start, end) => format!("{start}-{end}"),
    }
}

impl From<usize> for Ranges {
    fn from(number: usize) -> Self {
        Self(vec![number..=number])
    }
}

impl From<RangeInclusive<usize>> for Ranges {
    fn from(range: RangeInclusive<usize>) -> Self {
        Self(vec![range])
    }
}

impl FromStr for Ranges {
    type Err = Error;

    /// Errors: text that is no list of numbers and ascending ranges.
    fn from_str(text: &str) -> Result<Self, Error> {
        let range = |part: &str| {
            let number = |text: &str| text.trim().parse::<usize>().ok();
            let (start, end) = part.split_once('-').unwrap_or((part, part));
            let (start, end) = (number(start)?, number(end)?);
            (start <= end).then_some(start..=end)
        };
        let parsed: Option<Vec<_>> = text.split(',').map(range).collect();
        let expected = "numbers and ranges such as 3, 1-2 or 0,3";
        parsed.map(Self).ok_or_else(|| Error::value("numbers", expected, format!("'{text}'")))
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(text).collect();
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_read_and_written() {
        for (given, written, numbers) in [
            ("3", "3", vec![3]),
            ("1-2", "1-2", vec![1, 2]),
            ("0,3", "0,3", vec![0, 3]),
            (" 8 , 0 - 2", "8,0-2", vec![0, 1, 2, 8]),
            ("4-4,4", "4,4", vec![4]),
        ] {
            let ranges: Ranges = given.parse().unwrap();
            assert_eq!(ranges.to_string(), written);
            assert_eq!(ranges.below(20).collect::<Vec<_>>(), numbers, "{given}");
            assert_eq!(ranges.largest(), *numbers.last().unwrap());
            assert_eq!(written.parse::<Ranges>().unwrap(), ranges);
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", ",", "1-", "-1", "2-1", "a", "1.5", "1--2", "1,", "99999999999999999999", "1-2-3"] {
            let error = text.parse::<Ranges>().unwrap_err().to_string();
            assert!(error.contains("such as 3, 1-2 or 0,3") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn numbers_that_are_not_there_are_named() {
        let present = [0, 1, 2, 5];
        let check = |text: &str| text.parse::<Ranges>().unwrap().expect_among("slice", &present);
        assert_eq!(check("0-2,5"), Ok(()));
        assert_eq!(check("1,2-4").unwrap_err().to_string(), "slice: expected one of [0, 1, 2, 5], found 2-4");
        let all: Ranges = "0-18446744073709551615".parse().unwrap();
        let error = all.expect_among("slice", &[0, 1, 2]).unwrap_err().to_string();
        assert_eq!(error, "slice: expected numbers from 0 to 2, found 0-18446744073709551615");
        assert!(Ranges::from(3..=4).expect_among("slice", &[]).is_err());
    }
}
