//! The commands of README.md and docs/ work, and what all documents refer to is there.

use std::path::{Path, PathBuf};

use crate::documents;

#[test]
fn commands_of_the_documents_run() {
    // Blocks of the other program run in its own tests.
    assert!(documents::run(|block| !block.contains("rayspin-ladder")) >= 25);
}

/// The documents of the repository.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            documents(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The files that a document links to or shows, outside blocks of code.
fn links(text: &str) -> Vec<String> {
    let outside = text.split("```").step_by(2);
    let links = outside.flat_map(|text| text.split("](").skip(1));
    let targets = links.filter_map(|rest| rest.split([')', ' ']).next());
    let files = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    let names = files.map(|target| target.split('#').next().unwrap_or_default());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn links_and_pictures_of_the_documents_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut found = Vec::new();
    for part in ["docs", "crates", "fuzz"] {
        documents(&root.join(part), &mut found);
    }
    found.extend(["README.md", "ARCHITECTURE.md"].map(|name| root.join(name)));
    let mut count = 0;
    for document in found {
        for link in links(&std::fs::read_to_string(&document).unwrap()) {
            let target = document.parent().unwrap().join(&link);
            assert!(target.exists(), "{}: {link} does not exist", document.display());
            count += 1;
        }
    }
    assert!(count > 50, "{count} links");
}
