//! Kernel sources, the macros that a compilation fixes, and the parameters that kernels declare.

use std::collections::HashMap;

use rayspin_core::{Error, Result};

/// The CUDA C++ of one or more kernels, as files in the order in which the compiler reads them.
#[derive(Debug)]
pub struct Source {
    /// The algorithm's name, for messages and the cache.
    pub name: &'static str,
    /// File names and contents.
    pub files: &'static [(&'static str, &'static str)],
}

/// A macro that a compilation fixes: `-DNAME=VALUE`.
pub type Define = (&'static str, String);

/// Types for every kernel. `real` and `cplx` are the real and complex numbers of the program's precision.
const PRELUDE: &str = include_str!("prelude.cuh");

/// A source with everything that its compilation depends on, except the processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The source's name.
    pub name: &'static str,
    /// The whole text.
    pub text: String,
    /// Macros, in order.
    pub defines: Vec<Define>,
}

impl Program {
    /// `source` with `defines`.
    pub fn new(source: &Source, defines: &[Define]) -> Self {
        let mut text = format!("#line 1 \"prelude.cuh\"\n{PRELUDE}");
        for (file, content) in source.files {
            text.push_str(&format!("\n#line 1 \"{file}\"\n{content}"));
        }
        Self { name: source.name, text, defines: defines.to_vec() }
    }

    /// Options as a compiler takes them.
    pub fn options(&self) -> Vec<String> {
        self.defines.iter().map(|(name, value)| format!("-D{name}={value}")).collect()
    }

    /// The macros in words for people, without long lists.
    pub(super) fn describe(&self) -> String {
        let short = |value: &str| if value.len() > 24 { "…".to_owned() } else { value.to_owned() };
        let list: Vec<_> =
            self.defines.iter().map(|(name, value)| format!("{name} = {}", short(value))).collect();
        list.join(", ")
    }

    /// The names and parameters of the program's kernels. Macros in types are replaced. Errors: a declaration
    /// that cannot be parsed.
    pub fn signatures(&self) -> Result<HashMap<String, Vec<Parameter>>> {
        signatures(self.name, &self.text, &self.defines)
    }
}

/// One parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The type without qualifiers and with `real` and `cplx` resolved: `float2`, `int`.
    pub element: String,
    /// Whether it is a pointer.
    pub pointer: bool,
    /// Whether the kernel may write through it.
    pub writes: bool,
}

/// Every `extern "C" __global__` function of `text`.
fn signatures(program: &str, text: &str, defines: &[Define]) -> Result<HashMap<String, Vec<Parameter>>> {
    let text = without_comments(text);
    let mut signatures = HashMap::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find("__global__") {
        rest = &rest[start + "__global__".len()..];
        let unreadable = || {
            Error::value(
                format!("kernels of {program}"),
                "extern \"C\" __global__ void name(type name, ...)",
                rest.lines().next().unwrap_or_default(),
            )
        };
        let mut head = rest.trim_start();
        if let Some(bounds) = head.strip_prefix("__launch_bounds__") {
            head = after_group(bounds).ok_or_else(unreadable)?.trim_start();
        }
        head = head.strip_prefix("void").ok_or_else(unreadable)?.trim_start();
        if let Some(bounds) = head.strip_prefix("__launch_bounds__") {
            head = after_group(bounds).ok_or_else(unreadable)?.trim_start();
        }
        let open = head.find('(').ok_or_else(unreadable)?;
        let close = head.find(')').filter(|&close| close > open).ok_or_else(unreadable)?;
        let name = head[..open].trim().to_owned();
        let list = head[open + 1..close].trim();
        let parameters = if list.is_empty() {
            Vec::new()
        } else {
            list.split(',')
                .map(|p| parameter(p, defines).ok_or_else(unreadable))
                .collect::<Result<Vec<_>>>()?
        };
        signatures.insert(name, parameters);
        rest = &head[close..];
    }
    Ok(signatures)
}

