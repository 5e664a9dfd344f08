//! Translates CUDA C++ to C++: shared memory, which macros of a header cannot express, and a table of kernels
//! and variables.

use std::collections::BTreeMap;

use rayspin_core::{Error, Result};
use rayspin_device::cuda::Program;

use crate::loops::{Loops, opening, parted};
use crate::split::{Refusal, Split, wishes};
use crate::words::{
    blank, declarators, declared, first_of, group, has_word, last_word, lead, skipped, statement_end,
    without_comments, word,
};
use crate::{CURAND_KERNEL, How};

/// What comes before a program's own text.
pub(crate) const HEADER: &str = concat!(
    "#line 1 \"fibres.h\"\n",
    include_str!("../include/fibres.h"),
    "#line 1 \"emulate.h\"\n",
    include_str!("../include/emulate.h"),
);
const TEXTURE: &str = include_str!("../include/texture.h");
/// The headers of the system that `runtime.h` needs; programs get them before any word of CUDA means
/// something.
const SYSTEM: [&str; 20] = [
    "chrono",
    "map",
    "mutex",
    "string",
    "thread",
    "type_traits",
    "utility",
    "vector",
    "math.h",
    "stdarg.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "execinfo.h",
    "fcntl.h",
    "signal.h",
    "sys/mman.h",
    "ucontext.h",
    "unistd.h",
];
const RUNTIME: [(&str, &str); 4] = [
    ("runtime.h", include_str!("../include/runtime.h")),
    ("refused.h", include_str!("../include/refused.h")),
    ("calls.h", include_str!("../include/calls.h")),
    ("arrays.h", include_str!("../include/arrays.h")),
];

/// What a program tells of itself while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tells {
    Nothing,
    /// Each access and each block of code, for counts.
    Accesses,
    /// Each access and what orders threads, for checks.
    Order,
}

/// The whole text for the host's compiler.
///
/// `__shared__` arrays become references into the block's memory, which is filled with NaN before each block
/// and has fences behind each array; `extern __shared__` arrays become pointers to the block's dynamic
/// memory. Lines keep their numbers. With `loops` a thread's place is a parameter, and kernels whose threads
/// need nothing of each other get a loop over them as well.
pub(crate) fn translate(program: &Program, ways: Option<&Ways>, tells: Tells) -> Result<String> {
    let mut source = program.text.clone();
    for (_, split) in ways.into_iter().flat_map(Ways::split) {
        source.push_str(&split.text);
    }
    let mut reader = Reader::new(&source);
    reader.loops = ways.and_then(|ways| ways.loops.as_ref());
    reader.ways = ways;
    reader.read().map_err(|(expected, found)| {
        Error::value(format!("emulation of {}", program.name), expected, found)
    })?;
    let mut text = String::new();
    for (name, value) in &program.defines {
        text.push_str(&format!("#define {name} {value}\n"));
    }
    text.push_str(match tells {
        Tells::Nothing => "",
        Tells::Accesses => "#define EMU_COUNT 1\n",
        Tells::Order => "#define EMU_COUNT 1\n#define EMU_CHECK 1\n",
    });
    if reader.loops.is_some() {
        text.push_str("#define EMU_LOOPS 1\n");
    }
    text.push_str(HEADER);
    if has_word(&program.text, "cudaTextureObject_t") {
        text.push_str("#line 1 \"texture.h\"\n");
        text.push_str(TEXTURE);
    }
    // A kernel of a user's own has the header among its files already.
    if has_word(&program.text, "curand_init") && !has_word(&program.text, "emu_curand_mix") {
        text.push_str("#line 1 \"curand_kernel.h\"\n");
        text.push_str(CURAND_KERNEL);
    }
    // As a compiler for GPUs does, so that no instructions of loops are counted that a GPU does not have.
    let unrolled = (tells == Tells::Accesses).then(|| wishes(&reader.out));
    text.push_str(unrolled.as_ref().unwrap_or(&reader.out));
    text.push('\n');
    text.push_str(&reader.table());
    Ok(text)
}

