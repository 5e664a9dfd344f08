//! What crates do not link, however far down: the product's parts can be built without each other.
//!
//! The test reads the manifests of the workspace as text and follows the dependencies of each crate's library
//! on crates of the workspace. What only tests, examples and build scripts need does not count.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;

/// What computes, and the crates that are made of it.
const COMPUTATION: [&str; 6] =
    ["rayspin-kernels", "rayspin-linop", "rayspin-solve", "rayspin-tune", "rayspin-mri", "rayspin-ct"];

/// Crates that do without it. Who reads and writes files needs the data types of scans alone.
const WITHOUT: [&str; 4] = ["rayspin-io", "rayspin-report", "rayspin-scan", "rayspin-run"];

#[test]
fn files_are_read_without_kernels() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let floors = fs::read_dir(crates).unwrap().map(|floor| floor.unwrap().path());
    let folders = floors.flat_map(|floor| fs::read_dir(floor).unwrap());
    let manifests = folders.filter_map(|entry| {
        let text = fs::read_to_string(entry.unwrap().path().join("Cargo.toml")).ok()?;
        let (name, dependencies) = read(&text);
        Some((name.unwrap(), dependencies))
    });
    let workspace: BTreeMap<String, Vec<String>> = manifests.collect();
    assert!(workspace.len() > 15, "{} crates in {}", workspace.len(), crates.display());
    for name in WITHOUT.iter().chain(&COMPUTATION) {
        assert!(workspace.contains_key(*name), "{name} is no crate of {}", crates.display());
    }
    // The search finds what is there.
    assert!(path(&workspace, "rayspin-job", "rayspin-kernels").is_some_and(|path| path.len() > 1));
    for of in WITHOUT {
        for name in COMPUTATION {
            let found = path(&workspace, of, name).map(|path| path.join(" -> "));
            assert_eq!(found, None, "{of} is to be built without {name}");
        }
    }
}

#[test]
fn manifests_are_read() {
    let text = "[package]\nname = \"one\" # a\n\n[dependencies]\ntwo.workspace = true\n# three.workspace = true\nfour = { path = \"x\" }\n\
                \"five\" = \"1\"\n[target.'cfg(unix)'.dependencies]\nsix = \"1\"\n[dependencies.seven]\nversion = \"1\"\n\
                [dev-dependencies]\neight = \"1\"\n[build-dependencies]\nnine = \"1\"\n[lib]\nname = \"ten\"\n";
    let (name, dependencies) = read(text);
    assert_eq!(name.as_deref(), Some("one"));
    assert_eq!(dependencies, ["two", "four", "five", "six", "seven"]);
}

/// The name of a package, and the names under which its library depends on others.
fn read(manifest: &str) -> (Option<String>, Vec<String>) {
    let (mut table, mut name, mut dependencies) = (String::new(), None, Vec::new());
    for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[') {
            table = header.trim_end_matches(']').to_owned();
            dependencies.extend(table.strip_prefix("dependencies.").map(str::to_owned));
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().split('.').next().unwrap().trim_matches('"');
        if table == "package" && key == "name" {
            name = value.split('"').nth(1).map(str::to_owned);
        } else if table == "dependencies" || table.ends_with(".dependencies") {
            dependencies.push(key.to_owned());
        }
    }
    (name, dependencies)
}

/// The shortest path of dependencies from a crate to another; none where it is not linked.
fn path<'a>(workspace: &'a BTreeMap<String, Vec<String>>, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
    let (mut seen, mut open) = (vec![from], VecDeque::from([vec![from]]));
    while let Some(path) = open.pop_front() {
        let last = *path.last()?;
        if last == to {
            return Some(path);
        }
        for next in workspace.get(last).into_iter().flatten() {
            if !seen.contains(&next.as_str()) {
                seen.push(next);
                open.push_back([&path[..], &[next]].concat());
            }
        }
    }
    None
}
