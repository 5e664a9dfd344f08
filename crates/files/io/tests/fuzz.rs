//! The targets of `fuzz/` on their seeds and on seeds that are altered at random: none panics, and every
//! error is one line that names the file. It needs no fuzzer, so each change is tested.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[allow(dead_code, unreachable_pub, reason = "shared with the fuzzers")]
#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

/// Altered inputs of a target.
const INPUTS: usize = 120;

/// All files of a folder and the folders in it, in the order of their names.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let of = |path: &std::path::PathBuf| match path.is_dir() {
        true => files(path),
        false => vec![std::fs::read(path).unwrap()],
    };
    paths.iter().flat_map(of).collect()
}

/// Cut, overwritten, doubled or mixed with another seed, in one to four places.
fn altered(seed: &[u8], other: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..rng.random_range(1..5) {
        if bytes.is_empty() {
            break;
        }
        let place = rng.random_range(0..bytes.len());
        let end = (place + rng.random_range(1..40)).min(bytes.len());
        match rng.random_range(0..6) {
            0 => bytes.truncate(place),
            1 => bytes[place] = rng.random(),
            2 => bytes[place] ^= 1 << rng.random_range(0..8),
            3 => drop(bytes.drain(place..end)),
            4 => drop(bytes.splice(place..place, bytes[place..end].to_vec())),
            _ => {
                let from = rng.random_range(0..other.len().max(1)).min(other.len());
                let to = (from + end - place).min(other.len());
                drop(bytes.splice(place..end, other[from..to].iter().copied()));
            }
        }
    }
    bytes
}

#[test]
fn every_target_stands_seeds_and_what_is_made_of_them() {
    let corpus = tempfile::tempdir().unwrap();
    targets::seeds::write(corpus.path()).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for (name, target) in targets::TARGETS {
        let seeds = files(&corpus.path().join(name));
        assert!(seeds.len() > 1 || name == "rtk", "{name}: {} seeds", seeds.len());
        seeds.iter().for_each(|seed| target(seed));
        for _ in 0..INPUTS {
            let [seed, other] = [0; 2].map(|_| &seeds[rng.random_range(0..seeds.len())]);
            target(&altered(seed, other, &mut rng));
        }
    }
    std::fs::remove_dir_all(targets::folder()).unwrap();
    // Each file of a target calls the function that is tested here.
    let binaries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/fuzz_targets");
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(binaries).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let call = format!("rayspin_fuzz::{name}(bytes)");
        assert!(std::fs::read_to_string(&path).unwrap().contains(&call), "{}", path.display());
        names.push(name);
    }
    names.sort();
    let mut known = targets::TARGETS.map(|(name, _)| name.to_owned()).to_vec();
    known.sort();
    assert_eq!(names, known);
}
