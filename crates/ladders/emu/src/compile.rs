//! Compiles a program to a library for the host with the host's C++ compiler, and caches libraries in a
//! folder.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use rayspin_core::{Error, Result};
use rayspin_device::cuda::Program;
use rayspin_device::private;

use crate::barriers;
use crate::counting::assembly::with_blocks;
use crate::lock;
use crate::loops::Loops;
use crate::split::split;
use crate::translate::{HEADER, Tells, Ways, translate};
use crate::words::{has_word, without_comments};

/// Defined where the emulator compiles a program.
const EMULATED: &str = "RAYSPIN_EMULATED";

/// The host's C++ compiler.
#[derive(Debug, Clone)]
pub(crate) struct Compiler {
    path: PathBuf,
    version: String,
    flags: Vec<&'static str>,
    loops: bool,
    /// Whether it makes programs with `main` instead of libraries.
    whole: bool,
    tells: Tells,
    /// `None` if the user has no cache folder.
    cache: Option<PathBuf>,
}

/// Bytes of the hash at the end of a library. It covers the library's key and all bytes before.
const HASH: usize = 32;
/// The runtime of counting, and what a program for it is compiled with: at `-O1` and without jumps that are
/// threaded through copies of blocks a block of the source stays one block, so that lanes meet in it again;
/// without `-ftree-sra` the copy of a vector stays one access. Later versions of the compiler may turn on
/// other passes at `-O1` that copy or join blocks. Loops that the source wants unrolled altogether are, and
/// short ones of a known number of turns; a loop with an unknown number stays one, so that lanes meet in it.
const COUNTER: &str = include_str!("../include/counting.cc");
/// What makes the table of blocks: a library from before it changed is of no use.
const BLOCKS: &str = include_str!("counting/assembly.rs");
const COUNTING: [&str; 15] = [
    "-O1",
    "-fno-tree-sra",
    "-fno-thread-jumps",
    "-fno-split-paths",
    "-fno-tree-tail-merge",
    "-fno-crossjumping",
    "-fno-unswitch-loops",
    "-fno-ipa-cp-clone",
    "-fno-partial-inlining",
    "-fpeel-loops",
    "-fdisable-rtl-loop2_unroll",
    "-fsanitize=thread",
    "--param=tsan-distinguish-volatile=1",
    "-fsanitize-coverage=trace-pc",
    "-g",
];

/// The runtime of checks, and what a program for it is compiled with: accesses as the source has them.
const CHECKER: &str = include_str!("../include/checking.cc");
const CHECKING: [&str; 6] = [
    "-O1",
    "-fno-tree-sra",
    "-fsanitize=thread",
    "--param=tsan-distinguish-volatile=1",
    "--param=tsan-instrument-func-entry-exit=0",
    "-g",
];

impl Compiler {
    /// Finds `$CXX`, or else g++, c++ or clang++. Errors: none of them runs.
    pub(crate) fn find() -> Result<Self> {
        static FOUND: OnceLock<Option<Compiler>> = OnceLock::new();
        FOUND
            .get_or_init(|| {
                let set = std::env::var_os("CXX").filter(|v| !v.is_empty()).map(PathBuf::from);
                set.into_iter().chain(["g++", "c++", "clang++"].map(PathBuf::from)).find_map(Self::ask)
            })
            .clone()
            .ok_or_else(|| Error::Device {
                what: "emulator".to_owned(),
                detail: "no C++ compiler was found: install g++ or name one with CXX".to_owned(),
            })
    }