/// The text of a whole program, with `main`: its launches are calls already. `includes` are the headers of
/// the system that it names.
///
/// Errors: `__shared__` where it cannot be read.
pub(crate) fn translate_whole(
    source: &str,
    includes: &[String],
    tells: Tells,
) -> std::result::Result<String, (&'static str, String)> {
    let mut reader = Reader::new(source);
    reader.whole = true;
    reader.read()?;
    let mut text =
        String::from(if tells == Tells::Order { "#define EMU_COUNT 1\n#define EMU_CHECK 1\n" } else { "" });
    for header in SYSTEM {
        text.push_str(&format!("#include <{header}>\n"));
    }
    for header in includes {
        text.push_str(&format!("#if __has_include(<{header}>)\n#include <{header}>\n#endif\n"));
    }
    text.push_str(HEADER);
    for (name, header) in [("texture.h", TEXTURE)].into_iter().chain(RUNTIME) {
        text.push_str(&format!("#line 1 \"{name}\"\n{header}"));
    }
    if has_word(source, "curand_init") || has_word(source, "curandState") {
        text.push_str(&format!("#line 1 \"curand_kernel.h\"\n{CURAND_KERNEL}"));
    }
    text.push_str(&reader.out);
    text.push_str("\n#line 1 \"table\"\n");
    if !reader.outer_dynamic.is_empty() {
        text.push_str("static bool emu_outer = (emu::outer_dynamic = [](emu::Workspace* w) EMU_PLUMBING {\n");
        for name in &reader.outer_dynamic {
            text.push_str(&format!(
                "{name} = (decltype({name}))w->arena;\nEMU_ORDER(emu_check_other(&{name}, sizeof {name}));\n"
            ));
        }
        text.push_str("}, true);\n");
    }
    Ok(text)
}

/// How each kernel of a program can run.
#[derive(Debug)]
pub(crate) struct Ways {
    /// `None` if every kernel runs as written.
    pub(crate) loops: Option<Loops>,
    pub(crate) splits: BTreeMap<String, std::result::Result<Split, Refusal>>,
}

impl Ways {
    /// The kernels that run as several loops.
    fn split(&self) -> impl Iterator<Item = (&String, &Split)> {
        let single = |name: &str| self.loops.as_ref().is_none_or(|loops| loops.runs(name));
        self.splits
            .iter()
            .filter(move |(name, _)| !single(name))
            .filter_map(|(name, split)| Some((name, split.as_ref().ok()?)))
    }

    /// How a kernel runs.
    pub(crate) fn of(&self, name: &str) -> How {
        match (&self.loops, self.splits.get(name)) {
            (None, _) => How::Written("a member of a type needs a thread's place".to_owned()),
            (Some(loops), _) if loops.runs(name) => How::Loops(1),
            (_, Some(Ok(split))) => How::Loops(split.loops),
            (_, Some(Err(why))) => How::Written(why.clone()),
            (_, None) => How::Written("a kernel of an unknown form".to_owned()),
        }
    }

    /// Gives up the loops of the kernels that the compiler's message names, or of all kernels if it names
    /// none. Returns their number.
    pub(crate) fn refuse(&mut self, words: &str) -> usize {
        let split: Vec<String> = self.split().map(|(name, _)| name.clone()).collect();
        let named: Vec<_> =
            split.iter().filter(|name| has_word(words, &format!("emu_split_{name}"))).collect();
        let wrong = if named.is_empty() { split.iter().collect() } else { named };
        let said = words.lines().find(|line| line.contains("error:")).unwrap_or_default();
        let said = said.rsplit("error:").next().unwrap_or_default().trim();
        for name in &wrong {
            self.splits.insert((*name).clone(), Err(format!("the C++ compiler refuses its loops: {said}")));
        }
        wrong.len()
    }
}

struct Kernel {
    name: String,
    bounds: String,
}

/// Copies everything except the words of the language unchanged.
struct Reader<'a> {
    text: &'a str,
    offset: usize,
    out: String,
    /// For each open brace, whether it only groups declarations of the outermost level.
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
    loops: Option<&'a Loops>,
    ways: Option<&'a Ways>,
    /// Where in `out` the parameters and the body of the present kernel begin.
    parameters: usize,
    body: usize,
    /// The parts of kernels that have been taken apart, and their names.
    parts: String,
    parted: Vec<String>,
    /// Whether it is a whole program: kernels are called by its own launches.
    whole: bool,
    /// The variables of the device whose declaration ends next, in a whole program.
    registering: Vec<String>,
}

