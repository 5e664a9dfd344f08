//! The keywords of parameters and of options.

use rayspin::job::rows::{OptionRow, Table};

/// The keyword of a parameter. `lambda` is a word of Python's grammar.
pub(crate) fn keyword(name: &'static str) -> &'static str {
    if name == "lambda" { "lambda_" } else { name }
}

/// The rows that are keywords.
pub(crate) fn rows<T: Table>()
-> impl Iterator<Item = (&'static str, &'static OptionRow<T::Request, T::Requirement>)> {
    T::rows().iter().filter_map(|row| Some((row.keyword?, row)))
}