    fn ask(path: PathBuf) -> Option<Self> {
        let told = Command::new(&path).arg("--version").output().ok().filter(|o| o.status.success())?;
        let version = String::from_utf8_lossy(&told.stdout).lines().next()?.to_owned();
        // Strict aliasing would forbid the casts between number types that kernels read vectors with; NaN and
        // infinity must be kept.
        let mut flags = vec![
            "-x",
            "c++",
            "-std=c++17",
            "-O2",
            "-shared",
            "-fPIC",
            "-w",
            "-fvisibility=hidden",
            "-fno-exceptions",
            "-fno-rtti",
            "-fno-strict-aliasing",
            "-fno-math-errno",
            "-fno-trapping-math",
            "-ffp-contract=fast",
            "-fno-stack-protector",
        ];
        if !version.contains("clang") {
            flags.push("-fno-gnu-unique");
        }
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            flags.extend(["-mavx2", "-mfma", "-fcf-protection=none"]);
        } else {
            flags.push("-fcf-protection=none");
        }
        Some(Self {
            path,
            version,
            flags,
            loops: false,
            whole: false,
            tells: Tells::Nothing,
            cache: folder(),
        })
    }

    /// The same compiler with another cache folder.
    pub(crate) fn keeping(self, cache: PathBuf) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// The same compiler for kernels as loops over threads, which it vectorises if it can.
    pub(crate) fn with_loops(mut self) -> Self {
        self.loops = true;
        self.flags.retain(|&flag| flag != "-O2");
        self.flags.extend(["-O3", "-fno-semantic-interposition"]);
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512vl")
        {
            self.flags.extend(["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl"]);
        }
        self
    }

    /// The same compiler without the instructions of this machine's processor: it gives the same results on
    /// every machine.
    pub(crate) fn portable(mut self) -> Self {
        self.flags.retain(|flag| !flag.starts_with("-mavx") && *flag != "-mfma");
        self
    }

    /// The same compiler for programs that tell of each access and each block of code.
    ///
    /// Errors: a compiler that is not GCC 12 or newer, whose code would be counted in another way.
    pub(crate) fn counting(self) -> Result<Self> {
        self.telling("counting", Tells::Accesses, &COUNTING)
    }

    /// The same compiler for programs that tell of each access and what orders threads. Errors: as for
    /// [`Compiler::counting`].
    pub(crate) fn checking(self) -> Result<Self> {
        self.telling("checking", Tells::Order, &CHECKING)
    }

    fn telling(self, what: &str, tells: Tells, flags: &[&'static str]) -> Result<Self> {
        if !self.instruments() {
            return Err(Error::Device {
                what: what.to_owned(),
                detail: format!("it needs g++ 12 or newer, found {}: name one with CXX", self.version),
            });
        }
        let mut own = self.portable();
        own.tells = tells;
        own.flags.retain(|&flag| flag != "-O2");
        own.flags.extend(flags);
        Ok(own)
    }

    /// The same compiler for programs with `main`.
    pub(crate) fn making_programs(mut self) -> Self {
        self.whole = true;
        let others = ["-shared", "-fno-exceptions", "-fno-rtti", "-g", "-O1", "-O2"];
        self.flags.retain(|flag| !others.contains(flag));
        // With -O2 an access of a kernel may have the line of its caller.
        self.flags.extend(["-O1", "-g", "-pthread"]);
        if self.tells == Tells::Order {
            self.flags.push("-fno-threadsafe-statics");
        }
        self
    }

    /// Compiles a whole program, as [`translate_whole`](crate::translate::translate_whole) gives it. Errors:
    /// the compiler's message.
    pub(crate) fn program(&self, name: &str, text: &str) -> std::result::Result<PathBuf, String> {
        self.make(name, text).map_err(|failure| failure.words)
    }

    /// What programs tell.
    pub(crate) fn tells(&self) -> Tells {
        self.tells
    }

    /// The compiler that [`Compiler::counting`] was made of, with the same arithmetic.
    pub(crate) fn uncounted(&self) -> Self {
        let mut own = self.clone();
        own.tells = Tells::Nothing;
        own.flags.retain(|flag| !COUNTING.contains(flag));
        own.flags.push("-O2");
        own
    }

    /// The first line that the compiler says of itself.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    fn instruments(&self) -> bool {
        let number = self.version.split_whitespace().rev().find_map(|word| {
            let (major, rest) = word.split_once('.')?;
            rest.contains('.').then(|| major.parse::<u32>().ok())?
        });
        !self.version.contains("clang") && number.is_some_and(|major| major >= 12)
    }

    /// The library of `program`. Compiles it if it is not in the cache.
    ///
    /// Errors: the compiler's message.
    pub(crate) fn library(&self, program: &Program) -> Result<PathBuf> {
        let text = without_own_headers(&barriers::as_calls(&program.text));
        let program = &Program { text, ..program.clone() };
        if !self.loops {
            return self
                .make(program.name, &translate(program, None, self.tells)?)
                .map_err(|failure| failure.of(program));
        }
        let (plain, mut ways) = self.ways(program)?;
        loop {
            match self.make(plain.name, &translate(&plain, Some(&ways), Tells::Nothing)?) {
                Ok(path) => return Ok(path),
                Err(failure) => {
                    // A kernel whose loops do not compile runs as written.
                    let wrong = ways.refuse(&failure.words);
                    if wrong == 0 {
                        return Err(failure.of(program));
                    }
                }
            }
        }
    }

    /// The preprocessed program, and how each of its kernels can run.
    ///
    /// Errors: the preprocessor's message.
    pub(crate) fn ways(&self, program: &Program) -> Result<(Program, Ways)> {
        let text = self.preprocessed(program, true)?;
        let ways = Ways { loops: Loops::of(&text), splits: split(&text) };
        Ok((Program { name: program.name, text, defines: Vec::new() }, ways))
    }

    /// Whether the emulator compiles other lines of a program than a compiler for GPUs.
    pub(crate) fn has_twin(&self, program: &Program) -> bool {
        if !has_word(&without_comments(&program.text), EMULATED) {
            return false;
        }
        match (self.preprocessed(program, true), self.preprocessed(program, false)) {
            (Ok(here), Ok(there)) => here != there,
            _ => true,
        }
    }

    fn preprocessed(&self, program: &Program, emulated: bool) -> Result<String> {
        let failed = |detail: String| Failure { words: detail }.of(program);
        let mut text = String::from("#define __CUDACC__ 1\n#define __CUDA_ARCH__ 900\n");
        if emulated {
            text.push_str(&format!("#define {EMULATED} 1\n"));
        }
        for (name, value) in &program.defines {
            text.push_str(&format!("#define {name} {value}\n"));
        }
        text.push_str(&program.text);
        let mut child = Command::new(&self.path)
            .args(["-x", "c++", "-std=c++17", "-E", "-P", "-w", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| failed(format!("running {}: {e}", self.path.display())))?;
        let input = child.stdin.take();
        let told = std::thread::scope(|scope| {
            // Writes and reads concurrently, because a pipe has a limited buffer.
            scope.spawn(move || input.map(|mut input| input.write_all(text.as_bytes())));
            child.wait_with_output()
        });
        let told = told.map_err(|e| failed(format!("running {}: {e}", self.path.display())))?;
        if !told.status.success() {
            return Err(failed(String::from_utf8_lossy(&told.stderr).into_owned()));
        }
        Ok(String::from_utf8_lossy(&told.stdout).into_owned())
    }

    fn make(&self, name: &str, text: &str) -> std::result::Result<PathBuf, Failure> {
        static BUSY: OnceLock<Mutex<HashMap<String, Arc<Mutex<()>>>>> = OnceLock::new();
        let mut hasher = blake3::Hasher::new();
        let table = if self.tells == Tells::Accesses { BLOCKS } else { "" };
        for part in [text, &self.version, &self.flags.join(" "), self.runtime(), table] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let key = hasher.finalize().to_hex()[..32].to_string();
        let busy = lock(BUSY.get_or_init(Mutex::default)).entry(key.clone()).or_default().clone();
        let _alone = lock(&busy);
        let folder = self.cache.as_deref().ok_or_else(|| Failure {
            words: "neither HOME nor XDG_CACHE_HOME is an absolute path, where it could be kept: RAYSPIN_EMULATOR_CACHE names \
                    a folder"
                .to_owned(),
        })?;
        let path = folder.join(format!("{name}-{key}.{}", if self.whole { "program" } else { "so" }));
        if !whole(&path, &key) {
            // Refuses a folder that others may write to.
            private::make(folder).map_err(io("making", folder))?;
            self.compile(text, folder, &path, &key)?;
        }
        Ok(path)
    }

    /// What is linked beside a program that tells something.
    fn runtime(&self) -> &'static str {
        match self.tells {
            Tells::Nothing => "",
            Tells::Accesses => COUNTER,
            Tells::Order => CHECKER,
        }
    }

    /// The program as assembly, for counts with a table of its blocks, linked with the runtime and without a
    /// sanitizer's.
    fn compile_telling(
        &self,
        source: &Path,
        folder: &Path,
        part: &Path,
        run: impl Fn(&mut Command) -> std::result::Result<(), Failure>,
    ) -> std::result::Result<(), Failure> {
        let (assembly, runtime) = (private::temporary(folder, "s"), private::temporary(folder, "cc"));
        let made = (|| {
            let flags = self.flags.iter().filter(|&&flag| flag != "-shared");
            run(Command::new(&self.path).args(flags).arg("-S").arg("-o").arg(&assembly).arg(source))?;
            if self.tells == Tells::Accesses {
                let text = std::fs::read_to_string(&assembly).map_err(io("reading", &assembly))?;
                std::fs::write(&assembly, with_blocks(&text)).map_err(io("writing", &assembly))?;
            }
            std::fs::write(&runtime, self.runtime()).map_err(io("writing", &runtime))?;
            let link = [
                "-std=c++17",
                "-O2",
                if self.whole { "-pthread" } else { "-shared" },
                "-fPIC",
                "-fvisibility=hidden",
                "-fno-exceptions",
                "-fno-rtti",
            ];
            run(Command::new(&self.path)
                .args(link)
                .args(["-w", "-fno-stack-protector", "-fno-gnu-unique", "-x", "assembler"])
                .arg(&assembly)
                .args(["-x", "c++"])
                .arg(&runtime)
                .arg("-o")
                .arg(part)
                .arg("-lm"))
        })();
        let _ = std::fs::remove_file(&assembly);
        let _ = std::fs::remove_file(&runtime);
        made
    }

    /// The text with the emulator's header as a precompiled one in `folder`, and that: to read the header
    /// takes GCC as long as a small kernel. `None` if other macros change it, or if it does not compile.
    fn with_header(&self, text: &str, folder: &Path) -> Option<(String, PathBuf)> {
        static BUSY: Mutex<()> = Mutex::new(());
        // Clang takes no such header by a line of the source.
        let clang = self.version.contains("clang");
        let plain = !self.whole && !self.loops && self.tells == Tells::Nothing && !clang;
        let (before, after) = text.split_once(HEADER).filter(|_| plain)?;
        let flags = self.flags.join(" ");
        let key = blake3::hash([HEADER, &self.version, &flags].join("\n").as_bytes()).to_hex();
        let name = format!("emulator-{}.h", &key[..32]);
        let header = folder.join(&name);
        let compiled = header.with_extension("h.gch");
        let _alone = lock(&BUSY);
        // GCC reads the text itself where a program's macros change it.
        if private::open(&compiled).is_err() || private::open(&header).is_err() {
            let (source, part) = (private::temporary(folder, "h"), private::temporary(folder, "gch"));
            let made = (|| {
                private::create(&source)?.write_all(HEADER.as_bytes())?;
                std::fs::rename(&source, &header)?;
                // The compiler keeps the mode of a file that it writes.
                private::create(&part)?;
                let flags = self.flags.iter().filter(|flag| !["-x", "c++", "-shared"].contains(flag));
                let mut command = Command::new(&self.path);
                command.args(["-x", "c++-header"]).args(flags).arg("-o").arg(&part).arg(&header);
                if !command.output()?.status.success() {
                    return Err(std::io::Error::other("the header does not compile"));
                }
                std::fs::rename(&part, &compiled)
            })();
            if made.is_err() {
                let _ = std::fs::remove_file(&source);
                let _ = std::fs::remove_file(&part);
                return None;
            }
        }
        // The source lies beside it.
        Some((format!("{before}#include \"{name}\"\n{after}"), compiled))
    }

    fn compile(&self, text: &str, folder: &Path, path: &Path, key: &str) -> std::result::Result<(), Failure> {
        let failed = |words: String| Failure { words };
        let (source, part) = (private::temporary(folder, "cc"), private::temporary(folder, "so"));
        let run = |command: &mut Command| -> std::result::Result<(), Failure> {
            let told = command.output().map_err(io("running", &self.path))?;
            if told.status.success() {
                return Ok(());
            }
            let _ = std::fs::remove_file(&part);
            let words = String::from_utf8_lossy(&told.stderr);
            // The compiler says on each run which of its passes is off (`COUNTING`).
            let words = words.lines().filter(|line| !line.contains("note: disable pass"));
            Err(failed(format!("{}\n{}", source.display(), words.collect::<Vec<_>>().join("\n"))))
        };
        if self.tells != Tells::Nothing {
            std::fs::write(&source, text).map_err(io("writing", &source))?;
            self.compile_telling(&source, folder, &part, run)?;
        } else {
            let made = |text: &str| {
                std::fs::write(&source, text).map_err(io("writing", &source))?;
                run(Command::new(&self.path).args(&self.flags).arg("-o").arg(&part).arg(&source).arg("-lm"))
            };
            let short = self.with_header(text, folder);
            if short.as_ref().is_none_or(|(short, _)| made(short).is_err()) {
                // The next program makes the header anew.
                short.iter().for_each(|(_, header)| _ = std::fs::remove_file(header));
                made(text)?;
            }
        }
        let _ = std::fs::remove_file(&source);
        let code = std::fs::read(&part);
        let _ = std::fs::remove_file(&part);
        let code = code.map_err(io("reading", &part))?;
        let written = private::create(&part).and_then(|mut file| {
            file.write_all(&code)?;
            file.write_all(hash(key, &code).as_bytes())
        });
        #[cfg(unix)]
        let written = written.and_then(|()| {
            use std::os::unix::fs::PermissionsExt;
            let mode = if self.whole { 0o700 } else { 0o600 };
            std::fs::set_permissions(&part, std::fs::Permissions::from_mode(mode))
        });
        // The file is written completely before it is renamed, because another process may look for it.
        written.and_then(|()| std::fs::rename(&part, path)).map_err(|error| {
            let _ = std::fs::remove_file(&part);
            io("writing", path)(error)
        })
    }
}

