//! Whole CUDA programs, with `main`, as programs of the host: `include/runtime.h` has the calls of CUDA's
//! runtime.
//!
//! A program runs in a process of its own. Its kernels run as fibres, as those of the [`Emulator`] do. What
//! it has to tell besides its output it writes to a file, line by line.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use rayspin_core::{Error, Result};
use rayspin_device::cuda::Launch;
use rayspin_device::private;

use crate::checking::{Fault, RawFinding, Teller};
use crate::compile::{Compiler, included};
use crate::counting::SourceLine;
use crate::counting::symbols::{Symbols, lines};
use crate::launches;
use crate::translate::{Tells, translate_whole};
use crate::{Emulator, barriers};

/// Headers whose place the emulator's own take.
const OWN: [&str; 16] = [
    "cuda.h",
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "cuda_profiler_api.h",
    "cuda_device_runtime_api.h",
    "curand_kernel.h",
    "device_atomic_functions.h",
    "device_functions.h",
    "device_launch_parameters.h",
    "driver_types.h",
    "math_functions.h",
    "sm_20_atomic_functions.h",
    "texture_fetch_functions.h",
    "texture_types.h",
    "vector_functions.h",
    "vector_types.h",
];
/// Beginnings of headers of libraries that the emulator does not have.
const LIBRARIES: [&str; 16] = [
    "cooperative_groups",
    "cub/",
    "cublas",
    "cuda/",
    "cuda_bf16",
    "cuda_fp16",
    "cuda_fp8",
    "cuda_pipeline",
    "cudnn",
    "cufft",
    "curand.h",
    "cusolver",
    "cusparse",
    "mma.h",
    "npp",
    "thrust/",
];
/// Files inside each other at most.
const DEPTH: usize = 32;

/// A compiled program.
#[derive(Debug)]
pub struct WholeProgram {
    path: PathBuf,
    name: String,
    text: String,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status, or the signal that ended it.
    pub status: ExitStatus,
    /// Why the emulator ended it, if it did.
    pub failed: Option<String>,
    /// Races and memory errors of its kernels, each pair of lines once.
    pub faults: Vec<Fault>,
    /// What else there is to know.
    pub notes: Vec<String>,
}

/// A program that cannot be compiled.
#[derive(Debug)]
pub enum Uncompiled {
    /// The compiler's message, by the lines of the program's files.
    Compiler(String),
    /// Something that the emulator does not have, or that there is not.
    Refused(Error),
}

impl Emulator {
    /// Compiles the CUDA C++ program of a file, with `main`, for the host. Compiled programs are cached in
    /// the folder
    /// `cache`. An emulator that checks makes a program that looks for races and memory errors.
    ///
    /// Errors: the file or one that it includes cannot be read, it includes a library that the emulator does
    /// not have, or it does not compile.
    pub fn compile_program(
        &self,
        file: &Path,
        cache: Option<PathBuf>,
    ) -> std::result::Result<WholeProgram, Uncompiled> {
        let refused = |error| Uncompiled::Refused(error);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut gathered = Gathered { includes: Vec::new(), once: Vec::new() };
        // The path as the user has it, which the compiler's words name.
        let text = gathered.file(file, &file.display().to_string(), 0).map_err(refused)?;
        let calls = launches::as_calls(&barriers::as_calls(&text)).map_err(|(line, found)| {
            let place = place_of(&text, line);
            refused(Error::value(
                format!("launch in {place}"),
                "kernel<<<blocks, threads>>>(arguments)",
                found,
            ))
        })?;
        let mut compiler: Compiler = self.compiler.clone().making_programs();
        if let Some(cache) = cache {
            compiler = compiler.keeping(cache);
        }
        let whole =
            translate_whole(&calls, &gathered.includes, compiler.tells()).map_err(|(expected, found)| {
                refused(Error::value(format!("emulation of {name}"), expected, found))
            })?;
        let stem = Path::new(&name).file_stem().unwrap_or_default().to_string_lossy();
        let kept: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let path = compiler.program(&kept, &whole).map_err(|words| {
            // The first line names a file of the emulator's.
            let own = words.split_once('\n').map_or(words.as_str(), |(_, rest)| rest);
            Uncompiled::Compiler(own.trim_end().to_owned())
        })?;
        Ok(WholeProgram { path, name, text })
    }

    /// Whether programs of [`Emulator::compile_program`] look for races and memory errors.
    pub fn checks(&self) -> bool {
        self.compiler.tells() == Tells::Order
    }
}

