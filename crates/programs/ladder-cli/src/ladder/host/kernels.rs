//! The sources of kernels as one text: each program with its macros, in a namespace where there are several.

use std::sync::Arc;

use rayspin::device::cuda::Program;

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
                for macro_name in program.defines.iter().map(|(name, _)| *name).chain(own_macros) {
                    out.push_str(&format!("#undef {macro_name}\n"));
                }
            }
            out.push('\n');
        }
        out
    }
}
