//! `kernel<<<grid, block, shared, stream>>>(arguments)` of whole programs, as calls of the emulator.

use std::collections::BTreeMap;

use crate::words::{behind_name, blank, group, has_word, last_word, skipped, word};

/// The program with its launches as calls of `runtime.h`. Lines keep their numbers.
///
/// A kernel that is no template, and has one form, is called through its address, so that arguments become
/// what its parameters are. Of other kernels the arguments choose the form.
///
/// Errors: a launch that cannot be read, by the line of the text.
pub(crate) fn as_calls(text: &str) -> Result<String, (usize, String)> {
    let plain = plain_kernels(text);
    let mut out = String::with_capacity(text.len() * 2);
    let mut offset = 0;
    while let Some(letter) = text[offset..].chars().next() {
        let rest = &text[offset..];
        // Launches stand in macros too.
        if let Some(bytes) = skipped(rest, out.chars().next_back()).filter(|_| letter != '#') {
            out.push_str(&rest[..bytes]);
            offset += bytes;
            continue;
        }
        if !rest.starts_with("<<<") {
            out.push(letter);
            offset += letter.len_utf8();
            continue;
        }
        let wrong = || (text[..offset].matches('\n').count(), first_line(rest).to_owned());
        let begin = callee(&out).ok_or_else(wrong)?;
        let kernel = out[begin..].trim().to_owned();
        let configuration = 3 + closing(&rest[3..]).ok_or_else(wrong)?;
        let after = configuration + 3;
        let next = after + blank(&rest[after..]);
        if !rest[next..].starts_with('(') {
            return Err(wrong());
        }
        let gap = out[begin..].len() - out[begin..].trim_end().len();
        let spaces = out[out.len() - gap..].to_owned();
        out.truncate(begin);
        let name = kernel.replace(['\\', '"', '\n'], " ");
        let inside = &rest[3..configuration];
        let own = kernel.rsplit("::").next().unwrap_or_default();
        let form = match plain.iter().any(|known| known == own) {
            true => format!("emu::launch_of(__LINE__, \"{name}\", emu::configured({inside}), {kernel})"),
            false => format!(
                "emu::launch_by(__LINE__, \"{name}\", emu::configured({inside}), [&](auto... emu_a) {{ {kernel}(emu_a...); }})"
            ),
        };
        out.push_str(&form);
        out.push_str(&spaces);
        out.push_str(&rest[after..next]);
        offset += next;
    }
    Ok(out)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Kernels that are no templates and are not overloaded.
fn plain_kernels(text: &str) -> Vec<String> {
    let mut forms: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut templates = Vec::new();
    let (mut offset, mut statement, mut before) = (0, 0, None);
    while let Some(letter) = text[offset..].chars().next() {
        let rest = &text[offset..];
        if let Some(bytes) = skipped(rest, before) {
            (offset, before) = (offset + bytes, Some(' '));
            continue;
        }
        let name = word(rest);
        if name == "__global__"
            && let Some((kernel, parameters)) = declared(&rest[name.len()..])
        {
            match has_word(&text[statement..offset], "template") {
                true => templates.push(kernel),
                false => {
                    let own = forms.entry(kernel).or_default();
                    if !own.contains(&parameters) {
                        own.push(parameters);
                    }
                }
            }
        }
        if matches!(letter, ';' | '{' | '}') {
            statement = offset + 1;
        }
        before = Some(letter);
        offset += name.len().max(letter.len_utf8());
    }
    let single = |(name, own): &(String, Vec<String>)| own.len() == 1 && !templates.contains(name);
    forms.into_iter().filter(single).map(|(name, _)| name).collect()
}

/// The name of a kernel and the types of its parameters, as they are written.
fn declared(text: &str) -> Option<(String, String)> {
    let offset = behind_name(text)?;
    let bytes = group(&text[offset..])?;
    let list: Vec<&str> = text[offset + 1..offset + bytes - 1].split(',').collect();
    // A declaration and its definition may have other names.
    let kind = |parameter: &&str| {
        let parameter = parameter.trim();
        let type_end = parameter.len() - last_word(parameter).len();
        parameter[..type_end].split_whitespace().collect::<String>().replace("__restrict__", "")
    };
    let kinds: Vec<String> = list.iter().map(kind).collect();
    Some((last_word(&text[..offset]).to_owned(), kinds.join(",")))
}

/// Where the expression begins that `out` ends with: a name, its namespaces and its template arguments.
fn callee(out: &str) -> Option<usize> {
    let mut end = out.trim_end().len();
    if out[..end].ends_with('>') {
        let mut depth = 0;
        for (index, letter) in out[..end].char_indices().rev() {
            match letter {
                '>' => depth += 1,
                '<' => depth -= 1,
                ';' | '{' | '}' => return None,
                _ => {}
            }
            if depth == 0 {
                end = out[..index].trim_end().len();
                break;
            }
        }
    }
    let letter = |c: char| c == '_' || c.is_alphanumeric() || c == ':';
    let begin = out[..end].char_indices().rev().take_while(|&(_, c)| letter(c)).last()?.0;
    Some(begin)
}

/// Where the `>>>` stands that ends a configuration.
fn closing(text: &str) -> Option<usize> {
    let (mut offset, mut depth) = (0, 0i32);
    while let Some(letter) = text[offset..].chars().next() {
        let rest = &text[offset..];
        if let Some(bytes) = skipped(rest, Some('x')) {
            offset += bytes;
            continue;
        }
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ';' => return None,
            '>' if depth == 0 && rest.starts_with(">>>") => return Some(offset),
            _ => {}
        }
        offset += letter.len_utf8();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::as_calls;

    #[test]
    fn launches_are_calls_and_other_text_is_left() {
        let kernels = "__global__ void a(float* x);\ntemplate <int N> __global__ void t(int);\n\
            __global__ void o(int);\n__global__ void o(float*);\n\
            __global__ __launch_bounds__(64) void a(float* y) { y[0] = 1 << 2; }\n";
        for (launch, call) in [
            ("a<<<1, 2>>>(p);", "emu::launch_of(__LINE__, \"a\", emu::configured(1, 2), a)(p);"),
            (
                "a <<< dim3(n >> 1), b[0], 4, s >>>\n  (p, f(q));",
                "emu::launch_of(__LINE__, \"a\", emu::configured( dim3(n >> 1), b[0], 4, s ), a) \n  (p, f(q));",
            ),
            (
                "m::t<f(256)><<<g, b>>>(1);",
                "emu::launch_by(__LINE__, \"m::t<f(256)>\", emu::configured(g, b), [&](auto... emu_a) { m::t<f(256)>(emu_a...); })(1);",
            ),
            (
                "o<<<1, 1>>>(2);",
                "emu::launch_by(__LINE__, \"o\", emu::configured(1, 1), [&](auto... emu_a) { o(emu_a...); })(2);",
            ),
            (
                "#define RUN(k) k<<<1, 1>>>(p)\n",
                "#define RUN(k) emu::launch_by(__LINE__, \"k\", emu::configured(1, 1), [&](auto... emu_a) { k(emu_a...); })(p)\n",
            ),
            ("n::a<<<1, 2>>>(p);", "emu::launch_of(__LINE__, \"n::a\", emu::configured(1, 2), n::a)(p);"),
            ("// a<<<1, 2>>>(p);\n", "// a<<<1, 2>>>(p);\n"),
            ("f(\"a<<<1, 2>>>(p)\");", "f(\"a<<<1, 2>>>(p)\");"),
        ] {
            let text = as_calls(&format!("{kernels}{launch}")).unwrap();
            assert_eq!(text.strip_prefix(kernels), Some(call), "{launch}");
        }
        for (wrong, line) in [("\na<<<1, 2(p);", 1), ("a<<<1, 2>>>;", 0), ("<<<1, 2>>>(p)", 0)] {
            assert_eq!(as_calls(wrong).unwrap_err().0, line, "{wrong}");
        }
    }
}
