//! The commands of README.md and docs/ work, and what all documents refer to is there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::matlab::python;
use crate::{PROGRAM, documents, real_data};

#[test]
fn commands_of_the_documents_run() {
    // Blocks of the other program run in its own tests.
    assert!(documents::run(|block| !block.contains("rayspin-ladder")) >= 25);
}

/// The lines of commands of a section of docs/reading.md.
fn commands(heading: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reading.md");
    let text = std::fs::read_to_string(path).unwrap();
    let section = text.lines().skip_while(|line| *line != heading).skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    section.filter(|line| line.trim().starts_with("rayspin ")).map(|line| format!("{line}\n")).collect()
}

/// Runs the commands of a section in a folder that holds what they read, and returns what they said.
fn run_section(heading: &str, count: usize, folder: &Path) -> String {
    let commands = commands(heading);
    assert_eq!(commands.lines().count(), count, "{heading}");
    let programs = Path::new(PROGRAM).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    let output = shell.args(["-euc", &commands]).current_dir(folder).env("PATH", path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{heading}:\n{commands}{said}");
    said
}

#[test]
fn commands_of_the_guide_to_siemens_scanners_run() {
    let folder = tempfile::tempdir().unwrap();
    for (ending, name) in [("dat", "meas.dat"), ("seq", "scan.seq")] {
        let packed = format!("mri/twix/04_03_basic_epi_96x96_peplus.{ending}.xz");
        let Some(packed) = real_data::real_data(&packed) else { return };
        let unpacked = Command::new("xz").arg("-dc").arg(packed).output().unwrap();
        assert!(unpacked.status.success());
        std::fs::write(folder.path().join(name), unpacked.stdout).unwrap();
    }
    run_section("## From a Siemens scanner", 5, folder.path());
    for made in ["image.nii.gz", "first.nii.gz", "scan.h5"] {
        assert!(folder.path().join(made).is_file(), "{made}");
    }
}

#[test]
fn commands_of_the_guide_to_fastmri_run() {
    let folder = tempfile::tempdir().unwrap();
    if !python("fastmri.py", folder.path()) {
        return;
    }
    std::fs::rename(folder.path().join("multicoil.h5"), folder.path().join("file1000001.h5")).unwrap();
    run_section("## fastMRI in five lines", 5, folder.path());
    for made in ["image.nii.gz", "sense.nii.gz", "reference.nii.gz", "scan.h5"] {
        assert!(folder.path().join(made).is_file(), "{made}");
    }
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
