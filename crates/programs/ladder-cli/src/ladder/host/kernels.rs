//! The sources of kernels as one text: each program with its macros, in a namespace where there are several.

use std::sync::Arc;

use rayspin::device::cuda::Program;

/// NVRTC replaces macros in `#pragma unroll`; nvcc, whose preprocessor is the host's, does not.
const UNROLL: &str = "\
// `#pragma unroll` of a macro, which nvcc does not replace there.
#define HOST_PRAGMA(text) _Pragma(#text)
#define HOST_UNROLL(times) HOST_PRAGMA(unroll times)

";

/// The programs of a run, and the names of their namespaces: empty where there is only one.
pub(super) struct Kernels {
    programs: Vec<(Arc<Program>, String)>,
}

impl Kernels {
    pub(super) fn new<'a>(launched: impl Iterator<Item = &'a Arc<Program>>) -> Self {
        let mut programs: Vec<(Arc<Program>, String)> = Vec::new();
        for program in launched {
            if !programs.iter().any(|(known, _)| known == program) {
                programs.push((program.clone(), String::new()));
            }
        }
        if programs.len() > 1 {
            for index in 0..programs.len() {
                let name: String = programs[index]
                    .0
                    .name
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
                    .collect();
                let earlier =
                    programs[..index].iter().filter(|(p, _)| p.name == programs[index].0.name).count();
                programs[index].1 = match earlier {
                    0 => format!("{name}_kernels"),
                    _ => format!("{name}_kernels_{}", earlier + 1),
                };
            }
        }
        Self { programs }
    }

    /// What stands before the name of a kernel or of a variable.
    pub(super) fn prefix(&self, program: &Program) -> String {
        let own = self.programs.iter().find(|(known, _)| **known == *program);
        own.map(|(_, name)| name)
            .filter(|name| !name.is_empty())
            .map(|name| format!("{name}::"))
            .unwrap_or_default()
    }

    pub(super) fn has(&self, program: &Program) -> bool {
        self.programs.iter().any(|(known, _)| **known == *program)
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        let unrolls = |(program, _): &(Arc<Program>, String)| {
            program.text.lines().filter_map(unrolled).any(|name| is_macro(program, name))
        };
        if self.programs.iter().any(unrolls) {
            out.push_str(UNROLL);
        }
        for (program, name) in &self.programs {
            for (macro_name, value) in &program.defines {
                out.push_str(&format!("#define {macro_name} {value}\n"));
            }
            if !name.is_empty() {
                // Their own functions of these names do not hide the others'.
                out.push_str(&format!("namespace {name} {{\nusing ::fma;\n"));
            }
            let mut own_macros = Vec::new();
            for line in program.text.lines() {
                if let Some(name) = unrolled(line).filter(|name| is_macro(program, name)) {
                    out.push_str(&format!("HOST_UNROLL({name})\n"));
                    continue;
                }
                match line.strip_prefix("#line ") {
                    Some(rest) => {
                        let file = rest.split_once(' ').map_or("", |(_, file)| file.trim_matches('"'));
                        out.push_str(&format!("\n// {file}\n"));
                        continue;
                    }
                    None if name.is_empty() => out.push_str(line),
                    // One name would be one kernel in all namespaces.
                    None => out.push_str(&line.replace("extern \"C\" __global__", "__global__")),
                }
                out.push('\n');
                let rest = line.trim_start().strip_prefix('#').map(str::trim_start).unwrap_or_default();
                if let Some(rest) = rest.strip_prefix("define ") {
                    let end = rest.trim_start().find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                    let macro_name = &rest.trim_start()[..end.unwrap_or(rest.trim_start().len())];
                    if !own_macros.contains(&macro_name) {
                        own_macros.push(macro_name);
                    }
                }
            }
            if !name.is_empty() {
                out.push_str(&format!("}}  // namespace {name}\n"));
                let set = program.defines.iter().map(|(name, _)| *name).chain(own_macros);
                for macro_name in set {
                    out.push_str(&format!("#undef {macro_name}\n"));
                }
            }
            out.push('\n');
        }
        out
    }
}

/// The name that a line of `#pragma unroll` names.
fn unrolled(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix("#pragma unroll")?.split_whitespace().next()?;
    name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic()).then_some(name)
}

/// Whether a name is a macro of a program.
fn is_macro(program: &Program, name: &str) -> bool {
    let defined = |line: &str| {
        let rest = line.trim_start().strip_prefix('#').map(str::trim_start).unwrap_or_default();
        rest.strip_prefix("define ").is_some_and(|rest| {
            let mut words = rest.split(|c: char| !(c == '_' || c.is_ascii_alphanumeric()));
            words.find(|word| !word.is_empty()) == Some(name)
        })
    };
    program.defines.iter().any(|(known, _)| *known == name) || program.text.lines().any(defined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str, defines: &[(&'static str, &str)]) -> Arc<Program> {
        let defines = defines.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Arc::new(Program { name: "some-thing", text: text.to_owned(), defines })
    }

    #[test]
    fn several_programs_have_namespaces_and_leave_no_macros() {
        let text = "#line 1 \"a.cu\"\n#define TWICE(x) (2 * (x))\nextern \"C\" __global__ void k() {}\n#pragma unroll N\n#pragma unroll OWN\n";
        let (one, other) = (program(text, &[("N", "1")]), program(text, &[("N", "2")]));
        let single = Kernels::new([&one, &one].into_iter());
        assert_eq!(single.prefix(&one), "");
        let alone = single.text();
        assert!(
            alone.contains("#define N 1\n") && alone.contains("extern \"C\" __global__ void k()"),
            "{alone}"
        );
        assert!(alone.contains("\nHOST_UNROLL(N)\n#pragma unroll OWN\n"), "{alone}");
        assert!(!alone.contains("namespace") && alone.contains("// a.cu\n"), "{alone}");
        let both = Kernels::new([&one, &other].into_iter());
        assert_eq!(both.prefix(&one), "some_thing_kernels::");
        assert_eq!(both.prefix(&other), "some_thing_kernels_2::");
        let text = both.text();
        assert!(!text.contains("extern"), "{text}");
        for macro_name in ["N", "TWICE"] {
            assert_eq!(text.matches(&format!("#undef {macro_name}\n")).count(), 2, "{macro_name}: {text}");
        }
    }
}