/// The text without the lines that include headers which the emulator has itself.
fn without_own_headers(text: &str) -> String {
    let own = |line: &str| included(line).is_some_and(|header| header == "curand_kernel.h");
    if !text.lines().any(own) {
        return text.to_owned();
    }
    text.split('\n').map(|line| if own(line) { "" } else { line }).collect::<Vec<_>>().join("\n")
}

/// The header that a line includes, without its brackets or quotes.
pub(crate) fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    let end = match rest.chars().next()? {
        '<' => '>',
        '"' => '"',
        _ => return None,
    };
    let rest = &rest[1..];
    Some(&rest[..rest.find(end)?])
}

fn hash(key: &str, code: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update(key.as_bytes()).update(code).finalize()
}

/// Whether an intact library lies at `path` that only this user may change.
fn whole(path: &Path, key: &str) -> bool {
    let mut bytes = Vec::new();
    let read = private::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    let parts = read.ok().and_then(|_| bytes.split_last_chunk::<HASH>());
    parts.is_some_and(|(code, stored)| hash(key, code).as_bytes() == stored)
}

fn io(what: &str, path: &Path) -> impl Fn(std::io::Error) -> Failure + use<> {
    let words = format!("{what} {}", path.display());
    move |error| Failure { words: format!("{words}: {error}") }
}

