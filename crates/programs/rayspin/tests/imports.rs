//! Within each crate, imports run one way from folder to folder: no module is imported by what it imports.
//!
//! The test reads the source of every crate as text: its `use` declarations and the paths that begin with
//! `crate`, `self` or `super`. A top module, a file or a folder of `src`, imports another where a path
//! resolves to it, through `pub use` as well. Modules called `tests` and what a file compiles for tests alone
//! do not count. A circle of files that all lie in `src` itself is within one folder, and is none across
//! folders.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A path of modules from the crate's root.
type Module = Vec<String>;

/// The top modules that each top module imports, and in which modules.
type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

#[test]
fn no_circle_runs_across_folders() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let of = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let mut folders: Vec<PathBuf> = of(crates).iter().flat_map(|floor| of(floor)).collect();
    folders.sort();
    let libraries: Vec<PathBuf> =
        folders.iter().map(|folder| folder.join("src")).filter(|src| src.join("lib.rs").exists()).collect();
    assert!(libraries.len() > 15, "{} crates in {}", libraries.len(), crates.display());
    let circles = libraries.iter().flat_map(|src| Crate::read(src).circles());
    let told: Vec<String> = circles.map(|circle| circle.told).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// Modules that import each other in a circle, and a line that tells it.
#[derive(Debug)]
struct Circle {
    modules: Vec<String>,
    told: String,
}

#[test]
fn circles_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a; mod b; mod c; mod d; pub use b::inner::Found as Shown;");
    write("a.rs", "use crate::{Shown, c};\n#[cfg(test)] mod tests { use crate::d::D; }");
    write("b/mod.rs", "pub mod inner;\n// use crate::c::C;\nconst TEXT: &str = \"crate::c::C\";");
    write("b/inner.rs", "pub struct Found; fn f() { super::super::a::g() }");
    write("c.rs", "pub struct C;");
    write("d.rs", "use crate::a; use crate::c::C;");
    let circles = Crate::read(folder.path()).circles();
    assert_eq!(circles.len(), 1, "{circles:?}");
    assert_eq!(circles[0].modules, ["a", "b"]);
    let told = &circles[0].told;
    assert!(told.contains("a -> b (a)") && told.contains("b -> a (b::inner)"), "{told}");
    // Without the folder's import the circle is open; files of one folder may import each other.
    write("b/inner.rs", "pub struct Found;");
    write("c.rs", "use crate::a;");
    assert!(Crate::read(folder.path()).circles().is_empty());
}

/// The modules of a crate and their text without comments, strings and tests.
struct Crate {
    src: PathBuf,
    modules: BTreeMap<Module, String>,
    /// What each module hands on under a name: the path that the name stands for.
    handed_on: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Crate {
    fn read(src: &Path) -> Self {
        let mut modules = BTreeMap::new();
        collect(src, &Module::new(), &mut modules);
        let mut read = Self { src: src.to_owned(), modules, handed_on: BTreeMap::new() };
        for (module, text) in &read.modules {
            let paths = uses(text).into_iter().filter(|used| used.public).flat_map(|used| used.paths);
            let named = paths.filter_map(|(path, name)| Some((name, read.absolute(module, &path)?)));
            let named: BTreeMap<String, Module> = named.collect();
            read.handed_on.insert(module.clone(), named);
        }
        read
    }

    /// The path from the crate's root; none of a path that leads out of the crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let mut from = module.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                from.clear();
                rest = &path[1..];
            }
            "self" | "super" => {
                while let [first, after @ ..] = rest
                    && (first == "self" || first == "super")
                {
                    if first == "super" {
                        from.pop();
                    }
                    rest = after;
                }
            }
            first if !self.modules.contains_key(&[&module[..], &[first.to_owned()]].concat()) => return None,
            _ => {}
        }
        from.extend(rest.iter().cloned());
        Some(from)
    }

    /// The module in which what a path names is defined.
    fn defining(&self, path: &[String], depth: usize) -> Module {
        let mut at = Module::new();
        for (index, part) in path.iter().enumerate() {
            at.push(part.clone());
            if self.modules.contains_key(&at) {
                continue;
            }
            at.pop();
            let named = self.handed_on.get(&at).and_then(|names| names.get(part));
            return match named.filter(|_| depth < 8) {
                Some(named) => self.defining(&[&named[..], &path[index + 1..]].concat(), depth + 1),
                None => at,
            };
        }
        at
    }

    /// What each top module imports of others, and where.
    fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (module, text) in self.modules.iter().filter(|(module, _)| !module.is_empty()) {
            let used = uses(text).into_iter().flat_map(|used| used.paths).map(|(path, _)| path);
            for path in used.chain(paths_within(text)) {
                let Some(path) = self.absolute(module, &path) else { continue };
                let defining = self.defining(&path, 0);
                if let Some(top) = defining.first().filter(|top| **top != module[0]) {
                    let of = imports.entry(module[0].clone()).or_default().entry(top.clone()).or_default();
                    of.insert(module.join("::"));
                }
            }
        }
        imports
    }

    fn is_folder(&self, top: &str) -> bool {
        self.modules.keys().any(|module| module.len() > 1 && module[0] == top)
    }

    /// The circles with a folder in them.
    fn circles(&self) -> Vec<Circle> {
        let imports = self.imports();
        let reach: BTreeMap<&String, BTreeSet<&String>> =
            imports.keys().map(|top| (top, reached(&imports, top))).collect();
        let mut circles = BTreeSet::new();
        for (top, seen) in reach.iter().filter(|(top, seen)| seen.contains(*top)) {
            let circle: BTreeSet<&String> = seen
                .iter()
                .copied()
                .filter(|other| reach.get(other).is_some_and(|back| back.contains(top)))
                .collect();
            if circle.iter().any(|top| self.is_folder(top)) {
                circles.insert(circle);
            }
        }
        let told = |circle: BTreeSet<&String>| {
            let mut line = format!("{}:", self.src.display());
            for from in &circle {
                for (to, places) in
                    imports.get(*from).into_iter().flatten().filter(|(to, _)| circle.contains(to))
                {
                    let places: Vec<&str> = places.iter().map(String::as_str).collect();
                    line += &format!(" {from} -> {to} ({})", places.join(", "));
                }
            }
            Circle { modules: circle.into_iter().cloned().collect(), told: line }
        };
        circles.into_iter().map(told).collect()
    }
}