impl WholeProgram {
    /// Runs the program with these arguments to its end; blocks run on `threads` threads. Errors: it cannot
    /// be started.
    pub fn run(&self, arguments: &[OsString], threads: usize) -> Result<Ended> {
        let failed = |what: &str, error: std::io::Error| Error::Device {
            what: format!("{what} {}", self.name),
            detail: error.to_string(),
        };
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let report = private::temporary(folder, "report");
        private::create(&report).map_err(|e| failed("running", e))?;
        let status = Command::new(&self.path)
            .args(arguments)
            .env("EMU_REPORT", &report)
            .env("EMU_THREADS", threads.to_string())
            .status();
        let told = std::fs::read(&report);
        let _ = std::fs::remove_file(&report);
        let status = status.map_err(|e| failed("running", e))?;
        let told = told.map_err(|e| failed("reading the report of", e))?;
        let mut ended = Ended { status, failed: None, faults: Vec::new(), notes: Vec::new() };
        if !told.is_empty() {
            let mut reader =
                Reader { program: self, lines: lines(&self.text), symbols: Symbols::of(&self.path)? };
            for line in String::from_utf8_lossy(&told).lines() {
                reader.line(line, &mut ended);
            }
        }
        Ok(ended)
    }
}

/// Reads what a program told.
struct Reader<'a> {
    program: &'a WholeProgram,
    lines: HashMap<SourceLine, String>,
    symbols: Symbols,
}

impl Reader<'_> {
    fn line(&mut self, line: &str, ended: &mut Ended) {
        let Some((kind, text)) = line.split_once('\t') else { return };
        match kind {
            "failed" => ended.failed = Some(format!("{}: {}", self.program.name, self.words(text))),
            "note" => ended.notes.push(format!("{}: {}", self.program.name, self.words(text))),
            "finding" => {
                let Some(fault) = self.fault(text) else { return };
                let lines = |fault: &Fault| {
                    [&fault.access, &fault.other].map(|access| access.as_ref().and_then(|a| a.place.clone()))
                };
                let same = |other: &Fault| {
                    other.wrong == fault.wrong
                        && other.kernel == fault.kernel
                        && lines(other) == lines(&fault)
                };
                if !ended.faults.iter().any(same) {
                    ended.faults.push(fault);
                }
            }
            _ => {}
        }
    }

    /// The text with its arrays and places by their names and lines.
    fn words(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            out.push_str(&rest[..open]);
            let Some(close) = rest[open..].find('}') else { break };
            let inside = &rest[open + 1..open + close];
            let numbers = || inside.split(' ').skip(1).filter_map(|word| word.parse::<u32>().ok());
            match inside.split(' ').next() {
                Some("array") => out.push_str(&self.array(numbers().next().unwrap_or(0))),
                Some("place") => {
                    if let Some(place) = numbers().find_map(|code| self.symbols.place(code)) {
                        let line = self.lines.get(&place).map(String::as_str).unwrap_or_default();
                        out.push_str(&format!("{}:{}: {line}", place.file, place.line));
                    }
                }
                _ => out.push_str(&rest[open..=open + close]),
            }
            rest = &rest[open + close + 1..];
        }
        out.push_str(rest);
        out.replace('\u{1f}', "\n").trim_end().to_owned()
    }

    /// The name of the array that a line allocates.
    fn array(&self, line: u32) -> String {
        let place = SourceLine { file: self.program.name.clone(), line };
        let name = self.lines.get(&place).and_then(|text| allocated(text));
        name.unwrap_or_else(|| format!("the array of line {line}"))
    }

    fn fault(&mut self, text: &str) -> Option<Fault> {
        let mut parts = text.split('\t');
        let kernel = parts.next()?;
        let mut sides = || -> Option<[u32; 3]> {
            let numbers: Vec<u32> = parts.next()?.split(' ').filter_map(|n| n.parse().ok()).collect();
            numbers.try_into().ok()
        };
        let (blocks, threads) = (sides()?, sides()?);
        let (line, name) = (parts.next()?.parse::<u32>().ok()?, parts.next()?);
        let numbers: Vec<u64> = parts.next()?.split(' ').filter_map(|n| n.parse().ok()).collect();
        let raw = RawFinding::of_numbers(numbers.as_slice().try_into().ok()?);
        let array = match (line, name) {
            (0, "") => None,
            (0, name) => Some(name.to_owned()),
            (line, _) => Some(self.array(line)),
        };
        let teller =
            Teller { program: &self.program.name, kernel, launch: Launch { blocks, threads, shared: 0 } };
        Some(teller.fault(&mut self.symbols, &self.lines, array, &raw))
    }
}

