//! The commands of the documents, run as they stand. Included by the tests of each program.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::PROGRAM;

/// The blocks of commands (```` ```sh ````) of a document.
fn blocks(document: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(document).unwrap();
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "```sh" {
            blocks.push(
                lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect(),
            );
        }
    }
    blocks
}

/// Runs the blocks of README.md, docs/ and docs/course/ that `wanted` chooses, in order, in a folder of its
/// own for each document. Returns how many ran.
pub(crate) fn run(wanted: fn(&str) -> bool) -> usize {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let folders = ["docs", "docs/course"].map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let mut documents: Vec<PathBuf> =
        folders.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    documents.push(root.join("README.md"));
    documents.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    documents.sort();
    let programs = Path::new(PROGRAM).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut count = 0;
    for document in documents {
        let folder = tempfile::tempdir().unwrap();
        for block in blocks(&document).into_iter().filter(|block| wanted(block)) {
            let output = Command::new("sh")
                .args(["-euc", &block])
                .current_dir(folder.path())
                .env("PATH", &path)
                .env("XDG_CACHE_HOME", folder.path().join("cache"))
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}:\n{block}\n{told}", document.display());
            count += 1;
        }
    }
    count
}
