//! Every CUDA program of the product loads in the emulator with all of its kernels. `rayspin-gallery` tests
//! the programs of ladders.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rayspin_device::cuda::{Driver, Program};
use rayspin_emu::Emulator;

#[test]
fn every_program_loads_with_all_its_kernels() {
    let emulator = Emulator::new().unwrap();
    let programs = [rayspin_kernels::programs(), rayspin_planes::programs()].concat();
    programs.par_iter().for_each(|build| {
        let program = Program::new(build.source, &build.defines);
        let module = emulator.load(&program).unwrap();
        for name in program.signatures().unwrap().keys() {
            module.function(name).unwrap();
        }
    });
}

/// The CUDA sources below a folder.
fn sources(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, paths);
        } else if path.extension().is_some_and(|end| end == "cu" || end == "cuh") {
            paths.push(path);
        }
    }
}

#[test]
fn the_readme_names_every_source_that_runs_a_twin() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap();
    let mut paths = Vec::new();
    sources(&root.join("crates"), &mut paths);
    let asks = |path: &PathBuf| std::fs::read_to_string(path).unwrap().contains("RAYSPIN_EMULATED");
    let mut asking: Vec<_> = paths.iter().filter(|path| asks(path)).collect();
    asking.sort();
    let asking: Vec<_> =
        asking.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap()).collect();
    let readme = include_str!("../README.md");
    let (_, table) = readme.split_once("## Twins").unwrap();
    let named: Vec<_> =
        table.lines().filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0)).collect();
    assert_eq!(named, asking);
    assert_eq!(asking.len(), 13);
}
