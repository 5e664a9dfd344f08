//! C++ as text: words, comments, groups, statements.

/// Length of the comment, string, or line for the preprocessor that `text` begins with.
pub(crate) fn skipped(text: &str, before: Option<char>) -> Option<usize> {
    if !text.starts_with(['/', '"', '\'', '#']) {
        return None;
    }
    let quoted = |quote: char| {
        let mut escaped = false;
        for (offset, c) in text.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == quote => return offset + 1,
                _ => {}
            }
        }
        text.len()
    };
    if text.starts_with("//") {
        Some(text.find('\n').unwrap_or(text.len()))
    } else if let Some(comment) = text.strip_prefix("/*") {
        Some(comment.find("*/").map_or(text.len(), |length| length + 4))
    } else if text.starts_with('"') {
        Some(quoted('"'))
    } else if text.starts_with('\'') {
        Some(quoted('\''))
    } else if text.starts_with('#') && before.is_none_or(|c| c.is_whitespace()) {
        let mut offset = 0;
        loop {
            let line = text[offset..].find('\n').map_or(text.len(), |n| offset + n);
            if !text[..line].ends_with('\\') || line == text.len() {
                return Some(line);
            }
            offset = line + 1;
        }
    } else {
        None
    }
}

pub(crate) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut offset = 0;
    while let Some(c) = text[offset..].chars().next() {
        let bytes = match skipped(&text[offset..], out.chars().next_back()) {
            Some(bytes) => {
                if c == '/' {
                    out.push(' ');
                } else {
                    out.push_str(&text[offset..offset + bytes]);
                }
                bytes
            }
            None => {
                out.push(c);
                c.len_utf8()
            }
        };
        offset += bytes;
    }
    out
}

pub(crate) fn word(text: &str) -> &str {
    let end = text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    &text[..end]
}

pub(crate) fn last_word(text: &str) -> &str {
    let text = text.trim_end();
    let from = text.rfind(|c: char| c != '_' && !c.is_ascii_alphanumeric()).map_or(0, |before| before + 1);
    &text[from..]
}

pub(crate) fn has_word(text: &str, wanted: &str) -> bool {
    text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).any(|word| word == wanted)
}

/// Bytes of white space and comments that `text` begins with.
pub(crate) fn blank(text: &str) -> usize {
    let mut offset = 0;
    loop {
        let rest = &text[offset..];
        let spaces = rest.len() - rest.trim_start().len();
        if spaces > 0 {
            offset += spaces;
        } else if rest.starts_with("//") || rest.starts_with("/*") {
            offset += skipped(rest, None).unwrap_or(rest.len());
        } else {
            return offset;
        }
    }
}

/// Bytes up to the end of the bracketed group that `text` begins with, after white space.
pub(crate) fn group(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut offset = blank(text);
    while let Some(c) = text[offset..].chars().next() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(offset + 1);
                }
            }
            _ if depth == 0 => return None,
            _ => {}
        }
        offset += c.len_utf8();
    }
    None
}

/// Bytes from behind the word `__global__` of a kernel to behind its name.
pub(crate) fn behind_name(text: &str) -> Option<usize> {
    let mut offset = 0;
    loop {
        offset += blank(&text[offset..]);
        match word(&text[offset..]) {
            "__launch_bounds__" => {
                let after = offset + "__launch_bounds__".len();
                offset = after + group(&text[after..])?;
            }
            "" => break,
            name => offset += name.len(),
        }
    }
    Some(offset)
}

/// Where the first of these characters stands outside comments and strings.
pub(crate) fn first_of(text: &str, wanted: &[char]) -> Option<usize> {
    let mut offset = 0;
    while let Some(c) = text[offset..].chars().next() {
        match skipped(&text[offset..], Some('x')) {
            Some(bytes) => offset += bytes,
            None if wanted.contains(&c) => return Some(offset),
            None => offset += c.len_utf8(),
        }
    }
    None
}

/// Where the statement that `text` begins with has its semicolon.
pub(crate) fn statement_end(text: &str) -> Option<usize> {
    let mut depth = 0i32;
    let mut offset = 0;
    while let Some(c) = text[offset..].chars().next() {
        if let Some(bytes) = skipped(&text[offset..], Some('x')) {
            offset += bytes;
            continue;
        }
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            ';' if depth == 0 => return Some(offset),
            _ => {}
        }
        offset += c.len_utf8();
    }
    None
}

/// Bytes of white space, comments and directives that a statement begins with.
pub(crate) fn lead(text: &str) -> usize {
    let mut offset = 0;
    loop {
        offset += blank(&text[offset..]);
        if !text[offset..].starts_with('#') {
            return offset;
        }
        offset += skipped(&text[offset..], None).unwrap_or(0);
    }
}

/// The names that `float a[2], b = 1` declares. `text` has no comments.
pub(crate) fn declared(text: &str) -> Vec<&str> {
    let (mut names, mut begin) = (Vec::new(), 0);
    // Behind its name a variable has lengths and a value.
    let (mut depth, mut angles, mut name_end) = (0i32, 0i32, None);
    for (at, letter) in text.char_indices().chain([(text.len(), ',')]) {
        match letter {
            ',' if (depth == 0 && (angles == 0 || name_end.is_some())) || at == text.len() => {
                names.push(last_word(&text[begin..name_end.unwrap_or(at)]));
                (begin, name_end, angles) = (at + 1, None, 0);
            }
            '=' | '[' | '{' if depth == 0 && angles == 0 => {
                name_end.get_or_insert(at);
                depth += i32::from(letter != '=');
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '<' if depth == 0 && name_end.is_none() => angles += 1,
            '>' if depth == 0 && name_end.is_none() => angles -= 1,
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// `float a[2], b` as the type and (name, lengths) of each. Wishes for alignment are dropped: every array is
/// aligned to 128 bytes.
pub(crate) fn declarators(text: &str) -> Option<(String, Vec<(String, String)>)> {
    let mut text = text.replace('\n', " ");
    for wish in ["__align__", "alignas"] {
        while let Some(start) = text.find(wish) {
            let end = start + wish.len() + group(&text[start + wish.len()..])?;
            text.replace_range(start..end, " ");
        }
    }
    let mut parts = vec![String::new()];
    let (mut depth, mut angles) = (0i32, 0i32);
    for c in text.chars() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            '<' if depth == 0 => angles += 1,
            '>' if depth == 0 => angles -= 1,
            ',' if depth == 0 && angles == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut()?.push(c);
    }
    let first = parts.first()?.clone();
    // The first name stands before the first length that is not part of the type.
    let type_end = first.rfind(['>', '}']).map_or(0, |last| last + 1);
    let lengths_at = first[type_end..].find('[').map_or(first.len(), |length| length + type_end);
    let name = last_word(&first[..lengths_at]);
    let kind = first[..lengths_at].trim_end().strip_suffix(name)?.trim().to_owned();
    if name.is_empty() || kind.is_empty() {
        return None;
    }
    let mut names = vec![(name.to_owned(), first[lengths_at..].trim().to_owned())];
    for part in &parts[1..] {
        let name_end = part.find('[').unwrap_or(part.len());
        let name = part[..name_end].trim();
        (!name.is_empty() && word(name) == name).then_some(())?;
        names.push((name.to_owned(), part[name_end..].trim().to_owned()));
    }
    Some((kind, names))
}
