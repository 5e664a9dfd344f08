//! MCUDA: finds the kernels that can run as a loop over the threads of a block, and writes these loops.

use std::collections::{HashMap, HashSet};

use crate::words::{blank, group, has_word, last_word, skipped, statement_end, without_comments, word};

/// The built-in variables with a thread's place. A function that uses one of them gets it as a parameter.
const PLACES: [&str; 4] = ["threadIdx", "blockIdx", "blockDim", "gridDim"];
/// Calls that need other threads of the block, or that cannot leave a loop early.
const WAITS: [&str; 4] = ["__nanosleep", "__activemask", "__trap", "assert"];
const WAITING: [&str; 10] = [
    "__syncthreads",
    "__emu_bar",
    "__syncwarp",
    "__shfl",
    "__ballot",
    "__any_sync",
    "__all_sync",
    "__match",
    "__reduce",
    "__shared__",
];

/// Facts about a program's functions.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    /// Functions that need a thread's place, kernels among them.
    pub(crate) placed: HashSet<String>,
    /// The words that a function, a type or a macro reaches.
    reached: HashMap<String, HashSet<String>>,
}

impl Loops {
    /// `None` if members of a type or a macro would have to pass a place on. Such a program runs as written.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let (functions, others) = definitions(text);
        // Kernels are never called, so a variable with the name of a kernel means nothing.
        let kernels = kernels(text);
        let mut words_by_name: HashMap<&str, &HashSet<String>> =
            functions.iter().chain(&others).map(|(name, words)| (name.as_str(), words)).collect();
        let names: Vec<_> = words_by_name.keys().map(|name| (*name).to_owned()).collect();
        words_by_name.retain(|name, _| !kernels.contains(*name));
        let words_of = |name: &str| functions.get(name).or_else(|| others.get(name));
        let reached: HashMap<String, HashSet<String>> = names
            .into_iter()
            .filter_map(|name| {
                let reached = reach(words_of(&name)?, &words_by_name);
                Some((name, reached))
            })
            .collect();
        let places = |name: &str| PLACES.iter().any(|place| reached[name].contains(*place));
        let placed: HashSet<String> = functions.keys().filter(|name| places(name)).cloned().collect();
        let hands_on = |words: &HashSet<String>| words.iter().any(|word| placed.contains(word));
        let member = |name: &String| text.contains("struct") && !is_macro(text, name) && places(name);
        if others.iter().any(|(name, words)| hands_on(words) || member(name)) {
            return None;
        }
        Some(Self { placed, reached })
    }

    /// Whether evaluating `text` twice equals evaluating it once: it calls no function of the program and
    /// changes nothing.
    pub(crate) fn pure(&self, text: &str) -> bool {
        !text.contains("++")
            && !text.contains("--")
            && words(text).all(|word| !word.starts_with("atomic") && !self.reached.contains_key(&word))
    }

    /// Whether a kernel's threads are independent.
    pub(crate) fn runs(&self, kernel: &str) -> bool {
        self.reached.get(kernel).is_some_and(|words| {
            !words.iter().any(|word| {
                WAITS.contains(&word.as_str()) || WAITING.iter().any(|begin| word.starts_with(begin))
            })
        })
    }
}

fn is_macro(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        line.trim_start().strip_prefix('#').is_some_and(|l| {
            l.trim_start().strip_prefix("define").is_some_and(|l| word(l.trim_start()) == name)
        })
    })
}

/// These words and all words that they reach.
fn reach(words: &HashSet<String>, words_by_name: &HashMap<&str, &HashSet<String>>) -> HashSet<String> {
    let (mut seen, mut next) = (words.clone(), words.iter().cloned().collect::<Vec<_>>());
    while let Some(name) = next.pop() {
        for word in words_by_name.get(name.as_str()).into_iter().flat_map(|words| words.iter()) {
            if seen.insert(word.clone()) {
                next.push(word.clone());
            }
        }
    }
    seen
}

