//! Where tests find real scans, which are no part of the project. Included by the tests that read them.

use std::path::{Path, PathBuf};

/// The file or folder of this name under `RAYSPIN_DATA`, or under `../shared/data` beside the repository.
///
/// Where it is absent this says so and gives none; with `RAYSPIN_DATA_REQUIRED=1` the test fails.
pub(crate) fn real_data(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data");
    let path = std::env::var_os("RAYSPIN_DATA").map_or(beside, PathBuf::from).join(name);
    if path.exists() {
        return Some(path);
    }
    let required = std::env::var_os("RAYSPIN_DATA_REQUIRED").is_some_and(|v| v != "0");
    assert!(!required, "{} is not there, and RAYSPIN_DATA_REQUIRED is set", path.display());
    println!("skipped: {} is not there (RAYSPIN_DATA names its folder)", path.display());
    None
}
