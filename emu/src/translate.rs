//! From CUDA C++ to C++: what macros of a header cannot say of shared memory, and a table of kernels and variables.

use rayspin_core::{Error, Result};
use rayspin_device::cuda::Program;

const FIBRES: &str = include_str!("../include/fibres.h");
const HEADER: &str = include_str!("../include/emulate.h");
const TEXTURE: &str = include_str!("../include/texture.h");

/// The whole text for the host's compiler.
///
/// `__shared__` arrays become references into the block's memory, which is filled with NaN before each block and has fences
/// behind each array; `extern __shared__` arrays become pointers to the block's dynamic memory. Lines keep their numbers.
pub(crate) fn translate(program: &Program) -> Result<String> {
    let mut reader = Reader::new(&program.text);
    reader.read().map_err(|(expected, found)| {
        Error::value(format!("emulation of {}", program.name), expected, found)
    })?;
    let mut text = String::new();
    for (name, value) in &program.defines {
        text.push_str(&format!("#define {name} {value}\n"));
    }
    text.push_str("#line 1 \"fibres.h\"\n");
    text.push_str(FIBRES);
    text.push_str("#line 1 \"emulate.h\"\n");
    text.push_str(HEADER);
    if has_word(&program.text, "cudaTextureObject_t") {
        text.push_str("#line 1 \"texture.h\"\n");
        text.push_str(TEXTURE);
    }
    text.push_str(&reader.out);
    text.push('\n');
    text.push_str(&reader.table());
    Ok(text)
}

struct Kernel {
    name: String,
    bounds: String,
}

/// Everything but the words of the language is copied as it is.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    out: String,
    /// Of each open brace whether it only groups declarations of the outermost level.
    braces: Vec<bool>,
    /// The kernel whose body is being read, and the depth of its braces.
    inside: Option<(String, usize)>,
    /// The kernel whose body comes next.
    coming: Option<String>,
    kernels: Vec<Kernel>,
    variables: Vec<String>,
    outer_dynamic: Vec<String>,
    /// Where in `out` the present statement began.
    statement: usize,
}