/// The text after the bracketed group that `text` begins with.
fn after_group(text: &str) -> Option<&str> {
    let mut depth = 0usize;
    for (index, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(&text[index + 1..]);
                }
            }
            _ => {}
        }
    }
    None
}

fn parameter(text: &str, defines: &[Define]) -> Option<Parameter> {
    let defined = |name: &str| defines.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str());
    let double = defined("DOUBLE").is_some_and(|value| value != "0");
    let pointer = text.contains('*');
    let spaced = text.replace('*', " ");
    let mut words: Vec<&str> = spaced.split_whitespace().collect();
    let name = words.pop()?.to_owned();
    let constant = words.contains(&"const");
    words.retain(|w| !matches!(*w, "const" | "__restrict__" | "__grid_constant__" | "volatile"));
    let declared = words.join(" ");
    let element = match defined(&declared).unwrap_or(&declared) {
        "" => return None,
        "real" => if double { "double" } else { "float" }.to_owned(),
        "cplx" => if double { "double2" } else { "float2" }.to_owned(),
        "unsigned" | "unsigned int" | "uint32_t" => "unsigned int".to_owned(),
        "int64_t" => "long long".to_owned(),
        "uint64_t" | "size_t" => "unsigned long long".to_owned(),
        "uint8_t" => "unsigned char".to_owned(),
        other => other.to_owned(),
    };
    Some(Parameter { name, element, pointer, writes: pointer && !constant })
}

fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let line = rest.find("//");
        let block = rest.find("/*");
        let (start, end) = match (line, block) {
            (Some(line), block) if block.is_none_or(|block| line < block) => (line, "\n"),
            (_, Some(block)) => (block, "*/"),
            _ => {
                kept.push_str(rest);
                return kept;
            }
        };
        kept.push_str(&rest[..start]);
        rest = &rest[start + 2..];
        match rest.find(end) {
            Some(stop) => {
                kept.push(' ');
                rest = &rest[if end == "\n" { stop } else { stop + 2 }..];
            }
            None => return kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_from_the_source() {
        let source = Source {
            name: "test",
            files: &[(
                "test.cu",
                r#"
                /* a __global__ in a comment( */
                // __global__ void no(int x)
                extern "C" __global__ void __launch_bounds__(128, (2)) scale(const real alpha,
                    const cplx* __restrict__ x, // the input
                    cplx* y, unsigned n, const long long stride) { }
                extern "C" __global__ __launch_bounds__(32) void none() {}
                "#,
            )],
        };
        for (double, real, cplx) in [("0", "float", "float2"), ("1", "double", "double2")] {
            let found = Program::new(&source, &[("DOUBLE", double.to_owned())]).signatures().unwrap();
            assert_eq!(found.len(), 2);
            assert!(found["none"].is_empty());
            let scale = &found["scale"];
            let kinds: Vec<_> =
                scale.iter().map(|p| (p.name.as_str(), p.element.as_str(), p.pointer, p.writes)).collect();
            assert_eq!(
                kinds,
                [
                    ("alpha", real, false, false),
                    ("x", cplx, true, false),
                    ("y", cplx, true, true),
                    ("n", "unsigned int", false, false),
                    ("stride", "long long", false, false)
                ]
            );
        }
    }

    #[test]
    fn a_type_that_is_a_macro_is_what_the_macro_says() {
        let text =
            "extern \"C\" __global__ void copy(const ELEMENT* __restrict__ a, ELEMENT* b, unsigned n) { }";
        let defines: [Define; 1] = [("ELEMENT", "unsigned char".to_owned())];
        let found = &signatures("test", text, &defines).unwrap()["copy"];
        let kinds: Vec<_> = found.iter().map(|p| (p.element.as_str(), p.pointer, p.writes)).collect();
        assert_eq!(
            kinds,
            [("unsigned char", true, false), ("unsigned char", true, true), ("unsigned int", false, false)]
        );
    }

    #[test]
    fn an_unreadable_kernel_is_an_error() {
        let source = Source { name: "test", files: &[("test.cu", "__global__ int bad(int x) {}")] };
        assert!(Program::new(&source, &[]).signatures().is_err());
    }
}
