//! Text of files and of the command line, fit for people's screens.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text in which nothing acts on a terminal or on the order of letters: control characters and marks of
/// direction become their escapes, `\n`, `\t`, `\r` or `\u001b`, which JSON knows, too.
///
/// Names of protocols, units, arrays and files come from elsewhere. A terminal would obey an escape sequence
/// in them.
///
/// ```
/// assert_eq!(rayspin_core::printable("knee\u{1b}[2J\n"), r"knee\u001b[2J\n");
/// assert_eq!(rayspin_core::printable("T1 µ 頭"), "T1 µ 頭");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, acts)
}

/// [`printable`] text of several lines: line feeds and tabs stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| !matches!(c, '\n' | '\t') && acts(c))
}

/// A word of a command as a shell takes it: in quotes where it holds more than letters, digits and harmless
/// signs.
///
/// ```
/// use rayspin_core::shell_word;
///
/// assert_eq!(shell_word("scan.h5"), "scan.h5");
/// assert_eq!(shell_word("Anna's scan.h5"), r"'Anna'\''s scan.h5'");
/// ```
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', r"'\''"))),
    }
}

fn escaped(text: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            _ if !acts(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Writing to a string does not fail.
            _ => drop(write!(out, "\\u{:04x}", u32::from(c))),
        }
    }
    Cow::Owned(out)
}

/// Whether a terminal acts on the character, or the letters behind it change their places or their lines.
fn acts(c: char) -> bool {
    let directs = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || directs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_escaped_and_stays_valid_in_json() {
        let text = "a\u{1b}]0;b\u{7}\r\u{9b}1m\u{7f}\u{0}c\u{202e}d\n\te";
        let shown = printable(text);
        assert_eq!(shown, r"a\u001b]0;b\u0007\r\u009b1m\u007f\u0000c\u202ed\n\te");
        let lines = printable_lines(text);
        assert_eq!(lines, "a\\u001b]0;b\\u0007\\r\\u009b1m\\u007f\\u0000c\\u202ed\n\te");
        for plain in ["", "Größe µ 頭 — “a”", "zero\u{200d}width"] {
            assert!(matches!(printable(plain), Cow::Borrowed(same) if same == plain));
        }
    }
}
