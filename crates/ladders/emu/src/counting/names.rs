//! Names that a program's text gives: a kernel's parameters, variables of constant memory, members of
//! vectors.

use crate::words::{group, last_word, statement_end, without_comments, word};

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
    let named = |rest: &str| {
        let end = statement_end(rest).unwrap_or(rest.len());
        let declared = &rest[..end];
        let until = declared.find(['[', '=', '{']).unwrap_or(declared.len());
        last_word(&declared[..until]).to_owned()
    };
    text.split("__constant__").skip(1).map(named).collect()
}

/// Whether a line uses a member of something: `p.x`, `p->re`.
pub(crate) fn has_member(line: &str) -> bool {
    let line = line.split("//").next().unwrap_or_default();
    let begins = |text: &str| !word(text).is_empty() && !text.starts_with(|c: char| c.is_ascii_digit());
    line.match_indices('.').any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let named = before.is_some_and(|c| c == ']' || c == ')' || c == '_' || c.is_ascii_alphanumeric());
        // The point of a number is none: 1.f, 2.5e3.
        let number = line[..at]
            .rsplit(|c: char| !(c == '_' || c.is_ascii_alphanumeric()))
            .next()
            .is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()));
        named && !number && begins(&line[at + 1..])
    }) || line.match_indices("->").any(|(at, _)| begins(&line[at + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "__constant__ float weights[3]; static __constant__ Pair pair = {1, 2};\n\
        extern \"C\" __global__ void __launch_bounds__(64, 2) one(const float* __restrict__ x, /* no */ int n, Pair<a, b> p);\n\
        __global__ void two(float2* y[2]) {}";

    #[test]
    fn parameters_and_constants_have_names() {
        assert_eq!(parameters(TEXT, "one"), ["x", "n", "p"]);
        assert!(parameters(TEXT, "three").is_empty());
        assert_eq!(constants(TEXT), ["weights", "pair"]);
    }

    #[test]
    fn members_are_told_from_numbers() {
        assert!(
            has_member("s += p[i].x;") && has_member("a->re") && has_member("f(v).y") && has_member("v.w")
        );
        assert!(!has_member("s += 1.0f * x[2 * i];") && !has_member("2.e3 + 1.f") && !has_member("// a.b"));
    }
}