/// The names of a program's kernels.
fn kernels(text: &str) -> HashSet<String> {
    let text = without_comments(text);
    text.split("__global__").skip(1).filter_map(|rest| called(&rest[..rest.find('{')?])).collect()
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric())
        .filter(|word| word.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic()))
        .map(str::to_owned)
}

type Words = HashMap<String, HashSet<String>>;

/// The words of function bodies, and the words of types and macros, by name.
fn definitions(text: &str) -> (Words, Words) {
    let (mut functions, mut others) = (Words::new(), Words::new());
    let text = without_comments(text);
    let (mut offset, mut depth, mut statement, mut before) = (0, 0usize, 0, None);
    while let Some(c) = text[offset..].chars().next() {
        if let Some(bytes) = skipped(&text[offset..], before) {
            let part = &text[offset..offset + bytes];
            if let Some(rest) = part.strip_prefix('#').and_then(|d| d.trim_start().strip_prefix("define")) {
                let rest = rest.trim_start();
                let name = word(rest);
                others.entry(name.to_owned()).or_default().extend(words(&rest[name.len()..]));
            }
            if part.starts_with('#') && depth == 0 && text[statement..offset].trim().is_empty() {
                statement = offset + bytes;
            }
            (offset, before) = (offset + bytes, Some(' '));
            continue;
        }
        before = Some(c);
        match c {
            ';' => statement = offset + 1,
            '}' => {
                depth = depth.saturating_sub(1);
                statement = offset + 1;
            }
            '{' => {
                let head = &text[statement..offset];
                if head.trim_end().ends_with("\"C\"") || has_word(head, "namespace") {
                    (depth, statement) = (depth + 1, offset + 1);
                } else {
                    let end = offset + braced(&text[offset..]);
                    match called(head) {
                        Some(name) => functions.entry(name).or_default().extend(words(&text[statement..end])),
                        None => {
                            // A type, or a list of values: by each word before it.
                            for name in words(head) {
                                others.entry(name).or_default().extend(words(&text[offset..end]));
                            }
                        }
                    }
                    offset = end;
                    statement = end;
                    continue;
                }
            }
            _ => {}
        }
        offset += c.len_utf8();
    }
    (functions, others)
}