type Wrong = (&'static str, String);

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            offset: 0,
            out: String::with_capacity(text.len() * 2),
            braces: Vec::new(),
            inside: None,
            coming: None,
            kernels: Vec::new(),
            variables: Vec::new(),
            outer_dynamic: Vec::new(),
            statement: 0,
            loops: None,
            ways: None,
            parameters: 0,
            body: 0,
            parts: String::new(),
            parted: Vec::new(),
            whole: false,
            registering: Vec::new(),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    fn copy(&mut self, bytes: usize) {
        self.out.push_str(&self.text[self.offset..self.offset + bytes]);
        self.offset += bytes;
    }

    fn outermost(&self) -> bool {
        self.braces.iter().all(|&groups| groups)
    }

    fn read(&mut self) -> std::result::Result<(), Wrong> {
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
                        self.body = self.out.len();
                    }
                    self.copy(1);
                    self.statement = self.out.len();
                }
                '}' => {
                    let ended = self.inside.take_if(|(_, depth)| *depth == self.braces.len());
                    self.braces.pop();
                    self.copy(1);
                    if let Some((name, _)) = ended {
                        self.part(&name);
                    }
                    self.statement = self.out.len();
                }
                ';' => {
                    self.copy(1);
                    // A kernel that was only declared.
                    self.coming = None;
                    let ended = match self.outermost() {
                        true => std::mem::take(&mut self.registering),
                        false => Vec::new(),
                    };
                    for name in ended {
                        self.out.push_str(&format!(
                            " static emu::Registered emu_registered_{name}(\"{name}\", (const void*)&{name}, sizeof {name});"
                        ));
                    }
                    self.statement = self.out.len();
                }
                c if c == '_' || c.is_ascii_alphabetic() => {
                    let word = word(self.rest());
                    match word {
                        "__global__" if self.whole => self.copy(word.len()),
                        "__global__" => self.kernel()?,
                        "__shared__" => self.shared()?,
                        "__constant__" => self.variable(),
                        "__device__" if self.outermost() => self.variable(),
                        _ => {
                            let open =
                                self.placed(word).then(|| opening(&self.rest()[word.len()..])).flatten();
                            self.copy(word.len() + open.unwrap_or(0));
                            if open.is_some() {
                                self.place();
                            }
                        }
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

    fn how(&self, kernel: &str) -> How {
        self.ways.map_or_else(|| How::Written(String::new()), |ways| ways.of(kernel))
    }

    /// Whether a function is given its thread's place.
    fn placed(&self, function: &str) -> bool {
        self.loops.is_some_and(|loops| loops.placed.contains(function))
    }

    /// The place as the first of the parameters or arguments that come.
    fn place(&mut self) {
        self.out.push_str(if self.outermost() { "const emu::Place emu_place" } else { "emu_place" });
        if !self.rest()[blank(self.rest())..].starts_with(')') {
            self.out.push_str(", ");
        }
    }

    /// Takes the kernel apart whose body has just ended.
    fn part(&mut self, name: &str) {
        let runs = self.loops.is_some_and(|loops| loops.placed.contains(name) && loops.runs(name));
        let parameters = self.out[self.parameters..self.body].trim_end();
        let pure = |text: &str| self.loops.is_some_and(|loops| loops.pure(text));
        let parts = runs.then(|| parted(name, parameters, &self.out[self.body..], pure)).flatten();
        if let Some(parts) = parts {
            self.parts.push_str(&parts);
            self.parted.push(name.to_owned());
        }
    }

    /// Notes a kernel's name and the number of its threads.
    fn kernel(&mut self) -> std::result::Result<(), Wrong> {
        const SHAPE: &str = "a kernel extern \"C\" __global__ void name(...)";
        let refused = |text: &str| (SHAPE, text.lines().next().unwrap_or_default().to_owned());
        let rest = self.rest();
        let open = {
            let mut offset = "__global__".len();
            loop {
                offset += blank(&rest[offset..]);
                let tail = &rest[offset..];
                match word(tail) {
                    "__launch_bounds__" => {
                        let after = offset + "__launch_bounds__".len();
                        offset = after + group(&rest[after..]).ok_or_else(|| refused(rest))?;
                    }
                    "" => break offset,
                    name => offset += name.len(),
                }
            }
        };
        let head = &rest[..open];
        if !rest[open..].starts_with('(') {
            return Err(refused(rest));
        }
        let bounds = head.find("__launch_bounds__").map_or("()", |start| {
            let after = &head[start + "__launch_bounds__".len()..];
            &after[..group(after).unwrap_or(0)]
        });
        let name = last_word(head);
        self.coming = Some(name.to_owned());
        if !self.kernels.iter().any(|k| k.name == name) {
            let bounds = without_comments(bounds).replace('\n', " ");
            self.kernels.push(Kernel { name: name.to_owned(), bounds });
        }
        self.copy(open);
        self.parameters = self.out.len();
        if self.placed(name) {
            self.copy(1);
            self.place();
        }
        Ok(())
    }

    /// Notes a variable; functions are passed by.
    fn variable(&mut self) {
        let rest = self.rest();
        let end = first_of(rest, &['(', ';', '=', '{', '[']).unwrap_or(rest.len());
        let function = rest[end..].starts_with(['(', '{']);
        let names: Vec<String> = match function {
            true => Vec::new(),
            false => {
                let end = statement_end(rest).unwrap_or(rest.len());
                let text = without_comments(&rest[word(rest).len()..end]);
                declared(&text).into_iter().map(str::to_owned).collect()
            }
        };
        let statement = &self.out[self.statement..];
        if self.whole {
            let own = !has_word(statement, "extern") && !has_word(statement, "template");
            self.registering = if own { names.clone() } else { Vec::new() };
        }
        for name in names {
            if !self.variables.contains(&name) {
                self.variables.push(name);
            }
        }
        self.copy(word(self.rest()).len());
    }

    fn shared(&mut self) -> std::result::Result<(), Wrong> {
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
        self.offset += end + 1;
        self.statement = self.out.len();
        Ok(())
    }

    fn table(&self) -> String {
        let mut text = String::from("#line 1 \"table\"\n");
        text.push_str(&self.parts);
        for Kernel { name, .. } in &self.kernels {
            text.push_str(&format!(
                "extern \"C\" __attribute__((weak, visibility(\"hidden\"))) const uint32_t __start_emu_shared_{name}[], \
                 __stop_emu_shared_{name}[];\n\
                 static void emu_call_{name}(void** arguments) {{ emu::call_kernel({name}, arguments); }}\n"
            ));
            let How::Loops(_) = self.how(name) else { continue };
            if !self.loops.is_some_and(|loops| loops.runs(name)) {
                text.push_str(&format!(
                    "static void emu_loop_{name}(void** arguments) {{ emu::call_kernel(emu_split_{name}, arguments); }}\n"
                ));
                continue;
            }
            let body = if self.parted.iter().any(|parted| parted == name) {
                format!("emu::loop_busy<emu_busy_{name}, emu_whole_{name}>({name}, arguments)")
            } else {
                format!("emu::loop_plain<{name}>({name}, arguments)")
            };
            text.push_str(&format!(
                "static __attribute__((flatten)) void emu_loop_{name}(void** arguments) {{ {body}; }}\n"
            ));
        }
        text.push_str("static const emu::Kernel emu_kernels[] = {\n");
        for Kernel { name, bounds } in &self.kernels {
            let (whole, loops, why) = match self.how(name) {
                How::Loops(loops) => (format!("emu_loop_{name}"), loops, String::new()),
                How::Written(why) => ("nullptr".to_owned(), 0, why),
            };
            let why = why.replace(['"', '\\'], "'").replace('\n', " ");
            text.push_str(&format!(
                "{{\"{name}\", emu_call_{name}, {whole}, emu::count_of({name}), emu::sizes_of({name}), emu::first_of{bounds}, \
                 __start_emu_shared_{name}, __stop_emu_shared_{name}, {loops}, \"{why}\"}},\n"
            ));
        }
        text.push_str("{}};\nstatic const emu::Variable emu_variables[] = {\n");
        for name in &self.variables {
            text.push_str(&format!("{{\"{name}\", (void*)&{name}, sizeof({name})}},\n"));
        }
        text.push_str(
            "{}};\nstatic EMU_PLUMBING int emu_run(emu::Workspace* w, void (*call)(void**), void (*whole)(void**), void** arguments, \
             const emu::Launch* launch, uint64_t* next, int* stop, char* message) {\n",
        );
        for name in &self.outer_dynamic {
            text.push_str(&format!(
                "{name} = (decltype({name}))w->arena;\nEMU_ORDER(emu_check_other(&{name}, sizeof {name}));\n"
            ));
        }
        text.push_str(&format!(
            "return emu::run_blocks(w, call, whole, arguments, launch, next, stop, message);\n}}\n\
             extern \"C\" __attribute__((visibility(\"default\"))) const emu::Program emu_program = {{emu_kernels, {}, \
             emu_variables, {}, emu::new_workspace, emu::delete_workspace, emu_run}};\n",
            self.kernels.len(),
            self.variables.len()
        ));
        text
    }
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
            __constant__ float table[3], other[2]; static __device__ int counter = 1, more = f(1, 2);\n\
            static __device__ float helper(int i) { __shared__ Pair<int, 2> p[2]; return table[i]; }\n";
        let reader = read(text);
        assert_eq!(reader.out.matches('\n').count(), text.matches('\n').count());
        assert_eq!(reader.kernels.len(), 1);
        assert_eq!(
            (reader.kernels[0].name.as_str(), reader.kernels[0].bounds.as_str()),
            ("one", "(N * 2, 1)")
        );
        assert_eq!(reader.variables, ["table", "other", "counter", "more"]);
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
