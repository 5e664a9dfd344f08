//! C++ behind the preprocessor as words and marks.

use std::ops::Range;

use crate::words::skipped;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    /// A number, a string or a character.
    Literal,
    Mark,
    /// A line for the compiler.
    Pragma,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
}

impl Token {
    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text && self.kind != Kind::Literal
    }

    pub(super) fn word(&self) -> Option<&str> {
        (self.kind == Kind::Word).then_some(self.text.as_str())
    }
}

const MARKS: [&str; 24] = [
    "<<=", ">>=", "...", "->", "++", "--", "==", "<=", ">=", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=",
    "&=", "|=", "^=", "<<", ">>", "::", "##",
];

/// The words of a text; comments and white space are dropped.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let (mut offset, mut before) = (0, None);
    let mut push = |kind, text: &str| out.push(Token { kind, text: text.to_owned() });
    while let Some(c) = text[offset..].chars().next() {
        let rest = &text[offset..];
        let bytes = if let Some(bytes) = skipped(rest, before) {
            match c {
                '#' if rest[1..bytes].trim_start().starts_with("pragma") => {
                    push(Kind::Pragma, &rest[..bytes])
                }
                '"' | '\'' => push(Kind::Literal, &rest[..bytes]),
                _ => {}
            }
            before = Some(' ');
            offset += bytes;
            continue;
        } else if c.is_whitespace() {
            c.len_utf8()
        } else if c == '_' || c.is_ascii_alphabetic() {
            let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            push(Kind::Word, &rest[..end]);
            end
        } else if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            let mut end = 0;
            let mut last = ' ';
            for c in rest.chars() {
                let sign = matches!(c, '+' | '-')
                    && (matches!(last, 'p' | 'P') || (matches!(last, 'e' | 'E') && !rest.starts_with("0x")));
                if !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '\'') || sign) {
                    break;
                }
                end += c.len_utf8();
                last = c;
            }
            push(Kind::Literal, &rest[..end]);
            end
        } else {
            let mark = MARKS.iter().find(|mark| rest.starts_with(**mark));
            let end = mark.map_or(c.len_utf8(), |mark| mark.len());
            push(Kind::Mark, &rest[..end]);
            end
        };
        before = text[..offset + bytes].chars().next_back();
        offset += bytes;
    }
    out
}

/// A text whose wishes to unroll loops are in GCC's words.
pub(crate) fn wishes(text: &str) -> String {
    /// Turns of a loop that is unrolled altogether, at most.
    const WHOLE: u16 = 1024;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let pragma = line.trim_start().starts_with('#');
        out.push_str(&if pragma { wish(line.trim_start(), WHOLE) } else { line.to_owned() });
        out.push('\n');
    }
    out
}

/// A wish for the compiler in GCC's words; `all` where a loop is to be unrolled altogether.
fn wish(line: &str, all: u16) -> String {
    let Some(times) = line.trim_start_matches('#').trim_start().strip_prefix("pragma unroll") else {
        return line.to_owned();
    };
    let times = times.trim();
    let bare = times.strip_prefix('(').and_then(|times| times.strip_suffix(')')).unwrap_or(times);
    match bare.trim().parse::<u16>() {
        Ok(times) => format!("#pragma GCC unroll {times}"),
        Err(_) if times.is_empty() => format!("#pragma GCC unroll {all}"),
        Err(_) => String::new(),
    }
}

/// The tokens as text.
pub(super) fn text(tokens: &[Token]) -> String {
    let mut out = String::new();
    for token in tokens {
        if token.kind == Kind::Pragma {
            out.push('\n');
            // A loop that is unrolled altogether is one over a thread's registers.
            out.push_str(&wish(&token.text, 16));
            out.push('\n');
        } else {
            out.push_str(&token.text);
            out.push(' ');
        }
    }
    out
}