/// The compiler's message.
struct Failure {
    words: String,
}

impl Failure {
    fn of(self, program: &Program) -> Error {
        Error::Device { what: format!("compiling {} for the emulator", program.name), detail: self.words }
    }
}

/// The cache folder: `RAYSPIN_EMULATOR_CACHE`, or else a folder in Cargo's target folder for tests, or else
/// one among the user's caches.
fn folder() -> Option<PathBuf> {
    if let Some(set) = std::env::var_os("RAYSPIN_EMULATOR_CACHE").filter(|v| !v.is_empty()) {
        return Some(PathBuf::from(set));
    }
    if cfg!(debug_assertions) {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target");
        if target.is_dir() {
            return Some(target.join("emulator"));
        }
    }
    Some(private::cache()?.join("emulator"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "extern \"C\" __global__ void one(float* y) { y[0] = 1.0f; }";

    fn compiler(folder: &Path) -> Compiler {
        Compiler::find().unwrap().keeping(folder.to_owned())
    }

    #[test]
    fn a_program_has_a_twin_where_other_lines_are_compiled() {
        let text = "#if HALF\n#ifdef RAYSPIN_EMULATED\nint a;\n#else\nint b;\n#endif\n#endif\n";
        let program = |half: &str| Program {
            name: "halves",
            text: format!("{text}{PROGRAM}"),
            defines: vec![("HALF", half.to_owned())],
        };
        let compiler = compiler(Path::new("unused"));
        assert!(compiler.has_twin(&program("1")) && !compiler.has_twin(&program("0")));
        assert!(!compiler.has_twin(&Program { name: "one", text: PROGRAM.to_owned(), defines: Vec::new() }));
    }

    /// GCC compiles the emulator's header once. A header that is gone, damaged or another user's is no
    /// obstacle.
    #[test]
    fn the_emulators_header_is_compiled_once_and_anew_if_it_is_not_sound() {
        let folder = std::env::temp_dir().join(format!("rayspin-emulator-header-{}", std::process::id()));
        if compiler(&folder).version().contains("clang") {
            return;
        }
        // A macro whose name stands in the header makes GCC read its text.
        let mut number = 0;
        let mut library = || {
            number += 1;
            for defines in [vec![], vec![("Workspace", format!("Other{number}"))]] {
                let text = format!("{PROGRAM}\n// {number}");
                let program = Program { name: "header", text, defines };
                assert!(compiler(&folder).library(&program).unwrap().exists());
            }
        };
        library();
        let found = |extension: &str| {
            let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
            let found: Vec<_> =
                entries.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
            assert_eq!(found.len(), 1, "{found:?}");
            found[0].clone()
        };
        let (header, compiled) = (found("h"), found("gch"));
        let written = || std::fs::metadata(&compiled).unwrap().modified().unwrap();
        let first = written();
        library();
        assert_eq!(written(), first, "it is not compiled again");
        std::fs::remove_file(&header).unwrap();
        library();
        assert!(header.exists() && written() != first);
        let sound = std::fs::read(&compiled).unwrap();
        for damaged in [&sound[..sound.len() / 2], &[]] {
            std::fs::write(&compiled, damaged).unwrap();
            library();
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::write(&header, "#error written by another\n").unwrap();
            std::fs::set_permissions(&header, std::fs::Permissions::from_mode(0o666)).unwrap();
            library();
            assert_eq!(std::fs::metadata(&header).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(std::fs::read_to_string(&header).unwrap(), HEADER);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn only_whole_libraries_of_this_user_s_are_loaded() {
        let base = std::env::temp_dir().join(format!("rayspin-emulator-{}", std::process::id()));
        let folder = base.join("kept");
        let program = Program { name: "kept", text: PROGRAM.to_owned(), defines: Vec::new() };
        let library = || compiler(&folder).library(&program);
        let path = library().unwrap();
        let written = || std::fs::metadata(&path).unwrap().modified().unwrap();
        let first = written();
        library().unwrap();
        assert_eq!(written(), first, "it is not compiled again");
        let sound = std::fs::read(&path).unwrap();
        // Damaged libraries, cut ones and other programs' are replaced.
        let mut damaged = sound.clone();
        damaged[sound.len() / 2] ^= 1;
        let code = &sound[..sound.len() - HASH];
        let other = [code, hash("another key", code).as_bytes()].concat();
        for contents in [&damaged, &other, &sound[..40].to_vec(), &Vec::new()] {
            std::fs::write(&path, contents).unwrap();
            library().unwrap();
            assert_eq!(std::fs::read(&path).unwrap().len(), sound.len());
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let set = |path: &Path, mode| {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            };
            set(&path, 0o666);
            library().unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            set(&folder, 0o777);
            let words = library().unwrap_err().to_string();
            assert!(words.contains("written to by others") && words.contains("kept"), "{words}");
        }
        std::fs::remove_dir_all(&base).unwrap();
        let nowhere = Compiler { cache: None, ..compiler(&folder) };
        let words = nowhere.library(&program).unwrap_err().to_string();
        assert!(words.contains("RAYSPIN_EMULATOR_CACHE"), "{words}");
    }
}
