//! Ladders and tuning are another program, which this one starts and does not link.

use std::path::Path;
use std::process::Command;

use crate::PROGRAM;

/// What the reconstruction of scans needs nothing of.
const LAB: [&str; 5] =
    ["rayspin-lab", "rayspin-emu", "rayspin-gallery", "rayspin-primitives", "rayspin-ladder-cli"];

#[test]
fn the_command_links_nothing_of_the_lab() {
    let output = Command::new(env!("CARGO"))
        .args("tree --package rayspin-cli --edges normal --prefix none --locked --offline".split(' '))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"rayspin-kernels"), "{tree}");
    for name in LAB {
        assert!(
            !names.contains(&name),
            "rayspin-cli links {name}: cargo tree -p rayspin-cli -e normal -i {name}"
        );
    }
}

#[cfg(unix)]
mod started {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder with a copy of the command, so that the folder of the tests' own programs is not beside it.
    fn alone() -> tempfile::TempDir {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let copy = folder.path().join("rayspin");
        if std::fs::hard_link(PROGRAM, &copy).is_err() {
            std::fs::copy(PROGRAM, &copy).unwrap();
        }
        folder
    }

    /// A program that prints its arguments, a line each after `word`, and ends with code 7.
    fn install(folder: &Path, word: &str) {
        let path = folder.join("rayspin-ladder");
        std::fs::write(&path, format!("#!/bin/sh\nprintf '%s\\n' {word} \"$@\"\nexit 7\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(folder: &Path, path: &Path, line: &str) -> Command {
        let mut command = Command::new(folder.join("rayspin"));
        command.args(line.split_whitespace()).current_dir(folder).env("PATH", path);
        command
    }

    #[test]
    fn arguments_pass_unchanged_and_the_exit_code_comes_back() {
        let (folder, elsewhere) = (alone(), tempfile::tempdir().unwrap());
        let (f, path) = (folder.path(), elsewhere.path());
        install(path, "path");
        let expect = |line: &str, words: &str| {
            let output = command(f, path, line).output().unwrap();
            let told = String::from_utf8(output.stdout).unwrap();
            assert_eq!(told.split_whitespace().collect::<Vec<_>>().join(" "), words, "{line}");
            assert_eq!(output.status.code(), Some(7), "{line}");
            assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        expect("ladder", "path");
        install(f, "beside");
        for (line, words) in [
            ("ladder", "beside"),
            ("ladder --help", "beside --help"),
            ("ladder help", "beside help"),
            ("ladder list ladder tune", "beside list ladder tune"),
            ("ladder --all --json - --device both -q", "beside --all --json - --device both -q"),
            ("ladder sad --variant a b --threads 2", "beside sad --variant a b --threads 2"),
            ("-q --device cuda:0 ladder run sad", "beside -q --device cuda:0 run sad"),
            ("--threads 2 tune --all --budget 1", "beside --threads 2 tune --all --budget 1"),
            ("tune ladder --version", "beside tune ladder --version"),
        ] {
            expect(line, words);
        }
    }

    #[test]
    fn where_the_program_is_not_installed_a_hint_says_how_to_build_it() {
        let folder = alone();
        for line in ["ladder matrix-add --device cpu", "tune --all", "ladder"] {
            let output = command(folder.path(), folder.path(), line).output().unwrap();
            let told = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{line}: {told}");
            let lines: Vec<_> = told.lines().collect();
            assert_eq!(lines.len(), 2, "{line}: {told}");
            assert!(lines[0].starts_with("error: ") && lines[0].contains("rayspin-ladder"), "{told}");
            assert!(lines[1].starts_with("hint: ") && lines[1].contains("make ladder"), "{told}");
        }
    }
}