/// What a top module imports, and what that imports in turn.
fn reached<'a>(imports: &'a Imports, from: &'a str) -> BTreeSet<&'a String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        let others = imports.get(next).into_iter().flat_map(BTreeMap::keys);
        open.extend(others.filter(|to| seen.insert(*to)).map(String::as_str));
    }
    seen
}

/// The modules of a folder by their paths, without modules of tests.
fn collect(folder: &Path, at: &Module, modules: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let below = [&at[..], std::slice::from_ref(&name)].concat();
        if name == "tests" {
            continue;
        }
        if path.is_dir() {
            collect(&path, &below, modules);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = without_tests(&without_words(&fs::read_to_string(&path).unwrap()));
            match name.as_str() {
                "main" if at.is_empty() => {}
                "lib" if at.is_empty() => drop(modules.insert(at.clone(), text)),
                "mod" => drop(modules.insert(at.clone(), text)),
                _ => drop(modules.insert(below, text)),
            }
        }
    }
}

/// A source without comments and without what strings hold.
fn without_words(source: &str) -> String {
    let mut left = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let raw =
            rest.strip_prefix('r').map(|after| (after, after.chars().take_while(|c| *c == '#').count()));
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some((after, hashes)) = raw.filter(|(after, hashes)| after[*hashes..].starts_with('"'))
        {
            let end = format!("\"{}", "#".repeat(hashes));
            let open = 1 + hashes + 1;
            after[hashes + 1..].find(&end).map_or(rest.len(), |at| open + at + end.len())
        } else if rest.starts_with('"') {
            let (mut end, mut escaped) = (rest.len(), false);
            for (at, c) in rest.char_indices().skip(1) {
                match c {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '"' => {
                        end = at + 1;
                        break;
                    }
                    _ => {}
                }
            }
            end
        } else if ["'\"'", "'\\\"'", "'{'", "'}'"].iter().any(|quoted| rest.starts_with(quoted)) {
            rest[1..].find('\'').map_or(rest.len(), |at| at + 2)
        } else {
            left.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        left.push(' ');
        rest = &rest[skipped..];
    }
    left
}

/// A source without the items that are compiled for tests alone.
fn without_tests(source: &str) -> String {
    let mut left = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, item)) = rest.split_once("#[cfg(test)]") {
        left += before;
        let (end, open) = (item.find(';').unwrap_or(item.len()), item.find('{').unwrap_or(item.len()));
        // `use a::{b, c};` is no block.
        let is_block = open < end && !item.trim_start().starts_with("use ");
        let end = if is_block { open + block(&item[open..]) } else { (end + 1).min(item.len()) };
        rest = &item[end..];
    }
    left + rest
}

/// The bytes of the block with which a text begins.
fn block(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// A `use` declaration: its paths, each with the name that it gives, and whether others see them.
struct Used {
    public: bool,
    paths: Vec<(Module, String)>,
}

fn uses(text: &str) -> Vec<Used> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let before = text[..at].trim_end();
        let begins = before.is_empty() || before.ends_with(['{', '}', ';', ']']);
        let public = before.ends_with("pub")
            || (before.ends_with(')')
                && before.rsplit_once("pub(").is_some_and(|(_, scope)| scope.len() < 20));
        let Some(end) = text[at..].find(';').filter(|_| begins || public) else { continue };
        let mut paths = Vec::new();
        expand(&text[at + 4..at + end], &[], &mut paths);
        found.push(Used { public, paths });
    }
    found
}

/// The paths of a tree such as `a::{b, c::{self, d as e}}`.
fn expand(tree: &str, before: &[String], paths: &mut Vec<(Module, String)>) {
    let (head, group) = match tree.split_once('{') {
        Some((head, group)) => (head, Some(group.rsplit_once('}').map_or(group, |(group, _)| group))),
        None => (tree, None),
    };
    let (head, renamed) =
        head.split_once(" as ").map_or((head, None), |(head, name)| (head, Some(name.trim())));
    let mut path = before.to_vec();
    path.extend(head.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned));
    let Some(group) = group else {
        if path.len() > before.len() && path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(last) = path.last().cloned() {
            paths.push((path, renamed.map_or(last, str::to_owned)));
        }
        return;
    };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&group[start..at], &path, paths);
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// The paths in expressions and types that begin with `crate`, `self` or `super`.
fn paths_within(text: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for root in ["crate::", "self::", "super::"] {
        for (at, _) in text.match_indices(root) {
            if text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let end = text[at..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            let path = &text[at..end.map_or(text.len(), |end| at + end)];
            found.push(path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect());
        }
    }
    found
}
