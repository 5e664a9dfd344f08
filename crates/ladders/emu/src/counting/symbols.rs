//! Lines of the source by addresses of the code.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian};
use object::{Object as _, ObjectSection as _};
use rayspin_core::{Error, Result};

use super::types::Types;

pub(super) type Bytes = EndianArcSlice<RunTimeEndian>;

/// The emulator's own texts.
const OWN: [&str; 9] = [
    "fibres.h",
    "emulate.h",
    "texture.h",
    "runtime.h",
    "refused.h",
    "calls.h",
    "arrays.h",
    "curand_kernel.h",
    "table",
];

/// A line of a program's text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// The source file, as the program names it.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
}

/// The debug information of a library.
pub(crate) struct Symbols {
    context: Context<Bytes>,
    known: HashMap<u32, Option<SourceLine>>,
    types: Types,
}

impl Symbols {
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let failed = |detail: String| Error::Device { what: format!("reading {}", path.display()), detail };
        let bytes = std::fs::read(path).map_err(|e| failed(e.to_string()))?;
        let file = object::File::parse(&*bytes).map_err(|e| failed(e.to_string()))?;
        let section = |id: gimli::SectionId| -> std::result::Result<Bytes, gimli::Error> {
            let data = file.section_by_name(id.name()).and_then(|section| section.data().ok());
            Ok(Bytes::new(Arc::from(data.unwrap_or_default()), RunTimeEndian::default()))
        };
        let dwarf = Dwarf::load(section).map_err(|e| failed(e.to_string()))?;
        let types = Types::of(&dwarf).map_err(|e| failed(e.to_string()))?;
        let context = Context::from_dwarf(dwarf).map_err(|e| failed(e.to_string()))?;
        Ok(Self { context, known: HashMap::new(), types })
    }

    /// The structures of the program.
    pub(crate) fn types(&self) -> &Types {
        &self.types
    }

    /// The line of the call that returns to `code`: of inlined functions the innermost one that is not the
    /// emulator's. `None` if all are.
    pub(crate) fn place(&mut self, code: u32) -> Option<SourceLine> {
        if let Some(known) = self.known.get(&code) {
            return known.clone();
        }
        let found = self.look_up(code);
        self.known.insert(code, found.clone());
        found
    }

    fn look_up(&self, code: u32) -> Option<SourceLine> {
        let mut frames = self.context.find_frames(u64::from(code).checked_sub(1)?).skip_all_loads().ok()?;
        while let Ok(Some(frame)) = frames.next() {
            let Some(location) = frame.location else { continue };
            let (Some(file), Some(line)) = (location.file, location.line) else { continue };
            let name = file.rsplit('/').next().unwrap_or(file);
            // Texts of the emulator, and the text that the compiler was given before any line directive.
            if !OWN.contains(&name) && !name.starts_with('.') && line > 0 {
                return Some(SourceLine { file: name.to_owned(), line });
            }
        }
        None
    }
}

/// The lines of a program's text, by the names and numbers that its line directives give them.
pub(crate) fn lines(text: &str) -> HashMap<SourceLine, String> {
    let mut lines = HashMap::new();
    let (mut file, mut number) = (String::new(), 1);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("#line ") {
            let mut words = rest.splitn(2, ' ');
            number = words.next().and_then(|word| word.parse().ok()).unwrap_or(number);
            if let Some(name) = words.next() {
                let name = name.trim().trim_matches('"');
                name.rsplit('/').next().unwrap_or(name).clone_into(&mut file);
            }
            continue;
        }
        lines.insert(SourceLine { file: file.clone(), line: number }, line.trim().to_owned());
        number += 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_follow_their_directives() {
        let lines = lines("#line 1 \"a.cuh\"\none\ntwo\n#line 1 \"cuda/b.cu\"\n  three\n");
        let text = |file: &str, line| lines[&SourceLine { file: file.to_owned(), line }].as_str();
        assert_eq!([text("a.cuh", 1), text("a.cuh", 2), text("b.cu", 1)], ["one", "two", "three"]);
    }
}
