//! Barriers in inline PTX: `bar.sync`, `bar.arrive` and their longer names, as calls of the emulator.

use crate::words::{blank, group, skipped, word};

/// The program with its barriers in inline PTX as calls; other inline PTX is left. Lines keep their numbers.
///
/// `bar.sync a;` waits at barrier `a` for the whole block, `bar.sync a, b;` for `b` threads. A thread at
/// `bar.arrive a, b;` counts as one of the `b` and does not wait. `bar.warp.sync m;` waits for lanes.
/// `barrier` and `bar` mean the same, with `.cta` and `.aligned` or without.
pub(crate) fn as_calls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut offset = 0;
    let mut inside_word = false;
    while let Some(letter) = text[offset..].chars().next() {
        let rest = &text[offset..];
        let is_comment = rest.starts_with("//") || rest.starts_with("/*");
        if let Some(bytes) = skipped(rest, None).filter(|_| is_comment) {
            out.push_str(&rest[..bytes]);
            (offset, inside_word) = (offset + bytes, false);
            continue;
        }
        if let Some((bytes, call)) = (!inside_word).then(|| statement(rest)).flatten() {
            out.push_str(&call);
            // Within a macro a line ends with a backslash.
            let replaced = &rest[..bytes];
            for (end, _) in replaced.match_indices('\n') {
                out.push_str(if replaced[..end].ends_with('\\') { "\\\n" } else { "\n" });
            }
            offset += bytes;
            continue;
        }
        inside_word = letter == '_' || letter.is_ascii_alphanumeric();
        out.push(letter);
        offset += letter.len_utf8();
    }
    out
}

/// The length of the statement `asm volatile("…" : … : …)` that a text begins with, without its semicolon,
/// and the call that it means.
fn statement(text: &str) -> Option<(usize, String)> {
    let name = word(text);
    if !matches!(name, "asm" | "__asm__" | "__asm") {
        return None;
    }
    let mut open = name.len() + blank(&text[name.len()..]);
    let qualifier = word(&text[open..]);
    if matches!(qualifier, "volatile" | "__volatile__") {
        open += qualifier.len() + blank(&text[open + qualifier.len()..]);
    }
    let close = open + end_of_group(&text[open..])?;
    let parts = parts(&text[open + 1..close - 1], ':');
    let instruction = literal(parts.first()?)?;
    // Outputs come first; a barrier has none.
    if parts.get(1).is_some_and(|outputs| !outputs.trim().is_empty()) {
        return None;
    }
    let values: Vec<String> = parts
        .get(2)
        .map(|inputs| self::parts(inputs, ','))
        .unwrap_or_default()
        .iter()
        .filter_map(value)
        .collect();
    Some((close, call(instruction.trim(), &values)?))
}

/// What an instruction means, whose operands `%0`, `%1` have these values.
fn call(instruction: &str, values: &[String]) -> Option<String> {
    let instruction = instruction.trim_end_matches([';', ' ', '\t']);
    let (name, operands) = instruction.split_once([' ', '\t'])?;
    let operands: Option<Vec<String>> = operands
        .split(',')
        .map(str::trim)
        .map(|operand| match operand.strip_prefix('%') {
            Some(number) => values.get(number.parse::<usize>().ok()?).map(|value| format!("({value})")),
            None => operand.parse::<u32>().ok().map(|number| number.to_string()),
        })
        .collect();
    let name = name.replace("barrier.", "bar.").replace(".cta", "").replace(".aligned", "");
    match (name.as_str(), operands?.as_slice()) {
        ("bar.sync", [barrier]) if barrier == "0" => Some("__syncthreads()".to_owned()),
        ("bar.sync", [barrier]) => Some(format!("__emu_bar_sync({barrier}, 0)")),
        ("bar.sync", [barrier, count]) => Some(format!("__emu_bar_sync({barrier}, {count})")),
        ("bar.arrive", [barrier, count]) => Some(format!("__emu_bar_arrive({barrier}, {count})")),
        ("bar.warp.sync", [mask]) => Some(format!("__syncwarp({mask})")),
        _ => None,
    }
}

/// Like [`group`], where brackets in string literals do not count.
fn end_of_group(text: &str) -> Option<usize> {
    let hidden = without_literals(text);
    group(&hidden)
}

/// The same text with other letters in its string literals.
fn without_literals(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut offset = 0;
    while let Some(letter) = text[offset..].chars().next() {
        let bytes = match skipped(&text[offset..], Some('x')) {
            Some(bytes) => {
                out.extend(std::iter::repeat_n('"', bytes));
                bytes
            }
            None => {
                out.push(letter);
                letter.len_utf8()
            }
        };
        offset += bytes;
    }
    out
}

/// What stands between `separator`s outside brackets and literals.
fn parts(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0i32);
    for (offset, letter) in without_literals(text).char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ if letter == separator && depth == 0 => {
                parts.push(&text[begin..offset]);
                begin = offset + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// The text of string literals that stand one behind the other.
fn literal(text: &str) -> Option<String> {
    // Lines of a macro end with a backslash.
    let text = text.replace("\\\n", " ");
    let mut rest = text.trim();
    let mut out = String::new();
    while !rest.is_empty() {
        let bytes = rest.starts_with('"').then(|| skipped(rest, Some('x'))).flatten()?;
        out.push_str(rest.get(1..bytes.checked_sub(1)?)?);
        rest = rest[bytes..].trim_start();
    }
    Some(out.replace("\\n", " ").replace("\\t", " "))
}

/// `"r"(1 + group)` as `1 + group`.
fn value(input: &&str) -> Option<String> {
    let input = input.trim();
    let open = input.find('(')?;
    Some(input.get(open + 1..input.rfind(')')?)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::as_calls;

    #[test]
    fn barriers_in_ptx_are_calls_and_other_ptx_is_left() {
        for (ptx, call) in [
            (r#"asm volatile("bar.sync 0;");"#, "__syncthreads();"),
            (r#"asm volatile("bar.sync 3;" ::: "memory");"#, "__emu_bar_sync(3, 0);"),
            (
                r#"asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(GROUPS * 128) : "memory");"#,
                "__emu_bar_sync((1 + group), (GROUPS * 128));",
            ),
            (
                r#"__asm__ __volatile__ ("barrier.cta.arrive.aligned %1, 64;" : : "r"(f(a, b)), "r"(b[(1)]));"#,
                "__emu_bar_arrive((b[(1)]), 64);",
            ),
            (r#"asm("bar.warp.sync %0;" ::"r"(mask));"#, "__syncwarp((mask));"),
            ("asm volatile(\"bar.sync %0, \"\n \"128;\\n\" :: \"r\"(1));", "__emu_bar_sync((1), 128)\n;"),
            (r#"// asm volatile("bar.sync 0;");"#, r#"// asm volatile("bar.sync 0;");"#),
            ("#define MEET \\\n asm(\"bar.sync \" \\\n \"0;\")\n", "#define MEET \\\n __syncthreads()\\\n\n"),
        ] {
            assert_eq!(as_calls(ptx), call, "{ptx}");
        }
        for other in [
            r#"asm volatile("mov.u32 %0, %laneid;" : "=r"(lane));"#,
            r#"asm volatile("bar.red.popc.u32 %0, 0, %1;" : "=r"(n) : "r"(p));"#,
            r#"int asmvolatile = 1; f("asm(\"bar.sync 0;\")");"#,
            r#"asm volatile("bar.sync %2, %1;" ::"r"(1));"#,
            r#"asm volatile("bar.sync 0"#,
        ] {
            assert_eq!(as_calls(other), other);
        }
    }
}
