//! Kernels as loops, as text for people.

use rayspin_core::Result;
use rayspin_device::cuda::Program;

use crate::words::{behind_name, blank, group, last_word, skipped, word};
use crate::{Emulator, How};

/// A kernel as the emulator runs it where loops are allowed.
#[derive(Debug, Clone)]
pub struct KernelLoops {
    /// The kernel.
    pub name: String,
    /// How it runs.
    pub how: How,
    /// Its text: loops over the threads of a block, or the kernel as written.
    pub text: String,
}

/// What stands in place of the head of a loop over threads.
const LOOP: &str = "for (unsigned z = 0; z < blockDim.z; z++) for (unsigned y = 0; y < blockDim.y; y++) \
                    for (unsigned x = 0; x < blockDim.x; x++) {";

impl Emulator {
    /// The kernels of a program as loops over the threads of a block, in the order of the program, behind the
    /// preprocessor. Does not compile the program. Errors: the preprocessor's message.
    pub fn loops_of(&self, program: &Program) -> Result<Vec<KernelLoops>> {
        let (preprocessed, ways) = self.compiler.ways(program)?;
        let kernels = kernels(&preprocessed.text);
        Ok(kernels
            .into_iter()
            .map(|Written { name, parameters, body }| {
                let how = ways.of(&name);
                let split = ways.splits.get(&name).and_then(|split| split.as_ref().ok());
                let text = match (&how, split) {
                    (How::Loops(1), _) if ways.loops.as_ref().is_some_and(|loops| loops.runs(&name)) => {
                        format!("void {name}{parameters} {{ {LOOP} {} }} }}", &body[1..body.len() - 1])
                    }
                    (How::Loops(_), Some(split)) => shortened(&split.text),
                    _ => format!("__global__ void {name}{parameters} {body}"),
                };
                KernelLoops { name, how, text: laid_out(&text) }
            })
            .collect())
    }
}

/// A kernel's parts in a text.
struct Written {
    name: String,
    parameters: String,
    body: String,
}

fn kernels(text: &str) -> Vec<Written> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("__global__") {
        rest = &rest[start + "__global__".len()..];
        let Some(written) = written(rest) else { continue };
        found.push(written);
    }
    found
}

fn written(text: &str) -> Option<Written> {
    let offset = behind_name(text)?;
    let end = offset + group(&text[offset..])?;
    let open = end + blank(&text[end..]);
    let body = text[open..].starts_with('{').then(|| &text[open..open + braced(&text[open..])])?;
    Some(Written {
        name: last_word(&text[..offset]).to_owned(),
        parameters: text[offset..end].to_owned(),
        body: body.to_owned(),
    })
}

/// Bytes of the braced text that `text` begins with.
fn braced(text: &str) -> usize {
    let (mut offset, mut depth) = (0, 0usize);
    while let Some(letter) = text[offset..].chars().next() {
        if let Some(bytes) = skipped(&text[offset..], Some('x')) {
            offset += bytes;
            continue;
        }
        offset += letter.len_utf8();
        match letter {
            '{' => depth += 1,
            '}' if depth <= 1 => return offset,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// A split kernel without what only serves to compile it.
fn shortened(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("const emu::Place& emu_outer") || line.starts_with("unsigned char emu_live") {
            if line.starts_with("unsigned") {
                out.push_str("unsigned char live[THREADS] = {1, ...};\n");
            }
        } else if line.starts_with("for (unsigned emu_z") {
            // The head of a loop ends where the place is known.
            for head in lines.by_ref() {
                if head.starts_with("const emu::Place emu_place") {
                    break;
                }
            }
            out.push_str(LOOP);
            out.push('\n');
        } else if line == "} }" {
            out.push_str("}\n");
        } else if let Some(rest) = line.strip_prefix("typedef ") {
            // The array of a variable over threads.
            match rest.split_once(';') {
                Some((declared, kept)) if kept.contains("emu::keep(") => {
                    let number = declared.split("emu_type_").nth(1).map(word).unwrap_or_default();
                    out.push_str(&format!("typedef {declared}; type_{number} kept_{number}[THREADS];\n"));
                }
                _ => {
                    out.push_str(line);
                    out.push('\n');
                }
            }
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    let out = out.replace("static __attribute__((flatten)) ", "").replace("const emu::Place emu_place, ", "");
    let out = out.replace("const emu::Place emu_place", "").replace("emu_split_", "");
    out.replace("emu::", "").replace("emu_", "")
}

/// A statement a line, indented by its braces.
fn laid_out(text: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    // For each open brace, whether it begins a block of statements.
    let mut braces: Vec<bool> = Vec::new();
    let mut round = 0i32;
    let end = |line: &mut String, out: &mut String, depth: usize| {
        if !line.trim().is_empty() {
            out.push_str(&"    ".repeat(depth));
            out.push_str(line.trim());
            out.push('\n');
        }
        line.clear();
    };
    let depth = |braces: &[bool]| braces.iter().filter(|&&block| block).count();
    let mut offset = 0;
    while let Some(letter) = text[offset..].chars().next() {
        let before = if line.trim().is_empty() { None } else { line.chars().next_back() };
        if let Some(bytes) = skipped(&text[offset..], before) {
            let part = &text[offset..offset + bytes];
            offset += bytes;
            line.push_str(part);
            if part.starts_with('#') || part.starts_with("//") {
                end(&mut line, &mut out, depth(&braces));
            }
            continue;
        }
        offset += letter.len_utf8();
        match letter {
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            _ => {}
        }
        match letter {
            '{' => {
                let head = line.trim_end();
                let list = round > 0 || head.ends_with(['=', ',', '(', '{']) && !head.is_empty() || {
                    let last = last_word(head);
                    head.ends_with(|c: char| c == '_' || c.is_ascii_alphanumeric() || c == '>' || c == ']')
                        && !matches!(last, "else" | "do" | "try")
                };
                line.push('{');
                if !list {
                    end(&mut line, &mut out, depth(&braces));
                }
                braces.push(!list);
            }
            '}' => {
                if braces.pop().unwrap_or(true) {
                    end(&mut line, &mut out, depth(&braces) + 1);
                    line.push('}');
                    end(&mut line, &mut out, depth(&braces));
                } else {
                    line.push('}');
                }
            }
            ';' if round == 0 => {
                line.push(';');
                end(&mut line, &mut out, depth(&braces));
            }
            letter if letter.is_whitespace() => {
                if !line.is_empty() && !line.ends_with(' ') {
                    line.push(' ');
                }
            }
            letter => line.push(letter),
        }
    }
    end(&mut line, &mut out, depth(&braces));
    out
}

#[cfg(test)]
mod tests {
    use super::laid_out;

    #[test]
    fn statements_have_lines_of_their_own() {
        let text = "void f(int n) { for (int i = 0; i < n; i++) {\n int a[2] = {1, 2}; g(float2{1, a[i]}); }\n#pragma x\nif (n) { h(); } else { k(\";{\"); } }";
        let wanted = "void f(int n) {\n    for (int i = 0; i < n; i++) {\n        int a[2] = {1, 2};\n        \
                      g(float2{1, a[i]});\n    }\n    #pragma x\n    if (n) {\n        h();\n    }\n    else {\n        \
                      k(\";{\");\n    }\n}\n";
        assert_eq!(laid_out(text), wanted);
    }
}
