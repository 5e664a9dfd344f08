//! Names that a program's text gives: a kernel's parameters, variables of constant memory, members of
//! vectors.

use std::collections::BTreeMap;

use crate::words::{declared, group, last_word, statement_end, without_comments, word};

/// The names of a kernel's parameters, in order.
pub(crate) fn parameters(text: &str, kernel: &str) -> Vec<String> {
    let text = without_comments(text);
    let mut rest = text.as_str();
    while let Some(at) = rest.find("__global__") {
        rest = &rest[at + "__global__".len()..];
        let mut open = 0;
        // The first group behind the kernel's name; launch bounds have one before.
        while let Some(next) = rest[open..].find('(') {
            let head = &rest[open..open + next];
            let Some(bytes) = group(&rest[open + next..]) else { break };
            if last_word(head) == kernel {
                let inside = &rest[open + next + 1..open + next + bytes - 1];
                return list(inside).iter().map(|one| last_word(one).to_owned()).collect();
            }
            if last_word(head) != "__launch_bounds__" {
                break;
            }
            open += next + bytes;
        }
    }
    Vec::new()
}

/// The parts of a list, at its outermost commas.
fn list(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0i32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// The variables that lie in constant memory.
pub(crate) fn constants(text: &str) -> Vec<String> {
    let text = without_comments(text);
    let named = |rest: &str| -> Vec<String> {
        let end = statement_end(rest).unwrap_or(rest.len());
        declared(&rest[..end]).into_iter().map(str::to_owned).collect()
    };
    text.split("__constant__").skip(1).flat_map(named).collect()
}

/// The members of things that a line uses, by thing: `p.x`, `p->re`.
pub(crate) fn members(line: &str) -> Vec<Vec<&str>> {
    let line = line.split("//").next().unwrap_or_default();
    let mut things: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (at, point) in line.match_indices('.').chain(line.match_indices("->")) {
        let (thing, name) = (thing(&line[..at]), word(&line[at + point.len()..]));
        // The point of a number is none: 1.f, 2.5e3.
        let digit = |text: &str| text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit());
        if !digit(thing) && !digit(name) {
            things.entry(thing).or_default().push(name);
        }
    }
    things.into_values().collect()
}

/// What stands before a point: `a.b[i + 1]`, `f(x)`.
fn thing(before: &str) -> &str {
    let mut from = before.len();
    loop {
        let rest = &before[..from];
        if rest.ends_with([']', ')']) {
            let mut depth = 0;
            let open = rest.char_indices().rev().find(|(_, letter)| {
                depth += i32::from(matches!(letter, ']' | ')')) - i32::from(matches!(letter, '[' | '('));
                depth == 0
            });
            match open {
                Some((at, _)) => from = at,
                None => return "",
            }
            continue;
        }
        let name = rest.trim_end_matches(|c: char| c == '_' || c.is_ascii_alphanumeric());
        if name.len() < from {
            from = name.len();
        }
        match () {
            () if name.ends_with('.') => from -= 1,
            () if name.ends_with("->") => from -= 2,
            () => return &before[from..],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "__constant__ float weights[3], more[2 * (1 + 1)]; static __constant__ Pair<a, b> pair = {1, 2}, *other = f(1, 2);\n\
        extern \"C\" __global__ void __launch_bounds__(64, 2) one(const float* __restrict__ x, /* no */ int n, Pair<a, b> p);\n\
        __global__ void two(float2* y[2]) {}";

    #[test]
    fn parameters_and_constants_have_names() {
        assert_eq!(parameters(TEXT, "one"), ["x", "n", "p"]);
        assert!(parameters(TEXT, "three").is_empty());
        assert_eq!(constants(TEXT), ["weights", "more", "pair", "other"]);
    }

    #[test]
    fn members_are_told_from_numbers() {
        for (line, expected) in [
            ("s += p[i].x * q.w - p[i].y;", vec![vec!["x", "y"], vec!["w"]]),
            ("a->re", vec![vec!["re"]]),
            ("v = a.b[i + c[1]].x + f(v).y // a.b", vec![vec!["b"], vec!["x"], vec!["y"]]),
        ] {
            assert_eq!(members(line), expected);
        }
        assert!(members("s += 1.0f * x[2 * i];").is_empty() && members("2.e3 + 1.f").is_empty());
    }
}