/// Where the bracketed group that begins at `open` ends, behind its last bracket.
pub(super) fn group(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            _ if token.kind != Kind::Mark => {}
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(i + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Where the bracketed group that ends before `end` begins.
pub(super) fn group_back(tokens: &[Token], end: usize) -> Option<usize> {
    let mut depth = 0usize;
    for i in (0..end).rev() {
        match tokens[i].text.as_str() {
            _ if tokens[i].kind != Kind::Mark => {}
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

/// Where the template arguments that begin at `open` with `<` end.
pub(super) fn angles(tokens: &[Token], open: usize) -> Option<usize> {
    let (mut depth, mut i) = (0i32, open);
    while let Some(token) = tokens.get(i) {
        match token.text.as_str() {
            "<" => depth += 1,
            ">" => depth -= 1,
            ">>" => depth -= 2,
            "(" | "[" => i = group(tokens, i)? - 1,
            "{" | "}" | ";" | ")" | "]" | "=" | "&&" | "||" => return None,
            _ => {}
        }
        i += 1;
        if depth <= 0 {
            return (depth == 0).then_some(i);
        }
    }
    None
}

/// The parts of a list between commas outside brackets.
pub(super) fn parts(tokens: &[Token], range: Range<usize>) -> Vec<Range<usize>> {
    let (mut from, mut position, mut out) = (range.start, range.start, Vec::new());
    while position < range.end {
        match tokens[position].text.as_str() {
            "(" | "[" | "{" if tokens[position].kind == Kind::Mark => {
                position = group(tokens, position).unwrap_or(range.end);
                continue;
            }
            "<" => {
                if let Some(end) = angles(tokens, position).filter(|&end| {
                    end < range.end && (tokens[end].is("(") || tokens[end].is("{") || tokens[end].is("::"))
                }) {
                    position = end;
                    continue;
                }
            }
            "," => {
                out.push(from..position);
                from = position + 1;
            }
            _ => {}
        }
        position += 1;
    }
    if from < range.end || !out.is_empty() {
        out.push(from..range.end);
    }
    out
}

/// Whether the word at `position` is a name of its own, no member of something.
pub(super) fn free(tokens: &[Token], position: usize) -> bool {
    tokens[position].kind == Kind::Word
        && position
            .checked_sub(1)
            .is_none_or(|before| !matches!(tokens[before].text.as_str(), "." | "->" | "::"))
}

/// Whether the mark at `position` stands before its only operand.
pub(super) fn unary(tokens: &[Token], position: usize) -> bool {
    let Some(before) = position.checked_sub(1).map(|before| &tokens[before]) else { return true };
    match before.kind {
        Kind::Literal => false,
        Kind::Word => matches!(before.text.as_str(), "return" | "else" | "do" | "sizeof"),
        Kind::Pragma => true,
        Kind::Mark if before.is(")") => {
            group_back(tokens, position).is_some_and(|open| cast(tokens, open..position))
        }
        Kind::Mark => !matches!(before.text.as_str(), "]" | "++" | "--"),
    }
}

/// Whether a group in parentheses is a type.
fn cast(tokens: &[Token], range: Range<usize>) -> bool {
    let inside = &tokens[range.start + 1..range.end - 1];
    let called = range.start.checked_sub(1).is_some_and(|before| {
        tokens[before].kind == Kind::Word || matches!(tokens[before].text.as_str(), "]" | ")" | ">")
    });
    !called
        && inside.last().is_some_and(|last| last.is("*") || last.word().is_some_and(typed))
        && inside
            .iter()
            .all(|t| t.kind == Kind::Word || matches!(t.text.as_str(), "*" | "::" | "<" | ">" | ","))
}

/// Whether a word is a type of the language.
pub(super) fn typed(word: &str) -> bool {
    matches!(
        word,
        "unsigned"
            | "signed"
            | "long"
            | "short"
            | "int"
            | "char"
            | "float"
            | "double"
            | "bool"
            | "void"
            | "auto"
            | "size_t"
    )
}