type Refusal = (&'static str, String);

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            out: String::with_capacity(text.len() * 2),
            braces: Vec::new(),
            inside: None,
            coming: None,
            kernels: Vec::new(),
            variables: Vec::new(),
            outer_dynamic: Vec::new(),
            statement: 0,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn copy(&mut self, bytes: usize) {
        self.out.push_str(&self.text[self.at..self.at + bytes]);
        self.at += bytes;
    }

    fn outermost(&self) -> bool {
        self.braces.iter().all(|&groups| groups)
    }

    fn read(&mut self) -> std::result::Result<(), Refusal> {
        while let Some(letter) = self.rest().chars().next() {
            if let Some(bytes) = skipped(self.rest(), self.out.chars().next_back()) {
                self.copy(bytes);
                continue;
            }
            match letter {
                '{' => {
                    let statement = &self.out[self.statement..];
                    let groups = statement.trim_end().ends_with("\"C\"") || has_word(statement, "namespace");
                    self.braces.push(groups);
                    if let Some(name) = self.coming.take() {
                        self.inside = Some((name, self.braces.len()));
                    }
                    self.copy(1);
                    self.statement = self.out.len();
                }
                '}' => {
                    if self.inside.as_ref().is_some_and(|(_, depth)| *depth == self.braces.len()) {
                        self.inside = None;
                    }
                    self.braces.pop();
                    self.copy(1);
                    self.statement = self.out.len();
                }
                ';' => {
                    self.copy(1);
                    // A kernel that was only declared.
                    self.coming = None;
                    self.statement = self.out.len();
                }
                c if c == '_' || c.is_ascii_alphabetic() => {
                    let word = word(self.rest());
                    match word {
                        "__global__" => self.kernel()?,
                        "__shared__" => self.shared()?,
                        "__constant__" => self.variable(),
                        "__device__" if self.outermost() => self.variable(),
                        _ => self.copy(word.len()),
                    }
                }
                c if c.is_ascii_digit() => {
                    let bytes = self
                        .rest()
                        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '\'')))
                        .unwrap_or(self.rest().len());
                    self.copy(bytes);
                }
                c => self.copy(c.len_utf8()),
            }
        }
        Ok(())
    }

    /// Notes a kernel's name and the number of its threads.
    fn kernel(&mut self) -> std::result::Result<(), Refusal> {
        const SHAPE: &str = "a kernel extern \"C\" __global__ void name(...)";
        let refused = |text: &str| (SHAPE, text.lines().next().unwrap_or_default().to_owned());
        let rest = self.rest();
        let open = {
            let mut at = "__global__".len();
            loop {
                at += blank(&rest[at..]);
                let tail = &rest[at..];
                match word(tail) {
                    "__launch_bounds__" => {
                        let after = at + "__launch_bounds__".len();
                        at = after + group(&rest[after..]).ok_or_else(|| refused(rest))?;
                    }
                    "" => break at,
                    name => at += name.len(),
                }
            }
        };
        let head = &rest[..open];
        if !rest[open..].starts_with('(') {
            return Err(refused(rest));
        }
        let bounds = head.find("__launch_bounds__").map_or("()", |at| {
            let after = &head[at + "__launch_bounds__".len()..];
            &after[..group(after).unwrap_or(0)]
        });
        let name = last_word(head);
        self.coming = Some(name.to_owned());
        if !self.kernels.iter().any(|k| k.name == name) {
            let bounds = without_comments(bounds).replace('\n', " ");
            self.kernels.push(Kernel { name: name.to_owned(), bounds });
        }
        self.copy(open);
        Ok(())
    }

    /// Notes a variable; functions are passed by.
    fn variable(&mut self) {
        let rest = without_comments(self.rest());
        let end = rest.find(['(', ';', '=', '{', '[']).unwrap_or(rest.len());
        let list = rest[end..].starts_with('(') || rest[end..].starts_with('{');
        let name = last_word(&rest[..end]);
        if !list && !name.is_empty() && !self.variables.iter().any(|v| v == name) {
            self.variables.push(name.to_owned());
        }
        self.copy(word(self.rest()).len());
    }

    fn shared(&mut self) -> std::result::Result<(), Refusal> {
        let dynamic = has_word(&self.out[self.statement..], "extern");
        let end = statement_end(self.rest()).ok_or_else(|| ("a semicolon", "none".to_owned()))?;
        let whole = &self.rest()[..end];
        let lines = whole.matches('\n').count();
        let declared = without_comments(whole);
        let shape =
            || ("__shared__ type name[length]", whole.split('\n').next().unwrap_or_default().to_owned());
        let (kind, names) = declarators(&declared["__shared__".len()..]).ok_or_else(shape)?;
        let mut made = String::new();
        if dynamic {
            // `extern` and what stands with it have been copied already.
            self.out.truncate(self.statement + lead(&self.out[self.statement..]));
        }
        for (name, lengths) in names {
            if dynamic {
                let item =
                    lengths.strip_prefix('[').and_then(|l| Some(&l[l.find(']')? + 1..])).ok_or_else(shape)?;
                if self.outermost() {
                    made.push_str(&format!(
                        "typedef {kind} emu_type_{name} {item}; static thread_local emu_type_{name}* {name}; "
                    ));
                    self.outer_dynamic.push(name);
                } else {
                    made.push_str(&format!(
                        "typedef {kind} emu_type_{name} {item}; \
                         emu_type_{name}* const {name} = static_cast<emu_type_{name}*>(emu::dynamic_shared()); "
                    ));
                }
                continue;
            }
            if self.outermost() {
                return Err(("shared arrays inside functions", format!("{name} outside")));
            }
            made.push_str(&format!(
                "typedef {kind} emu_type_{name} {lengths}; static thread_local emu::Slot emu_slot_{name}; \
                 emu_type_{name}& {name} = *static_cast<emu_type_{name}*>(emu::shared_array(emu_slot_{name}, \
                 sizeof(emu_type_{name}), \"{name}\")); "
            ));
            if let Some((kernel, _)) = &self.inside {
                made.push_str(&format!(
                    "static const unsigned emu_size_{name} __attribute__((section(\"emu_shared_{kernel}\"), used, retain)) = \
                     sizeof(emu_type_{name}); "
                ));
            }
        }
        self.out.push_str(&made);
        self.out.push_str(&"\n".repeat(lines));
        self.at += end + 1;
        self.statement = self.out.len();
        Ok(())
    }

    fn table(&self) -> String {
        let mut text = String::from("#line 1 \"table\"\n");
        for Kernel { name, .. } in &self.kernels {
            text.push_str(&format!(
                "extern \"C\" __attribute__((weak, visibility(\"hidden\"))) const uint32_t __start_emu_shared_{name}[], \
                 __stop_emu_shared_{name}[];\n\
                 static void emu_call_{name}(void** arguments) {{ emu::call_kernel({name}, arguments); }}\n"
            ));
        }
        text.push_str("static const emu::Kernel emu_kernels[] = {\n");
        for Kernel { name, bounds } in &self.kernels {
            text.push_str(&format!(
                "{{\"{name}\", emu_call_{name}, emu::count_of({name}), emu::sizes_of({name}), emu::first_of{bounds}, \
                 __start_emu_shared_{name}, __stop_emu_shared_{name}}},\n"
            ));
        }
        text.push_str("{}};\nstatic const emu::Variable emu_variables[] = {\n");
        for name in &self.variables {
            text.push_str(&format!("{{\"{name}\", (void*)&{name}, sizeof({name})}},\n"));
        }
        text.push_str(
            "{}};\nstatic int emu_run(emu::Workspace* w, void (*call)(void**), void** arguments, const emu::Launch* launch, \
             uint64_t* next, int* stop, char* message) {\n",
        );
        for name in &self.outer_dynamic {
            text.push_str(&format!("{name} = (decltype({name}))w->arena;\n"));
        }
        text.push_str(&format!(
            "return emu::run_blocks(w, call, arguments, launch, next, stop, message);\n}}\n\
             extern \"C\" __attribute__((visibility(\"default\"))) const emu::Program emu_program = {{emu_kernels, {}, \
             emu_variables, {}, emu::new_workspace, emu::delete_workspace, emu_run}};\n",
            self.kernels.len(),
            self.variables.len()
        ));
        text
    }
}