/// The variable that a call allocates: `&x` in `cudaMalloc((void**)&x, bytes)`.
fn allocated(line: &str) -> Option<String> {
    let call = ["cudaMalloc", "cudaHostAlloc"].iter().filter_map(|name| line.find(name)).min()?;
    let open = call + line[call..].find('(')? + 1;
    let mut rest = line[open..].trim_start();
    // A cast.
    if rest.starts_with("(void") {
        rest = rest[rest.find(')')? + 1..].trim_start();
    }
    let rest = rest.trim_start_matches(['&', '(', ' ']);
    let end = rest.find(|c: char| !(c.is_alphanumeric() || "_.[]->".contains(c))).unwrap_or(rest.len());
    (end > 0).then(|| rest[..end].to_owned())
}

/// File and line of a line of a gathered text.
fn place_of(text: &str, wanted: usize) -> String {
    let (mut file, mut number) = ("", 0);
    for line in text.lines().take(wanted + 1) {
        match line.strip_prefix("#line ").and_then(|rest| rest.split_once(' ')) {
            Some((first, name)) => {
                number = first.parse::<usize>().unwrap_or(1) - 1;
                file = name.trim_matches('"');
            }
            None => number += 1,
        }
    }
    format!("{file}:{number}")
}

/// A program with the files that it includes.
struct Gathered {
    /// Headers of the system.
    includes: Vec<String>,
    /// Files that are read once.
    once: Vec<PathBuf>,
}

impl Gathered {
    fn file(&mut self, path: &Path, name: &str, depth: usize) -> Result<String> {
        if depth > DEPTH {
            return Err(Error::value(name, format!("at most {DEPTH} files inside each other"), "more"));
        }
        let bytes = std::fs::read(path)
            .map_err(|error| Error::value(path.display().to_string(), "a file that can be read", error))?;
        let text = String::from_utf8_lossy(&bytes);
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if self.once.contains(&real) {
            return Ok(String::new());
        }
        let mut out = format!("#line 1 \"{name}\"\n");
        for (index, line) in text.lines().enumerate() {
            let pragma = line.trim_start().strip_prefix("#pragma");
            if pragma.is_some_and(|rest| rest.trim() == "once") {
                self.once.push(real.clone());
                out.push('\n');
                continue;
            }
            let Some(header) = included(line) else {
                out.push_str(line);
                out.push('\n');
                continue;
            };
            let beside = path.parent().unwrap_or(Path::new("")).join(header);
            let number = index + 1;
            if line.contains('"') && beside.is_file() {
                out.push_str(&self.file(&beside, header, depth + 1)?);
                out.push_str(&format!("\n#line {} \"{name}\"\n", number + 1));
            } else if OWN.contains(&header) || matches!(header, "assert.h" | "cassert") {
                out.push('\n');
            } else if LIBRARIES.iter().any(|library| header.starts_with(library)) {
                return Err(Error::value(
                    format!("{name}:{number}: header"),
                    "one of the host, of CUDA's runtime, or curand_kernel.h: the emulator has no such library",
                    header,
                ));
            } else {
                if !line.contains('"') && !self.includes.iter().any(|known| known == header) {
                    self.includes.push(header.to_owned());
                }
                out.push_str(line);
                out.push('\n');
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_have_the_names_of_their_variables() {
        for (line, name) in [
            ("cudaMalloc(&d_x, n * sizeof(float));", Some("d_x")),
            ("  CHECK(cudaMalloc((void **)&work.a[0], n));", Some("work.a[0]")),
            ("cudaMallocPitch(&p, &pitch, 4, 4);", Some("p")),
            ("x = make(n);", None),
        ] {
            assert_eq!(allocated(line).as_deref(), name, "{line}");
        }
    }

    #[test]
    fn included_files_stand_in_the_text_and_keep_their_lines() {
        let folder = std::env::temp_dir().join(format!("rayspin-programs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.cuh"), "#pragma once\nint a;\n").unwrap();
        let main = "#include <cuda_runtime.h>\n#include \"a.cuh\"\n#include \"a.cuh\"\n#include <vector>\nint b<<<;\n";
        std::fs::write(folder.join("m.cu"), main).unwrap();
        let mut gathered = Gathered { includes: Vec::new(), once: Vec::new() };
        let text = gathered.file(&folder.join("m.cu"), "m.cu", 0).unwrap();
        assert_eq!(text.matches("int a;").count(), 1, "{text}");
        assert_eq!(gathered.includes, ["vector"]);
        let line = text.lines().position(|line| line.contains("<<<")).unwrap();
        assert_eq!(place_of(&text, line), "m.cu:5");
        std::fs::write(folder.join("m.cu"), "\n#include <thrust/sort.h>\n").unwrap();
        let words = gathered.file(&folder.join("m.cu"), "m.cu", 0).unwrap_err().to_string();
        assert!(words.contains("m.cu:2") && words.contains("thrust/sort.h"), "{words}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
