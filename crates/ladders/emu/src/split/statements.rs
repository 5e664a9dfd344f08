//! Statements and declarations.

use std::ops::Range;

use super::tokens::{Kind, Token, angles, group, parts, typed};

/// A statement, and where its tokens are.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) range: Range<usize>,
    pub(super) shape: Shape,
}

#[derive(Debug, Clone)]
pub(super) enum Shape {
    Block(Vec<Statement>),
    If {
        condition: Range<usize>,
        then: Box<Statement>,
        other: Option<Box<Statement>>,
    },
    For {
        first: Range<usize>,
        condition: Range<usize>,
        step: Range<usize>,
        body: Box<Statement>,
    },
    While {
        condition: Range<usize>,
        body: Box<Statement>,
    },
    Do {
        body: Box<Statement>,
        condition: Range<usize>,
    },
    Simple,
    /// `switch` and others that are never taken apart.
    Other,
}

/// The statement that begins at `at`. None: it is none that is known.
pub(super) fn statement(tokens: &[Token], at: usize) -> Option<Statement> {
    let from = at;
    let mut at = at;
    while tokens.get(at)?.kind == Kind::Pragma {
        at += 1;
    }
    let made = |end: usize, shape: Shape| Some(Statement { range: from..end, shape });
    let inside = |open: usize| Some((open + 1)..group(tokens, open)? - 1);
    match tokens[at].text.as_str() {
        "{" => {
            let end = group(tokens, at)?;
            let mut list = Vec::new();
            at += 1;
            while at < end - 1 {
                let next = statement(tokens, at)?;
                at = next.range.end;
                list.push(next);
            }
            made(end, Shape::Block(list))
        }
        "if" => {
            at += if tokens.get(at + 1)?.is("constexpr") { 2 } else { 1 };
            let condition = inside(at)?;
            let then = statement(tokens, condition.end + 1)?;
            let mut end = then.range.end;
            let mut other = None;
            if tokens.get(end).is_some_and(|t| t.is("else")) {
                let next = statement(tokens, end + 1)?;
                end = next.range.end;
                other = Some(Box::new(next));
            }
            made(end, Shape::If { condition, then: Box::new(then), other })
        }
        "for" => {
            let head = inside(at + 1)?;
            let mut ends = Vec::new();
            let mut i = head.start;
            while i < head.end {
                if matches!(tokens[i].text.as_str(), "(" | "[" | "{") {
                    i = group(tokens, i)?;
                    continue;
                }
                if tokens[i].is(";") {
                    ends.push(i);
                }
                i += 1;
            }
            let [a, b] = ends[..] else { return None };
            let body = statement(tokens, head.end + 1)?;
            let end = body.range.end;
            let shape = Shape::For {
                first: head.start..a,
                condition: a + 1..b,
                step: b + 1..head.end,
                body: Box::new(body),
            };
            made(end, shape)
        }
        "while" => {
            let condition = inside(at + 1)?;
            let body = statement(tokens, condition.end + 1)?;
            made(body.range.end, Shape::While { condition, body: Box::new(body) })
        }
        "do" => {
            let body = statement(tokens, at + 1)?;
            let condition = inside(body.range.end + 1)?;
            let end = condition.end + 2;
            tokens.get(end - 1).filter(|t| t.is(";"))?;
            made(end, Shape::Do { body: Box::new(body), condition })
        }
        "switch" => made(group(tokens, group(tokens, at + 1)?)?, Shape::Other),
        "case" | "default" | "goto" | "struct" | "template" | "try" => None,
        _ => {
            while !tokens.get(at)?.is(";") {
                at = match tokens[at].text.as_str() {
                    "(" | "[" | "{" => group(tokens, at)?,
                    ")" | "]" | "}" => return None,
                    _ => at + 1,
                };
            }
            made(at + 1, Shape::Simple)
        }
    }
}

/// One name that a statement declares.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    pub(super) name: usize,
    /// `*`, `&`, `const` and `__restrict__` before the name.
    pub(super) prefix: Range<usize>,
    /// Lengths of an array.
    pub(super) lengths: Range<usize>,
    /// What it begins with: behind `=`, or in braces or parentheses with them.
    pub(super) value: Option<Range<usize>>,
    pub(super) end: usize,
}

/// A declaration's type and names. None: the tokens declare nothing.
pub(super) fn declaration(tokens: &[Token], range: Range<usize>) -> Option<(Range<usize>, Vec<Declared>)> {
    let mut at = range.start;
    while at < range.end && tokens[at].kind == Kind::Pragma {
        at += 1;
    }
    let from = at;
    let mut seen = false;
    while at < range.end {
        match tokens[at].text.as_str() {
            "const" | "constexpr" | "static" | "volatile" | "extern" | "__shared__" | "typename" => at += 1,
            "__align__" | "alignas" => at = group(tokens, at + 1)?,
            "return" | "typedef" | "using" | "else" | "delete" | "static_assert" | "asm" | "__asm__" => {
                return None;
            }
            word if typed(word) => {
                seen = true;
                at += 1;
            }
            _ if tokens[at].kind == Kind::Word && !seen => {
                seen = true;
                at += 1;
                loop {
                    if at < range.end && tokens[at].is("<") {
                        let Some(end) = angles(tokens, at) else { break };
                        at = end;
                    }
                    if at + 1 < range.end && tokens[at].is("::") {
                        at += 2;
                    } else {
                        break;
                    }
                }
            }
            _ => break,
        }
    }
    if !seen || at >= range.end {
        return None;
    }
    let kind = from..at;
    let mut names = Vec::new();
    loop {
        let prefix = at;
        while at < range.end && matches!(tokens[at].text.as_str(), "*" | "&" | "const" | "__restrict__") {
            at += 1;
        }
        let name = at;
        tokens.get(name).filter(|t| name < range.end && t.kind == Kind::Word)?;
        at += 1;
        let lengths = at;
        while at < range.end && tokens[at].is("[") {
            at = group(tokens, at)?;
        }
        let lengths = lengths..at;
        let mut value = None;
        if at < range.end {
            match tokens[at].text.as_str() {
                "=" => {
                    let end = at + 1 + parts(tokens, at + 1..range.end).first()?.len();
                    value = Some(at + 1..end);
                    at = end;
                }
                "{" | "(" => {
                    let end = group(tokens, at)?;
                    value = Some(at..end);
                    at = end;
                }
                _ => {}
            }
        }
        names.push(Declared { name, prefix: prefix..name, lengths, value, end: at });
        if at >= range.end || tokens[at].is(";") {
            return Some((kind, names));
        }
        if !tokens[at].is(",") {
            return None;
        }
        at += 1;
    }
}