/// Length of the comment, string, or line for the preprocessor that `text` begins with.
fn skipped(text: &str, before: Option<char>) -> Option<usize> {
    let quoted = |quote: char| {
        let mut escaped = false;
        for (at, c) in text.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == quote => return at + 1,
                _ => {}
            }
        }
        text.len()
    };
    if text.starts_with("//") {
        Some(text.find('\n').unwrap_or(text.len()))
    } else if let Some(comment) = text.strip_prefix("/*") {
        Some(comment.find("*/").map_or(text.len(), |at| at + 4))
    } else if text.starts_with('"') {
        Some(quoted('"'))
    } else if text.starts_with('\'') {
        Some(quoted('\''))
    } else if text.starts_with('#') && before.is_none_or(|c| c.is_whitespace()) {
        let mut at = 0;
        loop {
            let line = text[at..].find('\n').map_or(text.len(), |n| at + n);
            if !text[..line].ends_with('\\') || line == text.len() {
                return Some(line);
            }
            at = line + 1;
        }
    } else {
        None
    }
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let bytes = match skipped(&text[at..], out.chars().next_back()) {
            Some(bytes) => {
                if c == '/' {
                    out.push(' ');
                } else {
                    out.push_str(&text[at..at + bytes]);
                }
                bytes
            }
            None => {
                out.push(c);
                c.len_utf8()
            }
        };
        at += bytes;
    }
    out
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    &text[..end]
}

fn last_word(text: &str) -> &str {
    let text = text.trim_end();
    let from = text.rfind(|c: char| c != '_' && !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    &text[from..]
}

fn has_word(text: &str, wanted: &str) -> bool {
    text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).any(|word| word == wanted)
}

/// Bytes of white space and comments that `text` begins with.
fn blank(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let spaces = rest.len() - rest.trim_start().len();
        if spaces > 0 {
            at += spaces;
        } else if rest.starts_with("//") || rest.starts_with("/*") {
            at += skipped(rest, None).unwrap_or(rest.len());
        } else {
            return at;
        }
    }
}

