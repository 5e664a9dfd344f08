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

/// The statement that begins at `from`. None: it is none that is known.
pub(super) fn statement(tokens: &[Token], from: usize) -> Option<Statement> {
    let mut position = from;
    while tokens.get(position)?.kind == Kind::Pragma {
        position += 1;
    }
    let made = |end: usize, shape: Shape| Some(Statement { range: from..end, shape });
    let inside = |open: usize| Some((open + 1)..group(tokens, open)? - 1);
    match tokens[position].text.as_str() {
        "{" => {
            let end = group(tokens, position)?;
            let mut list = Vec::new();
            position += 1;
            while position < end - 1 {
                let next = statement(tokens, position)?;
                position = next.range.end;
                list.push(next);
            }
            made(end, Shape::Block(list))
        }
        "if" => {
            position += if tokens.get(position + 1)?.is("constexpr") { 2 } else { 1 };
            let condition = inside(position)?;
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
            let head = inside(position + 1)?;
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
            let condition = inside(position + 1)?;
            let body = statement(tokens, condition.end + 1)?;
            made(body.range.end, Shape::While { condition, body: Box::new(body) })
        }
        "do" => {
            let body = statement(tokens, position + 1)?;
            let condition = inside(body.range.end + 1)?;
            let end = condition.end + 2;
            tokens.get(end - 1).filter(|t| t.is(";"))?;
            made(end, Shape::Do { body: Box::new(body), condition })
        }
        "switch" => made(group(tokens, group(tokens, position + 1)?)?, Shape::Other),
        "case" | "default" | "goto" | "struct" | "template" | "try" => None,
        _ => {
            while !tokens.get(position)?.is(";") {
                position = match tokens[position].text.as_str() {
                    "(" | "[" | "{" => group(tokens, position)?,
                    ")" | "]" | "}" => return None,
                    _ => position + 1,
                };
            }
            made(position + 1, Shape::Simple)
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
    let mut position = range.start;
    while position < range.end && tokens[position].kind == Kind::Pragma {
        position += 1;
    }
    let from = position;
    let mut seen = false;
    while position < range.end {
        match tokens[position].text.as_str() {
            "const" | "constexpr" | "static" | "volatile" | "extern" | "__shared__" | "typename" => {
                position += 1
            }
            "__align__" | "alignas" => position = group(tokens, position + 1)?,
            "return" | "typedef" | "using" | "else" | "delete" | "static_assert" | "asm" | "__asm__" => {
                return None;
            }
            word if typed(word) => {
                seen = true;
                position += 1;
            }
            _ if tokens[position].kind == Kind::Word && !seen => {
                seen = true;
                position += 1;
                loop {
                    if position < range.end && tokens[position].is("<") {
                        let Some(end) = angles(tokens, position) else { break };
                        position = end;
                    }
                    if position + 1 < range.end && tokens[position].is("::") {
                        position += 2;
                    } else {
                        break;
                    }
                }
            }
            _ => break,
        }
    }
    if !seen || position >= range.end {
        return None;
    }
    let kind = from..position;
    let mut names = Vec::new();
    loop {
        let prefix = position;
        while position < range.end
            && matches!(tokens[position].text.as_str(), "*" | "&" | "const" | "__restrict__")
        {
            position += 1;
        }
        let name = position;
        tokens.get(name).filter(|t| name < range.end && t.kind == Kind::Word)?;
        position += 1;
        let lengths = position;
        while position < range.end && tokens[position].is("[") {
            position = group(tokens, position)?;
        }
        let lengths = lengths..position;
        let mut value = None;
        if position < range.end {
            match tokens[position].text.as_str() {
                "=" => {
                    let end = position + 1 + parts(tokens, position + 1..range.end).first()?.len();
                    value = Some(position + 1..end);
                    position = end;
                }
                "{" | "(" => {
                    let end = group(tokens, position)?;
                    value = Some(position..end);
                    position = end;
                }
                _ => {}
            }
        }
        names.push(Declared { name, prefix: prefix..name, lengths, value, end: position });
        if position >= range.end || tokens[position].is(";") {
            return Some((kind, names));
        }
        if !tokens[position].is(",") {
            return None;
        }
        position += 1;
    }
}