/// Bytes of the braced text that `text` begins with.
fn braced(text: &str) -> usize {
    let (mut offset, mut depth) = (0, 0usize);
    while let Some(c) = text[offset..].chars().next() {
        if let Some(bytes) = skipped(&text[offset..], Some('x')) {
            offset += bytes;
            continue;
        }
        offset += c.len_utf8();
        match c {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return offset;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// The name of the function that a head declares.
fn called(head: &str) -> Option<String> {
    let mut offset = 0;
    loop {
        offset += head[offset..].find('(')?;
        let name = last_word(&head[..offset]);
        if !matches!(name, "__launch_bounds__" | "__align__" | "alignas" | "__attribute__" | "") {
            let typed = has_word(&head[..offset], "struct") && !head[..offset].contains("__device__");
            return (!typed).then(|| name.to_owned());
        }
        offset += group(&head[offset..])?;
    }
}

/// Bytes from the end of a function's name to behind the parenthesis that opens its parameters, template
/// arguments between.
pub(crate) fn opening(text: &str) -> Option<usize> {
    let mut offset = blank(text);
    if text[offset..].starts_with('<') {
        let (from, mut depth) = (offset, 0);
        for (i, c) in text[from..].char_indices() {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                c if c == '_' || c.is_ascii_alphanumeric() || " ,:+-*/".contains(c) => {}
                _ => return None,
            }
            if depth == 0 {
                offset = from + i + 1;
                break;
            }
        }
        if offset == from {
            return None;
        }
    }
    offset += blank(&text[offset..]);
    text[offset..].starts_with('(').then_some(offset + 1)
}

/// Splits a kernel whose first statements are constants and `if (...) return;` in two: a test whether a
/// thread has work, and a kernel for threads that have. The loop of this kernel has no branch, so that a
/// compiler can vectorise it. `parameters` and `body` include their brackets.
pub(crate) fn parted(
    name: &str,
    parameters: &str,
    body: &str,
    pure: impl Fn(&str) -> bool,
) -> Option<String> {
    let inside = body.strip_prefix('{')?.strip_suffix('}')?;
    let (mut offset, mut guard, mut whole, mut parts, mut until) = (0, String::new(), String::new(), 0, 0);
    let (mut guard_until, mut whole_until) = (0, 0);
    loop {
        let from = offset;
        offset += blank(&inside[offset..]);
        let rest = &inside[offset..];
        match word(rest) {
            "const" => {
                let end = offset + statement_end(rest)? + 1;
                let text = &inside[from..end];
                if !pure(text) {
                    break;
                }
                guard.push_str(text);
                whole.push_str(text);
                offset = end;
            }
            "if" => {
                let condition = 2 + group(&rest[2..])?;
                let then = condition + blank(&rest[condition..]);
                let after = then + "return".len();
                if word(&rest[then..]) != "return" || !rest[after..].trim_start().starts_with(';') {
                    break;
                }
                let end = offset + after + rest[after..].find(';')? + 1;
                if !pure(&rest[..condition]) {
                    break;
                }
                guard.push_str(&format!(" if {} return false;", rest[2..condition].trim()));
                parts += 1;
                offset = end;
                (until, guard_until, whole_until) = (offset, guard.len(), whole.len());
            }
            _ => break,
        }
    }
    (parts > 0).then(|| {
        guard.truncate(guard_until);
        whole.truncate(whole_until);
        let always = "static inline __attribute__((always_inline))";
        format!(
            "{always} bool emu_busy_{name}{parameters} {{{guard} return true; }}\n\
             {always} void emu_whole_{name}{parameters} {{{whole}{}}}\n",
            &inside[until..]
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#define HERE(x) (x + TURN)\n#define TURN threadIdx.x\n\
        struct Pair { int a; }; // struct Other { __syncthreads(); }\n\
        static __device__ int at() { return HERE(1); }\n\
        static __device__ void meet(int i) { __syncthreads(); }\n\
        template <int N> static __device__ int plain(int i) { return N + i; }\n\
        extern \"C\" { __global__ void __launch_bounds__(64, 2) one(int* x) { x[at()] = plain<3>(1); }\n\
        __global__ void two(int* x) { meet(x[0]); } __global__ void three(int* x) { int two = 1; x[0] = two; } }\n";

    #[test]
    fn kernels_whose_threads_need_each_other_are_told_from_the_others() {
        let loops = Loops::of(TEXT).unwrap();
        let mut placed: Vec<_> = loops.placed.iter().map(String::as_str).collect();
        placed.sort_unstable();
        assert_eq!(placed, ["at", "one"]);
        assert!(loops.runs("one") && !loops.runs("two") && loops.runs("three") && !loops.runs("four"));
        assert!(Loops::of("struct S { int f() { return threadIdx.x; } };").is_none());
        assert!(Loops::of(&format!("{TEXT}#define AT at()\n")).is_none());
    }

    #[test]
    fn conditions_at_the_head_of_a_kernel_are_taken_out_of_its_loop() {
        let text = parted(
            "k",
            "(int n)",
            "{ const int i = n, j = 2; if (i >= n) return; int s = i; x[s] = j; }",
            |_| true,
        )
        .unwrap();
        assert!(
            text.contains("{ const int i = n, j = 2; if (i >= n) return false; return true; }"),
            "{text}"
        );
        assert!(text.contains("{ const int i = n, j = 2; int s = i; x[s] = j; }"), "{text}");
        assert!(parted("k", "(int n)", "{ int i = n; if (i >= n) return; x[i] = 0; }", |_| true).is_none());
        assert!(parted("k", "(int n)", "{ const int i = n; if (i >= n) { return; } }", |_| true).is_none());
        assert!(
            parted("k", "(int n)", "{ const int i = f(n); if (i >= n) return; }", |t| !t.contains("f("))
                .is_none()
        );
        assert_eq!(opening("<4, Pair<int> > (x)"), Some(17));
        assert_eq!(opening(" < 4 > (x)"), Some(8));
        assert_eq!(opening(" ;"), None);
    }
}