/// Bytes up to the end of the bracketed group that `text` begins with, after white space.
fn group(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = blank(text);
    while let Some(c) = text[at..].chars().next() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ if depth == 0 => return None,
            _ => {}
        }
        at += c.len_utf8();
    }
    None
}

/// Where the statement that `text` begins with has its semicolon.
fn statement_end(text: &str) -> Option<usize> {
    let mut depth = 0i32;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if let Some(bytes) = skipped(&text[at..], Some('x')) {
            at += bytes;
            continue;
        }
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            ';' if depth == 0 => return Some(at),
            _ => {}
        }
        at += c.len_utf8();
    }
    None
}

/// Bytes of white space, comments and directives that a statement begins with.
fn lead(text: &str) -> usize {
    let mut at = 0;
    loop {
        at += blank(&text[at..]);
        if !text[at..].starts_with('#') {
            return at;
        }
        at += skipped(&text[at..], None).unwrap_or(0);
    }
}

/// `float a[2], b` as the type and (name, lengths) of each. Wishes for alignment are dropped: every array is aligned to 128
/// bytes.
fn declarators(text: &str) -> Option<(String, Vec<(String, String)>)> {
    let mut text = text.replace('\n', " ");
    for wish in ["__align__", "alignas"] {
        while let Some(at) = text.find(wish) {
            let end = at + wish.len() + group(&text[at + wish.len()..])?;
            text.replace_range(at..end, " ");
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
    let type_end = first.rfind(['>', '}']).map_or(0, |at| at + 1);
    let lengths_at = first[type_end..].find('[').map_or(first.len(), |at| at + type_end);
    let name = last_word(&first[..lengths_at]);
    let kind = first[..lengths_at].trim_end().strip_suffix(name)?.trim().to_owned();
    if name.is_empty() || kind.is_empty() {
        return None;
    }
    let mut names = vec![(name.to_owned(), first[lengths_at..].trim().to_owned())];
    for part in &parts[1..] {
        let at = part.find('[').unwrap_or(part.len());
        let name = part[..at].trim();
        (!name.is_empty() && word(name) == name).then_some(())?;
        names.push((name.to_owned(), part[at..].trim().to_owned()));
    }
    Some((kind, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reader<'_> {
        let mut reader = Reader::new(text);
        reader.read().unwrap();
        reader
    }

    #[test]
    fn shared_arrays_are_found_and_lines_kept() {
        let text = "#define N 4 // __shared__ float no[1];\n\
            extern \"C\" {\n\
            __global__ void __launch_bounds__(N * 2, 1) /* void */ one(float* x) {\n\
              __shared__ __align__(16) float a[N][2], // the first\n b[3]; extern __shared__ float2 d[];\n\
              const char* s = \"__shared__ int q[2];\"; x[0] = '\"';\n\
            } }\n\
            __constant__ float table[3]; static __device__ int counter = 1;\n\
            static __device__ float helper(int i) { __shared__ Pair<int, 2> p[2]; return table[i]; }\n";
        let reader = read(text);
        assert_eq!(reader.out.matches('\n').count(), text.matches('\n').count());
        assert_eq!(reader.kernels.len(), 1);
        assert_eq!(
            (reader.kernels[0].name.as_str(), reader.kernels[0].bounds.as_str()),
            ("one", "(N * 2, 1)")
        );
        assert_eq!(reader.variables, ["table", "counter"]);
        assert!(reader.out.contains("typedef float emu_type_a [N][2];"), "{}", reader.out);
        assert!(reader.out.contains("typedef float emu_type_b [3];"));
        assert!(reader.out.contains("float2* const d") || reader.out.contains("emu_type_d* const d"));
        assert!(
            !reader.out.contains("extern emu") && !reader.out.contains("extern typedef"),
            "{}",
            reader.out
        );
        assert!(reader.out.contains("typedef Pair<int, 2> emu_type_p [2];"));
        assert_eq!(reader.out.matches("section(\"emu_shared_one\")").count(), 2);
        assert!(reader.out.contains("\"__shared__ int q[2];\""));
    }

    #[test]
    fn what_cannot_be_translated_is_refused() {
        for bad in ["__shared__ float a[2];", "__global__ int", "void f() { __shared__ float a[2]"] {
            assert!(Reader::new(bad).read().is_err(), "{bad}");
        }
    }
}
